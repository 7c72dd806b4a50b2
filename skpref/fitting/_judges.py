"""Judges: their prior, the posterior of each, and how each sees a duel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator

from skpref._utils import (
    Array,
    Fields,
    check_bounds,
    check_number,
    check_shapes,
    printable_text,
)
from skpref.data import Respondents
from skpref.fitting._biases import judged_duel_rows, set_reliability
from skpref.fitting._components import NAMED
from skpref.fitting._reliability import Law, Marginals, quantile_of
from skpref.gp import Posterior, averaged_with_moment_match, concatenate_blocks
from skpref.kernels import PART, Padded


class JudgePrior(BaseEstimator):
    """Prior of judges' reliability, and of what biases each.

    A judge answers about reliability × the difference of the utilities. Reliable judges have a
    positive reliability, adversarial ones a negative one, which log-normal distributions of the
    same variance describe; the others answer at random, with a reliability of 0. Beside that stand
    slopes on controls and an advantage of what is shown first, those of all judges and each
    judge's own.

    Parameters
    ----------
    variance : float, default=0.1
        Of the logarithm of reliability: median of a wide log-normal prior between the bounds.
    variance_bounds : (float, float) or "fixed", default=(1e-4, 1.0)
        "fixed", or a regressor that learns nothing, holds the variance.
    random, adversarial : float, default=0.1, 0.05
        Expected shares of judges who answer at random, and the wrong way round. They are learned,
        and the expectation weighs as much as ten judges.
    control_variance : float, default=0.1
        Variance of judges' own slopes on each control, in units of the utility for one standard
        deviation of the control: where its search starts, and the median of its prior. 0: they have
        none. A control is a column beside ids that differs between rows of one id; of a kernel of
        your own the terms that are linear in such columns alone are controls.
    control_variance_bounds : (float, float) or "fixed", default=(1e-5, 1e3)
        Bounds of that search; "fixed" holds it.
    order_variance : float, default=None
        Variance of judges' own advantages of what is shown first, beside the order effect of all:
        where its search starts, and the median of its prior. 0: they have none. None: 0.1 where the
        model has an order effect and no kernel of your own, else 0.
    order_variance_bounds : (float, float) or "fixed", default=(1e-4, 10.0)
        Bounds of that search; "fixed" holds it.

    Examples
    --------
    >>> from skpref import JudgePrior, PairwisePreferenceRegressor
    >>> model = PairwisePreferenceRegressor(judge_prior=JudgePrior(order_variance=0.01))
    >>> model.set_params(judge_prior__random=0.3).judge_prior
    JudgePrior(order_variance=0.01, random=0.3)
    """

    def __init__(
        self,
        variance: float = 0.1,
        *,
        variance_bounds: tuple[float, float] | str = (1e-4, 1.0),
        random: float = 0.1,
        adversarial: float = 0.05,
        control_variance: float = 0.1,
        control_variance_bounds: tuple[float, float] | str = (1e-5, 1e3),
        order_variance: float | None = None,
        order_variance_bounds: tuple[float, float] | str = (1e-4, 10.0),
    ):
        self.variance = variance
        self.variance_bounds = variance_bounds
        self.random = random
        self.adversarial = adversarial
        self.control_variance = control_variance
        self.control_variance_bounds = control_variance_bounds
        self.order_variance = order_variance
        self.order_variance_bounds = order_variance_bounds

    def check(self, learned: bool = True) -> None:
        """Raise unless the parameters are sound; ``learned``: if a search starts from them."""
        for name in ("variance", "control_variance", "order_variance"):
            value, bounds = getattr(self, name), getattr(self, f"{name}_bounds")
            ends = check_bounds(f"{name}_bounds of judge_prior", bounds)
            if value is None and name == "order_variance":
                continue
            is_bias = name != "variance"
            check_number(
                f"{name} of judge_prior", value, low=0.0, open_low=not is_bias, open_high=True
            )
            if is_bias and value == 0.0:
                continue
            if learned and ends is not None and not ends[0] <= value <= ends[1]:
                raise ValueError(
                    f"{name} of judge_prior must lie within {name}_bounds, {ends[0]:g} to "
                    f"{ends[1]:g}, got {value!r}. Move it or the bounds, or hold it by "
                    f"{name}_bounds='fixed'."
                )
        for name in ("random", "adversarial"):
            value = getattr(self, name)
            check_number(f"{name} of judge_prior", value, low=0.0, high=1.0, open_high=True)
        if self.random + self.adversarial >= 1.0:
            raise ValueError(
                "random and adversarial of judge_prior are shares of the judges, together below "
                f"1; got {self.random!r} and {self.adversarial!r}."
            )

    @property
    def start_of_order(self) -> float:
        """Return the variance of own advantages of what is shown first, where there are any."""
        return PART if self.order_variance is None else self.order_variance

    def law(self, learned: bool) -> Law:
        """Return the law of reliability before any answer; ``learned``: its variance is learned."""
        bounds = check_bounds("variance_bounds", self.variance_bounds) if learned else None
        held = self.variance, self.variance
        between = held if bounds is None else bounds
        return Law.make_prior(between, self.variance, self.adversarial, self.random)


def check_judge_prior(prior: Any, learned: bool) -> JudgePrior:
    """Return ``judge_prior=`` itself, or the default for None, checked."""
    if prior is None:
        return JudgePrior()
    if not isinstance(prior, JudgePrior):
        raise TypeError(f"judge_prior must be None or a skpref.JudgePrior, got {prior!r}.")
    prior.check(learned)
    return prior


# Judges that are written out.
_SHOWN = 10
# Nodes that average over the reliability of the reference judge.
_NODES = 9
# Log noise relative to the reference judge's lies between ± this.
_WIDEST = 60.0


@dataclass(frozen=True, eq=False, repr=False)
class Judges(Fields):
    """Judges of one truth, and how reliable each is.

    Reliability multiplies the margin before the noise of the reference judge is added: 1 is the
    reference judge, 0 answers at random, below 0 the wrong way round. The judge's own noise has
    variance σ²/reliability².

    Attributes
    ----------
    ids : ndarray of shape (n_judges,)
        In order of first appearance.
    n_answers : ndarray of int of shape (n_judges,)
    reliability : ndarray of shape (n_judges,)
        Posterior means.
    noise_variance : ndarray of shape (n_judges,)
        Of the judge's noise on the utility of each item: σ²/reliability²; infinite where
        reliability is 0.
    order_effect : ndarray of shape (n_judges,) or None
        What a judge adds, beside the order effect of all and in units of the utility, to what is
        shown first; None where judges have none of their own, see ``JudgePrior(order_variance=)``.
    control_slopes : dict of int to ndarray of shape (n_judges,)
        By the columns that are controls: what a judge adds to the utility for one more of the
        column, beside the slope that all judges share. Empty without controls.
    probability_random, probability_adversarial : ndarray of shape (n_judges,)
        That the judge answers at random; that reliability is negative.
    law : Law
        How reliability is distributed among judges: ``median``, ``variance`` of the logarithm,
        shares ``adversarial`` and ``random``.
    weights : ndarray of shape (n_readings,)
        Probabilities of the readings of the judges that the answers leave open, the largest
        first. With all judges and all utilities turned round answers are as probable as before, so
        that few judges leave more than one. All else here, and ``posterior_``, are averages over
        them.

    Notes
    -----
    Intervals are central and of the posterior given the kernel's hyperparameters. Those of
    reliability are relative to the reference judge. Those of the noise include that the noise of
    the reference judge is uncertain.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> rng = np.random.default_rng(0)
    >>> duels = rng.uniform(size=(200, 2, 1))
    >>> right = (duels[:, 0, 0] > duels[:, 1, 0]).astype(int)
    >>> judges = np.repeat(["ann", "bob"], 100)
    >>> y = np.where(judges == "ann", right, rng.integers(0, 2, 200))
    >>> model = PairwisePreferenceRegressor().fit(duels, y, judges=judges)
    >>> [str(name) for name in model.judges_.ids[model.judges_.reliability > 0.5]]
    ['ann']
    """

    respondents: Respondents
    n_answers: NDArray[np.intp]
    law: Law
    marginals: Marginals
    reference_noise: float
    reference_deviation: float = 0.0
    weights: Array = field(default_factory=lambda: np.ones(1))
    parts: "tuple[Judges, ...]" = ()
    used: Array | None = None
    nodes: "tuple[Judges, ...]" = ()
    node_weights: Array | None = None
    slopes: dict[int, Marginals] = field(default_factory=dict)
    order: Marginals | None = None

    def __len__(self) -> int:
        return len(self.respondents)

    def check_loaded_fields(self) -> None:
        """Raise ValueError unless all is of the same judges and readings, see `Fields`."""
        check_shapes(variances=(self.law.variances, "v"), weights=(self.law.weights, "v"))
        sizes = check_shapes(
            n_answers=(self.n_answers, "j"),
            **{"reliability in use": (self.used, "j"), "weights of readings": (self.weights, "r")},
            **{"weights of nodes": (self.node_weights, "k")},
        )
        effects = [self.marginals, self.order, *self.slopes.values()]
        judges = {len(self), sizes["j"], *(len(each.points) for each in effects if each)}
        if len(judges) > 1:
            raise ValueError(f"numbers of judges differ: {sorted(judges)}")
        counts = len(self.parts) or 1, len(self.nodes) or 1
        if counts != (sizes["r"], sizes.get("k", 1)):
            raise ValueError(f"readings of judges and their nodes, {counts}, have other weights")

    @property
    def ids(self) -> NDArray[Any]:
        """Return the ids in order of first appearance."""
        return self.respondents.names

    @classmethod
    def mixture(cls, weights: Array, parts: "Sequence[Judges]") -> "Judges":
        """Average judges over several readings of these weights, the most probable first."""
        if len(parts) == 1:
            return parts[0]
        every = [part.order for part in parts if part.order is not None]
        return replace(
            parts[0],
            marginals=Marginals.mixture(weights, [part.marginals for part in parts]),
            order=Marginals.mixture(weights, every) if every else None,
            slopes={
                column: Marginals.mixture(weights, [part.slopes[column] for part in parts])
                for column in parts[0].slopes
            },
            weights=weights,
            parts=tuple(parts),
        )

    def at(self, used: Array, judges: NDArray[np.intp]) -> Self:
        """Return the judges where the reliability of some is known."""
        marginals = self.marginals.known(used, judges)
        return replace(self, used=used, marginals=marginals)

    def averaged(self, weights: Array, nodes: "Sequence[Judges]") -> Self:
        """Return a reading that is averaged over several reliabilities, of these weights."""
        mixed = Judges.mixture(weights, nodes)
        inner = tuple(nodes) if len(nodes) > 1 else ()
        return replace(
            self, slopes=mixed.slopes, order=mixed.order, nodes=inner, node_weights=weights
        )

    def readings(self) -> "tuple[Judges, ...]":
        """Return the judges in each of the readings, as if that were certain."""
        return self.parts or (self,)

    def components(self) -> "tuple[Array, tuple[Judges, ...]]":
        """Return the weights of the posterior's components, and the judges that each assumes."""
        weights: list[Array] = []
        judges: tuple[Judges, ...] = ()
        for weight, reading in zip(self.weights, self.readings(), strict=True):
            of_nodes = np.ones(1) if reading.node_weights is None else reading.node_weights
            weights.append(weight * of_nodes)
            judges += reading.nodes or (reading,)
        return np.concatenate(weights), judges

    @property
    def reliability(self) -> Array:
        """Return the posterior means of reliability."""
        return self.marginals.mean

    @property
    def noise_variance(self) -> Array:
        """Return the variance of the noise on the utility of each item, by judge."""
        with np.errstate(divide="ignore"):
            return self.reference_noise / self.reliability**2

    @property
    def order_effect(self) -> Array | None:
        """Return the posterior means of own order effects."""
        return None if self.order is None else self.order.mean

    @property
    def control_slopes(self) -> dict[int, Array]:
        """Return the posterior means of own slopes, by the columns that are controls."""
        return {column: slope.mean for column, slope in self.slopes.items()}

    @property
    def probability_random(self) -> Array:
        """Return the probability that each judge answers at random."""
        return self.marginals.cdf(0.0) - self.marginals.cdf(0.0, below=True)

    @property
    def probability_adversarial(self) -> Array:
        """Return the probability that each judge is adversarial: reliability is negative."""
        return self.marginals.cdf(0.0, below=True)

    def reliability_interval(self, level: float = 0.95) -> Array:
        """Return central intervals of reliability, shape (n_judges, 2)."""
        return _central_interval(self.marginals.quantile, level)

    def order_effect_interval(self, level: float = 0.95) -> Array:
        """Return central intervals of own order effects, shape (n_judges, 2)."""
        if self.order is None:
            raise ValueError(
                "Order effects of judges' own were not asked for: set an order_variance, such as "
                "judge_prior=JudgePrior(order_variance=0.01), and fit."
            )
        return _central_interval(self.order.quantile, level)

    def control_slope_interval(self, column: int, level: float = 0.95) -> Array:
        """Return central intervals of own slopes on a control, shape (n_judges, 2).

        Raises
        ------
        ValueError
            If the column is no control.
        """
        if column not in self.slopes:
            raise ValueError(f"Controls are the columns {list(self.slopes)}, got {column!r}.")
        return _central_interval(self.slopes[column].quantile, level)

    def noise_interval(self, level: float = 0.95) -> Array:
        """Return central intervals of the noise variance, (n_judges, 2); infinite if random."""
        return _central_interval(self._noise_quantile, level)

    def _noise_quantile(self, level):
        """Return the quantile of each judge's noise variance, infinite where the judge is
        random."""
        ends = np.full(len(self), _WIDEST)
        high = quantile_of(self._noise_cdf, -ends, ends, level)
        with np.errstate(over="ignore"):
            noise = self.reference_noise * np.exp(high)
        return np.where(high >= _WIDEST - 1e-6, np.inf, noise)

    def _noise_cdf(self, log_ratio):
        """Return P(log noise relative to the reference judge ≤ this), shape (n_judges,)."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        if not self.reference_deviation:
            nodes, weights = np.zeros(1), np.ones(1)
        total = np.zeros(len(self))
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            least = np.exp(-0.5 * log_ratio - node * self.reference_deviation)  # of |reliability|
            total += weight * (
                1.0 - self.marginals.cdf(least, below=True) + self.marginals.cdf(-least)
            )
        return total

    def to_frame(self, level: float = 0.95) -> Any:
        """Return a pandas DataFrame with a row for each judge, the most reliable first.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.
        """
        import pandas as pd

        reliability, noise = self.reliability_interval(level), self.noise_interval(level)
        columns: dict[str, Any] = {
            "n_answers": self.n_answers,
            "reliability": self.reliability,
            "reliability_low": reliability[:, 0],
            "reliability_high": reliability[:, 1],
            "noise_variance": self.noise_variance,
            "noise_low": noise[:, 0],
            "noise_high": noise[:, 1],
            "probability_random": self.probability_random,
            "probability_adversarial": self.probability_adversarial,
        }
        for column, slope in self.control_slopes.items():
            ends = self.control_slope_interval(column, level)
            columns |= {
                f"slope_{column}": slope,
                f"slope_{column}_low": ends[:, 0],
                f"slope_{column}_high": ends[:, 1],
            }
        if self.order is not None:
            order = self.order_effect_interval(level)
            columns |= {
                "order_effect": self.order_effect,
                "order_effect_low": order[:, 0],
                "order_effect_high": order[:, 1],
            }
        ids = pd.Index(self.ids, name="judge", dtype=object, tupleize_cols=False)
        frame = pd.DataFrame(columns, index=ids)
        return frame.iloc[np.argsort(-self.reliability, kind="stable")]

    def __repr__(self) -> str:
        order = np.argsort(-self.reliability, kind="stable")
        interval = self.reliability_interval()
        lines = [f"Judges: {len(self)}, reliability with 95 % intervals (1: the reference judge)"]
        shown = order
        if len(order) > 2 * _SHOWN:
            shown = np.concatenate([order[:_SHOWN], order[-_SHOWN:]])
        names = [printable_text(name) for name in self.ids[shown]]
        width = max((len(name) for name in names), default=0)
        for name, k in zip(names, shown, strict=True):
            # 0 without a sign
            mean, low, high = np.round([self.reliability[k], *interval[k]], 2) + 0.0
            lines.append(
                f"  {name:<{width}}  {mean:6.2f}  [{low:6.2f}, {high:6.2f}]  "
                f"{self.n_answers[k]} answers"
            )
        if len(shown) < len(order):
            lines.insert(1 + _SHOWN, f"  … {len(order) - len(shown)} more")
        return "\n".join(lines)


def _central_interval(quantile: Callable[[float], Array], level: float) -> Array:
    """Return central intervals (n, 2) of this level by a quantile function."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie in (0, 1), got {level}.")
    return np.stack([quantile(0.5 - 0.5 * level), quantile(0.5 + 0.5 * level)], axis=1)


