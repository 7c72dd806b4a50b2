"""Kernels through time in state-space form: which they are, and how their states move.

A sum of processes of time, each with who an item is, is a Markov process of a small state: f(t) is
the sum of the first elements of its processes' states, and a state at a later time is A times the
one before, plus a normal of covariance Q (Hartikainen and Särkkä, "Kalman filtering and smoothing
solutions to temporal Gaussian process regression models", MLSP 2010).
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import Array, Kernel
from skpref.kernels._features import (
    FEATURES,
    FiniteFeatures,
    Form,
    Group,
    features_of,
)
from skpref.kernels._leaves import Seasons, Wiener, season_of
from skpref.kernels._wrappers import Teams, View, fold


class _Order(IntEnum):
    """Orders of other processes than Matérn's."""

    WIENER = -2
    CONSTANT = -1


@dataclass(frozen=True, eq=False)
class Process:
    """One process of time, of unit rate or variance but for ``variance``.

    Attributes
    ----------
    order : int
        Whole part of a Matérn process's smoothness ν; -1 of a constant, and -2 of a Wiener process,
        which is zero at time zero.
    length : float
        Lengthscale of a Matérn process.
    variance : float
        Of a Wiener process in a unit of time.
    slope : ndarray of shape (n_theta,)
        Derivatives of the variance in the kernel's theta.
    length_at : int or None
        Position of the logarithm of the lengthscale in theta; None where it is fixed.
    starts : tuple of float
        Starts of seasons, at each of which a share of the state is left, while its variance stays.
    share : float
    share_at : int or None
        Position of the logarithm of that share in theta; None where it is fixed.
    """

    order: int
    length: float
    variance: float
    slope: Array
    length_at: int | None = None
    starts: tuple[float, ...] = ()
    share: float = 1.0
    share_at: int | None = None

    @property
    def size(self) -> int:
        """Count the elements of the process's state."""
        return max(self.order, 0) + 1

    def spread(self, times: Array) -> Array:
        """Covariance of its state at some times without anything known, (size, size, n)."""
        if self.order == _Order.WIENER:
            return self.variance * np.abs(times)[None, None]
        unit = _STATIONARY[max(self.order, 0)]
        return self.variance * np.repeat(unit[:, :, None], len(times), axis=2)

    def transition(self, before: Array, after: Array) -> tuple[Array, Array]:
        """A and Q from some times to later ones, (size, size, n) each."""
        A, Q = self._transition_within(before, after)
        if not self.starts:
            return A, Q
        kept = self.share ** self._n_starts(before, after)
        return kept * A, Q + (1.0 - kept**2) * self._transformed_spread(A, before)

    def _n_starts(self, before: Array, after: Array) -> Array:
        """Count the starts of seasons from some times to later ones, (n,)."""
        counts: Array = season_of(self.starts, after) - season_of(self.starts, before)
        return counts

    def _transformed_spread(self, A: Array, before: Array) -> Array:
        """A P Aᵀ, what a covariance P of the state at some times becomes, (size, size, n)."""
        product: Array = np.einsum("ijn,jkn,lkn->iln", A, self.spread(before), A)
        return product

    def _transition_within(self, before: Array, after: Array) -> tuple[Array, Array]:
        """A and Q without seasons."""
        if self.order == _Order.WIENER:
            return self._wiener(before, after)
        if self.order == _Order.CONSTANT:
            return np.ones((1, 1, len(after))), np.zeros((1, 1, len(after)))
        A = self._transition(after - before)
        unit = _STATIONARY[self.order]
        Q = unit[:, :, None] - np.einsum("ijn,jk,lkn->iln", A, unit, A)
        return A, self.variance * Q

    def _wiener(self, before: Array, after: Array) -> tuple[Array, Array]:
        """Return transition and noise of a Wiener process between two times."""
        # It is zero at time zero: what lies on either side of that is independent.
        late = before >= 0.0
        early = after <= 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(early & (before < 0.0), after / before, 0.0)
        A = np.where(late, 1.0, share)
        bridge = np.abs(after) * (1.0 - share)
        Q = np.where(late, after - before, np.where(early, bridge, np.abs(after)))
        return A[None, None], self.variance * Q[None, None]

    def _transition(self, gap: Array) -> Array:
        """Return the transition matrices of a half-integer Matern process over gaps of time."""
        drift = _DRIFT[self.order]
        u = np.sqrt(2.0 * self.order + 1.0) * gap / self.length
        nilpotent, power = drift + np.eye(self.size), np.eye(self.size)
        A = np.zeros((self.size, self.size, len(gap)))
        term = np.exp(-u)
        for k in range(self.size):
            A += power[:, :, None] * term
            power, term = power @ nilpotent, term * u / (k + 1.0)
        return A

    def gradient(
        self, before: Array, after: Array, by_A: Array, by_Q: Array, times: Array, by_spread: Array
    ) -> Array:
        """Gradient in the kernel's theta of what has these derivatives in A, Q and `spread`."""
        unit = replace(self, variance=1.0)
        A, Q = unit.transition(before, after)
        by_variance = np.sum(by_Q * Q) + np.sum(by_spread * unit.spread(times))
        gradient: Array = by_variance * self.slope
        if self.length_at is not None:
            u = np.sqrt(2.0 * self.order + 1.0) * (after - before) / self.length
            dA = -u * np.einsum("ij,jkn->ikn", _DRIFT[self.order], A)
            both = by_Q + np.swapaxes(by_Q, 0, 1)
            of_Q = np.einsum("iln,lkn,kj->ijn", both, A, _STATIONARY[self.order])
            gradient = gradient.copy()
            gradient[self.length_at] += np.sum((by_A - self.variance * of_Q) * dA)
        if self.share_at is not None:
            of_share = by_A * A - 2.0 * by_Q * self._transformed_spread(A, before)
            gradient = gradient.copy()
            gradient[self.share_at] += np.sum(self._n_starts(before, after) * of_share)
        return gradient


