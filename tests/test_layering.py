"""The shape of the package: rooms, doors, imports that point downwards, errors for users."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "skpref"
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def trees():
    """Parsed on use alone: a second or two of every process that collects tests."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


# Rooms and single files, lowest first: each may import those above it in this list.
ROOMS = (
    "_utils",
    "data",
    "kernels",
    "likelihoods",
    "samplers",
    "gp",
    "inference",
    "fitting",
    "metrics",
    "model_selection",
    "preprocessing",
    "datasets",
    "duels",
    "_estimator",
    "collaborative",
    "io",
    "inspection",
    "active",
    "optimize",
    "plotting",
    "integrations",
    "widgets",
    "__init__",
    "_judging",
    "_command",
    "__main__",
)
RANK = {name: rank for rank, name in enumerate(ROOMS)}
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def dotted(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module):
    """Folder or single file of a dotted name."""
    return module.split(".")[1] if "." in module else "__init__"


NAMES = {dotted(path) for path in MODULES}


def statements(tree):
    """All statements in a tree; no expression, in which no import stands, is entered."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from statements(node)


def imports(path):
    """Modules of the package that a file imports, wherever in the file, submodules resolved."""
    here = dotted(path)
    package = here if path.name == "__init__.py" else here.rpartition(".")[0]
    found = set()
    for node in statements(trees()[path]):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            for name in node.names:
                inner = f"{base}.{name.name}"
                found.add(inner if inner in NAMES else base)
    return {name for name in found if name in NAMES and name != here}


@cache
def graph():
    return {dotted(path): imports(path) for path in MODULES}


def test_the_rooms_are_those_of_the_list():
    assert {room(name) for name in graph()} == set(ROOMS)


def test_the_graph_was_read():
    assert {"skpref.gp", "skpref.likelihoods"} <= graph()["skpref.inference._base"]
    assert "skpref.kernels._views" in graph()["skpref.kernels._gradients"]


def test_imports_point_downwards():
    above = [
        f"{name} imports {other}, which is not below it"
        for name, others in sorted(graph().items())
        for other in sorted(others)
        if room(other) != room(name) and RANK[room(other)] >= RANK[room(name)]
    ]
    assert not above, "\n".join(above)


def test_a_room_is_used_through_its_door():
    inside = [
        f"{name} imports {other}: import from skpref.{room(other)}, and export it there"
        for name, others in sorted(graph().items())
        for other in sorted(others)
        if room(other) != room(name)
        and other.split(".")[-1].startswith("_")
        and other.count(".") > 1
    ]
    assert not inside, "\n".join(inside)


def test_a_door_says_what_its_room_is_for():
    for name in FOLDERS:
        first = ast.get_docstring(trees()[PACKAGE / name / "__init__.py"]) or ""
        assert 2 <= len(first.splitlines()) <= 8, f"skpref/{name}/__init__.py"


def test_tests_follow_the_rooms():
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert folders == set(FOLDERS)


def test_there_are_no_cycles():
    done, path = set(), []

    def visit(name):
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name in done:
            return
        path.append(name)
        for other in sorted(graph()[name]):
            visit(other)
        path.pop()
        done.add(name)

    for name in sorted(graph()):
        visit(name)


def test_users_get_errors_not_asserts_prints_or_exits():
    banned = {"print", "exit", "quit", "breakpoint"}
    for path, tree in trees().items():
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Assert), f"{path}:{node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in banned, f"{path}:{node.lineno}"


def test_the_noise_is_doubled_in_one_place():
    for path in MODULES:
        doubled = re.findall(
            r"2(?:\.0)? \* (?:\w+\.)*noise_variance_?\b", path.read_text(encoding="utf-8")
        )
        assert len(doubled) == (1 if path.name == "_probit.py" else 0), path


FACTORISATIONS = {
    *("cho_factor", "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lapack", "ldl", "lu"),
    *("lu_factor", "pinv", "qr", "schur", "solve", "sqrtm", "svd"),
}


def factorisations(tree):
    """Factorisations of numpy and scipy that a module imports or calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and "linalg" in (node.module or "").split("."):
            yield from {name.name for name in node.names} & FACTORISATIONS
            if "lapack" in node.module:
                yield node.module
        elif isinstance(node, ast.Attribute) and node.attr in FACTORISATIONS:
            owner = node.value
            if (owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")) in (
                "linalg",
                "lapack",
            ):
                yield node.attr


def test_factorisations_are_seen():
    for line in (
        "from scipy.linalg import eigh",
        "from scipy.linalg.lapack import dpotrf",
        "np.linalg.cholesky(K)",
        "from scipy import linalg; linalg.lapack.dpotrf(K)",
    ):
        assert list(factorisations(ast.parse(line))), line
    assert list(factorisations(trees()[PACKAGE / "_utils" / "_linalg.py"]))


def test_matrices_are_factorised_in_one_place():
    allowed = (PACKAGE / "_utils" / "_linalg.py", PACKAGE / "gp" / "_utilities.py")
    for path, tree in trees().items():
        found = set(factorisations(tree))
        assert not found or path in allowed or path.parent.name == "samplers", f"{path}: {found}"


def test_what_is_imported_is_what_is_required():
    with open(ROOT / "pyproject.toml", "rb") as stream:
        required = tomllib.load(stream)["project"]["dependencies"]
    packages = {re.match(r"[\w-]+", line)[0] for line in required}
    assert packages == {"numpy", "scipy", "scikit-learn", "joblib", "narwhals", "threadpoolctl"}
    allowed = packages - {"scikit-learn"} | {"sklearn", "skpref"}
    optional = {"pandas", "polars", "pyarrow", "matplotlib", "arviz", "tqdm", "optuna", "pooch"} | {
        "anywidget",
        "traitlets",
        "starlette",
        "uvicorn",
        "markdown_it",
        "xarray",  # ArviZ needs it
    }
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                roots = {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                roots = {node.module.split(".")[0]}
            else:
                continue
            extra = roots - allowed - set(sys.stdlib_module_names)
            # Imported by those alone who need it.
            bridge = path.parent.name in ("integrations", "_judging")
            on_use = extra and (bridge or node not in tree.body) and extra <= optional
            assert not extra or on_use, f"{path.name}:{node.lineno} imports {sorted(extra)}"
