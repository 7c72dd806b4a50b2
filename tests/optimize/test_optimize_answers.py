"""What may be said of the items shown, and what it is refused for."""

from itertools import permutations

import numpy as np
import pytest

from skpref.optimize import HallucinationBelieverOptimizer
from skpref.optimize._answers import NO_OUTCOME, AnswerArguments, best_position, ranks_of_outcome


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (AnswerArguments(1), 1),
        (AnswerArguments(True), 1),
        (AnswerArguments(np.bool_(False)), 0),
        (AnswerArguments(-1), 0),
        (AnswerArguments(np.array([0.0])), 0),
        (AnswerArguments("tie"), "tie"),
        (AnswerArguments(0.5), "tie"),
        (AnswerArguments(np.float32(0.5)), "tie"),
        (AnswerArguments({"chosen": 0}), 1),
        (AnswerArguments(chosen=0), 1),
        (AnswerArguments(chosen=1), 0),
        (AnswerArguments(worst=0), 0),
        (AnswerArguments(worst=np.int64(1)), 1),
        (AnswerArguments(ranking=[1, 0]), 0),
        (AnswerArguments(chosen=0, worst=1), 1),
        (AnswerArguments(chosen=[1]), 0),
    ],
)
def test_a_duel_is_answered_in_several_ways(said, outcome):
    found = said.outcome_of(2)
    assert found == outcome
    assert type(found) is type(outcome)


def test_a_missing_cell_of_a_frame_is_no_outcome():
    missing = pytest.importorskip("pandas").NA
    with pytest.raises(ValueError, match=r"neither NaN nor others; got <NA>"):
        AnswerArguments(missing).outcome_of(2)


def comparisons(ranks):
    """Which items are said to be better than which."""
    pairs = permutations(range(len(ranks)), 2)
    return {(a, b) for a, b in pairs if 0 < ranks[a] < ranks[b]}


@pytest.mark.parametrize(
    ("said", "better"),
    [
        (AnswerArguments(chosen=2), {(2, 0), (2, 1), (2, 3)}),
        (AnswerArguments(worst=0), {(1, 0), (2, 0), (3, 0)}),
        (AnswerArguments(chosen=3, worst=1), {(3, 0), (3, 1), (3, 2), (0, 1), (2, 1)}),
        (AnswerArguments(chosen=[2, 0]), {(0, 1), (0, 3), (2, 1), (2, 3)}),
        (AnswerArguments(chosen=np.array([3])), {(3, 0), (3, 1), (3, 2)}),
        (AnswerArguments(chosen=(0, 1, 2)), {(0, 3), (1, 3), (2, 3)}),
        (AnswerArguments(chosen=[0, 2], worst=1), {(0, 1), (0, 3), (2, 1), (2, 3), (3, 1)}),
        (AnswerArguments(ranking=[2, 0, 3, 1]), {(2, 0), (2, 3), (2, 1), (0, 3), (0, 1), (3, 1)}),
        (AnswerArguments(ranking=np.array([3, 0])), {(3, 0)}),
        (AnswerArguments({"ranking": (1, 2, 0)}), {(1, 2), (1, 0), (2, 0)}),
    ],
)
def test_an_answer_to_a_set_says_who_is_better_than_whom(said, better):
    outcome = said.outcome_of(4)
    assert comparisons(ranks_of_outcome(outcome, 4)) == better
    assert set(ranks_of_outcome(outcome, 4)) - {0} == set(
        range(1, max(ranks_of_outcome(outcome, 4)) + 1)
    )
    assert AnswerArguments(outcome).outcome_of(4) == outcome  # what is kept can be told again


def test_the_leader_is_the_first_that_nothing_beats():
    for outcome, expected in [
        ({"chosen": 2}, 2),
        ({"chosen": [1, 3]}, 1),
        ({"worst": 0}, 1),
        ({"worst": 3}, 0),
        ({"ranking": [3, 1]}, 3),
    ]:
        assert best_position(outcome, 4) == expected
    assert [best_position(outcome, 2) for outcome in (1, 0, "tie")] == [0, 1, 0]


