"""The benchmark scripts: they import, and the commands and tables that pages name are theirs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = sorted(BENCHMARKS.glob("*/[a-z]*.py"))
INDEX = BENCHMARKS / "README.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", INDEX, *sorted((ROOT / "doc").rglob("*.md"))]
# Each as if it were run from the root, but for its main part; modules of one folder may have the
# names of another's.
IMPORTS = """
import runpy, sys
from pathlib import Path

own = {path.stem for path in Path("benchmarks").rglob("*.py")}
path = list(sys.path)
for script in sys.argv[1:]:
    for name in own & set(sys.modules):
        del sys.modules[name]
    sys.path[:] = [str(Path(script).parent.resolve()), *path]
    try:
        runpy.run_path(script, run_name="imported")
    except SystemExit as ended:  # in good order where a package is missing
        if ended.code:
            print(script, "ended with", ended.code)
    except Exception as error:
        print(script, type(error).__name__, error)
"""


@pytest.mark.slow
def test_scripts_import():
    names = [str(script.relative_to(ROOT)) for script in SCRIPTS]
    told = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-c", IMPORTS, *names]
    done = subprocess.run(command, cwd=ROOT, env=told, capture_output=True, text=True, check=True)
    assert not [line for line in done.stdout.splitlines() if line.startswith("benchmarks/")]


def commands(text):
    """(script, options) of each command in the text that runs a script of ours."""
    code = [*re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))]
    code += [*re.findall(r"^ {4}(.*)$", text, flags=re.M)]
    code += re.findall(r"^```\w*\n(.*?)^```$", text, flags=re.M | re.S)
    for each in code:
        for script, rest in re.findall(r"(benchmarks/[\w/]+\.py)([^`|]*)", " ".join(each.split())):
            yield script, re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_name_scripts_and_their_options(page):
    for script, options in commands(page.read_text(encoding="utf-8")):
        assert (ROOT / script).is_file(), script
        source = (ROOT / script).read_text(encoding="utf-8")
        assert not [option for option in options if f'"{option}"' not in source], (script, options)


def test_the_index_names_every_script_and_every_table_and_nothing_else():
    text = INDEX.read_text(encoding="utf-8")
    named = set(re.findall(r"(\w+\.py)\b", text))
    assert named == {script.name for script in SCRIPTS}
    linked = re.findall(r"\]\(([^)#]+)\)", text)
    assert not [link for link in linked if not (BENCHMARKS / link).exists()]
    tables = {Path(link).name for link in linked if link.startswith("results/")}
    assert tables == {table.name for table in (BENCHMARKS / "results").glob("*.csv")}
    assert [line for line in text.splitlines() if line.count("|") not in (0, 4)] == []


def test_paths_of_scripts_in_code_and_docstrings_lead_to_them():
    texts = {*ROOT.glob("skpref/**/*.py"), *ROOT.glob("tests/**/*.py"), *BENCHMARKS.rglob("*.py")}
    for path in texts - {Path(__file__)}:
        for script in re.findall(r"benchmarks/[a-z_/]+\.py", path.read_text(encoding="utf-8")):
            assert (ROOT / script).is_file(), (path, script)


def test_commands_are_found_in_every_kind_of_code():
    text = "`python\nbenchmarks/a/b.py --one 1`\n\n    python benchmarks/c.py [--two]\n"
    found = [("benchmarks/a/b.py", ["--one"]), ("benchmarks/c.py", ["--two"])]
    assert list(commands(text)) == found
    assert list(commands("```sh\nx benchmarks/d.py --e\n```\n")) == [("benchmarks/d.py", ["--e"])]
