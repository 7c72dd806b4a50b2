"""The prior of many users: the population's utility and each user's own, as an arrow.

A `skpref.gp.Prior` is conditioned on sites and then asked for its margins. Here the two are taken
apart, so that users may be at other processes: `condition_tastes` gives the tastes of some users
given what all have in common, and their answers' likelihood of that; `common` conditions it on the
sum of these; `marginal` and `TasteMargins.moments` give the margins of the same users under both.
The `Inducing` prior of the population's utility gives the features.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import (
    Array,
    inverse_blocks,
    inverse_cholesky,
    jointly_diagonal,
    symmetric_root,
)
from skpref.data import Comparisons
from skpref.likelihoods import INEQUALITY, Answers


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
    psi, rest : ndarray of shape (n_users, r) and (n_users,)
        Of the features; r = 0 and zeros without.
    """

    prior: Covariances
    turn: Array
    level: Array
    psi: Array
    rest: Array

    @classmethod
    def of(cls, prior: Covariances, features: Features | None, n_users: int) -> "Basis":
        """Return the basis in which these prior covariances are diagonal."""
        turn, level = jointly_diagonal(prior.own, prior.shared)
        if features is None:
            return cls(prior, turn, level, np.zeros((n_users, 0)), np.zeros(n_users))
        return cls(prior, turn, level, features.psi, features.rest)

    def variance(self, users: NDArray[np.intp]) -> Array:
        """Return the prior variances of e_u of some users, (n, d)."""
        return 1.0 + self.rest[users][:, None] * self.level


def squares(psi: Array) -> Array:
    """Return all products of two features, (n, r²)."""
    return (psi[:, :, None] * psi[:, None, :]).reshape(len(psi), -1)


# Doubles of the largest array of a block: it stays in the cache.
_BLOCK = 2**18


