"""HMC and Gibbs on answers of every kind: exact integrals, and calibration by simulation."""

from dataclasses import replace

import numpy as np
import pytest
from answers_oracle import answers_problem, answers_truth
from answers_support import predicted
from scipy.stats import chi2
from sklearn.gaussian_process.kernels import RBF

from skpref._fitting import fit_posterior
from skpref._model import Model
from skpref.duels import Observations
from skpref.inference import HMC, Gibbs
from skpref.likelihoods import Probit

ENGINES = {"hmc": HMC(draws=4000), "gibbs": Gibbs(draws=4000)}
DEPENDENT = "better half of 4"


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    ("kinds", "noise_variance"),
    [
        (["tie", "duel"], 0.05),
        (["best of 4", "worst of 3"], 0.1),
        (["ranking of 4", "tie", "ranking of 2 of 3"], 0.3),
    ],
)
def test_probabilities_are_exact_but_for_the_draws(name, kinds, noise_variance):
    problem = answers_problem(9, kinds, noise_variance, 4)
    truth = answers_truth(problem, log_2_points=13)
    found = predicted(ENGINES[name], problem)
    # Draws are averaged as probabilities, whose deviations are far below one half.
    np.testing.assert_allclose(found.outcomes, truth.outcomes, atol=0.01)
    np.testing.assert_allclose(found.choices, truth.choices, atol=0.01)


def test_inequalities_that_follow_from_others_are_exact_too():
    problem = answers_problem(2, [DEPENDENT, "tie"], 0.1, 3)
    assert DEPENDENT in [answer.kind for answer in problem.answers]
    truth = answers_truth(problem, log_2_points=13)
    found = predicted(ENGINES["hmc"], problem)
    np.testing.assert_allclose(found.outcomes, truth.outcomes, atol=0.01)
    np.testing.assert_allclose(found.choices, truth.choices, atol=0.01)


def test_gibbs_refuses_inequalities_that_follow_from_others():
    problem = answers_problem(2, [DEPENDENT], 0.1, 1)
    with pytest.raises(ValueError, match=r"Gibbs .*inference='hmc' or 'ep'"):
        predicted(ENGINES["gibbs"], problem)


# -- calibration (Talts et al. 2018, "Validating Bayesian inference algorithms") -----------------

KERNEL = RBF(0.7)
NOISE, THRESHOLD, EFFECT = 0.2, 0.4, 0.3
RANKS = 20


def duels_with_ties(rng, items, utility, n=8):
    pairs = np.array([rng.permutation(len(items))[:2] for _ in range(n)])
    order = rng.integers(-1, 2, n)
    seen = utility[pairs] + np.sqrt(NOISE) * rng.standard_normal((n, 2))
    margin = seen[:, 0] - seen[:, 1] + EFFECT * order
    tie = np.abs(margin) < THRESHOLD
    made = Observations.from_duels(items, *pairs.T, margin > 0.0, tie=tie, order=order)
    return replace(made, ordered=True)


def choices_of_three(rng, items, utility, n=5):
    sets = np.array([rng.permutation(len(items))[:3] for _ in range(n)])
    seen = utility[sets] + np.sqrt(NOISE) * rng.standard_normal((n, 3))
    seen[:, 0] += EFFECT
    rank = np.where(seen == seen.max(axis=1, keepdims=True), 1, 2)
    return replace(Observations.from_ranks(items, sets, rank), ordered=True)


@pytest.mark.parametrize("answer", [duels_with_ties, choices_of_three])
def test_ranks_of_the_truth_among_draws_are_uniform(answer):
    """The true margin of two items among posterior draws, over simulations from the prior."""
    likelihood = Probit(NOISE, tie_threshold=THRESHOLD, order_effect=EFFECT).held()
    model = Model(KERNEL, likelihood, HMC(draws=200, chains=20))
    rng = np.random.default_rng(0)
    ranks = []
    for _ in range(120):
        items = rng.uniform(-1.0, 1.0, (5, 2))
        utility = np.linalg.cholesky(KERNEL(items) + 1e-10 * np.eye(5)) @ rng.standard_normal(5)
        posterior = fit_posterior(answer(rng, items, utility), model, rng=rng).posterior
        draws = posterior.sample(items, RANKS - 1, rng)
        for i, j in ((0, 1), (2, 3)):
            ranks.append(np.sum(draws[i] - draws[j] < utility[i] - utility[j]))
    counts = np.bincount(ranks, minlength=RANKS)
    expected = len(ranks) / RANKS
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert chi2.sf(statistic, RANKS - 1) > 1e-3
    # Too sure or too unsure shows in the ends, biased in one of them.
    ends = counts[[0, 1, -2, -1]]
    assert abs(ends.sum() - 4 * expected) < 4.0 * np.sqrt(4 * expected)
