"""Expectation propagation on the margins, all sites in parallel (GPML section 3.6).

A duel has a site on its margin. A joint answer has one on all of its margins, with a matrix as its
precision.
"""

from collections import deque
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._utils import (
    NEGLIGIBLE,
    TOLERANCE,
    UNIT,
    Array,
    check_number,
    cholesky_blocks,
    inverse_blocks,
    positive_blocks,
    semidefinite_blocks,
    solve_blocks,
)
from skpref.data import Comparisons
from skpref.gp import (
    MOST_ENTRIES,
    WORST,
    OrthantMoments,
    PriorRule,
    SitePrecision,
    Sites,
    log_multivariate,
    orthant_moments,
)
from skpref.inference._base import (
    SEARCH_TOL,
    Approximation,
    Capabilities,
    Engine,
    EvidenceGradient,
    Problem,
    State,
    rule_of_items,
    warm_start_array,
)
from skpref.inference._laplace import starting_sites
from skpref.inference._natural import MEMORY
from skpref.likelihoods import INEQUALITY, Answers, Likelihood, TiltedMoments

# Sweeps that did not halve the residual: then rounding is asked whether it allows any more.
_PATIENCE = 10
# Means are brought this much nearer than variances before these are found again.
_APART = 0.1
# From so many rows on the operations of a factorisation are worth sparing.
_MANY = 256
_EPS = np.finfo(np.float64).eps
# Residuals of answers whose moments are found by quadrature count so much less, as their weakest
# precisions do: what points do not know need not agree.
_BY_POINTS = 1e-3
# Share of a noisy margin's variance below which its utilities are as good as one, as those of an
# item that is there twice: of less than that rounding hides whether sites are settled.
_ALIKE = 1e-6


class EP(Engine):
    """Options of expectation propagation.

    The probit factor of every duel is replaced by a Gaussian site that reproduces the first two
    moments of the factor times its cavity. Sites are updated in parallel, one factorisation a
    sweep, which with many duels serves until the means agree; Anderson's extrapolation over the
    last sweeps shortens the way to the fixed point, and a sweep to sites without moments is taken
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
        `skpref.gp.IndependentItems`. Up to some 350 duels, which take all items jointly a moment,
        estimators fit these jointly all the same. Later answers go in by `partial_fit`.

    Notes
    -----
    The fixed point is the same as that of EP on the noisy margins v > 0. A choice or a ranking has
    one site, which reproduces the means and covariances of all its noisy margins: exactly up to
    three inequalities, by 2048 fixed points of quadrature up to 32; inequalities that follow from
    others (two above two) bound these. Each inequality has a site of its own where there are more,
    and with a ``tol`` of 1e-5 and more, as the search for hyperparameters has it: this is quicker,
    and too sure where margins move together.

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
        rows = SiteRows(problem, self.tol)
        sites = rows.warm_start_sites(start)
        carried = sites is not None
        if sites is None:
            many = problem.prior.starts_at_mode or np.any(problem.counts > 1.0)
            # With many duels an item the way from zero may diverge, and where joint answers
            # contradict each other it may be trapped far from the fixed point.
            near_mode = (many or problem.rows.joint) and problem.likelihood.log_concave
            n = len(problem.counts)
            sites = rows.sites(*(starting_sites(problem) if near_mode else np.zeros((2, n))))
        path = _SitePath(rows, 1.0 - self.damping)
        best = sweep = _run_sweep(rows, sites)
        mark, converged = (np.inf, 0), False
        for n_iter in range(1, self.max_iter + 1):
            if n_iter > 1:
                for earlier in (best, sweep):
                    earlier.drop_root()
                sweep = _run_sweep(rows, sites)
            if sweep.residual < best.residual:
                best = sweep
            if best.residual < 0.5 * mark[0]:
                mark = (best.residual, n_iter)
            converged = best.residual < self.tol
            stalled = n_iter - mark[1]
            if not converged and stalled >= _PATIENCE:
                converged = best.residual <= min(best.rounding_residual(), WORST)
            # Sites of other hyperparameters or answers may mislead; the caller then starts anew.
            is_astray = carried and stalled >= 2 * _PATIENCE and best.residual > WORST
            if converged or is_astray:
                break
            sweep.solve_repeated_sites()
            if not np.isfinite(sweep.residual):
                sites = path.step_from_best(best)
            else:
                sites = path.next_sites(sweep)
        best.restore_root()
        margin_sites = Sites(best.shift, best.precision, best.log_evidence())
        state = rows.state(best.sites)
        return Approximation(
            margin_sites, best.conditioned, state, n_iter, best.residual, converged
        )

    def row_sites(self, problem: Problem, approximation: Approximation) -> tuple[Array, Array]:
        """Return the sites of the fixed point, see `Engine.row_sites`."""
        return approximation.state["precision"], approximation.state["shift"]

    def evidence_gradient(self, problem: Problem, approximation: Approximation) -> EvidenceGradient:
        """Return the derivatives of the evidence at the fixed point (GPML 5.27; Seeger 2005)."""
        conditioned, likelihood = approximation.conditioned, problem.likelihood
        rows = SiteRows(problem, self.tol)
        sites = rows.warm_start_sites(approximation.state)
        if sites is None:
            raise ValueError("The state of the approximation is not of these answers.")
        behind = rows.noiseless_sites(sites)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            marginals = rows.marginals(conditioned, behind)
            cavities = cavity_moments(marginals, (sites.precision, sites.shift))
            joint = [
                each.update(conditioned, *at)
                for each, *at in zip(rows.whole, sites.roots, sites.shifts, behind, strict=False)
            ]
        cavity = cavities.mean, cavities.variance
        slopes = likelihood.tilted_theta_gradient(*cavity, rows.answers, rows.power)
        by_kernel = problem.prior.pull_back(conditioned, approximation.sites.precision)
        by_likelihood = slopes @ rows.copies
        for block, update in zip(rows.whole, joint, strict=True):
            by_likelihood += block.theta_gradient(update.moments, likelihood)
        for each, of_z in zip(rows.parts, behind[len(rows.whole) :], strict=True):
            slope = each.noise_slope_given_sites(conditioned, of_z)
            by_likelihood += slope * likelihood.item_noise_gradient()
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
    """Return the sites of one step of expectation propagation, and the log normalisers.

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
    cav_mean, own_cav_var, cav_share, proper, site_slope = cavity_moments(
        marginals, sites, least_share
    )
    cav_var = own_cav_var if rest is None else own_cav_var + rest
    tilted = likelihood.tilted(cav_mean, cav_var, answers, power)  # GPML (3.58)
    shrink = tilted.shrink if rest is None else tilted.shrink + rest * tilted.curvature
    target_precision = tilted.curvature / shrink  # GPML (3.59)
    target_shift = (tilted.gradient + cav_mean * tilted.curvature) / shrink
    stays = least_share is None and not proper.all()
    return SiteUpdate(
        cav_mean,
        cav_var,
        cav_share,
        proper,
        site_slope,
        tilted,
        np.where(proper, target_precision, site_precision) if stays else target_precision,
        np.where(proper, target_shift, site_shift) if stays else target_shift,
        own_cav_var,
    )


