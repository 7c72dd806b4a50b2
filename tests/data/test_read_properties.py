"""The reader of X on whatever comes: the same answers in every form, and no odd errors."""

import numpy as np
import pytest

pytest.importorskip("hypothesis")
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skpref import ItemTable
from skpref.data import read
from skpref.duels import DuelFrame

PROPERTY = settings(derandomize=True, deadline=None, database=None, max_examples=60)
FINITE = st.floats(-1e6, 1e6)
# numpy cuts zeros off the end of a text, and "" is nobody's name.
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
NUMBERS = st.booleans() | st.integers() | st.floats() | st.complex_numbers()
SCALARS = st.none() | NUMBERS | st.text() | st.binary()
NESTED = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=8)


@st.composite
def questions(draw, least=2):
    """Positions (n, k) of the items of duels or sets, -1 at the end of a row that has fewer."""
    n_items = draw(st.integers(least, 7))
    k = draw(st.integers(2, min(5, n_items)))
    sizes = draw(st.lists(st.integers(2, k), min_size=1, max_size=6))
    order = st.permutations(range(n_items))
    rows = [[*draw(order)[:size], *[-1] * (k - size)] for size in sizes]
    return n_items, np.array(rows)


@PROPERTY
@given(questions(), st.data())
def test_what_was_shown_is_found_again_in_arrays(asked, data):
    n_items, places = asked
    cells = st.lists(FINITE, min_size=2 * n_items, max_size=2 * n_items)
    items = np.array(data.draw(cells)).reshape(n_items, 2)
    X = items[places]
    X[places < 0] = np.nan
    for form in (X, X.tolist(), np.ma.masked_invalid(X), np.asfortranarray(X)):
        shown = read(form)
        assert shown.kind == "items" and len(shown) == len(places)
        assert_array_equal(shown.pairs < 0, places < 0)
        assert_array_equal(shown.rows[shown.pairs[places >= 0]], items[places[places >= 0]])


@PROPERTY
@given(questions(), st.lists(NAMES, min_size=7, max_size=7, unique=True), st.data())
def test_names_are_the_positions_of_their_items(asked, names, data):
    pd = pytest.importorskip("pandas")
    n_items, places = asked
    table = ItemTable(np.arange(n_items)[:, None], names=names[:n_items])
    pad = data.draw(st.sampled_from([None, "", np.nan])) if places.shape[1] > 2 else None
    named = np.array([[names[i] if i >= 0 else pad for i in row] for row in places], dtype=object)
    for form in (named, named.tolist(), pd.DataFrame(named)):
        assert_array_equal(read(form, table=table).places(), places)
    assert_array_equal(read(places, table=table).places(), places)
    assert_array_equal(read(names[:n_items], table=table, items=True).places(), range(n_items))


@PROPERTY
@given(questions())
def test_a_frame_of_duels_is_read_as_its_array(asked):
    n_items, places = asked
    items = np.arange(3.0 * n_items).reshape(n_items, 3)
    padded = np.where((places < 0)[:, :, None], np.nan, items[places])
    frame, array = read(DuelFrame(items, places)), read(padded)
    assert_array_equal(frame.pairs, array.pairs)
    assert_array_equal(frame.rows, array.rows)


@PROPERTY
@given(questions())
def test_what_was_used_is_all_that_was_shown(asked):
    n_items, places = asked
    shown = read(places, table=ItemTable(np.arange(n_items)[:, None]))
    used = shown.without_unshown()
    assert_array_equal(used.places(), shown.places())
    assert len(used.rows) == np.sum(places >= 0) or len(used.rows) == len(np.unique(used.pairs))


@PROPERTY
@given(
    st.lists(NESTED, max_size=4),
    st.sampled_from(["items", "positions", None]),
    st.booleans(),
    st.booleans(),
)
def test_anything_at_all_is_read_or_refused(X, integers, text_sets, with_names):
    """No other errors than those of a bad argument, whose message is for the user."""
    table = ItemTable(np.arange(3)[:, None], names=["a", "b", "c"]) if with_names else None
    try:
        shown = read(X, table=table, integers=integers, text_sets=text_sets)
    except (ValueError, TypeError) as error:
        assert len(str(error)) > 20
    else:
        assert shown.kind in ("items", "texts", "positions", "names")
        assert len(shown) == len(X)
