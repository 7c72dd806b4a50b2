"""Judges of one truth who differ in reliability: each sees the margin on a scale of their own."""

from typing import Self

import numpy as np

from skpref._utils import Array
from skpref.data import Answers
from skpref.likelihoods._base import (
    Derivatives,
    Likelihood,
    Site,
    TiltedMoments,
    TruncationBox,
    delegate_to_base,
)
from skpref.likelihoods._expected import Expected

# As a box of a noisy margin the answers of the least reliable judge have a finite noise.
_LEAST_RELIABILITY = 1e-3


class JudgeReliability(Likelihood):
    """A likelihood as judges of different reliability see it.

    Judge j answers about reliability_j × margin, offset included, as the reference judge does about
    the margin. The reference judge has reliability 1. A judge of reliability 0 answers at random,
    one below 0 the wrong way round. The variance of a judge's noise is that of the reference judge
    divided by reliability². The tie threshold and the order effect do not change with reliability:
    a judge who answers at random may still call ties, or prefer the item shown first.

    Parameters
    ----------
    base : Likelihood
        Of the reference judge.
    reliability : ndarray of shape (n_judges,)

    Notes
    -----
    Answers without a judge are the reference judge's. Everything is the base's at
    reliability × margin, by the chain rule.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import DUEL
    >>> from skpref.likelihoods import Answers, JudgeReliability, Probit
    >>> seen = JudgeReliability(Probit(noise_variance=0.5), np.array([1.0, 0.0, -1.0]))
    >>> won = Answers(np.array([DUEL] * 3), np.ones(3, dtype=np.int8), judge=np.arange(3))
    >>> np.exp(seen.log_prob(np.ones(3), won).value).round(2)
    array([0.84, 0.5 , 0.16])
    """

    def __init__(self, base: Likelihood, reliability: Array):
        self.base = base
        self.reliability = reliability

    def scale(self, answers: Answers) -> Array:
        """Return what each row's margin is multiplied by."""
        if answers.judge is None:
            return np.ones(len(answers.kind))
        return np.asarray(self.reliability, dtype=np.float64)[answers.judge]

    def _scale_answers(self, answers: Answers) -> tuple[Array, Answers]:
        """Return each row's reliability, and the answers with their offsets multiplied by it."""
        r = self.scale(answers)
        offset = answers.offset
        return r, answers if offset is None else answers._replace(offset=r * offset)

    # -- the reference judge -------------------------------------------------------------

    kinds = delegate_to_base("kinds")
    log_concave = delegate_to_base("log_concave")
    order_shift = delegate_to_base("order_shift")
    item_noise = delegate_to_base("item_noise")
    item_noise_gradient = delegate_to_base("item_noise_gradient")
    margin_variance = delegate_to_base("margin_variance")
    linear = delegate_to_base("linear")
    uses_order = delegate_to_base("uses_order")
    unit_powers = delegate_to_base("unit_powers")
    free = delegate_to_base("free")
    theta = delegate_to_base("theta")
    bounds = delegate_to_base("bounds")
    check = delegate_to_base("check")
    outcome_log_proba = delegate_to_base("outcome_log_proba")

    def at(self, theta: Array) -> Self:
        """Return the same reliability with the base at other hyperparameters."""
        return type(self)(self.base.at(theta), self.reliability)

    def fix_hyperparameters(self) -> Self:
        """Return the likelihood with every hyperparameter fixed where it is."""
        return type(self)(self.base.fix_hyperparameters(), self.reliability)

    # -- what judges see -----------------------------------------------------------------

    def log_prob(self, margin: Array, answers: Answers) -> Derivatives:
        """Return log-probabilities of answers given their margins, see `Likelihood.log_prob`."""
        r, answers = self._scale_answers(answers)
        at = self.base.log_prob(r * margin, answers)
        return Derivatives(at.value, r * at.gradient, r**2 * at.curvature, r**3 * at.third)

    def theta_derivatives(self, margin: Array, answers: Answers) -> tuple[Array, Array, Array]:
        """Return derivatives in the base's hyperparameters, see `Likelihood.theta_derivatives`."""
        r, answers = self._scale_answers(answers)
        value, gradient, curvature = self.base.theta_derivatives(r * margin, answers)
        return value, r * gradient, r**2 * curvature

    def tilted(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> TiltedMoments:
        """Return moments of a normal margin times its answer's probability, see
        `Likelihood.tilted`."""
        r, scaled = self._scale_answers(answers)
        blind = r == 0.0
        if np.any(blind):
            return self._tilted_with_random_judges(mean, variance, answers, power, blind)
        at = self.base.tilted(r * mean, r**2 * variance, scaled, power)
        gradient, curvature = r * at.gradient, r**2 * at.curvature
        return TiltedMoments(at.log_normaliser, gradient, curvature, at.shrink)

    def _tilted_with_random_judges(self, mean, variance, answers, power, is_random):
        """Return `tilted` where some judges have reliability 0, so that their factors are
        constant."""
        log_normaliser, gradient, curvature = np.zeros((3, len(mean)))
        moments = TiltedMoments(log_normaliser, gradient, curvature, np.ones(len(mean)))
        at_random = self._scale_answers(answers)[1].take(is_random)
        at = self.base.log_prob(np.zeros(np.count_nonzero(is_random)), at_random)
        moments.log_normaliser[is_random] = (
            at.value if power is None else power[is_random] * at.value
        )
        rest = mean[~is_random], variance[~is_random], answers.take(~is_random)
        parts = self.tilted(*rest, None if power is None else power[~is_random])
        for whole, part in zip(moments, parts, strict=True):
            whole[~is_random] = part
        return moments

    def log_normaliser(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> Array:
        """Return the log normaliser alone, see `Likelihood.log_normaliser`."""
        r, scaled = self._scale_answers(answers)
        if np.any(r == 0.0):
            return self.tilted(mean, variance, answers, power).log_normaliser
        return self.base.log_normaliser(r * mean, r**2 * variance, scaled, power)

    def tilted_theta_gradient(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> Array:
        """Derivatives of its log normaliser, see `Likelihood.tilted_theta_gradient`."""
        r, answers = self._scale_answers(answers)
        slopes = np.zeros((len(self.free), len(mean)))
        blind = r == 0.0
        if np.any(blind):
            at = self.base.theta_derivatives(
                np.zeros(np.count_nonzero(blind)), answers.take(blind)
            )[0]
            slopes[:, blind] = at if power is None else power[blind] * at
        looks = ~blind
        of = r[looks] * mean[looks], r[looks] ** 2 * variance[looks]
        rest = answers.take(looks), None if power is None else power[looks]
        slopes[:, looks] = self.base.tilted_theta_gradient(*of, *rest)
        return slopes

    def repeated_site(
        self,
        mean: Array,
        variance: Array,
        counts: Array,
        answers: Answers,
        guess: tuple[Array, Array] | None = None,
    ) -> Site:
        """Return the site of each of several equal answers, see `Likelihood.repeated_site`."""
        sites = Site(np.zeros(len(mean)), np.zeros(len(mean)))  # at random: none
        looks = self.scale(answers) != 0.0
        r, some = self._scale_answers(answers.take(looks))

        def as_seen(mean, variance):
            return r * mean[looks], r**2 * variance[looks]

        centre, spread = as_seen(mean, variance)
        cavity = None if guess is None else as_seen(*guess)
        site = self.base.repeated_site(centre, spread, counts[looks], some, cavity)
        sites.precision[looks] = r**2 * site.precision
        sites.shift[looks] = r * site.shift
        return sites

    def expected(self, mean: Array, variance: Array, noise: Array, answers: Answers) -> Expected:
        """Return the expected log-probability, see `Likelihood.expected`."""
        r, answers = self._scale_answers(answers)
        square = r**2
        at = self.base.expected(r * mean, square * variance, square * noise, answers)
        by_variance, by_noise = square * at.by_variance, square * at.by_noise
        return Expected(at.value, r * at.by_mean, by_variance, by_noise)

    def expected_theta_gradient(
        self, mean: Array, variance: Array, noise: Array, answers: Answers
    ) -> Array:
        """Derivatives of its value, see `Likelihood.expected_theta_gradient`."""
        r, answers = self._scale_answers(answers)
        of = r * mean, r**2 * variance, r**2 * noise
        return self.base.expected_theta_gradient(*of, answers)

    def regions(self, answers: Answers) -> TruncationBox | None:
        """Return boxes of a noisy margin, turned round where reliability is negative."""
        r, answers = self._scale_answers(answers)
        boxes = self.base.regions(answers)
        if boxes is None:
            return None
        scale = np.maximum(np.abs(r), _LEAST_RELIABILITY)
        turn = np.where(r < 0.0, -1.0, 1.0)
        lower, upper = boxes.lower / scale, boxes.upper / scale
        return TruncationBox(lower, upper, boxes.variance / scale**2, turn)
