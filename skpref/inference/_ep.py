"""Expectation propagation on the margins, all sites in parallel (GPML section 3.6)."""

from collections import deque
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skpref._utils import check_number
from skpref.gp import ItemSpace, Sites
from skpref.inference._base import (
    Approximation,
    Engine,
    EvidenceGradient,
    Problem,
    State,
    started,
)
from skpref.inference._laplace import MANY, starting_sites
from skpref.inference._rounding import WORST, margin_errors

_MEMORY = 5
# Sites enter the extrapolation as log(precision + this × prior precision).
_FLOOR = 1e-8
# Precisions below this count as none where sites are extrapolated.
_LEAST = 1e-12
# A residual this many times the best one so far is a step gone wrong.
_GROWTH = 30.0
# Sweeps that did not halve the residual: then rounding is asked whether it allows any more.
_PATIENCE = 10
# Sweeps from carried sites after which the residual must be below this for more to be made.
_TRIED, _FAR = 25, 1e-2
# Means are brought this much nearer than variances before these are found again, by steps that
# each shorten the way to that.
_APART, _NEARER = 0.1, 0.7
_EPS = np.finfo(np.float64).eps


class EP(Engine):
    """Options of expectation propagation.

    The probit factor of every duel is replaced by a Gaussian site that reproduces the first two
    moments of the factor times its cavity. Sites are updated in parallel, one factorisation a
    sweep, which with many duels serves until the means agree; Anderson's extrapolation over the
    last sweeps shortens the way to the fixed point, and a sweep that leads away from it is taken
    back and damped.

    Parameters
    ----------
    max_iter : int, default=500
        Sweeps at most.
    tol : float, default=5e-9
        Stop once no tilted mean differs from its marginal by more than ``tol`` cavity standard
        deviations, and no tilted variance by more than a share ``tol``, times the count of the
        duel; or once these differences no longer shrink and are within what rounding makes of them.
    damping : float, default=0.0
        Share of the old site that is kept from one sweep to the next, in [0, 1).

    Notes
    -----
    The fixed point is the same as that of EP on the noisy margins v > 0. Choices and rankings,
    whose inequalities share noise, have their sites on these.

    References
    ----------
    .. [1] Minka, "Expectation propagation for approximate Bayesian inference", UAI 2001.
    .. [2] Rasmussen and Williams, "Gaussian Processes for Machine Learning", section 3.6.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import EP
    >>> model = PairwisePreferenceRegressor(inference=EP(damping=0.2))
    >>> model.set_params(inference__tol=1e-6).inference.tol
    1e-06
    """

    has_evidence: ClassVar[bool] = True
    takes_joint: ClassVar[bool] = True

    def __init__(self, max_iter: int = 500, tol: float = 5e-9, damping: float = 0.0):
        self.max_iter = max_iter
        self.tol = tol
        self.damping = damping

    def check(self) -> None:
        """Raise unless the options are sound."""
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number("tol of the engine", self.tol, low=0.0, open_low=True)
        check_number("damping", self.damping, low=0.0, high=1.0, open_high=True)

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        near: Approximation | None = None,
    ) -> Approximation:
        """Iterate to the fixed point, see `Engine.run`; few sweeps if ``start`` leads astray."""
        self.check()
        n = len(problem.counts)
        tau, nu = started(start, "precision", n), started(start, "shift", n)
        carried = tau is not None and nu is not None
        if tau is None or nu is None:
            many = isinstance(problem.space, ItemSpace) or np.any(problem.counts > 1.0)
            # With many duels an item the way from zero may diverge, and where joint answers
            # contradict each other it may be trapped far from the fixed point.
            near_mode = many or problem.rows.joint
            tau, nu = starting_sites(problem) if near_mode else np.zeros((2, n))
        path = _Path(problem, 1.0 - self.damping)
        best = sweep = _sweep(problem, tau, nu)
        mark, converged = (np.inf, 0), False
        for n_iter in range(1, self.max_iter + 1):
            if n_iter > 1:
                sweep = _sweep(problem, tau, nu)
            if sweep.residual < best.residual:
                best = sweep
            if best.residual < 0.5 * mark[0]:
                mark = (best.residual, n_iter)
            converged = best.residual < self.tol
            if not converged and n_iter - mark[1] >= _PATIENCE:
                converged = best.residual <= min(best.rounding(problem), WORST)
            # Sites of other hyperparameters or answers may lead astray: who gave them begins anew.
            if converged or (carried and n_iter >= _TRIED and best.residual > _FAR):
                break
            sweep.settle_repeats(problem)
            if not sweep.residual <= _GROWTH * best.residual:
                tau, nu = path.back(best)
            else:
                tau, nu = path.forward(sweep)
        sites = Sites(best.shift, best.precision, best.log_evidence(problem))
        state = {"precision": best.tau, "shift": best.nu}
        return Approximation(sites, best.conditioned, state, n_iter, best.residual, converged)

    def extrapolated(self, states: list[State], weights: NDArray[np.float64]) -> State:
        """By log-linear precision and linear standardised shift, see `Engine.extrapolated`."""
        if any(np.isnan(state["precision"]).any() for state in states):
            return states[0]
        lifted = np.array([np.maximum(state["precision"], _LEAST) for state in states])
        shift = np.array([state["shift"] for state in states]) / np.sqrt(lifted)
        precision = np.exp(np.clip(weights @ np.log(lifted), -80.0, 80.0))
        return {"precision": precision, "shift": (weights @ shift) * np.sqrt(precision)}

    def evidence_gradient(self, problem: Problem, approximation: Approximation) -> EvidenceGradient:
        """Derivatives of the evidence at the fixed point (GPML 5.27; Seeger 2005)."""
        sites, conditioned = approximation.sites, approximation.conditioned
        state = approximation.state
        sweep = _sweep(problem, state["precision"], state["shift"], conditioned=conditioned)
        cavity = sweep.cavity_mean, sweep.cavity_var
        slopes = problem.likelihood.tilted_theta_gradient(*cavity, problem.answers, problem.power)
        alpha = problem.space.incidence @ conditioned.dual
        gradient = np.multiply.outer(alpha, alpha)
        if problem.by_kernel:
            gradient -= problem.space.gram(conditioned, sites.precision)  # ½ (α αᵀ − D Dᵀ)
            gradient *= 0.5
        by_likelihood = slopes @ problem.copies
        if problem.rows.joint:
            by_noise = problem.space.noise_slope(conditioned, sites.precision)
            by_likelihood += by_noise * problem.likelihood.item_noise_gradient()
        return EvidenceGradient(gradient, by_likelihood)


