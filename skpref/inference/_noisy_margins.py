"""The noisy margins v of single answers: what samplers draw, and the sites that a draw makes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from skpref._conditioning import ItemSpace, MarginSpace, Sites
from skpref._observations import Observations
from skpref.inference._base import Approximation, Problem, State
from skpref.likelihoods import PART, Answers, Likelihood, Regions
from skpref.samplers import truncated_normal

_LARGEST = 10_000
# Positions start this far within their box, in shares of its width or of the noise.
_INSIDE = 1e-10


class Box(NamedTuple):
    """Bounds of the noisy margins, shape (n_singles,) each."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def check_sampled(observations: Observations, likelihood: Likelihood) -> None:
    """Raise ValueError unless these answers can be sampled, before any work."""
    _regions(likelihood, observations.rows.answers)
    n_singles = observations.n_singles
    if n_singles > _LARGEST:
        raise ValueError(
            f"{n_singles} duels (of choices and rankings the duels that they stand for) are too "
            f"many to sample their margins (at most {_LARGEST}). Use inference='ep', whose error "
            "is small with so many, or fewer answers."
        )
    observations.singles()  # weights are whole numbers


def _regions(likelihood: Likelihood, answers: Answers) -> Regions:
    found = likelihood.regions(answers)
    if found is None:
        raise ValueError(
            f"{type(likelihood).__name__} does not say which regions of a noisy margin its answers "
            "stand for (Likelihood.regions), so that it cannot be sampled. Use inference='ep' or "
            "'laplace'."
        )
    return found


def prior_covariance(space: MarginSpace | ItemSpace) -> NDArray[np.float64]:
    """Prior covariance of the distinct margins: not computed again where the space has it."""
    if isinstance(space, MarginSpace) and space.noise is None:
        return space.S
    return space.prior_covariance()


