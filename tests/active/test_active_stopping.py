"""The stopping rule, against all possible outcomes of a few votes and against quadrature."""

import warnings
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from skpref import ItemTable
from skpref.active import StoppingRule
from skpref.active._stopping import _PRIOR_VARIANCE
from skpref.duels import from_votes

OUTCOMES = (-1, 0, 1)


def adaptive(history):
    """A pair that hangs on the votes before: one likes to see the last winner meet the others."""
    if not history:
        return 0, 1
    a, b, y = history[-1]
    won, lost = (a, b) if y >= 0 else (b, a)
    third = 3 - a - b
    return (won, third) if len(history) % 3 else (lost, won)


def histories(proba, n_votes, pair_of=adaptive):
    """Probability, votes and e-values over time of every course of votes that may come."""
    for outcomes in product(OUTCOMES, repeat=n_votes):
        chance, history, course = 1.0, [], []
        rule = StoppingRule(0.5, items=range(3), ties=True)
        for y in outcomes:
            a, b = pair_of(history)
            second, tie, first = proba[a, b] if (a, b) in proba else proba[b, a][::-1]
            chance *= {-1: second, 0: tie, 1: first}[y]
            if chance == 0.0:
                break
            history.append((a, b, y))
            course.append(rule.update([[a, b]], [y]).e_values)
        if chance > 0.0:
            yield chance, np.array(course)


# Probabilities that the second wins, of a tie, and that the first wins; 1 is the best or as good.
EVEN = {(0, 1): (0.4, 0.2, 0.4), (1, 2): (0.35, 0.3, 0.35), (0, 2): (0.1, 0.0, 0.9)}
AHEAD = {(0, 1): (0.5, 0.2, 0.3), (1, 2): (0.3, 0.1, 0.6), (0, 2): (0.5, 0.0, 0.5)}


@pytest.mark.parametrize("pair_of", [adaptive, lambda history: (0, 1)], ids=["adaptive", "one"])
def test_evidence_against_the_best_is_a_fair_game(pair_of):
    every = list(histories(EVEN, 6, pair_of))
    assert_allclose(sum(chance for chance, _ in every), 1.0)
    for t in range(6):
        assert_allclose(sum(chance * course[t, 1] for chance, course in every), 1.0, rtol=1e-12)
    # Whenever one stops: here once the evidence is above 1.3.
    stopped = 0.0
    for chance, course in every:
        over = np.flatnonzero(course[:, 1] > 1.3)
        stopped += chance * course[over[0] if len(over) else -1, 1]
    assert_allclose(stopped, 1.0, rtol=1e-12)


def test_evidence_against_a_better_one_shrinks():
    every = list(histories(AHEAD, 6))
    expected = [sum(chance * course[t, 1] for chance, course in every) for t in range(6)]
    assert expected[-1] < 0.99 and (np.diff(expected) <= 1e-12).all()
    # Against the others it grows.
    assert sum(chance * course[-1, 0] for chance, course in every) > 1.0


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_two_equals_are_told_apart_at_most_at_the_level(level):
    share = 0.0
    for outcomes in product((0, 1), repeat=9):
        rule = StoppingRule(level, items=list("ab"))
        for y in outcomes:
            if rule.update([["a", "b"]], [y]).settled:
                share += 0.5**9
                break
    assert 0.0 < share <= level


def test_false_statements_and_power():
    rng = np.random.default_rng(0)
    named = 0
    for _ in range(100):
        rule = StoppingRule(items=range(2))
        for _ in range(5):
            rule.update(np.tile([0, 1], (100, 1)), rng.random(100) < 0.5)
            if rule.settled:
                named += 1
                break
    assert named <= 0.05 * 100
    right = 0
    for _ in range(20):
        rule = StoppingRule(items=range(3))
        first = rng.integers(3, size=1500)
        second = (first + rng.integers(1, 3, size=1500)) % 3
        won = rng.random(1500) < ndtr(0.4 * (second - first))  # 0 is the best
        right += rule.update(np.stack([first, second], axis=1), won).best == 0
    assert right >= 19


