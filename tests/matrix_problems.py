"""Cases of the matrix as small problems: items, answers about them, and what is asked."""

from functools import cache
from typing import NamedTuple

import numpy as np
from matrix import SETS
from matrix_oracle import AnswerArguments

NOISE, THRESHOLD, EFFECT = 0.2, 0.35, 0.4
# Between a win and a clear win.
GRADES = (1.0,)
LENGTH, OWN = 0.8, 0.3
# Of each item's walk the variance and the lengthscale, in the unit of times; answers are so far
# apart, and what is asked is so much later than the last of them.
DRIFT, LASTS = 0.5, 2.0
STEP, LATER = 0.25, (0.0, 0.0, 1.0, 4.0, 0.0, 2.0, 0.0)


class Problem(NamedTuple):
    """Rows of items (id, two features and, where utilities drift, a time), answers about them, and
    what is asked.

    ``user`` is of each answer. ``rated`` holds, of ratings, the row, rating, group, weight and
    user of each rated item.
    """

    rows: np.ndarray
    answers: list
    user: np.ndarray
    asked: list
    asked_user: list
    rated: tuple | None = None


def problem_of(case):
    """The problem that the levels other than engine, kernel, learning, fitting and effects make."""
    return made_of(*case[1:-4])


@cache
def made_of(answers, judges, order, weights, users, time, identity, shape):
    """A problem of these levels."""
    problem = _of_no_time(answers, judges, order, weights, users, identity, shape)
    return _through_time(problem, shape) if time == "some" else problem


def _of_no_time(answers, judges, order, weights, users, identity, shape):
    rng = np.random.default_rng([len(answers), len(identity), len(shape)])
    if answers == "ratings":
        return _of_ratings(rng, weights, users, identity, shape)
    k = 3 if answers in SETS else 2
    ids = _ids_shown(rng, k, shape)
    users = (
        np.arange(len(ids)) % 3 if users == "some" and shape != "one" else np.zeros(len(ids), int)
    )
    judge = np.arange(len(ids)) % 3 if shape != "one" else np.zeros(len(ids), int)
    rows, shown = _versions(rng, ids, identity)
    utility = np.linalg.cholesky(covariance(rows, identity) + 1e-9 * np.eye(len(rows)))
    utility = utility @ rng.standard_normal(len(rows))
    weight = _weights(weights, len(ids), least=0.0)
    said = []
    for n, here in enumerate(shown):
        lead = 1
        if order == "some" or judges == "partial":
            lead = (1, 0, -1, 1)[n % 4] if k == 2 else (1, 0, 1)[n % 3]
        u = utility[here] + np.sqrt(NOISE) * rng.standard_normal(k)
        rank = _rank(answers, u, n)
        clear = answers == "graded" and (len(ids) == 1 or (n > 2 and abs(u[0] - u[1]) > GRADES[0]))
        said.append(
            AnswerArguments(
                tuple(here.tolist()), rank, lead, weight[n], int(judge[n]), grade=2 if clear else 1
            )
        )
    if judges == "none":
        said = [one._replace(judge=None) for one in said]
    rows, asked = _asked(rows, order, judges, answers, identity)
    asked_user = [(0, 1, -1, 2, 0, 1, -1)[i] for i in range(len(asked))]
    if shape == "one":
        asked_user = [min(each, 0) for each in asked_user]
        asked = [
            one._replace(judge=None if one.judge is None else min(one.judge, 0)) for one in asked
        ]
    return Problem(rows, said, users, asked, asked_user)


def _ids_shown(rng, k, shape):
    """Ids of the items of each answer."""
    if shape == "one":
        return np.arange(k)[None]
    if shape == "distinct":
        return np.arange(12).reshape(-1, k)
    if shape == "repeated":
        sets = [rng.permutation(4)[:k] for _ in range(3 if k == 2 else 2)]
        sets = [sets[i % len(sets)] for i in range(12 if k == 2 else 6)]
        return np.array([each if i % 2 else each[::-1] for i, each in enumerate(sets)])
    return np.array([rng.permutation(5)[:k] for _ in range(10 if k == 2 else 6)])


def _versions(rng, ids, identity):
    """Rows of items; with ids what an item is like changes."""
    features = rng.uniform(-1.0, 1.0, (ids.max() + 1, 2))
    rows = np.column_stack([np.arange(len(features)), features])
    if identity not in ("id_column", "columns"):
        return rows, ids
    later = rows + np.array([0.0, 0.3, 0.0])
    shown = np.where((np.arange(len(ids)) % 3 == 2)[:, None], ids + len(rows), ids)
    return np.vstack([rows, later]), shown


def _rank(answers, u, n):
    """What is said of items that are seen so; of duels, either side wins somewhere."""
    place = (-u).argsort().argsort()
    tied = answers in ("ties", "graded")
    if tied and (n % 3 == 1 or (n > 2 and abs(u[0] - u[1]) < THRESHOLD)):
        return 1, 1
    if tied or answers == "duels":
        if n < 3:
            return (1, 2) if (n == 2) == tied else (2, 1)
        return tuple((place + 1).tolist())
    if answers == "best":
        return tuple(np.where(place == 0, 1, 2).tolist())
    if answers == "worst":
        return tuple(np.where(place == len(u) - 1, 2, 1).tolist())
    if n % 3 == 2:  # of one item nothing is said
        return (0, *(place[1:].argsort().argsort() + 1).tolist())
    return tuple((place + 1).tolist())


