"""Everything meets everything: cases of the matrix against exact integrals, or refused at once."""

import re
import warnings

import numpy as np
import pytest
from matrix import covering, refused_cases
from matrix_support import (
    care_used,
    fitted,
    gain,
    predictions,
    refit,
    truth_given_care,
    truth_of,
)

from skpref.collaborative import _program
from skpref.inference import EP, HMC, SVI, Gibbs, Laplace

# Largest error of a probability, as measured over all cases and rounded up. Expectation
# propagation errs by up to .02 where contradictory answers weigh much; Laplace's Gaussian sits at
# the mode; the variational ones are too sure; a thousand draws have a standard error below .005.
# The linearised update promises no calibration, only that it goes the right way.
TOLERANCE = {
    "auto": 0.03, "ep": 0.03, "laplace": 0.1, "hmc": 0.025, "gibbs": 0.025,
    "svi": 0.04, "minibatches": 0.05, "ekf": 0.25,
}  # fmt: skip
# What earlier pieces told is kept as a normal density, which later ones may contradict.
STREAMED = 0.12
# Care is learned by turns with the utility, as if a judge's answers were independent given all
# others; of three judges with two to four answers each, that costs more than any engine does.
JUDGED = 0.25
# Standard errors of the truth that are allowed for, and what they may be at most.
ERRORS, SHARP = 4.0, 0.01
# Of care: posterior deviations by which one more look may move it, and what does not matter.
ELSEWHERE, ROUGH = 0.3, 0.05
# Nats that hyperparameters a fifth of a logarithm away may be better. With judges they are found by
# turns with care, a few times at most.
STATIONARY, BY_TURNS = 0.02, 0.15

COVERED = covering()
REFUSED = refused_cases()


def off(found, truth):
    assert all(np.all(np.isfinite(each)) for each in found)
    return max(float(np.abs(a - b).max()) for a, b in zip(found, truth, strict=True))


def check(case):
    """Compare a case that is taken with what is exact."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = fitted(case)
    unsettled = any("by turns" in str(each.message) for each in told)
    found = predictions(case, model)
    tolerance = max(TOLERANCE[case.engine], STREAMED if case.fitting == "pieces" else 0.0)
    judged = case.judges != "none"
    for each in found:
        np.testing.assert_allclose(each.sum(axis=-1), 1.0, atol=1e-6)
    if judged:
        judges = model.judges_  # what is told of them is what the utility was found with
        moved = np.abs(judges.care - care_used(model)[0])
        assert np.all(moved < ELSEWHERE * np.sqrt(judges.marginals.variance) + ROUGH)
        truth = truth_given_care(case, model)
        if truth.error < SHARP:  # of hyperparameters that were learned it may be out of reach
            near = off(predictions(case, model, common=True), truth.proba)
            assert near < tolerance + ERRORS * truth.error
    if case.learning == "fixed":
        truth = truth_of(case, model)
        assert truth.error < SHARP
        assert off(found, truth.proba) < (JUDGED if judged else tolerance) + ERRORS * truth.error
        return
    if not judged:
        assert off(found, predictions(case, refit(case, model))) < tolerance
    if case.users == "none" and case.fitting == "whole" and not unsettled:
        assert gain(case, model) < (BY_TURNS if judged else STATIONARY)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", COVERED, ids=str)
def test_is_exact(case):
    check(case)


@pytest.fixture
def no_work(monkeypatch):
    """Any run of an engine fails the test."""

    def worked(*_, **__):
        pytest.fail("an engine ran before the case was refused")

    for engine in (EP, Laplace, HMC, Gibbs, SVI):
        monkeypatch.setattr(engine, "run", worked)
    monkeypatch.setattr(_program, "fit", worked)
    monkeypatch.setattr(_program.Lesson, "learned", worked)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_is_refused_before_any_work(case, no_work):
    reasons = REFUSED[case]
    with pytest.raises((ValueError, TypeError, AttributeError)) as refused:
        fitted(case)
    error = refused.value
    told = f"{error} {error.__cause__}"  # of a method that is not there the cause says why
    assert any(isinstance(error, each.kind) and re.search(each.remedy, told) for each in reasons)
