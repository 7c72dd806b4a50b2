"""Calibration of stopping: of runs that stop 95 % sure within a share of the range, how many are.

    python benchmarks/optimize/stopping.py --set held-out [--methods believer EUBO] [--groups draw]
        [--most-dimensions 4] [--seeds 0 1] [--answers 80] [--noise 0.05] [--jobs 2] [--table]
        [--sure 0.8 --results stopping_80.csv]

A unit of work is a (set, problem, method, noise, seed): one run of ``--answers`` duels at most,
begun with the optimizer's own design. After each answer it is asked whether
``run(until=0.95, within=...)`` (``--sure``: another probability) would stop there, within 5, 2 and
1 % of the range, the larger one first: the smaller ones are only asked for once the larger one has
stopped. Of each the answer at which the run stops is noted, and the true regret of what is
recommended then, in shares of the range. A judge with noise compares utilities plus normal noise,
whose deviation is that share of the range.

Beside the problems of ``_generated_problems.py`` there are two groups of small ones, of which many
runs take little: "line", draws of Gaussian processes over one number, and "shortlist", draws over
60 items of two features. Finished units are appended to ``results/stopping.csv``; those that it has
are skipped. ``--table`` runs nothing. The table is also written to ``results/stopping.json``, with
the share of stopped runs that are right and its Clopper-Pearson interval.
"""

import argparse
import csv
import json
import os
import sys
import time
from functools import cache, cached_property
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy; workers inherit it
    os.environ[variable] = "1"

import joblib
import numpy as np
from scipy.stats import beta

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _generated_methods import METHODS
from _generated_problems import SETS, Problem, _of_draw, make_problems
from common import RESULTS, versions
from regret import append_row

UNIT = ("set", "problem", "method", "noise", "seed")
COLUMNS = (*UNIT, "group", "dimensions", "answers", "within", "stopped", "regret", "check_seconds")
WITHIN = (0.05, 0.02, 0.01)
GROUPS = ("draw", "function", "mixed", "pool", "line", "shortlist")


class Line(Problem):
    """A draw over one number; its optimum is that of a fine grid."""

    @cached_property
    def _searched(self):
        rows = np.linspace(0.0, 1.0, 4001)[:, None]
        values = self.utility(rows)
        best = int(np.argmax(values))
        return float(values[best]), rows[best], float(np.ptp(values))


def small_problems(which, n=200):
    """Problems over one number and over 60 items, n of each."""
    rng = np.random.default_rng([7, SETS[which], 1])
    kinds = ("rbf", "matern52", "matern32", "sum")
    for k in range(n):
        utility = _of_draw(rng, 1, kinds[k % 4], 0.2, 0.8)
        yield Line(f"line {k} {kinds[k % 4]}", "line", 1, utility)
        pool, utility = rng.random((60, 2)), _of_draw(rng, 2, kinds[k % 4], 0.15, 0.6)
        yield Problem(f"shortlist {k} {kinds[k % 4]}", "shortlist", 2, utility, pool=pool)


def run(which, problem, method, noise, seed, n_answers, sure):
    """One unit of work: a row for each share of the range."""
    made = METHODS[method]
    optimizer = made.build(problem, seed)
    rng = np.random.default_rng([seed, 1])
    left, stops, seconds = list(WITHIN), {}, []

    def judge(*items):
        values = problem.values(items)
        values = values + noise * problem.range * rng.standard_normal(len(values))
        return int(values[0] > values[1]) if len(items) == 2 else int(np.argmax(values))

    def looked_at(optimizer):
        begin = time.process_time()
        while left and optimizer._session.is_close_enough(sure, left[0]):
            stops[left.pop(0)] = (optimizer.n_told_, problem.regret(optimizer.recommend()))
        seconds.append(time.process_time() - begin)
        return not left

    form = {"kind": "duel"} if made.size == 2 and made.kind is None else made.form
    optimizer.run(judge, n_answers, looked_at, **form)
    end = problem.regret(optimizer.recommend())
    row = {"set": which, "problem": problem.name, "method": method, "noise": noise, "seed": seed}
    row |= {"group": problem.group, "dimensions": problem.n_dimensions, "answers": n_answers}
    text = " ".join(f"{value:.4f}" for value in seconds)
    for within in WITHIN:
        stopped, regret = stops.get(within, (-1, end))
        found = {"within": within, "stopped": stopped, "regret": f"{regret:.4g}"}
        yield row | found | {"check_seconds": text if within == WITHIN[0] else ""}


