"""One row of ``leaderboard_scale.py`` by another package, in a Python of its own without skpref.

    PEER_PYTHON benchmarks/leaderboard/_peer_leaderboards.py '{"method": "evalica", "votes": 1000}'

Its last line is the row in JSON. Methods, each as it comes:

- ``arena-rank``: Bradley-Terry with sandwich intervals from a frame of names; a tie is half a win
  of each. With controls its contextual model, on the differences of the two sides.
- ``evalica``: Bradley-Terry from arrays of names, a tie half a win of each; no intervals.
- ``evalica newman``: the same with a parameter of ties.
"""

import json
import os
import resource
import sys
import time
from importlib import metadata

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_ENABLE_X64"] = "1"

import numpy as np
from _leaderboard_votes import agreement, names, votes


def arena_rank(pairs, y, controls):
    """Scores by name."""
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
    from arena_rank.utils.data_utils import ContextualPairDataset, PairDataset

    n_controls = controls.shape[2]
    winner = np.array(["model_b", "tie", "model_a"], dtype=object)[y.astype(int) + 1]
    frame = pd.DataFrame({"model_a": pairs[:, 0], "model_b": pairs[:, 1], "winner": winner})
    columns = [f"control {j}" for j in range(n_controls)]
    frame[columns] = controls[:, 0] - controls[:, 1]
    began = time.process_time()
    if n_controls:
        data = ContextualPairDataset.from_pandas(frame, columns, reweighted=False)
        model = ContextualBradleyTerry(len(data.competitors), n_controls)
    else:
        data = PairDataset.from_pandas(frame)
        model = BradleyTerry(len(data.competitors))
    found = model.compute_ratings_and_cis(data)
    seconds = time.process_time() - began
    return dict(zip(found["competitors"], np.asarray(found["ratings"]), strict=True)), seconds


def evalica(pairs, y, controls, solver="bradley_terry"):
    """Scores by name."""
    import evalica as package

    winners = np.array([package.Winner.Y, package.Winner.Draw, package.Winner.X], dtype=object)
    winners = winners[y.astype(int) + 1].tolist()
    began = time.process_time()
    found = getattr(package, solver)(pairs[:, 0].tolist(), pairs[:, 1].tolist(), winners)
    return found.scores.to_dict(), time.process_time() - began


METHODS = {
    "arena-rank": arena_rank,
    "evalica": evalica,
    "evalica newman": lambda *told: evalica(*told, solver="newman"),
}


def main():
    setting = json.loads(sys.argv[1])
    pairs, y, controls = votes(setting["votes"], setting.get("controls", 0))
    listed = names()
    found, seconds = METHODS[setting["method"]](listed[pairs], y, controls)
    row = {
        "fit s": seconds,
        "board s": 0.0,
        "peak MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "pairs in order": agreement([found[name] for name in listed]),
        "version": metadata.version(setting["method"].split()[0]),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
