"""The fitting program where judges differ in care: hyperparameters and care by turns."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skpref._utils import Array, blas_threads, covariance_of, seed_of, warn
from skpref.data import Comparisons, Respondents
from skpref.fitting._fit import Fitted, Start, fit_posterior, learned
from skpref.fitting._forecast import part_to_learn_on
from skpref.fitting._model import Evaluation, Model
from skpref.fitting._reliability import Care, CarePrior, Cavities, Judges, Law, Marginals, OwnOrder
from skpref.fitting._search import Monitor, Search
from skpref.inference import Pass, State, check_answers, site_update
from skpref.likelihoods import JudgeReliability, Likelihood

# Steps of the level's logarithm, and of the kernel's hyperparameters.
_LEVEL, _KERNEL = 0.2, 0.1
# Precision that is there in any case of these, and of the level.
_LEAST = 0.04
# Hyperparameters of a kernel at most that are looked at.
_MOST = 20


def level_deviation(
    comparisons: Comparisons,
    model: Model,
    means: tuple[Array, Array | None],
    search: Search | None,
) -> float:
    """Standard deviation of the logarithm of the level of all judges' care together.

    By the curvature of the log evidence and the priors where they are largest, in the level and the
    kernel's free hyperparameters at once: a utility of longer lengthscales may vary more. 0 where
    the common noise is given: the level is the judge who has it.

    Parameters
    ----------
    comparisons : Comparisons
    model : Model
        As fitted, of a judge of the common level.
    means : (ndarray, ndarray or None)
        Care and own order effects of the judges.
    search : Search or None
        How hyperparameters were learned, if they were.
    """
    if noise_is_given(model.likelihood):
        return 0.0
    part = comparisons
    if search is not None:
        part = part_to_learn_on(comparisons, model, search.n_learning_answers)
        model = model.learner
    engine = model.evidence_engine.relaxed()
    care, order = means
    theta = np.asarray(model.kernel.theta, dtype=np.float64)
    theta = theta if search is not None and len(theta) <= _MOST else theta[:0]
    held = model.likelihood.held()
    state: State | None = None

    def at(level, kernel):
        nonlocal state
        there = replace(model, likelihood=JudgeReliability(held, np.exp(level) * care, order))
        slope = np.zeros(0)
        if len(theta):
            there = there.at(kernel)
            slope = model.log_prior(np.concatenate([kernel, model.likelihood.theta]))[1]
        found = there.evaluate(part, state, engine=engine, eval_gradient=bool(len(theta)))
        state = found.approximation.state
        gradient = slope[: len(theta)]
        if found.gradient is not None:
            gradient = gradient + found.gradient
        return found.approximation.sites.log_evidence, gradient

    with blas_threads(engine.matrix_size(part)):
        centre, gradient = at(0.0, theta)
        (low, to_low), (high, to_high) = at(-_LEVEL, theta), at(_LEVEL, theta)
        bend = np.empty((len(theta) + 1,) * 2)
        bend[0, 0] = (2.0 * centre - low - high) / _LEVEL**2
        bend[0, 1:] = bend[1:, 0] = (to_low - to_high) / (2.0 * _LEVEL)
        for k, step in enumerate(_KERNEL * np.eye(len(theta))):
            bend[1:, 1 + k] = (gradient - at(0.0, theta + step)[1]) / _KERNEL
    return float(np.sqrt(covariance_of(bend, _LEAST)[0, 0]))


def noise_is_given(likelihood: Likelihood) -> bool:
    """Whether the noise stays as it is, where all judges' care changes together."""
    theta, noise = likelihood.theta, likelihood.margin_variance
    away = (theta + step for step in _KERNEL * np.eye(len(theta)))
    return all(likelihood.at(at).margin_variance == noise for at in away)


