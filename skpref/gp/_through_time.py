"""The posterior of items that change through time, each given its own course."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import Array, RandomLike, check_number, eigen_root, floor_variance, generator_of
from skpref.data import Shown, distinct_rows
from skpref.gp._kalman import Chains, Filtered, Nodes
from skpref.gp._posterior import Posterior
from skpref.kernels import Drift, FiniteFeatures

# Rows whose moments are found together.
_ROWS = 2**16
_NOT_OF_CHAINS = (
    "Items that are independent through time, of inference=EP(items='independent'), do not know "
    "{0}. Fit with items='joint', which takes every kernel and some thousand answers."
)


class StaticFeatures:
    """Features of items that do not change through time, in the groups that are known.

    Parameters
    ----------
    few : FiniteFeatures
    known : list of (ndarray of shape (n_groups, n_columns) or None)
        Groups of each of its terms, None where all items are one; no feature is of another.

    Attributes
    ----------
    source : ndarray of shape (rank,)
        Which of the monomials each feature is of.
    """

    def __init__(self, few: FiniteFeatures, known: list[Array | None]):
        self.few, self._known = few, known
        sources: list[NDArray[np.intp]] = []
        begin = 0
        for term, groups in zip(few.terms, known, strict=True):
            numbers = begin + np.arange(len(term.monomials), dtype=np.intp)
            begin += len(numbers)
            sources.append(numbers if groups is None else np.tile(numbers, len(groups)))
        self.source = np.concatenate(sources)

    @classmethod
    def of(cls, few: FiniteFeatures, items: Array) -> "StaticFeatures":
        """Those in the groups of some items, (n_items, n_columns)."""
        columns = [list(term.group) for term in few.terms]
        return cls(few, [distinct_rows(items[:, each])[0] if each else None for each in columns])

    def wider(self, items: Array) -> tuple["StaticFeatures", NDArray[np.intp]]:
        """Features in the groups of further items too, and where those of before stand in them."""
        every: list[Array | None] = []
        stay: list[NDArray[np.bool_]] = []
        for term, groups in zip(self.few.terms, self._known, strict=True):
            n = 1 if groups is None else len(groups)
            new = 0
            if groups is not None:
                found, _ = distinct_rows(items[:, list(term.group)])
                found = found[places(groups, found) < 0]
                new, groups = len(found), np.concatenate([groups, found])
            every.append(groups)
            stay.append(np.repeat([True, False], np.array([n, new]) * len(term.monomials)))
        return StaticFeatures(self.few, every), np.flatnonzero(np.concatenate(stay))

    @property
    def variance(self) -> Array:
        """Of each feature's weight, (rank,)."""
        return self.few.variance[self.source]

    @property
    def slope(self) -> Array:
        """Of these variances in the kernel's theta, (rank, n_theta)."""
        return self.few.slope[self.source]

    def at(self, items: Array) -> tuple[Array, Array]:
        """Features of items (n, rank), and the variance of what is in none of them (n,)."""
        blocks, beside = [], np.zeros(len(items))
        begin = 0
        for term, groups in zip(self.few.terms, self._known, strict=True):
            values, n = term.values(items), len(term.monomials)
            variance = self.few.variance[begin : begin + n]
            begin += n
            if groups is None:
                blocks.append(values)
                continue
            own = places(groups, items[:, list(term.group)])
            block = np.zeros((len(items), len(groups), n))
            there = own >= 0
            block[np.flatnonzero(there), own[there]] = values[there]
            beside[~there] += values[~there] ** 2 @ variance
            blocks.append(block.reshape(len(items), -1))
        return np.concatenate(blocks, axis=1), beside

    def beside(self, one: Array, other: Array) -> Array:
        """Covariance of what is in none of them: items of a group that is not known share it.

        Of a pair each, (n,), where both are (n, d); (n, m) of items (n, 1, d) and (1, m, d).
        """
        found = np.zeros(np.broadcast_shapes(one.shape, other.shape)[:-1])
        begin = 0
        for term, groups in zip(self.few.terms, self._known, strict=True):
            n = len(term.monomials)
            variance = self.few.variance[begin : begin + n]
            begin += n
            if groups is None:
                continue
            flat = one.reshape(-1, one.shape[-1])
            new = places(groups, flat[:, list(term.group)]).reshape(one.shape[:-1]) < 0
            if not new.any():
                continue
            same = np.broadcast_to(new, found.shape).copy()
            for column in term.group:
                same &= one[..., column] == other[..., column]
            values = term.values(flat).reshape(*one.shape[:-1], n)
            others = term.values(other.reshape(-1, other.shape[-1]))
            others = others.reshape(*other.shape[:-1], n)
            for k in range(n):
                found += same * (variance[k] * values[..., k] * others[..., k])
        return found


