"""A fixed set of fits whose results are kept: written by one version, compared by another.

Every engine, kind of answer, kernel, model of judges and of users, stream, optimizer and query is
fitted to small made-up data, by the public names alone. Run:
``python benchmarks/robustness/same_results.py --write before.npz`` with one version of the
package and ``python benchmarks/robustness/same_results.py --compare before.npz`` with the other;
some two minutes each.
``--only PATTERN`` takes the cases whose names match a regular expression, ``--list`` shows them.

The table has a row for each case and a column for each kind of number. A difference is absolute
where numbers are below 1 and relative above:

    held        posteriors at hyperparameters that are given, and whatever else is exact
    evidence    log evidence and its gradient there
    learned     hyperparameters that were learned, as logarithms
    fitted      posteriors and evidence at these
    asked       questions that follow from the posterior: rows of a pool, or points of a space
    drawn       averages over many draws of a sampler, at one seed
    chance      single draws, and questions that follow from them, at one seed

A sum taken in another order may turn the sign of an eigenvector or break a tie, and lead to other
draws at the same seed. So a difference of "drawn" or "chance" above 1e-6 is shown with a "~", and
fails only where other draws could not make it: above 0.3 of "drawn". All else fails, "!", above
the limits in ``ALLOWED``; with another BLAS kernel (``OPENBLAS_CORETYPE=Haswell``) one version
stays far below them. A case that raises keeps the exception as text, so that raising, or raising
something else, is a difference too.
"""

import argparse
import os
import re
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from scipy import stats
from scipy.special import expit
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Hyperparameter,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from skpref import (
    CollaborativePreferenceRegressor,
    HallucinationBelieverOptimizer,
    ItemTable,
    JudgePrior,
    PairwisePreferenceRegressor,
    PreferenceOptimizer,
)
from skpref.inference import (
    EP,
    HMC,
    SVI,
    ConstantLiar,
    Gibbs,
    Hallucination,
    KrigingBeliever,
    Laplace,
)
from skpref.kernels import Identity, ItemEffect, OnColumns, PreferenceKernel, ProductMatern
from skpref.likelihoods import DUEL, TIE, Derivatives, Likelihood, Probit

# Largest difference allowed, by the first word of a number's name.
ALLOWED = {
    "held": 1e-9,
    "evidence": 1e-9,
    "learned": 1e-4,
    "fitted": 1e-3,
    "asked": 1e-3,
    "drawn": 1e-6,
    "chance": 1e-6,
}
# What other draws may change.
OTHER_DRAWS = {"drawn": 0.3, "chance": np.inf}
CASES = {}


def make(cls, *args, **parameters):
    """An estimator, with judges' prior from a dict of its parameters."""
    prior = parameters.pop("judge_prior", None)
    if prior is not None:
        parameters["judge_prior"] = JudgePrior(**prior)
    return cls(*args, **parameters)


# -- data ------------------------------------------------------------------------------------


def truth(X):
    """A smooth utility of rows of any number of features."""
    X = np.asarray(X, dtype=np.float64)
    return np.sin(3.0 * X[:, 0]) + X[:, 1:].sum(axis=1) ** 2 * 0.6 - 0.3 * X[:, -1]


class Data:
    """Items, answers about them, and what is asked of the fit."""

    def __init__(self, n=60, n_items=14, d=2, noise=0.1, seed=0):
        self.rng = rng = np.random.default_rng([seed, n, n_items, d])
        self.n, self.n_items = n, n_items
        self.items = rng.random((n_items, d))
        self.utility = truth(self.items)
        self.noise = np.sqrt(noise)
        self.pairs = self.sets(2, n)
        self.y = self.outcomes(self.pairs)
        self.new = rng.random((5, d))
        self.ask_items = np.concatenate([self.items[:6], self.new])
        self.ask_pairs = self.sets(2, 8)

    def sets(self, k, n):
        """So many sets of different items, as positions."""
        return np.array([self.rng.choice(self.n_items, k, replace=False) for _ in range(n)])

    def noisy(self, sets):
        """What a judge sees."""
        return self.utility[sets] + self.noise * self.rng.standard_normal(sets.shape)

    def outcomes(self, pairs, shift=0.0, tie=None):
        """Of duels, in {0, 1}, or {-1, 0, 1} where there are ties."""
        seen = self.noisy(pairs)
        margin = seen[:, 0] - seen[:, 1] + shift
        if tie is None:
            return (margin > 0.0).astype(int)
        return np.where(np.abs(margin) < tie, 0, np.sign(margin)).astype(int)

    @property
    def X(self):
        return self.items[self.pairs]

    @property
    def ask_duels(self):
        known = self.items[self.ask_pairs]
        return np.concatenate([known, np.stack([self.new[:4], self.new[1:]], axis=1)])


def distinct(n=50, d=2, seed=0):
    """Duels between items that are met once."""
    data = Data(n, 2 * n, d, seed=seed)
    data.pairs = np.arange(2 * n).reshape(n, 2)
    data.y = data.outcomes(data.pairs)
    return data


# -- what is written down --------------------------------------------------------------------


class Written(dict):
    """Numbers of a case by their names, "kind.what"."""

    def put(self, kind, **numbers):
        for name, value in numbers.items():
            self[f"{kind}.{name}"] = np.asarray(value)

    def posterior(self, kind, model, items, duels=None, duels_by=None, **by):
        """Predictions of an estimator for items and for duels."""
        mean, std = model.predict(items, return_std=True, **by)
        self.put(kind, mean=mean, std=std)
        if duels is not None:
            by = by if duels_by is None else duels_by
            self.put(
                kind,
                proba=model.predict_proba(duels, **by),
                decision=model.decision_function(duels, **by),
            )

    def hyperparameters(self, model, name="", kind="learned"):
        """Of kernel and likelihood, those that are positive as logarithms."""
        self.put(kind, **{f"kernel{name}": model.kernel_.theta})
        named = ("noise_variance_", "tie_threshold_", "order_effect_")
        found = {each: getattr(model, each, None) for each in named}
        if all(each is None for each in found.values()):
            found = {
                f"likelihood_{each}": getattr(model.likelihood_, each)
                for each in model.likelihood_.hyperparameters
            }
        for each, value in found.items():
            if value is not None:
                linear = "order" in each
                self.put(kind, **{f"{each}{name}": value if linear else np.log(value)})

    def evidence(self, model, gradient=True):
        """Log evidence at what was given, and with its gradient somewhere else."""
        self.put("evidence", value=model.log_marginal_likelihood_value_)
        if gradient:
            self.gradient(model)

    def gradient(self, model, free=""):
        """Log evidence and its gradient at hyperparameters that depend on nothing.

        Inducing points do, if these were learned.
        """
        kind = "fitted" if free and isinstance(model.engine_, SVI) else "evidence"
        size = len(model.log_marginal_likelihood(None, eval_gradient=True)[1])
        if size:
            at = np.linspace(-0.4, -1.6, size)
            value, slope = model.log_marginal_likelihood(at, eval_gradient=True)
            self.put(kind, **{f"elsewhere{free}": value, f"slope{free}": slope})


def case(label, /, **options):
    """Register a function of `Written` as a case."""

    def register(function):
        if label in CASES:
            raise ValueError(f"two cases {label}")
        CASES[label] = partial(function, **options)
        return function

    return register


def both(found, cls, parameters, X, y, items, duels=None, *, fit=None, ask=None, drawn=None,
         learn=True, hold=True, gradient=True):  # fmt: skip
    """Fit with the hyperparameters as given, and with them learned."""
    fit, ask = fit or {}, ask or {}
    if hold:
        model = make(cls, optimizer=None, random_state=0, **parameters).fit(X, y, **fit)
        found.posterior(drawn or "held", model, items, duels, ask)
        found.evidence(model, gradient)
    if learn:
        model = make(cls, random_state=0, **parameters).fit(X, y, **fit)
        kind = drawn or "fitted"
        found.hyperparameters(model)
        rename = Written()
        rename.posterior(kind, model, items, duels, ask)
        found.update({f"{name}_learned": value for name, value in rename.items()})
        found.put("fitted", evidence=model.log_marginal_likelihood_value_)
        if gradient:
            found.gradient(model, "_free")
    return model


regress = partial(both, cls=PairwisePreferenceRegressor)

# -- engines times kinds of answers ------------------------------------------------------------

CALM_HMC = HMC(draws=100, chains=10, burn_in=3)
CALM_GIBBS = Gibbs(draws=100, chains=10, burn_in=3, thin=3)
ENGINES = {
    "ep": EP(),
    "ep-damped": EP(damping=0.3),
    "ep-tight": EP(tol=1e-12),
    "laplace": Laplace(),
    "gibbs": CALM_GIBBS,
    "hmc": CALM_HMC,
    "svi": SVI(n_inducing=100),
    "svi-few": SVI(n_inducing=6),
}
SETS = ("choice", "worst", "ranking", "partial", "sizes", "choice-order")
SAMPLED = ("gibbs", "hmc", "hmc-walls", "hmc-margins", "hmc-auto", "laplace-evidence")


