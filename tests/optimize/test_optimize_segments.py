"""Lines and planes: their geometry, what a position says, journals, mixed spaces, errors."""

import pickle
from functools import cache

import numpy as np
import pytest
from journal_support import cheap, closed, copied, optimizer
from scipy import stats
from sets_support import BEST, taste
from tiers_support import thinned

from skpref.inference import HMC
from skpref.optimize import (
    STRATEGIES,
    AlreadyAnswered,
    HallucinationBelieverOptimizer,
    PreferenceOptimizer,
    read_journal,
)
from skpref.optimize._acquisition import draw_shared_normals
from skpref.optimize._model import choose_compared_rows
from skpref.optimize._segments import (
    Axis,
    chord_axis,
    distinct_rows,
    expected_best_of_sets,
    grid_rows,
    locate_position,
)
from skpref.optimize._spaces import make_space
from skpref.optimize._state import GridForm

pytestmark = pytest.mark.usefixtures("brief")

SQUARE = [[0.0, 1.0]] * 2
MIXED = {"rate": stats.loguniform(1e-4, 1e-1), "depth": (1, 12), "kind": ["a", "b", "c"]}


def made(space=SQUARE, seed=0, **options):
    return HallucinationBelieverOptimizer(space, random_state=seed, **{"n_initial": 3} | options)


def best_of(items):
    return int(np.argmax([taste(item[:2]) for item in items]))


def told(n=3, kind="line", **options):
    return asked_on(made(**options), n, kind) if options else pickle.loads(kept(n, kind))


def asked_on(found, n, kind):
    for _ in range(n):
        items = found.ask(kind=kind)
        found.tell(items, position=best_of(items))
    return found


@cache
def kept(n, kind):
    """A run that many tests go on from, each with a copy."""
    begun = pickle.loads(kept(n - 1, kind)) if n else made()
    return pickle.dumps(asked_on(begun, min(n, 1), kind))


def check_line(rows):
    """Equally spaced, in order on one line, inside the cube."""
    steps = np.diff(rows, axis=0)
    np.testing.assert_allclose(steps, np.broadcast_to(steps[0], steps.shape), atol=1e-9)
    assert np.abs(steps[0]).max() > 1e-6
    assert rows.min() >= 0.0
    assert rows.max() <= 1.0


# --- geometry -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_told", [0, 1, 4])
def test_a_line_is_one(n_told):
    found = told(n_told)
    items = found.ask(kind="line")
    assert items.shape == (9, 2)
    check_line(items)
    if n_told:
        assert np.min(np.abs(items - found.incumbent_).max(axis=1)) == 0.0
    assert found.ask(kind="line", size=5).shape == (5, 2)


@pytest.mark.parametrize("n_told", [0, 1, 3])
def test_a_plane_is_a_grid(n_told):
    found = told(n_told, "plane", space=[[-5.0, 10.0], [0.0, 15.0], [1.0, 2.0]])
    items = found.ask(kind="plane")
    assert items.shape == (25, 3)
    rows = found.to_unit(items).reshape(5, 5, 3)
    for line in (*rows, *rows.swapaxes(0, 1)):
        check_line(line)
    apart = rows.reshape(25, 3) - rows[0, 0]
    assert np.linalg.matrix_rank(apart, tol=1e-9) == 2
    if n_told:
        assert np.min(np.abs(items - found.incumbent_).max(axis=1)) == 0.0
    assert found.ask(kind="plane", size=3).shape == (9, 3)


@pytest.mark.parametrize("n_axes", [1, 2])
def test_grids_stay_in_the_cube_and_hold_their_anchor(n_axes):
    rng = np.random.default_rng(0)
    for _ in range(200):
        anchor = np.clip(rng.uniform(-0.3, 1.3, 3), 0.0, 1.0)  # often on a face
        axes = [Axis(rng.standard_normal(3), int(rng.integers(0, 3))) for _ in range(n_axes)]
        rows = grid_rows(anchor, axes, 5, make_space([[0.0, 1.0]] * 3))
        if rows is None:
            continue
        assert rows.min() >= 0.0
        assert rows.max() <= 1.0
        at = np.ravel_multi_index([axis.n_before for axis in axes], (5,) * n_axes)
        np.testing.assert_array_equal(rows[at], anchor)
        corner = rows.reshape(*(5,) * n_axes, 3)
        for axis in range(n_axes):
            for line in np.moveaxis(corner, axis, -2).reshape(-1, 5, 3):
                check_line(line)


