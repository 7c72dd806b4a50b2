"""The sampler against storages: in memory, SQLite, workers in processes and threads."""

import os
import pickle
import shutil
import signal
import threading
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("optuna_dashboard")

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial
from optuna_dashboard._preferential_history import (
    NewHistory,
    remove_history,
    report_history,
    restore_history,
)
from optuna_dashboard.preferential import create_study, load_study
from optuna_dashboard.preferential._system_attrs import report_skip
from sklearn.exceptions import NotFittedError

from skpref.integrations._optuna_space import StudySpace
from skpref.integrations._optuna_study import Judged
from skpref.integrations.optuna import PreferentialSampler
from skpref.optimize import PreferenceOptimizer

optuna.logging.set_verbosity(optuna.logging.ERROR)
LINE = {"x": FloatDistribution(0.0, 1.0)}
PLANE = LINE | {"y": FloatDistribution(0.0, 1.0)}


def begin(n_generate=2, storage=None, **options):
    return create_study(
        n_generate=n_generate,
        study_name="judged",
        storage=storage,
        sampler=PreferentialSampler(**({"seed": 0} | options)),
        load_if_exists=True,
    )


def judged(study):
    return Judged.read(study._study)


def active(study):
    trials = study.trials
    return [trials[number] for number in judged(study).active]


def fill(study, space=LINE):
    while study.should_generate():
        study.ask(space)


def distance(trial):
    return sum(abs(value - 0.3) for value in trial.params.values())


def click_worst(study, badness=distance):
    """What the page does on a click; the id of the answer."""
    shown = active(study)
    worst = max(shown, key=badness)
    clicked = NewHistory("ChooseWorst", [each.number for each in shown], worst.number)
    return report_history(study._study._study_id, study._study._storage, clicked)


def run(study, n, space=LINE, badness=distance):
    for _ in range(n):
        fill(study, space)
        ids = click_worst(study, badness)
    return ids


def points(trials):
    return [tuple(each.params.values()) for each in trials]


# -- answers ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n_generate", [2, 3, 5])
def test_the_best_is_found(n_generate):
    study = begin(n_generate)
    run(study, 9)
    assert abs(study._study.sampler.recommend(study).params["x"] - 0.3) < 0.08
    assert len(active(study)) == n_generate - 1


@pytest.mark.slow
def test_the_same_answers_told_give_the_same_posterior():
    study = begin(3)
    run(study, 6, PLANE)
    told, trials = PreferenceOptimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}), study.trials
    for answer in judged(study).answers:
        told.tell([trials[number].params for number in answer.trials], **answer.said)
    sampler = study._study.sampler
    assert sampler.recommend(study).params == told.recommend()
    rows = np.random.default_rng(0).random((20, 2))
    for moment in ("mean", "var"):
        np.testing.assert_allclose(
            getattr(sampler.optimizer(study).posterior_, moment)(rows),
            getattr(told.posterior_, moment)(rows),
            atol=1e-9,
        )


@pytest.mark.parametrize(
    ("better", "worse", "told"),
    [
        ([0], [1], [((0, 1), {"worst": 1})]),
        ([0, 1, 3], [2], [((0, 1, 2, 3), {"worst": 2})]),
        ([2], [0, 1], [((0, 1, 2), {"chosen": 2})]),
        ([1, 3], [0, 2], [((0, 1, 2), {"chosen": 1}), ((0, 2, 3), {"chosen": 2})]),
    ],
)
def test_reports_stand_for_answers(better, worse, told):
    study = begin(4)
    fill(study)
    trials = study.trials
    study.report_preference([trials[each] for each in better], [trials[each] for each in worse])
    assert [tuple(each) for each in judged(study).answers] == told


def test_a_worst_of_three_is_no_two_duels():
    # They share the noise of the worst, and so tell less.
    whole, duels = begin(3), begin(3)
    for study in (whole, duels):
        for x in (0.1, 0.5, 0.9):
            study.add_trial(create_trial(params={"x": x}, distributions=LINE, value=0.0))
    first, second, worst = whole.trials
    whole.report_preference([first, second], worst)
    duels.report_preference(first, worst)
    duels.report_preference(second, worst)
    options = {"noise_variance": 0.1, "noise_variance_bounds": "fixed"}
    var = [
        PreferentialSampler(**options).optimizer(each).posterior_.var([[0.9]])[0]
        for each in (whole, duels)
    ]
    assert var[0] > var[1] + 1e-4


