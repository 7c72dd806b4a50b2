"""Python blocks of every page run, links lead somewhere, names and signatures are the code's."""

import ast
import importlib
import inspect
import io
import pkgutil
import re
import sys
import warnings
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import pytest
from progress_support import HAS_CALLBACKS
from sklearn import config_context

import skpref

ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "doc"
PAGES = sorted(page for page in DOC.rglob("*.md") if "_build" not in page.relative_to(DOC).parts)
PAGES = [ROOT / "README.md", *PAGES]
DRAWS = ("looking.md", "pictures.md", "tutorials/")
# What these print stands on the page.
PRINTS = ("tutorials/", "coming_from/")
DISTRIBUTED = {"distributed.md"}
ON_PAGES = {"judging.md"}
NOTEBOOK = {"judging_notebook.md"}
MODULES = (
    ["skpref"]
    + [
        f"skpref.{found.name}"
        for found in pkgutil.iter_modules(skpref.__path__)
        if not found.name.startswith("_") and found.name not in ("data", "fitting", "gp")
    ]
    + (["skpref.integrations.optuna"] if find_spec("optuna") else [])
)


@pytest.fixture(scope="module")
def run_pages():
    sys.path.insert(0, str(DOC))
    try:
        yield importlib.import_module("run_pages")
    finally:
        sys.path.remove(str(DOC))


def anchors(page):
    """Anchors of a page's headings as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def page_id(page):
    return page.relative_to(DOC).as_posix() if page.is_relative_to(DOC) else page.name


# Whole runs of many questions, what learns from many answers, and guides of many models.
LONG = {
    "active.md",
    "answers.md",
    "collaborative.md",
    "distributed.md",
    "extending.md",
    "first_model.md",
    "items.md",
    "judges.md",
    "judging.md",
    "kernels.md",
    "live_board.md",
    "looking.md",
    "many_answers.md",
    "optimising.md",
    "pictures.md",
    "optuna_dashboard.md",
    "questions.md",
    "recipes.md",
    "scoring.md",
    "strategies.md",
    "xgboost_rankers.md",
}


def quick_or_slow(page):
    """Tutorials fit real data."""
    is_slow = page.parent.name == "tutorials" or page.name in LONG
    return pytest.param(page, id=page_id(page), marks=[pytest.mark.slow] * is_slow)


WITH_CODE = [page for page in PAGES if "\n```python\n" in page.read_text("utf-8")]


def test_blocks_of_every_page_can_be_read_and_import_what_there_is(run_pages):
    """What a long page says is run by the slow tests."""
    seen = set()
    for page in WITH_CODE:
        for block in run_pages.blocks(page):
            for node in ast.walk(ast.parse(block.source, str(page))):
                if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "skpref":
                    seen |= {(page, node.module, name.name) for name in node.names}
    for page, module, name in seen:
        if find_spec("optuna") or "optuna" not in module:
            assert hasattr(importlib.import_module(module), name), (page, module, name)
    assert len(seen) > 100


@pytest.mark.parametrize("page", [quick_or_slow(page) for page in WITH_CODE])
def test_blocks_run(page, run_pages, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    if page_id(page).startswith(DRAWS):
        pytest.importorskip("matplotlib").use("Agg")
    if page.name in DISTRIBUTED:
        pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    if page.name in ON_PAGES:
        pytest.importorskip("optuna_dashboard")
    if page.name in NOTEBOOK:
        pytest.importorskip("anywidget")
    namespace = {}
    with config_context():
        for block in run_pages.blocks(page):
            printed = printed_by(block, page, namespace)
            if page_id(page).startswith(PRINTS) or block.printed is not None:
                assert run_pages.agrees(block.printed or "", printed), printed


def printed_by(block, page, namespace):
    """What a block prints; it runs without warnings."""
    code = compile("\n" * block.line + block.source, str(page), "exec")
    printed = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(printed):
        warnings.simplefilter("error")
        if "set_callbacks" in block.source and not HAS_CALLBACKS:
            with pytest.raises(AttributeError, match=r"needs scikit-learn 1\.9 or newer"):
                exec(code, namespace)
        else:
            exec(code, namespace)
    return printed.getvalue()


def test_numbers_of_pages_may_differ_in_their_last_digits(run_pages):
    assert run_pages.agrees("loss: 0.49\n[1.0 2]", "loss:  0.48 [1.00 2]")
    assert not run_pages.agrees("loss: 0.49", "loss: 0.53")
    assert not run_pages.agrees("loss: 0.49", "gain: 0.49")
    assert not run_pages.agrees("100 answers", "110 answers")
    assert not run_pages.agrees("1 2", "1 2 3")
    assert run_pages.agrees("28 s", "27 s")
    assert not run_pages.agrees("28 s", "26 s")
    assert not run_pages.agrees("place 2", "place 3")


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


def api_section(module):
    """What the API page says of a module."""
    text = (ROOT / "doc" / "api.md").read_text(encoding="utf-8")
    start = text.find(f"## `{module}`\n")
    assert start >= 0, f"doc/api.md: add a section '## `{module}`'"
    end = text.find("\n## ", start + 1)
    return text[start : end if end > 0 else None]


def parameters(call):
    """Name, kind and default of each parameter, and whether the list breaks off with ``...``."""
    head, is_open = re.subn(r",?\s*\.\.\.\s*\)$", ")", call)
    given = ast.parse(f"def {head}: pass").body[0].args
    positional = given.posonlyargs + given.args
    defaults = [None] * (len(positional) - len(given.defaults)) + given.defaults
    pairs = [("positional", *pair) for pair in zip(positional, defaults, strict=True)]
    pairs += [("keyword", *pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    empty = inspect.Parameter.empty
    read = [
        (arg.arg, kind, empty if node is None else ast.literal_eval(node))
        for kind, arg, node in pairs
    ]
    return read, bool(is_open)


def actual_parameters(thing):
    """The same of a function or class."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        (one.name, "keyword" if one.kind == keyword else "positional", one.default)
        for one in inspect.signature(thing).parameters.values()
        if one.name != "self"
    ]


