"""Settings that are tuned: an optimizer with a journal asks, a function of the user's renders."""

import hashlib
import json
import secrets
import sys
import threading
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from scipy.stats import loguniform

from skpref._judging._store import VoteStore
from skpref._utils import csv_text, html_table, probability_text
from skpref.optimize import PreferenceOptimizer, item_title, read_journal
from skpref.widgets import Judge, describe_item

# Pictures and sounds that are kept for pages, which ask for them once.
_MOST_BLOBS = 200


class _ServedPanel:
    """What a `Judge` shows, held for a page that asks for it by HTTP."""

    def __init__(self) -> None:
        self.question: dict = {}
        self.status: dict = {}
        self.sent: tuple[dict, list[bytes]] = ({}, [])

    def hold_sync(self) -> Any:
        """Return a context in which values may change; a page gets them whole in any case."""
        return nullcontext()

    def send(self, message: dict, buffers: list[bytes]) -> None:
        """Keep a message for the page."""
        self.sent = message, buffers


class _ServedJudge(Judge):
    """A judge of a notebook whose panel a server shows."""

    def __init__(self, optimizer: Any, show: Any, goal: int | None, **options: Any) -> None:
        super().__init__(optimizer, show, **options)
        if goal is not None:  # of all answers, those before a restart too
            self._end = goal
            self.refresh()

    def _make_panel(self):
        """Return the panel of a page that a server shows."""
        return _ServedPanel()


class SettingsDesk:
    """Asks judges about settings and shows what a function makes of them.

    Parameters
    ----------
    path : Path
        Of the journal.
    space : dict
        As `PreferenceOptimizer` takes it.
    show : callable or None
        As `skpref.widgets.Judge` takes it.
    title : str
    goal : int, optional
        Answers at which to end.
    **options
        Of `skpref.widgets.Judge`.
    """

    def __init__(
        self,
        path: Path,
        space: dict,
        show: Callable | None,
        *,
        title: str,
        goal: int | None = None,
        **options: Any,
    ) -> None:
        self.path, self.title = path, title
        self.exports = {"answers.csv": self.export_csv, "answers.json": self.export_json}
        self._space, self._show, self._goal, self._options = space, show, goal, options
        # Links of judges; its lock keeps a second server out.
        self.store = VoteStore(path.with_name(f"{path.name}.links.db"))
        self._run = secrets.token_hex(4)  # so that a page of before a restart is known as such
        self._lock = threading.Lock()
        self._judges: dict[str, _ServedJudge] = {}
        self._blobs: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._pictures: dict[str, str] = {}  # addresses by the setting

    @classmethod
    def from_arguments(cls, arguments: Any) -> "SettingsDesk":
        """Make a desk of the arguments of the command."""
        for option in ("checks", "features", "grades", "text", "top"):
            if getattr(arguments, option):
                raise ValueError(
                    f"got --{option} with {arguments.what}; it is of folders and tables. Leave it "
                    "out."
                )
        path = arguments.what.resolve()
        is_set = arguments.size > 2
        return cls(
            arguments.file or path.with_name(f"{path.name}.votes.db"),
            read_space(path),
            None if arguments.show is None else load_function(arguments.show),
            title=path.stem,
            goal=arguments.votes,
            prompt=arguments.question,
            until=arguments.until,
            size=arguments.size if is_set else None,
            answer=arguments.answer,
        )

    def close(self) -> None:
        """Close the file of links; the journal is closed between answers."""
        self.store.close()

    def _get_judge(self, name: str) -> _ServedJudge:
        """Return the judge of this name; a new one continues with the question in the journal."""
        if name not in self._judges:
            optimizer = PreferenceOptimizer(self._space, journal=self.path, judge=name)
            self._judges[name] = _ServedJudge(
                optimizer, self._show, self._goal, shuffle=True, **self._options
            )
        return self._judges[name]

    def handle_message(self, name: str, message: Mapping) -> dict:
        """Do what a message of the page asks for, and return what it shows then.

        Raises
        ------
        ValueError
            If the message is none that a page sends.
        """
        if message.get("type") not in ("show", "answer", "skip", "undo", "go_on", "look"):
            raise ValueError(f"got a message of type {message.get('type')!r}.")
        run, _, number = str(message.get("number", "")).partition(":")
        with self._lock:
            judge = self._get_judge(name)
            plain = {**message, "number": int(number) if number.isdigit() else -1}
            if plain["type"] == "show":
                judge.refresh()
            elif run == self._run and plain["number"] == judge.widget.question["number"]:
                judge._receive_message(plain)
            if plain["type"] == "look":
                sent, buffers = judge.widget.sent
                data = {"data": buffers[0]} if buffers else {}
                return {"stimulus": self._stimulus({**sent.get("stimulus", {}), **data})}
            return self._page_of(judge)

    def _page_of(self, judge: _ServedJudge) -> dict:
        """Return the question and the status of a judge, as the page shows them."""
        question = judge.widget.question
        items = [self._stimulus(item) for item in question["items"]]
        if len(items) > 1:
            shown = zip(judge.question, items, strict=True)
            self._pictures |= {
                item_title(item): stimulus.get("url", "") for item, stimulus in shown
            }
        number = f"{self._run}:{question['number']}"
        return {
            "question": {**question, "number": number, "items": items},
            "status": {
                **judge.widget.status,
                "history": [self._add_picture(each) for each in judge.widget.status["history"]],
            },
        }

    def _add_picture(self, entry: dict) -> dict:
        """Return an entry of the strip of answers with the address of its picture, if kept."""
        url = self._pictures.get(entry["text"], "")
        mime, _ = self._blobs.get(url.removeprefix("items/"), ("", b""))
        return {**entry, "url": url} if mime.startswith("image/") else entry

    def _stimulus(self, stimulus: dict) -> dict:
        """Return the stimulus of an item with its bytes kept and replaced by their address."""
        data = stimulus.get("data")
        if data is None:
            return stimulus
        digest = hashlib.sha256(data).hexdigest()[:32]
        self._blobs[digest] = stimulus["mime"], bytes(data)
        self._blobs.move_to_end(digest)
        while len(self._blobs) > _MOST_BLOBS:
            self._blobs.popitem(last=False)
        return {"mime": stimulus["mime"], "url": f"items/{digest}"}

    def item_content(self, digest: str) -> tuple[str, bytes] | None:
        """Return the type and bytes of a picture or sound; None if it is not kept."""
        return self._blobs.get(digest)

    def board_html(self) -> str:
        """Return the best settings so far, as a part of a page."""
        with self._lock:
            optimizer = PreferenceOptimizer(self._space, journal=self.path, judge=None)
            if not optimizer.n_told_:
                return "<p>There are no answers yet.</p>"
            best = optimizer.recommend()
            near = optimizer.expected_gain_.probability()
        chance = f"P(within 0.01 of the best) {probability_text(near)}"
        return html_table(
            f"The best settings so far, by {optimizer.n_told_} answers. {chance}",
            [(name, describe_item({"": value}).removeprefix(": ")) for name, value in best.items()],
        )

    def _history(self) -> dict[str, list]:
        """Return the columns of the journal; none before the first answer."""
        return read_journal(self.path) if self.path.exists() else {}

    def export_csv(self) -> str:
        """Return the history of the run as a table, a row an event."""
        history = self._history()
        rows = (
            [json.dumps(cell) if isinstance(cell, dict | list) else cell for cell in row]
            for row in zip(*history.values(), strict=True)
        )
        return csv_text(history, rows)

    def export_json(self) -> str:
        """Return the history of the run as JSON, a list of records."""
        history = self._history()
        rows = [dict(zip(history, row, strict=True)) for row in zip(*history.values(), strict=True)]
        return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


