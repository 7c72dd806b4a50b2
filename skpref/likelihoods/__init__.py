"""Likelihoods: how probable an answer is, given the margin of the items.

`Probit` is the one that `PairwisePreferenceRegressor` uses unless another object is passed as
``likelihood=``. A subclass of `Likelihood` of your own works in the estimator and the optimisers:
it writes `log_prob`, with three derivatives and log-concave in the margin.
"""

from skpref.data import DUEL, GRADED, INEQUALITY, TIE, Answers
from skpref.likelihoods._base import (
    Derivatives,
    Likelihood,
    Site,
    TiltedMoments,
    TruncationBox,
)
from skpref.likelihoods._expected import Expected
from skpref.likelihoods._graded import (
    ANSWER_DEFAULTS,
    AnswerParameters,
    GradedProbit,
    probit,
)
from skpref.likelihoods._judged import JudgeReliability
from skpref.likelihoods._lapses import Lapses
from skpref.likelihoods._normal import sign_proba
from skpref.likelihoods._probit import Probit

__all__ = [
    "ANSWER_DEFAULTS",
    "DUEL",
    "GRADED",
    "INEQUALITY",
    "TIE",
    "AnswerParameters",
    "Answers",
    "Derivatives",
    "Expected",
    "GradedProbit",
    "JudgeReliability",
    "Lapses",
    "Likelihood",
    "Probit",
    "Site",
    "TiltedMoments",
    "TruncationBox",
    "probit",
    "sign_proba",
]
