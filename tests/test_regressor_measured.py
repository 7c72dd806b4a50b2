"""Measured values beside answers, in fits of PairwisePreferenceRegressor."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import multivariate_normal
from sklearn import config_context
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import EP, SVI
from skpref.inspection import leaderboard, loo
from skpref.inspection._loo import forecast_without_each, removal_readings
from skpref.kernels import Intransitive
from skpref.likelihoods import Derivatives, Likelihood
from skpref.preprocessing import Itemwise

KERNEL = ConstantKernel(4.0) * RBF([1.0, 2.0])
HELD = {"kernel": KERNEL, "noise_variance": 0.5, "optimizer": None}
TIGHT = EP(tol=1e-12, max_iter=2000)


def answers(seed=0, n_values=5, n_duels=4, k=2):
    """Items that were measured, two of which are in answers too, values, deviations, and sets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_values, 2))
    values = 3.0 + 2.0 * X[:, 0] + rng.normal(size=n_values)
    sets = rng.normal(size=(n_duels, k, 2))
    sets[0, :2] = X[:2]
    return (X, values, rng.uniform(0.3, 0.8, n_values)), sets, rng.integers(0, k, n_duels)


def draws_given_values(X, values, deviations, items, level, n=400_000):
    """Utilities of items given values, drawn by scikit-learn's regression; the level is known, or
    has so wide a prior that it might as well be flat."""
    wide = 0.0 if level is not None else 1e4
    kernel = KERNEL if not wide else KERNEL + ConstantKernel(wide)
    model = GaussianProcessRegressor(kernel, alpha=deviations**2, optimizer=None)
    model.fit(X, values - (values.mean() if wide else level))
    mean, cov = model.predict(items, return_cov=True)
    root = np.linalg.cholesky(cov + 1e-8 * np.eye(len(items)))
    return mean + np.random.default_rng(1).standard_normal((n, len(items))) @ root.T


@pytest.mark.parametrize("engine", [TIGHT, "laplace", "hmc", "gibbs"])
def test_values_alone_are_the_regression_of_scikit_learn(engine):
    (X, values, deviations), duels, y = answers(n_values=12)
    model = PairwisePreferenceRegressor(**HELD, value_level=0.7, inference=engine)
    model.fit(duels, y, sample_weight=np.zeros(4), measured=(X, values, deviations))
    expected = GaussianProcessRegressor(KERNEL, alpha=deviations**2, optimizer=None)
    expected.fit(X, values - 0.7)
    items = np.concatenate([X, duels[:, 0]])
    for own, other in zip(
        model.predict(items, return_cov=True),
        expected.predict(items, return_cov=True),
        strict=True,
    ):
        assert_allclose(own, other, atol=1e-8)
    assert_allclose(
        model.log_marginal_likelihood_value_, expected.log_marginal_likelihood_value_, atol=1e-8
    )
    assert model.value_level_ == 0.7


def test_a_flat_level_is_that_of_generalised_least_squares():
    """Deviations of values from a level, with the covariance of their contrasts."""
    measured, duels, y = answers(n_values=6)
    X, values, deviations = measured
    model = PairwisePreferenceRegressor(**HELD)
    model.fit(duels, y, sample_weight=np.zeros(4), measured=measured)
    V = KERNEL(X) + np.diag(deviations**2)
    level = np.linalg.solve(V, values).sum() / np.linalg.inv(V).sum()
    assert_allclose(model.value_level_, level)
    assert_allclose(model.predict(X), KERNEL(X) @ np.linalg.solve(V, values - level), atol=1e-9)
    contrasts = np.linalg.qr(np.column_stack([np.ones(6), np.eye(6)[:, 1:]]))[0][:, 1:].T
    law = multivariate_normal(np.zeros(5), contrasts @ V @ contrasts.T)
    assert_allclose(model.log_marginal_likelihood_value_, law.logpdf(contrasts @ values))
    # A wide prior comes near to a flat one, in the variance too.
    wide = GaussianProcessRegressor(
        KERNEL + ConstantKernel(1e6), alpha=deviations**2, optimizer=None
    )
    margin = wide.fit(X, values).predict(duels[1], return_cov=True)[1] @ [1.0, -1.0] @ [1.0, -1.0]
    assert_allclose(model.predict(duels[1:2], return_std=True)[1] ** 2, margin, rtol=1e-5)


