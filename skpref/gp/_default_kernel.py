"""The kernel of an estimator that was given none."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from skpref._utils import ROUNDING
from skpref.data import Comparisons
from skpref.kernels import PART, PART_BOUNDS, Identity, ItemEffect, Linear, OnColumns
from skpref.likelihoods import INEQUALITY

# Bounds of the lengthscales are their start times and over this.
RANGE = 1e3
# Bounds of the variance of the item effects, the part of a utility that no feature explains.
_OWN_BOUNDS = (1e-6, 10.0)
# Variance of the effects of groups of answers, such as prompts, in units of the utility's, where
# its search starts.
_EFFECT = 0.25


def feature_spread(items: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation of every feature, 1 where it is constant; safe at any scale."""
    spread, constant = _spread_of_features(items)
    return np.where(constant, 1.0, spread)


def varying(items: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which features are not constant; all where all are."""
    mask = ~_spread_of_features(items)[1]
    return mask if mask.any() else ~mask


def _spread_of_features(items):
    """Standard deviation of every feature, and whether it is constant."""
    size = np.max(np.abs(items), axis=0, initial=0.0)
    unit = np.ldexp(0.5, np.frexp(size)[1])  # a power of two: division by it is exact
    scaled = items / unit
    spread = np.std(scaled - scaled[:1], axis=0)
    # Less than eight units of the last place is rounding.
    return spread * unit, spread * unit <= 8.0 * ROUNDING * size


def default_kernel(
    comparisons: Comparisons,
    has_features: bool = True,
    learned: bool = True,
    id_column: int | None = None,
    moving: Sequence[int] = (),
) -> Kernel:
    """RBF of unit amplitude, one lengthscale a feature; start and bounds follow the spread.

    Lengthscales start at √d standard deviations, which keeps the correlation of two random items
    the same whatever their number of features; constant ones do not count. Where hyperparameters
    are ``learned`` and items meet more than one opponent, each item also has an effect that its
    features do not explain.

    With an ``id_column`` that effect belongs to the id, and the RBF sees the other columns. Where
    hyperparameters are learned, it is the unit beside which the other columns have a linear part
    and the RBF, each with a variance of its own: with both of these 0 it is the kernel of names
    alone, to which the priors of `skpref.fitting` draw it. Where an id has several rows, and rows
    meet two others on average, each row has an effect of its own, too.

    Effects are the same at any value of the columns that are ``moving``, such as a price; rows have
    none beside such columns.
    """
    if not has_features:
        return Identity()
    if id_column is not None:
        return _kernel_with_ids(comparisons, id_column, learned, len(moving) == 0)
    items = comparisons.items
    kernel, spread = _rbf_of_features(items)
    if learned and _meets_several_opponents(comparisons.rows):
        still = [k for k in range(len(spread)) if k not in moving]
        if not still:
            return kernel
        own = ItemEffect(ItemEffect().length_scale * spread[still])
        own = own if len(still) == len(spread) else OnColumns(own, still)
        kernel = kernel + ConstantKernel(PART, _OWN_BOUNDS) * own
    return kernel


def group_effects(
    n_features: int, n_group_columns: int, id_column: int | None = None, unit: float = 1.0
) -> Kernel:
    """Make the kernel of the effects of groups of answers.

    In each group every item has an effect of its own, and in each pair within a group, where
    there is a column of these.

    Parameters
    ----------
    n_features : int
        Columns of an item; those of the groups follow.
    n_group_columns : int
        1, or 2 where the second numbers pairs within groups.
    id_column : int, optional
        Which column says who an item is; all of them by default.
    unit : float, default=1.0
        Variance of the utilities.
    """
    who = list(range(n_features)) if id_column is None else [id_column]
    low, high = PART_BOUNDS
    bounds = unit * low, unit * high
    effect_columns = [n_features]
    kernel = ConstantKernel(unit * _EFFECT, bounds) * OnColumns(Identity(), who + effect_columns)
    for column in range(n_features + 1, n_features + n_group_columns):
        effect_columns = [*effect_columns, column]
        kernel += ConstantKernel(unit * _EFFECT, bounds) * OnColumns(
            Identity(), who + effect_columns
        )
    return kernel


def _kernel_with_ids(comparisons, id_column, learned, has_row_effects):
    """Return the default kernel of rows with ids: names, and features beside them."""
    items = comparisons.items
    others = [j for j in range(items.shape[1]) if j != id_column]
    own = OnColumns(Identity(), [id_column])
    if not others:
        return own
    features = items[:, others]
    smooth, spread = _rbf_of_features(features)
    smooth = OnColumns(smooth, others)
    if not learned:
        return smooth + ConstantKernel(PART, _OWN_BOUNDS) * own
    linear = Linear(np.sqrt(np.sum(varying(features))) * spread, centre=features.mean(axis=0))
    kernel = (
        ConstantKernel(1.0, PART_BOUNDS) * own
        + ConstantKernel(PART, PART_BOUNDS) * OnColumns(linear, others)
        + ConstantKernel(PART, PART_BOUNDS) * smooth
    )
    several = len(np.unique(items[:, id_column])) < len(items)
    margins = comparisons.rows.margins
    # A row that is in one answer has an effect like noise.
    if has_row_effects and several and 2 * len(items) <= len(margins.first) + len(margins.second):
        kernel += ConstantKernel(PART, PART_BOUNDS) * OnColumns(Identity(), [id_column, *others])
    return kernel


def _rbf_of_features(items):
    """RBF over all features, and their spread."""
    spread = feature_spread(items)
    centre = np.sqrt(np.sum(varying(items))) * spread
    with np.errstate(over="ignore"):
        bounds = np.stack([centre / RANGE, centre * RANGE], axis=1)
    if not np.all(np.isfinite(bounds)):
        raise ValueError(
            f"Features spread over up to {centre.max():.1e}, too near the largest number of double "
            "precision. Rescale them (for instance Itemwise(StandardScaler()))."
        )
    return RBF(length_scale=centre, length_scale_bounds=bounds), spread


def _meets_several_opponents(rows):
    """Say whether some item meets different opponents, an answer about a set counting as one."""
    margins = rows.margins
    apart = np.flatnonzero(margins.first[: margins.n_shared] != margins.second[: margins.n_shared])
    met = np.concatenate([margins.first[apart], margins.second[apart]])
    if rows.joint:
        part = rows.kind == INEQUALITY
        ends = np.concatenate([rows.first[part], rows.second[part]])
        shown = np.column_stack([np.tile(rows.answer[part], 2), ends])
        met = np.concatenate([met, np.unique(shown, axis=0)[:, 1]])
    return len(np.unique(met)) < len(met)
