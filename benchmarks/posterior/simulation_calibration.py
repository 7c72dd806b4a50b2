"""Simulation-based calibration (Talts et al. 2018) of HMC on ties and on choices of three.

Utilities are drawn from the prior, answers from the model, with an order effect; the ranks of true
margins among posterior draws must be uniform: chi-square over twenty ranks.

    python benchmarks/posterior/simulation_calibration.py [--simulations 2000]
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.stats import chi2

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT, report

sys.path.insert(0, str(ROOT / "tests"))
from answers_support import RANKS, choices_of_three, duels_with_ties, ranks_of_truth


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--simulations", type=int, default=2000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, answer in (("ties", duels_with_ties), ("choices of 3", choices_of_three)):
        ranks = ranks_of_truth(answer, options.simulations)
        counts = np.bincount(ranks, minlength=RANKS)
        expected = len(ranks) / RANKS
        statistic = float(np.sum((counts - expected) ** 2 / expected))
        rows.append(
            {
                "answers": name,
                "ranks": len(ranks),
                "chi2": statistic,
                "p": float(chi2.sf(statistic, RANKS - 1)),
                "smallest": int(counts.min()),
                "expected": expected,
                "largest": int(counts.max()),
            }
        )
    report(rows, RESULTS / "simulation_calibration.csv", simulations=options.simulations)


if __name__ == "__main__":
    main()
