"""A run that is closed and taken up again
=======================================

A run that is closed and taken up again loses nothing: the journal.

Every question and every answer is on disk before the call returns. A second optimizer on the same
file (after a crash, on the next day) has the same question pending that the first one showed.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from skpref.optimize import HallucinationBelieverOptimizer, read_journal
from skpref.plotting import OptimizationDisplay

SPACE = {"volume": (0.0, 1.0), "treble": (-6, 6), "mode": ["speech", "music", "street"]}


def better(first, second):
    """A simulated ear."""

    def comfort(setting):
        bonus = {"speech": 0.0, "music": 0.1, "street": -0.3}[setting["mode"]]
        return bonus - (setting["volume"] - 0.6) ** 2 - ((setting["treble"] - 2) / 8) ** 2

    return comfort(first) > comfort(second)


def open_run(path):
    return HallucinationBelieverOptimizer(SPACE, journal=path)


# %%
# Monday, Tuesday.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "hearing_aid.db"

    monday = open_run(path)
    monday.run(better, 12)
    question = monday.ask()  # shown, not answered: the laptop is closed
    del monday

    tuesday = open_run(path)
    print("duels kept:", tuesday.n_told_)
    print("same question pending:", tuesday.ask() == question)

    tuesday.tell(question, better(*question))
    tuesday.undo()  # a slip of the finger
    print("after undo the same again:", tuesday.ask() == question)
    tuesday.run(better, 15)
    best = tuesday.recommend()
    print(f"best: volume {best['volume']:.2f}, treble {best['treble']}, {best['mode']}")
    events = read_journal(path)["kind"]
    print(f"journal: {events.count('tell')} answers, {events.count('undo')} taken back")
    OptimizationDisplay.from_optimizer(tuesday)  # the whole run, of both days
    del tuesday
plt.show()
