"""Interrupt optimizers by a signal at random instants, and see that object and journal agree.

    python benchmarks/robustness/interrupts.py [--interrupts 10000] [--seed 0]

A timer raises KeyboardInterrupt, as Ctrl-C does, at a random instant within ask, tell, skip, undo
or recommend. After each, the object must hold what its journal holds, no more than the one event
may have been recorded, a call that was not recorded is made again and must count once, and in the
end the run must be the one that a new optimizer finds in the file. A share of the runs has no
journal; there the object must be as before or after the call.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _scripts import build, quiet
from common import RESULTS, report

CALLS = ("ask", "tell", "skip", "undo", "recommend")


class Clock:
    """How long each call takes, so that interrupts fall within it."""

    def __init__(self):
        self.seconds = dict.fromkeys(CALLS, 1e-3)

    def hits(self, name, call, rng, tries=0):
        """Call under a timer, set later with each try; whether the call was interrupted."""
        began, done = time.perf_counter(), False
        try:
            moment = rng.uniform(0, 1.2) * self.seconds[name] * 1.2**tries
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, moment))
            call()
            done = True
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            return not done
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.seconds[name] += 0.1 * (time.perf_counter() - began - self.seconds[name])
        return False


def check(made, before, events):
    """Raise unless the object is as before, or after its events, and sound."""
    state = made._session.state  # with what is in the file
    if state.seq not in range(before, before + events + 1):
        raise AssertionError(f"event {before} was followed by {state.seq}")
    n_answers = len(state.answers) + len(state.skipped)
    if len(state.past) != n_answers:
        raise AssertionError(f"{n_answers} answers, {len(state.past)} moments")
    if any(max(each.items) >= len(state.items.values) for each in (*state.answers, *state.pending)):
        raise AssertionError("a duel of unknown items")
    if len(state.items.values) != len(state.items.rows):
        raise AssertionError("items and rows are out of step")


def one_call(made, name, rng, clock):
    """A call under a timer, and again until it returns; the number of interrupts."""
    if name in ("tell", "skip"):
        duel, outcome = made.ask(), rng.randrange(2)
        call = partial(made.tell, duel, outcome) if name == "tell" else partial(made.skip, duel)
    else:
        call = partial(made.ask, rng.randrange(1, 4)) if name == "ask" else getattr(made, name)
    before, hits = made._session.last_state.seq, 0
    while clock.hits(name, call, rng, hits):
        hits += 1
        check(made, before, 0 if name == "recommend" else 1)
        if name not in ("ask", "recommend") and made._session.state.seq > before:
            break  # it was recorded, and who looks knows
    check(made, before, 0 if name == "recommend" else 1)
    if name in ("tell", "skip", "undo") and made._session.last_state.seq != before + 1:
        raise AssertionError(f"{name} left {made._session.last_state.seq - before} events")
    return hits


def one_run(path, seed, rng, clock, n_calls):
    """Interrupts of each call in one run."""
    run = rng.choice(["random", "random", "HB-EI", "EP-EI"]), rng.choice(["line", "box", "pool"])
    made, found = build(path, *run, seed), dict.fromkeys(CALLS, 0)
    for _ in range(n_calls):
        name = rng.choices(CALLS, weights=(2, 4, 1, 1, 1))[0]
        if made.n_told_ >= 2 or name not in ("undo", "recommend"):
            found[name] += one_call(made, name, rng, clock)
    if path is not None:
        one, two = made._session.state, build(path, *run, seed)._session.state
        for name in ("seq", "digest", "answers", "pending", "skipped", "counter"):
            if getattr(one, name) != getattr(two, name):
                raise AssertionError(f"the object and its journal have another {name}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interrupts", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "interrupts.csv")
    options = parser.parse_args()
    quiet()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    rng, clock = random.Random(options.seed), Clock()
    build(None, "HB-EI", "box", 0).run(lambda first, second: True, 4)  # all is imported
    totals, runs = dict.fromkeys(CALLS, 0), 0
    with tempfile.TemporaryDirectory() as folder:
        while sum(totals.values()) < options.interrupts:
            path = None if runs % 4 == 3 else str(Path(folder) / f"{runs}.db")
            found = one_run(path, options.seed + runs, rng, clock, options.calls)
            for name, hits in found.items():
                totals[name] += hits
            runs += 1
    rows = [{"call": name, "interrupts": hits} for name, hits in totals.items()]
    report(rows, options.out, runs=runs, disagreements=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
