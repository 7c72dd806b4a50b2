"""How far EP and Laplace are from the exact answer on small problems, by noise variance.

200 problems of one to six duels (repeated and contradictory ones among them) under six kernels
of unit amplitude; the truth is a ratio of orthant probabilities. Largest and mean absolute
errors of the probability of winning a duel and of the log evidence. Run:
``python benchmarks/posterior/truth_small.py [--problems 200]``; about two minutes.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT, report

sys.path.insert(0, str(ROOT / "tests"))
from core_support import solve_small
from oracles import duel_truth, small_problem

from skpref.inference import EP, Laplace

NOISES = (1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)


def errors(engine, problems, truths, noise_variance):
    """Largest and mean absolute errors, and how many runs did not converge."""
    probability, evidence, failed = [], [], 0
    for small, truth in zip(problems, truths, strict=True):
        found = solve_small(engine, small, noise_variance)
        won = found.posterior.win_probability(small.first, small.second)
        probability.append(np.abs(won - truth.probability))
        evidence.append(abs(found.log_evidence - truth.log_evidence))
        failed += not found.approximation.converged
    return {
        "max_probability": float(np.max(probability)),
        "mean_probability": float(np.mean(probability)),
        "max_log_evidence": float(np.max(evidence)),
        "mean_log_evidence": float(np.mean(evidence)),
        "not_converged": failed,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=200)
    options = parser.parse_args()
    problems = [small_problem(seed) for seed in range(options.problems)]
    rows = []
    for noise_variance in NOISES:
        accuracy = {} if noise_variance > 0.05 else {"repeats": 8, "log_2_points": 14}
        truths = [duel_truth(small, noise_variance, **accuracy) for small in problems]
        oracle = {
            "oracle_probability": float(max(np.max(t.probability_error) for t in truths)),
            "oracle_log_evidence": float(max(t.log_evidence_error for t in truths)),
        }
        for engine in (EP(), Laplace()):
            row = {"noise_variance": noise_variance, "engine": type(engine).__name__}
            rows.append(row | errors(engine, problems, truths, noise_variance) | oracle)
    report(rows, RESULTS / "truth_small.csv", problems=options.problems)


if __name__ == "__main__":
    main()
