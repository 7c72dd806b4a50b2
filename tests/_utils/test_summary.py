"""Tables for notebooks: what is in them, and that texts stay texts."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from skpref import ItemTable, PairwisePreferenceRegressor, PreferenceOptimizer
from skpref._utils import html_table, printable_text
from skpref.active import StoppingRule, next_pairs
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.duels import DuelFrame
from skpref.inspection import (
    judge_reliability,
    leaderboard,
    trajectories,
    undecided_pairs,
    win_rates,
)
from skpref.metrics import score_by_group
from skpref.optimize import ActiveLearner

NASTY = "<img src=x onerror=alert(1)> & 'co'"


def cells(html):
    """Text of every cell, row by row; raises unless it is well formed."""
    return [["".join(cell.itertext()) for cell in row] for row in parsed(html).iter("tr")]


def parsed(html):
    found = ElementTree.fromstring(html)
    assert {each.tag for each in found.iter()} <= {
        *("div", "table", "caption", "thead", "tbody", "tr", "th", "td")
    }
    return found


def test_texts_are_escaped():
    html = html_table(NASTY, [(NASTY, NASTY)], [NASTY, "b"], NASTY)
    assert cells(html) == [[NASTY, "b"], [NASTY, NASTY]]
    assert parsed(html).find(".//caption").text == NASTY
    assert parsed(html).find("./div").text == NASTY


def test_an_optimizer_says_how_it_stands():
    optimizer = PreferenceOptimizer({NASTY: (0.0, 1.0)}, random_state=0)
    assert dict(cells(optimizer._repr_html_()))["recommended"] == "nothing was told yet"
    optimizer.tell(optimizer.ask(), 1)
    optimizer.ask()
    found = dict(cells(optimizer._repr_html_()))
    assert found["answers told"] == found["pending"] == found["dimensions"] == "1"
    [(name, value)] = optimizer.recommend().items()
    assert found["recommended"] == f"{name}={value:.4g}"


def test_a_learner_says_how_it_stands():
    learner = ActiveLearner(PairwisePreferenceRegressor(), np.eye(3), random_state=0)
    learner.tell(learner.ask(), 1)
    found = dict(cells(learner._repr_html_()))
    assert found["pool"] == "3 duels of 3 items"
    assert (found["strategy"], found["duels told"], found["pending"]) == ("bald", "1", "0")


def posteriors():
    X = np.random.default_rng(0).random((300, 2, 3))
    y = X[:, 0, 0] > X[:, 1, 0]
    model = PairwisePreferenceRegressor(optimizer=None)
    yield model.fit(X, y).posterior_
    yield model.set_params(inference="hmc", random_state=0).fit(X[:9], y[:9]).posterior_
    users = np.arange(300) % 4
    many = CollaborativePreferenceRegressor(optimizer=None).fit(X[:40], y[:40], users=users[:40])
    yield many.posterior_
    yield many.posterior_for([0, 1])


def test_a_posterior_is_short():
    for posterior in posteriors():
        text, found = repr(posterior), cells(posterior._repr_html_())
        assert text.startswith(f"<{type(posterior).__name__}: ")
        assert len(text) < 400
        assert "\n" not in text
        assert str(posterior.kernel) in text
        assert ["likelihood", str(posterior.likelihood)] in found
        assert f" {len(posterior.anchors)} " in text


def test_a_board_shows_what_it_prints():
    names = [NASTY, *(f"player {k}" for k in range(24))]
    games = [[names[k], names[k + 1]] for k in range(24)] * 2
    model = PairwisePreferenceRegressor(items=ItemTable.from_names(games), optimizer=None)
    board = leaderboard(model.fit(games), n_draws=200)
    head, *rows = cells(board._repr_html_())
    assert head[:3] == ["rank", "name", "utility"]
    assert len(rows) == 20
    printed = repr(board).splitlines()
    assert printed[1] == "Votes are taken as independent"
    for row, line in zip(rows, printed[2:], strict=False):
        assert line.split()[0] == row[0]
        assert row[1] in line
        assert all(part in line for part in (row[2], *row[3].split(" to "), row[5]))
    assert parsed(board._repr_html_()).find("./div").text == printed[-1].strip() == "… 5 more"


CONTROLS = "a\x1b[2Jb\u202ec\u200bd\r\ne\x9bf\u2028g\u2066h\ufeff"


def test_what_is_not_printable_is_a_space():
    assert printable_text(CONTROLS) == "a [2Jb c d  e f g h "
    assert printable_text("模型 é e\u0301 🎉 Ωמ") == "模型 é e\u0301 🎉 Ωמ"
    assert printable_text(3.5) == "3.5"
    html = html_table(CONTROLS, [(CONTROLS, CONTROLS)], [CONTROLS, "b"], CONTROLS)
    assert html.isprintable() and cells(html)[1] == [printable_text(CONTROLS)] * 2


def test_what_prints_itself_steers_no_terminal():
    names = np.array([CONTROLS, f"{CONTROLS}2", "x"], dtype=object)
    games = names[[[0, 1], [1, 2], [2, 0], [0, 2]]]
    model = PairwisePreferenceRegressor(optimizer=None).fit(games, judges=names[[0, 1, 0, 1]])
    dated = PairwisePreferenceRegressor(drift="wiener", optimizer=None)
    dated.fit(games, time=[0, 1, 2, 3])
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[0.0], [1.0]], columns=[CONTROLS])
    told = [leaderboard(model), model.judges_, trajectories(dated), DuelFrame(frame, [[0, 1]])]
    told += [judge_reliability(model), win_rates(model), undecided_pairs(model)]
    told += [StoppingRule().update(games[:1]), next_pairs(model, 2)]
    told += [score_by_group([1, 0], [0.5, 0.5], [CONTROLS, "x"])]
    for each in told:
        assert all(letter.isprintable() for line in repr(each).split("\n") for letter in line)
    assert leaderboard(model)._repr_html_().isprintable()
