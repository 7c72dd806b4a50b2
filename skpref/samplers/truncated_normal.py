"""Univariate standard normal on an interval: exact draws at any truncation points, no loops."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, ndtri_exp

from skpref.samplers._chains import check_generator

# Up to here Φ(−lower) times the smallest uniform is a normal number (Φ(−37) ~ 6e-300), and ndtri is
# exact to rounding; it is several times faster than working with logarithms.
TAIL = 36.0
# Slabs narrower than this have a density exponential to better than one part in 10¹⁰, while the
# difference of Φ at their ends begins to lose digits.
_NARROW = 1e-5


def truncated_normal(
    lower: ArrayLike,
    rng: np.random.Generator,
    size: int | tuple[int, ...] | None = None,
    upper: ArrayLike | None = None,
) -> np.ndarray:
    """Draw x ~ N(0, 1) given lower <= x <= upper.

    By inversion of the survival function Q: Q(x) = Q(upper) + u (Q(lower) − Q(upper)) with u
    uniform on (0, 1]; without an upper end x = −Φ⁻¹(u Φ(−lower)). Differences are taken in the
    smaller tail, by Mills' ratio far out, and of narrow slabs in closed form. One uniform a draw.

    Parameters
    ----------
    lower : float or ndarray
        Truncation points, in standard deviations; −inf is allowed (no truncation).
    rng : numpy.random.Generator
    size : int or tuple of int, optional
        Shape of the result, to which `lower` and `upper` are broadcast; by default the shape of
        both together.
    upper : float or ndarray, optional
        Truncation points above, not below `lower`; +inf and None: no truncation.

    Returns
    -------
    ndarray of shape `size`
        Never below `lower` nor above `upper`.

    Raises
    ------
    ValueError
        If `lower` holds NaN or +inf, `upper` NaN or −inf, or an interval is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import truncated_normal
    >>> x = truncated_normal(30.0, np.random.default_rng(0), size=1000)
    >>> bool(x.min() >= 30.0), bool(abs(x.mean() - 30.0333) < 0.01)
    (True, True)
    >>> x = truncated_normal(-1.0, np.random.default_rng(0), size=1000, upper=1.0)
    >>> bool(np.abs(x).max() <= 1.0), bool(abs(x.var() - 0.2911) < 0.03)
    (True, True)
    """
    lower = np.asarray(lower, dtype=np.float64)
    if np.isnan(lower).any() or np.isposinf(lower).any():
        raise ValueError("lower holds NaN or +inf; finite numbers and -inf are allowed.")
    check_generator(rng)
    if upper is None:
        uniform = _draw_uniforms(rng, lower.shape if size is None else size)
        lower = np.broadcast_to(lower, uniform.shape)
        return np.maximum(lower, -quantile_below(-lower, uniform))

    upper = np.asarray(upper, dtype=np.float64)
    if np.isnan(upper).any() or np.isneginf(upper).any():
        raise ValueError("upper holds NaN or -inf; finite numbers and +inf are allowed.")
    if size is None:
        size = np.broadcast_shapes(lower.shape, upper.shape)
    uniform = _draw_uniforms(rng, size)
    lower, upper = (np.broadcast_to(x, uniform.shape) for x in (lower, upper))
    if (lower > upper).any():
        where = np.unravel_index(int((lower > upper).argmax()), lower.shape)
        raise ValueError(
            f"the interval from lower = {lower[where]:g} to upper = {upper[where]:g} is empty; "
            "lower <= upper is needed."
        )
    return quantile_between(lower, upper, uniform)


def _draw_uniforms(rng, shape):
    return np.asarray(1.0 - rng.random(shape))  # (0, 1]: 0 would give inf


def quantile_between(lower: np.ndarray, upper: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return x with Q(x) = Q(upper) + u (Q(lower) − Q(upper)), Q = 1 − Φ.

    Parameters
    ----------
    lower, upper, uniform : ndarray of equal shape
        Ends, lower <= upper, and probabilities in (0, 1].

    Returns
    -------
    ndarray of the same shape
        In [lower, upper]. With only one end finite: by `quantile_below` from that end.
    """
    x = np.empty(uniform.shape)
    below, above = np.isneginf(lower), np.isposinf(upper)
    with np.errstate(over="ignore"):
        narrow = ~(below | above) & (upper - lower < _NARROW)
    slab = ~(below | above | narrow)
    cases = (
        (above, lambda a, b, u: -quantile_below(-a, u)),
        (below & ~above, lambda a, b, u: quantile_below(b, u)),
        (narrow, _narrow_quantile),
        (slab, _slab_quantile),
    )
    for where, quantile in cases:
        if where.all():
            x = np.asarray(quantile(lower, upper, uniform))
            break
        if where.any():
            x[where] = quantile(lower[where], upper[where], uniform[where])
    return np.clip(x, lower, upper)