def test_contradictions_and_preferences_between_equal_trials():
    study = begin(2)
    for x in (0.2, 0.2, 0.7, 0.2 + 1e-9):
        study.add_trial(create_trial(params={"x": x}, distributions=LINE, value=0.0))
    same, again, other, near = study.trials
    sampler = study._study.sampler
    study.report_preference(same, again)
    study.report_preference(same, near)
    study.report_preference(same, same)
    with pytest.raises(NotFittedError):
        sampler.recommend(study)
    study.report_preference([same, again, near], other)  # one item, against one
    study.report_preference(other, same)
    assert sorted(each.outcome for each in sampler.optimizer(study).history_) == [0, 1]
    assert study.ask(LINE).params["x"] not in (0.2, 0.7)


def test_another_order_of_the_storage_changes_nothing():
    study = begin(2)
    run(study, 6)
    attributes = study._study._storage.get_study_system_attrs(study._study._study_id)
    kept = study._study._storage.get_study_system_attrs
    before = judged(study).answers
    study._study._storage.get_study_system_attrs = lambda _: dict(reversed(attributes.items()))
    assert judged(study).answers == before
    study._study._storage.get_study_system_attrs = kept


# -- skips, undo, failures -------------------------------------------------------------------


def test_a_skipped_trial_stays_away():
    study = begin(2)
    run(study, 5)
    fill(study)
    stays, skipped = active(study)
    storage = study._study._storage
    for _ in range(3):
        report_skip(study._study._study_id, skipped._trial_id, storage)
        fill(study)
        gone = [study.trials[number].params["x"] for number in judged(study).skipped]
        assert stays.number in judged(study).active
        skipped = active(study)[-1]
        assert min(abs(skipped.params["x"] - each) for each in gone) > 0.01
    for each in active(study):
        report_skip(study._study._study_id, each._trial_id, storage)
    gone = [study.trials[number].params["x"] for number in judged(study).skipped]
    fill(study)
    assert len(active(study)) == 2
    new = [each.params["x"] for each in active(study)]
    assert np.abs(np.subtract.outer(new, gone)).min() > 0.01


def test_an_undone_answer_is_forgotten():
    study = begin(2)
    run(study, 3)
    sampler, storage = study._study.sampler, study._study._storage
    before = sampler.optimizer(study).history_
    fill(study)
    last = click_worst(study)
    assert len(sampler.optimizer(study).history_) == len(before) + 1
    remove_history(study._study._study_id, storage, last)
    assert repr(sampler.optimizer(study).history_) == repr(before)
    assert len(active(study)) == 2
    restore_history(study._study._study_id, storage, last)
    assert len(sampler.optimizer(study).history_) == len(before) + 1


def test_all_answers_undone_is_a_start():
    study = begin(2)
    ids = [run(study, 1) for _ in range(6)]
    for each in ids:
        remove_history(study._study._study_id, study._study._storage, each)
    assert judged(study).answers == ()
    assert len(active(study)) == 7
    with pytest.raises(NotFittedError):
        study._study.sampler.recommend(study)
    new = study.ask(LINE).params["x"]
    assert all(abs(new - each.params["x"]) > 0.01 for each in study.trials[:-1])


def test_a_failed_trial_is_no_part_of_anything():
    study = begin(2)
    run(study, 3)
    broken = study.ask(LINE)
    study._study.tell(broken.number, state=TrialState.FAIL)
    assert broken.number not in judged(study).active
    fill(study)
    assert len(active(study)) == 2


# -- the start -------------------------------------------------------------------------------


def test_the_start_is_spread_out():
    study = begin(6)
    fill(study, PLANE)
    found = np.array(points(study.trials))
    apart = np.linalg.norm(found[:, None] - found, axis=2) + 9.0 * np.eye(6)
    assert apart.min() > 0.25
    uniform = np.random.default_rng(0).random((200, 6, 2))
    others = np.linalg.norm(uniform[:, :, None] - uniform[:, None], axis=3) + 9.0 * np.eye(6)
    assert apart.min() > np.quantile(others.min(axis=(1, 2)), 0.9)


def test_trials_may_be_asked_for_one_by_one_and_suggest_later():
    study = begin(3)
    trials = [study.ask() for _ in range(3)]
    for trial in trials:
        trial.suggest_float("x", 0.0, 1.0)
        trial.suggest_int("k", 1, 3)
    assert len(set(points(study.trials))) == 3
    study.report_preference(study.trials[0], study.trials[1])
    trial = study.ask()
    values = trial.suggest_float("x", 0.0, 1.0), trial.suggest_int("k", 1, 3)
    assert values not in points(study.trials[:3])


