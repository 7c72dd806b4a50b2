"""What the samplers share: a checked covariance, the box, starting positions strictly inside it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky

from skpref._utils import check_number, pivoted_cholesky

# A position may touch a wall within rounding; it is kept this far inside, so that ratios stay
# finite.
SMALLEST = float(np.sqrt(np.finfo(np.float64).tiny))


class Chains(NamedTuple):
    """Draws of `gibbs` or `liness`, and the positions where the chains ended.

    Attributes
    ----------
    draws : ndarray of shape (n_chains, n_draws, t)
    state : ndarray of shape (n_chains, t)
        Last positions: pass them as `start`, with the same generator, to go on exactly.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import gibbs
    >>> rng = np.random.default_rng(0)
    >>> chains = gibbs(np.eye(2), np.ones((4, 2)), 50, rng=rng)
    >>> chains.draws.shape, bool(chains.draws.min() > 0.0)
    ((4, 50, 2), True)
    >>> more = gibbs(np.eye(2), chains.state, 50, rng=rng)  # goes on
    """

    draws: np.ndarray
    state: np.ndarray


def cholesky_factor(
    covariance: np.ndarray, advice: str = "raise the noise variance on its diagonal."
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower Cholesky factor of a covariance matrix, after checking it.

    Parameters
    ----------
    covariance : ndarray of shape (t, t)
        Symmetric, positive definite.
    advice : str
        What to do where it is not, for the error.

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
    covariance = _check_covariance(covariance)
    try:
        factor = cholesky(covariance, lower=True)
    except np.linalg.LinAlgError as error:
        raise ValueError(f"covariance is not positive definite; {advice}") from error
    return covariance, factor


def covariance_root(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a root of a covariance matrix that may be singular, after checking it.

    Parameters
    ----------
    covariance : ndarray of shape (t, t)
        Symmetric, positive semi-definite.

    Returns
    -------
    covariance : ndarray of shape (t, t)
        As float64, C-contiguous.
    root : ndarray of shape (t, r)
        F with F Fᵀ = covariance: the Cholesky factor where there is one, else with as many columns
        as the numerical rank.

    Raises
    ------
    ValueError
        If the matrix is not square, not finite, not symmetric or not positive semi-definite.
    """
    covariance = _check_covariance(covariance)
    variance = covariance.diagonal()
    rounding = rounding_share(len(covariance))
    try:
        factor = cholesky(covariance, lower=True)
        # A pivot that is rounding is no variance: draws would leave the range by its root.
        if np.all(factor.diagonal() ** 2 > rounding * variance):
            return covariance, factor
    except np.linalg.LinAlgError:
        pass
    sd = np.sqrt(np.where(variance > 0, variance, 1.0))
    factor, order = pivoted_cholesky(covariance / np.multiply.outer(sd, sd), rounding)
    root = np.empty_like(factor)
    root[order] = factor
    root *= sd[:, None]
    missing = np.abs(root @ root.T - covariance).max()
    if missing > 1e-8 * np.abs(covariance).max() or variance.min() < 0:
        raise ValueError(
            "covariance is not positive semi-definite (its closest root misses an entry by "
            f"{missing:.3g}); raise the noise variance on its diagonal."
        )
    return covariance, root


def rounding_share(t: int) -> float:
    """Return the share of a variance, given the other coordinates, that counts as rounding."""
    return 10 * t * float(np.finfo(np.float64).eps)


def _check_covariance(covariance):
    """Return a covariance as a C-contiguous array; ValueError unless finite and symmetric."""
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
    return covariance


