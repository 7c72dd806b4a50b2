"""The journal: JSON lines on disk before a call returns.

The first line tells the format's version and the configuration. Each further line is
``{"crc": ..., "record": {...}}`` with the CRC-32 of the record's own text. Floats are written by
``repr``, hence exactly.
"""

import json
import os
import zlib
from contextlib import suppress
from pathlib import Path

from skpref._warnings import warn

FORMAT = "skpref-journal"
VERSION = 1


def _text(record):
    return json.dumps(record, separators=(",", ":"), allow_nan=False)


def _line(record):
    text = _text(record)
    return f'{{"crc":"{zlib.crc32(text.encode()):08x}","record":{text}}}\n'.encode()


def _begins(content):
    """Whether a file may be the beginning of a journal's first line."""
    opening = _line({"type": FORMAT})[:-3]
    content = content.rstrip(b"\0")[: len(opening)]  # what never reached the disk may be zeros
    return opening.startswith(content[:8] + opening[8:16][: len(content[8:16])] + content[16:])


class Journal:
    """An append-only file that knows how long it should be.

    Parameters
    ----------
    path : str or Path
    """

    def __init__(self, path):
        self.path = Path(path).absolute()
        self._size = 0

    def read(self):
        """All records, oldest first; a torn last line is cut off with a warning.

        Returns
        -------
        list of dict
            Empty if there is no file or nothing in it.

        Raises
        ------
        ValueError
            If a line other than a torn last one cannot be read; it names the line. If all there
            is is no beginning of a journal; the file is left as it is.
        """
        if not self.path.exists():
            return []
        content = self.path.read_bytes()
        *lines, rest = content.split(b"\n")
        records = [self._parse(line, i + 1) for i, line in enumerate(lines)]
        self._size = len(content) - len(rest)
        if rest and not lines and not _begins(rest):
            raise ValueError(f"{self.path} is not a journal of this package. Give another path.")
        if rest:
            warn(
                f"The last line ({len(lines) + 1}) of the journal {self.path} is torn and was "
                "dropped: the write was cut off before its call had returned.",
            )
            with self.path.open("r+b") as file:
                file.truncate(self._size)
                os.fsync(file.fileno())
        return records

    def _parse(self, line, number):
        try:
            held = json.loads(line)
            record = held["record"]
            sound = f"{zlib.crc32(_text(record).encode()):08x}" == held["crc"]
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound or not isinstance(record, dict):
            raise ValueError(
                f"Line {number} of the journal {self.path} is corrupt: it is not what was written. "
                "Restore the file from a copy, or cut it off before that line to go on from there."
            )
        return record

    def append(self, record):
        """Write a record and wait until it is on disk.

        Raises
        ------
        RuntimeError
            If the file is not as this object left it.
        OSError
            If it cannot be written; what part of the record was is taken back.
        """
        present = self.path.stat().st_size if self.path.exists() else 0
        if present != self._size:
            raise RuntimeError(
                f"The journal {self.path} has {present} bytes where {self._size} were expected: "
                "another run writes to it, or it was changed. Open a new optimizer on it to go on "
                "from its end, or give this one a journal of its own."
            )
        line = _line(record)
        try:
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:  # the caller's state stays as it was, so must the file
            with suppress(OSError):
                os.truncate(self.path, self._size)
            raise
        if not self._size:
            self._sync_folder()
        self._size += len(line)

    def _sync_folder(self):
        """The new file's name must be on disk too."""
        try:
            folder = os.open(self.path.parent, os.O_RDONLY)
        except OSError:  # not possible on every system
            return
        try:
            os.fsync(folder)
        except OSError:
            pass
        finally:
            os.close(folder)


def header(configuration, seed):
    """The first record of a journal."""
    return {
        "type": FORMAT,
        "version": VERSION,
        "configuration": configuration,
        "seed": seed,
    }


def check_header(record, configuration, seed, path):
    """The seed of a journal, if it belongs to this configuration.

    Raises
    ------
    ValueError
        If it is no journal, of another version, or of another configuration.
    """
    if record.get("type") != FORMAT:
        raise ValueError(f"{path} is not a journal of this package (line 1 says otherwise).")
    if record.get("version") != VERSION:
        raise ValueError(
            f"The journal {path} has version {record.get('version')!r}; this one reads {VERSION}."
        )
    kept = record["configuration"]
    wanted = json.loads(_text(configuration))
    differing = [key for key in {**kept, **wanted} if kept.get(key) != wanted.get(key)]
    if differing:
        found = "; ".join(f"{k}: {kept.get(k)!r}, now {wanted.get(k)!r}" for k in differing)
        raise ValueError(
            f"The journal {path} belongs to another configuration ({found}). Use the same "
            "arguments, or another file."
        )
    if seed is not None and seed != record["seed"]:
        raise ValueError(
            f"The journal {path} was begun with random_state {record['seed']}, now {seed} came. "
            "Pass that one, or None."
        )
    return record["seed"]
