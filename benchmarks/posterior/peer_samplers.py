"""Effective draws per second of Optuna Dashboard's Gibbs sampler, beside exact HMC in the same run.

    PYTHONPATH=. PEER_PYTHON benchmarks/posterior/peer_samplers.py [--problems PATH]
        [--sizes 50 200 500] [--seconds 5]

Run by a Python that has optuna-dashboard, botorch and this package's dependencies (PYTHONPATH: the
repository). Problems, estimator and PATH are those of ``samplers.py``: N(0, Σ) on v > 0, the
smallest effective sample size over the coordinates by Geyer's initial monotone sequence, divided by
the processor seconds. Optuna's function, compiled as its sampler compiles it, is given Σ⁻¹ and a
position that exact HMC has brought to the target, and runs one chain: the seconds are of its sweeps
alone. Where R̂, of the halves of that chain, is beyond 1.05, its figure is an upper bound and the
ratio a lower one (`ratio_is` ">"). HMC runs 64 chains at once. `published` is Optuna's figure as
measured on another day, and `ratio_to_larger` is over the larger of that and this run's: a chain
that did not mix has hardly more than one effective draw, whatever its length.
"""

import argparse
import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, needs, problems_file, report, versions

needs("torch", "botorch", "optuna_dashboard")
import torch
from optuna_dashboard.preferential.samplers.gp import _orthants_MVN_Gibbs_sampling_jit
from samplers import MIXED, PUBLISHED, covariance_of, measure
from threadpoolctl import threadpool_limits

from skpref.samplers import effective_draws, hmc, rhat

PEERS = ("optuna-dashboard", "optuna", "torch", "botorch")


def optuna_gibbs(precision, start, n_sweeps):
    """Draws (n_sweeps, t) and processor seconds."""
    begin = time.process_time()
    draws = _orthants_MVN_Gibbs_sampling_jit(
        cov_inv=precision, cycles=n_sweeps, initial_sample=start.clone()
    )
    return draws[1:].numpy(), time.process_time() - begin


def measured(covariance, start, seconds):
    """Fields of Optuna's sampler, run for about so many seconds."""
    precision, start = torch.tensor(np.linalg.inv(covariance)), torch.tensor(start)
    pilot = min(optuna_gibbs(precision, start, 10)[1] for _ in range(3)) / 10  # warm by then
    draws, taken = optuna_gibbs(precision, start, max(100, int(seconds / pilot)))
    smallest = float(effective_draws(draws[None], "mean").min())
    return {
        "optuna_sweeps": len(draws),
        "optuna_ms_per_sweep": 1e3 * taken / len(draws),
        "optuna_smallest_ess": smallest,
        "optuna_ess_per_second": smallest / taken,
        "optuna_rhat": float(rhat(draws[None]).max()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=Path, default=problems_file() or Path("none"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 500])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--output", type=Path, default=RESULTS / "peer_samplers.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    load, rows = os.getloadavg()[0], []
    with threadpool_limits(1):
        for (name, noise_variance), published in PUBLISHED.items():
            for t in options.sizes:
                covariance = covariance_of(options.problems, name, noise_variance, t, 0.0)
                rng = np.random.default_rng(1)
                start = hmc(covariance, np.full((64, t), 0.5), 10, rng=rng).state
                row = {"problem": name, "noise_variance": noise_variance, "t": t}
                row |= measured(covariance, start[0], options.seconds)
                ours = measure("hmc", covariance, start, options.seconds, rng)
                row["hmc_ess_per_second"] = ours["ess_per_second"]
                row["hmc_rhat"] = ours["rhat"]
                row["ratio"] = ours["ess_per_second"] / row["optuna_ess_per_second"]
                row["ratio_is"] = ">" if row["optuna_rhat"] > MIXED else "="
                row["published"] = published[t][1] if t in published else ""
                larger = max(row["optuna_ess_per_second"], row["published"] or 0.0)
                row["ratio_to_larger"] = ours["ess_per_second"] / larger
                rows.append(row)
    source = "stored duels" if options.problems.is_file() else "duels made from a seed"
    loads = [load, os.getloadavg()[0]]
    report(rows, options.output, peers=versions(*PEERS), source=source, load_average=loads)


if __name__ == "__main__":
    main()
