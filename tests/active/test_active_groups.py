"""Groups that never met: next_pairs joins them first, a stopping rule names no best across them."""

import warnings

import numpy as np
import pytest

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.active import StoppingRule, all_pairs, committee_disagreement, next_pairs, query
from skpref.data import component_labels
from skpref.inspection import leaderboard
from skpref.optimize import ActiveLearner

GAMES = [["a", "b"], ["b", "c"], ["d", "e"], ["f", "g"]] * 5
NAMES = [*"abcdefg", "new", "newer"]  # five groups: abc, de, fg and two without an answer


@pytest.fixture(scope="module")
def model():
    table = ItemTable.from_names(NAMES)
    fitted = PairwisePreferenceRegressor(items=table, noise_variance=0.5, optimizer=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted.fit(GAMES)


def n_groups(*pairs):
    """Groups of the nine items, joined by the games and these pairs of positions."""
    games = np.array([[NAMES.index(name) for name in game] for game in GAMES])
    every = np.concatenate([games, *[np.reshape(each, (-1, 2)).astype(int) for each in pairs]])
    return len(np.unique(component_labels(len(NAMES), every)))


@pytest.mark.parametrize("goal", ["ranks", "top", "members"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 20])
def test_the_first_votes_join_groups(model, goal, n):
    plan = next_pairs(model, n=n, goal=goal)
    assert plan.votes.sum() == n
    # Each vote joins two groups, until all are one.
    assert n_groups(plan.position) == max(5 - n, 1)
    assert plan.joins.sum() == min(n, 4)
    assert plan.joins.tolist() == sorted(plan.joins.tolist(), reverse=True)
    assert n_groups(plan.position[: plan.joins.sum()]) == max(5 - n, 1)
    first = plan.first_better[plan.joins]
    assert np.all(first == 0.5)


def test_pending_votes_join_groups_too(model):
    plan = next_pairs(model, n=2, pending=[["c", "d"], ["new", "a"]])
    pending = [[2, 3], [7, 0]]
    assert n_groups(pending) == 3 and n_groups(pending, plan.position) == 1
    every = [[2, 3], [3, 5], [5, 7], [7, 8]]
    assert not next_pairs(model, n=6, pending=every).joins.any()


def test_only_allowed_pairs_join(model):
    allowed = [["a", "b"], ["b", "c"], ["c", "d"], ["a", "d"]]
    plan = next_pairs(model, n=5, allowed=allowed)
    assert plan.joins.sum() == 1 and n_groups(plan.position) == 4
    within = next_pairs(model, n=5, allowed=[["a", "b"], ["b", "c"]])
    assert not within.joins.any() and within.votes.sum() == 5


def test_joined_items_are_asked_as_before():
    games = [["ann", "cid"], ["bob", "cid"], ["ann", "dan"], ["bob", "dan"], ["cid", "dan"]]
    table = ItemTable.from_names(games)
    joined = PairwisePreferenceRegressor(items=table, noise_variance=0.5, optimizer=None)
    plan = next_pairs(joined.fit(games), n=10)
    assert not plan.joins.any() and plan.votes[0] == plan.votes.max()


def test_many_groups_are_joined_by_a_tree():
    rng = np.random.default_rng(0)
    names = [f"n{k}" for k in range(90)]
    games = [[f"n{3 * k}", f"n{3 * k + 1}"] for k in range(30)]
    model = PairwisePreferenceRegressor(
        items=ItemTable.from_names(names), noise_variance=0.5, optimizer=None
    )
    with pytest.warns(UserWarning, match="fall into 30 groups"):
        model.fit(games)
    plan = next_pairs(model, n=59, random_state=rng)
    places = np.array([[names.index(name) for name in game] for game in games])
    assert len(plan.votes) == 59 and plan.joins.all()
    assert component_labels(90, np.concatenate([places, plan.position])).max() == 0


def test_numbers_are_counted_or_refused(model):
    most = np.iinfo(np.intp).max
    plan = next_pairs(model, n=int(most))
    assert np.all(plan.votes > 0) and sum(plan.votes.tolist()) == most
    with pytest.raises(ValueError, match=r"n must lie in \[1, 9223372036854775807\]"):
        next_pairs(model, n=2**63)
    with pytest.raises(ValueError, match="9223372036854775808 duels are wanted, and the pool has"):
        query(model, ItemTable.from_names(NAMES), n=2**63)
    for wrong in (-3, 2**63):
        with pytest.raises(ValueError, match=r"items must lie in \[0, 2147483647\]"):
            all_pairs(wrong)
    with pytest.raises(ValueError, match=r"members must lie in \[2, 2147483647\]"):
        committee_disagreement(model.posterior_, all_pairs(3), members=2**63)


# -- when to stop -----------------------------------------------------------------------------


def test_no_best_is_named_across_groups():
    rule = StoppingRule().update([["a", "b"]] * 40)
    assert rule.best == "a"
    # Of c and d each beats the other for long, so that none of the two is a contender.
    rule.update([["c", "d"]] * 40 + [["d", "c"]] * 200)
    assert rule.contenders.tolist() == ["a"]
    assert not rule.settled and rule.best is None and rule.n_components == 2
    assert "in 2 groups that never met" in repr(rule)
    rule.update([["a", "d"]])
    assert rule.settled and rule.best == "a" and rule.n_components == 1
    assert "groups" not in repr(rule)


def test_a_competitor_without_a_vote_is_a_group():
    rule = StoppingRule(items=["a", "b", "new"]).update([["a", "b"]] * 40)
    assert rule.n_components == 2 and rule.best is None


def test_groups_of_votes_are_components():
    rng = np.random.default_rng(0)
    for _ in range(10):
        pairs = rng.integers(0, 30, (20, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        rule = StoppingRule(items=range(30)).update(pairs)
        assert rule.n_components == len(np.unique(component_labels(30, pairs)))


def test_a_learner_that_joins_its_items_does_not_warn_of_groups():
    table = ItemTable.from_names([f"n{k}" for k in range(8)])
    learner = ActiveLearner(
        PairwisePreferenceRegressor(items=table, noise_variance=1.0, optimizer=None),
        table,
        n_initial=3,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            learner.tell(learner.ask(), True)
        fitted = learner.estimator_
    assert fitted.n_item_components_ > 1 and leaderboard(learner).n_components > 1
