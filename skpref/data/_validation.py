"""Checked data: X, y and qid become duels, items or pairs of items."""

import copy
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d

from skpref._utils import warn
from skpref.data._builders import rated_pairs
from skpref.data._comparisons import TIE, Comparisons
from skpref.data._containers import is_frame, unmasked
from skpref.data._items import ItemTable, distinct_rows, float_rows
from skpref.data._labels import check_order, check_outcomes, check_ranks, check_real, refuse_order
from skpref.data._read import (
    Parsed,
    Schema,
    check_dimensions,
    check_known,
    check_names,
    check_positions,
    check_width,
    named_rows,
    parse,
    read_features,
    schema_from,
    schema_of,
    table_features,
    validated,
)
from skpref.data._respondents import (
    Respondents,
    check_groups,
    check_judges,
    check_weights,
    pair_weights,
)
from skpref.data._sets import used_rows


class TakesAnswers(Protocol):
    """What a likelihood says of the answers that it takes."""

    @property
    def kinds(self) -> frozenset[int]:
        """Kinds of row that it takes."""

    @property
    def uses_order(self) -> bool:
        """Whether it matters who was shown first."""


class Training(NamedTuple):
    """What `fit` was given.

    Attributes
    ----------
    comparisons : Comparisons
    classes : ndarray or None
        Labels of (second won, first won), with ties between them; of sets their positions; None
        for rated items.
    schema : Schema
        For `remember`, once the fit has succeeded.
    winner : ndarray of int of shape (n_answers,) or None
        Of pairs of rated items the row of X that won.
    judges : Respondents or None
        Who gave the answers, if that was told.
    """

    comparisons: Comparisons
    classes: np.ndarray | None
    schema: Schema
    winner: np.ndarray | None = None
    judges: Respondents | None = None


# -- training ------------------------------------------------------------------------------


def check_training(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    qid: Any,
    table: ItemTable | None,
    sample_weight: Any = None,
    order: Any = None,
    likelihood: TakesAnswers | None = None,
    before: Schema | None = None,
    within: np.ndarray | None = None,
    judges: Any = None,
) -> Training:
    """Validate the arguments of ``fit``; the estimator is left as it is.

    Parameters
    ----------
    estimator : BaseEstimator
    X, y, qid : array-like
    table : ItemTable or None
    sample_weight, order : array-like, optional
    likelihood : Likelihood, optional
        Whether it takes ties, and asks who was shown first; by default neither.
    before : Schema, optional
        Of answers that these are to follow.
    within : ndarray of int of shape (n,), optional
        Beside ``qid`` what rated items must have in common to be compared.
    judges : array-like, optional
        Who gave each.

    Returns
    -------
    Training
    """
    parsed = check_X(X, table)
    told = None
    if judges is not None:
        n, k = (0, None) if parsed.pairs is None else parsed.pairs.shape
        told = check_judges(judges, n, k)
    if parsed.kind == "items" and parsed.pairs is None:
        if table is not None:
            _refuse_items(parsed.rows)
        if order is not None:
            refuse_order()
        return _rated(estimator, parsed, y, qid, sample_weight, before, within)
    if qid is not None:
        raise ValueError(
            "qid belongs to items with ratings, whose features are a 2-D X; duels take none, nor "
            "do positions in a table. Ratings of such items become duels by from_ratings."
        )
    if table is not None and parsed.kind != "items":
        if parsed.kind == "positions" and is_frame(estimator.items):
            _warn_labels(table)
        rows, schema = table.X, schema_of(estimator, table)
        shown = _looked_up(parsed, table)
        who = np.arange(len(table))
    else:
        known = before
        if known is None and table is not None:
            known = schema_of(estimator, table)
        rows, places, schema = read_features(estimator, parsed, known, further=before is not None)
        check_known(rows, table)
        shown = np.asarray(places)
        who = np.arange(len(rows)) if schema.id_column is None else rows[:, schema.id_column]
    n, k = shown.shape
    _refuse_mirrors(who, shown)
    weight = check_weights(sample_weight, n)
    order = check_order(order, n, k)
    ties = likelihood is not None and TIE in likelihood.kinds
    if k == 2:
        said = check_outcomes(y, n, ties, known=before is not None)
        given_by = None if told is None else told.rows
        ends = shown[:, 0], shown[:, 1]
        comparisons = Comparisons.from_duels(
            rows, *ends, said.won, weight, given_by, tie=said.tie, order=order
        )
        classes = said.classes
    else:
        ranks = check_ranks(y, shown >= 0)
        comparisons = Comparisons.from_ranks(rows, shown, ranks.rank, weight, order=order)
        classes = np.arange(k)
    own_order = (
        told is not None and getattr(estimator.judge_prior, "order_variance", None) is not None
    )
    if own_order or (likelihood is not None and likelihood.uses_order):
        comparisons = replace(comparisons, ordered=True)
    return Training(comparisons, classes, schema, judges=told)


