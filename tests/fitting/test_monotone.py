"""Monotone utilities: beside importance sampling, and what is placed, reported and refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from skpref import PairwisePreferenceRegressor
from skpref.data import Comparisons, check_training
from skpref.fitting import Model, Monotone, check_settings, fit_posterior, make_model
from skpref.inference import EP, HMC
from skpref.inspection import loo
from skpref.kernels import Identity, Intransitive, ItemEffect, features_part
from skpref.likelihoods import Probit

# Noise of an answer over that of a virtual duel, as the parameter's documentation has it.
STEEPNESS = 10.0


def small_problem(seed):
    """Answers and virtual duels about a few items, and duels to be predicted."""
    rng = np.random.default_rng(seed)
    d, n, m = rng.integers(1, 3), rng.integers(3, 7), rng.integers(1, 5)
    X = rng.random((n, 2, d))
    y = rng.random(n) < ndtr(3.0 * (X[:, 0] - X[:, 1]) @ rng.standard_normal(d))
    better = rng.random((m, d))
    worse = better.copy()
    worse[:, 0] -= rng.uniform(0.1, 0.6, m)
    comparisons = Comparisons.from_duels(
        np.concatenate([X[:, 0], X[:, 1]]), np.arange(n), n + np.arange(n), y
    )
    monotone = Monotone((0,), np.array([0]), np.ones(1), X[:, 0], better, worse)
    likelihood = Probit(float(rng.uniform(0.02, 0.5)))
    model = Model(RBF(float(rng.uniform(0.3, 1.0))), likelihood, EP(), monotone=monotone)
    return comparisons, model, rng.random((5, 2, d))


def by_orthants(comparisons, model, duels):
    """Log evidence of answers given virtual duels, and probabilities of duels.

    All noisy margins are positive: Genz's separation of variables, an importance sampler.
    """
    rows, virtual = comparisons.rows, model.monotone
    ends = [comparisons.items[rows.first], virtual.better]
    starts = [comparisons.items[rows.second], virtual.worse]
    noise = 2.0 * model.likelihood.noise_variance
    variance = np.repeat([noise, noise / STEEPNESS**2], [len(rows), len(virtual.better)])

    def log_chance(first, second, variance):
        differences = model.kernel(first) - model.kernel(first, second)
        covariance = differences + model.kernel(second) - model.kernel(second, first)
        covariance += np.diag(variance)
        return multivariate_normal.logcdf(
            np.zeros(len(first)), cov=covariance, maxpts=100_000, abseps=1e-8, releps=1e-3, rng=0
        )

    both = log_chance(np.concatenate(ends), np.concatenate(starts), variance)
    chances = [
        log_chance(np.concatenate([*ends, a]), np.concatenate([*starts, b]), [*variance, noise])
        for a, b in duels[:, :, None]
    ]
    return both - log_chance(ends[1], starts[1], variance[len(rows) :]), np.exp(chances - both)


def errors_beside_orthants(seed):
    """Errors of the log evidence, of the probability of the answers, and of those of duels."""
    comparisons, model, duels = small_problem(seed)
    fitted = fit_posterior(comparisons, model)
    assert_array_equal(fitted.model.monotone.better, model.monotone.better)
    log_evidence, chances = by_orthants(comparisons, model, duels)
    predicted = fitted.posterior.win_probability(duels[:, 0], duels[:, 1])
    of_answers = np.exp(fitted.log_evidence) - np.exp(log_evidence)
    return fitted.log_evidence - log_evidence, of_answers, predicted - chances


@pytest.mark.parametrize("seed", range(3))
def test_evidence_and_probabilities_are_those_of_importance_sampling(seed):
    log_evidence, _, chances = errors_beside_orthants(seed)
    assert abs(log_evidence) < 0.01
    assert np.abs(chances).max() < 0.01


@pytest.mark.slow
def test_probabilities_are_within_a_hundredth_on_many_problems():
    _, of_answers, chances = zip(*map(errors_beside_orthants, range(60)), strict=True)
    assert np.abs(of_answers).max() < 0.01
    # What expectation propagation errs by, and not the virtual duels: two of 300.
    assert np.mean(np.abs(chances) < 0.01) > 0.99


def test_draws_agree_with_expectation_propagation():
    comparisons, model, duels = small_problem(5)
    sampling = Model(
        model.kernel, model.likelihood, HMC(draws=2000, chains=2), monotone=model.monotone
    )
    drawn = fit_posterior(comparisons, sampling, rng=np.random.default_rng(0)).posterior
    expected = fit_posterior(comparisons, model).posterior
    assert_allclose(
        drawn.win_probability(*duels.swapaxes(0, 1)),
        expected.win_probability(*duels.swapaxes(0, 1)),
        atol=0.03,
    )


# -- a true direction, and a false one -----------------------------------------------------


def answers(n=40, seed=0):
    """Duels of items of three features; the utility rises with the first, falls with the last."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2, 3))
    value = 2.0 * X[..., 0] + np.sin(4.0 * X[..., 1]) - 1.5 * X[..., 2] ** 2
    return X, np.subtract(*value.T) + 0.3 * rng.standard_normal(n) > 0.0


