"""HB-EI of the public code of Takeno et al. 2023, asked and told duels.

The settings are those of its experiments: RBF with ARD, lengthscales between 0.1 and 0.5 of the
range by its Laplace evidence at the start and after every ten duels, σ = 0.01, 1000 sweeps of Gibbs
sampling a hallucination. A refit is part of the ask before which it falls. The recommended item is
the winner of the last duel, which is the code's own `current_best` (its experiments report it one
duel later). The code ends the process where a variance is not positive, and stops where its
Laplace iteration does not converge: then the hallucination is drawn again, and the kernel kept.

Its modules are imported from the folder in the environment variable PREFERENTIAL_BO.
"""

import contextlib
import hashlib
import io
import os
import sys
import warnings
from pathlib import Path

import GPy
import numpy as np

FOLDER = Path(os.environ.get("PREFERENTIAL_BO", "."))
sys.path.insert(0, str(FOLDER))

from src import PreferentialBO_HallucinationBeliever

NAME = "paper-HB-EI"
PACKAGES = ("gpy",)


def sources():
    """Digest of the code's modules, 8 characters long."""
    digest = hashlib.sha256()
    for path in sorted((FOLDER / "src").glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


class Peer:
    """Items of the unit cube of d features."""

    def __init__(self, d, seed):
        np.random.seed(seed)  # noqa: NPY002 - the code draws from the global generator
        warnings.simplefilter("ignore")
        self.d, self.random, self.optimizer, self.n_asked = d, [], None, 0

    def tell(self, duel, outcome):
        """Told duels are the initial ones until `ask` was called."""
        winner, loser = duel if outcome == 1 else duel[::-1]
        if self.optimizer is None:
            self.random.append(np.concatenate([winner, loser]))
        else:
            self.optimizer.update(X_win=winner[None], X_loo=loser[None])

    def ask(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.optimizer = self.optimizer or self._started()
            if self.n_asked % 10 == 0:
                try:
                    self.optimizer.GPmodel.model_selection()
                except (AssertionError, np.linalg.LinAlgError) as error:
                    print(f"refit at ask {self.n_asked}: {error!r}", file=sys.stderr, flush=True)
            self.n_asked += 1
            for _ in range(20):
                try:
                    duel = self.optimizer.next_input(first_acq="current_best", second_acq="EI")
                except SystemExit:
                    print(f"variance at ask {self.n_asked}", file=sys.stderr, flush=True)
                    continue
                return np.clip(np.concatenate(duel), 0.0, 1.0)
        raise RuntimeError("The code found no duel in 20 hallucinations.")

    def recommend(self):
        return self.optimizer.current_best[0]

    def _started(self):
        bounds = np.stack([np.zeros(self.d), np.ones(self.d)])
        lengthscales = np.stack([np.full(self.d, 0.1), np.full(self.d, 0.5)])
        kernel = GPy.kern.RBF(
            input_dim=self.d, lengthscale=lengthscales.mean(axis=0), variance=1, ARD=True
        )
        return PreferentialBO_HallucinationBeliever(
            np.array(self.random), bounds, kernel, lengthscales, 1e-2, GPmodel="Gibbs"
        )
