"""The contract of engines: problem, approximation, capabilities."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel

from skpref.data import Comparisons, Rows, check_kinds
from skpref.gp import ChainRule, Marginals, Moments, Prior, PriorRule, Sites
from skpref.inference._memory import check_exact
from skpref.likelihoods import INEQUALITY, Answers, Likelihood

# Sites this close to their fixed point have gradients good to about 1e-5.
SEARCH_TOL = 1e-5

# Arrays by name whose last axis runs over the rows of the distinct answers or of the single ones.
State = dict[str, NDArray[np.float64]]


class Pass(NamedTuple):
    """One pass of an engine over the answers, as ``watch`` gets it.

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


PriorT = TypeVar("PriorT", bound=Prior)
Found = TypeVar("Found", bound=Marginals | Moments)


@dataclass(frozen=True, eq=False)
class Problem(Generic[PriorT]):
    """Comparisons, their prior and likelihood at given hyperparameters: all that an engine sees.

    A row is an inequality of a distinct answer, written so that its winner's margin is positive
    where f agrees.

    Attributes
    ----------
    prior : Prior
        On the distinct margins; ``prior.condition(precision, shift)`` conditions them on Gaussian
        sites.
    comparisons : Comparisons
    likelihood : Likelihood
    apart : bool
        Whether joint answers are taken apart, every inequality a duel with noise of its own.
    watch : callable or None
        Told of every `Pass` by engines that make long ones; where it returns True they end there.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref.duels import Comparisons
    >>> from skpref.gp import choose_prior
    >>> from skpref.inference import EP, Problem
    >>> from skpref.likelihoods import Probit
    >>> seen = Comparisons.from_duels(np.array([[0.0], [1.0]]), [0], [1], [True])
    >>> kernel, likelihood = RBF(1.0), Probit(0.5)
    >>> prior = choose_prior(kernel, seen, likelihood).from_comparisons(kernel, seen, likelihood)
    >>> found = EP().run(Problem(prior, seen, likelihood))
    >>> bool(found.conditioned.mean[0] > 0.0)
    True
    """

    prior: PriorT
    comparisons: Comparisons
    likelihood: Likelihood
    apart: bool = False
    watch: Callable[[Pass], bool] | None = None

    @cached_property
    def rows(self) -> Rows:
        """Distinct duels, ties and inequalities, with their items."""
        rows, mean = self.comparisons.rows, self.prior.utility_mean
        if mean is not None:  # known of the margins by values
            offset = mean[rows.first] - mean[rows.second]
            rows = replace(rows, offset=offset if rows.offset is None else offset + rows.offset)
        return rows.split_joint_answers() if self.apart else rows

    def split_joint_answers(self) -> "Problem":
        """Return the problem with joint answers broken into duels."""
        prior = self.prior.on_duels(self.comparisons.rows.split_joint_answers().margins)
        return Problem(prior, self.comparisons, self.likelihood, apart=True)

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
        """The rows as a likelihood takes them."""
        return self.rows.answers

    @cached_property
    def copies(self) -> NDArray[np.float64]:
        """Number of equal factors of each row, at least 1: its count, if that is not below."""
        return np.maximum(self.counts, 1.0)

    @cached_property
    def power(self) -> NDArray[np.float64] | None:
        """Power of each of these factors, below 1 for a count below 1; None: all are 1."""
        return np.minimum(self.counts, 1.0) if np.any(self.counts < 1.0) else None

    def orient_margins(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values on the margins as winner over loser, one a row."""
        return self.sign * margins[self.index]

    def pool(
        self, values: NDArray[np.float64], weights: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the sum over the rows on each margin, weighted, by default by their counts."""
        weights = self.counts if weights is None else weights
        weighted = weights * values
        sums = np.bincount(self.index, weighted, self.prior.n_margins)
        return sums  # type: ignore[return-value]  # floats, which numpy's stub does not know


class Approximation(NamedTuple, Generic[Found]):
    """Result of an engine.

    Attributes
    ----------
    sites : Sites
        On the margins; several columns of ``shift`` are as many components. With inducing points,
        what the answers add to the precision and the shift of their weights.
    conditioned : Marginals or Moments
        The marginals under ``sites``; with inducing points the moments of their weights.
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
    absorbed : (Engine, Kernel) or None
        The engine and the kernel with what the run has found of the kernel's output scale, if it
        looks for that.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref.duels import Comparisons
    >>> from skpref.gp import choose_prior
    >>> from skpref.inference import EP, Approximation, Problem
    >>> from skpref.likelihoods import Probit
    >>> seen = Comparisons.from_duels(np.array([[0.0], [1.0]]), [0], [1], [True])
    >>> kernel, likelihood = RBF(1.0), Probit(0.5)
    >>> prior = choose_prior(kernel, seen, likelihood).from_comparisons(kernel, seen, likelihood)
    >>> found = EP().run(Problem(prior, seen, likelihood))
    >>> isinstance(found, Approximation), found.converged, found.sites.precision.shape
    (True, True, (1,))
    """

    sites: Sites
    conditioned: Found
    state: State
    n_iter: int
    residual: float
    converged: bool
    diagnostics: object = None
    stopped: bool = False
    absorbed: "tuple[Engine, Kernel] | None" = None


class EvidenceGradient(NamedTuple):
    """Derivatives of the log evidence.

    Attributes
    ----------
    kernel : ndarray of shape (n_kernel_theta,)
        In the free hyperparameters of the kernel, as `Prior.pull_back` gives them.
    likelihood : ndarray of shape (n_theta,)
        In those of the likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.inference import EvidenceGradient
    >>> slope = EvidenceGradient(kernel=np.array([0.3]), likelihood=np.array([-0.1]))
    >>> np.concatenate([slope.kernel, slope.likelihood])
    array([ 0.3, -0.1])
    """

    kernel: NDArray[np.float64]
    likelihood: NDArray[np.float64]


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do.

    Attributes
    ----------
    has_evidence : bool
        `Engine.run` gives a log evidence and `Engine.evidence_gradient` its derivatives, so that
        hyperparameters can be learned with it. Otherwise those of `Engine.evidence_engine` are.
    samples : bool
        `Engine.run` draws random numbers; its posterior may have many components.
    takes_joint : bool
        It takes answers of several inequalities, such as choices of one of three, whose margins
        are seen with noise that they share.
    state_of : {"duels", "answers", "points"}
        What the last axis of the arrays of its state runs over; an array of any other length starts
        nothing. Those of inducing points are handed on as they are.
    matches_moments : bool
        Its sites match the moments of each answer, as `site_update` does. Hyperparameters of many
        users, and chains that start from a Gaussian, need such sites.

    Examples
    --------
    >>> from skpref.inference import EP, Laplace
    >>> EP().capabilities.takes_joint, Laplace().capabilities.takes_joint
    (True, False)
    """

    has_evidence: bool = False
    samples: bool = False
    takes_joint: bool = False
    state_of: str = "duels"
    matches_moments: bool = False


class Engine(BaseEstimator, ABC):
    """How the posterior is computed; a subclass of your own works wherever a name of one does.

    An engine is an options object: its constructor only assigns, so that ``clone`` and
    ``inference__option`` work. Only `run` must be defined.

    Attributes
    ----------
    capabilities : Capabilities
    prior_rule : PriorRule
        How it comes to its prior: by default the cheapest exact one.

    Examples
    --------
    >>> from skpref.inference import EP, HMC
    >>> EP.capabilities.has_evidence, HMC.capabilities.has_evidence, HMC().evidence_engine()
    (True, False, EP(tol=1e-05))
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    @property
    def prior_rule(self) -> PriorRule:
        """The rule that chooses its prior."""
        return PriorRule()

    @abstractmethod
    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        gaussian: Approximation | None = None,
    ) -> Approximation:
        """Approximate the posterior of the margins.

        Parameters
        ----------
        problem : Problem
        start : dict, optional
            A ``state`` to start from, NaN for answers that are new since.
        rng : numpy.random.Generator, optional
            Given if the engine samples.
        gaussian : Approximation, optional
            That of `evidence_engine` at the same hyperparameters, unless it is this engine.
        """

    def evidence_gradient(self, problem: Problem, approximation: Approximation) -> EvidenceGradient:
        """Return the derivatives of the log evidence where `run` ended; raise NotImplementedError
        here."""
        raise NotImplementedError(
            f"{type(self).__name__} says has_evidence=True and must define evidence_gradient, "
            "so that hyperparameters can be learned; or fix them all (optimizer=None)."
        )

    def row_sites(
        self, problem: Problem, approximation: Approximation
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return precision and shift of the site of each row, as often as `Problem.copies` says.

        On the margin of the row's winner over its loser, shape (n_rows,) each; what is left
        without them tells what the other answers say of each. Needed by `skpref.inspection.loo`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say which sites its answers have. Define "
            "row_sites(problem, approximation), or fit with inference='ep'."
        )

    def evidence_engine(self, search: bool = False) -> "Engine | None":
        """Return the engine whose evidence sets the hyperparameters; None: EP.

        With ``search`` that whose evidence the search for them maximises, if it is another.
        """
        return self if self.capabilities.has_evidence else None

    def relax_tolerance(self) -> "Engine":
        """Return the engine for the search for hyperparameters: less exact, if it has ``tol``."""
        options = self.get_params(deep=False)
        if "tol" in options:
            options["tol"] = max(options["tol"], SEARCH_TOL)
        return type(self)(**options)

    def reduce_draws(self, weight: float) -> "Engine":
        """Return the engine for a part of this weight of a mixture: with fewer draws."""
        return self

    def check(
        self, comparisons: Comparisons | None = None, likelihood: Likelihood | None = None
    ) -> None:
        """Raise TypeError or ValueError unless the options are sound, and the answers can be taken.

        Called with the options alone, and once more before any work with what there is to fit.
        """

    def matrix_size(self, comparisons: Comparisons) -> int:
        """Return the side of the largest square matrices that are multiplied or factorised."""
        return min(len(comparisons.items), len(comparisons.rows))


