"""How well a model predicts each answer that it was fitted to, had it not seen it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import Bunch

from skpref._utils import (
    BLOCK,
    Array,
    PrintableBunch,
    blas_threads,
    row_blocks,
    solve_blocks,
    symmetric_root,
)
from skpref.data import Comparisons, ParsedX, table_frame
from skpref.fitting import Model, judged_rows, last_step
from skpref.gp import GroupedPosterior, Posterior, ThroughTime, moments, posterior_parts
from skpref.inference import (
    AnswerForecast,
    Approximation,
    Problem,
    SiteRemoval,
    Sites,
    matching_sites,
    site_update,
)
from skpref.inspection._members import GroupMembers
from skpref.inspection._pareto import pareto_smoothed
from skpref.likelihoods import JudgeReliability, Likelihood

# How far each way of leaving out is from fits without the answer, as it was measured.
_ERRORS = {
    "EP": "cavities of expectation propagation; mostly within {} nats of fits without each answer",
    "Laplace": "sites at the mode; within 0.1 nats of fits without each answer",
    "users": (
        "cavities of expectation propagation, where a user's other sites follow; mostly within 0.1 "
        "nats of fits without each answer"
    ),
    "SVI": "sites of the expected curvature; mostly within 0.1 nats of fits without each answer",
}


@dataclass(frozen=True)
class RemovalSettings:
    """How answers are left out.

    Attributes
    ----------
    n_draws : int
        Draws that importance weights are computed from, at least.
    n_followed : int
        Distinct answers up to which all sites follow where one is left out: a conditioning each.
    unreliable_shape : float
        k̂ from which on an estimate is not to be trusted (Vehtari et al. 2024, section 3.2.4).
    n_followed_of_user : int
        Distinct answers of a user up to which the sites of the others follow where one is left
        out. Without, half of the answers that surprise most were off by half a nat.
    user_sweeps : int
        Sweeps over these sites.
    user_step : float
        Share of each sweep's step: whole ones may go to and fro.
    """

    n_draws: int = 4000
    n_followed: int = 200
    unreliable_shape: float = 0.7
    n_followed_of_user: int = 100
    user_sweeps: int = 8
    user_step: float = 0.8


SETTINGS = RemovalSettings()


class _Removal(Protocol):
    def leave_each_out(self) -> AnswerForecast: ...
    def leave_out(self, removed: Array) -> AnswerForecast: ...


class WeightedRemoval(NamedTuple):
    """The answers in one reading of the judges, and a posterior to take them from."""

    weight: float
    comparisons: Comparisons
    likelihood: Likelihood
    removal: _Removal


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """Log predictive densities of answers without them, or without their groups; see `loo`.

    Attributes
    ----------
    pointwise : ndarray of shape (n,)
        Natural logarithms, one an answer in the order of the fit (those of weight 0, or that say
        nothing, are not there), or the sum of each group's answers.
    weight : ndarray of shape (n,)
        Of each answer; 1 of groups.
    k : ndarray of shape (n,) or None
        k̂ of importance sampling, of engines that sample; above 0.7 a value is not to be trusted.
    groups : ndarray of shape (n,) or None
        What was left out; None: each answer.
    size : ndarray of shape (n,)
        Answers of each, by weight.
    method : str
        How answers were left out, and how exact that is.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import loo
    >>> duels = [["ann", "bob"], ["bob", "cid"], ["ann", "cid"]] * 4
    >>> left_out = loo(PairwisePreferenceRegressor(optimizer=None).fit(duels))
    >>> float(left_out.size.sum()), bool(left_out.sum < 0.0), left_out.k is None
    (12.0, True, True)
    """

    pointwise: Array
    weight: Array
    k: Array | None
    groups: NDArray[Any] | None
    size: Array
    method: str

    @property
    def sum(self) -> float:
        """Return the expected log predictive density of all answers, in nats."""
        return float(self.weight @ self.pointwise)

    @property
    def se(self) -> float:
        """Return the standard error of the sum."""
        return _standard_error(self.pointwise, self.weight)

    @property
    def mean(self) -> float:
        """Return the expected log predictive density of an answer."""
        return self.sum / float(self.size.sum())

    def __repr__(self) -> str:
        what = "answers" if self.groups is None else f"answers in {len(self.groups)} groups"
        text = (
            f"<LeaveOneOut: {self.size.sum():g} {what}, {self.sum:.1f} ± {self.se:.1f} nats, "
            f"{self.mean:.3f} an answer; {self.method}"
        )
        if self.k is not None:
            least = SETTINGS.unreliable_shape
            text += f"; k̂ above {least} for {np.count_nonzero(self.k > least)}"
        return text + ">"

    def to_arviz(self) -> Any:
        """Return the same as ``arviz.ELPDData``, for `arviz.compare` and its plots.

        Raises
        ------
        ImportError
            Unless ArviZ before 1.0 is installed.
        """
        try:
            from arviz import ELPDData
            from xarray import DataArray
        except ImportError as error:
            raise ImportError(
                "to_arviz needs ArviZ below 1.0. Install it (pip install 'arviz<1'), or use "
                "pointwise, sum, se and k."
            ) from error
        copies = np.maximum(np.rint(self.weight), 1).astype(int)
        pointwise = DataArray(np.repeat(self.pointwise, copies), dims="answer")
        n_draws = 0 if self.k is None else SETTINGS.n_draws
        unreliable = self.k is not None and bool(np.any(self.k > SETTINGS.unreliable_shape))
        values = {
            "elpd_loo": self.sum,
            "se": self.se,
            "p_loo": np.nan,
            "n_samples": n_draws,
            "n_data_points": pointwise.size,
            "warning": unreliable,
            "loo_i": pointwise,
            "scale": "log",
            "good_k": SETTINGS.unreliable_shape,
        }
        if self.k is not None:
            values["pareto_k"] = DataArray(np.repeat(self.k, copies), dims="answer")
        return ELPDData(data=list(values.values()), index=list(values))


def _standard_error(pointwise, weight):
    """Return the standard error of the weighted sum of values; NaN of one alone."""
    n = weight.sum()
    if n <= 1.0:
        return float("nan")
    mean = weight @ pointwise / n
    return float(np.sqrt(n / (n - 1.0) * (weight @ (pointwise - mean) ** 2)))


def loo(model: Any, by: str | ArrayLike | None = None) -> LeaveOneOut:
    r"""Compute the expected log predictive density of each answer without it.

    Hyperparameters and the reliability of judges are held. Answers are taken from the posterior,
    and nothing is fitted again: with expectation propagation and Laplace's method by the sites of
    the answers, all of a choice or a ranking as a block and one copy of an answer that was given
    more than once; with SVI by the sites of its expected curvature; of HMC and Gibbs by importance
    sampling with Pareto-smoothed weights [1]_. Where answers leave several readings of the judges
    open, these are weighed anew without each answer.

    Parameters
    ----------
    model : estimator, pipeline or search
        Fitted to answers.
    by : {"item", "judge", "prompt", "time"} or array-like of shape (n_answers,), default=None
        What is left out as a whole: all answers about an item, of a judge, on a prompt or at a
        time, or those of equal value, such as days. The value of a group is the sum over its
        answers, each predicted without any of them. With "item" an answer counts in the group of
        every item in it. None: each answer.

    Returns
    -------
    LeaveOneOut

    Raises
    ------
    TypeError
        If the model has no posterior.
    ValueError
        If what the model was fitted to cannot be left out: pieces of a stream; choices and
        rankings, or prompts, with an engine that samples; several users with ``inference="vb"``, or
        groups of their answers; or if it has no groups of that name.

    Notes
    -----
    With sites :math:`t_i` of Gaussian posterior :math:`q`, an answer has the density
    :math:`\int p(y_i \mid f)\, q(f) / t_i(f)\, df` up to its normaliser. The sites of all others
    are those of the fit, which is how the values differ from those of a fit without the answer:
    so that of few answers, up to 200 distinct ones, and of groups, these sites then follow in
    three sweeps. Of several users those of the same user follow, up to 100 distinct ones, which
    takes a millisecond or two an answer at most. A group takes four conditionings, an answer of
    many next to no time. Importance sampling shows by k̂ where it is not to be trusted, as it often
    is of groups.

    Measured against fits without the answer at the same hyperparameters, most values are within
    0.02 nats, of judges 0.05, and of choices, rankings and several users 0.1. Fits of users learn
    the covariance of tastes anew, which moves an answer by up to 0.2 more.

    References
    ----------
    .. [1] Vehtari, Simpson, Gelman, Yao and Gabry, "Pareto smoothed importance sampling", JMLR 25,
       2024.
    .. [2] Vehtari, Mononen, Tolvanen, Sivula and Winther, "Bayesian leave-one-out cross-validation
       approximations for Gaussian latent variable models", JMLR 17, 2016.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import loo
    >>> duels = [["ann", "bob"], ["ann", "bob"], ["bob", "cid"], ["ann", "cid"]] * 5
    >>> left_out = loo(PairwisePreferenceRegressor().fit(duels))
    >>> left_out.pointwise.shape, bool(left_out.mean > -0.3)
    ((20,), True)
    >>> sorted(loo(PairwisePreferenceRegressor().fit(duels), by="item").groups.tolist())
    ['ann', 'bob', 'cid']
    """
    last = last_step(model)
    _check_removable(last, by)
    answers = last.comparisons_
    weight = answers.weight
    members = None if by is None else GroupMembers.from_model(model, by)
    readings = removal_readings(last)
    if members is None:
        log_density, shape = _average_readings(
            readings, [forecast_without_each(each) for each in readings]
        )
        return LeaveOneOut(log_density, weight, shape, None, weight, _method_in_words(last))
    value, size, k = np.zeros((3, len(members.names)))
    for group, some in enumerate(members.answers):
        forecasts = []
        for each in readings:
            comparisons = each.comparisons
            copies = np.bincount(
                comparisons.of_answer[some], weight[some], _n_distinct(comparisons)
            )
            removed = copies[comparisons.rows.answer].astype(np.float64)
            forecasts.append(each.removal.leave_out(removed))
        log_density, shape = _average_readings(readings, forecasts, some)
        value[group], size[group] = weight[some] @ log_density, weight[some].sum()
        if shape is not None:
            k[group] = shape.max(initial=-np.inf)
    shapes = k if last.engine_.capabilities.samples else None
    return LeaveOneOut(
        value, np.ones(len(value)), shapes, members.names, size, _method_in_words(last)
    )


def compare(models: Mapping[str, Any] | Sequence[Any], by: str | ArrayLike | None = None) -> Bunch:
    """Compare models of the same answers by `loo`, the best first.

    Parameters
    ----------
    models : dict or sequence
        Fitted models, or what `loo` gave of each; names are the keys, or positions.
    by
        As in `loo`, for models that are given as such.

    Returns
    -------
    comparison : Bunch
        names : list
        sum, se : ndarray of shape (n_models,)
        difference, difference_se : ndarray of shape (n_models,)
            Of each less the best, and the standard error of that: answers are paired, so that it
            is less than those of the sums.
        frame : DataFrame where pandas is installed, else None

    Raises
    ------
    ValueError
        If these are not of the same answers, or groups.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import compare
    >>> duels = [["ann", "bob"], ["bob", "cid"], ["ann", "cid"]] * 10
    >>> sure, unsure = (PairwisePreferenceRegressor(noise_variance=v, optimizer=None).fit(duels)
    ...                 for v in (0.01, 10.0))
    >>> compare({"sure": sure, "unsure": unsure}).names
    ['sure', 'unsure']
    """
    named = models if isinstance(models, Mapping) else dict(enumerate(models))
    if not named:
        raise ValueError("got no models; one or more are allowed. Give fitted models.")
    every = [each if isinstance(each, LeaveOneOut) else loo(each, by) for each in named.values()]
    first = every[0]
    for name, each in zip(named, every, strict=True):
        parts = "size", "weight", "groups"
        if not all(_equal(getattr(each, part), getattr(first, part)) for part in parts):
            raise ValueError(
                f"got models of different answers or groups: {name!r} has {each.size.sum():g} "
                f"answers in {len(each.size)} parts, the first {first.size.sum():g} in "
                f"{len(first.size)}. Fit all to the same answers in the same order."
            )
    order = np.argsort([-each.sum for each in every], kind="stable")
    best = every[order[0]]
    rows = []
    for k in order:
        off = every[k].pointwise - best.pointwise
        differences = first.weight @ off, _standard_error(off, first.weight)
        rows.append((every[k].sum, every[k].se, *differences))
    heads = "sum", "se", "difference", "difference_se"
    columns = dict(zip(heads, np.array(rows).T, strict=True))
    names = [list(named)[k] for k in order]
    return PrintableBunch(names=names, **columns, frame=table_frame(columns, names))


def _equal(array, second_array):
    """Return whether two arrays are equal, or None both."""
    return np.array_equal(*([] if each is None else each for each in (array, second_array)))


def loo_scorer(by: str | ArrayLike | None = None) -> "_LooScorer":
    """Make a scorer for searches over models: the mean of `loo` over the answers of the fit.

    The search fits to all answers once, without folds: ``cv=[(rows, rows)]`` with all rows. The
    test rows are not looked at.

    Parameters
    ----------
    by
        As in `loo`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import loo_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(40, 2, 1))
    >>> y = (X[:, 0, 0] > X[:, 1, 0]).astype(int)
    >>> rows, kernels = np.arange(len(X)), [RBF(1.0), RBF(0.01)]
    >>> model = PairwisePreferenceRegressor(optimizer=None)
    >>> search = GridSearchCV(model, {"kernel": kernels}, scoring=loo_scorer(), cv=[(rows, rows)])
    >>> search.fit(X, y).best_params_["kernel"]
    RBF(length_scale=1)
    """
    return _LooScorer(by)


@dataclass(frozen=True)
class _LooScorer:
    """Mean of `loo`, as scikit-learn's scorers are called."""

    by: Any

    def __call__(self, estimator: Any, X: Any, y: Any = None, **metadata: Any) -> float:
        return loo(estimator, self.by).mean


