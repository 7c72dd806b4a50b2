"""Pairs of a leaderboard to vote on next, by how much their votes are expected to say."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dger
from scipy.special import erfcx, ndtr
from sklearn.utils import Bunch

from skpref._utils import (
    Array,
    PrintableBunch,
    RandomLike,
    check_choice,
    check_number,
    make_generator,
    symmetric_root,
)
from skpref.active._batch import outcome_effects
from skpref.active._candidates import check_utilities_alone
from skpref.data import ItemTable, check_respondents, component_labels
from skpref.gp import NEW_GROUP, GroupedPosterior, posterior_parts
from skpref.inspection import Contenders, contenders
from skpref.likelihoods import Likelihood

GOALS = ("ranks", "top", "members")
# Votes are handed out one at a time, but in at most so many portions.
_PORTIONS = 1000
# So often the weights of the orders are found anew while votes are handed out.
_ROUNDS = 32
_DRAWS = 2000
# Matrices of so many rows take 200 MB each.
MOST_ITEMS = 5000
# Between these times the pairs of the largest scores alone are followed: so many an item.
_FOLLOWED_PER_ITEM = 8


def next_pairs(
    model: Any,
    n: int = 1000,
    *,
    goal: str = "ranks",
    k: int = 1,
    items: Any = None,
    user: Any = None,
    at: Mapping | ArrayLike | None = None,
    allowed: ArrayLike | None = None,
    prompts: ArrayLike | None = None,
    pending: ArrayLike | None = None,
    random_state: RandomLike = 0,
) -> Bunch:
    """Return the pairs whose votes are expected to say most about the ranking of a leaderboard.

    Items that fall into groups which neither answers nor the kernel join
    (`skpref.inspection.connected_items`) are joined first, items without an answer too: as long as
    there are several groups, each vote is on a pair between two of them, the one that is expected
    to tell most.

    Parameters
    ----------
    model : estimator, pipeline, search, optimizer, learner or Posterior
        Anything fitted that has a ``posterior_``, or that posterior.
    n : int, default=1000
        Number of votes to hand out, up to the largest that positions are counted in (2⁶³ − 1); a
        pair may get several.
    goal : {"ranks", "top", "members"}, default="ranks"
        "ranks": every order of two items counts, so that the intervals of all ranks get shorter.
        "top": an order counts as much as it is probable that one of the two items is among the
        first ``k``, and so does a vote on them, so that the first k places are settled.
        "members": as much as it is probable that one of the two is among the first ``k`` and the
        other is not, so that it is settled who they are, in whatever order.
    k : int, default=1
        Number of first places, of "top" and "members", which are the same for one place.
    items, user, at
        As in `skpref.inspection.leaderboard`: what is on the board, and at which values the columns
        that change from answer to answer (controls) are held.
    allowed : array-like of shape (m, 2), default=None
        Pairs that can be voted on, such as those of items that are still served: names on the
        board, or integers, its positions. None: all. The orders of all items count in any case.
    prompts : array-like of shape (m,), default=None
        On which prompt each pair of ``allowed`` can be voted on, of a model that was fitted with
        ``prompts``: ids as in ``fit``, those that were not in it too; a pair may stand there with
        several. None, here or in it: on a new prompt, another one for each vote.
    pending : array-like of shape (m, 2), default=None
        Votes that were handed out before and have not come in, by names or positions as
        ``allowed``; a pair stands as often as it has votes. They are taken for given, as on new
        prompts, and join the groups of their items.
    random_state : int, RandomState instance, Generator or None, default=0
        Of the draws that say who may be among the first k.

    Returns
    -------
    plan : Bunch
        Arrays of one row a pair, first those that join groups, then the one with most votes.

        pairs : ndarray of shape (n_pairs, 2), names or ids of the items, or their positions where
            they have neither; the first has the larger posterior mean
        position : ndarray of int of shape (n_pairs, 2), places of the two in ``names``
        prompts : ndarray of shape (n_pairs,), on which prompt; None: a new one for each vote
        votes : ndarray of int of shape (n_pairs,), summing to ``n``
        joins : ndarray of bool of shape (n_pairs,), whether the pair joins two groups
        first_better : probability that the first has the larger utility; ½ of items of two groups,
            of which the prior alone speaks
        gain : nats of information on the orders that count, expected of the votes of the pair
        own : share of it that is on the order of these two items; the rest is on their orders
            with others
        frame : DataFrame of these, where pandas is installed, else None
        names : ndarray of shape (n_items,), all on the board, in the order of ``items``
        gain_of_vote : ndarray of shape (n_items, n_items), nats expected of a first vote on each
            pair, before any is handed out; 0 for pairs that are not allowed

    Raises
    ------
    TypeError
        If the model has no posterior, or users and ``user`` is not told.
    ValueError
        If the kernel has an `skpref.kernels.Intransitive`, there are fewer than two items or more
        than 5000, no pair is allowed, ``k`` exceeds the number of items, nothing is left to learn,
        or ``prompts`` come without ``allowed`` or to a model that was fitted without prompts.

    Notes
    -----
    Utilities are Gaussian with mean m and covariance V. The order of items i and j is a coin of
    probability Φ(z), z = (mᵢ − mⱼ)/√v with v the variance of their margin. An observation that
    takes a small τ from that variance tells τ/(2v) · φ(z)²/(Φ(z) Φ(−z)) nats of the order: exactly
    so as τ → 0. It is most where the order is open, and next to nothing where it is known, however
    uncertain the utilities are.

    A vote on items a and b has the expected precision κ; it takes κ (Vd)(Vd)ᵀ/(1 + κ dᵀVd) from V,
    with d the difference of a and b. So its expected information on all orders together is
    κ/(1 + κ dᵀVd) · dᵀ V L V d, L being the Laplacian of the weights of the orders, and all pairs
    are scored by one product of matrices. Votes are handed out one at a time, each to the pair of
    the largest score given those before it: V is updated by every vote, and the weights are
    averaged over where the means may have gone by then. Orders are counted one by one: ``gain`` is
    the sum of their information, not the information on all of them jointly.

    Of a model that was fitted with prompts the orders are those of the mean over all prompts, and
    a vote on a new prompt tells less of it by what the two have of their own there: with variance e
    of that, κ is one over 1/κ + e. On a named prompt the utilities of the two in it are followed
    beside those of the board, so that a second vote on it tells less than the first.

    Between the times at which weights are found anew, 32 of them, the pairs of the largest scores
    alone are followed. Time grows as n times n_items², with at most 1000 portions of votes: a
    thousand votes among 200 items take about 0.3 s, among 500 some 2 s. With ties, grades, an order
    effect or judges κ is that of the model's own likelihood, for either item shown first in half of
    the votes, and the reference judge.

    Examples
    --------
    >>> from skpref import ItemTable, PairwisePreferenceRegressor
    >>> from skpref.active import next_pairs
    >>> games = [["ann", "cid"], ["bob", "cid"], ["ann", "dan"], ["bob", "dan"], ["cid", "dan"]]
    >>> players = ItemTable.from_names(games)
    >>> model = PairwisePreferenceRegressor(items=players, noise_variance=0.5, optimizer=None)
    >>> model = model.fit([*games * 3, ["ann", "bob"]])
    >>> plan = next_pairs(model, n=10)
    >>> plan.pairs.tolist(), plan.votes.tolist()
    ([['ann', 'bob'], ['cid', 'dan'], ['bob', 'cid']], [7, 2, 1])
    >>> next_pairs(model, n=10, goal="top").pairs.tolist()
    [['ann', 'bob']]
    """
    check_number("n", n, low=1, high=np.iinfo(np.intp).max, integer=True)
    check_choice("goal", goal, GOALS)
    ranked = contenders(model, items, user, at)
    check_utilities_alone(ranked.subject.posterior)
    size = len(ranked)
    if size < 2:
        raise ValueError(f"A vote is on two items, and there is {size}. Pass items=.")
    if size > MOST_ITEMS:
        raise ValueError(
            f"Orders of up to {MOST_ITEMS} items are weighed at once, and there are {size}. Pass "
            "items= those that count, such as the first places, "
            f"leaderboard(model).names[:{MOST_ITEMS}], or a random part of them for each batch; of "
            "competitors whose features change from vote to vote one row each."
        )
    # Of all items every one is among the first.
    check_number("k", k, low=1, high=size - (goal == "members"), integer=True)
    within = _PairsInPrompts.read(ranked, allowed, prompts)
    item = np.concatenate([np.arange(size), within.pairs.ravel()])
    if len(item) > MOST_ITEMS:
        raise ValueError(
            f"got {len(within.pairs)} pairs on named prompts beside {size} items; two for each "
            f"pair and the items may be {MOST_ITEMS} together. Name fewer pairs in allowed=."
        )
    every = np.triu_indices(len(item), 1)
    of_board = every[1] < size
    allowed_items = _read_allowed_pairs(within.on_new, ranked.names, len(within.pairs) > 0)
    open_pairs = within.votable_pairs(allowed_items)[every]
    waiting = _read_pairs("pending", pending, ranked.names)
    component = ranked.components()[item]
    across = component[every[0]] != component[every[1]]
    mean, cov = within.moments(ranked)
    variance = _variances(cov)[every]
    margin = mean[every[0]] - mean[every[1]]
    precision = np.zeros(len(margin))
    likelihood, votable = ranked.subject.posterior.likelihood, of_board | open_pairs
    new = np.zeros(len(margin))
    new[of_board] = _variance_on_new_prompt(ranked)[tuple(part[of_board] for part in every)]
    precision[votable] = _vote_precision(likelihood, margin[votable], (variance + new)[votable])
    precision /= 1.0 + precision * new
    count = np.ones(len(margin))
    if goal != "ranks":
        moments = mean[:size], cov[:size, :size]
        top = _probability_of_top(*moments, k, make_generator(random_state), both=goal == "top")
        count = top[item[every[0]], item[every[1]]]
        # Where groups stand nobody knows, so that no order across is out of the question.
        count = np.where(across, np.maximum(count, 1.0 / _DRAWS), count)
    board = _VoteBoard(mean, cov, precision, np.where(of_board, count, 0.0))
    board.update_weights()
    place = board.as_matrix(np.arange(len(margin), dtype=np.float64)).astype(np.intp)
    for a, b in waiting:
        board.add_votes(place[a, b])
    board.update_weights()
    first = board.gains() * open_pairs
    if not (first * count).max() > 0.0:
        raise ValueError(
            "No vote on an allowed pair tells anything of the order: all orders that count are "
            "known, or all items are one and the same."
        )
    groups = _ComponentGroups(component, waiting, board, open_pairs)
    votes, gain, own, joins = _allocate_votes(board, open_pairs * count, int(n), groups)
    at = np.flatnonzero(votes)
    at = at[np.lexsort((at, -gain[at], -votes[at], ~joins[at]))]
    position = np.stack([item[part[at]] for part in every], axis=1)
    on_board = place[position[:, 0], position[:, 1]]
    behind = (mean[position[:, 0]] - mean[position[:, 1]]) < 0.0
    position[behind] = position[behind, ::-1]
    named = np.full(len(at), None, dtype=object)
    named[~of_board[at]] = within.ids[(every[0][at[~of_board[at]]] - size) // 2]
    pairs = ranked.names[position]
    columns = {
        "votes": votes[at],
        "joins": joins[at],
        "first_better": np.where(
            across[at], 0.5, ndtr(np.abs(margin[on_board]) / np.sqrt(variance[on_board]))
        ),
        "gain": gain[at],
        "own": own[at] / np.maximum(gain[at], np.finfo(float).tiny),
    }
    shown = columns if prompts is None else {"prompt": named, **columns}
    return PrintableBunch(
        pairs=pairs,
        position=position,
        prompts=named,
        **columns,
        frame=_make_frame(pairs, shown),
        names=ranked.names,
        gain_of_vote=board.as_matrix(first)[:size, :size],
    )


class _PairsInPrompts(NamedTuple):
    """Pairs that can be voted on, on named prompts.

    Attributes
    ----------
    pairs : ndarray of int of shape (k, 2)
        Positions on the board.
    groups : ndarray of int of shape (k,)
        Numbers of the prompts, negative for those that were not in the fit.
    ids : ndarray of shape (k,)
        The prompts.
    on_new : ndarray of shape (m, 2) or None
        Pairs that can be voted on on new prompts; None: all.
    """

    pairs: NDArray[np.intp]
    groups: NDArray[np.intp]
    ids: NDArray[Any]
    on_new: Any

    @classmethod
    def read(cls, ranked: Contenders, allowed: Any, prompts: Any) -> Self:
        """Return the pairs that ``allowed`` and ``prompts`` of `next_pairs` name, checked."""
        nothing = np.zeros((0, 2), np.intp), np.zeros(0, np.intp), np.zeros(0, dtype=object)
        if prompts is None:
            return cls(*nothing, allowed)
        reader = ranked.subject.posterior.reader
        if allowed is None or reader.prompts is None:
            lack = "allowed=" if allowed is None else "a model that was fitted with prompts="
            raise ValueError(
                f"got prompts= without {lack}; both together are allowed. Name the pairs that can "
                "be voted on and the prompt of each, or leave prompts= out."
            )
        pairs = _read_pairs("allowed", allowed, ranked.names)
        ids = check_respondents(prompts, len(pairs), "prompt")
        groups, parts = reader.prompts.codes(ids), posterior_parts(ranked.subject.posterior)[1]
        if not isinstance(parts[0], GroupedPosterior):  # nothing tells effects of prompts
            return cls(*nothing, pairs)
        is_named = groups != NEW_GROUP
        named = np.empty(len(ids), dtype=object)
        named[:] = ids
        return cls(pairs[is_named], groups[is_named], named[is_named], pairs[~is_named])

    def votable_pairs(self, of_items: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether a vote may be on two entries, (n + 2k, n + 2k).

        Entries are the n items, of which ``of_items`` says it, (n, n), and then the two items of
        each of the k pairs on named prompts, which meet each other alone.
        """
        n, k = len(of_items), len(self.pairs)
        mask = np.zeros((n + 2 * k,) * 2, dtype=bool)
        mask[:n, :n] = of_items
        first = n + 2 * np.arange(k)
        mask[first, first + 1] = mask[first + 1, first] = True
        return mask

    def moments(self, ranked: Contenders) -> tuple[Array, Array]:
        """Return mean and covariance of utilities of the items, and of those of the pairs."""
        if len(self.pairs):
            arguments = ranked.rows, ranked.shares, self.pairs, self.groups
            return ranked.subject.moments_with_pairs(*arguments)
        averages = ranked.subject.averages(ranked.rows, ranked.shares)
        mean = averages.means.mean(axis=1)
        apart = averages.means - mean[:, None]
        return mean, averages.cov + apart @ apart.T / averages.means.shape[1]


