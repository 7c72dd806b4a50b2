"""Sets of ``covariates.py``: contests between known items, with what may explain their answers.

Every set is drawn to a few hundred contests. Some covariates belong to the item (of what a sweet is
made), some change from contest to contest (who plays at home, how long since the last match).
"""

import csv
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from _convincing_features import features as text_features
from common import data_folder

from skpref.datasets import (
    fetch_cars,
    fetch_chu_ghahramani,
    fetch_sushi,
    load_candy,
    load_convincing_arguments,
    load_football,
    load_llm_duels,
)
from skpref.duels import balance_orientation


class Contests(NamedTuple):
    """Who met whom, ``ids`` (n, 2); what each side was like, ``values`` (n, 2, p); and who won.

    ``group``: contests of which none is split between training and test, if there are any.
    ``ties``: whether labels are -1, 0 and 1.
    """

    ids: np.ndarray
    values: np.ndarray
    y: np.ndarray
    group: np.ndarray | None = None
    ties: bool = False

    def take(self, rows):
        """Some of the contests."""
        group = None if self.group is None else self.group[rows]
        return self._replace(
            ids=self.ids[rows], values=self.values[rows], y=self.y[rows], group=group
        )


def _of_items(table, pairs, y, group=None):
    return Contests(pairs, np.asarray(table, dtype=np.float64)[pairs], y, group)


@cache
def candy(seed):
    """85 sweets: of what they are made, sugar and price."""
    data = load_candy()
    return _of_items(data.item_table, data.pairs, data.y)


@cache
def cars(experiment, seed):
    """Ten or twenty cars; the answers of a person are not split."""
    data = fetch_cars(experiment=experiment, data_home=data_folder())
    return _of_items(data.item_table, data.X, data.y, data.user)


@cache
def sushi(seed):
    """100 kinds of sushi; the answers of a person are not split."""
    data = fetch_sushi(data_home=data_folder(), download_if_missing=False)
    return _of_items(data.item_table, data.X, data.y, data.user)


