"""The estimators' common base, and PairwisePreferenceRegressor: parameters and messages."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skpref._utils import (
    CallbackSupportMixin,
    RandomLike,
    Recorded,
    calibration_method,
    check_metadata_requested,
    check_number,
    check_scoring_weights,
    given_metadata,
    read_random_state,
    refuse_dropped,
    scored_tags,
    skpref_version,
    unrequested_metadata,
    validates_methods,
    warn,
    with_callbacks,
)
from skpref.data import (
    AnswerMetadata,
    Comparisons,
    Duels,
    ItemTable,
    Training,
    check_training,
    continue_training,
    name_ranks,
    with_measured,
)
from skpref.fitting import (
    Fitted,
    JudgeAverage,
    JudgePrior,
    Prediction,
    Settings,
    Stream,
    as_later_answers,
    at_points,
    check_judge_prior,
    check_settings,
    continues_stream,
    earlier_items,
    evaluate_evidence,
    fit_again,
    fit_further,
    fit_judged,
    fit_posterior,
    held_engine,
    judged_comparisons,
    make_model,
    n_components_of,
    new_stream,
    prior_parameters,
    progress,
    refuse_judged,
    refuse_offset,
    refuse_other_prior,
    takes_streams,
    warn_of_components,
    warn_of_first_times,
)
from skpref.gp import ThroughTime, level_of_values
from skpref.inference import Engine
from skpref.likelihoods import ANSWER_DEFAULTS, JudgeReliability, Likelihood
from skpref.metrics import concordance


def fitted_on_duels(estimator: Any) -> bool:
    """Return whether an estimator predicts outcomes; AttributeError with advice if not.

    One without a fit does where scikit-learn validates it, as it may yet be fitted on duels.
    """
    if getattr(estimator, "classes_", None) is not None:
        return True
    if not hasattr(estimator, "posterior_") and validates_methods():
        return True
    raise AttributeError(
        f"{type(estimator).__name__} predicts outcomes once it was fitted on duels. After a fit on "
        "items with ratings it is a plain regressor; duel probabilities are at "
        "posterior_.win_probability(a, b)."
    )


# Metadata that answers carry, in training and in predictions.
_OF_ANSWERS = {"order": True, "judges": True, "prompts": True, "time": True, "offset": True}


def _answer_metadata(method: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return all metadata that answers carry, None for those not given; TypeError for others."""
    unknown = metadata.keys() - _OF_ANSWERS.keys()
    if unknown:
        raise TypeError(
            f"{method} got {sorted(unknown)[0]}=; {', '.join(_OF_ANSWERS)} are allowed beside X. "
            "Leave it out."
        )
    return {**dict.fromkeys(_OF_ANSWERS), **metadata}


# An attribute that a fit does not have.
_ABSENT = object()


