"""A judge without a browser: messages as the page sends them, values as it is given them."""

import json
import re

import numpy as np
import pytest

from skpref import HallucinationBelieverOptimizer, PairwisePreferenceRegressor, PreferenceOptimizer
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.optimize import ActiveLearner, AlreadyAnswered, Question
from skpref.plotting import OptimizationDisplay
from skpref.widgets import Judge
from skpref.widgets._choices import duel_choices
from skpref.widgets._panel import run_course

pytest.importorskip("anywidget")

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def optimizer(**options):
    return HallucinationBelieverOptimizer(SPACE, random_state=0, **options)


def good(item):
    return -abs(item["x"] - 0.3) - abs(item["y"] - 0.6)


def best(items):
    return int(np.argmax([good(item) for item in items]))


def send(judge, kind="answer", **more):
    """A message, by the way that one of the page takes."""
    message = {"type": kind, "number": judge.widget.question["number"], **more}
    plain = json.loads(json.dumps(message))
    judge.widget._handle_custom_msg(plain, [])


def page(judge):
    return judge.widget.question


def status(judge):
    return judge.widget.status


def answered(judge):
    """What a page would send of the best item."""
    items, kind = judge.question, page(judge)["kind"]
    if kind == "duel":
        return int(best(items) == 0)
    return {"chosen" if kind == "set" else "position": best(items)}


def same_history(one, two):
    assert len(one.history_) == len(two.history_)
    for first, second in zip(one.history_, two.history_, strict=True):
        assert first == second


# --- questions and answers ------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"size": 4},
        {"kind": "line"},
        {"kind": "plane", "size": 2},
        {"kind": ("duel", "set", "line"), "size": {"set": 3, "line": 3}},
    ],
)
def test_answers_on_the_page_are_those_of_ask_and_tell(form):
    judge, other = Judge(optimizer(n_initial=2), **form), optimizer(n_initial=2)
    for _ in range(5):
        asked = other.ask(**form)
        assert judge.question == asked
        outcome = answered(judge)
        send(judge, outcome=outcome)
        other.tell(asked, outcome)
    same_history(judge.optimizer, other)
    assert judge.recommend() == other.recommend()
    assert status(judge)["told"] == 5


def test_the_page_says_what_is_asked():
    judge = Judge(optimizer(), lambda item: f"{item['x']:.3f}")
    found = page(judge)
    assert found["kind"] == "duel"
    assert found["prompt"] == "Which is better?"
    assert [each["text"] for each in found["items"]] == [f"{i['x']:.3f}" for i in judge.question]
    for kind in ("line", "plane"):
        judge = Judge(optimizer(), kind=kind, prompt="Now?")
        assert page(judge)["kind"] == kind
        assert page(judge)["prompt"] == "Now?"
        assert len(page(judge)["items"]) == len(judge.question)


def test_what_show_does_to_an_item_changes_nothing():
    judge = Judge(optimizer(), lambda item: str(item.pop("x")))
    assert judge.question == judge.optimizer.ask()
    send(judge, outcome=1)
    assert status(judge)["notice"] == ""
    assert set(judge.recommend()) == {"x", "y"}


def test_integers_leave_points_of_a_plane_out():
    space = {"a": (1, 3), "b": (1, 3)}
    judge = Judge(PreferenceOptimizer(space, random_state=0), kind="plane")
    assert len(judge.question) < 25
    send(judge, outcome={"position": 3})
    [told] = judge.optimizer.history_
    assert told.items[told.outcome["chosen"]] == told.items[3]


@pytest.mark.parametrize(
    ("way", "outcome"),
    [
        ("best", {"chosen": 2}),
        ("best_worst", {"chosen": 1, "worst": 3}),
        ("ranking", {"ranking": [2, 0, 1]}),
    ],
)
def test_sets_are_answered_in_several_ways(way, outcome):
    judge = Judge(optimizer(), size=4, answer=way)
    assert page(judge)["answer"] == way
    send(judge, outcome=outcome)
    assert judge.optimizer.history_[-1].outcome == outcome


@pytest.mark.parametrize("form", [{}, {"size": 3}])
def test_items_are_shown_in_an_order_of_their_own(form, tmp_path):
    path = tmp_path / "run.db"
    judge, turned = Judge(optimizer(journal=path), shuffle=True, **form), []
    for step in range(8):
        [asked] = judge.optimizer.pending_
        again = Judge(HallucinationBelieverOptimizer(SPACE, journal=path), shuffle=True, **form)
        assert again.question == judge.question  # also when the notebook is opened anew
        shown = judge.question
        turned.append([asked.index(item) for item in shown])
        assert sorted(turned[-1]) == list(range(len(asked)))
        send(judge, outcome=answered(judge))
        told = judge.optimizer.history_[-1]
        assert told.items == shown
        assert told.outcome == ({"chosen": best(shown)} if form else int(best(shown) == 0))
        assert asked not in judge.optimizer.pending_
        assert status(judge)["told"] == step + 1
    assert len(set(map(tuple, turned))) > 1


