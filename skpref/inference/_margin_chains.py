"""Chains on the distinct margins z instead of the noisy ones: as many dimensions as they have.

The posterior of z is log-concave: N(0, S) times the likelihood's factors to the power of their
counts. However often answers are repeated or contradicted, it has no more dimensions than there are
distinct margins, or items. In the coordinates in which expectation propagation makes a standard
normal of it, split Hamiltonian Monte Carlo moves; each draw of z then gives the noisy margins v,
one truncated normal an answer.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array

from skpref._linalg import cholesky, semidefinite_root, solve_lower
from skpref._rows import Rows
from skpref.inference._base import Approximation, Problem
from skpref.inference._chains import Budget, Found, wall_work
from skpref.inference._noisy_margins import NoisyMargins, prior_covariance
from skpref.likelihoods import Answers
from skpref.samplers import adapt_steps, split_hmc
from skpref.samplers._split import LENGTH, MOST_STEPS

# Trajectories in which the steps are adapted.
ADAPTATION = 15
# Trajectories a draw: the least effective sizes then are about those of reflected trajectories.
_THIN = 2
# Acceptance below which chains do not move.
_STUCK = 0.1
_POWER_ITERATIONS = 8
# In multiplications: a likelihood's log-probability and derivatives at one margin, and what a step
# of one chain costs beside these and the products of matrices.
_FACTOR = 700.0
_STEP = 3e4
# Steps that adaptation finds over those that curvature at the walls suggests.
_FEWER = 0.45
# Walls that are met quickly in any case.
FEW_WALLS = 200


def step_work(rows: Rows) -> float:
    """Multiplications of one step of one chain of `MarginChains`, at most."""
    n_margins = float(len(rows.margins.first))
    return 2.0 * n_margins * min(n_margins, rows.n_items) + _FACTOR * len(rows) + _STEP


def bearable_walls(problem: Problem, near: Approximation) -> int:
    """Walls a trajectory of exact HMC that take as long as `MarginChains` do for a draw."""
    steps = _THIN * _FEWER * MarginPosterior(problem, near).first_steps()
    observations = problem.observations
    walls = steps * step_work(observations.rows) / wall_work(observations.n_singles)
    return max(int(walls), FEW_WALLS)


class MarginPosterior:
    """The posterior of the distinct margins in whitened coordinates x: z = centre + x basis.

    Parameters
    ----------
    problem : Problem
    near : Approximation
        Its Gaussian posterior is the standard normal of x.
    """

    def __init__(self, problem: Problem, near: Approximation):
        self._problem = problem
        self._precision, shift = near.sites.precision, near.sites.shift
        self._root = _prior_root(problem.space)
        self._factor = self._factor_of(self._precision)
        # z = root u, u ~ N(0, I) a priori; u = L⁻ᵀ (x + offset) with L Lᵀ its precision given sites
        self._basis = np.ascontiguousarray(solve_lower(self._factor, self._root.T))
        self._offset = self._basis @ shift
        self._centre = self._offset @ self._basis
        self._pull = shift - self._precision * self._centre
        self._answers: Answers | None = None
        rows, columns = np.arange(len(problem.index)), problem.index
        shape = (problem.space.n_margins, len(rows))
        self._pool = csr_array((problem.counts * problem.sign, (columns, rows)), shape=shape)

    @property
    def dimension(self) -> int:
        """Of x."""
        return len(self._basis)

    @property
    def rows(self) -> Rows:
        """The distinct duels and ties."""
        return self._problem.rows

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Rows without a variance a priori: an item against itself."""
        return self._problem.space.prior_variance[self._problem.index] <= 0.0

    def oriented(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Margins z (n, n_margins) as winner over loser, (n, n_rows)."""
        return self._problem.sign * z[:, self._problem.index]

    def margins(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """z (n, n_margins) of x (n, dimension)."""
        return self._centre + x @ self._basis

    def potential(self, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """ψ with posterior density N(x; 0, I) exp(−ψ), and its gradient, see `split_hmc`."""
        problem, away = self._problem, x @ self._basis
        oriented = self.oriented(self._centre + away)
        at = problem.likelihood.log_prob(oriented.ravel(), self._answers_of(len(x)))
        of_sites = self._precision * away
        # The sites in z − centre: as squares of z itself they would cancel.
        value = np.einsum("cm,cm->c", away, self._pull - 0.5 * of_sites)
        value -= at.value.reshape(oriented.shape) @ problem.counts
        slope = self._pull - of_sites
        slope -= (self._pool @ at.gradient.reshape(oriented.shape).T).T
        return value, slope @ self._basis.T

    def first_steps(self) -> int:
        """Steps to begin the adaptation with: what the curvature of ψ at z = 0 allows."""
        problem = self._problem
        zero = np.zeros(len(problem.counts))
        curvature = problem.likelihood.log_prob(zero, problem.answers).curvature
        stiff = problem.pool(curvature)
        x, largest = np.random.default_rng(0).standard_normal(self.dimension), 0.0
        for _ in range(_POWER_ITERATIONS):
            x /= max(float(np.linalg.norm(x)), 1e-300)
            x = self._basis @ (stiff * (x @ self._basis))
            largest = float(np.linalg.norm(x))
        return int(min(np.ceil(LENGTH * np.sqrt(1.0 + 0.5 * largest)), MOST_STEPS))

    def of_noisy(
        self, noisy: NoisyMargins, v: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw x (n, dimension) given noisy margins v (n, n_answers): a Gaussian."""
        sites = noisy.sites(v, 0.0)
        factor = self._factor_of(sites.precision)
        half = solve_lower(factor, self._root.T @ sites.shift)
        half += rng.standard_normal(half.shape)
        white = solve_triangular(factor, half, lower=True, trans="T")
        return (self._factor.T @ white).T - self._offset

    def _factor_of(self, precision):
        inner = (self._root.T * precision) @ self._root
        inner.flat[:: len(inner) + 1] += 1.0
        return cholesky(inner)

    def _answers_of(self, n_chains):
        answers, n = self._problem.answers, len(self._problem.counts)
        if self._answers is None or len(self._answers.kind) != n * n_chains:
            self._answers = answers.take(np.tile(np.arange(n), n_chains))
        return self._answers


class MarginChains:
    """Chains of `MarginPosterior` that are seen through the noisy margins.

    Parameters
    ----------
    posterior : MarginPosterior
    noisy : NoisyMargins
    n_chains : int
    rng : numpy.random.Generator
    budget : Budget
    start : ndarray of shape (n_chains, n_answers), optional
        Noisy margins to go on from; by default the chains start at draws of the Gaussian.

    Attributes
    ----------
    stuck : bool
        No step that is long enough is accepted: going on would not help.
    """

    def __init__(
        self,
        posterior: MarginPosterior,
        noisy: NoisyMargins,
        n_chains: int,
        rng: np.random.Generator,
        budget: Budget,
        start: NDArray[np.float64] | None = None,
    ):
        self._posterior, self._noisy, self._rng, self._budget = posterior, noisy, rng, budget
        if start is None:
            x = rng.standard_normal((n_chains, posterior.dimension))
        else:
            x = posterior.of_noisy(noisy, start, rng)
        step = n_chains * step_work(posterior.rows)
        # Half of the work at most, though every trajectory takes the most steps.
        most = budget.affordable(MOST_STEPS, 2.0 * ADAPTATION * step)
        first = posterior.first_steps()
        adapted = adapt_steps(posterior.potential, x, ADAPTATION, rng=rng, first=first, most=most)
        self._n_steps, self._x = adapted.n_steps, adapted.state
        self.stuck = adapted.acceptance < _STUCK
        self._thin = 1 if self.stuck else _THIN
        self._work = self._n_steps * step * self._thin
        budget.spend(ADAPTATION * self._n_steps * step)

    def draw(self, n_draws: int) -> Found:
        """Go on by so many draws, or as many as the budget allows, at least one."""
        n_draws = self._budget.affordable(n_draws, self._work)
        self._budget.spend(n_draws * self._work)
        n_trajectories, steps = n_draws * self._thin, self._n_steps
        potential = self._posterior.potential
        found = split_hmc(potential, self._x, n_trajectories, rng=self._rng, n_steps=steps)
        x = found.draws[:, self._thin - 1 :: self._thin]
        self._x = found.state
        of_answer, n_chains = self._noisy.row, len(self._x)
        draws = np.empty((n_chains, n_draws, len(of_answer)))
        judged = np.empty((n_chains, n_draws, len(self._posterior.rows)))
        for k in range(n_draws):
            z = self._posterior.margins(x[:, k])
            judged[:, k] = self._posterior.oriented(z)
            draws[:, k] = self._noisy.given(z, self._rng)
        constant = self._posterior.constant
        first_answer = np.unique(of_answer, return_index=True)[1]
        judged[:, :, constant] = draws[:, :, first_answer[constant]]
        return Found(draws, draws[:, -1].copy(), judged, of_answer)


def _prior_root(space):
    """R with R Rᵀ the prior covariance of the margins, with as few columns as that has."""
    if space.n_items < space.n_margins:
        return space.difference(semidefinite_root(space.K))
    return semidefinite_root(prior_covariance(space))
