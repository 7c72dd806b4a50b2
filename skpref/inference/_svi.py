"""Sparse variational inference with natural gradients (Hensman et al. 2013, 2015)."""

from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._conditioning import Sites
from skpref._inducing import InducedSpace, Weights, moments
from skpref._observations import Observations
from skpref._parameters import check_choice, check_number
from skpref._random import RandomLike, seed_of
from skpref.inference._base import Approximation, Engine, EvidenceGradient, Problem, State
from skpref.inference._ekf import Linearised, check_linear
from skpref.inference._minibatches import Schedule, drift, nothing
from skpref.inference._natural import Batch, ascend
from skpref.inference._output_scale import (
    Gamma,
    ascend_with_scale,
    check_scale,
    rescaled,
    with_scale,
)
from skpref.inference._placing import place
from skpref.likelihoods import Likelihood

# Answers that a run on many begins with, before it sees all.
_BEGIN = 10_000
# Looseness of a run within the search for hyperparameters, at most the larger of many answers.
_SEARCH_TOL = (3e-3, 1e-2)
# Precision of a site that tells nothing, for its logarithm.
_LEAST = 1e-12


class Course(NamedTuple):
    """How the engine went.

    Attributes
    ----------
    bound_history : ndarray of shape (n_iter,)
        The bound on the log evidence after each iteration; of a minibatch its estimate.
    smoothed_bound : ndarray of shape (n_passes,)
        With minibatches, the mean of these estimates over each pass; else empty.
    inverse_scale : (float, float) or None
        With ``scale_prior``, shape and rate of q(λ), the kernel being divided by λ.
    """

    bound_history: NDArray[np.float64]
    smoothed_bound: NDArray[np.float64]
    inverse_scale: Gamma | None = None

    @property
    def output_scale(self) -> float:
        """What the kernel was multiplied by: 1/E[λ], or 1."""
        return 1.0 if self.inverse_scale is None else 1.0 / self.inverse_scale.mean


