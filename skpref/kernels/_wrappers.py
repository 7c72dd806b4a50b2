"""Kernels made of one other kernel, and the one walk over trees of kernels."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import Array, Kernel, near_zero, paired_kernel_values


def check_rows(X: ArrayLike, name: str = "X") -> Array:
    """Return rows as a 2-D float array."""
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"{name} has shape {rows.shape}; give a 2-D array (n, n_features).")
    return rows


def margin_covariance(K: Array) -> Array:
    """Compute the margins' covariance from that of items [first; second] in rows and columns."""
    n, m = K.shape[0] // 2, K.shape[1] // 2
    # Summed in this order, swapping the items of a duel changes the sign and nothing else.
    return (K[:n, :m] + K[n:, m:]) - (K[:n, m:] + K[n:, :m])  # Houlsby et al. (2012), suppl. (1)


def _check_symmetric(Y: ArrayLike | None) -> None:
    """Raise ValueError where a gradient is asked for with a second array of rows."""
    if Y is not None:
        raise ValueError("The gradient is that of K(X, X): leave Y out with eval_gradient.")


class Wrapper(gp.Kernel):
    """A kernel whose hyperparameters are those of another one, prefixed ``kernel__``."""

    kernel: Kernel

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters of this kernel and, if ``deep``, of the one inside."""
        params = super().get_params(deep=False)
        if deep:
            params |= {f"kernel__{name}": v for name, v in self.kernel.get_params().items()}
        return params

    @property
    def hyperparameters(self) -> list[gp.Hyperparameter]:
        """List hyperparameters of the kernel inside, prefixed ``kernel__``."""
        return [
            gp.Hyperparameter(f"kernel__{h.name}", h.value_type, h.bounds, h.n_elements)
            for h in self.kernel.hyperparameters
        ]

    @property
    def theta(self) -> Array:
        """Return logarithms of the free hyperparameters, (n_theta,)."""
        return self.kernel.theta

    @theta.setter
    def theta(self, theta: Array) -> None:
        self.kernel.theta = theta

    @property
    def bounds(self) -> Array:
        """Return logarithms of the bounds on theta, (n_theta, 2)."""
        return self.kernel.bounds


class PreferenceKernel(Wrapper):
    """Covariance of margins f(a) − f(b) where f has a given kernel on items.

    k((a, b), (c, d)) = k(a, c) + k(b, d) − k(a, d) − k(b, c), so that swapping the items of a
    duel changes the sign. It lets scikit-learn's own Gaussian processes learn from duels, in rows
    ``duels.reshape(len(duels), -1)``; an odd number of columns is a `ValueError`.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Kernel on items. Its hyperparameters are those of this kernel, prefixed ``kernel__``. A
        `WhiteKernel` in it is noise on each item at each presentation.

    References
    ----------
    Houlsby, Huszár, Ghahramani and Hernández-Lobato (2012), *Collaborative Gaussian Processes for
    Preference Learning*, supplement eq. (1).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel = PreferenceKernel(RBF(length_scale=1.0))
    >>> duels = np.array([[[0.0], [1.0]], [[1.0], [0.0]]])
    >>> kernel(duels.reshape(2, -1)).round(3)
    array([[ 0.787, -0.787],
           [-0.787,  0.787]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(self.kernel == other.kernel)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel})"

    def _sides(self, X: ArrayLike) -> list[Array]:
        """Return the first and the second items of duels in rows; ValueError for an odd width."""
        rows = check_rows(X, "duels")
        if rows.shape[1] % 2:
            raise ValueError(
                f"duels have {rows.shape[1]} columns, an odd number; a row holds the first item's "
                "features, then as many of the second: duels.reshape(len(duels), -1)."
            )
        return np.split(rows, 2, axis=1)

    def inner_rows(self, X: ArrayLike) -> Array:
        """Stack the first items of duels on the second ones, (2 n, d)."""
        return np.concatenate(self._sides(X))

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Compute the covariance of margins of duels X (n, 2 d) and Y (m, 2 d), and its gradient.

        Returns
        -------
        K : ndarray of shape (n, m)
        K_gradient : ndarray of shape (n, n, n_theta)
            Only with ``eval_gradient``, which needs ``Y=None``.
        """
        if not eval_gradient:
            others = None if Y is None else self.inner_rows(Y)
            return margin_covariance(self.kernel(self.inner_rows(X), others))
        _check_symmetric(Y)
        K, gradient = self.kernel(self.inner_rows(X), eval_gradient=True)
        return margin_covariance(K), margin_covariance(gradient)

    def diag(self, X: ArrayLike) -> Array:
        """Compute the variances of the margins, (n,)."""
        first, second = self._sides(X)
        own: Array = self.kernel.diag(first) + self.kernel.diag(second)
        return own - 2.0 * paired_kernel_values(self.kernel, first, second)

    def is_stationary(self) -> bool:
        """Return False: it depends on both items of a duel."""
        return False


class Intransitive(gp.Kernel):
    """What no order explains of the margins of duels: circles such as rock, paper, scissors.

    A term beside those of the utility, as in ``Identity() + Intransitive(Identity())``: each pair
    of items gets an effect h(a, b) = −h(b, a) of its own, of covariance

        variance · (k(a, c) k(b, d) − k(a, d) k(b, c)),

    where k is a kernel of items whose mean over the items of the answers is taken out. With that no
    difference of utilities of these items is in h: over all their pairs the two are orthogonal.
    Called on items it is zero: it adds nothing to a utility.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Kernel on items, by which pairs are alike. Its hyperparameters are those of this kernel,
        prefixed ``kernel__``.
    variance : float, default=1.0
        In units of the squared margin, where k is 1 for equal items and 0 for others; 0 is allowed
        where it is fixed.
    variance_bounds : (float, float) or "fixed", default=(1e-6, 1e3)
        A fit holds the variance at its lower bound, as good as zero, where the answers do not speak
        for circles: see `skpref.inspection.intransitivity`.

    Notes
    -----
    For duels alone: choices and rankings, judges, prompts, times and users are refused. What is
    said of pairs has it: ``predict_proba``, ``decision_function``, ``score`` and ``win_rates``.
    What is said of items is about the utility: ``predict``, leaderboards and optimisers.
    `skpref.active` chooses questions by utilities alone, and refuses a model with this term.

    References
    ----------
    Jiang, Lim, Yao and Ye, "Statistical ranking and combinatorial Hodge theory", Mathematical
    Programming 2011, for the orthogonal parts. Pahikkala, Waegeman, Tsivtsivadze, Salakoski and De
    Baets, "Learning intransitive reciprocal relations with kernel methods", European Journal of
    Operational Research 2010, for the kernel of pairs.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.kernels import Identity, Intransitive
    >>> duels = [["rock", "scissors"], ["scissors", "paper"], ["paper", "rock"]] * 20
    >>> kernel = Identity() + Intransitive(Identity())
    >>> model = PairwisePreferenceRegressor(kernel).fit(duels)  # the winner first
    >>> bool(model.predict_proba([["rock", "scissors"]])[0, 1] > 0.9)
    True
    >>> model.predict(["rock", "paper", "scissors"]).round(3) + 0.0
    array([0., 0., 0.])
    """

    def __init__(
        self,
        kernel: Kernel,
        variance: float = 1.0,
        variance_bounds: str | tuple[float, float] = (1e-6, 1e3),
    ) -> None:
        self.kernel = kernel
        self.variance = variance
        self.variance_bounds = variance_bounds

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters of this kernel and, if ``deep``, of the one inside."""
        params = super().get_params(deep=False)
        if deep:
            params |= {f"kernel__{name}": v for name, v in self.kernel.get_params().items()}
        return params

    def scaled(self) -> Kernel:
        """Return the kernel of the same hyperparameters that multiplies the inner one."""
        return gp.ConstantKernel(self.variance, self.variance_bounds) * self.kernel

    @property
    def hyperparameters(self) -> list[gp.Hyperparameter]:
        """List the variance and the hyperparameters of the kernel inside."""
        inner = [
            gp.Hyperparameter(f"kernel__{h.name}", h.value_type, h.bounds, h.n_elements)
            for h in self.kernel.hyperparameters
        ]
        return [gp.Hyperparameter("variance", "numeric", self.variance_bounds), *inner]

    @property
    def theta(self) -> Array:
        """Return logarithms of the free hyperparameters, (n_theta,)."""
        return self.scaled().theta

    @theta.setter
    def theta(self, theta: Array) -> None:
        n_own = len(theta) - self.kernel.n_dims
        if n_own:
            self.variance = float(np.exp(theta[0]))
        self.kernel.theta = theta[n_own:]

    @property
    def bounds(self) -> Array:
        """Return logarithms of the bounds on theta, (n_theta, 2)."""
        return self.scaled().bounds

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(self.scaled() == other.scaled())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel}, variance={self.variance:.3g})"

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Return zeros of shape (n, m): nothing of it is in the utility of items."""
        n = len(check_rows(X))
        if eval_gradient:
            _check_symmetric(Y)
            return np.zeros((n, n)), np.zeros((n, n, self.n_dims))
        return np.zeros((n, n if Y is None else len(check_rows(Y))))

    def diag(self, X: ArrayLike) -> Array:
        """Return zeros of shape (n,)."""
        return np.zeros(len(check_rows(X)))

    def is_stationary(self) -> bool:
        """Return True: it is zero everywhere."""
        return True


class RowWrapper(Wrapper):
    """A kernel inside on rows that `inner_rows` makes of those outside."""

    def inner_rows(self, X: ArrayLike) -> Array:
        """Return the rows that the kernel inside sees."""
        raise NotImplementedError

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Compute the kernel of rows X (n, d) and Y (m, d), and its gradient.

        Returns
        -------
        K : ndarray of shape (n, m)
        K_gradient : ndarray of shape (n, n, n_theta)
            Only with ``eval_gradient``, which needs ``Y=None``.
        """
        if eval_gradient:
            _check_symmetric(Y)
            return self.kernel(self.inner_rows(X), eval_gradient=True)
        return self.kernel(self.inner_rows(X), None if Y is None else self.inner_rows(Y))

    def diag(self, X: ArrayLike) -> Array:
        """Compute the variances k(x, x), (n,)."""
        return self.kernel.diag(self.inner_rows(X))

    def is_stationary(self) -> bool:
        """Say whether the kernel inside is stationary."""
        return self.kernel.is_stationary()


