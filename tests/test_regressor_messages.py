"""Messages that name the true reason and a remedy that works."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.inspection import leaderboard
from skpref.likelihoods import Probit
from skpref.preprocessing import Itemwise

CYCLE = [["a", "b"], ["b", "c"], ["c", "a"]]


def duels(n=12, d=2):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2, d)), rng.integers(0, 2, n)


@pytest.mark.parametrize(
    "estimator", [PairwisePreferenceRegressor, CollaborativePreferenceRegressor]
)
@pytest.mark.parametrize(
    ("parameter", "allowed"),
    [
        ({"noise_variance": np.nan}, r"noise_variance must lie in \(0.0, inf\), got nan"),
        ({"tie_threshold": np.nan}, r"tie_threshold must lie in \(0.0, inf\), got nan"),
        (
            {"order_effect": np.nan},
            r"order_effect must lie in \(-inf, inf\), got nan\. Give a finite number",
        ),
        (
            {"order_effect": -np.inf},
            r"order_effect must lie in \(-inf, inf\), got -inf\. Give a finite number",
        ),
    ],
    ids=str,
)
def test_numbers(estimator, parameter, allowed):
    X, y = duels()
    given = {"users": np.arange(12) % 3} if estimator is CollaborativePreferenceRegressor else {}
    with pytest.raises(ValueError, match=allowed):
        estimator(**parameter).fit(X, y, **given)


def test_numbers_of_a_likelihood():
    with pytest.raises(ValueError, match=r"noise_variance must lie in \(0.0, inf\), got nan"):
        Probit(np.nan).check()


@pytest.mark.parametrize(("label", "bound"), [(1, "upper"), (0, "lower")])
def test_answers_that_are_all_the_same(label, bound):
    """The remedy works: held hyperparameters are at no bound."""
    X, y = CYCLE * 20, np.full(60, label)
    model = PairwisePreferenceRegressor(order_effect_bounds=(-1.0, 1.0))
    with pytest.warns(
        ConvergenceWarning, match=rf"{bound} bound.*All answers are the same"
    ) as seen:
        model.fit(X, y)
    assert not re.search("rescale", str(seen[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = {"order_effect_bounds": "fixed", "noise_variance_bounds": "fixed"}
        model.set_params(**held).fit(X, y)


def test_answers_that_differ_may_need_wider_bounds():
    model = PairwisePreferenceRegressor(order_effect_bounds=(-0.01, 0.01))
    with pytest.warns(ConvergenceWarning, match="Widen these bounds"):
        model.fit(CYCLE * 20, np.tile([1, 1, 1, 1, 1, 0], 10))


@pytest.mark.parametrize(
    "X", [[["a", "b"]], [["base", "a"], ["base", "b"], ["base", "c"]], [["a", "b", "c"]]], ids=str
)
def test_names_of_one_pair_or_beside_one_item_are_good_data(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PairwisePreferenceRegressor(optimizer=None).fit(X * 4, [0, 1] * (2 * len(X)))


def test_names_that_could_be_features_still_warn():
    with pytest.warns(UserWarning, match="reads as names of items"):
        PairwisePreferenceRegressor(optimizer=None).fit(
            [["red", "S"], ["blue", "M"]] * 3, [0, 1] * 3
        )


@pytest.mark.parametrize("drift", ["wiener", "matern32"])
def test_the_kernel_of_a_model_through_time_given_back_beside_drift(drift):
    X, y, time = CYCLE * 8, np.tile([1, 0, 1], 8), np.arange(24.0)
    kernel = PairwisePreferenceRegressor(drift=drift).fit(X, y, time=time).kernel_
    again = PairwisePreferenceRegressor(kernel, drift=drift)
    with pytest.raises(ValueError, match=r"sees column 1, the time.*Leave drift= out"):
        again.fit(X, y, time=time)
    again.set_params(drift=None).fit(X, y, time=time)


def test_progress_names_no_number_that_is_passed(capsys):
    X, y = duels(40, 4)

    def optimizer(obj_func, initial_theta, bounds):
        values = [obj_func(initial_theta, eval_gradient=False) for _ in range(27)]
        return initial_theta, values[0]

    PairwisePreferenceRegressor(optimizer=optimizer, verbose=2).fit(X, y)
    lines = capsys.readouterr().out
    assert "evaluation 25:" in lines
    assert "evaluation 26:" in lines


def test_a_control_held_at_nothing_is_held_at_zero():
    rng = np.random.default_rng(0)
    ids = np.array([rng.choice(4, 2, replace=False) for _ in range(60)])
    handicap = rng.choice([0.1, 0.2, 0.3, 0.7], size=60)
    X = np.stack([ids, np.column_stack([handicap, -handicap])], axis=2)
    model = PairwisePreferenceRegressor(id_column=0, optimizer=None)
    board = leaderboard(model.fit(X, rng.integers(0, 2, 60)))
    assert board.held[1] == 0.0


EQUAL = np.array([[[1.0, 2.0], [1.0, 2.0]], [[0.0, 1.0], [2.0, 1.0]], [[0.0, 1.0], [3.0, 0.0]]])


def test_items_of_equal_features():
    """Nothing is learned of such a duel, and a warning says so; ties and order are learned of."""
    model = PairwisePreferenceRegressor(RBF(), optimizer=None)
    with pytest.warns(UserWarning, match=r"1 of 3 duels, first row 0 of X.*id_column"):
        model.fit(EQUAL, [1, 0, 1])
    without = PairwisePreferenceRegressor(RBF(), optimizer=None).fit(EQUAL[1:], [0, 1])
    asked = EQUAL[1:]
    np.testing.assert_allclose(model.predict_proba(asked), without.predict_proba(asked), atol=1e-9)
    for more in ({"order_effect": 0.2}, {"tie_threshold": 0.1}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.set_params(**more).fit(
                EQUAL, [1, -1, 1] if "tie_threshold" in more else [1, 0, 1]
            )


def test_the_remedy_for_items_of_equal_features():
    ids = np.array([[0.0, 1.0], [2.0, 3.0], [2.0, 4.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PairwisePreferenceRegressor(id_column=0, optimizer=None)
        model.fit(np.concatenate([ids[..., None], EQUAL], axis=2), [1, 0, 1])


@pytest.mark.parametrize(
    "X",
    [[["a", "b"], ["c", "c"]], [["a", "b", "c"], ["a", "b", "b"]]],
    ids=["duel", "choice"],
)
def test_an_item_against_itself(X):
    with pytest.raises(ValueError, match="Row 1 of X sets an item against itself"):
        PairwisePreferenceRegressor().fit(X, [1, 0])


@pytest.mark.filterwarnings("ignore:EP stopped after")
def test_a_polynomial_kernel_far_from_zero_is_told_to_scale():
    """The remedy works: the same features, scaled, are fitted."""
    X, y = duels(30)
    model = PairwisePreferenceRegressor(DotProduct() ** 2, optimizer=None)
    with pytest.raises(ValueError, match=r"polynomial kernel centre and scale .*Itemwise"):
        model.fit(X + 1e6, y)
    make_pipeline(Itemwise(StandardScaler()), model).fit(X + 1e6, y)
