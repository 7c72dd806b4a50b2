"""One case of the matrix: how far it is from what is exact, or what is wrong with its refusal."""

import copy
import re
import warnings
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from unittest import mock

import numpy as np
from matrix_support import (
    fitted,
    gain,
    predictions,
    refit,
    truth_given_reliability,
    truth_of,
    truth_of_independent_items,
)

from skpref.collaborative._learn import Lesson, Study
from skpref.gp import FiniteRank, _prior, posterior_parts
from skpref.inference import EP, HMC, SVI, Gibbs, Laplace


class Compared(NamedTuple):
    """Largest errors of probabilities; None where there is nothing to compare.

    Attributes
    ----------
    error, truth_error : float
        At hyperparameters that were given, and the standard error of the truth: what is exact or,
        of items that are independent, that approximation by other means.
    error_given_reliability, given_reliability_error : float
        Of judges, given the reliability that the utility was found with.
    reliability_moved : float
        How far one more look moves reliability, in its posterior deviations.
    refit, gain : float
        Where hyperparameters were learned: from the same model fitted at these; how many nats are
        still to be gained near by.
    unsettled : bool
        Whether a warning says that judges' reliability and hyperparameters still move each other,
        or that the noise, which is to follow the median reliability, is held by its bounds.
    """

    error: float | None = None
    truth_error: float | None = None
    error_given_reliability: float | None = None
    given_reliability_error: float | None = None
    reliability_moved: float | None = None
    refit: float | None = None
    gain: float | None = None
    unsettled: bool = False


# What does not matter of a judge's reliability.
_ROUGH = 0.05


def off(found, truth):
    """The largest difference of probabilities."""
    assert all(np.all(np.isfinite(each)) for each in found)
    return max(float(np.abs(a - b).max()) for a, b in zip(found, truth, strict=True))


def compared(case, averaged=True):
    """A case that is taken against what is exact.

    ``averaged``: probabilities of judges also where reliability is integrated over by the truth,
    which takes its time.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = fitted(case)
    found = predictions(case, model)
    for each in found:
        np.testing.assert_allclose(each.sum(axis=-1), 1.0, atol=1e-6)
    said = " ".join(str(each.message) for each in told)
    parts = {"unsettled": "by turns" in said or "ended with noise_variance at its" in said}
    if case.judges != "none" and case.effects == "none":
        # Of the most probable reading of the judges, whose reliability the model keeps; its
        # posterior is that at the first of the reliabilities that it is averaged over.
        leading, judges = copy.copy(model), model.judges_.readings()[0]
        leading.posterior_ = posterior_parts(model.posterior_)[1][0]
        leading.judges_ = model.judges_.components()[1][0]
        moved = np.abs(judges.reliability - judges.used)
        deviation = np.sqrt(judges.marginals.variance)
        parts["reliability_moved"] = float(np.max(moved / (deviation + _ROUGH)))
        truth = truth_given_reliability(case, model)
        near = off(predictions(case, leading, common=True), truth.proba)
        parts |= {"error_given_reliability": near, "given_reliability_error": truth.error}
    if case.learning == "fixed" and (averaged or case.judges == "none"):
        # Items that are independent are an approximation, which is compared with itself; judges'
        # reliability costs more than that.
        alone = case.engine == "chains" and case.judges == "none"
        truth = truth_of_independent_items(case) if alone else truth_of(case, model)
        parts |= {"error": off(found, truth.proba), "truth_error": truth.error}
        return Compared(**parts)
    if case.learning == "learned" and case.judges == "none":
        parts["refit"] = off(found, predictions(case, refit(case, model)))
    if case.learning == "learned" and case.users == "none" and case.fitting == "whole":
        parts["gain"] = gain(case, model)
    return Compared(**parts)


class Worked(BaseException):
    """An engine ran."""


@contextmanager
def no_work():
    """Any run of an engine raises, and any fit of several users."""
    with ExitStack() as patches:
        for engine in (EP, Laplace, HMC, Gibbs, SVI):
            patches.enter_context(mock.patch.object(engine, "run", _worked))
        patches.enter_context(mock.patch.object(Lesson, "learn_hyperparameters", _worked))
        patches.enter_context(mock.patch.object(Study, "fitted", _worked))
        yield


@contextmanager
def finite_rank_alone():
    """Where a prior of finite rank applies it is taken, at any cost; yields those made."""
    made, costs, of = [], _prior._cheapest, FiniteRank.from_comparisons

    def cheapest(kernel, comparisons, likelihood):
        cost = FiniteRank.cost(kernel, comparisons, likelihood)
        if np.isfinite(cost.multiplications):
            return cost, FiniteRank
        return costs(kernel, comparisons, likelihood)

    def kept(*args, **options):
        made.append(of(*args, **options))
        return made[-1]

    with (
        mock.patch.object(_prior, "_cheapest", cheapest),
        mock.patch.object(FiniteRank, "from_comparisons", kept),
    ):
        yield made


def _worked(*_, **__):
    raise Worked


def refused(case, reasons):
    """What is wrong with the refusal of a case; None: nothing."""
    with no_work():
        try:
            fitted(case)
        except Worked:
            return "an engine ran before it was refused"
        except Exception as error:
            told = f"{error} {error.__cause__}"  # of a method that is not there the cause says why
            right = (isinstance(error, r.kind) and re.search(r.remedy, told) for r in reasons)
            return None if any(right) else f"{type(error).__name__}: {told}"
    return "it was taken"
