"""Expectation propagation on the margins, all sites in parallel (GPML section 3.6)."""

from collections import deque
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array, check_number, recorded
from skpref.data import Comparisons
from skpref.gp import PriorRule, Sites
from skpref.inference._base import (
    WORST,
    Approximation,
    Capabilities,
    Engine,
    EvidenceGradient,
    Problem,
    State,
    rule_of_items,
    warm_start_array,
)
from skpref.inference._laplace import MANY, starting_sites
from skpref.likelihoods import Answers, Likelihood, TiltedMoments

_MEMORY = 5
# Sites enter the extrapolation as log(precision + this × prior precision).
_FLOOR = 1e-8
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
# A cavity with less than this share of the marginal's precision is improper.
_PROPER = 1e-12


@recorded
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
    items : {"joint", "independent"}, default="joint"
        "independent": of items that change through time what is known of one is taken as
        independent of what is known of another, so that a sweep is linear in the answers; see
        `skpref.gp.IndependentItems`.

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

    capabilities: ClassVar[Capabilities] = Capabilities(
        has_evidence=True,
        takes_joint=True,
        matches_moments=True,
        site_names=("precision", "shift"),
    )

    def __init__(
        self,
        max_iter: int = 500,
        tol: float = 5e-9,
        damping: float = 0.0,
        items: str = "joint",
    ):
        self.max_iter = max_iter
        self.tol = tol
        self.damping = damping
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
        check_number("damping", self.damping, low=0.0, high=1.0, open_high=True)

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        gaussian: Approximation | None = None,
    ) -> Approximation:
        """Iterate to the fixed point, see `Engine.run`; few sweeps if ``start`` leads astray."""
        self.check()
        n = len(problem.counts)
        tau, nu = (warm_start_array(start, name, n) for name in ("precision", "shift"))
        carried = tau is not None and nu is not None
        if tau is None or nu is None:
            many = problem.prior.starts_at_mode or np.any(problem.counts > 1.0)
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
            # Sites of other hyperparameters or answers may mislead; the caller then starts anew.
            if converged or (carried and n_iter >= _TRIED and best.residual > _FAR):
                break
            sweep.settle_repeats(problem)
            if not sweep.residual <= _GROWTH * best.residual:
                tau, nu = path.back(best)
            else:
                tau, nu = path.forward(sweep)
        sites = Sites(best.shift, best.precision, best.log_evidence(problem))
        state = {"precision": best.site_precision, "shift": best.site_shift}
        return Approximation(sites, best.conditioned, state, n_iter, best.residual, converged)

    def evidence_gradient(self, problem: Problem, approximation: Approximation) -> EvidenceGradient:
        """Derivatives of the evidence at the fixed point (GPML 5.27; Seeger 2005)."""
        sites, conditioned = approximation.sites, approximation.conditioned
        state = approximation.state
        marginals = problem.oriented(conditioned.mean), conditioned.variance[problem.index]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = _cavities(marginals, (state["precision"], state["shift"]))
        cavity = found.mean, found.variance
        slopes = problem.likelihood.tilted_theta_gradient(*cavity, problem.answers, problem.power)
        by_kernel = problem.prior.pull_back(conditioned, sites.precision)
        by_likelihood = slopes @ problem.copies
        if problem.rows.joint:
            by_noise = problem.prior.noise_slope(conditioned, sites.precision)
            by_likelihood += by_noise * problem.likelihood.item_noise_gradient()
        return EvidenceGradient(by_kernel, by_likelihood)


