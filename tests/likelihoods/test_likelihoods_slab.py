"""The mass of a normal distribution on a slab, and its derivatives, by quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_ndtr
from scipy.stats import norm

from skpref.likelihoods._normal import slab

CENTRES = np.array([0.0, 1e-6, 0.01, 0.3, 1.0, 2.5, 4.9, 5.1, 12.0, 40.0, 299.0, 300.0])
WIDTHS = np.concatenate([10.0 ** np.arange(-12.0, 4.0), [0.003, 0.4, 0.5, 0.7, 2.0, 5.0, 299.9]])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
GRID = np.array([(c, w) for c in CENTRES for w in WIDTHS])


def by_quadrature(centre, width):
    """All of `Slab` from moments of a truncated normal, integrated inwards from the nearer end."""
    side, centre = np.sign(centre), abs(centre)
    near = width - centre
    top = min(near, 0.0)

    def height(y):  # of the density at near − y, over the highest
        return np.exp(-0.5 * (near - y) ** 2 if near > 0.0 else y * (near - 0.5 * y))

    fallen = near + 12.0 if near > 0.0 else 130.0 / (np.hypot(near, 11.4) - near)
    cuts = np.linspace(max(0.0, near - 12.0), min(2.0 * width, fallen), 9)[:, None]
    y = cuts[:-1] + np.diff(cuts, axis=0) * 0.5 * (1.0 + NODES)
    weight = np.diff(cuts, axis=0) * 0.5 * WEIGHTS

    def integral(function):
        return np.sum(weight * function(y))

    mass = integral(height)
    off = integral(lambda y: y * height(y)) / mass
    spread = integral(lambda y: (y - off) ** 2 * height(y)) / mass
    skew = -integral(lambda y: (y - off) ** 3 * height(y)) / mass
    ends = np.array([height(0.0), height(2.0 * width)]) / mass
    from_mean = np.array([off, off - 2.0 * width])
    value = np.log(mass) - 0.5 * top**2 - 0.5 * np.log(2.0 * np.pi)
    bend = ends @ (spread - from_mean**2)
    odd = side * np.array([near - off, skew, ends @ from_mean])
    return value, odd[0], 1.0 - spread, spread, odd[1], ends.sum(), odd[2], bend


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_everything_is_that_of_the_truncated_normal(side):
    centre, width = side * GRID[:, 0], GRID[:, 1]
    found = slab(centre, width)
    truth = np.array([by_quadrature(*each) for each in zip(centre, width, strict=True)]).T
    value, gradient, curvature, left, third, edge, edge_gradient, edge_curvature = truth
    sd = np.sqrt(left)
    assert_allclose(found.value, value, rtol=1e-12, atol=1e-14)
    assert_allclose(found.gradient, gradient, rtol=1e-12, atol=1e-12)
    assert_allclose(found.curvature, curvature, rtol=1e-11, atol=1e-13)
    assert_allclose(found.left, left, rtol=1e-11)
    assert_allclose(found.third / sd**3, third / sd**3, rtol=1e-7, atol=1e-7)
    assert_allclose(found.edge, edge, rtol=1e-11, atol=1e-13)
    # The truth of these is a difference of terms as large as these bounds.
    assert np.all(np.abs(found.edge_gradient - edge_gradient) <= 1e-11 * edge * sd + 1e-13)
    assert np.all(np.abs(found.edge_curvature - edge_curvature) <= 1e-10 * edge * left + 1e-13)


def test_both_ways_of_it_meet():
    rng = np.random.default_rng(0)
    width = 10.0 ** rng.uniform(-6.0, 1.0, 20_000)
    centre = rng.uniform(0.0, 3.0, 20_000) / np.minimum(width, 1.0)
    centre = centre[keep := centre < 300.0]
    width = width[keep]
    near = slab(centre, width * (1.0 + 1e-9))
    for name, one, other in zip(near._fields, slab(centre, width), near, strict=True):
        scale = np.maximum(np.abs(one), 1e-9 if "third" in name else 0.0)
        assert np.all(np.abs(one - other) <= 1e-5 * scale + 1e-12), name


def test_a_slab_that_begins_at_zero_and_never_ends_is_a_half_line():
    u = np.linspace(-30.0, 8.0, 39)
    width = np.full(39, 1e3)
    assert_allclose(slab(u - width, width).value, log_ndtr(u), rtol=1e-10)


def test_little_is_lost_where_almost_all_is_inside():
    width = np.array([6.0, 10.0, 20.0, 35.0])
    found = slab(np.zeros(4), width)
    assert_allclose(found.value, np.log1p(-2.0 * norm.sf(width)), rtol=1e-13)
    assert_allclose(found.curvature, 2.0 * width * norm.pdf(width), rtol=1e-8)
    assert np.all(found.curvature > 0.0)


@pytest.mark.parametrize("width", [1e-8, 1e-2, 1.0, 30.0, 1e3])
def test_the_logarithm_is_concave_and_even(width):
    centre = np.linspace(-300.0, 300.0, 4001)
    found = slab(centre, np.full(4001, width))
    turned = slab(-centre, np.full(4001, width))
    assert np.all((found.curvature >= 0.0) & (found.curvature <= 1.0))
    assert np.all((found.left > 0.0) & (found.left <= 1.0))
    assert np.all(np.diff(found.gradient) <= 0.0)
    assert np.all(found.edge >= 0.0)
    for even, name in zip((1, -1, 1, 1, -1, 1, -1, 1), found._fields, strict=True):
        assert_allclose(getattr(turned, name), even * getattr(found, name), rtol=1e-13)


def test_the_width_moves_it_as_its_ends_do():
    """Heat equation: d/ds² at fixed ends is half the second derivative of the mass."""
    centre, width = np.meshgrid([0.0, 0.4, 3.0, 40.0], [1e-3, 0.3, 2.0, 30.0])
    at = slab(centre.ravel(), width.ravel())
    scaled = centre.ravel() * at.gradient + width.ravel() * at.edge
    assert_allclose(scaled, at.curvature - at.gradient**2, rtol=1e-9, atol=1e-13)
