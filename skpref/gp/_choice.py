"""Which of several items is chosen: probabilities of a posterior, noise of the judge included."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import Array, row_blocks
from skpref.data import first_item_places
from skpref.gp._orthants import best_of, best_of_mixture, log_best_of, log_best_of_mixture


def choice_proba(
    posterior: Any,
    items: Array,
    sets: NDArray[np.intp],
    order: ArrayLike = 1,
    log: bool = False,
    offset: Array | None = None,
) -> Array:
    """P(each item is the best of its set), as the judge sees them, shape (n_sets, k).

    Parameters
    ----------
    posterior : Posterior
    items : ndarray of shape (n, n_features)
    sets : ndarray of int of shape (n_sets, k)
        Rows of ``items``, -1 where there is none.
    order : ndarray of int of shape (n_sets,) or int
        1: the first of the set is shown first, 0: none is.
    log : bool
        Natural logarithms.
    offset : ndarray of shape (n_sets, k), optional
        Known part of each utility, finite everywhere.
    """
    noise = posterior.likelihood.item_noise
    if noise is None:
        raise ValueError(
            f"{type(posterior.likelihood).__name__} does not say how noisy one item is "
            "(Likelihood.item_noise), so that choices of more than two have no probability."
        )
    n_sets, k = sets.shape
    orders = np.broadcast_to(np.asarray(order), (n_sets,))
    probability = np.empty(sets.shape)
    for some in row_blocks(n_sets, k * posterior.n_components):
        known = None if offset is None else offset[some]
        of_answers = posterior.select_answers(some)
        probability[some] = _proba_of_sets(
            of_answers, items, sets[some], orders[some], noise, log, known
        )
    return probability


def _proba_of_sets(posterior, items, sets, order, noise, log, offset):
    """Return the probability, or its logarithm, that each item of a set is chosen, (n, k)."""
    present = sets >= 0
    used, places = np.unique(sets[present], return_inverse=True)
    at = np.zeros(sets.shape, dtype=np.intp)
    at[present] = places.reshape(-1)
    rows = items[used]
    means, covariance = posterior.set_moments(rows, at)
    means[np.arange(len(sets)), first_item_places(sets)] += (
        posterior.likelihood.order_shift * order
    )[:, None]
    if offset is not None:
        means += offset[:, :, None]
    covariance[:, np.arange(sets.shape[1]), np.arange(sets.shape[1])] += noise
    n_components = means.shape[2]
    of = log_best_of if log else best_of
    if n_components == 1:
        return of(means[:, :, 0], covariance, present)
    # As of duels, a Gaussian of the mixture's moments counts as one component more.
    centre = means.mean(axis=2)
    spread = means - centre[:, :, None]
    matched = of(centre, covariance + spread @ np.swapaxes(spread, 1, 2) / n_components, present)
    if not log:
        mixture = best_of_mixture(means, covariance, present)
        return (n_components * mixture + matched) / (n_components + 1)
    share = np.log1p(-1.0 / (n_components + 1))
    mixture = log_best_of_mixture(means, covariance, present) + share
    return np.logaddexp(mixture, matched - np.log(n_components + 1))
