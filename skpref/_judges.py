"""What a fit tells of judges: how much care each takes, with intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpref._care import Law
from skpref._linalg import Array
from skpref._marginals import Marginals
from skpref._respondents import Respondents

# Judges that are written out.
_SHOWN = 10
# Of the uncertainty of the common level.
_NODES = 9
_BISECTIONS = 80
# Logarithms of a noise relative to the common level, between which its quantiles are looked for.
_WIDEST = 60.0


@dataclass(frozen=True, eq=False, repr=False)
class Judges:
    """Judges of one truth, and how much care each takes.

    The care of a judge multiplies the margin before the noise of the common level is added: 1 is
    the common level, 0 answers at random, below 0 the wrong way round; the judge's own noise has
    variance σ²/care².

    Attributes
    ----------
    ids : ndarray of shape (n_judges,)
        In order of first appearance.
    n_answers : ndarray of int of shape (n_judges,)
    care : ndarray of shape (n_judges,)
        Posterior means.
    noise_variance : ndarray of shape (n_judges,)
        Of the judge's noise on the utility of each item: σ²/care²; infinite for one without care.
    order_effect : ndarray of shape (n_judges,) or None
        What a judge adds, beside the common order effect and in units of the common noise, to what
        is shown first; None unless asked for (``judge_order_variance``).
    probability_random, probability_contrary : ndarray of shape (n_judges,)
        That the judge looks at nothing; that care is negative.
    law : Law
        How care is spread among judges.

    Notes
    -----
    Intervals are central and of the posterior given the kernel's hyperparameters. Those of care
    are relative to the common level; those of the noise also hold that this level itself is known
    from the answers alone.

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
    >>> [str(name) for name in model.judges_.ids[model.judges_.care > 0.5]]
    ['ann']
    """

    respondents: Respondents
    n_answers: NDArray[np.intp]
    law: Law
    marginals: Marginals
    order: Marginals | None
    common_noise: float
    order_variance: float = 0.0
    level_deviation: float = 0.0

    def __len__(self) -> int:
        return len(self.respondents)

    @property
    def ids(self) -> NDArray[Any]:
        """Ids in order of first appearance."""
        return self.respondents.names

    @property
    def care(self) -> Array:
        """Posterior means."""
        return self.marginals.mean

    @property
    def noise_variance(self) -> Array:
        """Variance of the noise on the utility of each item."""
        with np.errstate(divide="ignore"):
            return self.common_noise / self.care**2

    @property
    def order_effect(self) -> Array | None:
        """Posterior means of own order effects."""
        return None if self.order is None else self.order.mean

    @property
    def probability_random(self) -> Array:
        """That a judge looks at nothing."""
        return self.marginals.weights[:, -1]

    @property
    def probability_contrary(self) -> Array:
        """That care is negative."""
        return self.marginals.cdf(0.0, below=True)

    def care_interval(self, level: float = 0.95) -> Array:
        """Central intervals of care, shape (n_judges, 2)."""
        return self._interval(self.marginals.quantile, level)

    def order_effect_interval(self, level: float = 0.95) -> Array:
        """Central intervals of own order effects, shape (n_judges, 2)."""
        if self.order is None:
            raise ValueError(
                "Order effects of judges' own were not asked for: set judge_order_variance, such "
                "as judge_order_variance=0.01, and fit."
            )
        return self._interval(self.order.quantile, level)

    def noise_interval(self, level: float = 0.95) -> Array:
        """Central intervals of the noise variance, shape (n_judges, 2); infinite: no care."""
        return self._interval(self._noise_quantile, level)

    def _interval(self, quantile: Callable[[float], Array], level: float) -> Array:
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie in (0, 1), got {level}.")
        return np.stack([quantile(0.5 - 0.5 * level), quantile(0.5 + 0.5 * level)], axis=1)

    def _noise_quantile(self, level):
        n = len(self)
        low, high = np.full(n, -_WIDEST), np.full(n, _WIDEST)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            under = self._noise_cdf(middle) < level
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        with np.errstate(over="ignore"):
            found = self.common_noise * np.exp(high)
        return np.where(high >= _WIDEST - 1e-6, np.inf, found)

    def _noise_cdf(self, log_ratio):
        """P(log noise over the common level ≤ this), shape (n_judges,)."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        if not self.level_deviation:
            nodes, weights = np.zeros(1), np.ones(1)
        total = np.zeros(len(self))
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            least = np.exp(-0.5 * log_ratio - node * self.level_deviation)  # of |care|
            total += weight * (
                1.0 - self.marginals.cdf(least, below=True) + self.marginals.cdf(-least)
            )
        return total

    def to_frame(self, level: float = 0.95) -> Any:
        """A pandas DataFrame, a row a judge, the most careful first.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.
        """
        import pandas as pd

        care, noise = self.care_interval(level), self.noise_interval(level)
        columns: dict[str, Any] = {
            "n_answers": self.n_answers,
            "care": self.care,
            "care_low": care[:, 0],
            "care_high": care[:, 1],
            "noise_variance": self.noise_variance,
            "noise_low": noise[:, 0],
            "noise_high": noise[:, 1],
            "probability_random": self.probability_random,
            "probability_contrary": self.probability_contrary,
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
        return frame.iloc[np.argsort(-self.care, kind="stable")]

    def __repr__(self) -> str:
        order = np.argsort(-self.care, kind="stable")
        interval = self.care_interval()
        lines = [f"Judges: {len(self)}, care with 95 % intervals (1: the common level)"]
        shown = order
        if len(order) > 2 * _SHOWN:
            shown = np.concatenate([order[:_SHOWN], order[-_SHOWN:]])
        names = [str(name) for name in self.ids[shown]]
        width = max((len(name) for name in names), default=0)
        for name, k in zip(names, shown, strict=True):
            # 0 without a sign
            care, low, high = np.round([self.care[k], *interval[k]], 2) + 0.0
            lines.append(
                f"  {name:<{width}}  {care:6.2f}  [{low:6.2f}, {high:6.2f}]  "
                f"{self.n_answers[k]} answers"
            )
        if len(shown) < len(order):
            lines.insert(1 + _SHOWN, f"  … {len(order) - len(shown)} more")
        return "\n".join(lines)
