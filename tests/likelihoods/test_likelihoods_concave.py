"""Likelihoods that are not log-concave are refused by name, and log-concave ones never."""

import numpy as np
import pytest
from likelihoods_support import Logistic
from scipy.special import expit
from scipy.stats import norm, t

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.inference import SVI
from skpref.likelihoods import Derivatives, GradedProbit, Likelihood, Probit


class Own(Likelihood):
    """Of a log-probability's value, slope and minus second derivative."""

    def __init__(self, function=None):
        self.function = function

    def log_prob(self, margin, answers):
        return Derivatives(*self.function(margin), np.zeros(len(margin)))


def of_distribution(cdf, pdf, slope, share=0.0):
    """P = share / 2 + (1 - share) cdf(margin), written as users write it, tails and all."""

    def function(m):
        p = 0.5 * share + (1.0 - share) * cdf(m)
        d, d2 = (1.0 - share) * pdf(m), (1.0 - share) * slope(m)
        return np.log(p), d / p, (d / p) ** 2 - d2 / p

    return Own(function)


def normal(scale, share=0.0):
    return of_distribution(
        lambda m: norm.cdf(m / scale),
        lambda m: norm.pdf(m / scale) / scale,
        lambda m: -m / scale**3 * norm.pdf(m / scale),
        share,
    )


def student(nu, scale=1.0):
    def slope(m):
        z = m / scale
        return -(nu + 1.0) * z / (nu + z**2) * t.pdf(z, nu) / scale**2

    return of_distribution(
        lambda m: t.cdf(m / scale, nu), lambda m: t.pdf(m / scale, nu) / scale, slope
    )


def laplace(scale):
    def function(m):
        tail = 0.5 * np.exp(-np.abs(m) / scale)
        odds = np.where(m > 0.0, tail / (1.0 - tail), 1.0)
        value = np.where(m > 0.0, np.log1p(-tail), np.log(tail))
        return value, odds / scale, np.where(m > 0.0, odds * (1.0 + odds), 0.0) / scale**2

    return Own(function)


def by_differences(m, step=1e-4):
    low, mid, high = (-np.logaddexp(0.0, -(m + k * step)) for k in (-1, 0, 1))
    return mid, (high - low) / (2.0 * step), -(high - 2.0 * mid + low) / step**2


CONCAVE = {
    "probit": Probit(0.3),
    "hardly any noise": Probit(1e-10),
    "ties": Probit(0.2, tie_threshold=0.3, order_effect=0.4),
    "graded": GradedProbit(0.01, tie_threshold=0.1, grade_thresholds=(0.5, 1.0, 20.0)),
    "logistic": Logistic(0.5),
    "sharp logistic": Logistic(1e-3),
    "laplace": laplace(0.5),
    "wide laplace": laplace(30.0),
    "naive probit": normal(0.3),
    "differences": Own(by_differences),
}
NOT_CONCAVE = {
    "hardly any lapse": normal(0.3, 1e-6),
    "lapse": normal(0.3, 0.1),
    "coin": normal(30.0, 0.9),
    "cauchy": student(1),
    "student": student(30, 0.1),
    "convex": Own(lambda m: (0.01 * m**2, 0.02 * m, np.full(len(m), -0.02))),
}
X, Y = [["a", "b"], ["b", "c"], ["a", "c"]] * 3, [1, 1, 0] * 3


@pytest.mark.parametrize("likelihood", CONCAVE.values(), ids=CONCAVE)
def test_concave(likelihood):
    likelihood.check_log_concave()


@pytest.mark.parametrize("likelihood", NOT_CONCAVE.values(), ids=NOT_CONCAVE)
def test_not_concave(likelihood):
    with pytest.raises(ValueError, match=r"Own is not log-concave.*judges="):
        likelihood.check_log_concave()


@pytest.mark.parametrize("inference", ["auto", "ep", "laplace", SVI(), "hmc", "gibbs"], ids=str)
def test_no_engine_takes_one(inference):
    model = PairwisePreferenceRegressor(likelihood=normal(0.3, 0.1), inference=inference)
    with pytest.raises(ValueError, match="not log-concave"):
        model.fit(X, Y)


