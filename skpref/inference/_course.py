"""How sparse variational inference went, and what one run hands to the next."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._conditioning import Sites
from skpref._inducing import InducedSpace, Weights
from skpref.inference._base import Approximation, State
from skpref.inference._minibatches import Drift
from skpref.inference._natural import Ascent
from skpref.inference._output_scale import Gamma, rescaled


class Course(NamedTuple):
    """How the engine went.

    Attributes
    ----------
    bound_history : ndarray
        The bound on the log evidence at each iteration; of a minibatch its estimate.
    smoothed_bound : ndarray of shape (n_iter,)
        With minibatches, the mean of these estimates over each pass, and then the bound itself,
        at passes that add up what all batches want; else empty.
    inverse_scale : (float, float) or None
        With ``scale_prior``, shape and rate of q(λ), the kernel being divided by λ.
    """

    bound_history: NDArray[np.float64]
    smoothed_bound: NDArray[np.float64]
    inverse_scale: Gamma | None = None

    @property
    def output_scale(self) -> float:
        """What the kernel was multiplied by: 1/E[λ], or 1."""
        return 1.0 if self.inverse_scale is None else 1.0 / self.inverse_scale.mean


def scale_of(state: State | None) -> float:
    """The kernel's output scale that a state belongs to."""
    return 1.0 if state is None else float(state["scale"][0])


def started(start: State | None, space: InducedSpace, total: float) -> Weights | None:
    """q of a state; None if there is none.

    Of the same answers by their sites, which hardly depend on the hyperparameters; of others as if
    they were of this total weight.
    """
    if start is None or start["shift"].shape != (len(space.Z),):
        return None
    before = float(start["total"][0])
    if before == total and start.get("pull", np.zeros(0)).shape == (space.n_margins,):
        return rescaled(space.told(start["precision"], start["pull"]), scale_of(start))
    return Weights(start["gain"], start["shift"]).scaled(total / before)


def found(
    end: Ascent, total: float, inverse_scale: Gamma | None = None, before: Drift | None = None
) -> Approximation:
    """What a way uphill ended with, perhaps after stochastic steps."""
    history, smoothed, n_iter, stopped = end.history, [], end.n_iter, end.stopped
    if before is not None:
        if before.stopped:  # the last look was not a pass
            history, n_iter, stopped = [], 0, True
        history, smoothed = before.history + history, before.smoothed + history
        n_iter += len(before.smoothed)
    weights, course = end.weights, Course(np.array(history), np.array(smoothed), inverse_scale)
    state = state_of(weights, total, course) | end.look.sites
    sites = Sites(weights.shift, weights.gain, end.bound)
    run = n_iter, end.residual, end.converged, course, stopped
    return Approximation(sites, end.at, state, *run)


def state_of(weights: Weights, total: float, course: Course) -> State:
    """Of q, found on answers of this total weight."""
    told = {"total": np.array([total]), "scale": np.array([course.output_scale])}
    return {"gain": weights.gain, "shift": weights.shift, **told}
