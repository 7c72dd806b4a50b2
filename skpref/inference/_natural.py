"""Natural gradients of the variational bound, its output scale, and linearised likelihoods."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product

from skpref._utils import NEGLIGIBLE, Array, NoCovarianceError
from skpref.data import Comparisons, Rows
from skpref.gp import NOTICED, Inducing, MarginMoments, Moments, Pull, Weights, moments
from skpref.inference._base import Pass, State
from skpref.likelihoods import Answers, Expected, Likelihood

# The shortest step.
_LEAST_STEP = 1e-3
# Differences of steps that are extrapolated over.
MEMORY = 5


def empty_weights(m: int) -> Weights:
    """Return the natural parameters of m points that no answer speaks of: zeros."""
    return Weights(np.zeros((m, m)), np.zeros(m))


@dataclass(frozen=True, eq=False)
class AnswerBatch:
    """Rows of answers and the prior of their margins."""

    prior: Inducing
    likelihood: Likelihood
    index: NDArray[np.intp]
    sign: NDArray[np.float64]
    counts: NDArray[np.float64]
    answers: Answers
    before: Weights | None = None  # what earlier answers told, as part of the prior

    @classmethod
    def from_rows(
        cls,
        prior: Inducing,
        rows: Rows,
        likelihood: Likelihood,
        earlier: Weights | None = None,
    ) -> Self:
        """Return the batch of all these rows; ``earlier`` are weights of earlier answers."""
        margins = rows.margins
        answer_arrays = rows.counts, rows.answers
        return cls(prior, likelihood, margins.index, margins.sign, *answer_arrays, earlier)

    def pool(self, values):
        """Return the weighted sum over the rows on each margin."""
        return np.bincount(self.index, self.counts * values, self.prior.n_margins)

    def row_moments(self, margins: MarginMoments) -> tuple[Array, Array, Array]:
        """Return mean, variance and residual variance of each row's margin, winner less loser."""
        mean, variance, rest = (each[self.index] for each in margins)
        return self.sign * mean, variance, rest

    def pull(self, expected: Expected, weights: Moments) -> Pull:
        """Return the derivatives of the bound in the margins' moments."""
        by_mean, by_variance = self.pool(self.sign * expected.by_mean), expected.by_variance
        return Pull(by_mean, self.pool(by_variance), self.pool(expected.by_noise), weights)

    def pull_at(self, weights: Moments) -> Pull:
        """Return the derivatives of the bound in the margins' moments under q."""
        return self.pull(
            self.likelihood.expected(
                *self.row_moments(self.prior.margin_moments(weights)), self.answers
            ),
            weights,
        )

    def evaluate(self, weights: Weights) -> "BoundEvaluation":
        """Evaluate the bound and the natural-gradient target at q of these weights."""
        return self.evaluate_at(moments(weights))

    def evaluate_at(self, at: Moments) -> "BoundEvaluation":
        """Evaluate the bound and the target at q of these moments, earlier answers included."""
        return self.evaluate_alone(at).with_earlier_answers(self.before)

    def evaluate_alone(self, at: Moments) -> "BoundEvaluation":
        """Evaluate the bound of these answers at q, and the q that a step by these leads to."""
        margins = self.prior.margin_moments(at)
        mean, variance, rest = self.row_moments(margins)
        expected = self.likelihood.expected(mean, variance, rest, self.answers)
        fit = float(self.counts @ expected.value)
        pull = self.pull(expected, at)
        precision = -2.0 * pull.by_variance
        target_weights = self.prior.weights(pull.by_mean, precision, at)
        sites = {"precision": precision, "pull": pull.by_mean + precision * margins.mean}
        scale_slope = -float(self.counts @ (expected.by_noise * rest))
        return BoundEvaluation(at, fit, target_weights, sites, scale_slope)

    def part(self, prior: Inducing, rows: Rows, numbers: NDArray[np.intp]) -> Self:
        """Return the batch of some rows, by number; ``prior`` is that of their margins."""
        return type(self).from_rows(prior, rows, self.likelihood)

    def scaled(self, kernel: Kernel, factor: float) -> Self:
        """Return the batch under a kernel that is ``factor`` times as large."""
        return replace(self, prior=self.prior.scaled(kernel, factor))


