"""Choices between cars: few items, many people, features of both."""

import csv
from os import PathLike

import numpy as np
from sklearn.utils import Bunch

from skpref._utils import check_number
from skpref.data import balance_orientation
from skpref.datasets._files import data_folder, find_all, read_text, read_verified_file

_HOW = (
    "The package can neither contain nor download these files, because their terms are not "
    "stated. Ask the authors (E. Abbasnejad et al., IJCAI 2013) or see "
    "github.com/Xokker/ceteris-paribus, folder src/main/resources, and pass as data_home= the "
    "folder that holds them."
)
_CHECKSUMS = {  # SHA-256 with line feeds as line ends
    "items1.csv": "36d82ef97ca8c52bf51c5fe8b3b5c0f3848ebc39f9bc162d0768c3a426db2a66",
    "prefs1.csv": "084c79bed795f25456fd41d34f7ea0b74ad2e3c848460a655b50b863cead3fd1",
    "users1.csv": "f1d37859d0979a539fea1669d6f467ab42b51fa69b857c581b05be6b7d5869f0",
    "items2.csv": "94e980de9855493e1980cd4356fd77070d7fb3555e98cb26ef7d97a4fb39b87e",
    "prefs2.csv": "602ebb67591b1d53ab6f37e8bced39a71e5beb89a8d9259138ac13bb58573094",
    "users2.csv": "9362dcf6e3de657ea828a546fb0c334d11f50536d9decc262ef77759d28ac1fb",
}
_BODIES = {1: "sedan", 2: "suv", 3: "hatchback"}


def _read_columns(path, needed):
    """Return columns of a CSV file as one float array."""
    text = read_verified_file(path, _CHECKSUMS[path.name], "Use the original file.")
    header, *rows = csv.reader(text.splitlines(), skipinitialspace=True)
    header = [name.strip() for name in header]
    table = [[row[header.index(name)] for name in needed] for row in rows]
    return np.array(table, dtype=np.float64)


def _encode_cars(raw):
    """Return names and values of the features of cars: body, transmission, engine, fuel, layout."""
    bodies = {code: name for code, name in _BODIES.items() if np.any(raw[:, 0] == code)}
    columns = {name: raw[:, 0] == code for code, name in bodies.items()}
    columns |= {"automatic": raw[:, 1] == 2, "engine_litres": raw[:, 2], "hybrid": raw[:, 3] == 1}
    if raw.shape[1] == 5:
        columns["all_wheel_drive"] = raw[:, 4] == 1
    return list(columns), np.column_stack(list(columns.values())).astype(np.float64)


def fetch_cars(*, experiment: int = 1, data_home: str | PathLike | None = None) -> Bunch:
    """Read which of two cars 60 people prefer, from files that you have.

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
        If ``experiment`` is neither 1 nor 2.
    TypeError
        If it is no integer.
    OSError
        If a file is missing, or has not the checksum of the original; the message says which, and
        where it was looked for.

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
    check_number("experiment", experiment, low=1, high=2, integer=True)
    names = [f"{kind}{experiment}.csv" for kind in ("items", "prefs", "users")]
    sub = f"exp{experiment}-prefs"
    paths = find_all(data_folder(data_home), ("cars", sub, f"cars/{sub}"), names, _HOW)
    item_path, duel_path, user_path = paths.values()

    attributes = ["BodyType", "Transmission", "Engin Capacity", "Fuel Consumed"]
    if experiment == 2:
        attributes.append("Engine/Transmission Layout")
    # In both files the identifiers are 1, 2, ... in order.
    feature_names, items = _encode_cars(_read_columns(item_path, attributes))
    users = _read_columns(user_path, ["Education", "Age", "Gender", "Region", "# Correct Controls"])

    rows = _read_columns(duel_path, ["User ID", "Item1 ID", "Item2 ID", "Is Control"])
    rows = rows[rows[:, 3] == 0].astype(np.int64) - 1
    X, y = balance_orientation(rows[:, 1:3])  # the first item is the preferred one
    return Bunch(
        X=X,
        y=y,
        user=rows[:, 0],
        item_table=items,
        feature_names=feature_names,
        users=users[:, :4],
        user_feature_names=["education", "age", "gender", "region"],
        correct_controls=users[:, 4].astype(np.int64),
        DESCR=read_text("about-cars.txt"),
    )
