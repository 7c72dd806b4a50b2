"""Probit likelihood: normal noise on each utility, Φ(margin / √(2σ²)), ties and an order effect.

The noise on each utility has variance σ², so the noise on a margin has variance 2σ². This module is
the only place where σ² doubles. All of it is stable hundreds of standard deviations out.
"""

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr

from skpref._utils import Array, check_bounds, check_number
from skpref.data import DUEL, INEQUALITY, TIE, Answers, check_kinds
from skpref.likelihoods._base import Derivatives, Likelihood, Site, TiltedMoments, TruncationBox
from skpref.likelihoods._expected import SURE, Expected, expected_log_ndtr
from skpref.likelihoods._normal import Slab, mills, slab, standardise
from skpref.likelihoods._repeats import find_repeated_sites


class Intervals(NamedTuple):
    """The rows as intervals of the noisy margin: half lines and slabs.

    Attributes
    ----------
    kind : ndarray of int8 of shape (n,)
    lead : ndarray of shape (n,)
        Derivative of ``ahead`` in the order effect.
    ahead : ndarray of shape (n,)
        What the order effect and the offset add to the margin.
    shift : ndarray of shape (n,)
        The same, less the end of a half line or the middle of a slab.
    noise : ndarray of shape (n,)
        Variance of the noise on the margin that belongs to the factor.
    slabs : ndarray of int
        Which rows are slabs.
    width : ndarray
        Half the width of each slab.
    """

    kind: NDArray[np.int8]
    lead: Array
    ahead: Array
    shift: Array
    noise: Array
    slabs: NDArray[np.intp]
    width: Array

    @property
    def half_lines(self) -> NDArray[np.intp]:
        """Return which rows with noise are half lines."""
        bounded = np.zeros(len(self.kind), dtype=bool)
        bounded[self.slabs] = True
        return np.flatnonzero(~bounded & (self.noise > 0.0))

    def threshold_slopes(self, cuts: Array, by_margin: Array, by_width: Array) -> Array:
        """Return the derivative of something where the thresholds move by ``cuts``.

        Parameters
        ----------
        cuts : ndarray
            As in `ends`.
        by_margin : ndarray of shape (..., n)
            Its derivative in the margin.
        by_width : ndarray of shape (..., n_slabs)
            Its derivatives in the widths.
        """
        middle, half = interval_middles(cuts)
        slope = np.where(self.noise > 0.0, -middle[self.kind] * by_margin, 0.0)
        slope[..., self.slabs] += half[self.kind[self.slabs]] * by_width
        return slope


def interval_ends(cuts: Array, kind: NDArray[np.int8]) -> tuple[Array, Array]:
    """Return lower and upper ends of the noisy margins that rows of these kinds stand for.

    Parameters
    ----------
    cuts : ndarray of shape (n_levels,)
        Thresholds, ascending: that of a tie (0 without ties), then any further ones.
    kind : ndarray of int8 of shape (n,)
    """
    lower, upper = _ends_by_kind(cuts)
    return lower[kind], upper[kind]


def interval_middles(cuts: Array) -> tuple[Array, Array]:
    """Return each kind's middle of the slab and half width; of a half line its end and infinity.

    There are few kinds and many rows, so that it is quicker to find these once for each kind.
    """
    lower, upper = _ends_by_kind(cuts)
    half = 0.5 * (upper - lower)
    return np.where(np.isfinite(half), lower + half, lower), half


def _ends_by_kind(cuts):
    """Return the lower and the upper end of the noisy margin for each kind of answer."""
    lower = np.array([cuts[0], -cuts[0], 0.0, *cuts])  # DUEL, TIE, INEQUALITY, between further cuts
    upper = np.array([np.inf, cuts[0], np.inf, *cuts[1:], np.inf])
    return lower, upper


class Factor(NamedTuple):
    """Log-probability, and derivatives as `Mills` has them."""

    value: Array
    gradient: Array
    curvature: Array
    left: Array
    third: Array


