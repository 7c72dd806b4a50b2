"""Items from best to worst, for all answers or a group of them."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from skpref._utils import (
    BLOCK,
    Array,
    PrintableBunch,
    RandomLike,
    check_choice,
    check_number,
    html_table,
    printable_text,
    probability_text,
    row_blocks,
)
from skpref.data import check_groups_repeat, first_wins, table_frame
from skpref.fitting import (
    UNITS,
    Inspected,
    InspectedMixture,
    Mixture,
    components_in_words,
    estimator_of,
    noise_deviation,
    readings_in_words,
    unit_length,
)
from skpref.gp import IntransitivePosterior
from skpref.inspection._contenders import Columns, Contenders, contenders
from skpref.inspection._intransitivity import intransitivity

# Places that a board shows of itself.
_SHOWN = 20
_ENDS = "utility", "lower", "upper"
GROUPS = ("new", "these")


def leaderboard(
    model: Any,
    items: Any = None,
    *,
    user: Any = None,
    at: Mapping | ArrayLike | None = None,
    time: Any = None,
    groups: str = "new",
    unit: str = "noise",
    level: float = 0.9,
    n_draws: int = 10_000,
    average: bool | str = "auto",
    random_state: RandomLike = 0,
) -> Bunch:
    """Return items from best to worst, and how sure their places are.

    Answers tell differences of utilities alone, so the mean of the items shown is zero: an
    interval is one of f(item) minus the mean of f over ``items``. Intervals of two items that
    overlap do not say that their order is open; `Posterior.win_probability` with ``noise=False``
    does.

    Where items fall into several groups that neither answers nor the kernel join (see
    `connected_items`), nobody compared those of different groups: the board has one group after
    the other, the zero is the mean of each, and no place is decided across.

    Parameters
    ----------
    model : estimator, pipeline, search, optimizer, learner or Posterior
        Anything fitted that has a ``posterior_``, or that posterior.
    items : ItemTable, DataFrame, array-like of shape (n, n_features), names, ids or positions, \
