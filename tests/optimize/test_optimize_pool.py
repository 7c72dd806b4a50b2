"""Pools: candidates with names and without, from tables and frames, and what cannot be a pool."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpref.duels import ItemTable
from skpref.kernels import Identity
from skpref.optimize import HallucinationBelieverOptimizer, PreferenceOptimizer
from skpref.optimize._spaces import make_space

pytestmark = pytest.mark.usefixtures("brief")

NAMES = ["tea", "coffee", "milk", "juice", "water", "beer", "cocoa", "cider"]
FEATURES = np.random.default_rng(0).random((8, 2)) * [1.0, 100.0]
GOAL = FEATURES[4]


def liking(row):
    return -float(np.sum(((row - GOAL) / [1.0, 100.0]) ** 2))


def better(first, second):
    """A judge who knows names alone."""
    return liking(FEATURES[NAMES.index(first)]) > liking(FEATURES[NAMES.index(second)])


def optimizer(candidates, cls=HallucinationBelieverOptimizer, **options):
    return cls(candidates=candidates, **({"n_initial": 3, "random_state": 0} | options))


def table():
    return ItemTable(FEATURES, names=NAMES)


def test_items_of_a_table_with_names_are_names():
    made = optimizer(table())
    assert made.run(better, 12) == "water"
    duel = made.ask()
    assert type(duel) is tuple
    assert set(duel) <= set(NAMES)
    assert all(type(name) is str for name in duel)
    assert made.ask(2)[0] == duel == made.pending_[0]
    assert made.incumbent_ == duel[0]
    for entry in made.history_:
        assert entry.outcome == better(*entry.duel)


def test_names_stand_for_rows_and_change_no_question():
    named, plain = optimizer(table()), optimizer(FEATURES)
    for _ in range(9):
        names, rows = named.ask(), plain.ask()
        np.testing.assert_array_equal([FEATURES[NAMES.index(name)] for name in names], rows)
        np.testing.assert_array_equal(named.to_unit(names), plain.to_unit(rows))
        outcome = better(*names)
        named.tell(names, outcome), plain.tell(rows, outcome)


def test_a_named_pool_is_told_names_rows_or_both():
    made = optimizer(table())
    told = ("coffee", "beer")
    rows = FEATURES[[NAMES.index(name) for name in told]]
    for duel in (told, list(told), np.array(told), rows, (told[0], rows[1])):
        made.tell(duel, 1)
    made.skip(rows).undo()
    assert [entry.duel for entry in made.history_] == [told] * 5
    np.testing.assert_array_equal(made.to_unit(told), made.to_unit(rows))


def test_initial_duels_are_given_by_name():
    made = optimizer(table(), initial_duels=[("tea", "milk"), ("beer", "cocoa")], n_initial=None)
    assert made.ask(2) == [("tea", "milk"), ("beer", "cocoa")]


@pytest.mark.parametrize("cls", [HallucinationBelieverOptimizer, PreferenceOptimizer])
def test_initial_duels_wait_through_journals_refusals_and_other_questions(tmp_path, cls):
    given = [("tea", "milk"), ("beer", "cocoa"), ("tea", "cocoa")]

    def again():
        return optimizer(table(), cls, initial_duels=given, journal=tmp_path / "run.db")

    again().tell(again().ask(beside=["cider"]), 0)
    for other in ("water", "juice", "coffee"):  # more than the design has
        again().tell(("cider", other), 0)
    assert again().ask() == given[0]
    assert again().skip(given[0]).ask() == given[1]  # a refusal is an answer to it
    assert again().undo().ask() == given[0]
    again().tell(given[0], 1)
    assert again().ask(size=5)[:3] == ("beer", "cocoa", "tea")  # both that are left
    assert again().ask() not in given


@pytest.mark.parametrize(
    ("duel", "message"),
    [
        (("tea", "gin"), "'gin' is not the name of one of the 8 candidates; they are named 'tea'"),
        (("tea", 1), "1 is not the name"),
        (("tea", ["coffee"]), "An item must be 2 numbers"),
        (("tea", "tea"), "two different items, got 'tea' twice"),
        ("ab", "A duel is a pair of items.* or two names, got 'ab'"),
        (("tea", [3.0, 4.0]), "not among the 8 candidates"),
    ],
)
def test_what_is_no_pair_of_candidates_is_refused(duel, message):
    made = optimizer(table())
    with pytest.raises(ValueError, match=message):
        made.tell(duel, 1)
    assert made.n_told_ == 0


def test_positions_are_no_names_unless_the_names_are_numbers():
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        optimizer(ItemTable(FEATURES)).tell((0, 1), 1)
    with pytest.raises(ValueError, match="The candidates have no names; got 'tea'"):
        optimizer(FEATURES).tell(("tea", "milk"), 1)
    made = optimizer(ItemTable(FEATURES, names=range(10, 18)))
    made.tell((17, np.int64(10)), 1)
    assert made.incumbent_ == 17
    assert type(made.incumbent_) is int


def test_candidates_that_an_outlier_brings_together_are_themselves():
    x = np.array([1.0, 2.0, 3.0, 4.0, 1e9])
    names = ["one", "two", "three", "four", "big"]
    with pytest.warns(UserWarning, match=r"3 of the candidates.*'two' from 'one'.*logarithm"):
        made = optimizer(ItemTable(x[:, None], names=names))
    made.tell(("one", "big"), 0).tell(("two", "big"), 1).tell(("three", "one"), 1)
    told = [(entry.duel, entry.outcome) for entry in made.history_]
    assert told == [(("one", "big"), 0), (("two", "big"), 1), (("three", "one"), 1)]
    assert len(set(made.ask(size=5))) == 5
    made.run(lambda a, b: abs(names.index(a) - 2) < abs(names.index(b) - 2), 12)
    assert made.recommend() in names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        best = optimizer(ItemTable(np.log(x)[:, None], names=names)).run(
            lambda a, b: abs(names.index(a) - 2) < abs(names.index(b) - 2), 12
        )
    assert best == "three"


@pytest.mark.filterwarnings("ignore:.*candidates differ")
@pytest.mark.parametrize("inference", ["auto", "hallucination", "ep", "laplace", "gibbs", "hmc"])
def test_candidates_that_are_nearly_equal_do_no_harm_to_any_engine(inference):
    x = np.r_[np.arange(1.0, 7.0), 1e9, 1e15][:, None]
    made = optimizer(x, PreferenceOptimizer, inference=inference)
    made.run(lambda a, b: a[0] > b[0], 8)
    assert_array_equal(made.recommend(), [1e15])
    assert np.isfinite(made.posterior_.mean(made.to_unit(x))).all()


def test_frames_of_booleans_and_of_nullable_integers_are_candidates():
    pd = pytest.importorskip("pandas")
    kinds = pd.get_dummies(pd.Series(["red", "green", "blue"], index=["r", "g", "b"]))
    assert optimizer(kinds).run(lambda a, b: "bgr".index(a) > "bgr".index(b), 6) == "r"
    whole = pd.DataFrame({"x": [1, 2, 3]}, dtype="Int64")
    assert_array_equal(optimizer(whole).run(lambda a, b: a[0] > b[0], 6), [3.0])


@pytest.mark.parametrize(
    ("candidates", "error", "message"),
    [
        ([{"x": 1.0}, {"x": 2.0}], TypeError, r"table of numbers.*pandas.DataFrame\(candidates\)"),
        ("frame", ValueError, r"one column of features, got a frame of shape \(0, 0\)"),
    ],
)
def test_what_is_no_table_of_candidates_is_refused(candidates, error, message):
    if isinstance(candidates, str):
        candidates = pytest.importorskip("pandas").DataFrame()
    with pytest.raises(error, match=message):
        optimizer(candidates)


def test_candidates_of_equal_features_are_one_item():
    made = optimizer(ItemTable(FEATURES[[0, 1, 0, 2]], names=["tea", "coffee", "chai", "milk"]))
    made.tell(("coffee", "chai"), 0)
    assert made.history_[0].duel == ("coffee", "tea")
    assert made.recommend() == "tea"
    with pytest.raises(ValueError, match="'tea' and 'chai' are one: their features are equal"):
        made.tell(("tea", "chai"), 1)


def test_journals_know_candidates_by_their_features(tmp_path):
    path = tmp_path / "run.jsonl"
    first = optimizer(table(), journal=path)
    first.run(better, 6)
    duel = first.ask()
    assert optimizer(table(), journal=path).ask() == duel
    unnamed = optimizer(FEATURES, journal=path)
    np.testing.assert_array_equal(unnamed.ask(), [FEATURES[NAMES.index(name)] for name in duel])
    assert [entry.outcome for entry in unnamed.history_] == [e.outcome for e in first.history_]


def test_a_journal_of_candidates_with_other_names_is_refused(tmp_path):
    path = tmp_path / "run.db"
    optimizer(table(), journal=path).tell(("tea", "coffee"), 1)
    renamed = ItemTable(FEATURES, names=[NAMES[-1], *NAMES[:-1]])
    with pytest.raises(ValueError, match="'tea' has the name 'cider' among the candidates"):
        optimizer(renamed, journal=path)
    assert optimizer(table(), journal=path).history_[0].duel == ("tea", "coffee")


# --- names alone ----------------------------------------------------------------------------


def test_items_that_are_names_alone_are_searched():
    made = optimizer(ItemTable.from_names(NAMES))
    assert made.run(lambda first, second: NAMES.index(first) > NAMES.index(second), 25) == "cider"
    assert made.posterior_.kernel == Identity()
    told = {name for entry in made.history_ for name in entry.duel}
    unseen = optimizer(ItemTable.from_names([*NAMES, "gin"])).tell(("tea", "milk"), 1)
    mean = unseen.posterior_.mean(unseen.to_unit(["tea", "gin", "milk"]))
    assert mean[1] == pytest.approx(0.0, abs=1e-12)
    assert mean[0] > 0.1 > -0.1 > mean[2]
    assert told == set(NAMES)


def test_names_alone_are_no_nearer_to_each_other_in_a_long_table():
    """A skip keeps away from duels close by, which none is here."""
    names = list(range(1000))
    made = optimizer(ItemTable.from_names(names))
    assert np.diff(made.to_unit(names)[:, 0]).min() > 0.5


@pytest.mark.parametrize(
    ("inference", "incumbent", "acquisition"),
    [
        ("ep", "joint", "eubo"),
        ("hallucination", "thompson", "thompson"),
        ("laplace", "posterior_mean", "muc"),
    ],
)
def test_every_way_to_choose_works_on_names_alone(inference, incumbent, acquisition):
    made = optimizer(
        ItemTable.from_names(NAMES),
        PreferenceOptimizer,
        inference=inference,
        incumbent=incumbent,
        acquisition=acquisition,
    )
    made.run(lambda first, second: NAMES.index(first) > NAMES.index(second), 8)
    assert len(set(made.ask())) == 2


def test_a_journal_of_names_alone_belongs_to_these_names(tmp_path):
    path = tmp_path / "run.jsonl"
    duel = optimizer(ItemTable.from_names(NAMES), journal=path).ask()
    assert optimizer(ItemTable.from_names(NAMES), journal=path).ask() == duel
    with pytest.raises(ValueError, match=r"another configuration \(space"):
        optimizer(ItemTable.from_names(NAMES[::-1]), journal=path)


# --- frames ---------------------------------------------------------------------------------


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture
def frame(pandas):
    return pandas.DataFrame(FEATURES, index=NAMES, columns=["sweet", "hot"])


def test_the_index_of_a_frame_names_the_items(frame):
    made, same = optimizer(frame), optimizer(table())
    for _ in range(6):
        assert made.ask() == same.ask()
        made.tell(made.ask(), 1), same.tell(same.ask(), 1)
    assert made.recommend() == same.recommend()


def test_a_default_index_names_nothing(frame):
    bare = frame.reset_index(drop=True)
    made = optimizer(bare)
    assert made.ask().shape == (2, 2)
    some = optimizer(bare[bare["sweet"] > 0.3])  # labels that a person would look up
    assert set(some.ask()) <= set(bare.index[bare["sweet"] > 0.3])
    assert all(type(label) is int for label in some.ask())
    assert bare.loc[list(some.ask())].shape == (2, 2)


def test_rows_of_a_frame_are_told_by_column(frame):
    made = optimizer(frame)
    made.tell((frame.loc["tea"], frame.loc["milk"]), 1)
    made.tell(frame.loc[["tea", "milk"]], 1)
    made.tell(frame.loc[["tea", "milk"], ["hot", "sweet"]], 1)  # a name says which is which
    made.tell(frame.loc[["tea", "milk"]].to_dict("records"), 1)
    assert [entry.duel for entry in made.history_] == [("tea", "milk")] * 4
    np.testing.assert_array_equal(made.to_unit(frame), made.to_unit(NAMES))
    with pytest.raises(ValueError, match=r"missing: \['hot'\], not known: \['warm'\]"):
        made.tell(frame.loc[["tea", "milk"]].rename(columns={"hot": "warm"}), 1)
    unnamed = optimizer(FEATURES)
    unnamed.tell(frame.loc[["tea", "milk"]], 1)
    np.testing.assert_array_equal(unnamed.history_[0].duel, FEATURES[[0, 2]])


def test_frames_of_parameters_are_told_to_spaces_of_them(pandas):
    made = HallucinationBelieverOptimizer({"x": (0.0, 1.0), "kind": ["a", "b"]}, random_state=0)
    made.tell(pandas.DataFrame({"kind": ["a", "b"], "x": [0.25, 0.5]}), 0)
    assert made.incumbent_ == {"x": 0.5, "kind": "b"}


def test_columns_that_are_no_numbers_are_named(pandas, frame):
    odd = frame.assign(kind="soft", since=pandas.Timestamp("2020-01-01"))
    with pytest.raises(
        ValueError, match=r"'kind' \(.*\), 'since' \(datetime64.*Encode texts.*set_index"
    ):
        optimizer(odd)
    with pytest.raises(ValueError, match=r"'sweet' \(category\)"):
        optimizer(frame.astype({"sweet": "category"}))
    with pytest.raises(ValueError, match=r"candidates contains NaN .* in columns \['hot'\]"):
        optimizer(frame.assign(hot=np.nan))
    mixed = frame.astype({"hot": "Float32"}).assign(known=[True, False] * 4)
    assert set(optimizer(mixed).ask()) <= set(NAMES)
    with pytest.raises(ValueError, match="stands for more than one item"):
        optimizer(frame.set_axis(["tea"] * 8))


def test_gaps_among_candidates_are_named_with_their_place(pandas, frame):
    gaps = frame.astype(float)
    gaps.iloc[3, 1] = np.nan
    missing = r"NaN or infinity in 1 of 8 items, first in row 3, in columns \[{}\]\. Leave these"
    masked = np.ma.array(frame.to_numpy(float), mask=gaps.isna())
    for pool in (gaps, gaps.astype("Float64"), ItemTable(gaps)):
        with pytest.raises(ValueError, match=missing.format(f"'{frame.columns[1]}'")):
            optimizer(pool)
    for pool in (gaps.to_numpy(), gaps.to_numpy().tolist(), masked):
        with pytest.raises(ValueError, match=missing.format(1)):
            optimizer(pool)


def test_one_feature_comes_as_a_column(pandas, frame):
    column = frame["hot"].astype(float)
    for pool in (column, column.to_numpy(), column.tolist()):
        with pytest.raises(ValueError, match=r"got shape \(8,\).*frame\[\[.*reshape\(-1"):
            optimizer(pool)
    for pool in (frame[["hot"]], column.to_numpy().reshape(-1, 1)):
        assert optimizer(pool).ask() is not None


def test_polars_frames_have_no_names():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(FEATURES, schema=["sweet", "hot"])
    made, same = optimizer(frame), optimizer(FEATURES)
    np.testing.assert_array_equal(made.ask(), same.ask())
    made.tell(frame[[0, 2]], 1)
    np.testing.assert_array_equal(made.history_[0].duel, FEATURES[[0, 2]])
    with pytest.raises(ValueError, match=r"'kind' \(String\).*Encode texts"):
        optimizer(frame.with_columns(kind=polars.lit("soft")))


# --- what cannot be a pool ------------------------------------------------------------------


def test_texts_need_encoding():
    with pytest.raises(ValueError, match=r"candidates must be numeric.*Encode texts"):
        optimizer([["a", "b"], ["c", "d"]])


def test_a_range_that_overflows_is_named():
    with pytest.raises(ValueError, match=r"Feature 1 .* from -1e\+308 to 1e\+308.*such as 1e\+308"):
        optimizer([[0.0, 1e308], [1.0, -1e308]])
    made = optimizer(np.array([[0.0, 1e308], [1.0, -1e308], [0.5, 0.0]]) / 1e308)
    assert made.ask().shape == (2, 2)


def test_a_pool_of_one_is_none():
    for candidates in (np.ones((3, 2)), ItemTable.from_names(["tea"])):
        with pytest.raises(ValueError, match="at least two distinct"):
            make_space(None, candidates)


def test_the_posterior_knows_candidates_by_name():
    table = ItemTable([[0.0, 2.0], [1.0, 4.0], [3.0, 0.0]], names=["tea", "milk", "cola"])
    made = HallucinationBelieverOptimizer(candidates=table, n_initial=1, random_state=0)
    made.tell(("tea", "milk"), 1).tell(("tea", "cola"), 1)
    found = made.posterior_.mean(["cola", "tea"])
    assert_array_equal(found, made.posterior_.mean(made.to_unit(["cola", "tea"])))
    assert found[1] > found[0]
    with pytest.raises(ValueError, match="unknown name"):
        made.posterior_.mean(["beer"])
    bare = HallucinationBelieverOptimizer(candidates=ItemTable.from_names("abc"), n_initial=1)
    bare.tell(("a", "b"), 1)
    assert bare.posterior_.mean(["a"])[0] > 0.0 > bare.posterior_.mean(["b"])[0]
