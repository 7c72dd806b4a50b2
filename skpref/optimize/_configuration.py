"""Arguments of an optimizer, checked, and as plain values for the journal."""

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

from skpref._utils import check_choice, check_lognormal, check_number
from skpref.fitting import (
    Model,
    check_engine,
    check_kernel,
    check_likelihood,
    check_monotone,
    check_monotone_model,
    check_pair_effects,
    lengthscale_priors,
    likelihood_priors,
    pair_effect_priors,
)
from skpref.gp import forgetting_kernel
from skpref.inference import (
    ENGINES,
    EP,
    ConstantLiar,
    Engine,
    Hallucination,
    KrigingBeliever,
    check_log_concave,
)
from skpref.kernels import Identity
from skpref.likelihoods import ANSWER_DEFAULTS, Answers, probit
from skpref.optimize import _model
from skpref.optimize._acquisition import ACQUISITIONS
from skpref.optimize._costs import QuestionCost
from skpref.optimize._dimensions import plain_value
from skpref.optimize._earlier import own_variance_prior, read_earlier
from skpref.optimize._lookahead import LOOKAHEADS
from skpref.optimize._model import PRIORS, Models, shorter_lengthscale_prior
from skpref.optimize._spaces import N_ANCHORS, Space
from skpref.optimize._strategies import (
    BEST,
    HYPERPARAMETERS,
    INCUMBENT_RULES,
    ORDINARY,
    Strategy,
)

# Draws of the margins by "gibbs" and "hmc".
_DRAWS = 400
# Answers before the model is used, where the strategy is left to the optimizer.
_N_INITIAL = 4
# Engines that put one value in the place of every noisy margin.
_BELIEVERS = {
    "hallucination": Hallucination,
    "kriging_believer": KrigingBeliever,
    "constant_liar": ConstantLiar,
}
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Configuration(NamedTuple):
    """Checked arguments.

    ``strategies`` are those of duels, of sets, of what joins given items, and of grids (lines and
    planes).
    ``hallucinating`` tells whether the working posterior is a hallucination, drawn anew for each
    item that is asked for; ``believing`` whether it is given one value of every noisy margin.
    ``lengthscale_prior`` and ``noise_prior`` are never "auto". ``cost`` is that of making and
    judging, or None.
    """

    strategies: dict[str, Strategy]
    hallucinating: bool
    believing: bool
    models: Models
    lengthscale_prior: tuple[float, float] | str | None
    noise_prior: tuple[float, float] | None
    n_initial: int
    refit_every: int | None
    cost: QuestionCost | None = None

    def check_chooses_by_gain(self, argument: str) -> None:
        """Raise ValueError if a strategy was given beside an argument that has one of its own."""
        if self.strategies != BEST:
            raise ValueError(
                f"got {argument} and a strategy; with the first, duels are chosen by the knowledge "
                "gradient. Leave inference=, incumbent=, acquisition= and hyperparameters= out, or "
                "that."
            )

    def strategy_for(self, number: int, kind: str = "duel") -> Strategy:
        """Return the method of a question of a kind, so many being answered or pending."""
        turns = self.strategies[kind].turns
        return turns[number % len(turns)]


def answer_options(given: dict, likelihood: Any) -> dict:
    """Return the parameters of `probit` with an optimizer's defaults; none beside a likelihood."""
    unknown = sorted(given.keys() - ANSWER_DEFAULTS.keys())
    if unknown:
        raise TypeError(
            f"PreferenceOptimizer got an unexpected keyword argument {unknown[0]!r}. Of the "
            f"answers there are {', '.join(ANSWER_DEFAULTS)}; for the others see its documentation."
        )
    if likelihood is not None and given:
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(
            f"likelihood= has its own noise, ties and order effect; got also {shown}. Make "
            f"the likelihood with them, such as skpref.likelihoods.probit({shown}), or leave "
            "likelihood= out."
        )
    return _model.ANSWERS | given