def test_nor_many_users():
    model = CollaborativePreferenceRegressor(likelihood=normal(0.3, 0.1))
    with pytest.raises(ValueError, match="not log-concave"):
        model.fit(X, Y, users=[0, 1, 0] * 3)


def test_a_wrong_sign_of_the_curvature_is_seen():
    def function(m):
        p = expit(m)
        return np.log(p), 1.0 - p, -p * (1.0 - p)

    with pytest.raises(ValueError, match=r"its curvature is -0\.25 at a margin of"):
        Own(function).check_log_concave()


def test_a_slope_that_rises_is_seen_whatever_the_curvature_says():
    lapse = normal(0.3, 0.1).function
    with pytest.raises(ValueError, match="margin rises from"):
        Own(lambda m: (*lapse(m)[:2], np.ones(len(m)))).check_log_concave()


def logistic(m):
    p = expit(m)
    return -np.logaddexp(0.0, -m), 1.0 - p, p * (1.0 - p)


def altered(place, change):
    def function(m):
        parts = list(logistic(m))
        parts[place] = change(m, parts[place])
        return tuple(parts)

    return Own(function)


CONTRADICTORY = {
    "value of a lapse": altered(0, lambda m, _: np.log(0.05 + 0.9 * expit(m))),
    "value of the loser": altered(0, lambda m, _: -np.logaddexp(0.0, m)),
    "half the slope": altered(1, lambda m, slope: 0.5 * slope),
    "no slope": altered(1, lambda m, slope: 0.0 * slope),
    "no curvature": altered(2, lambda m, curvature: 0.0 * curvature),
    "constant curvature": altered(2, lambda m, curvature: np.ones(len(m))),
    "a tenth of the curvature": altered(2, lambda m, curvature: 0.1 * curvature),
    "ten times the curvature": altered(2, lambda m, curvature: 10.0 * curvature),
}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("inference", ["ep", "laplace", "svi"])
def test_nan_at_moderate_margins_is_refused(place, inference):
    """Laplace took it for the edge of what numbers hold; EP blamed the kernel."""
    likelihood = altered(place, lambda m, x: np.where((m > 1.0) & (m < 2.0), np.nan, x))
    model = PairwisePreferenceRegressor(likelihood=likelihood, inference=inference)
    with pytest.raises(
        ValueError, match=r"log_prob of the likelihood Own holds NaN at a margin of"
    ):
        model.fit(X, Y)


def test_nan_is_no_fault_where_probabilities_are_too_small_for_numbers():
    altered(1, lambda m, x: np.where(m < -20.0, np.nan, x)).check_log_concave()


@pytest.mark.parametrize("likelihood", CONTRADICTORY.values(), ids=CONTRADICTORY)
@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_derivatives_of_no_single_function_are_refused(likelihood, inference):
    """Searches for hyperparameters went on for minutes with them."""
    model = PairwisePreferenceRegressor(likelihood=likelihood, inference=inference)
    with pytest.raises(ValueError, match=r"Own contradicts itself.*Return of log_prob"):
        model.fit(X, Y)


def test_judges_allow_for_answers_at_random():
    """The remedy of the message: 19 of 20 wins with lapses of .1, by quadrature."""
    m = np.linspace(-9.0, 9.0, 40001)
    win = 0.05 + 0.9 * norm.cdf(m / 0.3)
    density = norm.pdf(m, scale=np.sqrt(2.0)) * win**19 * (1.0 - win)
    chance = density @ win / density.sum()
    model = PairwisePreferenceRegressor(noise_variance=0.045, optimizer=None)
    model.fit([["a", "b"]] * 20, [1] * 19 + [0], judges=["all"] * 20)
    chance_of_all = model.predict_proba([["a", "b"]], judges=["all"])[0, 1]
    assert abs(chance_of_all - chance) < 0.02
