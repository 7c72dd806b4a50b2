"""The posterior of items that change through time, each given its own course."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import (
    Array,
    Fields,
    RandomLike,
    check_number,
    floor_variance,
    make_generator,
    row_blocks,
    symmetric_root,
)
from skpref.data import ParsedX, distinct_rows
from skpref.gp._known_chains import KnownChains, Latest, find_places
from skpref.gp._posterior import Posterior
from skpref.kernels import Drifts, FiniteFeatures, Teams

_NOT_OF_CHAINS = (
    "Items that are independent through time, of inference=EP(items='independent'), do not know "
    "{0}. Fit with items='joint', which takes every kernel and some thousand answers."
)


class StaticFeatures(Fields):
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
    def from_items(cls, few: FiniteFeatures, items: Array) -> "StaticFeatures":
        """Those in the groups of some items, (n_items, n_columns)."""
        columns = [list(term.group) for term in few.terms]
        return cls(few, [distinct_rows(items[:, each])[0] if each else None for each in columns])

    def extend_to_items(self, items: Array) -> tuple["StaticFeatures", NDArray[np.intp]]:
        """Features in the groups of further items too, and where those of before stand in them."""
        every: list[Array | None] = []
        stay: list[NDArray[np.bool_]] = []
        for term, groups in zip(self.few.terms, self._known, strict=True):
            n = 1 if groups is None else len(groups)
            new = 0
            if groups is not None:
                keys, _ = distinct_rows(items[:, list(term.group)])
                keys = keys[find_places(groups, keys) < 0]
                new, groups = len(keys), np.concatenate([groups, keys])
            every.append(groups)
            stay.append(np.repeat([True, False], np.array([n, new]) * len(term.monomials)))
        return StaticFeatures(self.few, every), np.flatnonzero(np.concatenate(stay))

    @property
    def variance(self) -> Array:
        """Compute the variance of each feature's weight, (rank,)."""
        return self.few.variance[self.source]

    @property
    def slope(self) -> Array:
        """Compute the slopes of these variances in the kernel's theta, (rank, n_theta)."""
        return self.few.slope[self.source]

    def at(self, items: Array) -> tuple[Array, Array]:
        """Features of items (n, rank), and the variance of what is in none of them (n,)."""
        blocks, unseen_variance = [], np.zeros(len(items))
        begin = 0
        for term, groups in zip(self.few.terms, self._known, strict=True):
            values, n = term.values(items), len(term.monomials)
            variance = self.few.variance[begin : begin + n]
            begin += n
            if groups is None:
                blocks.append(values)
                continue
            own = find_places(groups, items[:, list(term.group)])
            block = np.zeros((len(items), len(groups), n))
            has_group = own >= 0
            block[np.flatnonzero(has_group), own[has_group]] = values[has_group]
            unseen_variance[~has_group] += values[~has_group] ** 2 @ variance
            blocks.append(block.reshape(len(items), -1))
        return np.concatenate(blocks, axis=1), unseen_variance

    def sums(self, rows: Array, weights: Array) -> tuple[Array, Array]:
        """Weighted sums of the features of rows (k, n, d), weights (k, n): (n, rank); and of the
        variances of what is in none of them, with squared weights: (n,)."""
        total, unseen = np.zeros((rows.shape[1], len(self.source))), np.zeros(rows.shape[1])
        for each, weight in zip(rows, weights, strict=True):
            features, unseen_variance = self.at(each)
            total, unseen = total + weight[:, None] * features, unseen + weight**2 * unseen_variance
        return total, unseen

    def unseen_group_covariance(self, one: Array, other: Array) -> Array:
        """Covariance of what is in none of them: items of a group that is not known share it.

        Of a pair each, (n,), where both are (n, d); (n, m) of items (n, 1, d) and (1, m, d).
        """
        covariance = np.zeros(np.broadcast_shapes(one.shape, other.shape)[:-1])
        begin = 0
        for term, groups in zip(self.few.terms, self._known, strict=True):
            n = len(term.monomials)
            variance = self.few.variance[begin : begin + n]
            begin += n
            if groups is None:
                continue
            flat = one.reshape(-1, one.shape[-1])
            new = find_places(groups, flat[:, list(term.group)]).reshape(one.shape[:-1]) < 0
            if not new.any():
                continue
            same = np.broadcast_to(new, covariance.shape).copy()
            for column in term.group:
                same &= one[..., column] == other[..., column]
            values = term.values(flat).reshape(*one.shape[:-1], n)
            others = term.values(other.reshape(-1, other.shape[-1]))
            others = others.reshape(*other.shape[:-1], n)
            for k in range(n):
                covariance += same * (variance[k] * values[..., k] * others[..., k])
        return covariance


