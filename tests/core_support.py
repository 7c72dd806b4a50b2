"""What the tests of the core share: running an engine on duels, in a space of choice."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct, Kernel

from skpref.data._comparisons import duel_rows
from skpref.duels import Comparisons
from skpref.gp import DenseItems, DenseMargins, SitePrecision, _prior
from skpref.gp._posterior import Posterior
from skpref.gp._shared_noise import JointNoise
from skpref.inference import EP, Approximation, Laplace, PriorRule, Problem
from skpref.likelihoods import Probit

TIGHT_EP = EP(tol=1e-12, max_iter=2000)
TIGHT_LAPLACE = Laplace(tol=1e-18, max_iter=500)


def _space_of(made):
    """A way to make a prior by the covariance of the items."""

    def of(K, margins, item_noise=None, kernel=None, items=None):
        noise = JointNoise(margins, item_noise) if margins.blocks else None
        return made(K, margins, noise, kernel, items)

    return of


DENSE = {"margins": DenseMargins, "items": DenseItems}
SPACES = {name: _space_of(made) for name, made in DENSE.items()}


def only(monkeypatch, space):
    """All exact priors are of one kind from here on."""
    monkeypatch.setattr(_prior, "EXACT", [DENSE[space]])


def joint_sites(margins, seed=1, strength=1.0):
    """Sites of random precision and shift, joint answers' as often as they were given; and all
    precisions as one matrix."""
    rng = np.random.default_rng(seed)
    n = len(margins.first)
    single = np.where(np.arange(n) < margins.n_shared, strength * np.exp(rng.normal(size=n)), 0.0)
    roots, whole = [], np.diag(single)
    for block in margins.blocks:
        size = (*block.margin.shape, block.margin.shape[1])
        root = np.eye(size[1]) + 0.3 * rng.normal(size=size)
        root *= np.sqrt(strength * block.counts)[:, None, None]
        roots.append(root)
        for at, own in zip(block.margin, root, strict=True):
            whole[np.ix_(at, at)] = own @ own.T
    return SitePrecision(single, margins.blocks, tuple(roots)), whole @ rng.normal(size=n), whole


def won(items, winner, loser, weight=None):
    """Duels between rows of a table, the winner shown first."""
    return Comparisons.from_duels(items, winner, loser, np.ones(len(winner), dtype=bool), weight)


@dataclass(frozen=True, eq=False)
class Apart(Comparisons):
    """Equal answers are not counted together: each is a row of its own."""

    @property
    def rows(self):
        lead = np.where(self.order[:, 0] == 0, 1, -1).astype(np.int8)
        return duel_rows(len(self.items), *self.positions.T, self.kind, lead, self.weight)

    @property
    def of_answer(self):
        return np.arange(len(self.positions))


def apart(comparisons):
    """The same answers, none of them counted."""
    return Apart(**{each.name: getattr(comparisons, each.name) for each in fields(comparisons)})


class Solved(NamedTuple):
    """An engine's run and what it was run on."""

    comparisons: Comparisons
    problem: Problem
    approximation: Approximation
    posterior: Posterior

    @property
    def log_evidence(self):
        return self.approximation.sites.log_evidence


def solve(engine, kernel, comparisons, likelihood, space="cheaper"):
    """Run an engine on answers; a number stands for a probit of that noise variance."""
    if isinstance(likelihood, float):
        likelihood = Probit(likelihood)
    K, margins = kernel(comparisons.items), comparisons.rows.margins
    if space == "cheaper":
        made = PriorRule().prior(kernel, comparisons, likelihood)
    else:
        made = SPACES[space](K, margins, likelihood.item_noise, kernel, comparisons.items)
    problem = Problem(made, comparisons, likelihood)
    found = engine.run(problem)
    posterior = made.posterior(found.sites, found.conditioned, likelihood)
    return Solved(comparisons, problem, found, posterior)


def solve_small(engine, small, noise_variance, space="cheaper"):
    """The same for a `SmallProblem`."""
    comparisons = won(small.items, small.winner, small.loser)
    return solve(engine, small.kernel, comparisons, noise_variance, space)


def random_duels(seed, n_items, n_duels, n_features=2, noise=0.3):
    """Items, winners and losers of noisy duels about a smooth utility."""
    rng = np.random.default_rng(seed)
    items = rng.uniform(-1.0, 1.0, (n_items, n_features))
    utility = np.sin(2.0 * items).sum(axis=1)
    first = rng.integers(n_items, size=n_duels)
    second = (first + rng.integers(1, n_items, size=n_duels)) % n_items
    margin = utility[first] - utility[second] + noise * rng.standard_normal(n_duels)
    first_won = margin > 0.0
    return items, np.where(first_won, first, second), np.where(first_won, second, first)


class Hard(NamedTuple):
    """Data that break careless code, and the win probabilities that they must give."""

    kernel: Kernel
    comparisons: Comparisons
    pair: tuple  # two items of shape (1, 2)
    least: float  # bounds on P(first beats second)
    most: float


def _contradictory():
    rng = np.random.default_rng(0)
    items = rng.uniform(size=(60, 2))
    first = rng.integers(60, size=1000)
    second = (first + rng.integers(1, 60, size=1000)) % 60
    both = np.concatenate([first, second]), np.concatenate([second, first])
    return Hard(RBF(0.5), won(items, *both), (items[:1], items[1:2]), 0.5, 0.5)


def _one_pair(n_won, n_lost):
    items = np.array([[0.3, 0.4], [0.0, 0.0]])
    winner = np.repeat([0, 1], [n_won, n_lost])
    even = n_won == n_lost
    bounds = (0.5, 0.5) if even else (0.5, 1.0)
    return Hard(RBF(0.5), won(items, winner, 1 - winner), (items[:1], items[1:]), *bounds)


def _near_identical():
    items = 0.3 + 1e-9 * np.random.default_rng(0).standard_normal((500, 2))
    winner = np.arange(500)
    comparisons = won(items, winner, (winner + 1) % 500)
    return Hard(RBF(0.5), comparisons, (items[:1], items[1:2]), 0.45, 0.55)


def _against_itself():
    items = np.array([[0.3, 0.4], [0.0, 0.0]])
    comparisons = won(items, np.array([0, 0]), np.array([0, 1]))
    return Hard(RBF(0.5), comparisons, (items[:1], items[1:]), 0.5, 1.0)


def _semidefinite():
    items, winner, loser = random_duels(0, 30, 200, noise=0.0)
    order = np.argsort(items.sum(axis=1))
    pair = (items[order[-1:]], items[order[:1]])
    return Hard(DotProduct(), won(items, winner, loser), pair, 0.9, 1.0)


HARD = {
    "contradictory": _contradictory,
    "one duel": lambda: _one_pair(1, 0),
    "all alike": lambda: _one_pair(3000, 0),
    "even": lambda: _one_pair(1000, 1000),
    "near-identical items": _near_identical,
    "an item against itself": _against_itself,
    "semidefinite": _semidefinite,
}


def check_hard(found, hard):
    """Converged, finite, and predicting what the data say."""
    assert found.approximation.converged
    assert np.isfinite(found.log_evidence)
    assert np.all(found.approximation.conditioned.variance >= 0.0)
    probability = found.posterior.win_probability(*hard.pair)
    assert hard.least - 1e-6 <= probability[0] <= hard.most + 1e-6
    both = np.concatenate(hard.pair)
    assert np.all(np.isfinite(found.posterior.mean(both)))
    assert np.all(np.linalg.eigvalsh(found.posterior.cov(both)) > -1e-9)
