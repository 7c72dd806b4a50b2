"""Boards after later answers: of everybody, not of those alone whom the last answers are about."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.duels import from_columns
from skpref.inference import EP, SVI
from skpref.inspection import leaderboard
from skpref.kernels import Identity, OnColumns

NAMES = ["ann", "bob", "cid", "dan", "eva", "fay"]
KERNEL = OnColumns(Identity(), [0]) + ConstantKernel(0.1, "fixed") * OnColumns(
    DotProduct(0.0, "fixed"), [1]
)


def contests(n=116):
    """Of six people, each with a number that changes; ann never meets those of the last piece."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(3, size=n), 3 + rng.integers(3, size=n)
    first[-4:], second[-4:] = 1, [4, 5, 4, 5]
    return {
        "a": [NAMES[i] for i in first],
        "b": [NAMES[i] for i in second],
        "x": rng.normal(size=n),
        "z": rng.normal(size=n),
        "won": rng.integers(2, size=n),
        "day": np.arange(n, dtype=float),
    }


@pytest.mark.parametrize("way", ["stream", "time", "few through time"])
def test_a_board_has_everybody_whatever_the_last_answers_are_about(way, request):
    pandas = pytest.importorskip("pandas")
    if way == "time":
        request.getfixturevalue("chains")
    time = {} if way == "stream" else {"time": "day"}
    told = from_columns(pandas.DataFrame(contests()), ["x"], ["z"], "won", ids=("a", "b"), **time)
    X, y = told[:2]
    options = {"optimizer": None, "noise_variance": 0.5}
    if time:
        options |= {"drift": "matern12", "inference": EP(items="independent")}
    else:
        options["inference"] = SVI(20)
    model = PairwisePreferenceRegressor(KERNEL, **options)
    for rows in (slice(0, 60), slice(60, 112), slice(112, 116)):
        given = {"time": told[-1][rows]} if time else {}
        step = model.fit if rows.start == 0 and time else model.partial_fit
        step(X[rows], y[rows], **given)
    board = leaderboard(model)
    assert sorted(board.names) == NAMES
    asked = pandas.DataFrame({"id": NAMES, "x": 0.0})
    given = leaderboard(model, asked, at={1: 0.0})
    same = leaderboard(model, at={1: 0.0})
    order = [same.names.tolist().index(name) for name in given.names]
    assert_allclose(given.utility, same.utility[order], atol=1e-9)
    # A fit of all that follows knows these answers alone.
    model.fit(X[112:], y[112:], **({"time": told[-1][112:]} if time else {}))
    assert_array_equal(np.sort(leaderboard(model).names), ["bob", "eva", "fay"])
