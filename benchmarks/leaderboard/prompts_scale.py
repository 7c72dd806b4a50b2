"""How long, and in how much memory, does a board of votes that share prompts take?

Simulated votes on 50 models and 10 000 prompts, hyperparameters learned by default: seconds of the
processor, and the peak of memory of a process that fits them. Run:
``python benchmarks/leaderboard/prompts_scale.py [--votes 100000 1000000]``; a minute.
"""

import argparse
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from skpref import PairwisePreferenceRegressor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, few, report

N_MODELS, N_PROMPTS = 50, 10_000
GIB = 2**20 if sys.platform != "darwin" else 2**30  # of ru_maxrss


def fit(n):
    """Print seconds of the processor and GiB at most of a fit of n votes."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    utility, own = rng.normal(size=N_MODELS), 0.7 * rng.normal(size=(N_PROMPTS, N_MODELS))
    prompt, first = rng.integers(0, N_PROMPTS, n), rng.integers(0, N_MODELS, n)
    second = (first + rng.integers(1, N_MODELS, n)) % N_MODELS
    seen = [utility[who] + own[prompt, who] for who in (first, second)]
    y = (seen[0] - seen[1] + np.sqrt(2.0) * rng.normal(size=n) > 0).astype(int)
    names = np.array([f"m{k:02d}" for k in range(N_MODELS)])
    begin = time.process_time()
    PairwisePreferenceRegressor().fit(names[np.stack([first, second], axis=1)], y, prompts=prompt)
    seconds = time.process_time() - begin
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, nargs="+", default=few((100_000, 1_000_000), (2000,)))
    parser.add_argument("--fit", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit(options.fit)
        return
    rows = []
    for n in options.votes:
        command = [sys.executable, __file__, "--fit", str(n)]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds, memory = map(float, output.split())
        rows.append({"votes": n, "processor_seconds": seconds, "peak_gib": memory})
    report(rows, RESULTS / "prompts_scale.csv")


if __name__ == "__main__":
    main()