# -- what there is to leave out ----------------------------------------------------------------


def _check_removable(last, by):
    """Raise ValueError, before any work, for a fit whose answers cannot be left out."""
    name = type(last).__name__
    answers = getattr(last, "comparisons_", None)
    if answers is None:
        raise TypeError(f"{name} does not keep its answers. Give a fitted estimator of skpref.")
    _check_fitted_at_once(last)
    if "ekf" in (getattr(last, "local", None), getattr(last.engine_, "local", None)):
        raise ValueError(
            "got SVI(local='ekf'), whose sites are of pairs and not of answers; "
            "local='expected' is allowed. Fit with it."
        )
    if last.engine_.capabilities.samples:
        part = posterior_parts(last.posterior_)[1][0]
        what = "choices or rankings" if answers.rows.joint else None
        what = "prompts=" if isinstance(part, GroupedPosterior) else what
        if what is not None:
            raise ValueError(
                f"got {what} with {type(last.engine_).__name__}; with engines that sample duels "
                "without prompts can be left out. Fit with inference='ep'."
            )
    study = getattr(last, "_study", None)
    if study is not None and study.factorised:
        raise ValueError(
            f"got {name}(inference='vb'), whose factors are of tastes and not of answers; "
            "inference='ep' is allowed. Fit with it."
        )
    if hasattr(last, "monotone_violations_") and not last.engine_.capabilities.samples:
        raise ValueError(
            f"got {name} with monotone=, whose sites are of virtual duels too; inference='hmc' or "
            "'gibbs' is allowed. Fit with one of these, or leave monotone= out."
        )
    if hasattr(last.posterior_, "of") and by is not None:
        raise ValueError(
            f"got by= with {name}, fitted to several users; each answer alone can be left out of "
            "their posterior. Leave by= out, or fit a PairwisePreferenceRegressor."
        )


