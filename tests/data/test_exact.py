"""Ids, names and times keep their exact value through every door, or are refused by name."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpref import CollaborativePreferenceRegressor, ItemTable, PairwisePreferenceRegressor
from skpref.data import AnswerMetadata, Respondents, is_missing
from skpref.duels import DuelFrame

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

# Two values that doubles, or another type, would make one; each with a value to stand for a third.
PAIRS = {
    "wide": [10**18 + 1, 10**18 + 2],
    "negative": [-(10**17) - 1, -(10**17) - 2],
    "unsigned": [2**63 + 1, 2**63 + 2],
    "at the edge": [2**53, 2**53 + 1],
    "decimal": [Decimal("1000000000000000001"), Decimal("1000000000000000002")],
    "date": [date(2020, 1, 1), date(2020, 1, 2)],
    "moment": [datetime(2020, 1, 1, 0, 0, 0, 1), datetime(2020, 1, 1, 0, 0, 0, 2)],
    "text": ["7", "07"],
}
INTEGERS = ["wide", "negative", "unsigned", "at the edge"]
DUELS = np.random.default_rng(0).standard_normal((4, 2, 2))
Y = [0, 1, 0, 1]
MISSING = {"None": None, "NaN": np.nan, "null": None}


def nullable(values):
    unsigned = any(value is not None and value >= 2**63 for value in values)
    return pd.Series(values, dtype="UInt64" if unsigned else "Int64")


def pyarrow(values):
    pa = pytest.importorskip("pyarrow")
    unsigned = any(type(value) is int and value >= 2**63 for value in values)
    return pa.chunked_array([pa.array(values, pa.uint64() if unsigned else None)])


def objects(values):
    return np.fromiter(values, dtype=object, count=len(values))


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "objects": objects,
    "pandas objects": lambda values: pd.Series(values, dtype=object),
    "pandas": nullable,
    "polars": pl.Series,
    "pyarrow": pyarrow,
}


def column(container, kind, values):
    if container == "pandas" and kind not in INTEGERS:
        pytest.skip("a nullable type of integers")
    return CONTAINERS[container](values)


def fitted(cls=PairwisePreferenceRegressor, **metadata):
    return cls(optimizer=None).fit(DUELS, Y, **metadata)


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_ids_of_judges_and_users_stay_as_they_are(container, kind):
    a, b = PAIRS[kind]
    ids = column(container, kind, [a, b, None, b])
    metadata = AnswerMetadata.read({"judges": ids, "users": ids}, 4, 2)
    for listed in (metadata.judge, metadata.user):
        assert [listed[0], listed[1], listed[3]] == [a, b, b]
        assert is_missing(listed[2])
        assert Respondents([a, b], "judge").codes(listed).tolist() == [0, 1, -1, 1]


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_gap_beside_an_id_does_not_change_it(container):
    a, b = PAIRS["wide"]
    asked = column(container, "wide", [b, a, None, b])
    model = fitted(judges=[a, b, a, b])
    proba = model.predict_proba(DUELS, judges=[b, a, None, b])
    assert_array_equal(model.predict_proba(DUELS, judges=asked), proba)
    reference = model.predict_proba(DUELS)  # a judge that is not named
    np.testing.assert_allclose(proba[2], reference[2], rtol=1e-9)
    assert not np.allclose(proba[1], reference[1], rtol=1e-6)
    people = fitted(CollaborativePreferenceRegressor, users=[a, b, a, b])
    assert people.users_.tolist() == [a, b]
    mean = people.predict(DUELS, users=[b, a, None, b])
    assert_array_equal(people.predict(DUELS, users=asked), mean)


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_names_of_a_table_stay_as_they_are(container, kind):
    names = column(container, kind, PAIRS[kind])
    table = ItemTable([[0.0], [1.0]], names=names)
    assert table.names.tolist() == PAIRS[kind]
    assert table.index(names).tolist() == [0, 1]
    assert table.index(PAIRS[kind][::-1]).tolist() == [1, 0]
    assert ItemTable.from_names(names).names.tolist() == PAIRS[kind]


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_column_of_ids_stays_as_it_is(container, kind):
    a, b = PAIRS[kind]
    ids = column(container, kind, [a, b, a + 4, None])
    if container == "polars":
        frame = pl.DataFrame({"who": ids, "x": [0.5, 0.25, 0.75, 0.0]})
    elif container == "pyarrow":
        frame = pytest.importorskip("pyarrow").table({"who": ids, "x": [0.5, 0.25, 0.75, 0.0]})
    else:
        ids = ids if container == "pandas" else pd.Series(ids, dtype=object)
        frame = pd.DataFrame({"who": ids, "x": [0.5, 0.25, 0.75, 0.0]})
    X = DuelFrame(frame, [[0, 1], [1, 2]], id_column="who")  # the item without an id is in no duel
    model = PairwisePreferenceRegressor(optimizer=None).fit(X)
    assert model.ids_.tolist() == [a, b, a + 4]
    assert len(model.comparisons_.items) == 3
    turned = DuelFrame(frame, [[1, 0], [2, 1]], id_column="who")
    assert_array_equal(model.predict(turned), -model.predict(X))


def test_the_first_two_integers_that_doubles_make_one_are_two_items():
    pair = PAIRS["at the edge"]
    frame = pd.DataFrame({"who": pair, "x": [0.5, 0.25]})
    model = PairwisePreferenceRegressor(optimizer=None)
    assert model.fit(DuelFrame(frame, [[0, 1]], id_column="who")).ids_.tolist() == pair


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_groups_of_wide_numbers_are_told_apart(container, kind):
    a, b = PAIRS[kind]
    qid = column(container, kind, [a, a, b, b])
    model = PairwisePreferenceRegressor(optimizer=None)
    model.fit(DUELS[:, 0], [1.0, 2.0, 3.0, 4.0], qid=qid)
    assert len(model.comparisons_.positions) == 2


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_times_of_wide_numbers_keep_their_distance(container, kind):
    start = PAIRS[kind][0]
    time = column(container, kind, [start, start + 1, start + 3, start + 2])
    model = PairwisePreferenceRegressor(optimizer=None, drift="wiener")
    games = [["ann", "bob"]] * 4
    model.fit(games, Y, time=time)
    small = PairwisePreferenceRegressor(optimizer=None, drift="wiener")
    small.fit(games, Y, time=[0, 1, 3, 2])
    ahead = [["ann", "bob"]]
    for later in (0, 2, 9):
        assert_array_equal(
            model.predict(ahead, time=start + later), small.predict(ahead, time=later)
        )
    axis = model.posterior_.reader.time
    assert axis.times(np.array([0.0, 3.0])).tolist() == [start, start + 3]


def test_integers_of_mixed_width_in_a_list_are_not_made_doubles():
    ids = [2**63 + 1, 5, -5, 2**63 + 2]
    assert fitted(judges=ids).judges_.respondents.names.tolist() == ids
    model = PairwisePreferenceRegressor(optimizer=None, drift="wiener")
    model.fit([["ann", "bob"]] * 2, [0, 1], time=[2**63 + 1, -(2**63)])
    assert model.posterior_.reader.time.origin == -(2**63)


# -- what is refused by name -----------------------------------------------------------------


@pytest.mark.parametrize("container", ["list", "objects", "pandas objects", "polars"])
@pytest.mark.parametrize("missing", MISSING)
def test_every_gap_has_the_same_message(container, missing):
    ids = ["ann", "bob", MISSING[missing], "ann"]
    if container == "polars":
        ids = [None if name is np.nan else name for name in ids]
    ids = CONTAINERS[container](ids)
    message = r"is missing \(None, NaN or null\), first in row 2\. "
    with pytest.raises(ValueError, match="The id of a judge " + message):
        fitted(judges=ids)
    with pytest.raises(ValueError, match="The id of a user " + message):
        fitted(CollaborativePreferenceRegressor, users=ids)
    frame = pd.DataFrame({"who": list(ids), "x": [0.5, 0.25, 0.75, 0.0]})
    X = DuelFrame(frame, [[0, 1], [2, 3]], id_column="who")
    with pytest.raises(ValueError, match="The id of an item " + message):
        PairwisePreferenceRegressor().fit(X)
    with pytest.raises(ValueError, match=r"A name of an item is missing \(None, NaN or null\)"):
        ItemTable(np.zeros((4, 1)), names=ids)


def test_integers_that_were_rounded_before_they_came_are_refused():
    wide = [10**18 + 1, 10**18 + 2, 10**18 + 1, 10**18 + 2]
    rounded = pd.Series([*wide, None])[:4]  # numpy's type for this is float64
    assert rounded.dtype == np.float64
    with pytest.raises(ValueError, match=r"in the ids of judges.*may be two ids"):
        fitted(judges=rounded)
    with pytest.raises(ValueError, match="in the ids of users"):
        fitted(CollaborativePreferenceRegressor, users=rounded)
    with pytest.raises(ValueError, match="in the ids of qid"):
        PairwisePreferenceRegressor().fit(DUELS[:, 0], [1.0, 2.0, 3.0, 4.0], qid=rounded)
    X = np.stack([np.array(wide, dtype=np.float64).reshape(2, 2), np.zeros((2, 2))], axis=2)
    with pytest.raises(ValueError, match="in the ids of items"):
        PairwisePreferenceRegressor(id_column=0).fit(X)


def test_wide_ids_after_small_ones_are_refused():
    X = np.array([[[1, 0], [2, 0]], [[2, 0], [3, 0]]])
    model = PairwisePreferenceRegressor(id_column=0, optimizer=None).fit(X)
    wide = X + np.array([10**18, 0])
    with pytest.raises(ValueError, match=r"integers of 2\*\*53 and more"):
        model.predict(wide)


@pytest.mark.parametrize("nested", [[[1, 2], [1, 3]], [{"a": 1}, {"a": 2}]])
@pytest.mark.parametrize("container", ["list", "pandas objects", "polars"])
def test_nested_ids_are_refused_by_name(container, nested):
    ids = CONTAINERS[container](nested * 2)
    for role, cls in (
        ("judges", PairwisePreferenceRegressor),
        ("users", CollaborativePreferenceRegressor),
    ):
        with pytest.raises(TypeError, match=f"Ids of {role} must be hashable; row 0 of {role}"):
            fitted(cls, **{role: ids})
    frame = pd.DataFrame({"who": pd.Series(nested * 2, dtype=object), "x": [0.5, 0.25, 0.75, 0.0]})
    X = DuelFrame(frame, [[0, 1], [2, 3]], id_column="who")
    with pytest.raises(TypeError, match="Ids of items must be hashable; row 0"):
        PairwisePreferenceRegressor().fit(X)


def test_decimals_are_no_times():
    with pytest.raises(ValueError, match=r"time must be numbers.*Decimal"):
        fitted(time=PAIRS["decimal"] * 2)
