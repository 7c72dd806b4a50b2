"""Random problems of few judges against importance sampling from the documented prior of judges.

Three to eight items without features, two to four judges with one to twelve answers each, with and
without ties and order effects; noise, thresholds, shares of kinds and variance of reliability are
drawn and given. Utilities are drawn from their prior, and a judge's reliability is integrated over
the prior: log-normal, positive, negative or zero. Compared are P(adversarial) and P(random) of each
judge, P(a better than b), and the next answers of the reference judge and of each judge. Of every
problem the largest error counts; the table has their median, the largest of all, and the share
within the tolerance (.05; samplers .02). 200 problems of EP take some minutes of one core. Rows
that the table holds already are kept; a second run does what is missing:

    python benchmarks/posterior/random_judges.py [--engine ep hmc] [--problems 200] [--seed 0]
        [--judges 2 3 4] [--results FILE]
"""

import argparse
import itertools
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from _importance import N_SCRAMBLES, draw_posterior, fit_normal
from scipy.special import logsumexp, ndtr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, Table, report, sources

from skpref import JudgePrior, PairwisePreferenceRegressor

TOLERANCE = {"ep": 0.05, "laplace": 0.05, "svi": 0.05, "hmc": 0.02, "gibbs": 0.02}
QUANTITIES = ("adversarial", "random", "better", "reference", "judge")
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
_ROUGH_NODES, _ROUGH_WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
_LOG_ROUGH_WEIGHTS = np.log(_ROUGH_WEIGHTS / _ROUGH_WEIGHTS.sum())


class JudgesProblem(NamedTuple):
    """Duels of some judges and the hyperparameters that are given.

    ``pair``, ``outcome`` (-1, 0 or 1: the second won, a tie, the first), ``order`` and ``judge``
    are of each answer; ``threshold`` is 0 without ties.
    """

    n_items: int
    n_judges: int
    pair: np.ndarray
    outcome: np.ndarray
    order: np.ndarray
    judge: np.ndarray
    noise_variance: float
    threshold: float
    order_effect: float
    reliability_variance: float
    random: float
    adversarial: float

    @property
    def outcomes(self):
        """Possible outcomes, as predictions order them."""
        return (-1, 0, 1) if self.threshold else (-1, 1)


class JudgesTruth(NamedTuple):
    """Posterior of the judges, of pairs and of next answers, with their largest Monte Carlo error.

    ``better`` and ``reference`` are of all pairs, the first of which is shown first; ``judge`` has
    the same of each judge.
    """

    adversarial: np.ndarray
    random: np.ndarray
    better: np.ndarray
    reference: np.ndarray
    judge: np.ndarray
    error: float
    n_effective: float


def draw_problem(seed, judges=(2, 3, 4)):
    """Draw a problem from a seed; half of the problems have the default prior of judges."""
    rng = np.random.default_rng([seed, 48])
    n_items, n_judges = int(rng.integers(3, 9)), int(rng.choice(judges))
    noise_variance = float(np.exp(rng.uniform(np.log(0.03), np.log(1.0))))
    scale = np.sqrt(noise_variance)
    threshold = float(scale * rng.uniform(0.3, 1.5)) if rng.random() < 0.4 else 0.0
    order_effect = float(scale * rng.normal()) if rng.random() < 0.4 else 0.0
    reliability_variance, random, adversarial = 0.1, 0.1, 0.05
    if rng.random() < 0.5:
        reliability_variance = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))
        random, adversarial = (float(share) for share in rng.uniform(0.02, 0.3, 2))
    # More judges err than is expected of them, so that answers contradict each other often.
    kind = rng.choice([1.0, -1.0, 0.0], size=n_judges, p=[0.55, 0.3, 0.15])
    reliability = kind * np.exp(np.sqrt(reliability_variance) * rng.standard_normal(n_judges))
    judge = np.repeat(np.arange(n_judges), rng.integers(1, 13, n_judges))
    n = len(judge)
    pair = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n)])
    order = rng.choice([1, -1, 0], size=n, p=[0.6, 0.3, 0.1]) if order_effect else np.ones(n, int)
    utility = rng.standard_normal(n_items)
    margin = reliability[judge] * (utility[pair[:, 0]] - utility[pair[:, 1]])
    noisy = margin + order_effect * order + np.sqrt(2.0) * scale * rng.standard_normal(n)
    outcome = np.where(np.abs(noisy) <= threshold, 0, np.sign(noisy)).astype(int)
    return JudgesProblem(
        n_items,
        n_judges,
        pair,
        outcome,
        order,
        judge,
        noise_variance,
        threshold,
        order_effect,
        reliability_variance,
        random,
        adversarial,
    )


def probability(problem, margin, outcome, order):
    """Return the probability of an outcome, given reliability times margin."""
    scale = np.sqrt(2.0 * problem.noise_variance)
    mean = margin + order * problem.order_effect
    if outcome:
        return ndtr((outcome * mean - problem.threshold) / scale)
    mean = -np.abs(mean)  # the tail in which a difference keeps its digits
    return ndtr((mean + problem.threshold) / scale) - ndtr((mean - problem.threshold) / scale)


