"""Runs the code of pages and compares what it prints with what the page says it prints.

    python doc/run_pages.py doc/tutorials/*.md [--write]
    python doc/run_pages.py doc/coming_from/choix.md --fence py --python ENV/bin/python [--write]

The blocks of a page run in order, in one namespace and in an empty folder. A ``text`` block right
after a block is what it prints; numbers may differ by 2 %. A picture right after a block is the
figure that the block leaves open. ``--write`` puts what was printed and drawn into the page and its
pictures. Blocks of fence "python" are ours; those of fence "py" are other packages', and run with a
Python that has them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BLOCK = (
    r"^```{fence}\n(?P<source>.*?)^```$"
    r"(?:\n\n```text\n(?P<printed>.*?)^```$)?"
    r"(?:\n\n!\[[^\]]*\]\((?P<picture>[^)]+\.png)\))?"
)
NUMBER = r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?"
# Runs in the Python of the page: reads blocks, writes what each printed.
DRIVER = """
import contextlib, io, json, sys
blocks, namespace, printed = json.load(sys.stdin), {}, []
for source, picture in blocks:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "<page>", "exec"), namespace)
    printed.append(out.getvalue())
    if picture:
        from matplotlib import pyplot
        pyplot.savefig(picture, dpi=110, facecolor="white", bbox_inches="tight")
    if "matplotlib" in sys.modules:
        from matplotlib import pyplot
        pyplot.close("all")
json.dump(printed, sys.stdout)
"""


class Block(NamedTuple):
    """Code, what it prints and draws by the page, its line, and where the printed text stands."""

    source: str
    printed: str | None
    picture: str | None
    line: int
    span: tuple[int, int]


def blocks(page, fence="python"):
    """The blocks of a page."""
    text = page.read_text(encoding="utf-8")
    pattern = BLOCK.format(fence=fence)
    return [
        Block(
            found["source"],
            found["printed"],
            found["picture"],
            text.count("\n", 0, found.start()) + 1,
            found.span("printed"),
        )
        for found in re.finditer(pattern, text, flags=re.DOTALL | re.MULTILINE)
    ]


def agrees(said, printed):
    """Whether texts are the same but for spaces, and numbers within 2 % or a last digit."""
    between = [
        [" ".join(part.split()) for part in re.split(NUMBER, text)]
        for text in (said, printed)
    ]
    if between[0] != between[1]:
        return False
    pairs = zip(re.findall(NUMBER, said), re.findall(NUMBER, printed), strict=True)
    return all(near(first, second) for first, second in pairs)


def near(first, second):
    """Whether numbers as printed differ by 2 % or one of the last digit at most.

    Versions of libraries differ in the last bits, and runs that optimise in more. Whole numbers
    below ten are counts or places, and exact.
    """
    digits = min(len(each.partition(".")[2]) for each in (first, second))
    exact = "." not in first and abs(float(first)) < 10.0
    allowed = 0.0 if exact else max(0.02 * abs(float(first)), 1.01 * 10.0**-digits)
    return abs(float(first) - float(second)) <= allowed


def run(page, fence, python, picture_of):
    """What each block printed."""
    found = blocks(page, fence)
    asked = [
        (block.source, block.picture and picture_of(block.picture)) for block in found
    ]
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, "-c", DRIVER],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{page}: {done.stderr}")
    return found, json.loads(done.stdout)


def written(page, found, printed):
    """The page with what was printed."""
    text = page.read_text(encoding="utf-8")
    for block, said in reversed(list(zip(found, printed, strict=True))):
        if block.printed is not None:
            lines = "".join(f"{line.rstrip()}\n" for line in said.splitlines())
            text = text[: block.span[0]] + lines + text[block.span[1] :]
    page.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--fence", choices=("python", "py"), default="python")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument(
        "--write", action="store_true", help="into the page and its pictures"
    )
    options = parser.parse_args()
    wrong = 0
    for page in options.pages:
        page = page.resolve()

        def picture_of(name, page=page):
            return str((page.parent / name).resolve()) if options.write else None

        found, printed = run(page, options.fence, options.python, picture_of)
        if options.write:
            written(page, found, printed)
            continue
        for block, said in zip(found, printed, strict=True):
            if not agrees(block.printed or "", said):
                wrong += 1
                print(
                    f"{page.name}, line {block.line}: says\n{block.printed or ''}prints\n{said}"
                )
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
