"""What the tests of likelihoods share."""

import numpy as np

from skpref.likelihoods import Answers, Probit


def duels(n, winner_first=True):
    """So many duels."""
    return Answers(np.zeros(n, dtype=np.int8), np.full(n, winner_first))


def log_prob(margin, noise_variance):
    """Of the probit, and its derivatives."""
    return Probit(noise_variance).log_prob(margin, duels(np.size(margin)))


def tilted(mean, variance, noise_variance):
    """Of the probit, by its closed form."""
    return Probit(noise_variance).tilted(mean, variance, duels(len(mean)))


def repeated_site(mean, variance, counts, noise_variance):
    """Of the probit."""
    return Probit(noise_variance).repeated_site(mean, variance, counts, duels(len(mean)))