def test_the_orders_of_lines_arrays_and_learners():
    line = Judge(optimizer(), kind="line", shuffle=True)
    assert line.question == line.optimizer.ask(kind="line")
    box = Judge(HallucinationBelieverOptimizer([(0.0, 1.0)], random_state=0), shuffle=True)
    np.testing.assert_array_equal(
        np.sort(box.question, axis=0), np.sort(box.optimizer.ask(), axis=0)
    )
    model, items = CollaborativePreferenceRegressor(optimizer=None), np.eye(4)
    learner = ActiveLearner(model, items, users=["ann"], random_state=0)
    judge = Judge(learner, shuffle=True)
    for _ in range(3):
        asked = judge.question
        assert asked.user == "ann"
        send(judge, outcome=1)
        np.testing.assert_array_equal(learner.history_[-1].items.duel, asked.duel)


def test_skip_and_undo():
    judge = Judge(optimizer())
    first = judge.question
    send(judge, "skip")
    second = judge.question
    assert second != first
    assert judge.optimizer.n_told_ == 0
    send(judge, outcome=1)
    send(judge, "undo")
    assert judge.question == second
    send(judge, "undo")
    assert judge.question == first
    send(judge, "undo")
    assert "nothing to undo" in status(judge)["notice"]
    assert judge.question == first


def test_a_message_that_comes_twice_counts_once():
    judge = Judge(optimizer())
    number = page(judge)["number"]
    send(judge, outcome=1)
    asked = judge.question
    for kind in ("answer", "skip", "undo"):
        judge.widget._handle_custom_msg({"type": kind, "number": number, "outcome": 0}, [])
    assert judge.optimizer.n_told_ == 1
    assert judge.question == asked


# --- what may be answered -------------------------------------------------------------------


def outcomes(judge):
    return [each["outcome"] for each in page(judge)["choices"]]


def test_ties_and_grades_are_offered_where_the_model_has_them():
    assert outcomes(Judge(optimizer())) == [1, "tie", 0]
    graded = optimizer(grade_thresholds=(0.3, 0.8), tie_threshold=0.1)
    assert outcomes(Judge(graded)) == [3, 2, 1, "tie", 0, -2, -3]
    items = np.linspace(0.0, 1.0, 5)[:, None]
    learner = ActiveLearner(PairwisePreferenceRegressor(), items, random_state=0)
    assert outcomes(Judge(learner)) == [1, 0]
    learner = ActiveLearner(PairwisePreferenceRegressor(tie_threshold=0.1), items, random_state=0)
    assert outcomes(Judge(learner)) == [1, "tie", 0]


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
def test_every_answer_offered_is_taken(levels):
    thresholds = tuple(np.arange(1, levels) / 4.0) or None
    judge = Judge(optimizer(grade_thresholds=thresholds, tie_threshold=0.1))
    scale = judge.optimizer._scale()
    choices = duel_choices(scale)
    assert len(choices) == scale.n_columns
    assert len({(each["label"], each["side"]) for each in choices}) == len(choices)
    for each in choices:
        send(judge, outcome=each["outcome"])
        assert judge.optimizer.history_[-1].outcome == each["outcome"]
    assert status(judge)["told"] == len(choices)
    sides = [each["side"] for each in choices]
    assert sides == [0] * levels + [None] + [1] * levels


def test_an_answer_that_is_not_taken_is_said_and_changes_nothing():
    judge = Judge(optimizer())
    asked, number = judge.question, page(judge)["number"]
    for outcome in (7, "maybe", {"chosen": 9}):
        before = status(judge)["number"]
        send(judge, outcome=outcome)
        assert re.match(r"(Value|Type)Error: ", status(judge)["notice"])
        assert status(judge)["number"] > before  # the page hears of it
    assert judge.question == asked
    assert page(judge)["number"] == number
    send(judge, outcome=1)
    assert status(judge)["notice"] == ""
    assert judge.optimizer.n_told_ == 1


# --- the slider -----------------------------------------------------------------------------


def test_a_place_between_points_is_shown_and_told():
    judge = Judge(optimizer(), lambda item: np.full((2, 2), item["x"]), kind="line")
    heard = []
    judge.widget.send = lambda content, buffers: heard.append((content, buffers))
    points = judge.question
    send(judge, "look", position=2.25)
    [(content, buffers)] = heard
    assert content["position"] == 2.25
    assert content["stimulus"] == {"mime": "image/png"}
    assert buffers[0].startswith(b"\x89PNG")
    assert judge.optimizer.n_told_ == 0
    between = judge.optimizer.item_at(points, 2.25)
    np.testing.assert_allclose(between["x"], 0.75 * points[2]["x"] + 0.25 * points[3]["x"])
    send(judge, outcome={"position": 2.25})
    assert judge.optimizer.history_[-1].items[3] == between


