"""Powers of the probit's factor under a Gaussian, against fine panels of Gauss and Legendre."""

import numpy as np
import pytest
from likelihoods_support import rows
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from skpref.data import DUEL, GRADED, TIE
from skpref.likelihoods import GradedProbit, Probit

X, WEIGHTS = np.polynomial.legendre.leggauss(32)
POWERS = (1e-6, 1e-3, 0.1, 0.5, 0.999)
RATIOS = (1e-6, 1e-3, 0.09, 0.11, 0.34, 0.6, 0.99, 1.01, 4.0, 300.0, 1e5, 1e8)


def log_factor(u, width):
    """Of a half line, or a slab of half this width."""
    if width is None:
        return log_ndtr(u)
    above, below = log_ndtr(width - np.abs(u)), log_ndtr(-width - np.abs(u))
    return above + np.log1p(-np.exp(below - above))


def panels(centre, ratio, power, width):
    """Nodes less the centre, weights: fine about the mode, the centre and the factor's ends."""
    edges = (0.0,) if width is None else (-width, width)
    sd = np.sqrt(ratio)

    def height(u):
        return 0.5 * (u - centre) ** 2 / ratio - power * log_factor(u, width)

    best = 0.0 if width is not None else max(centre, 10.0)  # of the factor
    span = sorted((centre, best + 1e-9 * sd))
    mode = minimize_scalar(height, bounds=span, options={"xatol": 1e-4 * min(sd, 1.0)}).x
    deviation = 1.0 / np.sqrt(1.0 / ratio + power)
    grades = np.concatenate([[0.0], np.geomspace(0.3, 1e6, 50)])
    steps = np.linspace(-14.0, 14.0, 29)
    moved = mode - centre
    breaks = [moved + sd * steps, moved + deviation * steps, sd * steps]
    breaks += [e - centre + side * grades for e in edges for side in (-1.0, 1.0)]
    breaks = np.unique(np.concatenate(breaks))
    low, high = min(moved, 0.0) - 14.0 * sd, max(moved, 0.0) + 14.0 * sd
    breaks = np.concatenate([[low], breaks[(breaks > low) & (breaks < high)], [high]])
    half = 0.5 * np.diff(breaks)[:, None]
    nodes = 0.5 * (breaks[1:] + breaks[:-1])[:, None] + half * X
    return nodes.ravel(), (half * WEIGHTS).ravel()


def truth(centre, ratio, power, width):
    """log Z, its derivatives in units of the Gaussian, its tilted variance over the Gaussian's."""
    off, weight = panels(centre, ratio, power, width)
    away = off / np.sqrt(ratio)
    height = power * log_factor(centre + off, width) - 0.5 * away**2
    top = height.max()
    density = weight * np.exp(height - top)
    total = density.sum()
    shift = density @ away / total
    spread = density @ (away - shift) ** 2 / total
    return top + np.log(total / np.sqrt(2.0 * np.pi * ratio)), shift, 1.0 - spread, spread


def cavities(ratio, width):
    """Centres near to the ends of the factor, and many deviations of either kind away."""
    sd = np.sqrt(ratio)
    some = [k * sd for k in (-300.0, -30.0, -8.0, -3.0, -1.0, 0.0, 0.7, 2.0, 5.0, 9.0, 40.0)]
    some += [-100.0, -6.0, -2.0, -0.5, 1.0, 3.0, 8.0]
    if width is not None:
        some += [width - 3.0, width, width + 3.0, width + 5.0 * sd]
    return np.array(some)


@pytest.mark.parametrize("width", [None, 0.4, 2.0, 9.0, 40.0])
@pytest.mark.parametrize("ratio", RATIOS)
def test_moments_are_those_of_fine_panels(ratio, width):
    centre, power = (a.ravel() for a in np.meshgrid(cavities(ratio, width), POWERS))
    n = len(centre)
    # Of a margin whose noise has variance 1
    likelihood = Probit(0.5, tie_threshold=width)
    cavity = centre, np.full(n, ratio), rows(np.full(n, DUEL if width is None else TIE)), power
    found = likelihood.tilted(*cavity)
    expected = np.array([truth(c, ratio, w, width) for c, w in zip(centre, power, strict=True)]).T
    assert_allclose(found.log_normaliser, expected[0], rtol=1e-11, atol=1e-11)
    assert_allclose(found.gradient * np.sqrt(ratio), expected[1], rtol=1e-10, atol=2e-11)
    assert_allclose(found.curvature * ratio, expected[2], atol=1e-10)
    assert_allclose(found.shrink, expected[3], rtol=1e-9)
    value = likelihood.log_normaliser(*cavity)
    assert_allclose(value, found.log_normaliser, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("ratio", [1e-4, 0.2, 0.8, 20.0, 1e4])
def test_slopes_in_all_hyperparameters_are_differences(ratio):
    model = GradedProbit(0.5, tie_threshold=0.4, order_effect=0.3, order_effect_bounds=(-1.0, 1.0))
    model.grade_thresholds = (1.0, 2.5)
    one_of_each = np.array([DUEL, TIE, GRADED + 1, GRADED + 2, GRADED + 3])
    u = np.array([-30.0, -3.0, -0.4, 0.1, 1.0, 4.0])
    mean = np.repeat(u * np.sqrt(1.0 + ratio), 5)
    n = len(mean)
    answers = rows(np.tile(one_of_each, 6), np.resize([1, -1, 0], n))
    variance, power = np.full(n, ratio), np.resize([0.01, 0.5, 0.9, 0.999], n)
    found = model.tilted_theta_gradient(mean, variance, answers, power)

    def value(theta):
        return model.at(theta).log_normaliser(mean, variance, answers, power)

    assert_allclose(found, central_gradient(value, model.theta, 1e-2), rtol=1e-6, atol=1e-7)
