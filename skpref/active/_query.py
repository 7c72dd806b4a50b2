"""Which duels to ask about next."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpref._utils import Array, RandomLike, check_choice, check_number
from skpref.active._batch import choose_diverse, rank_duels
from skpref.active._candidates import (
    Candidates,
    DuelPosterior,
    number_items,
    read_pool,
    split_duels,
)
from skpref.active._scores import (
    bald,
    best_item_information,
    committee_disagreement,
    entropy,
    margin_variance,
    random_scores,
)
from skpref.data import all_strings, check_respondents, read
from skpref.fitting import Inspected
from skpref.gp import Posterior

STRATEGIES: dict[str, Callable[..., Array]] = {
    "bald": bald,
    "entropy": entropy,
    "variance": margin_variance,
    "committee": committee_disagreement,
    "best_item": best_item_information,
    "random": random_scores,
}


def query(
    estimator: Any,
    pool: Any,
    strategy: str | Callable[..., ArrayLike] = "bald",
    n: int = 1,
    *,
    users: ArrayLike | None = None,
    order: ArrayLike = 1,
    answered: Any = None,
    answered_users: ArrayLike | None = None,
    pending: ArrayLike | None = None,
    diversity: bool = True,
    distinct_items: bool = False,
    return_scores: bool = False,
    random_state: RandomLike = None,
    **options: Any,
) -> NDArray[np.intp] | tuple[NDArray[np.intp], Array]:
    """Return the duels of a pool that are most worth asking about.

    Parameters
    ----------
    estimator : estimator, pipeline, optimizer or Posterior
        Anything fitted that has a ``posterior_``, or that posterior; with ``users`` an estimator
        that has ``posterior_for(users)``.
    pool : array-like
        Duels (n_duels, 2, n_features), a DuelFrame, or (n_duels, 2) positions or names in the
        estimator's table of items; names also as two columns of a DataFrame. Items, as floats
        (n_items, n_features), DataFrame or ItemTable, stand for all duels between them, in the
        order of `all_pairs`.
    strategy : str or callable, default="bald"
        "bald", "entropy", "variance", "committee", "best_item" or "random", see ``STRATEGIES``; or
        a function ``(posterior, duels) -> (n_duels,)``, larger where there is more to learn, in
        nats if ``diversity`` is to be right.
    n : int, default=1
        Number of duels.
    users : array-like of shape (n_duels,), default=None
        Who is to be asked each duel, where the estimator knows several users: ids of any kind.
    order : int or array-like of shape (n_duels,), default=1
        Who is shown first, where the likelihood has an order effect: 1 the first item, -1 the
        second, 0 neither.
    answered : array-like, default=None
        What is not asked again: duels of the form of the pool (names also where it has positions),
        in either order, or a mask of the pool, (n_duels,) booleans.
    answered_users : array-like, default=None
        Who answered each of the duels ``answered``, and is not asked it again. None: whoever it
        was, no user is.
    pending : array-like of int, default=None
        Rows of the pool that were asked already and will be answered: what comes now is to be asked
        beside them.
    diversity : bool, default=True
        Of several duels each is chosen in view of what the answers to those before it, and to those
        pending, will tell. False: the n largest scores. "random" is as it is.
    distinct_items : bool, default=False
        No item is in two of the n duels, nor in one of them and one that is pending.
    return_scores : bool, default=False
        Also return the score of every duel by itself, −inf of those left out.
    random_state : int, RandomState instance, Generator or None, default=None
        Of strategies that draw.
    **options
        Further arguments of the function of the strategy, such as ``members=20``.

    Returns
    -------
    indices : ndarray of int of shape (n,)
        Rows of the pool, the first to be asked first.
    scores : ndarray of shape (n_duels,)
        If ``return_scores``.

    Raises
    ------
    TypeError, ValueError
        If there is no posterior, the pool is none, it has fewer than n duels to ask, the strategy
        does not take an option (``prompts``, ``judges`` and ``time`` are none), or it asks a
        posterior with effects of pairs, `skpref.kernels.Intransitive`.

    Notes
    -----
    With ``diversity`` the information that the answers to the duels chosen before are expected to
    share with this one is taken from a score, so that with "bald" the sum is that of BatchBALD
    (Kirsch et al., NeurIPS 2019), the joint information of all n answers. The posterior is taken
    for a Gaussian, and every possible answer into it as by assumed density filtering; of the
    combinations of answers 32 are followed. The variance of "variance" becomes the expected one.
    Of a pool of more than 500 duels the best 250 are compared, and 250 from among the rest.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.active import query
    >>> model = PairwisePreferenceRegressor(optimizer=None).fit([[[1.0], [0.0]], [[2.0], [1.0]]])
    >>> pool = [[[1.0], [0.0]], [[9.0], [4.0]], [[9.0], [4.1]], [[2.0], [0.0]], [[6.0], [2.0]]]
    >>> query(model, pool, n=2).tolist()
    [2, 4]
    >>> query(model, pool, n=2, diversity=False).tolist()
    [2, 1]
    """
    check_number("n", n, low=1, integer=True)
    score, own = _read_score_function(strategy), {"order": order, "random_state": random_state}
    _check_options(score, options)
    table = _item_table(estimator)
    duels = read_pool(pool, table)
    size = len(split_duels(duels)[0])
    who = None if users is None else _read_user_ids(users, size, "duels of the pool")
    pairs, free = _find_free_duels(duels, answered, size, who, answered_users, table)
    waiting = _check_pending(pending, size)
    free[waiting] = False
    if distinct_items:
        free &= ~np.isin(pairs, pairs[waiting]).any(axis=1)
    if n > free.sum():
        raise ValueError(
            f"n={n} duels are wanted, and the pool has {free.sum()} to ask: {size} duels, less "
            "those of an item with itself, answered and pending. Ask for fewer, or enlarge it."
        )
    posterior_of, duels = _posterior_by_row(estimator, duels, who)
    options |= {name: own[name] for name in own if name in signature(score).parameters}
    posterior = posterior_of(np.arange(size))
    scores = np.where(free, _check_scores(score(posterior, duels, **options), size), -np.inf)
    alone = n == 1 and not len(waiting)
    if alone or not diversity or strategy == "random":
        chosen = rank_duels(scores, n, pairs, distinct_items)
    else:
        candidates = Candidates.from_duels(posterior, duels, order)

        def covariance(rows):
            return posterior_of(rows).margin_cov(*split_duels(duels[rows]))

        chosen = choose_diverse(
            scores,
            candidates,
            covariance,
            n,
            pairs,
            distinct_items,
            waiting,
            strategy == "variance",
        )
    if len(chosen) < n:
        why = "without an item in two of them " if distinct_items else ""
        raise ValueError(
            f"n={n} duels are wanted, and only {len(chosen)} can be chosen {why}whose score is a "
            "number. Ask for fewer, or enlarge the pool."
        )
    return (chosen, scores) if return_scores else chosen


def _read_score_function(strategy):
    """Return the function of a strategy that is given by name or as a function, checked."""
    if callable(strategy):
        return strategy
    return STRATEGIES[check_choice("strategy", strategy, STRATEGIES)]


# What to do in place of passing on what answers carry.
_REMEDIES = {
    "prompts": "next_pairs(model, allowed=pairs, prompts=prompts) plans votes on named prompts",
    "judges": "scores are of the reference judge",
    "time": "query(model.posterior_.at_time(time), pool) scores duels at another time",
}


def _check_options(score, options):
    """Raise TypeError for options that the function of a strategy does not take."""
    parameters = signature(score).parameters
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    unknown = [name for name in options if name not in parameters]
    if unknown:
        allowed = [name for name in list(parameters)[2:] if name not in ("order", "random_state")]
        advice = [f"{_REMEDIES[name]}. " for name in unknown if name in _REMEDIES]
        raise TypeError(
            f"got {', '.join(f'{name}=' for name in unknown)} with a strategy whose options are "
            f"{allowed}. {''.join(advice)}Leave out what it does not take."
        )


def _check_scores(scores, size):
    """Return scores as floats (n_duels,), −inf for NaN; ValueError for another shape."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (size,):
        raise ValueError(
            f"A strategy must return one score for each duel of the pool, shape ({size},); got "
            f"shape {scores.shape}."
        )
    return np.where(np.isnan(scores), -np.inf, scores)


