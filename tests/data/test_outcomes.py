"""Labels of duels: what they say, and which are refused."""

import numpy as np
import pytest

from skpref.data import DuelScale
from skpref.data._labels import check_outcomes, read_outcomes
from skpref.duels import parse_outcomes

TIES = DuelScale(ties=True)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([1, 0, 1], [0, 1]),
        ([1, -1, 1], [-1, 1]),
        ([True, False, True], [False, True]),
        ([1.0, 0.0, 1.0], [0, 1]),
        (np.array([True, 0, 1.0], dtype=object), [0, 1]),
        (np.array([1, 0, 1], dtype=np.uint8), [0, 1]),
    ],
)
def test_labels_say_who_won(labels, classes):
    found = read_outcomes(np.asarray(labels))
    assert found.won.tolist() == [True, False, True] and found.kind is None
    assert found.classes.tolist() == classes
    assert found.classes.dtype == np.asarray(classes).dtype


@pytest.mark.parametrize("labels", [[1, 0, -1], [1.0, 0.0, -1.0], np.array([1, 0, -1], object)])
def test_with_ties_labels_are_signs(labels):
    found = read_outcomes(np.asarray(labels), TIES)
    assert found.won.tolist() == [True, False, False]
    assert found.label.tolist() == [1, 0, -1]
    assert found.classes.tolist() == [-1, 0, 1]
    assert read_outcomes(np.array([1, -1]), TIES).label.tolist() == [1, -1]


@pytest.mark.parametrize("labels", [[1, 0], [0, 0], [True, False]])
def test_with_ties_a_zero_alone_may_mean_two_things(labels):
    with pytest.raises(ValueError, match=r"'the second won', pass y with -1.*if 0 is a tie"):
        read_outcomes(np.asarray(labels), TIES)
    if not isinstance(labels[0], bool):  # those to be judged are read as the training was
        known = read_outcomes(np.asarray(labels), TIES, zero_is_tie=True)
        assert known.won.tolist() == [label == 1 for label in labels]


def test_ties_without_a_threshold_are_named():
    with pytest.raises(ValueError, match="If 0 is a tie, give tie_threshold"):
        read_outcomes(np.array([1, 0, -1]))
    with pytest.raises(ValueError, match=r"must be in \{-1, 0, 1\} with tie_threshold.*got.*2"):
        read_outcomes(np.array([1, 2, -1]), TIES)


def test_a_single_label_reads_as_zero_and_one_where_it_may():
    assert read_outcomes(np.ones(3)).classes.tolist() == [0, 1]
    assert read_outcomes(np.zeros(3)).classes.tolist() == [0, 1]
    assert read_outcomes(-np.ones(3)).classes.tolist() == [-1, 1]


def test_booleans_are_copied():
    y = np.array([True, False])
    read_outcomes(y).won[:] = False
    assert y.tolist() == [True, False]


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        ([0, -1], r"got values such as \[0, -1\]\. If 0 is a tie"),
        ([0.25, 1.0], "Ratings belong to 2-D items"),
        (["a", "b"], r"got values such as \['a', 'b'\]"),
        (np.array(["1", 0], dtype=object), r"must be in \{0, 1\}, \{-1, 1\} or booleans"),
        (np.array([{}, 1], dtype=object), "must be in"),
        (np.array([10**400, 1], dtype=object), "must be in"),
        (np.array([1, 0]).astype("datetime64[D]"), "must be in"),
        ([1.0, np.nan, np.inf], "Outcomes y contain NaN, None or infinity in 2 of 3 places"),
        (np.array([None, 1], dtype=object), r"in 1 of 2 places\. Leave out .* \(ties too, unless"),
    ],
)
def test_all_readers_refuse_alike(labels, match):
    readers = (read_outcomes, parse_outcomes, lambda y: check_outcomes(y, len(y)))
    told = set()
    for reader in readers:
        with pytest.raises(ValueError, match=match) as caught:
            reader(np.asarray(labels))
        told.add(str(caught.value))
    assert len(told) == 1
