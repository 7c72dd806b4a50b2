"""How the next question is chosen: (engine, incumbent rule, acquisition) as data."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from skpref.optimize._acquisition import (
    ACQUISITIONS,
    BestOf,
    Numeric,
    PathSurface,
    Surface,
    common_normals,
)
from skpref.optimize._lookahead import LOOKAHEADS, Candidates
from skpref.optimize._state import apart

_SCREEN = 1024
# Rows that a coarse surface leaves for the surface itself.
_KEPT = 192
_CLIMBS = 4
_MAX_CLIMB = 40
# Perturbations of the seeds: their number for each, and their sizes.
_AROUND = 24
_SIZES = (0.2, 0.06, 0.02, 0.005)
_MAX_SWAPS = 6
# A path costs thousands of cosines a row.
_PATH_SCREEN = 256
# The best of a set is an average over hundreds of draws.
_SET_SCREEN = 512
_SEEDS = 8
# Components of a mixture that are enough to see which rows are worth the whole of it.
_COARSE = 64
_ALTERNATIONS = 4
# Candidates of an acquisition that looks ahead: those of the largest means and upper bounds.
_LARGEST = (64, 192)
# So many of the best duels of them are tried with any other second item.
_FIXED = 2
# Of them may be shown, before the climb: so many that draws are maximal at, and so many of both.
_MAXIMAL, _SHOWN = 24, 8
# Questions drawn at random, at most, for one that may be asked.
_TRIES = 200


class Strategy(NamedTuple):
    """What makes a method of preferential optimisation.

    A field that is a tuple has an entry for each of several methods that take turns; any other
    field is that of all of them.

    Attributes
    ----------
    inference : str
        "hallucination", "kriging_believer", "constant_liar", "laplace", "ep", "gibbs" or "hmc". Of
        methods that take turns one, and "ep".
    incumbent : str
        "last_winner", "posterior_mean", "thompson", "random" or "joint".
    acquisition : str or callable
        A name in ``ACQUISITIONS`` or ``LOOKAHEADS``, "thompson" or "random", or a function
        ``(posterior, X, incumbent) -> (n,)`` of unit-cube rows.
    hyperparameters : str
        "best", or "drawn" from their posterior anew for each item that is chosen.

    Examples
    --------
    >>> from skpref.optimize import STRATEGIES, Strategy
    >>> isinstance(next(iter(STRATEGIES.values())), Strategy)
    True
    >>> thompson = Strategy("hallucination", "thompson", "thompson")
    >>> thompson.hyperparameters
    'best'
    """

    inference: Any
    incumbent: Any
    acquisition: Any
    hyperparameters: Any = "best"

    @property
    def turns(self) -> "tuple[Strategy, ...]":
        """The methods that take turns, one by one; ValueError if fields differ in length."""
        lengths = {len(field) for field in self if isinstance(field, tuple)} or {1}
        if len(lengths) > 1 or 0 in lengths:
            raise ValueError(
                "Of methods that take turns each field must be a tuple of as many entries, or one "
                f"value for all; got {self}."
            )
        n = lengths.pop()
        fields = [field if isinstance(field, tuple) else (field,) * n for field in self]
        return tuple(map(Strategy._make, zip(*fields, strict=True)))


# Takeno et al. 2023, section 6 and appendix G.4; KB and CL are what appendix E sets HB apart from;
# the others are outside it.
STRATEGIES = {
    "HB-EI": Strategy("hallucination", "last_winner", "ei"),
    "HB-UCB": Strategy("hallucination", "last_winner", "ucb"),
    "HB-mean": Strategy("hallucination", "last_winner", "mean"),
    "HB-MUC": Strategy("hallucination", "last_winner", "muc"),
    "HB-BVEI": Strategy("hallucination", "last_winner", "bvei"),
    "KB-EI": Strategy("kriging_believer", "last_winner", "ei"),
    "CL-EI": Strategy("constant_liar", "last_winner", "ei"),
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
    "KG": Strategy("ep", "joint", "kg"),
    "HB-KG": Strategy("hallucination", "joint", "kg"),
    "JES": Strategy("ep", "joint", "jes"),
    "HB-logEI+EUBO": Strategy(
        ("hallucination", "ep"), ("last_winner", "joint"), ("log_ei", "eubo")
    ),
    "KG+EI": Strategy(
        ("ep", "hallucination"), ("joint", "posterior_mean"), ("kg", "log_ei"), "drawn"
    ),
    "random": Strategy("ep", "random", "random"),
}
# What stands for "auto" beside fields that were given.
ORDINARY = Strategy("hallucination", "posterior_mean", "log_ei")
# What is taken unless something else is said (benchmarks/optimize/generated_regret.py):
# duels that look ahead find the right peak, those with the best item seen climb it; a set shows
# what several draws of the utility think best. One more item beside several others
# (benchmarks/optimize/joining.py) by turns raises the expected utility of the best of
# them and improves on the best item seen.
BEST = {
    "duel": STRATEGIES["KG+EI"],
    "set": STRATEGIES["DoubleTS"],
    "joining": Strategy(("ep", "hallucination"), "posterior_mean", ("eubo", "log_ei"), "drawn"),
    "grid": ORDINARY,
}
HYPERPARAMETERS = ("best", "drawn")
INCUMBENTS = ("last_winner", "posterior_mean", "thompson", "random", "joint")


class View(NamedTuple):
    """What a strategy may look at.

    Attributes
    ----------
    space : Space
    seen : ndarray of shape (n_items, n_columns)
        Items that answers are about.
    last_winner : ndarray of shape (n_columns,)
    gaussian : Posterior
        Of one component, for posterior means.
    draw : callable
        A working posterior; with hallucinations a fresh one at each call.
    allowed : callable
        ``allowed(members, rows)``: which rows may join those in the question already.
    rng : numpy.random.Generator
    size : int
        Number of items of the question.
    apart : float
        How far from each other the items of a set are, where that can be.
    least : float
        By how much, in prior deviations of the utility, a duel by "kg" raises the largest posterior
        mean at least; if none does, NothingToGain is raised.
    given : ndarray of shape (m, n_columns) or None
        Rows that the question begins with, whatever the rule for the incumbent; None: there are
        none.
    """

    space: Any
    seen: np.ndarray
    last_winner: np.ndarray
    gaussian: Any
    draw: Callable
    allowed: Callable
    rng: np.random.Generator
    size: int = 2
    apart: float = 0.0
    least: float = -np.inf
    given: np.ndarray | None = None


class NothingToGain(Exception):
    """No duel raises the largest posterior mean by as much as is wanted."""


def propose(strategy: Strategy, view: View) -> np.ndarray | None:
    """The next question as rows, incumbent first; None if none is allowed.

    Raises ValueError if the acquisition is NaN everywhere, and NothingToGain.
    """
    with naming(strategy.acquisition):
        return _propose(strategy, view)


@contextmanager
def naming(acquisition: str | Callable) -> Iterator[None]:
    """What says which acquisition it was that is NaN everywhere."""
    try:
        yield
    except NoNumber as error:
        name: Any = acquisition
        if callable(acquisition):
            name = getattr(acquisition, "__qualname__", None) or type(acquisition).__qualname__
        raise ValueError(
            f"The acquisition {name!r} chose nothing: {error}. It must return numbers, larger "
            "for a better item; NaN at some of them is fine."
        ) from error


def _propose(strategy, view):
    if view.given is not None:
        return _completed(strategy.acquisition, view, view.given)
    if strategy.incumbent == "joint":
        found = _joint(strategy, view)
        if found is not None:
            return found
    found = _completed(strategy.acquisition, view, _RULES[strategy.incumbent](view)[None])
    if found is not None:
        return found
    order = np.argsort(-view.gaussian.mean(view.seen), kind="stable")
    for other in view.seen[order[:20]]:
        found = _completed(strategy.acquisition, view, other[None])
        if found is not None:
            return found
    return random_question(view.space, view.allowed, view.rng, view.size)


def _completed(acquisition, view, members):
    """A question that begins with some rows, each further one a challenger; None if none is."""
    while len(members) < view.size:
        challenger = _challenger(acquisition, view, members)
        if challenger is None:
            return None
        members = np.concatenate([members, challenger[None]])
    return members


def random_question(
    space: Any,
    allowed: Callable,
    rng: np.random.Generator,
    size: int,
    given: np.ndarray | None = None,
) -> np.ndarray | None:
    """Rows drawn at random that may be asked together; None if there seem to be none.

    They begin with those ``given``, if there are any.
    """
    if given is not None:
        return _joined_at_random(space, allowed, rng, size, given)
    if space.pool is not None and size == 2:
        for index in rng.permutation(len(space.pool)):
            row = space.pool[index]
            good = np.flatnonzero(allowed(row, space.pool))
            if len(good):
                return np.array([row, space.pool[rng.choice(good)]])
        return None
    if space.pool is None:
        drawn = (space.place(rng.random((size, space.n_dimensions))) for _ in range(_TRIES))
    else:
        drawn = (space.pool[list(each)] for each in _subsets(len(space.pool), size, rng))
    for rows in drawn:
        if may_be_asked(rows, allowed):
            return rows
    return None


def _joined_at_random(space, allowed, rng, size, members):
    while len(members) < size:
        rows = screening_rows(space, np.zeros((0, space.n_columns)), rng)
        good = rows[allowed(members, rows)]
        if not len(good):
            return None
        members = np.concatenate([members, rng.choice(good)[None]])
    return members


def spread_out(
    rows: np.ndarray, given: np.ndarray, shown: np.ndarray, allowed: Callable, size: int
) -> np.ndarray | None:
    """A question of those ``given`` and of rows that are farthest from all shown; None if none may.

    Parameters
    ----------
    rows : ndarray of shape (n, n_columns)
        To choose from.
    given : ndarray of shape (m, n_columns)
    shown : ndarray of shape (n_shown, n_columns)
    allowed : callable
    size : int

    Returns
    -------
    ndarray of shape (size, n_columns) or None
    """
    while len(given) < size:
        good = rows[allowed(given, rows)]
        if not len(good):
            return None
        distance = np.linalg.norm(good[:, None] - shown, axis=2).min(axis=1)
        farthest = good[[distance.argmax()]]
        given, shown = np.concatenate([given, farthest]), np.concatenate([shown, farthest])
    return given


def may_be_asked(rows: np.ndarray, allowed: Callable) -> bool:
    """Whether each row may join those before it."""
    return all(allowed(rows[:k], rows[k : k + 1])[0] for k in range(1, len(rows)))


def _subsets(n, size, rng):
    """Sets of so many of n in random order: every one of them if they are few, else some."""
    if n < size:
        return
    if comb(n, size) <= _TRIES:
        found = list(combinations(range(n), size))
        for index in rng.permutation(len(found)):
            yield rng.permutation(found[index])
        return
    for _ in range(_TRIES):
        yield rng.choice(n, size, replace=False)


# --- incumbents -----------------------------------------------------------------------------


def best_seen(posterior: Any, seen: np.ndarray) -> np.ndarray:
    """The row of the largest posterior mean among those seen."""
    return seen[int(np.argmax(posterior.mean(seen)))]


def _thompson_incumbent(view):
    seeds = _top(view.gaussian, view)
    return maximise(_path(view), view.space, seeds, view.rng, n_screen=_PATH_SCREEN)[0]


def _random_incumbent(view):
    found = random_question(view.space, lambda row, rows: apart(row, rows, view.space), view.rng, 2)
    return view.last_winner if found is None else found[0]


_RULES = {
    "last_winner": lambda view: view.last_winner,
    "posterior_mean": lambda view: best_seen(view.gaussian, view.seen),
    "thompson": _thompson_incumbent,
    "random": _random_incumbent,
    "joint": lambda view: best_seen(view.gaussian, view.seen),
}


def incumbent_of(strategy: Strategy, view: View) -> np.ndarray:
    """The row of the incumbent, by the rule of a strategy."""
    return _RULES[strategy.incumbent](view)


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

    An improvement is one on the largest mean over the rows seen, for each component.
    """
    means = posterior.component_means(seen)
    return _improving(acquisition, posterior, incumbent, means.max(axis=0))


