"""How far many users reach: seconds, memory and held-out log-loss of fits to people's sushi.

    python benchmarks/users/collaborative_scale.py [--users 250 500 ...] [--sets a b]
        [--methods cp cpu] [--learn-on auto 2000 None] [--fresh]

Every user gives the 45 duels of a ranking of ten kinds; "a": the same ten for all, "b": ten of a
hundred. In every row a hundred further people are asked half of theirs, and the rest of these is
held out: the log-loss tells what the others' answers are worth to them. (Of 5000 users, which are
all that there are, nothing is held out.) Methods are those of
``CollaborativePreferenceRegressor``; "names" is ``cp`` where nothing but their names is known of
the items. Every row is a process of its own, so that its peak memory is its own; rows that the CSV
holds are kept. Seconds are of the whole fit, hyperparameters included, on one core: by the clock,
and of the processor. The slope is that of the logarithm of processor time, less that of learning
hyperparameters, over the logarithm of the number of users: 1 is a constant cost a user.
"""

import argparse
import csv
import os
import resource
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np

from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.datasets import fetch_sushi
from skpref.duels import ItemTable
from skpref.metrics import answer_log_loss

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, data_folder, few, report, unless_missing

KEYS = ("set", "method", "users", "n_learning_answers")
EVERYBODY = 5000
HELD_OUT = few(100, 5)
OF_FEATURES = ("cpu", "bonilla")


def answers(subset, n_users):
    """Duels of the first people of a fixed order, who they are, and which duels are held out."""
    rng = np.random.default_rng(0)
    people = rng.permutation(EVERYBODY)[: n_users + HELD_OUT]
    data = fetch_sushi(
        subset=subset, users=people, data_home=data_folder(), download_if_missing=False
    )
    held = (rng.random(len(data.y)) < 0.5) & (data.user < HELD_OUT)
    held &= n_users < EVERYBODY
    columns = [k for k, name in enumerate(data.user_feature_names) if name != "seconds"]
    return data, data.users[:, columns], held


class Clock:
    """A callback of scikit-learn that notes when the first pass began."""

    def __init__(self):
        self.first = None

    def setup(self, estimator, context):
        """Nothing is to be prepared."""

    def on_fit_task_begin(self, estimator, context, **_):
        """Of the fit, of an evaluation of the evidence, or of a pass."""

    def on_fit_task_end(self, estimator, context, **_):
        """The first pass is counted with what came before it."""
        if context.task_name == "pass" and self.first is None:
            self.first = time.process_time()
        return False

    def teardown(self, estimator, context):
        """Nothing is to be closed."""


def measured(setting):
    """What a row has beside its setting."""
    data, people, held = answers(setting["set"], setting["users"])
    items = data.item_table
    if setting["method"] == "names":
        items = ItemTable.from_names([f"item {k}" for k in range(len(items))])
    n_learning_answers = setting["n_learning_answers"]
    n_learning_answers = (
        None
        if n_learning_answers == "None"
        else n_learning_answers
        if n_learning_answers == "auto"
        else int(n_learning_answers)
    )
    method = "cp" if setting["method"] == "names" else setting["method"]
    options = {"user_features": people} if method in OF_FEATURES else {}
    model = CollaborativePreferenceRegressor(
        items=items, method=method, n_learning_answers=n_learning_answers, random_state=0, **options
    )
    clock, before = Clock(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, began_process = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model.set_callbacks(clock).fit(data.X[~held], data.y[~held], users=data.user[~held])
    process, wall = time.process_time() - began_process, time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    learned = clock.first - began_process
    losses = {}
    if held.any():
        X, y = data.X[held], data.y[held]
        own, anybody = model.predict_proba(X, users=data.user[held]), model.predict_proba(X)
        losses = {"log-loss": answer_log_loss(y, own), "population's": answer_log_loss(y, anybody)}
    n = len(np.unique(data.user))
    return {
        "duels": int((~held).sum()),
        "wall": round(wall, 2),
        "process": round(process, 2),
        "of it learning": round(learned, 2),
        "passes": model.n_iter_,
        "ms a pass": round(1e3 * (process - learned) / max(model.n_iter_ - 1, 1), 1),
        "ms a user": round(1e3 * (process - learned) / n, 2),
        "peak MiB": round(peak / 1024),
        "of it data MiB": round(before / 1024),
        **{name: round(loss, 4) for name, loss in losses.items()},
        "note": " | ".join(sorted({str(one.message).partition(". ")[0] for one in warned})),
    }


def slopes(rows):
    """Slope of log seconds over log users of each set and method."""
    found = {}
    for row in rows:
        if row["n_learning_answers"] == "auto":
            found.setdefault((row["set"], row["method"]), []).append(row)
    for (subset, method), some in found.items():
        if len(some) < 2:
            continue
        users = np.log([min(int(row["users"]) + HELD_OUT, EVERYBODY) for row in some])
        each = [float(row["ms a pass"]) for row in some]
        whole = [float(row["process"]) - float(row["of it learning"]) for row in some]
        by_pass, by_fit = (np.polyfit(users, np.log(seconds), 1)[0] for seconds in (each, whole))
        print(f"set {subset}, {method}: seconds a pass ~ users^{by_pass:.2f}, all ~ {by_fit:.2f}")


def kept(path):
    """Rows that the CSV holds, by their setting."""
    if not path.exists():
        return {}
    with path.open(newline="") as stream:
        return {tuple(row[key] for key in KEYS): row for row in csv.DictReader(stream)}


def ordered(rows):
    """By set and method, then by size."""
    keys = ("set", "method", "n_learning_answers")
    return sorted(rows, key=lambda row: [*(row[key] for key in keys), int(row["users"])])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", nargs="+", type=int, default=[250, 500, 1000, 2000, 4900, 5000])
    parser.add_argument("--sets", nargs="+", choices=["a", "b"], default=["a", "b"])
    parser.add_argument("--methods", nargs="+", default=["cp", "cpu", "names"])
    parser.add_argument("--learn-on", nargs="+", default=["auto"])
    parser.add_argument("--fresh", action="store_true", help="measure also what the CSV has")
    parser.add_argument("--out", type=Path, default=RESULTS / "collaborative_scale.csv")
    options = parser.parse_args()
    rows = kept(options.out)
    for subset in options.sets:
        for method in options.methods:
            for n_learning_answers in options.learn_on:
                for users in options.users:
                    key = (subset, method, str(users), n_learning_answers)
                    if key in rows and not options.fresh:
                        continue
                    setting = dict(
                        zip(KEYS, (subset, method, users, n_learning_answers), strict=True)
                    )
                    with ProcessPoolExecutor(1, get_context("fork")) as child:
                        found = unless_missing("Sushi", child.submit(measured, setting).result)
                    if found is None:
                        continue
                    rows[key] = setting | found
                    report(ordered(rows.values()), options.out, quiet=True)
                    print(*rows[key].values(), flush=True)
    report(ordered(rows.values()), options.out)
    slopes(ordered(rows.values()))


if __name__ == "__main__":
    main()
