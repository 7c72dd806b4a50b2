"""A page of the reference for every public name, and links to them from the page ``api.md``.

``api.md`` says every public name in a line, and tests hold it to the code. Here each line gets a
link, and each object a page made from its docstring, in the folder ``reference`` (made anew with
every build). An object that several modules hand out has one page, by its shortest name.
"""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import skpref

FOLDER = "reference"
PRIVATE_PARTS = ("data", "fitting", "gp")  # rooms without names of their own for users
SECTION = re.compile(r"^## `([\w.]+)`$", flags=re.MULTILINE)
FIELD = re.compile(r" +([A-Za-z_][\w.]*(?:, [A-Za-z_]\w*)*) : (\S.*)$")
LONGEST = 300  # lines of docstrings that a page holds in less than 12 000 pixels
NAMES = re.compile(r"`(\w+)((?:\([^`]*\))?)`")


def modules() -> list[str]:
    """Public modules, the package first."""
    found = pkgutil.iter_modules(skpref.__path__)
    names = [each.name for each in found if not each.name.startswith("_")]
    return [
        "skpref",
        *(f"skpref.{name}" for name in names if name not in PRIVATE_PARTS),
    ]


def pages() -> dict[tuple[str, str], str]:
    """Full name of the page of each (module, public name)."""
    found, home = {}, {}
    for module in modules():
        public = importlib.import_module(module)
        for name in public.__all__:
            thing = getattr(public, name)
            alike = inspect.isclass(thing) or inspect.isroutine(thing)
            key = id(thing) if alike else (module, name)
            found[module, name] = home.setdefault(key, f"{module}.{name}")
    return found


def said_of(module: str, name: str) -> str:
    """What ``api.md`` says of a name in its line."""
    parts = SECTION.split((Path(__file__).parents[1] / "api.md").read_text("utf-8"))
    section = dict(zip(parts[1::2], parts[2::2], strict=True))[module]
    for line in section.split("\n"):
        cells = line.strip("| ").split(" | ")
        if line.startswith("| `") and f"`{name}`" in cells[0]:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cells[1]).replace("`", "``")
            return words[0].upper() + words[1:].rstrip(".") + "."
    raise LookupError(f"api.md has no line of {module}.{name}")


def value_of(thing: object) -> list[str]:
    """A constant as it is, of a collection what is in it."""
    if isinstance(thing, dict | tuple | list):
        return [f"* ``{each!r}``" for each in thing]
    return [f"``{thing!r}``"]


def thing_of(full: str) -> object:
    """The object of a full name."""
    module, _, name = full.rpartition(".")
    return getattr(importlib.import_module(module), name)


def members(thing: type) -> list[str]:
    """Public methods and properties of a class that have a docstring, as they are written."""
    names = dict.fromkeys(name for base in thing.__mro__ for name in vars(base))
    return [
        name
        for name in names
        if not name.startswith("_")
        and inspect.getdoc(each := getattr(thing, name))
        and (inspect.isroutine(each) or isinstance(each, property))
        and not skip(None, "class", name, each, None, None)
    ]


def is_long(thing: object) -> bool:
    """Whether a class has too much to say for one page."""
    if not inspect.isclass(thing):
        return False
    parts = [thing, *(getattr(thing, name) for name in members(thing))]
    return (
        sum(len((inspect.getdoc(each) or "").split("\n")) for each in parts) > LONGEST
    )


def page_of_methods(full: str) -> str:
    """The page of the methods of a class that is too long for one page."""
    module, _, name = full.rpartition(".")
    thing = thing_of(full)
    title = f"Methods of {name}"
    lines = [title, "=" * len(title), "", f".. currentmodule:: {module}", ""]
    for each in members(thing):
        kind = "property" if isinstance(getattr(thing, each), property) else "method"
        lines += [f".. auto{kind}:: {name}.{each}", ""]
    return "\n".join(lines)