# Probability from which on boards mention a second reading of the judges: that a single judge
# answers the wrong way round has one of just about 5 %.
_READING = 0.04


def readings_in_words(judges: Judges | None) -> list[str]:
    """Describe the two most probable readings of the judges, where the second has some probability.

    Returns
    -------
    list of str
        Sentences without their full stops; none, where there is no such judge or no doubt.
    """
    shares: dict[str, float] = {}
    readings = () if judges is None else judges.readings()
    for weight, reading in zip(() if judges is None else judges.weights, readings, strict=True):
        contrary = _list_names(reading.ids[reading.probability_adversarial > 0.5].tolist())
        at_random = _list_names(reading.ids[reading.probability_random > 0.5].tolist())
        words = [f"{who} the wrong way round" for who in contrary]
        words += [f"{who} at random" for who in at_random]
        answers = " and ".join(words) or "all as the question is meant"
        shares[answers] = shares.get(answers, 0.0) + float(weight)
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    if len(ordered) < 2 or ordered[1][1] <= _READING:
        return []
    first, second = (f"{answers} (probability {share:.2f})" for answers, share in ordered[:2])
    remedy = "Answers of more judges would decide"
    if "wrong way" in second or "wrong way" in first:
        remedy += "; if nobody errs so, in Python, judge_prior=JudgePrior(adversarial=0.0)"
    return [f"How judges answer is open: {first}, or {second}. The board averages. {remedy}"]


