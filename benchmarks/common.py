"""What the benchmark scripts share: problems, versions, tables, and tables that are resumed."""

import csv
import hashlib
import json
import os
import platform
import sys
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(os.environ.get("SKPREF_RESULTS", ROOT / "benchmarks" / "results"))
HART6_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HART6_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HART6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def few(usual, least):
    """A number of a script that has no option for it: the least where SKPREF_SMALLEST is set.

    Tests run every script in that way.
    """
    return least if "SKPREF_SMALLEST" in os.environ else usual


def data_folder():
    """Folder of data sets that are not bundled: SKPREF_DATA or ../shared/data."""
    return Path(os.environ.get("SKPREF_DATA", ROOT.parent / "shared" / "data"))


@cache
def note(line):
    """Print a line, if it was not printed before."""
    print(line, flush=True)


def unless_missing(name, work, *arguments, **options):
    """What some work returns; None, and a note, where the files of its data set are missing."""
    try:
        return work(*arguments, **options)
    except OSError as error:
        note(f"left out {name}: {error}")
        return None


def leave(line):
    """End a script in good order where what it needs is missing; the line says so."""
    print(line)
    sys.exit(0)


def needs(*packages):
    """Leave, unless these packages are installed."""
    absent = [each for each in packages if find_spec(each) is None]
    if absent:
        script = Path(sys.argv[0]).name
        leave(f"{script} needs {', '.join(absent)}: run it by a Python that has what it compares.")


def problems_file():
    """Published problem file: SKPREF_PEERS or ../shared/peers/problems.npz, if it is there."""
    default = ROOT.parent / "shared" / "peers" / "problems.npz"
    path = Path(os.environ.get("SKPREF_PEERS", default))
    return path if path.is_file() else None


def hartmann6(X):
    """Hartmann-6, to be maximised, on the unit cube."""
    inner = np.einsum("ij,nij->ni", HART6_A, (X[:, None, :] - HART6_P) ** 2)
    return np.exp(-inner) @ HART6_ALPHA


def load_problem(name, noise_variance, n_duels, path=None):
    """Winners, losers and noise-free held-out duels of ``gp4`` or ``hart6``.

    From the published file where it is present, else the same kind of problem from a seed.

    Returns
    -------
    dict with W, L (n_duels, d), test_a, test_b (1000, d), test_y (1000,), source
    """
    path = path or problems_file()
    if path is not None:
        data = np.load(path)
        key = f"{name}_{noise_variance:g}" if noise_variance >= 1e-3 else f"{name}_0.0001"
        return {
            "W": data[f"{key}_W"][:n_duels],
            "L": data[f"{key}_L"][:n_duels],
            "test_a": data[f"{name}_test_a"],
            "test_b": data[f"{name}_test_b"],
            "test_y": data[f"{name}_test_y"],
            "source": "published",
        }
    return _generate(name, noise_variance, n_duels)


def _generate(name, noise_variance, n_duels):
    rng = np.random.default_rng(0)
    d = 4 if name == "gp4" else 6
    X = rng.random((2 * n_duels + 2000, d))
    if name == "gp4":
        frequencies = rng.standard_normal((4000, d)) / 0.5
        phases = rng.uniform(0, 2 * np.pi, 4000)
        f = np.cos(X @ frequencies.T + phases) @ rng.standard_normal(4000) * np.sqrt(2 / 4000)
    else:
        f = hartmann6(X)
        f = (f - f.mean()) / f.std()
    train, test = X[: 2 * n_duels], X[2 * n_duels :]
    noisy = f[: 2 * n_duels] + np.sqrt(noise_variance) * rng.standard_normal(2 * n_duels)
    first = noisy[:n_duels] > noisy[n_duels:]
    a, b = train[:n_duels], train[n_duels:]
    return {
        "W": np.where(first[:, None], a, b),
        "L": np.where(first[:, None], b, a),
        "test_a": test[:1000],
        "test_b": test[1000:],
        "test_y": (f[2 * n_duels :][:1000] > f[2 * n_duels :][1000:]).astype(int),
        "source": "generated",
    }


def sources():
    """Digest of the package's modules: units of different code are told apart."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "skpref").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def versions(*packages):
    """Versions that a table should carry."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in ("skpref", "numpy", "scipy", "scikit-learn", *packages):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "source"
    return found


def report(rows, path, *, quiet=False, **extra):
    """Print rows (dicts) as a table and write them as CSV, versions in a JSON beside it.

    Without rows nothing is written.
    """
    if not rows:
        print("no rows")
        return
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_show(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(columns)]
    for line in () if quiet else [columns, *cells]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, columns)
        writer.writeheader()
        writer.writerows(rows)
    about = {"versions": versions(), **extra}
    path.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n")
    if not quiet:
        print(f"written: {path}")


class Table:
    """Rows of finished units of work in a CSV: a second run does what is missing.

    Parameters
    ----------
    path : Path
    keys : tuple of str
        Columns that name a unit.
    """

    def __init__(self, path, keys):
        self.path, self.keys = Path(path), keys

    def rows(self):
        """All rows, numbers as floats."""
        if not self.path.is_file():
            return []
        with self.path.open(newline="") as handle:
            return [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(handle)]

    def missing(self, units):
        """Units of which no row is stored."""
        stored = {tuple(str(_number(str(row[k]))) for k in self.keys) for row in self.rows()}
        return [u for u in units if tuple(str(_number(str(part))) for part in u) not in stored]

    def add(self, rows):
        """Append the rows of one unit at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.is_file()
        with self.path.open("a", newline="") as handle:
            writer = csv.DictWriter(handle, list(rows[0]))
            if new:
                writer.writeheader()
            writer.writerows([{k: _short(v) for k, v in row.items()} for row in rows])


def _show(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def _short(value):
    return f"{value:.5g}" if isinstance(value, float | np.floating) else value
