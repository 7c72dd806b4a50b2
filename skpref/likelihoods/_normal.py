"""The normal distribution: its ratio φ/Φ and its mass on a slab, to full precision in the tails."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from skpref._utils import PANEL_NODES, PANEL_WEIGHTS, row_blocks

LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
# Below this u + φ/Φ would cancel; at this depth the continued fraction is exact to rounding.
_FAR = -4.0
_DEPTH = 45


class Mills(NamedTuple):
    """r = φ(u)/Φ(u), r (u + r) = −d²log Φ/du², one minus that, d³log Φ/du³, and log Φ."""

    ratio: np.ndarray
    curvature: np.ndarray
    left: np.ndarray
    third: np.ndarray
    value: np.ndarray


def mills(u: np.ndarray) -> Mills:
    """Return `Mills` to nearly full relative precision, however negative u is."""
    u = np.asarray(u, dtype=np.float64)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        tail = ndtr(-np.abs(u))
        above = u > 0.0
        mass = np.where(above, 1.0 - tail, tail)
        ratio = np.asarray(np.exp(-0.5 * u * u - LOG_SQRT_2PI) / mass)
        value = np.asarray(np.where(above, np.log1p(-tail), np.log(mass)))
        curvature = np.asarray(ratio * (u + ratio))
        residual_variance = np.asarray(1.0 - curvature)
        third = np.asarray(curvature * (u + 2.0 * ratio) - ratio)  # dr/du = −r (u + r)
    far = np.asarray(u < _FAR)
    if np.any(far):
        x = -u[far]
        # r = x + t with t = 1/(x + 2/(x + 3/(x + …))), Abramowitz and Stegun (26.2.14)
        after = np.zeros_like(x)
        for k in range(_DEPTH, 2, -1):
            after = k / (x + after)
        then = 2.0 / (x + after)
        t = 1.0 / (x + then)
        ratio[far] = x + t
        value[far] = -0.5 * x * x - LOG_SQRT_2PI - np.log(x + t)
        # With t (x + then) = 1 every difference below is of terms of unlike size.
        residual_variance[far] = t * (then - t)
        curvature[far] = 1.0 - residual_variance[far]
        third[far] = curvature[far] * t * then * (after - then)
    return Mills(ratio, curvature, residual_variance, third, value)


# Below this, 2 w c + w², the mass beyond the slab is more than a tenth of that above its lower
# end, so that digits would be lost to cancellation; above it, the nodes of the quadrature are few.
_NARROW = np.log(10.0)


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
    """Return `Slab` to nearly full relative precision.

    Parameters
    ----------
    centre : ndarray of shape (n,)
    width : ndarray of shape (n,)
        Half of the slab's width; positive.
    """
    c, side = np.abs(centre), np.sign(centre)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        narrow = width * (2.0 * c + width) < _NARROW
        values = Slab(*np.empty((len(Slab._fields), *c.shape)))
        for is_some, of in ((narrow, _slab_by_quadrature), (~narrow, _slab_by_tails)):
            rows = np.flatnonzero(is_some)
            for block in row_blocks(len(rows), len(PANEL_NODES)):
                some = rows[block]
                for whole, part in zip(values, of(c[some], width[some]), strict=True):
                    whole[some] = part
    for odd in (values.gradient, values.third, values.edge_gradient):
        odd *= side
    return values


def _slab_by_tails(c, w):
    """Return log P(slab) and derivatives as a difference of both tails."""
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
    residual_variance = np.where(
        inside, 1.0 - curvature, p * above.left + q * below.left + pq * apart**2
    )
    third = p * above.third + q * below.third + pq * apart * (3.0 * bent + (q - p) * apart**2)
    both = above.ratio + below.ratio
    edge = above.ratio * (1.0 + share) * p
    slope = q * below.curvature - p * above.curvature + pq * apart * both
    bend = p * above.third - q * below.third
    bend -= 2.0 * pq * apart * (above.curvature + below.curvature)
    bend += pq * ((q - p) * apart**2 + bent) * both
    value = above.value + np.log1p(-rho)
    # Derivatives so far are those in a shift of both ends, which is minus c.
    return Slab(value, -gradient, curvature, residual_variance, -third, edge, -slope, -bend)


def _slab_by_quadrature(c, w):
    """Return `Slab` by Gauss–Legendre quadrature of φ(c) exp(c t − t²/2) over −w < t < w."""
    # Of the upper half; weights sum to 1.
    upper = PANEL_NODES > 0.0
    nodes, weights = PANEL_NODES[upper, None], PANEL_WEIGHTS[upper, None]
    weight = weights * np.exp(-0.5 * (nodes * w) ** 2)
    more = np.expm1(nodes * (c * w))
    down = 1.0 / (1.0 + more)
    # Twice cosh and sinh of c t: both to full relative precision, at c of 0 too.
    even, odd = weight * (1.0 + more + down), weight * (more + more * down)
    mass, second = even.sum(axis=0), (nodes**2).T[0] @ even
    first, third = nodes.T[0] @ odd, (nodes**3).T[0] @ odd
    # Moments of t, in units of w
    centre, second, third = first / mass, second / mass, third / mass
    residual_variance = w * w * (second - centre * centre)
    third = w * w * w * (third - centre * (3.0 * second - 2.0 * centre * centre))
    centre = w * centre
    value = np.log(w * mass) - 0.5 * c * c - LOG_SQRT_2PI
    ends = np.tanh(c * w)
    edge = 2.0 * np.exp(-0.5 * w * w) * np.cosh(c * w) / (w * mass)
    off = w * ends - centre
    bend = edge * (off**2 + w * w * (1.0 - ends**2) - residual_variance)
    return Slab(
        value,
        centre - c,
        1.0 - residual_variance,
        residual_variance,
        third,
        edge,
        edge * off,
        -bend,
    )


def standardise(
    mean: NDArray[np.float64], variance: NDArray[np.float64], noise: float = 0.0
) -> NDArray[np.float64]:
    """Divide a margin's mean by its standard deviation; a margin that is surely zero gives 0."""
    total = variance + noise
    sure = total <= 0.0
    ratio = mean / np.sqrt(np.where(sure, 1.0, total))
    return np.where(sure, np.where(mean == 0.0, 0.0, np.copysign(np.inf, mean)), ratio)


def sign_proba(
    mean: NDArray[np.float64], variance: NDArray[np.float64], log: bool = False
) -> NDArray[np.float64]:
    """Return P(margin > 0), or its logarithm, finite in the tails.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.likelihoods import sign_proba
    >>> sign_proba(np.array([0.0, 1.0]), np.array([1.0, 1.0])).round(3)
    array([0.5  , 0.841])
    >>> sign_proba(np.array([-40.0]), np.array([1.0]), log=True).round(1)
    array([-804.6])
    """
    u = standardise(mean, variance)
    return log_ndtr(u) if log else ndtr(u)
