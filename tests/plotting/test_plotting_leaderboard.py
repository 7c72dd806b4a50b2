"""LeaderboardDisplay: what is drawn is what the leaderboard says, at every size."""

import io
from itertools import pairwise
from xml.etree import ElementTree

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


@pytest.mark.parametrize(
    "unit, words", [("noise", "standard deviations"), ("elo", "Elo"), ("logit", "logits")]
)
def test_artists_are_the_leaderboard(unit, words):
    model = players(6)
    board = leaderboard(model, level=0.8, random_state=3, unit=unit)
    display = LeaderboardDisplay.from_estimator(model, level=0.8, random_state=3, unit=unit)
    x, y = display.points_.get_data()
    np.testing.assert_allclose(x, board.utility)
    assert y.tolist() == list(range(6))
    ends = np.array([line[:, 0] for line in display.intervals_.get_segments()])
    np.testing.assert_allclose(ends, np.stack([board.lower, board.upper], axis=1))
    bottom, top = display.ax_.get_ylim()
    assert bottom > top  # the first row is on top
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert [label.replace("\\$", "$") for label in labels] == board.names.tolist()
    shown = texts(display)
    first = shown.index("P(best)") + 1
    for text, probability in zip(shown[first:], board.probability_best, strict=False):
        assert float(text.lstrip("<> ")) == pytest.approx(probability, abs=0.001)
    ranks = texts(display)[1:7]
    assert ranks == [
        f"{a}–{b}" if a < b else f"{a}"
        for a, b in zip(board.rank_lower, board.rank_upper, strict=True)
    ]
    assert display.figure_ is display.ax_.figure
    assert words in display.ax_.get_xlabel()


def test_the_best_few_keep_their_ranks_and_zero():
    model = players(8)
    board = leaderboard(model)
    display = LeaderboardDisplay.from_estimator(model, top=3)
    np.testing.assert_allclose(display.utility, board.utility[:3])
    np.testing.assert_array_equal(display.rank_upper, board.rank_upper[:3])
    assert "mean of the 8 items" in display.ax_.get_xlabel()


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 3, 60])
def test_no_two_letters_overlap(n):
    display = board_of([f"player {i} of ${n}$" for i in range(n)]).plot()
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
    display = board_of([f"player {i}" for i in range(60)]).plot(ax=ax)
    assert display.ax_ is ax
    assert display.annotations_ == [] and len(ax.texts) == 0
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
    with pytest.raises(ValueError, match="unit must be one of 'noise', 'elo', 'logit'"):
        LeaderboardDisplay.from_estimator(model, unit="metres")
    with pytest.raises(ValueError, match="top must lie in"):
        LeaderboardDisplay.from_estimator(model, top=0)


# -- room -------------------------------------------------------------------------------------

LONG = [f"player {i} of the long name who $x$ plays at {i}" for i in range(5)]


def board_of(names=LONG):
    n = len(names)
    utility = np.linspace(2.0, -3.0, n)
    return LeaderboardDisplay(
        names=names,
        utility=utility,
        lower=utility - 0.7,
        upper=utility + 0.7,
        probability_best=np.full(n, 0.005),
        rank_lower=np.full(n, 10),
        rank_upper=np.full(n, 12),
    )


def in_a_row(layout):
    return plt.subplots(1, 2, figsize=(9.0, 3.6), layout=layout)[1]


def in_a_column(layout):
    return plt.subplots(2, 1, figsize=(6.0, 7.0), layout=layout)[1]


