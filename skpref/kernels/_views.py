"""The questions that are asked of kernels, each with its rules for composites."""

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, WhiteKernel

from skpref.kernels._contracts import (
    PAIRED_ROWS,
    Across,
    Array,
    Contraction,
    Cross,
    Diagonal,
    Kernel,
    Number,
    Pairs,
    Seen,
    Slope,
    Spectrum,
    assemble,
    far_origin,
    near_zero,
    power_slope,
    strict_upper_triangle,
)
from skpref.kernels._leaves import OTHER, Identity, ItemEffect, Linear, leaf_of
from skpref.kernels._wrappers import (
    Intransitive,
    OnColumns,
    Padded,
    Teams,
    View,
    fold,
    margin_covariance,
)


def _spread_columns(inner: Array, columns: tuple[int, ...], width: int) -> Array:
    """Put values of the columns that were seen (last axis) among zeros for the others."""
    whole = np.zeros((*inner.shape[:-1], width))
    whole[..., columns] = inner
    return whole


# --- k(X, X) and its gradient in theta ----------------------------------------------------------


def _join_contractions(*contractions: Contraction | None) -> Contraction | None:
    """Return the contraction of two kernels in turn; each is None where nothing is free."""
    present = [contraction for contraction in contractions if contraction is not None]
    if not present:
        return None
    return lambda *weights: np.concatenate([each(*weights) for each in present])


def _scale_contraction(contraction: Contraction | None, *factors: Number) -> Contraction | None:
    """Return the contraction of a kernel whose parts have these factors."""
    if contraction is None:
        return None
    return lambda *weights: contraction(*(w * f for w, f in zip(weights, factors, strict=True)))


class _PairsView(View[Pairs]):
    def leaf(self, kernel: Kernel, *rows: Array) -> Pairs:
        pairs = leaf_of(kernel).pairs(kernel, *near_zero(kernel, *rows))
        return pairs if kernel.n_dims else pairs._replace(contract=None)

    def sum(self, one: Pairs, two: Pairs) -> Pairs:
        return Pairs(
            one.off + two.off, one.diag + two.diag, _join_contractions(one.contract, two.contract)
        )

    def product(self, one: Pairs, two: Pairs) -> Pairs:
        contract = _join_contractions(
            _scale_contraction(one.contract, two.off, two.diag),
            _scale_contraction(two.contract, one.off, one.diag),
        )
        return Pairs(one.off * two.off, one.diag * two.diag, contract)

    def power(self, base: Pairs, exponent: float) -> Pairs:
        slopes = power_slope(base.off, exponent), power_slope(base.diag, exponent)
        return Pairs(
            base.off**exponent, base.diag**exponent, _scale_contraction(base.contract, *slopes)
        )

    def on_columns(self, inner: Pairs, columns: tuple[int, ...], *rows: Array) -> Pairs:
        return inner

    def of_duels(self, inner: Pairs, kernel: Kernel, *rows: Array) -> Pairs:
        n = len(rows[0])
        K = margin_covariance(assemble(inner.off, inner.diag, 2 * n))
        base = inner.contract
        if base is None:
            return Pairs(strict_upper_triangle(K), np.diagonal(K).copy(), None)

        def contract(off: Array, diag: Array) -> Array:
            weight = assemble(off, diag, n)
            stacked = np.block([[weight, -weight], [-weight, weight]])
            return base(strict_upper_triangle(stacked), np.tile(diag, 2))

        return Pairs(strict_upper_triangle(K), np.diagonal(K).copy(), contract)


# --- k(X, Z), or k(x_i, z_i) row by row, and its gradient in theta -------------------------------