# Turns of learning hyperparameters and care, and of the posterior and care within one.
_TURNS = 6
_STEPS = 12
# Care stands still where it moves by less, in its posterior deviations (or of the common level).
_STILL = 0.05
# Of a judge who turned back by more than this share of the last step, the next step is halved.
_BACK = 0.5
# Judges that move by more once the level is held were not where answers are most probable.
_ELSEWHERE = 2.0
# Care that still moves by as much after all turns is not told as if it were known.
_UNSETTLED = 1.0
# A change of care that does not matter.
_ROUGH = 0.05
# Hyperparameters, logarithms mostly, stand still where they move by less.
_SETTLED = 0.02
# Of cavities: iterations, the least share of a precision that is left, and the change that ends.
_CAVITY = 50
_LEFT = 1e-3
_CLOSE = 1e-6
# Change of a factor, in precisions, that is none of rounding: there is no such factor.
_UNCLOSED = 1e-2


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What is known of the judges.

    Attributes
    ----------
    care : Marginals
    law : Law
        That their care follows.
    order : Marginals or None
        Own order effects.
    order_variance : float or None
    level_variance : float
        See `Care`.
    used : (ndarray, ndarray or None), optional
        What a likelihood takes for the means of care and own order effects. None: these.
    """

    care: Marginals
    law: Law
    order: Marginals | None = None
    order_variance: float | None = None
    level_variance: float = 0.0
    used: tuple[Array, Array | None] | None = None

    @property
    def means(self) -> tuple[Array, Array | None]:
        """Care and own order effects, as a likelihood takes them."""
        if self.used is not None:
            return self.used
        return self.care.mean, None if self.order is None else self.order.mean

    def scaled(self) -> Self:
        """In units in which the level of care is 1."""
        scale = 1.0 / self.law.level
        used = None if self.used is None else (self.used[0] * scale, self.used[1])
        care = self.care.scaled(scale)
        return replace(self, care=care, law=self.law._replace(level=1.0), used=used)

    def part_of_the_way(self, before: Self, share: Array) -> Self:
        """The same, but a likelihood takes this share of each judge's step from means before."""
        (care, order), (last, last_order) = self.means, before.means
        if order is not None and last_order is not None:
            order = last_order + share * (order - last_order)
        return replace(self, used=(last + share * (care - last), order))


def fit_judged(
    comparisons: Comparisons,
    model: Model,
    prior: CarePrior,
    respondents: Respondents,
    start: Start | None = None,
    rng: np.random.Generator | np.random.RandomState | None = None,
    search: Search | None = None,
    monitor: Monitor | None = None,
    watch: Callable[[Pass], bool] | None = None,
) -> Fitted:
    """Find how much care each judge takes, and the posterior given that.

    By turns: kernel and noise by the evidence given care, and care given these. Given the factors
    of the posterior, the log evidence of one judge's answers as a function of their care is a sum
    over answers, each under what all others say of its margin (its cavity in expectation
    propagation); its derivative is that of EP's evidence, so that where this stands still care is
    the most probable, but for taking the mean of its posterior instead of the mode.

    Parameters
    ----------
    comparisons : Comparisons
        With judges.
    model : Model
        Of a judge of the common level.
    prior : CarePrior
    respondents : Respondents
        The judges.
    start, rng, search, monitor, watch
        As in `fit_posterior`.

    Returns
    -------
    Fitted
        Its likelihood is a `JudgeReliability`.
    """
    check_answers(model.engine, comparisons, model.likelihood, model.kernel)
    judging = _Judging(comparisons, prior, len(respondents), seed_of(rng) or 0)
    beliefs = None
    if search is not None and len(model.theta):
        free = not noise_is_given(model.likelihood)
        again = replace(search, warn_not_converged=False, n_restarts=0)
        model = judging.learned(
            model, None, replace(search, warn_not_converged=False), monitor, rng
        )
        for _ in range(_TURNS):
            before, beliefs = beliefs, judging.settled(model, beliefs, free).scaled()
            theta, model = model.theta, judging.learned(model, beliefs, again, monitor)
            still = before is not None and _moved(before, beliefs) < _STILL
            if still or np.max(np.abs(model.theta - theta)) < _SETTLED:
                held = judging.settled(model, beliefs)
                if _moved(beliefs, held) < _ELSEWHERE:
                    break
                beliefs = held  # answers that seemed to say nothing do: hyperparameters follow
        else:
            _warn_turns(before, beliefs)
        model = judging.learned(model, beliefs, replace(again, warn_not_converged=True), monitor)
    beliefs = judging.settled(model, beliefs)
    judged = replace(model, likelihood=JudgeReliability(model.likelihood, *beliefs.means))
    fitted = fit_posterior(comparisons, judged, start, rng, watch=watch)
    found = judging.look(fitted.evaluation, fitted.model, beliefs)
    common = replace(fitted.model, likelihood=model.likelihood)
    scale = level_deviation(comparisons, common, beliefs.means, search)
    judges = Judges(
        respondents,
        np.bincount(np.asarray(comparisons.judge), minlength=len(respondents)),
        found.law,
        found.care,
        found.order,
        model.likelihood.utility_noise,
        found.order_variance or 0.0,
        float(np.hypot(scale, np.sqrt(found.level_variance))),
    )
    return replace(fitted, judges=judges)