class BoundEvaluation(NamedTuple):
    """The bound of a batch at q, and the q that a natural-gradient step leads to.

    ``fit`` is the expected log-probability of its answers, ``target`` the q whose precision and
    shift are those of the ``sites`` on the margins that they ask for: a natural-gradient step of
    length 1. ``scale_slope`` is minus the derivative of the fit in the log of the FITC residual
    variance; ``goal`` is what such steps raise of the answers' side, where that is not ``fit``.
    """

    at: Moments
    fit: float
    target: Weights
    sites: State
    scale_slope: float = 0.0
    goal: float | None = None

    @property
    def bound(self) -> float:
        """Lower bound on the log evidence of the answers."""
        return self.fit - self.at.divergence

    @property
    def height(self) -> float:
        """Value that the ascent raises: the bound, or the goal less the prior's part."""
        if self.goal is None:
            return self.bound
        return self.goal - 0.5 * float(self.at.mean @ self.at.mean)

    def with_earlier_answers(self, earlier: Weights | None) -> "BoundEvaluation":
        """Return the evaluation with the weights of earlier answers as part of the prior."""
        if earlier is None:
            return self
        goal, mean = self.goal, self.at.mean
        if goal is not None:
            goal += float((earlier.shift - 0.5 * earlier.gain @ mean) @ mean)
        fit, target_weights = (
            self.fit + earlier.expected_log_factor(self.at),
            earlier.plus(self.target),
        )
        return self._replace(fit=fit, target=target_weights, goal=goal)

    def plus(self, other: "BoundEvaluation") -> "BoundEvaluation":
        """Return the evaluation of both batches at the same q, without sites on the margins."""
        goal = None if self.goal is None or other.goal is None else self.goal + other.goal
        fit, scale_slope = self.fit + other.fit, self.scale_slope + other.scale_slope
        return BoundEvaluation(self.at, fit, self.target.plus(other.target), {}, scale_slope, goal)

    def residual(self, weights: Weights, target: Weights) -> float:
        """Return the distance of a target in deviations of q: about √(2 × what the bound lacks)."""
        root, gain = self.at.root, target.gain - weights.gain
        turn = root @ (target.shift - weights.shift - gain @ self.at.mean)
        return float(np.sqrt(turn @ turn + 0.5 * np.sum((root @ gain @ root.T) ** 2)))


class Ascent(NamedTuple):
    """End of an ascent.

    Attributes
    ----------
    weights : Weights
    at : Moments
        Those of ``weights``.
    evaluation : BoundEvaluation
        The last one.
    bound : float
    n_iter : int
    residual : float
    converged, stopped : bool
        Whether the step to the target is short; whether ``watch`` ended it.
    history : list of float
        The bound at every evaluation.
    """

    weights: Weights
    at: Moments
    evaluation: BoundEvaluation
    bound: float
    n_iter: int
    residual: float
    converged: bool
    stopped: bool
    history: list[float]


def ascend(
    batch: AnswerBatch,
    weights: Weights,
    tol: float,
    max_iter: int,
    watch: Callable[[Pass], bool] | None = None,
) -> Ascent:
    """Climb the bound by natural-gradient steps on all answers, until a step is short.

    Parameters
    ----------
    batch : AnswerBatch
    weights : Weights
        Where to start.
    tol : float
        Longest step to the target that ends the ascent, in deviations of q.
    max_iter : int
        Steps at most.
    watch : callable, optional
        Told of every `Pass`; True stops.
    """
    evaluation, history = batch.evaluate(weights), []
    path, stopped = AscentPath(batch, len(weights.shift)), False
    while True:
        history.append(evaluation.bound)
        residual = evaluation.residual(weights, evaluation.target)
        converged = residual <= tol
        stopped = watch is not None and watch(Pass(len(history), evaluation.bound, residual))
        if converged or stopped or len(history) >= max_iter:
            break
        ahead = path.next_step(weights, evaluation)
        if ahead is None:
            converged = residual <= max(tol, NOTICED)
            break
        weights, evaluation = ahead
    at = evaluation.at
    if converged:  # of sites, and so of a precision that is surely no less than the prior's
        weights, at = evaluation.target, moments(evaluation.target)
    run = len(history), residual, converged, stopped, history
    return Ascent(weights, at, evaluation, evaluation.bound, *run)


