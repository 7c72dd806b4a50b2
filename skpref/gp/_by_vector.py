"""Priors by a Gaussian vector that the margins are linear in: z = A x, and x given sites on z.

The vector is that of all items' utilities, or of the weights of features. The site of a joint
answer is a Gaussian pseudo-observation of several margins at once.
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array
from skpref.data import JointBlock
from skpref.gp._prior import Marginals, Prior
from skpref.gp._shared_noise import SitePrecision


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
    """Share what priors by a vector have in common; a subclass says how it is conditioned.

    Attributes
    ----------
    n_shared : int
        Number of margins without noise, which come first.
    """

    takes_joint: ClassVar[bool] = True
    n_shared: int

    @abstractmethod
    def margin_values(self, vector: Array) -> Array:
        """A times a vector (n,) or the columns of a matrix."""

    @abstractmethod
    def transposed_times(self, values: Array) -> Array:
        """Aᵀ times values of the margins, (n_margins,) or (n_margins, m)."""

    @abstractmethod
    def _vector_posterior(self, precision: Array | SitePrecision) -> Any:
        """Return the posterior of the vector, a `Vector`, given sites of this precision."""

    @abstractmethod
    def _margin_variances(self, vector: Any) -> Array:
        """Variances of the margins' parts A x under a `Vector`."""

    @abstractmethod
    def _joint_covariances(self, vector: Any, at: NDArray[np.intp]) -> Array:
        """Covariances (n, m, m) among the margins of each row of ``at``, (n, m)."""

    def _joint_precision(
        self, precision: Array | SitePrecision
    ) -> Iterable[tuple[JointBlock, Array]]:
        """Return the precisions of z by joint answers, all times each was given."""
        if isinstance(precision, SitePrecision):
            return zip(precision.blocks, precision.joint, strict=True)
        return self._shared.known()

    def centre(self, precision: Array | SitePrecision, shift: Array) -> tuple[Array, Array]:
        """Mean and dual alone of `condition`, which are quicker."""
        return self._mean_and_dual(self._vector_posterior(precision), precision, shift)

    def _mean_and_dual(self, vector, precision, shift):
        """Return the margins' mean and dual weights, by the posterior of the vector."""
        mean = self._margin_mean(vector, shift)
        if isinstance(precision, SitePrecision):
            return mean, shift - precision.times(mean)
        return mean, shift - (precision if shift.ndim == 1 else precision[:, None]) * mean

    def _margin_mean(self, vector: Any, shift: Array) -> Array:
        """Compute the mean of the margins given sites of such a shift."""
        return self.margin_values(vector.times(self.transposed_times(shift)))

    def condition(self, precision: Array | SitePrecision, shift: Array) -> Marginals:
        """See `Prior.condition`."""
        vector = self._vector_posterior(precision)
        if not isinstance(precision, SitePrecision) and np.isinf(precision).any():
            return self._condition_on_known(precision, shift, vector)
        mean, dual = self._mean_and_dual(vector, precision, shift)
        among = tuple(
            self._joint_covariances(vector, block.margin) for block in self._blocks(precision)
        )
        return Marginals(mean, self._margin_variances(vector), dual, vector.log_det, vector, among)

    @staticmethod
    def _blocks(precision):
        return precision.blocks if isinstance(precision, SitePrecision) else ()

    def condition_on_shift(
        self, marginals: Marginals, precision: Array | SitePrecision, shift: Array
    ) -> Marginals:
        """`condition` on sites of the same, finite precision: without a factorisation."""
        mean, dual = self._mean_and_dual(marginals.root, precision, shift)
        return marginals._replace(mean=mean, dual=dual)

    def _shift_at_margins(self, precision, shift):
        """The sites' shift, where margins of joint answers are known that of their z."""
        if isinstance(precision, SitePrecision) or not np.isinf(precision).any():
            return shift
        pull = shift.copy()
        for block, joint in self._shared.known():
            pull[block.margin] = np.einsum("bij,bj...->bi...", joint, shift[block.margin])
        return pull

    def _condition_on_known(self, precision, shift, vector):
        """Condition with margins of joint answers known, the others seen through their sites."""
        finite = np.where(np.isinf(precision), 0.0, precision)
        wide = finite if shift.ndim == 1 else finite[:, None]
        pull = self._shift_at_margins(precision, shift)
        mean = self._margin_mean(vector, pull)
        dual = pull - wide * mean
        for block, joint in self._shared.known():
            at = block.margin
            dual[at] = pull[at] - np.einsum("bij,bj...->bi...", joint, mean[at])
            mean[at] = shift[at]
        variance = np.where(np.isinf(precision), 0.0, self._margin_variances(vector))
        return Marginals(mean, variance, dual, vector.log_det, vector)
