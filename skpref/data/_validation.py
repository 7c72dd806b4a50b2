"""The arguments of `fit`: X, y and metadata become comparisons."""

import copy
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d

from skpref._utils import warn
from skpref.data._builders import check_rated, rated_pairs
from skpref.data._comparisons import Comparisons
from skpref.data._containers import holds_words, is_frame, unmasked
from skpref.data._items import ItemTable, distinct_rows
from skpref.data._kinds import PLAIN, TIE, DuelScale
from skpref.data._labels import check_order, check_outcomes, refuse_order
from skpref.data._ranks import check_ranks, check_real
from skpref.data._read import (
    Reader,
    Shown,
    check_items,
    check_known,
    check_like,
    check_X,
    read_features,
    refuse_other_names,
    validated,
)
from skpref.data._respondents import (
    Respondents,
    check_groups,
    check_judges,
    check_weights,
    pair_weights,
)
from skpref.data._time import TimeAxis, with_times

# Share of duels between items of equal features that goes unmentioned, as chance brings it about
# where pairs are drawn from a table.
_FEW_EQUAL = 0.05


class TakesAnswers(Protocol):
    """What a likelihood declares of the answers that it takes."""

    @property
    def kinds(self) -> frozenset[int]:
        """Kinds of row that it takes."""

    @property
    def uses_order(self) -> bool:
        """Whether it matters who was shown first."""


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
    winner : ndarray of int of shape (n_answers,) or None
        Of pairs of rated items the row of X that won.
    judges : Respondents or None
        Who gave the answers, if that was told.
    """

    comparisons: Comparisons
    classes: np.ndarray | None
    reader: Reader
    winner: np.ndarray | None = None
    judges: Respondents | None = None


# -- training ------------------------------------------------------------------------------


def check_training(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    qid: Any = None,
    sample_weight: Any = None,
    order: Any = None,
    likelihood: TakesAnswers | None = None,
    before: Reader | None = None,
    within: np.ndarray | None = None,
    judges: Any = None,
    time: Any = None,
) -> Training:
    """Validate the arguments of ``fit``; the estimator is left as it is.

    Parameters
    ----------
    estimator : BaseEstimator
    X, y, qid : array-like
    sample_weight, order : array-like, optional
    likelihood : Likelihood, optional
        Whether it takes ties, and asks who was shown first; by default neither.
    before : Reader, optional
        Of answers that these are to follow.
    within : ndarray of int of shape (n,), optional
        Beside ``qid`` what rated items must have in common to be compared.
    judges : array-like, optional
        Who gave each.
    time : array-like or scalar, optional
        When each was given.

    Returns
    -------
    Training
        With ``time`` the rows of the items have it as their last column.
    """
    _check_told(estimator, time, before)
    table, new_names = check_items(estimator.items), False
    if table is None and estimator.id_column is None:
        table, new_names = None if before is None else before.table, True
    shown = check_X(X, table, new_names)
    if shown.table is not table and shown.table is not None:
        table = shown.table
        if y is not None and before is None:  # a piece of a stream is read as the first
            _warn_features(shown)
    told = None
    if judges is not None:
        told = check_judges(judges, 0 if shown.pairs is None else len(shown), shown.size)
    if shown.kind == "items" and shown.pairs is None:
        if table is not None:
            _refuse_items(shown.rows)
        if order is not None:
            refuse_order()
        return _rated(estimator, shown, y, qid, sample_weight, before, within, time)
    if qid is not None:
        raise ValueError(
            "qid belongs to items with ratings, whose features are a 2-D X; duels take none, nor "
            "do positions in a table. Ratings of such items become duels by from_ratings."
        )
    if table is not None and shown.kind != "items":
        if shown.kind == "positions" and is_frame(estimator.items):
            warn_labels(table)
        if shown.pairs is None:
            raise ValueError(
                "Integer X with items= must have shape (n_duels, 2), pairs of positions in the "
                "table (or of names, if it has any), or (n, k), sets of them; got shape "
                f"{shown.rows.shape}. Ratings of items in a table become duels by from_ratings."
            )
        rows, sets, reader = table.X, shown.places(), Reader.of_table(estimator, table)
        who = np.arange(len(table))
    else:
        known, names = before, _names_of_ids(estimator, table, shown)
        if names is not None:
            table = None
        elif known is None and table is not None:
            known = Reader.of_table(estimator, table)
        found, reader = read_features(estimator, shown, known, further=before is not None)
        rows, sets = found.rows, found.pairs
        check_known(rows, table)
        if names is not None:
            reader = reader.naming(names, rows[:, reader.id_column])
        who = np.arange(len(rows)) if reader.id_column is None else rows[:, reader.id_column]
    n, k = sets.shape
    _refuse_mirrors(who, sets)
    if shown.kind == "items" and reader.id_column is None and k == 2:
        _warn_equal_features(rows, sets, likelihood)
    if time is not None:
        reader, times = _timed(reader, time, n, "answers", before)
        rows, sets = with_times(rows, sets, times)
    weight = check_weights(sample_weight, n)
    order = check_order(order, n, k)
    if k == 2:
        scale = PLAIN if likelihood is None else DuelScale.of(likelihood.kinds)
        said = check_outcomes(y, n, scale, known=before is not None)
        given_by = None if told is None else told.rows
        ends = sets[:, 0], sets[:, 1]
        comparisons = Comparisons.from_duels(
            rows, *ends, said.won, weight, given_by, kind=said.kind, order=order
        )
        classes = said.classes
    else:
        ranks = check_ranks(y, sets >= 0)
        comparisons = Comparisons.from_ranks(rows, sets, ranks.rank, weight, order=order)
        classes = np.arange(k)
    own_order = (
        told is not None and getattr(estimator.judge_prior, "order_variance", None) is not None
    )
    if own_order or (likelihood is not None and likelihood.uses_order):
        comparisons = replace(comparisons, ordered=True)
    elif order is not None and likelihood is not None:
        _warn_order(estimator)
    reader = replace(reader, table=table).with_answers(comparisons)
    return Training(comparisons, classes, reader, judges=told)


def _check_told(estimator: BaseEstimator, time: Any, before: Reader | None) -> None:
    """Whether times came where they are needed, and only where they were before."""
    if before is not None and (before.time is None) != (time is None):
        came, said = ("without", "with") if time is None else ("with", "without")
        raise ValueError(
            f"These answers came {came} time=, those before {said}. Give times of all answers, or "
            "of none."
        )
    if time is None and getattr(estimator, "drift", None) is not None:
        raise ValueError(
            f"drift={estimator.drift!r} needs to know when the answers were given: pass time= to "
            "fit, numbers or dates, one for each row of X. Without times leave drift= out."
        )


def _timed(
    reader: Reader, time: Any, n: int, what: str, before: Reader | None
) -> tuple[Reader, np.ndarray]:
    """The reader with the axis of these times, and the times on it."""
    if before is None or before.time is None:
        axis, times = TimeAxis.of(time, n, what)
    else:
        times = before.time.relative(time, n, what)
        axis = before.time.until(times)
    return replace(reader, time=axis), times


def _names_of_ids(
    estimator: BaseEstimator, table: ItemTable | None, shown: Shown
) -> ItemTable | None:
    """The table, if it names the ids that stand in a column of X beside features."""
    beside = table is not None and not table.has_features and estimator.id_column is not None
    return table if beside and not is_frame(shown.rows) and shown.rows.shape[1] > 1 else None


def as_before(
    estimator: BaseEstimator,
    training: Training,
    likelihood: TakesAnswers,
) -> Training:
    """Further answers, with the labels of those fitted before, and the groups that all join.

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
    DuelScale.of(fitted.kinds).check_same(DuelScale.of(likelihood.kinds), likelihood)
    if likelihood.uses_order and not fitted.uses_order:
        raise ValueError(
            "The answers so far were counted without regard to who was shown first, so that "
            f"{likelihood!r} cannot learn an order effect from them. Set order_effect and its "
            "bounds as they were, or fit anew."
        )
    reader, known = training.reader, estimator.posterior_.reader
    refuse_other_names(known.table, reader.table)
    check_like(estimator, reader.feature_names, reader.n_features, known)
    before = getattr(estimator, "classes_", None)
    if (before is None) != (training.classes is None):
        kinds = "rated items", "duels"
        raise ValueError(
            f"{kinds[before is None].capitalize()} came after {kinds[before is not None]}. Make "
            "duels of all ratings (from_ratings), or fit anew."
        )
    reader = reader.with_answers(training.comparisons, known.groups)
    return training._replace(classes=before, reader=reader)  # a piece may hold one label alone