def _check_fitted_at_once(last):
    """Raise ValueError for a model that got its answers in pieces, and keeps the last alone."""
    stream, later = getattr(last, "_stream", None), not getattr(last, "_all_at_once", True)
    in_pieces = stream is not None and stream.sample.seen != len(last.comparisons_.positions)
    if in_pieces or (later and isinstance(last.posterior_, ThroughTime)):
        raise ValueError(
            "got a model that learned from pieces by partial_fit, of which it keeps the last; "
            "answers that were fitted at once can be left out. Fit all with fit(X, y)."
        )


def _method_in_words(last):
    """Return in words how answers are left out, and how exactly."""
    name = type(last.engine_).__name__
    if last.engine_.capabilities.samples:
        return "importance sampling with Pareto-smoothed weights"
    if hasattr(last.posterior_, "of"):
        return _ERRORS["users"]
    close = 0.1 if last.comparisons_.rows.joint else 0.02
    close = max(close, 0.05) if last.comparisons_.judge is not None else close
    return _ERRORS.get(name, f"sites of {name}").format(close)


def _n_distinct(comparisons):
    """Return the number of distinct answers."""
    return int(comparisons.of_answer.max(initial=-1)) + 1


def removal_readings(last: Any) -> list[WeightedRemoval]:
    """Return the answers and what takes them from the posterior, for each reading of judges."""
    answers = last.comparisons_
    if hasattr(last.posterior_, "of"):
        by_user = replace(answers, judge=last._study.user)  # no two users' answers are equal
        return [WeightedRemoval(1.0, by_user, last.likelihood_, _UserRemoval(last, by_user))]
    model, judges = last._model, getattr(last, "judges_", None)
    weights, components = (np.ones(1), (None,)) if judges is None else judges.components()
    parts = posterior_parts(last.posterior_)[1]
    readings = []
    for k, component in enumerate(components):
        comparisons, likelihood = answers, model.likelihood
        if component is not None:
            comparisons = judged_rows(answers, model.kernel, component.used)
        if component is not None and isinstance(likelihood, JudgeReliability):
            likelihood = JudgeReliability(likelihood.base, component.used)
        judged = replace(model, likelihood=likelihood)
        removal: _Removal
        if model.engine.capabilities.samples:
            removal = _DrawRemoval(parts[k], comparisons, likelihood)
        else:
            with blas_threads(model.engine.matrix_size(comparisons)):
                stream = getattr(last, "_stream", None)
                problem, approximation = _evaluate_model(judged, comparisons, stream)
                removal = SiteRemoval(problem, approximation, model.engine)
        readings.append(WeightedRemoval(float(weights[k]), comparisons, likelihood, removal))
    return readings


