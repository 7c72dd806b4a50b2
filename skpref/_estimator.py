"""PairwisePreferenceRegressor: talks to users, computes nothing itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skpref._predictions import UtilityEstimator
from skpref._utils import RandomLike, passed, source_of
from skpref.data import (
    Comparisons,
    ItemTable,
    Training,
    as_before,
    check_training,
)
from skpref.fitting import (
    Fitted,
    Settings,
    Stream,
    at_points,
    begun,
    check_settings,
    evidence,
    fit_further,
    fit_judged,
    fit_posterior,
    held_engine,
    make_model,
    progress,
    refuse_judged,
    takes_streams,
)
from skpref.inference import Engine
from skpref.likelihoods import JudgeReliability, Likelihood


def keep(
    estimator,
    fitted: Fitted,
    training: Training,
    stream: Stream | None = None,
) -> None:
    """Set the fitted attributes, all at once.

    Parameters
    ----------
    estimator : PairwisePreferenceRegressor
    fitted : Fitted
    training : Training
    stream : Stream, optional
        After a piece of a stream.
    """
    model, state, judges = fitted.model, fitted.state, fitted.judges
    likelihood = model.likelihood
    if judges is not None and isinstance(
        likelihood, JudgeReliability
    ):  # from here on the common level
        likelihood = likelihood.base
    training.reader.remember(estimator)
    estimator._model = model
    if not model.engine.capabilities.has_evidence:  # only chains are carried over, not the search
        state = state._replace(sites=None)
    estimator._start = state if getattr(model.engine, "warm_start", False) else None
    if not model.rule.exact and judges is None:
        estimator._stream = (
            begun(fitted, estimator.n_learning_answers) if stream is None else stream
        )
    elif hasattr(estimator, "_stream"):
        del estimator._stream
    estimator.posterior_ = replace(fitted.posterior, likelihood=likelihood, reader=training.reader)
    estimator.judges_ = judges
    estimator.diagnostics_ = fitted.diagnostics
    estimator.comparisons_ = fitted.comparisons
    estimator.kernel_, estimator.likelihood_ = model.kernel, likelihood
    estimator.engine_ = model.engine
    for name in ("noise_variance", "tie_threshold", "grade_thresholds", "order_effect"):
        if hasattr(likelihood, name):
            setattr(estimator, f"{name}_", getattr(likelihood, name))
        elif hasattr(estimator, f"{name}_"):
            delattr(estimator, f"{name}_")
    estimator.log_marginal_likelihood_value_ = fitted.log_evidence
    estimator.n_iter_ = fitted.n_iter
    if training.classes is not None:
        estimator.classes_ = training.classes
    elif hasattr(estimator, "classes_"):
        del estimator.classes_


class PairwisePreferenceRegressor(CallbackSupportMixin, UtilityEstimator):
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
        than one opponent, plus an effect of each item that no feature explains, a learned
        constant times `skpref.kernels.ItemEffect`. For items without features
        (`ItemTable.from_names`) None stands for independent utilities of unit variance.
    inference : {"auto", "ep", "laplace", "hmc", "gibbs", "svi"} or engine, default="auto"
        How the posterior is computed ("hmc" and "gibbs" sample it, "svi" is for many answers and
        many items, which `partial_fit` takes in pieces). "auto" is "ep", but where that would take
        more than a minute, from about 4 000 items on, or more memory than is to be had,
        ``SVI(n_inducing=500)``, and says so; which it was is ``engine_``. An options object from
        `skpref.inference`, such as ``EP(damping=0.2)``, is tuned by ``inference__damping``
        (the strings have no options: pass ``inference=EP()`` to a grid).
    noise_variance : float, default=1e-2
        σ² of **each** item's utility at each presentation; a margin carries 2σ². The starting
        value where it is learned.
    noise_variance_bounds : (float, float) or "fixed", default=(1e-4, 10.0)
        Bounds of the search; "fixed" holds the noise.
    tie_threshold : float, default=None
        δ: a duel is a tie where the two noisy utilities differ by less. None: there are no ties.
        The starting value where it is learned.
    tie_threshold_bounds : (float, float) or "fixed", default=(1e-4, 10.0)
        Bounds of the search; "fixed" holds the threshold.
    grade_thresholds : sequence of float, default=None
        For answers that say how much better, labels -2, -1, 1, 2 and so on: where the noisy margin
        passes from one grade of a win to the next, ascending, one fewer than there are grades;
        ``(1.0,)`` for "better" and "much better". The starting values where they are learned.
    grade_threshold_bounds : (float, float) or "fixed", default=(1e-4, 10.0)
        Bounds of each threshold's increment over the one before; "fixed" holds the increments.
    order_effect : float, default=0.0
        h: what the judge adds to the utility of the item shown first (home advantage). The starting
        value where it is learned.
    order_effect_bounds : (float, float) or "fixed", default="fixed"
        Bounds of the search, such as ``(-2.0, 2.0)``; "fixed" holds the effect.
    lengthscale_prior : "lognormal", (median, deviation) or None, default="lognormal"
        Prior on the lengthscales while they are learned. "lognormal": medians of √d standard
        deviations of each feature, their logarithms sharing a normal level (standard deviation
        1) from which each deviates by Student's t (scale 0.3, 4 degrees of freedom). A pair: a
        median in the units of the rows that the kernel sees and a standard deviation of the
        logarithm, independent log-normals. None: evidence alone.
    items : ItemTable, array-like or DataFrame of shape (n_items, n_features), default=None
        Table for duels given as integer pairs. An `ItemTable` is not copied by ``clone``; names,
        as a list or in an `ItemTable`, are items without features. None: the names in X, if any.
    id_column : int or str, default=None
        Position or name of the column of X that says who an item is, beside what it is like (which
        may change from duel to duel). None: that of a `DuelFrame` built with ids, if any. The
        default kernel then gives who it is an effect of its own.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        As in scikit-learn's GaussianProcessRegressor; None: kernel and noise stay as given.
    n_restarts_optimizer : int, default=0
        Further starts of the search, drawn log-uniformly within the bounds.
    n_learning_answers : "auto", int or None, default="auto"
        How many answers (duels, sets, pairs of rated items) hyperparameters are learned on: a
        random part, the same every time; all are then fitted with them. "auto": all, but 1000
        (2000 of names alone) of 4000 or more where all would take long (of 2000 where a minute),
        and a warning says so; with "svi" 800, or 5000 (`skpref.inference.SVI`), unless all take a
        second or two. None: all.
    random_state : int, RandomState instance, Generator or None, default=None
        For the restarts, the samplers, and where "svi" places its points.
    n_jobs : int, default=None
        Restarts in parallel by joblib.
    likelihood : Likelihood, default=None
        Another probability of an answer given the margin than the probit, an object of
        `skpref.likelihoods.Likelihood`; ``noise_variance``, ``tie_threshold``, ``order_effect`` and
        their bounds then do nothing.
    judge_care_variance, judge_care_variance_bounds : default=0.1, (1e-4, 1.0) or "fixed"
        Variance of the logarithm of ``judges``' care (see `fit`): median of a wide prior between
        the bounds; "fixed", or if nothing is learned: as it is.
    judge_shares : (float, float), default=(0.1, 0.05)
        Shares, as expected, of judges who answer at random, and the wrong way round.
    judge_order_variance, judge_order_variance_bounds : default=None, (1e-4, 10.0) or "fixed"
        Variance of judges' own order effects, where its search starts. None: they have none.
    verbose : int, default=0
        1: say what is learned and, every few seconds, how far it is; 2: every evaluation, and every
        pass of "svi" over the answers. Callbacks set by ``set_callbacks`` are told of each too, and
        may end either.

    Attributes
    ----------
    posterior_ : Posterior
        Posterior of the utility; see there for quantiles, draws and gradients.
    judges_ : Judges or None
        How much care each judge takes, with intervals, if judges were told; ``likelihood_``,
        ``noise_variance_`` and ``posterior_`` then are of a judge of the common level.
    kernel_, likelihood_ : Kernel, Likelihood
        With the hyperparameters used.
    noise_variance_ : float
        σ², of a likelihood that has it.
    tie_threshold_, order_effect_ : float
        δ (None without ties) and h, of a likelihood that has them.
    grade_thresholds_ : tuple of float
        Between the grades of a win, of a likelihood that has them.
    log_marginal_likelihood_value_ : float
        Log evidence at ``kernel_`` and ``noise_variance_``, without the prior.
    classes_ : ndarray of shape (n_outcomes,) or (k,)
        Labels of (second won, first won), with ties (second won, tie, first won), with grades all
        labels in ascending order, or positions in a set; only after a fit on duels or sets.
    comparisons_ : Comparisons
        Distinct items and the answers, as they came.
    duels_ : Duels
        Distinct duels and ties among them, with counts.
    items_ : ItemTable or None
    engine_ : Engine
        What ``inference`` came to; with inducing points, where these are.
    diagnostics_ : Diagnostics, Course or None
        Of the chains, if the engine samples; the bound's way, of "svi".
    n_iter_ : int
        Iterations of the engine in its last run, in its own measure (draws of a chain).
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features_in_,)
        Features of an item; the latter if they came in a DataFrame whose columns are all strings.

    Notes
    -----
    The number of dimensions of X says what it is:

    - ``(n_duels, 2, n_features)``: duel arrays;
    - ``(n_duels, 2)`` integers, if ``items`` is given: duels by position in that table; names, as
      an array or a DataFrame of texts: duels of these, ``(n, k)`` sets;
    - ``(n, k, n_features)`` (NaN throughout where an item was not offered), or ``(n, k)`` integers
      with ``items`` (-1 at the end of a row where a set has fewer items), with k > 2: sets of which
      one item was chosen, or which were ranked. The judge's noise is drawn once for each item;
    - ``(n_items, n_features)``: items, ``y`` their ratings; within a group of equal ``qid`` an
      item beats every one that is rated lower (beyond 2000 such pairs, five an item at rank
      distances 1, 2, 4, 8, …).

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
        kernel: Kernel | None = None,
        *,
        inference: str | Engine = "auto",
        noise_variance: float = 1e-2,
        noise_variance_bounds: tuple[float, float] | str = (1e-4, 10.0),
        tie_threshold: float | None = None,
        tie_threshold_bounds: tuple[float, float] | str = (1e-4, 10.0),
        grade_thresholds: Sequence[float] | None = None,
        grade_threshold_bounds: tuple[float, float] | str = (1e-4, 10.0),
        order_effect: float = 0.0,
        order_effect_bounds: tuple[float, float] | str = "fixed",
        lengthscale_prior: str | tuple[float, float] | None = "lognormal",
        items: ItemTable | ArrayLike | None = None,
        id_column: int | str | None = None,
        optimizer: str | Callable | None = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        n_learning_answers: int | str | None = "auto",
        random_state: RandomLike = None,
        n_jobs: int | None = None,
        likelihood: Likelihood | None = None,
        judge_care_variance: float = 0.1,
        judge_care_variance_bounds: tuple[float, float] | str = (1e-4, 1.0),
        judge_shares: tuple[float, float] = (0.1, 0.05),
        judge_order_variance: float | None = None,
        judge_order_variance_bounds: tuple[float, float] | str = (1e-4, 10.0),
        verbose: int = 0,
    ):
        self.kernel = kernel
        self.inference = inference
        self.noise_variance = noise_variance
        self.noise_variance_bounds = noise_variance_bounds
        self.tie_threshold = tie_threshold
        self.tie_threshold_bounds = tie_threshold_bounds
        self.grade_thresholds = grade_thresholds
        self.grade_threshold_bounds = grade_threshold_bounds
        self.order_effect = order_effect
        self.order_effect_bounds = order_effect_bounds
        self.lengthscale_prior = lengthscale_prior
        self.items = items
        self.id_column = id_column
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.n_learning_answers = n_learning_answers
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.likelihood = likelihood
        self.judge_care_variance = judge_care_variance
        self.judge_care_variance_bounds = judge_care_variance_bounds
        self.judge_shares = judge_shares
        self.judge_order_variance = judge_order_variance
        self.judge_order_variance_bounds = judge_order_variance_bounds
        self.verbose = verbose

    # -- fitting -------------------------------------------------------------------------

    __metadata_request__fit = {"qid": True, "order": True, "judges": True}  # noqa: RUF012
    __metadata_request__partial_fit = {"qid": True, "order": True, "judges": True}  # noqa: RUF012

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        order: ArrayLike | None = None,
        judges: ArrayLike | None = None,
    ) -> Self:
        """Learn the utility.

        Parameters
        ----------
        X : array-like
            Duels, sets or rated items, see Notes of the class.
        y : array-like of shape (n_duels,), (n,), (n, k) or (n_items,), default=None
            Of duels outcomes in {0, 1}, {-1, 1} or booleans, true where the first item won; None:
            the first won every duel. With ``tie_threshold`` in {-1, 0, 1}, 0 a tie. With
            ``grade_thresholds`` integers, the size says how clearly: {-2, -1, 1, 2}. Of sets the
            position of the chosen item, or ranks (n, k): 1 for the best, equal ranks where nothing
            is said of two items, 0 for one that is not ranked. (So 1, 2, 2 is a choice of the
            best of three, 1, 1, 2 of the worst, and 1, 2, 3 a ranking.) For rated items their
            ratings, larger is better.
        qid : array-like of shape (n_items,), default=None
            Groups of rated items; only items of one group are compared.
        sample_weight : array-like of shape (n_duels,) or (n_items,), default=None
            How often each duel counts, at least 0; a pair of rated items counts the product of
            their weights. Engines that sample take whole numbers; choices and rankings weigh at
            least 1, or 0.
        order : array-like of int of shape (n_duels,) or (n,), default=None
            Who was shown first, for the order effect: 1 the first item, 0 none (neutral ground),
            of duels also -1 the second. None: the first, always.
        judges : array-like of shape (n_duels,), default=None
            Who gave each answer, ids of any hashable kind: judges of one truth who differ in care,
            of whom some may answer at random or the wrong way round. None: all are one judge.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X, y or a parameter is not of an allowed form; the message says which are.
        """
        return self._fit(X, y, qid, sample_weight, order, judges)

    def _fit(self, X, y, qid, sample_weight, order, judges=None):
        settings = check_settings(self)
        given = X, y, qid, sample_weight, order, settings.likelihood
        training = check_training(self, *given, judges=judges)
        keep(self, self._fitted(settings, training), training)
        self._fit_metadata = frozenset(passed(qid=qid, order=order, judges=judges))
        return self

    def _fitted(
        self,
        settings: Settings,
        training: Training,
        points: NDArray[np.float64] | None = None,
    ) -> Fitted:
        """A fit of these answers alone, by inducing points that are given or the engine's own."""
        comparisons, search = training.comparisons, settings.search
        model = make_model(self, settings, training)
        if points is not None:
            model = at_points(model, points)
        start = (
            getattr(self, "_start", None) if getattr(model.engine, "warm_start", False) else None
        )
        rng = source_of(self.random_state)
        with progress(self, comparisons, model, search) as report:
            run = start, rng, search, report.evaluated, report.passed
            if training.judges is None:
                return fit_posterior(comparisons, model, *run)
            return fit_judged(comparisons, model, settings.care, training.judges, *run)

    def _held_parameters(self) -> dict[str, Any]:
        """Parameters with which another fit has the hyperparameters of this one, and no search."""
        return {"kernel": self.kernel_, "likelihood": self.likelihood_, "optimizer": None}

    @available_if(takes_streams)
    @with_callbacks
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        order: ArrayLike | None = None,
        judges: ArrayLike | None = None,
    ) -> Self:
        """Learn from more answers, with ``inference="svi"`` or where "auto" came to it in a `fit`.

        What earlier answers told is the prior of further ones. Memory does not grow with their
        number: beside what was told, a random sample of ``n_learning_answers`` answers is kept
        (5000, if that is no number). Whenever the answers have doubled, hyperparameters are learned
        again on the sample (or found from the start, while it holds all answers), and the inducing
        points are placed again where others explain much more of its items. In between, items that
        are far from all points become points, up to twice ``n_inducing`` (as many as there are, for
        items that have names alone). Points of your own, ``SVI(inducing_points=...)``, stay as they
        are.

        Parameters
        ----------
        X, y, qid, sample_weight, order
            As in `fit`; items and ids need not have been seen before. A piece may hold one label
            alone. Parameters of the estimator that were set since the last piece count from the
            next time that hyperparameters are learned.
        judges : None
            Refused: the care of judges is learned from all answers at once, by `fit`.

        Returns
        -------
        self
            With ``comparisons_`` and ``log_marginal_likelihood_value_`` of these answers, given
            those before; just after all answers have been learned from again, of all.

        Raises
        ------
        AttributeError
            With other engines, which need all answers at once.
        ValueError
            As in `fit`, if these answers are not of the form of those before, or with judges.
        """
        refuse_judged(self, judges)
        if not hasattr(self, "_stream"):
            return self._fit(X, y, qid, sample_weight, order)
        settings = check_settings(self)
        settings = settings._replace(engine=held_engine(self, settings.engine))
        known = self.posterior_.reader
        training = check_training(self, X, y, qid, sample_weight, order, self.likelihood_, known)
        training = as_before(self, training, settings.likelihood)

        def fit(sample: Comparisons, points: NDArray[np.float64] | None) -> Fitted:
            part = training._replace(comparisons=sample)
            return self._fitted(settings, part, points)

        given = getattr(settings.engine, "inducing_points", None) is not None
        piece = fit_further(
            training.comparisons,
            self._model,
            self._stream,
            self.n_learning_answers,
            None if given and settings.search is None else fit,
            movable=not given,
        )
        keep(self, piece.fitted, training, piece.stream)
        self._fit_metadata |= passed(qid=qid, order=order).keys()
        return self

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> float | tuple[float, NDArray[np.float64] | None]:
        """Log evidence of the training duels, as fitted (parameters set since do nothing).

        After a piece of a stream that of its answers alone, as if there had been none before; of
        judges given their care.

        Parameters
        ----------
        theta : array-like, default=None
            ``np.r_[kernel_.theta, log σ², log δ, h, log increments of the grade thresholds]``,
            of all but the first those that were learned; None: the fitted values.
        eval_gradient : bool, default=False

        Returns
        -------
        log_likelihood : float
        gradient : ndarray of shape (n_theta,)
            If ``eval_gradient``.
        """
        check_is_fitted(self)
        model = self._model if theta is None else self._model.checked_at(theta)
        found = evidence(self.comparisons_, model, eval_gradient=eval_gradient)
        value = found.approximation.sites.log_evidence
        return (value, found.gradient) if eval_gradient else value
