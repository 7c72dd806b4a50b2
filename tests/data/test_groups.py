"""Components of the graph of answers, against a search breadth first; which answers join."""

from collections import deque

import numpy as np
import pytest

from skpref.data import TIE, Comparisons, ItemGroups, component_labels


def by_search(n_items, positions):
    """Components by a search breadth first, in plain Python."""
    beside = [set() for _ in range(n_items)]
    for answer in positions.tolist():
        members = [item for item in answer if item >= 0]
        for item in members:
            beside[item] |= set(members)
    label = [-1] * n_items
    for start in range(n_items):
        if label[start] < 0:
            waiting = deque([start])
            while waiting:
                item = waiting.popleft()
                if label[item] < 0:
                    label[item] = start
                    waiting.extend(beside[item])
    return np.array(label)


def same_partition(one, other):
    """Whether two labellings are of the same parts."""
    return (
        len(set(zip(one.tolist(), other.tolist(), strict=True)))
        == len(set(one.tolist()))
        == len(set(other.tolist()))
    )


@pytest.mark.parametrize("seed", range(20))
def test_components_are_those_of_a_search(seed):
    rng = np.random.default_rng(seed)
    n_items, size = int(rng.integers(2, 60)), int(rng.integers(2, 5))
    positions = rng.integers(0, n_items, (int(rng.integers(0, n_items)), size))
    absent = rng.random(positions.shape) < 0.3
    absent[:, 0] = False
    positions[absent] = -1
    found = component_labels(n_items, positions)
    assert same_partition(found, by_search(n_items, positions))


def test_pieces_join_what_all_answers_join():
    rng = np.random.default_rng(0)
    for _ in range(20):
        keys = rng.permutation(40)[:, None].astype(float)
        positions = rng.integers(0, 40, (25, 2))
        groups = None
        for piece in np.array_split(positions, 4):
            items, place = np.unique(piece, return_inverse=True)
            first, second = place.reshape(piece.shape).T
            apart = first != second
            rows = Comparisons.from_duels(
                np.arange(len(items))[:, None], first[apart], second[apart], np.ones(apart.sum())
            )
            groups = ItemGroups.from_keys(
                keys[items][rows.items[:, 0].astype(int)], rows.rows, groups
            )
        label, answered = groups.labels_of(keys)
        assert same_partition(label, by_search(40, positions))
        met = positions[positions[:, 0] != positions[:, 1]]
        assert answered.tolist() == np.isin(np.arange(40), met).tolist()


def test_ten_thousand_links_in_a_row_are_one_component():
    row = np.arange(10_000)
    chain = np.stack([row[:-1], row[1:]], axis=1)
    assert component_labels(10_000, chain).max() == 0
    assert component_labels(10_000, np.delete(chain, 5_000, axis=0)).max() == 1


def joined(comparisons):
    """Whether all items are of one component."""
    return ItemGroups.from_keys(comparisons.items, comparisons.rows).label.max() == 0


def test_an_answer_joins_what_it_compares():
    items = np.arange(4.0)[:, None]
    duels = [0, 1, 2], [1, 2, 3], [True] * 3
    assert joined(Comparisons.from_duels(items, *duels))
    assert joined(Comparisons.from_duels(items, *duels, kind=[0, TIE, 0]))
    assert not joined(Comparisons.from_duels(items, [0, 2], [1, 3], [True, True]))
    # Of an answer of weight 0 nothing is kept, nor of an item that is not ranked.
    dropped = Comparisons.from_duels(items, *duels, weight=[1.0, 0.0, 1.0])
    assert not joined(dropped)
    ranked = Comparisons.from_ranks(items, [[0, 1, 2, 3]], [[1, 2, 3, 2]])
    assert joined(ranked)
    partly = Comparisons.from_ranks(items, [[0, 1, 2], [2, 3, -1]], [[1, 2, 0], [1, 2, 0]])
    assert not joined(partly)
    alone = Comparisons.from_ranks(items, [[0, 1, 2], [2, 3, -1]], [[2, 0, 1], [1, 2, 0]])
    assert joined(Comparisons.from_ranks(items[:3], [[0, 1, 2]], [[2, 2, 1]]))
    assert not joined(alone)  # item 1 was shown and never ranked