def test_a_place_that_cannot_be_shown_is_said_in_its_place():
    shown = []

    def show(item):
        shown.append(item)
        if len(shown) > 9:
            raise RuntimeError("no such sound")
        return "sound"

    judge = Judge(optimizer(), show, kind="line")
    heard = []
    judge.widget.send = lambda content, buffers: heard.append((content, buffers))
    send(judge, "look", position=0.5)
    assert heard[0][0]["stimulus"]["text"] == "RuntimeError: no such sound"


# --- the end --------------------------------------------------------------------------------


def test_it_stops_after_so_many_answers_and_goes_on():
    judge = Judge(optimizer(), n_duels=3)
    for _ in range(3):
        send(judge, outcome=int(best(judge.question) == 0))
    assert judge.question is None
    assert page(judge)["kind"] == "end"
    assert len(page(judge)["items"]) == 1
    assert "3 answers" in status(judge)["end"]
    with pytest.raises(ValueError, match="at its end"):
        judge.answer(1)
    send(judge, "undo")
    assert page(judge)["kind"] == "duel"
    send(judge, outcome=1)
    send(judge, "go_on")
    send(judge, outcome=1)
    assert judge.optimizer.n_told_ == 4


def test_it_stops_where_run_stops():
    options = {"n_initial": 3}
    other = HallucinationBelieverOptimizer([(0.0, 1.0)], random_state=1, **options)
    other.run(lambda a, b: abs(a[0] - 0.3) < abs(b[0] - 0.3), 40, until=0.5, within=0.2)
    assert 3 <= other.n_told_ < 40
    mine = HallucinationBelieverOptimizer([(0.0, 1.0)], random_state=1, **options)
    judge = Judge(mine, until=0.5, within=0.2)
    while judge.question is not None:
        first, second = judge.question
        judge.answer(bool(abs(first[0] - 0.3) < abs(second[0] - 0.3)))
    assert mine.n_told_ == other.n_told_
    assert "probability of at least 0.5" in status(judge)["end"]
    again = Judge(mine, until=0.5, within=0.2)  # a cell that is run again
    assert again.question is None


def test_a_small_pool_ends():
    pool = np.array([[0.0], [0.5], [1.0]])
    learner = ActiveLearner(PairwisePreferenceRegressor(optimizer=None), pool, random_state=0)
    judge = Judge(learner)
    for _ in range(3):
        send(judge, outcome=1)
    assert page(judge)["kind"] == "end"
    assert "No duel is left" in status(judge)["end"]


# --- runs that go on ------------------------------------------------------------------------


def test_nothing_is_lost_with_a_journal(tmp_path):
    path = tmp_path / "run.db"
    judge = Judge(optimizer(journal=path))
    for _ in range(3):
        send(judge, outcome=1)
    asked = judge.question
    again = Judge(HallucinationBelieverOptimizer(SPACE, journal=path))
    assert again.question == asked
    assert status(again)["told"] == 3
    send(again, "undo")
    assert again.optimizer.n_told_ == 2


def test_what_is_told_elsewhere_is_seen():
    judge = Judge(optimizer())
    judge.optimizer.tell(judge.question, 1)
    judge.refresh()
    assert status(judge)["told"] == 1
    assert judge.question == judge.optimizer.ask()


def test_another_process_that_was_first_is_named(tmp_path, monkeypatch):
    judge = Judge(optimizer())
    asked = judge.question

    def tell(items, outcome):
        raise AlreadyAnswered("This duel was asked once.")

    monkeypatch.setattr(judge.optimizer, "tell", tell)
    number = page(judge)["number"]
    send(judge, outcome=1)
    assert status(judge)["notice"] == "This duel was asked once."
    assert page(judge)["number"] > number
    assert judge.question == asked


def test_a_question_that_cannot_be_shown_is_skipped():
    broken = []

    def show(item):
        if broken:
            raise RuntimeError("out of paper")
        return "fine"

    judge = Judge(optimizer(), show)
    broken.append(True)
    send(judge, outcome=1)
    assert page(judge)["kind"] == "broken"
    assert status(judge)["notice"] == "RuntimeError: out of paper"
    assert status(judge)["told"] == 1
    broken.clear()
    send(judge, "skip")
    assert page(judge)["kind"] == "duel"
    broken.append(True)
    with pytest.raises(RuntimeError, match="out of paper"):
        Judge(optimizer(), show)


# --- learners -------------------------------------------------------------------------------


