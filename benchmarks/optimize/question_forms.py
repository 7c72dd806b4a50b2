"""Answers needed by form of question: regret, bits an answer and seconds a question.

    python benchmarks/optimize/question_forms.py [--functions branin hartmann-3 hartmann-6]
        [--forms duel best-of-4 line ...] [--seeds 0 1 2] [--answers 40] [--table]

The optimizer is `PreferenceOptimizer` as it comes, the judge never wrong. He names the
best of a duel, of four items, of nine, of a line of nine points or of a plane of 5 x 5; the best
and the worst of four; or, with "slider", the best of 33 places on a line of nine points.

"bits" is the mutual information between an answer and the utility: the entropy of what is answered
under the posterior before it is told, less the mean entropy of the answer where the utility is
known, which is that of the judge's noise alone. Both are found from 256 draws of the utilities of
the items shown and 256 draws of the noise on each, at every fifth answer, the noise having the
variance that is learned. "bits" is the mean over all of these, "bits_early" and "bits_late" that up
to the tenth answer and from the 25th on. A slider has none: its
answer is a number.

"needed" is the median over seeds of the answers until the regret stays below 1 % of the function's
range (its optimum less the least of 2¹⁴ values); one more than were asked if it never does.

"cpu" is the median over the last 20 questions of the seconds of processor time of `tell` and
`ask`, on one thread, learning of the hyperparameters included; "cpu_most" the 95 % quantile.

Each finished unit (function, form, seed) is appended to ``results/question_forms.csv``; run again,
what is there is skipped. The table of medians over seeds goes to ``question_forms_summary``.
"""

import argparse
import csv
import os
import sys
import time
from functools import cache
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np
from scipy.stats import qmc

from skpref.datasets import TEST_FUNCTIONS, load_test_function
from skpref.optimize import PreferenceOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report
from generated_regret import answers_to

FORMS = {
    "duel": {},
    "best-of-4": {"size": 4},
    "best-and-worst-of-4": {"size": 4},
    "best-of-9": {"size": 9},
    "line": {"kind": "line"},
    "slider": {"kind": "line"},
    "plane": {"kind": "plane"},
}
STEPS = (5, 10, 20, 40)
WITHIN = 0.01
# Which of the bits, those of every fifth answer, are early (the fifth and tenth) and late (from the
# 25th on).
EARLY, LATE = 2, 4
PLACES = 33
DRAWS = 256
UNIT = ("function", "form", "seed")
COLUMNS = (*UNIT, "answers", "regret", "bits", "cpu_seconds")


def answer(form, items, values, function):
    """What the judge says, as arguments of `tell`."""
    best = int(np.argmax(values))
    if form == "duel":
        return {"outcome": int(best == 0)}
    if form == "best-and-worst-of-4":
        return {"chosen": best, "worst": int(np.argmin(values))}
    if form != "slider":
        return {"chosen": best}
    places = np.linspace(0.0, len(items) - 1, PLACES)
    way = [np.interp(places, np.arange(len(items)), column) for column in items.T]
    return {"position": float(places[np.argmax(function(np.stack(way, axis=1)))])}


def entropy(counts):
    share = counts / counts.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(share > 0.0, share * np.log2(share), 0.0).sum(axis=-1)


def information(posterior, rows, worst, rng):
    """Bits between an answer and the utility."""
    k = len(rows)
    utility = posterior.sample(rows, DRAWS, rng)
    utility = utility.T if utility.shape[0] == k else utility
    noise = np.sqrt(posterior.likelihood.noise_variance) * rng.standard_normal((DRAWS, 1, k))
    noisy = utility + noise  # (noise, utility, item)
    said, n = noisy.argmax(axis=2), k
    if worst:
        said, n = said * k + noisy.argmin(axis=2), k * k
    counts = np.zeros((DRAWS, n))
    np.add.at(counts, (np.arange(DRAWS), said), 1.0)
    return max(float(entropy(counts.sum(axis=0)) - entropy(counts).mean()), 0.0)


def run(name, form, seed, n_answers):
    """One unit of work."""
    function, rng = load_test_function(name), np.random.default_rng([seed, 2])
    made = PreferenceOptimizer(function.bounds, random_state=seed)
    begin = time.process_time()
    items = made.ask(**FORMS[form])
    seconds, regret, bits = [time.process_time() - begin], [], []
    for k in range(n_answers):
        if k and k % 5 == 0 and form != "slider":
            rows, worst = made.to_unit(items), form == "best-and-worst-of-4"
            bits.append(information(made.posterior_, rows, worst, rng))
        told = answer(form, items, function(items), function)
        begin = time.process_time()
        made.tell(items, **told)
        if k < n_answers - 1:
            items = made.ask(**FORMS[form])
            seconds.append(time.process_time() - begin)
        regret.append(function.regret(made.recommend()))
    series = {"regret": regret, "bits": bits, "cpu_seconds": seconds}
    row = {"function": name, "form": form, "seed": seed, "answers": n_answers}
    return row | {key: " ".join(f"{v:.4g}" for v in values) for key, values in series.items()}


def read(path):
    """Finished units, the last of each."""
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["cpu_seconds"]]
    return {(row["function"], row["form"], int(row["seed"])): row for row in rows}


def append(path, row):
    fresh = not path.is_file()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def numbers(row, key):
    return np.array(row[key].split(), dtype=np.float64)


@cache
def range_of(name):
    function = load_test_function(name)
    rows = qmc.Sobol(len(function.bounds), scramble=False).random(2**14)
    return function.optimum - function(function.from_unit(rows)).min()


def table(units):
    """Medians over seeds, a row a function and form."""
    found = []
    for name in TEST_FUNCTIONS:
        for form in FORMS:
            rows = [row for key, row in units.items() if key[:2] == (name, form)]
            if not rows:
                continue
            line = {"function": name, "form": form, "seeds": len(rows)}
            near = WITHIN * range_of(name)
            needed = [answers_to(numbers(row, "regret"), near) for row in rows]
            line["needed"] = float(np.median(needed))
            for step in STEPS:
                ends = [numbers(row, "regret") for row in rows]
                ends = [end[step - 1] for end in ends if len(end) >= step]
                line[f"regret_{step}"] = float(np.median(ends)) if ends else None
            bits = [numbers(row, "bits") for row in rows]
            if form != "slider":
                line["bits"] = float(np.mean(np.concatenate(bits)))
                line["bits_early"] = float(np.mean([each[:EARLY] for each in bits]))
                line["bits_late"] = float(np.mean([each[LATE:] for each in bits]))
            cpu = np.concatenate([numbers(row, "cpu_seconds")[-20:] for row in rows])
            line["cpu"], line["cpu_most"] = np.median(cpu), np.quantile(cpu, 0.95)
            found.append(line)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--functions", nargs="+", default=["branin", "hartmann-3", "hartmann-6"])
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--answers", type=int, default=40)
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args()
    path = RESULTS / "question_forms.csv"
    for seed in () if options.table else options.seeds:
        for name in options.functions:
            for form in options.forms:
                known = read(path).get((name, form, seed))
                if known is None or int(known["answers"]) < options.answers:
                    append(path, run(name, form, seed, options.answers))
    report(table(read(path)), RESULTS / "question_forms_summary.csv")


if __name__ == "__main__":
    main()
