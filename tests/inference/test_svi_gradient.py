"""The gradient of SVI's bound is that of the bound: random problems against differences."""

from itertools import pairwise

import numpy as np
import pytest
from likelihoods_support import Logistic, rows
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from skpref.duels import Comparisons
from skpref.fitting._model import Model
from skpref.inference import SVI
from skpref.kernels import Identity, Linear, ProductMatern
from skpref.likelihoods import TIE, GradedProbit, Probit


def random_likelihood(rng):
    noise = 10.0 ** rng.uniform(-3.0, 1.0)
    kind = rng.choice(["duels", "ties", "grades", "ties and grades", "logistic"])
    if kind == "logistic":
        return Logistic(max(noise, 0.3))
    order = {"order_effect": 0.3 * rng.normal(), "order_effect_bounds": (-5.0, 5.0)}
    more = order if rng.random() < 0.5 else {}
    tie = 10.0 ** rng.uniform(-1.5, 0.0) if "ties" in kind else None
    if "grades" not in kind:
        return Probit(noise, tie_threshold=tie, **more)
    steps = 10.0 ** rng.uniform(-1.0, 0.5, size=rng.integers(1, 4))
    cuts = (tie or 0.0) + np.cumsum(steps)
    return GradedProbit(noise, tie_threshold=tie, grade_thresholds=tuple(cuts), **more)


def random_kernel(rng, d):
    lengths, amplitude = np.exp(0.7 * rng.normal(size=d)), 10.0 ** rng.uniform(-2.0, 2.0)
    kernels = [
        RBF(lengths),
        Matern(lengths, nu=0.5),
        Matern(lengths[0], nu=2.5),
        ProductMatern(lengths),
        Linear(lengths, (1e-3, 1e3)),
        DotProduct(1.0),
        Identity(),
        RBF(lengths) + WhiteKernel(0.1),
    ]
    return ConstantKernel(amplitude) * kernels[rng.integers(len(kernels))]


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n_items, d, n = rng.integers(3, 30), rng.integers(1, 4), rng.integers(5, 50)
    likelihood, kernel = random_likelihood(rng), random_kernel(rng, d)
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    kinds = np.array(sorted(kind for kind in likelihood.kinds if kind != 2), dtype=np.int8)
    more = {"kind": rng.choice(kinds, size=n)} if len(kinds) > 1 else {}
    if likelihood.uses_order:
        more["order"] = rng.integers(-1, 2, size=n)
    weight = rng.uniform(0.2, 3.0, n) if rng.random() < 0.5 else np.ones(n)
    X = rng.normal(size=(n_items, d))
    comparisons = Comparisons.from_duels(X, first, second, rng.random(n) < 0.5, weight, **more)
    engine = SVI(int(rng.choice([2, 5, 15, 50])), tol=1e-9, max_iter=500, evidence="bound")
    return comparisons, Model(kernel, likelihood, engine).prepare(comparisons, 0)


def fourth_order(function, x, step=2e-3):
    slopes = []
    for e in step * np.eye(len(x)):
        near, far = function(x + e) - function(x - e), function(x + 2 * e) - function(x - 2 * e)
        slopes.append((8.0 * near - far) / (12.0 * step))
    return np.array(slopes)


def check(seed):
    comparisons, model = random_problem(seed)

    def bound(theta):
        run = model.at(theta).evaluate(comparisons, engine=model.engine)
        return run.approximation.sites.log_evidence

    run = model.evaluate(comparisons, engine=model.engine, eval_gradient=True)
    differences = fourth_order(bound, model.theta)
    scale = np.maximum(1.0, np.abs(differences))
    assert np.all(np.abs(run.gradient - differences) <= 1e-5 * scale), (seed, model.names)


@pytest.mark.parametrize("seed", [0, 2, 3, 6])
def test_random_problems(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [9, 10, 11, 12, 13, 14, 16, 17, 18, 20, 21, 22, 23, 24, 25])
def test_more_random_problems(seed):
    check(seed)


@pytest.mark.parametrize(
    "likelihood",
    [Probit(1e-4, tie_threshold=0.3), Probit(0.05, tie_threshold=0.01), Logistic(0.01)],
    ids=["wide slab", "narrow slab", "sharp logistic"],
)
def test_expectations_where_the_factor_is_sharper_than_the_margin(likelihood):
    """Value and both slopes by adaptive integration, cut where the factor bends."""
    kind = TIE if isinstance(likelihood, Probit) else 0
    for mean, variance in ((0.4, 4.0), (-1.0, 0.5)):
        at = likelihood.expected(*np.array([[mean], [variance], [0.0]]), rows([kind]))

        deviation = np.sqrt(variance)

        def integral(power, column, mean=mean, deviation=deviation):
            def integrand(x):
                z = mean + deviation * x
                found = likelihood.log_prob(np.array([z]), rows([kind]))[column][0]
                return found * x**power * norm.pdf(x)

            bends = [(b - mean) / deviation for b in (-0.3, 0.0, 0.3)]
            edges = [-9.0, *bends, 9.0]
            parts = pairwise(edges)
            return sum(quad(integrand, *part, epsabs=1e-10, limit=300)[0] for part in parts)

        truth = [integral(0, 0), integral(0, 1), 0.5 * integral(1, 1) / np.sqrt(variance)]
        np.testing.assert_allclose(
            [at.value[0], at.by_mean[0], at.by_variance[0]], truth, rtol=1e-6
        )
