"""Judges of one truth: what is gained by learning how reliable each is.

Simulated: 60 judges answer 45 duels each among 40 items; a third of them answer at random, 5 % the
wrong way round, and the rest either all with the same noise ("alike") or with standard deviations
of the noise spread log-normally ("spread", standard deviation .35 of the logarithm). The utility is
drawn from the Gaussian process that all models are given but for lengthscales and noise. Compared
by log-loss on further duels of the same judges, and on duels that the reference judge answers: the
model that knows each judge's noise and sign, ``judges=``, the same with the mean in the place of
reliability, and one that thinks all judges alike. Coverage: of how many judges the intervals of
reliability (relative to the median of the reliable) and of the noise hold the truth.

Real: answers of people left out, with and without ``judges=``: duels of language models (124
people, with ties and without) and, where the files are there, cars (60 people, whose tastes differ
too, so that they are no judges of one truth).

Run: ``python benchmarks/leaderboard/judges.py [--seeds 10] [--splits 5] [--only simulated real]``.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.data._comparisons import Comparisons
from skpref.datasets import fetch_cars, load_llm_duels
from skpref.duels import ItemTable
from skpref.fitting import Judges
from skpref.fitting._fit import fit_posterior
from skpref.fitting._hyperpriors import lengthscale_priors
from skpref.fitting._model import Model
from skpref.fitting._search import Search
from skpref.inference import EP
from skpref.likelihoods import JudgeReliability, Probit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, data_folder, few, report, unless_missing

N_JUDGES, N_ANSWERS, N_TEST, N_ITEMS = few((60, 45, 20, 40), (20, 5, 5, 10))
KERNEL, NOISE, SPREAD = RBF([0.7, 0.7]), 0.05, 0.35
LEVELS = (0.5, 0.8, 0.9, 0.95)


def simulated(kind, seed):
    """Items, true reliability, answers of three sets of duels, the last by the reference judge."""
    rng = np.random.default_rng([seed, kind == "spread"])
    items = rng.uniform(-1.0, 1.0, (N_ITEMS, 2))
    root = np.linalg.cholesky(KERNEL(items) + 1e-9 * np.eye(N_ITEMS))
    utility = root @ rng.standard_normal(N_ITEMS)
    reliability = np.exp(SPREAD * (kind == "spread") * rng.standard_normal(N_JUDGES))
    reliability[: N_JUDGES // 3] = 0.0
    reliability[N_JUDGES // 3 : N_JUDGES // 3 + N_JUDGES // 20] *= -1.0

    def answers(judge, own):
        pairs = np.array([rng.choice(N_ITEMS, 2, replace=False) for _ in judge])
        margin = utility[pairs[:, 0]] - utility[pairs[:, 1]]
        won = rng.random(len(judge)) < norm.cdf(own[judge] * margin / np.sqrt(2.0 * NOISE))
        return items[pairs], won.astype(int), judge

    every = np.arange(N_JUDGES)
    return (
        items,
        reliability,
        answers(np.repeat(every, N_ANSWERS), reliability),
        answers(np.repeat(every, N_TEST), reliability),
        answers(np.repeat(every, N_TEST), np.ones(N_JUDGES)),
    )


def log_loss(proba, y):
    """Mean of minus the log-probability of what came."""
    return float(-np.mean(np.log(np.clip(proba[np.arange(len(y)), y], 1e-12, None))))


def knowing(X, y, judge, reliability):
    """The model that knows each judge's noise and sign, its hyperparameters learned likewise."""
    n = len(X)
    seen = Comparisons.from_duels(
        X.reshape(2 * n, -1), 2 * np.arange(n), 2 * np.arange(n) + 1, y == 1, judge=judge
    )
    kernel = RBF([1.0, 1.0])
    priors = lengthscale_priors("lognormal", kernel, seen.items)
    model = Model(kernel, JudgeReliability(Probit(), reliability), EP(), priors)
    return fit_posterior(seen, model, search=Search())


def proba_at(posterior, likelihood, reliability, X):
    """Outcome probabilities of duels, each seen with this reliability."""
    mean, variance = posterior.margin(X[:, 0], X[:, 1])
    return likelihood.outcome_proba(reliability * mean, reliability**2 * variance)


