"""What the samplers share: a checked covariance and strictly positive starting positions."""

import numpy as np
from scipy.linalg import cholesky

from skpref._parameters import check_number

# A position may touch a wall within rounding; it is kept this far inside, so that ratios stay
# finite.
SMALLEST = 1e-300


def cholesky_factor(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower Cholesky factor of a covariance matrix, after checking it.

    Parameters
    ----------
    covariance : ndarray of shape (t, t)
        Symmetric, positive definite.

    Returns
    -------
    covariance : ndarray of shape (t, t)
        As float64, C-contiguous.
    factor : ndarray of shape (t, t)
        Lower triangular L with L Lᵀ = covariance.

    Raises
    ------
    ValueError
        If the matrix is not square, not finite, not symmetric or not positive definite.
    """
    covariance = np.ascontiguousarray(covariance, dtype=np.float64)
    if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1] or not covariance.size:
        raise ValueError(
            f"covariance has shape {covariance.shape}; a square matrix (t, t), t >= 1, is needed."
        )
    if not np.isfinite(covariance).all():
        raise ValueError("covariance holds NaN or infinite values; every entry must be finite.")
    asymmetry = np.abs(covariance - covariance.T).max()
    if asymmetry > 1e-8 * np.abs(covariance).max():
        raise ValueError(
            f"covariance is not symmetric (largest difference {asymmetry:.3g}); "
            "pass (covariance + covariance.T) / 2."
        )
    try:
        factor = cholesky(covariance, lower=True)
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "covariance is not positive definite; raise the noise variance on its diagonal."
        ) from error
    return covariance, factor


def start_positions(start: np.ndarray, n_chains: int | None, t: int) -> np.ndarray:
    """Starting positions of all chains, strictly positive, in an array of their own.

    Parameters
    ----------
    start : ndarray of shape (t,) or (n_chains, t)
        One position for all chains, or one each.
    n_chains : int or None
        Number of chains; None takes it from `start`.
    t : int
        Number of coordinates.

    Returns
    -------
    ndarray of shape (n_chains, t)

    Raises
    ------
    ValueError
        If the shape does not fit, or a coordinate is not a positive number.
    """
    start = np.asarray(start, dtype=np.float64)
    if n_chains is None:
        n_chains = start.shape[0] if start.ndim == 2 else 1
    check_number("n_chains", n_chains, low=1, integer=True)
    if start.shape not in ((t,), (n_chains, t)):
        raise ValueError(
            f"start has shape {start.shape}; allowed are ({t},) and ({n_chains}, {t})."
        )
    if not np.all((start > 0) & np.isfinite(start)):
        raise ValueError(
            "start must be strictly positive and finite in every coordinate (the target is v > 0); "
            "replace what is not by a small positive number."
        )
    start = np.broadcast_to(start, (n_chains, t)).copy()
    return np.maximum(start, SMALLEST, out=start)


def check_generator(rng: np.random.Generator) -> None:
    """Raise a TypeError unless `rng` is a `numpy.random.Generator`."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a numpy.random.Generator, got {rng!r}; pass np.random.default_rng(seed)."
        )
