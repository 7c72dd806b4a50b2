"""Coordinate Gibbs sampling of N(0, Σ) on a box, by default v > 0, chains side by side.

Takeno, Nomura & Karasuyama (2023), Algorithm 3, with the conditional mean as in GPML (5.12) and a
move of the radius before each sweep.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import ndtr, ndtri

from skpref._utils import check_number
from skpref.samplers._chains import (
    SMALLEST,
    Chains,
    SamplingBox,
    check_generator,
    cholesky_factor,
    rounding_share,
    start_positions,
)
from skpref.samplers.truncated_normal import TAIL, quantile_below, quantile_between

_SINGULAR = (
    "coordinates that are linear combinations of others cannot be renewed alone: use hmc, which "
    "takes a singular covariance, or raise the noise variance on its diagonal."
)


def gibbs(
    covariance: np.ndarray,
    start: np.ndarray,
    n_draws: int,
    *,
    rng: np.random.Generator,
    n_chains: int | None = None,
    radius_move: bool = True,
    thin: int = 1,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> Chains:
    """Draw from N(0, Σ) on lower < v < upper, by default v > 0, by coordinate Gibbs sweeps.

    Parameters
    ----------
    covariance : ndarray of shape (t, t)
        Σ, symmetric positive definite; `hmc` takes a singular one too.
    start : ndarray of shape (t,) or (n_chains, t)
        Starting positions strictly inside the box.
    n_draws : int
        Draws of each chain, none of them discarded: burn-in is the caller's.
    rng : numpy.random.Generator
    n_chains : int, optional
        Chains side by side; by default as many as `start` has rows.
    radius_move : bool, default=True
        Before each sweep scale v by s, where s² vᵀΣ⁻¹v ~ χ²_t. v > 0 is a cone, so that the radius
        is independent of the direction: an exact move, and the one along which coordinates are
        slow. Left out where a wall does not pass through the origin.
    thin : int, default=1
        Sweeps a draw.
    lower, upper : float or ndarray of shape (t,), optional
        The walls, by default 0 and inf; -inf and inf: no wall.

    Returns
    -------
    Chains

    Raises
    ------
    ValueError
        If the covariance is not positive definite, a coordinate has no room between its walls, or
        `start` or a number is out of range.

    References
    ----------
    Takeno, Nomura & Karasuyama (2023), ICML, Algorithm 3; Rasmussen & Williams (2006), (5.12).

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import gibbs
    >>> chains = gibbs(np.eye(2), np.ones(2), 500, n_chains=16, rng=np.random.default_rng(0))
    >>> bool(np.allclose(chains.draws.mean(axis=(0, 1)), np.sqrt(2 / np.pi), atol=0.05))
    True
    """
    covariance, factor = cholesky_factor(covariance, _SINGULAR)
    t = len(covariance)
    check_number("n_draws", n_draws, low=1, integer=True)
    check_number("thin", thin, low=1, integer=True)
    check_generator(rng)
    precision = cho_solve((factor, True), np.eye(t))  # Gibbs needs every entry of Σ⁻¹
    scale = np.sqrt(precision.diagonal())
    # A conditional variance that is rounding of the variance: singular, though a factor was found.
    if np.max(covariance.diagonal() * scale**2) > 1 / rounding_share(t):
        raise ValueError(f"covariance is not positive definite; {_SINGULAR}")
    # In units of its conditional sd 1/√P_jj coordinate j has the conditional mean (pull v)_j:
    # v_j − [Pv]_j / P_jj = −Σ_{i≠j} P_ji v_i / P_jj.  # GPML (5.12)
    pull = precision / np.multiply.outer(-scale, scale)
    np.fill_diagonal(pull, 0.0)
    # Coordinates by chains: the values of one coordinate over the chains lie together.
    box = SamplingBox.from_walls(lower, upper, t)
    start = start_positions(start, n_chains, t, box)
    walls = box.lower * scale, box.upper * scale
    radius_move = radius_move and box.is_cone
    n_chains = len(start)
    v = np.ascontiguousarray(start.T) * scale[:, None]

    draws = np.empty((n_chains, n_draws, t))
    for sweep in range(n_draws * thin):
        if radius_move:
            radius2 = np.einsum("ic,ic->c", v, v - pull @ v)
            lost = ~((radius2 > 0.0) & (radius2 < np.inf))
            if lost.any():  # squares out of the range of doubles, or cancelled
                v[:, lost] /= v[:, lost].max(axis=0)
                white = solve_triangular(factor, v[:, lost] / scale[:, None], lower=True)
                radius2[lost] = np.einsum("ic,ic->c", white, white)
            v *= np.sqrt(rng.chisquare(t, n_chains) / radius2)
        _sweep(v, pull, walls, 1.0 - rng.random((t, n_chains)))
        k = sweep // thin
        draws[:, k] = (v / scale[:, None]).T
        if not box.is_positive:
            draws[:, k] = box.clip(draws[:, k])
        # As on starting from the state, to the last bit.
        v = np.ascontiguousarray(draws[:, k].T) * scale[:, None]
    return Chains(draws, draws[:, -1].copy())


def _sweep(v, pull, walls, uniform):
    """Draw every coordinate of v (t, n_chains) anew, given the others, in place."""
    draw = _draw_between if np.any(walls[1] < np.inf) else _draw_above
    before = v.copy()
    means = _draw_coordinates(v, before, pull, walls, uniform, draw)
    if draw is _draw_above and np.min(means - walls[0][:, None]) < -TAIL:
        _draw_coordinates(v, before, pull, walls, uniform, _draw_between)


def _draw_coordinates(v, previous, pull, walls, uniform, draw):
    """Write a draw of each coordinate, one after the other, to v; return conditional means."""
    # Above row i the changes of those drawn already, from row i on the means before these.
    change, means = pull @ previous, np.empty_like(previous)
    ends = (wall.tolist() for wall in walls)
    coordinates = enumerate(zip(means, v, previous, uniform, *ends, strict=True))
    for i, (mean, new, old, share, lower, upper) in coordinates:
        np.dot(pull[i, :i], change[:i], out=mean)
        mean += change[i]
        draw(mean, lower, upper, share, new)
        np.subtract(new, old, out=change[i])
    return means


def _draw_between(mean, lower, upper, uniform, out):
    """Write quantiles of N(mean, 1) between two walls, at one uniform a chain, to ``out``."""
    if upper < np.inf:
        np.clip(mean + quantile_between(lower - mean, upper - mean, uniform), lower, upper, out)
        return
    # mean + x with x ~ N(0, 1) given x >= lower − mean; by symmetry mean − (x given x <= ...)
    np.maximum(mean - quantile_below(mean - lower, uniform), lower or SMALLEST, out=out)


def _draw_above(mean, lower, upper, uniform, out):
    """Write quantiles of N(mean, 1) above a wall that is not in the far tail to ``out``."""
    ndtr(mean - lower if lower else mean, out)
    out *= uniform
    ndtri(out, out)
    np.subtract(mean, out, out=out)
    np.maximum(out, lower or SMALLEST, out=out)
