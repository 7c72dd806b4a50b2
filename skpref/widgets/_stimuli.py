"""What a judge is shown: anything that ``show`` may return, as plain values for a page."""

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from skpref.optimize import item_title
from skpref.widgets._files import encode_png, encode_wav

_ALLOWED = (
    "an array (height, width) or (height, width, 3) for a picture, a pair (rate, samples) for a "
    "sound, the bytes of a picture or sound or a pathlib.Path of their file, a matplotlib figure, "
    "a PIL image, a text, or an object that draws itself in notebooks (_repr_html_)"
)
# How files begin, from which byte, and what they are.
_BEGINNINGS = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"<svg", "image/svg+xml"),
    (8, b"WAVE", "audio/wav"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
)
_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".wav", ".ogg", ".flac", ".mp3")
# Methods by which objects draw themselves in notebooks, the plainest first.
_DRAWN = (
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_html_", "text/html"),
)


def stimulus_of(shown: Any) -> dict:
    """Return what a page shows of an object, as a dict of its type and its bytes or text.

    Parameters
    ----------
    shown : object
        What ``show`` returned of an item.

    Returns
    -------
    dict
        ``{"mime": "image/png", "data": bytes}``, or ``{"mime": "text/plain", "text": text}``, or
        the same of "text/html".

    Raises
    ------
    TypeError
        If it cannot be shown.
    ValueError
        If an array or a file is none of a picture or sound.
    """
    if isinstance(shown, str):
        if shown.lower().endswith(_SUFFIXES) and Path(shown).is_file():
            raise TypeError(
                f"show returned the text {shown!r}, which names a file. Return pathlib.Path("
                f"{shown!r}) to show the file."
            )
        return {"mime": "text/plain", "text": shown}
    if isinstance(shown, Path):
        return _file_stimulus(shown.read_bytes(), repr(str(shown)))
    if isinstance(shown, bytes | bytearray | memoryview):
        return _file_stimulus(bytes(shown), "the bytes that show returned")
    if isinstance(shown, np.ndarray):
        return {"mime": "image/png", "data": encode_png(shown)}
    if isinstance(shown, tuple):
        return _sound_stimulus(shown)
    return _notebook_stimulus(shown)


def _file_stimulus(content, name):
    """Return the content of a file with its type; ValueError if it is none of those shown."""
    for at, beginning, mime in _BEGINNINGS:
        if content[at : at + len(beginning)] == beginning:
            return {"mime": mime, "data": content}
    kinds = ", ".join(dict.fromkeys(mime.partition("/")[2] for _, _, mime in _BEGINNINGS))
    raise ValueError(
        f"{name[:1].upper()}{name[1:]} begin as no file of a picture or sound ({kinds}), but with "
        f"{content[:8]!r}."
    )


def _sound_stimulus(shown):
    """Return a rate and samples as a WAV."""
    whole = [isinstance(part, int | np.integer) for part in shown]
    if len(shown) != 2 or sum(whole) != 1:
        raise TypeError(
            "A tuple that show returns is a sound, its rate (an integer) and its samples (an "
            f"array); got {len(shown)} parts of types {[type(part).__name__ for part in shown]}."
        )
    rate, samples = shown if whole[0] else shown[::-1]
    return {"mime": "audio/wav", "data": encode_wav(int(rate), samples)}


def _picture_stimulus(shown):
    """Return a figure of matplotlib or a picture of PIL as a PNG; None for others."""
    figure = next((each for each in _possible_figures(shown) if hasattr(each, "savefig")), None)
    if figure is not None:
        out = io.BytesIO()
        figure.savefig(out, format="png")
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:  # else notebooks show it once more, below the page
            pyplot.close(figure)
        return {"mime": "image/png", "data": out.getvalue()}
    if hasattr(shown, "convert") and hasattr(shown, "save"):  # of PIL
        out = io.BytesIO()
        plain = (
            shown if shown.mode in ("1", "L", "LA", "P", "RGB", "RGBA") else shown.convert("RGB")
        )
        plain.save(out, format="PNG")
        return {"mime": "image/png", "data": out.getvalue()}
    return None


def _notebook_stimulus(shown):
    """Return what an object draws of itself; TypeError if it draws nothing."""
    stimulus = _picture_stimulus(shown)
    if stimulus is not None:
        return stimulus
    held = getattr(shown, "data", None)
    if isinstance(held, bytes) and hasattr(shown, "_repr_html_"):  # of IPython.display
        return _file_stimulus(held, f"the data of this {type(shown).__name__}")
    for method, mime in _DRAWN:
        made = getattr(shown, method, None)
        content = made() if callable(made) and not isinstance(shown, type) else None
        if isinstance(content, bytes):
            return {"mime": mime, "data": content}
        if isinstance(content, str) and mime == "image/svg+xml":
            return {"mime": mime, "data": content.encode()}
        if isinstance(content, str):
            return {"mime": mime, "text": content}
    raise TypeError(
        f"show returned {shown!r} of type {type(shown).__name__}, which cannot be shown. Return "
        f"{_ALLOWED}."
    )


def _possible_figures(shown):
    """Return objects that may be a figure: the object itself, and its figure if it has one."""
    return shown, getattr(shown, "figure", None), getattr(shown, "figure_", None)


def describe_item(item: Any) -> str:
    """Return an item in words: a name, or its values with a line each."""
    if isinstance(item, Mapping):
        return "\n".join(
            item_title({name: value}).replace("=", ": ", 1) for name, value in item.items()
        )
    return item_title(item)
