"""Questions of any of several kinds: which comes, that it stays, journals, `run`, errors."""

import numpy as np
import pytest
from sets_support import BEST, taste

from skpref import PairwisePreferenceRegressor
from skpref.optimize import ActiveLearner, HallucinationBelieverOptimizer, PreferenceOptimizer

pytestmark = pytest.mark.usefixtures("brief")

SQUARE = [[0.0, 1.0]] * 2
LINE = [[0.0, 1.0]]


def made(space=SQUARE, seed=0, **options):
    return HallucinationBelieverOptimizer(space, random_state=seed, **{"n_initial": 2} | options)


def best_of(items):
    return int(np.argmax([taste(np.resize(item, 2)) for item in items]))


def told(found, n, **asked):
    for _ in range(n):
        items = found.ask(**asked)
        found.tell(items, chosen=best_of(items))
    return found


@pytest.mark.parametrize(
    ("kind", "size", "large", "small"),
    [
        (("duel", "line"), None, ("line", 9), ("duel", 2)),
        (("set", "duel", "line"), {"line": 3}, ("set", 4), ("duel", 2)),
        (["line", "set"], {"set": 6, "line": 5}, ("set", 6), ("line", 5)),
        (("set",), None, ("set", 4), ("set", 4)),
    ],
)
def test_four_answers_a_dimension_are_of_the_largest_kind(kind, size, large, small):
    found, seen = made(LINE), []
    for _ in range(6):
        items = found.ask(kind=kind, size=size)
        seen.append((found.kind_of(items), len(items)))
        found.tell(items, chosen=best_of(items))
    assert seen == [large] * 4 + [small] * 2


def test_of_equally_large_kinds_the_first_comes():
    found = made()
    assert found.kind_of(found.ask(kind=("line", "plane"), size={"plane": 3})) == "line"
    found = made()
    assert found.kind_of(found.ask(kind=("plane", "line"), size={"plane": 3})) == "plane"


def test_duels_that_were_given_are_asked_first():
    given = np.random.default_rng(0).random((2, 2, 1))
    found = made(LINE, initial_duels=given)
    for duel in given:
        items = found.ask(kind=("line", "set", "duel"))
        np.testing.assert_array_equal(items, duel)
        found.tell(items, 1)
    assert len(found.ask(kind=("line", "set", "duel"))) == 9
    assert len(made(LINE, initial_duels=given).ask(kind=("line",))) == 9


def test_what_is_pending_of_any_of_the_kinds_comes_first():
    found = told(made(), 2)
    duel = found.ask()
    np.testing.assert_array_equal(found.ask(kind="duel"), duel)
    np.testing.assert_array_equal(found.ask(kind=("plane", "duel")), duel)
    plane = found.ask(kind=("plane", "line"))
    assert plane.shape == (25, 2)
    np.testing.assert_array_equal(found.ask(kind="plane"), plane)
    np.testing.assert_array_equal(found.ask(kind=("line", "plane", "set")), plane)
    both = found.ask(2, kind=("plane", "duel"))
    assert [len(each) for each in both] == [2, 25]
    assert len(found.pending_) == 2
    assert [len(each) for each in found.ask(4, kind=("plane", "duel"))] == [2, 25, 25, 25]


@pytest.mark.slow
def test_a_journal_goes_on_with_the_same_questions(tmp_path):
    kind, path = ("duel", "line"), tmp_path / "run.db"
    alone = told(made(LINE), 3, kind=kind)
    first = told(made(LINE, journal=path), 3, kind=kind)
    line = first.ask(kind=kind)
    again = made(LINE, journal=path)
    np.testing.assert_array_equal(again.ask(kind=kind), line)
    assert again.kind_of(line) == "line"
    again.tell(line, position=2.5)
    duel = again.ask(kind=kind)
    assert len(duel) == 2
    np.testing.assert_array_equal(first.ask(kind=kind), duel)
    again.undo()
    np.testing.assert_array_equal(again.ask(kind=kind), line)
    again.skip(line)
    assert len(again.ask(kind=kind)) == 9
    alone.tell(alone.ask(kind=kind), position=2.5)
    np.testing.assert_array_equal(alone.ask(kind=kind), duel)


@pytest.mark.slow
def test_run_asks_all_kinds():
    found, shown = made(LINE, seed=1), []

    def judge(*items):
        shown.append(len(items))
        best = best_of(items)
        return best == 0 if len(items) == 2 else best

    best = found.run(judge, 9, kind=("duel", "set", "line"), size={"line": 5, "set": 3})
    assert shown == [5] * 4 + [2] * 5
    assert abs(best[0] - np.mean(BEST)) < 0.2
    for (items, outcome), n in zip(found.history_, shown, strict=True):
        said = outcome == 1 if n == 2 else outcome["chosen"]
        assert said == (best_of(items) == 0 if n == 2 else best_of(items))


def test_a_run_of_sets_takes_what_it_took():
    found = made()
    found.run(lambda *items: {"worst": 0}, 1, kind=("set",), size={"set": 3})
    found.run(lambda *items: [2, 0], 1, kind="set", size=3)
    found.run(lambda *items: 2.5, 1, kind=("line", "plane"), size={"plane": 2})
    assert found.history_[0].outcome == {"worst": 0}
    assert found.history_[1].outcome == {"ranking": [2, 0]}
    assert len(found.history_[2].items) == 10


def test_kinds_that_are_none():
    found = made()
    for kind in (None, 3, (), {"duel", "line"}):
        with pytest.raises(TypeError, match=r"kind must be one of .* or a tuple of some of them"):
            found.ask(kind=kind)
    with pytest.raises(ValueError, match=r"kind must be one of .*'circle'"):
        found.ask(kind=("duel", "circle"))
    for size in (5, {"plane": 3}, [4]):
        with pytest.raises(ValueError, match="size must be a dict of the sizes of some of these"):
            found.ask(kind=("duel", "line"), size=size)
    with pytest.raises(ValueError, match=r"size must lie in \[3, inf\], got 2"):
        found.ask(kind=("duel", "line"), size={"line": 2})
    with pytest.raises(ValueError, match="A duel has two items, got size=3"):
        found.ask(kind="duel", size=3)
    laplace = PreferenceOptimizer(SQUARE, inference="laplace", random_state=0)
    with pytest.raises(ValueError, match="Laplace does not take choices"):
        laplace.ask(kind=("duel", "line"))
    assert len(found.pending_) == len(laplace.pending_) == 0


def test_pools_have_duels_and_sets():
    pool = made(None, candidates=np.random.default_rng(0).random((12, 2)))
    assert len(pool.ask(kind=("duel", "set"))) == 4
    with pytest.raises(ValueError, match=r"kind='line' needs a space .* is a pool"):
        pool.ask(kind=("duel", "line"))
    with pytest.raises(ValueError, match="there are 12 different candidates"):
        pool.ask(kind=("duel", "set"), size={"set": 13})


def test_a_learner_asks_duels():
    learner = ActiveLearner(PairwisePreferenceRegressor(), np.arange(6.0)[:, None], random_state=0)
    learner.run(lambda first, second: first[0] > second[0], 1, kind="duel")
    assert learner.n_told_ == 1
    with pytest.raises(ValueError, match="asks duels only"):
        learner.run(lambda first, second: True, 1, kind=("duel", "set"))
