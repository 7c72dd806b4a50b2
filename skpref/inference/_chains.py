"""What the chains of sampled engines share: what they find, and how much work they may do."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref.inference._diagnostics import split_rhat, tolerated

# Batches of draws that an automatic burn-in may discard, and the one that is kept.
_TRIES = 4
# Multiplications in whose time a coordinate passes a wall, and coordinates that passing one costs
# beside those that there are.
_WALL = 30.0
_OVERHEAD = 200.0


def wall_work(n_answers: int) -> float:
    """Multiplications in whose time a trajectory of exact HMC passes one wall."""
    return _WALL * (n_answers + _OVERHEAD)


class Found(NamedTuple):
    """What chains found.

    Attributes
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_answers)
        Of the noisy margins.
    state : ndarray of shape (n_chains, n_answers)
        The last of them.
    judged : ndarray of shape (n_chains, n_draws, n_judged)
        Whose mixing counts: the draws themselves, or the margins that they were drawn from.
    of_answer : ndarray of shape (n_answers,)
        Which of them belongs to each answer.
    rejected_share : float
        Of the trajectories, at the cap on walls.
    """

    draws: NDArray[np.float64]
    state: NDArray[np.float64]
    judged: NDArray[np.float64]
    of_answer: NDArray[np.intp]
    rejected_share: float = 0.0


class Budget:
    """Work that may be done, in multiplications: the same on every machine, unlike seconds.

    Parameters
    ----------
    work : float
    """

    def __init__(self, work: float):
        self.left = work

    def affordable(self, n: int, each: float) -> int:
        """Of n pieces of work those that may be done, but always one."""
        return int(min(n, max(1.0, self.left // each)))

    def spend(self, work: float) -> None:
        """Take note of work that was done."""
        self.left -= work


class AnswerChains:
    """Chains of a sampler of the noisy margins, draws in batches that the budget allows.

    Parameters
    ----------
    sample : callable
        Takes a state and a number of draws to an object with ``draws`` and ``state``, and
        ``rejected_share`` where trajectories can be rejected.
    work_of : callable
        Work that such an object took.
    most_work : float
        Of one draw of all chains.
    state : ndarray of shape (n_chains, n_answers)
    budget : Budget
    """

    def __init__(
        self,
        sample: Callable,
        work_of: Callable,
        most_work: float,
        state: NDArray[np.float64],
        budget: Budget,
    ):
        self._sample, self._work_of, self._most_work = sample, work_of, most_work
        self._state, self._budget = state, budget

    def draw(self, n_draws: int) -> Found:
        """Go on by so many draws, or as many as the budget allows, at least one."""
        parts: list = []
        missing = n_draws
        while missing and (not parts or self._budget.left > 0.0):
            batch = self._budget.affordable(missing, self._most_work)
            parts.append(self._sample(self._state, batch))
            self._state = parts[-1].state
            self._budget.spend(self._work_of(parts[-1]))
            missing -= batch
        draws = parts[0].draws
        if len(parts) > 1:
            draws = np.concatenate([part.draws for part in parts], axis=1)
        rejected = [getattr(part, "rejected_share", 0.0) for part in parts]
        weights = [part.draws.shape[1] for part in parts]
        each = np.arange(draws.shape[2])
        share = float(np.average(rejected, weights=weights))
        return Found(draws, self._state, draws, each, share)


class Mixed(NamedTuple):
    """The last batch of draws, its R̂ (None of fewer than 4 a chain), batches discarded before."""

    found: Found
    split: NDArray[np.float64] | None
    discarded: int


def until_mixed(draw: Callable[[int], Found], n_draws: int, automatic: bool) -> Mixed:
    """Draw a batch, and, if asked to, another as long as the chains have not mixed.

    Parameters
    ----------
    draw : callable
        Draws so many a chain, or fewer, after which it is not called again.
    n_draws : int
    automatic : bool
        Whether batches may be discarded.
    """
    for discarded in range(_TRIES):  # noqa: B007 (used below the loop)
        found = draw(n_draws)
        complete = 4 <= n_draws == found.draws.shape[1]
        split = split_rhat(found.judged) if found.draws.shape[1] >= 4 else None
        if not (automatic and complete) or np.all(split <= tolerated(found.judged.shape)):
            break
    return Mixed(found, split, discarded)
