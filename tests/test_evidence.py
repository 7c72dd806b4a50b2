"""Log evidence and its gradients against differences, and the search for its maximum."""

import numpy as np
import pytest
from core_support import SPACES, TIGHT_EP, TIGHT_LAPLACE, random_duels
from oracles import central_gradient
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from skpref import PairwisePreferenceRegressor
from skpref import _evidence as evidence
from skpref._evidence import (
    EvidenceProblem,
    learn,
    lengthscale_prior,
)
from skpref.duels import from_pairs, merge
from skpref.inference import EP, Laplace
from skpref.kernels import Identity

ENGINES = {"ep": TIGHT_EP, "laplace": TIGHT_LAPLACE}
KERNELS = {
    "rbf": RBF(0.8),
    "ard": RBF([0.5, 1.5]),
    "matern12": Matern(0.8, nu=0.5),
    "matern32": Matern([0.6, 1.1], nu=1.5),
    "matern52": Matern(0.8, nu=2.5),
    "rational": RationalQuadratic(0.9, alpha=0.7),
    "scaled": ConstantKernel(2.0) * Matern([0.6, 1.1], nu=2.5),
    "sum": RBF(0.4) + ConstantKernel(0.5) * RBF([2.0, 3.0]),
    "product": RBF([0.9, 1.4]) * RationalQuadratic(2.0, alpha=1.5),
    "white": RBF(0.8) + WhiteKernel(0.05),
    "linear": DotProduct(0.5) + ConstantKernel(0.3) * RBF(0.7),
    "fixed": ConstantKernel(2.0, "fixed") * RBF(0.8),
    "identity": Identity(),
}
NOISE_BOUNDS = (1e-6, 1e2)


def contradictory_duels(seed=0, n_items=8, n_duels=24):
    """Counts above one, and duels answered both ways."""
    duels = merge(*random_duels(seed, n_items, n_duels, noise=1.0))
    assert duels.counts.max() > 1
    assert len(duels.margins.first) < len(duels.counts)
    return duels