# -- spaces ----------------------------------------------------------------------------------

MIXED = {
    "log": FloatDistribution(1e-4, 1.0, log=True),
    "int": IntDistribution(2, 20, step=3),
    "kind": CategoricalDistribution([None, True, "text", 2.5]),
    "step": FloatDistribution(0.0, 1.0, step=0.1),
    "one": FloatDistribution(3.0, 3.0),
    "single": CategoricalDistribution(["only"]),
    "logint": IntDistribution(1, 500, log=True),
    "fine": FloatDistribution(-1.0, 1.0, step=0.001),
    "large": IntDistribution(0, 10**9),
    "three": IntDistribution(-1, 1),
    "two": IntDistribution(0, 1),
    "alike": CategoricalDistribution([True, 1, float("nan")]),
}


def test_a_mixed_space_is_asked_within():
    study = begin(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(study, 3, MIXED, lambda trial: abs(np.log10(trial.params["log"]) + 2.0))
    fill(study, MIXED)
    for trial in study.trials:
        for name, value in trial.params.items():
            assert MIXED[name]._contains(MIXED[name].to_internal_repr(value)), (name, value)
    best = study._study.sampler.recommend(study)
    assert set(best.params) == set(MIXED)


@pytest.mark.parametrize("name", [name for name in MIXED if not MIXED[name].single()])
def test_values_come_back_from_the_optimizer(name):
    distribution = MIXED[name]
    space = StudySpace({name: distribution})
    optimizer = PreferenceOptimizer(space.space, random_state=0)
    sampler = optuna.samplers.RandomSampler(seed=0)
    for _ in range(20):
        value = sampler.sample_independent(None, None, name, distribution)
        row = optimizer.to_unit([space.to_item({name: value})])
        assert np.all((row >= 0.0) & (row <= 1.0))
        back = space.to_params(optimizer._space.to_item(row[0]))[name]
        if isinstance(distribution, FloatDistribution):
            assert back == pytest.approx(value, rel=1e-12)
        else:
            assert distribution.to_internal_repr(back) == distribution.to_internal_repr(value)
            assert type(back) is type(value) or name == "alike"  # to Optuna 1 and True are one


def test_integers_on_a_log_scale_have_the_width_of_their_place():
    # Of integers low..high each is given [k - 1/2, k + 1/2] of the logarithm.
    space = StudySpace({"k": IntDistribution(1, 100, log=True)})
    optimizer = PreferenceOptimizer(space.space)
    rows = optimizer.to_unit([{"k": k} for k in range(1, 101)])[:, 0]
    edges = np.log(np.arange(0.5, 101.0)) - np.log(0.5)
    edges /= edges[-1]
    np.testing.assert_allclose(rows, 0.5 * (edges[1:] + edges[:-1]), atol=1e-12)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"x": FloatDistribution(0.0, 2.0)}, "'x': trial 0 has Float.*trial 2 Float.*2.0"),
        (PLANE, "suggests 'y'.*nothing of it.*suggest every parameter in every trial"),
        ({"z": IntDistribution(0, 3)}, "suggests 'z'"),
        ({"x": FloatDistribution(0.9999, 1.0)}, "suggests 'x'.*before it have Float"),
    ],
)
def test_a_space_that_changes_is_refused(other, words):
    study = begin(2)
    run(study, 1)
    with pytest.raises(ValueError, match=words):
        for _ in range(2):
            study.ask(other)
    assert study.trials[-1].state == TrialState.FAIL