# Of a Matérn process the state is f, f'/λ, f''/λ², with λ = √(2ν) / lengthscale: dx = λ F x dt plus
# noise, and F + 1 is nilpotent.
_DRIFT = (
    np.array([[-1.0]]),
    np.array([[0.0, 1.0], [-1.0, -2.0]]),
    np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, -3.0, -3.0]]),
)
_STATIONARY = (
    np.array([[1.0]]),
    np.eye(2),
    np.array([[1.0, 0.0, -1.0 / 3.0], [0.0, 1.0 / 3.0, 0.0], [-1.0 / 3.0, 0.0, 1.0]]),
)


@dataclass(frozen=True, eq=False)
class Drift:
    """Processes of time of which each item has a draw of its own.

    Attributes
    ----------
    who : tuple of int
        Columns by whose values items are told apart.
    time : int
        Column of the time.
    processes : tuple of Process
        Their sum is what moves.
    """

    who: Group
    time: int
    processes: tuple[Process, ...]

    @property
    def size(self) -> int:
        """Count the elements of the state of all processes."""
        return sum(each.size for each in self.processes)

    @property
    def seen(self) -> Array:
        """h with f = h · state, (size,)."""
        readout = np.zeros(self.size)
        readout[[part.start for part in self._parts]] = 1.0
        return readout

    @property
    def _parts(self) -> list[slice]:
        """Return the places of each process in the joint state."""
        ends = np.cumsum([each.size for each in self.processes]).tolist()
        return [slice(*pair) for pair in zip([0, *ends[:-1]], ends, strict=True)]

    def spread(self, times: Array) -> Array:
        """Covariance of the state at some times, (size, size, n)."""
        covariance = np.zeros((self.size, self.size, len(times)))
        for part, each in zip(self._parts, self.processes, strict=True):
            covariance[part, part] = each.spread(times)
        return covariance

    def transition(self, before: Array, after: Array) -> tuple[Array, Array]:
        """A and Q of the state from some times to later ones, (size, size, n) each."""
        A, Q = np.zeros((2, self.size, self.size, len(after)))
        for part, each in zip(self._parts, self.processes, strict=True):
            A[part, part], Q[part, part] = each.transition(before, after)
        return A, Q

    def covariance(self, one: Array, other: Array) -> Array:
        """Covariance of f at some times and at others, which are broadcast."""
        first, second = np.broadcast_arrays(one, other)
        early, late = np.minimum(first, second).ravel(), np.maximum(first, second).ravel()
        A, _ = self.transition(early, late)
        h = self.seen
        return np.einsum("i,ijn,jkn,k->n", h, A, self.spread(early), h).reshape(first.shape)

    def gradient(
        self, before: Array, after: Array, by_A: Array, by_Q: Array, times: Array, by_spread: Array
    ) -> Array:
        """Gradient in theta, see `Process.gradient`."""
        gradient = np.zeros(len(self.processes[0].slope))
        for part, each in zip(self._parts, self.processes, strict=True):
            of = by_A[part, part], by_Q[part, part]
            gradient += each.gradient(before, after, *of, times, by_spread[part, part])
        return gradient


