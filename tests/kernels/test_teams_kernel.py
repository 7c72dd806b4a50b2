"""Teams: sums over members, written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Matern

from skpref.kernels import (
    Identity,
    OnColumns,
    Teams,
    input_gradient,
    kernel_with_gradient,
    seen_columns,
)

# Two members of an id and an age each, their shares of the time, and the day.
INNER = 0.7 * OnColumns(Identity(), [0]) + OnColumns(RBF(3.0), [1]) * OnColumns(
    Matern(2.0, nu=0.5), [2]
)
KERNEL = Teams(INNER, members=[[0, 1], [2, 3]], weights=[4, 5])


def teams(n, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(-1, 4, (n, 2)).astype(float)
    age = rng.normal(size=(n, 2))
    shares, day = rng.random((n, 2)), rng.integers(0, 5, n)
    return np.column_stack([ids[:, 0], age[:, 0], ids[:, 1], age[:, 1], shares, day])


def by_hand(X, Z):
    """Sums over pairs of members who are there."""
    found = np.zeros((len(X), len(Z)))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            for a in (0, 1):
                for b in (0, 1):
                    if x[2 * a] >= 0 and z[2 * b] >= 0:
                        one = np.array([[x[2 * a], x[2 * a + 1], x[6]]])
                        two = np.array([[z[2 * b], z[2 * b + 1], z[6]]])
                        found[i, j] += x[4 + a] * z[4 + b] * INNER(one, two)[0, 0]
    return found


def test_a_team_is_the_sum_of_its_members():
    X, Z = teams(8), teams(5, seed=1)
    assert_allclose(KERNEL(X, Z), by_hand(X, Z), atol=1e-12)
    assert_allclose(KERNEL(X), by_hand(X, X), atol=1e-12)
    assert_allclose(KERNEL.diag(X), np.diagonal(by_hand(X, X)), atol=1e-12)


def test_without_weights_all_count_once():
    kernel = Teams(Identity(), [[1], [0]])
    assert kernel(np.array([[3.0, 3.0], [3.0, -1.0]])).tolist() == [[4.0, 2.0], [2.0, 1.0]]


def test_gradients_are_those_of_differences():
    X = teams(7)
    K, contract = kernel_with_gradient(KERNEL, X)
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(7, 7))
    weight += weight.T
    step = 1e-6
    slopes = [
        np.sum(
            weight
            * (
                KERNEL.clone_with_theta(KERNEL.theta + e)(X)
                - KERNEL.clone_with_theta(KERNEL.theta - e)(X)
            )
        )
        / (2.0 * step)
        for e in step * np.eye(len(KERNEL.theta))
    ]
    assert_allclose(K, KERNEL(X))
    assert_allclose(contract(weight), slopes, rtol=1e-6, atol=1e-6)
    slope = input_gradient(KERNEL, X[:2], X)[:, :, 1]
    moved = X[:2] + 1e-6 * np.eye(7)[1]
    assert_allclose(slope, (KERNEL(moved, X) - KERNEL(X[:2], X)) / 1e-6, atol=1e-4)


def test_it_is_a_kernel_like_others():
    assert clone(KERNEL) == KERNEL != Teams(INNER, [[0, 1], [2, 3]])
    assert repr(Teams(Identity(), [(0,), (1,)], (2, 3))) == (
        "Teams(Identity(), members=[[0], [1]], weights=[2, 3])"
    )
    assert KERNEL.get_params()["kernel__k1__k1__constant_value"] == 0.7
    assert seen_columns(KERNEL, 7) == ([0, 2], [1, 3, 6])
    late = Teams(OnColumns(RBF(), [1, 3]), members=[[3], [1]])
    assert seen_columns(late, 6) == ([], [0, 4])
    assert not KERNEL.is_stationary()


@pytest.mark.parametrize(
    "members, weights, words",
    [
        ([], None, "members is empty"),
        ([[0], [1, 2]], None, r"members have \[1, 2\] columns"),
        ([[0], [0]], None, "0 came more than once"),
        ([[0], [1]], [2], "weights names 1 columns for 2 members"),
        ([[0], [1]], [1, 2], "1 came more than once"),
        ([[0.5], [1]], None, "sequence of integers"),
    ],
)
def test_members_that_make_no_team_are_refused(members, weights, words):
    with pytest.raises(ValueError, match=words):
        Teams(Identity(), members, weights)


def test_rows_that_are_too_short_are_refused():
    with pytest.raises(ValueError, match="sees column 5, but X has 3 columns"):
        KERNEL(np.zeros((2, 3)))
