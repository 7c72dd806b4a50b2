"""Methods of ``generated_regret.py``: name → how many items a question shows, and the optimizer."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from skpref.likelihoods import Lapses, Probit
from skpref.optimize import STRATEGIES, HallucinationBelieverOptimizer, PreferenceOptimizer


class Method(NamedTuple):
    """An optimizer and the form of its questions.

    Attributes
    ----------
    build : callable
        ``(problem, seed)`` → optimizer.
    size : int
        Number of items shown.
    worst : bool
        Whether the worst is told beside the best.
    designs : bool
        Whether it asks its own first questions in place of random ones.
    kind : str or None
        "line" or "plane", of which the best point shown is told; None: duels or sets.
    """

    build: Callable
    size: int = 2
    worst: bool = False
    designs: bool = False
    kind: str | None = None

    @property
    def form(self) -> dict:
        """Arguments of `ask`."""
        return {"size": self.size} if self.kind is None else {"kind": self.kind}


def _of(size=2, worst=False, designs=False, kind=None, **arguments: Any) -> Method:
    def build(problem, seed):
        made = {**problem.arguments, **arguments}
        return PreferenceOptimizer(**made, random_state=seed)

    return Method(build, size, worst, designs, kind)


def _believer(problem, seed, **arguments):
    return HallucinationBelieverOptimizer(**problem.arguments, **arguments, random_state=seed)


_SHORT = {"lengthscale_prior": (0.2, 0.75)}
_OWN = {"designs": True, "n_initial": 4}
_EI = {"inference": "hallucination", "acquisition": "log_ei"}
_MEAN = {**_EI, "incumbent": "posterior_mean"}
_LAST = {**_EI, "incumbent": "last_winner"}
_PATHS = {"inference": "hallucination", "incumbent": "thompson", "acquisition": "thompson"}
_DRAWN = {"hyperparameters": "drawn"}
_NOISY = {"noise_variance": 0.1, "noise_variance_bounds": "fixed"}
_PROBIT = Probit(3e-3, (1e-5, 1.0))
_FORMER = {"noise_prior": (3e-3, 2.0), "designs": True}
_PRIOR_5 = {"lengthscale_prior": (0.5, 0.75)}
_EUBO = {"inference": "ep", "incumbent": "joint", "acquisition": "eubo"}
_KG = {"inference": "ep", "incumbent": "joint", "acquisition": "kg"}
_KG_EI = {
    "inference": ("ep", "hallucination"),
    "incumbent": ("joint", "last_winner"),
    "acquisition": ("kg", "log_ei"),
}
_KG_MEAN = {**_KG_EI, "incumbent": ("joint", "posterior_mean")}
_TS_EI = {
    "inference": "hallucination",
    "incumbent": ("thompson", "last_winner"),
    "acquisition": ("thompson", "log_ei"),
}
_TS_MEAN = {**_TS_EI, "incumbent": ("thompson", "posterior_mean")}
_TS_KG_EI = {
    "inference": ("hallucination", "ep", "hallucination"),
    "incumbent": ("thompson", "joint", "last_winner"),
    "acquisition": ("thompson", "kg", "log_ei"),
}


def _first(strategy, n=34, turns=100):
    """So many questions by one strategy, then the turns of `_KG_MEAN`."""
    fields = [n * (one,) for one in strategy[:3]]
    names = ("inference", "incumbent", "acquisition")
    return {name: field + turns * _KG_MEAN[name] for name, field in zip(names, fields, strict=True)}


# Those named "own" ask four first duels of their own in place of 3 d random ones.
METHODS = {
    "default": _of(designs=True),
    "default-4": _of(size=4, designs=True),
    "default line": _of(designs=True, kind="line"),
    "default plane": _of(designs=True, kind="plane"),
    # As the default was before its prior of noise was broader, also with other priors of
    # lengthscales: that of strategies that are given, and one that all columns share.
    "default, former noise": _of(**_FORMER),
    "default-4, former noise": _of(size=4, **_FORMER),
    "default, former noise, prior .5": _of(**_FORMER, **_PRIOR_5),
    "default-4, former noise, prior .5": _of(size=4, **_FORMER, **_PRIOR_5),
    "default, former noise, shared prior": _of(**_FORMER, lengthscale_prior="lognormal"),
    # For a judge who errs.
    "default, noise .1": _of(designs=True, **_NOISY),
    "believer, noise .1": Method(partial(_believer, **_NOISY)),
    "EUBO, noise": _of(**STRATEGIES["EUBO"]._asdict(), likelihood=_PROBIT),
    "EUBO, lapses": _of(**STRATEGIES["EUBO"]._asdict(), likelihood=Lapses(_PROBIT)),
    "believer": Method(_believer),
    "believer-4": Method(_believer, 4),
    **{name: _of(**strategy._asdict()) for name, strategy in STRATEGIES.items()},
    # What holds the believer back: each changes one thing.
    "last drawn": _of(**_LAST, **_DRAWN),
    "HB-EI short": _of(**STRATEGIES["HB-EI"]._asdict(), **_SHORT),
    "last own": _of(**_LAST, **_OWN),
    "last drawn own": _of(**_LAST, **_DRAWN, **_OWN),
    "mean": _of(**_MEAN),
    "mean short": _of(**_MEAN, **_SHORT),
    "mean own": _of(**_MEAN, **_OWN),
    "mean drawn": _of(**_MEAN, **_DRAWN),
    "mean drawn own": _of(**_MEAN, **_DRAWN, **_OWN),
    "mean drawn short": _of(**_MEAN, **_DRAWN, **_SHORT),
    "mean-UCB drawn": _of(**{**_MEAN, "acquisition": "ucb"}, **_DRAWN),
    "mean-TS drawn": _of(**{**_MEAN, "acquisition": "thompson"}, **_DRAWN),
    "mean many draws": _of(inference="hmc", incumbent="posterior_mean", acquisition="log_ei"),
    "thompson-EI": _of(**_EI, incumbent="thompson"),
    "thompson-EI own": _of(**_EI, incumbent="thompson", **_OWN),
    "DoubleTS drawn": _of(**_PATHS, **_DRAWN),
    "DoubleTS own": _of(**_PATHS, **_OWN),
    "DoubleTS drawn own": _of(**_PATHS, **_DRAWN, **_OWN),
    "EUBO drawn": _of(**_EUBO, **_DRAWN),
    "EUBO drawn own": _of(**_EUBO, **_DRAWN, **_OWN),
    "KG own": _of(**_KG, **_OWN),
    "KG drawn own": _of(**_KG, **_DRAWN, **_OWN),
    "KG+EI own": _of(**_KG_EI, **_OWN),
    "KG+EI drawn own": _of(**_KG_EI, **_DRAWN, **_OWN),
    "KG+mean drawn own": _of(**_KG_MEAN, **_DRAWN, **_OWN),
    "HBKG+EI drawn own": _of(**{**_KG_EI, "inference": "hallucination"}, **_DRAWN, **_OWN),
    "TS+EI own": _of(**_TS_EI, **_OWN),
    "TS+EI drawn own": _of(**_TS_EI, **_DRAWN, **_OWN),
    "TS+KG+EI drawn own": _of(**_TS_KG_EI, **_DRAWN, **_OWN),
    "TS+mean drawn own": _of(**_TS_MEAN, **_DRAWN, **_OWN),
    "TS+mean half own": _of(**_TS_MEAN, hyperparameters=("drawn", "best"), **_OWN),
    "DoubleTS, then KG+mean": _of(**_first(STRATEGIES["DoubleTS"]), **_DRAWN, **_OWN),
    "EUBO, then KG+mean": _of(**_first(STRATEGIES["EUBO"]), **_DRAWN, **_OWN),
    # Sets.
    "EUBO-4": _of(**STRATEGIES["EUBO"]._asdict(), size=4),
    "DoubleTS-4": _of(**_PATHS, size=4),
    "DoubleTS-4 drawn": _of(**_PATHS, **_DRAWN, size=4),
    "DoubleTS-4 own": _of(**_PATHS, **_OWN, size=4),
    "DoubleTS-4 drawn own": _of(**_PATHS, **_DRAWN, **_OWN, size=4),
    "DoubleTS-4 own, worst": _of(**_PATHS, **_OWN, size=4, worst=True),
}