or votes, default=None
        As the model's ``predict`` takes them (of an optimizer: as it shows them). None: the table
        of the model or the candidates of an optimizer, else the items that answers are about; of
        a model that knows ids (``ids=`` of the builders, ``id_column=``) each id once, see ``at``.
        What `skpref.duels.from_votes` gave stands for None: it brings the names of competitors and
        of controls, and their units. Ids alone, in one dimension, are those to be ranked.
    user : id, default=None
        Whose utility, of a `CollaborativePreferenceRegressor` that was fitted with users. An id
        that it does not know stands for somebody of the population.
    at : dict or array-like of shape (n_features - 1,), default=None
        Where the columns beside the ids are held while ids are compared: a value a column, by its
        name or position, or values of all of them. Columns that are not said, of which most ids
        were shown with several values, are held at their mean over all that was shown; over the
        categories of a column that the kernel sees by `skpref.kernels.Identity` the utility is
        averaged, by how often each was shown. A column of which every id has one value is the
        id's own; where a few ids have several, a warning says so, and each of these has its mean,
        or the category it had most often. Rows of ``items`` keep what they say. With
        ``items`` None holds nothing. Behind a pipeline the columns are those that the model at its
        end sees.
    time : number or date, default=None
        When, of a model that was fitted with ``time``. None: at the last time of training.
    groups : {"new", "these"}, default="new"
        Of a model that was fitted with ``prompts``. "new": utilities are means over all prompts
        that there may be, so that intervals hold for prompts to come. "these": means over the
        prompts of the fit, each of which counts alike, with what items have of their own in them.
    unit : {"noise", "elo", "logit"}, default="noise"
        Of utilities, see Notes.
    level : float, default=0.9
        Probability that an interval holds, of each item for itself.
    n_draws : int, default=10000
        Joint draws of the utilities, for ranks and the probability of being best.
    average : "auto", True or False, default="auto"
        Whether the board is a mean over hyperparameters, see Notes. "auto": where they were learned
        by an engine with evidence ("ep", "laplace"), from 5 000 distinct answers at most, and the
        mean is forecast to take seconds. False: at those of the fit, as if they were known.
    random_state : int, RandomState instance, Generator or None, default=0

    Returns
    -------
    board : Bunch
        Arrays of shape (n,), the largest posterior mean first; of several groups the largest group
        first, then by the mean.

        names : names or ids of the items, or their positions where they have neither
        position : row of each in ``items``
        component : number of the group of each, from 0; one where all are joined
        utility : posterior mean, above the mean of the items of its group, in units
        lower, upper : central interval of that difference; infinite for an item that is alone in
            its group, beside other groups
        probability_best : probability of the largest utility, summing to 1; with m groups that of
            the largest in its own, divided by m
        rank_lower, rank_upper : shortest interval of ranks that holds at least ``level``; it has
            room for all items of other groups above and below
        frame : DataFrame of these, one row a rank, where pandas is installed, else None; with
            ``component`` where there are several groups
        n_components : number of groups
        level : float
        unit : str
        unit_length : one unit as a difference of the posterior's own utilities: times this,
            differences of ``utility`` are those of ``predict``
        noise_deviation : σ, the standard deviation of an item's noise, as such a difference; with
            judges that of the reference judge
        n_hyperparameters : hyperparameters that the board is a mean over, 1 if they are taken as
            known; ``unit_length`` and ``noise_deviation`` are those of the fit
        readings : probabilities of the readings of the judges that the answers leave open, which
            the board is a mean over; [1] without judges
        about_judges : sentences on who may answer the wrong way round, where that is open
        about_prompts : sentences on what belongs to the prompts of answers, or that these are
            taken as independent of each other given the utilities
        about_circles : sentences on how far one order holds, with `skpref.kernels.Intransitive`
        lead : Bunch or None
            By how much the first leads the second: their ``names``, the ``margin`` with ``lower``
            and ``upper`` in units, and the ``probability`` that the first is better than the
            second. None where the first has none beside it in its group. See `undecided_pairs`
            for all pairs.
        held : dict
            Value at which each column was held; None where categories were averaged over.

    Raises
    ------
    TypeError
        If the model has no posterior, or users and ``user`` is not told.
    ValueError
        If there is no item, ``level`` does not lie in (0, 1), ``user`` is told and the model has
        no users, ``time`` and it has no times, ``groups="these"`` and no prompts,
        ``average=True`` comes with users or an engine without evidence, or ``at`` comes and the
        model knows no ids or not that column.

    Notes
    -----
    Answers tell the ratio of utilities to the noise, not their size, so that a unit is one of the
    noise. With d the difference of two utilities:

    - "noise": σ, the standard deviation of an item's noise. Of the probit the first wins with
      probability Φ(d/√2), as both items of a duel carry noise. Another likelihood has the σ of
      the probit of equal slope at d = 0 (``likelihood_.utility_noise``).
    - "logit": the expected score of a duel, a tie counting one half, has the slope of
      1/(1 + e⁻ᵈ) at d = 0, which is 1/4. Of a logistic likelihood without ties the two are one;
      of the probit d is √(8/π) = 1.596 times the difference in deviations of a margin's noise,
      and the probabilities differ by 0.018 at most. (The constant 1.702 would halve that, and be
      off where duels are nearly even.)
    - "elo": 400/ln 10 = 173.7 times the logits, so that the expected score is about
      1/(1 + 10^(−d/400)). The zero is the mean of the items, where lists of ratings often have
      1000 or 1500.

    Few answers leave hyperparameters open, and intervals that take those of the fit as known are
    too short, or far too long where the best are at an end. So the board is a mean over some
    points, weighed by evidence times prior. That has a weak prior on ratios to the noise beside the
    priors of the fit: on the deviation that a term of the kernel gives to the margins of the
    answers (median 1, deviation of the logarithm 1) and on thresholds (median 0.5). Where nothing
    was learned, or a `Posterior` is given alone, that is the board. With judges their reliability
    stays as it is. `win_rates` and predictions are those of the fit.

    ``utility``, ``lower`` and ``upper`` are exact for the posterior. The rest is Monte Carlo: the
    standard error of a probability p is √(p(1 − p)/n_draws), at most 0.005 by default; the ends
    of a rank interval are quantiles whose level is known to 0.002. Items of equal features have
    one utility; they share their probability of being best, and their rank intervals have room
    for either order. Between groups all is as in the limit of a level of each group of which
    nothing is known: either of two items is the better one with probability ½. Time and memory grow
    as n² + n · n_draws, that of one factorisation as n³; a mean over hyperparameters takes some 50
    runs of the engine, the last of a warm start each.

    Examples
    --------
    >>> from skpref import ItemTable, PairwisePreferenceRegressor
    >>> from skpref.inspection import leaderboard
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["ann", "bob"]]  # winner first
    >>> players = ItemTable.from_names(games)
    >>> model = PairwisePreferenceRegressor(items=players, noise_variance=0.5, optimizer=None)
    >>> board = leaderboard(model.fit(games))
    >>> print(board)
    Leaderboard of 3 in units of noise, 90 % intervals: rank, utility, rank interval, P(best)
    Votes are taken as independent
       1  ann     1.30  [   0.05,    2.56]    1 to   2    0.868
       2  bob    -0.22  [  -1.38,    0.94]    1 to   3    0.101
       3  cid    -1.09  [  -2.44,    0.26]    2 to   3    0.031
    >>> board.rank_lower.tolist(), board.rank_upper.tolist()
    ([1, 1, 2], [2, 3, 3])
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_number("n_draws", n_draws, low=1, integer=True)
    check_choice("unit", unit, tuple(UNITS))
    ranked = contenders(model, items, user, at, time)
    posterior = ranked.subject.posterior
    _check_groups(groups, posterior)
    over = replace(ranked.subject.over_hyperparameters(average), in_groups=groups == "these")
    mixture = over.averages(ranked.rows, ranked.shares, unit)
    component = ranked.components()
    n_components = int(component.max()) + 1
    relative = mixture.intervals_about_mean(level, component)
    places = _rank_places(ranked.draws(over, unit, n_draws, random_state), component, level)
    order = np.lexsort((-relative.mean, component))
    columns = {
        "names": ranked.names,
        "component": component,
        "utility": relative.mean,
        "lower": relative.lower,
        "upper": relative.upper,
        **places._asdict(),
    }
    columns = {name: column[order] for name, column in columns.items()}
    shown = columns if n_components > 1 else {k: columns[k] for k in columns if k != "component"}
    return _Board(
        **columns,
        n_components=n_components,
        position=order,
        frame=table_frame(shown, range(1, len(order) + 1), name="rank"),
        level=level,
        unit=unit,
        unit_length=unit_length(posterior, unit),
        noise_deviation=noise_deviation(posterior),
        n_hyperparameters=over.n_hyperparameters,
        **_notes_on_model(model, ranked, over, level),
        lead=_lead_of_first(ranked, mixture, order, level),
        held=ranked.held,
    )


