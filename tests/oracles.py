"""Slow truths for small problems, written independently of the package.

Duels here are never merged: winner and loser are row numbers, one pair a duel, and the noisy
margins v ~ N(0, S + 2σ²I) of all of them are observed to be positive.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import root
from scipy.special import log_ndtr, ndtr, ndtri_exp
from scipy_support import sobol
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

KERNELS = (
    RBF(0.3),
    RBF(2.0),
    Matern(1.0, nu=0.5),
    Matern(0.8, nu=1.5),
    Matern([0.5, 2.0], nu=2.5),
    RationalQuadratic(0.7, alpha=0.6),
)
_REPEATS = 4
_LOG_2_POINTS = 12


class SmallProblem(NamedTuple):
    """Duels (row numbers into ``items``) and queries (items), two features."""

    kernel: object
    items: np.ndarray
    winner: np.ndarray
    loser: np.ndarray
    first: np.ndarray
    second: np.ndarray


def small_problem(seed):
    """One to six duels that share, repeat and contradict each other; six pairs to predict."""
    rng = np.random.default_rng(seed)
    n_duels = 1 + seed % 6
    items = rng.uniform(-1.0, 1.0, (rng.integers(2, 8), 2))
    pairs = np.array([rng.permutation(len(items))[:2] for _ in range(n_duels)])
    for i in range(1, n_duels):
        draw = rng.random()
        if draw < 0.15:  # the same answer once more
            pairs[i] = pairs[rng.integers(i)]
        elif draw < 0.3:  # the opposite answer
            pairs[i] = pairs[rng.integers(i)][::-1]
    everything = np.concatenate([items, rng.uniform(-1.2, 1.2, (4, 2))])
    asked = np.array([rng.permutation(len(everything))[:2] for _ in range(6)])
    first, second = everything[asked[:, 0]], everything[asked[:, 1]]
    return SmallProblem(KERNELS[(seed // 6) % len(KERNELS)], items, *pairs.T, first, second)


def seeds_of(values):
    """Pairs of a value and 36 seeds of `small_problem`: every number of duels with every kernel.

    Each value has 36 problems of its own, so that together they see many.
    """
    return [(value, range(36 * i, 36 * (i + 1))) for i, value in enumerate(values)]


def incidence(winner, loser, n_items):
    """A (n_duels, n_items): +1 at the winner, −1 at the loser."""
    A = np.zeros((len(winner), n_items))
    np.add.at(A, (np.arange(len(winner)), winner), 1.0)
    np.add.at(A, (np.arange(len(winner)), loser), -1.0)
    return A


# -- orthant probabilities -------------------------------------------------------------------


class Orthant(NamedTuple):
    """Quasi-random points in an orthant, (repeats, points, t), and their log weights."""

    points: np.ndarray
    log_weights: np.ndarray

    def log_probability(self):
        """log P(v > 0), and its standard error over the repeats."""
        each = self._shares().mean(axis=1)
        top = self.log_weights.max()
        return np.log(each.mean()) + top, _error(each) / each.mean()

    def expectation(self, values):
        """Means of values (repeats, points, m) given v > 0, and their standard errors."""
        shares = self._shares()
        each = np.einsum("rp,rpm->rm", shares, values) / shares.sum(axis=1)[:, None]
        return each.mean(axis=0), _error(each)

    def _shares(self):
        return np.exp(self.log_weights - self.log_weights.max())


def _error(each):
    return each.std(axis=0, ddof=1) / np.sqrt(len(each))


@lru_cache(maxsize=64)
def _uniforms(dimension, repeats, log_2_points):
    draws = [sobol(dimension, seed).random_base2(log_2_points) for seed in range(repeats)]
    return np.clip(np.array(draws), 1e-15, 1.0 - 1e-15)


def orthant(covariance, repeats=_REPEATS, log_2_points=_LOG_2_POINTS):
    """P(v > 0) for v ~ N(0, covariance): separation of variables (Genz 1992), Sobol points.

    The next variable is always the one least likely to be positive (Genz and Bretz 2009), and
    the standard normals are shifted by Botev's (2017) saddle point, whatever the shift unbiased.
    """
    order, L = _ordered_factor(covariance)
    shift = _saddle_point(L[order])
    uniforms = _uniforms(len(covariance), repeats, log_2_points)
    normal, log_weights = np.zeros(uniforms.shape), np.zeros(uniforms.shape[:2])
    for i, k in enumerate(order):
        bound = -(normal[..., :i] @ L[k, :i]) / L[k, i]
        log_tail = log_ndtr(shift[i] - bound)
        # Draw from the tail of a normal about the shift, above the bound.
        normal[..., i] = shift[i] - ndtri_exp(log_tail + np.log(uniforms[..., i]))
        log_weights += log_tail + shift[i] * (0.5 * shift[i] - normal[..., i])
    return Orthant(normal @ L.T, log_weights)


def _ordered_factor(covariance):
    t = len(covariance)
    rest, L, order = list(range(t)), np.zeros((t, t)), []
    typical = np.zeros(t)  # mean of each standardised variable given that it is positive
    for i in range(t):
        spread = np.sqrt([covariance[k, k] - L[k, :i] @ L[k, :i] for k in rest])
        k = rest[int(np.argmin([L[k, :i] @ typical[:i] for k in rest] / spread))]
        order.append(k)
        rest.remove(k)
        L[k, i] = np.sqrt(covariance[k, k] - L[k, :i] @ L[k, :i])
        for j in rest:
            L[j, i] = (covariance[j, k] - L[j, :i] @ L[k, :i]) / L[k, i]
        bound = -(L[k, :i] @ typical[:i]) / L[k, i]
        typical[i] = _hazard(bound)
    return order, L


def _hazard(bound):
    """E[n | n > b] = φ(b)/Φ(−b) of a standard normal."""
    return np.exp(-0.5 * bound**2 - log_ndtr(-bound)) / np.sqrt(2.0 * np.pi)


def _saddle_point(L):
    t = len(L)
    slopes = np.tril(L, -1) / np.diagonal(L)[:, None]

    def residual(free):
        shift, normal, hazard = np.append(free, 0.0), np.zeros(t), np.zeros(t)
        for i in range(t):
            hazard[i] = _hazard(-slopes[i] @ normal - shift[i])
            normal[i] = shift[i] + hazard[i]
        return (shift - slopes.T @ hazard)[:-1]

    if t == 1:
        return np.zeros(1)
    ways = [root(residual, np.zeros(t - 1), method=method) for method in ("hybr", "lm")]
    best = min(ways, key=lambda way: np.abs(way.fun).max())
    return np.append(best.x, 0.0)


class DuelTruth(NamedTuple):
    """Exact posterior quantities and the oracle's own standard errors."""

    log_evidence: float
    probability: np.ndarray
    log_evidence_error: float
    probability_error: np.ndarray


