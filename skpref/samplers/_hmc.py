"""Exact Hamiltonian Monte Carlo for N(0, Σ) on v > 0: chains side by side, each in its own time.

Pakman & Paninski (2014), "Exact Hamiltonian Monte Carlo for truncated multivariate Gaussians",
Journal of Computational and Graphical Statistics 23, with momenta a ~ N(0, Σ).

The trajectory v(τ) = A sin τ + B cos τ, τ in [0, π/2], is turned back at each wall that it meets.
At a hit of wall j the momentum is reflected, a ← R a with R = I − (2/Σ_jj) Σ_j e_jᵀ, and R leaves a
position with v_j = 0 where it is. So from the hit on the *whole* ellipse is R v(τ): it is enough to
reflect A and B, and no time, sine or arctangent is ever computed (method of images):

- v(π/2) = A, so wall i is ahead if and only if A_i < 0; then B_i > 0 and tan τ_i = −B_i/A_i;
- the first wall ahead is the one with the smallest A_i/|B_i|, and if that is positive, A is the
  end;
- reflecting turns A_j, B_j into −A_j, −B_j exactly (the diagonal of 2Σ_j/Σ_jj is exactly 2), hence
  wall j is never met twice in a row, and there is no position to be rounded below 0 at the hit.

|B_i| instead of B_i is the guard against rounding: a coordinate that was left a hair below 0 and is
on its way out (A_i < 0, B_i <= 0) comes first and is put right at once.
"""

from typing import NamedTuple

import numpy as np

from skpref._parameters import check_number
from skpref.samplers._chains import SMALLEST, check_generator, cholesky_factor, start_positions

try:  # rows += coefficient × row of a table in one compiled pass: twice as fast as ufuncs
    from scipy.sparse._sparsetools import csr_matvecs as _csr_matvecs
except ImportError:  # pragma: no cover - it is not public, though unchanged since 2008
    _csr_matvecs = None

# Events between two looks at which trajectories are over: a look costs as much as an event or two,
# and those that are over wait for it.
_STEPS = 4


class HMCChains(NamedTuple):
    """What `hmc` returns.

    Attributes
    ----------
    draws : ndarray of shape (n_chains, n_draws, t)
    state : ndarray of shape (n_chains, t)
        Last positions: pass them as `start`, with the same generator, to go on exactly.
    walls : ndarray of shape (n_chains, n_draws), int
        Walls met by each trajectory (`max_walls` + 1 for a rejected one).
    rejected_share : float
        Share of trajectories that met more than `max_walls` walls.
    """

    draws: np.ndarray
    state: np.ndarray
    walls: np.ndarray
    rejected_share: float


def hmc(
    covariance: np.ndarray,
    start: np.ndarray,
    n_draws: int,
    *,
    rng: np.random.Generator,
    n_chains: int | None = None,
    max_walls: int | None = None,
) -> HMCChains:
    """Draw from N(0, Σ) on v > 0 by exact Hamiltonian Monte Carlo.

    Each draw is the end of a trajectory of length π/2 with a fresh momentum. A trajectory that
    meets more than `max_walls` walls is rejected: the position is kept and the draw repeated. That
    is exact (the reversed trajectory meets as many), while stopping it there would be biased.

    Parameters
    ----------
    covariance : ndarray of shape (t, t)
        Σ, symmetric positive definite.
    start : ndarray of shape (t,) or (n_chains, t)
        Strictly positive starting positions, for example the mean of the truncated normal as found
        by expectation propagation.
    n_draws : int
        Draws of each chain, none of them discarded: burn-in is the caller's.
    rng : numpy.random.Generator
    n_chains : int, optional
        Chains side by side; by default as many as `start` has rows. 64 is a good number: a step
        of all chains costs little more than a step of one.
    max_walls : int, optional
        Cap on the walls of one trajectory, by default 20 000 + 100 t. Consistent answers meet about
        t/2 walls; contradictory ones many more, growing as 1/σ.

    Returns
    -------
    HMCChains

    Raises
    ------
    ValueError
        If the covariance is not positive definite, or `start` or a number is out of range.

    Notes
    -----
    `n` draws and then `m` draws from the returned state with the same generator are the same
    numbers as `n + m` draws: momenta are drawn in the order of the draws, whatever the chains'
    progress.

    References
    ----------
    Pakman & Paninski (2014), J. Comput. Graph. Stat. 23, 518-542.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import hmc
    >>> chains = hmc(np.eye(2), np.ones(2), 500, n_chains=16, rng=np.random.default_rng(0))
    >>> chains.draws.shape
    (16, 500, 2)
    >>> bool(np.allclose(chains.draws.mean(axis=(0, 1)), np.sqrt(2 / np.pi), atol=0.05))
    True
    """
    covariance, factor = cholesky_factor(covariance)
    t = len(covariance)
    check_number("n_draws", n_draws, low=1, integer=True)
    check_generator(rng)
    positions = start_positions(start, n_chains, t)
    max_walls = most_walls(t) if max_walls is None else max_walls
    check_number("max_walls", max_walls, low=0, integer=True)

    draws = _momenta(factor, len(positions), n_draws, rng)
    walls = _run(covariance, positions, draws, max_walls)
    rejected_share = float(np.mean(walls > max_walls))
    return HMCChains(draws, draws[:, -1].copy(), walls, rejected_share)


