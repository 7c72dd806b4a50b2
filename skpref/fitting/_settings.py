"""The regressor's parameters, checked, as the parts of a fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import CompoundKernel, ConstantKernel, Kernel, WhiteKernel

from skpref._utils import Array, check_choice, check_number, warn
from skpref.data import AnswerTimes, Comparisons, Reader, Training
from skpref.fitting._biases import (
    Biases,
    bias_priors,
    find_columns_within_ids,
    judged_rows,
    shared_slopes_kernel,
    split_controls,
    with_biases,
)
from skpref.fitting._forecast import chosen_engine, with_affordable_prior
from skpref.fitting._hyperpriors import (
    Hyperprior,
    check_lengthscale_prior,
    drift_priors,
    group_priors,
    lengthscale_priors,
    likelihood_priors,
    variance_priors,
)
from skpref.fitting._judges import check_judge_prior
from skpref.fitting._model import Model
from skpref.fitting._monotone import Monotone, check_monotone, check_monotone_model
from skpref.fitting._pair_effects import (
    check_pair_effects,
    check_pairs_alone,
    pair_effect_priors,
)
from skpref.fitting._search import Search
from skpref.gp import (
    DRIFTS,
    TimeSpread,
    default_kernel,
    drifting_kernel,
    group_effects,
    mean_variance,
    order_effect_kernel,
)
from skpref.inference import ENGINES, EP, Engine, check_answers
from skpref.kernels import (
    PART_BOUNDS,
    OnColumns,
    Padded,
    Teams,
    amplitude_powers,
    check_hyperparameters,
    has_kernel,
    intransitive_parts,
    parts_by_column,
    reads_numbers,
    seen_columns,
    terms_of_sum,
    with_centred_linear_terms,
)
from skpref.likelihoods import ANSWER_DEFAULTS, Likelihood, probit

# What is taken for drift=None where times came and no kernel.
_DRIFT = "matern12"


class Settings(NamedTuple):
    """Checked parameters of an estimator, as the parts of a fit.

    ``search`` is None if nothing is learned, ``engine`` if the answers are to choose it.
    """

    engine: Engine | None
    likelihood: Likelihood
    search: Search | None


def check_settings(estimator) -> Settings:
    """Check every parameter of an estimator that needs no data."""
    kernel = estimator.kernel
    if kernel is not None and not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel must be a kernel of sklearn.gaussian_process.kernels or None, got {kernel!r}."
        )
    check_drift(getattr(estimator, "drift", None))
    level = getattr(estimator, "value_level", None)
    if level is not None:
        check_number("value_level", level, open_low=True, open_high=True)
    order_drift = getattr(estimator, "order_drift", None)
    check_drift(order_drift, "order_drift")
    optimizer = estimator.optimizer
    if not (optimizer is None or callable(optimizer) or optimizer == "fmin_l_bfgs_b"):
        raise ValueError(
            f"optimizer must be 'fmin_l_bfgs_b', None or a callable, got {optimizer!r}."
        )
    restarts = check_number(
        "n_restarts_optimizer", estimator.n_restarts_optimizer, low=0, integer=True
    )
    n_learning_answers = estimator.n_learning_answers
    if not (n_learning_answers is None or n_learning_answers == "auto"):
        check_number(
            'n_learning_answers (an integer, "auto" or None)',
            n_learning_answers,
            low=1,
            integer=True,
        )
    if not isinstance(estimator.verbose, bool):
        check_number("verbose", estimator.verbose, low=0, integer=True)
    likelihood = likelihood_of(estimator)
    if order_drift is not None and "order_effect" in likelihood.free:
        raise ValueError(
            f"got order_drift={order_drift!r} with an order effect that is to be learned; of these "
            "one is allowed, as the level of an effect that drifts is learned with it. Leave "
            'order_effect_bounds="fixed".'
        )
    check_lengthscale_prior(estimator.lengthscale_prior)
    search = None
    if optimizer is None:
        likelihood = likelihood.fix_hyperparameters()
    else:
        search = Search(
            optimizer, restarts, estimator.n_jobs, n_learning_answers=n_learning_answers
        )
    return Settings(explicit_engine(estimator), likelihood, search)


def check_drift(drift: object, name: str = "drift") -> None:
    """Raise unless a drift, the argument of that name, is None, the name of one or a kernel."""
    if isinstance(drift, str):
        check_choice(f"{name} (or a kernel of time)", drift, DRIFTS)
    elif drift is not None and not isinstance(drift, Kernel):
        raise TypeError(
            f"{name} must be None, one of {', '.join(map(repr, DRIFTS))} or a kernel of "
            f"sklearn.gaussian_process.kernels of one column, the time; got {drift!r}."
        )


def explicit_engine(estimator) -> Engine | None:
    """Return the engine that an estimator names; None where "auto" chooses it by the answers."""
    if isinstance(estimator.inference, str) and estimator.inference == "auto":
        return None
    return check_engine(estimator.inference, ["auto"], getattr(estimator, "_engines", ENGINES))


def check_engine(
    inference, also: Sequence[str] = (), named: Mapping[str, Callable[[], Engine]] = ENGINES
) -> Engine:
    """Return the engine that ``inference=`` stands for; ``also``: further strings, for messages."""
    allowed = [*also, *named]
    if isinstance(inference, str):
        engine = named[check_choice("inference", inference, allowed)]()
    elif isinstance(inference, Engine):
        engine = clone(inference)
    else:
        raise ValueError(
            f"inference must be one of {', '.join(map(repr, allowed))} or an options object "
            f"from skpref.inference such as EP(damping=0.2) (a subclass of Engine), got "
            f"{inference!r}."
        )
    engine.check()
    return engine


def likelihood_of(estimator) -> Likelihood:
    """Return the likelihood that the parameters of an estimator stand for, a copy."""
    if estimator.likelihood is not None:
        return check_likelihood(estimator.likelihood)
    return probit(**{name: getattr(estimator, name) for name in ANSWER_DEFAULTS})


def fix_hyperparameters(fitted: BaseEstimator) -> BaseEstimator:
    """Return an unfitted estimator with the hyperparameters of a fitted one, held fixed.

    Parameters
    ----------
    fitted : PairwisePreferenceRegressor, CollaborativePreferenceRegressor, or a pipeline that ends\
 in one
    """
    made = clone(fitted)
    last, own = (model[-1] if hasattr(model, "steps") else model for model in (fitted, made))
    own.set_params(**last._fitted_parameters())
    return made


def check_likelihood(likelihood) -> Likelihood:
    """Return a copy of ``likelihood=``, checked."""
    if not isinstance(likelihood, Likelihood):
        raise TypeError(
            "likelihood must be None (a probit, with noise_variance=, tie_threshold= and the like "
            "of the model) or an object of skpref.likelihoods, such as Probit() or "
            f"GradedProbit(), or of a subclass of Likelihood of your own; {likelihood!r} came."
        )
    likelihood.check()
    likelihood.check_log_concave()
    return clone(likelihood)


def check_kernel(kernel: Kernel, items: NDArray[np.float64]) -> None:
    """Raise unless the kernel takes these items, with hyperparameters that it can have."""
    check_hyperparameters(kernel)
    if isinstance(kernel, CompoundKernel):
        shape = (1, 1, len(kernel.kernels))
    else:
        try:
            shape = np.shape(kernel(items[:1]))
        except OverflowError as error:
            raise ValueError(
                f"The kernel {kernel} is not finite: {error}. Choose other hyperparameters."
            ) from error
        except ValueError as error:
            raise ValueError(
                f"The kernel {kernel} does not take items of {items.shape[1]} features: "
                f"{str(error).rstrip('.')}. Give it one length_scale, or one a feature seen."
            ) from error
    if shape != (1, 1):
        raise ValueError(
            f"A {type(kernel).__name__} gives an array of shape {shape} for one item; it must "
            "give one number a pair of items. Take one of its parts."
        )


def _refuse_times_in(kernel: Kernel, column: int) -> None:
    """Raise ValueError if a kernel to which a drift is added names the column of the times."""
    if _names_column(kernel, column):
        raise ValueError(
            f"The kernel {kernel} sees column {column}, the time, as kernel_ of a model fitted "
            "with drift= does; drift= adds a part of the time to a kernel of the items alone. "
            "Leave drift= out, or give kernel= without its parts of that column."
        )


def _refuse_white_noise(kernel: Kernel) -> None:
    """Raise ValueError of a kernel that has a `WhiteKernel`, where answers are on prompts."""
    if has_kernel(kernel, WhiteKernel):
        raise ValueError(
            f"got the kernel {kernel} with prompts=; a WhiteKernel, which is noise drawn anew for "
            "each row, tells no item from the same one in another prompt. Take "
            "skpref.kernels.Identity() for what each item has of its own, or leave prompts= out."
        )


def _refuse_missing_columns(kernel: Kernel, n_features: int, n_columns: int) -> None:
    """Raise ValueError of a kernel that names a column after those that the answers have."""
    last = max(set().union(*seen_columns(kernel, 0)), default=-1)
    if not isinstance(kernel, Padded) and last >= n_columns:
        beside = "" if n_columns == n_features else " and of their prompts"
        raise ValueError(
            f"got the kernel {kernel}, which names column {last}; items have {n_features} columns, "
            f"and the rows of answers{beside} {n_columns}, from 0 on. Name columns that are there; "
            "kernel_ of a model fitted with prompts= goes to a fit with the same prompts=."
        )


def make_model(estimator, settings: Settings, training: Training) -> Model:
    """Make the model that an estimator's parameters stand for, given its answers."""
    design = _ModelDesign.from_estimator(estimator, settings, training)
    likelihood = design.likelihood
    engine = design.chosen_engine() if settings.engine is None else settings.engine
    teacher = engine.evidence_engine(search=True) or EP()
    is_apart = design.is_learned and teacher.prior_rule.tells_items_apart(training.comparisons)
    utility = design.utility_kernel(is_apart)
    kernel = design.whole_kernel(utility)
    comparisons = judged_rows(training.comparisons, kernel)
    if design.user_kernel is None or design.drifts:
        check_kernel(kernel, comparisons.items)
    if design.user_kernel is not None:
        _warn_measured_ids(kernel, training.reader.id_column)
        if design.times is not None:
            _warn_named_times(kernel, design.times.column)
    check_answers(engine, comparisons, likelihood, kernel)
    if design.monotone is not None:
        check_monotone_model(design.monotone, engine, kernel, likelihood)
    priors = design.hyperpriors(utility, kernel, comparisons) if design.is_learned else ()
    model = Model(kernel, likelihood, engine, priors, monotone=design.monotone)
    return with_affordable_prior(comparisons, model)


