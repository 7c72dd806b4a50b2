"""Search spaces of Optuna as spaces of an optimizer, and values in both."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy.stats import loguniform, rv_discrete

from skpref.optimize import MAX_STEPS


class _LogInteger(rv_discrete):
    """Integers low to high, each with the probability of [k − ½, k + ½] under a loguniform."""

    def _argcheck(self, low, high):
        return (low >= 1) & (high > low)

    def _get_support(self, low, high):
        return low, high

    def _cdf(self, x, low, high):
        return np.log((np.floor(x) + 0.5) / (low - 0.5)) / np.log((high + 0.5) / (low - 0.5))

    def _pmf(self, x, low, high):
        return np.log((x + 0.5) / (x - 0.5)) / np.log((high + 0.5) / (low - 0.5))

    def _ppf(self, q, low, high):
        integers = np.ceil((low - 0.5) * ((high + 0.5) / (low - 0.5)) ** q - 0.5)
        return np.clip(integers, low, high)


_LOG_INTEGER = _LogInteger(name="log_integer", shapes="low, high")


class _Parameter(NamedTuple):
    """A parameter of both.

    Attributes
    ----------
    distribution : BaseDistribution
    spec : object
        The entry of an optimizer's space.
    values : list or None
        Of the optimizer, where Optuna counts them.
    step : float
        Between two values of Optuna; 0: there is none.
    """

    distribution: Any
    spec: Any
    values: list | None = None
    step: float = 0.0

    @classmethod
    def from_distribution(cls, distribution: BaseDistribution) -> "_Parameter":
        """Return the parameter of a distribution; ValueError for kinds that a study cannot have."""
        if isinstance(distribution, CategoricalDistribution):
            values = _distinct_choices(distribution.choices)
            return cls(distribution, values, values)
        if not isinstance(distribution, FloatDistribution | IntDistribution):
            raise ValueError(
                f"{distribution!r} is none of the distributions that a preferential study can "
                "have: suggest_float, suggest_int or suggest_categorical."
            )
        low, high = distribution.low, distribution.high
        step = float(distribution.step or 0.0)
        if distribution.log:
            counts = isinstance(distribution, IntDistribution) and high - low < MAX_STEPS
            spec = _LOG_INTEGER(low, high) if counts else loguniform(low, high)
            return cls(distribution, spec, step=step)
        n = round((high - low) / step) + 1 if step else 0
        if not 0 < n <= MAX_STEPS:  # the steps are left to rounding
            return cls(distribution, (float(low), float(high)), step=step)
        made = cls(distribution, None, step=step)
        return made._replace(spec=[made._nearest_value(low + k * step) for k in range(n)])

    def to_optimizer(self, value: Any) -> Any:
        """Return the optimizer's value for a value of Optuna."""
        if self.values is not None:
            return self.values[int(self.distribution.to_internal_repr(value))]
        return self._nearest_value(value)

    def to_optuna(self, value: Any) -> Any:
        """Return Optuna's value for a value of the optimizer."""
        if self.values is not None:
            return self.distribution.to_external_repr(self.values.index(value))
        return self._nearest_value(value)

    def _nearest_value(self, value):
        """Return the value of the distribution that is nearest to one in or beyond its range."""
        low, high = self.distribution.low, self.distribution.high
        value = min(max(value, low), high)
        if self.step:
            value = min(low + round((value - low) / self.step) * self.step, high)
        return int(value) if isinstance(self.distribution, IntDistribution) else float(value)


class StudySpace:
    """The search space of a study, and that of an optimizer for it.

    Parameters
    ----------
    distributions : dict of str to BaseDistribution
        Those of more than one value.

    Attributes
    ----------
    space : dict
        As `PreferenceOptimizer` takes it. Choices that are increasing numbers are ordered.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]):
        self._parameters = {
            name: _Parameter.from_distribution(each) for name, each in distributions.items()
        }
        self.space = {name: each.spec for name, each in self._parameters.items()}

    def to_item(self, params: Mapping[str, Any]) -> dict:
        """Return the optimizer's item for the parameters of a trial, which may have more."""
        return {name: each.to_optimizer(params[name]) for name, each in self._parameters.items()}

    def to_params(self, item: Mapping[str, Any]) -> dict:
        """Return the parameters of a trial for an item of the optimizer."""
        return {name: each.to_optuna(item[name]) for name, each in self._parameters.items()}


def _distinct_choices(choices):
    """Return choices that can be told apart: themselves, or texts where some are equal or NaN."""
    same = any(a == b for k, a in enumerate(choices) for b in choices[:k])
    if same or any(each != each for each in choices):
        return [f"{k}: {each!r}" for k, each in enumerate(choices)]
    return list(choices)
