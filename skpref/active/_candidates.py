"""Candidate duels, and the posterior moments of their margins."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import Array, check_number
from skpref.data import (
    DuelFrame,
    ItemTable,
    all_strings,
    as_table,
    check_order,
    distinct_rows,
    gather,
    group_rows,
    is_frame,
    plain_frame,
    read,
)
from skpref.gp import (
    GroupedPosterior,
    IntransitivePosterior,
    Posterior,
    PosteriorMixture,
    posterior_parts,
)
from skpref.likelihoods import Likelihood


@runtime_checkable
class DuelPosterior(Protocol):
    """The methods that every score needs of a posterior; `Posterior` has them.

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
        """Return mean and variance of f(a) − f(b), without observation noise, for pairs of rows."""

    def margin_cov(self, A: Any, B: Any) -> Array:
        """Return the covariance (n, n) of f(a_i) − f(b_i); asked for by diverse batches alone."""


def split_duels(duels: Any) -> tuple[Any, Any]:
    """Return first and second items of duels (n, 2, n_features), (n, 2) or a DuelFrame."""
    shape = np.shape(duels) if not hasattr(duels, "shape") else duels.shape
    if len(shape) not in (2, 3) or shape[1] != 2:
        raise ValueError(
            f"Duels must have shape (n_duels, 2, n_features), or (n_duels, 2) with positions or "
            f"names of items, got {tuple(shape)}. all_pairs(items) makes all duels of items."
        )
    if not hasattr(duels, "shape"):
        duels = np.asarray(duels)
    return duels[:, 0], duels[:, 1]


def all_pairs(items: Any) -> Any:
    """Return all duels between items, each pair once.

    Parameters
    ----------
    items : array-like or DataFrame of shape (n_items, n_features), ItemTable, or int
        An integer stands for that many items of a table, up to 2³¹ − 1.

    Returns
    -------
    ndarray of shape (n_duels, 2, n_features), DuelFrame, or ndarray of int of shape (n_duels, 2)
        Of items without features, and of an integer, positions.

    Examples
    --------
    >>> from skpref.active import all_pairs
    >>> all_pairs(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> all_pairs([[0.5], [0.7], [0.9]])[:, :, 0].tolist()
    [[0.5, 0.7], [0.5, 0.9], [0.7, 0.9]]
    """
    table = None if isinstance(items, int | np.integer) else as_table(items)
    n = items if table is None else len(table)
    check_number("items", n, low=0, high=np.iinfo(np.int32).max, integer=True)
    pairs = np.stack(np.triu_indices(n, k=1), axis=1)
    return gather(table, pairs)


def read_pool(pool: Any, table: ItemTable | None = None) -> Any:
    """Return the duels of a pool; if it holds items, all duels between them.

    Names that stand side by side in a frame are duels, where ``table`` has names.
    """
    if is_frame(pool):
        shown = read(pool, table=table)
        if shown.kind == "names" and shown.size is not None:
            return np.asarray(plain_frame(pool), dtype=object)
    if isinstance(pool, ItemTable) or is_frame(pool):
        return all_pairs(pool)
    if isinstance(pool, DuelFrame):
        return pool
    listed = pool if isinstance(pool, np.ndarray) else np.asarray(pool)
    if listed.ndim == 2 and listed.dtype.kind == "f":
        return all_pairs(listed)
    if listed.ndim == 2 and listed.dtype.kind in "OUT" and table is not None:
        read(listed, table=table)  # which refuses names that are missing
    return listed


