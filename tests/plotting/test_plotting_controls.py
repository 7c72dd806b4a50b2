"""ControlEffectsDisplay: what is drawn is what `control_effects` says."""

import numpy as np
import pytest

from skpref import PairwisePreferenceRegressor
from skpref.duels import from_votes
from skpref.inspection import control_effects, leaderboard, leaderboards
from skpref.kernels import leaderboard_kernel
from skpref.plotting import ControlEffectsDisplay, LeaderboardDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def voted():
    rng = np.random.default_rng(0)
    pairs = np.array([rng.permutation(["x", "y", "z"])[:2] for _ in range(40)])
    length, lists = rng.normal(300.0, 90.0, size=(40, 2)), rng.poisson(2, size=(40, 2))
    votes = from_votes(
        {
            "a": pairs[:, 0],
            "b": pairs[:, 1],
            "winner": np.where(length[:, 0] > length[:, 1], "a", "b"),
            **{f"length_{s}": length[:, k] for k, s in enumerate("ab")},
            **{f"lists $_{s}": lists[:, k].astype(float) for k, s in enumerate("ab")},
        },
        controls=["length", ("lists $_a", "lists $_b")],
    )
    params = votes.params | {"optimizer": None}
    return PairwisePreferenceRegressor(**params).fit(votes.X, votes.y), votes


@pytest.mark.parametrize("unit, words", [("noise", "standard deviations"), ("elo", "Elo")])
def test_artists_are_the_effects_of_a_deviation(voted, unit, words):
    effects = control_effects(*voted, unit=unit, level=0.8)
    display = ControlEffectsDisplay.from_estimator(*voted, unit=unit, level=0.8)
    x, y = display.points_.get_data()
    np.testing.assert_allclose(x, effects.slope * effects.spread)
    assert y.tolist() == [0, 1]
    ends = np.array([line[:, 0] for line in display.intervals_.get_segments()])
    expected = np.stack([effects.lower, effects.upper], axis=1) * effects.spread[:, None]
    np.testing.assert_allclose(ends, expected)
    labels = [label.get_text().replace("\\$", "$") for label in display.ax_.get_yticklabels()]
    assert labels == effects.names.tolist()
    assert words in display.ax_.get_xlabel() and "80 %" in display.ax_.get_xlabel()
    bottom, top = display.ax_.get_ylim()
    assert bottom > top
    ax = plt.subplots()[1]
    assert display.plot(ax=ax).ax_ is ax


@pytest.mark.slow
def test_boards_are_drawn_without_being_found_again(voted):
    model, votes = voted
    board = leaderboard(model, votes, level=0.7, unit="elo")
    display = LeaderboardDisplay.from_board(board, top=2)
    assert display.names.tolist() == board.names[:2].tolist()
    assert (display.level, display.unit, display.n_items) == (0.7, "elo", 3)
    other = LeaderboardDisplay.from_estimator(model, votes, at={"length": 100.0}, top=1)
    assert other.names.tolist() == board.names[:1].tolist()
    X = np.dstack([votes.X[:, :, 0], np.repeat(np.arange(40) % 2, 2).reshape(40, 2)])
    grouped = PairwisePreferenceRegressor(
        leaderboard_kernel(X, id_column=0, by=1), id_column=0, optimizer=None
    ).fit(X, votes.y)
    for each in leaderboards(grouped, by=1).values():
        assert len(LeaderboardDisplay.from_board(each).names) == 3
