"""A prior that the package does not know: a kernel of finite rank, and the prior that it names.

f(x) = φ(x)ᵀ w with w ~ N(0, I) has the kernel φ(x)ᵀ φ(x'), with which any engine works. A prior on
the weights needs matrices of the number of features alone. The kernel names it as one of its
``margin_priors``, and nothing else changes.
"""

import inspect

import numpy as np
import pytest
from core_support import random_duels, won
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from skpref import PairwisePreferenceRegressor
from skpref.gp import Cost, Marginals, Posterior, Prior, choose_prior
from skpref.inference import EP, HMC, Laplace
from skpref.likelihoods import Probit

WAVES = np.random.default_rng(5).normal(size=(2, 4))


class FiniteRank(Prior):
    """The prior on the weights of a kernel's features."""

    def __init__(self, kernel, items, margins):
        self.kernel, self.items, self.n_margins = kernel, items, len(margins.first)
        self.features, slopes = kernel.features(items)
        self.Z, *self.slopes = (  # of margins, and derivatives in theta
            each[margins.first] - each[margins.second] for each in (self.features, *slopes)
        )
        self.variance = np.sum(self.Z**2, axis=1)

    @classmethod
    def from_comparisons(cls, kernel, comparisons, likelihood, gradient=False):
        return cls(kernel, comparisons.items, comparisons.rows.margins)

    @classmethod
    def cost(cls, kernel, comparisons, likelihood):
        p, r = len(comparisons.rows.margins.first), 2 * WAVES.shape[1]
        return Cost(float(p * r**2), float(r), 8.0 * 5 * p * r)

    def times(self, vector):
        return self.Z @ (self.Z.T @ vector)

    def _weights(self, precision):
        """Eigenvalues and eigenvectors of what the sites add to the weights' precision."""
        return np.linalg.eigh(self.Z.T @ (precision[:, None] * self.Z))

    def condition(self, precision, shift):
        added, turn = self._weights(precision)
        half = (self.Z @ turn) / np.sqrt(1.0 + added)
        mean = half @ (half.T @ shift)
        dual = shift - (precision if shift.ndim == 1 else precision[:, None]) * mean
        return Marginals(mean, np.sum(half**2, axis=1), dual, float(np.sum(np.log1p(added))))

    def pull_back(self, marginals, precision, push=None):
        added, turn = self._weights(precision)
        w = marginals.dual
        weight = np.outer(w, w @ self.Z) - precision[:, None] * (
            self.Z @ (turn / (1.0 + added)) @ turn.T  # R Z = τ Z (I + Zᵀ τ Z)⁻¹
        )
        if push is not None:
            weight += np.outer(w, push @ self.Z) + np.outer(push, w @ self.Z)
        return np.array([np.sum(weight * slope) for slope in self.slopes])

    def posterior(self, sites, marginals, likelihood):
        added, turn = self._weights(sites.precision)
        back = np.linalg.pinv(self.features).T  # of weights, as combinations of the items
        dual = marginals.dual if marginals.dual.ndim == 2 else marginals.dual[:, None]
        factor = back @ (turn * np.sqrt(np.maximum(added, 0.0) / (1.0 + added)))
        return Posterior(self.kernel, likelihood, self.items, back @ (self.Z.T @ dual), factor)


class Waves(Kernel):
    """φ(x): sines and cosines of four waves."""

    def __init__(self, variance=1.0, length=1.0):
        self.variance, self.length = variance, length

    @property
    def hyperparameter_variance(self):
        return Hyperparameter("variance", "numeric", (1e-3, 1e3))

    @property
    def hyperparameter_length(self):
        return Hyperparameter("length", "numeric", (0.2, 5.0))

    def features(self, X):
        """φ, and its derivatives in the logarithms of the length and the variance."""
        phase, scale = X @ WAVES / self.length, np.sqrt(self.variance / WAVES.shape[1])
        waves = scale * np.hstack([np.cos(phase), np.sin(phase)])
        turned = scale * np.hstack([np.sin(phase) * phase, -np.cos(phase) * phase])
        return waves, (turned, 0.5 * waves)  # as theta is ordered: by name

    def __call__(self, X, Y=None, eval_gradient=False):
        features, slopes = self.features(np.atleast_2d(X))
        if Y is not None:
            return features @ self.features(np.atleast_2d(Y))[0].T
        if not eval_gradient:
            return features @ features.T
        half = [slope @ features.T for slope in slopes]
        return features @ features.T, np.stack([each + each.T for each in half], axis=-1)

    def diag(self, X):
        return np.sum(self.features(np.atleast_2d(X))[0] ** 2, axis=1)

    def is_stationary(self):
        return False


