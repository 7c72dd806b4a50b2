"""Known limits: what is asked, drawn, recommended and told keeps them."""

import json
import pickle

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, linprog
from scipy.stats import loguniform

from skpref.data import ItemTable
from skpref.optimize import (
    STRATEGIES,
    HallucinationBelieverOptimizer,
    PreferenceOptimizer,
    read_journal,
)
from skpref.optimize._acquisition import Numeric
from skpref.optimize._limits import make_limited_space
from skpref.optimize._maximiser import EFFORT, candidate_rows, maximise
from skpref.optimize._segments import chord_axis, grid_rows
from skpref.optimize._strategies import random_question

SQUARE = [[0.0, 1.0], [0.0, 2.0]]
MIXED = {
    "flour": (100.0, 900.0),
    "eggs": (0, 6),
    "yeast": loguniform(0.1, 10.0),
    "oven": ["deck", "convection", "pan"],
}
LESS = LinearConstraint([[1.0, 1.0]], ub=1.0)
DISC = NonlinearConstraint(lambda x: x @ x, -np.inf, 0.5)


def in_disc(item):
    return bool(item @ item <= 0.5)


def two_values(x):
    """Return two values, the second of which is NaN beyond where it is defined."""
    rest = x[0] - x[1] / 9.0 - 0.01
    return [0.5 - x @ x, np.log(rest) if rest > 0.0 else np.nan]


def in_half(item):
    return bool(item[0] <= 0.5)


def is_light(item):
    return bool(item["flour"] / 100.0 + item["eggs"] <= 8.0)


def is_hot(item):
    return item["oven"] != "pan" or item["yeast"] < 1.0


# Constraints, and whether an item keeps them, by arithmetic of its own.
CASES = {
    "half": (SQUARE, [LESS], lambda x: x[0] + x[1] <= 1.0),
    "slab": (
        SQUARE,
        [LinearConstraint([[1.0, 1.0]], 0.999, 1.0)],
        lambda x: 0.999 <= x[0] + x[1] <= 1.0,
    ),
    "disc": (SQUARE, [DISC], in_disc),
    "ring": (
        SQUARE,
        [NonlinearConstraint(lambda x: x @ x, 0.4, 0.5)],
        lambda x: 0.4 <= x @ x <= 0.5,
    ),
    "two values": (
        SQUARE,
        [NonlinearConstraint(two_values, -2.0, np.inf)],
        lambda x: x @ x <= 2.5 and x[0] - x[1] / 9.0 - 0.01 >= np.exp(-2.0),
    ),
    "function": (SQUARE, [in_disc], in_disc),
    "both": (SQUARE, [LESS, in_disc], lambda x: x[0] + x[1] <= 1.0 and in_disc(x)),
    "mixed": (
        MIXED,
        [LinearConstraint([[0.01, 1.0, 0.0, 0.0]], ub=8.0), is_hot],
        lambda x: is_light(x) and is_hot(x),
    ),
    "mixed, by codes": (
        MIXED,
        [NonlinearConstraint(lambda x: x[3] * x[2] - x[1], -np.inf, 0.0)],
        lambda x: ["deck", "convection", "pan"].index(x["oven"]) * x["yeast"] <= x["eggs"],
    ),
}


def taste(item):
    if isinstance(item, dict):
        return item["flour"] / 900.0 + item["eggs"] / 6.0 + 0.3 * (item["oven"] == "pan")
    return -float(np.sum((item - 1.0) ** 2))


def answered(optimizer, n, keeps, **form):
    """Answer n questions, each of whose items must keep the limits."""
    for _ in range(n):
        items = optimizer.ask(**form)
        assert all(map(keeps, items)), items
        utilities = [taste(item) for item in items]
        if len(items) == 2:
            optimizer.tell(items, utilities[0] > utilities[1])
        else:
            optimizer.tell(items, chosen=int(np.argmax(utilities)))
    return optimizer


# --- questions ------------------------------------------------------------------------------


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("case", CASES)
def test_every_question_keeps_the_limits(case):
    space, constraints, keeps = CASES[case]
    optimizer = PreferenceOptimizer(space, constraints=constraints, random_state=0)
    answered(optimizer, 9, keeps)
    assert keeps(optimizer.recommend())
    assert all(keeps(item) for question in optimizer.ask(3) for item in question)
    assert all(keeps(item) for item in optimizer.ask(size=4))
    assert all(keeps(item) for item in optimizer.ask(beside=optimizer.ask()))