def _narrow_quantile(lower, upper, uniform):
    """Return the quantile of a density exp(−κ s) on a slab, κ its middle, s from the near end."""
    flip = lower < -upper  # more of it is below 0: seen from there, u turned round with it
    near = np.where(flip, -upper, lower)
    width = upper - lower
    rate = near + 0.5 * width
    # 1 − u of the mass lies between `near` and x, or u where the slab is flipped.
    share = np.where(flip, uniform, 1.0 - uniform)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = -np.log1p(share * np.expm1(-rate * width)) / rate
    # Φ is linear up to rounding where the rate is nothing.
    step = np.where(rate * width < 1e-15, share * width, step)
    x = near + np.minimum(step, width)
    return np.where(flip, -x, x)


def _slab_quantile(lower, upper, uniform):
    """Return the quantile between two finite ends, by Φ from the tail that is further out."""
    flip = lower > -upper  # mirrored, so that Φ is small and its differences are exact
    low, high = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    share = np.where(flip, uniform, 1.0 - uniform)  # of the mass, below x
    base = ndtr(low)
    x = np.asarray(ndtri(base + share * (ndtr(high) - base)))
    far = high < -TAIL
    if far.any():
        x[far] = -_far_quantile(-high[far], -low[far], share[far])
    return np.where(flip, -x, x)


def _far_quantile(lower, end, share):
    """Return the point beyond which ``share`` of the mass between near > 36 and end lies.

    At near + s there is left Q(near + s)/Q(near) = exp(−near s − s²/2) M(near + s)/M(near), with
    Mills' ratio M; no logarithm of Q is taken, which far out has lost the digits that s needs.
    """
    root2 = np.sqrt(2.0)
    mills = erfcx(lower / root2)

    def log_left(s):
        return np.log(erfcx((lower + s) / root2) / mills) - s * (lower + 0.5 * s)

    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        wide = log_left(end - lower)
        missing = np.where(wide > -np.inf, -np.expm1(wide), 1.0)  # 0/0 where M ends as 0
        log_target = np.maximum(np.log1p((share - 1.0) * missing), wide)
        step = -log_target / lower
        for _ in range(5):
            hazard = np.sqrt(2.0 / np.pi) / erfcx((lower + step) / root2)
            step = step + (log_left(step) - log_target) / hazard
    return lower + np.where(step >= 0, step, 0.0)  # NaN: so far out that all is at `lower`


def quantile_below(upper: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return the quantile Φ⁻¹(u Φ(upper)) of N(0, 1) given x <= upper.

    Parameters
    ----------
    upper, uniform : ndarray of equal shape
        Truncation points, and probabilities in (0, 1].

    Returns
    -------
    ndarray of the same shape
    """
    x = np.asarray(ndtr(upper))
    x *= uniform
    ndtri(x, out=x)
    if x.size and upper.min() < -TAIL:
        far = upper < -TAIL
        x[far] = ndtri_exp(log_ndtr(upper[far]) + np.log(uniform[far]))
        np.copyto(x, upper, where=np.isneginf(x))  # log Φ overflows; a draw is at its bound
    return x