def page(full: str) -> str:
    """The reStructuredText of one page."""
    module, _, name = full.rpartition(".")
    thing = thing_of(full)
    if not (
        inspect.isclass(thing) or inspect.isroutine(thing)
    ):  # no docstring of its own
        lines = [f".. py:data:: {name}", f"   :module: {module}", ""]
        lines += [f"   {said_of(module, name)}", ""]
        lines += [f"   {line}" for line in value_of(thing)]
        return "\n".join([name, "=" * len(name), "", *lines, ""])
    kind, options = "function", []
    if inspect.isclass(thing):
        kind, options = "class", ["   :members:", "   :inherited-members:"]
    if is_long(thing):
        options = [
            "",
            "Methods",
            "-------",
            "",
            ".. autosummary::",
            "   :nosignatures:",
            "",
        ]
        options += [f"   {name}.{each}" for each in members(thing)]
        options += ["", ".. toctree::", "   :hidden:", "", f"   {full}.methods"]
    lines = [
        name,
        "=" * len(name),
        "",
        f".. currentmodule:: {module}",
        "",
        f".. auto{kind}:: {name}",
    ]
    return "\n".join([*lines, *options, ""])


def write(app):
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    names = set(pages().values())
    wanted = {f"{full}.rst": page(full) for full in names}
    wanted |= {
        f"{full}.methods.rst": page_of_methods(full)
        for full in names
        if is_long(thing_of(full))
    }
    for path in folder.glob("*.rst"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if (
            not path.exists() or path.read_text("utf-8") != text
        ):  # else it is up to date
            path.write_text(text, "utf-8")


def linked(text: str) -> str:
    """The text of ``api.md`` with a link at each public name in the first column of a table."""
    parts, known = SECTION.split(text), pages()
    done = [parts[0]]
    for module, section in zip(parts[1::2], parts[2::2], strict=True):

        def link(found, module=module):
            full = known.get((module, found[1]))
            return found[0] if full is None else f"[{found[0]}]({FOLDER}/{full}.rst)"

        lines = []
        for line in section.split("\n"):
            cells = line.split(" | ", 1)
            if line.startswith("| `"):
                cells[0] = NAMES.sub(link, cells[0])
            lines.append(" | ".join(cells))
        done += [f"## `{module}`", "\n".join(lines)]
    for module in modules():
        own = [
            full for full in set(known.values()) if full.rpartition(".")[0] == module
        ]
        names = "\n".join(f"{FOLDER}/{full}" for full in sorted(own, key=str.lower))
        done.append(f"\n```{{toctree}}\n:hidden:\n:caption: {module}\n\n{names}\n```\n")
    return "".join(done)


def on_read(app, docname, source):
    if docname == "api":
        source[0] = linked(source[0])


def whole_lines(lines: list[str]) -> list[str]:
    """Lines that end in a backslash joined with the next."""
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1].endswith("\\"):
            joined[-1] = joined[-1][:-1].rstrip() + " " + line.strip()
        else:
            joined.append(line)
    return joined


def fields_in_bullets(lines: list[str]) -> list[str]:
    """The fields of a Bunch, ``name : what it is`` and lines below it, as a list.

    Those below belong to the field whether they go on with its sentence or begin another.
    """
    done: list[str] = []
    field = 0  # indent of the field that the line may go on with
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if (
            indent >= 4
            and (found := FIELD.match(line))
            and (not field or indent <= field)
        ):
            if not field and done and done[-1].strip():
                done.append("")
            field = indent
            done.append(f"{' ' * indent}* **{found[1]}** : {found[2]}")
        elif field and indent > field:
            starts = line.strip()[0].isupper() and re.match(r" *\* \*\*", done[-1])
            done[-1] += ". " if starts and not done[-1].endswith((".", ":")) else " "
            done[-1] += line.strip()
        else:
            if field and line.strip():
                done.append("")
            field = 0
            done.append(line)
    return done


def mend(app, what, name, obj, options, lines):
    """What docutils does not read in docstrings that people read well; before numpydoc."""
    initials = (
        re.sub(r"^([A-Z])\. ", r"\\\1. ", line) for line in lines
    )  # no item A of a list
    lines[:] = fields_in_bullets(whole_lines(list(initials)))


def skip(app, what, name, obj, skipped, options):
    """Members that scikit-learn gives, and its requests for metadata, are in its own reference."""
    owner = getattr(obj, "__module__", None) or ""
    if re.fullmatch(r"set_\w+_request", name) or owner.startswith("sklearn"):
        return True
    return None


def setup(app):
    app.connect("builder-inited", write)
    app.connect("source-read", on_read)
    app.connect("autodoc-process-docstring", mend, priority=100)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
