"""Weights and functions of many users by a factorised posterior: inference="vb".

User u's margin is g = Σ_d w_ud h_d(x), with weights w_d and functions h_d that are Gaussian
processes over users and items. As in the supplement of Houlsby et al. (NIPS 2012) the posterior is
taken for independent normals of all weights, functions and margins, each a product of what four
kinds of factor tell of it: the answers and the prior covariances by expectation propagation (the
Gaussian of the same moments), and g = w·h by variational Bayes (the Gaussian of the greatest
bound), as the moments of its true distribution average over modes that say the same of the margins.
Passes go shorter and shorter ways.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import BLOCK, Array, floor_variance, inverse_blocks
from skpref.collaborative._fit import WAIT, Task
from skpref.collaborative._posterior import CollaborativePosterior, match_users
from skpref.collaborative._tastes import AverageUser
from skpref.collaborative._teams import update_factors
from skpref.inference import Pass

# Each pass is damped by this factor, relative to the one before.
_SHORTER = 0.95
# Sweeps over the functions in a pass, at most, and the growth of the bound that ends them.
_SWEEPS, _GROWTH = 20, 1e-3


class Normals(NamedTuple):
    """Independent normal factors: natural parameters, precisions and precisions times means."""

    precision: Array
    shift: Array

    @classmethod
    def flat(cls, *shape: int) -> Self:
        """Return flat factors, of precision 0."""
        return cls(*np.zeros((2, *shape)))

    @classmethod
    def from_moments(cls, mean: Array, variance: Array) -> Self:
        """Return the normal factors of these means and variances."""
        variance = np.maximum(variance, np.sqrt(np.finfo(np.float64).tiny))
        return cls(1.0 / variance, mean / variance)

    def divide(self, other: "Normals") -> "Normals":
        """Return the quotient of two factors."""
        return Normals(self.precision - other.precision, self.shift - other.shift)

    def step_towards(self, other: "Normals", share: float) -> "Normals":
        """Return a damped step to other factors, where these are proper normals."""
        share_of = np.where(other.precision > 0.0, share, 0.0)
        return Normals(*(a + share_of * (b - a) for a, b in zip(self, other, strict=True)))


class Values(NamedTuple):
    """Means and variances of weights or functions, (D, n)."""

    mean: Array
    variance: Array

    @property
    def second(self) -> Array:
        """Second moments, (D, n)."""
        return self.mean**2 + self.variance


class Processes(NamedTuple):
    """q of values of Gaussian processes, a row of arrays each, value = shrink (ψᵀ b) + a rest.

    Attributes
    ----------
    mean, variance : ndarray of shape (D, n)
    centre : ndarray of shape (D, r)
        Mean of b.
    cov : ndarray of shape (D, r, r)
        Covariance of b.
    shrink, rest : ndarray of shape (D, n)
        Slopes of the values in ψᵀ b, and their variances given b.
    divergence : float
        Of q from the prior, Kullback–Leibler.
    """

    mean: Array
    variance: Array
    centre: Array
    cov: Array
    shrink: Array
    rest: Array
    divergence: float

    @property
    def values(self) -> Values:
        """Means and variances of the values."""
        return Values(self.mean, self.variance)


@dataclass(frozen=True, eq=False)
class FitcPrior:
    """Prior covariance of the values of each process: ψ ψᵀ plus a diagonal (FITC).

    Attributes
    ----------
    features : ndarray of shape (n, r)
        ψ.
    rest : ndarray of shape (n,)
    """

    features: Array
    rest: Array

    def condition(self, factors: Normals) -> Processes:
        """Return the posterior given a factor of every value, exact.

        Parameters
        ----------
        factors : Normals of shape (D, n)
        """
        psi, (precision, shift) = self.features, factors
        shrink = 1.0 / (1.0 + self.rest * precision)
        row_precision, pulled = shrink * precision, shrink * shift
        inner = np.stack([psi.T @ (each[:, None] * psi) for each in row_precision])
        inner[:, np.arange(psi.shape[1]), np.arange(psi.shape[1])] += 1.0
        cov, log_det = inverse_blocks(inner)
        cov = 0.5 * (cov + cov.transpose(0, 2, 1))
        by_rest = self.rest * shrink
        pull = pulled @ psi
        centre = np.einsum("drs,ds->dr", cov, pull)
        mean = shrink * (centre @ psi.T) + by_rest * shift
        variance = shrink**2 * squares(psi, cov) + by_rest
        log_z = np.log(shrink).sum() + np.vdot(by_rest, shift**2) + np.vdot(pull, centre)
        log_z = 0.5 * (log_z - log_det.sum())
        expected_log_factor = np.vdot(shift, mean) - 0.5 * np.vdot(precision, mean**2 + variance)
        return Processes(
            mean, variance, centre, cov, shrink, by_rest, float(expected_log_factor - log_z)
        )

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Draw the values of n processes under the prior, (n, n_values)."""
        shared = rng.standard_normal((n, self.features.shape[1])) @ self.features.T
        return shared + np.sqrt(self.rest) * rng.standard_normal((n, len(self.rest)))


