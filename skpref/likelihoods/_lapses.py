"""Judges who err: a share of the answers is random, whatever the items."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skpref._utils import Array, check_bounds, check_number
from skpref.data import INEQUALITY, Answers
from skpref.likelihoods._base import Derivatives, Likelihood, TiltedMoments, delegate_to_base

_RATE = "lapse_rate"


class Lapses(Likelihood):
    """A likelihood of judges a share of whose answers is random: P = (1 − ε) P_base + ε / K.

    K is the number of outcomes of a duel [1]_. An answer that contradicts many others then loses
    its weight, where a likelihood without lapses would take all answers for noisier. It is not
    log-concave, so EP alone takes it, with duels of one judge, and with ties or grades.

    Parameters
    ----------
    base : Likelihood
        Of the answers that are not random, such as ``Probit()``.
    lapse_rate : float, default=0.05
        ε, the share of random answers, in (0, 1). Of two outcomes half of them are right.
    lapse_rate_bounds : (float, float) or "fixed", default=(1e-3, 0.6)
        Bounds of the search; "fixed" holds the rate.

    Notes
    -----
    `tilted` has the exact normaliser and mean. Where the exact variance is above that of the
    Gaussian, as of an answer that is probably random, it has the Gaussian's: sites have no negative
    precision.

    References
    ----------
    .. [1] Wichmann and Hill, "The psychometric function: I. Fitting, sampling, and goodness of
       fit", Perception & Psychophysics 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.likelihoods import Lapses, Probit
    >>> Lapses(Probit(0.5), 0.2).outcome_proba(np.array([0.0, 9.0]), np.zeros(2)).round(3)
    array([[0.5, 0.5],
           [0.1, 0.9]])
    >>> model = PairwisePreferenceRegressor(likelihood=Lapses(Probit()), inference="ep")
    >>> _ = model.fit(np.array([[[1.0], [0.0]], [[2.0], [1.0]], [[3.0], [2.0]]]), [1, 1, 1])
    >>> 0.001 <= model.likelihood_.lapse_rate <= 0.6
    True
    """

    def __init__(
        self,
        base: Likelihood,
        lapse_rate: float = 0.05,
        lapse_rate_bounds: tuple[float, float] | str = (1e-3, 0.6),
    ):
        self.base = base
        self.lapse_rate = lapse_rate
        self.lapse_rate_bounds = lapse_rate_bounds

    linear = delegate_to_base("linear")
    margin_variance = delegate_to_base("margin_variance")
    order_shift = delegate_to_base("order_shift")
    priors = delegate_to_base("priors")
    takes_offset = delegate_to_base("takes_offset")
    unit_powers = delegate_to_base("unit_powers")
    uses_order = delegate_to_base("uses_order")

    @property
    def kinds(self) -> frozenset[int]:
        """Return the kinds of duels of the base."""
        return self.base.kinds - {INEQUALITY}

    @property
    def log_concave(self) -> bool:
        """Return False: P is bounded below, so that its logarithm bends up far from its middle."""
        return False

    # -- hyperparameters: those of the base, and the rate ----------------------------------

    @property
    def hyperparameters(self) -> tuple[str, ...]:  # type: ignore[override]  # those of the base
        """Return the hyperparameters of the base, and the rate."""
        return (*self.base.hyperparameters, _RATE)

    def _value(self, name: str) -> Any:
        return self.lapse_rate if name == _RATE else self.base._value(name)

    def _bounds_of(self, name: str) -> Any:
        return self.lapse_rate_bounds if name == _RATE else self.base._bounds_of(name)

    def _with(self, values: Mapping[str, float]) -> Self:
        own = {name: value for name, value in values.items() if name != _RATE}
        rate = values.get(_RATE, self.lapse_rate)
        return type(self)(self.base._with(own), rate, self.lapse_rate_bounds)

    def fix_hyperparameters(self) -> Self:
        """Return the likelihood with every hyperparameter fixed where it is."""
        return type(self)(self.base.fix_hyperparameters(), self.lapse_rate, "fixed")

    def replace_bounds(self, name: str, bounds: tuple[float, float]) -> Self:
        """Return the likelihood with other bounds of a hyperparameter."""
        if name == _RATE:
            return type(self)(self.base, self.lapse_rate, bounds)
        return type(self)(
            self.base.replace_bounds(name, bounds), self.lapse_rate, self.lapse_rate_bounds
        )

    def change_unit(self, unit: float) -> Self:
        """Return the likelihood with what is learned, and its bounds, in units of the utility."""
        return type(self)(self.base.change_unit(unit), self.lapse_rate, self.lapse_rate_bounds)

    def check(self) -> None:
        """Raise TypeError or ValueError unless the base, the rate and its bounds are sound."""
        if not isinstance(self.base, Likelihood) or not self.base.log_concave:
            raise TypeError(
                f"got the base {self.base!r} of Lapses; a log-concave likelihood is allowed, such "
                "as Probit()."
            )
        self.base.check()
        check_number(_RATE, self.lapse_rate, low=0.0, high=1.0, open_low=True, open_high=True)
        bounds = check_bounds(f"{_RATE}_bounds", self.lapse_rate_bounds)
        if bounds is not None and bounds[1] >= 1.0:
            raise ValueError(
                f"got lapse_rate_bounds={self.lapse_rate_bounds!r}; a share below 1 is allowed. "
                "Give an upper bound such as 0.6."
            )

    def check_log_concave(self) -> None:
        """Raise ValueError unless the base is seen to be log-concave."""
        self.base.check_log_concave()

    # -- probabilities ---------------------------------------------------------------------

    def _mixed(self, log_probability: Array) -> tuple[Array, Array]:
        """Return logarithms of the mixture, and the share of it that is not random."""
        meant = log_probability + np.log1p(-self.lapse_rate)
        mixture = np.logaddexp(meant, np.log(self.lapse_rate / self.base.n_outcomes))
        return mixture, np.exp(meant - mixture)

    def log_prob(self, margin: Array, answers: Answers) -> Derivatives:
        """Log-probability of answers given their margins, see `Likelihood.log_prob`."""
        at = self.base.log_prob(margin, answers)
        value, share = self._mixed(at.value)
        change = share * (1.0 - share)
        third = share * at.third - 3.0 * change * at.gradient * at.curvature
        third += change * (1.0 - 2.0 * share) * at.gradient**3
        curvature = share * at.curvature - change * at.gradient**2
        return Derivatives(value, share * at.gradient, curvature, third)

    def outcome_log_proba(self, mean: Array, variance: Array, lead: ArrayLike = 1) -> Array:
        """Log-probabilities of the outcomes, random ones among them."""
        return self._mixed(self.base.outcome_log_proba(mean, variance, lead))[0]

    # -- what engines ask for --------------------------------------------------------------

    def tilted(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> TiltedMoments:
        """Moments of N(z; mean, variance) p(answer | z), the variance that of the Gaussian at most.

        Powers are 1.
        """
        at = self.base.tilted(mean, variance, answers)
        log_normaliser, share = self._mixed(at.log_normaliser)
        curvature = share * at.curvature - share * (1.0 - share) * at.gradient**2
        shrink = share * at.shrink + (1.0 - share) * (1.0 + share * variance * at.gradient**2)
        wider = curvature < 0.0
        curvature, shrink = np.where(wider, 0.0, curvature), np.where(wider, 1.0, shrink)
        return TiltedMoments(log_normaliser, share * at.gradient, curvature, shrink)

    def log_normaliser(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> Array:
        """Return the log normaliser of `tilted`, without its derivatives."""
        return self._mixed(self.base.log_normaliser(mean, variance, answers))[0]

    def tilted_theta_gradient(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> Array:
        """Derivatives of the log normaliser in the base's hyperparameters and log ε."""
        share = self._mixed(self.base.log_normaliser(mean, variance, answers))[1]
        slopes = share * self.base.tilted_theta_gradient(mean, variance, answers)
        if self._held(_RATE):
            return slopes
        by_rate = 1.0 - share - self.lapse_rate / (1.0 - self.lapse_rate) * share
        return np.concatenate([slopes, by_rate[None]])