def _variance_on_new_prompt(ranked: Contenders) -> Array:
    """Return the variance that a new prompt adds to the margin of each pair of items, (n, n)."""
    n = len(ranked)
    variance = np.zeros((n, n))
    i, j = np.triu_indices(n, 1)
    for weight, part in zip(*posterior_parts(ranked.subject.posterior), strict=True):
        if isinstance(part, GroupedPosterior):
            for share, rows in zip(ranked.shares, np.moveaxis(ranked.rows, 1, 0), strict=True):
                variance[i, j] += weight * share * part.new_variance(rows[i], rows[j])
    return variance


def order_rate(z: Array) -> Array:
    """Return φ(z)²/(Φ(z) Φ(−z)), twice the nats on a sign for each share of variance taken away.

    With z the mean over the deviation of a Gaussian, whose sign is meant: the mutual information
    of its sign with an observation that takes the share s of its variance is s/2 times this, as
    s → 0.
    """
    z = np.abs(z)
    peak, tail = np.exp(-0.5 * z * z), erfcx(z / np.sqrt(2.0))
    return peak / (np.pi * tail * (1.0 - 0.5 * peak * tail))


class _VoteBoard:
    """Utilities while votes on them are expected; of pairs a vector, in the order of triu_indices.

    Parameters
    ----------
    mean : ndarray of shape (n,)
    cov : ndarray of shape (n, n)
    precision : ndarray of shape (n_pairs,)
        Expected of a vote on each pair.
    count : ndarray of shape (n_pairs,)
        By how much each order counts.

    Attributes
    ----------
    cov : ndarray of shape (n, n)
        After the votes so far.
    weight : ndarray of shape (n_pairs,)
        Nats on an order, of what is taken from the variance of its margin, times its count.
    """

    def __init__(self, mean: Array, cov: Array, precision: Array, count: Array) -> None:
        self.first, self.second = np.triu_indices(len(mean), 1)
        self.cov, self._precision, self._count = 0.5 * (cov + cov.T), precision, count
        self._followed: Any = slice(None)
        self._margin = self._difference(mean)
        self._prior = self._variances(self.cov)

    def _difference(self, vector: Array) -> Array:
        """Return a vector's value at the first less that at the second item of each pair
        followed."""
        return vector[self.first[self._followed]] - vector[self.second[self._followed]]

    def _variances(self, cov: Array) -> Array:
        return _variances(cov)[self.first, self.second]

    def update_weights(self) -> None:
        """Set the weights of the orders, and what follows from them, by the present covariance."""
        self._followed = slice(None)
        self._variance = np.minimum(self._variances(self.cov), self._prior)
        is_known = self._variance <= 1e-12 * self._prior.max()
        deviation = np.sqrt(np.where(is_known, 1.0, self._variance))
        # The mean moves by what the variance lost.
        moved = np.sqrt(self._prior - self._variance) / deviation
        rate = _mean_rate(self._margin / deviation, moved)
        self.weight = np.where(is_known, 0.0, 0.5 * self._count * rate / deviation**2)
        weights = self.as_matrix(self.weight)
        self._laplacian = np.diag(weights.sum(axis=1)) - weights
        self._information = self._variances(self.cov @ self._laplacian @ self.cov)

    def follow(self, pairs: NDArray[np.intp]) -> None:
        """Keep gains of these pairs alone up to date, until `update_weights`."""
        self._information, self._variance = self._information[pairs], self._variance[pairs]
        self._followed = pairs

    def gains(self) -> Array:
        """Return nats on the orders that count, expected of the next vote on each pair followed."""
        precision = self._precision[self._followed]
        return precision * self._information / (1.0 + precision * self._variance)

    def add_votes(self, pair: int, votes: int = 1) -> tuple[float, float]:
        """Update covariance and gains by expected votes on a pair; return what they tell.

        Returns
        -------
        gain, own : float
            Nats on the orders that count, and those on the order of the two alone.
        """
        a, b = self.first[pair], self.second[pair]
        u = self.cov[:, a] - self.cov[:, b]
        precision = votes * self._precision[pair]
        scale = precision / (1.0 + precision * max(u[a] - u[b], 0.0))
        # The columns of a symmetric matrix are its rows.
        self.cov = dger(-scale, u, u, a=self.cov.T, overwrite_a=True).T
        # With V' = V − s u uᵀ: V L V − V' L V' = s (u hᵀ + h uᵀ), h = V' L u + ½ s (uᵀ L u) u.
        pushed = self._laplacian @ u
        nats = scale * float(u @ pushed)
        step = self._difference(u)
        self._information -= (
            2.0 * scale * step * self._difference(self.cov @ pushed + 0.5 * nats * u)
        )
        self._variance -= scale * step * step
        return nats, float(scale * self.weight[pair] * (u[a] - u[b]) ** 2)

    def as_matrix(self, values: Array) -> Array:
        """Return values of pairs as a symmetric matrix, zero on the diagonal."""
        matrix = np.zeros(self.cov.shape)
        matrix[self.first, self.second] = matrix[self.second, self.first] = values
        return matrix


