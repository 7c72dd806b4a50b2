"""The state of a run: what was told, what is pending, and what the next question starts from.

And the loop that asks a function until enough is told.
"""

from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from sklearn.callback import CallbackSupportMixin, ProgressBar, with_callbacks

from skpref._parameters import check_number
from skpref.optimize._model import Memory

# Told items this close to a known one (unit cube, largest coordinate) are that one.
_SAME = 1e-7
# Skips in a row that are taken for a judge without a `return`.
_MAX_SKIPS = 100
# Two items closer than this (likewise) are no duel.
_APART = 1e-6


class Items:
    """Every item met so far, as the user sees it and as a unit-cube row."""

    def __init__(self, space):
        self._space = space
        self.items = []
        self.rows = np.zeros((0, space.n_columns))
        self._at = {}

    def add(self, item):
        """Index of an item, which is checked; new ones are taken in."""
        row = self._space.to_row(item)
        found = self._at.get(row.tobytes())
        if found is None and len(self.rows):
            distance = np.abs(self.rows - row).max(axis=1)
            nearest = int(np.argmin(distance))
            found = nearest if distance[nearest] <= _SAME else None
        if found is None:
            found = len(self.items)
            self.items.append(self._space.clean(item))
            self.rows = np.concatenate([self.rows, row[None]])
            self._at[row.tobytes()] = found
        return found

    def add_row(self, row):
        """The same for a row of the space."""
        found = self._at.get(row.tobytes())
        return self.add(self._space.to_item(row)) if found is None else found


@dataclass(frozen=True)
class Run:
    """A moment of a run; every event makes a new one.

    Attributes
    ----------
    memory : Memory
    told : tuple of (first, second, won)
        Indices of items, and whether the first won.
    pending : tuple of (first, second)
        Asked and not yet answered.
    skipped : tuple of (first, second, n_told)
        The last is the number of duels told by then.
    counter : int
        Duels generated so far; with the seed it fixes every random number.
    """

    memory: Memory
    told: tuple = ()
    pending: tuple = ()
    skipped: tuple = ()
    counter: int = 0

    def tell(self, first, second, won):
        """After an answer."""
        pending = without(self.pending, (first, second))
        return replace(self, told=(*self.told, (first, second, won)), pending=pending)

    def skip(self, first, second):
        """After a duel was turned down."""
        skipped = (*self.skipped, (first, second, len(self.told)))
        return replace(self, skipped=skipped, pending=without(self.pending, (first, second)))

    def ask(self, duels, counter, memory):
        """After new questions."""
        return replace(self, pending=(*self.pending, *duels), counter=counter, memory=memory)

    def outcomes(self):
        """Indices of the winners and losers of the told duels."""
        told = np.array(self.told, dtype=np.intp).reshape(-1, 3)
        won = told[:, 2] == 1
        winner, loser = np.where(won, told[:, 0], told[:, 1]), np.where(won, told[:, 1], told[:, 0])
        return winner, loser


def apart(row, rows):
    """Whether rows differ from a row by more than rounding, (n,)."""
    return np.abs(rows - row).max(axis=1) > _APART


def without(pending, duel):
    """Pending duels less one, whichever way round it is."""
    for k, each in enumerate(pending):
        if each in (duel, duel[::-1]):
            return pending[:k] + pending[k + 1 :]
    return pending


def dump_memory(memory):
    """A memory in JSON's terms."""
    return {
        "theta": memory.theta.tolist(),
        "fitted_at": memory.fitted_at,
        "sites": {name: part.tolist() for name, part in memory.sites.items()},
        "margins": memory.margins.tolist(),
    }


def load_memory(record):
    """The memory that `dump_memory` wrote."""
    return Memory(
        np.array(record["theta"], dtype=np.float64),
        record["fitted_at"],
        _load_sites(record["sites"]),
        np.array(record["margins"], dtype=np.float64),
    )


def _load_sites(sites):
    """State of the engine; early journals have EP's arrays without their names."""
    named = (
        sites if isinstance(sites, dict) else dict(zip(("precision", "shift"), sites, strict=False))
    )
    return {name: np.array(part, dtype=np.float64) for name, part in named.items()}


