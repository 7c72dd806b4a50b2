"""Coordinates of the search: back where they came from, gradients by differences, bounds kept."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient

from skpref.fitting._search import Ratios

# An amplitude, a lengthscale, the noise's variance, a threshold, an order effect.
POWERS, LINEAR = np.array([2, 0, 2, 1, 1]), np.array([False] * 4 + [True])
LIMITS = np.array([[-9.0, 9.0], [-5.0, 5.0], [-9.2, 2.3], [-9.2, 2.3], [-3.0, 3.0]])
THETA = np.array([0.3, -1.0, -2.0, -1.5, 0.4])


def ratios(theta=THETA, noise=2):
    return Ratios.at(theta, POWERS, LINEAR, LIMITS, noise)


@pytest.mark.parametrize("noise", [2, None])
def test_the_way_there_and_back(noise):
    found = ratios(noise=noise)
    assert_allclose(found.back(found.forward(THETA)), THETA, rtol=1e-14)


def test_ratios_are_what_does_not_change_with_the_unit_of_the_utility():
    """In units ten times as small all numbers change, but for the ratios and what has no unit."""
    log = np.log(10.0)
    moved = THETA + log * np.array([2, 0, 2, 1, 0])
    moved[4] *= 10.0
    wide = Ratios.at(THETA, POWERS, LINEAR, LIMITS * 100.0, 2)
    off = wide.forward(moved) - wide.forward(THETA)
    assert_allclose(off, [0.0, 0.0, 2.0 * log, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("noise", [2, None])
def test_gradients_by_differences(noise):
    found = ratios(noise=noise)

    def objective(theta):
        return np.sin(theta @ [1.0, 0.3, -0.7, 2.0, 1.1]) + theta[4] ** 2 * theta[2]

    at = found.forward(THETA)
    slopes = central_gradient(objective, found.back(at), 1e-5)
    wanted = central_gradient(lambda where: objective(found.back(where)), at, 1e-5)
    assert_allclose(found.pull_back(at, slopes), wanted, rtol=1e-7)


def test_beyond_a_bound_nothing_changes_but_the_rest():
    found = ratios()
    at = found.forward(THETA)
    at[[2, 3, 4]] = 2.0, 3.0, 5.0  # threshold and order effect beyond their bounds
    theta = found.back(at)
    assert_allclose(theta[3:], [2.3, 3.0])
    slopes = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    wanted = central_gradient(lambda where: slopes @ found.back(where), at, 1e-5)
    assert_allclose(found.pull_back(at, slopes), wanted, atol=1e-9)


def test_what_is_at_a_bound_stays_as_it_is():
    theta = THETA.copy()
    theta[3] = LIMITS[3, 0]
    found = ratios(theta)
    assert found.forward(theta)[3] == theta[3]
    assert_allclose(found.bounds[3], LIMITS[3])
    assert np.all(np.isinf(found.bounds[[0, 4]]))
    assert_allclose(found.bounds[[1, 2]], LIMITS[[1, 2]])
