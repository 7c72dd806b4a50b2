"""Doubles: are players, whose strengths add up, better than pairs as one item each?

    python doubles.py --folder FOLDER

FOLDER has the files ``atp_matches_doubles_2000.csv`` to ``..._2020.csv`` of
https://github.com/JeffSackmann/tennis_atp (CC BY-NC-SA 4.0). The dates up to the one on which 70 %
of the matches are reached are for learning; every later date is predicted from all that was played
before it, and learned from afterwards. A date is the first day of a tournament.

- players: `from_teams`, the utility of a pair is the sum of its players';
- pairs: each pair is an item of its own;
- Elo: the mean of the ratings of a pair's players, who win and lose the same; K is chosen on the
  last 15 % of the first part.

Log-loss in nats, of all matches and of those of a pair that had not met anyone before; seconds are
those of the processor.
"""

import argparse
import csv
import itertools
import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported

import numpy as np
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, leave, report

TARGET = RESULTS / "doubles.csv"
LEARNT, FITTED, YEAR = 0.70, 0.85, 365.25
ROUNDS = ("Q1", "Q2", "Q3", "R128", "R64", "R32", "R16", "RR", "QF", "SF", "BR", "F")
STEPS = np.geomspace(8.0, 128.0, 9)


def played(folder):
    """Matches in the order of play: day, winners, losers."""
    found = []
    for path in sorted(Path(folder).glob("atp_matches_doubles_*.csv")):
        with path.open(newline="", encoding="utf-8") as handle:
            for row in csv.DictReader(handle):
                if "W/O" in row["score"] or not row["score"]:
                    continue
                date = row["tourney_date"]
                day = np.datetime64(f"{date[:4]}-{date[4:6]}-{date[6:]}", "D").astype(int)
                order = ROUNDS.index(row["round"]) if row["round"] in ROUNDS else 0
                sides = [
                    tuple(sorted(row[f"{side}{k}_id"] for k in (1, 2)))
                    for side in ("winner", "loser")
                ]
                if len({*sides[0], *sides[1]}) == 4:
                    found.append((int(day), order, *sides))
    found.sort(key=lambda match: match[:2])
    return found


def sides_of(matches):
    """First and second pair and whether the first won; who comes first says nothing."""
    first, second = [], []
    won = np.array([winners < losers for _, _, winners, losers in matches])
    for (_, _, winners, losers), ahead in zip(matches, won, strict=True):
        first.append(winners if ahead else losers)
        second.append(losers if ahead else winners)
    return first, second, won


def dates(day):
    """Pieces of one date each."""
    cuts = np.flatnonzero(np.diff(day)) + 1
    return itertools.pairwise([0, *cuts.tolist(), len(day)])


def elo(first, second, won, day, step):
    """Probabilities that the first wins, of all matches."""
    rating, found = {}, np.zeros(len(won))
    scale = np.log(10.0) / 400.0
    for start, stop in dates(day):
        lead = [
            0.5 * sum(rating.get(p, 0.0) for p in one) - 0.5 * sum(rating.get(p, 0.0) for p in two)
            for one, two in zip(first[start:stop], second[start:stop], strict=True)
        ]
        found[start:stop] = expit(scale * np.array(lead))
        for k in range(start, stop):
            now = 0.5 * sum(rating.get(p, 0.0) for p in first[k])
            now -= 0.5 * sum(rating.get(p, 0.0) for p in second[k])
            gain = step * (won[k] - expit(scale * now))
            for p in first[k]:
                rating[p] = rating.get(p, 0.0) + gain
            for p in second[k]:
                rating[p] = rating.get(p, 0.0) - gain
    return found


def losses(probability, won):
    """Of each match."""
    return -np.log(np.where(won, probability, 1.0 - probability))


def learned(model, X, won, when, n):
    """Probabilities that the first wins of the matches from ``n`` on, one date ahead."""
    model.fit(X[:n], won[:n], time=when[:n])
    print(model.kernel_, model.likelihood_, flush=True)
    found = np.full(len(won), 0.5)
    for start, stop in dates(when[n:]):
        at = slice(n + start, n + stop)
        found[at] = model.predict_proba(X[at], time=when[at])[:, 1]
        model.partial_fit(X[at], won[at], time=when[at])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True)
    options = parser.parse_args()
    from skpref import ItemTable, PairwisePreferenceRegressor
    from skpref.duels import from_teams
    from skpref.inference import EP

    matches = played(options.folder)
    if not matches:
        leave(f"no files atp_matches_doubles_*.csv in {options.folder}")
    day = np.array([match[0] for match in matches])
    first, second, won = sides_of(matches)
    last = day[int(np.ceil(LEARNT * len(day))) - 1]
    n = int(np.searchsorted(day, last, side="right"))
    seen = set()
    new = np.zeros(len(won), dtype=bool)
    for start, stop in dates(day):
        for k in range(start, stop):
            new[k] = first[k] not in seen or second[k] not in seen
        seen.update(first[start:stop], second[start:stop])
    duels = from_teams(first, second)
    pairs = sorted({*first, *second})
    number = {pair: k for k, pair in enumerate(pairs)}
    as_items = np.array([[number[a], number[b]] for a, b in zip(first, second, strict=True)])
    engine, rows = EP(items="independent"), []
    methods = {
        "players, Matern 1/2": (PairwisePreferenceRegressor, duels.X, duels.params, "matern12"),
        "players, Wiener": (PairwisePreferenceRegressor, duels.X, duels.params, "wiener"),
        "pairs, Matern 1/2": (
            PairwisePreferenceRegressor,
            as_items,
            {"items": ItemTable.from_names([" ".join(pair) for pair in pairs])},
            "matern12",
        ),
    }
    for name, (make, X, params, drift) in methods.items():
        began = time.process_time()
        model = make(**params, drift=drift, inference=engine)
        found = losses(learned(model, X, won, day / YEAR, n), won)
        seconds = time.process_time() - began
        rows.append((name, found, seconds))
    began = time.process_time()
    fitted = int(FITTED * n)
    chosen = min(
        STEPS, key=lambda step: losses(elo(first, second, won, day, step), won)[fitted:n].mean()
    )
    found = losses(elo(first, second, won, day, chosen), won)
    rows.append((f"Elo, K = {chosen:.0f}", found, time.process_time() - began))
    table = [
        {
            "method": name,
            "learned from": n,
            "predicted": len(won) - n,
            "log-loss": round(float(found[n:].mean()), 5),
            "of new pairs": round(float(found[n:][new[n:]].mean()), 5),
            "new pairs": int(new[n:].sum()),
            "seconds": round(seconds, 2),
        }
        for name, found, seconds in rows
    ]
    report(table, TARGET)


if __name__ == "__main__":
    main()
