"""The methods of Takeno et al. (2023), figures 4, 8 and 9, in the setting of their experiments.

Section 6 and appendix F: one model for all methods, an RBF kernel with a lengthscale a column and
σ² = 1e-4; the lengthscales maximise Laplace's evidence before the first duel that is asked and
after every ten, between 0.1 and 0.5 of the range as in the public code (two starts of the search,
there ten); the item that is recommended is the first one of the next duel.

Draws of the margins: DuelUCB and EIIG have 1 000 by Gibbs sampling, of 50 chains after 100 sweeps
each, where the paper has one chain after 1 000 sweeps. One draw (HB, DuelTS) is one of exact
Hamiltonian Monte Carlo from the same distribution: 1 000 sweeps of a single chain take ten to
twenty times the seconds.

Variants of HB-EI: "incumbent's mean" improves on the mean of the incumbent in place of the largest
mean over the items seen, "best first" starts from the item of the largest mean in place of the last
random winner, "public code" is both, as in github.com/CyberAgentAILab/preferentialBO.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import Gibbs
from skpref.optimize import STRATEGIES, PreferenceOptimizer, Strategy

RELEARNED = 10  # duels from one learning of the lengthscales to the next
MODEL = {
    "noise_variance": 1e-4,
    "noise_variance_bounds": "fixed",
    "lengthscale_prior": None,
}
BOUNDS = (0.1, 0.5)
RESTARTS = 1  # of the search for lengthscales, beside where the last one ended


class Method(NamedTuple):
    """A strategy, and whether it starts from the item of the largest mean."""

    strategy: Strategy
    best_first: bool = False


def improvement_on_incumbent(posterior, X, incumbent):
    """E[(f(x) − E f(incumbent))⁺] of a posterior with one component."""
    deviation = np.sqrt(posterior.var(X))
    gap = posterior.mean(X) - posterior.mean(incumbent[None])
    z = gap / deviation
    return gap * norm.cdf(z) + deviation * norm.pdf(z)


IN_FIGURES = (
    *("HB-EI", "HB-UCB", "LA-EI", "EP-EI", "EP-MUC", "EP-TS-MUC", "DuelTS", "DuelUCB", "EIIG"),
    *("HB-mean", "HB-MUC", "HB-BVEI"),
)


def _in_the_paper(name):
    strategy = STRATEGIES[name]
    if strategy.inference == "hmc":
        strategy = strategy._replace(inference=Gibbs(1000, chains=50, burn_in=100, thin=1))
    return Method(strategy)


_ON_INCUMBENT = STRATEGIES["HB-EI"]._replace(acquisition=improvement_on_incumbent)
PAPER = {
    **{name: _in_the_paper(name) for name in IN_FIGURES},
    "HB-EI, incumbent's mean": Method(_ON_INCUMBENT),
    "HB-EI, best first": Method(STRATEGIES["HB-EI"], best_first=True),
    "HB-EI, public code": Method(_ON_INCUMBENT, best_first=True),
}


class PaperOptimizer:
    """Asks and takes answers as `PreferenceOptimizer`, in the setting of the paper."""

    def __init__(self, method, bounds, seed):
        self._strategy, self._best_first = PAPER[method]
        self._bounds, self._seed = bounds, seed
        self._answers, self._n_asked, self._next = [], 0, None
        self._made(np.full(len(bounds), np.mean(BOUNDS)))

    def _made(self, lengthscales):
        """Begin with these lengthscales, and take all answers in."""
        self._lengthscales = lengthscales
        self._optimizer = PreferenceOptimizer(
            self._bounds,
            **self._strategy._asdict(),
            **MODEL,
            kernel=RBF(lengthscales, "fixed"),
            random_state=self._seed,
        )
        for answer in self._answers:
            self._optimizer.tell(*answer)

    def _learn(self):
        duels = np.array([self._optimizer.to_unit(items) for items, _ in self._answers])
        model = PairwisePreferenceRegressor(
            RBF(self._lengthscales, BOUNDS),
            **MODEL,
            inference="laplace",
            n_restarts_optimizer=RESTARTS,
            random_state=self._seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the bounds are those of the paper
            model.fit(duels, np.array([outcome for _, outcome in self._answers]))
        self._made(np.broadcast_to(model.kernel_.length_scale, len(self._bounds)))

    def tell(self, items, outcome):
        """Take an answer; those before the first question are of random duels."""
        self._answers.append((np.array(items), outcome))
        self._optimizer.tell(items, outcome)
        self._next = None

    def ask(self, size=2):
        """The next duel; lengthscales are learned first where it is time."""
        if self._n_asked % RELEARNED == 0:
            self._learn()
        if self._n_asked == 0 and self._best_first:
            best = self._optimizer.recommend()
            self._answers.sort(key=lambda answer: np.any(np.all(answer[0] == best, axis=1)))
            self._made(self._lengthscales)
        self._n_asked += 1
        self._next = self._optimizer.ask(size=size)
        return self._next

    def recommend(self):
        """The first item of the next duel."""
        return (self.ask() if self._next is None else self._next)[0]
