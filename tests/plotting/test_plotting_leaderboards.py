"""LeaderboardsDisplay: each board's numbers, a row an item."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from skpref import PairwisePreferenceRegressor
from skpref.inspection import leaderboard
from skpref.plotting import LeaderboardsDisplay


def board_of(games, **options):
    return leaderboard(PairwisePreferenceRegressor(optimizer=None).fit(games), **options)


MAY = [["ann", "bob"], ["bob", "cid"]] * 3  # winner first


@pytest.fixture(scope="module")
def mirrored():
    """Two months, the second with every game won by the other one; dan played in June alone."""
    june = [game[::-1] for game in MAY]
    boards = {"May": board_of(MAY), "June": board_of(june), "July": board_of([["cid", "dan"]])}
    return LeaderboardsDisplay.from_boards(boards)


def test_games_that_are_turned_round_turn_the_points_round(mirrored):
    may, june = (np.asarray(points.get_xdata()) for points in mirrored.points_[:2])
    assert mirrored.names == ["ann", "bob", "cid", "dan"] and mirrored.labels[0] == "May"
    np.testing.assert_allclose(may[:3], -june[:3], atol=1e-6)
    assert may[0] > may[1] > may[2]
    ends = [np.array(lines.get_segments())[:, :, 0] for lines in mirrored.intervals_[:2]]
    np.testing.assert_allclose(ends[0], -ends[1][:, ::-1], atol=1e-6)


def test_who_is_not_on_a_board_has_no_point_there(mirrored):
    july = np.asarray(mirrored.points_[2].get_xdata())
    assert np.isnan(july).tolist() == [True, True, False, False]
    assert len(mirrored.intervals_[2].get_segments()) == 2
    labels = [text.get_text() for text in mirrored.ax_.get_legend().get_texts()]
    assert labels == ["May", "June", "July"]
    assert [text.get_text() for text in mirrored.ax_.get_yticklabels()] == mirrored.names


def test_boards_do_not_cover_each_other(mirrored):
    rows = np.array([points.get_ydata() for points in mirrored.points_])
    assert (np.diff(rows, axis=0) > 0.2).all() and (np.abs(rows - np.arange(4)) < 0.5).all()


def test_the_first_few_and_what_is_refused():
    boards = {"noise": board_of(MAY), "elo": board_of(MAY, unit="elo")}
    assert LeaderboardsDisplay.from_boards({"one": boards["elo"]}, top=2).names == ["ann", "bob"]
    with pytest.raises(ValueError, match=r"different units: 'noise', 'elo'; one is allowed\. Make"):
        LeaderboardsDisplay.from_boards(boards)
    with pytest.raises(ValueError, match=r"different levels: 0\.9, 0\.8"):
        LeaderboardsDisplay.from_boards({"a": boards["noise"], "b": board_of(MAY, level=0.8)})
    with pytest.raises(ValueError, match="got no board; give one or more"):
        LeaderboardsDisplay.from_boards({})
