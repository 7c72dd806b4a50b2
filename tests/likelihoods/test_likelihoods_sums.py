"""Sums of log normalisers, as the base class adds them up one by one."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpref._utils import row_blocks
from skpref.data import DUEL, GRADED, TIE, Answers
from skpref.likelihoods import Likelihood, Probit, _normal
from skpref.likelihoods._graded import GradedProbit
from skpref.likelihoods._normal import _slab_by_quadrature, _slab_by_tails, mills, slab

LIKELIHOODS = {
    "duels": (Probit(0.3), [DUEL]),
    "ties": (Probit(0.3, tie_threshold=0.4), [DUEL, TIE]),
    "order effect": (Probit(0.3, tie_threshold=0.4, order_effect=0.7), [DUEL, TIE]),
    "grades": (
        GradedProbit(0.3, tie_threshold=0.2, grade_thresholds=(0.9, 1.6)),
        [TIE, GRADED + 1, GRADED + 2, GRADED + 3],
    ),
}


def beside_of(variance, rng):
    """Means and variances of what stays beside the margins, and covariances with these."""
    n = len(variance)
    spread = rng.uniform(0.0, 0.5, n)
    covariance = rng.uniform(-1.0, 1.0, n) * np.sqrt(spread * variance)
    return rng.normal(size=n), spread, covariance


def answers_of(kinds, n, rng):
    kind = rng.choice(np.array(kinds, dtype=np.int8), n)
    return Answers(kind, rng.integers(-1, 2, n).astype(np.int8), rng.integers(0, 3, n))


def one_by_one(likelihood, mean, variance, answers, copies, begins, scale, beside, power=None):
    """The definition."""
    total = np.zeros(scale.shape)
    group = np.searchsorted(begins, np.arange(len(mean)), side="right") - 1
    for m in range(len(scale)):
        r = scale[m, group]
        centre, spread = r * mean, r**2 * variance
        if beside is not None:
            centre, spread = centre + beside[0], spread + beside[1] + 2.0 * r * beside[2]
        value = likelihood.log_normaliser(centre, spread, answers, power)
        np.add.at(total[m], group, copies * value)
    return total


@pytest.mark.parametrize("improbable", [False, True])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_logarithms_of_products_are_sums_of_logarithms(name, biased, weighed, improbable):
    likelihood, kinds = LIKELIHOODS[name]
    rng = np.random.default_rng(0)
    begins = np.array([0, 1, 3, 11, 19, 36])  # groups of 1 to 24 answers
    n, shape = 60, (5, 6)
    mean, variance = rng.normal(size=n), rng.uniform(0.0, 0.5, n)
    scale = rng.choice([-1.0, 1.0], shape) * np.exp(rng.uniform(-6.0, 1.0, shape))
    if improbable:
        mean[::7] *= 300.0
        mean[::14] *= 100.0
    beside = beside_of(variance, rng) if biased else None
    copies = rng.integers(1, 4, n) * 0.5 if weighed else np.ones(n)
    told = mean, variance, answers_of(kinds, n, rng), copies, begins, scale, beside
    truth = one_by_one(likelihood, *told)
    assert np.isfinite(truth).all()
    assert_allclose(likelihood.log_normaliser_sums(*told), truth, rtol=1e-10, atol=1e-10)
    plain = Likelihood.log_normaliser_sums(likelihood, *told)
    assert_allclose(plain, truth, rtol=1e-10, atol=1e-10)


def test_answers_that_count_less_than_once_go_one_by_one():
    rng, n = np.random.default_rng(1), 12
    power = rng.uniform(0.2, 1.0, n)
    told = rng.normal(size=n), rng.uniform(0.1, 0.5, n), answers_of([DUEL], n, rng)
    told = (*told, np.ones(n), np.array([0, 5]), np.array([[0.5, -1.2]]), None, power)
    found = Probit(0.3).log_normaliser_sums(*told)
    assert_allclose(found, one_by_one(Probit(0.3), *told), rtol=1e-12)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("zero", [False, True])
def test_cavities_are_summed_by_judge_as_their_likelihood_sees_them(monkeypatch, zero, biased):
    from skpref.fitting import _reliability

    rng, n = np.random.default_rng(2), 50
    base, answers = Probit(0.3, tie_threshold=0.4), answers_of([DUEL, TIE], n, rng)
    mean, variance, copies = rng.normal(size=n), rng.uniform(0.1, 0.5, n), rng.uniform(0.5, 2.0, n)
    grid = rng.normal(size=(4, 5))  # of the last judge there is no answer
    if zero:
        grid[1, 2] = 0.0
    beside = beside_of(variance, rng) if biased else None
    truth = np.zeros((4, 5))
    for k in range(5):
        r = grid[answers.judge, k]
        centre, spread = r * mean, r**2 * variance
        if biased:
            centre, spread = centre + beside[0], spread + beside[1] + 2.0 * r * beside[2]
        value = base.log_normaliser(centre, spread, answers)
        truth[:, k] = np.bincount(answers.judge, copies * value, 4)
    cavities = mean, variance, copies, answers, None, *np.zeros((2, n)), beside
    for block in (7, 2**15):
        monkeypatch.setattr(_reliability, "row_blocks", partial(row_blocks, doubles=block))
        told = _reliability.Cavities(*cavities).by_reliability(base)
        assert_allclose(told(grid), truth, rtol=1e-11, atol=1e-12)


def test_both_ways_to_a_slab_agree_where_either_is_good():
    width = np.linspace(0.3, 1.6, 14)
    centre = np.maximum(np.log(10.0) - 1.3 * width**2, 0.1) / (2.0 * width)
    for one, other in zip(
        _slab_by_quadrature(centre, width), _slab_by_tails(centre, width), strict=True
    ):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("most", ["narrow", "wide", "either"])
def test_many_slabs_are_those_of_each_alone(monkeypatch, most):
    rng = np.random.default_rng(3)
    reach = {"narrow": 0.2, "wide": 9.0, "either": 1.5}[most]
    centre, width = rng.normal(size=50), np.exp(rng.uniform(-2.0, 0.5, 50)) * reach
    truth = [np.concatenate(each) for each in zip(*map(slab, *(
        np.split(part, 50) for part in (centre, width))), strict=True)]  # fmt: skip
    monkeypatch.setattr(_normal, "row_blocks", partial(row_blocks, doubles=84))
    for found, alone in zip(slab(centre, width), truth, strict=True):
        assert_allclose(found, alone, rtol=1e-12, atol=1e-14)


def test_the_ratio_is_smooth_where_its_two_ways_meet():
    below, above = (mills(np.array([-4.0 + off])) for off in (-1e-9, 1e-9))
    for one, other in zip(below, above, strict=True):
        assert_allclose(one, other, rtol=1e-7)
    far = mills(np.array([-1e3, -40.0, 40.0, 1e3, np.inf]))
    assert_allclose(far.value[:2], [-500007.82669481218, -804.608442013754], rtol=1e-14)
    assert far.ratio[2:].tolist() == [far.ratio[2], 0.0, 0.0]
    assert far.value[3:].tolist() == [0.0, 0.0]
