"""The exact prior where some effects belong to groups of answers: shared weights, and blocks.

z = Z w + L e + u, with w the weights of features that all answers share, e those of features that
belong to one group of answers each, such as a prompt's effects on its competitors, and u what
belongs to one margin alone. Given w the groups are independent, so that their weights are
integrated out group by group (Schur complements); square matrices are of the shared features, and
of each group's own. A u of variance d turns a site of precision τ on z into one of τ/(1 + τ d) on
the rest. All else is linear in the number of answers and of groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from skpref._utils import BLOCK, UNIT, Array, floor_variance, inverse_blocks, inverse_cholesky
from skpref.data import Comparisons, Margins, distinct_rows
from skpref.gp._dense import DenseItems
from skpref.gp._finite_rank import FiniteRank, MarginFeatures
from skpref.gp._posterior import Posterior
from skpref.gp._prior import (
    EXACT,
    Cost,
    Marginals,
    MarginErrors,
    MarginMoments,
    check_finite,
)
from skpref.gp._shared_noise import JointNoise, SitePrecision, site_entries
from skpref.kernels import (
    FiniteFeatures,
    Kernel,
    Term,
    finite_features,
    parts_by_column,
)
from skpref.likelihoods import Likelihood


class _Batch(NamedTuple):
    """Some groups, filled up to the largest of them.

    Attributes
    ----------
    margin : ndarray of int of shape (n_groups, n)
        Margins of each group; the number of all margins where there is none.
    feature : ndarray of int of shape (n_groups, r)
        Features of each group; the number of all features where there is none.
    place : ndarray of int of shape (n_entries,)
        Of the entries of L that are not 0, in the flat array (n_groups, n, r).
    value : ndarray of shape (n_entries,)
        These, as if each weight had variance 1.
    """

    margin: NDArray[np.intp]
    feature: NDArray[np.intp]
    place: NDArray[np.intp]
    value: Array

    @property
    def effects(self) -> Array:
        """Return L, (n_groups, n, r); it is not kept, as nearly all of it is 0."""
        dense = np.zeros((*self.margin.shape, self.feature.shape[1]))
        dense.ravel()[self.place] = self.value
        return dense

    def group_blocks(self, row: NDArray[np.intp], column: NDArray[np.intp], value: Array) -> Array:
        """Return a matrix of all margins within each group, (n_groups, n, n), by its entries."""
        n_groups, n = self.margin.shape
        # The number of all margins, which stands where a group has none, is no row.
        group, place = np.full((2, 1 + max(self.margin.max(), row.max(initial=0))), -1)
        group[self.margin] = np.arange(n_groups)[:, None]
        place[self.margin] = np.arange(n)
        blocks = np.zeros((n_groups, n, n))
        inside = group[row] >= 0
        at = row[inside]
        blocks[group[at], place[at], place[column[inside]]] = value[inside]
        return blocks


class GroupFeatures:
    """Features of margins that belong to one group of answers each.

    Parameters
    ----------
    comparisons : Comparisons
    terms : tuple of Term
        All terms of a kernel.
    margins : Margins
        Between these items; both items of each are of one group.
    column : int
        Of the items' rows, in which the group stands.

    Attributes
    ----------
    matrix : csr_array of shape (n_margins, rank)
        L, as if each weight had variance 1.
    alone : csr_array of shape (n_margins, n_monomials)
        Squares of the features that belong to one margin without noise alone, summed by what they
        are of: times the variances of the monomials they are the variance of u.
    keyed : csr_array of shape (n_margins, n_keys)
        All features of groups, those of one margin alone too.
    used : ndarray of int of shape (rank,)
        Which of these the columns of ``matrix`` are.
    key_source, source : ndarray of int of shape (n_keys,) and (rank,)
        Which of the terms' monomials each feature is of.
    group, feature_group : ndarray of int of shape (n_margins,) and (rank,)
        Numbers of the groups, from 0.
    """

    def __init__(
        self, comparisons: Comparisons, terms: tuple[Term, ...], margins: Margins, column: int
    ):
        n = len(margins.first)
        _, item_group = distinct_rows(comparisons.items[:, [column]])
        self.group = item_group[margins.first]
        self.keyed, key_source = keyed_features(comparisons, terms, margins, column)
        matrix = self.keyed.copy()
        matrix.eliminate_zeros()  # of an item on both sides nothing is left
        n_keys = len(key_source)
        entries = matrix.tocoo()
        key_group = np.zeros(n_keys, dtype=np.intp)
        key_group[entries.col] = self.group[entries.row]
        is_alone = np.bincount(entries.col, minlength=n_keys)[entries.col] == 1
        is_alone &= entries.row < margins.n_shared
        places = entries.row[is_alone], key_source[entries.col[is_alone]]
        n_monomials = sum(len(term.monomials) for term in terms)
        self.alone = csr_array((entries.data[is_alone] ** 2, places), shape=(n, n_monomials))
        used = np.unique(entries.col[~is_alone])
        used = self.used = used[np.argsort(key_group[used], kind="stable")]
        self.matrix = csr_array(matrix[:, used])
        self.key_source, self.source = key_source, key_source[used]
        self.feature_group = key_group[used]
        self.rank = len(used)

    @classmethod
    def from_comparisons(
        cls, comparisons: Comparisons, terms: tuple[Term, ...], margins: Margins, column: int
    ) -> "GroupFeatures":
        """Find them once for the margins of some answers, and return them."""
        name = "group features", terms, column, margins is comparisons.rows.margins
        if name not in comparisons.kept:
            comparisons.kept[name] = cls(comparisons, terms, margins, column)
        features: GroupFeatures = comparisons.kept[name]
        return features

    @cached_property
    def _sizes(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Numbers of margins and of features of each group."""
        n_groups = int(self.group.max(initial=-1)) + 1
        n_margins = np.bincount(self.group, minlength=n_groups)
        return n_margins, np.bincount(self.feature_group, minlength=n_groups)

    def multiplications(self) -> tuple[float, float]:
        """Count those of a sweep within the groups, and the numbers that are held for it."""
        n, r = (each.astype(np.float64) for each in self._sizes)
        return float(np.sum(r**3 + n * r**2)), float(np.sum(r**2 + n * r))

    def batches(self, width: int) -> list[_Batch]:
        """Divide the groups into batches, so that ``width`` columns a margin fit the cache."""
        n_margins, n_features = self._sizes
        feature_begin = np.cumsum(n_features) - n_features
        batches = []
        for groups, margin in fill_groups(self.group, n_features, width, n_margins > 0):
            r = int(n_features[groups].max())
            own = np.arange(r) < n_features[groups][:, None]
            feature = np.full((len(groups), r), self.rank)
            feature[own] = (feature_begin[groups][:, None] + np.arange(r))[own]
            batches.append(_Batch(margin, feature, *self.entries(self.matrix, margin, r)))
        return batches

    def entries(
        self, matrix: csr_array, margin: NDArray[np.intp], width: int
    ) -> tuple[NDArray[np.intp], Array]:
        """Return places and values of a matrix like ``self.matrix`` in a batch of groups.

        Parameters
        ----------
        matrix : csr_array of shape (n_margins, rank)
        margin : ndarray of int of shape (n_groups, n)
            The number of all margins where there is none.
        width : int
            Features of the largest group.

        Returns
        -------
        place : ndarray of int of shape (n_entries,)
            In the flat array (n_groups, n, width).
        value : ndarray of shape (n_entries,)
        """
        _, n_features = self._sizes
        begin = np.cumsum(n_features) - n_features
        which, row = np.nonzero(margin < matrix.shape[0])
        rows = matrix[margin[which, row]].tocoo()
        local = rows.col - begin[self.feature_group[rows.col]]
        places = (which * margin.shape[1] + row)[rows.row] * width + local
        return places, rows.data