class _AcrossView(View[Across]):
    def __init__(self, aligned: bool) -> None:
        self._aligned = aligned

    def leaf(self, kernel: Kernel, *rows: Array) -> Across:
        X, Z = near_zero(kernel, *rows)
        value, contract = leaf_of(kernel).across(kernel, X, Z, self._aligned)
        return Across(value, contract if kernel.n_dims else None)

    def sum(self, one: Across, two: Across) -> Across:
        return Across(one.value + two.value, _join_contractions(one.contract, two.contract))

    def product(self, one: Across, two: Across) -> Across:
        contract = _join_contractions(
            _scale_contraction(one.contract, two.value), _scale_contraction(two.contract, one.value)
        )
        return Across(one.value * two.value, contract)

    def power(self, base: Across, exponent: float) -> Across:
        slope = power_slope(base.value, exponent)
        return Across(base.value**exponent, _scale_contraction(base.contract, slope))

    def on_columns(self, inner: Across, columns: tuple[int, ...], *rows: Array) -> Across:
        return inner

    def of_duels(self, inner: Across, kernel: Kernel, *rows: Array) -> Across:
        X, Z = rows
        value, contract = OTHER.across(kernel, X, Z, self._aligned)
        return Across(value, contract if kernel.n_dims else None)


# --- k(X, Z) and its gradient in X --------------------------------------------------------------


class _CrossView(View[Cross]):
    def leaf(self, kernel: Kernel, *rows: Array) -> Cross:
        return leaf_of(kernel).cross(kernel, *near_zero(kernel, *rows))

    def sum(self, one: Cross, two: Cross) -> Cross:
        return Cross(one.value + two.value, one.slopes + two.slopes)

    def product(self, one: Cross, two: Cross) -> Cross:
        slopes = [(factor * two.value, slope) for factor, slope in one.slopes]
        slopes += [(factor * one.value, slope) for factor, slope in two.slopes]
        return Cross(one.value * two.value, slopes)

    def power(self, base: Cross, exponent: float) -> Cross:
        outer = power_slope(base.value, exponent)
        slopes: list[tuple[Number, Slope]] = [
            (factor * outer, each) for factor, each in base.slopes
        ]
        return Cross(base.value**exponent, slopes)

    def on_columns(self, inner: Cross, columns: tuple[int, ...], *rows: Array) -> Cross:
        width = rows[0].shape[1]

        def outer(slope: Slope) -> Slope:
            return Slope(
                lambda factor: _spread_columns(slope.gradient(factor), columns, width),
                lambda weight: _spread_columns(slope.contract(weight), columns, width),
            )

        return Cross(inner.value, [(factor, outer(slope)) for factor, slope in inner.slopes])

    def padded(self, inner: Cross, kernel: Padded, *rows: Array) -> Cross:
        width = rows[0].shape[1]

        def outer(slope: Slope) -> Slope:
            return Slope(
                lambda factor: slope.gradient(factor)[..., :width],
                lambda weight: slope.contract(weight)[..., :width],
            )

        return Cross(inner.value, [(factor, outer(slope)) for factor, slope in inner.slopes])

    def of_duels(self, inner: Cross, kernel: Kernel, *rows: Array) -> Cross:
        n, m = len(rows[0]), len(rows[1])
        signs = np.kron([[1.0, -1.0], [-1.0, 1.0]], np.ones((n, m)))

        def outer(own: Number, slope: Slope) -> Slope:
            def gradient(factor: Number) -> Array:
                factor = np.tile(np.broadcast_to(factor, (n, m)), (2, 2))
                stacked = slope.gradient(factor * signs * own)
                halves = stacked[:, :m] + stacked[:, m:]
                return np.concatenate([halves[:n], halves[n:]], axis=2)

            def contract(weight: Array) -> Array:
                stacked = slope.contract(np.tile(weight, (2, 2)) * signs * own)
                return np.hstack([stacked[:n], stacked[n:]])

            return Slope(gradient, contract)

        value = margin_covariance(np.broadcast_to(inner.value, (2 * n, 2 * m)))
        return Cross(value, [(1.0, outer(own, slope)) for own, slope in inner.slopes])


