"""Rows of every kind as the probit sees them: half-lines and slabs of a shifted margin."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from skpref.likelihoods._mills import mills
from skpref.likelihoods._slab import Slab, slab
from skpref.likelihoods._terms import DUEL, PART, TIE, Answers


class Rows(NamedTuple):
    """What the rows are.

    Attributes
    ----------
    lead : ndarray of shape (n,)
        Derivative of ``ahead`` in the order effect.
    ahead : ndarray of shape (n,)
        What the order effect adds to the margin.
    shift : ndarray of shape (n,)
        The same, less the threshold that a duel's winner must exceed.
    noise : ndarray of shape (n,)
        Variance of the noise on the margin that belongs to the factor.
    ties : ndarray of int
        Which rows are ties.
    threshold : float
        Half the width of their slab; 0 if there are none.
    """

    lead: NDArray[np.float64]
    ahead: NDArray[np.float64]
    shift: NDArray[np.float64]
    noise: NDArray[np.float64]
    ties: NDArray[np.intp]
    threshold: float


class Factor(NamedTuple):
    """Log-probability, and derivatives as `Mills` has them."""

    value: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    left: NDArray[np.float64]
    third: NDArray[np.float64]


def rows_of(answers: Answers, noise: float, threshold: float | None, order_effect: float) -> Rows:
    """What rows of any kind are.

    Raises
    ------
    ValueError
        If there are ties, but no threshold.
    """
    kind = answers.kind
    ties = np.flatnonzero(kind == TIE)
    if threshold is None:
        if len(ties):
            raise ValueError(
                f"{len(ties)} of {len(kind)} answers are ties; set tie_threshold to a number to "
                "learn from them."
            )
        threshold = 0.0
    lead = answers.lead.astype(np.float64)
    ahead = order_effect * lead
    shift = np.where(kind == DUEL, ahead - threshold, ahead)
    return Rows(lead, ahead, shift, np.where(kind == PART, 0.0, noise), ties, threshold)


def factor(mean, scale, rows: Rows | None) -> Factor:
    """Of every row, in units of ``scale``, the deviation of the noisy margin; None: plain duels."""
    u = (mean if rows is None else mean + rows.shift) / scale
    found = Factor(log_ndtr(u), *mills(u))
    if rows is not None and len(rows.ties):
        for whole, part in zip(found, ties_of(mean, scale, rows), strict=False):
            whole[rows.ties] = part
    return found


def ties_of(mean, scale, rows: Rows) -> Slab:
    """The slabs of those rows that are ties."""
    scale = np.broadcast_to(scale, mean.shape)[rows.ties]
    return slab((mean + rows.ahead)[rows.ties] / scale, rows.threshold / scale)
