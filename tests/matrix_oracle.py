"""Exact answers to small problems of every kind and context, by importance sampling.

Written independently of the package. A problem has utilities g ~ N(0, K), one for each item (of
each user); each answer has a probability given g, the judge's noise integrated out by quadrature;
judges' reliability is summed over on a grid. What all answers see of g are a few contrasts. Their
posterior is met by quasi-random points from a mixture of the prior and a normal density that is
fitted to it, weighed so that no bias comes in.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri
from scipy_support import sobol

_REPEATS, _LOG_2_POINTS, _ROUNDS = 4, 10, 6
_PRIOR_SHARE = 0.25
# Directions that answers see from which on there are more points.
_MANY_SEEN = 8
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_RELIABILITY_NODES, _RELIABILITY_WEIGHTS = np.polynomial.hermite_e.hermegauss(11)
_RELIABILITY_WEIGHTS = _RELIABILITY_WEIGHTS / _RELIABILITY_WEIGHTS.sum()


class AnswerArguments(NamedTuple):
    """An answer: rows of g in the order shown, and their ranks (1 the best, 0 none; equal: a tie
    of two). ``lead``: 1 where the first was shown first, −1 the second, 0 none. ``reliability``
    multiplies the margin, ``own`` is added to that of what was shown first; with a law of judges
    it says both. ``grade``: how clear a win is, 1 the least."""

    shown: tuple
    rank: tuple
    lead: int = 1
    weight: float = 1.0
    judge: int | None = None
    reliability: float = 1.0
    own: float = 0.0
    grade: int = 1


class Noise(NamedTuple):
    """What the probability of an answer depends on beside g; ``grades``: where the clearer wins of
    duels begin."""

    variance: float
    threshold: float | None = None
    order_effect: float = 0.0
    grades: tuple = ()


class JudgesLaw(NamedTuple):
    """What is expected of judges."""

    reliability_variance: float
    random: float
    adversarial: float
    order_variance: float = 0.0

    def reliability(self):
        """Points of reliability and their log probabilities."""
        reliable = np.exp(np.sqrt(self.reliability_variance) * _RELIABILITY_NODES)
        shares = 1.0 - self.random - self.adversarial, self.adversarial
        weights = [share * _RELIABILITY_WEIGHTS for share in shares]
        weights = np.concatenate([*weights, [self.random]])
        with np.errstate(divide="ignore"):
            return np.concatenate([reliable, -reliable, [0.0]]), np.log(weights)


class Truth(NamedTuple):
    """Exact values, and the largest standard error of the integration of the probabilities."""

    proba: list
    error: float
    mean: np.ndarray | None = None
    deviation: np.ndarray | None = None
    log_evidence: float | None = None


def exact(K, noise, answers, asked, law=None, n_judges=0, order_variance=0.0):
    """Probabilities of the outcomes of ``asked``, and the posterior of g.

    Parameters
    ----------
    K : ndarray of shape (p, p)
    noise : Noise
    answers : list of AnswerArguments
    asked : list of AnswerArguments
        Their ranks do not count. Judge −1 is one never seen, None the reference judge.
    law : JudgesLaw, optional
    n_judges : int
    order_variance : float, default=0.0
        Of judges' own order effects, where there is no law and each answer says its reliability.
    """
    root = _root(K)
    own = order_variance if law is None else law.order_variance
    n_own = n_judges if own > 0.0 else 0
    basis, rank = _seen(root, answers)
    p = root.shape[1]
    # First what the answers see, judges' own order effects, then the rest.
    # Of reliability there may be two modes.
    more = 0 if law is None and rank < _MANY_SEEN else 1
    uniform = _uniforms(p + n_own + 1, _LOG_2_POINTS + more)

    def unpack(x):
        g = np.hstack([x[:, :rank], x[:, rank + n_own : p + n_own]]) @ basis.T @ root.T
        return g, np.sqrt(own) * x[:, rank : rank + n_own]

    def log_density(x):
        g, effects = unpack(x)
        return _log_likelihood(g, effects, noise, answers, law, n_judges)[0]

    d = rank + n_own
    centre, factor = _proposal(log_density, d, p + n_own)
    x = ndtri(uniform[:, :-1])
    of_prior = uniform[:, -1] < _PRIOR_SHARE
    x[~of_prior, :d] = centre + x[~of_prior, :d] @ factor.T
    log_weight = log_density(x) - _log_ratio(x[:, :d], centre, factor)
    top = log_weight.max()
    weight = np.exp(log_weight - top).reshape(_REPEATS, -1)
    g, effects = unpack(x)
    by_reliability = _log_likelihood(g, effects, noise, answers, law, n_judges)[1]
    shares = weight / weight.sum(axis=1, keepdims=True)
    proba, errors = [], []
    for one in asked:
        found = outcomes(g, effects, noise, one, law, by_reliability, uniform[:, -1])
        each = np.einsum("rp,rpk->rk", shares, found.reshape(_REPEATS, -1, found.shape[1]))
        proba.append(each.mean(axis=0))
        errors.append(each.std(axis=0, ddof=1) / np.sqrt(_REPEATS))
    w = (weight / weight.sum()).ravel()
    mean = w @ g
    deviation = np.sqrt(w @ (g - mean) ** 2)
    error = max((float(each.max()) for each in errors), default=0.0)
    return Truth(proba, error, mean, deviation, float(np.log(weight.mean()) + top))


@lru_cache(maxsize=64)
def _uniforms(dimension, log_2_points=_LOG_2_POINTS):
    draws = [sobol(dimension, seed).random_base2(log_2_points) for seed in range(_REPEATS)]
    return np.clip(np.concatenate(draws), 1e-12, 1.0 - 1e-12)


def _root(K):
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-12 * values.max()
    return vectors[:, keep] * np.sqrt(values[keep])


def _seen(root, answers):
    """Rotation of the whitened g whose first directions are all that answers see; how many."""
    rows = []
    for said in answers:
        here = [i for i, rank in zip(said.shown, said.rank, strict=True) if rank > 0]
        rows += [root[i] - root[here[0]] for i in here[1:]]
    _, values, turned = np.linalg.svd(np.array(rows))
    rank = int(np.count_nonzero(values > 1e-9 * values[0]))
    return turned.T, rank


# -- probabilities of answers ------------------------------------------------------------------


def _log_likelihood(g, effects, noise, answers, law, n_judges):
    """Log-probability of all answers, and of each judge's at each point of reliability."""
    n = len(g)
    answers = [said for said in answers if said.weight > 0.0]
    if law is None:
        total = 0.0
        for said in answers:
            own = effects[:, said.judge] if effects.shape[1] else said.own
            total = total + said.weight * log_prob(g, noise, said, said.reliability, own)
        return np.asarray(total), None
    reliability, log_share = law.reliability()
    by_reliability = np.tile(log_share, (n_judges, n, 1))
    for said in answers:
        own = effects[:, said.judge][:, None] if effects.shape[1] else 0.0
        by_reliability[said.judge] += said.weight * log_prob(
            g[:, None], noise, said, reliability, own
        )
    top = by_reliability.max(axis=2, keepdims=True)
    total = np.sum(top[..., 0] + np.log(np.exp(by_reliability - top).sum(axis=2)), axis=0)
    return total, by_reliability


