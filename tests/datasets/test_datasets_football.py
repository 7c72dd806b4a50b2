"""Football: matches that everyone knows, the original file, a file missing or damaged."""

import csv
import hashlib

import numpy as np
import pytest
from datasets_support import REAL, go_offline, needs_real, place, serve

from skpref.datasets import _football, fetch_football, load_football

LINES = """\
date,home_team,away_team,home_score,away_score,tournament,city,country,neutral
1872-11-30,Scotland,England,0,0,Friendly,Glasgow,Scotland,FALSE
1966-07-30,England,Germany,4,2,FIFA World Cup,London,England,FALSE
1994-07-17,Brazil,Italy,0,0,FIFA World Cup,Pasadena,United States,TRUE
2014-07-08,Brazil,Germany,1,7,FIFA World Cup,Belo Horizonte,Brazil,FALSE
"""


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    return go_offline(monkeypatch)


@pytest.fixture
def football_files(monkeypatch):
    """Four matches in place of the file; their checksum replaces the real one."""
    content = LINES.encode()
    checksums = {"results.csv": hashlib.sha256(content).hexdigest()}
    assert set(checksums) == set(_football.FOOTBALL.checksums)
    monkeypatch.setattr(_football, "FOOTBALL", _football.FOOTBALL._replace(checksums=checksums))
    return {"results.csv": content}


def match(data, date, first, second):
    """Goals, outcome, order and tournament of one match."""
    teams = [data.team_names.index(first), data.team_names.index(second)]
    (row,) = np.flatnonzero((data.date == np.datetime64(date)) & (teams == data.X).all(axis=1))
    tournament = data.tournament_names[data.tournament[row]]
    return data.goals[row].tolist(), int(data.y[row]), int(data.order[row]), tournament


def test_football_facts():
    data = load_football()
    assert data.X.shape == data.goals.shape == (9562, 2)
    assert np.unique(data.y, return_counts=True)[1].tolist() == [2768, 2235, 4559]
    assert set(np.unique(data.y)) == {-1, 0, 1}
    assert data.order.dtype == np.int8
    assert np.bincount(data.order).tolist() == [3011, 6551]
    assert data.date.dtype == "datetime64[D]"
    assert (np.diff(data.date) >= np.timedelta64(0, "D")).all()
    assert [str(data.date[k]) for k in (0, -1)] == ["2016-07-24", "2026-07-19"]
    assert set(data.X.ravel()) == set(range(293))
    assert (data.X[:, 0] != data.X[:, 1]).all()
    assert len(set(data.team_names)) == len(data.team_names) == 293
    assert set(data.tournament) == set(range(len(data.tournament_names)))
    assert "CC0 1.0" in data.DESCR


@pytest.mark.parametrize(
    ("date", "first", "second", "found"),
    [
        ("2018-07-15", "France", "Croatia", ([4, 2], 1, 0, "FIFA World Cup")),
        # Won on penalties: a draw.
        ("2022-12-18", "Argentina", "France", ([3, 3], 0, 0, "FIFA World Cup")),
        ("2021-07-11", "England", "Italy", ([1, 1], 0, 1, "UEFA Euro")),
        # The host lost the opening match at home.
        ("2022-11-20", "Qatar", "Ecuador", ([0, 2], -1, 1, "FIFA World Cup")),
    ],
)
def test_football_known_matches(date, first, second, found):
    assert match(load_football(), date, first, second) == found


def test_football_home_advantage():
    data = load_football()
    home = data.y[data.order == 1]
    assert (home == 1).mean() > 1.6 * (home == -1).mean()


def test_football_bundles_can_be_changed_without_changing_the_next():
    data = load_football()
    for array in (data.X, data.y, data.order, data.goals, data.tournament):
        array[:] = 7
    data.team_names.clear()
    assert load_football().X.max() == 292
    assert set(load_football().order) == {0, 1}
    assert len(load_football().team_names) == 293


