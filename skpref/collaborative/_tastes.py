"""Users' tastes: a prior of groups, and what users have in common.

A user is a group of answers whose own weights are the user's taste. Shared by all users are F, the
weights of the population's utility, and b, what the features of inducing users tell of tastes:
w_u = Σ_k ψ_uk b_k + e_u, and a margin is φᵀ F + hᵀ w_u. Given F and b users are independent, and
`skpref.gp.condition_groups` integrates out each e_u. What is added here is b: as F has a row for
every margin, the precision of b is a sum of Kronecker products over users, so that no row of users
times functions is ever written down.

Users may be at other processes: `condition_tastes` gives the tastes of some users given what all
have in common, and their answers' likelihood of that; `common` conditions it on the sum of these;
`marginal` and `TasteMargins.moments` give the margins of the same users under both.
"""

from operator import add
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array, inverse_cholesky, jointly_diagonal, symmetric_root
from skpref.gp import BatchSites, condition_groups


class Covariances(NamedTuple):
    """Prior covariances of tastes.

    Attributes
    ----------
    own : ndarray of shape (d, d)
        Of the part of each user's own.
    shared : ndarray of shape (d, d) or None
        Of the part that features tell; None without features.
    """

    own: Array
    shared: Array | None = None

    @property
    def of_features(self) -> Array:
        """Covariance of the part that features explain; 0 without features."""
        return np.zeros_like(self.own) if self.shared is None else self.shared


class Features(NamedTuple):
    """Features ψ of users, (n_users, r), and their FITC residual variances, (n_users,)."""

    psi: Array
    rest: Array

    @classmethod
    def empty(cls, n_users: int) -> Self:
        """Return those of users without features, r = 0."""
        return cls(np.zeros((n_users, 0)), np.zeros(n_users))

    def take(self, users: NDArray[np.intp]) -> "Features":
        """Return those of some users."""
        return Features(self.psi[users], self.rest[users])

    @property
    def average_user(self) -> "AverageUser":
        """Features of a user drawn from these, as mean, residual variance and covariance."""
        centre = self.psi.mean(axis=0)
        off = self.psi - centre
        root = symmetric_root(off.T @ off / len(off))
        return AverageUser(centre, float(self.rest.mean()), root)


class AverageUser(NamedTuple):
    """Features of a user of whom none are known.

    Attributes
    ----------
    psi : ndarray of shape (r,)
        Mean of ψ.
    rest : float
        Mean residual variance.
    root : ndarray of shape (r, r)
        Root of the covariance of ψ.
    """

    psi: Array
    rest: float
    root: Array


class Basis(NamedTuple):
    """A basis of tastes in which both prior covariances are diagonal, that of users' own tastes I.

    Attributes
    ----------
    prior : Covariances
    turn : ndarray of shape (d, d)
        own = turn turnᵀ: tastes are turn times what they are in the basis.
    level : ndarray of shape (d,)
        shared = turn diag(level) turnᵀ.
    """

    prior: Covariances
    turn: Array
    level: Array

    @classmethod
    def from_covariances(cls, prior: Covariances) -> Self:
        """Return the basis in which these prior covariances are diagonal."""
        return cls(prior, *jointly_diagonal(prior.own, prior.shared))


class Local(NamedTuple):
    """Tastes of some users given F and b: each e_u is ``root`` times weights of variance 1 before.

    Attributes
    ----------
    root : ndarray of shape (n_users, d)
        Prior deviations of e_u.
    inverse : ndarray of shape (n_users, d, d)
        Covariance of the weights.
    level : ndarray of shape (n_users, d)
        Their mean where F and b are zero.
    by_population : ndarray of shape (n_users, d, m)
        Slopes of the mean in −F.
    """

    root: Array
    inverse: Array
    level: Array
    by_population: Array

    @property
    def by_features(self) -> Array:
        """Slopes of the mean in −Σ_k ψ_k b_k, (n_users, d, d)."""
        return (np.eye(self.root.shape[1]) - self.inverse) / self.root[:, None]

    @property
    def pull(self) -> Array:
        """Slopes of tastes in the part that features explain, (n_users, d, d)."""
        return self.root[:, :, None] * self.inverse / self.root[:, None]

    @property
    def cov(self) -> Array:
        """Covariance of tastes, (n_users, d, d)."""
        return self.root[:, :, None] * self.inverse * self.root[:, None]