def answers_of(kind):
    """X, y, parameters, arguments of fit, and what is asked, of a kind of answer."""
    data = distinct() if kind == "distinct" else Data()
    items, duels, fit, ask, more = data.ask_items, data.ask_duels, {}, {}, {}
    X, y = data.X, data.y
    if kind == "repeats":
        data.pairs = data.pairs[np.arange(60) % 20]
        X, y = data.X, data.outcomes(data.pairs)
    elif kind == "tie":
        y, more = data.outcomes(data.pairs, tie=0.3), {"tie_threshold": 0.2}
    elif kind in ("order", "order-tie"):
        order = data.rng.integers(-1, 2, data.n)
        tie = 0.25 if kind == "order-tie" else None
        y = data.outcomes(data.pairs, 0.4 * order, tie)
        more = {"order_effect": 0.2, "order_effect_bounds": (-2.0, 2.0)}
        more |= {} if tie is None else {"tie_threshold": 0.3}
        fit, ask = {"order": order}, {"order": np.resize([1, 0, -1], len(duels))}
    elif kind == "weights":
        fit = {"sample_weight": data.rng.integers(0, 4, data.n).astype(float)}
    elif kind == "fractional":
        fit = {"sample_weight": 3.0 * data.rng.random(data.n)}
    elif kind in SETS:
        sets = data.sets(4, 30)
        seen = data.noisy(sets)
        rank = (-seen).argsort(axis=1).argsort(axis=1) + 1
        duels, X = data.items[data.sets(4, 6)], data.items[sets]
        y = {
            "worst": np.where(rank == 4, 2, 1),
            "ranking": rank,
            "partial": np.where(rank < 3, rank, np.where(rank == 3, 0, 3)),
        }.get(kind, seen.argmax(axis=1))
        if kind == "sizes":
            few = np.arange(30) % 2 == 0
            X[few, 3] = np.nan
            seen[few, 3] = -np.inf
            y = seen.argmax(axis=1)
        if kind == "choice-order":
            more = {"order_effect": 0.2, "order_effect_bounds": (-2.0, 2.0)}
            fit, ask = {"order": np.arange(30) % 2}, {"order": [1, 0, 1, 0, 1, 0]}
    elif kind == "rated":
        X, y = data.items, np.round(data.utility, 1)
        fit, duels = {"qid": np.arange(data.n_items) % 2}, None
    return X, y, more, fit, ask, items, duels


def of_engine(found, name, engine, kind):
    """One engine on one kind of answer."""
    X, y, more, fit, ask, items, duels = answers_of(kind)
    parameters = {"kernel": RBF([0.5, 0.8]), "noise_variance": 0.08, "inference": engine} | more
    drawn = "drawn" if name in SAMPLED else "chance" if name == "hallucination" else None
    regress(found, parameters=parameters, X=X, y=y, items=items, duels=duels, fit=fit, ask=ask,
            drawn=drawn, gradient=drawn is None)  # fmt: skip


KINDS = ("duel", "distinct", "repeats", "tie", "order", "order-tie", "weights", "fractional",
         "rated", *SETS)  # fmt: skip
for _kind in KINDS:
    for _name, _engine in ENGINES.items():
        if _kind in SETS[1:] and _name in ("laplace", "svi", "svi-few"):
            continue  # that they take no sets is seen once
        case(f"answers/{_kind}/{_name}", name=_name, engine=_engine, kind=_kind)(of_engine)
for _name, _engine in {
    "hmc-walls": HMC(draws=60, chains=6, burn_in=3, method="walls"),
    "hmc-margins": HMC(draws=60, chains=6, burn_in=3, method="margins"),
    "hmc-auto": HMC(draws=200, chains=10),
    "hallucination": Hallucination(),
    "kriging": KrigingBeliever(),
    "liar": ConstantLiar(),
    "ep-few-sweeps": EP(max_iter=3),
    "laplace-evidence": HMC(draws=60, chains=6, burn_in=3, evidence="laplace"),
}.items():
    for _kind in ("duel", "repeats", "tie", "choice"):
        case(f"engines/{_name}/{_kind}", name=_name, engine=_engine, kind=_kind)(of_engine)

# -- variational inference and its variants ----------------------------------------------------

POINTS = np.random.default_rng(3).random((8, 2))
VARIANTS = {
    "points": SVI(inducing_points=POINTS),
    "batches": SVI(n_inducing=10, batch_size=25, max_iter=20),
    "bound": SVI(n_inducing=10, evidence="bound"),
    "ekf": SVI(n_inducing=10, local="ekf"),
    "ekf-batches": SVI(n_inducing=10, local="ekf", batch_size=25, max_iter=20),
    "gamma": SVI(n_inducing=10, scale_prior=(2.0, 1.0)),
    "gamma-batches": SVI(n_inducing=10, scale_prior=(2.0, 1.0), batch_size=25, max_iter=20),
    "gamma-ekf": SVI(n_inducing=10, scale_prior=(2.0, 1.0), local="ekf"),
    "tight": SVI(n_inducing=10, tol=1e-8),
    "one-job": SVI(n_inducing=10, n_jobs=1),
}
for _name, _engine in VARIANTS.items():
    for _kind in ("duel", "tie", "order", "weights", "rated"):

        @case(f"svi/{_name}/{_kind}", engine=_engine, kind=_kind)
        def _svi(found, engine, kind):
            X, y, more, fit, ask, items, duels = answers_of(kind)
            parameters = {"kernel": 0.8 * RBF([0.5, 0.8]), "noise_variance": 0.08} | more
            if engine.scale_prior is not None:
                parameters |= {"kernel": RBF([0.5, 0.8]), "noise_variance_bounds": "fixed"}
            regress(found, parameters=parameters | {"inference": engine}, X=X, y=y, items=items,
                    duels=duels, fit=fit, ask=ask, gradient=engine.local != "ekf")  # fmt: skip


@case("svi/shards")
def _shards(found):
    data = Data(60_000, 30)
    parameters = {"kernel": RBF(0.6), "noise_variance": 0.1, "inference": SVI(12, n_jobs=1)}
    regress(found, parameters=parameters, X=data.X, y=data.y, items=data.ask_items,
            duels=data.ask_duels, gradient=False, learn=False)  # fmt: skip


@case("svi/moved-points", n_inducing=20)
@case("svi/many", n_inducing=60)
def _svi_many(found, n_inducing):
    data = distinct(1000, 3)
    parameters = {"kernel": RBF([0.4, 0.5, 0.6]), "noise_variance": 0.1}
    parameters["inference"] = SVI(n_inducing)
    regress(found, parameters=parameters, X=data.X, y=data.y, items=data.ask_items,
            duels=data.ask_duels, gradient=False)  # fmt: skip


# -- kernels -----------------------------------------------------------------------------------