def make_configuration(space: Space, options: dict, n_given: int) -> Configuration:
    """Return the configuration of an optimizer by its arguments and the number of initial duels.

    Where options are "auto" they are replaced in ``options`` by what they stand for.
    """
    automatic, strategies = _read_strategies(
        Strategy(*(options[name] for name in Strategy._fields))
    )
    engine = _read_engine(strategies)
    believing = isinstance(engine, tuple(_BELIEVERS.values()))
    kernel = _check_kernel(options["kernel"], space)
    of_lengthscales = _check_lengthscale_prior(
        options["lengthscale_prior"], automatic, space.n_columns
    )
    of_noise = _check_noise_prior(options, automatic)
    has_pair_effects = check_pair_effects(kernel, engine)
    rate = _check_forgetting(options["forgetting_rate"], engine, has_pair_effects)
    monotone = _read_monotone(options, space, engine, kernel)
    tastes = _read_earlier_tastes(options, space, kernel, of_lengthscales)
    if tastes is not None:
        kernel = tastes.kernel
        of_lengthscales, of_noise = _priors_from_earlier(tastes, options, of_lengthscales, of_noise)

    def model_with(likelihood):
        own = options["likelihood"] is None
        of_likelihood = _model.answer_priors(likelihood, of_noise) if own else likelihood.priors
        priors = (
            *lengthscale_priors(of_lengthscales, kernel, space.typical_rows()),
            *pair_effect_priors(kernel, space.typical_rows()),
            *likelihood_priors(likelihood, kernel, of_likelihood),
        )
        if tastes is not None:
            priors = (*priors, own_variance_prior())
        whole = kernel if rate is None else forgetting_kernel(kernel, space.n_columns, rate)
        return Model(whole, likelihood, engine, priors, monotone=monotone)

    likelihood, plain = _make_likelihoods(options)
    without_ties = None if plain is None else model_with(plain)
    extremes = None if tastes is None else tastes.extremes
    models = Models(model_with(likelihood), without_ties, rate is not None, extremes)
    if believing:
        _check_has_margin_regions(likelihood)
    check_log_concave(engine, likelihood)
    every = options["refit_every"]
    if every is not None:
        check_number("refit_every", every, low=1, integer=True)
    usual = _N_INITIAL if automatic else 3 * space.n_dimensions
    usual *= tastes is None  # earlier people answered the design
    n_initial = _check_n_initial(options["n_initial"], n_given, usual)
    hallucinating = isinstance(engine, Hallucination)
    priors = of_lengthscales, of_noise
    cost = QuestionCost.read(options["cost"])
    options["cost"] = None if cost is None else list(cost)
    configuration = Configuration(
        strategies, hallucinating, believing, models, *priors, n_initial, every, cost
    )
    if cost is not None:
        configuration.check_chooses_by_gain("cost=")
    return configuration


def _read_engine(strategies):
    """Return the engine that all turns of the strategies share, or raise if a field is unknown."""
    different = {id(each): each for each in strategies.values()}
    turns = [each for strategy in different.values() for each in strategy.turns]
    engine = _make_shared_engine([each.inference for each in turns])
    for each in turns:
        _check_incumbent_and_acquisition(each.incumbent, each.acquisition)
        check_choice("hyperparameters", each.hyperparameters, HYPERPARAMETERS)
    return engine


def _priors_from_earlier(tastes, options, of_lengthscales, of_noise):
    """Return the two priors; those that are "auto" are moved to what earlier answers taught."""
    if options["lengthscale_prior"] == "auto":
        of_lengthscales = tastes.prior_around(of_lengthscales, tastes.lengthscale)
    if options["noise_prior"] == "auto":
        of_noise = tastes.prior_around(of_noise, tastes.noise_variance)
    return of_lengthscales, of_noise


def _read_earlier_tastes(options, space, kernel, lengthscale_prior):
    """Return the prior that ``earlier=`` gives of a person's utility; None without earlier answers.

    In ``options`` its digest takes the place of the answers.
    """
    earlier = options["earlier"]
    if earlier is None:
        return None
    if options["forgetting_rate"] is not None:
        raise ValueError(
            "got earlier= and forgetting_rate=; one of the two is allowed, as a prior of earlier "
            "people does not drift. Leave one out."
        )
    tastes = read_earlier(earlier, space, kernel, lengthscale_prior)
    options["earlier"] = tastes.digest
    return tastes


def _read_monotone(options, space, engine, kernel):
    """Return the virtual duels that ``monotone=`` asks for, checked; None if it is None."""
    option = options["monotone"]
    if option is None:
        return None
    for name in ("earlier", "forgetting_rate"):
        if options[name] is not None:
            raise ValueError(
                f"got monotone= and {name}=; one of the two is allowed, as virtual duels are of "
                "one person and one time. Leave one out."
            )
    if not space.has_features:
        raise ValueError(
            f"got monotone={option!r} and candidates that are names alone; candidates with "
            "features, or space=, are allowed. Give features, or leave monotone= out."
        )
    names, columns = space.parameter_columns()
    anchors = space.initial_rows(0, 0, N_ANCHORS)
    monotone = check_monotone(option, names, anchors, columns)
    check_monotone_model(monotone, engine, kernel, options["likelihood"])
    options["monotone"] = dict(option)
    return monotone


