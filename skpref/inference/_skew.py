"""The exact posterior by sampling the noisy margins v given v > 0 (Takeno et al. 2023)."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from skpref._conditioning import Sites
from skpref._likelihood import derivatives, margin_variance
from skpref._parameters import check_choice, check_number
from skpref.inference._base import Approximation
from skpref.inference._ep import EP
from skpref.inference._laplace import Laplace
from skpref.samplers import effective_draws, gibbs, hmc, mcse_mean, rhat

_EVIDENCE = {"ep": EP, "laplace": Laplace}
_LARGEST = 10_000
# Chains that agree this well (Vehtari et al. 2021 ask for 1.01 of many more draws).
_MIXED = 1.05
_ENOUGH = 100
_TRIES = 4


class Diagnostics(NamedTuple):
    """How well the chains mixed, per duel (repeated duels follow each other).

    Attributes
    ----------
    rhat : ndarray of shape (n_duels,)
        Rank-normalised split-R̂.
    ess_bulk, ess_tail : ndarray of shape (n_duels,)
        Effective numbers of draws.
    mcse_mean : ndarray of shape (n_duels,)
        Monte Carlo standard error of the mean of v, in units of the utility.
    n_draws : int
        Draws kept, over all chains.
    burn_in : int
        Draws discarded, per chain.
    rejected_share : float
        Share of trajectories rejected at the cap on walls (0 for Gibbs).
    """

    rhat: np.ndarray
    ess_bulk: np.ndarray
    ess_tail: np.ndarray
    mcse_mean: np.ndarray
    n_draws: int
    burn_in: int
    rejected_share: float


class _Sampled(BaseEstimator):
    """An engine that refines Gaussian sites into draws."""

    def evidence_engine(self):
        """The engine whose evidence sets the hyperparameters and whose mean starts the chains."""
        return _EVIDENCE[check_choice("evidence", self.evidence, _EVIDENCE)]()

    def refine(self, problem, approximation, rng):
        """Draw v given v > 0 and turn every draw into a component.

        Parameters
        ----------
        problem : Problem
        approximation : Approximation
            Of `evidence_engine`.
        rng : numpy.random.Generator

        Returns
        -------
        Approximation
            Sites with one component a draw; ``diagnostics`` filled.
        """
        self._check()
        margins = _NoisyMargins(problem)
        start = margins.typical(approximation.conditioned.mean)
        chains = min(self.chains, self.draws)
        per_chain = -(-self.draws // chains)
        covariance = margins.covariance()
        state = np.broadcast_to(start, (chains, len(start)))
        automatic = isinstance(self.burn_in, str)
        burn_in = self._first_burn_in if automatic else int(self.burn_in)
        if burn_in:
            state = self._sample(covariance, state, burn_in, rng, keep=False).state
        for _ in range(_TRIES):
            found = self._sample(covariance, state, per_chain, rng)
            mixed = per_chain < 4 or not np.any(rhat(found.draws) > _MIXED)
            if mixed or not automatic:
                break
            state, burn_in = found.state, burn_in + per_chain  # what was kept was burn-in still
        diagnostics = _diagnose(found, burn_in) if per_chain >= 4 else None
        if diagnostics is not None:
            self._complain(diagnostics)
        draws = found.draws.reshape(-1, len(start))
        sites = margins.sites(draws, approximation.sites.log_evidence)
        conditioned = problem.space.condition(sites.precision, sites.shift)
        return Approximation(
            sites,
            conditioned,
            approximation.state,
            approximation.n_iter,
            approximation.residual,
            approximation.converged,
            diagnostics,
        )

    def _check(self):
        check_number("draws", self.draws, low=1, integer=True)
        check_number("chains", self.chains, low=1, integer=True)
        if isinstance(self.burn_in, str):
            check_choice("burn_in", self.burn_in, ("auto",))
        else:
            check_number("burn_in", self.burn_in, low=0, integer=True)

    def _complain(self, diagnostics):
        worst, fewest = float(np.max(diagnostics.rhat)), float(np.min(diagnostics.ess_bulk))
        floor = min(_ENOUGH, 0.1 * diagnostics.n_draws)
        if worst <= _MIXED and fewest >= floor:
            return
        other = "" if isinstance(self, HMC) else ", use inference='hmc', which mixes far better"
        warnings.warn(
            f"The chains have not mixed: R̂ up to {worst:.2f} (wanted: at most {_MIXED}), effective "
            f"draws down to {fewest:.0f} of {diagnostics.n_draws}. Raise draws or burn_in of the "
            f"engine{other}, or raise noise_variance.",
            ConvergenceWarning,
            stacklevel=4,
        )


class HMC(_Sampled):
    """Options of exact Hamiltonian Monte Carlo on the noisy margins.

    The posterior is the skew GP itself, up to Monte Carlo error: a mixture of ordinary GPs, one a
    draw of v given v > 0 [1]_, drawn by exact Hamiltonian Monte Carlo [2]_. Draws are
    practically independent; 1 000 of them take a fraction of a second at 200 duels.

    Parameters
    ----------
    draws : int, default=1000
        Draws kept, over all chains (rounded up to a multiple of ``chains``).
    chains : int, default=20
        Chains side by side.
    burn_in : "auto" or int, default="auto"
        Draws of each chain that are discarded; "auto" continues until R̂ is small.
    evidence : {"ep", "laplace"}, default="ep"
        Whose evidence sets the hyperparameters.
    max_walls : int, default=None
        Trajectories that meet more walls are rejected, which stays exact; None: a generous cap.

    Notes
    -----
    Cost grows as duels² × walls met; repeated duels count each. Beyond a few thousand duels use
    ``"ep"``, whose error then is small.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.
    .. [2] Pakman and Paninski, "Exact Hamiltonian Monte Carlo for truncated multivariate
       Gaussians", Journal of Computational and Graphical Statistics, 2014.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import HMC
    >>> model = PairwisePreferenceRegressor(inference=HMC(draws=400), random_state=0)
    >>> posterior = model.fit([[[1.0], [0.0]], [[2.0], [1.0]]]).posterior_
    >>> posterior.n_components
    400
    """

    # From the mean of EP two or three trajectories forget the start: measured up to t = 200.
    _first_burn_in = 8

    def __init__(self, draws=1000, chains=20, burn_in="auto", evidence="ep", max_walls=None):
        self.draws = draws
        self.chains = chains
        self.burn_in = burn_in
        self.evidence = evidence
        self.max_walls = max_walls

    def _sample(self, covariance, state, n_draws, rng, keep=True):
        return hmc(covariance, state, n_draws, rng=rng, max_walls=self.max_walls)


class Gibbs(_Sampled):
    """Options of coordinate Gibbs sampling on the noisy margins.

    The sampler of [1]_ (its Algorithm 3 lacks ``v_j −`` in the conditional mean), several chains
    side by side, with a move of the radius. It mixes slowly once there are some hundred duels
    and little noise; `HMC` does not.

    Parameters
    ----------
    draws : int, default=1000
        Draws kept, over all chains (rounded up to a multiple of ``chains``).
    chains : int, default=20
        Chains side by side.
    burn_in : "auto" or int, default="auto"
        Sweeps of each chain that are discarded; "auto" continues until R̂ is small.
    evidence : {"ep", "laplace"}, default="ep"
        Whose evidence sets the hyperparameters.
    thin : int, default=10
        Sweeps per kept draw.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import Gibbs
    >>> model = PairwisePreferenceRegressor(inference=Gibbs(draws=400), random_state=0)
    >>> model.fit([[[1.0], [0.0]], [[2.0], [1.0]]]).posterior_.n_components
    400
    """

    _first_burn_in = 20

    def __init__(self, draws=1000, chains=20, burn_in="auto", evidence="ep", thin=10):
        self.draws = draws
        self.chains = chains
        self.burn_in = burn_in
        self.evidence = evidence
        self.thin = thin

    def _check(self):
        super()._check()
        check_number("thin", self.thin, low=1, integer=True)

    def _sample(self, covariance, state, n_draws, rng, keep=True):
        found = gibbs(covariance, state, n_draws * (self.thin if keep else 1), rng=rng)
        return found._replace(draws=found.draws[:, self.thin - 1 :: self.thin]) if keep else found


class _NoisyMargins:
    """v of every single duel: repeated duels have noise of their own."""

    def __init__(self, problem):
        n_duels = int(problem.counts.sum())
        if n_duels > _LARGEST:
            raise ValueError(
                f"{n_duels} duels are too many to sample their margins (at most {_LARGEST}). Use "
                "inference='ep', whose error is small with so many, or fewer duels."
            )
        kind = np.repeat(np.arange(len(problem.counts)), problem.counts.astype(np.intp))
        self._problem = problem
        self._index, self._sign = problem.index[kind], problem.sign[kind]
        self._noise = margin_variance(problem.noise_variance)

    def covariance(self):
        """Prior covariance of v, oriented so that every v is positive."""
        oriented = self._problem.space.prior_covariance()[np.ix_(self._index, self._index)]
        oriented *= self._sign
        oriented *= self._sign[:, None]
        oriented.flat[:: len(oriented) + 1] += self._noise
        return oriented

    def typical(self, mean):
        """E[v | z = mean, v > 0]: positive, and close to where the draws will be."""
        z = self._sign * mean[self._index]
        v = z + self._noise * derivatives(z, self._problem.noise_variance).gradient
        return np.maximum(v, 1e-10 * np.sqrt(self._noise))

    def sites(self, draws, log_evidence):
        """Sites of z with one component a draw: v = z + e is a Gaussian observation."""
        n_margins, n_duels = self._problem.space.n_margins, len(self._index)
        positions = (self._index, np.arange(n_duels))
        pool = csr_array((self._sign / self._noise, positions), shape=(n_margins, n_duels))
        precision = np.bincount(self._index, minlength=n_margins) / self._noise
        return Sites(pool @ draws.T, precision, log_evidence)


def _diagnose(found, burn_in):
    draws = found.draws
    return Diagnostics(
        rhat(draws),
        effective_draws(draws, "bulk"),
        effective_draws(draws, "tail"),
        mcse_mean(draws),
        draws.shape[0] * draws.shape[1],
        burn_in,
        getattr(found, "rejected_share", 0.0),
    )
