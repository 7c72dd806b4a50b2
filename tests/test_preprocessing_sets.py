"""Itemwise on sets of items: every item as it would be transformed alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skpref.duels import DuelFrame
from skpref.preprocessing import Itemwise

RNG = np.random.default_rng(0)
ITEMS = RNG.normal([5.0, -3.0], [10.0, 0.1], size=(7, 2))
SETS = np.array([[0, 1, 2, 3], [4, 0, -1, -1], [5, 2, 0, -1], [3, 2, 1, 0]])
WHOLE = SETS[[0, 3]]
SHOWN = SETS >= 0
MET = ITEMS[:6]  # the seventh never does
TRUTH = StandardScaler().fit(MET)


def test_sets_are_transformed_as_their_distinct_items():
    X = ITEMS[WHOLE]
    truth = StandardScaler().fit(ITEMS[:4])
    itemwise = Itemwise(StandardScaler())
    out = itemwise.fit_transform(X)
    assert isinstance(out, np.ndarray)
    assert_allclose(out, truth.transform(ITEMS)[WHOLE], atol=1e-12)
    assert_array_equal(itemwise.transform(X), out)
    assert_array_equal(itemwise.transform(X[:, :2]), out[:, :2])  # duels by the same fit
    assert_array_equal(itemwise.transform(X[0]), out[0])
    assert_allclose(itemwise.inverse_transform(out), X, atol=1e-12)


@pytest.mark.parametrize("framed", [False, True])
def test_sets_of_different_sizes_stay_so(framed):
    pd = pytest.importorskip("pandas") if framed else None
    X = DuelFrame(pd.DataFrame(ITEMS, columns=["a", "b"]) if framed else ITEMS, SETS)
    itemwise = Itemwise(StandardScaler())
    out = itemwise.fit_transform(X)
    assert isinstance(out, DuelFrame) and out.shape == (4, 4, 2)
    assert_allclose(itemwise.transformer_.mean_, TRUTH.mean_)
    assert_array_equal(out.pairs >= 0, SHOWN)
    assert_allclose(np.asarray(out)[SHOWN], TRUTH.transform(ITEMS)[SETS][SHOWN], atol=1e-12)
    back = itemwise.inverse_transform(out)
    assert_allclose(np.asarray(back), np.asarray(X), atol=1e-12)
    assert isinstance(itemwise.transform(X[[0, 3]]), np.ndarray)


def test_frames_come_out_where_they_are_asked_for():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"kind": ["tea", "cola", "milk"], "size": [1.0, 2.0, 3.0]})
    columns = ColumnTransformer(
        [("kind", OneHotEncoder(), ["kind"]), ("n", "passthrough", ["size"])]
    )
    X = DuelFrame(frame, [[0, 1, 2], [2, 0, -1]])
    out = Itemwise(columns).set_output(transform="pandas").fit_transform(X)
    assert out.feature_names.tolist()[-1] == "n__size"
    assert_array_equal(np.asarray(out)[1, :2, -1], [3.0, 1.0])
    assert_array_equal(out.pairs < 0, X.pairs < 0)


def test_sets_of_texts_are_read_where_the_transformer_takes_texts():
    texts = [["good fun", "dull", "fun"], ["dull", "good", None]]
    truth = CountVectorizer().fit(["good fun", "dull", "fun", "good"])
    reader = Itemwise(CountVectorizer())
    out = reader.fit_transform(texts)
    assert isinstance(out, DuelFrame)
    array = np.asarray(out)
    assert_array_equal(array[0], truth.transform(texts[0]).toarray())
    assert_array_equal(array[1, :2], truth.transform(texts[1][:2]).toarray())
    assert_array_equal(reader.transform(texts[:1])[0], array[0])
    categories = np.array([["a", "b", "c"], ["a", "d", "c"]])
    assert Itemwise(OneHotEncoder()).fit_transform(categories).shape == (2, 4)  # two items
