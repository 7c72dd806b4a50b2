"""Answers in pieces: the posterior given the pieces so far is the prior of the next.

Beside what was told, a random sample of the answers is kept. Whenever there are twice as many as
when hyperparameters and inducing points were found last, they are found again on the sample, and
what was told is carried over to them.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import TOLERANCE, Array, blas_threads, pivoted_cholesky, warn
from skpref.data import Comparisons
from skpref.fitting._fit import Fitted, fit_posterior, warn_not_converged
from skpref.fitting._forecast import with_affordable_prior
from skpref.fitting._model import Evaluation, Model
from skpref.fitting._parts import ENOUGH
from skpref.fitting._settings import explicit_engine
from skpref.gp import (
    IndependentItems,
    InducingPoints,
    ThroughTime,
    Weights,
    spanning_items,
    spread_rows,
    transfer_weights,
    unexplained,
    unexplained_share,
)
from skpref.inference import EP, SVI, Engine, Problem, check_answers
from skpref.kernels import seen_columns

# An item may become one where its residual share of the prior variance is larger than this quantile
# of those of the items that the points were chosen for, within limits.
_COVERED = 0.95
_UNSEEN = (0.05, 0.5)
# Points at most, as a multiple of those that the engine chooses.
_GROWTH = 2
# Points move where their residual variance then falls to this share.
_WORTH = 0.8


def takes_streams(estimator) -> bool:
    """Tell whether an estimator's engine can learn further; raise AttributeError if it cannot."""
    engine = explicit_engine(estimator)
    if engine is None:  # "auto": what it came to, if it has come to anything
        engine = getattr(estimator, "engine_", None)
    if isinstance(engine, SVI) or (engine is not None and engine.prior_rule.through_time):
        return True
    raise AttributeError(
        "partial_fit learns from answers as they come in with inference='svi' (or SVI(...)), and "
        "of items that drift with inference=EP(items='independent'); "
        f"inference={estimator.inference!r} needs all answers at once: use fit, or set "
        "inference='svi'."
    )


def continues_stream(estimator) -> bool:
    """Tell whether an estimator has a posterior of items through time, for later answers."""
    engine = getattr(estimator, "engine_", None)
    return engine is not None and engine.prior_rule.through_time


def held_engine(estimator, engine: Engine | None) -> Engine:
    """Return the engine of further pieces: the one that "auto" took where ``engine`` is None."""
    if engine is not None:
        return engine
    return estimator.engine_


def refuse_judged(estimator, judges: ArrayLike | None = None) -> None:
    """Raise ValueError if there are, or were, judges: streams do not learn reliability."""
    if judges is not None:
        raise ValueError(
            "partial_fit takes no judges=: it does not learn how reliable they are. Fit all "
            "answers at once, fit(X, y, judges=...), or leave judges= out, so that all answers "
            "count as one judge's."
        )
    if getattr(estimator, "judges_", None) is not None:
        raise ValueError(
            "The answers so far came with judges: partial_fit does not learn how reliable they "
            "are. Fit all answers at once, fit(X, y, judges=...), or begin a stream without judges."
        )


def refuse_offset(offset: ArrayLike | None, fit_metadata: Collection[str]) -> None:
    """Raise ValueError if there are, or were, offsets, which streams do not carry on."""
    if offset is not None or "offset" in fit_metadata:
        raise ValueError(
            f"got {'offset=' if offset is not None else 'answers after a fit with offset='}; "
            "partial_fit takes answers without offsets. Fit all answers at once, "
            "fit(X, y, offset=...)."
        )


# Parameters that say what utilities are of, and how these hang together.
_PRIOR = ("kernel", "drift", "seasons", "id_column")


def prior_parameters(estimator) -> dict[str, Any]:
    """Return copies of the parameters that further answers must have, too."""
    return {name: clone(getattr(estimator, name, None), safe=False) for name in _PRIOR}