def factor(mean, scale, rows: Intervals | None) -> Factor:
    """Return `Factor` of every row in units of ``scale``, the noisy margin's deviation."""
    if rows is None or not len(rows.slabs):
        return _factor_of_half_lines((mean if rows is None else mean + rows.shift) / scale)
    values = Factor(*np.empty((len(Factor._fields), len(mean))))
    others = np.ones(len(mean), dtype=bool)
    others[rows.slabs] = False
    others = np.flatnonzero(others)
    u = (mean + rows.shift)[others] / np.broadcast_to(scale, mean.shape)[others]
    for at, parts in (
        (others, _factor_of_half_lines(u)),
        (rows.slabs, slabs_of(mean, scale, rows)),
    ):
        for whole, part in zip(values, parts, strict=False):
            whole[at] = part
    return values


def _factor_of_half_lines(u):
    """Return `Factor` of answers that stand for all noisy margins above one end."""
    at = mills(u)
    return Factor(at.value, at.ratio, at.curvature, at.left, at.third)


def slabs_of(mean, scale, rows: Intervals) -> Slab:
    """Return `Slab` of those rows that are slabs."""
    scale = np.broadcast_to(scale, mean.shape)[rows.slabs]
    return slab((mean + rows.shift)[rows.slabs] / scale, rows.width / scale)


class ExpectedProbit(Likelihood):
    """What variational inference asks of `Probit`."""

    @property
    @abstractmethod
    def margin_variance(self) -> float:
        """Variance of the noise on a margin."""

    @abstractmethod
    def _noisy_intervals(self, answers: Answers) -> Intervals | None:
        """Return thresholds and order effect of every row; None if there are none."""

    @abstractmethod
    def _threshold_slopes(self) -> dict[str, Array]:
        """Return how the thresholds move with each hyperparameter that is one."""

    def expected(self, mean: Array, variance: Array, noise: Array, answers: Answers) -> Expected:
        """Expectation of the log-probability, see `Likelihood.expected`."""
        rows, total = self._noisy_intervals(answers), self.margin_variance + noise
        if rows is not None and len(rows.slabs):
            values = np.empty((4, len(mean)))
            for at, of in ((rows.half_lines, self.expected), (rows.slabs, super().expected)):
                values[:, at] = of(mean[at], variance[at], noise[at], answers.take(at))
            return Expected(*values)
        ahead, scale = mean if rows is None else mean + rows.shift, np.sqrt(total)
        value, slope, bend = expected_log_ndtr(ahead / scale, variance / total)
        by_mean, by_variance = slope / scale, bend / total
        by_noise = -(0.5 * ahead * by_mean + variance * by_variance) / total
        return Expected(value, by_mean, by_variance, by_noise)

    def expected_theta_gradient(
        self, mean: Array, variance: Array, noise: Array, answers: Answers
    ) -> Array:
        """Return the derivatives in log σ², the thresholds and h of the value of `expected`."""
        rows = self._noisy_intervals(answers)
        if not self.free:
            return np.zeros((0, len(mean)))
        if rows is not None and len(rows.slabs):
            slopes = np.empty((len(self.free), len(mean)))
            own, general = self.expected_theta_gradient, super().expected_theta_gradient
            for at, of in ((rows.half_lines, own), (rows.slabs, general)):
                slopes[:, at] = of(mean[at], variance[at], noise[at], answers.take(at))
            return slopes
        slope = self.expected(mean, variance, noise, answers)
        derivatives = {"noise_variance": self.margin_variance * slope.by_noise}
        if rows is not None:
            derivatives["order_effect"] = rows.lead * slope.by_mean
            for name, cuts in self._threshold_slopes().items():
                derivatives[name] = rows.threshold_slopes(cuts, slope.by_mean, np.zeros(0))
        return np.stack([derivatives[name] for name in self.free])

    def _averaged(self, margin, noise, answers):
        """Return the log of the mean probability over noise, d/dm and d/dnoise, in closed form."""
        at = self.tilted(margin, noise, answers)
        # d log p/dnoise is half of p''/p: p as a function of margin and noise diffuses
        return at.log_normaliser, at.gradient, 0.5 * (at.gradient**2 - at.curvature)

    def _averaged_slopes(self, margin, noise, answers):
        """Return the derivatives in `theta` of the log of the mean probability over noise."""
        return self.tilted_theta_gradient(margin, noise, answers)

    def _bends(self, noise, answers):
        """Return margins at the ends of each slab, and where these are felt no more."""
        rows = cast(Intervals, self._noisy_intervals(answers))
        felt = SURE * np.sqrt(self.margin_variance + noise)
        inside = rows.width - np.minimum(felt, rows.width)
        upper = np.stack([inside, rows.width, rows.width + felt, rows.width + 8.0 * felt], axis=1)
        return np.hstack([-upper[:, ::-1], upper]) - rows.shift[:, None]


