"""Pictures of votes, judges, tastes, chains and a search
======================================================

Pictures of votes, of those who cast them, of a sampler, and of where a search looks next.

Verdicts of 124 people on 59 language models: how often each model beats each other one, how
reliable each person is as a judge of one truth, how their tastes differ, and on which prompts
predictions of verdicts left out are off. Then the exact posterior of a few verdicts is drawn by a
sampler, whose chains are looked at, and somebody's favourite tea is searched for along two dials.

Run with ``--save FOLDER`` to write the pictures.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skpref import (
    CollaborativePreferenceRegressor,
    HallucinationBelieverOptimizer,
    PairwisePreferenceRegressor,
)
from skpref.datasets import load_llm_duels
from skpref.duels import ItemTable
from skpref.inference import HMC
from skpref.inspection import group_residuals, judge_reliability, sampler_traces, user_tastes
from skpref.plotting import (
    AcquisitionDisplay,
    JudgesDisplay,
    ResidualsDisplay,
    TastesDisplay,
    TracesDisplay,
    WinRatesDisplay,
)

# Of the crowd's verdicts, as the evidence has them.
NOISE = {"noise_variance": 1.0, "tie_threshold": 0.8, "optimizer": None}
FAVOURITE = {"minutes": 3.2, "degrees": 82.0}


def keep(display, name):
    """Write the picture where ``--save`` says."""
    if "--save" in sys.argv:
        path = Path(sys.argv[-1]) / f"{name}.png"
        display.figure_.savefig(path, dpi=130, facecolor="white")


def better(first, second):
    """A person who tastes two cups."""

    def off(cup):
        time = np.log(cup["minutes"] / FAVOURITE["minutes"])
        return time**2 + ((cup["degrees"] - FAVOURITE["degrees"]) / 25.0) ** 2

    return off(first) < off(second)


# %%
# Verdicts, three in ten of them left out.
data = load_llm_duels(ties=True)
table = ItemTable.from_names(data.model_names)
test = np.random.default_rng(0).random(len(data.y)) < 0.3
X, y, people = data.X[~test], data.y[~test], data.judge[~test]

# %%
# People as judges of one truth: how often each model beats each other one.
judged = PairwisePreferenceRegressor(items=table, **NOISE).fit(X, y, judges=people)
judges = judge_reliability(judged)
guessing = int(np.sum(judges.probability_random > 0.5))
print(f"{guessing} of {len(judges.names)} people seem to answer at random.")

keep(WinRatesDisplay.from_estimator(judged, top=10), "win_rates")

# %%
# How reliable each is.
keep(JudgesDisplay.from_estimator(judged, least_answers=100), "judges")

# %%
# People with tastes of their own.
tasteful = CollaborativePreferenceRegressor(items=table, **NOISE).fit(X, y, users=people)
busy = np.unique(people, return_counts=True)
busy = busy[0][np.argsort(-busy[1], kind="stable")[:25]]
tastes = user_tastes(tasteful, users=busy)
print(f"Two directions hold {tastes.share.sum():.0%} of how the busiest 25 differ.")

keep(TastesDisplay.from_estimator(tasteful, users=busy), "tastes")

# %%
# Where predictions of verdicts left out are off.
proba = judged.predict_proba(data.X[test], judges=data.judge[test])
prompts = np.array(data.prompt_names)[data.prompt[test]]
off = group_residuals(data.y[test], proba, prompts, classes=judged.classes_)
out = int(np.sum(np.abs(off.surprise) > off.surprise_band))
print(f"Predictions are too sure or too timid on {out} of {len(off.groups)} prompts.")

keep(
    ResidualsDisplay.from_predictions(
        data.y[test], proba, prompts, classes=judged.classes_, kind="surprise"
    ),
    "residuals",
)

# %%
# The exact posterior of a few verdicts, by a sampler.
engine = HMC(draws=600, chains=4)
few = PairwisePreferenceRegressor(items=table, inference=engine, random_state=0, **NOISE)
few.fit(X[:300], y[:300])
traces = sampler_traces(few)
print(f"Of {traces.draws[0].size} draws the worst R̂ of a model is {traces.rhat.max():.3f}.")

keep(TracesDisplay.from_estimator(few), "traces")

# %%
# A search along two dials: what is known, and where it looks next.
space = {"minutes": (0.5, 10.0), "degrees": (60.0, 100.0)}
optimizer = HallucinationBelieverOptimizer(space, random_state=0)
cup = optimizer.run(better, n_duels=20)
print(f"Best after 20 cups: {cup['minutes']:.1f} minutes at {cup['degrees']:.0f} degrees.")
keep(AcquisitionDisplay.from_optimizer(optimizer), "acquisition")
plt.show()
