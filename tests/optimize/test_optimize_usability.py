"""Limits that are not known: what is told unusable, and what is asked and recommended then."""

import pickle

import numpy as np
import pytest
from scipy.optimize import LinearConstraint
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from skpref.optimize import PreferenceOptimizer, read_journal, when
from skpref.optimize._model import Memory
from skpref.optimize._state import AnswerRecord, Items, RunState, Skipped
from skpref.optimize._usability import Usability

pytestmark = pytest.mark.usefixtures("brief")

SQUARE = [[0.0, 1.0]] * 2
NAMES = {"mode": ["flat", "deep"], "depth": when("mode", "deep", (0.0, 1.0)), "width": (0.0, 1.0)}
SPACES = {
    "box": {"space": SQUARE},
    "limits": {"space": SQUARE, "constraints": [LinearConstraint([[1.0, 1.0]], ub=1.6)]},
    "pool": {"candidates": np.random.default_rng(0).random((80, 2))},
}


def breaks(item):
    return bool(item[0] > 0.6)


def taste(item):
    return -float(np.sum((item - np.array([0.8, 0.5])) ** 2))


def answered(optimizer, n, tells=True):
    """Answer n questions; return how many items broke, of each question."""
    counts = []
    while optimizer.n_told_ < n and len(counts) < 4 * n:
        items = optimizer.ask()
        broken = [k for k, item in enumerate(items) if breaks(item)]
        counts.append(len(broken))
        if broken and tells:
            optimizer.tell(items, unusable=broken)
        elif broken:
            optimizer.skip(items)
        else:
            optimizer.tell(items, taste(items[0]) > taste(items[1]))
    return counts


def state_of(rows, usable):
    """Return a state in which items of some rows were told usable or not, in pairs."""
    memory = Memory(np.zeros(0))
    items = Items(tuple(rows), rows)
    pairs = [(k, k + 1) for k in range(0, len(rows), 2)]
    skipped = [
        Skipped(pair, 0, None, tuple(k for k in pair if not usable[k]))
        for pair in pairs
        if not all(usable[k] for k in pair)
    ]
    answers = [AnswerRecord(pair, 1) for pair in pairs if all(usable[k] for k in pair)]
    return RunState(items, memory, memory, tuple(answers), (), tuple(skipped))


# --- the probability ------------------------------------------------------------------------


def test_the_probability_is_that_of_importance_sampling():
    """A probit of g(x) - b, with g and b drawn from their priors and weighted by what was told."""
    rng = np.random.default_rng(0)
    rows = rng.random((6, 2))
    usable = np.array([True, True, False, True, True, False])
    grid = rng.random((5, 2))
    both = np.concatenate([rows, grid])
    scaled = np.sqrt(3.0) * cdist(both, both) / (0.2 * np.sqrt(2.0))
    cov = (1.0 + scaled) * np.exp(-scaled)
    draws = np.linalg.cholesky(cov + 1e-10 * np.eye(11)) @ rng.standard_normal((11, 400_000))
    chance = ndtr((draws - rng.standard_normal(400_000)) / np.sqrt(2.0 * 0.01))
    weight = np.prod(np.where(usable[:, None], chance[:6], 1.0 - chance[:6]), axis=0)
    probability = (chance[6:] * weight).sum(axis=1) / weight.sum()
    usability = Usability.fit(state_of(rows, usable))
    np.testing.assert_allclose(usability.probability(grid), probability, atol=0.02)


def test_an_item_that_broke_is_not_recommended_though_it_won():
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    first, second, third = [0.9, 0.9], [0.1, 0.1], [0.5, 0.5]
    optimizer.tell((first, second), 1).tell((second, third), 0)
    np.testing.assert_array_equal(optimizer.recommend(), first)
    optimizer.tell((first, third), unusable=[0])
    np.testing.assert_array_equal(optimizer.recommend(), third)
    assert optimizer.n_told_ == 2
    np.testing.assert_array_equal(optimizer.undo().recommend(), first)