def forecast_without_each(reading: WeightedRemoval) -> AnswerForecast:
    """Return the prediction of every answer without it.

    A single answer of few moves the sites of the others.
    """
    removal, rows = reading.removal, reading.comparisons.rows
    forecast = removal.leave_each_out()
    n_distinct = _n_distinct(reading.comparisons)
    if not isinstance(removal, SiteRemoval) or n_distinct > SETTINGS.n_followed:
        return forecast
    for answer in range(n_distinct):
        own = rows.answer == answer
        followed = removal.leave_out(np.where(own, np.minimum(rows.counts, 1.0), 0.0))
        forecast.log_density[answer] = followed.log_density[answer]
        forecast.mean[own], forecast.variance[own] = followed.mean[own], followed.variance[own]
    return forecast


def _evaluate_model(
    model: Model, comparisons: Comparisons, stream: Any
) -> tuple[Problem, Approximation]:
    """Return the engine's problem and posterior of the margins, as the fit ended."""
    if stream is None:
        evaluation = model.evaluate(comparisons)
        return evaluation.problem, evaluation.approximation
    prior = model.rule.prior(model.kernel, comparisons, model.likelihood)
    sites = Sites(stream.weights.shift, stream.weights.gain, 0.0)
    approximation = Approximation(sites, moments(stream.weights), {}, 0, 0.0, True)
    return Problem(prior, comparisons, model.likelihood), approximation


