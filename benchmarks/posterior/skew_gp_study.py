"""The first half of Takeno, Nomura and Karasuyama (ICML 2023) once more: how good are Gaussian
approximations of the skew GP, and how fast is sampling it?

    python benchmarks/posterior/skew_gp_study.py
        [--part fig1 compare rmse chains evidence calibration small default]
        [--trials 10] [--n-jobs 1] [--quick]

Tables (CSV) and pictures (PNG) go to doc/skew_study, or to a temporary folder with --quick (a
smoke run). Every finished unit of work is appended to its table at once, so a run that was
stopped goes on where it was; delete a table to have it made anew. Calibration has at least thirty
trials. About forty minutes on one core.
"""

import argparse
import os
import sys
import tempfile
from itertools import product
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy

import numpy as np
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Table, needs

needs("matplotlib")
import _skew_calibration
import _skew_examples
import _skew_figures
import _skew_small
import _skew_units
from _skew_setting import FUNCTIONS, KNOWN, OUTPUT, TRIALS

PARTS = ("fig1", "compare", "rmse", "chains", "evidence", "calibration", "small", "default")
CALIBRATION_TRIALS = 30  # differences between engines are small beside those between trials


def _run(table, units, work, n_jobs):
    """Do the missing units, in parallel if asked, and store each when it is finished."""
    missing = table.missing(units)
    print(f"{table.path.name}: {len(units) - len(missing)} there, {len(missing)} to do", flush=True)
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(work)(*unit) for unit in missing
    )
    for rows in results:
        table.add(rows)


def fig1(folder, options):
    table = Table(folder / "fig1.csv", ("engine",))
    if table.missing([("truth",)]):
        lines, duels, density = _skew_examples.one_dimension(draws=options.draws)
        table.add(lines)
        Table(folder / "fig1_duel.csv", ("engine",)).add(duels)
        _skew_figures.fig1(folder, table.rows(), duels, density)


def compare(folder, options):
    summary = Table(folder / "compare.csv", ("function", "trial"))
    points = Table(folder / "compare_points.csv", ("function", "trial"))
    units = summary.missing(options.units)
    print(f"compare.csv: {len(units)} to do", flush=True)
    results = Parallel(n_jobs=options.n_jobs, return_as="generator")(
        delayed(_skew_units.compare)(*unit, draws=options.draws) for unit in units
    )
    known = dict.fromkeys(points.missing(options.units))
    for unit, (rows, scattered) in zip(units, results, strict=True):
        if unit in known:
            points.add(scattered)
        summary.add(rows)  # last: only then the unit counts as done
    _skew_figures.compare(folder, points.rows())


def rmse(folder, options):
    table = Table(folder / "rmse.csv", ("function", "trial"))
    _run(table, options.units, _Rmse(options.draws), options.n_jobs)
    _skew_figures.rmse(folder, table.rows())


class _Rmse:
    def __init__(self, draws):
        self.draws = draws

    def __call__(self, name, trial):
        return _skew_units.rmse(name, trial, self.draws)


def chains(folder, options):
    table = Table(folder / "chains.csv", ("function", "trial"))
    # One at a time: these are timed.
    _run(table, options.units, _chain_rows, 1)
    traces = {name: _skew_units.chains(name, 0)[1] for name in options.functions}
    _skew_figures.chains(folder, traces)


def _chain_rows(name, trial):
    return _skew_units.chains(name, trial)[0]


def evidence(folder, options):
    table = Table(folder / "evidence_branin.csv", ("first", "second"))
    scales = _skew_examples.LENGTHSCALES[:: 4 if options.quick else 1]
    units = [tuple(float(f"{x:.5g}") for x in pair) for pair in product(scales, scales)]
    _run(table, units, _evidence_rows, 1)
    _skew_figures.evidence(folder, table.rows())


def _evidence_rows(first, second):
    return [_skew_examples.evidence(first, second)]


def calibration(folder, options):
    table = Table(folder / "calibration.csv", ("function", "trial"))
    trials = range(options.trials if options.quick else max(options.trials, CALIBRATION_TRIALS))
    units = list(product([KNOWN, *options.functions], trials))
    _run(table, units, _skew_units.calibration, options.n_jobs)
    rows = table.rows()
    print(_skew_calibration.summary(rows))
    _skew_calibration.draw(folder, rows)


def small(folder, options):
    table = Table(folder / "small.csv", ("noise_variance", "seed"))
    _run(table, list(product(_skew_small.NOISES, options.seeds)), _skew_small.small, options.n_jobs)
    for noise_variance in _skew_small.NOISES:
        rows = [row for row in table.rows() if row["noise_variance"] == noise_variance]
        worst = {k: max(row[f"{k}_error"] for row in rows) for k in ("sampled", "ep", "laplace")}
        fewest = min(row["smallest_ess"] for row in rows)
        shown = ", ".join(f"{k} {v:.4f}" for k, v in worst.items())
        print(f"σ² = {noise_variance:g}: largest errors {shown}; smallest ESS {fewest:.0f}")


def default(folder, options):
    """`HMC()` as it comes, on the problems of ``small`` and against the clock."""
    table = Table(folder / "small_default.csv", ("noise_variance", "seed"))
    units = list(product(_skew_small.NOISES, options.seeds))
    _run(table, units, _skew_small.as_it_comes, options.n_jobs)
    for noise_variance in _skew_small.NOISES:
        rows = [row for row in table.rows() if row["noise_variance"] == noise_variance]
        worst, fewest = max(r["largest_error"] for r in rows), min(r["smallest_ess"] for r in rows)
        middle = np.median([row["largest_error"] for row in rows])
        root = np.sqrt(np.mean([row["mean_square"] for row in rows]))
        shown = (
            f"largest {worst:.4f}, median of the largest {middle:.4f}, root mean square {root:.4f}"
        )
        print(f"σ² = {noise_variance:g}: errors: {shown}; smallest ESS {fewest:.0f}")
    table = Table(folder / "default_seconds.csv", ("duels", "trial"))
    sizes = (50,) if options.quick else (200, 1000)
    _run(table, list(product(sizes, range(5))), _skew_small.seconds, options.n_jobs)
    for size in sizes:
        rows = [row for row in table.rows() if row["duels"] == size]
        fit, predict = (np.median([r[f"{k}_seconds"] for r in rows]) for k in ("fit", "predict"))
        print(f"{size} duels: fit {fit:.2f} s, 1 000 predictions {predict:.2f} s (processor)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.draws = 500 if options.quick else 10_000
    options.trials = min(options.trials, 1) if options.quick else options.trials
    options.functions = ["holder"] if options.quick else list(FUNCTIONS)
    options.units = list(product(options.functions, range(options.trials)))
    options.seeds = range(3 if options.quick else 200)
    folder = Path(tempfile.mkdtemp()) if options.quick else OUTPUT
    folder.mkdir(parents=True, exist_ok=True)
    for part in options.part:
        globals()[part](folder, options)
    print(f"written: {folder}")


if __name__ == "__main__":
    main()
