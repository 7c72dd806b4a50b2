"""Sparse variational inference with natural gradients (Hensman et al. 2013, 2015)."""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._conditioning import Sites
from skpref._inducing import InducedSpace, Weights, moments, unexplained_share
from skpref._observations import Observations
from skpref._parameters import check_number
from skpref._random import RandomLike, seed_of
from skpref._rows import Rows
from skpref.inference._base import Approximation, Engine, EvidenceGradient, Problem, State
from skpref.inference._moving import moved
from skpref.inference._natural import Batch, Path, fit_of
from skpref.inference._placing import place
from skpref.kernels._hyperparameters import seen_columns
from skpref.likelihoods import Likelihood

# Answers that a run on many begins with, before it sees all.
_BEGIN = 10_000
# Answers that the points are moved for, at most.
_MOVED = 5000
# Share of the items' variance that points leave at least where they are moved: where they tell all
# but everything, they would but follow the noise of the answers.
_LEFT = 0.01
# Looseness of a run within the search for hyperparameters.
_SEARCH_TOL = 3e-3
# A residual that may be left where rounding ends the way.
_ROUGH = 1e-2


class Course(NamedTuple):
    """How the engine went.

    Attributes
    ----------
    bound_history : ndarray of shape (n_iter,)
        The bound on the log evidence after each iteration; of a minibatch its estimate.
    """

    bound_history: NDArray[np.float64]