def _average_readings(
    readings: list[WeightedRemoval],
    forecasts: list[AnswerForecast],
    some: NDArray[np.intp] | slice = slice(None),
) -> tuple[Array, Array | None]:
    """Return log densities of some answers, averaged over readings, and the largest k̂ of each.

    A reading's weight without an answer is its weight over the answer's density there.
    """
    every = np.stack(
        [
            forecast.log_density[each.comparisons.of_answer[some]]
            for each, forecast in zip(readings, forecasts, strict=True)
        ]
    )
    shape = forecasts[0].shape
    if shape is not None:
        shapes = [
            f.shape[r.comparisons.of_answer[some]]  # type: ignore[index]  # all are of one engine
            for r, f in zip(readings, forecasts, strict=True)
        ]
        shape = np.max(shapes, axis=0)
    if len(readings) == 1:
        return every[0], shape
    log_weights = np.log([each.weight for each in readings])[:, None]
    if isinstance(some, slice):
        return -logsumexp(log_weights - every, axis=0), shape
    weight = readings[0].comparisons.weight[some]
    log_weights = log_weights - (every @ weight)[:, None]
    return logsumexp(log_weights + every, axis=0) - logsumexp(log_weights), shape


class _DrawRemoval:
    """Answers taken from a posterior of many components by importance weights.

    A draw of the margins counts in inverse proportion to the probability that it gives to what is
    left out.
    """

    def __init__(self, posterior: Posterior, comparisons: Comparisons, likelihood: Likelihood):
        self._posterior, self._comparisons = posterior, comparisons
        self._likelihood = likelihood

    def leave_each_out(self) -> AnswerForecast:
        """Return the prediction of each answer without it, by draws of its margin."""
        rows, items = self._comparisons.rows, self._comparisons.items
        n, n_components = len(rows), self._posterior.n_components
        n_draws = n_components * -(-SETTINGS.n_draws // n_components)
        rng = np.random.default_rng(0)
        columns = np.empty((4, n))
        for some in row_blocks(n, n_draws, BLOCK):
            ends = items[rows.first[some]], items[rows.second[some]]
            blocks = list(self._posterior.answer_moments(*ends))
            means = np.concatenate([block.means for block in blocks])
            deviation = np.sqrt(np.concatenate([block.variance for block in blocks]))
            draws = np.repeat(means, n_draws // n_components, axis=1)
            draws += deviation[:, None] * rng.standard_normal(draws.shape)
            columns[:, some] = self._importance_moments(draws, np.arange(n)[some])
        log_density, mean, variance, shape = columns
        return AnswerForecast(log_density, mean, variance, shape)

    def leave_out(self, removed: Array) -> AnswerForecast:
        """Return predictions of answers that are left out together, by joint draws of margins."""
        rows = np.flatnonzero(removed > 0.0)
        margins = self._comparisons.rows.margins
        used, place = np.unique(margins.index[rows], return_inverse=True)
        items = self._comparisons.items
        ends = items[margins.first[used]], items[margins.second[used]]
        means, covariance = self._posterior.joint_answer_moments(*ends)
        root = symmetric_root(covariance)
        draws = np.repeat(means, -(-SETTINGS.n_draws // means.shape[1]), axis=1)
        rng = np.random.default_rng(0)
        draws = draws + root @ rng.standard_normal((root.shape[1], draws.shape[1]))
        draws = margins.sign[rows, None] * draws[place.reshape(-1)]
        log_density = np.full(len(removed), np.nan)
        mean, variance, shape = np.full((3, len(removed)), np.nan)
        columns = self._importance_moments(draws, rows, removed[rows])
        log_density[rows], mean[rows], variance[rows], shape[rows] = columns
        return AnswerForecast(log_density, mean, variance, shape)

    def _importance_moments(self, draws, rows, removed=None):
        """Return log densities, means, variances and k̂ of margins under importance weights."""
        answers = self._comparisons.rows.answers.take(np.repeat(rows, draws.shape[1]))
        value = self._likelihood.log_prob(draws.ravel(), answers).value.reshape(draws.shape)
        if removed is None:
            power = np.minimum(self._comparisons.rows.counts[rows], 1.0)
            log_weights, shape = pareto_smoothed(-power[:, None] * value)
        else:
            log_weights, shape = pareto_smoothed(-(removed @ value)[None])
        weights = np.exp(log_weights)
        mean = np.sum(weights * draws, axis=1)
        variance = np.sum(weights * draws**2, axis=1) - mean**2
        return logsumexp(log_weights + value, axis=1), mean, variance, shape


class _UserRemoval:
    """Answers of several users, each taken from the posterior of its user's utility.

    Parameters
    ----------
    last : CollaborativePreferenceRegressor
    comparisons : Comparisons
        Whose judges are the users.
    """

    def __init__(self, last: Any, comparisons: Comparisons):
        self._last, self._comparisons = last, comparisons

    def leave_each_out(self) -> AnswerForecast:
        """Return the prediction of each answer without its site."""
        last, items, rows = self._last, self._comparisons.items, self._comparisons.rows
        user, answers = np.asarray(rows.answers.judge), rows.answers._replace(judge=None)
        ids = last.users_[user]
        moments = last.posterior_for(ids.tolist()).margin(
            *_pair_sides(items, rows.first, rows.second)
        )
        power = np.minimum(rows.counts, 1.0)
        sites = matching_sites(moments, last.likelihood_, answers, power)
        mean, variance = sites.update.cav_mean, sites.update.cav_var
        order = np.argsort(user, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(user[order])) + 1):
            if not 1 < len(own) <= SETTINGS.n_followed_of_user:
                continue
            sides = _pair_sides(items, rows.first[own], rows.second[own])
            covariance = last.posterior_for(ids[own].tolist()).margin_cov(*sides)
            before = np.stack([sites.precision[own], sites.shift[own]])
            factors = last.likelihood_, answers.take(own), power[own]
            copies = np.maximum(rows.counts[own], 1.0)
            cavity = _refit_cavities(moments[0][own], covariance, before, copies, *factors)
            mean[own], variance[own] = np.where(
                np.all(np.isfinite(cavity), axis=0), cavity, (mean[own], variance[own])
            )
        log_density = last.likelihood_.log_normaliser(mean, variance, answers)
        return AnswerForecast(log_density, mean, variance)

    def leave_out(self, removed: Array) -> AnswerForecast:
        """Raise NotImplementedError: groups of several users' answers are refused before."""
        raise NotImplementedError("Groups of several users' answers cannot be left out.")


def _pair_sides(items, first, second):
    """Return the first and the second items of pairs, as a posterior reads them."""
    return ParsedX("items", items[first]), ParsedX("items", items[second])


def _refit_cavities(mean, covariance, earlier, copies, likelihood, answers, power):
    """Return mean and variance of each margin, (2, n), refitted without a copy of its answer.

    The sites ``earlier`` of the other answers are refitted by sweeps of EP: all are of one user,
    and move each other most.
    """
    n = len(mean)
    copies_left = copies - np.eye(n)  # a row an answer that is removed
    tau, nu = np.repeat(earlier[:, None], n, axis=1)
    every, powers = answers.take(np.tile(np.arange(n), n)), np.tile(power, n)
    for sweep in range(SETTINGS.user_sweeps + 1):
        more = copies_left * tau - copies * earlier[0]
        shift = copies_left * nu - copies * earlier[1] - more * mean
        whole = np.broadcast_to(covariance, (n, n, n))
        inside = solve_blocks(np.eye(n) + covariance * more[:, None, :], whole)
        centre = mean + np.einsum("rij,rj->ri", inside, shift)
        spread = np.einsum("rii->ri", inside)
        if sweep == SETTINGS.user_sweeps:
            return np.stack([np.diag(centre), np.diag(spread)])
        with np.errstate(all="ignore"):
            update = site_update(
                (centre.ravel(), spread.ravel()),
                (tau.ravel(), nu.ravel()),
                likelihood,
                every,
                powers,
            )
        target = update.site_precision.reshape(n, n), update.site_shift.reshape(n, n)
        step = SETTINGS.user_step * (copies_left > 0.0)
        tau, nu = tau + step * (target[0] - tau), nu + step * (target[1] - nu)
