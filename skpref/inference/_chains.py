"""Chains of the noisy margins: runs, diagnostics, and the posterior's components."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array
from scipy.special import fdtri, stdtrit

from skpref._utils import TOLERANCE, cholesky, solve_lower
from skpref.data import Comparisons, Rows
from skpref.gp import Sites
from skpref.inference._base import Approximation, Problem, State
from skpref.likelihoods import INEQUALITY, Answers, Likelihood, TruncationBox
from skpref.samplers import (
    LENGTH,
    MOST_STEPS,
    adapt_steps,
    effective_draws,
    mcse_mean,
    rhat,
    split_hmc,
    truncated_normal,
)

# Chains that agree this well (Vehtari et al. 2021 ask for 1.01 of many more draws).
_MIXED = 1.05
# Chance that independent draws are taken for unmixed because they are few.
_FALSE_ALARM = 1e-3


class Diagnostics(NamedTuple):
    """How well the chains mixed, per answer.

    Of the noisy margins v; where the chains ran on the margins without noise, of these.

    Attributes
    ----------
    rhat : ndarray of shape (n_answers,)
        Rank-normalised split-R̂.
    ess_bulk, ess_tail : ndarray of shape (n_answers,)
        Effective numbers of draws.
    mcse_mean : ndarray of shape (n_answers,)
        Monte Carlo standard error of the mean, in units of the utility.
    n_draws : int
        Draws kept, over all chains.
    burn_in : int
        Draws discarded, per chain.
    rejected_share : float
        Share of trajectories rejected at the cap on walls (0 for Gibbs).
    method : str
        ``"walls"``, ``"margins"`` or ``"gibbs"``: the sampler that drew.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import HMC
    >>> X = [[[1.0], [0.0]], [[2.0], [1.0]]]
    >>> engine = HMC(draws=200)
    >>> model = PairwisePreferenceRegressor(inference=engine, optimizer=None, random_state=0)
    >>> found = model.fit(X, [1, 1]).diagnostics_
    >>> found.n_draws, found.rhat.shape, found.method
    (200, (2,), 'walls')
    """

    rhat: np.ndarray
    ess_bulk: np.ndarray
    ess_tail: np.ndarray
    mcse_mean: np.ndarray
    n_draws: int
    burn_in: int
    rejected_share: float
    method: str


def rhat_limit(shape):
    """Return the largest R̂ that counts as mixed: larger where few draws make it large by chance."""
    n_chains, n_draws, n_duels = shape
    halves, length = 2 * n_chains, n_draws // 2
    level = 1.0 - _FALSE_ALARM / (2 * n_duels)  # plain and folded, every coordinate
    by_chance = fdtri(halves - 1, halves * (length - 1), level)
    return max(_MIXED, float(np.sqrt((length - 1 + by_chance) / length)))


def split_rhat(draws):
    """Return R̂, infinite where no chain has moved: v is continuous, a constant one is stuck."""
    split = rhat(draws)
    return np.where(np.isnan(split), np.inf, split)


def diagnose(judged, of_answer, split, burn_in, rejected_share, method):
    """Return `Diagnostics` of draws (n_chains, n_draws, n), whose R̂ is ``split``."""
    stuck = np.ptp(judged, axis=(0, 1)) == 0.0
    return Diagnostics(
        split[of_answer],
        np.where(stuck, 1.0, effective_draws(judged, "bulk"))[of_answer],
        np.where(stuck, 1.0, effective_draws(judged, "tail"))[of_answer],
        np.where(stuck, np.inf, mcse_mean(judged))[of_answer],
        judged.shape[0] * judged.shape[1],
        burn_in,
        rejected_share,
        method,
    )


# Batches of draws that an automatic burn-in may discard, and the one that is kept.
_TRIES = 4
# Multiplications in whose time a coordinate passes a wall, and coordinates that passing one costs
# beside those that there are.
_WALL, _OVERHEAD = 30.0, 200.0
# Walls of a trajectory that are worth their time, and as many an answer: agreeing answers meet
# about half an answer.
_FEW_WALLS, _WALLS_PER_ANSWER = 200, 4


def wall_work(n_answers: int) -> float:
    """Return the multiplications that one wall of a trajectory of exact HMC costs."""
    return _WALL * (n_answers + _OVERHEAD)


def bearable_walls(n_answers: int) -> int:
    """Return the walls of a trajectory beyond which another way of drawing is quicker."""
    return _FEW_WALLS + _WALLS_PER_ANSWER * n_answers


class ChainDraws(NamedTuple):
    """Draws of chains, and the positions where they ended.

    Attributes
    ----------
    draws : ndarray of shape (n_chains, n_draws, n_answers)
        Of the noisy margins.
    state : ndarray of shape (n_chains, n_answers)
        The last of them.
    judged : ndarray of shape (n_chains, n_draws, n_judged)
        Whose mixing counts: the draws themselves, or the margins that they were drawn from.
    of_answer : ndarray of shape (n_answers,)
        Which of them belongs to each answer.
    rejected_share : float
        Of the trajectories, at the cap on walls.
    """

    draws: NDArray[np.float64]
    state: NDArray[np.float64]
    judged: NDArray[np.float64]
    of_answer: NDArray[np.intp]
    rejected_share: float = 0.0


class Budget:
    """Work that may be done, in multiplications: the same on every machine, unlike seconds.

    Parameters
    ----------
    work : float
    """

    def __init__(self, work: float):
        self.left = work

    def n_affordable(self, n: int, each: float) -> int:
        """Return how many of n pieces of work the budget allows, at least one."""
        return int(min(n, max(1.0, self.left // each)))

    def spend(self, work: float) -> None:
        """Subtract work that was done from the budget."""
        self.left -= work


class AnswerChains:
    """Chains of a sampler of the noisy margins, draws in batches that the budget allows.

    Parameters
    ----------
    sample : callable
        Takes a state and a number of draws to an object with ``draws`` and ``state``, and
        ``rejected_share`` where trajectories can be rejected.
    work_of : callable
        Work that such an object took.
    most_work : float
        Of one draw of all chains.
    state : ndarray of shape (n_chains, n_answers)
    budget : Budget
    """

    def __init__(
        self,
        sample: Callable,
        work_of: Callable,
        most_work: float,
        state: NDArray[np.float64],
        budget: Budget,
    ):
        self._sample, self._work_of, self._most_work = sample, work_of, most_work
        self._state, self._budget = state, budget

    def draw(self, n_draws: int) -> ChainDraws:
        """Draw further, ``n_draws`` or as many as the budget allows, at least one."""
        parts: list = []
        missing = n_draws
        while missing and (not parts or self._budget.left > 0.0):
            batch = self._budget.n_affordable(missing, self._most_work)
            parts.append(self._sample(self._state, batch))
            self._state = parts[-1].state
            self._budget.spend(self._work_of(parts[-1]))
            missing -= batch
        draws = parts[0].draws
        if len(parts) > 1:
            draws = np.concatenate([part.draws for part in parts], axis=1)
        rejected = [getattr(part, "rejected_share", 0.0) for part in parts]
        weights = [part.draws.shape[1] for part in parts]
        answer_index = np.arange(draws.shape[2])
        share = float(np.average(rejected, weights=weights))
        return ChainDraws(draws, self._state, draws, answer_index, share)


class Mixed(NamedTuple):
    """The last batch of draws, its R̂ (None of fewer than 4 a chain), batches discarded before."""

    chains: ChainDraws
    split: NDArray[np.float64] | None
    discarded: int


def draw_until_mixed(draw: Callable[[int], ChainDraws], n_draws: int, automatic: bool) -> Mixed:
    """Draw a batch, and with ``automatic`` further ones until the chains have mixed.

    Chains that are slow, and do not drift, end with the first: to go on would mend nothing.

    Parameters
    ----------
    draw : callable
        Draws so many a chain, or fewer, after which it is not called again.
    n_draws : int
    automatic : bool
        Whether batches may be discarded.
    """
    for discarded in range(_TRIES):  # noqa: B007 (used below the loop)
        batch = draw(n_draws)
        complete = 4 <= n_draws == batch.draws.shape[1]
        split = split_rhat(batch.judged) if batch.draws.shape[1] >= 4 else None
        most = rhat_limit(batch.judged.shape)
        if not (automatic and complete) or np.all(split <= most):
            break
        if is_slow(batch.judged, most) and not is_drifting(batch.judged):
            break
    return Mixed(batch, split, discarded)


def is_slow(draws: NDArray[np.float64], most_rhat: float) -> bool:
    """Tell whether chains (n_chains, n_draws, n) make too few effective draws for this R̂.

    Of stationary chains R̂ is 1 + n_chains/ESS, about.
    """
    return float(np.min(effective_draws(draws, "bulk"))) < len(draws) / (most_rhat - 1.0)


def is_drifting(draws: NDArray[np.float64]) -> bool:
    """Tell whether all chains still move one way, from the first half of their draws to the second.

    By a t-test of each coordinate over the chains, in the spirit of Geweke (1992). Where they do
    not, they are slow, and going on mends nothing.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_draws, n)

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.inference._chains import is_drifting
    >>> draws = np.random.default_rng(0).standard_normal((20, 50, 3))
    >>> is_drifting(draws), is_drifting(draws + np.linspace(0.0, 1.0, 50)[:, None])
    (False, True)
    """
    n_chains, n_draws, n = draws.shape
    if n_chains == 1:  # which cannot be told from a slow one
        return True
    half = n_draws // 2
    moved = draws[:, -half:].mean(axis=1) - draws[:, :half].mean(axis=1)
    error = moved.std(axis=0, ddof=1) / np.sqrt(n_chains)
    least = stdtrit(n_chains - 1, 1.0 - _FALSE_ALARM / (2 * n))
    return bool(np.any(np.abs(moved.mean(axis=0)) > least * error))


_LARGEST = 10_000


class MarginBounds(NamedTuple):
    """Bounds of the noisy margins, shape (n_singles,) each."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def check_sampled(comparisons: Comparisons, likelihood: Likelihood) -> None:
    """Raise ValueError unless these answers can be sampled, before any work."""
    _check_regions(likelihood, comparisons.rows.answers)
    n_singles = comparisons.n_singles
    if n_singles > _LARGEST:
        raise ValueError(
            f"{n_singles} duels (of choices and rankings the duels that they stand for) are too "
            f"many to sample their margins (at most {_LARGEST}). Use inference='ep', whose error "
            "is small with so many, or fewer answers."
        )
    comparisons.singles()  # weights are whole numbers