def test_a_grid_that_fits_is_not_shrunk():
    axis, space = np.array([0.3, -0.15]), make_space([[0.0, 1.0]] * 2)
    rows = grid_rows(np.array([0.5, 0.5]), [Axis(axis, 2)], 5, space)
    np.testing.assert_allclose(rows, [[0.5 + 0.15 * k, 0.5 - 0.075 * k] for k in range(-2, 3)])
    assert grid_rows(np.zeros(2), [Axis(axis, 0)], 5, space) is None


def test_a_chord_goes_from_side_to_side():
    rng, space = np.random.default_rng(1), make_space([[0.0, 1.0]] * 3)
    for _ in range(50):
        anchor, direction = rng.random(3), rng.standard_normal(3)
        rows = grid_rows(anchor, [chord_axis(anchor, direction, 33, space)], 33, space)
        check_line(rows)
        step, at = rows[1] - rows[0], np.flatnonzero((rows == anchor).all(axis=1))
        assert len(at) == 1
        outside = rows[-1] + 1e-6 * step, rows[0] - 2.0 * step
        assert all(np.any((end < 0.0) | (end > 1.0)) for end in outside)


def test_the_expected_best_is_that_of_draws():
    found = told(3)
    posterior = found.posterior_
    sets = [np.random.default_rng(k).random((4 + k, 2)) for k in range(3)]
    values = expected_best_of_sets(
        posterior, sets, draw_shared_normals(6, 1, np.random.default_rng(0))
    )
    for rows, value in zip(sets, values, strict=True):
        drawn = posterior.sample(rows, 40_000, np.random.default_rng(1))
        axis = 0 if drawn.shape[0] == len(rows) else 1
        assert abs(drawn.max(axis=axis).mean() - value) < 0.03


def test_the_line_promises_more_than_others_through_the_incumbent():
    found = told(4)
    items, posterior = found.ask(kind="line"), found.posterior_
    rng, incumbent = np.random.default_rng(0), found.incumbent_
    spans = (Axis(rng.random(2) - incumbent, 0) for _ in range(60))
    space = make_space([[0.0, 1.0]] * 2)
    grids = [grid_rows(incumbent, [axis], 9, space) for axis in spans]
    others = [rows for rows in grids if rows is not None]
    normals = draw_shared_normals(9, 1, rng)
    value, *rest = expected_best_of_sets(posterior, [items, *others], normals)
    assert np.mean(value > np.array(rest)) > 0.9


# --- answers --------------------------------------------------------------------------------


def test_a_position_is_the_chosen_item():
    found, same = told(2), told(2)
    items = found.ask(kind="line")
    found.tell(items, position=6)
    same.tell(same.ask(kind="line"), chosen=6)
    entry = found.history_[-1]
    assert entry.outcome == {"chosen": 6}
    np.testing.assert_array_equal(entry.items, items)
    np.testing.assert_array_equal(found.ask(kind="line"), same.ask(kind="line"))
    X = np.random.default_rng(0).random((5, 2))
    np.testing.assert_array_equal(found.posterior_.mean(X), same.posterior_.mean(X))


@pytest.mark.parametrize("position", [2.25, np.float32(2.25), np.array(2.25)])
def test_a_place_between_points_is_one_more_item(position):
    found = told(2)
    items = found.ask(kind="line")
    found.tell(items, position=position)
    entry = found.history_[-1]
    assert entry.outcome == {"chosen": 3}
    np.testing.assert_array_equal(np.delete(entry.items, 3, axis=0), items)
    np.testing.assert_allclose(entry.items[3], 0.75 * items[2] + 0.25 * items[3], atol=1e-12)
    assert len(found.pending_) == 0
    np.testing.assert_array_equal(found.incumbent_, entry.items[3])
    # the same as telling the ten by hand
    other = told(2)
    other.ask(kind="line")
    other.tell(entry.items, chosen=3)
    X = np.random.default_rng(0).random((5, 2))
    np.testing.assert_array_equal(found.posterior_.mean(X), other.posterior_.mean(X))