@pytest.mark.parametrize(("seed", "level"), [(0, None), (1, None), (3, None), (4, 2.5)])
def test_values_and_duels_are_those_of_importance_sampling(seed, level):
    measured, duels, y = answers(seed)
    items = np.concatenate([measured[0], duels.reshape(-1, 2)])
    new = items[[5, 8]] + 0.3
    f = draws_given_values(*measured, np.concatenate([items, new]), level)
    margins = f[:, 5:-2:2] - f[:, 6:-2:2]
    weight = np.prod(ndtr(np.where(y == 1, margins, -margins)), axis=1)  # √(2σ²) = 1
    weight /= weight.sum()
    model = PairwisePreferenceRegressor(**HELD, value_level=level, inference=TIGHT)
    model.fit(duels, y, measured=measured)
    mean = model.predict(duels)
    assert_allclose(mean, weight @ margins, atol=0.01 * np.sqrt(8.0))  # a margin's, a priori
    assert_allclose(model.predict_proba(duels)[:, 1], weight @ ndtr(margins), atol=0.01)
    expected = weight @ ndtr(f[:, -2] - f[:, -1])
    assert_allclose(model.predict_proba([new])[0, 1], expected, atol=0.01)


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize(
    ("engine", "tolerance"), [("laplace", 0.12), ("hmc", 0.05), ("gibbs", 0.08)]
)
def test_every_engine_has_both_in_its_posterior(engine, tolerance):
    measured, duels, y = answers(2)
    items = np.concatenate([measured[0], duels.reshape(-1, 2)])
    f = draws_given_values(*measured, items, None)
    margins = f[:, 5::2] - f[:, 6::2]
    weight = np.prod(ndtr(np.where(y == 1, margins, -margins)), axis=1)
    model = PairwisePreferenceRegressor(**HELD, inference=engine, random_state=0)
    proba = model.fit(duels, y, measured=measured).predict_proba(duels)[:, 1]
    assert_allclose(proba, weight @ ndtr(margins) / weight.sum(), atol=tolerance)


def test_choices_offsets_and_values_are_those_of_importance_sampling():
    measured, sets, y = answers(3, k=3)
    offset = np.random.default_rng(0).normal(size=(4, 3))
    y = np.argmax(2.0 * sets[:, :, 0] + offset, axis=1)  # as values tell
    y[0] = np.argmin(2.0 * sets[0, :, 0] + offset[0])
    items = np.concatenate([measured[0], sets.reshape(-1, 2)])
    f = draws_given_values(*measured, items, None, 200_000)[:, 5:].reshape(-1, 4, 3)
    rng = np.random.default_rng(2)
    chosen = np.zeros(len(f))
    for _ in range(8):
        seen = f + offset + np.sqrt(0.5) * rng.standard_normal(f.shape)
        chosen += np.all(seen.argmax(axis=2) == y, axis=1)
    weight = chosen / chosen.sum()
    model = PairwisePreferenceRegressor(**HELD).fit(sets, y, measured=measured, offset=offset)
    expected = np.einsum("n,nij->ij", weight, f)
    own = model.predict(sets)
    assert_allclose(own - own[:, :1], expected - expected[:, :1], atol=0.06)


def at_the_start(obj_func, initial_theta, bounds):
    """An optimizer that leaves the hyperparameters, which are free, where they start."""
    return initial_theta, obj_func(initial_theta)[0]


@pytest.mark.parametrize("engine", [TIGHT, "laplace"])
@pytest.mark.parametrize("level", [None, 2.5])
@pytest.mark.parametrize("n_duels", [3, 40])  # by margins, and by items
def test_gradient_of_the_evidence_is_that_of_differences(engine, level, n_duels):
    measured, duels, y = answers(n_duels=n_duels)
    if n_duels == 40:
        duels = duels[np.arange(40) % 4]
        y = np.arange(40) // 7 % 2
    kernel = ConstantKernel(4.0) * Matern([1.0, 2.0], nu=2.5)
    model = PairwisePreferenceRegressor(
        kernel, inference=engine, value_level=level, optimizer=at_the_start
    )
    model.fit(duels, y, measured=measured)
    theta = np.log([3.0, 1.2, 1.5, 0.3])
    gradient = model.log_marginal_likelihood(theta, eval_gradient=True)[1]
    differences = [
        (model.log_marginal_likelihood(theta + e) - model.log_marginal_likelihood(theta - e)) / 2e-4
        for e in 1e-4 * np.eye(4)
    ]
    assert_allclose(gradient, differences, atol=1e-4)


def test_units_of_values_are_learned():
    measured, duels, y = answers(n_values=12, n_duels=30)
    X, values, deviations = measured
    y = (duels[:, 0, 0] > duels[:, 1, 0]).astype(int)
    y[::6] = 1 - y[::6]
    model = PairwisePreferenceRegressor().fit(duels, y, measured=measured)
    other = PairwisePreferenceRegressor().fit(
        duels, y, measured=(X, 1000.0 * values + 5e4, 1000.0 * deviations)
    )
    assert_allclose(other.predict(X), 1000.0 * model.predict(X), rtol=1e-3, atol=5.0)
    assert_allclose(other.noise_variance_, 1e6 * model.noise_variance_, rtol=0.01)
    assert_allclose(other.value_level_, 5e4 + 1000.0 * model.value_level_, rtol=1e-3)
    assert_allclose(other.predict_proba(duels), model.predict_proba(duels), atol=1e-3)
    expected = model.value_level_ + model.predict(X)
    assert np.abs(expected - values).max() < 2.0


