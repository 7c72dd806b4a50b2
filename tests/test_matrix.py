"""Everything meets everything: cases of the matrix against exact integrals, or refused at once."""

import pytest
from matrix import GROUPED, OTHERS, REFUSED_EFFECTS, Case, covering, refused_cases
from matrix_check import compared, finite_rank_alone, refused

# Largest error of a probability, as measured over all cases (benchmarks/posterior/matrix.py),
# rounded up. Expectation propagation errs by up to .03 where contradictory answers weigh much.
# Laplace's Gaussian sits at the mode: where one answer is all there is on a margin whose variance
# is eleven times that of the noise, quadrature and a mode found by scipy are .147 apart. The
# variational ones are too sure; a thousand draws have a standard error below .005. Items that are
# independent are compared with that approximation by other means, of which nothing is left but
# where iterations end. The linearised update promises no calibration, only that it goes the right
# way.
TOLERANCE = {
    "auto": 0.03, "ep": 0.03, "laplace": 0.15, "hmc": 0.025, "gibbs": 0.025,
    "svi": 0.03, "minibatches": 0.05, "ekf": 0.25, "chains": 1e-6,
}  # fmt: skip
# What earlier pieces told is kept as a normal density, which later ones may contradict; where
# hyperparameters are learned it was kept under earlier ones too, and is not compared.
STREAMED = {"svi": 0.16, "minibatches": 0.16, "ekf": 0.6, "chains": 1e-6}
# Reliability is learned by turns with the utility, as if a judge's answers were independent given
# all others; of three judges with two to four answers each, that costs more than any engine does.
JUDGED = 0.2
# Posterior deviations of reliability by which one more look may move it.
ELSEWHERE = 0.3
# Standard errors of the truth that are allowed for, and what they may be at most: with judges a
# tenth of what is allowed there.
ERRORS, SHARP, SHARP_JUDGED = 4.0, 0.01, 0.1 * JUDGED
# Nats that hyperparameters a fifth of a logarithm away may be better. With judges they are found by
# turns with reliability, a few times at most.
STATIONARY, BY_TURNS = 0.02, 0.15

COVERING, REFUSED = covering(), refused_cases() | REFUSED_EFFECTS
# A prior of finite rank is exact. Problems of this size have fewer margins than features.
OF_FINITE_RANK = [
    case
    for case in COVERING
    if case.kernel == "linear"
    and case.engine in OTHERS
    and case.judges == case.users == case.time == "none"
] + [
    Case(engine=engine, answers=answers, kernel="linear", learning="learned")
    for engine, answers in (("ep", "duels"), ("ep", "rankings"), ("laplace", "ties"))
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "case",
    [
        # Judges' reliability is integrated over by the truth, which takes its time. Of the others
        # two in three are for the long tests.
        pytest.param(case, marks=pytest.mark.slow if case.judges != "none" or k % 3 else ())
        for k, case in enumerate(COVERING)
    ],
    ids=str,
)
def test_is_exact(case):
    # Whatever the engine, reliability is found by the cavities of expectation propagation; the
    # truth that integrates over it takes its time, and is far off where answers have times.
    averaged = case.engine == "ep" and case.time == "none"
    found, judged = compared(case, averaged), case.judges != "none"
    tolerance = (STREAMED if case.fitting == "pieces" else TOLERANCE)[case.engine]
    if found.error is not None:
        assert found.truth_error < (SHARP_JUDGED if judged else SHARP)
        assert found.error < (JUDGED if judged else tolerance) + ERRORS * found.truth_error
    elif found.refit is not None and case.fitting == "whole":
        assert found.refit < tolerance
    if judged:
        assert found.reliability_moved < ELSEWHERE
        error = found.given_reliability_error
        if error < SHARP:  # of what was learned the truth may be out of reach
            assert found.error_given_reliability < tolerance + ERRORS * error
    if found.gain is not None and not (judged and found.unsettled):
        assert found.gain < (BY_TURNS if judged else STATIONARY)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
@pytest.mark.parametrize("case", OF_FINITE_RANK, ids=str)
def test_a_prior_of_finite_rank_is_exact(case):
    with finite_rank_alone() as made:
        found = compared(case)
    assert made
    if found.error is not None:
        assert found.truth_error < SHARP
        assert found.error < TOLERANCE[case.engine] + ERRORS * found.truth_error
    if found.gain is not None:
        assert found.gain < STATIONARY


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "case",
    [
        # Two of three are for the long tests.
        pytest.param(case, marks=pytest.mark.slow if case.learning == "learned" or k % 3 else ())
        for k, case in enumerate(GROUPED)
    ],
    ids=str,
)
def test_effects_of_groups_are_exact(case):
    found = compared(case)
    if case.learning == "fixed":
        assert found.truth_error < SHARP
        assert found.error < TOLERANCE[case.engine] + ERRORS * found.truth_error
    else:
        assert found.refit < TOLERANCE[case.engine]
        assert found.gain < STATIONARY


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_is_refused_before_any_work(case):
    assert refused(case, REFUSED[case]) is None