TRUE = {0: 1, 2: -1}


@pytest.fixture(scope="module")
def fits():
    X, y = answers()
    options = {"none": None, "true": TRUE, "false": {0: -1, 2: 1}}
    return {
        name: PairwisePreferenceRegressor(monotone=each, optimizer=None, noise_variance=0.02).fit(
            X, y
        )
        for name, each in options.items()
    }


def test_evidence_says_whether_it_is_so(fits):
    evidence = {name: each.log_marginal_likelihood_value_ for name, each in fits.items()}
    assert evidence["false"] + 5.0 < evidence["none"] < evidence["true"] - 0.5


def test_predictions_of_few_answers_are_better_where_it_is_so(fits):
    X, y = answers(2000, seed=1)
    loss = {
        name: -np.mean(each.predict_log_proba(X)[np.arange(len(X)), y.astype(int)])
        for name, each in fits.items()
    }
    assert loss["true"] < loss["none"] - 0.02 < loss["false"]


def test_the_mean_rises_on_a_grid_and_violations_are_reported(fits):
    grid = np.random.default_rng(2).random((200, 1, 3)) * np.ones((1, 5, 1))
    grid[..., 0] = np.linspace(0.05, 0.95, 5)
    steps = {
        name: np.diff(each.predict(grid.reshape(-1, 3)).reshape(200, 5))
        for name, each in fits.items()
    }
    assert np.mean(steps["true"] < 0.0) < 0.01 < np.mean(steps["none"] < 0.0)
    assert fits["true"].monotone_violations_.keys() == TRUE.keys()
    assert max(fits["true"].monotone_violations_.values()) < 0.02
    assert not hasattr(fits["none"], "monotone_violations_")


def test_virtual_duels_differ_in_one_column_in_its_direction_between_the_items(fits):
    placed, items = fits["true"]._model.monotone, fits["true"].comparisons_.items
    step = placed.better - placed.worse
    assert 5 < len(step) <= 100
    assert_array_equal(np.count_nonzero(step, axis=1), 1)
    assert np.all(step[:, 0] >= 0.0)
    assert np.all(step[:, 1] == 0.0)
    assert np.all(step[:, 2] <= 0.0)
    for rows in (placed.better, placed.worse):
        assert np.all((rows >= items.min(axis=0)) & (rows <= items.max(axis=0)))


def test_a_fit_starts_from_the_state_of_another():
    comparisons, model, duels = small_problem(2)
    first = fit_posterior(comparisons, model)
    assert {part.shape[-1] for part in first.state.sites.values()} == {len(comparisons.rows)}
    second = fit_posterior(comparisons, model, first.state)
    assert second.log_evidence == pytest.approx(first.log_evidence, abs=1e-4)
    ends = duels.swapaxes(0, 1)
    assert_allclose(
        second.posterior.win_probability(*ends), first.posterior.win_probability(*ends), atol=1e-4
    )


