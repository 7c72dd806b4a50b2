"""Kernels through time in state-space form: the covariances of the kernels themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
)

from skpref.kernels import Identity, OnColumns, Seasons, Teams, Wiener, drifts_of

WHO = OnColumns(Identity(), [0])


def through(kernel):
    return OnColumns(kernel, [1])


KNOWN = [
    WHO * through(Matern(3.0, nu=0.5)),
    0.7 * WHO + 0.3 * WHO * through(Matern(5.0, nu=1.5)),
    WHO * through(Wiener(0.4)) + ConstantKernel(0.5) * WHO,
    0.3 * WHO * through(2.0 * Matern(2.0, nu=2.5) + Matern(1.0, "fixed", nu=0.5)),
    (WHO * through(Matern(3.0, nu=2.5)) + WHO) * ConstantKernel(2.0),
    WHO + WHO * through((Wiener(0.4) + 0.6 * Matern(3.0, nu=1.5)) * Seasons([8.0, -2.0, 0.0], 0.3)),
    0.5 * WHO * through(Seasons([2.0, 60.0]) * Matern(3.0, nu=2.5)) + WHO * through(Seasons([1.0])),
]


@pytest.mark.parametrize("kernel", KNOWN, ids=str)
def test_covariances_are_those_of_the_kernel(kernel):
    drift = drifts_of(kernel, 2).drift
    times = np.array([-7.0, -1.5, 0.0, 0.0, 1e-7, 2.0, 9.0, 400.0])
    rows = np.column_stack([np.zeros(len(times)), times])
    found = drift.covariance(times[:, None], times[None, :])
    assert_allclose(found, kernel(rows), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", KNOWN, ids=str)
def test_states_of_two_moves_are_those_of_one(kernel):
    drift = drifts_of(kernel, 2).drift
    s, t, u = np.array([-4.0, 0.5, 2.0]), np.array([-1.0, 0.5, 2.5]), np.array([3.0, 0.7, 80.0])
    A, Q = drift.transition(s, t)
    B, R = drift.transition(t, u)
    C, both = drift.transition(s, u)
    assert_allclose(np.einsum("ijn,jkn->ikn", B, A), C, atol=1e-12)
    moved = np.einsum("ijn,jkn,lkn->iln", B, Q, B) + R
    assert_allclose(moved, both, atol=1e-11)


def test_what_does_not_drift_stands_beside():
    static = 0.2 * OnColumns(DotProduct(0.5), [2]) + 0.4 * OnColumns(Identity(), [2])
    kernel = WHO + WHO * through(Wiener()) + static
    drifts = drifts_of(kernel, 3)
    drift = drifts.drift
    assert (drift.who, drift.time, drift.size) == ((0,), 1, 2)
    assert [term.group for term in drifts.static.terms] == [(), (2,)]
    assert_allclose(drifts.static.variance, [0.05, 0.2, 0.4])


def test_teams_are_of_the_processes_of_their_members():
    inner = WHO * through(Matern(3.0, nu=0.5))
    drifts = drifts_of(Teams(inner, [[0], [2]], [3, 4]), 5)
    assert drifts.drift.who == (0,) and drifts.drift.time == 1
    # Columns: two players, their shares of the time, and the day in the midst.
    rows = np.array([[7.0, 4.0, 8.0, 0.5, 1.0], [7.0, 6.0, -1.0, 0.25, 1.0]])
    members, weights = drifts.members(rows)
    assert members.tolist() == [[[7.0, 4.0], [7.0, 6.0]], [[8.0, 4.0], [-1.0, 6.0]]]
    assert weights.tolist() == [[0.5, 0.25], [1.0, 0.0]]
    assert drifts.times_of(rows).tolist() == [4.0, 6.0]
    assert drifts_of(Teams(WHO, [[0], [2]]), 3) is None


@pytest.mark.parametrize(
    "kernel",
    [
        WHO,
        WHO * through(RBF()),
        WHO * through(ExpSineSquared()),
        WHO * through(Matern(nu=0.7)),
        through(Matern(nu=0.5)),
        WHO * through(Matern(nu=0.5)) * through(Wiener()),
        WHO * through(Matern(nu=0.5)) * OnColumns(Seasons([1.0]), [0]),
        WHO * through(Wiener() * Seasons([1.0]) * Seasons([2.0])),
        WHO * through(Matern(nu=0.5)) + through(DotProduct()),
        WHO * through(Matern(nu=0.5)) + OnColumns(Identity(), [1]) * through(Matern(nu=0.5)),
        WHO * through(Matern(nu=0.5)) + OnColumns(RBF(), [0]),
        WHO * Matern(nu=0.5),
        OnColumns(Identity(), [0, 1]) * through(Matern(nu=0.5)),
        WHO * through(Matern(nu=0.5)) + through(Matern(nu=0.5)),
        WHO * through(Matern(nu=0.5)) + OnColumns(Identity(), [0, 1]),
    ],
    ids=str,
)
def test_others_are_not_known(kernel):
    assert drifts_of(kernel, 2) is None
