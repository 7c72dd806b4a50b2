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
        [--results FILE] [--page]
"""

import argparse
import os
import sys
import time
import warnings
from functools import lru_cache
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import _random_answers
import numpy as np
import random_judges
from _random_answers import SET_KINDS, covariance, draw_problem, integrate
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, Table, report, sources

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.inference import HMC, Gibbs
from skpref.kernels import Identity, OnColumns, Wiener

ENGINES = ("ep", "laplace", "svi", "hmc", "gibbs")
SAMPLERS = ("hmc", "gibbs")
KINDS = (*_random_answers.KINDS, "judges")
NAMES = np.array([f"item {i}" for i in range(10)])
QUANTITIES = ("mean", "deviation", "better", "answer", "log_evidence")


# Laplace and SVI take no sets, and Gibbs none of which some inequalities follow from others.
ENGINES_OF_SETS = ("ep", "hmc", "gibbs")


def engines_of(kind):
    """Return the engines that take answers of a kind."""
    if kind == "users":
        return ENGINES[:1]
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
    if problem.prior_name == "names" and problem.kind == "users":
        options["items"] = NAMES.tolist()
    estimator = PairwisePreferenceRegressor
    if problem.kind == "users":
        estimator = CollaborativePreferenceRegressor
    model = estimator(
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
    if problem.kind == "users":
        given["users"] = problem.rows[shown[:, 0], -1].astype(int)
    if problem.prior.drift:
        given["time"] = problem.rows[shown[:, 0], -1]
    return model.fit(_display(problem, shown), _labels(problem), **given)


def engine_values(problem, model):
    """Return the values of a model that are compared with the truth."""
    if problem.kind == "users":
        return _values_of_users(problem, model)
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
    has_evidence = not isinstance(model.engine_, HMC | Gibbs)
    evidence = model.log_marginal_likelihood_value_ if has_evidence else np.nan
    return {
        "mean": mean,
        "deviation": deviation,
        "better": posterior.win_probability(first, second, noise=False),
        "answer": np.concatenate([each.ravel() for each in outcomes]),
        "log_evidence": float(evidence),
    }


def _values_of_users(problem, model):
    """Return the same of the user of each question; the posterior is a normal."""
    duels = _display(problem, problem.duels)
    users = problem.rows[problem.duels[:, 0], -1].astype(int)
    order = {"order": np.full(len(duels), problem.lead)} if problem.lead else {}
    mean, deviation = model.predict(duels, return_std=True, users=users)
    return {
        "mean": mean,
        "deviation": deviation,
        "better": ndtr(mean / deviation),
        "answer": model.predict_proba(duels, users=users, **order).ravel(),
        "log_evidence": np.nan,
    }


def with_learned_tastes(problem, model):
    """Return a problem of users at the covariance of tastes that a fit found: it is always learned.

    What users have of their own is a sum of shared functions with weights of that covariance, and
    a rest that no item of training tells of.
    """
    posterior, rows = model.posterior_, problem.rows
    told = rows[:, :1] if problem.prior_name == "names" else rows[:, 1:-1]
    told = rows[:, :-1] if _has_ids(problem) else told
    phi = model.kernel_(told, posterior.anchors) @ posterior.whiten.T
    axes, spare = (phi @ part for part in posterior.functions)
    own = axes @ posterior.tastes.prior.own @ axes.T + spare @ spare.T
    own = own + model.taste_variance_ * (model.kernel_(told) - phi @ phi.T)
    same_user = rows[:, -1:] == rows[:, -1]
    return problem._replace(K=covariance(problem.prior, rows) + own * same_user)


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
        return NAMES[problem.rows[rows, 0].astype(int)]
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


def judges_values(seed, engine):
    """Return an engine's row of a problem of judges."""
    problem, truth = random_judges.draw_problem(seed), truth_of("judges", seed)
    row = {
        "prior": "names",
        "items": problem.n_items,
        "answers": len(problem.judge),
        "noise_variance": problem.noise_variance,
    }
    if truth is None:
        return row | NO_TRUTH
    found = random_judges.errors(problem, truth, engine)
    return row | {
        "outcome": "compared",
        "better": found["better"],
        "answer": max(found["reference"], found["judge"]),
        "seconds": found["seconds"],
        "error_better": truth.error,
        "error_answer": truth.error,
        "effective_draws": truth.n_effective,
    }


def problem_values(kind, seed, engine):
    """Return an engine's row of a problem."""
    problem = draw_problem(kind, seed)
    row = {
        "prior": problem.prior_name,
        "items": len(np.unique(problem.rows[:, 0])),
        "answers": len(problem.answers),
        "noise_variance": problem.noise.variance,
    }
    begin = time.process_time()
    model = fit_model(problem, engine)
    values = engine_values(problem, model)
    row["seconds"] = time.process_time() - begin
    if kind == "users":
        truth = integrate(with_learned_tastes(problem, model))
    else:
        truth = truth_of(kind, seed)
    if truth is None:
        return row | NO_TRUTH
    row |= {"outcome": "compared"} | errors(truth, values)
    row |= {f"error_{name}": error for name, error in truth.error.items()}
    return row | {"effective_draws": truth.n_effective}


