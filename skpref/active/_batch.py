"""Several duels at once, which do not ask the same thing."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skpref._linalg import Array
from skpref.active._contracts import Candidates
from skpref.active._scores import information
from skpref.active._worlds import Worlds

# So many candidates are compared with those chosen: the best, and as many from among the rest.
_SHORTLIST = 250


def ranked(scores: Array, n: int, pairs: NDArray[np.intp], distinct: bool) -> NDArray[np.intp]:
    """The n duels of the largest scores, best first; fewer if there are not as many.

    Parameters
    ----------
    scores : ndarray of shape (n_duels,)
        Those of −inf are not chosen.
    n : int
    pairs : ndarray of int of shape (n_duels, 2)
        Which items they are of.
    distinct : bool
        Whether no item may be in two of them.
    """
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > -np.inf]
    if not distinct:
        return order[:n]
    found: list[int] = []
    used: set[int] = set()
    for index in order:
        if len(found) == n:
            break
        if used.isdisjoint(two := pairs[index].tolist()):
            found.append(int(index))
            used.update(two)
    return np.array(found, dtype=np.intp)


def diverse(
    scores: Array,
    of: Candidates,
    covariance: Callable[[NDArray[np.intp]], Array],
    n: int,
    pairs: NDArray[np.intp],
    distinct: bool,
    pending: NDArray[np.intp],
    of_variance: bool = False,
) -> NDArray[np.intp]:
    """As `ranked`, each score less what the answers to the duels before it are expected to tell.

    What answers y_B tell of an answer y is I(y; f) − I(y; f | y_B), as y and y_B share f alone.

    Parameters
    ----------
    scores : ndarray of shape (n_duels,)
        In nats.
    of : Candidates
    covariance : callable
        Rows of candidates to the covariance of their margins.
    n, pairs, distinct
        As in `ranked`.
    pending : ndarray of int
        Duels that were chosen before all others; their scores are −inf.
    of_variance : bool, default=False
        Scores are variances of the margins, of which is left what is expected after the answers.
    """
    order = ranked(scores, len(scores), pairs, False)
    rows = order
    if len(order) > 2 * _SHORTLIST:
        spaced = np.linspace(_SHORTLIST, len(order) - 1, _SHORTLIST).astype(np.intp)
        rows = order[np.r_[:_SHORTLIST, spaced]]
    rows = np.concatenate([pending, rows])
    mean, variance = (part[rows] for part in of.gaussian)
    worlds = Worlds.before(mean, variance, covariance(rows))
    before, likelihood = _open(worlds, of, rows, of_variance), of.posterior.likelihood
    chosen = list(range(len(pending)))
    for at in chosen:
        worlds = worlds.after(at, likelihood, of.lead[rows[at]])
    free = scores[rows] > -np.inf
    while len(chosen) < len(pending) + n and free.any():
        shared = before - _open(worlds, of, rows, of_variance)
        at = int(np.argmax(np.where(free, scores[rows] - shared, -np.inf)))
        chosen.append(at)
        free[at] = False
        if distinct:
            free &= ~np.isin(pairs[rows], pairs[rows[at]]).any(axis=1)
        if len(chosen) < len(pending) + n:
            worlds = worlds.after(at, likelihood, of.lead[rows[at]])
    found = rows[chosen[len(pending) :]]
    if len(found) < n:  # none of the shortlist is left
        rest = scores.copy()
        rest[found] = -np.inf
        if distinct:
            rest[np.isin(pairs, pairs[found]).any(axis=1)] = -np.inf
        found = np.r_[found, ranked(rest, n - len(found), pairs, distinct)]
    return found


def _open(worlds, of, rows, of_variance):
    """What answers would still tell, or the variances that would be left, mean over the worlds."""
    if of_variance:
        return worlds.weight @ worlds.variance
    lead = np.broadcast_to(of.lead[rows], worlds.mean.shape).ravel()
    alone = of._replace(
        means=worlds.mean.reshape(-1, 1), variance=worlds.variance.ravel(), lead=lead
    )
    return worlds.weight @ information(alone).reshape(worlds.mean.shape)