def as_before(
    estimator: BaseEstimator,
    training: Training,
    table: ItemTable | None,
    likelihood: TakesAnswers,
) -> Training:
    """Further answers, with the labels of those fitted before.

    Parameters
    ----------
    estimator : BaseEstimator
    training : Training
    table : ItemTable or None
        Of these answers.
    likelihood : Likelihood
        What the parameters of the estimator come to now.

    Raises
    ------
    ValueError
        If they are not of the same form, or to be understood in another way.
    """
    fitted = estimator.likelihood_
    if (TIE in likelihood.kinds) != (TIE in fitted.kinds):
        raise ValueError(
            f"The answers so far were learned {'with' if TIE in fitted.kinds else 'without'} ties, "
            f"which {likelihood!r} does not go with. Set tie_threshold (or likelihood) as it was, "
            "or fit anew."
        )
    if likelihood.uses_order and not fitted.uses_order:
        raise ValueError(
            "The answers so far were counted without regard to who was shown first, so that "
            f"{likelihood!r} cannot learn an order effect from them. Set order_effect and its "
            "bounds as they were, or fit anew."
        )
    _refuse_other_names(estimator.items_, table)
    check_width(estimator, training.schema.n_features, estimator.n_features_in_)
    check_names(training.schema.feature_names, estimator._schema.feature_names)
    before = getattr(estimator, "classes_", None)
    if (before is None) != (training.classes is None):
        kinds = "rated items", "duels"
        raise ValueError(
            f"{kinds[before is None].capitalize()} came after {kinds[before is not None]}. Make "
            "duels of all ratings (from_ratings), or fit anew."
        )
    return training._replace(classes=before)  # a piece may hold one label alone


def _refuse_other_names(before, table):
    """Raise if positions in a table that has names alone stand for other items than before."""
    if before is None or table is None or (before.has_features and table.has_features):
        return
    if before.has_features or table.has_features:
        raise ValueError(
            "items= had names alone, or features alone, and now has not. Give a table of the kind "
            "that the stream began with, or fit anew."
        )
    n = len(before)
    if len(table) < n or table.names[:n].tolist() != before.names.tolist():
        raise ValueError(
            f"The {len(table)} names of items= do not begin with the {n} that the answers so far "
            "came with, so that positions would stand for other items. Give the same table, or one "
            "with further names at its end: ItemTable.from_names([*old.names, *new_names])."
        )


def check_X(X: Any, table: ItemTable | None) -> Parsed:
    """X as items, duels or sets of numbers; see `parse`."""
    parsed = parse(X, table=table)
    rows = parsed.rows
    if is_frame(rows) or hasattr(rows, "tocsr"):
        return parsed
    check_real(rows, "X")
    if rows.dtype.kind in "mMV":
        raise ValueError(
            f"X must be numeric, got dtype {rows.dtype}. Turn it into numbers first (times, for "
            "instance, into days since a date)."
        )
    if parsed.kind == "texts":  # without a table that has names they name nothing
        parsed = Parsed("items", unmasked(np.asarray(X)))
    if parsed.kind == "items" and parsed.pairs is None:
        check_dimensions(parsed.rows, table)
    return parsed