def _improving(acquisition, posterior, incumbent, threshold):
    """The same, where the largest means are known."""
    if callable(acquisition):
        own = deepcopy(posterior)  # the fit behind it serves more questions
        return Numeric(lambda X: acquisition(own, X.copy(), incumbent.copy()))
    return Surface(ACQUISITIONS[acquisition], posterior, incumbent, threshold)


def _challenger(acquisition, view, members, n_screen=_SCREEN, climbs=_CLIMBS):
    """One more row for a question; the first of its members is the incumbent."""
    incumbent = members[0]

    def allowed(rows):
        return view.allowed(members, rows)

    def distant(rows):
        distance = np.linalg.norm(rows[:, None] - members[1:], axis=2)
        return allowed(rows) & np.all(distance > view.apart, axis=1)

    if isinstance(acquisition, str) and acquisition == "random":
        rows = screening_rows(view.space, np.zeros((0, view.space.n_columns)), view.rng)
        good = np.flatnonzero(allowed(rows))
        return rows[view.rng.choice(good)] if len(good) else None
    if isinstance(acquisition, str) and acquisition == "thompson":
        seeds = _top(view.gaussian, view)
        return maximise(_path(view), view.space, seeds, view.rng, allowed, _PATH_SCREEN)[0]
    posterior = view.draw()
    means = posterior.component_means(view.seen)
    seeds = view.seen[np.argsort(-means.mean(axis=1), kind="stable")[:_SEEDS]]
    if len(members) > 1 and acquisition == "eubo":
        normals = common_normals(view.size - 1, posterior.n_components, view.rng)
        best = BestOf(posterior, members, normals)
        return maximise(best, view.space, seeds, view.rng, allowed, _SET_SCREEN)[0]
    wanted = distant if view.apart and len(members) > 1 else allowed
    if isinstance(acquisition, str) and acquisition in LOOKAHEADS:
        found = _looking_ahead(acquisition, view, posterior, incumbent, wanted)
        if found is None and wanted is distant:
            found = _looking_ahead(acquisition, view, posterior, incumbent, allowed)
        return None if found is None else found[1]
    threshold = means.max(axis=0)
    surface = _improving(acquisition, posterior, incumbent, threshold)
    coarse, every = None, posterior.n_components // _COARSE
    if every > 1:
        few = replace(posterior, weights=posterior.weights[:, ::every])
        coarse = _improving(acquisition, few, incumbent, threshold[::every])
    effort = (n_screen, coarse, climbs)
    found = maximise(surface, view.space, seeds, view.rng, wanted, *effort)[0]
    if found is None and wanted is distant:
        found = maximise(surface, view.space, seeds, view.rng, allowed, *effort)[0]
    return found


