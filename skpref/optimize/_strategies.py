"""How the next duel is chosen: (engine, incumbent rule, acquisition) as data."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skpref.optimize._acquisition import ACQUISITIONS
from skpref.optimize._maximise import NoNumber, maximise, screening_rows
from skpref.optimize._state import apart
from skpref.optimize._surface import Numeric, PathSurface, Surface

# A path costs thousands of cosines a row.
_PATH_SCREEN = 256
_SEEDS = 8
# Components of a mixture that are enough to see which rows are worth the whole of it.
_COARSE = 64
_ALTERNATIONS = 4


class Strategy(NamedTuple):
    """What makes a method of preferential optimisation.

    Attributes
    ----------
    inference : str
        "hallucination", "laplace", "ep", "gibbs" or "hmc".
    incumbent : str
        "last_winner", "posterior_mean", "thompson", "random" or "joint".
    acquisition : str or callable
        A name in ``ACQUISITIONS``, "thompson" or "random", or a function
        ``(posterior, X, incumbent) -> (n,)`` of unit-cube rows.
    """

    inference: str
    incumbent: str
    acquisition: str | Callable


# Paper 002, section 6 and appendix G.4; the last three are outside it.
STRATEGIES = {
    "HB-EI": Strategy("hallucination", "last_winner", "ei"),
    "HB-UCB": Strategy("hallucination", "last_winner", "ucb"),
    "HB-mean": Strategy("hallucination", "last_winner", "mean"),
    "HB-MUC": Strategy("hallucination", "last_winner", "muc"),
    "HB-BVEI": Strategy("hallucination", "last_winner", "bvei"),
    "LA-EI": Strategy("laplace", "posterior_mean", "ei"),
    "EP-EI": Strategy("ep", "posterior_mean", "ei"),
    "EP-MUC": Strategy("ep", "posterior_mean", "muc"),
    "EP-TS-MUC": Strategy("ep", "thompson", "muc"),
    # A path given one hallucination is an exact path of the skew GP.
    "DuelTS": Strategy("hallucination", "last_winner", "thompson"),
    "DuelUCB": Strategy("hmc", "last_winner", "duel_ucb"),
    "EIIG": Strategy("hmc", "last_winner", "eiig"),
    "DoubleTS": Strategy("hallucination", "thompson", "thompson"),
    "EUBO": Strategy("ep", "joint", "eubo"),
    "random": Strategy("ep", "random", "random"),
}
INCUMBENTS = ("last_winner", "posterior_mean", "thompson", "random", "joint")


class View(NamedTuple):
    """What a strategy may look at.

    Attributes
    ----------
    space : Box or Pool
    seen : ndarray of shape (n_items, n_columns)
        Items of the told duels.
    last_winner : ndarray of shape (n_columns,)
    gaussian : Posterior
        Of one component, for posterior means.
    draw : callable
        A working posterior; with hallucinations a fresh one at each call.
    allowed : callable
        ``allowed(row, rows)``: which rows may meet ``row`` in a duel.
    rng : numpy.random.Generator
    """

    space: Any
    seen: np.ndarray
    last_winner: np.ndarray
    gaussian: Any
    draw: Callable
    allowed: Callable
    rng: np.random.Generator


def propose(strategy: Strategy, view: View) -> tuple[np.ndarray, np.ndarray] | None:
    """The next duel as two rows, incumbent first; None if no duel is allowed.

    Parameters
    ----------
    strategy : Strategy
    view : View

    Returns
    -------
    tuple of two ndarray of shape (n_columns,), or None

    Raises
    ------
    ValueError
        If the acquisition is NaN everywhere.
    """
    try:
        return _propose(strategy, view)
    except NoNumber as error:
        named = strategy.acquisition
        if callable(named):
            named = getattr(named, "__qualname__", None) or type(named).__qualname__
        raise ValueError(
            f"The acquisition {named!r} chose nothing: {error}. It must return numbers, larger "
            "for a better item; NaN at some of them is fine."
        ) from error


def _propose(strategy, view):
    if strategy.incumbent == "joint":
        found = _joint(strategy, view)
        if found is not None:
            return found
    incumbent = _RULES[strategy.incumbent](view)
    challenger = _challenger(strategy.acquisition, view, incumbent)
    if challenger is not None:
        return incumbent, challenger
    order = np.argsort(-view.gaussian.mean(view.seen), kind="stable")
    for other in view.seen[order[:20]]:
        challenger = _challenger(strategy.acquisition, view, other)
        if challenger is not None:
            return other, challenger
    return random_duel(view.space, view.allowed, view.rng)


def random_duel(
    space: Any, allowed: Callable, rng: np.random.Generator, tries: int = 200
) -> tuple[np.ndarray, np.ndarray] | None:
    """Two rows drawn at random that may meet; None if there seem to be none."""
    if space.pool is not None:
        for index in rng.permutation(len(space.pool)):
            row = space.pool[index]
            good = np.flatnonzero(allowed(row, space.pool))
            if len(good):
                return row, space.pool[rng.choice(good)]
        return None
    for _ in range(tries):
        first, second = space.place(rng.random((2, space.n_dimensions)))
        if allowed(first, second[None])[0]:
            return first, second
    return None


# --- incumbents -----------------------------------------------------------------------------


def best_seen(posterior: Any, seen: np.ndarray) -> np.ndarray:
    """The row of the largest posterior mean among those seen."""
    return seen[int(np.argmax(posterior.mean(seen)))]


def _thompson_incumbent(view):
    seeds = _top(view.gaussian, view)
    return maximise(_path(view), view.space, seeds, view.rng, n_screen=_PATH_SCREEN)[0]


def _random_incumbent(view):
    return random_duel(view.space, apart, view.rng)[0]


_RULES = {
    "last_winner": lambda view: view.last_winner,
    "posterior_mean": lambda view: best_seen(view.gaussian, view.seen),
    "thompson": _thompson_incumbent,
    "random": _random_incumbent,
    "joint": lambda view: best_seen(view.gaussian, view.seen),
}


# --- challengers ----------------------------------------------------------------------------


def _top(posterior, view):
    order = np.argsort(-posterior.mean(view.seen), kind="stable")
    return view.seen[order[:_SEEDS]]


def _path(view):
    return PathSurface(view.draw().sample_paths(1, view.rng))


def surface_of(
    acquisition: str | Callable, posterior: Any, incumbent: np.ndarray, seen: np.ndarray
) -> Surface | Numeric:
    """An acquisition of a posterior as a function of the challenger.

    Parameters
    ----------
    acquisition : str or callable
    posterior : Posterior
    incumbent : ndarray of shape (n_columns,)
    seen : ndarray of shape (n_items, n_columns)
        The threshold of an improvement is the largest mean over these, for each component.

    Returns
    -------
    Surface or Numeric
    """
    if callable(acquisition):
        return Numeric(lambda X: acquisition(posterior, X, incumbent))
    threshold = posterior.component_means(seen).max(axis=0)
    return Surface(ACQUISITIONS[acquisition], posterior, incumbent, threshold)


def _challenger(acquisition, view, incumbent):
    def allowed(rows):
        return view.allowed(incumbent, rows)

    if isinstance(acquisition, str) and acquisition == "random":
        rows = screening_rows(view.space, np.zeros((0, view.space.n_columns)), view.rng)
        good = np.flatnonzero(allowed(rows))
        return rows[view.rng.choice(good)] if len(good) else None
    if isinstance(acquisition, str) and acquisition == "thompson":
        seeds = _top(view.gaussian, view)
        return maximise(_path(view), view.space, seeds, view.rng, allowed, _PATH_SCREEN)[0]
    posterior = view.draw()
    surface = surface_of(acquisition, posterior, incumbent, view.seen)
    coarse, every = None, posterior.n_components // _COARSE
    if every > 1:
        few = replace(posterior, weights=posterior.weights[:, ::every])
        coarse = surface_of(acquisition, few, incumbent, view.seen)
    seeds = _top(posterior, view)
    return maximise(surface, view.space, seeds, view.rng, allowed, coarse=coarse)[0]


def _joint(strategy, view):
    """Both items maximise the acquisition, by turns."""
    posterior = view.draw()
    first, value, found = best_seen(view.gaussian, view.seen), -np.inf, None
    for _ in range(_ALTERNATIONS):
        surface = surface_of(strategy.acquisition, posterior, first, view.seen)
        seeds = np.concatenate([_top(posterior, view), [first] if found is None else found])
        here = first
        second, reached = maximise(
            surface, view.space, seeds, view.rng, lambda rows, here=here: view.allowed(here, rows)
        )
        if second is None or not reached > value + 1e-6 * (1.0 + abs(value)):
            break
        found, value, first = np.array([first, second]), reached, second
    if found is None:
        return None
    means = posterior.mean(found)
    return tuple(found[np.argsort(-means, kind="stable")])
