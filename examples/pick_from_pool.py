"""Somebody's favourite of 85 sweets
=================================

Find someone's favourite sweet among 85 without tasting them all.

The pool are the Halloween sweets of `load_candy`, described by eleven attributes. One person's
taste is made up here: the published popularity plus a liking for peanuts and a little noise in
every answer. Each question shows two sweets of the pool.
"""

import matplotlib.pyplot as plt
import numpy as np

from skpref.datasets import load_candy
from skpref.duels import ItemTable
from skpref.optimize import HallucinationBelieverOptimizer
from skpref.plotting import OptimizationDisplay

# %%
# The pool, and the person.
candy = load_candy()
liking = candy.winpercent + 15.0 * candy.item_table[:, candy.feature_names.index("peanutyalmondy")]
rng = np.random.default_rng(0)

# Sweets of equal attributes cannot be told apart by a model: they are one item of the pool.
pool = ItemTable(candy.item_table, names=candy.item_names)


def person(first, second):
    noise = 3.0 * rng.standard_normal(2)
    return liking[pool.index(first)] + noise[0] > liking[pool.index(second)] + noise[1]


# %%
# Thirty questions.
optimizer = HallucinationBelieverOptimizer(candidates=pool, n_initial=8, random_state=0)
for _ in range(30):
    duel = optimizer.ask()
    optimizer.tell(duel, person(*duel))
    if optimizer.n_told_ % 10 == 0:
        print(f"after {optimizer.n_told_} duels: {optimizer.recommend()}")

best = optimizer.recommend()
better = int(np.sum(liking > liking[pool.index(best)]))
print(f"{best}: {better} of the {len(pool)} sweets would be liked better")

# %%
# The course of the run.
OptimizationDisplay.from_optimizer(optimizer)
plt.show()
