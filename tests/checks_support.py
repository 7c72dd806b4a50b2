"""What the twins of scikit-learn's checks share: small duels, quick engines, comparisons."""

import joblib
import numpy as np
import sklearn
from numpy.testing import assert_allclose
from sklearn.utils.fixes import parse_version

from skpref import PairwisePreferenceRegressor
from skpref.inference import ENGINES

# How many draws is not the point here: a seed must give the same ones again.
# Of SVI another order of sums takes another way to the same end: it is to go there.
QUICK = {
    "gibbs": {"draws": 64, "chains": 4, "thin": 1},
    "hmc": {"draws": 64, "chains": 4},
    "svi": {"tol": 1e-10, "max_iter": 500},
}
# How many checks of estimators scikit-learn has, those of sample_weight among them.
N_CHECKS = {(1, 6): 58, (1, 9): 59}
# Whether metadata reach the default score of a pipeline that is cross-validated.
ROUTES_PIPED_SCORES = parse_version(sklearn.__version__) >= parse_version("1.8")
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


def duels(n_duels=16, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_duels, 2, n_features))
    y = (X[:, 0].sum(axis=1) > X[:, 1].sum(axis=1)).astype(int)
    return X, y


def make_model(name):
    """An unfitted estimator for each engine, without learning, which is not the point here."""
    engine = ENGINES[name](**QUICK.get(name, {}))
    return PairwisePreferenceRegressor(inference=engine, optimizer=None, random_state=0)


def assert_all_passed(results):
    """Every check of scikit-learn passed, and there were as many as its version has."""
    version = parse_version(sklearn.__version__)
    release = version.major, version.minor
    assert len(results) == N_CHECKS.get(release, len(results))
    assert len(results) >= min(N_CHECKS.values())
    weighing = [each for each in results if "sample_weight" in each["check_name"]]
    assert len(weighing) >= 7
    failed = {
        result["check_name"]: (result["status"], result["exception"])
        for result in results
        if result["status"] != "passed"
    }
    # It needs array libraries that are not there.
    skipped = failed.pop("check_array_api_input", ("skipped", None))
    assert skipped[0] == "skipped"
    assert not failed


def state(estimator):
    return joblib.hash({name: vars(estimator)[name] for name in sorted(vars(estimator))})


def outputs(fitted, X):
    return {name: getattr(fitted, name)(X) for name in METHODS} | {
        "std": fitted.predict(X, return_std=True)[1],
        "utility": fitted.predict(X[:, 0]),
        "score": fitted.score(X),
    }


def assert_same(fitted, other, X, **tolerance):
    ours, theirs = outputs(fitted, X), outputs(other, X)
    for name in ours:
        assert_allclose(ours[name], theirs[name], err_msg=name, **tolerance)
