"""Faults that are planted in simulated votes: how many does `skpref.inspection.check` name?

A fault is named where a finding has its topic. Beside the faults stand sound votes, of which no
finding should be made. Two faults that are hard to see stand beside an oracle: it knows all of the
votes but the fault's own utilities, and sees the fault where it is e³ times as probable as none.
Ten minutes of one core:

    python benchmarks/posterior/planted_faults.py [--simulations 20] [--sound 70] [--faults ...]
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_ndtr
from sklearn.gaussian_process.kernels import RBF

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, report

from skpref import PairwisePreferenceRegressor
from skpref.inspection import check

NAMES = np.array([f"item {k}" for k in range(12)])
N_VOTES = 400


class Votes:
    """Votes on twelve named items; what is planted changes them."""

    def __init__(self, rng, n=N_VOTES):
        self.rng, self.utility = rng, rng.normal(size=len(NAMES))
        self.first = rng.integers(len(NAMES), size=n)
        self.second = (self.first + rng.integers(1, len(NAMES), size=n)) % len(NAMES)

    @property
    def margin(self):
        """Utility of the first less that of the second."""
        return self.utility[self.first] - self.utility[self.second]

    def fitted(self, margin=None, **groups):
        """X, y, groups and parameters of votes with these margins."""
        margin = self.margin if margin is None else margin
        return self.shown, vote(self.rng, margin), groups, {}

    @property
    def shown(self):
        """Names of the items of each vote."""
        return NAMES[np.stack([self.first, self.second], axis=1)]


def vote(rng, margin, deviation=1.0):
    """Whether the first wins, with noise on both items."""
    return (margin + deviation * np.sqrt(2.0) * rng.normal(size=len(margin)) > 0.0).astype(int)


def sound(rng):
    """No fault: names."""
    return Votes(rng).fitted()


def sound_groups(rng):
    """No fault: names, with judges, prompts and times that do not matter."""
    numbers = {"judge": rng.integers(8, size=N_VOTES), "prompt": rng.integers(60, size=N_VOTES)}
    return Votes(rng).fitted(time=rng.uniform(size=N_VOTES), **numbers)


def sound_features(rng):
    """No fault: two features."""
    features = rng.uniform(size=(40, 2))
    first = rng.integers(40, size=300)
    second = (first + rng.integers(1, 40, size=300)) % 40
    utility = 2.0 * np.sin(3.0 * features).sum(axis=1)
    y = vote(rng, utility[first] - utility[second], 0.4)
    return np.stack([features[first], features[second]], axis=1), y, {}, {"kernel": RBF([1.0] * 2)}


def two_groups(rng):
    """Two groups of items that never met."""
    votes = Votes(rng)
    base = 6 * (votes.first // 6)
    votes.second = base + (votes.first - base + rng.integers(1, 6, size=N_VOTES)) % 6
    return votes.fitted()


def shared_prompts(rng):
    """Votes of 60 prompts, in each of which items have effects of their own."""
    votes, prompt = Votes(rng, 600), rng.integers(60, size=600)
    effect = 1.5 * rng.normal(size=(60, len(NAMES)))
    own = effect[prompt, votes.first] - effect[prompt, votes.second]
    return votes.fitted(votes.margin + own, prompt=prompt)


def contrary_judge(rng):
    """One of eight judges answers the wrong way round."""
    votes, judge = Votes(rng), rng.integers(8, size=N_VOTES)
    return votes.fitted(1.5 * np.where(judge == 3, -1.0, 1.0) * votes.margin, judge=judge)


def length_lover(rng):
    """One of eight judges prefers the longer answer, whatever the others think."""
    votes, judge = Votes(rng, 800), rng.integers(8, size=800)
    length = 1.5 * rng.normal(size=len(NAMES))
    longer = length[votes.first] - length[votes.second]
    return votes.fitted(np.where(judge == 3, longer, votes.margin), judge=judge)


def swapped_column(rng):
    """The two sides of a column are swapped in the last third of votes on items that differ."""
    X = rng.uniform(size=(300, 2, 2))
    utility = 2.0 * np.sin(3.0 * X).sum(axis=2) + 2.0 * X[:, :, 0]
    y = vote(rng, utility[:, 0] - utility[:, 1], 0.4)
    X[200:, :, 0] = X[200:, ::-1, 0]
    return X, y, {}, {"kernel": RBF([1.0] * 2)}


def circle(rng):
    """Three items beat each other in a circle."""
    votes = Votes(rng)
    place = rng.integers(3, size=90)
    votes.first = np.append(votes.first, np.array([0, 1, 2])[place])
    votes.second = np.append(votes.second, np.array([1, 2, 0])[place])
    ahead = (votes.second - votes.first) % 3 == 1
    inside = (votes.first < 3) & (votes.second < 3)
    return votes.fitted(np.where(inside, np.where(ahead, 2.5, -2.5), votes.margin))


def drift(rng):
    """Utilities move through time."""
    votes, times = Votes(rng), rng.uniform(-1.0, 1.0, size=N_VOTES)
    speed = 2.0 * rng.normal(size=len(NAMES))
    moved = times * (speed[votes.first] - speed[votes.second])
    return votes.fitted(votes.margin + moved, time=times)


def wrong_ties(rng):
    """The threshold of ties is held at a third of the true one."""
    votes = Votes(rng)
    noisy = votes.margin + np.sqrt(2.0) * rng.normal(size=N_VOTES)
    y = np.where(np.abs(noisy) < 0.9, 0, np.sign(noisy)).astype(int)
    held = {"tie_threshold": 0.3, "tie_threshold_bounds": "fixed", "noise_variance": 1.0}
    return votes.shown, y, {}, {**held, "noise_variance_bounds": "fixed"}


def outlier(rng):
    """A good item about which half of the votes are turned round."""
    votes = Votes(rng, 800)
    votes.utility *= 1.5
    votes.utility[0] = 4.5
    _, y, _, _ = votes.fitted()
    turned = ((votes.first == 0) | (votes.second == 0)) & (rng.random(800) < 0.5)
    return votes.shown, np.where(turned, 1 - y, y), {}, {}


def duplicates(rng):
    """Each vote is there four times."""
    votes = Votes(rng, 150)
    X, y, _, _ = votes.fitted()
    return np.repeat(X, 4, axis=0), np.repeat(y, 4), {}, {}


def leak(rng):
    """A column holds the answer itself."""
    X, y, _, _ = sound_features(rng)
    column = np.sort(rng.uniform(size=(len(y), 2)), axis=1)
    column = np.where(y[:, None] == 1, column[:, ::-1], column)
    return np.concatenate([X, column[:, :, None]], axis=2), y, {}, {"kernel": RBF([1.0] * 3)}


def short_lengthscale(rng):
    """Lengthscales are held at a fiftieth of what they are."""
    X, y, _, _ = sound_features(rng)
    return X, y, {}, {"kernel": RBF([0.02, 0.02], "fixed")}


def advantage(rng):
    """What is shown first has an advantage that the model does not know."""
    votes = Votes(rng)
    return votes.fitted(votes.margin + 0.8)


FAULTS = {
    two_groups: "groups of items",
    shared_prompts: "dependence by prompt",
    contrary_judge: "judges",
    length_lover: "dependence by judge",
    swapped_column: "columns",
    circle: "circles",
    drift: "dependence by time",
    wrong_ties: "ties",
    outlier: "items",
    duplicates: "dependence by pair",
    leak: "leaks",
    short_lengthscale: "lengthscales",
    advantage: "order",
    sound: None,
    sound_groups: None,
    sound_features: None,
}


def topics(make, seed):
    """Topics of the findings of one simulation."""
    X, y, groups, params = make(np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PairwisePreferenceRegressor(**params).fit(X, y)
        return [finding.topic for finding in check(model, groups).findings]


def oracle_outlier(seed):
    """Whether answers about the first item are more probable at random than by any utility."""
    votes = Votes(np.random.default_rng(seed), 800)
    X, y, _, _ = outlier(np.random.default_rng(seed))
    own = (NAMES[0] == X).any(axis=1)
    sign = np.where(X[own, 0] == NAMES[0], 1, -1) * (2 * y[own] - 1)
    rival = (
        1.5 * votes.utility[np.where(X[own, 0] == NAMES[0], votes.second[own], votes.first[own])]
    )

    def loss(utility):
        return -log_ndtr(sign * (utility - rival) / np.sqrt(2.0)).sum()

    return loss(
        minimize_scalar(loss, bounds=(-15, 15), method="bounded").x
    ) > 3 + own.sum() * np.log(2)


def oracle_length_lover(seed):
    """Whether answers of the judge are more probable by utilities of his own (Laplace)."""
    votes = Votes(np.random.default_rng(seed), 800)
    _, y, groups, _ = length_lover(np.random.default_rng(seed))
    own = groups["judge"] == 3
    sign = 2 * y[own] - 1
    items = np.eye(len(NAMES))
    design = (sign[:, None] * (items[votes.first[own]] - items[votes.second[own]])) / np.sqrt(2.0)

    def loss(utility):
        return -log_ndtr(design @ utility).sum() + 0.5 * utility @ utility / 1.5**2

    best = minimize(loss, np.zeros(len(NAMES)))
    margin = design @ best.x
    hazard = np.exp(-0.5 * margin**2 - log_ndtr(margin)) / np.sqrt(2.0 * np.pi)
    curvature = design.T @ ((hazard * (hazard + margin))[:, None] * design) * 1.5**2
    log_evidence = -best.fun - 0.5 * np.linalg.slogdet(curvature + items)[1]
    shared = log_ndtr(sign * votes.margin[own] / np.sqrt(2.0)).sum()
    return log_evidence - shared > 3.0


ORACLES = {"outlier": oracle_outlier, "length_lover": oracle_length_lover}


def main():
    every = {make.__name__: make for make in FAULTS}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--simulations", type=int, default=20)
    parser.add_argument("--sound", type=int, default=70)
    parser.add_argument("--faults", nargs="+", choices=list(every), default=list(every))
    options = parser.parse_args()
    rows = []
    for name in options.faults:
        topic = FAULTS[every[name]]
        n = options.simulations if topic else options.sound
        begin = time.process_time()
        findings = [topics(every[name], 1000 + k) for k in range(n)]
        rows.append(
            {
                "fault": name,
                "topic": topic or "",
                "simulations": n,
                "named": sum(topic in each for each in findings) if topic else "",
                "oracle": sum(ORACLES[name](1000 + k) for k in range(n)) if name in ORACLES else "",
                "others": sum(bool(set(each) - {topic}) for each in findings),
                "seconds": (time.process_time() - begin) / n,
            }
        )
    report(rows, RESULTS / "planted_faults.csv")


if __name__ == "__main__":
    main()
