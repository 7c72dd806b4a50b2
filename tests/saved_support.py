"""Small fitted models of every kind, and what each is asked, here and in another process."""

import json
import sys

import numpy as np
import pandas as pd
from chains_support import chains_alone
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from skpref import (
    CollaborativePreferenceRegressor,
    ItemTable,
    JudgePrior,
    PairwisePreferenceRegressor,
)
from skpref.duels import from_teams
from skpref.inference import EP, HMC, SVI, Gibbs, KrigingBeliever
from skpref.inspection import leaderboard
from skpref.kernels import Intransitive, leaderboard_kernel

_RNG = np.random.default_rng(5)
N = 30
X = _RNG.normal(size=(N, 2, 2))
Y = (X[:, 0].sum(axis=1) + 0.5 * _RNG.normal(size=N) > X[:, 1].sum(axis=1)).astype(int)
NAMES = np.array(["ann", "bob", "cid", "dan"], dtype=object)
GAMES = NAMES[np.array([_RNG.choice(4, 2, replace=False) for _ in range(N)])]
WHO = np.array(["una", "vic", "wim"], dtype=object)[_RNG.integers(3, size=N)]
TIME = np.sort(_RNG.uniform(0.0, 9.0, N))
DATES = np.datetime64("2024-02-28") + np.floor(30.0 * TIME).astype("timedelta64[D]")
_PAIRS = np.array([_RNG.permutation(6) for _ in range(N)]).reshape(N, 2, 3)
DOUBLES = from_teams(_PAIRS[:, 0, :2].tolist(), _PAIRS[:, 1].tolist())
TRAITS = {"una": [0.0, 1.0], "vic": [1.0, 0.5], "wim": [2.0, 0.0]}
FRAME = pd.DataFrame(X[:, 0], columns=["height", "weight"])
TABLE = ItemTable(pd.DataFrame({"a": [0.1, 0.4, 0.2, 0.9], "b": [1.0, 2.0, 3.0, 4.0]}, index=NAMES))
# Ids and lengths of answers, as arrays of duels.
LONG = np.stack([np.searchsorted(NAMES, GAMES), _RNG.normal(size=(N, 2))], axis=2)

One, Many = PairwisePreferenceRegressor, CollaborativePreferenceRegressor
FIXED = {"kernel": RBF(1.0), "optimizer": None, "noise_variance": 0.1}


def _stream(n):
    """Of three pieces, of which the last may come later."""
    model = One(inference=SVI(n_inducing=8), random_state=0, **FIXED)
    for begin in range(0, n, 10):
        model.partial_fit(X[begin : begin + 10], Y[begin : begin + 10])
    return model


def _told_later():
    model = One(drift="matern32", inference=EP(items="independent"), optimizer=None)
    return model.fit(GAMES[:20], time=TIME[:20]).partial_fit(GAMES[20:], time=TIME[20:])


@chains_alone()
def _chains():
    return _told_later()


@chains_alone()
def _teams_in_time():
    options = {"drift": "wiener", "inference": EP(items="independent"), "optimizer": None}
    return One(**DOUBLES.params, **options).fit(DOUBLES.X, Y, time=TIME)


