"""Roots of many functions at once beside brentq, one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.special import ndtr

from skpref._utils import bracketed_roots

SHIFTS = np.random.default_rng(0).normal(0.0, 3.0, size=200)
CURVES = {
    "polynomial": lambda x, s: (x - s) ** 3 + 0.1 * (x - s),
    "flat": lambda x, s: (x - s) ** 5,
    "steep": lambda x, s: np.expm1(4.0 * (x - s)),
    "normal": lambda x, s: 0.5 * (ndtr(x) + ndtr(3.0 * (x - s))) - 0.3,
    "kinked": lambda x, s: np.where(x < s, 1e-3, 1e3) * (x - s),
}


@pytest.mark.parametrize("name", CURVES)
def test_roots_are_brents(name):
    curve, low, high = CURVES[name], np.full(200, -40.0), np.linspace(30.0, 50.0, 200)
    found = bracketed_roots(lambda x, rows: curve(x, SHIFTS[rows]), low, high)
    expected = [
        brentq(curve, *ends, args=(s,), xtol=1e-15, rtol=1e-15, maxiter=999)
        for *ends, s in zip(low, high, SHIFTS, strict=True)
    ]
    # A fifth power says where its root is to the fifth root of the smallest number.
    assert_allclose(found, expected, rtol=1e-13, atol=1e-4 if name == "flat" else 1e-13)
    assert_allclose(curve(found, SHIFTS), 0.0, atol=1e-11)


def test_a_few_looks_find_a_smooth_root():
    looks = []

    def excess(x, rows):
        looks.append(len(rows))
        return ndtr(x - SHIFTS[rows]) - 0.3

    bracketed_roots(excess, np.full(200, -40.0), np.full(200, 40.0))
    assert sum(looks) < 200 * 20  # halving takes 56


def test_jumps_ends_and_functions_without_a_root():
    """A step is found where it is; a root at an end is that end; without one there is no number."""
    steps = bracketed_roots(
        lambda x, rows: np.where(x < SHIFTS[rows], -1.0, 1.0), SHIFTS - 2.0, SHIFTS + 9.0
    )
    assert_allclose(steps, SHIFTS, rtol=1e-14)
    ends = np.array([1.0, 4.0, 0.0, 7.0])
    found = bracketed_roots(lambda x, rows: x - ends[rows], np.ones(4), np.full(4, 4.0))
    assert_array_equal(found, [1.0, 4.0, np.nan, np.nan])
    assert bracketed_roots(lambda x, rows: x, np.empty(0), np.empty(0)).shape == (0,)


def test_the_same_as_scipys():
    elementwise = pytest.importorskip("scipy.optimize.elementwise")
    for curve in CURVES.values():
        low, high = np.full(200, -40.0), np.full(200, 40.0)
        theirs = elementwise.find_root(curve, (low, high), args=(SHIFTS,)).x
        ours = bracketed_roots(lambda x, rows, of=curve: of(x, SHIFTS[rows]), low, high)
        assert_allclose(curve(ours, SHIFTS), curve(theirs, SHIFTS), atol=1e-12)