class SamplingBox(NamedTuple):
    """Box that the samplers draw in: lower < v < upper in every coordinate.

    Attributes
    ----------
    lower, upper : ndarray of shape (t,)
        The walls; -inf and inf where there is none.
    least, most : ndarray of shape (t,)
        The closest to the walls that a position is kept.
    """

    lower: np.ndarray
    upper: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def from_walls(cls, lower: ArrayLike | None, upper: ArrayLike | None, n: int) -> "SamplingBox":
        """Return the box of checked walls of n coordinates; None: 0 below and inf above."""
        walls = []
        for name, given, default in (("lower", lower, 0.0), ("upper", upper, np.inf)):
            wall = np.asarray(default if given is None else given, dtype=np.float64)
            if wall.shape not in ((), (n,)):
                raise ValueError(
                    f"{name} has shape {wall.shape}; a number or one for each of the {n} "
                    "coordinates is needed."
                )
            if np.isnan(wall).any():
                raise ValueError(f"{name} holds NaN; numbers and infinities are allowed.")
            walls.append(np.broadcast_to(wall, (n,)).copy())
        low, high = walls
        least = np.where(low == 0, SMALLEST, np.nextafter(low, np.inf))
        most = np.where(high == 0, -SMALLEST, np.nextafter(high, -np.inf))
        if (least > most).any():
            j = int((least > most).argmax())
            raise ValueError(
                f"no number lies between lower[{j}] = {low[j]:.17g} and upper[{j}] = "
                f"{high[j]:.17g}; lower < upper is needed in every coordinate."
            )
        return cls(low, high, least, most)

    @property
    def is_positive(self) -> bool:
        """Return whether the box is v > 0."""
        return not self.lower.any() and bool(np.isposinf(self.upper).all())

    @property
    def is_cone(self) -> bool:
        """Return whether every wall is at 0 or absent, so that multiples of v stay inside."""
        return bool(np.all(_passes_origin(self.lower) & _passes_origin(self.upper)))

    def clip(self, v: np.ndarray) -> np.ndarray:
        """Return positions (..., t) strictly inside, where rounding put some on a wall."""
        return np.clip(v, self.least, self.most)


def _passes_origin(wall):
    """Return which walls are at 0 or absent."""
    return (wall == 0) | np.isinf(wall)


def start_positions(
    start: np.ndarray, n_chains: int | None, t: int, box: SamplingBox | None = None
) -> np.ndarray:
    """Return starting positions of all chains, strictly inside the box, in a new array.

    Parameters
    ----------
    start : ndarray of shape (t,) or (n_chains, t)
        One position for all chains, or one each.
    n_chains : int or None
        Number of chains; None takes it from `start`.
    t : int
        Number of coordinates.
    box : SamplingBox, optional
        By default v > 0.

    Returns
    -------
    ndarray of shape (n_chains, t)

    Raises
    ------
    ValueError
        If the shape does not fit, or a coordinate does not lie strictly inside the box.
    """
    start = np.asarray(start, dtype=np.float64)
    if n_chains is None:
        n_chains = start.shape[0] if start.ndim == 2 else 1
    check_number("n_chains", n_chains, low=1, integer=True)
    if start.shape not in ((t,), (n_chains, t)):
        raise ValueError(
            f"start has shape {start.shape}; allowed are ({t},) and ({n_chains}, {t})."
        )
    box = SamplingBox.from_walls(None, None, t) if box is None else box
    start = np.broadcast_to(start, (n_chains, t)).copy()
    inside = (start > box.lower) & (start < box.upper) & np.isfinite(start)
    if not inside.all():
        c, j = np.unravel_index(int((~inside).argmax()), inside.shape)
        allowed = (
            "strictly positive and finite in every coordinate (the target is v > 0)"
            if box.is_positive
            else f"strictly between lower[{j}] = {box.lower[j]:g} and upper[{j}] = "
            f"{box.upper[j]:g} there, and finite"
        )
        raise ValueError(
            f"start is {start[c, j]:g} in coordinate {j} of chain {c}; it must be {allowed}."
        )
    return box.clip(start)


def check_generator(rng: np.random.Generator) -> None:
    """Raise a TypeError unless `rng` is a `numpy.random.Generator`."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a numpy.random.Generator, got {rng!r}; pass np.random.default_rng(seed)."
        )
