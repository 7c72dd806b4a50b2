"""Answers that none is good enough: an outside option whose utility is learned."""

import pickle

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from skpref import PairwisePreferenceRegressor, PreferenceOptimizer
from skpref.duels import ItemTable, add_outside_option
from skpref.kernels import outside_option_kernel
from skpref.optimize import ActiveLearner, read_journal

pytestmark = pytest.mark.usefixtures("brief")

SQUARE = [[0.0, 1.0]] * 2
FIXED = {
    "kernel": Matern([0.4, 0.4], "fixed", nu=1.5),
    "noise_variance": 0.1,
    "noise_variance_bounds": "fixed",
    "inference": "ep",
    "random_state": 0,
}


def taste(item):
    return -float(np.sum((np.asarray(item) - 0.4) ** 2))


def answered(optimizer, n, least=-0.05, **form):
    """Answer n questions, some with none; return the questions."""
    questions = []
    for _ in range(n):
        items = optimizer.ask(**form)
        questions.append(items)
        values = [taste(item) for item in items]
        best = int(np.argmax(values))
        if max(values) < least:
            optimizer.tell(items, none=True)
        else:
            optimizer.tell(items, chosen=best, none=False)
    return questions


@pytest.mark.parametrize(
    ("answer", "position"),
    [({"none": True}, 2), ({"outcome": 1, "none": False}, 0), ({"chosen": 1, "none": False}, 1)],
)
def test_an_answer_about_none_of_a_duel_is_a_choice_among_three(answer, position):
    sets = np.random.default_rng(0).random((3, 2, 2))
    optimizer = PreferenceOptimizer(SQUARE, **FIXED)
    for items in sets:
        optimizer.tell(items, **answer)
    kernel = outside_option_kernel(FIXED["kernel"], 2)
    shown = add_outside_option(sets)
    model = PairwisePreferenceRegressor(
        kernel, noise_variance=0.1, optimizer=None, inference="ep"
    ).fit(shown, [position] * 3)
    rows = np.random.default_rng(1).random((5, 2))
    padded = np.column_stack([rows, np.ones(5), np.zeros(5)])
    np.testing.assert_allclose(optimizer.posterior_.mean(rows), model.predict(padded), atol=1e-6)


def test_items_near_those_that_none_of_was_chosen_become_worse_and_the_far_do_not():
    optimizer = PreferenceOptimizer(SQUARE, **FIXED)
    for shift in (0.0, 0.02, 0.04):
        optimizer.tell([[0.1, 0.1 + shift], [0.1 + shift, 0.15]], none=True)
    near, far = optimizer.posterior_.mean(np.array([[0.1, 0.1], [0.9, 0.9]]))
    assert near < -0.3
    assert abs(far) < 0.3 * abs(near)


def test_several_and_all_may_be_good_enough():
    items = np.array([[0.1, 0.1], [0.5, 0.9], [0.9, 0.2]])
    optimizer = PreferenceOptimizer(SQUARE, **FIXED).tell(items, chosen=[0, 1, 2], none=False)
    optimizer.tell(items, chosen=[0, 2], none=False)
    assert [outcome for _, outcome in optimizer.history_] == [
        {"chosen": [0, 1, 2], "none": False},
        {"chosen": [0, 2], "none": False},
    ]
    mean = optimizer.posterior_.mean(items)
    assert mean[1] < min(mean[0], mean[2])
    mirrored = items[:, ::-1]
    again = PreferenceOptimizer(SQUARE, **FIXED)
    for entry in optimizer.history_:
        again.tell(entry.items[:, ::-1], entry.outcome)
    np.testing.assert_allclose(again.posterior_.mean(mirrored), mean, atol=1e-8)


def test_the_last_winner_is_that_of_the_last_answer_that_has_one():
    optimizer = PreferenceOptimizer(SQUARE, incumbent="last_winner", random_state=0)
    optimizer.tell([[0.3, 0.3], [0.8, 0.8]], 1).tell([[0.1, 0.9], [0.9, 0.1]], none=True)
    np.testing.assert_array_equal(optimizer.incumbent_, [0.3, 0.3])


@pytest.mark.parametrize("form", [{}, {"size": 4}, {"kind": "line"}])
def test_questions_after_none_go_on_and_the_best_is_recommended(form):
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    answered(optimizer, 8, **form)
    told = [outcome["none"] for _, outcome in optimizer.history_]
    assert any(told)
    assert not all(told)
    assert taste(optimizer.recommend()) > -0.05
    assert np.isfinite(optimizer.expected_gain_.share)


