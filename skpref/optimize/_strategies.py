"""How the next question is chosen: (engine, incumbent rule, acquisition) as data."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skpref._utils import Array
from skpref.optimize._acquisition import (
    ACQUISITIONS,
    BestOf,
    Numeric,
    PathSurface,
    Surface,
    draw_shared_normals,
)
from skpref.optimize._lookahead import LOOKAHEADS, DuelCandidates, DuelSurface
from skpref.optimize._maximiser import (
    EFFORT,
    NaNEverywhereError,
    RowSurface,
    Rule,
    candidate_rows,
    maximise,
    maximise_points,
)


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
        """Return a strategy for each method that takes turns; ValueError if lengths differ."""
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
# What stands for "auto" beside fields that were set.
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


class AskContext(NamedTuple):
    """What a strategy may look at.

    Attributes
    ----------
    space : Space
    answered_rows : ndarray of shape (n_items, n_columns)
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
    separation : float
        How far from each other the items of a set are, where that can be.
    first_rows : ndarray of shape (m, n_columns) or None
        Rows that the question begins with, whatever the rule for the incumbent; None: there are
        none.
    """

    space: Any
    answered_rows: Array
    last_winner: Array
    gaussian: Any
    draw: Callable
    allowed: Callable
    rng: np.random.Generator
    size: int = 2
    separation: float = 0.0
    first_rows: Array | None = None


def propose(strategy: Strategy, context: AskContext) -> Array | None:
    """Return the next question as rows, incumbent first; None if none is allowed.

    Raises
    ------
    ValueError
        If the acquisition is NaN everywhere.
    """
    with name_failing_acquisition(strategy.acquisition):
        return _question_by_strategy(strategy, context)


@contextmanager
def name_failing_acquisition(acquisition: str | Callable) -> Iterator[None]:
    """Raise a ValueError that names the acquisition where it is NaN everywhere within."""
    try:
        yield
    except NaNEverywhereError as error:
        name: Any = acquisition
        if callable(acquisition):
            name = getattr(acquisition, "__qualname__", None) or type(acquisition).__qualname__
        raise ValueError(
            f"The acquisition {name!r} chose nothing: {error}. It must return numbers, larger "
            "for a better item; NaN at some of them is fine."
        ) from error


def _question_by_strategy(strategy, context):
    """Return what `propose` does, without the name of an acquisition in its error."""
    if context.first_rows is not None:
        return _complete_question(strategy.acquisition, context, context.first_rows)
    question = None
    if strategy.incumbent == "joint":
        question = _question_from_joint_pair(strategy.acquisition, context)
    if question is None:
        incumbent = incumbent_row(strategy, context)[None]
        question = _complete_question(strategy.acquisition, context, incumbent)
    if question is None:
        return random_question(context.space, context.allowed, context.rng, context.size)
    return question


def _complete_question(acquisition, context, members):
    """Return a question of members and the best further rows, one by one; None if none may."""
    while len(members) < context.size:
        row = best_further_row(acquisition, context, members)
        if row is None:
            return None
        members = np.concatenate([members, row[None]])
    return members


def random_question(
    space: Any,
    allowed: Callable,
    rng: np.random.Generator,
    size: int,
    first_rows: Array | None = None,
) -> Array | None:
    """Return a question of random rows after ``first_rows``; None if none may be asked."""
    members = np.zeros((0, space.n_columns)) if first_rows is None else first_rows
    return extend_question(random_rows(space, rng), members, allowed, size)


def random_rows(space: Any, rng: np.random.Generator) -> Array:
    """Return distinct random rows of a space; of a pool all, in random order."""
    rows = space.pool
    if rows is None:
        rows = space.rows_at(rng.random((EFFORT.n_rows, space.n_dimensions)))
        rows = np.unique(rows, axis=0)
    return rng.permutation(rows)


def extend_question(rows: Array, members: Array, allowed: Callable, size: int) -> Array | None:
    """Return a question of members and the first rows that may join them; None if none may."""
    if len(members) == size:
        return members
    for row in rows[allowed(members, rows)] if len(members) else rows:
        question = extend_question(rows, np.concatenate([members, row[None]]), allowed, size)
        if question is not None:
            return question
    return None


def farthest_question(
    rows: Array, first_rows: Array, shown: Array, allowed: Callable, size: int
) -> Array | None:
    """Return a question of first rows and those farthest from all shown; None if none may join.

    Parameters
    ----------
    rows : ndarray of shape (n, n_columns)
        To choose from.
    first_rows : ndarray of shape (m, n_columns)
    shown : ndarray of shape (n_shown, n_columns)
    allowed : callable
    size : int

    Returns
    -------
    ndarray of shape (size, n_columns) or None
    """
    question = first_rows
    while len(question) < size:
        good = rows[allowed(question, rows)]
        if not len(good):
            return None
        distance = np.linalg.norm(good[:, None] - shown, axis=2).min(axis=1)
        farthest = good[[distance.argmax()]]
        question, shown = np.concatenate([question, farthest]), np.concatenate([shown, farthest])
    return question


def may_be_asked(rows: Array, allowed: Callable) -> bool:
    """Return whether rows may be asked about together, each of them joining those before it."""
    return all(allowed(rows[:k], rows[k : k + 1])[0] for k in range(1, len(rows)))


# --- incumbents -----------------------------------------------------------------------------


def best_mean_row(posterior: Any, rows: Array) -> Array:
    """Return the row of the largest posterior mean."""
    best: Array = rows[int(np.argmax(posterior.mean(rows)))]
    return best


def best_mean_rows(posterior, context):
    """Return the answered rows of the largest posterior means, with which a search begins."""
    order = np.argsort(-posterior.mean(context.answered_rows), kind="stable")
    return context.answered_rows[order[: EFFORT.n_seeds]]


def _thompson_incumbent(context):
    """Return the best row of one drawn utility."""
    seeds = best_mean_rows(context.gaussian, context)
    return maximise(_draw_path_surface(context), context.space, seeds, context.rng)[0]


def _random_incumbent(context):
    """Return a random row that may be asked, else the last winner."""
    rows = random_question(context.space, context.allowed, context.rng, 1)
    return context.last_winner if rows is None else rows[0]


INCUMBENT_RULES: dict[str, Callable[[AskContext], Array]] = {
    "last_winner": lambda context: context.last_winner,
    "posterior_mean": lambda context: best_mean_row(context.gaussian, context.answered_rows),
    "thompson": _thompson_incumbent,
    "random": _random_incumbent,
    "joint": lambda context: best_mean_row(context.gaussian, context.answered_rows),
}


def incumbent_row(strategy: Strategy, context: AskContext) -> Array:
    """Return the row of the incumbent, by the rule of a strategy."""
    return INCUMBENT_RULES[strategy.incumbent](context)


# --- further items --------------------------------------------------------------------------


def _draw_path_surface(context):
    """Return a utility drawn from the posterior as a surface."""
    return PathSurface(context.draw().sample_paths(1, context.rng))


def acquisition_surface(
    acquisition: str | Callable, posterior: Any, incumbent: Array, answered_rows: Array
) -> Surface | Numeric:
    """Return an acquisition of a posterior as a function of the challenger.

    An improvement is one on the largest mean over the rows answered, for each component.
    """
    if callable(acquisition):
        own = deepcopy(posterior)  # the fit behind it serves more questions
        return Numeric(lambda X: acquisition(own, X.copy(), incumbent.copy()))
    threshold = posterior.component_means(answered_rows).max(axis=0)
    return Surface(ACQUISITIONS[acquisition], posterior, incumbent, threshold)


def best_further_row(
    acquisition: str | Callable, context: AskContext, members: Array
) -> Array | None:
    """Return the best row to join the members of a question, incumbent first; None if none may.

    Raises
    ------
    NaNEverywhereError
        If the acquisition is NaN everywhere.
    """
    space, rng, rules = context.space, context.rng, [partial(context.allowed, members)]
    if isinstance(acquisition, str) and acquisition == "random":
        question = random_question(space, context.allowed, rng, len(members) + 1, members)
        return None if question is None else question[-1]
    if isinstance(acquisition, str) and acquisition == "thompson":
        seeds = best_mean_rows(context.gaussian, context)
        return maximise(_draw_path_surface(context), space, seeds, rng, *rules)[0]
    posterior = context.draw()
    if context.separation and len(members) > 1:
        rules.insert(0, partial(_allowed_and_distant, context, members))
    if isinstance(acquisition, str) and acquisition in LOOKAHEADS:
        duel = _lookahead_duel(acquisition, context, posterior, members[0], rules)
        return None if duel is None else duel[1]
    surface = _surface_given_members(acquisition, context, posterior, members)
    seeds = best_mean_rows(posterior, context)
    return maximise(surface, space, seeds, rng, *rules)[0]


def _allowed_and_distant(context, members, rows):
    """Return which rows may join the members and are far from all but the incumbent, (n,)."""
    distance = np.linalg.norm(rows[:, None] - members[1:], axis=2)
    return context.allowed(members, rows) & np.all(distance > context.separation, axis=1)


def _surface_given_members(acquisition, context, posterior, members) -> RowSurface:
    """Return an acquisition as a function of the row that joins the members of a question."""
    if len(members) == 1 or acquisition != "eubo":
        return acquisition_surface(acquisition, posterior, members[0], context.answered_rows)
    normals = draw_shared_normals(context.size - 1, posterior.n_components, context.rng)
    return BestOf(posterior, members, normals)


# --- items that are chosen together ---------------------------------------------------------


def _question_from_joint_pair(acquisition, context):
    """Return a question whose first two rows maximise an acquisition together; None if none may."""
    if isinstance(acquisition, str) and acquisition in LOOKAHEADS:
        question = _lookahead_duel(acquisition, context, context.draw())
    else:
        question = _maximise_by_turns(acquisition, context)
    return None if question is None else _complete_question(acquisition, context, question)


def _maximise_by_turns(acquisition, context):
    """Return two rows that maximise an acquisition by turns, best mean first; None if none may.

    Each in turn is the best beside the other, as long as their value grows.
    """
    posterior = context.draw()
    seeds = best_mean_rows(posterior, context)
    first, value, question = best_mean_row(context.gaussian, context.answered_rows), -np.inf, None
    for _ in range(EFFORT.n_turns):
        start = np.concatenate([seeds, first[None] if question is None else question])
        surface = _surface_given_members(acquisition, context, posterior, first[None])
        rule = partial(context.allowed, first[None])
        second, reached = maximise(surface, context.space, start, context.rng, rule)
        if second is None or not reached > value + 1e-6 * (1.0 + abs(reached)):
            break
        question, value, first = np.array([first, second]), reached, second
    return sort_by_mean(posterior, question)


def sort_by_mean(posterior: Any, question: Array | None) -> Array | None:
    """Return the rows of a question, that of the largest posterior mean first; None if None."""
    if question is None:
        return None
    return question[np.argsort(-posterior.mean(question), kind="stable")]


def _lookahead_duel(acquisition, context, posterior, incumbent=None, rules=()):
    """Return two rows that maximise an acquisition of `LOOKAHEADS`; None if none may be asked.

    Without an incumbent both are chosen, and the better one is first; else the second is, of the
    rows that the first rule allows, or else the next.
    """
    candidates = draw_duel_candidates(context, posterior, context.answered_rows, incumbent)
    surface = LOOKAHEADS[acquisition](posterior, candidates)
    every = np.arange(len(candidates.rows))
    if incumbent is None:
        first = candidates.most_often_best()[: EFFORT.n_starts]
        return sort_by_mean(posterior, best_duel(surface, candidates, context, first, every)[0])
    allowed = [lambda points, rule=rule: rule(points[:, 1]) for rule in rules]
    return best_duel(surface, candidates, context, [0], every, (False, True), allowed)[0]


def draw_duel_candidates(
    context: AskContext, posterior: Any, rows: Array, incumbent: Array | None = None
) -> DuelCandidates:
    """Return candidates for the items of a duel: some rows, and others spread over the space.

    If there is an incumbent it is the very first.
    """
    spread = candidate_rows(context.space, best_mean_rows(posterior, context), context.rng)
    rows = np.unique(np.concatenate([rows, spread]), axis=0)
    mean = posterior.mean(rows)
    upper = mean + 2.0 * np.sqrt(posterior.var(rows))
    orders = [
        np.argsort(-score, kind="stable")[: EFFORT.n_recommendable] for score in (mean, upper)
    ]
    leading = np.unique(np.concatenate(orders))
    rows, n_first = np.concatenate([rows[leading], np.delete(rows, leading, axis=0)]), len(leading)
    if incumbent is not None:
        rows, n_first = np.concatenate([incumbent[None], rows]), n_first + 1
    return DuelCandidates.draw(posterior, rows, n_first, context.rng)


def best_duel(
    surface: DuelSurface,
    candidates: DuelCandidates,
    context: AskContext,
    first: ArrayLike,
    second: ArrayLike,
    moving: tuple[bool, bool] = (True, True),
    rules: Sequence[Rule] = (),
) -> tuple[Array | None, float]:
    """Return the two rows of the best duel, and its value; None if none may be asked.

    Parameters
    ----------
    surface : DuelSurface
    candidates : DuelCandidates
    context : AskContext
    first, second : array-like of int
        Candidates that may be the first and the second item: all their pairs are valued.
    moving : tuple of two bool
        Which of the two items a climb may move.
    rules : sequence of callables
        As in `maximise_points`. Without them any duel that may be asked will do.
    """
    pairs = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    values, indices = surface.value_pairs(candidates, *pairs.T)
    points = candidates.rows[indices]

    def may_be_duel(points):
        return np.array([may_be_asked(point[:2], context.allowed) for point in points])

    point, value = maximise_points(
        surface, context.space, points, values, rules or [may_be_duel], moving
    )
    return None if point is None else point[:2], value