def test_a_utility_that_falls_is_reported():
    X, y = answers()
    n, rows = len(X), np.concatenate([X[:, 0], X[:, 1]])
    comparisons = Comparisons.from_duels(rows, np.arange(n), n + np.arange(n), y)
    pair = np.array([[[0.5, 0.5, 0.1]], [[0.5, 0.5, 0.2]]])  # one virtual duel, and no more
    monotone = Monotone(("size", "price"), np.array([0, 2]), np.array([-1.0, -1.0]), rows, *pair)
    fitted = fit_posterior(comparisons, Model(RBF(), Probit(0.02), EP(), monotone=monotone))
    shares = monotone.violation_shares(fitted.posterior)
    assert shares["size"] > 0.8
    assert shares["price"] < 0.3


def test_hyperparameters_are_learned_by_the_evidence_given_the_virtual_duels():
    X, y = answers(20)
    model = PairwisePreferenceRegressor(monotone=TRUE).fit(X, y)
    at = np.append(model.kernel_.theta, np.log(model.noise_variance_))
    assert model.log_marginal_likelihood() == pytest.approx(
        model.log_marginal_likelihood_value_, abs=1e-6
    )
    held = PairwisePreferenceRegressor(monotone=TRUE, optimizer=None).fit(X, y)
    assert model.log_marginal_likelihood(at) > held.log_marginal_likelihood_value_ - 3.0
    assert max(model.monotone_violations_.values()) < 0.02


# -- kinds of answer -----------------------------------------------------------------------


def sets(rng):
    S = rng.random((12, 4, 2))
    return S, S[..., 0].argmax(axis=1)


@pytest.mark.parametrize("kind", ["duels", "ties", "grades", "sets", "offset", "order"])
def test_gradients_are_differences_of_the_evidence(kind):
    rng = np.random.default_rng(0)
    X = rng.random((15, 2, 2))
    margin = X[:, 0, 0] - X[:, 1, 0] + 0.2 * rng.standard_normal(15)
    y, options, beside = margin > 0.0, {}, {}
    if kind == "ties":
        y, options = np.where(abs(margin) < 0.2, 0, np.sign(margin)), {"tie_threshold": 0.2}
    if kind == "grades":
        y, options = np.sign(margin) * (1 + (abs(margin) > 0.4)), {"grade_thresholds": (0.4,)}
    if kind == "sets":
        X, y = sets(rng)
    if kind == "offset":
        beside = {"offset": rng.random((15, 2))}
    if kind == "order":
        options = {"order_effect": 0.1, "order_effect_bounds": (-1.0, 1.0)}
    model = PairwisePreferenceRegressor(
        RBF([0.4, 0.6]), noise_variance=0.1, inference=EP(tol=1e-9), monotone={0: 1}, **options
    )
    search = {"optimizer": lambda obj_func, initial_theta, bounds: (initial_theta, 0.0)}
    model.set_params(**search).fit(X, y, **beside)
    assert len(model._model.monotone.better) > 1
    theta = model._model.theta
    _, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert len(gradient) == 3 + (kind in ("ties", "grades", "order"))
    for k, step in enumerate(1e-4 * np.eye(len(theta))):
        ends = [model.log_marginal_likelihood(theta + s * step) for s in (1.0, -1.0)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=2e-4)


