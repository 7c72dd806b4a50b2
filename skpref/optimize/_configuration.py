"""Arguments of an optimizer, checked, and as plain values for the journal."""

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

from skpref._utils import check_choice, check_number
from skpref.fitting import Model, check_engine, check_kernel, check_likelihood
from skpref.inference import ENGINES, ConstantLiar, Engine, Hallucination, KrigingBeliever
from skpref.kernels import Identity
from skpref.likelihoods import Answers, Probit
from skpref.optimize import _model
from skpref.optimize._acquisition import ACQUISITIONS
from skpref.optimize._model import Models
from skpref.optimize._spaces import Box, Pool
from skpref.optimize._strategies import INCUMBENTS, Strategy
from skpref.optimize._values import plain

_DRAWS = 400
# Where parameters lie that are spread as their space has them.
_QUANTILES = (np.arange(64) + 0.5) / 64
_ONE_DUEL = Answers(np.zeros(1, dtype=np.int8), np.ones(1, dtype=np.int8))
_LEARN = "learn"
# Engines that put one value in the place of every noisy margin.
_BELIEVERS = {
    "hallucination": Hallucination,
    "kriging_believer": KrigingBeliever,
    "constant_liar": ConstantLiar,
}
# What journals did not say before there were ties, as it then was.
_BEFORE_TIES = {
    "tie_threshold": None,
    "tie_threshold_bounds": list(_model.TIE_BOUNDS),
    "order_effect": 0.0,
    "order_effect_bounds": "fixed",
}
# What journals did not say of a PairwisePreferenceRegressor before it knew judges, as it then was.
_BEFORE_JUDGES = {"judge_prior": None}
# How numpy 2 writes its scalars: np.int64(3), np.str_('a'), np.True_.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_NUMPY = re.compile(r"""\bnp\.(?:(?:str_|u?int\d+|float\d+)\(('[^']*'|[^()']*)\)|(True|False)_)""")


class Configuration(NamedTuple):
    """Checked arguments.

    ``hallucinating`` tells whether the working posterior is a hallucination, drawn anew for each
    item that is asked for; ``believing`` whether it is given one value of every noisy margin.
    """

    strategy: Strategy
    hallucinating: bool
    believing: bool
    models: Models
    n_initial: int
    refit_every: int | None

    def resolved(self) -> dict:
        """Arguments with which several spellings mean one thing, in one spelling."""
        found: dict[str, Any] = {"n_initial": self.n_initial}
        model = self.models.plain or self.models.whole
        if type(model.likelihood) is Probit:
            found["noise_variance"] = model.likelihood.noise_variance
            found["noise_variance_bounds"] = model.likelihood.noise_variance_bounds
        return found


def configure(space: Box | Pool, options: dict, n_given: int) -> Configuration:
    """Check the arguments of an optimizer.

    Parameters
    ----------
    space : Box or Pool
    options : dict
        inference, incumbent, acquisition, kernel, noise_variance, noise_variance_bounds,
        tie_threshold, tie_threshold_bounds, order_effect, order_effect_bounds,
        lengthscale_prior, likelihood, n_initial, refit_every.
    n_given : int
        Number of initial duels that were given.

    Returns
    -------
    Configuration
    """
    engine = _engine(options["inference"])
    believing = isinstance(engine, tuple(_BELIEVERS.values()))
    check_choice("incumbent", options["incumbent"], INCUMBENTS)
    acquisition = options["acquisition"]
    if not callable(acquisition):
        check_choice("acquisition", acquisition, [*ACQUISITIONS, "thompson", "random"])
        if options["incumbent"] == "joint" and acquisition not in ACQUISITIONS:
            raise ValueError(
                f"incumbent 'joint' needs an acquisition with values to climb, got "
                f"{acquisition!r}; use incumbent {acquisition!r} with it."
            )
    kernel = options["kernel"]
    if kernel is not None and (
        not isinstance(kernel, Kernel) or isinstance(kernel, CompoundKernel)
    ):
        raise TypeError(
            f"kernel must be None or a kernel of sklearn.gaussian_process.kernels that gives one "
            f"covariance matrix (no CompoundKernel), got {kernel!r}."
        )
    kernel = _default_kernel(space) if kernel is None else clone(kernel)
    check_kernel(kernel, np.zeros((1, space.n_columns)))
    if isinstance(space, Pool):
        rows = space.pool
    else:
        rows = space.place(np.repeat(_QUANTILES[:, None], space.n_dimensions, axis=1))

    def model_of(likelihood):
        learned = likelihood.free if options["likelihood"] is None else []
        priors = _model.default_priors(kernel, options["lengthscale_prior"], learned, rows)
        return Model(kernel, likelihood, engine, priors)

    likelihood, plain = _likelihoods(options)
    models = Models(model_of(likelihood), None if plain is None else model_of(plain))
    if believing and likelihood.regions(_ONE_DUEL) is None:
        raise ValueError(
            f"A hallucination is of noisy margins, which {type(likelihood).__name__} does not have "
            "(Likelihood.regions). Use PreferenceOptimizer with inference='ep' or 'laplace'."
        )
    every = options["refit_every"]
    if every is not None:
        check_number("refit_every", every, low=1, integer=True)
    strategy = Strategy(options["inference"], options["incumbent"], acquisition)
    n_initial = _n_initial(options["n_initial"], n_given, space)
    hallucinating = isinstance(engine, Hallucination)
    return Configuration(strategy, hallucinating, believing, models, n_initial, every)