def read_space(path: Path) -> dict:
    """Return the space of a file of TOML, as `PreferenceOptimizer` takes it.

    Each setting of the table [space] is a list of two numbers (a range; of two integers one of
    integers), a list of choices, or a table of ``low``, ``high`` and ``log``.

    Raises
    ------
    ValueError
        If the file is no such space.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skpref._judging._settings import read_space
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "space.toml"
    ...     _ = path.write_text('[space]\\nradius = [1, 9]\\nkind = ["soft", "hard"]')
    ...     read_space(path)
    {'radius': (1, 9), 'kind': ['soft', 'hard']}
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"got {path}, which is no TOML: {error}.") from error
    table = content.get("space")
    if "constraints" in content:
        raise ValueError(
            f"got {path} with constraints; the table [space] alone is allowed. Limits are those of "
            "PreferenceOptimizer(constraints=), which skpref.widgets.Judge shows in a notebook."
        )
    if not isinstance(table, dict) or not table:
        raise ValueError(
            f"got {path} without settings; give a table [space] with lines such as "
            'strength = [0.0, 1.0] or kind = ["soft", "hard"].'
        )
    return {name: _read_dimension(path, name, value) for name, value in table.items()}


def _read_dimension(path: Path, name: str, value: Any) -> Any:
    """Return the range, distribution or choices of a setting."""
    if isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
        return tuple(value)
    if isinstance(value, list) and len(value) > 1:
        return value
    is_range = isinstance(value, dict) and _is_number(value.get("low")) and "high" in value
    if is_range and value.keys() <= {"low", "high", "log"} and _is_number(value["high"]):
        ends = value["low"], value["high"]
        return loguniform(*map(float, ends)) if value.get("log") else ends
    raise ValueError(
        f"got {name} = {value!r} in {path}; a list of two numbers, a list of choices, or "
        "{low = 0.01, high = 10.0, log = true} is allowed."
    )


def _is_number(value: Any) -> bool:
    """Return whether a value is a number; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def load_function(name: str) -> Callable:
    """Return a function by its module and name, the working folder first.

    Raises
    ------
    ValueError
        If there is no such function.
    """
    sys.path.insert(0, str(Path.cwd()))
    try:
        loaded = resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"got --show {name}: {error}. Give module:function, such as render:picture of a file "
            "render.py in this folder."
        ) from error
    finally:
        sys.path.pop(0)
    if not callable(loaded):
        raise ValueError(f"got --show {name}, which is no function.")
    return loaded
