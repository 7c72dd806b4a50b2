"""In which forms a posterior takes items: arrays, frames by name, tables, names and positions."""

from dataclasses import replace

import numpy as np
import pytest
from core_support import random_duels, solve, won
from sklearn.gaussian_process.kernels import RBF

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.duels import from_columns
from skpref.inference import EP
from skpref.kernels import Identity

NAMES = ["tea", "milk", "juice", "cola"]
FEATURES = np.array(["price", "sugar"], dtype=object)


def posterior(**known):
    seen = won(*random_duels(0, 8, 14))
    return knowing(solve(EP(), RBF([0.7, 1.2]), seen, 0.05).posterior, **known)


def knowing(made, **known):
    return replace(made, reader=replace(made.reader, **known))


X = np.random.default_rng(8).uniform(-1.0, 1.0, (4, 2))
TABLE = ItemTable(X, names=NAMES)
METHODS = {
    "mean": lambda p, A, B: p.mean(A),
    "var": lambda p, A, B: p.var(A),
    "cov": lambda p, A, B: p.cov(A),
    "margin": lambda p, A, B: p.margin(A, B),
    "margin_cov": lambda p, A, B: p.margin_cov(A, B),
    "win_probability": lambda p, A, B: p.win_probability(A, B),
    "outcome_log_proba": lambda p, A, B: p.outcome_log_proba(A, B),
    "cdf": lambda p, A, B: p.cdf(A, 0.1),
    "quantile": lambda p, A, B: p.quantile(A, [0.2, 0.7]),
    "credible_interval": lambda p, A, B: p.credible_interval(A),
    "sample": lambda p, A, B: p.sample(A, 3, 0),
    "sample_paths": lambda p, A, B: p.sample_paths(2, 0)(A),
    "path gradients": lambda p, A, B: p.sample_paths(2, 0).value_and_gradient(B)[1],
    "mean_gradient": lambda p, A, B: p.mean_gradient(A),
    "var_gradient": lambda p, A, B: p.var_gradient(A),
    "component_margins": lambda p, A, B: p.component_margins(A, B)[0],
}


class Frame:
    """What makes a DataFrame of any library."""

    def __init__(self, array, columns):
        self._array, self.columns, self.shape = np.asarray(array), columns, np.shape(array)

    def __array__(self, dtype=None, copy=None):
        return self._array.astype(dtype)

    def __getitem__(self, key):
        """A column by its name, or, without pandas, by its position."""
        place = key[1] if isinstance(key, tuple) else self.columns.index(key)
        return Column(self._array[:, place])


class Column(list):
    def to_numpy(self):
        return np.array(self)


@pytest.mark.parametrize("method", METHODS)
def test_names_positions_and_tables_stand_for_rows(method):
    of_table, call = posterior(table=TABLE), METHODS[method]
    truth = call(of_table, X[[2, 0, 2]], X[[1, 1, 3]])
    for A, B in (
        (["juice", "tea", "juice"], ["milk", "milk", "cola"]),
        (np.array(["juice", "tea", "juice"], dtype=object), np.array(["milk", "milk", "cola"])),
        ([2, 0, 2], np.array([1, 1, 3], dtype=np.uint8)),
        (ItemTable(X[[2, 0, 2]]), ["milk", "milk", "cola"]),
    ):
        np.testing.assert_array_equal(call(of_table, A, B), truth)


def test_positions_are_of_the_posteriors_own_table():
    of_table = posterior(table=TABLE)
    np.testing.assert_array_equal(of_table.mean([]), np.zeros(0))
    for wrong in ([0, 4], [-1, 0]):
        with pytest.raises(ValueError, match=r"must lie in \[0, 3\], got (4|-1)"):
            of_table.mean(wrong)
    with pytest.raises(ValueError, match=r"1 unknown name.*'beer'"):
        of_table.mean(["tea", "beer"])
    with pytest.raises(ValueError, match="names or positions of them where there is a table"):
        of_table.mean([0.0, 1.0])
    with pytest.raises(ValueError, match="names or positions of them where there is a table"):
        of_table.mean([True, False])
    with pytest.raises(ValueError, match="has no names"):
        posterior(table=ItemTable(X)).mean(["tea"])
    np.testing.assert_array_equal(posterior(table=ItemTable(X)).mean([3]), of_table.mean(X[3:]))
    # Numbers that are names are asked for by the table; bare integers are positions.
    numbered = posterior(table=ItemTable(X, names=[30, 20, 10, 0]))
    np.testing.assert_array_equal(numbered.mean([0]), of_table.mean(X[:1]))


