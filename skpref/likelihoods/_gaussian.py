"""The sign of a Gaussian margin, without noise of the judge."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr


def standardise(
    mean: NDArray[np.float64], variance: NDArray[np.float64], noise: float = 0.0
) -> NDArray[np.float64]:
    """Mean over standard deviation of a margin; a margin that is surely zero gives 0."""
    total = variance + noise
    sure = total <= 0.0
    ratio = mean / np.sqrt(np.where(sure, 1.0, total))
    return np.where(sure, np.where(mean == 0.0, 0.0, np.copysign(np.inf, mean)), ratio)


def sign_proba(
    mean: NDArray[np.float64], variance: NDArray[np.float64], log: bool = False
) -> NDArray[np.float64]:
    """P(margin > 0), or its logarithm, finite in the tails."""
    u = standardise(mean, variance)
    return log_ndtr(u) if log else ndtr(u)
