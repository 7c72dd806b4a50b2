"""Probit likelihood: normal noise on each utility, Φ(margin / √(2σ²)).

The noise on each utility has variance σ², so the noise on a margin has variance 2σ². This module is
the only place where σ² doubles. All of it is stable hundreds of standard deviations out.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from skpref.likelihoods._base import Answers, Derivatives, Likelihood, Regions, Site, Tilted
from skpref.likelihoods._gaussian import standardise
from skpref.likelihoods._mills import mills
from skpref.likelihoods._repeats import equal_sites


class Probit(Likelihood):
    """The winner is the item whose utility, seen with normal noise, was larger.

    P(winner wins | margin) = Φ(margin / √(2σ²)) [1]_.

    Parameters
    ----------
    noise_variance : float, default=1e-2
        σ² of **each** item's utility at each presentation, in squared units of the utility.
    noise_variance_bounds : (float, float) or "fixed", default=(1e-4, 10.0)
        Bounds of the search; "fixed" holds the noise.

    References
    ----------
    .. [1] Chu and Ghahramani, "Preference learning with Gaussian processes", ICML 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.likelihoods import Probit
    >>> Probit(noise_variance=0.5).outcome_proba(np.array([0.0, 1.0]), np.zeros(2)).round(3)
    array([[0.5  , 0.5  ],
           [0.159, 0.841]])
    """

    hyperparameters: ClassVar[tuple[str, ...]] = ("noise_variance",)

    def __init__(
        self,
        noise_variance: float = 1e-2,
        noise_variance_bounds: tuple[float, float] | str = (1e-4, 10.0),
    ):
        self.noise_variance = noise_variance
        self.noise_variance_bounds = noise_variance_bounds

    @property
    def margin_variance(self) -> float:
        """Variance of the noise on a margin: both items carry it."""
        return 2.0 * self.noise_variance

    def log_prob(self, margin: NDArray[np.float64], answers: Answers) -> Derivatives:
        """log Φ(margin/s) and its derivatives, see `Likelihood.log_prob`."""
        scale = np.sqrt(self.margin_variance)
        u = margin / scale
        at = mills(u)
        third = at.third / scale**3
        return Derivatives(log_ndtr(u), at.ratio / scale, at.curvature / scale**2, third)

    def theta_derivatives(
        self, margin: NDArray[np.float64], answers: Answers
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Derivatives in log σ², see `Likelihood.theta_derivatives`."""
        n = len(self.free)
        d = self.log_prob(margin, answers)
        # With s^{-k} g(z/s) the k-th derivative, d/dlog σ² of it is −½ (z d/dz + k) of it.
        value = -0.5 * margin * d.gradient
        gradient = -0.5 * (d.gradient - margin * d.curvature)
        curvature = -0.5 * (2.0 * d.curvature - margin * d.third)
        return value[None][:n], gradient[None][:n], curvature[None][:n]

    def outcome_log_proba(
        self, mean: NDArray[np.float64], variance: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Log-probabilities of (second won, first won), finite in the tails."""
        u = standardise(mean, variance, self.margin_variance)
        return _outcomes(log_ndtr(-u), log_ndtr(u))

    def outcome_proba(
        self, mean: NDArray[np.float64], variance: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Probabilities of (second won, first won)."""
        u = standardise(mean, variance, self.margin_variance)
        return _outcomes(ndtr(-u), ndtr(u))

    def tilted(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        answers: Answers,
        power: NDArray[np.float64] | None = None,
    ) -> Tilted:
        """Moments of N(z; mean, variance) Φ(z/s): GPML (3.58); powers below 1 by quadrature."""
        noise = self.margin_variance
        total = variance + noise
        scale = np.sqrt(total)
        u = mean / scale
        at = mills(u)
        # 1 − v β = (s² + v (1 − r(u + r))) / (v + s²), a sum of non-negative terms
        shrink = (noise + variance * np.maximum(at.left, 0.0)) / total
        found = Tilted(log_ndtr(u), at.ratio / scale, at.curvature / total, shrink)
        if power is None or not np.any(partial := (power < 1.0) & (variance > 0.0)):
            return found
        rest = super().tilted(
            mean[partial], variance[partial], answers.take(partial), power[partial]
        )
        for whole, part in zip(found, rest, strict=True):
            whole[partial] = part
        return found

    def tilted_theta_gradient(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        answers: Answers,
        power: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Derivative of the log normaliser of `tilted` in log σ²."""
        if not self.free:
            return np.zeros((0, len(mean)))
        noise = self.margin_variance
        moments = self.tilted(mean, variance, answers)
        slopes = -0.5 * noise * mean * moments.gradient / (variance + noise)
        if power is not None and np.any(partial := (power < 1.0) & (variance > 0.0)):
            rest = mean[partial], variance[partial], answers.take(partial), power[partial]
            slopes[partial] = super().tilted_theta_gradient(*rest)[0]
        return slopes[None]

    def repeated_site(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        counts: NDArray[np.float64],
        answers: Answers,
        near: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> Site:
        """Common fixed point of equal answers, see `Likelihood.repeated_site`."""
        noise = self.margin_variance
        start = None if near is None else near[0] / np.sqrt(near[1] + noise)
        return Site(*equal_sites(mean, variance, counts, noise, start))

    def regions(self, answers: Answers) -> Regions:
        """The noisy margin is positive."""
        n = len(answers.kind)
        variance = np.full(n, self.margin_variance)
        return Regions(np.zeros(n), np.full(n, np.inf), variance)


def _outcomes(second, first):
    """Both outcomes on a new last axis, each of them contiguous in memory."""
    return np.moveaxis(np.stack([second, first]), 0, -1)
