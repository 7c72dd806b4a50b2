"""How far the engines are from the exact answer on small problems with answers of every kind.

500 problems of one to six answers (duels, ties, choices of the best or worst, rankings, whole and
partial; with and without threshold and order effect; half of them contradictory) about a few items,
σ² log-uniform in 1e-3 … 1. Predictions are the probabilities of every outcome of new duels and of
being the best of three; the truth is a ratio of box probabilities. ``gaussian`` is what one normal
with the exact mean and variance (of HMC's draws) predicts for the duels: no approximation by a
normal can be expected to be nearer. A second table has EP by kind of answer, one kind at a time.

    python benchmarks/posterior/orthants.py [--problems 500] [--draws 16000] [--jobs 2]

About an hour of processor time.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT, report

sys.path.insert(0, str(ROOT / "tests"))
from answers_oracle import PATTERNS, answers_problem, answers_truth
from answers_support import predicted

from skpref.inference import EP, HMC

# Integration is done again with more points, by powers of two, where its standard error is above
# this.
_EXACT = 7e-4
_POINTS = (11, 13, 15)
BANDS = ((1e-3, 1e-2), (1e-2, 1e-1), (1e-1, 1.0))
KIND_NOISES = (0.1, 0.3, 1.0)
KIND_ANSWERS = (1, 3, 6)


def truth(problem):
    """The exact values, as near as they can be had in seconds."""
    for log_2_points in _POINTS:
        found = answers_truth(problem, log_2_points=log_2_points)
        if max(np.max(found.outcomes_error), np.max(found.choices_error)) < _EXACT:
            break
    return found


def farthest(found, exact):
    return float(max(_off(found.outcomes, exact.outcomes), _off(found.choices, exact.choices)))


def _off(one, other):
    return np.max(np.abs(one - other))


def of_problem(seed, draws):
    """Errors on one random problem."""
    warnings.simplefilter("ignore")
    problem = answers_problem(seed)
    exact = truth(problem)
    ep = predicted(EP(), problem)
    hmc = predicted(HMC(draws=draws), problem)
    posterior = hmc.fitted.posterior
    moments = posterior.margin(problem.first, problem.second)
    gaussian = posterior.likelihood.outcome_proba(*moments, problem.order)
    return {
        "seed": seed,
        "noise_variance": problem.noise_variance,
        "tie_threshold": problem.tie_threshold,
        "order_effect": problem.order_effect,
        "answers": "; ".join(answer.kind for answer in problem.answers),
        "hmc": farthest(hmc, exact),
        "ep": farthest(ep, exact),
        "ep_outcomes": float(_off(ep.outcomes, exact.outcomes)),
        "gaussian_outcomes": float(_off(gaussian, exact.outcomes)),
        "ep_log_evidence": abs(ep.fitted.log_evidence - exact.log_evidence),
        "ep_converged": ep.fitted.evaluation.approximation.converged,
        "oracle": float(max(np.max(exact.outcomes_error), np.max(exact.choices_error))),
        "oracle_log_evidence": float(exact.log_evidence_error),
    }


def of_kind(kind, n_answers, noise_variance, n_problems):
    """EP's largest errors on problems of one kind of answer."""
    warnings.simplefilter("ignore")
    off, evidence = [], []
    for seed in range(n_problems):
        problem = answers_problem(10_000 + seed, [kind], noise_variance, n_answers)
        exact, ep = truth(problem), predicted(EP(), problem)
        off.append(farthest(ep, exact))
        evidence.append(ep.fitted.log_evidence - exact.log_evidence)
    return {
        "kind": kind,
        "n_answers": n_answers,
        "noise_variance": noise_variance,
        "max_ep": max(off),
        "mean_ep": float(np.mean(off)),
        "max_ep_log_evidence": float(np.max(np.abs(evidence))),
        "mean_ep_log_evidence": float(np.mean(evidence)),
    }


def summary(rows):
    """Largest errors and quantiles by noise."""
    found = []
    for low, high in BANDS:
        within = [row for row in rows if low <= row["noise_variance"] <= high]
        if not within:
            continue
        for name in (
            "hmc", "ep", "ep_outcomes", "gaussian_outcomes", "ep_log_evidence",
            "oracle", "oracle_log_evidence",
        ):  # fmt: skip
            values = np.array([row[name] for row in within])
            found.append(
                {
                    "noise_variance": f"{low:g} to {high:g}",
                    "error": name,
                    "problems": len(values),
                    "median": float(np.median(values)),
                    "q90": float(np.quantile(values, 0.9)),
                    "q99": float(np.quantile(values, 0.99)),
                    "max": float(values.max()),
                    "above_.01": int((values > 0.01).sum()),
                    "above_.02": int((values > 0.02).sum()),
                    "above_.05": int((values > 0.05).sum()),
                }
            )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--draws", type=int, default=16000)
    parser.add_argument("--of-kind", type=int, default=6, help="problems of each kind; 0: none")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    parallel = Parallel(options.jobs, verbose=1)
    rows = parallel(delayed(of_problem)(seed, options.draws) for seed in range(options.problems))
    about = {"problems": options.problems, "draws": options.draws}
    report(rows, RESULTS / "orthants_problems.csv", **about)
    report(summary(rows), RESULTS / "orthants.csv", **about)
    if options.of_kind:
        cases = [(k, n, v) for k in PATTERNS for n in KIND_ANSWERS for v in KIND_NOISES]
        rows = parallel(delayed(of_kind)(*case, options.of_kind) for case in cases)
        report(rows, RESULTS / "orthants_kinds.csv", problems=options.of_kind)


if __name__ == "__main__":
    main()