@dataclass(frozen=True, eq=False)
class UserBlock:
    """Some users and their answers, the rows filled up to the longest.

    Attributes
    ----------
    users : ndarray of int of shape (n_users,)
    rows : ndarray of int of shape (n_users, n)
        Answers of each; 0 where ``is_answer`` is False.
    is_answer : ndarray of bool of shape (n_users, n)
    """

    users: NDArray[np.intp]
    rows: NDArray[np.intp]
    is_answer: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ByUser:
    """Single duels, the user of each, and the margin of each.

    Attributes
    ----------
    n_users, n_margins : int
    user : ndarray of int of shape (n,)
    margin : ndarray of int of shape (n,)
        Row of the distinct margins.
    sign : ndarray of shape (n,)
        +1 where the winner is the first item of the margin, else −1.
    weight : ndarray of shape (n,)
    answers : Answers
    """

    n_users: int
    n_margins: int
    user: NDArray[np.intp]
    margin: NDArray[np.intp]
    sign: Array
    weight: Array
    answers: Answers

    @classmethod
    def of(cls, comparisons: Comparisons, user: NDArray[np.intp], n_users: int) -> Self:
        """Return the duels of comparisons by user, equal ones of one user counted.

        Raises
        ------
        ValueError
            If some of them are choices or rankings.
        """
        rows = comparisons.rows
        if np.any(rows.kind == INEQUALITY):
            raise ValueError(
                "got choices or rankings with users=; of several users the answers are duels. "
                "Take them apart with skpref.duels.from_rankings, or fit without users=."
            )
        row = comparisons.of_answer
        key, which = np.unique(user * len(rows) + row, return_inverse=True)
        weight = np.bincount(which, comparisons.weight).astype(np.float64)
        user, row = np.divmod(key, len(rows))
        margins = rows.margins
        answers = rows.answers.take(row)
        margin, sign = margins.index[row], margins.sign[row]
        return cls(n_users, len(margins.first), user, margin, sign, weight, answers)

    def of_users(self, users: NDArray[np.intp]) -> Self:
        """Return the answers of some users, who are numbered anew; margins keep their numbers.

        Parameters
        ----------
        users : ndarray of int
            Increasing.
        """
        rows = np.flatnonzero(np.isin(self.user, users))
        return type(self)(
            n_users=len(users),
            n_margins=self.n_margins,
            user=np.searchsorted(users, self.user[rows]),
            margin=self.margin[rows],
            sign=self.sign[rows],
            weight=self.weight[rows],
            answers=self.answers.take(rows),
        )

    @cached_property
    def copies(self) -> Array:
        """Number of equal factors of each answer, at least 1: its weight, if that is not below."""
        return np.maximum(self.weight, 1.0)

    @cached_property
    def power(self) -> Array | None:
        """Power of each of these factors, below 1 for a weight below 1; None: all are 1."""
        return np.minimum(self.weight, 1.0) if np.any(self.weight < 1.0) else None

    def pool(self, values: Array) -> Array:
        """Return the sum of values over the answers on each margin."""
        return np.bincount(self.margin, values, self.n_margins).astype(np.float64)

    def blocks(self, width: int) -> list[UserBlock]:
        """Cut the users into blocks, so that ``width`` doubles an answer fit the cache."""
        counts = np.bincount(self.user, minlength=self.n_users)
        begin = np.cumsum(counts) - counts
        ranked = np.argsort(counts, kind="stable")
        user_blocks, at = [], 0
        while at < self.n_users:
            # Users are ranked by their numbers of answers, so the last of a block has the most.
            n = min(self.n_users - at, 64)
            while n > 1 and n * max(counts[ranked[at + n - 1]], 1) * width > _BLOCK:
                n = max(n // 2, 1)
            users = ranked[at : at + n]
            longest = int(counts[users[-1]])
            place = np.arange(longest)
            is_answer = place < counts[users][:, None]
            rows = np.where(is_answer, begin[users][:, None] + place, 0)
            user_blocks.append(UserBlock(users, rows, is_answer))
            at += n
        return user_blocks


class Weighed(NamedTuple):
    """Functions as tastes weigh them, h·w, a row each.

    Attributes
    ----------
    mean : ndarray of shape (n,)
    variance : ndarray of shape (n,)
        Given ε.
    sway : ndarray of shape (n, m)
        Slopes in ε.
    """

    mean: Array
    variance: Array
    sway: Array


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
    prior : Covariances
    turn : ndarray of shape (d, d)
        Σ_k ψ_k b_k is turn times what it is in the basis of what follows.
    by_feature : ndarray of shape (d, r)
        Mean of b.
    by_feature_root : ndarray of shape (d r, d, r)
        Root of its covariance given ε, rootᵀ root.
    by_feature_slope : ndarray of shape (d, m, r)
    pull : ndarray of shape (n_users, d, d) or None
        Slopes of tastes in Σ_k ψ_k b_k; None without features.
    typical : ndarray of shape (r,)
        ψ of a user whose features are not known.
    unknown : ndarray of shape (d, d)
        Covariance of such a user's taste given ε.
    """

    mean: Array
    cov: Array
    slope: Array
    prior: Covariances
    turn: Array
    by_feature: Array
    by_feature_root: Array
    by_feature_slope: Array
    pull: Array | None
    typical: Array
    unknown: Array

    def at(
        self,
        high: Array,
        users: NDArray[np.intp],
        psi: Array | None = None,
        rest: Array | None = None,
    ) -> Weighed:
        """Return mean, variance and slopes in ε of functions as users weigh them.

        Parameters
        ----------
        high : ndarray of shape (n, d)
        users : ndarray of int of shape (n,)
            Negative for users that were not fitted, −1 for somebody else each time.
        psi, rest : ndarray, optional
            Their features, (n, r) and (n,), the latter NaN where none are known; read for those
            alone.
        """
        n, m = len(high), self.slope.shape[2]
        mean, variance, sway = np.zeros(n), np.empty(n), np.zeros((n, m))
        for user, rows in _rows_by_user(users):
            here = high[rows]
            if user >= 0:
                mean[rows] = here @ self.mean[user]
                variance[rows] = _quadratic_forms(here, self.cov[user])
                sway[rows] = here @ self.slope[user]
        _, rest, unknown = self.features_of(n, psi, rest)
        rows = np.flatnonzero(unknown & (users < 0))
        if len(rows):  # all have the same ψ
            lean = high[rows] @ self.turn
            mean[rows] = lean @ (self.by_feature @ self.typical)
            sway[rows] = lean @ (self.by_feature_slope @ self.typical)
            variance[rows] = _quadratic_forms(high[rows], self.unknown)
        rows = np.flatnonzero(~unknown & (users < 0))
        if psi is not None and len(rows):
            here = high[rows]
            both = _products(here @ self.turn, psi[rows])
            mean[rows] = both @ self.by_feature.ravel()
            sway[rows] = both @ self._flat_slope
            wide = _quadratic_forms(here, self.prior.own)
            wide += rest[rows] * _quadratic_forms(here, self.prior.of_features)
            variance[rows] = wide + np.square(both @ self._flat_root.T).sum(axis=1)
        return Weighed(mean, variance, sway)

    def across(
        self,
        high: Array,
        users: NDArray[np.intp],
        psi: Array | None = None,
        rest: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return the covariances of functions as users weigh them, of one user and of two.

        Parameters
        ----------
        high, users, psi, rest
            As in `at`.

        Returns
        -------
        own, between : ndarray of shape (n, n)
            Given ε: where both are one user's, and where they are two users'.
        sway : ndarray of shape (n, m)
            Slopes in ε.
        """
        n = len(high)
        values = self.at(high, users, psi, rest)
        own, between = np.diag(values.variance), np.zeros((n, n))
        psi, rest, unknown = self.features_of(n, psi, rest)
        for user, rows in _rows_by_user(users):
            if user != -1:
                cov = self.cov[user] if user >= 0 else self._new_user_cov(rest[rows[0]])
                own[np.ix_(rows, rows)] = high[rows] @ cov @ high[rows].T
        if self.pull is not None:
            lean = high @ self.turn
            for user, rows in _rows_by_user(users):
                if user >= 0:
                    lean[rows] = high[rows] @ self.pull[user]
            unknown = unknown & (users < 0)
            half = np.empty((n, self.by_feature.size))
            half[~unknown] = _products(lean[~unknown], psi[~unknown]) @ self._flat_root.T
            half[unknown] = lean[unknown] @ (self.by_feature_root @ self.typical).T
            between = half @ half.T
            for user, rows in _rows_by_user(users):
                if user < -1 and not unknown[rows[0]]:
                    own[np.ix_(rows, rows)] += between[np.ix_(rows, rows)]
        return own, between, values.sway

    def features_of(
        self, n: int, psi: Array | None, rest: Array | None
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return ψ and residual variances of n rows, and which rows have the typical ψ."""
        if psi is None or rest is None:
            return np.tile(self.typical, (n, 1)), np.full(n, np.nan), np.ones(n, dtype=bool)
        unknown = np.isnan(rest)
        return np.where(unknown[:, None], self.typical, psi), rest, unknown

    def _new_user_cov(self, rest):
        """Return the covariance of an unfitted user's taste given those of the inducing users."""
        if np.isnan(rest):
            return self.unknown
        return self.prior.own + rest * self.prior.of_features

    @property
    def _flat_root(self):
        n = self.by_feature.size
        return self.by_feature_root.reshape(n, n)

    @property
    def _flat_slope(self):
        d, m, r = self.by_feature_slope.shape
        return self.by_feature_slope.transpose(0, 2, 1).reshape(d * r, m)


def _rows_by_user(users):
    """Return pairs of a user and the numbers of that user's rows."""
    order = np.argsort(users, kind="stable")
    names, begin = np.unique(users[order], return_index=True)
    return zip(names.tolist(), np.split(order, begin[1:]), strict=True) if len(users) else ()


def _products(lean, psi):
    """Return the products of weights and features, (n, d r)."""
    n, d = lean.shape
    return (lean[:, :, None] * psi[:, None]).reshape(n, d * psi.shape[1])


def _quadratic_forms(high, cov):
    return np.einsum("nd,nd->n", high @ cov, high)


class Local(NamedTuple):
    """Tastes of the users of a block given F and b.

    Attributes
    ----------
    variance : ndarray of shape (n_users, d)
        Prior variances of e_u.
    cov : ndarray of shape (n_users, d, d)
    level : ndarray of shape (n_users, d)
        Mean where F and b are zero.
    by_population : ndarray of shape (n_users, d, m)
        Slopes of the mean in −F; those in Σ_k ψ_k b_k are `pull`.
    """

    variance: Array
    cov: Array
    level: Array
    by_population: Array

    @property
    def pull(self) -> Array:
        """Slopes of the mean in the part that features explain, (n_users, d, d)."""
        return self.cov / self.variance[:, None]


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
        return SharedLikelihood(
            gain=self.gain + other.gain,
            shift=self.shift + other.shift,
            cross=self.cross + other.cross,
            by_feature=self.by_feature + other.by_feature,
            by_feature_shift=self.by_feature_shift + other.by_feature_shift,
            log_det=self.log_det + other.log_det,
        )


class Common(NamedTuple):
    """q of what users have in common: F and b.

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
    block: UserBlock, table: Array, d: int, factors: tuple[Array, Array], basis: Basis
):
    """Return the tastes of a block's users given F and b, and the likelihood of F and b.

    Parameters
    ----------
    block : UserBlock
    table : ndarray of shape (n, n_max, d + m)
        Rows h in the basis and φ of the answers.
    d : int
    factors : (ndarray, ndarray)
        Precisions and shifts of the factors, (n, n_max), 0 where there is no answer.
    basis : Basis

    Returns
    -------
    Local, SharedLikelihood
    """
    share, pulled = factors
    high = table[:, :, :d]
    across = high.transpose(0, 2, 1)
    inner = np.matmul(across * share[:, None], table)
    cross_information = inner[:, :, d:]
    shift = times(across, pulled)
    variance = basis.variance(block.users)
    root = np.sqrt(variance)
    precision = root[:, :, None] * inner[:, :, :d] * root[:, None]
    precision[:, np.arange(d), np.arange(d)] += 1.0
    inverse, log_det = inverse_blocks(precision)
    inverse = 0.5 * (inverse + inverse.transpose(0, 2, 1))
    cov = root[:, :, None] * inverse * root[:, None]
    level, by_population = times(cov, shift), np.matmul(cov, cross_information)
    local = Local(variance, cov, level, by_population)
    n, m = len(block.users), table.shape[2] - d
    # Aᵀ (T⁻¹ + H V Hᵀ)⁻¹ A as a sum of squares: a difference would be lost to rounding where
    # answers tell much more than the prior.
    population_residual = table[:, :, d:] - np.matmul(high, by_population)
    gain = _gram(population_residual * np.sqrt(share)[:, :, None])
    gain += _gram(by_population / root[:, :, None])
    down = np.einsum("unm,un->m", population_residual, pulled)
    psi = basis.psi[block.users]
    r = psi.shape[1]
    cross, by_feature = np.zeros((d, r, m)), np.zeros((d * d, r * r))
    if r:
        # (Λ⁻¹ + V)⁻¹ with Λ the precision of the factors
        taste_precision = (np.eye(d) - inverse) / root[:, :, None] / root[:, None]
        by_feature = taste_precision.reshape(-1, d * d).T @ squares(psi)
        share = by_population / variance[:, :, None]
        cross = (share.reshape(n, d * m).T @ psi).reshape(d, m, r).transpose(0, 2, 1)
    lifted = (level / variance).T @ psi
    return local, SharedLikelihood(gain, down, cross, by_feature, lifted, float(log_det.sum()))


def common(likelihoods: list[SharedLikelihood], basis: Basis) -> Common:
    """Return q of what users have in common, F and b, from the likelihoods of all teams.

    Parameters
    ----------
    likelihoods : list of SharedLikelihood
        At least one.
    basis : Basis
    """
    d, r = len(basis.level), basis.psi.shape[1]
    whole = likelihoods[0]
    for part in likelihoods[1:]:
        whole = whole.plus(part)
    m, n = len(whole.shift), d * r
    scale = np.sqrt(basis.level)
    precision = np.zeros((n + m, n + m))
    shift = np.empty(n + m)
    precision[n:, n:], shift[n:] = whole.gain, whole.shift
    if r:
        by_feature = whole.by_feature.reshape(d, d, r, r).transpose(0, 2, 1, 3)
        by_feature = scale[:, None, None, None] * by_feature * scale[:, None]
        precision[:n, :n] = by_feature.reshape(n, n)
        cross = scale[:, None, None] * whole.cross
        precision[:n, n:] = cross.reshape(n, m)
        precision[n:, :n] = precision[:n, n:].T
        shift[:n] = (scale[:, None] * whole.by_feature_shift).ravel()
    precision = 0.5 * (precision + precision.T)
    precision.flat[:: n + m + 1] += 1.0
    inverse, log_det = inverse_cholesky(precision.T) if n + m else (precision, 0.0)
    mean = inverse.T @ (inverse @ shift)
    root = inverse[:n, :n].reshape(n, d, r) * scale[:, None]
    slope = inverse[n:, :n].reshape(m, d, r) * scale[:, None]
    return Common(
        mean=mean[n:],
        root=inverse[n:, n:],
        by_feature=scale[:, None] * mean[:n].reshape(d, r),
        by_feature_root=root,
        by_feature_slope=np.ascontiguousarray(slope.transpose(1, 0, 2)),
        quadratic=float(mean @ mean),
        log_det=log_det + whole.log_det,
    )


class Marginal(NamedTuple):
    """Tastes of the users of a block under q: means, slopes in ε, covariances given ε.

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


def marginal(local: Local, at: Common, psi: Array, by_feature_cov: Array) -> Marginal:
    """Return means, slopes and covariances of the tastes of a block's users under q.

    Parameters
    ----------
    local : Local
    at : Common
    psi : ndarray of shape (n_users, r)
    by_feature_cov : ndarray of shape (r r, d d)
        That of ``at``.
    """
    n, d, m = local.by_population.shape
    r = psi.shape[1]
    mean = local.level - local.by_population @ at.mean
    slope = -np.matmul(local.by_population, at.root.T)
    cov, own_cov = local.cov, local.cov
    own_mean, own_slope = mean, slope
    if r:
        centre = psi @ at.by_feature.T
        lean = (at.by_feature_slope.reshape(d * m, r) @ psi.T).T.reshape(n, d, m)
        wide = (squares(psi) @ by_feature_cov).reshape(n, d, d)
        pull = local.pull
        away = pull - np.eye(d)
        mean, slope = mean + times(pull, centre), slope + np.matmul(pull, lean)
        own_mean, own_slope = mean - centre, slope - lean
        cov = cov + pull @ wide @ pull.transpose(0, 2, 1)
        own_cov = own_cov + away @ wide @ away.transpose(0, 2, 1)
    # e's part of each user's own, where inducing users left the rest of it
    share = 1.0 / local.variance
    parts = share * own_mean
    own = parts.T @ parts + (share[:, :, None] * own_cov * share[:, None]).sum(axis=0)
    flat = (share[:, :, None] * own_slope).transpose(1, 0, 2).reshape(d, n * m)
    own += flat @ flat.T
    own.flat[:: d + 1] += (1.0 - share).sum(axis=0)
    return Marginal(mean, slope, cov, own, float(np.vdot(own_mean, share * own_mean)))


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

    def turned(self, basis: Basis) -> Array:
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
    def of(cls, margins: MarginTable, basis: Basis, at: Common) -> Self:
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


def _gram(rows):
    """Return the sums of all products of two columns, (m, m)."""
    flat = rows.reshape(rows.shape[0] * rows.shape[1], rows.shape[2])
    return flat.T @ flat


def times(matrices: Array, vectors: Array) -> Array:
    """Return the products of many matrices and vectors, (n, a, b) and (n, b)."""
    return np.matmul(matrices, vectors[:, :, None])[:, :, 0]
