"""Sites of equal answers: the fixed point of EP, by quadrature, from wherever it is looked for."""

import numpy as np
import pytest
from likelihoods_support import duels, repeated_site, rows, tilted
from oracles import tilted_by_quadrature

from skpref.likelihoods import DUEL, INEQUALITY, TIE, Probit
from skpref.likelihoods._repeats import find_repeated_sites


@pytest.mark.parametrize("noise_variance", [1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("count", [1.0, 2.0, 7.0, 100.0, 1e4, 1e6])
def test_repeated_sites_are_the_fixed_point_of_ep(count, noise_variance):
    """A cavity of c − 1 of these sites, times the probit, has the moments of all c sites."""
    variance = 0.8
    mean = np.sqrt(variance) * np.array([-5.0, -2.0, -0.3, 0.0, 1.0, 5.0])
    tau, nu = repeated_site(mean, np.full(6, variance), np.full(6, count), noise_variance)
    assert np.all(tau >= 0.0)
    precision = 1.0 / variance + (count - 1.0) * tau
    cavity = (mean / variance + (count - 1.0) * nu) / precision
    for i in range(6):
        _, truth, spread = tilted_by_quadrature(cavity[i], 1.0 / precision[i], noise_variance)
        here = (mean[i] / variance + count * nu[i]) / (precision[i] + tau[i])
        assert here == pytest.approx(truth, abs=1e-8 * np.sqrt(spread), rel=1e-8)
        assert 1.0 / (precision[i] + tau[i]) == pytest.approx(spread, rel=1e-8)


def test_a_site_that_is_not_repeated_is_the_ordinary_update():
    rng = np.random.default_rng(0)
    mean, variance = 3.0 * rng.normal(size=50), np.exp(rng.normal(size=50))
    tau, nu = repeated_site(mean, variance, np.ones(50), 0.05)
    found = tilted(mean, variance, 0.05)
    after = variance * found.shrink
    np.testing.assert_allclose(1.0 / variance + tau, 1.0 / after, rtol=1e-10)
    moved = (mean + variance * found.gradient) / after
    np.testing.assert_allclose(mean / variance + nu, moved, rtol=1e-10)


def test_repeated_sites_of_different_counts_do_not_mix():
    mean, variance = np.array([-1.0, 0.5, 2.0]), np.array([0.1, 1.0, 5.0])
    counts = np.array([3.0, 1e5, 1.0])
    together = repeated_site(mean, variance, counts, 0.02)
    for i in range(3):
        alone = repeated_site(mean[i : i + 1], variance[i : i + 1], counts[i : i + 1], 0.02)
        for part, single in zip(together, alone, strict=True):
            assert part[i] == pytest.approx(single[0], rel=1e-8)


@pytest.mark.parametrize("noise_variance", [1e-10, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_repeated_sites_are_found_at_any_scale_from_anywhere(noise_variance, scale):
    rng = np.random.default_rng(0)
    variance = scale * np.exp(rng.normal(size=300))
    mean = np.sqrt(variance) * rng.normal(size=300) * np.exp(2.0 * rng.normal(size=300))
    counts = np.floor(np.exp(rng.uniform(0.7, 13.0, 300)))
    tau, nu = repeated_site(mean, variance, counts, noise_variance)
    assert np.all(tau >= 0.0)
    precision = 1.0 / variance + (counts - 1.0) * tau
    cavity = (mean / variance + (counts - 1.0) * nu) / precision
    found = tilted(cavity, 1.0 / precision, noise_variance)  # by quadrature: see above
    np.testing.assert_allclose(1.0 / (precision + tau), found.shrink / precision, rtol=1e-8)
    here = (mean / variance + counts * nu) / (precision + tau)
    moved = cavity + found.gradient / precision
    assert np.all(np.abs(here - moved) < 1e-8 * np.sqrt(1.0 / precision))
    for start in (np.full(300, -1e3), 20.0 * rng.normal(size=300), np.full(300, np.nan)):
        again = find_repeated_sites(mean, variance, counts, 2.0 * noise_variance, start)
        np.testing.assert_allclose(again[0], tau, rtol=1e-7, atol=1e-300)
        np.testing.assert_allclose(again[1], nu, rtol=1e-7, atol=1e-300)


def test_a_present_cavity_is_only_where_the_search_starts():
    mean, variance, counts = np.array([-2.0, 0.4]), np.array([0.5, 2.0]), np.array([3.0, 5000.0])
    truth = repeated_site(mean, variance, counts, 0.02)
    for near in ((mean, variance), (np.array([9.0, -9.0]), np.array([1e-3, 30.0]))):
        found = Probit(0.02).repeated_site(mean, variance, counts, duels(2), near)
        np.testing.assert_allclose(found.precision, truth.precision, rtol=1e-8)
        np.testing.assert_allclose(found.shift, truth.shift, rtol=1e-8)


def assert_fixed_point(model, mean, variance, counts, answers, site):
    """A cavity of c − 1 of these sites has them for its own."""
    precision = 1.0 / variance + (counts - 1.0) * site.precision
    cavity = (mean / variance + (counts - 1.0) * site.shift) / precision
    found = model.tilted(cavity, 1.0 / precision, answers)
    total = precision + site.precision
    np.testing.assert_allclose(total * found.shrink / precision, 1.0, rtol=1e-9)
    here = (mean / variance + counts * site.shift) / total
    moved = cavity + found.gradient / precision
    assert np.all(np.abs(here - moved) < 1e-9 * np.sqrt(1.0 / precision) + 1e-12 * np.abs(here))


@pytest.mark.parametrize("count", [2.0, 50.0, 1e4])
def test_sites_of_every_kind_are_the_fixed_point_of_ep(count):
    model = Probit(0.3, tie_threshold=0.6, order_effect=0.4)
    answers = rows(np.tile([DUEL, TIE], 4), [1, 1, 0, 0, -1, -1, 1, -1])
    mean = np.array([-2.0, -2.0, 0.4, 0.4, 3.0, 3.0, 0.1, 0.1])
    variance, counts = np.array([0.5, 0.5, 2.0, 2.0, 9.0, 9.0, 1.0, 1.0]), np.full(8, count)
    won = answers.kind == DUEL
    given = mean[won], variance[won], counts[won], answers.take(won)
    for near in (None, (mean + 0.3, 0.5 * variance), (mean, np.full(8, np.nan))):
        site = model.repeated_site(mean, variance, counts, answers, near)
        assert np.isnan(site.precision[~won]).all()  # ties are left to the steps of EP itself
        found = type(site)(site.precision[won], site.shift[won])
        assert np.all(found.precision >= 0.0)
        assert_fixed_point(model, *given, found)
        part = rows(np.full(8, INEQUALITY))
        assert np.isnan(model.repeated_site(mean, variance, counts, part, near)).all()
