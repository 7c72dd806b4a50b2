"""The posterior of many users' utilities."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import (
    BLOCK,
    Array,
    RandomLike,
    Recorded,
    Summarised,
    check_shapes,
    floor_variance,
    make_generator,
    symmetric_root,
)
from skpref.collaborative._fit import Functions
from skpref.collaborative._tastes import Tastes
from skpref.data import ParsedX, Reader, first_wins, gather_features
from skpref.kernels import kernel_values
from skpref.likelihoods import Likelihood


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CollaborativePosterior(Recorded, Summarised, ABC):
    """Posterior of the utilities of many users, as a Gaussian.

    `of` says which users are meant. Without it all methods speak of somebody who was not fitted:
    the means are the population's, the variances hold how much users differ. Where users have
    features, both are averages over those of the fitted users.

    Attributes
    ----------
    kernel : Kernel
        Prior covariance of the population's utility.
    likelihood : Likelihood
    anchors : ndarray of shape (m, n_features)
        Inducing points.
    whiten : ndarray of shape (m, m)
        Inverse of the Cholesky factor of their covariance.
    reader : Reader
        How items are read, as in `Posterior`.
    asked : tuple or None
        Who is meant, one a row, as `of` was told.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.collaborative import CollaborativePreferenceRegressor
    >>> duels = np.array([[[0.0], [1.0]], [[1.0], [2.0]], [[0.0], [2.0]]] * 2)
    >>> model = CollaborativePreferenceRegressor(optimizer=None)
    >>> model = model.fit(duels, [0, 0, 0, 1, 1, 1], users=["ann"] * 3 + ["bob"] * 3)
    >>> ends = [[0.0], [2.0]]
    >>> model.posterior_.of(np.array([0, 0])).mean(ends).round(1)  # ann's
    array([-0.9,  0.9])
    >>> model.posterior_.of(np.array([1, 1])).mean(ends).round(1)  # bob's
    array([ 0.9, -0.9])
    """

    # Variance of what a new group of answers adds to the utility of an item: there are none.
    effect_variance: ClassVar[float] = 0.0

    kernel: Kernel
    likelihood: Likelihood
    anchors: Array
    whiten: Array
    reader: Reader
    asked: tuple[NDArray[np.intp], Array | None, Array | None] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(map(str, self._facts().values()))}>"

    def check_loaded_fields(self) -> None:
        """Raise ValueError unless all users have finite moments, see `Fields`."""
        sizes = check_shapes(
            anchors=(self.anchors, "m c"), whiten=(self.whiten, "m m"), **self._shapes()
        )
        if sizes["c"] != self.reader.n_columns:
            raise ValueError(f"anchors have {sizes['c']} columns for {self.reader.n_columns}")
        self.likelihood.check()
        users = np.array([0, sizes["u"] - 1, -1, -2])
        ends = (np.repeat(self.anchors[[k]], len(users), axis=0) for k in (0, -1))
        if not np.all(np.isfinite(self.of(users)._moments(*ends))):
            raise ValueError("a posterior of users gives no finite moments of a duel")

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of the users that were fitted."""

    @abstractmethod
    def _shapes(self) -> dict[str, tuple[Array | None, str]]:
        """Return further arrays and their axes: u users, r features of theirs, m anchors."""

    def _facts(self):
        asked = "somebody who was not fitted"
        if self.asked is not None:
            asked = f"{len(self.asked[0])} rows, each of its user"
        m, n_features = self.anchors.shape
        return {
            "kernel": self.kernel,
            "likelihood": self.likelihood,
            "inducing points": f"{m} inducing points of {n_features} columns",
            "of": f"of {asked}",
        }

    def of(
        self, users: NDArray[np.intp], psi: Array | None = None, rest: Array | None = None
    ) -> Self:
        """The posterior for these users: row i of any input is about user i.

        Parameters
        ----------
        users : ndarray of int of shape (n,)
            Codes; of users that were not fitted −2, −3, …, and −1 for somebody else each time.
        psi, rest : ndarray, optional
            Their features as inducing users see them; the latter is NaN where none are known.
        """
        return replace(self, asked=(users, psi, rest))

    # -- moments -------------------------------------------------------------------------

    def mean(self, X: Any) -> Array:
        """Posterior mean utility, shape (n,)."""
        return self._moments(self.check_items(X))[0]

    def var(self, X: Any) -> Array:
        """Posterior variance of the utility, shape (n,)."""
        return self._moments(self.check_items(X))[1]

    def cov(self, X: Any) -> Array:
        """Posterior covariance of the utilities, shape (n, n)."""
        X = self.check_items(X)
        return self._cov(X, None)

    def margin(self, A: Any, B: Any) -> tuple[Array, Array]:
        """Mean and variance of f(a) − f(b), without observation noise, for pairs of rows."""
        return self._moments(*self._sides(A, B))

    def margin_cov(self, A: Any, B: Any) -> Array:
        """Covariance of the margins f(a_i) − f(b_i), shape (n, n)."""
        return self._cov(*self._sides(A, B))

    def sample(self, X: Any, n: int = 1, rng: RandomLike = None) -> Array:
        """Joint draws of the utilities, shape (n_items, n)."""
        X = self.check_items(X)
        return _draw_normal(self._moments(X)[0], self._cov(X, None), n, rng)

    def sample_margins(self, A: Any, B: Any, n: int = 1, rng: RandomLike = None) -> Array:
        """Joint draws of the margins f(a_i) − f(b_i), both as one user sees them, (n_pairs, n)."""
        A, B = self._sides(A, B)
        return _draw_normal(self._moments(A, B)[0], self._cov(A, B), n, rng)

    # -- probabilities -------------------------------------------------------------------

    def answer_mean(self, A: Any, B: Any) -> Array:
        """Compute the mean of the margins that answers are about, for pairs of rows, (n,)."""
        return self.margin(A, B)[0]

    def answer_utilities(self, query: ParsedX) -> Array:
        """Compute the mean utilities of the items in answers about sets, (n_sets, k)."""
        return gather_features(self.mean(query), query.pairs)

    def win_probability(self, A: Any, B: Any, order: ArrayLike = 0) -> Array:
        """P(a beats b), the judge's noise included, for pairs of rows, shape (n,)."""
        return first_wins(np.exp(self.outcome_log_proba(A, B, order)))

    def outcome_log_proba(self, A: Any, B: Any, order: ArrayLike = 1) -> Array:
        """Log-probabilities of the outcomes of duels, observation noise included.

        Parameters
        ----------
        A, B : array-like of shape (n, n_features)
        order : int or array-like of shape (n,), default=1
            Who is shown first, where the likelihood has an order effect: 1 a, -1 b, 0 neither.

        Returns
        -------
        ndarray of shape (n, n_outcomes)
            Columns "second won", "tie" where there may be any, and "first won".
        """
        mean, variance = self.margin(A, B)
        if self.likelihood.uses_order:
            return self.likelihood.outcome_log_proba(mean, variance, np.asarray(order))
        return self.likelihood.outcome_log_proba(mean, variance)

    # -- helpers -------------------------------------------------------------------------

    def check_items(self, X: Any) -> Array:
        """Items as a finite float array of the right shape."""
        return self.reader.items(X)

    def _sides(self, A, B):
        """Return the rows of both sides of duels; ValueError where their numbers differ."""
        A, B = self.reader.sides(A, B)
        if len(A) != len(B):
            raise ValueError(f"A and B must have equally many rows, got {len(A)} and {len(B)}.")
        return A, B

    def _features(self, A, B):
        """Return whitened features of items or of margins, and prior variances."""
        phi, prior = kernel_values(self.kernel, A, self.anchors), self.kernel.diag(A)
        if B is not None:
            phi = phi - kernel_values(self.kernel, B, self.anchors)
            prior = (
                prior + self.kernel.diag(B) - 2.0 * kernel_values(self.kernel, A, B, aligned=True)
            )
        return phi @ self.whiten.T, prior

    @abstractmethod
    def _moments(self, A: Array, B: Array | None = None) -> tuple[Array, Array]:
        """Return means and variances of utilities, or of margins."""

    @abstractmethod
    def _cov(self, A: Array, B: Array | None) -> Array:
        """Return covariances of utilities, or of margins."""

    def _prior(self, A, B):
        """Return prior covariances of the population's utilities of A, or of A less B."""
        if B is None:
            return kernel_values(self.kernel, A)
        n, K = len(A), kernel_values(self.kernel, np.concatenate([A, B]))
        return K[:n, :n] + K[n:, n:] - K[:n, n:] - K[n:, :n]

    def _users_of_rows(self, rows, n):
        """Return codes and features of the users of some rows."""
        if self.asked is None:
            return np.full(n, -2), None, None
        return tuple(None if part is None else part[rows] for part in self.asked)

    def _check_rows(self, n):
        """Raise ValueError where the rows are not as many as the users that they are about."""
        if self.asked is not None and len(self.asked[0]) != n:
            raise ValueError(
                f"{n} rows were asked about for {len(self.asked[0])} users: one user a row. Sets "
                "of several items are taken apart into duels where there are users."
            )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TastesPosterior(CollaborativePosterior):
    """The population's utility and tastes are Gaussian: f_u(x) = f(x) + Σ_d w_ud h_d(x) + a rest.

    Attributes
    ----------
    functions : Functions
        The functions h.
    taste_variance : float
        Prior variance of a user's own utility, in units of the kernel.
    shared : float
        The part of it that features of users tell.
    centre, root : ndarray of shape (m,) and (m, m), or None
        q of the population's utility: mean, and root of the covariance, rootᵀ root.
    tastes : Tastes
    """

    functions: Functions
    taste_variance: float
    shared: float
    centre: Array | None
    root: Array | None
    tastes: Tastes

    @property
    def n_users(self) -> int:
        return len(self.tastes.mean)

    def _shapes(self):
        axes, spare = self.functions
        tastes = self.tastes
        own, shared = tastes.prior
        typical = tastes.average_user
        return {
            "axes of functions": (axes, "m d"),
            "spare functions": (spare, "m k"),
            "centre": (self.centre, "m"),
            "root": (self.root, "p m"),
            "mean of tastes": (tastes.mean, "u d"),
            "covariance of tastes": (tastes.cov, "u d d"),
            "slope of tastes": (tastes.slope, "u d p"),
            "pull of tastes": (tastes.pull, "u d d"),
            "features of users": (tastes.psi, "u r"),
            "prior of own tastes": (own, "d d"),
            "prior of shared tastes": (shared, "d d"),
            "turn": (tastes.turn, "d d"),
            "slope by features": (tastes.by_feature, "d r"),
            "root by features": (tastes.by_feature_root, "d*r d r"),
            "cross slope by features": (tastes.by_feature_slope, "d p r"),
            "features of the average user": (typical.psi, "r"),
            "root of the average user": (typical.root, "r q"),
        }

    def _moments(self, A, B=None):
        """Return means and variances, computed in blocks of rows."""
        self._check_rows(len(A))
        tastes = self.tastes
        step = max(BLOCK // max(len(self.anchors), tastes.by_feature.size), 1)
        mean, variance = np.empty((2, len(A)))
        for start in range(0, len(A), step):
            rows = slice(start, start + step)
            phi, prior = self._features(A[rows], None if B is None else B[rows])
            asked = self._users_of_rows(rows, len(phi))
            mean[rows], spread, slopes = tastes.weighed_moments(
                False, phi @ self.functions.axes, *asked
            )
            spare = phi @ self.functions.spare
            residual_variance = floor_variance(prior - np.einsum("nm,nm->n", phi, phi), 0.0)
            spread += self.taste_variance * residual_variance + np.einsum("nk,nk->n", spare, spare)
            if self.centre is not None and self.root is not None:
                mean[rows] += phi @ self.centre
                spread += residual_variance
                slopes += phi @ self.root.T
            variance[rows] = spread + np.einsum("nm,nm->n", slopes, slopes)
        return mean, variance

    def _cov(self, A, B):
        self._check_rows(len(A))
        phi, _ = self._features(A, B)
        high, spared = phi @ self.functions.axes, phi @ self.functions.spare
        unexplained = self._prior(A, B) - phi @ phi.T
        users, *features = self._users_of_rows(slice(None), len(phi))
        _, covariance, sway = self.tastes.weighed_moments(True, high, users, *features)
        psi = self.tastes.features_of(users, *features)[0]
        alike = self.shared / self.taste_variance * (psi @ psi.T)  # of two users' tastes
        residual_covariance = self.taste_variance * unexplained + spared @ spared.T
        covariance += np.where(match_users(users), 1.0, alike) * residual_covariance
        if self.root is not None:
            sway = sway + phi @ self.root.T
            covariance += unexplained
        covariance += sway @ sway.T
        return 0.5 * (covariance + covariance.T)


def match_users(users: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which two rows are about one user; −1 is another user each time."""
    return (users[:, None] == users) & ((users != -1) | np.eye(len(users), dtype=bool))


def _draw_normal(mean, cov, n, rng):
    """Return n draws, in columns, of a normal of this mean and covariance."""
    root = symmetric_root(cov)
    return mean[:, None] + root @ make_generator(rng).standard_normal((root.shape[1], n))
