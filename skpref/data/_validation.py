"""The arguments of `fit`: X, y and metadata become comparisons."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d

from skpref._utils import Array, warn
from skpref.data._builders import check_finite_ratings, rated_pairs
from skpref.data._comparisons import Comparisons
from skpref.data._containers import fill_masked, holds_words, is_frame, refuse_rows
from skpref.data._items import ItemTable, distinct_rows
from skpref.data._kinds import PLAIN, TIE, DuelScale
from skpref.data._labels import check_outcomes
from skpref.data._metadata import (
    UNMENTIONED,
    AnswerMetadata,
    check_largest_weight,
    check_some_weight,
    refuse_together,
)
from skpref.data._prompts import prompt_columns
from skpref.data._ranks import check_ranks, check_real
from skpref.data._read import (
    ParsedX,
    Reader,
    check_items,
    check_known_positions,
    check_names_continue,
    check_same_columns,
    check_X,
    read_features,
    validate_features,
)
from skpref.data._respondents import Respondents
from skpref.data._time import AnswerTimes, TimeAxis, rows_by_order, rows_of_answers


class Training(NamedTuple):
    """The checked arguments of `fit`.

    Attributes
    ----------
    comparisons : Comparisons
    classes : ndarray or None
        Labels of (second won, first won), with ties between them; of sets their positions; None
        for rated items.
    reader : Reader
        Of the items, to be kept once the fit has succeeded.
    judges, users : Respondents or None
        Who gave the answers, if that is known.
    user : ndarray of int of shape (n_answers,) or None
        Code of the user of each of the comparisons' answers.
    """

    comparisons: Comparisons
    classes: np.ndarray | None
    reader: Reader
    judges: Respondents | None = None
    users: Respondents | None = None
    user: NDArray[np.intp] | None = None


# -- training ------------------------------------------------------------------------------


def check_training(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    keywords: Mapping[str, Any] | None = None,
    likelihood: Any = None,
    earlier: Reader | None = None,
    pooled: bool = False,
) -> Training:
    """Return what to fit, of the checked arguments of ``fit``; the estimator stays as it is.

    Parameters
    ----------
    estimator : BaseEstimator
    X, y : array-like
    keywords : mapping of str, optional
        What stands beside them, see `AnswerMetadata.read`.
    likelihood : Likelihood, optional
        Whether it takes ties, and asks who was shown first; by default neither.
    earlier : Reader, optional
        Of answers that these are to follow.
    pooled : bool, default=False
        Whether rated items of different users are compared.

    Returns
    -------
    Training
        With times the rows of the items have them as their last column.
    """
    keywords = {} if keywords is None else keywords
    _check_moving_parts(estimator, keywords, earlier)
    table, new_names = check_items(estimator.items), False
    if table is None and estimator.id_column is None:
        table, new_names = None if earlier is None else earlier.table, True
    parsed = check_X(X, table, new_names)
    metadata = AnswerMetadata.read(keywords, len(parsed), parsed.size)
    if parsed.kind == "items" and parsed.pairs is None:
        if table is not None:
            _refuse_rated_rows(parsed.rows)
        return _prepare_ratings(estimator, parsed, y, metadata, earlier, pooled)
    if parsed.table is not None and parsed.table is not table:
        table = parsed.table
        if y is not None and earlier is None:  # a piece of a stream is read as the first
            _warn_names_as_features(parsed)
    return _prepare_answers(estimator, parsed, y, metadata, table, earlier, likelihood)


def _prepare_answers(estimator, parsed, y, metadata, table, earlier, likelihood):
    """Return the training data of duels and sets, see `check_training`."""
    rows, sets, reader = _read_items_of_answers(estimator, parsed, table, earlier, likelihood)
    if metadata.time is not None:
        axis, times = _axis_and_times(metadata.time, earlier)
        reader = replace(reader, time=axis)
        rows, sets = rows_of_answers(rows, sets, times[:, None])
    order_column = None
    if getattr(estimator, "order_drift", None) is not None:
        order_column, reader = rows.shape[1], replace(reader, by_order=True)
        rows, sets = rows_by_order(rows, sets, metadata.order)
    group_column = None
    if metadata.prompt is not None:
        prompts = Respondents(metadata.prompt, "prompt")
        reader = replace(reader, prompts=prompts)
        fields = prompt_columns(prompts.rows, rows, sets, metadata.weight)
        if fields is not None:
            group_column = rows.shape[1]
            rows, sets = rows_of_answers(rows, sets, fields)
    judges = None if metadata.judge is None else Respondents(metadata.judge, "judge")
    comparisons, classes = _make_comparisons(rows, sets, y, metadata, judges, likelihood, earlier)
    by_order = order_column is not None
    ordered = by_order or _distinguishes_order(estimator, likelihood, judges)
    if metadata.order is not None and likelihood is not None and not ordered:
        _warn_unused_order(estimator)
    columns = {"group_column": group_column, "order_column": order_column}
    comparisons = replace(comparisons, ordered=ordered, **columns)
    users = None if metadata.user is None else Respondents(metadata.user, "user")
    user = None if users is None else users.rows
    if user is not None and metadata.weight is not None:
        user = user[metadata.weight > 0.0]
    return Training(comparisons, classes, reader.with_answers(comparisons), judges, users, user)


def _distinguishes_order(estimator, likelihood, judges):
    """Return whether answers that differ in who was shown first alone are different."""
    own = judges is not None and bool(getattr(estimator.judge_prior, "order_variance", None))
    return own or (likelihood is not None and likelihood.uses_order)


def _check_moving_parts(
    estimator: BaseEstimator, keywords: Mapping[str, Any], earlier: Reader | None
) -> None:
    """Raise ValueError unless what moves has times, and a stream goes on as it began."""
    moving = {name: getattr(estimator, name, None) for name in ("drift", "seasons", "order_drift")}
    by_order = moving["order_drift"] is not None
    if earlier is not None:
        if "prompts" in keywords:
            raise ValueError(
                "got prompts= with further answers of a stream. Fit all of them at once by fit."
            )
        pieces = {"time": ("time" in keywords, earlier.time is not None)}
        pieces["order_drift"] = by_order, earlier.by_order
        for name, (now, past) in pieces.items():
            if now != past:
                which = ("without", "with")
                raise ValueError(
                    f"got answers {which[now]} {name}= after answers {which[past]}. Give {name}= "
                    "as before, or fit anew."
                )
    for name, value in moving.items():
        if value is not None and "time" not in keywords:
            raise ValueError(
                f"got {name}={value!r} without time=. Pass time= to fit, or leave {name}= out."
            )
    refuse_together({*keywords, "order_drift"} if by_order else keywords)


def _axis_and_times(times: AnswerTimes, earlier: Reader | None) -> tuple[TimeAxis, Array]:
    """Return the axis of these times, and the times on it."""
    if earlier is None or earlier.time is None:
        return TimeAxis.from_times(times)
    relative = earlier.time.to_relative(times)
    return earlier.time.until(relative), relative


def _read_items_of_answers(estimator, parsed, table, earlier, likelihood):
    """Return rows of items, the rows that each answer is about, and the reader of later items."""
    if parsed.kind != "items":
        if parsed.kind == "positions" and is_frame(estimator.items):
            warn_index_labels(parsed.table)
        if parsed.pairs is None:
            raise ValueError(
                "Integer X with items= must have shape (n_duels, 2) or (n, k), positions in the "
                f"table; got {parsed.rows.shape}. Ratings of them become duels by from_ratings."
            )
        places = parsed.places()
        _refuse_self_duels(np.arange(len(parsed.table)), places)
        return parsed.table.X, places, Reader.of_table(estimator, parsed.table)
    names = None
    if _table_names_ids(estimator, table, parsed.rows):
        names, table = table, None
    item_reader = earlier
    if item_reader is None and table is not None:
        item_reader = Reader.of_table(estimator, table)
    items, reader = read_features(estimator, parsed, item_reader, further=earlier is not None)
    rows, sets, place = items.rows, items.pairs, reader.id_column
    check_known_positions(rows, table)
    if names is not None:
        reader = reader.with_id_names(names, rows[:, place])
    _refuse_self_duels(np.arange(len(rows)) if place is None else rows[:, place], sets)
    if place is None and sets.shape[1] == 2:
        _warn_equal_features(rows, sets, likelihood)
    return rows, sets, replace(reader, table=table)


def _table_names_ids(estimator: BaseEstimator, table: ItemTable | None, rows: Any) -> bool:
    """Return whether a table names the ids in a column of X beside features."""
    if table is None or table.has_features or estimator.id_column is None:
        return False
    return not is_frame(rows) and rows.shape[1] > 1


def _make_comparisons(rows, sets, y, metadata, judges, likelihood, earlier):
    """Return the comparisons of duels or sets, and the classes of y."""
    weight, order, offset = metadata.weight, metadata.order, metadata.shown_offset(sets >= 0)
    n, k = sets.shape
    if k > 2:
        rank = check_ranks(y, sets >= 0).rank
        ranked = Comparisons.from_ranks(rows, sets, rank, weight, order=order, offset=offset)
        return ranked, np.arange(k)
    scale = PLAIN if likelihood is None else DuelScale.from_kinds(likelihood.kinds)
    # Earlier answers have said whether 0 is a tie.
    outcomes = check_outcomes(y, n, scale, zero_is_tie=earlier is not None)
    judge = None if judges is None else judges.rows
    duels, fields = (*sets.T, outcomes.won, weight, judge), {"order": order, "offset": offset}
    return Comparisons.from_duels(rows, *duels, kind=outcomes.kind, **fields), outcomes.classes


def continue_training(estimator: BaseEstimator, training: Training, likelihood: Any) -> Training:
    """Return further answers with the labels of those before, and the groups that all join.

    Parameters
    ----------
    estimator : BaseEstimator
    training : Training
    likelihood : Likelihood
        What the parameters of the estimator come to now.

    Raises
    ------
    ValueError
        If they are not of the same form, or to be understood in another way.
    """
    fitted = estimator.likelihood_
    DuelScale.from_kinds(fitted.kinds).check_same(
        DuelScale.from_kinds(likelihood.kinds), likelihood
    )
    if likelihood.uses_order and not fitted.uses_order:
        raise ValueError(
            "The answers so far were counted without regard to who was shown first, which "
            f"{likelihood!r} asks. Set order_effect and its bounds as they were, or fit anew."
        )
    reader, fitted_reader = training.reader, estimator.posterior_.reader
    check_names_continue(fitted_reader.table, reader.table)
    check_same_columns(estimator, reader.feature_names, reader.n_features, fitted_reader)
    before = getattr(estimator, "classes_", None)
    if (before is None) != (training.classes is None):
        kinds = "rated items", "duels"
        raise ValueError(
            f"Got {kinds[before is None]} after {kinds[before is not None]}. Make "
            "duels of all ratings (from_ratings), or fit anew."
        )
    reader = reader.with_answers(training.comparisons, fitted_reader.groups)
    return training._replace(classes=before, reader=reader)  # a piece may hold one label alone


def _warn_names_as_features(parsed: ParsedX) -> None:
    """Warn where names could be meant as features of rated items.

    A column of one name alone is no feature: there one item, or one pair, is in every answer.
    """
    places, pairs = parsed.table.index(parsed.rows), parsed.pairs
    columns = [np.unique(places[column[column >= 0]]) for column in pairs.T]
    n_names = [len(column) for column in columns]
    if min(n_names) > 1 and len(np.unique(places)) == sum(n_names) < pairs.size:
        warn(
            f"X of shape {pairs.shape} reads as names of items, but no name stands in two of its "
            "columns. If these are features of rated items, put Itemwise(OneHotEncoder()) before."
        )


def warn_index_labels(table: ItemTable) -> None:
    """Warn where positions in a frame could be meant as labels of its index."""
    labels = [] if table.names is None else table.names.tolist()
    whole = all(isinstance(label, int) and not isinstance(label, bool) for label in labels)
    if whole and labels != list(range(len(labels))):
        warn(
            f"Integer pairs are positions in items=, counted from 0, but the index of that frame "
            f"holds other integers, such as {labels[:3]}. If the pairs are such labels, take "
            "from_pairs(items, pairs); if positions, pass items.reset_index(drop=True)."
        )


def _warn_unused_order(estimator: BaseEstimator) -> None:
    """Warn that ``order=`` has no effect on this model, and say how to give it an order effect."""
    own = getattr(estimator, "likelihood", None)
    if own is not None and not hasattr(own, "order_effect"):
        remedy = f"{type(own).__name__} has none. Take Probit or GradedProbit"
    else:
        learns = "order_effect_bounds=(-3.0, 3.0) to learn it"
        parameter = "order_effect= its size" if estimator.optimizer is None else learns
        remedy = (
            f"It is held at 0. Give {'' if own is None else type(own).__name__ + ' '}{parameter}"
        )
    warn(f"order= does nothing without an order effect. {remedy}, or leave order= out.")


def _refuse_rated_rows(X: Any) -> None:
    """Raise ValueError for rows of rated items where ``items=`` is given."""
    frame = is_frame(X)
    kind = "a DataFrame" if frame else f"a 2-D array of dtype {X.dtype}"
    as_array = "X.to_numpy()" if frame else "X"
    raise ValueError(
        f"With items= given, X must hold integer pairs of shape (n_duels, 2) or duel arrays of "
        f"shape (n_duels, 2, n_features), but got {kind} of shape {X.shape}. If its values are "
        f"positions in the table, pass {as_array}.astype(int); if they are names of items, pass "
        f"items.index({as_array}); if its rows are items with ratings, leave items= out."
    )


def _warn_equal_features(rows, duels, likelihood):
    """Warn of many duels of which nothing is learned: two items of equal features.

    With ties or an order effect they do tell of these.
    """
    equal = np.all(rows[duels[:, 0]] == rows[duels[:, 1]], axis=1)
    if likelihood is None or likelihood.uses_order or TIE in likelihood.kinds:
        return
    if equal.mean() > UNMENTIONED:
        warn(
            f"{equal.sum()} of {len(equal)} duels, first row {equal.argmax()} of X, are of two "
            "items with equal features: nothing is learned of them. Drop these rows, or give a "
            "feature or an id (id_column=) that tells the two apart."
        )


def _refuse_self_duels(who: np.ndarray, sets: np.ndarray) -> None:
    """Raise ValueError if an item meets itself, by its position, name or id.

    Items of equal features need not be one item, so such duels pass, see `_warn_equal_features`.
    """
    if sets.shape[1] == 2:
        mirrors = who[sets[:, 0]] == who[sets[:, 1]]
    else:
        met = np.unique(who, return_inverse=True)[1].reshape(-1)[sets]
        pads = -1 - np.arange(sets.shape[1])  # which are not one item
        met = np.sort(np.where(sets < 0, pads, met), axis=1)
        mirrors = (met[:, 1:] == met[:, :-1]).any(axis=1)
    refuse_rows(
        mirrors,
        "Row {row} of X sets an item against itself ({count} such rows); drop these of X and y.",
    )


def _prepare_ratings(estimator, parsed, y, metadata, earlier, pooled):
    """Return the training data of rated items: the higher rated of a group wins a duel."""
    y = _check_ratings(estimator, parsed, y)
    if getattr(estimator, "id_column", None) is None:
        probe = copy.copy(estimator)
        X, y = validate_features(probe, parsed.rows, y, y_numeric=True)
        reader = Reader(probe.n_features_in_, getattr(probe, "feature_names_in_", None))
    else:
        further = earlier is not None
        items, reader = read_features(estimator, parsed, earlier, plain=False, further=further)
        X, y = items.rows, column_or_1d(y, warn=True)
    if len(X) == 1:
        raise ValueError(
            "X and y make no duel: there is 1 sample, and a duel needs two items whose ratings "
            "differ. If X holds duels, its shape is (n_duels, 2, n_features)."
        )
    if metadata.qid is None and set(np.unique(y).tolist()) in ({0, 1}, {-1, 1}):
        warn(
            f"X of shape {X.shape} reads as rated items, of which each with the larger of the two "
            "labels in y beats each with the smaller. If its rows are duels, pass "
            "fit(np.stack([first, second], axis=1), y); if not, say so by qid=np.zeros(len(y))."
        )
    if metadata.time is not None:
        axis, times = _axis_and_times(metadata.time, earlier)
        reader, X = replace(reader, time=axis), np.column_stack([X, times])
    users = None if metadata.user is None else Respondents(metadata.user, "user")
    within = None if users is None or pooled else users.rows
    group = combine_groups(metadata.qid, within)
    winner, loser = rated_pairs(y, group, tiebreak=distinct_rows(X)[1])
    weight, user = metadata.weight, None if users is None else users.rows[winner]
    if weight is not None:
        weight = weight[winner] * weight[loser]
        check_largest_weight(weight)
        check_some_weight(weight)
        user = None if user is None else user[weight > 0.0]
    offset = metadata.shown_offset()
    offset = None if offset is None else offset[np.column_stack([winner, loser])]
    won, neither = np.ones(len(winner), dtype=bool), np.zeros(len(winner), dtype=np.int8)
    comparisons = Comparisons.from_duels(
        X, winner, loser, won, weight, order=neither, offset=offset
    )
    return Training(comparisons, None, reader.with_answers(comparisons), None, users, user)


def _check_ratings(estimator: BaseEstimator, parsed: ParsedX, y: Any) -> Any:
    """Return the ratings of items; ValueError where there are none, or no real numbers."""
    if getattr(estimator, "order_drift", None) is not None:
        raise ValueError(
            f"got order_drift={estimator.order_drift!r} with items that have ratings, of which "
            "none was shown first; duels and sets are allowed. Leave order_drift= out."
        )
    what = f"X of shape {parsed.rows.shape} reads as items"
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            f"is None. {what}, whose ratings y gives. Only duels do without y: arrays of shape "
            "(n_duels, 2, n_features), pairs of names, or, with items=, pairs of positions."
        )
    check_real(y, "y")
    y = fill_masked(y)
    if holds_words(y):
        raise ValueError(
            f"Ratings must be finite numbers, but y holds words. {what} with ratings. If the rows "
            "are duels, skpref.duels.from_columns makes X and y of a frame and of words."
        )
    check_finite_ratings(y)
    return y


def combine_groups(
    qid: NDArray[np.intp] | None, within: NDArray[np.intp] | None
) -> NDArray[np.intp] | None:
    """Return groups of rated items that have both labels in common; either may be None."""
    if qid is None or within is None:
        return within if qid is None else qid
    pairs = np.column_stack([within, qid])
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
