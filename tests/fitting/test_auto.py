"""What inference="auto" comes to."""

import warnings

import numpy as np
import pytest
from core_support import random_duels
from sklearn.gaussian_process.kernels import RBF, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.data._validation import check_training
from skpref.duels import ItemTable
from skpref.fitting import _forecast
from skpref.fitting._model import Model
from skpref.fitting._settings import check_settings, make_model
from skpref.inference import EP, SVI
from skpref.kernels import Identity, ItemEffect, OnColumns
from skpref.likelihoods import Probit


def duels(n=60):
    items, winner, loser = random_duels(0, 20, n)
    return np.stack([items[winner], items[loser]], axis=1)


@pytest.fixture
def hurried(monkeypatch):
    """Every exact fit would take too long."""
    monkeypatch.setattr(_forecast, "LONG", 0.0)
    monkeypatch.setattr(_forecast, "_POINTS", 8)


def test_it_is_the_default_and_exact_where_that_is_quick():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = PairwisePreferenceRegressor().fit(duels())
    assert isinstance(found.engine_, EP)
    same = PairwisePreferenceRegressor(inference="ep").fit(duels())
    np.testing.assert_array_equal(found.predict(duels()[:, 0]), same.predict(duels()[:, 0]))


def test_what_takes_long_is_sparse_and_said(hurried):
    with pytest.warns(UserWarning, match=r"'auto' takes SVI\(n_inducing=8\).*inference='ep'"):
        found = PairwisePreferenceRegressor(random_state=0).fit(duels())
    assert isinstance(found.engine_, SVI)
    assert found.posterior_.anchors.shape == (8, 2)
    same = PairwisePreferenceRegressor(inference=SVI(8), random_state=0).fit(duels())
    np.testing.assert_array_equal(found.predict(duels()[:, 0]), same.predict(duels()[:, 0]))


@pytest.mark.parametrize("inference", ["ep", EP(), "laplace"])
def test_an_engine_that_was_asked_for_is_taken(hurried, inference):
    found = PairwisePreferenceRegressor(inference=inference).fit(duels())
    assert not isinstance(found.engine_, SVI)


def contests(n, n_ids=5):
    """Duels of ids, each with a control of its own."""
    rng = np.random.default_rng(0)
    ids = np.array([rng.permutation(n_ids)[:2] for _ in range(n)])
    X = np.stack([ids.astype(float), rng.normal(size=(n, 2))], axis=2)
    return X, ((X @ [0.3, 1.0]) @ [1.0, -1.0] + rng.normal(size=n) > 0.0).astype(int)


BOARD = OnColumns(Identity(), [0]) + 0.5 * OnColumns(DotProduct(0.0, "fixed"), [1])


def test_a_kernel_of_few_features_is_exact_however_many_items():
    X, y = contests(5000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = PairwisePreferenceRegressor(BOARD, optimizer=None).fit(X, y)
    assert isinstance(found.engine_, EP)
    assert len(found.posterior_.anchors) <= 12
    with pytest.warns(
        UserWarning, match="'auto' takes SVI"
    ):  # an item that differs from all others
        model = PairwisePreferenceRegressor(BOARD + 0.1 * ItemEffect(), optimizer=None)
        make_model(model, check_settings(model), check_training(model, X, y))


def test_the_part_to_learn_on_is_what_takes_seconds():
    X, y = contests(12_000)
    comparisons = check_training(PairwisePreferenceRegressor(), X, y).comparisons
    model = Model(BOARD, Probit(0.1), EP())

    def size(weight):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(_forecast, "_PASSED", weight * _forecast._PASSED)
            return len(_forecast.learning_part(comparisons, model, "auto").positions)

    assert size(1.0) == 12_000
    assert 1000 < size(50.0) < 2000
    assert size(1e6) == 1000


def test_choices_stay_exact(hurried):
    X = np.random.default_rng(0).normal(size=(30, 3, 2))
    chosen = X[:, :, 0].argmax(axis=1)
    assert isinstance(PairwisePreferenceRegressor().fit(X, chosen).engine_, EP)


@pytest.mark.parametrize("kernel", [None, Identity()])
def test_items_with_names_alone_stay_exact(hurried, kernel):
    table = ItemTable.from_names([f"player {k}" for k in range(20)])
    _, winner, loser = random_duels(0, 20, 60)
    games = np.stack([winner, loser], axis=1)
    assert isinstance(PairwisePreferenceRegressor(kernel, items=table).fit(games).engine_, EP)


def test_a_kernel_that_sees_names_and_values_may_be_sparse(hurried):
    kernel = RBF(1.0) + OnColumns(Identity(), [0])
    with pytest.warns(UserWarning, match="takes SVI"):
        found = PairwisePreferenceRegressor(kernel, random_state=0).fit(duels())
    assert isinstance(found.engine_, SVI)


@pytest.mark.parametrize(
    ("n_items", "n_duels", "engine"), [(3000, 9000, EP), (4200, 12_000, SVI), (9000, 4200, SVI)]
)
def test_size_decides(n_items, n_duels, engine):
    items, winner, loser = random_duels(0, n_items, n_duels)
    X = np.stack([items[winner], items[loser]], axis=1)
    model = PairwisePreferenceRegressor(random_state=0)

    settings = check_settings(model)
    training = check_training(model, X, None, likelihood=settings.likelihood)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(make_model(model, settings, training).engine, engine)


def test_streams_must_be_asked_for():
    with pytest.raises(AttributeError) as caught:
        PairwisePreferenceRegressor().partial_fit(duels())
    said = str(caught.value.__cause__)
    assert "inference='auto' needs all answers at once" in said and "inference='svi'" in said


def test_a_stream_goes_on_from_a_fit_that_came_to_points(hurried, monkeypatch):
    both = [
        PairwisePreferenceRegressor(inference=each, optimizer=None, random_state=0)
        for each in ("auto", SVI(8))
    ]
    seen = duels(150)
    for model in both:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(seen[:40])
    monkeypatch.setattr(_forecast, "LONG", 1e9)  # what it would come to now does not count
    for model in both:
        for piece in (seen[40:60], seen[60:]):  # the latter doubles the answers
            model.partial_fit(piece)
    assert isinstance(both[0].engine_, SVI)
    chances = [model.predict_proba(seen) for model in both]
    np.testing.assert_array_equal(*chances)


def test_no_stream_goes_on_from_an_exact_fit():
    model = PairwisePreferenceRegressor(optimizer=None).fit(duels())
    with pytest.raises(AttributeError):
        model.partial_fit(duels())


def test_a_name_that_is_none_is_told_all_that_are():
    with pytest.raises(ValueError, match="'auto', 'laplace', 'ep'"):
        PairwisePreferenceRegressor(inference="vi").fit(duels())
