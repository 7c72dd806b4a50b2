"""What the tests of answers of every kind share: problems as the package takes them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skpref._fitting import Fitted, fit_posterior
from skpref._model import Model
from skpref.duels import Observations
from skpref.likelihoods import Probit


def observed(problem, weight=None):
    """The answers of an `AnswersProblem`."""
    k = max(len(answer.shown) for answer in problem.answers)

    def padded(values, fill):
        return [list(each) + [fill] * (k - len(each)) for each in values]

    seen = Observations.from_ranks(
        problem.items,
        padded([answer.shown for answer in problem.answers], -1),
        padded([answer.rank for answer in problem.answers], 0),
        weight,
        tie=[answer.tie for answer in problem.answers],
        order=[answer.order for answer in problem.answers],
    )
    return replace(seen, ordered=problem.order_effect != 0.0)


def likelihood_of(problem):
    """The probit of an `AnswersProblem`, nothing of it learned."""
    return Probit(
        problem.noise_variance, tie_threshold=problem.tie_threshold,
        order_effect=problem.order_effect,
    ).held()  # fmt: skip


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
