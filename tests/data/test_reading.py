"""Every X is read once in a public call, by one reader."""

import numpy as np
import pytest

from skpref import CollaborativePreferenceRegressor, ItemTable, PairwisePreferenceRegressor
from skpref.data import _read
from skpref.inference import HMC, SVI, Gibbs
from skpref.model_selection import ItemKFold, item_components
from skpref.preprocessing import Itemwise

RNG = np.random.default_rng(0)
TABLE = ItemTable(RNG.standard_normal((8, 2)), names=list("abcdefgh"))
PAIRS = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [1, 2], [3, 4], [5, 6], [0, 4]])
Y = np.array([0, 1, 1, 0, 1, 0, 1, 1])
SETS = np.array([[0, 1, 2], [3, 4, -1], [5, 6, 7]])
FORMS = {
    "duel array": TABLE.X[PAIRS],
    "positions": PAIRS,
    "names": TABLE.names[PAIRS],
    "list": TABLE.X[PAIRS].tolist(),
}
ENGINES = {
    "auto": "auto",
    "ep": "ep",
    "laplace": "laplace",
    "hmc": HMC(draws=64, chains=4),
    "gibbs": Gibbs(draws=64, chains=4, thin=1),
    "svi": SVI(8),
}


@pytest.fixture
def reads(monkeypatch):
    """What came to the reader."""
    came, read = [], _read.read

    def counted(X, **options):
        came.append(X)
        return read(X, **options)

    for module in ("data._read", "preprocessing", "model_selection", "inspection._features"):
        monkeypatch.setattr(f"skpref.{module}.read", counted)
    return came


class Counted:
    """An array-like that counts how often it is made an array."""

    def __init__(self, values):
        self.values, self.count = values, 0

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        self.count += 1
        return np.array(self.values, dtype=dtype)


def model(engine="ep", **params):
    return PairwisePreferenceRegressor(
        inference=ENGINES[engine], optimizer=None, items=TABLE, random_state=0, **params
    )


CALLS = {
    "predict": lambda model, X: model.predict(X),
    "predict std": lambda model, X: model.predict(X, return_std=True),
    "predict cov": lambda model, X: model.predict(X, return_cov=True),
    "predict_proba": lambda model, X: model.predict_proba(X),
    "predict_log_proba": lambda model, X: model.predict_log_proba(X),
    "decision_function": lambda model, X: model.decision_function(X),
    "score": lambda model, X: model.score(X, Y),
    "sample_y": lambda model, X: model.sample_y(X, 2),
}


@pytest.mark.filterwarnings("ignore")  # chains so short have not mixed
@pytest.mark.parametrize("engine", ENGINES)
def test_an_estimator_reads_x_once(engine, reads):
    fitted = model(engine)
    for X in FORMS.values():
        reads.clear()
        fitted.fit(X, Y)
        assert len(reads) == 1
        for call in CALLS.values():
            reads.clear()
            call(fitted, X)
            assert len(reads) == 1
    reads.clear()
    fitted.predict(TABLE, return_std=True)
    assert len(reads) == 1


@pytest.mark.parametrize("engine", ["ep", "hmc"])
@pytest.mark.filterwarnings("ignore")
def test_sets_are_read_once(engine, reads):
    fitted = model(engine).fit(SETS, [0, 1, 2])
    assert len(reads) == 1
    calls = (
        lambda X: fitted.predict(X, return_std=True),
        fitted.predict_proba,
        fitted.decision_function,
        lambda X: fitted.score(X, [0, 1, 2]),
    )
    for call in calls:
        reads.clear()
        call(SETS)
        assert len(reads) == 1


def test_pieces_of_a_stream_are_read_once(reads):
    stream = model("svi")
    for start in (0, 4):
        reads.clear()
        stream.partial_fit(PAIRS[start : start + 4], Y[start : start + 4])
        assert len(reads) == 1


def test_a_model_of_users_reads_x_once(reads):
    fitted = CollaborativePreferenceRegressor(items=TABLE, optimizer=None, n_latent=2)
    users = list("uvuvuvuv")
    fitted.fit(PAIRS, Y, users=users)
    assert len(reads) == 1
    for name in ("predict", "predict_proba", "decision_function"):
        reads.clear()
        getattr(fitted, name)(PAIRS, users=users)
        assert len(reads) == 1
    reads.clear()
    fitted.score(PAIRS, Y, users=users)
    assert len(reads) == 1


@pytest.mark.parametrize("engine", ["ep", "hmc"])
@pytest.mark.filterwarnings("ignore")
def test_a_posterior_reads_each_side_once(engine, reads):
    posterior = model(engine).fit(PAIRS, Y).posterior_
    for method in ("mean", "var", "cov", "component_means", "credible_interval", "sample"):
        reads.clear()
        getattr(posterior, method)(TABLE.X)
        assert len(reads) == 1, method
    for method in ("margin", "margin_cov", "win_probability", "outcome_log_proba"):
        reads.clear()
        getattr(posterior, method)(["a", "b"], ["c", "d"])
        assert len(reads) == 2, method


def test_transformers_and_splitters_read_once(reads):
    X = TABLE.X[PAIRS]
    itemwise = Itemwise()
    for call in (
        itemwise.fit,
        itemwise.transform,
        itemwise.fit_transform,
        lambda X: list(ItemKFold(2, mixed="test").split(X)),
        item_components,
    ):
        reads.clear()
        call(X)
        assert len(reads) == 1


@pytest.mark.parametrize("form", ["duel array", "names"])
def test_x_becomes_an_array_once(form):
    """Whatever counts the reads: X itself tells how often it was turned into an array."""
    X = Counted(FORMS[form])
    fitted = PairwisePreferenceRegressor(optimizer=None).fit(X, Y)
    assert X.count == 1
    for call in CALLS.values():
        X.count = 0
        call(fitted, X)
        assert X.count == 1
    X.count = 0
    item_components(X, integers="positions")
    assert X.count == 1