class CavityMoments(NamedTuple):
    """Moments of the marginals without their sites; see `SiteUpdate`."""

    mean: Array
    variance: Array
    share: Array
    proper: NDArray[np.bool_]
    site_slope: Array


def cavity_moments(marginals, sites, least_share=None):
    """Divide each marginal by its own site and return the moments, GPML (3.56).

    ``least_share`` bounds the share of a marginal's precision that is left; None: a site that
    leaves next to nothing is not divided out. Neither kind is proper.
    """
    (mean, variance), (site_precision, site_shift) = marginals, sites
    share = 1.0 - site_precision * variance
    if least_share is None:
        proper = share > NEGLIGIBLE
        share = np.where(proper, share, 1.0)
    else:
        proper = share > least_share
        share = np.maximum(share, least_share)
    cav_var = variance / share  # GPML (3.56)
    site_slope = site_shift - site_precision * mean
    return CavityMoments(mean - cav_var * site_slope, cav_var, share, proper, site_slope)


class _SiteValues(NamedTuple):
    """Sites of all answers.

    Attributes
    ----------
    precision, shift : ndarray of shape (n_single,)
        Of the rows that have sites of their own: duels, ties, and inequalities of joint answers on
        their noisy margins.
    roots : list of ndarray of shape (n_blocks, m, m)
        Lower triangular roots of the precision of whole joint answers' noisy margins, by size.
    shifts : list of ndarray of shape (n_blocks, m)
        Of the same.
    """

    precision: Array
    shift: Array
    roots: list[Array]
    shifts: list[Array]


