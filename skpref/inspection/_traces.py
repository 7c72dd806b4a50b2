"""Utilities over the draws of a sampler, chain by chain."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from skpref._utils import PrintableBunch, check_choice, check_number
from skpref.data import table_frame
from skpref.fitting import UNITS, last_step, unit_length
from skpref.gp import PosteriorMixture
from skpref.inspection._contenders import contenders
from skpref.samplers.diagnostics import effective_draws, rhat


def sampler_traces(
    model: Any,
    items: Any = None,
    *,
    at: Mapping | ArrayLike | None = None,
    time: Any = None,
    top: int | None = None,
    unit: str = "noise",
) -> Bunch:
    """Return utilities given each draw of the noisy margins, in the order of the chains.

    Parameters
    ----------
    model : estimator, pipeline or search
        Fitted with an engine that draws, `skpref.inference.HMC` or `Gibbs`.
    items, at, time
        Whose utilities, as in `leaderboard`.
    top : int, default=None
        Only so many of them: those of the largest posterior means. The zero stays that of all.
    unit : {"noise", "elo", "logit"}, default="noise"
        See `leaderboard`.

    Returns
    -------
    traces : Bunch
        The largest posterior mean first.

        names, position : ndarray of shape (n_items,), as in `leaderboard`
        draws : ndarray of shape (n_items, n_chains, n_draws)
            Mean of the utility given the draw, above the mean over all items, in units. What the
            utility varies beside, given the margins, is the same at every draw.
        rhat : ndarray of shape (n_items,)
            Rank-normalised split-R̂: above 1.01 chains have not mixed; NaN of fewer than 4 draws a
            chain.
        ess : ndarray of shape (n_items,)
            Effective number of draws (of the bulk) over all chains.
        n_items : int
            How many the zero is the mean of.
        unit : str
        frame : DataFrame of ``rhat`` and ``ess``, where pandas is installed, else None

    Raises
    ------
    ValueError
        If the model's engine does not draw, or as by `leaderboard`.

    Notes
    -----
    ``diagnostics_`` of the estimator tells the same of every answer's margin. What was discarded as
    burn-in is not kept.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import HMC
    >>> from skpref.inspection import sampler_traces
    >>> games = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["cid", "bob"]]  # winner first
    >>> engine = HMC(draws=400, chains=4)
    >>> model = PairwisePreferenceRegressor(inference=engine, optimizer=None, random_state=0)
    >>> traces = sampler_traces(model.fit(games))
    >>> traces.names[0], traces.draws.shape, bool((traces.rhat < 1.05).all())
    ('ann', (3, 4, 100), True)
    """
    check_choice("unit", unit, tuple(UNITS))
    if top is not None:
        check_number("top", top, low=1, integer=True)
    last = last_step(model)
    posterior: Any = last.posterior_
    engine: Any = getattr(last, "engine_", None)
    if hasattr(engine, "chains") and isinstance(posterior, PosteriorMixture):
        raise ValueError(
            f"got a model with {len(posterior.parts)} readings of its judges, each of which has "
            "chains of its own; traces are of one posterior. Look at those of a fit without "
            "judges=, or of one with more judges."
        )
    if not hasattr(engine, "chains") or getattr(posterior, "n_components", 1) < 2:
        raise ValueError(
            f"There are no draws in this {type(last).__name__}, whose engine is {engine!r}: fit "
            "with inference='hmc' or 'gibbs', of more than one draw."
        )
    ranked = contenders(model, items, at=at, time=time)
    n, m, width = ranked.rows.shape
    means = ranked.subject.posterior.component_means(ranked.rows.reshape(n * m, width))
    utility = np.einsum("nms,m->ns", means.reshape(n, m, -1), ranked.shares)
    utility = (utility - utility.mean(axis=0)) / unit_length(posterior, unit)
    order = np.argsort(-utility.mean(axis=1), kind="stable")[:top]
    chains = min(engine.chains, engine.draws)
    draws = utility[order].reshape(len(order), chains, -1)
    by_chain = np.moveaxis(draws, 0, 2)
    split = ess = np.full(len(order), np.nan)
    with suppress(ValueError):  # too few draws of a chain say nothing of it
        split, ess = rhat(by_chain), effective_draws(by_chain, "bulk")
    names = ranked.names[order]
    return PrintableBunch(
        names=names,
        position=order,
        draws=draws,
        rhat=split,
        ess=ess,
        n_items=n,
        unit=unit,
        frame=table_frame({"rhat": split, "ess": ess}, list(names)),
    )
