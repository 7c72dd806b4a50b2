"""Ratings by judges whose scales differ
=====================================

Learn from ratings when every judge has a scale of their own.

Twelve judges rate ten wines each; no wine is rated twice. Some judges are generous, some harsh,
some use the whole scale and some a corner of it. Ratings of different judges cannot be compared,
but within one judge the order means something. Passing the judge as ``qid`` makes duels only
between wines of the same judge: the higher rating won.

The same ratings are also given without ``qid``, and to scikit-learn's GaussianProcessRegressor,
which believes the numbers. All are scored on wines never rated by the share of pairs put in the
right order (0.5 by guessing). The data are simulated, so the right order is known.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from skpref import PairwisePreferenceRegressor
from skpref.metrics import concordance


# %%
# Wines, judges, and what the judges say.
def quality(wines):
    """True utility: best at medium acidity, with ripe fruit; the third feature is irrelevant."""
    return 1.5 * wines[:, 1] - 4.0 * (wines[:, 0] - 0.5) ** 2


rng = np.random.default_rng(0)
n_judges, n_each = 12, 10
wines = rng.uniform(size=(n_judges * n_each, 3))
judge = np.repeat(np.arange(n_judges), n_each)
generosity = rng.normal(scale=2.0, size=n_judges)
width = rng.uniform(0.5, 2.0, size=n_judges)
seen = quality(wines) + 0.15 * rng.normal(size=len(wines))
ratings = generosity[judge] + width[judge] * seen

# %%
# The three models, scored on wines that nobody rated.
new_wines = rng.uniform(size=(500, 3))
truth = quality(new_wines)
with_qid = PairwisePreferenceRegressor().fit(wines, ratings, qid=judge)
# Ratings of different judges contradict each other, which takes much noise.
without = PairwisePreferenceRegressor(noise_variance_bounds=(1e-4, 100.0))
without.fit(wines, ratings)
kernel = ConstantKernel(1.0) * RBF(np.ones(3)) + WhiteKernel(1.0)
numbers = GaussianProcessRegressor(kernel, normalize_y=True, alpha=1e-8).fit(wines, ratings)

print(f"{len(wines)} wines, {n_judges} judges; duels: {int(with_qid.duels_.counts.sum())}")
print("Share of pairs of new wines in the right order")
for name, model in {
    "duels within a judge (qid)": with_qid,
    "duels across judges": without,
    "regression on the ratings": numbers,
}.items():
    print(f"  {name:28s} {concordance(model.predict(new_wines), truth):.3f}")
print(f"with qid, model.score gives the same: {with_qid.score(new_wines, truth):.3f}")

# %%
# Each judge has a scale (left), and what was learned of new wines all the same (right).
_, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
left.scatter(quality(wines), ratings, c=judge, cmap="tab20", s=18)
left.set(xlabel="true quality of a rated wine", ylabel="rating (a colour each judge)")
right.plot(truth, with_qid.predict(new_wines), ".", markersize=4)
right.set(xlabel="true quality of a new wine", ylabel="utility, learned within judges")
plt.show()
