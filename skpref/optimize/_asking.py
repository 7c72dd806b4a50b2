"""Common base of optimizers and learner: questions, refusals, undo, history."""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from skpref._utils import (
    CallbackSupportMixin,
    ProgressBar,
    Summarised,
    check_number,
    with_callbacks,
)
from skpref.data import DuelScale
from skpref.optimize._dimensions import copy_value
from skpref.optimize._session import Session
from skpref.optimize._spaces import item_title
from skpref.optimize._state import DUELS, HistoryEntry, User


class Asking(Summarised, CallbackSupportMixin):
    """Ask, tell, skip and undo, for a class with a session and a space.

    A subclass has `ask`, `tell` and `recommend`. Where a question is to a user, it also says how
    the two are one value: `_pack_question`, `_pack_questions` and `_split_question`.
    """

    _session: Session
    _space: Any

    def skip(self, items: Any) -> Self:
        """Turn a duel or set down: neither it nor one close to it is asked next.

        Parameters
        ----------
        items : array-like of shape (k, d), or k dicts, names or rows of a frame
            With several users a `Question`.

        Returns
        -------
        self
        """
        return self._record(items, None)

    def undo(self) -> Self:
        """Take back the last `tell` or `skip`: what was pending before it is asked again.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is nothing left to take back.
        AlreadyAnswered
            If another judge told, skipped or took back since this object last looked.
        """
        self._session.undo_last()
        return self

    @with_callbacks
    def run(
        self,
        compare: Callable,
        n_duels: int,
        callback: Callable | None = None,
        progress: bool = False,
        *,
        size: int | dict | None = None,
        kind: str | Sequence[str] = "set",
        until: float | None = None,
        within: float | None = None,
    ) -> Any:
        """Ask and tell until ``n_duels`` more answers are told, or the best is found.

        Each of them is a task, within that of the run, of the scikit-learn callbacks set by
        ``set_callbacks``, such as ``sklearn.callback.ProgressBar()``.

        Parameters
        ----------
        compare : callable
            ``compare(first, second)`` → outcome as in `tell`, or None to skip. With a larger
            ``size`` it gets as many items, and returns the position of the best, a list of
            positions (a ranking, best first), a dict such as ``{"worst": 0}``, ``{"chosen": 2,
            "worst": 0}`` or ``{"chosen": [0, 2]}``, or None. Of a line or plane it returns a
            position as in `tell`. With several kinds two items are always a duel. The items are
            copies: what it does to them changes nothing.
        n_duels : int
            Number of answers, at most.
        callback : callable, optional
            Called with the optimizer after each answer; if it returns True the run stops.
        progress : bool, default=False
            Show a progress bar: tqdm's, else scikit-learn's (which needs rich), else none.
        size : int or dict, optional
            Number of items of each question, see `ask`.
        kind : {"set", "duel", "line", "plane"} or tuple of these, default="set"
            Of the questions, see `ask`.
        until : float, default=None
            Of an optimizer: stop once what it recommends is near the best of the space with this
            probability, such as 0.95; never before ``n_initial`` answers. A run that is taken up
            again there asks nothing. None: go on to the end.
        within : float, default=None
            How near that is, as a share of the range of the utility, from the worst item of the
            space to the best. None: 0.01.

        Returns
        -------
        ndarray of shape (d,), dict or name
            `recommend`, at the end.

        Raises
        ------
        ValueError
            If ``compare`` skips a hundred questions in a row. If ``until``, ``size`` or ``kind`` is
            given to a learner, whose questions are duels and whose aim is not the best item; this
            is refused before the first question.
        """
        check_number("n_duels", n_duels, low=1, integer=True)
        enough = self._make_stop_rule(until, within)
        asked = self._layout_arguments(size, kind)
        if enough is not None and self.n_told_ and enough():  # as where a run is taken up again
            return self.recommend()
        root = self._init_callback_context("run", max_subtasks=n_duels)
        root.call_on_fit_task_begin(estimator=self)
        end, stop = self.n_told_ + n_duels, False
        with _progress_bar(self, root, progress) as advance:
            for task in _yield_tasks(root):
                task.call_on_fit_task_begin(estimator=self)
                items = self.ask(**asked)
                skips = 0
                while (outcome := compare(*copy_value(items))) is None:
                    skips += 1
                    if skips == 100:  # taken for a judge without a `return`
                        raise ValueError(
                            f"compare returned None, which skips a duel, {skips} times in a row: "
                            "return 1 (or True) if the first won, else 0; of a set the position "
                            "of the best."
                        )
                    items = self.skip(items).ask(**asked)
                self.tell(items, self._as_told_outcome(items, outcome, kind))
                stop = task.call_on_fit_task_end(estimator=self)
                advance(task)
                if callback is not None:
                    wish = callback(self)
                    stop |= isinstance(wish, bool | np.bool_) and bool(wish)
                if stop or self.n_told_ >= end or (enough is not None and enough()):
                    break
        root.call_on_fit_task_end(estimator=self)
        return self.recommend()

    def _make_stop_rule(
        self, until: float | None, within: float | None
    ) -> Callable[[], bool] | None:
        """Return a function that says whether to stop; None if ``n_duels`` alone ends the run."""
        if within is not None and until is None:
            raise ValueError(
                f"within={within!r} says how near the best to stop; give also until=, the "
                "probability of that, such as 0.95."
            )
        if until is None:
            return None
        raise ValueError(
            f"until={until!r} stops once the best item is found, and a {type(self).__name__} asks "
            "what tells most of the whole utility. Use n_duels alone, a PreferenceOptimizer with "
            "candidates=, or, for votes between competitors, skpref.active.StoppingRule."
        )

    def _layout_arguments(self, size: Any, kind: Any) -> dict:
        """Return the arguments of `ask` for a size and a kind, checked; here of duels alone."""
        if size not in (None, 2) or kind not in ("set", "duel"):
            raise ValueError(
                f"A {type(self).__name__} asks duels only, got size={size!r} and kind={kind!r}. "
                "Leave both out, or use a PreferenceOptimizer with candidates=."
            )
        return {}

    def _as_told_outcome(self, items: Any, outcome: Any, kind: Any) -> Any:
        """Return what ``compare`` returned of a question in the form that `tell` takes."""
        return outcome

    # -- for a page to judge on ----------------------------------------------------------

    def _scale(self) -> DuelScale:
        """Return the scale of the outcomes that a duel may have."""
        return self._session.configuration.models.duel_scale

    def _check_takes_answer(self, outcome: dict, n: int) -> None:
        """Raise ValueError unless the model takes such an answer to n items."""
        self._session.configuration.models.check_takes_answer(outcome, n)

    # -- questions -----------------------------------------------------------------------

    def _ask_questions(self, n, layouts=DUELS, user=None, beside=None, fixed=()):
        """Return one question, or n of them, each of one of some layouts, and to a user.

        Each begins with the items of ``beside``, and holds the parameters that are ``fixed``.
        """
        n_questions = 1 if n is None else int(check_number("n", n, low=1, integer=True))
        questions = self._session.ask_questions(n_questions, layouts, user, beside, fixed)
        return self._pack_question(*questions[0]) if n is None else self._pack_questions(questions)

    def _record(self, items, arguments):
        """Write down an answer, or if ``arguments`` is None a skip, and return self."""
        user, shown = self._split_question(items)
        self._session.record_answer(shown, arguments, user)
        return self

    def _pack_question(self, user: User, shown: list) -> Any:
        """Return a question as one value."""
        return self._space.pack(shown)

    def _pack_questions(self, asked: list) -> Any:
        """Return several questions, pairs of a user and the items shown, as one value."""
        return self._space.pack_many([shown for _, shown in asked])

    def _split_question(self, question: Any) -> tuple[User, Any]:
        """Return the user and the items of a question; no user where there are no several."""
        return None, question

    # -- history -------------------------------------------------------------------------

    @property
    def history_(self) -> list[HistoryEntry]:
        """Told items and outcomes, oldest first."""
        session, state = self._session, self._session.state
        return [
            HistoryEntry(
                self._pack_question(user, session.present_items(state, items)), copy_value(outcome)
            )
            for items, outcome, user in state.answers
        ]

    @property
    def n_told_(self) -> int:
        """Number of answers told."""
        return len(self._session.state.answers)

    @property
    def pending_(self) -> Any:
        """What was asked and neither answered nor skipped, oldest first."""
        session, state = self._session, self._session.state
        return self._pack_questions(
            [(each.user, session.present_items(state, each.items)) for each in state.pending]
        )

    # -- what is ranked ------------------------------------------------------------------

    def _as_rows(self, items: Any) -> Any:
        """Return items as rows, of an array or a frame, that the model takes."""
        raise NotImplementedError

    def _to_rank(self) -> tuple[list, list]:
        """Return the items of a board as people see them, and a name for each.

        All of a pool, by their names or, where they have none, their rows in the candidates; else
        those that answers are about.
        """
        space = self._space
        if space.pool is not None:
            items = [space.present(space.to_item(row)) for row in space.pool]
            return items, space.places if space.names is None else space.names
        flat = [item for answers in self.history_ for item in answers.duel]
        session, state = self._session, self._session.state
        flat += session.present_items(state, [each.item for each in state.values])
        _, first = np.unique(self._as_rows(flat), axis=0, return_index=True)
        items = [flat[i] for i in np.sort(first)]
        return items, [item_title(item) for item in items]


def _yield_tasks(root):
    """Yield a task for each answer; an answer after an undo repeats the last one."""
    task = None
    for _ in range(root.max_subtasks):
        task = root.subcontext("duel")
        yield task
    while True:
        yield task


@contextmanager
def _progress_bar(optimizer, root, shown):
    """Yield a function that advances a progress bar by a task, or does nothing if none is shown."""
    bar = _make_progress_bar(root.max_subtasks) if shown else None
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


def _make_progress_bar(total):
    """Return a progress bar of tqdm or scikit-learn; None if neither can be had."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        try:
            return ProgressBar()
        except ImportError:  # without rich
            return None
    return tqdm(total=total, unit="duel")