def log_likelihood_by_judge(problem, utility, reliability):
    """Return log-probabilities of each judge's answers, (n_judges, n_draws, n_points).

    ``reliability`` holds points of all judges, (n_points,), or of each, (n_judges, n_points).
    """
    reliability = np.broadcast_to(reliability, (problem.n_judges, np.shape(reliability)[-1]))
    answers = zip(*problem.pair.T, problem.outcome, problem.order, problem.judge, strict=True)
    counts = Counter(answers)
    total = np.zeros((problem.n_judges, len(utility), reliability.shape[1]))
    for (a, b, outcome, order, judge), count in counts.items():
        margin = (utility[:, a] - utility[:, b])[:, None] * reliability[judge]
        chance = np.maximum(probability(problem, margin, outcome, order), 1e-300)
        total[judge] += count * np.log(chance)
    return total


def prior_of_reliability(problem):
    """Return points of reliability and their log-probabilities: positive, negative, zero."""
    size = np.exp(np.sqrt(problem.reliability_variance) * _NODES)
    shares = np.log([1.0 - problem.random - problem.adversarial, problem.adversarial])
    points = np.concatenate([size, -size, np.zeros(1)])
    return points, np.concatenate([*(_LOG_WEIGHTS + s for s in shares), [np.log(problem.random)]])


def integrate(problem, *, seed=0, n=2**15, n_effective=6000.0):
    """Return the truth of a problem, or None where too few draws are effective."""
    rng = np.random.default_rng([seed, 4])
    points, log_prior = prior_of_reliability(problem)
    shares = np.array(
        [1.0 - problem.random - problem.adversarial, problem.adversarial, problem.random]
    )
    sizes = np.exp(np.sqrt(problem.reliability_variance) * _ROUGH_NODES)
    of_kind = np.array([1.0, -1.0, 0.0])[:, None] * sizes

    def log_likelihood(x):
        by_point = log_likelihood_by_judge(problem, x, points) + log_prior
        return logsumexp(by_point, axis=2).sum(axis=0)

    normals = []
    for kinds in itertools.product(range(3), repeat=problem.n_judges):

        def log_likelihood_of_kinds(x, kinds=kinds):
            kinds = list(kinds)
            by_point = log_likelihood_by_judge(problem, x, of_kind[kinds]) + _LOG_ROUGH_WEIGHTS
            return logsumexp(by_point, axis=2).sum(axis=0) + np.log(shares[kinds]).sum()

        normals.append(fit_normal(log_likelihood_of_kinds, problem.n_items, rng, n=512))
    draws = draw_posterior(log_likelihood, normals, rng, n=n, n_most=2**20, n_effective=n_effective)
    if draws is None:
        return None
    by_point = log_likelihood_by_judge(problem, draws.x, points) + log_prior
    by_point -= logsumexp(by_point, axis=2, keepdims=True)
    posterior = np.exp(by_point)  # of reliability given the utility
    first, second = pairs_of(problem)
    margin = draws.x[:, first] - draws.x[:, second]
    values = (
        posterior[..., len(_NODES) : -1].sum(axis=2).T,
        posterior[..., -1].T,
        (margin > 0.0).astype(float),
        outcome_probabilities(problem, margin),
    )
    means = [draws.scramble_means(each) for each in values]
    weight = draws.weight.reshape(N_SCRAMBLES, -1)
    weight = weight / weight.sum(axis=1, keepdims=True)
    of_judges = np.zeros((N_SCRAMBLES, problem.n_judges, means[-1][0].size))
    for k, point in enumerate(points):
        share = weight[:, None] * np.moveaxis(
            posterior[..., k].reshape(problem.n_judges, *weight.shape), 0, 1
        )
        outcomes = outcome_probabilities(problem, point * margin)
        of_judges += share @ outcomes.reshape(*weight.shape, -1)
    means.append(of_judges.reshape(N_SCRAMBLES, problem.n_judges, *means[-1].shape[1:]))
    means, errors = zip(*(draws.combined(each) for each in means), strict=True)
    return JudgesTruth(*means, max(errors), draws.n_effective)


def outcome_probabilities(problem, margin):
    """Return the probabilities of all outcomes where the first item is shown first."""
    chances = [probability(problem, margin, outcome, 1) for outcome in problem.outcomes[:-1]]
    return np.stack([*chances, 1.0 - sum(chances)], axis=-1)


def pairs_of(problem):
    """Return first and second items of all pairs."""
    return np.array(list(itertools.combinations(range(problem.n_items), 2))).T


