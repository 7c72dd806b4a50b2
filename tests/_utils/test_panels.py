"""Panels that are halved until they resolve, against integrals that are known."""

import numpy as np
import pytest
from scipy.special import ndtr

from skpref._utils import adaptive_panels, pseudosolve_blocks


def sums(function, edges, least, floor=0.0):
    _, row, parts = adaptive_panels(function, edges, least, floor)
    return np.bincount(row, parts, len(edges))


@pytest.mark.parametrize("width", [1e-3, 1.0])
def test_normals_of_any_width_beside_their_distribution_function(width):
    centre = np.array([-0.3, 0.0, 0.77])
    edges = np.tile([-1.0, 0.1, 1.0], (3, 1))

    def density(row, x):
        u = (x - centre[row, None]) / width
        return np.exp(-0.5 * u * u) / (width * np.sqrt(2.0 * np.pi))

    truth = ndtr((edges[:, -1] - centre) / width) - ndtr((edges[:, 0] - centre) / width)
    np.testing.assert_allclose(sums(density, edges, 1e-10), truth, rtol=1e-13)


def test_functions_of_either_sign_are_resolved_to_the_floor():
    found = sums(lambda row, x: np.sin(50.0 * x), np.array([[-1.0, 1.0]]), 1e-9, floor=1.0)
    np.testing.assert_allclose(found, 0.0, atol=1e-13)


def test_panels_without_width_count_for_nothing_and_a_kink_is_found():
    edges = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    truth = 0.5 * (0.3**2 + 0.7**2)
    found = sums(lambda row, x: np.abs(x - 0.3), edges, 1e-7)
    # Where a function bends at a point the share left is the error, and not its root.
    np.testing.assert_allclose(found, [truth, truth, 0.0], rtol=1e-7)


def test_a_singular_system_does_not_move_the_others():
    rng = np.random.default_rng(0)
    matrices, right = rng.normal(size=(4, 3, 3)), rng.normal(size=(4, 3, 1))
    matrices[2, 2] = matrices[2, 1]
    found = pseudosolve_blocks(matrices, right)
    for k in (0, 1, 3):
        np.testing.assert_allclose(matrices[k] @ found[k], right[k], atol=1e-11)
    least = np.linalg.lstsq(matrices[2], right[2], rcond=1e-12)[0]
    np.testing.assert_allclose(found[2], least, atol=1e-10)