@pytest.mark.usefixtures("brief")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if STRATEGIES[name][0] != "hmc"])
def test_every_strategy_keeps_the_limits(strategy):
    space, constraints, keeps = CASES["both"]
    options = {**STRATEGIES[strategy]._asdict(), "n_initial": 2, "random_state": 1}
    answered(PreferenceOptimizer(space, constraints=constraints, **options), 5, keeps)


@pytest.mark.slow
def test_a_thousand_questions_keep_the_limits():
    n = 0
    for case, (space, constraints, keeps) in CASES.items():
        for seed in range(5):
            optimizer = HallucinationBelieverOptimizer(
                space, constraints=constraints, random_state=seed
            )
            answered(optimizer, 26, keeps)
            n += 26
        assert n, case
    assert n >= 1000


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_hundred_thousand_draws_keep_the_limits(case):
    space, constraints, keeps = CASES[case]
    limited, rng, n = make_limited_space(space, None, constraints), np.random.default_rng(0), 0
    seeds = limited.initial_rows(0, 0, 8)
    while n < 100_000 / len(CASES):
        rows = candidate_rows(limited, seeds, rng)
        assert len(rows) >= EFFORT.n_rows
        assert all(keeps(limited.to_item(row)) for row in rows)
        n += len(rows)


@pytest.mark.parametrize("case", CASES)
def test_draws_keep_the_limits_and_are_many(case):
    space, constraints, keeps = CASES[case]
    limited, rng = make_limited_space(space, None, constraints), np.random.default_rng(1)
    seeds = limited.initial_rows(3, 0, 8)
    anything = lambda members, rows: np.ones(len(rows), dtype=bool)  # noqa: E731 - a rule
    for rows in (
        seeds,
        limited.typical_rows(),
        candidate_rows(limited, seeds, rng),
        random_question(limited, anything, rng, 5),
    ):
        assert all(keeps(limited.to_item(row)) for row in rows)
    assert len(np.unique(candidate_rows(limited, seeds[:0], rng), axis=0)) > 200
    assert make_limited_space(space, None, ()).describe_limits() is None
    assert json.dumps(limited.describe_limits(), allow_nan=False)


def test_draws_reach_all_of_the_feasible_part():
    """A half and a slab have as many draws in each third of their length as there are thirds."""
    for case in ("half", "slab", "ring"):
        space, constraints, _ = CASES[case]
        limited, rng = make_limited_space(space, None, constraints), np.random.default_rng(0)
        items = np.array(
            [limited.to_item(r) for r in candidate_rows(limited, np.zeros((0, 2)), rng)]
        )
        angle = np.arctan2(items[:, 1], items[:, 0])
        counts = np.histogram(angle, np.linspace(0.0, np.pi / 2.0, 4))[0]
        assert counts.min() > 0.15 * len(items), case


# --- the best item --------------------------------------------------------------------------


def maximum(slope, constraints, names=3):
    """Return the largest value of a linear function over limits, and where it is."""
    space = make_limited_space([[0.0, 1.0]] * names, None, constraints)
    surface = Numeric(lambda X: X @ slope)
    return maximise(surface, space, space.initial_rows(0, 0, 8), np.random.default_rng(0))


def test_the_maximum_over_linear_limits_is_that_of_a_linear_programme():
    rng = np.random.default_rng(5)
    for _ in range(10):
        slope, matrix = rng.standard_normal(3), rng.standard_normal((2, 3))
        bound = matrix @ rng.uniform(0.2, 0.8, 3) + 0.1
        optimum = linprog(-slope, matrix, bound, bounds=[(0.0, 1.0)] * 3)
        row, value = maximum(slope, [LinearConstraint(matrix, ub=bound)])
        assert np.all(matrix @ row <= bound)
        assert -1e-4 < value + optimum.fun < 1e-9


def test_the_maximum_over_a_ball_is_where_the_slope_leaves_it():
    rng = np.random.default_rng(6)
    for limit, within in (
        (NonlinearConstraint(lambda x: (x - 0.5) @ (x - 0.5), -np.inf, 0.09), 1e-3),
        (lambda x: bool((x - 0.5) @ (x - 0.5) <= 0.09), 0.05),
    ):
        for _ in range(5):
            slope = rng.standard_normal(3)
            row, value = maximum(slope, [limit])
            best = 0.5 * slope.sum() + 0.3 * np.linalg.norm(slope)
            assert best - within * np.linalg.norm(slope) < value <= best + 1e-9
            assert (row - 0.5) @ (row - 0.5) <= 0.09


