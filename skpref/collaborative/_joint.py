"""q of the population's utility and of everybody's taste at once, given the answers' factors.

A user's margin is g = φᵀ F + hᵀ w_u + ε: the population's utility by whitened weights F ~ N(0, I),
the user's taste w_u weighing shared functions, and what these leave, ε. Given Gaussian factors of
the margins all of F, of b, which features of users weigh, and of the w_u is one Gaussian, whose
precision is an arrow: tastes meet each other in F and b alone. With T_u, H_u and A_u the factors'
precisions and the rows h and φ of a user's answers, P_u = V_u⁻¹ + H_uᵀ T_u H_u and V_u the prior
covariance of e_u = w_u − Σ_k ψ_k b_k,

    w_u | F, b ~ N(P_u⁻¹ (s_u + V_u⁻¹ Σ_k ψ_k b_k − H_uᵀ T_u A_u F), P_u⁻¹),

and what is left once the tastes are integrated out is the precision of (b, F). All is in the basis
of tastes in which V_u is diagonal.
"""

from typing import NamedTuple

import numpy as np

from skpref._linalg import Array, inverse_blocks, inverse_cholesky
from skpref.collaborative._by_user import Block
from skpref.collaborative._people import Basis, squares


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
        """Slopes of the mean in what features tell, (n_users, d, d)."""
        return self.cov / self.variance[:, None]


class Seen(NamedTuple):
    """What the answers of some users say of (b, F), their tastes integrated out.

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

    def plus(self, other: "Seen") -> "Seen":
        """What both say."""
        return Seen(
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
        found = self.by_feature @ self.by_feature.T
        for part in (self.by_feature_root.transpose(1, 0, 2), self.by_feature_slope):
            flat = part.reshape(d, part[0].size)
            found += flat @ flat.T
        return found / r

    @property
    def by_feature_cov(self) -> Array:
        """Covariance of b given ε as (r r, d d)."""
        d, r = self.by_feature.shape
        flat = self.by_feature_root.reshape(d * r, d * r)
        cov = (flat.T @ flat).reshape(d, r, d, r)
        return np.ascontiguousarray(cov.transpose(1, 3, 0, 2)).reshape(r * r, d * d)


def look_at(block: Block, table: Array, d: int, told: tuple[Array, Array], basis: Basis):
    """Tastes of the users of a block given F and b, and what they say of these.

    Parameters
    ----------
    block : Block
    table : ndarray of shape (n, n_max, d + m)
        Rows h in the basis and φ of the answers.
    d : int
    told : (ndarray, ndarray)
        Precisions and shifts of the factors, (n, n_max), 0 where there is no answer.
    basis : Basis

    Returns
    -------
    Local, Seen
    """
    share, pulled = told
    high = table[:, :, :d]
    across = high.transpose(0, 2, 1)
    inner = np.matmul(across * share[:, None], table)
    given = inner[:, :, d:]
    shift = times(across, pulled)
    variance = basis.variance(block.users)
    root = np.sqrt(variance)
    precision = root[:, :, None] * inner[:, :, :d] * root[:, None]
    precision[:, np.arange(d), np.arange(d)] += 1.0
    inverse, log_det = inverse_blocks(precision)
    inverse = 0.5 * (inverse + inverse.transpose(0, 2, 1))
    cov = root[:, :, None] * inverse * root[:, None]
    level, by_population = times(cov, shift), np.matmul(cov, given)
    local = Local(variance, cov, level, by_population)
    n, m = len(block.users), table.shape[2] - d
    # Aᵀ (T⁻¹ + H V Hᵀ)⁻¹ A as a sum of squares: a difference would be lost to rounding where
    # answers tell much more than the prior.
    left = table[:, :, d:] - np.matmul(high, by_population)
    gain = _gram(left * np.sqrt(share)[:, :, None])
    gain += _gram(by_population / root[:, :, None])
    down = np.einsum("unm,un->m", left, pulled)
    psi = basis.psi[block.users]
    r = psi.shape[1]
    cross, by_feature = np.zeros((d, r, m)), np.zeros((d * d, r * r))
    if r:
        # (Λ⁻¹ + V)⁻¹ with Λ the precision of the factors
        seen = (np.eye(d) - inverse) / root[:, :, None] / root[:, None]
        by_feature = seen.reshape(-1, d * d).T @ squares(psi)
        share = by_population / variance[:, :, None]
        cross = (share.reshape(n, d * m).T @ psi).reshape(d, m, r).transpose(0, 2, 1)
    lifted = (level / variance).T @ psi
    return local, Seen(gain, down, cross, by_feature, lifted, float(log_det.sum()))


def common(seen: list[Seen], basis: Basis) -> Common:
    """q of what users have in common.

    Parameters
    ----------
    seen : list of Seen
        At least one.
    basis : Basis
    """
    d, r = len(basis.level), basis.psi.shape[1]
    whole = seen[0]
    for part in seen[1:]:
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
    """Tastes of the users of a block under q.

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


def _gram(rows):
    """Sum of all products of two columns, (m, m)."""
    flat = rows.reshape(rows.shape[0] * rows.shape[1], rows.shape[2])
    return flat.T @ flat


def times(matrices: Array, vectors: Array) -> Array:
    """Products of many matrices and vectors, (n, a, b) and (n, b)."""
    return np.matmul(matrices, vectors[:, :, None])[:, :, 0]
