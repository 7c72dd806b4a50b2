"""The contract of engines: what they are given, what they return, what they can do."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import RandomLike
from skpref.data import Comparisons, Rows
from skpref.gp import (
    Conditioned,
    InducedSpace,
    ItemSpace,
    MarginSpace,
    Moments,
    Pull,
    Sites,
    cheaper_by_margins,
    gaussian_space,
)
from skpref.inference._memory import check_exact, exact_bytes
from skpref.likelihoods import INEQUALITY, TIE, Answers, Likelihood

_SEARCH_TOL = 1e-5
_SEARCH_ITERATIONS = 100

# Arrays by name whose last axis runs over the rows of the distinct answers or of the single ones.
State = dict[str, NDArray[np.float64]]


class Pass(NamedTuple):
    """One pass of an engine over the answers, as those that watch it are told.

    Attributes
    ----------
    number : int
        From 1.
    bound : float
        On the log evidence, so far.
    residual : float
        In the engine's own measure.
    """

    number: int
    bound: float
    residual: float


Space = TypeVar("Space", bound=MarginSpace | ItemSpace | InducedSpace)
Found = TypeVar("Found", bound=Conditioned | Moments)


@dataclass(frozen=True, eq=False)
class Problem(Generic[Space]):
    """Answers over a prior at given hyperparameters: all an engine sees.

    A row is an inequality of a distinct answer, written so that its winner's margin is positive
    where f agrees.

    Attributes
    ----------
    space : MarginSpace, ItemSpace or InducedSpace
        The prior on the distinct margins; ``space.condition(precision, shift)`` conditions the
        first two on Gaussian sites.
    comparisons : Comparisons
    likelihood : Likelihood
    apart : bool
        Whether joint answers are taken apart, every inequality a duel with noise of its own.
    by_kernel : bool
        Whether derivatives with respect to the items' covariance are wanted.
    watch : callable or None
        Told of every `Pass` by engines that make long ones; where it returns True they end there.
    """

    space: Space
    comparisons: Comparisons
    likelihood: Likelihood
    apart: bool = False
    by_kernel: bool = True
    watch: Callable[[Pass], bool] | None = None

    @cached_property
    def rows(self) -> Rows:
        """The rows and their items."""
        rows = self.comparisons.rows
        return rows.apart() if self.apart else rows

    def in_duels(self) -> "Problem":
        """The same with joint answers taken apart."""
        space = gaussian_space(self.space.K, self.comparisons.rows.apart().margins)
        return Problem(space, self.comparisons, self.likelihood, apart=True)

    @cached_property
    def index(self) -> NDArray[np.intp]:
        """Margin of each row."""
        return self.rows.margins.index

    @cached_property
    def sign(self) -> NDArray[np.float64]:
        """+1 where the row's winner is the first item of its margin, −1 where it is the second."""
        return self.rows.margins.sign

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Weight of each row."""
        return self.rows.counts

    @cached_property
    def answers(self) -> Answers:
        """What a likelihood is told of each row."""
        return self.rows.answers

    @cached_property
    def copies(self) -> NDArray[np.float64]:
        """Number of equal factors of each row, at least 1: its count, if that is not below."""
        return np.maximum(self.counts, 1.0)

    @cached_property
    def shared(self) -> NDArray[np.float64]:
        """Sites that a row puts on its margin: its copies; of a joint answer, counted by the space,
        one."""
        return np.where(self.rows.kind == INEQUALITY, 1.0, self.copies)

    @cached_property
    def power(self) -> NDArray[np.float64] | None:
        """Power of each of these factors, below 1 for a count below 1; None: all are 1."""
        return np.minimum(self.counts, 1.0) if np.any(self.counts < 1.0) else None

    def oriented(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values on the margins as winner over loser, one a row."""
        return self.sign * margins[self.index]

    def pool(
        self, values: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Sum over the rows on each margin, weighted, by default by their counts."""
        weights = self.counts if weights is None else weights
        weighted = weights * values
        # With weights bincount gives floats, which numpy's stub does not tell.
        return np.bincount(self.index, weighted, self.space.n_margins)  # type: ignore[return-value]


class Approximation(NamedTuple, Generic[Found]):
    """What an engine found.

    Attributes
    ----------
    sites : Sites
        On the margins; several columns of ``shift`` are as many components. With inducing points,
        what the answers add to the precision and the shift of their weights.
    conditioned : Conditioned or Moments
        The marginals under ``sites``.
    state : dict of str to ndarray
        To start the next run from; the last axis of every array runs over the rows of the distinct
        answers, or of the single ones, as the engine's ``state_of`` says.
    n_iter : int
    residual : float
        How far from convergence the last iteration was, in the engine's own measure.
    converged : bool
    diagnostics : Diagnostics or None
        Of the chains, if the engine samples; the bound's history, if it has one.
    stopped : bool
        Whether the problem's ``watch`` ended the run.
    """

    sites: Sites
    conditioned: Found
    state: State
    n_iter: int
    residual: float
    converged: bool
    diagnostics: object = None
    stopped: bool = False


class EvidenceGradient(NamedTuple):
    """Derivatives of the log evidence.

    Attributes
    ----------
    covariance : ndarray of shape (n_items, n_items)
        Symmetric: d log Z = Σ_ij covariance_ij dK_ij. With inducing points a `Pull`. Not looked at
        unless the problem says ``by_kernel``.
    likelihood : ndarray of shape (n_theta,)
        In the free hyperparameters of the likelihood.
    """

    covariance: NDArray[np.float64] | Pull
    likelihood: NDArray[np.float64]


class Engine(BaseEstimator, ABC):
    """How the posterior is computed; a subclass of your own works wherever a name of one does.

    An engine is an options object: its constructor only assigns, so that ``clone`` and
    ``inference__option`` work. It says what it can do by class attributes.

    Attributes
    ----------
    has_evidence : bool
        `run` gives a log evidence and `evidence_gradient` its derivatives, so that
        hyperparameters can be learned with it. Otherwise those of `evidence_engine` are.
    samples : bool
        `run` draws random numbers; its posterior may have many components.
    takes_joint : bool
        It takes answers of several inequalities, such as choices of one of three, whose margins
        are seen with noise that they share.
    dense : bool
        It works with the covariance of all items. Otherwise it is given `InducedSpace`, the prior
        by inducing points, which it has from `placed`.
    state_of : {"duels", "answers", "points"}
        What the last axis of the arrays of its state runs over; an array of any other length starts
        nothing. Those of inducing points are handed on as they are.
    warm_start : bool
        A fit of the same estimator starts from the state of the last one.

    Examples
    --------
    >>> from skpref.inference import EP, HMC
    >>> EP.has_evidence, HMC.has_evidence, HMC().evidence_engine()
    (True, False, EP(tol=1e-05))
    """

    has_evidence: ClassVar[bool] = False
    samples: ClassVar[bool] = False
    takes_joint: ClassVar[bool] = False
    dense: ClassVar[bool] = True
    state_of: ClassVar[str] = "duels"
    warm_start = False

    @abstractmethod
    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        near: Approximation | None = None,
    ) -> Approximation:
        """Approximate the posterior of the margins.

        Parameters
        ----------
        problem : Problem
        start : dict, optional
            A ``state`` to start from, NaN for answers that are new since.
        rng : numpy.random.Generator, optional
            Given if the engine ``samples``.
        near : Approximation, optional
            That of `evidence_engine` at the same hyperparameters, unless it is this engine.
        """

    def evidence_gradient(self, problem: Problem, approximation: Approximation) -> EvidenceGradient:
        """Derivatives of the log evidence where `run` ended; needed with ``has_evidence``."""
        raise NotImplementedError(
            f"{type(self).__name__} says has_evidence = True and must define evidence_gradient, "
            "so that hyperparameters can be learned; or fix them all (optimizer=None)."
        )

    def evidence_engine(self) -> "Engine | None":
        """The engine whose evidence sets the hyperparameters; None: EP."""
        return self if self.has_evidence else None

    def learner(self) -> "Engine | None":
        """The engine whose evidence the search for hyperparameters maximises; None: the same."""
        return None

    def coarser(self, times: float = 1.0) -> "Engine":
        """This engine as the search for hyperparameters uses it: less exact, if it has ``tol``.

        Of many answers that tolerance is ``times`` larger.
        """
        options = self.get_params(deep=False)
        rough = {}
        if "tol" in options:  # sites this close to their fixed point: gradients good to about 1e-5
            rough["tol"] = max(options["tol"], _SEARCH_TOL * times)
        if "max_iter" in options:
            rough["max_iter"] = min(options["max_iter"], _SEARCH_ITERATIONS)
        return type(self)(**{**options, **rough})

    def extrapolated(self, states: list[State], weights: NDArray[np.float64]) -> State:
        """A state to start from, by an extrapolation from those of hyperparameters near.

        Parameters
        ----------
        states : list of dict
            That of the nearest first.
        weights : ndarray of shape (n_states,)
            They sum to one.
        """
        return states[0]

    def check(self) -> None:
        """Raise TypeError or ValueError unless the options are sound."""

    def check_comparisons(self, comparisons: Comparisons, likelihood: Likelihood) -> None:
        """Raise ValueError, before any work, if these cannot be taken."""

    def placed(self, comparisons: Comparisons, kernel: Kernel, rng: RandomLike = None) -> "Engine":
        """This engine ready for these answers: with inducing points, if it takes any."""
        return self

    def settled(self, kernel: Kernel, approximation: Approximation) -> "tuple[Engine, Kernel]":
        """This engine and the kernel with what `run` has found of the kernel's output scale."""
        return self, kernel

    def placed_again(
        self, comparisons: Comparisons, kernel: Kernel, likelihood: Likelihood
    ) -> "Engine":
        """This engine once the hyperparameters are known: with inducing points for them, if any."""
        return self

    def own_utilities(self, comparisons: Comparisons) -> bool:
        """Whether a part of an item's utility that no other item shares can be learned."""
        return True

    def side(self, comparisons: Comparisons) -> int:
        """Of the largest square matrices that are multiplied or factorised."""
        return min(len(comparisons.items), len(comparisons.rows))


def check_answers(engine: Engine, comparisons: Comparisons, likelihood: Likelihood) -> None:
    """Raise ValueError, before any work, if an engine or a likelihood cannot take these answers,
    MemoryError if an exact fit does not fit."""
    rows = comparisons.rows
    unknown = set(np.unique(rows.kind).tolist()) - likelihood.kinds - {INEQUALITY}
    if unknown:
        what, remedy = "grades of a win", "grade_thresholds, such as grade_thresholds=(1.0,)"
        if TIE in unknown:
            what, remedy = "ties", "tie_threshold, such as tie_threshold=0.1"
        raise ValueError(
            f"There are {what}, but {type(likelihood).__name__} knows none. Give {remedy}."
        )
    if rows.joint:
        needed = [each for each in (engine, engine.evidence_engine()) if each is not None]
        unable = [type(each).__name__ for each in needed if not each.takes_joint]
        if unable or INEQUALITY not in likelihood.kinds or likelihood.item_noise is None:
            who = unable[0] if unable else type(likelihood).__name__
            raise ValueError(
                f"{who} does not take choices and rankings of more than two items. Use "
                "inference='ep', 'hmc' or 'gibbs' (of options evidence='ep') with the probit "
                "likelihood, or break them into duels by from_rankings."
            )
        light = rows.counts[rows.kind == INEQUALITY] < 1.0
        if light.any():
            raise ValueError(
                f"Choices and rankings take weights of at least 1, or 0; "
                f"{rows.counts[rows.kind == INEQUALITY][light][0]:g} came. Leave such answers "
                "out, or break them into duels by from_rankings."
            )
    engine.check_comparisons(comparisons, likelihood)
    if engine.dense:
        check_exact(exact_bytes_of(comparisons), len(rows), len(comparisons.items))


def exact_bytes_of(comparisons: Comparisons) -> float:
    """Bytes that exact inference on these answers holds at most."""
    n_margins, n_items = len(comparisons.rows.margins.first), len(comparisons.items)
    return exact_bytes(n_margins, n_items, cheaper_by_margins(n_margins, n_items))


def started(start: State | None, name: str, n: int) -> NDArray[np.float64] | None:
    """An array (n,) of a state with zeros for what is new; None if there is no such state."""
    if start is None or name not in start or start[name].shape != (n,):
        return None
    return np.where(np.isnan(start[name]), 0.0, start[name])