def _list_names(names):
    """Return names as one phrase in a list, the first few of many; an empty list of no names."""
    shown = [printable_text(name) for name in names[:NAMED]]
    if len(names) > NAMED:
        shown.append(f"{len(names) - NAMED} more")
    if len(shown) < 2:
        return shown
    return [f"{', '.join(shown[:-1])} and {shown[-1]}"]


# Points of reliability that probabilities are averaged over.
_POINTS = 40


@dataclass(frozen=True, eq=False)
class JudgeAverage:
    """Averages of predictions over the reliability of the judges of some duels.

    Attributes
    ----------
    judge : ndarray of int of shape (n,)
        Number of the judge of each duel; −1 is the reference judge, less are judges never seen.
    code : ndarray of shape (n,)
        Of the judge of each duel: a row of what follows.
    reliability, weight : ndarray of shape (n_codes, n_points)
        Points of reliability, and their probabilities.
    """

    judge: NDArray[np.intp]
    code: NDArray[np.intp]
    reliability: Array
    weight: Array

    @classmethod
    def from_ids(cls, judges: Judges, ids: list) -> Self:
        """Make that of judges by ids: an unknown one is any judge, None the reference judge."""
        n, judge = len(judges), judges.respondents.codes(ids)
        code = np.where(judge < -1, n, np.where(judge == -1, n + 1, judge))
        parts = judges.marginals, judges.law.marginals(), Marginals.certain(1.0, 1)
        points, weight = zip(*(_condense_points(part) for part in parts), strict=True)
        return cls(judge, code, np.vstack(points), np.vstack(weight))

    def take(self, rows: slice) -> Self:
        """Return that of some of the duels."""
        return replace(self, judge=self.judge[rows], code=self.code[rows])

    def margin(self, posterior: Posterior, first: Array, second: Array, order: Array) -> Array:
        """Return the mean of the margins of duels as their judges see them.

        Parameters
        ----------
        posterior, first, second, order
            As in `outcome_log_proba`.
        """
        mean = np.sum(self.reliability * self.weight, axis=1)[self.code]
        utility, own_effect = _utility_and_bias_moments(
            posterior, first, second, self.judge, order
        )[:2]
        return mean * utility.mean(axis=1) + own_effect.mean(axis=1)

    def outcome_log_proba(
        self, posterior: Posterior, first: Array, second: Array, order: Array
    ) -> Array:
        """Return log-probabilities of the outcomes of duels, averaged over reliability.

        Parameters
        ----------
        posterior : Posterior
            Its likelihood is that of the reference judge.
        first, second : ndarray of shape (n, n_features)
        order : ndarray of shape (n,)
            Who is shown first.

        Returns
        -------
        ndarray of shape (n, n_outcomes)
        """
        empty = (0, posterior.likelihood.n_outcomes)
        if not isinstance(posterior.kernel, Padded):
            blocks = (
                averaged_with_moment_match(
                    self.take(each.rows)._log_proba_over_reliability(posterior.likelihood),
                    each.means,
                    each.variance,
                    order[each.rows],
                    True,
                )
                for each in posterior.answer_moments(first, second)
            )
            log_proba = concatenate_blocks(list(blocks), empty)
        else:
            parts = _utility_and_bias_moments(posterior, first, second, self.judge, order)
            log_proba = self._average_log_proba_with_biases(posterior.likelihood, parts, order)
        return log_proba - logsumexp(log_proba, axis=1, keepdims=True)

    def _log_proba_over_reliability(self, likelihood):
        """Return a function of margins' moments to logs of probabilities averaged over
        reliability."""
        used = np.flatnonzero(np.any(self.weight[np.unique(self.code)] > 0.0, axis=0))

        def log_proba(mean, variance, order):
            shape = (-1,) + (1,) * (np.ndim(mean) - 1)
            total = None
            for k in used:
                r = self.reliability[self.code, k].reshape(shape)
                at = likelihood.outcome_log_proba(r * mean, r**2 * variance, order)
                with np.errstate(divide="ignore"):
                    at += np.log(self.weight[self.code, k]).reshape((*shape, 1))
                total = at if total is None else np.logaddexp(total, at, out=total)
            return total

        return log_proba

    def _average_log_proba_with_biases(self, likelihood, parts, order):
        """Return log-probabilities averaged over reliability, which multiplies the utility part
        alone."""
        utility, own_effect, variance, covariance, rest = parts
        total = None
        for k in np.flatnonzero(np.any(self.weight[np.unique(self.code)] > 0.0, axis=0)):
            r = self.reliability[self.code, k]
            spread = np.maximum(r**2 * variance + 2.0 * r * covariance + rest, 0.0)
            means = r[:, None] * utility + own_effect
            at = averaged_with_moment_match(
                likelihood.outcome_log_proba, means, spread, order, True
            )
            with np.errstate(divide="ignore"):
                at = at + np.log(self.weight[self.code, k])[:, None]
            total = at if total is None else np.logaddexp(total, at, out=total)
        return total


