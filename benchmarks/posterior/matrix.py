"""Every combination of engine, answers, context, shape, learning and pieces: exact, or refused.

The declaration is ``tests/matrix.py``: which levels there are, and what is refused. Cases have at
most so many levels of context (judges, order, weights, users, times, ids or names, linear kernels)
that are not the plain ones: 11 392 with one, of which 4 128 are taken. Each of these is fitted and
compared with exact integrals (``tests/matrix_oracle.py``), or where items are independent through
time with the same approximation by dense algebra (``tests/matrix_blocks.py``): at the
hyperparameters given, of judges also given their reliability; where hyperparameters are learned,
with the same model fitted at these, and no step of a fifth of a logarithm may find better ones.
Every other case must be refused, naming the remedy, before an engine runs. Effects of groups of
answers are cases of their own, each engine with each kind of answers: of prompts, of judges' slopes
and advantages of the first, of rows of features, of contexts. About ten minutes of one core:

    nice python benchmarks/posterior/matrix.py [--contexts 1] [--engines ep hmc] [--learning fixed]
        [--effects] [--out FILE]

``--effects`` runs the cases of effects of groups alone.
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT, few, report

sys.path.insert(0, str(ROOT / "tests"))
from matrix import EFFECTS, FACTORS, GROUPED, REFUSED_EFFECTS, product, refusals
from matrix_check import Compared, compared, refused

# A truth whose standard error is larger is none to compare with.
SHARP = 0.01


def run(case):
    """One case: a row of the table."""
    begin = time.process_time()
    row = case._asdict() | {"outcome": "compared"}
    found = Compared()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if reasons := REFUSED_EFFECTS.get(case) or refusals(case):
                said = refused(case, reasons)
                row["outcome"] = "refused" if said is None else f"not refused: {said}"
            else:
                found = compared(case)
    except Exception as error:  # whatever it is, it is what is looked for
        row["outcome"] = f"crash: {type(error).__name__}: {str(error)[:120]}"
    return row | found._asdict() | {"seconds": round(time.process_time() - begin, 3)}


def largest(rows, name, of=lambda row: True):
    """Of a column, where there is a truth to compare with."""
    values = [row[name] for row in rows if row[name] is not None and of(row)]
    return float(np.max(values)) if values else float("nan")


def summary(rows):
    """A row an engine."""
    for engine in FACTORS["engine"]:
        mine = [row for row in rows if row["engine"] == engine]
        if not mine:
            continue
        sharp = [row for row in mine if row["truth_error"] is None or row["truth_error"] < SHARP]
        yield {
            "engine": engine,
            "cases": len(mine),
            "compared": sum(row["outcome"] == "compared" for row in mine),
            "refused": sum(row["outcome"] == "refused" for row in mine),
            "not refused": sum(row["outcome"].startswith("not refused") for row in mine),
            "crashes": sum(row["outcome"].startswith("crash") for row in mine),
            "whole": largest(sharp, "error", lambda row: row["judges"] == "none"
                             and row["fitting"] == "whole" and row["users"] == "none"
                             and row["effects"] == "none"),
            **{each: largest(sharp, "error", lambda row, each=each: row["effects"] == each)
               for each in EFFECTS},
            "users": largest(sharp, "error", lambda row: row["users"] != "none"),
            "in pieces": largest(sharp, "error", lambda row: row["fitting"] == "pieces"),
            "given reliability": largest(sharp, "error_given_reliability"),
            "reliability averaged": largest(sharp, "error", lambda row: row["judges"] != "none"
                                            and row["effects"] == "none"),
            "learned": largest(mine, "refit", lambda row: row["fitting"] == "whole"),
            "learned in pieces": largest(mine, "refit", lambda row: row["fitting"] != "whole"),
            "nats to gain": largest(mine, "gain", lambda row: row["judges"] == "none"),
            "seconds": float(sum(row["seconds"] for row in mine)),
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contexts", type=int, default=1)
    parser.add_argument("--engines", nargs="*", default=FACTORS["engine"])
    parser.add_argument("--learning", nargs="*", default=FACTORS["learning"])
    parser.add_argument("--effects", action="store_true", help="only effects of groups")
    parser.add_argument("--out", default=str(RESULTS / "matrix.csv"))
    options = parser.parse_args()
    grouped = (*GROUPED, *REFUSED_EFFECTS)
    cases = [
        case
        for case in (*(() if options.effects else product(options.contexts)), *grouped)
        if case.engine in options.engines and case.learning in options.learning
    ]
    rows = []
    for n, case in enumerate(cases[: few(None, 5)]):
        rows.append(run(case))
        if rows[-1]["outcome"] not in ("compared", "refused"):
            print(f"{n} {case}: {rows[-1]['outcome']}", flush=True)
    taken = [row for row in rows if row["outcome"] != "refused"]
    report(taken, options.out, quiet=True, cases=len(rows), contexts=options.contexts)
    report(list(summary(rows)), options.out.replace(".csv", "_summary.csv"))


if __name__ == "__main__":
    main()
