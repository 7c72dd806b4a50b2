"""Laplace's approximation: Newton's method on the log posterior of the margins."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._utils import TOLERANCE, check_number
from skpref.data import Comparisons
from skpref.gp import WORST, PriorRule, Sites
from skpref.inference._base import (
    Approximation,
    Capabilities,
    Engine,
    EvidenceGradient,
    Problem,
    State,
    rule_of_items,
    warm_start_array,
)
from skpref.likelihoods import Derivatives, Likelihood

_EPS = np.finfo(np.float64).eps


class Mode(NamedTuple):
    """Where Newton's method ended.

    Attributes
    ----------
    margin : ndarray of shape (n_margins,)
    at : Derivatives
        Of the log-probability of the answers there.
    value : float
        Log posterior, unnormalised.
    n_iter : int
    promise : float
        By how much the last full step was to raise it.
    converged : bool
    """

    margin: NDArray[np.float64]
    at: Derivatives
    value: float
    n_iter: int
    promise: float
    converged: bool


class Laplace(Engine):
    """Options of Laplace's approximation.

    The posterior is replaced by a Gaussian at its mode, found by Newton's method with
    backtracking (GPML section 3.4; Chu and Ghahramani, "Preference learning with Gaussian
    processes", ICML 2005).

    Parameters
    ----------
    max_iter : int, default=100
        Newton iterations at most.
    tol : float, default=1e-10
        Stop once a full step promises to raise the log posterior by less than this (nats), or by
        less than rounding lets it be known and no less than the step before.
    items : {"joint", "independent"}, default="joint"
        "independent": of items that change through time what is known of one is taken as
        independent of what is known of another, so that an iteration is linear in the answers; see
        `skpref.gp.IndependentItems`. Up to some 350 duels, which take all items jointly a moment,
        estimators fit these jointly all the same. Later answers go in by `partial_fit`.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import Laplace
    >>> model = PairwisePreferenceRegressor(inference=Laplace(max_iter=50))
    """

    capabilities: ClassVar[Capabilities] = Capabilities(has_evidence=True)

    def __init__(self, max_iter: int = 100, tol: float = 1e-10, items: str = "joint"):
        self.max_iter = max_iter
        self.tol = tol
        self.items = items

    @property
    def prior_rule(self) -> PriorRule:
        """Exact priors, or chains through time; see `Engine.prior_rule`."""
        return rule_of_items(self.items)

    def check(
        self, comparisons: Comparisons | None = None, likelihood: Likelihood | None = None
    ) -> None:
        """Raise unless the options are sound."""
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number("tol of the engine", self.tol, low=0.0, open_low=True)
        rule_of_items(self.items)

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        gaussian: Approximation | None = None,
    ) -> Approximation:
        """Find the mode, see `Engine.run`."""
        self.check()
        mode = self.mode(problem, start)
        z, at = mode.margin, mode.at
        precision = problem.pool(at.curvature)
        shift = precision * z + problem.pool(problem.sign * at.gradient)
        conditioned = problem.prior.condition(precision, shift)
        evidence = mode.value - 0.5 * conditioned.log_det  # GPML (3.32)
        sites = Sites(shift, precision, float(evidence))
        state = {"pull": at.gradient}
        return Approximation(sites, conditioned, state, mode.n_iter, mode.promise, mode.converged)

    def row_sites(
        self, problem: Problem, approximation: Approximation
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sites that the curvature at the mode makes, see `Engine.row_sites`."""
        margin = problem.orient_margins(approximation.conditioned.mean)
        at = problem.likelihood.log_prob(margin, problem.answers)
        share = problem.counts / problem.copies  # of a count below 1, the power of its factor
        return share * at.curvature, share * (at.gradient + at.curvature * margin)

    def mode(self, problem: Problem, start: State | None = None) -> Mode:
        """Return the mode, without the evidence and the posterior there."""
        prior = problem.prior
        z, w = np.zeros(prior.n_margins), np.zeros(prior.n_margins)
        pull = warm_start_array(start, "pull", len(problem.counts))
        if pull is not None:
            w = problem.pool(problem.sign * pull)
            z = prior.times(w)
        at, value = _log_posterior(problem, z, w)
        if pull is not None:
            origin, origin_value = _log_posterior(problem, np.zeros_like(z), np.zeros_like(w))
            if not value >= origin_value:
                z, w, at, value = np.zeros_like(z), np.zeros_like(w), origin, origin_value
        converged, last = False, np.inf
        for n_iter in range(1, self.max_iter + 1):  # noqa: B007 (used below the loop)
            precision = problem.pool(at.curvature)
            slope = problem.pool(problem.sign * at.gradient)
            mean, dual = prior.centre(precision, precision * z + slope)  # GPML Alg. 3.1
            dz, dw = mean - z, dual - w
            promise = 0.5 * float(slope @ dz - w @ dz)  # Newton decrement
            step, slack = 1.0, _EPS * (1.0 + abs(value))
            while True:
                at, trial = _log_posterior(problem, z + step * dz, w + step * dw)
                if trial >= value - slack or step < 1e-10:
                    break
                if step == 1.0:  # only now, as it costs a product of matrices
                    slack = max(slack, min(_objective_rounding_error(problem, dual, at), WORST))
                    if trial >= value - slack:
                        break
                step *= 0.5
            z, w, value = z + step * dz, w + step * dw, trial
            if step == 1.0 and self._has_converged(problem, dual, at, abs(promise), last):
                converged = True
                break
            last = abs(promise)
        return Mode(z, at, value, n_iter, abs(promise), converged)

    def _has_converged(self, problem, dual, mode, promise, last):
        """Tell whether the promised rise is below the tolerance, or below rounding and no longer
        falling."""
        if promise < self.tol:
            return True
        # Newton's method squares its error until rounding is all that is left; the decrement is
        # half the squared distance from the mode in posterior standard deviations.
        if not 0.5 * last <= promise <= 0.5 * WORST**2:
            return False
        return promise <= _objective_rounding_error(problem, dual, mode)

    def evidence_gradient(self, problem: Problem, approximation: Approximation) -> EvidenceGradient:
        """Return the derivatives of the evidence, the mode's own movement included
        (GPML Alg. 5.1)."""
        prior, sign = problem.prior, problem.sign
        conditioned, precision = approximation.conditioned, approximation.sites.precision
        margin = problem.orient_margins(conditioned.mean)
        at = problem.likelihood.log_prob(margin, problem.answers)
        value, gradient, curvature = problem.likelihood.theta_derivatives(margin, problem.answers)
        push = 0.5 * conditioned.variance * problem.pool(sign * at.third)
        # Σ push and S⁻¹ Σ push, Σ the posterior's covariance: no difference of large terms.
        response = prior.condition_on_shift(conditioned, precision, push)
        by_kernel = prior.pull_back(conditioned, precision, response.dual)
        moved = response.mean
        by_theta = [
            problem.counts @ v
            - 0.5 * (conditioned.variance @ problem.pool(c))
            + moved @ problem.pool(sign * g)
            for v, g, c in zip(value, gradient, curvature, strict=True)
        ]
        return EvidenceGradient(by_kernel, np.array(by_theta))


def _log_posterior(problem, z, w):
    """Return the answers' derivatives at margins z, and the log posterior there; w is K⁻¹ z."""
    at = problem.likelihood.log_prob(problem.orient_margins(z), problem.answers)
    return at, float(problem.counts @ at.value - 0.5 * (w @ z))


def _objective_rounding_error(problem, dual, mode):
    """Return the rounding error of the log posterior at margins with this dual vector."""
    terms = problem.counts @ np.abs(mode.value)
    return _EPS * float(terms) + problem.prior.energy_error(dual)


def starting_sites(problem: Problem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return precision and shift of every row at the mode: where EP may start.

    There the inequalities of a joint answer are taken for duels with noise of their own.
    """
    duels = problem.split_joint_answers() if problem.rows.joint else problem
    margin = duels.orient_margins(Laplace(tol=TOLERANCE).mode(duels).margin)
    at = problem.likelihood.log_prob(margin, duels.answers)
    share = problem.counts / problem.copies  # of a count below 1, the power of its one factor
    return share * at.curvature, share * (at.gradient + at.curvature * margin)
