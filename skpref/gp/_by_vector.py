"""Priors by a Gaussian vector that the margins are linear in: z = A x, and x given sites on z.

The vector is that of all items' utilities, or of the weights of features. The margins of joint
answers carry noise, v = z + e, which their sites observe together with z: an answer is then a
Gaussian pseudo-observation of several margins at once.
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array, floor_variance
from skpref.data import Block
from skpref.gp._prior import Marginals, Prior
from skpref.gp._shared_noise import Seen


class Vector(Protocol):
    """The vector given sites.

    Attributes
    ----------
    log_det : float
        log|I + K L|, K its covariance before and L the sites' precision seen from it.
    """

    log_det: float

    def times(self, vector: Array) -> Array:
        """Its covariance times a vector, or the columns of a matrix."""


class ByVector(Prior):
    """What priors by a vector share; a subclass says how the vector is conditioned.

    Attributes
    ----------
    n_shared : int
        Number of margins without noise, which come first.
    """

    takes_joint: ClassVar[bool] = True
    n_shared: int

    @abstractmethod
    def lifted(self, vector: Array) -> Array:
        """A times a vector (n,) or the columns of a matrix."""

    @abstractmethod
    def pulled(self, values: Array) -> Array:
        """Aᵀ times values of the margins, (n_margins,) or (n_margins, m)."""

    @abstractmethod
    def _given_sites(self, precision: Array) -> Any:
        """The `Vector` given sites."""

    @abstractmethod
    def _spread(self, vector: Any) -> Array:
        """Variances of the margins' parts A x under a `Vector`."""

    @abstractmethod
    def _among(self, vector: Any, at: NDArray[np.intp]) -> Array:
        """Covariances (n, m, m) among the margins of each row of ``at``, (n, m)."""

    def _joint_precision(self, precision: Array) -> Iterable[tuple[Block, Array]]:
        """Of z by joint answers, all times each was given."""
        if np.isinf(precision).any():
            return self._shared.known()
        seen = self._shared.seen(precision, np.zeros(self.n_margins))
        return ((each.block, each.block.counts[:, None, None] * each.precision) for each in seen)

    def centre(self, precision: Array, shift: Array) -> tuple[Array, Array]:
        """Mean and dual alone of `condition`, which are quicker."""
        return self._centre(self._given_sites(precision), precision, shift)

    def _centre(self, vector, precision, shift):
        if self.noise is not None:
            seen = list(self.noise.seen(precision, shift))
            return self._noisy_centre(seen, vector, precision, shift)
        mean = self.lifted(vector.times(self.pulled(shift)))
        return mean, shift - (precision if shift.ndim == 1 else precision[:, None]) * mean

    def condition(self, precision: Array, shift: Array) -> Marginals:
        """See `Prior.condition`."""
        vector = self._given_sites(precision)
        if self.noise is not None:
            return self._with_noise(precision, shift, vector)
        mean, dual = self._centre(vector, precision, shift)
        return Marginals(mean, self._spread(vector), dual, vector.log_det, vector)

    def shifted(self, marginals: Marginals, precision: Array, shift: Array) -> Marginals:
        """`condition` on sites of the same, finite precision: without a factorisation."""
        mean, dual = self._centre(marginals.root, precision, shift)
        return marginals._replace(mean=mean, dual=dual)

    def _with_noise(self, precision, shift, vector):
        if np.isinf(precision).any():
            return self._given(precision, shift, vector)
        seen = list(self._shared.seen(precision, shift))
        mean, dual = self._noisy_centre(seen, vector, precision, shift)
        variance, log_det = self._spread(vector), vector.log_det
        for each in seen:
            at = each.block.margin
            among = self._among(vector, at)
            variance[at] = np.einsum("bii->bi", each.left) + np.einsum(
                "bij,bjk,bik->bi", each.gain, among, each.gain
            )
            log_det += float(each.block.counts @ each.log_det)
        return Marginals(mean, floor_variance(variance, 0.0), dual, log_det, vector)

    def _pull(self, precision: Array, shift: Array, seen: list[Seen] | None = None) -> Array:
        """The sites' shift in z: of joint answers by all times each was given."""
        pull = shift if self.noise is None else shift.copy()
        if self.noise is not None and np.isinf(precision).any():
            for block, joint in self.noise.known():
                pull[block.margin] = np.einsum("bij,bj...->bi...", joint, shift[block.margin])
        elif self.noise is not None:
            for each in self.noise.seen(precision, shift) if seen is None else seen:
                pull[each.block.margin] = each.block.counts[:, None] * each.shift
        return pull

    def _noisy_centre(self, seen, vector, precision, shift):
        pull = self._pull(precision, shift, seen)
        mean = self.lifted(vector.times(self.pulled(pull)))
        for each in seen:
            at = each.block.margin
            noisy = mean[at] + np.einsum("bij,bj->bi", each.noise, shift[at])
            mean[at] = np.einsum("bij,bj->bi", each.gain, noisy)
        dual = shift - precision * mean
        for block in self._shared.blocks:
            dual[block.margin] *= block.counts[:, None]
        return mean, dual

    def _given(self, precision, shift, vector):
        """Margins of joint answers are known, the others seen through their sites."""
        finite = np.where(np.isinf(precision), 0.0, precision)
        wide = finite if shift.ndim == 1 else finite[:, None]
        pull = self._pull(precision, shift)
        mean = self.lifted(vector.times(self.pulled(pull)))
        dual = pull - wide * mean
        for block, joint in self._shared.known():
            at = block.margin
            dual[at] = pull[at] - np.einsum("bij,bj...->bi...", joint, mean[at])
            mean[at] = shift[at]
        variance = np.where(np.isinf(precision), 0.0, self._spread(vector))
        return Marginals(mean, variance, dual, vector.log_det, vector)

    def noise_slope(self, marginals: Marginals, precision: Array) -> float:
        """d log Z / dσ² by the noise of joint answers, of one item."""
        dual, gains = marginals.dual.copy(), []
        for each in self._shared.seen(precision, np.zeros(self.n_margins)):
            P, at = each.precision, each.block.margin
            spread = self._among(marginals.root, at)
            gains.append((each.block, P - P @ spread @ P))
            dual[at] /= each.block.counts[:, None]
        return self._shared.slope(dual, gains)