class SiteRows:
    """Rows of a problem: those that have sites of their own, and joint answers that have one."""

    def __init__(self, problem, tol):
        self.problem, self.prior = problem, problem.prior
        self.single: slice | NDArray[np.intp] = slice(None)
        self.whole: list[_JointSites] = []
        self.parts: list[_FactoredRows] = []
        if problem.rows.joint:
            self._split_joint_answers(problem, tol)
        self.index, self.sign = problem.index[self.single], problem.sign[self.single]
        self.answers, self.power = problem.answers, problem.power
        if problem.rows.joint:
            self.answers = self.answers.take(self.single)
            self.power = None if self.power is None else self.power[self.single]
        self.copies = problem.copies[self.single]
        # Sites that a row puts on its margin; an inequality puts its own elsewhere.
        self.shared = np.where(self.answers.kind == INEQUALITY, 0.0, self.copies)

    def _split_joint_answers(self, problem, tol):
        """Split joint answers into those with one site each, and those with a site an
        inequality."""
        margins = problem.rows.margins
        part = np.flatnonzero(problem.rows.kind == INEQUALITY)
        row = part[np.argsort(problem.index[part])]  # joint margins have one row each
        single = problem.rows.kind != INEQUALITY
        for k, block in enumerate(margins.blocks):
            at = row[block.margin - margins.n_shared]
            if at.shape[1] <= MOST_ENTRIES and tol < SEARCH_TOL:
                self.whole.append(_JointSites(problem, k, block, at))
            else:
                single[at] = True
                self.parts.append(_FactoredRows(problem, k, block, at))
        self.single = np.flatnonzero(single)
        place = np.cumsum(single) - 1
        for each in self.parts:
            each.place = place[each.row]

    def orient_margins(self, margins):
        """Return values on the margins as winner over loser, one a row."""
        return self.sign * margins[self.index]

    def pool(self, values):
        """Return the weighted sum over the rows on each margin."""
        sums = np.bincount(self.index, self.shared * values, self.prior.n_margins)
        return sums.astype(np.float64, copy=False)  # of no row they would be integers

    def noiseless_sites(self, sites):
        """Return the `_NoiselessSite` of each block of joint answers, in order."""
        whole = zip(self.whole, sites.roots, sites.shifts, strict=True)
        behind = [each.noiseless_site(root, shift) for each, root, shift in whole]
        for each in self.parts:
            own = sites.precision[each.place] + each.least, sites.shift[each.place]
            behind.append(
                each.noiseless_site(np.sqrt(own[0])[:, :, None] * np.eye(each.size), own[1])
            )
        return behind

    def margin_sites(self, sites, behind):
        """Return precision and shift of all sites on the margins."""
        precision, shift = self.pool(sites.precision), self.pool(self.sign * sites.shift)
        if not behind:
            return precision, shift
        every = [*self.whole, *self.parts]
        order = np.argsort([each.number for each in every])
        roots = [
            np.sqrt(e.block.counts)[:, None, None] * b.root
            for e, b in zip(every, behind, strict=True)
        ]
        for each, of_z in zip(every, behind, strict=True):
            shift[each.block.margin] = each.block.counts[:, None] * of_z.shift
        blocks = tuple(every[k].block for k in order)
        return SitePrecision(precision, blocks, tuple(roots[k] for k in order)), shift

    def marginals(self, conditioned, behind):
        """Return means and variances of the rows' margins; of inequalities with their noise."""
        mean, variance = self.orient_margins(conditioned.mean), conditioned.variance[self.index]
        for each, of_z in zip(self.parts, behind[len(self.whole) :], strict=True):
            mean[each.place], variance[each.place] = each.noisy_moments(conditioned, of_z)
        return mean, variance

    def sites(self, precision, shift, coupling=None):
        """Return sites of all rows from arrays over these; ``coupling`` holds those of whole joint
        answers."""
        roots, shifts = [], []
        for each in self.whole:
            deviation = np.sqrt(precision[each.row])
            unit = np.eye(each.size)
            if coupling is not None:
                unit = np.moveaxis(coupling[: each.size][:, each.row], 0, 2)
            whole = deviation[:, :, None] * unit * deviation[:, None, :]
            roots.append(_semidefinite_factor(whole, each.least))
            shifts.append(shift[each.row])
        return _SiteValues(precision[self.single], shift[self.single], roots, shifts)

    def state(self, sites):
        """Return the sites as arrays whose last axis runs over all rows."""
        if not self.whole:
            return {"precision": sites.precision, "shift": sites.shift}
        n, width = len(self.problem.counts), max(each.size for each in self.whole)
        precision, shift, coupling = np.empty(n), np.empty(n), np.zeros((width, n))
        precision[self.single], shift[self.single] = sites.precision, sites.shift
        for each, root, own in zip(self.whole, sites.roots, sites.shifts, strict=True):
            whole = _multiply_by_transpose(root)
            strength = np.einsum("bii->bi", whole)
            unit = np.sqrt(np.where(strength > 0.0, strength, 1.0))
            whole = whole / (unit[:, :, None] * unit[:, None, :])
            precision[each.row], shift[each.row] = strength, own
            coupling[: each.size, each.row] = np.moveaxis(whole, 2, 0)
        return {"precision": precision, "shift": shift, "coupling": coupling}

    def warm_start_sites(self, start):
        """Return the sites that a state holds, None if it holds none of these answers."""
        n = len(self.problem.counts)
        tau, nu = (warm_start_array(start, name, n) for name in ("precision", "shift"))
        if start is None or tau is None or nu is None:
            return None
        coupling = start.get("coupling")
        width = max([each.size for each in self.whole], default=0)
        if coupling is not None and (coupling.shape[1] != n or len(coupling) < width):
            coupling = None
        return self.sites(tau, nu, None if coupling is None else np.nan_to_num(coupling))


