"""What SciPy calls by other names in other versions: Sobol points and normal rectangles."""

import inspect

import numpy as np
from scipy.stats import multivariate_normal, qmc

_SEED = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"
# By another algorithm than before, to the accuracy that is asked for.
NORMAL_CDF_IS_EXACT = "rng" in inspect.signature(multivariate_normal.cdf).parameters


def sobol(dimension, seed):
    """Scrambled Sobol points."""
    return qmc.Sobol(dimension, **{_SEED: np.random.default_rng(seed)})


def normal_cdf(x, mean=None, cov=1, **options):
    """P(z ≤ x) of a normal vector; by the same random numbers each time where SciPy offers that."""
    return multivariate_normal.cdf(
        x, mean, cov, **({"rng": 0} if NORMAL_CDF_IS_EXACT else {}), **options
    )
