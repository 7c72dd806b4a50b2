"""Univariate standard normal truncated below: exact draws at any truncation point, no loops."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from skpref.samplers._chains import check_generator

# Up to here Φ(−lower) times the smallest uniform is a normal number (Φ(−37) ~ 6e-300), and ndtri is
# exact to rounding; it is several times faster than working with logarithms.
_TAIL = 36.0
# From here on, long before log Φ overflows, a draw and its bound are the same double.
_FARTHEST = 1e100


def truncated_normal(
    lower: ArrayLike, rng: np.random.Generator, size: int | tuple[int, ...] | None = None
) -> np.ndarray:
    """Draw x ~ N(0, 1) given x >= lower.

    By inversion of the survival function: 1 − Φ(x) = u (1 − Φ(lower)) with u uniform on (0, 1],
    that is x = −Φ⁻¹(u Φ(−lower)), and the same in logarithms in the far tail. One uniform a draw.

    Parameters
    ----------
    lower : float or ndarray
        Truncation points, in standard deviations; −inf is allowed (no truncation).
    rng : numpy.random.Generator
    size : int or tuple of int, optional
        Shape of the result, to which `lower` is broadcast; by default the shape of `lower`.

    Returns
    -------
    ndarray of shape `size`
        Never below `lower`.

    Raises
    ------
    ValueError
        If `lower` holds NaN or +inf.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers import truncated_normal
    >>> x = truncated_normal(30.0, np.random.default_rng(0), size=1000)
    >>> bool(x.min() >= 30.0), bool(abs(x.mean() - 30.0333) < 0.01)
    (True, True)
    """
    lower = np.asarray(lower, dtype=np.float64)
    if np.isnan(lower).any() or np.isposinf(lower).any():
        raise ValueError("lower holds NaN or +inf; finite numbers and -inf are allowed.")
    check_generator(rng)
    shape = lower.shape if size is None else size
    uniform = np.asarray(1.0 - rng.random(shape))  # (0, 1]: 0 would give inf
    lower = np.broadcast_to(lower, uniform.shape)
    return np.maximum(lower, -quantile_below(-lower, uniform))


def quantile_below(upper: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Quantile Φ⁻¹(u Φ(upper)) of N(0, 1) given x <= upper.

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
    if x.size and upper.min() < -_TAIL:
        far = upper < -_TAIL
        bound = np.maximum(upper[far], -_FARTHEST)
        x[far] = ndtri_exp(log_ndtr(bound) + np.log(uniform[far]))
        np.copyto(x, upper, where=upper < -_FARTHEST)
    return x