class _Judging:
    """Care given hyperparameters."""

    def __init__(self, comparisons, prior, n_judges, seed):
        self._comparisons, self._prior, self._n_judges = comparisons, prior, n_judges
        self._seed, self._state = seed, None
        self._care = None

    def learned(self, model, beliefs, search, monitor, rng=None):
        """Hyperparameters given care, at first that of the common level for all."""
        likelihood = model.likelihood
        if beliefs is not None:
            likelihood = JudgeReliability(likelihood, *beliefs.means)
        prepared = model.prepare(self._comparisons, self._seed)
        judged = replace(prepared, likelihood=likelihood)
        found = learned(self._comparisons, judged, search, None, rng, monitor).model
        base = found.likelihood.base if beliefs is not None else found.likelihood
        return replace(found, prepared=model.prepared, likelihood=base)

    def settled(self, model, beliefs, free=False):
        """Care given hyperparameters, where it stands still."""
        model = model.prepare(self._comparisons, self._seed)
        rough = model.evidence_engine.relaxed()
        beliefs = self._equal() if beliefs is None else beliefs
        share, step = np.ones(self._n_judges), np.zeros(self._n_judges)
        with blas_threads(rough.matrix_size(self._comparisons)):
            for _ in range(_STEPS):
                judged = replace(
                    model, likelihood=JudgeReliability(model.likelihood, *beliefs.means)
                )
                found = judged.evaluate(self._comparisons, self._state, engine=rough)
                self._state = found.approximation.state
                scaled, found = judged.absorb_output_scale(found)
                looked = self.look(found, scaled, beliefs, free)
                if _moved(beliefs, looked) < _STILL:
                    return looked
                # Judges who take each other for contrary by turns would do so for ever.
                last, step = step, looked.care.mean - beliefs.means[0]
                share = np.where(step * last < -_BACK * last**2, 0.5 * share, share)
                beliefs = looked.part_of_the_way(beliefs, share)
        return beliefs

    def look(self, evaluation: Evaluation, judged: Model, beliefs: Beliefs, free=False) -> Beliefs:
        """Care given the posterior at the present one, and the law given care."""
        cavities, base, prior = cavities_of(evaluation), judged.likelihood.base, self._prior
        care, order = beliefs.means
        law, spread = beliefs.law, beliefs.order_variance
        known, expected = cavities.by_care(base, order), None
        if prior.learned:
            expected = prior.law
        found = Care.of(known, law, self._n_judges, expected, free=free, near=self._care)
        self._care = found
        found_order = None
        if spread is not None:
            of_order = OwnOrder.of(cavities.by_order(base, care), spread, self._n_judges)
            found_order = of_order.marginals()
            if prior.order_bounds is not None:
                spread = of_order.spread(prior.order_bounds)
        return Beliefs(found.marginals(), found.law, found_order, spread, found.level_variance)

    def _equal(self):
        """All judges of the common level, for certain."""
        one = np.ones((self._n_judges, 1))
        point, prior = Marginals(one, 0.0 * one, one), self._prior
        if prior.order_variance is None:
            return Beliefs(point, prior.law)
        none = Marginals(0.0 * one, 0.0 * one, one)
        return Beliefs(point, prior.law, none, prior.order_variance)


