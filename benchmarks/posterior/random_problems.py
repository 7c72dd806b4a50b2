"""Random small problems with answers of every kind: engines against importance sampling.

Two to nine items (names, features, linear features, ids and features); noise, thresholds and order
effect are drawn and given; one to 40 answers of a kind (of sets to eight), half of them drawn from
the model and half with four times its noise. The truth (`_random_answers.py`, and for judges
`random_judges.py`) has its own likelihood and draws from the same prior; problems of which too few
draws are effective are counted and left out. Of each problem the largest errors are compared: of
margins' means in posterior deviations, of their deviations as a share, of P(better), of the
probabilities of next answers, and of the log evidence (of SVI the bound, of samplers none). Rows
that the table holds already are kept; a second run does what is missing:

    python benchmarks/posterior/random_problems.py [--problems 1500] [--seed 0] [--quick]
        [--kinds duels ties] [--engines ep laplace svi hmc gibbs] [--sampled-share 0.5]
        [--results FILE]
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
import random_judges
from _random_answers import DUEL_KINDS, SET_KINDS, draw_problem, integrate
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, Table, report, sources

from skpref import PairwisePreferenceRegressor
from skpref.kernels import Identity, OnColumns, Wiener

ENGINES = ("ep", "laplace", "svi", "hmc", "gibbs")
SAMPLERS = ("hmc", "gibbs")
KINDS = (*DUEL_KINDS, *SET_KINDS, "judges")
QUANTITIES = ("mean", "deviation", "better", "answer", "log_evidence")


# Laplace and SVI take no sets, and Gibbs none of which some inequalities follow from others.
ENGINES_OF_SETS = ("ep", "hmc", "gibbs")


def engines_of(kind):
    """Return the engines that take answers of a kind."""
    if kind not in SET_KINDS:
        return ENGINES
    return ENGINES_OF_SETS[:2] if kind == "best and worst" else ENGINES_OF_SETS


# -- the package's values --------------------------------------------------------------------------


def fit_model(problem, engine, seed=0):
    """Fit a model to a problem at its hyperparameters."""
    options, noise = {}, problem.noise
    if _has_ids(problem):
        options["id_column"] = 0
    if problem.prior.drift:
        options["drift"] = _drift(problem.prior)
    model = PairwisePreferenceRegressor(
        kernel=_kernel(problem),
        noise_variance=noise.variance,
        tie_threshold=noise.threshold or None,
        grade_thresholds=noise.grades or None,
        order_effect=noise.order_effect,
        optimizer=None,
        inference=engine,
        random_state=seed,
        **options,
    )
    shown = np.array([one.shown for one in problem.answers])
    given = {}
    if noise.order_effect:
        given["order"] = np.array([one.lead for one in problem.answers])
    if problem.kind == "counted":
        given["sample_weight"] = np.array([float(one.count) for one in problem.answers])
    if problem.prior.drift:
        given["time"] = problem.rows[shown[:, 0], -1]
    return model.fit(_display(problem, shown), _labels(problem), **given)


def engine_values(problem, engine):
    """Return the values of an engine that are compared with the truth."""
    model = fit_model(problem, engine)
    first, second = (_display(problem, rows) for rows in problem.duels.T)
    duels, sets = _display(problem, problem.duels), _display(problem, problem.sets)
    at = {"time": problem.rows[problem.duels[0, 0], -1]} if problem.prior.drift else {}
    order = {"order": np.full(len(duels), problem.lead)} if problem.lead else {}
    posterior = model.posterior_.at_time(at["time"]) if at else model.posterior_
    mean, deviation = model.predict(duels, return_std=True, **at)
    if problem.kind in SET_KINDS:
        outcomes = posterior.win_probability(first, second, order=problem.lead)
        outcomes = [np.column_stack([1.0 - outcomes, outcomes])]
        order = {"order": np.full(len(sets), problem.lead)} if problem.lead else {}
        outcomes.append(model.predict_proba(sets, **order))
    else:
        outcomes = [model.predict_proba(duels, **order, **at)]
    evidence = np.nan if engine in SAMPLERS else model.log_marginal_likelihood_value_
    return {
        "mean": mean,
        "deviation": deviation,
        "better": posterior.win_probability(first, second, noise=False),
        "answer": np.concatenate([each.ravel() for each in outcomes]),
        "log_evidence": float(evidence),
    }


def _has_ids(problem):
    return problem.kind == "controls" or problem.prior_name == "ids and features"


def _kernel(problem):
    prior = problem.prior
    if not _has_ids(problem):
        if prior.linear:
            return ConstantKernel(prior.linear, "fixed") * DotProduct(0.0, "fixed")
        return RBF(prior.length, "fixed") if prior.smooth else None
    columns = list(range(1, problem.rows.shape[1] - 1))
    own = ConstantKernel(prior.own, "fixed") * OnColumns(Identity(), [0])
    if prior.linear:
        linear = ConstantKernel(prior.linear, "fixed") * DotProduct(0.0, "fixed")
        return own + OnColumns(linear, columns)
    return own + OnColumns(RBF(prior.length, "fixed"), columns)


def _drift(prior):
    if prior.drift == "wiener":
        return Wiener(prior.drift_variance, "fixed")
    nu = {"matern12": 0.5, "matern32": 1.5}[prior.drift]
    walk = Matern(prior.drift_length, "fixed", nu=nu)
    return ConstantKernel(prior.drift_variance, "fixed") * walk


def _display(problem, rows):
    """Return rows as the package takes them: names, features, or ids before features."""
    if _has_ids(problem):
        return problem.rows[rows, :-1]
    if problem.prior_name == "names":
        return np.array([f"item {i}" for i in range(20)])[problem.rows[rows, 0].astype(int)]
    return problem.rows[rows, 1:-1]


def _labels(problem):
    """Return y as the package takes it: outcomes, grades, positions of the chosen, or ranks."""
    rank = np.array([one.rank for one in problem.answers])
    if problem.kind == "best":
        return rank.argmin(axis=1)
    if problem.kind in SET_KINDS:
        return rank
    sign = np.sign(rank[:, 1] - rank[:, 0])
    if problem.noise.grades:
        return sign * np.array([one.grade for one in problem.answers])
    return sign if problem.noise.threshold else (sign > 0).astype(int)


# -- errors ----------------------------------------------------------------------------------------


def errors(truth, values):
    """Return the largest error of each quantity, in the units of the table."""
    return {
        "mean": float(np.max(np.abs(values["mean"] - truth.mean) / truth.deviation)),
        "deviation": float(np.max(np.abs(values["deviation"] / truth.deviation - 1.0))),
        "better": float(np.max(np.abs(values["better"] - truth.better))),
        "answer": float(np.max(np.abs(values["answer"] - truth.answer.ravel()))),
        "log_evidence": abs(values["log_evidence"] - truth.log_evidence),
    }


def judges_rows(seed, engines):
    """Yield the rows of a problem of judges, or None where there is no truth."""
    problem = random_judges.draw_problem(seed)
    truth = random_judges.integrate(problem, n_effective=2000.0)
    for engine in engines:
        if truth is None:
            yield None
            continue
        found = random_judges.errors(problem, truth, engine)
        yield {
            "engine": engine,
            "prior": "names",
            "items": problem.n_items,
            "answers": len(problem.judge),
            "noise_variance": problem.noise_variance,
            "better": found["better"],
            "answer": max(found["reference"], found["judge"]),
            "seconds": found["seconds"],
            "error_better": truth.error,
            "error_answer": truth.error,
            "effective_draws": truth.n_effective,
        }


def problem_rows(kind, seed, engines):
    """Yield the rows of a problem, one an engine, or None where there is no truth."""
    problem = draw_problem(kind, seed)
    truth = integrate(problem)
    for engine in engines:
        if truth is None:
            yield None
            continue
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = engine_values(problem, engine)
        yield {
            "engine": engine,
            "prior": problem.prior_name,
            "items": len(np.unique(problem.rows[:, 0])),
            "answers": len(problem.answers),
            "noise_variance": problem.noise.variance,
            **errors(truth, values),
            "seconds": time.process_time() - begin,
            **{f"error_{name}": error for name, error in truth.error.items()},
            "effective_draws": truth.n_effective,
        }


COLUMNS = (
    "kind", "seed", "engine", "prior", "items", "answers", "noise_variance", *QUANTITIES, "seconds",
    *(f"error_{name}" for name in QUANTITIES), "effective_draws",
)  # fmt: skip


def summary(rows):
    """Yield a row for each engine and kind: medians and largest errors, and the truth's."""
    for engine in ENGINES:
        for kind in KINDS:
            mine = [row for row in rows if (row["engine"], row["kind"]) == (engine, kind)]
            with_truth = [row for row in mine if row["effective_draws"] != ""]
            if not with_truth:
                continue
            line = {"engine": engine, "kind": kind, "problems": len(with_truth)}
            line["without truth"] = len(mine) - len(with_truth)
            for name in QUANTITIES:
                values = [row[name] for row in with_truth if row[name] != ""]
                values = [value for value in values if not np.isnan(value)]
                line[f"{name}, median"] = float(np.median(values)) if values else ""
                line[f"{name}, largest"] = float(np.max(values)) if values else ""
                own = [row[f"error_{name}"] for row in with_truth if row[f"error_{name}"] != ""]
                line[f"{name}, truth's"] = float(np.median(own)) if own else ""
            line["seconds"] = float(np.median([row["seconds"] for row in with_truth]))
            yield line


