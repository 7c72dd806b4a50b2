"""The exact prior of kernels of finitely many features: a Gaussian on the features' weights.

f(x) = φ(x)ᵀ w with w ~ N(0, diag(v)), so that margins are z = Z w with a row of features each,
Z = φ(first) − φ(second), which no hyperparameter moves. Sites on the margins become a precision of
the weights: all square matrices are of the number of features, whatever the number of items and
answers, and all else is linear in the answers. Most features of a margin are zero: of a group, such
as all answers about one competitor, those two alone that the margin's items belong to. Features of
a team are the weighted sums of its members'.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array

from skpref._utils import (
    BLOCK,
    UNIT,
    Array,
    floor_variance,
    inverse_cholesky,
    row_blocks,
    semidefinite_root,
    spanning_columns,
)
from skpref.data import Comparisons, Margins, distinct_rows
from skpref.gp._by_vector import ByVector
from skpref.gp._posterior import Posterior
from skpref.gp._prior import (
    EXACT,
    HELD,
    Cost,
    Marginals,
    MarginErrors,
    MarginMoments,
    check_finite,
    check_means,
)
from skpref.gp._shared_noise import JointNoise, SitePrecision
from skpref.gp._utilities import as_columns, cubic_work
from skpref.kernels import FiniteFeatures, Kernel, Teams, Term, finite_features
from skpref.likelihoods import Likelihood

# Work on one of a margin's sparse features in a sweep, or on a pair of these, in multiplications of
# a product of dense matrices.
_MARGIN = 30.0
# Items, margins or features at most by which all are judged.
SAMPLE = 2048
# Candidates for each feature among which margins or items that span all others are sought.
_CANDIDATES = 3


class _GroupCodes(NamedTuple):
    """Hold the group of each item, or of each member where items are teams, numbered from 0.

    Attributes
    ----------
    code : ndarray of int of shape (n_members, n_items)
        Any of a member who is absent.
    n_groups : int
    """

    code: NDArray[np.intp]
    n_groups: int


def _find_group_codes(comparisons: Comparisons, term: Term, teams: Teams | None) -> _GroupCodes:
    """Return the groups of a term that items or their members are in, computed once."""
    name = "groups", term.group, teams and teams.layout
    if name not in comparisons.kept:
        rows, shares = _member_rows(comparisons.items, teams)
        present = shares != 0.0
        code = np.zeros(shares.shape, dtype=np.intp)
        _, code[present] = distinct_rows(rows[present][:, list(term.group)])
        n_groups = int(code[present].max(initial=-1)) + 1
        comparisons.kept[name] = _GroupCodes(code, n_groups)
    codes: _GroupCodes = comparisons.kept[name]
    return codes


def _member_rows(items: Array, teams: Teams | None) -> tuple[Array, Array]:
    """Return the rows of the members of items, (n_members, n_items, d), and their weights.

    An item that is no team is its only member, of weight 1.
    """
    if teams is None:
        return items[None], np.ones((1, len(items)))
    return teams.member_rows(items)


def carry_groups(earlier: Comparisons, now: Comparisons) -> None:
    """Copy which rows share a group to the same answers about rows with other values.

    The rows may differ in columns alone by which nothing is grouped.
    """
    for name, codes in earlier.kept.items():
        if name[0] == "groups":
            now.kept[name] = codes


def _find_features(kernel: Kernel, n_columns: int) -> tuple[FiniteFeatures | None, Teams | None]:
    """Return the features of items, or of their members where items are teams; None if many."""
    if type(kernel) is Teams:
        return finite_features(kernel.kernel, n_columns - kernel.n_beside), kernel
    return finite_features(kernel, n_columns), None


class _Size(NamedTuple):
    """Hold the number of features, of sparse entries of a margin and of dense columns."""

    rank: int
    n_entries: int
    n_dense: int


def _count_features(
    comparisons: Comparisons, terms: tuple[Term, ...], teams: Teams | None
) -> _Size:
    """Count the features of margins before they are computed."""
    rank = n_entries = n_dense = 0
    n_members = 1 if teams is None else len(teams.members)
    for term in terms:
        n = len(term.monomials)
        if term.group:
            rank += n * _count_groups(comparisons, term, teams)
            n_entries += 2 * n * n_members
        else:
            n_dense += n - (term.monomials[0] == () and teams is None)
    return _Size(rank + n_dense, n_entries, n_dense)


def _count_groups(comparisons: Comparisons, term: Term, teams: Teams | None) -> int:
    """Count the groups of a term, of item effects those that some margin tells from another."""
    codes = _find_group_codes(comparisons, term, teams)
    if term.monomials != ((),) or teams is not None:
        return codes.n_groups
    margins, code = comparisons.rows.margins, codes.code[0]
    first, second = code[margins.first], code[margins.second]
    is_told_apart = np.zeros(codes.n_groups, dtype=bool)
    is_told_apart[first[first != second]] = is_told_apart[second[first != second]] = True
    return int(np.count_nonzero(is_told_apart))


def _is_cheaper_by_item(n_columns: int, n_items: int, n_margins: int) -> bool:
    """Say whether products with dense columns cost less if these are held by item."""
    return n_columns**2 * (n_margins - n_items) > _MARGIN * n_margins


class _OfMargins:
    """Hold dense columns of margins, (n_margins, width)."""

    def __init__(self, values: Array):
        self._values, self.width = values, values.shape[1]

    def times(self, weights: Array) -> Array:
        values: Array = self._values @ weights
        return values

    def transposed_times(self, values: Array) -> Array:
        sums: Array = self._values.T @ values
        return sums

    def absolute_transposed_times(self, values: Array) -> Array:
        sizes: Array = np.abs(self._values).T @ values
        return sizes

    def absolute_times(self, scale: Array) -> Array:
        sizes: Array = np.abs(self._values) @ scale
        return sizes

    def gram(self, precision: Array, sparse: csr_array) -> tuple[Array, Array]:
        """Compute the Gram matrix of these columns, and that of sparse ones with these."""
        own = np.zeros((self.width, self.width))
        cross = np.zeros((sparse.shape[1], self.width))
        for rows in row_blocks(len(precision), max(self.width, 1), BLOCK):
            if self.width:
                weighted = precision[rows, None] * self._values[rows]
                own += self._values[rows].T @ weighted
                cross += sparse[rows].T @ weighted
        return own, cross

    def quadratic_forms(self, own: Array, cross: Array, sparse: csr_array) -> Array:
        """Return zᵀ V z for the features z of every margin, less the part of sparse columns."""
        total = np.zeros(len(self._values))
        if self.width:
            for rows in row_blocks(len(total), self.width):
                dense = self._values[rows]
                part = dense @ own + 2.0 * (sparse[rows] @ cross)
                total[rows] = np.einsum("ij,ij->i", part, dense)
        return total

    def prior_variances(self, variance: Array) -> Array:
        squares: Array = np.einsum("ij,ij,j->i", self._values, self._values, variance)
        return squares

    def rows(self, margins: Any) -> Array:
        features: Array = self._values[margins]
        return features


class _OfItems:
    """Hold dense columns of items: those of margins are D A, with D their differences.

    Zᵀ T Z is Aᵀ (Dᵀ T D) A, whose middle is sparse, so that squares of the number of columns come
    with the items and not with the margins. Columns are less their means, which margins do not see.
    """

    def __init__(self, values: Array, margins: Margins):
        self._values, self.width = values - values.mean(axis=0), values.shape[1]
        self._first, self._second = margins.first, margins.second
        n = len(self._first)
        ends = np.stack([self._first, self._second], axis=1).ravel()
        entries = np.tile([1.0, -1.0], n), ends, np.arange(n + 1) * 2
        self._differences = csr_array(entries, shape=(n, len(values)))

    def times(self, weights: Array) -> Array:
        worth = self._values @ weights
        values: Array = worth[self._first] - worth[self._second]
        return values

    def transposed_times(self, values: Array) -> Array:
        sums: Array = self._values.T @ (self._differences.T @ values)
        return sums

    def absolute_transposed_times(self, values: Array) -> Array:
        sizes: Array = np.abs(self._values).T @ (abs(self._differences).T @ values)
        return sizes

    def absolute_times(self, scale: Array) -> Array:
        sizes = np.abs(self._values) @ scale
        total: Array = sizes[self._first] + sizes[self._second]
        return total

    def gram(self, precision: Array, sparse: csr_array) -> tuple[Array, Array]:
        weighted = self._differences * precision[:, None]
        own = self._values.T @ ((self._differences.T @ weighted) @ self._values)
        return 0.5 * (own + own.T), (sparse.T @ weighted) @ self._values

    def quadratic_forms(self, own: Array, cross: Array, sparse: csr_array) -> Array:
        products = self._values @ own
        total = np.empty(len(self._first))
        for rows in row_blocks(len(total), self.width):
            first, second = self._first[rows], self._second[rows]
            part = products[first] - products[second]
            if sparse.shape[1]:
                part += 2.0 * (sparse[rows] @ cross)
            total[rows] = np.einsum("ij,ij->i", part, self._values[first] - self._values[second])
        return total

    def prior_variances(self, variance: Array) -> Array:
        total = np.empty(len(self._first))
        for rows in row_blocks(len(total), self.width):
            total[rows] = self.rows(rows) ** 2 @ variance
        return total

    def rows(self, margins: Any) -> Array:
        features: Array = self._values[self._first[margins]] - self._values[self._second[margins]]
        return features


def _margin_entries(
    margins: Margins, place: NDArray[np.intp], value: Array
) -> tuple[list[NDArray[np.intp]], list[Array]]:
    """Return the features of margins that members have, and their values, a pair of lists.

    Parameters
    ----------
    margins : Margins
    place : ndarray of int of shape (n_members, n_items)
        Number of the feature of each member.
    value : ndarray of shape (n_members, n_items)
    """
    places: list[NDArray[np.intp]] = []
    entries: list[Array] = []
    for side, sign in ((margins.first, 1.0), (margins.second, -1.0)):
        for member_place, member_value in zip(place, value, strict=True):
            here, entry = member_place[side], sign * member_value[side]
            # Of a member who is in a margin twice, on either side, one entry is kept.
            for earlier, total in zip(places, entries, strict=True):
                same = (here == earlier) & (entry != 0.0)
                total[same] += entry[same]
                entry[same] = 0.0
            places.append(here)
            entries.append(entry)
    return places, entries


class MarginFeatures:
    """Hold the features of margins, (n_margins, rank), each as if its weight had variance 1.

    Parameters
    ----------
    comparisons : Comparisons
    terms : tuple of Term
        Of the kernel.
    margins : Margins
        Between these items.
    teams : Teams or None
        Where items are teams: ``terms`` are of their members.

    Attributes
    ----------
    n_margins, rank : int
    source : ndarray of shape (rank,)
        Which of the terms' monomials each feature is of.
    """

    def __init__(
        self,
        comparisons: Comparisons,
        terms: tuple[Term, ...],
        margins: Margins,
        teams: Teams | None = None,
    ):
        items = comparisons.items
        n = self.n_margins = len(margins.first)
        places: list[NDArray[np.intp]] = []  # one feature of every margin each
        entries: list[Array] = []
        columns_by_item = [np.zeros((len(items), 0))]
        sparse_source = [np.zeros(0, dtype=np.intp)]
        dense_source: list[int] = []
        rows, shares = _member_rows(items, teams)
        first_monomial = n_sparse = 0
        for term in terms:
            n_monomials = len(term.monomials)
            monomials = range(first_monomial, first_monomial + n_monomials)
            first_monomial += n_monomials
            values = np.stack([term.values(each) for each in rows]) * shares[:, :, None]
            if not term.group:
                columns_by_item.append(values.sum(axis=0))
                dense_source += monomials
                continue
            codes = _find_group_codes(comparisons, term, teams)
            for at in range(n_monomials):
                place_of_group = n_sparse + n_monomials * codes.code + at
                new = _margin_entries(margins, place_of_group, values[:, :, at])
                places += new[0]
                entries += new[1]
            sparse_source.append(np.tile(np.array(monomials), codes.n_groups))
            n_sparse += n_monomials * codes.n_groups
        place = np.stack(places, axis=1) if places else np.zeros((n, 0), dtype=np.intp)
        entry = np.stack(entries, axis=1) if entries else np.zeros((n, 0))
        # Of a group that no margin tells from others nothing is left.
        is_used = np.zeros(n_sparse, dtype=bool)
        is_used[place[entry != 0.0]] = True
        self._n_sparse = int(np.count_nonzero(is_used))
        if self._n_sparse:
            number = np.maximum(np.cumsum(is_used) - 1, 0)
            place = np.where(entry != 0.0, number[place], 0)
        else:
            place, entry = place[:, :0], entry[:, :0]
        by_item = np.concatenate(columns_by_item, axis=1)
        varies = (by_item != by_item[:1]).any(axis=0)
        if not varies.any() and not self._n_sparse:
            by_item, dense_source, varies = np.zeros((len(items), 1)), [0], np.array([True])
        by_item = by_item[:, varies]
        self._dense: _OfItems | _OfMargins
        if _is_cheaper_by_item(by_item.shape[1], len(items), n):
            self._dense = _OfItems(by_item, margins)
        else:
            self._dense = _OfMargins(by_item[margins.first] - by_item[margins.second])
        self.source = np.concatenate(
            [np.concatenate(sparse_source)[is_used], np.array(dense_source, dtype=np.intp)[varies]]
        )
        self.rank = len(self.source)
        self._place, self._entry = np.ascontiguousarray(place.T), np.ascontiguousarray(entry.T)
        bounds = np.arange(n + 1) * place.shape[1]
        self._sparse = csr_array((entry.ravel(), place.ravel(), bounds), shape=(n, self._n_sparse))

    @classmethod
    def from_comparisons(
        cls,
        comparisons: Comparisons,
        terms: tuple[Term, ...],
        margins: Margins,
        teams: Teams | None = None,
    ) -> "MarginFeatures":
        """Return the features of the answers' margins or of their items' margins, computed once."""
        name = "features", terms, teams and teams.layout, margins is comparisons.rows.margins
        if name not in comparisons.kept:
            comparisons.kept[name] = cls(comparisons, terms, margins, teams)
        features: MarginFeatures = comparisons.kept[name]
        return features

    def times(self, weights: Array) -> Array:
        """Compute Z times weights (rank,) or (rank, m)."""
        n = self._n_sparse
        values: Array = self._sparse @ weights[:n] + self._dense.times(weights[n:])
        return values

    def transposed_times(self, values: Array) -> Array:
        """Compute Zᵀ times values of the margins, (n_margins,) or (n_margins, m)."""
        return np.concatenate([self._sparse.T @ values, self._dense.transposed_times(values)])

    def absolute_transposed_times(self, values: Array) -> Array:
        """Compute |Z|ᵀ times values (n_margins,), or more where columns are kept by item."""
        return np.concatenate(
            [abs(self._sparse).T @ values, self._dense.absolute_transposed_times(values)]
        )

    def absolute_times(self, scale: Array) -> Array:
        """Compute |Z| times a scale (rank,), or more where columns are kept by item."""
        n = self._n_sparse
        sizes: Array = abs(self._sparse) @ scale[:n] + self._dense.absolute_times(scale[n:])
        return sizes

    def gram(self, precision: Array) -> Array:
        """Compute Zᵀ T Z with T diagonal, (rank, rank)."""
        n = self._n_sparse
        gram = np.zeros((self.rank, self.rank))
        among, own = np.zeros(n * n), np.zeros(n)
        for i, (place, entry) in enumerate(zip(self._place, self._entry, strict=True)):
            weighted = precision * entry
            np.add.at(own, place, weighted * entry)
            for j in range(i):
                np.add.at(among, self._place[j] * n + place, self._entry[j] * weighted)
        square = among.reshape(n, n)
        gram[:n, :n] = square + square.T
        gram[:n, :n].flat[:: n + 1] += own
        gram[n:, n:], gram[:n, n:] = self._dense.gram(precision, self._sparse)
        gram[n:, :n] = gram[:n, n:].T
        return gram

    def quadratic_forms(self, V: Array) -> Array:
        """Return zᵀ V z for the features z of every margin, V symmetric, (n_margins,)."""
        n = self._n_sparse
        total = self._dense.quadratic_forms(V[n:, n:], V[:n, n:], self._sparse)
        diagonal = np.diagonal(V)
        among = np.ascontiguousarray(V[:n, :n]).ravel()
        for i, (place, entry) in enumerate(zip(self._place, self._entry, strict=True)):
            part = entry * diagonal[place]
            for j in range(i):
                part += 2.0 * self._entry[j] * among[self._place[j] * n + place]
            total += entry * part
        return total

    def prior_variances(self, variance: Array) -> Array:
        """Compute zᵀ diag(variance) z of every margin."""
        n = self._n_sparse
        total = self._dense.prior_variances(variance[n:])
        for place, entry in zip(self._place, self._entry, strict=True):
            total += entry**2 * variance[:n][place]
        return total

    def rows(self, margins: Any) -> Array:
        """Return some rows of Z."""
        return np.hstack([self._sparse[margins].toarray(), self._dense.rows(margins)])

    def rows_of_sets(self, places: NDArray[np.intp]) -> Iterator[tuple[slice, Array]]:
        """Yield rows of Z for the margins of rows of ``places``, (n, m, rank), block by block."""
        for some in row_blocks(len(places), places.shape[1] * self.rank, BLOCK):
            yield some, self.rows(places[some].ravel()).reshape(*places[some].shape, self.rank)


class _FeatureWeights:
    """Hold the weights given sites: of variance 1 their covariance is L⁻ᵀ L⁻¹, else Hᵀ H."""

    def __init__(self, inner: Array, scale: Array):
        inner.flat[:: len(inner) + 1] += 1.0
        self.inverse, self.log_det = inverse_cholesky(inner.T)
        self._half, self._scale = self.inverse * scale, scale

    def times(self, vector: Array) -> Array:
        """Compute the weights' covariance times a vector, or times the columns of a matrix."""
        product: Array = self._half.T @ (self._half @ vector)
        return product

    def unit_mean(self, pull: Array) -> Array:
        """Compute the mean of weights of variance 1, (rank, n), of the sites' shifts at them."""
        mean: Array = self.inverse.T @ (self.inverse @ (self._scale[:, None] * pull))
        return mean

    @cached_property
    def covariance(self) -> Array:
        """Compute the covariance of the weights, (rank, rank)."""
        covariance: Array = self._half.T @ self._half
        return covariance


