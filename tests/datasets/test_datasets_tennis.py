"""Tennis: made-up seasons in a folder, downloads one file at a time, the original files."""

import hashlib

import numpy as np
import pytest
from datasets_support import REAL, go_offline, needs_real, place, serve

from skpref.datasets import _tennis, fetch_atp_matches

HEADER = (
    "tourney_id,tourney_name,surface,draw_size,tourney_level,tourney_date,match_num,winner_id,"
    "winner_name,loser_id,loser_name,score,best_of,round\n"
)
# The final comes first in the file and has the lowest number; 3 did not come to play 1.
MAIN = """\
2001-1,Hilltown,Clay,4,A,20010108,1,1,Ann Bo,2,Cy Du,6-0 6-0,3,F
2001-1,Hilltown,Clay,4,A,20010108,2,1,Ann Bo,3,Ed Fa,W/O,3,SF
2001-1,Hilltown,Clay,4,A,20010108,3,2,Cy Du,4,"Gil, Ho",6-0 RET,3,SF
2001-2,Lakeside,,4,A,20001231,1,4,"Gil, Ho",1,Ann Bo,6-0 6-0,3,RR
2001-2,Lakeside,,4,A,20001231,2,4,"Gil, Ho",4,"Gil, Ho",6-0 6-0,3,RR
"""
CHALLENGER = """\
2001-1,Hilltown,Clay,4,A,20010108,9,4,"Gil, Ho",5,Ida Jo,7-6(5) 6-7 7-6 [10-8],3,Q2
"""
FUTURES = """\
2001-9,Moor,Grass,4,S,20010108,1,5,Ida Jo,6,Kim Li,6-0 6-0,3,F
"""


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    return go_offline(monkeypatch)


@pytest.fixture
def seasons(monkeypatch):
    """One season of each level; their checksums replace the real ones."""
    files = {
        "atp_matches_2001.csv": MAIN,
        "atp_matches_qual_chall_2001.csv": CHALLENGER,
        "atp_matches_futures_2001.csv": FUTURES,
    }
    content = {name: (HEADER + text).encode() for name, text in files.items()}
    assert set(content) < set(_tennis.TENNIS.checksums)
    checksums = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    monkeypatch.setattr(_tennis, "TENNIS", _tennis.TENNIS._replace(checksums=checksums))
    return content


def season(folder, **options):
    return fetch_atp_matches(data_home=folder, first_season=2001, last_season=2001, **options)


def results(data):
    """Winner and loser of each match."""
    names = np.array(data.player_names)[data.X]
    turned = np.where(data.y[:, None] == 1, names, names[:, ::-1])
    return [tuple(pair) for pair in turned.tolist()]


@pytest.mark.parametrize("folder", ["", "tennis_atp"])
def test_tennis_from_a_folder_at_hand_is_in_the_order_of_play(
    tmp_path, seasons, no_network, folder
):
    place(tmp_path / folder, seasons)
    data = season(tmp_path)
    assert no_network == []
    assert results(data) == [
        ("Gil, Ho", "Ann Bo"),  # in December
        ("Gil, Ho", "Ida Jo"),  # a qualifying round
        ("Cy Du", "Gil, Ho"),  # ended by retirement
        ("Ann Bo", "Cy Du"),  # finals: main draw, then futures
        ("Ida Jo", "Kim Li"),
    ]
    assert data.y.tolist() == [1, 0, 1, 0, 1]
    assert data.date.astype(str).tolist() == ["2000-12-31"] + ["2001-01-08"] * 4
    found = {
        key: [data[f"{key}_names"][k] for k in data[key]]
        for key in ("round", "level", "surface", "tournament")
    }
    assert found == {
        "round": ["RR", "Q2", "SF", "F", "F"],
        "level": ["main", "challenger", "main", "main", "futures"],
        "surface": ["", "Clay", "Clay", "Clay", "Grass"],
        "tournament": ["Lakeside", "Hilltown", "Hilltown", "Hilltown", "Moor"],
    }
    assert data.games.tolist() == [[12, 0], [19, 20], [6, 0], [0, 12], [12, 0]]
    assert data.player_ids.tolist() == [1, 2, 4, 5, 6]  # 3 never played
    assert [data.tournament_ids[k] for k in data.tournament][-1] == "2001-9"
    assert "CC BY-NC-SA 4.0" in data.DESCR


