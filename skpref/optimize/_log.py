"""SQLite's write-ahead log, looked at for damage that SQLite takes for its end.

The log is a header and frames, each a page with checksums over all before it; a frame that tells
the size of the database ends a transaction. SQLite stops reading at the first frame that is not
what it should be, as after a crash. But as every transaction waits for the disk, a crash can leave
one whole transaction behind that point, never two: then something else has changed the file.
"""

import struct
from pathlib import Path

import numpy as np

_HEADER, _FRAME = 32, 24
_MAGIC, _PAGE = 0x377F0682, 4096


def is_broken(path: Path) -> bool:
    """Whether transactions that were on disk are lost in the log at a path, if there is one.

    Parameters
    ----------
    path : Path
        Of the log; nobody writes to it meanwhile.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return False
    if len(content) < _HEADER + _FRAME:
        return False
    magic, _, size, *_ = struct.unpack_from(">8I", content)
    order = ">u4" if magic & 1 else "<u4"
    sums = _summed((0, 0), content[:24], order)
    good = magic & ~1 == _MAGIC and sums == struct.unpack_from(">2I", content, 24)
    # Frames of before the log was begun anew have other salts than its header.
    salts = content[16:24] if good else content[_HEADER + 8 : _HEADER + 16]
    size = size if good else _PAGE
    frames = np.arange(_HEADER, len(content) - _FRAME - size + 1, _FRAME + size)
    after = 0  # transactions behind the first frame that is not as it should be
    for at in frames.tolist():
        head = content[at : at + _FRAME]
        if good:
            sums = _summed(sums, head[:8], order)
            sums = _summed(sums, content[at + _FRAME : at + _FRAME + size], order)
            good = head[8:16] == salts and sums == struct.unpack_from(">2I", head, 16)
        if not good:
            after += head[8:16] == salts and head[4:8] != bytes(4)
    return after > 1


def _summed(sums, content, order):
    """SQLite's running checksum: s0 += x0 + s1, s1 += x1 + s0 over pairs of words."""
    one, two = sums
    for first, second in np.frombuffer(content, dtype=order).reshape(-1, 2).tolist():
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
