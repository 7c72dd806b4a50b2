"""fetch_cars: traps of the files, and files that are missing or damaged."""

import hashlib

import numpy as np
import pytest
from datasets_support import REAL, go_offline, needs_real, place

from skpref.datasets import _cars, fetch_cars


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    return go_offline(monkeypatch)


@pytest.fixture
def car_files(monkeypatch):
    """Experiment 1 in small: ten cars, sixty people, three answers and a control."""
    cars = ["1,2,1,2.5,2", "2,1,2,5.5,1", *(f"{k},1,1,4.5,2" for k in range(3, 11))]
    head = "Item ID, BodyType, Transmission, Engin Capacity, Fuel Consumed"
    people = [f"{k},3,4,2,1,{k % 5}" for k in range(1, 61)]
    person = "User ID, Education, Age, Gender, Region, # Correct Controls"
    answers = ["1,9,3,0", "1,3,9,1", "2,10,1,0", "60,2,4,0"]
    files = {
        "items1.csv": "\n".join([head, *cars]).encode(),
        "users1.csv": "\n".join([person, *people]).encode(),
        "prefs1.csv": "\n".join(["User ID, Item1 ID, Item2 ID, Is Control", *answers]).encode(),
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(_cars, "_CHECKSUMS", sums)
    return files


@pytest.mark.parametrize("folder", ["", "cars", "exp1-prefs", "cars/exp1-prefs"])
def test_cars_from_files_at_hand(tmp_path, car_files, no_network, folder):
    place(tmp_path / folder, car_files)
    data = fetch_cars(data_home=tmp_path)
    # The first is preferred; the control is dropped; ids start at 1; the odd row is turned.
    assert data.X.tolist() == [[8, 2], [0, 9], [1, 3]]
    assert data.y.tolist() == [1, 0, 1]
    assert data.user.tolist() == [0, 1, 59]
    assert data.feature_names == ["sedan", "suv", "automatic", "engine_litres", "hybrid"]
    assert data.item_table[:2].tolist() == [[0, 1, 0, 2.5, 0], [1, 0, 1, 5.5, 1]]
    assert data.users[5].tolist() == [3, 4, 2, 1]
    assert data.correct_controls[:3].tolist() == [1, 2, 3]
    assert "Terms:" in data.DESCR
    assert "Citation:" in data.DESCR
    assert no_network == []


def test_cars_missing_says_where_and_how(tmp_path, no_network):
    missing = r"No file items2\.csv, prefs2\.csv, users2\.csv in"
    with pytest.raises(FileNotFoundError, match=missing) as e:
        fetch_cars(experiment=2, data_home=tmp_path)
    assert str(tmp_path / "cars" / "exp2-prefs") in str(e.value)
    assert "Abbasnejad" in str(e.value)
    assert no_network == []


@pytest.mark.parametrize("name", ["items1.csv", "users1.csv", "prefs1.csv"])
@pytest.mark.parametrize(
    "damage", [lambda c: c[:-1], lambda c: c.replace(b"9", b"8"), lambda c: b""]
)
def test_cars_damaged_files(tmp_path, car_files, name, damage):
    place(tmp_path, car_files | {name: damage(car_files[name])})
    with pytest.raises(OSError, match=rf"{name} is damaged.*SHA-256.*Use the original file\."):
        fetch_cars(data_home=tmp_path)


def test_cars_with_other_line_ends(tmp_path, car_files):
    place(tmp_path, {name: file.replace(b"\n", b"\r\n") for name, file in car_files.items()})
    assert fetch_cars(data_home=tmp_path).y.tolist() == [1, 0, 1]


@pytest.mark.parametrize("experiment", [3, True, 1.0, "1", [1]])
def test_cars_refuse_other_experiments(tmp_path, experiment):
    with pytest.raises(
        (TypeError, ValueError), match=r"experiment must (lie in \[1, 2\]|be an int)"
    ):
        fetch_cars(experiment=experiment, data_home=tmp_path)


@needs_real("cars")
@pytest.mark.parametrize(
    ("experiment", "n_items", "n_features", "n_duels"),
    [(1, 10, 5, 2973 - 298), (2, 20, 7, 2429 - 223)],
)
def test_cars_real_facts(experiment, n_items, n_features, n_duels):
    data = fetch_cars(experiment=experiment, data_home=REAL)
    assert data.item_table.shape == (n_items, n_features) == (n_items, len(data.feature_names))
    assert data.X.shape == (n_duels, 2)
    assert set(data.y) == {0, 1}
    assert set(data.X.ravel()) == set(range(n_items))
    assert set(data.user) == set(range(60))
    assert data.correct_controls.max() <= 5
    winner = np.where(data.y == 1, data.X[:, 0], data.X[:, 1])
    asked, answers = {}, zip(data.user, map(frozenset, data.X.tolist()), winner, strict=True)
    for user, pair, won in answers:
        asked.setdefault((user, pair), []).append(won)
    repeated = [answer for answer in asked.values() if len(answer) > 1]
    if experiment == 1:
        counts = np.bincount([user for user, _ in asked])
        assert (counts.min(), counts.max()) == (39, 45)
    else:
        assert len(repeated) == 8
        assert sum(len(set(answer)) > 1 for answer in repeated) == 3
