"""The page itself, on anywidget: what it shows, the course of the run, and what it sends."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from skpref.fitting import Inspected, unit_length
from skpref.optimize import item_title
from skpref.plotting import best_so_far, read_run

_LEVEL = 0.9
# Answers in the strip of the last ones, which has room for no more.
LAST_ANSWERS = 10


def make_panel(heard: Callable[[dict], None]) -> Any:
    """Return a new page, an anywidget, that calls a function with each of its messages.

    Raises
    ------
    ImportError
        If anywidget is not installed.
    """
    panel = _panel_class()()
    panel.on_msg(lambda widget, content, buffers: heard(content))
    return panel


@cache
def _panel_class():
    """Return the class of the page; ImportError if anywidget is not installed."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            'Judge requires anywidget. You can install it with `pip install "skpref[notebook]"`'
        ) from error

    class JudgePanel(anywidget.AnyWidget):
        """What is asked, and how things stand."""

        _esm = files("skpref.widgets").joinpath("judge.js").read_text("utf-8")
        _css = files("skpref.widgets").joinpath("judge.css").read_text("utf-8")
        question = traitlets.Dict().tag(sync=True)
        status = traitlets.Dict().tag(sync=True)

    return JudgePanel


def last_answers(optimizer: Any) -> list[dict]:
    """Return what the last answers chose, the oldest first, as the page shows it."""
    if not hasattr(optimizer, "to_unit") or not optimizer.n_told_:
        return []
    run = read_run(optimizer)
    last = zip(run.best, optimizer.history_, strict=True)
    return [
        {"text": item_title(run.items[won])}
        if won is not None
        else {"text": _title_undecided(outcome)}
        for won, (_, outcome) in list(last)[-LAST_ANSWERS:]
    ]


def _title_undecided(outcome):
    """Return the words for an outcome that names no single item."""
    if outcome == {"none": True}:
        return "none"
    return "no difference" if outcome == "tie" else "several"


def run_course(optimizer: Any) -> dict | None:
    """Return the utilities that each answer of a run compared, for the page; None without any.

    Returns
    -------
    dict
        ``shown``: of each answer the utilities of the items shown, above the mean of all of them;
        ``chosen``: of each answer the position of the best, or None; ``best``, ``lower`` and
        ``upper``: of each answer the utility of the best item so far, and its interval.
    """
    if not hasattr(optimizer, "to_unit") or not optimizer.n_told_:  # a learner seeks no best item
        return None
    run = read_run(optimizer)
    posterior = optimizer.posterior_
    length = unit_length(posterior, "noise")
    relative = (
        Inspected.from_model(posterior).intervals_about_mean(run.rows, _LEVEL).in_unit(length)
    )
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
