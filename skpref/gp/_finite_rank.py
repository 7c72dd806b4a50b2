"""The exact prior of kernels of finitely many features: a Gaussian on the features' weights.

f(x) = φ(x)ᵀ w with w ~ N(0, diag(v)), so that margins are z = Z w with a row of features each,
Z = φ(first) − φ(second), which no hyperparameter moves. Sites on the margins become a precision of
the weights: all square matrices are of the number of features, whatever the number of items and
answers, and all else is linear in the answers. Most features of a margin are zero: of a group, such
as all answers about one competitor, those two alone that the margin's items belong to.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array

from skpref._utils import (
    Array,
    floor_variance,
    inverse_cholesky,
    row_blocks,
    semidefinite_root,
    spanning_columns,
)
from skpref.data import Comparisons, distinct_rows
from skpref.gp._posterior import Posterior
from skpref.gp._prior import (
    EXACT,
    UNIT,
    Cost,
    Marginals,
    MarginErrors,
    Prior,
    check_finite,
    check_means,
)
from skpref.gp._utilities import columns
from skpref.kernels import FiniteFeatures, Kernel, Term, finite_features
from skpref.likelihoods import Likelihood

# Groups that are held as dense columns: so few are quicker that way.
_FEW = 4
# Multiplications of matrices that one of entries costs, and r³ such a sweep costs.
_ENTRY, _CUBES = 10.0, 2.8
# Square matrices of the features held at once, and numbers a margin of the engines themselves.
_SQUARES, _OF_ENGINE = 8.0, 40.0
# Doubles of a block of rows that stays in the cache.
_BLOCK = 2**16
# Margins that stand for all: candidates for each feature, how small what they leave of another is
# in shares of the largest, and up to which share rounding hides the square of what is left.
_CANDIDATES, _LEFT, _ROUNDED = 3, 1e-8, 1e-13
# Margins whose means are found once more by the posterior.
_LOOKED_AT = 1000


class _Sides(NamedTuple):
    """Groups of the items of every margin, numbered from 0 where they count, and how many."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    n_groups: int


def _sides(comparisons: Comparisons, term: Term) -> _Sides:
    """Groups of margins by a term; those are left out that no margin tells apart."""
    alone = term.monomials == ((),)
    name = "sides", term.group, alone
    if name not in comparisons.kept:
        margins = comparisons.rows.margins
        _, code = distinct_rows(comparisons.items[:, list(term.group)])
        first, second = code[margins.first], code[margins.second]
        if alone:  # of two items in one group nothing is left
            apart = first != second
            seen = np.zeros(int(code.max(initial=0)) + 1, dtype=bool)
            seen[first[apart]] = seen[second[apart]] = True
            number = np.where(seen, np.cumsum(seen) - 1, 0)
            first, second = number[first], number[second]
            first[~apart] = second[~apart] = 0
            n_groups = int(np.count_nonzero(seen))
        else:
            n_groups = int(code.max(initial=-1)) + 1
        comparisons.kept[name] = _Sides(first, second, n_groups)
    found: _Sides = comparisons.kept[name]
    return found


class _Size(NamedTuple):
    """Of features: their number, the entries of a margin and the dense columns."""

    rank: int
    n_entries: int
    n_dense: int


def _size(comparisons: Comparisons, terms: tuple[Term, ...]) -> _Size:
    """How large the features of margins will be, found without them."""
    name = "size", terms
    if name not in comparisons.kept:
        rank = n_entries = n_dense = 0
        for term in terms:
            n = len(term.monomials)
            if not term.group:
                n_dense += n - (term.monomials[0] == ())
                continue
            n_groups = _sides(comparisons, term).n_groups
            if n_groups <= _FEW:
                n_dense += n_groups * n
            else:
                rank += n_groups * n
                n_entries += 2 * n
        comparisons.kept[name] = _Size(rank + n_dense, n_entries, n_dense)
    found: _Size = comparisons.kept[name]
    return found


