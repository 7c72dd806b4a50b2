"""The posterior of a fitted model, and its items under their names, for inspection."""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from skpref._utils import (
    BLOCK,
    TOLERANCE,
    Array,
    RandomLike,
    blas_threads,
    check_choice,
    make_generator,
    symmetric_root,
    warn,
)
from skpref.data import (
    Comparisons,
    IdEncoder,
    ItemGroups,
    ItemTable,
    all_strings,
    column_at,
    first_wins,
    group_rows,
    is_frame,
    is_missing,
)
from skpref.fitting._averaging import Weighted, average, is_average_affordable
from skpref.fitting._biases import judged_comparisons
from skpref.fitting._components import component_of_rows, components_in_words
from skpref.fitting._judges import Judges
from skpref.fitting._judging import OPEN_WEIGHT
from skpref.fitting._model import Model
from skpref.gp import (
    GroupedPosterior,
    Posterior,
    PosteriorMixture,
    ThroughTime,
    averaged_with_moment_match,
    mixture_quantile,
    posterior_parts,
    utility_kernel,
)
from skpref.kernels import features_part, identity_columns, seen_columns
from skpref.likelihoods import JudgeReliability, Likelihood, sign_proba

# Posteriors over the hyperparameters of one fit, kept for its further tables.
_LAST: WeakKeyDictionary[Model, tuple[list[Weighted], int]] = WeakKeyDictionary()

# Label of each unit in a picture.
UNITS = {
    "noise": "standard deviations of an item's noise",
    "elo": "Elo points",
    "logit": "logits",
}


def unit_length(posterior: Any, unit: str) -> float:
    """Return one unit as a difference of the posterior's utilities.

    It is that of an answer in a new group, where effects belong to groups of answers.

    Parameters
    ----------
    posterior : Posterior
        Or another one with a ``likelihood`` and an ``effect_variance``.
    unit : {"noise", "elo", "logit"}
        See `skpref.inspection.leaderboard`.
    """
    check_choice("unit", unit, tuple(UNITS))
    return unit_of_answers(posterior.likelihood, unit, posterior.effect_variance)


def unit_of_answers(likelihood: Likelihood, unit: str, effect_variance: float = 0.0) -> float:
    """Return one unit as a difference of utilities, of answers with such a likelihood.

    Parameters
    ----------
    likelihood : Likelihood
    unit : {"noise", "elo", "logit"}
    effect_variance : float, default=0.0
        Of what a new group of answers adds to the utility of one item.
    """
    if unit == "noise":
        return float(np.sqrt(likelihood.utility_noise + effect_variance))
    slope = likelihood.score_slope
    if effect_variance:
        step = np.sqrt(TOLERANCE * likelihood.utility_noise)
        margins, variances = np.array([-step, step]), np.full(2, 2.0 * effect_variance)
        order = (np.zeros(2, dtype=np.int8),) if likelihood.uses_order else ()
        proba = likelihood.outcome_proba(margins, variances, *order)
        slope = float(np.diff(first_wins(proba))[0]) / (2.0 * step)
    logit = 0.25 / slope  # the slope of 1/(1 + e^−d) at 0 is 1/4
    return logit if unit == "logit" else logit * np.log(10.0) / 400.0


def noise_deviation(posterior: Any) -> float:
    """Return σ, the standard deviation of an item's noise in an answer of a new group."""
    return unit_length(posterior, "noise")


class UtilityMoments(NamedTuple):
    """Joint moments of n utilities: a mixture of normals of one covariance.

    Attributes
    ----------
    means : ndarray of shape (n, n_components)
    cov : ndarray of shape (n, n)
    """

    means: Array
    cov: Array

    def in_unit(self, unit: float) -> Self:
        """Return the same in a unit."""
        return type(self)(self.means / unit, self.cov / unit**2)

    def centred(self) -> tuple[Array, Array]:
        """Return means (n, n_components) and deviations (n,) of each less the mean of all."""
        by_row = self.cov.mean(axis=1)
        variance = np.diagonal(self.cov) - 2.0 * by_row + by_row.mean()
        return self.means - self.means.mean(axis=0), np.sqrt(np.maximum(variance, 0.0))

    def margins(self, first: Any, second: Any) -> tuple[Array, Array]:
        """Return means (k, n_components) and variances (k,) of the margins of pairs."""
        own = np.diagonal(self.cov)
        variance = own[first] + own[second] - 2.0 * self.cov[first, second]
        return self.means[first] - self.means[second], np.maximum(variance, 0.0)

    def intervals_about_mean(self, level: float) -> "Relative":
        """Return means and central intervals of each utility less the mean of all."""
        return mixture_intervals(np.ones(1), [self.centred()], level)

    def draws(self, n: int, rng: RandomLike) -> Array:
        """Draw the utilities jointly, (n_utilities, n)."""
        rng = make_generator(rng)
        means = self.means[:, rng.integers(self.means.shape[1], size=n)]
        root = symmetric_root(self.cov)
        return means + root @ rng.standard_normal((root.shape[1], n))


