"""Noisy margins that are believed instead of drawn: at their mean, or at one constant."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skpref._parameters import check_number
from skpref.inference._base import Approximation, Engine, Problem, State
from skpref.inference._ep import EP
from skpref.inference._noisy_margins import NoisyMargins
from skpref.inference._sampled import AnswerEngine


class Believer(AnswerEngine):
    """Engines that condition on one value of every noisy margin, without drawing it.

    A subclass says in ``_believed`` which.
    """

    samples: ClassVar[bool] = False

    def evidence_engine(self) -> Engine:
        """Expectation propagation."""
        return EP()

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        near: Approximation | None = None,
    ) -> Approximation:
        """Condition on the margins that are believed, see `Engine.run`."""
        self.check()
        near = EP().run(problem) if near is None else near
        self._check_memory(problem.observations)
        margins = NoisyMargins(problem)
        sites = margins.sites(self._believed(margins, near)[None], near.sites.log_evidence)
        conditioned = problem.space.condition(sites.precision, sites.shift)
        return Approximation(sites, conditioned, {}, 1, 0.0, near.converged)

    @abstractmethod
    def _believed(self, margins: NoisyMargins, near: Approximation) -> NDArray[np.float64]:
        """Values of the noisy margins (n_answers,)."""


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

    def _believed(self, margins, near):
        return margins.expected(near)


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

    def check(self) -> None:
        """Raise unless the lie is a positive number."""
        check_number("lie", self.lie, low=0.0, open_low=True, open_high=True)

    def _believed(self, margins, near):
        return margins.constant(float(self.lie))