class _NoiselessSite(NamedTuple):
    """The site of a joint answer's z, where it has one of v = z + e.

    Attributes
    ----------
    root : ndarray of shape (n_blocks, m, m)
        Of its precision (N + P⁻¹)⁻¹, P that of v.
    shift : ndarray of shape (n_blocks, m)
    log_det : ndarray of shape (n_blocks,)
        log|I + N P|.
    """

    root: Array
    shift: Array
    log_det: Array


class _JointCavity(NamedTuple):
    """Moments of the margins of joint answers without their sites; see `SiteUpdate`."""

    mean: Array
    covariance: Array
    share: Array
    site_slope: Array
    proper: NDArray[np.bool_]


class _NoisyBlock:
    """Joint answers of one size and their noise."""

    def __init__(self, problem, number, block, row):
        self.number, self.block, self.row = number, block, row
        self.size = row.shape[1]
        self._answers = problem.answers.take(row.ravel())
        self._lower = problem.likelihood.regions(self._answers).lower.reshape(row.shape)
        self.noise = problem.likelihood.item_noise * block.pattern
        variance = problem.prior.variance[block.margin] + np.einsum("bii->bi", self.noise)
        self.variance = np.maximum(variance, 1e-300)
        self.least = UNIT / self.variance

    def noiseless_site(self, root, shift):
        """Return the `_NoiselessSite` of sites on the noisy margins."""
        inner = np.eye(self.size) + np.swapaxes(root, 1, 2) @ self.noise @ root
        lower = cholesky_blocks(inner)
        log_det = 2.0 * np.sum(np.log(np.einsum("bii->bi", lower)), axis=1)
        root = root @ np.swapaxes(inverse_blocks(lower)[0], 1, 2)
        pulled = _multiply_vectors(np.swapaxes(root, 1, 2), _multiply_vectors(self.noise, shift))
        return _NoiselessSite(root, shift - _multiply_vectors(root, pulled), log_det)

    def cavity(self, conditioned, of_z):
        """Return the `_JointCavity` of the margins without one copy of each answer."""
        mean, covariance = conditioned.mean[self.block.margin], conditioned.joint[self.number]
        half = covariance @ of_z.root
        share = np.eye(self.size) - np.swapaxes(of_z.root, 1, 2) @ half
        proper = positive_blocks(share, NEGLIGIBLE)
        share[~proper] = np.eye(self.size)
        cavity = covariance + half @ solve_blocks(share, np.swapaxes(half, 1, 2))
        slope = of_z.shift - _multiply_vectors(_multiply_by_transpose(of_z.root), mean)
        return _JointCavity(mean - _multiply_vectors(cavity, slope), cavity, share, slope, proper)

    def log_probability(self, mean, covariance):
        """Return the log-probability of each answer, its margins being normal."""
        limits, noisy = mean - self._lower, covariance + self.noise
        if self.block.basis.all():
            return orthant_moments(limits, noisy).log_probability
        deviation = _deviations(noisy)
        correlation = noisy / (deviation[:, :, None] * deviation[:, None, :])
        return log_multivariate(limits / deviation, correlation)

    def noise_slope(self, gradient, curvature):
        """Return the derivative of the summed log normalisers in the noise of one item."""
        fit = np.einsum("bi,bij,bj->b", gradient, self.block.pattern, gradient)
        spread = np.einsum("bij,bij->b", curvature, self.block.pattern)
        return 0.5 * float(self.block.counts @ (fit - spread))