def test_names_without_a_table_are_told_what_is_missing():
    with pytest.raises(ValueError, match="need items= an ItemTable that has names"):
        posterior().mean(["tea", "milk"])
    with pytest.raises(ValueError, match=r"got \(2,\)\. Pass the items"):
        posterior().mean([0, 1])


def test_duels_in_the_place_of_items_are_told_what_they_are():
    with pytest.raises(ValueError, match=r"got \(2, 2, 2\)\. Pass the items"):
        posterior().mean(X.reshape(2, 2, 2))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", "y"], "b": ["y", "z"], "size": [1.0, 2.0]})
    texts, _ = from_columns(frame, ["size"], ["size"], [1, 0], ids=("a", "b"))
    with pytest.raises(ValueError, match="Pass the items themselves, one a row"):
        posterior().mean(texts)


def test_tables_without_features_are_looked_up_by_name():
    table = ItemTable.from_names(NAMES)
    seen = won(table.X, np.array([0, 1, 0]), np.array([1, 2, 2]))
    of_names = knowing(solve(EP(), Identity(), seen, 0.05).posterior, table=table)
    asked = ItemTable.from_names(["juice", "tea"])
    truth = of_names.mean([[2.0], [0.0]])
    np.testing.assert_array_equal(of_names.mean(asked), truth)
    np.testing.assert_array_equal(of_names.mean(["juice", "tea"]), truth)
    np.testing.assert_array_equal(of_names.mean([2, 0]), truth)
    unseen = ItemTable.from_names(["beer", "wine"])
    np.testing.assert_array_equal(of_names.mean(unseen), 0.0)  # the population: prior mean
    np.testing.assert_allclose(of_names.cov(unseen), np.eye(2))  # and prior covariance
    with pytest.raises(ValueError, match="of items without features"):
        of_names.mean(TABLE)
    with pytest.raises(ValueError, match="with features, this ItemTable has none"):
        posterior(table=TABLE).mean(table)
    with pytest.raises(ValueError, match="with features, this ItemTable has none"):
        posterior().mean(table)


@pytest.mark.parametrize("method", METHODS)
def test_columns_come_by_the_names_and_in_the_order_of_the_fit(method):
    named, call = posterior(feature_names=FEATURES), METHODS[method]
    right, swapped = Frame(X, ["price", "sugar"]), Frame(X, ["sugar", "price"])
    np.testing.assert_array_equal(call(named, right, X), call(named, X, X))
    np.testing.assert_array_equal(call(named, X, right), call(named, X, X))
    both = r"columns \['sugar', 'price'\], but the model was fitted on \['price', 'sugar'\]"
    with pytest.raises(ValueError, match=both):
        call(named, swapped, swapped)


def test_columns_without_names_are_taken_as_they_come():
    named = posterior(feature_names=FEATURES)
    truth = named.mean(X)
    np.testing.assert_array_equal(named.mean(Frame(X, [0, 1])), truth)
    np.testing.assert_array_equal(posterior().mean(Frame(X, ["sugar", "price"])), truth)
    with pytest.raises(ValueError, match="n_features = 2, got 3"):
        posterior().mean(Frame(np.zeros((2, 3)), ["a", "b", "c"]))
    with pytest.raises(ValueError, match=r"columns \['a', 'b', 'c'\]"):
        named.mean(Frame(np.zeros((2, 3)), ["a", "b", "c"]))


