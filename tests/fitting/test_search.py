"""The search for hyperparameters: its end against a grid, bounds, monitors, what it warns of."""

import warnings
from unittest import mock

import numpy as np
import pytest
from core_support import random_duels, won
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, ExpSineSquared
from tiers_support import thinned

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.duels import Comparisons, ItemTable, from_pairs
from skpref.fitting import _search, _settings
from skpref.fitting._hyperpriors import LogNormal, lengthscale_priors
from skpref.fitting._model import Model
from skpref.fitting._search import Search, StopSearch, learn
from skpref.inference import EP, Laplace
from skpref.kernels import Identity, OnColumns
from skpref.likelihoods import Probit


def probit(noise_variance=0.1, bounds=(1e-3, 10.0)):
    return Probit(noise_variance, bounds)


def log_evidence(model, comparisons):
    return model.evaluate(comparisons).approximation.sites.log_evidence


@pytest.mark.parametrize("engine", [EP(), Laplace()])
def test_search_ends_at_the_top_of_a_grid(engine):
    comparisons = won(*random_duels(7, 15, 80, noise=0.4))
    prior = LogNormal(np.array([0]), np.zeros(1), np.ones(1))
    model = Model(RBF(1.0), probit(), engine, (prior,))
    found, state = learn(model, comparisons, Search(gtol=1e-3, least_gain=1e-6))
    warm = found.evaluate(comparisons, state).approximation
    assert warm.converged

    def objective(theta):
        return log_evidence(model.at(np.array(theta)), comparisons) + norm.logpdf(theta[0])

    top = objective(found.theta)
    grid = [(a, b) for a in np.linspace(-2, 2, 5) for b in np.linspace(-6, 2, 5)]
    assert top >= max(map(objective, grid)) - 1e-6
    slope = central_gradient(objective, found.theta, 1e-2)
    np.testing.assert_allclose(slope, 0.0, atol=1e-2)


def test_a_descent_does_not_begin_in_a_corner_of_the_bounds():
    comparisons = won(*random_duels(7, 15, 80, noise=0.4))
    model, steps = Model(RBF(1.0), probit(1e-3, (1e-6, 1e6)), EP()), []
    plain = Search(uses_design=False, gtol=1e-3, least_gain=1e-6)
    model_found, _ = learn(model, comparisons, plain, monitor=steps.append)
    assert np.abs(steps[1].theta - model.theta).max() <= 1.0 + 1e-9
    assert len({tuple(step.theta) for step in steps}) == len(steps)  # none is evaluated twice
    with_design, _ = learn(model, comparisons, Search(gtol=1e-3, least_gain=1e-6))
    ends = [log_evidence(each, comparisons) for each in (model_found, with_design)]
    assert ends[0] == pytest.approx(ends[1], abs=2e-3)


def test_search_keeps_to_the_bounds_and_to_what_is_fixed():
    comparisons = won(*random_duels(7, 15, 80, noise=0.4))
    kernel = ConstantKernel(3.0, "fixed") * RBF(1.0, (0.9, 1.1))
    quiet = Search(warn_not_converged=False)
    found, _ = learn(Model(kernel, probit(0.1, (0.05, 0.06)), EP()), comparisons, quiet)
    assert found.kernel.k1.constant_value == 3.0
    assert 0.9 <= found.kernel.k2.length_scale <= 1.1
    # The search sees logarithms: a bound is what these give back.
    assert 0.05 * (1 - 1e-15) <= found.likelihood.noise_variance <= 0.06 * (1 + 1e-15)
    held, _ = learn(Model(RBF(1.0), probit(0.1, "fixed"), EP()), comparisons, quiet)
    assert held.likelihood.noise_variance == 0.1


@pytest.mark.slow
def test_restarts_never_make_it_worse_and_are_reproducible():
    comparisons = won(*random_duels(7, 10, 30, noise=0.4))
    model = Model(RBF([1.0, 1.0], (1e-2, 1e2)), probit(), EP())
    one, _ = learn(model, comparisons, Search(warn_not_converged=False))
    search = Search(n_restarts=2, warn_not_converged=False)
    more, again = (
        learn(model, comparisons, search, rng=np.random.RandomState(0)).model for _ in range(2)
    )
    assert log_evidence(more, comparisons) >= log_evidence(one, comparisons) - 1e-6
    np.testing.assert_array_equal(more.theta, again.theta)
    endless = Model(RBF(1.0, (1e-2, np.inf)), probit(0.1, "fixed"), EP())
    with pytest.raises(ValueError, match="finite bounds"):
        learn(endless, comparisons, Search(n_restarts=1), rng=np.random.RandomState(0))


