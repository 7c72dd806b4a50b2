"""Inducing points moved to where they serve the answers, not the items alone."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import Kernel

from skpref._default_kernel import feature_spread
from skpref._inducing import InducedSpace, unexplained_share
from skpref._linalg import NoCovarianceError
from skpref._observations import Observations
from skpref._warnings import warn
from skpref.inference._natural import Batch, ascend, nothing
from skpref.likelihoods import Likelihood

# Answers that the points are moved for, at most.
_MOVED = 5000
# Share of the items' variance that points leave at least where they are moved: where they tell all
# but everything, they would but follow the noise of the answers.
_LEFT = 0.01
# Share of it that given points may leave before it is said, and items that are looked at for it.
_FAR, _LOOKED_AT = 0.9, 2000
# Steps of L-BFGS. The first few gain most of what there is; many fit the noise of the answers.
_STEPS = 3
# Of the run under each step's points: its tolerance, and the steps it has.
_TOL, _ITERATIONS = 3e-3, 100


def mention_far(Z: NDArray[np.float64], observations: Observations, kernel: Kernel) -> None:
    """Warn of points that tell next to nothing of the items' utilities."""
    items = observations.items
    some = items[np.linspace(0, len(items) - 1, min(len(items), _LOOKED_AT)).astype(np.intp)]
    left = float(np.mean(unexplained_share(kernel, some, Z)))
    if left > _FAR:
        warn(
            f"The inducing points explain {1.0 - left:.1%} of the variance of the items' utilities "
            f"under {kernel}: what is not explained is predicted as if nothing were known. Give "
            "points among the items, in the units of their features, or leave inducing_points out."
        )


def moved(
    Z: NDArray[np.float64], observations: Observations, kernel: Kernel, likelihood: Likelihood
) -> NDArray[np.float64]:
    """Points a few steps up the bound, where they leave much of the items' variance.

    Parameters
    ----------
    Z : ndarray of shape (m, n_features)
        Where they are.
    observations : Observations
        Of which some are looked at; the spread of their items is the unit of each feature.
    kernel : sklearn.gaussian_process.kernels.Kernel
    likelihood : Likelihood
    """
    part = observations.spread(_MOVED)
    if np.mean(unexplained_share(kernel, part.items, Z)) < _LEFT:
        return Z
    scale, sites = feature_spread(part.items), None

    def minus_bound(flat):
        nonlocal sites
        space = InducedSpace(kernel, part.items, part.rows.margins, flat.reshape(Z.shape) * scale)
        batch = Batch.of(space, part.rows, likelihood)
        start = nothing(len(Z)) if sites is None else space.told(sites["precision"], sites["pull"])
        end = ascend(batch, start, _TOL, _ITERATIONS)
        sites = end.look.sites
        slope = space.by_points(batch.pull_at(end.at))
        return -end.bound, -(slope * scale).ravel()

    options = {"maxiter": _STEPS, "maxfun": 2 * _STEPS}
    try:
        found = minimize(
            minus_bound, (Z / scale).ravel(), jac=True, method="L-BFGS-B", options=options
        )
    except NoCovarianceError:  # points that all but coincide, on some step's way
        return Z
    return found.x.reshape(Z.shape) * scale
