"""The exact posterior by sampling the noisy margins v given v > 0 (Takeno et al. 2023)."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import fdtri
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from skpref._conditioning import Sites
from skpref._likelihood import derivatives, margin_variance
from skpref._parameters import check_choice, check_number
from skpref.inference._ep import EP
from skpref.inference._laplace import Laplace
from skpref.samplers import effective_draws, gibbs, hmc, mcse_mean, rhat

# EP is a start here and gives the evidence, whose error is of second order: a few sweeps fewer.
_EVIDENCE = {"ep": EP(tol=1e-5), "laplace": Laplace()}
_LARGEST = 10_000
# Chains that agree this well (Vehtari et al. 2021 ask for 1.01 of many more draws).
_MIXED = 1.05
_ENOUGH = 100
_TRIES = 4
# Chance that independent draws are taken for unmixed because they are few.
_FALSE_ALARM = 1e-3


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
        self._check()
        return clone(_EVIDENCE[check_choice("evidence", self.evidence, _EVIDENCE)])

    def check_size(self, duels):
        """Raise a ValueError, before any work, if these `Duels` are too many."""
        _check_size(duels.counts)

    def side(self, duels):
        """Of the largest square matrices: the covariance of the margins of single duels."""
        return int(duels.counts.sum())

    def refine(self, problem, approximation, rng, start=None):
        """Draw v given v > 0 and turn every draw into a component.

        Parameters
        ----------
        problem : Problem
        approximation : Approximation
            Of `evidence_engine`.
        rng : numpy.random.Generator
        start : ndarray of shape (n_chains, n_duels), default=None
            Positions to start from, as `carry_over` finds them; NaN where there is none, and
            None for all: E[v | z = mean of ``approximation``, v > 0].

        Returns
        -------
        Approximation
            Sites with one component a draw; ``diagnostics`` filled (None with fewer than 4 draws
            a chain), ``state`` holds the last positions (n_chains, n_duels).
        """
        self._check()
        margins = NoisyMargins(problem)
        chains = min(self.chains, self.draws)
        per_chain = -(-self.draws // chains)
        covariance = margins.covariance()
        state = margins.start(approximation.conditioned.mean, start, chains)
        automatic = isinstance(self.burn_in, str)
        warm = start is not None and bool(np.any(start > 0.0))
        burn_in = self._first_burn_in[warm] if automatic else int(self.burn_in)
        if burn_in:
            state = self._sample(covariance, state, burn_in, rng, keep=False).state
        for _ in range(_TRIES):
            found = self._sample(covariance, state, per_chain, rng)
            split = _split_rhat(found.draws) if per_chain >= 4 else None
            if split is None or not automatic or np.all(split <= _tolerated(found.draws.shape)):
                break
            state, burn_in = found.state, burn_in + per_chain  # what was kept was burn-in still
        diagnostics = None if split is None else _diagnose(found, split, burn_in)
        if diagnostics is not None:
            self._complain(diagnostics, _tolerated(found.draws.shape))
        elif getattr(found, "rejected_share", 0.0) > 0.1:
            warnings.warn(
                f"{found.rejected_share:.0%} of the trajectories were rejected at max_walls, so "
                "that draws may be where the chains began. Raise max_walls of the engine, or "
                "noise_variance.",
                ConvergenceWarning,
                stacklevel=3,
            )
        draws = found.draws.reshape(-1, covariance.shape[0])
        sites = margins.sites(draws, approximation.sites.log_evidence)
        conditioned = problem.space.condition(sites.precision, sites.shift)
        return approximation._replace(
            sites=sites, conditioned=conditioned, state=(found.state,), diagnostics=diagnostics
        )

    def _check(self):
        check_number("draws", self.draws, low=1, integer=True)
        check_number("chains", self.chains, low=1, integer=True)
        if isinstance(self.burn_in, str):
            check_choice("burn_in", self.burn_in, ("auto",))
        else:
            check_number("burn_in", self.burn_in, low=0, integer=True)

    def _complain(self, diagnostics, tolerated):
        worst, fewest = float(np.max(diagnostics.rhat)), float(np.min(diagnostics.ess_bulk))
        floor = min(_ENOUGH, 0.1 * diagnostics.n_draws)
        if worst <= tolerated and fewest >= floor:
            return
        remedy = f"Raise draws or {self._slack} of the engine"
        if diagnostics.rejected_share > 0.1:
            remedy += f" or its max_walls ({diagnostics.rejected_share:.0%} were rejected there)"
            remedy += ", for a handful of duels use inference='gibbs'"
        if not isinstance(self, HMC):
            remedy += ", use inference='hmc', which mixes far better"
        warnings.warn(
            f"The chains have not mixed: R̂ up to {worst:.2f} (wanted: at most {tolerated:.2f}), "
            f"effective draws down to {fewest:.0f} (wanted: {floor:.0f}) of {diagnostics.n_draws}. "
            f"{remedy}, or raise noise_variance.",
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
    warm_start : bool, default=False
        Start from where the chains of the previous fit of the same estimator ended; duels that
        are new since then start as in a first fit.
    max_walls : int, default=None
        Trajectories that meet more walls are rejected, which stays exact; None: a generous cap.

    Notes
    -----
    Cost grows as duels² × walls met; repeated duels count each. Beyond a few thousand duels use
    ``"ep"``, whose error then is small. Answers that contradict each other under next to no noise
    cost thousands of walls a draw: raise the noise, or with a handful of duels use `Gibbs`.

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

    # Trajectories from a cold and from a warm start. Two or three forget the mean of EP, within
    # what 600 chains can tell: measured at 50 and 200 duels, with a tenth of the answers flipped
    # too.
    _first_burn_in = (5, 3)
    _slack = "burn_in"

    def __init__(
        self,
        draws=1000,
        chains=20,
        burn_in="auto",
        evidence="ep",
        warm_start=False,
        max_walls=None,
    ):
        self.draws = draws
        self.chains = chains
        self.burn_in = burn_in
        self.evidence = evidence
        self.warm_start = warm_start
        self.max_walls = max_walls

    def _sample(self, covariance, state, n_draws, rng, keep=True):
        return hmc(covariance, state, n_draws, rng=rng, max_walls=self.max_walls)

    def _check(self):
        super()._check()
        if self.max_walls is not None:
            check_number("max_walls", self.max_walls, low=0, integer=True)


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
    warm_start : bool, default=False
        Start from where the chains of the previous fit of the same estimator ended; duels that
        are new since then start as in a first fit.
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

    _first_burn_in = (20, 10)  # sweeps from a cold and from a warm start
    _slack = "thin"

    def __init__(
        self, draws=1000, chains=20, burn_in="auto", evidence="ep", warm_start=False, thin=10
    ):
        self.draws = draws
        self.chains = chains
        self.burn_in = burn_in
        self.evidence = evidence
        self.warm_start = warm_start
        self.thin = thin

    def _check(self):
        super()._check()
        check_number("thin", self.thin, low=1, integer=True)

    def _sample(self, covariance, state, n_draws, rng, keep=True):
        found = gibbs(covariance, state, n_draws * (self.thin if keep else 1), rng=rng)
        return found._replace(draws=found.draws[:, self.thin - 1 :: self.thin]) if keep else found


def _check_size(counts):
    n_duels = int(counts.sum())
    if n_duels > _LARGEST:
        raise ValueError(
            f"{n_duels} duels are too many to sample their margins (at most {_LARGEST}). Use "
            "inference='ep', whose error is small with so many, or fewer duels."
        )


class NoisyMargins:
    """v of every single duel: repeated duels have noise of their own."""

    def __init__(self, problem):
        _check_size(problem.counts)
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

    def start(self, mean, carried, n_chains):
        """Positive positions of all chains: those carried over, `typical` where there are none."""
        typical = self.typical(mean)
        if carried is None:
            return np.broadcast_to(typical, (n_chains, len(typical)))
        carried = carried[np.arange(n_chains) % len(carried)]
        return np.where(carried > 0.0, carried, typical)

    def sites(self, draws, log_evidence):
        """Sites of z with one component a draw: v = z + e is a Gaussian observation."""
        n_margins, n_duels = self._problem.space.n_margins, len(self._index)
        positions = (self._index, np.arange(n_duels))
        pool = csr_array((self._sign / self._noise, positions), shape=(n_margins, n_duels))
        precision = np.bincount(self._index, minlength=n_margins) / self._noise
        return Sites(pool @ draws.T, precision, log_evidence)


def carry_over(before, positions, now):
    """Positions of the chains for other duels: those of the duels that were there before.

    Parameters
    ----------
    before : Duels
    positions : ndarray of shape (n_chains, n_duels_before)
        ``state`` of the approximation for these duels.
    now : Duels
        Duels are told by their items; repeated ones in the order of the chains.

    Returns
    -------
    ndarray of shape (n_chains, n_duels_now)
        NaN for a duel that is new.
    """
    if before.items.shape[1] != now.items.shape[1]:
        return np.full((len(positions), int(now.counts.sum())), np.nan)
    ends = [np.hstack([d.items[d.winner], d.items[d.loser]]) for d in (before, now)]
    _, code = np.unique(np.concatenate(ends), axis=0, return_inverse=True)
    n_before = len(before.counts)
    seen, first = np.zeros((2, code.max() + 1), dtype=np.intp)
    seen[code[:n_before]] = before.counts
    first[code[:n_before]] = np.cumsum(before.counts) - before.counts
    counts = now.counts.astype(np.intp)
    kind = np.repeat(np.arange(len(counts)), counts)
    repeat = np.arange(len(kind)) - (np.cumsum(counts) - counts)[kind]
    code = code[n_before:][kind]
    known = repeat < seen[code]
    column = np.where(known, first[code] + repeat, 0)
    return np.where(known, positions[:, column], np.nan)


def _tolerated(shape):
    """R̂ that counts as mixed: larger where few draws make it large by chance."""
    n_chains, n_draws, n_duels = shape
    halves, length = 2 * n_chains, n_draws // 2
    level = 1.0 - _FALSE_ALARM / (2 * n_duels)  # plain and folded, every coordinate
    by_chance = fdtri(halves - 1, halves * (length - 1), level)
    return max(_MIXED, float(np.sqrt((length - 1 + by_chance) / length)))


def _split_rhat(draws):
    """R̂, infinite where no chain has moved: v is continuous, a constant one is stuck."""
    split = rhat(draws)
    return np.where(np.isnan(split), np.inf, split)


def _diagnose(found, split, burn_in):
    draws = found.draws
    stuck = np.ptp(draws, axis=(0, 1)) == 0.0
    return Diagnostics(
        split,
        np.where(stuck, 1.0, effective_draws(draws, "bulk")),
        np.where(stuck, 1.0, effective_draws(draws, "tail")),
        np.where(stuck, np.inf, mcse_mean(draws)),
        draws.shape[0] * draws.shape[1],
        burn_in,
        getattr(found, "rejected_share", 0.0),
    )