@pytest.mark.parametrize(
    ("levels", "n_matches"), [(["main"], 3), ("challenger", 1), (["futures", "challenger"], 2)]
)
def test_tennis_of_some_levels_reads_their_files_alone(tmp_path, seasons, levels, n_matches):
    place(tmp_path, seasons)
    data = season(tmp_path, levels=levels)
    assert len(data.X) == len(data.y) == len(data.date) == n_matches
    assert {data.level_names[k] for k in data.level} == set(
        [levels] if levels == "challenger" else levels
    )


def test_tennis_downloads_what_is_missing_once(tmp_path, seasons, monkeypatch, capsys):
    place(tmp_path, {"atp_matches_2001.csv": seasons["atp_matches_2001.csv"]})
    asked = serve(monkeypatch, seasons)
    first, again = season(tmp_path), season(tmp_path)
    others = ["atp_matches_qual_chall_2001.csv", "atp_matches_futures_2001.csv"]
    assert asked == [_tennis.TENNIS.url + name for name in others]
    written = sorted(path.name for path in (tmp_path / "tennis_atp").iterdir())
    assert written == sorted(others)
    assert results(first) == results(again)
    assert capsys.readouterr().out == ""


def test_tennis_of_another_version_is_refused_and_not_stored(tmp_path, seasons, monkeypatch):
    serve(monkeypatch, b"another")
    with pytest.raises(OSError, match=r"hash of .* \(atp_matches_2001\.csv\) does not"):
        season(tmp_path)
    assert not list(tmp_path.rglob("*.csv"))
    place(tmp_path, seasons | {"atp_matches_2001.csv": seasons["atp_matches_2001.csv"][:-9]})
    with pytest.raises(OSError, match=r"atp_matches_2001\.csv is damaged, incomplete.*Remove it"):
        season(tmp_path)


def test_tennis_offline_says_what_to_do(tmp_path, seasons, no_network):
    pytest.importorskip("pooch")
    with pytest.raises(OSError, match="offline") as caught:
        season(tmp_path, n_retries=2, delay=0)
    for part in (_tennis.TENNIS.url, str(tmp_path), "atp_matches_2001.csv", "data_home="):
        assert part in str(caught.value)
    assert len(no_network) == 2
    with pytest.raises(FileNotFoundError, match=r"No file atp_matches_2001\.csv.*is False"):
        season(tmp_path, download_if_missing=False)
    with pytest.raises(FileNotFoundError, match=r"atp_matches_1990\.csv.*\(104 files\)"):
        fetch_atp_matches(data_home=tmp_path, download_if_missing=False)
    assert len(no_network) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": ["atp"]}, "levels must be one of.*'atp'"),
        ({"levels": []}, "no season from 1990 to 2024"),
        ({"levels": ["futures"], "last_season": 1990}, "no season from 1990 to 1990"),
        ({"first_season": 1960}, "first_season must lie in"),
        ({"last_season": 2040}, "last_season must lie in"),
        ({"n_retries": 0}, "n_retries must lie in"),
        ({"delay": -1.0}, "delay must lie in"),
    ],
)
def test_tennis_refuses_bad_options(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        fetch_atp_matches(data_home=tmp_path, **options)


@needs_real("tennis_atp")
def test_tennis_is_the_original():
    data = fetch_atp_matches(data_home=REAL, first_season=2012, last_season=2012, levels=["main"])
    matches = results(data)
    row = matches.index(("Andy Murray", "Novak Djokovic"))
    lasts = [
        (matches[k], data.surface_names[data.surface[k]])
        for k in np.flatnonzero(data.round == data.round_names.index("F"))
        if data.tournament_names[data.tournament[k]] in ("Wimbledon", "Roland Garros")
    ]
    assert row >= 0
    assert lasts == [
        (("Rafael Nadal", "Novak Djokovic"), "Clay"),
        (("Roger Federer", "Andy Murray"), "Grass"),
    ]
