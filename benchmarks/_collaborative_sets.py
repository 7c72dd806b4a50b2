"""Sets of people and items for ``collaborative.py``: who prefers what, made as source 004 tells.

Every set has at most some hundred or thousand users, few items, and a utility of each user for
each item, of which the duels follow; equal utilities make none.
"""

import csv
from typing import NamedTuple

import numpy as np
from common import data_folder
from scipy.linalg import cholesky
from scipy.spatial.distance import cdist

from skpref.datasets import fetch_sushi


class People(NamedTuple):
    """Features of items and of users, and duels: winner first."""

    items: np.ndarray
    users: np.ndarray
    winner: np.ndarray
    loser: np.ndarray
    user: np.ndarray


def _of_utilities(items, users, utility, rng, n_users):
    """All duels of some users, of whom all have a utility for all items."""
    some = np.sort(rng.permutation(len(users))[:n_users])
    users, utility = users[some], utility[some]
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


def movielens(rng, n_users):
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
    return _of_utilities(genres, np.array(users, dtype=float)[seen], chosen, rng, n_users)


def election(rng, n_users):
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
    return _features_by_users(_filled(share[stood]), users[stood], rng, n_users)


def jura(rng, n_users):
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
    return _features_by_users(level, users, rng, n_users)


def _features_by_users(utility, users, rng, n_users):
    """Twenty users tell what the items are like, and are no users then."""
    order = rng.permutation(len(users))
    items = utility[order[:20]].T
    return _of_utilities(items, users[order[20:]], utility[order[20:]], rng, n_users)


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
}