class _FactoredRows(_NoisyBlock):
    """Joint answers of one size, each of whose inequalities has a site of its own."""

    place: NDArray[np.intp]  # rows of the sites

    def noisy_moments(self, conditioned, of_z):
        """Return means and variances of the noisy margins under all sites."""
        mean, covariance = conditioned.mean[self.block.margin], conditioned.joint[self.number]
        precision = _multiply_by_transpose(of_z.root)
        slope = of_z.shift - _multiply_vectors(precision, mean)
        gain = np.eye(self.size) - self.noise @ precision
        spread = gain @ covariance @ np.swapaxes(gain, 1, 2) + gain @ self.noise
        return mean + _multiply_vectors(self.noise, slope), np.einsum("bii->bi", spread)

    def evidence_gap(self, conditioned, of_z):
        """Return the log evidence with sites on margins less that with sites on noisy margins."""
        mean, precision = conditioned.mean[self.block.margin], _multiply_by_transpose(of_z.root)
        slope = of_z.shift - _multiply_vectors(precision, mean)
        of_noise = np.einsum("bi,bij,bj->b", slope, self.noise, slope)
        return 0.5 * float(self.block.counts @ (of_noise + of_z.log_det))

    def noise_slope_given_sites(self, conditioned, of_z):
        """Return the derivative in the noise variance at the noisy margins' moments under all
        sites."""
        mean, precision = conditioned.mean[self.block.margin], _multiply_by_transpose(of_z.root)
        covariance = conditioned.joint[self.number]
        gradient = of_z.shift - _multiply_vectors(precision, mean)
        return self.noise_slope(gradient, precision - precision @ covariance @ precision)


def _multiply_by_transpose(root):
    """Multiply each matrix by its transpose; return the products."""
    return root @ np.swapaxes(root, 1, 2)


class _JointUpdate(NamedTuple):
    """Sites and moments of joint answers of one size, as `SiteUpdate` has those of duels."""

    moments: OrthantMoments
    root: Array
    shift: Array
    log_gain: Array
    off_mean: Array
    off_variance: Array
    proper: bool


class _JointSites(_NoisyBlock):
    """Joint answers of one size, each of which has one site on all its noisy margins."""

    def __init__(self, problem, number, block, row):
        super().__init__(problem, number, block, row)
        self.floor = (_BY_POINTS / self.variance)[:, :, None] * np.eye(self.size)
        self._residual = block.counts * (1.0 if self.size <= 3 else _BY_POINTS)
        self._independent = list(self._independent_inequalities(problem))

    def _independent_inequalities(self, problem):
        """Divide the answers by how many of their inequalities do not follow from the others.

        Which these are, and their order, do not depend on how items are numbered, since points of
        quadrature tell them apart.
        """
        number = np.empty(len(problem.comparisons.items), dtype=np.intp)
        number[np.lexsort(problem.comparisons.items.T)] = np.arange(len(number))
        margins, at = problem.rows.margins, self.block.margin
        order, basis = _order_inequalities(
            self.block.places, number[margins.first[at]], number[margins.second[at]]
        )
        n_independent = np.sum(basis, axis=1)
        for n in np.unique(n_independent):
            rows = np.flatnonzero(n_independent == n)
            own = order[rows]
            is_own = np.take_along_axis(basis[rows], own, axis=1)
            independent = own[is_own].reshape(len(rows), n)
            follows = own[~is_own].reshape(len(rows), self.size - n)
            sums = None
            if n < self.size:
                every = rows[:, None, None]
                inside = self.block.pattern[every, independent[:, :, None], independent[:, None]]
                across = self.block.pattern[every, independent[:, :, None], follows[:, None]]
                sums = np.round(np.swapaxes(solve_blocks(inside, across), 1, 2))
            yield rows, independent, sums

    def update(self, conditioned, root, shift, of_z):
        """Return sites that reproduce the moments of cavity times answer; see `site_update`."""
        covariance = conditioned.joint[self.number]
        centre, cavity, share, slope, proper = self.cavity(conditioned, of_z)
        noisy = cavity + self.noise
        tilted_moments, site_precision, site_shift = self._moment_matching_sites(centre, noisy)
        off_mean = np.abs(_multiply_vectors(noisy, tilted_moments.gradient - slope)) / _deviations(
            noisy
        )
        tilted_covariance = cavity - cavity @ tilted_moments.curvature @ cavity
        own = np.einsum("bii->bi", covariance)
        scale = np.sqrt(np.maximum(own, _ALIKE * self.variance))
        off = np.abs(tilted_covariance - covariance) / (scale[:, :, None] * scale[:, None, :])
        log_gain = tilted_moments.log_probability - 0.5 * inverse_blocks(share)[1]
        log_gain += 0.5 * np.einsum("bi,bij,bj->b", slope, cavity, slope)
        site_precision = _semidefinite_factor(site_precision, self.least)
        site_precision[~proper], site_shift[~proper] = root[~proper], shift[~proper]
        off_mean, off = self._residual * off_mean.max(axis=1), self._residual * off.max(axis=(1, 2))
        return _JointUpdate(
            tilted_moments, site_precision, site_shift, log_gain, off_mean, off, bool(proper.all())
        )

    def _moment_matching_sites(self, mean, covariance):
        """Return the moments of the answer, and precision and shift of the site that has them."""
        limits, log_probability = mean - self._lower, np.empty(len(mean))
        gradient, curvature = np.zeros_like(mean), np.zeros_like(covariance)
        for rows, independent, sums in self._independent:
            at = rows[:, None], independent
            across = rows[:, None, None], independent[:, :, None], independent[:, None]
            inside = orthant_moments(limits[at], covariance[across], sums)
            log_probability[rows] = inside.log_probability
            gradient[at], curvature[across] = inside.gradient, inside.curvature
        precision = solve_blocks(np.eye(self.size) - curvature @ covariance, curvature)
        shift = gradient + _multiply_vectors(
            precision, mean + _multiply_vectors(covariance, gradient)
        )
        return OrthantMoments(log_probability, gradient, curvature), precision, shift

    def theta_gradient(self, moments, likelihood):
        """Return the derivatives of the summed log normalisers in the likelihood's theta."""
        slope = self.noise_slope(moments.gradient, moments.curvature)
        weighted = (self.block.counts[:, None] * moments.gradient).ravel()
        by_ends = likelihood.lower_slopes(self._answers) @ weighted
        return slope * likelihood.item_noise_gradient() - by_ends


