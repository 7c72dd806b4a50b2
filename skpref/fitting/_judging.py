"""The fit with judges of different reliability: hyperparameters and reliability by turns."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from skpref._utils import Array, blas_threads, covariance_of, seed_of, warn
from skpref.data import Comparisons, Respondents, distinct_rows, name_ranks
from skpref.fitting._averaging import STEP, WIDER, WIDEST, lattice
from skpref.fitting._biases import Biases, judged_rows, own_effect_rows
from skpref.fitting._fit import Fitted, Start, fit_posterior, learn_hyperparameters
from skpref.fitting._forecast import learning_part
from skpref.fitting._judges import JudgePrior, Judges
from skpref.fitting._model import Evaluation, Model
from skpref.fitting._readings import (
    MOST_JUDGES,
    Kinds,
    Reading,
    influential_judges,
    judge_coupling,
    open_judges,
    open_readings,
)
from skpref.fitting._reliability import (
    POINTS,
    Cavities,
    Law,
    Marginals,
    ReliabilityLikelihood,
)
from skpref.fitting._search import Monitor, Search
from skpref.gp import Prior, PriorRule
from skpref.inference import Engine, Pass, Problem, State, check_answers
from skpref.kernels import Padded
from skpref.likelihoods import JudgeReliability, Likelihood

# Turns of learning hyperparameters and judges; steps of the posterior and judges within one.
_TURNS, _STEPS = 6, 12
# The fixed point is reached where reliability moves by less, in its posterior deviations, or
# hyperparameters do (mostly logarithms).
_SETTLED = 0.05
# Of a judge who turned back by more than this share of the last step, the next step is halved. Any
# turn at all moves probabilities by .002.
_BACK = 0.5
# Where reliability moves by more with its median held, it was not at the fixed point; after all
# turns a warning tells of such a move.
_MOVED_AWAY = 2.0


# Deviation of the logarithm of a judge's reliability from which on a reading is averaged over it.
_UNCERTAIN = 0.1
# Nodes a judge of that average, of two judges at least; and the least probability of a reading
# whose posterior is one: with less it is that at the mean of reliability. With 8 nodes next answers
# are nearer to exact ones (.032 → .016, .022 → .019 in the worst of 93 problems), but the draws of
# a sampler are divided among so many that its chains do not mix.
_NODES_A_JUDGE, _LEAST_WEIGHT = 4, 0.1
# Probability of a reading from which on its evidence is averaged, too, and its posterior over
# hyperparameters where that is asked for: intervals of 90 % do not feel a hundredth. In 24 panels
# of 2 to 4 judges no probability moved by more than .002, in half the seconds.
OPEN_WEIGHT = 0.01


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Posterior of the judges.

    Attributes
    ----------
    reliability : Marginals
    law : Law
        Of reliability among judges.
    median_variance : float
        Of the logarithm of the law's median, given the utility; 0 if the law is not learned.
    used : ndarray of shape (n_judges,), optional
        What a fit takes for the reliability. None: its mean.
    kinds : ndarray of bool of shape (n_judges, 3), optional
        Whether each judge may be reliable, adversarial, or answer at random. None: any.
    """

    reliability: Marginals
    law: Law
    median_variance: float = 0.0
    used: Array | None = None
    kinds: Kinds | None = None

    @classmethod
    def before_answers(cls, law: Law, n_judges: int) -> Self:
        """Return beliefs before any answer: all judges have reliability 1, for certain."""
        return cls(Marginals.certain(1.0, n_judges), law)

    @property
    def means(self) -> Array:
        """Return reliability as a fit takes it."""
        return self.reliability.mean if self.used is None else self.used

    def scaled(self) -> Self:
        """Return the beliefs in units in which the median of reliability is 1."""
        scale = 1.0 / self.law.median
        used = None if self.used is None else self.used * scale
        law = self.law._replace(median=1.0)
        return replace(self, reliability=self.reliability.scaled(scale), law=law, used=used)

    def step(self, previous: Self) -> Array:
        """Return the change of each judge's reliability from the one that a fit took before.

        Relative to the median: a common scale of all judges that drifts is no change of any.
        """
        return self.reliability.mean - previous.means * (self.law.median / previous.law.median)

    def damp_step(self, previous: Self, share: Array) -> Self:
        """Return beliefs of which a fit takes a share of each judge's step."""
        return replace(self, used=self.means - (1.0 - share) * self.step(previous))

    def largest_change(self, previous: Self) -> float:
        """Return the largest change of reliability, in posterior deviations, or of the law.

        Relative to the median: hyperparameters follow that.
        """
        previous, here = previous.scaled(), self.scaled()
        spread = np.sqrt(here.reliability.variance + _SETTLED**2)
        law, last = here.law, previous.law
        moved = [
            np.max(np.abs(here.reliability.mean - previous.means) / spread),
            abs(law.random - last.random),
            abs(law.adversarial - last.adversarial),
            abs(np.sqrt(law.variance) - np.sqrt(last.variance)),
        ]
        return float(np.max(moved))


