"""Time and memory of a fit at given hyperparameters, forecast before it begins.

Seconds are those of a machine like most: this machine is not looked at, so that a fit is the same
everywhere. Two thresholds: where `chosen_engine` takes inducing points, where `warn_cost` warns.
How long a search for hyperparameters takes is told by its first evaluation, see `Report`.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skpref._utils import warn
from skpref.data import Comparisons, distinct_rows
from skpref.fitting._model import Model
from skpref.fitting._parts import ENOUGH, random_part
from skpref.gp import ChainRule, PriorRule
from skpref.inference import EP, HMC, SVI, Engine, Gibbs, available_bytes, has_memory
from skpref.kernels import (
    Kernel,
    drifts_of,
    features_part,
    identity_columns,
    seen_columns,
)
from skpref.likelihoods import Likelihood

# Sweeps of a run of EP, each a product of square matrices (2 side³ operations), and runs of a
# search (later ones start from the last and are short).
_SWEEPS = 25
_SEARCHED = 3.0
# Operations that a thousand draws cost at a side of a thousand duels, repeated ones counted each,
# and the power of the side that they grow by: as measured at 600, 1 500 and 4 000 duels.
_DRAWN: dict[type, tuple[float, float]] = {HMC: (6e10, 2.0), Gibbs: (5.5e11, 2.8)}
# Seconds of a run of EP for each multiplication that grows with the answers alone; an evaluation of
# the search takes a run each, and so many times as many as those of large matrices are taken for.
_PASSED, _EVALUATED = 1.7e-9, 18.0
# Seconds of a run from a start near its end, whatever it is of, and more for each step of the
# longest chain through time: as measured at 32 to 273 steps.
_STARTED, _STEPPED = 6e-3, 6e-4
# Seconds of learning on a part of answers whose number such multiplications bear; and on all, for a
# fit with inducing points, which is itself a matter of seconds.
_BRISK = 2.5
# Inducing points that inference="auto" takes.
_POINTS = 500
# Seconds from which on inference="auto" takes inducing points, and a warning tells of a fit.
LONG = 60.0
# Learning from all answers for so many seconds is not worth while.
_PATIENCE = 20.0
# So long a run of EP at given hyperparameters makes a search of some seconds, as drifts have it.
_AT_ONCE = 0.05
# Bytes that are had everywhere: nobody is asked.
_LARGE = 2.0**27
# Seconds of an operation of products of matrices on one core of a common machine.
_OPERATION = 2.2e-11


def forecast(comparisons: Comparisons, model: Model) -> tuple[float, float]:
    """Return the seconds and bytes that a fit at given hyperparameters takes, roughly.

    Parameters
    ----------
    comparisons : Comparisons
    model : Model
    """
    cost = _exact_cost(comparisons, model)
    seconds = _matrix_seconds(cost) + _PASSED * cost.linear
    if type(model.engine) in _DRAWN:
        at_thousand, power = _DRAWN[type(model.engine)]
        share = model.engine.get_params()["draws"] / 1000.0
        drawn = float(model.engine.matrix_size(comparisons)) / 1000.0
        seconds += seconds_of(at_thousand) * share * drawn**power
    bytes_ = cost.n_bytes
    if model.engine.capabilities.samples:
        bytes_ += 8.0 * 3.0 * float(model.engine.matrix_size(comparisons)) ** 2
    return seconds, bytes_


def seconds_of_ep_run(comparisons: Comparisons, model: Model) -> float:
    """Return the seconds of a run of EP at given hyperparameters, from a start near its end."""
    cost = _exact_cost(comparisons, model)
    once = _STARTED + _STEPPED * cost.steps
    if cost.linear:  # of few features: passes over the answers, and square matrices of the features
        return once + _matrix_seconds(cost) / _SEARCHED + _PASSED * cost.linear
    products = max(_matrix_seconds(cost), seconds_of(2.0 * cost.multiplications) * _SWEEPS)
    return once + products / _SEARCHED


def _exact_cost(comparisons, model):
    """Return the cost of the cheapest exact prior, or of chains through time."""
    rule = PriorRule() if model.rule.by_points else model.rule
    return rule.cost(model.kernel, comparisons, model.likelihood)


def _matrix_seconds(cost):
    """Return the forecast seconds of EP's matrix products at given hyperparameters."""
    return seconds_of(2.0 * cost.side**3) * _SWEEPS


