"""Kernels of finitely many features: which they are, and the variance that each feature has.

`Identity`, `DotProduct`, `Linear`, constants, and sums, products, whole powers and `OnColumns` of
these are polynomials in the columns of an item, within groups of items that share the values of
some columns: k(x, x') = Σ_c v_c [x and x' are of one group of c] m_c(x) m_c(x'), m_c a product of
columns. The features do not depend on the hyperparameters, their variances v_c alone do.
"""

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np
from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import Array, Kernel
from skpref.kernels._hyperparameters import seen_columns
from skpref.kernels._leaves import Identity, Linear, lengths_of
from skpref.kernels._wrappers import Intransitive, OnColumns, Padded, View, fold

# Columns of a monomial, ascending, and what is subtracted of each; () is 1; a column that occurs
# twice is squared.
Monomial: TypeAlias = tuple[tuple[int, float], ...]
# Columns by whose values items are grouped; (): all items are one group.
Group: TypeAlias = tuple[int, ...]

# So many monomials at most, and of so high a power: more make no prior that is worth having.
_MOST, _STEEPEST = 20_000, 16


class Term(NamedTuple):
    """Features of items: in every group of items, the value of each monomial.

    Attributes
    ----------
    group : tuple of int
        Columns by whose values items are grouped; (): all items are one group.
    monomials : tuple of tuple of (int, float)
        Of each the columns whose product it is, and the centre of each column; (): it is 1.
    """

    group: Group
    monomials: tuple[Monomial, ...]

    @property
    def columns(self) -> set[int]:
        """Return the columns that the term sees."""
        return {*self.group, *(column for each in self.monomials for column, _ in each)}

    def values(self, items: Array) -> Array:
        """The monomials at items (n, d), shape (n, n_monomials)."""
        values = np.ones((len(items), len(self.monomials)))
        for at, columns in enumerate(self.monomials):
            for column, centre in columns:
                values[:, at] *= items[:, column] - centre
        return values


class FiniteFeatures(NamedTuple):
    """A kernel by its features.

    Attributes
    ----------
    terms : tuple of Term
        They depend on the kernel's form alone, not on its hyperparameters.
    variance : ndarray of shape (n_monomials,)
        v of the monomials of all terms, in their order; the same in all groups.
    slope : ndarray of shape (n_monomials, n_theta)
        Derivatives of these in the kernel's theta.
    """

    terms: tuple[Term, ...]
    variance: Array
    slope: Array

    def apart_from(self, columns: Collection[int]) -> "FiniteFeatures | None":
        """Those of other columns alone; None if there are none that differ among items."""
        terms, places, at = [], [], 0
        for term in self.terms:
            free = not set(term.group) & set(columns)
            monomials = [
                free and not {column for column, _ in each} & set(columns)
                for each in term.monomials
            ]
            some = tuple(each for each, keep in zip(term.monomials, monomials, strict=True) if keep)
            if some:
                terms.append(Term(term.group, some))
            places += [at + k for k, keep in enumerate(monomials) if keep]
            at += len(monomials)
        if all(term == Term((), ((),)) for term in terms):
            return None
        return FiniteFeatures(tuple(terms), self.variance[places], self.slope[places])


def finite_features(kernel: Kernel, n_columns: int) -> FiniteFeatures | None:
    """The features of a kernel on items of so many columns; None if they are not known to be few.

    A kernel is known by its type: `Identity`, `Linear`, scikit-learn's `DotProduct` and
    `ConstantKernel`, and sums, products, powers with whole exponents from 1 to 16, and `OnColumns`
    of these. Subclasses are not, nor is any that only comes near one of them, as `ItemEffect` does.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    n_columns : int

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> from skpref.kernels import Identity, OnColumns, finite_features
    >>> kernel = OnColumns(Identity(), [0]) + 0.5 * OnColumns(DotProduct(3.0), [1, 2])
    >>> for term in finite_features(kernel, 3).terms:
    ...     print(term)
    Term(group=(), monomials=((), ((1, 0.0),), ((2, 0.0),)))
    Term(group=(0,), monomials=((),))
    >>> finite_features(kernel, 3).variance
    array([4.5, 0.5, 0.5, 1. ])
    >>> finite_features(kernel + RBF(), 3) is None
    True
    """
    form = fold(kernel, FEATURES, np.empty((0, n_columns)))
    return None if form is None else features_of(form)


