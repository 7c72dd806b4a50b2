"""Sessions over spaces whose items are few, far between, or all but equal as floats."""

import warnings

import numpy as np
import pytest
from scipy import stats

from skpref.optimize import HallucinationBelieverOptimizer

pytestmark = pytest.mark.usefixtures("brief")


def optimizer(space, **options):
    return HallucinationBelieverOptimizer(space, random_state=0, **options)


@pytest.mark.parametrize(
    "distribution",
    [
        stats.rv_discrete(values=([1, 4, 9], [0.2, 0.3, 0.5])),
        stats.rv_discrete(values=([1, 4, 9], [0.2, 0.3, 0.5]))(),
    ],
)
def test_a_table_of_probabilities_is_searched_over_its_values(distribution):
    made = optimizer({"n": distribution, "x": (0.0, 1.0)}, n_initial=3)
    for _ in range(12):
        first, second = made.ask()
        assert first != second
        assert {first["n"], second["n"]} <= {1, 4, 9}
        assert all(isinstance(item["n"], int) for item in (first, second))
        made.tell((first, second), abs(first["n"] - 4) < abs(second["n"] - 4))
    assert made.recommend()["n"] == 4


@pytest.mark.slow
def test_newer_discrete_distributions_give_integers():
    binomial = getattr(stats, "Binomial", None)
    if binomial is None:
        pytest.skip("scipy.stats has Binomial from 1.16 on only")
    made = optimizer({"n": binomial(n=10, p=0.3), "x": (0.0, 1.0)}, n_initial=3)
    best = made.run(lambda first, second: first["n"] > second["n"], 10)
    assert isinstance(best["n"], int)
    assert best["n"] >= 5


@pytest.mark.parametrize(
    "space", [[[1e9, 1e9 + 1e-6]], [[1.0, 1.0 + 1e-12]], {"x": stats.beta(0.02, 0.02)}]
)
def test_items_of_a_duel_differ_where_floats_are_coarse(space):
    made = optimizer(space)
    for step in range(9):
        first, second = made.ask()
        assert first != second
        made.tell((first, second), step % 2)


def test_a_space_of_a_single_float_is_named():
    with pytest.raises(ValueError, match="can be told apart in floating point"):
        optimizer({"x": stats.uniform(1e17, 1.0)}).ask()


def test_an_outcome_may_come_in_an_array_of_one():
    made = optimizer([[0.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.run(lambda first, second: first > second, 2)  # arrays of shape (1,)
        made.tell([[0.1], [0.2]], np.array(0))
    assert made.history_[-1].outcome == 0
    with pytest.raises(ValueError, match="One outcome is told at a time, got 2"):
        made.tell([[0.1], [0.2]], [1, 0])


def test_contradictions_at_tiny_noise_still_give_a_fresh_draw():
    # Every trajectory meets thousands of walls there, and would leave the draw where it was.
    told, believed = np.array([[0.1, 0.2], [0.8, 0.7]]), set()

    def acquisition(posterior, X, incumbent):
        believed.add(float(np.diff(posterior.mean(told))[0]))
        return posterior.mean(X)

    made = optimizer(
        [[0.0, 1.0]] * 2,
        noise_variance=1e-8,
        noise_variance_bounds="fixed",
        n_initial=4,
        acquisition=acquisition,
    )
    for k in range(8):
        made.tell(told, k % 2)
    made.ask(3)
    assert len(believed) == 3


def test_its_repr_tells_where_the_run_is():
    made = optimizer({"n": (1, 9), "x": (0.0, 1.0)})
    made.tell(made.ask(), 1).ask()
    shown = repr(made)
    assert "HallucinationBelieverOptimizer" in shown
    assert "2 dimensions" in shown
    assert "acquisition='log_ei'" in shown
    assert shown.endswith("duels told: 1, pending: 1>")
