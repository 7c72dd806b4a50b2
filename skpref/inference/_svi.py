"""Sparse variational inference with natural gradients (Hensman et al. 2013, 2015)."""

from collections.abc import Iterator
from functools import reduce
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import NEGLIGIBLE, check_choice, check_number
from skpref.data import Comparisons, take_rows_with_items
from skpref.gp import Inducing, InducingPoints, Pull, Sites, Weights, moments
from skpref.inference._base import (
    Approximation,
    Capabilities,
    Engine,
    EvidenceGradient,
    Pass,
    Problem,
    State,
)
from skpref.inference._ep import EP
from skpref.inference._memory import check_memory
from skpref.inference._natural import (
    AnswerBatch,
    Ascent,
    BoundEvaluation,
    Gamma,
    LinearisedBatch,
    ascend,
    ascend_with_scale,
    check_linear,
    check_scale,
    empty_weights,
    rescale_weights,
    update_scale_posterior,
    watch_later_passes,
    with_scale,
)
from skpref.inference._workers import all_answers
from skpref.likelihoods import Likelihood

# A pass whose residual is more than so much of the last one's is noise for the most part.
_FALLS = 0.5


class InBatches:
    """All answers of a problem, ``size`` of them in memory at once, as `AscentPath` needs them.

    Parameters
    ----------
    problem : Problem
    answers : AnswerBatch
        All of them, of any kind of `AnswerBatch`; its prior may be of another output scale.
    size : int
        Rows of a batch.
    """

    def __init__(self, problem: Problem, answers: AnswerBatch, size: int):
        self._problem, self._batches, self.size = problem, answers, size

    @property
    def prior(self) -> Inducing:
        """The prior of all margins."""
        return self._batches.prior

    def each(self, rng: np.random.Generator | None = None) -> Iterator[AnswerBatch]:
        """Yield batches that hold every row once, in random order if there is a generator."""
        prior, rows = self.prior, self._problem.rows
        order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
        for k in range(0, len(order), self.size):
            numbers = np.sort(order[k : k + self.size])
            used, part = take_rows_with_items(rows, numbers)
            batch_prior = Inducing(prior.kernel, prior.items[used], part.margins, prior.Z, prior)
            yield self._batches.part(batch_prior, part, numbers)

    def evaluate(self, weights: Weights) -> BoundEvaluation:
        """Evaluate the bound and the target of all answers at q, without sites on the margins."""
        at = moments(weights)
        evaluation = reduce(
            BoundEvaluation.plus, (batch.evaluate_alone(at) for batch in self.each())
        )
        return evaluation.with_earlier_answers(self._batches.before)

    def scaled(self, kernel: Kernel, factor: float) -> "InBatches":
        """Return the answers under a kernel that is ``factor`` times as large."""
        return InBatches(self._problem, self._batches.scaled(kernel, factor), self.size)


class Schedule(NamedTuple):
    """Of the stochastic steps.

    Attributes
    ----------
    rate, delay : float
        Step t has length (t + delay)^−rate (Hoffman et al. 2013, eq. 26).
    max_iter : int
        Passes at most.
    """

    rate: float
    delay: float
    max_iter: int


class StochasticAscent(NamedTuple):
    """Where stochastic steps ended.

    Attributes
    ----------
    weights : Weights
        Mean of those of the last pass.
    scale : float
        The kernel's output scale that they belong to.
    stopped : bool
        Whether ``watch`` ended it.
    history : list of float
        Estimates of the bound by every step.
    smoothed : list of float
        Their mean over every pass, by the weight of the answers that they saw.
    """

    weights: Weights
    scale: float
    stopped: bool
    history: list[float]
    smoothed: list[float]


