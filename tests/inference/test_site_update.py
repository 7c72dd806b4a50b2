"""One step of expectation propagation at each site, against quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from skpref.inference import site_update
from skpref.likelihoods import DUEL, Answers, Probit

LIKELIHOOD = Probit(0.3)
ANSWERS = Answers(np.full(3, DUEL, dtype=np.int8), np.ones(3, dtype=np.int8))
MEAN, VARIANCE = np.array([0.4, -0.8, 0.1]), np.array([0.7, 0.2, 1.5])
SITES = np.array([0.5, 1.2, 0.1]), np.array([0.3, -0.4, 0.9])


def tilted_moments(i, power=1.0, rest=0.0):
    """log normaliser, mean and variance of cavity times factor, the rest integrated out."""
    precision = 1.0 / VARIANCE[i] - SITES[0][i]
    mean = (MEAN[i] / VARIANCE[i] - SITES[1][i]) / precision
    sd = precision**-0.5
    width = np.sqrt(LIKELIHOOD.margin_variance + rest)

    def moment(k):
        return quad(
            lambda z: z**k * norm.pdf(z, mean, sd) * norm.cdf(z / width) ** power,
            mean - 12.0 * sd,
            mean + 12.0 * sd,
            epsabs=1e-13,
        )[0]

    total, first, second = (moment(k) for k in range(3))
    return np.log(total), first / total, second / total - (first / total) ** 2


@pytest.mark.parametrize(("power", "rest"), [(None, 0.0), (0.4, 0.0), (None, 0.8)])
def test_a_site_gives_cavity_times_factor_its_moments(power, rest):
    powers = None if power is None else np.full(3, power)
    found = site_update((MEAN, VARIANCE), SITES, LIKELIHOOD, ANSWERS, powers, rest)
    assert found.proper.all()
    for i in range(3):
        log_z, mean, variance = tilted_moments(i, power or 1.0, rest)
        # The site in place of the factor, GPML (3.59)
        cav_var = found.cav_var[i] - rest
        precision = 1.0 / cav_var + found.site_precision[i]
        assert_allclose(1.0 / precision, variance, rtol=1e-8)
        shift = found.cav_mean[i] / cav_var + found.site_shift[i]
        assert_allclose(shift / precision, mean, rtol=1e-8)
        # log ∫ cavity × factor less log ∫ marginal / site, both unnormalised as in (3.65)
        gain = log_z - 0.5 * np.log1p(-SITES[0][i] * VARIANCE[i])
        gain += 0.5 * cav_var * (SITES[1][i] - SITES[0][i] * MEAN[i]) ** 2
        assert_allclose(found.log_gain[i], gain, rtol=1e-8)


def test_an_improper_cavity_leaves_its_site_or_keeps_a_share():
    sites = np.array([2.0, 1.2, 0.1]), SITES[1]  # 2 × 0.7 is more than the whole precision
    found = site_update((MEAN, VARIANCE), sites, LIKELIHOOD, ANSWERS)
    assert found.proper.tolist() == [False, True, True]
    assert found.site_precision[0] == 2.0
    assert found.site_shift[0] == SITES[1][0]
    kept = site_update((MEAN, VARIANCE), sites, LIKELIHOOD, ANSWERS, least_share=0.1)
    assert kept.cav_var[0] == pytest.approx(VARIANCE[0] / 0.1)
    assert kept.proper.tolist() == [False, True, True]
    assert_allclose(kept.site_precision[1:], found.site_precision[1:], rtol=1e-12)
