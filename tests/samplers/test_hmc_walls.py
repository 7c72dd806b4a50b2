"""Trajectories between any walls, against integration from event to event in angles."""

import numpy as np
import pytest

from skpref.samplers import _hmc, _walls, hmc
from skpref.samplers._chains import SamplingBox
from skpref.samplers._walls import AnyWalls, reflector_rows

INF = np.inf


def one_trajectory(covariance, position, momentum, lower, upper):
    """Advance to the next hit, reflect there: v(τ) = R cos(τ − φ) leaves at φ ± arccos(w/R)."""
    left, walls, last, precision = np.pi / 2, 0, None, np.linalg.pinv(covariance)
    while True:
        radius, phase = np.hypot(position, momentum), np.arctan2(momentum, position)
        with np.errstate(invalid="ignore"):
            down = np.mod(phase + np.arccos(lower / radius), 2 * np.pi)
            up = np.mod(phase - np.arccos(upper / radius), 2 * np.pi)
        times = np.stack((down, up))
        times[np.isnan(times)] = INF
        if last is not None and times[last] > 2 * np.pi - 1e-7:
            times[last] = INF  # it was a moment ago
        side, j = np.unravel_index(times.argmin(), times.shape)
        h = min(times[side, j], left)
        position, momentum = (
            momentum * np.sin(h) + position * np.cos(h),
            momentum * np.cos(h) - position * np.sin(h),
        )
        left -= h
        if left <= 0:
            return position, walls
        walls, last = walls + 1, (side, j)
        assert position[j] == pytest.approx((lower, upper)[side][j], abs=1e-9)
        assert (momentum[j] > 0) == (side == 1)  # on its way out
        energy = momentum @ precision @ momentum
        momentum = momentum - 2 * momentum[j] / covariance[j, j] * covariance[:, j]
        assert momentum @ precision @ momentum == pytest.approx(energy, rel=1e-6)


def random_box(t, kind, rng):
    """A point, and walls about it."""
    centre = rng.normal(0, 0.5, t) if kind != "narrow" else rng.normal(0, 0.1, t)
    reach = rng.exponential(0.05 if kind == "narrow" else 0.5, (2, t)) + 0.005
    lower, upper = centre - reach[0], centre + reach[1]
    if kind == "mixed":
        which = rng.integers(0, 4, t)
        lower[which == 1] = lower[which == 3] = -INF
        upper[which == 2] = upper[which == 3] = INF
    if kind == "above":  # against which coordinates fall back and bounce
        lower, upper = np.abs(centre) + 1.0, np.full(t, INF)
        centre = lower + reach[1]
    return centre, lower, upper


@pytest.mark.parametrize("kind", ["slabs", "mixed", "narrow", "above"])
@pytest.mark.parametrize("t", [1, 2, 7])
def test_trajectories_are_those_from_event_to_event(t, kind):
    rng = np.random.default_rng(t)
    root = rng.standard_normal((t, t + 1))
    root /= np.linalg.norm(root, axis=1)[:, None]
    covariance = root @ root.T
    for case in range(12):
        start, lower, upper = random_box(t, kind, rng)
        chains = hmc(
            covariance,
            start,
            1,
            n_chains=2,
            rng=np.random.default_rng(case),
            lower=lower,
            upper=upper,
        )
        normals = np.random.default_rng(case).standard_normal((2, t))
        momenta = normals @ np.linalg.cholesky(covariance).T
        for c in range(2):
            end, walls = one_trajectory(covariance, start.copy(), momenta[c], lower, upper)
            assert chains.walls[c, 0] == walls
            np.testing.assert_allclose(chains.draws[c, 0], end, atol=1e-7)


def test_a_bouncing_coordinate_meets_the_same_wall_again():
    """Above a wall at 3 it falls back at 3 deviations, again and again."""
    chains = hmc([[1.0]], [3.2], 400, n_chains=8, rng=np.random.default_rng(0), lower=3.0)
    assert chains.walls.mean() > 1.5
    assert chains.rejected_share == 0


@pytest.mark.slow
def test_a_slab_of_a_millionth_of_a_deviation_is_crossed_in_equal_times():
    width = 1e-6
    wall = SamplingBox.from_walls([-0.5 * width], [0.5 * width], 1)
    walls = AnyWalls(reflector_rows(np.eye(1)), np.ones(1), wall, 2)
    speed = np.array([[1.7], [-0.4]])
    ends = np.stack([walls.to_work_rows(speed), walls.to_work_rows(np.zeros((2, 1)))])
    for k in range(3000):
        assert walls.next_event(ends).all()
        angle = 2 * np.arctan(walls._now)
        # it crosses 2 arcsin(half the width over R) at a time, R = |speed| at the origin
        exact = (2 * k + 1) * np.arcsin(0.5 * width / np.abs(speed[:, 0]))
        np.testing.assert_allclose(angle, exact, rtol=1e-9)
        position = ends[0] * np.sin(angle)[:, None] + ends[1] * np.cos(angle)[:, None]
        np.testing.assert_allclose(np.abs(position), 0.5 * width, atol=1e-14)
        np.testing.assert_array_equal(ends[:, :, 0], -ends[:, :, 1])  # both rows of the slab


def test_too_narrow_a_slab_rejects_and_stays_inside():
    lower, upper = np.array([0.0, -5e-7]), np.array([INF, 5e-7])
    chains = hmc(
        [[1.0, 0.5], [0.5, 1.0]], [0.3, 1e-7], 5, n_chains=8, max_walls=300,
        rng=np.random.default_rng(0), lower=lower, upper=upper,
    )  # fmt: skip
    assert chains.rejected_share > 0.9
    assert np.all((chains.draws > lower) & (chains.draws < upper))


def test_the_faster_scheme_and_the_general_one_agree_on_the_orthant(monkeypatch):
    covariance = 0.2 * np.eye(20) + 0.8 * np.outer((-1.0) ** np.arange(20), (-1.0) ** np.arange(20))
    start = np.random.default_rng(0).uniform(0.1, 1, (30, 20))

    def run():
        return hmc(covariance, start, 5, rng=np.random.default_rng(1))

    fast = run()
    monkeypatch.setattr(_hmc, "WallsAtOrigin", AnyWalls)
    general = run()
    np.testing.assert_array_equal(general.walls, fast.walls)
    np.testing.assert_allclose(general.draws, fast.draws, rtol=1e-7, atol=1e-10)


def test_chains_do_not_depend_on_how_they_are_stepped(monkeypatch):
    rng = np.random.default_rng(2)
    start, lower, upper = random_box(12, "mixed", rng)
    covariance = np.eye(12) + 0.5

    def run():
        return hmc(
            covariance, start, 12, n_chains=10, rng=np.random.default_rng(8), max_walls=12,
            lower=lower, upper=upper,
        )  # fmt: skip

    expected = run()
    assert 0.05 < expected.rejected_share < 0.95
    np.testing.assert_array_equal(run().draws, expected.draws)
    monkeypatch.setattr(_walls, "_csr_matvecs", None)
    np.testing.assert_allclose(run().draws, expected.draws, rtol=1e-8, atol=1e-12)


def test_starts_on_the_last_number_inside_go_on():
    lower, upper = np.array([0.7, -0.2, 0.0]), np.array([0.8, INF, 0.1])
    start = np.nextafter(lower, INF)
    chains = hmc(
        np.eye(3) + 0.5,
        start,
        50,
        n_chains=64,
        rng=np.random.default_rng(0),
        lower=lower,
        upper=upper,
    )
    assert chains.rejected_share == 0
    assert np.all((chains.draws > lower) & (chains.draws < upper))