def test_ids_beside_features_and_items_of_a_table_are_allowed():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((9, 2)), columns=["price", "size"])
    pairs = np.array([rng.permutation(9)[:2] for _ in range(25)])
    cheaper = table.price.to_numpy()[pairs[:, 0]] < table.price.to_numpy()[pairs[:, 1]]
    options = {"monotone": {"price": -1}, "optimizer": None}
    model = PairwisePreferenceRegressor(items=table, **options).fit(pairs, cheaper)
    assert model.monotone_violations_ == {"price": 0.0}
    kernels = [
        make_model(each, check_settings(each), check_training(each, pairs, cheaper, {}, Probit()))
        for each in (
            PairwisePreferenceRegressor(items=table),
            PairwisePreferenceRegressor(items=table, monotone={"price": -1}),
        )
    ]
    rows = np.array([[0.2, 0.5], [0.8, 0.5], [0.2, 0.9]])  # the same item at another price
    effects = [each.kernel(rows) - features_part(each.kernel, 2)(rows) for each in kernels]
    same = effects[0][0, 0] * np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert_allclose(effects[0], effects[0][0, 0] * np.eye(3), atol=1e-12)
    assert_allclose(effects[1], same, atol=1e-12)
    X = np.concatenate([pairs[..., None], table.to_numpy()[pairs]], axis=2)
    model = PairwisePreferenceRegressor(id_column=0, monotone={1: -1}, optimizer=None).fit(
        X, cheaper
    )
    low, high = ([[0.0, price, 0.5]] for price in (0.1, 0.9))
    assert model.predict(low) > model.predict(high)


# -- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("monotone", "error", "message"),
    [
        ({}, ValueError, r"got monotone=\{\}; a dict with 1 .* at least one column .* or None"),
        ([0], TypeError, r"got monotone=\[0\]; a dict with 1 .* Give one"),
        (np.array([1, 0]), TypeError, r"got monotone=array\(\[1, 0\]\); a dict with 1 .* Give one"),
        (pd.Series([1, 0]), TypeError, r"(?s)got monotone=0    1.*a dict with 1 .* Give one"),
        ({0: 2}, ValueError, r"got monotone=\{0: 2\}, 2 for 0; 1 .* and -1 .* are allowed. Change"),
        ({0: True}, ValueError, r"1 \(more is better\) and -1 \(less is better\) are allowed"),
        ({7: 1}, ValueError, r"whose column 7 is not there; 0, 1, 2 are allowed"),
        ({"price": 1}, ValueError, r"whose column 'price' is not there; 0, 1, 2 are allowed"),
    ],
)
def test_odd_values_are_refused(monotone, error, message):
    X, y = answers(8)
    with pytest.raises(error, match=message):
        PairwisePreferenceRegressor(monotone=monotone).fit(X, y)


def test_constant_columns_and_ids_are_refused():
    X, y = answers(8)
    X[..., 1] = 3.0
    with pytest.raises(ValueError, match=r"whose column 1 is constant; .* leave 1 out"):
        PairwisePreferenceRegressor(monotone={1: 1}).fit(X, y)
    X[..., 0] = [0.0, 1.0]
    with pytest.raises(ValueError, match=r"whose 0 is an id or a category"):
        PairwisePreferenceRegressor(monotone={0: 1}, id_column=0).fit(X, y)
    with pytest.raises(ValueError, match=r"with items without features; items with features"):
        PairwisePreferenceRegressor(monotone={0: 1}).fit([["ann", "bob"], ["bob", "cid"]])


@pytest.mark.parametrize("beside", ["judges", "prompts", "time"])
def test_answers_of_judges_prompts_and_times_are_refused(beside):
    X, y = answers(8)
    with pytest.raises(ValueError, match=f"with {beside}=; .* Leave one of the two out"):
        PairwisePreferenceRegressor(monotone=TRUE).fit(X, y, **{beside: np.arange(8) % 3})


@pytest.mark.parametrize("inference", ["svi", "laplace", HMC(evidence="laplace")])
def test_engines_without_moments_or_exact_priors_are_refused(inference):
    X, y = answers(8)
    with pytest.raises(ValueError, match=r"got monotone= of \[0, 2\] with .* Use inference='ep'"):
        PairwisePreferenceRegressor(monotone=TRUE, inference=inference).fit(X, y)


