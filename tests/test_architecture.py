"""The page on how the package is built says what the imports and the code say."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "doc" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def draw_rooms():
    sys.path.insert(0, str(ROOT / "doc"))
    try:
        yield importlib.import_module("draw_rooms")
    finally:
        sys.path.remove(str(ROOT / "doc"))


def test_the_picture_is_that_of_the_imports(draw_rooms):
    """`python doc/draw_rooms.py` draws it anew."""
    assert draw_rooms.PICTURE.read_text(encoding="utf-8") == draw_rooms.drawn()


def test_an_arrow_that_follows_from_others_is_left_out(draw_rooms):
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert draw_rooms.reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}
    assert draw_rooms.floors(graph) == {"a": 2, "b": 1, "c": 0}


def test_the_page_names_every_room(draw_rooms):
    for name in draw_rooms.rooms():
        shown = f"`{name}/`" if (ROOT / "skpref" / name).is_dir() else f"`{name}.py`"
        assert shown in PAGE, shown


def test_files_that_the_page_names_exist():
    for name in re.findall(r"`(\w+/_\w+\.py)`", PAGE):
        assert (ROOT / "skpref" / name).is_file(), name


def test_names_that_the_page_gives_exist():
    rooms = "data|fitting|gp|inference"
    found = re.findall(rf"`({rooms})\.(\w+)(?:\([^`]*\))?`", PAGE)
    assert len(found) >= 7
    for room, name in found:
        assert hasattr(importlib.import_module(f"skpref.{room}"), name), f"{room}.{name}"