class Drifts(NamedTuple):
    """A kernel as processes of time and finitely many features, of items or of their members.

    Attributes
    ----------
    drift : Drift
    static : FiniteFeatures or None
        What does not depend on time.
    teams : Teams or None
        Where items are teams: ``drift`` and ``static`` are of the columns of a member.
    """

    drift: Drift
    static: FiniteFeatures | None
    teams: Teams | None = None

    def members(self, items: Array) -> tuple[Array, Array]:
        """Rows of which the utility of an item is a weighted sum, (n_members, n, d), and the
        weights (n_members, n): an item itself where there are no teams."""
        if self.teams is None:
            return items[None], np.ones((1, len(items)))
        return self.teams.member_rows(items)

    def who_of(self, items: Array) -> Array:
        """The columns of items that say who they are, (n, n_columns)."""
        return np.concatenate(list(self.members(items)[0][:, :, self.drift.who]), axis=1)

    def times_of(self, items: Array) -> Array:
        """The times of items, (n,)."""
        time = self.drift.time
        if self.teams is not None:
            time = self.teams.views(items.shape[1])[0][time]
        times: Array = items[:, time]
        return times


def drifts_of(kernel: Kernel, n_columns: int) -> Drifts | None:
    """A kernel's processes of time; None if it is not known to be made of such.

    Known are sums of who an item is (`Identity` on some columns) times a constant, a Matérn kernel
    of smoothness 1/2, 3/2 or 5/2 or `Wiener` on one other column, maybe times `Seasons` on that
    column, all on the same columns, beside
    what `finite_features` knows of columns other than the time; and `Teams` of such a kernel, whose
    members have the same time.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    n_columns : int

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from skpref.kernels import Identity, OnColumns, Wiener, drifts_of
    >>> who = OnColumns(Identity(), [0])
    >>> kernel = who + 0.3 * who * OnColumns(Matern(length_scale=5.0, nu=1.5), [1])
    >>> drift = drifts_of(kernel, 2).drift
    >>> drift.who, drift.time, drift.size, [each.variance for each in drift.processes]
    ((0,), 1, 3, [0.3, 1.0])
    >>> drifts_of(who, 2) is None
    True
    """
    if type(kernel) is Teams:
        drifts = drifts_of(kernel.kernel, n_columns - kernel.n_beside)
        # A team's own columns, as the time, are those of each member.
        return None if drifts is None else drifts._replace(teams=kernel)
    forms = fold(kernel, _PROCESSES, np.empty((0, n_columns)))
    if forms is None:
        return None
    leaves = [leaf for leaf in forms if leaf is not None]
    columns = {leaf.column for leaf in leaves}
    groups = {group for leaf in leaves for group, _ in forms[leaf].keys}
    if len(columns) != 1 or len(groups) != 1:
        return None
    time, who = columns.pop(), groups.pop()
    if not who or time in who:
        return None
    if any([monomial for _, monomial in forms[leaf].keys] != [()] for leaf in leaves):
        return None
    processes = [_process_of(leaf, forms[leaf]) for leaf in leaves]
    constants, static = _static_parts(forms.get(None), who)
    if any(time in group or time in dict(monomial) for group, monomial in static.keys):
        return None
    few = features_of(static) if static.keys else None
    return Drifts(Drift(who, time, (*processes, *constants)), few)


def _process_of(leaf: "_TimeLeaf", form: Form) -> Process:
    """Return the process that a kernel of time is with what stands before it."""
    moving = float(form.value[0]), form.slope[0], leaf.at
    return Process(leaf.order, leaf.length, *moving, leaf.starts, leaf.share, leaf.share_at)


def _static_parts(static: Form | None, who: tuple[int, ...]) -> tuple[list[Process], Form]:
    """Split what knows no time into constants of who an item is, and the features beside."""
    if static is None:
        return [], Form([], np.zeros(0), np.zeros((0, 0)))
    constant = np.array([key == (who, ()) for key in static.keys], dtype=bool)
    constants = [
        Process(_Order.CONSTANT.value, 1.0, float(value), slope)
        for value, slope in zip(static.value[constant], static.slope[constant], strict=True)
    ]
    keys = [key for key, mine in zip(static.keys, constant, strict=True) if not mine]
    return constants, Form(keys, static.value[~constant], static.slope[~constant])


