"""The problem of ``scale.py``: items, and answers about them as many as are asked for.

Needs numpy alone, so that other packages' Pythons can run it too.
"""

import numpy as np

NOISE_VARIANCE = 0.01
# Features that the utility sees; further ones are noise.
SEEN = 10
_FREQUENCIES = 500
_TEST = 5000


class Problem:
    """Items uniform in the unit cube, a utility of random Fourier features of lengthscale 1.

    Parameters
    ----------
    n_items : int
    n_features : int
        The utility is of the first ten.
    """

    def __init__(self, n_items, n_features):
        self.rng = np.random.default_rng(0)
        self.items = self.rng.random((n_items, n_features))
        frequencies = self.rng.standard_normal((_FREQUENCIES, n_features))[:, :SEEN]
        phases = self.rng.uniform(0.0, 2.0 * np.pi, _FREQUENCIES)
        weights = self.rng.standard_normal(_FREQUENCIES) * np.sqrt(2.0 / _FREQUENCIES)
        blocks = np.array_split(self.items[:, :SEEN], max(n_items // 5000, 1))
        self.utility = np.concatenate(
            [np.cos(block @ frequencies.T + phases) @ weights for block in blocks]
        )
        self.test = self.pairs(_TEST)

    def pairs(self, n):
        """Random pairs of two items."""
        first = self.rng.integers(len(self.items), size=n)
        second = (first + self.rng.integers(1, len(self.items), size=n)) % len(self.items)
        return np.column_stack([first, second])

    def answers(self, n):
        """Pairs, and whether the first won."""
        pairs = self.pairs(n)
        margin = self.utility[pairs[:, 0]] - self.utility[pairs[:, 1]]
        spread = np.sqrt(2.0 * NOISE_VARIANCE)
        return pairs, margin + spread * self.rng.standard_normal(n) > 0.0

    def scores(self, probability):
        """Accuracy and log-loss of P(first wins) on the noise-free test pairs."""
        won = self.utility[self.test[:, 0]] > self.utility[self.test[:, 1]]
        right = np.clip(np.where(won, probability, 1.0 - probability), 1e-12, 1.0)
        return float(np.mean(right > 0.5)), float(-np.mean(np.log(right)))
