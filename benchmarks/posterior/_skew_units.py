"""Units of work of the skew-GP study: each returns the rows of its table."""

import time
from dataclasses import replace

import numpy as np
from _skew_setting import (
    KNOWN,
    NOISE_VARIANCE,
    covariance_of,
    engines,
    fit,
    kernel_of,
    known_kernel,
    trial_of,
    typical_margins,
)
from scipy.stats import spearmanr

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, HMC, Laplace
from skpref.samplers import effective_draws, gibbs, hmc, liness

SAMPLERS = {"liness": liness, "gibbs": gibbs, "hmc": hmc}
EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0)
# Cell j of a reliability curve holds the confidences (of the likelier side) from EDGES[j] on.
RMSE_DRAWS = (10, 30, 100, 300, 1000)


def mixture_modes(means, deviation, n_grid=81):
    """Mode of each row's normal mixture, by a grid about its density and one parabola."""
    centre, spread = means.mean(axis=1), np.sqrt(means.var(axis=1) + deviation**2)
    grid = np.linspace(-2.5, 2.5, n_grid)
    modes = np.empty(len(means))
    for i, row in enumerate(means):
        at = centre[i] + spread[i] * grid
        # Component means in bins a tenth of the common deviation wide: the same mixture, quickly.
        width = 0.1 * max(deviation[i], 0.02 * spread[i])
        bins, count = np.unique(np.round(row / width), return_counts=True)
        u = (at[:, None] - bins * width) / max(deviation[i], 0.02 * spread[i])
        density = np.exp(-0.5 * u**2) @ count
        j = int(np.clip(density.argmax(), 1, n_grid - 2))
        low, mid, high = density[j - 1 : j + 2]
        bend = low - 2.0 * mid + high
        shift = 0.5 * (low - high) / bend if bend < 0.0 else 0.0
        modes[i] = at[j] + np.clip(shift, -1.0, 1.0) * (at[1] - at[0])
    return modes


def statistics(posterior, asked):
    """Mean, mode and median at the items asked about; noise-free probabilities of their duels."""
    items = asked.reshape(-1, asked.shape[2])
    means, deviation = posterior.component_means(items), np.sqrt(posterior.component_var(items))
    one = means.shape[1] == 1
    return {
        "mean": posterior.mean(items),
        "mode": means[:, 0] if one else mixture_modes(means, deviation),
        "median": posterior.quantile(items, 0.5),
        "probability": posterior.win_probability(asked[:, 0], asked[:, 1], noise=False),
    }


def compare(name, trial, draws=10_000):
    """Fig. 2a, 6c, 7c: errors of Laplace and EP; and every fourth point for the scatter plots."""
    data, kernel = trial_of(name, trial), kernel_of(name, trial)
    found, seconds = {}, {}
    for key, engine in engines(draws).items():
        start = time.perf_counter()
        model = fit(kernel, data.X, engine, seed=trial)
        seconds[key] = time.perf_counter() - start
        found[key] = statistics(model.posterior_, data.asked)
    unit = {"function": name, "trial": trial}
    summary, points = [], []
    for statistic, truth in found["truth"].items():
        for engine in ("laplace", "ep"):
            estimate = found[engine][statistic]
            error = estimate - truth
            row = {**unit, "statistic": statistic, "engine": engine}
            row |= {"rmse": np.sqrt(np.mean(error**2)), "bias": error.mean()}
            row |= {"largest": np.abs(error).max(), "slope": _slope(truth, estimate)}
            row |= {"rank_correlation": spearmanr(truth, estimate).statistic}
            if statistic == "probability":
                sure = np.maximum(truth, 1.0 - truth) > 0.9
                toward = np.where(truth > 0.5, error, -error)[sure]
                row["error_where_truth_is_sure"] = toward.mean() if sure.any() else np.nan
            else:
                row["error_where_truth_is_sure"] = np.nan
            summary.append(row)
        if statistic != "median":
            step = 1 if statistic == "probability" else 4
            columns = (truth[::step], found["laplace"][statistic][::step])
            columns += (found["ep"][statistic][::step],)
            names = ("truth", "laplace", "ep")
            for values in zip(*columns, strict=True):
                points.append(
                    {**unit, "statistic": statistic, **dict(zip(names, values, strict=True))}
                )
    for row in summary:
        row["seconds"] = seconds[row["engine"]]
        row["seconds_truth"] = seconds["truth"]
    return summary, points


def _slope(truth, estimate):
    return float(np.polyfit(truth, estimate, 1)[0])


