"""Readings of the judges: who is reliable, adversarial or answers at random, and how probable.

Where all utilities change their signs and all judges turn round, answers are as probable as before.
So a few judges, or two blocks that contradict each other, leave several readings open, in each of
which the utility is another. A reading says of some judges which kind they are. Readings exclude
each other, and the weight of one is its evidence, with the reliability of judges integrated out.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skpref._utils import ITERATION_CAP, Array
from skpref.data import Comparisons
from skpref.fitting._reliability import Cavities
from skpref.gp import Prior
from skpref.inference import Problem

# Readings less probable than the best one by more than so many nats are dropped.
DEPTH = 8.0
# Judges at most whose kinds are told apart: all combinations of their kinds may have to be looked
# at, 3 to this power.
MOST_JUDGES = 6
# Share that a judge gave of the answers about the same items, for the kind to be told apart: with
# less the utility is nearly the same for each kind. With 30 judges of 10 answers about 20 items no
# probability moves by more than 0.01 if all are told apart, and it takes 27 times the seconds.
LEAST_SHARE = 0.1
# Nats by which cavities may understate how probable it is that a judge answers at random, or does
# not: they hold the judge's other answers.
CAVITY_ERROR = 3.0

# Whether each judge may be reliable, adversarial, or answer at random, (n_judges, 3).
Kinds: TypeAlias = NDArray[np.bool_]


def _turn_kind(kind: Any) -> Any:
    """Return the column of a kind of judge where the judge is turned round."""
    return np.array([1, 0, 2])[kind]


class Reading(NamedTuple):
    """Judges of some kinds, and what is estimated of other kinds from here.

    Attributes
    ----------
    kinds : ndarray of bool of shape (n_judges, 3)
        Whether each judge may be reliable, adversarial, or answer at random.
    log_weight : float
        Log evidence, the probability of these kinds included.
    log_masses : ndarray of shape (n_judges, 3)
        Log of each kind's share times the probability of the judge's answers, by their cavities.
    judges : ndarray of int of shape (n,)
        Those who gave most of the answers about their items.
    coupling : ndarray of shape (n, n)
        Nats that the answers of two of these judges have in common, see `judge_coupling`.
    support : ndarray of shape (n,)
        Nats that the answers of each have in common with those of all other judges.
    fit : object
        What the caller keeps of it.
    """

    kinds: Kinds
    log_weight: float
    log_masses: Array
    judges: NDArray[np.intp]
    coupling: Array
    support: Array
    fit: Any

    @property
    def likely_kinds(self) -> NDArray[np.intp]:
        """Return the most probable kind of each judge, of those that the reading admits."""
        return np.where(self.kinds, self.log_masses, -np.inf).argmax(axis=1)

    @property
    def key(self) -> bytes:
        """Return bytes that differ between readings."""
        return _encode_kinds(self.kinds, self.likely_kinds)

    def turn_judges(self, judges: NDArray[np.intp]) -> Kinds:
        """Return the kinds where some judges are turned round."""
        kinds = self.kinds.copy()
        kinds[judges] = kinds[judges][:, _turn_kind([0, 1, 2])]
        return kinds

    def turning_gains(self, log_shares: Array, is_random: bool) -> Array:
        """Return nats gained where each judge and the utility are turned round, (n_judges,).

        ``is_random``: judges who answer at random stay as they are; else they are of no other kind.
        """
        with np.errstate(invalid="ignore"):  # a kind of no share
            after = (self.log_masses - log_shares)[:, _turn_kind([0, 1, 2])] + log_shares
        possible = self.kinds[:, _turn_kind([0, 1, 2])] & (log_shares > -np.inf)
        possible[:, 2] &= is_random
        after = np.where(possible, after, -np.inf)
        before = np.where(self.kinds, self.log_masses, -np.inf)
        return np.asarray(logsumexp(after, axis=1) - logsumexp(before, axis=1))

    def turns(self, log_shares: Array) -> Iterator[tuple[NDArray[np.intp], float]]:
        """Yield judges who may be turned round together, and the estimated nats gained."""
        gains = self.turning_gains(log_shares, False)[self.judges]
        sizes = range(1, 1 + int(np.sum(gains > -np.inf)))
        for some in (
            each for n in sizes for each in combinations(np.flatnonzero(gains > -np.inf), n)
        ):
            at = np.array(some)
            among = self.coupling[np.ix_(at, at)]
            cut = self.support[at].sum() - among.sum() + np.trace(among)
            yield self.judges[at], float(gains[at].sum() - 2.0 * cut)
        if len(self.judges) < len(self.kinds):
            every = np.arange(len(self.kinds))
            yield every, float(self.turning_gains(log_shares, True).sum())

    def kind_gains(self, judge: int) -> Array:
        """Estimate the nats gained where one judge is of each kind; −∞ for the kind that is."""
        masses = np.where(self.kinds[judge], self.log_masses[judge], -np.inf)
        likely_kind = int(masses.argmax())
        gains = self.log_masses[judge] - masses[likely_kind] + CAVITY_ERROR
        if likely_kind != 2:  # at random  # that is for `turns` to tell
            gains[_turn_kind(likely_kind)] = -np.inf
        gains[likely_kind] = -np.inf
        return np.asarray(gains)


def open_readings(
    first: Reading,
    log_shares: Array,
    evaluate: Callable[[Kinds, Reading, NDArray[np.intp]], Reading],
) -> list[Reading]:
    """Find the readings that the answers leave open, the most probable one first.

    Parameters
    ----------
    first : Reading
        In which every judge may be of any kind, or some of one kind alone: these are told apart.
    log_shares : ndarray of shape (3,)
        Of the kinds among judges.
    evaluate : callable
        ``evaluate(kinds, near, judges)``: the reading of these kinds, from one that is near, in
        which some judges are turned round.

    Returns
    -------
    list of Reading
        ``first`` alone, where other kinds of judges are not probable.
    """
    judges = open_judges(first, log_shares)
    if not len(judges):
        return [first]
    start = first.kinds.copy()
    start[judges] = np.eye(3, dtype=bool)[first.likely_kinds[judges]]
    if not np.array_equal(start, first.kinds):
        first = evaluate(start, first, judges[:0])
    readings, tried = {first.key: first}, {first.key}
    best, waiting = first.log_weight, _propose_changes(first, judges, log_shares)
    for _ in range(ITERATION_CAP):
        waiting = [each for each in waiting if each.key not in tried]
        if not waiting:
            break
        change = max(waiting, key=lambda each: each.estimate)
        if change.estimate < best - DEPTH:
            break
        tried.add(change.key)
        reading = evaluate(change.kinds, change.near, change.turned)
        if reading.key in readings:
            continue
        readings[reading.key] = reading
        tried.add(reading.key)
        best = max(best, reading.log_weight)
        if reading.log_weight > best - DEPTH:
            waiting += _propose_changes(reading, judges, log_shares)
    ordered = sorted(readings.values(), key=lambda each: -each.log_weight)
    return [each for each in ordered if each.log_weight >= best - DEPTH]


def open_judges(first: Reading, log_shares: Array) -> NDArray[np.intp]:
    """Find the judges whose kinds are to be told apart: another kind is probable for them."""
    some = set(np.flatnonzero(first.kinds.sum(axis=1) == 1))
    some.update(judge for judge in first.judges if first.kind_gains(judge).max() > -DEPTH)
    for judges, gain in first.turns(log_shares):
        if gain > -DEPTH:
            some.update(judges if len(judges) <= len(first.judges) else first.judges[:1])
    return np.array(sorted(some), dtype=np.intp)


class _Change(NamedTuple):
    """Kinds near those of a reading, judges who are turned round, and the estimated log weight."""

    kinds: Kinds
    near: Reading
    turned: NDArray[np.intp]
    estimate: float
    key: bytes


def _propose_changes(near, judges, log_shares):
    """Return the changes of a reading's kinds that are to be evaluated, with estimates."""
    changes = []

    def add(kinds, turned, gain):
        likely = near.likely_kinds.copy()
        likely[turned] = _turn_kind(likely[turned])
        key = _encode_kinds(kinds, likely)
        changes.append(_Change(kinds, near, turned, near.log_weight + float(gain), key))

    for judge in judges:
        gains = near.kind_gains(judge)
        for kind in np.flatnonzero(gains > -np.inf):
            kinds = near.kinds.copy()
            kinds[judge] = np.arange(3) == kind
            add(kinds, judges[:0], gains[kind])
    for turned, gain in near.turns(log_shares):
        if np.isin(turned, judges).all() or len(turned) > len(near.judges):
            add(near.turn_judges(turned), turned, gain)
    return changes


