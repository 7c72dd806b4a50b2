"""Links that lead out of ``doc/`` on a code host lead to a page or a file of the site.

Scripts in ``examples/`` lead to their pages of the gallery, the texts at the root of the repository
and the list of benchmarks to the pages that hold them, all other files to copies. Folders are named
without a link.
"""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Texts that stand where code hosts look for them; here is the page that holds each.
HELD = {
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "SECURITY.md": "security",
    "LICENSE": "licence",
    "benchmarks/README.md": "benchmarks",
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)\s*?$", flags=re.DOTALL | re.MULTILINE)


def target_in_site(target: str, folder: Path, page_folder: Path) -> str | None:
    """What `target`, relative to `folder`, is on a page of `page_folder`; None: it is a folder."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, _, anchor = target.partition("#")
    there = (folder / path).resolve()
    inside = there.relative_to(ROOT).as_posix()
    if inside == "examples":
        found = ROOT / "doc" / "auto_examples" / "index.rst"
    elif inside.startswith("examples/") and there.suffix == ".py":
        found = ROOT / "doc" / "auto_examples" / f"{there.stem}.rst"
    elif inside in HELD:
        found = ROOT / "doc" / f"{HELD[inside]}.md"
    elif inside == "README.md":
        found, anchor = ROOT / "doc" / "index.md", ""  # the site's own front page
    elif there.is_dir():
        return None
    else:
        found = there
    relative = Path(os.path.relpath(found, page_folder)).as_posix()
    return f"{relative}#{anchor}" if anchor else relative


def in_site(text: str, folder: Path, page_folder: Path | None = None) -> str:
    """`text` of a page in `folder`, its links turned; code is left as it is."""
    page_folder = folder if page_folder is None else page_folder

    def turned(found):
        words, target = found.groups()
        target = target_in_site(target, folder, page_folder)
        return words if target is None else f"[{words}]({target})"

    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(turned, text[at : fence.start()]), fence.group()]
        at = fence.end()
    return "".join([*parts, LINK.sub(turned, text[at:])])


def on_read(app, docname, source):
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".md":
        return
    held = {page: name for name, page in HELD.items()}.get(docname)
    if held is None:
        source[0] = in_site(source[0], path.parent)
    elif held.endswith(".md"):
        text = ROOT / held
        source[0] = in_site(text.read_text("utf-8"), text.parent, path.parent)
    else:
        source[0] += "\n```text\n" + (ROOT / held).read_text("utf-8") + "```\n"


def setup(app):
    app.connect("source-read", on_read)
    return {"parallel_read_safe": True}