def test_places_on_a_plane():
    found = told(1, "plane")
    items = found.ask(kind="plane", size=3)
    found.tell(items, position=(1, 2))
    assert found.history_[-1].outcome == {"chosen": 5}
    found.undo()
    found.tell(items, position=[0.5, 1.25])
    entry = found.history_[-1]
    assert entry.outcome == {"chosen": 9}
    corner = items.reshape(3, 3, 2)
    place = corner[0, 0] + 0.5 * (corner[1, 0] - corner[0, 0])
    place = place + 1.25 * (corner[0, 1] - corner[0, 0])
    np.testing.assert_allclose(entry.items[9], place, atol=1e-12)
    found.undo().tell(items, position=7)
    assert found.history_[-1].outcome == {"chosen": 7}


def test_interpolation_is_bilinear_and_ends_at_the_last_point():
    space, rng = make_space([[0.0, 1.0]] * 3), np.random.default_rng(0)
    corner, one, two = rng.random((3, 3)) / 3.0
    rows = np.array([corner + i * one / 3 + j * two / 3 for i in range(4) for j in range(4)])
    form = GridForm("plane", 4)
    for _ in range(20):
        place = rng.uniform(0.0, 3.0, 2)
        at, row = locate_position(rows, form, tuple(place), space)
        assert at == 16
        np.testing.assert_allclose(row, corner + place[0] * one / 3 + place[1] * two / 3)
    assert locate_position(rows, form, (3.0, 3.0), space) == (15, None)
    at, row = locate_position(rows, form, (3.0, 0.5), space)
    np.testing.assert_allclose(row, corner + one + 0.5 * two / 3)
    at, row = locate_position(rows[:5], GridForm("line", 5), 3.5, space)
    assert at == 4
    np.testing.assert_allclose(row, 0.5 * (rows[3] + rows[4]))
    assert locate_position(rows[:5], GridForm("line", 5), 4.0, space) == (4, None)


def test_positions_that_are_none():
    found = told(1)
    line, items = found.ask(kind="line"), found.ask(size=4)
    plane = found.ask(kind="plane", size=3)
    before = found.n_told_
    for value in (-0.1, 8.01, np.nan, np.inf, [1, 2], (1,), -1, 9):
        with pytest.raises(ValueError, match="position must be a number from 0 to 8, got"):
            found.tell(line, position=value)
    for value in ("2", True, [[1], [2, 3]], {}, 1j):
        with pytest.raises(TypeError, match="position must be a number from 0 to 8, got"):
            found.tell(line, position=value)
    for value in (1.5, 9, -1, (1, 2.1), (-0.1, 0), (1, 2, 0), (np.nan, 1)):
        with pytest.raises(ValueError, match=r"from 0 to 8, or a pair \(row, column\) from 0 to 2"):
            found.tell(plane, position=value)
    for shown in (items, line[::-1], line[:5], [[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]]):
        with pytest.raises(ValueError, match="position= tells a place on a line or a plane"):
            found.tell(shown, position=1)
    for beside in ({"chosen": 1}, {"worst": 1}, {"ranking": [0, 1]}, {"outcome": 1}):
        with pytest.raises(ValueError, match="got more beside it"):
            found.tell(line, position=1, **beside)
    with pytest.raises(ValueError, match="nothing is said beside it"):
        found.tell(line, {"position": 1, "first": 0})
    assert found.n_told_ == before
    assert found.tell(line, {"position": 1}).n_told_ == before + 1


