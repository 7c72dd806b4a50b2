"""What inducing points cost in accuracy: SVI beside EP where EP is feasible.

    python benchmarks/learning/sparse_quality.py --points 200

Published duels of gp4 and hart6 (the first 500 and 2 000, noise-free test duels), with fixed
hyperparameters (RBF of lengthscale 0.5, the true noise) and learned ones (a lengthscale a feature);
and splits of real duels, learned, whose test answers people gave. The log-loss is of P(f(a) > f(b))
and, "with noise", of `predict_proba`; "gap" is that of SVI less that of EP, of the former on the
published duels and of the latter on real ones. Rows that the CSV holds already are kept. Seconds
are of processor time.
"""

import argparse
import csv
import os
import sys
import time
from itertools import product
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, SVI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _real_data_sets import tasks
from common import RESULTS, few, load_problem, report, unless_missing

KEYS = ("problem", "duels", "noise variance", "hyperparameters", "points")


def log_loss(chance, y):
    """Mean of −log of the probability of what came."""
    right = np.where(np.asarray(y) > 0, chance, 1.0 - chance)
    return float(-np.mean(np.log(np.clip(right, 1e-12, 1.0))))


def losses(model, train, y_train, test, y_test):
    """Log-losses of a fit without and with noise, and its seconds."""
    began = time.process_time()
    model.fit(train, y_train)
    seconds = time.process_time() - began
    free = model.posterior_.win_probability(test[:, 0], test[:, 1], noise=False)
    noisy = model.predict_proba(test)[:, 1]
    return log_loss(free, y_test), log_loss(noisy, y_test), seconds


def compared(setting, splits, make):
    """A row: means over splits for both engines; ``make`` builds the model of one."""
    found = {}
    for name, engine in (("EP", EP()), ("SVI", SVI(setting["points"]))):
        each = [losses(make(engine), *split) for split in splits]
        found[name] = np.mean(each, axis=0)
    of_people = setting["noise variance"] == ""
    row = dict(setting)
    for k, what in enumerate(("log-loss", "with noise", "seconds")):
        row |= {f"{name} {what}": round(float(found[name][k]), 4) for name in found}
    gap = found["SVI"] - found["EP"]
    return row | {"gap": round(float(gap[1 if of_people else 0]), 4)}


def published(setting):
    """A row of the published duels."""
    n, noise_variance = setting["duels"], setting["noise variance"]
    problem = load_problem(setting["problem"], noise_variance, n)
    train = np.stack([problem["W"], problem["L"]], axis=1)
    test = np.stack([problem["test_a"], problem["test_b"]], axis=1)
    learned = setting["hyperparameters"] == "learned"

    def make(engine):
        return PairwisePreferenceRegressor(
            RBF(np.full(train.shape[2], 0.5)) if learned else RBF(0.5),
            inference=engine,
            noise_variance=1e-2 if learned else noise_variance,
            optimizer="fmin_l_bfgs_b" if learned else None,
            n_learning_answers=None if isinstance(engine, EP) else "auto",
            random_state=0,
        )

    return compared(setting, [(train, np.ones(n), test, problem["test_y"])], make)


def real(setting, task, n_splits):
    """A row of real duels."""
    splits = []
    for split in task.make(n_splits):
        table = (split.table - split.table.mean(axis=0)) / np.maximum(split.table.std(axis=0), 1e-9)
        splits.append((table[split.train], split.y_train, table[split.test], split.y_test))

    def make(engine):
        return PairwisePreferenceRegressor(inference=engine, random_state=0)

    return compared(setting | {"duels": len(splits[0][1])}, splits, make)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, nargs="+", default=[200])
    parser.add_argument("--splits", type=int, default=1, help="splits of real duels")
    parser.add_argument("--out", type=Path, default=RESULTS / "sparse_quality.csv")
    options = parser.parse_args()
    done, rows = {}, []
    if options.out.exists():
        with options.out.open(newline="") as stream:
            done = {tuple(row[key] for key in KEYS): row for row in csv.DictReader(stream)}
    hyperparameters = ("fixed", "learned")
    for points in options.points:
        each = product(hyperparameters, few((500, 2000), (30,)), ("gp4", "hart6"), (1e-4, 1e-2))
        for how, n, name, noise_variance in each:
            setting = dict(zip(KEYS, (name, n, noise_variance, how, points), strict=True))
            row = done.get(tuple(str(setting[key]) for key in KEYS))
            rows.append(published(setting) if row is None else row)
            report(rows, options.out)
        for task in few(tasks(), tasks()[2:3]):
            setting = dict(zip(KEYS, (task.name, "", "", "learned", points), strict=True))
            found = [done[key] for key in done if (key[0], key[-1]) == (task.name, str(points))]
            arguments = task.name, real, setting, task, options.splits
            row = found[0] if found else unless_missing(*arguments)
            if row is not None:
                rows.append(row)
                report(rows, options.out)


if __name__ == "__main__":
    main()