class UtilityEstimator(Recorded, CallbackSupportMixin, RegressorMixin, BaseEstimator):
    """Common base of the estimators: fits one utility, and reads what predictions are asked of.

    The public methods, with the metadata that each takes, are the estimators' own.
    """

    @property
    def duels_(self) -> Duels:
        """Distinct duels of the last fit, with counts."""
        check_is_fitted(self)
        return self.comparisons_.without_groups().duels

    @property
    def n_item_components_(self) -> int:
        """Groups of items that neither answers nor the kernel join: 1 where all are comparable.

        Items that no answer is about do not count. See `skpref.inspection.connected_items`.
        """
        check_is_fitted(self)
        return n_components_of(self)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of an object that is a parameter as ``name__parameter``."""
        for name in params:
            head, nested, _ = name.partition("__")
            holder = params.get(head, getattr(self, head, self))
            if nested and head in self._get_param_names() and not hasattr(holder, "get_params"):
                raise ValueError(
                    f"{name} is a parameter of the object given as {head}=, but {head} is "
                    f"{holder!r}. Give the object first, such as judge_prior=JudgePrior(), "
                    "inference=EP() or kernel=RBF()."
                )
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Tags:
        return scored_tags(self, super().__sklearn_tags__())

    # -- files -----------------------------------------------------------------------------

    def check_loaded_fields(self) -> None:
        """Raise TypeError unless attributes read from a file are those of a fit, see `Fields`."""
        fields = {"_fit_metadata": frozenset(), **vars(self)}
        for name, kind in {"posterior_": Recorded, "_fit_metadata": Set}.items():
            if not isinstance(fields.get(name), kind):
                raise TypeError(f"{name} is {fields.get(name)!r:.40}, not a {kind.__name__}")
        classes = fields.get("classes_")
        if classes is not None and np.ndim(classes) != 1:
            raise TypeError(f"classes_ is {classes!r:.40}, not an array of labels")

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the whole fitted model as plain arrays, for a file without pickle.

        `from_arrays` makes the same model again: its predictions, and all else that follows a fit.
        Callbacks and metadata requests are left out.

        Returns
        -------
        dict of ndarray
            ``"document"`` holds bytes of JSON: classes by name, their parameters and fields. The
            others are arrays of numbers, dates or texts, each by its path, such as
            ``posterior_.weights``. They are not copies.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If it holds what names and numbers do not tell: a kernel, likelihood or engine of your
            own, a function, a random generator, ids of odd types. The message says where, and what
            to do.

        Examples
        --------
        >>> import io
        >>> import numpy as np
        >>> from skpref import PairwisePreferenceRegressor
        >>> model = PairwisePreferenceRegressor().fit([["ann", "bob"], ["bob", "cid"]])
        >>> file = io.BytesIO()  # or a path
        >>> np.savez(file, **model.to_arrays())
        >>> _ = file.seek(0)
        >>> again = PairwisePreferenceRegressor.from_arrays(np.load(file))
        >>> bool(np.all(again.predict(["ann", "bob"]) == model.predict(["ann", "bob"])))
        True
        """
        check_is_fitted(self)
        return super().to_arrays()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_skpref_version": skpref_version()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        written = state.get("_skpref_version", "of an unknown version")
        if written != skpref_version():
            warn(
                f"A {type(self).__name__} is unpickled that skpref {written} wrote; this is skpref "
                f"{skpref_version()}. Compare a few predictions with those of then, or fit again. "
                "to_arrays() and from_arrays(...) are made for going from version to version."
            )
        super().__setstate__({k: v for k, v in state.items() if k != "_skpref_version"})

    # -- fitting one utility -------------------------------------------------------------

    def _fit_utility(self, X, y, keywords, judge_prior=None):
        """Fit one utility to all answers, with metadata by name, and return the estimator."""
        settings = check_settings(self)
        training = check_training(self, X, y, keywords, settings.likelihood)
        if "measured" in keywords:
            training = with_measured(self, training, keywords["measured"], self.value_level)
        return self._fit_answers(settings, training, keywords, judge_prior)

    def _fit_answers(self, settings, training, keywords, judge_prior=None):
        """Fit one utility to answers that were read, and return the estimator."""
        by_order = settings.likelihood.uses_order or training.reader.by_order
        ignored = () if by_order else ("order",)
        needed = [name for name in _OF_ANSWERS if name in keywords and name not in ignored]
        check_metadata_requested(self, needed)
        fitted = self._fitted(settings, training, judge_prior=judge_prior)
        self._keep_utility(fitted, training)
        self._fit_metadata = frozenset(keywords.keys() - {"sample_weight"})
        return self

    def _fitted(
        self,
        settings: Settings,
        training: Training,
        points: NDArray[np.float64] | None = None,
        judge_prior: JudgePrior | None = None,
    ) -> Fitted:
        """Return a fit of these answers, at ``points`` or the inducing points of the engine."""
        comparisons, search = training.comparisons, settings.search
        if settings.engine is not None and settings.engine.capabilities.samples:
            # Random numbers are dealt out in the order of the answers.
            keys = training.reader.sort_keys(comparisons.items)
            judges = None if training.judges is None else name_ranks(training.judges.names)
            comparisons = comparisons.in_canonical_order(keys, judges)
            training = training._replace(comparisons=comparisons)
        model = make_model(self, settings, training)
        if points is not None:
            model = at_points(model, points)
        warm = getattr(model.engine, "warm_start", False)
        start = getattr(self, "_start", None) if warm else None
        if start is not None and start.comparisons is not None:
            earlier = start.comparisons
            items = training.reader.from_earlier(earlier.items, self.posterior_.reader)
            start = start._replace(comparisons=replace(earlier, items=items))
        rng = read_random_state(self.random_state)
        timed = training.reader.time is not None
        with progress(self, comparisons, model, search, timed) as report:
            run = start, rng, search, report.report_evaluation, report.report_pass
            if training.judges is None or judge_prior is None:
                return fit_posterior(comparisons, model, *run)
            return fit_judged(comparisons, model, judge_prior, training.judges, *run)

    def _keep_utility(
        self,
        fitted: Fitted,
        training: Training,
        stream: Stream | None = None,
    ) -> None:
        """Set the attributes of a fit of one utility; ``stream`` follows a piece of a stream."""
        model, state, judges = fitted.model, fitted.state, fitted.judges
        # The posterior is that of the reference judge.
        likelihood = model.likelihood
        if judges is not None and isinstance(likelihood, JudgeReliability):
            likelihood = likelihood.base
        self._model, self._all_at_once = model, True
        # Only chains are carried over, not the search.
        if not model.engine.capabilities.has_evidence:
            state = state._replace(sites=None)
        self._start = state if getattr(model.engine, "warm_start", False) else None
        through_time = model.engine.prior_rule.through_time
        if through_time or (model.rule.by_points and judges is None):  # there may be more
            self._prior_parameters = prior_parameters(self)
        if through_time and training.reader.time is not None:
            times = training.comparisons.items[:, training.reader.n_features]
            self._fitted_times = np.array([times.min(), times.max()])
        if model.rule.by_points and judges is None:
            self._stream = new_stream(fitted, self.n_learning_answers) if stream is None else stream
        elif hasattr(self, "_stream"):
            del self._stream
        if hasattr(self, "_earlier_items"):
            del self._earlier_items
        self._keep(
            training,
            posterior_=replace(
                fitted.averaged_posterior(), likelihood=likelihood, reader=training.reader
            ),
            comparisons_=training.comparisons if stream is None else fitted.comparisons,
            kernel_=model.kernel,
            likelihood_=likelihood,
            engine_=model.engine,
            diagnostics_=fitted.diagnostics,
            log_marginal_likelihood_value_=fitted.log_evidence,
            n_iter_=fitted.n_iter,
            monotone_violations_=_ABSENT
            if model.monotone is None
            else model.monotone.violation_shares(fitted.posterior),
        )

    def _keep(self, training: Training, **attributes: Any) -> None:
        """Set the fitted attributes that all fits have."""
        training.reader.set_fitted_attributes(self)
        for name in (name for name in ANSWER_DEFAULTS if not name.endswith("_bounds")):
            attributes[f"{name}_"] = getattr(attributes["likelihood_"], name, _ABSENT)
        attributes["classes_"] = _ABSENT if training.classes is None else training.classes
        for name, value in attributes.items():
            if value is not _ABSENT:
                setattr(self, name, value)
            elif hasattr(self, name):
                delattr(self, name)

    def _log_evidence(self, theta, eval_gradient):
        """Return the log evidence of one utility at theta, with its gradient if asked."""
        model = self._model if theta is None else self._model.checked_at(theta)
        result = evaluate_evidence(judged_comparisons(self)[0], model, eval_gradient=eval_gradient)
        value = result.approximation.sites.log_evidence
        return (value, result.gradient) if eval_gradient else value

    def _fitted_parameters(self) -> dict[str, Any]:
        """Return constructor parameters that hold the fitted hyperparameters, by name."""
        return {"kernel": self.kernel_, "likelihood": self.likelihood_, "optimizer": None}

    # -- reading a question --------------------------------------------------------------

    def _prediction(self, method, X, **keywords):
        """Return a prediction about X, with all metadata that the method takes, None or not."""
        check_is_fitted(self)
        reader = self.posterior_.reader
        query = reader.answers(X, self)
        if method not in ("predict", "score"):
            self._refuse_items(query)
        metadata = AnswerMetadata.read(given_metadata(**keywords), len(query), query.size)
        excluded = ("order", "judges", "prompts") if query.size is None else ("qid",)
        expected = {name: values for name, values in keywords.items() if name not in excluded}
        self._check_metadata(method, expected)
        query = reader.with_times(query, metadata.time)
        if method != "predict":
            query = reader.with_order(query, metadata.order)
        return Prediction(
            self._posterior_for(metadata),
            query,
            metadata,
            self._judge_average_per_reading(metadata),
        )

    def _posterior_for(self, metadata):
        """Return the posterior that answers with these metadata are predicted by."""
        return self.posterior_

    def _judge_average_per_reading(self, metadata):
        """Return how judges see the duels, by reading; None: as the reference judge."""

    def _refuse_items(self, query):
        """Raise ValueError if the query is of items where answers are needed."""
        if query.size is None:
            table = "" if self.items_ is None else " or integers of shape (n_duels, 2) or (n, k)"
            raise ValueError(
                f"got {len(query)} items where duels or sets are needed. X must be of shape "
                f"(n_duels, 2, n_features) or (n, k, n_features){table}; for utilities of items "
                "call predict."
            )

    def _decision_values(self, prediction):
        """Return decision values: mean margins of duels, or utilities of the items of sets.

        scikit-learn's calibration takes a column for each class where there are more than two. It
        gets log-probabilities of these.
        """
        calibration, n_classes = calibration_method(), len(self.classes_)
        if calibration == "temperature" and not np.array_equal(self.classes_, range(n_classes)):
            raise ValueError(
                f"CalibratedClassifierCV(method='temperature') takes labels 0, 1, ... in that "
                f"order; those of this model are {self.classes_.tolist()}. Take method='sigmoid' "
                "or 'isotonic'" + (", or fit duels with labels 0 and 1." if n_classes == 2 else ".")
            )
        if calibration is not None and n_classes > 2:
            return np.maximum(prediction.proba(log=True), np.log(np.finfo(np.float64).tiny))
        return prediction.judged_means()

    def _score(self, prediction, y, sample_weight, groups=None):
        """Return the share of answers called right, or of pairs of rated items of one group."""
        if prediction.query.size is None:
            if y is None:
                raise ValueError("Scoring items needs their ratings: score(X, y).")
            utility = prediction.moments(return_std=False, return_cov=False)
            groups = prediction.metadata.qid if groups is None else groups
            return concordance(utility, y, groups, sample_weight=sample_weight)
        right = prediction.share_correct(y)
        if sample_weight is not None:
            sample_weight = check_scoring_weights(sample_weight, right)
        weighted = np.average(right, weights=sample_weight)  # type: ignore[arg-type]  # stub too narrow
        return float(weighted)

    # -- metadata that scorers drop ------------------------------------------------------

    def _check_metadata(self, method, metadata):
        """Raise ValueError if a scorer dropped metadata of `fit` that predictions depend on."""
        dropped = metadata.keys() & self._missing_metadata(given_metadata(**metadata))
        if dropped:
            routing = self.get_metadata_routing()
            requests, of_fit = getattr(routing, method).requests, routing.fit.requests
            names = [name for name in metadata if name in dropped]
            aliases = {name: of_fit.get(name) for name in names if requests.get(name) is not False}
            refuse_dropped(
                {name: as_ if isinstance(as_, str) else name for name, as_ in aliases.items()}
            )

    def _missing_metadata(self, given):
        """Return the names of metadata of `fit` that predictions depend on and lack."""
        fit_metadata: frozenset[str] = getattr(self, "_fit_metadata", frozenset())
        return {name for name in fit_metadata if name not in given and self._depends_on(name)}

    def _depends_on(self, name):
        """Return whether predictions depend on metadata of this name."""
        if name == "prompts":  # without them answers are about new ones
            return False
        moves = self.posterior_.reader.by_order
        return name != "order" or moves or self.posterior_.likelihood.order_shift != 0.0


