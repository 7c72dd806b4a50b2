"""Spaces: items and their unit-cube rows stand for each other, whatever the parameters."""

import json
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

from skpref.duels import ItemTable
from skpref.optimize import HallucinationBelieverOptimizer
from skpref.optimize._pool_questions import duel_pool
from skpref.optimize._spaces import Space, make_space

MIXED = {
    "rate": stats.loguniform(1e-4, 1e-1),
    "depth": (1, 12),
    "share": (0.0, 2.0),
    "size": [16, 32, 64, 256],
    "kind": ["a", "b", "c"],
    "shuffle": [True, False],
    "count": stats.poisson(3.0),
    "tilt": stats.norm(1.0, 2.0),
}


FORMS = {
    "bounds": lambda: make_space([[-5.0, 10.0], [0.0, 15.0], [1.0, 2.0]]),
    "named parameters": lambda: make_space(MIXED),
    "pool": lambda: make_space(None, np.random.default_rng(1).normal(size=(9, 2))),
    "named pool": lambda: make_space(None, ItemTable(np.eye(4)[:, :3], names=list("abcd"))),
    "names alone": lambda: make_space(None, ItemTable.from_names(list("abcdef"))),
    "duels of a learner": lambda: duel_pool(np.random.default_rng(2).normal(size=(5, 2, 3))).space,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_space_keeps_the_contract(form):
    """Row, item, JSON and what people see stand for each other; designs and gradients fit rows."""
    space = FORMS[form]()
    assert isinstance(space, Space)
    rows = space.initial_rows(3, 0, 8)
    assert rows.shape == (8, space.n_columns) == (8, len(space.free))
    np.testing.assert_array_equal(space.initial_rows(3, 2, 4), rows[2:6])
    assert space.typical_rows().shape[1] == space.n_columns
    np.testing.assert_allclose(space.snap(rows), rows, atol=1e-12)
    items = [space.to_item(row) for row in rows]
    for row, item in zip(rows, items, strict=True):
        np.testing.assert_allclose(space.to_row(item), row, atol=1e-9)
        kept = space.load(json.loads(json.dumps(space.dump(item))))
        assert str(kept) == str(item) == str(space.clean(item))
        shown = space.present(item)
        assert str(space.clean(shown)) == str(item)
    shown = [space.present(item) for item in items]
    several = space.pack_many([shown[:2], shown[2:4], shown[4:6]])
    assert len(several) == 3
    for k, each in enumerate(several):
        assert str(each) == str(space.pack(shown[2 * k : 2 * k + 2]))
    assert len(space.pack_many([])) == 0
    assert len(space.pack_many([shown[:2], shown[2:5]])[1]) == 3
    assert json.dumps(space.describe()) == json.dumps(FORMS[form]().describe())
    assert str(list(space.list_items(shown))) == str(shown)


def random_items(space, n, seed=0):
    rng = np.random.default_rng(seed)
    return [space.to_item(row) for row in space.rows_at(rng.random((n, space.n_dimensions)))]


@pytest.fixture
def mixed():
    return make_space(MIXED)


def test_bounds_map_linearly():
    space = make_space([[-5.0, 10.0], [0.0, 15.0]])
    assert space.to_row([-5.0, 15.0]) == pytest.approx([0.0, 1.0])
    assert space.to_row([2.5, 3.0]) == pytest.approx([0.5, 0.2])
    assert space.to_item(np.array([0.5, 0.2])) == pytest.approx([2.5, 3.0])


def test_log_uniform_is_searched_on_a_log_scale(mixed):
    item = random_items(mixed, 1)[0]
    row = mixed.to_row({**item, "rate": 1e-4 * 1000**0.25})
    assert row[0] == pytest.approx(0.25)


def test_discrete_values_sit_at_the_middle_of_their_cdf_step(mixed):
    item = random_items(mixed, 1)[0]
    row = mixed.to_row({**item, "count": 2, "depth": 3})
    poisson = stats.poisson(3.0)
    assert row[-2] == pytest.approx(0.5 * (poisson.cdf(1) + poisson.cdf(2)))
    assert row[1] == pytest.approx(2.5 / 12)


def test_categories_are_equally_far_apart(mixed):
    item = random_items(mixed, 1)[0]
    rows = [mixed.to_row({**item, "kind": kind}) for kind in "abc"]
    distances = [np.linalg.norm(rows[i] - rows[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert distances == pytest.approx([0.5, 0.5, 0.5])


def test_rows_and_items_stand_for_each_other(mixed):
    for item in random_items(mixed, 200):
        again = mixed.to_item(mixed.to_row(item))
        for name in ("depth", "size", "kind", "shuffle", "count"):
            assert again[name] == item[name]
            assert type(again[name]) is type(item[name])
        for name in ("rate", "share", "tilt"):
            assert again[name] == pytest.approx(item[name], rel=1e-9)


@pytest.mark.slow
def test_quantiles_spread_as_the_distributions_say(mixed):
    items = random_items(mixed, 4000)
    assert stats.kstest([item["tilt"] for item in items], stats.norm(1.0, 2.0).cdf).pvalue > 1e-3
    counts = np.bincount([item["count"] for item in items], minlength=8)[:8] / len(items)
    assert counts == pytest.approx(stats.poisson(3.0).pmf(np.arange(8)), abs=0.03)
    depths = np.bincount([item["depth"] for item in items], minlength=13)[1:]
    assert stats.chisquare(depths).pvalue > 1e-3


def test_snapping_gives_rows_of_items(mixed):
    rng = np.random.default_rng(0)
    snapped = mixed.snap(rng.random((100, mixed.n_columns)))
    again = np.array([mixed.to_row(mixed.to_item(row)) for row in snapped])
    np.testing.assert_allclose(again, snapped, atol=1e-9)


@pytest.mark.parametrize(
    ("distribution", "inside", "beyond"),
    [
        (stats.lognorm(1), (100.0, 110.0), 200.0),
        (stats.norm(), (-4.5, 4.6), 5.5),
        (stats.poisson(5), (0, 18), 30),
        (stats.expon(), (0.0, 13.0), 40.0),
    ],
)
def test_values_in_a_tail_that_is_not_searched_are_refused(distribution, inside, beyond):
    """Their columns would be equal, and one would stand for another."""
    space = make_space({"x": distribution})
    rows = [space.to_row({"x": value}) for value in inside]
    assert rows[0] != rows[1]
    with pytest.raises(ValueError, match=r"beyond what is searched.*Give a wider distribution"):
        space.to_row({"x": beyond})


def test_rows_of_a_frame_are_items():
    pd = pytest.importorskip("pandas")
    space = make_space({"x": (0.0, 1.0), "n": (1, 4), "kind": ["a", "b"]})
    frame = pd.DataFrame({"kind": ["b", "a"], "x": [0.25, 0.5], "n": [3, 1]})
    for k, row in frame.iterrows():
        assert space.clean(row) == frame.loc[k, ["x", "n", "kind"]].to_dict()


def test_items_survive_json_exactly(mixed):
    for item in random_items(mixed, 50):
        assert mixed.load(json.loads(json.dumps(mixed.dump(item)))) == item
    box = make_space([[0.0, 1.0], [-1e-3, 1e9]])
    item = box.to_item(np.array([1 / 3, 2 / 3]))
    np.testing.assert_array_equal(box.load(json.loads(json.dumps(box.dump(item)))), item)


def test_items_are_kept_as_plain_values(mixed):
    item = random_items(mixed, 1)[0]
    odd = {**item, "depth": np.int64(4), "rate": np.float64(1e-2), "size": np.float32(32)}
    kept = mixed.clean(odd)
    assert [type(kept[name]) for name in ("depth", "rate", "size")] == [int, float, int]
    json.dumps(mixed.dump(kept))


def test_spaces_pickle(mixed):
    item = random_items(mixed, 1)[0]
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(mixed)).to_row(item), mixed.to_row(item)
    )


def test_choices_belong_to_the_space():
    given, sets = [[1, 2], {"a": [3]}], [{1}, {2}]
    made = HallucinationBelieverOptimizer({"kind": given, "set": sets}, random_state=0)
    given[0].append(9)
    sets[0].add(9)
    assert {max(item["set"]) for duel in made.ask(3) for item in duel} == {1, 2}
    for item in made.ask():
        shown = item["kind"]
        shown.append(0) if isinstance(shown, list) else shown["a"].append(0)
    made.ask()[0].clear()
    asked = [item["kind"] for item in made.ask()]
    assert [1, 2] in asked
    assert {"a": [3]} in asked
    made.tell(made.ask(), 1)
    made.history_[0].duel[0].clear()
    assert made.history_[0].duel[0] == made.incumbent_ != {}


def test_choices_that_equal_nothing_else_are_handed_out_themselves():
    one, two = object(), object()
    made = HallucinationBelieverOptimizer({"kind": [one, two]}, random_state=0)
    made.tell(made.ask(), 1)
    assert made.incumbent_["kind"] in (one, two)


@pytest.mark.parametrize(
    ("choices", "kept"),
    [
        (list(np.arange(1, 6)), [1, 2, 3, 4, 5]),
        (list(np.array([3.5, 1.0, 2.0])), [3.5, 1.0, 2.0]),
        (list(np.array(["a", "b"])), ["a", "b"]),
        (list(np.array([True, False])), [True, False]),
        ([np.array([1, 2]), np.array([[3.0]])], [[1, 2], [[3.0]]]),
        ([(np.int64(1), "x"), {"a": np.float32(0.5)}], [(1, "x"), {"a": 0.5}]),
        (np.array([4, 2]), [4, 2]),
    ],
)
def test_numpy_is_left_outside(tmp_path, choices, kept):
    def build():
        return HallucinationBelieverOptimizer(
            {"a": choices}, journal=tmp_path / "run.jsonl", n_initial=1, random_state=0
        )

    made = build()
    made.tell([{"a": choices[0]}, {"a": choices[1]}], 1)
    assert made.history_[0].duel == ({"a": kept[0]}, {"a": kept[1]})
    for _ in range(2):
        for item in made.ask():
            assert item["a"] in kept
            assert repr(item["a"]) in map(repr, kept)
        made.tell(made.ask(), 1)
    assert build().history_ == made.history_


def test_ends_of_unbounded_distributions_are_finite(mixed):
    low, high = np.zeros(mixed.n_columns), np.ones(mixed.n_columns)
    for row in mixed.snap(np.array([low, high])):
        item = mixed.to_item(row)
        assert np.isfinite([item["tilt"], item["count"], item["rate"]]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 13}, "depth = 13 is not one of its 12 values"),
        ({"depth": 2.5}, r"depth = 2\.5 is not one"),
        ({"share": 2.1}, r"share = 2\.1 lies outside \[0\.0, 2\.0\]"),
        ({"share": np.nan}, "share must be a finite number"),
        ({"share": "much"}, "share must be a finite number"),
        ({"rate": 0.5}, "rate = 0.5 lies above its support"),
        ({"rate": 1e-9}, "rate = 1e-09 lies below its support"),
        ({"kind": "d"}, "kind = 'd' is not one of its choices"),
        ({"count": 2.5}, "count = 2.5 has probability 0"),
        ({"colour": 1}, r"not known: \['colour'\]"),
    ],
)
def test_items_outside_are_refused(mixed, change, message):
    with pytest.raises(ValueError, match=message):
        mixed.to_row({**random_items(mixed, 1)[0], **change})


