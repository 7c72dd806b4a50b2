"""Processor seconds and peak memory of whole leaderboards, 10⁵ to 10⁸ votes of 200 competitors.

    python benchmarks/leaderboard/leaderboard_scale.py --peer-python /path/to/env/bin/python

Every row is a process of its own on one thread: votes with ties are made, fitted with learned
hyperparameters, and the board with its intervals is drawn. "start MiB" is the memory before the
fit, with the packages and the votes; "peak MiB" the most there was. "pairs in order" is the share
of pairs of competitors that the board orders as the truth does.

- names: nothing but who met whom; as positions in a table (int64) or as an array of names.
- controls: four numbers beside the name on each side, different in every vote: a kernel on the id
  and a linear one on the controls. "reading" is what stands before the engine: X and y checked,
  distinct items found, answers counted.
- counted: a stream of names in pieces of 10⁵ votes, of which nothing but the counts of distinct
  answers is kept; at the end one fit with these as sample weights.
- partial_fit: the same stream by ``partial_fit``, a piece of 10⁵ votes at a time.
- judges: 100 votes a judge without ties, and how reliable each judge is.

The rows of 10⁸ votes are not run: their seconds are those of the largest run, in proportion to the
votes beyond its fit (marked "extrapolated"). Peers run beside, if the interpreter of an environment
with arena-rank and evalica is given.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _leaderboard_votes import COMPETITORS, NOISE, agreement, names, pieces, utilities, votes
from common import RESULTS, report

PEER = Path(__file__).with_name("_peer_leaderboards.py")
PEERS = ("arena-rank", "evalica", "evalica newman")
VOTES_A_JUDGE = 100


def now():
    """Most memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def regressor(**options):
    """The estimator of all rows."""
    from skpref import PairwisePreferenceRegressor

    return PairwisePreferenceRegressor(tie_threshold=0.1, random_state=0, **options)


def table():
    """The competitors without features."""
    from skpref.duels import ItemTable

    return ItemTable.from_names(names())


def finished(model, seconds, start, **more):
    """The row of a fitted model: the board is drawn."""
    from skpref.inspection import leaderboard

    began = time.process_time()
    board = leaderboard(model)
    seconds_of_board = time.process_time() - began
    scores = np.empty(COMPETITORS)
    scores[board.position] = board.utility
    return {
        "fit s": seconds,
        "board s": seconds_of_board,
        "start MiB": start,
        "peak MiB": now(),
        "pairs in order": agreement(scores),
        **more,
    }


def of_names(n_votes, as_names):
    """Votes as positions in a table, or as names."""
    pairs, y, _ = votes(n_votes)
    model = regressor(items=table())
    X, start = (names()[pairs] if as_names else pairs), now()
    began = time.process_time()
    model.fit(X, y)
    return finished(model, time.process_time() - began, start)


def of_controls(n_votes, engine):
    """Votes with controls; without ``engine`` what stands before it."""
    from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

    from skpref.data import check_training
    from skpref.kernels import Identity, OnColumns
    from skpref.likelihoods import Probit

    pairs, y, controls = votes(n_votes, 4)
    X = np.concatenate([pairs[..., None].astype(np.float64), controls], axis=2)
    del controls
    slopes = ConstantKernel(0.1) * OnColumns(DotProduct(0.0, "fixed"), [1, 2, 3, 4])
    model = regressor(kernel=OnColumns(Identity(), [0]) + slopes, id_column=0)
    start = now()
    began = time.process_time()
    if engine:
        model.fit(X, y)
        seconds = time.process_time() - began
        scores = model.predict(
            np.column_stack([np.arange(COMPETITORS), np.zeros((COMPETITORS, 4))])
        )
        agreed = {"pairs in order": agreement(scores)}
    else:
        training = check_training(model, X, y, likelihood=Probit(tie_threshold=0.1))
        _ = training.comparisons.rows.margins
        seconds, agreed = time.process_time() - began, {}
    return {"fit s": seconds, "start MiB": start, "peak MiB": now(), **agreed}


