"""Monotone utilities: virtual duels by which more of a feature is better, or worse.

A utility that rises with a feature wins, at more of it, every duel against itself at less. Of these
duels a few are taken for answers, with little noise, where the posterior is likely to break
them (Riihimäki and Vehtari, "Gaussian processes with monotonicity information", AISTATS 2010, who
take signs of derivatives in their place).
"""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import NEGLIGIBLE, Array, floor_variance
from skpref.data import DUEL, Comparisons
from skpref.gp import Posterior
from skpref.inference import EP, Engine, State
from skpref.kernels import Intransitive, features_part, has_kernel, kernel_values, seen_columns
from skpref.likelihoods import Answers, JudgeReliability, Likelihood

# Noise of the answers over that of a virtual duel, in deviations: what a utility may fall by is
# lost in what people err by. Expectation propagation errs twice as much where it is 100.
_STEEPNESS = 10.0
# Probability of falling, where the utility is to rise, from which on a virtual duel is placed.
_TOLERATED = 0.1
# Pairs looked at together; duels placed before the posterior is found again; and in all, as each
# takes the time of an answer.
_N_PAIRS, _N_AT_ONCE, _MOST = 200, 16, 100


class Monotone(NamedTuple):
    """Features with which a utility rises or falls, and the virtual duels that say so.

    Attributes
    ----------
    names : tuple of str or int
        What the user calls the columns.
    columns : ndarray of int of shape (n_columns,)
    signs : ndarray of shape (n_columns,)
        1 where more is better, −1 where less is.
    anchors : ndarray of shape (n, n_features)
        Rows of items near which the utility is looked at.
    better, worse : ndarray of shape (m, n_features)
        Winners and losers of the virtual duels.
    """

    names: tuple[str | int, ...]
    columns: NDArray[np.intp]
    signs: Array
    anchors: Array
    better: Array
    worse: Array

    def append_virtual_duels(self, comparisons: Comparisons) -> Comparisons:
        """Return answers followed by the virtual duels."""
        return comparisons.with_duels(self.better, self.worse)

    def with_steep_virtual_duels(self, likelihood: Likelihood) -> Likelihood:
        """Return the likelihood of `joined` answers: virtual duels are those of a careful judge."""
        return JudgeReliability(likelihood, np.array([1.0, _STEEPNESS]))

    def add_virtual_duels(self, posterior: Posterior, likelihood: Likelihood) -> Self:
        """Add virtual duels where the posterior is likely to fall; return itself if nowhere.

        Each that is chosen moves the others by its tilted moments, so that no two say the same.
        """
        better, worse, _ = self._draw_pairs(len(self.better))
        mean, covariance = posterior.margin(better, worse)[0], posterior.margin_cov(better, worse)
        answer = Answers(np.array([DUEL], dtype=np.int8), np.zeros(1, dtype=np.int8), np.array([1]))
        steep, chosen = self.with_steep_virtual_duels(likelihood), list[int]()
        while len(chosen) < min(_N_AT_ONCE, _MOST - len(self.better)):
            variance = floor_variance(np.diagonal(covariance), 0.0)
            deviation = np.sqrt(np.where(variance > 0.0, variance, 1.0))
            falls = np.where(variance > 0.0, ndtr(-mean / deviation), 0.0)
            at = int(np.argmax(falls))
            if falls[at] <= _TOLERATED:
                break
            chosen.append(at)
            moments = steep.tilted(mean[[at]], variance[[at]], answer)
            gain = covariance[:, at].copy()
            mean = mean + moments.gradient * gain
            covariance = covariance - moments.curvature * np.outer(gain, gain)
        return self._replace(
            better=np.concatenate([self.better, better[chosen]]),
            worse=np.concatenate([self.worse, worse[chosen]]),
        )

    def violation_shares(self, posterior: Posterior) -> dict[str | int, float]:
        """Return, by column, the share of fresh pairs whose mean utilities are the wrong way."""
        better, worse, column = self._draw_pairs(_MOST + 1)
        falls = posterior.margin(better, worse)[0] < 0.0
        return {
            name: float(np.mean(falls[column == k])) if np.any(column == k) else 0.0
            for k, name in enumerate(self.names)
        }

    def _draw_pairs(self, seed):
        """Draw pairs that differ in one column; return the better rows, the worse, and the
        columns."""
        rng = np.random.default_rng(seed)
        column = np.arange(_N_PAIRS) % len(self.columns)
        base, *others = self.anchors[rng.integers(len(self.anchors), size=(3, _N_PAIRS))]
        at, signs = (np.arange(_N_PAIRS), self.columns[column]), self.signs[column]
        values = signs * np.array([each[at] for each in others])
        better, worse = base.copy(), base.copy()
        better[at], worse[at] = signs * values.max(axis=0), signs * values.min(axis=0)
        differ = values[0] != values[1]
        return better[differ], worse[differ], column[differ]


