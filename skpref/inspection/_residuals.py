"""Residuals of predicted probabilities by group of answers."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, xlogy
from sklearn.utils import Bunch

from skpref._utils import NEGLIGIBLE, PrintableBunch, check_number
from skpref.data import table_frame
from skpref.inspection._outcomes import read_forecast
from skpref.metrics import group_codes


def group_residuals(
    y: ArrayLike | None,
    proba: ArrayLike,
    groups: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    level: float = 0.9,
) -> Bunch:
    r"""Return what happened less what was predicted, group by group.

    Two residuals, each beside what calibrated predictions would show by chance. Of each outcome the
    share of answers with it less its mean probability: too many wins of what is shown first, too
    few ties. Of all outcomes together the log-loss less the loss that the predictions expect of
    themselves, their entropy: above zero they are too sure, below too timid.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, k), or None
        Answers that the model has not seen, as `skpref.plotting.CalibrationDisplay` takes them.
    proba : array-like of shape (n,), (n, n_outcomes) or (n, k)
        That the first wins, or the columns of ``predict_proba``.
    groups : array-like of shape (n,)
        Of each answer: a year, a league, a judge, a kind of prompt.
    classes : array-like, default=None
        Label of each column, as ``classes_`` of the estimator.
    level : float, default=0.9
        Probability with which calibrated predictions stay within the bands, of each for itself.

    Returns
    -------
    residuals : Bunch
        groups : ndarray of shape (n_groups,), ascending
        size : ndarray of int of shape (n_groups,), answers
        outcomes : list of str; "second wins", "tie" and so on; empty of choices, whose items are
            not the same from answer to answer
        observed, predicted, residual, band : ndarray of shape (n_groups, n_outcomes)
            Shares, mean probabilities, their difference, and half the width of the band.
        log_loss, expected_loss, surprise, surprise_band : ndarray of shape (n_groups,)
            In nats for each answer; ``surprise`` is the difference of the first two.
        level : float
        frame : DataFrame, one row a group, where pandas is installed, else None

    Raises
    ------
    ValueError
        If y, proba and groups do not fit together.

    Notes
    -----
    Bands are normal, of the variances :math:`\sum p (1 - p)` and
    :math:`\sum_i (\sum_c p_c \log^2 p_c - H_i^2)` that independent answers have under the
    predictions; of groups of a few answers they are rough. See Seillier-Moiseiwitsch and Dawid, "On
    testing the validity of sequential probability forecasts", JASA 1993.

    Examples
    --------
    >>> from skpref.inspection import group_residuals
    >>> found = group_residuals([1, 1, 0, 1], [0.5, 0.9, 0.5, 0.7], ["en", "en", "de", "de"])
    >>> found.outcomes, found.residual.round(2).tolist()
    (['second wins', 'first wins'], [[0.1, -0.1], [-0.3, 0.3]])
    >>> found.surprise.round(2).tolist()
    [-0.13, -0.11]
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    outcome_proba, column, outcomes = read_forecast(y, proba, classes)
    n = len(outcome_proba)
    names, code = group_codes(groups, n)
    size = np.bincount(code, minlength=len(names))
    half = ndtri(0.5 + 0.5 * level)

    def by_group(values):
        return np.stack([np.bincount(code, each, minlength=len(names)) for each in values], axis=1)

    happened = np.arange(outcome_proba.shape[1])[:, None] == column
    share = size[:, None]
    observed, predicted = by_group(happened) / share, by_group(outcome_proba.T) / share
    band = half * np.sqrt(by_group((outcome_proba * (1.0 - outcome_proba)).T)) / share
    safe = np.maximum(outcome_proba, NEGLIGIBLE)  # what was called impossible has a finite loss
    entropy = -xlogy(outcome_proba, safe).sum(axis=1)
    loss = -np.log(safe[np.arange(n), column])
    variance = np.maximum((outcome_proba * np.log(safe) ** 2).sum(axis=1) - entropy**2, 0.0)
    sums = by_group([loss, entropy, variance])
    log_loss, expected = sums[:, 0] / size, sums[:, 1] / size
    columns: dict[str, Any] = {"size": size}
    if outcomes is None:
        outcomes, none = [], np.zeros((len(names), 0))
        observed = predicted = band = none
    for j, name in enumerate(outcomes):
        columns |= {name: observed[:, j] - predicted[:, j], f"{name}, band": band[:, j]}
    surprise, surprise_band = log_loss - expected, half * np.sqrt(sums[:, 2]) / size
    columns |= {"surprise": surprise, "surprise, band": surprise_band}
    return PrintableBunch(
        groups=names,
        size=size,
        outcomes=outcomes,
        observed=observed,
        predicted=predicted,
        residual=observed - predicted,
        band=band,
        log_loss=log_loss,
        expected_loss=expected,
        surprise=surprise,
        surprise_band=surprise_band,
        level=level,
        frame=table_frame(columns, list(names)),
    )
