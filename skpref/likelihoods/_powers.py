"""Powers of the probit's factor under a Gaussian: log normaliser, its derivatives, the variance.

All is in units of the noise: the factor is F(u) = Φ(u) of a half line, or the mass of a slab of
half the width w around u, the Gaussian N(u; centre, ratio).

- Where the Gaussian is narrow beside the noise, a power of the factor is nearly a Gaussian there:
  Gauss–Hermite rules about the product with the site that the whole factor would have.
- Elsewhere the trapezoidal rule, which converges geometrically, in t with u = a sinh t: the factor
  changes within the noise near the edge and ever more slowly away from it. Where the factor takes
  little away, 1 − F^power is integrated, so that what is small has all of its digits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from skpref._utils import Array, row_blocks
from skpref.likelihoods._normal import LOG_SQRT_2PI, log_slab, mills, slab


def _hermite(order):
    """Return points of a rule for a standard normal, and log weights in the place of ∫ dx."""
    points, weights = np.polynomial.hermite_e.hermegauss(order)
    return points, np.log(weights) + 0.5 * points**2


# Orders of the rules, and the ratios of variances up to which their errors are rounding alone.
_ORDERS, _RATIOS = (10, 18, 36), (0.1, 0.35, 1.0)
_RULES = [_hermite(order) for order in _ORDERS]
# The scale a on which the nodes of the trapezoidal rule spread, their distance in t at the edge,
# and at most in deviations where the integrand is largest.
_SCALE, _STEP, _SHARE = 2.0, 0.105, 0.36
# What lies where the integrand is below e to minus half of this is left out.
_DEPTH = 76.0
# Log of the probability of an answer, or squares of margins times power, that takes little away.
_LITTLE_LOST, _LITTLE_POWER = -0.7, 0.5
# Half a width above which the ends of a slab do not feel one another.
_NARROW_SLAB = 3.0


class PowerMoments(NamedTuple):
    """As `TiltedMoments` in units of the noise; ``edge`` is d log Z/dw of a slab, else 0."""

    log_normaliser: Array
    gradient: Array
    curvature: Array
    shrink: Array
    edge: Array


def moments(centre: Array, ratio: Array, power: Array, width: Array | None = None) -> PowerMoments:
    """Return moments of N(u; centre, ratio) F(u)^power.

    Parameters
    ----------
    centre, ratio, power : ndarray of shape (n,)
        The ratio is positive, the power in (0, 1).
    width : ndarray of shape (n,), optional
        Half the width of slabs, positive. None: half lines, F = Φ.

    Returns
    -------
    PowerMoments
    """
    values = PowerMoments(*np.empty((len(PowerMoments._fields), len(centre))))
    _by_blocks((_narrow_moments, _wide_moments), values, centre, ratio, power, width)
    return values


def log_normaliser(centre: Array, ratio: Array, power: Array, width: Array | None = None) -> Array:
    """Return the logarithm of the normaliser alone, see `moments`."""
    values = np.empty(len(centre))
    _by_blocks((_narrow_value, _wide_value), (values,), centre, ratio, power, width)
    return values


def _by_blocks(functions, found, centre, ratio, power, width):
    """Fill ``found`` by the function of narrow rows and a rule, and that of all others."""
    narrow, wide = functions
    tier = np.searchsorted(_RATIOS, ratio)
    for i in range(len(_RATIOS) + 1):
        at = np.flatnonzero(tier == i)
        for block in row_blocks(len(at), 4 * _ORDERS[min(i, len(_RULES) - 1)]):
            some = at[block]
            parts = centre[some], ratio[some], power[some], None if width is None else width[some]
            filled = narrow(_RULES[i], *parts) if i < len(_RULES) else wide(*parts)
            for whole, part in zip(found, filled, strict=True):
                whole[some] = part


# -- narrow Gaussians ------------------------------------------------------------------------


class _Rule(NamedTuple):
    """Nodes and log weights, both (n, order), of the integral over a Gaussian; nodes − centre."""

    nodes: Array
    off: Array
    log_weights: Array


def _rule(rule, centre, ratio, power, width):
    """Return the rule about the Gaussian times the power of the whole factor's site there."""
    points, log_weights = rule
    total = 1.0 + ratio
    scale = np.sqrt(total)
    whole = _factor(centre / scale, None if width is None else width / scale)
    shrink = (1.0 + ratio * np.maximum(whole.left, 0.0)) / total
    variance = ratio / (1.0 + power * ratio * whole.curvature / (total * shrink))
    deviation = np.sqrt(variance)
    off = (variance * power * whole.gradient / (scale * shrink))[:, None] + deviation[
        :, None
    ] * points
    narrower = 0.5 * np.log(variance / ratio)[:, None]
    log_weights = log_weights + narrower - 0.5 * off**2 / ratio[:, None]
    return _Rule(centre[:, None] + off, off, log_weights - LOG_SQRT_2PI)