@pytest.mark.parametrize("noise_variance", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("space", ["margins", "items"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KERNELS)
def test_gradient_agrees_with_differences(name, engine, space, noise_variance, monkeypatch):
    monkeypatch.setattr(evidence, "gaussian_space", SPACES[space])
    problem = EvidenceProblem(
        contradictory_duels(), KERNELS[name], noise_variance, NOISE_BOUNDS, ENGINES[engine]
    )

    def log_evidence(theta):
        return problem.at(theta).evaluate().approximation.sites.log_evidence

    found = problem.evaluate(eval_gradient=True)
    assert found.approximation.converged
    truth = central_gradient(log_evidence, problem.theta, 2e-2)
    assert len(truth) == len(KERNELS[name].theta) + 1
    np.testing.assert_allclose(found.gradient, truth, rtol=1e-5, atol=2e-7)


@pytest.mark.parametrize("bounds", [(1e-4, 10.0), "fixed"])
@pytest.mark.parametrize("engine", ENGINES)
def test_regressor_gives_the_same_gradient(engine, bounds):
    items, winner, loser = random_duels(3, 8, 24, noise=1.0)
    X, y = from_pairs(items, np.stack([winner, loser], axis=1))
    model = PairwisePreferenceRegressor(
        ConstantKernel(1.5) * RBF([0.5, 1.5]),
        inference=ENGINES[engine],
        noise_variance=0.2,
        noise_variance_bounds=bounds,
    ).fit(X, y)
    theta = np.append(np.log([1.5, 0.5, 1.5]), [] if bounds == "fixed" else np.log(0.2))
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    truth = central_gradient(model.log_marginal_likelihood, theta, 2e-2)
    np.testing.assert_allclose(gradient, truth, rtol=1e-5, atol=2e-7)
    assert value == pytest.approx(model.log_marginal_likelihood(theta), abs=1e-12)
    here = model.log_marginal_likelihood()
    assert here == pytest.approx(model.log_marginal_likelihood_value_, abs=1e-9)
    with pytest.raises(ValueError, match="theta must have shape"):
        model.log_marginal_likelihood(theta[:-1])


@pytest.mark.parametrize("engine", [EP(), Laplace()])
def test_evidence_by_sampling_the_prior(engine):
    duels = contradictory_duels(1, 4, 14)
    kernel, noise_variance = Matern(0.8, nu=1.5), 0.5
    problem = EvidenceProblem(duels, kernel, noise_variance, None, engine)
    found = problem.evaluate().approximation.sites.log_evidence
    f = multivariate_normal(np.zeros(4), kernel(duels.items), allow_singular=True).rvs(
        400_000, random_state=0
    )
    margin = f[:, duels.winner] - f[:, duels.loser]
    each = np.exp(norm.logcdf(margin, scale=np.sqrt(2.0 * noise_variance)) @ duels.counts)
    error = each.std() / each.mean() / np.sqrt(len(each))
    tolerance = 4.0 * error + (0.03 if isinstance(engine, EP) else 0.15)
    assert found == pytest.approx(np.log(each.mean()), abs=tolerance)


def test_a_start_that_does_not_lead_there_is_left():
    problem = EvidenceProblem(contradictory_duels(), RBF(0.8), 0.1, NOISE_BOUNDS, EP())
    n_kinds = len(problem.duels.counts)
    fresh = problem.evaluate().approximation.sites.log_evidence
    found = problem.evaluate((np.full(n_kinds, 1e12), np.full(n_kinds, -1e12))).approximation
    assert found.converged
    assert found.sites.log_evidence == pytest.approx(fresh, abs=1e-8)


def test_a_kernel_of_nan_is_named():
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="is not finite on the items"):
        EvidenceProblem(
            contradictory_duels(), ConstantKernel(np.inf) * RBF(), 0.1, None, EP()
        ).evaluate()


# -- the search ------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [EP(), Laplace()])
def test_search_ends_at_the_top_of_a_grid(engine):
    duels = merge(*random_duels(7, 15, 80, noise=0.4))
    problem = EvidenceProblem(duels, RBF(1.0), 0.1, (1e-3, 10.0), engine)
    prior = lengthscale_prior((1.0, 1.0), problem.kernel, duels.items)
    found, state = learn(problem, prior)
    warm = found.evaluate(state).approximation
    assert warm.converged

    def objective(theta):
        value = problem.at(np.array(theta)).evaluate().approximation.sites.log_evidence
        return value + norm.logpdf(theta[0])

    top = objective(found.theta)
    grid = [(a, b) for a in np.linspace(-2, 2, 9) for b in np.linspace(-6, 2, 9)]
    assert top >= max(map(objective, grid)) - 1e-6
    slope = central_gradient(objective, found.theta, 1e-2)
    np.testing.assert_allclose(slope, 0.0, atol=1e-2)


def test_search_keeps_to_the_bounds_and_to_what_is_fixed():
    duels = merge(*random_duels(7, 15, 80, noise=0.4))
    kernel = ConstantKernel(3.0, "fixed") * RBF(1.0, (0.9, 1.1))
    found, _ = learn(EvidenceProblem(duels, kernel, 0.1, (0.05, 0.06), EP()))
    assert found.kernel.k1.constant_value == 3.0
    assert 0.9 <= found.kernel.k2.length_scale <= 1.1
    assert 0.05 <= found.noise_variance <= 0.06
    held, _ = learn(EvidenceProblem(duels, RBF(1.0), 0.1, None, EP()))
    assert held.noise_variance == 0.1


def test_restarts_never_make_it_worse_and_are_reproducible():
    duels = merge(*random_duels(7, 10, 30, noise=0.4))
    problem = EvidenceProblem(duels, RBF([1.0, 1.0], (1e-2, 1e2)), 0.1, (1e-3, 10.0), EP())

    def value(found):
        return found.evaluate().approximation.sites.log_evidence

    one, _ = learn(problem)
    more, again = (learn(problem, n_restarts=3, rng=np.random.RandomState(0))[0] for _ in range(2))
    assert value(more) >= value(one) - 1e-6
    np.testing.assert_array_equal(more.theta, again.theta)
    endless = EvidenceProblem(duels, RBF(1.0, (1e-2, np.inf)), 0.1, None, EP())
    with pytest.raises(ValueError, match="finite bounds"):
        learn(endless, n_restarts=1, rng=np.random.RandomState(0))


def test_a_callable_optimizer_is_called_as_in_scikit_learn():
    duels = merge(*random_duels(7, 10, 30))
    problem = EvidenceProblem(duels, RBF(1.0), 0.1, (1e-3, 10.0), EP())

    def optimizer(obj_func, initial_theta, bounds):
        value, gradient = obj_func(initial_theta)
        assert gradient.shape == initial_theta.shape
        assert obj_func(initial_theta, eval_gradient=False) == pytest.approx(value, abs=1e-4)
        assert bounds.shape == (2, 2)
        return initial_theta + 0.25, value

    found, _ = learn(problem, optimizer=optimizer)
    np.testing.assert_allclose(found.theta, problem.theta + 0.25)


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
    duels = merge(*random_duels(7, 10, 30))
    problem = EvidenceProblem(duels, RBF(1.0), 0.1, (1e-3, 10.0), EP())
    with pytest.raises(ValueError, match=r"optimizer must return \(theta_opt, func_min\).*\(2,\)"):
        learn(problem, optimizer=lambda obj_func, initial_theta, bounds: nonsense)


def test_no_convergence_is_a_warning_with_the_remedy():
    items, winner, loser = random_duels(0, 12, 60)
    X, y = from_pairs(items, np.stack([winner, loser], axis=1))
    model = PairwisePreferenceRegressor(RBF(0.8), inference=EP(max_iter=2), optimizer=None)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clone(model).fit(X, y)