class AscentPath:
    """Ascent of q: Anderson's extrapolation over the last natural-gradient steps.

    Where it would lower the bound, a plain step is made, and shortened until it does not. Steps are
    then extrapolated over at that length: those of full length swing about their end where answers
    leave little room, as they do with hardly any noise.
    """

    def __init__(self, batch, m):
        rows, columns = np.tril_indices(m)
        self._batch, self._step = batch, 1.0
        self._lower, self._upper = rows * m + columns, columns * m + rows
        # So that products are those of whole matrices, which no rotation of the points changes.
        self._weight = np.where(rows == columns, 1.0, np.sqrt(2.0))
        self._points, self._moves = np.empty((2, MEMORY, m + len(rows)))
        self._known, self._last = 0, None

    def next_step(self, weights, evaluation):
        """Return the next q and the evaluation there; None where rounding allows no step."""
        ahead = self._extrapolate_steps(weights, evaluation)
        if ahead is not None:
            next_evaluation = self._evaluate_if_higher(ahead, evaluation)
            if next_evaluation is not None:
                return ahead, next_evaluation
            self._known = 0
        longer = 2.0
        while self._step >= _LEAST_STEP:
            ahead = weights.step_towards(evaluation.target, self._step)
            next_evaluation = self._evaluate_if_higher(ahead, evaluation)
            if next_evaluation is not None:
                self._step = min(1.0, longer * self._step)
                return ahead, next_evaluation
            self._step *= 0.5
            longer = 1.0
        return None

    def _extrapolate_steps(self, weights, evaluation):
        """Return the weights that Anderson's extrapolation over the last steps leads to; None at
        first."""
        point = self._to_vector(weights)
        move = self._to_vector(evaluation.target) - point
        last, self._last = self._last, (point, move)
        if last is None:
            return None
        at = self._known % MEMORY
        np.subtract(point, last[0], out=self._points[at])
        np.subtract(move, last[1], out=self._moves[at])
        self._known += 1
        d_points, d_moves = (each[: self._known] for each in (self._points, self._moves))
        # Walker and Ni, "Anderson acceleration for fixed-point iterations", eq. (1.1), damped;
        # by the normal equations, as a factorisation of so tall a matrix costs more than the step.
        mix = np.linalg.lstsq(d_moves @ d_moves.T, d_moves @ move, rcond=NEGLIGIBLE)[0]
        step = self._step
        return self._from_vector(point + step * move - (mix @ d_points + step * (mix @ d_moves)))

    def _to_vector(self, weights):
        """Return weights as one vector, whose products are those of the whole matrices."""
        return np.concatenate([weights.shift, self._weight * weights.gain.take(self._lower)])

    def _from_vector(self, point):
        """Return the weights of a vector."""
        m = len(point) - len(self._lower)
        gain = np.empty((m, m))
        gain.flat[self._lower] = gain.flat[self._upper] = point[m:] / self._weight
        return Weights(gain, point[:m])

    def _evaluate_if_higher(self, weights, evaluation):
        """Return the evaluation of the bound at some weights; None if the bound falls there."""
        try:
            next_evaluation = self._batch.evaluate(weights)
        except NoCovarianceError:  # an extrapolation too far
            return None
        low = evaluation.height - 10.0 * NEGLIGIBLE * abs(evaluation.height)
        return next_evaluation if next_evaluation.height >= low else None


class Gamma(NamedTuple):
    """A gamma distribution of λ, the inverse of the kernel's output scale.

    Attributes
    ----------
    shape : float
    rate : float
    """

    shape: float
    rate: float

    @property
    def mean(self) -> float:
        """E[λ]."""
        return self.shape / self.rate

    @property
    def mean_log(self) -> float:
        """E[log λ]."""
        return float(digamma(self.shape)) - float(np.log(self.rate))

    def divergence(self, prior: "Gamma") -> float:
        """Kullback–Leibler divergence from a prior."""
        (a, b), (a0, b0) = self, prior
        gap = (a - a0) * float(digamma(a)) - float(gammaln(a)) + float(gammaln(a0))
        return gap + a0 * float(np.log(b / b0)) + a * (b0 - b) / b

    def bound(self, prior: "Gamma", m: int) -> float:
        """Return what q(λ) adds to the bound of m points at the kernel divided by E[λ]."""
        return 0.5 * m * (self.mean_log - float(np.log(self.mean))) - self.divergence(prior)

    def with_mean(self, mean: float) -> Self:
        """Return the gamma distribution of the same shape with another mean."""
        return self._replace(rate=self.shape / mean)