def of_counts(n_votes):
    """A stream of votes of which counts are kept."""
    model, counts = regressor(items=table()), np.zeros(3 * COMPETITORS**2)
    start, reading = now(), 0.0
    for pairs, y, _ in pieces(n_votes):
        began = time.process_time()
        code = (pairs[:, 0] * COMPETITORS + pairs[:, 1]) * 3 + (y + 1)
        counts += np.bincount(code, minlength=len(counts))
        reading += time.process_time() - began
    began = time.process_time()
    seen = np.flatnonzero(counts)
    pairs = np.column_stack(np.divmod(seen // 3, COMPETITORS))
    model.fit(pairs, seen % 3 - 1, sample_weight=counts[seen])
    return finished(model, reading + time.process_time() - began, start, **{"reading s": reading})


def of_pieces(n_votes):
    """A stream of votes by ``partial_fit``."""
    model = regressor(items=table(), inference="svi")
    start, seconds = now(), 0.0
    for pairs, y, _ in pieces(n_votes):
        began = time.process_time()
        model.partial_fit(pairs, y)
        seconds += time.process_time() - began
    return finished(model, seconds, start, **{"reading s": seconds})


def of_judges(n_votes):
    """Votes of judges, some of whom answer at random, and how reliable they are found."""
    from skpref import PairwisePreferenceRegressor

    rng, n_judges = np.random.default_rng(2), n_votes // VOTES_A_JUDGE
    reliability = np.exp(0.7 * rng.standard_normal(n_judges))
    reliability[rng.random(n_judges) < 0.1] = 0.0
    judge = np.repeat(np.arange(n_judges), VOTES_A_JUDGE)
    pairs, _, _ = votes(n_votes)
    utility = utilities()
    margin = reliability[judge] * (utility[pairs[:, 0]] - utility[pairs[:, 1]])
    y = (margin + np.sqrt(2.0 * NOISE) * rng.standard_normal(n_votes) > 0.0).astype(int)
    model, start = PairwisePreferenceRegressor(items=table(), random_state=0), now()
    began = time.process_time()
    model.fit(pairs, y, judges=judge)
    seconds = time.process_time() - began
    found = np.corrcoef(model.judges_.reliability, reliability)[0, 1]
    return finished(model, seconds, start, **{"correlation of reliability": float(found)})


TASKS = {
    "names, positions": lambda n: of_names(n, as_names=False),
    "names, as names": lambda n: of_names(n, as_names=True),
    "4 controls, reading": lambda n: of_controls(n, engine=False),
    "4 controls": lambda n: of_controls(n, engine=True),
    "names, counted": of_counts,
    "names, partial_fit": of_pieces,
    "judges": of_judges,
}


def run(command):
    """The last line of a process, as JSON."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["killed"])[-1][:120]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def extrapolated(row, n_votes):
    """A row of a stream for more votes: reading grows with them, all else stays."""
    more = {**row, "votes": n_votes, "task": f"{row['task']} (extrapolated)"}
    reading = row["reading s"] * n_votes / row["votes"]
    more["fit s"] = row["fit s"] - row["reading s"] + reading
    more["reading s"] = reading
    for name in ("pairs in order",):
        more.pop(name, None)
    return more


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", help="interpreter with arena-rank and evalica")
    parser.add_argument("--votes", type=float, nargs="*", default=[1e5, 1e6, 1e7])
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--largest-controls", type=float, default=1e6)
    parser.add_argument("--largest-judges", type=float, default=1e6)
    parser.add_argument("--largest-pieces", type=float, default=1e6)
    parser.add_argument("--largest-peer", type=float, default=1e6)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        setting = json.loads(options.one)
        print(json.dumps(TASKS[setting["task"]](setting["votes"])))
        return
    rows, found = [], {}
    limits = {
        "4 controls, reading": options.largest_controls,
        "4 controls": options.largest_controls,
        "judges": options.largest_judges,
        "names, partial_fit": options.largest_pieces,
    }
    for task in options.tasks:
        sizes = [int(n) for n in options.votes if n <= limits.get(task, np.inf)]
        for n_votes in sizes:
            told = json.dumps({"task": task, "votes": n_votes})
            row = run([sys.executable, __file__, "--one", told])
            rows.append({"method": "skpref", "task": task, "votes": n_votes, **row})
            print(rows[-1], flush=True)
            for peer in PEERS if options.peer_python and n_votes <= options.largest_peer else ():
                n_controls = 4 if task == "4 controls" else 0
                if task not in ("names, as names", "4 controls") or (
                    n_controls and peer != PEERS[0]
                ):
                    continue
                told = {"method": peer, "votes": n_votes, "controls": n_controls}
                row = run([options.peer_python, str(PEER), json.dumps(told)])
                found[peer] = row.pop("version", None)
                rows.append({"method": peer, "task": task, "votes": n_votes, **row})
                print(rows[-1], flush=True)
        if sizes and sizes[-1] >= 10**6 and "reading s" in rows[-1]:
            rows.append(extrapolated(rows[-1], 10**8))
    report(rows, RESULTS / "leaderboard_scale.csv", **found)


if __name__ == "__main__":
    main()