def features_of(form: "Form") -> FiniteFeatures:
    """The features of a form, by groups."""
    order = sorted(range(len(form.keys)), key=lambda at: form.keys[at])
    keys = [form.keys[at] for at in order]
    terms = tuple(
        Term(group, tuple(monomial for _, monomial in each))
        for group, each in groupby(keys, key=lambda key: key[0])
    )
    return FiniteFeatures(terms, form.value[order], form.slope[order])


def finite_parts(kernel: Kernel, n_columns: int) -> tuple[Kernel | None, Kernel | None]:
    """The terms of a kernel that have few features, and all others; None where there are none.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    n_columns : int

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref.kernels import Identity, OnColumns, finite_parts
    >>> for part in finite_parts(0.25 * (OnColumns(RBF(), [1]) + OnColumns(Identity(), [0])), 2):
    ...     print(part)
    0.5**2 * OnColumns(Identity(), columns=[0])
    0.5**2 * OnColumns(RBF(length_scale=1), columns=[1])
    """
    return fold(kernel, _PARTS, np.empty((0, n_columns)))


def parts_by_column(kernel: Kernel, column: int, n_columns: int) -> tuple[Kernel, Kernel]:
    """Divide a sum of kernels into the terms that do not see a column, and those that do.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    column : int
    n_columns : int

    Raises
    ------
    ValueError
        If there are no terms of one of the two.

    Examples
    --------
    >>> from skpref.kernels import Identity, OnColumns, parts_by_column
    >>> kernel = OnColumns(Identity(), [0]) + 0.25 * OnColumns(Identity(), [0, 1])
    >>> for part in parts_by_column(kernel, 1, 2):
    ...     print(part)
    OnColumns(Identity(), columns=[0])
    0.5**2 * OnColumns(Identity(), columns=[0, 1])
    """
    if type(kernel) is Padded:
        first, second = parts_by_column(kernel.kernel, column, kernel.width)
        return kernel.around(first), kernel.around(second)
    parts: list[Kernel | None] = [None, None]
    for term in terms_of_sum(kernel):
        sees = column in set().union(*seen_columns(term, n_columns))
        parts[sees] = _add_kernels(parts[sees], term)
    without, beside = parts
    if without is None or beside is None:
        some = "all" if without is None else "none"
        raise ValueError(
            f"got the kernel {kernel}, of which {some} of the terms see column {column}; a sum of "
            "terms that do and of terms that do not is allowed. Add a term such as "
            "OnColumns(Identity(), [0])."
        )
    return without, beside


def intransitive_parts(kernel: Kernel | None) -> tuple[Kernel | None, Kernel | None]:
    """Divide a sum of kernels into the terms of the utility, and those of `Intransitive`.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel or None

    Returns
    -------
    utility, effects : Kernel or None
        None where there are no such terms.

    Raises
    ------
    ValueError
        If an `Intransitive` is no term of the sum, but a part of one.

    Examples
    --------
    >>> from skpref.kernels import Identity, Intransitive, intransitive_parts
    >>> intransitive_parts(Identity() + Intransitive(Identity()))
    (Identity(), Intransitive(Identity(), variance=1))
    """
    parts: list[Kernel | None] = [None, None]
    for term in [] if kernel is None else terms_of_sum(kernel):
        is_effect = type(term) is Intransitive
        inner = term.kernel if is_effect else term
        if has_kernel(inner, Intransitive):
            raise ValueError(
                f"got the kernel {kernel}, in which Intransitive is a factor or inside another "
                "kernel; a term of a sum is allowed. Write utility + Intransitive(kernel, "
                "variance), with columns and factors inside, as in "
                "Identity() + Intransitive(OnColumns(Identity(), [0]), 0.5)."
            )
        parts[is_effect] = _add_kernels(parts[is_effect], term)
    # What is around a sum, as `Padded` is around that of judges, stays around it.
    return (kernel, None) if parts[1] is None else (parts[0], parts[1])


