"""How many votes the page says are needed, beside draws of the margin."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.utils import Bunch

from skpref._judging._planning import votes_needed

LEVEL = 0.9


def _undecided(margin, deviation):
    half = norm.isf(0.5 * (1.0 - LEVEL)) * np.asarray(deviation)
    return Bunch(
        first=np.array(["a"] * len(margin)),
        second=np.array(["b", "c"][: len(margin)]),
        margin=np.array(margin),
        lower=np.array(margin) - half,
        upper=np.array(margin) + half,
        level=LEVEL,
    )


@pytest.mark.parametrize("margin, deviation", [(0.3, 0.9), (0.05, 0.2), (0.4, 0.4)])
def test_votes_needed_are_quartiles_over_the_margin(margin, deviation):
    board = Bunch(names=np.array(["a", "b"]), n_components=1)
    fewest, most = votes_needed(board, _undecided([margin], [deviation]))
    drawn = np.random.default_rng(0).normal(margin, deviation, 200_000)
    z = norm.isf(0.5 * (1.0 - LEVEL))
    votes = np.pi * np.maximum((z / drawn) ** 2 - deviation**-2, 0.0)
    np.testing.assert_allclose(
        [fewest, most], np.quantile(votes, [0.25, 0.75]), rtol=0.03, atol=1.0
    )


def test_votes_needed_of_settled_places_and_of_groups_that_never_met():
    board = Bunch(names=np.array(["a", "b", "c"]), n_components=1)
    assert votes_needed(board, _undecided([], [])) == (0, 0)
    one = votes_needed(board, _undecided([0.3], [0.5]))[1]
    assert votes_needed(board, _undecided([0.3, 0.3], [0.5, 0.5]))[1] == pytest.approx(
        2 * one, abs=1
    )
    board.n_components = 2
    assert votes_needed(board, _undecided([0.3], [0.5])) is None
