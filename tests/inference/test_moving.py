"""Inducing points that move: gradients in them, and when they stay."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient
from sklearn.gaussian_process.kernels import RBF, DotProduct
from svi_support import KERNEL, TIES, answers, utility_duels

from skpref.duels import Comparisons
from skpref.fitting._fit import fit_posterior
from skpref.fitting._model import Model
from skpref.gp._inducing import Inducing
from skpref.inference import SVI, Problem
from skpref.inference._natural import AnswerBatch
from skpref.likelihoods import Probit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "kernel"),
    [(8, DotProduct(0.5) + RBF(1.0)), (30, KERNEL)],
    ids=["few duels, dot", "many duels, matern"],
)
def test_gradient_in_the_points_agrees_with_differences(n, kernel):
    comparisons = answers(TIES, n)
    engine = SVI(4, tol=1e-8)

    def run(flat):
        Z = flat.reshape(4, 2)
        space = Inducing(kernel, comparisons.items, comparisons.rows.margins, Z)
        problem = Problem(space, comparisons, TIES)
        return problem, engine.run(problem)

    Z = engine.prior_rule.prepare(comparisons, kernel, 0).points.ravel()
    problem, found = run(Z)
    batch = AnswerBatch.from_rows(problem.prior, problem.rows, TIES)
    gradient = problem.prior.by_points(batch.pull_at(found.conditioned))
    truth = central_gradient(lambda flat: run(flat)[1].sites.log_evidence, Z)
    assert_allclose(gradient.ravel(), truth, rtol=1e-4, atol=1e-5)


def test_points_move_up_the_bound():
    X, pairs, y = utility_duels(400)
    kernel = RBF([0.5, 0.5, 0.5])
    comparisons = Comparisons.from_duels(X, *pairs.T, y)
    own = SVI(15).prior_rule.prepare(comparisons, kernel, 0).points
    moved, stayed = (
        fit_posterior(comparisons, Model(kernel, Probit(0.01), engine), rng=0)
        for engine in (SVI(15), SVI(inducing_points=own))
    )
    assert moved.log_evidence > stayed.log_evidence + 1.0
    assert moved.posterior.anchors.shape == own.shape
    assert np.array_equal(stayed.posterior.anchors, own)
    assert np.abs(moved.posterior.anchors - own).max() < 1.0


def test_points_that_tell_all_but_everything_stay():
    X, pairs, y = utility_duels(400)
    kernel = RBF([3.0, 3.0, 3.0])
    comparisons = Comparisons.from_duels(X, *pairs.T, y)
    own = SVI(15).prior_rule.prepare(comparisons, kernel, 0).points
    fitted = fit_posterior(comparisons, Model(kernel, Probit(0.01), SVI(15)), rng=0)
    assert np.array_equal(fitted.posterior.anchors, own)