def squares(psi: Array, cov: Array) -> Array:
    """Return ψᵀ S_d ψ of every row and matrix, (D, n)."""
    return np.stack([np.einsum("nr,nr->n", psi @ each, psi) for each in cov])


class Cells(NamedTuple):
    """Cells of the table of users and margins: the user and the margin of each queried pair."""

    user: NDArray[np.intp]
    margin: NDArray[np.intp]


class Product(NamedTuple):
    """q of weights and functions, and what bounds the log integral of their factors."""

    weights: Values
    functions: Values
    bound: float


def products(cells: Cells, weights: Values, functions: Values) -> tuple[Array, Array]:
    """Return means and variances of w·h in every cell."""
    mean, variance = np.zeros((2, len(cells.user)))
    for d in range(len(weights.mean)):
        w, h = weights.mean[d][cells.user], functions.mean[d][cells.margin]
        v, r = weights.variance[d][cells.user], functions.variance[d][cells.margin]
        mean += w * h
        variance += w**2 * r + v * (h**2 + r)
    return mean, variance


def factorise(
    cells: Cells,
    factors: Normals,
    priors: tuple[Normals, Normals],
    start: tuple[Values, Values],
    sweeps: int = _SWEEPS,
) -> Product:
    """Fit independent normals of weights and functions to factors of margins; return these.

    Variational Bayes, one function after the other, so that the bound never falls.

    Parameters
    ----------
    cells : Cells
    factors : Normals of shape (n_cells,)
        Factors of the margins.
    priors : (Normals, Normals)
        Factors of weights, (D, n_users), and of functions, (D, n_margins), beside these.
    start : (Values, Values)
        Of weights and functions; those of functions are found first.
    sweeps : int
    """
    weights, functions = (Values(at.mean.copy(), at.variance.copy()) for at in start)
    index = cells.user, cells.margin
    bound = -np.inf
    for _ in range(sweeps):
        mean = products(cells, weights, functions)[0]
        for mine, partner, k in ((functions, weights, 1), (weights, functions, 0)):
            own_index, partner_index, prior = index[k], index[1 - k], priors[k]
            for d in range(len(mine.mean)):
                w, w_second = partner.mean[d][partner_index], partner.second[d][partner_index]
                without = mean - w * mine.mean[d][own_index]
                n = mine.mean.shape[1]
                precision = prior.precision[d] + np.bincount(
                    own_index, factors.precision * w_second, n
                )
                pull = w * (factors.shift - factors.precision * without)
                mine.variance[d] = 1.0 / precision
                mine.mean[d] = (prior.shift[d] + np.bincount(own_index, pull, n)) / precision
                mean = without + w * mine.mean[d][own_index]
        last, bound = bound, bound_of(cells, factors, priors, (weights, functions))
        if bound - last < _GROWTH:
            break
    return Product(weights, functions, bound)


def bound_of(
    cells: Cells, factors: Normals, priors: tuple[Normals, Normals], at: tuple[Values, Values]
) -> float:
    """Return the bound on the log integral of the factors, up to a constant."""
    mean, variance = products(cells, *at)
    value = factors.shift @ mean - 0.5 * factors.precision @ (mean**2 + variance)
    for prior, q in zip(priors, at, strict=True):
        value += np.vdot(prior.shift, q.mean) - 0.5 * np.vdot(prior.precision, q.second)
        value += 0.5 * np.log(q.variance).sum()
    return float(value)


