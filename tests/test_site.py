"""The machinery of the documentation site: links, the reference, and the check of a built site."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "doc"
sys.path.insert(0, str(DOC))
try:
    from _site import check, links, reference
finally:
    sys.path.remove(str(DOC))


@pytest.mark.parametrize(
    "target, in_site",
    [
        ("../examples/football.py", "auto_examples/football.rst"),
        ("../examples", "auto_examples/index.rst"),
        ("../benchmarks/common.py", "../benchmarks/common.py"),
        ("../CHANGELOG.md", "changelog.md"),
        ("../benchmarks/README.md", "benchmarks.md"),
        ("../README.md", "index.md"),
        ("../README.md#install", "index.md"),
        ("model.md#laplace", "model.md#laplace"),
        ("https://example.org/a.md", "https://example.org/a.md"),
        ("#here", "#here"),
    ],
)
def test_links_that_leave_the_folder_stay_in_the_site(target, in_site):
    assert links.in_site(f"see [x]({target}).", DOC) == f"see [x]({in_site})."


def test_links_from_a_folder_below():
    turned = links.in_site("[a](../../examples/tennis.py) [b](../model.md)", DOC / "guide")
    assert turned == "[a](../auto_examples/tennis.rst) [b](../model.md)"


def test_texts_at_the_root_are_shown_by_pages_of_the_site():
    turned = links.in_site("[a](doc/model.md) [b](SECURITY.md)", ROOT, DOC)
    assert turned == "[a](model.md) [b](security.md)"


def test_every_link_to_a_text_leads_to_a_page_that_exists():
    held = {page: ROOT / name for name, page in links.HELD.items() if name.endswith(".md")}
    pages = {path.relative_to(DOC).with_suffix("").as_posix(): path for path in DOC.rglob("*.md")}
    seen = 0
    for name, path in pages.items():
        if name.startswith("_"):
            continue
        source = held.get(name, path)
        text = links.in_site(source.read_text("utf-8"), source.parent, path.parent)
        for _, target in links.LINK.findall(links.FENCE.sub("", text)):
            to = target.partition("#")[0]
            if re.match(r"[a-z]+:", target) or not to.endswith(".md"):
                continue
            seen += 1
            there = (path.parent / to).resolve()
            assert there in pages.values(), f"{name}: {target}"
    assert seen > 100


def test_folders_are_named_without_a_link():
    assert links.in_site("in [the folder](skew_study).", DOC) == "in the folder."


def test_code_and_pictures_are_left_as_they_are():
    text = "![p](../examples/a.py)\n\n```python\nrow[0](skew_study)\n```\n"
    assert links.in_site(text, DOC) == text


def test_every_public_name_has_one_page_and_a_link_to_it():
    text = reference.linked((DOC / "api.md").read_text("utf-8"))
    pages = reference.pages()
    assert pages["skpref.duels", "ItemTable"] == pages["skpref", "ItemTable"] == "skpref.ItemTable"
    listed = text.split("```{toctree}", 1)[1].split()
    for full in set(pages.values()):
        assert listed.count(f"reference/{full}") == 1
        assert f"(reference/{full}.rst)" in text, full


def test_a_long_class_has_its_methods_on_a_page_of_their_own():
    full = "skpref.PreferenceOptimizer"
    assert reference.is_long(reference.thing_of(full))
    first, methods = reference.page(full), reference.page_of_methods(full)
    for name in ("ask", "tell", "history_"):
        assert f"\n   PreferenceOptimizer.{name}\n" in first
    assert ".. automethod:: PreferenceOptimizer.ask\n" in methods
    assert ".. autoproperty:: PreferenceOptimizer.history_\n" in methods
    assert ":members:" not in first and f"   {full}.methods" in first
    assert ":members:" in reference.page("skpref.ItemTable")


def test_fields_of_a_bunch_become_a_list():
    lines = ["data : Bunch", "    X : array", "        Duels.", "    y : outcomes", "", "Notes"]
    found = reference.fields_in_bullets(lines)
    assert [line for line in found if line] == [
        "data : Bunch",
        "    * **X** : array. Duels.",
        "    * **y** : outcomes",
        "Notes",
    ]


def page(folder, name, body):
    (folder / name).write_text(f"<html><body>{body}</body></html>", "utf-8")


def test_a_sound_site_has_nothing_broken(tmp_path):
    page(tmp_path, "index.html", '<a href="other.html#there">x</a><a href="#top" id="top">y</a>')
    page(tmp_path, "other.html", '<h1 id="there"></h1><a href="https://example.org">z</a>')
    assert check.broken(tmp_path) == []
    assert check.main(str(tmp_path)) == 0


@pytest.mark.parametrize(
    "body, words",
    [
        ('<a href="gone.html">x</a>', "there is no gone.html"),
        ('<a href="#gone">x</a>', "there is no anchor #gone"),
        ('<a href="../outside.html">x</a>', "leads out of the site"),
        ('<img src="gone.png">', "there is no gone.png"),
        ('<script src="https://cdn.example.org/a.js"></script>', "from the network"),
        ('<link rel="stylesheet" href="//cdn.example.org/a.css">', "from the network"),
    ],
)
def test_what_is_broken_is_named(tmp_path, body, words):
    page(tmp_path, "index.html", body)
    (found,) = check.broken(tmp_path)
    assert found.startswith("index.html: ") and words in found
    assert check.main(str(tmp_path)) == 1


def test_an_empty_site_is_no_site(tmp_path):
    assert check.main(str(tmp_path)) == 1