def test_a_learner_of_several_users_says_whom_it_asks():
    model = CollaborativePreferenceRegressor(optimizer=None)
    items = np.linspace(0.0, 1.0, 6)[:, None]
    learner = ActiveLearner(model, items, users=["ann", "bob"], random_state=0)
    judge = Judge(learner, user="bob")
    assert isinstance(judge.question, Question)
    assert page(judge)["prompt"] == "bob: Which is better?"
    for _ in range(2):
        send(judge, outcome=1)
    assert [each.items.user for each in learner.history_] == ["bob", "bob"]
    assert judge.recommend().shape == (1,)
    assert status(judge)["course"] is None


# --- the last answers -----------------------------------------------------------------------


def test_the_strip_says_what_the_last_answers_chose():
    judge = Judge(optimizer(grade_thresholds=(0.3, 0.8), tie_threshold=0.1), n_duels=13)
    assert status(judge)["history"] == []
    chosen = []
    for outcome in (3, 1, 0, -2, -3, "tie", 1, 0, 1, 0, 1, 2):
        first, second = judge.question
        item = "no difference" if outcome == "tie" else first if outcome > 0 else second
        chosen.append(item if item == "no difference" else f"x={item['x']:.4g}, y={item['y']:.4g}")
        send(judge, outcome=outcome)
        assert [each["text"] for each in status(judge)["history"]] == chosen[-10:]
    course = status(judge)["course"]
    assert course["chosen"] == [0, 0, 1, 1, 1, None, 0, 1, 0, 1, 0, 0]
    send(judge, "undo")
    assert [each["text"] for each in status(judge)["history"]] == chosen[1:11]


def test_the_strip_of_sets_says_who_won():
    judge = Judge(optimizer(), size=3)
    names = [f"x={item['x']:.4g}, y={item['y']:.4g}" for item in judge.question]
    send(judge, outcome={"ranking": [2, 0, 1]})
    send(judge, outcome={"chosen": [0, 2]})
    send(judge, outcome={"none": True})
    texts = [each["text"] for each in status(judge)["history"]]
    assert texts == [names[2], "several", "none"]


# --- the course -----------------------------------------------------------------------------


def test_the_course_is_that_of_the_display():
    pytest.importorskip("matplotlib").use("Agg")
    run = optimizer()
    run.run(lambda *items: {"chosen": best(items), "worst": 0} if best(items) else None, 4, size=3)
    run.tell(run.ask(), "tie")
    display = OptimizationDisplay.from_optimizer(run)
    found = run_course(run)
    np.testing.assert_allclose(found["best"], display.best_.get_ydata())
    np.testing.assert_allclose(found["lower"], display.lower[display.best])
    np.testing.assert_allclose(found["upper"], display.upper[display.best])
    chosen = [
        values[place]
        for values, place in zip(found["shown"], found["chosen"], strict=True)
        if place is not None
    ]
    np.testing.assert_allclose(chosen, display.winners_.get_ydata())
    assert found["chosen"][-1] is None
    json.dumps(found, allow_nan=False)


# --- arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"show": "picture"}, TypeError, "a function of an item"),
        ({"answer": "worst"}, ValueError, "answer"),
        ({"answer": "ranking"}, ValueError, "sets of more than two.*size=4"),
        ({"answer": "best_worst", "kind": "line"}, ValueError, "sets of more than two"),
        ({"kind": "circle"}, ValueError, "kind"),
        ({"kind": "line", "size": 1}, ValueError, "size"),
        ({"until": 1.5}, ValueError, "until"),
        ({"within": 0.1}, ValueError, "until="),
        ({"n_duels": 0}, ValueError, "n_duels"),
        ({"user": "ann"}, ValueError, "ActiveLearner with users"),
        ({"show": lambda item: 3}, TypeError, "show returned 3 of type int"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_told(options, error, words):
    with pytest.raises(error, match=words):
        Judge(optimizer(), **options)


def test_other_things_are_no_optimizers():
    with pytest.raises(TypeError, match=r"got 3 of type int"):
        Judge(3)
    learner = ActiveLearner(PairwisePreferenceRegressor(), np.eye(3), random_state=0)
    for options in ({"until": 0.9}, {"size": 4}, {"kind": "line"}):
        with pytest.raises(ValueError, match="ActiveLearner"):
            Judge(learner, **options)


def test_a_program_answers_as_a_click_does():
    judge = Judge(optimizer())
    asked = judge.question
    judge.answer("tie")
    assert judge.optimizer.history_[-1].outcome == "tie"
    judge.answer(None)
    assert judge.optimizer.n_told_ == 1
    assert judge.question != asked
    assert repr(judge).startswith("<Judge of <HallucinationBelieverOptimizer")
    assert "application/vnd.jupyter.widget-view+json" in judge._repr_mimebundle_()[0]
