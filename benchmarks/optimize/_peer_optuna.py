"""Optuna Dashboard's `PreferentialGPSampler` in a preferential study, asked and told duels.

Each duel sets the winner of the last one against the trial that the sampler suggests: the duel of
Takeno et al. 2023, whose algorithm the sampler names as its base. The recommended item is that
winner, one of the study's `best_trials`; in two trial runs the largest posterior mean over the
items told was never better, at 10 duels on Branin worse. The first incumbent is the largest mean of
the sampler's own model over the random items: expectation propagation, as in its fit, at the
hyperparameters just learned.
The sampler keeps its defaults: Matérn-3/2 with ARD, gamma priors, learned anew at every suggestion.
"""

import warnings
from importlib import metadata

import numpy as np
import optuna
import torch
from optuna.distributions import FloatDistribution
from optuna_dashboard.preferential import create_study
from optuna_dashboard.preferential.samplers import gp

NAME = "Optuna"
PACKAGES = ("optuna-dashboard", "optuna", "torch", "botorch")


def sources():
    """The version, 8 characters long."""
    return f"{metadata.version('optuna-dashboard'):_<8}"[:8]


class Peer:
    """Items of the unit cube of d features."""

    def __init__(self, d, seed):
        torch.set_num_threads(1)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        self.space = {f"x{k}": FloatDistribution(0.0, 1.0) for k in range(d)}
        self.sampler = gp.PreferentialGPSampler(seed=seed)
        self.study = create_study(n_generate=2, sampler=self.sampler)
        self.items, self.trials, self.duels, self.pending = [], {}, [], {}
        self.incumbent = None

    def tell(self, duel, outcome):
        """Told duels count among those asked for once `ask` was called."""
        rows = [self._row(item) for item in duel]
        winner, loser = rows if outcome == 1 else rows[::-1]
        self.study.report_preference(self.trials[winner], self.trials[loser])
        self.duels.append((winner, loser))
        if self.incumbent is not None:
            self.incumbent = winner

    def ask(self):
        trial = self.study.ask(self.space)
        challenger = np.array([trial.params[name] for name in self.space])
        if self.incumbent is None:
            self.incumbent = int(np.argmax(self._means()))
        self.pending = {challenger.tobytes(): self.study.trials[trial.number]}
        return np.stack([self.items[self.incumbent], challenger])

    def recommend(self):
        return self.items[self.incumbent]

    def _row(self, item):
        """Number of an item, which is entered as a finished trial if the study has it not."""
        for row, known in enumerate(self.items):
            if np.array_equal(known, item):
                return row
        trial = self.pending.pop(item.tobytes(), None)
        if trial is None:
            params = dict(zip(self.space, item.tolist(), strict=True))
            self.study.add_trial(
                optuna.trial.create_trial(params=params, distributions=self.space, value=0.0)
            )
            trial = self.study.trials[-1]
        self.items.append(item)
        self.trials[len(self.items) - 1] = trial
        return len(self.items) - 1

    def _means(self):
        model = self.sampler._gp
        X, duels = torch.tensor(np.array(self.items)), torch.tensor(self.duels)
        with torch.no_grad():
            mean, _, _ = gp._orthants_MVN_EP_jit(
                model.kernel(X, X).to_dense(), duels, model.log_noise.exp(), cycles=2
            )
        return mean.numpy()
