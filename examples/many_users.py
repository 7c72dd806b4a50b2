"""Many people, each with a view of their own
==========================================

What 124 people think of 59 language models, each person's own view.

The verdicts that ship with the package say which of two answers a person preferred, or that neither
was better. Most people gave few dozen, far too few for a view of 59 models of their own; but people
who agree on some models agree on others. Three models are asked about verdicts left out:

- one utility for all people,
- a utility for each person alone,
- `CollaborativePreferenceRegressor`: the population's utility, and tastes that people share.

Then: of two people who answered much, where do they disagree most? And what of somebody new?
"""

import matplotlib.pyplot as plt
import numpy as np

from skpref import CollaborativePreferenceRegressor
from skpref.datasets import load_llm_duels
from skpref.duels import ItemTable

# %%
# Seven in ten verdicts are learned from.
data = load_llm_duels(ties=True)
table = ItemTable.from_names(data.model_names)
rng = np.random.default_rng(0)
test = rng.random(len(data.y)) < 0.3
X, y, users = data.X[~test], data.y[~test], data.judge[~test]
print(f"{len(y)} verdicts of {len(set(users))} people on {len(table)} language models")

# %%
# The other verdicts, predicted by each of the three models.
print("\nLog loss of the other verdicts (three outcomes; guessing: 1.099)")
for method, name in {
    "pooled": "one utility for all",
    "su": "each person alone",
    "cp": "shared tastes",
}.items():
    model = CollaborativePreferenceRegressor(
        items=table, method=method, tie_threshold=1.0, noise_variance=2.0
    ).fit(X, y, users=users)
    proba = model.predict_proba(data.X[test], users=data.judge[test])
    row = np.arange(len(proba)), np.searchsorted(model.classes_, data.y[test])
    print(f"  {name:20s} {-np.log(proba[row]).mean():.3f}")

# %%
# The last is that of tastes that people share. It has a view of each person, and one of somebody
# new.
ids, counts = np.unique(users, return_counts=True)
one, other = ids[np.argsort(-counts, kind="stable")[:2]]
views = {
    name: model.predict(np.arange(len(table)), users=[who] * len(table))
    for name, who in (
        (f"person {one}", one),
        (f"person {other}", other),
        ("somebody new", None),
    )
}
gap = views[f"person {one}"] - views[f"person {other}"]
print(f"\nWhere persons {one} and {other} disagree most (ranks, 1 is best)")
for k in (gap.argmax(), gap.argmin()):
    print(f"  {table.names[k]}")
    for name, utility in views.items():
        print(f"    {1 + np.sum(utility > utility[k]):2d} for {name}")

# %%
# The views of the two side by side: a dot is a language model.
_, axes = plt.subplots(figsize=(6.0, 5.5), layout="constrained")
mine, theirs = views[f"person {one}"], views[f"person {other}"]
axes.axline((0, 0), slope=1, color="0.7", linewidth=1)
axes.plot(mine, theirs, "o", markersize=4)
for k in (gap.argmax(), gap.argmin()):
    left = mine[k] < mine.mean()
    axes.annotate(
        table.names[k],
        (mine[k], theirs[k]),
        xytext=(6 if left else -6, 6),
        textcoords="offset points",
        ha="left" if left else "right",
    )
axes.set(xlabel=f"utility for person {one}", ylabel=f"utility for person {other}")
plt.show()