def fill_groups(
    group: NDArray[np.intp], n_features: NDArray[np.intp], width: int, chosen: NDArray[np.bool_]
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Divide groups into batches of about equal sizes, whose arrays fit the cache.

    Parameters
    ----------
    group : ndarray of int of shape (n,)
        Of each row, such as a margin or an answer.
    n_features : ndarray of int of shape (n_groups,)
    width : int
        Numbers that each row has beside the features of its group.
    chosen : ndarray of bool of shape (n_groups,)
        Which groups are in the batches.

    Returns
    -------
    list of (ndarray of shape (n_batch,), ndarray of shape (n_batch, n_largest))
        Numbers of the groups, and the rows of each, filled up by n to those of the largest.
    """
    n_rows = np.bincount(group, minlength=len(n_features))
    row_order, begin = np.argsort(group, kind="stable"), np.cumsum(n_rows) - n_rows
    ranked = np.lexsort((n_rows, n_features))
    ranked = ranked[chosen[ranked]]
    batches, at = [], 0
    while at < len(ranked):
        size = len(ranked) - at
        while True:
            groups = ranked[at : at + size]
            n, r = int(n_rows[groups].max()), int(n_features[groups].max())
            if size == 1 or size * max(n, r) * (r + width) <= BLOCK:
                break
            size = max(size // 2, 1)
        at += size
        place = np.arange(n)
        present = place < n_rows[groups][:, None]
        rows = np.full((size, n), len(group))
        rows[present] = row_order[(begin[groups][:, None] + place)[present]]
        batches.append((groups, rows))
    return batches


def keyed_features(
    comparisons: Comparisons, terms: tuple[Term, ...], margins: Margins, column: int
) -> tuple[csr_array, NDArray[np.intp]]:
    """Find all features of margins that belong to groups.

    Parameters
    ----------
    comparisons, terms, margins, column
        As of `GroupFeatures`.

    Returns
    -------
    matrix : csr_array of shape (n_margins, n_keys)
        As if each weight had variance 1.
    source : ndarray of int of shape (n_keys,)
        Which of the terms' monomials each is of.
    """
    items, n = comparisons.items, len(margins.first)
    rows, keys, values, sources = [], [], [], []
    n_keys = begin = 0
    for term in terms:
        numbers = range(begin, begin + len(term.monomials))
        begin += len(term.monomials)
        if column not in term.group:
            continue
        _, code = distinct_rows(items[:, list(term.group)])
        n_codes = int(code.max(initial=-1)) + 1
        monomials = term.values(items)
        for at, number in enumerate(numbers):
            for side, sign in ((margins.first, 1.0), (margins.second, -1.0)):
                rows.append(np.arange(n))
                keys.append(n_keys + code[side])
                values.append(sign * monomials[side, at])
            sources.append(np.full(n_codes, number))
            n_keys += n_codes
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(keys))
    matrix = csr_array(entries, shape=(n, n_keys))
    matrix.sum_duplicates()
    return matrix, np.concatenate(sources)


class _BatchWeights(NamedTuple):
    """The weights of a batch's groups given sites, as if each had variance 1 before.

    Attributes
    ----------
    batch : _Batch
    scale : ndarray of shape (n_groups, r)
        Prior deviations of the weights.
    inverse : ndarray of shape (n_groups, r, r)
        Covariance of the groups' weights given the shared ones.
    pull : ndarray of shape (n_groups, r, rank)
        The groups' weights move by −pull times the shared ones.
    """

    batch: _Batch
    scale: Array
    inverse: Array
    pull: Array

    @property
    def effects(self) -> Array:
        """Return L of weights of variance 1, (n_groups, n, r); it is not kept, for its size."""
        scaled: Array = self.batch.effects * self.scale[:, None, :]
        return scaled

    def shared_rows(self, rows: Array) -> Array:
        """Return what is left of the shared features of margins, (n_groups, n, rank)."""
        remainder: Array = rows - self.effects @ self.pull
        return remainder


class _GroupedWeights:
    """All weights given sites, the shared ones first."""

    def __init__(self, prior: "Grouped", precision: Any):
        rank = len(prior.shared_scale)
        gain = np.zeros((rank, rank))
        self.parts: list[_BatchWeights] = []
        self.log_det = 0.0
        single = precision.single if isinstance(precision, SitePrecision) else precision
        self.shrink = prior.shrink(precision)
        self.log_det -= float(np.log(self.shrink).sum())
        single = np.append(np.where(np.isinf(single), 0.0, single * self.shrink), 0.0)
        entries = prior.joint_entries(precision)
        scale = np.append(prior.group_scale, 0.0)
        for batch in prior.batches:
            own_scale = scale[batch.feature]
            effects = batch.effects * own_scale[:, None, :]
            whole = None if entries is None else batch.group_blocks(*entries)
            sites = BatchSites(single[batch.margin], whole)
            weights = condition_groups(effects, prior.shared_rows(batch), sites)
            gain += weights.gain
            self.log_det += weights.log_det
            self.parts.append(_BatchWeights(batch, own_scale, weights.inverse, weights.pull))
        self.gain = 0.5 * (gain + gain.T)
        inner = self.gain.copy()
        inner.flat[:: rank + 1] += 1.0
        self.inverse, shared_log_det = inverse_cholesky(inner.T)
        self.log_det += shared_log_det
        self._scale = np.concatenate([prior.shared_scale, prior.group_scale])
        self._rank = rank

    def times(self, vector: Array) -> Array:
        """Multiply their covariance with a vector, or with the columns of a matrix."""
        wide = vector[:, None] if vector.ndim == 1 else vector
        shared = self.unit_mean(wide)
        own = self._own_part(wide)
        solved = np.zeros_like(own)
        for part in self.parts:
            solved[part.batch.feature] = part.inverse @ own[part.batch.feature] - part.pull @ shared
        both = self._scale[:, None] * np.concatenate([shared, solved[:-1]])
        return both[:, 0] if vector.ndim == 1 else both

    def unit_mean(self, pull: Array) -> Array:
        """Compute the mean of shared weights of variance 1, (rank, n), of the sites' shifts at
        all weights."""
        shared, own = self._scale[: self._rank, None] * pull[: self._rank], self._own_part(pull)
        for part in self.parts:
            shared -= _product(part.pull, own[part.batch.feature])
        return np.asarray(self.inverse.T @ (self.inverse @ shared))

    def _own_part(self, wide: Array) -> Array:
        """Scale the part of the groups' weights, and add a row of zeros."""
        own = self._scale[self._rank :, None] * wide[self._rank :]
        return np.concatenate([own, np.zeros((1, own.shape[1]))])

    @cached_property
    def covariance(self) -> Array:
        """Compute the covariance of the shared weights, as if each had variance 1 before."""
        covariance: Array = self.inverse.T @ self.inverse
        return covariance

    def group_variance(self) -> Array:
        """Variances of the groups' weights, as if each had been 1 before, (n_group_features,)."""
        variance = np.empty(len(self._scale) - self._rank + 1)
        for part in self.parts:
            half = part.pull @ self.inverse.T
            variance[part.batch.feature] = np.einsum("gii->gi", part.inverse)
            variance[part.batch.feature] += np.einsum("gij,gij->gi", half, half)
        return variance[:-1]


class BatchSites(NamedTuple):
    """Precision of the sites of the margins of some groups.

    Attributes
    ----------
    single : ndarray of shape (n_groups, n)
        Of sites of one margin each.
    whole : ndarray of shape (n_groups, n, n) or None
        Of all sites, where some are of several margins.
    """

    single: Array
    whole: Array | None = None

    def times(self, rows: Array) -> Array:
        """Return the precision times rows (n_groups, n, m)."""
        if self.whole is not None:
            return np.asarray(self.whole @ rows)
        return self.single[:, :, None] * rows

    def inner(self, rows: Array) -> Array:
        """Return the sum over groups of rowsᵀ times the precision times rows, (m, m)."""
        if self.whole is not None or np.any(self.single < 0.0):
            return _product(rows, self.times(rows))
        half = np.sqrt(self.single)[:, :, None] * rows
        return _product(half, half)  # of one matrix, which takes half the time of two


class GroupWeights(NamedTuple):
    """The weights of some groups, of variance 1 before, given sites and the shared weights.

    Attributes
    ----------
    inverse : ndarray of shape (n_groups, r, r)
        Their covariance.
    pull : ndarray of shape (n_groups, r, rank)
        They move by −pull times the shared weights.
    remainder : ndarray of shape (n_groups, n, rank)
        Rows of the shared weights, less what moves with the groups' own.
    gain : ndarray of shape (rank, rank)
        What the sites add to the precision of the shared weights.
    log_det : float
    """

    inverse: Array
    pull: Array
    remainder: Array
    gain: Array
    log_det: float


def condition_groups(effects: Array, rows: Array, sites: BatchSites) -> GroupWeights:
    """Integrate out the weights of groups, each of which is independent given the shared ones.

    Parameters
    ----------
    effects : ndarray of shape (n_groups, n, r)
        What weights of variance 1 before do to the margins of their group.
    rows : ndarray of shape (n_groups, n, rank)
        What the shared weights do to the same margins.
    sites : BatchSites
    """
    weighted = sites.times(effects)
    inner = np.swapaxes(effects, 1, 2) @ weighted
    r = inner.shape[1]
    inner[:, np.arange(r), np.arange(r)] += 1.0
    inverse, log_det = inverse_blocks(inner)
    inverse = 0.5 * (inverse + np.swapaxes(inverse, 1, 2))
    pull = inverse @ (np.swapaxes(weighted, 1, 2) @ rows)
    # As a sum of squares: a difference would be lost to rounding where sites are precise.
    remainder = rows - effects @ pull
    gain = sites.inner(remainder) + _product(pull, pull)
    return GroupWeights(inverse, pull, remainder, gain, float(log_det.sum()))


def _product(first: Array, second: Array) -> Array:
    """Sum over groups of oneᵀ other, each (n_groups, n, m)."""
    n = first.shape[0] * first.shape[1]
    total: Array = first.reshape(n, first.shape[2]).T @ second.reshape(n, second.shape[2])
    return total


class Grouped(FiniteRank):
    """The prior of kernels of finitely many features, of which many belong to one group each.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    finite : FiniteFeatures
        Of the kernel.
    comparisons : Comparisons
        Both items of every margin are of one group, by ``comparisons.group_column``, or by a column
        of the items that is the same within every answer, such as who is asked.
    margins : Margins
        Of these, or others between the same items.
    noise : JointNoise, optional
        Needed where there are joint answers.
    """

    def __init__(
        self,
        kernel: Kernel,
        finite: FiniteFeatures,
        comparisons: Comparisons,
        margins: Margins,
        noise: JointNoise | None = None,
    ):
        column = _group_column(finite, comparisons)
        if column is None:
            raise ValueError("These answers are in no groups, so that no effect belongs to one.")
        self._column = column
        self._shared_finite, self._shared_index = _shared_features(finite, column)
        super().__init__(kernel, self._shared_finite, comparisons, margins, noise)
        self._whole_finite = finite
        groups = self._groups = GroupFeatures.from_comparisons(
            comparisons, finite.terms, margins, column
        )
        self.shared_scale = self._scale
        self._group_variance = finite.variance[groups.source]
        self.group_scale = np.sqrt(self._group_variance)
        self._lone_variance = groups.alone @ finite.variance  # the variance of u
        self.variance = (
            self.variance + groups.matrix**2 @ self._group_variance + self._lone_variance
        )
        check_finite(kernel, np.concatenate([finite.variance, self.variance]))
        self.batches = _batches(comparisons, groups, len(self.shared_scale))

    @classmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `Prior.cost`; infinite where no effect belongs to a group."""
        no_cost = Cost(np.inf, np.inf, np.inf)
        finite = None if kernel is None else finite_features(kernel, comparisons.items.shape[1])
        column = None if finite is None else _group_column(finite, comparisons)
        if finite is None or column is None:
            return no_cost
        shared, _ = _shared_features(finite, column)
        margins = comparisons.rows.margins
        features = MarginFeatures.from_comparisons(comparisons, shared.terms, margins)
        groups = GroupFeatures.from_comparisons(comparisons, finite.terms, margins, column)
        within, held = groups.multiplications()
        n, rank = float(features.n_margins), float(features.rank)
        entries = float(groups.matrix.nnz)
        linear = within + n * rank**2 + entries * rank
        n_bytes = 8.0 * (2.0 * held + groups.rank * rank + rank**2 + n * 10.0)
        return Cost(linear + rank**3, rank, n_bytes, linear)

    def on_duels(self, margins: Margins) -> "Grouped":
        """See `Prior.on_duels`."""
        return Grouped(self.kernel, self._whole_finite, self._comparisons, margins)

    def shared_rows(self, batch: _Batch) -> Array:
        """Shared features of the margins of a batch, of weights of variance 1; (n_groups, n, r)."""
        margin = np.minimum(batch.margin, self.n_margins - 1)
        rows = self._features.rows(margin.ravel()) * self.shared_scale
        return rows.reshape(*margin.shape, len(self.shared_scale))

    def joint_entries(
        self, precision: Any
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Array] | None:
        """Return row, column and value of the precision of all sites; None of single ones alone."""
        if self.noise is None:
            return None
        sites = site_entries(self.noise, precision, np.zeros((self.n_margins, 1)))
        values = sites.precision * np.where(
            sites.row == sites.column, self.shrink(precision)[sites.row], 1.0
        )
        return sites.row, sites.column, values

    def shrink(self, precision: Any) -> Array:
        """Return 1/(1 + τ d), by which sites are weaker on what is not u, (n_margins,)."""
        single = precision.single if isinstance(precision, SitePrecision) else precision
        return 1.0 / (1.0 + np.where(np.isinf(single), 0.0, single) * self._lone_variance)

    def margin_values(self, vector: Array) -> Array:
        """Z and L times weights."""
        rank = len(self.shared_scale)
        return self._features.times(vector[:rank]) + self._groups.matrix @ vector[rank:]

    def transposed_times(self, values: Array) -> Array:
        """Zᵀ and Lᵀ times values of the margins."""
        return np.concatenate(
            [self._features.transposed_times(values), self._groups.matrix.T @ values]
        )

    def times(self, vector: Array) -> Array:
        """See `Prior.times`."""
        own = np.concatenate([self._own, self._group_variance])
        alone = (self._lone_variance * vector.T).T
        return alone + self.margin_values((own * self.transposed_times(vector).T).T)

    def root(self) -> Array:
        """See `Prior.root`."""
        groups = self._groups.matrix.toarray() * self.group_scale
        has_alone = self._lone_variance > 0.0
        alone = np.diag(np.sqrt(self._lone_variance))[:, has_alone]
        return np.hstack([super().root(), groups, alone])

    def _vector_posterior(self, precision):
        """Return the posterior of features' and groups' weights, a `Vector`, given sites of this
        precision."""
        return _GroupedWeights(self, precision)

    def _margin_mean(self, vector, shift):
        shrink, alone = (
            each if shift.ndim == 1 else each[:, None]
            for each in (vector.shrink, self._lone_variance)
        )
        return shrink * (super()._margin_mean(vector, shrink * shift) + alone * shift)

    def margins_of(
        self, several: Sequence[Comparisons], conditioned: Any, likelihood: Likelihood
    ) -> list[MarginMoments]:
        """See `Prior.margins_of`; of the same answers, with other values of the features."""
        vector, sites = conditioned.conditioned.root, conditioned.sites
        weights = vector.times(self.transposed_times(vector.shrink * sites.shift))
        rank, own = len(self.shared_scale), self._whole_finite.variance[self._groups.key_source]
        is_rest = np.ones(len(own), dtype=bool)
        is_rest[self._groups.used] = False
        rest = self._groups.keyed[:, is_rest]
        here = self._features.times(weights[:rank]) + self._groups.matrix @ weights[rank:]
        moments = []
        for each in several:
            margins = each.rows.margins
            features = MarginFeatures.from_comparisons(each, self._finite.terms, margins)
            if not np.array_equal(features.source, self._features.source):
                return self._dense_margins(several, conditioned, likelihood)
            keyed, _ = keyed_features(each, self._whole_finite.terms, margins, self._column)
            own_entries = keyed[:, is_rest]
            # Of what belongs to a margin alone: its covariance with that of the fit, and variance.
            covariance = rest.multiply(own_entries) @ own[is_rest]
            variance = own_entries**2 @ own[is_rest]
            moved = covariance * vector.shrink
            carried = moved * sites.precision
            matrix = csr_array(keyed[:, self._groups.used])
            mean = features.times(weights[:rank]) + matrix @ weights[rank:]
            mean = mean + moved * sites.shift - carried * here
            variance = variance - covariance * carried
            variance += self._shared_variances(vector, features, matrix, carried)
            moments.append(MarginMoments(mean, floor_variance(variance, 0.0), np.zeros(len(mean))))
        return moments

    def _shared_variances(
        self,
        vector: _GroupedWeights,
        features: MarginFeatures,
        matrix: csr_array,
        carried: Array,
    ) -> Array:
        """Compute the variances of margins of other features, less a share of those of the fit."""
        share, squares = np.append(carried, 0.0), np.zeros(self.n_margins + 1)
        for part in vector.parts:
            margin = part.batch.margin
            some = np.minimum(margin, self.n_margins - 1).ravel()
            rows = (features.rows(some) * self.shared_scale).reshape(*margin.shape, -1)
            rows = rows - share[margin][:, :, None] * self.shared_rows(part.batch)
            place, value = self._groups.entries(matrix, margin, part.scale.shape[1])
            effects = part.batch._replace(place=place, value=value).effects
            effects *= part.scale[:, None, :]
            effects -= share[margin][:, :, None] * part.effects
            half = (rows - effects @ part.pull) @ vector.inverse.T
            own = np.einsum("gni,gni->gn", effects @ part.inverse, effects)
            squares[margin] = own + np.einsum("gni,gni->gn", half, half)
        return squares[:-1]

    def _dense_margins(
        self, several: Sequence[Comparisons], fit: Any, likelihood: Likelihood
    ) -> list[MarginMoments]:
        """Return moments of several sets of margins by the dense posterior of all effects."""
        prior = DenseItems.from_comparisons(self.kernel, self._comparisons, likelihood)
        marginals = prior.condition(fit.sites.precision, fit.sites.shift)
        dense = fit._replace(conditioned=marginals)
        return prior.margins_of(several, dense, likelihood)

    def _margin_parts(self, vector: _GroupedWeights) -> Iterator[tuple[_BatchWeights, Array]]:
        """Parts of the margins of each batch that shared weights move, by a root of their
        covariance: (n_groups, n, rank)."""
        for part in vector.parts:
            remainder = part.shared_rows(self.shared_rows(part.batch))
            yield part, remainder @ vector.inverse.T

    def _margin_variances(self, vector):
        variance = np.zeros(self.n_margins + 1)
        for part, half in self._margin_parts(vector):
            effects = part.effects
            own = np.einsum("gni,gni->gn", effects @ part.inverse, effects)
            variance[part.batch.margin] = own + np.einsum("gni,gni->gn", half, half)
        shrink = vector.shrink
        return floor_variance(shrink * (self._lone_variance + shrink * variance[:-1]), 0.0)

    def _joint_covariances(self, vector, at):
        covariance = np.empty((*at.shape, at.shape[1]))
        place = np.empty(self.n_margins + 1, dtype=np.intp)
        for part, half in self._margin_parts(vector):
            margin = part.batch.margin
            place[margin] = np.arange(margin.shape[1])
            group_of = np.full(self.n_margins + 1, -1)
            group_of[margin] = np.arange(len(margin))[:, None]
            group_of[-1] = -1
            answers = np.flatnonzero(group_of[at[:, 0]] >= 0)
            group = group_of[at[answers, 0]][:, None]
            rows = place[at[answers]]
            effects, shared = part.effects[group, rows], half[group, rows]
            own = effects @ part.inverse[group[:, 0]] @ np.swapaxes(effects, 1, 2)
            covariance[answers] = own + shared @ np.swapaxes(shared, 1, 2)
        return covariance

    def pull_back(self, marginals: Marginals, precision: Array, push: Array | None = None) -> Array:
        """See `Prior.pull_back`; as `FiniteRank` has it, in all weights' variances."""
        if not len(self.kernel.theta):
            return np.zeros(0)
        pulled = self.transposed_times(marginals.dual)
        fit = pulled**2
        if push is not None:
            fit += 2.0 * pulled * self.transposed_times(push)
        inverse = marginals.root.inverse
        variance = np.einsum("ij,ij->j", inverse, inverse)
        variance = np.concatenate([variance, marginals.root.group_variance()])
        own = np.concatenate([self._own, self._group_variance])
        spread = (1.0 - variance) / np.where(own > 0.0, own, 1.0)  # without variance, no slope
        source = np.concatenate([self._shared_index[self._features.source], self._groups.source])
        slope: Array = (fit - spread) @ self._whole_finite.slope[source]
        single = precision.single if isinstance(precision, SitePrecision) else precision
        single = np.where(np.isinf(single), 0.0, single)
        dual = marginals.dual
        of_alone = dual**2 - single * (1.0 - single * marginals.variance)
        if push is not None:
            of_alone += 2.0 * dual * push
        slope = slope + (of_alone @ self._groups.alone) @ self._whole_finite.slope
        return 0.5 * slope

    def posterior(self, sites: Any, marginals: Any, likelihood: Likelihood) -> Posterior:
        """See `Prior.posterior`; without effects of groups where these are of the answers."""
        if self._comparisons.group_column is None:
            whole = FiniteRank.from_comparisons(self.kernel, self._comparisons, likelihood)
            marginals = whole.condition(sites.precision, sites.shift)
            return whole.posterior(sites, marginals, likelihood)
        shared, _ = parts_by_column(self.kernel, self._column, self._comparisons.items.shape[1])
        return replace(super().posterior(sites, marginals, likelihood), kernel=shared)

    def _precision_gain(self, weights, precision):
        return weights.gain

    def _shift_of_sites(self, weights, precision, shift):
        pull = self._shift_at_margins(precision, shift)
        return (weights.shrink * pull.T).T

    # -- rounding ----------------------------------------------------------------------------

    def rounding(self, dual: Array) -> MarginErrors:
        """Add what group effects and noise add to the rounding errors; see `Prior.rounding`."""
        error = super().rounding(dual)
        effects = abs(self._groups.matrix)
        unit = UNIT * np.sqrt(len(self.shared_scale))
        mean = effects @ (self._group_variance * (effects.T @ np.abs(dual)))
        mean = mean + self._lone_variance * np.abs(dual)
        variance = (effects @ self.group_scale) ** 2 + self._lone_variance
        return MarginErrors(error.mean + unit * mean, error.variance + unit * variance)

    def energy_error(self, dual: Array) -> float:
        """See `Prior.energy_error`."""
        own = self._group_variance * (abs(self._groups.matrix).T @ np.abs(dual)) ** 2
        return float(np.hypot(super().energy_error(dual), 0.5 * UNIT * np.sqrt(own @ own)))

    def check_digits(self, posterior: Posterior, marginals: Marginals) -> None:
        """Accept any posterior: no margin of the answers is without effects of its group."""
        return None


EXACT += [Grouped]


def _group_column(finite: FiniteFeatures, comparisons: Comparisons) -> int | None:
    """Return the column of groups: that of the answers, or the one of items with most groups.

    Of items a column has groups if both items of every margin are alike in it.
    """
    column = comparisons.group_column
    if column is not None:
        return column if _is_grouped(finite, column) else None
    margins, counts = comparisons.rows.margins, {}
    for each in sorted({column for term in finite.terms for column in term.group}):
        name = "groups of column", each
        if name not in comparisons.kept:
            values = comparisons.items[:, each]
            alike = np.array_equal(values[margins.first], values[margins.second])
            comparisons.kept[name] = len(np.unique(values)) if alike else 0
        if comparisons.kept[name] and _is_grouped(finite, each):
            counts[each] = comparisons.kept[name]
    return max(counts, key=lambda each: counts[each]) if counts else None


def _is_grouped(finite: FiniteFeatures, column: int) -> bool:
    """Tell whether some features belong to groups, and others, which do not see them, to all."""
    in_groups = [column in term.group for term in finite.terms]
    others = [term for term, grouped in zip(finite.terms, in_groups, strict=True) if not grouped]
    is_mixed = any(in_groups) and not all(in_groups)
    return is_mixed and not any(column in term.columns for term in others)


def _shared_features(
    finite: FiniteFeatures, column: int
) -> tuple[FiniteFeatures, NDArray[np.intp]]:
    """Features that belong to no group, and which of all monomials theirs are."""
    terms: list[Term] = []
    index: list[int] = []
    begin = 0
    for term in finite.terms:
        n = len(term.monomials)
        if column not in term.group:
            terms.append(term)
            index += range(begin, begin + n)
        begin += n
    chosen = np.array(index, dtype=np.intp)
    return FiniteFeatures(tuple(terms), finite.variance[chosen], finite.slope[chosen]), chosen


def _batches(comparisons: Comparisons, groups: GroupFeatures, width: int) -> list[_Batch]:
    """Divide the groups of some answers into batches, once for all hyperparameters."""
    name = "batches", id(groups), width
    if name not in comparisons.kept:
        comparisons.kept[name] = groups.batches(width)
    batches: list[_Batch] = comparisons.kept[name]
    return batches
