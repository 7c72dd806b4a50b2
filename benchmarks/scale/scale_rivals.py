"""One row of ``scale.py`` by another package, in a Python of its own without skpref.

    RIVAL_PYTHON benchmarks/scale/scale_rivals.py '{"method": "xgboost", "duels": 1000, ...}'

``scale.py --rival-python RIVAL_PYTHON`` calls it so; its last line is the row in JSON. Methods:

- ``gppl``: UKPLab's GPPL (Simpson and Gurevych 2018), its product of Matern-3/2 with the true
  lengthscale (or, "median", those of its own heuristic) and the prior of its example on the inverse
  scale, gamma (2, 200), which it learns; all else as it comes. Its modules are imported from the
  folder in the environment variable GPPL (``python/models`` of its repository).
- ``xgboost``: ``XGBRanker(objective="rank:pairwise")``, every duel a group of two, all else as it
  comes; the probability is the logistic function of the difference of scores, which its loss is of.
- ``choix``: Bradley-Terry, which sees no features, by ``choix.ilsr_pairwise(alpha=0.01)``.
"""

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _scale_problem import SEEN, Problem
from common import needs


def gppl(problem, setting):
    """Probabilities of the test pairs, seconds."""
    from gp_pref_learning import GPPrefLearning

    np.random.seed(0)  # noqa: NPY002 - the code draws from the global generator
    pairs, y = problem.answers(setting["duels"])
    median = setting["hyperparameters"] == "median"
    true = np.where(np.arange(problem.items.shape[1]) < SEEN, 1.0, 1e3)
    began = time.process_time()
    model = GPPrefLearning(
        ninput_features=problem.items.shape[1],
        ls_initial=None if median else true.tolist(),
        shape_s0=2.0,
        rate_s0=200.0,
        ninducing=setting["points"],
    )
    model.n_threads = 1
    told = pairs[:, 0], pairs[:, 1], problem.items, y.astype(float)
    model.fit(*told, optimize=False, use_median_ls=median)
    seconds = time.process_time() - began
    used, position = np.unique(problem.test, return_inverse=True)
    first, second = position.reshape(-1, 2).T
    chance = model.predict(problem.items[used], first, second, return_var=False)
    return np.ravel(chance), seconds


def xgboost(problem, setting):
    """Probabilities of the test pairs, seconds."""
    from xgboost import XGBRanker

    pairs, y = problem.answers(setting["duels"])
    began = time.process_time()
    ranker = XGBRanker(objective="rank:pairwise", n_jobs=1, random_state=0)
    rows = problem.items.astype(np.float32)
    won = np.column_stack([y, ~y]).astype(np.int32)
    ranker.fit(rows[pairs.ravel()], won.ravel(), qid=np.repeat(np.arange(len(pairs)), 2))
    seconds = time.process_time() - began
    score = ranker.predict(rows)
    return _logistic(score, problem.test), seconds


def choix(problem, setting):
    """Probabilities of the test pairs, seconds."""
    import choix

    pairs, y = problem.answers(setting["duels"])
    began = time.process_time()
    told = np.where(y[:, None], pairs, pairs[:, ::-1]).tolist()
    score = choix.ilsr_pairwise(len(problem.items), told, alpha=0.01)
    return _logistic(score, problem.test), time.process_time() - began


def _logistic(score, pairs):
    margin = score[pairs[:, 0]] - score[pairs[:, 1]]
    return 1.0 / (1.0 + np.exp(-np.clip(margin, -500.0, 500.0)))


# What runs a method, and the package that it needs.
METHODS = {
    "gppl": (gppl, "gp_pref_learning"),
    "xgboost": (xgboost, "xgboost"),
    "choix": (choix, "choix"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting", type=json.loads, help="JSON")
    setting = parser.parse_args().setting
    sys.path.insert(0, os.environ.get("GPPL", "."))
    work, package = METHODS[setting["method"]]
    needs(package)
    problem = Problem(setting["items"], setting["features"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    chance, seconds = work(problem, setting)
    accuracy, log_loss = problem.scores(chance)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "seconds": round(seconds, 3),
                "peak MiB": round(peak / 1024),
                "of it data MiB": round(before / 1024),
                "accuracy": round(accuracy, 4),
                "log-loss": round(log_loss, 4),
                "with noise": round(log_loss, 4),
                "note": "",
            }
        )
    )


if __name__ == "__main__":
    main()
