"""What rounding leaves of an engine's residual: bounds known before it runs into them.

Margins are differences of utilities. However they are computed, their moments are sums whose
terms carry a relative error of the rounding unit each: the terms, not the sums, set the error.
Errors are taken as independent, so that n of them add up to √n (Higham and Mary, "A new approach
to probabilistic rounding error analysis", SIAM J. Sci. Comput. 2019).
"""

from typing import NamedTuple

import numpy as np

from skpref.gp import ItemSpace, MarginSpace

# A covariance is the end of a few operations (a distance, a root, an exponential, a product).
_UNIT = 4.0 * np.finfo(np.float64).eps
# Beyond this residual, in posterior standard deviations, what rounding left is not worth having.
WORST = 1e-3
# An error of a margin's mean, in standard deviations of a noisy duel on it, that is refused: it
# moves a probability by up to 0.004.
_NOTICED = 1e-2


class MarginErrors(NamedTuple):
    """Absolute errors of the means and variances of the margins, shape (n_margins,) each."""

    mean: np.ndarray
    variance: np.ndarray


def margin_errors(space: MarginSpace | ItemSpace, dual: np.ndarray) -> MarginErrors:
    """Rounding errors to expect of a space's `Conditioned`, whose dual weights are given."""
    unit = _UNIT * np.sqrt(space.n_items)
    prior = np.diagonal(space.K)
    reach = np.abs(space.K) @ _item_weights(space, dual)  # |K| |A|ᵀ |w|
    first, second = space.first, space.second
    mean, scale = reach[first] + reach[second], prior[first] + prior[second]
    if space.noise is not None:
        noise = space.noise.diagonal()
        mean, scale = mean + noise * np.abs(dual), scale + noise
    return MarginErrors(mean=unit * mean, variance=unit * scale)


def energy_error(space: MarginSpace | ItemSpace, dual: np.ndarray) -> float:
    """Rounding error to expect of ½ wᵀ S w: the root of the sum of its terms' squares."""
    squared = _item_weights(space, dual) ** 2
    return 0.5 * _UNIT * float(np.sqrt(squared @ (space.K**2 @ squared)))


def check_digits(
    space: MarginSpace | ItemSpace, mean: np.ndarray, variance: np.ndarray, weights: np.ndarray
) -> None:
    """Raise ValueError if a posterior does not say of the margins what an engine found there.

    It comes to them by other sums, so that their difference shows what rounding has left.

    Parameters
    ----------
    space : MarginSpace or ItemSpace
    mean : ndarray of shape (n_margins,)
        Of the margins, as the engine conditioned them.
    variance : ndarray of shape (n_margins,)
        Of a noisy duel on each.
    weights : ndarray of shape (n_items,)
        Of the items, K⁻¹ times their posterior means.
    """
    plain = np.ones(len(mean), dtype=bool) if space.noise is None else space.noise.diagonal() == 0.0
    off = np.abs(space.difference(space.K @ weights) - mean)[plain]
    if np.any(off > _NOTICED * np.sqrt(variance[plain])):
        raise ValueError(
            "These answers are surer than arithmetic is: for their weights, or repeats, the noise "
            "is so small that rounding changes probabilities. Divide all of sample_weight by a "
            "number, or raise noise_variance and its lower bound."
        )


def _item_weights(space, dual):
    return abs(space.incidence) @ np.abs(dual)
