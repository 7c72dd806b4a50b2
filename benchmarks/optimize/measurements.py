"""Regret against cost where items can be measured beside being compared.

    python benchmarks/optimize/measurements.py [--functions branin hartmann-3] [--seeds 0 1]
        [--prices 0.5 1 2 4 8] [--budget 16] [--deviation 0.1] [--noise 0.1]

An answer costs 1, a measured value a price. "asking" asks `PreferenceOptimizer` for duels alone.
"measuring" tells it values alone, each of the item of the largest expected improvement under its
posterior, the first three of random ones. "both" measures where a value costs no more than an
answer. Else it asks three times, and then takes the step of more gain for its cost: by how much the
best of either kind is expected to raise the largest posterior mean (the knowledge gradient). It
asks where no value can be paid for any more. Values have normal noise of a ``--deviation``,
utilities in duels of ``--noise``, both in deviations of the
function over its domain. The regret is that of `recommend`, in shares of the distance from the best
to the median of the function; before anything is told, that of the middle. In
``results/measurements.csv`` are its median and mean over functions and seeds when a quarter, a
half, three quarters and all of the budget are spent.
"""

import argparse
import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np
from scipy.stats import norm

from skpref.datasets import TEST_FUNCTIONS, load_test_function
from skpref.optimize import PreferenceOptimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

METHODS = ("asking", "measuring", "both")
SHARES = (0.25, 0.5, 0.75, 1.0)
N_CANDIDATES, N_COMPARED, N_RANDOM = 1000, 200, 3
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def expected_improvement(mean, variance):
    """Expected positive part of normal margins over the best so far."""
    deviation = np.sqrt(np.maximum(variance, 1e-12))
    ahead = mean / deviation
    return deviation * (ahead * norm.cdf(ahead) + norm.pdf(ahead))


def place_to_measure(optimizer, bounds, rng):
    """The item of the largest expected improvement over what is recommended.

    What is recommended is measured itself, if it was not.
    """
    items = rng.uniform(*bounds.T, (N_CANDIDATES, len(bounds)))
    if optimizer.n_told_ + len(optimizer.measured_) < N_RANDOM:
        return items[0]
    rows, recommended = optimizer.to_unit(items), optimizer.recommend()
    best = np.repeat(optimizer.to_unit([recommended]), len(rows), axis=0)
    # Of margins: the level of the utilities is not known.
    improvement = expected_improvement(*optimizer.posterior_.margin(rows, best))
    is_measured = any(np.array_equal(recommended, item) for item, *_ in optimizer.measured_)
    return items[np.argmax(improvement)] if is_measured else recommended


def gain_of_answer(mean, covariance, noise_variance):
    """Expected rise of the largest mean by the best duel with the item of the largest mean."""
    best = np.argmax(mean)
    pulled = covariance[best] - covariance  # a row each duel: with f(best) - f(other)
    margin, root = mean[best] - mean, np.sqrt(np.diag(pulled[:, best] - pulled) + noise_variance)
    u = margin / root
    shift = norm.pdf(u)[:, None] * pulled / root[:, None]
    won, lost = norm.cdf(u)[:, None] * mean + shift, norm.cdf(-u)[:, None] * mean - shift
    return float(np.max(won.max(axis=1) + lost.max(axis=1)) - mean[best])


def gain_of_value(mean, covariance, deviation):
    """Expected rise of the largest mean by the best value, beside a value of the first item."""
    beside = covariance - covariance[:1] - covariance[:, :1] + covariance[0, 0]
    slope = beside / np.sqrt(np.maximum(np.diag(beside), 0.0) + 2.0 * deviation**2 + 1e-12)[:, None]
    rise = [(mean + node * slope).max(axis=1) for node in NODES]
    return float(np.max(WEIGHTS @ rise) - mean.max())


def should_ask(optimizer, bounds, rng, price, deviation):
    """Whether an answer raises what is recommended by more for its cost than a value.

    A value that costs no more is measured. The first value alone tells nothing, as the level is not
    known: it costs as much again.
    """
    measured = [item for item, *_ in optimizer.measured_]
    if price <= 1.0 or optimizer.n_told_ + len(measured) < N_RANDOM:
        return price > 1.0
    recommended = optimizer.recommend()
    items = np.vstack([rng.uniform(*bounds.T, (N_COMPARED, len(bounds))), recommended])
    rows, posterior = (
        optimizer.to_unit([(measured or [recommended])[-1], *items]),
        optimizer.posterior_,
    )
    mean, covariance = posterior.mean(rows), posterior.cov(rows)
    of_answer = gain_of_answer(mean, covariance, posterior.likelihood.margin_variance)
    of_value = gain_of_value(mean, covariance, deviation if measured else 0.0)
    return of_answer >= of_value / (price if measured else 2.0 * price)


def run(name, method, price, seed, options):
    """Regret of what is recommended once each share of the budget is spent."""
    function = load_test_function(name)
    rng = np.random.default_rng(seed)
    values = function(rng.uniform(*function.bounds.T, (10_000, len(function.bounds))))
    spread, span = values.std(), function.optimum - np.median(values)
    optimizer = PreferenceOptimizer(function.bounds, random_state=seed)
    judge, gauge = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    spent, regrets = 0.0, []
    for share in SHARES:
        while spent + min(1.0, price) <= share * options.budget:
            asks, item = method == "asking", None
            if not asks:
                item = place_to_measure(optimizer, function.bounds, rng)
            if method == "both":
                noise = options.deviation * spread
                asks = should_ask(optimizer, function.bounds, rng, price, noise)
                asks |= spent + price > options.budget
            cost = 1.0 if asks else price
            if spent + cost > share * options.budget:
                break
            if asks:
                duel = optimizer.ask()
                utility = function(duel) + options.noise * spread * judge.standard_normal(2)
                optimizer.tell(duel, utility[0] > utility[1])
            else:
                deviation = options.deviation * spread
                value = function(item[None])[0] + deviation * gauge.standard_normal()
                optimizer.tell_value(item, value, deviation)
            spent += cost
        item = optimizer.recommend() if spent else function.bounds.mean(axis=1)
        regrets.append(float((function.optimum - function(item[None])[0]) / span))
    return regrets


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", nargs="+", default=["branin", "hartmann-3"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--prices", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--budget", type=float, default=16.0)
    parser.add_argument("--deviation", type=float, default=0.1)
    parser.add_argument("--noise", type=float, default=0.1)
    options = parser.parse_args()
    unknown = set(options.functions) - set(TEST_FUNCTIONS)
    if unknown:
        parser.error(f"no functions {sorted(unknown)}; there are {', '.join(TEST_FUNCTIONS)}")
    rows, asking = [], None
    for price in options.prices:
        for method in METHODS:
            if method == "asking" and asking is not None:
                regrets = asking  # whatever a value costs
            else:
                runs = [
                    run(name, method, price, seed, options)
                    for name in options.functions
                    for seed in options.seeds
                ]
                regrets = np.array(runs)
            asking = regrets if method == "asking" else asking
            row = {"price": price, "method": method, "runs": len(regrets)}
            for share, column in zip(SHARES, regrets.T, strict=True):
                row[f"median_{share:g}"] = float(np.median(column))
                row[f"mean_{share:g}"] = float(column.mean())
            rows.append(row)
            report(rows, RESULTS / "measurements.csv", quiet=True)
    report(rows, RESULTS / "measurements.csv")


if __name__ == "__main__":
    main()
