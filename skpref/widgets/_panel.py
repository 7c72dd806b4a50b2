"""The page itself, on anywidget: two values that it shows, and messages that it sends."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any


def make_panel(heard: Callable[[dict], None]) -> Any:
    """A page, an anywidget; each message of it is handed on.

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