def _notes_on_model(
    model: Any, ranked: Contenders, over: InspectedMixture, level: float
) -> dict[str, Any]:
    """Return what a board says of judges, prompts and circles."""
    last = estimator_of(model)
    judges = getattr(last.steps[-1][1] if hasattr(last, "steps") else last, "judges_", None)
    return {
        "readings": np.ones(1) if judges is None else judges.weights,
        "about_judges": readings_in_words(judges),
        "about_prompts": _prompts_in_words(over),
        "about_circles": _circles_in_words(ranked.subject, level),
    }


def _check_groups(groups: str, posterior: Any) -> None:
    """Raise ValueError unless the board of a posterior can be of such groups."""
    check_choice("groups", groups, GROUPS)
    if groups == "these" and posterior.reader.prompts is None:
        raise ValueError(
            "got groups='these' with a model that was fitted without prompts; groups='new' is "
            "allowed. Pass prompts= to fit, or leave groups= out."
        )


class _Board(Bunch):
    """A leaderboard, which shows its first places."""

    def __repr__(self) -> str:
        rows, heads = self._rows(_SHOWN), self._group_heads()
        width = max((len(name) for name, *_ in rows), default=0)
        lines = [f"{self._head()}: rank, utility, rank interval, P(best)"]
        lines += self._notes()
        for k, (name, mean, low, high, first, last, best) in enumerate(rows, start=1):
            lines += heads.get(k, [])
            lines.append(
                f"  {k:2d}  {name:<{width}}  {mean:7.2f}  [{low:7.2f}, {high:7.2f}]"
                f"  {first:3d} to {last:3d}  {probability_text(best):>7}"
            )
        return "\n".join(
            [*lines, *[f"  {self._hidden_in_words()}"] * bool(self._hidden_in_words())]
        )

    def _repr_html_(self) -> str:
        """Return the first places as a table of HTML, for notebooks."""
        titles, rows = self.cells(_SHOWN)
        return html_table(
            ". ".join([self._head(), *self._notes()]), rows, titles, self._hidden_in_words()
        )

    def cells(self, top: int | None = None) -> tuple[list[str], list[list]]:
        """Return the heads and rows of a table of the first places, or of all."""
        several = self["n_components"] > 1
        titles = ["rank", "name", *["group"] * several, "utility"]
        titles += [f"{100.0 * self['level']:g} % interval", "rank interval", "P(best)"]
        rows = [
            [
                k,
                name,
                *[self["component"][k - 1] + 1] * several,
                f"{mean:.2f}",
                f"{low:.2f} to {high:.2f}" if np.isfinite(high - low) else "–",
                str(first) if first == last else f"{first}–{last}",
                probability_text(best),
            ]
            for k, (name, mean, low, high, first, last, best) in enumerate(self._rows(top), 1)
        ]
        return titles, rows

    def _notes(self):
        """Return sentences on groups of items, judges, prompts and circles of the fit."""
        of_fit = (self[f"about_{what}"] for what in ("judges", "prompts", "circles"))
        return [*self._about_groups(), *chain.from_iterable(of_fit)]

    def _group_heads(self):
        """Return lines above the first place of each group; of all lone items one line."""
        if self["n_components"] == 1:
            return {}
        component, sizes = self["component"], np.bincount(self["component"])
        starts = np.flatnonzero(np.diff(component, prepend=-1))
        heads = {k + 1: [f"  group {component[k] + 1}"] for k in starts if sizes[component[k]] > 1}
        alone = np.flatnonzero(sizes[component] == 1)[:1]
        return heads | {k + 1: ["  alone"] for k in alone}

    def _about_groups(self):
        """Return in words how many groups there are, if there are several."""
        if self["n_components"] == 1:
            return []
        groups = components_in_words(self["names"], self["component"])
        return [f"{groups}. Across groups nothing is decided: nobody compared their items"]

    def _head(self):
        """Return the title of the board: its size, unit and level."""
        percent = f"{100.0 * self['level']:g} %"
        return (
            f"Leaderboard of {len(self['names'])} in units of {self['unit']}, {percent} intervals"
        )

    def _rows(self, top):
        """Return name, utility with ends, rank interval and P(best) of the first places."""
        table_rows = []
        for k, name in enumerate(self["names"][:top].tolist()):
            # 0 without a sign
            utility = (round(float(self[of][k]), 2) + 0.0 for of in _ENDS)
            ranks = self["rank_lower"][k], self["rank_upper"][k]
            table_rows.append((printable_text(name), *utility, *ranks, self["probability_best"][k]))
        return table_rows

    def _hidden_in_words(self):
        """Return in words how many places are not shown; empty if none."""
        n_hidden = len(self["names"]) - _SHOWN
        return f"… {n_hidden} more" if n_hidden > 0 else ""


