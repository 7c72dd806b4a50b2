"""One draw of the noisy margins: the GP that the hallucination believer asks from."""

import numpy as np

from skpref._parameters import check_choice, check_number
from skpref.inference._base import Approximation, Engine, Problem, State
from skpref.inference._ep import EP
from skpref.inference._laplace import Laplace
from skpref.inference._noisy_margins import NoisyMargins
from skpref.inference._sampled import SampledEngine, needed
from skpref.samplers import GibbsChains, HMCChains, gibbs, hmc

_EVIDENCE = {"ep": EP, "laplace": Laplace}
# Sweeps of Gibbs where trajectories are rejected.
_SWEEPS = 50


class Hallucination(SampledEngine):
    """Options of one draw of v given v > 0: an ordinary GP (Takeno et al. 2023, Alg. 1).

    Parameters
    ----------
    burn_in : int, default=12
        Trajectories of a chain that starts afresh.
    between : int, default=4
        Trajectories from the last draw to the next.
    evidence : {"ep", "laplace"}, default="ep"
        Whose evidence sets the hyperparameters.
    warm_start : bool, default=False
        Start from where the chain of the previous fit of the same estimator ended; duels that are
        new since then start as in a first fit. The optimisers do so by themselves.
    max_walls : int, default=5000
        Trajectories that meet more walls are rejected; if most are, Gibbs' sweeps draw instead.

    References
    ----------
    Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization with Skew
    Gaussian Processes", ICML 2023.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import Hallucination
    >>> model = PairwisePreferenceRegressor(inference=Hallucination(), random_state=0)
    >>> model.fit([[[1.0], [0.0]], [[2.0], [1.0]]]).posterior_.n_components
    1
    """

    def __init__(
        self,
        burn_in: int = 12,
        between: int = 4,
        evidence: str = "ep",
        warm_start: bool = False,
        max_walls: int = 5000,
    ) -> None:
        self.burn_in = burn_in
        self.between = between
        self.evidence = evidence
        self.warm_start = warm_start
        self.max_walls = max_walls

    def check(self) -> None:
        """Raise unless the options are sound."""
        check_number("burn_in", self.burn_in, low=1, integer=True)
        check_number("between", self.between, low=1, integer=True)
        check_number("max_walls", self.max_walls, low=0, integer=True)

    def evidence_engine(self) -> Engine:
        """The engine whose evidence sets the hyperparameters, as exact as by itself."""
        return _EVIDENCE[check_choice("evidence", self.evidence, _EVIDENCE)]()

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        near: Approximation | None = None,
    ) -> Approximation:
        """Draw v once, see `SampledEngine.run`."""
        rng, near = needed(rng, near)
        margins = NoisyMargins(problem)
        positions = margins.start(near.conditioned.mean, start, 1)
        carried = None if start is None else start.get("margins")
        warm = carried is not None and bool(np.any(carried > 0.0))
        steps = self.between if warm else self.burn_in
        covariance = margins.covariance()
        chain: HMCChains | GibbsChains
        chain = hmc(covariance, positions, steps, rng=rng, max_walls=self.max_walls)
        if chain.rejected_share > 0.5:  # contradictions at tiny noise: a wedge with too many walls
            chain = gibbs(covariance, positions, _SWEEPS, rng=rng)
        sites = margins.sites(chain.state, near.sites.log_evidence)
        conditioned = problem.space.condition(sites.precision, sites.shift)
        state = {"margins": chain.state}
        return Approximation(sites, conditioned, state, steps, 0.0, near.converged)