class SVI(Engine):
    """Options of sparse variational inference, for many answers and many items.

    The utility is carried by inducing points, q(u) = N(m, S) of their utilities maximises a lower
    bound of the evidence, Σ E_q[log p(answer | u)] − KL(q ‖ prior) [1]_ [2]_, by natural-gradient
    steps [3]_. What the points leave of a margin is noise of the answer (the fully independent
    conditional prior, FITC [4]_): few points then widen predictions, and neither bend the
    hyperparameters nor claim more than the answers tell. With a point for every item nothing is
    left, and the bound is one on the evidence of the exact model. Whatever the number of answers, a
    step costs their number times that of the points, plus the number of items times that of the
    points squared.

    Parameters
    ----------
    n_inducing : int, default=200
        Number of inducing points, at most: centres of clusters of the items, moved a few steps up
        the bound, once the hyperparameters are known, where they leave more than a hundredth of the
        items' variance. Items that a kernel tells by name alone
        (`skpref.kernels.Identity`) are all points of their own.
    inducing_points : array-like of shape (m, n_features), default=None
        The points themselves.
    batch_size : int, default=None
        None: every step sees all answers, is of length 1, or shorter where the bound would fall,
        and the fit takes a few. A number: steps see so many answers, drawn without replacement,
        and step t has length ``(t + delay) ** -forgetting_rate``; memory then does not grow with
        the number of items.
    max_iter : int, default=100
        Passes over the answers at most.
    tol : float, default=1e-4
        Stop once the wanted step is shorter than this many deviations of q; the bound then lacks
        about half its square. With batches: once the mean bound of a pass exceeds that of the pass
        before by less than twice its standard error.
    forgetting_rate : float, default=0.7
        In (0.5, 1].
    delay : float, default=1.0
        At least 0.

    Notes
    -----
    Choices and rankings are not taken. Expected log-probabilities are found by quadrature from the
    likelihood, so that ties, order effects, weights and other likelihoods work.

    References
    ----------
    .. [1] Hensman, Matthews, Ghahramani, "Scalable variational Gaussian process classification",
       AISTATS 2015.
    .. [2] Simpson and Gurevych, "Finding convincing arguments using scalable Bayesian preference
       learning", TACL 2018.
    .. [3] Hensman, Fusi, Lawrence, "Gaussian processes for big data", UAI 2013.
    .. [4] Quiñonero-Candela and Rasmussen, "A unifying view of sparse approximate Gaussian process
       regression", JMLR 2005, section 6.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.datasets import load_candy
    >>> from skpref.inference import SVI
    >>> candy = load_candy(n_duels=1000)
    >>> model = PairwisePreferenceRegressor(inference=SVI(n_inducing=50), random_state=0)
    >>> model.fit(candy.X, candy.y).posterior_.anchors.shape
    (50, 11)
    """

    has_evidence: ClassVar[bool] = True
    dense: ClassVar[bool] = False
    state_of: ClassVar[str] = "points"
    _free = False  # whether its points may be moved

    def __init__(
        self,
        n_inducing: int = 200,
        inducing_points: ArrayLike | None = None,
        *,
        batch_size: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        forgetting_rate: float = 0.7,
        delay: float = 1.0,
    ):
        self.n_inducing = n_inducing
        self.inducing_points = inducing_points
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.forgetting_rate = forgetting_rate
        self.delay = delay

    def check(self) -> None:
        """Raise unless the options are sound."""
        check_number("n_inducing", self.n_inducing, low=1, integer=True)
        if self.batch_size is not None:
            check_number("batch_size", self.batch_size, low=1, integer=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number("tol of the engine", self.tol, low=0.0, open_low=True)
        check_number("forgetting_rate", self.forgetting_rate, low=0.5, high=1.0, open_low=True)
        check_number("delay", self.delay, low=0.0)
        if self.inducing_points is not None:
            shape = np.shape(self.inducing_points)
            if len(shape) != 2 or not shape[0]:
                raise ValueError(
                    f"inducing_points must have shape (m, n_features) with m > 0, got {shape}."
                )

    # -- what a fit asks of it before it runs ----------------------------------------------

    def placed(self, observations: Observations, kernel: Kernel, rng: RandomLike = None) -> Self:
        """This engine with inducing points for these items, see `Engine.placed`."""
        items = observations.items
        if self.inducing_points is None:
            Z = place(items, kernel, self.n_inducing, seed_of(rng) or 0)
        else:
            Z = np.asarray(self.inducing_points, dtype=np.float64)
            if Z.shape[1] != items.shape[1] or not np.all(np.isfinite(Z)):
                raise ValueError(
                    f"inducing_points must be finite, of {items.shape[1]} features as the items; "
                    f"got shape {Z.shape}."
                )
        found = type(self)(**{**self.get_params(deep=False), "inducing_points": Z})
        measured = not seen_columns(kernel, items.shape[1])[0]
        found._free = self.inducing_points is None and measured and len(Z) < len(items)
        return found

    def settled(self, observations: Observations, kernel: Kernel, likelihood: Likelihood) -> Self:
        """This engine with its points moved for these answers, see `Engine.settled`.

        Points of the user's own stay, as those do that stand for items with names.
        """
        if not self._free:
            return self
        part, state = _spread(observations, _MOVED), None
        left = unexplained_share(kernel, part.items, self.inducing_points)
        if np.mean(left) < _LEFT:
            return self

        def bound(Z):
            nonlocal state
            space = InducedSpace(kernel, part.items, part.rows.margins, Z)
            problem = Problem(space, part, likelihood)
            found = self.coarser().run(problem, state)
            state = found.state
            pull = self.evidence_gradient(problem, found).covariance
            return found.sites.log_evidence, space.by_points(pull)

        Z = moved(self.inducing_points, part.items, bound)
        return type(self)(**{**self.get_params(deep=False), "inducing_points": Z})

    def coarser(self, times: float = 1.0) -> Self:
        """This engine as the search for hyperparameters uses it: exact to 1e-5 nats."""
        options = self.get_params(deep=False)
        tol = max(self.tol, _SEARCH_TOL)
        return type(self)(**{**options, "tol": tol, "batch_size": None})

    def side(self, observations: Observations) -> int:
        """Number of inducing points."""
        n = self.n_inducing if self.inducing_points is None else len(self.inducing_points)
        return min(n, len(observations.items)) if self.inducing_points is None else n

    def own_utilities(self, observations: Observations) -> bool:
        """Whether every item has a point of its own."""
        return len(observations.items) <= self.n_inducing and self.inducing_points is None

    # -- the run ---------------------------------------------------------------------------

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        near: Approximation | None = None,
    ) -> Approximation:
        """Maximise the bound, see `Engine.run`."""
        self.check()
        rows, space = problem.rows, problem.space
        total, m = float(rows.counts.sum()), len(space.Z)
        weights = _started(start, space, total)
        if self.batch_size is not None and self.batch_size < len(rows):
            return self._in_batches(problem, weights or _nothing(m), total)
        if weights is None:
            weights = self._begun(problem)
        batch = Batch.of(space, rows, problem.likelihood)
        return self._ascend(batch, weights, total)

    def run_after(self, problem: Problem, before: Weights) -> Approximation:
        """Maximise the bound with a prior that has learned from earlier answers.

        Parameters
        ----------
        problem : Problem
            The new answers.
        before : Weights
            What the earlier ones told of the same inducing points.

        Returns
        -------
        Approximation
            Given all answers; its bound is on the log evidence of the new ones.
        """
        batch = Batch.of(problem.space, problem.rows, problem.likelihood, before)
        return self._ascend(batch, before, float(problem.counts.sum()))

    def _ascend(self, batch, weights, total):
        """Steps that see all answers, until the wanted one is short."""
        look, history = batch.look(weights), []
        path, converged, n_iter = Path(batch, len(weights.shift)), False, 0
        while True:
            n_iter += 1
            history.append(look.bound)
            residual = look.residual(weights, look.wanted)
            converged = residual <= self.tol
            if converged or n_iter >= self.max_iter:
                break
            ahead = path.forward(weights, look)
            if ahead is None:
                converged = residual <= max(self.tol, _ROUGH)
                break
            weights, look = ahead
        at = look.at
        if converged:  # of sites, and so of a precision that is surely no less than the prior's
            weights, at = look.wanted, moments(look.wanted)
        run = n_iter, residual, converged, history
        return _found(weights, at, look.bound, total, *run, look.sites)

    def _begun(self, problem):
        """Where to start from: the end on a part of the answers, if they are many."""
        observations, m = problem.observations, len(problem.space.Z)
        if len(observations.positions) < 4 * _BEGIN:
            return _nothing(m)
        part = _spread(observations, _BEGIN)
        space = InducedSpace(problem.space.kernel, part.items, part.rows.margins, problem.space.Z)
        found = self.coarser().run(Problem(space, part, problem.likelihood))
        return _started(found.state, problem.space, float(problem.counts.sum()))

    def _in_batches(self, problem, weights, total):
        """Stochastic steps of falling length (Hoffman et al. 2013, eq. 26)."""
        rng, history, passes = np.random.default_rng(0), [], []
        converged, residual, t = False, np.inf, 0
        for n_iter in range(1, self.max_iter + 1):
            bounds = []
            for batch in _batches(problem, self.batch_size, rng):
                t += 1
                share = total / float(batch.counts.sum())
                look = batch.look(weights)
                bounds.append(share * look.fit - look.at.divergence)
                length = min((t + self.delay) ** -self.forgetting_rate, 1.0)
                weights = weights.towards(look.wanted.scaled(share), length)
            history += bounds
            passes.append((np.mean(bounds), np.std(bounds) / np.sqrt(len(bounds))))
            if n_iter > 1:
                rise, error = passes[-1][0] - passes[-2][0], passes[-1][1]
                residual = float(max(rise, 0.0) / max(error, 1e-300))
                converged = rise < 2.0 * error
                if converged:
                    break
        at = moments(weights)
        bound = fit_of(_batches(problem, self.batch_size, rng), at) - at.divergence
        return _found(weights, at, bound, total, n_iter, residual, converged, history)

    def evidence_gradient(self, problem: Problem, approximation: Approximation) -> EvidenceGradient:
        """Derivatives of the bound, at its maximum over q."""
        batch = Batch.of(problem.space, problem.rows, problem.likelihood)
        seen = batch.seen(batch.space.condition(approximation.conditioned))
        expected = batch.likelihood.expected(*seen, batch.answers)
        slopes = batch.likelihood.expected_theta_gradient(*seen, batch.answers)
        return EvidenceGradient(
            batch.pull(expected, approximation.conditioned), slopes @ batch.counts
        )


