"""What the tests of journals share: optimizers, judges, other processes."""

import os
import shutil
from pathlib import Path

import numpy as np

from skpref.optimize import HallucinationBelieverOptimizer, PreferenceOptimizer


def optimizer(path, seed=0, **options):
    options = {"n_initial": 3} | options
    return HallucinationBelieverOptimizer(
        [[0.0, 1.0]] * 2, journal=path, random_state=seed, **options
    )


def cheap(path, seed=0, **options):
    """Questions at random: the journal's part is all there is."""
    options = {"inference": "ep", "incumbent": "random", "acquisition": "random"} | options
    return PreferenceOptimizer(
        [[0.0, 1.0]] * 2, n_initial=3, journal=path, random_state=seed, **options
    )


def judged(duel):
    return np.sum((duel[0] - 0.3) ** 2) < np.sum((duel[1] - 0.3) ** 2)


def answer(made, n=1):
    for _ in range(n):
        duel = made.ask()
        made.tell(duel, judged(duel))
    return made


def copied(path, folder, name="copy.db"):
    """The journal as a kill would leave it at this moment."""
    return Path(shutil.copyfile(path, folder / name))


def closed(made):
    """The journal of an optimizer that is done: all of it in one file."""
    return made._session._journal.path


def forked(work):
    """What a function writes into a pipe in a child process, and the child's status."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work(writer)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    content = b""
    while part := os.read(reader, 65536):
        content += part
    os.close(reader)
    return content, os.waitpid(pid, 0)[1]