def test_forms_that_are_none():
    found = made()
    with pytest.raises(ValueError, match="kind must be one of"):
        found.ask(kind="circle")
    with pytest.raises(ValueError, match=r"size must lie in \[3, inf\], got 2"):
        found.ask(kind="line", size=2)
    with pytest.raises(ValueError, match=r"size must lie in \[2, inf\], got 1"):
        found.ask(kind="plane", size=1)
    for kind in ("line", "plane"):
        with pytest.raises(ValueError, match=f"kind='{kind}' needs a space .* is a pool"):
            made(None, candidates=np.random.default_rng(0).random((30, 2))).ask(kind=kind)
    with pytest.raises(ValueError, match=r"kind='plane' needs 2 parameter.s. with an order"):
        made([[0.0, 1.0]]).ask(kind="plane")
    with pytest.raises(ValueError, match=r"kind='line' needs 1 parameter.s. with an order"):
        made({"a": ["x", "y", "z"], "b": ["u", "v"]}).ask(kind="line")
    laplace = PreferenceOptimizer(SQUARE, **STRATEGIES["LA-EI"]._asdict())
    with pytest.raises(ValueError, match="Laplace does not take choices"):
        laplace.ask(kind="line")
    assert found.n_told_ == laplace.n_told_ == len(found.pending_) == len(laplace.pending_) == 0


def test_many_items_are_compared_with_the_nearest_and_with_far_ones():
    square = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 5)] * 2), axis=-1).reshape(-1, 2)
    kept = choose_compared_rows(square, 12)
    assert len(set(kept)) == len(kept) == 10
    assert {7, 11, 12, 13, 17, 0, 4, 20, 24} < set(kept)  # beside it, and the corners
    # nothing that is left out is far from all that is kept
    distance = np.linalg.norm(square[:, None] - square[kept], axis=2).min(axis=1)
    assert distance.max() <= 0.25 + 1e-12


def test_a_choice_of_few_is_taken_as_it_is():
    """Ten items are all compared, of more the chosen one with nine."""
    rng = np.random.default_rng(0)
    items = rng.random((25, 2))
    for n, n_rows in ((10, 9), (11, 9), (25, 9)):
        found = made().tell(items[:n], chosen=best_of(items[:n]))
        assert len(found._session.fitted()[0].comparisons.rows) == n_rows
        assert len(found.history_[0].items) == n
    found = made().tell(items, worst=3)
    assert len(found._session.fitted()[0].comparisons.rows) == 24


@pytest.mark.slow
def test_what_is_left_out_changes_little():
    """Means of margins and their deviations by all 24 comparisons of an answer, and by 9."""
    from skpref import PairwisePreferenceRegressor

    found = told(6, "plane", n_initial=2)
    posterior = found.posterior_
    model = PairwisePreferenceRegressor(
        posterior.kernel, noise_variance=posterior.likelihood.noise_variance, optimizer=None
    ).fit(
        np.array([entry.items for entry in found.history_]),
        [entry.outcome["chosen"] for entry in found.history_],
    )
    X = np.random.default_rng(0).random((100, 2))
    best = np.repeat(found.recommend()[None], 100, axis=0)
    mean, var = posterior.margin(X, best)
    whole_mean, whole_var = model.posterior_.margin(X, best)
    off = (mean - whole_mean) / np.sqrt(whole_var)
    assert np.sqrt(np.mean(off**2)) < 0.5
    ratio = np.sqrt(var / whole_var)
    assert 0.95 < ratio.mean() < 1.15


# --- sessions -------------------------------------------------------------------------------


def test_forms_are_questions_of_their_own():
    found = told(2)
    line, plane, items = found.ask(kind="line"), found.ask(kind="plane"), found.ask(size=9)
    short, duel = found.ask(kind="line", size=3), found.ask()
    for kind, size, expected in (
        ("line", None, line),
        ("line", 9, line),
        ("plane", 5, plane),
        ("set", 9, items),
        ("line", 3, short),
        ("set", None, duel),
    ):
        np.testing.assert_array_equal(found.ask(kind=kind, size=size), expected)
    assert [len(each) for each in found.pending_] == [9, 25, 9, 3, 2]
    three = found.ask(3, kind="line")
    assert three.shape == (3, 9, 2)
    assert len(np.unique(three.reshape(3, -1), axis=0)) == 3
    found.tell(line, position=0)
    assert len(found.pending_) == 6