def exact(soft):
    """Mean and variance of the two utilities after one vote, and the forecast of the next."""
    grid = np.linspace(-5, 5, 801) * np.sqrt(_PRIOR_VARIANCE)
    density = np.exp(-0.5 * grid**2 / _PRIOR_VARIANCE)
    table = np.outer(density, density)
    won = ndtr(grid[:, None] - grid[None, :])
    moments = []
    for likelihood in (won, 1.0 - won):
        joint = table * likelihood
        joint /= joint.sum()
        one = joint.sum(axis=1)
        mean = one @ grid
        moments.append((mean, one @ (grid - mean) ** 2))
    (up, left), (down, same) = moments
    return soft * up + (1 - soft) * down, soft * left + (1 - soft) * same


def test_forecast_is_that_of_a_probit():
    mean, variance = exact(1.0)
    forecast = ndtr(2 * mean / np.sqrt(1 + 2 * variance))
    rule = StoppingRule().update([["a", "b"]])
    assert_allclose(rule.e_values, 1.0)  # even odds: nothing is staked
    again = StoppingRule().update([["a", "b"], ["a", "b"]])
    assert_allclose(again.e_values, [1.0, 2 * forecast], rtol=1e-5)
    turned = StoppingRule().update([["a", "b"], ["a", "b"]], [1, 0])
    assert_allclose(turned.e_values, [1.0, 2 * (1 - forecast)], rtol=1e-5)
    shared = StoppingRule().update([["a", "b"], ["a", "b"]], [1.0, 0.7])
    stake = 2 * forecast - 1
    assert_allclose(shared.e_values, [1.0, 1 + 0.4 * stake], rtol=1e-5)
    mean, variance = exact(0.75)
    stake = 2 * ndtr(2 * mean / np.sqrt(1 + 2 * variance)) - 1
    soft = StoppingRule().update([["a", "b"], ["a", "b"]], [0.75, 1.0])
    assert_allclose(soft.e_values, [1.0, 1 + stake], rtol=1e-5)


