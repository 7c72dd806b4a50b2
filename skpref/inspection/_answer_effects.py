"""What answers say of ties, grades and who is shown first, beside utilities."""

from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils import Bunch

from skpref._utils import Array, PrintableBunch, check_choice, check_number
from skpref.data import object_array, table_frame
from skpref.fitting import UNITS, Inspected, hyperparameter_spread, unit_of_answers
from skpref.likelihoods import JudgeReliability, Likelihood

# Steps of the differences of a value in a unit, in nats of hyperparameters.
_STEP = 1e-4


def answer_effects(
    model: Any,
    *,
    user: Any = None,
    unit: str = "noise",
    level: float = 0.9,
    average: bool | str = "auto",
) -> Bunch:
    """Return what was learned of the answers themselves: the order effect, and thresholds.

    Parameters
    ----------
    model, user
        As in `leaderboard`.
    unit : {"noise", "elo", "logit"}, default="noise"
        See `leaderboard`.
    level : float, default=0.9
        Probability that an interval holds, of each value for itself.
    average : "auto", True or False, default="auto"
        Whether values are means over hyperparameters, as in `leaderboard`.

    Returns
    -------
    effects : Bunch
        Arrays of shape (n,); ``lower`` and ``upper`` are NaN where the engine has no evidence
        ("hmc", "gibbs", "svi" by points), the model is one of several users, or nothing but a
        posterior is given.

        names : what was learned: "order_effect", "tie_threshold", "grade_increment_k", by how much
            a threshold of grades is above the one before
        value, lower, upper : in units, with a central interval
        frame : DataFrame of these, where pandas is installed, else None
        unit, level

    Raises
    ------
    TypeError, ValueError
        As by `leaderboard`.

    Notes
    -----
    Where the mean over hyperparameters is not taken, intervals are those of Laplace's normal around
    the hyperparameters of the fit, by differences of gradients of the evidence, which takes two
    runs of the engine a hyperparameter. An order effect is normal, a threshold log-normal. Others
    are not held: that the noise is not known is in the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import answer_effects
    >>> X = np.array([["ann", "bob"]] * 60 + [["bob", "ann"]] * 60)  # the first is at home
    >>> y = np.tile([1, 1, 0, 1, 1, 0], 20)
    >>> model = PairwisePreferenceRegressor(order_effect_bounds=(-9.0, 9.0))
    >>> effects = answer_effects(model.fit(X, y, order=np.ones(120)))
    >>> effects.names.tolist(), bool(0.2 < effects.lower[0] < 0.61 < effects.upper[0])
    (['order_effect'], True)
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_choice("unit", unit, tuple(UNITS))
    subject = Inspected.from_model(model, user)
    over = subject.over_hyperparameters(average)
    likelihood = _reference_likelihood(subject.posterior.likelihood)
    is_linear = np.array([name in likelihood.linear for name in likelihood.free], dtype=bool)

    def from_scale(scaled: Array) -> Array:
        return np.where(is_linear, scaled, np.exp(np.where(is_linear, 0.0, scaled)))

    posteriors = [each.posterior for each in over.subjects]
    scaled = np.array(
        [
            _scaled_values(_reference_likelihood(each.likelihood), unit, each.effect_variance)
            for each in posteriors
        ]
    )
    centre = over.weights @ scaled
    if len(posteriors) > 1:
        deviation = np.sqrt(over.weights @ (scaled - centre) ** 2)
    else:
        deviation = _laplace_deviations(subject, likelihood, unit)
    half = ndtri(0.5 + 0.5 * level) * deviation
    columns = {
        "names": object_array(likelihood.free),
        "value": over.weights @ from_scale(scaled),
        "lower": from_scale(centre - half),
        "upper": from_scale(centre + half),
    }
    is_utility = [likelihood.unit_powers.get(name) == 1 for name in likelihood.free]
    columns = {name: column[is_utility] for name, column in columns.items()}
    frame = table_frame(columns, range(sum(is_utility)))
    return PrintableBunch(**columns, frame=frame, unit=unit, level=level)


def _reference_likelihood(likelihood: Likelihood) -> Likelihood:
    """Return the likelihood of the reference judge, without the reliability of others."""
    return likelihood.base if isinstance(likelihood, JudgeReliability) else likelihood


def _scaled_values(likelihood: Likelihood, unit: str, effect_variance: float) -> Array:
    """Return learned hyperparameters in a unit of utility, in logarithms where not linear."""
    is_linear = [name in likelihood.linear for name in likelihood.free]
    length = unit_of_answers(likelihood, unit, effect_variance)
    return np.where(is_linear, likelihood.theta / length, likelihood.theta - np.log(length))


def _laplace_deviations(subject: Inspected, likelihood: Likelihood, unit: str) -> Array:
    """Return posterior deviations of scaled values by Laplace; NaN where none were learned."""
    n = len(likelihood.free)
    if subject.learned is None or not n or not subject.has_evidence:
        return np.full(n, np.nan)
    model, readings = subject.learned
    root = hyperparameter_spread(model, readings[0])[-n:]
    theta, variance = likelihood.theta, subject.posterior.effect_variance
    ends = [
        np.array([_scaled_values(likelihood.at(theta + by), unit, variance) for by in steps])
        for steps in (_STEP * np.eye(n), -_STEP * np.eye(n))
    ]
    slopes = (ends[0] - ends[1]).T / (2.0 * _STEP)
    return np.linalg.norm(slopes @ root, axis=1)
