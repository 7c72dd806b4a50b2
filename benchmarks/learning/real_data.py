"""Real duels: the default regressor against what a scikit-learn user would try instead.

Methods, all on the same features, standardised by ``Itemwise(StandardScaler())`` fitted on the
training items, and on the same training duels:

- ``ep``: ``PairwisePreferenceRegressor()``, nothing set; ``laplace``: the same by Laplace.
- ``logistic``: scikit-learn's LogisticRegressionCV on feature differences without intercept, the
  penalty chosen by five folds of log-loss. Without intercept the loss of a duel is that of the
  duel with its items swapped, so the fit is symmetric as it is.
- ``gpc``: scikit-learn's GaussianProcessClassifier (Laplace, its own search) with
  ``PreferenceKernel(ConstantKernel() * RBF())``, one lengthscale for all features.
- ``bradley-terry``: ``logistic`` on one-hot items, where test items are known from training.

Verdict on the log-loss of a task, averaged over its splits. The rival is the best of ``logistic``,
``gpc`` and ``bradley-terry`` on the test duels (chosen with hindsight, in its favour). The
difference is that of ``ep`` minus the rival; its standard error is that of the mean of the paired
differences over splits. ``wins``: difference below 0. ``ties``: difference at most
``margin`` = max(1 % of the rival's log-loss, one standard error). ``loses``: otherwise.

    python benchmarks/learning/real_data.py            # five minutes on one idle core
    python benchmarks/learning/real_data.py --quick    # smoke test
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skpref import PairwisePreferenceRegressor
from skpref.kernels import PreferenceKernel
from skpref.metrics import answer_accuracy, answer_brier, answer_log_loss
from skpref.preprocessing import Itemwise

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _real_data_sets import tasks
from common import RESULTS, report

RIVALS = ("logistic", "gpc", "bradley-terry")
METHODS = ("ep", "laplace", *RIVALS)
# Splits where one person is a split: each is tiny, so there are many of them.
SPLITS_BY_PERSON = 20


def _logistic(train, y, test):
    """P(first wins) of test rows by a penalised logistic regression without intercept."""
    model = LogisticRegressionCV(
        Cs=np.logspace(-4, 3, 15),
        cv=5,
        scoring="neg_log_loss",
        fit_intercept=False,
        max_iter=2000,
        use_legacy_attributes=False,
    )
    return model.fit(train, y).predict_proba(test)[:, 1]


def logistic(train, y, test):
    """Linear utility of the features."""
    return _logistic(train[:, 0] - train[:, 1], y, test[:, 0] - test[:, 1])


def gpc(train, y, test):
    """scikit-learn's Gaussian-process classifier on rows of both items' features."""
    start = np.sqrt(train.shape[2])
    # Wider bounds or a smaller amplitude let the search end at a useless short lengthscale.
    kernel = ConstantKernel(10.0, (1e-3, 1e4)) * RBF(start, (0.1 * start, 1e3 * start))
    kernel += WhiteKernel(1e-6, "fixed")  # without it, equal features give NaN, not one half
    model = GaussianProcessClassifier(PreferenceKernel(kernel)).fit(train.reshape(len(y), -1), y)
    return model.predict_proba(test.reshape(len(test), -1))[:, 1]


def skpref_by(inference):
    """The package's regressor, nothing else set."""

    def predict(train, y, test):
        model = PairwisePreferenceRegressor(inference=inference)
        return model.fit(train, y).predict_proba(test)[:, 1]

    return predict


ON_FEATURES = {
    "ep": skpref_by("ep"),
    "laplace": skpref_by("laplace"),
    "logistic": logistic,
    "gpc": gpc,
}


def bradley_terry(split):
    """Strengths of the items themselves; a new item has that of the average."""
    one_hot = np.eye(len(split.table))
    train, test = (one_hot[a] - one_hot[b] for a, b in (split.train.T, split.test.T))
    return _logistic(train, split.y_train, test)