def units(options):
    """Yield kind, seed and engines of each problem: kinds by turns."""
    for k in range(options.problems):
        kind, seed = options.kinds[k % len(options.kinds)], options.seed + k // len(options.kinds)
        sampled = seed % 100 < 100.0 * options.sampled_share
        engines = [e for e in engines_of(kind) if e in options.engines]
        yield kind, seed, [e for e in engines if sampled or e not in SAMPLERS]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--sampled-share", type=float, default=1.0, help="of problems sampled")
    parser.add_argument("--quick", action="store_true", help="65 problems, and nothing written")
    parser.add_argument("--results", type=Path, default=RESULTS / "random_problems.csv")
    options = parser.parse_args()
    options.problems = min(options.problems, 65) if options.quick else options.problems
    table, rows = Table(options.results, ("kind", "seed", "engine")), []
    for kind, seed, engines in units(options):
        if not options.quick:
            engines = [e for *_, e in table.missing([(kind, seed, e) for e in engines])]
        if not engines:
            continue
        found = (
            judges_rows(seed, engines) if kind == "judges" else problem_rows(kind, seed, engines)
        )
        blank = dict.fromkeys(COLUMNS, "")
        fresh = [
            blank | {"kind": kind, "seed": seed, "engine": engine} | (row or {})
            for engine, row in zip(engines, found, strict=True)
        ]
        rows += fresh
        if not options.quick:
            table.add(fresh)
    if options.quick:
        for line in summary(rows):
            print("  ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in line.values()))
        return
    path = options.results.with_name(f"{options.results.stem}_summary.csv")
    report(list(summary(table.rows())), path, code=sources())


if __name__ == "__main__":
    main()
