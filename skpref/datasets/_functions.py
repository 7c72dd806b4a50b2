"""Test functions of optimisation, and judges who compare by them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpref._utils import check_choice, check_number

_HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN_3 = (
    np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]]),
    1e-4
    * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
)
_HARTMANN_6 = (
    np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    ),
    1e-4
    * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    ),
)
_LANGERMANN = (
    np.array([1.0, 2, 5, 2, 3]),
    np.array([[3.0, 5], [5, 2], [2, 1], [1, 4], [7, 9]]),
)


# --- formulas, each to be maximised ---------------------------------------------------------


def _branin(X):
    """Return the Branin function at each row of X, signed so that it is to be maximised."""
    x, y = X.T
    valley = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return -(valley**2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) - 10


def _holder_table(X):
    """Return the Hölder table function at each row of X, signed so that it is to be maximised."""
    x, y = X.T
    return np.abs(np.sin(x) * np.cos(y) * np.exp(np.abs(1 - np.hypot(x, y) / np.pi)))


def _bukin_6(X):
    """Return the sixth Bukin function at each row of X, signed so that it is to be maximised."""
    x, y = X.T
    return -100 * np.sqrt(np.abs(y - 0.01 * x**2)) - 0.01 * np.abs(x + 10)


def _eggholder(X):
    """Return the eggholder function at each row of X, signed so that it is to be maximised."""
    x, y = X.T
    risen = y + 47
    return risen * np.sin(np.sqrt(np.abs(risen + x / 2))) + x * np.sin(np.sqrt(np.abs(x - risen)))


def _ackley(X):
    """Return the Ackley function at each row of X, signed so that it is to be maximised."""
    bowl = 20 * np.expm1(-0.2 * np.sqrt(np.mean(X**2, axis=1)))
    return bowl + np.exp(np.mean(np.cos(2 * np.pi * X), axis=1)) - np.exp(1.0)


def _hartmann(X, sharpness, centres):
    """Return the weighted sum of four Gaussian peaks at each row of X."""
    distance = np.einsum("ij,nij->ni", sharpness, (X[:, None] - centres) ** 2)
    return np.exp(-distance) @ _HARTMANN_WEIGHTS


def _hartmann_4(X):
    """Return the rescaled Hartmann function of four columns at each row of X."""
    # Hartmann-6 cut to its first four columns, shifted and scaled: Picheny et al. 2013.
    sharpness, centres = _HARTMANN_6
    return (_hartmann(X, sharpness[:, :4], centres[:, :4]) - 1.1) / 0.839


def _cross_in_tray(X):
    """Return the cross-in-tray function at each row of X, signed so that it is to be maximised."""
    x, y = X.T
    peak = np.exp(np.abs(100 - np.hypot(x, y) / np.pi))
    return 1e-4 * (np.abs(np.sin(x) * np.sin(y)) * peak + 1) ** 0.1


def _langermann(X):
    """Return the Langermann function at each row of X, signed so that it is to be maximised."""
    weights, centres = _LANGERMANN
    squared = ((X[:, None] - centres) ** 2).sum(axis=2)
    return -(np.exp(-squared / np.pi) * np.cos(np.pi * squared)) @ weights


def _levy_13(X):
    """Return the 13th Levy function at each row of X, signed so that it is to be maximised."""
    x, y = X.T
    first = np.sin(3 * np.pi * x) ** 2 + (x - 1) ** 2 * (1 + np.sin(3 * np.pi * y) ** 2)
    return -first - (y - 1) ** 2 * (1 + np.sin(2 * np.pi * y) ** 2)


def _levy(X):
    """Return the Levy function at each row of X, signed so that it is to be maximised."""
    w = 1 + (X - 1) / 4
    inner, last = w[:, :-1], w[:, -1]
    ridges = ((inner - 1) ** 2 * (1 + 10 * np.sin(np.pi * inner + 1) ** 2)).sum(axis=1)
    end = (last - 1) ** 2 * (1 + np.sin(2 * np.pi * last) ** 2)
    return -(np.sin(np.pi * w[:, 0]) ** 2) - ridges - end


def _mirrored(x, y):
    """Return the four points that mirroring a point at both axes makes."""
    return [[sign * x, other * y] for sign, other in product((1, -1), repeat=2)]


# Name: formula, bounds, maximisers. Those that have no closed form were polished in 40 digits
# from the published ones.
_TABLE: dict[str, tuple[Callable, Any, Any]] = {
    "branin": (
        _branin,
        [[-5, 10], [0, 15]],
        [[-np.pi, 12.275], [np.pi, 2.275], [3 * np.pi, 2.475]],
    ),
    "holder-table": (
        _holder_table,
        [[-10, 10]] * 2,
        _mirrored(8.0550234757365634, 9.6645900192412729),
    ),
    "bukin-6": (_bukin_6, [[-15, -5], [-3, 3]], [[-10, 1]]),
    "eggholder": (_eggholder, [[-512, 512]] * 2, [[512, 404.23180511375781]]),
    "ackley-4": (_ackley, [[-32.768, 32.768]] * 4, [[0] * 4]),
    "hartmann-3": (
        partial(_hartmann, sharpness=_HARTMANN_3[0], centres=_HARTMANN_3[1]),
        [[0, 1]] * 3,
        [[0.11458887665506896, 0.55564889461693005, 0.85254698468667744]],
    ),
    "hartmann-4": (
        _hartmann_4,
        [[0, 1]] * 4,
        [[0.18739527297346669, 0.19415152930244072, 0.55791778006256899, 0.26477962417039715]],
    ),
    "hartmann-6": (
        partial(_hartmann, sharpness=_HARTMANN_6[0], centres=_HARTMANN_6[1]),
        [[0, 1]] * 6,
        [
            [
                *(0.20168951100670542, 0.15001069182345797, 0.47687397422189699),
                *(0.27533243049405607, 0.31165161660011324, 0.65730053406562031),
            ]
        ],
    ),
    "cross-in-tray": (
        _cross_in_tray,
        [[-10, 10]] * 2,
        _mirrored(1.3494066171539108, 1.3494066171539108),
    ),
    "langermann": (_langermann, [[0, 10]] * 2, [[2.7934022086450369, 1.59723250132836]]),
    "levy-13": (_levy_13, [[-10, 10]] * 2, [[1, 1]]),
    "levy-4": (_levy, [[-10, 10]] * 4, [[1] * 4]),
}
TEST_FUNCTIONS = tuple(_TABLE)


# --- what users hold ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BenchmarkFunction:
    """A function to be maximised whose maximum is known; see `load_test_function`.

    Attributes
    ----------
    name : str
    bounds : ndarray of shape (d, 2)
        A row (low, high) for each feature; the space of an optimizer.
    optimum : float
        Value of the maximum within the bounds.
    maximisers : ndarray of shape (k, d)
        Every item that reaches it.

    Examples
    --------
    >>> from skpref.datasets import load_test_function
    >>> branin = load_test_function("branin")
    >>> branin.bounds.tolist()
    [[-5.0, 10.0], [0.0, 15.0]]
    >>> bool(abs(branin(branin.maximisers[:1])[0] - branin.optimum) < 1e-4)
    True
    """

    name: str
    bounds: np.ndarray
    optimum: float
    maximisers: np.ndarray
    _formula: Callable = field(repr=False)

    def __call__(self, X: ArrayLike) -> np.ndarray:
        """Values of items.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Items within the bounds.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If X has another shape, is not finite, or an item lies outside the bounds.
        """
        X = np.asarray(X, dtype=np.float64)
        d = len(self.bounds)
        if X.ndim != 2 or X.shape[1] != d:
            raise ValueError(
                f"{self.name} takes items as an array of shape (n, {d}), got shape {X.shape}; "
                "for one item pass item[None]."
            )
        low, high = self.bounds.T
        inside = np.all((low <= X) & (high >= X), axis=1)  # False for NaN
        if not inside.all():
            row = int(np.argmin(inside))
            raise ValueError(
                f"Items of {self.name} must lie within its bounds {self.bounds.tolist()}, but "
                f"{np.sum(~inside)} of {len(X)} do not; the first is row {row}: {X[row]}."
            )
        return self._formula(X)

    def regret(self, x: ArrayLike) -> float | np.ndarray:
        """Return by how much items fall short of the maximum.

        Parameters
        ----------
        x : array-like of shape (d,) or (n, d)

        Returns
        -------
        float, or ndarray of shape (n,)
            Never negative.

        Raises
        ------
        ValueError
            As for a call.
        """
        x = np.asarray(x, dtype=np.float64)
        regret = np.maximum(self.optimum - self(np.atleast_2d(x)), 0.0)
        return float(regret[0]) if x.ndim == 1 else regret

    def from_unit(self, U: ArrayLike) -> np.ndarray:
        """Return the items at rows of the unit cube.

        Parameters
        ----------
        U : array-like of shape (..., d)
            Numbers between 0 and 1.

        Returns
        -------
        ndarray of shape (..., d)

        Raises
        ------
        ValueError
            If the last axis is not d long, or a number lies outside [0, 1].
        """
        U = np.asarray(U, dtype=np.float64)
        if U.ndim == 0 or U.shape[-1] != len(self.bounds):
            raise ValueError(
                f"{self.name} has {len(self.bounds)} features, so U must have shape "
                f"(..., {len(self.bounds)}), got {U.shape}."
            )
        if not np.all((U >= 0.0) & (U <= 1.0)):
            raise ValueError(f"U must lie in [0, 1], got numbers from {U.min()} to {U.max()}.")
        low, high = self.bounds.T
        return np.clip(low + U * (high - low), low, high)  # rounding may pass the end

    def judge(
        self,
        noise: float = 0.0,
        flip: float = 0.0,
        rng: int | np.random.Generator | None = None,
    ) -> "SimulatedJudge":
        """Make a judge who prefers what has the higher value, more or less reliably.

        Parameters
        ----------
        noise : float, default=0.0
            Standard deviation, in the function's units, of normal noise on the value of each
            item at each presentation (σ of the model, whose ``noise_variance`` is σ²).
        flip : float, default=0.0
            Probability that the answer is turned round.
        rng : None, int or Generator, default=None
            For noise and flips, and the coin thrown between equal values.

        Returns
        -------
        SimulatedJudge
            ``compare(first, second)`` of two items (d,) → 1 if the first won, else 0; what
            ``PreferenceOptimizer.run`` takes.

        Raises
        ------
        TypeError, ValueError
            If ``noise`` is negative or not finite, or ``flip`` not in [0, 1].
        """
        check_number("noise", noise, low=0.0, high=np.inf, open_high=True)
        check_number("flip", flip, low=0.0, high=1.0)
        return SimulatedJudge(self, float(noise), float(flip), np.random.default_rng(rng))


@dataclass(frozen=True, eq=False)
class SimulatedJudge:
    """Who compares two items by a function; made by ``BenchmarkFunction.judge``."""

    function: BenchmarkFunction
    noise: float
    flip: float
    rng: np.random.Generator

    def __call__(self, first: ArrayLike, second: ArrayLike) -> int:
        """1 if the first item (d,) won, 0 if the second did."""
        values = self.function(np.stack([first, second]).astype(np.float64))
        # Drawn whether needed or not: judges of one seed throw alike at every duel.
        error, coin, turn = self.rng.standard_normal(2), self.rng.random(), self.rng.random()
        margin = (values[0] - values[1]) + self.noise * (error[0] - error[1])
        won = margin > 0 if margin != 0 else coin < 0.5
        return int(won != (turn < self.flip))


def load_test_function(name: str) -> BenchmarkFunction:
    """Load one of the twelve test functions of Takeno et al. 2023 [1]_, to be maximised.

    Formulas, constants and bounds are those of the virtual library [2]_; functions that it
    minimises have their sign turned.

    Parameters
    ----------
    name : str
        One of ``TEST_FUNCTIONS``: "branin", "holder-table", "bukin-6", "eggholder",
        "ackley-4", "hartmann-3", "hartmann-4", "hartmann-6", "cross-in-tray", "langermann",
        "levy-13", "levy-4". A number at the end is that of the features, but in Bukin's and
        Levy's sixth and thirteenth function, which have two, as all without a number.

    Returns
    -------
    BenchmarkFunction
        With ``name``, ``bounds`` (d, 2), ``optimum``, ``maximisers`` (k, d); called with items
        (n, d) it gives their values (n,); ``regret``, ``from_unit``, ``judge``.

    Raises
    ------
    ValueError
        If there is no such function.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.
    .. [2] Surjanovic, Bingham, "Virtual Library of Simulation Experiments: Test Functions and
       Datasets", https://www.sfu.ca/~ssurjano/optimization.html.

    Examples
    --------
    >>> from skpref.datasets import load_test_function
    >>> branin = load_test_function("branin")
    >>> round(branin.optimum, 6), branin.bounds.tolist()
    (-0.397887, [[-5.0, 10.0], [0.0, 15.0]])
    >>> judge = branin.judge(flip=0.1, rng=1)
    >>> judge(branin.maximisers[0], [0.0, 0.0])
    1
    """
    check_choice("name", name, TEST_FUNCTIONS)
    formula, bounds, maximisers = _TABLE[name]
    bounds, maximisers = np.array(bounds, np.float64), np.array(maximisers, np.float64)
    bounds.flags.writeable = maximisers.flags.writeable = False
    return BenchmarkFunction(name, bounds, float(formula(maximisers).max()), maximisers, formula)
