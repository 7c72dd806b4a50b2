"""Random problems with effects of groups against importance sampling: prompts, judges' own biases.

Three to six items; in "prompts" duels on two to five prompts, some of whose pairs are judged again,
with effects of items in prompts and of pairs within them; in "judges" two to four judges, each with
a slope on a control and an advantage of the first of their own; in "both" prompts, and judges with
such advantages. Half of the problems have ties. Noise, thresholds and all variances are drawn and
given. What the answers see are margins, whose joint normal prior is written here from its
definition; given these, margins that are asked about are normal. Compared are the next answers on
known prompts by known judges, the same on a new prompt by a new judge, and P(a better than b) in
the mean over all prompts for the reference judge. Of every problem the largest error of each
counts. Samplers take 1000 draws, whose Monte Carlo error may exceed .02: in four of the worst
problems runs of Gibbs err by .014 to .026, the mean of four by .008 to .011, and one of 16 times as
many draws by .003 to .007. 200 problems of EP take a minute of one core:

    python benchmarks/posterior/random_groups.py [--engines ep laplace hmc] [--problems 200]
        [--kinds prompts judges both] [--seed 0] [--csv]
"""

import argparse
import itertools
import os
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from _importance import draw_posterior, fit_normal
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.kernels import Identity, Linear, OnColumns

KINDS = ("prompts", "judges", "both")
QUANTITIES = ("known", "new", "better")
TOLERANCE = {"ep": 0.05, "laplace": 0.05, "hmc": 0.02, "gibbs": 0.02}
# Numbers of a prompt and of a judge that have no answer, and of those without own effects.
NEW, NONE = -1.0, np.nan


class Margins(NamedTuple):
    """Differences between two items: prompt, judge, who is shown first (1, -1 or 0), control."""

    first: np.ndarray
    second: np.ndarray
    prompt: np.ndarray
    judge: np.ndarray
    lead: np.ndarray
    control: np.ndarray


class GroupsProblem(NamedTuple):
    """Duels and the hyperparameters that are given; variances of effects that are not there are 0.

    ``outcome`` is -1, 0 or 1: the second won, a tie, the first; ``threshold`` 0 without ties.
    ``lengths``, (n_answers, 2), are the control of both items of each answer.
    """

    n_items: int
    margins: Margins
    lengths: np.ndarray
    outcome: np.ndarray
    noise_variance: float
    threshold: float
    order_effect: float
    utility_variance: float
    prompt_variance: float
    pair_variance: float
    slope_variance: float
    own_slope_variance: float
    own_order_variance: float

    @property
    def outcomes(self):
        """Possible outcomes, as predictions order them."""
        return (-1, 0, 1) if self.threshold else (-1, 1)


class GroupsTruth(NamedTuple):
    """Values of all quantities, and the largest Monte Carlo error."""

    known: np.ndarray
    new: np.ndarray
    better: np.ndarray
    error: float


def draw_problem(kind, seed):
    """Draw a problem of a kind from a seed."""
    rng = np.random.default_rng([seed, KINDS.index(kind), 50])
    has_prompts, has_judges = kind != "judges", kind != "prompts"
    n_items, n_prompts = int(rng.integers(3, 7)), int(rng.integers(2, 6))
    n = int(rng.integers(2 * n_prompts + 2, 25))
    low, high = np.log(0.05), np.log(2.0)
    variances = np.exp(rng.uniform(low, high, size=6))
    pair = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n)])
    prompt = np.sort(rng.integers(0, n_prompts, n))
    prompt[:4] = [0, 0, 1, 1]  # several prompts, on which there are several answers
    for k in np.flatnonzero(rng.random(n) < 0.4):  # a vote on an earlier pair of the prompt
        pair[k] = rng.permutation(pair[rng.choice(np.flatnonzero(prompt[: k + 1] == prompt[k]))])
    judge = rng.integers(0, rng.integers(2, 5), n)
    lead = rng.choice([1, -1, 0], size=n, p=[0.5, 0.3, 0.2]) if has_judges else np.zeros(n, int)
    lengths = rng.normal(size=(n, 2)).round(1) * (kind == "judges")
    keys = [(p, *sorted(two)) for p, two in zip(prompt.tolist(), pair.tolist(), strict=True)]
    is_judged_again = len(set(keys)) < n and len(set(keys)) > len(set(prompt.tolist()))
    scale = np.sqrt(variances[0])
    # With judges effects of prompts come by themselves: a quarter of the variance of the utility.
    effects = variances[2:4] if kind == "prompts" else np.full(2, 0.25 * variances[1])
    problem = GroupsProblem(
        n_items,
        Margins(*pair.T, prompt, judge, lead, lengths[:, 0] - lengths[:, 1]),
        lengths,
        np.zeros(n, int),
        float(variances[0]),
        float(scale * rng.uniform(0.3, 1.5)) if rng.random() < 0.5 else 0.0,
        float(0.5 * scale * rng.normal()) if has_judges else 0.0,
        float(variances[1]),
        float(effects[0] * has_prompts),
        float(effects[1] * (has_prompts and is_judged_again)),
        float(0.1 * (kind == "judges")),
        float(variances[4] * (kind == "judges")),
        float(variances[5] * has_judges),
    )
    margin = prior_draw(problem, rng) + problem.order_effect * lead
    noisy = margin + np.sqrt(2.0) * scale * rng.standard_normal(n)
    outcome = np.where(np.abs(noisy) <= problem.threshold, 0, np.sign(noisy)).astype(int)
    if problem.threshold:  # both sides win once, which says that 0 is a tie
        outcome[:2] = 1, -1
    return problem._replace(outcome=outcome)


