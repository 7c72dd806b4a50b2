"""Every bad parameter has an error that says what is allowed, even where nothing is learned."""

import numpy as np
import pytest
from inputs_support import X, Y, cases, model, put
from numpy.testing import assert_array_equal
from sklearn.gaussian_process.kernels import RBF, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, Laplace


def learns(**params):
    return PairwisePreferenceRegressor(**params).fit(X[:6], Y[:6])


NOISE_BOUNDS = r"noise_variance_bounds must be 'fixed' or a pair 0 < low <= high < inf, got "
PRIOR = r"lengthscale_prior must be 'lognormal', None or a pair \(median, deviation"


@cases(
    ("params", "error", "match"),
    ("kernel name", {"kernel": "rbf"}, TypeError, "kernel must be a kernel of sk.*None, got 'rbf'"),
    ("kernel class", {"kernel": RBF}, TypeError, "kernel must be a kernel of sklearn"),
    (
        "kernel of other items",
        {"kernel": RBF([1.0, 2.0, 3.0])},
        ValueError,
        r"does not take items of 2 features.*Give it one length_scale",
    ),
    (
        "kernel too large",
        {"kernel": DotProduct(1e200)},
        ValueError,
        r"kernel DotProduct.* is not finite.*Choose other hyperparameters",
    ),
    ("engine", {"inference": "vb"}, ValueError, r"inference must be one of .*'ep'.*got 'vb'"),
    ("engine case", {"inference": "EP"}, ValueError, "inference must be one of .*got 'EP'"),
    ("engine None", {"inference": None}, ValueError, r"'ep'.*options object.*EP\(damp.*got None"),
    ("engine number", {"inference": 3}, ValueError, "inference must be one of .*got 3"),
    ("engine class", {"inference": EP}, ValueError, "inference must be one of .*got <class"),
    ("damping 1", {"inference": EP(damping=1.0)}, ValueError, r"damping must lie in \[0.0, 1.0\)"),
    ("damping", {"inference": EP(damping="a")}, TypeError, "damping must be a number, got 'a'"),
    ("tol 0", {"inference": EP(tol=0.0)}, ValueError, r"tol .*must lie in \(0.0, inf.*got 0.0"),
    ("tol", {"inference": Laplace(tol="a")}, TypeError, "tol .*must be a number, got 'a'"),
    ("max_iter", {"inference": EP(max_iter=0)}, ValueError, r"max_iter must lie in \[1, inf\]"),
    (
        "max_iter 2.5",
        {"inference": Laplace(max_iter=2.5)},
        TypeError,
        "max_iter must be an integer",
    ),
    (
        "noise 0",
        {"noise_variance": 0},
        ValueError,
        r"noise_variance must lie in \(0.0, inf\), got 0",
    ),
    ("noise < 0", {"noise_variance": -1.0}, ValueError, "noise_variance must lie in .*got -1.0"),
    ("noise NaN", {"noise_variance": np.nan}, ValueError, "noise_variance must lie in .*got nan"),
    ("noise inf", {"noise_variance": np.inf}, ValueError, "noise_variance must lie in .*got inf"),
    (
        "noise text",
        {"noise_variance": "learn"},
        TypeError,
        "noise_variance must be a number, got 'l",
    ),
    (
        "noise None",
        {"noise_variance": None},
        TypeError,
        "noise_variance must be a number, got None",
    ),
    (
        "noise bool",
        {"noise_variance": True},
        TypeError,
        "noise_variance must be a number, got True",
    ),
    *(
        (f"noise bounds {bounds!r}", {"noise_variance_bounds": bounds}, ValueError, NOISE_BOUNDS)
        for bounds in (
            (1.0, 0.1),
            (0.0, 1.0),
            (1e-4, np.inf),
            (np.nan, 1.0),
            (-1.0, 1.0),
            (1.0,),
            (1.0, 2.0, 3.0),
            ("a", "b"),
            "free",
            None,
            3.0,
        )
    ),
    *(
        (f"prior {prior!r}", {"lengthscale_prior": prior}, ValueError, PRIOR)
        for prior in ("gamma", 3.0, (1.0,), (1.0, 2.0, 3.0))
    ),
    ("prior < 0", {"lengthscale_prior": (-1.0, 1.0)}, ValueError, "median of .*must lie in .*-1.0"),
    ("prior 0", {"lengthscale_prior": (1.0, 0.0)}, ValueError, "deviation of .*must lie in"),
    ("prior text", {"lengthscale_prior": ("a", 1.0)}, TypeError, "median of .*must be a number"),
    *(
        (
            f"optimizer {optimizer!r}",
            {"optimizer": optimizer},
            ValueError,
            "optimizer must be 'fmin_l_bfgs_b', None or a callable, got ",
        )
        for optimizer in ("adam", "L-BFGS-B", 3, False)
    ),
    ("restarts", {"n_restarts_optimizer": -1}, ValueError, r"must lie in \[0, inf\], got -1"),
    ("restarts 1.5", {"n_restarts_optimizer": 1.5}, TypeError, "must be an integer, got 1.5"),
    ("restarts None", {"n_restarts_optimizer": None}, TypeError, "must be an integer, got None"),
    (
        "restarts without bounds",
        {"kernel": RBF(1.0, (1e-3, np.inf)), "n_restarts_optimizer": 1},
        ValueError,
        r"n_restarts_optimizer > 0\) need finite bounds.*give finite bounds to the kernel",
    ),
    ("seed", {"random_state": "a"}, ValueError, "cannot be used to seed"),
)
def test_parameters(params, error, match):
    with pytest.raises(error, match=match):
        learns(**params)


@pytest.mark.parametrize(
    "params",
    [
        {"noise_variance": "a"},
        {"lengthscale_prior": "gamma"},
        {"optimizer": "adam", "kernel": RBF(1.0, "fixed"), "noise_variance_bounds": "fixed"},
        {"inference": EP(damping=2.0)},
    ],
    ids=str,
)
def test_parameters_are_checked_even_if_nothing_is_learned(params):
    with pytest.raises((ValueError, TypeError), match="must "):
        model(**params).fit(X, Y)


@pytest.mark.parametrize(
    "params",
    [
        {"noise_variance_bounds": (0.5, 0.5)},
        {"noise_variance_bounds": [1e-3, 1]},
        {"noise_variance": 1},
        {"noise_variance": np.float32(0.1)},
        {"noise_variance": 100.0},  # outside the bounds: the search starts at the nearest
        {"lengthscale_prior": [2, 0.5]},
        {"kernel": RBF(1.0, (1e-3, np.inf))},
        {"n_restarts_optimizer": np.int64(1), "random_state": 0},
    ],
    ids=str,
)
def test_allowed_parameters(params):
    assert learns(**params).score(X[:6], Y[:6]) == 1.0


def test_nothing_is_changed_by_a_failed_fit():
    fitted = model().fit(X, Y)
    before = fitted.predict_proba(X)
    for bad in (put(X, (0, 0, 0), np.nan), X[:, :1]):
        with pytest.raises(ValueError, match="X"):
            fitted.fit(bad, Y)
    with pytest.raises(ValueError, match="Outcomes"):
        fitted.fit(X, Y + 1)
    assert_array_equal(fitted.predict_proba(X), before)
