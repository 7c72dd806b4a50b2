"""Which functions tastes weigh where these are to be fewer than the items allow."""

from dataclasses import replace

import numpy as np

from skpref._linalg import leading_axes, semidefinite_root
from skpref.collaborative._fit import Task, fit
from skpref.collaborative._people import Features

# Answers that they are learned from, of as few users as give so many.
_ANSWERS = 5000
# Functions that are looked at, at most, unless so many are to be found.
_CANDIDATES = 100
# Passes, and the residual that ends them.
_PASSES, _TOL = 30, 1e-2


def learned(task: Task, n_jobs: int | None = None) -> Task:
    """The task with the functions along which the margins of different users differ most.

    The covariance of tastes is learned with all functions from some users' answers; what is kept
    are the principal components of the margins that were asked about under it.

    Parameters
    ----------
    task : Task
    n_jobs : int or None
    """
    features = task.space.margin_features
    m = features.shape[1]
    if task.n_latent >= m or task.prior_users is None or task.own + task.shared == 0.0:
        return task
    few = _of_some_users(task)
    found = fit(replace(few, n_latent=max(_CANDIDATES, task.n_latent)), _PASSES, _TOL, n_jobs)
    covariance = found.tastes.prior.own + found.tastes.prior.of_features
    taste = found.axes @ semidefinite_root(covariance)
    often = task.by_user.pool(np.ones(len(task.by_user.user)))
    seen = features @ taste
    basis = taste @ leading_axes(seen.T @ (often[:, None] * seen), task.n_latent)
    return replace(task, axes=leading_axes(basis @ basis.T, task.n_latent))


def _of_some_users(task):
    """The task of so many users, drawn at random but always the same."""
    by_user = task.by_user
    order = np.random.default_rng(0).permutation(by_user.n_users)
    counts = np.bincount(by_user.user, minlength=by_user.n_users)[order]
    n = int(np.searchsorted(np.cumsum(counts), _ANSWERS)) + 1
    users = np.sort(order[:n])
    features = task.features
    if features is not None:
        features = Features(features.psi[users], features.rest[users])
    return replace(task, by_user=by_user.of_users(users), features=features)