class PairwisePreferenceRegressor(UtilityEstimator):
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
    likelihood : Likelihood, default=None
        The probability of an answer given the margin, an object of `skpref.likelihoods.Likelihood`.
        ``noise_variance``, ``tie_threshold``, ``grade_thresholds``, ``order_effect`` and their
        bounds are then ignored. None: a probit with these parameters.
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
    judge_prior : JudgePrior, default=None
        What is expected of ``judges`` (see `fit`): how their reliability varies, how many answer at
        random or are adversarial, whether they have order effects of their own. None:
        ``JudgePrior()``. Nested, as in ``judge_prior__variance``.
    lengthscale_prior : "lognormal", (median, deviation) or None, default="lognormal"
        Prior on the lengthscales while they are learned. "lognormal": medians of √d standard
        deviations of each feature, their logarithms sharing a normal level (standard deviation
        1) from which each deviates by Student's t (scale 0.3, 4 degrees of freedom). A pair: a
        median in the units of the rows that the kernel sees and a standard deviation of the
        logarithm, independent log-normals. None: evidence alone. Lengthscales of time have a prior
        of their own, see ``drift``, unless it is None.
    items : ItemTable, array-like or DataFrame of shape (n_items, n_features), default=None
        Table for duels given as integer pairs. An `ItemTable` is not copied by ``clone``; names,
        as a list or in an `ItemTable`, are items without features. None: the names in X, if any.
        With ``id_column`` they name the ids of an array, which are positions among them.
    id_column : int or str, default=None
        Position or name of the column of X with the items' ids. The other columns are features,
        which may change from duel to duel. None: the column of a `DuelFrame` built with ids, if
        any. The default kernel then gives each id an item effect, and adds to it a linear part and
        an RBF of the features, with a learned variance each. Half-Cauchy priors on the deviations
        of these two (median 0.5, where 1 is the median of the item effects') let go of features
        that say nothing; the level of "lognormal" lengthscales has a standard deviation of 0.5
        towards short ones.
    value_level : float, default=None
        α, the value of an item of utility 0, where values are ``measured`` (see `fit`). None:
        nothing is known of it (a flat prior).
    drift : {"wiener", "matern12", "matern32", "matern52"} or kernel, default=None
        How the utility of each item changes with the ``time`` of `fit`, beside what stays: a random
        walk that nothing draws back (`skpref.kernels.Wiener`), or one that returns to the item's
        own level within a lengthscale and is ever smoother (a Matérn kernel of ν = 1/2, 3/2, 5/2).
        Or a kernel of one column, the time, in the user's unit; of dates it is a day. One in which
        there is no ``ConstantKernel`` and no `Wiener` gets a learned amplitude. ``kernel``, or the
        default one, is then of the features without the time. Ids drift, without these named items
        or rows of features. None: "matern12" if times come and ``kernel`` is None; a kernel that is
        given sees the time itself, as the last column. The lengthscale of time has a log-normal
        prior (median a third of the times' span, deviation of the logarithm 1.5); a half-Cauchy
        prior on the drift's deviation over that span (median half that of what stays) lets go of it
        where nothing drifts.
    order_drift : {"wiener", "matern12", "matern32", "matern52"} or kernel, default=None
        How the order effect moves, as ``drift`` says it of utilities: what is shown first has a
        level with the variance of the utility, and a walk about it, both learned with the utility
        (home advantage in empty stadiums). ``order_effect`` is the level's mean beforehand;
        `skpref.inspection.order_trajectory` tells the effect by time. Needs ``time``; neither with
        ``judges`` nor with items independent through time. None: it does not move.
    seasons : array-like of shape (n_starts,), default=None
        When seasons begin, as ``time`` is given; known ones may lie ahead. In between utilities are
        drawn to what stays of them: at each start a share of the ``drift`` is left, which is
        learned, and the rest drawn anew (`skpref.kernels.Seasons`). None: there are no off-seasons.
    inference : {"auto", "ep", "laplace", "hmc", "gibbs", "svi"} or engine, default="auto"
        How the posterior is computed ("hmc" and "gibbs" sample it, "svi" is for many answers and
        many items, which `partial_fit` takes in pieces). "auto" is "ep". Where that would take more
        than a minute, from about 4 000 items on, or more memory than there is, "auto" is
        ``SVI(n_inducing=500)``, with a warning; of items that drift, from some 350 duels on, it is
        ``EP(items="independent")``. ``engine_`` is the engine used. An options object
        from `skpref.inference`, such as ``EP(damping=0.2)``, is tuned by ``inference__damping``
        (the strings have no options: pass ``inference=EP()`` to a grid).
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        As in scikit-learn's GaussianProcessRegressor; None: kernel and noise stay as given.
    n_restarts_optimizer : int, default=0
        Further starts of the search, drawn log-uniformly within the bounds.
    n_learning_answers : "auto", int or None, default="auto"
        Number of answers (duels, sets, pairs of rated items) that hyperparameters are learned on: a
        fixed random part. All answers are then fitted with them. "auto": all, unless learning on
        2000 or more would take some 20 s; then 1000 (2000 of names alone), with a warning. With
        "svi" it is 800, or 5000 (see `skpref.inference.SVI`), unless all take a second or two.
        None: all.
    random_state : int, RandomState instance, Generator or None, default=None
        For the restarts, the samplers, and the inducing points of "svi".
    n_jobs : int, default=None
        Restarts in parallel by joblib.
    verbose : int, default=0
        1: prints what is learned and, every few seconds, the progress; 2: every evaluation, and
        every pass of "svi" over the answers. Callbacks set by ``set_callbacks`` get each of these
        too, and may end the search or the passes.
    monotone : dict, default=None
        Features of which more is better, 1, or less, -1, all else being equal, by their names, or
        positions in arrays: ``{"price": -1, "battery": 1}``. Where the posterior is likely to say
        otherwise (with a probability above 0.1, as far as 200 random pairs show), up to 100 virtual
        duels are placed, whose noise has a tenth of the deviation of the answers'. The evidence is
        that of the answers given these: smaller than with None where it is not so. An item effect
        of the default kernel is then the same at any value of these features. For "ep", "hmc" and
        "gibbs"; not with ``judges``, ``prompts`` or ``time``.

    Attributes
    ----------
    posterior_ : Posterior or PosteriorMixture
        Posterior of the utility; see there for quantiles, draws and gradients. A mixture where few
        ``judges`` leave open which of them answer the wrong way round.
    judges_ : Judges or None
        How reliable each judge is, with intervals, if ``judges`` were given; ``likelihood_``,
        ``noise_variance_`` and ``posterior_`` then are of the reference judge.
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
    value_level_ : float or None
        Posterior mean of α, if values were ``measured``: ``value_level_ + predict(X)`` are values
        to expect.
    classes_ : ndarray of shape (2,), (3,) or (k,)
        Labels of (second won, first won), with ties (second won, tie, first won), with grades all
        of them in ascending order; or positions in a set; only after a fit on duels or sets.
    comparisons_ : Comparisons
        Distinct items and the answers, as given. After a fit with ``time`` an item is one at a
        time: the last column is its time since the first of training, dates in days.
    duels_ : Duels
        Distinct duels and ties among them, with counts.
    items_ : ItemTable or None
    n_item_components_ : int
        Groups into which the items of the answers fall: 1 where answers, or features by the kernel,
        join all of them. Of items with names a fit warns of several. See
        `skpref.inspection.connected_items`.
    engine_ : Engine
        The engine that ``inference`` stands for; with inducing points, these too.
    monotone_violations_ : dict
        By each column of ``monotone``: the share of fresh random pairs, equal in all else, in which
        the mean utility is the wrong way round; only with ``monotone``.
    diagnostics_ : Diagnostics, Course or None
        Of the chains, if the engine samples; the course of the bound, of "svi".
    n_iter_ : int
        Iterations of the engine in its last run, in its own measure (draws of a chain).
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Features of an item; the latter if they were in a DataFrame whose columns are all strings.

    Notes
    -----
    The parameters come in groups: the model (``kernel`` to ``lengthscale_prior``), the items
    (``items`` and ``id_column``), and the computation (the rest).

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

    Utilities that change: ann has won of old, and bob wins now.

    >>> games = [["ann", "bob"]] * 5 + [["bob", "ann"]] * 5  # the winner first
    >>> model = PairwisePreferenceRegressor(drift="wiener", optimizer=None)
    >>> model = model.fit(games, time=range(2016, 2026))
    >>> model.predict_proba([["ann", "bob"]] * 3, time=[2016, 2025, 2040])[:, 1].round(2)
    array([0.91, 0.09, 0.29])
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        likelihood: Likelihood | None = None,
        noise_variance: float = 1e-2,
        noise_variance_bounds: tuple[float, float] | str = (1e-4, 10.0),
        tie_threshold: float | None = None,
        tie_threshold_bounds: tuple[float, float] | str = (1e-4, 10.0),
        grade_thresholds: Sequence[float] | None = None,
        grade_threshold_bounds: tuple[float, float] | str = (1e-4, 10.0),
        order_effect: float = 0.0,
        order_effect_bounds: tuple[float, float] | str = "fixed",
        judge_prior: JudgePrior | None = None,
        lengthscale_prior: str | tuple[float, float] | None = "lognormal",
        items: ItemTable | ArrayLike | None = None,
        id_column: int | str | None = None,
        value_level: float | None = None,
        drift: str | Kernel | None = None,
        order_drift: str | Kernel | None = None,
        seasons: ArrayLike | None = None,
        inference: str | Engine = "auto",
        optimizer: str | Callable | None = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        n_learning_answers: int | str | None = "auto",
        random_state: RandomLike = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        monotone: Mapping[str | int, int] | None = None,
    ):
        self.kernel = kernel
        self.likelihood = likelihood
        self.noise_variance = noise_variance
        self.noise_variance_bounds = noise_variance_bounds
        self.tie_threshold = tie_threshold
        self.tie_threshold_bounds = tie_threshold_bounds
        self.grade_thresholds = grade_thresholds
        self.grade_threshold_bounds = grade_threshold_bounds
        self.order_effect = order_effect
        self.order_effect_bounds = order_effect_bounds
        self.judge_prior = judge_prior
        self.lengthscale_prior = lengthscale_prior
        self.items = items
        self.id_column = id_column
        self.value_level = value_level
        self.drift = drift
        self.order_drift = order_drift
        self.seasons = seasons
        self.inference = inference
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.n_learning_answers = n_learning_answers
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.monotone = monotone

    # -- fitting -------------------------------------------------------------------------

    # What scikit-learn routes here without being asked to. It finds these by a part of their names,
    # so that requests of predict_proba count for predict too, unless those of predict come last.
    __metadata_request__fit: ClassVar = {"qid": True, "measured": True, **_OF_ANSWERS}
    __metadata_request__partial_fit: ClassVar = {"qid": True, **_OF_ANSWERS}
    __metadata_request__predict_proba: ClassVar = _OF_ANSWERS
    __metadata_request__predict_log_proba: ClassVar = _OF_ANSWERS
    __metadata_request__decision_function: ClassVar = _OF_ANSWERS
    __metadata_request__score: ClassVar = {"qid": True, **_OF_ANSWERS}
    __metadata_request__predict: ClassVar = {
        **unrequested_metadata("order", "judges", "prompts"),
        "time": True,
        "offset": True,
    }

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
        prompts: ArrayLike | None = None,
        time: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        measured: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
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
        order : array-like of int of shape (n_duels,) or (n,) or a scalar, default=None
            Who was shown first, for the order effect: 1 the first item, 0 none (neutral ground),
            of duels also -1 the second. None: the first, always. Where the order effect is held at
            0 it does nothing, with a warning: give ``order_effect_bounds``.
        judges : array-like of shape (n_duels,), default=None
            Who gave each answer, ids of any hashable kind: judges of one truth, some more reliable
            than others, of whom some may answer at random or the wrong way round. None: all are one
            judge.
        prompts : array-like of shape (n_duels,) or (n,), default=None
            What each answer is about beside its items, ids of any hashable kind: the prompt of two
            responses, the day of two visits. Answers of one prompt are not independent: each item
            has an effect of its own in each prompt, and in each pair that is judged more than once.
            Where no prompt has two answers nothing tells such effects from noise, and there are
            none. Not with ``time``.
        time : array-like of shape (n,) or (n_items,), or a scalar, default=None
            When each answer, or rating, was given: numbers in a unit of your own, or dates
            (datetime64, datetime or date objects, pandas' Series and indices), in any order. Dates
            with a time zone count as UTC. Needed with ``drift``.
        offset : array-like of shape (n_duels, 2), (n, k) or (n_items,), default=None
            Known part of the utility of each item in each answer, in units of the utility, in which
            ``noise_variance`` is a variance: a handicap, a price, an expert's guess. What is
            learned comes on top of it. With ``kernel=None`` its amplitude is then learned, too. Of
            positions in a table whose handicaps are known it is ``handicap[X]``. Not with
            ``judges``.
        measured : (X, values, deviations), default=None
            Values that were measured of items, more is better: X (n_values, n_features), or names
            or positions (n_values,), the values (n_values,), and the standard deviations of their
            normal noise, (n_values,) or one for all. A value is α + f(x) + noise, so that the
            utility is in units of the value; ``value_level_`` is α. With ``kernel=None`` the
            utility's amplitude is then learned, and what else is learned of answers, such as the
            noise, starts and is bounded by ``noise_variance``, its bounds and so on times the
            values' variance (thresholds: deviation). Answers of weight 0 leave values alone. A
            pipeline does not transform these items. Not with ``judges``, ``prompts``, ``time``,
            inducing points or `skpref.kernels.Intransitive`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If X, y or a parameter is not of an allowed form; the message says which are.

        Examples
        --------
        Two measured values, and a duel with an item that nobody measured:

        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from skpref import PairwisePreferenceRegressor
        >>> model = PairwisePreferenceRegressor(RBF(1.0), optimizer=None)
        >>> model = model.fit([[[2.0], [1.0]]], measured=([[0.0], [1.0]], [3.0, 3.5], 0.1))
        >>> (model.value_level_ + model.predict([[0.0], [1.0], [2.0]])).round(1)
        array([3. , 3.5, 4.2])
        """
        prior = check_judge_prior(self.judge_prior, self.optimizer is not None)
        keywords = given_metadata(
            qid=qid,
            sample_weight=sample_weight,
            order=order,
            judges=judges,
            prompts=prompts,
            time=time,
            offset=offset,
            measured=measured,
        )
        self._fit_utility(X, y, keywords, prior)
        warn_of_components(self)
        return self

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
        time: ArrayLike | None = None,
        **refused: ArrayLike | None,
    ) -> Self:
        """Learn from more answers, with ``inference="svi"`` or after a `fit` where "auto" took it.

        The posterior given earlier answers is the prior of further ones. Memory does not grow with
        their number: a random sample of ``n_learning_answers`` answers is kept (5000, if that is no
        number). Whenever the answers have doubled, hyperparameters are learned
        again on the sample (from the start, while it holds all answers), and inducing points are
        chosen again where others explain much more of its items. In between, items that are far
        from all points become points, up to twice ``n_inducing`` (as many as there are, for items
        that have names alone). Points of your own, ``SVI(inducing_points=...)``, stay as they are.

        Of items that drift, with ``inference=EP(items="independent")``, hyperparameters stay. Up to
        some 350 duels in all the answers are kept, and all of them are fitted jointly: at any time
        the posterior is that of one fit (with ``optimizer=None`` scales of time follow all their
        times). Beyond, later answers are filtered into the posterior:
        what that takes does not depend on how many came before. What is said of earlier times
        stays then, until ``posterior_.smoothed()``, and an answer must not be earlier than the last
        one about its items.

        Parameters
        ----------
        X, y, qid, sample_weight, order, time
            As in `fit`; items and ids need not have been seen before. A piece may hold one label
            alone. Parameters of the estimator that were set since the last piece count from the
            next time that hyperparameters are learned; kernel, drift, seasons and id_column
            must be those of the pieces before.
        **refused
            None of prompts, judges and offset: effects of prompts and the reliability of judges are
            learned from all answers at once, by `fit`, which takes offsets, too. After a `fit`
            with offsets further answers are refused.

        Returns
        -------
        self
            ``comparisons_`` and ``log_marginal_likelihood_value_`` are of these answers, given the
            earlier ones; of all answers, where all were just fitted again.

        Raises
        ------
        AttributeError
            With other engines, which need all answers at once.
        ValueError
            As in `fit`, if these answers are not of the form of those before, or with judges.
        """
        others = _answer_metadata("partial_fit", refused)
        refuse_judged(self, others["judges"])
        refuse_offset(others["offset"], getattr(self, "_fit_metadata", ()))
        keywords = given_metadata(
            qid=qid, sample_weight=sample_weight, order=order, prompts=others["prompts"], time=time
        )
        if not continues_stream(self) and not hasattr(self, "_stream"):
            return self._fit_utility(X, y, keywords)
        refuse_other_prior(self, getattr(self, "_prior_parameters", {}))
        earlier = earlier_items(self)
        if continues_stream(self):
            joint = self._fit_later(X, y, keywords)
        else:
            joint = False
            self._fit_piece(X, y, keywords)
        if earlier is not None and not joint:
            self._earlier_items = earlier
        self._fit_metadata |= keywords.keys() - {"sample_weight"}
        return self

    def _further_training(self, X, y, keywords, likelihood):
        """Return the training data of answers that follow those of the fit."""
        before = self.posterior_.reader
        training = check_training(self, X, y, keywords, self.likelihood_, before)
        return continue_training(self, training, likelihood)

    def _fit_piece(self, X, y, keywords):
        """Fit a further piece of a stream, and set the attributes."""
        settings = check_settings(self)
        settings = settings._replace(engine=held_engine(self, settings.engine))
        training = self._further_training(X, y, keywords, settings.likelihood)

        def fit(sample: Comparisons, points: NDArray[np.float64] | None) -> Fitted:
            part = training._replace(comparisons=sample)
            return self._fitted(settings, part, points)

        placed = getattr(settings.engine, "inducing_points", None) is not None
        piece = fit_further(
            training.comparisons,
            self._model,
            self._stream,
            self.n_learning_answers,
            None if placed and settings.search is None else fit,
            movable=not placed,
        )
        self._keep_utility(piece.fitted, training, piece.stream)

    def _fit_later(self, X, y, keywords):
        """Fit later answers at the same hyperparameters; return whether all were fitted jointly."""
        training = self._further_training(X, y, keywords, self.likelihood_)
        joint = not isinstance(self.posterior_, ThroughTime)
        if joint:  # comparisons_ are all answers so far
            every = training._replace(
                comparisons=self.comparisons_.concatenate(training.comparisons)
            )
            settings = check_settings(self)
            if settings.search is None:  # what a kernel has of the times is of all of them
                settings = settings._replace(engine=held_engine(self, settings.engine))
                fitted = self._fitted(settings, every)
            else:
                fitted = fit_again(training.comparisons, self._model, self.comparisons_)
            self._keep_utility(fitted, every._replace(comparisons=fitted.comparisons))
        else:
            if training.reader.time is not None:
                times = training.comparisons.items[:, training.reader.n_features]
                warn_of_first_times(self, getattr(self, "_fitted_times", times), times)
            later = as_later_answers(training.comparisons, self._model, self.posterior_)
            self._keep(
                training,
                posterior_=replace(later.posterior, reader=training.reader),
                comparisons_=training.comparisons,
                likelihood_=self.likelihood_,
                log_marginal_likelihood_value_=later.log_evidence,
            )
        self._all_at_once = False
        return joint

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False
    ) -> float | tuple[float, NDArray[np.float64] | None]:
        """Return the log evidence of the training duels, as fitted (later parameters do nothing).

        After a piece of a stream that of its answers alone, as if there had been none before; of
        judges given their reliability. Measured values count, where their level is not known by
        their orthonormal contrasts.

        Parameters
        ----------
        theta : array-like, default=None
            ``np.r_[kernel_.theta, log σ², log δ, h, log increments of the grade thresholds]``,
            of the last four those that were learned;
            None: the fitted values.
        eval_gradient : bool, default=False

        Returns
        -------
        log_likelihood : float
        gradient : ndarray of shape (n_theta,)
            If ``eval_gradient``.
        """
        check_is_fitted(self)
        return self._log_evidence(theta, eval_gradient)

    # -- prediction ----------------------------------------------------------------------

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        time: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the posterior mean utility of items, margin of duels, or utilities of sets.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features), (n_duels, 2, n_features), (n, k, n_features)
            With ``items=`` also integers: (n_items,), (n_duels, 2) or (n, k).
        return_std : bool, default=False
            Also return the standard deviation of the (noise-free) utility or margin.
        return_cov : bool, default=False
            Also return their joint covariance; not both.
        time : array-like of shape (n,) or a scalar, default=None
            When, as in `fit`, for each row of X or for all. None: the last time of training.
        offset : array-like of shape (n_items,), (n_duels, 2) or (n, k), default=None
            Known part of the utility of each item, as in `fit`, which is added. None: 0.

        Returns
        -------
        mean : ndarray of shape (n,), of sets (n, k) with NaN where there is no item
        std : ndarray of the same shape
        cov : ndarray of shape (n, n)
        """
        prediction = self._prediction("predict", X, time=time, offset=offset)
        return prediction.moments(return_std, return_cov)

    @available_if(fitted_on_duels)
    def predict_proba(
        self,
        X: ArrayLike,
        *,
        order: ArrayLike | None = None,
        judges: ArrayLike | None = None,
        prompts: ArrayLike | None = None,
        time: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return probabilities of the outcomes of duels, or of each item to be chosen from its set.

        The judge's noise is included.

        Parameters
        ----------
        X : array-like of shape (n_duels, 2, n_features) or (n, k, n_features)
            With ``items=`` also integers, (n_duels, 2) or (n, k).
        order : array-like of int of shape (n,) or a scalar, default=None
            Who is shown first, as in `fit`.
        judges : array-like of shape (n_duels,), default=None
            Who answers, as in `fit`; the probability is averaged over their reliability. An id
            never seen is any judge; None, here or in it, the reference judge. They do
            nothing, with a warning, if the model was fitted without judges.
        prompts : array-like of shape (n_duels,) or (n,), default=None
            What the answers are about, as in `fit`. An id never seen, or None, is a new prompt.
        time : array-like of shape (n,) or a scalar, default=None
            When, as in `fit`, for each row of X or for all. None: the last time of training.
        offset : array-like of shape (n_duels, 2) or (n, k), default=None
            Known part of the utility of each item, as in `fit`. None: 0.

        Returns
        -------
        ndarray of shape (n_duels, n_outcomes), or (n, k)
            Of duels in the order of ``classes_``: second won, (tie,) first won; with grades one a
            label. Of sets: each of their items is the best; 0 where there is none.
        """
        prediction = self._prediction(
            "predict_proba",
            X,
            order=order,
            judges=judges,
            prompts=prompts,
            time=time,
            offset=offset,
        )
        return prediction.proba()

    @available_if(fitted_on_duels)
    def predict_log_proba(self, X: ArrayLike, **metadata: ArrayLike | None) -> NDArray[np.float64]:
        """Return the natural logarithm of `predict_proba`, finite far in the tails.

        Parameters
        ----------
        X : array-like
        **metadata
            As in `predict_proba`: order, judges, prompts, time, offset.

        Returns
        -------
        ndarray of shape (n_duels, n_outcomes), or (n, k)
        """
        method = "predict_log_proba"
        return self._prediction(method, X, **_answer_metadata(method, metadata)).proba(log=True)

    @available_if(fitted_on_duels)
    def decision_function(self, X: ArrayLike, **metadata: ArrayLike | None) -> NDArray[np.float64]:
        """Return mean margins of duels, or utilities of the items of sets, as the judge sees them.

        With an order effect what is shown first has more of it. Positive where the first item of a
        duel is more likely to win than the second.

        Parameters
        ----------
        X : array-like
        **metadata
            As in `predict_proba`; a judge sees the margin times their reliability.

        Returns
        -------
        ndarray of shape (n_duels,) or (n, k)
        """
        method = "decision_function"
        return self._decision_values(
            self._prediction(method, X, **_answer_metadata(method, metadata))
        )

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **metadata: ArrayLike | None,
    ) -> float:
        """Return the share of answers called right, or of pairs of rated or ranked items.

        Parameters
        ----------
        X : array-like
            Duels, sets or rated items.
        y : array-like
            Outcomes (None: the first won each), choices, ranks or ratings, as in `fit`.
        qid : array-like of shape (n_items,), default=None
            Groups of rated items.
        sample_weight : array-like of shape (n_duels,) or (n_items,), default=None
            A pair of items weighs the product of their weights.
        **metadata
            As in `predict_proba`: order, judges, prompts, time, offset. Rated items take time and
            offset.

        Returns
        -------
        float
            With ties or grades, the most probable outcome is called. A choice is called by the
            largest mean utility, order effect included; of rankings the stated pairs count that
            stand in order, within each answer. A margin of exactly zero counts one half.
        """
        keywords = _answer_metadata("score", metadata)
        return self._score(self._prediction("score", X, qid=qid, **keywords), y, sample_weight)

    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: RandomLike = 0,
        *,
        time: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return joint draws of utilities (of margins, for duels) from the posterior; not of sets.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features) or (n_duels, 2, n_features)
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0
        time : array-like of shape (n,) or a scalar, default=None
            When, as in `fit`, for each row of X or for all. None: the last time of training.
        offset : array-like of shape (n_items,) or (n_duels, 2), default=None
            Known part of the utility of each item, as in `fit`, which is added. None: 0.

        Returns
        -------
        ndarray of shape (n, n_samples)
        """
        check_number("n_samples", n_samples, low=1, integer=True)
        prediction = self._prediction("predict", X, time=time, offset=offset)
        return prediction.draws(n_samples, random_state)

    def _posterior_for(self, metadata):
        """Return the posterior, in the groups of the prompts if there are any."""
        posterior = self.posterior_
        if metadata.prompt is None:
            return posterior
        if posterior.reader.prompts is None:
            warn(
                "prompts= does nothing here, as the model was fitted without prompts. Pass "
                "prompts= to fit as well, or leave it out."
            )
            return posterior
        return posterior.in_groups(posterior.reader.prompts.codes(metadata.prompt))

    def _judge_average_per_reading(self, metadata):
        """Return how judges see the duels, for each reading of their reliability; None without."""
        if metadata.judge is None:
            return None
        if self.judges_ is None:
            warn(
                "judges= does nothing here, as the model was fitted without judges. Pass judges= "
                "to fit as well, or leave it out."
            )
            return None
        _, judges = self.judges_.components()
        return tuple(JudgeAverage.from_ids(each, metadata.judge) for each in judges)

    def _fitted_parameters(self):
        """Return constructor parameters that hold the fitted hyperparameters, by name."""
        of_kernel = {"drift": None, "seasons": None}  # which kernel_ has
        return {**super()._fitted_parameters(), **of_kernel}

    def _depends_on(self, name):
        """Return whether predictions depend on metadata of this name."""
        if name == "order" and self.judges_ is not None and self.judges_.order is not None:
            return True
        return super()._depends_on(name)

    def _keep_utility(self, fitted, training, stream=None):
        """Set the attributes of a fit, with judges and the level of measured values."""
        super()._keep_utility(fitted, training, stream)
        self.judges_ = fitted.judges
        self.value_level_ = level_of_values(self.posterior_, training.comparisons)