class SVI(Engine):
    """Options of sparse variational inference, for many answers and many items.

    The utility is carried by inducing points, q(u) = N(m, S) of their utilities maximises a lower
    bound of the evidence, Σ E_q[log p(answer)] − KL(q ‖ prior) [1]_ [2]_, by natural-gradient steps
    [3]_. Whatever the number of answers, a step costs their number times that of the points, plus
    the number of items times that of the points squared.

    Parameters
    ----------
    n_inducing : int, default=200
        Number of inducing points, at most: centres of clusters of the items. Items that a kernel
        tells by name alone (`skpref.kernels.Identity`) are all points of their own.
    inducing_points : array-like of shape (m, n_features), default=None
        The points themselves.
    batch_size : int, default=None
        None: every step sees all answers, is of length 1, or shorter where the bound would fall,
        and the fit takes a few. A number: steps see so many answers, drawn without replacement,
        and step t has length ``(t + delay) ** -forgetting_rate``; q is the mean over the last pass,
        and one step from there that all answers ask for. Memory then does not grow with the number
        of items.
    max_iter : int, default=100
        Passes over the answers at most.
    tol : float, default=1e-4
        Stop once the wanted step is shorter than this many deviations of q; the bound then lacks
        about half its square. With batches: once the mean bound of a pass rises by less than this,
        in nats an answer and pass, over two passes.
    forgetting_rate : float, default=0.7
        In (0.5, 1].
    delay : float, default=1.0
        At least 0.
    scale_prior : (float, float), default=None
        Shape and rate of a gamma prior on λ, the kernel being divided by λ [2]_; both above 0. Its
        mean, λ = shape / rate, is what is expected before any answer. q(λ) is found with q(u), and
        ``kernel_`` is multiplied by 1/E[λ]. Only the ratio of this scale to the noise is told by
        answers, so hold the noise. None: the kernel is as it is.
    local : {"expected", "ekf"}, default="expected"
        What a step wants of an answer: that the expected log-probability be largest, or "ekf", for
        comparison, the linearised update of [2]_, which promises no bound, sees no variances, and
        takes neither ties nor an order effect. Hyperparameters are learned by "expected".

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
        scale_prior: tuple[float, float] | None = None,
        local: str = "expected",
    ):
        self.n_inducing = n_inducing
        self.inducing_points = inducing_points
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.forgetting_rate = forgetting_rate
        self.delay = delay
        self.scale_prior = scale_prior
        self.local = local

    def check(self) -> None:
        """Raise unless the options are sound."""
        check_number("n_inducing", self.n_inducing, low=1, integer=True)
        if self.batch_size is not None:
            check_number("batch_size", self.batch_size, low=1, integer=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number("tol of the engine", self.tol, low=0.0, open_low=True)
        check_number("forgetting_rate", self.forgetting_rate, low=0.5, high=1.0, open_low=True)
        check_number("delay", self.delay, low=0.0)
        check_choice("local", self.local, ("expected", "ekf"))
        if self.scale_prior is not None:
            _check_prior(self.scale_prior)
        if self.inducing_points is not None:
            shape = np.shape(self.inducing_points)
            if len(shape) != 2 or not shape[0]:
                raise ValueError(
                    f"inducing_points must have shape (m, n_features) with m > 0, got {shape}."
                )

    def check_observations(self, observations: Observations, likelihood: Likelihood) -> None:
        """Raise unless the way of ``local`` takes these answers."""
        if self.local == "ekf":
            check_linear(observations, likelihood)

    # -- what a fit asks of it before it runs ----------------------------------------------

    def placed(self, observations: Observations, kernel: Kernel, rng: RandomLike = None) -> Self:
        """This engine with inducing points for these items, see `Engine.placed`."""
        if self.scale_prior is not None:
            check_scale(kernel)
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
        return type(self)(**{**self.get_params(deep=False), "inducing_points": Z})

    def coarser(self, times: float = 1.0) -> Self:
        """This engine as the search for hyperparameters uses it.

        Exact to 1e-5 nats, and to 1e-4 with many answers.
        """
        options = self.get_params(deep=False)
        tol = max(self.tol, min(_SEARCH_TOL[0] * times, _SEARCH_TOL[1]))
        return type(self)(**{**options, "tol": tol, "batch_size": None, "local": "expected"})

    def extrapolated(self, states: list[State], weights: NDArray[np.float64]) -> State:
        """Sites of log-linear precision and linear standardised pull, see `Engine.extrapolated`."""
        if any("pull" not in state for state in states):
            return states[0]
        lifted = np.array([np.maximum(state["precision"], _LEAST) for state in states])
        pull = np.array([state["pull"] for state in states]) / np.sqrt(lifted)
        precision = np.exp(np.clip(weights @ np.log(lifted), -80.0, 80.0))
        return states[0] | {"precision": precision, "pull": (weights @ pull) * np.sqrt(precision)}

    def settled(self, kernel: Kernel, approximation: Approximation) -> tuple[Engine, Kernel]:
        """The kernel with the output scale found, and a prior to match; see `Engine.settled`."""
        if self.scale_prior is None:
            return self, kernel
        (shape, rate), scale = self.scale_prior, _scale_of(approximation.state)
        options = {**self.get_params(deep=False), "scale_prior": (shape, rate / scale)}
        return type(self)(**options), with_scale(kernel, scale)

    def side(self, observations: Observations) -> int:
        """Number of inducing points."""
        n = self.n_inducing if self.inducing_points is None else np.shape(self.inducing_points)[0]
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
        total = float(rows.counts.sum())
        weights, scale = _started(start, space, total), _scale_of(start)
        if self.batch_size is not None and self.batch_size < len(rows):
            return self._in_batches(problem, weights, scale)
        if weights is None:
            n = len(problem.observations.positions)
            few = n < 4 * _BEGIN
            weights, scale = (nothing(len(space.Z)), 1.0) if few else self._begun(problem, _BEGIN)
        batch = self._looks.of(space, rows, problem.likelihood)
        if self.scale_prior is None:
            return _found(ascend(batch, weights, self.tol, self.max_iter, problem.watch), total)
        prior = Gamma(*self.scale_prior)
        run = self.tol, self.max_iter, problem.watch
        end, inverse_scale = ascend_with_scale(batch, weights, prior, scale, *run)
        return _found(end, total, inverse_scale)

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
        batch = self._looks.of(problem.space, problem.rows, problem.likelihood, before)
        end = ascend(batch, before, self.tol, self.max_iter, problem.watch)
        return _found(end, float(problem.counts.sum()))

    @property
    def _looks(self):
        return Linearised if self.local == "ekf" else Batch

    def _begun(self, problem, n):
        """Where to start from: the end on so many of the answers."""
        observations = problem.observations
        of_all = np.linspace(0, len(observations.positions) - 1, n).astype(np.intp)
        part, kernel, Z = observations.part(of_all), problem.space.kernel, problem.space.Z
        space = InducedSpace(kernel, part.items, part.rows.margins, Z, problem.space)
        found = self.coarser().run(Problem(space, part, problem.likelihood))
        total = float(problem.counts.sum())
        return _started(found.state, problem.space, total), _scale_of(found.state)

    def _in_batches(self, problem, weights, scale):
        """Stochastic steps of falling length."""
        done, size = 0, self.batch_size
        if weights is None:
            n = min(len(problem.observations.positions) // 4, _BEGIN)
            weights, scale = self._begun(problem, n)
            done = n // size
        options = size, self.forgetting_rate, self.delay + done
        schedule = Schedule(*options, self.tol, self.max_iter)
        prior = None if self.scale_prior is None else Gamma(*self.scale_prior)
        end = drift(problem, self._looks, weights, schedule, prior, scale)
        course = _course(end.history, end.inverse_scale, end.smoothed)
        total = float(problem.counts.sum())
        state = _state(end.weights, total, course)
        sites = Sites(end.weights.shift, end.weights.gain, end.bound)
        run = end.n_iter, end.residual, end.converged, course, end.stopped
        return Approximation(sites, moments(end.weights), state, *run)

    def evidence_gradient(self, problem: Problem, approximation: Approximation) -> EvidenceGradient:
        """Derivatives of the bound, at its maximum over q."""
        if self.local == "ekf":
            raise ValueError(
                "SVI(local='ekf') does not maximise the bound, whose derivatives are therefore not "
                "known. Use SVI(local='expected')."
            )
        batch = Batch.of(problem.space, problem.rows, problem.likelihood)
        scale = _scale_of(approximation.state)
        if scale != 1.0:
            batch = batch.scaled(with_scale(problem.space.kernel, scale), scale)
        seen = batch.seen(batch.space.condition(approximation.conditioned))
        expected = batch.likelihood.expected(*seen, batch.answers)
        slopes = batch.likelihood.expected_theta_gradient(*seen, batch.answers)
        pull = batch.pull(expected, approximation.conditioned)
        return EvidenceGradient(pull.under(scale), slopes @ batch.counts)


def _check_prior(prior):
    shape = np.shape(prior)
    if shape != (2,):
        raise ValueError(
            f"scale_prior must be None or (shape, rate) of a gamma distribution, got {prior!r}."
        )
    for name, value in zip(("shape", "rate"), prior, strict=True):
        check_number(f"{name} of scale_prior", value, low=0.0, open_low=True)


def _scale_of(state):
    return 1.0 if state is None else float(state["scale"][0])


def _started(start, space, total):
    """q of a state; None if there is none.

    Of the same answers by their sites, which hardly depend on the hyperparameters; of others as if
    they were of this total weight.
    """
    if start is None or start["shift"].shape != (len(space.Z),):
        return None
    before = float(start["total"][0])
    if before == total and start.get("pull", np.zeros(0)).shape == (space.n_margins,):
        return rescaled(space.told(start["precision"], start["pull"]), _scale_of(start))
    return Weights(start["gain"], start["shift"]).scaled(total / before)


def _found(end, total, inverse_scale=None):
    """What a way uphill that saw all answers ended with."""
    weights, course = end.weights, _course(end.history, inverse_scale)
    state = _state(weights, total, course) | end.look.sites
    sites = Sites(weights.shift, weights.gain, end.bound)
    run = end.n_iter, end.residual, end.converged, course, end.stopped
    return Approximation(sites, end.at, state, *run)


def _course(history, inverse_scale, smoothed=()):
    return Course(np.array(history), np.array(smoothed), inverse_scale)


def _state(weights, total, course):
    told = {"total": np.array([total]), "scale": np.array([course.output_scale])}
    return {"gain": weights.gain, "shift": weights.shift, **told}
