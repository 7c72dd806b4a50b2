"""Kernels and engines by grid search
==================================

Choose kernel and engine options by scikit-learn's own grid search.

Duel arrays are ordinary rows for `GridSearchCV`: it splits duels, clones the pipeline and scores
it by log loss. `Itemwise(StandardScaler())` scales both sides of a duel alike. The options of an
engine are reached by their names, here ``inference__damping``.

Folds of *items* are used (`ItemKFold`), so that the score is for sweets never seen. The damping
changes how expectation propagation gets to its fixed point, not where that is: its scores agree,
its times may not.

Kernels with an item effect for every item (`Identity`; the default, None, has one too) do best:
sweets differ in more than their eleven attributes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skpref import PairwisePreferenceRegressor
from skpref.datasets import load_candy
from skpref.inference import EP
from skpref.kernels import Identity
from skpref.model_selection import ItemKFold
from skpref.preprocessing import Itemwise

# %%
# Duels, and a pipeline.
candy = load_candy(n_duels=500, random_state=0)
pipeline = Pipeline(
    [
        ("scale", Itemwise(StandardScaler())),
        ("model", PairwisePreferenceRegressor(inference=EP())),
    ]
)

# %%
# Four kernels, two ways to the fixed point.
n_features = candy.X.shape[2]
width = np.sqrt(n_features)  # of the order of the distance between two scaled items
kernels = {
    "default: RBF, a lengthscale a feature, item effects": None,
    "RBF, a lengthscale a feature": RBF(np.full(n_features, width)),
    "RBF, one lengthscale, item effects": RBF(width) + 0.1 * Identity(),
    "Matérn 3/2, one lengthscale, item effects": Matern(width, nu=1.5) + 0.1 * Identity(),
}
search = GridSearchCV(
    pipeline,
    {
        "model__kernel": list(kernels.values()),
        "model__inference__damping": [0.0, 0.3],
    },
    scoring="neg_log_loss",
    cv=ItemKFold(4, shuffle=True, random_state=0),
    n_jobs=2,
)
search.fit(candy.X, candy.y)

# %%
# All settings, the best first.
print("log loss   damping   fit      kernel")
results = search.cv_results_
for i in np.argsort(-results["mean_test_score"], kind="stable"):
    setting = results["params"][i]
    # By identity: kernels of one and of many lengthscales can compare as equal.
    name = next(n for n, k in kernels.items() if k is setting["model__kernel"])
    print(
        f"{-results['mean_test_score'][i]:.3f}      {setting['model__inference__damping']:.1f}"
        f"       {results['mean_fit_time'][i]:.2f} s   {name}"
    )

# %%
# The best, refitted on all duels.
best = search.best_estimator_
print(f"\nBest log loss on sweets never seen: {-search.best_score_:.3f} (guessing: 0.693)")
print(f"Refitted on all duels: {best['model'].kernel_}")
print(f"  noise variance {best['model'].noise_variance_:.3g}")
favourite = candy.item_names[best.predict(candy.item_table).argmax()]
print(f"  favourite {favourite}")

# %%
# Means and standard deviations over the folds.
_, axes = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
undamped = np.flatnonzero(results["param_model__inference__damping"] == 0.0)
mean, deviation = -results["mean_test_score"][undamped], results["std_test_score"][undamped]
axes.errorbar(mean, range(len(kernels)), xerr=deviation, fmt="o", capsize=3)
axes.axvline(np.log(2.0), color="black", linestyle=":", linewidth=1)
axes.set_yticks(range(len(kernels)), kernels)
axes.set_xlabel("log loss on sweets never seen (dotted: guessing)")
plt.show()