def refuse_other_prior(estimator, before: Mapping[str, Any]) -> None:
    """Raise ValueError if a parameter of the prior is another than it was before."""
    now = prior_parameters(estimator)
    for name, old in before.items():
        new = now[name]
        same = repr(new) == repr(old)
        if same and isinstance(new, Kernel):
            same = bool(new == old)
        if not same:
            raise ValueError(
                f"got {name}={new!r} after answers that were told with {name}={old!r}; partial_fit "
                "takes further answers with the prior of those before. Set it as it was, or fit "
                "all answers anew."
            )


def warn_of_first_times(estimator, fitted: Array, later: Array) -> None:
    """Warn where the default scales of time are of answers that reach less than half as far.

    ``fitted`` and ``later`` are times of the answers that the kernel was made for, and of later
    ones. As of other streams, twice as much calls for another look.
    """
    by_default = estimator.drift is None and estimator.kernel is None
    if estimator.optimizer is not None or not (by_default or isinstance(estimator.drift, str)):
        return
    begin, span = np.min(fitted), np.ptp(fitted)
    if np.max(later) - begin > 2.0 * span:
        warn(
            f"Scales of time are those of the first answers, which span {span:g}; later ones go on "
            f"until {np.max(later) - begin:g}, and one fit of all would take longer scales. Give a "
            "kernel of time of your own, such as drift=Matern(100.0, nu=0.5), or fit all answers "
            "at once."
        )


class Sample(NamedTuple):
    """Answers drawn from all that came, each with the same chance.

    Attributes
    ----------
    answers : Comparisons
        All of them while they are few.
    seen : int
        How many came.
    """

    answers: Comparisons
    seen: int

    @property
    def complete(self) -> bool:
        """Tell whether these are all the answers of the stream."""
        return len(self.answers.positions) == self.seen

    @classmethod
    def from_comparisons(cls, comparisons: Comparisons, size: int) -> Self:
        """Draw a sample of at most this size."""
        n = len(comparisons.positions)
        return cls(_draw_answers(comparisons, min(n, size), n), n)

    def add_answers(self, comparisons: Comparisons, size: int) -> Self:
        """Draw a sample of the answers so far and of these."""
        n_new = len(comparisons.positions)
        n_answers = self.seen + n_new
        n = min(n_answers, size)
        n_old = np.random.default_rng((1, n_answers)).hypergeometric(self.seen, n_new, n)
        n_old = max(min(n_old, len(self.answers.positions)), n - n_new)
        old, new = (
            _draw_answers(self.answers, n_old, n_answers),
            _draw_answers(comparisons, n - n_old, n_answers),
        )
        return type(self)(old.concatenate(new), n_answers)


class Stream(NamedTuple):
    """The posterior and the sample of a stream of answers.

    Attributes
    ----------
    weights : Weights
        Of the inducing points.
    unseen : float
        Share of an item's prior variance that the points may leave before it becomes one.
    sample : Sample
    renewed : int
        How many answers there were when points and hyperparameters were found.
    """

    weights: Weights
    unseen: float
    sample: Sample
    renewed: int


def new_stream(fitted: Fitted, n_learning_answers: int | str | None) -> Stream:
    """Make the stream that goes on from a fit."""
    sample = Sample.from_comparisons(fitted.comparisons, capacity(n_learning_answers))
    return Stream(_fitted_weights(fitted), _residual_share_limit(fitted), sample, sample.seen)


def capacity(n_learning_answers: int | str | None) -> int:
    """Return how many answers a stream keeps: those that hyperparameters are learned on."""
    return n_learning_answers if isinstance(n_learning_answers, int | np.integer) else ENOUGH.sparse


class Later(NamedTuple):
    """What later answers have led to: the posterior, and the log-probability of these answers."""

    posterior: ThroughTime
    log_evidence: float