def _check_kernel(kernel, space):
    """Return the kernel of a run, checked; a default one in the place of None."""
    good = isinstance(kernel, Kernel) and not isinstance(kernel, CompoundKernel)
    if kernel is not None and not good:
        raise TypeError(
            f"kernel must be None or a kernel of sklearn.gaussian_process.kernels that gives one "
            f"covariance matrix (no CompoundKernel), got {kernel!r}."
        )
    kernel = _default_kernel(space) if kernel is None else clone(kernel)
    check_kernel(kernel, np.zeros((1, space.n_columns)))
    return kernel


def _check_forgetting(rate, engine, has_pair_effects):
    """Return the rate of forgetting, or raise ValueError if engine or kernel do not take it."""
    if rate is None:
        return None
    check_number("forgetting_rate", rate, low=0.0, high=1.0, open_low=True, open_high=True)
    if has_pair_effects:
        raise ValueError(
            f"got forgetting_rate={rate} with Intransitive in the kernel; a utility that moves has "
            "no such term beside it. Leave one of the two out."
        )
    if not engine.prior_rule.exact:
        raise ValueError(
            f"forgetting_rate needs an engine that keeps all answers, and {engine} does not. "
            "Leave one of the two out."
        )
    return rate


def _check_has_margin_regions(likelihood):
    """Raise ValueError unless the likelihood gives regions of the noisy margins."""
    one_duel = Answers(np.zeros(1, dtype=np.int8), np.ones(1, dtype=np.int8))
    if likelihood.regions(one_duel) is None:
        raise ValueError(
            f"A hallucination is of noisy margins, which {type(likelihood).__name__} does not have "
            "(Likelihood.regions). Use PreferenceOptimizer with inference='ep' or 'laplace'."
        )


def _default_kernel(space):
    """Return the kernel of a space's columns, of names where items have no features."""
    return _model.default_kernel(space.n_columns) if space.has_features else Identity()


def _check_lengthscale_prior(given, automatic, n_columns):
    """Return the prior of lengthscales with "auto" replaced, checked."""
    if not isinstance(given, str) or given == "lognormal":
        return given
    if given != "auto":
        raise ValueError(
            "lengthscale_prior must be 'auto', 'lognormal', None or a pair (median, deviation), "
            f"got {given!r}."
        )
    return shorter_lengthscale_prior(n_columns) if automatic else PRIORS.lengthscale


def _check_noise_prior(options, automatic):
    """Return the prior (median, deviation) of the noise with "auto" replaced, checked; or None."""
    prior, makes_likelihood = options["noise_prior"], options["likelihood"] is None
    if isinstance(prior, str) and prior == "auto":
        prior = PRIORS.broader_noise if automatic else PRIORS.noise
        return prior if makes_likelihood else None
    if prior is None:
        return None
    checked = check_lognormal("noise_prior", prior, "'auto', None or a pair (median, deviation)")
    if not makes_likelihood:
        raise ValueError(
            f"likelihood= declares its own priors (Likelihood.priors); got also "
            f"noise_prior={prior!r}. Leave one of the two out."
        )
    bounds = options["noise_variance_bounds"]
    if isinstance(bounds, str) and bounds == "fixed":
        raise ValueError(
            f"noise_prior={prior!r} is of a noise that is learned, and "
            "noise_variance_bounds='fixed' holds it. Leave one of the two out."
        )
    return checked


def _make_likelihoods(options):
    """Return the likelihood of a run, and that before the first tie where it is another."""
    if options["likelihood"] is not None:
        return check_likelihood(options["likelihood"]), None
    made = probit(**{name: options[name] for name in ANSWER_DEFAULTS})
    if made.tie_threshold is not None:
        return made, None
    bounds = options["tie_threshold_bounds"]
    if isinstance(bounds, str) and bounds == "fixed":
        raise ValueError(
            "tie_threshold=None and tie_threshold_bounds='fixed' exclude each other. Give the "
            "number to hold, or bounds (low, high) to learn within once a tie is told."
        )
    return made.with_ties(PRIORS.threshold[0], bounds), made


