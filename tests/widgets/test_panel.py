"""The page's files, and the error where what it needs is not installed."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from fresh_support import fresh

ROOT = Path(__file__).resolve().parents[2]


def test_anywidget_is_asked_for_on_use_alone():
    assert not {"anywidget", "matplotlib", "PIL"} & set(fresh()["loaded"])
    assert 'pip install "skpref[notebook]"' in fresh()["errors"]["anywidget"]


@pytest.mark.parametrize("name", ["judge.js", "judge.css"])
def test_the_page_is_packed_and_fetches_nothing(name):
    with open(ROOT / "pyproject.toml", "rb") as stream:
        packed = tomllib.load(stream)["tool"]["setuptools"]["package-data"]["skpref.widgets"]
    assert name in packed
    text = files("skpref.widgets").joinpath(name).read_text("utf-8")
    assert set(re.findall(r"https?://[^\"']+", text)) <= {"http://www.w3.org/2000/svg"}
    for way in ("import ", "import(", "@import", "fetch(", "XMLHttpRequest", "url(", "innerHTML"):
        assert way not in text, way
