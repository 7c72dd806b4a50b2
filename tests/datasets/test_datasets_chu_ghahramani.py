"""fetch_chu_ghahramani: from a file, from OpenML, and neither."""

import gzip
import hashlib
import io
import json

import numpy as np
import pytest
from datasets_support import REAL, go_offline, needs_real, place
from sklearn.utils import Bunch

from skpref.datasets import _chu_ghahramani, fetch_chu_ghahramani


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    return go_offline(monkeypatch)


ARFF = """\
% a comment
@relation 'small'
@attribute 'Sex' { M, F, I}
@attribute 'Length' real
@attribute CHAS { 0, 1}
@attribute rings integer
@data
M,0.5,1,15
I,0.25,0,7
F,0.75,1,9
"""
SMALL = [[1, 0, 0, 0.5, 1], [0, 0, 1, 0.25, 0], [0, 1, 0, 0.75, 1]]


@pytest.fixture
def small_set(monkeypatch):
    sha256 = hashlib.sha256(ARFF.encode()).hexdigest()
    facts = _chu_ghahramani._Set("abalone", 3, 3, "three shells", sha256)
    monkeypatch.setitem(_chu_ghahramani._SETS, "abalone", facts)


@pytest.mark.parametrize("folder", ["", "chu_ghahramani"])
def test_ratings_from_file_at_hand(tmp_path, small_set, no_network, folder):
    place(tmp_path / folder, {"abalone.arff": ARFF.encode()})
    data = fetch_chu_ghahramani("abalone", data_home=tmp_path)
    assert data.item_table.tolist() == SMALL
    assert data.target.tolist() == [15, 7, 9]
    assert data.feature_names == ["Sex=M", "Sex=F", "Sex=I", "Length", "CHAS"]
    assert no_network == []


def test_ratings_from_openml_are_those_from_file(tmp_path, small_set, monkeypatch):
    # OpenML through scikit-learn's own reader: only the network is replaced. It gives the
    # nominal columns as codes and, of abalone, the target as text.
    text = ARFF.replace("rings integer", "rings {7, 9, 15}").encode()
    column = {
        "is_ignore": "false",
        "is_row_identifier": "false",
        "number_of_missing_values": "0",
    }
    kinds = [("Sex", "nominal"), ("Length", "numeric"), ("CHAS", "nominal"), ("rings", "nominal")]
    features = [
        {"index": str(k), "name": name, "data_type": kind, "is_target": str(k == 3).lower()}
        | column
        for k, (name, kind) in enumerate(kinds)
    ]
    found = {"did": 183, "name": "abalone", "version": 1, "status": "active", "format": "ARFF"}
    about = {
        "id": "183",
        "name": "abalone",
        "version": "1",
        "status": "active",
        "format": "ARFF",
        "file_id": "3620",
        "url": "https://www.openml.org/data/v1/download/3620/abalone.arff",
        "md5_checksum": hashlib.md5(text).hexdigest(),
        "description": "",
        "default_target_attribute": "rings",
    }
    qualities = [{"name": "NumberOfInstances", "value": "3.0"}]

    def answer(request, *args, **kwargs):
        url = getattr(request, "full_url", request)
        if "/data/list/" in url:
            reply = {"data": {"dataset": [found]}}
        elif "/data/features/" in url:
            reply = {"data_features": {"feature": features}}
        elif "/data/qualities/" in url:
            reply = {"data_qualities": {"quality": qualities}}
        elif "/api/" in url:
            reply = {"data_set_description": about}
        else:
            reply = None
        content = text if reply is None else json.dumps(reply).encode()
        stream = io.BytesIO(gzip.compress(content))
        stream.info = lambda: {"Content-Encoding": "gzip"}
        return stream

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", answer)
    data = fetch_chu_ghahramani("abalone", data_home=tmp_path)
    assert data.item_table.tolist() == SMALL
    assert data.target.tolist() == [15, 7, 9]
    assert data.feature_names == ["Sex=M", "Sex=F", "Sex=I", "Length", "CHAS"]


