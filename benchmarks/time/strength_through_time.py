"""Strengths that move: who predicts the next date best, and at what cost.

    python benchmarks/time/strength_through_time.py --tennis FOLDER --peer-python ENV/bin/python

Matches are in the order of dates. The dates up to the one on which 70 % of the matches are
reached are for learning; every later date is predicted from all that was played before it, and
learnt from afterwards. Settings are chosen by the same game within the first part: its dates up to
85 % of its matches are for learning, the rest is predicted. Log-loss in nats; seconds are those of
the processor.

- atp: men's singles since 1990 on all levels; a date is a week, the first day of tournaments.
- atp_main: the main draws of the tour alone.
- atp_2017: 1991 to 2017, predicted from 28 August 2011 on: dates and files of Maystre, Kristof and
  Grossglauser (KDD 2019), who count 618,934 matches and predict 186,361.
- atp_2016: 2016 predicted from 2011 on, small enough for slow methods.
- football: internationals since 1872 with draws and home advantage.

Methods are functions of the matches to learn from, those to predict, and settings; they give
probabilities. `METHODS` has them with the settings that the search starts at; a search of
``--calls`` evaluations by Nelder and Mead works on the logarithms. Those of the peers are not
searched, since each evaluation costs minutes: their Wiener processes take the settings of
"filtered", which is the same model, and the rest is listed in `PEERS`. How peers are used is said
in `_peer_time.py`. Rows are added to those in the file; one of the same data and method is
replaced.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _peer_time import peak
from _time_baselines import YEAR, Matches, elo, filtered, together, windows
from common import RESULTS, data_folder, report, unless_missing

TARGET = RESULTS / "strength_through_time.csv"
PEER = Path(__file__).with_name("_peer_time.py")
LEARNT, FITTED = 0.70, 0.85
CALLS = 40


def drifting(train, test, drift="matern12", grades=1):
    """This package: hyperparameters learned on the first part by the evidence, then each date is
    predicted and filtered; "none" holds strengths constant. With more than one of ``grades`` the
    answers say by how much, in as many classes of equal size of the margin of victory."""
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    from skpref import ItemTable, PairwisePreferenceRegressor
    from skpref.inference import EP

    nothing = ConstantKernel(1e-12, "fixed") * Matern(1.0, "fixed", nu=0.5)
    names = [str(k) for k in range(together(train, test).n_competitors)]
    options = {}
    if train.draws:
        options = {"tie_threshold": 0.3, "order_effect": 0.3, "order_effect_bounds": (-2.0, 2.0)}
    if grades > 1:
        options["grade_thresholds"] = tuple(0.5 * k for k in range(1, grades))
        won = np.abs(train.margin[train.outcome != 0])
        bounds = np.quantile(won, np.arange(1, grades) / grades)
    model = PairwisePreferenceRegressor(
        items=ItemTable.from_names(names),
        drift=nothing if drift == "none" else drift,
        inference=EP(items="independent"),
        **options,
    )

    def told(matches):
        X = np.column_stack([matches.first, matches.second])
        when = {"time": matches.day / YEAR}
        answer = matches.outcome
        if grades > 1:
            answer = answer * (1 + np.searchsorted(bounds, np.abs(matches.margin)))
        return (
            X,
            answer,
            when | ({"order": matches.home.astype(int)} if train.draws else {}),
        )

    X, y, given = told(train)
    model.fit(X, y, **given)
    print(model.kernel_, model.likelihood_, file=sys.stderr, flush=True)
    X, y, given = told(test)
    found = np.zeros((len(y), 3))
    columns = np.sign(model.classes_).astype(int) + 1
    for day in np.unique(test.day):
        at = np.flatnonzero(test.day == day)
        now = {name: values[at] for name, values in given.items()}
        np.add.at(found.T, (columns[:, None], at), model.predict_proba(X[at], **now).T)
        model.partial_fit(X[at], y[at], **now)
    return found


# Name -> function, settings the search starts at, settings it leaves alone.
METHODS = {
    "elo": (elo, {"step": 25.0}, {}),
    "elo, K = 250 / (n + 5)^0.4": (elo, {}, {"step": 250.0, "power": 0.4}),
    "elo, K = c / (n + 5)^p": (elo, {"step": 250.0, "power": 0.4}, {}),
    "filtered": (filtered, {"variance": 0.3, "drift": 0.05}, {}),
    "windows": (windows, {"years": 3.0, "ridge": 1.0}, {}),
    "skpref, Matern 1/2": (drifting, {}, {"drift": "matern12"}),
    "skpref, Matern 1/2, margins": (drifting, {}, {"drift": "matern12", "grades": 3}),
    "skpref, Wiener": (drifting, {}, {"drift": "wiener"}),
    "skpref, constant": (drifting, {}, {"drift": "none"}),
}
# What a data set with draws and home advantage needs besides.
ALSO = {elo: {"home": 80.0}, filtered: {"margin": 0.38, "home": 0.4}, windows: {}, drifting: {}}
FIXED_ALSO = {"elo, K = 250 / (n + 5)^0.4": {"home": 80.0}}


def by_date(first, second, home, outcome, day, rounds, margin):
    """Matches whose competitors are numbered from 0."""
    shown = np.unique([first, second], return_inverse=True)[1].reshape(2, -1)
    return Matches(shown[0], shown[1], home, outcome, day, rounds, margin)


def football():
    """All internationals."""
    from skpref.datasets import fetch_football

    data = fetch_football(data_home=data_folder(), download_if_missing=False)
    day = data.date.astype(np.int64)
    rounds, margin = np.zeros(len(day), dtype=int), data.goals[:, 0] - data.goals[:, 1]
    return by_date(*data.X.T, data.order == 1, data.y, day, rounds, margin)


def tennis(folder, first_season=1990, last_season=2024, levels=("main", "challenger", "futures")):
    """Singles; the player with the smaller number comes first, so that the order says nothing."""
    from skpref.datasets import fetch_atp_matches

    data = fetch_atp_matches(
        levels=levels, first_season=first_season, last_season=last_season, data_home=folder
    )
    X = data.X
    outcome = np.where((data.y == 1) == (X[:, 0] < X[:, 1]), 1, -1)
    kept = data.date >= np.datetime64(f"{first_season}-01-01")
    columns = (X.min(axis=1), X.max(axis=1), np.zeros(len(X), dtype=bool), outcome)
    turned = np.where(X[:, 0] < X[:, 1], 1, -1)
    margin = turned * np.diff(-data.games)[:, 0] / np.maximum(data.games.sum(axis=1), 1)
    columns += (data.date.astype(np.int64), data.round, margin)
    return by_date(*(column[kept] for column in columns))


def until(matches, share):
    """Number of matches up to and with the date on which a share of them is reached."""
    last = matches.day[int(np.ceil(share * len(matches.day))) - 1]
    return int(np.searchsorted(matches.day, last, side="right"))


PROBLEMS = {
    "football": lambda folder: football(),
    "atp_main": lambda folder: tennis(folder, levels=["main"]),
    "atp_2017": lambda folder: tennis(folder, 1991, 2017),
    "atp_2016": lambda folder: tennis(folder, 2011, 2016),
    "atp": tennis,
}
SPLIT_AT = {"atp_2017": "2011-08-28", "atp_2016": "2016-01-01"}


def load(name, folder):
    """The two parts of a data set."""
    matches = PROBLEMS[name](folder)
    n = until(matches, LEARNT)
    if name in SPLIT_AT:
        n = int(np.searchsorted(matches.day, np.datetime64(SPLIT_AT[name], "D").astype(np.int64)))
    return matches.rows(slice(0, n)), matches.rows(slice(n, None))


def scores(test, probabilities):
    """Log-loss and accuracy."""
    p = probabilities[np.arange(len(test.day)), test.outcome + 1]
    right = probabilities.argmax(axis=1) == test.outcome + 1
    return {
        "log-loss": float(-np.log(np.maximum(p, 1e-12)).mean()),
        "accuracy": float(right.mean()),
    }


def choose(method, start, fixed, train, n_calls):
    """Settings with the least log-loss on the end of the first part."""
    n = until(train, FITTED)
    parts, keys = (train.rows(slice(0, n)), train.rows(slice(n, None))), list(start)
    if not keys:
        return dict(fixed)

    def loss(theta):
        settings = dict(zip(keys, np.exp(theta).tolist(), strict=True))
        return scores(parts[1], method(*parts, **settings, **fixed))["log-loss"]

    corner = np.log(list(start.values()))
    simplex = corner + 0.4 * np.vstack([np.zeros(len(keys)), np.eye(len(keys))])
    options = {"maxfev": n_calls, "initial_simplex": simplex, "xatol": 0.02, "fatol": 1e-5}
    found = minimize(loss, corner, method="Nelder-Mead", options=options)
    return dict(zip(keys, np.exp(found.x).tolist(), strict=True)) | fixed


def rounded(settings):
    """Settings for the table."""
    return json.dumps(
        {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in settings.items()}
    )


def save(path, train, test):
    """Both parts in a file, for a process that runs one method."""
    whole = together(train, test)
    np.savez(path, n_train=len(train.day), **whole._asdict())


def saved(path):
    """The two parts from a file."""
    with np.load(path) as data:
        n, matches = int(data["n_train"]), Matches(*(data[key] for key in Matches._fields))
    return matches.rows(slice(0, n)), matches.rows(slice(n, None))


def row_of(label, n_calls, problem):
    """One baseline on one data set: settings chosen, then the second part predicted."""
    method, start, fixed = METHODS[label]
    train, test = saved(problem)
    before = peak()
    if train.draws:
        more = ALSO[method]
        start = {**start, **more} if start else start
        fixed = {**fixed, **FIXED_ALSO.get(label, {})}
    began = time.process_time()
    settings = choose(method, start, fixed, train, n_calls)
    chosen = time.process_time()
    probabilities = method(train, test, **settings)
    return {
        **scores(test, probabilities),
        "settings": rounded(settings),
        "choosing s": chosen - began,
        "seconds": time.process_time() - chosen,
        "start MiB": before,
        "peak MiB": peak(),
    }


def peer_settings(name, rows):
    """Label -> settings of the peers on a data set, from those that "filtered" has chosen."""
    found = [row for row in rows if (row["data"], row["method"]) == (name, "filtered")]
    if not found:
        return {}
    chosen = json.loads(found[0]["settings"])
    variance, drift = chosen["variance"], chosen["drift"]
    kickscore = {"method": "kickscore", "variance": variance, "drift": drift, "sweeps": 10}
    through = {
        "method": "trueskillthroughtime",
        "sigma": (2.0 * variance) ** 0.5,  # the noise of a match has variance 2 there
        "gamma": (2.0 * drift / YEAR) ** 0.5,
    }
    if "margin" in chosen:
        from scipy.special import ndtr

        kickscore |= {"margin": chosen["margin"], "home_variance": 1.0}
        through |= {"p_draw": float(2.0 * ndtr(chosen["margin"]) - 1.0)}
    return {"kickscore": kickscore, "trueskillthroughtime": through}


# Label -> package, settings besides those of `peer_settings`.
PEERS = {
    "TrueSkill Through Time, filtered": ("trueskillthroughtime", {}),
    "TrueSkill Through Time, converged every 4 years": (
        "trueskillthroughtime",
        {"sweeps": 2, "every": 1461, "later_sweeps": 1},
    ),
    "kickscore, Wiener, refit each year": (
        "kickscore",
        {"kernel": "wiener", "daily": False, "every": 365, "later_sweeps": 3},
    ),
    "kickscore, Wiener, each date": (
        "kickscore",
        {"kernel": "wiener", "every": 365, "later_sweeps": 1},
    ),
    "kickscore, constant + Matern 1/2, each date": (
        "kickscore",
        {"kernel": "matern12", "every": 365, "later_sweeps": 1},
    ),
    "kickscore, affine + Wiener, each date": (
        "kickscore",
        {"kernel": "affine_wiener", "slope": 1e-3, "every": 365, "later_sweeps": 1},
    ),
}


def run(command):
    """The last line of a process, as JSON."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["killed"])[-1][:120]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def peer_row(name, label, python, problem, given):
    """A peer on one data set, in a process of its own."""
    package, more = PEERS[label]
    base = peer_settings(name, stored())
    if not base:
        return {"error": 'run "filtered" first: it has the settings'}
    settings = {**base[package], **more, **given}
    target = problem.with_name("found.npz")
    row = run([python, str(PEER), str(problem), str(target), json.dumps(settings)])
    if "error" in row:
        return row
    _, test = saved(problem)
    return {**scores(test, np.load(target)["probabilities"]), "settings": rounded(settings), **row}


