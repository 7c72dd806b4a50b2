"""Whether the chains of a sampled engine have mixed."""

from typing import NamedTuple

import numpy as np
from scipy.special import fdtri

from skpref.samplers import effective_draws, mcse_mean, rhat

# Chains that agree this well (Vehtari et al. 2021 ask for 1.01 of many more draws).
_MIXED = 1.05
# Chance that independent draws are taken for unmixed because they are few.
_FALSE_ALARM = 1e-3


class Diagnostics(NamedTuple):
    """How well the chains mixed, per answer.

    Of the noisy margins v; where the chains ran on the margins without noise, of these.

    Attributes
    ----------
    rhat : ndarray of shape (n_answers,)
        Rank-normalised split-R̂.
    ess_bulk, ess_tail : ndarray of shape (n_answers,)
        Effective numbers of draws.
    mcse_mean : ndarray of shape (n_answers,)
        Monte Carlo standard error of the mean, in units of the utility.
    n_draws : int
        Draws kept, over all chains.
    burn_in : int
        Draws discarded, per chain.
    rejected_share : float
        Share of trajectories rejected at the cap on walls (0 for Gibbs).
    method : str
        ``"walls"``, ``"margins"`` or ``"gibbs"``: the sampler that drew.
    """

    rhat: np.ndarray
    ess_bulk: np.ndarray
    ess_tail: np.ndarray
    mcse_mean: np.ndarray
    n_draws: int
    burn_in: int
    rejected_share: float
    method: str


def tolerated(shape):
    """R̂ that counts as mixed: larger where few draws make it large by chance."""
    n_chains, n_draws, n_duels = shape
    halves, length = 2 * n_chains, n_draws // 2
    level = 1.0 - _FALSE_ALARM / (2 * n_duels)  # plain and folded, every coordinate
    by_chance = fdtri(halves - 1, halves * (length - 1), level)
    return max(_MIXED, float(np.sqrt((length - 1 + by_chance) / length)))


def split_rhat(draws):
    """R̂, infinite where no chain has moved: v is continuous, a constant one is stuck."""
    split = rhat(draws)
    return np.where(np.isnan(split), np.inf, split)


def diagnose(judged, of_answer, split, burn_in, rejected_share, method):
    """All of `Diagnostics` of draws (n_chains, n_draws, n), whose R̂ is known."""
    stuck = np.ptp(judged, axis=(0, 1)) == 0.0
    return Diagnostics(
        split[of_answer],
        np.where(stuck, 1.0, effective_draws(judged, "bulk"))[of_answer],
        np.where(stuck, 1.0, effective_draws(judged, "tail"))[of_answer],
        np.where(stuck, np.inf, mcse_mean(judged))[of_answer],
        judged.shape[0] * judged.shape[1],
        burn_in,
        rejected_share,
        method,
    )