def _read_strategies(fields_set):
    """Return whether every field is "auto", and the strategies by the kind of question."""
    is_auto = [isinstance(field, str) and field == "auto" for field in fields_set]
    if all(is_auto):
        return True, BEST
    fields = [
        usual if auto else field
        for field, usual, auto in zip(fields_set, ORDINARY, is_auto, strict=True)
    ]
    return False, dict.fromkeys(BEST, Strategy(*fields))


def _check_n_initial(value, n_given, usual):
    """Return the number of answers before the model is used, at least that of initial duels."""
    if value is None:
        return n_given or usual
    return max(int(check_number("n_initial", value, low=0, integer=True)), n_given)


def _check_incumbent_and_acquisition(incumbent, acquisition):
    """Raise ValueError unless both are known and may stand together."""
    check_choice("incumbent", incumbent, INCUMBENT_RULES)
    if callable(acquisition):
        return
    named = [*ACQUISITIONS, *LOOKAHEADS, "thompson", "random"]
    if not isinstance(acquisition, str) or acquisition not in named:
        raise ValueError(
            f"acquisition must be one of 'auto', {', '.join(map(repr, named))}, or a function "
            f"(posterior, X, incumbent) -> (n,), got {acquisition!r}."
        )
    valued = acquisition in ACQUISITIONS or acquisition in LOOKAHEADS
    if incumbent == "joint" and not valued:
        raise ValueError(
            f"incumbent 'joint' needs an acquisition with values to climb, got "
            f"{acquisition!r}; use incumbent {acquisition!r} with it."
        )


def _make_shared_engine(inferences):
    """Return the engine whose fit all methods that take turns use."""
    others = [each for each in inferences if not (isinstance(each, str) and each == "ep")]
    if not others:
        return _make_engine("ep")
    engine = _make_engine(others[0])
    if any(each is not others[0] and each != others[0] for each in others):
        raise ValueError(
            f"Methods that take turns share one fit, so of inference {tuple(inferences)} only one "
            "may be other than 'ep'. Give that one, and 'ep' where its Gaussian is wanted."
        )
    if len(others) < len(inferences) and not isinstance(engine.evidence_engine() or EP(), EP):
        raise ValueError(
            f"The hyperparameters of {engine} are learned with {engine.evidence_engine()}, so its "
            "fit has no posterior of 'ep'. Give one inference for all methods that take turns."
        )
    return engine


def _make_engine(inference):
    """Return the engine of a name, or the engine that was given, checked."""
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


def describe(space: Space, options: dict) -> dict:
    """Return the arguments as plain values, by name; equal ones make the same run."""
    with np.printoptions(precision=17, floatmode="unique", threshold=sys.maxsize):
        described: dict = {"space": space.describe()}
        if (limits := space.describe_limits()) is not None:
            described["limits"] = limits
        return described | {name: _plain_argument(value) for name, value in options.items()}


def _plain_argument(value):
    """Return an argument as plain values: functions by name, objects by their parameters."""
    if hasattr(value, "get_params"):  # kernels are callable too
        value = _parameters(value)
    elif callable(value):
        value = getattr(value, "__qualname__", None) or type(value).__qualname__
    elif type(value) is tuple:
        value = tuple(map(_plain_argument, value))
    return plain_value(value)


def check_writable(space: Space, described: dict) -> None:
    """Raise ValueError unless a journal can tell a configuration, by `describe`, from others."""
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


def check_same_configuration(written: dict, described: dict, path: Path) -> None:
    """Raise ValueError unless the description that a journal holds is of the one wanted."""
    described = json.loads(json.dumps(described))
    differing = [key for key in {**written, **described} if written.get(key) != described.get(key)]
    if differing:
        differences = "; ".join(
            f"{k}: {written.get(k)!r}, now {described.get(k)!r}" for k in differing
        )
        raise ValueError(
            f"The journal {path} belongs to another configuration ({differences}). Use the same "
            "arguments, or another file."
        )


def _parameters(value):
    """Return the name of an object with ``get_params``, and the values of its parameters."""
    parameters = []
    for key, part in sorted(value.get_params(deep=False).items()):
        if hasattr(part, "get_params"):
            part = _parameters(part)
        part = plain_value(part)
        try:
            json.dumps(part)
        except (TypeError, ValueError):
            if _ADDRESS.search(repr(part)):
                part = getattr(part, "__qualname__", None) or type(part).__qualname__
            part = repr(part)
        parameters.append([key, part])
    return [type(value).__name__, parameters]