class OnColumns(RowWrapper):
    """A kernel that sees some columns of the items alone.

    Sums and products of such kernels treat columns by what they are: an id by `Identity`,
    measurements by an `RBF`, time by a periodic kernel.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Kernel on the chosen columns. Its hyperparameters are those of this kernel, prefixed
        ``kernel__``.
    columns : sequence of int
        Positions of the columns, counted from 0, in the order in which ``kernel`` gets them:
        lengthscale j of ``kernel`` belongs to column ``columns[j]``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref.kernels import Identity
    >>> kernel = 0.5 * OnColumns(Identity(), [0]) + OnColumns(RBF([1.0, 2.0]), [1, 2])
    >>> kernel(np.array([[7.0, 0.0, 0.0], [7.0, 1.0, 0.0]])).round(3)
    array([[1.5  , 1.107],
           [1.107, 1.5  ]])
    """

    def __init__(self, kernel: Kernel, columns: Sequence[int]) -> None:
        self.kernel = kernel
        self.columns = columns
        self.positions()

    def positions(self) -> tuple[int, ...]:
        """Return the columns as a tuple of integers.

        Raises
        ------
        ValueError
            If there is none, or one is no integer, negative or repeated.
        """
        listed = list(self.columns) if np.iterable(self.columns) else [self.columns]
        wrong = [c for c in listed if not isinstance(c, Integral) or isinstance(c, bool)]
        if wrong or not np.iterable(self.columns) or isinstance(self.columns, str):
            raise ValueError(
                "columns must be a sequence of integers, positions of columns such as [0, 2]; got "
                f"{self.columns!r}."
            )
        columns = tuple(int(c) for c in listed)
        if not columns:
            raise ValueError("columns is empty; give the kernel at least one column to see.")
        if min(columns) < 0:
            raise ValueError(f"columns count from 0; {min(columns)} is negative.")
        if len(set(columns)) < len(columns):
            repeated = next(c for c in columns if columns.count(c) > 1)
            raise ValueError(f"columns must differ; {repeated} came more than once.")
        return columns

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and self.positions() == other.positions()
            and bool(self.kernel == other.kernel)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel}, columns={list(self.positions())})"

    def inner_rows(self, X: ArrayLike) -> Array:
        """Return the chosen columns of X, (n, n_columns)."""
        rows, columns = check_rows(X), self.positions()
        if max(columns) >= rows.shape[1]:
            raise ValueError(
                f"{self} sees column {max(columns)}, but X has {rows.shape[1]} columns, 0 to "
                f"{rows.shape[1] - 1}. Count the columns of an item from 0."
            )
        return rows.take(columns, axis=1)


