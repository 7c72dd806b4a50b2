"""Shares, elasticities and worth of attributes, beside draws of what people see."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import DotProduct

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.inspection import elasticities, shares, willingness_to_pay
from skpref.kernels import Identity, Linear, OnColumns


@pytest.fixture(scope="module")
def trips():
    """Sets of car, bus and train with hours and price; some have no train."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 1.5, size=(120, 3, 2)) * [2.0, 10.0]
    X[rng.random(120) < 0.3, 2] = np.nan
    return X


@pytest.fixture(scope="module")
def model(trips):
    rng = np.random.default_rng(1)
    seen = trips @ [-0.8, -0.2] + rng.normal(size=trips.shape[:2])
    chosen = np.nan_to_num(seen, nan=-np.inf).argmax(axis=1)
    kernel = Linear([1.0, 5.0])
    return PairwisePreferenceRegressor(kernel, noise_variance=1.0, optimizer=None).fit(
        trips, chosen
    )


def draws(model, X, n=4000):
    """Utilities of all rows in draws of the posterior, (n_sets, k, n), -inf where none is."""
    offered = ~np.isnan(X).any(axis=2)
    utility = np.full((*offered.shape, n), -np.inf)
    utility[offered] = model.posterior_.sample(X[offered], n, 0)
    return utility