class Lengths(Kernel):
    """A kernel of a user's own, by nothing but what scikit-learn asks of one."""

    def __init__(self, length=0.7, length_bounds=(1e-2, 1e2)):
        self.length, self.length_bounds = length, length_bounds

    @property
    def hyperparameter_length(self):
        return Hyperparameter("length", "numeric", self.length_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        X = np.atleast_2d(X)
        Z = X if Y is None else np.atleast_2d(Y)
        square = ((X[:, None] - Z) ** 2).sum(axis=-1) / self.length**2
        K = 1.0 / (1.0 + square)
        return (K, (2.0 * square * K**2)[..., None]) if eval_gradient else K

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return True


KERNELS = {
    "none": None,
    "rbf": RBF(0.5),
    "ard": RBF([0.5, 0.8]),
    "matern12": Matern(0.5, nu=0.5),
    "matern32": Matern([0.5, 0.8], nu=1.5),
    "matern52": Matern(0.5, nu=2.5),
    "matern-other": Matern(0.5, nu=0.9),
    "rational": RationalQuadratic(0.5, 1.2),
    "linear": DotProduct(0.8),
    "squared": Exponentiation(DotProduct(0.8), 2),
    "periodic": OnColumns(ExpSineSquared(0.7, 2.0), [0]) + OnColumns(RBF(0.5), [1]),
    "constant": 0.7 * RBF(0.5),
    "sum": 0.7 * RBF(0.5) + 0.4 * DotProduct(1.0),
    "product": RBF([0.5, 0.8]) * ConstantKernel(1.4) * Matern(0.9, nu=2.5),
    "white": RBF(0.5) + WhiteKernel(0.1),
    "effect": RBF(0.5) + 0.1 * ItemEffect(),
    "identity": Identity(),
    "columns": OnColumns(RBF(0.5), [0]) + 0.5 * OnColumns(Matern(0.6, nu=1.5), [1]),
    "product-matern": ProductMatern([0.5, 0.8]),
    "own": Lengths(),
    "own-sum": 0.5 * Lengths() + RBF([0.5, 0.8]),
}
for _name, _kernel in KERNELS.items():
    for _engine in ("ep", "laplace", "svi"):

        @case(f"kernels/{_name}/{_engine}", kernel=_kernel, engine=_engine)
        def _kernels(found, kernel, engine):
            data = Data(50, 12)
            parameters = {"kernel": kernel, "noise_variance": 0.1, "inference": ENGINES[engine]}
            regress(found, parameters=parameters, X=data.X, y=data.y, items=data.ask_items,
                    duels=data.ask_duels)  # fmt: skip


@case("kernels/identity/sampled", kernel=Identity(), prior="lognormal")
@case("kernels/no-prior", kernel=RBF([0.5, 0.8]), prior=None, engine=EP())
@case("kernels/own-prior", kernel=RBF([0.5, 0.8]), prior=(0.5, 0.3), engine=EP())
def _priors(found, kernel, prior, engine=CALM_HMC):
    data = Data(50, 12)
    parameters = {"kernel": kernel, "noise_variance": 0.1, "lengthscale_prior": prior}
    regress(found, parameters=parameters | {"inference": engine}, X=data.X, y=data.y,
            items=data.ask_items, duels=data.ask_duels,
            drawn=None if isinstance(engine, EP) else "drawn", gradient=False)  # fmt: skip


@case("kernels/on-duels")
def _on_duels(found):
    data = Data(20, 8)
    kernel = PreferenceKernel(0.7 * RBF([0.5, 0.8]) + 0.2 * DotProduct(1.0))
    K, gradient = kernel(data.X.reshape(20, -1), eval_gradient=True)
    found.put("held", K=K, gradient=gradient, diag=kernel.diag(data.X.reshape(20, -1)))


# -- items: names, tables, ids -----------------------------------------------------------------


@case("items/names", engine="auto")
@case("items/names/laplace", engine="laplace")
@case("items/names/svi", engine="svi")
@case("items/names/ties", engine="ep", tie=0.3)
def _names(found, engine, tie=None):
    data = Data(80, 12)
    names = np.array([f"player {k:02d}" for k in range(12)])
    more = {} if tie is None else {"tie_threshold": 0.2}
    y = data.outcomes(data.pairs, tie=tie)
    parameters = {"inference": engine, "noise_variance": 0.3, "items": list(names)} | more
    regress(found, parameters=parameters, X=names[data.pairs], y=y, items=names,
            duels=names[data.ask_pairs])  # fmt: skip


@case("items/names/seen")
def _names_seen(found):
    data = Data(80, 12)
    names = np.array([f"player {k:02d}" for k in range(12)])
    regress(found, parameters={"noise_variance": 0.3}, X=names[data.pairs], y=data.y,
            items=names[np.unique(data.pairs)], duels=names[data.ask_pairs])  # fmt: skip


@case("items/table")
def _table(found):
    data = Data(60, 12)
    table = ItemTable(data.items, names=[f"n{k}" for k in range(12)])
    parameters = {"items": table, "noise_variance": 0.1}
    model = regress(found, parameters=parameters, X=data.pairs, y=data.y, items=table,
                    duels=data.ask_pairs)  # fmt: skip
    by_name = np.array([f"n{k}" for k in range(12)])[data.ask_pairs]
    found.put("fitted", by_name=model.predict_proba(by_name))


@case("items/ids", kernel=None)
@case("items/ids/kernel", kernel=OnColumns(RBF(0.6), [1, 2]) + 0.3 * OnColumns(Identity(), [0]))
@case("items/ids/svi", kernel=None, engine=SVI(30))
@case("items/ids/held-few", kernel=None, engine=SVI(5))
def _ids(found, kernel, engine="ep"):
    data = Data(70, 12)
    who = np.arange(12.0)[:, None]
    form = data.rng.random((70, 2, 1))  # a feature that changes from duel to duel
    X = np.concatenate([who[data.pairs], data.X[:, :, :1], form], axis=2)
    at = data.rng.random((12, 1))
    items = np.concatenate([who, data.items[:, :1], at], axis=1)
    parameters = {"kernel": kernel, "id_column": 0, "noise_variance": 0.1, "inference": engine}
    regress(found, parameters=parameters, X=X, y=data.y, items=items, duels=X[::7])


@case("items/frame")
def _frame(found):
    import pandas as pd

    from skpref.duels import from_columns

    data = Data(60, 12)
    frame = {
        "home": [f"p{k}" for k in data.pairs[:, 0]],
        "away": [f"p{k}" for k in data.pairs.T[1]],
    }
    for side, name in enumerate(("home", "away")):
        for j in range(2):
            frame[f"{name}_x{j}"] = data.X[:, side, j]
    frame["won"] = np.where(data.y == 1, "home", "away")
    frame = pd.DataFrame(frame)
    first, second = ["home_x0", "home_x1"], ["away_x0", "away_x1"]
    X, y = from_columns(frame, first, second, "won", ids=("home", "away"))
    found.put("held", y=y)
    regress(found, parameters={"noise_variance": 0.1}, X=X, y=y, items=X[:6, 0], duels=X[:6])


@case("items/builders")
def _builders(found):
    from skpref.duels import (
        from_choices,
        from_pairs,
        from_rankings,
        from_ratings,
        from_wins,
        ranking_groups,
        rated_pairs,
    )

    data = Data(30, 8)
    wins = data.rng.integers(0, 4, (8, 8))
    np.fill_diagonal(wins, 0)
    ranked = [list(map(int, each)) for each in data.sets(4, 6)]
    built = {
        "pairs": from_pairs(data.items, data.pairs, data.y),
        "wins": from_wins(wins, data.items),
        "positions": from_wins(wins),
        "rankings": from_rankings(ranked, data.items),
        "adjacent": from_rankings(ranked, data.items, adjacent=True),
        "joint": from_rankings(ranked, data.items, joint=True),
        "ratings": from_ratings(data.items, np.round(data.utility, 1)),
        "choices": from_choices(data.sets(3, 7), [0, 1, 2, 0, 1, 2, 0], data.items),
        "worst": from_choices(data.sets(3, 7), [0, 1, 2, 0, 1, 2, 0], data.items, worst=True),
    }
    for name, (X, y) in built.items():
        found.put("held", **{f"X_{name}": np.asarray(X), f"y_{name}": y})
    found.put("held", groups=ranking_groups(ranked))
    many = np.random.default_rng(0).random(1500)
    for k, each in enumerate(rated_pairs(many, np.arange(1500) % 3)):
        found.put("held", **{f"rated_{k}": each})


# -- judges ------------------------------------------------------------------------------------


def judged(seed=0, n=180, tie=None, order=False):
    """Duels by eight judges, of whom one answers at random and one the wrong way round."""
    data = Data(n, 14, seed=seed)
    judge = np.arange(n) % 8
    reliability = np.array([1.0, 1.3, 0.7, 1.0, 0.5, 1.5, 0.0, -1.0])[judge]
    own = 0.3 * np.linspace(-1.0, 1.0, 8)[judge] if order else 0.0
    margin = (data.utility[data.pairs] @ [1.0, -1.0]) * reliability + own
    margin = margin + 0.4 * data.rng.standard_normal(n)
    data.y = (margin > 0.0).astype(int)
    if tie is not None:
        data.y = np.where(np.abs(margin) < tie, 0, np.sign(margin)).astype(int)
    data.judges = np.array([f"j{k}" for k in judge])
    return data


JUDGED = {
    "plain": {},
    "held": {"judge_prior": {"variance": 0.2, "variance_bounds": "fixed"}},
    "shares": {"judge_prior": {"random": 0.2, "adversarial": 0.1}},
    "order": {"judge_prior": {"order_variance": 0.05}},
    "order-held": {"judge_prior": {"order_variance": 0.05, "order_variance_bounds": "fixed"}},
    "ties": {"tie_threshold": 0.2},
    "laplace": {"inference": "laplace"},
    "svi": {"inference": SVI(20)},
    "svi-few": {"inference": SVI(6)},
    "hmc": {"inference": CALM_HMC},
    "names": {"names": True},
    "part": {"n_learning_answers": 90},
    "default-kernel": {"kernel": None},
}
for _name, _more in JUDGED.items():
    for _learn in (False, True):

        @case(f"judges/{_name}/{'learned' if _learn else 'held'}", more=_more, learn=_learn)
        def _judges(found, more, learn):
            more = dict(more)
            order = "order_variance" in more.get("judge_prior", {})
            more |= {"judge_prior": dict(more["judge_prior"])} if "judge_prior" in more else {}
            data = judged(tie=0.3 if "tie_threshold" in more else None, order=order)
            X, items, duels = data.X, data.ask_items, data.ask_duels
            parameters = {"kernel": RBF([0.5, 0.8]), "noise_variance": 0.1}
            if more.pop("names", False):
                names = np.array([f"n{k}" for k in range(14)])
                X, items, duels = names[data.pairs], names, names[data.ask_pairs]
                parameters = {"items": list(names), "noise_variance": 0.3}
            parameters |= more | ({} if learn else {"optimizer": None})
            model = make(PairwisePreferenceRegressor, random_state=0, **parameters)
            model.fit(X, data.y, judges=data.judges)
            kind = "fitted" if learn else "held"
            if parameters.get("inference") is CALM_HMC:
                kind = "drawn"
            who = np.resize(["j0", "j4", "j6", "j7", "nobody", None], len(duels))
            found.posterior(kind, model, items)
            found.put(kind, proba=model.predict_proba(duels, judges=who),
                      common=model.predict_proba(duels, judges=[None] * len(duels)),
                      margin=model.decision_function(duels, judges=who))  # fmt: skip
            of = model.judges_
            found.put(
                kind,
                reliability=of.reliability,
                interval=of.reliability_interval(0.9),
                noise=of.noise_variance,
                noise_interval=of.noise_interval(0.9),
                at_random=of.probability_random,
                adversarial=of.probability_adversarial,
                n_answers=of.n_answers,
            )
            if of.order_effect is not None:
                found.put(kind, own_order=of.order_effect,
                          own_order_interval=of.order_effect_interval(0.9))  # fmt: skip
            value = model.log_marginal_likelihood_value_
            found.put("fitted" if learn else "evidence", value=value)
            if learn:
                found.hyperparameters(model)


# -- many users --------------------------------------------------------------------------------


def users_data(n_users=8, each=18, tie=None):
    """Duels of several users whose tastes follow a feature of theirs."""
    n = n_users * each
    data = Data(n, 12, seed=5)
    data.users = np.repeat([f"u{k}" for k in range(n_users)], each)
    data.features = {f"u{k}": [k / n_users, (k % 3) / 3.0] for k in range(n_users + 1)}
    taste = np.repeat(np.linspace(-1.0, 1.0, n_users), each)
    own = data.utility[:, None] + data.items[:, 1:] * 2.0 * taste
    at = np.arange(n)
    margin = own[data.pairs[:, 0], at] - own[data.pairs[:, 1], at]
    margin += 0.3 * data.rng.standard_normal(n)
    data.y = (margin > 0.0).astype(int)
    if tie is not None:
        data.y = np.where(np.abs(margin) < tie, 0, np.sign(margin)).astype(int)
    return data


USERS = {
    "cp": {"method": "cp"},
    "cpu": {"method": "cpu"},
    "auto": {},
    "su": {"method": "su"},
    "pooled": {"method": "pooled"},
    "birlutiu": {"method": "birlutiu"},
    "bonilla": {"method": "bonilla"},
    "cp-vb": {"method": "cp", "inference": "vb", "n_latent": 4},
    "cpu-vb": {"method": "cpu", "inference": "vb", "n_latent": 4},
    "cp-few-points": {"method": "cp", "n_inducing": 6},
    "cp-few-latent": {"method": "cp", "n_latent": 3},
    "cpu-few-points": {"method": "cpu", "n_inducing": 6, "n_inducing_users": 4},
    "cp-ties": {"method": "cp", "tie_threshold": 0.2},
    "cp-order": {"method": "cp", "order_effect": 0.1, "order_effect_bounds": (-1.0, 1.0)},
    "cp-tight": {"method": "cp", "tol": 1e-6, "inference": EP(tol=1e-10)},
    "cp-part": {"method": "cp", "n_learning_answers": 60},
    "cp-held-taste": {"method": "cp", "taste_variance": 0.5, "taste_variance_bounds": "fixed"},
    "cp-default-kernel": {"method": "cp", "kernel": None},
}
for _name, _more in USERS.items():
    for _learn in (False, True):

        @case(f"users/{_name}/{'learned' if _learn else 'held'}", more=_more, learn=_learn)
        def _users(found, more, learn):
            data = users_data(tie=0.3 if "tie_threshold" in more else None)
            parameters = {"kernel": RBF([0.5, 0.8]), "noise_variance": 0.1} | more
            if more.get("method", "cpu")[:3] in ("cpu", "bon"):
                parameters["user_features"] = data.features
            parameters |= {} if learn else {"optimizer": None}
            model = make(CollaborativePreferenceRegressor, random_state=0, **parameters)
            model.fit(data.X, data.y, users=data.users)
            kind, duels = "fitted" if learn else "held", data.ask_duels
            some = np.array(["u0", "u3", "u7"])
            if more.get("method") != "pooled":
                some = np.array(["u0", "u3", "u7", "u8"])
            items = np.concatenate([data.ask_items] * len(some))
            found.posterior(
                kind, model, items, np.concatenate([duels] * len(some)),
                duels_by={"users": np.repeat(some, len(duels))},
                users=np.repeat(some, len(data.ask_items)),
            )  # fmt: skip
            found.put(kind, population=model.predict(data.ask_items, users=[None] * 11))
            value = model.log_marginal_likelihood_value_
            found.put("fitted" if learn else "evidence", value=value)
            if not learn:
                return
            found.hyperparameters(model)
            tastes = [
                getattr(model, f"taste_variance{end}", None) for end in ("_", "_by_features_")
            ]
            found.put("learned", tastes=np.log([t for t in tastes if t]))
            user_kernel = getattr(model, "user_kernel_", None)
            if user_kernel is not None:
                found.put("learned", user_kernel=user_kernel.theta)


@case("users/rated")
def _users_rated(found):
    data = users_data()
    X = np.concatenate([data.items] * 4)
    users = np.repeat(["a", "b", "c", "d"], 12)
    rating = np.round(truth(X) + 0.5 * data.rng.standard_normal(48), 1)
    both(found, CollaborativePreferenceRegressor,
         {"kernel": RBF([0.5, 0.8]), "noise_variance": 0.1}, X, rating, X[:20],
         fit={"users": users}, gradient=False, learn=False)  # fmt: skip


@case("users/weights")
def _users_weights(found):
    data = users_data()
    model = CollaborativePreferenceRegressor(RBF([0.5, 0.8]), optimizer=None)
    weight = data.rng.integers(0, 4, data.n).astype(float)
    model.fit(data.X, data.y, users=data.users, sample_weight=weight)
    found.posterior("held", model, data.items, users=["u1"] * 12)
    found.evidence(model, gradient=False)


@case("users/nobody")
@case("users/one", users=["ann"])
def _users_one(found, users=None):
    data = Data()
    fit = {} if users is None else {"users": np.resize(users, data.n)}
    both(found, CollaborativePreferenceRegressor,
         {"kernel": RBF([0.5, 0.8]), "noise_variance": 0.1}, data.X, data.y, data.ask_items,
         data.ask_duels, fit=fit)  # fmt: skip


@case("users/many")
def _users_many(found):
    data = users_data(120, 12)
    model = CollaborativePreferenceRegressor(RBF([0.5, 0.8]), random_state=0)
    model.fit(data.X, data.y, users=data.users)
    found.posterior("fitted", model, data.ask_items, users=["u5"] * 11)
    found.hyperparameters(model)
    found.put("learned", taste=np.log(model.taste_variance_))
    at = np.r_[model.kernel_.theta * 0.0 - 0.5, -0.5, -2.0]
    found.put("evidence", elsewhere=model.log_marginal_likelihood(at))


@case("users/asked")
def _users_asked(found):
    from skpref.active import bald, query

    data = users_data()
    model = CollaborativePreferenceRegressor(RBF([0.5, 0.8]), optimizer=None)
    model.fit(data.X, data.y, users=data.users)
    pool, who = np.concatenate([data.ask_duels] * 3), np.repeat(["u0", "u5", "stranger"], 12)
    found.put("held", bald=bald(model.posterior_for(who), pool))
    found.put("asked", query=query(model, pool, n=5, users=who))
    posterior = model.posterior_for(["u0", "u5", "u7"])
    mean, variance = posterior.margin(data.items[:3], data.items[3:6])
    found.put("held", margin=mean, variance=variance, cov=posterior.cov(data.items[:3]))
    found.put("chance", sample=posterior.sample(data.items[:3], 4, 0))


# -- many answers ------------------------------------------------------------------------------


@case("many/ard", n=1000, n_items=40, d=3, parameters={"kernel": RBF([0.5, 0.6, 0.7])})
@case("many/default", n=1000, n_items=40, d=3, parameters={})
@case("many/ties", n=1000, n_items=30, d=2, tie=0.3, parameters={"tie_threshold": 0.1})
@case("many/names", n=2000, n_items=60, d=2, names=True, parameters={"noise_variance": 0.3})
@case("many/laplace", n=1000, n_items=30, d=2, parameters={"inference": "laplace"})
@case("many/part", n=1000, n_items=30, d=2, parameters={"n_learning_answers": 300})
@case("many/restarts", n=300, n_items=20, d=2, parameters={"n_restarts_optimizer": 2})
@case("many/svi", n=2000, n_items=200, d=2, parameters={"inference": SVI(30)})
@case("many/svi-bound", n=1000, n_items=60, d=2,
      parameters={"inference": SVI(20, evidence="bound")})  # fmt: skip
@case("many/svi-part", n=1000, n_items=60, d=2,
      parameters={"inference": SVI(20), "n_learning_answers": 300})  # fmt: skip
@case("many/hmc", n=300, n_items=20, d=2, parameters={"inference": CALM_HMC}, drawn="drawn")
@case("many/gibbs", n=300, n_items=20, d=2, parameters={"inference": CALM_GIBBS}, drawn="drawn")
def _many(found, n, n_items, d, parameters, tie=None, names=False, drawn=None):
    data = Data(n, n_items, d)
    X, items, duels = data.X, data.ask_items, data.ask_duels
    y = data.outcomes(data.pairs, tie=tie)
    parameters = {"noise_variance": 0.1} | parameters
    if names:
        called = np.array([f"n{k}" for k in range(n_items)])
        X, items, duels = called[data.pairs], called, called[data.ask_pairs]
        parameters["items"] = list(called)
    regress(found, parameters=parameters, X=X, y=y, items=items, duels=duels, drawn=drawn,
            gradient=n <= 1000 and not drawn)  # fmt: skip


@case("many/distinct", kind="distinct")
@case("many/choices", kind="choice")
@case("many/rankings", kind="ranking")
def _many_sets(found, kind):
    if kind == "distinct":
        data = distinct(260, 2)
        X, y, duels = data.X, data.y, data.ask_duels
    else:
        data = Data(10, 25)
        sets = data.sets(3, 150)
        seen = data.noisy(sets)
        X, duels = data.items[sets], data.items[data.sets(3, 6)]
        y = seen.argmax(axis=1)
        y = y if kind == "choice" else (-seen).argsort(axis=1).argsort(axis=1) + 1
    regress(found, parameters={"noise_variance": 0.1}, X=X, y=y, items=data.ask_items,
            duels=duels)  # fmt: skip


@case("auto/few", n=60, n_items=30)
@case("auto/large", n=3800, n_items=7600)
def _auto(found, n, n_items):
    data = distinct(n) if n_items == 2 * n else Data(n, n_items)
    model = PairwisePreferenceRegressor(RBF(0.5), optimizer=None, random_state=0)
    model.fit(data.X, data.y)
    found.posterior("held", model, data.ask_items, data.ask_duels)
    found.put("held", engine=type(model.engine_).__name__)
    found.evidence(model, gradient=False)


# -- likelihoods of a user's own ---------------------------------------------------------------


class Logistic(Likelihood):
    """1 / (1 + exp(−margin / scale))."""

    hyperparameters = ("scale",)

    def __init__(self, scale=0.2, scale_bounds=(1e-3, 10.0)):
        self.scale, self.scale_bounds = scale, scale_bounds

    def log_prob(self, margin, answers):
        win, lose, s = expit(margin / self.scale), expit(-margin / self.scale), self.scale
        slope = win * lose
        value = -np.logaddexp(0.0, -margin / s)
        return Derivatives(value, lose / s, slope / s**2, slope * (win - lose) / s**3)


class Bare(Likelihood):
    """The probit with ties and order by its probability alone."""

    hyperparameters = Probit.hyperparameters
    linear = Probit.linear
    kinds = frozenset({DUEL, TIE})

    def __init__(
        self,
        noise_variance=0.1,
        noise_variance_bounds=(1e-4, 10.0),
        tie_threshold=0.2,
        tie_threshold_bounds=(1e-4, 10.0),
        order_effect=0.1,
        order_effect_bounds=(-2.0, 2.0),
    ):
        self.noise_variance, self.noise_variance_bounds = noise_variance, noise_variance_bounds
        self.tie_threshold, self.tie_threshold_bounds = tie_threshold, tie_threshold_bounds
        self.order_effect, self.order_effect_bounds = order_effect, order_effect_bounds

    def log_prob(self, margin, answers):
        probit = Probit(
            self.noise_variance, tie_threshold=self.tie_threshold, order_effect=self.order_effect
        )
        return probit.log_prob(margin, answers)


for _name, _likelihood in {"logistic": Logistic(), "bare": Bare()}.items():
    for _engine in ("ep", "laplace", "svi", "svi-few"):

        @case(f"likelihoods/{_name}/{_engine}", likelihood=_likelihood, engine=_engine)
        def _likelihoods(found, likelihood, engine):
            kind = "tie" if isinstance(likelihood, Bare) else "duel"
            X, y, _, _, _, items, duels = answers_of(kind)
            parameters = {"kernel": RBF([0.5, 0.8]), "likelihood": likelihood}
            parameters["inference"] = ENGINES[engine]
            regress(found, parameters=parameters, X=X, y=y, items=items, duels=duels)


@case("likelihoods/logistic/many-users")
def _logistic_users(found):
    data = users_data()
    model = CollaborativePreferenceRegressor(
        RBF([0.5, 0.8]), likelihood=Logistic(), optimizer=None
    ).fit(data.X, data.y, users=data.users)
    found.posterior("held", model, data.items, users=["u1"] * 12)
    found.evidence(model, gradient=False)


@case("likelihoods/logistic/judges")
def _logistic_judges(found):
    data = judged()
    model = PairwisePreferenceRegressor(RBF([0.5, 0.8]), likelihood=Logistic(), optimizer=None)
    model.fit(data.X, data.y, judges=data.judges)
    found.posterior("held", model, data.ask_items)
    found.put("held", reliability=model.judges_.reliability)


# -- streams -----------------------------------------------------------------------------------


@case("streams/held", optimizer=None)
@case("streams/learned")
@case("streams/ties", tie=0.3, parameters={"tie_threshold": 0.2})
@case("streams/own-points", points=True)
@case("streams/batches", parameters={"inference": SVI(15, batch_size=40)})
@case("streams/names", names=True, optimizer=None)
@case("streams/gamma", parameters={"inference": SVI(15, scale_prior=(2.0, 1.0)),
                                   "kernel": RBF([0.5, 0.8]),
                                   "noise_variance_bounds": "fixed"})  # fmt: skip
@case("streams/small-sample", parameters={"n_learning_answers": 100})
def _streams(found, optimizer="fmin_l_bfgs_b", tie=None, parameters=(), points=False, names=False):
    data = Data(400, 60)
    engine = SVI(inducing_points=POINTS) if points else SVI(15)
    kernel = None if names else 0.8 * RBF([0.5, 0.8])
    made = {"kernel": kernel, "noise_variance": 0.1, "inference": engine} | dict(parameters)
    X, items, duels = data.X, data.ask_items, data.ask_duels
    if names:
        called = np.array([f"n{k}" for k in range(60)])
        X, items, duels = called[data.pairs], called[:6], called[data.pairs[:6]]
    model = make(PairwisePreferenceRegressor, optimizer=optimizer, random_state=0, **made)
    y = data.outcomes(data.pairs, tie=tie)
    for k, (start, stop) in enumerate(((0, 100), (100, 160), (160, 260), (260, 400))):
        model.partial_fit(X[start:stop], y[start:stop])
        one = Written()
        one.posterior("held" if optimizer is None else "fitted", model, items, duels)
        found.update({f"{name}_{k}": value for name, value in one.items()})
        value = model.log_marginal_likelihood_value_
        found.put("evidence" if optimizer is None else "fitted", **{f"evidence_{k}": value})
        if optimizer is not None:
            found.hyperparameters(model, f"_{k}")


# -- what a posterior tells --------------------------------------------------------------------


@case("posterior/ep", engine=EP())
@case("posterior/svi", engine=SVI(7))
@case("posterior/hmc", engine=CALM_HMC, drawn=True)
@case("posterior/ties", engine=EP(), tie=0.3)
def _posterior(found, engine, drawn=False, tie=None):
    data = Data()
    more = {} if tie is None else {"tie_threshold": 0.2}
    model = PairwisePreferenceRegressor(
        RBF([0.5, 0.8]), noise_variance=0.1, inference=engine, optimizer=None, random_state=0,
        order_effect=0.1, **more
    )  # fmt: skip
    model.fit(data.X, data.outcomes(data.pairs, tie=tie))
    of, kind = model.posterior_, "drawn" if drawn else "held"
    A, B = data.items[:5], data.new
    found.put(
        kind,
        cov=of.cov(A),
        margin=np.array(of.margin(A, B)),
        margin_cov=of.margin_cov(A, B),
        win=of.win_probability(A, B),
        log_win=of.win_probability(A, B, log=True, order=1),
        sign=of.win_probability(A, B, noise=False),
        outcomes=of.outcome_log_proba(A, B, order=[1, 0, -1, 1, 0]),
        choice=of.choice_proba(data.items[data.sets(3, 4)]),
        choice_of_five=of.choice_proba(data.items[data.sets(5, 2)]),
        cdf=of.cdf(A, 0.2),
        quantile=of.quantile(A, [0.1, 0.5, 0.9]),
        interval=of.credible_interval(A),
        mean_gradient=of.mean_gradient(A),
        var_gradient=of.var_gradient(A),
        score=model.score(data.X, data.outcomes(data.pairs, tie=tie)),
        log_proba=model.predict_log_proba(data.ask_duels),
        joint=model.predict(A, return_cov=True)[1],
    )
    found.put(
        "chance",
        sample=of.sample(A, 3, 0),
        paths=of.sample_paths(3, 0)(B),
        margins=model.sample_y(data.ask_duels, 3, 0),
        hallucinated=of.hallucinate(0).mean(A),
    )


@case("inspection/features", names=False)
@case("inspection/names", names=True)
def _inspection(found, names):
    from skpref.inspection import (
        leaderboard,
        permutation_importance,
        win_rates,
        without_item_effects,
    )

    data = Data(120, 12)
    parameters = {"tie_threshold": 0.2, "noise_variance": 0.2, "optimizer": None}
    y = data.outcomes(data.pairs, tie=0.3)
    X = data.X
    if names:
        called = np.array([f"n{k:02d}" for k in range(12)])
        X, parameters = called[data.pairs], parameters | {"items": list(called)}
    else:
        parameters["kernel"] = RBF([0.5, 0.8]) + 0.2 * ItemEffect()
    model = PairwisePreferenceRegressor(**parameters).fit(X, y)
    items = None if names else data.items
    for unit in ("noise", "elo", "logit"):
        board = leaderboard(model, items, unit=unit, n_draws=2000)
        for name in ("utility", "lower", "upper", "position", "unit_length", "noise_deviation"):
            found.put("held", **{f"{unit}_{name}": board[name]})
        for name in ("probability_best", "rank_lower", "rank_upper"):
            found.put("drawn", **{f"{unit}_{name}": board[name]})
    for order in (0, 1):
        rates = win_rates(model, items, order=order)
        for name in ("win", "tie", "score", "position"):
            found.put("held", **{f"rates{order}_{name}": rates[name]})
    if not names:
        smooth = without_item_effects(model)
        found.put("held", smooth=np.array(smooth.predict(data.ask_items, return_std=True)))
        importance = permutation_importance(model, X, y, n_repeats=3)
        found.put("held", importance=importance.importances_mean)


@case("inspection/judges-and-users")
def _inspection_people(found):
    from skpref.inspection import leaderboard

    data = judged()
    model = PairwisePreferenceRegressor(RBF([0.5, 0.8]), optimizer=None)
    board = leaderboard(model.fit(data.X, data.y, judges=data.judges), data.items, n_draws=500)
    found.put("held", judged=board.utility, deviation=board.noise_deviation)
    data = users_data()
    model = CollaborativePreferenceRegressor(RBF([0.5, 0.8]), optimizer=None)
    model.fit(data.X, data.y, users=data.users)
    board = leaderboard(model, data.items, user="u2", n_draws=500)
    found.put("held", of_user=board.utility, lower=board.lower, upper=board.upper)


@case("scores/metrics")
def _metrics(found):
    from skpref import metrics

    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 40)
    weight = rng.random(40)
    two = proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True)
    cases = {
        "duel": (rng.integers(0, 2, 40), two),
        "tie": (rng.integers(-1, 2, 40), proba),
        "choice": (rng.integers(0, 3, 40), proba),
    }
    for name, (y, p) in cases.items():
        family = "choice" if name == "choice" else "duel"
        for each in ("accuracy", "log_loss", "brier"):
            score = getattr(metrics, f"{family}_{each}", None)
            if score is None:  # one score of all kinds of answer
                score = partial(getattr(metrics, f"answer_{each}"), kind=family)
            value = [score(y, p), score(y, p, sample_weight=weight)]
            found.put("held", **{f"{name}_{each}": value})