def _order_inequalities(places, first, second):
    """Return the order of every answer's inequalities, and which of them do not follow from others.

    Places are numbered anew, by rank and then by the numbers ``first`` and ``second`` of the items.
    Then each inequality that follows is a sum whose last term is added; see `inequalities`.
    """
    n, m, _ = places.shape
    every = np.arange(n)
    n_places = int(places.max()) + 1
    item = np.zeros((n, n_places), dtype=np.intp)
    rank = np.full((n, n_places), n_places)  # of places that other answers have alone
    rank[every[:, None], places.reshape(n, -1)] = 0
    for k in range(m):
        better, worse = places[:, k, 0], places[:, k, 1]
        rank[every, worse] = rank[every, better] + 1
        item[every, better], item[every, worse] = first[:, k], second[:, k]
    place = np.lexsort((item, rank), axis=1)
    again = np.argsort(place, axis=1)
    sorted_rank = np.take_along_axis(rank, place, axis=1)
    leads = np.ones(rank.shape, dtype=bool)
    leads[:, 1:] = sorted_rank[:, 1:] != sorted_rank[:, :-1]
    better, worse = (np.take_along_axis(again, places[:, :, side], axis=1) for side in (0, 1))
    lead_better, lead_worse = (np.take_along_axis(leads, each, axis=1) for each in (better, worse))
    basis = lead_better | (lead_worse & (np.take_along_axis(sorted_rank, better, axis=1) == 0))
    return np.lexsort((worse, better), axis=1), basis


def _multiply_vectors(matrix, vector):
    """Return the products of many matrices (n, m, m) and vectors (n, m)."""
    return np.matmul(matrix, vector[:, :, None])[:, :, 0]


def _deviations(matrix):
    """Return the roots of the diagonals of covariance matrices."""
    return np.sqrt(np.maximum(np.einsum("bii->bi", matrix), 1e-300))


def _semidefinite_factor(matrix, least):
    """Lower triangular roots of positive semi-definite matrices, a little above them: by ``least``
    on the diagonal, and by a share of the trace."""
    lift = np.maximum(UNIT * np.trace(matrix, axis1=1, axis2=2), least.max(axis=1))
    return semidefinite_blocks(matrix, lift)