def _default_kernel(space):
    return _model.default_kernel(space.n_columns) if space.has_features else Identity()


def _likelihoods(options):
    """The likelihood of a run, and where the first tie is to change it the one before that."""
    if options["likelihood"] is not None:
        return check_likelihood(options["likelihood"], None, None), None
    threshold, bounds = options["tie_threshold"], options["tie_threshold_bounds"]
    plain = Probit(
        *_noise(options["noise_variance"], options["noise_variance_bounds"]),
        order_effect=options["order_effect"],
        order_effect_bounds=options["order_effect_bounds"],
    )
    later = threshold is None
    if later and isinstance(bounds, str) and bounds == "fixed":
        raise ValueError(
            "tie_threshold=None and tie_threshold_bounds='fixed' exclude each other. Give the "
            "number to hold, or bounds (low, high) to learn within once a tie is told."
        )
    whole = clone(plain).set_params(
        tie_threshold=_model.TIE_PRIOR[0] if later else threshold, tie_threshold_bounds=bounds
    )
    whole.check()
    return whole, plain if later else None


def _noise(value, bounds):
    """Where the noise starts, and its bounds."""
    if not isinstance(value, str):
        check_number("noise_variance", value, low=0.0, open_low=True, open_high=True)
        return float(value), bounds
    check_choice("noise_variance", value, (_LEARN,))
    if isinstance(bounds, str) and bounds == "fixed":
        raise ValueError(
            "noise_variance='learn' and noise_variance_bounds='fixed' exclude each other. Give "
            "the number to hold, or bounds (low, high) to learn within."
        )
    return _model.NOISE_PRIOR[0], bounds


def _n_initial(value, n_given, space):
    if value is None:
        return n_given or 3 * space.n_dimensions
    return max(int(check_number("n_initial", value, low=0, integer=True)), n_given)


def _engine(inference):
    if isinstance(inference, str):
        check_choice("inference", inference, [*_BELIEVERS, *ENGINES])
        if inference in _BELIEVERS:
            return _BELIEVERS[inference]()
        sampled = inference in ("gibbs", "hmc")
        return ENGINES[inference](**({"draws": _DRAWS} if sampled else {}))
    if not isinstance(inference, Engine):
        raise TypeError(
            f"inference must be {', '.join(map(repr, _BELIEVERS))}, one of {[*ENGINES]} or an "
            f"engine, got {inference!r}."
        )
    return check_engine(inference)


def describe(space: Box | Pool, options: dict, version: int = 3) -> dict:
    """The arguments as plain values: two equal descriptions make the same run.

    Parameters
    ----------
    space : Box or Pool
    options : dict
    version : {1, 3}
        Of the journal: the first had kernels as they print.
    """
    with np.printoptions(precision=17, floatmode="unique", threshold=sys.maxsize):
        described = {"space": space.describe()}
        for name, value in options.items():
            if hasattr(value, "get_params"):  # kernels are callable too
                value = _printed(value) if version == 1 else _parameters(name, value)
            elif callable(value):
                value = getattr(value, "__qualname__", None) or type(value).__qualname__
            described[name] = plain(value)
    return described