def test_incomplete_items_are_refused(mixed):
    with pytest.raises(ValueError, match=r"missing: \['kind'\]"):
        mixed.to_row({k: v for k, v in random_items(mixed, 1)[0].items() if k != "kind"})
    with pytest.raises(ValueError, match="are dicts with the keys"):
        mixed.to_row([1.0, 2.0])
    with pytest.raises(ValueError, match=r"shape \(2,\), got \(3,\)"):
        make_space([[0, 1], [0, 1]]).to_row([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ([[0.0, 1.0, 2.0]], r"shape \(d, 2\)"),
        ([0.0, 1.0], r"shape \(d, 2\)"),
        ([[1.0, 0.0]], "lower bound below the upper"),
        ([[0.0, np.inf]], "must be a finite number"),
        ("cube", "could not be read as numbers"),
        ({}, "empty dict"),
        ({"a": (3, 3)}, "lower bound below the upper"),
        ({"a": ("x", "y")}, r"a is the tuple .* Categories are a list: \{'a': \['x', 'y'\]\}"),
        ({"a": (True, False)}, r"Categories are a list: \{'a': \[True, False\]\}"),
        ({"a": (0.0, "y")}, r"a range of numbers, \(low, high\)\. Categories"),
        ({"a": (0.0, np.nan)}, "upper bound of a must be a finite number"),
        ({"a": ["x"]}, "at least two distinct choices"),
        ({"a": ["x", "x"]}, "at least two distinct choices"),
        ({"a": 3.0}, "frozen scipy.stats distribution, a tuple"),
        ({"a": stats.poisson}, r"needs parameters \(mu\)"),
        ({"a": stats.randint(3, 4)}, "at least two values"),
        ({"a": stats.rv_discrete(values=([0.5, 1.5], [0.5, 0.5]))}, "only integers are possible"),
        ({"a": ["x", float("nan")]}, "NaN among its choices"),
        ({"a": [0.1, 1.0, np.inf]}, "infinity among its ordered values"),
        ({"a": stats.loguniform(1.0, 1e-3)}, "distribution without quantiles"),
        ({"a": stats.uniform(1.0, -1.0)}, "distribution without quantiles"),
        ({"a": stats.norm(np.nan)}, "distribution without quantiles"),
        ({"a": stats.norm([0.0, 1.0], 1.0)}, "distribution without quantiles"),
        ({"a": stats.randint(5, 5)}, "distribution without quantiles"),
        ([[-1e308, 1e308]], "difference is finite"),
    ],
)
def test_spaces_that_cannot_be_read(space, message):
    with pytest.raises(ValueError, match=message):
        make_space(space)


