"""Regret of methods on generated problems: a development set, and a held-out one.

    python benchmarks/optimize/generated_regret.py --set held-out [--methods HB-EI default]
        [--groups draw] [--seeds 0 1 2] [--answers 60] [--wrong 0.1] [--jobs 2] [--table]
        [--against HB-EI]

A unit of work is a (set, problem, method, share of wrong answers, seed). All methods begin with
the same answers for a seed: 3 d duels of random items (sets of the method's size where it shows
more). Then ``--answers`` further ones are asked and told. After each the regret of the recommended
item is noted, in shares of the range of the utility; of a pool also its rank. At the end the
recommended item is climbed from: a run whose climb ends more than 1 % of the range below the
optimum is in a lesser optimum. Finished units are appended to ``results/generated_regret.csv``;
those that it has are skipped. ``--table`` runs nothing. ``--subset`` means the twelve held-out
problems of ``peer_regret.py --generated``; the table then shows the peers, too.

The table has, for each method, the median and quartiles of log10 regret, the mean rank among the
methods over (problem, seed), the pairs won and lost against ``--against`` with the mean difference
of log10 regret, its standard error over problems and the p-value of Wilcoxon's signed-rank test of
the problems' means. Then come the answers until the regret stays below 1 %, in the median of those
runs in which any of the methods of the table comes there. Problems and their optima:
``_generated_problems.py``.
"""

import argparse
import csv
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy; workers inherit it
    os.environ[variable] = "1"

import joblib
import numpy as np
from scipy.stats import rankdata, wilcoxon

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _generated_methods import METHODS
from _generated_problems import SETS, SUBSET, make_problems
from common import RESULTS
from regret import PEERS, append_row

UNIT = ("set", "problem", "method", "wrong", "seed")
COLUMNS = (*UNIT, "group", "dimensions", "answers", "regret", "rank", "lesser", "ask_seconds")
FLOOR = 1e-5
PEER_RESULTS = RESULTS / "generated_peers.csv"


def run(which, problem, method, wrong, seed, n_answers, made=None):
    """One unit of work; a method that is not of `METHODS` is given as such a one."""
    made = made or METHODS[method]
    rng = np.random.default_rng([seed, 1])
    optimizer = made.build(problem, seed)
    size, d = made.size, problem.n_dimensions

    def judge(items):
        values = problem.values(items)
        best = int(np.argmax(values))
        coin, other = rng.random(), int(rng.integers(len(items)))
        if coin < wrong:
            best = other if len(items) > 2 else 1 - best
        if len(items) == 2:
            return int(best == 0)
        worst = {"worst": int(np.argmin(values))} if made.worst else {}
        return {"chosen": best, **worst}

    start = np.random.default_rng([seed, 0])
    if not made.designs:
        for _ in range(3 * d):
            items = problem.random_items(start, size)
            optimizer.tell(items, judge(items))
    else:
        for _ in range(3 * d):
            items = optimizer.ask(**made.form)
            optimizer.tell(items, judge(items))
    regret, rank, seconds = [], [], []
    for _ in range(n_answers):
        begin = time.process_time()
        items = optimizer.ask(**made.form)
        seconds.append(time.process_time() - begin)
        optimizer.tell(items, judge(items))
        best = optimizer.recommend()
        regret.append(problem.regret(best))
        rank.append(problem.rank(best) if problem.pool is not None else -1)
    row = {"set": which, "problem": problem.name, "method": method, "wrong": wrong, "seed": seed}
    row |= {"group": problem.group, "dimensions": d, "answers": n_answers}
    row |= {"regret": " ".join(f"{value:.3g}" for value in regret), "rank": rank[-1]}
    row |= {"lesser": int(problem.is_lesser(best))}
    return row | {"ask_seconds": " ".join(f"{value:.2g}" for value in seconds)}


def read(path):
    """Finished units by their key."""
    found = {}
    if path.is_file():
        with path.open(newline="") as handle:
            for row in csv.DictReader(handle):
                key = (*(row[name] for name in UNIT[:3]), float(row["wrong"]), int(row["seed"]))
                found[key] = {
                    **row,
                    "regret": np.maximum(np.array(row["regret"].split(), dtype=float), FLOOR),
                    "ask_seconds": np.array(row["ask_seconds"].split(), dtype=float),
                }
    return found


