"""Several processes, or threads, on one run, with kills among them: every answer counts once.

    python benchmarks/robustness/processes.py [--events 2000] [--seed 0]

Two to eight judges ask and tell on one journal until enough is told, in processes of which one is
killed now and then and replaced, and then in threads of one optimizer. Every judge writes down the
answers whose call has returned, and the duels it was given. In the end the journal must open, hold
every acknowledged answer exactly once and at most one more a kill, and no duel may have been given
to two judges while both lived. Needs os.fork.
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
from pathlib import Path

import numpy as np

from skpref.optimize import read_journal

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _scripts import AlreadyAnswered, build, quiet
from common import RESULTS, report

# The design alone asks: what is measured is the journal, and a fit for each answer takes time.
RUN = ("random", "box", 0, 1_000_000)


def judge(path, seed, n_events, say):
    """Ask and tell until there are enough events."""
    made, rng = build(path, *RUN), np.random.default_rng(seed)
    while made._session.state.seq < n_events:
        duel = made.ask()
        say(("given", duel.tobytes().hex()))
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


def spawn(path, seed, n_events, folder):
    """A judge in a process of its own, which writes down what it hears."""
    notes = Path(folder) / f"{seed}.txt"
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            descriptor = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            judge(
                path, seed, n_events, lambda x: os.write(descriptor, f"{json.dumps(x)}\n".encode())
            )
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    return pid, notes


def by_processes(path, n_judges, n_events, rng, folder):
    """Judges in processes; what they wrote down, whether killed, and the number of kills."""
    seed, live, ended, kills = 1000 * n_judges, {}, [], 0
    for _ in range(n_judges):
        seed += 1
        pid, notes = spawn(path, seed, n_events, folder)
        live[pid] = notes
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
            ended.append((live.pop(pid), killed))
            if killed:
                kills, seed = kills + 1, seed + 1
                pid, notes = spawn(path, seed, n_events, folder)
                live[pid] = notes
    lines = [
        (notes.read_text().splitlines() if notes.exists() else [], killed)
        for notes, killed in ended
    ]
    return [([json.loads(line) for line in each], killed) for each, killed in lines], kills


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
        said.append((mine, False))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n_judges)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


def counted(path, said):
    """Answers lost and doubled, and duels given to two judges who lived to the end of them."""
    table = read_journal(path)
    held, acknowledged, given = Counter(), Counter(), {}
    for kind, first, second, outcome in zip(
        *(table[name] for name in ("kind", "first", "second", "outcome")), strict=True
    ):
        if kind == "tell":
            held[np.array([first, second]).tobytes().hex(), outcome] += 1
    shared, open_ends = 0, 0
    for number, (notes, killed) in enumerate(said):
        for note in notes:
            if note[0] == "told":
                acknowledged[note[1], note[2]] += 1
        last = notes[-1] if notes else None
        open_ends += killed
        for note in notes:
            if note[0] == "given" and not (killed and note == last):
                shared += given.setdefault(note[1], number) != number
    lost = sum((acknowledged - held).values())
    extra = sum((held - acknowledged).values())
    return lost, max(0, extra - open_ends), shared


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
        for kind in ("processes", "threads"):
            with tempfile.TemporaryDirectory() as folder:
                path, kills = str(Path(folder) / "run.db"), 0
                began = time.perf_counter()
                if kind == "processes":
                    said, kills = by_processes(path, n_judges, options.events, rng, folder)
                else:
                    said = by_threads(path, n_judges, options.events, options.seed)
                seconds = time.perf_counter() - began
                lost, doubled, shared = counted(path, said)
                events = build(path, *RUN)._session.known.seq
                refused = sum(note[0] == "refused" for notes, _ in said for note in notes)
                rows.append(
                    {"judges": f"{n_judges} {kind}", "events": events, "kills": kills, "lost": lost}
                    | {"doubled": doubled, "refused": refused, "seconds": seconds}
                    | ({"given to two": shared} if kind == "processes" else {})
                )
    report(rows, options.out)
    return int(any(row["lost"] or row["doubled"] or row.get("given to two") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
