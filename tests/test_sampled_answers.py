"""HMC and Gibbs on answers of every kind: exact integrals, and calibration by simulation."""

import numpy as np
import pytest
from answers_oracle import answers_problem, answers_truth
from answers_support import RANKS, choices_of_three, duels_with_ties, predicted, ranks_of_truth
from scipy.stats import chi2

from skpref.inference import HMC, Gibbs

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


@pytest.mark.slow
@pytest.mark.parametrize("answer", [duels_with_ties, choices_of_three])
def test_ranks_of_the_truth_among_draws_are_uniform(answer):
    """The true margin of two items among posterior draws, over simulations from the prior."""
    ranks = ranks_of_truth(answer, 120)
    counts = np.bincount(ranks, minlength=RANKS)
    expected = len(ranks) / RANKS
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert chi2.sf(statistic, RANKS - 1) > 1e-3
    # Too sure or too unsure shows in the ends, biased in one of them.
    ends = counts[[0, 1, -2, -1]]
    assert abs(ends.sum() - 4 * expected) < 4.0 * np.sqrt(4 * expected)