# --- k(x, x) and its gradient -------------------------------------------------------------------


class _DiagonalView(View[Diagonal]):
    def leaf(self, kernel: Kernel, *rows: Array) -> Diagonal:
        return leaf_of(kernel).diagonal(kernel, *rows)

    def sum(self, one: Diagonal, two: Diagonal) -> Diagonal:
        return Diagonal(one.value + two.value, _add_gradients(one.gradient, two.gradient))

    def product(self, one: Diagonal, two: Diagonal) -> Diagonal:
        gradient = _add_gradients(
            _scale_gradient(one.gradient, two.value), _scale_gradient(two.gradient, one.value)
        )
        return Diagonal(one.value * two.value, gradient)

    def power(self, base: Diagonal, exponent: float) -> Diagonal:
        slope = power_slope(base.value, exponent)
        return Diagonal(base.value**exponent, _scale_gradient(base.gradient, slope))

    def on_columns(self, inner: Diagonal, columns: tuple[int, ...], *rows: Array) -> Diagonal:
        if inner.gradient is None:
            return inner
        return Diagonal(inner.value, _spread_columns(inner.gradient, columns, rows[0].shape[1]))

    def padded(self, inner: Diagonal, kernel: Padded, *rows: Array) -> Diagonal:
        if inner.gradient is None:
            return inner
        return Diagonal(inner.value, inner.gradient[:, : rows[0].shape[1]])

    def of_duels(self, inner: Diagonal, kernel: Kernel, *rows: Array) -> Diagonal:
        # ∂/∂a of k(a, a) + k(b, b) − 2 k(a, b), and likewise for b
        first, second = np.split(kernel.inner_rows(rows[0]), 2)

        def across(A: Array, B: Array) -> Array:
            gradient = np.zeros(A.shape)
            for start in range(0, len(A), PAIRED_ROWS):
                at = slice(start, start + PAIRED_ROWS)
                for factor, slope in fold(kernel.kernel, CROSS, A[at], B[at]).slopes:
                    gradient[at] += slope.contract(np.eye(len(A[at])) * factor)
            return gradient

        gradient = -2.0 * np.hstack([across(first, second), across(second, first)])
        if inner.gradient is not None:
            gradient += np.hstack(np.split(inner.gradient, 2))
        return Diagonal(kernel.diag(rows[0]), gradient)


def _add_gradients(one: Array | None, two: Array | None) -> Array | None:
    """Return the sum of two gradients, of which one may be None."""
    if one is None or two is None:
        return two if one is None else one
    return one + two


def _scale_gradient(gradient: Array | None, factor: Array) -> Array | None:
    """Return a gradient times a factor for each row, None for None."""
    return None if gradient is None else gradient * factor[:, None]


# --- the spectral density; rows tell the width alone --------------------------------------------


class _SpectrumView(View[Spectrum | None]):
    def leaf(self, kernel: Kernel, *rows: Array) -> Spectrum | None:
        return leaf_of(kernel).spectrum(kernel, rows[0].shape[1])

    def sum(self, one: Spectrum | None, two: Spectrum | None) -> Spectrum | None:
        if one is None or two is None:
            return None
        total = one.variance + two.variance
        share = one.variance / total if total > 0.0 else 0.5

        def draw(n: int, rng: np.random.Generator) -> Array:
            drawn = one.draw(n, rng), two.draw(n, rng)
            expected = n * share
            n_one = int(expected) + (rng.random() < expected % 1.0)
            from_one = rng.permutation(n) < n_one  # which terms: independent of any other sum's
            return np.where(from_one[:, None], *drawn)

        return Spectrum(draw, total)

    def product(self, one: Spectrum | None, two: Spectrum | None) -> Spectrum | None:
        if one is None or two is None:
            return None
        # a product of kernels convolves the spectral densities
        return Spectrum(
            lambda n, rng: one.draw(n, rng) + two.draw(n, rng), one.variance * two.variance
        )

    def power(self, base: Spectrum | None, exponent: float) -> Spectrum | None:
        whole = int(exponent)
        if base is None or whole != exponent or whole < 1:
            return None
        return Spectrum(
            lambda n, rng: np.sum([base.draw(n, rng) for _ in range(whole)], axis=0),
            base.variance**whole,
        )

    def on_columns(
        self, inner: Spectrum | None, columns: tuple[int, ...], *rows: Array
    ) -> Spectrum | None:
        if inner is None:
            return None
        width, draw = rows[0].shape[1], inner.draw
        return Spectrum(
            lambda n, rng: _spread_columns(draw(n, rng), columns, width), inner.variance
        )

    def of_duels(self, inner: Spectrum | None, kernel: Kernel, *rows: Array) -> None:
        return None

    def padded(self, inner: Spectrum | None, kernel: Padded, *rows: Array) -> None:
        return None


