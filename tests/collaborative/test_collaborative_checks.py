"""scikit-learn's own estimator checks, with everybody one user."""

import warnings

import sklearn
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.fixes import parse_version

from skpref.collaborative import CollaborativePreferenceRegressor

N_CHECKS = 59  # of scikit-learn 1.9, those of sample_weight among them


def test_scikit_learn_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        # scikit-learn's data have no noise; that its least is held back is said, and no failure.
        warnings.filterwarnings("ignore", "The search for hyperparameters ended with noise_var")
        results = check_estimator(CollaborativePreferenceRegressor(), on_fail=None)
    version = parse_version(sklearn.__version__)
    if (version.major, version.minor) == (1, 9):
        assert len(results) == N_CHECKS
    assert len(results) >= N_CHECKS
    failed = {
        result["check_name"]: (result["status"], result["exception"])
        for result in results
        if result["status"] != "passed"
    }
    skipped = failed.pop("check_array_api_input", ("skipped", None))
    assert skipped[0] == "skipped"
    assert not failed


def test_init_only_assigns():
    names = CollaborativePreferenceRegressor().get_params(deep=False)
    values = {name: object() for name in names}
    kept = vars(CollaborativePreferenceRegressor(**values))
    assert all(kept[name] is values[name] for name in values)
    others = kept.keys() - values.keys()  # of the parent alone: users are no judges of one truth
    assert all(name.startswith("judge_") for name in others)
