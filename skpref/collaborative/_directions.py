"""Which functions tastes weigh where these are to be fewer than the items allow."""

from dataclasses import replace

import numpy as np

from skpref._linalg import leading_axes, semidefinite_root
from skpref.collaborative._fit import Functions, Task, fit
from skpref.collaborative._people import Features

# Answers that they are learned from, of as few users as give so many.
_ANSWERS = 5000
# Functions that they are made of, at most: of more the covariance is not known from some users, and
# what leads among the items is as good.
_CANDIDATES = 30
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
    n = min(task.space.margin_features.shape[1], _CANDIDATES)
    if task.n_latent >= n or task.prior_users is None or task.total == 0.0:
        return task
    few = replace(_of_some_users(task), n_latent=n)
    found = fit(few, _PASSES, _TOL, n_jobs)
    prior, (candidates, spare) = found.tastes.prior, found.functions
    taste = candidates @ semidefinite_root(prior.own + prior.of_features)
    basis = taste @ leading_axes(taste.T @ task.scatter() @ taste, task.n_latent)
    axes = leading_axes(basis @ basis.T, task.n_latent)
    left = taste - axes @ (axes.T @ taste)
    return replace(task, functions=Functions(axes, np.hstack([left, spare])))


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