class Factorised(NamedTuple):
    """q of weights and functions at the fixed point.

    Attributes
    ----------
    features : ndarray of shape (n_users, r)
        ψ of users.
    weights, functions : Processes
        Over users, and over the distinct margins.
    log_evidence : float
    n_iter : int
    residual : float
        Root mean square change of the margins in the last pass, in their deviations.
    """

    features: Array
    weights: Processes
    functions: Processes
    log_evidence: float
    n_iter: int
    residual: float


def users_prior(task: Task) -> FitcPrior:
    """Return the prior of each function's weights: utilities have the task's variances."""
    n, columns = task.by_user.n_users, []
    rest = np.full(n, task.own)
    if task.population:
        columns.append(np.ones((n, 1)))
    if task.features is not None:
        columns.append(np.sqrt(task.shared) * task.features.psi)
        rest = rest + task.shared * task.features.rest
    features = np.hstack(columns) if columns else np.zeros((n, 0))
    return FitcPrior(features / np.sqrt(task.n_latent), rest / task.n_latent)


def fit(
    task: Task,
    seed: int,
    max_iter: int,
    tol: float,
    watch: Callable[[Pass], bool] | None = None,
) -> Factorised:
    """Refine all factors, one kind after the other.

    Parameters
    ----------
    task : Task
        ``prior_users`` are not looked at.
    seed : int
        Of the weights that the first pass starts from.
    max_iter : int
    tol : float
        Residual that ends it.
    watch : callable, optional
        Told of every pass; where it returns True the fit ends there.
    """
    of_users, of_margins = (
        users_prior(task),
        FitcPrior(task.space.margin_features, task.space.rest),
    )
    state = FactorisedState(task, of_users, of_margins, np.random.default_rng(seed))
    share, residual = 1.0, np.inf
    for n in range(1, max_iter + 1):
        residual = state.refine(share)
        share *= _SHORTER
        weights = of_users.condition(state.weight_factors)
        functions = of_margins.condition(state.function_factors)
        evidence = state.log_evidence(weights, functions)
        if watch is not None and watch(Pass(n, evidence, residual)):
            break
        if n > WAIT and residual < tol:
            break
    return Factorised(of_users.features, weights, functions, evidence, n, residual)