def places(known: Array, rows: Array) -> NDArray[np.intp]:
    """Where rows stand among distinct ones, −1 where they do not."""
    if known.shape[1] == 1:
        order = np.argsort(known[:, 0], kind="stable")
        at = np.searchsorted(known[order, 0], rows[:, 0])
        found = order[np.minimum(at, len(known) - 1)]
        return np.where(known[found, 0] == rows[:, 0], found, -1)
    _, code = distinct_rows(np.concatenate([known, rows]))
    place = np.full(int(code.max(initial=-1)) + 1, -1)
    place[code[: len(known)]] = np.arange(len(known))
    return place[code[len(known) :]]


class Course(NamedTuple):
    """What is known of chains at their nodes, by chain and in it by time.

    Attributes
    ----------
    begin : ndarray of int of shape (n_chains + 1,)
        Where each chain's nodes begin.
    times : ndarray of shape (n_nodes,)
    covariance : ndarray of shape (n_nodes, size, size)
        Of the state, given what was known up to the node.
    slope : ndarray of shape (n_nodes, size, size)
        What later nodes, and its own site, take from the predicted covariance P: P slope P.
    state, pull : ndarray of shape (n_nodes, size)
        Mean of the state, and what of the weighted sum of all values goes through it.
    precision, shift : ndarray of shape (n_nodes,)
        Of what the answers said of the node's value.
    """

    begin: NDArray[np.intp]
    times: Array
    covariance: Array
    slope: Array
    state: Array
    pull: Array
    precision: Array
    shift: Array

    @classmethod
    def of(
        cls, chains: Chains, known: Filtered, weights: Array, begin: NDArray[np.intp]
    ) -> "Course":
        """Of chains given sites, whose values K times some weights is the mean of."""
        state, pull = chains.carried(weights)
        order = chains.nodes.by_time
        return cls(
            begin,
            chains.nodes.times[order],
            np.moveaxis(known.covariance, 2, 0)[order],
            np.moveaxis(known.slope, 2, 0)[order],
            state.T[order],
            pull.T[order],
            known.precision[order],
            (weights + known.precision * (chains.drift.seen @ state))[order],
        )

    def last_before(self, chain: NDArray[np.intp], times: Array) -> NDArray[np.intp]:
        """The last node of chains up to some times; that before a chain's first if none is."""
        low, high = self.begin[chain] - 1, self.begin[chain + 1] - 1
        if not len(self.times):
            return low
        while True:
            open_ = low < high
            if not open_.any():
                return low
            middle = (low + high + 1) // 2
            under = self.times[np.where(open_, middle, 0)] <= times
            low = np.where(open_ & under, middle, low)
            high = np.where(open_ & ~under, middle - 1, high)


class Latest(NamedTuple):
    """What answers of one time have brought; arrays run over the nodes.

    Attributes
    ----------
    chain : ndarray of int of shape (n,)
        −1 of who is new.
    who : ndarray of shape (n, n_columns)
    times, covariance, state, precision, shift : ndarray
        As in `Course`.
    """

    chain: NDArray[np.intp]
    who: Array
    times: Array
    covariance: Array
    state: Array
    precision: Array
    shift: Array


