"""Pictures of a model and of a run
================================

Pictures of a fitted model and of a run: along features, calibration, the course of questions.

Sweets first: 85 of them fought, and a model of their features is asked how the utility changes with
sugar and price, and, on duels that it has not seen, whether outcomes are as frequent as it says.
Then somebody's favourite strength of tea is found by asking, and the run is looked at: which items
were shown, which were chosen, and what is known of the utility in the end.

Run with ``--save FOLDER`` to write the pictures.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from skpref import HallucinationBelieverOptimizer, PairwisePreferenceRegressor
from skpref.datasets import load_candy
from skpref.plotting import CalibrationDisplay, OptimizationDisplay, UtilityDisplay


def keep(display, name):
    """Write the picture where ``--save`` says."""
    if "--save" in sys.argv:
        path = Path(sys.argv[-1]) / f"{name}.png"
        display.figure_.savefig(path, dpi=110, facecolor="white")


# %%
# A model of sweets, and duels that it has not seen.
candy = load_candy(n_duels=3000)
X, X_new, y, y_new = train_test_split(candy.X, candy.y, test_size=0.5, random_state=0)
model = PairwisePreferenceRegressor().fit(X, y)
print(f"{model.score(X_new, y_new):.0%} of {len(X_new)} new duels are called right.")

# %%
# Calibration: how often came what was said to be so probable?
keep(CalibrationDisplay.from_estimator(model, X_new, y_new), "calibration")

# %%
# The utility along one feature, averaged over the sweets.
sweets = {"X": candy.item_table, "feature_names": candy.feature_names}
keep(UtilityDisplay.from_estimator(model, features=["sugarpercent"], **sweets), "utility_1d")

# %%
# Along two.
both = ["sugarpercent", "pricepercent"]
keep(UtilityDisplay.from_estimator(model, features=both, **sweets), "utility_2d")

# %%
# A person who tastes two cups of tea. Time counts in ratios.
TRUE_BEST = 3.2  # minutes: what the person likes best


def better(first, second):
    far = np.abs(np.log([first[0], second[0]]) - np.log(TRUE_BEST))
    return far[0] < far[1]


optimizer = HallucinationBelieverOptimizer([(0.5, 10.0)], random_state=0)
best = optimizer.run(better, n_duels=20)
print(f"Best after {optimizer.n_told_} cups: {best[0]:.1f} minutes (liked best: {TRUE_BEST}).")

# %%
# The course of the run: which cups were shown, and which were chosen.
keep(OptimizationDisplay.from_optimizer(optimizer), "run_course")

# %%
# What is known of the utility in the end.
keep(OptimizationDisplay.from_optimizer(optimizer, kind="utility"), "run_utility")
plt.show()
