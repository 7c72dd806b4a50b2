"""What is known of chains through time once answers have told of them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array
from skpref.data import distinct_rows
from skpref.gp._kalman import Chains, Filtered, Nodes
from skpref.kernels import Drift


def find_places(known: Array, rows: Array) -> NDArray[np.intp]:
    """Find the places of rows among distinct ones, −1 where they have none."""
    if known.shape[1] == 1:
        order = np.argsort(known[:, 0], kind="stable")
        at = np.searchsorted(known[order, 0], rows[:, 0])
        candidate = order[np.minimum(at, len(known) - 1)]
        return np.where(known[candidate, 0] == rows[:, 0], candidate, -1)
    _, code = distinct_rows(np.concatenate([known, rows]))
    place = np.full(int(code.max(initial=-1)) + 1, -1)
    place[code[: len(known)]] = np.arange(len(known))
    return place[code[len(known) :]]


class Course(NamedTuple):
    """Hold what is known of chains at their nodes, by chain and in it by time.

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
    def from_sites(
        cls, chains: Chains, known: Filtered, weights: Array, begin: NDArray[np.intp]
    ) -> "Course":
        """Make the course of chains given sites, whose values' mean is K times some weights."""
        state, pull = chains.propagate_weights(weights)
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

    def last_node_before(self, chain: NDArray[np.intp], times: Array) -> NDArray[np.intp]:
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
    """Hold what answers of one time have brought; arrays run over the nodes.

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


@dataclass(frozen=True, eq=False)
class KnownChains:
    """Chains of one drift given answers, each independent of the others.

    Of rows the columns of the drift say who an item is, and when.

    Parameters
    ----------
    drift : Drift
    who : ndarray of shape (n_chains, n_columns)
        Who the items are.
    course : Course
    told_since : tuple of Latest
        What later answers have brought, which does not change what is said of earlier times.
    last : Latest or None
        Of each chain the last of these; its time is -inf where there is none.
    """

    drift: Drift
    who: Array
    course: Course
    told_since: tuple[Latest, ...] = ()
    last: Latest | None = None

    def chains_of(self, rows: Array) -> NDArray[np.intp]:
        """Find the chains that rows belong to, −1 of who is new."""
        return find_places(self.who, rows[:, list(self.drift.who)])

    def last_times(self, chain: NDArray[np.intp]) -> Array:
        """The last time at which something is known of chains, −inf where nothing is."""
        times = np.full(len(chain), -np.inf)
        of_course = (chain >= 0) & (chain < len(self.course.begin) - 1)
        times[of_course] = self.course.times[self.course.begin[chain[of_course] + 1] - 1]
        if self.last is not None:
            times = np.where(chain >= 0, np.maximum(times, self.last.times[chain]), times)
        return times

    def known_times(self, rows: Array) -> list[Array]:
        """List of each row the distinct times at which answers told of its chain, ascending."""
        chain = self.chains_of(rows)
        begin, times = self.course.begin, self.course.times
        # Who came later has no part in the course.
        times_by_row = [
            times[begin[k] : begin[k + 1]] if 0 <= k < len(begin) - 1 else np.zeros(0)
            for k in chain
        ]
        if self.last is not None:
            every, start = self._history
            times_by_row = [
                np.concatenate([known, every.times[start[k] : start[k + 1]]]) if k >= 0 else known
                for known, k in zip(times_by_row, chain, strict=True)
            ]
        return list(map(np.unique, times_by_row))

    def states(self, chain: NDArray[np.intp], times: Array) -> StateMoments:
        """Compute the moments of the states of chains at some times."""
        drift, course = self.drift, self.course
        n, size = len(times), drift.size
        # Who came later has no part in the course.
        course_chain = np.where(chain < len(course.begin) - 1, chain, -1)
        at = course.last_node_before(np.maximum(course_chain, 0), times)
        has_past = (course_chain >= 0) & (at >= course.begin[course_chain])
        ahead = at + 1
        follows = (course_chain >= 0) & (ahead < course.begin[course_chain + 1])
        mean, slope, pull = np.zeros((n, size)), np.zeros((n, size, size)), np.zeros((n, size))
        if follows.any():
            after = ahead[follows]
            A, _ = drift.transition(times[follows], course.times[after])
            pull[follows] = np.einsum("jin,nj->ni", A, course.pull[after])
            half = np.einsum("jin,njk->nik", A, course.slope[after])
            slope[follows] = np.einsum("nij,jkn->nik", half, A)
        before, P, state = np.zeros(n), np.zeros((n, size, size)), np.zeros((n, size))
        before[has_past] = course.times[at[has_past]]
        P[has_past], state[has_past] = course.covariance[at[has_past]], course.state[at[has_past]]
        if self.last is not None:
            has_past = self._use_latest_news(chain, times, has_past, (before, P, state))
        covariance = np.empty_like(P)
        covariance[~has_past] = np.moveaxis(drift.spread(times[~has_past]), 2, 0)
        mean[~has_past] = np.einsum("nij,nj->ni", covariance[~has_past], pull[~has_past])
        if has_past.any():
            A, Q = drift.transition(before[has_past], times[has_past])
            Q = np.moveaxis(Q, 2, 0)
            half = np.einsum("ijn,njk->nik", A, P[has_past])
            covariance[has_past] = np.einsum("nij,kjn->nik", half, A) + Q
            mean[has_past] = np.einsum("ijn,nj->ni", A, state[has_past])
            mean[has_past] += np.einsum("nij,nj->ni", Q, pull[has_past])
        return StateMoments(mean, covariance, slope)

    def _use_latest_news(self, chain, times, has_past, from_):
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
            at = course.last_node_before(chain[some], times[some])
            has_news = at >= begin[chain[some]]
            rows.append(some[has_news])
            source.append((every, at[has_news]))
        for at, (news, place) in zip(rows, source, strict=True):
            from_[0][at], from_[1][at] = news.times[place], news.covariance[place]
            from_[2][at] = news.state[place]
            has_past = has_past.copy()
            has_past[at] = True
        return has_past

    @cached_property
    def _history(self) -> tuple[Latest, NDArray[np.intp]]:
        """All that was told since the course by chain and time, and where each chain begins."""
        parts: Any = [np.concatenate(part) for part in zip(*self.told_since, strict=True)]
        every = Latest(*parts)
        every = every._replace(chain=find_places(self.who, every.who))
        order = np.lexsort((every.times, every.chain))
        counts = np.bincount(every.chain, minlength=len(self.who))
        parts = [part[order] for part in every]
        return Latest(*parts), np.concatenate([[0], np.cumsum(counts)])

    def with_news(self, news: Latest) -> "KnownChains":
        """These chains after answers of one time, which is later than all that is known of these
        items; what is known of earlier times stays, until `smoothed`."""
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
        return replace(self, who=who, told_since=(*self.told_since, news), last=Latest(*grown))

    def smoothed(self) -> "KnownChains":
        """These chains where what was told later counts for earlier times too.

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
        filtered = chains.condition_nodes(precision)
        weights = shift - precision * chains.smoother(filtered).means(shift)
        begin = np.concatenate([[0], np.cumsum(np.bincount(nodes.chain, minlength=len(self.who)))])
        course = Course.from_sites(chains, filtered, weights, begin)
        return replace(self, course=course, told_since=(), last=None)

    def moments(self, rows: Array) -> tuple[Array, Array, Array]:
        """Mean and variance of the values at rows, and the variance before later answers."""
        h = self.drift.seen
        states = self.states(self.chains_of(rows), rows[:, self.drift.time])
        toward = states.covariance @ h
        prior = toward @ h
        variance = prior - np.einsum("ni,nij,nj->n", toward, states.slope, toward)
        return states.mean @ h, variance, prior

    def cross_covariance(self, X: Array, Z: Array) -> Array:
        """Covariance of the values at the rows of X and Z, (n, m)."""
        if self.at_one_time(X, Z):
            who = list(self.drift.who)
            _, code = distinct_rows(np.concatenate([X[:, who], Z[:, who]]))
            same = code[: len(X), None] == code[None, len(X) :]
            return np.where(same, self.moments(X)[1][:, None], 0.0)
        chains, times = self.chains_of(X), X[:, self.drift.time]
        others, at = self.chains_of(Z), Z[:, self.drift.time]
        covariance = np.zeros((len(X), len(Z)))
        for chain in np.intersect1d(chains[chains >= 0], others[others >= 0]):
            first, second = np.flatnonzero(chains == chain), np.flatnonzero(others == chain)
            every, place = np.unique(
                np.concatenate([times[first], at[second]]), return_inverse=True
            )
            place = place.reshape(-1)
            among = self._chain_covariance(int(chain), every)
            covariance[np.ix_(first, second)] = among[
                np.ix_(place[: len(first)], place[len(first) :])
            ]
        new = np.flatnonzero(chains < 0), np.flatnonzero(others < 0)
        if len(new[0]) and len(new[1]):
            who = list(self.drift.who)
            same = np.all(X[new[0]][:, None, who] == Z[new[1]][None, :, who], axis=2)
            prior = self.drift.covariance(times[new[0]][:, None], at[new[1]][None, :])
            covariance[np.ix_(*new)] = np.where(same, prior, 0.0)
        return covariance

    def at_one_time(self, *parts: Array) -> bool:
        """Say whether no two rows are of different times."""
        times = np.concatenate([part[:, self.drift.time] for part in parts])
        return bool(np.all(times == times[:1]))

    def pair_covariances(self, rows: Array, others: Array) -> Array:
        """Covariance of the values of each of some rows and another, (n,)."""
        who = list(self.drift.who)
        covariance = np.zeros(len(rows))
        for k in np.flatnonzero(np.all(rows[:, who] == others[:, who], axis=1)):
            covariance[k] = self.cross_covariance(rows[k : k + 1], others[k : k + 1])[0, 0]
        return covariance

    def variance_of_sums(self, X: Array, weights: Array) -> Array:
        """Variance of weighted sums of the values at rows of one time, weights (m, n)."""
        who, code = distinct_rows(X[:, list(self.drift.who)])
        first = np.zeros(len(who), dtype=np.intp)
        first[code] = np.arange(len(X))
        totals = np.stack([np.bincount(code, row, minlength=len(who)) for row in weights])
        variance: Array = totals**2 @ self.moments(X[first])[1]
        return variance

    def _chain_covariance(self, chain: int, times: Array) -> Array:
        """Covariance of one chain's values at ascending times, (m, m)."""
        drift, course, h = self.drift, self.course, self.drift.seen
        states = self.states(np.full(len(times), chain), times)
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
        previous, P = None, np.zeros((size, size))
        for time, asked, value in sorted(stops):
            if previous is None:
                P = drift.spread(np.array([time]))[:, :, 0]
            else:
                A, Q = (
                    each[:, :, 0]
                    for each in drift.transition(np.array([previous]), np.array([time]))
                )
                P, reach = A @ P @ A.T + Q, reach @ A.T
            previous = time
            if not asked:
                gain = P @ h
                share = value / (1.0 + value * (h @ gain))
                reach = reach - share * (reach @ h)[:, :, None] * gain
                P = P - share * np.outer(gain, gain)
                continue
            k = int(value)
            reach[k] = P
            shrinkage = np.eye(size) - states.slope[k] @ P
            cov[: k + 1, k] = cov[k, : k + 1] = (h @ reach[: k + 1]) @ (shrinkage @ h)
        return cov