def test_exactly_one_of_space_and_candidates():
    with pytest.raises(ValueError, match="got neither"):
        make_space(None)
    with pytest.raises(ValueError, match="got both"):
        make_space([[0, 1]], np.eye(3))


def test_pool_is_standardised_and_told_apart():
    table = np.array([[0.0, 10.0], [5.0, 30.0], [5.0, 30.0], [10.0, 20.0], [2.0, 10.0]])
    pool = make_space(None, table)
    assert len(pool.pool) == 4  # one row came twice
    assert pool.pool.min(axis=0).tolist() == [0.0, 0.0]
    assert pool.pool.max(axis=0).tolist() == [1.0, 1.0]
    for item in table:
        np.testing.assert_array_equal(pool.to_item(pool.to_row(item)), item)
    with pytest.raises(ValueError, match="not among the 4 candidates"):
        pool.to_row([5.0, 29.0])
    with pytest.raises(ValueError, match="NaN or infinity"):
        pool.to_row([5.0, np.nan])
    with pytest.raises(ValueError, match="at least two distinct rows"):
        make_space(None, np.ones((3, 2)))


def test_constant_features_of_a_pool_do_no_harm():
    pool = make_space(None, np.array([[1.0, 7.0], [2.0, 7.0]]))
    assert np.isfinite(pool.pool).all()


