"""Tennis: players who rise and fade
=================================

Tennis: players who rise and fade, a tournament ahead.

The main draws of the men's tour since 2005 are fetched (20 files, 15 MB; their terms forbid
commercial use). Each player has a strength that drifts, how fast is learned from the matches. The
last two seasons are predicted one date ahead: a tournament is predicted by what was known before
it, then `partial_fit` learns of its matches, in milliseconds. Elo's ratings do the same beside it.

Run with ``--data FOLDER`` to look for the files there, or fetch them to there, and with ``--save
FILE`` to write the picture of strengths through time.

Where its data were not at hand, the page of this script in the documentation has no output.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.datasets import fetch_atp_matches
from skpref.inference import EP
from skpref.inspection import leaderboard, trajectories
from skpref.metrics import answer_log_loss, score_by_group
from skpref.plotting import TrajectoryDisplay

FAMOUS = ["Roger Federer", "Rafael Nadal", "Novak Djokovic", "Andy Murray", "Carlos Alcaraz"]
FIRST, SPLIT = 2005, np.datetime64("2023-01-01")
STEP = 32.0  # Elo's K

parser = argparse.ArgumentParser(description="Tennis players through time.")
parser.add_argument("--data", metavar="FOLDER", help="where the files are, or are fetched to")
parser.add_argument("--save", metavar="FILE", help="write the picture to FILE (.png, .svg, …)")
told = parser.parse_args()


# %%
# Matches and names.
def names_of(tennis):
    """Names of players, the few that two players share with the number of each."""
    names, count = np.unique(tennis.player_names, return_counts=True)
    shared = set(names[count > 1].tolist())
    pairs = zip(tennis.player_names, tennis.player_ids.tolist(), strict=True)
    return [f"{name} {number}" if name in shared else name for name, number in pairs]


tennis = fetch_atp_matches(levels=["main"], first_season=FIRST, data_home=told.data)
X, y, date = tennis.X, tennis.y, tennis.date
past = date < SPLIT
model = PairwisePreferenceRegressor(
    items=ItemTable.from_names(names_of(tennis)),
    drift="matern12",
    inference=EP(items="independent"),
    n_learning_answers=10_000,
)
model.fit(X[past], y[past], time=date[past])
print(f"{past.sum()} matches of {len(model.items_)} players; learned: {model.kernel_}\n")


# %%
# One date ahead, beside Elo.
def elo(tennis, days):
    """P(the first wins) of each match by ratings that are moved after each date."""
    rating = np.zeros(len(tennis.player_names))
    proba = np.empty(len(tennis.y))
    for day in np.unique(days):
        rows = slice(*np.searchsorted(days, [day, day + 1]))
        first, second = tennis.X[rows].T
        proba[rows] = 1.0 / (1.0 + 10.0 ** ((rating[second] - rating[first]) / 400.0))
        step = STEP * (tennis.y[rows] - proba[rows])
        np.add.at(rating, first, step)
        np.add.at(rating, second, -step)
    return proba


proba = np.empty(len(y))
for day in np.unique(date[~past]):
    rows = date == day
    proba[rows] = model.predict_proba(X[rows], time=day)[:, 1]
    model.partial_fit(X[rows], y[rows], time=day)
days = date.astype(np.int64)
by_elo = elo(tennis, days)
print("Log-loss one date ahead   drifting    Elo   matches")
later, year = ~past, date[~past].astype("datetime64[Y]")
drifting, rated = (score_by_group(y[later], found[later], year) for found in (proba, by_elo))
rows = zip(drifting.groups, drifting.score, rated.score, drifting.size, strict=True)
for which, one, other, n in rows:
    print(f"  {which!s:22s} {one:10.4f} {other:8.4f} {n:7d}")
whole = (answer_log_loss(y[later], found[later]) for found in (proba, by_elo))
print("  both                   {:10.4f} {:8.4f} {:7d}\n".format(*whole, later.sum()))

# %%
# The best of those who played in the last year.
recent = np.unique(X[date > date.max() - np.timedelta64(365, "D")])
board = leaderboard(model, recent, unit="elo", n_draws=2000)
print("The best now, in points of Elo above the mean of who played in the last year")
for name, mean, low, high in list(
    zip(board.names, board.utility, board.lower, board.upper, strict=True)
)[:5]:
    print(f"  {name:22s} {mean:4.0f}  [{low:4.0f}, {high:4.0f}]")

# %%
# Careers. Later matches tell of earlier times too: the posterior is smoothed first.
model.posterior_ = model.posterior_.smoothed()
years = np.arange("2006", "2025", 3, dtype="datetime64[Y]")
found = trajectories(model, FAMOUS, years, relative=FAMOUS[0], unit="elo")
print(f"\nPoints of Elo above {FAMOUS[0]} at the start of")
print(" " * 16 + "".join(f"{when!s:>8}" for when in years))
for name, course in zip(found.names, found.utility, strict=True):
    print(f"  {name:14s}" + "".join(f"{value:8.0f}" for value in course))

# %%
# The same as a picture.
display = TrajectoryDisplay.from_estimator(model, FAMOUS, unit="elo")
if told.save is not None:
    display.figure_.savefig(told.save, dpi=120, facecolor="white")
plt.show()