def theta_places(kernel: Kernel) -> list[tuple[Kernel, slice]]:
    """List the terms of a sum of kernels, and where the hyperparameters of each are in theta.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref.kernels import Identity, theta_places
    >>> [place for _, place in theta_places(Identity() + RBF() + RBF([1.0, 2.0]))]
    [slice(0, 0, None), slice(0, 1, None), slice(1, 3, None)]
    """
    terms = terms_of_sum(kernel)
    ends = np.cumsum([0, *(term.n_dims for term in terms)]).tolist()
    return [(term, slice(*ends[k : k + 2])) for k, term in enumerate(terms)]


def has_kernel(kernel: Kernel, kind: type[Kernel]) -> bool:
    """Return whether a kernel, or one inside it, is of a class.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref.kernels import Identity, has_kernel
    >>> has_kernel(2.0 * RBF() + Identity(), RBF)
    True
    """
    return any(isinstance(part, kind) for part in [kernel, *kernel.get_params().values()])


def terms_of_sum(kernel: Kernel) -> list[Kernel]:
    """List the terms of a sum of kernels; of any other kernel itself.

    Examples
    --------
    >>> from skpref.kernels import Identity, OnColumns, terms_of_sum
    >>> [str(term) for term in terms_of_sum(OnColumns(Identity(), [0]) + Identity())]
    ['OnColumns(Identity(), columns=[0])', 'Identity()']
    """
    if type(kernel) is Padded:
        return [kernel.around(term) for term in terms_of_sum(kernel.kernel)]
    if isinstance(kernel, gp.Sum):
        return [*terms_of_sum(kernel.k1), *terms_of_sum(kernel.k2)]
    return [kernel]


class _PartsView(View[tuple[Kernel | None, Kernel | None]]):
    def leaf(self, kernel: Kernel, *rows: Array) -> tuple[Kernel | None, Kernel | None]:
        return (kernel, None) if fold(kernel, FEATURES, *rows) is not None else (None, kernel)

    def sum(self, one, two):
        return _add_kernels(one[0], two[0]), _add_kernels(one[1], two[1])

    def product(self, one, two):
        finite, rest = None, None
        for at, left in enumerate(one):
            for of, right in enumerate(two):
                if left is not None and right is not None:
                    if at == of == 0:
                        finite = left * right
                    else:
                        rest = _add_kernels(rest, left * right)
        return finite, rest

    def power(self, base, exponent):
        whole = _add_kernels(*base)
        few = base[1] is None and _is_whole_exponent(exponent)
        return (whole**exponent, None) if few else (None, whole**exponent)

    def on_columns(self, inner, columns, *rows):
        return tuple(None if each is None else OnColumns(each, columns) for each in inner)

    def of_duels(self, inner, kernel, *rows):
        return None, kernel

    def padded(self, inner, kernel, *rows):
        return tuple(None if each is None else kernel.around(each) for each in inner)


def _is_whole_exponent(exponent: float) -> bool:
    """Return whether a power of a kernel has a finite number of features."""
    return exponent == int(exponent) and 1 <= exponent <= _STEEPEST


def _add_kernels(one: Kernel | None, two: Kernel | None) -> Kernel | None:
    """Return the sum of two kernels, of which one may be None."""
    if one is None or two is None:
        return two if one is None else one
    return one + two


class Form(NamedTuple):
    """A kernel as Σ value × [one group] × monomial × monomial; slopes in its theta."""

    keys: list[tuple[Group, Monomial]]
    value: Array
    slope: Array

    @classmethod
    def merge_keys(
        cls, keys: Sequence[tuple[Group, Monomial]], value: Array, slope: Array
    ) -> "Form":
        """Make a form in which each key occurs once, with the sum of its values and slopes."""
        place: dict[tuple[Group, Monomial], int] = {}
        at = np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.intp)
        total, slopes = np.zeros(len(place)), np.zeros((len(place), slope.shape[1]))
        np.add.at(total, at, value)
        np.add.at(slopes, at, slope)
        return cls(list(place), total, slopes)

    def multiply(self, other: "Form", same_theta: bool) -> "Form | None":
        """Return the product with another form; None if it has too many features.

        Its theta is that of both, or, with ``same_theta``, the one on which both depend.
        """
        if len(self.keys) * len(other.keys) > _MOST:
            return None
        keys = [
            (tuple(sorted({*g, *h})), tuple(sorted((*m, *n))))
            for g, m in self.keys
            for h, n in other.keys
        ]
        value = np.outer(self.value, other.value).ravel()
        of_one = (self.slope[:, None, :] * other.value[:, None]).reshape(len(keys), -1)
        of_two = (self.value[:, None, None] * other.slope).reshape(len(keys), -1)
        slope = of_one + of_two if same_theta else np.hstack([of_one, of_two])
        return Form.merge_keys(keys, value, slope)


