"""Effective draws per second of the samplers of N(0, Σ) on v > 0, on one core.

    python benchmarks/posterior/samplers.py [--problems PATH] [--sizes 50 200 500 1000]
        [--seconds 5]

Duels of random items: `gp4` (a draw of a Gaussian process, four features) and `hart6` (Hartmann-6,
standardised), kernel RBF with lengthscale 0.5 and unit amplitude, noise variance σ² on each
utility. `flipped` has winner and loser swapped in a tenth of the duels; there a mixture of HMC and
Gibbs is measured, too. They are read from PATH (by default the environment variable SKPREF_PEERS,
or ../shared/peers/problems.npz beside the repository: arrays `gp4_0.0001_W`, `gp4_0.0001_L`, ... of
winners and losers); without it equivalent ones are made from a seed.

The figure is the smallest effective sample size over the coordinates of v, divided by the
processor seconds of the run without burn-in (one thread: wall-clock of a free core): Geyer's
initial monotone sequence on the raw values of all chains, with the variance between the chains. All
samplers start from positions that exact HMC has already brought to the target, so a sampler that
does not move at all still shows about one effective draw a chain: R̂ tells (beyond 1.05 the figure
is an upper bound, marked <). The columns of published samplers are theirs as measured on one core
of 2.6 GHz; `ratio` is HMC here over the best of them.
"""

import argparse
import csv
import os
import platform
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy
import sklearn
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

import skpref
from skpref.samplers import effective_draws, gibbs, hmc, liness, rhat

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT

SWEEPS = 4  # of Gibbs after each trajectory of the mixture
LEAST = 1e-3  # seconds: what a clock of the processor may not see
MIXED = 1.05

# (problem, σ²) -> t -> smallest effective sample size per second of paper's Gibbs, Optuna
# Dashboard's Gibbs, SkewGP's LinESS. 0.5 or 0.6 means that it did not mix at all.
PUBLISHED = {
    ("gp4", 1e-4): {50: (36, 13.6, 2.8), 200: (0.6, 0.6, 0.6), 500: (0.5, 0.6, 0.6)},
    ("gp4", 1e-2): {50: (98, 35, 2.6), 200: (4.6, 3.4, 0.6), 500: (3.4, 2.8, 0.6)},
    ("hart6", 1e-4): {50: (911, 325, 1.3), 200: (48, 15, 0.5), 500: (2.5, 1.1, 0.6)},
    ("hart6", 1e-2): {50: (844, 323, 1.5), 200: (58, 30, 0.6), 500: (12, 4, 0.6)},
}
FIELDS = [
    "problem", "noise_variance", "flipped", "t", "sampler", "n_chains", "n_draws",
    "microseconds_per_draw", "walls_per_draw", "rejected_share", "smallest_ess", "ess_per_second",
    "rhat", "paper_gibbs_per_second", "optuna_gibbs_per_second", "skewgp_liness_per_second",
    "ratio_to_best_published",
]  # fmt: skip


class Mixture(NamedTuple):
    draws: np.ndarray
    state: np.ndarray


def mixture(covariance, start, n_draws, *, rng):
    """A trajectory of HMC and then sweeps of Gibbs, again and again; every position is a draw."""
    parts, found = [], 0
    state = start
    while found < n_draws:
        for sampler, share in ((hmc, 1), (gibbs, SWEEPS)):
            chains = sampler(covariance, state, share, rng=rng)
            state = chains.state
            parts.append(chains.draws)
            found += share
    return Mixture(np.concatenate(parts, axis=1)[:, :n_draws], state)


SAMPLERS = {"hmc": hmc, "gibbs": gibbs, "liness": liness, "mixture": mixture}


def rbf(a, b):
    return np.exp(-2.0 * cdist(a, b, "sqeuclidean"))  # lengthscale 0.5


def hartmann6(x):
    a = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14],
                  [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]])  # fmt: skip
    p = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
         [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]  # fmt: skip
    inner = np.einsum("kd,nkd->nk", a, (x[:, None, :] - 1e-4 * np.array(p)) ** 2)
    return np.exp(-inner) @ np.array([1.0, 1.2, 3.0, 3.2])


def generate(name, noise_variance, n_duels):
    """Winners and losers of random duels, from a seed."""
    rng = np.random.default_rng(2023)
    pairs = rng.random((n_duels, 2, 4 if name == "gp4" else 6))
    items = pairs.reshape(2 * n_duels, -1)
    if name == "gp4":
        factor = np.linalg.cholesky(rbf(items, items) + 1e-8 * np.eye(len(items)))
        utility = factor @ rng.standard_normal(len(items))
    else:
        utility = hartmann6(items)
        utility = (utility - utility.mean()) / utility.std()
    utility = utility + np.sqrt(noise_variance) * rng.standard_normal(utility.size)
    first, second = utility.reshape(n_duels, 2).T
    rows = np.arange(n_duels)
    return pairs[rows, (second > first).astype(int)], pairs[rows, (first >= second).astype(int)]


