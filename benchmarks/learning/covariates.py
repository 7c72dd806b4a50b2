"""Covariates must not hurt: the default with them against names alone, on small real sets.

Methods, on the same training contests and the same test contests among known items:

- ``names``: ``PairwisePreferenceRegressor(items=ItemTable.from_names(...))``, nothing but ids.
- ``ids``: ``PairwisePreferenceRegressor(id_column=0)``, ids and covariates: item effects, a linear
  part and an RBF, their variances learned under priors that draw the latter two to 0.
- ``unit RBF``: ids and covariates as the default had them before: an RBF of unit amplitude and item
  effects of a variance up to ten times as large, without priors on variances.
- ``linear``: ids and covariates, item effects and a linear part, without priors on variances.
- ``features``: ``PairwisePreferenceRegressor()`` on the covariates alone.

The covariates belong to the items, change from contest to contest, or say nothing (``noise``); see
``_covariates_sets.py``. Differences are of held-out log-losses to ``names``, with the standard
error over splits. ``beyond one error``: worse by more than that; of two equally good methods about
one in six is by chance. ``hurts``: worse by more than 1 % of the log-loss of names as well.

    python benchmarks/learning/covariates.py                  # about eight minutes of one idle core
    python benchmarks/learning/covariates.py --quick          # smoke test
    python benchmarks/learning/covariates.py --only football  # sets by a part of their name
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.kernels import Identity, Linear, OnColumns

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _covariates_sets import SETS, split
from common import RESULTS, report

METHODS = ("names", "ids", "unit RBF", "linear", "features")
N_TEST = 1000
# The first eight splits of every set were those by which the priors were chosen.
FIRST = 8


def rows(contests):
    """Ids and covariates of each side, the id first."""
    return np.concatenate([contests.ids[:, :, None].astype(np.float64), contests.values], axis=2)


def given_kernel(method, contests):
    """The kernel of ``unit RBF`` or ``linear``; None is the default."""
    if method not in ("unit RBF", "linear"):
        return None
    p = contests.values.shape[2]
    items = np.unique(rows(contests).reshape(-1, p + 1), axis=0)[:, 1:]
    spread = np.std(items, axis=0)
    length = np.sqrt(p) * np.where(spread > 0.0, spread, 1.0)
    others, own = list(range(1, p + 1)), OnColumns(Identity(), [0])
    if method == "linear":
        linear = OnColumns(Linear(length, centre=items.mean(axis=0)), others)
        return ConstantKernel(1.0) * own + ConstantKernel(0.1) * linear
    smooth = OnColumns(RBF(length, np.stack([length / 1e3, length * 1e3], axis=1)), others)
    return smooth + ConstantKernel(0.1, (1e-4, 10.0)) * own


def log_loss(method, train, test):
    """Held-out log-loss of a method, and the seconds of processor time of its fit."""
    options = {"tie_threshold": 0.3} if train.ties else {}
    began = time.process_time()
    if method == "names":
        n_items = 1 + max(train.ids.max(), test.ids.max())
        table = ItemTable.from_names([f"item {k:04d}" for k in range(n_items)])
        model = PairwisePreferenceRegressor(items=table, **options).fit(train.ids, train.y)
        proba = model.predict_proba(test.ids)
    elif method == "features":
        model = PairwisePreferenceRegressor(**options).fit(train.values, train.y)
        proba = model.predict_proba(test.values)
    else:
        kernel = given_kernel(method, train)
        model = PairwisePreferenceRegressor(kernel, id_column=0, **options)
        proba = model.fit(rows(train), train.y).predict_proba(rows(test))
    seconds = time.process_time() - began
    place = np.searchsorted(model.classes_, test.y)
    return -float(np.mean(np.log(proba[np.arange(len(place)), place]))), seconds


def run(name, n_splits, methods):
    """The rows of a set, one a method."""
    make, n_train, kind = SETS[name]
    found = []
    for seed in range(FIRST, FIRST + n_splits):
        train, test = split(make(seed), n_train, N_TEST, seed)
        found.append([log_loss(method, train, test) for method in methods])
    losses, seconds = np.array(found).transpose(2, 1, 0)
    lines = []
    for method, loss, took in zip(methods, losses, seconds, strict=True):
        apart = loss - losses[0]
        difference = float(apart.mean())
        error = float(apart.std(ddof=1) / np.sqrt(n_splits)) if n_splits > 1 else 0.0
        lines.append(
            {
                "set": name,
                "covariates": kind,
                "train": len(train.y),
                "items": len(np.unique(train.ids)),
                "columns": train.values.shape[2],
                "splits": n_splits,
                "method": method,
                "log-loss": float(loss.mean()),
                "- names": difference,
                "standard error": error,
                "hurts": difference > max(error, 0.01 * float(losses[0].mean())),
                "beyond one error": difference > error,
                "seconds": float(took.mean()),
            }
        )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=8, help="splits of a set (default 8)")
    parser.add_argument("--only", nargs="+", metavar="SET", help="names of sets, in part")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--quick", action="store_true", help="two splits of two sets")
    options = parser.parse_args()
    if options.quick:
        options.splits, options.only = 2, ["candy, 1", "gpt-4, left"]
    methods = ["names", *(m for m in options.methods if m != "names")]
    lines, skipped = [], {}
    for name in SETS:
        if options.only and not any(part in name for part in options.only):
            continue
        try:
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = run(name, options.splits, methods)
        except OSError as error:
            skipped[name] = str(error)
            print(f"skipped {name}: {error}")
            continue
        lines += found
        told = (f"{each['method']} {each['- names']:+.4f}" for each in found[1:])
        print(f"{name}: names {found[0]['log-loss']:.4f}, {', '.join(told)}", flush=True)
    verdicts = []
    for method in methods[1:]:
        mine = [line for line in lines if line["method"] == method]
        apart = [line["- names"] for line in mine]
        verdicts.append(
            {
                "method": method,
                "sets": len(mine),
                "beyond one error": sum(line["beyond one error"] for line in mine),
                "hurts": [line["set"] for line in mine if line["hurts"]],
                "mean difference": float(np.mean(apart)),
                "worst": max(mine, key=lambda line: line["- names"])["set"],
                "largest difference": float(np.max(apart)),
            }
        )
    whole = not (options.quick or options.only)
    report(
        lines,
        RESULTS / ("covariates.csv" if whole else "covariates_quick.csv"),
        verdicts=verdicts,
        skipped=skipped,
    )
    for verdict in verdicts:
        print(verdict)


if __name__ == "__main__":
    main()