def prior_draw(problem, rng):
    """Draw the margins of the answers from their prior."""
    values, vectors = np.linalg.eigh(covariance(problem, problem.margins, problem.margins))
    return vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(values)))


def length_unit(problem):
    """Return the standard deviation of the control over the distinct rows of id and control."""
    ids = np.stack(problem.margins[:2], axis=1)
    rows = np.unique(np.stack([ids.ravel(), problem.lengths.ravel()], axis=1), axis=0)
    return rows[:, 1].std() or 1.0


def covariance(problem, rows, columns):
    """Return the prior covariance of margins, (n, m)."""
    a, b, prompt, judge, lead, control = (np.asarray(part)[:, None] for part in rows)
    c, d, *others = (np.asarray(part)[None] for part in columns)
    alike = np.equal(a, c) * 1.0 + (b == d) - (a == d) - (b == c)
    same_pair = ((a == c) & (b == d)) | ((a == d) & (b == c))
    controls = control * others[3] / length_unit(problem) ** 2
    within_prompt = problem.prompt_variance + problem.pair_variance * same_pair
    by_judge = problem.own_slope_variance * controls
    by_judge = by_judge + problem.own_order_variance * lead * others[2]
    utility = alike * (problem.utility_variance + (prompt == others[0]) * within_prompt)
    return utility + problem.slope_variance * controls + (judge == others[1]) * by_judge


def outcome_probabilities(problem, margin, variance, lead):
    """Return the probabilities of all outcomes of noisy margins with these moments."""
    scale = np.sqrt(2.0 * problem.noise_variance + variance)
    mean, threshold = margin + lead * problem.order_effect, problem.threshold
    first, second = ndtr((mean - threshold) / scale), ndtr((-mean - threshold) / scale)
    tie = [1.0 - first - second] if threshold else []
    return np.stack([second, *tie, first], axis=-1)


def asked_margins(problem):
    """Return the margins of the quantities: known prompts and judges, new ones, and none."""
    first, second = np.array(list(itertools.combinations(range(problem.n_items), 2))).T
    answers, n = problem.margins, len(first)
    lead = np.ones(n) if problem.own_order_variance else np.zeros(n)
    control = np.linspace(-1.0, 1.0, n) * (problem.slope_variance > 0.0)
    k = np.arange(n) % len(answers.prompt)
    known = Margins(first, second, answers.prompt[k], answers.judge[k], lead, control)
    known = Margins(*(np.concatenate(both) for both in zip(answers, known, strict=True)))
    new = Margins(first, second, np.full(n, NEW), np.full(n, NEW), lead, control)
    empty = np.full(n, NONE)
    return known, new, Margins(first, second, empty, empty, np.zeros(n), np.zeros(n))


def integrate(problem, *, seed=0, n=2**14, n_effective=4000.0):
    """Return the truth of a problem, or None where too few draws are effective."""
    rng = np.random.default_rng([seed, 5])
    answers = problem.margins
    values, vectors = np.linalg.eigh(covariance(problem, answers, answers))
    is_free = values > 1e-10 * values.max()
    root = vectors[:, is_free] * np.sqrt(values[is_free])
    index = np.searchsorted(problem.outcomes, problem.outcome)
    rows = np.arange(len(index))

    def log_likelihood(x):
        chances = outcome_probabilities(problem, x @ root.T, 0.0, answers.lead)
        return np.log(np.maximum(chances[:, rows, index], 1e-300)).sum(axis=1)

    d = root.shape[1]
    normals = [fit_normal(log_likelihood, d, rng)]
    draws = draw_posterior(log_likelihood, normals, rng, n=n, n_most=2**20, n_effective=n_effective)
    if draws is None:
        return None
    means, errors = [], []
    for quantity, asked in zip(QUANTITIES, asked_margins(problem), strict=True):
        # Given x the margins that are asked about are normal.
        lift = covariance(problem, asked, answers) @ np.linalg.pinv(root).T
        own = [covariance(problem, *[Margins(*each)] * 2) for each in by_row(asked)]
        variance = np.maximum(np.array(own).ravel() - np.sum(lift**2, axis=1), 0.0)
        margin = draws.x @ lift.T
        if quantity == "better":
            chances = ndtr(margin / np.sqrt(np.maximum(variance, 1e-12)))
        else:
            chances = outcome_probabilities(problem, margin, variance, asked.lead)
        mean, error = draws.combined(draws.scramble_means(chances))
        means.append(mean)
        errors.append(error)
    return GroupsTruth(*means, max(errors))


def by_row(margins):
    """Yield the parts of one margin after the other, each of length 1."""
    for row in zip(*margins, strict=True):
        yield [np.array([value]) for value in row]