def test_a_callable_optimizer_is_called_as_in_scikit_learn():
    comparisons = won(*random_duels(7, 10, 30))
    model = Model(RBF(1.0), probit(), EP())

    def optimizer(obj_func, initial_theta, bounds):
        value, gradient = obj_func(initial_theta)
        assert gradient.shape == initial_theta.shape
        assert obj_func(initial_theta, eval_gradient=False) == pytest.approx(value, abs=1e-4)
        assert bounds.shape == (2, 2)
        return initial_theta + 0.25, value

    found, _ = learn(model, comparisons, Search(optimizer))
    np.testing.assert_allclose(found.theta, model.theta + 0.25)


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        3.0,
        "ab",
        (np.zeros(2),),
        (np.zeros(3), 0.0),
        (np.zeros((1, 2)), 0.0),
        (np.array([0.0, np.nan]), 0.0),
        (np.zeros(2), np.inf),
        (["a", "b"], 0.0),
        (np.zeros(2), None),
        (np.zeros(2), 0.0, {}),
    ],
    ids=repr,
)
def test_an_optimizer_that_returns_nonsense_is_named(nonsense):
    comparisons, model = won(*random_duels(7, 10, 30)), Model(RBF(1.0), probit(), EP())
    search = Search(lambda obj_func, initial_theta, bounds: nonsense)
    with pytest.raises(ValueError, match=r"optimizer must return \(theta_opt, func_min\).*\(2,\)"):
        learn(model, comparisons, search)


# -- trial points where there is no evidence -----------------------------------------------------


@pytest.mark.parametrize("seed", [18, 20])
def test_a_kernel_that_is_no_covariance_at_a_trial_point_is_turned_back_from(seed):
    """In two dimensions ExpSineSquared is a covariance at some hyperparameters only."""
    comparisons, steps = won(*random_duels(seed, 15, 30)), []
    model = Model(ExpSineSquared(1.0, 3.0), probit(), EP())
    plain = Search(warn_not_converged=False, uses_design=False)
    found, _ = learn(model, comparisons, plain, monitor=steps.append)
    refused = [step for step in steps if step.log_posterior == -np.inf]
    assert refused and steps[-1] is not refused[0]
    for step in refused:
        values = np.linalg.eigvalsh(model.at(step.theta).kernel(comparisons.items))
        assert values[0] < -1e-4 * values[-1]
    told = max(step.log_posterior for step in steps)
    assert log_evidence(found, comparisons) == pytest.approx(told, abs=2e-3)
    assert told > steps[0].log_posterior + 0.1


def test_a_search_whose_start_has_no_evidence_says_so():
    comparisons = won(*random_duels(0, 30, 100))
    for kernel in (ExpSineSquared(1.0, 0.5), ExpSineSquared(3.0, 0.2)):
        values = np.linalg.eigvalsh(kernel(comparisons.items))
        assert values.min() < -0.1
        with pytest.raises(ValueError, match=r"ExpSineSquared.* far from positive semi-definite: "):
            learn(Model(kernel, probit(), EP()), comparisons, Search())


# -- what monitors are told ------------------------------------------------------------------------


def test_a_monitor_is_told_of_every_evaluation():
    comparisons, steps = won(*random_duels(7, 10, 30)), []
    model = Model(RBF(1.0), probit(), EP())

    def optimizer(obj_func, initial_theta, bounds):
        for shift in (0.0, 0.3, -0.2):
            obj_func(initial_theta + shift)
        return initial_theta, obj_func(initial_theta, eval_gradient=False)

    prior = LogNormal(np.array([0]), np.ones(1), np.ones(1))
    model = Model(RBF(1.0), probit(), EP(), (prior,))
    learn(model, comparisons, Search(optimizer, warn_not_converged=False), monitor=steps.append)
    assert [step.number for step in steps] == [1, 2, 3, 4]
    for step, shift in zip(steps, (0.0, 0.3, -0.2, 0.0), strict=True):
        assert_allclose(step.theta, model.theta + shift)
        there = model.at(step.theta)
        log_prior = -0.5 * (step.theta[0] - 1.0) ** 2
        expected = log_evidence(there, comparisons) + log_prior
        assert step.log_posterior == pytest.approx(expected, abs=1e-4)
        assert step.seconds > 0.0


@pytest.mark.parametrize("last", [1, 4])
def test_a_monitor_stops_the_search_at_the_best_so_far(last):
    comparisons, steps = won(*random_duels(7, 15, 80, noise=0.4)), []

    def stop(step):
        steps.append(step)
        if step.number == last:
            raise StopSearch

    model = Model(RBF(5.0), probit(1.0), EP())
    found, _ = learn(model, comparisons, Search(), monitor=stop)
    assert len(steps) == last
    best = max(steps, key=lambda step: step.log_posterior)
    np.testing.assert_allclose(found.theta, best.theta, rtol=1e-15)