@case("scores/concordance")
def _concordance(found):
    from skpref.metrics import concordance, ranking_concordance

    rng = np.random.default_rng(0)
    scores, ratings, qid = rng.random(60), rng.integers(0, 5, 60), rng.integers(0, 3, 60)
    ranks = rng.random((20, 4)).argsort(axis=1) + 1
    found.put(
        "held",
        pairs=concordance(scores, ratings, qid, sample_weight=rng.random(60)),
        rankings=ranking_concordance(ranks, rng.random((20, 4))),
    )


@case("scores/validation")
def _validation(found):
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from skpref.model_selection import ItemKFold, ItemShuffleSplit, item_components
    from skpref.preprocessing import Itemwise

    data = Data(80, 20)
    model = PairwisePreferenceRegressor(RBF(0.5), noise_variance=0.1, optimizer=None)
    for scoring in ("neg_log_loss", "neg_brier_score", "roc_auc", None):
        found.put("held", **{str(scoring): cross_val_score(model, data.X, data.y, cv=3,
                                                           scoring=scoring)})  # fmt: skip
    for splitter in (ItemKFold(3, mixed="test"), ItemShuffleSplit(2, random_state=0)):
        folds = [np.concatenate(each) for each in splitter.split(data.X)]
        name = type(splitter).__name__
        found.put("held", **{f"{name}_{k}": each for k, each in enumerate(folds)})
    found.put("held", components=item_components(data.pairs[:8], integers="positions"))
    pipe = make_pipeline(Itemwise(StandardScaler()), model)
    pipe.fit(data.X, data.y)
    found.posterior("held", pipe, data.ask_items, data.ask_duels)
    grid = {"inference__damping": [0.0, 0.3], "noise_variance": [0.05, 0.2]}
    search = GridSearchCV(model.set_params(inference=EP()), grid, cv=3, scoring="neg_log_loss")
    found.put("held", grid=search.fit(data.X, data.y).cv_results_["mean_test_score"])