def _evaluation_factor(model):
    """Return how many runs of EP a search for hyperparameters is counted as."""
    return _SEARCHED * len(model.theta) ** 0.25 if len(model.theta) else 1.0


def _search_seconds(cost, model):
    """Return the forecast seconds of a search for hyperparameters."""
    evaluated = _EVALUATED if len(model.theta) else 1.0
    return (_matrix_seconds(cost) + evaluated * _PASSED * cost.linear) * _evaluation_factor(model)


def chosen_engine(
    comparisons: Comparisons, named: bool, kernel: Kernel | None, likelihood: Likelihood
) -> Engine:
    """Return the engine that ``inference="auto"`` stands for, by the cost of the answers.

    EP, or SVI where EP would take more than a minute, or more memory than is available; from some
    hundred answers on, EP of independent items that drift.

    By the numbers of duels and items, and not by the speed of this machine, so that a fit is the
    same wherever it fits. Choices and rankings, which SVI does not take, are left to EP; so are
    items that have names alone, which would all be inducing points.

    Parameters
    ----------
    comparisons : Comparisons
    named : bool
        Whether nothing but their names is known of the items.
    kernel : sklearn.gaussian_process.kernels.Kernel or None
        None: one by default.
    likelihood : Likelihood
    """
    through_time = ChainRule().cost(kernel, comparisons, likelihood)
    if np.isfinite(through_time.multiplications):
        momentary = is_joint_fit_quick(comparisons, kernel, likelihood)
        return EP(items="joint" if momentary else "independent")
    if comparisons.group_column is not None or not likelihood.log_concave:
        return EP()
    cost = PriorRule().cost(kernel, comparisons, likelihood)
    seconds, n_bytes = _matrix_seconds(cost), cost.n_bytes
    if named or comparisons.rows.joint or (seconds <= LONG and has_memory(n_bytes)):
        return EP()
    takes = f"some {seconds / 60.0:.0f} minutes"
    if seconds <= LONG:
        takes = f"{n_bytes / 1e9:.2g} GB of memory, which are not available,"
    warn(
        f"Exact inference would take {takes} for "
        f"{len(comparisons.rows)} distinct duels among {len(comparisons.items)} items, so that "
        f"inference='auto' takes SVI(n_inducing={_POINTS}). Pass that, or inference='ep', to "
        "choose yourself."
    )
    return SVI(_POINTS)


def is_joint_fit_quick(
    comparisons: Comparisons, kernel: Kernel | None, likelihood: Likelihood
) -> bool:
    """Forecast whether EP of all items jointly takes a moment: so it does up to some 350 duels."""
    cost = PriorRule().cost(kernel, comparisons, likelihood)
    return _matrix_seconds(cost) <= _AT_ONCE and has_memory(cost.n_bytes)


def with_affordable_prior(comparisons: Comparisons, model: Model) -> Model:
    """Give a model of independent items the joint prior where that is affordable.

    Parameters
    ----------
    comparisons : Comparisons
        All answers that are to be fitted.
    model : Model

    Returns
    -------
    Model
        With the prior of its engine's own rule otherwise.
    """
    through_time = model.engine.prior_rule.through_time
    joint = through_time and is_joint_fit_quick(comparisons, model.kernel, model.likelihood)
    return replace(model, prepared=PriorRule() if joint else None)


