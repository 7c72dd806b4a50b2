"""The shape of the package: imports point downwards, files stay short, errors are for users."""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "skpref"
MODULES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
MOST_LINES = 420

# Lowest first. A module may import those of lower layers and, within its own subpackage, any
# that do not lead back to it.
LAYERS = (
    (
        "_blocks",
        "_containers",
        "_linalg",
        "_metadata",
        "_orthant",
        "_outcomes",
        "_parameters",
        "_sets",
        "_threads",
        "_warnings",
    ),
    (
        "_answers",
        "_concordance",
        "_duel_frame",
        "_ids",
        "_items",
        "_lists",
        "_long",
        "_marginals",
        "_mixture",
        "_random",
        "_ratios",
        "_respondents",
        "_utilities",
        "_weights",
        "_winners",
        "kernels",
        "likelihoods",
        "samplers",
    ),
    (
        "_asked",
        "_care",
        "_cavities",
        "_inducing",
        "_joint",
        "_lookup",
        "_orientation",
        "_pairing",
        "_parsing",
        "_paths",
        "_ranks",
        "_rows",
        "_set_probabilities",
    ),
    (
        "_builders",
        "_choices",
        "_columns",
        "_components",
        "_counting",
        "_features",
        "_joint_noise",
        "_judges",
        "_scores",
        "_tables",
        "model_selection",
        "preprocessing",
    ),
    (
        "_observations",
        "_pairs",
        "_scorers",
    ),
    (
        "_default_kernel",
        "_part",
        "_posterior",
        "_sight",
        "duels",
    ),
    (
        "_conditioning",
        "_importance",
        "_inspected",
        "_priors",
        "_validation",
        "datasets",
        "metrics",
    ),
    (
        "_queries",
        "active",
        "inference",
        "inspection",
    ),
    (
        "_model",
        "_predictions",
        "_warm",
        "plotting",
    ),
    (
        "_forecast",
        "_search",
    ),
    (
        "_fitting",
        "_progress",
        "_settings",
    ),
    (
        "_level",
        "_streaming",
        "optimize",
    ),
    (
        "_judging",
        "_kept",
    ),
    ("_regressor",),
    ("collaborative",),
    ("__init__",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def dotted(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def unit(module):
    """Top-level module or subpackage of a dotted name."""
    return module.split(".")[1] if "." in module else "__init__"


NAMES = {dotted(path) for path in MODULES}


def imports(path):
    """Modules of the package that a file imports, wherever in the file, submodules resolved."""
    here = dotted(path)
    package = here if path.name == "__init__.py" else here.rpartition(".")[0]
    found = set()
    for node in ast.walk(TREES[path]):
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


GRAPH = {dotted(path): imports(path) for path in MODULES}


def test_every_module_has_a_layer():
    unknown = {unit(name) for name in GRAPH} - set(RANK)
    assert not unknown, f"add {sorted(unknown)} to LAYERS"


def test_the_graph_was_read():
    assert {"skpref.kernels", "skpref.likelihoods"} <= GRAPH["skpref._posterior"]
    assert "skpref.kernels._tree" in GRAPH["skpref.kernels._gradients"]


def test_imports_point_downwards():
    above = [
        f"{name} imports {other}, which is not below it"
        for name, others in sorted(GRAPH.items())
        for other in sorted(others)
        if unit(other) != unit(name) and RANK[unit(other)] >= RANK[unit(name)]
    ]
    assert not above, "\n".join(above)


def test_there_are_no_cycles():
    done, path = set(), []

    def visit(name):
        assert name not in path, " → ".join([*path[path.index(name) :], name])
        if name in done:
            return
        path.append(name)
        for other in sorted(GRAPH[name]):
            visit(other)
        path.pop()
        done.add(name)

    for name in sorted(GRAPH):
        visit(name)


def test_files_are_short():
    for path in [*MODULES, *sorted((ROOT / "tests").glob("*.py"))]:
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        assert n_lines <= MOST_LINES, f"{path} has {n_lines} lines: split it by what it is about"


def test_users_get_errors_not_asserts_prints_or_exits():
    banned = {"print", "exit", "quit", "breakpoint"}
    for path, tree in TREES.items():
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
    assert list(factorisations(ast.parse((PACKAGE / "_linalg.py").read_text(encoding="utf-8"))))


def test_matrices_are_factorised_in_one_place():
    allowed = ("_linalg", "_utilities", "samplers")
    for path, tree in TREES.items():
        found = set(factorisations(tree))
        assert not found or unit(dotted(path)) in allowed, f"{path}: {found}"


def test_what_is_imported_is_what_is_required():
    with open(ROOT / "pyproject.toml", "rb") as stream:
        required = tomllib.load(stream)["project"]["dependencies"]
    packages = {re.match(r"[\w-]+", line)[0] for line in required}
    assert packages == {"numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"}
    allowed = packages - {"scikit-learn"} | {"sklearn", "skpref"}
    optional = {"pandas", "polars", "matplotlib", "arviz", "tqdm"}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                roots = {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                roots = {node.module.split(".")[0]}
            else:
                continue
            extra = roots - allowed - set(sys.stdlib_module_names)
            on_use = extra and node not in tree.body and extra <= optional
            assert not extra or on_use, f"{path.name}:{node.lineno} imports {sorted(extra)}"