def fit_judged(
    comparisons: Comparisons,
    model: Model,
    prior: JudgePrior,
    respondents: Respondents,
    start: Start | None = None,
    rng: np.random.Generator | np.random.RandomState | None = None,
    search: Search | None = None,
    monitor: Monitor | None = None,
    watch: Callable[[Pass], bool] | None = None,
) -> Fitted:
    """Find how reliable each judge is, and the posterior given that.

    By turns: kernel and noise by the evidence given reliability, and reliability given these. Given
    the sites of the posterior, the log-likelihood of a judge's reliability is a sum over the
    judge's answers, each averaged over its cavity. Its derivative is that of EP's evidence. So at
    the fixed point reliability is the most probable, but for the posterior's mean in the place of
    its mode.

    Parameters
    ----------
    comparisons : Comparisons
        With judges.
    model : Model
        Of the reference judge.
    prior : JudgePrior
    respondents : Respondents
        The judges.
    start, rng, search, monitor, watch
        As in `fit_posterior`.

    Returns
    -------
    Fitted
        Its likelihood is a `JudgeReliability`.
    """
    comparisons = judged_rows(comparisons, model.kernel)
    check_answers(model.engine, comparisons, model.likelihood, model.kernel)
    n_judges, seed = len(respondents), seed_of(rng) or 0
    judging = _Judging(comparisons, model.kernel, prior, search is not None, n_judges, seed)
    beliefs: Beliefs | None = None
    held: tuple[Model, Beliefs] | None = None
    if search is not None and len(model.theta):
        free = not is_noise_fixed(model.likelihood)
        again = replace(search, warn_not_converged=False, n_restarts=0)
        model = judging.learn_as_reference(
            model, replace(search, warn_not_converged=False), monitor, rng
        )
        for turn in range(_TURNS):
            before, beliefs = beliefs, judging.find_fixed_point(model, beliefs, free)
            if turn == 0:
                beliefs = judging.choose_reading(model, beliefs)
            beliefs = beliefs.scaled()
            looking = replace(again, uses_design=turn == 0)
            theta, model = (
                model.theta,
                judging.learn_hyperparameters(model, beliefs, looking, monitor),
            )
            moved = np.inf if before is None else beliefs.largest_change(before)
            if moved < _SETTLED or np.max(np.abs(model.theta - theta)) < _SETTLED:
                with_median = judging.find_fixed_point(model, beliefs)
                if with_median.largest_change(beliefs) < _MOVED_AWAY:
                    held = model, with_median
                    break
                beliefs = with_median  # hyperparameters follow
        else:
            _warn_turns(moved)
        model = judging.learn_hyperparameters(
            model, beliefs, replace(again, warn_not_converged=True), monitor
        )
    if held is not None and np.array_equal(model.theta, held[0].theta):
        beliefs = held[1]
    else:
        beliefs = judging.find_fixed_point(model, beliefs)
    weights, readings = judging.weigh_readings(model, beliefs, name_ranks(respondents.names))
    n_answers = np.bincount(np.asarray(comparisons.judge), minlength=len(respondents))
    fits: list[Fitted] = []
    centres: list[Fitted] = []
    parts: list[Judges] = []
    for weight, reading in zip(weights, readings, strict=True):
        beliefs, shares = reading.beliefs, reading.weights
        draws = _Draws(model.engine, start, rng, watch)
        centre = draws.fit(*judging.as_judged(model, beliefs), weight if len(shares) == 1 else 0.0)
        is_learned = beliefs.kinds is None
        look = judging.update_beliefs(
            centre.evaluation, centre.model, beliefs, last=True, learns_law=is_learned
        )
        if not parts:
            reference = replace(centre.model, likelihood=model.likelihood)
            deviation = common_log_reliability_deviation(
                comparisons, reference, beliefs.means, search
            )
            deviation = float(np.hypot(deviation, np.sqrt(look.median_variance)))
        whole = Judges(
            respondents,
            n_answers,
            look.law,
            look.reliability,
            model.likelihood.utility_noise,
            deviation,
            used=beliefs.means,
        )
        nodes, of_nodes = [centre], [whole]
        if len(shares) > 1:
            at_nodes = [replace(beliefs, used=used) for used in reading.reliability]
            nodes = [
                draws.fit(*judging.as_judged(model, at), weight * share)
                for at, share in zip(at_nodes, shares, strict=True)
            ]
            of_nodes = [whole.at(used, reading.judges) for used in reading.reliability]
        effects = [_own_effects(fit, len(respondents)) for fit in nodes]
        of_nodes = [
            replace(each, slopes=slopes, order=order)
            for each, (slopes, order) in zip(of_nodes, effects, strict=True)
        ]
        parts.append(whole.averaged(shares, of_nodes))
        centres.append(centre)
        fits += nodes
    first = centres[0]
    if model.engine.capabilities.samples:
        first = replace(first, approximation=fits[0].approximation)
    return replace(first, judges=Judges.mixture(weights, parts), parts=tuple(fits))


