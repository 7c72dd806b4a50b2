"""Parameters under a condition, and parameters that a question holds."""

import pickle

import numpy as np
import pytest
from scipy.optimize import LinearConstraint

from skpref.optimize import STRATEGIES, PreferenceOptimizer, read_journal, when
from skpref.optimize._limits import make_limited_space

pytestmark = pytest.mark.usefixtures("brief")

COFFEE = {
    "roast": ["light", "dark"],
    "grind": (1, 9),
    "milk": ["no", "yes"],
    "foam": when("milk", "yes", (0.0, 10.0)),
    "sugar": when("milk", "yes", ["none", "cane", "beet"]),
    "spoons": when("sugar", ["cane", "beet"], (1, 3)),
    "dose": (10.0, 20.0),
}
FLAT = {"roast": ["light", "dark"], "grind": (1, 9), "dose": (10.0, 20.0)}
LIGHT = LinearConstraint([[0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]], ub=25.0)


def taste(item):
    dark = item["roast"] == "dark"
    return dark - 0.05 * (item["grind"] - 4) ** 2 + item.get("foam", 3.0) / 10.0 - item["dose"] / 9


def is_whole(item):
    """Return whether an item has what its conditions say, and nothing else."""
    with_milk = item["milk"] == "yes"
    with_sugar = item.get("sugar") in ("cane", "beet")
    return (("foam" in item), ("sugar" in item), ("spoons" in item)) == (
        with_milk,
        with_milk,
        with_sugar,
    )


def is_light(item):
    return item["grind"] + item.get("foam", 0.0) + item["dose"] <= 25.0


def answered(optimizer, n, **arguments):
    for _ in range(n):
        items = optimizer.ask(**arguments)
        optimizer.tell(items, {"chosen": int(np.argmax([taste(item) for item in items]))})
    return optimizer


# --- conditions -----------------------------------------------------------------------------


def test_items_have_what_their_conditions_say():
    optimizer = PreferenceOptimizer(COFFEE, constraints=[LIGHT], random_state=0)
    shown = []
    for kind, size in [("set", 3)] * 5 + [("line", 5), ("plane", 3)] * 2:
        shown += optimizer.ask(kind=kind, size=size)
        answered(optimizer, 1, kind=kind, size=size)
    assert all(is_whole(item) and is_light(item) for item in shown)
    assert {item["milk"] for item in shown} == {"no", "yes"}
    assert is_whole(optimizer.recommend())
    assert optimizer.expected_gain_.shortfall.min() >= 0.0


@pytest.mark.parametrize("strategy", ["EUBO", "KG", "HB-EI", "DoubleTS", "random"])
def test_strategies_ask_whole_items(strategy):
    options = {**STRATEGIES[strategy]._asdict(), "n_initial": 2, "random_state": 1}
    optimizer = answered(PreferenceOptimizer(COFFEE, **options), 4)
    assert all(is_whole(item) for duel, _ in optimizer.history_ for item in duel)


def test_a_row_without_a_parameter_is_one_item():
    space = make_limited_space(COFFEE, None, None)
    rng = np.random.default_rng(0)
    rows = space.rows_at(rng.random((400, space.n_dimensions)))
    items = [space.to_item(row) for row in rows]
    assert all(map(is_whole, items))
    for row, item in zip(rows, items, strict=True):
        np.testing.assert_allclose(space.to_row(item), row, atol=1e-9)
        assert space.load(space.dump(item)) == item == space.clean(item)
        absent = {name: item.get(name) for name in COFFEE}  # as a row of a table has it
        np.testing.assert_array_equal(space.to_row(absent), space.to_row(item))
    free = space.free_columns(rows)
    foam = list(COFFEE).index("foam")
    place = sum(each.width for each in space.dimensions[:foam])
    np.testing.assert_array_equal(free[:, place], ["foam" in item for item in items])


def test_what_conditions_refuse():
    optimizer = PreferenceOptimizer(COFFEE, random_state=0)
    black = {"roast": "dark", "grind": 3, "milk": "no", "dose": 12.0}
    white = {**black, "milk": "yes", "foam": 3.0, "sugar": "none"}
    assert optimizer.tell((black, white), 1).n_told_ == 1
    with pytest.raises(ValueError, match="'foam', which is there with 'milk' of"):
        optimizer.tell((black, {**black, "foam": 3.0}), 1)
    with pytest.raises(ValueError, match="'spoons', which is there with 'sugar' of"):
        optimizer.tell((black, {**black, "spoons": 1}), 1)
    with pytest.raises(ValueError, match="sugar"):
        optimizer.tell((black, {**black, "milk": "yes", "foam": 3.0}), 1)
    for space, message in (
        ({"a": when("b", 1, (0.0, 1.0)), "b": [1, 2]}, "stand before it"),
        ({"a": (0.0, 1.0), "b": when("a", 0.5, [1, 2])}, "range of numbers"),
        ({"a": ["x", "y"], "b": when("a", "z", [1, 2])}, "'z' is not one of its choices"),
        ({"a": ["x", "y"], "b": when("a", "x", 3)}, "b must be a frozen"),
    ):
        with pytest.raises(ValueError, match=message):
            PreferenceOptimizer(space)


def test_conditions_are_part_of_a_journal(tmp_path):
    path = tmp_path / "run.db"
    first = answered(PreferenceOptimizer(COFFEE, journal=path, random_state=0), 5)
    question = first.ask()
    assert PreferenceOptimizer(COFFEE, journal=path).ask() == question
    assert pickle.loads(pickle.dumps(first)).ask() == question
    asked = [row for row in read_journal(path)["items"] if row is not None]
    for item in asked[0]:  # as a table has it: of what is not there None
        assert list(item) == list(COFFEE)
        assert is_whole({name: value for name, value in item.items() if value is not None})
    with pytest.raises(ValueError, match="another configuration"):
        PreferenceOptimizer({**COFFEE, "foam": (0.0, 10.0)}, journal=path)


