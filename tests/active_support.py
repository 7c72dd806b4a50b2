"""What the tests of active learning share: margins that are given, and truths by quadrature."""

from math import log, pi, sqrt

import numpy as np
from scipy.special import entr, erfc

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)


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
    """Φ(u), by the error function."""
    return 0.5 * erfc(-u / sqrt(2.0))


def probabilities(margin, likelihood, lead=1):
    """Of second won, (tie,) and first won, for one margin."""
    deviation = sqrt(2.0 * likelihood.noise_variance)
    u = (margin + lead * likelihood.order_effect) / deviation
    if likelihood.tie_threshold is None:
        return below(-u), below(u)
    width = likelihood.tie_threshold / deviation
    tie = below(width - abs(u)) - below(-width - abs(u))
    return below(-width - u), tie, below(u - width)


def entropy_of(shares):
    return -sum(p * log(p) for p in shares if p > 0.0)


def averaged(function, mean, deviation, likelihood):
    """Mean of a function of a normal margin, by Gauss's rule between where it bends."""
    if deviation == 0.0:
        return function(np.array([mean]))[..., 0]
    step = sqrt(2.0 * likelihood.noise_variance)
    edges = {mean + k * deviation for k in (-10, -5, -2, 0, 2, 5, 10)}
    for edge in {likelihood.tie_threshold or 0.0, -(likelihood.tie_threshold or 0.0)}:
        for shift in {-likelihood.order_effect, 0.0, likelihood.order_effect}:
            edges |= {edge + shift + k * step for k in (-9, -5, -2, 0, 2, 5, 9)}
    low, high = mean - 10.0 * deviation, mean + 10.0 * deviation
    edges = np.array(sorted(edge for edge in edges if low <= edge <= high))
    half = 0.5 * np.diff(edges)[:, None]
    nodes = (edges[:-1, None] + half * (1.0 + NODES)).ravel()
    z = (nodes - mean) / deviation
    weights = np.exp(-0.5 * z * z) * (half * WEIGHTS).ravel() / (deviation * sqrt(2.0 * pi))
    return function(nodes) @ weights


def mutual_information(means, deviation, likelihood, lead=1):
    """Of the answer and an equal mixture of normal margins: by its definition."""

    def shares_and_entropy(margin):
        shares = probabilities(margin, likelihood, lead)
        return np.stack([*shares, entr(np.maximum(shares, 0.0)).sum(axis=0)])

    each = [averaged(shares_and_entropy, mean, deviation, likelihood) for mean in means]
    *shares, known = np.mean(each, axis=0)
    return entropy_of(shares) - known