# --- the leaves themselves, in the order of theta; asked without rows ---------------------------


class _SeenView(View[list[Seen]]):
    def leaf(self, kernel: Kernel, *rows: Array) -> list[Seen]:
        return [Seen(kernel, None)]

    def sum(self, one: list[Seen], two: list[Seen]) -> list[Seen]:
        return one + two

    def product(self, one: list[Seen], two: list[Seen]) -> list[Seen]:
        return one + two

    def power(self, base: list[Seen], exponent: float) -> list[Seen]:
        return base

    def on_columns(self, inner: list[Seen], columns: tuple[int, ...], *rows: Array) -> list[Seen]:
        return [
            Seen(kernel, columns if own is None else tuple(columns[k] for k in own))
            for kernel, own in inner
        ]

    def of_duels(self, inner: list[Seen], kernel: Kernel, *rows: Array) -> list[Seen]:
        return inner

    def padded(self, inner: list[Seen], kernel: Padded, *rows: Array) -> list[Seen]:
        return [
            Seen(leaf, seen and tuple(column for column in seen if column < kernel.n_columns))
            for leaf, seen in inner
        ]

    def intransitive(self, kernel: Intransitive, *rows: Array) -> list[Seen]:
        return fold(kernel.scaled(), self)

    def of_teams(self, kernel: Teams, *rows: Array) -> list[Seen]:
        leaves = []
        for leaf, own in fold(kernel.kernel, self):
            if own is None:
                leaves.append(Seen(leaf, None))
                continue
            columns = [column for each in kernel.positions() for column in each]
            columns += [] if kernel.weights is None else list(kernel.weights)
            views = kernel.views(max(max(columns), max(own) + kernel.n_beside) + 1)
            leaves.append(Seen(leaf, tuple(dict.fromkeys(view[k] for view in views for k in own))))
        return leaves


PAIRS, CROSS, DIAGONAL = _PairsView(), _CrossView(), _DiagonalView()
ACROSS, PAIRED = _AcrossView(False), _AcrossView(True)
SPECTRUM, SEEN = _SpectrumView(), _SeenView()


def features_part(
    kernel: Kernel, n_features: int, id_column: int | None = None, time: int | None = None
) -> Kernel | None:
    """Return the terms of a kernel by which items share something with others.

    Item effects are `ItemEffect`, scikit-learn's `WhiteKernel`, and `Identity` where it sees all
    columns or the one that says who an item is. An `Identity` on other columns is the effect of a
    category, which is a feature. A product with an item effect is one too.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    n_features : int
    id_column : int, optional
    time : int, optional
        Column of the times at which items are seen, which is no part of who they are.

    Returns
    -------
    Kernel or None
        None if all of it is item effects.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> features_part(RBF(2.0) + 0.1 * ItemEffect(), 3)
    RBF(length_scale=2)
    """
    columns = np.arange(n_features, dtype=np.float64)[None]
    own = set(range(n_features)) - {time}
    return fold(kernel, _FeaturesPart(own, id_column), columns)


