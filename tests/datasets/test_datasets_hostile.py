"""What a server may send in place of a file: an OSError that says so, and nothing stored."""

import gzip
import hashlib
import io
import json
import random
import sys
import threading
import zipfile
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from skpref.datasets import _files as _fetch
from skpref.datasets import _football, _sushi, _tennis, fetch_chu_ghahramani
from skpref.datasets._files import Source, fetch_texts, read_verified_file, unpack

TEXT = "".join(f"row {k}, {k * k}\n" for k in range(400)).encode()
ARCHIVE = Source(
    "small", "https://example.org/small.zip", ("here",), {"a.csv": hashlib.sha256(TEXT).hexdigest()}
)
METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflated": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}


def zipped(method, names=("x/a.csv",), content=TEXT):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", METHODS[method]) as archive:
        for name in names:
            archive.writestr(name, content)
    return bytearray(stream.getvalue())


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_were_changed_anywhere_in_an_archive_are_an_error_or_harmless(method):
    """Flips, cuts and pieces put in, in the members and in the directory at the end."""
    whole, rng = zipped(method), random.Random(0)
    assert unpack(bytes(whole), ARCHIVE) == {"a.csv": TEXT}
    errors = 0
    for k in range(400):
        content, act = whole.copy(), k % 4
        place = rng.randrange(len(content)) if k % 8 < 4 else len(content) - rng.randrange(1, 120)
        if act == 0:
            content[place] ^= 1 << rng.randrange(8)
        elif act == 1:
            content[place : place + 4] = rng.randbytes(4)
        elif act == 2:
            del content[place:]
        else:
            content[place:place] = rng.randbytes(rng.randrange(1, 9))
        try:
            assert unpack(bytes(content), ARCHIVE) == {"a.csv": TEXT}
        except OSError as error:
            assert "small.zip" in str(error)
            errors += 1
    assert errors > 100


def test_a_directory_that_points_before_the_beginning_is_an_error():
    content = zipped("deflated")
    end = content.rindex(b"PK\5\6")
    content[end + 16 : end + 20] = (2**31).to_bytes(4, "little")  # where the directory begins
    with pytest.raises(OSError, match="no intact zip archive"):
        unpack(bytes(content), ARCHIVE)


@pytest.mark.parametrize("method", ["deflated", "lzma"])
def test_bombs_are_not_unpacked(monkeypatch, method):
    monkeypatch.setattr(_fetch, "_LARGEST_FILE", 10_000)
    read = []
    real = zipfile.ZipExtFile.read

    def counted(stream, n=-1):
        read.append(len(found := real(stream, n)))
        return found

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    with pytest.raises(OSError, match="unpacks to 3000000 bytes"):
        unpack(bytes(zipped(method, content=bytes(3_000_000))), ARCHIVE)
    many = zipped(method, [f"{k}/a.csv" for k in range(50)])
    with pytest.raises(OSError, match=r"holds a\.csv twice"):
        unpack(bytes(many), ARCHIVE)
    assert sum(read) <= 10_000


@contextmanager
def server(answer):
    """The address of a folder on this machine, of which every file is what this writes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            answer(self)

        def log_message(self, *parts):
            pass

    opened = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=opened.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{opened.server_port}/"
    finally:
        opened.shutdown()
        thread.join()
        opened.server_close()


def texts(home, url, **options):
    options = {"data_home": home, "download_if_missing": True, "n_retries": 2, "delay": 0} | options
    return fetch_texts(ARCHIVE._replace(url=url), ["a.csv"], **options)


@pytest.mark.parametrize("name", ["", "small.zip"], ids=["a file", "an archive"])
def test_a_download_without_end_is_left(tmp_path, monkeypatch, name):
    pytest.importorskip("pooch")
    monkeypatch.setattr(_fetch, "_LARGEST_FILE", 10_000)
    asked = []

    def endless(handler):
        asked.append(handler.path)
        handler.end_headers()
        with suppress(OSError):  # who asked has gone
            while True:
                handler.wfile.write(bytes(1000))

    with server(endless) as url, pytest.raises(OSError, match=r"larger than 10000 bytes.*by hand"):
        texts(tmp_path / "home", url + name, n_retries=1)
    assert len(asked) == 1
    assert not [*(tmp_path / "home").rglob("*.*")]


@pytest.mark.parametrize("name", ["", "small.zip"], ids=["a file", "an archive"])
def test_a_download_that_ends_too_early_is_tried_again(tmp_path, name):
    pytest.importorskip("pooch")
    content, asked = bytes(zipped("deflated")) if name else TEXT, []

    def answer(handler):
        asked.append(handler.path)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: -100 if len(asked) < 4 else None])

    with server(answer) as url:
        with pytest.raises(OSError, match="100 more expected"):
            texts(tmp_path, url + name)
        assert not [*tmp_path.rglob("*.*")]
        assert texts(tmp_path, url + name) == {"a.csv": TEXT.decode()}
    assert asked == [f"/{name or 'a.csv'}"] * 4


def test_without_pooch_nothing_is_done_and_it_is_said_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)  # as if it were not installed
    home = tmp_path / "home"
    with pytest.raises(ImportError, match=r'got no pooch.*a\.csv.*"skpref\[datasets\]".*by hand'):
        texts(home, ARCHIVE.url)
    assert not home.exists()
    home.mkdir()
    (home / "a.csv").write_bytes(TEXT)
    assert texts(home, ARCHIVE.url) == {"a.csv": TEXT.decode()}  # no download, no pooch


def test_a_file_at_hand_that_is_far_too_large_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(_fetch, "_LARGEST_FILE", 1000)
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.truncate(10**12)  # a hole: of a real file no memory could hold so much
    with pytest.raises(OSError, match=r"a\.csv is damaged, incomplete or another"):
        read_verified_file(path, ARCHIVE.checksums["a.csv"])


def test_everything_is_fetched_by_a_connection_that_is_sealed():
    for source in (_sushi.SUSHI, _football.FOOTBALL, _tennis.TENNIS):
        assert source.url.startswith("https://")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>no</html>",
        b"\x1f\x8b" + bytes(30),
        gzip.compress(b"{}")[:-4],
        gzip.compress(b"[1]"),
        gzip.compress(b'{"data": {"dataset": [{"data_id": "x"}]}}'),
        gzip.compress(json.dumps({"data": {"dataset": [{"status": 3}]}}).encode()),
        gzip.compress(b"\xff\xfe"),
    ],
    ids=["empty", "page", "zeros", "cut off", "list", "wrong id", "no id", "no text"],
)
@pytest.mark.filterwarnings("ignore")
def test_what_openml_never_sends_is_said(tmp_path, monkeypatch, content):
    class Sent(io.BytesIO):
        def info(self):
            return {"Content-Encoding": "gzip"}

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", lambda *a, **k: Sent(content))
    with pytest.raises(OSError, match=r"could not be fetched from OpenML.*pyrim\.arff"):
        fetch_chu_ghahramani("pyrim", data_home=tmp_path, n_retries=1, delay=0)
