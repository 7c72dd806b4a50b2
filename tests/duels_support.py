"""What the tests of duels and their builders share."""

from collections import Counter

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

FRAME = pd.DataFrame({"u": [0.0, 0.5, 1.0]}, index=["a", "b", "c"])


def won_pairs(X, y):
    """Multiset of (winner, loser) values."""
    X = np.asarray(X)
    flipped = np.where((np.asarray(y) == 1).reshape(-1, *[1] * (X.ndim - 1)), X, X[:, ::-1])
    return Counter(map(repr, flipped.tolist()))
