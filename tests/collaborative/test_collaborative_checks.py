"""scikit-learn's own estimator checks, with everybody one user."""

import warnings
from inspect import signature

import pytest
import sklearn
from checks_support import assert_all_passed
from sklearn.utils.estimator_checks import check_estimator

from skpref import PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor


@pytest.mark.parametrize(
    "learned", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["held", "learned"]
)
def test_scikit_learn_checks(learned):
    model = CollaborativePreferenceRegressor()
    if not learned:
        model.set_params(optimizer=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        # scikit-learn's data have no noise; that its least is held back is said, and no failure.
        warnings.filterwarnings("ignore", "The search for hyperparameters ended with noise_var")
        results = check_estimator(model, on_fail=None)
    assert_all_passed(results)


def test_init_only_assigns():
    names = CollaborativePreferenceRegressor().get_params(deep=False)
    values = {name: object() for name in names}
    kept = vars(CollaborativePreferenceRegressor(**values))
    assert all(kept[name] is values[name] for name in values)
    assert kept.keys() == values.keys()


ASKED = {
    "fit": {"users", "qid", "sample_weight", "order"},
    "predict": {"users"},
    "predict_proba": {"users", "order"},
    "predict_log_proba": {"users", "order"},
    "decision_function": {"users", "order"},
    "score": {"users", "qid", "sample_weight", "order"},
}


@pytest.mark.parametrize("method", ASKED)
def test_it_takes_no_metadata_but_its_own(method):
    """Users are no judges of one truth: nothing is inherited that is then refused."""
    model = CollaborativePreferenceRegressor()
    assert not isinstance(model, PairwisePreferenceRegressor)
    assert not any(name.startswith("judge") for name in model.get_params())
    assert not hasattr(model, "partial_fit")
    found = signature(getattr(CollaborativePreferenceRegressor, method)).parameters
    own = {name for name, each in found.items() if each.kind is each.KEYWORD_ONLY}
    assert own == ASKED[method]
    requests = getattr(model.get_metadata_routing(), method).requests
    assert set(requests) - {"return_std", "return_cov"} == ASKED[method]
    routed = {name for name, asked in requests.items() if asked is True}
    assert routed == ASKED[method] - {"sample_weight"}


def test_a_taste_variance_outside_its_bounds_is_refused():
    X, users = [[[0.0], [1.0]]] * 4, [0, 0, 1, 1]
    with pytest.raises(ValueError, match=r"taste_variance must lie within.*1e-06 to 10000, got"):
        CollaborativePreferenceRegressor(taste_variance=1e5).fit(X, users=users)
    model = CollaborativePreferenceRegressor(taste_variance=1e5, optimizer=None)
    assert model.fit(X, users=users).taste_variance_ == 1e5


def test_times_are_refused_before_any_work_with_a_remedy():
    model = CollaborativePreferenceRegressor()
    with pytest.raises(TypeError, match=r"takes no time=.*PairwisePreferenceRegressor\(drift="):
        model.fit([[[0.0], [1.0]]] * 2, users=[0, 1], time=[1, 2])
    with pytest.raises(TypeError, match=r"takes X, y, users.*got judges"):
        model.fit([[[0.0], [1.0]]] * 2, users=[0, 1], judges=[0, 1])
    assert not hasattr(model, "posterior_")
