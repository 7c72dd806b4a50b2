"""How reliable judges are, as a table."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import PrintableBunch, check_number
from skpref.data import table_frame
from skpref.fitting import last_step


def judge_reliability(model: Any, *, level: float = 0.9) -> Bunch:
    """Judges with the intervals of their reliability, the most reliable first.

    Parameters
    ----------
    model : estimator, pipeline or search
        Fitted with ``judges``.
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
        order_effect, order_lower, order_upper : what a judge adds to what is shown first, in units
            of the reference judge's noise; None unless ``JudgePrior(order_variance=...)`` was set
        level : float
        frame : DataFrame, one row a judge, where pandas is installed, else None

    Raises
    ------
    ValueError
        If the model was fitted without judges.

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
    last = last_step(model)
    judges = getattr(last, "judges_", None)
    if judges is None:
        raise ValueError(
            f"{type(last).__name__} knows no judges. Fit a PairwisePreferenceRegressor with "
            "judges=, the judge of each answer."
        )
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
        ends = judges.order_effect_interval(level)[order]
        own = dict(zip(own, (judges.order_effect[order], *ends.T), strict=True))
        columns |= own
    names = judges.ids[order]
    frame = table_frame(columns, list(names))
    return PrintableBunch(**{"names": names, **columns, **own}, level=level, frame=frame)