def some_votes(n=300, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(4, size=n)
    second = (first + rng.integers(1, 4, size=n)) % 4
    y = np.sign(np.round(0.6 * (second - first) + rng.standard_normal(n))).astype(int)
    return np.stack([first, second], axis=1), y


def test_one_look_or_many():
    X, y = some_votes()
    whole = StoppingRule(items=range(4), ties=True).update(X, y)
    parts = StoppingRule(items=range(4), ties=True)
    for at in np.array_split(np.arange(len(X)), 41):
        parts.update(X[at], y[at])
    assert_array_equal(whole.e_values, parts.e_values)
    assert whole.n_votes == parts.n_votes == 300
    assert whole.best == parts.best == 0 and whole.settled
    turned = StoppingRule(items=range(4), ties=True).update(X[:, ::-1], -y)
    assert_allclose(turned.e_values, whole.e_values, rtol=1e-9)
    renamed = StoppingRule(items=list("dcba"), ties=True).update(np.array(list("dcba"))[X], y)
    assert_array_equal(renamed.e_values, whole.e_values)
    assert renamed.best == "d"


def test_ties_are_no_evidence():
    rule = StoppingRule(ties=True).update([["a", "b"]] * 3, [1, 1, -1])
    before = rule.e_values
    assert_array_equal(rule.update([["a", "b"]] * 5, [0] * 5).e_values, before)


def test_labels():
    X = [["a", "b"], ["b", "c"], ["c", "a"], ["a", "b"]]
    expected = StoppingRule().update(X, [1, 0, 0, 1]).e_values
    for y in ([True, False, False, True], [1, -1, -1, 1], [1.0, 0.0, 0.0, 1.0], [2, -1, -3, 1]):
        assert_array_equal(StoppingRule().update(X, y).e_values, expected)
    winner_first = [["a", "b"], ["c", "b"], ["a", "c"], ["a", "b"]]
    by_name = StoppingRule(items=list("abc")).update(winner_first).e_values
    assert_array_equal(by_name, StoppingRule(items=list("abc")).update(X, [1, 0, 0, 1]).e_values)


def test_forms_of_votes():
    pd = pytest.importorskip("pandas")
    X = [["a", "b"], ["c", "b"], ["a", "c"]] * 4
    expected = StoppingRule(items=list("abc")).update(X).e_values
    for form in (np.array(X), np.array(X, object), pd.DataFrame(X), tuple(map(tuple, X))):
        assert_array_equal(StoppingRule(items=list("abc")).update(form).e_values, expected)
    table = ItemTable.from_names(["a", "b", "c"])
    positions = np.searchsorted(["a", "b", "c"], X)
    rule = StoppingRule(items=table).update(positions)
    assert_array_equal(rule.e_values, expected)
    assert rule.names.tolist() == ["a", "b", "c"]
    assert StoppingRule(items=table).update(X).names.tolist() == ["a", "b", "c"]


def test_who_joins_is_a_contender():
    rule = StoppingRule().update([["a", "b"]] * 40)
    assert rule.best == "a" and rule.contenders.tolist() == ["a"]
    rule.update([["a", "new"]])
    assert rule.best is None and rule.contenders.tolist() == ["a", "new"]
    assert "2 contenders of 3" in repr(rule)


def test_dropped_for_good_and_none_left():
    rule = StoppingRule().update([["a", "b"]] * 10)
    assert rule.best == "a" and rule.e_values[1] > 40
    rule.update([["b", "a"]] * 3)
    assert rule.e_values[1] < 40 and rule.best == "a"
    rule.update([["b", "a"]] * 60)  # the best has changed: votes contradict what is assumed
    assert rule.best is None and not rule.settled and len(rule.contenders) == 0


def test_nothing_is_said_too_soon():
    assert StoppingRule().best is None and not StoppingRule().settled
    assert StoppingRule(items=["a"]).best is None
    rule = StoppingRule().update([]).update(np.zeros((0, 2), int), [])
    assert rule.n_votes == 0 and rule.e_values.shape == (0,)
    shortest = StoppingRule(items=list("ab"))
    while not shortest.settled:
        shortest.update([["a", "b"]])
    assert shortest.n_votes >= 6


def test_sure_votes_do_not_overflow():
    rule = StoppingRule().update([["a", "b"]] * 20_000)
    assert np.isfinite(rule._log_e).all()
    surprised = rule.update([["b", "a"]])
    assert np.isfinite(surprised._log_e).all() and np.isfinite(surprised._mean).all()


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ([["a", "a"]], None, "with itself"),
        ([["a", None]], None, "lacks a name"),
        ([["a", "b", "c"]], None, "shape"),
        (["a", "b"], None, "shape"),
        (5, None, "shape"),
        (np.zeros((3, 2, 4)), None, "features"),
        (np.zeros((3, 2)), None, "features"),
        ([["a", "b"]], [1, 0], "one label"),
        ([["a", "b"]], [np.nan], "missing"),
        ([["a", "b"]], ["a"], "0 or 1"),
        ([["a", "b"]], [1.5], "0 or 1"),
        ([["a", "b"]] * 2, [0, -1], "ties=True"),
    ],
    ids=str,
)
def test_refused_votes_change_nothing(X, y, said):
    rule = StoppingRule().update([["a", "b"], ["b", "c"]], [1, 1])
    before = rule.e_values, rule.names, rule.n_votes
    with pytest.raises(ValueError, match=said):
        rule.update(X, y)
    for one, other in zip(before, (rule.e_values, rule.names, rule.n_votes), strict=True):
        assert_array_equal(one, other)


