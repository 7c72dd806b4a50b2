"""From a table of contests to a scored model
==========================================

From a table of contests to a tuned, scored model.

A table as people have it, one contest a row: who met whom (texts), what each side was like on that
day (age, home or away, days of rest, a style: numbers and categories, some missing), and who won.
Who a player is and what a player is like are kept apart: the players' own strength belongs to
their ids, however their features change from contest to contest.

`learned` is the whole way, from the table to the held-out score, in some twenty lines; the table is
made up by `contests`. Scores are of later contests among known players, and of contests in
which somebody is new, each beside those of the same model, tuned as well, without ids. Needs
pandas; takes some seconds.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skpref import PairwisePreferenceRegressor
from skpref.duels import from_columns
from skpref.model_selection import ItemShuffleSplit
from skpref.preprocessing import Itemwise


# %%
# The table.
def contests(n=320, n_players=20, seed=0):
    """A made-up table of contests with gaps."""
    rng = np.random.default_rng(seed)
    names = np.array([f"player {i:02d}" for i in range(n_players)])
    strength, born = 0.7 * rng.standard_normal(n_players), rng.integers(1975, 2000, n_players)
    style = rng.choice(["serve", "baseline", "all-court"], n_players)
    first = rng.integers(n_players, size=n)
    sides = np.stack([first, (first + rng.integers(1, n_players, n)) % n_players])
    age = np.sort(rng.integers(2010, 2020, n)) - born[sides]
    home, rest = rng.permuted(np.repeat([[1], [0]], n, axis=1), axis=0), rng.integers(1, 8, (2, n))
    utility = strength[sides] - ((age - 26) / 9) ** 2 + 0.4 * home - 1.5 * (rest == 1)
    won = utility[0] - utility[1] + 0.5 * rng.standard_normal(n) > 0
    table = {"won_1": won.astype(int)}
    for k in range(2):
        table |= {f"player_{k + 1}": names[sides[k]], f"age_{k + 1}": age[k]}
        table |= {f"home_{k + 1}": home[k], f"rest_{k + 1}": rest[k].astype(float)}
        table |= {f"style_{k + 1}": style[sides[k]].astype(object)}
    frame = pd.DataFrame(table)
    for column in ["rest_1", "rest_2", "style_1", "style_2"]:
        frame.loc[rng.random(n) < 0.1, column] = np.nan
    return frame


frame = contests()
features = ["age", "home", "rest", "style"]
sides = [f"{name}_1" for name in features], [f"{name}_2" for name in features]
X, y = from_columns(frame, *sides, "won_1", ids=("player_1", "player_2"))
print(f"{X}\n{frame.isna().to_numpy().sum()} gaps")


# %%
# The model: a pipeline for duels of contests, tuned by cross-validation.
def learned(X, y, ids=True):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [  # the id comes first, where id_column=0 finds it
            ("id", "passthrough" if ids else "drop", ["id"]),
            ("numbers", numbers, ["age", "home", "rest"]),
            ("style", OneHotEncoder(handle_unknown="ignore"), ["style"]),
        ]
    )
    model = PairwisePreferenceRegressor(id_column=0 if ids else None)
    pipeline = make_pipeline(Itemwise(columns), model)
    grid = {"pairwisepreferenceregressor__lengthscale_prior": ["lognormal", None]}
    folds = KFold(3, shuffle=True, random_state=0)
    return GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=folds).fit(X, y)


# %%
# Rows are in the order of time: the last quarter is held out, and nothing is tuned on it.
n = 3 * len(y) // 4
apart = ItemShuffleSplit(1, test_size=0.2, mixed="test", random_state=0)
splits = {
    "later contests": (np.arange(n), np.arange(n, len(y))),
    "somebody is new": next(apart.split(X)),
}
found = {}
print("\nHeld-out log loss (guessing: 0.693)")
for question, (train, test) in splits.items():
    losses = []
    for ids in (True, False):
        probability = learned(X[train], y[train], ids).predict_proba(X[test])
        losses.append(-np.log(probability[np.arange(len(test)), y[test]]))
    found[question] = with_ids, without = losses
    gain = without - with_ids
    print(
        f"  {question:16s} with ids {with_ids.mean():.3f}, without {without.mean():.3f}; "
        f"gain {gain.mean():.3f} ± {gain.std() / np.sqrt(len(gain)):.3f} ({len(gain)} contests)"
    )

# %%
# What knowing who a player is adds, for players who are known and where one of the two is new.
_, axes = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
for row, losses in enumerate(found.values()):
    for shift, one, colour in zip((-0.17, 0.17), losses, ("C0", "0.7"), strict=True):
        axes.barh(row + shift, one.mean(), 0.32, color=colour)
axes.axvline(np.log(2.0), color="black", linestyle=":", label="guessing")
axes.set_yticks(range(len(found)), found)
axes.barh([0], [0], color="C0", label="with ids")
axes.barh([0], [0], color="0.7", label="without")
axes.set_xlabel("held-out log loss (smaller is better)")
axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
plt.show()
