"""What choices and rankings state, as ranks."""

from itertools import permutations

import numpy as np
import pytest

from skpref.data import chosen_of, read_ranks
from skpref.optimize._answers import ranks_of


def stated(ranks):
    """Pairs of positions of which the first is said to be better."""
    n = range(len(ranks))
    return {(i, j) for i in n for j in n if 0 < ranks[i] < ranks[j]}


def test_choices_of_the_best_and_the_worst():
    for best in range(4):
        others = [i for i in range(4) if i != best]
        assert stated(ranks_of(4, chosen=best)) == {(best, i) for i in others}
        assert stated(ranks_of(4, worst=best)) == {(i, best) for i in others}
        for worst in others:
            expected = {(best, i) for i in others} | {(i, worst) for i in range(4) if i != worst}
            assert stated(ranks_of(4, chosen=best, worst=worst)) == expected


@pytest.mark.parametrize("length", [2, 3, 4])
def test_rankings_of_all_items_or_of_some(length):
    for order in permutations(range(4), length):
        expected = {(a, b) for k, a in enumerate(order) for b in order[k + 1 :]}
        assert stated(ranks_of(4, ranking=order)) == expected


def test_places_and_ranks_tell_the_same_choice():
    rng = np.random.default_rng(0)
    places = rng.integers(3, size=20)
    ranks = [ranks_of(3, chosen=int(place)) for place in places]
    np.testing.assert_array_equal(chosen_of(ranks, (20, 3)), places)
    np.testing.assert_array_equal(chosen_of(places.astype(float), (20, 3)), places)
    np.testing.assert_array_equal(read_ranks(ranks, (20, 3)), ranks)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([0, 3], r"position 3 of a set of 3"),
        ([0, np.nan], r"integers in \[0, 2\].*got nan"),
        ([True, False], r"integers in \[0, 2\]"),
        (["a", "b"], r"integers in \[0, 2\]"),
        ([[1, 2, 2], [1, 1, 2]], "Row 1 of y has 2 items of rank 1"),
        ([[1, 2, -1], [1, 2, 2]], "whole numbers: 1 the best.*got -1"),
        ([[1, 2, np.inf], [1, 2, 2]], "whole numbers: 1 the best.*got inf"),
        ([[1, 2], [1, 2]], r"shape \(2, 3\), one for each item"),
    ],
)
def test_what_is_no_choice_is_refused(y, match):
    with pytest.raises(ValueError, match=match):
        chosen_of(y, (2, 3))
