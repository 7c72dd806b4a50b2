"""The course of a run as numbers: what was shown, what was chosen, and the best so far."""

from typing import Any

from skpref.fitting import Inspected, unit_length
from skpref.plotting import best_so_far, run_of

_LEVEL = 0.9


def course_of(optimizer: Any) -> dict | None:
    """The numbers of `OptimizationDisplay`, in units of noise; None if there are none to show.

    Returns
    -------
    dict
        ``shown``: of each answer the utilities of the items shown, above the mean of all of them;
        ``chosen``: of each answer the position of the best, or None; ``best``, ``lower`` and
        ``upper``: of each answer the utility of the best item so far, and its interval.
    """
    if not hasattr(optimizer, "to_unit") or not optimizer.n_told_:  # a learner seeks no best item
        return None
    run = run_of(optimizer)
    posterior = optimizer.posterior_
    length = unit_length(posterior.likelihood, "noise")
    relative = Inspected.of(posterior).relative(run.rows, _LEVEL).per(length)
    best = best_so_far(run, relative.mean)
    chosen = [
        None if won is None else positions.tolist().index(won)
        for won, positions in zip(run.best, run.shown, strict=True)
    ]
    return {
        "shown": [relative.mean[positions].tolist() for positions in run.shown],
        "chosen": chosen,
        "best": relative.mean[best].tolist(),
        "lower": relative.lower[best].tolist(),
        "upper": relative.upper[best].tolist(),
    }