def log_prob(g, noise, said, reliability, own):
    """Log-probability of one answer; g (..., p)."""
    rank = np.array(said.rank)
    there = np.flatnonzero(rank > 0)
    row = [said.shown[i] for i in there]
    rank = rank[there]
    first = np.zeros(len(there))
    if said.lead:
        first[there == (0 if said.lead > 0 else 1)] = 1.0
    scale = np.sqrt(noise.variance)
    if len(row) == 2:
        margin = reliability * (g[..., row[0]] - g[..., row[1]])
        margin = margin + (first[0] - first[1]) * (noise.order_effect + own)
        delta, s = noise.threshold or 0.0, np.sqrt(2.0) * scale
        if rank[0] == rank[1]:
            with np.errstate(divide="ignore"):
                return np.log(
                    ndtr((delta - np.abs(margin)) / s) - ndtr((-delta - np.abs(margin)) / s)
                )
        ahead = np.where(rank[0] < rank[1], margin, -margin)
        if noise.grades:
            begin, end = (delta, *noise.grades, np.inf)[said.grade - 1 : said.grade + 1]
            middle = np.where(ahead > begin, -1.0, 1.0)  # of the two tails the one less near 1
            ends = np.sort([middle * (ahead - begin) / s, middle * (ahead - end) / s], axis=0)
            return np.log(np.maximum(ndtr(ends[1]) - ndtr(ends[0]), 1e-300))
        return log_ndtr((ahead - delta) / s)
    u = [
        g[..., i] / scale + noise.order_effect / scale * ahead
        for i, ahead in zip(row, first, strict=True)
    ]
    best, worst = np.flatnonzero(rank == 1), np.flatnonzero(rank == rank.max())
    if rank.max() == 2 and len(best) == 1:
        one, sign = best[0], 1.0
    elif rank.max() == 2 and len(worst) == 1:
        one, sign = worst[0], -1.0
    else:
        assert sorted(rank.tolist()) == [1, 2, 3], "other rankings are not integrated here"
        a, b, c = np.argsort(rank)
        return np.log(
            np.maximum(_mean(lambda e: ndtr(u[a] - u[b] - e) * ndtr(u[b] - u[c] + e)), 1e-300)
        )
    others = [i for i in range(len(row)) if i != one]
    return np.log(
        np.maximum(
            _mean(lambda e: np.prod([ndtr(sign * (u[one] - u[i]) + e) for i in others], axis=0)),
            1e-300,
        )
    )