def rows_of(problem, first, second, lengths):
    """Return duels of ids, with the control beside them where there is one."""
    ids = np.stack([first, second], axis=1).astype(float)
    return np.stack([ids, lengths], axis=2) if problem.slope_variance else ids[:, :, None]


def fit_engine(problem, engine, seed=0):
    """Fit a model to a problem; return its values of the quantities that are compared."""
    answers, has_control = problem.margins, problem.slope_variance > 0.0
    kernel = problem.utility_variance * OnColumns(Identity(), [0])
    has_prompts, has_judges = problem.prompt_variance > 0.0, problem.own_order_variance > 0.0
    if has_control:
        kernel = kernel + problem.slope_variance * OnColumns(Linear(length_unit(problem)), [1])
    if has_prompts and not has_judges:
        kernel = kernel + problem.prompt_variance * OnColumns(Identity(), [0, 1])
    if problem.pair_variance and not has_judges:
        kernel = kernel + problem.pair_variance * OnColumns(Identity(), [0, 1, 2])
    prior = JudgePrior(
        1e-12,
        random=0.0,
        adversarial=0.0,
        control_variance=problem.own_slope_variance,
        order_variance=problem.own_order_variance,
    )
    model = PairwisePreferenceRegressor(
        kernel=kernel,
        id_column=0,
        judge_prior=prior,
        noise_variance=problem.noise_variance,
        tie_threshold=problem.threshold or None,
        order_effect=problem.order_effect,
        optimizer=None,
        inference=engine,
        random_state=seed,
    )

    def metadata(margins, prompts, judges):
        named = {"prompts": prompts} if has_prompts else {}
        return named | ({"order": margins.lead, "judges": judges} if has_judges else {})

    y = problem.outcome if problem.threshold else (problem.outcome > 0).astype(int)
    X = rows_of(problem, answers.first, answers.second, problem.lengths)
    model.fit(X, y, **metadata(answers, answers.prompt, answers.judge))
    known, new, better = asked_margins(problem)
    lengths = [
        np.stack([each.control, np.zeros(len(each.control))], axis=1) for each in (known, new)
    ]
    lengths[0][: len(y)] = problem.lengths
    asked = [
        rows_of(problem, each.first, each.second, values)
        for each, values in zip((known, new), lengths, strict=True)
    ]
    two = rows_of(problem, better.first, better.second, np.zeros((len(better.first), 2)))
    nobody = ["nobody"] * len(new.first)
    values = (
        model.predict_proba(asked[0], **metadata(known, known.prompt, known.judge)),
        model.predict_proba(asked[1], **metadata(new, nobody, nobody)),
        model.posterior_.win_probability(two[:, 0], two[:, 1], noise=False),
    )
    return dict(zip(QUANTITIES, values, strict=True))


def errors(problem, truth, engine):
    """Return the largest error of each quantity, and seconds of the fit."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = fit_engine(problem, engine)
    row = {name: float(np.max(np.abs(values[name] - getattr(truth, name)))) for name in QUANTITIES}
    return row | {"seconds": time.process_time() - begin}


def summary(rows):
    """Yield a row for each engine, kind and quantity."""
    for engine, kind in dict.fromkeys((row["engine"], row["kind"]) for row in rows):
        mine = [row for row in rows if (row["engine"], row["kind"]) == (engine, kind)]
        for name in QUANTITIES:
            value = np.array([row[name] for row in mine])
            yield {
                "engine": engine,
                "kind": kind,
                "quantity": name,
                "problems": len(mine),
                "median": float(np.median(value)),
                "largest": float(value.max()),
                "tolerance": TOLERANCE[engine],
                "within": float(np.mean(value <= TOLERANCE[engine])),
                "largest_truth_error": max(row["truth_error"] for row in mine),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engines", nargs="+", choices=list(TOLERANCE), default=["ep"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem of each kind")
    parser.add_argument("--csv", action="store_true", help="write the tables, too")
    options = parser.parse_args()
    rows, n_dropped = [], 0
    for k in range(options.problems):
        kind, seed = options.kinds[k % len(options.kinds)], options.seed + k // len(options.kinds)
        problem = draw_problem(kind, seed)
        truth = integrate(problem)
        if truth is None:
            n_dropped += 1
            continue
        about = {"kind": kind, "seed": seed, "answers": len(problem.outcome)}
        about |= {"ties": int(problem.threshold > 0.0), "truth_error": truth.error}
        rows += [
            about | {"engine": each} | errors(problem, truth, each) for each in options.engines
        ]
    print(f"problems without a truth: {n_dropped}")
    table = list(summary(rows))
    if options.csv:
        report(rows, RESULTS / "random_groups.csv", quiet=True, dropped=n_dropped)
        report(table, RESULTS / "random_groups_summary.csv", dropped=n_dropped)
        return
    rows.sort(key=lambda row: -max(row[name] for name in QUANTITIES))
    for row in rows[:5] + table:
        print("  ".join(f"{v:.3g}" if isinstance(v, float) else f"{v}" for v in row.values()))


if __name__ == "__main__":
    main()
