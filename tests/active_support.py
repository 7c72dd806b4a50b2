"""What the tests of active learning share: margins that are given, and truths by quadrature."""

from itertools import pairwise
from math import erfc, exp, log, pi, sqrt

import numpy as np
from scipy.integrate import quad


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


def below(u):
    """Φ(u), by Python's own error function."""
    return 0.5 * erfc(-u / sqrt(2.0))


def probabilities(margin, likelihood, lead=1):
    """Of second won, (tie,) and first won, for one margin."""
    deviation = sqrt(2.0 * likelihood.noise_variance)
    u = (margin + lead * likelihood.order_effect) / deviation
    if likelihood.tie_threshold is None:
        return below(-u), below(u)
    width, u = likelihood.tie_threshold / deviation, u
    tie = below(width - abs(u)) - below(-width - abs(u))
    return below(-width - u), tie, below(u - width)


def entropy_of(shares):
    return -sum(p * log(p) for p in shares if p > 0.0)


def averaged(function, mean, deviation, likelihood):
    """Mean of a function of a normal margin, by adaptive quadrature between where it bends."""
    if deviation == 0.0:
        return function(mean)
    step = sqrt(2.0 * likelihood.noise_variance)
    low, high = mean - 10.0 * deviation, mean + 10.0 * deviation
    edges = {low, mean, high}
    for edge in {likelihood.tie_threshold or 0.0, -(likelihood.tie_threshold or 0.0)}:
        for shift in {-likelihood.order_effect, 0.0, likelihood.order_effect}:
            edges |= {edge + shift + k * step for k in (-9, -5, -2, 0, 2, 5, 9)}
    edges = sorted(edge for edge in edges if low <= edge <= high)

    def weighted(m):
        z = (m - mean) / deviation
        return function(m) * exp(-0.5 * z * z) / (deviation * sqrt(2.0 * pi))

    parts = (quad(weighted, *ends, epsabs=1e-12, limit=200)[0] for ends in pairwise(edges))
    return sum(parts)


def mutual_information(means, deviation, likelihood, lead=1):
    """Of the answer and an equal mixture of normal margins: by its definition."""

    def mixed(function):
        each = [averaged(function, mean, deviation, likelihood) for mean in means]
        return sum(each) / len(each)

    def share_of(k):
        return mixed(lambda m: probabilities(m, likelihood, lead)[k])

    known = mixed(lambda m: entropy_of(probabilities(m, likelihood, lead)))
    n_outcomes = len(probabilities(0.0, likelihood))
    return entropy_of([share_of(k) for k in range(n_outcomes)]) - known