def _form_of_linear(kernel: Linear, n_columns: int) -> Form:
    """Return a linear kernel as a quadratic form in the columns."""
    centre = np.broadcast_to(np.asarray(kernel.centre, dtype=np.float64), (n_columns,)).tolist()
    value, n_theta = lengths_of(kernel, n_columns) ** -2.0, kernel.n_dims
    slope = np.zeros((n_columns, n_theta))
    if n_theta:
        slope[np.arange(n_columns), np.arange(n_columns) % n_theta] = -2.0 * value
    return Form([((), (each,)) for each in enumerate(centre)], value, slope)


class _FeaturesView(View[Form | None]):
    def leaf(self, kernel: Kernel, *rows: Array) -> Form | None:
        kind, every = type(kernel), range(rows[0].shape[1])
        if kind is Identity:
            return Form([(tuple(every), ())], np.ones(1), np.zeros((1, 0)))
        if kind is gp.ConstantKernel and kernel.constant_value >= 0.0:
            value = np.array([float(kernel.constant_value)])
            return Form([((), ())], value, value[:, None].repeat(kernel.n_dims, axis=1))
        if kind is gp.DotProduct and len(every) < _MOST:
            keys: list[tuple[Group, Monomial]] = [((), ()), *(((), ((at, 0.0),)) for at in every)]
            value, slope = np.ones(len(keys)), np.zeros((len(keys), kernel.n_dims))
            value[0] = float(kernel.sigma_0) * float(kernel.sigma_0)  # ∞ where ** raises
            slope[0] = 2.0 * value[0]
            return Form(keys, value, slope)
        if kind is Linear and len(every) < _MOST:
            return _form_of_linear(kernel, len(every))
        return None

    def sum(self, one: Form | None, two: Form | None) -> Form | None:
        if one is None or two is None or len(one.keys) + len(two.keys) > _MOST:
            return None
        one_width, two_width = one.slope.shape[1], two.slope.shape[1]
        slope = np.zeros((len(one.keys) + len(two.keys), one_width + two_width))
        slope[: len(one.keys), :one_width] = one.slope
        slope[len(one.keys) :, one_width:] = two.slope
        value = np.concatenate([one.value, two.value])
        return Form.merge_keys([*one.keys, *two.keys], value, slope)

    def product(self, one: Form | None, two: Form | None) -> Form | None:
        return None if one is None or two is None else one.multiply(two, same_theta=False)

    def power(self, base: Form | None, exponent: float) -> Form | None:
        if base is None or not _is_whole_exponent(exponent):
            return None
        product: Form | None = base
        for _ in range(int(exponent) - 1):
            product = None if product is None else product.multiply(base, same_theta=True)
        return product

    def on_columns(self, inner: Form | None, columns: tuple[int, ...], *rows: Array) -> Form | None:
        if inner is None:
            return None
        keys = [
            (
                tuple(sorted(columns[at] for at in group)),
                tuple(sorted((columns[at], centre) for at, centre in monomial)),
            )
            for group, monomial in inner.keys
        ]
        return inner._replace(keys=keys)

    def of_duels(self, inner: Form | None, kernel: Kernel, *rows: Array) -> None:
        return None

    def padded(self, inner: Form | None, kernel: Padded, *rows: Array) -> Form | None:
        width = rows[0].shape[1]
        if inner is None or width == kernel.width:
            return inner
        fill = dict(enumerate(kernel.fill, start=width))
        keys, factors = [], []
        for group, monomial in inner.keys:
            own = tuple(each for each in monomial if each[0] < width)
            keys.append((tuple(column for column in group if column < width), own))
            further = [fill[at] - centre for at, centre in monomial if at >= width]
            factors.append(float(np.prod(further)) ** 2)
        present = [k for k, factor in enumerate(factors) if factor > 0.0]
        factor = np.array(factors)[present]
        value, slope = factor * inner.value[present], factor[:, None] * inner.slope[present]
        return Form.merge_keys([keys[k] for k in present], value, slope)


FEATURES, _PARTS = _FeaturesView(), _PartsView()
