"""Optimisation by asking, in ten lines
====================================

The whole of preferential optimisation in ten lines: ask, compare, tell.

Someone looks for the best cup of coffee: grams of beans and degrees of the water. The cups cannot
be rated, but of two the better one can be named. Here a formula does the tasting.
"""

import matplotlib.pyplot as plt

from skpref.optimize import HallucinationBelieverOptimizer
from skpref.plotting import OptimizationDisplay


def taste(cup):
    return -(((cup["beans"] - 17.0) / 5.0) ** 2) - ((cup["water"] - 93.0) / 8.0) ** 2


optimizer = HallucinationBelieverOptimizer(
    {"beans": (8.0, 30.0), "water": (70.0, 100.0)}, random_state=0
)
for _ in range(25):
    first, second = optimizer.ask()
    optimizer.tell((first, second), taste(first) > taste(second))
best = optimizer.recommend()
print(f"Best after 25 duels: {best['beans']:.1f} g at {best['water']:.1f} °C (truth: 17, 93)")

# %%
# The course of the run: which cups were shown, and what was known of the best.
OptimizationDisplay.from_optimizer(optimizer)
plt.show()