class _Draws(NamedTuple):
    """Fits the parts of a mixture, of a sampler with fewer draws for those of small weight."""

    engine: Engine
    start: Start | None
    rng: np.random.Generator | np.random.RandomState | None
    watch: Callable[[Pass], bool] | None

    def fit(self, comparisons: Comparisons, model: Model, weight: float) -> Fitted:
        """Fit the posterior of a part; of a weight of 0 without draws."""
        if not self.engine.capabilities.samples:
            return fit_posterior(comparisons, model, self.start, self.rng, watch=self.watch)
        if not weight:
            return fit_posterior(comparisons, model, self.start, watch=self.watch)
        part = replace(model, engine=self.engine.reduce_draws(weight))
        fit = fit_posterior(comparisons, part, self.start, self.rng, watch=self.watch)
        return replace(fit, model=replace(fit.model, engine=self.engine))


class _ReadingFit(NamedTuple):
    """What a reading keeps of the fixed point that it was evaluated at."""

    beliefs: Beliefs
    likelihood: ReliabilityLikelihood
    state: State
    log_likelihood: Array  # of each judge's answers, at the reliability that was used


class OpenReading(NamedTuple):
    """A reading of the judges and the reliabilities that its posterior is a mixture over.

    Attributes
    ----------
    beliefs : Beliefs
        At its fixed point.
    judges : ndarray of int of shape (n,)
        Whose reliability it is averaged over.
    reliability : ndarray of shape (n_nodes, n_judges)
    weights : ndarray of shape (n_nodes,)
        Of these nodes; they sum to one.
    """

    beliefs: Beliefs
    judges: NDArray[np.intp]
    reliability: Array
    weights: Array


class _Look(NamedTuple):
    """Results of the last look at the judges, and the beliefs that it started from."""

    evaluation: Evaluation
    rule: PriorRule
    cavities: Cavities
    likelihood: ReliabilityLikelihood
    beliefs: Beliefs