def simulation(kind, seed):
    """A row of the table."""
    _, reliability, train, test, common = simulated(kind, seed)
    X, y, judge = train
    knows = knowing(X, y, judge, reliability)
    base = knows.model.likelihood.base
    began = time.perf_counter()
    model = PairwisePreferenceRegressor(RBF([1.0, 1.0])).fit(X, y, judges=judge)
    took = time.perf_counter() - began
    equal = PairwisePreferenceRegressor(RBF([1.0, 1.0])).fit(X, y)
    mean = model.judges_.reliability[test[2]]
    row = {
        "setting": kind,
        "seed": seed,
        "knows": log_loss(proba_at(knows.posterior, base, reliability[test[2]], test[0]), test[1]),
        "judges": log_loss(model.predict_proba(test[0], judges=test[2]), test[1]),
        "mean_reliability": log_loss(
            proba_at(model.posterior_, model.likelihood_, mean, test[0]), test[1]
        ),
        "equal": log_loss(equal.predict_proba(test[0]), test[1]),
        "knows_common": log_loss(
            proba_at(knows.posterior, base, np.ones(len(common[0])), common[0]), common[1]
        ),
        "judges_common": log_loss(model.predict_proba(common[0]), common[1]),
        "equal_common": log_loss(equal.predict_proba(common[0]), common[1]),
        "seconds": took,
    }
    relative = reliability / np.median(reliability[reliability > 0.0])
    with np.errstate(divide="ignore"):
        noise = NOISE / reliability**2
    looks = reliability != 0.0
    for level in LEVELS:
        for name, interval, truth in (
            ("reliability", model.judges_.reliability_interval(level), relative),
            ("noise", model.judges_.noise_interval(level), noise),
        ):
            held = (interval[:, 0] <= truth) & (truth <= interval[:, 1])
            row[f"{name}_{level:g}"] = float(held.mean())
            row[f"{name}_looking_{level:g}"] = float(held[looks].mean())
    return row


def real_sets():
    """Tables of items, duels, labels, judges, and options, by name."""
    data = load_llm_duels()
    names = ItemTable.from_names(data.model_names)
    yield "language models", names, data.X, data.y, data.judge, {}
    data = load_llm_duels(ties=True)
    options = {"tie_threshold": 0.1, "order_effect_bounds": (-1.0, 1.0)}
    yield "language models, ties", names, data.X, data.y, data.judge, options
    for experiment in few((1, 2), (1,)):
        home = data_folder() / "cars"
        cars = unless_missing("cars", fetch_cars, experiment=experiment, data_home=home)
        if cars is None:
            continue
        yield f"cars {experiment}", cars.item_table, cars.X, cars.y, cars.user, {}


def real(splits):
    """Rows: a fifth of the answers left out, at random."""
    for name, items, X, y, judge, options in real_sets():
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(X))[: few(None, 100)]
            test, train = np.split(order, [len(order) // 5])
            row = {"setting": name, "seed": split}
            for own_order in (0.0, 0.01) if "ties" in name else (0.0,):
                began = time.perf_counter()
                model = PairwisePreferenceRegressor(
                    items=items, judge_prior=JudgePrior(order_variance=own_order), **options
                ).fit(X[train], y[train], judges=judge[train])
                took = time.perf_counter() - began
                label = "judges_own_order" if own_order else "judges"
                at = np.searchsorted(model.classes_, y[test])
                row[label] = log_loss(model.predict_proba(X[test], judges=judge[test]), at)
                row[f"seconds_{label}"] = took
                if not own_order:
                    row |= told(model.judges_)
            equal = PairwisePreferenceRegressor(items=items, **options).fit(X[train], y[train])
            row["equal"] = log_loss(equal.predict_proba(X[test]), at)
            yield row


def told(judges: Judges):
    """What is said of the judges of a real set."""
    return {
        "n_judges": len(judges),
        "variance_of_reliability": judges.law.variance,
        "share_random": judges.law.random,
        "share_adversarial": judges.law.adversarial,
        "adversarial_95": int(np.sum(judges.probability_adversarial > 0.95)),
    }


def means(rows):
    """Of each setting."""
    for setting in dict.fromkeys(row["setting"] for row in rows):
        mine = [row for row in rows if row["setting"] == setting]
        found = {name: float(np.mean([row[name] for row in mine])) for name in list(mine[0])[2:]}
        yield {"setting": setting, "seed": "mean", **found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=["simulated", "real"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if "simulated" in options.only:
        kinds = few(("alike", "spread"), ("spread",))
        rows = [simulation(kind, seed) for kind in kinds for seed in range(options.seeds)]
        report(rows + list(means(rows)), RESULTS / "judges.csv", judges=N_JUDGES)
    if "real" in options.only:
        rows = list(real(options.splits))
        report(rows + list(means(rows)), RESULTS / "judges_real.csv")


if __name__ == "__main__":
    main()
