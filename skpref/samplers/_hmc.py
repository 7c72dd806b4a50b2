"""Exact Hamiltonian Monte Carlo for N(0, Σ) on a box: chains side by side, each in its own time.

Pakman & Paninski (2014), "Exact Hamiltonian Monte Carlo for truncated multivariate Gaussians",
Journal of Computational and Graphical Statistics 23, with momenta a ~ N(0, Σ). The trajectory
v(τ) = A sin τ + B cos τ, τ in [0, π/2], is turned back at each wall that it meets; `_walls` finds
them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skpref._utils import check_number
from skpref.samplers._chains import SamplingBox, check_generator, covariance_root, start_positions
from skpref.samplers._walls import AnyWalls, WallsAtOrigin, reflector_rows


class HMCChains(NamedTuple):
    """Draws of `hmc`, the positions where the chains ended, and the walls that they met.

    Attributes
    ----------
    draws : ndarray of shape (n_chains, n_draws, t)
    state : ndarray of shape (n_chains, t)
        Last positions: pass them as `start`, with the same generator, to go on exactly.
    walls : ndarray of shape (n_chains, n_draws), int
        Walls met by each trajectory (`max_walls` + 1 for a rejected one).
    rejected_share : float
        Share of trajectories that met more than `max_walls` walls.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import hmc
    >>> chains = hmc(np.eye(2), np.ones((4, 2)), 50, rng=np.random.default_rng(0))
    >>> chains.walls.shape, chains.rejected_share
    ((4, 50), 0.0)
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
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> HMCChains:
    """Draw from N(0, Σ) on lower < v < upper, by default v > 0, by exact Hamiltonian Monte Carlo.

    Each draw is the end of a trajectory of length π/2 with a fresh momentum. A trajectory that
    meets more than `max_walls` walls is rejected: the position is kept and the draw repeated. That
    is exact (the reversed trajectory meets as many), while stopping it there would be biased.

    Parameters
    ----------
    covariance : ndarray of shape (t, t)
        Σ, symmetric positive semi-definite: coordinates may be linear combinations of others.
    start : ndarray of shape (t,) or (n_chains, t)
        Starting positions strictly inside the box, for example the mean of the truncated normal as
        found by expectation propagation. Where Σ is singular, in its range.
    n_draws : int
        Draws of each chain, none of them discarded: burn-in is the caller's.
    rng : numpy.random.Generator
    n_chains : int, optional
        Chains side by side; by default as many as `start` has rows. 64 is a good number: a step
        of all chains costs little more than a step of one.
    max_walls : int, optional
        Cap on the walls of one trajectory, by default 20 000 + 100 t. Consistent answers meet about
        t/2 walls; contradictory ones many more, growing as 1/σ, and a narrow slab about as many as
        go into a deviation of its coordinate.
    lower, upper : float or ndarray of shape (t,), optional
        The walls, by default 0 and inf; -inf and inf: no wall.

    Returns
    -------
    HMCChains

    Raises
    ------
    ValueError
        If the covariance is not positive semi-definite, a coordinate has no room between its
        walls, or `start` or a number is out of range.

    Notes
    -----
    `n` draws and then `m` draws from the returned state with the same generator are the same
    numbers as `n + m` draws: momenta are drawn in the order of the draws, whatever the chains'
    progress.

    Walls that all pass through the origin, one a coordinate, are found several times faster.

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
    trajectories = HMCSampler(covariance, lower, upper)
    return trajectories.draw(start, n_draws, rng=rng, n_chains=n_chains, max_walls=max_walls)


class HMCSampler:
    """Exact Hamiltonian Monte Carlo of one N(0, Σ) on one box, factorised once, see `hmc`.

    Parameters
    ----------
    covariance, lower, upper
        As in `hmc`.
    """

    def __init__(
        self,
        covariance: np.ndarray,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ):
        covariance, self._root = covariance_root(covariance)
        self._variance = covariance.diagonal()
        self._box = SamplingBox.from_walls(lower, upper, len(covariance))
        self._reflectors = reflector_rows(covariance)

    def draw(
        self,
        start: np.ndarray,
        n_draws: int,
        *,
        rng: np.random.Generator,
        n_chains: int | None = None,
        max_walls: int | None = None,
    ) -> HMCChains:
        """Draw ``n_draws`` of each chain from a start, see `hmc`."""
        t = len(self._variance)
        check_number("n_draws", n_draws, low=1, integer=True)
        check_generator(rng)
        positions = start_positions(start, n_chains, t, self._box)
        max_walls = most_walls(t) if max_walls is None else max_walls
        check_number("max_walls", max_walls, low=0, integer=True)
        draws = _draw_momenta(self._root, len(positions), n_draws, rng)
        kind = WallsAtOrigin if self._box.is_positive else AnyWalls
        walls = kind(self._reflectors, self._variance, self._box, len(positions))
        n_met = _run_trajectories(walls, positions, draws, max_walls)
        rejected_share = float(np.mean(n_met > max_walls))
        return HMCChains(draws, draws[:, -1].copy(), n_met, rejected_share)


def most_walls(t: int) -> int:
    """Return the cap on the walls of one trajectory of t coordinates, where none is given."""
    return 20_000 + 100 * t


def _draw_momenta(root, n_chains, n_draws, rng):
    """Return momenta ~ N(0, Σ) of all trajectories, (n_chains, n_draws, t)."""
    t, rank = root.shape
    momenta = np.empty((n_chains, n_draws, t))
    normals = np.empty((n_chains, rank))
    for k in range(n_draws):  # draw by draw, so that the stream does not depend on n_draws
        rng.standard_normal(out=normals)
        np.matmul(normals, root.T, out=momenta[:, k])
    return momenta


def _run_trajectories(walls, positions, draws, max_walls):
    """Run all trajectories, and return the number of walls that each of them met.

    ``draws`` holds their momenta, which are replaced by the positions where they end.
    """
    n_chains, n_draws, _ = draws.shape
    n_met = np.zeros((n_chains, n_draws), dtype=np.int64)
    chain = np.arange(n_chains)  # the chain in each row of the work arrays
    draw = np.zeros(n_chains, dtype=np.int64)  # the draw that it is at
    met = np.zeros(n_chains, dtype=np.int64)  # walls met by its trajectory
    # A and B: positions at τ = π/2 and at τ = 0
    ends = np.stack([walls.to_work_rows(draws[:, 0]), walls.to_work_rows(positions)])
    while chain.size:
        hit = walls.next_event(ends)
        met += hit
        too_many = met > max_walls
        which = (too_many | ~hit).nonzero()[0]
        if not which.size:
            continue
        rows, at = chain[which], draw[which]
        end, lost = walls.to_draws(ends[0, which])
        rejected = too_many[which] | lost
        n_met[rows, at] = np.where(rejected, max_walls + 1, met[which])
        if rejected.any():
            began = np.where((at > 0)[:, None], draws[rows, at - 1], positions[rows])
            end[rejected] = began[rejected]
        draws[rows, at] = end
        ends[1, which] = walls.to_work_rows(end)
        waiting = np.minimum(at + 1, n_draws - 1)  # the place of the next draw holds its momentum
        ends[0, which] = walls.to_work_rows(draws[rows, waiting])
        walls.reset_times(which)
        met[which] = 0
        draw[which] = at + 1
        if at.max() + 1 == n_draws:
            alive = draw < n_draws
            chain, draw, met = chain[alive], draw[alive], met[alive]
            ends = np.ascontiguousarray(ends[:, alive])
            walls.keep_chains(alive)
    return n_met