def fit_again(comparisons: Comparisons, model: Model, earlier: Comparisons) -> Fitted:
    """Fit earlier and later answers about items through time at once, at given hyperparameters.

    All items jointly where that is affordable.

    Parameters
    ----------
    comparisons : Comparisons
        The later answers.
    model : Model
        Its hyperparameters stay.
    earlier : Comparisons
        All answers before them.

    Raises
    ------
    ValueError
        If an answer is no duel, or on one item at two times.
    """
    check_answers(model.engine, comparisons, model.likelihood, model.kernel)
    every = earlier.concatenate(comparisons)
    return fit_posterior(every, with_affordable_prior(every, model))


def as_later_answers(comparisons: Comparisons, model: Model, earlier: ThroughTime) -> Later:
    """Return the posterior of items through time given later answers, one time after another.

    Parameters
    ----------
    comparisons : Comparisons
        None earlier than another that one of its items was in.
    model : Model
        Its hyperparameters stay.
    earlier : ThroughTime

    Raises
    ------
    ValueError
        If an answer is earlier than what is known of its items, on two times, or is no duel.
    """
    if comparisons.rows.joint:
        raise ValueError(
            "Of items that are independent through time partial_fit takes duels; choices and "
            "rankings came. Break them into duels by from_rankings, or fit all answers at once."
        )
    times = earlier.times_of(comparisons.items)
    if np.any(times[comparisons.positions] != times[comparisons.positions[:, :1]]):
        raise ValueError(
            "Of items that are independent through time partial_fit takes answers on two items at "
            "one time each; some are on items at two times. Fit all answers at once."
        )
    _refuse_earlier_times(earlier, comparisons.items, times)
    answered = times[comparisons.positions[:, 0]]
    posterior, total = earlier.extend_to_items(comparisons.items), 0.0
    engine = EP(items="independent")
    for time in np.unique(answered):
        part = comparisons.part(np.flatnonzero(answered == time))
        prior = IndependentItems(model.kernel, part, posterior)
        # What is known already stands for a start: of few answers an item nothing leads astray.
        nothing = np.zeros(len(part.rows))
        approximation = engine.run(
            Problem(prior, part, model.likelihood), {"precision": nothing, "shift": nothing}
        )
        if not approximation.converged:
            warn_not_converged(approximation, engine, engine)
        total += approximation.sites.log_evidence + prior.centre_energy(approximation.conditioned)
        posterior = prior.with_later_answers(posterior, approximation.conditioned)
    return Later(posterior, total)


def _refuse_earlier_times(earlier, items, times):
    """Raise ValueError if some of the items are known at a later time than they have here."""
    latest = earlier.last_times(items)
    early = np.flatnonzero(times < latest)
    if len(early):
        raise ValueError(
            f"partial_fit takes answers that are later than those before: {len(early)} of "
            f"{len(items)} items come up to {np.max(latest[early] - times[early]):g} units of time "
            "before what is known of them already. Fit all answers at once, or leave these out."
        )


class Piece(NamedTuple):
    """One step of a stream: the posterior, and the stream after it."""

    fitted: Fitted
    stream: Stream


