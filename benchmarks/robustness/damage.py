"""Damage journals, and see that it is noticed or does no harm.

    python benchmarks/robustness/damage.py [--times 1000] [--seed 0]

Bits are flipped, files cut off, pages swapped and doubled, rows swapped, doubled, dropped and
changed by SQL. A journal is then opened: either that is an error and the file stays as it is, or
all that it holds is what was written (events, and the memory that the next question needs).
Separate lines are for a crash in mid-transaction, which leaves half of it in the file and beside
it SQLite's journal that takes it back: a bit of that is flipped, or it is cut off, or gone.
"""

import argparse
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _scripts import build, quiet, step
from common import RESULTS, report

RUN = ("HB-EI", "box", 3)
PAGE = 4096
EVENTS = "seq, kind, judge, time, payload, digest, arrays"


def flip(path, rng, several=1):
    """Flip bits."""
    content = bytearray(path.read_bytes())
    for _ in range(several):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def flip_many(path, rng):
    """Flip a hundred bits."""
    flip(path, rng, 100)


def cut(path, rng):
    """Cut the file off."""
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(1, len(content))])


def pages(path, rng, doubled):
    """Two pages change places, or one is in both."""
    content = bytearray(path.read_bytes())
    one, two = (PAGE * k for k in rng.sample(range(len(content) // PAGE), 2))
    first, second = content[one : one + PAGE], content[two : two + PAGE]
    content[two : two + PAGE] = first
    if not doubled:
        content[one : one + PAGE] = second
    path.write_bytes(content)


def swap_pages(path, rng):
    """Two pages change places."""
    pages(path, rng, doubled=False)


def double_page(path, rng):
    """A page is written over another."""
    pages(path, rng, doubled=True)


def rows(path, rng):
    """Rows are swapped, doubled, dropped or changed by SQL."""
    connection = sqlite3.connect(path)
    last = connection.execute("SELECT max(seq) FROM events").fetchone()[0]
    one, two = rng.sample(range(1, last + 1), 2)
    memories = [
        row[0] for row in connection.execute("SELECT seq FROM events WHERE arrays NOT NULL")
    ]
    act = rng.randrange(8)
    if act == 0:
        for before, after in ((one, -1), (two, one), (-1, two)):
            connection.execute("UPDATE events SET seq = ? WHERE seq = ?", (after, before))
    elif act == 1:
        connection.execute("DELETE FROM events WHERE seq = ?", (rng.choice([one, last]),))
    elif act == 2:
        names = EVENTS.replace("seq", str(last + 1), 1)
        connection.execute(f"INSERT INTO events SELECT {names} FROM events WHERE seq = {one}")
    elif act == 3:
        connection.execute(
            "UPDATE events SET payload = replace(payload, '\"outcome\":1', '\"outcome\":0') "
            "WHERE seq = (SELECT seq FROM events WHERE payload LIKE '%outcome\":1%' LIMIT 1)"
        )
    elif act == 4:
        connection.execute("UPDATE events SET payload = replace(payload, '3', '4') WHERE seq = 0")
    elif act == 5:
        connection.execute("UPDATE events SET arrays = NULL WHERE seq = ?", (rng.choice(memories),))
    elif act == 6:
        connection.execute("UPDATE leases SET judge = 'another'")
    else:
        a, b = rng.sample(memories, 2)
        connection.execute(
            "UPDATE events SET arrays = (SELECT arrays FROM events WHERE seq = ?) WHERE seq = ?",
            (a, b),
        )
    connection.commit()
    connection.close()


KINDS = (flip, flip_many, cut, swap_pages, double_page, rows)


def contents(made):
    """All that a run holds, its memory included."""
    state = made._session.last_state
    memories = [state.recalled, state.base]
    arrays = [
        np.concatenate([part.ravel() for part in (m.theta, m.margins, *m.sites.values())]).tobytes()
        for m in memories
    ]
    return state.seq, state.digest, state.answers, state.pending, state.skipped, arrays


def torn(source, path):
    """Copy a journal, and what takes it back, with a transaction half written."""
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")  # pages are written before the transaction ends
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE events SET payload = ' ' || payload")
    for end in ("", "-journal"):
        shutil.copy(f"{source}{end}", f"{path}{end}")
    connection.rollback()
    connection.close()


def flip_back(path, rng):
    """A bit is flipped in what takes a transaction back."""
    flip(Path(f"{path}-journal"), rng)


def cut_back(path, rng):
    """What takes a transaction back is cut off."""
    cut(Path(f"{path}-journal"), rng)


def no_back(path, rng):
    """What takes a transaction back is gone."""
    Path(f"{path}-journal").unlink()


TORN = (flip_back, cut_back, no_back)


def outcome(path, whole):
    """What opening a journal comes to."""
    beside = Path(f"{path}-journal").exists()  # then SQLite may take a transaction back
    before = path.read_bytes()
    signal.alarm(30)
    try:
        found = contents(build(str(path), *RUN))
    except (ValueError, OSError, RuntimeError):
        same = beside or path.read_bytes() == before
        return "detected" if same else "detected, file changed"
    finally:
        signal.alarm(0)
    return "harmless" if found == whole else "wrong"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "damage.csv")
    options = parser.parse_args()
    quiet()
    rng, table = random.Random(options.seed), {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "run.db"
        made = build(str(source), *RUN)
        for number in range(60):
            step(made, 3, number)
        whole = contents(made)
        kinds = [KINDS[k % len(KINDS)] for k in range(options.times)]
        kinds += [TORN[k % len(TORN)] for k in range(options.times // 10)]
        for k, kind in enumerate(kinds):
            path = Path(folder) / f"{k}.db"
            if kind in TORN:
                torn(source, path)
            else:
                shutil.copy(source, path)
            kind(path, rng)
            found = outcome(path, whole)
            row = table.setdefault(kind.__name__, {"damage": kind.__doc__})
            row[found] = row.get(found, 0) + 1
            path.unlink()
    report(list(table.values()), options.out, times=options.times)
    return int(any(row.get("wrong") or row.get("detected, file changed") for row in table.values()))


if __name__ == "__main__":
    sys.exit(main())