def pad_state(state: State | None, n: int) -> State | None:
    """Return an engine's state for n rows, with NaN for the rows at the end that it lacks."""
    if state is None:
        return None
    padded_state = {}
    for name, part in state.items():
        missing = np.full((*part.shape[:-1], max(0, n - part.shape[-1])), np.nan)
        padded_state[name] = np.concatenate([part, missing], axis=-1)
    return padded_state


def check_monotone(
    monotone: Any,
    names: Sequence[str] | NDArray[Any] | None,
    anchors: Array,
    columns: Sequence[int | None] | None = None,
) -> Monotone:
    """Return ``monotone=``, checked, without virtual duels so far.

    Parameters
    ----------
    monotone : dict
        1 or -1 by the name or the position of a feature.
    names : sequence of str or None
        Of the features; None: they are known by their positions.
    anchors : ndarray of shape (n, n_columns)
        Rows of items.
    columns : sequence of int or None, optional
        Column of each feature, None of one that has no order. By default they follow each other.

    Raises
    ------
    ValueError, TypeError
        If it is not of this form, or a column is constant.
    """
    is_mapping = isinstance(monotone, Mapping)
    if not is_mapping or not monotone:
        raise (ValueError if is_mapping else TypeError)(
            f"got monotone={monotone!r}; a dict with 1 (more is better) or -1 (less is better) for "
            'at least one column is allowed. Give one, such as {"price": -1}, or None.'
        )
    columns = range(anchors.shape[1]) if columns is None else columns
    features: list[Any] = list(range(len(columns)) if names is None else names)
    for name, sign in monotone.items():
        fault = _describe_fault(name, sign, features, columns, anchors)
        if fault:
            raise ValueError(
                f"got monotone={monotone!r}, {fault}. Change it, or leave {name!r} out."
            )
    places = [features.index(name) for name in monotone]
    signs, none = np.array([*monotone.values()], dtype=float), np.zeros((0, anchors.shape[1]))
    chosen = np.array([columns[place] for place in places], dtype=np.intp)
    return Monotone(tuple(features[place] for place in places), chosen, signs, anchors, none, none)


def _describe_fault(name, sign, features, columns, anchors):
    """Return what is wrong with an entry of ``monotone=``; empty if nothing is."""
    if name not in features or isinstance(name, bool):
        return f"whose column {name!r} is not there; {', '.join(map(repr, features))} are allowed"
    column = columns[features.index(name)]
    if not isinstance(sign, Real) or isinstance(sign, bool) or sign not in (1, -1):
        return f"{sign!r} for {name!r}; 1 (more is better) and -1 (less is better) are allowed"
    if column is None:
        return f"whose {name!r} is an id or a category, without order; numbers are allowed"
    if np.ptp(anchors[:, column]) == 0.0:
        return f"whose column {name!r} is constant; one that varies among items is allowed"
    return ""


def check_monotone_model(
    monotone: Monotone, engine: Engine, kernel: Kernel, likelihood: Likelihood | None = None
) -> None:
    """Raise ValueError unless these can learn a monotone utility from pairs; None: a probit."""
    rule, names = engine.prior_rule, list(monotone.names)
    if not (likelihood is None or likelihood.log_concave):
        raise ValueError(
            f"got monotone= of {names} with {type(likelihood).__name__}, by which virtual duels "
            "would be random too; log-concave likelihoods are allowed. Leave one of the two out."
        )
    teacher = engine.evidence_engine() or EP()
    # At the mode a steep factor has next to no curvature, so that Laplace's approximation errs.
    if not rule.exact or rule.through_time or not teacher.capabilities.matches_moments:
        raise ValueError(
            f"got monotone= of {names} with {engine}; engines with exact priors and moments are "
            "allowed. Use inference='ep', 'hmc' or 'gibbs', or leave monotone= out."
        )
    better, worse, _ = monotone._draw_pairs(0)
    n_columns = better.shape[1]
    item_effect = bool(set(monotone.columns.tolist()) & set(seen_columns(kernel, n_columns)[0]))
    if not (item_effect or has_kernel(kernel, Intransitive)):
        shared = features_part(kernel, n_columns)
        variance = _margin_variance(kernel, better, worse)
        excess = variance if shared is None else variance - _margin_variance(shared, better, worse)
        item_effect = bool(np.any(excess > NEGLIGIBLE * kernel.diag(better)))
    if item_effect or has_kernel(kernel, Intransitive):
        raise ValueError(
            f"got monotone= of {names} with the kernel {kernel}, in which an item with more of "
            "these has an effect of its own; kernels of features, of ids and of other categories "
            "are allowed. Leave ItemEffect, WhiteKernel, Intransitive and Identity of these "
            "columns out, or monotone=."
        )


def _margin_variance(kernel, first, second):
    """Return the prior variance of the difference of aligned pairs of items."""
    shared = kernel_values(kernel, first, second, aligned=True)
    return kernel.diag(first) + kernel.diag(second) - 2.0 * shared
