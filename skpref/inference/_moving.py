"""Inducing points moved to where they serve the answers, not the items alone."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from skpref._default_kernel import feature_spread
from skpref._linalg import NoCovarianceError

# Steps of L-BFGS. The first few gain most of what there is; many fit the noise of the answers.
_STEPS = 3


def moved(
    Z: NDArray[np.float64],
    items: NDArray[np.float64],
    bound: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
) -> NDArray[np.float64]:
    """Points a few steps up a bound.

    Parameters
    ----------
    Z : ndarray of shape (m, n_features)
        Where they are.
    items : ndarray of shape (n_items, n_features)
        Their spread is the unit of length of each feature.
    bound : callable
        ``bound(Z)`` → its value, and derivatives of the shape of Z.
    """
    scale = feature_spread(items)

    def minus_bound(flat):
        value, slope = bound(flat.reshape(Z.shape) * scale)
        return -value, -(slope * scale).ravel()

    options = {"maxiter": _STEPS, "maxfun": 2 * _STEPS}
    try:
        found = minimize(
            minus_bound, (Z / scale).ravel(), jac=True, method="L-BFGS-B", options=options
        )
    except NoCovarianceError:  # points that all but coincide, on some step's way
        return Z
    return found.x.reshape(Z.shape) * scale