class FactorisedState:
    """All factors, and q.

    Parameters
    ----------
    task : Task
    of_users, of_margins : FitcPrior
    rng : Generator
    """

    def __init__(
        self, task: Task, of_users: FitcPrior, of_margins: FitcPrior, rng: np.random.Generator
    ) -> None:
        self._likelihood, self._by_user = task.likelihood, task.by_user
        self._of_users, self._of_margins = of_users, of_margins
        by_user, d = task.by_user, task.n_latent
        key = by_user.user * by_user.n_margins + by_user.margin
        cells, self._cell = np.unique(key, return_inverse=True)
        self._cells = Cells(*np.divmod(cells, by_user.n_margins))
        n = d, by_user.n_users
        m = d, by_user.n_margins
        self.weight_factors, self._weights_before = Normals.flat(*n), Normals.flat(*n)
        self.function_factors, self._functions_before = Normals.flat(*m), Normals.flat(*m)
        self._sites = Normals.flat(len(by_user.user))
        # Without any answer all means are zero, and no slope of the bound leads away from there:
        # the answers are first asked at that q, then functions are found at random weights.
        self._weights = of_users.condition(self.weight_factors).values
        self._functions = of_margins.condition(self.function_factors).values
        self._mean, variance = products(self._cells, self._weights, self._functions)
        self._margin_factors = Normals.from_moments(self._mean, variance)
        self._update_answer_sites(1.0)
        self._weights = self._weights._replace(mean=of_users.draw(d, rng))

    def refine(self, share: float) -> float:
        """Make a damped pass; return how far the margins moved, in standard deviations."""
        at = self._of_margins.condition(self.function_factors)
        target = Normals.from_moments(at.mean, at.variance).divide(self.function_factors)
        self._functions_before = self._functions_before.step_towards(target, share)
        at = self._of_users.condition(self.weight_factors)
        target = Normals.from_moments(at.mean, at.variance).divide(self.weight_factors)
        self._weights_before = self._weights_before.step_towards(target, share)
        before = self._weights_before, self._functions_before
        q = factorise(self._cells, self._cell_factors, before, (self._weights, self._functions))
        self._weights, self._functions = q.weights, q.functions
        target = Normals.from_moments(*q.weights).divide(before[0])
        self.weight_factors = self.weight_factors.step_towards(target, share)
        target = Normals.from_moments(*q.functions).divide(before[1])
        self.function_factors = self.function_factors.step_towards(target, share)
        mean, variance = products(self._cells, q.weights, q.functions)
        target = Normals.from_moments(mean, variance).divide(self._cell_factors)
        self._margin_factors = self._margin_factors.step_towards(target, share)
        move, self._mean = (mean - self._mean) / np.sqrt(variance), mean
        self._update_answer_sites(share)
        return float(np.sqrt(np.mean(move**2)))

    @property
    def _cell_factors(self):
        """Likelihood of each user's margins."""
        copies, n = self._by_user.copies, len(self._cells.user)
        precision, shift = np.array(
            [np.bincount(self._cell, copies * part, n) for part in self._sites], dtype=np.float64
        )
        return Normals(precision, shift)

    def _update_answer_sites(self, share):
        """Update the answers' factors by expectation propagation; return their log evidence."""
        sites, by_user = self._sites, self._by_user
        total = [a + b for a, b in zip(self._margin_factors, self._cell_factors, strict=True)]
        variance = 1.0 / total[0][self._cell]
        mean = variance * total[1][self._cell]
        target, gained = update_factors(
            self._likelihood, by_user, (mean, variance), 0.0, (sites.precision, sites.shift)
        )
        self._sites = sites.step_towards(Normals(target.precision, target.shift), share)
        return by_user.copies @ (gained - sites.shift * mean + 0.5 * sites.precision * mean**2)

    def log_evidence(self, weights: Processes, functions: Processes) -> float:
        """Return the log evidence of expectation propagation, with a bound for the products.

        Parameters
        ----------
        weights, functions : Processes
            q given what the products tell of them.
        """
        cell_factors = self._cell_factors
        mean, variance = products(self._cells, weights.values, functions.values)
        value = cell_factors.shift @ mean - 0.5 * cell_factors.precision @ (mean**2 + variance)
        value += self._update_answer_sites(0.0)
        return float(value) - weights.divergence - functions.divergence