def _mean(function):
    """Mean over a standard normal."""
    return sum(w * function(e) for e, w in zip(_NODES, _WEIGHTS, strict=True))


def _outcomes_of(one, noise):
    """All answers that a question may have."""
    k, grades = len(one.shown), range(1, len(noise.grades) + 2)
    if k > 2:
        ranks = [tuple(1 if i == j else 2 for j in range(k)) for i in range(k)]
        return [one._replace(rank=rank) for rank in ranks]
    found = [one._replace(rank=(2, 1), grade=grade) for grade in reversed(grades)]
    if noise.threshold is not None:
        found.append(one._replace(rank=(1, 1)))
    return found + [one._replace(rank=(1, 2), grade=grade) for grade in grades]


def outcomes(g, effects, noise, one, law, by_reliability, uniform):
    outcomes = _outcomes_of(one, noise)
    if law is None or one.judge is None:
        return np.column_stack(
            [np.exp(log_prob(g, noise, each, one.reliability, one.own)) for each in outcomes]
        )
    reliability, log_share = law.reliability()
    if one.judge >= 0:
        posterior = by_reliability[one.judge]
        own = effects[:, one.judge][:, None] if effects.shape[1] else 0.0
    else:
        posterior = np.tile(log_share, (len(g), 1))
        own = np.sqrt(law.order_variance) * ndtri(uniform)[:, None]
    share = np.exp(posterior - posterior.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    found = [log_prob(g[:, None], noise, each, reliability, own) for each in outcomes]
    return np.column_stack([np.sum(share * np.exp(each), axis=1) for each in found])


# -- where the points are ------------------------------------------------------------------------


def _log_ratio(x, centre, factor):
    """Log of the mixture's density over the prior's."""
    z = np.linalg.solve(factor, (x - centre).T).T
    log_fitted = -0.5 * np.sum(z**2 - x**2, axis=1) - np.log(np.abs(np.diag(factor))).sum()
    return np.logaddexp(np.log(_PRIOR_SHARE), np.log1p(-_PRIOR_SHARE) + log_fitted)


def _proposal(log_density, d, n_all):
    """Mean and root of a normal density near the posterior, wider than it; by tempered rounds."""
    centre, factor = np.zeros(d), np.eye(d)
    uniform = _uniforms(n_all + 1)[: 2**_LOG_2_POINTS]
    of_prior = uniform[:, -1] < _PRIOR_SHARE
    for _ in range(_ROUNDS):
        x = ndtri(uniform[:, :-1])
        x[~of_prior, :d] = centre + x[~of_prior, :d] @ factor.T
        log_weight = log_density(x) - _log_ratio(x[:, :d], centre, factor)
        weight = _tempered(log_weight, 10.0 * d + 50.0)
        centre = weight @ x[:, :d]
        off = x[:, :d] - centre
        covariance = (weight[:, None] * off).T @ off
        factor = 1.1 * np.linalg.cholesky(covariance + 1e-6 * np.eye(d))
    return centre, factor


def _tempered(log_weight, least):
    """Weights, brought nearer to each other until so many points count."""
    power = 1.0
    while True:
        weight = np.exp(power * (log_weight - log_weight.max()))
        weight /= weight.sum()
        if 1.0 / (weight @ weight) >= min(least, 0.5 * len(weight)) or power < 1e-3:
            return weight
        power *= 0.7
