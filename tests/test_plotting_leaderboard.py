"""LeaderboardDisplay: what is drawn is what the leaderboard says, at every size."""

import numpy as np
import pytest

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.inspection import leaderboard
from skpref.plotting import LeaderboardDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def players(n):
    names = [f"player {i} of ${n}$" for i in range(n)]
    rng = np.random.default_rng(0)
    games = [rng.choice(names, 2, replace=False) for _ in range(4 * n)]
    table = ItemTable.from_names(names)
    model = PairwisePreferenceRegressor(items=table, optimizer=None, noise_variance=0.25)
    return model.fit(np.array(games))


def texts(display):
    return [text.get_text() for text in display.annotations_]


@pytest.mark.parametrize("unit, scale", [("utility", 1.0), ("noise", 0.5), (None, 0.5)])
def test_artists_are_the_leaderboard(unit, scale):
    model = players(6)
    board = leaderboard(model, level=0.8, random_state=3)
    display = LeaderboardDisplay.from_estimator(model, level=0.8, random_state=3, unit=unit)
    x, y = display.points_.get_data()
    np.testing.assert_allclose(x, board.utility / scale)
    assert y.tolist() == list(range(6))
    ends = np.array([line[:, 0] for line in display.intervals_.get_segments()])
    np.testing.assert_allclose(ends, np.stack([board.lower, board.upper], axis=1) / scale)
    bottom, top = display.ax_.get_ylim()
    assert bottom > top  # the first row is on top
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert [label.replace("\\$", "$") for label in labels] == board.names.tolist()
    chances = [p for p in texts(display) if p.endswith("%") and "\n" not in p]
    said = [f"{100 * p:.0f} %" for p in board.probability_best if p >= 0.01]
    assert chances[: len(said)] == said
    ranks = texts(display)[1:7]
    assert ranks == [
        f"{a}–{b}" if a < b else f"{a}"
        for a, b in zip(board.rank_lower, board.rank_upper, strict=True)
    ]
    assert display.figure_ is display.ax_.figure
    assert ("noise" in display.ax_.get_xlabel()) == (unit != "utility")


def test_the_best_few_keep_their_ranks_and_zero():
    model = players(8)
    board = leaderboard(model)
    display = LeaderboardDisplay.from_estimator(model, top=3)
    np.testing.assert_allclose(display.utility, board.utility[:3] / 0.5)
    np.testing.assert_array_equal(display.rank_upper, board.rank_upper[:3])
    assert "mean of the 8 items" in display.ax_.get_xlabel()


@pytest.mark.parametrize("n", [1, 3, 60])
def test_no_two_letters_overlap(n):
    display = LeaderboardDisplay.from_estimator(players(max(n, 2)), np.arange(n))
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    boxes += [text.get_window_extent() for text in display.annotations_]
    frame = display.figure_.bbox
    for i, one in enumerate(boxes):
        assert frame.x0 <= one.x0 and one.x1 <= frame.x1 and one.y1 <= frame.y1
        for other in boxes[i + 1 :]:
            wide = min(one.x1, other.x1) - max(one.x0, other.x0)
            high = min(one.y1, other.y1) - max(one.y0, other.y0)
            assert wide <= 0.0 or high <= 1.0
    assert len(display.annotations_) == 2 * (n + 1)


def test_where_rows_are_too_close_letters_are_left_out():
    _, ax = plt.subplots(figsize=(4, 3))
    display = LeaderboardDisplay.from_estimator(players(60), ax=ax)
    assert display.ax_ is ax
    assert display.annotations_ == []
    assert 10 < len(ax.get_yticks()) < 40
    assert len(display.points_.get_xdata()) == 60
    assert LeaderboardDisplay.from_estimator(players(3), annotate=False).annotations_ == []


def test_drawn_again_from_its_attributes():
    board = leaderboard(players(4))
    names = ("names", "utility", "lower", "upper", "probability_best", "rank_lower", "rank_upper")
    display = LeaderboardDisplay(**{name: board[name] for name in names}).plot(color="red")
    np.testing.assert_array_equal(display.points_.get_xdata(), board.utility)
    assert display.points_.get_color() == "red"


def test_refusals():
    model = players(3)
    with pytest.raises(ValueError, match="unit must be one of 'noise', 'utility'"):
        LeaderboardDisplay.from_estimator(model, unit="metres")
    with pytest.raises(ValueError, match="top must lie in"):
        LeaderboardDisplay.from_estimator(model, top=0)