# --- questions ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", SPACES)
def test_fewer_items_break_where_it_is_told(case):
    teller = PreferenceOptimizer(**SPACES[case], random_state=0)
    skipper = PreferenceOptimizer(**SPACES[case], random_state=0)
    n_broken, n_skipped = sum(answered(teller, 8)), sum(answered(skipper, 8, tells=False))
    assert n_broken < 0.5 * n_skipped
    best = teller.recommend(probability_usable=0.6)
    assert not breaks(best)
    assert taste(best) > -0.2
    assert teller.expected_gain_.shortfall.min() >= 0.0


def test_lines_sets_and_held_parameters_go_on():
    optimizer = PreferenceOptimizer(NAMES, random_state=0)
    for kind, size in (("set", 3), ("line", 5), ("set", 2), ("plane", 3), ("set", 2)):
        items = optimizer.ask(kind=kind, size=size)
        broken = [k for k, item in enumerate(items) if item["width"] > 0.6]
        if broken:
            optimizer.tell(items, unusable=broken)
        else:
            answer = 1 if len(items) == 2 else {"chosen": 0}
            optimizer.tell(items, answer)
    assert all(item["mode"] == "deep" for item in optimizer.ask(fixed={"mode": "deep"}))


def test_without_unusable_items_nothing_changes():
    first, second = (PreferenceOptimizer(SQUARE, random_state=0) for _ in range(2))
    for _ in range(6):
        items = first.ask()
        np.testing.assert_array_equal(items, second.ask())
        first.tell(items, 1)
        second.tell(items, unusable=[0]).undo().tell(items, 1)


def test_a_pool_of_which_all_broke_is_asked_about_again():
    optimizer = PreferenceOptimizer(candidates=np.eye(3), random_state=0)
    for _ in range(3):
        optimizer.tell(optimizer.ask(), unusable=[0, 1])
    assert len(optimizer.ask()) == 2


# --- journals, refusals ---------------------------------------------------------------------


def test_a_journal_keeps_what_is_unusable(tmp_path):
    path = tmp_path / "run.db"
    optimizer = PreferenceOptimizer(SQUARE, journal=path, random_state=0)
    answered(optimizer, 6)
    items = optimizer.ask()
    again = PreferenceOptimizer(SQUARE, journal=path)
    np.testing.assert_array_equal(again.ask(), items)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(optimizer)).ask(), items)
    optimizer.tell(items, unusable=[1])
    assert read_journal(path)["outcome"][-1] == {"unusable": [1]}
    assert read_journal(path)["kind"][-1] == "skip"
    np.testing.assert_array_equal(optimizer.undo().ask(), items)
    np.testing.assert_array_equal(again.ask(), items)


@pytest.mark.parametrize("unusable", [[], [2], [-1], [0, 0], "0", [0.5], [True], [None], 3])
def test_what_is_no_position_is_refused(unusable):
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    items = optimizer.ask()
    with pytest.raises(ValueError, match="different positions from 0 to 1"):
        optimizer.tell(items, unusable=unusable)
    np.testing.assert_array_equal(optimizer.ask(), items)


def test_other_refusals():
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    items = optimizer.ask()
    for answer in ({"outcome": 1}, {"chosen": 0}, {"worst": 1}, {"ranking": [0, 1]}):
        with pytest.raises(ValueError, match="one of the two is allowed"):
            optimizer.tell(items, unusable=[1], **answer)
    optimizer.tell(items, 1)
    with pytest.raises(ValueError, match="probability_usable"):
        optimizer.recommend(probability_usable=1.5)
    optimizer.tell(items, unusable=[0])
    with pytest.raises(ValueError, match=r"usable enough; the largest is 0\.\d\d"):
        optimizer.recommend(probability_usable=1.0)
    optimizer.tell(items, unusable=[0, 1])
    with pytest.raises(ValueError, match="none of them can be used"):
        optimizer.recommend()
    assert "all were told unusable" in optimizer._repr_html_()
