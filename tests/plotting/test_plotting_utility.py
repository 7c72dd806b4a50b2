"""UtilityDisplay: curve, band and surface are those of the posterior on the grid."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.kernels import Identity
from skpref.plotting import UtilityDisplay
from skpref.preprocessing import Itemwise

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


SIGMA = np.sqrt(0.1)  # of the noise of the model, the unit of what is drawn


@pytest.fixture(scope="module")
def items():
    return np.random.default_rng(0).uniform(size=(21, 3))


@pytest.fixture(scope="module")
def model(items):
    pairs = np.random.default_rng(1).permuted(np.tile(np.arange(21), (40, 1)), axis=1)[:, :2]
    return PairwisePreferenceRegressor(RBF(0.5), noise_variance=0.1, optimizer=None).fit(
        items[pairs]
    )


def test_one_feature(model, items):
    display = UtilityDisplay.from_estimator(model, items, [1], grid_resolution=15, level=0.5)
    grid = np.tile(np.median(items, axis=0), (15, 1))
    grid[:, 1] = np.linspace(items[:, 1].min(), items[:, 1].max(), 15)
    x, y = display.line_.get_data()
    np.testing.assert_allclose(x, grid[:, 1])
    mean = model.predict(grid)
    np.testing.assert_allclose(y, (mean - mean.mean()) / SIGMA, atol=1e-9)
    draws = model.sample_y(grid, 40_000, random_state=0)
    inside = (draws - draws.mean(axis=0)) / SIGMA
    for tail in ((inside < display.lower[:, None]), (inside > display.upper[:, None])):
        np.testing.assert_allclose(tail.mean(axis=1), 0.25, atol=0.01)
    band = display.band_.get_paths()[0].vertices
    assert band[:, 1].min() == display.lower.min() and band[:, 1].max() == display.upper.max()
    np.testing.assert_array_equal(display.items_.get_xdata(), items[:, 1])
    assert display.ax_.get_xlabel() == "feature 1\nother features at their median"


def test_two_features_in_their_order(model, items):
    display = UtilityDisplay.from_estimator(model, items, [2, 0], grid_resolution=7)
    at = np.median(items, axis=0)
    at[2], at[0] = display.grid[0][4], display.grid[1][1]
    corner = at.copy()
    corner[2], corner[0] = display.grid[0][0], display.grid[1][0]
    margin = model.predict([at])[0] - model.predict([corner])[0]
    assert display.mean[4, 1] - display.mean[0, 0] == pytest.approx(margin / SIGMA, abs=1e-9)
    assert display.mean.sum() == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_array_equal(np.transpose(display.items_.get_data()), items[:, [2, 0]])
    assert display.ax_.get_xlabel().split("\n")[0] == "feature 2"
    assert display.ax_.get_ylabel() == "feature 0"
    # The surface has the first feature across: its outline at the top level is where it is largest.
    (top,) = [p for p in display.surface_.get_paths()[-1:] if len(p.vertices)]
    i, j = np.unravel_index(display.mean.argmax(), display.mean.shape)
    reach = [np.ptp(axis) / 6 for axis in display.grid]
    peak = np.array([display.grid[0][i], display.grid[1][j]])
    assert np.all(np.abs(top.vertices - peak) <= reach, axis=1).any()


def test_where_the_others_are_held(model, items):
    display = UtilityDisplay.from_estimator(
        model, items, 0, grid_resolution=2, reference=[9.0, 0.2, 0.3]
    )
    ends = np.array([[items[:, 0].min(), 0.2, 0.3], [items[:, 0].max(), 0.2, 0.3]])
    margin = np.diff(model.predict(ends))[0]
    assert display.mean[1] - display.mean[0] == pytest.approx(margin / SIGMA, abs=1e-9)
    assert "reference" in display.ax_.get_xlabel()


def test_duels_tables_and_none_stand_for_their_items(model, items):
    alone = UtilityDisplay.from_estimator(model, ItemTable(items), [1])
    again = UtilityDisplay.from_estimator(model, items[:20].reshape(10, 2, 3), [1])
    assert alone.items.shape == (21, 1) and again.items.shape == (20, 1)
    assert len(UtilityDisplay.from_estimator(model, None, [1]).items) == len(
        model.comparisons_.items
    )
    named = UtilityDisplay.from_estimator(model, items, ["b"], feature_names=["a", "b", "c"])
    np.testing.assert_allclose(named.mean, alone.mean)


def test_frames_with_categories_through_a_pipeline():
    pd = pytest.importorskip("pandas")
    from sklearn.compose import make_column_transformer

    from skpref.duels import from_pairs

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"price": rng.uniform(1, 9, 12), "kind": list("abaabaabaaba"), "size": rng.uniform(size=12)}
    )
    encode = make_column_transformer(
        (StandardScaler(), ["price", "size"]), (OneHotEncoder(sparse_output=False), ["kind"])
    )
    pairs = [[i, (i + 5) % 12] for i in range(12)]
    model = make_pipeline(
        Itemwise(encode), PairwisePreferenceRegressor(RBF(1.0), optimizer=None)
    ).fit(*from_pairs(frame, pairs))
    display = UtilityDisplay.from_estimator(model, frame, ["price"], grid_resolution=3)
    grid = pd.DataFrame({"price": display.grid[0], "kind": "a", "size": np.median(frame["size"])})
    mean = model.predict(grid)
    np.testing.assert_allclose(0.1 * display.mean, mean - mean.mean(), atol=1e-10)  # σ² = 0.01
    assert display.ax_.get_xlabel().split("\n")[0] == "price"
    held = {"price": 1.0, "kind": "b", "size": 0.5}
    other = UtilityDisplay.from_estimator(model, frame, "price", grid_resolution=3, reference=held)
    mean = model.predict(grid.assign(kind="b", size=0.5))
    np.testing.assert_allclose(0.1 * other.mean, mean - mean.mean(), atol=1e-10)
    with pytest.raises(ValueError, match="'kind' holds no numbers"):
        UtilityDisplay.from_estimator(model, frame, ["kind"])


def test_refusals(model, items):
    for features, message in (
        ([0, 1, 2], "one or two distinct"),
        ([1, 1], "one or two distinct"),
        ([5], "5 is not in X"),
        (["weight"], "'weight' is not in X"),
    ):
        with pytest.raises(ValueError, match=message):
            UtilityDisplay.from_estimator(model, items, features)
    with pytest.raises(ValueError, match="reference must hold one item with the 3 features"):
        UtilityDisplay.from_estimator(model, items, [0], reference=[1.0])
    with pytest.raises(ValueError, match="got 2 feature_names for 3"):
        UtilityDisplay.from_estimator(model, items, [0], feature_names=["a", "b"])
    with pytest.raises(ValueError, match="grid_resolution must lie in"):
        UtilityDisplay.from_estimator(model, items, [0], grid_resolution=1)
    with pytest.raises(ValueError, match="no features"):
        UtilityDisplay.from_estimator(model, ItemTable.from_names(["a", "b"]), [0])
    with pytest.raises(ValueError, match=r"got shape \(3,\)"):
        UtilityDisplay.from_estimator(model, items[0], [0])


def test_units_are_named(model, items):
    for unit, said in (("noise", "standard deviations"), ("elo", "Elo"), ("logit", "logits")):
        curve = UtilityDisplay.from_estimator(model, items, [1], grid_resolution=5, unit=unit)
        plane = UtilityDisplay.from_estimator(model, items, [1, 2], grid_resolution=5, unit=unit)
        assert said in curve.ax_.get_ylabel() and said in plane.colorbar_.ax.get_ylabel()
    with pytest.raises(ValueError, match="unit must be one of 'noise', 'elo', 'logit'"):
        UtilityDisplay.from_estimator(model, items, [1], unit="utility")


@pytest.fixture(scope="module")
def spiked():
    """A model whose items have large effects of their own, at every third point of a grid."""
    row = np.linspace(0.0, 1.0, 7)[:, None]
    pairs = np.array([[1, 0], [1, 2], [3, 2], [3, 4], [5, 4], [5, 6]] * 5)
    kernel = RBF(0.7) + 2.0 * Identity()
    model = PairwisePreferenceRegressor(kernel, noise_variance=0.1, optimizer=None)
    return model.fit(row[pairs]), row


def test_curves_have_no_spikes_at_items(spiked):
    model, row = spiked
    with_effects = UtilityDisplay.from_estimator(
        model, row, [0], grid_resolution=19, item_effects=True
    )
    display = UtilityDisplay.from_estimator(model, row, [0], grid_resolution=19)
    at_items = np.arange(0, 19, 3)

    def jumps(mean):
        bend = np.abs(np.diff(mean, 2))
        return bend[at_items[1:-1] - 1].max() / np.ptp(mean)

    assert jumps(with_effects.mean) > 0.3 and jumps(display.mean) < 0.05
    width = display.upper - display.lower
    assert np.all(width < 0.8 * np.delete(with_effects.upper - with_effects.lower, at_items).min())
    # Items that nobody has met differ from the items by effects whose mean is zero: the curve.
    unmet = display.grid[0][:, None] + 1e-9
    mean = model.predict(unmet)
    np.testing.assert_allclose(
        display.mean, (mean - mean.mean()) / np.sqrt(model.noise_variance_), atol=1e-6
    )
