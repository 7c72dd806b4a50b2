"""Files of the data sets: those that ship with the package, and those that are fetched."""

import gzip
import hashlib
import io
import os
import time
import zipfile
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from sklearn.datasets import get_data_home

from skpref._utils import check_number, replace_files


def bundled_path(name: str) -> Traversable:
    """Return the path of a file in ``skpref/datasets/data``."""
    return resources.files(__package__).joinpath("data", name)


def read_text(name: str) -> str:
    """Return the text of a bundled file, unpacked if its name ends in ``.gz``."""
    content = bundled_path(name).read_bytes()
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    return content.decode("utf-8").replace("\r\n", "\n")  # a checkout may change line ends


def read_integers(name: str) -> np.ndarray:
    """Return the integers of a bundled CSV file without its header, (n_rows, n_columns)."""
    return np.loadtxt(io.StringIO(read_text(name)), np.int64, delimiter=",", skiprows=1, ndmin=2)


# Bytes; nothing that is wanted here is near these, what a server sends in its place may be.
_LARGEST_FILE = 2**26
_AGAIN = "Remove it and fetch it again."


class Source(NamedTuple):
    """Files on the web: in a folder there, or in a zip archive.

    Attributes
    ----------
    title : str
        What messages call them.
    url : str
        Of the folder, with the slash at its end, or of the archive.
    folders : tuple of str
        Folders of the data home in which the files are looked for. The first is also where
        downloads go.
    checksums : dict
        File name -> SHA-256 of the contents with line feeds as line ends, which they come with.
    """

    title: str
    url: str
    folders: tuple[str, ...]
    checksums: dict[str, str]


def check_attempts(n_retries: int, delay: float) -> None:
    """Raise an error unless downloads can be tried ``n_retries`` times, ``delay`` seconds apart."""
    check_number("n_retries", n_retries, low=1, integer=True)
    check_number("delay", delay, low=0.0)


def data_folder(data_home: str | os.PathLike | None = None) -> Path:
    """Return ``data_home`` as a path; None: ``skpref`` in scikit-learn's data home."""
    if data_home is None:
        return Path(get_data_home()) / "skpref"
    return Path(data_home).expanduser()


def find_file(home: Path, folders: Sequence[str], name: str) -> Path | None:
    """Return the path of a file in ``home`` or one of its ``folders``, None if it is in none."""
    places = [home, *(home / folder for folder in folders)]
    return next((place / name for place in places if (place / name).is_file()), None)


def _join_names(names):
    """Return names as a text for a message, the middle of many left out."""
    names = list(names)
    if len(names) > 8:
        return f"{', '.join(names[:3])} ... {', '.join(names[-3:])} ({len(names)} files)"
    return ", ".join(names)


def find_all(
    home: Path, folders: Sequence[str], names: Sequence[str], remedy: str
) -> dict[str, Path]:
    """Return the path of each file by name; OSError with the remedy if some are not there."""
    paths = {name: find_file(home, folders, name) for name in names}
    present = {name: path for name, path in paths.items() if path is not None}
    missing = [name for name in names if name not in present]
    if missing:
        searched = ", ".join(str(home / folder) for folder in ("", *folders))
        raise FileNotFoundError(f"No file {_join_names(missing)} in any of: {searched}. {remedy}")
    return present


def read_verified_file(path: Path, sha256: str, remedy: str = _AGAIN) -> str:
    """Return the text of a file on the disk if it has the checksum, see `verify_text`."""
    with path.open("rb") as file:
        content = file.read(_LARGEST_FILE + 1)  # no more of one that is another
    return verify_text(content, sha256, str(path), remedy)


def verify_text(content: bytes, sha256: str, origin: str, remedy: str = _AGAIN) -> str:
    """Return the text of a file if it has the checksum.

    Line ends are made line feeds first: a checkout or an editor may have changed them.

    Raises
    ------
    OSError
        If the contents are not those expected.
    """
    content = content.replace(b"\r\n", b"\n")
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise OSError(
            f"{origin} is damaged, incomplete or another version: its SHA-256 is {digest}, "
            f"expected {sha256}. {remedy}"
        )
    return content.decode("utf-8")