def fit_engine(problem, engine, seed=0):
    """Fit a model to a problem; return its values of the quantities that are compared."""
    names = np.array([f"item {i}" for i in range(problem.n_items)])
    ids = np.array([f"judge {j}" for j in range(problem.n_judges)])
    prior = JudgePrior(
        problem.reliability_variance,
        variance_bounds="fixed",
        random=problem.random,
        adversarial=problem.adversarial,
        order_variance=0.0,
    )
    model = PairwisePreferenceRegressor(
        items=names.tolist(),
        judge_prior=prior,
        noise_variance=problem.noise_variance,
        tie_threshold=problem.threshold or None,
        order_effect=problem.order_effect,
        optimizer=None,
        inference=engine,
        random_state=seed,
    )
    order = problem.order if problem.order_effect else None
    y = problem.outcome if problem.threshold else (problem.outcome > 0).astype(int)
    judges = ids[problem.judge]
    pair = problem.pair
    if problem.threshold and y.min() == 0:  # -1 is to say that 0 is a tie: one win turned round
        at = np.flatnonzero(y == 1)[:1]
        pair, y, order = pair.copy(), y.copy(), None if order is None else order.copy()
        pair[at], y[at] = pair[at][:, ::-1], -1
        if order is not None:
            order[at] *= -1
    model.fit(names[pair], y, judges=judges, order=order)
    first, second = pairs_of(problem)
    duels = np.column_stack([names[first], names[second]])
    shown = {} if order is None else {"order": np.ones(len(duels), int)}
    row = [list(model.judges_.ids).index(name) for name in ids]
    return {
        "adversarial": model.judges_.probability_adversarial[row],
        "random": model.judges_.probability_random[row],
        "better": model.posterior_.win_probability(names[first], names[second], noise=False),
        "reference": model.predict_proba(duels, judges=[None] * len(duels), **shown),
        "judge": np.array(
            [model.predict_proba(duels, judges=[name] * len(duels), **shown) for name in ids]
        ),
    }


def errors(problem, truth, engine):
    """Return the largest error of each quantity, and seconds of the fit."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = fit_engine(problem, engine)
    row = {name: float(np.max(np.abs(values[name] - getattr(truth, name)))) for name in QUANTITIES}
    return row | {"seconds": time.process_time() - begin}


def problem_rows(seed, engines, judges=(2, 3, 4), n_effective=6000.0):
    """Return the rows of a problem, one of each engine."""
    problem = draw_problem(seed, judges)
    about = {
        "seed": seed,
        "judges": problem.n_judges,
        "items": problem.n_items,
        "answers": len(problem.judge),
        "ties": int(problem.threshold > 0.0),
        "order": int(problem.order_effect != 0.0),
    }
    truth = integrate(problem, n_effective=n_effective)
    if truth is None:
        empty = dict.fromkeys((*QUANTITIES, "seconds", "truth_error", "effective_draws"), "")
        return [
            about | {"engine": engine, "outcome": "too few effective draws"} | empty
            for engine in engines
        ]
    return [
        about
        | {"engine": engine, "outcome": "compared"}
        | errors(problem, truth, engine)
        | {"truth_error": truth.error, "effective_draws": truth.n_effective}
        for engine in engines
    ]


def summary(rows):
    """Yield a row for each engine and quantity."""
    for engine in dict.fromkeys(row["engine"] for row in rows):
        tried = [row for row in rows if row["engine"] == engine]
        mine = [row for row in tried if row["outcome"] == "compared"]
        if not mine:
            continue
        for name in (*QUANTITIES, "any"):
            value = np.array(
                [row[name] if name != "any" else max(row[q] for q in QUANTITIES) for row in mine]
            )
            yield {
                "engine": engine,
                "quantity": name,
                "problems": len(mine),
                "no truth": len(tried) - len(mine),
                "median": float(np.median(value)),
                "largest": float(value.max()),
                "tolerance": TOLERANCE[engine],
                "within": float(np.mean(value <= TOLERANCE[engine])),
                "largest_truth_error": max(row["truth_error"] for row in mine),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", nargs="+", choices=list(TOLERANCE), default=["ep"])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem")
    parser.add_argument("--judges", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument(
        "--effective-draws", type=float, default=6000.0, help="of the truth, at least"
    )
    parser.add_argument("--worst", type=int, default=5, help="problems shown by their seeds")
    parser.add_argument("--results", type=Path, default=RESULTS / "random_judges.csv")
    options = parser.parse_args()
    table = Table(options.results, ("seed", "engine"))
    seeds = range(options.seed, options.seed + options.problems)
    missing = table.missing((seed, engine) for seed in seeds for engine in options.engine)
    for seed in dict.fromkeys(seed for seed, _ in missing):
        engines = [engine for other, engine in missing if other == seed]
        table.add(problem_rows(seed, engines, options.judges, options.effective_draws))
        print(f"problem {seed} is done", flush=True)
    rows = [row for row in table.rows() if row["outcome"] == "compared"]
    for engine in dict.fromkeys(row["engine"] for row in rows):
        mine = [row for row in rows if row["engine"] == engine]
        mine.sort(key=lambda row: -max(row[name] for name in QUANTITIES))
        for row in mine[: options.worst]:
            print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else v for k, v in row.items()))
    path = options.results.with_name(f"{options.results.stem}_summary.csv")
    report(list(summary(table.rows())), path, code=sources())


if __name__ == "__main__":
    main()