def check_answers(
    engine: Engine,
    comparisons: Comparisons,
    likelihood: Likelihood,
    kernel: Kernel | None = None,
) -> None:
    """Raise ValueError, before any work, if an engine or a likelihood cannot take these answers,
    MemoryError if an exact fit does not fit."""
    rows = comparisons.rows
    allowed_kinds = likelihood.kinds | {INEQUALITY}
    check_kinds(np.unique(rows.kind).tolist(), allowed_kinds, type(likelihood).__name__)
    measured = comparisons.measured is not None
    if (measured or rows.offset is not None) and not likelihood.takes_offset:
        raise ValueError(
            f"got {'measured=' if measured else 'offset='} with {type(likelihood).__name__}, which "
            "does not say that it adds Answers.offset to the margin. Leave likelihood= out, take "
            "Probit or GradedProbit, or let yours add it and say so by takes_offset."
        )
    if rows.joint:
        _check_joint(engine, rows, likelihood)
    check_log_concave(engine, likelihood)
    if not likelihood.log_concave and np.any(rows.counts < 1.0):
        raise ValueError(
            f"got a weight of {rows.counts.min():g} with {type(likelihood).__name__}; weights of "
            "at least 1, or 0, are allowed. Multiply them, or leave likelihood= out."
        )
    engine.check(comparisons, likelihood)
    rule = engine.prior_rule
    grouped = comparisons.group_column is not None
    exact_alone = "measured=" if measured else "prompts=" if grouped else None
    if exact_alone and (rule.by_points or rule.through_time):
        raise ValueError(
            f"got {exact_alone} with {type(engine).__name__}; engines whose priors are exact are "
            "allowed. Use inference='ep', 'laplace', 'hmc' or 'gibbs' (of EP items='joint'), or "
            f"leave {exact_alone} out."
        )
    if kernel is not None:
        rule.check(kernel, comparisons)
    if rule.exact:
        held = rule.cost(kernel, comparisons, likelihood).n_bytes
        check_exact(held, len(rows), len(comparisons.items))


