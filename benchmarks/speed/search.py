"""Searches for hyperparameters from four far starts, and a slow search: do they end together?

    python benchmarks/speed/search.py --sizes 1000 10000 100000

Every kind of answer in every context is simulated with noise far from where a search starts. Each
start has other noise, threshold, order effect and lengthscales; the kernel is the default one with
its priors, moved. The log posterior (log evidence plus log prior) of where each of them ends is
taken by one and the same objective; "behind" is by how many nats an end is below the best of all
ends, the slow search's among them. That one is L-BFGS-B on the hyperparameters as they are, in
small steps, from the best end and from the first start. "warned" says of how many ends a warning
told. "log-loss" is of 2 000 answers held out, at the worst and at the best end. The objective is
that of the default start: with its inducing points, where there are some, with its part of the
answers, where a part teaches, and of a stream with its sample after the last piece. With judges,
who learn by turns with the hyperparameters, the evidence where each search ends is compared.
Seconds are of processor time, of one default search. The table has the rows of several runs; "slow
search" says which had one (without: ``--no-slow``).
"""

import argparse
import itertools
import os
import sys
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple
from unittest import mock

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.fitting import _settings
from skpref.inference import SVI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

HELD_OUT = 2000
# Noise variance, threshold, order effect, and what lengthscales and amplitudes are multiplied by.
STARTS = (
    (1e-2, 0.1, 0.0, 1.0),
    (1.0, 1.0, 0.3, 0.2),
    (1e-3, 2.0, 1.0, 5.0),
    (8.0, 0.02, -1.0, 1.0),
)
# Noise deviation, thresholds of ties and of large wins, and order effect of the judge who answers.
SIGMA, DELTA, LARGE, ORDER = 1.0, 0.7, 1.8, 0.4


class Problem(NamedTuple):
    """Answers to learn from and answers held out, and how to fit them."""

    X: np.ndarray
    y: np.ndarray
    test_X: np.ndarray
    test_y: np.ndarray
    options: dict
    fit: dict
    predict: dict
    of_users: bool = False
    pieces: int = 0