def alone(layout):
    return [plt.subplots(figsize=(4.0, 3.2), layout=layout)[1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "made, layout",
    [(in_a_row, None), (in_a_column, "constrained"), (alone, None), (alone, "constrained")],
)
def test_everything_has_its_place(made, layout):
    axes = made(layout)
    displays = [board_of().plot(ax=ax) for ax in axes]
    figure = axes[0].figure
    figure.canvas.draw()
    taken = []
    for display in displays:
        ax = display.ax_
        box = ax.get_window_extent()
        assert len(display.annotations_) == 2 * (5 + 1)
        ends = ax.transData.transform(np.column_stack([display.upper, np.zeros(5)]))[:, 0]
        for text in display.annotations_:
            where = text.get_window_extent()
            assert ends.max() < box.x1 <= where.x0  # beside the intervals, not on them
        ticks = [tick.get_window_extent() for tick in ax.get_xticklabels()]
        assert len(ticks) >= 2
        assert all(one.x1 < other.x0 for one, other in pairwise(ticks))
        names = [label.get_window_extent() for label in ax.get_yticklabels()]
        assert all(one.y0 >= other.y1 - 1.0 for one, other in pairwise(names))
        for label in ax.get_yticklabels():
            assert "…" in label.get_text() and len(label.get_text()) > 8
        taken.append(ax.get_tightbbox())
    for one in taken:
        whole = figure.bbox
        assert whole.x0 <= one.x0 and one.x1 <= whole.x1
        assert whole.y0 <= one.y0 and one.y1 <= whole.y1
    if len(taken) == 2:  # neither is drawn over the other
        wide = min(taken[0].x1, taken[1].x1) - max(taken[0].x0, taken[1].x0)
        high = min(taken[0].y1, taken[1].y1) - max(taken[0].y0, taken[1].y0)
        assert wide < 1.0 or high < 1.0


@pytest.mark.parametrize("layout", ["tight", "compressed"])
def test_a_layout_that_is_there_stays(layout):
    figure, ax = plt.subplots(layout=layout)
    before = figure.get_layout_engine()
    board_of().plot(ax=ax)
    assert figure.get_layout_engine() is before


@pytest.mark.filterwarnings("error")
def test_axes_that_no_layout_places_stay_where_they_are():
    figure = plt.figure()
    ax = figure.add_axes((0.4, 0.3, 0.4, 0.6))
    board_of().plot(ax=ax)
    figure.canvas.draw()
    np.testing.assert_allclose(ax.get_position().bounds, (0.4, 0.3, 0.4, 0.6))


def test_a_board_stands_beside_a_colour_bar():
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.0))
    bar = figure.colorbar(right.imshow(np.eye(3)), ax=right)
    display = board_of().plot(ax=left)
    figure.canvas.draw()
    boxes = [ax.get_tightbbox() for ax in (display.ax_, right, bar.ax)]
    assert figure.bbox.x0 <= boxes[0].x0 and boxes[-1].x1 <= figure.bbox.x1
    assert all(one.x1 <= other.x0 for one, other in pairwise(boxes))
    assert len(display.annotations_) == 12


def test_axes_of_a_part_of_a_figure_are_laid_out_with_all():
    figure = plt.figure(figsize=(8.0, 4.0))
    left, right = figure.subfigures(1, 2)
    displays = [board_of().plot(ax=part.subplots()) for part in (left, right)]
    figure.canvas.draw()
    boxes = [display.ax_.get_tightbbox() for display in displays]
    assert figure.bbox.x0 <= boxes[0].x0 and boxes[1].x1 <= figure.bbox.x1
    assert boxes[0].x1 <= boxes[1].x0


def test_names_that_look_like_formulas_stay_text_when_shortened():
    display = board_of([f"{'$' * k}a$b{'_' * 30}$c$" for k in range(9)])
    display = display.plot(ax=plt.subplots(figsize=(4.0, 3.0))[1])
    display.figure_.canvas.draw()  # a formula that is none would raise
    for label in display.ax_.get_yticklabels():
        assert label.get_text().count("\\$") == label.get_text().count("$")


def test_groups_are_apart_and_what_is_not_known_is_not_drawn():
    names = ["ann", "bob", "cid", "dan", "new"]
    model = PairwisePreferenceRegressor(
        items=ItemTable.from_names(names), optimizer=None, noise_variance=0.25
    )
    with pytest.warns(UserWarning, match="fall into 2 groups"):
        model.fit([["ann", "bob"], ["cid", "dan"]])
    board = leaderboard(model)
    display = LeaderboardDisplay.from_board(board)
    x, _ = display.points_.get_data()
    np.testing.assert_allclose(x, [*board.utility[:4], np.nan])
    assert display.component.tolist() == [0, 0, 1, 1, 2]
    across = [line.get_ydata()[0] for line in display.ax_.get_lines() if line.get_xdata()[-1] == 1]
    assert across == [1.5, 3.5]
    low, high = display.ax_.get_xlim()
    assert low < board.lower[:4].min() and high > board.upper[:4].max()
    assert "the mean of each group" in display.ax_.get_xlabel().replace("\n", " ")
    assert "the mean of the 6 items" in LeaderboardDisplay.from_estimator(
        players(6)
    ).ax_.get_xlabel().replace("\n", " ")


def test_names_that_steer_terminals_leave_the_svg_well_formed():
    names = np.array(["a\x1b[2Jb", "c\u202ed", "$\\frac{1}{0$"], dtype=object)
    model = PairwisePreferenceRegressor(optimizer=None).fit(names[[[0, 1], [1, 2], [2, 0]]])
    written = io.StringIO()
    LeaderboardDisplay.from_estimator(model).figure_.savefig(written, format="svg")
    ElementTree.fromstring(written.getvalue())
    assert "\u202e" not in written.getvalue()
