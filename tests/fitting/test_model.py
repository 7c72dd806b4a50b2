"""Log evidence of a model and its gradients, against differences and sampling of the prior."""

import numpy as np
import pytest
from core_support import TIGHT_EP, TIGHT_LAPLACE, only, random_duels, won
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
from tiers_support import thinned

from skpref import PairwisePreferenceRegressor
from skpref.duels import from_pairs
from skpref.fitting._model import Model
from skpref.inference import EP, Laplace
from skpref.kernels import Identity
from skpref.likelihoods import Probit

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


def contradictory_duels(seed=0, n_items=8, n_duels=24):
    """Counts above one, and duels answered both ways."""
    comparisons = won(*random_duels(seed, n_items, n_duels, noise=1.0))
    duels = comparisons.duels
    assert duels.counts.max() > 1
    assert len(comparisons.rows.margins.first) < len(duels.counts)
    return comparisons


def log_evidence_of(model, comparisons):
    return model.evaluate(comparisons).approximation.sites.log_evidence


SOLVED = [
    ("ep", "margins", 1e-3),
    ("laplace", "items", 1e-3),
    ("ep", "items", 0.1),
    ("laplace", "margins", 1.0),
]


@pytest.mark.parametrize(
    ("name", "engine", "space", "noise_variance"),
    # Every kernel by both engines, in turn in one space and the other.
    thinned(
        (
            (name, *SOLVED[at])
            for k, name in enumerate(KERNELS)
            for at in (2 * (k % 2), 2 * (k % 2) + 1)
        ),
        3,
    ),
)
def test_gradient_agrees_with_differences(name, engine, space, noise_variance, monkeypatch):
    only(monkeypatch, space)
    comparisons = contradictory_duels()
    model = Model(KERNELS[name], Probit(noise_variance), ENGINES[engine])

    def log_evidence(theta):
        return log_evidence_of(model.at(theta), comparisons)

    found = model.evaluate(comparisons, eval_gradient=True)
    assert found.approximation.converged
    truth = central_gradient(log_evidence, model.theta, 2e-2)
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
    comparisons = contradictory_duels(1, 4, 14)
    kernel, noise_variance = Matern(0.8, nu=1.5), 0.5
    duels = comparisons.duels
    found = log_evidence_of(Model(kernel, Probit(noise_variance, "fixed"), engine), comparisons)
    f = multivariate_normal(np.zeros(4), kernel(duels.items), allow_singular=True).rvs(
        400_000, random_state=0
    )
    margin = f[:, duels.winner] - f[:, duels.loser]
    each = np.exp(norm.logcdf(margin, scale=np.sqrt(2.0 * noise_variance)) @ duels.counts)
    error = each.std() / each.mean() / np.sqrt(len(each))
    tolerance = 4.0 * error + (0.03 if isinstance(engine, EP) else 0.15)
    assert found == pytest.approx(np.log(each.mean()), abs=tolerance)


def test_a_start_that_does_not_lead_there_is_left():
    comparisons, model = contradictory_duels(), Model(RBF(0.8), Probit(0.1), EP())
    n_kinds = len(comparisons.duels.counts)
    fresh = log_evidence_of(model, comparisons)
    start = {"precision": np.full(n_kinds, 1e12), "shift": np.full(n_kinds, -1e12)}
    found = model.evaluate(comparisons, start).approximation
    assert found.converged
    assert found.sites.log_evidence == pytest.approx(fresh, abs=1e-8)


def test_a_kernel_of_nan_is_named():
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="is not finite on the items"):
        Model(ConstantKernel(np.inf) * RBF(), Probit(0.1), EP()).evaluate(contradictory_duels())


def test_no_convergence_is_a_warning_with_the_remedy():
    items, winner, loser = random_duels(0, 12, 60)
    X, y = from_pairs(items, np.stack([winner, loser], axis=1))
    model = PairwisePreferenceRegressor(RBF(0.8), inference=EP(max_iter=2), optimizer=None)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clone(model).fit(X, y)
