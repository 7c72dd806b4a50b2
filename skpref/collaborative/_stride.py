"""How far each pass goes, and how near the end is."""

from typing import NamedTuple

import numpy as np

from skpref._linalg import Array
from skpref.collaborative._teams import Sites

# Passes that go the same way (the cosine of the angle between them) lengthen the stride, those that
# go back shorten it.
_SAME, _BACK = 0.2, -0.2
_LONGER, _SHORTER = 1.2, 0.7
_LEAST = 0.02
# Share of the residual that margins must have moved by.
_SEEN = 1e-4


class Stride(NamedTuple):
    """Share of the way to the factors that the answers ask for.

    Where many users agree, their factors move together and overshoot together; the passes then go
    to and fro, and half the way is too far. Where they do not, the whole way is the shortest.

    Attributes
    ----------
    length : float
    move : ndarray of shape (n,) or None
        How far the margins went in the last pass, in their deviations.
    residual : float
        Root mean square of that, had the pass gone the whole way.
    """

    length: float = 0.5
    move: Array | None = None
    residual: float = np.inf

    def next(self, before: Sites, wanted: Sites) -> "Stride":
        """That of a pass from the factors before.

        Parameters
        ----------
        before : Sites
        wanted : Sites
            Factors that the answers ask for at q given those before.
        """
        tiny = np.finfo(np.float64).tiny  # margins of equal items have no variance
        spread = np.sqrt(np.maximum(np.maximum(wanted.variance, before.variance), tiny))
        move = (wanted.mean - before.mean) / spread
        # Where cavities stand still from the start, factors are still on their way.
        width = np.minimum(spread, 1.0 / np.sqrt(np.maximum(wanted.precision, tiny)))
        lag = (wanted.shift - before.shift) * width
        off = np.maximum(np.abs(move) / self.length, np.abs(lag))
        residual = float(np.sqrt(np.mean(off**2)))
        length = self.length
        # Where hardly anything but factors moves, ways are rounding.
        if self.move is not None and np.mean(move**2) > (_SEEN * residual) ** 2:
            along = float(move @ self.move)
            most = float(np.linalg.norm(move) * np.linalg.norm(self.move))
            if along > _SAME * most:
                length = min(_LONGER * length, 1.0)
            elif along < _BACK * most:
                length = max(_SHORTER * length, _LEAST)
        return Stride(length, move, residual)

    def along(self, before: Sites, wanted: Sites) -> Sites:
        """Factors that far on the way."""
        ways = zip(before[:2], wanted[:2], strict=True)
        precision, shift = (old + self.length * (new - old) for old, new in ways)
        return Sites(precision, shift, wanted.mean, wanted.variance)