def _prompts_in_words(over: InspectedMixture) -> list[str]:
    """Say in words how much of a vote belongs to its prompt, or that votes are independent."""
    posteriors = [subject.posterior for subject in over.subjects]
    if posteriors[0].reader.prompts is None:
        return ["Votes are taken as independent"]
    effects = np.array([each.effect_variance for each in posteriors])
    if not effects.any():
        return [
            "There are no two prompts of which one has several votes, so that what belongs to a "
            "prompt counts as noise, or as utility"
        ]
    noise = np.array([each.likelihood.utility_noise for each in posteriors])
    share = float(over.weights @ (effects / (effects + noise)))
    prompts = "the prompts at hand" if over.in_groups else "all prompts there may be"
    return [
        f"Utilities are means over {prompts}; what an item has of its own in a "
        f"prompt is {share:.0%} of the variance beside them in a vote. The unit is that of a vote "
        "on a new prompt"
    ]


def _circles_in_words(subject: Inspected, level: float) -> list[str]:
    """Say in words by how much one order of the items holds, where circles may be."""
    if not isinstance(subject.posterior, IntransitivePosterior):
        return []
    circles = intransitivity(subject.posterior, level=level)
    return [
        f"One order explains {1.0 - circles.share:.0%} ({1.0 - circles.upper:.0%} to "
        f"{1.0 - circles.lower:.0%}) of what decides duels beside noise; this board is of that "
        "order alone, win_rates has the circles too"
    ]