def _looked_up(parsed: Parsed, table: ItemTable) -> np.ndarray:
    """Positions of the pairs of items that train."""
    if parsed.pairs is None:
        raise ValueError(
            "Integer X with items= must have shape (n_duels, 2), pairs of positions in the table "
            "(or of names, if it has any), or (n, k), sets of them; got shape "
            f"{parsed.rows.shape}. Ratings of items in a table become duels by from_ratings."
        )
    if parsed.kind == "names":
        places = table.index(parsed.rows)
    else:
        places = check_positions(parsed.rows, len(table))
    return np.where(parsed.pairs < 0, -1, places[parsed.pairs])


def _warn_labels(table: ItemTable) -> None:
    """Warn where positions in a frame could be meant as labels of its index."""
    labels = [] if table.names is None else table.names.tolist()
    whole = all(isinstance(label, int) and not isinstance(label, bool) for label in labels)
    if whole and labels != list(range(len(labels))):
        warn(
            f"Integer pairs are positions in items=, counted from 0, but the index of that frame "
            f"holds other integers, such as {labels[:3]}. If the pairs are labels of that index, "
            "build the duels by from_pairs(items, pairs); if they are positions, pass "
            "items.reset_index(drop=True)."
        )


def _refuse_items(X: Any) -> None:
    frame = is_frame(X)
    kind = "a DataFrame" if frame else f"a 2-D array of dtype {X.dtype}"
    as_array = "X.to_numpy()" if frame else "X"
    raise ValueError(
        f"With items= given, X must hold integer pairs of shape (n_duels, 2) or duel arrays of "
        f"shape (n_duels, 2, n_features), but {kind} of shape {X.shape} came. If its values are "
        f"positions in the table, pass {as_array}.astype(int); if they are names of items, pass "
        f"items.index({as_array}) with items= an ItemTable that has names; if its rows are items "
        "with ratings, leave items= out."
    )


def _refuse_mirrors(who: np.ndarray, shown: np.ndarray) -> None:
    """Whether an item meets itself, by what says who it is: its position, name or id.

    Items of equal features need not be one item, so such duels pass: the model takes nothing
    from them.
    """
    if shown.shape[1] == 2:
        mirrors = who[shown[:, 0]] == who[shown[:, 1]]
    else:
        met = np.unique(who, return_inverse=True)[1].reshape(-1)[shown]
        pads = -1 - np.arange(shown.shape[1])  # which are not one item
        met = np.sort(np.where(shown < 0, pads, met), axis=1)
        mirrors = (met[:, 1:] == met[:, :-1]).any(axis=1)
    if mirrors.any():
        more = f" ({mirrors.sum()} rows do)" if mirrors.sum() > 1 else ""
        raise ValueError(
            f"Row {mirrors.argmax()} of X sets an item against itself{more}. Such an answer says "
            "nothing; drop these rows of X and y."
        )


def _rated(
    estimator: BaseEstimator,
    parsed: Parsed,
    y: Any,
    qid: Any,
    sample_weight: Any,
    before: Schema | None = None,
    within: np.ndarray | None = None,
) -> Training:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            f"is None. X of shape {parsed.rows.shape} reads as items, whose ratings y gives. Only "
            "duels do without y: arrays of shape (n_duels, 2, n_features), pairs of names, or "
            "pairs of positions together with the constructor's items=."
        )
    check_real(y, "y")
    y = unmasked(y)
    if getattr(estimator, "id_column", None) is None:
        probe = copy.copy(estimator)
        X, y = validated(probe, parsed.rows, y, y_numeric=True)
        schema = schema_from(probe)
    else:
        further = before is not None
        X, _, schema = read_features(estimator, parsed, before, plain=False, further=further)
        y = column_or_1d(y, warn=True)
    qid = None if qid is None else check_groups(qid, len(X))
    group = joint_groups(qid, within)
    if len(X) == 1:
        raise ValueError(
            "X and y make no duel: there is 1 sample, and a duel needs two items whose ratings "
            "differ. If X holds duels, its shape is (n_duels, 2, n_features)."
        )
    if qid is None and _two_labels(y):
        warn(
            f"X of shape {X.shape} reads as rated items, of which each with the larger of the two "
            "labels in y beats each with the smaller. If its rows are differences of the two "
            "sides of duels, pass the duels instead: fit(np.stack([first, second], axis=1), y). "
            "If they are items of two grades, qid=np.zeros(len(y)) says so."
        )
    winner, loser = rated_pairs(y, group, tiebreak=distinct_rows(X)[1])
    weight = pair_weights(sample_weight, len(X), winner, loser)
    won = np.ones(len(winner), dtype=bool)
    neither = np.zeros(len(winner), dtype=np.int8)  # was shown first
    comparisons = Comparisons.from_duels(X, winner, loser, won, weight, order=neither)
    return Training(comparisons, None, schema, winner if weight is None else winner[weight > 0.0])