@lru_cache(maxsize=1)
def truth_of(kind, seed):
    """Return the truth of a problem, which all engines share."""
    if kind == "judges":
        return random_judges.integrate(random_judges.draw_problem(seed))
    return integrate(draw_problem(kind, seed))


def run(kind, seed, engine):
    """Run an engine on a problem: a row of the table."""
    row = dict.fromkeys(COLUMNS, "") | {"kind": kind, "seed": seed, "engine": engine}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "judges":
                return row | judges_values(seed, engine)
            return row | problem_values(kind, seed, engine)
    except Exception as error:  # whatever it is, the table says so
        return row | {"outcome": f"failed: {type(error).__name__}: {str(error)[:120]}"}


NO_TRUTH = {"outcome": "too few effective draws"}
COLUMNS = (
    "kind", "seed", "engine", "outcome", "prior", "items", "answers", "noise_variance", *QUANTITIES,
    "seconds", *(f"error_{name}" for name in QUANTITIES), "effective_draws",
)  # fmt: skip


def summary(rows):
    """Yield a row for each engine and kind: medians and largest errors, and the truth's median."""
    for engine in ENGINES:
        for kind in KINDS:
            mine = [row for row in rows if (row["engine"], row["kind"]) == (engine, kind)]
            compared = [row for row in mine if row["outcome"] == "compared"]
            if not compared:
                continue
            line = {"engine": engine, "kind": kind, "problems": len(compared)}
            line["no truth"] = sum(row["outcome"] == NO_TRUTH["outcome"] for row in mine)
            line["failed"] = len(mine) - line["no truth"] - len(compared)
            for name in QUANTITIES:
                for label, column, of in (
                    ("median", name, np.median),
                    ("largest", name, np.max),
                    ("truth's error", f"error_{name}", np.median),
                ):
                    values = np.array([row[column] for row in compared if row[column] != ""])
                    values = values[~np.isnan(values)]
                    line[f"{name}, {label}"] = float(of(values)) if len(values) else ""
            line["seconds"] = float(np.median([row["seconds"] for row in compared]))
            yield line


def page(lines):
    """Yield a Markdown table: of each engine the largest median and error over kinds of answer."""
    titles = ("mean", "deviation", "P(better)", "next answer", "log evidence")
    yield "| " + " | ".join(("engine", "problems", *titles)) + " |"
    yield "| --- " * (2 + len(titles)) + "|"
    lines = list(lines)
    for engine in ENGINES:
        mine = [line for line in lines if line["engine"] == engine]
        cells = [engine, str(sum(line["problems"] for line in mine))]
        for name in QUANTITIES:
            medians = [line[f"{name}, median"] for line in mine if line[f"{name}, median"] != ""]
            largest = [line[f"{name}, largest"] for line in mine if line[f"{name}, largest"] != ""]
            cells.append(f"{_short(max(medians))} / {_short(max(largest))}" if medians else "")
        yield "| " + " | ".join(cells) + " |"


def _short(value):
    return "<.001" if value < 0.001 else f"{float(f'{value:.2g}'):g}".removeprefix("0")


def units(options):
    """Yield kind, seed and engine of each row: problems of all kinds by turns."""
    for k in range(options.problems):
        kind, seed = options.kinds[k % len(options.kinds)], options.seed + k // len(options.kinds)
        for engine in engines_of(kind):
            is_left_out = engine in SAMPLERS and seed % 100 >= 100.0 * options.sampled_share
            if engine in options.engines and not is_left_out:
                yield kind, seed, engine


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--sampled-share", type=float, default=1.0, help="of problems sampled")
    parser.add_argument("--quick", action="store_true", help="65 problems, and nothing written")
    parser.add_argument("--page", action="store_true", help="print the table of the page")
    parser.add_argument("--results", type=Path, default=RESULTS / "random_problems.csv")
    options = parser.parse_args()
    options.problems = min(options.problems, 65) if options.quick else options.problems
    if options.quick:
        rows = [run(*unit) for unit in units(options)]
        for line in summary(rows):
            print("  ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in line.values()))
        return
    table = Table(options.results, ("kind", "seed", "engine"))
    if options.page:
        print("\n".join(page(summary(table.rows()))))
        return
    for unit in table.missing(units(options)):
        table.add([run(*unit)])
    path = options.results.with_name(f"{options.results.stem}_summary.csv")
    report(list(summary(table.rows())), path, code=sources())


if __name__ == "__main__":
    main()
