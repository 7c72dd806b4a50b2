"""What the tests of the core share: running an engine on duels, in a space of choice."""

from typing import NamedTuple

import numpy as np

from skpref._conditioning import ItemSpace, MarginSpace, condition, gaussian_space
from skpref._posterior import Posterior
from skpref.duels import Duels, merge
from skpref.inference import EP, Approximation, Laplace, Problem

TIGHT_EP = EP(tol=1e-12, max_iter=2000)
TIGHT_LAPLACE = Laplace(tol=1e-18, max_iter=500)
SPACES = {"margins": MarginSpace, "items": ItemSpace, "cheaper": gaussian_space}


class Solved(NamedTuple):
    """An engine's run and what it was run on."""

    duels: Duels
    problem: Problem
    approximation: Approximation
    posterior: Posterior

    @property
    def log_evidence(self):
        return self.approximation.sites.log_evidence


def solve(engine, kernel, duels, noise_variance, space="cheaper"):
    """Run an engine on merged duels."""
    made = SPACES[space](kernel(duels.items), duels.margins)
    margins = duels.margins
    problem = Problem(made, margins.index, margins.sign, duels.counts, noise_variance)
    found = engine.run(problem)
    posterior = condition(kernel, duels.items, made, found, noise_variance)
    return Solved(duels, problem, found, posterior)


def solve_small(engine, small, noise_variance, space="cheaper"):
    """The same for a `SmallProblem`."""
    duels = merge(small.items, small.winner, small.loser)
    return solve(engine, small.kernel, duels, noise_variance, space)


def random_duels(seed, n_items, n_duels, n_features=2, noise=0.3):
    """Items, winners and losers of noisy duels about a smooth utility."""
    rng = np.random.default_rng(seed)
    items = rng.uniform(-1.0, 1.0, (n_items, n_features))
    utility = np.sin(2.0 * items).sum(axis=1)
    first = rng.integers(n_items, size=n_duels)
    second = (first + rng.integers(1, n_items, size=n_duels)) % n_items
    margin = utility[first] - utility[second] + noise * rng.standard_normal(n_duels)
    won = margin > 0.0
    return items, np.where(won, first, second), np.where(won, second, first)