def test_a_callable_optimizer_may_write_into_its_gradients():
    """As in ``gradient *= rate``: the next evaluation there returns the right one all the same."""
    seen = []

    def optimizer(obj_func, initial_theta, bounds):
        for _ in range(3):
            value, gradient = obj_func(initial_theta)
            seen.append(gradient.copy())
            gradient *= 0.0
        return initial_theta, value

    comparisons = won(*random_duels(7, 15, 80, noise=0.4))
    learn(Model(RBF(5.0), probit(1.0), EP()), comparisons, Search(optimizer))
    assert np.abs(seen[0]).max() > 0.1
    np.testing.assert_allclose(seen, [seen[0]] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_restarts_that_run_here_are_told_of_too(n_jobs):
    comparisons, steps = won(*random_duels(7, 10, 30, noise=0.4)), []
    model = Model(RBF(1.0, (1e-2, 1e2)), probit(), EP())
    search = Search(n_restarts=2, n_jobs=n_jobs, warn_not_converged=False)
    learn(model, comparisons, search, rng=np.random.RandomState(0), monitor=steps.append)
    assert bool(steps) == (n_jobs is None)
    assert all(step.number == k for k, step in enumerate(steps, start=1))


# -- bounds ----------------------------------------------------------------------------------------


def searched(kernel, noise_bounds=(1e-3, 10.0)):
    comparisons = won(*random_duels(7, 15, 80, noise=0.4))
    return learn(Model(kernel, probit(0.1, noise_bounds), EP()), comparisons, Search()).model


@pytest.mark.parametrize(
    ("kernel", "noise_bounds", "what"),
    [
        (RBF(0.1, (0.05, 0.2)), (1e-3, 10.0), "kernel length_scale at its upper bound 0.2"),
        (RBF(30.0, (20.0, 40.0)), "fixed", "kernel length_scale at its lower bound 20"),
        (
            RBF([0.1, 1.0], [(0.05, 0.2), (0.01, 100.0)]),
            (1e-3, 10.0),
            r"kernel length_scale\[0\] at its upper bound 0.2",
        ),
        (RBF(1.0, "fixed"), (2.0, 3.0), "noise_variance at its lower bound 2"),
        (
            ConstantKernel(2.0, "fixed") * RBF(30.0, (20.0, 40.0)),
            (2.0, 3.0),
            "kernel length_scale at its lower bound 20, noise_variance at its lower bound 2",
        ),
    ],
    ids=str,
)
def test_a_bound_that_holds_a_hyperparameter_back_is_told(kernel, noise_bounds, what):
    remedy = r".*Widen these bounds.*\('fixed' as its bounds\), or rescale the features"
    with pytest.warns(ConvergenceWarning, match=f"ended with {what}: values beyond{remedy}"):
        searched(kernel, noise_bounds)


def test_a_bound_that_holds_nothing_back_is_not_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Along the second feature nothing changes: its lengthscale has no say.
        items, winner, loser = random_duels(7, 15, 80, noise=0.4)
        flat = won(items * [1.0, 0.0], winner, loser)
        kernel = RBF([1.0, 3.0], [(1e-2, 1e2), (1.0, 3.0)])
        learn(Model(kernel, probit(0.1, (1e-3, 10.0)), EP()), flat, Search())
        # Where the bounds meet there was no search.
        found = searched(RBF(1.0, (1.0, 1.0)), (0.5, 0.5))
        assert found.likelihood.noise_variance == pytest.approx(0.5)
        # The maximum itself lies inside.
        free = searched(RBF(1.0, (1e-3, 1e3)))
        assert 0.1 < free.kernel.length_scale < 10.0


def test_the_slope_at_a_bound_decides():
    """Where the maximum lies a little beyond, next to nothing is lost."""
    free = searched(RBF(1.0, (1e-3, 1e3)), "fixed")
    best = free.kernel.length_scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = searched(RBF(0.5 * best, (0.1 * best, 0.98 * best)), "fixed")
    assert found.kernel.length_scale == pytest.approx(0.98 * best)
    with pytest.warns(ConvergenceWarning, match="length_scale at its upper bound"):
        searched(RBF(0.3 * best, (0.1 * best, 0.5 * best)), "fixed")


def test_the_users_line_is_named():
    items, winner, loser = random_duels(7, 15, 80, noise=0.4)
    X, y = from_pairs(items, np.stack([winner, loser], axis=1))
    with pytest.warns(ConvergenceWarning, match="ended with kernel length_scale") as caught:
        PairwisePreferenceRegressor(RBF(0.1, (0.05, 0.2))).fit(X, y)
    assert [each.filename for each in caught] == [__file__]


def test_a_search_that_does_not_end_says_so():
    comparisons = won(*random_duels(7, 15, 80, noise=0.4))
    model = Model(RBF([1.0, 1.0]), probit(), EP())
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 iterations\. Scale the features"):
        learn(model, comparisons, Search(max_iter=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(model, comparisons, Search(max_iter=1, warn_not_converged=False))


# -- far starts ------------------------------------------------------------------------------------


def many_verdicts(n, n_items=30, ties=True):
    """Verdicts with an order effect and much noise, as pairs of names and outcomes."""
    rng = np.random.default_rng(5)
    utility = 0.5 * rng.normal(size=n_items)
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    margin = utility[first] - utility[second] + 0.3 + rng.normal(size=n)
    y = np.where(np.abs(margin) < 0.5 * ties, 0, np.sign(margin)).astype(int)
    return np.column_stack([first, second]), y, utility


@pytest.mark.parametrize("ties", [False, True])
def test_far_starts_end_together(ties):
    """Noise, threshold and order effect move together along a ridge of the evidence."""
    X, y, utility = many_verdicts(10_000, ties=ties)
    found = []
    for noise, threshold, effect in (
        (1e-3, 0.3, 0.3),
        (8.0, 0.02, -1.0),
    ):
        model = PairwisePreferenceRegressor(
            items=ItemTable.from_names([f"item {k}" for k in range(30)]),
            noise_variance=noise,
            tie_threshold=threshold if ties else None,
            order_effect=effect,
            order_effect_bounds=(-3.0, 3.0),
        ).fit(X, y)
        found.append(model.log_marginal_likelihood_value_)
    assert max(found) - min(found) < 0.1
    # A margin's noise as the judge has it, beside utilities known.
    deviation = np.sqrt(2.0 * model.noise_variance_)
    known = np.std(model.predict(np.arange(30)) / deviation) / np.std(utility)
    assert known == pytest.approx(1.0, abs=0.1)
    assert model.order_effect_ / deviation == pytest.approx(0.3, abs=0.05)
    if ties:
        assert model.tie_threshold_ / deviation == pytest.approx(0.5, abs=0.05)


def test_an_upper_bound_of_the_threshold_does_not_end_the_search():
    """Where the threshold stays at its bound, noise and order effect go on without it."""
    X, y, _ = many_verdicts(5000)
    found = []
    for noise, threshold in ((1e-2, 0.01), (1.0, 0.3)):
        model = PairwisePreferenceRegressor(
            items=ItemTable.from_names([f"item {k}" for k in range(30)]),
            noise_variance=noise,
            tie_threshold=threshold,
            tie_threshold_bounds=(1e-3, 0.3),
            order_effect_bounds=(-3.0, 3.0),
        )
        with pytest.warns(ConvergenceWarning, match="tie_threshold at its upper bound 0.3"):
            model.fit(X, y)
        found.append(model.log_marginal_likelihood_value_)
        assert model.tie_threshold_ == pytest.approx(0.3)
    assert max(found) - min(found) < 0.1


def test_one_lucky_newcomer_is_not_the_best():
    """Three wins of three against the weak are little beside hundreds of answers."""
    X, y, _ = many_verdicts(8000, n_items=20)
    table = np.bincount(X.ravel(), minlength=20)
    assert table.min() > 500
    wins = np.zeros(20)
    np.add.at(wins, X[:, 0], y == 1)
    np.add.at(wins, X[:, 1], y == -1)
    middling = np.argsort(wins)[8:11]
    X = np.vstack([X, np.column_stack([np.full(3, 20), middling])])
    y = np.append(y, [1, 1, 1])
    items = ItemTable.from_names([f"item {k}" for k in range(21)])
    model = PairwisePreferenceRegressor(items=items, tie_threshold=0.1).fit(X, y)
    utility = model.predict(np.arange(21))
    assert np.sum(utility > utility[20]) >= 2


@pytest.mark.parametrize("n", [100, 300])
def test_a_control_whose_variance_fell_to_its_bound_comes_back(n):
    """From a small noise a first step led there, and the slope of its logarithm was next to none.

    The evidence in the end was smaller by 3 and 6 nats than from a noise of one.
    """
    rng = np.random.default_rng(0)
    strength = np.array([0.6, 0.3, -0.2, -0.7])
    ids = np.array([rng.permutation(4)[:2] for _ in range(n)])
    length = 1.5 * strength[ids] + 0.8 * rng.normal(size=(n, 2))
    utility = strength[ids] + 0.5 * length + rng.normal(size=(n, 2))
    length /= np.sqrt(np.mean((length[:, 0] - length[:, 1]) ** 2))
    X, y = np.stack([ids, length], axis=2), utility[:, 0] > utility[:, 1]
    slope = ConstantKernel(1.0, (1e-4, 1e4)) * OnColumns(DotProduct(0.0, "fixed"), [1])
    found = [
        PairwisePreferenceRegressor(
            OnColumns(Identity(), [0]) + slope, noise_variance=noise, id_column=0
        ).fit(X, y)
        for noise in (0.01, 1.0)
    ]
    evidence = [each.log_marginal_likelihood_value_ for each in found]
    assert_allclose(evidence[0], evidence[1], atol=0.02)
    assert found[0].kernel_.theta[0] > np.log(0.1)


def test_gradients_of_many_answers_keep_the_unit_of_the_utility_free():
    """All variances and the noise times one number change nothing: their slopes sum to zero.

    Runs from the states of hyperparameters near ended early, and the sum was 0.4 nats.
    """
    rng, n = np.random.default_rng(0), 40_000
    items = np.column_stack([rng.integers(20, size=2 * n), rng.normal(size=2 * n)])
    utility = items @ [0.15, 0.5] + rng.normal(size=2 * n)
    first, second = np.arange(n), np.arange(n, 2 * n)
    comparisons = Comparisons.from_duels(items, first, second, utility[first] > utility[second])
    slope = ConstantKernel(0.3) * OnColumns(DotProduct(0.0, "fixed"), [1])
    kernel = ConstantKernel(1.0) * OnColumns(Identity(), [0]) + slope
    model = Model(kernel, probit(1.0), EP())
    objective = _search.Objective(model, comparisons)
    steps = 0.15 * np.random.default_rng(1).normal(size=(4, 3))
    found = [objective(model.theta + step)[1].sum() for step in steps]
    assert_allclose(found, 0.0, atol=0.1)


def test_a_search_that_leaves_much_says_so():
    """A search of one step that is far from the optimum."""
    comparisons = won(*random_duels(7, 15, 80, noise=0.4))
    model = Model(RBF([10.0, 0.1]), probit(10.0, (1e-6, 1e2)), EP())
    search = Search(uses_design=False, least_gain=1e9, max_descents=1)
    with pytest.warns(ConvergenceWarning, match=r"while the log evidence still grew by .* nats"):
        learn(model, comparisons, search)


@pytest.mark.slow
def test_what_an_engine_that_went_astray_says_is_not_believed():
    """With walls of ties and hardly any noise EP may not converge: its evidence is no evidence."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 2, 3))
    margin = (X[:, 0] - X[:, 1]) @ [3.0, -2.0, 0.0] + 0.3 * rng.normal(size=120)
    y = np.where(np.abs(margin) < 0.5, 0, np.sign(margin)).astype(int)
    model = PairwisePreferenceRegressor(
        tie_threshold=10.0,
        noise_variance=1e-4,
        noise_variance_bounds=(1e-6, 1e3),
        order_effect=1.0,
        order_effect_bounds=(-20.0, 20.0),
    ).fit(X, y)
    assert model.log_marginal_likelihood_value_ > -70.0  # -330 where it was believed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "threshold", "effect"), [(1e-4, 1e-3, 1.0), (1e-4, 0.1, 0.0), (0.01, 0.1, 1.0)]
)
def test_a_worse_top_of_the_evidence_is_left(noise, threshold, effect):
    """Short lengthscales took the place of the noise (20 nats), or noise that of the utility (72).

    Far from there, with much noise and a lengthscale of one, there is one top only.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 2, 3))
    margin = (X[:, 0] - X[:, 1]) @ [3.0, -2.0, 0.0] + 0.3 * rng.normal(size=120)
    y = np.where(np.abs(margin) < 0.5, 0, np.sign(margin)).astype(int)
    found = [
        PairwisePreferenceRegressor(
            tie_threshold=delta,
            noise_variance=variance,
            noise_variance_bounds=(1e-6, 1e3),
            order_effect=order,
            order_effect_bounds=(-20.0, 20.0),
        ).fit(X, y)
        for variance, delta, order in ((noise, threshold, effect), (1.0, 0.1, 0.0))
    ]
    evidence = [each.log_marginal_likelihood_value_ for each in found]
    assert evidence[0] > evidence[1] - 0.1


@pytest.mark.slow
@pytest.mark.parametrize("n", [150, 300])
def test_short_lengthscales_do_not_take_the_place_of_noise(n):
    """Of items that each meet once a white utility says what noise says, but for all it knows."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 2, 2))
    utility = np.sin(6.0 * X[:, :, 0]) + X[:, :, 1]
    margin = utility @ [1.0, -1.0] + 0.4 + rng.normal(size=n)
    y = np.where(np.abs(margin) < 0.5, 0, np.sign(margin)).astype(int)
    found = [
        PairwisePreferenceRegressor(
            RBF([lengthscale, lengthscale]),
            noise_variance=noise,
            tie_threshold=0.1,
            order_effect_bounds=(-5.0, 5.0),
        ).fit(X, y)
        for lengthscale, noise in ((0.03, 1e-4), (0.5, 1.0))
    ]
    evidence = [each.log_marginal_likelihood_value_ for each in found]
    assert abs(evidence[0] - evidence[1]) < 0.1  # 25 and 57 nats


def end_of_tastes(items, X, y, users, start):
    """The best log posterior of a fit whose default kernel begins elsewhere."""
    values, search, kernel = [], _search._search_from, _settings.default_kernel

    def told(*arguments):
        found = search(*arguments)
        values.append(-found.best.value)
        return found

    def moved(*arguments):
        made = kernel(*arguments)
        theta = made.theta.copy()
        theta[: len(start)] = np.log(start)
        return made.clone_with_theta(theta)

    model = CollaborativePreferenceRegressor(items=items, id_column=items.shape[1] - 1, method="su")
    with (
        mock.patch.object(_search, "_search_from", told),
        mock.patch.object(_settings, "default_kernel", moved),
    ):
        model.fit(X, y, users=users)
    return max(values)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [9, 3, 4])
def test_linear_and_smooth_parts_take_each_others_place(seed):
    """A category coded as a number, whose values have effects of their own, beside a plain slope.

    There are two tops: with the linear part, and with a smooth part of long lengthscales alone.
    Searches ended at the worse one, by 2 to 4 nats.
    """
    rng, n_users = np.random.default_rng(seed), 15
    table = np.column_stack([rng.integers(8, size=20), np.zeros(20)])
    table[:, 1] = rng.normal(size=20)
    slopes, effects = rng.normal(size=n_users), 0.35 * rng.normal(size=(n_users, 8))
    utility = slopes[:, None] * table[:, 1] / np.sqrt(2.0) + effects[:, table[:, 0].astype(int)]
    users = np.repeat(np.arange(n_users), 24)
    X = np.array([rng.permutation(20)[:2] for _ in users])
    margin = np.take_along_axis(utility[users], X, axis=1) @ [1.0, -1.0]
    y = margin + 0.2 * rng.normal(size=len(users)) > 0.0
    items = np.column_stack([table, np.arange(20)])
    smooth = [0.005, 1e-4, 0.4, 30.0, 5.0]
    ends = [end_of_tastes(items, X, y, users, start) for start in ([], smooth)]
    assert ends[0] > ends[1] - 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 4])
def test_names_give_way_to_a_smooth_part(seed):
    """Tastes for categories, coded as numbers: the search ended where names say all, 40 nats below.

    One did so from where it begins, the other from there.
    """
    rng, n_users, n = np.random.default_rng(seed), 15, 24
    table = rng.normal(size=(n, 4))
    table[:, 0] = rng.integers(6, size=n)
    alike = (table[:, None, 0] == table[:, 0]) + 1e-2 * np.eye(n)
    utility = rng.normal(size=(n_users, n)) @ np.linalg.cholesky(alike).T
    users = np.repeat(np.arange(n_users), 24)
    X = np.array([rng.permutation(n)[:2] for _ in users])
    y = np.take_along_axis(utility[users], X, axis=1) @ [1.0, -1.0] > 0.0
    items = np.column_stack([table, np.arange(n)])
    starts = [], [1.0, 1e-5, 1e-5], [0.01, 1e-5, 0.4, 0.3]
    ends = [end_of_tastes(items, X, y, users, start) for start in starts]
    assert max(ends) - min(ends) < 0.1


def wavy_duels(seed, n_items, n_features, waves, n, beside_ids=False):
    """Duels of items whose utility waves along the first feature, and how to fit them."""
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(n_items, n_features))
    pairs = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n)])
    if n_items == 2 * n:
        pairs = rng.permutation(n_items).reshape(n, 2)  # nobody meets again
    margin = np.sin(waves * items[pairs, 0]) @ [1.0, -1.0] + 0.5 * rng.normal(size=n)
    fresh = rng.normal(size=(500, 2, n_features))
    wins = np.sin(waves * fresh[:, :, 0]) @ [1.0, -1.0] > 0.0
    X, options = items[pairs], {}
    if beside_ids:
        X, options = np.concatenate([pairs[:, :, None], X], axis=2), {"id_column": 0}
        names = 1000.0 + np.arange(1000.0).reshape(500, 2, 1)
        fresh = np.concatenate([names, fresh], axis=2)
    return X, margin > 0.0, options, fresh, wins


@pytest.mark.parametrize(
    ("n_items", "n_features", "waves", "beside_ids"),
    thinned(
        [
            (80, 2, 5.0, False),
            (80, 2, 5.0, True),
            (800, 1, 8.0, False),
            (80, 4, 4.0, False),
            (80, 2, 11.0, False),
        ],
        4,
    ),
)
def test_a_wavy_utility_is_found(n_items, n_features, waves, beside_ids):
    """Item effects or, where items meet once, the noise said all, 35 to 120 nats below.

    Duels between new items were then called right by chance alone.
    """
    X, y, options, fresh, wins = wavy_duels(4, n_items, n_features, waves, 400, beside_ids)
    model = PairwisePreferenceRegressor(**options).fit(X, y)
    lengths = [k for k, name in enumerate(model._model.names) if "length_scale" in name]
    assert np.exp(model._model.theta[lengths[0]]) < 4.0 / waves
    assert model.score(fresh, wins) > 0.8

    def value(theta):
        at = model._model.at(theta)
        return log_evidence(at, model.comparisons_) + at.log_prior(theta)[0]

    best = value(model._model.theta)
    rng = np.random.default_rng(0)
    for _ in range(3):
        begin = model._model.theta + rng.uniform(-1.0, 1.0, len(model._model.theta))
        begin = np.clip(begin, *model._model.bounds.T)
        again, _ = learn(model._model.at(begin), model.comparisons_, Search(uses_design=False))
        assert value(again.theta) < best + 0.1


@pytest.mark.parametrize("beside_ids", thinned([False, True]))
def test_constant_features_change_nothing(beside_ids):
    """Twenty of them made the lengthscales that a search begins with three times as long."""
    X, y, options, fresh, _ = wavy_duels(3, 60, 2, 2.5, 400, beside_ids)

    def probabilities(n):
        wide = [
            np.concatenate([each, np.full((*each.shape[:2], n), 7.0)], 2) for each in (X, fresh)
        ]
        return PairwisePreferenceRegressor(**options).fit(wide[0], y).predict_proba(wide[1])[:, 1]

    assert_allclose(probabilities(20), probabilities(0), atol=0.01)


@pytest.mark.parametrize("ties", thinned([False, True]))
def test_the_unit_of_utilities_changes_nothing_where_answers_are_few(ties):
    """An order effect in units a thousand times as small ended 1 to 4 nats below."""
    rng, n = np.random.default_rng(5), 200
    items = rng.normal(size=(30, 2))
    pairs = np.array([rng.choice(30, 2, replace=False) for _ in range(n)])
    utility = items[:, 0] + np.sin(2.0 * items[:, 1])
    margin = utility[pairs] @ [1.0, -1.0] + 0.3 + 0.5 * rng.normal(size=n)
    y = np.where(np.abs(margin) < 0.3, 0, np.sign(margin)).astype(int) if ties else margin > 0.0

    def evidence(unit):
        options = {
            "kernel": ConstantKernel(unit**2, (1e-4 * unit**2, 1e4 * unit**2)) * RBF([1.0, 1.0]),
            "noise_variance": 0.01 * unit**2,
            "noise_variance_bounds": (1e-4 * unit**2, 10.0 * unit**2),
            "order_effect_bounds": (-2.0 * unit, 2.0 * unit),
        }
        if ties:
            bounds = (1e-4 * unit, 10.0 * unit)
            options |= {"tie_threshold": 0.1 * unit, "tie_threshold_bounds": bounds}
        model = PairwisePreferenceRegressor(**options).fit(items[pairs], y)
        return model.log_marginal_likelihood_value_

    assert_allclose([evidence(1e-3), evidence(30.0)], evidence(1.0), atol=1e-3)


@pytest.mark.parametrize("beside_ids", [False, True])
def test_every_start_of_the_design_has_one_term_and_noise_of_a_tenth(beside_ids):
    """By prior draws: variances of the terms over the items are 99 to 1, or the bound between."""
    X, y, options, *_ = wavy_duels(4, 30, 2, 5.0, 60, beside_ids)
    model = PairwisePreferenceRegressor(**options).fit(X, y)
    made = model._model.at(np.clip(np.zeros(len(model._model.theta)), *model._model.bounds.T))
    items, n_terms = model.comparisons_.items, 3 if beside_ids else 2
    starts = _search.starting_points(made, items, Search())
    assert len(starts) == 2 * n_terms
    for theta in starts:
        at = made.at(theta)
        ratio = at.likelihood.noise_variance / np.mean(at.kernel.diag(items))
        assert ratio == pytest.approx(0.1)
    largest = np.array([at[made.powers[: len(made.kernel.theta)].nonzero()] for at in starts])
    assert len(np.unique(largest.round(6), axis=0)) == n_terms


@pytest.mark.parametrize("beside_ids", thinned([False, True]))
def test_permuted_and_rescaled_features_end_alike(beside_ids):
    X, y, options, *_ = wavy_duels(7, 40, 3, 3.0, 200, beside_ids)
    first = int(beside_ids)
    turned = X.copy()
    turned[:, :, first:] = X[:, :, [first + 2, first, first + 1]] * [1000.0, 1e-3, 7.0]
    ends = [
        PairwisePreferenceRegressor(**options).fit(each, y).log_marginal_likelihood_value_
        for each in (X, turned)
    ]
    assert ends[0] == pytest.approx(ends[1], abs=0.05)


def test_starts_are_compared_on_whole_groups_of_repeated_items():
    rng = np.random.default_rng(0)
    names = np.array([rng.permutation(100)[:2] for _ in range(2000)]).astype(float)
    items = np.column_stack([names.ravel(), rng.normal(size=4000)])  # a column of each row's own
    first = np.arange(0, 4000, 2)
    comparisons = Comparisons.from_duels(items, first, first + 1, np.ones(2000, dtype=bool))
    kernel = OnColumns(Identity(), [0]) + OnColumns(RBF(), [1])
    part = _search._design_part(comparisons, kernel, 200)
    assert len(part.positions) == 200
    shown = part.items[part.positions, 0]
    few = np.unique(shown)
    inside = np.isin(names, few[:-1]).all(axis=1).sum()
    assert len(few) < 40 and inside <= 200  # all answers among them, where a random part has 98


class Fussy(RBF):
    """A kernel that raises where its lengthscale is long."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if self.length_scale > 50.0:
            raise ValueError("too long")
        return super().__call__(X, Y, eval_gradient)


def test_a_restart_where_the_model_cannot_be_evaluated_is_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2, 1))
    y = np.sin(X[:, :, 0]) @ [1.0, -1.0] > 0.0
    kernel = Fussy(1.0, (1e-3, 1e3))
    plain = PairwisePreferenceRegressor(kernel).fit(X, y)
    again = PairwisePreferenceRegressor(kernel, n_restarts_optimizer=5, random_state=0).fit(X, y)
    evidence = [each.log_marginal_likelihood_value_ for each in (plain, again)]
    assert evidence[1] > evidence[0] - 0.1
    with pytest.raises(ValueError, match="too long"):
        PairwisePreferenceRegressor(Fussy(60.0, (1e-3, 1e3))).fit(X, y)


