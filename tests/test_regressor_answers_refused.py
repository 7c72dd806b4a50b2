"""Answers, orders, weights and engines that cannot be are errors that say so."""

import numpy as np
import pytest
from sklearn.base import clone

from skpref import PairwisePreferenceRegressor
from skpref.inference import HMC, Gibbs

TABLE = np.random.default_rng(0).uniform(-1.0, 1.0, (9, 2))
SETS, TWO = [[0, 1, 2], [3, 4, 5]], [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (SETS, [[1, 2, 4], [1, 2, 3]], r"Row 0 of y has ranks \[1, 2, 4\] with a gap"),
        (SETS, [[1, 2, 3], [2, 3, 3]], r"Row 1 of y has ranks \[2, 3, 3\] with a gap"),
        (SETS, [[1, 2, 2.5], [1, 2, 3]], "Ranks in y must be whole numbers.*2.5"),
        (SETS, [[1, 2, np.nan], [1, 2, 3]], "Ranks in y must be whole numbers.*nan"),
        (SETS, [[1, 2, -1], [1, 2, 3]], "Row 0 of y has a negative rank"),
        (SETS, [[1, 2, 3], [1, 1, 1]], "Row 1 of y has ranks .* which say nothing"),
        (SETS, [[1, 2, 3], [1, 0, 0]], "Row 1 of y has ranks .* which say nothing"),
        (
            SETS,
            [0, 3],
            r"Row 1 of y chooses position 3 of a set of 3 items; allowed are \[0, 1, 2\]",
        ),
        (SETS, [-1, 0], "Row 0 of y chooses position -1"),
        (SETS, [0.5, 1], "Positions of chosen items in y must be whole numbers"),
        (SETS, ["a", "b"], "Positions of chosen items in y must be whole numbers"),
        (SETS, None, "y of sets must be the position of the chosen item.*Only duels do without"),
        (SETS, [0, 1, 2], "inconsistent numbers of samples: 2 sets, y of shape"),
        (SETS, [[1, 2], [2, 1]], r"y of shape \(2, 2\)"),
        ([[0, 1, 2], [3, 4, -1]], [0, 2], "chooses position 2 of a set of 2 items"),
        ([[0, 1, 2], [3, 4, -1]], [[1, 2, 3], [1, 2, 2]], "ranks an item where X has none"),
        ([[0, 1, 0], [3, 4, 5]], [0, 1], "Row 0 of X sets an item against itself"),
        ([[0, 1, 2], [3, -1, -1]], [0, 0], "(?i)row 1.*(two|1 item)"),
        ([[0], [1]], [0, 0], r"\(n_duels, 2\)"),
        (TWO, [1, 0, -1], "give tie_threshold"),
    ],
)
def test_bad_answers_are_named(X, y, match):
    with pytest.raises(ValueError, match=match):
        PairwisePreferenceRegressor(items=TABLE, optimizer=None).fit(np.array(X), y)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([1, 0, 0], r"0 and no -1.*'the second won'.*tie, there must be duels that the second"),
        ([True, False, True], "holds booleans"),
        ([1, 2, -1], r"must be in \{-1, 0, 1\}"),
        ([1, 0.5, -1], r"must be in \{-1, 0, 1\}"),
    ],
)
def test_bad_labels_of_ties_are_named(y, match):
    with pytest.raises(ValueError, match=match):
        PairwisePreferenceRegressor(items=TABLE, tie_threshold=0.1).fit(np.array(TWO), y)


@pytest.mark.parametrize("threshold", [0.0, -0.1, np.nan, np.inf])
def test_thresholds_are_positive(threshold):
    with pytest.raises(ValueError, match=r"tie_threshold.*None means no ties"):
        PairwisePreferenceRegressor(items=TABLE, tie_threshold=threshold).fit(TWO, [1, 0, -1])


@pytest.mark.parametrize(
    ("X", "y", "order", "match"),
    [
        (TWO, [1, 0, 1], [1, 1], "got 2 values of order for 3 rows"),
        (TWO, [1, 0, 1], [[1], [1], [1]], r"order of shape \(3, 1\) for 3 rows"),
        (TWO, [1, 0, 1], [1, 2, 1], "order says who was shown first.*got 2"),
        (TWO, [1, 0, 1], [1, 0.5, 1], "order says who was shown first.*got 0.5"),
        (SETS, [0, 1], [1, -1], r"got -1 \(of sets it is 1 or 0\)"),
    ],
)
def test_bad_orders_are_named(X, y, order, match):
    regressor = PairwisePreferenceRegressor(items=TABLE, optimizer=None)
    with pytest.raises(ValueError, match=match):
        regressor.fit(np.array(X), y, order=order)
    regressor.fit(np.array(X), y)
    with pytest.raises(ValueError, match=match):
        regressor.predict_proba(np.array(X), order=order)


def test_an_order_of_rated_items_is_refused():
    regressor = PairwisePreferenceRegressor(optimizer=None)
    rated = [[0.0], [1.0], [2.0]], [3, 1, 2]
    for call in (regressor.fit, regressor.fit(*rated).score):
        with pytest.raises(ValueError, match=r"order= is of duels and sets.*from_ratings"):
            call(*rated, order=[1, 1, 0])


def test_engines_and_weights_that_cannot_be_are_named():
    X = np.array(SETS)
    for engine in ("laplace", HMC(evidence="laplace"), Gibbs(evidence="laplace")):
        regressor = PairwisePreferenceRegressor(items=TABLE, inference=engine)
        with pytest.raises(ValueError, match=r"Laplace does not take choices.*'ep', 'hmc'"):
            regressor.fit(X, [0, 1])
    regressor = PairwisePreferenceRegressor(items=TABLE, optimizer=None)
    with pytest.raises(ValueError, match=r"weights of at least 1, or 0; got 0.5"):
        regressor.fit(X, [0, 1], sample_weight=[0.5, 1.0])
    with pytest.raises(ValueError, match=r"at least 0, got -1.0"):
        regressor.fit(X, [0, 1], sample_weight=[-1.0, 1.0])
    with pytest.raises(ValueError, match=r"as a number of repetitions, got 1.5"):
        clone(regressor).set_params(inference="hmc").fit(X, [0, 1], sample_weight=[1.5, 1.0])
    for inference in ("gibbs", Gibbs()):
        regressor = PairwisePreferenceRegressor(items=TABLE, inference=inference)
        with pytest.raises(ValueError, match=r"Gibbs draws one inequality.*'hmc' or 'ep'"):
            regressor.fit([[0, 1, 2, 3]], [[1, 1, 2, 2]])