@case("scores/calibration")
def _scorers(found):
    from skpref import metrics

    data = judged()
    model = PairwisePreferenceRegressor(RBF([0.5, 0.8]), optimizer=None)
    model.fit(data.X, data.y, judges=data.judges)
    for name in ("accuracy", "log_loss", "brier", "roc_auc"):
        scorer = getattr(metrics, f"{name}_scorer", None)
        if scorer is not None:
            value = scorer(model, data.X, data.y, judges=data.judges)
            found.put("held", **{name: value})


# -- which duel next ---------------------------------------------------------------------------


@case("queries/duels")
@case("queries/ties", tie=0.3)
@case("queries/sampled", drawn=True)
@case("queries/items", items=True)
def _queries(found, tie=None, drawn=False, items=False):
    from skpref.active import STRATEGIES, committee_disagreement, entropy, query

    data = Data(40, 14)
    more = {} if tie is None else {"tie_threshold": 0.2}
    model = PairwisePreferenceRegressor(
        RBF([0.5, 0.8]), noise_variance=0.1, order_effect=0.1, optimizer=None, random_state=0,
        inference=CALM_HMC if drawn else "ep", **more
    )  # fmt: skip
    model.fit(data.X, data.outcomes(data.pairs, tie=tie))
    pool = data.items if items else data.items[data.sets(2, 40)]
    loose = ("committee", "best_item", "random")
    for name in STRATEGIES:
        kind = "chance" if drawn or name in loose else "asked"
        chosen, scores = query(model, pool, name, n=4, random_state=0, return_scores=True)
        found.put(kind, **{name: chosen})
        exact = not drawn and name not in loose
        found.put("held" if exact else "drawn", **{f"scores_{name}": scores})
        one = query(model, pool, name, random_state=0)
        apart = query(model, pool, name, n=3, random_state=0, distinct_items=True, pending=[1, 2])
        plain = query(model, pool, name, n=3, random_state=0, diversity=False)
        found.put(kind, **{f"{name}_one": one, f"{name}_apart": apart, f"{name}_plain": plain})
    duels = data.ask_duels
    votes = committee_disagreement(model.posterior_, duels, vote=True, random_state=0)
    every = committee_disagreement(model.posterior_, duels, random_state=0)
    found.put("drawn", votes=votes, committee=every)
    found.put("drawn" if drawn else "held", entropy=entropy(model.posterior_, duels))
    answered = query(model, data.X, n=3, answered=np.arange(40) < 20, order=-1)
    found.put("chance" if drawn else "asked", answered=answered)