def test_an_evaluation_where_the_engine_went_astray_is_not_the_best():
    """EP of two iterations ends far from its fixed point where there is hardly any noise."""
    comparisons = won(*random_duels(7, 15, 80, noise=0.4))
    model = Model(RBF(1.0), probit(1e-3, (1e-6, 1e2)), EP(max_iter=4))
    objective = _search.Objective(model, comparisons)
    near, far = np.log([1.0, 1e-6]), np.log([1.0, 1.0])
    assert not model.at(near).evaluate(comparisons).approximation.converged
    value = objective(near)[0]
    assert not objective.best.sure
    objective(far)
    assert objective.best.sure and np.array_equal(objective.best.theta, far)
    again = objective(np.log([1.1, 1e-6]))[0]
    assert again > 1e5 > value  # a wall, not what the engine says


def test_no_warning_is_of_a_bound_that_no_parameter_reaches():
    """Of answers without noise the item effects of the default kernel stood at their bound."""
    rng, n = np.random.default_rng(0), 600
    items = rng.normal(size=(60, 2))
    pairs = np.array([rng.choice(60, 2, replace=False) for _ in range(n)])
    y = (items[:, 0] ** 2 + items[:, 1])[pairs] @ [1.0, -1.0] > 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PairwisePreferenceRegressor(noise_variance=1e-4, noise_variance_bounds="fixed").fit(
            items[pairs], y
        )