def _weights(weights, n, least):
    if weights == "none" or n == 1:
        one = {"none": 1.0, "whole": 2.0, "fractional": 1.5}
        return np.full(n, one[weights])
    some = (2.0, 1.0, least, 3.0) if weights == "whole" else (0.5, 1.0, 2.5, least)
    return np.resize(some, n)


def _asked(rows, order, judges, answers, identity):
    """Rows with two items more, and questions."""
    n = len(rows)
    new = [[n, 0.2, -0.4], [n + 1, -0.5, 0.9]]
    rows = np.vstack([rows, new])
    leads = (1, -1, 0, 1, -1)
    pairs = ((0, 1), (1, n), (n, n + 1), (n - 1, 0), (1, 0))
    whose = (0, 1, -1, None, 2)
    ordered = order == "some" or judges == "partial"
    asked = [
        AnswerArguments(
            pair, (1, 2), lead if ordered else 1, 1.0, who if judges != "none" else None
        )
        for pair, lead, who in zip(pairs, leads, whose, strict=True)
    ]
    if answers in SETS:
        asked += [
            AnswerArguments((0, 1, n), (1, 2, 2), 1),
            AnswerArguments((n + 1, 1, 0), (1, 2, 2), 0 if ordered else 1),
        ]
    return rows, asked


def _of_ratings(rng, weights, users, identity, shape):
    """Items with ratings, in groups."""
    if shape == "one":
        ids, group, rating = np.arange(2), np.zeros(2, int), np.array([2, 1])
    elif shape == "distinct":
        ids, group, rating = (
            np.arange(10),
            np.repeat(np.arange(5), 2),
            np.tile([3, 1, 2, 4], 3)[:10],
        )
    elif shape == "repeated":
        ids, group = np.tile(np.arange(3), 3), np.repeat(np.arange(3), 3)
        rating = np.array([1, 2, 3, 1, 3, 2, 2, 1, 3])
    else:
        ids, group = np.array([0, 1, 2, 3, 4, 0, 2, 4]), np.array([0] * 5 + [1] * 3)
        rating = np.array([2, 4, 4, 1, 5, 3, 1, 2])
    user = group % 3 if users == "some" and shape != "one" else np.zeros(len(ids), int)
    rows, shown = _versions(rng, ids[:, None], identity)
    shown, weight = shown[:, 0], _weights(weights, len(ids), least=1.0)
    rated = shown, rating, group, weight, user
    said, whose = [], []
    for i, j in _pairs_of_ratings(rated):
        pair = int(shown[i]), int(shown[j])
        said.append(AnswerArguments(pair, (1, 2), 0, weight[i] * weight[j]))
        whose.append(user[i])
    rows, asked = _asked(rows, "none", "none", "ratings", identity)
    asked_user = [0, 1, -1, 2, 0] if shape != "one" else [0, 0, -1, 0, 0]
    return Problem(rows, said, np.array(whose), asked, asked_user, rated)


def _pairs_of_ratings(rated):
    """Which of the rated items were preferred to which."""
    _, rating, group, weight, _ = rated
    for i in range(len(rating)):
        for j in range(len(rating)):
            if group[i] == group[j] and rating[i] > rating[j] and weight[i] * weight[j] > 0.0:
                yield i, j


def _through_time(problem, shape):
    """The same answers and questions at times; an item at a time is a row of its own.

    Answers come in the order of their times, of which some are equal; shared items are rated at
    several times within a group.
    """
    rows, at = [], {}

    def row(item, time):
        if (item, time) not in at:
            at[item, time] = len(rows)
            rows.append((*problem.rows[item], time))
        return at[item, time]

    def shown(one, times):
        times = np.broadcast_to(times, len(one.shown)).tolist()
        return one._replace(shown=tuple(map(row, one.shown, times)))

    rated = problem.rated
    if rated is None:
        n = len(problem.answers)
        times = STEP * (np.arange(n) // 2 * 2)  # two at a time
        answers = [shown(one, time) for one, time in zip(problem.answers, times, strict=True)]
    else:
        items, _, group, _, _ = rated
        within = np.arange(len(items)) % 2 if shape == "shared" else 0
        times = STEP * (4 * group + within)
        pairs = _pairs_of_ratings(rated)
        answers = [
            one._replace(shown=(row(int(items[i]), times[i]), row(int(items[j]), times[j])))
            for one, (i, j) in zip(problem.answers, pairs, strict=True)
        ]
        rated = np.array([row(int(i), t) for i, t in zip(items, times, strict=True)]), *rated[1:]
    last = times.max()
    asked = [
        shown(one, last + later)
        for one, later in zip(problem.asked, LATER[: len(problem.asked)], strict=True)
    ]
    return problem._replace(rows=np.array(rows), answers=answers, asked=asked, rated=rated)


def covariance(rows, identity, linear=False):
    """Prior covariance of the utilities of rows; ``linear`` in the features, or smooth."""
    same = (rows[:, :1] == rows[:, 0]).astype(float)
    walk = 0.0
    if rows.shape[1] > 3:
        walk = DRIFT * same * np.exp(-np.abs(rows[:, 3:] - rows[:, 3]) / LASTS)
    if identity == "names":
        return same + walk
    x = rows[:, 1:3]
    smooth = np.exp(-0.5 * np.sum((x[:, None] - x) ** 2, axis=2) / LENGTH**2)
    K = x @ x.T if linear else smooth
    return K + walk + OWN * same if identity in ("id_column", "columns") else K + walk
