"""What earlier people's answers say of a new person: a prior of that person's utility.

A collaborative fit of the earlier answers holds the utility of somebody of the same population: a
mean m and a covariance S. The utility of the new person is a·m(x) + s(x) + g(x), with a ~ N(0, 1),
s ~ N(0, S), and a part of the person's own, g, whose variance is learned as answers come. One duel
of the population itself, its best item against its worst, says that a is positive.

Rows of the model have one more column than items: 1 of the person, 0 of the population.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel
from sklearn.utils.validation import check_is_fitted

from skpref._utils import NEGLIGIBLE, Array, semidefinite_root
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.data import check_ranks
from skpref.fitting import LogNormal
from skpref.kernels import (
    AnchorFeatures,
    Linear,
    OnColumns,
    kernel_values,
    lengthscale_indices,
)
from skpref.optimize._answers import AnswerArguments, ranks_of_outcome
from skpref.optimize._events import digest_bytes
from skpref.optimize._journal import read_journal
from skpref.optimize._maximiser import EFFORT
from skpref.optimize._model import ANSWERS, PRIORS
from skpref.optimize._spaces import N_ANCHORS, Space

# Answers that the hyperparameters of the earlier people are learned on. With 800 the fit of 30
# people of 30 answers takes three times as long.
_N_LEARNING = 300


class EarlierTastes(NamedTuple):
    """The prior of a new person's utility.

    Attributes
    ----------
    mean, spread : Kernel
        Of the population's mean m and of the covariance S, as kernels on rows of the space.
    own : Kernel
        Of the part that is the new person's own, where it starts.
    lengthscale : float or None
        Geometric mean of its lengthscales; None where none is learned.
    noise_variance : float
        Of the earlier answers, in units of ``own``.
    extremes : ndarray of shape (2, n_columns)
        Rows of the population's best item and of its worst.
    digest : str
        Tells these from others.
    """

    mean: Kernel
    spread: Kernel
    own: Kernel
    lengthscale: float | None
    noise_variance: float
    extremes: Array
    digest: str

    def prior_around(self, prior: Any, median: float | None) -> Any:
        """Return a prior (median, deviation) around what was learned of earlier answers."""
        if median is None or not isinstance(prior, tuple):
            return prior
        return float(f"{median:.2g}"), prior[1]  # few digits: a journal tells runs apart by it

    @property
    def kernel(self) -> Kernel:
        """Return the kernel of the utilities of a new person and of the population.

        It is on rows of items with one more column, which says whose utility is meant.
        """
        n_columns = self.extremes.shape[1]
        columns = list(range(n_columns))
        own = ConstantKernel(PRIORS.own_variance[0], (1e-4, 1e2)) * self.own
        person = OnColumns(own + self.spread, columns) * OnColumns(Linear(), [n_columns])
        return person + OnColumns(self.mean, columns)


def own_variance_prior() -> LogNormal:
    """Return the prior of the variance of the new person's own part, the kernel's first."""
    median, deviation = PRIORS.own_variance
    return LogNormal(np.zeros(1, dtype=np.intp), np.array([np.log(median)]), np.array([deviation]))


class EarlierAnswer(NamedTuple):
    """An answer of an earlier person: rows of the items shown, their ranks, and whose it is."""

    rows: Array
    ranks: Sequence[int]
    user: Any


def read_earlier(
    earlier: Any, space: Space, kernel: Kernel, lengthscale_prior: Any
) -> EarlierTastes:
    """Return the prior that earlier answers give of a new person's utility.

    Parameters
    ----------
    earlier : mapping, path, sequence of paths, or CollaborativePreferenceRegressor
    space : Space
    kernel : Kernel
        Of a utility, on rows of the space.
    lengthscale_prior : (float, float), "lognormal" or None

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or an item is none of the space.
    """
    if isinstance(earlier, CollaborativePreferenceRegressor):
        check_is_fitted(earlier)
        rows = space.initial_rows(0, 0, N_ANCHORS)
        return _tastes_of_fit(
            earlier, _rows_to_model_features(rows, earlier, space), rows, kernel, space
        )
    duels, users = _split_into_duels(_read_answers(earlier, space))
    model = CollaborativePreferenceRegressor(
        clone(kernel),
        lengthscale_prior=lengthscale_prior,
        noise_variance_bounds=ANSWERS["noise_variance_bounds"],
        n_learning_answers=_N_LEARNING,
        random_state=0,
    ).fit(duels, np.ones(len(duels), dtype=np.intp), users=users)
    rows = model.posterior_.anchors
    rows = rows[:: 1 + len(rows) // N_ANCHORS]
    digest = _digest_arrays(duels, np.array(list(map(repr, users))))
    return _tastes_of_fit(model, rows, rows, model.kernel_, space)._replace(digest=digest)


def _tastes_of_fit(model, items, rows, kernel, space):
    """Return the prior of a new person's utility by a fit to earlier answers.

    ``items`` are those at which the fit is evaluated, in its own features, and ``rows`` the same on
    the unit cube.
    """
    posterior = model.posterior_  # of one stranger, where there are several users
    mean, covariance = posterior.mean(items), posterior.cov(items)
    held = clone(kernel)
    values = np.column_stack([mean, semidefinite_root(covariance)])
    weights = np.linalg.lstsq(kernel_values(held, rows), values, rcond=NEGLIGIBLE)[0]
    of_mean = AnchorFeatures(held, rows, weights[:, :1])
    spread = AnchorFeatures(held, rows, weights[:, 1:])
    candidates = np.concatenate([space.snap(rows), space.initial_rows(0, 0, EFFORT.n_rows)])
    candidates = np.unique(candidates[space.is_feasible(candidates)], axis=0)
    order = np.argsort(of_mean.features(candidates)[:, 0], kind="stable")
    extremes = candidates[order[[-1, 0]]]
    noise = float(np.clip(model.noise_variance_, *ANSWERS["noise_variance_bounds"]))
    lengths = kernel.theta[[index for index, _ in lengthscale_indices(kernel)]]
    return EarlierTastes(
        of_mean,
        spread,
        clone(kernel),
        float(np.exp(lengths.mean())) if len(lengths) else None,
        noise,
        extremes,
        _digest_arrays(np.round(mean, 6)),
    )


def _digest_arrays(*arrays):
    """Return a short text that tells arrays from others."""
    return digest_bytes(b"".join(each.tobytes() for each in arrays)).hex()


def _rows_to_model_features(rows, model, space):
    """Return the items of rows as a fitted model takes them, or raise ValueError."""
    items = [space.to_item(row) for row in rows]
    try:
        numbers = np.array(
            [list(item.values()) if isinstance(item, Mapping) else item for item in items],
            dtype=np.float64,
        )
    except (TypeError, ValueError):
        numbers = np.zeros((0, 0))
    if not space.has_features or numbers.shape[1:] != (model.n_features_in_,):
        raise ValueError(
            f"earlier= is a model of items of {model.n_features_in_} numbers, and the items of "
            f"this space are not such. Give the answers it was fitted to instead: earlier="
            '{"X": ..., "y": ..., "users": ...}.'
        )
    return numbers


# -- answers ---------------------------------------------------------------------------------


def _read_answers(earlier: Any, space: Space) -> list[EarlierAnswer]:
    """Return the earlier answers of a table or of journals."""
    if isinstance(earlier, Mapping):
        return list(_read_table_answers(earlier, space))
    if isinstance(earlier, str | PathLike):
        earlier = [earlier]
    if not isinstance(earlier, Sequence) or not all(
        isinstance(each, str | PathLike) for each in earlier
    ):
        raise TypeError(
            f"got earlier= of type {type(earlier).__name__}; a dict with the keys 'X', 'y' and "
            "'users', the path of a journal or a list of them, one of each person, or a fitted "
            "CollaborativePreferenceRegressor are allowed."
        )
    return [answer for path in earlier for answer in _journal_answers(path, space)]


def _read_table_answers(table: Mapping, space: Space) -> Iterator[EarlierAnswer]:
    """Yield the answers of a table with the keys X, y and users; ValueError if it has others."""
    if not {"X", "y"} <= set(table) <= {"X", "y", "users"}:
        raise ValueError(
            f"got earlier= with the keys {list(table)}; 'X' (items shown), 'y' (answers) and "
            "'users' (whose they are) are allowed, the first two are needed."
        )
    outcomes = list(np.asarray(table["y"]))
    users = list(table.get("users", [0] * len(outcomes)))
    if not len(table["X"]) == len(outcomes) == len(users):
        raise ValueError(
            f"got earlier= with {len(table['X'])} questions in X, {len(outcomes)} answers in y and "
            f"{len(users)} users; give one of each for every answer."
        )
    for shown, outcome, user in zip(table["X"], outcomes, users, strict=True):
        rows, n = _rows_of_items(shown, space), len(shown)
        if np.ndim(outcome):
            ranks: Sequence[int] = check_ranks(outcome[None], np.ones((1, n), bool)).rank[0]
        else:
            whole = n == 2 or isinstance(outcome, dict)
            arguments = {"outcome": outcome} if whole else {"chosen": int(outcome)}
            ranks = ranks_of_outcome(AnswerArguments(**arguments).outcome_of(n), n)
        yield EarlierAnswer(rows, ranks, user)


def _journal_answers(path: str | PathLike, space: Space) -> Iterator[EarlierAnswer]:
    """Yield the answers of a journal that were not taken back."""
    history = read_journal(path)
    answers: list = []
    for kind, shown, outcome in zip(
        history["kind"], history["items"], history["outcome"], strict=True
    ):
        if kind in ("tell", "skip", "value"):
            answers.append((shown, outcome if kind == "tell" else None))
        elif kind == "undo":
            answers.pop()
    for shown, outcome in answers:
        if outcome is not None:
            ranks = ranks_of_outcome(outcome, len(shown))
            yield EarlierAnswer(_rows_of_items(shown, space), ranks, str(path))


def _rows_of_items(shown: Any, space: Space) -> Array:
    """Return the unit-cube rows of items, or raise ValueError."""
    try:
        return np.array([space.to_row(item) for item in space.list_items(shown)])
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"got an item in earlier= that is none of the space: {error} Give the items as tell() "
            "takes them."
        ) from None


def _split_into_duels(answers: Sequence[EarlierAnswer]) -> tuple[Array, list]:
    """Return the duels that answers state, (n, 2, n_columns), winner first, and their users.

    Each item of one rank beats each of the next; ties state nothing.
    """
    duels, users = [], []
    for rows, ranks, user in answers:
        rank = np.asarray(ranks)
        levels = np.unique(rank[rank > 0])
        for better, worse in pairwise(levels):
            for pair in product(rows[rank == better], rows[rank == worse]):
                duels.append(pair)
                users.append(user)
    if not duels:
        raise ValueError(
            "got earlier= without an answer that says which item is better; give at least one, or "
            "leave earlier= out."
        )
    return np.array(duels), users