class SharedLikelihood(NamedTuple):
    """Likelihood of (b, F) by the answers of some users, their tastes integrated out.

    Attributes
    ----------
    gain : ndarray of shape (m, m)
        Precision of F.
    shift : ndarray of shape (m,)
    cross : ndarray of shape (d, r, m)
        Precision between b and F, before the level of b.
    by_feature : ndarray of shape (d d, r r)
        Precision of b.
    by_feature_shift : ndarray of shape (d, r)
    log_det : float
    """

    gain: Array
    shift: Array
    cross: Array
    by_feature: Array
    by_feature_shift: Array
    log_det: float

    def plus(self, other: "SharedLikelihood") -> "SharedLikelihood":
        """Return the product of both likelihoods."""
        return SharedLikelihood(*map(add, self, other))


class Common(NamedTuple):
    """q of what users have in common: the whitened b, then F, as one Gaussian.

    F = mean + rootᵀ ε and b = by_feature + slope ε + rest, ε ~ N(0, I), the rest independent.

    Attributes
    ----------
    mean : ndarray of shape (m,)
    root : ndarray of shape (m, m)
    by_feature : ndarray of shape (d, r)
    by_feature_root : ndarray of shape (d r, d, r)
        Of the covariance of b given ε, rootᵀ root.
    by_feature_slope : ndarray of shape (d, m, r)
    quadratic, log_det : float
        Squared norm of the whitened mean, and the log-determinant of the precision.
    """

    mean: Array
    root: Array
    by_feature: Array
    by_feature_root: Array
    by_feature_slope: Array
    quadratic: float
    log_det: float

    @property
    def second(self) -> Array:
        """Second moments of b, averaged over inducing users, (d, d)."""
        d, r = self.by_feature.shape
        moments = self.by_feature @ self.by_feature.T
        for part in (self.by_feature_root.transpose(1, 0, 2), self.by_feature_slope):
            flat = part.reshape(d, part[0].size)
            moments += flat @ flat.T
        return moments / r

    @property
    def by_feature_cov(self) -> Array:
        """Covariance of b given ε as (r r, d d)."""
        d, r = self.by_feature.shape
        flat = self.by_feature_root.reshape(d * r, d * r)
        cov = (flat.T @ flat).reshape(d, r, d, r)
        return np.ascontiguousarray(cov.transpose(1, 3, 0, 2)).reshape(r * r, d * d)


def condition_tastes(
    table: Array, d: int, precision: Array, shift: Array, basis: Basis, features: Features
) -> tuple[Local, SharedLikelihood]:
    """Return the tastes of some users given F and b, and the likelihood of F and b.

    Parameters
    ----------
    table : ndarray of shape (n_users, n, d + m)
        Rows h in the basis and φ of the answers.
    d : int
    precision, shift : ndarray of shape (n_users, n)
        Of the factors, 0 where there is no answer.
    basis : Basis
    features : Features
        Of these users.
    """
    psi, rest = features
    root = np.sqrt(1.0 + rest[:, None] * basis.level)
    effects = table[:, :, :d] * root[:, None]
    weights = condition_groups(effects, table[:, :, d:], BatchSites(precision))
    level = times(weights.inverse, times(effects.transpose(0, 2, 1), shift))
    local = Local(root, weights.inverse, level, weights.pull)
    down = np.einsum("unm,un->m", weights.remainder, shift)
    n, r, m = *psi.shape, weights.pull.shape[2]
    cross, by_feature = np.zeros((d, r, m)), np.zeros((d * d, r * r))
    if r:
        # (Λ⁻¹ + V)⁻¹ with Λ the precision of the factors
        taste_precision = local.by_features / root[:, :, None]
        by_feature = taste_precision.reshape(n, d * d).T @ squares(psi)
        share = local.by_population / root[:, :, None]
        cross = (share.reshape(n, d * m).T @ psi).reshape(d, m, r).transpose(0, 2, 1)
    lifted = (level / root).T @ psi
    return local, SharedLikelihood(weights.gain, down, cross, by_feature, lifted, weights.log_det)