@case("learner/bald", strategy="bald")
@case("learner/entropy", strategy="entropy")
@case("learner/variance", strategy="variance")
@case("learner/committee", strategy="committee", options={"members": 20})
@case("learner/best_item", strategy="best_item")
@case("learner/random", strategy="random")
@case("learner/refits", strategy="bald", refit_every=3)
def _learner(found, strategy, options=None, refit_every=1):
    kind = "chance" if strategy in ("committee", "best_item", "random") else "asked"
    from skpref.optimize import ActiveLearner

    data = Data(20, 10)
    model = PairwisePreferenceRegressor(RBF([0.5, 0.8]), noise_variance=0.1)
    learner = ActiveLearner(model, data.items, strategy, options=options, n_initial=4,
                            random_state=0, refit_every=refit_every)  # fmt: skip
    for k in range(9):
        duel = learner.ask()
        found.put(kind, **{f"duel_{k}": duel})
        learner.tell(duel, truth(duel[:1])[0] > truth(duel[1:])[0])
    found.put(kind, next=learner.ask(3), best=learner.recommend())
    found.hyperparameters(learner.estimator_, kind="learned" if kind == "asked" else kind)


@case("learner/users")
def _learner_users(found):
    from skpref.optimize import ActiveLearner

    data = Data(20, 8)
    model = CollaborativePreferenceRegressor(RBF([0.5, 0.8]), optimizer=None)
    learner = ActiveLearner(model, data.items, users=["ann", "bob"], n_initial=3, random_state=0)
    for k in range(7):
        user, duel = question = learner.ask()
        found.put("asked", **{f"user_{k}": user, f"duel_{k}": duel})
        learner.tell(question, (truth(duel[:1])[0] > truth(duel[1:])[0]) == (user == "ann"))
    found.put("asked", best=learner.recommend("bob"))