class _FeaturesPart(View[Kernel | None]):
    """Return the terms that are no item effects, asked at one row, the numbers of the columns."""

    def __init__(self, own: set[int], id_column: int | None) -> None:
        self._own, self._id = own, id_column

    def leaf(self, kernel: Kernel, *rows: Array) -> Kernel | None:
        if isinstance(kernel, ItemEffect | WhiteKernel):
            return None
        if isinstance(kernel, Identity):
            columns = set(rows[0][0].tolist())
            if self._own <= columns or self._id in columns:
                return None
        return kernel

    def sum(self, one: Kernel | None, two: Kernel | None) -> Kernel | None:
        if one is None or two is None:
            return two if one is None else one
        return one + two

    def product(self, one: Kernel | None, two: Kernel | None) -> Kernel | None:
        return None if one is None or two is None else one * two

    def power(self, base: Kernel | None, exponent: float) -> Kernel | None:
        return None if base is None else base**exponent

    def on_columns(
        self, inner: Kernel | None, columns: tuple[int, ...], *rows: Array
    ) -> Kernel | None:
        return None if inner is None else OnColumns(inner, columns)

    def of_duels(self, inner: Kernel | None, kernel: Kernel, *rows: Array) -> Kernel | None:
        return kernel

    def padded(self, inner: Kernel | None, kernel: Padded, *rows: Array) -> Kernel | None:
        return None if inner is None else Padded(inner, kernel.n_columns, kernel.fill)

    def intransitive(self, kernel: Intransitive, *rows: Array) -> None:
        return None


class _MovedOriginView(View[tuple[Kernel, Kernel]]):
    """Return a kernel of the same margins with centred linear terms, and the kernel as it is.

    Both, as a product has the same margins only where its other factor is constant.
    """

    def leaf(self, kernel: Kernel, *rows: Array) -> tuple[Kernel, Kernel]:
        if type(kernel) not in (Linear, DotProduct):
            return kernel, kernel
        centre = np.zeros(1) if type(kernel) is DotProduct else np.asarray(kernel.centre)
        origin = far_origin(rows[0] - centre)
        if origin is None:
            return kernel, kernel
        moved = centre + origin
        if type(kernel) is DotProduct:
            return Linear(centre=moved), kernel
        return clone(kernel).set_params(centre=moved), kernel

    def sum(self, one, two):
        return one[0] + two[0], one[1] + two[1]

    def product(self, one, two):
        whole = one[1] * two[1]
        for factor in (one[1], two[1]):
            if isinstance(factor, ConstantKernel):
                return one[0] * two[0], whole
        return whole, whole

    def power(self, base, exponent):
        return base[1] ** exponent, base[1] ** exponent

    def on_columns(self, inner, columns, *rows):
        return OnColumns(inner[0], columns), OnColumns(inner[1], columns)

    def of_duels(self, inner, kernel, *rows):
        return kernel, kernel

    def padded(self, inner, kernel, *rows):
        centred, plain = (Padded(each, kernel.n_columns, kernel.fill) for each in inner)
        return centred, plain


def with_centred_linear_terms(kernel: Kernel, items: Array) -> Kernel:
    """Return a kernel of the same margins whose linear terms are centred among far items.

    A linear utility's margins do not depend on its centre, but its covariances grow with the
    square of the distance to it, until rounding is all that is left of their differences. Of
    `Linear` the centre is moved; a `DotProduct` becomes a `Linear`, as its constant cancels in
    margins too. Factors other than constants, and powers, stay: they do depend on the centre.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    items : ndarray of shape (n_items, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> kernel = with_centred_linear_terms(DotProduct(), np.array([[2024.0], [2025.0], [2026.0]]))
    >>> kernel, kernel.centre
    (Linear(length_scale=1), array([2024.]))
    """
    centred, plain = fold(kernel, _MovedOriginView(), items)
    return kernel if centred == plain else centred