def _check_monotone_answers(estimator, training: Training) -> Monotone | None:
    """Return ``monotone=``, checked; None without it; raise ValueError of answers that it cannot
    take."""
    option, reader = getattr(estimator, "monotone", None), training.reader
    if option is None:
        return None
    comparisons = training.comparisons
    present = {
        "judges=": training.judges is not None,
        "time=": reader.time is not None,
        "prompts=": comparisons.group_column is not None,
        "items without features": reader.table is not None and not reader.table.has_features,
    }
    for what in (name for name, is_there in present.items() if is_there):
        raise ValueError(
            f"got monotone={option!r} with {what}; items with features, and answers without "
            "judges, times and prompts, are allowed. Leave one of the two out."
        )
    items = comparisons.items
    columns = [None if k == reader.id_column else k for k in range(items.shape[1])]
    return check_monotone(option, reader.feature_names, items, columns)


class _ModelDesign(NamedTuple):
    """What the kernel and the hyperpriors of a model are made of.

    Attributes
    ----------
    estimator : estimator
    settings : Settings
    training : Training
    static : Comparisons
        What is known of items apart from the time, or from the groups of answers.
    times : _Times or None
    user_kernel : Kernel or None
        Without the terms of controls, where these are the judges' own effects too.
    names_groups : bool
        Whether the user's kernel names the column of groups.
    biases : Biases
        The judges' own effects.
    shared : Kernel or None
        Of controls, for all judges.
    effects : Kernel or None
        Of groups of answers.
    unit : float
        Variance of the utility, which effects of groups are measured by.
    of_order : Kernel or None
        Of an order effect through time.
    monotone : Monotone or None
        Columns with which the utility rises or falls.
    """

    estimator: Any
    settings: Settings
    training: Training
    static: Comparisons
    times: "_Times | None"
    user_kernel: Kernel | None
    names_groups: bool
    biases: Biases
    shared: Kernel | None
    effects: Kernel | None
    unit: float
    of_order: Kernel | None
    monotone: Monotone | None

    @classmethod
    def from_estimator(
        cls, estimator: Any, settings: Settings, training: Training
    ) -> "_ModelDesign":
        """Take apart what an estimator's parameters and its answers say; refuse what differs."""
        comparisons, reader = training.comparisons, training.reader
        kernel, column = estimator.kernel, comparisons.group_column
        is_plain = reader.time is None and column is None
        static = comparisons if is_plain else comparisons.with_first_columns(reader.n_features)
        times = (
            None
            if reader.time is None
            else _Times.from_estimator(estimator, reader, comparisons, static)
        )
        names_groups = kernel is not None and column is not None and _names_column(kernel, column)
        groups = None if names_groups else column  # those whose effects come by themselves
        _check_intransitive_kernel(kernel, settings.engine, training)
        if kernel is not None:
            drifts = times is not None and times.drift is not None
            is_apart = drifts or groups is not None
            kernel = _checked_kernel(kernel, training, (static if is_apart else comparisons).items)
        biases, shared, utility = _split_biases(estimator, settings, training, kernel)
        n_columns, unit, effects = comparisons.items.shape[1], 1.0, None
        if names_groups:
            _check_named_groups(kernel, column, n_columns, biases)
        if groups is not None:
            unit = 1.0 if kernel is None else mean_variance(kernel, static.items)
            effects = group_effects(groups, n_columns - groups, reader.id_column, unit)
        of_order = None if times is None else times.walk_of_order(estimator, comparisons, kernel)
        monotone = _check_monotone_answers(estimator, training)
        own = utility, names_groups, biases, shared, effects, unit, of_order, monotone
        return cls(estimator, settings, training, static, times, *own)

    @property
    def is_learned(self) -> bool:
        """Whether hyperparameters are learned."""
        return self.settings.search is not None

    @property
    def drifts(self) -> bool:
        """Whether utilities move through time."""
        return self.times is not None and self.times.drift is not None

    @property
    def has_features(self) -> bool:
        """Whether anything but their names is known of items."""
        table = self.training.reader.table
        return table is None or table.has_features

    @property
    def value_unit(self) -> float | None:
        """Spread of measured values, in which the default kernel is learned; None without any."""
        measured = self.training.comparisons.measured
        if measured is None or self.user_kernel is not None or not self.is_learned:
            return None
        return float(np.sqrt(np.var(measured.value) + np.mean(measured.deviation**2)))

    @property
    def likelihood(self) -> Likelihood:
        """Likelihood of the settings; what it learns is in units of measured values, if any."""
        likelihood, unit = self.settings.likelihood, self.value_unit
        if unit is None or self.estimator.likelihood is not None:
            return likelihood
        return likelihood.change_unit(unit)

    def utility_kernel(self, is_apart: bool) -> Kernel:
        """Return the kernel of the utility; ``is_apart`` where items have effects of their own."""
        kernel, id_column = self.user_kernel, self.training.reader.id_column
        if kernel is None:
            controls = self.biases.controls
            moving = () if self.monotone is None else self.monotone.columns.tolist()
            kernel = _default_kernel(
                self.static, self.has_features, is_apart, id_column, controls, moving
            )
            kernel = self._with_unit(kernel, id_column)
        if self.times is not None:
            return self.times.add_drift(kernel, id_column)
        column = self.training.comparisons.group_column
        if column is not None and not self.names_groups and _sees_last_column(kernel, column):
            kernel = OnColumns(kernel, list(range(column)))
        return kernel

    def _with_unit(self, kernel, id_column):
        """Return the default kernel times its variance, where answers have a unit or it drifts."""
        if self.value_unit is not None:
            variance = self.value_unit**2
            low, high = PART_BOUNDS
            # Effects of ids have variances of their own.
            bounds = "fixed" if id_column is not None else (low * variance, high * variance)
            return ConstantKernel(variance, bounds) * kernel
        # How much of it stays is learned too; and an offset has a unit, unlike duels alone.
        has_unit = self.training.comparisons.offset is not None and id_column is None
        if self.is_learned and (has_unit or (self.drifts and not kernel.n_dims)):
            return ConstantKernel(1.0) * kernel
        return kernel

    def whole_kernel(self, utility: Kernel) -> Kernel:
        """Return the kernel of the utility with the effects of judges and of groups."""
        first = self.training.comparisons.order_column
        if self.of_order is not None and first is not None:
            if _sees_last_column(utility, first):
                utility = OnColumns(utility, list(range(first)))
            return Padded(utility + self.of_order, first, [0.0])
        if not self.biases:
            return utility if self.effects is None else utility + self.effects
        comparisons = self.training.comparisons
        column, n_columns = comparisons.group_column, comparisons.items.shape[1]
        items = comparisons.items[:, :column]
        n_group_columns = 0 if self.effects is None or column is None else n_columns - column
        control, order = _bias_variances(self.estimator)
        return with_biases(
            utility, self.shared, items, self.biases, control, order, self.effects, n_group_columns
        )

    def chosen_engine(self) -> Engine:
        """Choose the engine by the size and kind of the problem."""
        comparisons, kernel = self.training.comparisons, self.user_kernel
        names = not self.has_features
        if kernel is not None:
            # Effects of pairs have an exact prior alone.
            has_circles = check_pair_effects(self.estimator.kernel, None)
            names = has_circles or _sees_names_alone(kernel, comparisons.items)
        has_terms = self.biases or self.of_order is not None
        if self.drifts or has_terms or comparisons.group_column is not None:
            kernel = self.whole_kernel(self.utility_kernel(self.is_learned))
        rows = judged_rows(comparisons, kernel)
        return chosen_engine(rows, names and not self.drifts, kernel, self.settings.likelihood)

    def hyperpriors(
        self, utility: Kernel, kernel: Kernel, comparisons: Comparisons
    ) -> tuple[Hyperprior, ...]:
        """Return the densities of the hyperparameters of the utility's and the whole kernel."""
        id_column, times = self.training.reader.id_column, self.times
        static_part = _static_part(utility) if self.drifts else utility
        of_variances: tuple[Hyperprior, ...] = ()
        has_ids = id_column is not None or (self.drifts and not self.has_features)
        if self.user_kernel is None and has_ids:
            of_variances = variance_priors(static_part, self.drifts)
        prior, column = self.estimator.lengthscale_prior, None if times is None else times.column
        own_items = comparisons.items if self.names_groups else self.static.items
        priors = lengthscale_priors(prior, utility, own_items, bool(of_variances), column)
        priors += of_variances + pair_effect_priors(utility, own_items)
        if times is not None:
            n_static = len(static_part.theta)
            priors += drift_priors(utility, times.column, times.spread, n_static, times.unit, prior)
            if self.of_order is not None:
                of_times = times.column, times.spread, 0, times.unit, prior
                priors += drift_priors(self.of_order, *of_times, n_before=utility.n_dims)
        priors += self._effect_priors(utility, kernel)
        likelihood = self.likelihood
        return priors + likelihood_priors(likelihood, kernel, likelihood.priors)

    def _effect_priors(self, utility: Kernel, kernel: Kernel) -> tuple[Hyperprior, ...]:
        """Return the densities of the hyperparameters of groups and judges."""
        priors: tuple[Hyperprior, ...] = ()
        n_before = utility.n_dims
        if self.effects is not None:
            # Where the scale of the utility is free, a density of deviations would shrink it.
            if self.user_kernel is None or not np.any(amplitude_powers(utility)):
                priors += group_priors(self.effects, n_before, self.unit)
            n_before += self.effects.n_dims
        if self.biases:
            if self.user_kernel is not None and self.shared is not None:
                n_before += self.shared.n_dims
            priors += bias_priors(kernel, n_before)
        return priors


