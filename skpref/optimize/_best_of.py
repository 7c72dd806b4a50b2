"""The expected utility of the best of several items, as a function of one of them (qEUBO)."""

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from skpref._linalg import NEGLIGIBLE, Array, cholesky, floor_variance, solve_lower
from skpref._posterior import Posterior

_DRAWS = 256
_ROOT_2PI = np.sqrt(2.0 * np.pi)


def common_normals(n_members: int, n_components: int, rng: np.random.Generator) -> Array:
    """Standard normals (n_draws, n_members) for every set of one question.

    They fill space evenly (scrambled Sobol points), and each component has as many.
    """
    n = n_components * -(-_DRAWS // n_components)
    points = qmc.Sobol(n_members, rng=rng).random(1 << (n - 1).bit_length())[:n]
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
        self._inverse = solve_lower(root, np.eye(len(members)))
        normals = normals[:, : len(members)]
        means = posterior.component_means(members)[:, self._component]
        self._best = (means + root @ normals.T).max(axis=0)
        self._gain = self._inverse.T @ normals.T  # K⁻¹ (f − mean) of the members

    def _parts(self, all_moments):
        cov = np.stack([each.cov for each in all_moments], axis=1)
        var = all_moments[0].var
        half = cov @ self._inverse.T
        left = floor_variance(var - np.einsum("ij,ij->i", half, half), var, NEGLIGIBLE)
        deviation = np.sqrt(left)[:, None]
        mean = all_moments[0].mean[:, self._component] + cov @ self._gain
        z = (mean - self._best) / deviation
        win, density = ndtr(z), np.exp(-0.5 * z * z) / _ROOT_2PI
        value = (self._best + deviation * (density + z * win)).mean(axis=1)
        return value, win, density.mean(axis=1) / deviation[:, 0], half

    def value(self, X: Array) -> Array:
        """The expectation at the rows of X, (n,)."""
        return self._parts([each.moments(X) for each in self._joints])[0]

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """The expectation (n,) and its gradient in the items (n, d)."""
        found = [each.moments_and_pull_back(X) for each in self._joints]
        value, win, slope, half = self._parts([moments for moments, _ in found])
        n_draws = len(self._component)
        by_mean = np.zeros(found[0][0].mean.shape)
        np.add.at(by_mean.T, self._component, win.T / n_draws)
        by_cov = win @ self._gain.T / n_draws - slope[:, None] * (half @ self._inverse)
        gradient = found[0][1](by_mean, 0.5 * slope, by_cov[:, 0])
        for k, (_, pull_back) in enumerate(found[1:], start=1):
            gradient = gradient + pull_back(np.zeros(by_mean.shape), 0.0, by_cov[:, k])
        return value, gradient
