"""Preferential optimisation: ask for a duel or a set, tell which is better.

An optimizer proposes items of a space or a pool, and learns from each answer. A journal keeps every
event on disk before a call returns, so that a run goes on after a crash or on another machine.
`PreferenceOptimizer` fits its own model; the active learner takes an estimator.
"""

from skpref.optimize._dimensions import MAX_STEPS
from skpref.optimize._gain import ExpectedGain
from skpref.optimize._journal import export_journal, read_journal
from skpref.optimize._learner import ActiveLearner, Question
from skpref.optimize._limits import when
from skpref.optimize._optimizer import HallucinationBelieverOptimizer, PreferenceOptimizer
from skpref.optimize._session import AlreadyAnswered
from skpref.optimize._spaces import item_title
from skpref.optimize._state import HistoryEntry
from skpref.optimize._strategies import STRATEGIES, Strategy

__all__ = [
    "STRATEGIES",
    "ActiveLearner",
    "AlreadyAnswered",
    "ExpectedGain",
    "HallucinationBelieverOptimizer",
    "HistoryEntry",
    "PreferenceOptimizer",
    "Question",
    "Strategy",
    "export_journal",
    "read_journal",
    "when",
]