def test_a_journal_a_pickle_and_undo_know_of_none(tmp_path):
    path = tmp_path / "run.db"
    optimizer = PreferenceOptimizer(SQUARE, journal=path, random_state=0)
    answered(optimizer, 6)
    following = optimizer.ask()
    np.testing.assert_array_equal(PreferenceOptimizer(SQUARE, journal=path).ask(), following)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(optimizer)).ask(), following)
    outcomes = [each for each in read_journal(path)["outcome"] if each is not None]
    assert outcomes == [outcome for _, outcome in optimizer.history_]
    optimizer.tell(following, none=True)
    optimizer.undo()
    np.testing.assert_array_equal(optimizer.ask(), following)
    without = PreferenceOptimizer(SQUARE, random_state=0)
    items = without.ask()
    without.tell(items, 1)
    unmoved = without.ask()
    without.tell(unmoved, none=True)
    without.undo()
    np.testing.assert_array_equal(without.ask(), unmoved)


def test_earlier_people_and_none(tmp_path):
    path = tmp_path / "earlier.db"
    answered(PreferenceOptimizer(SQUARE, journal=path, random_state=1), 8, least=-0.2)
    optimizer = PreferenceOptimizer(SQUARE, earlier=path, random_state=0)
    answered(optimizer, 3, least=-0.001)
    assert taste(optimizer.recommend()) > -0.1


def test_none_of_names_and_by_a_function():
    colours = {"red": -2.0, "green": 0.5, "blue": 1.0, "grey": -1.0}

    def compare(first, second):
        if max(colours[first], colours[second]) < 0.0:
            return {"none": True}
        return {"chosen": int(colours[second] > colours[first]), "none": False}

    optimizer = PreferenceOptimizer(
        candidates=ItemTable.from_names([*colours]), random_state=0, n_initial=6
    )
    optimizer.tell(("red", "grey"), compare("red", "grey"))
    assert optimizer.run(compare, n_duels=6) == "blue"
    assert optimizer.history_[0] == (("red", "grey"), {"none": True})


def test_an_item_of_an_earlier_question_may_be_in_an_answer():
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    first = optimizer.ask()
    optimizer.tell(first, 1)
    question = optimizer.ask()
    optimizer.tell([question[0], first[0]], "tie")
    assert optimizer.n_told_ == 2
    np.testing.assert_array_equal(optimizer.ask(), question)
    np.testing.assert_array_equal(optimizer.history_[1].items, [question[0], first[0]])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"outcome": 1, "none": True}, ValueError, "none=True is a whole answer.*chosen=0"),
        ({"chosen": 1, "none": True}, ValueError, "none=True is a whole answer"),
        ({"none": False}, ValueError, "none=False says that what is chosen"),
        ({"outcome": "tie", "none": False}, ValueError, "outcome='tie'.*Give chosen="),
        ({"worst": 1, "none": False}, ValueError, "worst=1"),
        ({"ranking": [1, 0], "none": False}, ValueError, "ranking="),
        ({"outcome": 1, "chosen": 0, "none": False}, ValueError, "outcome=1, chosen=0"),
        ({"position": 1, "none": False}, ValueError, "position= is a whole answer"),
        ({"none": 1}, TypeError, "none must be True, False or None, got 1"),
        ({"outcome": {"none": True}, "chosen": 0}, ValueError, "nothing is said beside it"),
    ],
)
def test_what_is_no_answer_about_none_is_refused(arguments, error, message):
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    with pytest.raises(error, match=message):
        optimizer.tell([[0.1, 0.1], [0.2, 0.2]], **arguments)
    assert optimizer.n_told_ == 0


def test_what_has_no_outside_option_refuses_none():
    items = [[0.1, 0.1], [0.2, 0.2]]
    moving = PreferenceOptimizer(SQUARE, forgetting_rate=0.1, random_state=0)
    with pytest.raises(ValueError, match="got none= of an optimizer with forgetting_rate="):
        moving.tell(items, none=True)
    learner = ActiveLearner(PairwisePreferenceRegressor(), np.array(items))
    with pytest.raises(ValueError, match="A learner takes no none="):
        learner.tell(items, {"none": True})
    laplace = PreferenceOptimizer(SQUARE, inference="laplace", random_state=0)
    with pytest.raises(ValueError, match="Laplace"):
        laplace.tell(items, none=True)