def _lead_of_first(
    ranked: Contenders, mixture: Mixture, order: NDArray[np.intp], level: float
) -> Bunch | None:
    """Return by what margin the first leads the second; None of one item alone."""
    component = ranked.components()[order]
    order = order[component == component[0]]
    if len(order) < 2:
        return None
    first, second = order[:1], order[1:2]
    lead_margin = mixture.margins(first, second, level)
    return PrintableBunch(
        names=ranked.names[order[:2]],
        margin=float(lead_margin.mean[0]),
        lower=float(lead_margin.lower[0]),
        upper=float(lead_margin.upper[0]),
        probability=float(mixture.better(first, second)[0]),
    )


def leaderboards(
    model: Any,
    by: Any,
    items: Any = None,
    *,
    user: Any = None,
    at: Mapping | ArrayLike | None = None,
    time: Any = None,
    **options: Any,
) -> dict[Any, Bunch]:
    """Return a leaderboard for each group of answers: a category of prompts, a language.

    Groups share what they have in common as the kernel says it. With one effect for each id and one
    for each id in each group, as in `skpref.kernels.leaderboard_kernel`, the board of a group is
    drawn to that of all answers, the more so the fewer answers the group has (partial pooling).

    Parameters
    ----------
    model
        As in `leaderboard`; it knows ids, and its kernel sees the column of the groups.
    by : str or int
        That column, by its name or position. Both items of an answer have the same value.
    items, user, at, time
        As in `leaderboard`.
    **options
        Further parameters of `leaderboard`, such as ``unit`` and ``level``.

    Returns
    -------
    boards : dict
        A board, as `leaderboard` gives it, for each value of the column, that of most answers
        first; under the groups' own names where ``items`` are votes that tell them. Their average
        over the groups, by how often each was shown, is `leaderboard`.

    Raises
    ------
    TypeError, ValueError
        As by `leaderboard`; if the kernel does not see the column, so that all boards were one; if
        it has more than 20 values, and fewer than 5 answers for each.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import leaderboards
    >>> from skpref.kernels import leaderboard_kernel
    >>> group = np.repeat([0.0, 1.0], 60)  # ids 7 and 8: each is the better one of a group
    >>> X = np.stack([np.c_[np.full(120, side), group] for side in (7.0, 8.0)], axis=1)
    >>> y = (np.arange(120) % 5 > 0) == (group == 0)
    >>> kernel = leaderboard_kernel(X, id_column=0, by=1)
    >>> model = PairwisePreferenceRegressor(kernel, id_column=0, optimizer=None).fit(X, y)
    >>> {group: board.names.tolist() for group, board in leaderboards(model, by=1).items()}
    {0: [7, 8], 1: [8, 7]}
    """
    ranked = contenders(model, items, user, {} if at is None else at, time)
    columns = ranked.columns or Columns(ranked.subject)
    place = columns.place(by)
    if place not in columns.categories | columns.measured:
        raise ValueError(
            f"The kernel {ranked.subject.posterior.kernel} does not see column {by!r}: all groups "
            "would have one board. Give it a term for ids within groups, as "
            "skpref.kernels.leaderboard_kernel(X, by=...) does."
        )
    held = columns.held_values(at)
    if place in held:
        raise ValueError(f"at= holds column {by!r}, which tells the groups apart; leave it out.")
    held = {j: columns.users(j, value) for j, value in held.items()}
    values, shares = columns.combinations([place])
    check_groups_repeat(by, len(values), columns.weight.sum() / 2.0)  # two items an answer
    boards = {}
    for value in values[np.argsort(-shares, kind="stable"), 0].tolist():
        category = columns.users(place, value)
        whole = isinstance(category, float) and category.is_integer()
        boards[int(category) if whole else category] = leaderboard(
            model,
            items,
            user=user,
            at={**held, place: category},
            time=time,
            **options,
        )
    return boards


