"""Sets of two classes for ``active.py``, as they come; features are standardised there.

Eight are those of Table 1 of the supplement of Houlsby et al. (2012), which names the sets and
neither their features nor, of sets of more than two classes, which two it took. Here ``crabs`` are
told by sex from five measures, ``wine`` is class 1 against the others, ``vehicle`` the two cars
against bus and van, and rows of ``cancer`` with gaps are left out. Those that scikit-learn does not
ship are read from the folder ``uci_binary`` of `data_folder`.
"""

import csv

import numpy as np
from common import data_folder
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine


def _two(load, one, other):
    data, target = load(return_X_y=True)
    rows = np.isin(target, (one, other))
    return data[rows], target[rows] == one


def _wine():
    data, target = load_wine(return_X_y=True)
    return data, target == 0


def _lines(name):
    """Lines of data of a file of `data_folder`, split at commas."""
    path = data_folder() / "uci_binary" / name
    text = path.read_text().splitlines()
    if name.endswith(".arff"):
        begins = next(k for k, line in enumerate(text) if line.strip().lower() == "@data")
        text = text[begins + 1 :]
    rows = csv.reader(line for line in text if line.strip() and not line.startswith("%"))
    return [row for row in rows if "?" not in row]


def _labelled(name, ones, others=None):
    """Features and whether the class, the last column, is one of some."""
    rows = _lines(name)
    if others is not None:
        rows = [row for row in rows if row[-1] in ones or row[-1] in others]
    label = np.array([row[-1] in ones for row in rows])
    return np.array([row[:-1] for row in rows], dtype=float), label


def _crabs(column=1, value="Male"):
    rows = _lines("prnn_crabs.arff")
    label = np.array([row[column] == value for row in rows])
    return np.array([row[3:] for row in rows], dtype=float), label


def _australian():
    table = np.loadtxt(data_folder() / "uci_binary" / "australian.dat", skiprows=1)
    return table[:, :-1], table[:, -1] == 1


# The first eight are those of the supplement.
SETS = {
    "austra": _australian,
    "cancer": lambda: _labelled("breast.w.arff", ("malignant",)),
    "crabs": _crabs,
    "letter D v. P": lambda: _labelled("letter.arff", ("D",), ("P",)),
    "letter E v. F": lambda: _labelled("letter.arff", ("E",), ("F",)),
    "vehicle": lambda: _labelled("vehicle.arff", ("saab", "opel")),
    "wine": _wine,
    "wdbc": lambda: _two(load_breast_cancer, 0, 1),
    "crabs, species": lambda: _crabs(0, "blue_form"),
    "iris": lambda: _two(load_iris, 1, 2),
    "digits 3 v. 5": lambda: _two(load_digits, 3, 5),
    "digits 8 v. 9": lambda: _two(load_digits, 8, 9),
}
