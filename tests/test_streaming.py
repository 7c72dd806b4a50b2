"""Streams of answers: the end is that of one fit, whatever the pieces; memory and bits."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import SVI


def problem(n=3000, n_items=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_items, 3))
    utility = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 - np.cos(3.0 * X[:, 2])
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    margin = utility[first] - utility[second] + 0.15 * rng.normal(size=n)
    return X, np.column_stack([first, second]), (margin > 0).astype(int)


def unfitted(X, n_inducing=60, **options):
    options = {"kernel": RBF(0.5), "optimizer": None, "random_state": 0} | options
    return PairwisePreferenceRegressor(inference=SVI(n_inducing), items=X, **options)


def log_loss(model, pairs, y):
    return -np.mean(np.log(model.predict_proba(pairs)[np.arange(len(y)), y]))


def streamed(model, pairs, y, pieces):
    for part in np.array_split(np.arange(len(y)), pieces):
        model.partial_fit(pairs[part], y[part])
    return model


def test_a_stream_of_many_pieces_ends_near_one_fit():
    X, pairs, y = problem()
    whole = unfitted(X).fit(pairs[:2500], y[:2500])
    stream = streamed(unfitted(X), pairs[:2500], y[:2500], 100)
    losses = [log_loss(model, pairs[2500:], y[2500:]) for model in (whole, stream)]
    assert losses[1] - losses[0] < 0.01


def test_a_stream_whose_later_pieces_bring_unseen_items():
    X, pairs, y = problem(n=4000)
    order = np.argsort(np.maximum(X[pairs[:3500, 0], 0], X[pairs[:3500, 1], 0]))
    whole = unfitted(X).fit(pairs[:3500], y[:3500])
    stream = streamed(unfitted(X), pairs[order], y[order], 100)
    losses = [log_loss(model, pairs[3500:], y[3500:]) for model in (whole, stream)]
    assert losses[1] - losses[0] < 0.01
    assert len(stream.posterior_.anchors) <= 120


def test_pickled_in_mid_stream_it_goes_on_with_the_same_bits():
    X, pairs, y = problem(600)
    one, other = unfitted(X), unfitted(X)
    for model in (one, other):
        streamed(model, pairs[:300], y[:300], 3)
    other = pickle.loads(pickle.dumps(other))
    for model in (one, other):
        streamed(model, pairs[300:], y[300:], 3)
    assert np.array_equal(one.predict(X), other.predict(X))
    assert np.array_equal(one.posterior_.factor, other.posterior_.factor)


def test_the_bounds_of_the_pieces_sum_to_a_bound_of_all():
    X, pairs, y = problem(1000)
    Z = X[:50]
    engine = SVI(50, Z)
    stream = PairwisePreferenceRegressor(RBF(0.5), inference=engine, items=X, optimizer=None)
    total = 0.0
    for part in np.array_split(np.arange(1000), 4):
        total += stream.partial_fit(pairs[part], y[part]).log_marginal_likelihood_value_
    whole = PairwisePreferenceRegressor(
        RBF(0.5), inference=SVI(50, stream.posterior_.anchors), items=X, optimizer=None
    ).fit(pairs, y)
    assert 0.0 < whole.log_marginal_likelihood_value_ - total < 5.0


def test_further_points_change_nothing_by_themselves():
    X, pairs, y = problem(500)
    model = unfitted(X, 20).fit(pairs, y)
    before = model.predict(X[:5])
    far = np.array([[[9.0, 9.0, 9.0], [9.0, 9.0, 8.0]]])  # no item here has met any of there
    other = unfitted(X, 20, kernel=RBF(0.5)).fit(pairs, y)
    other.set_params(items=None).partial_fit(far)
    assert len(other.posterior_.anchors) > len(model.posterior_.anchors)
    assert_allclose(other.predict(X[:5]), before, atol=1e-5)


def test_hyperparameters_are_learned_on_the_first_piece_and_stay():
    X, pairs, y = problem(600)
    model = unfitted(X, optimizer="fmin_l_bfgs_b")
    first = model.partial_fit(pairs[:300], y[:300]).kernel_
    assert first != RBF(0.5)
    assert model.partial_fit(pairs[300:], y[300:]).kernel_ == first


def test_new_names_have_points_of_their_own():
    rng = np.random.default_rng(0)
    table = ItemTable.from_names([f"player {k}" for k in range(30)])
    model = PairwisePreferenceRegressor(
        inference=SVI(5), items=table, optimizer=None, noise_variance=0.5
    )
    early = np.array([rng.permutation(15)[:2] for _ in range(60)])
    late = np.array([15 + rng.permutation(15)[:2] for _ in range(60)])
    model.partial_fit(early, early[:, 0] < early[:, 1])
    model.partial_fit(late, late[:, 0] < late[:, 1])
    assert len(model.posterior_.anchors) == 30
    utility = model.predict(np.arange(30))
    assert np.corrcoef(utility[15:], np.arange(15))[0, 1] < -0.8
    assert np.corrcoef(utility[:15], np.arange(15))[0, 1] < -0.8


def test_a_piece_may_hold_one_label_alone():
    X, pairs, y = problem(200)
    model = unfitted(X).partial_fit(pairs, 2 * y - 1)
    won = y == 1
    model.partial_fit(pairs[won], np.ones(won.sum(), dtype=int))
    assert model.classes_.tolist() == [-1, 1]


def test_a_fit_begins_anew_and_can_be_gone_on_from():
    X, pairs, y = problem(600)
    again = unfitted(X).partial_fit(pairs[300:], 1 - y[300:]).fit(pairs[:300], y[:300])
    fresh = unfitted(X).fit(pairs[:300], y[:300])
    assert np.array_equal(again.predict(X), fresh.predict(X))
    one, other = (each.partial_fit(pairs[300:], y[300:]).predict(X) for each in (again, fresh))
    assert np.array_equal(one, other)


def test_other_engines_are_refused_with_the_remedy():
    model = PairwisePreferenceRegressor()
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit(np.zeros((1, 2, 1)))
    assert "set inference='svi'" in str(caught.value.__cause__)


def test_pieces_of_another_form_are_refused():
    X, pairs, y = problem(100)
    duels = X[pairs]
    model = unfitted(None).partial_fit(duels, y)
    with pytest.raises(
        ValueError, match="2 features, but PairwisePreferenceRegressor is expecting"
    ):
        model.partial_fit(duels[:, :, :2], y)
    with pytest.raises(ValueError, match="Rated items came after duels"):
        model.partial_fit(X[:10], np.arange(10.0))
