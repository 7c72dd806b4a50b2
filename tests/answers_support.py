"""What the tests of answers of every kind share: problems as the package takes them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from skpref.duels import Comparisons
from skpref.fitting._fit import Fitted, fit_posterior
from skpref.fitting._model import Model
from skpref.inference import HMC
from skpref.likelihoods import TIE, Probit


def observed(problem, weight=None):
    """The answers of an `AnswersProblem`."""
    k = max(len(answer.shown) for answer in problem.answers)

    def padded(values, fill):
        return [list(each) + [fill] * (k - len(each)) for each in values]

    seen = Comparisons.from_ranks(
        problem.items,
        padded([answer.shown for answer in problem.answers], -1),
        padded([answer.rank for answer in problem.answers], 0),
        weight,
        kind=[TIE * answer.tie for answer in problem.answers],
        order=[answer.order for answer in problem.answers],
    )
    return replace(seen, ordered=problem.order_effect != 0.0)


def likelihood_of(problem):
    """The probit of an `AnswersProblem`, nothing of it learned."""
    return Probit(
        problem.noise_variance, tie_threshold=problem.tie_threshold,
        order_effect=problem.order_effect,
    ).fix_hyperparameters()  # fmt: skip


class Predicted(NamedTuple):
    """What a posterior says of the pairs and sets of a problem."""

    fitted: Fitted
    outcomes: np.ndarray
    choices: np.ndarray


def predicted(engine, problem, seed=0):
    """An engine's predictions, as `answers_truth` has them."""
    model = Model(problem.kernel, likelihood_of(problem), engine)
    fitted = fit_posterior(observed(problem), model, rng=np.random.default_rng(seed))
    posterior = fitted.posterior
    outcomes = np.exp(posterior.outcome_log_proba(problem.first, problem.second, problem.order))
    return Predicted(fitted, outcomes, posterior.choice_proba(problem.sets))


# -- simulation-based calibration (Talts et al. 2018) ------------------------------------------

KERNEL = RBF(0.7)
NOISE, THRESHOLD, EFFECT = 0.2, 0.4, 0.3
RANKS = 20


def duels_with_ties(rng, items, utility, n=8):
    pairs = np.array([rng.permutation(len(items))[:2] for _ in range(n)])
    order = rng.integers(-1, 2, n)
    seen = utility[pairs] + np.sqrt(NOISE) * rng.standard_normal((n, 2))
    margin = seen[:, 0] - seen[:, 1] + EFFECT * order
    tie = np.abs(margin) < THRESHOLD
    made = Comparisons.from_duels(
        items, *pairs.T, margin > 0.0, kind=TIE * np.array(tie), order=order
    )
    return replace(made, ordered=True)


def choices_of_three(rng, items, utility, n=5):
    sets = np.array([rng.permutation(len(items))[:3] for _ in range(n)])
    seen = utility[sets] + np.sqrt(NOISE) * rng.standard_normal((n, 3))
    seen[:, 0] += EFFECT
    rank = np.where(seen == seen.max(axis=1, keepdims=True), 1, 2)
    return replace(Comparisons.from_ranks(items, sets, rank), ordered=True)


def ranks_of_truth(answer, n_simulations, seed=0):
    """Ranks of true margins among posterior draws, over simulations from the prior."""
    likelihood = Probit(NOISE, tie_threshold=THRESHOLD, order_effect=EFFECT).fix_hyperparameters()
    model = Model(KERNEL, likelihood, HMC(draws=200, chains=20))
    rng = np.random.default_rng(seed)
    ranks = []
    for _ in range(n_simulations):
        items = rng.uniform(-1.0, 1.0, (5, 2))
        utility = np.linalg.cholesky(KERNEL(items) + 1e-10 * np.eye(5)) @ rng.standard_normal(5)
        posterior = fit_posterior(answer(rng, items, utility), model, rng=rng).posterior
        draws = posterior.sample(items, RANKS - 1, rng)
        for i, j in ((0, 1), (2, 3)):
            ranks.append(np.sum(draws[i] - draws[j] < utility[i] - utility[j]))
    return np.array(ranks)