def table(units, against, step):
    """Print a line a method, for all problems and for each group."""
    groups = ["all", *dict.fromkeys(each["group"] for each in units.values())]
    for group in groups:
        by_method = defaultdict(dict)
        for (which, problem, method, wrong, seed), each in units.items():
            if group in ("all", each["group"]) and len(each["regret"]) >= step:
                by_method[method][which, problem, wrong, seed] = each
        if not by_method:
            continue
        common = sorted(set.intersection(*(set(found) for found in by_method.values())))
        if not common:
            continue
        logs = {
            method: np.log10([found[key]["regret"][step - 1] for key in common])
            for method, found in by_method.items()
        }
        ranks = rankdata(np.array(list(logs.values())), axis=0).mean(axis=1)
        answers = {
            method: np.array([answers_to(found[key]["regret"][:step]) for key in common])
            for method, found in by_method.items()
        }
        came = np.min(list(answers.values()), axis=0) <= step
        print(
            f"\n{group}: {len(common)} runs, log10 regret after {step} answers; {came.sum()} runs "
            "came within 1 %"
        )
        heads = "lower median upper  rank   won:lost   difference       p    answers  lesser  ms"
        print(f"{'method':35} {heads}")
        for (method, found), rank in sorted(
            zip(by_method.items(), ranks, strict=True), key=lambda pair: pair[1]
        ):
            low, middle, high = np.quantile(logs[method], [0.25, 0.5, 0.75])
            text = ""
            if against in logs:
                gain = logs[method] - logs[against]
                by_problem = defaultdict(list)
                for key, value in zip(common, gain, strict=True):
                    by_problem[key[1]].append(value)
                means = np.array([np.mean(values) for values in by_problem.values()])
                error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
                won, lost = np.sum(gain < -1e-9), np.sum(gain > 1e-9)
                text = f"{won:5}:{lost:<5} {means.mean():+.2f} ± {error:.2f}"
                if means.any():
                    text += f"  {wilcoxon(means).pvalue:6.4f}"
            near = np.median(answers[method][came]) if came.any() else step + 1
            lesser = sum(int(found[key]["lesser"]) for key in common)
            crashes = sum(bool(found[key].get("crashed")) for key in common)
            note = f"  {crashes} crashed" if crashes else ""
            seconds = 1e3 * np.median(np.concatenate([found[key]["ask_seconds"] for key in common]))
            print(
                f"{method:35}{low:6.2f} {middle:6.2f}{high:6.2f} {rank:5.2f} {text:34}"
                f"{near:7.0f} {lesser:7} {seconds:5.0f}{note}"
            )


def answers_to(regret, within=0.01):
    """Answers until the regret stays below a share of the range; one more than all if never."""
    above = np.flatnonzero(regret > within)
    return (
        len(regret) + 1
        if len(above) and above[-1] == len(regret) - 1
        else (1 if not len(above) else int(above[-1]) + 2)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS, default="development", dest="which")
    parser.add_argument("--methods", nargs="+", choices=METHODS)
    parser.add_argument("--groups", nargs="+", choices=("draw", "function", "mixed", "pool"))
    parser.add_argument("--problems", nargs="+", help="names")
    parser.add_argument("--subset", action="store_true", help="held-out problems of the peers")
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--answers", type=int, default=60, help="after the 3 d first ones")
    parser.add_argument("--wrong", type=float, default=0.0, help="share of wrong answers")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print the file's figures only")
    parser.add_argument("--at", type=int, help="answers of the table (all)")
    parser.add_argument("--against", default="HB-EI", choices=METHODS)
    parser.add_argument("--results", type=Path, default=RESULTS / "generated_regret.csv")
    options = parser.parse_args()
    if options.subset:
        options.which, options.problems = "held-out", SUBSET

    def wanted(which, group, problem, method, wrong, seed):
        return (
            which == options.which
            and (options.groups is None or group in options.groups)
            and (options.problems is None or problem in options.problems)
            and (options.methods is None or method in (*options.methods, *PEERS))
            and wrong == options.wrong
            and (options.seeds is None or seed in options.seeds)
        )

    if not options.table:
        done = read(options.results)
        problems = [
            each
            for each in make_problems(options.which)
            if (options.groups is None or each.group in options.groups)
            and (options.problems is None or each.name in options.problems)
        ]
        units = [
            (problem, method, seed)
            for seed in options.seeds or range(2)
            for problem in problems
            for method in options.methods or ("HB-EI",)
            if (options.which, problem.name, method, options.wrong, seed) not in done
        ]
        print(f"{len(units)} units to run", flush=True)
        parallel = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")
        tasks = (
            joblib.delayed(run_named)(
                options.which, each.name, method, options.wrong, seed, options.answers
            )
            for each, method, seed in units
        )
        for row in parallel(tasks):
            append_row(options.results, row, COLUMNS)
            last = row["regret"].split()[-1]
            print(row["problem"], row["method"], row["seed"], last, row["lesser"], flush=True)
    peers = read(PEER_RESULTS) if options.subset else {}
    found = {
        key: each
        for key, each in (read(options.results) | peers).items()
        if wanted(key[0], each["group"], *key[1:])
    }
    if found:
        table(found, options.against, options.at or options.answers)


_made: dict = {}


def run_named(which, name, *others):
    """`run` of a problem by its name; a worker searches each problem's optimum once."""
    if which not in _made:
        _made[which] = {each.name: each for each in make_problems(which)}
    return run(which, _made[which][name], *others)


if __name__ == "__main__":
    main()
