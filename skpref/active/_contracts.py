"""What is asked of a posterior, and how duels, their order and their moments come to a score."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import Array
from skpref.data import check_order, distinct_rows
from skpref.gp import Posterior
from skpref.likelihoods import Likelihood


@runtime_checkable
class DuelPosterior(Protocol):
    """What every score needs of a posterior: `Posterior` has it.

    An estimator of many users offers it by a method ``posterior_for(users)``, which is given one
    user for each duel and returns an object whose rows are about these users in this order.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.active import DuelPosterior
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit([[[1.0], [0.0]]])
    >>> isinstance(model.posterior_, DuelPosterior)
    True
    """

    @property
    def likelihood(self) -> Likelihood:
        """Probability of an answer given the margin."""

    def margin(self, A: Any, B: Any) -> tuple[Array, Array]:
        """Mean and variance of f(a) − f(b), without observation noise, for pairs of rows."""

    def margin_cov(self, A: Any, B: Any) -> Array:
        """Covariance of the margins f(a_i) − f(b_i), shape (n, n); for diverse batches alone."""


class Candidates(NamedTuple):
    """Duels that are scored, and what the posterior says of their margins.

    Attributes
    ----------
    posterior : DuelPosterior
    first, second : array-like of n rows
        Items, as the posterior takes them.
    means : ndarray of shape (n, n_components)
        Of the margins.
    variance : ndarray of shape (n,)
        That all components share.
    lead : ndarray of int of shape (n,)
        Who is shown first: 1 the first item, −1 the second, 0 neither.
    """

    posterior: DuelPosterior
    first: Any
    second: Any
    means: Array
    variance: Array
    lead: NDArray[np.int8]

    @classmethod
    def of(cls, posterior: DuelPosterior, duels: Any, order: ArrayLike = 1) -> "Candidates":
        """Of duels, as `sides` reads them."""
        if not isinstance(posterior, DuelPosterior):
            raise TypeError(
                f"posterior must be a Posterior, such as the posterior_ of a fitted estimator; got "
                f"{type(posterior).__name__}. An estimator goes to query()."
            )
        first, second = sides(duels)
        if isinstance(posterior, Posterior):
            means, variance = posterior.component_margins(first, second)
        else:
            mean, variance = posterior.margin(first, second)
            means = np.asarray(mean, dtype=np.float64)[:, None]
        n = len(variance)
        order = np.full(n, order) if np.ndim(order) == 0 else order
        lead = np.asarray(check_order(order, n, 2), dtype=np.int8)
        return cls(posterior, first, second, means, variance, lead)

    @property
    def gaussian(self) -> tuple[Array, Array]:
        """Mean and variance of the margins, those of a mixture as a whole."""
        return self.means.mean(axis=1), self.variance + self.means.var(axis=1)


class Rows(NamedTuple):
    """Distinct items, as rows that the posterior sees, and where both sides are among them."""

    items: Array
    first: NDArray[np.intp]
    second: NDArray[np.intp]

    @classmethod
    def of(cls, posterior: Posterior, first: Any, second: Any) -> "Rows":
        """Of the items of duels."""
        both = posterior.reader.sides(first, second)
        items, code = distinct_rows(np.concatenate(both))
        return cls(items, code[: len(both[0])], code[len(both[0]) :])


def sides(duels: Any) -> tuple[Any, Any]:
    """First and second items of duels.

    Parameters
    ----------
    duels : array-like of shape (n, 2, n_features), DuelFrame, or array-like of shape (n, 2)
        Two dimensions hold positions or names in the table of items.

    Raises
    ------
    ValueError
        If they have another shape.
    """
    shape = np.shape(duels) if not hasattr(duels, "shape") else duels.shape
    if len(shape) not in (2, 3) or shape[1] != 2:
        raise ValueError(
            f"Duels must have shape (n_duels, 2, n_features), or (n_duels, 2) with positions or "
            f"names of items, got {tuple(shape)}. all_pairs(items) makes all duels of items."
        )
    if not hasattr(duels, "shape"):
        duels = np.asarray(duels)
    return duels[:, 0], duels[:, 1]
