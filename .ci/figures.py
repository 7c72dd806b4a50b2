"""Figures that may not depend on versions of libraries: written with some, checked with others.

``figures.py write FILE`` writes them, ``figures.py check FILE`` prints by how much those of this
environment differ, and fails where that is more than rounding can do.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import KFold, cross_val_score

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.datasets import load_candy
from skpref.optimize import PreferenceOptimizer

ENGINES = ("ep", "laplace", "svi", "hmc", "gibbs")
# What was learned is where a search stopped, which the next bit can move by its tolerance. Chains
# go other ways after one bit, and are as long as it takes for that to be small.
ROUNDING, SEARCH, CHAINS = 1e-9, 1e-4, 0.1


def found():
    """Name, tolerance and values of each figure."""
    candy = load_candy(n_duels=150)
    asked = candy.X[:20]
    for name in ENGINES:
        held = PairwisePreferenceRegressor(
            RBF(1.5), noise_variance=0.2, optimizer=None, inference=name, random_state=0
        ).fit(candy.X, candy.y)
        tolerance = CHAINS if name in ("hmc", "gibbs") else ROUNDING
        yield f"{name}: probabilities", tolerance, held.predict_proba(asked)[:, 1]
        if name in ("ep", "laplace", "svi"):
            yield f"{name}: evidence", ROUNDING, held.log_marginal_likelihood_value_
    learned = PairwisePreferenceRegressor().fit(candy.X, candy.y)
    yield "learned: probabilities", SEARCH, learned.predict_proba(asked)[:, 1]
    yield "learned: evidence", SEARCH, learned.log_marginal_likelihood_value_
    for scoring in ("neg_log_loss", "neg_brier_score", "roc_auc"):
        held = PairwisePreferenceRegressor(RBF(1.5), noise_variance=0.2, optimizer=None)
        scores = cross_val_score(held, candy.X, candy.y, cv=KFold(3), scoring=scoring)
        yield f"cross-validated {scoring}", ROUNDING, scores
    users = np.arange(150) % 5
    many = CollaborativePreferenceRegressor(RBF(1.5), noise_variance=0.2, optimizer=None)
    many.fit(candy.X, candy.y, users=users)
    yield "users: probabilities", ROUNDING, many.predict_proba(asked, users=users[:20])[:, 1]
    optimizer = PreferenceOptimizer([(0.0, 1.0)] * 2, random_state=0, n_initial=4)
    optimizer.run(lambda a, b: np.sum((a - 0.3) ** 2) < np.sum((b - 0.3) ** 2), 4)
    yield "first questions", 1e-12, [entry.duel for entry in optimizer.history_]


def main(what, path):
    warnings.simplefilter("ignore")
    libraries = {"NumPy": np, "SciPy": scipy, "scikit-learn": sklearn}
    versions = ", ".join(f"{name} {each.__version__}" for name, each in libraries.items())
    here = {name: (tolerance, np.asarray(v, float).tolist()) for name, tolerance, v in found()}
    if what == "write":
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(json.dumps({"versions": versions, "figures": here}))
        return 0
    there = json.loads(Path(path).read_text())
    print(f"figures with {versions} beside {there['versions']}:")
    too_far = False
    for name, (tolerance, values) in here.items():
        expected = np.array(there["figures"][name][1])
        away = np.max(np.abs(np.array(values) - expected) / np.maximum(np.abs(expected), 1.0))
        too_far |= not away <= tolerance
        print(f"{name:32} differs by {away:.1e}, at most {tolerance:.0e} is allowed")
    return int(too_far)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