def _warn_features(shown: Shown) -> None:
    """Warn where names could be meant as features of rated items.

    A column of one name alone is no feature: there one item, or one pair, is in every answer.
    """
    places, pairs = shown.table.index(shown.rows), shown.pairs
    columns = [np.unique(places[column[column >= 0]]) for column in pairs.T]
    n_names = [len(column) for column in columns]
    if min(n_names) > 1 and len(np.unique(places)) == sum(n_names) < pairs.size:
        warn(
            f"X of shape {pairs.shape} reads as names of items, but no name stands in two of its "
            "columns. If the columns are features of rated items, encode them, "
            "Itemwise(OneHotEncoder()), before the model."
        )


def warn_labels(table: ItemTable) -> None:
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


def _warn_order(estimator: BaseEstimator) -> None:
    """Warn that nothing is learned of who was shown first."""
    own = getattr(estimator, "likelihood", None)
    if own is not None and not hasattr(own, "order_effect"):
        remedy = f"{type(own).__name__} has none. Take Probit or GradedProbit"
    else:
        learns = "order_effect_bounds=(-3.0, 3.0) to learn it"
        given = "order_effect= its size" if estimator.optimizer is None else learns
        remedy = f"It is held at 0. Give {'' if own is None else type(own).__name__ + ' '}{given}"
    warn(f"order= does nothing without an order effect. {remedy}, or leave order= out.")


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