def test_a_space_with_conditions_is_refused():
    def suggest(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            trial.suggest_float("of_a", 0.0, 1.0)
        else:
            trial.suggest_float("of_b", 0.0, 1.0)

    study = begin(4)
    with pytest.raises(ValueError, match=r"(?s)of_.*suggest every parameter in every trial"):
        for _ in range(4):
            suggest(study.ask())


def test_a_trial_of_another_space_may_be_skipped():
    study = begin(2)
    run(study, 1)
    study.add_trial(
        create_trial(params={"x": 1.5}, distributions={"x": FloatDistribution(1.0, 2.0)}, value=0.0)
    )
    with pytest.raises(ValueError, match=r"trial 2 .* skip it"):
        study.ask(LINE)
    report_skip(study._study._study_id, study.trials[2]._trial_id, study._study._storage)
    fill(study)
    assert len(active(study)) == 2


def test_a_parameter_of_one_value_is_left_out_of_account():
    study = begin(2)
    space = {"x": FloatDistribution(0.0, 1.0), "one": IntDistribution(4, 4)}
    run(study, 3, space, lambda trial: trial.params["x"])
    assert study._study.sampler.optimizer(study).recommend().keys() == {"x"}
    nothing = begin(2)
    fill(nothing, {"one": IntDistribution(4, 4)})
    with pytest.raises(ValueError, match="parameter of several values"):
        nothing._study.sampler.optimizer(nothing)


def test_a_small_space_runs_round_and_says_when_it_is_all_shown():
    study = begin(2)
    space = {"k": IntDistribution(1, 3)}
    run(study, 8, space, lambda trial: trial.params["k"])
    assert study._study.sampler.recommend(study).params["k"] == 1
    everything = begin(4)
    with pytest.raises(ValueError, match="No trial is left to show beside the 3"):
        fill(everything, space)
    assert everything.trials[-1].state == TrialState.FAIL


# -- storages and workers --------------------------------------------------------------------


@pytest.mark.slow
def test_a_study_goes_on_from_its_storage_alone(tmp_path):
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    study = begin(2, f"sqlite:///{here}")
    run(study, 4)
    shutil.copy(here, there)
    sampler = PreferentialSampler(seed=0)
    other = load_study(study_name="judged", storage=f"sqlite:///{there}", sampler=sampler)
    assert len(other.preferences) == 4
    # A sampler that is new chooses what the one that was there all along chooses.
    assert other.ask(LINE).params == study.ask(LINE).params


def test_the_same_seed_and_storage_give_the_same_trial():
    def next_of(seed):
        study = begin(2, seed=seed)
        for x in (0.1, 0.8):
            study.add_trial(create_trial(params={"x": x}, distributions=LINE, value=0.0))
        first, second = study.trials
        for _ in range(4):
            study.report_preference(first, second)
        return study.ask(LINE).params["x"]

    assert next_of(3) == next_of(3) != next_of(4)
    sampler = PreferentialSampler(seed=0)
    before = sampler._draw_seed(1)
    assert pickle.loads(pickle.dumps(sampler))._draw_seed(1) == before
    sampler.reseed_rng()
    assert sampler._draw_seed(1) != before


@pytest.mark.slow
def test_workers_that_ask_at_the_same_moment_show_different_trials(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    space = {"k": IntDistribution(1, 6)}
    study = begin(2, url)
    run(study, 4, space, lambda trial: trial.params["k"])
    barrier, found, wrong = threading.Barrier(3), [], []

    def work():
        try:
            own = load_study(study_name="judged", storage=url, sampler=PreferentialSampler(seed=7))
            barrier.wait()
            found.append(own.ask(space).params["k"])
        except Exception as error:  # shown by the assertion below
            wrong.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert not wrong
    shown = [each.params["k"] for each in active(study)]
    assert len(shown) == len(set(shown)) == 4
    assert set(found) < set(shown)


def test_a_trial_is_known_before_it_is_suggested():
    study = begin(3)
    run(study, 2)
    first = study.ask()
    assert first._trial_id == study.trials[-1]._trial_id
    first.relative_params  # noqa: B018
    assert judged(study).trials[-1].params == {}
    seen = study._study.sampler._items_of_trials(
        judged(study), [first.number], LINE, StudySpace(LINE), own=None
    )
    assert seen[0]["x"] == first.suggest_float("x", 0.0, 1.0)


def test_a_trial_that_was_given_up_holds_nobody_up_for_long(monkeypatch):
    monkeypatch.setattr("skpref.integrations.optuna._PATIENCE", 0.2)
    study = begin(2)
    run(study, 2)
    study._study._storage.create_new_trial(study._study._study_id)  # a worker that was killed
    assert 0.0 <= study.ask(LINE).params["x"] <= 1.0


@pytest.mark.slow
def test_trials_of_others_are_taken_as_they_are():
    study = begin(2)
    study._study.sampler = optuna.samplers.RandomSampler(seed=0)
    study.enqueue_trial({"x": 0.9})
    run(study, 8)
    study._study.sampler = PreferentialSampler(seed=0)
    run(study, 6)
    assert abs(study._study.sampler.recommend(study).params["x"] - 0.3) < 0.05


@pytest.mark.slow
def test_two_hundred_trials():
    study = begin(2)
    storage, rng = study._study._storage, np.random.default_rng(0)
    for x in rng.random(200):
        study.add_trial(create_trial(params={"x": x}, distributions=LINE, value=0.0))
    trials = study.trials
    best = trials[0]
    for trial in trials[1:]:
        pair = sorted((best, trial), key=distance)
        storage.set_study_system_attr(
            study._study._study_id,
            f"preference:values{trial.number}",
            [(pair[0].number, pair[1].number)],
        )
        best = pair[0]
    assert study._study.sampler.recommend(study).number == best.number
    assert abs(study.ask(LINE).params["x"] - 0.3) < 0.3


# -- workers that are killed or slow ---------------------------------------------------------


def in_memory(_):
    return optuna.storages.InMemoryStorage()


def in_sqlite(folder):
    return f"sqlite:///{folder / 'study.db'}"


def in_journal(folder):
    return JournalStorage(JournalFileBackend(str(folder / "study.log")))


STORAGES = [in_memory, in_sqlite, in_journal]


class Killed(PreferentialSampler):
    """Of a worker that is killed while it chooses."""

    def sample_relative(self, *_):
        os.kill(os.getpid(), signal.SIGKILL)


def kill_a_worker(storage):
    """A process of its own that asks and does not come back."""
    child = os.fork()
    if not child:
        try:
            load_study(study_name="judged", storage=storage(), sampler=Killed()).ask(LINE)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def state_of(study):
    return [each.state.name for each in study.trials]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are killed")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("storage", STORAGES[1:])
def test_workers_killed_while_they_ask_stop_a_study_for_so_many_seconds(tmp_path, storage):
    begun = time.monotonic()
    study = begin(2, storage(tmp_path), stale_after=3.0)
    run(study, 1)
    while len(study.trials) < 4:
        kill_a_worker(lambda: storage(tmp_path))
    assert [each.params for each in study.trials[2:]] == [{}, {}]
    answers = judged(study).answers
    while not study.should_generate():
        assert time.monotonic() < begun + 60.0
        time.sleep(0.05)
    assert time.monotonic() > begun + 3.0
    assert state_of(study)[2:] == ["FAIL", "FAIL"]
    fill(study)
    assert len(active(study)) == 2 and all(each.params for each in active(study))
    assert judged(study).answers == answers
    assert not study.should_generate() and len(study.trials) == 5


def leave(study, **attributes):
    """A trial whose worker was killed."""
    storage = study._study._storage
    if attributes:
        study.enqueue_trial(**attributes)
        return study._study._pop_waiting_trial_id()
    return storage.create_new_trial(study._study._study_id)


def at_once(study):
    """Let what has no parameters be stale at once, as another worker sees it."""
    return PreferentialSampler(stale_after=1e-9).fail_stale_trials(study)


@pytest.mark.parametrize("storage", STORAGES)
def test_only_trials_without_parameters_are_stale(tmp_path, storage):
    study = begin(3, storage(tmp_path))
    for _ in range(2):
        study.ask(LINE)
    leave(study)
    assert at_once(study) == [2] and at_once(study) == []
    assert state_of(study) == ["RUNNING", "RUNNING", "FAIL"]
    leave(study)
    assert not study.should_generate()  # it is young
    study._study.sampler._clock = lambda: time.time() + 119.0
    assert not study.should_generate()
    study._study.sampler._clock = lambda: time.time() + 121.0
    assert study.should_generate() and state_of(study)[3:] == ["FAIL"]
    study._study.sampler._clock = time.time
    study.ask(LINE)
    assert state_of(study)[3:] == ["FAIL", "RUNNING"]
    study.report_preference(study.trials[0], study.trials[1])
    assert at_once(study) == []
    assert len(judged(study).answers) == 1 and len(judged(study).active) == 2


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n_before", [1, 3])
def test_a_trial_with_one_parameter_of_two_is_stale(tmp_path, storage, n_before):
    """Its worker was killed between two suggestions."""
    study = begin(5, storage(tmp_path))
    for _ in range(n_before):
        study.ask(PLANE)
    if n_before > 1:
        study.report_preference(study.trials[0], study.trials[-1])
    study.ask().suggest_float("x", 0.0, 1.0)
    assert list(study.trials[-1].params) == ["x"]
    assert study._study.sampler.fail_stale_trials(study) == []  # it is young
    assert at_once(study) == [n_before] and at_once(study) == []
    assert study.ask(PLANE).params.keys() == PLANE.keys()


@pytest.mark.parametrize(("seconds", "fails"), [(100.0, False), (86_400.0, True)])
def test_a_clock_far_ahead_holds_no_study_up(seconds, fails):
    study = begin(2)
    leave(study, params={"x": 0.125})
    study._study.sampler._clock = lambda: time.time() - seconds  # the worker that left is ahead
    assert study._study.sampler.fail_stale_trials(study) == [0] * fails
    study._study.sampler._clock = time.time
    if fails:
        assert study.ask(LINE).params == {"x": 0.125}  # what was asked for is not lost


@pytest.mark.parametrize("storage", STORAGES)
def test_a_worker_that_is_slow_loses_a_trial_but_not_what_it_chose(tmp_path, storage, monkeypatch):
    study = begin(2, storage(tmp_path))
    run(study, 2, PLANE)
    sampler, chosen = study._study.sampler, []

    def slow(*arguments):
        chosen.append(type(sampler)._choose_params(sampler, *arguments))
        assert at_once(study) == [3]
        return chosen[-1]

    monkeypatch.setattr(sampler, "_choose_params", slow)
    with pytest.raises(RuntimeError):  # UpdateFinishedTrialError of Optuna, where it has that
        study.ask(PLANE)
    assert state_of(study)[3:] == ["FAIL", "WAITING"]
    assert study.should_generate()
    assert study.ask(PLANE).params == chosen[0] and len(chosen) == 1
    assert len(active(study)) == 2


@pytest.mark.parametrize("storage", STORAGES)
def test_parameters_that_were_enqueued_are_enqueued_again(tmp_path, storage):
    study = begin(2, storage(tmp_path))
    run(study, 1)
    leave(study, params={"x": 0.125}, user_attrs={"of": "ann"})
    assert at_once(study) == [2]
    trial = study.ask(LINE)
    assert trial.params == {"x": 0.125} and trial.user_attrs == {"of": "ann"}
    assert state_of(study)[2:] == ["FAIL", "RUNNING"]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, MemoryError])
