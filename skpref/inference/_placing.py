"""Where inducing points go."""

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.gaussian_process.kernels import Kernel

from skpref._default_kernel import feature_spread
from skpref._items import distinct_rows
from skpref.kernels._hyperparameters import seen_columns

# Items a centre that k-means looks at, and passes over them.
_SHOWN = 30
_PASSES = 5
# Distances are taken in blocks of this many doubles.
_BLOCK = 2**22


def place(items: NDArray[np.float64], kernel: Kernel, n: int, seed: int) -> NDArray[np.float64]:
    """Inducing points for items: all of them if they are no more than n, else centres of clusters.

    Features are scaled to their spread. Where a part of the kernel tells items by their names alone
    (`Identity`), the centres' nearest items are taken, as nothing lies between names; where no
    other part of it sees them, all items.

    Parameters
    ----------
    items : ndarray of shape (n_items, n_features)
    kernel : sklearn.gaussian_process.kernels.Kernel
    n : int
    seed : int
    """
    named, measured = seen_columns(kernel, items.shape[1])
    if len(items) <= n or (named and not measured):
        return items
    columns = measured if named else list(range(items.shape[1]))
    scale = feature_spread(items[:, columns])
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(items))[: _SHOWN * n]
    scaled = items[some][:, columns] / scale
    search = MiniBatchKMeans(
        n,
        batch_size=max(4 * n, 1024),
        max_iter=_PASSES,
        n_init=1,
        init_size=3 * n,
        random_state=int(rng.integers(2**31)),
        reassignment_ratio=0.0,
    )
    centres = search.fit(scaled).cluster_centers_
    if not named:
        return distinct_rows(centres * scale)[0]
    step = max(_BLOCK // len(scaled), 1)
    squares = np.einsum("ij,ij->i", scaled, scaled)
    nearest = [
        np.argmin(squares - 2.0 * centres[k : k + step] @ scaled.T, axis=1)
        for k in range(0, len(centres), step)
    ]
    return items[some[np.unique(np.concatenate(nearest))]]