def test_refused():
    for level in (0.0, 1.0, -1, "x", np.nan):
        with pytest.raises((ValueError, TypeError), match="level"):
            StoppingRule(level)
    with pytest.raises(ValueError, match="twice"):
        StoppingRule(items=["a", "a"])
    with pytest.raises(ValueError, match="not among items"):
        StoppingRule(items=["a", "b"]).update([["a", "c"]])
    with pytest.raises(TypeError, match="list of names"):
        StoppingRule(items=3)
    with pytest.raises(ValueError, match="-1, 0 or 1"):
        StoppingRule(ties=True).update([["a", "b"]], [0.5])
    with pytest.raises(ValueError, match="0 is a tie"):
        StoppingRule(ties=True).update([["a", "b"]] * 40, [1, 0] * 20)
    late = StoppingRule(ties=True).update([["a", "b"]] * 20, [1, 0] * 10)
    assert late.update([["a", "b"]] * 20, [-1, 0] * 10).update([["a", "b"]] * 9, [0] * 9)
    rule = StoppingRule().update([["a", "b"]], [-1])
    with pytest.raises(ValueError, match="since the first votes"):
        rule.update([["a", "b"]], [0])


def test_evidence_that_no_number_holds_is_infinite():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rule = StoppingRule().update([["ann", "bob"]] * 3000)
        assert rule.e_values.tolist() == [1.0, np.inf]
    assert rule.best == "ann"


def test_an_infinite_label_is_refused():
    with pytest.raises(ValueError, match="y must hold 0 or 1"):
        StoppingRule().update([["ann", "bob"]], [np.inf])


@pytest.mark.parametrize("y", [[2, 0], [0, 3], [1, 0, 2]])
def test_a_tie_among_grades_needs_ties(y):
    votes = [["a", "b"]] * len(y)
    rule = StoppingRule()
    with pytest.raises(ValueError, match=rf"holds 0 beside {max(y)}.*StoppingRule.ties=True."):
        rule.update(votes, y)
    assert rule.n_votes == 0
    assert StoppingRule(ties=True).update(votes, y).n_votes == len(y)
    assert StoppingRule().update(votes, [1 if label == 0 else label for label in y]).n_votes


TABLE = {
    "model_a": ["ant", "bee", "cow", "ant", None, "cow", "bee", "ant"],
    "model_b": ["bee", "cow", "ant", "cow", "ant", "bee", "ant", "bee"],
    "winner": ["model_a", "tie", "model_b", "model_a", "model_a", "tie", "model_b", "model_a"],
    "length_a": [3.0, 1.0, 2.0, 5.0, 4.0, 2.0, 1.0, 3.0],
    "length_b": [1.0, 4.0, 3.0, 2.0, 5.0, 3.0, 2.0, 5.0],
    "p": [0.9, 0.5, 0.2, 1.0, 0.5, 0.4, 0.0, 0.7],
}
KEPT = [0, 1, 2, 3, 5, 6, 7]
PAIRED = [[TABLE["model_a"][row], TABLE["model_b"][row]] for row in KEPT]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("controls", [None, "length"])
def test_votes_of_a_table(ties, controls):
    with pytest.warns(UserWarning, match="without a competitor's name"):
        votes = from_votes(TABLE, controls=controls)
    label = {"model_a": 1, "tie": 0, "model_b": -1}
    plain = StoppingRule(0.9, ties=True)
    plain.update(PAIRED, [label[TABLE["winner"][row]] for row in KEPT])
    rule = StoppingRule(0.9, ties=ties).update(votes)
    assert rule.n_votes == 7 and rule.names.tolist() == plain.names.tolist()
    assert_allclose(rule.e_values, plain.e_values)
    # Labels by hand may follow, either way of them.
    rule.update([["ant", "bee"]], [0 if not ties else -1])
    with pytest.raises(ValueError, match="Votes of from_votes have labels"):
        rule.update(votes, votes.y)
    with pytest.raises(ValueError, match="Vote 0 is on 'bee', which is not among items"):
        StoppingRule(items=["ant", "cow"]).update(votes)


def test_votes_of_one_winner_and_of_a_stream():
    """Votes that were turned, and a piece of ties alone."""
    table = {"model_a": ["x", "y", "x"], "model_b": ["y", "z", "z"], "winner": ["x", "y", "x"]}
    before = from_votes(table)
    wins = StoppingRule(items=list("xyz")).update(PAIRS_OF_WINNERS)
    assert_allclose(StoppingRule(items=before.item_table).update(before).e_values, wins.e_values)
    tied = from_votes({**table, "winner": ["x", "tie", "x"]})
    piece = from_votes({**table, "winner": ["tie"] * 3}, like=tied)
    plain = StoppingRule(ties=True, items=list("xyz")).update(PAIRS_OF_WINNERS, [0, 0, 0])
    assert_allclose(StoppingRule(items=list("xyz")).update(piece).e_values, plain.e_values)


