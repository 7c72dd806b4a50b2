"""fetch_sushi: traps of the files, and files that are missing, damaged or hostile."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from datasets_support import REAL, go_offline, needs_real, place, serve, zipped

from skpref.datasets import _sushi, fetch_sushi


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    return go_offline(monkeypatch)


@pytest.fixture
def sushi_files(monkeypatch):
    """Small random stand-ins for the SUSHI files; their checksums replace the real ones."""
    rng = np.random.default_rng(0)
    items = [
        [k, f"item{k}", k % 2, k % 2, k % 12, *rng.random(4).round(3).tolist()] for k in range(100)
    ]
    users = [
        [7 * k, k % 2, k % 6, 300 + k, 3, k % 12, int(k % 12 > 5), 4, 1, 0, 1] for k in range(5000)
    ]
    set_a = rng.permuted(np.tile(np.arange(10), (5000, 1)), axis=1)
    set_b = rng.permuted(np.tile(np.arange(100), (5000, 1)), axis=1)[:, :10]

    def order(head, rows):
        return "\n".join([head, *("0 10 " + " ".join(map(str, row)) for row in rows)]) + "\n"

    def tabs(rows):
        return "\n".join("\t".join(map(str, row)) for row in rows) + "\n"

    texts = {
        "sushi3.idata": tabs(items),
        "sushi3.udata": tabs(users),
        "sushi3a.5000.10.order": order("10 1", set_a.tolist()),
        "sushi3b.5000.10.order": order("100 1", set_b.tolist()),
    }
    files = {name: text.encode() for name, text in texts.items()}
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert set(checksums) == set(_sushi.SUSHI.checksums)
    monkeypatch.setattr(_sushi, "SUSHI", _sushi.SUSHI._replace(checksums=checksums))
    return files


@pytest.mark.parametrize("folder", ["", "sushi", "sushi3-2016", "sushi/sushi3-2016"])
def test_sushi_from_files_at_hand(tmp_path, sushi_files, no_network, folder):
    place(tmp_path / folder, sushi_files)
    data = fetch_sushi(data_home=tmp_path)
    assert no_network == []
    body = sushi_files["sushi3b.5000.10.order"].decode().splitlines()[1:]
    assert data.rankings[1234].tolist() == [int(k) for k in body[1234].split()[2:]]
    assert data.X.shape == (225_000, 2)
    assert data.y.sum() == 112_500
    assert "must not be redistributed" in data.DESCR


def test_sushi_set_a_goes_by_the_item_table(tmp_path, sushi_files):
    place(tmp_path, sushi_files)
    data = fetch_sushi(subset="a", data_home=str(tmp_path), users=[17, 3])
    body = sushi_files["sushi3a.5000.10.order"].decode().splitlines()[1:]
    ids = [int(k) for k in body[3].split()[2:]]
    rows = {**{k: k for k in range(5)}, 5: 6, 6: 7, 7: 8, 8: 26, 9: 29}  # the item table's names
    assert data.rankings[1].tolist() == [rows[k] for k in ids]
    assert data.user_ids.tolist() == [7 * 17, 7 * 3]


def test_sushi_duels_tell_the_ranking(tmp_path, sushi_files):
    place(tmp_path, sushi_files)
    data = fetch_sushi(data_home=tmp_path, users=range(40))
    winners = np.where(data.y == 1, data.X[:, 0], data.X[:, 1])
    for user in range(40):
        mine = data.user == user
        wins = np.bincount(winners[mine], minlength=100)
        assert wins[data.rankings[user]].tolist() == list(range(9, -1, -1))
    assert np.isfinite(data.item_table[data.X]).all()


def test_sushi_features_say_what_the_columns_say(tmp_path, sushi_files):
    place(tmp_path, sushi_files)
    data = fetch_sushi(data_home=tmp_path, users=[8, 30])
    assert data.item_table.shape == (100, len(data.feature_names))
    assert data.users.shape == (2, len(data.user_feature_names))
    columns = dict(zip(data.feature_names, data.item_table.T, strict=True))
    raw = [line.split("\t") for line in sushi_files["sushi3.idata"].decode().splitlines()]
    roe = [int(row[4]) == 7 for row in raw]
    np.testing.assert_array_equal(columns["roe"], roe)
    np.testing.assert_array_equal(columns["price"], [float(row[7]) for row in raw])
    np.testing.assert_array_equal(columns["not_maki"], [float(row[2]) for row in raw])
    people = dict(zip(data.user_feature_names, data.users.T, strict=True))
    assert people["age"].tolist() == [2, 0]
    assert people["seconds"].tolist() == [308, 330]
    assert people["child_shikoku"].tolist() == [1, 0]
    assert people["child_west"].tolist() == [1, 1]
    assert people["now_tohoku"].tolist() == [1, 1]
    assert people["moved"].tolist() == [1, 1]


def test_sushi_downloads_once(tmp_path, sushi_files, monkeypatch, capsys):
    members = {f"sushi3-2016/{name}": content for name, content in sushi_files.items()}
    asked = serve(monkeypatch, zipped(members | {"sushi3-2016/README-en.txt": b"terms"}))
    first = fetch_sushi(subset="a", data_home=tmp_path)
    fetch_sushi(subset="b", data_home=tmp_path)
    assert asked == ["https://www.kamishima.net/asset/sushi3-2016.zip"]
    assert {path.name for path in (tmp_path / "sushi").iterdir()} == set(sushi_files)
    again = fetch_sushi(subset="a", data_home=tmp_path, download_if_missing=False)
    np.testing.assert_array_equal(first.X, again.X)
    assert capsys.readouterr() == ("", "")


def test_sushi_default_folder_is_in_scikit_learns(tmp_path, sushi_files, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    place(tmp_path / "skpref" / "sushi", sushi_files)
    assert len(fetch_sushi(users=[0]).X) == 45


def test_sushi_keeps_files_that_are_there(tmp_path, sushi_files, monkeypatch):
    place(tmp_path, {"sushi3.idata": sushi_files["sushi3.idata"]})
    serve(monkeypatch, zipped(sushi_files))
    fetch_sushi(data_home=tmp_path)
    assert not (tmp_path / "sushi" / "sushi3.idata").exists()
    assert (tmp_path / "sushi" / "sushi3.udata").exists()


def test_sushi_offline_says_what_to_do(tmp_path, sushi_files, no_network):
    pytest.importorskip("pooch")
    with pytest.raises(OSError, match="offline") as caught:
        fetch_sushi(data_home=tmp_path, n_retries=2, delay=0)
    message = str(caught.value)
    assert "https://www.kamishima.net/asset/sushi3-2016.zip" in message
    assert str(tmp_path / "sushi") in message
    assert "sushi3b.5000.10.order" in message
    assert "data_home=" in message
    assert len(no_network) == 2


def test_sushi_missing_without_download(tmp_path, sushi_files, no_network):
    place(tmp_path, {"sushi3.idata": sushi_files["sushi3.idata"]})
    with pytest.raises(FileNotFoundError, match=r"No file sushi3\.udata, sushi3b.*is False"):
        fetch_sushi(data_home=tmp_path, download_if_missing=False)
    assert no_network == []


def test_sushi_damaged_file(tmp_path, sushi_files):
    sushi_files["sushi3.udata"] = sushi_files["sushi3.udata"][:-100]
    place(tmp_path, sushi_files)
    with pytest.raises(OSError, match=r"sushi3\.udata is damaged, incomplete.*Remove it"):
        fetch_sushi(data_home=tmp_path)


def test_sushi_accepts_other_line_ends(tmp_path, sushi_files):
    place(
        tmp_path,
        {name: content.replace(b"\n", b"\r\n") for name, content in sushi_files.items()},
    )
    data = fetch_sushi(data_home=tmp_path, users=[0])
    assert data.item_names[99] == "item99"


@pytest.mark.parametrize("damage", ["text", "cut", "lacks", "other", "flipped"])
def test_sushi_damaged_download_stores_nothing(tmp_path, sushi_files, monkeypatch, damage):
    whole = zipped(sushi_files)
    content, message = {
        "text": (b"<html>not here</html>", "no intact zip"),
        "cut": (whole[: len(whole) // 2], "no intact zip"),
        "lacks": (zipped({"sushi3.idata": sushi_files["sushi3.idata"]}), "lacks sushi3.udata"),
        "other": (zipped(sushi_files | {"sushi3.idata": b"0\tebi"}), "damaged.*expected"),
        "flipped": (whole[:200] + bytes([whole[200] ^ 255]) + whole[201:], "zip archive"),
    }[damage]
    serve(monkeypatch, content)
    with pytest.raises(OSError, match=message):
        fetch_sushi(data_home=tmp_path / "home")
    assert not [*(tmp_path / "home").rglob("*")]


def test_hostile_archive_writes_nowhere_else(tmp_path, sushi_files, monkeypatch):
    members = {f"../../{name}": content for name, content in sushi_files.items()}
    members |= {"../../evil": b"x", "/evil": b"x", "..\\evil": b"x"}
    serve(monkeypatch, zipped(members))
    home = tmp_path / "a" / "b"
    fetch_sushi(data_home=home)
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {Path("a/b/sushi") / name for name in sushi_files}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subset": "c"}, "subset must be one of 'a', 'b', got 'c'"),
        ({"subset": ["a"]}, "subset must be one of 'a', 'b', got"),
        ({"users": [5000]}, "0 to 4999, got 5000"),
        ({"users": [-1, 3]}, "0 to 4999, got -1"),
        ({"users": 7}, "sequence of whole numbers"),
        ({"users": [0.5]}, "sequence of whole numbers"),
        ({"users": []}, "sequence of whole numbers"),
        ({"n_retries": 0}, "n_retries must lie in"),
        ({"n_retries": 1.5}, "n_retries must be an integer, got 1.5"),
        ({"delay": -1.0}, "delay must lie in"),
    ],
)
def test_sushi_refuses_bad_options(tmp_path, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fetch_sushi(data_home=tmp_path, **options)


@needs_real("sushi")
def test_sushi_set_a_rows_by_correlation_with_set_b_scores():
    # A person's place for an item in set A goes with the person's own score of the same item
    # in set B, more than with the score of any other often scored item.
    data = fetch_sushi(subset="a", data_home=REAL)
    score = np.loadtxt(REAL / "sushi" / "sushi3b.5000.10.score")
    often = np.flatnonzero((score >= 0).sum(axis=0) > 250)
    assert np.isin(_sushi.SET_A_ROWS, often).all()
    for row in _sushi.SET_A_ROWS:
        liked = -np.argmax(data.rankings == row, axis=1)
        correlation = [
            np.corrcoef(liked[score[:, k] >= 0], score[score[:, k] >= 0, k])[0, 1] for k in often
        ]
        assert often[np.argmax(correlation)] == row
        assert max(correlation) > 0.45


@needs_real("sushi")
def test_sushi_real_facts():
    readme = "ebi anago maguro ika uni ikura tamago toro tekka_maki kappa_maki"
    data = fetch_sushi(subset="a", data_home=REAL)
    assert data.item_names[_sushi.SET_A_ROWS].tolist() == readme.split()
    assert data.X.shape == (225_000, 2)
    assert set(data.X.ravel()) == set(_sushi.SET_A_ROWS)
    # Known of this set: fatty tuna is the favourite, cucumber roll the last.
    place_of = [np.argmax(data.rankings == row, axis=1).mean() for row in _sushi.SET_A_ROWS]
    assert (np.argmin(place_of), np.argmax(place_of)) == (7, 9)

    other = fetch_sushi(subset="b", data_home=REAL)
    assert other.X.shape == (225_000, 2)
    assert set(other.X.ravel()) == set(range(100))
    assert len(set(other.user_ids)) == 5000
    names, columns = other.feature_names, other.item_table.T
    # The README: minor groups 0 to 8 are the seafood.
    seafood = columns[names.index("blue_skinned_fish") : names.index("egg")].sum(axis=0)
    np.testing.assert_array_equal(seafood, 1 - columns[names.index("not_seafood")])
    people = dict(zip(other.user_feature_names, other.users.T, strict=True))
    west = sum(people[f"now_{name}"] for name in _sushi._REGIONS[6:])
    np.testing.assert_array_equal(west, people["now_west"])
    # Fatty tuna is heavier than cucumber roll.
    lightness = columns[names.index("lightness")]
    assert lightness[8] < lightness[29]