def common_posterior(whole: SharedLikelihood, basis: Basis) -> Common:
    """Return q of what users have in common, F and b, from the likelihood of all answers."""
    d, r, m = whole.cross.shape
    n, scale = d * r, np.sqrt(basis.level)
    by_feature = whole.by_feature.reshape(d, d, r, r).transpose(0, 2, 1, 3)
    precision = np.empty((n + m, n + m))
    precision[:n, :n] = (scale[:, None, None, None] * by_feature * scale[:, None]).reshape(n, n)
    precision[:n, n:] = (scale[:, None, None] * whole.cross).reshape(n, m)
    precision[n:, :n] = precision[:n, n:].T
    precision[n:, n:] = whole.gain
    shift = np.append(scale[:, None] * whole.by_feature_shift, whole.shift)
    precision = 0.5 * (precision + precision.T)
    precision.flat[:: n + m + 1] += 1.0
    inverse, log_det = inverse_cholesky(precision.T) if n + m else (precision, 0.0)
    mean = inverse.T @ (inverse @ shift)
    slope = inverse[n:, :n].reshape(m, d, r) * scale[:, None]
    return Common(
        mean=mean[n:],
        root=inverse[n:, n:],
        by_feature=scale[:, None] * mean[:n].reshape(d, r),
        by_feature_root=inverse[:n, :n].reshape(n, d, r) * scale[:, None],
        by_feature_slope=np.ascontiguousarray(slope.transpose(1, 0, 2)),
        quadratic=float(mean @ mean),
        log_det=log_det + whole.log_det,
    )


class Marginal(NamedTuple):
    """Tastes of some users under q: means, slopes in ε, covariances given ε.

    Attributes
    ----------
    mean : ndarray of shape (n_users, d)
    slope : ndarray of shape (n_users, d, m)
    cov : ndarray of shape (n_users, d, d)
    own : ndarray of shape (d, d)
        Second moments of the parts of these users' own, summed.
    quadratic : float
        Squared norm of the whitened mean of e_u, summed.
    """

    mean: Array
    slope: Array
    cov: Array
    own: Array
    quadratic: float


def marginal_tastes(local: Local, at: Common, psi: Array, by_feature_cov: Array) -> Marginal:
    """Return means, slopes and covariances of the tastes of some users under q.

    Parameters
    ----------
    local : Local
    at : Common
    psi : ndarray of shape (n_users, r)
    by_feature_cov : ndarray of shape (r r, d d)
        That of ``at``.
    """
    n, d, m = local.by_population.shape
    root = local.root
    # The weights of e_u, of variance 1 before, and then tastes
    own_mean = local.level - local.by_population @ at.mean
    own_slope, own_cov = -np.matmul(local.by_population, at.root.T), local.inverse
    mean, slope, cov = root * own_mean, root[:, :, None] * own_slope, local.cov
    r = psi.shape[1]
    if r:
        centre = psi @ at.by_feature.T
        lean = (at.by_feature_slope.reshape(d * m, r) @ psi.T).T.reshape(n, d, m)
        wide = (squares(psi) @ by_feature_cov).reshape(n, d, d)
        away, pull = local.by_features, local.pull
        own_mean, own_slope = own_mean - times(away, centre), own_slope - np.matmul(away, lean)
        own_cov = own_cov + away @ wide @ away.transpose(0, 2, 1)
        mean, slope = mean + times(pull, centre), slope + np.matmul(pull, lean)
        cov = cov + pull @ wide @ pull.transpose(0, 2, 1)
    # e's part of each user's own, where inducing users left the rest of it
    parts = own_mean / root
    own = parts.T @ parts + (own_cov / root[:, :, None] / root[:, None]).sum(axis=0)
    flat = (own_slope / root[:, :, None]).transpose(1, 0, 2).reshape(d, n * m)
    own += flat @ flat.T
    own.flat[:: d + 1] += (1.0 - 1.0 / root**2).sum(axis=0)
    return Marginal(mean, slope, cov, own, float(np.vdot(own_mean, own_mean)))


