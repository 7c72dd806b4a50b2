"""Soft answers: probabilities of the outcomes of a duel instead of one of them."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpref.data._containers import argument_floats, fill_masked, is_frame, refuse_rows, take_rows
from skpref.data._kinds import LARGEST_LABEL, DuelScale
from skpref.data._metadata import check_some_weight, check_weights

# By so much the probabilities of one answer may miss 1, as they are rounded.
ROUNDED = 1e-3


def from_probabilities(X: Any, proba: Any, *, sample_weight: Any = None) -> Bunch:
    """Build weighted duels of the probabilities of their outcomes.

    Such are the probabilities that a language model gives to its tokens "A" and "B", or the shares
    of a panel. A duel becomes one row for each outcome that is possible, with the probability as
    its weight: its log-likelihood is ``p log P(first wins) + (1 - p) log P(second wins)``, the
    expectation of that of an answer, and the cross-entropy by which it is scored. Rows and weights
    then go wherever such go: judges, ties, grades, `partial_fit`, scorers.

    Parameters
    ----------
    X : DuelFrame, array-like or DataFrame of n_duels rows
        Duels in any of the forms that `fit` takes.
    proba : array-like of shape (n_duels,) or (n_duels, n_outcomes)
        Probability that the first wins; or those of all outcomes in the order of
        `predict_proba`: the second wins, the first wins, with a tie between them, and with grades
        2 L columns, or 2 L + 1 with ties. Rows that sum to 1 within 0.001 are divided by their sum.
    sample_weight : array-like of shape (n_duels,), default=None
        How often each duel counts, such as the number of people on its panel. A weight of 1 is one
        answer, however many voted.

    Returns
    -------
    soft : Bunch
        X : of the type of X, with n_rows rows
        y : ndarray of int64 of shape (n_rows,)
            1 the first won, -1 the second, 0 a tie; of grades -L to L.
        sample_weight : ndarray of float64 of shape (n_rows,)
            Above 0.
        rows : ndarray of int of shape (n_rows,)
            Duel that each row is of, ascending: ``order[rows]`` or ``judges[rows]`` go along, and
            ``groups=rows`` keeps the rows of one duel in one fold.

    Raises
    ------
    ValueError
        For probabilities below 0, above 1, missing, or that do not sum to 1, and other lengths.

    Notes
    -----
    Half a win is no tie: 0.5 says that each side wins as often as the other.

    `"hmc"` and `"gibbs"` take whole weights alone, and refuse such rows. Of one pair with 1 to 20
    soft votes, at noise variances of 0.01 to 1, the mean of "ep" was within 0.01 standard
    deviations of quadrature, its standard deviation within 4 %.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.duels import from_probabilities
    >>> soft = from_probabilities(np.array([["tea", "cola"], ["milk", "tea"]]), [0.8, 1.0])
    >>> soft.X.tolist(), soft.y.tolist(), soft.sample_weight.round(3).tolist()
    ([['tea', 'cola'], ['tea', 'cola'], ['milk', 'tea']], [-1, 1, 1], [0.2, 0.8, 1.0])
    >>> model = PairwisePreferenceRegressor(optimizer=None)
    >>> model = model.fit(soft.X, soft.y, sample_weight=soft.sample_weight)
    >>> model.predict_proba([["milk", "cola"]])[0, 1] > 0.5
    np.True_
    """
    if not is_frame(X) and not (hasattr(X, "__array__") and hasattr(X, "shape")):
        X = np.asarray(X)
    X = fill_masked(X)
    if len(X.shape) < 2 or X.shape[1] != 2:
        raise ValueError(
            f"X must hold duels, (n_duels, 2) or (n_duels, 2, n_features); got {X.shape}. "
            "Probabilities of the items of larger sets are no answers about duels."
        )
    n = X.shape[0]
    of_duel, labels, weight = expand_probabilities(proba, n)
    duel_weights = check_weights(sample_weight, n)
    if duel_weights is not None:
        check_some_weight(duel_weights)
        weight = weight * duel_weights[of_duel]
        counted = weight > 0.0
        of_duel, labels, weight = of_duel[counted], labels[counted], weight[counted]
    return Bunch(X=take_rows(X, of_duel), y=labels, sample_weight=weight, rows=of_duel)


def expand_probabilities(proba: Any, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return duel, label and weight of a row for each possible outcome of each duel.

    Parameters
    ----------
    proba : array-like of shape (n,) or (n, n_outcomes)
    n : int
        Number of duels.
    """
    table = argument_floats(proba, "Probabilities must be numbers from 0 to 1")
    if table.ndim not in (1, 2) or len(table) != n:
        raise ValueError(
            f"Probabilities must have shape ({n},) or ({n}, n_outcomes); got {table.shape}."
        )
    refuse_rows(
        ~((table >= 0.0) & (table <= 1.0 + ROUNDED)).reshape(n, -1).all(axis=1),
        "Probabilities must be from 0 to 1; got {value} in row {row} ({count} such rows). Leave "
        "duels without any out.",
        table,
    )
    if table.ndim == 1:
        table = np.minimum(table, 1.0)
        table = np.stack([1.0 - table, table], axis=1)
    if not 2 <= table.shape[1] <= 2 * LARGEST_LABEL + 1:
        raise ValueError(
            f"got {table.shape[1]} columns of probabilities; two say who wins, three that or a tie."
        )
    total = table.sum(axis=1, keepdims=True)
    refuse_rows(
        np.abs(total[:, 0] - 1.0) > ROUNDED,
        "The probabilities in row {row} sum to {value[0]:.6g}, those of {count} rows not to 1; "
        "they must be of all outcomes of a duel.",
        total,
    )
    scale = DuelScale.of_columns(table.shape[1])
    of_duel, column = np.nonzero(table)
    return of_duel, scale.labels[column], (table / total)[of_duel, column]
