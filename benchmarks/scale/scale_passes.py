"""Seconds that one pass over the answers takes, and its slope against their number.

    python benchmarks/scale/scale_passes.py [--largest 1000000] [--points 100 500]

The problem of ``scale.py`` with 2 000 items of ten features, nothing learned. A pass is an
iteration of `SVI`: every fit is stopped after 2 and after 10 of them, and a pass is an eighth of
the difference (processor time). The slope is that of log seconds against log answers, from one row
to the next: 1 where time is linear in the answers, less where what is done for the items counts.
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import SVI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _scale_problem import NOISE_VARIANCE, Problem
from common import RESULTS, report

PASSES = (2, 10)


def seconds_of(problem, answers, points, n_iter):
    """Processor seconds of a fit that is stopped after so many passes, and those it made."""
    model = PairwisePreferenceRegressor(
        RBF(1.0),
        inference=SVI(points, max_iter=n_iter, tol=1e-12),
        noise_variance=NOISE_VARIANCE,
        items=ItemTable(problem.items),
        optimizer=None,
        random_state=0,
    )
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*answers)
    return time.process_time() - began, model.n_iter_


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--points", type=int, nargs="+", default=[100, 500])
    options = parser.parse_args()
    rows = []
    for points in options.points:
        before = None
        for duels in (1000, 10_000, 100_000, 1_000_000):
            if duels > options.largest:
                continue
            problem = Problem(2000, 10)
            answers = problem.answers(duels)
            (few, n_few), (many, n_many) = (seconds_of(problem, answers, points, n) for n in PASSES)
            a_pass = (many - few) / (n_many - n_few)
            slope = "" if before is None else round(float(np.log10(a_pass / before)), 2)
            before = a_pass
            at = {"points": points, "duels": duels, "passes": n_many - n_few}
            rows.append(at | {"ms a pass": round(1e3 * a_pass, 2), "slope": slope})
            print(rows[-1], flush=True)
    report(rows, RESULTS / "scale_passes.csv")


if __name__ == "__main__":
    main()
