"""TrajectoryDisplay: what is drawn is what the trajectories say, on numbers and on dates."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpref import PairwisePreferenceRegressor
from skpref.inspection import trajectories
from skpref.plotting import TrajectoryDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

NAMES = ["ann", "$bob$", "cid of the long name and of the longer one", "dan"]
RNG = np.random.default_rng(0)
PAIRS = np.array([RNG.choice(4, 2, replace=False) for _ in range(60)])
DAYS = np.sort(RNG.integers(0, 900, 60))
DATES = np.datetime64("2019-11-05") + DAYS


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def model(time=DAYS):
    made = PairwisePreferenceRegressor(drift="wiener", optimizer=None)
    return made.fit(np.array(NAMES, dtype=object)[PAIRS], PAIRS[:, 0] < PAIRS[:, 1], time=time)


@pytest.mark.parametrize(
    "unit, words", [("noise", "standard deviations"), ("elo", "Elo"), ("logit", "logits")]
)
def test_artists_are_the_trajectories(unit, words):
    fitted, times = model(), [800.0, 10.0, 400.0]
    found = trajectories(fitted, times=times, unit=unit, level=0.5, top=3)
    display = TrajectoryDisplay.from_estimator(fitted, times=times, unit=unit, level=0.5, top=3)
    assert len(display.lines_) == len(display.bands_) == len(display.marks_) == 3
    for k, line in enumerate(display.lines_):
        assert_allclose(line.get_xdata(), [10.0, 400.0, 800.0])
        assert_allclose(line.get_ydata(), found.utility[k][[1, 2, 0]])
        corners = display.bands_[k].get_paths()[0].vertices
        for place, when in zip((1, 2, 0), (10.0, 400.0, 800.0), strict=True):
            ends = corners[corners[:, 0] == when, 1]
            assert_allclose(
                [ends.min(), ends.max()], [found.lower[k, place], found.upper[k, place]]
            )
    assert words in display.ax_.get_ylabel()
    assert "mean of 4 items" in display.ax_.get_ylabel().replace("\n", " ")


@pytest.mark.slow
def test_answers_are_marked_on_the_line_of_each():
    display = TrajectoryDisplay.from_estimator(model(), ["ann"])
    (mark,), (line,) = display.marks_, display.lines_
    met = np.unique(DAYS[(PAIRS == 0).any(axis=1)])
    assert_allclose(mark.get_xdata(), met)
    assert_allclose(mark.get_ydata(), np.interp(met, line.get_xdata(), line.get_ydata()))
    late = TrajectoryDisplay.from_estimator(model(), ["ann"], [500.0, 900.0])
    assert_allclose(late.marks_[0].get_xdata(), met[met >= 500])
    assert TrajectoryDisplay.from_estimator(model(), answers=False).marks_ == []


@pytest.mark.slow
def test_dates_are_on_the_axis_and_the_end_of_training_is_marked():
    days = DATES[0] + np.arange(0, 1200, 100)
    display = TrajectoryDisplay.from_estimator(model(DATES), times=days)
    display.figure_.canvas.draw()
    ticks = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert "2020" in ticks and "2022" in ticks
    ends = [line for line in display.ax_.lines if len(set(line.get_xdata())) == 1]
    assert any(line.get_xdata()[0] == display.now == DATES.max() for line in ends)
    before = TrajectoryDisplay.from_estimator(model(DATES))
    assert len(before.ax_.lines) == 1 + 2 * 4  # the zero, lines and marks


@pytest.mark.parametrize("width", [3.2, 4.0, 6.4])
def test_dates_do_not_run_into_one_another(width):
    _, ax = plt.subplots(figsize=(width, 3.0))
    display = TrajectoryDisplay(
        names=["ann", "bob"],
        times=np.datetime64("2019-01-01") + np.arange(0, 1500, 30),
        utility=np.zeros((2, 50)),
        lower=-np.ones((2, 50)),
        upper=np.ones((2, 50)),
    ).plot(ax=ax)
    display.figure_.canvas.draw()
    low, high = ax.get_window_extent().intervalx
    texts = [text.get_window_extent() for text in ax.get_xticklabels() if text.get_text()]
    shown = sorted(box.intervalx.tolist() for box in texts if low <= np.mean(box.intervalx) <= high)
    assert len(shown) > 1
    assert all(before[1] < after[0] for before, after in pairwise(shown))


@pytest.mark.slow
def test_lines_differ_in_dashes_too_and_no_two_are_alike():
    n = 28
    rng = np.random.default_rng(1)
    utility = rng.normal(size=(n, 5))
    for background in ("white", "black"):
        _, ax = plt.subplots(facecolor=background)
        ax.set_facecolor(background)
        display = TrajectoryDisplay(
            names=[f"p{k}" for k in range(n)],
            times=np.arange(5.0),
            utility=utility,
            lower=utility - 1.0,
            upper=utility + 1.0,
        ).plot(ax=ax)
        assert display.ax_ is ax
        looks = [(line.get_color(), str(line._unscaled_dash_pattern)) for line in display.lines_]
        assert len(set(looks)) == n
        for one, other in pairwise(looks):
            assert one[0] != other[0] and one[1] != other[1]


@pytest.mark.slow
def test_the_reference_is_named():
    fitted = model()
    one = TrajectoryDisplay.from_estimator(fitted, ["ann", "dan"], relative="$bob$")
    assert r"above \$bob\$" in one.ax_.get_ylabel()
    two = TrajectoryDisplay.from_estimator(fitted, ["ann"], relative=["dan", "$bob$"])
    assert "mean of the reference" in two.ax_.get_ylabel().replace("\n", " ")


def test_letters_have_room_in_a_column_of_a_paper():
    figure, ax = plt.subplots(figsize=(3.4, 2.6))
    display = TrajectoryDisplay.from_estimator(model(DATES), ax=ax)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.get_legend().get_texts()]
    frame = figure.bbox
    for i, one in enumerate(boxes):
        assert frame.x0 <= one.x0 and one.x1 <= frame.x1
        for other in boxes[i + 1 :]:
            wide = min(one.x1, other.x1) - max(one.x0, other.x0)
            assert wide <= 0.0 or min(one.y1, other.y1) - max(one.y0, other.y0) <= 1.0
    top = max(np.max(display.upper), 0.0)
    assert boxes[-1].y0 >= ax.transData.transform((0.0, top))[1] - 1.0
    assert "…" in " ".join(text.get_text() for text in ax.get_legend().get_texts())


def test_one_time_and_refusals():
    fitted = model()
    assert TrajectoryDisplay.from_estimator(fitted, times=[5.0]).utility.shape == (4, 1)
    with pytest.raises(ValueError, match="unit must be one of"):
        TrajectoryDisplay.from_estimator(fitted, unit="metres")
    static = PairwisePreferenceRegressor(optimizer=None).fit(PAIRS[..., None].astype(float))
    with pytest.raises(ValueError, match="fit the model with time="):
        TrajectoryDisplay.from_estimator(static)


def test_of_groups_that_never_met_each_has_its_own_zero():
    made = PairwisePreferenceRegressor(drift="wiener", optimizer=None)
    games = [["ann", "bob"], ["cid", "dan"]] * 4
    with pytest.warns(UserWarning, match="fall into 2 groups"):
        made.fit(games, time=range(8))
    display = TrajectoryDisplay.from_estimator(made)
    assert "the mean of each group" in display.ax_.get_ylabel().replace("\n", " ")
    across = TrajectoryDisplay.from_estimator(made, ["ann", "cid"], relative="bob")
    assert np.all(np.isfinite(across.lines_[0].get_ydata()))
    assert np.all(np.isnan(across.lines_[1].get_ydata()))
    assert np.all(np.isfinite(across.ax_.get_ylim()))
