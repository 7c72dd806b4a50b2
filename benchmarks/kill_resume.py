"""Kill an optimisation with SIGKILL at random moments, resume it, compare its questions.

    python benchmarks/kill_resume.py [--kills 50] [--duels 40] [--seed 0]

A child process answers duels by script, with a journal; after a random time it is killed and
started again on the same journal, until it has told all its duels. The questions and answers are
then compared, byte for byte, with those of a run that was never disturbed, and it is counted
whether an answer that had been told was lost. A run may be killed many times; runs follow each
other until enough kills have hit.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from skpref.optimize import HallucinationBelieverOptimizer


def build(path, seed):
    """The optimizer of a run."""
    return HallucinationBelieverOptimizer([[0.0, 1.0]] * 3, journal=path, random_state=seed)


def outcome(duel, step):
    """The scripted answer: wrong one time in ten."""
    wrong = np.random.default_rng([11, step]).random() < 0.1
    first, second = ((duel - 0.4) ** 2).sum(axis=1)
    return (first < second) != wrong


def work(path, seed, n_duels):
    """What the child does; a line on standard output after each tell."""
    optimizer = build(path, seed)
    for step in range(optimizer.n_told_, n_duels):
        duel = optimizer.ask()
        optimizer.tell(duel, outcome(duel, step))
        print("told", step, flush=True)


def child(path, seed, n_duels):
    """Start `work` in a process of its own."""
    arguments = [sys.executable, __file__, "--work", path, str(seed), str(n_duels)]
    root = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment)


def disturbed(path, seed, n_duels, rng, kills_left):
    """Run to the end through kills; how many hit, and the answers lost."""
    kills = lost = 0
    told = -1
    while True:
        process = child(path, seed, n_duels)
        heard = process.stdout.readline()  # it works
        if kills < kills_left:
            time.sleep(rng.uniform(0.0, 0.4))
            process.kill()
        heard += process.communicate()[0]
        steps = [int(line.split()[1]) for line in heard.splitlines() if line.startswith("told ")]
        told = max([told, *steps])
        kills += process.returncode != 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of torn last lines
            held = build(path, seed).n_told_
        lost += max(0, told + 1 - held)
        if held >= n_duels:
            return kills, lost


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--duels", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    kills = lost = different = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        while kills < options.kills:
            seed = options.seed + runs
            whole = build(None, seed)
            for step in range(options.duels):
                duel = whole.ask()
                whole.tell(duel, outcome(duel, step))
            path = str(Path(folder) / f"{runs}.jsonl")
            hit, gone = disturbed(path, seed, options.duels, rng, options.kills - kills)
            resumed = build(path, seed).history_
            different += sum(
                one.duel.tobytes() != two.duel.tobytes() or one.outcome != two.outcome
                for one, two in zip(whole.history_, resumed, strict=True)
            )
            kills, lost, runs = kills + hit, lost + gone, runs + 1
            print(f"run {runs}: {kills} kills so far, {lost} answers lost, {different} differ")
    print(f"{kills} kills in {runs} runs of {options.duels} duels: ", end="")
    print(f"{lost} told duels lost, {different} questions or answers differ")
    return int(bool(lost or different))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        sys.exit(main())
