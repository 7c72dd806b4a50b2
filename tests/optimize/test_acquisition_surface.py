"""acquisition_surface: the acquisition's formula on a plane of the space; what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import loguniform, norm
from sklearn.exceptions import NotFittedError

from skpref import HallucinationBelieverOptimizer, PreferenceOptimizer
from skpref.optimize import STRATEGIES, ActiveLearner

SPACE = {"heat": (60.0, 100.0), "kind": ["a", "b", "c"], "dose": loguniform(0.1, 10.0), "n": (1, 5)}


def worth(item):
    return -(((item["heat"] - 80.0) / 20.0) ** 2) - np.log10(item["dose"]) ** 2


@pytest.fixture(scope="module")
def asked():
    optimizer = PreferenceOptimizer(SPACE, **STRATEGIES["EP-EI"]._asdict(), random_state=0)
    optimizer.run(lambda a, b: worth(a) > worth(b), 12)
    return optimizer


def rows_of(optimizer, found, held):
    """Rows of the plane, by items that people would give."""
    first, second = found.names
    return optimizer.to_unit(
        [
            held | {first: _number(first, a), second: _number(second, b)}
            for a in found.grid[0]
            for b in found.grid[1]
        ]
    )


def _number(name, value):
    return int(value) if name == "n" else float(value)


@pytest.mark.parametrize("pair", [None, ("dose", "heat"), ("n", "heat"), (0, 2)])
def test_it_is_expected_improvement_by_its_formula(asked, pair):
    found = asked.acquisition_surface(pair, resolution=7)
    assert found.method == "ei"
    assert found.names == {None: ("heat", "dose"), (0, 2): ("heat", "dose")}.get(pair, pair)
    assert found.acquisition.shape == tuple(map(len, found.grid))
    rows, posterior = rows_of(asked, found, asked.incumbent_), asked.posterior_
    seen = asked.to_unit([item for items, _ in asked.history_ for item in items])
    best, mean = posterior.mean(seen).max(), posterior.mean(rows)
    deviation = np.sqrt(posterior.var(rows))
    z = (mean - best) / deviation
    truth = deviation * (norm.pdf(z) + z * norm.cdf(z))
    assert_allclose(found.acquisition.ravel(), truth, rtol=1e-7, atol=1e-12)
    assert_allclose(found.grid[0][[0, -1]], {"heat": [60, 100], "dose": [0.1, 10], "n": [1, 5]}[
        found.names[0]
    ])  # fmt: skip
    i, j = np.unravel_index(found.acquisition.argmax(), found.acquisition.shape)
    assert_allclose(found.best, [found.unit[0][i], found.unit[1][j]])
    assert len(found.shown) == len(np.unique(seen, axis=0))


def test_others_are_held_where_they_are_said_to_be(asked):
    held = {"heat": 70.0, "kind": "c", "dose": 1.0, "n": 2}
    found = asked.acquisition_surface(acquisition="mean", at=held, resolution=5)
    rows = rows_of(asked, found, held)
    assert_allclose(found.acquisition.ravel(), asked.posterior_.mean(rows), atol=1e-10)

    def own(posterior, X, incumbent):
        return np.where(X[:, 0] > 0.5, np.nan, posterior.mean(X) - incumbent[0])

    mine = asked.acquisition_surface(acquisition=own, at=held, resolution=5)
    assert mine.method == "own" and np.isnan(mine.acquisition[3:]).all()
    assert np.isfinite(mine.acquisition[:3]).all() and mine.best[0] <= 0.5


def test_the_method_of_the_optimizer_is_taken():
    def run(**options):
        optimizer = PreferenceOptimizer([[0, 1], [0, 1]], random_state=0, **options)
        optimizer.run(lambda a, b: a[0] > b[0], 6)
        return optimizer

    assert run().acquisition_surface(resolution=3).method == "log_ei"  # of the turn beside "kg"
    eubo = run(inference="ep", incumbent="joint", acquisition="eubo")
    assert eubo.acquisition_surface(resolution=3).method == "eubo"
    gains = run(inference="ep", incumbent="joint", acquisition="kg")
    with pytest.raises(ValueError, match=r"chosen by 'kg'.*acquisition= one of"):
        gains.acquisition_surface()
    assert gains.acquisition_surface(acquisition="ucb", resolution=3).method == "ucb"


def test_nonsense_is_refused(asked):
    surface = asked.acquisition_surface
    with pytest.raises(ValueError, match=r"'kind' holds categories.*'heat', 'dose', 'n'"):
        surface(("kind", "heat"))
    for pair in (("heat",), ("heat", "heat"), ("heat", "cold"), (0, 9), "heat"):
        with pytest.raises(ValueError, match="two different ones"):
            surface(pair)
    with pytest.raises(ValueError, match="acquisition must be one of"):
        surface(acquisition="kg")
    with pytest.raises(ValueError, match="no finite number anywhere"):
        surface(acquisition=lambda posterior, X, incumbent: np.full(len(X), np.nan))
    with pytest.raises(ValueError, match="resolution must"):
        surface(resolution=1)
    fresh = HallucinationBelieverOptimizer([[0, 1], [0, 1]])
    with pytest.raises(NotFittedError):
        fresh.acquisition_surface()
    with pytest.raises(ValueError, match="a plane needs two"):
        HallucinationBelieverOptimizer([[0, 1]]).acquisition_surface()
    pool = PreferenceOptimizer(candidates=np.eye(3)[:, :2] + 0.1)
    with pytest.raises(ValueError, match="candidates of a pool"):
        pool.acquisition_surface()
    assert not hasattr(ActiveLearner, "acquisition_surface")
