"""Simulation-based calibration: the true margin among draws of its posterior has a uniform rank.

Talts et al. (2018): with the truth drawn from the prior and duels from the model, the rank of a
true margin among n independent draws of its posterior is uniform on 0, …, n.
"""

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import HMC, Gibbs, Laplace

N_SETS, N_DUELS, N_DRAWS = 140, 10, 19
KERNEL = RBF(0.5)


def simulate(rng, noise_variance):
    """Duels (winner first), two pairs asked about (a training pair, a new one), true margins."""
    pairs = rng.random((N_DUELS + 1, 2, 2))
    items = pairs.reshape(-1, 2)
    root = np.linalg.cholesky(KERNEL(items) + 1e-10 * np.eye(len(items)))
    utility = (root @ rng.standard_normal(len(items))).reshape(-1, 2)
    seen = utility[:-1] + np.sqrt(noise_variance) * rng.standard_normal((N_DUELS, 2))
    first = seen[:, 0] > seen[:, 1]
    X = np.where(first[:, None, None], pairs[:-1], pairs[:-1, ::-1])
    asked = pairs[[0, -1]]  # as drawn, not winner first: its orientation must tell nothing
    return X, asked, (utility[:, 0] - utility[:, 1])[[0, -1]]


def ranks(engine, noise_variance):
    """Ranks (n_sets, 2) of the true margins among `N_DRAWS` draws."""
    rng = np.random.default_rng(12)
    found = np.empty((N_SETS, 2), dtype=int)
    model = PairwisePreferenceRegressor(
        KERNEL, inference=engine, noise_variance=noise_variance, optimizer=None
    )
    for i in range(N_SETS):
        X, asked, truth = simulate(rng, noise_variance)
        posterior = model.set_params(random_state=i).fit(X).posterior_
        means, variance = posterior.component_margins(asked[:, 0], asked[:, 1])
        # One draw of each component: independent, as each chain gives one.
        spread = np.sqrt(variance)[:, None]
        draws = means + spread * rng.standard_normal((2, N_DRAWS))
        found[i] = (draws < truth[:, None]).sum(axis=1)
    return found


def p_values(found):
    counts = [np.bincount(column, minlength=N_DRAWS + 1) for column in found.T]
    return [chisquare(count).pvalue for count in counts]


@pytest.mark.slow
@pytest.mark.parametrize("noise_variance", [1e-4, 1e-1])
def test_hmc_is_calibrated(noise_variance):
    engine = HMC(draws=N_DRAWS, chains=N_DRAWS, burn_in=8)
    assert min(p_values(ranks(engine, noise_variance))) > 0.01


@pytest.mark.slow
def test_hmc_on_margins_is_calibrated():
    engine = HMC(draws=N_DRAWS, chains=N_DRAWS, burn_in=15, method="margins")
    assert min(p_values(ranks(engine, 1e-2))) > 0.01


@pytest.mark.slow
def test_gibbs_is_calibrated():
    engine = Gibbs(draws=N_DRAWS, chains=N_DRAWS, burn_in=60, thin=1)
    assert min(p_values(ranks(engine, 1e-1))) > 0.01


@pytest.mark.slow
def test_the_ranks_tell_an_approximation_from_the_posterior():
    assert min(p_values(ranks(Laplace(), 1e-4))) < 1e-6
