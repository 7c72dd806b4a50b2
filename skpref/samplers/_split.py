"""Split Hamiltonian Monte Carlo for densities close to a standard normal, chains side by side.

The target is N(x; 0, I) exp(−ψ(x)). Between two kicks by −∇ψ a trajectory follows the normal part
exactly, which is a rotation of position and momentum (Shahbaba et al. 2014, section 2). Steps are
limited by ψ alone: where it is weak they are long, whatever the dimension.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from skpref._utils import Array, check_number
from skpref.samplers._chains import check_generator

Array: TypeAlias = Array
# ψ (n_chains,) and ∇ψ (n_chains, d) at positions (n_chains, d).
Potential: TypeAlias = Callable[[Array], tuple[Array, Array]]

# Length of a trajectory. A quarter turn, π/2, forgets a normal; where walls cut a normal off the
# turns are longer. Measured on duels: means gain up to 2.4 and beyond, squares lose from 2 on.
LENGTH = 2.0
# Steps of one trajectory at most.
MOST_STEPS = 500
# Acceptance that the step size is adapted to: lower costs more in rejections at the walls.
_TARGET_ACCEPTANCE = 0.88


class SplitChains(NamedTuple):
    """Draws of `split_hmc`, and the positions where the chains ended.

    Attributes
    ----------
    draws : ndarray of shape (n_chains, n_draws, d)
    state : ndarray of shape (n_chains, d)
        Last positions: pass them as `start`, with the same generator, to go on exactly.
    acceptance : ndarray of shape (n_chains, n_draws)
        Probabilities with which the trajectories were accepted.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import split_hmc
    >>> def nothing(x):  # beside the standard normal
    ...     return np.zeros(len(x)), np.zeros_like(x)
    >>> chains = split_hmc(nothing, np.zeros((4, 2)), 50, rng=np.random.default_rng(0), n_steps=3)
    >>> chains.draws.shape, float(chains.acceptance.min())
    ((4, 50, 2), 0.9999999999999964)
    """

    draws: Array
    state: Array
    acceptance: Array


class Adapted(NamedTuple):
    """Result of `adapt_steps`: steps of a trajectory, and positions to start from.

    Attributes
    ----------
    n_steps : int
        Of a trajectory.
    state : ndarray of shape (n_chains, d)
        Where the chains are now.
    acceptance : float
        Mean probability of acceptance in the later half of the trajectories.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import adapt_steps
    >>> def nothing(x):  # beside the standard normal
    ...     return np.zeros(len(x)), np.zeros_like(x)
    >>> found = adapt_steps(nothing, np.zeros((4, 2)), 30, rng=np.random.default_rng(0), first=3)
    >>> found.n_steps, found.state.shape
    (1, (4, 2))
    """

    n_steps: int
    state: Array
    acceptance: float


def split_hmc(
    potential: Potential, start: Array, n_draws: int, *, rng: np.random.Generator, n_steps: int
) -> SplitChains:
    """Draw from the density N(x; 0, I) exp(−ψ(x)).

    Parameters
    ----------
    potential : callable
        Takes positions (n_chains, d) to ψ (n_chains,) and its gradient (n_chains, d).
    start : ndarray of shape (n_chains, d)
    n_draws : int
        Draws of each chain, none of them discarded.
    rng : numpy.random.Generator
    n_steps : int
        Steps of a trajectory, as `adapt_steps` finds it.

    Returns
    -------
    SplitChains

    References
    ----------
    Shahbaba, Lan, Johnson & Neal (2014), "Split Hamiltonian Monte Carlo", Statistics and Computing
    24, 339-349.

    Examples
    --------
    A normal of mean 0.4 and variance 0.8:

    >>> import numpy as np
    >>> from skpref.samplers import split_hmc
    >>> def potential(x):
    ...     return (0.125 * x**2 - 0.5 * x).sum(axis=1), 0.25 * x - 0.5
    >>> rng = np.random.default_rng(0)
    >>> chains = split_hmc(potential, np.zeros((16, 1)), 500, rng=rng, n_steps=4)
    >>> bool(abs(chains.draws.mean() - 0.4) < 0.05), bool(abs(chains.draws.var() - 0.8) < 0.05)
    (True, True)
    """
    check_generator(rng)
    check_number("n_draws", n_draws, low=1, integer=True)
    check_number("n_steps", n_steps, low=1, integer=True)
    at = _EvaluatedPositions.evaluate(potential, np.array(start, dtype=np.float64, ndmin=2))
    draws = np.empty((len(at.x), n_draws, at.x.shape[1]))
    acceptance = np.empty((len(at.x), n_draws))
    for k in range(n_draws):
        at, acceptance[:, k] = _trajectory(potential, at, n_steps, rng)
        draws[:, k] = at.x
    return SplitChains(draws, at.x, acceptance)


def adapt_steps(
    potential: Potential,
    start: Array,
    n_draws: int,
    *,
    rng: np.random.Generator,
    first: int,
    most: int = MOST_STEPS,
) -> Adapted:
    """Find the number of steps at which the target share of trajectories is accepted.

    Dual averaging on the logarithm of the step size, with the acceptance averaged over the chains.

    Parameters
    ----------
    potential, start, rng
        As of `split_hmc`.
    n_draws : int
        Trajectories to adapt in, burn-in as well.
    first : int
        Steps of the first of them.
    most : int
        Steps at most.

    Returns
    -------
    Adapted

    References
    ----------
    Hoffman & Gelman (2014), "The No-U-Turn sampler", JMLR 15, Algorithm 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import adapt_steps
    >>> def narrow(x):  # a normal of standard deviation 0.1
    ...     return 49.5 * (x**2).sum(axis=1), 99.0 * x
    >>> rng = np.random.default_rng(0)
    >>> 10 < adapt_steps(narrow, np.zeros((16, 1)), 30, rng=rng, first=100).n_steps < 40
    True
    """
    at = _EvaluatedPositions.evaluate(potential, np.array(start, dtype=np.float64, ndmin=2))
    centre = log_step = np.log(LENGTH / min(max(first, 1), most))
    missing, average, acceptances = 0.0, log_step, []
    for k in range(1, n_draws + 1):
        n_steps = int(np.clip(np.ceil(LENGTH * np.exp(-log_step)), 1, most))
        at, acceptance = _trajectory(potential, at, n_steps, rng)
        acceptances.append(acceptance.mean())
        missing += (_TARGET_ACCEPTANCE - acceptances[-1] - missing) / (k + 5.0)
        log_step = centre - np.sqrt(k) / 0.1 * missing
        log_step = max(log_step, np.log(LENGTH / most))
        average += k**-0.75 * (log_step - average)
    n_steps = int(np.clip(np.ceil(LENGTH * np.exp(-average)), 1, most))
    return Adapted(n_steps, at.x, float(np.mean(acceptances[len(acceptances) // 2 :])))


class _EvaluatedPositions(NamedTuple):
    """Positions of the chains, and what the potential is there."""

    x: Array
    value: Array
    slope: Array

    @classmethod
    def evaluate(cls, potential, x):
        """Return positions with the potential and its gradient there."""
        return cls(x, *potential(x))

    def energy(self, momentum):
        """Return the Hamiltonian of each chain, given its momentum."""
        squares = np.einsum("cd,cd->c", momentum, momentum) + np.einsum("cd,cd->c", self.x, self.x)
        return self.value + 0.5 * squares


def _trajectory(potential, begin, n_steps, rng):
    """Return the positions after one trajectory of each chain, and probabilities to accept it."""
    momentum = rng.standard_normal(begin.x.shape)
    # Shorter steps now and then, or trajectories of a closed orbit come back to where they began.
    step = LENGTH / n_steps * rng.uniform(0.8, 1.0)
    uniform = rng.random(len(begin.x))
    before, at = begin.energy(momentum), begin
    sine, cosine = np.sin(step), np.cos(step)
    with np.errstate(over="ignore", invalid="ignore"):  # steps too long may run away
        for _ in range(n_steps):
            momentum = momentum - 0.5 * step * at.slope
            x = cosine * at.x + sine * momentum
            momentum = cosine * momentum - sine * at.x
            at = _EvaluatedPositions.evaluate(potential, x)
            momentum -= 0.5 * step * at.slope
        acceptance = np.exp(np.minimum(before - at.energy(momentum), 0.0))
    acceptance = np.where(np.isnan(acceptance), 0.0, acceptance)
    accepted = uniform < acceptance
    x = np.where(accepted[:, None], at.x, begin.x)
    value = np.where(accepted, at.value, begin.value)
    slope = np.where(accepted[:, None], at.slope, begin.slope)
    return _EvaluatedPositions(x, value, slope), acceptance