def ascend_stochastically(
    problem: Problem,
    answers: InBatches,
    weights: Weights,
    schedule: Schedule,
    prior: Gamma | None = None,
    scale: float = 1.0,
) -> StochasticAscent:
    """Take stochastic steps while they approach the optimum, and average the last pass.

    A pass sees every answer once, so that the sum of the targets of its batches, less the mean of q
    over the pass, is free of the batches' differences: it falls from pass to pass until noise is
    all that is left of it. The mean of the pass's natural parameters (Polyak and Juditsky 1992) is
    free of most of that noise.

    Parameters
    ----------
    problem : Problem
    answers : InBatches
    weights : Weights
        Where to start.
    schedule : Schedule
    prior : Gamma, optional
        Of the kernel's inverse output scale.
    scale : float
        The output scale of ``weights``.
    """
    rng, total, m = np.random.default_rng(0), float(problem.rows.counts.sum()), len(weights.shift)
    precision_posterior = (
        None if prior is None else Gamma(prior.shape + 0.5 * m, 1.0).with_mean(1.0 / scale)
    )
    history: list[float] = []
    smoothed: list[float] = []
    falls, stopped, last = True, False, (weights, scale)
    residual, t = np.inf, 0
    while falls and not stopped and len(smoothed) < schedule.max_iter:
        level, mean, mean_target = 0.0, _Mean(m), _Mean(m)
        for batch in answers.each(rng):
            t += 1
            length = min((t + schedule.delay) ** -schedule.rate, 1.0)
            share = total / float(batch.counts.sum())
            inverse = 1.0 if precision_posterior is None else precision_posterior.mean
            batch = (
                batch if precision_posterior is None else _scale_batch(batch, precision_posterior)
            )
            evaluation = batch.evaluate(weights)
            history.append(
                share * evaluation.fit
                - evaluation.at.divergence
                + _scale_bound(precision_posterior, prior, m)
            )
            level += history[-1] / share
            target = evaluation.target.scaled(share)
            mean_target.add(target, inverse, 1.0 / share)
            weights = weights.step_towards(target, length)
            if precision_posterior is not None and prior is not None:
                aim = update_scale_posterior(
                    prior, precision_posterior, evaluation.at, share * evaluation.scale_slope
                )
                next_posterior = precision_posterior.with_mean(
                    precision_posterior.mean * (aim.mean / precision_posterior.mean) ** length
                )
                weights = rescale_weights(weights, precision_posterior.mean / next_posterior.mean)
                precision_posterior = next_posterior
            mean.add(weights, 1.0 if precision_posterior is None else precision_posterior.mean)
        smoothed.append(level)
        end, inverse = mean.value
        before, residual = residual, _distance_in_deviations(end, mean_target.weights_at(inverse))
        falls = residual <= _FALLS * before
        watch = problem.watch
        stopped = watch is not None and watch(Pass(len(smoothed), level, residual))
        last = end, 1.0 / inverse
    return StochasticAscent(*last, stopped, history, smoothed)


def _distance_in_deviations(weights, target):
    """Return the distance of a target in the deviations of q."""
    return BoundEvaluation(moments(weights), 0.0, target, {}).residual(weights, target)


class _Mean:
    """Mean of natural parameters; those of different scales are averaged under a common one."""

    def __init__(self, m):
        self._weight, self._inverse = 0.0, 0.0
        self._gain, self._shift = np.zeros((m, m)), np.zeros(m)

    def add(self, weights, inverse, weight=1.0):
        """Add weights under the kernel divided by ``inverse`` to the mean."""
        self._weight += weight
        self._inverse += weight * inverse
        self._gain += weight * inverse * weights.gain
        self._shift += weight * np.sqrt(inverse) * weights.shift

    def weights_at(self, inverse):
        """Return the mean for the kernel divided by ``inverse``."""
        denominator = self._weight * inverse
        return Weights(self._gain / denominator, self._shift * np.sqrt(inverse) / denominator)

    @property
    def value(self):
        """The mean for the kernel divided by the mean inverse scale, and that scale."""
        inverse = self._inverse / self._weight
        return self.weights_at(inverse), inverse


def _scale_bound(scale_posterior, prior, m):
    """Return what q(λ) adds to the bound of m points; 0 without a q(λ)."""
    return 0.0 if scale_posterior is None else scale_posterior.bound(prior, m)