def joint_groups(qid: Any, within: np.ndarray | None) -> Any:
    """Groups of rated items that have both labels in common; either may be None."""
    if qid is None or within is None:
        return within if qid is None else qid
    pairs = np.column_stack([within, check_groups(qid, len(within))])
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)


def _two_labels(y: np.ndarray) -> bool:
    labels = set(np.unique(y).tolist())
    return labels in ({0, 1}, {-1, 1})


class Query(NamedTuple):
    """Items, pairs of items or sets to predict.

    Attributes
    ----------
    first : ndarray of shape (n, n_features)
        Items, those on the first side of duels, or all those of sets.
    second : ndarray of shape (n, n_features) or None
        The second side of duels.
    sets : ndarray of int of shape (n_sets, k) or None
        Rows of ``first``, -1 where a set has fewer items.
    """

    first: np.ndarray
    second: np.ndarray | None = None
    sets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.first if self.sets is None else self.sets)


def check_query(estimator: BaseEstimator, X: Any, table: ItemTable | None) -> Query:
    """Validate the argument of ``predict``: items or duels, by shape and dtype.

    Returns
    -------
    Query
    """
    schema = estimator._schema
    if isinstance(X, ItemTable):
        return Query(_table_items(X, table, schema))
    parsed = check_X(X, table)
    if table is not None and parsed.kind != "items":
        return _referred(parsed, table)
    rows, pairs = read_features(estimator, parsed, schema)[:2]
    check_known(rows, table)
    if pairs is None:
        return Query(rows)
    if pairs.shape[1] > 2:
        return Query(rows, sets=pairs)
    if not is_frame(parsed.rows):  # the sides of a duel array alternate
        return Query(np.ascontiguousarray(rows[::2]), np.ascontiguousarray(rows[1::2]))
    return Query(rows[pairs[:, 0]], rows[pairs[:, 1]])


def _referred(parsed: Parsed, table: ItemTable) -> Query:
    """Items that X names, or gives by position."""
    if parsed.kind == "positions":
        rows, places = table.X, check_positions(parsed.rows, len(table))
    else:
        rows, places = named_rows(parsed.rows, table), np.arange(len(parsed.rows))
    if parsed.pairs is None:
        return Query(float_rows(rows, places))
    if parsed.pairs.shape[1] > 2:
        used, sets = used_rows(np.where(parsed.pairs < 0, -1, places[parsed.pairs]))
        return Query(float_rows(rows, used), sets=sets)
    return Query(float_rows(rows, places[::2]), float_rows(rows, places[1::2]))


def _table_items(asked: ItemTable, table: ItemTable | None, schema: Schema) -> np.ndarray:
    """Items of a table that is asked about, which need not be the fitted one."""
    fitted_on_features = table is None or table.has_features
    if asked.has_features != fitted_on_features:
        raise ValueError(
            "The model was fitted on items "
            + ("with features, this ItemTable has none." if fitted_on_features else "without.")
            + " Pass a table of the same kind, or positions in the fitted one."
        )
    if table is None or asked.has_features:
        return table_features(asked, schema)
    return named_rows(asked.names, table)
