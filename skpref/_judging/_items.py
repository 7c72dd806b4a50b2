"""What is judged: the files of a folder, or the rows of a table."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skpref.active import MOST_ITEMS
from skpref.data import open_table

# The type of a file by its suffix. A type of the system's own tables may differ by machine.
_TYPES = {
    **dict.fromkeys((".jpg", ".jpeg"), "image/jpeg"),
    **{f".{name}": f"image/{name}" for name in ("png", "gif", "webp", "avif", "bmp")},
    ".svg": "image/svg+xml",
    **{f".{name}": f"audio/{name}" for name in ("wav", "ogg", "flac", "opus")},
    ".mp3": "audio/mpeg",
    ".m4a": "audio/mp4",
    **{f".{name}": f"video/{name}" for name in ("mp4", "webm")},
    ".txt": "text/plain",
    ".md": "text/markdown",
    **dict.fromkeys((".html", ".htm"), "text/html"),
    ".pdf": "application/pdf",
}
# Bytes. A browser unpacks a picture whole, and a text is part of the question.
_LARGEST = {"image": 50_000_000, "text": 1_000_000}


class JudgedItem(NamedTuple):
    """An item that is shown.

    Attributes
    ----------
    name : str
        Of this item alone; under it the votes are kept.
    competitor : str
        Whom a vote on it counts for.
    prompt : str
        Items of different prompts never meet; empty where there are no prompts.
    mime : str
    path : Path or None
        Of its file.
    text : str
        Of an item that is a row of a table.
    """

    name: str
    competitor: str
    prompt: str
    mime: str
    path: Path | None
    text: str = ""


class ItemSource(NamedTuple):
    """Items, where they are from, and what was left out.

    Attributes
    ----------
    items : list of JudgedItem
    folder : Path
        No file outside it is ever shown.
    notes : list of str
    boards : str
        "one" board of all items, or one for each "prompt".
    """

    items: list[JudgedItem]
    folder: Path
    notes: list[str]
    boards: str = "one"

    @property
    def competitors(self) -> list[str]:
        """Names of the competitors, in the order of their items."""
        return list(dict.fromkeys(item.competitor for item in self.items))


def read_items(path: Path, text: str | None, competitor: str | None, prompt: str | None) -> Any:
    """Return the items of a folder, or those of a table by the names of its columns.

    Raises
    ------
    ValueError
        If there are fewer than two or too many items, or a column is missing.
    OSError
        If the folder or table cannot be read.
    """
    if path.is_dir():
        if (text, competitor, prompt) != (None, None, None):
            raise ValueError(
                f"got --text, --competitor or --prompt with the folder {path}; these name columns "
                "of a table. Leave them out."
            )
        source = _read_folder(path.resolve())
    else:
        source = _read_table(path, text, competitor, prompt)
    n_competitors = len(source.competitors)
    if not 2 <= n_competitors <= MOST_ITEMS:
        raise ValueError(
            f"got {n_competitors} items that can be shown in {path}; from 2 to "
            f"{MOST_ITEMS} are allowed. {' '.join(source.notes)}"
        )
    return source


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a file, all its links followed, lies in a folder."""
    return path.resolve().is_relative_to(folder)


def _read_folder(folder: Path) -> ItemSource:
    """Return the files of a folder that a browser shows."""
    items, refused = [], dict[str, list[str]]()
    for path in _files_below(folder):
        name = path.relative_to(folder).as_posix()
        mime = _TYPES.get(path.suffix.lower(), "")
        reason = _reason_to_leave_out(path, mime, folder)
        if reason:
            refused.setdefault(reason, []).append(name)
        else:
            items.append(JudgedItem(name, name, "", mime, path))
    notes = [
        f"Left out {len(names)} {'file' if len(names) == 1 else 'files'} ({reason}): "
        f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''}."
        for reason, names in refused.items()
    ]
    return ItemSource(items, folder, notes)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of those below it by name, without hidden ones.

    Links to folders are not followed.
    """
    for parent, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(names) if not name.startswith("."))


def _reason_to_leave_out(path: Path, mime: str, folder: Path) -> str:
    """Return the reason to leave a file out; an empty text if it can be shown."""
    if not is_inside(path, folder):
        return "links that lead out of the folder"
    if not mime:
        return "no picture, sound, video, text, Markdown, HTML or PDF by its suffix"
    if not path.is_file():
        return "no regular file"
    largest = _LARGEST.get(mime.partition("/")[0])
    size = path.stat().st_size
    if not size:
        return "empty"
    if largest is not None and size > largest:
        return f"more than {largest // 1_000_000} MB"
    return ""


def _read_table(
    path: Path, text: str | None, competitor: str | None, prompt: str | None
) -> ItemSource:
    """Return the rows of a table as texts; ValueError for columns that are not there."""
    values = _read_columns(path, {"--text": text, "--competitor": competitor, "--prompt": prompt})
    rows = list(zip(*values.values(), strict=True))
    whole = [k for k, row in enumerate(rows) if None not in row]
    notes = [f"Left out {len(rows) - len(whole)} rows without a value."] * (len(whole) < len(rows))
    items = []
    for k in whole:
        row = dict(zip(values, rows[k], strict=True))
        about = row.get("--prompt", "")
        name = f"row {k + 1}" + (f" ({about[:40]})" if about else "")
        who = row.get("--competitor", name)
        key = f"{about}\n{who}\n{k}" if competitor else name
        items.append(JudgedItem(key, who, about, "text/plain", None, row["--text"]))
    if prompt and not competitor:
        notes.append(
            "Without --competitor nothing joins the prompts: there is a board for each of them."
        )
    boards = "prompt" if prompt and not competitor else "one"
    return ItemSource(items, path.resolve(), notes, boards)


def _read_columns(path: Path, columns: dict[str, str | None]) -> dict[str, list[str | None]]:
    """Return the values of the columns that options name, by option, checked."""
    table = open_table(path)
    if columns["--text"] is None:
        raise ValueError(
            f"got the table {path} without --text; its columns are {_column_list(table.names)}. "
            "Name the one that holds the texts, such as --text response."
        )
    values = {}
    for option, name in columns.items():
        if name is None:
            continue
        if name not in table.names:
            raise ValueError(
                f"got {option} {name}; the columns of {path} are {_column_list(table.names)}. "
                "Name one of these."
            )
        (coded,), _ = table.read([table.names.index(name)], [])
        values[option] = [None if k < 0 else str(coded.values[k]) for k in coded.codes.tolist()]
    return values


def _column_list(names: list[str]) -> str:
    """Return the names of columns as text for a message, at most twenty."""
    return ", ".join(map(repr, names[:20]))


def read_features(path: Path, source: ItemSource) -> np.ndarray:
    """Return features of the competitors, one row each, from a file of numpy.

    Raises
    ------
    ValueError
        If it is no array of finite numbers with one row a competitor.
    """
    array = np.load(path, allow_pickle=False)
    n_competitors = len(source.competitors)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or len(array) != n_competitors:
        raise ValueError(
            f"got features of shape {array.shape} and type {array.dtype} in {path}; an array of "
            f"numbers of shape ({n_competitors}, n_features) is allowed, one row an item, in the "
            "order of the names."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"got features in {path} that are not finite. Fill or drop them.")
    return array.astype(np.float64)