def stored():
    """Rows of earlier runs."""
    if not TARGET.is_file():
        return []
    with TARGET.open(newline="") as handle:
        return list(csv.DictReader(handle))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tennis", help="data home with a folder tennis_atp")
    parser.add_argument("--data", nargs="*", default=["football", "atp_main"], choices=PROBLEMS)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--peer-python", help="interpreter with kickscore and trueskillthroughtime")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--peer-settings", type=json.loads, default={}, help="JSON")
    parser.add_argument("--note", default="", help="what to add to the names of peers")
    parser.add_argument("--calls", type=int, default=CALLS, help="evaluations of a search")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(row_of(*json.loads(options.one))))
        return
    labels = options.methods + (options.peers if options.peer_python else [])
    for name in options.data:
        with tempfile.TemporaryDirectory() as scratch:
            problem = Path(scratch) / "problem.npz"
            parts = unless_missing(name, load, name, options.tennis)
            if parts is None:
                continue
            train, test = parts
            save(problem, train, test)
            sizes = {
                "data": name,
                "competitors": together(train, test).n_competitors,
                "learnt": len(train.day),
                "predicted": len(test.day),
            }
            del train, test, parts
            for label in labels:
                if label in METHODS:
                    told = json.dumps([label, options.calls, str(problem)])
                    row = run([sys.executable, __file__, "--one", told])
                else:
                    row = peer_row(name, label, options.peer_python, problem, options.peer_settings)
                    label += options.note
                row = {**sizes, "method": label, **row}
                print(row, flush=True)
                kept = [r for r in stored() if (r["data"], r["method"]) != (name, label)]
                report([*kept, row], TARGET, quiet=True)
    report(stored(), TARGET)


if __name__ == "__main__":
    main()