def _utility_and_bias_moments(posterior, first, second, judge, order):
    """Return moments of the two parts of margins: the utilities' difference, and judges' biases.

    Means of each by component (n, n_components), then the variance of the first, their covariance,
    and the variance of the second, (n,).
    """
    kernel = posterior.kernel
    if not isinstance(kernel, Padded):
        blocks = list(posterior.answer_moments(first, second))
        means = concatenate_blocks([block.means for block in blocks], (0, posterior.n_components))
        variance = concatenate_blocks([block.variance for block in blocks], (0,))
        zeros = np.zeros(len(variance))
        return means, np.zeros_like(means), variance, zeros, zeros
    sides = judged_duel_rows(kernel, (first, second), judge, order)
    moments = []
    for r in (0.0, 1.0, -1.0):
        blocks = list(
            posterior.answer_moments(*(set_reliability(kernel, side, r) for side in sides))
        )
        means = concatenate_blocks([block.means for block in blocks], (0, posterior.n_components))
        moments.append((means, concatenate_blocks([block.variance for block in blocks], (0,))))
    # A margin r u + b has the variance r² Var(u) + 2 r Cov(u, b) + Var(b).
    (bias, rest), (plus, more), (_, less) = moments
    return plus - bias, bias, 0.5 * (more + less) - rest, 0.25 * (more - less), rest


def _condense_points(marginals: Marginals) -> tuple[Array, Array]:
    """Return a few points with the mean and nearly the variance of each distribution, and weights.

    Neighbours of about equal probability together are one point, at their mean.
    """
    order = np.argsort(marginals.points, axis=1, kind="stable")
    points, weights = (
        np.take_along_axis(each, order, axis=1) for each in (marginals.points, marginals.weights)
    )
    middle = np.cumsum(weights, axis=1) - 0.5 * weights
    group = np.minimum((middle * _POINTS).astype(np.intp), _POINTS - 1)
    at = (np.arange(len(points))[:, None] * _POINTS + group).ravel()
    total = np.bincount(at, weights.ravel(), len(points) * _POINTS)
    centre = np.bincount(at, (weights * points).ravel(), len(points) * _POINTS)
    points = centre / np.where(total > 0.0, total, 1.0)
    return points.reshape(-1, _POINTS), np.asarray(total, np.float64).reshape(-1, _POINTS)