def rmse(name, trial, draws=10_000, repeats=5):
    """Fig. 2b: errors of the conditional and of the plain Monte Carlo estimators."""
    data, kernel = trial_of(name, trial), kernel_of(name, trial)
    truth = statistics(fit(kernel, data.X, engines(draws)["truth"], 1).posterior_, data.asked)
    rng = np.random.default_rng(trial)
    squares = {}
    for repeat in range(repeats):
        posterior = fit(kernel, data.X, HMC(draws=max(RMSE_DRAWS)), 100 + repeat).posterior_
        items = data.asked.reshape(-1, data.asked.shape[2])
        means = posterior.component_means(items)
        half = posterior.kernel(items, posterior.anchors) @ posterior.factor
        shared = posterior.kernel(items) - half @ half.T
        values, vectors = np.linalg.eigh(shared)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        sampled = means + root @ rng.standard_normal(means.shape)
        order = rng.permutation(means.shape[1])
        for n in RMSE_DRAWS:
            rows = order[:n]
            few = statistics(replace(posterior, weights=posterior.weights[:, rows]), data.asked)
            both = {"conditional": few, "plain": _plain(sampled[:, rows])}
            for estimator, estimate in both.items():
                for statistic in ("mean", "median", "probability"):
                    square = np.mean((estimate[statistic] - truth[statistic]) ** 2)
                    squares.setdefault((estimator, statistic, n), []).append(square)
    return [
        {"function": name, "trial": trial, "estimator": estimator, "statistic": statistic,
         "draws": n, "rmse": np.sqrt(np.mean(value))}
        for (estimator, statistic, n), value in squares.items()
    ]  # fmt: skip


def _plain(sampled):
    first, second = sampled[0::2], sampled[1::2]
    return {
        "mean": sampled.mean(axis=1),
        "median": np.median(sampled, axis=1),
        "probability": (first > second).mean(axis=1),
    }


def chains(name, trial, n_draws=1000):
    """Fig. 3, 6a, 7a and Tables 1, 2: one chain of each sampler from the same start."""
    data, kernel = trial_of(name, trial), kernel_of(name, trial)
    covariance, start = covariance_of(kernel, data.X), typical_margins(kernel, data.X)
    rows, traces = [], {}
    for sampler, draw in SAMPLERS.items():
        draw(covariance, start, 5, rng=np.random.default_rng(0))
        begin = time.perf_counter()
        found = draw(covariance, start, n_draws, rng=np.random.default_rng(trial)).draws
        seconds = time.perf_counter() - begin
        # The chain started outside its target: leave out the first tenth.
        effective = effective_draws(found[:, n_draws // 10 :], "mean")
        worst = int(effective.argmin())
        traces[sampler] = found[0, :, worst]
        lags = _autocorrelation(found[0, n_draws // 10 :, worst])
        row = {"function": name, "trial": trial, "sampler": sampler, "seconds": seconds}
        row |= {"smallest_ess": effective.min(), "median_ess": np.median(effective)}
        rows.append(row | {f"lag_{k}": lags[k] for k in (1, 2, 5, 10, 20, 50, 100, 200)})
    return rows, traces


def _autocorrelation(x):
    x = x - x.mean()
    full = np.correlate(x, x, "full")[len(x) - 1 :]
    return full / full[0]


def calibration(name, trial, draws=4000):
    """Log-loss, accuracy and reliability counts of noisy held-out duels.

    ``expected`` is the log-loss that the exact posterior expects of the engine: its own is the
    smallest, and what it gains over another is all there is to gain where the model is true.
    """
    data = trial_of(name, trial)
    learned = PairwisePreferenceRegressor().fit(data.X)
    settings = {
        "paper": (kernel_of(name, trial), NOISE_VARIANCE),
        "default": (learned.kernel_, learned.noise_variance_),
    }
    if name == KNOWN:
        settings["true"] = (known_kernel(), NOISE_VARIANCE)
    rows = []
    for hyperparameters, (kernel, noise_variance) in settings.items():
        exact = {}
        for engine in (HMC(draws=draws, chains=50), EP(), Laplace()):
            model = fit(kernel, data.X, engine, trial, noise_variance)
            for kind, (pairs, first_won) in data.held_out.items():
                both = model.predict_log_proba(pairs)
                row = {"function": name, "trial": trial, "hyperparameters": hyperparameters}
                row |= {"kind": kind, "engine": type(engine).__name__.lower()}
                exact.setdefault(kind, np.exp(both))
                row["expected"] = -np.mean(np.sum(exact[kind] * both, axis=1))
                rows.append(row | _scores(both, first_won.astype(int)))
    return rows


def _scores(log_probability, y):
    log_right = log_probability[np.arange(len(y)), y]
    right, confidence = np.exp(log_right), np.exp(log_probability.max(axis=1))
    correct = right > 0.5
    row = {"log_loss": -log_right.mean(), "brier": np.mean((1.0 - right) ** 2)}
    row["accuracy"] = correct.mean()
    cell = np.clip(np.searchsorted(EDGES, confidence, "right") - 1, 0, len(EDGES) - 2)
    for j in range(len(EDGES) - 1):
        here = cell == j
        row |= {f"n_{j}": int(here.sum()), f"said_{j}": confidence[here].sum()}
        row[f"right_{j}"] = int(correct[here].sum())
    return row