def test_skip_and_undo():
    found = told(3)
    line = found.ask(kind="line")
    other = found.skip(line).ask(kind="line")
    apart = np.linalg.norm(line[:, None] - other, axis=2)
    assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) > 0.02
    found.undo()
    np.testing.assert_array_equal(found.ask(kind="line"), line)
    after = found.tell(line, position=2.5).ask(kind="line")
    found.undo()
    np.testing.assert_array_equal(found.ask(kind="line"), line)
    assert len(found.pending_) == 1
    np.testing.assert_array_equal(found.tell(line, position=2.5).ask(kind="line"), after)
    assert found.tell(after, None).n_told_ == 4
    again = made()
    for entry in found.history_:
        again.tell(*entry)
    np.testing.assert_array_equal(found.recommend(), again.recommend())


def test_the_design_is_left_to_sets():
    given = np.array([[[0.1, 0.2], [0.3, 0.4]]])
    found = made(initial_duels=given, n_initial=12)
    found.tell(found.ask(kind="line"), position=1)
    np.testing.assert_array_equal(found.ask(), given[0])


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize(
    "name", thinned([n for n, s in STRATEGIES.items() if s.inference != "laplace"], 4)
)
def test_every_strategy_has_them(name):
    """A line or a plane of the design, then the other one beside the incumbent, in turn."""
    fields = STRATEGIES[name]._asdict()
    if fields["inference"] == "hmc":
        fields["inference"] = HMC(draws=60, chains=20)
    found = PreferenceOptimizer(SQUARE, **fields, n_initial=1, random_state=0)
    kinds = ("line", "plane") if list(STRATEGIES).index(name) % 2 else ("plane", "line")
    for kind in kinds:
        items = found.ask(kind=kind, size=4)
        assert items.shape == ((4, 2) if kind == "line" else (16, 2))
        found.tell(items, position=best_of(items))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["line", "plane"])
def test_a_loop(kind):
    found, skips = made(seed=1), iter([True] + 100 * [False])

    def judge(*items):
        assert len(items) == (9 if kind == "line" else 16)
        return None if next(skips) else best_of(items)

    best = found.run(judge, 8, kind=kind, size=None if kind == "line" else 4)
    assert found.n_told_ == 8
    assert np.abs(best - BEST).max() < 0.15


@pytest.mark.slow
def test_a_slider_in_a_loop():
    """A judge who stops anywhere on the line comes nearer than one who names points."""

    def slider(*items):
        rows, places = np.array(items), np.linspace(0.0, len(items) - 1, 201)
        way = np.stack([np.interp(places, range(len(rows)), column) for column in rows.T], axis=1)
        return float(places[best_of(way)])

    best = made(seed=1).run(slider, 10, kind="line")
    assert np.abs(best - BEST).max() < 0.03


@pytest.mark.slow
def test_pickling_goes_on_the_same_way():
    found = told(3)
    line = found.ask(kind="line")
    copy = pickle.loads(pickle.dumps(found))
    for each in (found, copy):
        each.tell(line, position=4.5)
    np.testing.assert_array_equal(copy.ask(kind="plane"), found.ask(kind="plane"))


# --- mixed spaces ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["line", "plane"])
def test_mixed_spaces(kind):
    found = made(MIXED, n_initial=4)
    for _ in range(4):
        items = found.ask(kind=kind)
        assert len({item["kind"] for item in items}) == 1
        assert all(type(item["depth"]) is int and 1 <= item["depth"] <= 12 for item in items)
        assert len({repr(item) for item in items}) == len(items)
        rates = np.log([item["rate"] for item in items])
        if kind == "line":
            np.testing.assert_allclose(np.diff(rates), np.diff(rates)[0], atol=1e-6)
            depth = [item["depth"] for item in items]
            assert sorted(depth) in (depth, depth[::-1])
        found.tell(items, position=int(np.argmin([abs(item["depth"] - 4) for item in items])))


