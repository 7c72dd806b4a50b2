"""What all other answers say of each answer: its site removed, hyperparameters held."""

from typing import NamedTuple

import numpy as np

from skpref._utils import ITERATION_CAP, NEGLIGIBLE, TOLERANCE, Array
from skpref.inference._base import Approximation, Engine, Problem
from skpref.inference._ep import EP, SiteRows, SiteUpdate, cavity_moments, site_update
from skpref.likelihoods import INEQUALITY, Answers, Likelihood

# Sweeps in which all other sites follow. Of small problems with none .05 of the answers were off by
# .03 to .15 nats.
_SWEEPS = 3
# The least share of a precision that is left.
_LEAST_SHARE = 1e-3


class MatchingSites(NamedTuple):
    """Gaussian sites that reproduce the moments of margins; see `matching_sites`.

    Attributes
    ----------
    update : SiteUpdate
        Of the last iteration, with the cavities.
    precision, shift : ndarray of shape (n,)
    change : ndarray of shape (n,)
        Of the precision in the last iteration, in precisions of the margin; large where there is
        no such site.
    """

    update: SiteUpdate
    precision: Array
    shift: Array
    change: Array


def matching_sites(
    marginals: tuple[Array, Array],
    likelihood: Likelihood,
    answers: Answers,
    power: Array | None = None,
    rest: Array | float | None = None,
    start: tuple[Array, Array] | None = None,
) -> MatchingSites:
    """Find the site of each answer that its margin's moments tell.

    The moments are those of the margin without the site, times the answer's probability: of
    expectation propagation the site is its own, of any other posterior as good a one.

    Parameters
    ----------
    marginals, likelihood, answers, power, rest
        As in `site_update`.
    start : (ndarray of shape (n,), ndarray of shape (n,)), optional
        Precisions and shifts to begin with; None: 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.inference import matching_sites, site_update
    >>> from skpref.likelihoods import DUEL, Answers, Probit
    >>> likelihood, won = Probit(0.5), Answers(np.array([DUEL]), np.array([1]))
    >>> none = np.zeros(1), np.zeros(1)
    >>> own = site_update((np.zeros(1), np.ones(1)), none, likelihood, won)
    >>> variance = 1.0 / (1.0 + own.site_precision)
    >>> sites = matching_sites((variance * own.site_shift, variance), likelihood, won)
    >>> bool(np.allclose(sites.precision, own.site_precision, atol=1e-5))
    True
    """
    variance = marginals[1]
    tau, nu = np.zeros((2, len(variance))) if start is None else start
    step = 1.0
    for _ in range(ITERATION_CAP):
        update = site_update(
            marginals, (tau, nu), likelihood, answers, power, rest, least_share=_LEAST_SHARE
        )
        change = np.abs(update.site_precision - tau) * variance
        if np.max(change, initial=0.0) < TOLERANCE:
            break
        tau = tau + step * (update.site_precision - tau)
        nu = nu + step * (update.site_shift - nu)
        step = max(0.9 * step, 0.3)
    return MatchingSites(update, tau, nu, change)


class AnswerForecast(NamedTuple):
    """Distributions of the distinct answers by a posterior that did not see them.

    Attributes
    ----------
    log_density : ndarray of shape (n_answers,)
        Log-probability of what was answered; NaN of answers that were not removed.
    mean, variance : ndarray of shape (n_rows,)
        Of the margin of each row's winner over its loser, with what inducing points do not know of
        it, without the noise of answers.
    shape : ndarray of shape (n_answers,) or None
        k̂ of importance sampling, where that is how the answers were left out.
    """

    log_density: Array
    mean: Array
    variance: Array
    shape: Array | None = None