def undecided_pairs(
    model: Any,
    items: Any = None,
    *,
    user: Any = None,
    at: Mapping | ArrayLike | None = None,
    time: Any = None,
    unit: str = "noise",
    level: float = 0.9,
    average: bool | str = "auto",
) -> Bunch:
    """Return the pairs of items of which the answers do not say which is better.

    Pairs of items that neither answers nor the kernel join are among them: the prior alone would
    decide these.

    Parameters
    ----------
    model, items, user, at, time, unit
        As in `leaderboard`.
    level : float, default=0.9
        A pair is undecided if neither is better with a probability above 1 - (1 - level)/2, .95 by
        default: the central interval of their margin holds zero.
    average : "auto", True or False, default="auto"
        As in `leaderboard`.

    Returns
    -------
    pairs : Bunch
        Arrays of shape (n_pairs,), in the order of the board.

        first, second : names as in `leaderboard`; the first has the larger posterior mean
        probability : that the first is better, without noise
        margin, lower, upper : by how much, in units
        prior_alone : bool, whether the two are of different groups, see `connected_items`;
            ``probability`` is then ½, ``margin`` NaN, and the interval infinite
        n_decided : number of the other pairs
        n_components : number of groups
        frame : DataFrame of these arrays where pandas is installed, else None; with
            ``prior_alone`` where there are several groups
        level, unit

    Raises
    ------
    TypeError, ValueError
        As by `leaderboard`.

    Notes
    -----
    Nothing is drawn. Each pair is looked at for itself: of many pairs that are called decided, some
    are not. Time and memory grow as the square of the number of items.

    Examples
    --------
    >>> from skpref import ItemTable, PairwisePreferenceRegressor
    >>> from skpref.inspection import undecided_pairs
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["ann", "bob"]]  # winner first
    >>> players = ItemTable.from_names(games)
    >>> model = PairwisePreferenceRegressor(items=players, noise_variance=0.5, optimizer=None)
    >>> pairs = undecided_pairs(model.fit(games))
    >>> list(zip(pairs.first.tolist(), pairs.second.tolist())), pairs.probability.round(2).tolist()
    ([('ann', 'bob'), ('bob', 'cid')], [0.89, 0.74])
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_choice("unit", unit, tuple(UNITS))
    ranked = contenders(model, items, user, at, time)
    over = ranked.subject.over_hyperparameters(average)
    mixture = over.averages(ranked.rows, ranked.shares, unit)
    component = ranked.components()
    order = np.lexsort((-mixture.mean, component))
    first, second = (order[each] for each in np.triu_indices(len(order), 1))
    sure = mixture.better(first, second)
    sure[component[first] != component[second]] = 0.5
    tail = 0.5 * (1.0 - level)
    open_ = (sure > tail) & (sure < 1.0 - tail)
    first, second, sure = first[open_], second[open_], sure[open_]
    across = component[first] != component[second]
    margins = mixture.margins(first, second, level)
    columns = {
        "first": ranked.names[first],
        "second": ranked.names[second],
        "probability": sure,
        "margin": np.where(across, np.nan, margins.mean),
        "lower": np.where(across, -np.inf, margins.lower),
        "upper": np.where(across, np.inf, margins.upper),
    }
    n_components = int(component.max()) + 1
    shown = columns | {"prior_alone": across} if n_components > 1 else columns
    return PrintableBunch(
        **columns,
        prior_alone=across,
        n_decided=len(open_) - len(first),
        n_components=n_components,
        frame=table_frame(shown, range(len(first))),
        level=level,
        unit=unit,
    )


def win_rates(
    model: Any,
    items: Any = None,
    *,
    user: Any = None,
    at: Mapping | ArrayLike | None = None,
    time: Any = None,
    order: int = 0,
) -> Bunch:
    """Return how often each item is expected to beat each other one, with the noise of judges.

    Parameters
    ----------
    model, items, user, at, time
        As in `leaderboard`; with judges the rates are those of the reference judge. Over
        categories the rates are averaged.
    order : {0, 1, -1}, default=0
        Who is shown first, where there is an order effect: 1 the item of the row, -1 that of the
        column, 0 neither.

    Returns
    -------
    rates : Bunch
        The largest posterior mean first.

        names, position : as in `leaderboard`
        component : as in `leaderboard`; what is said of items of different groups the prior says
            alone
        n_components : number of groups
        win : ndarray of shape (n, n), the probability that the item of the row beats that of the
            column
        tie : ndarray of shape (n, n), that of a tie; zero without ties
        score : ndarray of shape (n,), the mean over the other items of its group of ``win`` + ½
            ``tie``; NaN where there is none
        frame : DataFrame of ``win``, named along both sides, where pandas is installed, else None

    Notes
    -----
    ``win`` + ``win.T`` + ``tie`` is one where ``order`` is 0. On the diagonal stands a duel between
    two items that are equal. They are averages over the posterior, so that two items of which
    little is known meet at about even chances. Time grows as n² times the number of items that
    answers are about.

    Examples
    --------
    >>> from skpref import ItemTable, PairwisePreferenceRegressor
    >>> from skpref.inspection import win_rates
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["ann", "bob"]]  # winner first
    >>> players = ItemTable.from_names(games)
    >>> model = PairwisePreferenceRegressor(items=players, noise_variance=0.5, optimizer=None)
    >>> rates = win_rates(model.fit(games))
    >>> rates.names.tolist(), rates.win.round(2).tolist()
    (['ann', 'bob', 'cid'], [[0.5, 0.79, 0.88], [0.21, 0.5, 0.67], [0.12, 0.33, 0.5]])
    """
    check_number("order", order, low=-1, high=1, integer=True)
    ranked = contenders(model, items, user, at, time)
    n = len(ranked)
    by_mean = np.argsort(-ranked.means(), kind="stable")
    ranked = ranked.take(by_mean)
    # With neither shown first, one half of the table follows from the other.
    i, j = np.triu_indices(n) if order == 0 else np.divmod(np.arange(n * n), n)
    subject, shown_first = ranked.subject.at(len(i)), np.full(len(i), order)
    outcome_proba = sum(
        share * np.exp(subject.outcome_log_proba(rows[i], rows[j], shown_first))
        for share, rows in zip(ranked.shares, np.moveaxis(ranked.rows, 1, 0), strict=True)
    )
    win, tie = np.empty((n, n)), np.zeros((n, n))
    if order == 0:
        win[j, i] = first_wins(outcome_proba[:, ::-1])
    win[i, j] = first_wins(outcome_proba)
    if outcome_proba.shape[1] % 2:  # a tie is in the middle
        tie[i, j] = outcome_proba[:, outcome_proba.shape[1] // 2]
        if order == 0:
            tie[j, i] = tie[i, j]
    scores = win + 0.5 * tie
    component = ranked.components()
    is_comparable = (component[:, None] == component) & ~np.eye(n, dtype=bool)
    n_beside = is_comparable.sum(axis=1)
    against = np.where(is_comparable, scores, 0.0).sum(axis=1)
    score = np.where(n_beside > 0, against / np.maximum(n_beside, 1), np.nan)
    names = ranked.names
    frame = table_frame(win, list(names), list(names))
    return PrintableBunch(
        names=names,
        position=by_mean,
        component=component,
        n_components=int(component.max()) + 1,
        win=win,
        tie=tie,
        score=score,
        frame=frame,
    )


class _Places(NamedTuple):
    """Probability of being best, and interval of the rank, each of shape (n,)."""

    probability_best: Array
    rank_lower: NDArray[np.intp]
    rank_upper: NDArray[np.intp]


def _rank_places(
    drawn: tuple[Array, NDArray[np.intp], NDArray[np.intp]],
    component: NDArray[np.intp],
    level: float,
) -> _Places:
    """Return each item's probability of being best and rank interval, within its component.

    Parameters
    ----------
    drawn : tuple
        As `Contenders.draws` gives it.
    component : ndarray of shape (n,)
    level : float
    """
    draws, inverse, counts = drawn
    n, n_components = len(component), int(component.max()) + 1
    best, lower, upper = np.empty(n), np.empty(n, dtype=np.intp), np.empty(n, dtype=np.intp)
    by_component = np.split(
        np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1]
    )
    for rows in by_component:
        some, at = np.unique(inverse[rows], return_inverse=True)
        at = at.reshape(-1)
        part = draws[some] if len(some) < len(draws) else draws
        share, ranks = _rank_draws(part, counts[some])
        low, high = _shortest_interval(ranks, level)
        best[rows] = share[at] / n_components
        lower[rows], upper[rows] = low[at], (high + counts[some] - 1)[at] + n - len(rows)
    return _Places(best, lower, upper)


def _rank_draws(draws: Array, counts: NDArray[np.intp]) -> tuple[Array, NDArray[np.int32]]:
    """Return each item's probability of being best, and ranks (n, n_draws) from 1.

    Parameters
    ----------
    draws : ndarray of shape (n, n_draws)
    counts : ndarray of shape (n,)
        Copies of each item; the rank is that of the first of them.
    """
    n, n_draws = draws.shape
    ranks = np.empty((n_draws, n), dtype=np.int32)
    wins = np.zeros(n)
    for block in row_blocks(n_draws, n, BLOCK):
        order = np.argsort(-draws[:, block].T, axis=1)
        wins += np.bincount(order[:, 0], minlength=n)
        copies = counts[order]
        first = np.cumsum(copies, axis=1) - copies + 1
        np.put_along_axis(ranks[block], order, first.astype(np.int32), axis=1)
    return wins / (n_draws * counts), ranks.T


def _shortest_interval(
    ranks: NDArray[np.int32], level: float
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the shortest interval of each item's ranks that holds at least ``level``.

    Central intervals leave out less than they may at either end, as ranks are whole numbers. Of
    intervals as short the one that holds most, then the first.
    """
    n_draws = ranks.shape[1]
    needed = int(np.ceil(level * n_draws - 1e-9))
    ordered = np.sort(ranks, axis=1)
    # An interval that is shortest begins and ends at a draw.
    length = ordered[:, needed - 1 :] - ordered[:, : n_draws - needed + 1]
    n = len(ranks)
    low, high = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    for i in range(n):
        begins = np.unique(ordered[i, np.flatnonzero(length[i] == length[i].min())])
        ends = begins + length[i].min()
        within = np.searchsorted(ordered[i], ends, "right") - np.searchsorted(ordered[i], begins)
        at = int(np.argmax(within))
        low[i], high[i] = begins[at], ends[at]
    return low, high
