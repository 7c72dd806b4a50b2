"""Judges of one truth who differ in care: each sees the margin on a scale of their own."""

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref.data import Answers
from skpref.likelihoods._base import (
    Derivatives,
    Likelihood,
    Site,
    TiltedMoments,
    TruncationBox,
)
from skpref.likelihoods._expected import Expected

# As a box of a noisy margin the answers of a judge who hardly looks have a noise that is finite.
_LEAST_CARE = 1e-3


class JudgeReliability(Likelihood):
    """A likelihood as judges of different care see it.

    Judge j answers about care_j × margin as the judge of the common level does about the margin: 1
    is the common level, 0 answers at random, below 0 the wrong way round. Seen from the margin the
    noise has 1/care² times the common variance. Ties and the common order effect stay in units of
    the common noise: who answers at random may still call ties, and prefer what comes first.

    Parameters
    ----------
    base : Likelihood
        Of a judge of the common level.
    care : ndarray of shape (n_judges,)
    own_order : ndarray of shape (n_judges,), default=None
        What each judge adds, beside the common order effect, to the margin of the item that is
        shown first, in units of the common noise; None: nothing.

    Notes
    -----
    Answers whose judge is not told are of the common level. Everything is the base's at the margin
    care × margin + own order effect, by the chain rule.
    """

    def __init__(
        self,
        base: Likelihood,
        care: NDArray[np.float64],
        own_order: NDArray[np.float64] | None = None,
    ):
        self.base = base
        self.care = care
        self.own_order = own_order

    def seen(self, answers: Answers) -> "Seen":
        """What the judges do to margins."""
        n = len(answers.kind)
        if answers.judge is None:
            return Seen(np.ones(n), np.zeros(n))
        care = np.asarray(self.care, dtype=np.float64)[answers.judge]
        if self.own_order is None:
            return Seen(care, np.zeros(n))
        return Seen(care, np.asarray(self.own_order)[answers.judge] * answers.lead)

    # -- what is the base's --------------------------------------------------------------

    @property
    def kinds(self) -> frozenset[int]:
        """Those of the base."""
        return self.base.kinds

    @property
    def uses_order(self) -> bool:
        """Whether the base does, or judges have order effects of their own."""
        return self.base.uses_order or self.own_order is not None

    @property
    def order_shift(self) -> float:
        """Of a judge of the common level."""
        return self.base.order_shift

    @property
    def item_noise(self) -> float | None:
        """Of a judge of the common level."""
        return self.base.item_noise

    def item_noise_gradient(self) -> NDArray[np.float64]:
        """Of a judge of the common level."""
        return self.base.item_noise_gradient()

    @property
    def margin_variance(self) -> float:
        """Of a judge of the common level."""
        return self.base.margin_variance

    @property
    def linear(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the base."""
        return self.base.linear

    @property
    def unit_powers(self) -> Mapping[str, int]:  # type: ignore[override]
        """Those of the base."""
        return self.base.unit_powers

    @property
    def free(self) -> list[str]:
        """Those of the base: care is no hyperparameter."""
        return self.base.free

    @property
    def theta(self) -> NDArray[np.float64]:
        """That of the base."""
        return self.base.theta

    @property
    def bounds(self) -> NDArray[np.float64]:
        """Those of the base."""
        return self.base.bounds

    def at(self, theta: NDArray[np.float64]) -> Self:
        """The same care with the base at other hyperparameters."""
        return type(self)(self.base.at(theta), self.care, self.own_order)

    def held(self) -> Self:
        """The same with every hyperparameter fixed where it is."""
        return type(self)(self.base.held(), self.care, self.own_order)

    def check(self) -> None:
        """Raise unless the base is sound."""
        self.base.check()

    def outcome_log_proba(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        lead: ArrayLike = 1,
    ) -> NDArray[np.float64]:
        """For a judge of the common level, see `Likelihood.outcome_log_proba`."""
        return self.base.outcome_log_proba(mean, variance, lead)

    # -- what judges see -----------------------------------------------------------------

    def log_prob(self, margin: NDArray[np.float64], answers: Answers) -> Derivatives:
        """Log-probability of answers given their margins, see `Likelihood.log_prob`."""
        care, ahead = self.seen(answers)
        at = self.base.log_prob(care * margin + ahead, answers)
        return Derivatives(at.value, care * at.gradient, care**2 * at.curvature, care**3 * at.third)

    def theta_derivatives(
        self, margin: NDArray[np.float64], answers: Answers
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Derivatives in the base's hyperparameters, see `Likelihood.theta_derivatives`."""
        care, ahead = self.seen(answers)
        value, gradient, curvature = self.base.theta_derivatives(care * margin + ahead, answers)
        return value, care * gradient, care**2 * curvature

    def tilted(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        answers: Answers,
        power: NDArray[np.float64] | None = None,
    ) -> TiltedMoments:
        """Moments of N(z; mean, variance) p(answer | z)^power, see `Likelihood.tilted`."""
        care, ahead = self.seen(answers)
        blind = care == 0.0
        if np.any(blind):
            return self._tilted_blind(mean, variance, answers, power, blind)
        at = self.base.tilted(care * mean + ahead, care**2 * variance, answers, power)
        gradient, curvature = care * at.gradient, care**2 * at.curvature
        return TiltedMoments(at.log_normaliser, gradient, curvature, at.shrink)

    def _tilted_blind(self, mean, variance, answers, power, blind):
        """The same where some margins are not looked at: nothing is integrated over."""
        found = TiltedMoments(*np.zeros((3, len(mean))), np.ones(len(mean)))
        at = self.base.log_prob(self.seen(answers).ahead[blind], answers.take(blind))
        found.log_normaliser[blind] = at.value if power is None else power[blind] * at.value
        rest = mean[~blind], variance[~blind], answers.take(~blind)
        parts = self.tilted(*rest, None if power is None else power[~blind])
        for whole, part in zip(found, parts, strict=True):
            whole[~blind] = part
        return found

    def log_normaliser(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        answers: Answers,
        power: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """That of `tilted` alone, see `Likelihood.log_normaliser`."""
        care, ahead = self.seen(answers)
        if np.any(care == 0.0):
            return self.tilted(mean, variance, answers, power).log_normaliser
        return self.base.log_normaliser(care * mean + ahead, care**2 * variance, answers, power)

    def tilted_theta_gradient(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        answers: Answers,
        power: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Derivatives of its log normaliser, see `Likelihood.tilted_theta_gradient`."""
        care, ahead = self.seen(answers)
        slopes = np.zeros((len(self.free), len(mean)))
        blind = care == 0.0
        if np.any(blind):
            at = self.base.theta_derivatives(ahead[blind], answers.take(blind))[0]
            slopes[:, blind] = at if power is None else power[blind] * at
        looks = ~blind
        of = care[looks] * mean[looks] + ahead[looks], care[looks] ** 2 * variance[looks]
        rest = answers.take(looks), None if power is None else power[looks]
        slopes[:, looks] = self.base.tilted_theta_gradient(*of, *rest)
        return slopes

    def repeated_site(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        counts: NDArray[np.float64],
        answers: Answers,
        near: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> Site:
        """Site of each of several equal answers, see `Likelihood.repeated_site`."""
        found = Site(np.zeros(len(mean)), np.zeros(len(mean)))  # of margins not looked at: nothing
        looks = self.seen(answers).care != 0.0
        some = answers.take(looks)
        care, ahead = self.seen(some)

        def as_seen(mean, variance):
            return care * mean[looks] + ahead, care**2 * variance[looks]

        centre, spread = as_seen(mean, variance)
        cavity = None if near is None else as_seen(*near)
        site = self.base.repeated_site(centre, spread, counts[looks], some, cavity)
        found.precision[looks] = care**2 * site.precision
        found.shift[looks] = care * (site.shift - site.precision * ahead)
        return found

    def expected(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        noise: NDArray[np.float64],
        answers: Answers,
    ) -> Expected:
        """Expectation of the log-probability, see `Likelihood.expected`."""
        care, ahead = self.seen(answers)
        square = care**2
        at = self.base.expected(care * mean + ahead, square * variance, square * noise, answers)
        by_variance, by_noise = square * at.by_variance, square * at.by_noise
        return Expected(at.value, care * at.by_mean, by_variance, by_noise)

    def expected_theta_gradient(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        noise: NDArray[np.float64],
        answers: Answers,
    ) -> NDArray[np.float64]:
        """Derivatives of its value, see `Likelihood.expected_theta_gradient`."""
        care, ahead = self.seen(answers)
        of = care * mean + ahead, care**2 * variance, care**2 * noise
        return self.base.expected_theta_gradient(*of, answers)

    def regions(self, answers: Answers) -> TruncationBox | None:
        """The answers as boxes of a noisy margin, of minus the margin where care is negative."""
        found = self.base.regions(answers)
        if found is None:
            return None
        care, ahead = self.seen(answers)
        scale = np.maximum(np.abs(care), _LEAST_CARE)
        turn = np.where(care < 0.0, -1.0, 1.0)
        lower, upper = (found.lower - ahead) / scale, (found.upper - ahead) / scale
        return TruncationBox(lower, upper, found.variance / scale**2, turn)


class Seen(NamedTuple):
    """What a judge makes of a margin, for each row: care × margin + ahead."""

    care: NDArray[np.float64]
    ahead: NDArray[np.float64]