def test_an_answer_left_out_is_predicted_by_a_fit_without_it():
    measured, duels, y = answers()
    model = PairwisePreferenceRegressor(**HELD).fit(duels, y, measured=measured)
    forecast = forecast_without_each(removal_readings(model)[0])
    for k in range(4):
        without = PairwisePreferenceRegressor(**HELD)
        without.fit(np.delete(duels, k, axis=0), np.delete(y, k), measured=measured)
        expected = without.predict_log_proba(duels[[k]])[0, y[k]]
        assert_allclose(loo(model).pointwise[k], expected, atol=1e-4)
        winner_first = duels[[k]] if y[k] else duels[[k], ::-1]
        assert_allclose(forecast.mean[k], without.predict(winner_first)[0], atol=1e-3)


def test_copies_files_and_paths_have_the_values():
    measured, duels, y = answers()
    model = PairwisePreferenceRegressor(**HELD).fit(duels, y, measured=measured)
    copies = [
        pickle.loads(pickle.dumps(model)),
        PairwisePreferenceRegressor.from_arrays(model.to_arrays()),
    ]
    for copy in copies:
        assert_allclose(copy.predict(measured[0]), model.predict(measured[0]))
        assert copy.log_marginal_likelihood() == model.log_marginal_likelihood_value_
        assert copy.comparisons_ == model.comparisons_
        assert copy.value_level_ == model.value_level_
    draws = model.posterior_.sample_paths(3000, 0)(measured[0])
    mean, deviation = model.predict(measured[0], return_std=True)
    draws = draws if draws.shape[0] == len(mean) else draws.T
    assert_allclose(draws.mean(axis=1), mean, atol=0.1)
    assert_allclose(draws.std(axis=1), deviation, rtol=0.1)


def test_names_positions_ids_and_ratings_are_taken():
    names = [["ann", "bob"], ["cid", "dan"]]
    model = PairwisePreferenceRegressor(optimizer=None)
    model.fit(names, measured=(["ann", "cid"], [1.0, 3.0], 0.1))
    ann, bob, cid, dan = model.predict(["ann", "bob", "cid", "dan"])
    assert ann > bob
    assert cid > dan
    assert_allclose(cid - ann, 2.0, atol=0.2)
    assert model.n_item_components_ == 1  # values join what no answer compares
    table = ItemTable(np.random.default_rng(0).normal(size=(4, 2)))
    by_position = PairwisePreferenceRegressor(KERNEL, items=table, optimizer=None)
    by_position.fit([[0, 1]], measured=([2, 3], [1.0, 3.0], 0.1))
    by_row = PairwisePreferenceRegressor(KERNEL, items=table, optimizer=None)
    by_row.fit([[0, 1]], measured=(table.X[[2, 3]], [1.0, 3.0], 0.1))
    assert_allclose(by_position.predict([0, 3]), by_row.predict([0, 3]))
    rated = PairwisePreferenceRegressor(KERNEL, optimizer=None)
    rated.fit(table.X, [1.0, 2.0, 3.0, 4.0], measured=(table.X[:1], [5.0], 0.1))
    assert_allclose(rated.value_level_ + rated.predict(table.X[:1]), 5.0)


def test_metadata_routing_and_cross_validation_pass_values_on():
    measured, duels, y = answers(n_duels=12)
    model = PairwisePreferenceRegressor(**HELD)
    y = np.arange(12) % 2
    scores = cross_val_score(model, duels, y, params={"measured": measured}, cv=3)
    assert scores.shape == (3,)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(Itemwise(StandardScaler(with_mean=False, with_std=False)), model)
        fitted = pipeline.fit(duels, y, measured=measured)
    expected = PairwisePreferenceRegressor(**HELD).fit(duels, y, measured=measured)
    assert_allclose(fitted.predict(duels), expected.predict(duels))


class OwnLogistic(Likelihood):
    """A likelihood that does not add offsets."""

    def log_prob(self, margin, answers):
        proba = 1.0 / (1.0 + np.exp(margin))
        curvature = proba * (1.0 - proba)
        third = curvature * (1.0 - 2.0 * proba)
        return Derivatives(-np.logaddexp(0.0, -margin), proba, curvature, third)


