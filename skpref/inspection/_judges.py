"""How reliable judges are, as a table."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import PrintableBunch, check_choice, check_number
from skpref.data import table_frame
from skpref.fitting import UNITS, Judges, last_step, unit_length


def judge_reliability(
    model: Any, votes: Any = None, *, unit: str = "noise", level: float = 0.9
) -> Bunch:
    """Return judges with their reliability and what biases each, the most reliable first.

    Parameters
    ----------
    model : estimator, pipeline or search
        Fitted with ``judges``.
    votes : Bunch, default=None
        What `skpref.duels.from_votes` gave, for the names of the controls; slopes are then per unit
        of the columns as they stand in the table of votes.
    unit : {"noise", "elo", "logit"}, default="noise"
        In which slopes and order effects are given, as those of `control_effects`, see
        `leaderboard`; ``judges_`` has them as differences of the posterior's own utilities.
    level : float, default=0.9
        Probability that an interval holds, of each judge for itself.

    Returns
    -------
    judges : Bunch
        Arrays of shape (n_judges,).

        names : ids of the judges
        n_answers : int
        reliability, lower, upper : posterior mean and central interval; 1 is the reference judge,
            0 answers at random, below 0 is the wrong way round
        probability_random, probability_adversarial : that a judge answers at random, or the wrong
            way round
        order_effect, order_lower, order_upper : what a judge adds to the utility of what is shown
            first, beside the order effect of all, in ``unit``; None where judges have none of
            their own
        slopes : dict of arrays (n_judges, 3), by the name or the position of each control: what a
            judge adds to the utility for one more of it, in ``unit``, beside the slope that all
            share, and the ends of the interval
        level, unit
        frame : DataFrame, one row a judge, where pandas is installed, else None

    Raises
    ------
    ValueError
        If the model was fitted without judges, or the unit is none of these.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import judge_reliability
    >>> rng = np.random.default_rng(0)
    >>> duels = rng.uniform(size=(120, 2, 1))
    >>> right = duels[:, 0, 0] > duels[:, 1, 0]
    >>> who = np.repeat(["ann", "bob"], 60)
    >>> y = np.where(who == "ann", right, rng.integers(0, 2, 120))
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit(duels, y, judges=who)
    >>> found = judge_reliability(model)
    >>> found.names.tolist(), (found.probability_random > 0.5).tolist()
    (['ann', 'bob'], [False, True])
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_choice("unit", unit, tuple(UNITS))
    last = last_step(model)
    judges = getattr(last, "judges_", None)
    if judges is None:
        raise ValueError(
            f"{type(last).__name__} knows no judges. Fit a PairwisePreferenceRegressor with "
            "judges=, the judge of each answer."
        )
    length = unit_length(last.posterior_, unit)
    order = np.argsort(-judges.reliability, kind="stable")
    interval = judges.reliability_interval(level)[order]
    columns: dict[str, Any] = {
        "n_answers": judges.n_answers[order],
        "reliability": judges.reliability[order],
        "lower": interval[:, 0],
        "upper": interval[:, 1],
        "probability_random": judges.probability_random[order],
        "probability_adversarial": judges.probability_adversarial[order],
    }
    own = dict.fromkeys(("order_effect", "order_lower", "order_upper"))
    if judges.order_effect is not None:
        ends = judges.order_effect_interval(level)[order] / length
        own = dict(zip(own, (judges.order_effect[order] / length, *ends.T), strict=True))
        columns |= own
    slopes = {
        name: np.column_stack([judges.control_slopes[column], ends])[order] / (scale * length)
        for column, name, scale in control_labels(judges, votes)
        for ends in [judges.control_slope_interval(column, level)]
    }
    for name, slope in slopes.items():
        columns |= dict(
            zip((f"{name}_slope", f"{name}_lower", f"{name}_upper"), slope.T, strict=True)
        )
    names = judges.ids[order]
    frame = table_frame(columns, list(names))
    # None where there is no order effect, which the frame leaves out.
    return PrintableBunch(
        names=names, **{**own, **columns}, slopes=slopes, level=level, unit=unit, frame=frame
    )


def control_labels(judges: Judges, votes: Any = None) -> list[tuple[int, Any, float]]:
    """Return the position of each control of judges, its name, and how much of it is one unit."""
    if votes is None:
        return [(column, column, 1.0) for column in judges.slopes]
    names, scales = list(votes["controls"]), np.asarray(votes["control_scale"], dtype=float)
    # The first column of votes is of ids.
    return [(column, names[column - 1], float(scales[column - 1])) for column in judges.slopes]