class _LogFactor(NamedTuple):
    """log F and its derivatives in u, of which ``left`` is one minus ``curvature``, and in w."""

    value: Array
    gradient: Array
    curvature: Array
    left: Array
    edge: Array


def _factor(u, width):
    if width is None:
        at = mills(u)
        return _LogFactor(at.value, at.ratio, at.curvature, at.left, np.zeros(u.shape))
    of = slab(u, width)
    return _LogFactor(of.value, of.gradient, of.curvature, of.left, of.edge)


def _narrow_value(rule, centre, ratio, power, width):
    at = _rule(rule, centre, ratio, power, width)
    height = at.log_weights + power[:, None] * _log_factor(at.nodes, width)
    top = height.max(axis=1)
    return (top + np.log(np.exp(height - top[:, None]).sum(axis=1)),)


def _narrow_moments(rule, centre, ratio, power, width):
    """Return `PowerMoments` by averages of the factor's derivatives: differences lose digits."""
    at, shape = _rule(rule, centre, ratio, power, width), (len(centre), len(rule[0]))
    u = at.nodes.ravel()
    factor = _factor(u, None if width is None else np.repeat(width, shape[1]))
    height = at.log_weights + power[:, None] * factor.value.reshape(shape)
    gradient = power[:, None] * factor.gradient.reshape(shape)
    top = height.max(axis=1)
    density = np.exp(height - top[:, None])
    total = density.sum(axis=1)
    density /= total[:, None]
    slope = np.sum(density * gradient, axis=1)
    shift = np.sum(density * at.off, axis=1)
    both = (gradient - slope[:, None]) * (at.off - shift[:, None])
    curvature = -np.sum(density * both, axis=1) / ratio
    edge = power * np.sum(density * factor.edge.reshape(shape), axis=1)
    shrink = np.clip(1.0 - ratio * curvature, 1e-300, 1.0)
    return top + np.log(total), slope, curvature, shrink, edge


# -- wide Gaussians --------------------------------------------------------------------------


class _Trapezoid(NamedTuple):
    """Nodes of all rows, one after the other, and the logarithm of F^power and N(u) du there.

    ``complement`` says of which rows 1 − F^power is integrated, ``begins`` where each begins,
    ``side`` is −1 where the row has been turned round.
    """

    nodes: Array
    row: NDArray[np.intp]
    begins: NDArray[np.intp]
    away: Array
    factor: Array
    log_weights: Array
    complement: NDArray[np.bool_]
    side: Array


def _trapezoid(centre, ratio, power, width):
    edge = 0.0 if width is None else width
    side = np.ones(len(centre))
    if width is not None:  # slabs are even: let the lower edge be the nearer one
        side = np.where(centre > 0.0, -1.0, 1.0)
        centre = -np.abs(centre)
    low, high, largest, deviation, complement = _range(centre, ratio, power, width)
    ends = _to_t(low, edge), _to_t(high, edge)
    step = np.minimum(
        _STEP * _SCALE * _density(edge, edge), _SHARE * deviation * _density(largest, edge)
    )
    n_steps = np.ceil((ends[1] - ends[0]) / step).astype(np.intp)
    step = (ends[1] - ends[0]) / n_steps
    begins = np.cumsum(n_steps + 1) - (n_steps + 1)
    row = np.repeat(np.arange(len(centre)), n_steps + 1)
    t = ends[0][row] + step[row] * (np.arange(len(row)) - begins[row])
    own = edge if width is None else width[row]
    nodes = _from_t(t, own)
    away = (nodes - centre[row]) / np.sqrt(ratio)[row]
    factor = power[row] * _log_factor(nodes, None if width is None else own)
    constant = np.log(step) - 0.5 * np.log(ratio) - LOG_SQRT_2PI
    log_weights = constant[row] - np.log(_density(nodes, own)) - 0.5 * away**2
    return _Trapezoid(nodes, row, begins, away, factor, log_weights, complement, side)


def _to_t(u, edge):
    return np.arcsinh((u - edge) / _SCALE) + np.arcsinh((u + edge) / _SCALE)


def _density(u, edge):
    """Return dt/du at nodes."""
    return 1.0 / np.hypot(_SCALE, u - edge) + 1.0 / np.hypot(_SCALE, u + edge)


def _from_t(t, edge):
    return _SCALE * np.tanh(0.5 * t) * np.hypot(np.cosh(0.5 * t), edge / _SCALE)


