"""Answers of every kind on real data: ties, order effects, rankings taken jointly.

    python benchmarks/learning/answers.py [--tasks llm football sushi] [--methods ep davidson ...]
        [--splits N] [--people 5 20 50] [--sets a b] [--jobs 1] [--table]

**Ties.** Language-model duels (three outcomes), split at random and by prompt, and ten years of
international football, split by time. Methods:

- ``ep``, ``laplace``: ``PairwisePreferenceRegressor(items=ItemTable.from_names(names),
  tie_threshold=0.1, order_effect_bounds=(-1, 1))``, all else as it comes.
- ``ep in prompts``: of language models the same, an item being a model on a prompt: its utility is
  the model's plus a item effect on that prompt, ``OnColumns(Identity(), [0]) + c *
  OnColumns(Identity(), [0, 1])``, c learned.
- ``davidson``, ``rao-kupper``, ``probit``: Bradley-Terry models with ties and order effect by
  maximum likelihood with a ridge, ``_tied_bradley_terry.py``.
- ``multinomial``: scikit-learn's multinomial logistic regression on signed indicators of the items
  and the order.
- ``shares``: the share of each outcome, for each order apart.

Ridge and C are those of the least held-out log-loss within the training part, which is split
as the whole is (folds; prompts; the last year). The rival of ``ep`` is the best of these five on
the test answers (chosen with hindsight, in its favour).

**Rankings.** Rankings of ten sushi by a few people; judged by the choices of all other people
from three and from four of their ten. Methods:

- ``joint``: ``PairwisePreferenceRegressor(items=...)`` fitted on the rankings as they are.
- ``all pairs``, ``adjacent``: the same on the rankings broken into 45 or 9 duels each.
- ``plackett-luce``: by maximum likelihood with a ridge, ``_plackett_luce.py``.

The rival of ``joint`` is the best of the other three. As in ``real_data.py`` a method wins where
its log-loss is below its rival's, ties where it is above by at most max(1 % of the rival's, one
standard error), else loses.

Scores: log-loss in nats; accuracy of the likeliest; Brier (sum over outcomes); ``ece``: distance
between the probability of the likeliest and the share of times it came, averaged over ten bins;
``slope``: the power of the probabilities that has the least log-loss, below 1 where they are too
sure. Every finished split is appended to ``results/answers.csv``: run again, what is there is
skipped; ``--fresh`` runs it anew. From it come the means over splits (of the slope the median),
``answers_summary.csv``, and the reliability of all splits together, ``answers_calibration.csv``.
The whole takes five minutes on one idle core.
"""

import argparse
import csv
import os
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_array, hstack
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.linear_model import LogisticRegression

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.duels import balance_orientation
from skpref.kernels import Identity, OnColumns

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import _plackett_luce
import _tied_bradley_terry as bradley_terry
from _answers_scores import pooled, reliability, scores, verdict
from _answers_sets import TIED, sushi
from common import RESULTS, Table, leave, report, sources, unless_missing

RIVALS = ("davidson", "rao-kupper", "probit", "multinomial", "shares")
ON_TIES = ("ep", "ep in prompts", "laplace", *RIVALS)
ON_RANKINGS = ("joint", "all pairs", "adjacent", "plackett-luce")
PENALTIES = np.logspace(-3, 2, 11)  # C of the multinomial model
KEYS = ("task", "split", "method")
MEANS = ("train", "test", "log-loss", "accuracy", "brier", "ece", "seconds")


# --- ties: probabilities (n, 3) of the outcomes -1, 0, 1, and what was chosen ----------------


def skpref_proba(split, inference):
    """The package's regressor on named items."""
    model = PairwisePreferenceRegressor(
        items=ItemTable.from_names(split.names),
        inference=inference,
        tie_threshold=0.1,
        order_effect_bounds=(-1.0, 1.0),
    )
    model.fit(split.train.pairs, split.train.y, order=split.train.order)
    proba = model.predict_proba(split.test.pairs, order=split.test.order)
    likelihood = model.likelihood_
    return proba, (
        f"noise {likelihood.noise_variance:.3g} threshold {likelihood.tie_threshold:.3g} "
        f"order {likelihood.order_effect:.3g}"
    )


