"""What single features are worth, and the model of what all of them explain."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from skpref._utils import PrintableBunch, RandomLike, check_number, given_metadata, make_generator
from skpref.data import (
    ParsedX,
    column_at,
    column_names,
    group_rows,
    is_frame,
    read,
    shallow_copy,
    stack_sets,
    take_rows,
)
from skpref.fitting import estimator_of, explained_estimator, feature_utility_posterior
from skpref.gp import Posterior, PosteriorMixture
from skpref.metrics import with_metadata


def permutation_importance(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    scoring: str | Callable | None = None,
    n_repeats: int = 5,
    random_state: RandomLike = 0,
    **metadata: Any,
) -> Bunch:
    """Return what the score loses once items have exchanged each feature.

    The distinct items of X exchange their values of one feature at random, so that an item has one
    value wherever it is shown, on either side of a duel. `sklearn.inspection` has a function of
    this name for two dimensions, where the two sides of a duel are different features.

    Parameters
    ----------
    model : fitted estimator, pipeline or search
    X, y : array-like
        Answers as the model's ``score`` takes them, best ones that it has not seen: duels, sets or
        rated items with features; positions or names where its ``items=`` have features.
    scoring : str or callable, default=None
        A name such as "neg_log_loss", or a scorer, which is told the metadata as by
        `skpref.metrics.with_metadata`. None: the model's ``score``.
    n_repeats : int, default=5
        How often each feature is exchanged.
    random_state : int, RandomState instance, Generator or None, default=0
    **metadata : array-like of shape (n,)
        What the answers carry, as `fit` and ``score`` take it: ``judges=``, ``order=``,
        ``sample_weight=`` and others. What `fit` got has to be here. ``offset=`` stays with its
        answer while features are exchanged.

    Returns
    -------
    importance : Bunch
        importances_mean, importances_std : ndarray of shape (n_features,)
        importances : ndarray of shape (n_features, n_repeats)
            Score of X less that after the exchange.
        feature_names : ndarray of shape (n_features,) or None

    Raises
    ------
    ValueError
        If X has no features, or `fit` was told what is not told here.

    Notes
    -----
    The result depends neither on the order of the answers nor on which item of a duel stands first.
    Features that are alike share their importance, and each may then seem to have none. What both
    items of a duel have in common (its topic, say) differs between them after the exchange.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import permutation_importance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 2, 2))
    >>> y = X[:, 0, 0] > X[:, 1, 0]  # the first feature decides
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit(X, y)
    >>> found = permutation_importance(model, X, y, scoring="neg_log_loss")
    >>> bool(found.importances_mean[0] > 10.0 * abs(found.importances_mean[1]))
    True
    """
    check_number("n_repeats", n_repeats, low=1, integer=True)
    metadata = given_metadata(**metadata)
    names = tuple(metadata.keys() - {"sample_weight", "qid"})
    value = type(model).score if scoring is None else with_metadata(scoring, names)
    baseline = value(model, X, y, **metadata)
    featured = _items_with_features(model, X)
    rows, pairs, id_column = featured.rows, featured.pairs, featured.id_column
    first, inverse = group_rows(rows)
    distinct = take_rows(rows, first)
    rng = make_generator(random_state)
    losses = np.empty((distinct.shape[1], n_repeats))
    for j in range(len(losses)):
        for k in range(n_repeats):
            items = _permute_feature(distinct, j, rng.permutation(len(first)))
            shown = _items_as_shown(items, inverse, pairs, id_column)
            losses[j, k] = baseline - value(model, shown, y, **metadata)
    return PrintableBunch(
        importances_mean=losses.mean(axis=1),
        importances_std=losses.std(axis=1),
        importances=losses,
        feature_names=_feature_names(model, rows),
    )


def _items_with_features(model: Any, X: Any) -> ParsedX:
    """Return the items of X with their features, and which were shown together."""
    last = getattr(model, "best_estimator_", model)
    last = last[-1] if hasattr(last, "steps") else last
    shown = read(X, table=getattr(last, "items_", None))
    table = shown.table
    if shown.kind == "texts" or (shown.kind != "items" and not table.has_features):
        raise ValueError(
            "X has no features that items could exchange: it holds "
            f"{'texts' if shown.kind == 'texts' else 'items of a table without features'}. Pass "
            "items with features; of texts, what the transformer before the model makes of them, "
            "and the model behind it."
        )
    if shown.kind != "items":
        places = shown.rows if shown.kind == "positions" else table.index(shown.rows)
        features = table.X if table.frame is None else table.frame
        shown = ParsedX("items", take_rows(features, places), shown.pairs)
    elif hasattr(shown.rows, "tocsr"):
        shown = ParsedX("items", shown.rows.toarray())
    return shown.without_unshown()


def _permute_feature(items, feature, permutation):
    """Return distinct items with the values of one feature permuted."""
    if is_frame(items):
        column = take_rows(column_at(items, feature), permutation)
        if not hasattr(items, "iloc"):
            return items.with_columns(column)
        items = shallow_copy(items)
        items.isetitem(feature, column.array)
        return items
    items = items.copy()
    items[:, feature] = items[permutation, feature]
    return items


def _items_as_shown(items, inverse, pairs, id_column):
    """Return items row by row, or set by set, as X showed them."""
    if pairs is None:
        return take_rows(items, inverse)
    return stack_sets(items, np.where(pairs < 0, -1, inverse[pairs]), id_column)


def _feature_names(model, rows) -> NDArray[Any] | None:
    """Return the names of the features of items, or None where they have none."""
    named = column_names(rows) if is_frame(rows) else getattr(model, "feature_names_in_", None)
    return named if named is not None and len(named) == rows.shape[1] else None


def without_item_effects(model: Any) -> Any:
    """Return the model of the utility that features explain, without effects of single items.

    The default kernel gives items that meet several opponents an effect each, beside what their
    features explain. A curve along a feature then has a spike wherever it passes an item, and a
    band that stays wide between them. The returned model has neither: for partial dependence, for
    curves of one's own, for the worth of features. `skpref.plotting.UtilityDisplay` uses it.

    Parameters
    ----------
    model : estimator, pipeline, search or Posterior
        Fitted; it is left as it is.

    Returns
    -------
    model : estimator, pipeline or Posterior
        A copy whose ``posterior_`` is that of g, where the utility is g plus item effects: terms of
        the kernel that are `skpref.kernels.ItemEffect`, `skpref.kernels.Identity` on all columns or
        on that of the ids, or scikit-learn's ``WhiteKernel``. Of a search its best estimator. Where
        there are none, nothing is changed.

    Raises
    ------
    TypeError
        If the model has no posterior.
    ValueError
        If its items have effects alone, as those that have no features.

    Examples
    --------
    >>> from sklearn.inspection import partial_dependence
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.datasets import load_candy
    >>> from skpref.inspection import without_item_effects
    >>> candy = load_candy(n_duels=200)
    >>> model = without_item_effects(PairwisePreferenceRegressor().fit(candy.X, candy.y))
    >>> curve = partial_dependence(model, candy.item_table, [10])
    """
    if isinstance(model, Posterior | PosteriorMixture):
        return feature_utility_posterior(model)
    model = estimator_of(model)
    steps = list(getattr(model, "steps", []))
    if not steps:
        return explained_estimator(model)
    whole = copy.copy(model)
    whole.steps = [*steps[:-1], (steps[-1][0], explained_estimator(steps[-1][1]))]
    return whole