class _Sweep:
    """One sweep of parallel EP at given sites.

    1. Pool the sites on their margins and condition the prior on them.
    2. Take each site out of its marginal: the cavity (GPML 3.56).
    3. Moments of cavity times factor (GPML 3.58, for a probit), and the site that would reproduce
       them (GPML 3.59).
    4. How far the present sites are from that: the residual.
    """

    def __init__(self, problem, tau, nu, conditioned):
        self.tau, self.nu = tau, nu
        copies = problem.copies
        self.precision = problem.pool(tau, problem.shared)
        self.shift = problem.pool(problem.sign * nu, problem.shared)
        if conditioned is None:
            conditioned = problem.space.condition(self.precision, self.shift)
        self.conditioned = conditioned
        variance = conditioned.variance[problem.index]
        mean = problem.oriented(conditioned.mean)
        share = 1.0 - tau * variance
        proper = share > 1e-12  # a cavity of negative precision leaves its site as it is
        self.share = np.where(proper, share, 1.0)
        self.cavity_var = variance / self.share  # GPML (3.56)
        self.pull = nu - tau * mean
        self.cavity_mean = mean - self.cavity_var * self.pull
        self.moments = problem.likelihood.tilted(
            self.cavity_mean, self.cavity_var, problem.answers, problem.power
        )
        _, gradient, curvature, shrink = self.moments
        wanted_tau = curvature / shrink  # GPML (3.59)
        wanted_nu = (gradient + self.cavity_mean * curvature) / shrink
        self.wanted_tau = np.where(proper, wanted_tau, tau)
        self.wanted_nu = np.where(proper, wanted_nu, nu)
        off_mean = np.abs(gradient - self.pull) * np.sqrt(self.cavity_var)
        off_var = np.abs(1.0 - shrink / self.share)
        residual = float(np.max(copies * np.maximum(off_mean, off_var)))
        self.residual = residual if proper.all() or residual > 1.0 else 1.0
        if not np.isfinite(self.residual):
            self.residual = np.inf
        self.off_mean, self.off_variance = np.max(copies * off_mean), np.max(copies * off_var)

    def centred(self, problem):
        """Sites of the same precision that also reproduce the means.

        With the precisions the marginals' variances stay, and with these the factorisation.
        """
        sweep = self
        while sweep.residual < 1.0 and sweep.off_mean > _APART * sweep.off_variance:
            _, gradient, _, shrink = sweep.moments
            # Newton's step towards the pull that a cavity of this variance has at this marginal's
            # mean: GPML (3.59) at the present precision.
            pull = sweep.pull + (gradient - sweep.pull) / shrink
            nu = pull + sweep.tau * problem.oriented(sweep.conditioned.mean)
            shift = problem.pool(problem.sign * nu, problem.shared)
            moved = problem.space.shifted(sweep.conditioned, sweep.precision, shift)
            moved = _Sweep(problem, sweep.tau, nu, moved)
            if not moved.off_mean < _NEARER * sweep.off_mean:
                break
            sweep = moved
        return sweep

    def rounding(self, problem):
        """Residual to expect of exact sites, from the errors of the margins' two moments."""
        errors = margin_errors(problem.space, self.conditioned.dual)
        of_mean, of_var = errors.mean[problem.index], errors.variance[problem.index]
        mean = problem.oriented(self.conditioned.mean)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            of_share = self.tau * of_var / self.share
            of_pull = self.tau * of_mean + _EPS * (np.abs(self.nu) + np.abs(self.tau * mean))
            # The cavity follows both: its variance by of_var / share², its mean by the rest;
            # curvature times cavity variance is at most 1.
            of_cavity = of_mean + of_var / self.share**2 * np.abs(self.pull)
            off_mean = 2.0 * of_pull + self.moments.curvature * of_cavity
            off_mean *= np.sqrt(self.cavity_var)
            floor = problem.copies * np.maximum(off_mean, 2.0 * of_share)
        return float(np.max(floor))

    def settle_repeats(self, problem):
        """Let the sites of equal duels ask for their common fixed point."""
        # Of joint answers there is one site a margin: the space counts them.
        counts, variance = problem.shared, self.cavity_var * self.share
        mean = self.cavity_mean + self.cavity_var * self.pull
        share = 1.0 - counts * self.tau * variance
        repeated = (counts > 1.0) & (share > 1e-12) & (variance > 0.0)
        if not repeated.any():
            return
        every = np.flatnonzero(repeated)
        without = variance[every] / share[every]
        centre = mean[every] - without * counts[every] * self.pull[every]
        near = self.cavity_mean[every], self.cavity_var[every]
        answers = problem.answers.take(every)
        site = problem.likelihood.repeated_site(centre, without, counts[every], answers, near)
        solved = np.isfinite(site.precision) & np.isfinite(site.shift)
        self.wanted_tau[every[solved]] = site.precision[solved]
        self.wanted_nu[every[solved]] = site.shift[solved]

    def log_evidence(self, problem):
        """log Z_EP (GPML 3.65), arranged so that no large terms cancel."""
        local = self.moments.log_normaliser - 0.5 * np.log(self.share)
        local += 0.5 * self.cavity_var * self.pull**2
        conditioned = self.conditioned
        joint = conditioned.dual @ conditioned.mean + conditioned.log_det
        return float(problem.copies @ local - 0.5 * joint)


