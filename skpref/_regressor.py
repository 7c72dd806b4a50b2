"""PairwisePreferenceRegressor: talks to users, computes nothing itself."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from skpref._conditioning import condition
from skpref._evidence import EvidenceProblem, default_kernel, learn, lengthscale_prior
from skpref._features import remember
from skpref._parameters import check_number
from skpref._settings import check_settings
from skpref._threads import blas_threads
from skpref._validation import (
    check_items,
    check_kernel,
    check_outcomes,
    check_pairs,
    check_query,
    check_training,
)
from skpref.inference._skew import carry_over
from skpref.metrics import concordance


def _fitted_on_duels(estimator):
    if getattr(estimator, "classes_", None) is not None:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} predicts outcomes once it was fitted on duels. After a fit on "
        "items with ratings it is a plain regressor; duel probabilities are at "
        "posterior_.win_probability(a, b)."
    )


class PairwisePreferenceRegressor(RegressorMixin, BaseEstimator):
    r"""Gaussian-process utility learned from duels ("this one was better than that one").

    The winner of a duel is the item whose utility, seen with normal noise of variance σ² on
    each item, was larger: P(first wins | f) = Φ((f(first) − f(second)) / √(2σ²)), with f a
    Gaussian process on the items [1]_. Larger utility is better.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel, default=None
        Covariance of the utility. None: RBF of unit amplitude with one lengthscale a feature,
        its start and bounds following the spread of each feature (only the ratio of amplitude
        to noise is identified by duels); where hyperparameters are learned and items meet more
        than one opponent, plus a part of each item's own that no feature explains, a learned
        constant times an RBF so short that it tells all items apart. For items without features
        (`ItemTable.from_names`) None stands for independent utilities of unit variance.
    inference : {"ep", "laplace", "hmc", "gibbs"} or engine, default="ep"
        How the posterior is computed ("hmc" and "gibbs" sample it); an options object from
        `skpref.inference`, such as ``EP(damping=0.2)``, is tuned by ``inference__damping``
        (the strings have no options: pass ``inference=EP()`` to a grid).
    noise_variance : float, default=1e-2
        σ² of **each** item's utility at each presentation; a margin carries 2σ². The starting
        value where it is learned.
    noise_variance_bounds : (float, float) or "fixed", default=(1e-4, 10.0)
        Bounds of the search; "fixed" holds the noise.
    lengthscale_prior : "lognormal", (median, deviation) or None, default="lognormal"
        Prior on the lengthscales while they are learned. "lognormal": medians of √d standard
        deviations of each feature, their logarithms sharing a normal level (standard deviation
        1) from which each deviates by Student's t (scale 0.3, 4 degrees of freedom). A pair: a
        median in units of the features and a standard deviation of the logarithm, independent
        log-normals. None: evidence alone.
    items : ItemTable, array-like or DataFrame of shape (n_items, n_features), default=None
        Table for duels given as integer pairs. An `ItemTable` is not copied by ``clone`` and
        may stand for items without features.
    id_column : int or str, default=None
        Position or name of the column of X that says who an item is, beside what it is like.
        None: that of a `DuelFrame` built with ids, if any.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        As in scikit-learn's GaussianProcessRegressor; None: kernel and noise stay as given.
    n_restarts_optimizer : int, default=0
        Further starts of the search, drawn log-uniformly within the bounds.
    random_state : int, RandomState instance or None, default=None
        For the restarts and the samplers.
    n_jobs : int, default=None
        Restarts in parallel by joblib.

    Attributes
    ----------
    posterior_ : Posterior
        Posterior of the utility; see there for quantiles, draws and gradients.
    kernel_ : Kernel
        With the hyperparameters used.
    noise_variance_ : float
    log_marginal_likelihood_value_ : float
        Log evidence at ``kernel_`` and ``noise_variance_``, without the prior.
    classes_ : ndarray of shape (2,)
        Labels of (second won, first won); only after a fit on duels.
    duels_ : Duels
        Distinct items and distinct duels, with counts.
    items_ : ItemTable or None
    diagnostics_ : Diagnostics or None
        Of the chains, if the engine samples.
    n_iter_ : int
        Iterations of the engine in the last run.
    n_features_in_ : int
        Features of an item.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If the items came in a DataFrame whose columns are all strings.

    Notes
    -----
    The number of dimensions of X says what it is:

    - ``(n_duels, 2, n_features)``: duel arrays;
    - ``(n_duels, 2)`` integers, if ``items`` is given: duels by position in that table;
    - ``(n_items, n_features)``: items, ``y`` their ratings; within a group of equal ``qid`` an
      item beats every one that is rated lower (beyond 2000 such pairs, those at rank distance
      1, 2, 4, 8, …).

    ``scoring="accuracy"`` is for classifiers only; the default score, ``"neg_log_loss"``,
    ``"neg_brier_score"`` and ``"roc_auc"`` work on duels, as do the scorers in
    `skpref.metrics`.

    References
    ----------
    .. [1] Chu and Ghahramani, "Preference learning with Gaussian processes", ICML 2005.
    .. [2] Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.datasets import load_candy
    >>> candy = load_candy(n_duels=1000)
    >>> model = PairwisePreferenceRegressor().fit(candy.X, candy.y)
    >>> best = model.predict(candy.item_table).argmax()
    >>> print(candy.item_names[best])
    Reese's Peanut Butter cup
    >>> model.predict_proba(candy.X[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        kernel=None,
        *,
        inference="ep",
        noise_variance=1e-2,
        noise_variance_bounds=(1e-4, 10.0),
        lengthscale_prior="lognormal",
        items=None,
        id_column=None,
        optimizer="fmin_l_bfgs_b",
        n_restarts_optimizer=0,
        random_state=None,
        n_jobs=None,
    ):
        self.kernel = kernel
        self.inference = inference
        self.noise_variance = noise_variance
        self.noise_variance_bounds = noise_variance_bounds
        self.lengthscale_prior = lengthscale_prior
        self.items = items
        self.id_column = id_column
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -- fitting -------------------------------------------------------------------------

    def fit(self, X, y=None, *, qid=None):
        """Learn the utility.

        Parameters
        ----------
        X : array-like
            Duels or rated items, see Notes of the class.
        y : array-like of shape (n_duels,) or (n_items,), default=None
            Outcomes in {0, 1}, {-1, 1} or booleans, true where the first item won; None: the
            first won every duel. For rated items their ratings, larger is better.
        qid : array-like of shape (n_items,), default=None
            Groups of rated items; only items of one group are compared.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X, y or a parameter is not of an allowed form; the message says which are.
        """
        sampler, noise_bounds = check_settings(self)
        engine = sampler.evidence_engine()
        table = check_items(self.items)
        training = check_training(self, X, y, qid, table)
        duels = training.duels
        sampler.check_size(duels)
        if self.kernel is None:
            has_features = table is None or table.has_features
            kernel = default_kernel(duels, has_features, self.optimizer is not None)
        else:
            kernel = clone(self.kernel)
        check_kernel(kernel, duels.items)
        rng = check_random_state(self.random_state)
        noise = float(self.noise_variance)
        with blas_threads(engine.side(duels)):
            problem = EvidenceProblem(duels, kernel, noise, noise_bounds, engine)
            state = None
            prior = lengthscale_prior(self.lengthscale_prior, kernel, duels.items)
            if self.optimizer is not None and len(problem.theta):
                problem, state = learn(
                    problem,
                    prior,
                    optimizer=self.optimizer,
                    n_restarts=self.n_restarts_optimizer,
                    rng=rng,
                    n_jobs=self.n_jobs,
                )
            result = problem.evaluate(state)
            found = result.approximation
            if not found.converged:
                name = type(engine).__name__
                remedy = f"pass inference={name}(max_iter=...) with more iterations"
                if engine is not sampler:
                    remedy = "another evidence= of the engine; its draws do not depend on it"
                warnings.warn(
                    f"{name} stopped after {found.n_iter} iterations at a residual of "
                    f"{found.residual:.1e} (tol={engine.tol:g}). Raise noise_variance or its lower "
                    f"bound, or {remedy}.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        seed = rng.randint(np.iinfo(np.int32).max)
        warm, options = getattr(sampler, "warm_start", False), {}
        if warm and getattr(self, "_positions", None) is not None:
            options["start"] = carry_over(self.duels_, self._positions, duels)
        with blas_threads(sampler.side(duels)):
            found = sampler.refine(result.problem, found, np.random.default_rng(seed), **options)
            self.posterior_ = condition(
                problem.kernel, duels.items, result.problem.space, found, problem.noise_variance
            )
        remember(self, training.schema)
        self._positions = found.state[0] if warm else None
        self.diagnostics_ = found.diagnostics
        self.items_ = table
        self.duels_ = duels
        self.kernel_, self.noise_variance_ = problem.kernel, problem.noise_variance
        self.log_marginal_likelihood_value_ = found.sites.log_evidence
        self.n_iter_ = found.n_iter
        if training.classes is not None:
            self.classes_ = training.classes
        elif hasattr(self, "classes_"):
            del self.classes_
        return self

    # -- prediction ----------------------------------------------------------------------

    def predict(self, X, return_std=False, return_cov=False):
        """Posterior mean utility of items, or mean margin of duels.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features) or (n_duels, 2, n_features)
            With ``items=`` also integers: (n_items,) or (n_duels, 2).
        return_std : bool, default=False
            Also return the standard deviation of the (noise-free) utility or margin.
        return_cov : bool, default=False
            Also return their joint covariance; not both.

        Returns
        -------
        mean : ndarray of shape (n,)
        std : ndarray of shape (n,)
        cov : ndarray of shape (n, n)
        """
        if return_std and return_cov:
            raise RuntimeError("Only one of return_std and return_cov can be True.")
        query = self._query(X)
        posterior = self.posterior_
        if query.second is None:
            mean = posterior.mean(query.first)
            if return_cov:
                return mean, posterior.cov(query.first)
            return (mean, np.sqrt(posterior.var(query.first))) if return_std else mean
        mean, variance = posterior.margin(query.first, query.second)
        if return_cov:
            return mean, posterior.margin_cov(query.first, query.second)
        return (mean, np.sqrt(variance)) if return_std else mean

    @available_if(_fitted_on_duels)
    def predict_proba(self, X):
        """Probabilities of the outcomes of duels, observation noise included.

        Parameters
        ----------
        X : array-like of shape (n_duels, 2, n_features), or integer pairs with ``items=``

        Returns
        -------
        ndarray of shape (n_duels, 2)
            Columns as `classes_`: second won, first won.
        """
        return np.exp(self.predict_log_proba(X))

    @available_if(_fitted_on_duels)
    def predict_log_proba(self, X):
        """Natural logarithm of `predict_proba`, finite far in the tails."""
        pairs = self._pairs(X)
        return self.posterior_.log_outcomes(pairs.first, pairs.second)

    @available_if(_fitted_on_duels)
    def decision_function(self, X):
        """Mean margin of duels; positive where the first item is more likely to win."""
        pairs = self._pairs(X)
        return self.posterior_.margin(pairs.first, pairs.second)[0]

    def score(self, X, y=None, *, qid=None, sample_weight=None):
        """Share of duels called right, or of rated pairs ordered right.

        Parameters
        ----------
        X : array-like
            Duels or rated items.
        y : array-like
            Outcomes (None: the first won each) or ratings.
        qid : array-like of shape (n_items,), default=None
            Groups of rated items.
        sample_weight : array-like of shape (n_duels,) or (n_items,), default=None
            A pair of items weighs the product of their weights.

        Returns
        -------
        float
            A margin of exactly zero counts one half.
        """
        query = self._query(X)
        if query.second is None:
            if y is None:
                raise ValueError("Scoring items needs their ratings: score(X, y).")
            utility = self.posterior_.mean(query.first)
            return concordance(utility, y, qid, sample_weight=sample_weight)
        if qid is not None:
            raise ValueError("qid belongs to items with ratings; duels take none.")
        won, _ = check_outcomes(y, len(query.first))
        margin = self.posterior_.margin(query.first, query.second)[0]
        right = np.where(margin == 0.0, 0.5, (margin > 0.0) == won)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, margin, ensure_non_negative=True)
        return float(np.average(right, weights=sample_weight))

    def sample_y(self, X, n_samples=1, random_state=0):
        """Joint draws of utilities (of margins, for duels) from the posterior.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features) or (n_duels, 2, n_features)
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0

        Returns
        -------
        ndarray of shape (n, n_samples)
        """
        check_number("n_samples", n_samples, low=1, integer=True)
        query = self._query(X)
        if query.second is None:
            return self.posterior_.sample(query.first, n_samples, random_state)
        both = np.concatenate([query.first, query.second])
        first, second = np.split(self.posterior_.sample(both, n_samples, random_state), 2)
        return first - second

    def log_marginal_likelihood(self, theta=None, eval_gradient=False):
        """Log evidence of the training duels.

        Parameters
        ----------
        theta : array-like, default=None
            ``np.r_[kernel_.theta, log σ²]``, the last only if the noise is learned; None: the
            fitted values.
        eval_gradient : bool, default=False

        Returns
        -------
        log_likelihood : float
        gradient : ndarray of shape (n_theta,)
            If ``eval_gradient``.
        """
        check_is_fitted(self)
        engine, noise_bounds = check_settings(self)
        engine = engine.evidence_engine()
        with blas_threads(engine.side(self.duels_)):
            problem = EvidenceProblem(
                self.duels_, self.kernel_, self.noise_variance_, noise_bounds, engine
            )
            if theta is not None:
                theta = np.asarray(theta, dtype=np.float64)
                if theta.shape != problem.theta.shape:
                    raise ValueError(
                        f"theta must have shape {problem.theta.shape} (kernel_.theta"
                        f"{', log σ²' if noise_bounds is not None else ''}), got {theta.shape}."
                    )
                problem = problem.at(theta)
            result = problem.evaluate(eval_gradient=eval_gradient)
        value = result.approximation.sites.log_evidence
        return (value, result.gradient) if eval_gradient else value

    # -- helpers -------------------------------------------------------------------------

    def _query(self, X):
        check_is_fitted(self)
        return check_query(self, X, self.items_)

    def _pairs(self, X):
        check_is_fitted(self)
        return check_pairs(self, X, self.items_)
