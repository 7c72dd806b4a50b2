"""The Plackett-Luce model of rankings, by maximum likelihood with a ridge.

Of the items that remain, item i is taken next with probability exp(s_i) / sum of exp(s_j). The
penalty is ridge / 2 times the sum of squared strengths s.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

RIDGES = np.logspace(-3, 3, 13)


class Objective:
    """Penalised negative log-likelihood of the strengths; ``rankings`` (n, k), best first."""

    def __init__(self, rankings, n_items, ridge):
        self.rankings, self.n_items, self.ridge = rankings, n_items, ridge

    def __call__(self, strengths):
        s = strengths[self.rankings]
        value = 0.5 * self.ridge * strengths @ strengths
        slopes = np.zeros(s.shape)
        for j in range(s.shape[1] - 1):
            rest = s[:, j:]
            value += float(np.sum(logsumexp(rest, axis=1) - s[:, j]))
            slopes[:, j:] += softmax(rest, axis=1)
            slopes[:, j] -= 1.0
        counts = np.bincount(self.rankings.ravel(), slopes.ravel(), minlength=self.n_items)
        return value, counts + self.ridge * strengths


def fit(rankings, n_items, ridge, start=None):
    """Strengths of the optimum."""
    start = np.zeros(n_items) if start is None else start
    options = {"maxiter": 5000, "ftol": 1e-12, "gtol": 1e-5}
    objective = Objective(rankings, n_items, ridge)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    if not found.success:
        raise RuntimeError(f"Plackett-Luce with ridge {ridge:g}: {found.message}")
    return found.x


def choice_proba(strengths, shown):
    """Probabilities (n, k) of each of the shown items to be the best."""
    return np.exp(log_softmax(strengths[shown], axis=1))


def fit_by_validation(rankings, n_items, splits, ridges=RIDGES):
    """Strengths with the ridge of the largest held-out likelihood of rankings, and that ridge."""
    losses = np.zeros(len(ridges))
    for rows, judged in splits:
        strengths = None
        held_out = Objective(rankings[judged], n_items, 0.0)
        for k in reversed(range(len(ridges))):
            strengths = fit(rankings[rows], n_items, ridges[k], strengths)
            losses[k] += held_out(strengths)[0]
    best = ridges[int(np.argmin(losses))]
    return fit(rankings, n_items, best), best
