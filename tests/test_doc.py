"""The Python blocks of every page run, its links lead somewhere, and its names exist."""

import importlib
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "doc").glob("*.md"))
WITHOUT_CODE = {"glossary.md", "regret_study.md", "skew_study.md"}
MODULES = [
    "skpref",
    "skpref.datasets",
    "skpref.duels",
    "skpref.inference",
    "skpref.likelihoods",
    "skpref.metrics",
    "skpref.model_selection",
    "skpref.optimize",
    "skpref.preprocessing",
]


def blocks(page):
    """Python blocks and the line before the first of each."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, found.start()) + 1, found.group(1)


def anchors(page):
    """Anchors of a page's headings as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def page_id(page):
    return page.name


@pytest.mark.parametrize("page", [p for p in PAGES if p.name not in WITHOUT_CODE], ids=page_id)
def test_blocks_run(page):
    pytest.importorskip("pandas")
    found = list(blocks(page))
    assert len(found) > 0
    namespace = {}
    for line, source in found:
        code = compile("\n" * line + source, str(page), "exec")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(code, namespace)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


@pytest.mark.parametrize("module", MODULES)
def test_api_page_has_every_public_name(module):
    text = (ROOT / "doc" / "api.md").read_text(encoding="utf-8")
    start = text.index(f"## `{module}`\n")
    end = text.find("\n## ", start + 1)
    section = text[start : end if end > 0 else None]
    named = set(re.findall(r"`(\w+)", section))
    missing = set(importlib.import_module(module).__all__) - named
    assert not missing