def unpack(content: bytes, archive: Source) -> dict[str, bytes]:
    """Return the needed files of a zip archive by name, all with the right checksum.

    Only the last part of a member's name is looked at and nothing is written, so a member
    called ``../../x`` can do no harm.

    Raises
    ------
    OSError
        If it is no zip archive, or a file is missing or not the one expected.
    """
    try:
        files = _read_members(content, archive.checksums)
    except Exception as error:  # of many kinds, from zipfile and what it unpacks by
        what = str(error) or type(error).__name__
        raise OSError(f"What {archive.url} sent is no intact zip archive: {what}.") from error
    missing = sorted(set(archive.checksums) - set(files))
    if missing:
        raise OSError(f"The archive {archive.url} lacks {', '.join(missing)}.")
    for name, data in files.items():
        verify_text(data, archive.checksums[name], f"{name} in {archive.url}")
    return files


def _read_members(content, names):
    """Return the members of a zip archive that have these names; ValueError for large ones."""
    files: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        for member in opened.infolist():
            name = PurePosixPath(member.filename).name
            if name not in names or member.is_dir():
                continue
            if name in files:
                raise ValueError(f"it holds {name} twice")
            if member.file_size > _LARGEST_FILE:
                raise ValueError(f"{name} unpacks to {member.file_size} bytes")
            with opened.open(member) as stream:
                files[name] = stream.read(_LARGEST_FILE)
    return files


class _DownloadLimit:
    """End a download that is larger than all that are wanted here, as a progress bar of pooch's."""

    total = n_bytes = 0

    def update(self, n_bytes: int) -> None:
        """Count bytes; OSError if they are too many."""
        self.n_bytes += n_bytes
        if self.n_bytes > _LARGEST_FILE:
            raise OSError(f"What it sends is larger than {_LARGEST_FILE} bytes.")

    def reset(self) -> None:
        """Count from 0 again."""
        self.n_bytes = 0

    def close(self) -> None:
        """Do nothing at the end."""


def _download_archive(url, downloader):
    """Return the bytes of an archive, downloaded."""
    stream = io.BytesIO()
    downloader(url, stream, None)
    return stream.getvalue()


def _download_missing(source, missing, home, n_retries, delay):
    """Download missing files into the first folder; of an archive all files in no folder yet."""
    import pooch

    folder = home / source.folders[0]

    def attempts(download, *file):
        for left in reversed(range(n_retries)):
            try:
                by = pooch.HTTPDownloader(timeout=60, progressbar=_DownloadLimit())
                return download(*file, downloader=by)
            except OSError:
                if left == 0:
                    raise
            time.sleep(delay)

    if source.url.endswith("/"):
        for name in missing:
            attempts(pooch.retrieve, source.url + name, source.checksums[name], name, folder)
        return
    files = unpack(attempts(_download_archive, source.url), source)
    folder.mkdir(parents=True, exist_ok=True)
    replace_files(
        folder, {name: files[name] for name in files if not find_file(home, source.folders, name)}
    )


def fetch_texts(
    source: Source,
    names: Sequence[str],
    data_home: str | os.PathLike | None,
    download_if_missing: bool,
    n_retries: int,
    delay: float,
) -> dict[str, str]:
    """Return the texts of some files, from the data home or downloaded into it.

    Parameters
    ----------
    source : Source
    names : sequence of str
        Keys of ``source.checksums``.
    data_home : str, path-like or None
    download_if_missing : bool
    n_retries : int
    delay : float
        Seconds between two attempts.

    Returns
    -------
    dict
        Name -> text.

    Raises
    ------
    ImportError
        If a file is missing and pooch too.
    OSError
        If a file is neither there nor to be had, or does not have its checksum. Files that
        are there are never overwritten.
    """
    check_attempts(n_retries, delay)
    home = data_folder(data_home)
    target = home / source.folders[0]
    steps = f"download {source.url}, unpack {_join_names(source.checksums)} into {target}"
    if source.url.endswith("/"):
        steps = f"download {_join_names(names)} from {source.url} into {target}"
    by_hand = (
        f"To get the {source.title} files by hand, {steps}, or pass as data_home= a folder that "
        "holds them."
    )
    missing = [name for name in names if find_file(home, source.folders, name) is None]
    if missing:
        if not download_if_missing:
            find_all(home, source.folders, names, f"download_if_missing is False. {by_hand}")
        try:
            _download_missing(source, missing, home, n_retries, delay)
        except ModuleNotFoundError as error:
            raise ImportError(
                f"got no {error.name}, by which {_join_names(missing)} would be downloaded; do "
                f'pip install "skpref[datasets]". {by_hand}'
            ) from error
        except (OSError, ValueError) as error:  # of the connection, or of another file
            raise OSError(
                f"The {source.title} files are not in {home} and could not be fetched from "
                f"{source.url}: {error} {by_hand}"
            ) from error
    paths = find_all(home, source.folders, names, by_hand)
    return {name: read_verified_file(path, source.checksums[name]) for name, path in paths.items()}