class FiniteWaves(Waves):
    """The same, which names its prior."""

    margin_priors = (FiniteRank,)


def fitted(kernel, inference, ties=False, weights=(0.5, 1.0, 3.0), **options):
    rng = np.random.default_rng(1)
    X, won_by = rng.uniform(-1.0, 1.0, (40, 2, 2)), rng.normal(size=40)
    margin = np.sin(2.0 * X).sum(axis=2) @ [1.0, -1.0] + 0.4 * won_by
    y = np.where(margin > 0.0, 1, -1)
    if ties:
        y[np.abs(margin) < 0.3] = 0
        options["tie_threshold"] = 0.2
    weight = rng.choice(weights, size=40)
    model = PairwisePreferenceRegressor(
        kernel, inference=inference, noise_variance=0.2, random_state=0, **options
    )
    return model.fit(X, y, sample_weight=weight)


@pytest.fixture
def asked(monkeypatch):
    """How often the newcomer's prior was conditioned."""
    count, plain = [], FiniteRank.condition

    def counted(*given):
        count.append(1)
        return plain(*given)

    monkeypatch.setattr(FiniteRank, "condition", counted)
    return count


ENGINES = {"ep": EP(tol=1e-10), "laplace": Laplace(tol=1e-18)}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_posterior_evidence_and_gradient_are_those_of_all_margins(engine, ties, asked):
    weights = (1.0, 2.0, 3.0) if ties else (0.5, 1.0, 3.0)
    own, dense = (
        fitted(kernel(1.3, 0.8), ENGINES[engine], ties, weights, optimizer=None)
        for kernel in (FiniteWaves, Waves)
    )
    assert asked
    X = np.random.default_rng(2).uniform(-1.5, 1.5, (7, 2))
    assert_allclose(own.posterior_.mean(X), dense.posterior_.mean(X), atol=1e-8)
    assert_allclose(own.posterior_.cov(X), dense.posterior_.cov(X), atol=1e-8)
    theta = np.log([0.8, 1.3])  # of the kernel
    for at in (theta, theta + np.array([0.4, -0.5])):
        value, gradient = own.log_marginal_likelihood(at, eval_gradient=True)
        truth, slopes = dense.log_marginal_likelihood(at, eval_gradient=True)
        assert_allclose(value, truth, atol=1e-8)
        assert_allclose(gradient, slopes, atol=1e-8 if engine == "ep" else 1e-7)


def test_hyperparameters_are_learned_with_it(asked):
    own, dense = (fitted(kernel(), "ep", weights=(1.0, 2.0)) for kernel in (FiniteWaves, Waves))
    assert len(asked) > 10
    assert_allclose(own.kernel_.theta, dense.kernel_.theta, atol=1e-4)
    assert_allclose(own.noise_variance_, dense.noise_variance_, rtol=1e-4)


def test_it_can_be_sampled():
    own, dense = (
        fitted(kernel(), HMC(draws=400, chains=20), weights=(1.0, 2.0), optimizer=None)
        for kernel in (FiniteWaves, Waves)
    )
    X = np.random.default_rng(2).uniform(-1.0, 1.0, (5, 2))
    spread = np.sqrt(np.diag(dense.posterior_.cov(X)))
    assert np.all(np.abs(own.posterior_.mean(X) - dense.posterior_.mean(X)) < 0.3 * spread)


def test_it_is_taken_where_it_is_cheaper_and_can_be():
    few, many = (won(*random_duels(0, *size)) for size in ((4, 3), (30, 200)))
    kernel, likelihood = FiniteWaves(), Probit(0.2)
    assert choose_prior(kernel, many, likelihood) is FiniteRank
    assert choose_prior(kernel, few, likelihood) is not FiniteRank
    assert choose_prior(Waves(), many, likelihood) is not FiniteRank
    X = np.random.default_rng(0).normal(size=(30, 3, 2))
    y = np.zeros(30, dtype=int)  # choices, which it does not take
    assert PairwisePreferenceRegressor(kernel, optimizer=None).fit(X, y).predict(X[:, 0]).shape == (
        30,
    )


def test_it_is_short():
    assert len(inspect.getsource(FiniteRank).splitlines()) <= 100


@pytest.mark.parametrize("given", [None, FiniteRank, (int,), (FiniteRank, "dense")])
def test_priors_that_are_none_are_refused(given):
    kernel = type("Odd", (Waves,), {"margin_priors": given})()
    X = np.random.default_rng(0).normal(size=(4, 2, 2))
    with pytest.raises(TypeError, match=r"kernel Odd must be a tuple of subclasses.*\(MyPrior,\)"):
        PairwisePreferenceRegressor(kernel, optimizer=None).fit(X, [0, 1, 1, 0])
