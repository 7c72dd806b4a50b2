"""Builders of duels and sets from what people have, and item tables: what users need of `data`."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct
from sklearn.utils import Bunch

from skpref.data import (
    DUEL,
    SET,
    TIE,
    Comparisons,
    DuelFrame,
    Duels,
    ItemTable,
    Margins,
    Rows,
    VoteOptions,
    balance_orientation,
    distinct_rows,
    from_choices,
    from_columns,
    from_pairs,
    from_probabilities,
    from_rankings,
    from_ratings,
    from_wins,
    is_missing,
    parse_outcomes,
    ranking_groups,
    rated_pairs,
    read_votes,
)
from skpref.kernels import Identity, OnColumns, Teams

__all__ = [
    "DUEL",
    "SET",
    "TIE",
    "Comparisons",
    "DuelFrame",
    "Duels",
    "ItemTable",
    "Margins",
    "Rows",
    "TeamDuels",
    "add_outside_option",
    "balance_orientation",
    "distinct_rows",
    "from_choices",
    "from_columns",
    "from_pairs",
    "from_probabilities",
    "from_rankings",
    "from_ratings",
    "from_teams",
    "from_votes",
    "from_wins",
    "parse_outcomes",
    "ranking_groups",
    "rated_pairs",
]


def add_outside_option(X: ArrayLike) -> np.ndarray:
    """Return sets with an outside option as one more item of each, for answers "none of these".

    The position of the outside option is the answer "none of these"; that of an item says that it
    is better than the others and than the outside option. Items have two more columns, see
    `skpref.kernels.outside_option_kernel`.

    Parameters
    ----------
    X : array-like of shape (n_sets, n_items, n_features)
        Numbers; rows of NaN at the end of a set of fewer items.

    Returns
    -------
    ndarray of shape (n_sets, n_items + 1, n_features + 2)
        The outside option comes after the last item of each set.

    Raises
    ------
    ValueError
        If X has no three dimensions or no item.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.duels import add_outside_option
    >>> from skpref.kernels import outside_option_kernel
    >>> X = np.array([[[0.1], [0.3]], [[0.2], [0.8]], [[0.7], [0.9]]])
    >>> shown, answers = add_outside_option(X), [2, 1, 0]  # of the first two none
    >>> model = PairwisePreferenceRegressor(outside_option_kernel(RBF([0.3]), 1), optimizer=None)
    >>> model.fit(shown, answers).predict_proba(add_outside_option([[[0.2], [0.7]]])).round(2)
    array([[0.01, 0.94, 0.06]])
    """
    if np.ndim(X) != 3 or not np.size(X):
        raise ValueError(
            f"got X of shape {np.shape(X)}; (n_sets, n_items, n_features) is allowed. To sets of "
            "names add one name, such as 'none'."
        )
    items = np.asarray(X, dtype=np.float64)
    n_sets, n_items, n_features = items.shape
    is_item = ~np.all(np.isnan(items), axis=2)
    shown = np.full((n_sets, n_items + 1, n_features + 2), np.nan)
    shown[:, :n_items, :n_features] = items
    shown[:, :n_items, n_features:] = np.where(is_item[..., None], [1.0, 0.0], np.nan)
    middle = np.append(items[is_item].mean(axis=0), [0.0, 1.0])
    shown[np.arange(n_sets), n_items - np.argmax(is_item[:, ::-1], axis=1)] = middle
    return shown


def from_votes(
    frame: Any,
    a: Any = None,
    b: Any = None,
    winner: Any = None,
    judge: Any = None,
    controls: Any = None,
    prompt: Any = None,
    time: Any = None,
    **options: Any,
) -> Bunch:
    """Build duels from a table of votes as arenas publish them, one vote a row.

    Columns are found by their names, upper or lower case, spaces, dashes and underscores aside;
    those that are not named are guessed from the names that arenas use. What cannot be used is
    left out, counted in ``dropped``, said in ``summary``, and a warning says so if it is more than
    a twentieth. Names of competitors are stripped of spaces around them; of those that differ in
    case see ``alike``.

    Parameters
    ----------
    frame : DataFrame, pyarrow.Table, dict of array-likes, str or path
        A frame of any library, or a file that names its columns: CSV (".csv", ".tsv", ".txt";
        separated by commas, semicolons, tabs or bars) and JSON (".json", ".jsonl": records), also
        with ".gz", up to 512 MiB when unpacked, or Parquet (".parquet"; read with polars or
        pyarrow). A field of records in a column is the column "column.field".
    a, b : column names, default=None
        Who the first and the second competitor are. None: "model_a" and "model_b", "left" and
        "right", "a" and "b" and the like; "winner" and "loser" if there are no others, and then
        there is no ``winner``.
    winner : column name, or tuple or list of two or three of them, default=None
        The name of either competitor or side ("model_a", "left", "A"), a word for a tie ("tie",
        "draw", "equal", "no difference") or for two bad answers ("tie (bothbad)", "both bad",
        "neither"), a result ("1-0", "1/2-1/2") or a verdict ("[[A]]", "A>B"); or numbers: -1, 0 and
        1, or 0, 0.5 and 1, or 1 (the first), 1.5 and 2. A tuple:
        columns that are 1 where the first won, where the second did, and where there was a tie.
        None: "winner", "vote", "verdict" and the like, or
        "winner_model_a", "winner_model_b" and "winner_tie".
    judge, prompt, time : column name, default=None
        Who voted, about what, and when. If named, votes without one are left out. Where the name
        of a judge is that of a competitor in the vote, as of language models that judge each other,
        the control "own answer" tells by how much judges favour what is their own: it is 1 beside
        the judge and 0 beside others.
        None: "judge", "annotator" and the like; "question_id", "prompt" and the like; "tstamp",
        "timestamp" and the like, if there is one.
    controls : str, pair of str, or list of these, default=None
        What else may decide a vote, as numbers: "length" stands for the columns "length_a" and
        "length_b" (or whatever the two sides are called), or for one column of this name, which
        holds the difference of the first and the second. A pair of column names, or
        "length_a-length_b", says which two they are.
    by : column name, default=None
        Groups of votes, such as a category of prompts or a language, in each of which a competitor
        has an effect of its own, see `skpref.inspection.leaderboards`. Votes without a value are
        left out.
    outcomes : dict, default=None
        What values of ``winner`` mean, before all else: 1 the first won, -1 the second, 0 a tie.
        ``{1: 1, 2: -1, 0: 0}`` is for numbers of which 0 is a draw.
    soft : bool, default=False
        Whether ``winner`` holds the probability that the first won (or numbers from 1, the first
        surely, to 2, the second), or those of the outcomes in its columns: each vote becomes a row
        for each outcome that is possible, with weights, see `from_probabilities`. 0.5 is then no
        tie.
    both_bad : {"tie", "drop"}, default="tie"
        Whether votes that both are bad are ties or left out. They say that the two are alike, and
        how good they are beside others not in the vote, which a model of duels does not use.
    ties : bool, default=True
        False: ties are left out.
    missing : {"drop", "mean"}, default="drop"
        Votes that lack a control are left out, or get its mean (of a difference 0).
    alike : {"apart", "merge"}, default="apart"
        Names of competitors that differ in case, spaces, dashes, dots, underscores, the form of
        Unicode or characters of no width alone are different, and a warning shows them; or they
        are one, in the spelling of most votes.
    encoding : str, default=None
        Of a CSV or JSON file, as `open` takes it: "cp1252", for one. None: UTF-8, or UTF-16 where
        the file begins with its mark.
    decimal : {".", ","}, default="."
        What numbers in texts have before their decimals.
    like : Bunch, default=None
        Votes that these follow, as the next piece of a stream or a test set do: competitors keep
        their positions, new ones come after them, controls have the same units, and y the same
        labels. A warning names rows that cannot be used, however few.

    Returns
    -------
    votes : Bunch
        X : ndarray of int of shape (n_votes, 2), or of float of shape (n_votes, 2, 1 + n_controls)
            Positions in ``item_table``; with controls these positions, then the controls of the
            side, each less its mean and in root mean squares of the differences a - b. A
            difference d is d / 2 beside -d / 2, so that margins are right. With ``by`` the last
            column is the number of the group.
        y : ndarray of int64 of shape (n_votes,)
            1 if the first won, and 0 if the second did; with ties -1 if the second won, and 0 for
            a tie; -1 and 1 of soft votes. Where one side won all, every second vote is turned
            round.
        item_table : ItemTable
            The competitors, sorted by name; ``item_table.names`` are their names.
        metadata : dict
            What goes along in ``fit(votes.X, votes.y, **votes.metadata)``: "order" where there is
            a ``winner``, "judges", "time" and "prompts" if they were named (of the last two
            the first alone, as `fit` does not take both), and "sample_weight" of soft votes. An
            order is used with ``order_effect_bounds``, times with ``drift``.
        judges, prompts, times : ndarray of shape (n_votes,) or None
            Values of their own type: None in ``judges`` and ``prompts``, and NaN or NaT in
            ``times``, where a vote has none. Dates are of numpy's datetime64, those with a time
            zone in UTC.
        times_are : {"numbers", "dates", "dates in UTC"} or None
            What the times were; dates with a time zone count as UTC.
        order : ndarray of int8 of shape (n_votes,)
            For ``fit(..., order=)`` of a model with ``order_effect_bounds``: 1 if the competitor in
            column ``a`` is the first of the row of X, -1 if the vote was turned round, 0 throughout
            where columns are of winners and losers.
        rows : ndarray of int of shape (n_votes,)
            Rows of the table that the votes are from; of soft votes ``groups=rows`` keeps those of
            one vote in one fold.
        sample_weight : ndarray of float64 of shape (n_votes,) or None
            Of soft votes.
        controls : list of str
            Names of the controls; the last may be "own answer", see ``judge``.
        control_center, control_scale : ndarray of shape (n_controls,)
            A control in X is ``(value - control_center) / control_scale``; an effect a unit of the
            user's is that of X divided by ``control_scale``.
        by : column name or None
        groups : list or None
            The values of that column, that of most votes first.
        n_read : int
            Rows of the table.
        dropped : dict of str to int
            Number of votes left out by reason.
        summary : str
            The same in one line.
        kernel : kernel
            Independent competitors, with controls a linear part, with groups an effect of each
            competitor in each; the variances of the latter are learned.
        params : dict
            Parameters for ``PairwisePreferenceRegressor(**votes.params)``: the kernel, the
            competitors (``items``) and where X has them (``id_column``), the noise to start from
            with its bounds, and with ties the threshold.

    Raises
    ------
    ValueError
        For columns that are not there or are there twice or have another part already (a winner
        or control that is a competitor's column, a control that is the time), cells that hold
        lists, floats that have rounded ids, files that cannot be read, outcomes of which none can
        be read or only wins of one side, ties alone, controls without numbers or that never differ,
        or if no vote is left.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.duels import from_votes
    >>> votes = from_votes(
    ...     {
    ...         "model_a": ["ant", "bee", "cow", "ant", "ant"],
    ...         "model_b": ["bee", "cow", "ant", "bee", "cow"],
    ...         "winner": ["model_a", "Model B", "tie", "bee", "tie (bothbad)"],
    ...         "length_a": [120, 80, 200, 90, 100],
    ...         "length_b": [100, 90, 150, 110, 100],
    ...     },
    ...     controls="length",
    ...     both_bad="drop",
    ... )
    >>> votes.X.shape, votes.y.tolist(), votes.item_table.names.tolist(), votes.controls
    ((4, 2, 2), [1, -1, 0, -1], ['ant', 'bee', 'cow'], ['length'])
    >>> votes.summary
    '4 of 5 votes on 3 competitors; left out: 1 both bad (both_bad="drop")'
    >>> model = PairwisePreferenceRegressor(**votes.params).fit(votes.X, votes.y)
    >>> votes.item_table.names[model.predict([[0, 0.0], [1, 0.0], [2, 0.0]]).argmax()]
    'cow'
    """
    columns = {"a": a, "b": b, "winner": winner, "judge": judge, "controls": controls}
    like = options.get("like")
    votes = read_votes(frame, VoteOptions(**columns, prompt=prompt, time=time, **options))
    params: dict[str, Any] = {"items": votes.item_table}
    votes.kernel = Identity()
    if votes.X.ndim == 3:
        votes.kernel = OnColumns(Identity(), [0])
        params["id_column"] = 0
    last = 1 + len(votes.controls)
    if votes.controls:
        slopes = ConstantKernel(1.0, (1e-4, 1e4)) * DotProduct(0.0, "fixed")
        votes.kernel += OnColumns(slopes, list(range(1, last)))
    if votes.groups is not None:
        votes.kernel += ConstantKernel(0.1, (1e-4, 10.0)) * OnColumns(Identity(), [0, last])
    params["kernel"] = votes.kernel
    tied = (votes.y == 0).any() and (votes.y < 0).any()
    if tied or (like is not None and "tie_threshold" in like.params):
        params |= {"tie_threshold": 0.1, "tie_threshold_bounds": (1e-4, 1e2)}
    # From a small noise the first step of the search may lead where no control has an effect.
    # Competitors may be nearly alike: their differences are then small beside the noise.
    params |= {"noise_variance": 1.0, "noise_variance_bounds": (1e-3, 1e3)}
    votes.params = params
    return votes


class TeamDuels(NamedTuple):
    """Duels of teams, see `from_teams`.

    Attributes
    ----------
    X : ndarray of shape (n_duels, 2, n_columns)
        Of each team the numbers of its members, -1 where it has fewer than the largest, then, if
        members have weights, these.
    names : list
        Who the members are, by number.
    params : dict
        Parameters for ``PairwisePreferenceRegressor(**duels.params)``: the kernel `Teams`, in which
        all members are alike before there are answers, and the noise of an answer to start from
        with its bounds, beside members of unit variance.

    Examples
    --------
    >>> from skpref.duels import from_teams
    >>> duels = from_teams([["ann", "bob"]], [["cid"]])
    >>> duels.rows([["bob"], ["cid", "ann"]])
    array([[ 1., -1.],
           [ 2.,  0.]])
    """

    X: np.ndarray
    names: list[Hashable]
    params: dict[str, Any]

    def rows(
        self,
        teams: Iterable[Sequence[Hashable]],
        weights: Iterable[Sequence[float]] | None = None,
    ) -> np.ndarray:
        """Return teams as rows of X, for ``predict`` and boards; one player is a team of one.

        Parameters
        ----------
        teams : iterable of sequences
            The names of the members of each.
        weights : iterable of sequences of float, optional
            Of each member of each, if the duels have weights; all 1 by default.

        Returns
        -------
        ndarray of shape (n_teams, n_columns)

        Raises
        ------
        ValueError
            If a name is not known (add them by ``from_teams(..., like=duels)``), a team is empty,
            larger than the largest or names one member twice, or weights do not fit.
        """
        size = len(self.params["kernel"].members)
        weighted = self.params["kernel"].weights is not None
        if weights is not None and not weighted:
            raise ValueError("These duels have no weights; give them to from_teams as well.")
        members, shares = _check_teams(teams, weights, "teams")
        number = {name: k for k, name in enumerate(self.names)}
        team_rows = np.full((len(members), size * (2 if weighted else 1)), -1.0)
        if weighted:
            team_rows[:, size:] = 0.0
        for k, team in enumerate(members):
            if len(team) > size:
                raise ValueError(
                    f"Team {k} has {len(team)} members; these duels have room for {size} at most. "
                    f"Give from_teams all teams at once, or first a table with a team of "
                    f"{len(team)}, and fit anew."
                )
            new = [name for name in team if name not in number]
            if new:
                raise ValueError(
                    f"{new[0]!r} in team {k} is not known. Add members by "
                    "from_teams(..., like=duels)."
                )
            team_rows[k, : len(team)] = [number[name] for name in team]
            if weighted:
                team_rows[k, size : size + len(team)] = shares[k]
        return team_rows


def _check_teams(teams, weights, noun):
    """Return teams as lists of names, and their weights as lists; ValueError for others."""
    if isinstance(teams, str):
        raise ValueError(f"{noun} is a text; give a sequence of teams, each a sequence of names.")
    if hasattr(teams, "columns"):
        raise ValueError(
            f"{noun} is a table; give a sequence of teams, each a sequence of names. Where all are "
            "of one size, the values of its columns are such: frame[columns].to_numpy()."
        )
    members = [_check_team(team, f"Team {k} of {noun}") for k, team in enumerate(teams)]
    if weights is None:
        return members, [[1.0] * len(team) for team in members]
    return members, _check_team_weights(weights, members, noun)


def _check_team(team, title):
    """Return a team as a list of names; ValueError for others."""
    if isinstance(team, str) or not isinstance(team, Iterable):
        kind = "the text " if isinstance(team, str) else ""
        raise ValueError(
            f"{title} is {kind}{team!r}; give a sequence of names, such as [{team!r}]."
        )
    team = list(team)
    if not team:
        raise ValueError(f"{title} has no member.")
    for name in team:
        if not isinstance(name, Hashable):
            raise ValueError(
                f"{title} has the member {name!r}; give names that may be keys of a dict: texts, "
                "numbers or tuples."
            )
        if is_missing(name):
            raise ValueError(
                f"{title} has a member without a name ({name!r}). Leave it out of the team: teams "
                "may differ in size."
            )
    if len(set(team)) < len(team):
        twice = next(name for name in team if team.count(name) > 1)
        raise ValueError(f"{title} names {twice!r} twice; name each member once.")
    return team


def _check_team_weights(weights, members, noun):
    """Return weights of members as lists of numbers; ValueError for others."""
    try:
        shares = [[float(share) for share in team] for team in weights]
    except (TypeError, ValueError):
        raise ValueError(
            f"weights of {noun} must be a sequence of numbers for each team, such as [1.0, 0.5]."
        ) from None
    if [len(team) for team in shares] != [len(team) for team in members]:
        raise ValueError(f"weights of {noun} must have as many numbers a team as it has members.")
    if not all(np.isfinite(share) for team in shares for share in team):
        raise ValueError(f"weights of {noun} must be finite.")
    return shares


def from_teams(
    first: Iterable[Sequence[Hashable]],
    second: Iterable[Sequence[Hashable]],
    weights: tuple[Iterable[Sequence[float]], Iterable[Sequence[float]]] | None = None,
    *,
    like: TeamDuels | None = None,
) -> TeamDuels:
    """Build duels of teams whose utility is the sum of their members': doubles, crews.

    Which team won goes to ``fit`` as ever, and so do times, who played at home and judges. A
    member's own utility is that of a team of one.

    Parameters
    ----------
    first, second : sequences of teams
        The team on either side of each duel, a sequence of names; teams may differ in size.
    weights : pair of sequences, optional
        By what the utility of each member of the first and of the second teams is multiplied, say
        the share of the match that they played. None: 1.
    like : TeamDuels, optional
        Duels that these follow, as the next day's do: members keep their numbers, new ones come
        after them. Teams must not be larger than the largest there.

    Returns
    -------
    TeamDuels

    Raises
    ------
    ValueError
        If sides have different lengths, a team is empty, names a member twice or one of the other
        side, or weights do not fit.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.duels import from_teams
    >>> duels = from_teams(
    ...     [("ann", "bob"), ("ann", "cid"), ("dan", "ann")],
    ...     [("cid", "dan"), ("bob", "dan"), ("bob",)],
    ... )
    >>> duels.names
    ['ann', 'bob', 'cid', 'dan']
    >>> duels.X[2]
    array([[ 3.,  0.],
           [ 1., -1.]])
    >>> model = PairwisePreferenceRegressor(**duels.params).fit(duels.X, [1, 1, 1])
    >>> players = duels.rows([[name] for name in duels.names])
    >>> duels.names[model.predict(players).argmax()]
    'ann'
    """
    if weights is not None and len(weights) != 2:
        raise ValueError(
            f"weights must be a pair, of the first and of the second teams; it has {len(weights)}."
        )
    one_weights, two_weights = (None, None) if weights is None else weights
    first_teams, shares = _check_teams(first, one_weights, "first")
    second_teams, others = _check_teams(second, two_weights, "second")
    if len(first_teams) != len(second_teams):
        raise ValueError(
            f"got {len(first_teams)} teams first and {len(second_teams)} second; give as many."
        )
    for k, (team, rivals) in enumerate(zip(first_teams, second_teams, strict=True)):
        both = set(team) & set(rivals)
        if both:
            raise ValueError(f"{next(iter(both))!r} is on both sides of duel {k}.")
    teams = [*first_teams, *second_teams]
    if like is None:
        names, params = _sorted_members(teams), _team_params(teams, weights is not None)
    else:
        if weights is not None and like.params["kernel"].weights is None:
            raise ValueError("The duels of like have no weights, these do. Give both, or neither.")
        names = list(dict.fromkeys(chain(like.names, *teams)))
        params = like.params
    duels = TeamDuels(np.zeros((0, 2, 0)), names, params)
    has_weights = params["kernel"].weights is not None
    sides = [
        duels.rows(first_teams, shares if has_weights else None),
        duels.rows(second_teams, others if has_weights else None),
    ]
    return duels._replace(X=np.stack(sides, axis=1))


def _sorted_members(teams) -> list[Hashable]:
    """Return each member of teams once, sorted; in the order given where names have no order."""
    names = dict.fromkeys(chain.from_iterable(teams))
    try:
        return sorted(names)
    except TypeError:
        return list(names)


def _team_params(teams, weighted) -> dict[str, Any]:
    """Return the parameters of a model of teams whose members have nothing but names."""
    size = max(map(len, teams), default=1)
    columns = [[k] for k in range(size)]
    after = list(range(size, 2 * size)) if weighted else None
    return {
        "kernel": Teams(OnColumns(Identity(), [0]), columns, after),
        "noise_variance": 1.0,
        "noise_variance_bounds": (1e-3, 1e3),
    }
