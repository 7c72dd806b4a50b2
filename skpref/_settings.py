"""Checks of the regressor's parameters."""

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from skpref._parameters import check_choice, check_number
from skpref.inference import ENGINES


def check_settings(estimator):
    """Engine and noise bounds (None: held) after checking every parameter."""
    engine = estimator.inference
    if isinstance(engine, str):
        engine = ENGINES[check_choice("inference", engine, ENGINES)]()
    elif isinstance(engine, type) or not hasattr(engine, "refine"):
        raise ValueError(
            f"inference must be one of {', '.join(map(repr, ENGINES))} or an options object "
            f"from skpref.inference such as EP(damping=0.2), got {engine!r}."
        )
    if estimator.kernel is not None and not isinstance(estimator.kernel, Kernel):
        raise TypeError(
            "kernel must be a kernel of sklearn.gaussian_process.kernels or None, got "
            f"{estimator.kernel!r}."
        )
    check_number("tol of the engine", engine.evidence_engine().tol, low=0.0, open_low=True)
    noise = estimator.noise_variance
    check_number("noise_variance", noise, low=0.0, open_low=True, open_high=True)
    optimizer = estimator.optimizer
    if not (optimizer is None or callable(optimizer) or optimizer == "fmin_l_bfgs_b"):
        raise ValueError(
            f"optimizer must be 'fmin_l_bfgs_b', None or a callable, got {optimizer!r}."
        )
    check_number("n_restarts_optimizer", estimator.n_restarts_optimizer, low=0, integer=True)
    bounds = estimator.noise_variance_bounds
    if estimator.optimizer is None or (isinstance(bounds, str) and bounds == "fixed"):
        return engine, None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0.0 < low <= high < np.inf:
        raise ValueError(
            "noise_variance_bounds must be 'fixed' or a pair 0 < low <= high < inf, got "
            f"{bounds!r}."
        )
    return engine, (low, high)
