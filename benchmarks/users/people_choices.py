"""Choices among four by people with tastes of their own: what does a taste a person add?

Utilities are linear in four attributes. The slopes of a person are those of all, with a deviation
of half their size. "alike" has slopes for all alone, as conditional logit; "own" adds those of each
person, as mixed logit, whose features are integrated out person by person. Log-losses are of
further choices: of the same people, and of people who were not asked. Half a minute of one core:

    python benchmarks/users/people_choices.py [--people 30 100 300] [--choices 10]
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

from skpref import PairwisePreferenceRegressor
from skpref.kernels import Identity, Linear, OnColumns

SHARED = np.array([1.0, -1.0, 0.5, -0.5])


def choices(rng, people, n_choices, slopes):
    """Sets of (person, attributes), and the places that were chosen."""
    person = np.repeat(people, n_choices)
    attributes = rng.normal(size=(len(person), 4, 4))
    seen = np.einsum("ska,sa->sk", attributes, slopes[person])
    chosen = (seen + rng.normal(size=seen.shape)).argmax(axis=1)
    column = np.broadcast_to(person[:, None, None].astype(float), (len(person), 4, 1))
    return np.concatenate([column, attributes], axis=2), chosen


def log_loss(model, X, chosen):
    """Mean negative log-probability of what was chosen."""
    return -np.log(model.predict_proba(X)[np.arange(len(X)), chosen]).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--people", type=int, nargs="+", default=[30, 100, 300])
    parser.add_argument("--choices", type=int, default=10)
    options = parser.parse_args()
    attributes = [1, 2, 3, 4]
    tastes, own = (OnColumns(Linear([1.0] * 4, (1e-3, 1e2)), attributes) for _ in range(2))
    kernels = {"alike": tastes, "own": tastes + OnColumns(Identity(), [0]) * own}
    rows = []
    for n_people in options.people:
        rng = np.random.default_rng(n_people)
        slopes = SHARED + rng.normal(scale=0.5 * np.abs(SHARED), size=(2 * n_people, 4))
        asked, others = np.arange(n_people), np.arange(n_people, 2 * n_people)
        X, chosen = choices(rng, asked, options.choices, slopes)
        known, new = choices(rng, asked, 5, slopes), choices(rng, others, 5, slopes)
        for name, kernel in kernels.items():
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = PairwisePreferenceRegressor(kernel).fit(X, chosen)
            rows.append(
                {
                    "people": n_people,
                    "choices": len(X),
                    "kernel": name,
                    "log_loss_known": log_loss(model, *known),
                    "log_loss_new": log_loss(model, *new),
                    "seconds": time.process_time() - begin,
                }
            )
    report(rows, RESULTS / "people_choices.csv")


if __name__ == "__main__":
    main()