def _scale_batch(batch, scale_posterior):
    """Return the batch under the kernel divided by E[λ]."""
    return batch.scaled(
        with_scale(batch.prior.kernel, 1.0 / scale_posterior.mean), 1.0 / scale_posterior.mean
    )


class Course(NamedTuple):
    """Course of the bound.

    Attributes
    ----------
    bound_history : ndarray
        The bound on the log evidence at each iteration; of a minibatch its estimate.
    smoothed_bound : ndarray of shape (n_iter,)
        With minibatches, the mean of these estimates over each pass, and then the bound itself,
        at passes that add up what all batches want; else empty.
    inverse_scale : (float, float) or None
        With ``scale_prior``, shape and rate of q(λ), the kernel being divided by λ.
    """

    bound_history: NDArray[np.float64]
    smoothed_bound: NDArray[np.float64]
    inverse_scale: Gamma | None = None

    @property
    def output_scale(self) -> float:
        """Factor of the kernel: 1/E[λ], or 1 without ``scale_prior``."""
        return 1.0 if self.inverse_scale is None else 1.0 / self.inverse_scale.mean


def scale_from_state(state: State | None) -> float:
    """Return the kernel's output scale that a state belongs to; 1 without a state."""
    return 1.0 if state is None else float(state["scale"][0])


def weights_from_state(start: State | None, prior: Inducing, total: float) -> Weights | None:
    """Return the weights of q that a state holds; None if it holds none of these points.

    Of the same answers by their sites, which hardly depend on the hyperparameters; of others as if
    they were of this total weight.
    """
    if start is None or start["shift"].shape != (len(prior.Z),):
        return None
    before = float(start["total"][0])
    if before == total and start.get("pull", np.zeros(0)).shape == (prior.n_margins,):
        return rescale_weights(
            prior.weights_of_sites(start["precision"], start["pull"]), scale_from_state(start)
        )
    return Weights(start["gain"], start["shift"]).scaled(total / before)


def svi_approximation(
    end: Ascent,
    total: float,
    inverse_scale: Gamma | None = None,
    earlier: StochasticAscent | None = None,
) -> Approximation:
    """Return the approximation that an ascent ends with, perhaps after stochastic steps."""
    history, smoothed, n_iter, stopped = end.history, [], end.n_iter, end.stopped
    if earlier is not None:
        if earlier.stopped:  # the last evaluation was not a pass
            history, n_iter, stopped = [], 0, True
        history, smoothed = earlier.history + history, earlier.smoothed + history
        n_iter += len(earlier.smoothed)
    weights, course = end.weights, Course(np.array(history), np.array(smoothed), inverse_scale)
    state = svi_state(weights, total, course) | end.evaluation.sites
    sites = Sites(weights.shift, weights.gain, end.bound)
    run = n_iter, end.residual, end.converged, course, stopped
    return Approximation(sites, end.at, state, *run)


def svi_state(weights: Weights, total: float, course: Course) -> State:
    """Return the arrays of q, learned from answers of this total weight, for a warm start."""
    scalars = {"total": np.array([total]), "scale": np.array([course.output_scale])}
    return {"gain": weights.gain, "shift": weights.shift, **scalars}


def bound_at(
    prior: Inducing, comparisons: Comparisons, likelihood: Likelihood, sites: State | None
) -> tuple[float, Pull, State]:
    """Maximise the bound at inducing points; return it, its derivatives, and the sites there."""
    batch = AnswerBatch.from_rows(prior, comparisons.rows, likelihood)
    start = empty_weights(len(prior.Z))
    if sites is not None:
        start = prior.weights_of_sites(sites["precision"], sites["pull"])
    end = ascend(batch, start, _SEARCH_TOL, SVI().max_iter)
    return end.bound, batch.pull_at(end.at), end.evaluation.sites


# Doubles held at most, beside two a row and point: a row, and a pair of points; as measured.
_A_ROW, _A_SQUARE = 200.0, 60.0
# Answers that a run on many begins with, before it sees all.
_BEGIN = 10_000
# Looseness of a run within the search for hyperparameters, and under points that are moved.
_SEARCH_TOL = 3e-3