class FiniteRank(ByVector):
    """The prior by the weights of finitely many features: `finite_features` says of which kernels.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    finite : FiniteFeatures
        Of the kernel.
    comparisons : Comparisons
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
        self.kernel, self.noise = kernel, noise
        self._finite, self._comparisons, self._margins = finite, comparisons, margins
        teams = kernel if type(kernel) is Teams else None
        features = self._features = MarginFeatures.from_comparisons(
            comparisons, finite.terms, margins, teams
        )
        self._own = finite.variance[features.source]  # v
        self._scale = np.sqrt(self._own)
        self.n_margins, self.n_shared = features.n_margins, margins.n_shared
        self.variance = features.prior_variances(self._own)
        check_finite(kernel, np.concatenate([finite.variance, self.variance]))
        self._largest = float(np.max(self.variance))

    @classmethod
    def from_comparisons(
        cls,
        kernel: Kernel,
        comparisons: Comparisons,
        likelihood: Likelihood,
        gradient: bool = False,
    ) -> Self:
        """See `Prior.from_comparisons`; ValueError for a kernel without few known features."""
        finite, _ = _find_features(kernel, comparisons.items.shape[1])
        if finite is None:
            raise ValueError(
                f"The features of the kernel {kernel} are not known to be few. Use DenseItems."
            )
        margins, item_noise = comparisons.rows.margins, likelihood.item_noise
        noise = None
        if margins.blocks and item_noise is not None:
            noise = JointNoise(margins, item_noise)
        return cls(kernel, finite, comparisons, margins, noise)

    def on_duels(self, margins: Margins) -> "FiniteRank":
        """See `Prior.on_duels`."""
        return FiniteRank(self.kernel, self._finite, self._comparisons, margins)

    @classmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `Prior.cost`; infinite for kernels of other features, or of none that counts."""
        finite = teams = None
        if kernel is not None:
            finite, teams = _find_features(kernel, comparisons.items.shape[1])
        if finite is None:
            return Cost(np.inf, np.inf, np.inf)
        rank, k, d = _count_features(comparisons, finite.terms, teams)
        if not rank:
            return Cost(np.inf, np.inf, np.inf)
        n = float(len(comparisons.rows.margins.first))
        n_joint = n - comparisons.rows.margins.n_shared
        m = float(len(comparisons.items))
        if not _is_cheaper_by_item(d, len(comparisons.items), int(n)):
            m = n
        linear = 3.0 * n_joint * float(rank) ** 2 + 2.0 * m * d**2
        linear += _MARGIN * n * (1.0 + k) * (1.0 + k + d)
        held = _MARGIN * n * (2.0 + k) + 2.0 * m * d + HELD * float(rank) ** 2
        return Cost(linear + cubic_work(rank), float(rank), 8.0 * held, linear)

    def times(self, vector: Array) -> Array:
        """See `Prior.times`."""
        pulled = self._features.transposed_times(vector)
        return self._features.times((self._own * pulled.T).T)

    def covariance(self) -> Array:
        """See `Prior.covariance`."""
        root = self.root()
        return root @ root.T

    def root(self) -> Array:
        """See `Prior.root`."""
        return self._features.rows(slice(None)) * self._scale

    def margin_values(self, vector: Array) -> Array:
        """Compute Z times weights."""
        return self._features.times(vector)

    def transposed_times(self, values: Array) -> Array:
        """Compute Zᵀ times values of the margins."""
        return self._features.transposed_times(values)

    def margins_of(
        self, several: Sequence[Comparisons], conditioned: Any, likelihood: Likelihood
    ) -> list[MarginMoments]:
        """See `Prior.margins_of`; by the weights, where the others have the same features."""
        mean = self._own * self.transposed_times(conditioned.conditioned.dual)
        covariance, moments = conditioned.conditioned.root.covariance, []
        for each in several:
            margins = each.rows.margins
            features = MarginFeatures.from_comparisons(each, self._finite.terms, margins)
            if not np.array_equal(features.source, self._features.source):
                return super().margins_of(several, conditioned, likelihood)
            spread = floor_variance(features.quadratic_forms(covariance), 0.0)
            moments.append(MarginMoments(features.times(mean), spread, np.zeros(len(spread))))
        return moments

    def _weight_precision_gain(self, precision):
        """Compute what sites add to the precision of the weights, as if those had variance 1."""
        if self.noise is None:
            gram = self._features.gram(precision)
        else:
            of_joint = np.arange(self.n_margins) >= self.n_shared
            single = precision.single if isinstance(precision, SitePrecision) else precision
            gram = self._features.gram(np.where(of_joint, 0.0, single))
            for block, joint in self._joint_precision(precision):
                for some, rows in self._features.rows_of_sets(block.margin):
                    flat = rows.reshape(-1, rows.shape[2])
                    gram += flat.T @ (joint[some] @ rows).reshape(flat.shape)
        return self._scale[:, None] * gram * self._scale

    def _condition_vector(self, precision):
        """Return the weights of the features given sites of this precision."""
        return _FeatureWeights(self._weight_precision_gain(precision), self._scale)

    def _margin_variances(self, vector):
        return floor_variance(self._features.quadratic_forms(vector.covariance), 0.0)

    def _joint_covariances(self, vector, at):
        covariance = np.empty((*at.shape, at.shape[1]))
        for some, rows in self._features.rows_of_sets(at):
            covariance[some] = rows @ vector.covariance @ np.swapaxes(rows, 1, 2)
        return covariance

    def pull_back(self, marginals: Marginals, precision: Array, push: Array | None = None) -> Array:
        """See `Prior.pull_back`; in the weights' variances v: ½ (Zᵀw)² − ½ (1 − (I + B)⁻¹)/v.

        B is what the sites add to the precision of weights of variance 1.
        """
        if not len(self.kernel.theta):
            return np.zeros(0)
        pulled = self._features.transposed_times(marginals.dual)
        fit = pulled**2
        if push is not None:
            fit += 2.0 * pulled * self._features.transposed_times(push)
        inverse = marginals.root.inverse
        reduction = 1.0 - np.einsum("ij,ij->j", inverse, inverse)
        spread = reduction / np.where(self._own > 0.0, self._own, 1.0)  # without variance, no slope
        return 0.5 * (fit - spread) @ self._finite.slope[self._features.source]

    def posterior(self, sites: Any, marginals: Any, likelihood: Likelihood) -> Posterior:
        """See `Prior.posterior`; anchors are the items of margins that span all others."""
        root = semidefinite_root(self._precision_gain(marginals.root, sites.precision))
        inner = root.T @ root
        inner.flat[:: len(inner) + 1] += 1.0
        # I − (I + B Bᵀ)⁻¹ = B (I + Bᵀ B)⁻¹ Bᵀ
        gain_root = root @ inverse_cholesky(inner.T)[0].T
        shift = self._shift_of_sites(marginals.root, sites.precision, sites.shift)
        pull = as_columns(self.transposed_times(shift))
        both = np.hstack([marginals.root.unit_mean(pull), gain_root])
        if self._largest > 0.0:
            chosen, Q, R = self._spanning()
            both = solve_triangular(R, Q.T @ both)
        else:  # nothing is learned
            chosen, both = np.zeros(1, dtype=np.intp), np.zeros((1, both.shape[1]))
        margins, items = self._margins, self._comparisons.items
        ends = np.concatenate([margins.first[chosen], margins.second[chosen]])
        used, position = np.unique(ends, return_inverse=True)
        spread = np.zeros((len(used), both.shape[1]))
        np.add.at(spread, position.reshape(-1), np.concatenate([both, -both]))
        weights, factor = np.split(spread, [pull.shape[1]], axis=1)
        return Posterior(self.kernel, likelihood, items[used], weights, factor)

    def _precision_gain(self, weights, precision):
        """Compute what sites add to the precision of the weights, where these are known already."""
        return self._weight_precision_gain(precision)

    def _shift_of_sites(self, weights, precision, shift):
        """Compute the shift of sites on what the weights tell of the margins."""
        return self._shift_at_margins(precision, shift)

    def _spanning(self):
        """Choose margins whose features span those of all: (Q R)ᵀ for weights of variance 1."""
        features, rank = self._features, self._features.rank
        rng = np.random.default_rng(0)
        some = rng.permutation(self.n_margins)[: _CANDIDATES * rank]
        least, before = np.sqrt(UNIT * self._largest), -1
        while True:
            position, Q, R = spanning_columns((features.rows(some) * self._scale).T, least)
            chosen, size = some[position], len(position)
            unexplained = self._scale[:, None] * (np.eye(rank) - Q @ Q.T) * self._scale
            residual = features.quadratic_forms(unexplained)
            missed = np.flatnonzero(
                residual > np.maximum(rank * UNIT * features.prior_variances(self._own), least**2)
            )
            if not len(missed) or size <= before:
                return chosen, Q, R
            most = missed[np.argsort(-residual[missed], kind="stable")[:rank]]
            some = np.unique(np.concatenate([chosen, most, rng.permutation(missed)[:rank]]))
            before = size

    # -- rounding ----------------------------------------------------------------------------

    def is_covariance(self) -> bool:
        """See `Prior.is_covariance`: variances are not negative."""
        return True

    def rounding(self, dual: Array) -> MarginErrors:
        """See `Prior.rounding`; by the terms |Z| v |Z|ᵀ |w|."""
        unit = UNIT * np.sqrt(self._features.rank)
        mean = self._features.absolute_times(
            self._own * self._features.absolute_transposed_times(np.abs(dual))
        )
        scale = self._features.absolute_times(self._scale) ** 2
        if self.noise is not None:
            noise = self.noise.diagonal()
            mean, scale = mean + noise * np.abs(dual), scale + noise
        return MarginErrors(mean=unit * mean, variance=unit * scale)

    def energy_error(self, dual: Array) -> float:
        """See `Prior.energy_error`."""
        terms = self._own * self._features.absolute_transposed_times(np.abs(dual)) ** 2
        return 0.5 * UNIT * float(np.sqrt(terms @ terms))

    def check_digits(self, posterior: Posterior, marginals: Marginals) -> None:
        """See `Prior.check_digits`; at some of the margins."""
        n = self.n_shared  # of joint answers the means are with their noise
        some = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.intp)
        margins, items = self._margins, self._comparisons.items
        ends = items[margins.first[some]], items[margins.second[some]]
        first, second = (posterior.means_at(rows).mean(axis=1) for rows in ends)
        mean = as_columns(marginals.mean)[some].mean(axis=1)
        variance = marginals.variance[some] + posterior.likelihood.margin_variance
        check_means(first - second, mean, variance)