class _Judging:
    """Reliability given hyperparameters."""

    def __init__(self, comparisons, kernel, prior, is_learned, n_judges, seed):
        self._comparisons, self._n_judges, self._seed = comparisons, n_judges, seed
        self._padded = kernel if isinstance(kernel, Padded) else None
        self._expected, self._is_learned = prior.law(is_learned), is_learned
        self._state: State | None = None
        self._start: ReliabilityLikelihood | None = None
        self._last: _Look | None = None

    def as_judged(self, model: Model, beliefs: Beliefs) -> tuple[Comparisons, Model]:
        """Return the answers and the model as these judges see them."""
        if isinstance(model.kernel, Padded):
            return judged_rows(self._comparisons, model.kernel, beliefs.means), model
        likelihood = JudgeReliability(model.likelihood, beliefs.means)
        return self._comparisons, replace(model, likelihood=likelihood)

    @cached_property
    def _at_points(self) -> list[Comparisons]:
        """Return the answers with all judges of one reliability, for each of `POINTS`."""
        return [judged_rows(self._comparisons, self._padded, point) for point in POINTS]

    def _cavities(self, evaluation: Evaluation, beliefs: Beliefs) -> Cavities:
        """Return the answers' margins given all other answers, see `Cavities`."""
        if self._padded is None:
            return Cavities.from_evaluation(evaluation)
        return Cavities.from_evaluation(evaluation, self._at_points, beliefs.means)

    def learn_as_reference(self, model, search, monitor, rng):
        """Learn hyperparameters as if all judges were the reference judge; return the model."""
        comparisons = self._comparisons
        if self._padded is None:
            comparisons = replace(comparisons, judge=None)
        alike = model.prepare(comparisons, self._seed)
        fitted = learn_hyperparameters(comparisons, alike, search, None, rng, monitor).model
        return replace(fitted, prepared=model.prepared)

    def learn_hyperparameters(self, model, beliefs, search, monitor):
        """Learn hyperparameters given reliability; return the model."""
        comparisons, judged = self.as_judged(model.prepare(self._comparisons, self._seed), beliefs)
        fitted = learn_hyperparameters(
            comparisons, judged, search, self._state, None, monitor
        ).model
        return replace(
            fitted, prepared=model.prepared, likelihood=_reference_likelihood(fitted.likelihood)
        )

    def find_fixed_point(self, model, beliefs, free=False, learns_law=True):
        """Alternate posterior and reliability at given hyperparameters until both settle; return
        beliefs."""
        model = model.prepare(self._comparisons, self._seed)
        rough = model.evidence_engine.relax_tolerance()
        if beliefs is None:
            beliefs = Beliefs.before_answers(self._expected, self._n_judges)
        share, step = np.ones(self._n_judges), np.zeros(self._n_judges)
        with blas_threads(rough.matrix_size(self._comparisons)):
            for _ in range(_STEPS):
                comparisons, judged = self.as_judged(model, beliefs)
                evaluation = judged.evaluate(comparisons, self._state, engine=rough)
                self._state = evaluation.approximation.state
                scaled, evaluation = judged.absorb_output_scale(evaluation)
                looked = self.update_beliefs(
                    evaluation, scaled, beliefs, free, learns_law=learns_law
                )
                if looked.largest_change(beliefs) < _SETTLED:
                    return looked
                # Estimates of judges that turn adversarial by turns would never converge.
                last, step = step, looked.step(beliefs)
                share = np.where(step * last < -_BACK * last**2, 0.5 * share, share)
                beliefs = looked.damp_step(beliefs, share)
        return beliefs

    def update_beliefs(
        self,
        evaluation: Evaluation,
        judged: Model,
        beliefs: Beliefs,
        free: bool = False,
        last: bool = False,
        learns_law: bool = True,
    ) -> Beliefs:
        """Update beliefs of the judges by the posterior at the present ones; return them.

        ``free``: the median of the law is found too; ``last``: how uncertain it is; ``learns_law``:
        the rest of the law is, too.
        """
        cavities, law = self._cavities(evaluation, beliefs), beliefs.law
        by_reliability = cavities.by_reliability(_reference_likelihood(judged.likelihood))
        likelihood = ReliabilityLikelihood.from_log_likelihood(
            by_reliability, law, self._n_judges, self._start
        )
        self._start, median_variance = likelihood, 0.0
        self._last = _Look(evaluation, judged.rule, cavities, likelihood, beliefs)
        if self._is_learned:
            if free or last:
                median, median_variance = likelihood.best_median(law, self._expected)
                law = law._replace(median=median) if free else law
            law = likelihood.learn_law(law, self._expected) if learns_law else law
        kinds, marginals = beliefs.kinds, likelihood.marginals(law, beliefs.kinds)
        return Beliefs(marginals, law, median_variance, kinds=kinds)

    def choose_reading(self, model: Model, beliefs: Beliefs) -> Beliefs:
        """Choose the most probable reading; ``beliefs`` at the last fixed point, if it is alone.

        Where readings balance, the average over them has no scale of reliability to learn: where
        another kind of some judge is as probable as `_LEAST_WEIGHT`.
        """
        reading = self._last_reading(beliefs)
        masses = reading.log_masses[reading.judges]
        likely = np.exp(np.max(masses - logsumexp(masses, axis=1, keepdims=True), axis=1))
        if np.all(likely > 1.0 - _LEAST_WEIGHT):
            return beliefs
        if len(open_judges(reading, _log_shares(beliefs.law))):
            beliefs = self.find_fixed_point(model, beliefs.scaled())
        return self._rank_readings(model, beliefs)[0].fit.beliefs

    def weigh_readings(
        self, model: Model, beliefs: Beliefs, ranks: NDArray[np.intp]
    ) -> tuple[Array, list[OpenReading]]:
        """Find the readings of the judges that the answers leave open; return weights and readings.

        The evidence of each is averaged over the reliability of those judges of whom it is
        uncertain, and so is its posterior where it is probable.

        Parameters
        ----------
        model : Model
        beliefs : Beliefs
            At the fixed point that was found last.
        ranks : ndarray of int of shape (n_judges,)
            Of the judges' names, which nodes are laid by: not by who is the first to answer.

        Returns
        -------
        weights : ndarray of shape (n_readings,)
            In descending order; they sum to one.
        readings : list of OpenReading
            The one of ``beliefs`` alone, where no other reading is probable.
        """
        ordered = self._rank_readings(model, beliefs)
        model = model.prepare(self._comparisons, self._seed)
        is_averaged = len(ordered) > 1 and self._n_judges <= MOST_JUDGES
        shares = _normalise_weights([reading.log_weight for reading in ordered])
        nodes = [
            self._average_reading(model, reading, ranks, is_averaged and share >= OPEN_WEIGHT)
            for reading, share in zip(ordered, shares, strict=True)
        ]
        weights = _normalise_weights([log_weight for log_weight, _ in nodes])
        order = np.argsort(-weights, kind="stable")
        readings = [nodes[k][1] for k in order]
        for k, reading in enumerate(readings):
            if weights[order[k]] < _LEAST_WEIGHT:
                used = reading.beliefs.means[None]
                readings[k] = reading._replace(reliability=used, weights=np.ones(1))
        return weights[order], readings

    def _average_reading(self, model, reading, ranks, is_averaged):
        """Return the log weight of a reading, averaged over reliability, and the reading."""
        beliefs, likelihood, state, log_likelihood = reading.fit
        law, kinds, likely = beliefs.law, reading.kinds, reading.likely_kinds
        mean, deviation = likelihood.log_magnitude_moments(law, likely)
        judges = reading.judges[deviation[reading.judges] > _UNCERTAIN]
        judges = judges[np.argsort(ranks[judges])]
        n = len(judges)
        if not (n and is_averaged):
            used = beliefs.means[None]
            return reading.log_weight, OpenReading(beliefs, judges, used, np.ones(1))
        n_nodes = _NODES_A_JUDGE * max(n, 2)
        normal, spread = lattice(n_nodes, n), WIDER * deviation[judges]
        log_magnitude_moments = mean[judges] + spread * normal
        reliability = np.tile(beliefs.means, (n_nodes, 1))
        reliability[:, judges] = np.where(likely[judges] == 0, 1.0, -1.0) * np.exp(
            log_magnitude_moments
        )
        engine, log_weights = model.evidence_engine.relax_tolerance(), np.empty(n_nodes)
        for k, used in enumerate(reliability):
            comparisons, judged = self.as_judged(model, replace(beliefs, used=used))
            evaluation = judged.evaluate(comparisons, state, engine=engine)
            log_weights[k] = evaluation.approximation.sites.log_evidence
        log_weights -= np.delete(log_likelihood, judges).sum()
        kinds = np.where(np.isin(np.arange(len(kinds)), judges)[:, None], np.eye(3)[likely], kinds)
        sizes = log_magnitude_moments, judges, law, self._expected.weights, kinds
        log_weights += likelihood.log_prior_of_sizes(*sizes)
        log_weights += 0.5 * np.sum(normal**2 + np.log(2.0 * np.pi), axis=1) + np.log(spread).sum()
        log_weight = float(logsumexp(log_weights) - np.log(n_nodes))
        return log_weight, OpenReading(
            beliefs, judges, reliability, _normalise_weights(log_weights)
        )

    def _rank_readings(self, model: Model, beliefs: Beliefs) -> list[Reading]:
        """Find the readings that are open, the most probable first."""

        def evaluate(kinds: Kinds, near: Reading, turned: NDArray[np.intp]) -> Reading:
            before, likelihood, state, _ = near.fit
            self._start = likelihood
            used = likelihood.marginals(before.law, kinds).mean
            used[turned] = -before.means[turned]
            self._state = self._flip_sites(state, used * before.means < 0.0)
            start = replace(before, used=used, kinds=kinds)
            return self._last_reading(self.find_fixed_point(model, start, learns_law=False))

        return open_readings(self._last_reading(beliefs), _log_shares(beliefs.law), evaluate)

    def _last_reading(self, beliefs: Beliefs) -> Reading:
        """Return the reading of the judges by the last update of the beliefs."""
        if self._last is None:
            raise ValueError("A reading follows a look at the judges, and there was none.")
        evaluation, rule, cavities, likelihood, used = self._last
        law, kinds = beliefs.law, beliefs.kinds
        kinds = np.ones((self._n_judges, 3), dtype=bool) if kinds is None else kinds
        by_reliability = cavities.by_reliability(
            _reference_likelihood(evaluation.problem.likelihood)
        )
        log_weight = evaluation.approximation.sites.log_evidence
        log_weight += likelihood.log_evidence(law, self._expected.weights, kinds)
        log_likelihood = by_reliability(used.means[:, None])[:, 0]
        log_weight -= log_likelihood.sum()
        judges, problem = self._influential_judges, evaluation.problem
        coupling = judge_coupling(problem, cavities, judges, self._bias_prior(problem, rule))
        masses = likelihood.kind_log_masses(law)
        fit = _ReadingFit(beliefs, likelihood, evaluation.approximation.state, log_likelihood)
        return Reading(kinds, log_weight, masses, judges, *coupling, fit)

    @cached_property
    def _influential_judges(self) -> NDArray[np.intp]:
        """Return the judges who gave most of the answers about their items."""
        comparisons = self._comparisons
        if self._padded is not None:  # their rows are of a judge each
            items = comparisons.items[:, : self._padded.n_columns]
            numbers = distinct_rows(items)[1]
            positions = numbers[comparisons.positions]
            comparisons = replace(comparisons, items=items, positions=positions)
        return influential_judges(comparisons, self._n_judges)

    def _bias_prior(self, problem: Problem, rule: PriorRule) -> Prior | None:
        """Return the prior of the margins' part that reliability does not multiply; None if there
        is none."""
        if self._padded is None:
            return None
        kernel, likelihood = problem.prior.kernel, problem.likelihood
        return rule.prior(kernel, judged_rows(problem.comparisons, kernel, 0.0), likelihood)

    def _flip_sites(self, state, judges):
        """Return the engine's state with the sites of some judges' answers turned round.

        Sites on margins of which reliability is a part stay.
        """
        if self._padded is not None:
            return state
        rows = self._comparisons.rows.answers.judge
        if "shift" not in state or state["shift"].shape != rows.shape:
            return None
        return {**state, "shift": np.where(judges[rows], -1.0, 1.0) * state["shift"]}


