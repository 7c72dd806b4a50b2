"""The posterior of the utility: an equal mixture of Gaussian processes of one covariance."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import elementwise
from scipy.special import ndtr, ndtri

from skpref._paths import SamplePaths, covariance_root, draw_weights
from skpref._random import generator_of
from skpref.kernels import contracted_input_gradient, diag_gradient
from skpref.likelihoods import Likelihood
from skpref.likelihoods._gaussian import sign_proba

# Rows are taken in blocks so that no intermediate array has more doubles than this (16 MiB).
_BLOCK = 2**21
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Posterior:
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

    Notes
    -----
    Utilities have the prior's units: only the ratio of kernel amplitude to noise variance is
    identified by duels. Arguments are items of shape (n, n_features). Means, variances,
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

    kernel: object
    likelihood: Likelihood
    anchors: np.ndarray
    weights: np.ndarray
    factor: np.ndarray

    @property
    def noise_variance(self):
        """σ² of each utility at each presentation: half the noise variance of a margin."""
        return 0.5 * self.likelihood.margin_variance

    @property
    def n_components(self):
        """Number of Gaussian components."""
        return self.weights.shape[1]

    # -- moments -------------------------------------------------------------------------

    def component_means(self, X):
        """Mean of every component, shape (n, n_components)."""
        X = self.check_items(X)
        blocks = [self._cross(rows) @ self.weights for rows in self._blocks(X)]
        return _stack(blocks, (0, self.n_components))

    def component_var(self, X):
        """Variance that all components share, shape (n,)."""
        X = self.check_items(X)
        return _stack([self._shared_var(rows) for rows in self._blocks(X)], (0,))

    def mean(self, X):
        """Posterior mean utility, shape (n,)."""
        X = self.check_items(X)
        centre = self.weights.mean(axis=1)
        return _stack([self._cross(rows) @ centre for rows in self._blocks(X)], (0,))

    def var(self, X):
        """Posterior variance of the utility, shape (n,)."""
        X, shared = self.check_items(X), self.component_var(X)
        if self.n_components == 1:
            return shared
        spread = [self.component_means(rows).var(axis=1) for rows in self._blocks(X)]
        return shared + _stack(spread, (0,))

    def cov(self, X):
        """Posterior covariance of the utilities, shape (n, n)."""
        X = self.check_items(X)
        cross = self._cross(X)
        half = cross @ self.factor
        covariance = self.kernel(X) - half @ half.T
        if self.n_components > 1:
            means = cross @ self.weights
            means = means - means.mean(axis=1, keepdims=True)
            covariance += means @ means.T / self.n_components
        return covariance

    def margin(self, A, B):
        """Mean and variance of f(a) − f(b), without observation noise, for pairs of rows.

        Parameters
        ----------
        A, B : array-like of shape (n, n_features)

        Returns
        -------
        mean, variance : ndarray of shape (n,)
        """

        def moments(means, variance):
            spread = means.var(axis=1) if means.shape[1] > 1 else 0.0
            return np.stack([means.mean(axis=1), variance + spread], axis=1)

        mean, variance = self._by_pairs(A, B, moments, (0, 2)).T
        return mean, variance

    def component_margins(self, A, B):
        """Means (n, n_components) and the shared variance (n,) of f(a) − f(b)."""
        A, B = self._pairs(A, B)
        means, variances = [], []
        for rows, others in zip(self._blocks(A), self._blocks(B), strict=True):
            cross = self._cross(rows) - self._cross(others)
            half = cross @ self.factor
            scale = self.kernel.diag(rows) + self.kernel.diag(others)
            prior = scale - 2.0 * paired(self.kernel, rows, others)
            # Rounding must not make sure of the order of two items that all but coincide.
            least = np.where(np.any(rows != others, axis=1), _EPS * scale, 0.0)
            means.append(cross @ self.weights)
            variances.append(np.maximum(prior - np.einsum("ij,ij->i", half, half), least))
        return _stack(means, (0, self.n_components)), _stack(variances, (0,))

    def margin_cov(self, A, B):
        """Covariance of the margins f(a_i) − f(b_i), shape (n, n)."""
        A, B = self._pairs(A, B)
        both = self.cov(np.concatenate([A, B]))
        n = len(A)
        return both[:n, :n] + both[n:, n:] - both[:n, n:] - both[n:, :n]

    # -- probabilities -------------------------------------------------------------------

    def win_probability(self, A, B, noise=True, log=False):
        """P(a beats b) for pairs of rows, shape (n,).

        Parameters
        ----------
        A, B : array-like of shape (n, n_features)
        noise : bool, default=True
            Probability of winning a noisy duel; False: that f(a) > f(b).
        log : bool, default=False
            Return its natural logarithm, finite far in the tails.

        Notes
        -----
        The average over n > 1 draws cannot tell probabilities below 1/n: the logarithm of what no
        draw speaks for is that of one draw's far tail. So a Gaussian of the mixture's mean and
        variance counts as one component more (a defensive mixture: Hesterberg, Technometrics
        1995). It moves no probability by more than 1/(n + 1), the less the more draws, and the
        two outcomes still sum to 1. `cdf` and `quantile` are of the draws alone.
        """

        def of(mean, variance):
            if not noise:
                return sign_proba(mean, variance, log=log)
            outcomes = self.likelihood.outcome_log_proba if log else self.likelihood.outcome_proba
            return outcomes(mean, variance)[..., -1]

        return self._by_pairs(A, B, lambda m, v: self._mix(of, m, v, log), (0,))

    def outcome_log_proba(self, A, B):
        """Log-probabilities of the outcomes of duels, observation noise included.

        Parameters
        ----------
        A, B : array-like of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, n_outcomes)
            Columns "second won" and "first won".
        """
        of = self.likelihood.outcome_log_proba
        return self._by_pairs(A, B, lambda m, v: self._mix(of, m, v, log=True), (0, 2))

    def _mix(self, of, means, variance, log):
        """Mean of ``of`` over the components and a Gaussian of their moments; of logarithms."""
        if self.n_components == 1:
            return of(means[:, 0], variance)
        matched = of(means.mean(axis=1), variance + means.var(axis=1))
        each, n = of(means, variance[:, None]), self.n_components + 1
        if not log:
            return (each.sum(axis=1) + matched) / n
        top = np.maximum(each.max(axis=1), matched)
        top = np.where(np.isfinite(top), top, 0.0)
        each = each - top[:, None]
        total = np.exp(each, out=each).sum(axis=1) + np.exp(matched - top)
        with np.errstate(divide="ignore"):  # no component speaks for it
            return np.log(total) + top - np.log(n)

    def cdf(self, X, c):
        """P(f(x) ≤ c), shape (n,); ``c`` is a number or of shape (n,)."""
        X = self.check_items(X)
        c = np.broadcast_to(np.asarray(c, dtype=np.float64), (len(X),))
        blocks = zip(self._blocks(X), self._blocks(c), strict=True)
        return _stack([_mixture_cdf(at, *self._mixture(rows)) for rows, at in blocks], (0,))

    def quantile(self, X, q):
        """Quantile of f(x), shape (n,), or (n, n_quantiles) for a sequence ``q`` in (0, 1).

        A bracketed root of the mixture's distribution function, the bracket of [1]_ (Alg. 2).
        """
        q = np.asarray(q, dtype=np.float64)
        if q.ndim > 1 or not q.size or not np.all((q > 0.0) & (q < 1.0)):
            raise ValueError(f"q must be a number or a sequence of numbers in (0, 1), got {q}.")
        levels = np.atleast_1d(q)

        def of_block(rows):
            mixture = self._mixture(rows)
            return np.stack([_mixture_quantile(level, *mixture) for level in levels], axis=1)

        found = _stack(
            [of_block(rows) for rows in self._blocks(self.check_items(X))], (0, len(levels))
        )
        return found[:, 0] if q.ndim == 0 else found

    def credible_interval(self, X, level=0.95):
        """Central interval that holds f(x) with probability ``level``, shape (n, 2)."""
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie in (0, 1), got {level}.")
        return self.quantile(X, [0.5 - 0.5 * level, 0.5 + 0.5 * level])

    # -- draws ---------------------------------------------------------------------------

    def sample(self, X, n=1, rng=None):
        """Joint draws of the utilities of the items, shape (n_items, n).

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
        n : int, default=1
            Number of draws.
        rng : int, RandomState, Generator or None
        """
        X, rng = self.check_items(X), generator_of(rng)
        cross = self._cross(X)
        half = cross @ self.factor
        root = covariance_root(self.kernel(X) - half @ half.T)
        means = cross @ self.weights[:, rng.integers(self.n_components, size=n)]
        return means + root @ rng.standard_normal((root.shape[1], n))

    def sample_paths(self, n=1, rng=None):
        """Draws of the whole function, for Thompson sampling.

        Random Fourier features of the prior corrected pathwise [2]_ for RBF and Matérn kernels
        (with constants, and sums of them); for any other kernel exact draws that are
        conditioned on the values already asked for.

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
        rng = generator_of(rng)
        weights = self.weights[:, rng.integers(self.n_components, size=n)]
        return SamplePaths(self, draw_weights(self, weights, rng), rng)

    def hallucinate(self, rng=None):
        """One component, drawn at random: an ordinary GP given one draw of the margins [1]_."""
        s = int(generator_of(rng).integers(self.n_components))
        return replace(self, weights=self.weights[:, s : s + 1])

    # -- input gradients -----------------------------------------------------------------

    def mean_gradient(self, X):
        """Gradient of `mean` with respect to the items, shape (n, n_features)."""
        X = self.check_items(X)
        centre = np.broadcast_to(self.weights.mean(axis=1), (len(X), len(self.anchors)))
        return contracted_input_gradient(self.kernel, X, self.anchors, centre)

    def var_gradient(self, X):
        """Gradient of `var` with respect to the items, shape (n, n_features)."""
        X = self.check_items(X)
        cross = self._cross(X)
        pull = -2.0 * (cross @ self.factor) @ self.factor.T
        if self.n_components > 1:
            spread = self.weights - self.weights.mean(axis=1, keepdims=True)
            pull += (2.0 / self.n_components) * (cross @ spread) @ spread.T
        inner = contracted_input_gradient(self.kernel, X, self.anchors, pull)
        return diag_gradient(self.kernel, X) + inner

    # -- helpers -------------------------------------------------------------------------

    def check_items(self, X):
        """Items as a finite float array of the right shape."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(
                f"Items must be an array of shape (n, n_features), got {X.ndim} dimensions. For a "
                "single item use X.reshape(1, -1)."
            )
        n_features = self.anchors.shape[1]
        if X.shape[1] != n_features:
            raise ValueError(
                f"The posterior is of items with n_features = {n_features}, got {X.shape[1]}."
            )
        if not np.all(np.isfinite(X)):
            raise ValueError("Items contain NaN or infinity; impute or drop them.")
        return X

    def _pairs(self, A, B):
        A, B = self.check_items(A), self.check_items(B)
        if len(A) != len(B):
            if 1 not in (len(A), len(B)):
                raise ValueError(f"A and B must have equally many rows, got {len(A)} and {len(B)}.")
            n = len(B) if len(A) == 1 else len(A)
            A, B = (np.broadcast_to(side, (n, side.shape[1])) for side in (A, B))
        return A, B

    def _cross(self, X):
        K = self.kernel(X, self.anchors)
        if not np.isfinite(K.sum()):
            raise ValueError(
                f"The kernel {self.kernel} is not finite between these items and the training "
                "items: they lie too far apart for double precision. Rescale or drop them."
            )
        return K

    def _blocks(self, X):
        widest = max(len(self.anchors), self.n_components, self.factor.shape[1], 1)
        step = max(1, _BLOCK // widest)
        return [X[start : start + step] for start in range(0, len(X), step)]

    def _mixture(self, rows):
        """Means of the components and the deviation that they share."""
        return self.component_means(rows), np.sqrt(self.component_var(rows))

    def _by_pairs(self, A, B, reduce, empty):
        """``reduce(component means, shared variance)`` of the margins, block by block."""
        A, B = self._pairs(A, B)
        blocks = zip(self._blocks(A), self._blocks(B), strict=True)
        return _stack([reduce(*self.component_margins(a, b)) for a, b in blocks], empty)

    def _shared_var(self, rows):
        half = self._cross(rows) @ self.factor
        return np.maximum(self.kernel.diag(rows) - np.einsum("ij,ij->i", half, half), 0.0)


def paired(kernel, A, B):
    """k(a_i, b_i) for every row, without the (n, n) matrix."""
    if kernel.is_stationary():
        return kernel(A - B, np.zeros((1, A.shape[1])))[:, 0]
    step = 64
    blocks = [np.diagonal(kernel(A[i : i + step], B[i : i + step])) for i in range(0, len(A), step)]
    return _stack(blocks, (0,))


def _stack(blocks, empty):
    return np.concatenate(blocks) if blocks else np.zeros(empty)


def _mixture_cdf(c, means, deviation):
    sure = deviation <= 0.0
    u = (c[:, None] - means) / np.where(sure, 1.0, deviation)[:, None]
    u = np.where(sure[:, None], np.where(u >= 0.0, np.inf, -np.inf), u)
    return ndtr(u).mean(axis=1)


def _mixture_quantile(level, means, deviation):
    edges = means + ndtri(level) * deviation[:, None]
    if means.shape[1] == 1:
        return edges[:, 0]
    low, high = edges.min(axis=1), edges.max(axis=1)
    slack = 1e-12 * (1.0 + np.abs(low) + np.abs(high))
    index = np.arange(len(means))

    def excess(c, row):
        row = np.asarray(row)
        flat, rows = np.ravel(c), np.ravel(row)
        return np.reshape(_mixture_cdf(flat, means[rows], deviation[rows]) - level, np.shape(c))

    root = elementwise.find_root(excess, (low - slack, high + slack), args=(index,))
    return root.x