REFUSED = [
    (3, AnswerArguments(chosen=3), ValueError, "chosen must be a position from 0 to 2, got 3"),
    (3, AnswerArguments(worst=-1), ValueError, "worst must be a position from 0 to 2, got -1"),
    (
        3,
        AnswerArguments(chosen=True),
        TypeError,
        "chosen must be a position, an integer from 0 to 2, got True",
    ),
    (3, AnswerArguments(chosen=1.0), TypeError, "of type float"),
    (3, AnswerArguments(chosen="best"), TypeError, "of type str"),
    (3, AnswerArguments(chosen=[]), ValueError, "got 0 of 3 items as chosen=.*1 to 2 are allowed"),
    (3, AnswerArguments(chosen=[0, 1, 2]), ValueError, "got 3 of 3 items as chosen="),
    (3, AnswerArguments(chosen=[0, 0]), ValueError, r"every position at most once, got \[0, 0\]"),
    (3, AnswerArguments(chosen=[0, 3]), ValueError, "a position of chosen must be .* 2, got 3"),
    (3, AnswerArguments(chosen=[True, 2]), TypeError, "a position of chosen.*got True"),
    (3, AnswerArguments(chosen=[0, 1], worst=1), ValueError, "The item 1 cannot be both"),
    (3, AnswerArguments(chosen=1, worst=1), ValueError, "cannot be both the best and the worst"),
    (
        3,
        AnswerArguments(chosen=1, ranking=[0, 1]),
        ValueError,
        "ranking= is a whole answer; got more .*chosen=1",
    ),
    (
        3,
        AnswerArguments(ranking=[0, 0, 1]),
        ValueError,
        r"every position at most once, got \[0, 0, 1\]",
    ),
    (3, AnswerArguments(ranking=[2]), ValueError, r"two positions or more, got \[2\]"),
    (3, AnswerArguments(ranking=[0, 3]), ValueError, "from 0 to 2, got 3"),
    (3, AnswerArguments(ranking="012"), TypeError, "must be a list of positions"),
    (3, AnswerArguments(ranking=2), TypeError, "must be a list of positions"),
    (
        3,
        AnswerArguments(1),
        ValueError,
        "The answer to 3 items is told by chosen=.*got the outcome 1",
    ),
    (3, AnswerArguments("tie"), ValueError, "The answer to 3 items is told by chosen="),
    (3, AnswerArguments(), ValueError, "Nothing was answered"),
    (
        3,
        AnswerArguments(None, chosen=1),
        ValueError,
        "Tell one answer, got the outcome None, chosen=1",
    ),
    (2, AnswerArguments(1, chosen=0), ValueError, "Tell one answer, got the outcome 1, chosen=0"),
    (2, AnswerArguments(2.5), ValueError, "Outcomes of duels must be in .*'tie' or 0.5.*got 2.5"),
    (2, AnswerArguments("draw"), ValueError, "Outcomes of duels must be in .*got 'draw'"),
    (2, AnswerArguments([1, 0]), ValueError, "One outcome is told at a time, got 2"),
    (
        3,
        AnswerArguments({"chosen": 1, "best": 2}),
        ValueError,
        "has the keys 'chosen', 'worst' or both",
    ),
    (3, AnswerArguments({}), ValueError, "has the keys"),
    (3, AnswerArguments({"chosen": 1}, worst=0), ValueError, "nothing is said beside it"),
]


@pytest.mark.parametrize(("n", "said", "error", "message"), REFUSED)
def test_what_is_no_answer_is_refused(n, said, error, message):
    with pytest.raises(error, match=message):
        said.outcome_of(n)
    if said.outcome is not NO_OUTCOME and said.outcome is not None:
        return
    made = HallucinationBelieverOptimizer([[0.0, 1.0]], random_state=0)
    shown = made.ask(size=n)
    told = {name: part for name, part in said._asdict().items() if part is not None}
    told.pop("outcome", None)
    with pytest.raises(error):
        made.tell(shown, *([None] if said.outcome is None else []), **told)
    assert made.n_told_ == 0
    np.testing.assert_array_equal(made.ask(size=n), shown)