@pytest.mark.parametrize(
    ("parameters", "metadata", "message"),
    [
        ({}, {"judges": [1, 1, 2, 2]}, r"got measured= with judges=.*Leave one of the two out"),
        ({}, {"prompts": [1, 1, 2, 2]}, r"got measured= with prompts="),
        ({}, {"time": [1, 2, 3, 4]}, r"got measured= with time="),
        ({"inference": "svi"}, {}, r"got measured= with SVI; .* exact are allowed. Use"),
        ({"inference": SVI(n_inducing=3)}, {}, r"got measured= with SVI"),
        ({"inference": EP(items="independent")}, {}, r"got measured= with EP.*items='joint'"),
        ({"kernel": RBF() + Intransitive(RBF())}, {}, r"with the kernel .*Leave the term"),
        ({"likelihood": OwnLogistic()}, {}, r"got measured= with OwnLogistic"),
        ({"value_level": np.nan}, {}, r"value_level must lie in .*got nan"),
    ],
)
def test_what_does_not_go_with_values_is_refused_by_name(parameters, metadata, message):
    measured, duels, y = answers()
    model = PairwisePreferenceRegressor(optimizer=None).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(duels, y, measured=measured, **metadata)
    assert not hasattr(model, "posterior_")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, v, d: (X, v), r"got measured= of type tuple; three are allowed"),
        (lambda X, v, d: 3, r"got measured= of type int; .*Give measured=\(X, values"),
        (lambda X, v, d: (X, v, -d), r"got -0.* among the deviations .*above 0 are allowed"),
        (lambda X, v, d: (X, v, 0.0), r"got 0 among the deviations"),
        (lambda X, v, d: (X, 1e300 * v, d), r"got values of measured= .*, up to 1e.100"),
        (
            lambda X, v, d: (X, v, d[:2]),
            r"got deviations of measured= array.*; 5 finite numbers are",
        ),
        (lambda X, v, d: (X, v[:3], d), r"got values of measured= array.*; 5 finite"),
        (lambda X, v, d: (X, v + 1j, d), r"got values of measured= array\(\[.*j.*; 5 finite"),
        (lambda X, v, d: (X, v * np.nan, d), r"got values of measured= array\(\[nan.*; 5 finite"),
        (lambda X, v, d: (X, v, np.inf), r"got deviations of measured= \[inf.*; 5 finite"),
        (lambda X, v, d: (X, list("abcde"), d), r"got values of measured= \['a'.*; 5 finite"),
        (
            lambda X, v, d: (X[:, :1], v, d),
            r"items of measured= that are no items of X: .*1 features, .*expecting 2",
        ),
        (lambda X, v, d: (X * np.nan, v, d), r"items of measured= that are no items of X: .*NaN"),
        (lambda X, v, d: (np.stack([X, X], 1), v, d), r"answers about 2 items each; values are of"),
        (
            lambda X, v, d: (X[:0], v[:0], d[:0]),
            r"items of measured= that are no items of X: .*0 sample",
        ),
    ],
)
def test_values_that_are_none_are_refused(change, message):
    measured, duels, y = answers()
    with pytest.raises((TypeError, ValueError), match=message):
        PairwisePreferenceRegressor(**HELD).fit(duels, y, measured=change(*measured))


def test_names_that_no_answer_has_are_refused():
    with pytest.raises(ValueError, match=r"names that no answer has; .*Name all items by items="):
        PairwisePreferenceRegressor().fit([["a", "b"]], measured=(["a", "zoe"], [1.0, 2.0], 0.1))


def test_answers_without_weight_need_values():
    _, duels, y = answers()
    with pytest.raises(ValueError, match="sample_weight is zero for every duel"):
        PairwisePreferenceRegressor(**HELD).fit(duels, y, sample_weight=np.zeros(4))


def test_boards_average_over_hyperparameters_beside_values():
    rng = np.random.default_rng(0)
    strength = np.arange(6.0)
    pairs = np.array([rng.choice(6, 2, replace=False) for _ in range(40)])
    seen = strength[pairs] + 0.7 * rng.normal(size=(40, 2))
    pairs = np.take_along_axis(pairs, np.argsort(-seen, axis=1), axis=1)
    names = np.array(list("abcdef"))
    model = PairwisePreferenceRegressor()
    model.fit(names[pairs], measured=(["a", "c", "f"], [10.0, 30.0, 60.0], 3.0))
    board = leaderboard(model)
    assert board.names[0] == "f"
    assert board.names[-1] == "a"
    values = model.value_level_ + model.predict(names)
    assert_allclose(values[[0, 2, 5]], [10.0, 30.0, 60.0], atol=6.0)  # two deviations
    assert np.corrcoef(values, strength)[0, 1] > 0.9
