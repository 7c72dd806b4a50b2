"""Choices beside an outside option, against importance sampling and in other forms."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.duels import add_outside_option
from skpref.kernels import Identity, OnColumns, outside_option_kernel


def probability_of_choice(utilities, shown, position, deviation):
    """P(an item is the best of those shown | utilities (n, m)), by quadrature over its noise."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    best = shown[position]
    beaten = np.zeros(len(utilities))
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        factor = np.full(len(utilities), weight)
        for each in shown:
            if each != best:
                margin = utilities[:, best] + deviation * node - utilities[:, each]
                factor *= ndtr(margin / deviation)
        beaten += factor
    return beaten


def error_beside_importance_sampling(seed, size, noise_variance):
    """Largest error of the probabilities of a choice among a few items and the outside option."""
    rng = np.random.default_rng(seed)
    items, kernel = rng.random((4, 2)), RBF([0.5, 0.5])
    sets = np.array([rng.choice(4, size, replace=False) for _ in range(5)])
    answers = rng.integers(0, size + 1, 5)
    covariance = np.eye(5)
    covariance[:4, :4], covariance[4, 4] = kernel(items), 4.0
    root = np.linalg.cholesky(covariance + 1e-12 * np.eye(5))
    utilities = rng.standard_normal((50_000, 5)) @ root.T
    deviation = np.sqrt(noise_variance)
    weights = np.ones(len(utilities))
    for shown, answer in zip(sets, answers, strict=True):
        weights *= probability_of_choice(utilities, [*shown, 4], answer, deviation)
    weights /= weights.sum()
    expected = [
        weights @ probability_of_choice(utilities, [*sets[0], 4], position, deviation)
        for position in range(size + 1)
    ]
    model = PairwisePreferenceRegressor(
        outside_option_kernel(kernel, 2),
        noise_variance=noise_variance,
        optimizer=None,
        inference="ep",
    ).fit(add_outside_option(items[sets]), answers)
    found = model.predict_proba(add_outside_option(items[sets[:1]]))[0]
    return np.abs(found - expected).max()


@pytest.mark.parametrize("seed", [0, 1, 3, 4])  # two sizes of sets, two variances of noise
def test_probabilities_are_those_of_importance_sampling(seed):
    size, noise_variance = 2 + seed % 2, [0.3, 1.0][seed // 3]
    assert error_beside_importance_sampling(seed, size, noise_variance) < 0.01


@pytest.mark.slow
def test_probabilities_are_within_a_hundredth_on_many_problems():
    errors = [
        error_beside_importance_sampling(100 + seed, 1 + seed % 3, [0.1, 0.3, 1.0][seed // 3 % 3])
        for seed in range(100)
        if seed // 3 % 3  # with less noise too few draws are effective
    ]
    assert max(errors) < 0.01


def test_a_name_of_its_own_is_an_outside_option_of_the_same_variance():
    sets = [["a", "b", "none"], ["b", "c", "none"], ["c", "a", "none"]]
    answers = [2, 0, 1]
    named = PairwisePreferenceRegressor(Identity(), optimizer=None).fit(sets, answers)
    numbers = np.array([[[0.0], [1.0]], [[1.0], [2.0]], [[2.0], [0.0]]])
    kernel = outside_option_kernel(OnColumns(Identity(), [0]), 1, variance=1.0)
    shown = add_outside_option(numbers)
    model = PairwisePreferenceRegressor(kernel, optimizer=None).fit(shown, answers)
    np.testing.assert_allclose(model.predict_proba(shown), named.predict_proba(sets), atol=1e-6)


def test_the_outside_option_comes_after_the_last_item_of_each_set():
    X = np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [np.nan, np.nan]]])
    shown = add_outside_option(X)
    option = [3.0, 4.0, 0.0, 1.0]
    np.testing.assert_array_equal(
        shown,
        [
            [[1.0, 2.0, 1.0, 0.0], [3.0, 4.0, 1.0, 0.0], option],
            [[5.0, 6.0, 1.0, 0.0], option, [np.nan] * 4],
        ],
    )
    model = PairwisePreferenceRegressor(outside_option_kernel(RBF([1.0, 1.0]), 2), optimizer=None)
    assert model.fit(shown, [0, 1]).predict_proba(shown)[1, 1] > 0.5


@pytest.mark.parametrize("X", [[[0.1, 0.2]], np.zeros((0, 2, 1)), [["a", "b"]]])
def test_what_is_no_array_of_sets_is_refused(X):
    with pytest.raises(ValueError, match="n_sets, n_items, n_features"):
        add_outside_option(X)


def test_the_outside_option_comes_after_the_last_item_where_others_are_absent():
    numbers = np.arange(12.0).reshape(2, 3, 2)
    numbers[0, 1] = np.nan
    shown = add_outside_option(numbers)
    np.testing.assert_array_equal(shown[:, :3, :2], numbers)
    np.testing.assert_array_equal(shown[:, 3, 2:], [[0.0, 1.0]] * 2)
