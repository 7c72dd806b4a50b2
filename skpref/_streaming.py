"""Answers that come in pieces: what the pieces so far have told is the prior of the next."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._fitting import Fitted, complain
from skpref._inducing import InducedSpace, Weights, unexplained, unexplained_share
from skpref._linalg import pivoted_cholesky
from skpref._model import Evaluation, Model
from skpref._observations import Observations
from skpref._threads import blas_threads
from skpref.inference import Problem
from skpref.inference._base import check_answers
from skpref.kernels._hyperparameters import seen_columns

# Items of a piece that may become inducing points, at most.
_CANDIDATES = 2000
# An item may become one where the points leave more of its prior variance than of so many of the
# first answers' items, within limits.
_COVERED = 0.95
_UNSEEN = (0.05, 0.5)
# Points at most, as a multiple of those that the engine places in the first piece.
_GROWTH = 2


class Told(NamedTuple):
    """What answers told.

    Attributes
    ----------
    weights : Weights
        Of the inducing points.
    unseen : float
        Share of an item's prior variance that the points may leave before it becomes one.
    """

    weights: Weights
    unseen: float


def told(fitted: Fitted, before: Told | None = None) -> Told:
    """What the answers of a fit, and those before, told of its inducing points."""
    sites, kernel = fitted.approximation.sites, fitted.model.kernel
    weights = Weights(sites.precision, sites.shift)
    if before is not None:
        return Told(weights, before.unseen)
    items = _some(fitted.observations.items)
    left = unexplained_share(kernel, items, fitted.model.engine.inducing_points)
    return Told(weights, float(np.clip(np.quantile(left, _COVERED), *_UNSEEN)))


def fit_further(observations: Observations, model: Model, before: Told) -> Fitted:
    """The posterior given more answers, at the same hyperparameters.

    Where items come that the inducing points say less about than about those of the first answers,
    some become points too; nothing of what was learned changes by that.

    Parameters
    ----------
    observations : Observations
        The new answers alone.
    model : Model
        Of the fit so far: its engine knows the inducing points.
    before : Told
    """
    check_answers(model.engine, observations, model.likelihood)
    with blas_threads(model.engine.side(observations)):
        Z = grown(observations.items, model, before.unseen)
        options = model.engine.get_params(deep=False)
        engine = type(model.engine)(**{**options, "inducing_points": Z})
        model = replace(model, engine=engine)
        space = InducedSpace(model.kernel, observations.items, observations.rows.margins, Z)
        problem = Problem(space, observations, model.likelihood)
        found = engine.run_after(problem, before.weights.wider(len(Z)))
    if not found.converged:
        complain(found, engine, engine)
    return Fitted(observations, model, Evaluation(problem, found, None), found)


def grown(items: NDArray[np.float64], model: Model, unseen: float) -> NDArray[np.float64]:
    """The inducing points, and after them those of the items that they leave unexplained."""
    Z, kernel = model.engine.inducing_points, model.kernel
    named, measured = seen_columns(kernel, items.shape[1])
    if named and not measured:
        room = len(items)
    else:
        room, items = _GROWTH * model.engine.n_inducing - len(Z), _some(items)
    if room <= 0:
        return Z
    least = unseen * float(np.max(kernel.diag(items)))
    factor, order = pivoted_cholesky(unexplained(kernel, items, Z), least)
    return np.concatenate([Z, items[order[: min(factor.shape[1], room)]]])


def _some(items):
    """Spread-out items, if they are many."""
    if len(items) <= _CANDIDATES:
        return items
    return items[np.linspace(0, len(items) - 1, _CANDIDATES).astype(np.intp)]
