"""How much of what decides an answer is noise, and how much belongs to its prompt."""

from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri
from sklearn.utils import Bunch

from skpref._utils import NEGLIGIBLE, Array, PrintableBunch, check_number
from skpref.data import table_frame
from skpref.fitting import Inspected
from skpref.gp import GroupedPosterior, posterior_parts

# What the terms of the effects of prompts are called, in their order.
_TERMS = "prompt", "pair"


def variance_shares(model: Any, *, level: float = 0.9, average: bool | str = "auto") -> Bunch:
    """Divide the variance of an answer beside its items' utilities into noise and prompts.

    Parameters
    ----------
    model : estimator, pipeline or posterior
        Fitted with ``prompts=``; without them all of the variance is noise.
    level : float, default=0.9
        Probability that an interval holds, of each share for itself.
    average : "auto", True or False, default="auto"
        Whether shares are means over hyperparameters, as in `leaderboard`; without it their ends
        are NaN.

    Returns
    -------
    shares : Bunch
        names : "noise"; with prompts "prompt", what an item has of its own in a prompt; and "pair",
            what it has of its own where the very pair is judged more than once
        share, lower, upper : ndarray of shape (n,)
            Shares of the variance of one item in an answer about a new prompt, between 0 and 1
        frame : DataFrame of these, where pandas is installed, else None
        n_prompts : int
            0 where no prompt has several answers, so that nothing tells its effects from noise
        n_repeats : float
            Answers beyond the first of each prompt
        level

    Raises
    ------
    TypeError, ValueError
        As by `leaderboard`.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import variance_shares
    >>> rng = np.random.default_rng(0)
    >>> prompts = np.repeat(np.arange(40), 4)
    >>> better = np.repeat(rng.normal(size=40), 4) + rng.normal(size=160) > 0  # by prompt
    >>> model = PairwisePreferenceRegressor().fit([["a", "b"]] * 160, better, prompts=prompts)
    >>> shares = variance_shares(model)
    >>> shares.names.tolist(), bool(shares.lower[1] > 0.1), shares.n_prompts, shares.n_repeats
    (['noise', 'prompt'], True, 40, 120.0)
    """
    check_number("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    subject = Inspected.from_model(model)
    over = subject.over_hyperparameters(average)
    every = np.array([_term_shares(each.posterior) for each in over.subjects])
    share = over.weights @ every
    lower = upper = np.full(len(share), np.nan)
    if over.n_hyperparameters > 1:
        scaled = logit(np.clip(every, NEGLIGIBLE, 1.0 - NEGLIGIBLE))
        centre = over.weights @ scaled
        half = ndtri(0.5 + 0.5 * level) * np.sqrt(over.weights @ (scaled - centre) ** 2)
        lower, upper = expit(centre - half), expit(centre + half)
    names = np.array(["noise", *_TERMS[: len(share) - 1]], dtype=object)
    columns = {"names": names, "share": share, "lower": lower, "upper": upper}
    n_prompts, n_repeats = _count_repeats(subject)
    return PrintableBunch(
        **columns,
        frame=table_frame(columns, range(len(names))),
        n_prompts=n_prompts,
        n_repeats=n_repeats,
        level=level,
    )


def _term_shares(posterior: Any) -> Array:
    """Return the shares of variance of the noise and of each term of the effects of prompts."""
    part = posterior_parts(posterior)[1][0]
    noise = part.likelihood.utility_noise
    terms = part.effect_variances if isinstance(part, GroupedPosterior) else []
    parts = np.array([noise, *terms])
    return parts / parts.sum()


def _count_repeats(subject: Inspected) -> tuple[int, float]:
    """Return the number of prompts of a fit, and of answers beyond the first of each."""
    if subject.learned is None:
        return 0, 0.0
    comparisons = subject.learned[1][0]
    column = comparisons.group_column
    if column is None:
        return 0, 0.0
    prompt = comparisons.items[comparisons.positions[:, 0], column].astype(np.intp)
    weights = np.bincount(prompt, comparisons.weight)
    used = weights[weights > 0.0]
    return len(used), float(used.sum() - len(used))