class Mixture(NamedTuple):
    """Joint moments of n utilities in a unit, at several hyperparameters.

    Attributes
    ----------
    weights : ndarray of shape (n_points,)
        Of the hyperparameters; they sum to one.
    parts : tuple of UtilityMoments
    """

    weights: Array
    parts: tuple[UtilityMoments, ...]

    def take(self, rows: NDArray[Any]) -> Self:
        """Return the moments of some of the utilities."""
        parts = [
            UtilityMoments(part.means[rows], part.cov[np.ix_(rows, rows)]) for part in self.parts
        ]
        return type(self)(self.weights, tuple(parts))

    @property
    def mean(self) -> Array:
        """Return the mean of each utility, (n,)."""
        means = [part.means.mean(axis=1) for part in self.parts]
        return np.stack(means, axis=1) @ self.weights

    def intervals_about_mean(
        self, level: float, component: NDArray[np.intp] | None = None
    ) -> "Relative":
        """Return means and intervals of each less the mean of all, or of its component.

        Of what is alone in one, where there are several, the mean is 0 and nothing is known.
        """
        component = np.zeros(len(self.mean), dtype=np.intp) if component is None else component
        n, n_components = len(component), int(component.max()) + 1
        mean, lower, upper = np.zeros(n), np.full(n, -np.inf), np.full(n, np.inf)
        for k in range(n_components):
            rows = np.flatnonzero(component == k)
            if len(rows) > 1 or n_components == 1:
                some = self.take(rows) if n_components > 1 else self
                centred = [part.centred() for part in some.parts]
                mean[rows], lower[rows], upper[rows] = mixture_intervals(
                    self.weights, centred, level
                )
        return Relative(mean, lower, upper)

    def margins(self, first: Any, second: Any, level: float) -> "Relative":
        """Return means and central intervals of the margins of pairs."""
        moments = [part.margins(first, second) for part in self.parts]
        return mixture_intervals(
            self.weights, [(means, np.sqrt(var)) for means, var in moments], level
        )

    def better(self, first: Any, second: Any) -> Array:
        """Return P(the first utility is the larger one) of pairs."""
        probability = np.zeros(len(first))
        for weight, part in zip(self.weights, self.parts, strict=True):
            step = max(1, BLOCK // part.means.shape[1])
            for start in range(0, len(first), step):
                block = slice(start, start + step)
                means, variance = part.margins(first[block], second[block])
                probability[block] += weight * probability_positive(means, variance)
        return probability

    def draws(self, n: int, rng: RandomLike) -> Array:
        """Draw the utilities jointly, (n_utilities, n), by each part as many as its weight."""
        rng = make_generator(rng)
        ends = np.round(np.cumsum(self.weights) * n).astype(np.intp)
        counts = np.diff(ends, prepend=0)
        drawn = [part.draws(int(k), rng) for part, k in zip(self.parts, counts, strict=True) if k]
        return np.concatenate(drawn, axis=1)


def probability_positive(means: Array, variance: Array) -> Array:
    """Return P(a mixture of normals is above zero), of n mixtures (n, n_components)."""
    none = np.zeros(len(means))
    return averaged_with_moment_match(
        lambda m, v, _: sign_proba(m, v), means, variance, none, False
    )


def mixture_intervals(
    weights: Array, moments: list[tuple[Array, Array]], level: float
) -> "Relative":
    """Return means and central intervals of mixtures over hyperparameters.

    Parameters
    ----------
    weights : ndarray of shape (n_points,)
    moments : list of (ndarray of shape (n, n_components), ndarray of shape (n,))
        Means of the components and their common deviation at each of the hyperparameters.
    level : float
    """
    if len(moments) == 1:
        mean, deviation = moments[0]
        share, of = np.full(mean.shape[1], 1.0 / mean.shape[1]), None
    else:
        mean = np.hstack([mean for mean, _ in moments])
        deviation = np.hstack(
            [np.tile(deviation[:, None], mean.shape[1]) for mean, deviation in moments]
        )
        of = share = np.concatenate(
            [
                np.full(mean.shape[1], weight / mean.shape[1])
                for weight, (mean, _) in zip(weights, moments, strict=True)
            ]
        )
    tail = 0.5 * (1.0 - level)
    lower, upper = (mixture_quantile(q, mean, deviation, of) for q in (tail, 1.0 - tail))
    return Relative(mean @ share, lower, upper)


class Relative(NamedTuple):
    """Utilities above their mean over the items, each of shape (n,)."""

    mean: Array
    lower: Array
    upper: Array

    def in_unit(self, unit: float) -> Self:
        """Return the same in a unit."""
        return type(self)(*(part / unit for part in self))


@dataclass(frozen=True, eq=False)
class Inspected:
    """A posterior, and the reader of its items.

    Attributes
    ----------
    posterior : Posterior or CollaborativePosterior
        The latter of one user, as one row.
    encode : callable
        Items as the user has them to items as the posterior takes them.
    encoder : IdEncoder or None
        Ids of the codes that the posterior sees; None where ids are numbers.
    id_column : str, int or None
        The column of the user's frames that says who an item is, by its name or position.
    training : ndarray of shape (n_items, n_features)
        Items of the answers, as the posterior sees them; those with times as they are now, each
        once, the time in one column more.
    feature_names : ndarray or None
        Of the items as the user has them, where they are known.
    source : optimizer, learner or None
        Whose items these are: it shows and names them.
    learned : (Model, tuple of Comparisons) or None
        The fit of one utility that learned hyperparameters, if there was one; its answers as the
        judges see them, in each reading of these.
    judges : Judges or None
        Of the fit, if there were any.
    all_at_once : bool
        Whether its answers are all that the posterior was told, and not those of a later day.
    id_place : int or None
        The column of the posterior's rows that says who an item is.
    columns : ndarray of shape (n_features,) or None
        Names of the columns of these rows, where they are known.
    shown : ndarray of shape (n_items,) or None
        How often each item of ``training`` was shown; None where nothing is known of it.
    center, scale : ndarray of shape (n_features,) or None
        Of the columns as the user has them, where rows hold (column - center) / scale.
    groups : dict of int to list
        Of columns that hold numbers of groups, the groups.
    answered : ndarray of shape (n_rows, n_features + 1) or None
        Items at the times of their answers, where these have times.
    informing : Comparisons or None
        Answers that join items, where the reader does not know the groups, or not those of a user.
    """

    posterior: Any
    encode: Callable[[Any], Any]
    encoder: IdEncoder | None
    id_column: Any
    training: Array
    feature_names: NDArray[Any] | None
    source: Any = None
    learned: tuple[Model, tuple[Comparisons, ...]] | None = None
    judges: Judges | None = None
    all_at_once: bool = True
    id_place: int | None = None
    columns: NDArray[Any] | None = None
    shown: Array | None = None
    center: Array | None = None
    scale: Array | None = None
    groups: dict[int, list] = field(default_factory=dict)
    answered: Array | None = None
    informing: Comparisons | None = None

    @classmethod
    def from_model(cls, model: Any, user: Any = None, time: Any = None) -> Self:
        """Return the posterior and reader of a posterior, or of a fitted object that has one.

        Parameters
        ----------
        model : Posterior, estimator, pipeline that ends in one, search over one, or optimizer
        user : hashable, optional
            Whose utility is meant, of a model of several users.
        time : number or date, optional
            When, of a model that was fitted with times; None: the last of them.

        Raises
        ------
        TypeError
            If it has no posterior, or that of several users and ``user`` is not told.
        ValueError
            If ``user`` is told and the model has no users, or ``time`` and it has no times.
        """
        source = model if hasattr(model, "_to_rank") else None
        model = estimator_of(model)
        steps = [step for _, step in getattr(model, "steps", [(None, model)])]
        last = steps.pop()
        posterior = _utility_posterior(last, user)
        learned = _learned_fit(last, posterior)
        if time is not None:
            posterior = replace(posterior, reader=posterior.reader.at_time(time))
        comparisons = getattr(last, "comparisons_", None)
        if comparisons is not None:
            comparisons = comparisons.without_groups()
        training = posterior.anchors if comparisons is None else comparisons.items

        def encode(items: Any) -> Any:
            items = items if source is None else source._as_rows(items)
            return model[:-1].transform(items) if steps else items

        reader = posterior.reader
        names = None if source is not None or steps else reader.feature_names
        encoder, column = reader.ids, reader.id_column
        if reader.id_table is not None:
            encoder = IdEncoder(reader.id_table.names)
        if steps:
            column = getattr(steps[0], "_id_column", None)
            if encoder is None:  # the step that takes frames has made them numbers
                encoder = next((step._ids for step in steps if getattr(step, "_ids", None)), None)
        elif column is not None and reader.feature_names is not None:
            column = reader.feature_names[column]
        place, columns = reader.id_column, reader.feature_names
        if steps:
            columns = _column_names_out(model[:-1]) if columns is None else columns
            if place is None and column is not None:
                place = _single_id_column(posterior)
        shown = None if comparisons is None else _count_shown(comparisons)
        answered = None if reader.time is None else training
        known_rows = known_items(last) if hasattr(last, "_earlier_items") else None
        if known_rows is not None:
            lacking = known_rows[len(training) :]
            training = np.concatenate([training, lacking])
            shown = None if shown is None else np.append(shown, np.ones(len(lacking)))
        if reader.time is not None:
            training, shown = _distinct_at_time(training, shown, reader.time.now)
        subject = cls(
            *(posterior, encode, encoder, column, training, names, source),
            learned=learned,
            judges=getattr(last, "judges_", None),
            all_at_once=getattr(last, "_all_at_once", True),
            id_place=place,
            columns=columns,
            shown=shown,
            answered=answered,
        )
        return replace(subject, informing=_informing_answers(last, reader, user))

    def with_names_of_votes(self, votes: Any) -> Self:
        """Return the same with the names and units of what `skpref.duels.from_votes` gave.

        Raises
        ------
        ValueError
            If the model has fewer columns than the votes.
        """
        table, controls, groups = votes["item_table"], list(votes["controls"]), votes["groups"]
        by = [] if groups is None else [votes["by"]]
        n, n_known = self.n_features, 1 + len(controls) + len(by)
        if self.posterior.reader.table is not None and n_known == 1:
            return self  # the model knows the names itself
        if n < n_known or self.id_place != 0:
            raise ValueError(
                f"These votes have competitors and {[*controls, *by]}, {n_known} columns; the "
                f"model has {n}. Fit it to them: PairwisePreferenceRegressor(**votes.params)"
                ".fit(votes.X, votes.y)."
            )
        columns, center, scale = np.arange(n).astype(object), np.zeros(n), np.ones(n)
        columns[1:n_known] = [*controls, *by]
        of_controls = slice(1, 1 + len(controls))
        center[of_controls], scale[of_controls] = votes["control_center"], votes["control_scale"]
        return replace(
            self,
            encoder=IdEncoder(table.names),
            columns=columns,
            center=center,
            scale=scale,
            groups={} if groups is None else {n_known - 1: list(groups)},
        )

    @property
    def n_features(self) -> int:
        """Return the number of columns of the posterior's rows beside that of the time."""
        return self.posterior.reader.n_features

    def rows_of(self, items: Any) -> Array:
        """Return items as rows of the posterior."""
        return self.posterior.check_items(self.encode(items))

    def items(self, items: Any = None) -> tuple[Array, NDArray[Any] | None]:
        """Return rows of the items asked for, and their names if they have any.

        Parameters
        ----------
        items : ItemTable, array-like, DataFrame or None
            None: the table of the model or what an optimizer ranks, else the training items.

        Raises
        ------
        ValueError
            If there is none.
        """
        if items is None and self.source is not None:
            items, names = self.source._to_rank()
            return self.rows_of(items), _object_array(names)
        table = self.posterior.reader.table
        if items is None and table is None:
            return self.training, self.ids(self.training)
        if items is None:
            rows = self.posterior.check_items(table)
            return rows, self._label_items(table, rows)
        rows = self.rows_of(items)
        if not len(rows):
            raise ValueError(
                "items is empty; give at least one item, or None for all of the model."
            )
        return rows, self._label_items(items, rows)

    def _label_items(self, items, rows):
        """Return labels of items: their names, their ids, or the index of their frame."""
        if isinstance(items, ItemTable):
            if items.names is not None and all_strings(items.names):
                return items.names
            ids = self._read_ids(items.frame, rows)
            return items.names if ids is None else ids
        if is_frame(items):
            ids = self._read_ids(items, rows)
            if ids is None:
                named = self.posterior.reader.names_in(items)
                return _index_of(items) if named is None else _object_array(named)
            return ids
        if hasattr(items, "dtype") or np.ndim(items[0]) == 0:
            listed = np.asarray(items)
            if listed.ndim == 1 and (all_strings(listed) or self.source is not None):
                return _object_array(listed.tolist())
            table = self.posterior.reader.table
            if listed.ndim == 1 and table is not None and table.names is not None:
                return table.names[listed.astype(np.intp)]
        return self._read_ids(items, rows)

    def _read_ids(self, items, rows):
        """Return ids of items as the user has them, None if they have none."""
        if is_frame(items) and self.id_column is not None:
            columns = list(items.columns)
            at = self.id_column
            at = columns.index(at) if at in columns else at
            if not isinstance(at, str):
                return _object_array(column_at(items, at).to_list())
        ids = None if is_frame(items) or items is None else self.posterior.reader.ids_in(items)
        return self.ids(rows) if ids is None else _object_array(ids)

    def ids(self, rows: Array) -> NDArray[Any] | None:
        """Return ids of rows of the posterior; a code without an id stays a code."""
        place = self.id_place
        if place is None:
            return None
        codes = [int(code) if code.is_integer() else code for code in rows[:, place].tolist()]
        if self.encoder is None:
            return _object_array(codes)
        id_of_code = dict(enumerate(self.encoder.names.tolist()))
        return _object_array([id_of_code.get(code, code) for code in codes])

    def answer_times(self, rows: Array) -> list[Array]:
        """Return of each row the distinct times of the answers about who it is, ascending.

        Relative to the first of training.
        """
        part = posterior_parts(self.posterior)[1][0]
        if isinstance(part, ThroughTime):
            return part.known_times(rows)
        if self.answered is None:
            return [np.zeros(0)] * len(rows)
        columns = slice(0, -1) if self.id_place is None else [self.id_place]
        who, times = self.answered[:, columns], self.answered[:, -1]
        return [np.unique(times[np.all(who == row[columns], axis=1)]) for row in rows]

    @cached_property
    def item_groups(self) -> ItemGroups | None:
        """Return which items the answers join; None where nothing is known of the answers."""
        if self.informing is None:
            groups: ItemGroups | None = self.posterior.reader.groups
            return groups
        columns = slice(self.n_features) if self.id_place is None else [self.id_place]
        return ItemGroups.from_keys(self.informing.items[:, columns], self.informing.rows)

    def component_of(self, rows: Array) -> NDArray[np.intp]:
        """Number the component of each row, the largest 0: the prior alone compares these.

        Of components of equal size the one that comes first is the first. All rows are of one
        where nothing is known of the answers. See `component_of_rows`.
        """
        if self.item_groups is None:
            return np.zeros(len(rows), dtype=np.intp)
        time_place = None if self.posterior.reader.time is None else rows.shape[1] - 1
        of_answers: set[int] = set()
        if self.id_place is not None:
            shown = np.ones(len(self.training)) if self.shown is None else self.shown
            of_answers, _ = varying_columns(self.training, self.id_place, shown)
        label = component_of_rows(
            *(self.posterior.kernel, self.item_groups, self.training, rows),
            *(self.id_place, time_place, of_answers),
        )
        _, first, code, size = np.unique(
            label, return_index=True, return_inverse=True, return_counts=True
        )
        number = np.argsort(np.lexsort((first, -size)))
        component: NDArray[np.intp] = number[code.reshape(-1)]
        return component

    def answered_components(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Return names, or positions, of the items that answers are about, and their components."""
        groups, place = self.item_groups, self.id_place
        if groups is None:
            return np.arange(1), np.zeros(1, dtype=np.intp)
        if place is not None:
            rows = self.training[np.sort(group_rows(self.training[:, [place]])[0])]
            named = self.ids(rows)
            names = rows[:, place] if named is None else named
        else:
            rows, names = self._in_table_order(groups.keys)
            if self.posterior.reader.time is not None:
                rows = np.column_stack([rows, np.zeros(len(rows))])
        return names, self.component_of(rows)

    def _in_table_order(self, rows):
        """Return items in the order of the model's table, with names; else as they are."""
        table = self.posterior.reader.table
        if table is None or table.names is None:
            return rows, np.arange(len(rows))
        code = group_rows(np.concatenate([table.X, rows]))[1]
        place = np.full(code.max() + 1, -1)
        place[code[: len(table)]] = np.arange(len(table))
        at = place[code[len(table) :]]
        if np.any(at < 0):  # features that are not those of the table
            return rows, np.arange(len(rows))
        order = np.argsort(at)
        return rows[order], table.names[at[order]]

    def at(self, n: int) -> Any:
        """Return the posterior as n rows may be asked of it."""
        asked = getattr(self.posterior, "asked", None)
        if asked is None:
            return self.posterior
        every = tuple(None if part is None else np.repeat(part, n, axis=0) for part in asked)
        return replace(self.posterior, asked=every)

    def over_hyperparameters(self, averaged: bool | str) -> "InspectedMixture":
        """Return the same at several hyperparameters with weights, or at those of the fit alone.

        Parameters
        ----------
        averaged : bool or "auto"
            "auto": where hyperparameters were learned by an engine that can, in seconds.

        Raises
        ------
        ValueError
            If ``averaged`` is True and there is no fit whose evidence could weigh them.
        """
        if not isinstance(averaged, bool | np.bool_):
            check_choice("average (True, False or 'auto')", averaged, ("auto",))
        weights, parts = posterior_parts(self.posterior)
        shares = np.ones(1) if self.judges is None else self.judges.weights
        alone = InspectedMixture(weights, tuple(replace(self, posterior=part) for part in parts))
        if averaged is False or averaged is np.False_:
            return alone
        if self.learned is None:
            if averaged != "auto" and not isinstance(parts[0], Posterior):
                raise ValueError(
                    "average=True came with a model of several users, whose hyperparameters are "
                    "taken as known. Leave average= out."
                )
            return alone
        model, readings = self.learned
        comparisons = readings[0]
        able = self.has_evidence
        if averaged != "auto" and not able:
            later = "" if self.all_at_once else " and partial_fit"
            raise ValueError(
                "average=True needs an engine with evidence, and a fit of all answers at once; "
                f"this has {model.engine!r}{later}. Fit all answers with inference='ep' or "
                "'laplace', or leave average= out."
            )
        n_likely = int(np.count_nonzero(shares >= OPEN_WEIGHT))
        if not able or (
            averaged == "auto" and not is_average_affordable(model, comparisons, n_likely)
        ):
            return alone
        every, n_points = _average_readings(model, readings, self.posterior, self.judges)
        subjects = tuple(self._with_posterior(each.posterior) for each in every)
        return InspectedMixture(np.array([each.weight for each in every]), subjects, n_points)

    @property
    def has_evidence(self) -> bool:
        """Tell whether an engine learned hyperparameters that can weigh others beside them."""
        if self.learned is None or not self.all_at_once:
            return False
        model, _ = self.learned
        of_all = model.rule.exact or model.rule.through_time
        return of_all and model.engine.capabilities.has_evidence

    def _with_posterior(self, posterior):
        """Return the same subject with the posterior at other hyperparameters."""
        if isinstance(posterior.likelihood, JudgeReliability):
            posterior = replace(posterior, likelihood=posterior.likelihood.base)
        posterior = replace(posterior, reader=self.posterior.reader)
        if self.learned is not None:
            model, readings = self.learned
            if self.posterior.kernel != utility_kernel(model.kernel, readings[0]):
                posterior = feature_utility_posterior(posterior)
        return replace(self, posterior=posterior)

    def without_item_effects(self) -> Self:
        """Return the same of the utility that features explain, see `explained`."""
        return replace(self, posterior=feature_utility_posterior(self.posterior))

    def intervals_about_mean(self, rows: Array, level: float) -> Relative:
        """Return mean and central intervals of f(x) less the mean of f over the rows.

        Answers tell differences alone; those from the mean of the rows are free of whatever all
        utilities share. Their distributions are mixtures of normals, so nothing is drawn.
        """
        return self.moments(rows).intervals_about_mean(level)

    def moments(self, rows: Array) -> "UtilityMoments":
        """Return means of the components and their common covariance, of utilities of some rows."""
        posterior = self.at(len(rows))
        if isinstance(posterior, Posterior):
            return UtilityMoments(posterior.component_means(rows), posterior.component_cov(rows))
        return UtilityMoments(posterior.mean(rows)[:, None], posterior.cov(rows))

    def averages(self, rows: Array, shares: Array) -> "UtilityMoments":
        """Return the moments of n averages of utilities.

        Parameters
        ----------
        rows : ndarray of shape (n, m, n_features)
        shares : ndarray of shape (m,)
            Weights of an average, which sum to one.
        """
        n, m, _ = rows.shape
        if m == 1:
            return self.moments(rows[:, 0])
        flat = rows.reshape(n * m, -1)
        if not isinstance(self.posterior, Posterior):
            moments = self.moments(flat)
            cov = moments.cov.reshape(n, m, n, m)
            means = (moments.means.reshape(n, m, -1) * shares[:, None]).sum(axis=1)
            return UtilityMoments(means, np.einsum("iajb,a,b->ij", cov, shares, shares))
        return UtilityMoments(*self.posterior.component_averages(rows, shares))

    def moments_with_pairs(
        self, rows: Array, shares: Array, pairs: NDArray[np.intp], groups: NDArray[np.intp]
    ) -> tuple[Array, Array]:
        """Return mean and covariance of averages, and of those of pairs within groups of answers.

        See `GroupedPosterior.moments_with_pairs`; where effects belong to groups. Readings of
        judges are averaged over.
        """
        weights, parts = posterior_parts(self.posterior)
        moments = [part.moments_with_pairs(rows, shares, pairs, groups) for part in parts]
        means = np.hstack([each for each, _ in moments])
        share = np.concatenate(
            [
                np.full(m.shape[1], w / m.shape[1])
                for w, (m, _) in zip(weights, moments, strict=True)
            ]
        )
        mean = means @ share
        apart = (means - mean[:, None]) * np.sqrt(share)
        cov = sum(w * each for w, (_, each) in zip(weights, moments, strict=True))
        return mean, cov + apart @ apart.T

    def margins(self, first: Array, second: Array) -> tuple[Array, Array]:
        """Return means (n, n_components) and common variances (n,) of f(a) − f(b)."""
        posterior = self.at(len(first))
        if isinstance(posterior, Posterior):
            return posterior.component_margins(first, second)
        mean, variance = posterior.margin(first, second)
        return mean[:, None], variance

    def seen_columns(self) -> tuple[set[int], set[int]]:
        """Return columns of categories, and those of numbers that the kernel measures; no ids."""
        n_columns = self.training.shape[1]
        named, measured = seen_columns(self.posterior.kernel, n_columns, item_effects=False)
        others = set(range(self.n_features)) - {self.id_place}
        return others & set(named), others & set(measured)


@dataclass(frozen=True, eq=False)
class InspectedMixture:
    """What is inspected at several hyperparameters, or in several readings of judges.

    Each is in units of its own noise.

    Attributes
    ----------
    weights : ndarray of shape (n_points,)
        They sum to one.
    subjects : tuple of Inspected
    n_hyperparameters : int
    in_groups : bool
        Whether utilities are those in the mean over the groups of answers at hand, with their
        effects, and not over all groups that there may be.
    """

    weights: Array
    subjects: tuple[Inspected, ...]
    n_hyperparameters: int = 1
    in_groups: bool = False

    def averages(self, rows: Array, shares: Array, unit: str) -> "Mixture":
        """Return `Inspected.averages` in a unit, at each of the hyperparameters."""
        with blas_threads(len(rows)):
            parts = tuple(
                self._averages_of(subject, rows, shares).in_unit(length)
                for subject, length in zip(self.subjects, self.lengths(unit), strict=True)
            )
        return Mixture(self.weights, parts)

    def _averages_of(self, subject: Inspected, rows: Array, shares: Array) -> "UtilityMoments":
        """Return `Inspected.averages`, in the groups at hand if these are asked about."""
        if self.in_groups and isinstance(subject.posterior, GroupedPosterior):
            return UtilityMoments(*subject.posterior.group_averages(rows, shares))
        return subject.averages(rows, shares)

    def sums(self, rows: Array, weights: Array, unit: str, level: float) -> Relative:
        """Return means and central intervals of weighted sums of utilities, in a unit.

        Parameters
        ----------
        rows : ndarray of shape (n, n_features)
        weights : ndarray of shape (m, n)
            The sum of each row is zero, so that what all utilities share has no part.
        unit : str
        level : float
        """
        with blas_threads(len(rows)):
            sums = [each.posterior.component_sums(rows, weights) for each in self.subjects]
        moments = [
            (means / length, np.sqrt(variance) / length)
            for (means, variance), length in zip(sums, self.lengths(unit), strict=True)
        ]
        return mixture_intervals(self.weights, moments, level)

    def sample(self, rows: Array, n_draws: int, random_state: RandomLike, unit: str) -> Array:
        """Draw utilities jointly in a unit, (n, n_draws), by each point as many as its weight."""
        if len(self.subjects) == 1:
            return self.subjects[0].at(len(rows)).sample(rows, n_draws, random_state)
        rng = make_generator(random_state)
        ends = np.round(np.cumsum(self.weights) * n_draws).astype(np.intp)
        counts, lengths = np.diff(ends, prepend=0), self.lengths(unit)
        with blas_threads(len(rows)):
            drawn = [
                subject.at(len(rows)).sample(rows, int(n), rng) / length
                for subject, n, length in zip(self.subjects, counts, lengths, strict=True)
                if n
            ]
        return np.concatenate(drawn, axis=1)

    def lengths(self, unit: str) -> list[float]:
        """Return one unit at each of the hyperparameters."""
        return [unit_length(subject.posterior, unit) for subject in self.subjects]


def _average_readings(
    model: Model,
    readings: tuple[Comparisons, ...],
    posterior: Posterior | PosteriorMixture,
    judges: Judges | None,
) -> tuple[list[Weighted], int]:
    """Return posteriors over hyperparameters in each likely reading, kept for further tables.

    Returns
    -------
    every : list of Weighted
    n_points : int
        Hyperparameters of the most probable reading.
    """
    if model in _LAST:
        return _LAST[model]
    every: list[Weighted] = []
    n_points = 0
    if isinstance(posterior, PosteriorMixture) and judges is not None:
        parts = zip(posterior.weights, posterior.parts, strict=True)
        for share, judged, reading in zip(judges.weights, readings, judges.readings(), strict=True):
            likelihood = model.likelihood
            if isinstance(likelihood, JudgeReliability) and reading.used is not None:
                likelihood = JudgeReliability(likelihood.base, reading.used)
            of_reading = replace(model, likelihood=likelihood)
            points = [
                Weighted(float(weight), of_reading, part, {})
                for weight, part in islice(parts, len(reading.nodes) or 1)
            ]
            if share >= OPEN_WEIGHT:
                points = [
                    each._replace(weight=share * each.weight)
                    for each in average(of_reading, judged)
                ]
            n_points = n_points or len(points)
            every += points
    else:
        every += average(model, readings[0])
        n_points = len(every)
    _LAST.clear()
    _LAST[model] = every, n_points
    return every, n_points


def _learned_fit(last, posterior):
    """Return model and answers of a fit that learned one utility's hyperparameters, else None."""
    model = getattr(last, "_model", None)
    plain = isinstance(posterior, Posterior | PosteriorMixture)
    if model is None or not plain or not len(model.theta):
        return None
    if getattr(last, "optimizer", None) is None or posterior is not last.posterior_:
        return None
    return model, judged_comparisons(last)


def _informing_answers(last, reader, user):
    """Return answers that join items, None if the reader knows the groups, or none are known."""
    of_user = getattr(last, "_answers_about", None)
    answers = None if of_user is None or is_missing(user) else of_user(user)
    if answers is None and reader.groups is None:
        answers = getattr(last, "comparisons_", None)
        return None if answers is None else answers.without_groups()
    return answers


def estimator_of(model: Any) -> Any:
    """Return the best estimator of a search, the one of a learner, or the model itself."""
    if hasattr(model, "_to_rank") and hasattr(model, "estimator_"):
        return model.estimator_
    return getattr(model, "best_estimator_", model)


def last_step(model: Any) -> Any:
    """Return the estimator at the end of a pipeline, or the best of a search.

    Raises
    ------
    TypeError
        If nothing in it was fitted.
    """
    model = estimator_of(model)
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if not hasattr(last, "posterior_"):
        raise _no_posterior_error(last)
    return last


def _utility_posterior(last, user):
    """Return the one posterior of a utility, a user's if asked for; raise where it is not clear
    whose."""
    plain = Posterior | PosteriorMixture
    posterior = last if isinstance(last, plain) else getattr(last, "posterior_", None)
    names_user = not is_missing(user)
    if names_user and posterior is not None and hasattr(last, "posterior_for"):
        return last.posterior_for([user])
    if hasattr(posterior, "of"):
        raise TypeError(
            f"{type(last).__name__} was fitted to several users, each with a utility of their own; "
            "one utility is needed here. Say whose: user=, one of its users_. An id that is not "
            "among them stands for somebody of the population."
        )
    if not isinstance(posterior, plain):
        raise _no_posterior_error(last)
    if names_user:
        raise ValueError(
            f"user={user!r} came, but a {type(last).__name__} has one utility for all. Leave user= "
            "out, or fit a CollaborativePreferenceRegressor with users=."
        )
    return posterior


def _no_posterior_error(last):
    """Return the TypeError of a model that has no posterior."""
    return TypeError(
        "model must be a Posterior or have one as posterior_, which a fitted "
        f"PairwisePreferenceRegressor has; got {type(last).__name__}. Was it fitted?"
    )


def explained_estimator(last: Any) -> Any:
    """Copy a fitted estimator with the posterior of the utility that features explain."""
    posterior = getattr(last, "posterior_", None)
    if not hasattr(posterior, "anchors") or hasattr(last, "_to_rank"):
        raise _no_posterior_error(last)
    without = copy.copy(last)
    without.posterior_ = feature_utility_posterior(posterior)
    return without


def feature_utility_posterior(posterior: Any) -> Any:
    """Return the posterior of the utility that features explain: what items share.

    With f = g + e and e the item effects, the posterior of g has the covariances of g with the
    anchors in place of those of f, and all else as it is.

    Raises
    ------
    ValueError
        If features explain nothing.
    """
    reader = posterior.reader
    time = None if reader.time is None else reader.n_features
    kernel = features_part(
        posterior.kernel, reader.n_features + (time is not None), reader.id_column, time
    )
    if kernel is None:
        raise ValueError(
            f"The kernel {posterior.kernel} has item effects alone: nothing is left without them."
        )
    if kernel == posterior.kernel:
        return posterior
    if isinstance(posterior, PosteriorMixture):
        return replace(
            posterior, parts=tuple(feature_utility_posterior(part) for part in posterior.posteriors)
        )
    if isinstance(posterior, Posterior):
        return replace(posterior, kernel=kernel, utilities=None)
    return replace(posterior, kernel=kernel)


def _column_names_out(steps: Any) -> NDArray[Any] | None:
    """Return the column names that the steps before a model give; None where they tell none."""
    try:
        return np.asarray(steps.get_feature_names_out(), dtype=object)
    except (AttributeError, ValueError):  # a step has none, or does not know what it saw
        return None


def _single_id_column(posterior: Any) -> int | None:
    """Return the one column that an `Identity` sees alone, None if there are none or several."""
    alone = identity_columns(posterior.kernel)
    return alone[0] if len(alone) == 1 else None


def _count_shown(comparisons: Any) -> Array:
    """Count how often each item of the answers was shown, by their weights."""
    has_item = comparisons.positions >= 0
    weight = np.broadcast_to(comparisons.weight[:, None], has_item.shape)[has_item]
    counts = np.zeros(len(comparisons.items))
    np.add.at(counts, comparisons.positions[has_item], weight)
    return counts


def varying_columns(
    rows: Array, place: int | None, weight: Array
) -> tuple[set[int], dict[int, NDArray[np.float64]]]:
    """Return columns that belong to answers, and those of which some ids have several values.

    Parameters
    ----------
    rows : ndarray of shape (n, n_columns)
    place : int
        Column of the ids, which there must be.
    weight : ndarray of shape (n,)
        How often each row was shown.

    Returns
    -------
    varying : set of int
        Columns that differ between rows of one id, of at least half of the ids that were shown
        more than once.
    mixed : dict of int to ndarray
        Columns that differ between rows of fewer ids, and of which.
    """
    ids, first, code = np.unique(rows[:, place], return_index=True, return_inverse=True)
    code = code.reshape(-1)
    # Weights need not be counts, and those of the outcomes of a soft vote add up to one but for
    # rounding.
    once = min(1.0, weight.min(initial=1.0)) * (1.0 + 1e-9)
    n_again = np.count_nonzero(np.bincount(code, weight) > once)
    varying: set[int] = set()
    mixed: dict[int, NDArray[np.float64]] = {}
    for j in range(rows.shape[1]):
        differs = code[rows[:, j] != rows[first[code], j]]
        within = ids[np.bincount(differs, minlength=len(ids)) > 0]
        if len(within) and 2 * len(within) >= n_again:
            varying.add(j)
        elif len(within):
            mixed[j] = within
    return varying, mixed


# How a warning of groups begins.
_FALL_APART = "The answers fall into"


@contextmanager
def without_component_warnings() -> Iterator[None]:
    """Return a context in which fits do not warn of groups that callers name or join."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _FALL_APART)
        yield


def warn_of_components(estimator: Any) -> None:
    """Warn where a fit is about items with names that neither answers nor the kernel join."""
    groups = estimator.posterior_.reader.groups
    if groups is None or not groups.label.any():
        return
    names, component = _subject_of_all_users(estimator).answered_components()
    if not component.any():
        return
    warn(
        f"{_FALL_APART} {components_in_words(names, component)}. No answer compares items "
        "of different groups, so that the prior alone would rank these: boards leave such pairs "
        "undecided. Ask for answers between the groups, skpref.active.next_pairs(model) names "
        "them, or give features by which the items are alike."
    )


def n_components_of(estimator: Any) -> int:
    """Count the groups of items that neither answers nor the kernel join."""
    return int(_subject_of_all_users(estimator).answered_components()[1].max()) + 1


def _subject_of_all_users(estimator):
    """Return the inspected fit whose items are joined by the answers of all users."""
    several = hasattr(estimator.posterior_, "of")
    subject = Inspected.from_model(estimator, estimator.users_[0] if several else None)
    return replace(subject, informing=_informing_answers(estimator, subject.posterior.reader, None))


def known_items(estimator: Any) -> NDArray[np.float64] | None:
    """Return items of the last answers that an estimator of ids was told, then earlier ones.

    Each id that is not among the last ones is as it was shown at last. None without ids.
    """
    comparisons = estimator.comparisons_.without_groups()
    items, place = comparisons.items, estimator.posterior_.reader.id_column
    if place is None:
        return None
    earlier = getattr(estimator, "_earlier_items", None)
    if earlier is None:
        return items
    return np.concatenate([items, earlier[~np.isin(earlier[:, place], items[:, place])]])


def earlier_items(estimator: Any) -> NDArray[np.float64] | None:
    """Return what an estimator keeps of `known_items` before the next piece: each id once."""
    items = known_items(estimator)
    if items is None:
        return None
    ids = items[::-1, estimator.posterior_.reader.id_column]
    return items[::-1][np.sort(np.unique(ids, return_index=True)[1])]


def _distinct_at_time(rows, shown, time):
    """Return distinct items at one time, in order of first appearance, and how often each was
    shown."""
    rows = rows.copy()
    rows[:, -1] = time
    first, inverse = group_rows(rows)
    order = np.argsort(first)
    if shown is not None:
        shown = np.bincount(inverse, shown)[order]
    return rows[first[order]], shown


def _object_array(names):
    """Return names as an array of Python objects."""
    objects = np.empty(len(names), dtype=object)
    objects[:] = names
    return objects


def _index_of(frame):
    """Return the index of a frame, None if it has none or just counts its rows."""
    index = getattr(frame, "index", None)
    if index is None or (getattr(index, "start", None) == 0 and getattr(index, "step", 0) == 1):
        return None
    return np.asarray(index, dtype=object)
