"""Off-seasons: a share of the correlation for each start between two times."""

import numpy as np
import pytest

from skpref.kernels import Seasons, kernel_with_gradient

TIMES = np.array([[-1.0], [0.0], [1.0], [3.0], [2.0]])


def test_a_start_belongs_to_the_season_that_it_begins():
    K = Seasons([3.0, 1.0], 0.25)(TIMES)
    np.testing.assert_allclose(K[0], [1.0, 1.0, 0.25, 0.0625, 0.25])
    np.testing.assert_allclose(K[3], [0.0625, 0.0625, 0.25, 1.0, 0.25])
    np.testing.assert_allclose(Seasons([3.0, 1.0], 0.25)(TIMES[:2], TIMES), K[:2])
    np.testing.assert_allclose(Seasons([3.0]).diag(TIMES), 1.0)


def test_gradient_is_that_of_differences():
    kernel, weight, step = Seasons([1.0, 2.5], 0.3), np.ones((5, 5)), 1e-6
    ends = [kernel.clone_with_theta(kernel.theta + side)(TIMES).sum() for side in (step, -step)]
    slope = kernel_with_gradient(kernel, TIMES)[1](weight)
    np.testing.assert_allclose(slope, [(ends[0] - ends[1]) / (2.0 * step)], rtol=1e-7)
    fixed = Seasons([1.0], share_bounds="fixed")
    assert fixed(TIMES, eval_gradient=True)[1].shape == (5, 5, 0)


def test_it_is_of_times_alone():
    with pytest.raises(ValueError, match="kernel of time alone"):
        Seasons([1.0])(np.zeros((3, 2)))


@pytest.mark.parametrize("starts", [[np.nan], [1.0, np.inf], [[1.0], [2.0]]])
def test_starts_are_finite_times(starts):
    with pytest.raises(ValueError, match=r"got Seasons\(starts=.*finite times is allowed"):
        Seasons(starts)(TIMES)