def test_ranges_of_integers_too_long_to_tell_apart_are_refused():
    with pytest.raises(ValueError, match="wide has 100000001 integers"):
        make_space({"wide": (0, 10**8)})
    space = make_space({"long": (0, 100_000)})
    rows = np.array([space.to_row({"long": k}) for k in (5, 6, 99_999, 100_000)])
    assert np.diff(rows, axis=0)[[0, 2]].min() > 5e-6


@pytest.mark.parametrize("ends", [(0, 1), (-1, 1), (np.int64(4), np.int64(5))], ids=str)
def test_integers_that_may_be_meant_as_a_range_are_asked_about(ends):
    low, high = map(float, ends)
    with pytest.warns(UserWarning, match="is read as the integers") as seen:
        read = HallucinationBelieverOptimizer({"x": ends})._space
    assert len(seen) == 1 and seen[0].filename == __file__
    assert {item["x"] for item in random_items(read, 40)} == set(range(int(low), int(high) + 1))
    remedies = f"give {(low, high)}", f"the list {sorted(range(int(low), int(high) + 1))} says"
    assert all(remedy in str(seen[0].message) for remedy in remedies)


@pytest.mark.parametrize("spec", [(0.0, 1.0), (0, 1.0), [0, 1], (1, 12), (0, 2), (-6, 6)], ids=str)
def test_what_says_what_it_is_passes_in_silence(spec):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        space = make_space({"x": spec})
    values = {item["x"] for item in random_items(space, 40)}
    assert all(isinstance(value, int) for value in values) == all(isinstance(e, int) for e in spec)
