"""Equal mixtures of normals of one deviation: distribution functions, quantiles, expectations."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise
from scipy.special import ndtr, ndtri

from skpref._linalg import Array


def mixture_cdf(c: Array, means: Array, deviation: Array) -> Array:
    """P(value ≤ c) of n mixtures, (n,).

    Parameters
    ----------
    c : ndarray of shape (n,)
    means : ndarray of shape (n, n_components)
    deviation : ndarray of shape (n,)
        0 makes point masses.
    """
    sure = deviation <= 0.0
    u = (c[:, None] - means) / np.where(sure, 1.0, deviation)[:, None]
    u = np.where(sure[:, None], np.where(u >= 0.0, np.inf, -np.inf), u)
    return ndtr(u).mean(axis=1)


def mixture_quantile(level: float, means: Array, deviation: Array) -> Array:
    """Quantile of n mixtures, (n,), by a root between the components' own."""
    edges = means + ndtri(level) * deviation[:, None]
    if means.shape[1] == 1:
        return edges[:, 0]
    low, high = edges.min(axis=1), edges.max(axis=1)
    slack = 1e-12 * (1.0 + np.abs(low) + np.abs(high))
    index = np.arange(len(means))

    def excess(c: ArrayLike, row: ArrayLike) -> Array:
        rows = np.ravel(np.asarray(row))
        found = mixture_cdf(np.ravel(c), means[rows], deviation[rows]) - level
        return np.reshape(found, np.shape(c))

    root = elementwise.find_root(excess, (low - slack, high + slack), args=(index,))
    return root.x


def defended(
    of: Callable[[Array, Array, Array], Array],
    means: Array,
    variance: Array,
    order: Array,
    log: bool,
) -> Array:
    """Mean of a function of normals over the components and a Gaussian of their moments.

    Parameters
    ----------
    of : callable
        ``of(mean, variance, order)`` → values, or their logarithms, on new last axes.
    means : ndarray of shape (n, n_components)
    variance, order : ndarray of shape (n,)
    log : bool
        Whether values are logarithms.
    """
    if means.shape[1] == 1:
        return of(means[:, 0], variance, order)
    matched = of(means.mean(axis=1), variance + means.var(axis=1), order)
    each, n = of(means, variance[:, None], order[:, None]), means.shape[1] + 1
    if not log:
        return (each.sum(axis=1) + matched) / n
    top = np.maximum(each.max(axis=1), matched)
    top = np.where(np.isfinite(top), top, 0.0)
    each = each - top[:, None]
    total = np.exp(each, out=each).sum(axis=1) + np.exp(matched - top)
    with np.errstate(divide="ignore"):  # no component speaks for it
        return np.minimum(np.log(total / n), 0.0) + top  # a mean is no more than the largest