def test_tables_of_other_features():
    pandas = pytest.importorskip("pandas")
    named = posterior(feature_names=FEATURES)
    right = pandas.DataFrame(X, columns=list(FEATURES), index=NAMES)
    truth = named.mean(X)
    np.testing.assert_array_equal(named.mean(right), truth)
    np.testing.assert_array_equal(named.mean(ItemTable(right)), truth)
    np.testing.assert_array_equal(named.mean(TABLE), truth)
    for swapped in (right[["sugar", "price"]], ItemTable(right[["sugar", "price"]])):
        with pytest.raises(ValueError, match="Give the same columns in the same order"):
            named.mean(swapped)
    by_name = knowing(named, table=ItemTable(right))
    some = by_name.mean(pandas.Series(["cola", "tea"]))
    np.testing.assert_allclose(some, truth[[3, 0]], rtol=1e-12)
    with pytest.raises(ValueError, match="n_features = 2, got 1"):
        posterior().mean(ItemTable(X[:, :1]))


def test_masked_items_are_missing():
    masked = np.ma.masked_array(X, mask=np.isclose(X, X.max()))
    with pytest.raises(ValueError, match="NaN or infinity"):
        posterior().mean(masked)
    np.testing.assert_array_equal(
        posterior().mean(np.ma.masked_array(X, mask=False)), posterior().mean(X)
    )


def test_derived_posteriors_know_the_same_names():
    made = posterior(feature_names=FEATURES, table=TABLE).hallucinate(0)
    assert made.reader.feature_names is FEATURES
    assert made.reader.table is TABLE


@pytest.mark.parametrize("method", ["sample", "sample_paths"])
def test_the_number_of_draws_is_a_positive_integer(method):
    made = posterior()

    def draw(n):
        return made.sample(X, n) if method == "sample" else made.sample_paths(n)

    for n in (0, -1):
        with pytest.raises(ValueError, match=f"n must lie in .*got {n}"):
            draw(n)
    for n in (1.5, True, "3"):
        with pytest.raises(TypeError, match="n must be an integer"):
            draw(n)
    draw(np.int64(2))


def test_two_names_never_heard_of_are_two_items():
    table = ItemTable.from_names(NAMES)
    seen = won(table.X, np.array([0, 1, 0]), np.array([1, 2, 2]))
    of_names = knowing(solve(EP(), Identity(), seen, 0.05).posterior, table=table)
    for A, B in ((["ann"], ["zoe"]), (ItemTable.from_names(["ann"]), np.array(["zoe"]))):
        mean, variance = of_names.margin(A, B)
        assert (mean[0], variance[0]) == (0.0, 2.0)  # independent, of unit variance each
        same = of_names.margin_cov(["ann", "zoe"], ["zoe", "ann"])
        np.testing.assert_array_equal(same, [[2.0, -2.0], [-2.0, 2.0]])
    assert of_names.margin(["zoe"], ["zoe"])[1][0] == 0.0


def test_ids_that_are_texts_are_asked_for_as_in_predict():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=40)
    second = (first + rng.integers(1, 4, size=40)) % 4
    letters = np.array(list("ABCD"))
    frame = pd.DataFrame({"a": letters[first], "b": letters[second]})
    frame["x_a"], frame["x_b"] = rng.normal(size=(2, 40))
    X, y = from_columns(frame, ["x_a"], ["x_b"], first > second, ids=("a", "b"))
    model = PairwisePreferenceRegressor().fit(X, y)
    asked = pd.DataFrame({"id": ["D", "A", "new"], "x": [0.0, 0.5, 1.0]})
    truth = model.predict(asked)
    for items in (asked, ItemTable(asked), asked.to_numpy(), asked.to_numpy().tolist()):
        np.testing.assert_array_equal(model.posterior_.mean(items), truth)
    np.testing.assert_allclose(
        model.posterior_.win_probability(X.first, X.second), model.predict_proba(X)[:, 1]
    )
    # Two that nobody has seen differ by the item effects of both, at equal features.
    other = asked[2:].assign(id="other")
    one, two = np.array([[9.0, 1.0]]), np.array([[8.0, 1.0]])
    own = model.kernel_(one)[0] - model.kernel_(one, two)[0]
    variance = model.posterior_.margin(asked[2:], other)[1]
    np.testing.assert_allclose(variance, 2.0 * own, rtol=1e-10)
    assert model.posterior_.margin(asked[2:], asked[2:])[1][0] < 1e-10
    with pytest.raises(ValueError, match="id of an item is missing"):
        model.posterior_.mean(asked.assign(id=None))