class SVI(Engine):
    """Options of sparse variational inference, for many answers and many items.

    The utility is carried by inducing points, q(u) = N(m, S) of their utilities maximises a lower
    bound of the evidence, Σ E_q[log p(answer | u)] − KL(q ‖ prior) [1]_ [2]_, by natural-gradient
    steps [3]_. The prior is the fully independent training conditional, FITC [4]_: the variance of
    a margin that the points do not explain, its FITC residual variance, counts as noise of the
    answer. Few points then widen predictions, and do not bias the hyperparameters. With a point for
    every item the residual variance is 0, and the bound is one on the evidence of the exact model.
    A step costs the number of answers times that of the points, plus the number of items times that
    of the points squared.

    Parameters
    ----------
    n_inducing : int, default=200
        Number of inducing points, at most: centres of clusters of the items, moved a few steps up
        the bound, once the hyperparameters are known, where they leave more than a hundredth of the
        items' variance. Items that a kernel tells by name alone
        (`skpref.kernels.Identity`) are all points of their own. Of a kernel of few features (ids,
        linear and polynomial parts, `skpref.kernels`) as many as there are features are enough, and
        leave nothing out; of such terms beside others, in columns of their own, they come on top of
        ``n_inducing``.
    inducing_points : array-like of shape (m, n_features), default=None
        The points themselves.
    batch_size : int, default=None
        None: every step sees all answers, is of length 1, or shorter where the bound would fall,
        and the fit takes a few. A number: steps see so many answers, drawn without replacement,
        and step t has length ``(t + delay) ** -forgetting_rate``, pass after pass while these come
        nearer; from the mean of q over the last one, steps that add up what all batches ask for go
        on to the end that they would reach without batches. Features are held of one batch at a
        time. Pieces of a stream are seen by such sums alone.
    max_iter : int, default=100
        Passes over the answers at most.
    tol : float, default=1e-4
        Stop once the step that all answers ask for is shorter than this many deviations of q; the
        bound then lacks about half its square.
    forgetting_rate : float, default=0.7
        In (0.5, 1].
    delay : float, default=1.0
        At least 0.
    scale_prior : (float, float), default=None
        Shape and rate of a gamma prior on λ, the kernel being divided by λ [2]_; both above 0. Its
        mean, λ = shape / rate, is what is expected before any answer. q(λ) is found with q(u), and
        ``kernel_`` is multiplied by 1/E[λ]. Only the ratio of this scale to the noise is told by
        answers, so hold the noise. Pieces of a stream keep the scale until hyperparameters are
        learned again. None: the kernel is as it is.
    local : {"expected", "ekf"}, default="expected"
        What a step wants of an answer: that the expected log-probability be largest, or "ekf", for
        comparison, the linearised update of [2]_: least squares of each pair's share of wins, which
        promises no bound, sees no variances, may have several ends, and takes neither ties nor an
        order effect. Pieces of a stream keep the tangents of their own time, so that streams of few
        answers end elsewhere than one fit: with 100 to 300, probabilities may be off by .5 (root
        mean square .1), with 1200 by .15 (.01); "expected" was off by .35 (.05) and .08 (.005).
        Hyperparameters are learned by "expected".
    evidence : {"ep", "bound"}, default="ep"
        What hyperparameters are learned by: the evidence of EP with all items, on 800 of the
        answers (``n_learning_answers`` of the estimator; on all where items are few), or the bound,
        on 5000. The bound takes what few points cannot express for noise, or fits the noise, and
        may end far off. With ``scale_prior`` always the bound.
    n_jobs : int, default=None
        Answers beyond 50 000 are shared out in shards to so many workers by joblib; −1: one a
        processor. 1 does the shards one after another: the number and kind of workers never change
        the result. None: no shards, all answers at once, unless within a
        `joblib.parallel_config` that spreads work, such as over a dask cluster; with shards the
        result is the same up to rounding. With ``batch_size``, ``scale_prior`` or "ekf" answers are
        not shared out.

    Notes
    -----
    Choices and rankings are not taken. Expected log-probabilities are found by quadrature from the
    likelihood, so that ties, order effects, weights and other likelihoods work.

    References
    ----------
    .. [1] Hensman, Matthews, Ghahramani, "Scalable variational Gaussian process classification",
       AISTATS 2015.
    .. [2] Simpson and Gurevych, "Finding convincing arguments using scalable Bayesian preference
       learning", TACL 2018.
    .. [3] Hensman, Fusi, Lawrence, "Gaussian processes for big data", UAI 2013.
    .. [4] Quiñonero-Candela and Rasmussen, "A unifying view of sparse approximate Gaussian process
       regression", JMLR 2005, section 6.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.datasets import load_candy
    >>> from skpref.inference import SVI
    >>> candy = load_candy(n_duels=1000)
    >>> model = PairwisePreferenceRegressor(inference=SVI(n_inducing=50), random_state=0)
    >>> model.fit(candy.X, candy.y).posterior_.anchors.shape
    (50, 11)
    """

    capabilities: ClassVar[Capabilities] = Capabilities(has_evidence=True, state_of="points")

    def __init__(
        self,
        n_inducing: int = 200,
        inducing_points: ArrayLike | None = None,
        *,
        batch_size: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        forgetting_rate: float = 0.7,
        delay: float = 1.0,
        scale_prior: tuple[float, float] | None = None,
        local: str = "expected",
        evidence: str = "ep",
        n_jobs: int | None = None,
    ):
        self.n_inducing = n_inducing
        self.inducing_points = inducing_points
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.forgetting_rate = forgetting_rate
        self.delay = delay
        self.scale_prior = scale_prior
        self.local = local
        self.evidence = evidence
        self.n_jobs = n_jobs

    def check(
        self, comparisons: Comparisons | None = None, likelihood: Likelihood | None = None
    ) -> None:
        """Raise unless the options are sound, the way of ``local`` takes the answers, and what is
        held of them fits into memory."""
        check_number("n_inducing", self.n_inducing, low=1, integer=True)
        if self.batch_size is not None:
            check_number("batch_size", self.batch_size, low=1, integer=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number("tol of the engine", self.tol, low=0.0, open_low=True, open_high=True)
        check_number("forgetting_rate", self.forgetting_rate, low=0.5, high=1.0, open_low=True)
        check_number("delay", self.delay, low=0.0, open_high=True)
        check_choice("local", self.local, ("expected", "ekf"))
        check_choice("evidence", self.evidence, ("ep", "bound"))
        if self.scale_prior is not None:
            _check_scale_prior(self.scale_prior)
        if self.n_jobs is not None:
            check_number("n_jobs of the engine", self.n_jobs, integer=True)
            if self.n_jobs == 0:
                raise ValueError(
                    "n_jobs of the engine must be None, a number of workers, or -1 for one a "
                    "processor, got 0."
                )
        if self.inducing_points is not None:
            _check_inducing_points(self.inducing_points)
        if self.local == "ekf" and comparisons is not None and likelihood is not None:
            check_linear(comparisons, likelihood)
        if comparisons is not None and self.n_jobs is None:  # workers may have memory of their own
            self._check_memory(comparisons)

    def _check_memory(self, comparisons):
        """Raise MemoryError if the matrices of the inducing points do not fit."""
        m, n = self.matrix_size(comparisons), len(comparisons.rows)
        at_once = min(n, len(comparisons.items))
        if self.batch_size is not None:
            at_once = min(at_once, max(self.batch_size, min(-(-n // 4), _BEGIN)))
        check_memory(
            8.0 * (2.0 * at_once * m + _A_ROW * n + _A_SQUARE * m**2),
            f"Inference by {m} inducing points for {n} distinct comparisons",
            "Use fewer of them (n_inducing), answers in batches (batch_size), or fewer answers.",
        )

    @property
    def prior_rule(self) -> InducingPoints:
        """Rule of its inducing points; with ``scale_prior`` and "ekf" they are not moved."""
        Z = None
        if self.inducing_points is not None:
            Z = np.asarray(self.inducing_points, dtype=np.float64)
        plain = self.scale_prior is None and self.local == "expected"
        return InducingPoints(self.n_inducing, Z, bound_at if plain else None)

    def row_sites(
        self, problem: Problem, approximation: Approximation
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sites of the expected curvature under q, see `Engine.row_sites`."""
        batch = AnswerBatch.from_rows(problem.prior, problem.rows, problem.likelihood)
        mean, variance, rest = batch.row_moments(
            problem.prior.margin_moments(approximation.conditioned)
        )
        expected = problem.likelihood.expected(mean, variance, rest, problem.answers)
        share = problem.counts / problem.copies
        precision = -2.0 * share * expected.by_variance
        return precision, share * expected.by_mean + precision * mean

    def evidence_engine(self, search: bool = False) -> Engine:
        """Return this engine; for the search EP, unless the bound is asked for."""
        by_ep = search and self.evidence == "ep" and self.scale_prior is None
        return EP() if by_ep else self

    def relax_tolerance(self) -> Self:
        """Return this engine as the search for hyperparameters uses it: exact to 1e-5 nats."""
        options = self.get_params(deep=False)
        tol = max(self.tol, _SEARCH_TOL)
        return type(self)(**{**options, "tol": tol, "batch_size": None, "local": "expected"})

    def matrix_size(self, comparisons: Comparisons) -> int:
        """Number of inducing points."""
        if self.inducing_points is None:
            return min(self.n_inducing, len(comparisons.items))
        return np.shape(np.asarray(self.inducing_points))[0]

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        gaussian: Approximation | None = None,
    ) -> Approximation:
        """Maximise the bound, see `Engine.run`."""
        self.check()
        if self.scale_prior is not None:
            check_scale(problem.prior.kernel)
        answers = self._batched_answers(problem)
        weights, scale, n_seen = self._starting_weights(problem, start)
        prior = None if self.scale_prior is None else Gamma(*self.scale_prior)
        stochastic_result, n_passes, watch = None, self.max_iter, problem.watch
        if isinstance(answers, InBatches):
            options = self.forgetting_rate, self.delay + n_seen // answers.size
            schedule = Schedule(*options, self.max_iter - 1)
            stochastic_result = ascend_stochastically(
                problem, answers, weights, schedule, prior, scale
            )
            weights, scale, n_done = (
                stochastic_result.weights,
                stochastic_result.scale,
                len(stochastic_result.smoothed),
            )
            n_passes, watch = n_passes - n_done, watch and watch_later_passes(watch, n_done)
            if stochastic_result.stopped:  # its bound is still to be known
                n_passes, watch = 1, None
        run = self.tol, n_passes, watch
        if prior is None:
            end, inverse_scale = ascend(answers, weights, *run), None
        else:
            end, inverse_scale = ascend_with_scale(answers, weights, prior, scale, *run)
        result = svi_approximation(
            end, float(problem.counts.sum()), inverse_scale, stochastic_result
        )
        return result if prior is None else self._absorb_scale(prior, problem.prior.kernel, result)

    def _absorb_scale(self, prior, kernel, result):
        """Return the result with the scale in its kernel, and the scale's prior to match."""
        scale = scale_from_state(result.state)
        absorbed = prior.shape, prior.rate / scale
        options = {**self.get_params(deep=False), "scale_prior": absorbed}
        return result._replace(absorbed=(type(self)(**options), with_scale(kernel, scale)))

    def run_after(self, problem: Problem, earlier: Weights) -> Approximation:
        """Maximise the bound with a prior that has learned from earlier answers.

        Parameters
        ----------
        problem : Problem
            The new answers.
        earlier : Weights
            Those of the earlier ones, on the same inducing points.

        Returns
        -------
        Approximation
            Given all answers; its bound is on the log evidence of the new ones.
        """
        batch = self._batched_answers(problem, earlier)
        end = ascend(batch, earlier, self.tol, self.max_iter, problem.watch)
        return svi_approximation(end, float(problem.counts.sum()))

    def _batched_answers(self, problem, earlier=None):
        """Return all answers as one batch, as minibatches, or in shards for workers."""
        size = self._rows_per_batch(problem)
        if size is not None:
            answers = self._batch_type.from_rows(
                problem.prior, problem.rows, problem.likelihood, earlier
            )
            return InBatches(problem, answers, size)
        if self.local == "expected" and self.scale_prior is None:
            return all_answers(problem, self.n_jobs, earlier)
        return self._batch_type.from_rows(problem.prior, problem.rows, problem.likelihood, earlier)

    def _rows_per_batch(self, problem):
        """Return the number of rows of a batch; None if all rows are one batch."""
        size = self.batch_size
        return size if size is not None and size < len(problem.rows) else None

    @property
    def _batch_type(self):
        """Return the class of batches that takes the steps of ``local``."""
        return LinearisedBatch if self.local == "ekf" else AnswerBatch

    def _starting_weights(self, problem, start):
        """Return the weights of q to start from, its output scale, and how many answers they come
        from."""
        prior, total = problem.prior, float(problem.counts.sum())
        n, n_seen = len(problem.comparisons.positions), 0
        weights, scale = weights_from_state(start, prior, total), scale_from_state(start)
        if weights is not None:
            return weights, scale, n
        if self._rows_per_batch(problem) is not None:
            n_seen = min(-(-n // 4), _BEGIN)
        elif n >= 4 * _BEGIN:
            n_seen = _BEGIN
        if not n_seen:
            return empty_weights(len(prior.Z)), 1.0, 0
        part, kernel, Z = problem.comparisons.spread(n_seen), prior.kernel, prior.Z
        small = Inducing(kernel, part.items, part.rows.margins, Z, prior)
        approximation = self.relax_tolerance().run(Problem(small, part, problem.likelihood))
        return (
            weights_from_state(approximation.state, prior, total),
            scale_from_state(approximation.state),
            n_seen,
        )

    def evidence_gradient(self, problem: Problem, approximation: Approximation) -> EvidenceGradient:
        """Return the derivatives of the bound at its maximum over q."""
        if self.local == "ekf":
            raise ValueError(
                "SVI(local='ekf') does not maximise the bound, whose derivatives are therefore not "
                "known. Use SVI(local='expected')."
            )
        batch = AnswerBatch.from_rows(problem.prior, problem.rows, problem.likelihood)
        scale = scale_from_state(approximation.state)
        if scale != 1.0:
            batch = batch.scaled(with_scale(problem.prior.kernel, scale), scale)
        row_moments = batch.row_moments(batch.prior.margin_moments(approximation.conditioned))
        expected = batch.likelihood.expected(*row_moments, batch.answers)
        slopes = batch.likelihood.expected_theta_gradient(*row_moments, batch.answers)
        prior, by_kernel = cast(Inducing, problem.prior), np.zeros(0)
        if len(prior.kernel.theta):
            pull = batch.pull(expected, approximation.conditioned)
            by_kernel = prior.contract(pull.divide_prior_variance(scale))
        return EvidenceGradient(by_kernel, slopes @ batch.counts)


def _check_inducing_points(points):
    """Raise ValueError unless inducing points are numbers of shape (m, n_features), m > 0."""
    try:
        shape = np.shape(np.asarray(points, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ValueError(
            "inducing_points must be numbers of shape (m, n_features), as the rows of items that "
            f"the kernel sees: {error}."
        ) from error
    if len(shape) != 2 or not shape[0]:
        raise ValueError(
            f"inducing_points must have shape (m, n_features) with m > 0, got {shape}."
        )


def _check_scale_prior(prior):
    """Raise unless the prior of the output scale is a pair of positive numbers."""
    shape = np.shape(prior)
    if shape != (2,):
        raise ValueError(
            f"scale_prior must be None or (shape, rate) of a gamma distribution, got {prior!r}."
        )
    for name, value in zip(("shape", "rate"), prior, strict=True):
        limits = {"low": 0.0, "high": 1.0 / NEGLIGIBLE, "open_low": True}
        check_number(f"{name} of scale_prior", value, **limits)