class StateMoments(NamedTuple):
    """States at some times: mean (n, size) and covariance given what was known before (n, size,
    size), and what later answers take from that, as `Course.slope`."""

    mean: Array
    covariance: Array
    slope: Array


@dataclass(frozen=True, eq=False, repr=False)
class ThroughTime(Posterior):
    """Posterior of utilities through time; items are independent of each other.

    Of its items the last columns stand for time as the fit's did. Where a later answer is known it
    counts too, so that the past is smoothed.

    Parameters
    ----------
    drift : Drift
    who : ndarray of shape (n_chains, n_columns)
        Who the items are.
    course : Course
    static : StaticFeatures or None
    static_mean : ndarray of shape (rank,)
    static_root : ndarray of shape (rank, rank)
        R with Rᵀ R the covariance of the features' weights.
    told_since : tuple of Latest
        What later answers have brought, which does not change what is said of earlier times.
    last : Latest or None
        Of each chain the last of these; its time is -inf where there is none.
    """

    drift: Drift = None  # type: ignore[assignment]  # always given
    who: Array = None  # type: ignore[assignment]
    course: Course = None  # type: ignore[assignment]
    static: StaticFeatures | None = None
    static_mean: Array = None  # type: ignore[assignment]
    static_root: Array = None  # type: ignore[assignment]
    told_since: tuple[Latest, ...] = ()
    last: Latest | None = None

    keeps_anchors: ClassVar[bool] = False

    # -- moments -----------------------------------------------------------------------------

    def chains_of(self, rows: Array) -> NDArray[np.intp]:
        """Which chain rows belong to, −1 of who is new."""
        return places(self.who, rows[:, list(self.drift.who)])

    def last_times(self, chain: NDArray[np.intp]) -> Array:
        """The last time at which something is known of chains, −inf where nothing is."""
        found = np.full(len(chain), -np.inf)
        of_course = (chain >= 0) & (chain < len(self.course.begin) - 1)
        found[of_course] = self.course.times[self.course.begin[chain[of_course] + 1] - 1]
        if self.last is not None:
            found = np.where(chain >= 0, np.maximum(found, self.last.times[chain]), found)
        return found

    def known_times(self, rows: Array) -> list[Array]:
        """Of each row the distinct times at which answers told of its chain, ascending."""
        chain = self.chains_of(rows)
        begin, times = self.course.begin, self.course.times
        # Who came later has no part in the course.
        found = [
            times[begin[k] : begin[k + 1]] if 0 <= k < len(begin) - 1 else np.zeros(0)
            for k in chain
        ]
        if self.last is not None:
            every, start = self._history
            found = [
                np.concatenate([known, every.times[start[k] : start[k + 1]]]) if k >= 0 else known
                for known, k in zip(found, chain, strict=True)
            ]
        return list(map(np.unique, found))

    def states(self, chain: NDArray[np.intp], times: Array) -> StateMoments:
        """Of the states of chains at some times."""
        drift, course = self.drift, self.course
        n, size = len(times), drift.size
        # Who came later has no part in the course.
        known = np.where(chain < len(course.begin) - 1, chain, -1)
        at = course.last_before(np.maximum(known, 0), times)
        begun = (known >= 0) & (at >= course.begin[known])
        ahead = at + 1
        follows = (known >= 0) & (ahead < course.begin[known + 1])
        mean, slope, pull = np.zeros((n, size)), np.zeros((n, size, size)), np.zeros((n, size))
        if follows.any():
            after = ahead[follows]
            A, _ = drift.moved(times[follows], course.times[after])
            pull[follows] = np.einsum("jin,nj->ni", A, course.pull[after])
            half = np.einsum("jin,njk->nik", A, course.slope[after])
            slope[follows] = np.einsum("nij,jkn->nik", half, A)
        before, P, state = np.zeros(n), np.zeros((n, size, size)), np.zeros((n, size))
        before[begun] = course.times[at[begun]]
        P[begun], state[begun] = course.covariance[at[begun]], course.state[at[begun]]
        if self.last is not None:
            begun = self._since(chain, times, begun, (before, P, state))
        found = np.empty_like(P)
        found[~begun] = np.moveaxis(drift.spread(times[~begun]), 2, 0)
        mean[~begun] = np.einsum("nij,nj->ni", found[~begun], pull[~begun])
        if begun.any():
            A, Q = drift.moved(before[begun], times[begun])
            Q = np.moveaxis(Q, 2, 0)
            half = np.einsum("ijn,njk->nik", A, P[begun])
            found[begun] = np.einsum("nij,kjn->nik", half, A) + Q
            mean[begun] = np.einsum("ijn,nj->ni", A, state[begun])
            mean[begun] += np.einsum("nij,nj->ni", Q, pull[begun])
        return StateMoments(mean, found, slope)

    def _since(self, chain, times, begun, from_):
        """Let what was told since the course stand where it is the last before a time.

        It is never earlier than the course, of which then nothing lies ahead.
        """
        last: Latest = self.last  # type: ignore[assignment]  # asked by the caller
        later = (chain >= 0) & (times >= last.times[chain]) & np.isfinite(last.times[chain])
        rows, source = [np.flatnonzero(later)], [(last, chain[later])]
        between = (chain >= 0) & ~later & np.isfinite(last.times[chain])
        if between.any():
            every, begin = self._history
            course = Course(begin, every.times, *(np.zeros(0),) * 6)
            some = np.flatnonzero(between)
            at = course.last_before(chain[some], times[some])
            there = at >= begin[chain[some]]
            rows.append(some[there])
            source.append((every, at[there]))
        for at, (told, place) in zip(rows, source, strict=True):
            from_[0][at], from_[1][at] = told.times[place], told.covariance[place]
            from_[2][at] = told.state[place]
            begun = begun.copy()
            begun[at] = True
        return begun

    @cached_property
    def _history(self) -> tuple[Latest, NDArray[np.intp]]:
        """All that was told since the course by chain and time, and where each chain begins."""
        parts: Any = [np.concatenate(part) for part in zip(*self.told_since, strict=True)]
        every = Latest(*parts)
        every = every._replace(chain=places(self.who, every.who))
        order = np.lexsort((every.times, every.chain))
        counts = np.bincount(every.chain, minlength=len(self.who))
        parts = [part[order] for part in every]
        return Latest(*parts), np.concatenate([[0], np.cumsum(counts)])

    def wider(self, items: Array) -> "ThroughTime":
        """This posterior with features for groups of further items, as their prior has them."""
        if self.static is None:
            return self
        static, stay = self.static.wider(items)
        rank = len(static.source)
        if rank == len(stay):
            return self
        mean, root = np.zeros(rank), np.diag(np.sqrt(static.variance))
        mean[stay], root[np.ix_(stay, stay)] = self.static_mean, self.static_root
        return replace(self, static=static, static_mean=mean, static_root=root)

    def told(self, news: Latest, static_mean: Array, static_root: Array) -> "ThroughTime":
        """This posterior after answers of one time, which is later than all that it knows of these
        items; what it says of earlier times stays, until `smoothed`."""
        n, new = len(self.who), news.chain < 0
        who = np.concatenate([self.who, news.who[new]])
        chain = news.chain.copy()
        chain[new] = n + np.arange(np.count_nonzero(new))
        size = self.drift.size
        shapes = (), self.who.shape[1:], (), (size, size), (size,), (), ()
        before = self.last
        grown = []
        for at, (part, shape) in enumerate(zip(news, shapes, strict=True)):
            whole = np.zeros((len(who), *shape), dtype=part.dtype)
            if at == 2:
                whole[:] = -np.inf
            if before is not None:
                whole[:n] = before[at]
            whole[chain] = part
            grown.append(whole)
        return replace(
            self,
            who=who,
            told_since=(*self.told_since, news),
            last=Latest(*grown),
            static_mean=static_mean,
            static_root=static_root,
        )

    def smoothed(self) -> "ThroughTime":
        """This posterior where what was told later counts for earlier times too.

        What the answers said of each item, given what was known of the others then, stays.
        """
        if self.last is None:
            return self
        every, _ = self._history
        course = self.course
        chain = np.repeat(np.arange(len(course.begin) - 1), np.diff(course.begin))
        chain = np.concatenate([chain, every.chain])
        nodes = Nodes(chain, np.concatenate([course.times, every.times]))
        precision, shift = np.zeros((2, nodes.n_nodes))
        np.add.at(precision, nodes.node, np.concatenate([course.precision, every.precision]))
        np.add.at(shift, nodes.node, np.concatenate([course.shift, every.shift]))
        chains = Chains(nodes, self.drift)
        known = chains.filtered(precision)
        weights = shift - precision * chains.smoother(known).means(shift)
        begin = np.concatenate([[0], np.cumsum(np.bincount(nodes.chain, minlength=len(self.who)))])
        course = Course.of(chains, known, weights, begin)
        return replace(self, course=course, told_since=(), last=None)

    def _drifting(self, rows: Array) -> tuple[Array, Array, Array]:
        """Mean, variance and prior variance of the part of the utility that drifts."""
        h = self.drift.seen
        found = self.states(self.chains_of(rows), rows[:, self.drift.time])
        toward = found.covariance @ h
        prior = toward @ h
        variance = prior - np.einsum("ni,nij,nj->n", toward, found.slope, toward)
        return found.mean @ h, variance, prior

    def _values(self, rows: Array) -> tuple[Array, Array]:
        """Mean and variance of the utility at rows."""
        mean, variance, prior = self._drifting(rows)
        if self.static is not None:
            features, beside = self.static.at(rows)
            mean += features @ self.static_mean
            variance += beside + np.sum((features @ self.static_root.T) ** 2, axis=1)
            prior = prior + beside
        return mean, floor_variance(variance, prior)

    def means_at(self, X: Array) -> Array:
        """See `Components.means_at`."""
        return self._values(X)[0][:, None]

    def mean(self, X: Any) -> Array:
        """Posterior mean utility, shape (n,)."""
        return self._values(self.check_items(X))[0]

    def shared_var(self, X: Array) -> Array:
        """See `Components.shared_var`."""
        return self._values(X)[1]

    def between(self, X: Array, Z: Array) -> Array:
        """Covariance of the utilities at the rows of X and Z, (n, m)."""
        if self._at_one_time(X, Z):
            who = list(self.drift.who)
            _, code = distinct_rows(np.concatenate([X[:, who], Z[:, who]]))
            same = code[: len(X), None] == code[None, len(X) :]
            found = np.where(same, self._drifting(X)[1][:, None], 0.0)
        else:
            found = self._between_times(X, Z)
        if self.static is not None:
            one_, _ = self.static.at(X)
            two_, _ = self.static.at(Z)
            found += (one_ @ self.static_root.T) @ (two_ @ self.static_root.T).T
            found += self.static.beside(X[:, None], Z[None])
        return found

    def _at_one_time(self, *parts: Array) -> bool:
        """Whether no two rows are of different times."""
        times = np.concatenate([part[:, self.drift.time] for part in parts])
        return bool(np.all(times == times[:1]))

    def _between_times(self, X, Z):
        """Covariance of what drifts, at any times."""
        chains, times = self.chains_of(X), X[:, self.drift.time]
        others, at = self.chains_of(Z), Z[:, self.drift.time]
        found = np.zeros((len(X), len(Z)))
        for known in np.intersect1d(chains[chains >= 0], others[others >= 0]):
            one, two = np.flatnonzero(chains == known), np.flatnonzero(others == known)
            every, place = np.unique(np.concatenate([times[one], at[two]]), return_inverse=True)
            place = place.reshape(-1)
            among = self._among(int(known), every)
            found[np.ix_(one, two)] = among[np.ix_(place[: len(one)], place[len(one) :])]
        new = np.flatnonzero(chains < 0), np.flatnonzero(others < 0)
        if len(new[0]) and len(new[1]):
            who = list(self.drift.who)
            same = np.all(X[new[0]][:, None, who] == Z[new[1]][None, :, who], axis=2)
            prior = self.drift.covariance(times[new[0]][:, None], at[new[1]][None, :])
            found[np.ix_(*new)] = np.where(same, prior, 0.0)
        return found

    def _among(self, chain: int, times: Array) -> Array:
        """Covariance of one chain's values at ascending times, (m, m)."""
        drift, course, h = self.drift, self.course, self.drift.seen
        found = self.states(np.full(len(times), chain), times)
        m, size = len(times), drift.size
        reach = np.zeros((m, size, size))  # covariance of the state at each time with that now
        cov = np.zeros((m, m))
        sites = []
        if chain < len(course.begin) - 1:
            rows = slice(course.begin[chain], course.begin[chain + 1])
            sites = list(zip(course.times[rows], course.precision[rows], strict=True))
        if self.last is not None:
            every, begin = self._history
            rows = slice(begin[chain], begin[chain + 1])
            sites += zip(every.times[rows], every.precision[rows], strict=True)
        stops = [(float(time), 0, float(precision)) for time, precision in sites]
        stops += [(float(t), 1, float(k)) for k, t in enumerate(times)]
        now, P = None, np.zeros((size, size))
        for time, asked, told in sorted(stops):
            if now is None:
                P = drift.spread(np.array([time]))[:, :, 0]
            else:
                A, Q = (each[:, :, 0] for each in drift.moved(np.array([now]), np.array([time])))
                P, reach = A @ P @ A.T + Q, reach @ A.T
            now = time
            if not asked:
                gain = P @ h
                share = told / (1.0 + told * (h @ gain))
                reach = reach - share * (reach @ h)[:, :, None] * gain
                P = P - share * np.outer(gain, gain)
                continue
            k = int(told)
            reach[k] = P
            left = np.eye(size) - found.slope[k] @ P
            cov[: k + 1, k] = cov[k, : k + 1] = (h @ reach[: k + 1]) @ (left @ h)
        return cov

    def component_cov(self, X: Any) -> Array:
        """Covariance of the utilities, shape (n, n)."""
        X = self.check_items(X)
        found = self.between(X, X)
        np.fill_diagonal(found, self.shared_var(X))
        return found

    def cov(self, X: Any) -> Array:
        """Posterior covariance of the utilities, shape (n, n)."""
        return self.component_cov(X)

    def moments_with_first(self, X: Any, m: int) -> tuple[Array, Array, Array]:
        """See `Components.moments_with_first`."""
        X = self.check_items(X)
        mean, variance = self._values(X)
        return mean[:, None], variance, self.between(X, X[:m])

    def component_averages(self, X: Array, shares: Array) -> tuple[Array, Array]:
        """See `Components.component_averages`."""
        n, m, _ = X.shape
        flat = X.reshape(n * m, -1)
        means = self.means_at(flat).reshape(n, m, 1)
        cov = self.component_cov(flat).reshape(n, m, n, m)
        averaged = np.einsum("imjk,m,k->ij", cov, shares, shares)
        return np.einsum("imc,m->ic", means, shares), averaged

    def component_sums(self, X: Array, weights: Array) -> tuple[Array, Array]:
        """See `Components.component_sums`; of rows of one time in memory linear in them."""
        means = weights @ self.means_at(X)
        if not self._at_one_time(X):
            cov = self.component_cov(X)
            return means, np.maximum(np.sum((weights @ cov) * weights, axis=1), 0.0)
        who, code = distinct_rows(X[:, list(self.drift.who)])
        first = np.zeros(len(who), dtype=np.intp)
        first[code] = np.arange(len(X))
        each = np.stack([np.bincount(code, row, minlength=len(who)) for row in weights])
        variance = each**2 @ self._drifting(X[first])[1]
        if self.static is not None:
            features, beside = self.static.at(X)
            spread = (weights @ features) @ self.static_root.T
            variance += np.sum(spread**2, axis=1)
            if beside.any():
                both = self.static.beside(X[:, None], X[None])
                variance += np.sum((weights @ both) * weights, axis=1)
        return means, np.maximum(variance, 0.0)

    def pair_block(self, rows: Array, others: Array) -> tuple[Array, Array]:
        """See `Components.pair_block`."""
        one, two = self._values(rows), self._values(others)
        mean, variance = one[0] - two[0], one[1] + two[1]
        scale = variance.copy()
        who = list(self.drift.who)
        met = np.flatnonzero(np.all(rows[:, who] == others[:, who], axis=1))
        for k in met:
            variance[k] -= 2.0 * self.between(rows[k : k + 1], others[k : k + 1])[0, 0]
        if self.static is not None:
            rest = np.setdiff1d(np.arange(len(rows)), met)
            first, second = (self.static.at(each[rest])[0] for each in (rows, others))
            both = (first @ self.static_root.T) * (second @ self.static_root.T)
            beside = self.static.beside(rows[rest], others[rest])
            variance[rest] -= 2.0 * (np.sum(both, axis=1) + beside)
        scale[np.all(rows == others, axis=1)] = 0.0
        return mean[:, None], floor_variance(variance, scale)

    def set_covariance(self, rows: Array, at: NDArray[np.intp]) -> Array:
        """See `Components.set_covariance`."""
        found = np.empty((*at.shape, at.shape[1]))
        for k, some in enumerate(at):
            found[k] = self.component_cov(Shown("items", rows[some]))
        return found

    def blocks(self, X: Array) -> list[Array]:
        """See `Components.blocks`."""
        return [X[start : start + _ROWS] for start in range(0, len(X), _ROWS)]

    # -- draws -------------------------------------------------------------------------------

    def sample(self, X: Any, n: int = 1, rng: RandomLike = None) -> Array:
        """Joint draws of the utilities of the items, shape (n_items, n)."""
        check_number("n", n, low=1, integer=True)
        X, rng = self.check_items(X), generator_of(rng)
        root = eigen_root(self.component_cov(Shown("items", X)))
        return self._values(X)[0][:, None] + root @ rng.standard_normal((root.shape[1], n))

    def hallucinate(self, rng: RandomLike = None) -> Posterior:
        """Itself: it has one component."""
        return self

    def cross(self, X: Array) -> Array:
        """Refused: there are no anchors."""
        raise NotImplementedError(_NOT_OF_CHAINS.format("covariances with their training items"))

    def joint_with(self, item: ArrayLike) -> Any:
        """Refused."""
        raise NotImplementedError(_NOT_OF_CHAINS.format("derivatives in the items"))

    def joint_rows(self, fixed: Any = ()) -> Any:
        """Refused."""
        raise NotImplementedError(_NOT_OF_CHAINS.format("derivatives in the items"))

    def sample_paths(self, n: int = 1, rng: RandomLike = None, **options: Any) -> Any:
        """Refused."""
        raise NotImplementedError(_NOT_OF_CHAINS.format("draws of whole functions"))

    def mean_gradient(self, X: Any) -> Array:
        """Refused."""
        raise NotImplementedError(_NOT_OF_CHAINS.format("derivatives in the items"))

    def var_gradient(self, X: Any) -> Array:
        """Refused."""
        raise NotImplementedError(_NOT_OF_CHAINS.format("derivatives in the items"))