MODELS = {
    "learned": lambda: One().fit(X, Y),
    "ties in order": lambda: One(tie_threshold=0.2, order_effect=0.1, **FIXED).fit(
        X, np.where(np.arange(N) % 4, 2 * Y - 1, 0), order=np.ones(N, int)
    ),
    "grades": lambda: One(grade_thresholds=(0.5,), **FIXED).fit(
        X, (2 * Y - 1) * (1 + np.arange(N) % 2)
    ),
    "ratings": lambda: One(RBF([1.0, 2.0]) + WhiteKernel(), optimizer=None).fit(FRAME, X[:, 1, 0]),
    "choices": lambda: One(**FIXED).fit(X.reshape(-1, 4, 2), np.arange(N // 2) % 4),
    "laplace": lambda: One(inference="laplace", **FIXED).fit(X, Y),
    "hmc": lambda: One(inference=HMC(draws=40), random_state=0, **FIXED).fit(X, Y),
    "gibbs": lambda: One(inference=Gibbs(draws=40), random_state=0, **FIXED).fit(X, Y),
    "believer": lambda: One(inference=KrigingBeliever(), **FIXED).fit(X, Y),
    "minibatches": lambda: One(
        inference=SVI(n_inducing=6, batch_size=10), random_state=0, **FIXED
    ).fit(X, Y),
    "stream": lambda: _stream(N),
    "names": lambda: One(optimizer=None).fit(GAMES),
    "table": lambda: One(items=TABLE, optimizer=None).fit(GAMES),
    "circles": lambda: One(RBF(1.0) + Intransitive(RBF(1.0)), optimizer=None).fit(X, Y),
    "board": lambda: One(leaderboard_kernel(LONG, id_column=0), id_column=0, optimizer=None).fit(
        LONG, Y
    ),
    "through time": lambda: One(drift="wiener", optimizer=None).fit(GAMES, time=DATES),
    "told later": _chains,
    "teams in time": _teams_in_time,
    "judges": lambda: One(
        judge_prior=JudgePrior(random=0.1, adversarial=0.05, order_variance=0.1), **FIXED
    ).fit(X, Y, judges=WHO, order=np.ones(N, int)),
    "users": lambda: Many(n_inducing=8, **FIXED).fit(X, Y, users=WHO),
    "users by features": lambda: Many(
        user_features=TRAITS, user_kernel=Matern(nu=1.5), n_inducing=8, **FIXED
    ).fit(X, Y, users=WHO),
    "users by vb": lambda: Many(
        inference="vb", max_iter=20, n_inducing=8, random_state=0, **FIXED
    ).fit(X, Y, users=WHO),
    "one user": lambda: Many(**FIXED).fit(X, Y),
    "few told later": _told_later,
}


def answers(name, model, draws=True):
    """What a model says of all that it may be asked, as one list of arrays.

    ``draws=False``: without draws, which depend on the library of linear algebra.
    """
    others = {"board": LONG, "choices": X.reshape(-1, 4, 2)}
    others["teams in time"] = DOUBLES.X
    others |= dict.fromkeys(("names", "table", "through time"), GAMES)
    others |= dict.fromkeys(("told later", "few told later"), GAMES)
    shown = others.get(name, X)
    items = shown.reshape(-1, *shown.shape[2:])[:8]
    told = {"users": WHO} if name.startswith("users") else {}
    if "time" in name or "later" in name:
        told = {"time": DATES if name == "through time" else TIME}
    first = {key: values[:8] for key, values in told.items()}
    if name == "ratings":
        said = list(model.predict(FRAME, return_std=True))
        return [*said, model.sample_y(FRAME, 2, random_state=3)] if draws else said
    said = [
        *model.predict(items, return_std=True, **first),
        model.predict(items, return_cov=True, **first)[1],
        model.predict_proba(shown, **told),
        model.predict_proba(shown, **({"order": np.ones(len(shown), int)} | told)),
        model.decision_function(shown, **told),
    ]
    if name == "judges":
        one = np.ones(N, int)
        said += [
            model.predict_proba(X, judges=WHO, order=one),
            *model.judges_.reliability_interval().T,
        ]
    if draws:
        said.append(model.sample_y(items, 2, random_state=3, **first))
    if draws and name in ("names", "table", "board"):
        board = leaderboard(model, n_draws=200)
        said += [board.utility, board.lower, board.upper]
    if name == "told later":
        said.append(model.posterior_.smoothed().mean(NAMES))
    return said


def largest(found, truth):
    """The largest difference of two lists of arrays."""
    return max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in zip(found, truth, strict=True))


def of_another_process(folder):
    """How far models in files of arrays are from what they said when they were written."""
    off = {}
    for path in sorted(folder.glob("*.npz")):
        name = path.stem
        with np.load(path) as arrays:
            model = (Many if "user" in name else One).from_arrays(arrays)
        with np.load(path.with_suffix(".said")) as said:
            off[name] = largest(answers(name, model), [said[key] for key in said.files])
    return off


if __name__ == "__main__":
    from pathlib import Path

    print(json.dumps(of_another_process(Path(sys.argv[1]))))