class MarginTable(NamedTuple):
    """Functions and features of the distinct margins.

    Attributes
    ----------
    heights : ndarray of shape (n_margins, d)
        Differences of the functions that tastes weigh, δh.
    features : ndarray of shape (n_margins, m)
        Whitened features of the population's utility; m = 0 where there is none.
    rest : ndarray of shape (n_margins,)
        Variance of ε.
    """

    heights: Array
    features: Array
    rest: Array

    def rotate(self, basis: Basis) -> Array:
        """Return functions in a basis, and features behind them, (n_margins, d + m)."""
        return np.hstack([self.heights @ basis.turn, self.features])


class TasteMargins(NamedTuple):
    """The margins under q, without users' tastes.

    Attributes
    ----------
    common : Common
    level : ndarray of shape (n_margins,)
        Mean of the population's utility.
    table : ndarray of shape (n_margins, d + m)
        Functions in the basis, and slopes of the population's utility.
    wide : ndarray of shape (r r, d d)
        Covariance of what features of users tell, given the population's utility.
    """

    common: Common
    level: Array
    table: Array
    wide: Array

    @classmethod
    def from_margins(cls, margins: MarginTable, basis: Basis, at: Common) -> Self:
        """Return the margins under q of what users have in common."""
        table = np.hstack([margins.heights @ basis.turn, margins.features @ at.root.T])
        return cls(at, margins.features @ at.mean, table, at.by_feature_cov)

    def moments(self, margin: NDArray[np.intp], q: Marginal) -> tuple[Array, Array]:
        """Return means and variances of margins of users, (n_users, n) each.

        Parameters
        ----------
        margin : ndarray of int of shape (n_users, n)
            Which margins.
        q : Marginal
            Tastes of these users.
        """
        rows, d = self.table[margin], q.mean.shape[1]
        high = rows[:, :, :d]
        sway = rows[:, :, d:] + np.matmul(high, q.slope)
        variance = np.einsum("und,und->un", np.matmul(high, q.cov), high)
        variance += np.einsum("unm,unm->un", sway, sway)
        return self.level[margin] + times(high, q.mean), variance


class Taste(NamedTuple):
    """The taste of one user under q.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    slope : ndarray of shape (d, m)
        In ε.
    cov : ndarray of shape (d, d)
        Given ε.
    """

    mean: Array
    slope: Array
    cov: Array


