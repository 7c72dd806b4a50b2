"""When to stop: whether one competitor is known to be the best, however often one looks."""

from collections.abc import Iterable, Mapping
from math import erfc, log, log1p, pi, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx

from skpref._utils import Array, check_number
from skpref.data import (
    ItemTable,
    check_respondents,
    fill_masked,
    is_frame,
    is_missing,
    positions_of,
)

# Variance of utilities that the forecast of votes starts from, in that of a margin's noise.
_PRIOR_VARIANCE = 0.25
# The largest share of the capital that is staked on one vote: a surprise never takes all.
_MOST = 0.9
# In so many votes with ties the second is thought to have won one.
_CLEAR = 30


class StoppingRule:
    """Is one competitor the best? A test that may be looked at after every vote.

    Every competitor starts as a contender, and is dropped once its votes show that somebody beats
    it. The board is settled when a single one is left, and votes join all competitors: of groups
    that never met none has the best of all. Whatever the truth, how the pairs are
    chosen, how often one looks and when one stops, a false "A is best" is ever said with a
    probability of ``level`` at most.

    Parameters
    ----------
    level : float, default=0.05
        Largest probability that a competitor is ever named the best while another is as good or
        better.
    items : ItemTable, or names of shape (n_items,), default=None
        All competitors. None: those that votes were on so far; one that joins is a contender.
    ties : bool, default=False
        Whether votes may be ties; the labels in y are then -1, 0 and 1.

    Attributes
    ----------
    best : name or None
        The only contender left; None while there are several, if none is left, or while there are
        several groups.
    n_components : int
        Groups of competitors that no vote joins; one without a vote is a group of its own.
    settled : bool
        Whether there is a best.
    contenders : ndarray of names
        Competitors that may be the best, in the order of ``names``.
    names : ndarray of shape (n_items,)
        Competitors, in the order of ``items`` or of their first vote.
    e_values : ndarray of shape (n_items,)
        Evidence against each being the best: the capital of a gambler who started with 1 and
        stakes, before each of its votes, on an opponent that is forecast to be better. A contender
        is dropped when it reaches ``2 / level``, for good.
    n_votes : int
        Votes so far.

    Raises
    ------
    ValueError
        If ``level`` does not lie in (0, 1), or names repeat.

    Notes
    -----
    What is assumed: in a duel of the best competitor its expected score is at least one half, given
    all votes before (a win scores 1, a tie ½). So it is under Bradley–Terry, the probit or any
    other model in which the better one is favoured; votes may depend on the judge or the day;
    pairs may be chosen by all votes before, as by `next_pairs`. Where several votes are on one
    prompt, on which the best need not be favoured, pass ``prompts`` to `update`: what is assumed
    then is so on average over prompts, given all votes on prompts before. Who is shown first must
    be drawn by a fair coin where it matters. Judges who invert their answers on purpose, a best
    that changes, and the choice of pairs or the exclusion of votes by their own outcome are not
    covered. It is the best in the votes as they are: no control, such as the length of an answer,
    is taken out of them.

    Why it holds: if B is the best, the capital against B is a supermartingale: each stake is fixed
    before the vote, and is on an opponent whose expected score is at most one half. By Ville's
    inequality it ever reaches 2/level with a probability of level/2 at most [1]_. A false
    statement about a single best needs that event; where two or more are equally best, one of two
    such events, so that ``level`` bounds it.

    The stakes are those of a gambler who believes in a probit forecast (one Gaussian a competitor,
    updated by each vote): a share 2q − 1 of the capital (at most 0.9) on an opponent that is
    forecast to win with probability q > ½. The capital is then the product of forecast
    probabilities over that of fair coins, the best explanation that "B is best" leaves of those
    votes (universal inference [2]_, vote by vote). A bad forecast costs votes, never the level.

    The cost: a competitor is dropped by its own votes alone, of which it takes at least six, and
    about 2 ln(2/level)/d² beyond what learning costs, where its opponent wins with probability
    ½ + d/2 and d is small. Votes between two others do not count against it. A posterior
    probability of being best that is watched until it exceeds 1 − level needs about half of the
    votes, and is right on average over truths drawn from the prior, even if watched; where the
    first two are equal it names one of them in half of the cases within 3000 votes, and where they
    differ by next to nothing half of these statements are false.

    If no contender is left, votes contradict the assumptions: the best has changed, or there is a
    cycle of which each beats the next.

    References
    ----------
    .. [1] Shafer, "Testing by betting: a strategy for statistical and scientific communication",
       Journal of the Royal Statistical Society A, 2021.
    .. [2] Wasserman, Ramdas, Balakrishnan, "Universal inference", PNAS 2020.

    Examples
    --------
    >>> from skpref.active import StoppingRule
    >>> rule = StoppingRule(level=0.05)
    >>> votes = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"]]  # winner first
    >>> rule.update(votes * 6).contenders.tolist()
    ['ann', 'bob']
    >>> rule.update(votes * 6).best
    'ann'
    """

    def __init__(
        self, level: float = 0.05, *, items: ItemTable | Iterable | None = None, ties: bool = False
    ) -> None:
        check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
        self.level, self.ties, self.n_votes = float(level), bool(ties), 0
        self._place: dict[Any, int] = {}
        self._mean: list[float] = []
        self._variance: list[float] = []
        self._log_e: list[float] = []
        self._dropped: list[bool] = []
        # Groups of competitors as a forest: a competitor nearer to the root of its own.
        self._joined_to: list[int] = []
        self._prompts: set[Any] = set()
        self._labels: tuple[int, int] | None = None
        self._open = items is None
        self._table = items if isinstance(items, ItemTable) else None
        if isinstance(items, ItemTable):
            items = range(len(items)) if items.names is None else items.names.tolist()
        if isinstance(items, str) or (items is not None and not isinstance(items, Iterable)):
            raise TypeError(f"items must be an ItemTable or a list of names; got {items!r}.")
        for name in [] if items is None else np.asarray(fill_masked(items), dtype=object).tolist():
            if name in self._place:
                raise ValueError(f"The name {name!r} stands twice in items. Name each once.")
            self._add_competitor(name)

    # -- what is known -------------------------------------------------------------------

    @property
    def names(self) -> NDArray[Any]:
        """Competitors, in the order of ``items`` or of their first vote."""
        listed = np.empty(len(self._place), dtype=object)
        listed[:] = list(self._place)
        return listed

    @property
    def contenders(self) -> NDArray[Any]:
        """Competitors that may be the best."""
        return self.names[~np.array(self._dropped, dtype=bool)]

    @property
    def best(self) -> Any:
        """The only contender left of competitors that votes join, else None."""
        return self.contenders[0] if self.settled else None

    @property
    def settled(self) -> bool:
        """Whether there is a best."""
        return len(self._place) > 1 and len(self.contenders) == 1 and self.n_components == 1

    @property
    def n_components(self) -> int:
        """Groups of competitors that no vote joins."""
        return sum(place == parent for place, parent in enumerate(self._joined_to))

    @property
    def e_values(self) -> Array:
        """Evidence against each competitor being the best."""
        with np.errstate(over="ignore"):  # ∞ after some thousand votes against one
            return np.exp(np.array(self._log_e, dtype=np.float64))

    def __repr__(self) -> str:
        contenders = self.contenders
        what = (
            f"{len(contenders)} contenders of {len(self._place)}"
            if len(contenders) != 1
            else repr(contenders[0])
        )
        groups = f" in {self.n_components} groups that never met" * (self.n_components > 1)
        return f"<StoppingRule: level {self.level:g}, {self.n_votes} votes, {what}{groups}>"

    # -- votes ---------------------------------------------------------------------------

    def update(
        self, X: Any, y: ArrayLike | None = None, *, prompts: ArrayLike | None = None
    ) -> Self:
        """Take in votes, in the order in which they came.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, 2), or votes
            Names of the two competitors of each vote: texts or integers; with an ItemTable of
            names as ``items`` integers are its positions. What `skpref.duels.from_votes` gave has
            names and labels, and its ties are ties whatever ``ties`` is; soft votes count by their
            shares.
        y : array-like of shape (n,), default=None
            1: the first won; 0 or -1: the second did. With ``ties`` 1, 0 (a tie) and -1. Grades
            count by their sign. Probabilities in [0, 1] that the first is better are votes of which
            a share goes to either. None: the first won each, or of votes their own labels.
        prompts : array-like of shape (n,), default=None
            What each vote is about, ids of any hashable kind. Votes on one prompt are not
            independent, so that they are one piece of evidence against a competitor: the mean of
            what each would be. A prompt that had votes in an earlier call is none. None: of votes
            of `from_votes` their own prompts, else each vote is on a prompt of its own.

        Returns
        -------
        self : StoppingRule

        Raises
        ------
        ValueError
            If X or y has another form, a vote lacks a name, is of a competitor with itself, or on
            one that is not among ``items``; if y has labels 0 beside some below, or beside grades,
            and there are no ``ties``; with ``ties`` if many votes have labels 0 and none below, as
            0 then seems to be the second's win; if y comes beside votes of `from_votes`. No vote is
            then taken in.
        """
        if isinstance(X, Mapping) and "item_table" in X:
            if y is not None:
                raise ValueError("Votes of from_votes have labels; got also y=. Drop it.")
            names, scores, own_prompts = _read_vote_table(X)
            prompts = own_prompts if prompts is None else prompts
            pairs, labels = self._check_names(names), self._labels
        else:
            pairs = self._read_pairs(X)
            scores, labels = self._read_scores(y, len(pairs))
        blocks, new = self._split_by_prompt(prompts, len(pairs))
        self._labels = labels
        self._prompts |= new.keys()
        for pair in pairs:
            for name in pair:
                if name not in self._place:
                    self._add_competitor(name)
        places = [(self._place[first], self._place[second]) for first, second in pairs]
        for rows, stakes in blocks:
            self._update_with_votes([(*places[k], scores[k]) for k in rows], stakes)
        self.n_votes += len(pairs)
        return self

    def _split_by_prompt(
        self, prompts: Any, n: int
    ) -> tuple[list[tuple[list[int], bool]], dict[Any, list[int]]]:
        """Return votes by prompt, each with whether it counts as evidence, and the new prompts."""
        if prompts is None:
            return [([k], True) for k in range(n)], {}
        by_prompt: dict[Any, list[int]] = {}
        blocks: list[tuple[list[int], bool]] = []
        for k, prompt in enumerate(check_respondents(prompts, n, "prompt")):
            if is_missing(prompt):
                blocks.append(([k], True))
                continue
            if prompt not in by_prompt:
                by_prompt[prompt] = []
                blocks.append((by_prompt[prompt], prompt not in self._prompts))
            by_prompt[prompt].append(k)
        return blocks, by_prompt

    def _add_competitor(self, name: Any) -> None:
        """Add a competitor as a contender and a group of its own."""
        self._place[name] = len(self._place)
        self._mean.append(0.0)
        self._variance.append(_PRIOR_VARIANCE)
        self._log_e.append(0.0)
        self._dropped.append(False)
        self._joined_to.append(len(self._joined_to))

    def _group_root(self, place: int) -> int:
        """Return the competitor at the root of the group of another, shortening the way to it."""
        joined_to = self._joined_to
        while joined_to[place] != place:
            joined_to[place] = place = joined_to[joined_to[place]]
        return place

    def _update_with_votes(self, votes: list[tuple[int, int, float]], stakes: bool) -> None:
        """Pay out the stakes on votes on one prompt, as one, then learn from each of them.

        Votes are two competitors and what the first scored.
        """
        payoffs: dict[int, list[float]] = {}
        for a, b, score in votes if stakes else ():
            _, won, lost = self._forecast(a, b)
            # Only the capital against the competitor that is forecast to lose is staked.
            stake, against = min(abs(won - lost), _MOST), b if won > lost else a
            gain = 2.0 * score - 1.0 if won > lost else 1.0 - 2.0 * score
            payoffs.setdefault(against, []).append(stake * gain)
        for against, each in payoffs.items():
            self._log_e[against] += log1p(sum(each) / len(each))
            if self._log_e[against] >= log(2.0 / self.level):
                self._dropped[against] = True
        for vote in votes:
            self._update_forecast(*vote)

    def _forecast(self, a: int, b: int) -> tuple[float, float, float]:
        """Return the mean margin in deviations, and probabilities that the first wins, or loses."""
        mean, variance = self._mean, self._variance
        z = (mean[a] - mean[b]) / sqrt(1.0 + variance[a] + variance[b])
        return z, 0.5 * erfc(-z / sqrt(2.0)), 0.5 * erfc(z / sqrt(2.0))

    def _update_forecast(self, a: int, b: int, score: float) -> None:
        """Update the forecast by what the first scored in a vote, and join the two groups.

        It is assumed density filtering of a probit; a share of the vote goes to either.
        """
        self._joined_to[self._group_root(a)] = self._group_root(b)
        mean, variance = self._mean, self._variance
        spread = sqrt(1.0 + variance[a] + variance[b])
        z = self._forecast(a, b)[0]
        # Densities over probabilities, which underflow by themselves.
        up, down = (sqrt(2.0 / pi) / float(erfcx(side / sqrt(2.0))) for side in (-z, z))
        slope = (score * up - (1.0 - score) * down) / spread
        bend = (score * up * (up + z) + (1.0 - score) * down * (down - z)) / spread**2
        mean[a] += variance[a] * slope
        mean[b] -= variance[b] * slope
        variance[a] -= variance[a] ** 2 * bend
        variance[b] -= variance[b] ** 2 * bend

    def _read_pairs(self, X: Any) -> list[list[Any]]:
        """Return names of the two competitors of each vote, checked."""
        frame = is_frame(X)
        X = X.to_numpy() if frame and hasattr(X, "to_numpy") else fill_masked(X)
        votes = X
        if not isinstance(X, np.ndarray):
            votes = np.array(list(X) if isinstance(X, Iterable) else X, dtype=object)
        if not votes.size:
            return []
        if votes.ndim != 2 or votes.shape[1] != 2 or votes.dtype.kind == "f":
            remedy = "Of items with features pass their ids."
            if frame:
                remedy = "Pass skpref.duels.from_votes(frame), or its two columns of names."
            raise ValueError(
                "Votes must be names of two competitors each, texts or integers of shape (n, 2); "
                f"got {votes.dtype} of shape {votes.shape}. {remedy}"
            )
        table = self._table
        if table is not None and table.names is not None and votes.dtype.kind in "iu":
            votes = table.names[positions_of(votes, ItemTable(np.zeros((len(table), 1))))]
        return self._check_names(votes.tolist())

    def _check_names(self, pairs: list[list[Any]]) -> list[list[Any]]:
        """Return the names of the competitors of votes; ValueError if one is missing or unknown."""
        gaps = [row for row, pair in enumerate(pairs) if any(map(is_missing, pair))]
        if gaps:
            first, second = pairs[gaps[0]]
            more = f", and so do {len(gaps) - 1} more of {len(pairs)}" if len(gaps) > 1 else ""
            raise ValueError(
                f"Vote {gaps[0]} lacks a name: {first!r}, {second!r}{more}. Leave such votes out, "
                "or read the table by skpref.duels.from_votes, which does, and pass what it gives."
            )
        for row, (first, second) in enumerate(pairs):
            if first == second:
                raise ValueError(f"Vote {row} is of {first!r} with itself. Leave it out.")
            if not self._open and (first not in self._place or second not in self._place):
                name = second if first in self._place else first
                raise ValueError(
                    f"Vote {row} is on {name!r}, which is not among items. Name all competitors "
                    "there, or leave items out."
                )
        return pairs

    def _read_scores(self, y: Any, n: int) -> tuple[list[float], tuple[int, int] | None]:
        """Return what the first of each vote scored, from 0 to 1, and the labels of wins."""
        if y is None:
            return [1.0] * n, self._labels
        y = np.asarray(fill_masked(y))
        if y.shape != (n,):
            raise ValueError(f"y must hold one label for each of the {n} votes; got {y.shape}.")
        try:
            value = y.astype(np.float64)
        except (TypeError, ValueError):
            value = np.full(n, np.nan)
        whole = np.isfinite(value) & (value == np.round(value))
        share = not self.ties and bool(np.all((value >= 0.0) & (value <= 1.0)))
        if not share and not np.all(whole):
            what = "-1, 0 or 1" if self.ties else "0 or 1, -1 or 1, or probabilities"
            raise ValueError(
                f"y must hold {what}, without missing values; got values such as {y[~whole][:3]}."
            )
        labels = self._labels_of_wins(value) if n else self._labels
        score = value if share else 0.5 + 0.5 * np.sign(value)
        return score.tolist(), labels

    def _labels_of_wins(self, value: Array) -> tuple[int, int] | None:
        """Return the labels of the second's and the first's wins, or raise ValueError."""
        below, zero = bool(np.any(value < 0.0)), bool(np.any(value == 0.0))
        if self.ties:
            return self._labels_beside_ties(below, zero, self.n_votes + len(value))
        if zero and not below and np.any(value > 1.0):
            raise ValueError(
                f"y holds 0 beside {value.max():g}. Beside grades, such as -2, -1, 1, 2, 0 is a "
                "tie: build StoppingRule(ties=True). If it is the second's win, pass -1."
            )
        labels = (-1, 1) if below else (0, 1) if zero else self._labels
        if (below and zero) or (self._labels is not None and labels != self._labels):
            raise ValueError(
                "y holds both 0 and labels below 0, here or since the first votes. If 0 is a tie, "
                "build StoppingRule(ties=True); if not, write the second's wins one way."
            )
        return labels

    def _labels_beside_ties(self, below: bool, zero: bool, n_votes: int) -> tuple[int, int] | None:
        """Return the labels of wins where 0 is a tie; ValueError if 0 seems to be a win."""
        if self._labels or below:
            return (-1, 1)
        if zero and n_votes > _CLEAR:
            raise ValueError(
                f"No label in y was below 0 in {n_votes} votes. With ties=True 0 is a "
                "tie. If it stands for the second's win, pass -1 there; if all winners stand "
                "first, turn some votes round, names and label."
            )
        return None


def _read_vote_table(votes: Mapping) -> tuple[list[list[Any]], list[float], list[Any] | None]:
    """Return names of the two competitors of each vote of `from_votes`, the first's score, and the
    prompts if votes have them."""
    X, y, prompts = votes["X"], votes["y"], votes["prompts"]
    places = (X if X.ndim == 2 else X[:, :, 0]).astype(np.intp)
    tied = np.any(y < 0) or "tie_threshold" in votes["params"]
    score = 0.5 + 0.5 * np.sign(y) if tied else y.astype(np.float64)
    weight, first = votes["sample_weight"], np.arange(len(y))
    if weight is not None:  # of a soft vote there is a row for each outcome
        _, first, of = np.unique(votes["rows"], return_index=True, return_inverse=True)
        turned = places[:, 0] != places[first[of], 0]
        score = np.bincount(of, weight * np.where(turned, 1.0 - score, score))
        score, places = score / np.bincount(of, weight), places[first]
    ids = None if prompts is None else [prompts[k] for k in first]
    return votes["item_table"].names[places].tolist(), score.tolist(), ids
