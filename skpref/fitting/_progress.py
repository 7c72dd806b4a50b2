"""Progress of a fit: lines on standard output, and scikit-learn's callbacks."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from skpref._utils import warn
from skpref.data import Comparisons, distinct_rows
from skpref.fitting._forecast import LONG, learning_part, warn_cost
from skpref.fitting._model import Model
from skpref.fitting._search import Search, Step, StopSearch
from skpref.inference import Pass

# Seconds between two lines at verbose=1.
_EVERY = 2.0
# Evaluations that a search takes: 5 to 30, most of names with features and of many answers.
_EVALUATIONS = 20


@contextmanager
def progress(
    estimator, comparisons: Comparisons, model: Model, search: Search | None, timed: bool = False
) -> Iterator["Report"]:
    """Yield monitors of the search and the engine, in the task "fit" of scikit-learn's callbacks.

    Each evaluation of the objective is a task "evaluation"; a callback that says so stops the
    search at the best point so far. Each pass of an engine that makes long ones is a task "pass"; a
    callback that says so ends the fit with what was found so far. A warning tells beforehand of a
    fit that will be long. ``timed``: the items have a time in the last column.
    """
    learned, part = search is not None and len(model.theta) > 0, comparisons
    if search is not None:
        part = learning_part(comparisons, model, search.n_learning_answers)
    warn_cost(comparisons, model, learned, part)
    learned_on = ""
    if part is not comparisons:
        learned_on = f"{len(part.positions)} random ones of {len(comparisons.positions)} answers"
        if search is not None and search.n_learning_answers == "auto" and not model.rule.by_points:
            warn(
                f"Hyperparameters are learned on {learned_on}, then all are fitted with them. "
                "n_learning_answers=None learns on all, which takes longer; an integer says on how "
                "many."
            )
    answers = "choices and rankings" if comparisons.rows.joint else "duels"
    items = _describe_items(estimator, comparisons, timed)
    what = f"{len(comparisons.positions)} {answers} of {items}"
    with report_fit(estimator, what, model.names if learned else [], learned_on) as report:
        yield report


@contextmanager
def report_fit(estimator: Any, what: str, names: list[str], learned_on: str) -> Iterator["Report"]:
    """Run the task "fit" of scikit-learn's callbacks, with a line at its begin and its end.

    Parameters
    ----------
    estimator : BaseEstimator
        With ``verbose``, in a method that runs ``with_callbacks``.
    what : str
        What is fitted.
    names : list of str
        Hyperparameters that are learned.
    learned_on : str
        Which part of the answers they are learned on; empty: all.
    """
    verbose = int(estimator.verbose)
    root = estimator._init_callback_context("fit", max_subtasks=None)
    root.call_on_fit_task_begin(estimator=estimator)
    if verbose and names:
        on = f" on {learned_on}" if learned_on else ""
        _print_line(f"{what}: learning {_describe_names(names)}{on}")
    report = Report(estimator, root, verbose)
    yield report
    if verbose:
        _print_line(f"{what} fitted in {perf_counter() - report.began:.2g} s")
    root.call_on_fit_task_end(estimator=estimator)


class Report:
    """Lines and callbacks that tell of the progress of a fit.

    Parameters
    ----------
    estimator : PairwisePreferenceRegressor
    root : CallbackContext
        Of the task "fit".
    verbose : int

    Attributes
    ----------
    stopped : bool
        Whether a callback ended the passes.
    """

    def __init__(self, estimator, root, verbose: int):
        self.stopped = False
        self._estimator, self._root, self._verbose = estimator, root, verbose
        self._best = -float("inf")
        self._searches, self._seconds = 0, 0.0
        self.began = self._last = perf_counter()

    def report_evaluation(self, step: Step) -> None:
        """Report an evaluation of the search; raise StopSearch where a callback wants to stop."""
        if step.number == 1:  # one search follows another, with judges or from several starts
            self._searches, self._seconds, self._best = self._searches + 1, 0.0, -float("inf")
        if self._searches == step.number == 1:
            _warn_long_search(step.seconds)
        self._seconds += step.seconds
        self._best = max(self._best, step.log_posterior)

        def line(_):
            which = f"search {self._searches}, " if self._searches > 1 else ""
            seconds = self._seconds / step.number
            return (
                f"{which}evaluation {step.number}: log posterior {self._best:.2f}, "
                f"{seconds:.2g} s each"
            )

        if self._report_task("evaluation", line):
            raise StopSearch

    def report_pass(self, step: Pass) -> bool:
        """Report a pass of the engine over the answers; tell whether a callback wants to stop."""

        def line(_):
            return f"pass {step.number}: bound {step.bound:.2f}, residual {step.residual:.1e}"

        self.stopped = self._report_task("pass", line)
        if self.stopped and self._verbose:
            _print_line(f"stopped by a callback after pass {step.number}")
        return self.stopped

    def _report_task(self, name, line):
        """Run one task of the callbacks, with a line if it is due; tell whether a callback stops
        it."""
        time = perf_counter()
        if self._verbose > 1 or (self._verbose and time - self._last >= _EVERY):
            self._last = time
            _print_line(line(time))
        task = self._root.subcontext(name)
        task.call_on_fit_task_begin(estimator=self._estimator)
        return bool(task.call_on_fit_task_end(estimator=self._estimator))


def _warn_long_search(seconds):
    """Warn of a search for hyperparameters that takes minutes, by the time of an evaluation."""
    if seconds * _EVALUATIONS > LONG:
        warn(
            f"An evaluation of the hyperparameters took {seconds:.2g} s, and a search makes some "
            f"{_EVALUATIONS}: about {seconds * _EVALUATIONS / 60.0:.0f} minutes. To spare them: "
            "learn on fewer answers by n_learning_answers. verbose=1 shows how far it is."
        )


def _describe_items(estimator, comparisons, timed):
    """Say in words how many items there are; versions of one id count as one item."""
    rows, place = comparisons.items, estimator.id_column
    if timed:
        rows = distinct_rows(rows[:, :-1])[0]
    if isinstance(place, str) or place is None:
        return f"{len(rows)} items"
    n = len(np.unique(rows[:, place]))
    return f"{n} items" + (f" in {len(rows)} versions" if n < len(rows) else "")


def _describe_names(names):
    """Return names of hyperparameters in words, those of one array once, with their number."""
    several = Counter(name.partition("[")[0] for name in names)
    return ", ".join(f"{name} ({n})" if n > 1 else name for name, n in several.items())


def _print_line(line):
    """Write a line to standard output at once."""
    sys.stdout.write(f"[skpref] {line}\n")
    sys.stdout.flush()