def evaluate(split, method):
    """Scores of a method on a split; seconds are those of fitting and predicting."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        if method == "bradley-terry":
            proba = bradley_terry(split)
        else:
            scaler = Itemwise(StandardScaler()).fit(split.table[split.train])
            train, test = (scaler.transform(split.table[p]) for p in (split.train, split.test))
            proba = ON_FEATURES[method](train, split.y_train, test)
        seconds = time.perf_counter() - start
    scores = (answer_accuracy, answer_log_loss, answer_brier)
    return [*(score(split.y_test, proba) for score in scores), seconds]


def verdict(task, losses):
    """How ``ep`` fares against the best rival; ``losses``: method -> log-loss of each split."""
    best = min((m for m in RIVALS if m in losses), key=lambda m: np.mean(losses[m]))
    paired = np.array(losses["ep"]) - losses[best]
    difference = float(paired.mean())
    error = float(paired.std(ddof=1) / np.sqrt(len(paired))) if len(paired) > 1 else 0.0
    margin = max(0.01 * float(np.mean(losses[best])), error)
    word = "wins" if difference < 0.0 else "ties" if difference <= margin else "loses"
    return {
        "task": task,
        "ep": word,
        "best rival": best,
        "difference": difference,
        "standard error": error,
        "margin": margin,
    }


def run(task, splits, n_jobs):
    """Rows of the table for a task, one a method, and its verdict."""
    methods = [m for m in METHODS if m != "bradley-terry" or task.same_items]
    jobs = [(method, split) for method in methods for split in splits]
    found = Parallel(n_jobs)(delayed(evaluate)(split, method) for method, split in jobs)
    found = np.reshape(found, (len(methods), len(splits), 4))
    sizes = {
        "items": len(splits[0].table),
        "features": splits[0].table.shape[1],
        "train": round(np.mean([len(split.train) for split in splits])),
        "test": round(np.mean([len(split.test) for split in splits])),
    }
    rows = []
    for method, values in zip(methods, found, strict=True):
        accuracy, log_loss, brier, seconds = map(float, values.mean(axis=0))
        rows.append(
            {
                "task": task.name,
                "split": f"{len(splits)} × {task.about}",
                **sizes,
                "method": method,
                "accuracy": accuracy,
                "log-loss": log_loss,
                "brier": brier,
                "seconds": seconds,
            }
        )
    losses = dict(zip(methods, found[:, :, 1].tolist(), strict=True))
    return rows, verdict(task.name, losses)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=5, help="splits of a task (default 5)")
    parser.add_argument("--only", nargs="+", metavar="TASK", help="names of tasks, in part")
    parser.add_argument("--quick", action="store_true", help="one split of 100 training duels")
    parser.add_argument("--jobs", type=int, default=1, help="processes (slows what is timed)")
    options = parser.parse_args()
    rows, verdicts, skipped = [], [], {}
    for task in tasks():
        if options.only and not any(part in task.name for part in options.only):
            continue
        n_splits = SPLITS_BY_PERSON if "by person" in task.name else options.splits
        try:
            splits = list(task.make(1 if options.quick else n_splits))
        except OSError as error:
            skipped[task.name] = str(error)
            print(f"skipped {task.name}: {error}")
            continue
        if options.quick:
            splits = [s._replace(train=s.train[:100], y_train=s.y_train[:100]) for s in splits]
        found, word = run(task, splits, options.jobs)
        rows, verdicts = rows + found, [*verdicts, word]
        print(f"{task.name}: done", flush=True)
    kept = sum(word["ep"] != "loses" for word in verdicts)
    share = f"ep wins or ties in {kept} of {len(verdicts)} tasks ({kept / len(verdicts):.0%})"
    name = "real_data_quick.csv" if options.quick else "real_data.csv"
    report(rows, RESULTS / name, verdicts=verdicts, share=share, skipped=skipped)
    for word in verdicts:
        print(
            f"{word['task']}: ep {word['ep']} against {word['best rival']}, log-loss differs by "
            f"{word['difference']:+.4f} (se {word['standard error']:.4f}, margin "
            f"{word['margin']:.4f})"
        )
    print(share)


if __name__ == "__main__":
    main()
