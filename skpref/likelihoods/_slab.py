"""The normal distribution's mass on a slab, P(−w < c + e < w), and its logarithm's derivatives.

Without loss c ≥ 0. The mass is Φ(b) − Φ(a) with a = −w − c and b = w − c, so |a| ≥ |b|, and the
smaller tail is the one below. With ρ = Φ(a)/Φ(b):

- Where ρ is small, the mass is Φ(b) less a part of it. With the weights p = 1/(1 − ρ) and
  q = −ρ/(1 − ρ), which sum to 1, its derivatives are mixtures of those of log Φ at b and at a.
- Elsewhere the slab is narrow against the decay within it, and Gauss–Legendre quadrature on it is
  exact to rounding, however narrow it is and however far out; moments are sums of positive terms.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from skpref.likelihoods._mills import mills

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_NARROW = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NODES, _WEIGHTS = _NODES[8:, None], _WEIGHTS[8:, None]  # of the upper half; weights sum to 1


class Slab(NamedTuple):
    """log P(−w < c + e < w) of a standard normal e, and its derivatives.

    ``gradient`` is d/dc, ``curvature`` −d²/dc², ``left`` one minus that, ``third`` d³/dc³;
    ``edge`` is d/dw, ``edge_gradient`` d²/dw dc and ``edge_curvature`` −d³/dw dc².
    """

    value: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]
    left: NDArray[np.float64]
    third: NDArray[np.float64]
    edge: NDArray[np.float64]
    edge_gradient: NDArray[np.float64]
    edge_curvature: NDArray[np.float64]


def slab(centre: NDArray[np.float64], width: NDArray[np.float64]) -> Slab:
    """All of `Slab`, to nearly full relative precision.

    Parameters
    ----------
    centre : ndarray of shape (n,)
    width : ndarray of shape (n,)
        Half of the slab's width; positive.
    """
    c, side = np.abs(centre), np.sign(centre)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        found, ratio = _difference(c, width)
        narrow = ratio > _NARROW
        if np.any(narrow):
            for whole, part in zip(found, _integral(c[narrow], width[narrow]), strict=True):
                whole[narrow] = part
    for odd in (found.gradient, found.third, found.edge_gradient):
        odd *= side
    return found


def _difference(c, w):
    """From both tails; and ρ, above `_NARROW` of which digits are lost to cancellation."""
    a, b = -w - c, w - c
    above, below = mills(b), mills(a)
    share = np.exp(-2.0 * w * c)  # φ(a)/φ(b)
    rho = share * above.ratio / below.ratio
    rest = 1.0 - rho
    p, q, pq = 1.0 / rest, -rho / rest, -rho / rest**2
    # u + r has full precision in the tails, and so has the difference of the r.
    reach = [np.where(u > 0.0, u + at.ratio, at.curvature / at.ratio)
             for u, at in ((b, above), (a, below))]  # fmt: skip
    apart = reach[0] - reach[1] - 2.0 * w  # r(b) − r(a)
    bent = above.left - below.left  # minus the difference of their slopes, −k(b) + k(a)
    gradient = above.ratio * -np.expm1(-2.0 * w * c) * p
    inside = b > 0.0  # there every term is positive
    curvature = np.where(
        inside,
        above.ratio * (b - a * share) * p + gradient**2,
        p * above.curvature + q * below.curvature - pq * apart**2,
    )
    left = np.where(inside, 1.0 - curvature, p * above.left + q * below.left + pq * apart**2)
    third = p * above.third + q * below.third + pq * apart * (3.0 * bent + (q - p) * apart**2)
    both = above.ratio + below.ratio
    edge = above.ratio * (1.0 + share) * p
    slope = q * below.curvature - p * above.curvature + pq * apart * both
    bend = p * above.third - q * below.third
    bend -= 2.0 * pq * apart * (above.curvature + below.curvature)
    bend += pq * ((q - p) * apart**2 + bent) * both
    value = log_ndtr(b) + np.log1p(-rho)
    # Derivatives so far are those in a shift of both ends, which is minus c.
    return Slab(value, -gradient, curvature, left, -third, edge, -slope, -bend), rho


def _integral(c, w):
    """By quadrature of φ(c) exp(c t − t²/2) over −w < t < w, nodes in pairs; e is t − c."""
    t = w * _NODES
    weight = _WEIGHTS * np.exp(-0.5 * t * t)
    up, down = 0.5 * weight * np.exp(c * t), 0.5 * weight * np.exp(-c * t)
    mass = (up + down).sum(axis=0)
    centre = (weight * t * np.sinh(c * t)).sum(axis=0) / mass
    ahead, behind = t - centre, -t - centre
    up, down = up * ahead * ahead, down * behind * behind
    left = (up + down).sum(axis=0) / mass
    third = (up * ahead + down * behind).sum(axis=0) / mass
    value = np.log(2.0 * w * mass) - 0.5 * c * c - _LOG_SQRT_2PI
    ends = np.tanh(c * w)
    edge = np.exp(-0.5 * w * w) * np.cosh(c * w) / (w * mass)
    off = w * ends - centre
    bend = edge * (off**2 + w * w * (1.0 - ends**2) - left)
    return Slab(value, centre - c, 1.0 - left, left, third, edge, edge * off, -bend)
