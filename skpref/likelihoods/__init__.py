"""Likelihoods: how probable an answer is, given the margin of the items.

`Probit` is the one that `PairwisePreferenceRegressor` uses unless another object is passed as
``likelihood=``; a subclass of `Likelihood` of your own works in the estimator and the optimisers.
"""

from skpref.data import (
    DUEL,
    PART,
    TIE,
    Answers,
    Derivatives,
    Regions,
    Site,
    Tilted,
)
from skpref.likelihoods._base import Likelihood
from skpref.likelihoods._expected import Expected
from skpref.likelihoods._judged import Judged
from skpref.likelihoods._normal import sign_proba
from skpref.likelihoods._probit import Probit

__all__ = [
    "DUEL",
    "PART",
    "TIE",
    "Answers",
    "Derivatives",
    "Expected",
    "Judged",
    "Likelihood",
    "Probit",
    "Regions",
    "Site",
    "Tilted",
    "sign_proba",
]