def _item_table(estimator):
    """Return the table of items of a model; None if it has none, or steps come before it."""
    model = getattr(estimator, "best_estimator_", estimator)
    *before, last = [step for _, step in getattr(model, "steps", [(None, model)])]
    reader = getattr(getattr(last, "posterior_", last), "reader", None)
    return None if before or reader is None else reader.table


def _posterior_by_row(estimator, duels, users):
    """Return a function from rows of the pool to the posterior of their users, and the duels.

    The duels are transformed as by the steps before the model.
    """
    model = getattr(estimator, "best_estimator_", estimator)
    if users is not None:
        last = model[-1] if hasattr(model, "steps") else model
        if not hasattr(last, "posterior_for"):
            raise TypeError(
                f"users= needs an estimator with posterior_for(users), one that knows several "
                f"users; {type(last).__name__} has none. Leave users out."
            )
        if last is not model and len(model.steps) > 1:
            duels = model[:-1].transform(duels)
        return lambda rows: last.posterior_for(users[rows]), duels
    own = model if isinstance(model, DuelPosterior) else getattr(model, "posterior_", None)
    if isinstance(own, DuelPosterior) and not isinstance(own, Posterior):
        return lambda rows: own, duels
    inspected = Inspected.from_model(estimator)
    if hasattr(model, "steps") or hasattr(model, "to_unit"):  # items are transformed on the way
        duels = np.stack([inspected.rows_of(side) for side in split_duels(duels)], axis=1)
    return lambda rows: inspected.posterior, duels