def exclusion(run, items, near):
    """Which rows may meet a given row, in view of pending and skipped duels.

    Returns
    -------
    callable
        ``allowed(row, rows)`` → booleans (n,).
    """
    asked = [(a, b, 0.0) for a, b in run.pending]
    for a, b, n_told in run.skipped:
        asked.append((a, b, near if n_told == len(run.told) else 0.0))

    def allowed(row, rows):
        good = apart(row, rows)
        for a, b, radius in asked:
            for one, other in ((a, b), (b, a)):
                if np.linalg.norm(items.rows[one] - row) <= max(radius, _SAME):
                    distance = np.linalg.norm(rows - items.rows[other], axis=1)
                    good &= distance > max(radius, _APART)
        return good

    return allowed


class Loop(CallbackSupportMixin):
    """`run`, for a class with `ask`, `tell`, `skip`, `recommend` and `n_told_`."""

    @with_callbacks
    def run(self, compare, n_duels, callback=None, progress=False):
        """Ask and tell until ``n_duels`` more duels are told.

        Each duel is a task, within that of the run, of the scikit-learn callbacks set by
        ``set_callbacks``, such as ``sklearn.callback.ProgressBar()``.

        Parameters
        ----------
        compare : callable
            ``compare(first, second)`` → outcome as in `tell`, or None to skip.
        n_duels : int
        callback : callable, optional
            Called with the optimizer after each duel; if it returns True the run stops.
        progress : bool, default=False
            Show a progress bar: tqdm's, else scikit-learn's (which needs rich), else none.

        Returns
        -------
        ndarray of shape (d,) or dict
            `recommend`, at the end.

        Raises
        ------
        ValueError
            If ``compare`` skips a hundred duels in a row.
        """
        check_number("n_duels", n_duels, low=1, integer=True)
        root = self._init_callback_context("run", max_subtasks=n_duels)
        root.call_on_fit_task_begin(estimator=self)
        end, stop = self.n_told_ + n_duels, False
        with _bar(self, root, progress) as advance:
            for task in _tasks(root):
                task.call_on_fit_task_begin(estimator=self)
                duel = self.ask()
                skips = 0
                while (outcome := compare(duel[0], duel[1])) is None:
                    skips += 1
                    if skips == _MAX_SKIPS:
                        raise ValueError(
                            f"compare returned None, which skips a duel, {skips} times in a row: "
                            "return 1 (or True) if the first won, else 0."
                        )
                    duel = self.skip(duel).ask()
                self.tell(duel, outcome)
                stop = task.call_on_fit_task_end(estimator=self)
                advance(task)
                if callback is not None:
                    wish = callback(self)
                    stop |= isinstance(wish, bool | np.bool_) and bool(wish)
                if stop or self.n_told_ >= end:
                    break
        root.call_on_fit_task_end(estimator=self)
        return self.recommend()


def _tasks(root):
    """A task for each duel; what is told after an undo repeats the last one."""
    task = None
    for _ in range(root.max_subtasks):
        task = root.subcontext("duel")
        yield task
    while True:
        yield task


@contextmanager
def _bar(optimizer, root, shown):
    """A function that advances the progress bar by a task."""
    bar = _make_bar(root.max_subtasks) if shown else None
    if isinstance(bar, ProgressBar):
        bar.setup(optimizer, root)
        try:
            bar.on_fit_task_begin(optimizer, root)
            yield lambda task: bar.on_fit_task_end(optimizer, task)
            bar.on_fit_task_end(optimizer, root)
        finally:
            bar.teardown(optimizer, root)
    elif bar is not None:
        with bar:
            yield lambda task: bar.update()
    else:
        yield lambda task: None


def _make_bar(total):
    try:
        from tqdm.auto import tqdm
    except ImportError:
        try:
            return ProgressBar()
        except ImportError:  # without rich
            return None
    return tqdm(total=total, unit="duel")
