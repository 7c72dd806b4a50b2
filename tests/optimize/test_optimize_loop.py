"""The loop that asks a function: what it calls, when it stops, and the bars it shows."""

import sys
import types

import numpy as np
import pytest
from progress_support import needs_callbacks

from skpref.optimize import HallucinationBelieverOptimizer
from skpref.optimize._asking import Asking


class Halving(Asking):
    """Looks for a number in (0, 1) by halving; each answer is one event."""

    def __init__(self):
        self.edges, self.skipped = [(0.0, 1.0)], 0

    def ask(self):
        low, high = self.edges[-1]
        return low, high

    def tell(self, duel, outcome):
        low, high = duel
        middle = 0.5 * (low + high)
        self.edges.append((low, middle) if outcome else (middle, high))
        return self

    def skip(self, duel):
        self.skipped += 1
        return self

    def undo(self):
        self.edges.pop()

    def recommend(self):
        return sum(self.edges[-1]) / 2

    @property
    def n_told_(self):
        return len(self.edges) - 1


class Recorder:
    """A scikit-learn callback that writes down what it is called with."""

    def __init__(self, stop_after=None):
        self.events, self._stop_after = [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name} {context.task_id}")

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {context.task_name} {context.task_id}")
        return context.task_name == "duel" and context.task_id == self._stop_after


class FakeBar:
    """Of tqdm's interface what is used."""

    made = None

    def __init__(self, total, unit):
        self.total, self.n, self.closed = total, 0, False
        FakeBar.made = self

    def __enter__(self):
        return self

    def update(self):
        self.n += 1

    def __exit__(self, *_):
        self.closed = True


@pytest.fixture
def no_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


@pytest.fixture
def tqdm(monkeypatch):
    monkeypatch.setattr(FakeBar, "made", None)
    module = types.ModuleType("tqdm.auto")
    module.tqdm = FakeBar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)


def closer(first, second, goal=0.3):
    return abs(first - goal) < abs(second - goal)


def breaks(first, second):
    raise RuntimeError("the judge left")


def test_the_loop_asks_until_enough_is_told():
    made = Halving()
    assert made.run(closer, 20) == pytest.approx(0.3, abs=1e-5)
    assert made.n_told_ == 20
    made.run(closer, 5)
    assert made.n_told_ == 25


def test_skips_and_stops():
    answers = iter([None, True, None, None, False, True])
    made, seen = Halving(), []

    def callback(asker):
        seen.append(asker.n_told_)
        return asker.n_told_ == 2

    made.run(lambda first, second: next(answers), 5, callback)
    assert (made.n_told_, made.skipped, seen) == (2, 3, [1, 2])
    with pytest.raises(ValueError, match="n_duels must lie in"):
        made.run(closer, 0)


def test_numpy_truth_stops_and_other_values_do_not():
    made = Halving()
    made.run(closer, 5, lambda asker: np.bool_(asker.n_told_ == 2))
    assert made.n_told_ == 2
    made.run(closer, 3, lambda asker: 1)
    assert made.n_told_ == 5


def test_a_callback_may_take_answers_back():
    made, undone = Halving(), []

    def callback(asker):
        if len(undone) < 4:
            undone.append(asker.undo())

    made.run(closer, 3, callback)
    assert made.n_told_ == 3


@needs_callbacks
def test_an_answer_taken_back_is_the_same_task():
    made, undone, recorder = Halving(), [], Recorder()

    def callback(asker):
        if len(undone) < 4:
            undone.append(asker.undo())

    made.set_callbacks(recorder).run(closer, 3, callback)
    assert made.n_told_ == 3 and recorder.events.count("end duel 2") == 5


@needs_callbacks
def test_scikit_learn_callbacks_see_every_duel():
    recorder = Recorder()
    assert isinstance(recorder, pytest.importorskip("sklearn.callback").FitCallback)
    made = Halving().set_callbacks(recorder)
    made.run(closer, 2)
    duels = ["begin duel 0", "end duel 0", "begin duel 1", "end duel 1"]
    assert recorder.events == ["setup", "begin run 0", *duels, "end run 0", "teardown"]
    made.run(closer, 1)
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 2


@needs_callbacks
def test_a_scikit_learn_callback_may_stop_the_run():
    made = Halving().set_callbacks(Recorder(stop_after=2))
    made.run(closer, 10)
    assert made.n_told_ == 3


@needs_callbacks
def test_callbacks_are_closed_when_the_judge_fails():
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="the judge left"):
        Halving().set_callbacks(recorder).run(breaks, 3)
    assert recorder.events[-1] == "teardown"


def test_the_bar_of_tqdm(tqdm):
    Halving().run(closer, 7)
    assert FakeBar.made is None
    Halving().run(closer, 7, progress=True)
    assert (FakeBar.made.total, FakeBar.made.n, FakeBar.made.closed) == (7, 7, True)
    with pytest.raises(RuntimeError, match="the judge left"):
        Halving().run(breaks, 3, progress=True)
    assert (FakeBar.made.n, FakeBar.made.closed) == (0, True)


def test_without_tqdm_and_rich_there_is_no_bar(no_tqdm, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert Halving().run(closer, 20, progress=True) == pytest.approx(0.3, abs=1e-5)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("set_by_hand", [True, False])
def test_the_bar_of_scikit_learn(no_tqdm, capsys, set_by_hand):
    pytest.importorskip("rich")
    bar = pytest.importorskip("sklearn.callback").ProgressBar()
    made = Halving()
    if set_by_hand:
        made.set_callbacks(bar)
    made.run(closer, 6, progress=not set_by_hand)
    shown = capsys.readouterr().out
    assert "Halving - run" in shown
    assert "100%" in shown
    with pytest.raises(RuntimeError, match="the judge left"):  # and its thread ends
        made.run(breaks, 3, progress=not set_by_hand)


def test_a_judge_without_a_return_is_told_so():
    made = HallucinationBelieverOptimizer([(0.0, 1.0)], random_state=0)
    with pytest.raises(ValueError, match="returned None, which skips a duel, 100 times in a row"):
        made.run(lambda first, second: None, 3)
    assert made.n_told_ == 0