def read(path):
    """Rows of a file."""
    if not path.is_file():
        return []
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    numbers = ("noise", "within", "stopped", "regret", "dimensions", "seed", "answers")
    return [{**row, **{name: float(row[name]) for name in numbers}} for row in rows]


def interval(right, n, level=0.95):
    """Clopper and Pearson's interval of a share."""
    tail = 0.5 * (1.0 - level)
    low = beta.ppf(tail, right, n - right + 1) if right else 0.0
    return float(low), float(beta.ppf(1.0 - tail, right + 1, n - right)) if right < n else 1.0


def table(rows):
    """Lines of figures: for all problems, each group, method and noise."""
    lines = []
    slices = [("all", lambda row: True)]
    for key in ("group", "method", "noise"):
        for value in sorted({row[key] for row in rows}, key=str):
            slices.append((f"{key} {value}", lambda row, key=key, value=value: row[key] == value))
    for name, taken in slices:
        for within in (*WITHIN, "any"):
            some = [row for row in rows if taken(row) and within in (row["within"], "any")]
            stopped = [row for row in some if row["stopped"] > 0]
            right = sum(row["regret"] <= row["within"] for row in stopped)
            line = {"of": name, "within": within, "runs": len(some), "stopped": len(stopped)}
            if stopped:
                low, high = interval(right, len(stopped))
                n_answers = np.quantile([row["stopped"] for row in stopped], [0.25, 0.5, 0.75])
                line |= {"right": right, "share": right / len(stopped), "low": low, "high": high}
                line |= {"answers": n_answers.tolist()}
            others = [row for row in some if row["stopped"] < 0]
            line |= {"right_unstopped": sum(row["regret"] <= row["within"] for row in others)}
            lines.append(line)
    return lines


def show(lines):
    """Print the figures."""
    print(f"{'':22}within   runs stopped  right  share (95 % interval)  answers to stop")
    for line in lines:
        text = f"{line['of']:22}{line['within']!s:>6} {line['runs']:6} {line['stopped']:7}"
        if line["stopped"]:
            low, middle, high = line["answers"]
            text += f" {line['right']:6}  {line['share']:.3f} ({line['low']:.3f}, "
            text += f"{line['high']:.3f})    {middle:.0f} ({low:.0f} to {high:.0f})"
        print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS, default="development", dest="which")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["believer"])
    parser.add_argument("--groups", nargs="+", choices=GROUPS)
    parser.add_argument("--most-dimensions", type=int, default=11)
    parser.add_argument("--most", type=int, help="number of problems")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--answers", type=int, default=80)
    parser.add_argument("--noise", type=float, default=0.0, help="of a utility, share of its range")
    parser.add_argument("--sure", type=float, default=0.95, help="the probability to stop at")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print the file's figures only")
    parser.add_argument("--results", type=Path, default=RESULTS / "stopping.csv")
    options = parser.parse_args()
    if not options.table:
        rows = read(options.results)
        done = {tuple(row[name] for name in UNIT) for row in rows}
        names = [
            each.name
            for each in problems_of(options.which).values()
            if (options.groups is None or each.group in options.groups)
            and (each.pool is not None or each.n_dimensions <= options.most_dimensions)
        ][: options.most]
        units = [
            (options.which, name, method, options.noise, seed)
            for name in names
            for method in options.methods
            for seed in options.seeds
            if (options.which, name, method, options.noise, float(seed)) not in done
        ]
        print(f"{len(units)} units to run", flush=True)
        parallel = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")
        tasks = (joblib.delayed(run_named)(*unit, options.answers, options.sure) for unit in units)
        for found in parallel(tasks):
            for row in found:
                append_row(options.results, row, COLUMNS)
            text = "  ".join(f"{row['stopped']} {row['regret']}" for row in found)
            print(found[0]["problem"], found[0]["method"], found[0]["seed"], text, flush=True)
    rows = [row for row in read(options.results) if row["set"] == options.which]
    lines = table(rows)
    show(lines)
    if options.which == "held-out":
        path = options.results.with_suffix(".json")
        path.write_text(json.dumps({"versions": versions(), "table": lines}, indent=1) + "\n")


@cache
def problems_of(which):
    """All problems of a set by their names; a worker searches each optimum once."""
    return {each.name: each for each in (*make_problems(which), *small_problems(which))}


def run_named(which, name, *others):
    """`run` of a problem by its name."""
    return list(run(which, problems_of(which)[name], *others))


if __name__ == "__main__":
    main()