class NoisyMargins:
    """v = z + e of every single answer: repeated answers have noise of their own.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    row : ndarray of shape (n_singles,)
        Row of the distinct answers of every row of the single ones.
    box : Box or None
        Where v lies; None: v > 0.
    """

    def __init__(self, problem: Problem):
        check_sampled(problem.observations, problem.likelihood)
        singles = problem.observations.singles()
        self.row = singles.row
        self._problem = problem
        self._index, self._sign = problem.index[self.row], problem.sign[self.row]
        self._answers = problem.answers.take(self.row)
        regions = _regions(problem.likelihood, self._answers)
        self._noise, turn = regions.variance, regions.turn
        self._turn = 1.0 if turn is None else turn
        self._sign = self._sign * self._turn
        cone = np.all(regions.lower == 0.0) and np.all(regions.upper == np.inf)
        self.box = None if cone else Box(regions.lower, regions.upper)
        self._sets = _Sets(problem, singles) if problem.rows.joint else None
        spread = self._noise
        if self._sets is not None:
            spread = spread + problem.space.noise.diagonal()[self._index]
        self._width = np.sqrt(spread)

    @property
    def n_answers(self) -> int:
        """Number of rows of the single answers."""
        return len(self._index)

    def given(self, z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw v (n, n_singles) given the distinct margins z (n, n_margins), each by itself."""
        scale = np.sqrt(self._noise)
        centre = self._sign * z[:, self._index]
        lower, upper = (0.0, None) if self.box is None else self.box
        below = (lower - centre) / scale
        above = None if upper is None else (upper - centre) / scale
        v = truncated_normal(below, rng, upper=above)
        v -= below  # before it is scaled: never negative
        v *= scale
        v += lower
        return self._clipped(v)

    def covariance(self) -> NDArray[np.float64]:
        """Prior covariance of v, oriented as the rows are."""
        oriented = prior_covariance(self._problem.space)[np.ix_(self._index, self._index)]
        oriented *= self._sign
        oriented *= self._sign[:, None]
        oriented.flat[:: len(oriented) + 1] += self._noise
        if self._sets is not None:
            self._sets.add_noise(oriented)
        return oriented

    def typical(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """E[v | z = mean, v in its box], or near it: where the draws will be."""
        z = self._sign * mean[self._index]
        answers, noise = self._answers, self._noise
        if self._sets is not None:  # as if every inequality were a duel
            answers = self._problem.rows.apart().answers.take(self.row)
            noise = noise + self._problem.space.noise.diagonal()[self._index]
        pull = self._problem.likelihood.log_prob(self._turn * z, answers).gradient
        v = self._clipped(z + self._turn * noise * pull)
        if self._sets is not None:
            self._sets.reconcile(v, np.zeros(len(v)) if self.box is None else self.box.lower)
        return v

    def expected(self, near: Approximation) -> NDArray[np.float64]:
        """E[v] under the sites of expectation propagation."""
        z = self._problem.oriented(near.conditioned.mean)
        pull = near.state["shift"] - near.state["precision"] * z
        mean = self._sign * near.conditioned.mean[self._index]
        return self._clipped(mean + self._turn * self._noise * pull[self.row])

    def constant(self, value: float) -> NDArray[np.float64]:
        """The same value for every v; what is nearest to it in the box where it lies outside."""
        v = self._clipped(np.full(len(self._index), value))
        if self._sets is not None:
            self._sets.reconcile(v, np.zeros(len(v)) if self.box is None else self.box.lower)
        return v

    def _clipped(self, v):
        """v, in place, within the box where rounding left it outside."""
        if self.box is None:
            return np.maximum(v, _INSIDE * self._width, out=v)
        lower, upper = self.box
        width = np.minimum(self._width, upper - lower)
        np.maximum(v, lower + _INSIDE * width, out=v)
        return np.minimum(v, upper - _INSIDE * width, out=v)

    def start(
        self, mean: NDArray[np.float64], state: State | None, n_chains: int
    ) -> NDArray[np.float64]:
        """Positions of all chains inside the box: those carried over, `typical` where there are
        none."""
        typical = self.typical(mean)
        carried = None if state is None else state.get("margins")
        if carried is None or carried.shape[1] != len(typical):
            return np.broadcast_to(typical, (n_chains, len(typical)))
        carried = carried[np.arange(n_chains) % len(carried)]
        lower, upper = (0.0, np.inf) if self.box is None else self.box
        kept = (carried > lower) & (carried < upper)
        if self._sets is not None:
            kept = self._sets.whole(kept)
        return np.where(kept, carried, typical)

    def sites(self, draws: NDArray[np.float64], log_evidence: float) -> Sites:
        """Sites of z with one component a draw: v = z + e is a Gaussian observation."""
        n_margins, n_answers = self._problem.space.n_margins, len(self._index)
        positions = (self._index, np.arange(n_answers))
        with np.errstate(divide="ignore"):
            weight = 1.0 / self._noise
        precision = np.bincount(self._index, weight, n_margins)
        known = np.isinf(precision)
        if known.any():  # the mean of v over equal answers
            repeated = np.bincount(self._index, minlength=n_margins)[self._index]
            weight = np.where(np.isinf(weight), 1.0 / repeated, weight)
        pool = csr_array((self._sign * weight, positions), shape=(n_margins, n_answers))
        return Sites(pool @ draws.T, precision, log_evidence)


class _Sets:
    """Rows of single joint answers, whose noise is drawn once an item."""

    def __init__(self, problem, singles):
        rows = problem.rows
        self._variance = problem.likelihood.item_noise
        part = np.flatnonzero(rows.kind[singles.row] == PART)
        begins = np.flatnonzero(np.diff(singles.answer[part], prepend=-1))
        sizes = np.diff([*begins, len(part)])
        margin = problem.index[singles.row[part[begins]]]
        self._at, self._pattern, self._follow = [], [], []
        for block in rows.margins.blocks:
            size = block.margin.shape[1]
            mine = sizes == size
            at = part[begins[mine][:, None] + np.arange(size)]
            order = np.argsort(block.margin[:, 0])
            found = order[np.searchsorted(block.margin[order, 0], margin[mine])]
            self._at.append(at)
            self._pattern.append(block.pattern[found])
            self._follow.append(~block.basis[found].all(axis=1))

    def add_noise(self, covariance):
        for at, pattern in zip(self._at, self._pattern, strict=True):
            covariance[at[:, :, None], at[:, None, :]] += self._variance * pattern

    def reconcile(self, v, lower):
        """Where some inequalities follow from others, values that fit together, in place."""
        for at, follow in zip(self._at, self._follow, strict=True):
            rows = at[follow]
            excess = np.mean(v[rows] - lower[rows], axis=1, keepdims=True)
            v[rows] = lower[rows] + excess

    def whole(self, kept):
        """Positions are kept for all rows of an answer, and none where some follow from others."""
        for at, follow in zip(self._at, self._follow, strict=True):
            kept[:, at] = (kept[:, at].all(axis=2) & ~follow)[:, :, None]
        return kept