class Tastes(NamedTuple):
    """q of the tastes of the fitted users, and the conditional prior of all others.

    The population's utility deviates from its mean by rootᵀ ε, ε standard normal (m,); tastes by
    slopes in ε and by what is independent of it.

    Attributes
    ----------
    mean : ndarray of shape (n_users, d)
    cov : ndarray of shape (n_users, d, d)
        Given ε.
    slope : ndarray of shape (n_users, d, m)
    pull : ndarray of shape (n_users, d, d) or None
        Slopes of tastes in Σ_k ψ_k b_k; None without features.
    psi : ndarray of shape (n_users, r)
        Features of these users.
    prior : Covariances
    turn : ndarray of shape (d, d)
        Σ_k ψ_k b_k is turn times what it is in the basis of what follows.
    by_feature : ndarray of shape (d, r)
        Mean of b.
    by_feature_root : ndarray of shape (d r, d, r)
        Root of its covariance given ε, rootᵀ root.
    by_feature_slope : ndarray of shape (d, m, r)
    average_user : AverageUser
        Features of a user of whom none are known.
    """

    mean: Array
    cov: Array
    slope: Array
    pull: Array | None
    psi: Array
    prior: Covariances
    turn: Array
    by_feature: Array
    by_feature_root: Array
    by_feature_slope: Array
    average_user: AverageUser

    def taste_of(self, user: int, psi: Array, residual: float) -> Taste:
        """Return the taste of one user, of a negative code by features, or NaN for unknown ones."""
        if user >= 0:
            return Taste(self.mean[user], self.slope[user], self.cov[user])
        by_feature, by_slope = self.by_feature, self.by_feature_slope
        mean, slope = self.turn @ (by_feature @ psi), self.turn @ (by_slope @ psi)
        half = self.root_by_features(user, psi)
        if not np.isnan(residual):
            return Taste(
                mean, slope, self.prior.own + residual * self.prior.of_features + half.T @ half
            )
        _, residual, root = self.average_user
        cov = self.prior.own + residual * self.prior.of_features + half.T @ half
        for part in (by_feature, by_slope, self.by_feature_root.transpose(1, 0, 2)):
            by_users = self.turn @ (part @ root).reshape(len(self.turn), -1)
            cov = cov + by_users @ by_users.T
        return Taste(mean, slope, cov)

    def root_by_features(self, user: int, psi: Array) -> Array:
        """Return a root of the covariance given ε of what b tells of a user's taste, (d r, d)."""
        pull = self.turn if user < 0 or self.pull is None else self.pull[user]
        return (self.by_feature_root @ psi) @ pull.T

    def weighed_moments(
        self,
        whole: bool,
        high: Array,
        users: NDArray[np.intp],
        psi: Array | None = None,
        residual: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return moments of functions as users weigh them, h·w.

        Parameters
        ----------
        whole : bool
            Whether covariances are asked for, or variances.
        high : ndarray of shape (n, d)
        users : ndarray of int of shape (n,)
            Negative for users that were not fitted, −1 for somebody else each time.
        psi, residual : ndarray, optional
            Their features, (n, r) and (n,), the latter NaN where none are known; read for those
            alone.

        Returns
        -------
        mean : ndarray of shape (n,)
        spread : ndarray of shape (n,) or (n, n)
            Variance or covariance given ε.
        sway : ndarray of shape (n, m)
            Slopes in ε.
        """
        n = len(high)
        psi, residual = self.features_of(users, psi, residual)
        mean, sway = np.empty(n), np.empty((n, self.slope.shape[2]))
        half = np.empty((n, len(self.by_feature_root)))
        spread, blocks = np.empty(n), []
        for user, rows in _rows_by_taste(users, residual):
            taste, here = self.taste_of(user, psi[rows[0]], residual[rows[0]]), high[rows]
            mean[rows], sway[rows] = here @ taste.mean, here @ taste.slope
            spread[rows] = np.einsum("nd,nd->n", here @ taste.cov, here)
            if whole:
                half[rows] = here @ self.root_by_features(user, psi[rows[0]]).T
                if user != -1:
                    blocks.append((np.ix_(rows, rows), here @ taste.cov @ here.T))
        if not whole:
            return mean, spread, sway
        covariance = half @ half.T
        np.fill_diagonal(covariance, spread)
        for place, block in blocks:
            covariance[place] = block
        return mean, covariance, sway

    def features_of(
        self, users: NDArray[np.intp], psi: Array | None, residual: Array | None
    ) -> tuple[Array, Array]:
        """Return ψ and residual variances of the users of rows, NaN where features are unknown."""
        if psi is None or residual is None:
            psi, residual = np.zeros((len(users), self.psi.shape[1])), np.full(len(users), np.nan)
        unknown = np.isnan(residual)[:, None]
        psi = np.where(unknown, self.average_user.psi, psi)
        return np.where(users[:, None] >= 0, self.psi[np.maximum(users, 0)], psi), residual


def _rows_by_taste(users, residual):
    """Return pairs of a user and the numbers of that user's rows."""
    # Of somebody else each time all rows have one taste, but where features are known.
    single = (users == -1) & ~np.isnan(residual)
    users = np.where(single, min(users.min(initial=0), -1) - 1 - np.arange(len(users)), users)
    order = np.argsort(users, kind="stable")
    names, begin = np.unique(users[order], return_index=True)
    return zip(names.tolist(), np.split(order, begin[1:]), strict=True) if len(users) else ()


def squares(psi: Array) -> Array:
    """Return all products of two features, (n, r²)."""
    return (psi[:, :, None] * psi[:, None, :]).reshape(len(psi), -1)


def times(matrices: Array, vectors: Array) -> Array:
    """Return the products of many matrices and vectors, (n, a, b) and (n, b)."""
    return np.matmul(matrices, vectors[:, :, None])[:, :, 0]
