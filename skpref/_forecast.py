"""How long and how large an exact fit will be, told before it begins."""

from time import perf_counter

import numpy as np

from skpref._model import Model
from skpref._observations import Observations
from skpref._warnings import warn
from skpref.inference import HMC, Gibbs
from skpref.inference._memory import available

# Matrices of a smaller side take seconds.
_SMALL = 1000
# Products of square matrices (2 side³ operations) that a sweep of EP costs on margins and on items,
# sweeps of a run, and runs of a search (later ones start from the last and are short).
_SWEEP = {True: 1.5, False: 7.0}
_SWEEPS = 20
_SEARCHED = 12.0
# Such products that a thousand draws cost at a side of `_PROBE` duels, repeated ones counted each,
# and the power of the side that they grow by: as measured at 600, 1 500 and 4 000 duels.
_DRAWN: dict[type, tuple[float, float]] = {HMC: (80.0, 2.0), Gibbs: (340.0, 2.8)}
# Square matrices held at once.
_HELD = 10
_LONG = 60.0
_PROBE = 384


def forecast(observations: Observations, model: Model, learned: bool) -> tuple[float, float]:
    """Seconds and bytes that a fit is expected to take on this machine, roughly.

    Parameters
    ----------
    observations : Observations
    model : Model
    learned : bool
        Whether hyperparameters are searched for.
    """
    n_margins, n_items = len(observations.rows.margins.first), len(observations.items)
    by_margins = n_margins <= 1.6 * n_items
    side = float(n_margins if by_margins else n_items)
    seconds = _product_seconds() * (side / _PROBE) ** 3 * _SWEEP[by_margins] * _SWEEPS
    if learned and len(model.theta):
        seconds *= _SEARCHED * max(len(model.theta), 1) ** 0.25
    if type(model.engine) in _DRAWN:
        products, power = _DRAWN[type(model.engine)]
        share = model.engine.get_params()["draws"] / 1000.0
        drawn = float(model.engine.side(observations)) / _PROBE
        seconds += _product_seconds() * products * share * drawn**power
    bytes_ = 8.0 * (_HELD * side**2 + 3.0 * n_items**2)
    if model.engine.samples:
        bytes_ += 8.0 * 3.0 * float(model.engine.side(observations)) ** 2
    return seconds, bytes_


def _product_seconds():
    """Of one product of matrices of side `_PROBE`: the quicker of three."""
    matrix = np.full((_PROBE, _PROBE), 1.0 / _PROBE)
    taken = []
    for _ in range(3):
        began = perf_counter()
        matrix @ matrix
        taken.append(perf_counter() - began)
    return min(taken)


def mention_cost(observations: Observations, model: Model, learned: bool) -> None:
    """Warn of a fit that will take minutes, or most of the memory."""
    if observations.n_singles < _SMALL or not model.engine.dense:
        return
    side = min(len(observations.rows.margins.first), len(observations.items))
    if max(side, model.engine.side(observations)) < _SMALL:
        return
    seconds, bytes_ = forecast(observations, model, learned)
    crowded = bytes_ > 0.7 * available()
    if seconds < _LONG and not crowded:
        return
    took = f"about {seconds / 60.0:.0f} minutes" if seconds >= 90.0 else f"about {seconds:.0f} s"
    remedy = "fit fewer duels or items"
    if learned and len(model.theta):
        remedy = (
            "learn the hyperparameters on a part of the duels, then fit all with kernel=kernel_, "
            "noise_variance=noise_variance_ and optimizer=None; or " + remedy
        )
    if model.engine.samples:
        remedy = (
            "inference='ep', whose error is small with so many duels, or fewer draws; " + remedy
        )
    warn(
        f"This fit of {len(observations.rows)} distinct comparisons among "
        f"{len(observations.items)} items is expected to take {took} and {bytes_ / 2**30:.1f} GiB"
        f"{' (more than there is)' if crowded else ''}. To spare them: {remedy}. verbose=1 shows "
        "how far it is."
    )
