"""Acquisitions: how promising an item is as the challenger, and the derivatives of that.

Each takes `CandidateMoments` and gives a `Value`; larger is better. The first group looks at the
challenger alone, the second at its duel with the incumbent. With several components (draws of
the margins) a probability or an expectation is averaged over them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, owens_t

from skpref._utils import NEGLIGIBLE, Array, cholesky, floor_variance, sobol, solve_lower
from skpref.active import expected_bell
from skpref.gp import JointMoments, Posterior, SamplePaths, mixture_quantile
from skpref.optimize._maximiser import EFFORT


class CandidateMoments(NamedTuple):
    """Joint moments of f at n items and at the incumbent, for S components.

    Attributes
    ----------
    mean : ndarray of shape (n, S)
    var, cov : ndarray of shape (n,)
        Variance at the items and covariance with the incumbent, shared by the components.
    incumbent_mean : ndarray of shape (S,)
    incumbent_var : float
    threshold : ndarray of shape (S,)
        What an improvement improves on.
    margin_noise : float
        Variance of the noise on a margin.
    """

    mean: Array
    var: Array
    cov: Array
    incumbent_mean: Array
    incumbent_var: float
    threshold: Array
    margin_noise: float


class Value(NamedTuple):
    """An acquisition at n items and its derivatives in the moments."""

    value: Array
    by_mean: Array
    by_var: Array | float = 0.0
    by_cov: Array | float = 0.0


class Surface:
    """An acquisition as a function of the item, with its gradient in it."""

    def __init__(
        self,
        acquisition: Callable[[CandidateMoments], Value],
        posterior: Posterior,
        incumbent: Array,
        threshold: Array,
    ) -> None:
        self._acquisition, self._threshold = acquisition, threshold
        self._joint = posterior.joint_with(incumbent)
        self._margin_noise = posterior.likelihood.margin_variance

    def _evaluate(self, joint: JointMoments) -> Value:
        """Return the acquisition and its derivatives, by joint moments with the incumbent."""
        return self._acquisition(CandidateMoments(*joint, self._threshold, self._margin_noise))

    def value(self, X: Array) -> Array:
        """Return the acquisition at the rows of X, (n,)."""
        return self._evaluate(self._joint.moments(X)).value

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the acquisition (n,) and its gradient in the items (n, d)."""
        joint, pull_back = self._joint.moments_and_pull_back(X)
        result = self._evaluate(joint)
        return result.value, pull_back(result.by_mean, result.by_var, result.by_cov)


