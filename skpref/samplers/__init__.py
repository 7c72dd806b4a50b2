"""Samplers of the normal N(0, Σ) on v > 0 or on a box, and diagnostics of their chains.

Pure functions of arrays: the covariance of the margins comes in (built by the caller), draws and a
state to go on from come out; a `numpy.random.Generator` is passed in.

- `hmc`: exact Hamiltonian Monte Carlo, the fast one; on any box, Σ may be singular;
- `gibbs`: coordinate Gibbs sweeps, on any box;
- `split_hmc`: Hamiltonian Monte Carlo for any density close to a standard normal;
- `liness`: linear elliptical slice sampling, for comparison;
- `minimax_draws`, `orthant_probability`: independent draws and Pr(v > 0), for up to about 50
  coordinates;
- `truncated_normal`: the univariate case between any two points, exact in the tails;
- `diagnostics`: R̂, effective sample size, Monte Carlo standard error.
"""

from skpref.samplers._gibbs import GibbsChains, gibbs
from skpref.samplers._hmc import HMCChains, hmc
from skpref.samplers._liness import LinESSChains, liness
from skpref.samplers._minimax import (
    MinimaxDraws,
    OrthantProbability,
    minimax_draws,
    orthant_probability,
)
from skpref.samplers._split import Adapted, SplitChains, adapt_steps, split_hmc
from skpref.samplers.diagnostics import effective_draws, mcse_mean, rhat
from skpref.samplers.truncated_normal import truncated_normal

__all__ = [
    "Adapted",
    "GibbsChains",
    "HMCChains",
    "LinESSChains",
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