class _ComponentGroups:
    """Groups of items, and the allowed pairs that join them.

    Parameters
    ----------
    component : ndarray of int of shape (n,)
        Of each item.
    waiting : ndarray of int of shape (m, 2)
        Pairs that are joined, too.
    board : _VoteBoard
    allowed : ndarray of bool of shape (n_pairs,)
    """

    def __init__(self, component, waiting, board, allowed):
        self._first, self._second, self._allowed = board.first, board.second, allowed
        head = np.unique(component, return_index=True)[1][component]
        joined = np.concatenate([waiting, np.stack([np.arange(len(head)), head], axis=1)])
        self._label = component_labels(len(component), joined)

    def joined_by(self, pairs: Any = slice(None)) -> NDArray[np.bool_]:
        """Return whether each pair is allowed and joins two groups."""
        apart = self._label[self._first[pairs]] != self._label[self._second[pairs]]
        joins: NDArray[np.bool_] = apart & self._allowed[pairs]
        return joins

    def join(self, pair: int) -> None:
        """Merge the groups of the two items of a pair."""
        ends = self._label[[self._first[pair], self._second[pair]]]
        self._label[self._label == ends[1]] = ends[0]


def _allocate_votes(board, importance, n, groups):
    """Return the votes of each pair, their nats, those on its own order, and which pairs join."""
    portion = -(-n // _PORTIONS)
    step = max(1, n // _ROUNDS)
    n_followed = _FOLLOWED_PER_ITEM * len(board.cov)
    votes, joins = np.zeros(len(importance), dtype=np.intp), np.zeros(len(importance), dtype=bool)
    gain, own = np.zeros(len(importance)), np.zeros(len(importance))
    n_left, stale, pair = n, 0, 0
    joining = bool(groups.joined_by().any())
    followed, least = _follow_largest_scores(
        board, importance * groups.joined_by() if joining else importance, n_followed
    )
    while n_left > 0:
        scores = board.gains() * importance[followed]
        if joining:
            scores *= groups.joined_by(followed)
        best = int(np.argmax(scores))
        none = joining and not scores[best] > 0.0
        if none or stale >= step or (stale and scores[best] < least and not joining):
            joining = joining and stale > 0 and bool(groups.joined_by().any())
            board.update_weights()
            followed, least = _follow_largest_scores(
                board, importance * groups.joined_by() if joining else importance, n_followed
            )
            stale = 0
            continue
        pair = int(followed[best]) if scores[best] > 0.0 else pair  # else all is known
        n_votes = 1 if joining else min(portion, n_left)
        nats = board.add_votes(pair, n_votes)
        gain[pair] += nats[0]
        own[pair] += nats[1]
        votes[pair] += n_votes
        if joining:
            joins[pair] = True
            groups.join(pair)
        n_left -= n_votes
        stale += n_votes
    return votes, gain, own, joins


def _follow_largest_scores(board, importance, n_followed):
    """Return the pairs of the largest scores, which the board then follows, and the next score."""
    scores = board.gains() * importance
    if len(scores) <= n_followed:
        return np.arange(len(scores)), -np.inf
    order = np.argpartition(-scores, n_followed)
    followed = np.sort(order[:n_followed])
    board.follow(followed)
    return followed, scores[order[n_followed]]


def _mean_rate(z: Array, moved: Array) -> Array:
    """Return `order_rate` averaged over a normal of mean z and a deviation, by Gauss–Hermite."""
    rate = np.zeros(len(z))
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)  # errors below 1e-6 of the largest
    for node, share in zip(nodes, weights / weights.sum(), strict=True):
        rate += share * order_rate(z + node * moved)
    return rate


def _variances(cov: Array) -> Array:
    """Return the variances of the differences of all pairs, (n, n), at least 0."""
    own = np.diagonal(cov)
    return np.maximum(own[:, None] + own[None, :] - 2.0 * cov, 0.0)


def _vote_precision(likelihood: Likelihood, margin: Array, variance: Array) -> Array:
    """Return the precision of a Gaussian observation of the margin that tells as much as a vote."""
    precision = np.zeros(len(margin))
    wide = variance > 1e-12 * variance.max()
    margin, variance = margin[wide], variance[wide]
    leads = (1, -1) if likelihood.uses_order else (0,)
    curvature = np.zeros(len(margin))
    for lead in leads:
        of = outcome_effects(likelihood, margin, variance, np.full(len(margin), lead, np.int8))
        curvature += (of.probability * of.curvature).sum(axis=0) / len(leads)
    # The share of the variance that a vote takes.
    taken = np.clip(curvature * variance, 0.0, 1.0 - 1e-9)
    precision[wide] = taken / (variance * (1.0 - taken))
    return precision


def _probability_of_top(
    mean: Array, cov: Array, k: int, rng: np.random.Generator, both: bool = True
) -> Array:
    """Return the probability that one of two items is among the first k, (n, n).

    If not ``both``, that exactly one of them is.
    """
    draws = mean[:, None] + symmetric_root(cov) @ rng.standard_normal((len(mean), _DRAWS))
    top = np.zeros(draws.shape)
    first = np.argpartition(-draws, k - 1, axis=0)[:k]
    np.put_along_axis(top, first, 1.0, axis=0)
    share = top.mean(axis=1)
    return share[:, None] + share[None, :] - (1 if both else 2) * (top @ top.T) / _DRAWS


def _read_pairs(name: str, pairs: Any, names: NDArray[Any]) -> NDArray[np.intp]:
    """Return positions (m, 2) of the items of pairs given by positions or names, checked."""
    size = len(names)
    positions = np.zeros((0, 2), np.intp) if pairs is None else np.asarray(pairs)
    if positions.size == 0:
        positions = np.zeros((0, 2), np.intp)
    if positions.ndim != 2 or positions.shape[1] != 2 or positions.dtype.kind not in "iuUTO":
        raise ValueError(
            f"{name} must hold pairs of shape (m, 2): names, such as pairs of a plan, or positions "
            f"on the board, integers, such as its position; got {positions.dtype} of shape "
            f"{positions.shape}."
        )
    if positions.dtype.kind in "UTO":
        try:
            positions = ItemTable(np.zeros((size, 1)), names=names).index(positions)
        except ValueError as error:
            raise ValueError(
                f"{name} must hold names on the board, or its positions as integers: {error}"
            ) from None
    if positions.size and not (positions.min() >= 0 and positions.max() < size):
        raise ValueError(
            f"{name} must hold positions on the board, from 0 to {size - 1}; got "
            f"{positions.min()} to {positions.max()}."
        )
    if np.any(positions[:, 0] == positions[:, 1]):
        raise ValueError(f"{name} holds a pair of an item with itself. Drop it.")
    return positions.astype(np.intp)


def _read_allowed_pairs(
    allowed: Any, names: NDArray[Any], within_prompts: bool = False
) -> NDArray[np.bool_]:
    """Return a mask (n, n) of the pairs named in ``allowed``, checked; None names all."""
    size = len(names)
    if allowed is None:
        return ~np.eye(size, dtype=bool)
    pairs, mask = _read_pairs("allowed", allowed, names), np.zeros((size, size), dtype=bool)
    if not len(pairs) and not within_prompts:
        raise ValueError("allowed is empty; name a pair, or leave it out for all.")
    mask[pairs[:, 0], pairs[:, 1]] = mask[pairs[:, 1], pairs[:, 0]] = True
    return mask


def _make_frame(pairs: Any, columns: dict[str, Array]) -> Any:
    """Return a frame of a plan where pandas is installed, else None."""
    try:
        import pandas as pd
    except ImportError:
        return None
    return pd.DataFrame({"first": pairs[:, 0], "second": pairs[:, 1], **columns})
