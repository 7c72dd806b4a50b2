"""The model behind the questions: fits and hallucinations of what was told.

All functions are pure: what they need to be quick on the next call (`Memory`) is passed in and
handed back, so that a run can be written down and taken up again exactly.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel, Matern

from skpref._fitting import Fitted, Start, carried, fit_posterior
from skpref._model import Model
from skpref._observations import Observations
from skpref._posterior import Posterior
from skpref._priors import LogNormal, Prior, lengthscale_priors
from skpref._search import Search
from skpref.inference._base import State

# Log-normal priors: median and standard deviation of the logarithm.
LENGTHSCALE_PRIOR = (0.5, 0.75)
# Of σ², broad: less of it believes a judge who errs, more of it doubts one who does not
# (benchmarks/regret.py with and without --flip 0.1).
NOISE_PRIOR = (3e-3, 2.0)
LENGTHSCALE_BOUNDS = (0.02, 20.0)
NOISE_BOUNDS = (1e-5, 1.0)
_REFIT = Search(max_iter=12, gtol=1e-2, complain=False)


@dataclass(frozen=True)
class Memory:
    """What one question hands to the next.

    Attributes
    ----------
    theta : ndarray
        Hyperparameters ``np.r_[kernel.theta, likelihood.theta]``.
    fitted_at : int
        Number of duels at the last fit of ``theta``.
    sites : dict of str to ndarray
        State of the engine; empty before the first run.
    margins : ndarray of shape (n_told,) or (0,)
        The last hallucination, in the order of the told duels.
    """

    theta: NDArray[np.float64]
    fitted_at: int = 0
    sites: State = field(default_factory=dict)
    margins: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


def default_kernel(n_columns: int) -> Kernel:
    """Matérn-3/2 of unit amplitude, one lengthscale a column of the unit cube."""
    return Matern(np.full(n_columns, LENGTHSCALE_PRIOR[0]), LENGTHSCALE_BOUNDS, nu=1.5)


def default_priors(
    kernel: Kernel,
    lengthscale_prior: tuple[float, float] | str | None,
    noise_learned: bool,
    rows: NDArray[np.float64],
) -> tuple[Prior, ...]:
    """Priors on the lengthscales of a kernel of unit-cube rows, and on the noise variance."""
    priors = lengthscale_priors(lengthscale_prior, kernel, rows)
    if noise_learned:
        index = np.array([len(kernel.theta)])
        centre, deviation = np.log([NOISE_PRIOR[0]]), np.array([NOISE_PRIOR[1]])
        priors = (*priors, LogNormal(index, centre, deviation))
    return priors


def fit(
    model: Model,
    memory: Memory,
    rows: NDArray[np.float64],
    winner: NDArray[np.intp],
    loser: NDArray[np.intp],
    relearn: bool,
) -> tuple[Fitted, Memory]:
    """Fit the told duels, after learning the hyperparameters if asked to."""
    told = Observations.from_duels(rows, winner, loser, np.ones(len(winner), dtype=bool))
    found = fit_posterior(
        told, model.at(memory.theta), Start(memory.sites), search=_REFIT if relearn else None
    )
    learned = relearn and len(memory.theta) > 0
    return found, replace(
        memory,
        theta=found.model.theta if learned else memory.theta,
        fitted_at=len(winner) if learned else memory.fitted_at,
        sites=found.state.sites or {},
    )


def hallucinate(
    fitted: Fitted, margins: NDArray[np.float64], rng: np.random.Generator
) -> tuple[Posterior, NDArray[np.float64]]:
    """An ordinary GP: f given one draw of the noisy margins (Takeno et al. 2023, Alg. 1).

    Parameters
    ----------
    fitted : Fitted
        With the engine `Hallucination`.
    margins : ndarray of shape (k,), k <= n_told
        The last draw, of the duels told by then; empty starts afresh.
    rng : numpy.random.Generator

    Returns
    -------
    posterior : Posterior
    margins : ndarray of shape (n_told,)
    """
    last = {"margins": margins[None]} if len(margins) else None
    drawn = fitted.refined(rng, carried(last, None, fitted.observations, "answers"))
    return drawn.posterior, drawn.approximation.state["margins"][0]