def _check_named_groups(kernel, column, n_columns, biases):
    """Raise ValueError if no part, or all, of a kernel sees the groups, or judges have biases."""
    parts_by_column(kernel, column, n_columns)
    if biases:
        raise ValueError(
            f"got the kernel {kernel}, which names column {column}, the prompt, with judges who "
            "have biases on controls or by order; kernel=None, or one of the items alone, is "
            "allowed. Leave the terms of that column out: effects of prompts come by themselves."
        )


def _check_intransitive_kernel(
    kernel: Kernel | None, engine: Engine | None, training: Training
) -> None:
    """Raise ValueError of effects of pairs that the engine or the answers do not allow."""
    if kernel is None or not check_pair_effects(kernel, engine):
        return
    check_pairs_alone(kernel, training)
    for term in terms_of_sum(intransitive_parts(kernel)[1]):
        check_kernel(term.kernel, training.comparisons.items)


def _checked_kernel(kernel: Kernel, training: Training, own_items: Array) -> Kernel:
    """Return a copy of the user's kernel whose linear terms are centred; refuse what it lacks."""
    comparisons, reader = training.comparisons, training.reader
    if comparisons.group_column is not None:
        _refuse_white_noise(kernel)
    if reader.time is None:
        _refuse_missing_columns(kernel, reader.n_features, comparisons.items.shape[1])
    check_kernel(kernel, own_items)
    return with_centred_linear_terms(clone(kernel), own_items)


