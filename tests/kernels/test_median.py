"""The median heuristic: known distributions, units, constant and rare features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from skpref.kernels import median_lengthscales


def test_of_normal_features():
    # The difference of two is normal of variance 2; half of them are below its upper quartile.
    X = np.random.default_rng(0).normal(size=(5000, 4)) * [1.0, 10.0, 0.1, 1e6]
    truth = 2.0 * np.sqrt(2.0) * norm.ppf(0.75) * np.array([1.0, 10.0, 0.1, 1e6])
    assert_allclose(median_lengthscales(X), truth, rtol=0.05)


def test_all_pairs_of_few_rows():
    assert_allclose(median_lengthscales([[0.0], [1.0], [5.0]]), [4.0])


def test_constant_and_rare_features():
    X = np.zeros((100, 2))
    X[0, 1] = 50.0  # 99 of 4950 pairs differ
    assert_allclose(median_lengthscales(X), [1.0, np.sqrt(2.0)])


def test_one_row():
    assert_allclose(median_lengthscales([[3.0, 4.0]]), [1.0, 1.0])


@pytest.mark.parametrize("gap", [np.nan, np.inf])
def test_gaps_are_named(gap):
    with pytest.raises(ValueError, match="in 1 of 3 rows, first in row 1"):
        median_lengthscales([[0.0, 1.0], [1.0, gap], [2.0, 3.0]])