def in_prompts_proba(split):
    """The same on items that are a model on a prompt."""
    n_prompts = 1 + max(int(where.max()) for where in split.where)
    items = np.indices((len(split.names), n_prompts)).reshape(2, -1).T.astype(np.float64)
    own = OnColumns(Identity(), [0])
    model = PairwisePreferenceRegressor(
        own + ConstantKernel(0.1, (1e-4, 10.0)) * OnColumns(Identity(), [0, 1]),
        items=items,
        tie_threshold=0.1,
        order_effect_bounds=(-1.0, 1.0),
    )
    train, test = (
        matches.pairs * n_prompts + where[:, None]
        for matches, where in zip((split.train, split.test), split.where, strict=True)
    )
    model.fit(train, split.train.y, order=split.train.order)
    proba = model.predict_proba(test, order=split.test.order)
    return proba, f"share {model.kernel_.k2.k1.constant_value:.3g}"


def bradley_terry_proba(split, link):
    n_items = len(split.names)
    theta, ridge = bradley_terry.fit_by_validation(link, split.train, n_items, split.inner)
    proba = bradley_terry.predict(link, theta, split.test.pairs, split.test.order)
    return proba, f"ridge {ridge:.3g} order {theta[-2]:.3g} threshold {np.exp(theta[-1]):.3g}"


def multinomial_proba(split):
    def features(matches):
        signs = bradley_terry.incidence(matches.pairs, len(split.names))
        # Large, so that the penalty hardly touches its coefficient.
        order = csr_array(5.0 * matches.order[:, None])
        return hstack([signs, order], "csr")

    def fitted(C, rows=slice(None)):
        model = LogisticRegression(C=C, max_iter=5000, tol=1e-5)
        return model.fit(X[rows], split.train.y[rows])

    def held_out(C):
        proba = [fitted(C, rows).predict_proba(X[judged]) for rows, judged in split.inner]
        judged = np.concatenate([judged for _, judged in split.inner])
        return bradley_terry.log_loss(split.train.y[judged], np.concatenate(proba))

    X = features(split.train)
    best = min(PENALTIES, key=held_out)
    return fitted(best).predict_proba(features(split.test)), f"C {best:.3g}"


def shares_proba(split):
    proba = np.empty((len(split.test.y), 3))
    for order in np.unique(split.test.order):
        seen = split.train.y[split.train.order == order]
        proba[split.test.order == order] = np.bincount(seen + 1, minlength=3) / len(seen)
    return proba, ""


def outcome_proba(split, method):
    if method in bradley_terry.LINKS:
        return bradley_terry_proba(split, method)
    if method == "ep in prompts":
        return in_prompts_proba(split)
    if method == "multinomial":
        return multinomial_proba(split)
    return shares_proba(split) if method == "shares" else skpref_proba(split, method)


# --- rankings: a function from sets shown (n, k) to probabilities (n, k) of the best ---------


def broken(rankings, adjacent):
    """Duels of rankings: all pairs, or neighbours only."""
    better, worse = np.triu_indices(rankings.shape[1], k=1)
    if adjacent:
        better, worse = better[worse == better + 1], worse[worse == better + 1]
    return balance_orientation(
        np.stack([rankings[:, better], rankings[:, worse]], axis=-1).reshape(-1, 2)
    )


def joint(rankings):
    """Sets (n, k) in the order of the table, so that places say nothing, and their ranks."""
    return np.sort(rankings, axis=1), np.argsort(rankings, axis=1) + 1


def ranking_model(split, method):
    if method == "plackett-luce":
        strengths, ridge = _plackett_luce.fit_by_validation(
            split.train, len(split.table), split.inner
        )
        return lambda shown: _plackett_luce.choice_proba(strengths, shown), f"ridge {ridge:.3g}"
    if method == "joint":
        answers = joint(split.train)
    else:
        answers = broken(split.train, adjacent=method == "adjacent")
    model = PairwisePreferenceRegressor(items=split.table).fit(*answers)
    return model.predict_proba, f"noise {model.noise_variance_:.3g}"


# --- running ---------------------------------------------------------------------------------


def splits_of(*arguments, **options):
    """The splits of `sushi`."""
    return list(sushi(*arguments, **options))


def units(options):
    """Name of a task, of a split, the split and the methods for it, one task after the other."""
    for task, make in TIED.items():
        if any(word in task for word in options.tasks):
            for name, split in make(**options.n_splits):
                yield (
                    task,
                    name,
                    split,
                    [
                        m
                        for m in ON_TIES
                        if m in options.methods and (split.where or m != "ep in prompts")
                    ],
                )
    for subset in options.sets if "sushi" in options.tasks else ():
        for n_people in options.people:
            task = f"sushi {subset}, {n_people} people"
            found = unless_missing(task, splits_of, subset, n_people, **options.n_splits)
            for name, split in found or ():
                yield task, name, split, [m for m in ON_RANKINGS if m in options.methods]


