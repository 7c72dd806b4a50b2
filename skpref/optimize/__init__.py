"""Preferential optimisation: ask for a duel or a set, tell which is better."""

from skpref.optimize._believer import HallucinationBelieverOptimizer
from skpref.optimize._history import export_journal, read_journal
from skpref.optimize._learner import ActiveLearner, Question
from skpref.optimize._optimizer import PreferenceOptimizer
from skpref.optimize._session import AlreadyAnswered
from skpref.optimize._state import Told
from skpref.optimize._strategies import STRATEGIES, Strategy

__all__ = [
    "STRATEGIES",
    "ActiveLearner",
    "AlreadyAnswered",
    "HallucinationBelieverOptimizer",
    "PreferenceOptimizer",
    "Question",
    "Strategy",
    "Told",
    "export_journal",
    "read_journal",
]