def rough_challenger(strategy: Strategy, view: View, incumbent: np.ndarray) -> np.ndarray | None:
    """About the row that a strategy would show beside an incumbent; None if none is allowed."""
    return _challenger(strategy.acquisition, view, incumbent[None], _SET_SCREEN, 1)


def _joint(strategy, view):
    """All items maximise the acquisition, by turns; but for "eubo" the first two of a set do."""
    if view.size > 2 and strategy.acquisition == "eubo":
        return _joint_set(view)
    if isinstance(strategy.acquisition, str) and strategy.acquisition in LOOKAHEADS:
        found = _looking_ahead(strategy.acquisition, view, view.draw())
    else:
        found = _joint_pair(strategy, view)
    return found if found is None else _completed(strategy.acquisition, view, found)


def _joint_set(view):
    """Items that maximise the expected utility of the best of them, by turns; None if none may."""
    posterior = view.draw()
    normals = common_normals(view.size - 1, posterior.n_components, view.rng)
    seeds = _top(posterior, view)

    def best_beside(rest, seeds, n_screen):
        surface = BestOf(posterior, rest, normals)

        def allowed(rows):
            return view.allowed(rest, rows)

        row, value = maximise(surface, view.space, seeds, view.rng, allowed, n_screen)
        return surface, row, value

    found = best_seen(view.gaussian, view.seen)[None]
    while len(found) < view.size:
        row = best_beside(found, np.concatenate([seeds, found]), _SET_SCREEN)[1]
        if row is None:
            return None
        found = np.concatenate([found, row[None]])
    for place in np.resize(range(view.size), _ALTERNATIONS * view.size // 2):
        surface, row, value = best_beside(np.delete(found, place, axis=0), found, _PATH_SCREEN)
        before = surface.value(found[place][None])[0]
        if row is not None and value > before + 1e-6 * (1.0 + abs(before)):
            found[place] = row
    return found[np.argsort(-posterior.mean(found), kind="stable")]


def _joint_pair(strategy, view):
    """Two items maximise the acquisition, by turns; the better one first."""
    posterior = view.draw()
    threshold = posterior.component_means(view.seen).max(axis=0)
    first, value, found = best_seen(view.gaussian, view.seen), -np.inf, None
    for _ in range(_ALTERNATIONS):
        surface = _improving(strategy.acquisition, posterior, first, threshold)
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
    return found[np.argsort(-posterior.mean(found), kind="stable")]


# --- acquisitions that look ahead -----------------------------------------------------------


def _looking_ahead(acquisition, view, posterior, incumbent=None, allowed=None):
    """Two items that maximise an acquisition of `LOOKAHEADS`; None if none may be asked.

    Without an incumbent both are chosen, and the better one is first; else the second is, of the
    rows that are ``allowed``.
    """
    rows = screening_rows(view.space, _top(posterior, view), view.rng)
    if view.space.pool is None:
        rows = np.concatenate([view.seen, rows])
    rows, m = _promising_first(posterior, rows, incumbent)
    candidates = Candidates.of(posterior, rows, m, view.rng)
    surface = LOOKAHEADS[acquisition](posterior, candidates)
    if incumbent is None:
        values, chosen = surface.of_pairs(candidates, *_pairs(candidates))
        fixed = np.unique(chosen[np.argsort(-values, kind="stable")[:_FIXED], :2])
    else:
        values, chosen = np.zeros(0), np.zeros((0, surface.n_rows), dtype=np.intp)
        fixed = np.zeros(1, dtype=np.intp)
    for first in fixed:
        second = np.delete(np.arange(len(rows)), first)
        more, others = surface.of_pairs(candidates, np.full(len(second), first), second)
        values, chosen = np.append(values, more), np.concatenate([chosen, others])
    found = rows[chosen]
    if view.space.pool is None:
        moving = np.arange(chosen.shape[1]) >= (incumbent is not None)
        starts = _spread_best(found.reshape(len(found), -1), values)
        starts = starts.reshape(len(starts), *found.shape[1:])
        climbed = [_climb_rows(surface, view.space, start, moving) for start in starts]
        top, value = max(climbed, key=lambda each: each[1])
        swapped = _swap_rows(surface, view.space, posterior, candidates, top, value, moving)
        climbed.append(swapped)
        found = np.concatenate([np.array([each for each, _ in climbed]), found])
        values = np.concatenate([[value for _, value in climbed], values])
    if values.max(initial=-np.inf) < view.least * np.sqrt(posterior.kernel.diag(rows).max()):
        raise NothingToGain
    for index in np.argsort(-values, kind="stable"):
        duel = found[index, :2]
        if incumbent is not None:
            if allowed(duel[1:])[0]:
                return duel
        elif may_be_asked(duel, view.allowed):
            return duel[np.argsort(-posterior.mean(duel), kind="stable")]
    return None


def _promising_first(posterior, rows, incumbent):
    """Distinct rows, those of the largest means and upper bounds first, and how many these are.

    If there is an incumbent it is the very first.
    """
    rows = np.unique(rows, axis=0)
    mean = posterior.mean(rows)
    upper = mean + 2.0 * np.sqrt(posterior.var(rows))
    orders = [np.argsort(-score, kind="stable") for score in (mean, upper)]
    kept = [order[:n] for order, n in zip(orders, _LARGEST, strict=True)]
    leading = np.unique(np.concatenate(kept))
    rows, m = np.concatenate([rows[leading], np.delete(rows, leading, axis=0)]), len(leading)
    return (rows, m) if incumbent is None else (np.concatenate([incumbent[None], rows]), m + 1)


def _pairs(candidates):
    """Pairs of candidates worth a look: of those that may be best, and the best by "eubo"."""
    m = candidates.cov.shape[1]
    if m <= _MAXIMAL + 2 * _SHOWN:
        return np.triu_indices(m, 1)
    drawn, counts = np.unique(candidates.best, return_counts=True)
    drawn = drawn[np.argsort(-counts, kind="stable")[:_MAXIMAL]]
    mean = candidates.means[:m].mean(axis=1)
    upper = mean + 2.0 * np.sqrt(candidates.var[:m])
    largest = [np.argsort(-score, kind="stable")[:_SHOWN] for score in (mean, upper)]
    shown = np.unique(np.concatenate([drawn, *largest]))
    i, j = np.triu_indices(len(shown), 1)
    best = np.unravel_index(np.argmax(candidates.utility_of_best()), (m, m))
    return np.append(shown[i], best[0]), np.append(shown[j], best[1])


def _climb_rows(surface, space, start, moving):
    """L-BFGS-B over the free columns of all rows that move, and the value there."""
    open_ = moving[:, None] & space.free
    if not open_.any():
        return start, surface.value_and_gradient(start)[0]
    scale = max(abs(surface.value_and_gradient(start)[0]), 1e-12)

    def negative(x):
        rows = start.copy()
        rows[open_] = x
        value, gradient = surface.value_and_gradient(rows)
        return -value / scale, -gradient[open_] / scale

    found = minimize(
        negative,
        start[open_],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * int(open_.sum()),
        options={"maxiter": _MAX_CLIMB},
    )
    rows = start.copy()
    rows[open_] = found.x
    return space.snap(rows), float(-found.fun) * scale


def _swap_rows(surface, space, posterior, candidates, rows, value, moving):
    """From a climbed duel over its neighbours where there is no gradient."""
    for _ in range(_MAX_SWAPS):
        near = [space.neighbours(row) for row in rows]
        if not sum(map(len, near)):
            break
        joined = candidates.joined_by(posterior, np.concatenate([rows, *near]))
        here, n_first, n_second = candidates.cov.shape[1], len(near[0]), len(near[1])
        first, second = np.full((2, 1 + n_first + n_second), [[here], [here + 1]])
        begin = here + len(rows)
        first[1 : 1 + n_first] = np.arange(begin, begin + n_first)
        second[1 + n_first :] = np.arange(begin + n_first, begin + n_first + n_second)
        kept = moving[0] | (first == here)
        values, chosen = surface.of_pairs(joined, first[kept], second[kept])
        best = int(np.argmax(values))
        if not values[best] > value + 1e-6 * abs(value):
            break
        rows, value = _climb_rows(surface, space, joined.rows[chosen[best]], moving)
    return rows, value


# --- maximising -----------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _sobol(n, d):
    return qmc.Sobol(d, scramble=False).random(n)


def screening_rows(
    space: Any, seeds: np.ndarray, rng: np.random.Generator, n_screen: int = _SCREEN
) -> np.ndarray:
    """Rows spread over the space, and rows around the seeds (which come first)."""
    if space.pool is not None:
        return space.pool
    shift = rng.random(space.n_dimensions)
    spread = space.place((_sobol(n_screen, space.n_dimensions) + shift) % 1.0)
    if not len(seeds):
        return spread
    sizes = np.resize(_SIZES, _AROUND)[:, None, None]
    step = sizes * rng.standard_normal((_AROUND, *seeds.shape))
    # In many dimensions also steps along a few of them.
    few = rng.random(step.shape) < np.minimum(1.0, 3.0 / space.n_columns)
    step = np.where(rng.random((_AROUND, len(seeds), 1)) < 0.5, step, step * few)
    near = _reflect(seeds + step).reshape(-1, space.n_columns)
    return np.concatenate([seeds, space.snap(near), spread])


def _reflect(rows):
    return 1.0 - np.abs(1.0 - np.abs(rows) % 2.0)


class NoNumber(ValueError):
    """A surface is NaN wherever it was looked at."""


def maximise(
    surface: Any,
    space: Any,
    seeds: np.ndarray,
    rng: np.random.Generator,
    allowed: Callable | None = None,
    n_screen: int = _SCREEN,
    coarse: Any = None,
    climbs: int = _CLIMBS,
) -> tuple[np.ndarray | None, float]:
    """The row where the surface is largest, and its value; no row if none looked at is allowed.

    Starts from rows spread over the space, ``n_screen`` of them, and from the seeds. ``coarse`` is
    a cheap likeness of the surface, which sorts out most of the rows of a box first. It is climbed
    from the best rows, ``climbs`` of them. ``allowed``
    says of rows which may be returned. NoNumber is raised if the surface is NaN at all of them.
    """
    rows = screening_rows(space, seeds, rng, n_screen)
    if coarse is not None and space.pool is None:
        rows = rows[np.argsort(-coarse.value(rows), kind="stable")[:_KEPT]]
    values = surface.value(rows)
    if np.isnan(values).all():
        raise NoNumber(f"it is NaN at all of {len(rows)} items")
    values = np.where(np.isfinite(values), values, -np.inf)
    if space.pool is None:
        starts = _spread_best(rows, values, climbs)
        climbed = [_climb(surface, space, start) for start in starts]
        rows = np.concatenate([np.array([row for row, _ in climbed]), rows])
        values = np.concatenate([[value for _, value in climbed], values])
    order = np.argsort(-values, kind="stable")
    if allowed is None:
        return rows[order[0]], float(values[order[0]])
    for block in np.array_split(order, max(1, len(order) // 32)):
        good = allowed(rows[block])
        if good.any():
            best = block[np.argmax(good)]
            return rows[best], float(values[best])
    return None, -np.inf


def _spread_best(rows, values, n=_CLIMBS):
    """The n best rows that are not all in one place."""
    order = np.argsort(-values, kind="stable")[: 16 * n]
    chosen = [order[0]]
    for index in order[1:]:
        if len(chosen) == n:
            break
        if np.abs(rows[chosen] - rows[index]).max(axis=1).min() > 0.05:
            chosen.append(index)
    return rows[chosen]


def _climb(surface, space, start):
    row, value = start, -np.inf
    for _ in range(_MAX_SWAPS):
        row, value = _ascend(surface, space, row)
        if space.free.all():
            break
        near = space.neighbours(row)
        if not len(near):
            break
        others = surface.value(near)
        best = int(np.argmax(others))
        if not others[best] > value + 1e-9 * (1.0 + abs(value)):
            break
        row = near[best]
    return row, value


def _ascend(surface, space, start):
    """L-BFGS-B over the free columns."""
    free = space.free

    def negative(x):
        row = start.copy()
        row[free] = x
        value, gradient = surface.value_and_gradient(row[None])
        return -value[0], -gradient[0, free]

    if not free.any():
        return start, float(surface.value(start[None])[0])
    found = minimize(
        negative,
        start[free],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * int(free.sum()),
        options={"maxiter": _MAX_CLIMB},
    )
    row = start.copy()
    row[free] = found.x
    row = space.snap(row[None])[0]
    return row, float(-found.fun)