def test_a_slight_slope_is_gone_down_to_its_end():
    """Half a nat for a factor e of the unit, beside coordinates that bend ten thousand times as
    much: the bound of a variance is 10 000 times the noise, and says nothing at the end."""
    rng, n = np.random.default_rng(0), 400
    ids = np.array([rng.permutation(8)[:2] for _ in range(n)])
    controls = rng.normal(size=(n, 2))
    margin = np.linspace(-1.0, 1.0, 8)[ids] @ [1.0, -1.0] + rng.normal(size=n)
    y = np.where(np.abs(margin) < 0.4, 0, np.sign(margin)).astype(int)
    X = np.stack([ids, controls], axis=2)
    found = []
    for unit in (1e-8, 1.0):
        slope = ConstantKernel(1e-4, (1e-4, 1e4)) * OnColumns(DotProduct(0.0, "fixed"), [1])
        names = ConstantKernel(unit, (1e-12, 1e4)) * OnColumns(Identity(), [0])
        model = PairwisePreferenceRegressor(
            names + slope,
            id_column=0,
            noise_variance=unit,
            noise_variance_bounds=(1e-12, 1e4),
            tie_threshold=0.4 * np.sqrt(unit),
            tie_threshold_bounds=(1e-8, 1e3),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.append(model.fit(X, y).log_marginal_likelihood_value_)
    assert found[0] > found[1] - 0.2  # 2 nats and more


def test_a_search_that_was_stopped_does_not_begin_elsewhere():
    """Its monitor ended it, near a top that is worse."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 2, 2))
    items, y = X.reshape(-1, 2), (X[:, 0, 0] > X[:, 1, 0])
    first = np.arange(0, 120, 2)
    comparisons = Comparisons.from_duels(items, first, first + 1, y)
    priors = lengthscale_priors("lognormal", RBF([1.0, 1.0]), items)
    model = Model(RBF([0.01, 0.01]), probit(1e-3, (1e-4, 1e2)), EP(), priors)
    seen = []

    def monitor(step):
        seen.append(step.theta)
        if step.number == 2:
            raise StopSearch

    found = learn(model, comparisons, Search(warn_not_converged=False), monitor=monitor)
    assert any(np.allclose(found.model.theta, theta, rtol=1e-12) for theta in seen)


@pytest.mark.parametrize("back", [True, False])
def test_the_state_found_is_that_of_the_hyperparameters_returned(back):
    """An optimizer may look elsewhere after the point that it returns."""
    comparisons = won(*random_duels(7, 15, 80, noise=0.4))
    model = Model(RBF(1.0), probit(), EP())
    at = []

    def wanders(obj_func, initial_theta, bounds):
        for step in (0.0, 0.3, 2.0) if back else (0.3, 0.0, 2.0):
            at.append(initial_theta + step)
            obj_func(at[-1])
        chosen = at[0] if back else at[1]
        return chosen, obj_func(chosen, eval_gradient=False) if back else 0.0

    found, state = learn(model, comparisons, Search(optimizer=wanders))
    np.testing.assert_array_equal(found.theta, at[0] if back else at[1])
    sites = found.evaluate(comparisons).approximation.state
    np.testing.assert_allclose(state["precision"], sites["precision"], rtol=1e-3)