def number_items(duels: Any, more: Any = None) -> NDArray[np.intp]:
    """Return a number for each item of duels, (n, 2), the same for equal items.

    ``more`` are further duels of the same form, whose codes follow.
    """
    both = [side for each in (duels, more) if each is not None for side in split_duels(each)]
    parts = [np.asarray(side) for side in both]
    if parts[0].ndim == 1 and not all_strings(parts[0]):
        rows = np.concatenate(parts)[:, None].astype(np.float64)
    elif parts[0].ndim == 1:
        rows = np.concatenate([part.astype(object) for part in parts])
    else:
        rows = np.concatenate(parts)
        rows = rows if rows.dtype.kind == "O" else rows.astype(np.float64)
    code = group_rows(rows)[1]
    ends = np.cumsum([len(part) for part in parts])[:-1]
    split = np.split(code, ends)
    return np.concatenate([np.stack(split[k : k + 2], axis=1) for k in range(0, len(split), 2)])


def check_utilities_alone(posterior: Any) -> None:
    """Raise ValueError unless utilities alone decide the answers of a posterior's model."""
    part = posterior_parts(posterior)[1][0]  # parts of a mixture share their kernel
    if isinstance(part, IntransitivePosterior):
        raise ValueError(
            f"got a model with the term {part.effects}; models of utilities alone are allowed, as "
            "what an answer says of them is overrated where effects of pairs decide it too. Fit "
            "one without that term to choose questions, or query by strategy='random'."
        )


class Candidates(NamedTuple):
    """Candidate duels, and the posterior moments of their margins.

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
    effect_variance : ndarray of shape (n,)
        Of what the items of a margin have of their own on a new prompt.
    """

    posterior: DuelPosterior
    first: Any
    second: Any
    means: Array
    variance: Array
    lead: NDArray[np.int8]
    effect_variance: Array

    @classmethod
    def from_duels(cls, posterior: DuelPosterior, duels: Any, order: ArrayLike = 1) -> "Candidates":
        """Return candidate duels with the moments of their margins by a posterior, checked."""
        if not isinstance(posterior, DuelPosterior):
            raise TypeError(
                f"posterior must be a Posterior, such as the posterior_ of a fitted estimator; got "
                f"{type(posterior).__name__}. An estimator goes to query()."
            )
        check_utilities_alone(posterior)
        first, second = split_duels(duels)
        if isinstance(posterior, Posterior):
            means, variance = posterior.component_margins(first, second)
        else:
            mean, variance = posterior.margin(first, second)
            means = np.asarray(mean, dtype=np.float64)[:, None]
        n = len(variance)
        order = np.full(n, order) if np.ndim(order) == 0 else order
        lead = np.asarray(check_order(order, n, 2), dtype=np.int8)
        effect_variance, part = np.zeros(n), posterior_parts(posterior)[1][0]
        if isinstance(part, GroupedPosterior):  # parts of a mixture share their kernel
            effect_variance = part.new_variance(*part.reader.sides(first, second))
        return cls(posterior, first, second, means, variance, lead, effect_variance)

    def split_by_part(self) -> tuple[Array, list["Candidates"]]:
        """Return the weights of the parts of a mixture, and the candidates by each of them."""
        weights, parts = posterior_parts(self.posterior)
        if len(parts) == 1:
            return weights, [self]
        every = []
        for part in parts:
            means, variance = part.component_margins(self.first, self.second)
            every.append(self._replace(posterior=part, means=means, variance=variance))
        return weights, every

    @property
    def gaussian(self) -> tuple[Array, Array]:
        """Return mean and variance of the margins over all components, (n,) each."""
        return self.means.mean(axis=1), self.variance + self.means.var(axis=1)


class CandidateRows(NamedTuple):
    """Distinct items, as rows that the posterior sees, and where both sides are among them."""

    items: Array
    first: NDArray[np.intp]
    second: NDArray[np.intp]

    @classmethod
    def from_sides(
        cls, posterior: Posterior | PosteriorMixture, first: Any, second: Any
    ) -> "CandidateRows":
        """Return the distinct items of duels as rows, and both sides as positions among them."""
        both = posterior.reader.sides(first, second)
        items, code = distinct_rows(np.concatenate(both))
        return cls(items, code[: len(both[0])], code[len(both[0]) :])
