"""scikit-learn's own estimator checks, and their twins on duel arrays for every engine."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from checks_support import assert_all_passed, assert_same, duels, make_model, outputs, state
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.estimator_checks import check_estimator

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.inference import ENGINES, HMC, Gibbs, Hallucination
from skpref.kernels import Intransitive

pytestmark = pytest.mark.filterwarnings("ignore:The chains have not mixed")


@pytest.fixture(params=sorted(ENGINES))
def model(request):
    return make_model(request.param)


# Of so few answers "auto" is EP, with which all engines but Laplace learn hyperparameters. With all
# defaults of the estimator those two are checked, in the slow tests. The samplers are stopped there
# before they mix.
OTHERS = ("svi", Gibbs(draws=20, burn_in=5), HMC(draws=20, burn_in=5), Hallucination())
CHECKED = [
    {"optimizer": None},
    pytest.param(
        {"kernel": RBF() + Intransitive(RBF()), "optimizer": None}, marks=pytest.mark.slow
    ),
    *(pytest.param({"inference": name}, marks=pytest.mark.slow) for name in ("ep", "laplace")),
    *(
        pytest.param({"inference": engine, "optimizer": None}, marks=pytest.mark.slow)
        for engine in OTHERS
    ),
]


@pytest.mark.parametrize("options", CHECKED, ids=str)
def test_scikit_learn_checks(options):
    estimator = PairwisePreferenceRegressor(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        # scikit-learn's data have no noise; that its least is held back is said, and no failure.
        warnings.filterwarnings("ignore", "The search for hyperparameters ended with noise_var")
        # Nor is it one that Gibbs mixes slowly there, or that a chain of one draw cannot move.
        warnings.filterwarnings("ignore", "The chains have not mixed")
        results = check_estimator(estimator, on_fail=None)
    assert_all_passed(results)


# -- parameters ----------------------------------------------------------------------------


def test_init_only_assigns():
    values = {name: object() for name in PairwisePreferenceRegressor().get_params(deep=False)}
    kept = vars(PairwisePreferenceRegressor(**values))
    assert kept.keys() == values.keys()
    assert all(kept[name] is values[name] for name in values)


def test_clone_has_the_parameters_but_not_the_fit(model):
    X, y = duels()
    copy = clone(model.set_params(kernel=RBF(0.7)).fit(X, y))
    assert not any(name.endswith("_") for name in vars(copy))
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert copy.kernel == model.kernel and copy.kernel is not model.kernel
    assert repr(copy) == repr(model)
    assert_same(copy.fit(X, y), model, X, rtol=1e-12)


def test_get_params_round_trip(model):
    params = model.get_params()
    assert_same(
        PairwisePreferenceRegressor().set_params(**model.get_params(deep=False)).fit(*duels()),
        clone(model).fit(*duels()),
        duels()[0],
        rtol=1e-12,
    )
    assert params.keys() == model.set_params(**params).get_params().keys()


def test_fit_changes_no_parameter():
    X, y = duels()
    model = PairwisePreferenceRegressor(kernel=RBF([1.0, 2.0]), random_state=0)
    before = joblib.hash(model.get_params())
    learned = model.fit(X, y).kernel_.theta
    assert joblib.hash(model.get_params()) == before
    assert not np.allclose(learned, model.kernel.theta)  # something was there to change


def test_new_parameters_wait_for_the_next_fit(model):
    X, y = duels()
    model.set_params(kernel=RBF(0.7), noise_variance=0.1).fit(X, y)
    before = outputs(model, X)
    model.set_params(kernel__length_scale=7.0, noise_variance=1.0)
    after = outputs(model, X)
    for name in before:
        assert_array_equal(after[name], before[name], err_msg=name)
    assert not np.allclose(model.fit(X, y).predict(X), before["predict"])


def test_predicting_changes_nothing(model):
    X, y = duels()
    model.fit(X, y)
    before = state(model)
    outputs(model, X)
    model.predict(X, return_cov=True)
    model.sample_y(X, 3)
    model.log_marginal_likelihood(eval_gradient=True)
    assert state(model) == before


def test_global_random_state_is_left_alone(model):
    # The old global generator is the very thing that must not move.
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    model.fit(*duels()).sample_y(duels()[0], 2)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# -- fitting -------------------------------------------------------------------------------


def test_fit_returns_self(model):
    assert model.fit(*duels()) is model


def test_fit_is_idempotent(model):
    X, y = duels()
    first = outputs(model.fit(X, y), X)
    second = outputs(model.fit(X, y), X)
    for name in first:
        assert_array_equal(first[name], second[name], err_msg=name)


def test_refit_forgets_the_first_fit(model):
    X, y = duels()
    three, outcomes = duels(n_features=3, seed=1)
    model.fit(three, np.where(outcomes, 1, -1))
    assert model.n_features_in_ == 3 and model.classes_.tolist() == [-1, 1]
    model.fit(X, y)
    assert model.n_features_in_ == 2 and model.classes_.tolist() == [0, 1]
    assert_same(model, clone(model).fit(X, y), X, rtol=1e-12)
    assert vars(model).keys() == vars(clone(model).fit(X, y)).keys()


def test_refit_on_ratings_forgets_the_classes(model):
    pd = pytest.importorskip("pandas")
    X, y = duels()
    model.fit(pd.DataFrame(X[:, 0], columns=["a", "b"]), X[:, 0, 0])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert not hasattr(model, "classes_") and not hasattr(model, "predict_proba")
    model.fit(X, y)
    assert hasattr(model, "classes_") and not hasattr(model, "feature_names_in_")
    model.fit(X[:, 0], X[:, 0, 0])
    assert not hasattr(model, "classes_") and not hasattr(model, "predict_proba")


def test_order_of_training_duels_does_not_matter(model):
    X, y = duels()
    order = np.random.default_rng(3).permutation(len(X))
    assert_same(model.fit(X, y), clone(model).fit(X[order], y[order]), X, rtol=1e-7, atol=1e-9)


def test_orientation_of_training_duels_does_not_matter(model):
    X, y = duels()
    flip = np.arange(len(X)) % 3 == 0
    turned = np.where(flip[:, None, None], X[:, ::-1], X)
    other = clone(model).fit(turned, np.where(flip, 1 - y, y))
    assert_same(model.fit(X, y), other, X, rtol=1e-7, atol=1e-9)


NAMES = np.array(["dan", "ann", "cid", "bob", "eve"], dtype=object)
# Judges' reliability of one Gaussian, not of three: the draws are read in the same order.
ONE = JudgePrior(random=0.0, adversarial=0.0)


def told(kind):
    """Answers of one kind, and what to fit them with: of names, times, judges and grades."""
    X, y = duels(24)
    who = np.array(["cid", "ann", "bob"], dtype=object)[np.arange(24) % 3]
    named = NAMES[np.random.default_rng(1).permuted(np.tile(np.arange(5), (24, 1)), axis=1)[:, :2]]
    return {
        "names": (named, y, {}, {}),
        "times": (named, y, {"drift": "matern12"}, {"time": np.arange(24.0)}),
        "judges": (X, np.where(who == "bob", 1 - y, y), {"judge_prior": ONE}, {"judges": who}),
        "ties": (X, np.where(np.arange(24) % 4, 2 * y - 1, 0), {"tie_threshold": 0.2}, {}),
        "grades": (X, (2 * y - 1) * (1 + np.arange(24) % 2), {"grade_thresholds": (0.5,)}, {}),
        "order": (X, y, {"order_effect": 0.5}, {"order": np.where(np.arange(24) % 3, 1, -1)}),
    }[kind]


@pytest.mark.parametrize("kind", ["names", "times", "judges", "ties", "grades", "order"])
@pytest.mark.parametrize("inference", ["hmc", "gibbs"])
def test_draws_depend_on_the_set_of_answers_alone(inference, kind):
    X, y, options, metadata = told(kind)
    order = np.random.default_rng(6).permutation(len(X))
    model = make_model(inference).set_params(**options)
    asked = X if kind != "names" and kind != "times" else NAMES
    one = clone(model).fit(X, y, **metadata).predict(asked, return_std=True)
    there = {name: values[order] for name, values in metadata.items()}
    two = clone(model).fit(X[order], y[order], **there).predict(asked, return_std=True)
    assert_allclose(two, one, rtol=1e-7, atol=1e-9)


def test_a_weight_is_a_number_of_rows(model):
    X, y = duels()
    weight = np.arange(len(X)) % 4
    order = np.random.default_rng(5).permutation(weight.sum())
    rows = np.repeat(np.arange(len(X)), weight)[order]
    other = clone(model).fit(X[rows], y[rows])
    assert_same(model.fit(X, y, sample_weight=weight), other, X, rtol=1e-7, atol=1e-9)


def test_labels_may_be_any_of_three_kinds(model):
    X, y = duels()
    model.fit(X, y)
    signed = clone(model).fit(X, np.where(y, 1, -1))
    boolean = clone(model).fit(X, y.astype(bool))
    winners_first = np.where(y[:, None, None], X, X[:, ::-1])
    for other in (signed, boolean, clone(model).fit(winners_first), clone(model).fit(X, y * 1.0)):
        assert_same(model, other, X, rtol=1e-7, atol=1e-9)
    assert model.classes_.tolist() == [0, 1]
    assert signed.classes_.tolist() == [-1, 1]
    assert boolean.classes_.tolist() == [False, True]


@pytest.mark.parametrize("kind", [list, tuple, np.float32, np.int8, np.uint8, object])
def test_containers_and_dtypes_of_y(kind):
    X, y = duels()
    model = PairwisePreferenceRegressor(optimizer=None)
    other = clone(model).fit(X, kind(y) if kind in (list, tuple) else y.astype(kind))
    assert_same(model.fit(X, y), other, X, rtol=1e-12)


def test_outcomes_in_a_series():
    pd = pytest.importorskip("pandas")
    X, y = duels()
    model = PairwisePreferenceRegressor(optimizer=None).fit(X, y)
    for dtype in ("int64", "boolean", "Int64", object):
        other = clone(model).fit(X, pd.Series(y, index=np.arange(50, 66)).astype(dtype))
        assert_same(model, other, X, rtol=1e-12)


def test_outcomes_in_a_column_warn(model):
    X, y = duels()
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        other = clone(model).fit(X, y[:, None])
    assert_same(model.fit(X, y), other, X, rtol=1e-12)
    with pytest.raises(ValueError, match="which say nothing"):  # two columns are ranks
        model.fit(X, np.column_stack([y, y]))
    assert_same(model, clone(model).fit(X, np.column_stack([2 - y, 1 + y])), X, rtol=1e-12)


# -- predicting ----------------------------------------------------------------------------


def test_subsets_are_predicted_as_the_whole(model):
    X, y = duels()
    model.fit(X, y)
    whole = outputs(model, X)
    for size in (1, 5):
        parts = [outputs(model, X[i : i + size]) for i in range(0, len(X), size)]
        for name in whole.keys() - {"score"}:
            found = np.concatenate([part[name] for part in parts])
            assert_allclose(found, whole[name], rtol=1e-9, atol=1e-10, err_msg=name)


def test_order_of_predicted_duels_does_not_matter(model):
    X, y = duels()
    model.fit(X, y)
    order = np.random.default_rng(4).permutation(len(X))
    whole, permuted = outputs(model, X), outputs(model, X[order])
    for name in whole.keys() - {"score"}:
        assert_allclose(permuted[name], whole[name][order], rtol=1e-9, atol=1e-10, err_msg=name)


def test_swapping_the_items_of_a_duel(model):
    X, y = duels()
    model.fit(X, y)
    assert_allclose(model.predict(X[:, ::-1]), -model.predict(X), rtol=1e-9, atol=1e-12)
    assert_allclose(model.predict_proba(X[:, ::-1])[:, ::-1], model.predict_proba(X), rtol=1e-9)
    same = np.stack([X[:, 0], X[:, 0]], axis=1)
    assert_allclose(model.predict_proba(same), 0.5, rtol=1e-12)


def test_probabilities_margins_and_labels_agree(model):
    X, y = duels()
    model.fit(X, np.where(y, 1, -1))
    probability = model.predict_proba(X)
    assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(np.log(probability), model.predict_log_proba(X), rtol=1e-9, atol=1e-12)
    assert_array_equal(model.decision_function(X), model.predict(X))
    called = model.classes_[probability.argmax(axis=1)]
    assert_array_equal(called, model.classes_[(model.decision_function(X) > 0.0).astype(int)])


def test_utilities_are_finite_and_one_dimensional(model):
    X, y = duels()
    utility = model.fit(X, y).predict(X.reshape(-1, 2))
    assert utility.shape == (32,) and np.isfinite(utility).all()
    margins = utility[::2] - utility[1::2]
    assert_allclose(margins, model.predict(X), rtol=1e-9, atol=1e-10)


def test_pickle(model):
    X, y = duels()
    model.fit(X, y)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(model, protocol))
        before, after = outputs(model, X), outputs(copy, X)
        for name in before:
            assert_array_equal(after[name], before[name], err_msg=name)
    assert vars(copy).keys() == vars(model).keys()
