"""Linear elliptical slice sampling of N(0, Σ) on v > 0, chains side by side; for comparison.

Gessner, Kanjilal & Hennig (2020), "Integrals over Gaussians under linear domain constraints",
AISTATS.
"""

import numpy as np

from skpref._utils import check_number
from skpref.samplers._chains import (
    SMALLEST,
    Chains,
    check_generator,
    cholesky_factor,
    start_positions,
)


def liness(
    covariance: np.ndarray,
    start: np.ndarray,
    n_draws: int,
    *,
    rng: np.random.Generator,
    n_chains: int | None = None,
) -> Chains:
    """Draw from N(0, Σ) on v > 0 by rejection-free elliptical slice sampling.

    On the ellipse v cos θ + ν sin θ with ν ~ N(0, Σ) coordinate i is r_i cos(θ − φ_i), r_i > 0,
    φ_i = atan2(ν_i, v_i): positive for θ within π/2 of φ_i. All these half circles contain θ = 0,
    hence they meet in one arc, (max φ − π/2, min φ + π/2), on which θ is uniform.

    Parameters
    ----------
    covariance : ndarray of shape (t, t)
        Σ, symmetric positive definite.
    start : ndarray of shape (t,) or (n_chains, t)
        Strictly positive starting positions.
    n_draws : int
        Draws of each chain.
    rng : numpy.random.Generator
    n_chains : int, optional
        Chains side by side; by default as many as `start` has rows.

    Returns
    -------
    Chains

    Raises
    ------
    ValueError
        If the covariance is not positive definite, or `start` or a number is out of range.

    References
    ----------
    Gessner, Kanjilal & Hennig (2020), AISTATS, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import liness
    >>> chains = liness(np.eye(2), np.ones(2), 500, n_chains=16, rng=np.random.default_rng(0))
    >>> bool(np.allclose(chains.draws.mean(axis=(0, 1)), np.sqrt(2 / np.pi), atol=0.05))
    True
    """
    covariance, factor = cholesky_factor(covariance)
    t = len(covariance)
    check_number("n_draws", n_draws, low=1, integer=True)
    check_generator(rng)
    v = start_positions(start, n_chains, t)
    n_chains = len(v)
    draws = np.empty((n_chains, n_draws, t))
    for k in range(n_draws):
        direction = rng.standard_normal((n_chains, t)) @ factor.T
        slope = direction / v  # tan φ_i; v_i > 0, so the order of the angles is that of the slopes
        begin = np.arctan(slope.max(axis=1)) - np.pi / 2
        end = np.arctan(slope.min(axis=1)) + np.pi / 2
        angle = begin + (end - begin) * rng.random(n_chains)
        v = v * np.cos(angle)[:, None] + direction * np.sin(angle)[:, None]
        np.maximum(v, SMALLEST, out=v)  # the ends of the arc are exact up to rounding
        draws[:, k] = v
    return Chains(draws, draws[:, -1].copy())