def test_equal_points_are_left_out():
    found = made({"a": (1, 4), "b": ["x", "y", "z"]}, n_initial=1)
    lengths = set()
    for _ in range(4):
        items = found.ask(kind="line")
        lengths.add(len(items))
        assert len({item["a"] for item in items}) == len(items) <= 4
        found.tell(items, position=int(np.argmin([item["a"] for item in items])))
    assert max(lengths) > 2
    assert found.recommend()["a"] == 1
    items = found.ask(kind="line")
    with pytest.raises(ValueError, match=f"from 0 to {len(items) - 1}, got"):
        found.tell(items, position=len(items) - 0.5)
    rows = np.array([[0.1, 0.2], [0.1, 0.2], [0.3, 0.2], [0.1, 0.2 + 1e-9]])
    np.testing.assert_array_equal(distinct_rows(rows, make_space([[0.0, 1.0]] * 2)), rows[[0, 2]])


@pytest.mark.parametrize(
    ("kind", "n_told", "n_initial"), [(("line",), 1, 1), (("line", "duel"), 3, 1), ("line", 1, 9)]
)
def test_several_lines_over_one_number_are_different(kind, n_told, n_initial):
    found = made([(0.0, 1.0)], n_initial=n_initial)
    for _ in range(n_told):
        found.tell(found.ask(), 1)
    lines = found.ask(3, kind=kind)
    assert [found.kind_of(line) for line in lines] == ["line"] * 3
    assert len({np.sort(line, axis=0).tobytes() for line in lines}) == 3


def test_where_no_line_is_left_another_kind_is_asked():
    space = {"n": [1, 2], "kind": ["a", "b", "c"]}  # a line runs over n, so that there are three

    def asking():
        first = ({"n": 1, "kind": "a"}, {"n": 2, "kind": "b"})
        return made(space, n_initial=1).tell(first, 1)

    asked = asking().ask(5, kind=("duel", "line"))
    assert {len(items) for items in asked} == {2}
    assert len({frozenset((x["n"], x["kind"]) for x in items) for items in asked}) == 5
    with pytest.raises(ValueError, match=r"No line is left.*ask for fewer"):
        asking().ask(4, kind="line")


@pytest.mark.parametrize("kind", ["line", "plane"])
def test_an_acquisition_that_is_nan_is_named_of_grids_too(kind):
    def hopeless(posterior, X, incumbent):
        return np.full(len(X), np.nan)

    found = made(acquisition=hopeless, n_initial=1)
    found.tell(found.ask(), 1)
    with pytest.raises(ValueError, match=r"hopeless' chose nothing: it is NaN at all"):
        found.ask(kind=kind)


@pytest.mark.parametrize("kind", ["line", ("line",)])
def test_a_position_on_a_line_of_two_points_is_one(kind):
    found = made({"n": [0, 1], "c": ["x", "y"]}, n_initial=2, seed=1)
    best = found.run(lambda *items: [item["n"] for item in items].index(0), 4, kind=kind)
    assert best["n"] == 0


def test_a_place_between_integers_is_a_point():
    found = made({"a": (0, 8), "b": (0, 8)}, n_initial=4)
    items = found.ask(kind="line")
    found.tell(items, position=0.001)
    assert found.history_[-1].outcome == ({"chosen": 0} if len(items) > 2 else 1)
    assert len(found.history_[-1].items) == len(items)


def test_a_plane_with_holes_takes_numbers_of_points():
    found = made({"a": (0, 3), "b": (0, 3)}, n_initial=4)
    items = found.ask(kind="plane")
    assert 2 < len(items) <= 16
    with pytest.raises(ValueError, match=f"an integer from 0 to {len(items) - 1}, got"):
        found.tell(items, position=(0, 1))
    found.tell(items, position=len(items) - 1)
    assert found.history_[-1].outcome == {"chosen": len(items) - 1}


@pytest.mark.slow
def test_skipped_lines_of_a_small_space_come_again():
    found = made({"a": (0, 2), "b": ["x", "y"]}, n_initial=1)
    found.tell([{"a": 0, "b": "x"}, {"a": 2, "b": "x"}], 1)
    for _ in range(8):
        found.skip(found.ask(kind="line"))
    assert found.n_told_ == 1
    found.ask(kind="line")


