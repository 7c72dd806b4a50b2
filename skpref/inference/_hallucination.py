"""One draw of the noisy margins: the GP that the hallucination believer asks from."""

import numpy as np

from skpref._parameters import check_choice, check_number
from skpref.inference._base import Approximation, Engine, Problem, State
from skpref.inference._chains import Budget
from skpref.inference._ep import EP
from skpref.inference._laplace import Laplace
from skpref.inference._margin_chains import MarginChains, MarginPosterior
from skpref.inference._noisy_margins import NoisyMargins
from skpref.inference._sampled import AnswerEngine, is_warm, needed
from skpref.samplers import hmc

_EVIDENCE = {"ep": EP, "laplace": Laplace}
# Walls of a trajectory that are worth their time: agreeing answers meet about half an answer.
_WALLS = 200
_WALLS_PER_ANSWER = 4
# Where trajectories are rejected: chains on the margins, of which the first one counts, the others
# help to find their steps; and their work, in multiplications (some ten seconds).
_HELPERS = 8
_WORK = 1e11


class Hallucination(AnswerEngine):
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
        Trajectories that meet more walls, or more than 200 and 4 an answer, are rejected; if most
        are, the margins without noise are moved instead, see `HMC`.

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
        self._check_memory(problem.observations)
        margins = NoisyMargins(problem)
        positions = margins.start(near.conditioned.mean, start, 1)
        steps = self.between if is_warm(start) else self.burn_in
        cap = min(self.max_walls, _WALLS + _WALLS_PER_ANSWER * margins.n_answers)
        lower, upper = (None, None) if margins.box is None else margins.box
        covariance = margins.covariance()
        chain = hmc(covariance, positions, steps, rng=rng, max_walls=cap, lower=lower, upper=upper)
        drawn = chain.state
        # Contradictions at tiny noise: a wedge with too many walls.
        if chain.rejected_share > 0.5 and not problem.rows.joint:
            gaussian = near if self.evidence == "ep" else EP(tol=1e-5).run(problem)
            posterior = MarginPosterior(problem, gaussian)
            walk = MarginChains(posterior, margins, _HELPERS, rng, Budget(_WORK))
            drawn = walk.draw(1).state[:1]
        sites = margins.sites(drawn, near.sites.log_evidence)
        conditioned = problem.space.condition(sites.precision, sites.shift)
        state = {"margins": drawn}
        return Approximation(sites, conditioned, state, steps, 0.0, near.converged)
