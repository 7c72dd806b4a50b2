"""Estimators whose hyperparameters are known: fitted anew without a search for them."""

from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import ConstantKernel


def held(fitted: BaseEstimator) -> BaseEstimator:
    """An estimator that is not fitted, with the hyperparameters of one that is, and no search.

    Parameters
    ----------
    fitted : PairwisePreferenceRegressor, CollaborativePreferenceRegressor, or a pipeline that ends\
 in one
    """
    made = clone(fitted)
    last, own = (model[-1] if hasattr(model, "steps") else model for model in (fitted, made))
    found: dict[str, Any] = {
        "kernel": last.kernel_,
        "likelihood": last.likelihood_,
        "optimizer": None,
    }
    variance = getattr(last, "taste_variance_", 0.0)
    by_features = getattr(last, "taste_variance_by_features_", 0.0)
    if by_features:
        found["user_kernel"] = last.user_kernel_
    if by_features and last.method != "bonilla":
        # Both parts of the tastes start with half the variance.
        found["taste_variance"] = 2.0 * variance
        found["user_kernel"] = ConstantKernel(by_features / variance, "fixed") * last.user_kernel_
    elif variance:
        found["taste_variance"] = variance
    own.set_params(**found)
    return made