# --- journals -------------------------------------------------------------------------------


def act(found, number):
    """One event, which its number chooses."""
    rng = np.random.default_rng([7, number])
    kind, doing = ("line", "plane", "set")[rng.integers(3)], rng.random()
    if doing < 0.15 and found.n_told_:
        return found.undo()
    items = found.ask(kind=kind, size=4)
    if doing < 0.3:
        return found.skip(items)
    if kind == "set":
        return found.tell(items, chosen=int(rng.integers(4)))
    if doing < 0.6:
        return found.tell(items, position=int(rng.integers(len(items))))
    place = rng.uniform(0.0, 3.0, 1 if kind == "line" else 2)
    return found.tell(items, position=place if kind == "plane" else place[0])


@pytest.mark.slow
@pytest.mark.parametrize("build", [optimizer, cheap])
def test_a_journal_goes_on_exactly(tmp_path, build):
    path = tmp_path / "run.db"
    found = build(path)
    for number in range(10):
        act(found, number)
        if number % 3 == 1:
            asked = found.ask(kind="line", size=4)
            again = build(copied(path, tmp_path))
            np.testing.assert_array_equal(again.ask(kind="line", size=4), asked)
            for each in (found, again):
                act(each, 100 + number)
            np.testing.assert_array_equal(
                again.ask(kind="plane", size=3), found.ask(kind="plane", size=3)
            )
    table = read_journal(closed(found))
    for entry, items, outcome in zip(
        found.history_[-1:], table["items"][::-1], table["outcome"][::-1], strict=False
    ):
        if outcome is not None:
            np.testing.assert_array_equal(items, entry.items)
            assert outcome == entry.outcome


def test_another_process_knows_the_line(tmp_path):
    path = tmp_path / "run.db"
    found = optimizer(path, judge="first")
    line = found.ask(kind="line")
    second = optimizer(path, judge="second")
    np.testing.assert_array_equal(second.ask(kind="line"), second.ask(kind="line"))
    second.tell(line, position=3.5)
    with pytest.raises(AlreadyAnswered, match="told by chosen="):
        found.tell(line, position=3.5)
    assert found.history_[-1].outcome == {"chosen": 4}
    assert found.n_told_ == 1
    with pytest.raises(ValueError, match="tells a place on a line or a plane"):
        found.tell(line, position=3.5)  # once it is known that it was answered


def test_a_process_that_looks_later_knows_the_line(tmp_path, monkeypatch):
    path = tmp_path / "run.db"
    found, second = optimizer(path), optimizer(path)
    line = found.ask(kind="line")
    second.tell(line, position=3.5)
    assert found.history_[-1].outcome == {"chosen": 4}
    assert len(found.pending_) == 0


# --- the item at a position -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "positions"), [("line", [0, 3, 8, 2.25, 7.5]), ("plane", [0, 24, (1, 3), (1.5, 0.25)])]
)
def test_the_item_at_a_position_is_the_one_that_is_told(kind, positions):
    for position in positions:
        found = told(1, kind)
        items = found.ask(kind=kind)
        item, before = found.item_at(items, position), len(found.pending_)
        assert len(found.pending_) == before
        assert found.n_told_ == 1
        found.tell(items, position=position)
        entry = found.history_[-1]
        np.testing.assert_array_equal(entry.items[entry.outcome["chosen"]], item)


def test_the_item_at_a_position_of_a_journal_of_another(tmp_path):
    one, other = (made(journal=tmp_path / "run.db") for _ in range(2))
    items = one.ask(kind="line")
    np.testing.assert_array_equal(other.item_at(items, 2), items[2])
    assert read_journal(tmp_path / "run.db")["kind"] == ["ask"]


@pytest.mark.parametrize("position", [None, 9, -0.5, "left", [1, 2]])
def test_no_item_at_what_is_no_position(position):
    found = made()
    items = found.ask(kind="line")
    with pytest.raises((TypeError, ValueError), match=r"position|answered"):
        found.item_at(items, position)
    with pytest.raises(ValueError, match="no such question"):
        found.item_at(found.ask(), 0)
