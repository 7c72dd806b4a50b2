"""The same fit on a cluster
=========================

The same fit on a cluster: answers in shards, and a grid search, over dask.

Everything that runs in parallel in the package, and in scikit-learn, goes through joblib. Within
``parallel_config("dask")`` it is done by the workers of the cluster that a `distributed.Client` is
connected to; nothing else changes, the result least of all. Two worker processes stand in for a
cluster.

`SVI` shares out answers beyond 50 000. Needs the extra: ``pip install skpref[distributed]``.
"""

import logging

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV

from skpref import PairwisePreferenceRegressor
from skpref.inference import SVI


def contests(n, items, rng):
    """Pairs of a table's rows, and whether the first won."""
    utility = np.sin(3.0 * items[:, 0]) + items[:, 1]
    first = rng.integers(len(items), size=n)
    second = (first + rng.integers(1, len(items), size=n)) % len(items)
    pairs = np.column_stack([first, second])
    noisy = utility[pairs] + 0.2 * rng.standard_normal(pairs.shape)
    return pairs, noisy[:, 0] > noisy[:, 1]


def main():
    rng = np.random.default_rng(0)
    items = rng.random((2000, 3))
    pairs, won = contests(60_000, items, rng)
    model = PairwisePreferenceRegressor(
        RBF(0.7), inference=SVI(20), items=items, optimizer=None, random_state=0
    )
    here = model.fit(pairs, won).predict(items)

    # On a real cluster: Client("scheduler:8786"). Logs of workers that come and go are left out.
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    )
    with cluster, Client(cluster), parallel_config("dask"):
        there = model.fit(pairs, won).predict(items)
        # A clone: the fitted model, and with it its answers, would be sent with every task.
        search = GridSearchCV(
            clone(model),
            {"kernel__length_scale": [0.1, 0.7]},
            scoring="neg_log_loss",
            cv=2,
            refit=False,
        ).fit(pairs[:1000], won[:1000])

    print(f"{len(model.comparisons_.rows)} distinct answers, {model.n_iter_} passes")
    print(f"as in one process to 1e-8: {np.abs(there - here).max() < 1e-8}")
    scores = search.cv_results_["mean_test_score"]
    for setting, score in zip(search.cv_results_["params"], scores, strict=True):
        print(f"lengthscale {setting['kernel__length_scale']}: log loss {-score:.3f}")

    _, axes = plt.subplots(figsize=(5.0, 4.5), layout="constrained")
    axes.plot(here, there, ".", markersize=3)
    axes.set(xlabel="utility fitted in one process", ylabel="fitted by two workers")
    plt.show()


if __name__ == "__main__":  # the workers' processes may import this file
    main()
