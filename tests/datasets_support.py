"""What the tests of the datasets share: the original files, an absent network, archives."""

import importlib.util
import io
import os
import zipfile
from pathlib import Path
from urllib.error import URLError

import pytest

REAL = Path(os.environ.get("SKPREF_DATA") or Path(__file__).parents[2] / "shared" / "data")


def needs_real(folder):
    """Skip where the original files, most of which the repository may not contain, are absent."""
    return pytest.mark.skipif(
        not (REAL / folder).is_dir(),
        reason=f"original data not found: set SKPREF_DATA to a folder with {folder}/",
    )


def _answered_by(monkeypatch, answer):
    """Let pooch, where it is installed, download by a function of the address."""

    def download(downloader, url, output_file, pooch, check_only=False):
        content = answer(url)
        if hasattr(output_file, "write"):
            output_file.write(content)
        else:
            Path(output_file).write_bytes(content)

    if importlib.util.find_spec("pooch"):
        monkeypatch.setattr("pooch.HTTPDownloader.__call__", download)


def go_offline(monkeypatch):
    """Every look at the network fails; returns the list of addresses tried."""
    tried = []

    def refuse(url, *args, **kwargs):
        tried.append(getattr(url, "full_url", url))
        raise URLError("offline")

    _answered_by(monkeypatch, refuse)
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", refuse)
    return tried


def serve(monkeypatch, contents):
    """Let the network answer with these bytes, by the name of the file; returns what was asked.

    Bytes alone answer every question.
    """
    pytest.importorskip("pooch")
    asked = []

    def answer(url):
        asked.append(url)
        return contents if isinstance(contents, bytes) else contents[url.rpartition("/")[2]]

    _answered_by(monkeypatch, answer)
    return asked


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def place(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