class _TimeLeaf(NamedTuple):
    """A kernel of time as it stands in a tree: its lengthscale's position in theta, if free."""

    order: int
    length: float
    column: int
    at: int | None
    position: int
    starts: tuple[float, ...] = ()
    share: float = 1.0
    share_at: int | None = None

    def within(self, seasons: "_TimeLeaf") -> "_TimeLeaf | None":
        """The product with a leaf of seasons alone; None if it is not known."""
        if self.starts or seasons.column != self.column or seasons.order != _Order.CONSTANT:
            return None
        return self._replace(starts=seasons.starts, share=seasons.share, share_at=seasons.share_at)


class _ProcessesView(View[dict[_TimeLeaf | None, Form] | None]):
    """The features that stand beside each kernel of time, and beside none."""

    def leaf(self, kernel: Kernel, *rows: Array) -> dict[_TimeLeaf | None, Form] | None:
        few = FEATURES.leaf(kernel, *rows)
        if few is not None:
            return {None: few}
        if rows[0].shape[1] != 1:
            return None
        unit, no_slope = np.ones(1), np.zeros((1, kernel.n_dims))
        if type(kernel) is gp.Matern and kernel.nu - 0.5 in range(len(_STATIONARY)):
            length = float(np.ravel(kernel.length_scale)[0])
            free = 0 if kernel.n_dims else None
            leaf = _TimeLeaf(int(kernel.nu), length, 0, free, 0)
            return {leaf: Form([((), ())], unit, no_slope)}
        if type(kernel) is Wiener:
            rate = np.array([float(kernel.rate)])
            slope = rate[:, None].repeat(kernel.n_dims, axis=1)
            return {_TimeLeaf(_Order.WIENER.value, 1.0, 0, None, 0): Form([((), ())], rate, slope)}
        if type(kernel) is Seasons:
            own = tuple(np.asarray(kernel.starts, dtype=np.float64).tolist()), float(kernel.share)
            leaf = _TimeLeaf(
                _Order.CONSTANT.value, 1.0, 0, None, 0, *own, 0 if kernel.n_dims else None
            )
            return {leaf: Form([((), ())], unit, no_slope)}
        return None

    def sum(self, one, two):
        if one is None or two is None:
            return None
        one_width, two_width = _count_theta(one), _count_theta(two)
        forms = {leaf: _pad_slopes(form, 0, two_width) for leaf, form in one.items()}
        for leaf, form in two.items():
            name, form = _shift_theta(leaf, one_width), _pad_slopes(form, one_width, 0)
            if name in forms:
                together = [*forms[name].keys, *form.keys]
                value = np.concatenate([forms[name].value, form.value])
                slope = np.concatenate([forms[name].slope, form.slope])
                form = Form.merge_keys(together, value, slope)
            forms[name] = form
        return forms

    def product(self, one, two):
        if one is None or two is None:
            return None
        forms: dict[_TimeLeaf | None, Form] = {}
        for first, of_first in one.items():
            for second, of_second in two.items():
                name = first if second is None else _shift_theta(second, _count_theta(one))
                if first is not None and second is not None:
                    name = first.within(name) or name.within(first)
                    if name is None:
                        return None
                form = of_first.multiply(of_second, same_theta=False)
                if form is None:
                    return None
                forms[name] = form
        return forms

    def power(self, base, exponent):
        if base is None or set(base) != {None}:
            return None
        form = FEATURES.power(base[None], exponent)
        return None if form is None else {None: form}

    def on_columns(self, inner, columns, *rows):
        if inner is None:
            return None
        forms: dict[_TimeLeaf | None, Form] = {}
        for leaf, form in inner.items():
            at = None if leaf is None else leaf._replace(column=columns[leaf.column])
            spread: Form = FEATURES.on_columns(form, columns, *rows)  # type: ignore[assignment]
            forms[at] = spread
        return forms

    def of_duels(self, inner, kernel, *rows):
        return None


def _count_theta(forms):
    """Return the number of hyperparameters that forms have slopes in."""
    return next(iter(forms.values())).slope.shape[1]


def _shift_theta(leaf, by):
    """The leaf with ``by`` elements of theta before its own."""
    if leaf is None:
        return None
    at, share_at = (None if each is None else each + by for each in (leaf.at, leaf.share_at))
    return leaf._replace(at=at, position=leaf.position + by + 1, share_at=share_at)


def _pad_slopes(form, before, after):
    """Return a form with slopes of 0 in further hyperparameters on either side."""
    return form._replace(slope=np.pad(form.slope, ((0, 0), (before, after))))


_PROCESSES = _ProcessesView()
