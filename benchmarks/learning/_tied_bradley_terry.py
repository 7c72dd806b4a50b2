"""Bradley-Terry models with ties and an order effect, by maximum likelihood with a ridge.

The margin of a match is m = strength(first) - strength(second) + effect * order, with order 1, 0 or
-1 for the first, neither or the second at home. With t = exp(log_threshold) > 0:

- ``rao-kupper`` (Rao and Kupper 1967): first wins with probability logistic(m - t), the second with
  logistic(-m - t), what is left is a tie.
- ``probit`` (Glenn and David 1960): the same with the normal distribution function.
- ``davidson`` (Davidson 1970): first, tie, second as exp(m/2) : t : exp(-m/2).

The penalty is ridge / 2 times the sum of squared strengths; effect and threshold have none.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, log_expit, log_ndtr

RIDGES = np.logspace(-3, 3, 13)
_LOG_2PI = np.log(2.0 * np.pi)


class Terms(NamedTuple):
    """A log probability with its derivatives in the margin and in log t."""

    value: np.ndarray
    by_margin: np.ndarray
    by_log: np.ndarray


def _davidson(m, log_t):
    first, tie, second = np.broadcast_arrays(0.5 * m, log_t, -0.5 * m)
    norm = np.logaddexp(np.logaddexp(first, second), tie)
    slope = 0.5 * (np.exp(first - norm) - np.exp(second - norm))
    share = np.exp(tie - norm)
    return (
        Terms(first - norm, 0.5 - slope, -share),
        Terms(tie - norm, -slope, 1.0 - share),
    )


def _rao_kupper(m, log_t):
    t = np.exp(log_t)
    low, high = expit(-t - m), expit(m - t)  # the probabilities of the second and of the first
    win = Terms(log_expit(m - t), 1.0 - high, -t * (1.0 - high))
    # logistic(b) - logistic(a) = logistic(b) logistic(-a) (1 - exp(a - b))
    value = log_expit(t - m) + log_expit(t + m) + np.log(-np.expm1(-2.0 * t))
    return win, Terms(value, low - high, t * (high + low + 2.0 / np.expm1(2.0 * t)))


def _probit(m, log_t):
    t = np.exp(log_t)
    value = log_ndtr(m - t)
    hazard = np.exp(-0.5 * (m - t) ** 2 - 0.5 * _LOG_2PI - value)
    win = Terms(value, hazard, -t * hazard)
    # On the side of the smaller tail: symmetric in m.
    upper, lower = log_ndtr(t - np.abs(m)), log_ndtr(-t - np.abs(m))
    value = upper + np.log(-np.expm1(lower - upper))
    above = np.exp(-0.5 * (t - m) ** 2 - 0.5 * _LOG_2PI - value)
    below = np.exp(-0.5 * (t + m) ** 2 - 0.5 * _LOG_2PI - value)
    return win, Terms(value, below - above, t * (below + above))


LINKS = {"davidson": _davidson, "rao-kupper": _rao_kupper, "probit": _probit}


class Matches(NamedTuple):
    """Matches (n, 2) of items, who was first or at home (1, 0, -1), and outcomes (1, 0, -1)."""

    pairs: np.ndarray
    order: np.ndarray
    y: np.ndarray

    def take(self, rows):
        return Matches(*(part[rows] for part in self))


def incidence(pairs, n_items):
    """Sparse (n, n_items): 1 for the first item, -1 for the second."""
    n = len(pairs)
    values = np.tile([1.0, -1.0], n)
    return csr_array((values, pairs.ravel(), np.arange(0, 2 * n + 1, 2)), shape=(n, n_items))


class Objective:
    """Penalised negative log-likelihood of ``[*strengths, effect, log_threshold]``."""

    def __init__(self, link, matches, n_items, ridge):
        self.terms, self.ridge, self.n_items = LINKS[link], ridge, n_items
        tied = matches.y == 0
        self.parts = []
        for rows, which in ((~tied, 0), (tied, 1)):
            some = matches.take(rows)
            sign = np.where(some.y < 0, -1.0, 1.0)
            self.parts.append((incidence(some.pairs, n_items), some.order, sign, which))

    def __call__(self, theta):
        strengths, (effect, log_t) = theta[: self.n_items], theta[self.n_items :]
        value = 0.5 * self.ridge * strengths @ strengths
        gradient = np.concatenate([self.ridge * strengths, [0.0, 0.0]])
        for A, order, sign, which in self.parts:
            term = self.terms(sign * (A @ strengths + effect * order), log_t)[which]
            slope = sign * term.by_margin
            value -= term.value.sum()
            gradient[:-2] -= A.T @ slope
            gradient[-2] -= order @ slope
            gradient[-1] -= term.by_log.sum()
        return value, gradient


def fit(link, matches, n_items, ridge, start=None):
    """Parameters ``[*strengths, effect, log_threshold]`` of the optimum."""
    objective = Objective(link, matches, n_items, ridge)
    start = np.r_[np.zeros(n_items + 1), -1.0] if start is None else start
    options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-12, "gtol": 1e-5, "maxcor": 20}
    # Beyond these thresholds everything is a tie or nothing is.
    bounds = [(None, None)] * (n_items + 1) + [(-12.0, 6.0)]
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    if not found.success:
        raise RuntimeError(f"{link} with ridge {ridge:g}: {found.message}")
    return found.x


def predict(link, theta, pairs, order):
    """Probabilities (n, 3) that the second wins, of a tie, that the first wins."""
    margin = incidence(pairs, len(theta) - 2) @ theta[:-2] + theta[-2] * order
    first, tie = LINKS[link](margin, theta[-1])
    second, _ = LINKS[link](-margin, theta[-1])
    return np.exp(np.column_stack([second.value, tie.value, first.value]))


def log_loss(y, proba):
    """Mean negative log probability of the outcomes -1, 0, 1, in nats."""
    return -float(np.mean(np.log(proba[np.arange(len(y)), y + 1])))


def fit_by_validation(link, matches, n_items, splits, ridges=RIDGES):
    """Parameters with the ridge of the least held-out log-loss, and that ridge.

    ``splits``: pairs of rows to fit and rows to judge by.
    """
    losses = np.zeros(len(ridges))
    n_judged = sum(len(judged) for _, judged in splits)
    for rows, judged in splits:
        kept, other = matches.take(rows), matches.take(judged)
        theta = None
        for k in reversed(range(len(ridges))):  # from few degrees of freedom to many
            theta = fit(link, kept, n_items, ridges[k], theta)
            proba = predict(link, theta, other.pairs, other.order)
            losses[k] += log_loss(other.y, proba) * len(judged) / n_judged
    best = ridges[int(np.argmin(losses))]
    return fit(link, matches, n_items, best), best