class SiteUpdate(NamedTuple):
    """Cavities, and the sites that reproduce the moments of cavity times factor.

    Attributes
    ----------
    cav_mean, cav_var : ndarray of shape (n,)
        Cavities, GPML (3.56), with the ``rest`` that the factors see.
    cav_share : ndarray of shape (n,)
        Share of the marginal's precision that its cavity has; 1 where the cavity is improper.
    proper : ndarray of bool of shape (n,)
        Where the cavity's precision is positive.
    site_slope : ndarray of shape (n,)
        Slope of the logarithm of the site before, at the marginal's mean.
    tilted : TiltedMoments
        Of cavity times factor, GPML (3.58).
    site_precision, site_shift : ndarray of shape (n,)
        Sites that give these moments, GPML (3.59); where a cavity is improper, the site before.
    own_cav_var : ndarray of shape (n,)
        Variance of the cavities without that ``rest``.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import DUEL
    >>> from skpref.inference import site_update
    >>> from skpref.likelihoods import Answers, Probit
    >>> won, none = Answers(np.array([DUEL]), np.array([1])), (np.zeros(1), np.zeros(1))
    >>> update = site_update((np.zeros(1), np.ones(1)), none, Probit(0.5), won)
    >>> update.cav_var, update.proper, bool(update.site_precision[0] > 0.0)
    (array([1.]), array([ True]), True)
    """

    cav_mean: Array
    cav_var: Array
    cav_share: Array
    proper: NDArray[np.bool_]
    site_slope: Array
    tilted: TiltedMoments
    site_precision: Array
    site_shift: Array
    own_cav_var: Array

    @property
    def log_gain(self) -> Array:
        """Each factor's part of log Z_EP (GPML 3.65), arranged so that no large terms cancel."""
        gain = self.tilted.log_normaliser - 0.5 * np.log(self.cav_share)
        return gain + 0.5 * self.own_cav_var * self.site_slope**2


def site_update(
    marginals: tuple[Array, Array],
    sites: tuple[Array, Array],
    likelihood: Likelihood,
    answers: Answers,
    power: Array | None = None,
    rest: Array | float | None = None,
    least_share: float | None = None,
) -> SiteUpdate:
    """One step of expectation propagation at every site.

    Parameters
    ----------
    marginals : (ndarray of shape (n,), ndarray of shape (n,))
        Means and variances of the margins, as the winner over the loser.
    sites : (ndarray of shape (n,), ndarray of shape (n,))
        Precisions and shifts of the sites that are in them.
    likelihood : Likelihood
    answers : Answers
    power : ndarray of shape (n,), optional
        Of each factor, see `Likelihood.tilted`.
    rest : ndarray of shape (n,) or float, optional
        Variance of independent noise that the factors see beside the margins.
    least_share : float, optional
        Cavities have at least this share of the marginal's precision. None: a site whose cavity is
        improper stays.

    Examples
    --------
    A site that reproduces the tilted moments is the one that its update gives back:

    >>> import numpy as np
    >>> from skpref.likelihoods import DUEL, Answers, Probit
    >>> from skpref.inference import site_update
    >>> likelihood, answers = Probit(0.5), Answers(np.array([DUEL]), np.array([1]))
    >>> prior, none = (np.zeros(1), np.ones(1)), (np.zeros(1), np.zeros(1))
    >>> first = site_update(prior, none, likelihood, answers)
    >>> precision, shift = first.site_precision, first.site_shift
    >>> variance = 1.0 / (1.0 + precision)
    >>> again = site_update((variance * shift, variance), (precision, shift), likelihood, answers)
    >>> bool(np.allclose(again.site_precision, precision))
    True
    """
    site_precision, site_shift = sites
    cav_mean, own_cav_var, cav_share, proper, site_slope = _cavities(marginals, sites, least_share)
    cav_var = own_cav_var if rest is None else own_cav_var + rest
    tilted = likelihood.tilted(cav_mean, cav_var, answers, power)  # GPML (3.58)
    shrink = tilted.shrink if rest is None else tilted.shrink + rest * tilted.curvature
    wanted_precision = tilted.curvature / shrink  # GPML (3.59)
    wanted_shift = (tilted.gradient + cav_mean * tilted.curvature) / shrink
    stays = least_share is None and not proper.all()
    return SiteUpdate(
        cav_mean,
        cav_var,
        cav_share,
        proper,
        site_slope,
        tilted,
        np.where(proper, wanted_precision, site_precision) if stays else wanted_precision,
        np.where(proper, wanted_shift, site_shift) if stays else wanted_shift,
        own_cav_var,
    )


