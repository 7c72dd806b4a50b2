"""Truths about answers of every kind, in the utilities that the judge saw.

Written independently of the package, which works in margins: here every item of every answer has a
noisy utility u of its own, answers bound one u by others, and all is one Gaussian integral.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy_support import sobol
from sklearn.gaussian_process.kernels import RBF

# Ranks in the order best first; what an answer says of the items is one of these.
PATTERNS = {
    "duel": (1, 2),
    "tie": (1, 1),
    "best of 3": (1, 2, 2),
    "best of 4": (1, 2, 2, 2),
    "worst of 3": (1, 1, 2),
    "worst of 4": (1, 1, 1, 2),
    "ranking of 3": (1, 2, 3),
    "ranking of 4": (1, 2, 3, 4),
    "ranking of 2 of 3": (1, 2, 0),
    "ranking of 3 of 4": (1, 2, 3, 0),
    "best two of 4, ranked": (1, 2, 3, 3),
    "best and worst of 4": (1, 2, 2, 3),
    "better half of 4": (1, 1, 2, 2),
}


class Answer(NamedTuple):
    """Rows of the items in the order shown, their ranks, and who counts as shown first."""

    kind: str
    shown: tuple
    rank: tuple
    order: int = 1

    @property
    def tie(self):
        return self.kind == "tie"


class AnswersProblem(NamedTuple):
    """Answers about rows of ``items``, and pairs and sets (of items) to predict."""

    kernel: object
    noise_variance: float
    tie_threshold: float | None
    order_effect: float
    items: np.ndarray
    answers: list
    first: np.ndarray
    second: np.ndarray
    sets: np.ndarray
    order: np.ndarray


def answers_problem(seed, kinds=None, noise_variance=None, n_answers=None):
    """One to six answers that share items; of every other problem they contradict each other."""
    rng = np.random.default_rng(seed)
    n_answers = 1 + seed % 6 if n_answers is None else n_answers
    if noise_variance is None:
        noise_variance = 10.0 ** rng.uniform(-3.0, 0.0)
    kernel = RBF(np.exp(rng.uniform(np.log(0.2), np.log(2.0))))
    items = rng.uniform(-1.0, 1.0, (rng.integers(4, 8), 2))
    threshold = rng.uniform(0.05, 0.6) if rng.random() < 0.5 or kinds is not None else None
    effect = rng.uniform(-0.5, 0.5) if rng.random() < 0.7 else 0.0
    covariance = kernel(items) + 1e-10 * np.eye(len(items))
    utility = rng.multivariate_normal(np.zeros(len(items)), covariance)
    honest = seed % 2 == 0
    answers = []
    for _ in range(n_answers):
        kind = str(rng.choice(list(PATTERNS) if kinds is None else kinds))
        if kind == "tie" and threshold is None:
            kind = "duel"
        shown = rng.permutation(len(items))[: len(PATTERNS[kind])]
        order = int(rng.integers(-1, 2)) if len(shown) == 2 else int(rng.integers(0, 2))
        u = np.zeros(len(shown))
        if honest:
            u = utility[shown] + np.sqrt(noise_variance) * rng.standard_normal(len(shown))
            if order:
                u[0 if order > 0 else 1] += effect
        best_first = np.argsort(-u) if honest else rng.permutation(len(shown))
        if honest and len(shown) == 2 and threshold is not None:
            kind = "tie" if abs(u[0] - u[1]) < threshold else "duel"
        pattern = np.array(PATTERNS[kind])
        if 0 in pattern:  # any of the items may be left out, not the worst alone
            pattern = _spread(rng, pattern)
        rank = np.empty(len(shown), dtype=int)
        rank[best_first] = pattern
        answers.append(Answer(kind, tuple(shown.tolist()), tuple(rank.tolist()), order))
    everything = np.concatenate([items, rng.uniform(-1.2, 1.2, (4, 2))])
    pairs = np.array([rng.permutation(len(everything))[:2] for _ in range(4)])
    sets = np.array([rng.permutation(len(everything))[:3] for _ in range(3)])
    return AnswersProblem(
        kernel,
        noise_variance,
        threshold,
        effect,
        items,
        answers,
        *everything[pairs].swapaxes(0, 1),
        everything[sets],
        np.array([1, 0, -1, 1]),
    )


def _spread(rng, pattern):
    """The same ranks, best first, with the zeros anywhere."""
    spread = np.zeros(len(pattern), dtype=int)
    at = np.sort(rng.permutation(len(pattern))[: np.count_nonzero(pattern)])
    spread[at] = pattern[pattern > 0]
    return spread


class _Bound(NamedTuple):
    """u is above the largest of others plus ``lower``, below the smallest plus ``upper``."""

    above: list
    lower: float
    below: list
    upper: float


def _presented(problem):
    """Items, means and bounds of all utilities seen, so ordered that bounds come from before."""
    threshold = problem.tie_threshold or 0.0
    item, mean, bounds = [], [], []

    def see(answer, place, bound):
        ahead = (answer.order == 1 and place == 0) or (answer.order == -1 and place == 1)
        item.append(answer.shown[place])
        mean.append(problem.order_effect * ahead)
        bounds.append(bound)
        return len(item) - 1

    for answer in problem.answers:
        rank = np.array(answer.rank)
        if answer.tie:
            at = see(answer, 0, _Bound([], 0.0, [], 0.0))
            see(answer, 1, _Bound([at], -threshold, [at], threshold))
            continue
        groups = [np.flatnonzero(rank == r).tolist() for r in range(1, rank.max() + 1)]
        apart = threshold if np.count_nonzero(rank) == 2 else 0.0  # what is one duel
        upwards = len(groups[-1]) < len(groups[0])
        before = []
        for group in groups[::-1] if upwards else groups:
            bound = _Bound([], 0.0, before, -apart)
            if upwards:
                bound = _Bound(before, apart, [], 0.0)
            before = [see(answer, place, bound) for place in group]
    return np.array(item), np.array(mean), bounds


class AnswersTruth(NamedTuple):
    """Exact values, each with the standard error of its integration."""

    log_evidence: float
    outcomes: np.ndarray
    choices: np.ndarray
    log_evidence_error: float
    outcomes_error: np.ndarray
    choices_error: np.ndarray


@lru_cache(maxsize=32)
def _uniforms(dimension, repeats, log_2_points):
    draws = [sobol(dimension, seed).random_base2(log_2_points) for seed in range(repeats)]
    return np.clip(np.concatenate(draws), 1e-15, 1.0 - 1e-15)


def answers_truth(problem, repeats=8, log_2_points=11):
    """Ratios of box probabilities: separation of variables (Genz 1992) with scrambled Sobol points.

    The standard normals are drawn about shifts that are linear in those before, fitted to the
    posterior by the cross-entropy method (Rubinstein 1999); whatever they are, no bias comes in.
    Outcomes are (second won, [tie,] first won) of every pair asked about; choices P(each is the
    best) of every set, by one more integral each.
    """
    item, mean, bounds = _presented(problem)
    t, k = len(item), problem.sets.shape[1]
    K = problem.kernel
    seen = problem.items[item]
    L = np.linalg.cholesky(K(seen) + problem.noise_variance * np.eye(t))
    uniforms = _uniforms(t + k, repeats, log_2_points)
    proposal = _proposal(mean, bounds, L, log_2_points)
    drawn = _walk(mean, bounds, L, uniforms, *proposal)
    normal, log_weight = drawn.normal, drawn.log_weight
    top = log_weight.max()
    weight = np.exp(log_weight - top).reshape(repeats, -1)
    each = weight.mean(axis=1)

    def expected(values):
        found = np.einsum("rp,rp->r", weight, values.reshape(repeats, -1)) / weight.sum(axis=1)
        return found.mean(), found.std(ddof=1) / np.sqrt(repeats)

    def given(X, ahead):
        """Factor of the covariance of noisy utilities at new items, and their means."""
        cross = np.linalg.solve(L, K(seen, X))
        left = K(X) + problem.noise_variance * np.eye(len(X)) - cross.T @ cross
        return normal @ cross + problem.order_effect * ahead, np.linalg.cholesky(left)

    outcomes = []
    for a, b, lead in zip(problem.first, problem.second, problem.order, strict=True):
        centre, half = given(np.stack([a, b]), np.array([lead == 1, lead == -1]))
        margin = centre[:, 0] - centre[:, 1]
        spread = np.linalg.norm(half[0] - half[1])
        delta = problem.tie_threshold or 0.0
        lost, won = ndtr((-delta - margin) / spread), ndtr((margin - delta) / spread)
        parts = (lost, won) if problem.tie_threshold is None else (lost, 1.0 - lost - won, won)
        outcomes.append([expected(part) for part in parts])
    choices = []
    for X in problem.sets:
        found = []
        for i in range(k):
            at = [i, *np.delete(np.arange(k), i)]
            centre, half = given(X[at], np.array(at) == 0)
            found.append(expected(_is_first_best(centre, half, uniforms[:, t:])))
        choices.append(found)
    outcomes, choices = np.array(outcomes), np.array(choices)
    error = each.std(ddof=1) / np.sqrt(repeats) / each.mean()
    return AnswersTruth(
        np.log(each.mean()) + top, outcomes[..., 0], choices[..., 0],
        error, outcomes[..., 1], choices[..., 1],
    )  # fmt: skip


class _Walk(NamedTuple):
    """Standard normals behind u, (n, t), where each might lie, and the weights of the points."""

    normal: np.ndarray
    low: np.ndarray
    high: np.ndarray
    log_weight: np.ndarray


def _walk(mean, bounds, L, uniforms, slopes, scales):
    """Draw one utility after the other within its bounds."""
    n, t = len(uniforms), len(bounds)
    normal, u, low, high = np.zeros((4, n, t))
    log_weight = np.zeros(n)
    for i, bound in enumerate(bounds):
        centre = mean[i] + normal[:, :i] @ L[i, :i]
        low[:, i], high[:, i] = ((limit - centre) / L[i, i] for limit in _limits(bound, u))
        shift, scale = slopes[i, 0] + normal[:, :i] @ slopes[i, 1 : i + 1], scales[i]
        z, share = _truncated(
            (low[:, i] - shift) / scale, (high[:, i] - shift) / scale, uniforms[:, i]
        )
        x = np.clip(shift + scale * z, low[:, i], high[:, i])
        log_weight += np.log(share * scale) + 0.5 * (z**2 - x**2)
        normal[:, i], u[:, i] = x, centre + L[i, i] * x
    return _Walk(normal, low, high, log_weight)


def _proposal(mean, bounds, L, log_2_points, n_rounds=9):
    """Shifts and scales of the round whose weights were the most even."""
    t = len(bounds)
    slopes, scales = np.zeros((t, t + 1)), np.ones(t)
    best, most = (slopes.copy(), scales.copy()), 0.0
    for n_round in range(n_rounds):
        uniforms = _uniforms(t, n_rounds, log_2_points).reshape(n_rounds, -1, t)[n_round]
        drawn = _walk(mean, bounds, L, uniforms, slopes, scales)
        weight = np.exp(drawn.log_weight - drawn.log_weight.max())
        weight /= weight.sum()
        effective = 1.0 / (weight @ weight)
        if effective > most:
            best, most = (slopes.copy(), scales.copy()), effective
        _adapt(slopes, scales, drawn, weight, linear=n_round > 2 and effective > 20.0 * t)
    return best


def _adapt(slopes, scales, drawn, weight, linear):
    """Shifts (and, where nothing bounds, scales) that fit the weighted points, in place."""
    n, t = drawn.normal.shape
    for i in range(t):
        m = i + 1 if linear else 1
        known = np.column_stack([np.ones(n), drawn.normal[:, :i]])
        for _ in range(2):
            shift, scale = known @ slopes[i, : i + 1], scales[i]
            a, b = (drawn.low[:, i] - shift) / scale, (drawn.high[:, i] - shift) / scale
            mean, variance = _moments(a, b)
            left = drawn.normal[:, i] - shift - scale * mean
            gram = (known[:, :m] * (weight * variance)[:, None]).T @ known[:, :m]
            step = np.linalg.solve(gram + 1e-3 * np.eye(m), known[:, :m].T @ (weight * left))
            slopes[i, :m] += np.clip(step, -1.0, 1.0)
        if np.all(np.isinf(drawn.low[:, i]) & np.isinf(drawn.high[:, i])):
            left = drawn.normal[:, i] - known @ slopes[i, : i + 1]
            scales[i] = np.clip(1.3 * np.sqrt(weight @ left**2), 0.3, 1.0)


def _moments(low, high):
    """Mean and variance of a standard normal between bounds, roughly in the tails."""
    low, high = np.clip(low, -30.0, 30.0), np.clip(high, -30.0, 30.0)
    share = np.where(low > -high, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    share = np.maximum(share, 1e-290)
    at_low, at_high = (np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi) / share for x in (low, high))
    mean = at_low - at_high
    variance = 1.0 + low * at_low - high * at_high - mean**2
    return mean, np.clip(variance, 1e-3, 1.0)


def _limits(bound, u):
    low = u[:, bound.above].max(axis=1) + bound.lower if bound.above else np.full(len(u), -np.inf)
    high = u[:, bound.below].min(axis=1) + bound.upper if bound.below else np.full(len(u), np.inf)
    return low, high


def _truncated(low, high, uniform):
    """Standard normals between bounds, and the probability of being there."""
    turn = low > -high  # work in the lower tail, where differences are exact
    low, high = np.where(turn, -high, low), np.where(turn, -low, high)
    below, share = ndtr(low), ndtr(high) - ndtr(low)
    share = np.maximum(share, 1e-300)
    normal = np.clip(ndtri(np.maximum(below + uniform * share, 1e-300)), low, high)
    return np.where(turn, -normal, normal), share


def _is_first_best(centre, half, uniforms):
    """P(the first of some is the largest), by a draw of all but the last."""
    k = centre.shape[1]
    normal, weight = np.zeros(centre.shape), np.ones(len(centre))
    best = None
    for i in range(k):
        at = centre[:, i] + normal[:, :i] @ half[i, :i]
        high = np.full(len(at), np.inf) if best is None else (best - at) / half[i, i]
        normal[:, i], share = _truncated(np.full(len(at), -np.inf), high, uniforms[:, i])
        weight = weight * share
        if best is None:
            best = at + half[i, i] * normal[:, i]
    return weight