def test_a_run_comes_near_the_best_item_on_the_boundary():
    optimizer = PreferenceOptimizer(SQUARE, constraints=[LESS], random_state=0)
    best = answered(optimizer, 25, CASES["half"][2]).recommend()
    np.testing.assert_allclose(best, [0.5, 0.5], atol=0.06)  # of the line, nearest to (1, 1)
    assert optimizer.expected_gain_.probability(0.2) > 0.5


def test_the_gain_is_of_items_within_the_limits():
    """Where all of the utility's rise is beyond a limit, the best item within it is as good."""
    wide = PreferenceOptimizer([[0.0, 1.0]], random_state=0, n_initial=2)
    tight = PreferenceOptimizer(
        [[0.0, 1.0]], constraints=[LinearConstraint([[1.0]], ub=0.5)], random_state=0, n_initial=2
    )
    duels = [([0.1 * k], [0.1 * k + 0.1]) for k in range(5)] * 3
    for duel in duels:
        wide.tell(duel, 0)
        tight.tell(duel, 0)
    assert tight.expected_gain_.probability(0.05) > wide.expected_gain_.probability(0.05) + 0.2


# --- lines and planes -----------------------------------------------------------------------


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    ("kind", "case"),
    [("line", case) for case in CASES]
    + [("plane", case) for case in ("slab", "ring", "both", "mixed, by codes")],
)
def test_lines_and_planes_are_cut_to_the_feasible_part(case, kind):
    space, constraints, keeps = CASES[case]
    optimizer = PreferenceOptimizer(space, constraints=constraints, random_state=2)
    answered(optimizer, 3, keeps, kind=kind, size=5)
    items = optimizer.ask(kind="line", size=5)
    if case not in ("mixed", "mixed, by codes", "ring"):
        assert all(keeps(optimizer.item_at(items, at)) for at in np.linspace(0, len(items) - 1, 9))


def test_a_chord_ends_at_the_limits():
    space = make_limited_space([[0.0, 1.0]] * 2, None, [LESS])
    anchor = np.array([0.25, 0.25])
    for direction in np.random.default_rng(0).standard_normal((40, 2)):
        rows = grid_rows(anchor, [chord_axis(anchor, direction, 33, space)], 33, space)
        assert np.all(rows.sum(axis=1) <= 1.0)
        step = rows[1] - rows[0]
        for end in (rows[-1] + 0.2 * step, rows[0] - 2.0 * step):
            assert end.min() < 0.0 or end.max() > 1.0 or end.sum() > 1.0


# --- answers, journals, pools ---------------------------------------------------------------


def test_items_outside_are_refused_and_nothing_is_changed(tmp_path):
    optimizer = PreferenceOptimizer(SQUARE, constraints=[in_disc, LESS], random_state=0)
    optimizer.tell(([0.1, 0.1], [0.5, 0.5]), 1)  # on the boundary
    for outside, place in (([0.9, 0.0], 0), ([0.6, 0.41], r"[01]")):
        with pytest.raises(ValueError, match=rf"breaks constraints\[{place}\]"):
            optimizer.tell(([0.1, 0.1], outside), 1)
        with pytest.raises(ValueError, match="breaks constraints"):
            optimizer.ask(beside=[outside])
    assert optimizer.n_told_ == 1
    with pytest.raises(ValueError, match="breaks constraints"):
        PreferenceOptimizer(SQUARE, constraints=[LESS], initial_duels=[([0.1, 0.1], [1.0, 1.0])])


def test_rounding_does_not_refuse_what_is_told():
    optimizer = PreferenceOptimizer(
        [[0.0, 1.0]] * 3, constraints=[LinearConstraint([[1.0, 1.0, 1.0]], ub=0.6)]
    )
    assert 0.1 + 0.2 + 0.3 > 0.6
    assert optimizer.tell(([0.1, 0.2, 0.3], [0.1, 0.1, 0.1]), 1).n_told_ == 1


def test_tight_limits_of_whole_numbers_leave_all_that_keep_them():
    spec = {"a": (0, 9), "b": (0, 9)}
    limit = LinearConstraint([[1.0, 1.0]], 9.0, 10.0)
    space = make_limited_space(spec, None, [limit])
    rows = candidate_rows(space, np.zeros((0, 2)), np.random.default_rng(0))
    pairs = {tuple(space.to_item(row).values()) for row in rows}
    assert pairs == {(a, b) for a in range(10) for b in range(10) if 9 <= a + b <= 10}