@dataclass(frozen=True, eq=False, repr=False)
class ThroughTime(Posterior):
    """Posterior of utilities through time; items are independent of each other.

    Of its items the last columns stand for time as the fit's did. Where a later answer is known it
    counts too, so that the past is smoothed.

    Parameters
    ----------
    chains : KnownChains
        What changes of a utility; ``static`` is the rest.
    teams : Teams or None
        Where items are teams: chains and ``static`` are of members.
    static : StaticFeatures or None
    static_mean : ndarray of shape (rank,)
    static_root : ndarray of shape (rank, rank)
        R with Rᵀ R the covariance of the features' weights.
    """

    chains: KnownChains = None  # type: ignore[assignment]  # always given
    teams: Teams | None = None
    static: StaticFeatures | None = None
    static_mean: Array = None  # type: ignore[assignment]  # always given
    static_root: Array = None  # type: ignore[assignment]

    keeps_anchors: ClassVar[bool] = False

    def extend_to_items(self, items: Array) -> "ThroughTime":
        """Return this posterior with features for further items' groups, as in their prior."""
        if self.static is None:
            return self
        rows, shares = self._drifts.members(items)
        static, stay = self.static.extend_to_items(rows[shares != 0.0])
        rank = len(static.source)
        if rank == len(stay):
            return self
        mean, root = np.zeros(rank), np.diag(np.sqrt(static.variance))
        mean[stay], root[np.ix_(stay, stay)] = self.static_mean, self.static_root
        return replace(self, static=static, static_mean=mean, static_root=root)

    def _facts(self):
        chains, span = self.chains, self.chains.course.times
        summary = f"{len(chains.who)} {'items' if self.teams is None else 'members'} through time"
        if len(span):
            summary += f", answers from {np.min(span):g} to {np.max(span):g}"
        return {"kernel": self.kernel, "likelihood": self.likelihood, "chains": summary}

    @property
    def _drifts(self) -> Drifts:
        """Return the drift as the terms that a row's members walk by."""
        return Drifts(self.chains.drift, None, self.teams)

    def times_of(self, items: Array) -> Array:
        """The times of items, (n,)."""
        return self._drifts.times_of(items)

    def last_times(self, items: Array) -> Array:
        """Return each row's last time at which something is known of it or a member, else −inf."""
        times = np.full(len(items), -np.inf)
        for rows, shares in zip(*self._drifts.members(items), strict=True):
            last = self.chains.last_times(self.chains.chains_of(rows))
            np.maximum(times, np.where(shares != 0.0, last, -np.inf), out=times)
        return times

    def known_times(self, items: Array) -> list[Array]:
        """List each row's distinct times at which answers told of it or a member, ascending."""
        times_by_row: list[Array] = [np.zeros(0)] * len(items)
        for rows, shares in zip(*self._drifts.members(items), strict=True):
            for k, times in enumerate(self.chains.known_times(rows)):
                if shares[k] != 0.0:
                    times_by_row[k] = np.union1d(times_by_row[k], times)
        return times_by_row

    def with_news(self, news: Latest, static_mean: Array, static_root: Array) -> "ThroughTime":
        """Return this posterior after answers of one time, see `KnownChains.with_news`."""
        return replace(
            self,
            chains=self.chains.with_news(news),
            static_mean=static_mean,
            static_root=static_root,
        )

    def smoothed(self) -> "ThroughTime":
        """Return this posterior where what was told later counts for earlier times too.

        What the answers said of each item, given what was known of the others then, stays.
        """
        smoothed = self.chains.smoothed()
        return self if smoothed is self.chains else replace(self, chains=smoothed)

    # -- moments -----------------------------------------------------------------------------

    def _sums(self, rows: Array, weights: Array) -> tuple[Array, Array, Array]:
        """Compute mean, variance and its scale, (n,) each, of weighted sums of members' utilities.

        Rows are (k, n, d), weights (k, n); the variance is a difference of terms of the scale.
        """
        k, n, width = rows.shape
        flat = rows.reshape(k * n, width)
        mean, variance, prior = (each.reshape(k, n) for each in self.chains.moments(flat))
        mean = np.sum(weights * mean, axis=0)
        variance, prior = (np.sum(weights**2 * each, axis=0) for each in (variance, prior))
        for one, other in combinations(range(k), 2):
            both = weights[one] * weights[other]
            at = np.flatnonzero(both != 0.0)
            unseen_variance = self.chains.pair_covariances(rows[one, at], rows[other, at])
            variance[at] += 2.0 * both[at] * unseen_variance
        if self.static is not None:
            features, unseen = self.static.sums(rows, weights)
            mean += features @ self.static_mean
            variance += unseen + np.sum((features @ self.static_root.T) ** 2, axis=1)
            prior += unseen
            for one, other in combinations(range(k), 2):
                both = 2.0 * weights[one] * weights[other]
                variance += both * self.static.unseen_group_covariance(rows[one], rows[other])
        return mean, variance, prior

    def _values(self, rows: Array) -> tuple[Array, Array]:
        """Mean and variance of the utility at rows."""
        mean, variance, prior = self._sums(*self._drifts.members(rows))
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

    def cross_covariance(self, X: Array, Z: Array) -> Array:
        """Covariance of the utilities at the rows of X and Z, (n, m)."""
        covariance: Array = np.zeros((len(X), len(Z)))
        drifts = self._drifts
        for rows, weights in zip(*drifts.members(X), strict=True):
            for others, shares in zip(*drifts.members(Z), strict=True):
                covariance += weights[:, None] * shares * self._between(rows, others)
        return covariance

    def _between(self, X, Z):
        """Covariance of the utilities of members."""
        covariance = self.chains.cross_covariance(X, Z)
        if self.static is not None:
            first, _ = self.static.at(X)
            second, _ = self.static.at(Z)
            covariance += (first @ self.static_root.T) @ (second @ self.static_root.T).T
            covariance += self.static.unseen_group_covariance(X[:, None], Z[None])
        return covariance

    def component_cov(self, X: Any) -> Array:
        """Covariance of the utilities, shape (n, n)."""
        X = self.check_items(X)
        covariance = self.cross_covariance(X, X)
        np.fill_diagonal(covariance, self.shared_var(X))
        return covariance

    def cov(self, X: Any) -> Array:
        """Posterior covariance of the utilities, shape (n, n)."""
        return self.component_cov(X)

    def moments_with_first(self, X: Any, m: int) -> tuple[Array, Array, Array]:
        """See `Components.moments_with_first`."""
        X = self.check_items(X)
        mean, variance = self._values(X)
        return mean[:, None], variance, self.cross_covariance(X, X[:m])

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
        rows, shares = self._drifts.members(X)
        members = rows.reshape(-1, rows.shape[2])
        if not self.chains.at_one_time(members):
            cov = self.component_cov(X)
            return means, np.maximum(np.sum((weights @ cov) * weights, axis=1), 0.0)
        X = members
        weights = (weights[:, None] * shares).reshape(len(weights), -1)
        variance = self.chains.variance_of_sums(X, weights)
        if self.static is not None:
            features, unseen_variance = self.static.at(X)
            spread = (weights @ features) @ self.static_root.T
            variance += np.sum(spread**2, axis=1)
            if unseen_variance.any():
                both = self.static.unseen_group_covariance(X[:, None], X[None])
                variance += np.sum((weights @ both) * weights, axis=1)
        return means, np.maximum(variance, 0.0)

    def pair_block(self, rows: Array, others: Array) -> tuple[Array, Array]:
        """See `Components.pair_block`."""
        drifts = self._drifts
        first, weights = drifts.members(rows)
        second, shares = drifts.members(others)
        mean, variance, scale = self._sums(
            np.concatenate([first, second]), np.concatenate([weights, -shares])
        )
        scale[np.all(rows == others, axis=1)] = 0.0
        return mean[:, None], floor_variance(variance, scale)

    def set_covariance(self, rows: Array, places: NDArray[np.intp]) -> Array:
        """See `Components.set_covariance`."""
        covariance = np.empty((*places.shape, places.shape[1]))
        for k, some in enumerate(places):
            covariance[k] = self.component_cov(ParsedX("items", rows[some]))
        return covariance

    def blocks(self, X: Array) -> list[Array]:
        """See `Components.blocks`."""
        return [X[rows] for rows in row_blocks(len(X), 1)]

    # -- draws -------------------------------------------------------------------------------

    def sample(self, X: Any, n: int = 1, rng: RandomLike = None) -> Array:
        """Joint draws of the utilities of the items, shape (n_items, n)."""
        check_number("n", n, low=1, integer=True)
        X, rng = self.check_items(X), make_generator(rng)
        root = symmetric_root(self.component_cov(ParsedX("items", X)))
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