class _Sweep:
    """One sweep of parallel EP at given sites.

    1. Pool the sites on their margins and condition the prior on them.
    2. Update every site from its cavity: `site_update`.
    3. How far the present sites are from that: the residual.
    """

    def __init__(self, rows, sites, conditioned=None):
        self.rows, self.sites, copies = rows, sites, rows.copies
        self.behind = rows.noiseless_sites(sites)
        self.precision, self.shift = rows.margin_sites(sites, self.behind)
        if conditioned is None:
            conditioned = rows.prior.condition(self.precision, self.shift)
        self.conditioned = conditioned
        marginals = rows.marginals(conditioned, self.behind)
        likelihood = rows.problem.likelihood
        own = sites.precision, sites.shift
        update = site_update(marginals, own, likelihood, rows.answers, rows.power)
        self.update = update
        self.target_precision, self.target_shift = update.site_precision, update.site_shift
        _, gradient, _, shrink = update.tilted
        # (tilted mean − marginal mean) / cavity deviation, and 1 − tilted over marginal variance
        off_mean = np.abs(gradient - update.site_slope) * np.sqrt(update.cav_var)
        off_var = np.abs(1.0 - shrink / update.cav_share)
        self.joint = [
            each.update(conditioned, *at)
            for each, *at in zip(rows.whole, sites.roots, sites.shifts, self.behind, strict=False)
        ]
        parts = [(copies * off_mean, copies * off_var)]
        parts += [(each.off_mean, each.off_variance) for each in self.joint]
        self.off_mean, self.off_variance = (
            float(np.max(np.concatenate(each), initial=0.0)) for each in zip(*parts, strict=True)
        )
        residual = max(self.off_mean, self.off_variance)
        proper = update.proper.all() and all(each.proper for each in self.joint)
        self.residual = residual if proper or residual > 1.0 else 1.0
        if not np.isfinite(self.residual):
            self.residual = np.inf

    @cached_property
    def target(self):
        """Return the sites that reproduce the moments of each cavity times its factor."""
        joint = [each.root for each in self.joint], [each.shift for each in self.joint]
        return _SiteValues(self.target_precision, self.target_shift, *joint)

    def drop_root(self):
        """Free the factorisation, which takes the most memory of all that a sweep holds."""
        self.conditioned = self.conditioned._replace(root=None)

    def restore_root(self):
        """Factorise again if the factorisation was freed."""
        if self.conditioned.root is None:
            root = self.rows.prior.condition(self.precision, self.shift).root
            self.conditioned = self.conditioned._replace(root=root)

    def mean_matching_sites(self):
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
            rows, precision = self.rows, sweep.sites.precision
            site_shift = slope + precision * rows.orient_margins(sweep.conditioned.mean)
            sites = sweep.sites._replace(shift=site_shift)
            shift = rows.pool(rows.sign * site_shift)
            moved = rows.prior.condition_on_shift(sweep.conditioned, sweep.precision, shift)
            moved = _Sweep(rows, sites, moved)
            if not moved.off_mean < 0.5 * sweep.off_mean:
                break
            sweep = moved
        return sweep

    def rounding_residual(self):
        """Residual to expect of exact sites, from the errors of the margins' two moments."""
        update, conditioned, rows = self.update, self.conditioned, self.rows
        errors = rows.prior.rounding(conditioned.dual)
        of_mean, of_var = errors.mean[rows.index], errors.variance[rows.index]
        precision, shift = self.sites.precision, self.sites.shift
        terms = np.abs(shift) + np.abs(precision * rows.orient_margins(conditioned.mean))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            of_share = precision * of_var / update.cav_share
            of_slope = precision * of_mean + _EPS * terms
            # The cavity follows both: its variance by of_var / share², its mean by the rest;
            # curvature times cavity variance is at most 1.
            of_cavity = of_mean + of_var / update.cav_share**2 * np.abs(update.site_slope)
            off_mean = 2.0 * of_slope + update.tilted.curvature * of_cavity
            off_mean *= np.sqrt(update.cav_var)
            floor = rows.copies * np.maximum(off_mean, 2.0 * of_share)
        joint = [10.0 * NEGLIGIBLE * float(each.block.counts.max()) for each in rows.whole]
        return max([float(np.max(floor, initial=0.0)), *joint])

    def solve_repeated_sites(self):
        """Set the target sites of equal duels to their common fixed point."""
        rows, update = self.rows, self.update
        counts, likelihood = rows.shared, rows.problem.likelihood
        variance = update.cav_var * update.cav_share
        mean = update.cav_mean + update.cav_var * update.site_slope
        share = 1.0 - counts * self.sites.precision * variance
        repeated = (counts > 1.0) & (share > NEGLIGIBLE) & (variance > 0.0)
        if not repeated.any():
            return
        every = np.flatnonzero(repeated)
        cav_var = variance[every] / share[every]  # without all of the equal sites
        cav_mean = mean[every] - cav_var * counts[every] * update.site_slope[every]
        near = update.cav_mean[every], update.cav_var[every]
        answers = rows.answers.take(every)
        site = likelihood.repeated_site(cav_mean, cav_var, counts[every], answers, near)
        solved = np.isfinite(site.precision) & np.isfinite(site.shift)
        self.target_precision[every[solved]] = site.precision[solved]
        self.target_shift[every[solved]] = site.shift[solved]

    def log_evidence(self):
        """Return the log evidence of the sweep's sites, log Z_EP of GPML (3.65)."""
        conditioned = self.conditioned
        joint = conditioned.dual @ conditioned.mean + conditioned.log_det
        gained = float(self.rows.copies @ self.update.log_gain)
        for rows, update in zip(self.rows.whole, self.joint, strict=True):
            gained += float(rows.block.counts @ update.log_gain)
        behind = self.behind[len(self.rows.whole) :]
        for rows, of_z in zip(self.rows.parts, behind, strict=True):
            gained -= rows.evidence_gap(conditioned, of_z)
        return gained - 0.5 * float(joint)