class SiteRemoval:
    """A Gaussian posterior of the margins, from which the sites of answers can be taken.

    Parameters
    ----------
    problem : Problem
    approximation : Approximation
        Of ``engine``, which does not sample.
    engine : Engine

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from skpref.duels import Comparisons
    >>> from skpref.gp import choose_prior
    >>> from skpref.inference import EP, Problem, SiteRemoval
    >>> from skpref.likelihoods import Probit
    >>> seen = Comparisons.from_duels(np.array([[0.0], [1.0]]), [0], [1], [True])
    >>> kernel, likelihood = RBF(1.0), Probit(0.5)
    >>> prior = choose_prior(kernel, seen, likelihood).from_comparisons(kernel, seen, likelihood)
    >>> problem = Problem(prior, seen, likelihood)
    >>> removal = SiteRemoval(problem, EP().run(problem), EP())
    >>> np.exp(removal.leave_each_out().log_density).round(3)  # without it, nothing is known
    array([0.5])
    """

    def __init__(self, problem: Problem, approximation: Approximation, engine: Engine):
        if problem.rows.joint and not isinstance(engine, EP):
            raise ValueError(
                f"got choices or rankings with {type(engine).__name__}; their sites can be removed "
                "with expectation propagation. Fit with inference='ep'."
            )
        self._problem, self._approximation, self._engine = problem, approximation, engine
        self._by_points = engine.prior_rule.by_points
        self._rows = SiteRows(problem, getattr(engine, "tol", 0.0))
        tau, nu = engine.row_sites(problem, approximation)
        coupling = approximation.state.get("coupling")
        self._sites = self._rows.sites(tau, nu, coupling)
        self._noiseless = self._rows.noiseless_sites(self._sites)
        answers = problem.rows.kind != INEQUALITY
        self._duels = np.flatnonzero(answers)  # in the rows of the problem
        self._of_duels = np.flatnonzero(answers[self._rows.single])  # in those with own sites

    def leave_each_out(self) -> AnswerForecast:
        """Predict every answer by all others: one copy of it is removed, as a block.

        The cavities of GPML (3.56), on all margins of a joint answer at once.
        """
        conditioned = self._approximation.conditioned
        mean, variance, rest = self._margin_moments(conditioned)
        some = self._of_duels
        sites = self._sites.precision[some], self._sites.shift[some]
        cavity = cavity_moments((mean[self._duels], variance[self._duels]), sites)
        forecast = self._start_forecast(mean, variance + rest)
        at = self._duels
        forecast.mean[at], forecast.variance[at] = cavity.mean, cavity.variance + rest[at]
        self._set_duel_densities(forecast, at)
        for block, site in zip(self._blocks, self._noiseless, strict=True):
            inside = block.cavity(conditioned, site)
            self._set_joint_densities(forecast, block, inside.mean, inside.covariance)
        return self._add_utility_mean(forecast)

    def leave_out(self, removed: Array) -> AnswerForecast:
        """Predict answers once they are removed together, and all other sites have followed.

        Parameters
        ----------
        removed : ndarray of shape (n_rows,)
            How much of the weight of each row is removed.
        """
        problem = self._problem
        kept = np.maximum(1.0 - removed / problem.counts, NEGLIGIBLE)
        sites = self._sites
        conditioned, noiseless = self._condition_on_shares(sites, kept)
        for _ in range(_SWEEPS):
            with np.errstate(all="ignore"):
                sites = self._sweep_remaining_sites(sites, conditioned, noiseless, kept)
            conditioned, noiseless = self._condition_on_shares(sites, kept)
        mean, variance, rest = self._margin_moments(
            conditioned.root if self._by_points else conditioned
        )
        forecast = self._start_forecast(mean, variance + rest)
        self._set_duel_densities(forecast, self._duels[removed[self._duels] > 0.0])
        for block in self._blocks:
            if np.any(removed[block.row[:, 0]] > 0.0):
                centre = conditioned.mean[block.block.margin]
                self._set_joint_densities(forecast, block, centre, conditioned.joint[block.number])
        forecast.log_density[problem.rows.answer[removed <= 0.0]] = np.nan
        return self._add_utility_mean(forecast)

    def _condition_on_shares(self, sites, share_kept):
        """Return the margins given shares of the sites, and the sites of joint answers."""
        own = share_kept[self._rows.single]
        single = sites._replace(precision=own * sites.precision, shift=own * sites.shift)
        every, noiseless = self._rows.noiseless_sites(sites), []
        for block, site in zip(self._blocks, every, strict=True):
            share = share_kept[block.row[:, 0]]
            root = np.sqrt(share)[:, None, None] * site.root
            noiseless.append(site._replace(root=root, shift=share[:, None] * site.shift))
        precision, shift = self._rows.margin_sites(single, noiseless)
        return self._problem.prior.condition(precision, shift), every

    def _sweep_remaining_sites(self, sites, conditioned, noiseless, share_kept):
        """Return the sites after one more sweep of the engine; those that are removed stay."""
        rows, problem = self._rows, self._problem
        before = sites.precision, sites.shift
        if isinstance(self._engine, EP):
            marginals = rows.marginals(conditioned, noiseless)
            update = site_update(marginals, before, problem.likelihood, rows.answers, rows.power)
            target = update.site_precision, update.site_shift
        else:
            moments = conditioned.root if self._by_points else conditioned
            at = self._approximation._replace(conditioned=moments)
            target = self._engine.row_sites(problem, at)
        stays = (share_kept[rows.single] <= NEGLIGIBLE) | ~(
            (target[0] >= 0.0) & np.isfinite(target[1])
        )
        pairs = zip(before, target, strict=True)
        precision, shift = (np.where(stays, old, new) for old, new in pairs)
        roots, shifts = [], []
        for block, root, own, site in zip(
            rows.whole, sites.roots, sites.shifts, noiseless, strict=False
        ):
            joint = block.update(conditioned, root, own, site)
            stays = share_kept[block.row[:, 0]] <= NEGLIGIBLE
            stays |= ~np.isfinite(joint.root).all(axis=(1, 2))
            roots.append(np.where(stays[:, None, None], root, joint.root))
            shifts.append(np.where(stays[:, None], own, joint.shift))
        return sites._replace(precision=precision, shift=shift, roots=roots, shifts=shifts)

    @property
    def _blocks(self):
        """Return the joint answers by size, those with one site before those with several."""
        return [*self._rows.whole, *self._rows.parts]

    def _margin_moments(self, conditioned):
        """Return mean, variance and FITC residual variance of each row's margin."""
        problem = self._problem
        margins = problem.prior.margin_moments(conditioned)
        at = problem.index
        return problem.orient_margins(margins.mean), margins.variance[at], margins.rest[at]

    def _start_forecast(self, mean, variance):
        """Return a forecast with these moments of the rows, and no log densities so far."""
        n_answers = int(self._problem.rows.answer.max(initial=-1)) + 1
        return AnswerForecast(np.full(n_answers, np.nan), mean.copy(), variance.copy())

    def _add_utility_mean(self, forecast):
        """Return the forecast with the prior means of utilities, known by measured values,
        added."""
        mean, rows = self._problem.prior.utility_mean, self._problem.rows
        if mean is None:
            return forecast
        return forecast._replace(mean=forecast.mean + mean[rows.first] - mean[rows.second])

    def _set_duel_densities(self, forecast, rows):
        """Set, in place, the log densities of duels and ties by the moments of their margins."""
        problem = self._problem
        forecast.log_density[problem.rows.answer[rows]] = problem.likelihood.log_normaliser(
            forecast.mean[rows], forecast.variance[rows], problem.answers.take(rows)
        )

    def _set_joint_densities(self, forecast, block, mean, covariance):
        """Set, in place, moments and log densities of joint answers of one size."""
        forecast.mean[block.row] = mean
        forecast.variance[block.row] = np.einsum("bii->bi", covariance)
        answer = self._problem.rows.answer[block.row[:, 0]]
        forecast.log_density[answer] = block.log_probability(mean, covariance)
