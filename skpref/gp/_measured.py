"""Utilities given measured values, before any answer: a Gaussian process conditioned exactly.

Values y = a + f(M) + noise have the covariance V = K_MM + D. With P = V⁻¹ the utilities of items
are f ~ N(K_·M P (y − a), K − K_·M P K_M·). A level a of which nothing is known is integrated out:
then P = V⁻¹ − V⁻¹11ᵀV⁻¹ / 1ᵀV⁻¹1, in which it has no part (Rasmussen and Williams, "Gaussian
Processes for Machine Learning", equations 2.42 and 2.45).
"""

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array, inverse_cholesky
from skpref.data import Comparisons, MeasuredValues, ParsedX
from skpref.gp._posterior import Posterior


class UtilitiesGivenValues:
    """Moments of the utilities of items given measured values, and what they lead back to.

    Parameters
    ----------
    K : ndarray of shape (n_items, n_items)
        Covariance of the items before values were measured.
    measured : MeasuredValues

    Attributes
    ----------
    K : ndarray of shape (n_items, n_items)
    mean : ndarray of shape (n_items,)
    covariance : ndarray of shape (n_items, n_items)
    log_density : float
        Of the values; if nothing is known of the level, of their orthonormal contrasts.
    """

    def __init__(self, K: Array, measured: MeasuredValues):
        item, n = measured.item, len(measured.item)
        V = K[np.ix_(item, item)]
        V.flat[:: n + 1] += measured.deviation**2
        whitening, log_det = inverse_cholesky(V.T)
        n_contrasts = n
        if measured.level is None:
            ones = whitening.sum(axis=1)
            length = np.linalg.norm(ones)
            ones /= length
            whitening -= np.multiply.outer(ones, ones @ whitening)
            log_det += 2.0 * np.log(length) - np.log(n)
            n_contrasts -= 1
        level = measured.value.mean() if measured.level is None else measured.level
        white = whitening @ (measured.value - level)
        root = np.zeros((len(K), n))  # P = R Rᵀ, among all items
        np.add.at(root, item, whitening.T)
        self.K, self._root = K, root
        self._weights = root @ white
        self._half = K @ root
        self.mean: NDArray[np.float64] = K @ self._weights
        self.covariance: NDArray[np.float64] = K - self._half @ self._half.T
        self.log_density = -0.5 * float(white @ white + log_det + n_contrasts * np.log(2.0 * np.pi))

    def transposed_times(self, vectors: Array) -> Array:
        """Return (I − P K) times the columns of a matrix: to weights before values."""
        return vectors - self._root @ (self._half.T @ vectors)

    def weights(self, further: Array) -> Array:
        """Return the items' weights of values, and of answers whose weights are given values."""
        own = self._weights if further.ndim == 1 else self._weights[:, None]
        return own + self.transposed_times(further)

    def factor(self, further: Array) -> Array:
        """Return D with covariance K − K D Dᵀ K, of one that is of K given values."""
        return np.hstack([self.transposed_times(further), self._root])

    def gram(self, further: Array) -> Array:
        """Return D Dᵀ, see `factor`, of that of further answers."""
        gram: Array = (
            self.transposed_times(self.transposed_times(further).T) + self._root @ self._root.T
        )
        return gram


def level_of_values(posterior: Posterior, comparisons: Comparisons) -> float | None:
    """Return the posterior mean of the level of measured values; None if there are none."""
    measured = comparisons.measured
    if measured is None or measured.level is not None:
        return None if measured is None else measured.level
    rest = measured.value - posterior.mean(ParsedX("items", comparisons.items[measured.item]))
    return float(np.average(rest, weights=measured.deviation**-2.0))
