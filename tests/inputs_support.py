"""What the tests of bad and odd input share: small data, and a table of cases."""

import numpy as np
import pytest

from skpref import ItemTable, PairwisePreferenceRegressor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 2, 2))
Y = (X[:, 0].sum(axis=1) > X[:, 1].sum(axis=1)).astype(int)
ITEMS = RNG.standard_normal((8, 2))
RATINGS = ITEMS.sum(axis=1)
QID = np.repeat([0.0, 1.0], 4)
TABLE = RNG.standard_normal((6, 2))
PAIRS = np.array([[0, 1], [2, 3], [4, 5], [1, 2]])
WON = [1, 0, 1, 0]
NAMED = ItemTable.from_names(["ann", "bob", "cid", "dan", "eve", "fay"])


def model(**params):
    return PairwisePreferenceRegressor(**{"optimizer": None} | params)


def put(array, index, value):
    array = np.array(array, dtype=object if isinstance(value, str) else None)
    array[index] = value
    return array


def cases(*rows):
    return pytest.mark.parametrize(rows[0], [pytest.param(*row[1:], id=row[0]) for row in rows[1:]])