def _noisy(table, rating, n_items, seed):
    """Pairs of some of the items: the higher rating, with noise on each, wins."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(rating))[:n_items]
    pairs = np.column_stack(np.triu_indices(n_items, k=1))
    noise = 0.3 * np.std(rating[chosen]) * rng.standard_normal(pairs.shape)
    first = np.argmax(rating[chosen][pairs] + noise, axis=1) == 0
    pairs, y = balance_orientation(np.where(first[:, None], pairs, pairs[:, ::-1]))
    return _of_items(np.asarray(table)[chosen], np.asarray(pairs), y)


def rated(name, seed, n_items=40):
    """Forty of the items."""
    data = _regression(name)
    return _noisy(data.item_table, data.target, n_items, seed)


@cache
def _regression(name):
    return fetch_chu_ghahramani(name, data_home=data_folder(), download_if_missing=False)


def election(seed, n_items=60):
    """Sixty constituencies, longitude, latitude and electorate: where did Labour do better?"""
    return _noisy(*_constituencies(), n_items, seed)


@cache
def _constituencies():
    folder = data_folder() / "uk_election_2010"
    with (folder / "derived_centroids.csv").open(encoding="utf-8") as handle:
        where = {int(row["pa_ref"]): (row["lon"], row["lat"]) for row in csv.DictReader(handle)}
    with (folder / "ge2010.csv").open(encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if float(row["lab"] or 0) > 0]
    table = [
        [*where[int(float(row["Press Association Reference"]))], row["Electorate"]] for row in rows
    ]
    return np.array(table, dtype=np.float64), np.array([float(row["lab_pc"]) for row in rows])


@cache
def football(kind, seed, n_teams=40):
    """The forty teams with most matches in ten years; of each side what was known that day.

    "home": at home or not. "day": also days since the last match (logarithm), the difference of
    goals in the last five matches, and the share of friendlies among them. "ties": the same with
    draws.
    """
    data = load_football()
    n, recent, last = len(data.y), {}, {}
    form, rest, friendly = np.zeros((3, n, 2))
    is_friendly = np.array(data.tournament_names)[data.tournament] == "Friendly"
    for k in range(n):
        goals = data.goals[k, 0] - data.goals[k, 1]
        for side, team in enumerate(data.X[k].tolist()):
            past = recent.setdefault(team, [])
            form[k, side] = np.mean([g for g, _ in past]) if past else 0.0
            friendly[k, side] = np.mean([f for _, f in past]) if past else 0.5
            days = (data.date[k] - last.get(team, data.date[k] - 365)) / np.timedelta64(1, "D")
            rest[k, side] = np.log(min(max(days, 1.0), 365.0))
        for side, team in enumerate(data.X[k].tolist()):
            recent[team] = [*recent[team], (goals * (1 - 2 * side), is_friendly[k])][-5:]
            last[team] = data.date[k]
    home = np.stack([data.order == 1, np.zeros(n)], axis=1).astype(np.float64)
    columns = [home] if kind == "home" else [home, rest, form, friendly]
    values = np.stack(columns, axis=2)
    often = np.argsort(-np.bincount(data.X.ravel()), kind="stable")[:n_teams]
    known = np.isin(data.X, often).all(axis=1) & (data.date >= np.datetime64("2018-07-20"))
    ids = np.argsort(np.argsort(often))
    place = np.full(len(data.team_names), -1)
    place[np.sort(often)] = np.sort(ids)
    kept = np.flatnonzero(known if kind == "ties" else known & (data.y != 0))
    y = data.y[kept] if kind == "ties" else (data.y[kept] > 0).astype(np.int64)
    return Contests(place[data.X[kept]], values[kept], y, None, kind == "ties")


@cache
def language_models(judge, seed):
    """Verdicts on 59 language models: which answer stood left, and nothing else."""
    data = load_llm_duels(judge=judge)
    left = np.zeros((len(data.y), 2, 1))
    left[:, 0] = 1.0
    return Contests(data.X, left, data.y)


def arguments(seed):
    """Texts of one topic, in 32 numbers; another topic for every split."""
    data, table = _texts(seed)
    topic = int(np.argsort(-np.bincount(data.topic), kind="stable")[seed])
    rows = np.flatnonzero(data.topic == topic)
    texts, pairs = np.unique(data.pairs[rows], return_inverse=True)
    return _of_items(table[texts], pairs.reshape(-1, 2), data.y[rows])


@cache
def _texts(seed):
    data = load_convincing_arguments()
    topic = int(np.argsort(-np.bincount(data.topic), kind="stable")[seed])
    return data, text_features(data.texts, data.text_topic != topic, 20)


def noise(make, n_columns, of_items=False):
    """The same contests with covariates that say nothing: of every contest, or of every item."""

    def made(seed):
        data = make(seed)
        rng = np.random.default_rng([seed, 1])
        if of_items:
            values = rng.standard_normal((data.ids.max() + 1, n_columns))[data.ids]
        else:
            values = rng.standard_normal((*data.ids.shape, n_columns))
        return data._replace(values=values)

    return made


def made_up(curve, seed, n_items=20, n=1200):
    """Strengths of items (deviation 0.7), and one covariate of each side that counts by a curve."""
    rng = np.random.default_rng([seed, 2])
    strength = 0.7 * rng.standard_normal(n_items)
    first = rng.integers(n_items, size=n)
    ids = np.stack([first, (first + rng.integers(1, n_items, n)) % n_items], axis=1)
    values = rng.standard_normal((n, 2, 3))
    utility = strength[ids] + curve(values[:, :, 0]) + 0.5 * rng.standard_normal((n, 2))
    return Contests(ids, values, (utility[:, 0] > utility[:, 1]).astype(np.int64))


_gpt4 = partial(language_models, "gpt-4")
_matches = partial(football, "home")
# Name -> (what makes the contests, how many of them to learn from, kind of the covariates).
SETS = {
    "candy": (candy, 200, "item"),
    "cars 1": (partial(cars, 1), 200, "item"),
    "cars 2": (partial(cars, 2), 200, "item"),
    "sushi b": (sushi, 300, "item"),
    "machine.cpu": (partial(rated, "machine.cpu"), 200, "item"),
    "pyrim": (partial(rated, "pyrim"), 200, "item"),
    "triazines": (partial(rated, "triazines"), 200, "item"),
    "housing": (partial(rated, "housing"), 200, "item"),
    "election": (election, 200, "item"),
    "arguments": (arguments, 200, "item"),
    "football, home": (_matches, 300, "contest"),
    "football, day": (partial(football, "day"), 300, "contest"),
    "football, day, 100": (partial(football, "day"), 100, "contest"),
    "football, ties": (partial(football, "ties"), 300, "contest"),
    "llm crowd, left": (partial(language_models, "crowd"), 300, "contest"),
    "llm gpt-4, left": (_gpt4, 300, "contest"),
    "linear made up": (partial(made_up, lambda x: 0.5 * x), 200, "contest"),
    "curve made up": (partial(made_up, lambda x: 1.0 - 0.7 * x**2), 200, "contest"),
    "nothing made up": (partial(made_up, lambda x: 0.0 * x), 200, "noise"),
    "candy, 1 noise": (noise(candy, 1), 200, "noise"),
    "candy, 5 noise": (noise(candy, 5), 200, "noise"),
    "candy, 5 noise of items": (noise(candy, 5, True), 200, "noise"),
    "llm gpt-4, 1 noise": (noise(_gpt4, 1), 300, "noise"),
    "llm gpt-4, 5 noise": (noise(_gpt4, 5), 300, "noise"),
    "llm gpt-4, 5 noise of items": (noise(_gpt4, 5, True), 300, "noise"),
    "football, 1 noise": (noise(_matches, 1), 300, "noise"),
    "football, 5 noise": (noise(_matches, 5), 300, "noise"),
    "cars 1, 3 noise": (noise(partial(cars, 1), 3), 200, "noise"),
}


def split(data, n_train, n_test, seed):
    """Contests to learn from and to be judged by."""
    rng = np.random.default_rng(seed)
    if data.group is None:
        order = rng.permutation(len(data.y))
        train, test = order[:n_train], order[n_train : n_train + n_test]
    else:
        groups = rng.permutation(np.unique(data.group))
        known = np.isin(data.group, groups[: 2 * len(groups) // 3])
        train, test = (rng.permutation(np.flatnonzero(part)) for part in (known, ~known))
        train, test = train[:n_train], test[:n_test]
    return data.take(train), data.take(test)
