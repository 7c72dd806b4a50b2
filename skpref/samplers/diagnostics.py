"""Convergence diagnostics of Markov chains, for all coordinates at once.

Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and
localization: an improved R̂ for assessing convergence of MCMC", Bayesian Analysis 16.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

from skpref._utils import BLOCK


def rhat(draws: ArrayLike) -> np.ndarray:
    """Return the rank-normalised split-R̂: the larger of the bulk's and the folded (scale) one.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, ...)
        At least 4 draws a chain. One chain is allowed: its halves are compared.

    Returns
    -------
    ndarray of the trailing shape of `draws`
        NaN where a coordinate is constant or not finite. Above 1.01 the chains have not mixed.

    Raises
    ------
    ValueError
        If `draws` has fewer than two dimensions or fewer than 4 draws.

    References
    ----------
    Vehtari et al. (2021), (4), (13), (14) and section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers.diagnostics import rhat
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 2))
    >>> draws[0, :, 1] += 1.0
    >>> (rhat(draws) > 1.05).tolist()
    [False, True]
    """
    return _apply_by_coordinates(_rhat, draws)


def effective_draws(draws: ArrayLike, kind: str = "bulk") -> np.ndarray:
    """Return the effective sample size by Geyer's initial monotone sequence over all chains.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, ...)
        At least 4 draws a chain.
    kind : {"bulk", "tail", "mean"}, default="bulk"
        "bulk": of the rank-normalised draws; "tail": the smaller of those for the 5 % and the 95 %
        quantile;
        "mean": of the draws as they are, the one behind `mcse_mean`.

    Returns
    -------
    ndarray of the trailing shape of `draws`
        Antithetic chains can exceed the number of draws N, up to N log10 N.
        A constant coordinate counts fully; NaN where a value is not finite.

    Raises
    ------
    ValueError
        If `kind` is unknown, `draws` has fewer than two dimensions or fewer than 4 draws.

    References
    ----------
    Vehtari et al. (2021), (7) to (11) and section 4.3; Geyer (1992), Stat. Sci. 7, section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers.diagnostics import effective_draws
    >>> draws = np.random.default_rng(0).standard_normal((4, 500))
    >>> bool(1500 < effective_draws(draws) < 2500)
    True
    """
    if kind not in _EFFECTIVE:
        raise ValueError(f"kind is {kind!r}; allowed are {', '.join(map(repr, _EFFECTIVE))}.")
    return _apply_by_coordinates(_EFFECTIVE[kind], draws)


def mcse_mean(draws: ArrayLike) -> np.ndarray:
    """Return the Monte Carlo standard error of the mean of each coordinate.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, ...)
        At least 4 draws a chain.

    Returns
    -------
    ndarray of the trailing shape of `draws`, in the unit of `draws`

    Raises
    ------
    ValueError
        If `draws` has fewer than two dimensions or fewer than 4 draws.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.samplers.diagnostics import mcse_mean
    >>> draws = np.random.default_rng(0).standard_normal((4, 2500))
    >>> bool(abs(mcse_mean(draws) - 0.01) < 0.001)
    True
    """
    return _apply_by_coordinates(_mcse_mean, draws)


def _apply_by_coordinates(function, draws):
    """Return a function of draws (n_chains, n_draws, p), evaluated for a block of coordinates."""
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim < 2 or draws.shape[1] < 4 or draws.shape[0] < 1:
        raise ValueError(
            f"draws has shape {draws.shape}; (n_chains, n_draws, ...), at least 4 draws, is needed."
        )
    flat = draws.reshape(*draws.shape[:2], -1)
    width = max(1, BLOCK // (flat.shape[0] * flat.shape[1]))
    result = np.empty(flat.shape[2])
    with np.errstate(divide="ignore", invalid="ignore"):
        for begin in range(0, result.size, width):
            chunk = flat[:, :, begin : begin + width]
            finite = np.isfinite(chunk).all(axis=(0, 1))
            values = function(np.where(finite, chunk, 0.0))
            result[begin : begin + width] = np.where(finite, values, np.nan)
    return result.reshape(draws.shape[2:])[()]


def _split_chains(draws):
    """Return the halves of the chains as chains; the middle draw of an odd number is dropped."""
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, -half:]))


def _rank_normalise(draws):
    """Return normal scores of the ranks over all chains (Blom's offset)."""
    pooled = draws.reshape(-1, draws.shape[2])
    scores = ndtri((rankdata(pooled, axis=0) - 0.375) / (len(pooled) + 0.25))  # (14)
    return scores.reshape(draws.shape)


def _rhat(draws):
    """Return the larger R̂ of ranks and of ranks of distances from the median, (p,)."""
    halves = _split_chains(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(*(_rhat_without_ranks(_rank_normalise(x)) for x in (halves, folded)))


def _rhat_without_ranks(draws):
    """Return R̂ of draws as they are, (p,)."""
    n_draws = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)  # (2)
    between = draws.mean(axis=1).var(axis=0, ddof=1)  # (1), over n_draws
    return np.sqrt((n_draws - 1) / n_draws + between / within)  # (3), (4)


def _mcse_mean(draws):
    """Return the standard errors of the means of (n_chains, n_draws, p), (p,)."""
    return draws.std(axis=(0, 1), ddof=1) / np.sqrt(_effective_mean(draws))


def _effective_bulk(draws):
    """Return the effective number of draws of ranks, over half chains."""
    return _effective_without_ranks(_rank_normalise(_split_chains(draws)))


def _effective_mean(draws):
    """Return the effective number of draws of the mean, over half chains."""
    return _effective_without_ranks(_split_chains(draws))


def _effective_tail(draws):
    """Return the smaller effective number of draws of the 5 % and the 95 % quantile, (p,)."""
    below = (draws <= _quantile(draws, probability) for probability in (0.05, 0.95))
    return np.minimum(
        *(_effective_without_ranks(_split_chains(x).astype(np.float64)) for x in below)
    )


def _quantile(draws, probability):
    """Return quantiles over all chains, Hyndman & Fan's type 7 as scipy's mquantiles.

    Where the quantile is a draw, rounding decides whether that draw counts as below it; numpy
    rounds otherwise, and the tail's effective sample size would differ from ArviZ's by a few per
    cent.
    """
    pooled = np.sort(draws.reshape(-1, draws.shape[2]), axis=0)
    position = len(pooled) * probability + (1.0 - probability)
    k = int(np.clip(np.floor(position), 1, len(pooled) - 1))
    weight = np.clip(position - k, 0.0, 1.0)
    return (1.0 - weight) * pooled[k - 1] + weight * pooled[k]


_EFFECTIVE = {"bulk": _effective_bulk, "tail": _effective_tail, "mean": _effective_mean}


def _effective_without_ranks(draws):
    """Return the effective number of draws of (n_chains, n_draws, p), without ranks."""
    n_chains, n_draws, _ = draws.shape
    total = n_chains * n_draws
    covariance = _autocovariance(draws)
    within = covariance[0] * n_draws / (n_draws - 1)
    overall = covariance[0].copy()  # var⁺, (3)
    if n_chains > 1:
        overall += draws.mean(axis=1).var(axis=0, ddof=1)
    correlation = 1.0 - (within - covariance) / overall  # (10)
    correlation[0] = 1.0

    # Sums of neighbours (lag 2p, lag 2p + 1), positive and decreasing in truth (Geyer 1992). They
    # are added up to the first that is not positive, or to the last but one, and made decreasing;
    # of the pair they stop at, the even lag counts once if it is positive.
    last = max((n_draws - 1) // 2 - 1, 0)
    even = correlation[0 : 2 * last + 1 : 2]
    pairs = even + correlation[1 : 2 * last + 2 : 2]
    negative = pairs <= 0
    stop = np.where(negative.any(axis=0), negative.argmax(axis=0), last)
    decreasing = np.minimum.accumulate(pairs, axis=0)
    before = np.arange(last + 1)[:, None] < stop
    final = np.take_along_axis(even, stop[None], axis=0)[0]
    final_pair = np.take_along_axis(pairs, stop[None], axis=0)[0]
    time = -1.0 + 2.0 * np.where(before, decreasing, 0.0).sum(axis=0)  # (11)
    time += np.where((final > 0) | (final_pair >= 0), final, 0.0)
    time = np.maximum(time, 1.0 / np.log10(total))  # the cap for antithetic chains

    constant = np.ptp(draws, axis=(0, 1)) < 1e-15
    return np.where(constant, total, total / time)


def _autocovariance(draws):
    """Return the autocovariance at every lag (n_draws, p), averaged over the chains."""
    n_draws = draws.shape[1]
    size = next_fast_len(2 * n_draws, real=True)
    power = np.zeros((size // 2 + 1, draws.shape[2]))
    for chain in draws:
        spectrum = rfft(chain - chain.mean(axis=0), n=size, axis=0)
        power += spectrum.real**2 + spectrum.imag**2
    return irfft(power, n=size, axis=0)[:n_draws] / (n_draws * len(draws))