def _encode_kinds(kinds, likely):
    """Encode who is of one kind for certain, and the likely kinds of the rest."""
    settled = kinds.sum(axis=1) == 1
    return np.where(settled, 3 + kinds.argmax(axis=1), likely).astype(np.int8).tobytes()


def influential_judges(comparisons: Comparisons, n_judges: int) -> NDArray[np.intp]:
    """Find the judges who gave most of the answers about their items, at most `MOST_JUDGES`.

    Returns
    -------
    ndarray of int
        At least one judge; those with the largest shares, of equal ones those with most answers.
    """
    rows = comparisons.rows
    judge, counts = np.tile(np.asarray(rows.judge), 2), np.tile(rows.counts, 2)
    item = np.concatenate([rows.first, rows.second])
    about = np.bincount(item, counts, len(comparisons.items))
    pair, inverse = np.unique(judge * len(about) + item, return_inverse=True)
    own = np.bincount(inverse.reshape(-1), counts)
    total = np.bincount(judge, counts, n_judges)
    # Of each answer the judge's share of all about its items, on average.
    of_pair = own**2 / np.maximum(about[pair % len(about)], np.finfo(float).tiny)
    share = np.bincount(pair // len(about), of_pair, n_judges) / np.maximum(total, 1e-300)
    order = np.lexsort((-total, -np.round(share, 9)))[:MOST_JUDGES]
    enough = (share[order] >= LEAST_SHARE) | (n_judges <= MOST_JUDGES)
    return order[enough] if enough.any() else order[:1]


def judge_coupling(
    problem: Problem,
    cavities: Cavities,
    judges: NDArray[np.intp],
    beside: Prior | None = None,
) -> tuple[Array, Array]:
    """Compute the nats that the answers of judges have in common, by Gaussian sites.

    Sites of shifts ν have the log evidence ½ νᵀ Σ ν and a constant, Σ being the posterior
    covariance. With s the signs of the judges that is ½ Σ_jk s_j s_k M_jk with M_jk = ν_jᵀ Σ ν_k,
    so that judges who are turned round lose twice the M_jk that they have with all others. Of a
    margin that reliability multiplies in part, Σ is the part of that.

    Parameters
    ----------
    problem : Problem
    cavities : Cavities
    judges : ndarray of int of shape (n,)
    beside : Prior, optional
        Of what stays in the margins where judges are turned round.

    Returns
    -------
    coupling : ndarray of shape (n, n)
        M of these judges.
    support : ndarray of shape (n,)
        Sums of M with all other judges.
    """
    prior, judge = problem.prior, np.asarray(problem.answers.judge)
    precision = problem.pool(cavities.site_precision, problem.copies)
    shift = problem.sign * cavities.site_shift
    own = [problem.pool(shift * (judge == each), problem.copies) for each in judges]

    def turning(pull: Array) -> Array:
        mean, dual = prior.centre(precision, pull)
        return mean if beside is None else mean - beside.times(dual)

    mean = [turning(pull) for pull in own]
    every = turning(problem.pool(shift, problem.copies))
    coupling = np.array([[pull @ each for each in mean] for pull in own])
    coupling = coupling.reshape(len(judges), len(judges))
    support = np.array([pull @ every for pull in own]) - np.diagonal(coupling)
    return coupling, support