def duel_truth(problem, noise_variance, **accuracy):
    """log P(v > 0) and P(first wins a noisy duel | v > 0): ratios of orthant probabilities."""
    A = incidence(problem.winner, problem.loser, len(problem.items))
    covariance = A @ problem.kernel(problem.items) @ A.T + 2.0 * noise_variance * np.eye(len(A))
    found = orthant(covariance, **accuracy)
    at_first = problem.kernel(problem.first, problem.items)
    cross = (at_first - problem.kernel(problem.second, problem.items)) @ A.T
    gain = np.linalg.solve(covariance, cross.T).T
    pair = [np.stack(both) for both in zip(problem.first, problem.second, strict=True)]
    prior = np.array([[1.0, -1.0] @ problem.kernel(X) @ [1.0, -1.0] for X in pair])
    left = prior + 2.0 * noise_variance - np.einsum("ij,ij->i", gain, cross)
    probability, error = found.expectation(ndtr(found.points @ gain.T / np.sqrt(left)))
    log_evidence, log_error = found.log_probability()
    return DuelTruth(log_evidence, probability, log_error, error)


# -- expectation propagation on v ------------------------------------------------------------


class SerialEP(NamedTuple):
    """EP's moments of the noise-free margins of every duel, and its log evidence."""

    mean: np.ndarray
    covariance: np.ndarray
    log_evidence: float


def serial_ep(S, noise_variance, n_sweeps=5000, tol=1e-13):
    """EP on v ~ N(0, S + 2σ²I) with sites 1[v_i > 0], one site at a time.

    The moments are those of a truncated normal; the evidence is that of the v-space sites.
    """
    t = len(S)
    prior = S + 2.0 * noise_variance * np.eye(t)
    tau, nu = np.zeros(t), np.zeros(t)
    covariance, mean = prior.copy(), np.zeros(t)
    for _ in range(n_sweeps):
        change = 0.0
        for i in range(t):
            cavity_var = 1.0 / (1.0 / covariance[i, i] - tau[i])
            cavity_mean = cavity_var * (mean[i] / covariance[i, i] - nu[i])
            new_mean, new_var = _truncated_moments(cavity_mean, cavity_var)
            change = max(
                change,
                abs(new_mean - mean[i]) / np.sqrt(cavity_var),
                abs(new_var / covariance[i, i] - 1.0),
            )
            tau[i] = 1.0 / new_var - 1.0 / cavity_var
            nu[i] = new_mean / new_var - cavity_mean / cavity_var
            covariance = _condition(prior, tau)
            mean = covariance @ nu
        if change < tol:
            break
    cavity_var = 1.0 / (1.0 / np.diagonal(covariance) - tau)
    cavity_mean = cavity_var * (mean / np.diagonal(covariance) - nu)
    # log ∫ N(v; 0, prior) Π Z_i N(v_i; target, 1/τ) with Z_i such that cavity × site integrates
    # to P(v_i > 0) under the cavity.
    target, width = nu / tau, 1.0 / tau
    total = prior + np.diag(width)
    constants = log_ndtr(cavity_mean / np.sqrt(cavity_var))
    constants += 0.5 * np.log(2.0 * np.pi * (cavity_var + width))
    constants += 0.5 * (cavity_mean - target) ** 2 / (cavity_var + width)
    joint = -0.5 * target @ np.linalg.solve(total, target)
    joint -= 0.5 * np.linalg.slogdet(2.0 * np.pi * total)[1]
    gain = np.linalg.solve(total, S).T
    return SerialEP(gain @ target, S - gain @ S, float(constants.sum() + joint))