class UserWeights(NamedTuple):
    """Weights of the users of some rows: shrink times ψᵀ b, and an independent rest.

    Attributes
    ----------
    mean : ndarray of shape (n, d)
    psi : ndarray of shape (n, r)
    shrink, rest : ndarray of shape (n, d)
    unknown : ndarray of bool of shape (n,)
        Whose features are not known: their weights are also correlated.
    """

    mean: Array
    psi: Array
    shrink: Array
    rest: Array
    unknown: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FactorisedPosterior(CollaborativePosterior):
    """Weights and functions are independent Gaussian processes: f_u(x) = Σ_d w_ud h_d(x).

    Means and covariances are those of the sums of products, which are then taken for Gaussian.

    Attributes
    ----------
    weights : Processes
        Of the users that were fitted.
    features : ndarray of shape (n_users, r)
        Of these users, as the prior of weights has them.
    population : bool
        Whether users share a part of their weights, the first of these features.
    own, shared : float
        Prior variances of weights: of the part of a user's own, and of the one that features tell.
    average_user : AverageUser or None
        Features of a user of whom none are known; None without features.
    functions : ndarray of shape (d, m)
        Means of the functions as combinations of whitened features.
    functions_cov : ndarray of shape (d, m, m)
        Covariances of these.
    """

    weights: Processes
    features: Array
    population: bool
    own: float
    shared: float
    average_user: AverageUser | None
    functions: Array
    functions_cov: Array

    @property
    def n_users(self) -> int:
        return len(self.features)

    def _shapes(self):
        weights, typical = self.weights, self.average_user
        shapes = {
            "functions": (self.functions, "d m"),
            "covariance of functions": (self.functions_cov, "d m m"),
            "features of users": (self.features, "u r"),
            "mean of weights": (weights.mean, "d u"),
            "variance of weights": (weights.variance, "d u"),
            "centre of weights": (weights.centre, "d r"),
            "covariance of weights": (weights.cov, "d r r"),
            "shrink of weights": (weights.shrink, "d u"),
            "rest of weights": (weights.rest, "d u"),
        }
        if typical is not None:
            shapes |= {
                "features of the average user": (typical.psi, "f"),
                "root of the average user": (typical.root, "f q"),
            }
        return shapes

    def _moments(self, A, B=None):
        self._check_rows(len(A))
        step = max(BLOCK // (len(self.anchors) + self.features.shape[1] + len(self.functions)), 1)
        mean, variance = np.empty((2, len(A)))
        for start in range(0, len(A), step):
            rows = slice(start, start + step)
            phi, prior = self._features(A[rows], None if B is None else B[rows])
            w = self._weights(*self._users_of_rows(rows, len(phi)))
            w_var = w.shrink**2 * squares(w.psi, self.weights.cov).T + w.rest
            h = phi @ self.functions.T
            residual_variance = floor_variance(prior - np.einsum("nm,nm->n", phi, phi), 0.0)
            h_var = squares(phi, self.functions_cov).T + residual_variance[:, None]
            mean[rows] = np.einsum("nd,nd->n", w.mean, h)
            variance[rows] = (w.mean**2 * h_var + w_var * (h**2 + h_var)).sum(axis=1)
            variance[rows] += np.where(w.unknown, squares(h, self._between[None])[0], 0.0)
        return mean, variance

    def _cov(self, A, B):
        self._check_rows(len(A))
        phi, _ = self._features(A, B)
        users, *user_features = self._users_of_rows(slice(None), len(phi))
        w, h = self._weights(users, *user_features), phi @ self.functions.T
        residual_covariance, same = self._prior(A, B) - phi @ phi.T, match_users(users)
        covariance = np.zeros_like(residual_covariance)
        for d in range(len(self.functions)):
            lean = w.shrink[:, [d]] * w.psi
            of_w = lean @ self.weights.cov[d] @ lean.T
            root = np.sqrt(w.rest[:, d])
            of_w += np.where(same, root[:, None] * root, 0.0)
            of_h = phi @ self.functions_cov[d] @ phi.T + residual_covariance
            covariance += np.outer(w.mean[:, d], w.mean[:, d]) * of_h
            covariance += of_w * (np.outer(h[:, d], h[:, d]) + of_h)
        covariance += np.where(same & w.unknown, h @ self._between @ h.T, 0.0)
        return 0.5 * (covariance + covariance.T)

    def _weights(self, users, psi, rest):
        """Return the weights of users by code, of those that were not fitted by their features."""
        d, old = len(self.functions), users >= 0
        user_features = np.zeros((len(users), self.features.shape[1]))
        wide = np.full((len(users), d), self.own)
        if self.population:
            user_features[:, 0] = 1.0 / np.sqrt(d)
        unknown = np.zeros(len(users), dtype=bool)
        if self.average_user is not None:
            typical, unknown = self.average_user, ~old
            if psi is not None and rest is not None:
                unknown = unknown & np.isnan(rest)
                user_features[:, int(self.population) :] = np.sqrt(self.shared) * psi
                wide += self.shared * rest[:, None]
            user_features[unknown, int(self.population) :] = np.sqrt(self.shared) * typical.psi
            of_features = self.weights.cov[:, int(self.population) :, int(self.population) :]
            varied = np.einsum("rk,drs,sk->d", typical.root, of_features, typical.root)
            varied += np.square(self._by_features).sum(axis=1)
            wide[unknown] = self.own + self.shared * (typical.rest + varied)
        shrink = np.ones((len(users), d))
        mean = user_features @ self.weights.centre.T
        who = users[old]
        user_features[old], shrink[old] = self.features[who], self.weights.shrink.T[who]
        wide[old], mean[old] = self.weights.rest.T[who], self.weights.mean.T[who]
        return UserWeights(mean, user_features, shrink, wide, unknown)

    @property
    def _by_features(self):
        """Slopes of the mean weights in the features over the fitted users, (d, r)."""
        if self.average_user is None:
            return np.zeros((len(self.functions), 0))
        return self.weights.centre[:, int(self.population) :] @ self.average_user.root

    @property
    def _between(self):
        """Covariances between the weights of a user whose features are not known, (d, d)."""
        varied = self.shared * self._by_features @ self._by_features.T
        return varied - np.diag(np.diag(varied))