def check_writable(space: Box | Pool, described: dict) -> None:
    """Raise ValueError unless a journal can tell this configuration from others.

    Parameters
    ----------
    space : Box or Pool
    described : dict
        By `describe`.
    """
    for each in getattr(space, "dimensions", ()):
        for value in getattr(each, "values", ()):
            if not isinstance(value, str) and _ADDRESS.search(repr(value)):
                raise ValueError(
                    f"{each.name} has the choice {value!r}, which a journal cannot hold. Give "
                    "names as choices and look the objects up by them, or leave journal= out."
                )
    try:
        json.dumps(described, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"A journal cannot hold these arguments ({error}). Give numbers, texts and lists of "
            "them, or leave journal= out."
        ) from None


def check_same(kept: dict, wanted: dict, path: Path) -> None:
    """Raise ValueError unless two descriptions are of one configuration.

    Parameters
    ----------
    kept : dict
        That of the journal.
    wanted : dict
    path : Path
        Of the journal.
    """
    wanted = json.loads(json.dumps(wanted))
    differing = [key for key in {**kept, **wanted} if kept.get(key) != wanted.get(key)]
    if differing:
        found = "; ".join(f"{k}: {kept.get(k)!r}, now {wanted.get(k)!r}" for k in differing)
        raise ValueError(
            f"The journal {path} belongs to another configuration ({found}). Use the same "
            "arguments, or another file."
        )


def _printed(value):
    parameters = sorted(value.get_params().items())
    return [type(value).__name__, [[key, repr(part)] for key, part in parameters]]


def _parameters(name, value):
    """An object with ``get_params`` by the values of its parameters."""
    found = []
    for key, part in sorted(value.get_params(deep=False).items()):
        if hasattr(part, "get_params"):
            part = _parameters(name, part)
        part = plain(part)
        try:
            json.dumps(part)
        except (TypeError, ValueError):
            if _ADDRESS.search(repr(part)):
                part = getattr(part, "__qualname__", None) or type(part).__qualname__
            part = repr(part)
        found.append([key, part])
    return [type(value).__name__, found]


def completed(described: dict, version: int) -> dict:
    """A description of before there were ties, order effects or judges, with these."""
    found = {**_BEFORE_TIES, **described}
    if (found.get("likelihood") or [None])[0] == "Probit":
        default = Probit().get_params()
        own = {key: default[key] for key in _BEFORE_TIES}
        own = {key: repr(part) if version == 1 else plain(part) for key, part in own.items()}
        own |= dict(found["likelihood"][1])
        found["likelihood"] = ["Probit", [[key, own[key]] for key in sorted(own)]]
    if (found.get("estimator") or [None])[0] == "PairwisePreferenceRegressor":
        own = {**_BEFORE_JUDGES, **dict(found["estimator"][1])}
        found["estimator"] = [found["estimator"][0], [[key, own[key]] for key in sorted(own)]]
    return json.loads(json.dumps(found))


def renewed(described: dict, space: Box | Pool) -> dict:
    """A description that an earlier version wrote, in the terms of this one.

    Once a number fixed the noise, "learn" learned it, None stood for the default number of
    initial duels, and choices were described with their numpy types.
    """
    found = dict(described)
    noise = found.get("noise_variance")
    if noise is not None and "noise_variance_bounds" not in found:
        learned = noise == _LEARN
        found["noise_variance"] = _model.NOISE_PRIOR[0] if learned else noise
        found["noise_variance_bounds"] = list(_model.NOISE_BOUNDS) if learned else "fixed"
    if "space" in found:
        found["space"] = json.loads(_NUMPY.sub(r"\1\2", json.dumps(found["space"])))
    if "n_initial" in found:
        n_given = len(found.get("initial_duels", ()))
        found["n_initial"] = _n_initial(found["n_initial"], n_given, space)
    return found
