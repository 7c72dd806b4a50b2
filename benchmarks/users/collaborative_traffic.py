"""What a collaborative fit sends to workers that share no memory, and gets back, in megabytes.

    python benchmarks/users/collaborative_traffic.py [--users 1200] [--passes 4]

Sushi, set B (a hundred kinds, 45 duels of every user). The tasks are done here one after another,
and the bytes that joblib would be given and handed back are counted, of the first pass and of the
last. Beside them what the tastes of all users take, which stay with the workers.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import ClassVar
from unittest import mock

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

from joblib import parallel_config
from sklearn.exceptions import ConvergenceWarning

from skpref.collaborative import CollaborativePreferenceRegressor, _fit, _teams
from skpref.datasets import fetch_sushi
from skpref.duels import ItemTable
from skpref.inference import _workers

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, data_folder, few, leave, report, unless_missing


class Counted:
    """In place of `joblib.Parallel`: does the tasks here and counts bytes, a row a call."""

    calls: ClassVar[list] = []

    def __init__(self, *args, **options):
        pass

    def __call__(self, tasks):
        sent = back = count = 0
        found = []
        for work, args, options in tasks:
            _, _, question, team = args
            sent += sum(map(len, question)) + len(team or b"")
            found.append(work(*args, **options))
            back += 0 if found[-1] is None else len(found[-1])
            count += 1
        Counted.calls.append((count, sent, back))
        return found


def sushi(users):
    """Rankings of these people, set B."""
    return fetch_sushi(subset="b", users=users, data_home=data_folder(), download_if_missing=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1200)
    parser.add_argument("--passes", type=int, default=4)
    options = parser.parse_args()
    data = unless_missing("Sushi", sushi, range(options.users))
    if data is None:
        return
    passes, held = [], []

    class Away(_teams.Crew):
        def condition(self, sites, basis):
            passes.append(len(Counted.calls))
            return super().condition(sites, basis)

        def collect_tastes(self, sites, basis):
            tastes = super().collect_tastes(sites, basis)
            held.append(sum(part.nbytes for team in tastes for each in team for part in each))
            return tastes

    model = CollaborativePreferenceRegressor(
        items=ItemTable(data.item_table), optimizer=None, max_iter=options.passes
    )
    with (
        warnings.catch_warnings(),
        mock.patch.object(_workers, "Parallel", Counted),
        mock.patch.object(_fit, "Crew", Away),
        mock.patch.object(_teams, "_TEAM", few(_teams._TEAM, 40)),
        parallel_config("loky", n_jobs=2),
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X, data.y, users=data.user)
    if not passes:
        leave("so few users are one team, and nothing is sent: take more")
    rows = []
    for name, begin, end in (
        ("first", passes[0], passes[1]),
        ("later", passes[-1], len(Counted.calls)),
    ):
        calls = Counted.calls[begin:end]
        rows.append(
            {
                "pass": name,
                "users": options.users,
                "teams": max(count for count, _, _ in calls),
                "sent MB": round(sum(sent for _, sent, _ in calls) / 1e6, 2),
                "back MB": round(sum(back for _, _, back in calls) / 1e6, 2),
                "tastes MB": round(held[-1] / 1e6, 1),
            }
        )
    report(rows, RESULTS / "collaborative_traffic.csv")


if __name__ == "__main__":
    main()
