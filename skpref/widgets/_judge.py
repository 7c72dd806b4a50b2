"""A judge in a notebook: asks an optimizer, shows what it asks, and tells it the answer."""

import math
import zlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from skpref._utils import check_choice, check_number
from skpref.optimize import ActiveLearner, AlreadyAnswered, PreferenceOptimizer, Question
from skpref.widgets._choices import WAYS, duel_choices, largest_set_size, question_prompt
from skpref.widgets._panel import last_answers, make_panel, run_course
from skpref.widgets._stimuli import describe_item, stimulus_of


class Judge:
    """A page to judge on in a notebook: items side by side, answered by clicks or keys.

    As the last value of a cell it shows what the optimizer asks. Each answer is told to the
    optimizer at once, and the next question comes. With an optimizer that has a ``journal``
    nothing is lost when the notebook is closed: run its cells again.

    Keys: 1 to 9 choose; the arrows ← and → choose in a duel, with the shift key clearly where there
    are grades; 0 or t is a tie, s skips, u takes back. Of a line the arrows move the slider and
    Enter chooses. Of a plane the arrows go from picture to picture.

    Parameters
    ----------
    optimizer : PreferenceOptimizer, HallucinationBelieverOptimizer or ActiveLearner
    show : callable, default=None
        ``show(item)`` gives what to show of an item, told apart by its type. An array of shape
        (height, width), (height, width, 3) or (height, width, 4): a picture, floats from 0 to 1 or
        integers to 255. A pair (rate, samples): a sound, samples (n,) or (n, n_channels) of floats
        from -1 to 1 or int16. Bytes, or a ``pathlib.Path``: a file of a picture (PNG, JPEG, GIF,
        WebP, SVG) or a sound (WAV, Ogg, FLAC, MP3). A matplotlib figure or axes, a display of
        `skpref.plotting`, a PIL image. A text: shown as it is. Other objects that draw themselves
        in notebooks (``_repr_html_`` and the like), such as a DataFrame or
        ``IPython.display.HTML``: their HTML, in which no script runs. None: the item in words.
    prompt : str, default=None
        What is asked, above the items. None: "Which is better?" and the like.
    size : int or dict, optional
        Number of items of each question, as in `PreferenceOptimizer.ask`.
    kind : {"set", "duel", "line", "plane"} or tuple of these, default="set"
        Of the questions, as in `PreferenceOptimizer.ask`: a line is shown as a slider, a plane as a
        table of pictures.
    answer : {"best", "best_worst", "ranking"}, default="best"
        What is told of a set of more than two: the best item, the best and the worst, or an order
        of all, or of the best ones.
    n_duels : int, optional
        Stop after so many more answers. None: go on.
    until, within : float, optional
        Stop once the best is found, as in `PreferenceOptimizer.run`. Whoever judges may go on.
    shuffle : bool, default=False
        Show the items of a duel or set in an order drawn for each question. Else the best item so
        far often comes first, which whoever judges may notice.
    user : str or int, optional
        Whom an `ActiveLearner` with ``users`` asks. None: the user whose answer tells most.

    Attributes
    ----------
    optimizer
        As it was given. What is told to it elsewhere is seen by `refresh`.
    question : ndarray of shape (k, d), tuple or Question
        What is shown, as ``ask`` gave it, in the order shown; None at the end.
    widget : anywidget.AnyWidget
        The page, to be put into the layouts of ipywidgets.

    Raises
    ------
    ImportError
        If anywidget is not installed.
    TypeError, ValueError
        If an argument is none of these, the optimizer refuses it, or ``show`` returns what cannot
        be shown.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PreferenceOptimizer
    >>> from skpref.widgets import Judge
    >>> optimizer = PreferenceOptimizer({"brightness": (0.0, 1.0)}, random_state=0)
    >>> def show(item):
    ...     return np.full((60, 80), item["brightness"])
    >>> judge = Judge(optimizer, show, until=0.95)  # doctest: +SKIP
    >>> judge  # doctest: +SKIP
    """

    def __init__(
        self,
        optimizer: PreferenceOptimizer | ActiveLearner,
        show: Callable[[Any], Any] | None = None,
        *,
        prompt: str | None = None,
        size: int | dict | None = None,
        kind: str | Sequence[str] = "set",
        answer: str = "best",
        n_duels: int | None = None,
        until: float | None = None,
        within: float | None = None,
        shuffle: bool = False,
        user: str | int | None = None,
    ):
        if not isinstance(optimizer, PreferenceOptimizer | ActiveLearner):
            raise TypeError(
                "A Judge needs a PreferenceOptimizer, a HallucinationBelieverOptimizer or an "
                f"ActiveLearner, got {optimizer!r} of type {type(optimizer).__name__}."
            )
        if not (show is None or callable(show)):
            raise TypeError(
                "show must be a function of an item that returns what to show, or None, got "
                f"{show!r}."
            )
        check_choice("answer", answer, tuple(WAYS))
        self.widget = self._make_panel()
        self.optimizer = optimizer
        self._show = describe_item if show is None else show
        self._form: dict[str, Any] = optimizer._layout_arguments(size, kind)
        self._of_user: dict[str, Any] = {} if user is None else {"user": user}
        if user is not None and not isinstance(optimizer, ActiveLearner):
            raise ValueError(f"user={user!r} needs an ActiveLearner with users=.")
        n_items = largest_set_size(kind, size)
        if n_items > 2:
            optimizer._check_takes_answer(WAYS[answer].example, n_items)
        elif answer != "best":
            raise ValueError(
                f"answer={answer!r} is of sets of more than two items; got size={size!r} and "
                f"kind={kind!r}. Ask for sets, such as size=4."
            )
        self._answer, self._prompt, self._shuffle = answer, prompt, shuffle
        self._enough = optimizer._make_stop_rule(until, within)
        self._sure = "" if until is None else f"with a probability of at least {until:g}"
        self._end = math.inf
        if n_duels is not None:
            self._end = optimizer.n_told_ + check_number("n_duels", n_duels, low=1, integer=True)
        self._number = self._n_reports = 0
        self.question: Any = None
        self._show_next_question()

    def _make_panel(self):
        return make_panel(self._receive_message)

    def __repr__(self) -> str:
        return f"<Judge of {self.optimizer!r}>"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)

    # -- for programs --------------------------------------------------------------------

    def recommend(self) -> Any:
        """Return the best item so far, as the optimizer recommends it.

        Raises
        ------
        NotFittedError
            If nothing was told.
        """
        return self.optimizer.recommend(**self._of_user)

    def answer(self, outcome: Any) -> None:
        """Answer what is shown, as a click does.

        Parameters
        ----------
        outcome : int, bool, "tie", dict or None
            As in ``tell`` of the optimizer: of a duel 1, 0 or "tie"; of a set a dict such as
            ``{"chosen": 2}``; of a line or plane ``{"position": 2.5}``. None skips.

        Raises
        ------
        TypeError, ValueError
            If the optimizer does not take it, or nothing is asked. Nothing is changed then.
        AlreadyAnswered
            If another process has answered the question since.
        """
        if self.question is None:
            raise ValueError("Nothing is asked: the run is at its end. Make a new Judge to go on.")
        self.optimizer.tell(self.question, outcome)
        self._show_next_question()

    def refresh(self) -> None:
        """Show what the optimizer asks now, after it was told something elsewhere."""
        self._show_next_question()

    # -- questions -----------------------------------------------------------------------

    def _show_next_question(self, notice=""):
        """Ask the optimizer for the next question and show it, or the page that ends the run."""
        self._number += 1
        self.question, end = None, self._end_reason()
        try:
            self.question = None if end else self._next_question()
        except ValueError as error:  # no question is left
            if not self.optimizer.n_told_:
                raise
            end = str(error)
        page = self._final_page() if self.question is None else self._question_message()
        self._show_page(page, run_course(self.optimizer), notice, end)

    def _next_question(self):
        """Return the next question, in the order in which it is shown."""
        asked = self.optimizer.ask(**self._form, **self._of_user)
        items = asked.duel if isinstance(asked, Question) else asked
        if not self._shuffle or (len(items) > 2 and self.optimizer.kind_of(items) != "set"):
            return asked
        # Drawn from the question itself, so that it comes again in the same order.
        rng = np.random.default_rng(zlib.crc32(repr(asked).encode()))
        order = rng.permutation(len(items))
        drawn = items[order] if isinstance(items, np.ndarray) else tuple(items[k] for k in order)
        return asked._replace(duel=drawn) if isinstance(asked, Question) else drawn

    def _question_message(self):
        """Return the question as the page shows it."""
        items, whom = self.question, ""
        if isinstance(items, Question):
            whom, items = f"{items.user}: ", items.duel
        kind = "duel" if len(items) == 2 else self.optimizer.kind_of(items)
        prompt = question_prompt(kind, self._answer) if self._prompt is None else self._prompt
        return {
            "kind": kind,
            "prompt": whom + prompt,
            "items": [self._stimulus_of_item(item) for item in items],
            "answer": self._answer,
            "choices": duel_choices(self.optimizer._scale()) if kind == "duel" else [],
        }

    def _final_page(self):
        """Return the page that ends the run."""
        best = self.recommend()
        return {
            "kind": "end",
            "prompt": "The best item found",
            "items": [self._stimulus_of_item(best)],
            "facts": describe_item(best),
        }

    def _stimulus_of_item(self, item):
        """Return what the page shows of an item, by ``show``."""
        return stimulus_of(self._show(deepcopy(item)))  # which may do to it what it likes

    def _end_reason(self):
        """Return the reason for which the run is at its end; empty if it is not."""
        n_told = self.optimizer.n_told_
        if n_told >= self._end:
            return f"All {n_told} answers are in."
        if self._enough is not None and self._enough():
            return f"The best is found, {self._sure}."
        return ""

    def _show_page(self, page, course, notice="", end=""):
        """Send a question and the status of the run to the page as one message."""
        with self.widget.hold_sync():
            self.widget.question = page | {"number": self._number}
            self._show_status(course, notice, end)

    def _show_status(self, course, notice="", end=""):
        """Send the status of the run to the page: answers, course, a notice, a reason to end."""
        self._n_reports += 1  # so that no two are equal
        self.widget.status = {
            "number": self._n_reports,
            "told": self.optimizer.n_told_,
            "goal": None if math.isinf(self._end) else self._end,
            "notice": notice,
            "end": end,
            "course": course,
            "history": last_answers(self.optimizer),
        }

    # -- messages of the page ------------------------------------------------------------

    def _receive_message(self, message):
        """Do what a message of the page asks for and show what comes next, or the error."""
        if message["type"] == "look":
            self._show_place(message)
            return
        if message["number"] != self._number:
            return  # it was clicked twice, or on a page that has gone
        notice = ""
        try:
            self._handle_message(message)
        except AlreadyAnswered as error:
            notice = str(error)
        except Exception as error:
            self._show_status(
                self.widget.status["course"], _error_text(error), self.widget.status["end"]
            )
            return
        try:
            self._show_next_question(notice)
        except Exception as error:
            broken = {"kind": "broken", "prompt": "This question cannot be shown.", "items": []}
            self._show_page(broken, None, _error_text(error))

    def _handle_message(self, message):
        """Do what a message of the page asks for."""
        if message["type"] == "answer":
            self.optimizer.tell(self.question, message["outcome"])
        elif message["type"] == "skip":
            self.optimizer.skip(self.question)
        elif message["type"] == "undo":
            self.optimizer.undo()
        else:  # go on after the end
            self._enough, self._end = None, math.inf

    def _show_place(self, message):
        """Send the page what it shows of a place between the points of a line."""
        try:
            item = self.optimizer.item_at(self.question, message["position"])
            stimulus = self._stimulus_of_item(item)
        except Exception as error:
            stimulus = {"mime": "text/plain", "text": _error_text(error)}
        data = stimulus.pop("data", None)
        buffers = [] if data is None else [data]
        self.widget.send({**message, "stimulus": stimulus}, buffers)


def _error_text(error):
    return f"{type(error).__name__}: {error}"
