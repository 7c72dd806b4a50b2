"""What optimizers are told of the world, by all that keeps, takes back or shows it: one table."""

import pickle

import numpy as np
import pytest
from scipy.optimize import LinearConstraint
from sklearn.gaussian_process.kernels import Matern

from skpref import PreferenceOptimizer
from skpref.widgets import Judge

pytestmark = pytest.mark.usefixtures("brief")

SPACE = {"gain": (0.0, 1.0), "tone": (0.0, 1.0), "room": ["bath", "hall"]}
DUEL = (
    {"gain": 0.2, "tone": 0.3, "room": "bath"},
    {"gain": 0.4, "tone": 0.3, "room": "hall"},
)
EARLIER = {"X": [DUEL, DUEL[::-1]] * 2, "y": [1, 0] * 2, "users": ["a", "b"] * 2}
QUICK = {
    "kernel": Matern(0.4, "fixed", nu=1.5),
    "noise_variance": 0.1,
    "noise_variance_bounds": "fixed",
    "tie_threshold": 0.1,
    "tie_threshold_bounds": "fixed",
    "random_state": 0,
    "n_initial": 1,
}


def constructed(**options):
    return options, {}, lambda optimizer: optimizer.tell(DUEL, 0)


def asked(**form):
    return {}, form, lambda optimizer: optimizer.tell(DUEL, 0)


def told(answer):
    return {}, {}, answer


WORLD = {
    "measured": told(lambda optimizer: optimizer.tell_value(DUEL[0], 0.7, 0.1)),
    "monotone": constructed(monotone={"gain": 1}),
    "cost": constructed(cost=(10.0, 1.0)),
    "none": told(lambda optimizer: optimizer.tell(DUEL, none=True)),
    "at": asked(at={"room": "bath"}),
    "fixed": asked(fixed={"tone": 0.5}),
    "constraints": constructed(constraints=[LinearConstraint([[1.0, 1.0, 0.0]], ub=1.0)]),
    "unusable": told(lambda optimizer: optimizer.tell(DUEL, unusable=[0])),
    "earlier": constructed(earlier=EARLIER),
}


def same(first, second):
    return all(a == b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name", WORLD)
def test_journals_pickles_undo_and_skip_go_with_each(name, tmp_path):
    options, form, answer = WORLD[name]
    common = {**QUICK, **options}
    optimizer = PreferenceOptimizer(SPACE, journal=tmp_path / "run.db", **common)
    optimizer.tell(DUEL, 1)
    before = optimizer.ask(**form)
    answer(optimizer)
    after = optimizer.ask(**form)
    assert all(item["room"] == "bath" for item in after) or name != "at"
    assert all(item["tone"] == 0.5 for item in after) or name != "fixed"
    again = PreferenceOptimizer(SPACE, journal=tmp_path / "run.db", **common)
    copy = pickle.loads(pickle.dumps(again))
    for each in (again, copy):
        assert same(each.ask(**form), after)
        assert len(each.measured_) == (name == "measured")
    skipped = again.skip(after).ask(**form)
    assert not same(skipped, after)
    assert same(again.undo().ask(**form), after)
    assert same(again.undo().ask(**form), before)


@pytest.mark.parametrize("name", WORLD)
def test_the_judge_of_a_notebook_shows_questions_of_each(name):
    pytest.importorskip("anywidget")
    options, _, answer = WORLD[name]
    optimizer = PreferenceOptimizer(SPACE, **QUICK, **options)
    answer(optimizer)
    n_told = optimizer.n_told_
    assert Judge(optimizer) is not None
    assert optimizer.n_told_ == n_told


@pytest.mark.parametrize("name", ["cost", "constraints", "earlier", "monotone"])
def test_the_sampler_of_optuna_refuses_what_is_of_the_study(name):
    pytest.importorskip("optuna")
    from skpref.integrations.optuna import PreferentialSampler

    with pytest.raises((TypeError, ValueError), match=name):
        PreferentialSampler(**WORLD[name][0])


def test_pools_hold_no_values():
    pool = PreferenceOptimizer(candidates=np.eye(3), random_state=0)
    for ask in (pool.ask, pool.recommend):
        with pytest.raises(ValueError, match="of a pool"):
            ask(at={0: 1.0})
    with pytest.raises(ValueError, match="of a pool"):
        pool.ask(fixed={0: 1.0})