# -- optimizers --------------------------------------------------------------------------------

STRATEGY_NAMES = ("HB-EI", "HB-UCB", "HB-mean", "HB-MUC", "HB-BVEI", "KB-EI", "CL-EI", "LA-EI",
                  "EP-EI", "EP-MUC", "EP-TS-MUC", "DuelTS", "DuelUCB", "EIIG", "DoubleTS", "EUBO",
                  "random")  # fmt: skip
MIXED = {"rate": stats.loguniform(1e-4, 0.1), "depth": (1, 12), "kind": ["a", "b", "c"]}
BOX = [[0.0, 1.0], [-1.0, 2.0]]


def strategy_options(name):
    from skpref.optimize import STRATEGIES

    options = STRATEGIES[name]._asdict()
    if options["inference"] == "hmc":
        options["inference"] = HMC(draws=40, chains=10, burn_in=3)
    return options


def plain(question):
    """Numbers and texts of a question, one row an item."""
    if isinstance(question, np.ndarray):
        return question
    rows = [list(item.values()) if isinstance(item, dict) else [item] for item in question]
    numbers = [[v for v in row if not isinstance(v, str)] for row in rows]
    texts = [[str(v) for v in row if isinstance(v, str)] for row in rows]
    return np.array(texts) if not numbers[0] else np.array(numbers, dtype=float), np.array(texts)


def put_question(found, kind, name, question):
    """Write down a question of whatever form."""
    shown = plain(question)
    if isinstance(shown, tuple):
        found.put(kind, **{name: shown[0], f"{name}_texts": shown[1]})
    else:
        found.put(kind, **{name: shown})


def worth(item):
    """Of an item of a space, whatever its form."""
    if isinstance(item, dict):
        return (
            -abs(np.log10(item["rate"]) + 2.0)
            - 0.1 * abs(item["depth"] - 5)
            - (item["kind"] == "b")
        )
    if isinstance(item, str):
        return float(item[1:]) % 7.0
    return -((item[0] - 0.3) ** 2) - 0.5 * (item[1] - 0.8) ** 2


def optimized(found, optimizer, drawn, n_told=7, size=2, ties=False, made=None):
    """Tell answers to questions of one's own, ask; and go on by what is asked for two rounds."""
    kind = "chance" if drawn else "asked"
    rng = np.random.default_rng(11)
    for _ in range(n_told):
        items = made(rng, size)
        values = [worth(item) for item in items]
        if size > 2:
            optimizer.tell(items, chosen=int(np.argmax(values)))
        elif ties and abs(values[0] - values[1]) < 0.15:
            optimizer.tell(items, "tie")
        else:
            optimizer.tell(items, values[0] > values[1])
    found.put("learned", kernel=optimizer.posterior_.kernel.theta)
    for k in range(2):
        question = optimizer.ask(size=size)
        put_question(found, kind, f"question_{k}", question)
        values = [worth(item) for item in question]
        if size > 2:
            optimizer.tell(question, chosen=int(np.argmax(values)))
        else:
            optimizer.tell(question, values[0] > values[1])
    put_question(found, kind, "best", [optimizer.recommend()])
    found.put(
        "learned" if kind == "asked" else kind, kernel_at_last=optimizer.posterior_.kernel.theta
    )
    for k, question in enumerate(optimizer.ask(2, size=size)):  # in view of answers that are drawn
        put_question(found, "chance", f"parallel_{k}", question)


def box_items(rng, size):
    return rng.random((size, 2)) * [1.0, 3.0] + [0.0, -1.0]


def mixed_items(rng, size):
    return [
        {"rate": 10.0 ** rng.uniform(-4, -1), "depth": int(d), "kind": "abc"[rng.integers(3)]}
        for d in rng.choice(np.arange(1, 13), size, replace=False)
    ]


POOL = np.random.default_rng(2).random((30, 2)) * [1.0, 3.0] + [0.0, -1.0]
NAMES = [f"n{k}" for k in range(8)]
SPACES = {
    "box": ({"space": BOX}, box_items),
    "mixed": ({"space": MIXED}, mixed_items),
    "pool": ({"candidates": POOL}, lambda rng, k: POOL[rng.choice(30, k, replace=False)]),
    "named": (
        {"candidates": ItemTable(POOL[:20], names=[f"n{k}" for k in range(20)])},
        lambda rng, k: [f"n{i}" for i in rng.choice(20, k, replace=False)],
    ),
    "names": (
        {"candidates": ItemTable.from_names(NAMES)},
        lambda rng, k: [NAMES[i] for i in rng.choice(8, k, replace=False)],
    ),
}
# Whose questions come from draws of a chain or of paths.
LOOSE = ("HB-EI", "HB-UCB", "HB-mean", "HB-MUC", "HB-BVEI", "EP-TS-MUC", "DuelTS", "DuelUCB",
         "EIIG", "DoubleTS", "random")  # fmt: skip
ASKED = [("box", name, 2) for name in STRATEGY_NAMES]
ASKED += [("pool", name, 2) for name in STRATEGY_NAMES]
ASKED += [("mixed", name, 2) for name in ("HB-EI", "EP-EI", "KB-EI", "EUBO", "random")]
ASKED += [("named", name, 2) for name in ("HB-EI", "EP-MUC")]
ASKED += [("names", name, 2) for name in ("HB-EI", "EP-MUC", "EUBO", "DoubleTS")]
ASKED += [("box", name, 3) for name in ("HB-EI", "EP-EI", "EUBO", "DuelTS", "random")]
ASKED += [("pool", name, 3) for name in ("HB-EI", "EP-EI", "EUBO", "LA-EI")]
ASKED += [("mixed", "EUBO", 4), ("names", "EP-MUC", 3)]
for _space, _name, _size in ASKED:

    @case(f"optimizers/{_space}/{_name}/{_size}", space=_space, name=_name, size=_size)
    def _optimizers(found, space, name, size):
        options, made = SPACES[space]
        optimizer = PreferenceOptimizer(**options, **strategy_options(name), n_initial=3,
                                        random_state=0)  # fmt: skip
        # Names of which nothing is told would tie, and rounding would choose among them.
        n_told = 18 if space == "names" else 7
        optimized(found, optimizer, name in LOOSE, n_told, size, made=made)


@case("optimizers/believer", ties=False)
@case("optimizers/believer/ties", ties=True)
@case("optimizers/believer/log-ei", ties=False, acquisition="ei")
@case("optimizers/believer/pi", ties=False, acquisition="pi", incumbent="posterior_mean")
@case("optimizers/believer/order", ties=False, order_effect=0.1, order_effect_bounds=(-1.0, 1.0))
def _believer(found, ties, **options):
    optimizer = HallucinationBelieverOptimizer(BOX, random_state=0, n_initial=3, **options)
    optimized(found, optimizer, True, ties=ties, made=box_items)


