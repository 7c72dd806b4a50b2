"""Sets of people and items for ``collaborative.py``: who prefers what, made as the paper tells.

Every set has at most some hundred or thousand users, few items, and a utility of each user for
each item, of which the duels follow; equal utilities make none.

The code that its authors published (github.com/neilhoulsby/pref_learning) draws three of the sets
otherwise: it takes the ranks r of a user's utilities and lets j win over k where ``which(r == j) <
which(r == k)``, so that its duels are between places, and the one wins whose holder has the smaller
number; equal utilities are told apart by noise. ``by_places`` does the same. Two of their draws are
in that repository's history and are read if they were put into the folder ``pref_learning`` of the
data: ``synthetic/{dataset,itemFeatures,userFeatures}.txt`` of commit 38b42e8, and of ebc59d3
``sushi/{train1,pool1,test1,itemFeatures,userFeatures}.txt``.
"""

import csv
from functools import partial
from typing import NamedTuple

import numpy as np
from common import data_folder
from scipy.linalg import cholesky
from scipy.spatial.distance import cdist

from skpref.datasets import fetch_cars, fetch_sushi


class People(NamedTuple):
    """Features of items and of users, and duels: winner first."""

    items: np.ndarray
    users: np.ndarray
    winner: np.ndarray
    loser: np.ndarray
    user: np.ndarray


def _of_utilities(items, users, utility, rng, n_users, by_places):
    """All duels of some users, of whom all have a utility for all items."""
    some = np.sort(rng.permutation(len(users))[:n_users])
    users, utility = users[some], utility[some]
    if by_places:
        noisy = utility + 1e-5 * utility.std() * rng.standard_normal(utility.shape)
        utility = -np.argsort(noisy, axis=1)
    one, other = np.triu_indices(len(items), k=1)
    gap = utility[:, one] - utility[:, other]
    user, pair = np.nonzero(gap)
    ahead = gap[user, pair] > 0.0
    winner, loser = np.where(ahead, one[pair], other[pair]), np.where(ahead, other[pair], one[pair])
    return People(items, users, winner, loser, user)


def synthetic(rng, n_users):
    """Ten items, five functions, all from Gaussian processes; noise of variance 1 on margins."""
    items = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (10, 2))
    users = rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (n_users, 2))
    roots = [
        cholesky(np.exp(-0.5 * cdist(X, X, "sqeuclidean")) + 1e-8 * np.eye(len(X)), lower=True)
        for X in (items, users)
    ]
    functions = roots[0] @ rng.standard_normal((10, 5))
    weights = roots[1] @ rng.standard_normal((n_users, 5))
    utility = weights @ functions.T
    one, other = np.triu_indices(10, k=1)
    noisy = utility[:, one] - utility[:, other] + rng.standard_normal((n_users, 45))
    user, pair = np.indices(noisy.shape).reshape(2, -1)
    ahead = noisy.ravel() > 0.0
    winner, loser = np.where(ahead, one[pair], other[pair]), np.where(ahead, other[pair], one[pair])
    return People(items, users, winner, loser, user)


def sushi(rng, n_users):
    """Set A: rankings of the same ten kinds."""
    some = np.sort(rng.permutation(5000)[:n_users])
    data = fetch_sushi(subset="a", users=some, data_home=data_folder(), download_if_missing=False)
    features = [k for k, name in enumerate(data.user_feature_names) if name != "seconds"]
    table, place = np.unique(data.X, return_inverse=True)
    place = place.reshape(data.X.shape)
    first = data.y == 1
    winner, loser = np.where(first, place[:, 0], place[:, 1]), np.where(first, *place.T[::-1])
    return People(data.item_table[table], data.users[:, features], winner, loser, data.user)


def movielens(rng, n_users, by_places=False):
    """Ten of the fifty films rated most, those who rated seven of them; the gaps by neighbours."""
    folder = data_folder() / "movielens-100k"
    ratings = np.loadtxt(folder / "u.data", dtype=np.int64)[:, :3]
    table = np.full((943, 1682), np.nan)
    table[ratings[:, 0] - 1, ratings[:, 1] - 1] = ratings[:, 2]
    most = np.argsort(-np.sum(~np.isnan(table), axis=0), kind="stable")[:50]
    films = np.sort(rng.choice(most, 10, replace=False))
    seen = np.sum(~np.isnan(table[:, films]), axis=1) >= 7
    lines = (folder / "u.item").read_text(encoding="latin-1").splitlines()
    genres = np.array([line.split("|")[5:] for line in lines], dtype=np.float64)[films]
    people = [line.split("|") for line in (folder / "u.user").read_text().splitlines()]
    kinds = sorted({row[3] for row in people})
    users = [[float(row[1]), row[2] == "F", *(row[3] == kind for kind in kinds)] for row in people]
    chosen = _filled(table[np.ix_(seen, films)])
    known = np.array(users, dtype=float)[seen]
    return _of_utilities(genres, known, chosen, rng, n_users, by_places)


def election(rng, n_users, by_places=False):
    """Constituencies prefer parties with more votes; at least six of eight stood."""
    folder = data_folder() / "uk_election_2010"
    with (folder / "ge2010.csv").open() as handle:
        rows = {
            int(float(row["Press Association Reference"])): row for row in csv.DictReader(handle)
        }
    with (folder / "derived_centroids.csv").open() as handle:
        places = {int(row["pa_ref"]): (row["lon"], row["lat"]) for row in csv.DictReader(handle)}
    parties = ("con", "lab", "ld", "ukip", "grn", "snp", "pc", "other")
    known = sorted(rows.keys() & places.keys())
    share = np.array(
        [[float(rows[k][name]) / float(rows[k]["Votes"]) for name in parties] for k in known]
    )
    share[share == 0.0] = np.nan
    users = np.array([places[k] for k in known], dtype=np.float64)
    stood = np.sum(~np.isnan(share), axis=1) >= 6
    return _features_by_users(_filled(share[stood]), users[stood], rng, n_users, by_places)


