"""Football: draws, home advantage, strengths that drift
=====================================================

Football: draws and home advantage, and teams whose strength changes.

Ten years of international matches are in the package. A draw is a tie: the better side of the day
was better by less than a threshold. The team at home has an advantage, except on neutral ground,
which ``order=`` says match by match. Both are learned with the strengths.

Teams get better and worse: with ``time=`` and ``drift=`` each has a strength that moves, and how
fast is learned too. So old matches need not be left out, they count the less the older they are;
and after each day of matches ``partial_fit`` goes on from there. The last year is predicted with
strengths that are constant and with such that drift, one day ahead.

Run with ``--save FILE`` to write the picture of strengths through time.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.datasets import load_football
from skpref.inspection import trajectories
from skpref.metrics import answer_log_loss, score_by_group
from skpref.plotting import TrajectoryDisplay

# Three teams met nobody else in these years. Nothing here compares them with others.
warnings.filterwarnings("ignore", "The answers fall into")

FAVOURITES = ("Spain", "Argentina", "France", "England", "Brazil")

# %%
# The matches. Those of the last year are to be predicted.
matches = load_football()
years_ago = (matches.date.max() - matches.date) / np.timedelta64(365, "D")
past, after = years_ago > 1.0, years_ago <= 1.0
table = ItemTable.from_names(matches.team_names)


# %%
# Three functions: a model of constant strengths; its predictions, where it is fitted again every
# month; and predictions by strengths that drift, where `partial_fit` learns day by day.
def static(matches, rows, table, **held):
    """A model of constant strengths, fitted to some matches."""
    model = PairwisePreferenceRegressor(
        items=table, tie_threshold=0.3, order_effect_bounds=(-2.0, 2.0), **held
    )
    return model.fit(matches.X[rows], matches.y[rows], order=matches.order[rows])


def month_ahead(matches, past, after, table):
    """Probabilities of later matches, by constant strengths that are fitted again every month."""
    found = np.empty((len(matches.y), 3))
    held, month = {}, matches.date.astype("datetime64[M]")
    for now in np.unique(month[after]):
        rows = after & (month == now)
        model = static(matches, past, table, **held)
        held = {"likelihood": model.likelihood_, "optimizer": None}  # learned once
        found[rows] = model.predict_proba(matches.X[rows], order=matches.order[rows])
        past = past | rows
    return found[after]


def day_ahead(matches, model, after):
    """Probabilities of later matches by strengths that drift, which learn of them day by day."""
    found = np.empty((len(matches.y), 3))
    for day in np.unique(matches.date[after]):
        rows = after & (matches.date == day)
        X, order = matches.X[rows], matches.order[rows]
        found[rows] = model.predict_proba(X, order=order, time=day)
        model.partial_fit(X, matches.y[rows], order=order, time=day)
    return found[after]


# %%
# Strengths that drift, of all matches before the last year.
model = PairwisePreferenceRegressor(
    items=table,
    drift="matern12",
    tie_threshold=0.3,
    order_effect_bounds=(-2.0, 2.0),
    n_learning_answers=1000,  # hyperparameters; on all matches that takes a minute
)
X, y, order = matches.X[past], matches.y[past], matches.order[past]
model.fit(X, y, order=order, time=matches.date[past])

deviation = np.sqrt(2.0 * model.noise_variance_)  # of the noise on a difference of two teams
print(
    f"{past.sum()} matches of {len(table)} teams; in deviations of one match's luck:\n"
    f"  to be at home is worth {model.order_effect_ / deviation:.2f}, "
    f"a difference below {model.tie_threshold_ / deviation:.2f} is a draw\n"
)

# %%
# The last year, predicted in four ways: at once or as it goes on, by strengths that are constant or
# that drift.
X, y, order = matches.X[after], matches.y[after], matches.order[after]
proba = {
    "constant": (
        static(matches, past, table).predict_proba(X, order=order),
        month_ahead(matches, past, after, table),
    ),
    "drifting": (
        model.predict_proba(X, order=order, time=matches.date[after]),
        day_ahead(matches, model, after),
    ),
}
print(f"The {after.sum()} matches of the last year, log-loss (guessing: {np.log(3.0):.3f}):")
print("  strengths   year ahead  going on (constant by the month, drifting by the day)")
for name, found in proba.items():
    losses = [answer_log_loss(y, each) for each in found]
    print(f"  {name:10s} {losses[0]:11.3f} {losses[1]:9.3f}")
_, ahead = proba["drifting"]
print(f"  draws predicted {ahead[:, 1].mean():.1%}, seen {(y == 0).mean():.1%}")
years = score_by_group(y, ahead, matches.date[after].astype("datetime64[Y]"))
said = zip(years.groups, years.score, years.size, strict=True)
print("  drifting: " + ", ".join(f"{loss:.3f} in {year} ({n})" for year, loss, n in said))

# %%
# What a match to come would bring: home advantage is learned, and left out on neutral ground.
first, second = FAVOURITES[0], FAVOURITES[1]
print(f"\n{first} against {second} now: {second} wins, draw, {first} wins")
for where, side in (("at home", 1), ("neutral", 0), ("away", -1)):
    lost, drawn, won = model.predict_proba([[first, second]], order=[side])[0]
    print(f"  {where:8s} {lost:.2f}  {drawn:.2f}  {won:.2f}")

# %%
# Five teams that play on one day, each for itself: the chance of each to be the best.
chances = model.predict_proba([list(FAVOURITES)], order=[0])[0]
print("\nBest of five on one day:")
for name, chance in sorted(zip(FAVOURITES, chances, strict=True), key=lambda pair: -pair[1]):
    print(f"  {name:10s} {chance:.2f}")

# %%
# How strengths went through time. Later matches tell of earlier times, too: the posterior is
# smoothed first.
model.posterior_ = model.posterior_.smoothed()
when = np.array(["2017-01-01", "2020-01-01", "2023-01-01", "2026-01-01"], dtype="datetime64[D]")
found = trajectories(model, list(FAVOURITES), when)
print("\nStrength above the mean team at the start of: " + " ".join(f"{day!s:.4}" for day in when))
for name, course in zip(found.names, found.utility, strict=True):
    print(f"  {name:42s}" + "".join(f" {value:4.1f}" for value in course))

# %%
# The same as a picture.
display = TrajectoryDisplay.from_estimator(model, list(FAVOURITES), answers=False)
if "--save" in sys.argv:
    display.figure_.savefig(sys.argv[-1], dpi=120, facecolor="white")
plt.show()
