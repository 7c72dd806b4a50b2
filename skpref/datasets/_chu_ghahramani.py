"""Regression sets whose targets Chu and Ghahramani turned into preferences."""

import io
from os import PathLike
from typing import NamedTuple

import numpy as np
from scipy.io import arff
from sklearn.utils import Bunch

from skpref._utils import check_choice
from skpref.datasets._files import (
    check_attempts,
    data_folder,
    find_file,
    read_text,
    read_verified_file,
)


class _Set(NamedTuple):
    openml: str  # name of version 1 at OpenML
    n_items: int
    n_columns: int  # before nominal columns are spread
    about: str
    sha256: str  # of the collection's file, with line feeds as line ends


_SETS = {
    "abalone": _Set(
        "abalone",
        4177,
        8,
        "age of abalones, in rings, from their measures",
        "9891a44674c522a70c821d497994140acc2530912f410315270e607adf4e3125",
    ),
    "housing": _Set(
        "boston",
        506,
        13,
        "median value of houses in Boston, in 1000 dollars. scikit-learn has withdrawn this set "
        "on ethical grounds: column B assumes that segregation raises prices. Use it only to "
        "compare with published results",
        "349a9986972ebc1d7893d98a2e17afd9dc3f6b39c7ce2e02e32630dce959e846",
    ),
    "machine.cpu": _Set(
        "machine_cpu",
        209,
        6,
        "relative performance of computers",
        "19789e9db60f6228edfe46c5c8e03bbf1b4c3c6e65ee581ccf198003a38c5b03",
    ),
    "pyrim": _Set(
        "pyrim",
        74,
        27,
        "activity of pyrimidines; some columns are constant",
        "2715efe370ad5d002d988eba25b8b38c2a05fb8352cd2ce134b6d5bf28938efd",
    ),
    "triazines": _Set(
        "triazines",
        186,
        60,
        "activity of triazines; some columns are constant",
        "8050a05fae6d8c96f926c4ec71aacb4f36e997a0aed29dbb07af82010d93a80c",
    ),
}

_REMEDY = (
    "Take the file of L. Torgo's collection (a copy: github.com/renatopp/arff-datasets, folder "
    "regression), or remove it to fetch the set from OpenML."
)


def _encode_attribute(name, values, levels):
    """Return names and columns of an attribute: numbers as they are, other levels one-hot.

    ``values`` are numbers, or indices into ``levels`` if there are any.
    """
    values = np.asarray(values, dtype=np.float64)
    if levels is None:
        return [name], values[:, None]
    try:
        return [name], np.array(levels, dtype=np.float64)[values.astype(np.intp), None]
    except ValueError:  # levels such as M, F, I
        one_hot = np.equal.outer(values, np.arange(len(levels))).astype(np.float64)
        return [f"{name}={level}" for level in levels], one_hot


def _read_arff(path, sha256):
    """Return attributes (name, values, levels) and target of an ARFF file."""
    text = read_verified_file(path, sha256, _REMEDY)
    records, meta = arff.loadarff(io.StringIO(text))
    *names, target = meta.names()
    attributes = []
    for name in names:
        kind, levels = meta[name]
        values = records[name]
        if kind == "nominal":
            values = [levels.index(value.decode()) for value in values]
        attributes.append((name, values, levels))
    return attributes, records[target]


def _fetch_openml(name, data_home, n_retries, delay):
    """Return attributes and target, downloaded from OpenML; OSError where that fails."""
    from sklearn.datasets import fetch_openml

    try:
        data = fetch_openml(
            _SETS[name].openml,
            version=1,
            data_home=data_home,
            as_frame=False,
            parser="liac-arff",
            n_retries=n_retries,
            delay=delay,
        )
    except Exception as error:  # of many kinds, from what unpacks and reads the answer
        raise OSError(
            f"The set {name!r} could not be fetched from OpenML: {error!r}. Try again with a "
            f"connection, or pass as data_home= a folder that holds {name}.arff."
        ) from error
    levels = data.categories or {}
    attributes = [
        (column, values, levels.get(column))
        for column, values in zip(data.feature_names, np.asarray(data.data).T, strict=True)
    ]
    return attributes, data.target


def fetch_chu_ghahramani(
    name: str,
    *,
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch:
    """Fetch a regression set of Chu and Ghahramani (2005) as items with ratings.

    Read from ``<name>.arff`` of Torgo's collection in ``data_home`` if it is there, else fetched
    from OpenML by scikit-learn, which verifies OpenML's checksum and keeps its own cache.

    Parameters
    ----------
    name : {"machine.cpu", "pyrim", "triazines", "housing", "abalone"}
    data_home : str, path-like or None, default=None
        Folder that holds ``<name>.arff`` or a folder ``chu_ghahramani`` with it, and in which
        scikit-learn caches what it fetches. None: scikit-learn's data home and the folder
        ``skpref`` in it.
    download_if_missing : bool, default=True
        If False, a missing file is an error.
    n_retries : int, default=3
        Attempts to download.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    data : Bunch
        item_table : ndarray of shape (n_items, n_features)
            Numbers as they come, other attributes one-hot.
        target : ndarray of shape (n_items,)
            Ratings: ``fit(data.item_table, data.target)`` makes the duels.
        feature_names : list of str
        DESCR : str
            Description, origin, citation.

    Raises
    ------
    ValueError
        If ``name`` is unknown, ``n_retries`` or ``delay`` too small, or what OpenML sent is not
        the expected set.
    TypeError
        If ``n_retries`` is no integer or ``delay`` no number.
    OSError
        If the set is neither in ``data_home`` nor to be had from OpenML, or the file there has not
        the checksum of the collection's.

    References
    ----------
    W. Chu and Z. Ghahramani, "Preference learning with Gaussian processes", ICML 2005.

    Examples
    --------
    >>> from skpref.datasets import fetch_chu_ghahramani
    >>> data = fetch_chu_ghahramani("pyrim")  # doctest: +SKIP
    >>> data.item_table.shape, data.target.shape  # doctest: +SKIP
    ((74, 27), (74,))
    """
    check_choice("name", name, sorted(_SETS))
    check_attempts(n_retries, delay)
    facts = _SETS[name]
    home = data_folder(data_home)
    path = find_file(home, ("chu_ghahramani",), f"{name}.arff")
    if path is not None:
        origin = str(path)
        attributes, target = _read_arff(path, facts.sha256)
    elif download_if_missing:
        origin = f"OpenML's {facts.openml}"
        attributes, target = _fetch_openml(name, data_home, n_retries, delay)
    else:
        raise FileNotFoundError(
            f"No file {name}.arff in {home} or {home / 'chu_ghahramani'}, and "
            "download_if_missing is False. Put it there or allow the download from OpenML."
        )
    try:
        target = np.array(target, dtype=np.float64)
        names, columns = zip(
            *(_encode_attribute(*attribute) for attribute in attributes), strict=True
        )
    except ValueError as error:
        raise ValueError(f"{origin} has text where numbers are expected: {error}.") from error
    if (len(target), len(attributes)) != (facts.n_items, facts.n_columns):
        raise ValueError(
            f"{origin} has {len(target)} items with {len(attributes)} attributes, expected "
            f"{facts.n_items} with {facts.n_columns}: it is damaged or another set."
        )
    return Bunch(
        item_table=np.column_stack(columns),
        target=target,
        feature_names=[feature for part in names for feature in part],
        DESCR=read_text("about-chu-ghahramani.txt").format(name=name, **facts._asdict()),
    )
