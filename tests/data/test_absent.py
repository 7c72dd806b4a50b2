"""Items that were not offered: NaN throughout in arrays of sets, anywhere in a row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from skpref import PairwisePreferenceRegressor
from skpref.duels import DuelFrame
from skpref.inspection import permutation_importance
from skpref.metrics import answer_log_loss
from skpref.model_selection import ItemKFold, item_components
from skpref.preprocessing import Itemwise

RNG = np.random.default_rng(3)
ITEMS = RNG.normal(size=(9, 2))
# Six items at five fixed places; who is not offered may be anywhere.
PLACES = np.array(
    [
        [0, 1, 2, 3, 4],
        [-1, 1, -1, 3, 5],
        [6, -1, 2, 7, -1],
        [-1, -1, 8, -1, 0],
        [5, 6, 7, -1, -1],
        [4, 1, -1, 0, 8],
    ]
)
THERE = PLACES >= 0
X = np.where(THERE[:, :, None], ITEMS[PLACES], np.nan)
CHOSEN = np.array([0, 3, 2, 4, 1, 0])
# The same, moved to the front of each row.
FRONT = np.argsort(~THERE, axis=1, kind="stable")
CLOSED = DuelFrame(ITEMS, np.take_along_axis(PLACES, FRONT, axis=1))
CHOSEN_CLOSED = (CHOSEN[:, None] == FRONT).argmax(axis=1)
RANKS = np.array([[1, 2, 3, 4, 5], [0, 1, 0, 3, 2], [1, 0, 0, 2, 0], *[[0] * 5] * 3])
RANKS[3:] = [[0, 0, 1, 0, 2], [2, 1, 2, 0, 0], [3, 1, 0, 2, 2]]


def model(**options):
    settings = {"kernel": RBF(1.5), "optimizer": None, "noise_variance": 0.2, **options}
    return PairwisePreferenceRegressor(**settings)


@pytest.mark.parametrize("order_effect", [0.0, 0.7])
@pytest.mark.parametrize("kind", ["choices", "rankings"])
def test_gaps_anywhere_say_what_shorter_sets_say(order_effect, kind):
    y, y_closed = CHOSEN, CHOSEN_CLOSED
    if kind == "rankings":
        y, y_closed = RANKS, np.take_along_axis(RANKS, FRONT, axis=1)
    found = model(order_effect=order_effect).fit(X, y)
    wanted = model(order_effect=order_effect).fit(CLOSED, y_closed)
    assert_allclose(found.predict(ITEMS), wanted.predict(ITEMS), atol=1e-12)
    for method, gap in (
        ("predict_proba", 0.0),
        ("predict_log_proba", -np.inf),
        ("decision_function", np.nan),
        ("predict", np.nan),
    ):
        got = getattr(found, method)(X)
        assert_array_equal(got[~THERE], np.full((~THERE).sum(), gap))
        closed = getattr(wanted, method)(CLOSED)
        assert_allclose(np.take_along_axis(got, FRONT, axis=1), closed, rtol=1e-9, atol=1e-12)
    assert found.score(X, y) == wanted.score(CLOSED, y_closed)
    assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)


def test_two_that_are_left_meet_as_in_a_duel():
    fitted = model(order_effect=0.7).fit(X, CHOSEN)
    mean, variance = fitted.posterior_.margin(ITEMS[[8]], ITEMS[[0]])
    wins = norm.cdf((mean + 0.7) / np.sqrt(variance + 2 * 0.2))  # the third place is shown first
    proba = fitted.predict_proba(X)[3]
    assert_allclose(proba, [0.0, 0.0, wins[0], 0.0, 1.0 - wins[0]], atol=1e-9)
    loss = answer_log_loss(CHOSEN, fitted.predict_proba(X), kind="choice")
    assert_allclose(loss, -np.log(fitted.predict_proba(X)[np.arange(6), CHOSEN]).mean())


@pytest.mark.parametrize("given", ["objects", "masked", "list"])
def test_whatever_holds_the_array(given):
    other = X.astype(object)
    other[~THERE] = None
    if given == "masked":
        other = np.ma.array(np.nan_to_num(X), mask=np.isnan(X))
    elif given == "list":
        other = X.tolist()
    expected = model().fit(X, CHOSEN).predict_proba(X)
    assert_array_equal(model().fit(other, CHOSEN).predict_proba(other), expected)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_transformers_do_not_invent_them(output):
    if output == "pandas":
        pytest.importorskip("pandas")
    partly = X.copy()
    partly[0, 1, 1] = np.nan  # a missing value of an item that was there
    imputer = Itemwise(SimpleImputer()).set_output(transform=output)
    pipeline = make_pipeline(imputer, model()).fit(partly, CHOSEN)
    filled = partly.copy()
    seen = np.unique(partly[THERE], axis=0)
    filled[0, 1, 1] = np.nanmean(seen[:, 1])
    expected = model().fit(filled, CHOSEN).predict_proba(filled)
    assert_allclose(pipeline.predict_proba(partly), expected, atol=1e-10)
    transformed = np.asarray(pipeline[0].transform(partly))
    assert_array_equal(np.isnan(transformed).all(axis=2), ~THERE)


def test_splitters_and_importance_leave_them_out():
    components = item_components(np.stack([X[3], X[4]]))
    assert components.tolist() == [0, 1]  # {8, 0} and {5, 6, 7}
    assert item_components(X).tolist() == [0] * 6
    folds = [ItemKFold(9, mixed="test").split(each) for each in (X, CLOSED)]
    for found, wanted in zip(*folds, strict=True):  # each leaves one item out
        assert_array_equal(found[0], wanted[0])
        assert_array_equal(found[1], wanted[1])
    fitted = model().fit(X, CHOSEN)
    found = permutation_importance(fitted, X, CHOSEN, n_repeats=2)
    closed = permutation_importance(fitted, CLOSED, CHOSEN_CLOSED, n_repeats=2)
    assert_allclose(found.importances, closed.importances)


@pytest.mark.parametrize(
    ("row", "y", "match"),
    [
        ([0, -1, -1, -1, -1], CHOSEN, r"Row 1 has 1 item\(s\)"),
        ([-1] * 5, CHOSEN, r"Row 1 has 0 item\(s\)"),
        (
            [-1, 1, -1, 3, 5],
            [0, 0, 2, 4, 1, 0],
            r"Row 1 of y chooses position 0 .* are \[1, 3, 4\],",
        ),
        ([0, 1, -1, -1, -1], [0, 3, 2, 4, 1, 0], r"Row 1 of y chooses position 3 .* are \[0, 1\],"),
    ],
)
def test_what_cannot_be_is_refused(row, y, match):
    other = X.copy()
    other[1] = np.where(np.array(row)[:, None] >= 0, ITEMS[row], np.nan)
    with pytest.raises(ValueError, match=match):
        model().fit(other, y)


def test_a_missing_value_is_no_missing_item():
    partly = X.copy()
    partly[2, 0, 1] = np.nan
    with pytest.raises(ValueError, match=r"in 1 of 6 sets, first in row 2.*NaN in all its feat"):
        model().fit(partly, CHOSEN)
    duels = ITEMS[[[0, 1], [2, 3]]]
    duels[1, 0] = np.nan
    with pytest.raises(ValueError, match="in 1 of 2 duels, first in row 1"):
        model().fit(duels, [1, 0])


def test_ranks_of_items_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="ranks an item where X has none"):
        model().fit(X, np.where(THERE, RANKS, 1))


def test_the_sides_of_a_frame_of_sets_with_gaps_are_asked_for_by_array():
    out = Itemwise().fit_transform(X)
    assert isinstance(out, DuelFrame)
    with pytest.raises(ValueError, match=r"no item in place 0; np\.asarray\(X\)\[:, 0\]"):
        _ = out.first
    assert_array_equal(out[:, 0], X[:, 0])
