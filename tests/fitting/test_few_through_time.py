"""Few answers about items that are independent through time are fitted jointly all the same."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.fitting import _forecast
from skpref.gp import ThroughTime
from skpref.inference import EP, Laplace
from skpref.inspection import leaderboard

NAMES = ItemTable.from_names([f"item {k}" for k in range(8)])
CONTEXTS = {
    "plain": {},
    "ties": {"tie_threshold": 0.2},
    "order": {"order_effect": 0.3},
    "wiener": {"drift": "wiener"},
}


def regressor(engine, **options):
    held = {"drift": "matern12", "noise_variance": 0.01, "optimizer": None, "items": NAMES}
    return PairwisePreferenceRegressor(inference=engine, **(held | options))


def answers(n_items, n, context="plain"):
    rng = np.random.default_rng(n_items + n)
    X = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n)])
    y = np.where(rng.random(n) < 0.7, 1, -1)
    y[0] = -1  # the first piece says what 0 stands for
    given = {"time": np.arange(float(n))}
    if context == "ties":
        y[1:] *= rng.random(n - 1) < 0.7
    if context == "order":
        given["order"] = rng.integers(-1, 2, n)
    return X, y, given


def one_by_one(model, X, y, given):
    for k in range(len(y)):
        piece = {name: values[k : k + 1] for name, values in given.items()}
        model.partial_fit(X[k : k + 1], y[k : k + 1], **piece)
    return model


def proba(model, n_items, n):
    """Of all pairs, after the last answer and amid them."""
    pairs = np.array([(i, j) for i in range(n_items) for j in range(i)])
    return np.stack([model.predict_proba(pairs, time=when)[:, -1] for when in (n, n / 2)])


# As many answers as in the last of a single kind: they take as long as all others.
SIZES = [
    (n_items, n, kind) for n_items, n in [(2, 5), (2, 30), (4, 20), (6, 12)] for kind in CONTEXTS
]


@pytest.mark.parametrize(("n_items", "n", "context"), [*SIZES, (6, 60, "ties")])
def test_fits_and_pieces_are_those_of_all_items_jointly(n_items, n, context):
    X, y, given = answers(n_items, n, context)
    joint = regressor(EP(), **CONTEXTS[context]).fit(X, y, **given)
    model = regressor(EP(items="independent"), **CONTEXTS[context]).fit(X, y, **given)
    wanted = proba(joint, n_items, n)
    assert_allclose(proba(model, n_items, n), wanted, atol=1e-6)
    held = CONTEXTS[context] | {"kernel": joint.kernel_, "drift": None}
    pieces = one_by_one(regressor(EP(items="independent"), **held), X, y, given)
    assert_allclose(proba(pieces, n_items, n), wanted, atol=1e-6)
    evidence = joint.log_marginal_likelihood_value_
    assert_allclose(pieces.log_marginal_likelihood_value_, evidence, atol=1e-6)
    assert len(pieces.comparisons_.positions) == n


def test_those_of_laplace_too():
    X, y, given = answers(3, 20)
    whole = regressor(Laplace()).fit(X, y, **given)
    model = regressor(Laplace(items="independent")).fit(X[:9], y[:9], time=given["time"][:9])
    model.partial_fit(X[9:], y[9:], time=given["time"][9:])
    assert_allclose(proba(model, 3, 20), proba(whole, 3, 20), atol=1e-6)


def test_learned_hyperparameters_are_those_of_all_items_jointly_and_stay():
    X, y, given = answers(5, 40)
    joint, model = (
        regressor(EP(items=items), optimizer="fmin_l_bfgs_b").fit(X, y, **given)
        for items in ("joint", "independent")
    )
    assert_allclose(model._model.theta, joint._model.theta, atol=1e-6)
    model.partial_fit([[0, 7]], [1], time=50.0)
    assert_allclose(model._model.theta, joint._model.theta, atol=1e-6)
    assert leaderboard(model, n_draws=100).n_hyperparameters == 1
    assert len(leaderboard(model, n_draws=100).utility) == 8


def test_beyond_what_is_affordable_items_are_chains(monkeypatch):
    X, y, given = answers(4, 40)
    time = given["time"]
    cost = regressor(EP(items="independent")).fit(X[:30], y[:30], time=time[:30])
    monkeypatch.setattr(_forecast, "_AT_ONCE", _forecast._matrix_seconds(_of(cost)))
    model = regressor(EP(items="independent")).fit(X[:20], y[:20], time=time[:20])
    assert not isinstance(model.posterior_, ThroughTime)
    model.partial_fit(X[20:30], y[20:30], time=time[20:30])
    assert not isinstance(model.posterior_, ThroughTime)
    model.partial_fit(X[30:32], y[30:32], time=time[30:32])
    assert isinstance(model.posterior_, ThroughTime)
    held = {"kernel": model.kernel_, "drift": None}
    whole = regressor(EP(items="independent"), **held).fit(X[:32], y[:32], time=time[:32])
    assert isinstance(whole.posterior_, ThroughTime)
    assert_allclose(proba(model, 4, 32), proba(whole, 4, 32), atol=1e-6)
    before = model.predict(np.arange(4), time=5.0)
    model.partial_fit(X[32:], y[32:], time=time[32:])
    assert len(model.comparisons_.positions) == 8  # filtered: these alone
    assert_allclose(model.predict(np.arange(4), time=5.0), before, atol=1e-9)


def _of(model):
    """What the exact prior of a fit takes."""
    return _forecast.PriorRule().cost(model.kernel_, model.comparisons_, model.likelihood_)


def test_earlier_answers_and_earlier_times_are_learned_of():
    X, y, given = answers(4, 20)
    model = regressor(EP(items="independent")).fit(X[1:], y[1:], time=given["time"][1:])
    model.partial_fit(X[:1], y[:1], time=given["time"][:1])
    held = {"kernel": model.kernel_, "drift": None}
    whole = regressor(EP(), **held).fit(X, y, **given)
    assert_allclose(proba(model, 4, 20), proba(whole, 4, 20), atol=1e-6)
    assert model.posterior_.smoothed() is model.posterior_


def test_what_chains_cannot_take_later_is_refused_now():
    X, y, given = answers(4, 20)
    model = regressor(EP(items="independent")).fit(X, y, **given)
    before = model.predict(np.arange(4))
    with pytest.raises(ValueError, match="need duels, none of an item with itself"):
        model.partial_fit(np.array([[0, 1, 2]]), [0], time=[70.0])
    assert np.array_equal(model.predict(np.arange(4)), before)


@pytest.mark.parametrize("way", ["pickle", "arrays"])
def test_a_stored_model_goes_on(way):
    X, y, given = answers(4, 20)
    model = regressor(EP(items="independent")).fit(X[:12], y[:12], time=given["time"][:12])
    if way == "pickle":
        again = pickle.loads(pickle.dumps(model))
    else:
        again = type(model).from_arrays(model.to_arrays())
    for each in (model, again):
        each.partial_fit(X[12:], y[12:], time=given["time"][12:])
    assert_allclose(proba(again, 4, 20), proba(model, 4, 20), atol=1e-9)
