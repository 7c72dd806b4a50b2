"""Duels by gain and cost: how many items are new, and that the gain is the best there is."""

import pickle

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import Matern

from skpref import HallucinationBelieverOptimizer, PreferenceOptimizer
from skpref.optimize import read_journal

pytestmark = pytest.mark.usefixtures("brief")

SQUARE = [[0.0, 1.0]] * 2
POOL = np.random.default_rng(0).random((30, 2))


def taste(item):
    return -float(np.sum((np.asarray(item) - 0.4) ** 2))


def answered(optimizer, n, **form):
    """Answer n questions; return how many items of each were new."""
    made, counts = set(), []
    for _ in range(n):
        items = optimizer.ask(**form)
        new = {repr(item) for item in items} - made
        counts.append(len(new))
        made |= new
        optimizer.tell(items, taste(items[0]) > taste(items[1]))
    return counts


@pytest.mark.parametrize("space", [{"space": SQUARE}, {"candidates": POOL}])
def test_a_question_has_as_many_new_items_as_asked_for(space):
    optimizer = PreferenceOptimizer(**space, random_state=0)
    assert answered(optimizer, 1) == [2]
    assert answered(optimizer, 6, new_items=1) == [2, 1, 1, 1, 1, 1]  # its first item is new to it
    shown = {repr(item) for items, _ in optimizer.history_ for item in items}
    assert len(shown) == 8
    for new_items in (0, 1, 2, 0):
        items = optimizer.ask(new_items=new_items)
        new = {repr(item) for item in items} - shown
        assert len(new) == new_items
        shown |= new
        optimizer.tell(items, 1)


def test_in_the_design_new_items_join_those_that_were_made():
    optimizer = PreferenceOptimizer(SQUARE, cost=(10, 1), random_state=0)
    assert answered(optimizer, 4) == [2, 1, 1, 1]


def test_in_the_design_items_that_were_made_count_as_such_whoever_chose_them():
    pool = np.linspace(0.0, 1.0, 6)[:, None]
    optimizer = PreferenceOptimizer(candidates=pool, random_state=0)
    optimizer.tell(pool[[0, 1]], 1).tell(pool[[2, 3]], 1)
    assert {*optimizer.ask(new_items=2).ravel()} == {0.8, 1.0}
    optimizer = PreferenceOptimizer(candidates=pool[:5], random_state=0)
    optimizer.tell(pool[[0, 1]], 1).tell(pool[[2, 3]], 1)
    assert 0.8 in optimizer.ask(new_items=1)
    with pytest.raises(ValueError, match="of 5 items that were made no such duel is left"):
        optimizer.ask(2, new_items=1)


def test_made_items_meet_in_different_duels_until_none_is_left():
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    optimizer.tell([[0.1, 0.1], [0.2, 0.2]], 1).tell([[0.3, 0.1], [0.4, 0.2]], 1)
    questions = optimizer.ask(6, new_items=0)
    assert len({frozenset(map(repr, items)) for items in questions}) == 6
    with pytest.raises(ValueError, match="no such duel is left"):
        optimizer.ask(7, new_items=0)


def test_dear_items_meet_again_and_those_of_little_cost_do_not():
    dear = PreferenceOptimizer(SQUARE, cost=(1000, 1), n_initial=2, random_state=0)
    assert sum(answered(dear, 8)[2::2]) == 0
    free = PreferenceOptimizer(SQUARE, cost=(0, 1), n_initial=2, random_state=0)
    assert sum(answered(free, 8)[2:]) >= 5


def test_the_duel_of_made_items_has_the_largest_gain_by_brute_force():
    kernel = Matern([0.4, 0.4], "fixed", nu=1.5)
    optimizer = PreferenceOptimizer(
        candidates=POOL,
        kernel=kernel,
        noise_variance=0.05,
        noise_variance_bounds="fixed",
        n_initial=2,
        random_state=0,
    )
    for k in range(4):
        optimizer.tell(POOL[[k, k + 1]], int(taste(POOL[k]) > taste(POOL[k + 1])))
    duel = optimizer.ask(new_items=0)
    posterior = optimizer.posterior_
    mean, cov = posterior.mean(POOL), posterior.cov(POOL)
    gains = {}
    for a in range(5):
        for b in range(a + 1, 5):
            pull = cov[:, a] - cov[:, b]
            root = np.sqrt(pull[a] - pull[b] + 2.0 * 0.05)
            u = (mean[a] - mean[b]) / root
            bell = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi) / root
            after_win = mean + pull * bell / ndtr(u)
            after_loss = mean - pull * bell / ndtr(-u)
            gains[a, b] = ndtr(u) * after_win.max() + ndtr(-u) * after_loss.max() - mean.max()
    places = sorted(int(np.flatnonzero(np.all(item == POOL, axis=1))[0]) for item in duel)
    assert tuple(places) == max(gains, key=gains.get)


