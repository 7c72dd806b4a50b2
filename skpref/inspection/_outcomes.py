"""Predicted probabilities beside what happened, of duels, of duels with ties and of choices."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length

from skpref._utils import Array, given_metadata, warn
from skpref.data import DuelScale, chosen_of, parse_outcomes

# Whose answers those without metadata are taken for.
_WITHOUT = {
    "judges": "the reference judge, of reliability 1",
    "order": "people who are shown the first item first",
    "time": "the last time of training",
    "users": "somebody of the population",
}


class Forecast(NamedTuple):
    """Probabilities of the outcomes of answers, and which of them occurred.

    Attributes
    ----------
    proba : ndarray of shape (n, n_outcomes)
        0 where a set had no item.
    column : ndarray of int of shape (n,)
        Which occurred.
    names : list of str or None
        Of the columns; None: these are the items of sets.
    """

    proba: Array
    column: NDArray[np.intp]
    names: list[str] | None


class Predicted(NamedTuple):
    """Probabilities of one outcome, whether it occurred, and of which answers these are."""

    outcome: str
    proba: Array
    happened: NDArray[np.bool_]
    answers: NDArray[np.intp]

    def take(self, rows: NDArray[np.bool_]) -> Self:
        """Return the predictions of some answers, by a mask."""
        is_taken = rows[self.answers]
        return type(self)(
            self.outcome, self.proba[is_taken], self.happened[is_taken], self.answers[is_taken]
        )


def predicted_proba(model: Any, X: Any, metadata: dict[str, Any] | None) -> Array:
    """Return a model's predictions with metadata; warn where some of the fit's lack."""
    metadata = metadata or {}
    best = getattr(model, "best_estimator_", model)  # of a search, which passes nothing on
    last = best.steps[-1][1] if hasattr(best, "steps") else best
    lacking: set[str] = (
        getattr(last, "_missing_metadata", lambda given: set())(given_metadata(**metadata))
        & _WITHOUT.keys()
    )
    if lacking:
        names = sorted(lacking)
        params = ", ".join(f'"{name}": {name}' for name in names)
        warn(
            f"The model was fitted with {' and '.join(names)}, and predict_params names none: "
            f"these are the probabilities of {' and of '.join(_WITHOUT[name] for name in names)}, "
            f"which other answers do not follow. Pass predict_params={{{params}}}"
            + (" and the search's best_estimator_." if best is not model else ".")
        )
    proba: Array = model.predict_proba(X, **metadata)
    return proba


def read_forecast(y: Any, proba: Any, classes: Any = None) -> Forecast:
    """Return the probabilities of outcomes, and the column of what happened in each answer.

    Parameters
    ----------
    y, proba, classes
        See `skpref.plotting.CalibrationDisplay.from_predictions`.

    Raises
    ------
    ValueError
        If they do not fit together.
    """
    proba = _check_probabilities(proba)
    n, n_columns = proba.shape
    scale = DuelScale.of_columns(n_columns)
    if n_columns == 2 and (y is None or np.ndim(y) == 1):
        won = np.ones(n, dtype=bool) if y is None else parse_outcomes(y)
        check_consistent_length(won, proba)
        return Forecast(proba, won.astype(np.intp), scale.names)
    if y is None:
        raise ValueError(f"y=None stands for duels alone; proba has {n_columns} columns.")
    y = np.asarray(y)
    check_consistent_length(y, proba)
    if y.ndim == 2:
        return Forecast(proba, chosen_of(y, proba.shape), None)
    if classes is None:
        signed = y.dtype.kind in "if" and np.any(y < 0)  # positions are not below 0
        classes = scale.labels if signed else np.arange(n_columns)
    labels = np.asarray(classes).tolist()
    column = _label_positions(y, labels, n_columns)
    return Forecast(proba, column, scale.names if labels == scale.labels.tolist() else None)


def _check_probabilities(proba: Any) -> Array:
    """Return probabilities as an array (n, n_outcomes); ValueError for others."""
    proba = check_array(proba, dtype=np.float64, ensure_2d=False, input_name="proba")
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.ndim != 2 or proba.shape[1] < 2 or proba.min() < 0.0 or proba.max() > 1.0 + 1e-9:
        raise ValueError(
            f"proba must hold probabilities, of shape (n,), (n, n_outcomes) or (n, k); got shape "
            f"{proba.shape} with values from {proba.min():.3g} to {proba.max():.3g}."
        )
    return proba


def _label_positions(y: Any, labels: list, n_columns: int) -> Any:
    """Return the position of each answer among the labels; ValueError if it is none."""
    if len(labels) != n_columns:
        raise ValueError(f"proba has {n_columns} columns, classes {len(labels)} labels: {labels}.")
    column = np.array([labels.index(label) if label in labels else -1 for label in y.tolist()])
    if np.any(column < 0):
        raise ValueError(
            f"y holds {y[column < 0].tolist()[0]!r}, which is none of the labels {labels}."
        )
    return column


def predicted_outcomes(y: Any, proba: Any, classes: Any = None) -> list[Predicted]:
    """Return, for each outcome, its predicted probabilities and whether it happened.

    Parameters
    ----------
    y, proba, classes
        As for `read_forecast`.
    """
    proba, column, names = read_forecast(y, proba, classes)
    if names is None:  # each item of a set against the others
        happened = np.zeros(proba.shape, dtype=bool)
        happened[np.arange(len(proba)), column] = True
        is_item = happened | (proba > 0.0)  # no item, no probability
        return [Predicted("chosen", proba[is_item], happened[is_item], np.nonzero(is_item)[0])]
    every = np.arange(len(proba))
    shown = [1] if len(names) == 2 else reversed(range(len(names)))
    return [Predicted(names[j], proba[:, j], column == j, every) for j in shown]