PAIRS_OF_WINNERS = [["x", "y"], ["y", "z"], ["x", "z"]]


def test_soft_votes_of_a_table():
    with pytest.warns(UserWarning, match="without a competitor's name"):
        votes = from_votes(TABLE, winner="p", soft=True)
    plain = StoppingRule(0.9).update(PAIRED, [TABLE["p"][row] for row in KEPT])
    rule = StoppingRule(0.9).update(votes)
    assert rule.n_votes == 7
    assert_allclose(rule.e_values, plain.e_values)


def test_a_frame_with_gaps_says_how_many_there_are():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(TABLE)
    frame.loc[6, "model_b"] = None
    rule = StoppingRule()
    with pytest.raises(
        ValueError, match=r"Vote 4 lacks a name: .*so do 1 more of 8.*from_votes, which"
    ):
        rule.update(frame[["model_a", "model_b"]])
    with pytest.raises(ValueError, match=r"shape .8, 6.. Pass skpref.duels.from_votes.frame., or"):
        rule.update(frame)
    assert rule.n_votes == 0


def prompt_votes(rng, n_prompts, n_votes, effect):
    """Votes on two equals, of which one is favoured on each prompt."""
    favour = effect * rng.standard_normal(n_prompts).repeat(n_votes)
    won = favour + rng.standard_normal(len(favour)) > 0.0
    return [["a", "b"]] * len(won), won.astype(int), np.repeat(np.arange(n_prompts), n_votes)


@pytest.mark.slow
def test_votes_that_share_prompts_keep_the_level():
    named = {True: 0, False: 0}
    for seed in range(300):
        X, y, prompts = prompt_votes(np.random.default_rng(seed), 20, 10, 4.0)
        for knows in named:
            rule = StoppingRule(level=0.1).update(X, y, prompts=prompts if knows else None)
            named[knows] += rule.best is not None
    assert named[True] <= 0.1 * 300 + 2.0 * np.sqrt(300 * 0.09)
    assert named[False] > 0.2 * 300  # as if each were on a prompt of its own


def test_votes_on_one_prompt_are_one_piece_of_evidence():
    alone, repeated, split = StoppingRule(), StoppingRule(), StoppingRule()
    first = ["a", "b"]
    for rule in (alone, repeated, split):
        rule.update([first] * 4)  # so that b is forecast to lose
    alone.update([first])
    repeated.update([first] * 5, prompts=["p"] * 5)
    assert_allclose(alone.e_values, repeated.e_values, rtol=1e-12)
    split.update([first], prompts=["p"]).update([first] * 4, prompts=["p"] * 4)
    assert_allclose(split.e_values, alone.e_values, rtol=1e-12)
    # Prompts of their own are as none.
    both = StoppingRule().update([first] * 6), StoppingRule().update([first] * 6, prompts=range(6))
    assert_allclose(*[rule.e_values for rule in both], rtol=0)
    again = StoppingRule().update([first] * 6, prompts=[None] * 6)
    assert_allclose(again.e_values, both[0].e_values, rtol=0)
    with pytest.raises(ValueError, match="2 ids in prompts for 6 rows"):
        StoppingRule().update([first] * 6, prompts=[1, 2])


def test_prompts_of_a_table_of_votes_count():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        {
            "model_a": ["a"] * 9,
            "model_b": ["b"] * 9,
            "winner": ["model_a"] * 9,
            "q": [1] * 3 + [2] * 6,
        }
    )
    votes = from_votes(table, prompt="q")
    pairs = [["a", "b"]] * 9
    rules = StoppingRule().update(votes), StoppingRule().update(pairs, prompts=[1] * 3 + [2] * 6)
    assert_allclose(rules[0].e_values, rules[1].e_values, rtol=0)
    assert not np.allclose(rules[0].e_values, StoppingRule().update(pairs).e_values)
