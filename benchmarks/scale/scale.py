"""How far sparse variational inference reaches: seconds, memory, accuracy, log-loss.

    python benchmarks/scale/scale.py [--largest 10000000] [--parts small d300 large huge]
        [--method svi ...] [--points 100 ...] [--rival-python PYTHON] [--limit 300]

The problem: items uniform in the unit cube, a utility of random Fourier features of the first ten
(lengthscale 1), noise variance 0.01, 5 000 noise-free test pairs. Every row is a process of its
own, so that its peak memory is its own; rows that the CSV holds already are kept, so that a run
that was cut short goes on. Seconds are of processor time, of one core, of the fit alone. The
log-loss is of P(f(a) > f(b)); "with noise" is that of `predict_proba`, to which a model counts what
it cannot explain (other packages have one probability only). A row that takes more than ``--limit``
seconds of processor time is ended, and says so.

- ``svi``: ``PairwisePreferenceRegressor(kernel, inference=SVI(points))``. "true": the RBF and noise
  that made the answers, nothing learned. "median": a product of Matern-3/2 with
  `median_lengthscales`, nothing learned, the noise true. "learned": an RBF with a lengthscale a
  feature, which start there, and the noise, by EP's evidence on a part of the answers.
- ``ekf``, ``ekf scale``: the same with ``SVI(points, local="ekf")``, without and with a gamma prior
  (2, 2) on the inverse output scale.
- ``ep``: expectation propagation, of all items.
- ``stream``: answers in pieces of 100 000 to ``partial_fit``, generated as they are needed.
- ``logistic``: logistic regression on differences of features.
- ``gppl``, ``xgboost``, ``choix``: see ``scale_rivals.py``; run by ``--rival-python``.

``scale_figures.py`` draws, ``scale_passes.py`` measures what one pass over the answers takes.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import SVI
from skpref.kernels import ProductMatern, median_lengthscales

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _scale_problem import NOISE_VARIANCE, SEEN, Problem
from common import RESULTS, leave, report, sources

PIECE = 100_000
ENGINES = {
    "svi": SVI,
    "stream": SVI,
    "ekf": partial(SVI, local="ekf"),
    "ekf scale": partial(SVI, local="ekf", scale_prior=(2.0, 2.0)),
}
KEYS = ("method", "duels", "items", "features", "points", "hyperparameters")
RIVALS = ("gppl", "xgboost", "choix")
# A lengthscale at which a feature of the unit cube says nothing.
_FLAT = 1e3


def kernel_of(how, items):
    """The kernel that a row starts from."""
    if how == "true":
        return RBF(np.where(np.arange(items.shape[1]) < SEEN, 1.0, _FLAT))
    lengthscales = median_lengthscales(items)
    return ProductMatern(lengthscales) if how == "median" else RBF(lengthscales)


def model_of(problem, setting):
    """The estimator of a row."""
    learned, method = setting["hyperparameters"] == "learned", setting["method"]
    return PairwisePreferenceRegressor(
        kernel_of(setting["hyperparameters"], problem.items),
        inference=ENGINES[method](setting["points"]) if method in ENGINES else method,
        noise_variance=NOISE_VARIANCE,
        items=ItemTable(problem.items),
        optimizer="fmin_l_bfgs_b" if learned else None,
        random_state=0,
    )


def gaussian_process(problem, setting):
    """Probabilities of the test pairs without and with noise, seconds."""
    model, seconds, left = model_of(problem, setting), 0.0, setting["duels"]
    piece, step = (PIECE, "partial_fit") if setting["method"] == "stream" else (left, "fit")
    while left:
        answers = problem.answers(min(left, piece))
        began = time.process_time()
        getattr(model, step)(*answers)
        seconds += time.process_time() - began
        left -= len(answers[1])
    a, b = problem.items[problem.test[:, 0]], problem.items[problem.test[:, 1]]
    return [model.posterior_.win_probability(a, b, noise=noise) for noise in (False, True)], seconds


def logistic(problem, setting):
    """The same by logistic regression on differences of features."""
    pairs, y = problem.answers(setting["duels"])
    began = time.process_time()
    X = problem.items[pairs[:, 0]] - problem.items[pairs[:, 1]]
    model = LogisticRegression(fit_intercept=False).fit(X, y)
    seconds = time.process_time() - began
    test = problem.items[problem.test[:, 0]] - problem.items[problem.test[:, 1]]
    return [model.predict_proba(test)[:, 1]] * 2, seconds


def measured(setting):
    """What a row has beside its setting."""
    problem = Problem(setting["items"], setting["features"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = logistic if setting["method"] == "logistic" else gaussian_process
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        chances, seconds = run(problem, setting)
    (accuracy, log_loss), (_, noisy) = map(problem.scores, chances)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": round(seconds, 3),
        "peak MiB": round(peak / 1024),
        "of it data MiB": round(before / 1024),
        "accuracy": round(accuracy, 4),
        "log-loss": round(log_loss, 4),
        "with noise": round(noisy, 4),
        "note": " | ".join(sorted({str(one.message).partition(". ")[0] for one in warned})),
        "sources": sources(),
    }


# --- rows of the table -----------------------------------------------------------------------


def some(method, duels, items, features, points=(0,), how=("",)):
    """Settings that differ in points and hyperparameters."""
    for m in points:
        for one in how:
            values = (method, duels, items, features, m, one)
            yield dict(zip(KEYS, values, strict=True))


def small():
    """2 000 items of ten features."""
    for duels in (100, 1000, 10_000, 100_000):
        at = duels, 2000, 10
        for method in ("logistic", "xgboost", "choix"):
            yield from some(method, *at)
        yield from some("svi", *at, (100, 500, 1000), ("true",))
        yield from some("svi", *at, (100, 500), ("median", "learned"))
        yield from some("ep", *at, (0,), ("true",))
        if duels in (1000, 10_000):
            for method in ("ekf", "ekf scale"):
                yield from some(method, *at, (100,), ("true",))
        if duels <= 10_000:
            yield from some("gppl", *at, (100,), ("true",))
        if duels <= 1000:
            yield from some("gppl", *at, (500,), ("true",))


def d300():
    """2 000 items of 300 features, of which 290 are noise."""
    for duels in (1000, 10_000, 100_000):
        at = duels, 2000, 300
        yield from some("logistic", *at)
        yield from some("svi", *at, (100, 500), ("true",))
        yield from some("svi", *at, (100,), ("median", "learned"))
        if duels <= 10_000:
            yield from some("xgboost", *at)
        if duels == 1000:
            yield from some("gppl", *at, (100,), ("true",))


def large():
    """A million and more."""
    million, many = 1_000_000, 100_000
    yield from some("svi", million, many, 10, (100, 500), ("true",))
    yield from some("logistic", million, many, 10)
    yield from some("svi", million, many, 10, (100,), ("learned",))
    yield from some("stream", million, many, 10, (100,), ("true",))
    yield from some("svi", million, 2000, 10, (100, 500), ("true",))
    yield from some("xgboost", million, many, 10)
    yield from some("logistic", million, many, 300)
    yield from some("svi", million, many, 300, (100,), ("true",))


def huge():
    """The longest rows."""
    million, many = 1_000_000, 100_000
    for items in (2000, many):
        yield from some("stream", 10 * million, items, 10, (100,), ("true",))
    yield from some("svi", million, many, 10, (1000,), ("true",))


PARTS = {"small": small, "d300": d300, "large": large, "huge": huge}


def kept(path):
    """Rows that the CSV holds, by their setting."""
    if not path.exists():
        return {}
    with path.open(newline="") as stream:
        return {tuple(row[key] for key in KEYS): row for row in csv.DictReader(stream)}


def limited(seconds):
    """End this process after so many seconds of processor time."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


