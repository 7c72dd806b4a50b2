"""What the tests of likelihoods share."""

import numpy as np
from scipy.special import expit

from skpref.likelihoods import DUEL, Answers, Derivatives, Likelihood, Probit


def duels(n, lead=1):
    """So many duels."""
    return rows(np.full(n, DUEL), lead)


def rows(kind, lead=1):
    """Rows of these kinds, shown in this order."""
    kind = np.asarray(kind, dtype=np.int8)
    return Answers(kind, np.broadcast_to(np.asarray(lead, dtype=np.int8), kind.shape))


def log_prob(margin, noise_variance):
    """Of the probit, and its derivatives."""
    return Probit(noise_variance).log_prob(margin, duels(np.size(margin)))


def tilted(mean, variance, noise_variance):
    """Of the probit, by its closed form."""
    return Probit(noise_variance).tilted(mean, variance, duels(len(mean)))


def repeated_site(mean, variance, counts, noise_variance):
    """Of the probit."""
    return Probit(noise_variance).repeated_site(mean, variance, counts, duels(len(mean)))


class BareProbit(Likelihood):
    """The probit by its probability alone: everything else is the default of `Likelihood`."""

    hyperparameters = ("noise_variance",)

    def __init__(self, noise_variance=1e-2, noise_variance_bounds=(1e-4, 10.0)):
        self.noise_variance, self.noise_variance_bounds = noise_variance, noise_variance_bounds

    def log_prob(self, margin, answers):
        return Probit(self.noise_variance).log_prob(margin, answers)


class Logistic(Likelihood):
    """1 / (1 + exp(−margin / scale)): Bradley and Terry's model."""

    hyperparameters = ("scale",)

    def __init__(self, scale=0.1, scale_bounds=(1e-3, 10.0)):
        self.scale, self.scale_bounds = scale, scale_bounds

    def log_prob(self, margin, answers):
        win, lose, s = expit(margin / self.scale), expit(-margin / self.scale), self.scale
        slope = win * lose
        return Derivatives(
            -np.logaddexp(0.0, -margin / s), lose / s, slope / s**2, slope * (win - lose) / s**3
        )