class _Cavities(NamedTuple):
    """Moments of the marginals without their sites; see `SiteUpdate`."""

    mean: Array
    variance: Array
    share: Array
    proper: NDArray[np.bool_]
    site_slope: Array


def _cavities(marginals, sites, least_share=None):
    (mean, variance), (site_precision, site_shift) = marginals, sites
    share = 1.0 - site_precision * variance
    if least_share is None:
        proper = share > _PROPER
        share = np.where(proper, share, 1.0)
    else:
        proper = share > least_share
        share = np.maximum(share, least_share)
    cav_var = variance / share  # GPML (3.56)
    site_slope = site_shift - site_precision * mean
    return _Cavities(mean - cav_var * site_slope, cav_var, share, proper, site_slope)


class _Sweep:
    """One sweep of parallel EP at given sites.

    1. Pool the sites on their margins and condition the prior on them.
    2. Update every site from its cavity: `site_update`.
    3. How far the present sites are from that: the residual.
    """

    def __init__(self, problem, site_precision, site_shift, conditioned):
        self.site_precision, self.site_shift = site_precision, site_shift
        copies = problem.copies
        self.precision = problem.pool(site_precision, problem.shared)
        self.shift = problem.pool(problem.sign * site_shift, problem.shared)
        if conditioned is None:
            conditioned = problem.prior.condition(self.precision, self.shift)
        self.conditioned = conditioned
        marginals = problem.oriented(conditioned.mean), conditioned.variance[problem.index]
        update = site_update(
            marginals,
            (site_precision, site_shift),
            problem.likelihood,
            problem.answers,
            problem.power,
        )
        self.update = update
        self.wanted_precision, self.wanted_shift = update.site_precision, update.site_shift
        _, gradient, _, shrink = update.tilted
        # (tilted mean − marginal mean) / cavity deviation, and 1 − tilted over marginal variance
        off_mean = np.abs(gradient - update.site_slope) * np.sqrt(update.cav_var)
        off_var = np.abs(1.0 - shrink / update.cav_share)
        residual = float(np.max(copies * np.maximum(off_mean, off_var)))
        self.residual = residual if update.proper.all() or residual > 1.0 else 1.0
        if not np.isfinite(self.residual):
            self.residual = np.inf
        self.off_mean, self.off_variance = np.max(copies * off_mean), np.max(copies * off_var)

    def centred(self, problem):
        """Sites of the same precision that also reproduce the means.

        With the precisions the marginals' variances stay, and with these the factorisation.
        """
        sweep = self
        while sweep.residual < 1.0 and sweep.off_mean > _APART * sweep.off_variance:
            _, gradient, _, shrink = sweep.update.tilted
            # Newton's step towards the slope that a cavity of this variance has at this marginal's
            # mean: GPML (3.59) at the present precision.
            slope = sweep.update.site_slope
            slope = slope + (gradient - slope) / shrink
            site_shift = slope + sweep.site_precision * problem.oriented(sweep.conditioned.mean)
            shift = problem.pool(problem.sign * site_shift, problem.shared)
            moved = problem.prior.shifted(sweep.conditioned, sweep.precision, shift)
            moved = _Sweep(problem, sweep.site_precision, site_shift, moved)
            if not moved.off_mean < _NEARER * sweep.off_mean:
                break
            sweep = moved
        return sweep

    def rounding(self, problem):
        """Residual to expect of exact sites, from the errors of the margins' two moments."""
        update, conditioned = self.update, self.conditioned
        errors = problem.prior.rounding(conditioned.dual)
        of_mean, of_var = errors.mean[problem.index], errors.variance[problem.index]
        terms = np.abs(self.site_shift)
        terms = terms + np.abs(self.site_precision * problem.oriented(conditioned.mean))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            of_share = self.site_precision * of_var / update.cav_share
            of_slope = self.site_precision * of_mean + _EPS * terms
            # The cavity follows both: its variance by of_var / share², its mean by the rest;
            # curvature times cavity variance is at most 1.
            of_cavity = of_mean + of_var / update.cav_share**2 * np.abs(update.site_slope)
            off_mean = 2.0 * of_slope + update.tilted.curvature * of_cavity
            off_mean *= np.sqrt(update.cav_var)
            floor = problem.copies * np.maximum(off_mean, 2.0 * of_share)
        return float(np.max(floor))

    def settle_repeats(self, problem):
        """Set the sites of equal duels to their common fixed point."""
        # Of joint answers there is one site a margin: the prior counts them.
        counts, update = problem.shared, self.update
        variance = update.cav_var * update.cav_share
        mean = update.cav_mean + update.cav_var * update.site_slope
        share = 1.0 - counts * self.site_precision * variance
        repeated = (counts > 1.0) & (share > _PROPER) & (variance > 0.0)
        if not repeated.any():
            return
        every = np.flatnonzero(repeated)
        cav_var = variance[every] / share[every]  # without all of the equal sites
        cav_mean = mean[every] - cav_var * counts[every] * update.site_slope[every]
        near = update.cav_mean[every], update.cav_var[every]
        answers = problem.answers.take(every)
        site = problem.likelihood.repeated_site(cav_mean, cav_var, counts[every], answers, near)
        solved = np.isfinite(site.precision) & np.isfinite(site.shift)
        self.wanted_precision[every[solved]] = site.precision[solved]
        self.wanted_shift[every[solved]] = site.shift[solved]

    def log_evidence(self, problem):
        """log Z_EP (GPML 3.65)."""
        conditioned = self.conditioned
        joint = conditioned.dual @ conditioned.mean + conditioned.log_det
        return float(problem.copies @ self.update.log_gain - 0.5 * joint)


