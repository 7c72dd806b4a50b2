"""Questions that begin with items which are shown in any case."""

import numpy as np
import pytest
from sets_support import BEST, taste

from skpref.data import ItemTable
from skpref.optimize import STRATEGIES, HallucinationBelieverOptimizer, PreferenceOptimizer

pytestmark = pytest.mark.usefixtures("brief")

SQUARE = [(0.0, 1.0), (0.0, 1.0)]
GIVEN = np.array([[0.25, 0.5], [0.75, 0.5]])


def told(n=6, **options):
    optimizer = PreferenceOptimizer(SQUARE, random_state=0, **options)
    rng = np.random.default_rng(1)
    for duel in rng.random((n, 2, 2)):
        optimizer.tell(duel, taste(duel[0]) > taste(duel[1]))
    return optimizer


@pytest.mark.parametrize("n_told", [0, 6])
@pytest.mark.parametrize("size", [None, 3, 5])
def test_a_question_begins_with_what_is_given(n_told, size):
    optimizer = told(n_told)
    question = optimizer.ask(size=size, beside=GIVEN)
    assert question.shape == (size or 3, 2)
    np.testing.assert_array_equal(question[:2], GIVEN)
    apart = np.abs(question[:, None] - question).max(axis=2) + np.eye(len(question))
    assert apart.min() > 1e-6
    np.testing.assert_array_equal(optimizer.ask(size=size, beside=GIVEN), question)
    optimizer.tell(question, worst=1)
    assert len(optimizer.pending_) == 0
    assert optimizer.n_told_ == n_told + 1


def test_other_items_are_another_question():
    optimizer = told()
    first = optimizer.ask(beside=GIVEN)
    second = optimizer.ask(beside=GIVEN[::-1])
    np.testing.assert_array_equal(second[:2], GIVEN[::-1])
    assert len(optimizer.pending_) == 2
    np.testing.assert_array_equal(optimizer.ask(beside=GIVEN), first)
    # One that begins with something else is no answer to what is asked for.
    assert len(optimizer.ask(2, beside=GIVEN[:1])) == 2
    assert all(np.array_equal(each[0], GIVEN[0]) for each in optimizer.ask(2, beside=GIVEN[:1]))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "n"), [(2, 12), (4, 12)])
def test_who_stays_meets_who_is_new(size, n):
    # As on a page where the worst makes room: the best is found as by questions of its own.
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    shown = [np.array([0.9, 0.1])]
    for _ in range(n):
        shown = list(optimizer.ask(size=size, beside=shown))
        worst = int(np.argmin([taste(each) for each in shown]))
        optimizer.tell(shown, worst=worst)
        del shown[worst]
    assert np.abs(optimizer.recommend() - BEST).max() < 0.12


@pytest.mark.parametrize("name", ["HB-UCB", "EP-MUC", "DuelTS", "EUBO", "KG", "JES", "random"])
@pytest.mark.parametrize("n_given", [1, 2])
def test_every_strategy_joins(name, n_given):
    optimizer = told(**STRATEGIES[name]._asdict(), n_initial=1)
    question = optimizer.ask(beside=GIVEN[:n_given])
    np.testing.assert_array_equal(question[:-1], GIVEN[:n_given])


def test_the_joining_item_is_the_one_that_gains_most():
    # By "mean" of EP's posterior: a grid knows where that is largest.
    options = {"inference": "ep", "acquisition": "mean", "hyperparameters": "best"}
    optimizer = told(10, **options, n_initial=1)
    axis = np.linspace(0.0, 1.0, 41)
    grid = np.array([(a, b) for a in axis for b in axis])
    found = optimizer.ask(beside=GIVEN)[-1]
    mean = optimizer.posterior_.mean
    assert mean(found[None])[0] >= mean(grid).max() - 1e-6


def test_the_design_is_far_from_what_was_shown():
    optimizer = told(1)
    shown = np.concatenate([*(each.items for each in optimizer.history_), GIVEN]).reshape(-1, 2)
    new = optimizer.ask(beside=GIVEN)[-1]
    uniform = np.random.default_rng(0).random((500, 2))
    distance = np.linalg.norm(uniform[:, None] - shown, axis=2).min(axis=1)
    assert np.linalg.norm(new - shown, axis=1).min() > np.quantile(distance, 0.95)