@pytest.mark.usefixtures("brief")
def test_a_journal_goes_on_under_the_same_limits_alone(tmp_path):
    def build(constraints, path=tmp_path / "run.db"):
        return PreferenceOptimizer(SQUARE, constraints=constraints, journal=path, random_state=0)

    first = answered(build([LESS, in_disc]), 6, CASES["both"][2])
    question = first.ask()
    np.testing.assert_array_equal(build([LESS, in_disc]).ask(), question)
    for others in (
        [LESS],
        None,
        [LinearConstraint([[1.0, 1.0]], ub=0.9), in_disc],
        [LESS, in_half],
    ):
        with pytest.raises(ValueError, match="another configuration"):
            build(others)
    first.skip(question)
    np.testing.assert_array_equal(first.undo().ask(), question)
    shown = read_journal(tmp_path / "run.db")["items"][1]
    np.testing.assert_array_equal(shown, first.history_[0].items)
    copy = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(copy.ask(), question)


@pytest.mark.usefixtures("brief")
def test_pools_are_filtered():
    table = np.random.default_rng(0).random((60, 2))
    kept = table[table.sum(axis=1) <= 1.0]
    optimizer = PreferenceOptimizer(candidates=table, constraints=[LESS], random_state=0)
    answered(optimizer, 8, lambda x: x.sum() <= 1.0)
    rest = PreferenceOptimizer(candidates=kept, random_state=0)
    for _ in range(8):  # as a pool of these alone
        items = rest.ask()
        rest.tell(items, taste(items[0]) > taste(items[1]))
    for one, same in zip(optimizer.history_, rest.history_, strict=True):
        np.testing.assert_array_equal(one.items, same.items)
    with pytest.raises(ValueError, match="not among"):
        optimizer.tell((kept[0], table[table.sum(axis=1) > 1.0][0]), 1)


@pytest.mark.usefixtures("brief")
def test_pools_of_names_are_filtered_by_functions():
    drinks = ItemTable.from_names(["tea", "coffee", "beer", "wine"])
    optimizer = PreferenceOptimizer(
        candidates=drinks, constraints=[lambda name: name not in ("beer", "wine")], random_state=0
    )
    assert set(optimizer.ask()) == {"tea", "coffee"}
    with pytest.raises(ValueError, match="'beer' is not the name"):
        optimizer.tell(("tea", "beer"), 1)
    with pytest.raises(ValueError, match="names alone"):
        PreferenceOptimizer(candidates=drinks, constraints=[LinearConstraint([[1.0]], ub=1.0)])
    with pytest.raises(ValueError, match="leave 1 of 4 candidates"):
        PreferenceOptimizer(candidates=drinks, constraints=[lambda name: name == "tea"])


def test_the_plane_of_an_acquisition_is_empty_beyond_the_limits():
    optimizer = PreferenceOptimizer(SQUARE, constraints=[LESS], random_state=0)
    surface = answered(optimizer, 5, CASES["half"][2]).acquisition_surface(
        resolution=11, acquisition="ei"
    )
    inside = surface.grid[0][:, None] + surface.grid[1] <= 1.0 - 1e-9
    np.testing.assert_array_equal(np.isfinite(surface.acquisition), inside)


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (LESS, "a list of constraints is allowed"),
        ([3.0], r"constraints\[0\] is 3.0"),
        ([LinearConstraint([[1.0]], ub=1.0)], "a column for each of"),
        ([LESS, LinearConstraint([[1.0, 2.0]], 1.0, 1.0)], r"equality 1 x\[0\] \+ 2 x\[1\] = 1"),
        ([NonlinearConstraint(lambda x: x[0], 0.5, 0.5)], "is the equality its function = 0.5"),
        ([LinearConstraint([[1.0, 1.0]], ub=-1.0)], "None of 4096 items"),
        ([LinearConstraint([[1.0, 1.0]], 2.0, 1.0)], "the lower ones not above"),
        ([NonlinearConstraint(lambda x: x[0], np.nan, 1.0)], "numbers are allowed"),
        ([lambda item: False], "None of 4096 items"),
        ([lambda item: 1.0], r"constraints\[0\] returned 1.0"),
        ([NonlinearConstraint(lambda x: "a", 0.0, 1.0)], r"constraints\[0\] failed, "),
        (
            [LinearConstraint([[1.0, 1.0]], ub=1.0), LinearConstraint([[1.0, 1.0]], lb=1.0)],
            "None of 4096 items",
        ),
    ],
)
def test_what_is_no_limit_is_refused(constraints, message):
    with pytest.raises((TypeError, ValueError), match=message):
        PreferenceOptimizer(SQUARE, constraints=constraints)
