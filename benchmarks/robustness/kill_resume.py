"""Kill optimisations with SIGKILL at random moments, resume them, compare their questions.

    python benchmarks/robustness/kill_resume.py [--kills 1000] [--steps 14] [--seed 0]

Runs follow each other over all strategies and spaces. A child process asks one to four duels at a
time and answers one of them, skips, undoes or tells an older duel once more, by script and with a
journal; after a random time it is killed, and another goes on from the journal, until all steps
are done. Counted are steps that were acknowledged and are lost, steps that count twice, and runs
whose journal (questions, answers, hyperparameters, states of solver and sampler) is not that of
a run that was never disturbed, bit for bit. Needs os.fork.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _scripts import SPACES, STRATEGIES, build, log, n_steps_done, quiet, step
from common import RESULTS, report

# Kills of one run.
MOST = 10


def work(path, run, first, last, told):
    """Steps of a run; the number of each is written to a pipe when its call has returned."""
    made = build(path, *run)
    for number in range(first, last):
        step(made, run[2], number)
        os.write(told, number.to_bytes(4, "little"))


def forked(path, run, first, last, delay):
    """Work in a child, killed after a delay unless it is None; whether it was, and steps told."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reader)
            work(path, run, first, last, writer)
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    os.close(writer)
    if delay is not None:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    content = b""
    while part := os.read(reader, 65536):
        content += part
    os.close(reader)
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"the run {run} failed")
    return os.WIFSIGNALED(status), len(content) // 4


def disturbed(path, run, n_steps, whole, rng, kills_left):
    """A run through kills; how many hit, and the steps lost and doubled."""
    kills = lost = doubled = done = 0
    while done < n_steps:
        delay = rng.uniform(0.0, 0.5 * whole) if kills < kills_left else None
        hit, heard = forked(path, run, done, n_steps, delay)
        kills += hit
        held = n_steps_done(path)
        lost += max(0, done + heard - held)
        doubled += max(0, held - done - heard - 1)
        done = held
    return kills, lost, doubled


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    parser.add_argument("--out", type=Path, default=RESULTS / "kill_resume.csv")
    options = parser.parse_args()
    quiet()
    rng = random.Random(options.seed)
    rows, kills, runs = {}, 0, 0
    spaces = list(SPACES)
    with tempfile.TemporaryDirectory() as folder:
        while kills < options.kills:
            strategy = options.strategies[runs % len(options.strategies)]
            space = spaces[(runs + runs // len(options.strategies)) % len(spaces)]
            run = (strategy, space, options.seed + runs)
            paths = [str(Path(folder) / f"{runs}-{name}.db") for name in ("whole", "killed")]
            began = time.perf_counter()
            forked(paths[0], run, 0, options.steps, None)
            whole = time.perf_counter() - began
            left = min(MOST, options.kills - kills)
            hit, lost, doubled = disturbed(paths[1], run, options.steps, whole, rng, left)
            same = log(paths[0]) == log(paths[1])
            row = rows.setdefault(
                strategy, {"strategy": strategy, "runs": 0, "kills": 0, "lost": 0, "doubled": 0}
            )
            for name, value in (("runs", 1), ("kills", hit), ("lost", lost), ("doubled", doubled)):
                row[name] += value
            row["differing runs"] = row.get("differing runs", 0) + (not same)
            kills, runs = kills + hit, runs + 1
            if not same or lost or doubled:
                print(f"{run}: lost {lost}, doubled {doubled}, same {same}", flush=True)
    report(list(rows.values()), options.out, kills=kills, steps=options.steps)
    bad = ("lost", "doubled", "differing runs")
    return int(any(row[name] for row in rows.values() for name in bad))


if __name__ == "__main__":
    sys.exit(main())