def _check_pending(pending, size):
    """Return pending rows of the pool as integers, (n,), checked."""
    rows = np.asarray([] if pending is None else pending)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"pending must hold rows of the pool, integers of shape (n,); got {rows.dtype} of "
            f"shape {rows.shape}."
        )
    if rows.size and not (rows.min() >= 0 and rows.max() < size):
        raise ValueError(f"pending must hold rows of the pool, from 0 to {size - 1}; got {rows}.")
    return rows.astype(np.intp)


def _read_user_ids(users, size, noun):
    """Return ids of users as an array of objects, one each; ValueError for another number."""
    sequence = hasattr(users, "__len__") and not isinstance(users, str | bytes)
    if not sequence or len(users) != size:
        raise ValueError(
            f"users must name one user for each of the {size} {noun}, got "
            f"{len(users) if sequence else repr(users)}."
        )
    ids = np.empty(size, dtype=object)
    ids[:] = check_respondents(users, size, "user")
    return ids


def _find_free_duels(duels, answered, size, users, answered_users, table):
    """Return codes (n, 2) of the items of duels, and whether each duel may be asked."""
    mask = np.zeros(size, dtype=bool)
    further = None
    if answered is not None:
        listed = answered if hasattr(answered, "dtype") else np.asarray(answered)
        if listed.dtype == bool:
            if listed.shape != (size,):
                raise ValueError(
                    f"answered as a mask must have shape ({size},), one for each duel of the pool; "
                    f"got {listed.shape}."
                )
            mask = listed
        elif len(listed):
            further = _read_answered_duels(listed, duels, table)
    codes = np.sort(number_items(duels, further), axis=1)
    asked = codes[size:].tolist()
    keys = codes[:size].tolist()
    if answered_users is not None:
        if users is None or answered is None or listed.dtype == bool:
            raise ValueError(
                "answered_users= says who answered duels that are given as answered=, where users= "
                "says who is to be asked. Leave it out, or give both."
            )
        asked = _append_user_to_pairs(
            asked, _read_user_ids(answered_users, len(asked), "duels answered")
        )
        keys = _append_user_to_pairs(keys, users)
    if asked:
        asked_keys = set(map(tuple, asked))
        mask = np.array([tuple(key) in asked_keys for key in keys])
    return codes[:size], ~mask & (codes[:size, 0] != codes[:size, 1])


def _read_answered_duels(answered, duels, table):
    """Return answered duels in the form of the pool, or raise ValueError."""
    named = [each.ndim == 2 and all_strings(np.asarray(each)) for each in (duels, answered)]
    positions = duels.ndim == 2 and np.asarray(duels).dtype.kind in "iu"
    if positions and answered.ndim == 2 and table is not None:
        return read(answered, table=table).places()
    if named[0] != named[1] or duels.shape[1:] != answered.shape[1:]:
        forms = [
            f"{'names' if by_name else 'numbers'} of shape {tuple(each.shape)}"
            for each, by_name in zip((duels, answered), named, strict=True)
        ]
        raise ValueError(
            f"answered must hold duels of the form of the pool, which are {forms[0]}; got "
            f"{forms[1]}. Give both by names, by positions or by features, or answered as a "
            f"mask of the pool, ({len(duels)},) booleans."
        )
    return answered


def _append_user_to_pairs(pairs, users):
    """Return tuples of the two items and the user of each duel."""
    return [(*pair, user) for pair, user in zip(pairs, users, strict=True)]