def test_a_worker_that_is_stopped_while_it_chooses_fails_its_trial(raised, monkeypatch):
    study = begin(2)
    run(study, 1)

    def stopped(*_):
        raise raised

    monkeypatch.setattr(study._study.sampler, "_choose_params", stopped)
    with pytest.raises(raised):
        study.ask(LINE)
    assert state_of(study)[-1] == "FAIL" and study.should_generate()


def test_studies_of_other_samplers_are_left_alone():
    study = begin(2, stale_after=1e-9)
    study._study.sampler = optuna.samplers.RandomSampler(seed=0)
    leave(study)
    study.ask(LINE)
    assert not study.should_generate() and state_of(study) == ["RUNNING", "RUNNING"]
    plain = optuna.create_study(sampler=PreferentialSampler())
    with pytest.raises(ValueError, match="not preferential"):
        PreferentialSampler().fail_stale_trials(plain)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), "10", None])
def test_the_time_of_stale_trials_is_a_positive_number(seconds):
    with pytest.raises((ValueError, TypeError), match="stale_after must"):
        PreferentialSampler(stale_after=seconds)


# -- refusals --------------------------------------------------------------------------------


def test_a_study_that_nobody_judges_is_refused():
    study = optuna.create_study(sampler=PreferentialSampler())
    with pytest.raises(ValueError, match=r"not preferential.*create_study\(n_generate=2"):
        study.ask(LINE)
    with pytest.raises(ValueError, match="not preferential"):
        PreferentialSampler().recommend(study)
    with pytest.raises(ValueError, match="not preferential"):
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=1)
    assert all(trial.state == optuna.trial.TrialState.FAIL for trial in study.trials)


@pytest.mark.parametrize(
    "name", ["space", "candidates", "constraints", "journal", "random_state", "earlier", "cost"]
)
def test_what_the_study_holds_is_no_option(name):
    with pytest.raises(TypeError, match=f"takes no {name}="):
        PreferentialSampler(**{name: None})


def test_options_are_those_of_the_optimizer():
    with pytest.raises(ValueError, match="acquisition"):
        PreferentialSampler(acquisition="nothing")
    with pytest.raises(TypeError, match="nonsense"):
        PreferentialSampler(nonsense=1)
    study = begin(3, inference="hallucination", acquisition="ei", forgetting_rate=0.01)
    run(study, 5)
    fill(study)
    assert len(active(study)) == 3
