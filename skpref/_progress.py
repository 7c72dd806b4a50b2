"""What a long fit says while it lasts: lines on standard output, and scikit-learn's callbacks."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from skpref._forecast import mention_cost, part_to_learn_on
from skpref._model import Model
from skpref._observations import Observations
from skpref._search import Monitor, Search, Step, StopSearch
from skpref._warnings import warn

# Evaluations of the objective that a search takes, as seen on real data; for the estimate only.
_TYPICAL = 25
# Seconds between two lines at verbose=1.
_EVERY = 2.0


@contextmanager
def progress(
    estimator, observations: Observations, model: Model, search: Search | None
) -> Iterator[Monitor]:
    """A monitor of the search, within the task "fit" of scikit-learn's callbacks.

    Each evaluation of the objective is a task "evaluation"; a callback that says so stops the
    search at the best point so far. A warning tells beforehand of a fit that will be long.
    """
    verbose = int(estimator.verbose)
    learned, part = search is not None and len(model.theta) > 0, observations
    if search is not None:
        part = part_to_learn_on(observations, model, search.learn_on)
    mention_cost(observations, model, learned, part)
    some = ""
    if part is not observations:
        some = f"{len(part.positions)} random ones of {len(observations.positions)} answers"
        if search is not None and search.learn_on == "auto" and model.engine.dense:
            warn(
                f"Hyperparameters are learned on {some}, then all are fitted with them. "
                "learn_on=None learns on all, which takes longer; an integer says on how many."
            )
    root = estimator._init_callback_context("fit", max_subtasks=None)
    root.call_on_fit_task_begin(estimator=estimator)
    began = last = perf_counter()
    best = -float("inf")
    n_duels, n_items = len(observations.positions), len(observations.items)
    if verbose and learned:
        on = f" on {some}" if some else ""
        _say(f"{n_duels} duels of {n_items} items: learning {_counted(model.names)}{on}")

    def monitor(step: Step) -> None:
        nonlocal last, best
        best = max(best, step.log_posterior)
        now = perf_counter()
        if verbose > 1 or (verbose and now - last >= _EVERY):
            last = now
            each = (now - began) / step.number
            left = each * max(_TYPICAL - step.number, 1)
            _say(
                f"evaluation {step.number}: log posterior {best:.2f}, {each:.2g} s each, perhaps "
                f"{left:.0f} s to go"
            )
        task = root.subcontext("evaluation")
        task.call_on_fit_task_begin(estimator=estimator)
        if task.call_on_fit_task_end(estimator=estimator):
            raise StopSearch

    yield monitor
    if verbose:
        _say(f"{n_duels} duels of {n_items} items fitted in {perf_counter() - began:.2g} s")
    root.call_on_fit_task_end(estimator=estimator)


def _counted(names):
    """Names of hyperparameters, those of one array once, with their number."""
    several = Counter(name.partition("[")[0] for name in names)
    return ", ".join(f"{name} ({n})" if n > 1 else name for name, n in several.items())


def _say(line):
    sys.stdout.write(f"[skpref] {line}\n")
    sys.stdout.flush()
