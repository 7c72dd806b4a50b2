"""Single examples of the skew-GP study: the one-dimensional fit (Fig. 1), evidence (Fig. 5)."""

import time

import numpy as np
from _skew_setting import N_DUELS, NOISE_VARIANCE, branin, covariance_of, engines, fit
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF

from skpref.inference import EP, Laplace
from skpref.samplers import orthant_probability

GRID = np.linspace(0.0, 1.0, 101)
LENGTHSCALES = np.linspace(0.1, 0.5, 9)


def one_dimension(seed=1, draws=10_000):
    """Fig. 1: fifty duels about a draw of the prior, RBF of lengthscale 0.1.

    Returns
    -------
    lines : list of dict
        Mean and 95 % interval on a grid, by engine.
    duels : list of dict
        P(f(winner) <= f(loser)) of the training duel on which truth and EP differ most.
    density : dict
        Axes and joint densities of f at that duel's loser and winner, by engine.
    """
    rng = np.random.default_rng(seed)
    kernel = RBF(0.1)
    pairs = rng.random((N_DUELS, 2, 1))
    items = pairs.reshape(-1, 1)
    root = np.linalg.cholesky(kernel(items) + 1e-9 * np.eye(len(items)))
    value = root @ rng.standard_normal(len(items))
    value = (value + np.sqrt(NOISE_VARIANCE) * rng.standard_normal(len(value))).reshape(-1, 2)
    X = np.where((value[:, 0] > value[:, 1])[:, None, None], pairs, pairs[:, ::-1])
    posteriors = {k: fit(kernel, X, e).posterior_ for k, e in engines(draws).items()}
    lines = []
    for engine, posterior in posteriors.items():
        interval = posterior.credible_interval(GRID[:, None])
        for x, mean, (low, high) in zip(GRID, posterior.mean(GRID[:, None]), interval, strict=True):
            lines.append({"engine": engine, "x": x, "mean": mean, "low": low, "high": high})
    lost = {
        k: posterior.win_probability(X[:, 1], X[:, 0], noise=False)
        for k, posterior in posteriors.items()
    }
    worst = int(np.argmax(lost["ep"] - lost["truth"]))
    winner, loser = X[worst, 0, 0], X[worst, 1, 0]
    duels = [
        {"engine": k, "winner": winner, "loser": loser, "lost": p[worst], "largest": p.max()}
        for k, p in lost.items()
    ]
    return lines, duels, _joint(posteriors, np.array([[loser], [winner]]))


def _joint(posteriors, pair, n=90):
    """Joint densities of f at two items on one grid."""
    exact = posteriors["truth"]
    centre, spread = exact.mean(pair), np.sqrt(exact.var(pair))
    axes = [c + s * np.linspace(-3.5, 3.5, n) for c, s in zip(centre, spread, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    found = {"axes": axes}
    for engine, posterior in posteriors.items():
        means = posterior.component_means(pair)
        half = posterior.kernel(pair, posterior.anchors) @ posterior.factor
        shared = posterior.kernel(pair) - half @ half.T
        # Components narrower than the grid are smoothed to its step.
        shared = shared + np.diag([(a[1] - a[0]) ** 2 for a in axes])
        root = np.linalg.cholesky(shared)
        at, centres = (solve_triangular(root, x, lower=True).T for x in (points.T, means))
        density = np.zeros(len(points))
        for begin in range(0, len(centres), 1000):
            apart = cdist(at, centres[begin : begin + 1000], "sqeuclidean")
            density += np.exp(-0.5 * apart).sum(axis=1)
        density /= len(centres) * 2.0 * np.pi * np.prod(np.diagonal(root))
        found[engine] = density.reshape(n, n)
    return found


def branin_duels(n_duels=N_DUELS, seed=0):
    """Noise-free duels on Branin, winner first."""
    pairs = np.random.default_rng(seed).random((n_duels, 2, 2))
    value = branin(pairs.reshape(-1, 2)).reshape(n_duels, 2)
    return np.where((value[:, 0] > value[:, 1])[:, None, None], pairs, pairs[:, ::-1])


def evidence(first, second, scipy_points=50_000):
    """Fig. 5: log Pr(v > 0) of Branin's duels at one pair of lengthscales, and seconds."""
    X = branin_duels()
    kernel = RBF([first, second], "fixed")
    row = {"first": first, "second": second}
    for name, engine in (("laplace", Laplace()), ("ep", EP())):
        begin = time.perf_counter()
        row[name] = fit(kernel, X, engine).log_marginal_likelihood_value_
        row[f"{name}_seconds"] = time.perf_counter() - begin
    covariance = covariance_of(kernel, X)
    begin = time.perf_counter()
    exact = orthant_probability(covariance, 20_000, np.random.default_rng(0))
    row |= {"exact": exact.log_probability, "exact_error": exact.relative_error}
    row["exact_seconds"] = time.perf_counter() - begin
    begin = time.perf_counter()
    row["scipy"] = float(
        multivariate_normal.logcdf(
            np.zeros(len(X)), cov=covariance, maxpts=scipy_points, abseps=1e-8, releps=1e-8,
            rng=np.random.default_rng(0),
        )
    )  # fmt: skip
    row["scipy_seconds"] = time.perf_counter() - begin
    return row