def _check_joint(engine: Engine, rows: Rows, likelihood: Likelihood) -> None:
    """Raise ValueError if an engine or a likelihood cannot take choices and rankings."""
    needed = [each for each in (engine, engine.evidence_engine()) if each is not None]
    unable = [type(each).__name__ for each in needed if not each.capabilities.takes_joint]
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
            "Choices and rankings take weights of at least 1, or 0; "
            f"got {rows.counts[rows.kind == INEQUALITY][light][0]:g}. Leave such answers "
            "out, or break them into duels by from_rankings."
        )


def check_log_concave(engine: Engine, likelihood: Likelihood) -> None:
    """Raise ValueError of a likelihood that is not log-concave, unless an engine matches moments.

    Examples
    --------
    >>> from skpref.inference import EP, check_log_concave
    >>> from skpref.likelihoods import Lapses, Probit
    >>> check_log_concave(EP(), Lapses(Probit()))
    """
    if not (likelihood.log_concave or engine.capabilities.matches_moments):
        raise ValueError(
            f"got {type(likelihood).__name__} with {type(engine).__name__}; it is not log-concave, "
            "so that EP alone is allowed. Use inference='ep', or leave likelihood= out."
        )


def rule_of_items(items: str) -> PriorRule:
    """Return the rule of priors for the option ``items``; raise ValueError for any other value."""
    if items not in ("joint", "independent"):
        raise ValueError(f"items of the engine must be 'joint' or 'independent', got {items!r}.")
    return ChainRule() if items == "independent" else PriorRule()


def warm_start_array(start: State | None, name: str, n: int) -> NDArray[np.float64] | None:
    """Return an array (n,) of a state, with zeros for new answers; None without such a state.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.inference import warm_start_array
    >>> warm_start_array({"shift": np.array([0.5, np.nan])}, "shift", 2)
    array([0.5, 0. ])
    >>> warm_start_array(None, "shift", 2) is None
    True
    """
    if start is None or name not in start or start[name].shape != (n,):
        return None
    return np.where(np.isnan(start[name]), 0.0, start[name])