def _normalise_weights(log_weights):
    """Return weights that sum to one, of their logarithms."""
    weights = np.exp(np.asarray(log_weights) - np.max(log_weights))
    return weights / weights.sum()


def _log_shares(law):
    """Return logarithms of the shares of the kinds of judges; −∞ of none."""
    with np.errstate(divide="ignore"):
        return np.log(law.shares)


def _reference_likelihood(likelihood: Likelihood) -> Likelihood:
    """Return the likelihood of the reference judge."""
    return likelihood.base if isinstance(likelihood, JudgeReliability) else likelihood


def _own_effects(fit: Fitted, n_judges: int) -> tuple[dict[int, Marginals], Marginals | None]:
    """Return the posterior of judges' own slopes, by control, and of their own order effects."""
    kernel = fit.model.kernel
    if not isinstance(kernel, Padded):
        return {}, None

    def effects(column: int | None) -> Marginals:
        means, variance = fit.posterior.component_margins(
            *own_effect_rows(kernel, n_judges, column)
        )
        total = np.maximum(variance, 0.0) + means.var(axis=1)
        return Marginals.normal(means.mean(axis=1), np.sqrt(total))

    biases = Biases.of_kernel(kernel)
    slopes = {column: effects(column) for column in biases.controls}
    return slopes, effects(None) if biases.by_order else None


