"""Samplers of the normal N(0, Σ) on v > 0 or on a box, and diagnostics of their chains.

Pure functions of arrays: the covariance of the margins comes in, draws and a state to go on from
come out. `hmc` is the fast one; `gibbs` and `liness` are there to compare; `minimax_draws` and
`orthant_probability` are independent and exact, for up to some 50 coordinates; `split_hmc` takes
any density near a standard normal; `diagnostics` has R̂, effective sample sizes and errors.
"""

from skpref.samplers._chains import Chains
from skpref.samplers._gibbs import gibbs
from skpref.samplers._hmc import HMCChains, HMCSampler, hmc, most_walls
from skpref.samplers._liness import liness
from skpref.samplers._minimax import (
    MinimaxDraws,
    OrthantProbability,
    minimax_draws,
    orthant_probability,
)
from skpref.samplers._split import LENGTH, MOST_STEPS, Adapted, SplitChains, adapt_steps, split_hmc
from skpref.samplers.diagnostics import effective_draws, mcse_mean, rhat
from skpref.samplers.truncated_normal import truncated_normal

__all__ = [
    "Adapted",
    "Chains",
    "HMCChains",
    "MinimaxDraws",
    "OrthantProbability",
    "SplitChains",
    "adapt_steps",
    "effective_draws",
    "gibbs",
    "hmc",
    "liness",
    "mcse_mean",
    "minimax_draws",
    "orthant_probability",
    "rhat",
    "split_hmc",
    "truncated_normal",
]