def simulated(kind, context, n, seed=0):
    """A problem of this kind of answer in this context."""
    rng = np.random.default_rng(seed)
    total = n + HELD_OUT
    features, named = _items(context, total, rng)
    utility = _utility(features, named, rng)
    n_items, size = len(utility), 4 if kind in ("choices", "rankings") else 2
    if context == "distinct":
        shown = np.arange(total * size).reshape(total, size)
    else:
        shown = np.argsort(rng.random((total, min(n_items, 60))), axis=1)[:, :size]
        if n_items > 60:
            shown = (shown + rng.integers(n_items, size=(total, 1))) % n_items
    seen = utility[shown] + SIGMA * rng.normal(size=shown.shape)
    ordered, tied = "order" in kind or kind == "choices", "ties" in kind
    if context == "judges":
        who = rng.integers(max(20, n // 500), size=total)
        reliability = np.exp(0.4 * rng.normal(size=who.max() + 1))
        reliability[::10] = 0.0
        seen = utility[shown] * reliability[who][:, None] + SIGMA * rng.normal(size=shown.shape)
    if context == "users":
        who = rng.integers(max(20, n // 100), size=total)
        tastes = 0.5 * rng.normal(size=(who.max() + 1, n_items))
        seen = seen + np.take_along_axis(tastes[who], shown, axis=1)
    if ordered:
        seen[:, 0] += ORDER
    options = {}
    if kind == "choices":
        y = seen.argmax(axis=1)
    elif kind == "rankings":
        y = np.argsort(np.argsort(-seen, axis=1), axis=1) + 1
    else:
        margin = seen[:, 0] - seen[:, 1]
        y = (margin > 0.0).astype(int)
        if tied:
            y = np.where(np.abs(margin) < DELTA, 0, np.sign(margin)).astype(int)
            options["tie_threshold"] = 0.1
        if "grades" in kind:
            y = y * (1 + (np.abs(margin) > LARGE))
            options["grade_thresholds"] = [0.5]
    if ordered:
        options["order_effect_bounds"] = (-5.0, 5.0)
    fit, predict = {}, {}
    if context in ("judges", "users"):
        fit, predict = {context: who[:n]}, {context: who[n:]}
    X = shown
    if named:
        options["items"] = ItemTable.from_names([f"item {k}" for k in range(n_items)])
    elif context == "distinct":
        X = features[shown]
    else:
        options["items"] = ItemTable(features)
        if context == "ids":
            options["id_column"] = features.shape[1] - 1
    if context in ("points", "stream"):
        options |= {"inference": SVI(50), "random_state": 0}
    return Problem(
        X[:n],
        y[:n],
        X[n:],
        y[n:],
        options,
        fit,
        predict,
        context == "users",
        10 if context == "stream" else 0,
    )


def _items(context, total, rng):
    """Features of the items, and whether their names alone are known."""
    if context in ("names", "judges", "users"):
        return np.zeros((60, 0)), True
    n = {"distinct": 4 * total, "points": 1000, "stream": 1000}.get(context, 150)
    features = rng.random((n, 4))
    if context == "ids":
        features = np.column_stack([features, np.arange(n)])
    return features, False


def _utility(features, named, rng):
    if named:
        return 0.6 * rng.normal(size=len(features))
    frequencies = rng.normal(size=(200, 4)) / np.array([0.4, 0.8, 1.5, 5.0])
    phases = rng.uniform(0.0, 2.0 * np.pi, 200)
    waves = np.zeros(len(features))
    for frequency, phase, weight in zip(frequencies, phases, rng.normal(size=200), strict=True):
        waves += weight * np.cos(features[:, :4] @ frequency + phase)
    own = 0.2 * rng.normal(size=len(features)) if features.shape[1] == 5 else 0.0
    return waves * np.sqrt(2.0 / 200) + own


def estimator(problem, **further):
    """An estimator with the options of a problem."""
    kind = CollaborativePreferenceRegressor if problem.of_users else PairwisePreferenceRegressor
    return kind(**{**problem.options, **further})


def fitted(problem, kernel=None, **further):
    """Fitted, and how many warnings of the search there were.

    ``kernel`` takes the place of the default one, whose priors stay.
    """
    model = estimator(problem, **further)
    moved = nullcontext()
    if kernel is not None:
        moved = mock.patch.object(_settings, "default_kernel", lambda *_: clone(kernel))
    with moved, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if problem.pieces:
            for part in np.array_split(np.arange(len(problem.y)), problem.pieces):
                model.partial_fit(problem.X[part], problem.y[part])
        else:
            model.fit(problem.X, problem.y, **problem.fit)
    return model, sum(issubclass(each.category, ConvergenceWarning) for each in told)


def began(problem, model, start):
    """The kernel and the options of a far start: that of a model fitted before, moved."""
    noise, threshold, order, times = start
    options = {"noise_variance": noise}
    if "tie_threshold" in problem.options:
        options["tie_threshold"] = threshold
    if "grade_thresholds" in problem.options:
        options["grade_thresholds"] = [3.0 * threshold]
    if "order_effect_bounds" in problem.options:
        options["order_effect"] = order
    kernel = model.kernel_
    if len(kernel.theta):
        signs = np.where(np.arange(len(kernel.theta)) % 2, -1.0, 1.0)
        theta = kernel.theta + signs * np.log(times)
        kernel = kernel.clone_with_theta(np.clip(theta, *kernel.bounds.T))
    return kernel, options


def theta_of(model):
    """All hyperparameters, as a search has them."""
    tastes = [np.log(model.taste_variance_)] if hasattr(model, "taste_variance_") else []
    return np.concatenate([model.kernel_.theta, tastes, model.likelihood_.theta])


def log_loss(model, problem):
    """Of the answers held out."""
    if problem.test_y.ndim == 2:
        return np.nan
    chances = model.predict_proba(problem.test_X, **problem.predict)
    column = np.searchsorted(model.classes_, problem.test_y)
    return float(-np.mean(np.log(chances[np.arange(len(column)), column])))


def compared(problem, ends, first, slow):
    """Log posterior of every end, and the best of them and of slow searches."""
    found = {}

    def everything(obj_func, initial_theta, bounds):
        values = [-obj_func(theta, eval_gradient=False) for theta in ends]
        best = ends[int(np.argmax(values))], max(values)
        for begin in (best[0], initial_theta) if slow else ():
            searched = minimize(
                obj_func,
                np.clip(begin, *bounds.T),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"ftol": 1e-14, "gtol": 1e-6, "maxiter": 400, "maxls": 40, "maxcor": 20},
            )
            if -searched.fun > best[1]:
                best = searched.x, -float(searched.fun)
        found.update(values=values, best=best[1])
        return best[0], -best[1]

    fitted(problem, first.kernel_, optimizer=everything)
    return found["values"], found["best"]


def row_of(kind, context, n, slow):
    """A row of the table."""
    problem = simulated(kind, context, n)
    first, warned = fitted(problem)
    models, seconds = [], []
    for start in STARTS:
        begin = time.process_time()
        kernel, options = began(problem, first, start)
        model, told = fitted(problem, kernel, **options)
        seconds.append(time.process_time() - begin)
        models.append(model)
        warned += told
    if context == "judges":  # by turns with the judges' reliabilities
        slow, values = False, [each.log_marginal_likelihood_value_ for each in [first, *models]]
        best = max(values)
    else:
        ends = [theta_of(each) for each in [first, *models]]
        values, best = compared(problem, ends, first, slow)
    order = np.argsort(values)
    losses = [log_loss([first, *models][k], problem) for k in (order[0], order[-1])]
    noise = [each.noise_variance_ for each in [first, *models]]
    return {
        "answers": kind,
        "context": context,
        "n": n,
        "default behind": round(best - values[0], 4),
        "most behind": round(best - min(values), 4),
        "warned": warned,
        "least noise": float(min(noise)),
        "most noise": float(max(noise)),
        "log-loss worst": round(losses[0], 4),
        "log-loss best": round(losses[1], 4),
        "seconds": round(float(np.median(seconds)), 2),
        "slow search": "yes" if slow else "no",
    }


CASES = (
    *itertools.product(
        ("duels", "duels with order", "ties", "ties with order", "choices", "rankings"),
        ("names", "features"),
    ),
    ("grades and ties with order", "names"),
    ("grades and ties with order", "features"),
    ("duels", "distinct"),
    ("ties with order", "distinct"),
    ("choices", "distinct"),
    ("duels", "ids"),
    ("ties with order", "ids"),
    ("choices", "ids"),
    ("rankings", "ids"),
    ("duels", "points"),
    ("ties with order", "points"),
    ("duels", "stream"),
    ("ties with order", "stream"),
    ("duels", "judges"),
    ("ties with order", "judges"),
    ("duels", "users"),
    ("ties with order", "users"),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--only", nargs="*", default=None, help="contexts")
    parser.add_argument("--kinds", nargs="*", default=None, help="kinds of answers")
    parser.add_argument("--no-slow", action="store_true", help="without the slow search")
    parser.add_argument("--out", type=Path, default=RESULTS / "search.csv")
    options = parser.parse_args()
    rows = []
    for n, (kind, context) in itertools.product(options.sizes, CASES):
        if options.only and context not in options.only:
            continue
        if options.kinds and kind not in options.kinds:
            continue
        rows.append(row_of(kind, context, n, not options.no_slow))
        print(rows[-1], flush=True)
        report(rows, options.out, quiet=True)
    report(rows, options.out)


if __name__ == "__main__":
    main()
