"""The posterior where effects belong to groups of answers, such as prompts.

The utility is that of the population of groups: the mean over all groups that there may be. An
answer is about this and about the effects of its own group, which are drawn anew for a group that
is new, and are known from its answers for one that was in the fit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from skpref._utils import BLOCK, Array, Recorded, floor_variance, row_blocks, solve_blocks
from skpref.data import Comparisons, ParsedX, distinct_rows
from skpref.gp._posterior import PairMoments, Posterior, concatenate_blocks, pair_moments
from skpref.gp._prior import Marginals, Prior, Sites
from skpref.gp._shared_noise import site_entries
from skpref.gp._utilities import LARGE, as_columns
from skpref.kernels import (
    Kernel,
    Padded,
    intransitive_parts,
    kernel_values,
    parts_by_column,
    seen_columns,
    terms_of_sum,
)
from skpref.likelihoods import Likelihood

# The group of an answer whose group was not in the fit.
NEW_GROUP = -1


@dataclass(frozen=True, eq=False)
class GroupSites(Recorded):
    """Hold what the answers of a fit say of the margins, group by group.

    Attributes
    ----------
    first, second : ndarray of shape (n_margins, n_columns)
        Rows of the items of each margin; margins of one group are neighbours.
    group : ndarray of shape (n_margins,)
        Ascending.
    shift : ndarray of shape (n_margins, n_components)
        Precision times target.
    row, column, precision : ndarray of shape (n_entries,)
        Entries of the precision that are not 0; of joint answers it has some off its diagonal.
    place, n_places : int
        Where the columns of groups begin in the rows, and how many there are.
    """

    first: Array
    second: Array
    group: Array
    shift: Array
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    precision: Array
    place: int
    n_places: int

    def group_columns_of_pairs(self, A: Array, B: Array, group: float) -> Array:
        """Return the columns of groups, (n, n_places), of pairs of rows in a known group.

        After that of the group they are those of the same two items in the fit, and −1 where the
        two did not meet.
        """
        d = self.place
        columns = np.full((len(A), self.n_places), float(NEW_GROUP))
        columns[:, 0] = group
        if self.n_places > 1:
            first, second, _, _ = self.sites_of_group(group)
            sides = np.concatenate([first, second]), np.concatenate([second, first])
            same = np.all(A[:, None, :d] == sides[0][:, :d], axis=2)
            same &= np.all(B[:, None, :d] == sides[1][:, :d], axis=2)
            pair, margin = np.nonzero(same)
            columns[pair, 1:] = sides[0][margin, d + 1 : d + self.n_places]
        return columns

    def sites_of_group(self, group: float) -> tuple[Array, Array, Array, Array]:
        """Return first rows, second rows, precision (n, n) and shift of one group's margins."""
        begin, end = np.searchsorted(self.group, [group, group + 0.5])
        entry_begin, entry_end = np.searchsorted(self.row, [begin, end])
        entries = slice(entry_begin, entry_end)
        precision = np.zeros((end - begin, end - begin))
        precision[self.row[entries] - begin, self.column[entries] - begin] = self.precision[entries]
        margins = slice(begin, end)
        return self.first[margins], self.second[margins], precision, self.shift[margins]