@needs_real("football_international")
def test_football_is_the_original():
    whole = fetch_football(data_home=REAL, download_if_missing=False)
    path = REAL / "football_international" / "results.csv"
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(whole.X) == 49520
    names, kinds = np.array(whole.team_names), np.array(whole.tournament_names)
    assert names[whole.X].tolist() == [[row["home_team"], row["away_team"]] for row in rows]
    assert whole.goals.tolist() == [[int(r["home_score"]), int(r["away_score"])] for r in rows]
    assert kinds[whole.tournament].tolist() == [row["tournament"] for row in rows]
    assert whole.date.astype(str).tolist() == [row["date"] for row in rows]
    assert whole.order.tolist() == [int(row["neutral"] == "FALSE") for row in rows]
    assert (len(names), int((whole.y == 0).sum())) == (337, 11258)
    with open(path.with_name("former_names.csv"), encoding="utf-8", newline="") as stream:
        former = {row["former"] for row in csv.DictReader(stream)}
    assert not former & set(names)  # teams bear their present name


@pytest.mark.slow
@needs_real("football_international")
def test_football_in_the_package_is_the_end_of_the_whole():
    whole, part = fetch_football(data_home=REAL, download_if_missing=False), load_football()
    last = whole.date >= np.datetime64("2016-07-20")
    for key in ("y", "order", "goals", "date"):
        np.testing.assert_array_equal(part[key], whole[key][last])
        assert part[key].dtype == whole[key].dtype
    for index, names in (("X", "team_names"), ("tournament", "tournament_names")):
        ours, theirs = np.array(part[names])[part[index]], np.array(whole[names])[whole[index]]
        np.testing.assert_array_equal(ours, theirs[last])


@pytest.mark.parametrize("folder", ["", "football_international"])
def test_football_from_a_file_at_hand(tmp_path, football_files, no_network, folder):
    place(tmp_path / folder, football_files)
    data = fetch_football(data_home=tmp_path)
    assert no_network == []
    assert data.team_names == ["Brazil", "England", "Germany", "Italy", "Scotland"]
    assert data.X.tolist() == [[4, 1], [1, 2], [0, 3], [0, 2]]
    assert data.y.tolist() == [0, 1, 0, -1]
    assert data.order.tolist() == [1, 1, 0, 1]
    assert data.tournament_names == ["FIFA World Cup", "Friendly"]
    assert match(data, "1966-07-30", "England", "Germany") == ([4, 2], 1, 1, "FIFA World Cup")


def test_football_downloads_once(tmp_path, football_files, monkeypatch, capsys):
    asked = serve(monkeypatch, football_files)
    first = fetch_football(data_home=tmp_path)
    again = fetch_football(data_home=tmp_path)
    assert asked == [_football.FOOTBALL.url + "results.csv"]
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.as_posix() for path in written] == ["football_international/results.csv"]
    np.testing.assert_array_equal(first.X, again.X)
    assert capsys.readouterr().out == ""


def test_football_offline_says_what_to_do(tmp_path, football_files, no_network):
    pytest.importorskip("pooch")
    with pytest.raises(OSError, match="offline") as caught:
        fetch_football(data_home=tmp_path, n_retries=2, delay=0)
    for part in (_football.FOOTBALL.url, str(tmp_path), "results.csv", "data_home="):
        assert part in str(caught.value)
    assert len(no_network) == 2
    with pytest.raises(FileNotFoundError, match=r"No file results\.csv.*is False"):
        fetch_football(data_home=tmp_path, download_if_missing=False)
    assert len(no_network) == 2


def test_football_damaged_file(tmp_path, football_files):
    place(tmp_path, {"results.csv": football_files["results.csv"][:-10]})
    with pytest.raises(OSError, match=r"results\.csv is damaged, incomplete.*Remove it"):
        fetch_football(data_home=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_retries": 0}, "n_retries must lie in"), ({"delay": -1.0}, "delay must lie in")],
)
def test_football_refuses_bad_options(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        fetch_football(data_home=tmp_path, **options)