class MarginFeatures:
    """Features of margins, (n_margins, rank), each as if its weight had variance 1.

    Parameters
    ----------
    comparisons : Comparisons
    terms : tuple of Term
        Of the kernel.

    Attributes
    ----------
    n_margins, rank : int
    source : ndarray of shape (rank,)
        Which of the terms' monomials each feature is of.
    """

    def __init__(self, comparisons: Comparisons, terms: tuple[Term, ...]):
        margins, items = comparisons.rows.margins, comparisons.items
        n = self.n_margins = len(margins.first)
        self._place: list[NDArray[np.intp]] = []  # one feature of every margin each
        self._entry: list[Array] = []
        dense: list[Array] = []
        of_entries: list[NDArray[np.intp]] = []
        of_dense: list[int] = []
        begin = self._n_sparse = 0
        for term in terms:
            values, number = term.values(items), range(begin, begin + len(term.monomials))
            begin += len(term.monomials)
            one, two = values[margins.first], values[margins.second]
            if not term.group:
                dense += list((one - two).T)
                of_dense += number
                continue
            sides = _sides(comparisons, term)
            if sides.n_groups <= _FEW:
                for group in range(sides.n_groups):
                    inside = (sides.first == group)[:, None], (sides.second == group)[:, None]
                    dense += list((np.where(inside[0], one, 0.0) - np.where(inside[1], two, 0.0)).T)
                    of_dense += number
                continue
            alike = sides.first == sides.second
            one[alike] -= two[alike]
            two[alike] = 0.0
            for at in range(len(number)):
                for side, entry in ((sides.first, one), (sides.second, -two)):
                    self._place.append(self._n_sparse + len(number) * side + at)
                    self._entry.append(np.ascontiguousarray(entry[:, at]))
            of_entries.append(np.tile(np.array(number), sides.n_groups))
            self._n_sparse += len(number) * sides.n_groups
        kept = [k for k, column in enumerate(dense) if np.any(column)]
        self._dense = np.stack([dense[k] for k in kept], axis=1) if kept else np.zeros((n, 0))
        self.source = np.concatenate([*of_entries, np.array(of_dense, dtype=np.intp)[kept]])
        self.source = self.source.astype(np.intp)
        self.rank = len(self.source)
        k = len(self._place)
        place = np.stack(self._place, axis=1) if k else np.zeros((n, 0), dtype=np.intp)
        entry = np.stack(self._entry, axis=1) if k else np.zeros((n, 0))
        told = entry.ravel(), place.ravel(), np.arange(n + 1) * k
        self._sparse = csr_array(told, shape=(n, self._n_sparse))

    @classmethod
    def of(cls, comparisons: Comparisons, terms: tuple[Term, ...]) -> "MarginFeatures":
        """Found once for some answers."""
        name = "features", terms
        if name not in comparisons.kept:
            comparisons.kept[name] = cls(comparisons, terms)
        found: MarginFeatures = comparisons.kept[name]
        return found

    def times(self, weights: Array) -> Array:
        """Z times weights (rank,) or (rank, m)."""
        n = self._n_sparse
        found: Array = self._sparse @ weights[:n] + self._dense @ weights[n:]
        return found

    def pulled(self, values: Array) -> Array:
        """Zᵀ times values of the margins, (n_margins,) or (n_margins, m)."""
        return np.concatenate([self._sparse.T @ values, self._dense.T @ values])

    def reach(self, values: Array) -> Array:
        """|Z|ᵀ times values (n_margins,)."""
        return np.concatenate([abs(self._sparse).T @ values, np.abs(self._dense).T @ values])

    def extent(self, scale: Array) -> Array:
        """|Z| times a scale (rank,)."""
        n = self._n_sparse
        found: Array = abs(self._sparse) @ scale[:n] + np.abs(self._dense) @ scale[n:]
        return found

    def gram(self, precision: Array) -> Array:
        """Zᵀ T Z with T diagonal, (rank, rank)."""
        n = self._n_sparse
        found = np.zeros((self.rank, self.rank))
        among, own = np.zeros(n * n), np.zeros(n)
        for i, (place, entry) in enumerate(zip(self._place, self._entry, strict=True)):
            weighted = precision * entry
            np.add.at(own, place, weighted * entry)
            for j in range(i):
                np.add.at(among, self._place[j] * n + place, self._entry[j] * weighted)
        square = among.reshape(n, n)
        found[:n, :n] = square + square.T
        found[:n, :n].flat[:: n + 1] += own
        for rows in row_blocks(self.n_margins, max(self._dense.shape[1], 1), 16 * _BLOCK):
            if self._dense.shape[1]:
                weighted = precision[rows, None] * self._dense[rows]
                found[n:, n:] += self._dense[rows].T @ weighted
                found[:n, n:] += self._sparse[rows].T @ weighted
        found[n:, :n] = found[:n, n:].T
        return found

    def squares(self, V: Array) -> Array:
        """zᵀ V z of every margin, V symmetric."""
        n, total = self._n_sparse, np.zeros(self.n_margins)
        diagonal = np.diagonal(V)
        among = np.ascontiguousarray(V[:n, :n]).ravel()
        for i, (place, entry) in enumerate(zip(self._place, self._entry, strict=True)):
            part = entry * diagonal[place]
            for j in range(i):
                part += 2.0 * self._entry[j] * among[self._place[j] * n + place]
            total += entry * part
        if self._dense.shape[1]:
            for rows in row_blocks(self.n_margins, self._dense.shape[1], _BLOCK):
                dense = self._dense[rows]
                part = dense @ V[n:, n:] + 2.0 * (self._sparse[rows] @ V[:n, n:])
                total[rows] += np.einsum("ij,ij->i", part, dense)
        return total

    def own_squares(self, variance: Array) -> Array:
        """zᵀ diag(variance) z of every margin."""
        n = self._n_sparse
        total: Array = np.einsum("ij,ij,j->i", self._dense, self._dense, variance[n:])
        for place, entry in zip(self._place, self._entry, strict=True):
            total += entry**2 * variance[:n][place]
        return total

    def rows(self, margins: Any) -> Array:
        """Some rows of Z."""
        return np.hstack([self._sparse[margins].toarray(), self._dense[margins]])