@pytest.mark.parametrize(
    "kernel",
    [RBF() + WhiteKernel(), RBF() + ItemEffect(), RBF() + Intransitive(RBF()), Identity()],
)
def test_kernels_with_effects_of_single_items_are_refused(kernel):
    X, y = answers(8)
    with pytest.raises(ValueError, match=r"has an effect of its own; .* Leave ItemEffect"):
        PairwisePreferenceRegressor(kernel, monotone=TRUE).fit(X, y)


def test_answers_are_left_out_with_sampled_posteriors_alone(fits):
    with pytest.raises(ValueError, match=r"with monotone=, .* Fit with one of these"):
        loo(fits["true"])


# -- files ---------------------------------------------------------------------------------


def test_a_fit_is_copied_written_and_read(fits):
    model, (X, _) = fits["true"], answers(8)
    assert clone(model).get_params()["monotone"] == TRUE
    again = PairwisePreferenceRegressor.from_arrays(model.to_arrays())
    for each in (again, pickle.loads(pickle.dumps(model))):
        assert_array_equal(each.predict_proba(X), model.predict_proba(X))
        assert each.monotone_violations_ == model.monotone_violations_
        assert each.log_marginal_likelihood() == model.log_marginal_likelihood()


# -- virtual duels among the answers -------------------------------------------------------


def test_virtual_duels_follow_sets_with_offsets_and_change_none_of_them():
    items = np.random.default_rng(0).random((5, 2))
    shown, ranks = [[0, 1, 2], [3, 4, -1]], [[2, 1, 2], [1, 2, 0]]
    offset = np.arange(6.0).reshape(2, 3)
    before = Comparisons.from_ranks(items, shown, ranks, offset=offset)
    after = before.with_duels(np.array([[2.0, 0.5], items[3]]), np.array([items[0], [3.0, 0.1]]))
    rows, first = after.rows, slice(len(before.rows))
    for name in ("first", "second", "kind", "lead", "counts", "offset"):
        assert_array_equal(getattr(rows, name)[first], getattr(before.rows, name))
    assert_array_equal(after.items[rows.first[3:]], [[2.0, 0.5], items[3]])
    assert_array_equal(after.items[rows.second[3:]], [items[0], [3.0, 0.1]])
    assert_array_equal(rows.judge, [0, 0, 0, 1, 1])
    assert_array_equal(rows.lead[3:], 0)
    assert_array_equal(rows.offset[3:], 0.0)
    assert len(after.items) == 7


def test_virtual_duels_are_of_utilities_where_values_were_measured():
    X, values = (
        np.array([[[0.6], [0.3]], [[1.0], [0.0]], [[0.3], [1.0]]]),
        ([[0.3], [1.0]], [5.6, 5.0]),
    )
    model = PairwisePreferenceRegressor(
        RBF(0.7), noise_variance=0.1, optimizer=None, monotone={0: 1}
    )
    model.fit(X, [1, 1, 1], measured=(*values, 0.3))
    # The prior of four items, given that they rise, drawn by importance sampling; of two values
    # at an unknown level their difference counts.
    rng, x = np.random.default_rng(0), np.array([[0.0], [0.3], [0.6], [1.0]])
    draws = np.linalg.cholesky(RBF(0.7)(x) + 1e-10 * np.eye(4)) @ rng.standard_normal((4, 400_000))
    rises = np.all(np.diff(draws, axis=0) > 0.0, axis=0)
    won = [(2, 1), (3, 0), (1, 3)]
    weight = rises * np.prod([ndtr((draws[i] - draws[j]) / 0.2**0.5) for i, j in won], axis=0)
    weight *= np.exp(-0.25 * ((draws[3] - draws[1] + 0.6) / 0.3) ** 2)
    mean = draws @ weight / weight.sum()
    assert_allclose(np.diff(model.predict(x)), np.diff(mean), atol=0.03)