def test_items_made_with_other_values_of_fixed_parameters_are_new():
    space = {"x": (0.0, 1.0), "roast": ["dark", "light"]}
    optimizer = PreferenceOptimizer(space, random_state=0)
    for _ in range(3):
        optimizer.tell(optimizer.ask(fixed={"roast": "light"}), 1)
    with pytest.raises(ValueError, match="got new_items=1; of 0 items that were made"):
        optimizer.ask(new_items=1, fixed={"roast": "dark"})
    items = optimizer.ask(new_items=1, fixed={"roast": "light"})
    shown = [item for question, _ in optimizer.history_ for item in question]
    assert [item in shown for item in items].count(True) == 1


def test_an_unusable_item_was_not_made():
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    items = optimizer.ask()
    optimizer.tell(items, unusable=[1])
    for _ in range(3):
        question = optimizer.ask(new_items=1)
        assert not any(np.array_equal(item, items[1]) for item in question)
        optimizer.skip(question)


@pytest.mark.parametrize("n_answers", [0, 4])
def test_a_measured_item_was_made(n_answers):
    optimizer = PreferenceOptimizer(SQUARE, cost=(1000, 1), random_state=0)
    answered(optimizer, n_answers)
    optimizer.tell_value([0.4, 0.4], 9.0, 0.1).tell_value([0.5, 0.5], 8.0, 0.1)
    duels = optimizer.ask(1 + n_answers, new_items=0)
    assert any([0.4, 0.4] in duel.tolist() for duel in duels)


def test_a_question_stays_and_others_of_its_kind_are_its_own():
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    answered(optimizer, 5)
    plain, again = optimizer.ask(), optimizer.ask(new_items=0)
    np.testing.assert_array_equal(optimizer.ask(), plain)
    np.testing.assert_array_equal(optimizer.ask(new_items=0), again)
    assert not np.array_equal(plain, again)


def test_journals_pickles_undo_and_skip_know_of_new_items_and_cost(tmp_path):
    path = tmp_path / "run.db"
    optimizer = PreferenceOptimizer(SQUARE, cost=(10, 1), journal=path, random_state=0)
    answered(optimizer, 5)
    following, again = optimizer.ask(), optimizer.ask(new_items=0)
    other = PreferenceOptimizer(SQUARE, cost=(10, 1), journal=path)
    np.testing.assert_array_equal(other.ask(new_items=0), again)
    np.testing.assert_array_equal(other.ask(), following)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(optimizer)).ask(), following)
    optimizer.tell(again, 1)
    optimizer.undo()
    np.testing.assert_array_equal(optimizer.ask(new_items=0), again)
    optimizer.skip(again)
    assert {*map(repr, optimizer.ask(new_items=0))} != {*map(repr, again)}
    assert len(read_journal(path)["kind"]) > 10
    with pytest.raises(ValueError, match="cost: "):
        PreferenceOptimizer(SQUARE, cost=(5, 1), journal=path)


@pytest.mark.parametrize(
    "cost", [3, (1,), (1, 2, 3), (-1, 1), (1, 0), ("a", 1), (np.nan, 1), (np.inf, 1)]
)
def test_what_is_no_cost_is_refused(cost):
    with pytest.raises((ValueError, TypeError), match="cost"):
        PreferenceOptimizer(SQUARE, cost=cost)


def test_what_is_not_chosen_by_gain_is_refused():
    with pytest.raises(ValueError, match="got cost= and a strategy"):
        HallucinationBelieverOptimizer(SQUARE, cost=(10, 1))
    with pytest.raises(ValueError, match="got new_items=1 and a strategy"):
        PreferenceOptimizer(SQUARE, acquisition="ei").ask(new_items=1)
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    for form in ({"size": 3}, {"kind": "line"}, {"beside": [[0.1, 0.2]]}):
        with pytest.raises(ValueError, match="got new_items=1 and a question that is no duel"):
            optimizer.ask(new_items=1, **form)
        with pytest.raises(ValueError, match="got cost= and a question that is no duel"):
            PreferenceOptimizer(SQUARE, cost=(1, 1)).ask(**form)
    for wrong in (3, -1, 1.5, True, "1"):
        with pytest.raises((TypeError, ValueError), match=r"new_items must (lie in|be an integer)"):
            optimizer.ask(new_items=wrong)
    with pytest.raises(ValueError, match="got new_items=1; of 0 items"):
        optimizer.ask(new_items=1)
    assert not optimizer.n_told_
    assert len(optimizer.pending_) == 0