def _spread(observations, size):
    """So many of the answers, evenly spread."""
    n = len(observations.positions)
    if n <= size:
        return observations
    return observations.part(np.linspace(0, n - 1, size).astype(np.intp))


def _batches(problem, size, rng) -> Iterator[Batch]:
    """All rows once, in random order."""
    space, rows = problem.space, problem.rows
    order = rng.permutation(len(rows))
    for k in range(0, len(order), size):
        some = rows.take(np.sort(order[k : k + size]))
        used, position = np.unique(np.concatenate([some.first, some.second]), return_inverse=True)
        first, second = np.split(position.reshape(-1), 2)
        part = Rows(len(used), first, second, *[getattr(some, name) for name in _REST])
        there = InducedSpace(space.kernel, space.items[used], part.margins, space.Z)
        yield Batch.of(there, part, problem.likelihood)


_REST = ("kind", "lead", "counts", "answer", "places", "basis")


def _nothing(m):
    return Weights(np.zeros((m, m)), np.zeros(m))


def _started(start, space, total):
    """q of a state; None if there is none.

    Of the same answers by their sites, which hardly depend on the hyperparameters; of others as if
    they were of this total weight.
    """
    if start is None or start["shift"].shape != (len(space.Z),):
        return None
    before = float(start["total"][0])
    if before == total and start.get("pull", np.zeros(0)).shape == (space.n_margins,):
        return space.told(start["precision"], start["pull"])
    return Weights(start["gain"], start["shift"]).scaled(total / before)


def _found(weights, at, bound, total, n_iter, residual, converged, history, sites=None):
    state = {"gain": weights.gain, "shift": weights.shift, "total": np.array([total])}
    state |= sites or {}
    sites = Sites(weights.shift, weights.gain, bound)
    course = Course(np.array(history))
    return Approximation(sites, at, state, n_iter, residual, converged, course)
