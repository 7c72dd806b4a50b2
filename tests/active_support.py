"""What the tests of active learning share: margins that are given, and truths by quadrature."""

from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.special import entr
from scipy.stats import norm


class Known:
    """A posterior whose margins are given, a duel a row: of what is asked only positions count."""

    def __init__(self, likelihood, mean, variance, covariance=None):
        self.likelihood, self.covariance = likelihood, covariance
        self.mean, self.variance = np.asarray(mean, float), np.asarray(variance, float)
        self.duels = np.arange(2 * len(self.mean)).reshape(-1, 2)

    def margin(self, A, B):
        rows = np.asarray(A) // 2
        return self.mean[rows], self.variance[rows]

    def margin_cov(self, A, B):
        rows = np.asarray(A) // 2
        return self.covariance[np.ix_(rows, rows)]


def probabilities(margin, likelihood, lead=1):
    """Of second won, (tie,) and first won, for one margin."""
    deviation = np.sqrt(2.0 * likelihood.noise_variance)
    margin = margin + lead * likelihood.order_effect
    if likelihood.tie_threshold is None:
        return np.array([norm.sf(margin / deviation), norm.cdf(margin / deviation)])
    lose = norm.cdf((-likelihood.tie_threshold - margin) / deviation)
    win = norm.sf((likelihood.tie_threshold - margin) / deviation)
    between = norm.cdf(abs(margin) / deviation + likelihood.tie_threshold / deviation)
    between -= norm.cdf(abs(margin) / deviation - likelihood.tie_threshold / deviation)
    return np.array([lose, between, win])


def averaged(function, mean, deviation, likelihood):
    """Mean of a function of a normal margin, by adaptive quadrature."""
    if deviation == 0.0:
        return function(mean)
    step = np.sqrt(2.0 * likelihood.noise_variance)
    low, high = mean - 10.0 * deviation, mean + 10.0 * deviation
    edges = {low, mean, high}
    for edge in (likelihood.tie_threshold or 0.0) * np.array([-1.0, 1.0]):
        for shift in np.abs(likelihood.order_effect) * np.array([-1.0, 0.0, 1.0]):
            edges |= set(edge + shift + step * np.arange(-10.0, 10.5))
    edges = sorted(edge for edge in edges if low <= edge <= high)
    return sum(
        quad(lambda m: function(m) * norm.pdf(m, mean, deviation), *ends, epsabs=1e-12)[0]
        for ends in pairwise(edges)
    )


def mutual_information(means, deviation, likelihood, lead=1):
    """Of the answer and an equal mixture of normal margins: by its definition."""
    outcomes = 2 if likelihood.tie_threshold is None else 3

    def known(margin):
        return entr(probabilities(margin, likelihood, lead)).sum()

    expected = np.mean([averaged(known, mean, deviation, likelihood) for mean in means])
    predicted = [
        np.mean(
            [
                averaged(
                    lambda m: probabilities(m, likelihood, lead)[k], mean, deviation, likelihood
                )
                for mean in means
            ]
        )
        for k in range(outcomes)
    ]
    return entr(np.array(predicted)).sum() - expected