class FiniteRank(Prior):
    """The prior by the weights of finitely many features; see `skpref.kernels` for which kernels.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    finite : FiniteFeatures
        Of the kernel.
    features : MarginFeatures
    comparisons : Comparisons
    """

    def __init__(
        self,
        kernel: Kernel,
        finite: FiniteFeatures,
        features: MarginFeatures,
        comparisons: Comparisons,
    ):
        self.kernel, self._features, self._comparisons = kernel, features, comparisons
        self._own = finite.variance[features.source]  # v
        self._slope = finite.slope[features.source]
        self._scale = np.sqrt(self._own)
        self.n_margins = features.n_margins
        self.variance = features.own_squares(self._own)
        check_finite(kernel, np.concatenate([finite.variance, self.variance]))

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        comparisons: Comparisons,
        likelihood: Likelihood,
        gradient: bool = False,
    ) -> Self:
        """See `Prior.of`; a ValueError if the kernel's features are not known to be few."""
        finite = finite_features(kernel, comparisons.items.shape[1])
        if finite is None:
            raise ValueError(
                f"The features of the kernel {kernel} are not known to be few. Use DenseItems."
            )
        features = MarginFeatures.of(comparisons, finite.terms)
        return cls(kernel, finite, features, comparisons)

    @classmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `Prior.cost`; infinite for kernels of other features, or of none that counts."""
        finite = None
        if kernel is not None:
            finite = finite_features(kernel, comparisons.items.shape[1])
        rank, k, d = (0, 0, 0) if finite is None else _size(comparisons, finite.terms)
        if not rank:
            return Cost(np.inf, np.inf, np.inf)
        n = float(len(comparisons.rows.margins.first))
        linear = n * (_ENTRY * (1.0 + k**2 + k * d) + 2.0 * d**2)
        held = n * (4.0 * k + 2.0 * d + _OF_ENGINE) + _SQUARES * float(rank) ** 2
        return Cost(linear + _CUBES * float(rank) ** 3, float(rank), 8.0 * held)

    def times(self, vector: Array) -> Array:
        """See `Prior.times`."""
        pulled = self._features.pulled(vector)
        return self._features.times((self._own * pulled.T).T)

    def covariance(self) -> Array:
        """See `Prior.covariance`."""
        root = self.root()
        return root @ root.T

    def root(self) -> Array:
        """See `Prior.root`."""
        return self._features.rows(slice(None)) * self._scale

    def _gained(self, precision):
        """What sites add to the precision of the weights, as if those had variance 1."""
        return self._scale[:, None] * self._features.gram(precision) * self._scale

    def condition(self, precision: Array, shift: Array) -> Marginals:
        """See `Prior.condition`."""
        inner = self._gained(precision)
        inner.flat[:: len(inner) + 1] += 1.0
        inverse, log_det = inverse_cholesky(inner.T)
        mean, dual = self._centre(inverse, precision, shift)
        half = inverse * self._scale
        variance = floor_variance(self._features.squares(half.T @ half), 0.0)
        return Marginals(mean, variance, dual, log_det, inverse)

    def _weights(self, inverse, shift):
        """Means of the weights, as if those had variance 1."""
        pulled = (self._scale * self._features.pulled(shift).T).T
        return inverse.T @ (inverse @ pulled)

    def _centre(self, inverse, precision, shift):
        mean = self._features.times((self._scale * self._weights(inverse, shift).T).T)
        return mean, shift - (precision * mean.T).T

    def shifted(self, marginals: Marginals, precision: Array, shift: Array) -> Marginals:
        """See `Prior.shifted`: without a factorisation."""
        mean, dual = self._centre(marginals.root, precision, shift)
        return marginals._replace(mean=mean, dual=dual)

    def centre(self, precision: Array, shift: Array) -> tuple[Array, Array]:
        """See `Prior.centre`."""
        inner = self._gained(precision)
        inner.flat[:: len(inner) + 1] += 1.0
        return self._centre(inverse_cholesky(inner.T)[0], precision, shift)

    def response(self, marginals: Marginals, precision: Array, vector: Array) -> Array:
        """See `Prior.response`: R = τ − τ Z V Zᵀ τ, V the covariance of the weights."""
        margin = self.times(vector)
        found, _ = self._centre(marginals.root, precision, precision * margin)
        return precision * (margin - found)

    def pull_back(self, marginals: Marginals, precision: Array, push: Array | None = None) -> Array:
        """See `Prior.pull_back`; in the weights' variances v: ½ (Zᵀw)² − ½ (1 − (I + B)⁻¹)/v.

        B is what the sites add to the precision of weights of variance 1.
        """
        if not len(self.kernel.theta):
            return np.zeros(0)
        pulled = self._features.pulled(marginals.dual)
        fit = pulled**2
        if push is not None:
            fit += 2.0 * pulled * self._features.pulled(push)
        left = 1.0 - np.einsum("ij,ij->j", marginals.root, marginals.root)
        spread = left / np.where(self._own > 0.0, self._own, 1.0)  # without variance, no slope
        return 0.5 * (fit - spread) @ self._slope

    def posterior(self, sites: Any, marginals: Any, likelihood: Likelihood) -> Posterior:
        """See `Prior.posterior`; anchors are the items of margins that span all others."""
        root = semidefinite_root(self._gained(sites.precision))
        inner = root.T @ root
        inner.flat[:: len(inner) + 1] += 1.0
        # I − (I + B Bᵀ)⁻¹ = B (I + Bᵀ B)⁻¹ Bᵀ
        told = root @ inverse_cholesky(inner.T)[0].T
        mean = columns(self._weights(marginals.root, sites.shift))
        chosen, Q, R = self._spanning()
        both = solve_triangular(R, Q.T @ np.hstack([mean, told]))
        margins, items = self._comparisons.rows.margins, self._comparisons.items
        ends = np.concatenate([margins.first[chosen], margins.second[chosen]])
        used, position = np.unique(ends, return_inverse=True)
        spread = np.zeros((len(used), both.shape[1]))
        np.add.at(spread, position.reshape(-1), np.concatenate([both, -both]))
        weights, factor = np.split(spread, [mean.shape[1]], axis=1)
        return Posterior(self.kernel, likelihood, items[used], weights, factor)

    def _spanning(self):
        """Margins whose features span those of all, which are (Q R)ᵀ for weights of variance 1."""
        features, rank = self._features, self._features.rank
        rng = np.random.default_rng(0)
        some = rng.permutation(self.n_margins)[: _CANDIDATES * rank]
        least, before = _LEFT * np.sqrt(np.max(self.variance)), -1
        while True:
            found, Q, R = spanning_columns((features.rows(some) * self._scale).T, least)
            chosen, size = some[found], len(found)
            beside = self._scale[:, None] * (np.eye(rank) - Q @ Q.T) * self._scale
            left = features.squares(beside)
            missed = np.flatnonzero(left > np.maximum(_ROUNDED * self.variance, least**2))
            if not len(missed) or size <= before:
                return chosen, Q, R
            most = missed[np.argsort(-left[missed], kind="stable")[:rank]]
            some = np.unique(np.concatenate([chosen, most, rng.permutation(missed)[:rank]]))
            before = size

    # -- rounding ----------------------------------------------------------------------------

    def is_covariance(self) -> bool:
        """See `Prior.is_covariance`: variances are not negative."""
        return True

    def rounding(self, dual: Array) -> MarginErrors:
        """See `Prior.rounding`; by the terms |Z| v |Z|ᵀ |w|."""
        unit = UNIT * np.sqrt(self._features.rank)
        mean = self._features.extent(self._own * self._features.reach(np.abs(dual)))
        scale = self._features.extent(self._scale) ** 2
        return MarginErrors(mean=unit * mean, variance=unit * scale)

    def energy_error(self, dual: Array) -> float:
        """See `Prior.energy_error`."""
        terms = self._own * self._features.reach(np.abs(dual)) ** 2
        return 0.5 * UNIT * float(np.sqrt(terms @ terms))

    def check_digits(self, posterior: Posterior, marginals: Marginals) -> None:
        """See `Prior.check_digits`; at some of the margins."""
        some = np.linspace(0, self.n_margins - 1, min(self.n_margins, _LOOKED_AT)).astype(np.intp)
        margins, items = self._comparisons.rows.margins, self._comparisons.items
        ends = items[margins.first[some]], items[margins.second[some]]
        one, other = (posterior.means_at(rows).mean(axis=1) for rows in ends)
        mean = columns(marginals.mean)[some].mean(axis=1)
        variance = marginals.variance[some] + posterior.likelihood.margin_variance
        check_means(one - other, mean, variance)


EXACT += [FiniteRank]
