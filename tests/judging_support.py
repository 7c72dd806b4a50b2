"""Folders to judge, the process of `skpref judge`, and what its page says by HTTP."""

import contextlib
import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from browser_support import free_port, served

from skpref.widgets._files import encode_png, encode_wav

_PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj
trailer<</Root 1 0 R>>
"""
HOSTILE = "<script>parent.ran = 1; window.ran = 1</script><img src=x onerror='top.ran = 1'>"
# One of each kind.
KINDS = {
    "picture.png": encode_png(np.linspace(0.0, 1.0, 600).reshape(20, 30)),
    "drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 6' width='90'>"
    b"<script>top.ran = 1</script><circle cx='4' cy='3' r='2'/></svg>",
    "sound.wav": encode_wav(8000, np.sin(np.arange(16_000.0))),
    "film.webm": b"\x1a\x45\xdf\xa3" + b"0" * 40,
    "text.txt": f"A text. {HOSTILE}".encode(),
    "words.md": f"A **bold** word. {HOSTILE}".encode(),
    "page.html": f"<b>bold</b> {HOSTILE}".encode(),
    "sheet.pdf": _PDF,
}


def write_files(folder: Path, contents: dict[str, bytes]) -> Path:
    """Write files into a new folder and return it."""
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def write_pictures(folder: Path, n: int) -> Path:
    """Write pictures of falling brightness into a new folder and return it."""
    shades = np.linspace(1.0, 0.1, n)
    return write_files(
        folder, {f"p{k:02d}.png": encode_png(np.full((20, 30), shades[k])) for k in range(n)}
    )


@contextlib.contextmanager
def judging(what: Path, *options: str, log: Path, port: int | None = None) -> Iterator:
    """`skpref judge` as a process of its own: the process and the address of its pages."""
    port = free_port() if port is None else port
    command = [sys.executable, "-m", "skpref", "judge", str(what), "--no-browser"]
    address = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    with served(
        [*command, "--port", str(port), *options], f"{address}/", log, environment=environment
    ) as process:
        yield process, address


def links_of(log: Path) -> dict[str, str]:
    """Return the link of each judge by name, as the command printed it."""
    return dict(re.findall(r"link of (.+?): (http\S+)", log.read_text()))


def send(address: str, **message: object) -> dict:
    """Send a message of the page and return the answer."""
    request = urllib.request.Request(
        f"{address}/message",
        json.dumps(message).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def exported(address: str) -> list[dict]:
    """Return the answers that `/export` gives."""
    with urllib.request.urlopen(f"{address}/export/votes.json", timeout=60) as answer:
        return json.load(answer)