def _check_regions(likelihood: Likelihood, answers: Answers) -> TruncationBox:
    """Return the boxes of the noisy margins; raise ValueError if the likelihood has none."""
    regions = likelihood.regions(answers)
    if regions is None:
        raise ValueError(
            f"{type(likelihood).__name__} does not say which regions of a noisy margin its answers "
            "stand for (Likelihood.regions), so that it cannot be sampled. Use inference='ep' or "
            "'laplace'."
        )
    return regions


class NoisyMargins:
    """v = z + e of every single answer: repeated answers have noise of their own.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    row : ndarray of shape (n_singles,)
        Row of the distinct answers of every row of the single ones.
    box : MarginBounds or None
        Where v lies; None: v > 0.
    """

    def __init__(self, problem: Problem):
        check_sampled(problem.comparisons, problem.likelihood)
        singles = problem.comparisons.singles()
        self.row = singles.row
        self._problem = problem
        self._index, self._sign = problem.index[self.row], problem.sign[self.row]
        self._answers = problem.answers.take(self.row)
        regions = _check_regions(problem.likelihood, self._answers)
        self._noise, turn = regions.variance, regions.turn
        self._turn = 1.0 if turn is None else turn
        self._sign = self._sign * self._turn
        cone = np.all(regions.lower == 0.0) and np.all(regions.upper == np.inf)
        self.box = None if cone else MarginBounds(regions.lower, regions.upper)
        self._sets = _Sets(problem, singles) if problem.rows.joint else None
        spread = self._noise
        if self._sets is not None:
            spread = spread + problem.prior.noise.diagonal()[self._index]
        self._width = np.sqrt(spread)

    @property
    def n_answers(self) -> int:
        """Number of rows of the single answers."""
        return len(self._index)

    def draw_given_margins(
        self, z: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
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
        return self._clip_to_box(v)

    def covariance(self) -> NDArray[np.float64]:
        """Return the prior covariance of v, oriented as the rows are."""
        oriented = self._problem.prior.covariance()[np.ix_(self._index, self._index)]
        oriented *= self._sign
        oriented *= self._sign[:, None]
        oriented.flat[:: len(oriented) + 1] += self._noise
        if self._sets is not None:
            self._sets.add_shared_noise(oriented)
        return oriented

    def typical(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return about E[v | z = mean, v in its box], where the draws will be."""
        z = self._sign * mean[self._index]
        answers, noise = self._answers, self._noise
        if self._sets is not None:  # as if every inequality were a duel
            answers = self._problem.rows.split_joint_answers().answers.take(self.row)
            noise = noise + self._problem.prior.noise.diagonal()[self._index]
        pull = self._problem.likelihood.log_prob(self._turn * z, answers).gradient
        v = self._clip_to_box(z + self._turn * noise * pull)
        if self._sets is not None:
            self._sets.make_consistent(v, np.zeros(len(v)) if self.box is None else self.box.lower)
        return v

    def expected(self, gaussian: Approximation) -> NDArray[np.float64]:
        """Return E[v] under the sites of expectation propagation."""
        z = self._problem.orient_margins(gaussian.conditioned.mean)
        pull = gaussian.state["shift"] - gaussian.state["precision"] * z
        mean = self._sign * gaussian.conditioned.mean[self._index]
        mean += self._turn * self._noise * pull[self.row]
        if self._sets is not None:  # E[v | z] = z + N g, g the slope of the answer's site
            mean += self._sets.multiply_noise(gaussian.conditioned.dual)
        return self._clip_to_box(mean)

    def constant(self, value: float) -> NDArray[np.float64]:
        """Return one value for every v, moved to the nearest point of its box."""
        v = self._clip_to_box(np.full(len(self._index), value))
        if self._sets is not None:
            self._sets.make_consistent(v, np.zeros(len(v)) if self.box is None else self.box.lower)
        return v

    def _clip_to_box(self, v):
        """Move noisy margins, in place, into their box where rounding left them outside; return
        them."""
        if self.box is None:
            return np.maximum(v, TOLERANCE * self._width, out=v)
        lower, upper = self.box
        width = np.minimum(self._width, upper - lower)
        np.maximum(v, lower + TOLERANCE * width, out=v)
        return np.minimum(v, upper - TOLERANCE * width, out=v)

    def start(
        self, mean: NDArray[np.float64], state: State | None, n_chains: int
    ) -> NDArray[np.float64]:
        """Return starting positions of all chains inside the box, those carried over where there
        are some."""
        typical = self.typical(mean)
        carried = None if state is None else state.get("margins")
        if carried is None or carried.shape[1] != len(typical):
            return np.broadcast_to(typical, (n_chains, len(typical)))
        carried = carried[np.arange(n_chains) % len(carried)]
        lower, upper = (0.0, np.inf) if self.box is None else self.box
        is_inside = (carried > lower) & (carried < upper)
        if self._sets is not None:
            is_inside = self._sets.keep_whole_answers(is_inside)
        return np.where(is_inside, carried, typical)

    def sites(self, draws: NDArray[np.float64], log_evidence: float) -> Sites:
        """Return sites of z with one component a draw: v = z + e is a Gaussian observation."""
        n_margins, n_answers = self._problem.prior.n_margins, len(self._index)
        positions = (self._index, np.arange(n_answers))
        with np.errstate(divide="ignore"):
            weight = 1.0 / self._noise
        precision = np.asarray(np.bincount(self._index, weight, n_margins), dtype=np.float64)
        is_noiseless = np.isinf(precision)
        if is_noiseless.any():  # the mean of v over equal answers
            repeated = np.bincount(self._index, minlength=n_margins)[self._index]
            weight = np.where(np.isinf(weight), 1.0 / repeated, weight)
        pool = csr_array((self._sign * weight, positions), shape=(n_margins, n_answers))
        return Sites(pool @ draws.T, precision, log_evidence)


class _Sets:
    """Rows of single joint answers, whose noise is drawn once an item."""

    def __init__(self, problem, singles):
        rows = problem.rows
        self._variance = problem.likelihood.item_noise
        part = np.flatnonzero(rows.kind[singles.row] == INEQUALITY)
        begins = np.flatnonzero(np.diff(singles.answer[part], prepend=-1))
        sizes = np.diff([*begins, len(part)])
        margin = problem.index[singles.row[part[begins]]]
        self._at, self._pattern, self._follow = [], [], []
        self._margin, self._counts, self._n = [], [], len(singles.row)
        for block in rows.margins.blocks:
            size = block.margin.shape[1]
            mine = sizes == size
            at = part[begins[mine][:, None] + np.arange(size)]
            order = np.argsort(block.margin[:, 0])
            block_rows = order[np.searchsorted(block.margin[order, 0], margin[mine])]
            self._at.append(at)
            self._margin.append(margin[mine][:, None] + np.arange(size))
            self._counts.append(block.counts[block_rows])
            self._pattern.append(block.pattern[block_rows])
            self._follow.append(~block.basis[block_rows].all(axis=1))

    def add_shared_noise(self, covariance):
        """Add, in place, the noise that inequalities of one answer share to a covariance."""
        for at, pattern in zip(self._at, self._pattern, strict=True):
            covariance[at[:, :, None], at[:, None, :]] += self._variance * pattern

    def multiply_noise(self, dual):
        """Multiply each answer's part of ``dual`` by its noise covariance; return 0 on duels."""
        product = np.zeros(self._n)
        for at, margin, pattern, counts in zip(
            self._at, self._margin, self._pattern, self._counts, strict=True
        ):
            slope = dual[margin] / counts[:, None]
            product[at] = self._variance * np.einsum("bij,bj->bi", pattern, slope)
        return product

    def make_consistent(self, v, lower):
        """Set, in place, inequalities that follow from each other to their mean distance from the
        walls."""
        for at, follow in zip(self._at, self._follow, strict=True):
            rows = at[follow]
            excess = np.mean(v[rows] - lower[rows], axis=1, keepdims=True)
            v[rows] = lower[rows] + excess

    def keep_whole_answers(self, is_inside):
        """Mark positions of whole answers, and none where some rows follow from others."""
        for at, follow in zip(self._at, self._follow, strict=True):
            is_inside[:, at] = (is_inside[:, at].all(axis=2) & ~follow)[:, :, None]
        return is_inside


# Trajectories in which the steps are adapted.
ADAPTATION = 15
# Trajectories a draw: the least effective sizes then are about those of reflected trajectories.
_THIN = 2
# Acceptance below which chains do not move.
_STUCK = 0.1
# Multiplications in whose time a likelihood finds log-probability and derivatives at one margin.
_FACTOR = 700.0


def step_work(rows: Rows) -> float:
    """Return the multiplications of one step of one chain of `MarginChains`, at most."""
    n_margins = float(len(rows.margins.first))
    return 2.0 * n_margins * min(n_margins, rows.n_items) + _FACTOR * len(rows)


def draw_work(problem: Problem, gaussian: Approximation) -> float:
    """Return about the multiplications of one draw of one chain of `MarginChains`."""
    return MarginPosterior(problem, gaussian).first_steps() * step_work(problem.comparisons.rows)


def expected_walls(problem: Problem, gaussian: Approximation) -> float | None:
    """Return the mean walls of a trajectory of exact HMC, by the sites of expectation propagation.

    A wall is met as often as trajectories flow out through it: the density there of the noisy
    margin, which is the slope of the answer's log-probability, times E[max(0, velocity)], with
    velocities of the prior's variance, times π/2. None: there are no such sites, or answers share
    noise.
    """
    if problem.rows.joint or "precision" not in gaussian.state:
        return None
    z = problem.orient_margins(gaussian.conditioned.mean)
    slope = gaussian.state["shift"] - gaussian.state["precision"] * z
    noise = problem.likelihood.regions(problem.answers).variance  # type: ignore[union-attr]  # checked
    deviation = np.sqrt(problem.prior.variance[problem.index] + noise)
    return float(np.sqrt(np.pi / 8.0) * (problem.counts * deviation) @ np.abs(slope))


class MarginPosterior:
    """The posterior of the distinct margins in whitened coordinates x: z = centre + x basis.

    Parameters
    ----------
    problem : Problem
    gaussian : Approximation
        Its Gaussian posterior is the standard normal of x.
    """

    def __init__(self, problem: Problem, gaussian: Approximation):
        self._problem = problem
        self._precision, shift = gaussian.sites.precision, gaussian.sites.shift
        self._root = problem.prior.root()
        self._factor = self._precision_factor(self._precision)
        # z = root u, u ~ N(0, I) a priori; u = L⁻ᵀ (x + offset) with L Lᵀ its precision given sites
        self._basis = np.ascontiguousarray(solve_lower(self._factor, self._root.T))
        self._offset = self._basis @ shift
        self._centre = self._offset @ self._basis
        self._pull = shift - self._precision * self._centre
        self._answers: Answers | None = None
        rows, columns = np.arange(len(problem.index)), problem.index
        shape = (problem.prior.n_margins, len(rows))
        self._pool = csr_array((problem.counts * problem.sign, (columns, rows)), shape=shape)

    @property
    def dimension(self) -> int:
        """Number of whitened coordinates x."""
        return len(self._basis)

    @property
    def rows(self) -> Rows:
        """Distinct duels and ties, as a likelihood takes them."""
        return self._problem.rows

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Rows without a variance a priori: an item against itself."""
        return self._problem.prior.variance[self._problem.index] <= 0.0

    def orient_margins(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return margins z (n, n_margins) as winner over loser, (n, n_rows)."""
        return self._problem.sign * z[:, self._problem.index]

    def margins(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return margins z (n, n_margins) at whitened coordinates x (n, dimension)."""
        return self._centre + x @ self._basis

    def potential(self, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ψ of the density N(x; 0, I) exp(−ψ) and its gradient, see `split_hmc`."""
        problem, away = self._problem, x @ self._basis
        oriented = self.orient_margins(self._centre + away)
        at = problem.likelihood.log_prob(oriented.ravel(), self._answers_for_chains(len(x)))
        of_sites = self._precision * away
        # The sites in z − centre: as squares of z itself they would cancel.
        value = np.einsum("cm,cm->c", away, self._pull - 0.5 * of_sites)
        value -= at.value.reshape(oriented.shape) @ problem.counts
        slope = self._pull - of_sites
        slope -= (self._pool @ at.gradient.reshape(oriented.shape).T).T
        return value, slope @ self._basis.T

    def first_steps(self) -> int:
        """Return the steps that adaptation begins with: what the curvature of ψ at z = 0 allows."""
        problem = self._problem
        zero = np.zeros(len(problem.counts))
        curvature = problem.likelihood.log_prob(zero, problem.answers).curvature
        stiff = problem.pool(curvature)
        largest = np.linalg.norm((self._basis * stiff) @ self._basis.T, 2)
        return int(min(np.ceil(LENGTH * np.sqrt(1.0 + 0.5 * largest)), MOST_STEPS))

    def draw_given_noisy(
        self, noisy: NoisyMargins, v: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw x (n, dimension) given noisy margins v (n, n_answers): a Gaussian."""
        sites = noisy.sites(v, 0.0)
        factor = self._precision_factor(sites.precision)
        half = solve_lower(factor, self._root.T @ sites.shift)
        half += rng.standard_normal(half.shape)
        white = solve_triangular(factor, half, lower=True, trans="T")
        return (self._factor.T @ white).T - self._offset

    def _precision_factor(self, precision):
        """Return the Cholesky factor of the posterior precision of u, given precisions of the
        sites."""
        inner = (self._root.T * precision) @ self._root
        inner.flat[:: len(inner) + 1] += 1.0
        return cholesky(inner)

    def _answers_for_chains(self, n_chains):
        """Return the answers repeated once for each chain, kept from the last call."""
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
            x = posterior.draw_given_noisy(noisy, start, rng)
        step = n_chains * step_work(posterior.rows)
        # Half of the work at most, though every trajectory takes the most steps.
        most = budget.n_affordable(MOST_STEPS, 2.0 * ADAPTATION * step)
        first = posterior.first_steps()
        adapted = adapt_steps(posterior.potential, x, ADAPTATION, rng=rng, first=first, most=most)
        self._n_steps, self._x = adapted.n_steps, adapted.state
        self.stuck = adapted.acceptance < _STUCK
        self._thin = 1 if self.stuck else _THIN
        self._work = self._n_steps * step * self._thin
        budget.spend(ADAPTATION * self._n_steps * step)

    def draw(self, n_draws: int) -> ChainDraws:
        """Draw further, ``n_draws`` or as many as the budget allows, at least one."""
        n_draws = self._budget.n_affordable(n_draws, self._work)
        self._budget.spend(n_draws * self._work)
        n_trajectories, steps = n_draws * self._thin, self._n_steps
        potential = self._posterior.potential
        chains = split_hmc(potential, self._x, n_trajectories, rng=self._rng, n_steps=steps)
        x = chains.draws[:, self._thin - 1 :: self._thin]
        self._x = chains.state
        of_answer, n_chains = self._noisy.row, len(self._x)
        draws = np.empty((n_chains, n_draws, len(of_answer)))
        judged = np.empty((n_chains, n_draws, len(self._posterior.rows)))
        for k in range(n_draws):
            z = self._posterior.margins(x[:, k])
            judged[:, k] = self._posterior.orient_margins(z)
            draws[:, k] = self._noisy.draw_given_margins(z, self._rng)
        constant = self._posterior.constant
        first_answer = np.unique(of_answer, return_index=True)[1]
        judged[:, :, constant] = draws[:, :, first_answer[constant]]
        return ChainDraws(draws, draws[:, -1].copy(), judged, of_answer)