def _warn_turns(moved):
    """Warn where the turns of hyperparameters and reliability have not converged."""
    if moved < _MOVED_AWAY:
        return
    warn(
        "Hyperparameters and the reliability of judges were learned by turns, "
        f"{_TURNS} times, and reliability still moves by {moved:.1f} of its posterior deviations: "
        "both are uncertain. Give more answers of each judge, hold the noise "
        "(noise_variance_bounds='fixed'), or expect judges to be alike (judge_prior="
        "JudgePrior(variance=..., variance_bounds='fixed') with a smaller variance).",
        ConvergenceWarning,
    )


# -- the noise of the reference judge --------------------------------------------------------


def common_log_reliability_deviation(
    comparisons: Comparisons,
    model: Model,
    reliability: Array,
    search: Search | None,
) -> float:
    """Return how uncertain the level of log reliability common to all judges is: its deviation.

    By the curvature of the log evidence and the priors at their maximum, in this and in the
    kernel's free hyperparameters at once: a utility of longer lengthscales may vary more. 0 where
    the noise is given, as it defines the reference judge.

    Parameters
    ----------
    comparisons : Comparisons
    model : Model
        As fitted, of the reference judge.
    reliability : ndarray of shape (n_judges,)
    search : Search or None
        How hyperparameters were learned, if they were.
    """
    if is_noise_fixed(model.likelihood):
        return 0.0
    part = comparisons
    if search is not None:
        part = learning_part(comparisons, model, search.n_learning_answers)
        model = model.learner
    engine = model.evidence_engine.relax_tolerance()
    theta = np.asarray(model.kernel.theta, dtype=np.float64)
    theta = theta if search is not None else theta[:0]
    held = model.likelihood.fix_hyperparameters()
    state: State | None = None

    def at(log_scale, kernel):
        nonlocal state
        scaled, judged = np.exp(log_scale) * reliability, part
        if isinstance(model.kernel, Padded):
            judged = judged_rows(part, model.kernel, scaled)
            near_model = replace(model, likelihood=held)
        else:
            near_model = replace(model, likelihood=JudgeReliability(held, scaled))
        slope = np.zeros(0)
        if len(theta):
            near_model = near_model.at(kernel)
            slope = model.log_prior(np.concatenate([kernel, model.likelihood.theta]))[1]
        evaluation = near_model.evaluate(
            judged, state, engine=engine, eval_gradient=bool(len(theta))
        )
        state = evaluation.approximation.state
        gradient = slope[: len(theta)]
        if evaluation.gradient is not None:
            gradient = gradient + evaluation.gradient
        return evaluation.approximation.sites.log_evidence, gradient

    with blas_threads(engine.matrix_size(part)):
        centre, gradient = at(0.0, theta)
        (low, to_low), (high, to_high) = at(-STEP, theta), at(STEP, theta)
        bend = np.empty((len(theta) + 1,) * 2)
        bend[0, 0] = (2.0 * centre - low - high) / STEP**2
        bend[0, 1:] = bend[1:, 0] = (to_low - to_high) / (2.0 * STEP)
        for k, step in enumerate(STEP * np.eye(len(theta))):
            bend[1:, 1 + k] = (gradient - at(0.0, theta + step)[1]) / STEP
    return float(np.sqrt(covariance_of(bend, WIDEST**-2)[0, 0]))


def is_noise_fixed(likelihood: Likelihood) -> bool:
    """Tell whether no free hyperparameter of a likelihood changes the noise on a margin."""
    theta, noise = likelihood.theta, likelihood.margin_variance
    away = (theta + step for step in STEP * np.eye(len(theta)))
    return all(likelihood.at(at).margin_variance == noise for at in away)