def _sweep(problem, site_precision, site_shift, conditioned=None):
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sweep = _Sweep(problem, site_precision, site_shift, conditioned)
        if conditioned is not None:
            return sweep
        return sweep.centred(problem) if len(problem.counts) >= MANY else sweep


class _Path:
    """Anderson's extrapolation of the sites in (log τ, ν/√τ), with a fallback.

    In these coordinates sites that differ by orders of magnitude weigh alike and precisions
    stay positive.
    """

    def __init__(self, problem, step):
        prior = np.maximum(problem.prior.variance[problem.index], 1e-300)
        self._floor = _FLOOR / prior
        self._step = step
        self._points: deque[NDArray[np.float64]] = deque(maxlen=_MEMORY + 1)
        self._moves: deque[NDArray[np.float64]] = deque(maxlen=_MEMORY + 1)

    def forward(self, sweep):
        point = self._encode(sweep.site_precision, sweep.site_shift)
        move = self._encode(sweep.wanted_precision, sweep.wanted_shift) - point
        self._points.append(point)
        self._moves.append(move)
        target = point + self._step * move
        if len(self._points) > 1:
            points, moves = np.array(self._points), np.array(self._moves)
            d_points, d_moves = np.diff(points, axis=0), np.diff(moves, axis=0)
            # Walker and Ni, "Anderson acceleration for fixed-point iterations", 2011, eq. (1.1)
            if np.isfinite(d_moves.sum()) and np.isfinite(move.sum()):
                mix = np.linalg.lstsq(d_moves.T, move, rcond=1e-8)[0]
                target -= mix @ (d_points + self._step * d_moves)
        return self._decode(target)

    def back(self, best):
        self._step = max(0.5 * self._step, 0.02)
        self._points.clear()
        self._moves.clear()
        point = self._encode(best.site_precision, best.site_shift)
        move = self._encode(best.wanted_precision, best.wanted_shift) - point
        return self._decode(point + self._step * move)

    def _encode(self, tau, nu):
        lifted = tau + self._floor
        return np.concatenate([np.log(lifted), nu / np.sqrt(lifted)])

    def _decode(self, point):
        log_tau, scaled = np.split(point, 2)
        lifted = np.exp(np.minimum(log_tau, 80.0))
        return np.maximum(lifted - self._floor, 0.0), scaled * np.sqrt(lifted)
