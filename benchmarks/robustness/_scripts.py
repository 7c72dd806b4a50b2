"""Runs by script, for the benchmarks of the journal: what is asked and answered, step by step.

Every step but a question is one event, and which one follows from the number of the step alone,
so that a run that was killed can be taken up where its journal ends.
"""

import json
import warnings

import numpy as np
from scipy import stats

from skpref.duels import ItemTable
from skpref.inference import HMC
from skpref.optimize import STRATEGIES, AlreadyAnswered, PreferenceOptimizer
from skpref.optimize._journal import Journal

SPACES = {
    "line": {"space": [[0.0, 1.0]]},
    "box": {"space": [[-5.0, 10.0], [0.0, 15.0]]},
    "mixed": {
        "space": {"rate": stats.loguniform(1e-4, 0.1), "depth": (1, 12), "kind": ["a", "b", "c"]}
    },
    "pool": {"candidates": np.random.default_rng(0).random((30, 2))},
    "named": {
        "candidates": ItemTable(
            np.random.default_rng(1).random((20, 2)), names=[f"n{k}" for k in range(20)]
        )
    },
    "names": {"candidates": ItemTable.from_names([f"n{k}" for k in range(12)])},
}


def build(path, strategy, space, seed, n_initial=3, **more):
    """The optimizer of a run."""
    options = STRATEGIES[strategy]._asdict()
    if options["inference"] == "hmc":
        options["inference"] = HMC(draws=40, chains=10)
    return PreferenceOptimizer(
        **SPACES[space],
        **options,
        **more,
        n_initial=n_initial,
        journal=path,
        random_state=seed,
    )


def step(made, seed, number):
    """One step: perhaps questions, then one answer, skip, undo or older duel told again."""
    rng = np.random.default_rng([seed, number])
    act = rng.random()
    n = int(rng.integers(1, 5))
    if act < 0.1 and made.n_told_:
        made.undo()
        return
    if act < 0.2 and made.n_told_:
        old = made.history_[int(rng.integers(made.n_told_))]
        made.tell(old.duel, int(rng.random() < 0.5))
        return
    duels = made.ask(n)
    duel = duels[int(rng.integers(n))]
    if act < 0.3:
        made.skip(duel)
    else:
        made.tell(duel, int(rng.random() < 0.5))


def log(path):
    """All that happened, without who did it and when: the questions, the answers, the memory."""
    journal = Journal(path)
    if not journal.exists():
        return []
    return [(event.kind, json.loads(event.payload)) for event in journal.load()[1:]]


def n_steps_done(path):
    """Answers, refusals and undos in a journal."""
    return sum(kind != "ask" for kind, _ in log(path))


def quiet():
    """No warnings of chains that are short on purpose."""
    warnings.simplefilter("ignore")


__all__ = [
    "SPACES",
    "STRATEGIES",
    "AlreadyAnswered",
    "build",
    "log",
    "n_steps_done",
    "quiet",
    "step",
]
