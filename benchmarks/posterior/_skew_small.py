"""Small problems of the skew-GP study: duel probabilities against orthant probabilities."""

import sys
import time
import warnings

import numpy as np
from common import ROOT, load_problem
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, HMC, Gibbs, Laplace

sys.path.insert(0, str(ROOT / "tests"))
from oracles import small_problem
from skew_support import contradicts, truth_of

NOISES = (1e-6, 1e-4, 1e-2, 1.0)
DRAWS, ENOUGH = 66_000, 50_000


def small(noise_variance, seed):
    """One problem of one to six duels, six duels asked about.

    Where answers contradict each other and σ² is 10⁻⁶ Gibbs samples, as HMC would meet thousands of
    walls a draw; everywhere else, and where Gibbs has fewer than 50 000 effective draws, HMC.
    """
    problem = small_problem(int(seed))
    X = np.stack([problem.items[problem.winner], problem.items[problem.loser]], axis=1)
    sampled = HMC(draws=DRAWS, chains=1500)
    if noise_variance < 1e-5 and contradicts(problem):
        gibbs = Gibbs(draws=DRAWS, chains=1500, thin=60, burn_in=300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            diagnostics = _fit(problem, X, gibbs, noise_variance, seed).diagnostics_
        sampled = gibbs if diagnostics.ess_bulk.min() > ENOUGH else sampled
    truth = truth_of(problem, noise_variance)
    row = {"noise_variance": noise_variance, "seed": seed, "duels": len(X)}
    row["sampler"] = type(sampled).__name__.lower()
    for name, engine in (("sampled", sampled), ("ep", EP()), ("laplace", Laplace())):
        start = time.perf_counter()
        model = _fit(problem, X, engine, noise_variance, seed)
        posterior = model.posterior_
        row[f"{name}_seconds"] = time.perf_counter() - start
        won = posterior.win_probability(problem.first, problem.second)
        row[f"{name}_error"] = float(np.abs(won - truth).max())
        if name == "sampled":
            row["smallest_ess"] = float(model.diagnostics_.ess_bulk.min())
    return [row]


def as_it_comes(noise_variance, seed):
    """The same problem by `HMC()`: 1 000 draws."""
    problem = small_problem(int(seed))
    X = np.stack([problem.items[problem.winner], problem.items[problem.loser]], axis=1)
    start = time.process_time()
    model = _fit(problem, X, HMC(), noise_variance, seed)
    seconds = time.process_time() - start
    won = model.posterior_.win_probability(problem.first, problem.second)
    off = won - truth_of(problem, noise_variance)
    return [
        {
            "noise_variance": noise_variance,
            "seed": seed,
            "duels": len(X),
            "draws": model.posterior_.n_components,
            "seconds": seconds,
            "largest_error": float(np.abs(off).max()),
            "mean_square": float(np.mean(off**2)),
            "smallest_ess": float(model.diagnostics_.ess_bulk.min()),
        }
    ]


def seconds(duels, trial):
    """Processor time of `HMC()`: a fit to distinct duels of four features, and predictions."""
    found = load_problem("gp4", 1e-2, duels)
    X = np.stack([found["W"], found["L"]], axis=1)
    ask = np.stack([found["test_a"], found["test_b"]], axis=1)
    model = PairwisePreferenceRegressor(
        RBF(0.5), inference=HMC(), noise_variance=1e-2, optimizer=None, random_state=trial
    )
    start = time.process_time()
    model.fit(X)
    fitted = time.process_time()
    model.predict_proba(ask)
    row = {"duels": duels, "trial": trial, "draws": model.posterior_.n_components}
    row |= {"fit_seconds": fitted - start, "predict_seconds": time.process_time() - fitted}
    return [row | {"predictions": len(ask)}]


def _fit(problem, X, engine, noise_variance, seed):
    model = PairwisePreferenceRegressor(
        clone(problem.kernel),
        inference=engine,
        noise_variance=noise_variance,
        optimizer=None,
        random_state=int(seed),
    )
    return model.fit(X)