def _moved(before, beliefs):
    """The largest change of care, in posterior deviations, or of what is common to judges.

    In units of the level: that the level moves too, hyperparameters will follow.
    """
    before, beliefs = before.scaled(), beliefs.scaled()
    spread = np.sqrt(beliefs.care.variance + _ROUGH**2)
    law, last = beliefs.law, before.law
    last_care, last_order = before.means
    moved = [
        np.max(np.abs(beliefs.care.mean - last_care) / spread),
        abs(law.random - last.random),
        abs(law.contrary - last.contrary),
        abs(np.sqrt(law.variance) - np.sqrt(last.variance)),
    ]
    if beliefs.order is not None and last_order is not None:
        off = np.abs(beliefs.order.mean - last_order)
        moved.append(np.max(off / np.sqrt(beliefs.order.variance)))
    return float(np.max(moved))


def _warn_turns(before, beliefs):
    """Warn of hyperparameters and care that still move each other by much."""
    moved = _moved(before, beliefs)
    if moved < _UNSETTLED:
        return
    warn(
        f"Hyperparameters and the care of judges were learned by turns, {_TURNS} times, and care "
        f"still moves by {moved:.1f} of its posterior deviations: what is told "
        "of either is uncertain. Give more answers of each judge, hold the noise "
        "(noise_variance_bounds='fixed'), or expect judges to be alike (a smaller "
        "judge_care_variance with judge_care_variance_bounds='fixed').",
        ConvergenceWarning,
    )


def cavities_of(evaluation: Evaluation) -> Cavities:
    """What all other answers say of the margin of each.

    The Gaussian factor of an answer is the one that, taken out of the posterior of the margin and
    replaced by the answer's probability, gives back that posterior's moments: with expectation
    propagation its own, and of any other engine's posterior as good a one.
    """
    problem, approximation = evaluation.problem, evaluation.approximation
    likelihood = problem.likelihood
    margins = problem.prior.under(approximation.conditioned)
    mean, variance = problem.oriented(margins.mean), margins.variance[problem.index]
    rest = margins.rest[problem.index]
    n = len(problem.rows)
    tau, nu = np.zeros((2, n))
    state = approximation.state  # of expectation propagation: of every row
    on_margins = approximation.sites.precision.ndim == 1 and {"precision", "shift"} <= state.keys()
    if on_margins and state["precision"].shape == (n,):
        tau, nu = state["precision"], state["shift"]
    of_answers = likelihood, problem.answers, problem.power
    step, lost = 1.0, np.ones(n, dtype=bool)
    for _ in range(_CAVITY):
        found = site_update((mean, variance), (tau, nu), *of_answers, rest, least_share=_LEFT)
        change = np.abs(found.site_precision - tau) * variance
        lost = (change > _UNCLOSED) | ~found.proper
        if np.max(change, initial=0.0) < _CLOSE:
            break
        tau = tau + step * (found.site_precision - tau)
        nu = nu + step * (found.site_shift - nu)
        step = max(0.9 * step, 0.3)
    cav_mean, cav_var = found.cav_mean, found.cav_var
    if np.any(lost):  # no factor gives back moments such as Laplace's may be
        near = likelihood.log_prob(mean, problem.answers)
        power = 1.0 if problem.power is None else problem.power
        tau = power * np.maximum(near.curvature, 0.0)
        nu = power * near.gradient + tau * mean
        plain = site_update((mean, variance), (tau, nu), *of_answers, rest, least_share=_LEFT)
        cav_mean = np.where(lost, plain.cav_mean, cav_mean)
        cav_var = np.where(lost, plain.cav_var, cav_var)
    return Cavities(cav_mean, cav_var, problem.copies, problem.answers, problem.power)
