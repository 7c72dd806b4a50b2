"""HMC and Gibbs on answers of every kind: exact integrals, and calibration by simulation."""

import numpy as np
import pytest
from answers_oracle import answers_problem, answers_truth
from answers_support import RANKS, choices_of_three, duels_with_ties, predicted, ranks_of_truth
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import HMC, Gibbs
from skpref.inference import _sampling as _skew
from skpref.samplers import gibbs

ENGINES = {"hmc": HMC(draws=4000), "gibbs": Gibbs(draws=4000)}
DEPENDENT = "better half of 4"


@pytest.mark.slow
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


@pytest.mark.slow
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


def rankings(n, noise_variance, k=4, tied=False):
    """Rankings of four of six items, drawn at random: they contradict each other."""
    rng = np.random.default_rng(0)
    X = rng.random((6, 2))[np.array([rng.permutation(6)[:k] for _ in range(n)])]
    ranks = np.tile([1, 1, 2, 2] if tied else np.arange(k) + 1, (n, 1))
    return X, ranks, {"optimizer": None, "noise_variance": noise_variance, "random_state": 0}


@pytest.mark.slow
def test_where_walls_are_too_many_choices_and_rankings_are_drawn_by_sweeps(monkeypatch):
    problem = answers_problem(9, ["best of 4", "worst of 3"], 0.1, 4)
    truth = answers_truth(problem, log_2_points=13)
    monkeypatch.setattr(_skew, "bearable_walls", lambda n_answers: 0)
    monkeypatch.setattr(_skew, "_THIN", 5)
    seen = []
    monkeypatch.setattr(_skew, "gibbs", lambda *a, **b: seen.append(1) or gibbs(*a, **b))
    found = predicted(ENGINES["hmc"], problem)
    assert seen
    np.testing.assert_allclose(found.outcomes, truth.outcomes, atol=0.01)
    np.testing.assert_allclose(found.choices, truth.choices, atol=0.01)


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
def test_rankings_that_contradict_each_other_under_hardly_any_noise_are_drawn():
    X, ranks, options = rankings(8, 1e-7)
    model = PairwisePreferenceRegressor(RBF(0.5), inference=HMC(draws=100), **options).fit(X, ranks)
    assert model.diagnostics_.method == "gibbs"
    assert model.diagnostics_.rejected_share == 0.0


def test_what_nothing_draws_is_refused_with_a_remedy_that_works(monkeypatch):
    X, ranks, options = rankings(8, 1e-4, tied=True)
    monkeypatch.setattr(_skew, "most_walls", lambda n: 0)
    model = PairwisePreferenceRegressor(RBF(0.5), inference=HMC(draws=100), **options)
    with pytest.raises(ValueError, match="inference='ep', or raise noise_variance"):
        model.fit(X, ranks)
    model.set_params(inference="ep").fit(X, ranks)
    X, ranks, _ = rankings(8, 1e-4)
    few = HMC(draws=100, max_walls=0, method="walls")
    with pytest.warns(ConvergenceWarning, match="have not mixed.*inference='ep'") as caught:
        model.set_params(inference=few).fit(X, ranks)
    assert "margins" not in str(caught[0].message)  # which rankings do not have


# -- calibration (Talts et al. 2018, "Validating Bayesian inference algorithms") -----------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains have not mixed")  # few draws, of many problems
@pytest.mark.parametrize("answer", [duels_with_ties, choices_of_three])
def test_ranks_of_the_truth_among_draws_are_uniform(answer):
    """The true margin of two items among posterior draws, over simulations from the prior."""
    ranks = ranks_of_truth(answer, 90)
    counts = np.bincount(ranks, minlength=RANKS)
    expected = len(ranks) / RANKS
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert chi2.sf(statistic, RANKS - 1) > 1e-3
    # Too sure or too unsure shows in the ends, biased in one of them.
    ends = counts[[0, 1, -2, -1]]
    assert abs(ends.sum() - 4 * expected) < 4.0 * np.sqrt(4 * expected)