def _checked_judge_prior(estimator):
    """Return the estimator's prior of judges, checked, or the default."""
    prior = getattr(estimator, "judge_prior", None)
    return check_judge_prior(prior, estimator.optimizer is not None)


def _bias_variances(estimator):
    """Return variances of judges' own slopes, None if there are none, and of own order effects."""
    prior = _checked_judge_prior(estimator)
    control = ConstantKernel(prior.control_variance, prior.control_variance_bounds)
    order = ConstantKernel(prior.start_of_order, prior.order_variance_bounds)
    return control if prior.control_variance else None, order


def _split_biases(
    estimator, settings: Settings, training: Training, user_kernel: Kernel | None
) -> tuple[Biases, Kernel | None, Kernel | None]:
    """Return the judges' own effects, the kernel of controls for all, and the kernel of the rest.

    There are no own effects without judges. The last kernel is the user's without the terms of
    controls, None if there is no user's.
    """
    none = Biases((), (), False)
    # The kernel of an earlier fit has them already.
    if training.judges is None or isinstance(user_kernel, Padded):
        return none, None, user_kernel
    # Items that are independent through time have a kernel of who they are and of time alone.
    engine, timed = settings.engine, training.reader.time is not None
    if engine.prior_rule.through_time if engine is not None else timed:
        return none, None, user_kernel
    prior, reader, items = (
        _checked_judge_prior(estimator),
        training.reader,
        training.comparisons.items,
    )
    columns, shared = find_columns_within_ids(items[:, : reader.n_features], reader.id_column), None
    controls = columns
    if user_kernel is None and columns:
        shared = shared_slopes_kernel(items, columns)
    elif user_kernel is not None:
        utility, shared, controls = split_controls(user_kernel, columns)
        if utility is None:
            return none, None, user_kernel
        user_kernel = utility
    by_order = bool(prior.order_variance)
    if prior.order_variance is None and (user_kernel is None or controls):
        by_order = settings.likelihood.uses_order
    return Biases.of_items(items, controls, by_order), shared, user_kernel


