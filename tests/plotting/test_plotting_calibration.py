"""CalibrationDisplay: bins of exactly calibrated data lie on the diagonal; duels, ties, choices."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.plotting import CalibrationDisplay, ResidualsDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def exact():
    """Probabilities .1, .3, .5, .9, and outcomes in exactly these shares."""
    proba = np.repeat([0.1, 0.3, 0.5, 0.9], [10, 20, 30, 40])
    y = np.concatenate([np.arange(n) < round(p * n) for p, n in [(0.1, 10), (0.3, 20)]])
    more = np.concatenate([np.arange(n) < round(p * n) for p, n in [(0.5, 30), (0.9, 40)]])
    return np.concatenate([y, more]).astype(int), proba


@pytest.mark.parametrize("strategy, n_bins", [("uniform", 10), ("quantile", 12)])
def test_exactly_calibrated_answers_lie_on_the_diagonal(strategy, n_bins):
    y, proba = exact()
    display = CalibrationDisplay.from_predictions(y, proba, strategy=strategy, n_bins=n_bins)
    (curve,) = display.curves
    assert curve.outcome == "first wins"
    np.testing.assert_allclose(curve.predicted, [0.1, 0.3, 0.5, 0.9])
    np.testing.assert_allclose(curve.observed, curve.predicted, atol=1e-12)
    assert curve.size.tolist() == [10, 20, 30, 40]
    assert curve.error == pytest.approx(0.0, abs=1e-12)
    x, drawn = display.bars_[0].lines[0].get_data()
    np.testing.assert_array_equal(x, curve.predicted)
    np.testing.assert_array_equal(drawn, curve.observed)
    (bars,) = display.bars_[0].lines[2]
    ends = np.array([line[:, 1] for line in bars.get_segments()])
    np.testing.assert_allclose(ends, np.stack([curve.lower, curve.upper], axis=1))
    legend = display.ax_.get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["first wins (ECE 0.000)"]


def test_too_sure_predictions_are_seen():
    y, proba = exact()
    display = CalibrationDisplay.from_predictions(y, np.where(proba > 0.5, 1.0, proba))
    assert display.curves[0].error == pytest.approx(0.4 * 0.1)  # 40 of 100 are off by .1


@pytest.mark.slow
def test_bars_hold_binomial_shares():
    # Wilson's interval covers as it says, on average over what may have been observed.
    n, p, level = 40, 0.37, 0.9
    _, ax = plt.subplots()
    covered = 0.0
    for k in range(n + 1):
        y = (np.arange(n) < k).astype(int)
        curve = CalibrationDisplay.from_predictions(y, np.full(n, p), level=level, ax=ax).curves[0]
        assert curve.lower[0] <= curve.observed[0] <= curve.upper[0]
        covered += binom.pmf(k, n, p) * (curve.lower[0] <= p <= curve.upper[0])
    assert abs(covered - level) < 0.03


def test_ties_have_three_curves():
    proba = np.tile([[0.2, 0.3, 0.5]], (10, 1))
    y = np.array([-1] * 2 + [0] * 3 + [1] * 5)
    for classes in (None, [-1, 0, 1]):
        display = CalibrationDisplay.from_predictions(y, proba, classes=classes)
        found = {c.outcome: (c.predicted[0], c.observed[0]) for c in display.curves}
        assert found == {
            "first wins": pytest.approx((0.5, 0.5)),
            "tie": pytest.approx((0.3, 0.3)),
            "second wins": pytest.approx((0.2, 0.2)),
        }
        assert list(found) == ["first wins", "tie", "second wins"]
        assert len({bar.lines[0].get_color() for bar in display.bars_}) == 3
        assert len(display.histograms_) == 3


def test_choices_are_pooled_without_the_places_of_no_item():
    proba = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.2, 0.3, 0.4], [0.2, 0.8, 0.0, 0.0]])
    chosen = np.array([0, 3, 1])
    ranks = np.array([[1, 2, 2, 0], [2, 2, 2, 1], [2, 1, 0, 0]])
    by_position, by_rank = (
        CalibrationDisplay.from_predictions(y, proba, n_bins=3, strategy="uniform").curves[0]
        for y in (chosen, ranks)
    )
    assert by_position.outcome == "chosen"
    assert by_position.size.sum() == 9
    np.testing.assert_allclose(
        by_position.predicted, [np.mean([0.2, 0.1, 0.1, 0.2, 0.3, 0.2]), 0.4, 0.75]
    )
    np.testing.assert_allclose(by_position.observed, [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(by_rank.observed, by_position.observed)
    surprise = CalibrationDisplay.from_predictions([3, 3, 1], proba).curves[0]
    assert surprise.size.sum() == 10  # an item of probability 0 that was chosen after all


def test_three_columns_without_a_tie_are_choices():
    proba = np.tile([[0.2, 0.3, 0.5]], (4, 1))
    (curve,) = CalibrationDisplay.from_predictions([0, 1, 2, 2], proba).curves
    assert curve.outcome == "chosen"


def test_histogram_counts_the_predictions():
    y, proba = exact()
    display = CalibrationDisplay.from_predictions(y, proba)
    tops, edges, baseline = display.histograms_[0].get_data()
    counts = np.histogram(proba, edges)[0]
    np.testing.assert_allclose((tops - baseline) / (tops - baseline).max(), counts / counts.max())
    assert tops.max() < 0.0  # below the curves


def test_from_estimator_predicts():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(60, 2, 2)), rng.integers(2, size=60)
    model = PairwisePreferenceRegressor(RBF(0.5), optimizer=None).fit(X[:30], y[:30] == 1)
    _, ax = plt.subplots()
    display = CalibrationDisplay.from_estimator(model, X[30:], y[30:] == 1, n_bins=5, ax=ax)
    again = CalibrationDisplay.from_predictions(y[30:], model.predict_proba(X[30:]), n_bins=5)
    np.testing.assert_array_equal(display.curves[0].observed, again.curves[0].observed)
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.curves[0].proba, model.predict_proba(X[30:])[:, 1])


def test_the_labels_of_the_model_say_what_the_columns_are():
    # No answer of these says that the second won, and yet a 0 is a tie.
    model = SimpleNamespace(
        classes_=np.array([-1, 0, 1]), predict_proba=lambda X: np.tile([[0.2, 0.3, 0.5]], (4, 1))
    )
    display = CalibrationDisplay.from_estimator(model, None, [0, 1, 1, 0])
    assert {c.outcome: c.observed[0] for c in display.curves} == {
        "first wins": 0.5,
        "tie": 0.5,
        "second wins": 0.0,
    }


def test_refusals():
    draw = CalibrationDisplay.from_predictions
    with pytest.raises(ValueError, match="must hold probabilities"):
        draw([1, 0], [0.5, 1.5])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        draw([1, 0, 1], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"y holds 4, which is none of the labels \[0, 1, 2\]"):
        draw([0, 4], np.full((2, 3), 1 / 3))
    with pytest.raises(ValueError, match="Row 1 of y has 2 items of rank 1"):
        draw([[1, 2, 3], [1, 1, 2]], np.full((2, 3), 1 / 3))
    with pytest.raises(ValueError, match=r"shape \(2, 3\), one for each item; got \(2, 2\)"):
        draw([[1, 2], [1, 2]], np.full((2, 3), 1 / 3))
    with pytest.raises(ValueError, match="proba has 3 columns, classes 2 labels"):
        draw([0, 1], np.full((2, 3), 1 / 3), classes=[0, 1])
    with pytest.raises(ValueError, match="y=None stands for duels alone"):
        draw(None, np.full((2, 3), 1 / 3))
    with pytest.raises(ValueError, match="strategy must be one of"):
        draw([1], [0.5], strategy="both")


def test_who_answered_goes_with_the_predictions():
    rng = np.random.default_rng(0)
    X, judges = rng.uniform(size=(12, 2, 1)), np.arange(12) % 2
    y = (X[:, 0, 0] > X[:, 1, 0]).astype(int)
    model = PairwisePreferenceRegressor(RBF(0.5), optimizer=None).fit(X, y, judges=judges)
    with pytest.raises(TypeError, match=r"got judges .*predict_params=\{'judges': \.\.\.\}"):
        CalibrationDisplay.from_estimator(model, X, y, judges=judges)
    with pytest.raises(TypeError, match=r"got time .*predict_params=\{'time': \.\.\.\}"):
        CalibrationDisplay.from_estimator(model, X, y, time=judges)
    with pytest.warns(UserWarning, match=r'Pass predict_params=\{"judges": judges\}'):
        CalibrationDisplay.from_estimator(model, X, y)
    search = GridSearchCV(PairwisePreferenceRegressor(RBF(0.5)), {"optimizer": [None]}, cv=2)
    search.fit(X, y).best_estimator_ = model
    with pytest.warns(UserWarning, match=r"judges\} and the search's best"):
        CalibrationDisplay.from_estimator(search, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = CalibrationDisplay.from_estimator(model, X, y, predict_params={"judges": judges})
    assert np.sum(shown.curves[0].size) == 12


@pytest.mark.parametrize("display", [CalibrationDisplay, ResidualsDisplay])
@pytest.mark.parametrize("name", ["order", "users", "time"])
def test_what_else_predictions_depend_on_is_missed(name, display):
    rng = np.random.default_rng(0)
    X, told = rng.uniform(size=(12, 2, 1)), {name: np.where(np.arange(12) % 2, 1, -1)}
    y = (X[:, 0, 0] > X[:, 1, 0]).astype(int)
    options: dict = {"optimizer": None, "kernel": RBF(0.5)}
    made = {
        "order": PairwisePreferenceRegressor(order_effect=0.3, **options),
        "users": CollaborativePreferenceRegressor(optimizer=None),
        "time": PairwisePreferenceRegressor(drift="wiener", **options),
    }[name]
    model = made.fit(X, y, **told)
    more = {"groups": y} if display is ResidualsDisplay else {}
    with pytest.warns(UserWarning, match=rf'fitted with {name}.*predict_params=\{{"{name}": '):
        display.from_estimator(model, X, y, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display.from_estimator(model, X, y, predict_params=told, **more)


def test_an_order_without_an_effect_is_not_missed():
    X = np.random.default_rng(0).uniform(size=(12, 2, 1))
    y, order = (X[:, 0, 0] > X[:, 1, 0]).astype(int), np.where(np.arange(12) % 2, 1, -1)
    model = PairwisePreferenceRegressor(RBF(0.5), optimizer=None).fit(X, y, order=order)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CalibrationDisplay.from_estimator(model, X, y)


def test_each_group_has_the_curve_of_its_own_answers():
    y, proba = exact()
    year = np.repeat(np.array(["2024", "2025"], dtype="datetime64[Y]"), [55, 45])
    year = year[np.random.default_rng(0).permutation(100)]
    display = CalibrationDisplay.from_predictions(y, proba, groups=year, n_bins=4)
    assert len(display.curves) == len(display.bars_) == 2
    for name, curve in zip(("2024", "2025"), display.curves, strict=True):
        own = year == np.datetime64(name)
        (alone,) = CalibrationDisplay.from_predictions(y[own], proba[own], n_bins=4).curves
        np.testing.assert_allclose(curve.observed, alone.observed)
        np.testing.assert_array_equal(curve.size, alone.size)
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert [text[:10] for text in legend] == ["2024 (ECE ", "2025 (ECE "]
    colors = {bars.lines[0].get_color() for bars in display.bars_}
    assert len(colors) == 2


def test_groups_of_ties_and_of_choices():
    proba = np.tile([0.2, 0.3, 0.5], (6, 1))
    groups = ["b", "a"] * 3
    # Of the labels of one group alone one could not tell what they are.
    display = CalibrationDisplay.from_predictions([1, -1, 0, -1, 1, 0], proba, groups=groups)
    assert [(curve.group, curve.outcome) for curve in display.curves] == [
        (group, outcome) for group in "ab" for outcome in ("first wins", "tie", "second wins")
    ]
    assert [curve.observed[0] for curve in display.curves[3:]] == pytest.approx([2 / 3, 1 / 3, 0])
    sets = CalibrationDisplay.from_predictions([0, 1, 2, 2, 1, 0], proba, groups=groups)
    assert [curve.size.sum() for curve in sets.curves] == [9, 9]
    with pytest.raises(ValueError, match="group of each of the 6 answers"):
        CalibrationDisplay.from_predictions([1, 0] * 3, proba[:, 0], groups=["a"])