@pytest.mark.filterwarnings("ignore:A network error")
@pytest.mark.parametrize("name", ["machine.cpu", "housing"])
def test_ratings_offline_say_what_to_do(tmp_path, no_network, name):
    with pytest.raises(OSError, match=f"folder that holds {name}.arff"):
        fetch_chu_ghahramani(name, data_home=tmp_path, n_retries=1, delay=0.01)
    assert "openml" in no_network[0]


def test_ratings_missing_without_download(tmp_path, no_network):
    with pytest.raises(FileNotFoundError, match=r"No file pyrim\.arff.*is False"):
        fetch_chu_ghahramani("pyrim", data_home=tmp_path, download_if_missing=False)
    assert no_network == []


@pytest.mark.parametrize(
    "text",
    [
        ARFF[:-1],
        ARFF.replace("0.25", "0.26"),
        ARFF.replace("'Length' real", "'Length' string"),
        "",
    ],
    ids=["cut off", "another number", "text", "empty"],
)
def test_ratings_other_file(tmp_path, small_set, text):
    place(tmp_path, {"abalone.arff": text.encode()})
    with pytest.raises(OSError, match=r"abalone\.arff is damaged.*SHA-256.*Torgo's collection"):
        fetch_chu_ghahramani("abalone", data_home=tmp_path)


def test_ratings_with_other_line_ends(tmp_path, small_set):
    place(tmp_path, {"abalone.arff": ARFF.replace("\n", "\r\n").encode()})
    assert fetch_chu_ghahramani("abalone", data_home=tmp_path).item_table.tolist() == SMALL


@pytest.mark.parametrize(
    ("columns", "target", "message"),
    [
        ([[0.0], [1.0]], [1.0, 2.0], "2 items with 1 attributes, expected 3 with 3"),
        ([["small"], ["large"]], [1.0, 2.0], "text where numbers are expected: .*small"),
        ([[0.0], [1.0]], ["few", "many"], "text where numbers are expected: .*few"),
    ],
)
def test_ratings_from_openml_that_are_not_the_set(
    tmp_path, small_set, monkeypatch, columns, target, message
):
    found = Bunch(
        data=np.array(columns), target=np.array(target), feature_names=["size"], categories={}
    )
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *args, **options: found)
    with pytest.raises(ValueError, match=f"^OpenML's abalone has {message}"):
        fetch_chu_ghahramani("abalone", data_home=tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_retries": 1.5}, TypeError, "n_retries must be an integer, got 1.5"),
        ({"n_retries": 0}, ValueError, "n_retries must lie in"),
        ({"delay": -1}, ValueError, "delay must lie in"),
        ({"delay": "1"}, TypeError, "delay must be a number"),
    ],
)
def test_ratings_refuse_impossible_attempts(tmp_path, no_network, options, error, message):
    with pytest.raises(error, match=message):
        fetch_chu_ghahramani("pyrim", data_home=tmp_path, **options)
    assert no_network == []


def test_ratings_refuse_unknown_name():
    for name in ("iris", ["pyrim"], None):
        with pytest.raises(ValueError, match="name must be one of 'abalone', 'housing', 'machine"):
            fetch_chu_ghahramani(name)


@needs_real("chu_ghahramani")
@pytest.mark.parametrize(
    ("name", "n_items", "n_features", "target_sum"),
    [
        ("machine.cpu", 209, 6, None),
        ("pyrim", 74, 27, None),
        ("triazines", 186, 60, None),
        ("housing", 506, 13, 11401.6),  # mean 22.5328
        ("abalone", 4177, 10, 41493),  # mean 9.934
    ],
)
def test_ratings_real_facts(name, n_items, n_features, target_sum):
    data = fetch_chu_ghahramani(name, data_home=REAL)
    assert data.item_table.shape == (n_items, n_features) == (n_items, len(data.feature_names))
    assert np.isfinite(data.item_table).all()
    assert len(set(data.target)) > 20
    if target_sum is not None:
        assert data.target.sum() == pytest.approx(target_sum, rel=1e-9)
