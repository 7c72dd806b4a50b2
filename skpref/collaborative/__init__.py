"""Preferences of many users, who help to understand one another."""

from skpref.collaborative._estimator import CollaborativePreferenceRegressor
from skpref.collaborative._posterior import CollaborativePosterior

__all__ = ["CollaborativePosterior", "CollaborativePreferenceRegressor"]