def row_of(setting, options):
    """One row, by a process of its own."""
    ended = setting | {"note": f"ended after {options.limit} s"}
    if setting["method"] not in RIVALS:
        alone = ProcessPoolExecutor(1, get_context("fork"), limited, (options.limit,))
        with alone as child:
            try:
                return setting | child.submit(measured, setting).result()
            except BrokenProcessPool:
                return ended
    script = Path(__file__).with_name("scale_rivals.py")
    child = subprocess.run(
        [options.rival_python, str(script), json.dumps(setting)],
        preexec_fn=lambda: limited(options.limit),
        capture_output=True,
        text=True,
    )
    if child.returncode < 0:
        return ended
    if child.returncode:
        raise RuntimeError(f"{setting}:\n{child.stderr[-2000:]}")
    last = child.stdout.strip().splitlines()[-1]
    if not last.startswith("{"):
        leave(last)
    return setting | json.loads(last)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=10_000_000, help="duels at most")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    for name in KEYS:
        kind = str if name in ("method", "hyperparameters") else int
        parser.add_argument(f"--{name}", nargs="+", type=kind, help="rows of these alone")
    parser.add_argument("--rival-python", help="a Python with the packages of scale_rivals.py")
    parser.add_argument("--limit", type=int, default=300, help="seconds of a row")
    parser.add_argument("--fresh", action="store_true", help="measure also what the CSV has")
    parser.add_argument("--out", type=Path, default=RESULTS / "scale.csv")
    options = parser.parse_args()
    rows = kept(options.out)
    for setting in (one for part in options.parts for one in PARTS[part]()):
        key = tuple(str(setting[name]) for name in KEYS)
        asked = {name: getattr(options, name) for name in KEYS}
        wanted = all(not only or setting[name] in only for name, only in asked.items())
        wanted &= setting["duels"] <= options.largest
        wanted &= setting["method"] not in RIVALS or options.rival_python is not None
        if wanted and (options.fresh or key not in rows):
            rows[key] = row_of(setting, options)
            report(ordered(rows.values()), options.out, quiet=True)
            print(*rows[key].values(), flush=True)
    report(ordered(rows.values()), options.out)


def ordered(rows):
    """By size, then by method."""
    return sorted(rows, key=lambda row: [int(row[k]) for k in ("features", "duels", "items")])


if __name__ == "__main__":
    main()
