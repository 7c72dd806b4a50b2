"""What pyproject.toml admits at least is what .ci/oldest.txt tests, and versions agree."""

import re
import tomllib
from pathlib import Path

import skpref

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
# Tools, which change no result: any version that is new enough will do.
TOOLS = {"ruff", "mypy", "build", "pytest-cov"}
TOOLS |= {"sphinx", "docutils", "myst-parser", "numpydoc", "sphinx-gallery"}
TOOLS |= {"pydata-sphinx-theme", "sphinx-copybutton", "playwright", "jupyterlab", "anywidget"}
TOOLS |= {"axe-playwright-python"}


def least():
    """Name and least version of everything that is required, by any extra."""
    extras = PROJECT["project"]["optional-dependencies"]
    lines = [*PROJECT["project"]["dependencies"], *(each for of in extras.values() for each in of)]
    for line in lines:
        name, version = re.match(r"([\w-]+)(?:\[\w+\])?(?:[>=]=([\d.]+))?", line).groups()
        if name not in TOOLS | {"skpref"}:
            yield name, version


def numbers(version):
    """1.6.0 as 1.6: zeros at the end say nothing."""
    return re.sub(r"(\.0)+$", "", version)


def test_the_oldest_that_is_admitted_is_the_oldest_that_is_tested():
    text = (ROOT / ".ci" / "oldest.txt").read_text("utf-8")
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+)$", text, flags=re.MULTILINE))
    floors = dict(least())
    # distributed comes with dask; of pyparsing matplotlib 3.8 needs an old one.
    along = {"distributed", "pyparsing"}
    assert floors.keys() == pins.keys() - along
    assert {name: numbers(version) for name, version in floors.items()} == {
        name: numbers(version) for name, version in pins.items() if name not in along
    }
    assert pins["distributed"] == pins["dask"]  # which come together


def test_pythons_are_those_of_the_classifiers():
    python = PROJECT["project"]["requires-python"]
    listed = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert python == f">={listed[0]}"


def test_versions_agree():
    version = PROJECT["project"]["version"]
    assert skpref.__version__ == version
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(rf"^version: {re.escape(version)}$", cited, flags=re.MULTILINE)
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