def run(split, method):
    """Rows of scores, one a size of sets; what is warned of is noted in the row."""
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if method in ON_TIES:
            proba, chosen = outcome_proba(split, method)
            found = {"": (split.test.y + 1, proba)}
        else:
            predict, chosen = ranking_model(split, method)
            found = {k: (best, predict(shown)) for k, (shown, best) in split.test.items()}
    seconds = time.perf_counter() - begin
    n_train = len(split.train.y) if method in ON_TIES else len(split.train)
    return [
        {"shown": k, "train": n_train, "test": len(true)}
        | scores(true, proba)
        | {"seconds": seconds, "chosen": chosen, "sources": sources()}
        | {"bins": reliability(true, proba)}
        | {"warned": " | ".join(sorted({str(one.message) for one in warned}))}
        for k, (true, proba) in found.items()
    ]


def jobs(options, table):
    """What is still to be done: names of a unit, and its split."""
    for task, name, split, methods in () if options.table else units(options):
        wanted = [(task, name, method) for method in methods]
        for unit in wanted if options.fresh else table.missing(wanted):
            yield unit, split


def _run(unit, split):
    return unit, run(split, unit[-1])


def summary(rows):
    """Means over splits (of the slope the median), pooled reliability, verdicts."""
    tasks = {}
    for row in rows:
        by_method = tasks.setdefault((row["task"], row["shown"]), {})
        by_method.setdefault(row["method"], []).append(row)
    lines, bins, verdicts = [], [], []
    for (task, shown), by_method in tasks.items():
        methods = [m for m in (*ON_TIES, *ON_RANKINGS) if m in by_method]
        for method in methods:
            found = by_method[method]
            named = {"task": task, "shown": shown, "method": method, "splits": len(found)}
            means = {key: float(np.mean([row[key] for row in found])) for key in MEANS}
            slope = float(np.median([row["slope"] for row in found]))  # it may be at its bound
            lines.append(named | means | {"slope": slope})
            bins += [named | line for line in pooled([row["bins"] for row in found])]
        own, rivals = (ON_TIES[:2], RIVALS) if "shares" in by_method else (("joint",), ON_RANKINGS)
        rivals = [m for m in rivals if m in by_method and m not in own]
        for ours in own if rivals else ():
            if ours not in by_method:
                continue
            losses = {m: {r["split"]: r["log-loss"] for r in by_method[m]} for m in (ours, *rivals)}
            name = f"{task}, best of {shown:g}" if shown else task
            verdicts.append({"task": name} | verdict(losses, ours, rivals))
    return lines, bins, verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    every = (*ON_TIES, *ON_RANKINGS)
    parser.add_argument("--tasks", nargs="+", default=["llm", "football", "sushi"])
    parser.add_argument("--methods", nargs="+", choices=every, default=every)
    parser.add_argument("--splits", type=int, help="at most so many splits of each task")
    parser.add_argument("--people", nargs="+", type=int, default=[5, 20, 50])
    parser.add_argument("--sets", nargs="+", choices=("a", "b"), default=["a", "b"])
    parser.add_argument("--jobs", type=int, default=1, help="processes (slows what is timed)")
    parser.add_argument("--fresh", action="store_true", help="run also what the file has")
    parser.add_argument("--table", action="store_true", help="print the file's figures only")
    options = parser.parse_args()
    options.n_splits = {} if options.splits is None else {"n_splits": options.splits}

    table = Table(RESULTS / "answers.csv", KEYS)
    parallel = Parallel(options.jobs, return_as="generator_unordered")
    for unit, found in parallel(delayed(_run)(*job) for job in jobs(options, table)):
        table.add([dict(zip(KEYS, unit, strict=True)) | row for row in found])
        print(*unit, *(f"{row['log-loss']:.4f}" for row in found), flush=True)
    if not table.rows():
        leave("nothing has been run yet")
    last = {tuple(row[key] for key in (*KEYS, "shown")): row for row in table.rows()}
    lines, bins, verdicts = summary(last.values())
    with (RESULTS / "answers_calibration.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(bins[0]))
        writer.writeheader()
        writer.writerows(bins)
    report(lines, RESULTS / "answers_summary.csv", verdicts=verdicts)
    for word in verdicts:
        print(
            "{task}: {method} {verdict} against {rival}, log-loss differs by {difference:+.4f} "
            "(se {standard error:.4f}, margin {margin:.4f})".format(**word)
        )


if __name__ == "__main__":
    main()