def update_scale_posterior(prior: Gamma, now: Gamma, weights: Moments, scale_slope: float) -> Gamma:
    """Return q(λ) that raises the bound, to its maximum where the answers have no slope in λ.

    Parameters
    ----------
    prior, now : Gamma
    weights : Moments
        q(w) of the whitened utilities, under the kernel over the mean of ``now``.
    scale_slope : float
        Minus the derivative of the fit in the logarithm of the FITC residual variance.
    """
    m, x = len(weights.mean), now.mean
    shape = prior.shape + 0.5 * m
    rate = (
        prior.rate
        + 0.5
        * (float(np.vdot(weights.root, weights.root)) + float(weights.mean @ weights.mean))
        / x
    )
    # The fit as −scale_slope × x / E[λ], what is left being proportional to 1/E[λ]: the maximum of
    # shape log E[λ] − rate E[λ] − scale_slope × x / E[λ].
    mean = (shape + np.sqrt(max(shape**2 + 4.0 * rate * scale_slope * x, 0.0))) / (2.0 * rate)
    return Gamma(shape, shape / mean)


def rescale_weights(weights: Weights, ratio: float) -> Weights:
    """Return the weights of the same sites on points of ``ratio`` times the prior variance."""
    return Weights(ratio * weights.gain, np.sqrt(ratio) * weights.shift)


def with_scale(kernel: Kernel, factor: float) -> Kernel:
    """Return a kernel times a factor, which a constant that it begins with takes up."""
    if _begins_with_constant(kernel):
        copy = clone(kernel)
        return copy.set_params(k1__constant_value=factor * kernel.k1.constant_value)
    return ConstantKernel(factor, "fixed") * kernel


def check_scale(kernel: Kernel) -> None:
    """Raise ValueError if the kernel learns an output scale of its own."""
    if _begins_with_constant(kernel) and not kernel.k1.hyperparameter_constant_value.fixed:
        raise ValueError(
            f"scale_prior is the prior of the output scale, but the kernel {kernel} has a free one "
            "of its own. Fix it, ConstantKernel(..., constant_value_bounds='fixed'), or leave it "
            "out."
        )


def _begins_with_constant(kernel):
    """Tell whether a kernel is a product whose first factor is a constant."""
    return isinstance(kernel, Product) and isinstance(kernel.k1, ConstantKernel)


def ascend_with_scale(
    batch: AnswerBatch,
    weights: Weights,
    prior: Gamma,
    scale: float,
    tol: float,
    max_iter: int,
    watch: Callable[[Pass], bool] | None = None,
) -> tuple[Ascent, Gamma]:
    """Maximise the bound over q(u) and q(λ).

    For each E[λ] over q(u), and E[λ] by the secant through two such runs. Updates of one
    after the other would be slow where the answers are few.

    Parameters
    ----------
    batch : AnswerBatch
        Under the kernel that λ divides.
    weights : Weights
    prior : Gamma
    scale : float
        1/E[λ] to begin with; that of ``weights``.
    tol, max_iter, watch
        As of `ascend`.
    """
    m = len(weights.shift)
    history: list[float] = []
    precision_posterior = Gamma(prior.shape + 0.5 * m, 1.0).with_mean(1.0 / scale)
    before = None
    while True:
        scaled = batch.scaled(
            with_scale(batch.prior.kernel, 1.0 / precision_posterior.mean),
            1.0 / precision_posterior.mean,
        )
        gap = precision_posterior.bound(prior, m)
        watch_with_gap = watch and watch_later_passes(watch, len(history), gap)
        end = ascend(scaled, weights, tol, max_iter - len(history), watch_with_gap)
        history += [bound + gap for bound in end.history]
        target_posterior = update_scale_posterior(
            prior, precision_posterior, end.at, end.evaluation.scale_slope
        )
        off = float(np.log(target_posterior.mean / precision_posterior.mean))
        scale_gap = np.sqrt(precision_posterior.shape) * abs(off)
        if scale_gap <= tol or end.stopped or not end.converged or len(history) >= max_iter:
            break
        step = _secant_step(before, precision_posterior, off)
        before = np.log(precision_posterior.mean), off
        next_posterior = precision_posterior.with_mean(precision_posterior.mean * np.exp(step))
        weights = rescale_weights(end.weights, precision_posterior.mean / next_posterior.mean)
        precision_posterior = next_posterior
    residual = float(np.hypot(end.residual, scale_gap))
    converged = end.converged and scale_gap <= tol
    end = end._replace(
        bound=end.bound + gap,
        n_iter=len(history),
        residual=residual,
        converged=converged,
        history=history,
    )
    return end, precision_posterior


