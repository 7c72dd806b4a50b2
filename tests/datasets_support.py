"""What the tests of the datasets share: the original files, an absent network, archives."""

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


def go_offline(monkeypatch):
    """Every look at the network fails; returns the list of addresses tried."""
    tried = []

    def refuse(url, *args, **kwargs):
        tried.append(getattr(url, "full_url", url))
        raise URLError("offline")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", refuse)
    return tried


def serve(monkeypatch, content):
    """Let the network answer every question with ``content``; returns the addresses asked."""
    asked = []

    def answer(url, *args, **kwargs):
        asked.append(url)
        return io.BytesIO(content)

    monkeypatch.setattr("urllib.request.urlopen", answer)
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
