"""Which sweets people like: first steps
=====================================

Learn which sweets people like from a few hundred duels between them.

85 Halloween sweets are described by eleven attributes (chocolate, fruity, sugar, price, ...). A
duel is a pair of sweets and which of the two won. The model learns a *utility* for every sweet
from 300 duels. This script shows

1. the ranking with error bars,
2. the probability that one sweet beats another,
3. how well duels between sweets never seen are called,
4. which attributes the utility follows.

Needs nothing but the package, and for the picture matplotlib; takes a few seconds.
"""

from importlib.util import find_spec

import numpy as np

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.datasets import load_candy
from skpref.metrics import answer_log_loss
from skpref.model_selection import ItemShuffleSplit

# %%
# The duels: arrays ``X`` of shape (n_duels, 2, n_features), outcomes ``y`` (1 where the first won).
candy = load_candy(n_duels=300, random_state=0)
model = PairwisePreferenceRegressor().fit(candy.X, candy.y)

# %%
# 1. Ranking. A utility has no absolute zero, so it is shown as the margin over one sweet.
names = candy.item_names
middle = np.argsort(candy.winpercent)[len(names) // 2]
others = np.delete(np.arange(len(names)), middle)
against = candy.item_table[np.stack([others, np.full(len(others), middle)], axis=1)]
margin, deviation = model.predict(against, return_std=True)
order = np.argsort(-margin)
print(f"Margin over {names[middle]} (posterior mean and standard deviation)")
for i in [*order[:5], *order[-5:]]:
    print(f"  {names[others[i]]:28s} {margin[i]:+.2f} ± {deviation[i]:.2f}")

# %%
# 2. One duel. `predict_proba` gives (second wins, first wins).
first, second = (list(names).index(name) for name in ("Twix", "Sour Patch Kids"))
probability = model.predict_proba(candy.item_table[[[first, second]]])[0, 1]
print(f"\nP({names[first]} beats {names[second]}) = {probability:.2f}")

# %%
# 3. Held-out score. Whole sweets are held out: duels that share sweets would leak. A new sweet is
# known by its eleven attributes alone.
everything = load_candy()
rng = np.random.default_rng(0)
scores = []
for train, test in ItemShuffleSplit(10, test_size=0.3, random_state=0).split(everything.X):
    train = rng.choice(train, 300, replace=False)
    fitted = PairwisePreferenceRegressor().fit(everything.X[train], everything.y[train])
    X, y = everything.X[test], everything.y[test]
    scores.append([fitted.score(X, y), answer_log_loss(y, fitted.predict_proba(X))])
accuracy, loss = np.mean(scores, axis=0)
print("\nDuels between two sweets never seen, mean of 10 splits (guessing: 0.500, 0.693)")
print(f"  called right {accuracy:.3f}, log loss {loss:.3f}")

# %%
# 4. Lengthscales. A feature matters little if its lengthscale is long for its spread. A large
# value says that the utility changes along the feature, not in which direction.
spread = candy.item_table.std(axis=0) / model.kernel_.k1.length_scale
print("\nSpread of the feature / lengthscale (larger: the utility varies more along it)")
for j in np.argsort(-spread):
    print(f"  {candy.feature_names[j]:18s} {spread[j]:.2f}")

# %%
# The ranking as a picture, where matplotlib is installed: utilities with intervals, intervals of
# the ranks, and the chance of each sweet to be the best of all.
if find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from skpref.plotting import LeaderboardDisplay

    sweets = ItemTable(candy.item_table, names=names)
    LeaderboardDisplay.from_estimator(model, sweets, top=20)
    plt.show()
