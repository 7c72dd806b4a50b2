"""How much of what decides duels no order of the items explains."""

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch

from skpref._utils import PrintableBunch, check_number
from skpref.fitting import Inspected
from skpref.gp import IntransitivePosterior

# Pairs of items that the share is of, at most, and joint draws of them: it is known to 0.01.
_PAIRS, _DRAWS = 1000, 2000


def intransitivity(model: Any, *, level: float = 0.9) -> Bunch:
    """Estimate the share of the margins of all pairs of items that no order explains.

    With z the margins of all pairs of the items that answers are about, noise apart, and h what is
    left of them by the best differences of utilities, it is E‖h‖² / E‖z‖² under the posterior.

    Parameters
    ----------
    model : estimator, pipeline, optimizer or posterior
        Fitted with a kernel that has the term `skpref.kernels.Intransitive`.
    level : float, default=0.9
        Probability that the interval holds.

    Returns
    -------
    result : Bunch
        share : float
            From 0, where one order explains all, to 1, where none explains anything.
        lower, upper : float
            Central interval of ‖h‖² / ‖z‖².
        probability : float
            That there are circles at all, which is 1/10 beforehand; NaN where that was not learned.
            Below 1/2 the fit holds their variance at its lower bound, and the share is zero.
        n_items, level

    Raises
    ------
    ValueError
        If the kernel has no such term.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import intransitivity
    >>> from skpref.kernels import Identity, Intransitive
    >>> duels = [["rock", "scissors"], ["scissors", "paper"], ["paper", "rock"]] * 20
    >>> model = PairwisePreferenceRegressor(Identity() + Intransitive(Identity())).fit(duels)
    >>> circles = intransitivity(model)
    >>> bool(circles.lower > 0.7), bool(circles.probability > 0.99)
    (True, True)
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    subject = Inspected.from_model(model)
    posterior = subject.posterior
    if not isinstance(posterior, IntransitivePosterior):
        raise ValueError(
            f"got a model with the kernel {posterior.kernel}; one with the term Intransitive is "
            "allowed. Fit PairwisePreferenceRegressor(Identity() + Intransitive(Identity()))."
        )
    differences, effects = posterior.drawn_parts(_PAIRS, _DRAWS, 0)
    ordered, left_over = np.sum(differences**2, axis=0), np.sum(effects**2, axis=0)
    lower, upper = np.quantile(
        left_over / (ordered + left_over), [0.5 - 0.5 * level, 0.5 + 0.5 * level]
    )
    log_odds = None if subject.learned is None else subject.learned[0].log_odds_of_effects
    return PrintableBunch(
        share=float(left_over.sum() / (ordered.sum() + left_over.sum())),
        lower=float(lower),
        upper=float(upper),
        probability=np.nan if log_odds is None else float(expit(log_odds)),
        n_items=len(posterior.anchors),
        level=level,
    )