def _condition(prior, tau):
    root = np.sqrt(tau)
    B = np.eye(len(prior)) + root[:, None] * prior * root
    return prior - (prior * root) @ np.linalg.solve(B, root[:, None] * prior)


def _truncated_moments(mean, variance):
    """Mean and variance of N(mean, variance) restricted to the positive numbers."""
    scale = np.sqrt(variance)
    u = mean / scale
    ratio = np.exp(-0.5 * u**2 - log_ndtr(u)) / np.sqrt(2.0 * np.pi)
    return mean + scale * ratio, variance * (1.0 - ratio * (u + ratio))


# -- quadrature, differences, textbook algebra -----------------------------------------------


@lru_cache(maxsize=4)
def _rule(n):
    return np.polynomial.legendre.leggauss(n)


def tilted_by_quadrature(mean, variance, noise_variance):
    """log normaliser, mean and variance of N(z; mean, variance) Φ(z/√(2σ²)) by quadrature."""
    scale, width = np.sqrt(variance), np.sqrt(2.0 * noise_variance)

    def log_density(z):
        return log_ndtr(z / width) - 0.5 * (z - mean) ** 2 / variance

    # Log-concave: the mode by golden section, the ends where it fell by 45.
    low, high = mean, max(mean, 0.0) + 8.0 * scale
    for _ in range(80):  # 0.618⁸⁰ is below the precision of a double
        left, right = high - 0.618034 * (high - low), low + 0.618034 * (high - low)
        rising = log_density(left) < log_density(right)
        low, high = (left, high) if rising else (low, right)
    mode, ends = 0.5 * (low + high), []
    for side in (-1.0, 1.0):
        inner, outer = 0.0, 20.0 * scale
        for _ in range(50):
            half = 0.5 * (inner + outer)
            near = log_density(mode + side * half) > log_density(mode) - 45.0
            inner, outer = (half, outer) if near else (inner, half)
        ends.append(mode + side * outer)
    kinks = mode + scale * np.linspace(-10.0, 10.0, 21)
    kinks = np.concatenate([kinks, width * np.linspace(-12.0, 12.0, 25), [mode]])
    edges = np.unique(np.concatenate([ends, np.clip(kinks, *ends)]))
    nodes, weights = _rule(24)
    half = 0.5 * np.diff(edges)[:, None]
    z = (edges[:-1, None] + half * (1.0 + nodes)).ravel() - mode
    density = (half * weights).ravel() * np.exp(log_density(z + mode) - log_density(mode))
    mass = density.sum()
    offset = density @ z / mass
    log_normaliser = np.log(mass) + log_density(mode) - 0.5 * np.log(2.0 * np.pi * variance)
    return log_normaliser, mode + offset, density @ (z - offset) ** 2 / mass


def dense_posterior(kernel, items, A, shift, precision, X):
    """Mean (n, …) and covariance at X of the GP given A f ≈ shift/precision, by textbook algebra.

    Precisions must be positive. In the primal form, with K⁻¹ nowhere.
    """
    S = A @ kernel(items) @ A.T + np.diag(1.0 / precision)
    cross = kernel(X, items) @ A.T
    target = (shift.T / precision).T
    mean = cross @ np.linalg.solve(S, target)
    return mean, kernel(X) - cross @ np.linalg.solve(S, cross.T)


def slopes_along_signs(function, point, step=1e-3):
    """Vectors of signs (m, n), few of them, and the function's slope along each.

    Any two axes have equal signs in one of the vectors and unlike ones in another, or one of them
    alone is ever negative, so that a slope of one or two axes that is wrong shows as it is.
    """
    point = np.asarray(point, dtype=np.float64)
    bits = np.arange(len(point))[None] >> np.arange(len(point).bit_length())[:, None]
    signs = 1.0 - 2.0 * (bits & 1)
    along = [
        central_gradient(lambda t, s=each: function(point + t[0] * s), [0.0], step)[0]
        for each in signs
    ]
    return signs, np.array(along)


def central_gradient(function, point, step=1e-3):
    """Gradient of a function by central differences extrapolated once (order h⁴).

    The axes of the point come first, then those of the function's value.
    """
    point, gradient = np.asarray(point, dtype=np.float64), []
    for i in np.ndindex(*point.shape):
        slopes = []
        for h in (step, 0.5 * step):
            ahead, behind = point.copy(), point.copy()
            ahead[i] += h
            behind[i] -= h
            slopes.append((function(ahead) - function(behind)) / (2.0 * h))
        gradient.append((4.0 * slopes[1] - slopes[0]) / 3.0)
    return np.array(gradient).reshape(*point.shape, *np.shape(gradient)[1:])
