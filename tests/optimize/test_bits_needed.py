"""``benchmarks/optimize/bits_needed.py``: shares of the space that are known."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def from_benchmarks():
    folders = [str(BENCHMARKS), str(BENCHMARKS / "optimize")]
    sys.path[:0] = folders
    yield
    for folder in folders:
        sys.path.remove(folder)


@pytest.mark.parametrize("centres", [1, 2])
@pytest.mark.parametrize("d", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_share_of_ellipsoids_is_their_volume(d, centres):
    from _generated_problems import Problem
    from bits_needed import share

    steep = np.geomspace(1.0, 6.0, d)
    places = np.linspace(0.3, 0.7, 2)[:centres]

    def utility(rows):
        return -np.min([(((rows - at) * steep) ** 2).sum(axis=1) for at in places], axis=0)

    problem = Problem("paraboloid", "function", d, utility)
    radius = np.sqrt(0.001 * problem.range)
    ball = np.exp(0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1.0))
    found, error = share(problem, 0.001, seed=0)
    assert found == pytest.approx(centres * ball * np.prod(radius / steep), rel=4 * error)
    assert error < 0.1


@pytest.mark.slow
def test_share_of_a_mixed_space_is_that_of_its_cell():
    from _generated_problems import Problem
    from bits_needed import share

    def utility(rows):  # two numbers, the integers as a share, two categories
        away = ((rows[:, :2] - 0.5) ** 2).sum(axis=1)
        return -away - (rows[:, 2] != 0.5) - rows[:, 3]

    problem = Problem("cells", "mixed", 4, utility, integers=3, categories=2)
    found, error = share(problem, 0.001, seed=0)
    area = np.pi * 0.001 * problem.range / 6.0
    assert found == pytest.approx(area, rel=4 * error)
    assert error < 0.1