def _warn_equal_features(
    rows: np.ndarray, duels: np.ndarray, likelihood: TakesAnswers | None
) -> None:
    """Warn of many duels of which nothing is learned: two items of equal features.

    With ties or an order effect they do tell of these.
    """
    equal = np.all(rows[duels[:, 0]] == rows[duels[:, 1]], axis=1)
    if likelihood is None or likelihood.uses_order or TIE in likelihood.kinds:
        return
    if equal.mean() <= _FEW_EQUAL:
        return
    warn(
        f"{equal.sum()} of {len(equal)} duels, first row {equal.argmax()} of X, are of two items "
        "with equal features: nothing is learned of them. If one item meets itself there, drop "
        "these rows; if two items do, give a feature or an id (id_column=) that tells them apart."
    )


def _refuse_mirrors(who: np.ndarray, shown: np.ndarray) -> None:
    """Whether an item meets itself, by what says who it is: its position, name or id.

    Items of equal features need not be one item, so such duels pass, see `_warn_equal_features`.
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
    shown: Shown,
    y: Any,
    qid: Any,
    sample_weight: Any,
    before: Reader | None = None,
    within: np.ndarray | None = None,
    time: Any = None,
) -> Training:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            f"is None. X of shape {shown.rows.shape} reads as items, whose ratings y gives. Only "
            "duels do without y: arrays of shape (n_duels, 2, n_features), pairs of names, or "
            "pairs of positions together with the constructor's items=."
        )
    check_real(y, "y")
    y = unmasked(y)
    if holds_words(y):
        raise ValueError(
            f"Ratings must be finite numbers, but y holds words. X of shape {shown.rows.shape} "
            "reads as items with ratings. If the rows are duels, skpref.duels.from_columns makes X "
            "and y of a frame and of words such as 'left' and 'tie'."
        )
    check_rated(y)
    if getattr(estimator, "id_column", None) is None:
        probe = copy.copy(estimator)
        X, y = validated(probe, shown.rows, y, y_numeric=True)
        reader = Reader(probe.n_features_in_, getattr(probe, "feature_names_in_", None))
    else:
        further = before is not None
        found, reader = read_features(estimator, shown, before, plain=False, further=further)
        X = found.rows
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
            "If they are items with two ratings, qid=np.zeros(len(y)) says so."
        )
    if time is not None:
        reader, times = _timed(reader, time, len(X), "items", before)
        X = np.column_stack([X, times])
    winner, loser = rated_pairs(y, group, tiebreak=distinct_rows(X)[1])
    weight = pair_weights(sample_weight, len(X), winner, loser)
    won = np.ones(len(winner), dtype=bool)
    neither = np.zeros(len(winner), dtype=np.int8)  # was shown first
    comparisons = Comparisons.from_duels(X, winner, loser, won, weight, order=neither)
    reader = reader.with_answers(comparisons)
    return Training(comparisons, None, reader, winner if weight is None else winner[weight > 0.0])


def joint_groups(qid: Any, within: np.ndarray | None) -> Any:
    """Groups of rated items that have both labels in common; either may be None."""
    if qid is None or within is None:
        return within if qid is None else qid
    pairs = np.column_stack([within, check_groups(qid, len(within))])
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)


def _two_labels(y: np.ndarray) -> bool:
    labels = set(np.unique(y).tolist())
    return labels in ({0, 1}, {-1, 1})
