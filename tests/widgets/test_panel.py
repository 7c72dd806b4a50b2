"""The page's files, and the error where what it needs is not installed."""

import re
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = """
import sys
from skpref import PreferenceOptimizer
from skpref.widgets import Judge
heavy = {"anywidget", "matplotlib", "PIL"} & set(sys.modules)
assert not heavy, heavy
sys.modules["anywidget"] = None
try:
    Judge(PreferenceOptimizer([(0.0, 1.0)]))
except ImportError as error:
    assert "pip install \\"skpref[notebook]\\"" in str(error), error
else:
    raise SystemExit("it was made without anywidget")
"""


def test_anywidget_is_asked_for_on_use_alone():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["judge.js", "judge.css"])
def test_the_page_is_packed_and_fetches_nothing(name):
    with open(ROOT / "pyproject.toml", "rb") as stream:
        packed = tomllib.load(stream)["tool"]["setuptools"]["package-data"]["skpref.widgets"]
    assert name in packed
    text = files("skpref.widgets").joinpath(name).read_text("utf-8")
    assert set(re.findall(r"https?://[^\"']+", text)) <= {"http://www.w3.org/2000/svg"}
    for way in ("import ", "import(", "@import", "fetch(", "XMLHttpRequest", "url(", "innerHTML"):
        assert way not in text, way