def _secant_step(previous, now, off):
    """Return the step of log E[λ] by the secant through two runs, or ``off`` after the first."""
    step = off
    if previous is not None:
        slope = (off - previous[1]) / (np.log(now.mean) - previous[0])
        step = -off / slope if slope < 0.0 else off
    return step


def watch_later_passes(
    watch: Callable[[Pass], bool], number: int, gap: float = 0.0
) -> Callable[[Pass], bool]:
    """Return a ``watch`` of passes that follow ``number`` others and whose bound lacks ``gap``."""
    return lambda later: watch(
        later._replace(number=number + later.number, bound=later.bound + gap)
    )


class PairWinRates(NamedTuple):
    """How often pairs were won, a row for each pair and winner.

    Attributes
    ----------
    win_share : ndarray of shape (n_rows,)
        Share of the pair's duels that the row's winner won.
    variance : ndarray of shape (n_rows,)
        Of the beta distribution of the probability that they win, from a uniform one.
    share : ndarray of shape (n_rows,)
        Of the pair's duels that are in the row: the same, unless rows differ in more than that.
    """

    win_share: Array
    variance: Array
    share: Array

    @classmethod
    def from_rows(cls, rows: Rows) -> Self:
        """Return the win rates of all rows of a problem, by the duels of each row's pair."""
        margins = rows.margins
        index, ahead = margins.index, margins.sign > 0.0
        n = len(margins.first)
        total = np.bincount(index, rows.counts, n)[index]
        first = np.bincount(index, rows.counts * ahead, n)[index]
        won = np.where(ahead, first, total - first)
        mean = (1.0 + won) / (2.0 + total)
        return cls(won / total, mean * (1.0 - mean) / (3.0 + total), rows.counts / total)

    def take(self, numbers: NDArray[np.intp]) -> Self:
        """Return those of some of the rows."""
        return type(self)(*(each[numbers] for each in self))


@dataclass(frozen=True, eq=False)
class LinearisedBatch(AnswerBatch):
    """An `AnswerBatch` whose targets are the linearised update; its bound is the true one of q."""

    win_rates: PairWinRates = field(default_factory=lambda: PairWinRates(*np.zeros((3, 0))))

    @classmethod
    def from_rows(
        cls,
        prior: Inducing,
        rows: Rows,
        likelihood: Likelihood,
        earlier: Weights | None = None,
    ) -> Self:
        """Return the batch of all these rows, see `AnswerBatch.from_rows`."""
        return replace(
            super().from_rows(prior, rows, likelihood, earlier),
            win_rates=PairWinRates.from_rows(rows),
        )

    def part(self, prior: Inducing, rows: Rows, numbers: NDArray[np.intp]) -> Self:
        """Return the batch of some rows; a pair's observation is that of all of its duels."""
        return replace(super().part(prior, rows, numbers), win_rates=self.win_rates.take(numbers))

    def evaluate_alone(self, at: Moments) -> BoundEvaluation:
        """Evaluate the bound at q; steps to the target lower the sum of squares of its mean."""
        evaluation = super().evaluate_alone(at)
        margins, win_rates = self.prior.margin_moments(at), self.win_rates
        log_chance, slope, *_ = self.likelihood.log_prob(
            self.sign * margins.mean[self.index], self.answers
        )
        chance = np.exp(log_chance)
        slope = chance * slope
        weight, off = win_rates.share / win_rates.variance, win_rates.win_share - chance
        by_mean, precision = (
            np.asarray(np.bincount(self.index, each, self.prior.n_margins), dtype=np.float64)
            for each in (self.sign * weight * slope * off, weight * slope**2)
        )
        target_weights = self.prior.weights(by_mean, precision, at)
        sites = {"precision": precision, "pull": by_mean + precision * margins.mean}
        goal = -0.5 * float(weight @ off**2)
        # the update does not see variances
        return evaluation._replace(target=target_weights, sites=sites, scale_slope=0.0, goal=goal)


def check_linear(comparisons: Comparisons, likelihood: Likelihood) -> None:
    """Raise ValueError if there is more to the answers than who won a pair's duels."""
    what = likelihood.duel_scale.beyond or "an order effect" * likelihood.uses_order
    what = what if comparisons.judge is None else "judges"
    what = what if comparisons.offset is None else "offset="
    if what:
        raise ValueError(
            f"got {what} with SVI(local='ekf'), which takes a pair's duels as shares of wins. Use "
            "SVI(local='expected'), or another engine such as inference='ep'."
        )
