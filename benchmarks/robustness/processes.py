"""Several judges on one run, with kills among them: every answer counts once.

    python benchmarks/robustness/processes.py [--events 2000] [--seed 0]

Two to eight judges ask and tell on one journal until enough is told. They are processes, each with
a name, of which one is killed now and then: it begins again under its name, or another one comes in
its place. Now and then one answers after its lease is over. This is done with one clock, and with
clocks that are off by up to ten leases. Then the judges are threads of one optimizer.

Every judge writes down the answers whose call has returned, and the duels it was given. In the end
the journal must open, hold every acknowledged answer exactly once and at most one more a kill. With
one clock no duel may have been given to two judges within a lease, and who begins again must have
been given the duel from before the kill, unless it is answered. Needs os.fork.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np

from skpref.optimize import read_journal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _scripts import AlreadyAnswered, build, quiet
from common import RESULTS, report

# The design alone asks: what is measured is the journal, and a fit for each answer takes time.
RUN = ("random", "box", 0, 1_000_000)


# Seconds of a lease, so that some run out. A judge who is late waits for longer than that.
LEASE, LATE, P_LATE = 1.0, 1.5, 0.005


def judge(path, name, seed, n_events, off, say):
    """Ask and tell until there are enough events."""
    made = build(path, *RUN, judge=name, lease_minutes=LEASE / 60)
    made._session.clock = lambda: time.time() + off
    rng = np.random.default_rng(seed)
    while made._session.state.seq < n_events:
        before = time.time()
        duel = made.ask()
        say(("given", duel.tobytes().hex(), before, time.time()))
        if rng.random() < P_LATE:
            time.sleep(LATE * LEASE)
        outcome = int(rng.random() < 0.5)
        try:
            if rng.random() < 0.05:
                made.skip(duel)
                say(("skipped", duel.tobytes().hex()))
            else:
                made.tell(duel, outcome)
                say(("told", duel.tobytes().hex(), outcome))
        except AlreadyAnswered:
            say(("refused", duel.tobytes().hex()))


def spawn(path, name, seed, n_events, off, folder):
    """A judge in a process of its own, which writes down what it hears."""
    notes = Path(folder) / f"{seed}.txt"
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            judge(
                path,
                name,
                seed,
                n_events,
                off,
                lambda x: os.write(file, f"{json.dumps(x)}\n".encode()),
            )
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    return pid, (name, notes)


def by_processes(path, n_judges, n_events, rng, folder, skew):
    """Judges in processes: name, notes and whether killed, in the order of their ends; kills."""
    seed, live, ended, kills = 1000 * n_judges, {}, [], 0

    def begin(name):
        off = rng.uniform(-skew, skew)
        pid, begun = spawn(path, name, seed, n_events, off, folder)
        live[pid] = begun

    for k in range(n_judges):
        seed += 1
        begin(f"judge {k}")
    while live:
        time.sleep(rng.uniform(0.05, 0.4))
        if rng.random() < 0.5 and len(live) == n_judges:
            os.kill(rng.choice(list(live)), signal.SIGKILL)
        while live:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            killed = os.WIFSIGNALED(status)
            if not killed and os.WEXITSTATUS(status):
                raise RuntimeError("a judge failed")
            name, notes = live.pop(pid)
            ended.append((name, notes, killed))
            if killed:
                kills, seed = kills + 1, seed + 1
                begin(name if rng.random() < 0.5 else f"judge {seed}")
    said = []
    for name, notes, killed in sorted(ended, key=lambda each: int(each[1].stem)):
        lines = notes.read_text().splitlines() if notes.exists() else []
        said.append((name, [json.loads(line) for line in lines], killed))
    return said, kills


def by_threads(path, n_judges, n_events, seed):
    """Judges in threads of one optimizer, each of which answers one of several questions."""
    made, said = build(path, *RUN), []

    def work(number):
        rng = np.random.default_rng([seed, number])
        mine = []
        while made.n_told_ < n_events // 2:
            duel = made.ask(n_judges)[number]
            outcome = int(rng.random() < 0.5)
            made.tell(duel, outcome)
            mine.append(("told", duel.tobytes().hex(), outcome))
        said.append((str(number), mine, False))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n_judges)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


def counted(path, said):
    """Answers lost and doubled."""
    table = read_journal(path)
    held, acknowledged = Counter(), Counter()
    for kind, first, second, outcome in zip(
        *(table[name] for name in ("kind", "first", "second", "outcome")), strict=True
    ):
        if kind == "tell":
            held[np.array([first, second]).tobytes().hex(), outcome] += 1
    for _, notes, _ in said:
        acknowledged.update((note[1], note[2]) for note in notes if note[0] == "told")
    lost = sum((acknowledged - held).values())
    extra = sum((held - acknowledged).values())
    return lost, max(0, extra - sum(killed for *_, killed in said))


def shared(said):
    """Duels that were given to two judges within a lease."""
    given = {}
    for name, notes, _ in said:
        for _, duel, before, after in (note for note in notes if note[0] == "given"):
            given.setdefault(duel, []).append((before, after, name))
    # A lease began at some moment of its call; these cannot be a lease apart, whichever was first.
    return sum(
        one != other and max(after_one - before_other, after_other - before_one) < LEASE
        for each in given.values()
        for (before_one, after_one, one), (before_other, after_other, other) in combinations(
            each, 2
        )
    )


def forgotten(path, said):
    """Duels that a judge who was killed and began again was not given, nor is anybody else."""
    table, pending, n = read_journal(path), {}, 0
    names = {}
    for name, notes, _ in said:
        for note in notes:
            names.setdefault(note[1], set()).add(name)
    closed = {
        np.array([first, second]).tobytes().hex()
        for kind, first, second in zip(table["kind"], table["first"], table["second"], strict=True)
        if kind in ("tell", "skip")
    }
    for name, notes, killed in said:
        if not notes:
            continue
        duel = pending.pop(name, None)
        n += duel not in (None, notes[0][1], *closed) and names[duel] == {name}
        if killed and notes[-1][0] == "given":
            pending[name] = notes[-1][1]
    return n


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--judges", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "processes.csv")
    options = parser.parse_args()
    quiet()
    rng, rows = random.Random(options.seed), []
    for n_judges in options.judges:
        for kind in ("processes", "clocks off", "threads"):
            with tempfile.TemporaryDirectory() as folder:
                path, kills = str(Path(folder) / "run.db"), 0
                began = time.perf_counter()
                if kind == "threads":
                    said = by_threads(path, n_judges, options.events, options.seed)
                else:
                    skew = 10.0 * LEASE * (kind == "clocks off")
                    said, kills = by_processes(path, n_judges, options.events, rng, folder, skew)
                seconds = time.perf_counter() - began
                lost, doubled = counted(path, said)
                row = {"judges": f"{n_judges} {kind}"}
                row["events"] = build(path, *RUN)._session.last_state.seq
                row |= {"kills": kills, "lost": lost, "doubled": doubled}
                row["refused"] = sum(note[0] == "refused" for _, notes, _ in said for note in notes)
                if kind == "processes":
                    row |= {"given to two": shared(said), "forgotten": forgotten(path, said)}
                rows.append(row | {"seconds": seconds})
    report(rows, options.out)
    bad = ("lost", "doubled", "given to two", "forgotten")
    return int(any(row.get(name) for row in rows for name in bad))


if __name__ == "__main__":
    sys.exit(main())
