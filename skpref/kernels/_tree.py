"""The one walk over trees of kernels: sums, products, powers and wrappers of elementary kernels.

A view is one question about a kernel, with the rules by which the answer for a composite follows
from those for its parts. `fold` walks a tree with a view. The views are in
`skpref.kernels._views`, the answers of elementary kernels in `skpref.kernels._leaves`.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import Array, Kernel
from skpref.kernels._wrappers import OnColumns, PreferenceKernel

T = TypeVar("T")


class View(ABC, Generic[T]):
    """One question about a kernel. ``rows`` are the arrays of items that it is asked at."""

    @abstractmethod
    def leaf(self, kernel: Kernel, *rows: Array) -> T:
        """The answer of an elementary kernel."""

    @abstractmethod
    def sum(self, one: T, two: T) -> T:
        """Of k₁ + k₂."""

    @abstractmethod
    def product(self, one: T, two: T) -> T:
        """Of k₁ k₂."""

    @abstractmethod
    def power(self, base: T, exponent: float) -> T:
        """Of k^exponent."""

    @abstractmethod
    def on_columns(self, inner: T, columns: tuple[int, ...], *rows: Array) -> T:
        """Of a kernel that sees these columns alone; ``rows`` have all."""

    @abstractmethod
    def of_duels(self, inner: T, kernel: Kernel, *rows: Array) -> T:
        """Of a `PreferenceKernel`; ``inner`` was asked at first items, then second ones."""


def fold(kernel: Kernel, view: View[T], *rows: Array) -> T:
    """The answer of a tree of kernels to a view's question, from its leaves up."""
    kind = type(kernel)
    if kind is gp.Sum:
        return view.sum(fold(kernel.k1, view, *rows), fold(kernel.k2, view, *rows))
    if kind is gp.Product:
        return view.product(fold(kernel.k1, view, *rows), fold(kernel.k2, view, *rows))
    if kind is gp.Exponentiation:
        return view.power(fold(kernel.kernel, view, *rows), kernel.exponent)
    if kind is OnColumns:
        inner = fold(kernel.kernel, view, *map(kernel.inner_rows, rows))
        return view.on_columns(inner, kernel.positions(), *rows)
    if kind is PreferenceKernel:
        inner = fold(kernel.kernel, view, *map(kernel.inner_rows, rows))
        return view.of_duels(inner, kernel, *rows)
    return view.leaf(kernel, *rows)