@case("optimizers/logistic", name="EP-EI", ties=False, likelihood=Logistic())
@case("optimizers/order", name="EP-EI", ties=False, order_effect=0.1)
@case("optimizers/held", name="EP-MUC", ties=False, noise_variance_bounds="fixed", kernel=RBF(0.3))
@case("optimizers/ties/EP-EI", name="EP-EI")
@case("optimizers/ties/EUBO", name="EUBO")
@case("optimizers/ties/LA-EI", name="LA-EI")
def _optimizer_ties(found, name, ties=True, **more):
    options = strategy_options(name) | more
    optimizer = PreferenceOptimizer(BOX, **options, n_initial=3, random_state=0)
    optimized(found, optimizer, False, ties=ties, made=box_items)


@case("optimizers/initial")
def _initial(found):
    optimizer = PreferenceOptimizer(BOX, random_state=0, initial_duels=[[[0.1, 0.2], [0.3, 0.4]]])
    for k, question in enumerate(optimizer.ask(6)):
        found.put("asked", **{f"question_{k}": question})


@case("optimizers/run")
def _run(found):
    optimizer = PreferenceOptimizer(BOX, **strategy_options("EP-EI"), random_state=0)
    found.put("asked", best=optimizer.run(lambda a, b: worth(a) > worth(b), n_duels=12))
    told = [np.asarray(each[0]) for each in optimizer.history_]
    found.put("asked", history=np.array(told))


@case("optimizers/journal")
def _journal(found):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.journal"
        for k in range(4):
            optimizer = PreferenceOptimizer(
                BOX, **strategy_options("EP-EI"), n_initial=3, random_state=0, journal=path
            )
            for j in range(2):
                duel = optimizer.ask()
                found.put("asked", **{f"duel_{k}_{j}": duel})
                optimizer.tell(duel, worth(duel[0]) > worth(duel[1]))
            found.put("asked", **{f"next_{k}": optimizer.ask()})
            del optimizer


# -- samplers by themselves ---------------------------------------------------------------------


@case("samplers")
def _samplers(found):
    from skpref.samplers import gibbs, hmc, liness, minimax_draws, orthant_probability, rhat

    data = Data(12, 8)
    covariance = np.eye(6) * 0.2 + RBF([0.5, 0.8])(data.items[:6])
    for sampler in (gibbs, hmc, liness):
        draws = sampler(covariance, np.ones((4, 6)), 50, rng=np.random.default_rng(0)).draws
        found.put("chance", **{sampler.__name__: draws})
        found.put("chance", **{f"rhat_{sampler.__name__}": rhat(draws)})
    found.put("chance", minimax=minimax_draws(covariance, 40, np.random.default_rng(0)).draws)
    found.put("chance", orthant=orthant_probability(covariance, 500, np.random.default_rng(0))[0])


# -- data sets in the package ------------------------------------------------------------------


@case("datasets/candy")
def _candy(found):
    from skpref.datasets import load_candy

    candy = load_candy(n_duels=400)
    model = PairwisePreferenceRegressor().fit(candy.X, candy.y)
    found.hyperparameters(model)
    found.put("fitted", utility=model.predict(candy.item_table))
    found.put("fitted", evidence=model.log_marginal_likelihood_value_)


# -- writing, comparing ------------------------------------------------------------------------


def run(pattern):
    """All cases that match, as one dictionary of arrays by "case|kind.what"."""
    kept, began = {}, time.process_time()
    for name, function in CASES.items():
        if not re.search(pattern, name):
            continue
        found, start, failed = Written(), time.process_time(), ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                function(found)
            except Exception as error:  # a case that raises is a result as well
                failed = f"{type(error).__name__}: {error}"
        kept |= {f"{name}|{key}": value for key, value in found.items()}
        kept[f"{name}|error"] = np.array(failed)
        kept[f"{name}|warned"] = np.array(sorted({each.category.__name__ for each in caught}))
        kept[f"{name}|seconds"] = np.array(time.process_time() - start)
    count = sum(key.endswith("|error") for key in kept)
    print(f"{count} cases, {time.process_time() - began:.0f} s of processor time")
    return kept


def difference(before, after):
    """Largest difference of two arrays: absolute below 1, relative above."""
    if before.shape != after.shape:
        return np.inf
    if before.dtype.kind not in "biuf" or after.dtype.kind not in "biuf":
        return 0.0 if np.array_equal(before, after) else np.inf
    before, after = before.astype(float), after.astype(float)
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        off = np.abs(after - before) / np.maximum(1.0, np.abs(before))
    return float(np.max(np.where(same, 0.0, np.where(np.isnan(off), np.inf, off))))


def compare(before, after):
    """Table rows of the cases that both know: name, differences by kind, and whether all is well.

    A kind of exception that stays the same is no difference, however it is worded.
    """
    rows = []
    names = dict.fromkeys(key.split("|")[0] for key in after)
    for name in names:
        old = {k.split("|")[1]: v for k, v in before.items() if k.startswith(f"{name}|")}
        new = {k.split("|")[1]: v for k, v in after.items() if k.startswith(f"{name}|")}
        if not old:
            rows.append((name, {}, False, "not in the file"))
            continue
        of, notes, worst = {}, [], {}
        for key in sorted(old.keys() | new.keys()):
            kind = key.split(".")[0]
            if kind not in ALLOWED:
                continue
            off = difference(old[key], new[key]) if key in old and key in new else np.inf
            if off >= of.get(kind, -1.0):
                of[kind], worst[kind] = off, key
        good = True
        for kind, off in of.items():
            if not off <= OTHER_DRAWS.get(kind, ALLOWED[kind]):
                good = False
                notes.append(f"{worst[kind]}")
        errors = str(old["error"]), str(new["error"])
        if errors[0].split(":")[0] != errors[1].split(":")[0]:
            good = False
            notes.append(f"raised {errors[0] or 'nothing'!r}, now {errors[1] or 'nothing'!r}")
        if list(old["warned"]) != list(new["warned"]):
            notes.append(f"warned {', '.join(old['warned'])}; now {', '.join(new['warned'])}")
        rows.append((name, of, good, "; ".join(notes)))
    return rows


def show(rows, all_rows):
    """Print the table: cases that differ beyond 1e-12 (or all), and the largest of each kind."""
    width = max(len(row[0]) for row in rows)
    print(f"{'case':<{width}}" + "".join(f"{kind:>11}" for kind in ALLOWED))
    for name, of, good, notes in rows:
        if not all_rows and good and not notes and max(of.values(), default=0.0) <= 1e-12:
            continue
        cells = "".join(f"{_cell(kind, of.get(kind)):>11}" for kind in ALLOWED)
        print(f"{name:<{width}}{cells}{'' if good else '  DIFFERS'}{'  ' + notes if notes else ''}")
    largest = {k: max((of[k] for _, of, _, _ in rows if k in of), default=None) for k in ALLOWED}
    print(f"{'largest':<{width}}" + "".join(f"{_cell(k, v):>11}" for k, v in largest.items()))
    print(f"{'allowed':<{width}}" + "".join(f"{v:>11.0e}" for v in ALLOWED.values()))
    bad = sum(not row[2] for row in rows)
    print(f"{len(rows)} cases, {bad} differ beyond what is allowed.")
    return bad


def _cell(kind, value):
    if value is None:
        return ""
    far = "" if value <= ALLOWED[kind] else "~" if value <= OTHER_DRAWS.get(kind, 0.0) else "!"
    return f"{value:.1e}{far}" if value else "0"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", metavar="FILE", help="write the results of this version")
    action.add_argument("--compare", metavar="FILE", help="compare this version's with a file's")
    action.add_argument("--list", action="store_true", help="names of the cases")
    parser.add_argument("--with", dest="other", metavar="FILE", help="compare two files instead")
    parser.add_argument("--only", default="", metavar="PATTERN", help="regular expression of cases")
    parser.add_argument("--all", action="store_true", help="show cases that are the same too")
    options = parser.parse_args()
    if options.list:
        print("\n".join(name for name in CASES if re.search(options.only, name)))
        return 0
    if options.other:
        with np.load(options.other) as file:
            after = {k: file[k] for k in file if re.search(options.only, k.split("|")[0])}
    else:
        after = run(options.only)
    if options.write:
        np.savez_compressed(options.write, **after)
        for name in CASES:
            text = str(after.get(f"{name}|error", ""))
            if text:
                print(f"{name} raises {text}")
        return 0
    with np.load(options.compare) as file:
        before = {key: file[key] for key in file}
    return int(show(compare(before, after), options.all) > 0)


if __name__ == "__main__":
    sys.exit(main())
