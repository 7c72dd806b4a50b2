"""Choices between cars: few items, many people, features of both."""

import csv

import numpy as np
from sklearn.utils import Bunch

from skpref.datasets._fetch import data_folder, find_all
from skpref.duels import alternate

_HOW = (
    "The package can neither contain nor download these files, because their terms are not "
    "stated. Ask the authors (E. Abbasnejad et al., IJCAI 2013) or see "
    "github.com/Xokker/ceteris-paribus, folder src/main/resources, and pass as data_home= the "
    "folder that holds them."
)
_BODIES = {1: "sedan", 2: "suv", 3: "hatchback"}

_DESCR = """\
Car preferences (E. Abbasnejad, S. Sanner, E. Bonilla, P. Poupart)
==================================================================

60 people on Amazon Mechanical Turk said which of two cars they prefer. Experiment 1: 10 cars, 2,675
duels. Experiment 2: 20 cars, 2,206 duels. Cars have a body, a transmission, an engine capacity in
litres, a fuel (hybrid or not), in experiment 2 also a layout. Questions that repeat an earlier one
as a control are left out.

The files give codes of education, age, gender and region without their meaning.
Experiment 2 asks 8 people-and-pairs twice; 3 of these answers contradict each other.

Terms: not stated. The package holds no copy.
Citation: E. Abbasnejad, S. Sanner, E. V. Bonilla, P. Poupart, Learning Community-Based Preferences
via Dirichlet Process Mixtures of Gaussian Processes, IJCAI 2013.
"""


def _columns(path, needed):
    """The needed columns of a CSV file as one float array; header names are padded."""
    with open(path, encoding="utf-8-sig", newline="") as stream:
        header, *rows = [row for row in csv.reader(stream, skipinitialspace=True) if row] or [[]]
    header = [name.strip() for name in header]
    missing = [name for name in needed if name not in header]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}; its columns are {header}. "
            "Use the original file."
        )
    try:
        table = np.array([[row[header.index(name)] for name in needed] for row in rows])
        return table.astype(np.float64).reshape(-1, len(needed))
    except (IndexError, ValueError) as error:
        raise ValueError(f"{path} has a row that is cut off or no number: {error}.") from error


def _numbered(path, table, n_rows):
    """Rows without their identifiers, which must be 1, 2, ... n_rows."""
    if not np.array_equal(table[:, 0], np.arange(1, n_rows + 1)):
        raise ValueError(
            f"{path} must hold ids 1 to {n_rows} in order, got {len(table)} rows. "
            "Use the original file."
        )
    return table[:, 1:]


def _encoded(raw):
    """Item features from the codes of body, transmission, engine, fuel and layout."""
    bodies = {code: name for code, name in _BODIES.items() if np.any(raw[:, 0] == code)}
    columns = {name: raw[:, 0] == code for code, name in bodies.items()}
    columns |= {"automatic": raw[:, 1] == 2, "engine_litres": raw[:, 2], "hybrid": raw[:, 3] == 1}
    if raw.shape[1] == 5:
        columns["all_wheel_drive"] = raw[:, 4] == 1
    return list(columns), np.column_stack(list(columns.values())).astype(np.float64)


def fetch_cars(*, experiment=1, data_home=None):
    """Which of two cars 60 people prefer, from files that you have.

    Nothing is downloaded: the terms of the data are not stated.

    Parameters
    ----------
    experiment : {1, 2}, default=1
        1: 10 cars with 4 attributes; 2: 20 cars with 5.
    data_home : str, path-like or None, default=None
        Folder that holds ``items1.csv``, ``prefs1.csv``, ``users1.csv`` (or 2), or a folder
        ``cars``, ``exp1-prefs`` or ``cars/exp1-prefs`` with them; None: the folder ``skpref``
        in scikit-learn's data home.

    Returns
    -------
    data : Bunch
        X : ndarray of shape (n_duels, 2)
            Rows of ``item_table``: fit with ``items=data.item_table``, or make duel arrays by
            ``data.item_table[data.X]``.
        y : ndarray of shape (n_duels,)
            1 if the first car is preferred. Odd rows have the preferred car second.
        user : ndarray of shape (n_duels,)
            Row of ``users``.
        item_table : ndarray of shape (10, 5) or (20, 7)
            Body one-hot, automatic transmission, engine capacity in litres, hybrid, in
            experiment 2 also all-wheel drive.
        feature_names : list of str
        users : ndarray of shape (60, 4)
            Codes of education, age, gender, region, as they come; their meaning is not stated.
        user_feature_names : list of str
        correct_controls : ndarray of shape (60,)
            Control questions answered as before.
        DESCR : str
            Description, citation.

    Raises
    ------
    ValueError
        If ``experiment`` is neither 1 nor 2, or a file is not as expected.
    OSError
        If a file is missing; the message says where it was looked for.

    References
    ----------
    E. Abbasnejad et al., "Learning Community-Based Preferences via Dirichlet Process Mixtures
    of Gaussian Processes", IJCAI 2013.

    Examples
    --------
    >>> from skpref.datasets import fetch_cars
    >>> cars = fetch_cars(data_home="downloads/cars")  # doctest: +SKIP
    >>> cars.item_table[cars.X].shape  # doctest: +SKIP
    (2675, 2, 5)
    """
    if experiment not in (1, 2):
        raise ValueError(f"experiment={experiment!r}: choose 1 or 2.")
    n_items = 10 * experiment
    names = [f"{kind}{experiment}.csv" for kind in ("items", "prefs", "users")]
    sub = f"exp{experiment}-prefs"
    paths = find_all(data_folder(data_home), ("cars", sub, f"cars/{sub}"), names, _HOW)
    item_path, duel_path, user_path = paths.values()

    attributes = ["Item ID", "BodyType", "Transmission", "Engin Capacity", "Fuel Consumed"]
    if experiment == 2:
        attributes.append("Engine/Transmission Layout")
    raw = _numbered(item_path, _columns(item_path, attributes), n_items)
    if not (np.isin(raw[:, 0], list(_BODIES)).all() and np.isin(raw[:, [1, 3]], (1, 2)).all()):
        raise ValueError(f"{item_path} holds an unknown code. Use the original file.")
    feature_names, items = _encoded(raw)

    person = ["User ID", "Education", "Age", "Gender", "Region", "# Correct Controls"]
    users = _numbered(user_path, _columns(user_path, person), 60)

    rows = _columns(duel_path, ["User ID", "Item1 ID", "Item2 ID", "Is Control"])
    if not (
        np.array_equal(rows, rows.astype(np.int64))
        and np.all((rows[:, :3] >= 1) & (rows[:, :3] <= [60, n_items, n_items]))
    ):
        raise ValueError(
            f"{duel_path} must hold user ids 1 to 60 and item ids 1 to {n_items}. "
            "Use the original file."
        )
    rows = rows[rows[:, 3] == 0].astype(np.int64) - 1
    X, y = alternate(rows[:, 1:3])  # the first item is the preferred one
    return Bunch(
        X=X,
        y=y,
        user=rows[:, 0],
        item_table=items,
        feature_names=feature_names,
        users=users[:, :4],
        user_feature_names=["education", "age", "gender", "region"],
        correct_controls=users[:, 4].astype(np.int64),
        DESCR=_DESCR,
    )