def printed(name, thing):
    """A signature as the page should print it."""
    parts, before = [], "positional"
    for parameter, kind, default in actual_parameters(thing):
        if kind == "keyword" != before:
            parts.append("*")
        before = kind
        shown = parameter if default is inspect.Parameter.empty else f"{parameter}={default!r}"
        parts.append(shown.replace("'", '"'))
    return f"`{name}({', '.join(parts)})`"


def candidates(module, name):
    """What a printed signature may be of: a public name, or a method of a public class."""
    public = importlib.import_module(module)
    if name in public.__all__:
        return [getattr(public, name)]
    owners = [getattr(public, owner) for owner in public.__all__]
    methods = [getattr(owner, name, None) for owner in owners if inspect.isclass(owner)]
    return [method for method in methods if inspect.isfunction(method) or inspect.ismethod(method)]


def same(read, is_open, actual):
    return read == (actual[: len(read)] if is_open else actual)


@pytest.mark.parametrize("module", MODULES)
def test_api_page_has_every_public_name(module):
    named = set(re.findall(r"`(\w+)", api_section(module)))
    public = importlib.import_module(module)
    missing = [
        printed(name, getattr(public, name)) if callable(getattr(public, name)) else f"`{name}`"
        for name in sorted(set(public.__all__) - named)
    ]
    assert not missing, f"doc/api.md, section `{module}`: add " + ", ".join(missing)


@pytest.mark.parametrize("module", MODULES)
def test_api_page_prints_signatures_as_they_are(module):
    wrong = []
    for call in re.findall(r"`([A-Za-z]\w*\([^`]*\))`", api_section(module)):
        name = call.partition("(")[0]
        found = candidates(module, name)
        if not found:
            wrong.append(f"`{call}` is no public name or method: remove it")
        elif not any(same(*parameters(call), actual_parameters(thing)) for thing in found):
            wrong.append(f"`{' '.join(call.split())}` is {printed(name, found[0])}")
    assert not wrong, f"doc/api.md, section `{module}`: " + "; ".join(wrong)