def _default_kernel(comparisons, has_features, own, id_column, controls, moving):
    """Return the `default_kernel` of the columns that are no controls."""
    columns = [k for k in range(comparisons.items.shape[1]) if k not in controls]
    if not controls:
        return default_kernel(comparisons, has_features, own, id_column, moving)
    static = replace(comparisons, items=comparisons.items[:, columns])
    kernel = default_kernel(static, has_features, own, columns.index(id_column))
    return kernel if columns == list(range(len(columns))) else OnColumns(kernel, columns)


class _Times(NamedTuple):
    """What a kernel needs to know of the times of answers.

    Attributes
    ----------
    drift : str, Kernel or None
        None: the kernel sees the times itself.
    column : int
        That of the times, after the features.
    spread : TimeSpread
    unit : float
        Variance of what stays of the utility of whatever drifts; about one by default.
    starts : sequence of float
        Times at which seasons begin.
    """

    drift: str | Kernel | None
    column: int
    spread: TimeSpread
    unit: float
    starts: Sequence[float]

    @classmethod
    def from_estimator(
        cls, estimator, reader: Reader, comparisons: Comparisons, static: Comparisons
    ) -> "_Times":
        """Read those of an estimator whose answers have times; ``static``: the answers without."""
        drift, kernel, column = estimator.drift, estimator.kernel, reader.n_features
        if kernel is None:
            drift = _DRIFT if drift is None else drift
        unit = 1.0
        if kernel is not None and drift is not None:
            _check_teams(kernel)
            _refuse_times_in(kernel, column)
            unit = _mean_variance(kernel, static.items)
        seasons, starts, axis = getattr(estimator, "seasons", None), (), reader.time
        if seasons is not None and axis is not None:
            if drift is None:
                raise ValueError(
                    f"got seasons= with the kernel {kernel} and drift=None; seasons are of drifts. "
                    "Give drift=, or write skpref.kernels.Seasons into the kernel."
                )
            if np.ndim(seasons) != 1:
                raise ValueError(
                    f"got seasons={seasons!r}; a list of times is allowed, such as [2021.5]."
                )
            try:
                starts = axis.to_relative(
                    AnswerTimes.read(seasons, len(seasons), "seasons")
                ).tolist()
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"got seasons={seasons!r}; times such as those of time= are allowed. {error}"
                ) from error
        return cls(drift, column, TimeSpread.from_times(comparisons.items[:, column]), unit, starts)

    def walk_of_order(
        self, estimator: Any, comparisons: Comparisons, kernel: Kernel | None
    ) -> Kernel | None:
        """Return the kernel of an order effect that moves; None if it does not."""
        column = comparisons.order_column
        # The kernel of an earlier fit has it already.
        if column is None or isinstance(kernel, Padded):
            return None
        walk = estimator.order_drift
        return order_effect_kernel(walk, column, self.column, self.spread, self.unit)

    def add_drift(self, kernel: Kernel, id_column: int | None) -> Kernel:
        """Add the drift of the ids or, without these, of the items to a kernel of what stays."""
        if self.drift is None:
            return kernel
        if type(kernel) is Teams:
            # What members share comes after their own columns, the time last.
            width = len(kernel.positions()[0])
            column = self.column - kernel.n_beside
            stays = kernel.kernel
            if _sees_last_column(stays, column):
                stays = OnColumns(stays, list(range(column)))
            who = list(range(width))
            inner = drifting_kernel(
                stays, self.drift, who, column, self.spread, self.unit, self.starts
            )
            return Teams(inner, kernel.members, kernel.weights)
        every = list(range(self.column))
        who = every if id_column is None else [id_column]
        if _sees_last_column(kernel, self.column):
            kernel = OnColumns(kernel, every)
        of_times = self.column, self.spread, self.unit, self.starts
        return drifting_kernel(kernel, self.drift, who, *of_times)