class Probit(ExpectedProbit):
    """The winner is the item whose utility, seen with normal noise, was larger.

    P(winner wins | margin) = Φ(margin / √(2σ²)) [1]_. With a threshold δ there are ties [2]_: the
    difference of the noisy utilities is above δ where the first won, below −δ where the second
    did, between these where neither did. An order effect h is added to the utility of the item
    that is shown first, or plays at home.

    Parameters
    ----------
    noise_variance : float, default=1e-2
        σ² of **each** item's utility at each presentation, in squared units of the utility.
    noise_variance_bounds : (float, float) or "fixed", default=(1e-4, 10.0)
        Bounds of the search; "fixed" holds the noise.
    tie_threshold : float or None, default=None
        δ, in units of the utility; None: there are no ties.
    tie_threshold_bounds : (float, float) or "fixed", default=(1e-4, 10.0)
        Likewise.
    order_effect : float, default=0.0
        h, in units of the utility, of either sign.
    order_effect_bounds : (float, float) or "fixed", default="fixed"
        Likewise; any two finite numbers.

    References
    ----------
    .. [1] Chu and Ghahramani, "Preference learning with Gaussian processes", ICML 2005.
    .. [2] Glenn and David, "Ties in paired-comparison experiments using a modified
       Thurstone-Mosteller model", Biometrics 1960.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.likelihoods import Probit
    >>> Probit(noise_variance=0.5).outcome_proba(np.array([0.0, 1.0]), np.zeros(2)).round(3)
    array([[0.5  , 0.5  ],
           [0.159, 0.841]])
    >>> ties = Probit(noise_variance=0.5, tie_threshold=0.3)
    >>> ties.outcome_proba(np.array([0.0, 1.0]), np.zeros(2)).round(3)
    array([[0.382, 0.236, 0.382],
           [0.097, 0.145, 0.758]])
    """

    hyperparameters: ClassVar[tuple[str, ...]] = ("noise_variance", "tie_threshold", "order_effect")
    linear: ClassVar[tuple[str, ...]] = ("order_effect",)
    unit_powers: ClassVar[Mapping[str, int]] = {
        "noise_variance": 2,
        "tie_threshold": 1,
        "order_effect": 1,
    }

    def __init__(
        self,
        noise_variance: float = 1e-2,
        noise_variance_bounds: tuple[float, float] | str = (1e-4, 10.0),
        tie_threshold: float | None = None,
        tie_threshold_bounds: tuple[float, float] | str = (1e-4, 10.0),
        order_effect: float = 0.0,
        order_effect_bounds: tuple[float, float] | str = "fixed",
    ):
        self.noise_variance = noise_variance
        self.noise_variance_bounds = noise_variance_bounds
        self.tie_threshold = tie_threshold
        self.tie_threshold_bounds = tie_threshold_bounds
        self.order_effect = order_effect
        self.order_effect_bounds = order_effect_bounds

    def check(self) -> None:
        """Raise unless the hyperparameters are sound; only the threshold may be None."""
        positive = {"low": 0.0, "open_low": True, "open_high": True}
        check_number("noise_variance", self.noise_variance, **positive)
        check_number("order_effect", self.order_effect, open_low=True, open_high=True)
        if self.tie_threshold is not None:
            try:
                check_number("tie_threshold", self.tie_threshold, **positive)
                check_bounds("tie_threshold_bounds", self.tie_threshold_bounds)
            except ValueError as error:
                raise ValueError(f"{error} tie_threshold=None means no ties.") from None
        super().check()

    def with_ties(self, threshold: float, bounds: tuple[float, float] | str) -> Self:
        """Return the likelihood with ties, whose threshold starts there."""
        changed = copy(self)
        changed.tie_threshold, changed.tie_threshold_bounds = threshold, bounds
        changed.check()
        return changed

    @property
    def kinds(self) -> frozenset[int]:
        """Return the kinds of duels and joint answers, and of ties if there is a threshold."""
        return frozenset(
            {DUEL, INEQUALITY} if self.tie_threshold is None else {DUEL, TIE, INEQUALITY}
        )

    @property
    def uses_order(self) -> bool:
        """Tell whether there is an order effect, or one is learned."""
        return self.order_effect != 0.0 or not self._held("order_effect")

    @property
    def takes_offset(self) -> bool:
        """Tell that offsets are added to margins."""
        return True

    @property
    def order_shift(self) -> float:
        """Return the order effect."""
        return self.order_effect

    @property
    def margin_variance(self) -> float:
        """Variance of the noise on a margin: both items carry it."""
        return 2.0 * self.noise_variance

    @property
    def item_noise(self) -> float:
        """Return σ², the variance of an item's noise."""
        return self.noise_variance

    def item_noise_gradient(self) -> Array:
        """Return σ² for log σ², zero for the others."""
        return np.array([self.noise_variance * (name == "noise_variance") for name in self.free])

    # -- probabilities -------------------------------------------------------------------

    def log_prob(self, margin: Array, answers: Answers) -> Derivatives:
        """Return log-probabilities of duels and ties, see `Likelihood.log_prob`.

        An inequality of a joint answer has no noise of its own, and so no derivatives.
        """
        return self._log_prob_of_intervals(margin, self._noisy_intervals(answers))

    def _log_prob_of_intervals(self, margin, rows):
        """Return log-probability and three derivatives of rows as `Intervals`, or of plain
        duels."""
        scale = np.sqrt(self.margin_variance)
        at = factor(margin, scale, rows)
        third = at.third / scale**3
        return Derivatives(at.value, at.gradient / scale, at.curvature / scale**2, third)

    def theta_derivatives(self, margin: Array, answers: Answers) -> tuple[Array, Array, Array]:
        """Return derivatives in log σ², log δ and h, see `Likelihood.theta_derivatives`."""
        rows = self._noisy_intervals(answers)
        d = self._log_prob_of_intervals(margin, rows)
        if not self.free:
            return (np.zeros((0, len(margin))),) * 3
        z, edges = margin, np.zeros((3, 1))
        slopes = {}
        if rows is not None:
            by_margin, by_width = np.stack([d.gradient, -d.curvature, -d.third]), np.zeros((3, 0))
            if len(rows.slabs):
                scale = np.sqrt(self.margin_variance)
                at = slabs_of(margin, scale, rows)
                by_width = np.stack(
                    [at.edge / scale, at.edge_gradient / scale**2, at.edge_curvature / scale**3]
                )
            z, edges = (
                margin + rows.ahead,
                rows.threshold_slopes(self._thresholds, by_margin, by_width),
            )
            slopes = {
                name: rows.threshold_slopes(cuts, by_margin, by_width)
                for name, cuts in self._threshold_slopes().items()
            }
            slopes["order_effect"] = rows.lead * by_margin
        # With s^{-k} g(z/s, t/s) the k-th derivative, d/dlog σ² of it is
        # −½ (z d/dz + Σ t d/dt + k) of it.
        slopes["noise_variance"] = np.stack(
            [
                -0.5 * (z * d.gradient + edges[0]),
                -0.5 * (d.gradient - z * d.curvature + edges[1]),
                -0.5 * (2.0 * d.curvature - z * d.third + edges[2]),
            ]
        )
        value, gradient, curvature = zip(*(slopes[name] for name in self.free), strict=True)
        return np.stack(value), np.stack(gradient), np.stack(curvature)

    def outcome_log_proba(self, mean: Array, variance: Array, lead: ArrayLike = 1) -> Array:
        """Return log-probabilities of (second won, [tie,] first won), finite in the tails."""
        return self._outcome_values(mean, variance, lead, log_ndtr, np.asarray)

    def outcome_proba(self, mean: Array, variance: Array, lead: ArrayLike = 1) -> Array:
        """Return probabilities of (second won, [tie,] first won)."""
        return self._outcome_values(mean, variance, lead, ndtr, np.exp)

    def _outcome_values(self, mean, variance, lead, tail_function, slab_function):
        """Return a function of the probability of every outcome, by one of tails and one of
        slabs."""
        if self.order_effect != 0.0:
            mean = mean + np.asarray(lead) * self.order_effect
        u = standardise(mean, variance, self.margin_variance)
        scale = self.duel_scale
        if scale.n_columns == 2:
            return _stack_outcomes(tail_function(-u), tail_function(u))
        lower, upper = interval_ends(self._thresholds, scale.kinds(np.maximum(scale.labels, 0)))
        parts, top = [], standardise(lower[-1], variance, self.margin_variance)
        for at in range(1, scale.n_columns - 1):
            label = scale.labels[at]
            if label < 0:
                low, high = (-end[scale.n_columns - 1 - at] for end in (upper, lower))
            else:
                low, high = lower[at], upper[at]
            width = standardise(0.5 * (high - low), variance, self.margin_variance)
            away = u - standardise(0.5 * (high + low), variance, self.margin_variance)
            away, width = np.broadcast_arrays(away, width)
            parts.append(slab_function(slab(away.ravel(), width.ravel()).value.reshape(away.shape)))
        return _stack_outcomes(tail_function(-u - top), *parts, tail_function(u - top))

    # -- what engines ask for ------------------------------------------------------------

    def tilted(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> TiltedMoments:
        """Return moments of a normal margin times its answer's probability, as GPML (3.58).

        Powers below 1 by quadrature; of an indicator, as the factor of an inequality of a joint
        answer is, every power is itself.
        """
        rows = self._intervals(answers)
        noise = self.margin_variance if rows is None else rows.noise
        total = variance + noise
        with np.errstate(divide="ignore", invalid="ignore"):  # noise of 0 is dealt with below
            scale = np.sqrt(total)
            at = factor(mean, scale, rows)
            # 1 − v β = (s² + v (1 − r(u + r))) / (v + s²), a sum of non-negative terms
            shrink = (noise + variance * np.maximum(at.left, 0.0)) / total
            moments = TiltedMoments(at.value, at.gradient / scale, at.curvature / total, shrink)
        if rows is not None:
            _set_certain_moments(moments, mean + rows.ahead, total)
        at = self._rows_of_partial_power(variance, power, answers)
        if power is not None and len(at):
            parts = super().tilted(mean[at], variance[at], answers.take(at), power[at])
            for whole, part in zip(moments, parts, strict=True):
                whole[at] = part
        return moments

    def log_normaliser(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> Array:
        """Return the log normaliser of `tilted`, without its derivatives."""
        rows = self._intervals(answers)
        noise = self.margin_variance if rows is None else rows.noise
        if not np.all(noise):
            return super().log_normaliser(mean, variance, answers, power)
        if power is not None:
            value = self.log_normaliser(mean, variance, answers)
            at = self._rows_of_partial_power(variance, power, answers)
            if len(at):
                cavities = mean[at], variance[at], answers.take(at), power[at]
                value[at] = super().log_normaliser(*cavities)
            return value
        scale = np.sqrt(variance + noise)
        if rows is None:
            return log_ndtr(mean / scale)
        value = log_ndtr((mean + rows.shift) / scale)
        at, scale = rows.slabs, scale[rows.slabs]
        centre, width = np.abs(mean + rows.shift)[at] / scale, rows.width / scale
        above = log_ndtr(width - centre)
        with np.errstate(divide="ignore"):
            value[at] = above + np.log(-np.expm1(log_ndtr(-width - centre) - above))
        return value

    def log_normaliser_sums(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        answers: Answers,
        copies: NDArray[np.float64],
        begins: NDArray[np.intp],
        scale: NDArray[np.float64],
        beside: tuple[Array, Array, Array] | None = None,
        power: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Sums of log normalisers, as logarithms of products: see `Likelihood.log_normaliser_sums`.

        A product of a few probabilities takes one logarithm in the place of a few. What is the same
        for all of a group is done once for it: the noise, not the margin, is scaled.
        """
        rows, size = self._intervals(answers), np.diff(begins, append=len(mean))
        arguments = mean, variance, answers, copies, begins, scale, beside, power
        if power is not None or (rows is not None and not np.all(rows.noise)):
            return super().log_normaliser_sums(*arguments)

        def spread(values):
            return np.repeat(values, size, axis=1)

        deviation = spread(self.margin_variance / scale**2)
        deviation += variance
        away = mean
        if beside is not None:
            inverse = spread(1.0 / scale)
            deviation += inverse * (inverse * beside[1] + 2.0 * beside[2])
            away = away + inverse * beside[0]
        np.sqrt(deviation, out=deviation)
        if rows is not None:
            away = away + spread(1.0 / scale) * rows.shift
        u = away / deviation
        if np.any(scale < 0.0):
            u *= spread(np.sign(scale))
        proba = ndtr(u)
        if rows is not None and len(rows.slabs):
            centre = np.abs(u[:, rows.slabs])
            width = spread(1.0 / np.abs(scale))[:, rows.slabs] * rows.width
            width /= deviation[:, rows.slabs]
            proba[:, rows.slabs] = ndtr(width - centre) - ndtr(-width - centre)
        few = np.flatnonzero(~(proba.ravel() > np.finfo(np.float64).tiny))
        proba.ravel()[few] = 1.0
        sums = np.add.reduceat(copies * np.log(proba), begins, axis=1)
        if len(few):  # by their logarithms, which are finite where they are not
            m, n = np.divmod(few, len(mean))
            group = np.repeat(np.arange(len(begins)), size)[n]
            r = scale[m, group]
            centre, width = r * mean[n], r * r * variance[n]
            if beside is not None:
                centre += beside[0][n]
                width += beside[1][n] + 2.0 * r * beside[2][n]
            logs = self.log_normaliser(centre, width, answers.take(n))
            np.add.at(sums, (m, group), copies[n] * logs)
        return sums

    def tilted_theta_gradient(
        self, mean: Array, variance: Array, answers: Answers, power: Array | None = None
    ) -> Array:
        """Return derivatives of the log normaliser of `tilted` in log σ², the thresholds and h."""
        if not self.free:
            return np.zeros((0, len(mean)))
        rows = self._intervals(answers)
        if rows is None:
            noise = self.margin_variance
            total = variance + noise
            ratio = mills(mean / np.sqrt(total)).ratio
            slopes = (-0.5 * noise * mean * ratio / total**1.5)[None]
        else:
            derivatives = self._log_normaliser_slopes(mean, variance, rows)
            slopes = np.stack([derivatives[name] for name in self.free])
        at = self._rows_of_partial_power(variance, power, answers)
        if power is not None and len(at):
            parts = mean[at], variance[at], answers.take(at), power[at]
            slopes[:, at] = super().tilted_theta_gradient(*parts)
        return slopes

    def _log_value(self, margin, answers):
        return self.log_normaliser(margin, np.zeros(len(margin)), answers)

    def _rows_of_partial_power(self, variance, power, answers):
        """Return the rows with noise whose powers are below 1."""
        if power is None:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero((power < 1.0) & (variance > 0.0) & (answers.kind != INEQUALITY))

    def repeated_site(
        self,
        mean: Array,
        variance: Array,
        counts: Array,
        answers: Answers,
        guess: tuple[Array, Array] | None = None,
    ) -> Site:
        """Return the common site of equal answers, see `Likelihood.repeated_site`.

        Unknown for joint answers and slabs, whose few repeats EP's own steps settle.
        """
        rows, noise = self._intervals(answers), self.margin_variance
        if rows is None:
            start = None if guess is None else guess[0] / np.sqrt(guess[1] + noise)
            return Site(*find_repeated_sites(mean, variance, counts, noise, start))
        precision, shift = np.full((2, len(mean)), np.nan)
        at = rows.half_lines
        if len(at):
            away = rows.shift[at]
            start = None if guess is None else (guess[0][at] + away) / np.sqrt(guess[1][at] + noise)
            cavities = mean[at] + away, variance[at], counts[at], noise
            precision[at], pull = find_repeated_sites(*cavities, start)
            shift[at] = pull - precision[at] * away
        return Site(precision, shift)

    def regions(self, answers: Answers) -> TruncationBox:
        """Return boxes of the noisy margin: positive ones, or those between thresholds."""
        rows, n = self._intervals(answers), len(answers.kind)
        if rows is None:
            return TruncationBox(np.zeros(n), np.full(n, np.inf), np.full(n, self.margin_variance))
        lower, upper = interval_ends(self._thresholds, answers.kind)
        return TruncationBox(lower - rows.ahead, upper - rows.ahead, rows.noise)

    @property
    def _thresholds(self):
        """Return the cuts of the noisy margin, see `ends`."""
        return np.array([self.tie_threshold or 0.0])

    def _threshold_slopes(self) -> dict[str, Array]:
        """Return how the thresholds move with log δ."""
        return {"tie_threshold": np.array([self.tie_threshold or 0.0])}

    def _intervals(self, answers):
        """Return the rows as `Intervals`; None of duels without ties, order effects and offsets."""
        kind, cuts = answers.kind, self._thresholds
        plain = answers.offset is None and not self.uses_order
        if plain and not (kind.any() or any(cuts)):  # of few cuts any() is quicker
            return None
        lead = answers.lead.astype(np.float64)
        ahead = self.order_effect * lead
        if answers.offset is not None:
            ahead = ahead + answers.offset
        unknown = self.tie_threshold is None and bool(np.any(kind == TIE))
        if unknown or kind.max(initial=0) > max(self.kinds):
            check_kinds(np.unique(kind).tolist(), self.kinds, type(self).__name__)
        middle, half = interval_middles(cuts)
        index = kind.astype(np.intp)  # which numpy would else make of it every time
        slabs = np.flatnonzero(np.isfinite(half)[index])
        noise = np.where(kind == INEQUALITY, 0.0, self.margin_variance)
        return Intervals(kind, lead, ahead, ahead - middle[index], noise, slabs, half[index[slabs]])

    def _noisy_intervals(self, answers):
        """Return the rows as `Intervals`; raise ValueError if some have no noise of their own."""
        rows = self._intervals(answers)
        if rows is not None and not np.all(rows.noise):
            raise ValueError(
                "An inequality of a joint answer (kind INEQUALITY) has no noise of its own, so it "
                "has no log-probability with derivatives; use inference='ep' or a sampler."
            )
        return rows

    def _log_normaliser_slopes(self, mean, variance, rows: Intervals):
        """Return the derivatives of the log normalisers, by the names of the hyperparameters."""
        total = variance + rows.noise
        sure = total <= 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt(total)
            gradient, by_width = np.empty(len(mean)), np.zeros(0)
            others = np.ones(len(mean), dtype=bool)
            others[rows.slabs] = False
            others = np.flatnonzero(others)
            gradient[others] = mills((mean + rows.shift)[others] / scale[others]).ratio
            if len(rows.slabs):
                at = slabs_of(mean, scale, rows)
                gradient[rows.slabs], by_width = at.gradient, at.edge / scale[rows.slabs]
            gradient = np.where(sure, 0.0, gradient / scale)
        along = rows.threshold_slopes(self._thresholds, gradient, by_width)
        share = rows.noise / np.where(sure, 1.0, total)
        slopes = {
            name: rows.threshold_slopes(cuts, gradient, by_width)
            for name, cuts in self._threshold_slopes().items()
        }
        slopes["noise_variance"] = -0.5 * share * ((mean + rows.ahead) * gradient + along)
        slopes["order_effect"] = rows.lead * gradient
        return slopes


def _set_certain_moments(moments, margin, total):
    """Set, in place, the moments of margins of no variance: probability 1 or 0, at zero
    one half."""
    sure = total <= 0.0
    if np.any(sure):
        with np.errstate(divide="ignore"):
            moments.log_normaliser[sure] = np.log(0.5 + 0.5 * np.sign(margin[sure]))
        moments.gradient[sure], moments.curvature[sure], moments.shrink[sure] = 0.0, 0.0, 1.0


def _stack_outcomes(*sides):
    """Stack the values of all outcomes on a new last axis, each contiguous in memory."""
    return np.moveaxis(np.stack(sides), 0, -1)