class Padded(RowWrapper):
    """A kernel on items with further columns, which items without these have at fixed values.

    Rows of answers may say more than rows of items do, such as who answered. A posterior that was
    learned from the first is asked about the second: these get what ``fill`` says.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Kernel on all columns. Its hyperparameters are those of this kernel, prefixed ``kernel__``.
    n_columns : int
        Columns of an item; the further ones come after these.
    fill : sequence of float
        Value of each further column for rows that lack it.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.kernels import Identity, Linear, OnColumns
    >>> kernel = Padded(OnColumns(Identity(), [0]) * OnColumns(Linear(), [1]), 1, fill=[1.0])
    >>> kernel(np.array([[7.0]]), np.array([[7.0, 1.0], [7.0, -0.5]]))
    array([[ 1. , -0.5]])
    """

    def __init__(self, kernel: Kernel, n_columns: int, fill: Sequence[float]) -> None:
        self.kernel = kernel
        self.n_columns = n_columns
        self.fill = fill

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        alike = self.n_columns == other.n_columns and list(self.fill) == list(other.fill)
        return alike and bool(self.kernel == other.kernel)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel}, {self.n_columns}, fill={list(self.fill)})"

    @property
    def width(self) -> int:
        """Count all columns."""
        return self.n_columns + len(self.fill)

    def around(self, kernel: Kernel) -> "Padded":
        """Return another kernel on all columns, padded in the same way."""
        return Padded(kernel, self.n_columns, self.fill)

    def inner_rows(self, X: ArrayLike) -> Array:
        """Return X with all columns, (n, n_columns + n_further).

        Raises
        ------
        ValueError
            If X has neither the columns of items nor all.
        """
        rows = check_rows(X)
        n_columns = rows.shape[1]
        if n_columns == self.width:
            return rows
        if not self.n_columns <= n_columns < self.width:
            raise ValueError(
                f"got rows of {n_columns} columns; {type(self).__name__} takes items of "
                f"{self.n_columns} columns, and up to {self.width - self.n_columns} more. Give "
                "rows of so many columns."
            )
        rest = np.asarray(self.fill[n_columns - self.n_columns :], dtype=np.float64)
        return np.hstack([rows, np.broadcast_to(rest, (len(rows), len(rest)))])


