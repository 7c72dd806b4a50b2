"""What expectation propagation says of small problems of duels, by dense algebra and quadrature.

Written independently of the package. A utility is a sum of parts that are independent beforehand.
If there is one, this is expectation propagation (Minka 2001). If there are several, what answers
say of one counts as independent of what they say of another: each answer sends each part a Gaussian
message, how large its share of the margin must have been given what is known of the others from all
else (belief propagation on Gaussians: Weiss and Freeman 2001; of items through time: Maystre,
Kristof and Grossglauser 2019). Answers of a later group meet the parts as the groups before left
them. An answer of weight 3 is three equal ones, with a site each; one of a weight below 1 is the
power of a probability.
"""

import numpy as np
from matrix_oracle import log_prob, outcomes

_STEPS, _SETTLED = 2_000, 1e-9
_GRID = np.linspace(-9.0, 9.0, 901)
_DENSITY = np.exp(-0.5 * _GRID**2)
_DENSITY = _DENSITY / _DENSITY.sum()


def propagated(parts, noise, groups, asked):
    """Probabilities of the outcomes of ``asked``, one array each.

    Parameters
    ----------
    parts : list of ndarray of shape (p, p)
        Prior covariances of the parts of the utility.
    noise : Noise
    groups : list of list of AnswerArguments
        Of duels, in the order in which they are told.
    asked : list of AnswerArguments
    """
    known = [(np.zeros(len(K)), K) for K in parts]
    for answers in groups:
        known = _told(known, noise, _counted(answers))
    found = []
    for one in asked:
        d = _contrast(one, len(parts[0]))
        mean = sum(d @ each for each, _ in known)
        variance = sum(d @ cov @ d for _, cov in known)
        g = np.column_stack([mean + np.sqrt(variance) * _GRID, np.zeros(len(_GRID))])
        here = one._replace(shown=(0, 1))
        found.append(_DENSITY @ outcomes(g, None, noise, here, None, None, None))
    return found


def _counted(answers):
    """Equal answers as one of their summed weight."""
    found = {}
    for one in answers:
        if one.weight == 0.0:
            continue
        if one.rank[0] > one.rank[1] or (one.rank[0] == one.rank[1] and one.shown[0] > one.shown[1]):
            one = one._replace(shown=one.shown[::-1], rank=one.rank[::-1], lead=-one.lead)
        key = one._replace(weight=0.0)
        found[key] = found.get(key, 0.0) + one.weight
    return [one._replace(weight=weight) for one, weight in found.items()]


def _contrast(one, p):
    d = np.zeros(p)
    d[one.shown[0]] += 1.0
    d[one.shown[1]] -= 1.0
    return d


def _told(known, noise, answers):
    """The parts, means and covariances, after some answers."""
    D = np.array([_contrast(one, len(known[0][0])) for one in answers])
    n = len(D)
    # Of each answer and part, precision and shift of the message about the part's share.
    precision, shift = np.zeros((2, len(known), n))
    copies = np.maximum([one.weight for one in answers], 1.0)
    site, aim = np.zeros((2, n))  # of one of these copies
    for _ in range(_STEPS):
        messages = zip(known, precision, shift, strict=True)
        after = [_given(D, *each, *told) for each, *told in messages]
        mean = np.array([D @ m for m, _ in after])
        variance = np.array([np.einsum("ij,jk,ik->i", D, cov, D) for _, cov in after])
        # Of each share without the answer's own message.
        left = variance / (1.0 - precision * variance)
        centre = left * (mean / np.where(variance > 0.0, variance, 1.0) - shift)
        whole, middle = left.sum(axis=0), centre.sum(axis=0)
        moved = 0.0
        for i, one in enumerate(answers):
            cavity = 1.0 / whole[i] + (copies[i] - 1.0) * site[i]
            pull = middle[i] / whole[i] + (copies[i] - 1.0) * aim[i]
            m, v = _tilted(one, noise, pull / cavity, 1.0 / cavity)
            new = 1.0 / v - cavity, m / v - pull
            moved = max(moved, abs(new[0] - site[i]), abs(new[1] - aim[i]))
            site[i] += 0.5 * (new[0] - site[i])
            aim[i] += 0.5 * (new[1] - aim[i])
        others, about = whole - left, middle - centre
        precision = copies * site / (1.0 + copies * site * others)
        shift = copies * (aim - site * about) / (1.0 + copies * site * others)
        if moved < _SETTLED:
            return after
    raise AssertionError("did not settle")


def _given(D, mean, cov, precision, shift):
    """Mean and covariance of a part after messages about D times it."""
    gain = cov @ D.T @ np.linalg.inv(np.eye(len(D)) + precision[:, None] * (D @ cov @ D.T))
    seen = D @ mean
    return mean + gain @ (shift - precision * seen), cov - gain @ (precision[:, None] * (D @ cov))


def _tilted(one, noise, mean, variance):
    """Mean and variance of a margin given an answer about it and all else."""
    z = mean + np.sqrt(variance) * _GRID
    g = np.column_stack([z, np.zeros_like(z)])
    here = one._replace(shown=(0, 1))
    log = min(one.weight, 1.0) * log_prob(g, noise, here, one.reliability, one.own)
    weight = _DENSITY * np.exp(log - log.max())
    weight = weight / weight.sum()
    mean = weight @ z
    return mean, weight @ (z - mean) ** 2
