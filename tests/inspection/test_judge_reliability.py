"""judge_reliability: the table of `judges_`, sorted; and who has none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.inspection import judge_reliability, leaderboard
from skpref.preprocessing import Itemwise

RNG = np.random.default_rng(2)
X = RNG.uniform(size=(120, 2, 1))
WHO = np.array(["ann", "bob", "cid", "dan"], dtype=object)[np.arange(120) % 4]
RIGHT = X[:, 0, 0] > X[:, 1, 0]
Y = np.select([WHO == "ann", WHO == "cid"], [~RIGHT, RNG.integers(0, 2, 120) > 0], RIGHT).astype(
    int
)


def model(**prior):
    return PairwisePreferenceRegressor(
        RBF(0.5), optimizer=None, noise_variance=0.05, judge_prior=JudgePrior(**prior)
    )


@pytest.mark.parametrize("own", [None, 0.05])
def test_rows_are_those_of_the_judges(own):
    fitted = model(order_variance=own).fit(X, Y, judges=WHO, order=np.ones(120, dtype=int))
    found, judges = judge_reliability(fitted, level=0.8), fitted.judges_
    order = [judges.ids.tolist().index(name) for name in found.names]
    assert np.all(np.diff(found.reliability) <= 0.0) and set(found.names) == set(WHO)
    assert_array_equal(found.reliability, judges.reliability[order])
    interval = judges.reliability_interval(0.8)[order]
    assert_array_equal(np.column_stack([found.lower, found.upper]), interval)
    assert_array_equal(found.probability_adversarial, judges.probability_adversarial[order])
    assert set(found.names[:2]) == {"bob", "dan"} and found.names[-1] == "ann"
    assert found.n_answers.tolist() == [30, 30, 30, 30]
    assert (found.order_effect is None) == (own is None)
    if own is not None:
        # In these units a lead of 1 is one deviation of the noise of an item, here of variance .05.
        assert_allclose(found.order_effect * np.sqrt(0.05), judges.order_effect[order])
        elo = judge_reliability(fitted, unit="elo")
        for unit in (found, elo):  # the same probability that an item wins of an equal one
            lead = unit.order_effect * leaderboard(fitted, X[0], unit=unit.unit).unit_length
            assert_allclose(lead, judges.order_effect[order])
        assert np.all(found.order_lower < found.order_upper)
    assert (found.frame is None) or found.frame.shape[0] == 4


def test_behind_a_pipeline_and_without_judges():
    steps = make_pipeline(Itemwise(StandardScaler()), model())
    steps.fit(X, Y, pairwisepreferenceregressor__judges=WHO)
    assert judge_reliability(steps).names[-1] == "ann"
    with pytest.raises(ValueError, match=r"knows no judges.*judges="):
        judge_reliability(model().fit(X, Y))
    with pytest.raises(TypeError, match="Was it fitted"):
        judge_reliability(model())