def _check_teams(kernel):
    """Raise ValueError if teams are a part of a kernel beside which something is to drift."""
    if type(kernel) is not Teams and has_kernel(kernel, Teams):
        raise ValueError(
            "drift= moves the members of Teams where Teams is the whole kernel; in this one it is "
            f"a part: {kernel}. Put the other factors and terms inside, as in "
            "Teams(2.0 * kernel, members), or leave drift= out and write the kernel of time inside."
        )


def _mean_variance(kernel, items):
    """Return the mean prior variance of what drifts: of items, or of the members of teams."""
    if type(kernel) is not Teams:
        return mean_variance(kernel, items)
    rows, shares = kernel.member_rows(items)
    return mean_variance(kernel.kernel, rows[shares != 0.0])


def _static_part(kernel):
    """Return the part of a kernel with a drift that does not change with time."""
    return kernel.kernel.k1 if type(kernel) is Teams else kernel.k1


def _sees_names_alone(kernel, items):
    """Tell whether a kernel sees who items are, and nothing that is measured."""
    named, measured = seen_columns(kernel, items.shape[1])
    return bool(named) and not measured


def _names_column(kernel, column):
    """Tell whether a kernel names a column itself."""
    inner = kernel.kernel if isinstance(kernel, Padded) else kernel
    return column in set().union(*seen_columns(inner, 0))


def _sees_last_column(kernel, column):
    """Tell whether the last column matters to a kernel."""
    return any(column in columns for columns in seen_columns(kernel, column + 1))


def _warn_named_times(kernel, column):
    """Warn of a kernel to which an item at two times is two items that share nothing."""
    if column in seen_columns(kernel, column + 1)[0]:
        warn(
            f"The kernel {kernel} takes items at different times for different items that share "
            'nothing. Say how they change, drift="matern12" or another; or give Identity() the '
            "columns that say who an item is, as in OnColumns(Identity(), [0])."
        )


def _warn_measured_ids(kernel, id_column):
    """Warn of a kernel that takes the codes of ids for distances."""
    if id_column is not None and reads_numbers(kernel, id_column):
        warn(
            f"The kernel {kernel} sees the ids of items, in column {id_column}, as if they were "
            "measured. Give it the other columns by OnColumns(kernel, columns), and the ids to "
            f"OnColumns(Identity(), [{id_column}]); kernel=None does so."
        )
