"""What is inspected: the posterior of a fitted model, and items as their user names them."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._containers import all_strings, is_frame
from skpref._items import ItemTable
from skpref._linalg import Array
from skpref._mixture import mixture_quantile
from skpref._posterior import Posterior


class Relative(NamedTuple):
    """Utilities above their mean over the items, each of shape (n,)."""

    mean: Array
    lower: Array
    upper: Array


class Inspected(NamedTuple):
    """A posterior, and how items come to it.

    Attributes
    ----------
    posterior : Posterior
    rows_of : callable
        Items as the user has them to rows that the posterior sees.
    training : ndarray of shape (n_items, n_features)
        Items of the answers, as the posterior sees them.
    feature_names : ndarray or None
        Of the items as the user has them, where they are known.
    """

    posterior: Posterior
    rows_of: Callable[[Any], Array]
    training: Array
    feature_names: NDArray[Any] | None

    @classmethod
    def of(cls, model: Any) -> Self:
        """Of a posterior, or of anything fitted that has one.

        Parameters
        ----------
        model : Posterior, estimator, pipeline that ends in one, search over one, or optimizer

        Raises
        ------
        TypeError
            If it has no posterior.
        """
        model = getattr(model, "best_estimator_", model)
        encode, last = None, model
        if hasattr(model, "steps"):
            last = model[-1]
            encode = model[:-1].transform if len(model.steps) > 1 else None
        elif hasattr(model, "to_unit"):
            encode = model.to_unit
        posterior = last if isinstance(last, Posterior) else getattr(last, "posterior_", None)
        if not isinstance(posterior, Posterior):
            if hasattr(posterior, "of"):
                raise TypeError(
                    f"{type(last).__name__} was fitted to several users, each with a utility of "
                    "their own; one utility is needed here. predict(items, return_std=True, "
                    "users=...) gives means and deviations, those of the population without users."
                )
            raise TypeError(
                f"model must be a Posterior or have one as posterior_, which a fitted "
                f"PairwisePreferenceRegressor has; got {type(last).__name__}. Was it fitted?"
            )

        def rows_of(items: Any) -> Array:
            return posterior.check_items(items if encode is None else encode(items))

        observations = getattr(last, "observations_", None)
        training = posterior.anchors if observations is None else observations.items
        names = posterior.feature_names if encode is None else None
        return cls(posterior, rows_of, training, names)

    def items(self, items: Any = None) -> tuple[Array, NDArray[Any] | None]:
        """Rows of the items asked for, and their names if they have any.

        Parameters
        ----------
        items : ItemTable, array-like, DataFrame or None
            None: the table of the model, else its training items.

        Raises
        ------
        ValueError
            If there is none.
        """
        table, who = self.posterior.table, self.posterior.who
        if items is None and table is not None:
            return self.posterior.check_items(table), table.names
        if items is None:
            ids = None if who is None else who.ids.names
            codes = None if who is None else self.training[:, who.place].astype(np.intp)
            return self.training, None if ids is None else ids[codes]
        rows = self.rows_of(items)
        if not len(rows):
            raise ValueError(
                "items is empty; give at least one item, or None for all of the model."
            )
        return rows, _names_of(items, table)

    def relative(self, rows: Array, level: float) -> Relative:
        """Posterior mean and central intervals of f(x) less the mean of f over the rows.

        Answers tell differences alone; those from the mean of the rows are free of whatever all
        utilities share. Their distributions are mixtures of normals, so nothing is drawn.
        """
        means = self.posterior.component_means(rows)
        means = means - means.mean(axis=0)
        # All components share the covariance that one of them has.
        cov = self.posterior.hallucinate(0).cov(rows)
        by_row = cov.mean(axis=1)
        variance = np.diagonal(cov) - 2.0 * by_row + by_row.mean()
        deviation = np.sqrt(np.maximum(variance, 0.0))
        tail = 0.5 * (1.0 - level)
        lower, upper = (mixture_quantile(q, means, deviation) for q in (tail, 1.0 - tail))
        return Relative(means.mean(axis=1), lower, upper)


def noise_deviation(posterior: Posterior) -> float | None:
    """σ, the standard deviation of an item's noise, where the likelihood has one."""
    variance = getattr(posterior.likelihood, "noise_variance", None)
    return None if variance is None else float(np.sqrt(variance))


def _names_of(items: Any, table: ItemTable | None) -> NDArray[Any] | None:
    if isinstance(items, ItemTable):
        return items.names
    if is_frame(items):
        index = getattr(items, "index", None)
        # The default index of a frame just counts its rows.
        counts = getattr(index, "start", None) == 0 and getattr(index, "step", 0) == 1
        return None if index is None or counts else np.asarray(index, dtype=object)
    if hasattr(items, "dtype") or np.ndim(items[0]) == 0:
        listed = np.asarray(items)
        if listed.ndim == 1 and all_strings(listed):
            return listed.astype(object)
        if listed.ndim == 1 and table is not None and table.names is not None:
            return table.names[listed.astype(np.intp)]
    return None
