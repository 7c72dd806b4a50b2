"""Believers: engines that condition on one value of every noisy margin."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skpref._utils import check_choice, check_number
from skpref.data import Comparisons
from skpref.inference._base import Approximation, Capabilities, Engine, Problem, State
from skpref.inference._chains import (
    Budget,
    MarginChains,
    MarginPosterior,
    NoisyMargins,
    bearable_walls,
)
from skpref.inference._ep import EP
from skpref.inference._laplace import Laplace
from skpref.inference._sampling import (
    HMC,
    WORK_UNIT,
    AnswerEngine,
    check_draw_arguments,
    has_warm_start,
)
from skpref.likelihoods import Likelihood
from skpref.samplers import hmc

_EVIDENCE = {"ep": EP, "laplace": Laplace}
# Answers beyond which a Gaussian is near enough for several draws at once.
_MOST_ANSWERS = 400


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

    def check(
        self, comparisons: Comparisons | None = None, likelihood: Likelihood | None = None
    ) -> None:
        """Raise unless the options are sound."""
        check_number("burn_in", self.burn_in, low=1, integer=True)
        check_number("between", self.between, low=1, integer=True)
        check_number("max_walls", self.max_walls, low=0, integer=True)
        super().check(comparisons, likelihood)

    def evidence_engine(self, search: bool = False) -> Engine:
        """Return the engine whose evidence sets the hyperparameters, as exact as by itself."""
        return _EVIDENCE[check_choice("evidence", self.evidence, _EVIDENCE)]()

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        gaussian: Approximation | None = None,
    ) -> Approximation:
        """Draw the noisy margins once and condition on them, see `SampledEngine.run`."""
        rng, gaussian = check_draw_arguments(rng, gaussian)
        if not len(problem.rows):  # measured values alone
            return gaussian._replace(state={"margins": np.zeros((1, 0))})
        self._check_memory(problem.comparisons)
        margins = NoisyMargins(problem)
        positions = margins.start(gaussian.conditioned.mean, start, 1)
        steps = self.between if has_warm_start(start) else self.burn_in
        cap = min(self.max_walls, bearable_walls(margins.n_answers))
        lower, upper = (None, None) if margins.box is None else margins.box
        covariance = margins.covariance()
        chain = hmc(covariance, positions, steps, rng=rng, max_walls=cap, lower=lower, upper=upper)
        drawn = chain.state
        # Contradictions at tiny noise: a wedge with too many walls.
        if chain.rejected_share > 0.5 and not problem.rows.joint:
            exact = gaussian if self.evidence == "ep" else EP(tol=1e-5).run(problem)
            posterior = MarginPosterior(problem, exact)
            # The first chain counts, the others help to find its steps.
            likewise = HMC()
            budget = Budget(0.1 * likewise.max_work * WORK_UNIT)
            walk = MarginChains(posterior, margins, likewise.chains, rng, budget)
            drawn = walk.draw(1).state[:1]
        sites = margins.sites(drawn, gaussian.sites.log_evidence)
        conditioned = problem.prior.condition(sites.precision, sites.shift)
        state = {"margins": drawn}
        return Approximation(sites, conditioned, state, steps, 0.0, gaussian.converged)


def hallucinations(
    problem: Problem, gaussian: Approximation, n: int, rng: np.random.Generator
) -> Approximation:
    """Return independent draws of the noisy margins, each a component of a posterior.

    Of answers whose margins cannot be drawn, because their likelihood has no noisy margins, they
    are too many, or they contradict each other too much, it is the Gaussian itself.

    Parameters
    ----------
    problem : Problem
    gaussian : Approximation
        Of the evidence engine.
    n : int
        Number of draws.
    rng : numpy.random.Generator

    Returns
    -------
    Approximation
    """
    drawable = len(problem.rows) and problem.likelihood.regions(problem.answers) is not None
    if not drawable or problem.comparisons.n_singles > _MOST_ANSWERS:
        return gaussian
    margins = NoisyMargins(problem)
    positions = margins.start(gaussian.conditioned.mean, None, n)
    lower, upper = (None, None) if margins.box is None else margins.box
    cap, steps = bearable_walls(margins.n_answers), Hallucination().burn_in
    chain = hmc(
        margins.covariance(),
        positions,
        steps,
        rng=rng,
        max_walls=cap,
        lower=lower,
        upper=upper,
    )
    if chain.rejected_share > 0.5:
        return gaussian
    sites = margins.sites(chain.state, gaussian.sites.log_evidence)
    conditioned = problem.prior.condition(sites.precision, sites.shift)
    return Approximation(sites, conditioned, {}, steps, 0.0, gaussian.converged)


class Believer(AnswerEngine):
    """Engines that condition on one value of every noisy margin, without drawing it.

    A subclass says in ``_margin_values`` which.
    """

    capabilities: ClassVar[Capabilities] = Capabilities(takes_joint=True, state_of="answers")

    def evidence_engine(self, search: bool = False) -> Engine:
        """Return expectation propagation."""
        return EP()

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        gaussian: Approximation | None = None,
    ) -> Approximation:
        """Condition on the values assumed of the noisy margins, see `Engine.run`."""
        self.check()
        gaussian = EP().run(problem) if gaussian is None else gaussian
        self._check_memory(problem.comparisons)
        margins = NoisyMargins(problem)
        sites = margins.sites(
            self._margin_values(margins, gaussian)[None], gaussian.sites.log_evidence
        )
        conditioned = problem.prior.condition(sites.precision, sites.shift)
        return Approximation(sites, conditioned, {}, 1, 0.0, gaussian.converged)

    @abstractmethod
    def _margin_values(self, margins: NoisyMargins, gaussian: Approximation) -> NDArray[np.float64]:
        """Return the values that the noisy margins are taken to have, (n_answers,)."""


class KrigingBeliever(Believer):
    """The GP given that every noisy margin is its posterior mean (kriging believer).

    Its mean is that of expectation propagation, its variance that of a `Hallucination`, which
    is smaller: what is not known of the margins is left out. The paper [1]_ (appendix E) expects
    it to optimise as badly as a Gaussian approximation, since it knows nothing of skewness.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import KrigingBeliever
    >>> duels = [[[1.0], [0.0]], [[2.0], [1.0]]]
    >>> mean, exact = (
    ...     PairwisePreferenceRegressor(inference=inference, optimizer=None)
    ...     .fit(duels)
    ...     .posterior_.mean([[2.0]])
    ...     for inference in (KrigingBeliever(), "ep")
    ... )
    >>> bool(abs(mean - exact) < 1e-6)
    True
    """

    def _margin_values(self, margins, gaussian):
        """Return the posterior mean of every noisy margin."""
        return margins.expected(gaussian)


class ConstantLiar(Believer):
    """The GP given that every noisy margin is one constant (constant liar).

    Parameters
    ----------
    lie : float, default=1.0
        By how much every winner was ahead, in units of the utility. A tie is believed to be within
        its threshold, and a win beyond it.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import ConstantLiar
    >>> model = PairwisePreferenceRegressor(
    ...     inference=ConstantLiar(0.5), noise_variance=1e-8, optimizer=None
    ... )
    >>> margin, _ = model.fit([[[1.0], [0.0]]]).posterior_.margin([[1.0]], [[0.0]])
    >>> float(margin[0].round(4))
    0.5
    """

    def __init__(self, lie: float = 1.0) -> None:
        self.lie = lie

    def check(
        self, comparisons: Comparisons | None = None, likelihood: Likelihood | None = None
    ) -> None:
        """Raise unless the lie is a positive number."""
        check_number("lie", self.lie, low=0.0, open_low=True, open_high=True)
        super().check(comparisons, likelihood)

    def _margin_values(self, margins, gaussian):
        """Return the same constant for every noisy margin."""
        return margins.constant(float(self.lie))