def _range(centre, ratio, power, width):
    """Return ends, mode and deviation of the integrand, and whether it is that of 1 − F^power.

    Of slabs the centre is at most 0. All are estimates, which the distance of nodes is found by.
    """
    edge = 0.0 if width is None else width
    inside, scale = centre + edge, np.sqrt(1.0 + ratio)
    whole = _log_factor(centre / scale, None if width is None else width / scale)
    outside = np.minimum(inside, 0.0)
    complement = whole > _LITTLE_LOST
    complement |= power * (1.0 + ratio + outside**2) < _LITTLE_POWER
    spread, reach = np.sqrt(ratio), np.sqrt(_DEPTH * ratio)
    # Of 1 − F^power: about the nearer edge, or all of the Gaussian if that is outside
    about = np.sqrt(np.maximum(inside, 0.0) ** 2 + _DEPTH * ratio)
    beyond = np.sqrt(_DEPTH)
    low, high = centre - about, centre + about
    if width is None:
        high = np.minimum(high, np.maximum(centre, 0.0) / (1.0 + ratio) + beyond)
    # It is largest between the edge and the Gaussian's mean, if that is inside; where far from the
    # edge, nearly a Gaussian and next to nothing
    within = np.maximum(inside, 0.0) / (1.0 + ratio) + outside - edge
    narrower = np.where(inside > 0.0, spread / scale, spread)
    deep = within + edge > 1.25 * beyond
    low = np.where(deep, within - 1.25 * beyond * narrower, low)
    high = np.where(deep, within + 1.25 * beyond * narrower, high)
    # Of F^power: with φ/Φ(x) about (√(x² + 3) − x)/2 the mode is the root of a square
    a = 2.0 / (power * ratio)
    b, c = a + 1.0, a * inside
    root = (b * c + np.sqrt(c * c + 3.0 * (b - 1.0) * (b + 1.0))) / ((b - 1.0) * (b + 1.0))
    mode = np.minimum(root, 0.0) - edge
    narrow_mode = mode  # of a narrow slab, which is nearly a Gaussian
    if width is not None:
        narrow_mode = np.where(width < _NARROW_SLAB, centre / (1.0 + power * ratio), mode)
    deviation = 1.0 / np.sqrt(1.0 / ratio + 0.6 * power)
    below = np.maximum(np.minimum(mode, narrow_mode) - beyond * deviation, centre - reach)
    above = np.maximum(mode, narrow_mode) + beyond * deviation
    crossed = centre + np.sqrt(outside**2 + _DEPTH * ratio)
    if width is not None:
        crossed = np.minimum(crossed, width + beyond * deviation)
    above = np.where(above < -edge, above, crossed)
    return (
        np.where(complement, low, below),
        np.where(complement, high, above),
        np.where(complement, within, np.minimum(mode, narrow_mode)),
        np.where(complement, narrower, deviation),
        complement,
    )


def _normaliser(at):
    """Return the integrand at the nodes, log of what was taken out of it, normaliser."""
    inverse, top = at.complement[at.row], np.zeros(len(at.begins))
    height = at.log_weights + at.factor
    direct = ~at.complement
    top[direct] = np.maximum.reduceat(height, at.begins)[direct]
    density = np.exp(np.where(inverse, at.log_weights, height - top[at.row]))
    density[inverse] *= -np.expm1(at.factor[inverse])
    total = np.add.reduceat(density, at.begins)
    return density, top, top + np.log1p(np.where(at.complement, -total, total - 1.0))


def _wide_value(centre, ratio, power, width):
    return (_normaliser(_trapezoid(centre, ratio, power, width))[2],)


def _wide_moments(centre, ratio, power, width):
    at = _trapezoid(centre, ratio, power, width)
    density, top, log_normaliser = _normaliser(at)
    sign = np.where(at.complement, -1.0, 1.0) * np.exp(top - log_normaliser)
    shift = sign * np.add.reduceat(density * at.away, at.begins)
    # 1 − the tilted variance over the Gaussian's: what is taken away, or by the difference
    moved = np.where(at.complement, 0.0, shift)[at.row]
    square = (at.away - moved) ** 2 - at.complement[at.row]
    second = sign * np.add.reduceat(density * square, at.begins)
    lost = np.where(at.complement, shift**2 - second, 1.0 - second)
    curvature = lost / ratio
    shrink = np.clip(np.where(at.complement, 1.0 - lost, second), 1e-300, 1.0)
    edge = np.zeros(len(centre))
    if width is not None:
        u, own = np.abs(at.nodes), width[at.row]
        ends = -0.5 * (u - own) ** 2 - LOG_SQRT_2PI + np.log1p(np.exp(-2.0 * u * own))
        share = at.log_weights + at.factor - log_normaliser[at.row]
        share += ends - at.factor / power[at.row]
        edge = power * np.add.reduceat(np.exp(share), at.begins)
    return log_normaliser, at.side * shift / np.sqrt(ratio), curvature, shrink, edge


def _log_factor(u, width):
    """Return log F at nodes, whose last axis is that of a row if there are two."""
    if width is None:
        return log_ndtr(u)
    return log_slab(u.ravel(), np.repeat(width, u.size // len(width))).reshape(u.shape)