class PathSurface:
    """One drawn function as a surface: what Thompson sampling maximises."""

    def __init__(self, paths: SamplePaths) -> None:
        self._paths = paths

    def value(self, X: Array) -> Array:
        """Return the utility at the rows of X, (n,)."""
        return self._paths(X)[:, 0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the utility (n,) and its gradient in the items (n, d)."""
        value, gradient = self._paths.value_and_gradient(X)
        return value[:, 0], gradient[:, :, 0]


class Numeric:
    """Any function of items as a surface; gradients by central differences."""

    _STEP = 1e-5

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self._function = function

    def value(self, X: Array) -> Array:
        """Return the function at the rows of X, (n,)."""
        result = self._function(X)
        try:
            values = np.asarray(result, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"An acquisition must return one number for each row of X, got {result!r:.60}."
            ) from None
        if values.size != len(X):
            raise ValueError(
                f"An acquisition must return one value for each row of X, {len(X)} of them; got "
                f"an array of shape {values.shape}."
            )
        return values.reshape(-1)

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the function (n,) and its gradient (n, d)."""
        n, d = X.shape
        above = np.minimum(X[:, None, :] + self._STEP * np.eye(d), 1.0)
        below = np.maximum(X[:, None, :] - self._STEP * np.eye(d), 0.0)
        rows = np.concatenate([X, above.reshape(-1, d), below.reshape(-1, d)])
        values = self.value(rows)
        high, low = values[n : n + n * d].reshape(n, d), values[n + n * d :].reshape(n, d)
        taken = np.einsum("ijj->ij", above - below)
        with np.errstate(invalid="ignore"):  # a function may be infinite over there
            return values[:n], (high - low) / taken


def _log_normal_density(z: Array) -> Array:
    """Return log φ(z) of the standard normal."""
    return -0.5 * (z * z + np.log(2.0 * np.pi))


def normal_density(z: Array) -> Array:
    """Return φ(z) of the standard normal."""
    return np.exp(_log_normal_density(z))


def _log_improvement(z: ArrayLike) -> Array:
    """Return log(φ(z) + z Φ(z)) without cancellation (Ament et al. 2023, eq. 9)."""
    z = np.asarray(z, dtype=np.float64)
    near = np.maximum(z, -1.0)
    value = np.log(normal_density(near) + near * ndtr(near))
    far = np.minimum(z, -1.0)
    # φ + zΦ = φ (1 − |z| √(π/2) erfcx(|z|/√2)); beyond 10³ that bracket is 1/z² to rounding.
    product = np.log(-far) + np.log(erfcx(-np.sqrt(0.5) * far)) + 0.5 * np.log(0.5 * np.pi)
    with np.errstate(divide="ignore"):
        bracket = np.log(-np.expm1(np.minimum(product, 0.0)))
    bracket = np.where(far < -1e3, -2.0 * np.log(-far), bracket)
    tail = _log_normal_density(far) + bracket
    return np.where(z > -1.0, value, tail)


def _standardise_improvement(moments: CandidateMoments) -> tuple[Array, Array]:
    """Return deviations of f(x), (n, 1), and (mean − threshold) / deviation, (n, S)."""
    # A linear kernel gives the item at the origin no variance.
    deviation = np.sqrt(np.maximum(moments.var, np.finfo(float).eps ** 2))[:, None]
    return deviation, (moments.mean - moments.threshold) / deviation


def expected_improvement(moments: CandidateMoments) -> Value:
    """Return E[(f(x) − threshold)⁺] (Mockus et al. 1978)."""
    deviation, z = _standardise_improvement(moments)
    n_components = z.shape[1]
    value = (deviation * np.exp(_log_improvement(z))).mean(axis=1)
    by_deviation = normal_density(z).mean(axis=1)
    return Value(value, ndtr(z) / n_components, 0.5 * by_deviation / deviation[:, 0])


def log_expected_improvement(moments: CandidateMoments) -> Value:
    """Return log expected improvement, which has a gradient everywhere (Ament et al. 2023)."""
    deviation, z = _standardise_improvement(moments)
    log_values = np.log(deviation) + _log_improvement(z)
    top = log_values.max(axis=1, keepdims=True)
    scaled = np.exp(log_values - top)
    total = scaled.sum(axis=1, keepdims=True)
    value = (top + np.log(total / z.shape[1]))[:, 0]
    by_mean = np.exp(log_ndtr(z) - top) / total
    by_deviation = (np.exp(_log_normal_density(z) - top) / total).sum(axis=1)
    return Value(value, by_mean, 0.5 * by_deviation / deviation[:, 0])


def probability_of_improvement(moments: CandidateMoments) -> Value:
    """Return log P(f(x) > threshold)."""
    deviation, z = _standardise_improvement(moments)
    log_values = log_ndtr(z)
    top = log_values.max(axis=1, keepdims=True)
    total = np.exp(log_values - top).sum(axis=1, keepdims=True)
    value = (top + np.log(total / z.shape[1]))[:, 0]
    by_z = np.exp(_log_normal_density(z) - top) / total
    by_var = -0.5 * (by_z * z).sum(axis=1) / deviation[:, 0] ** 2
    return Value(value, by_z / deviation, by_var)


def posterior_mean(moments: CandidateMoments) -> Value:
    """Return the mean of f(x)."""
    n, n_components = moments.mean.shape
    return Value(moments.mean.mean(axis=1), np.full((n, n_components), 1.0 / n_components))


def upper_confidence_bound(moments: CandidateMoments, root_beta: float = 2.0) -> Value:
    """Return the mean plus √β standard deviations of f(x) (2 by Takeno et al. 2023, appendix F)."""
    n_components = moments.mean.shape[1]
    centre = moments.mean.mean(axis=1, keepdims=True)
    off = moments.mean - centre
    deviation = np.sqrt(moments.var + np.mean(off * off, axis=1))
    by_mean = (1.0 + root_beta * off / deviation[:, None]) / n_components
    return Value(centre[:, 0] + root_beta * deviation, by_mean, 0.5 * root_beta / deviation)


# --- of the duel with the incumbent ---------------------------------------------------------


def margin_moments(moments: CandidateMoments) -> tuple[Array, Array]:
    """Return means (n, S) and variance (n,) of f(x) − f(incumbent)."""
    mean = moments.mean - moments.incumbent_mean
    var = moments.var + moments.incumbent_var - 2.0 * moments.cov
    return mean, floor_variance(var, moments.var + moments.incumbent_var, NEGLIGIBLE)


def _value_by_margin(value: Array, by_mean: Array, by_var: Array) -> Value:
    """Return an acquisition of the margin, with derivatives in its variance split by moments."""
    return Value(value, by_mean, by_var, -2.0 * by_var)


def bivariate_expected_improvement(moments: CandidateMoments) -> Value:
    """Return E[(f(x) − f(incumbent))⁺] (Nielsen et al. 2015)."""
    mean, var = margin_moments(moments)
    deviation = np.sqrt(var)[:, None]
    z = mean / deviation
    value = (deviation * np.exp(_log_improvement(z))).mean(axis=1)
    by_var = 0.5 * normal_density(z).mean(axis=1) / deviation[:, 0]
    return _value_by_margin(value, ndtr(z) / z.shape[1], by_var)


def eubo(moments: CandidateMoments) -> Value:
    """Return E[max(f(x), f(incumbent))], the expected utility of the best option (Lin et al. 2022).

    In closed form for two items: E[f(incumbent)] + E[(f(x) − f(incumbent))⁺].
    """
    improvement = bivariate_expected_improvement(moments)
    return improvement._replace(value=improvement.value + moments.incumbent_mean.mean())


def maximally_uncertain_challenge(moments: CandidateMoments) -> Value:
    """Return the variance of the probability of winning (González et al. 2017).

    With c² = 2σ², h = μ/√(c² + s²) and a = c/√(c² + 2s²), E[Φ(g/c)] = Φ(h) and
    E[Φ(g/c)²] = Φ(h) − 2 T(h, a), T being Owen's function.
    """
    mean, var = margin_moments(moments)
    n_components = mean.shape[1]
    noise = moments.margin_noise
    total = (noise + var)[:, None]
    h = mean / np.sqrt(total)
    wide = (noise + 2.0 * var)[:, None]
    a = np.sqrt(noise / wide)
    win, slope = ndtr(h), normal_density(h)
    # averages over the components: a draw's own variance, and that of the draws' means
    centre = win.mean(axis=1, keepdims=True)
    value = (win - 2.0 * owens_t(h, a)).mean(axis=1) - centre[:, 0] ** 2
    by_h = slope * (1.0 - 2.0 * centre) + 2.0 * slope * (ndtr(a * h) - 0.5)
    by_a = -np.exp(-0.5 * h * h * (1.0 + a * a)) / (np.pi * (1.0 + a * a))
    by_var = (by_h * (-0.5 * h / total) + by_a * (-a / wide)).mean(axis=1)
    return _value_by_margin(value, by_h / np.sqrt(total) / n_components, by_var)


def expected_win_and_information(moments: CandidateMoments, win_weight: float = 0.1) -> Value:
    """Return EIIG (Benavoli et al. 2021): w log P(x wins) **plus** the information gained, nats.

    The information is that between the outcome and f, by the closed form of BALD (Houlsby
    et al. 2012). The original subtracts it; Takeno et al. 2023 (section 6, note 2) adds it.
    """
    mean, var = margin_moments(moments)
    n_components = mean.shape[1]
    noise = moments.margin_noise
    root = np.sqrt(noise + var)[:, None]
    u = mean / root
    win = np.clip(ndtr(u).mean(axis=1), 1e-300, 1.0 - 1e-16)
    lose = np.maximum(ndtr(-u).mean(axis=1), 1e-300)
    inner, spread = expected_bell(mean, var[:, None], noise)
    entropy = -win * np.log(win) - lose * np.log(lose)
    value = win_weight * np.log(win) + entropy - inner.mean(axis=1)
    by_win = (win_weight / win + np.log(lose) - np.log(win))[:, None]
    density = normal_density(u)
    by_mean = by_win * density / root + inner * mean / spread
    by_var = by_win * density * (-0.5 * u / root**2)
    by_var = by_var - inner * (0.5 * mean * mean / spread**2 - 0.5 / spread)
    return _value_by_margin(value, by_mean / n_components, by_var.mean(axis=1))


def upper_margin(moments: CandidateMoments, level: float = 0.95) -> Value:
    """Return the quantile of f(x) − f(incumbent) at a level (DuelUCB, Benavoli et al. 2021)."""
    mean, var = margin_moments(moments)
    deviation = np.sqrt(var)[:, None]
    value = mixture_quantile(level, mean, deviation)
    z = (value[:, None] - mean) / deviation
    weight = normal_density(z)
    weight /= weight.sum(axis=1, keepdims=True)
    # implicit derivative of Σ_s Φ((q − m_s)/s) = level · S
    by_var = 0.5 * (weight * z).sum(axis=1) / deviation[:, 0]
    return _value_by_margin(value, weight, by_var)


ACQUISITIONS: dict[str, Callable[[CandidateMoments], Value]] = {
    "ei": expected_improvement,
    "log_ei": log_expected_improvement,
    "pi": probability_of_improvement,
    "ucb": upper_confidence_bound,
    "mean": posterior_mean,
    "bvei": bivariate_expected_improvement,
    "muc": maximally_uncertain_challenge,
    "eubo": eubo,
    "eiig": expected_win_and_information,
    "duel_ucb": upper_margin,
}


def draw_shared_normals(n_members: int, n_components: int, rng: np.random.Generator) -> Array:
    """Return standard normals (n_draws, n_members), the same for every set of one question.

    They fill space evenly (scrambled Sobol points), and each component has as many.
    """
    n = n_components * -(-EFFORT.n_normals // n_components)
    points = sobol(n_members, rng).random(1 << (n - 1).bit_length())[:n]
    return ndtri(np.clip(points, 1e-9, 1.0 - 1e-9))


class BestOf:
    """E max(f(x), f(members)) as a function of x, with its gradient (Astudillo et al. 2023).

    The utilities of the members are drawn, by the same normals for every x; over f(x) given
    these the expectation is exact.

    Parameters
    ----------
    posterior : Posterior
    members : ndarray of shape (m, d)
    normals : ndarray of shape (n_draws, >= m)
        Each component has equally many draws, one after another: points whose numbers are equal
        modulo a power of two do not fill space.
    """

    def __init__(self, posterior: Posterior, members: Array, normals: Array) -> None:
        self._joints = [posterior.joint_with(member) for member in members]
        n_each = len(normals) // posterior.n_components
        self._component = np.repeat(np.arange(posterior.n_components), n_each)
        root = cholesky(posterior.component_cov(members))
        self._quantile_function = solve_lower(root, np.eye(len(members)))
        normals = normals[:, : len(members)]
        means = posterior.component_means(members)[:, self._component]
        self._best = (means + root @ normals.T).max(axis=0)
        self._gain = self._quantile_function.T @ normals.T  # K⁻¹ (f − mean) of the members

    def _expected_maximum(self, all_moments):
        """Return E max and what its gradient needs, by moments of rows with each of the members.

        These are probabilities that f(x) is the best (n, n_draws), the derivative in its deviation
        over that deviation (n,), and covariances with the whitened members (n, m).
        """
        cov = np.stack([each.cov for each in all_moments], axis=1)
        var = all_moments[0].var
        half = cov @ self._quantile_function.T
        conditional = floor_variance(var - np.einsum("ij,ij->i", half, half), var, NEGLIGIBLE)
        deviation = np.sqrt(conditional)[:, None]
        mean = all_moments[0].mean[:, self._component] + cov @ self._gain
        z = (mean - self._best) / deviation
        win, density = ndtr(z), normal_density(z)
        value = (self._best + deviation * (density + z * win)).mean(axis=1)
        return value, win, density.mean(axis=1) / deviation[:, 0], half

    def value(self, X: Array) -> Array:
        """Return the expectation at the rows of X, (n,)."""
        return self._expected_maximum([each.moments(X) for each in self._joints])[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the expectation (n,) and its gradient in the items (n, d)."""
        parts = [joint.moments_and_pull_back(X) for joint in self._joints]
        value, win, slope, half = self._expected_maximum([moments for moments, _ in parts])
        n_draws = len(self._component)
        by_mean = np.zeros(parts[0][0].mean.shape)
        np.add.at(by_mean.T, self._component, win.T / n_draws)
        by_cov = win @ self._gain.T / n_draws - slope[:, None] * (half @ self._quantile_function)
        gradient = parts[0][1](by_mean, 0.5 * slope, by_cov[:, 0])
        for k, (_, pull_back) in enumerate(parts[1:], start=1):
            gradient = gradient + pull_back(np.zeros(by_mean.shape), 0.0, by_cov[:, k])
        return value, gradient