EXACT += [FiniteRank]


def spanning_items(items: Array, kernel: Kernel, most: int = SAMPLE) -> Array | None:
    """Choose items whose features span those of all, in the order in which they stand.

    Looked for among items of every group and at random, and those where a monomial is largest.

    Parameters
    ----------
    items : ndarray of shape (n_items, n_features)
    kernel : sklearn.gaussian_process.kernels.Kernel
    most : int, default=2048
        Features at most.

    Returns
    -------
    ndarray of shape (rank, n_features) or None
        None if the kernel's features are more, or not known to be few.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> from skpref.gp import spanning_items
    >>> items = np.random.default_rng(0).normal(size=(100, 3))
    >>> spanning_items(items, DotProduct()).shape
    (4, 3)
    """
    finite = finite_features(kernel, items.shape[1])
    chosen = None if finite is None else spanning_rows(items, finite, most)
    return None if chosen is None else items[chosen]


def spanning_rows(items: Array, finite: FiniteFeatures, most: int) -> NDArray[np.intp] | None:
    """Choose rows of items that span the features of all, see `spanning_items`."""
    codes = [_group_codes(items, term) for term in finite.terms]
    widths = [
        (int(code.max()) + 1) * len(term.monomials)
        for code, term in zip(codes, finite.terms, strict=True)
    ]
    if sum(widths) > most:
        return None
    order = np.random.default_rng(0).permutation(len(items))
    some = [order[: _CANDIDATES * sum(widths)]]
    for code, term in zip(codes, finite.terms, strict=True):
        some.append(np.argmax(np.abs(term.values(items)), axis=0))
        if term.group:  # of each group as many as it has features, and one more
            ranked = order[np.argsort(code[order], kind="stable")]
            starts = np.searchsorted(code[ranked], np.arange(int(code.max()) + 1))
            nth = np.arange(len(items)) - starts[code[ranked]]
            some.append(ranked[nth <= len(term.monomials)])
    rows = np.unique(np.concatenate(some))
    features, begin, at = np.zeros((len(rows), sum(widths))), 0, 0
    for code, term, width in zip(codes, finite.terms, widths, strict=True):
        n = len(term.monomials)
        values = term.values(items[rows]) * np.sqrt(finite.variance[at : at + n])
        place = begin + n * code[rows, None] + np.arange(n)
        features[np.arange(len(rows))[:, None], place] = values
        begin, at = begin + width, at + n
    apart = features - features[0]  # margins do not see a level that all items share
    largest = np.sqrt(np.max(np.einsum("ij,ij->i", apart, apart)))
    chosen = spanning_columns(features.T, np.sqrt(UNIT) * largest)[0]
    return rows[np.sort(chosen)]


def _group_codes(items, term):
    """Return the number of the group of each item in a term; 0 for all of a term without groups."""
    if not term.group:
        return np.zeros(len(items), dtype=np.intp)
    return distinct_rows(items[:, list(term.group)])[1]