@dataclass(frozen=True, eq=False, repr=False)
class GroupedPosterior(Posterior):
    """Posterior of the utility in the population of groups; answers have their group's effects.

    Parameters
    ----------
    kernel, likelihood, anchors, weights, factor, reader, utilities
        As in `Posterior`, of the utility without effects of groups.
    effects : Kernel
        Of the effects of groups, on rows with the columns of the groups at their end.
    sites : GroupSites
    asked_groups : ndarray of int of shape (n,) or None
        Group of each answer that is asked about, −1 for a new one. None: all are new.
    """

    effects: Kernel = None  # type: ignore[assignment]  # fields with defaults come before it
    sites: GroupSites = None  # type: ignore[assignment]
    asked_groups: NDArray[np.intp] | None = None

    @property
    def effect_variance(self) -> float:  # type: ignore[override]  # a constant there
        """Return the mean variance of what a new group adds to the utility of an item."""
        return sum(self.effect_variances)

    @property
    def effect_variances(self) -> list[float]:
        """Return the same of each term of the effects: of a group, and of a pair within it."""
        rows = self._rows_with_groups(self.anchors[:, : self.sites.place])
        return [float(np.mean(term.diag(rows))) for term in terms_of_sum(self.effects)]

    def in_groups(self, groups: NDArray[np.intp] | None) -> "GroupedPosterior":
        """Return the same posterior, asked about answers in these groups."""
        return replace(self, asked_groups=groups)

    def select_answers(self, rows: slice) -> "GroupedPosterior":
        """Return the posterior asked about some of the answers; see `Posterior`."""
        return self if self.asked_groups is None else self.in_groups(self.asked_groups[rows])

    def new_variance(self, A: Array, B: Array) -> Array:
        """Compute the variance of the effects of a new group on margins, (n,)."""
        first, second = self._rows_with_groups(A), self._rows_with_groups(B)
        scale = self.effects.diag(first) + self.effects.diag(second)
        variance = scale - 2.0 * kernel_values(self.effects, first, second, aligned=True)
        return floor_variance(variance, 0.0)

    def answer_moments(self, A: Array, B: Array) -> Iterator[PairMoments]:
        """Yield the moments of the margins that answers are about, without observation noise."""
        groups = self._groups_of(len(A))
        if not np.any(groups >= 0):
            for each in pair_moments(self, A, B):
                extra = self.new_variance(A[each.rows], B[each.rows])
                yield each._replace(variance=each.variance + extra)
            return
        means, variance = np.empty((len(A), self.n_components)), np.empty(len(A))
        for group in np.unique(groups):
            which = np.flatnonzero(groups == group)
            if group < 0:
                new = replace(self, asked_groups=None)
                blocks = list(new.answer_moments(A[which], B[which]))
                means[which] = np.concatenate([each.means for each in blocks])
                variance[which] = np.concatenate([each.variance for each in blocks])
                continue
            # The joint covariance is of the pairs that are asked about and those of the group.
            n_fitted = len(self.sites.sites_of_group(group)[0])
            for some in row_blocks(len(which), 1, max(n_fitted, LARGE)):
                rows = which[some]
                n = len(rows)
                columns = np.tile(
                    self.sites.group_columns_of_pairs(A[rows], B[rows], group), (2, 1)
                )
                both, covariance = self._moments_in_group(
                    np.concatenate([A[rows], B[rows]]), group, columns
                )
                means[rows] = both[:n] - both[n:]
                diagonal = np.diagonal(covariance)
                between = np.diagonal(covariance[:n, n:])
                variance[rows] = floor_variance(diagonal[:n] + diagonal[n:] - 2.0 * between, 0.0)
        yield PairMoments(slice(0, len(A)), means, variance)

    def answer_mean(self, A: Any, B: Any) -> Array:
        """Compute the mean of the margins that answers are about, for pairs of rows, (n,)."""
        blocks = list(self.answer_moments(*self.reader.sides(A, B)))
        return concatenate_blocks([block.means.mean(axis=1) for block in blocks], (0,))

    def answer_utilities(self, query: ParsedX) -> Array:
        """Compute the mean utilities of the items in answers about sets; see `Posterior`."""
        means = self.set_moments(query.rows, np.maximum(query.pairs, 0))[0].mean(axis=2)
        return np.where(query.pairs >= 0, means, np.nan)

    def set_moments(self, items: Array, places: NDArray[np.intp]) -> tuple[Array, Array]:
        """Compute the moments of the utilities in answers about sets; see `Posterior`."""
        groups, k = self._groups_of(len(places)), places.shape[1]
        means, covariance = super().set_moments(items, places)
        new = self._rows_with_groups(items)
        for i in range(k):
            for j in range(i + 1):
                effects = kernel_values(
                    self.effects, new[places[:, i]], new[places[:, j]], aligned=True
                )
                covariance[:, i, j] += effects
                covariance[:, j, i] = covariance[:, i, j]
        for place in np.flatnonzero(groups >= 0):
            columns = np.full((k, self.sites.n_places), float(NEW_GROUP))
            columns[:, 0] = groups[place]
            moments = self._moments_in_group(items[places[place]], groups[place], columns)
            means[place], covariance[place] = moments
        return means, covariance

    def _groups_of(self, n: int) -> NDArray[np.intp]:
        """Groups of n answers."""
        if self.asked_groups is None:
            return np.full(n, NEW_GROUP)
        if len(self.asked_groups) != n:
            raise ValueError(
                f"got groups of {len(self.asked_groups)} answers for {n} answers; one for each is "
                "allowed. Give the group of every answer."
            )
        return self.asked_groups

    def _rows_with_groups(self, items: Array, columns: Array | None = None) -> Array:
        """Return rows with the columns of groups, by default those of a new one."""
        place, n_places = self.sites.place, self.sites.n_places
        if columns is None:
            columns = np.full((len(items), n_places), float(NEW_GROUP))
        if isinstance(self.effects, Padded):
            rows = self.effects.inner_rows(items).copy()
            rows[:, place : place + n_places] = columns
            return rows
        return np.column_stack([items, columns])

    def _shared_rows(self, rows: Array) -> Array:
        """Return rows of the fit as the kernel of the utility takes them."""
        return rows if isinstance(self.kernel, Padded) else rows[:, : self.sites.place]

    def _moments_in_group(self, items: Array, group: float, columns: Array) -> tuple[Array, Array]:
        """Compute means (n, n_components) and covariance (n, n) of utilities in a known group.

        ``columns`` are those of the group, and of pairs in it, for each of the items.
        """
        first, second, precision, shift = self.sites.sites_of_group(group)
        n = len(items)
        rows = self._rows_with_groups(items, columns)
        sides = first[None], second[None]
        cross, share, pull = (
            each[0]
            for each in self._condition_effects(rows[None], sides, precision[None], shift[None])
        )
        shared = self._shared_rows(rows), self._shared_rows(first), self._shared_rows(second)
        means, covariance = self._sum_moments(
            np.concatenate(shared), np.hstack([np.eye(n), -share, share])
        )
        own = kernel_values(self.effects, rows) - share @ cross.T
        return means + cross @ pull, own + covariance

    def _condition_effects(
        self, rows: Array, sides: tuple[Array, Array], precision: Array, shift: Array
    ) -> tuple[Array, Array, Array]:
        """Compute what the effects of items in groups are, given the utility.

        Parameters
        ----------
        rows : ndarray of shape (n_groups, n, n_columns)
        sides : pair of ndarray of shape (n_groups, m, n_columns)
            First and second items of the margins of each group.
        precision : ndarray of shape (n_groups, m, m)
        shift : ndarray of shape (n_groups, m, n_components)

        Returns
        -------
        cross, share : ndarray of shape (n_groups, n, m)
            Covariance with the effects on the margins; and by which the effects fall with the
            margins of the utility, so that share crossᵀ is what the answers take from their
            covariance.
        pull : ndarray of shape (n_groups, m, n_components)
            Times ``cross`` the means where the margins of the utility are 0.
        """
        to_first, to_second = (_values_by_group(self.effects, rows, side) for side in sides)
        cross = to_first - to_second
        across = _values_by_group(self.effects, *sides)
        prior = -across - np.swapaxes(across, 1, 2)
        for side in sides:
            prior = prior + _values_by_group(self.effects, side, side)
        inner = np.eye(prior.shape[1]) + precision @ prior
        gain, pull = (solve_blocks(inner, each) for each in (precision, shift))
        return cross, cross @ (0.5 * (gain + np.swapaxes(gain, 1, 2))), pull

    def group_averages(self, X: Array, shares: Array) -> tuple[Array, Array]:
        """Compute moments of n averages of utilities, in the mean over all groups of the fit.

        Effects of pairs within groups are no part of it.

        Parameters
        ----------
        X, shares
            As in `component_averages`.

        Returns
        -------
        means : ndarray of shape (n, n_components)
        cov : ndarray of shape (n, n)
        """
        (n, m, _), sites = X.shape, self.sites
        flat = X.reshape(n * m, -1)
        average = csr_array(
            (np.tile(shares, n), (np.repeat(np.arange(n), m), np.arange(n * m))), shape=(n, n * m)
        )
        numbers, begin, size = np.unique(sites.group, return_index=True, return_counts=True)
        n_groups, n_components = len(numbers), sites.shift.shape[1]
        group = np.repeat(np.arange(n_groups), size)  # of each margin
        local = np.arange(len(group)) - begin[group]
        means, lift = np.zeros((n, n_components)), np.zeros((n, len(group)))
        taken = np.zeros((n, n))
        for width in np.unique(size):
            alike = np.flatnonzero(size == width)
            step = max(1, BLOCK // int(width * max(width, n * m)))
            for some in (alike[at : at + step] for at in range(0, len(alike), step)):
                margin = begin[some][:, None] + np.arange(width)
                place = np.full(n_groups, -1)
                place[some] = np.arange(len(some))
                entry = np.flatnonzero(place[group[sites.row]] >= 0)
                row = sites.row[entry]
                precision = np.zeros((len(some), width, width))
                precision[place[group[row]], local[row], local[sites.column[entry]]] = (
                    sites.precision[entry]
                )
                rows = np.stack([self._rows_of_group(flat, number) for number in numbers[some]])
                sides = sites.first[margin], sites.second[margin]
                shift = sites.shift[margin]
                cross, share, pull = self._condition_effects(rows, sides, precision, shift)
                cross, share = (
                    np.stack([average @ values for values in each]) for each in (cross, share)
                )
                means += (cross @ pull).sum(axis=0)
                taken += (share @ np.swapaxes(cross, 1, 2)).sum(axis=0)
                lift[:, margin] = np.moveaxis(share, 0, 1)
        alone = self._rows_of_group(flat, numbers[0])
        own = sum(kernel_values(term, alone) for term in self._terms_of_groups())
        own = average @ (average @ own).T  # of each group the same
        shared = [self._shared_rows(each) for each in (alone, sites.first, sites.second)]
        parts = np.hstack([average.toarray(), -lift / n_groups, lift / n_groups])
        means_of, covariance = self._sum_moments(np.concatenate(shared), parts)
        return means_of + means / n_groups, covariance + own / n_groups - taken / n_groups**2

    def moments_with_pairs(
        self, X: Array, shares: Array, pairs: NDArray[np.intp], groups: NDArray[np.intp]
    ) -> tuple[Array, Array]:
        """Compute joint moments of averages of utilities, and of those of pairs within groups.

        Parameters
        ----------
        X, shares
            As in `component_averages`.
        pairs : ndarray of int of shape (k, 2)
            Two of the n averages, each.
        groups : ndarray of int of shape (k,)
            Number of the group of each pair; of equal negative ones the group is new, and the same.

        Returns
        -------
        means : ndarray of shape (n + 2 k, n_components)
            After those of the population the first and second of each pair, in its group.
        cov : ndarray of shape (n + 2 k, n + 2 k)
        """
        (n, m, d), sites = X.shape, self.sites
        size, n_margins = n + 2 * len(pairs), len(sites.group)
        parts = np.zeros((size, n * m + 2 * n_margins))  # of items, first and second sides
        items = np.concatenate([np.arange(n), pairs.ravel()])
        parts[np.arange(size)[:, None], items[:, None] * m + np.arange(m)] = shares
        means, own = np.zeros((size, sites.shift.shape[1])), np.zeros((size, size))
        numbers = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
        for group in np.unique(groups):
            which = np.flatnonzero(groups == group)
            at = (n + 2 * which[:, None] + np.arange(2)).ravel()
            two = X[pairs[which].ravel()]
            columns = self._group_key_columns(two, group, numbers[which])
            rows = self._rows_with_groups(two.reshape(-1, d), columns)
            average = np.kron(np.eye(len(at)), shares)
            prior = kernel_values(self.effects, rows)
            if group >= 0:
                first, second, precision, shift = sites.sites_of_group(group)
                sides = first[None], second[None]
                conditional = self._condition_effects(
                    rows[None], sides, precision[None], shift[None]
                )
                cross, share, pull = (each[0] for each in conditional)
                prior = prior - share @ cross.T
                means[at] = average @ (cross @ pull)
                begin = n * m + np.searchsorted(sites.group, group) + np.arange(len(first))
                parts[at[:, None], begin] = -average @ share
                parts[at[:, None], begin + n_margins] = average @ share
            own[np.ix_(at, at)] = average @ prior @ average.T
        ends = X.reshape(n * m, d), sites.first, sites.second
        alike = [self._shared_rows(each) for each in (self._rows_with_groups(ends[0]), *ends[1:])]
        shared_means, covariance = self._sum_moments(np.concatenate(alike), parts)
        return means + shared_means, covariance + own

    def _group_key_columns(self, rows: Array, group: int, numbers: NDArray[np.intp]) -> Array:
        """Return the key columns of rows in one group, (2 k m, n_places): the group, then the pair.

        The rows of k pairs at m columns are (2 k, m, n_columns), the two of a pair side by side.
        Pairs that were not fitted in the group have the codes -2, -3, ... by their numbers.
        """
        n_places = self.sites.n_places
        columns = np.full((*rows.shape[:2], n_places), float(max(group, NEW_GROUP)))
        if n_places > 1:
            columns[:, :, 1:] = np.repeat(-2.0 - numbers, 2)[:, None, None]
            if group >= 0:
                first, second = (rows[side::2].reshape(-1, rows.shape[2]) for side in (0, 1))
                fitted = self.sites.group_columns_of_pairs(first, second, group)[:, 1:]
                fitted = np.repeat(fitted.reshape(len(numbers), rows.shape[1], -1), 2, axis=0)
                columns[:, :, 1:] = np.where(fitted < 0.0, columns[:, :, 1:], fitted)
        return columns.reshape(-1, n_places)

    def _sum_moments(self, X: Array, weights: Array) -> tuple[Array, Array]:
        """Compute means (n, n_components) and covariance (n, n) of weighted sums of utilities.

        The rows X are m, as the kernel of the utility takes them, and the weights (n, m).
        """
        n = len(weights)
        X, code = distinct_rows(X)
        weights = weights @ csr_array((np.ones(len(code)), (np.arange(len(code)), code)))
        cross, prior = np.zeros((n, len(self.anchors))), np.zeros((n, n))
        step = max(1, BLOCK // max(len(self.anchors), len(X), 1))
        for begin in range(0, len(X), step):
            rows, share = X[begin : begin + step], weights[:, begin : begin + step]
            cross += share @ self.cross(rows)
            prior += share @ kernel_values(self.kernel, rows, X) @ weights.T
        half = cross @ self.factor
        return cross @ self.weights, 0.5 * (prior + prior.T) - half @ half.T

    def _rows_of_group(self, items: Array, group: float) -> Array:
        """Return rows in a known group, in no pair within it."""
        columns = np.full((len(items), self.sites.n_places), float(NEW_GROUP))
        columns[:, 0] = group
        return self._rows_with_groups(items, columns)

    def _terms_of_groups(self) -> list[Kernel]:
        """Return the terms of the effects that are of a group as a whole, not of pairs in it."""
        place, n_places = self.sites.place, self.sites.n_places
        pairs = set(range(place + 1, place + n_places))
        width = self.sites.first.shape[1]
        return [
            term
            for term in terms_of_sum(self.effects)
            if not pairs & set().union(*seen_columns(term, width))
        ]


def _values_by_group(kernel: Kernel, rows: Array, others: Array) -> Array:
    """Return k(row, other) of all pairs within each group, (n_groups, n, m)."""
    if len(rows) == 1:
        return kernel_values(kernel, rows[0], others[0])[None]
    shape = len(rows), rows.shape[1], others.shape[1], rows.shape[2]
    sides = (np.broadcast_to(each, shape) for each in (rows[:, :, None], others[:, None]))
    values = kernel_values(kernel, *(each.reshape(-1, shape[3]) for each in sides), aligned=True)
    return values.reshape(shape[:3])


def utility_kernel(kernel: Kernel, comparisons: Comparisons) -> Kernel:
    """Return the part of a kernel that is the utility's, without effects of groups or pairs."""
    if comparisons.group_column is None:
        return intransitive_parts(kernel)[0]
    return parts_by_column(kernel, comparisons.group_column, comparisons.items.shape[1])[0]


def utility_posterior(
    prior: Prior,
    sites: Sites,
    marginals: Marginals,
    likelihood: Likelihood,
    comparisons: Comparisons,
) -> Posterior:
    """Make the posterior of the utility, of groups of answers in the population of these.

    Parameters
    ----------
    prior : Prior
        Of the margins of these answers.
    sites : Sites
    marginals : Marginals
    likelihood : Likelihood
    comparisons : Comparisons

    Returns
    -------
    Posterior
        With a ``group_column`` a `GroupedPosterior` on rows without the columns of groups.
    """
    posterior = prior.posterior(sites, marginals, likelihood)
    column = comparisons.group_column
    if column is None:
        return posterior
    margins, items = comparisons.rows.margins, comparisons.items
    shared, effects = parts_by_column(prior.kernel, column, items.shape[1])
    # Columns of judges may follow those of groups, which alone are named in their effects.
    end = items.shape[1]
    if isinstance(effects, Padded):
        end = 1 + max(seen_columns(effects.kernel, items.shape[1])[0])
    n_places = end - column
    group = items[margins.first, column]
    order = np.argsort(group, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    entries = site_entries(prior.noise, sites.precision, as_columns(sites.shift))
    rows, columns_of = place[entries.row], place[entries.column]
    by_row = np.argsort(rows, kind="stable")
    group_sites = GroupSites(
        items[margins.first[order]],
        items[margins.second[order]],
        group[order],
        entries.shift[order],
        rows[by_row],
        columns_of[by_row],
        entries.precision[by_row],
        column,
        n_places,
    )
    return GroupedPosterior(
        shared,
        posterior.likelihood,
        posterior.anchors if isinstance(shared, Padded) else posterior.anchors[:, :column],
        posterior.weights,
        posterior.factor,
        effects=effects,
        sites=group_sites,
    )
