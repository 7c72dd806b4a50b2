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

_STEPS, _STEP, _SETTLED = 2_000, 0.7, 1e-9
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
        counted = _counted(answers, noise)
        if counted:
            known = _told(known, noise, counted)
    found = []
    for one in asked:
        d = _contrast(one, len(parts[0]))
        mean = sum(d @ each for each, _ in known)
        variance = sum(d @ cov @ d for _, cov in known)
        g = np.column_stack([mean + np.sqrt(variance) * _GRID, np.zeros(len(_GRID))])
        here = one._replace(shown=(0, 1))
        found.append(_DENSITY @ outcomes(g, None, noise, here, None, None, None))
    return found


def _counted(answers, noise):
    """Equal answers as one of their summed weight."""
    if noise.order_effect == 0.0:
        answers = [one._replace(lead=0) if one.own == 0.0 else one for one in answers]
    found = {}
    for one in answers:
        if one.weight == 0.0:
            continue
        turned, tied = one.rank[0] > one.rank[1], one.rank[0] == one.rank[1]
        if turned or (tied and one.shown[0] > one.shown[1]):
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
    contrasts = [_contrast(one, len(known[0][0])) for one in answers]
    # Answers about the same two are factors of one margin, whichever comes first.
    number, margin, sign = {}, [], []
    for d in contrasts:
        turned = -1.0 if d[np.flatnonzero(d)[0]] < 0.0 else 1.0
        margin.append(number.setdefault(tuple(turned * d), len(number)))
        sign.append(turned)
    margin, sign = np.array(margin), np.array(sign)
    D = np.array(list(number))
    copies = np.maximum([one.weight for one in answers], 1.0)
    step = _STEP / np.bincount(margin, copies)[margin]
    site, aim = np.zeros((2, len(answers)))  # of one of these copies, of the first's margin
    prior = sum(cov for _, cov in known)
    S, before = D @ prior @ D.T, D @ sum(mean for mean, _ in known)
    # Of each part and margin the precision of the message about the part's share.
    precision = np.zeros((len(known), len(D)))
    for _ in range(_STEPS):
        total = np.bincount(margin, copies * site, len(D))
        pull = np.bincount(margin, copies * sign * aim, len(D))
        gain = np.linalg.solve(np.eye(len(D)) + total[:, None] * S, pull - total * before)
        mean = before + S @ gain
        after = [_given(D, cov, told) for (_, cov), told in zip(known, precision, strict=True)]
        variance = np.array([np.einsum("ij,jk,ik->i", D, cov, D) for cov in after])
        left = variance / (1.0 - precision * variance)  # without the margin's own message
        whole = left.sum(axis=0)
        moved = 0.0
        for i, one in enumerate(answers):
            at = margin[i]
            cavity = 1.0 / whole[at] + total[at] - site[i]
            toward = sign[i] * (mean[at] * (1.0 / whole[at] + total[at])) - aim[i]
            m, v = _tilted(one, noise, toward / cavity, 1.0 / cavity)
            new = 1.0 / v - cavity, m / v - toward
            moved = max(moved, abs(new[0] - site[i]), abs(new[1] - aim[i]))
            site[i] += step[i] * (new[0] - site[i])
            aim[i] += step[i] * (new[1] - aim[i])
        if moved < _SETTLED:
            dual = (pull - total * mean) @ D
            means = [mean + cov @ dual for mean, cov in known]
            return list(zip(means, after, strict=True))
        precision = total / (1.0 + total * (whole - left))
    raise AssertionError("did not settle")


def _given(D, cov, precision):
    """Covariance of a part after messages about D times it."""
    gain = cov @ D.T @ np.linalg.inv(np.eye(len(D)) + precision[:, None] * (D @ cov @ D.T))
    return cov - gain @ (precision[:, None] * (D @ cov))


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