def jura(rng, n_users, by_places=False):
    """Locations prefer metals of which they have more, each in units of its spread."""
    folder = data_folder() / "jura"
    rows = []
    for name in ("prediction.dat", "validation.dat"):
        with (folder / name).open() as handle:
            rows += list(csv.DictReader(handle))
    metals = ("Cd", "Co", "Cr", "Cu", "Ni", "Pb", "Zn")
    level = np.array([[float(row[name]) for name in metals] for row in rows])
    level = (level - level.mean(axis=0)) / level.std(axis=0)
    users = np.array(
        [
            [float(row["Xloc"]), float(row["Yloc"])]
            + [float(row["Landuse"] == str(k)) for k in range(1, 5)]
            + [float(row["Rock"] == str(k)) for k in range(1, 6)]
            for row in rows
        ]
    )
    return _features_by_users(level, users, rng, n_users, by_places)


def _theirs(name):
    return data_folder() / "pref_learning" / name


def synthetic_theirs(rng, n_users):
    """The authors' draw: features of both items, user and answer a row."""
    folder = _theirs("synthetic")
    items, users = (np.loadtxt(folder / f"{kind}Features.txt") for kind in ("item", "user"))
    rows = np.loadtxt(folder / "dataset.txt")
    one, other = (cdist(rows[:, k : k + 2], items).argmin(axis=1) for k in (0, 2))
    return _answered(items, users, one, other, rows[:, 4], rows[:, 5])


def sushi_theirs(rng, n_users):
    """Their 100 users: numbers of both items and of the user, and answer a row."""
    folder = _theirs("sushi")
    items, users = (np.loadtxt(folder / f"{kind}Features.txt") for kind in ("item", "user"))
    parts = [np.loadtxt(folder / f"{part}1.txt") for part in ("train", "pool", "test")]
    one, other, user, answer = np.concatenate(parts).astype(np.intp).T
    return _answered(items, users, one - 1, other - 1, user, answer)


def _answered(items, users, one, other, user, answer):
    winner, loser = np.where(answer > 0, one, other), np.where(answer > 0, other, one)
    return People(items, users, winner, loser, user.astype(np.intp) - 1)


def _features_by_users(utility, users, rng, n_users, by_places):
    """Twenty users tell what the items are like, and are no users then."""
    order = rng.permutation(len(users))
    items = utility[order[:20]].T
    users, utility = users[order[20:]], utility[order[20:]]
    return _of_utilities(items, users, utility, rng, n_users, by_places)


def cars(rng, n_users, experiment):
    """Choices between cars, all that were asked; education, age, gender and region are codes."""
    data = fetch_cars(experiment=experiment, data_home=data_folder())
    first = data.y == 1
    winner, loser = np.where(first, *data.X.T), np.where(first, *data.X.T[::-1])
    kinds = [data.users[:, [k]] == np.unique(data.users[:, k]) for k in (0, 2, 3)]
    users = np.hstack([data.users[:, [1]], *kinds]).astype(np.float64)
    some = np.sort(rng.permutation(len(users))[:n_users])
    mine = np.isin(data.user, some)
    user = np.searchsorted(some, data.user[mine])
    return People(data.item_table, users[some], winner[mine], loser[mine], user)


def _filled(table):
    """Gaps by the mean of the five rows that are most alike where both are known."""
    known = ~np.isnan(table)
    filled = table.copy()
    for row in np.flatnonzero(~known.all(axis=1)):
        both = known & known[row]
        apart = np.where(both, (np.nan_to_num(table) - np.nan_to_num(table[row])) ** 2, 0.0)
        far = apart.sum(axis=1) / np.maximum(both.sum(axis=1), 1)
        far[row] = np.inf
        for column in np.flatnonzero(~known[row]):
            near = np.argsort(np.where(known[:, column], far, np.inf), kind="stable")[:5]
            filled[row, column] = table[near, column].mean()
    return filled


SETS = {
    "Synthetic": synthetic,
    "Sushi": sushi,
    "MovieLens": movielens,
    "Election": election,
    "Jura": jura,
    "MovieLens, places": partial(movielens, by_places=True),
    "Election, places": partial(election, by_places=True),
    "Jura, places": partial(jura, by_places=True),
    "10 cars": partial(cars, experiment=1),
    "20 cars": partial(cars, experiment=2),
}
if _theirs("synthetic").exists():
    SETS |= {"Synthetic, theirs": synthetic_theirs}
if _theirs("sushi").exists():
    SETS |= {"Sushi, theirs": sushi_theirs}
# Share of a user's duels to learn from: the paper's 20 of 45, 20 of 28, 15 of 21, 30 of 45.
SHARES = {
    "Synthetic": 30 / 45,
    "Sushi": 20 / 45,
    "MovieLens": 20 / 45,
    "Election": 20 / 28,
    "Jura": 15 / 21,
    "MovieLens, places": 20 / 45,
    "Election, places": 20 / 28,
    "Jura, places": 15 / 21,
    "10 cars": 0.7,
    "20 cars": 0.7,
    "Synthetic, theirs": 30 / 45,
    "Sushi, theirs": 20 / 45,
}