def share_draws(utility):
    """Shares in every draw, noise of one item integrated out by Gauss and Hermite, (k, n)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    share = np.zeros(utility.shape[1:])
    for k in range(len(share)):
        with np.errstate(invalid="ignore"):  # of two that are not offered
            ahead = utility[:, [k]] - np.delete(utility, k, axis=1)
        ahead = np.where(np.isfinite(utility[:, [k]]), np.nan_to_num(ahead, posinf=40.0), -40.0)
        proba = np.prod(ndtr(ahead[..., None] + nodes), axis=1) @ weights
        share[k] = proba.mean(axis=0) / weights.sum()
    return share


@pytest.mark.parametrize("without", [None, 0])
def test_shares_and_intervals_are_those_of_draws(model, trips, without):
    result = shares(model, trips, without=without)
    utility = draws(model, trips, 1000)
    if without is not None:
        utility[:, without] = -np.inf
    truth = share_draws(utility)
    assert_allclose(result.share, truth.mean(axis=1), atol=0.004)
    assert result.share.sum() == pytest.approx(1.0)
    low, high = np.quantile(truth, [0.05, 0.95], axis=1)
    assert_allclose([result.low, result.high], [low, high], atol=0.006)


def test_shares_are_those_of_all_parts_of_a_mixture():
    # Two judges contradict each other: who is right is open, so that the posterior has two parts.
    rng = np.random.default_rng(5)
    rows = rng.uniform(size=(12, 2, 1))
    ahead = (rows[:, 0, 0] > rows[:, 1, 0]).astype(int)
    judges = np.array(["ann"] * 7 + ["bob"] * 5)
    model = PairwisePreferenceRegressor(Linear(0.5), noise_variance=0.5, optimizer=None)
    model.fit(rows, np.where(judges == "ann", ahead, 1 - ahead), judges=judges)
    assert type(model.posterior_).__name__ == "PosteriorMixture"
    utility = np.sqrt(2.0) * draws(model, rows, 20_000)  # in deviations of the noise
    assert_allclose(shares(model, rows).share, share_draws(utility).mean(axis=1), atol=0.006)


def test_who_is_left_alone_has_everything(model, trips):
    pairs = trips[:, :2]
    assert_allclose(shares(model, pairs, without=1).share, [1.0, 0.0])


def test_an_alternative_may_stand_at_any_place(model, trips):
    number = np.broadcast_to(np.arange(3.0)[None, :, None], (*trips.shape[:2], 1))
    named = np.where(np.isnan(trips[:, :, :1]), np.nan, number)
    turned = np.concatenate([trips, named], axis=2)[:, [2, 0, 1]]
    kernel = OnColumns(Linear([1.0, 5.0]), [0, 1])
    other = PairwisePreferenceRegressor(kernel, noise_variance=1.0, optimizer=None)
    other.fit(turned[:60], [1 if np.isnan(row[0, 0]) else 0 for row in turned[:60]])
    by_place = shares(other, turned)
    by_name = shares(other, turned, alternative=2)
    assert by_name.alternative.tolist() == [0.0, 1.0, 2.0]
    assert_allclose(by_name.share, by_place.share[[1, 2, 0]])


def test_elasticities_are_slopes_of_the_logarithms_of_shares(model, trips):
    result = elasticities(model, trips, 1)
    ends = []
    for factor in (1.05, 0.95):
        moved = trips.copy()
        moved[:, 0, 1] *= factor
        ends.append(np.log(shares(model, moved).share))
    change = (ends[0] - ends[1]) / np.log(1.05 / 0.95)
    assert_allclose(result.elasticity[:, 0], change, rtol=0.01)
    # What one loses the others gain.
    assert_allclose(shares(model, trips).share @ result.elasticity, 0.0, atol=1e-4)
    assert np.all(np.diag(result.elasticity) < 0.0)


def test_worth_and_interval_are_those_of_draws_of_slopes(model, trips):
    result = willingness_to_pay(model, trips, price=1)
    corners = model.posterior_.sample([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 400_000, 0)
    worth = -(corners[1] - corners[0]) / (corners[2] - corners[0])
    low, middle, high = np.quantile(worth, [0.05, 0.5, 0.95])
    assert result.column.tolist() == [0]
    assert result.low[0, 0] == pytest.approx(low, abs=0.02 * abs(low))
    assert result.high[0, 0] == pytest.approx(high, abs=0.02 * abs(high))
    assert result.value[0, 0] == pytest.approx(middle, rel=0.02)


def test_people_have_a_worth_each():
    rng = np.random.default_rng(3)
    person = np.repeat([0.0, 1.0], 200)
    X = rng.uniform(size=(400, 3, 2)) * [2.0, 10.0]
    hours = np.where(person == 0.0, -2.0, -0.2)
    seen = hours[:, None] * X[:, :, 0] - 0.3 * X[:, :, 1] + rng.normal(size=(400, 3))
    rows = np.concatenate([X, np.broadcast_to(person[:, None, None], (400, 3, 1))], axis=2)
    slopes = OnColumns(DotProduct(0.0, "fixed"), [0, 1])
    kernel = slopes + OnColumns(Identity(), [2]) * slopes
    model = PairwisePreferenceRegressor(kernel, noise_variance=1.0, optimizer=None)
    result = willingness_to_pay(
        model.fit(rows, seen.argmax(axis=1)), rows, price=1, columns=[0], groups=person
    )
    assert result.group.tolist() == [0.0, 1.0]
    for k in range(2):
        corners = [[0.0, 0.0, k], [1.0, 0.0, k], [0.0, 1.0, k]]
        utility = model.posterior_.sample(corners, 400_000, 0)
        worth = -(utility[1] - utility[0]) / (utility[2] - utility[0])
        ends = np.quantile(worth, [0.05, 0.95])
        assert_allclose([result.low[k, 0], result.high[k, 0]], ends, atol=0.02 * np.abs(ends).max())
    assert result.high[0, 0] < result.low[1, 0] < 0.0


def test_of_many_rows_some_are_enough_where_slopes_are_the_same(model, trips):
    many = np.concatenate([trips] * 20)
    some, every = (willingness_to_pay(model, rows, price=1) for rows in (trips, many))
    assert_allclose(every.value, some.value, rtol=1e-6)
    assert_allclose(every.low, some.low, rtol=1e-6)


def test_tables_have_a_row_for_each_group_and_column(model, trips):
    pytest.importorskip("pandas")
    result = willingness_to_pay(model, trips, price=1, groups=np.arange(len(trips)) % 2)
    assert result.frame["group"].tolist() == [0, 1]
    assert result.frame["value"].tolist() == result.value.ravel().tolist()
    assert shares(model, trips).frame["share"].sum() == pytest.approx(1.0)


def test_a_price_of_unknown_sign_has_no_ends():
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(10, 3, 2))
    model = PairwisePreferenceRegressor(Linear([1.0, 1.0]), noise_variance=1.0, optimizer=None)
    model.fit(X, X[:, :, 0].argmax(axis=1))
    with pytest.warns(UserWarning, match="leave open"):
        assert np.isinf(willingness_to_pay(model, X, price=1).low).all()


def test_what_cannot_be_answered_is_refused(model, trips):
    with pytest.raises(ValueError, match="got X of shape"):
        shares(model, trips[0])
    with pytest.raises(ValueError, match="one of"):
        shares(model, trips, without="tram")
    with pytest.raises(ValueError, match="nothing is left"):
        shares(model, np.where([[[False], [False], [True]]], np.nan, trips)[:, 1:], without=0)
    half = trips.copy()
    half[0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        elasticities(model, half, 1)
    with pytest.raises(ValueError, match="column"):
        elasticities(model, trips, 7)
    flat = PairwisePreferenceRegressor(OnColumns(Linear(1.0), [0]), optimizer=None)
    with pytest.raises(ValueError, match="does not depend"):
        willingness_to_pay(flat.fit(trips[:, :2], np.zeros(120)), trips, price=1)
    with pytest.raises(ValueError, match="no row without NaN of 'z'"):
        alone = np.where(np.arange(len(trips)) == 0, "z", "a")
        gone = np.where(alone[:, None, None] == "z", np.nan, trips)
        willingness_to_pay(model, gone, price=1, groups=alone)
    users = CollaborativePreferenceRegressor(optimizer=None)
    duels = [[[0.0, 1.0], [1.0, 0.0]]] * 4
    users.fit(duels, [1, 1, 0, 0], users=["a", "a", "b", "b"])
    with pytest.raises(TypeError, match="several users"):
        shares(users, trips)
