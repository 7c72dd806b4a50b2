"""The noisy margins v of single answers: what samplers draw, and the sites that a draw makes."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from skpref._conditioning import ItemSpace, MarginSpace, Sites
from skpref._observations import Observations
from skpref.inference._base import Problem, State
from skpref.likelihoods import Answers, Likelihood, Regions
from skpref.samplers import truncated_normal
from skpref.samplers._chains import SMALLEST

_LARGEST = 10_000


def check_sampled(observations: Observations, likelihood: Likelihood) -> None:
    """Raise ValueError unless these answers can be sampled, before any work."""
    _regions(likelihood, observations.answers)
    n_answers = observations.weight.sum()
    if n_answers > _LARGEST:
        raise ValueError(
            f"{n_answers:.0f} duels are too many to sample their margins (at most {_LARGEST}). Use "
            "inference='ep', whose error is small with so many, or fewer duels."
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
    if np.any(found.lower != 0.0) or np.any(found.upper != np.inf):
        raise ValueError(
            f"Regions of {type(likelihood).__name__} are boxes other than v > 0, which these "
            "samplers do not draw from. Use inference='ep' or 'laplace'."
        )
    return found


def prior_covariance(space: MarginSpace | ItemSpace) -> NDArray[np.float64]:
    """Prior covariance of the distinct margins: not computed again where the space has it."""
    return space.S if isinstance(space, MarginSpace) else space.prior_covariance()


class NoisyMargins:
    """v = z + e of every single answer: repeated answers have noise of their own.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    row : ndarray of shape (n_answers,)
        Distinct duel of every answer.
    """

    def __init__(self, problem: Problem):
        check_sampled(problem.observations, problem.likelihood)
        self.row = problem.observations.singles()
        self._problem = problem
        self._index, self._sign = problem.index[self.row], problem.sign[self.row]
        self._answers = problem.answers.take(self.row)
        self._noise = _regions(problem.likelihood, self._answers).variance

    @property
    def n_answers(self) -> int:
        """Number of single answers."""
        return len(self._index)

    def given(self, z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw v (n, n_answers) given the distinct margins z (n, n_margins), each by itself."""
        scale = np.sqrt(self._noise)
        below = self._sign * z[:, self._index] / -scale
        v = truncated_normal(below, rng)
        v -= below
        v *= scale
        return np.maximum(v, SMALLEST, out=v)

    def covariance(self) -> NDArray[np.float64]:
        """Prior covariance of v, oriented so that every v is positive."""
        oriented = prior_covariance(self._problem.space)[np.ix_(self._index, self._index)]
        oriented *= self._sign
        oriented *= self._sign[:, None]
        oriented.flat[:: len(oriented) + 1] += self._noise
        return oriented

    def typical(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """E[v | z = mean, v > 0]: positive, and close to where the draws will be."""
        z = self._sign * mean[self._index]
        v = z + self._noise * self._problem.likelihood.log_prob(z, self._answers).gradient
        return np.maximum(v, 1e-10 * np.sqrt(self._noise))

    def start(
        self, mean: NDArray[np.float64], state: State | None, n_chains: int
    ) -> NDArray[np.float64]:
        """Positive positions of all chains: those carried over, `typical` where there are none."""
        typical = self.typical(mean)
        carried = None if state is None else state.get("margins")
        if carried is None or carried.shape[1] != len(typical):
            return np.broadcast_to(typical, (n_chains, len(typical)))
        carried = carried[np.arange(n_chains) % len(carried)]
        return np.where(carried > 0.0, carried, typical)

    def sites(self, draws: NDArray[np.float64], log_evidence: float) -> Sites:
        """Sites of z with one component a draw: v = z + e is a Gaussian observation."""
        n_margins, n_answers = self._problem.space.n_margins, len(self._index)
        positions = (self._index, np.arange(n_answers))
        pool = csr_array((self._sign / self._noise, positions), shape=(n_margins, n_answers))
        precision = np.bincount(self._index, 1.0 / self._noise, n_margins)
        return Sites(pool @ draws.T, precision, log_evidence)
