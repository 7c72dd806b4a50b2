"""Python blocks of every page run, links lead somewhere, names and signatures are the code's."""

import ast
import importlib
import inspect
import pkgutil
import re
import warnings
from pathlib import Path

import pytest
from progress_support import HAS_CALLBACKS

import skpref

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "doc").glob("*.md"))
WITHOUT_CODE = {
    f"{name}.md"
    for name in (
        "architecture",
        "glossary",
        "collaborative_study",
        "regret_study",
        "releasing",
        "scale_study",
        "skew_study",
        "stability",
    )
}
DRAWS = {"looking.md"}
DISTRIBUTED = {"distributed.md"}
NOTEBOOK = {"judging_notebook.md"}
MODULES = ["skpref"] + [
    f"skpref.{found.name}"
    for found in pkgutil.iter_modules(skpref.__path__)
    if not found.name.startswith("_") and found.name not in ("data", "fitting", "gp")
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
    if page.name in DRAWS:
        pytest.importorskip("matplotlib").use("Agg")
    if page.name in DISTRIBUTED:
        pytest.importorskip("distributed")
    if page.name in NOTEBOOK:
        pytest.importorskip("anywidget")
    found = list(blocks(page))
    assert len(found) > 0
    namespace = {}
    for line, source in found:
        code = compile("\n" * line + source, str(page), "exec")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if "set_callbacks" in source and not HAS_CALLBACKS:
                with pytest.raises(AttributeError, match=r"needs scikit-learn 1\.9 or newer"):
                    exec(code, namespace)
            else:
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
