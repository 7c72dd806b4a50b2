import warnings

import numpy as np
import pytest
from scipy.signal import lfilter

from skpref.samplers import diagnostics
from skpref.samplers.diagnostics import effective_draws, mcse_mean, rhat

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz as az


def autoregression(phi, n_chains, n_draws, seed=0):
    """Stationary AR(1) chains with unit variance."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((n_chains, n_draws)) * np.sqrt(1 - phi**2)
    noise[:, 0] = rng.standard_normal(n_chains)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)


CHAINS = [
    (n_chains, n_draws) for n_chains in (2, 4, 7) for n_draws in (4, 5, 7, 8, 11, 50, 101, 1000)
]
PHIS = [-0.9, -0.3, 0.0, 0.6, 0.95, 0.99]


@pytest.mark.parametrize(("n_chains", "n_draws"), CHAINS)
def test_agreement_with_arviz(n_chains, n_draws):
    draws = np.stack([autoregression(phi, n_chains, n_draws, seed=3) for phi in PHIS], axis=-1)
    draws[..., -2] = np.round(draws[..., -2], 1)  # ties
    mine = [rhat(draws), mcse_mean(draws)]
    mine += [effective_draws(draws, kind) for kind in ("bulk", "tail", "mean")]
    for i in range(len(PHIS)):
        x = draws[..., i]
        theirs = [az.rhat(x, method="rank"), az.mcse(x, method="mean")]
        theirs += [az.ess(x, method=method) for method in ("bulk", "tail", "mean")]
        np.testing.assert_allclose([m[i] for m in mine], theirs, rtol=1e-9)


def test_one_chain_agrees_with_arviz():
    x = autoregression(0.7, 1, 501)
    for kind in ("bulk", "tail", "mean"):
        assert effective_draws(x, kind) == pytest.approx(az.ess(x, method=kind), rel=1e-9)


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
def test_autoregression_has_its_known_effective_size(phi):
    draws = autoregression(phi, 8, 20_000)
    expected = draws.size * (1 - phi) / (1 + phi)
    for kind in ("bulk", "mean"):
        assert effective_draws(draws, kind) == pytest.approx(expected, rel=0.1)
    assert mcse_mean(draws) == pytest.approx(1 / np.sqrt(expected), rel=0.06)


def test_antithetic_chains_are_capped():
    draws = autoregression(-0.999, 4, 500)
    assert effective_draws(draws, "mean") == pytest.approx(2000 * np.log10(2000))


def test_standard_error_covers_the_true_mean():
    draws = np.stack([autoregression(0.8, 4, 1000, seed=s) for s in range(200)], axis=-1)
    z = draws.mean(axis=(0, 1)) / mcse_mean(draws)
    assert 0.85 < z.std() < 1.15


def test_rhat_sees_shift_scale_and_drift():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4, 1000, 5))
    draws[0, :, 1] += 1.0  # a chain elsewhere
    draws[0, :, 2] *= 4.0  # a chain of another width: only folding sees it
    draws[:, :, 3] += np.linspace(0, 2, 1000)  # all drift together: only splitting sees it
    draws[:, :, 4] = rng.standard_cauchy((4, 1000))  # no moments, but ranks
    assert (rhat(draws) > 1.03).tolist() == [False, True, True, True, False]


def test_ranks_make_bulk_invariant_to_monotone_maps():
    draws = autoregression(0.5, 4, 300)
    assert effective_draws(np.exp(5 * draws)) == pytest.approx(effective_draws(draws), rel=1e-12)


def test_trailing_dimensions_and_chunks(monkeypatch):
    draws = np.random.default_rng(0).standard_normal((3, 40, 2, 5))
    whole = [f(draws) for f in (rhat, mcse_mean, effective_draws)]
    assert all(values.shape == (2, 5) for values in whole)
    monkeypatch.setattr(diagnostics, "BLOCK", 3 * 40 * 3)
    for function, values in zip((rhat, mcse_mean, effective_draws), whole, strict=True):
        np.testing.assert_allclose(function(draws), values, rtol=1e-12)
        assert function(draws[:, :, 1, 2]) == pytest.approx(values[1, 2], rel=1e-12)


def test_constant_and_not_finite_coordinates():
    draws = np.random.default_rng(0).standard_normal((4, 100, 3))
    draws[..., 1] = 2.5
    draws[2, 7, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        effective = effective_draws(draws)
        assert effective[1] == 400
        assert np.isnan(effective[2])
        assert np.isnan(rhat(draws)[1:]).all()
        assert mcse_mean(draws)[1] == 0
    stuck = np.broadcast_to(np.arange(4.0)[:, None], (4, 100))  # every chain at its own place
    assert rhat(stuck) > 100
    assert effective_draws(stuck) < 12


def test_bad_input():
    draws = np.zeros((4, 100))
    with pytest.raises(ValueError, match="kind is 'median'; allowed are 'bulk', 'tail', 'mean'"):
        effective_draws(draws, "median")
    for bad in (np.zeros(100), np.zeros((4, 3)), np.zeros((0, 10))):
        with pytest.raises(ValueError, match="at least 4 draws"):
            rhat(bad)
