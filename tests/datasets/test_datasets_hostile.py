"""What a server may send in place of a file: an OSError that says so, and nothing stored."""

import gzip
import hashlib
import io
import json
import random
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from datasets_support import serve

from skpref.datasets import _files as _fetch
from skpref.datasets import _football, _sushi, fetch_chu_ghahramani
from skpref.datasets._files import Archive, download, fetch_texts, unpack, verified_file

TEXT = "".join(f"row {k}, {k * k}\n" for k in range(400)).encode()
ARCHIVE = Archive(
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


def texts(home, **options):
    options = {"data_home": home, "download_if_missing": True, "n_retries": 2, "delay": 0} | options
    return fetch_texts(ARCHIVE, ["a.csv"], **options)


def test_a_download_without_end_is_left(tmp_path, monkeypatch):
    class Endless(io.RawIOBase):
        sent = 0

        def read(self, n=-1):
            assert n >= 0, "all of it is asked for"
            self.sent += n
            return bytes(n)

    stream, asked = Endless(), []
    monkeypatch.setattr(_fetch, "_LARGEST_DOWNLOAD", 1000)
    monkeypatch.setattr(
        "urllib.request.urlopen", lambda url, **options: (asked.append(url), stream)[1]
    )
    with pytest.raises(OSError, match=r"larger than 1000 bytes.*by hand"):
        texts(tmp_path / "home")
    assert (len(asked), stream.sent) == (1, 1001)
    assert not (tmp_path / "home").exists()


def test_a_download_that_ends_too_early_is_tried_again(tmp_path, monkeypatch):
    content, asked = bytes(zipped("deflated")), []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: -100 if len(asked) < 3 else None])

        def log_message(self, *parts):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        with pytest.raises(OSError, match="ended 100 bytes too early"):
            download(url, 2, 0)
        assert download(url, 2, 0) == content
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert len(asked) == 3


def test_a_file_at_hand_that_is_far_too_large_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(_fetch, "_LARGEST_FILE", 1000)
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.truncate(10**12)  # a hole: of a real file no memory could hold so much
    with pytest.raises(OSError, match=r"a\.csv is damaged, incomplete or another"):
        verified_file(path, ARCHIVE.checksums["a.csv"])


def test_everything_is_fetched_by_a_connection_that_is_sealed():
    for archive in (_sushi.SUSHI, _football.FOOTBALL):
        assert archive.url.startswith("https://")


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

    serve(monkeypatch, content)
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", lambda *a, **k: Sent(content))
    with pytest.raises(OSError, match=r"could not be fetched from OpenML.*pyrim\.arff"):
        fetch_chu_ghahramani("pyrim", data_home=tmp_path, n_retries=1, delay=0)