def most_walls(t: int) -> int:
    """Cap on the walls of one trajectory of t coordinates, where none is given."""
    return 20_000 + 100 * t


def _momenta(factor, n_chains, n_draws, rng):
    """Momenta a ~ N(0, Σ) of every trajectory, in the array that the draws will overwrite."""
    t = len(factor)
    momenta = np.empty((n_chains, n_draws, t))
    normals = np.empty((n_chains, t))
    for k in range(n_draws):  # draw by draw, so that the stream does not depend on n_draws
        rng.standard_normal(out=normals)
        np.matmul(normals, factor.T, out=momenta[:, k])
    return momenta


def _run(covariance, positions, draws, max_walls):
    """Turn the momenta in `draws` into draws, in place; return the walls met by each trajectory."""
    n_chains, n_draws, t = draws.shape
    walls = np.zeros((n_chains, n_draws), dtype=np.int64)
    reflectors = covariance * (-2.0 / covariance.diagonal())[:, None]  # rows −2 Σ_j / Σ_jj
    np.fill_diagonal(reflectors, -2.0)

    chain = np.arange(n_chains)  # the chain in each row of the work arrays
    draw = np.zeros(n_chains, dtype=np.int64)  # the draw that it is at
    met = np.zeros(n_chains, dtype=np.int64)  # walls met by its trajectory
    ends = np.stack([draws[:, 0], positions])  # A and B: positions at τ = π/2 and at τ = 0
    ratio = np.empty((n_chains, t))
    row_start = np.arange(n_chains) * t
    while chain.size:
        for _ in range(_STEPS):
            hit = _next_event(ends, ratio, row_start, reflectors)
            met += hit
        too_many = met > max_walls
        which = (too_many | ~hit).nonzero()[0]
        if not which.size:
            continue
        rows, at = chain[which], draw[which]
        rejected = too_many[which]
        walls[rows, at] = np.minimum(met[which], max_walls + 1)
        end = np.maximum(ends[0, which], SMALLEST)
        if rejected.any():
            began = np.where((at > 0)[:, None], draws[rows, at - 1], positions[rows])
            end[rejected] = began[rejected]
        draws[rows, at] = end
        ends[1, which] = end
        waiting = np.minimum(at + 1, n_draws - 1)  # the place of the next draw holds its momentum
        ends[0, which] = draws[rows, waiting]
        met[which] = 0
        draw[which] = at + 1
        if at.max() + 1 == n_draws:
            alive = draw < n_draws
            chain, draw, met = chain[alive], draw[alive], met[alive]
            ends = np.ascontiguousarray(ends[:, alive])
            ratio, row_start = ratio[: chain.size], row_start[: chain.size]
    return walls


def _next_event(ends, ratio, row_start, reflectors):
    """Take each trajectory past its next wall, in place; say which of them met one before π/2."""
    with np.errstate(divide="ignore", invalid="ignore"):  # B_i = 0 gives −inf: first, as it should
        np.abs(ends[1], out=ratio)
        np.divide(ends[0], ratio, out=ratio)
    first = ratio.argmin(axis=1)
    at_first = row_start + first
    hit = ~(ratio.ravel().take(at_first) >= 0)
    coefficients = ends.reshape(2, -1).take(at_first, axis=1)  # A_j and B_j
    coefficients *= hit
    _reflect(ends, coefficients, first, reflectors)
    return hit


def _reflect(ends, coefficients, first, reflectors):
    """Add to row c of A and of B its own j-th entry times row j = first[c] of `reflectors`."""
    n_chains, t = ends.shape[1:]
    if _csr_matvecs is None:
        ends += coefficients[:, :, None] * reflectors[first]
        return
    # A sparse matrix with one entry a row, (2 n_chains, t), times the table, added to A and B.
    pointer = np.arange(2 * n_chains + 1, dtype=first.dtype)
    column = np.concatenate((first, first))
    _csr_matvecs(
        2 * n_chains, t, t, pointer, column, coefficients.ravel(), reflectors.ravel(), ends.ravel()
    )