def all_columns(kernel: Kernel, X: Array) -> Array:
    """Return rows with all columns that a kernel knows, so that they can stand beside others."""
    return kernel.inner_rows(X) if isinstance(kernel, Padded) else X


class Teams(Wrapper):
    """Covariance of teams, whose utility is the sum of that of their members.

    A row is a team: some columns say who each member is, and maybe what is known of that member;
    others, as the time of a match, hold for all of them. The team's utility is
    Σ_m weight_m f(member m), where f has a given kernel.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Kernel on members. It gets the columns of a member, in the order in which they are named,
        then the columns that are nobody's in theirs. Its hyperparameters are those of this kernel,
        prefixed ``kernel__``.
    members : sequence of sequences of int
        The columns of each member, equally many. A member whose first column is negative is absent
        and counts for nothing.
    weights : sequence of int, optional
        A column for each member, by which its utility is multiplied, say the share of the time that
        it played. None: all count once.

    Raises
    ------
    ValueError
        If members have different numbers of columns or share one, or there are not as many weights.

    See Also
    --------
    skpref.duels.from_teams : Duels of teams from lists of names.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.kernels import Identity
    >>> doubles = Teams(Identity(), members=[[0], [1]])
    >>> doubles(np.array([[0.0, 1.0], [1.0, 2.0], [0.0, -1.0]]))
    array([[2., 1., 1.],
           [1., 2., 0.],
           [1., 0., 1.]])
    """

    def __init__(
        self,
        kernel: Kernel,
        members: Sequence[Sequence[int]],
        weights: Sequence[int] | None = None,
    ) -> None:
        self.kernel = kernel
        self.members = members
        self.weights = weights
        self._check()

    def _check(self) -> None:
        """Raise ValueError for members without columns, of unequal widths, or weights that do not
        fit."""
        members = self.positions()
        if not members:
            raise ValueError("members is empty; name the columns of at least one member.")
        widths = {len(each) for each in members}
        if len(widths) > 1:
            raise ValueError(
                f"members have {sorted(widths)} columns; each must have as many as the others, "
                "such as [[0], [1]] for two members of one column."
            )
        every = [column for each in members for column in each]
        every += [] if self.weights is None else [int(column) for column in self.weights]
        OnColumns(self.kernel, every)  # says what is wrong with one
        if self.weights is not None and len(self.weights) != len(members):
            raise ValueError(
                f"weights names {len(self.weights)} columns for {len(members)} members; name one "
                "for each, or leave weights out."
            )

    def positions(self) -> tuple[tuple[int, ...], ...]:
        """Return the columns of the members, as tuples."""
        return tuple(OnColumns(self.kernel, each).positions() for each in self.members)

    @property
    def layout(self) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...] | None]:
        """Return the columns of the members, and of their weights: what says how teams are read."""
        return self.positions(), None if self.weights is None else tuple(self.weights)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        return self.layout == other.layout and bool(self.kernel == other.kernel)

    def __repr__(self) -> str:
        weights = "" if self.weights is None else f", weights={list(self.weights)}"
        members = [list(each) for each in self.positions()]
        return f"{type(self).__name__}({self.kernel}, members={members}{weights})"

    @property
    def n_beside(self) -> int:
        """Count the columns that a team has more than the kernel inside gets of a member."""
        members = self.positions()
        n_weights = 0 if self.weights is None else len(self.weights)
        return len(members[0]) * (len(members) - 1) + n_weights

    def views(self, n_columns: int) -> tuple[tuple[int, ...], ...]:
        """Return the columns that the kernel inside gets of each member, of rows of so many."""
        members = self.positions()
        taken = {column for each in members for column in each}
        taken |= set() if self.weights is None else set(self.weights)
        if max(taken) >= n_columns:
            raise ValueError(
                f"{self} sees column {max(taken)}, but X has {n_columns} columns, 0 to "
                f"{n_columns - 1}. Count the columns of a team from 0."
            )
        others = tuple(column for column in range(n_columns) if column not in taken)
        return tuple(each + others for each in members)

    def shares(self, X: Array) -> Array:
        """Compute the factor of each member's utility, (n_members, n): 0 of one who is absent."""
        first = [each[0] for each in self.positions()]
        present = (X[:, first] >= 0.0).T
        if self.weights is None:
            return present.astype(np.float64)
        return np.where(present, X[:, list(self.weights)].T, 0.0)

    def member_rows(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return members' rows as the kernel inside sees them, (n_members, n, d), and `shares`."""
        rows = check_rows(X)
        views = self.views(rows.shape[1])
        return np.stack([rows[:, view] for view in views]), self.shares(rows)

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Compute the covariance of the teams X (n, d) and Y (m, d), and its gradient.

        Returns
        -------
        K : ndarray of shape (n, m)
        K_gradient : ndarray of shape (n, n, n_theta)
            Only with ``eval_gradient``, which needs ``Y=None``.
        """
        members, shares = self.member_rows(X)
        flat = members.reshape(-1, members.shape[2])
        if eval_gradient:
            if Y is not None:
                raise ValueError("The gradient is that of K(X, X): leave Y out with eval_gradient.")
            K, gradient = self.kernel(*near_zero(self.kernel, flat), eval_gradient=True)
            return _sum_over_members(K, shares, shares), _sum_over_members(gradient, shares, shares)
        if Y is None:
            return _sum_over_members(self.kernel(*near_zero(self.kernel, flat)), shares, shares)
        other_members, others = self.member_rows(Y)
        both = near_zero(self.kernel, flat, other_members.reshape(-1, other_members.shape[2]))
        return _sum_over_members(self.kernel(*both), shares, others)

    def diag(self, X: ArrayLike) -> Array:
        """Compute the variances k(x, x), (n,)."""
        rows, shares = self.member_rows(X)
        variance: Array = np.zeros(rows.shape[1])
        for k in range(rows.shape[1]):
            K = self.kernel(*near_zero(self.kernel, rows[:, k]))
            variance[k] = shares[:, k] @ K @ shares[:, k]
        return variance

    def is_stationary(self) -> bool:
        """Return False: it depends on who is there."""
        return False


def _sum_over_members(K: Array, shares: Array, others: Array) -> Array:
    """Sum covariances of members over the members of both sides, (n, m, ...)."""
    (k, n), (j, m) = shares.shape, others.shape
    parts = K.reshape(k, n, j, m, *K.shape[2:])
    sums: Array = np.einsum("anbm...,an,bm->nm...", parts, shares, others)
    return sums


T = TypeVar("T")


class View(ABC, Generic[T]):
    """Ask one question about a kernel; ``rows`` are the arrays of items that it is asked at."""

    @abstractmethod
    def leaf(self, kernel: Kernel, *rows: Array) -> T:
        """Return the answer of an elementary kernel."""

    @abstractmethod
    def sum(self, one: T, two: T) -> T:
        """Return the answer of k₁ + k₂ from those of the two."""

    @abstractmethod
    def product(self, one: T, two: T) -> T:
        """Return the answer of k₁ k₂ from those of the two."""

    @abstractmethod
    def power(self, base: T, exponent: float) -> T:
        """Return the answer of k^exponent from that of k."""

    @abstractmethod
    def on_columns(self, inner: T, columns: tuple[int, ...], *rows: Array) -> T:
        """Return the answer of a kernel that sees these columns alone; ``rows`` have all."""

    @abstractmethod
    def of_duels(self, inner: T, kernel: Kernel, *rows: Array) -> T:
        """Return that of a `PreferenceKernel`, from that at first items, then second ones."""

    def of_teams(self, kernel: Teams, *rows: Array) -> T:
        """Return the answer of `Teams`, by default as of an elementary kernel."""
        return self.leaf(kernel, *rows)

    def intransitive(self, kernel: Intransitive, *rows: Array) -> T:
        """Return that of `Intransitive`, by default as of an elementary kernel, which is zero."""
        return self.leaf(kernel, *rows)

    def padded(self, inner: T, kernel: Padded, *rows: Array) -> T:
        """Return that of `Padded`, by default that of the kernel inside, asked at all columns."""
        return inner


def fold(kernel: Kernel, view: View[T], *rows: Array) -> T:
    """Return the answer of a tree of kernels to a view's question, from its leaves up."""
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
    if kind is Padded:
        inner = fold(kernel.kernel, view, *map(kernel.inner_rows, rows))
        return view.padded(inner, kernel, *rows)
    if kind is PreferenceKernel:
        inner = fold(kernel.kernel, view, *map(kernel.inner_rows, rows))
        return view.of_duels(inner, kernel, *rows)
    if kind is Teams:
        return view.of_teams(kernel, *rows)
    if kind is Intransitive:
        return view.intransitive(kernel, *rows)
    return view.leaf(kernel, *rows)
