"""Priors that a likelihood declares, and its hyperparameters once they are learned."""

from typing import ClassVar

import numpy as np
import pytest
from likelihoods_support import Logistic
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.likelihoods import Probit
from skpref.optimize import PreferenceOptimizer


class Expected(Logistic):
    """The scale is expected to be 0.5, closely."""

    priors: ClassVar = {"scale": (0.5, 0.01)}


class ExpectedOrder(Probit):
    """So is the order effect."""

    priors: ClassVar = {"order_effect": (0.7, 0.01), "noise_variance": (0.2, 0.02)}


def fitted(likelihood):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 2, 1))
    y = (X[:, 0, 0] - X[:, 1, 0] + 0.3 * rng.logistic(size=60) > 0).astype(int)
    return PairwisePreferenceRegressor(RBF(1.0, "fixed"), likelihood=likelihood).fit(X, y)


@pytest.mark.slow
def test_a_narrow_prior_holds_a_hyperparameter():
    free, expected = fitted(Logistic()).likelihood_, fitted(Expected()).likelihood_
    assert abs(np.log(free.scale / 0.5)) > 0.05  # the answers say otherwise
    assert expected.scale == pytest.approx(0.5, rel=0.02)


def test_priors_of_linear_hyperparameters_are_normal():
    found = fitted(ExpectedOrder(order_effect=0.1, order_effect_bounds=(-2.0, 2.0)))
    assert found.likelihood_.order_effect == pytest.approx(0.7, abs=0.03)
    assert found.order_effect_ == found.likelihood_.order_effect
    assert found.likelihood_.noise_variance == pytest.approx(0.2, rel=0.05)


def test_the_search_maximises_evidence_times_prior():
    """Where it ends, the slopes of both cancel."""
    wide = type("Wide", (Logistic,), {"priors": {"scale": (1.0, 0.3)}})
    found = fitted(wide())
    slope = found.log_marginal_likelihood(eval_gradient=True)[1][-1]
    assert slope == pytest.approx(np.log(found.likelihood_.scale) / 0.3**2, abs=0.05)


@pytest.mark.slow
def test_optimizers_know_the_prior_of_a_likelihood():
    optimizer = PreferenceOptimizer([[0.0, 1.0]], likelihood=Expected(), inference="ep")
    for _ in range(12):
        duel = optimizer.ask()
        optimizer.tell(duel, duel[0][0] > duel[1][0])
    assert optimizer.posterior_.likelihood.scale == pytest.approx(0.5, rel=0.05)


def test_a_prior_of_nothing_is_refused():
    wrong = type("Wrong", (Logistic,), {"priors": {"noise": (1.0, 0.3)}})
    with pytest.raises(ValueError, match=r"names \['noise'\].*\['scale'\]"):
        fitted(wrong())