def test_a_parameter_matters_where_it_is_there():
    """The best of four in the mode that has a depth is found, and none of the other has one."""
    space = {"mode": ["flat", "deep"], "depth": when("mode", "deep", (0.0, 1.0))}

    def utility(item):
        return 1.0 - 4.0 * (item["depth"] - 0.7) ** 2 if item["mode"] == "deep" else 0.6

    optimizer = PreferenceOptimizer(space, random_state=0)
    best = optimizer.run(lambda a, b: utility(a) > utility(b), 15)
    assert best["mode"] == "deep"
    assert abs(best["depth"] - 0.7) < 0.1


# --- held parameters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [{}, {"size": 4}, {"kind": "line", "size": 5}, {"kind": "plane", "size": 3}]
)
def test_questions_hold_what_is_fixed(arguments):
    optimizer = PreferenceOptimizer(COFFEE, constraints=[LIGHT], random_state=0)
    for n_told in (0, 4, 1):
        answered(optimizer, n_told)
        for fixed in ({"roast": "dark"}, {"grind": 7, "milk": "yes"}, {"dose": 12.5}):
            items = optimizer.ask(fixed=fixed, **arguments)
            assert len(items) >= 2
            assert all(item[name] == value for item in items for name, value in fixed.items())
            assert all(is_whole(item) and is_light(item) for item in items)


def test_a_question_with_fixed_values_is_another_one(tmp_path):
    path = tmp_path / "run.db"
    optimizer = answered(PreferenceOptimizer(FLAT, journal=path, random_state=0), 5)
    general = optimizer.ask()
    dark = optimizer.ask(fixed={"roast": "dark"})
    coarse = optimizer.ask(2, fixed={"grind": 9, "roast": "light"})
    assert len(optimizer.pending_) == 4
    again = PreferenceOptimizer(FLAT, journal=path)
    for each in (optimizer, again):
        assert each.ask() == general == each.ask(fixed={})
        assert each.ask(fixed={"roast": "dark"}) == dark
        assert each.ask(2, fixed={"roast": "light", "grind": 9}) == coarse
    optimizer.tell(dark, 1)
    assert optimizer.undo().ask(fixed={"roast": "dark"}) == dark
    optimizer.skip(dark)
    assert optimizer.ask(fixed={"roast": "dark"}) != dark
    assert len(read_journal(path)["kind"]) > 5


def test_with_fixed_values_the_best_of_these_is_found():
    """What is best with one roast is not with the other one; both are found in turns."""

    def utility(item):
        return -(((item["dose"] - (12.0 if item["roast"] == "dark" else 18.0)) / 10.0) ** 2)

    space = {"roast": ["light", "dark"], "dose": (10.0, 20.0)}
    optimizer = PreferenceOptimizer(space, random_state=0)
    for k in range(24):
        fixed = {"roast": ("light", "dark")[k % 2]}
        first, second = optimizer.ask(fixed=fixed)
        optimizer.tell((first, second), utility(first) > utility(second))
    for roast, best in (("dark", 12.0), ("light", 18.0)):
        doses = [item["dose"] for item in optimizer.ask(fixed={"roast": roast})]
        assert min(abs(dose - best) for dose in doses) < 0.7


def test_items_that_are_arrays_are_held_by_position():
    optimizer = PreferenceOptimizer([[0.0, 1.0], [0.0, 2.0]], random_state=0)
    assert np.all(np.asarray(optimizer.ask(3, fixed={1: 1.5}))[:, :, 1] == 1.5)
    beside = optimizer.ask(fixed={0: 0.25}, beside=[[0.5, 0.5]])
    np.testing.assert_array_equal(beside[0], [0.5, 0.5])
    assert beside[1][0] == 0.25


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"rost": "dark"}, "a dict of values of some of"),
        ("dark", "a dict of values of some of"),
        ({"roast": "blue"}, "'blue' is not one of its choices"),
        ({"grind": 11}, "is not one of its 9 values"),
        ({"milk": "no", "foam": 1.0}, "holds 'foam'; it is there with 'milk'"),
        ({"milk": "no", "spoons": 1}, "holds 'spoons'; it is there with 'sugar'"),
        ({"dose": 20.0, "grind": 9}, "with grind = 9 with dose = 20.0 keeps all constraints"),
        (dict.fromkeys(COFFEE, 1), "leaves no parameter to choose"),
    ],
)
def test_what_cannot_be_held_is_refused(fixed, message):
    optimizer = PreferenceOptimizer(COFFEE, constraints=[LIGHT], random_state=0)
    with pytest.raises(ValueError, match=message):
        optimizer.ask(fixed=fixed)
    for ask in (optimizer.ask, optimizer.recommend):  # what is wrong is in at=
        with pytest.raises(ValueError, match=message) as refusal:
            ask(at=fixed)
        assert "fixed=" not in str(refusal.value)
    assert len(optimizer.pending_) == 0


def test_both_arguments_are_checked():
    optimizer = PreferenceOptimizer(FLAT, random_state=0)
    with pytest.raises(ValueError, match="got fixed='dark'"):
        optimizer.ask(at={"grind": 3}, fixed="dark")
    with pytest.raises(ValueError, match="leaves no parameter to choose"):
        optimizer.ask(at={"grind": 3, "dose": 12.0}, fixed={"roast": "dark"})


def test_pools_hold_nothing():
    optimizer = PreferenceOptimizer(candidates=np.eye(3), random_state=0)
    with pytest.raises(ValueError, match="of a pool"):
        optimizer.ask(fixed={0: 1.0})