def learning_part(
    comparisons: Comparisons, model: Model, n_learning_answers: int | str | None
) -> Comparisons:
    """Return the answers on which hyperparameters are learned: all, or a random part.

    Parameters
    ----------
    comparisons : Comparisons
    model : Model
    n_learning_answers : int, "auto" or None
        "auto": with inducing points 800, or 5000 if by their own bound, unless all take EP some 3 s
        at most; else 1000 (2000 where nothing but names is known) of at least 2000
        where all would take more than some 20 s; where the prior has few features, as many more as
        take some 3 s; of items through time 50 000. None: all.
    """
    if n_learning_answers == "auto":
        n_learning_answers = _auto_learning_size(comparisons, model)
    n_answers = len(comparisons.positions)
    if n_learning_answers is None or int(n_learning_answers) >= n_answers or not len(model.theta):
        return comparisons
    names = _item_identities(model.kernel, comparisons)
    return random_part(comparisons, int(n_learning_answers), among_few=names)


def _auto_learning_size(comparisons: Comparisons, model: Model) -> int | None:
    """Return how many answers "auto" learns hyperparameters on; None for all."""
    if model.rule.through_time:
        return ENOUGH.through_time
    n_answers, cost = len(comparisons.positions), _exact_cost(comparisons, model)
    seconds = _search_seconds(cost, model)
    brisk = 0
    if cost.linear and _matrix_seconds(cost) * _evaluation_factor(model) < 0.5 * _BRISK:
        brisk = int(n_answers * _BRISK / max(seconds, _BRISK))
    if not model.rule.exact:
        if not model.learner.rule.exact:
            return ENOUGH.sparse
        return None if seconds <= _BRISK else max(ENOUGH.points, brisk)
    if n_answers < 2 * ENOUGH.exact or seconds <= _PATIENCE:
        return None
    return max(
        ENOUGH.exact if _item_identities(model.kernel, comparisons) is False else ENOUGH.names,
        brisk,
    )


def _item_identities(kernel: Kernel, comparisons: Comparisons) -> bool | NDArray[np.intp]:
    """Return who each item is where names change with time; else whether items have names alone.

    Of names with a function each of what is measured, as a drift is one of time, answers that share
    none say little; and what they say of drifts then is wrong where like meets like.
    """
    n_columns = comparisons.items.shape[1]
    if comparisons.group_column is not None:
        return distinct_rows(comparisons.items[:, [comparisons.group_column]])[1]
    drifts = drifts_of(kernel, n_columns)
    if drifts is not None:
        return distinct_rows(drifts.who_of(comparisons.items))[1]
    _, measured = seen_columns(kernel, n_columns)
    names = identity_columns(kernel)
    if not measured or len(names) != 1:
        return not measured
    if features_part(kernel, n_columns, names[0]) is not None:
        return False
    return distinct_rows(comparisons.items[:, names])[1]


def seconds_of(operations: float) -> float:
    """Return the seconds of so many operations of matrix products, on a typical machine."""
    return operations * _OPERATION


def warn_cost(
    comparisons: Comparisons, model: Model, learned: bool, part: Comparisons | None = None
) -> None:
    """Warn of a fit that will take minutes, or most of the memory.

    Parameters
    ----------
    comparisons : Comparisons
    model : Model
    learned : bool
        Whether hyperparameters are searched for.
    part : Comparisons, optional
        On which; by default on all.
    """
    if model.rule.by_points:
        return
    on_all = learned and (part is None or part is comparisons)
    seconds, bytes_ = forecast(comparisons, model)
    crowded = bytes_ > _LARGE and bytes_ > 0.7 * available_bytes()
    if seconds < LONG and not crowded:
        return
    took = f"about {seconds / 60.0:.0f} minutes" if seconds >= 90.0 else f"about {seconds:.0f} s"
    remedy = "fit fewer duels or items"
    if on_all and len(model.theta):
        part_of = min(ENOUGH.exact, len(comparisons.positions) // 2)
        remedy = (
            "learn the hyperparameters on a part of them by "
            f"n_learning_answers={part_of}; or {remedy}"
        )
    if model.engine.capabilities.samples:
        remedy = (
            "inference='ep', whose error is small with so many duels, or fewer draws; " + remedy
        )
    warn(
        f"This fit of {len(comparisons.rows)} distinct comparisons among "
        f"{len(comparisons.items)} items is expected to take {took} and {bytes_ / 2**30:.1f} GiB"
        f"{' (more than there is)' if crowded else ''}. To spare them: {remedy}. verbose=1 shows "
        "how far it is."
    )
