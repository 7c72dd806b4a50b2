"""Preferences of many users, who help to understand one another.

A population's utility, what users' features tell, and each user's own taste are one Gaussian prior.
EP on it shares the work among teams of users; `"vb"` factorises the posterior, as the source does.
"""

from skpref.collaborative._estimator import CollaborativePreferenceRegressor
from skpref.collaborative._posterior import CollaborativePosterior

__all__ = ["CollaborativePosterior", "CollaborativePreferenceRegressor"]