def _run_sweep(rows, sites):
    """Return one sweep of EP from these sites; of many answers with sites that match the mean."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sweep = _Sweep(rows, sites)
        # Moments of joint answers take longer than a factorisation.
        many = len(rows.copies) >= _MANY and not rows.problem.rows.joint
        return sweep.mean_matching_sites() if many else sweep


class _SitePath:
    """Anderson's extrapolation of the sites in (log τ, ν/√τ), with a fallback.

    In these coordinates sites that differ by orders of magnitude weigh alike and precisions
    stay positive. Joint answers have a triangular root of their precision in the place of √τ.
    """

    def __init__(self, rows, step):
        prior = np.maximum(rows.prior.variance[rows.index], 1e-300)
        for each in rows.parts:
            prior[each.place] = each.variance
        # Sites enter the extrapolation as log(precision + floor). Of likelihoods that are not
        # log-concave many precisions are 0.
        self._floor = (TOLERANCE if rows.problem.likelihood.log_concave else 1.0) / prior
        self._lower = [np.tril_indices(each.size, -1) for each in rows.whole]
        self._floors = [each.floor for each in rows.whole]
        self._least = [each.least for each in rows.whole]
        self._step = step
        self._points: deque[NDArray[np.float64]] = deque(maxlen=MEMORY + 1)
        self._moves: deque[NDArray[np.float64]] = deque(maxlen=MEMORY + 1)

    def next_sites(self, sweep):
        """Return the sites of the next sweep, by Anderson's extrapolation over the last ones."""
        point = self._to_coordinates(sweep.sites)
        move = self._to_coordinates(sweep.target) - point
        self._points.append(point)
        self._moves.append(move)
        target = point + self._step * move
        if len(self._points) > 1:
            points, moves = np.array(self._points), np.array(self._moves)
            d_points, d_moves = np.diff(points, axis=0), np.diff(moves, axis=0)
            # Walker and Ni, "Anderson acceleration for fixed-point iterations", 2011, eq. (1.1)
            if np.isfinite(d_moves.sum()) and np.isfinite(move.sum()):
                mix = np.linalg.lstsq(d_moves.T, move, rcond=TOLERANCE)[0]
                target -= mix @ (d_points + self._step * d_moves)
        return self._from_coordinates(target)

    def step_from_best(self, best):
        """Return sites a shorter step from the best ones, and forget the sweeps since."""
        self._step = max(0.5 * self._step, 0.02)
        self._points.clear()
        self._moves.clear()
        point = self._to_coordinates(best.sites)
        move = self._to_coordinates(best.target) - point
        return self._from_coordinates(point + self._step * move)

    def _to_coordinates(self, sites):
        """Return sites as the coordinates in which they are extrapolated."""
        lifted = sites.precision + self._floor
        parts = [np.log(lifted), sites.shift / np.sqrt(lifted)]
        for each, shift, floor, (i, j) in zip(
            sites.roots, sites.shifts, self._floors, self._lower, strict=True
        ):
            root = cholesky_blocks(_multiply_by_transpose(each) + floor)
            diagonal = np.einsum("bii->bi", root)
            white = solve_blocks(root, shift)
            parts += [2.0 * np.log(diagonal).ravel(), white.ravel()]
            parts.append((root[:, i, j] / diagonal[:, i]).ravel())
        return np.concatenate(parts)

    def _from_coordinates(self, point):
        """Return the sites of coordinates."""
        n = len(self._floor)
        log_tau, scaled = point[:n], point[n : 2 * n]
        lifted = np.exp(np.minimum(log_tau, 80.0))
        roots, shifts, begin = [], [], 2 * n
        for floor, least, (i, j) in zip(self._floors, self._least, self._lower, strict=True):
            n_blocks, m, _ = floor.shape
            sizes = np.array([m, m, len(i)]) * n_blocks
            logs, white, below = np.split(point[begin : begin + sizes.sum()], np.cumsum(sizes)[:2])
            begin += sizes.sum()
            root = np.zeros((n_blocks, m, m))
            root[:, range(m), range(m)] = 1.0
            root[:, i, j] = below.reshape(n_blocks, -1)
            root *= np.exp(0.5 * np.minimum(logs, 80.0)).reshape(n_blocks, m, 1)
            roots.append(_semidefinite_factor(_multiply_by_transpose(root) - floor, least))
            shifts.append(_multiply_vectors(root, white.reshape(n_blocks, m)))
        precision, shift = np.maximum(lifted - self._floor, 0.0), scaled * np.sqrt(lifted)
        return _SiteValues(precision, shift, roots, shifts)
