"""Arguments of an optimizer, checked, and as plain values for the journal."""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

from skpref._parameters import check_choice, check_lognormal, check_number
from skpref.inference import ENGINES, EP, HMC, Gibbs, Laplace
from skpref.optimize import _model
from skpref.optimize._acquisition import ACQUISITIONS
from skpref.optimize._strategies import INCUMBENTS, Strategy

_DRAWS = 400


class Configuration(NamedTuple):
    """Checked arguments.

    ``hallucinating`` tells whether the working posterior is a hallucination.
    """

    strategy: Strategy
    hallucinating: bool
    spec: _model.ModelSpec
    n_initial: int
    refit_every: int | None


def configure(space, options, n_given):
    """Check the arguments of an optimizer.

    Parameters
    ----------
    space : Box or Pool
    options : dict
        inference, incumbent, acquisition, kernel, noise_variance, lengthscale_prior, n_initial,
        refit_every.
    n_given : int
        Number of initial duels that were given.

    Returns
    -------
    Configuration
    """
    hallucinating, engine = _engine(options["inference"])
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
    kernel = _model.default_kernel(space.n_columns) if kernel is None else clone(kernel)
    try:
        kernel(np.zeros((1, space.n_columns)))
    except ValueError as error:
        raise ValueError(
            f"The kernel {kernel} does not take unit-cube rows of {space.n_columns} columns: "
            f"{error}."
        ) from error
    noise = options["noise_variance"]
    learned = isinstance(noise, str)
    if learned:
        check_choice("noise_variance", noise, ("learn",))
        value, bounds = _model.NOISE_PRIOR[0], _model.NOISE_BOUNDS
    else:
        value, bounds = (
            float(check_number("noise_variance", noise, low=0.0, open_low=True, open_high=True)),
            None,
        )
    prior = _model.default_prior(kernel, _check_prior(options["lengthscale_prior"]), learned)
    spec = _model.ModelSpec(kernel, value, bounds, prior, engine)
    n_initial = options["n_initial"]
    if n_initial is None:
        n_initial = n_given or 3 * space.n_dimensions
    n_initial = max(int(check_number("n_initial", n_initial, low=0, integer=True)), n_given)
    every = options["refit_every"]
    if every is not None:
        check_number("refit_every", every, low=1, integer=True)
    strategy = Strategy(options["inference"], options["incumbent"], acquisition)
    return Configuration(strategy, hallucinating, spec, n_initial, every)


def _check_prior(prior):
    if prior is None:
        return None
    allowed = "None or a pair (median on the unit cube, deviation of the logarithm)"
    return check_lognormal(prior, allowed)


def _engine(inference):
    if isinstance(inference, str):
        check_choice("inference", inference, ["hallucination", *ENGINES])
        if inference == "hallucination":
            return True, EP()
        sampled = inference in ("gibbs", "hmc")
        return False, ENGINES[inference](**({"draws": _DRAWS} if sampled else {}))
    if not isinstance(inference, Laplace | EP | Gibbs | HMC):
        raise TypeError(
            f"inference must be 'hallucination', one of {[*ENGINES]} or an engine, got "
            f"{inference!r}."
        )
    return False, clone(inference)


def describe(space, options):
    """The arguments as plain values: two equal descriptions make the same run."""
    described = {"space": space.describe()}
    for name, value in options.items():
        if hasattr(value, "get_params"):  # kernels are callable too
            parameters = sorted(value.get_params().items())
            value = [type(value).__name__, [[key, repr(part)] for key, part in parameters]]
        elif callable(value):
            value = getattr(value, "__qualname__", None) or type(value).__qualname__
        elif isinstance(value, tuple | list):
            value = [part.item() if isinstance(part, np.generic) else part for part in value]
        elif isinstance(value, np.generic):
            value = value.item()
        described[name] = value
    return described
