"""Tasks of ``real_data.py``: splits of real duels, every set of features made for all alike."""

from functools import partial
from typing import NamedTuple

import numpy as np
from common import data_folder
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import KFold

from skpref.datasets import (
    fetch_cars,
    fetch_chu_ghahramani,
    fetch_sushi,
    load_candy,
    load_convincing_arguments,
)
from skpref.duels import balance_orientation

RATED = ("machine.cpu", "pyrim", "triazines", "housing")


class Split(NamedTuple):
    """Duels as rows of a table of items: ``train``, ``test`` (n, 2) and the outcomes."""

    table: np.ndarray
    train: np.ndarray
    y_train: np.ndarray
    test: np.ndarray
    y_test: np.ndarray


class Task(NamedTuple):
    """A way to split a data set. ``same_items``: no test item is new to the training set."""

    name: str
    about: str
    same_items: bool
    make: object  # n_splits -> iterable of Split


def _subset(rng, rows, n):
    """At most n of the rows, drawn without replacement."""
    return rows if len(rows) <= n else np.sort(rng.choice(rows, n, replace=False))


def _by_duel(table, pairs, y, train, test):
    return Split(table, pairs[train], y[train], pairs[test], y[test])


def convincing_arguments(n_splits, n_train=1000, n_components=20, seed=0):
    """Leave one topic out, the topics with most duels first.

    Features: TF-IDF of the texts of the other topics, reduced by a truncated SVD, and the
    logarithm of the length. Training duels are drawn from all other topics.
    """
    data = load_convincing_arguments()
    rng = np.random.default_rng(seed)
    length = np.log1p([len(text) for text in data.texts])[:, None]
    topics = np.argsort(-np.bincount(data.topic), kind="stable")[:n_splits]
    for topic in topics:
        known = data.text_topic != topic
        words = TfidfVectorizer(sublinear_tf=True, min_df=2)
        counts = words.fit(data.texts[known]).transform(data.texts)
        svd = TruncatedSVD(n_components, random_state=0).fit(counts[known])
        table = np.hstack([svd.transform(counts), length])
        train = _subset(rng, np.flatnonzero(data.topic != topic), n_train)
        yield _by_duel(table, data.pairs, data.y, train, np.flatnonzero(data.topic == topic))


def candy(n_splits, n_train=300, seed=0):
    """Folds over sweets: test duels have at least one sweet that no training duel has."""
    data = load_candy()
    rng = np.random.default_rng(seed)
    folds = KFold(5, shuffle=True, random_state=seed).split(data.item_table)
    for _, (_, held_out) in zip(range(n_splits), folds, strict=False):
        new = np.isin(data.pairs, held_out).any(axis=1)
        train = _subset(rng, np.flatnonzero(~new), n_train)
        yield _by_duel(data.item_table, data.pairs, data.y, train, np.flatnonzero(new))


def _by_user(data, n_splits, n_train, seed):
    """Some duels of one person for training, the rest of that person's for the test."""
    rng = np.random.default_rng(seed)
    for user in rng.choice(np.unique(data.user), n_splits, replace=False):
        mine = np.flatnonzero(data.user == user)
        train = _subset(rng, mine, n_train)
        yield _by_duel(data.item_table, data.X, data.y, train, np.setdiff1d(mine, train))


def _pooled(data, n_splits, n_train, n_test, seed):
    """Two thirds of the people give training duels, the others test duels."""
    rng = np.random.default_rng(seed)
    people = np.unique(data.user)
    for _ in range(n_splits):
        chosen = rng.choice(people, 2 * len(people) // 3, replace=False)
        known = np.isin(data.user, chosen)
        train = _subset(rng, np.flatnonzero(known), n_train)
        test = _subset(rng, np.flatnonzero(~known), n_test)
        yield _by_duel(data.item_table, data.X, data.y, train, test)


def sushi_users(n_splits, n_train=20, seed=0):
    """Set B, one person a split: 20 of the 45 pairs of ten sushi; the other 25 are the test."""
    data = fetch_sushi(data_home=data_folder(), download_if_missing=False)
    return _by_user(data, n_splits, n_train, seed)


def sushi_pooled(n_splits, n_train=1000, n_test=2000, seed=0):
    """Set B, all people as one: duels of other people are the test."""
    data = fetch_sushi(data_home=data_folder(), download_if_missing=False)
    return _pooled(data, n_splits, n_train, n_test, seed)


def cars_users(n_splits, experiment=1, n_train=20, seed=0):
    """One person a split: 20 pairs of cars; the person's others are the test."""
    data = fetch_cars(experiment=experiment, data_home=data_folder())
    return _by_user(data, n_splits, n_train, seed)


def cars_pooled(n_splits, experiment=1, n_train=500, n_test=1000, seed=0):
    """All people as one: duels of other people are the test."""
    data = fetch_cars(experiment=experiment, data_home=data_folder())
    return _pooled(data, n_splits, n_train, n_test, seed)


def rated(n_splits, name, n_train=500, n_test=1000, seed=0):
    """Pairs of two thirds of the items, the higher rating wins; pairs of the others are the test.

    Pairs with equal ratings are left out.
    """
    data = fetch_chu_ghahramani(name, data_home=data_folder(), download_if_missing=False)
    rng = np.random.default_rng(seed)
    n_items = len(data.target)
    for _ in range(n_splits):
        order = rng.permutation(n_items)
        parts = []
        for items, n in ((order[n_items // 3 :], n_train), (order[: n_items // 3], n_test)):
            low, high = np.triu_indices(len(items), k=1)
            pairs = np.column_stack([items[low], items[high]])
            pairs = pairs[data.target[pairs[:, 0]] != data.target[pairs[:, 1]]]
            pairs = pairs[_subset(rng, np.arange(len(pairs)), n)]
            lost = data.target[pairs[:, 0]] < data.target[pairs[:, 1]]
            parts += balance_orientation(np.where(lost[:, None], pairs[:, ::-1], pairs))
        yield Split(data.item_table, *parts)


def tasks():
    """All tasks: bundled ones first, then those whose files have to be in `data_folder`."""
    found = [
        Task("arguments", "leave one topic out", False, convincing_arguments),
        Task("candy", "5 folds over items", False, candy),
        Task("sushi b, by person", "20 of 45 pairs", True, sushi_users),
        Task("sushi b, pooled", "other people", True, sushi_pooled),
    ]
    for k in (1, 2):
        by_person, pooled = (partial(make, experiment=k) for make in (cars_users, cars_pooled))
        found.append(Task(f"cars {k}, by person", "20 of the pairs", True, by_person))
        found.append(Task(f"cars {k}, pooled", "other people", True, pooled))
    found += [Task(name, "new items", False, partial(rated, name=name)) for name in RATED]
    return found