def _sweep(problem, tau, nu, conditioned=None):
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if conditioned is not None:
            return _Sweep(problem, tau, nu, conditioned)
        sweep = _Sweep(problem, tau, nu, None)
        return sweep.centred(problem) if len(problem.counts) >= MANY else sweep


class _Path:
    """The way of the sites: Anderson's extrapolation in (log τ, ν/√τ), with a way back.

    In these coordinates sites that differ by orders of magnitude weigh alike and precisions
    stay positive.
    """

    def __init__(self, problem, step):
        prior = np.maximum(problem.space.prior_variance[problem.index], 1e-300)
        self._floor = _FLOOR / prior
        self._step = step
        self._points, self._moves = deque(maxlen=_MEMORY + 1), deque(maxlen=_MEMORY + 1)

    def forward(self, sweep):
        point = self._encode(sweep.tau, sweep.nu)
        move = self._encode(sweep.wanted_tau, sweep.wanted_nu) - point
        self._points.append(point)
        self._moves.append(move)
        target = point + self._step * move
        if len(self._points) > 1:
            points, moves = np.array(self._points), np.array(self._moves)
            d_points, d_moves = np.diff(points, axis=0), np.diff(moves, axis=0)
            # Walker and Ni, "Anderson acceleration for fixed-point iterations", 2011, eq. (1.1)
            mix = np.linalg.lstsq(d_moves.T, move, rcond=1e-8)[0]
            target -= mix @ (d_points + self._step * d_moves)
        return self._decode(target)

    def back(self, best):
        self._step = max(0.5 * self._step, 0.02)
        self._points.clear()
        self._moves.clear()
        point = self._encode(best.tau, best.nu)
        move = self._encode(best.wanted_tau, best.wanted_nu) - point
        return self._decode(point + self._step * move)

    def _encode(self, tau, nu):
        lifted = tau + self._floor
        return np.concatenate([np.log(lifted), nu / np.sqrt(lifted)])

    def _decode(self, point):
        log_tau, scaled = np.split(point, 2)
        lifted = np.exp(np.minimum(log_tau, 80.0))
        return np.maximum(lifted - self._floor, 0.0), scaled * np.sqrt(lifted)