def fit_further(
    comparisons: Comparisons,
    model: Model,
    earlier: Stream,
    n_learning_answers: int | str | None,
    fit: Callable[[Comparisons, NDArray[np.float64] | None], Fitted] | None,
    *,
    movable: bool = True,
) -> Piece:
    """Return the posterior given more answers, and the stream after them.

    New items that the inducing points explain less well than those that they were chosen for may
    become points too. That changes nothing of what was learned.

    Parameters
    ----------
    comparisons : Comparisons
        The new answers alone.
    model : Model
        Of the stream so far: its engine knows the inducing points.
    earlier : Stream
    n_learning_answers : int, "auto" or None
        The estimator's, which says how many answers are kept.
    fit : callable or None
        Fits a sample of answers with hyperparameters of its own and the inducing points that it is
        given, or its own. None: there is nothing to be found again.
    movable : bool, default=True
        Whether inducing points may be chosen again and further ones be added; False where they are
        the user's own.
    """
    sample = earlier.sample.add_answers(comparisons, capacity(n_learning_answers))
    if fit is not None and sample.seen >= 2 * earlier.renewed:
        if sample.complete:
            fresh = fit(sample.answers, None)
            stream = Stream(
                _fitted_weights(fresh), _residual_share_limit(fresh), sample, sample.seen
            )
            return Piece(fresh, stream)
        points = _choose_points(sample.answers, model, earlier.unseen) if movable else None
        fresh = fit(sample.answers, points)
        ends = [(each.kernel, _inducing_rule(each).points) for each in (model, fresh.model)]
        weights, model = transfer_weights(earlier.weights, *ends), fresh.model
        earlier = Stream(weights, _residual_share_limit(fresh), sample, sample.seen)
    check_answers(model.engine, comparisons, model.likelihood, model.kernel)
    with blas_threads(model.engine.matrix_size(comparisons)):
        if movable:
            model = at_points(model, grow_inducing_points(comparisons.items, model, earlier.unseen))
        prior = _inducing_rule(model).prior(model.kernel, comparisons, model.likelihood)
        problem = Problem(prior, comparisons, model.likelihood)
        result = model.engine.run_after(
            problem, earlier.weights.append_points(len(_inducing_rule(model).points))
        )
    if not result.converged:
        warn_not_converged(result, model.engine, model.engine)
    fitted = Fitted(comparisons, model, Evaluation(problem, result, None), result)
    return Piece(fitted, earlier._replace(weights=_fitted_weights(fitted), sample=sample))


def _draw_answers(comparisons, size, n_answers):
    """Return a random part of the answers, the same one every time."""
    n = len(comparisons.positions)
    if size >= n:
        return comparisons
    return comparisons.part(np.sort(np.random.default_rng((0, n_answers)).permutation(n)[:size]))


def _fitted_weights(fitted):
    """Return the weights of the inducing points of a fit."""
    sites = fitted.approximation.sites
    return Weights(sites.precision, sites.shift)


def _residual_share_limit(fitted):
    """Return the residual share of prior variance that most items of a fit stay below, clipped."""
    items, model = spread_rows(fitted.comparisons.items), fitted.model
    shares = unexplained_share(model.kernel, items, _inducing_rule(model).points)
    return float(np.clip(np.quantile(shares, _COVERED), *_UNSEEN))


def _choose_points(sample, model, unseen):
    """Return the inducing points, or others that explain much more of a sample's items.

    Any move of points loses something of what was told.
    """
    items, kernel = spread_rows(sample.items), model.kernel
    stay = grow_inducing_points(items, model, unseen)
    moved = _inducing_rule(at_points(model, None).prepare(sample, 0)).points
    shares = [float(np.mean(unexplained_share(kernel, items, Z))) for Z in (stay, moved)]
    if shares[1] > _WORTH * shares[0]:
        return stay
    return grow_inducing_points(_inducing_rule(model).points, at_points(model, moved), unseen)


def _inducing_rule(model: Model) -> InducingPoints:
    """Return the model's rule of inducing points."""
    return cast(InducingPoints, model.rule)


def at_points(model: Model, Z: NDArray[np.float64] | None) -> Model:
    """Return the model with these inducing points."""
    return replace(model, prepared=replace(_inducing_rule(model), Z=Z))


def grow_inducing_points(
    items: NDArray[np.float64], model: Model, unseen: float
) -> NDArray[np.float64]:
    """Return the inducing points followed by items that they leave too much variance of."""
    Z, kernel = _inducing_rule(model).points, model.kernel
    named, measured = seen_columns(kernel, items.shape[1])
    room = _GROWTH * _inducing_rule(model).n - len(Z)
    if named and not measured:
        room = len(items)
    elif (spanning := spanning_items(items, kernel)) is not None:  # each new feature counts
        unseen, items = TOLERANCE, spanning
    else:
        items = spread_rows(items)
    if room <= 0:
        return Z
    least = unseen * float(np.max(kernel.diag(items)))
    factor, order = pivoted_cholesky(unexplained(kernel, items, Z), least)
    return np.concatenate([Z, items[order[: min(factor.shape[1], room)]]])
