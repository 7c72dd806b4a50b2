"""Parameters of which more is better: what is asked and recommended, kept and refused."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpref import ItemTable
from skpref.optimize import STRATEGIES, PreferenceOptimizer

pytestmark = pytest.mark.usefixtures("brief")

SPACE = {"price": (1.0, 10.0), "battery": (1, 20), "colour": ["red", "blue"]}
MONOTONE = {"price": -1, "battery": 1}
FEW = {**STRATEGIES["HB-EI"]._asdict(), "n_initial": 2}


def utility(item):
    return -item["price"] / 3.0 + 2.0 * np.sqrt(item["battery"]) + 0.5 * (item["colour"] == "red")


def answer(optimizer, n):
    for _ in range(n):
        first, second = optimizer.ask()
        optimizer.tell((first, second), int(utility(first) > utility(second)))
    return optimizer


@pytest.fixture(scope="module")
def told():
    return answer(PreferenceOptimizer(SPACE, monotone=MONOTONE, random_state=0, **FEW), 4)


def test_the_recommended_item_is_at_the_end_of_both(told):
    best = told.recommend()
    assert best["price"] < 1.5
    assert best["battery"] >= 18


def test_the_mean_rises_with_it(told):
    assert max(told.monotone_violations_.values()) <= 0.02
    items = [
        {"price": price, "battery": battery, "colour": "blue"}
        for price in (9.0, 5.0, 2.0)
        for battery in (2, 10, 19)
    ]
    mean = told.posterior_.mean(told.to_unit(items)).reshape(3, 3)
    assert np.all(np.diff(mean, axis=0) > 0.0)
    assert np.all(np.diff(mean, axis=1) > 0.0)
    with pytest.raises(AttributeError, match="with monotone= alone"):
        _ = PreferenceOptimizer(SPACE).monotone_violations_


def test_every_method_that_takes_it_asks(told):
    for strategy in ("EP-EI", "KG+EI", "KB-EI", "DuelUCB"):
        options = {**STRATEGIES[strategy]._asdict(), "n_initial": 2}
        optimizer = PreferenceOptimizer(SPACE, monotone=MONOTONE, random_state=0, **options)
        for items, outcome in told.history_[:3]:
            optimizer.tell(items, outcome)
        assert len(optimizer.ask()) == 2


def test_it_is_undone_and_copied(told):
    copy = pickle.loads(pickle.dumps(told))
    question, recommended = copy.ask(), copy.recommend()
    assert question == told.ask()
    assert recommended == told.recommend()
    copy.tell(question, 1).undo()
    assert copy.ask() == question
    copy.skip(question)
    assert copy.ask() != question


def test_a_journal_goes_on_with_the_same_questions(tmp_path):
    def opened(monotone=MONOTONE):
        path = tmp_path / "run.db"
        return PreferenceOptimizer(SPACE, monotone=monotone, journal=path, random_state=0, **FEW)

    whole = PreferenceOptimizer(SPACE, monotone=MONOTONE, random_state=0, **FEW)
    for _ in range(4):
        assert opened().ask() == whole.ask()
        for each in (opened(), whole):
            answer(each, 1)
    assert opened().recommend() == whole.recommend()
    with pytest.raises(ValueError, match=r"belongs to another configuration .*monotone"):
        opened(None)


def test_sets_ties_and_pools_go_with_it():
    rng = np.random.default_rng(0)
    phones = rng.random((30, 2))
    optimizer = PreferenceOptimizer(candidates=phones, monotone={0: -1}, random_state=0, **FEW)
    for k in range(3):
        shown = optimizer.ask(size=3)
        optimizer.tell(shown, chosen=int(np.argmin(shown[:, 0])))
        if k == 0:
            optimizer.tell(optimizer.ask(), "tie")
    assert optimizer.recommend()[0] < 0.3
    named = ItemTable(phones, names=[f"phone {k}" for k in range(30)])
    assert PreferenceOptimizer(candidates=named, monotone={1: 1}).ask()[0].startswith("phone")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"monotone": {"prize": 1}}, r"'prize' is not there; 'price', 'battery', 'colour' are"),
        ({"monotone": {"colour": 1}}, r"'colour' is an id or a category, without order"),
        ({"monotone": {"price": 0}}, r"1 \(more is better\) and -1 \(less is better\) are"),
        ({"monotone": {}}, r"for at least one column is allowed"),
        ({"forgetting_rate": 0.1}, r"got monotone= and forgetting_rate=; one of the two"),
        ({"earlier": "a.db"}, r"got monotone= and earlier=; one of the two is allowed"),
        ({"inference": "laplace", "acquisition": "ei"}, r"with Laplace\(\); engines with exact"),
        (
            {"space": None, "candidates": ItemTable.from_names(["a", "b"])},
            r"candidates that are names alone; candidates with features",
        ),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PreferenceOptimizer(**{"space": SPACE, "monotone": MONOTONE, **options})


def test_positions_name_parameters_of_arrays():
    optimizer = PreferenceOptimizer([(0.0, 1.0), (0.0, 5.0)], monotone={1: -1}, **FEW)
    for duel in ([[0.5, 1.0], [0.2, 4.0]], [[0.1, 2.0], [0.4, 2.5]], [[0.9, 3.0], [0.6, 1.0]]):
        optimizer.tell(duel, int(duel[0][1] < duel[1][1]))
    assert optimizer.recommend()[1] < 1.1
    assert_array_equal([*optimizer.monotone_violations_], [1])