def test_initial_duels_are_left_to_duels():
    initial = [([0.1, 0.1], [0.2, 0.2])]
    optimizer = PreferenceOptimizer(SQUARE, initial_duels=initial, random_state=0)
    assert not np.any(np.all(optimizer.ask(beside=GIVEN)[2:] == 0.1, axis=1))


def test_what_was_skipped_does_not_join_again():
    optimizer = told()
    gone = []
    for _ in range(4):
        question = optimizer.ask(beside=GIVEN)
        assert all(np.linalg.norm(question[-1] - each) > 0.02 for each in gone)
        gone.append(question[-1])
        optimizer.skip(question)
    optimizer.undo()
    np.testing.assert_array_equal(optimizer.ask(beside=GIVEN)[-1], gone[-1])


@pytest.mark.slow
def test_names_of_a_pool():
    rng = np.random.default_rng(0)
    table = ItemTable(rng.random((5, 2)), names=list("abcde"))
    optimizer = PreferenceOptimizer(candidates=table, random_state=0)
    seen = set()
    for _ in range(6):
        question = optimizer.ask(beside=["c", "a"])
        assert question[:2] == ("c", "a")
        assert question[2] in {"b", "d", "e"}
        seen.add(question[2])
        optimizer.tell(question, worst=2)
    assert len(seen) > 1
    assert set(optimizer.ask(beside=["a", "b", "c", "d"])) == set("abcde")
    with pytest.raises(ValueError, match="size=6 items are to be shown"):
        optimizer.ask(beside=list("abcde"))


def test_when_no_item_may_join_it_says_so():
    optimizer = PreferenceOptimizer({"k": [1, 2, 4]}, random_state=0)
    with pytest.raises(ValueError, match="No set is left to ask"):
        optimizer.ask(beside=[{"k": 1}, {"k": 2}, {"k": 4}])
    question = optimizer.ask(beside=[{"k": 1}, {"k": 4}])
    assert question[-1] == {"k": 2}


def test_a_journal_keeps_the_question(tmp_path):
    path = tmp_path / "run.db"
    before = told(6, journal=path)
    question = before.ask(beside=GIVEN)
    again = PreferenceOptimizer(SQUARE, journal=path)
    np.testing.assert_array_equal(again.ask(beside=GIVEN), question)
    np.testing.assert_array_equal(again.pending_[0], question)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"beside": []}, "beside= holds no items"),
        ({"beside": GIVEN, "size": 2}, "which leaves none to be chosen.*size=3"),
        ({"beside": GIVEN, "kind": "duel"}, "which leaves none to be chosen"),
        ({"beside": GIVEN, "kind": "line"}, "got kind='line'"),
        ({"beside": GIVEN, "kind": ("duel", "set")}, "leave beside= out, or kind="),
        ({"beside": GIVEN[[0, 0]]}, "different items"),
        ({"beside": [[0.5, 2.0]]}, "outside"),
        ({"beside": "ab"}, "Got one item, 'ab'"),
    ],
)
def test_what_cannot_be_given_is_refused(arguments, words):
    optimizer = HallucinationBelieverOptimizer(SQUARE, random_state=0)
    with pytest.raises(ValueError, match=words):
        optimizer.ask(**arguments)
    assert len(optimizer.pending_) == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (GIVEN[0], r"of one item give \[item\]"),
        ([[2.0, 0.5]], r"beside= is.*feature 0 = 2.0 lies outside \[0.0, 1.0\]. Give items"),
        ([[np.nan, 0.5]], "beside= is.*NaN"),
        (3, "beside= is a sequence"),
    ],
)
def test_what_is_no_sequence_of_items_is_refused(given, words):
    optimizer = told(0)
    with pytest.raises(ValueError, match=words):
        optimizer.ask(beside=given)
    assert len(optimizer.pending_) == 0


def test_one_item_as_a_dict_is_refused():
    optimizer = PreferenceOptimizer({"a": (0.0, 1.0), "c": ["x", "y"]}, random_state=0)
    with pytest.raises(ValueError, match=r"Got one item.*'a': 0.5"):
        optimizer.ask(beside={"a": 0.5, "c": "x"})