def covariance_of(path, name, noise_variance, t, flipped):
    """Σ of the first t duels, (t, t)."""
    if path.is_file():
        with np.load(path) as stored:
            winner, loser = (
                stored[f"{name}_{noise_variance:g}_{side}"][:t].copy() for side in "WL"
            )
    else:
        winner, loser = (side[:t].copy() for side in generate(name, noise_variance, 2000))
    swap = np.random.default_rng(0).random(t) < flipped
    winner[swap], loser[swap] = loser[swap].copy(), winner[swap].copy()
    prior = rbf(winner, winner) - rbf(winner, loser) - rbf(loser, winner) + rbf(loser, loser)
    return prior + 2 * noise_variance * np.eye(t)


def measure(sampler, covariance, start, seconds, rng):
    """Run for about so many seconds, at least 50 draws a chain; return the measured fields."""
    draw = SAMPLERS[sampler]
    begin = time.process_time()
    state = draw(covariance, start, SWEEPS + 1, rng=rng).state
    pilot = max(time.process_time() - begin, LEAST) / (SWEEPS + 1)
    most = max(50, int(1e7 / start.size))  # 80 MB of draws
    n_draws = int(np.clip(seconds / pilot, 50, most))
    begin = time.process_time()
    chains = draw(covariance, state, n_draws, rng=rng)
    taken = max(time.process_time() - begin, LEAST)
    smallest = float(effective_draws(chains.draws, "mean").min())
    fields = {
        "sampler": sampler,
        "n_chains": len(start),
        "n_draws": n_draws,
        "microseconds_per_draw": round(1e6 * taken / (len(start) * n_draws), 2),
        "smallest_ess": round(smallest),
        "ess_per_second": float(f"{smallest / taken:.3g}"),
        "rhat": round(float(rhat(chains.draws).max()), 3),
    }
    if sampler == "hmc":
        fields["walls_per_draw"] = round(float(chains.walls.mean()), 1)
        fields["rejected_share"] = round(chains.rejected_share, 4)
    return fields


def _line(row, published):
    bound = "<" if row["rhat"] > MIXED else ""
    ratio = row.get("ratio_to_best_published")
    theirs = "" if ratio is None else f"{', '.join(map(str, published))}; {ratio}"
    return (
        f"{row['problem']:8}{row['noise_variance']:8g}{row['flipped']:9g}{row['t']:6}  "
        f"{row['sampler']:8}{row['n_chains'] * row['n_draws']:9}"
        f"{row['microseconds_per_draw']:10.1f}{row.get('walls_per_draw', ''):>9}"
        f"{bound + format(row['ess_per_second'], '.0f'):>11}{row['rhat']:7.3f}   {theirs}"
    )


def main():
    default = os.environ.get("SKPREF_PEERS", ROOT.parent / "shared" / "peers" / "problems.npz")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=Path, default=Path(default))
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 500, 1000])
    parser.add_argument("--flipped-sizes", type=int, nargs="*", default=[200, 500])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--chains", type=int, default=64)
    parser.add_argument("--samplers", nargs="+", choices=list(SAMPLERS), default=list(SAMPLERS))
    parser.add_argument("--output", type=Path, default=RESULTS / "samplers.csv")
    options = parser.parse_args()

    source = "stored duels" if options.problems.is_file() else "duels made from a seed"
    versions = (
        f"skpref {getattr(skpref, '__version__', '0')}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
        f"{platform.machine()}, one core, {source}"
    )
    cases = [(*key, 0.0, t) for key in PUBLISHED for t in options.sizes]
    cases += [("gp4", 1e-4, 0.1, t) for t in options.flipped_sizes]
    print(versions)
    print(
        f"{'problem':8}{'σ²':>8}{'flipped':>9}{'t':>6}  {'sampler':8}{'draws':>9}{'µs/draw':>10}"
        f"{'walls':>9}{'ESS/s':>11}{'R̂':>7}   published: paper, Optuna, LinESS; ratio"
    )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w", newline="", encoding="utf-8") as file, threadpool_limits(1):
        file.write(f"# {versions}\n")
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for name, noise_variance, flipped, t in cases:
            covariance = covariance_of(options.problems, name, noise_variance, t, flipped)
            rng = np.random.default_rng(1)
            start = np.full((options.chains, t), 0.5)
            start = hmc(covariance, start, 10, rng=rng).state
            published = () if flipped else PUBLISHED[name, noise_variance].get(t, ())
            for sampler in options.samplers:
                if sampler == "mixture" and not flipped:
                    continue
                row = {
                    "problem": name,
                    "noise_variance": noise_variance,
                    "flipped": flipped,
                    "t": t,
                }
                row |= measure(sampler, covariance, start, options.seconds, rng)
                if sampler == "hmc" and published:
                    row |= dict(zip(FIELDS[-4:-1], published, strict=True))
                    row[FIELDS[-1]] = round(row["ess_per_second"] / max(published))
                writer.writerow(row)
                file.flush()
                print(_line(row, published), flush=True)
    print(f"Written to {options.output}")


if __name__ == "__main__":
    main()
