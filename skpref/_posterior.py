"""The posterior of the utility: an equal mixture of Gaussian processes of one covariance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skpref._asked import item_pairs
from skpref._components import Components, stacked
from skpref._joint import Joint
from skpref._linalg import Array, eigen_root
from skpref._mixture import defended, mixture_cdf, mixture_quantile
from skpref._pairs import pair_moments
from skpref._parameters import check_number
from skpref._paths import SamplePaths, draw_weights
from skpref._random import RandomLike, generator_of
from skpref._set_probabilities import choice_proba
from skpref._sets import consecutive
from skpref.kernels import contracted_input_gradient, diag_gradient
from skpref.likelihoods import sign_proba


@dataclass(frozen=True, eq=False)
class Posterior(Components):
    """Posterior of the utility f given duels; nothing else computes a mean or a variance.

    Component s has mean k(·, Z) w_s, and all share the covariance k − k(·, Z) D Dᵀ k(Z, ·).
    One component is a Gaussian approximation (Laplace, EP); many, one a draw of the noisy
    margins, are the skew GP [1]_, whose low-variance estimators (eq. 5) are the mixture's
    plain formulas; only probabilities of duels have one component more (see
    `win_probability`).

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Prior covariance.
    likelihood : Likelihood
        Probability of an answer given the margin, such as `Probit`.
    anchors : ndarray of shape (n_anchors, n_features)
        Z.
    weights : ndarray of shape (n_anchors, n_components)
        Columns w_s.
    factor : ndarray of shape (n_anchors, rank)
        D.
    feature_names : ndarray of shape (n_features,), default=None
        Columns that a DataFrame of items must have, in this order.
    table : ItemTable, default=None
        Items that may be asked for by their names, or positions.
    who : Who, default=None
        Codes of the ids of items, where one column says who they are.
    utilities : Utilities, default=None
        Covariance of the anchors, where conditioning left it; not pickled.

    Notes
    -----
    Utilities have the prior's units: only the ratio of kernel amplitude to noise variance is
    identified by duels. Arguments are items: an array or DataFrame of shape (n, n_features), an
    ItemTable, or names or integer positions in ``table``, of shape (n,). Means, variances,
    probabilities and quantiles are found in blocks of rows, in about 150 MiB however many there
    are (plus the answer); covariances, joint draws and single components are whole arrays.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> duels = np.array([[[2.0], [1.0]], [[1.0], [0.0]]])
    >>> posterior = PairwisePreferenceRegressor(optimizer=None).fit(duels).posterior_
    >>> posterior.mean([[0.0], [2.0]]).round(2)
    array([-0.78,  0.78])
    >>> posterior.win_probability([[2.0]], [[0.0]]).round(2)
    array([0.96])
    """

    # -- moments -------------------------------------------------------------------------

    def margin(self, A: Any, B: Any) -> tuple[Array, Array]:
        """Mean and variance of f(a) − f(b), without observation noise, for pairs of rows.

        Parameters
        ----------
        A, B : array-like of shape (n, n_features)

        Returns
        -------
        mean, variance : ndarray of shape (n,)
        """

        def moments(means, variance, _):
            spread = means.var(axis=1) if means.shape[1] > 1 else 0.0
            return np.stack([means.mean(axis=1), variance + spread], axis=1)

        mean, variance = self._by_pairs(A, B, moments, (0, 2)).T
        return mean, variance

    def component_margins(self, A: Any, B: Any) -> tuple[Array, Array]:
        """Means (n, n_components) and the shared variance (n,) of f(a) − f(b)."""
        blocks = list(pair_moments(self, *self._pairs(A, B)))
        means = stacked([block.means for block in blocks], (0, self.n_components))
        return means, stacked([block.variance for block in blocks], (0,))

    def margin_cov(self, A: Any, B: Any) -> Array:
        """Covariance of the margins f(a_i) − f(b_i), shape (n, n)."""
        A, B = self._pairs(A, B)
        both = self.cov(np.concatenate([A, B]))
        n = len(A)
        return both[:n, :n] + both[n:, n:] - both[:n, n:] - both[n:, :n]

    def joint_with(self, item: ArrayLike) -> Joint:
        """Joint moments with one fixed item of shape (n_features,), and their derivatives."""
        fixed = self.check_items(np.asarray(item)[None])[0]
        return Joint(self.kernel, self.anchors, self.weights, self.factor, fixed)

    # -- probabilities -------------------------------------------------------------------

    def win_probability(
        self, A: Any, B: Any, noise: bool = True, log: bool = False, order: ArrayLike = 0
    ) -> Array:
        """P(a beats b) for pairs of rows, shape (n,).

        Parameters
        ----------
        A, B : array-like of shape (n, n_features)
        noise : bool, default=True
            Probability of winning a noisy duel; False: that f(a) > f(b).
        log : bool, default=False
            Return its natural logarithm, finite far in the tails.
        order : int or array-like of shape (n,), default=0
            Who is shown first, where the likelihood has an order effect: 1 a, -1 b, 0 neither.

        Notes
        -----
        The average over n > 1 draws cannot tell probabilities below 1/n: the logarithm of what no
        draw speaks for is that of one draw's far tail. So a Gaussian of the mixture's mean and
        variance counts as one component more (a defensive mixture: Hesterberg, Technometrics
        1995). It moves no probability by more than 1/(n + 1), the less the more draws, and the
        two outcomes still sum to 1. `cdf` and `quantile` are of the draws alone.
        """

        def of(mean, variance, order):
            if not noise:
                return sign_proba(mean, variance, log=log)
            return self._outcomes(mean, variance, order, log)[..., -1]

        return self._by_pairs(A, B, lambda m, v, o: defended(of, m, v, o, log), (0,), order)

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
        of, empty = self._outcomes, (0, self.likelihood.n_outcomes)
        return self._by_pairs(A, B, lambda m, v, o: defended(of, m, v, o, True), empty, order)

    def choice_proba(self, sets: Any, order: ArrayLike = 1, log: bool = False) -> Array:
        """P(each item is the best of its set as a judge sees them), noise included.

        Parameters
        ----------
        sets : array-like of shape (n_sets, k, n_features)
        order : int or array-like of shape (n_sets,), default=1
            1: the first of the set is shown first, 0: none is.
        log : bool, default=False
            Return its natural logarithm.

        Returns
        -------
        ndarray of shape (n_sets, k)
            Rows sum to one.

        Notes
        -----
        Of up to four items exact. Of five or more by quasi-random points: with one component off
        by 5e-5 at root mean square and 1e-3 at worst, with 200 or 1000 draws by 2e-5 and 1.1e-4
        (5 to 10 items, random means and covariances; more where covariances are singular). The
        same posterior gives the same numbers. With 1000 draws a set of six takes some 0.05 s.
        """
        sets = np.asarray(sets, dtype=np.float64)
        if sets.ndim != 3 or sets.shape[1] < 2:
            raise ValueError(f"Sets must have shape (n_sets, k, n_features), got {sets.shape}.")
        items = self.check_items(sets.reshape(-1, sets.shape[2]))
        return choice_proba(self, items, consecutive(*sets.shape[:2]), order, log)

    def _outcomes(self, mean, variance, order, log=True):
        of = self.likelihood.outcome_log_proba if log else self.likelihood.outcome_proba
        return of(mean, variance, order) if self.likelihood.uses_order else of(mean, variance)

    def cdf(self, X: Any, c: ArrayLike) -> Array:
        """P(f(x) ≤ c), shape (n,); ``c`` is a number or of shape (n,)."""
        X = self.check_items(X)
        c = np.broadcast_to(np.asarray(c, dtype=np.float64), (len(X),))
        blocks = zip(self.blocks(X), self.blocks(c), strict=True)
        return stacked([mixture_cdf(at, *self._mixture(rows)) for rows, at in blocks], (0,))

    def quantile(self, X: Any, q: float | Sequence[float]) -> Array:
        """Quantile of f(x), shape (n,), or (n, n_quantiles) for a sequence ``q`` in (0, 1).

        A bracketed root of the mixture's distribution function, the bracket of [1]_ (Alg. 2).
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or not levels.size or not np.all((levels > 0.0) & (levels < 1.0)):
            raise ValueError(f"q must be a number or a sequence of numbers in (0, 1), got {q}.")
        every = np.atleast_1d(levels)

        def of_block(rows):
            mixture = self._mixture(rows)
            return np.stack([mixture_quantile(level, *mixture) for level in every], axis=1)

        found = stacked(
            [of_block(rows) for rows in self.blocks(self.check_items(X))], (0, len(every))
        )
        return found[:, 0] if levels.ndim == 0 else found

    def credible_interval(self, X: Any, level: float = 0.95) -> Array:
        """Central interval that holds f(x) with probability ``level``, shape (n, 2)."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie in (0, 1), got {level}.")
        return self.quantile(X, [0.5 - 0.5 * level, 0.5 + 0.5 * level])

    # -- draws ---------------------------------------------------------------------------

    def sample(self, X: Any, n: int = 1, rng: RandomLike = None) -> Array:
        """Joint draws of the utilities of the items, shape (n_items, n).

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
        n : int, default=1
            Number of draws.
        rng : int, RandomState or Generator, default=None
        """
        check_number("n", n, low=1, integer=True)
        X, rng = self.check_items(X), generator_of(rng)
        cross = self.cross(X)
        root = eigen_root(self.shared_cov(X, cross))
        means = cross @ self.weights[:, rng.integers(self.n_components, size=n)]
        return means + root @ rng.standard_normal((root.shape[1], n))

    def sample_paths(self, n: int = 1, rng: RandomLike = None) -> SamplePaths:
        """Draws of the whole function, for Thompson sampling.

        Random Fourier features of the prior corrected pathwise [2]_ for RBF and Matérn kernels
        (on all or on chosen columns; sums, products and whole powers of them and constants); for
        any other kernel exact draws that are conditioned on the values already asked for.

        Returns
        -------
        SamplePaths
            Callable: items (m, n_features) to utilities (m, n); its ``value_and_gradient`` also
            gives their gradients.

        References
        ----------
        .. [2] Wilson et al., "Efficiently sampling functions from Gaussian process
           posteriors", ICML 2020.
        """
        check_number("n", n, low=1, integer=True)
        rng = generator_of(rng)
        weights = self.weights[:, rng.integers(self.n_components, size=n)]
        return SamplePaths(self, draw_weights(self, weights, rng), rng)

    def hallucinate(self, rng: RandomLike = None) -> "Posterior":
        """One component, drawn at random: an ordinary GP given one draw of the margins [1]_."""
        s = int(generator_of(rng).integers(self.n_components))
        return replace(self, weights=self.weights[:, s : s + 1])

    # -- input gradients -----------------------------------------------------------------

    def mean_gradient(self, X: Any) -> Array:
        """Gradient of `mean` with respect to the items, shape (n, n_features)."""
        X = self.check_items(X)
        centre = np.broadcast_to(self.weights.mean(axis=1), (len(X), len(self.anchors)))
        return contracted_input_gradient(self.kernel, X, self.anchors, centre)

    def var_gradient(self, X: Any) -> Array:
        """Gradient of `var` with respect to the items, shape (n, n_features)."""
        X = self.check_items(X)
        cross = self.cross(X)
        pull = -2.0 * (cross @ self.factor) @ self.factor.T
        if self.n_components > 1:
            spread = self.weights - self.weights.mean(axis=1, keepdims=True)
            pull += (2.0 / self.n_components) * (cross @ spread) @ spread.T
        inner = contracted_input_gradient(self.kernel, X, self.anchors, pull)
        return diag_gradient(self.kernel, X) + inner

    # -- helpers -------------------------------------------------------------------------

    def _pairs(self, A: Any, B: Any) -> tuple[Array, Array]:
        width = self.anchors.shape[1]
        A, B = item_pairs(A, B, width, self.feature_names, self.table, self.who)
        if len(A) != len(B):
            if 1 not in (len(A), len(B)):
                raise ValueError(f"A and B must have equally many rows, got {len(A)} and {len(B)}.")
            n = len(B) if len(A) == 1 else len(A)
            A, B = (np.broadcast_to(side, (n, side.shape[1])) for side in (A, B))
        return A, B

    def _mixture(self, rows: Array) -> tuple[Array, Array]:
        """Means of the components and the deviation that they share."""
        return self.component_means(rows), np.sqrt(self.component_var(rows))

    def _by_pairs(
        self,
        A: Any,
        B: Any,
        reduce: Callable[[Array, Array, Array], Array],
        empty: tuple[int, ...],
        order: ArrayLike = 0,
    ) -> Array:
        """``reduce(component means, shared variance, order)`` of the margins, block by block."""
        A, B = self._pairs(A, B)
        order = np.broadcast_to(np.asarray(order), (len(A),))
        every = pair_moments(self, A, B)
        return stacked([reduce(of.means, of.variance, order[of.rows]) for of in every], empty)
