"""Small random problems with answers of every kind, and what is true of them.

Written with numpy and scipy alone, from what the documentation says of prior and answers: nothing
of the package is called. Utilities g ~ N(0, K) are of rows (items, or items as they are in one
answer, at one time, or of one user). An item's noise in an answer has variance σ².
"""

from itertools import combinations, pairwise, permutations
from typing import NamedTuple

import numpy as np
from _importance import Array, draw_posterior, fit_normal
from scipy.special import ndtr
from scipy.stats import norm

DUEL_KINDS = ("duels", "ties", "graded", "counted", "order", "controls", "drift")
SET_KINDS = ("best", "worst", "rankings", "best and worst")
KINDS = (*DUEL_KINDS, *SET_KINDS, "users")
PRIORS = ("names", "features", "linear", "ids and features")
N_PAIRS = 6
# Draws at first and at most; fewer of answers that are integrated on a grid.
N_DRAWS = dict.fromkeys(KINDS, 2**15)
N_DRAWS |= {"best": 2**14, "worst": 2**14, "rankings": 2**13, "best and worst": 2**13}
MOST_DRAWS = 2**19
N_EFFECTIVE = 4000.0


class Answer(NamedTuple):
    """Rows as shown, their ranks (1 the best; equal ranks: a tie of two, or nothing is said).

    ``lead`` is 1 where the first was shown first, -1 the second, 0 none; ``grade`` says how clear a
    win is, and ``count`` how often the answer was given.
    """

    shown: tuple
    rank: tuple
    lead: int = 1
    grade: int = 1
    count: int = 1


class Noise(NamedTuple):
    """Variance of each item's noise, threshold of a tie (0: none), order effect, and thresholds of
    clearer wins."""

    variance: float
    threshold: float = 0.0
    order_effect: float = 0.0
    grades: tuple = ()


class Prior(NamedTuple):
    """What the covariance of utilities is made of; a variance or length of 0 is none."""

    own: float = 0.0
    smooth: float = 0.0
    length: float = 0.0
    linear: float = 0.0
    drift: str = ""
    drift_variance: float = 0.0
    drift_length: float = 0.0


class RandomProblem(NamedTuple):
    """Answers about rows (id, features..., time or user), and questions.

    ``duels`` and ``sets`` are rows of what is asked, ``lead`` who is shown first there.
    """

    kind: str
    prior_name: str
    prior: Prior
    rows: Array
    K: Array
    noise: Noise
    answers: tuple
    duels: Array
    sets: Array
    lead: int


class Truth(NamedTuple):
    """Exact moments of margins, P(better), probabilities of next answers, and log evidence.

    ``error`` holds the Monte Carlo error of each, in the units in which engines are compared.
    """

    mean: Array
    deviation: Array
    better: Array
    answer: Array
    log_evidence: float
    error: dict
    n_effective: float


# -- problems --------------------------------------------------------------------------------------


def draw_problem(kind: str, seed: int) -> RandomProblem:
    """Draw a problem of a kind: items, prior, noise, answers from the model or a noisier one."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    is_set = kind in SET_KINDS
    n_items = int(rng.integers(4, 10) if is_set else rng.integers(2, 9))
    prior_name = "ids and features" if kind == "controls" else str(rng.choice(PRIORS))
    if kind == "drift" and prior_name == "ids and features":
        prior_name = "names"
    n_features = int(rng.integers(1, 4))
    prior = _draw_prior(kind, prior_name, rng)
    noise = _draw_noise(kind, rng)
    n_answers = int(np.round(np.exp(rng.uniform(0.0, np.log(8.0 if is_set else 40.0)))))
    features = rng.uniform(-1.0, 1.0, (n_items, n_features))
    if n_features == 1:  # items on a line, where margins move together
        features = np.sort(features, axis=0)
    # Times of the answers, or users; there is one more time, for questions.
    n_blocks = int(rng.integers(2, 5)) if kind in ("drift", "users") else 1
    rows = _rows(kind, features, n_answers, n_blocks, rng)
    K = covariance(prior, rows)
    if kind == "users":  # what each has of their own is as large as what they share
        n_answers = max(n_answers, n_blocks)
        K = K * (1.0 + (rows[:, -1:] == rows[:, -1]))
    root = _root(K)
    g = root @ rng.standard_normal(root.shape[1])
    simulated = noise._replace(variance=noise.variance * rng.choice([1.0, 4.0]))
    size = _size_of_sets(kind, n_items, rng)
    answers = [
        _draw_answer(
            kind, g, simulated, _shown(kind, n_items, n_blocks, size, k, n_answers, rng), rng
        )
        for k in range(n_answers)
    ]
    if noise.threshold:
        answers = _with_a_loss(answers)
    if kind == "counted":
        answers = [one._replace(count=int(rng.integers(1, 13))) for one in answers]
    last = n_items * (n_blocks if kind == "drift" else 0)  # later than all answers
    pairs = np.array(list(combinations(range(n_items), 2))) + last
    duels = pairs[rng.permutation(len(pairs))[:N_PAIRS]]
    if kind == "users":
        duels = duels + n_items * rng.integers(0, n_blocks, (len(duels), 1))
    sets = np.zeros((0, 3), int)
    if is_set:
        sets = np.array([rng.permutation(n_items)[:3] for _ in range(2)])
    lead = 1 if noise.order_effect else 0
    return RandomProblem(kind, prior_name, prior, rows, K, noise, tuple(answers), duels, sets, lead)


def _draw_prior(kind, name, rng):
    own, length = float(rng.uniform(0.1, 0.6)), float(np.exp(rng.uniform(np.log(0.3), np.log(2.0))))
    prior = {
        "names": Prior(own=1.0),
        "features": Prior(smooth=1.0, length=length),
        "linear": Prior(linear=float(rng.uniform(0.3, 2.0))),
        "ids and features": Prior(own=own, smooth=1.0, length=length),
    }[name]
    if kind == "controls":
        prior = Prior(own=1.0, linear=float(rng.uniform(0.1, 1.0)))
    if kind == "drift":
        drift = str(rng.choice(["matern12", "matern32", "wiener"]))
        variance, length = float(rng.uniform(0.1, 1.0)), float(rng.uniform(0.5, 4.0))
        prior = prior._replace(drift=drift, drift_variance=variance, drift_length=length)
    return prior


def _draw_noise(kind, rng):
    variance = float(np.exp(rng.uniform(np.log(0.01), 0.0)))
    scale = float(np.sqrt(variance))
    tied = {"ties": 1.0, "graded": 0.5, "order": 0.4, "counted": 0.3, "controls": 0.3, "drift": 0.3}
    threshold = scale * float(rng.uniform(0.3, 1.5)) if rng.random() < tied.get(kind, 0.0) else 0.0
    has_order = rng.random() < (1.0 if kind == "order" else 0.2)
    order_effect = scale * float(rng.normal()) if has_order else 0.0
    grades = ()
    if kind == "graded":
        steps = scale * rng.uniform(0.4, 1.5, int(rng.integers(1, 3)))
        grades = tuple(float(end) for end in threshold + np.cumsum(steps))
    return Noise(variance, threshold, order_effect, grades)


def _rows(kind, features, n_answers, n_blocks, rng):
    """Rows (id, features, time or user): of controls, each item as it is in each answer."""
    n_items = len(features)
    ids = np.arange(n_items)[:, None]
    if kind == "controls":
        blocks = [
            np.hstack([ids, rng.standard_normal(features.shape), np.zeros_like(ids)])
            for _ in range(n_answers + 1)
        ]
        return np.vstack(blocks[::-1])
    last = np.cumsum(np.concatenate([[0.0], rng.uniform(0.2, 2.0, n_blocks)]))
    if kind != "drift":
        last = np.arange(float(n_blocks))
    return np.vstack([np.hstack([ids, features, np.full(ids.shape, value)]) for value in last])


def _size_of_sets(kind, n_items, rng):
    if kind not in SET_KINDS:
        return 2
    least, most = {"rankings": (3, 5), "best and worst": (4, 4)}.get(kind, (3, 9))
    return int(rng.integers(least, min(most, n_items) + 1))


def _shown(kind, n_items, n_blocks, size, k, n_answers, rng):
    """Rows that an answer is about."""
    shown = rng.permutation(n_items)[:size]
    if kind == "controls":
        return shown + n_items * (k + 1)
    if kind == "drift":  # in the order of their times; the first answer is at time 0
        return shown + n_items * (k * n_blocks // n_answers)
    if kind == "users":
        return shown + n_items * (k % n_blocks)
    return shown


def _draw_answer(kind, g, noise, shown, rng):
    """Draw an answer of a kind from the model."""
    size = len(shown)
    shown = tuple(int(i) for i in shown)
    lead = 1
    if noise.order_effect:
        lead = int(rng.choice([1, -1, 0] if size == 2 else [1, 0]))
    seen = g[list(shown)] + np.sqrt(noise.variance) * rng.standard_normal(size)
    seen[0 if lead >= 0 else 1] += abs(lead) * noise.order_effect
    place = np.argsort(np.argsort(-seen))
    if size > 2:
        rank = {
            "best": np.where(place == 0, 1, 2),
            "worst": np.where(place == size - 1, 2, 1),
            "rankings": place + 1,
            "best and worst": np.where(place == 0, 1, np.where(place == size - 1, 3, 2)),
        }[kind]
        return Answer(shown, tuple(int(r) for r in rank), lead)
    gap = abs(seen[0] - seen[1])
    if gap <= noise.threshold:
        return Answer(shown, (1, 1), lead)
    grade = 1 + sum(gap > end for end in noise.grades)
    return Answer(shown, tuple(int(r) for r in place + 1), lead, grade)


def _with_a_loss(answers):
    """Turn a win round, or make the first tie a loss, where the second item won no duel.

    Labels of ties that hold no loss are refused: they may mean something else.
    """
    if any(one.rank == (2, 1) for one in answers):
        return answers
    won = [k for k, one in enumerate(answers) if one.rank == (1, 2)]
    k = won[0] if won else 0
    one = answers[k]
    turned = one._replace(shown=one.shown[::-1], rank=(2, 1), lead=-one.lead)
    return [*answers[:k], turned, *answers[k + 1 :]]


def covariance(prior: Prior, rows: Array) -> Array:
    """Return the prior covariance of the utilities of rows."""
    same = (rows[:, :1] == rows[:, 0]).astype(float)
    x, time = rows[:, 1:-1], rows[:, -1]
    K = prior.own * same + prior.linear * (x @ x.T)
    if prior.smooth:
        away = np.sum((x[:, None] - x) ** 2, axis=2)
        K = K + prior.smooth * np.exp(-0.5 * away / prior.length**2)
    if prior.drift:
        gap = np.abs(time[:, None] - time)
        u = gap / prior.drift_length
        walk = {
            "wiener": np.minimum(time[:, None], time),
            "matern12": np.exp(-u),
            "matern32": (1.0 + np.sqrt(3.0) * u) * np.exp(-np.sqrt(3.0) * u),
        }[prior.drift]
        K = K + prior.drift_variance * same * walk
    return K


# -- probabilities of answers ----------------------------------------------------------------------


def answer_log_probability(g: Array, noise: Noise, answer: Answer) -> Array:
    """Return the log-probability of one answer given utilities, (n, p), shape (n,)."""
    u = g[:, list(answer.shown)] / np.sqrt(noise.variance)
    if answer.lead:
        u[:, 0 if answer.lead > 0 else 1] += noise.order_effect / np.sqrt(noise.variance)
    with np.errstate(divide="ignore"):
        if u.shape[1] == 2:
            chance = duel_probability(u[:, 0] - u[:, 1], noise, answer)
        else:
            chance = ranks_probability(u, np.array(answer.rank))
        return np.log(np.maximum(chance, 1e-300))


def duel_probability(margin, noise, answer):
    """Return the probability of a win of its grade, or of a tie; margins in deviations of noise."""
    scale = np.sqrt(noise.variance)
    if answer.rank[0] == answer.rank[1]:
        margin, low, high = -np.abs(margin), -noise.threshold / scale, noise.threshold / scale
    else:
        margin = margin if answer.rank[0] < answer.rank[1] else -margin
        ends = np.array([noise.threshold, *noise.grades, np.inf]) / scale
        low, high = ends[answer.grade - 1 : answer.grade + 1]
    # P(low < margin + √2 e < high), by the tails in which the difference keeps its digits.
    a, b = (low - margin) / np.sqrt(2.0), (high - margin) / np.sqrt(2.0)
    return np.where(a > 0.0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))


def ranks_probability(u: Array, rank: Array) -> Array:
    """Return the probability that items, seen with unit normal noise, are ranked so."""
    top, bottom = rank == rank.min(), rank == rank.max()
    if rank.max() == 2 and top.sum() == 1:
        return best_probability(u, int(top.argmax()))
    if rank.max() == 2 and bottom.sum() == 1:
        return best_probability(-u, int(bottom.argmax()))
    # All complete orders that agree with the ranks exclude each other.
    return sum(
        order_probability(u[:, list(order)])
        for order in permutations(range(len(rank)))
        if all(rank[i] <= rank[j] for i, j in pairwise(order))
    )


def best_probability(u: Array, best: int) -> Array:
    """Return P(one item is seen above all others), by the trapezoidal rule over its noise."""
    lead = u[:, best, None] - np.delete(u, best, axis=1)
    step = 0.5
    return step * sum(norm.pdf(e) * np.prod(ndtr(lead + e), axis=1) for e in np.arange(-7, 9, step))


def order_probability(u: Array, n_points: int = 48) -> Array:
    """Return P(items are seen in this order, the best first), by integrals on a grid each.

    F_j(y) = P(item j is seen below y, and those after it in order) is the integral of
    φ(y − u_j) F_{j+1}(y); the sums are corrected by their slopes at the ends.
    """
    middle = u[:, 1:-1]
    low, high = middle.min(axis=1) - 6.5, middle.max(axis=1) + 6.5
    step = ((high - low) / (n_points - 1))[:, None]
    y = low[:, None] + step * np.arange(n_points)
    below, slope = ndtr(y - u[:, -1:]), norm.pdf(y - u[:, -1:])
    for j in range(u.shape[1] - 2, 0, -1):
        density = norm.pdf(y - u[:, j : j + 1])
        value = density * below
        if j == 1:
            return step[:, 0] * np.sum(value * ndtr(u[:, :1] - y), axis=1)
        bend = density * (slope - (y - u[:, j : j + 1]) * below)
        sums = step * (np.cumsum(value, axis=1) - 0.5 * (value + value[:, :1]))
        below = np.maximum(sums - step**2 / 12.0 * (bend - bend[:, :1]), 0.0)
        slope = value
    raise AssertionError("an order has three items at least")


# -- what is true ----------------------------------------------------------------------------------


def integrate(problem: RandomProblem, seed: int = 0) -> Truth | None:
    """Return the truth of a problem, or None where too few draws are effective."""
    rng = np.random.default_rng([seed, 2])
    root = _root(problem.K)
    basis, n_seen = _seen_directions(root, problem.answers)
    root = root @ basis
    seen = root[:, :n_seen]

    def log_likelihood(x):
        g = x @ seen.T
        return sum(
            one.count * answer_log_probability(g, problem.noise, one) for one in merged.values()
        )

    merged = {}
    for one in problem.answers:
        key = one._replace(count=0)
        before = merged[key].count if key in merged else 0
        merged[key] = one._replace(count=before + one.count)
    draws = draw_posterior(
        log_likelihood,
        [fit_normal(log_likelihood, n_seen, rng, n=1024 if len(problem.sets) else 2048)],
        rng,
        n=N_DRAWS[problem.kind],
        n_most=MOST_DRAWS,
        n_effective=N_EFFECTIVE,
        n_unseen=root.shape[1] - n_seen,
    )
    if draws is None:
        return None
    g = draws.x @ root.T
    margin = g[:, problem.duels[:, 0]] - g[:, problem.duels[:, 1]]
    outcomes = [_outcome_probabilities(g, problem, shown) for shown in problem.duels]
    outcomes += [_outcome_probabilities(g, problem, shown) for shown in problem.sets]
    parts = draws.scramble_means(margin)
    mean = draws.combined(parts)[0]
    away = draws.scramble_means((margin - mean) ** 2)
    deviation = np.sqrt(draws.combined(away)[0])
    better, better_error = draws.combined(draws.scramble_means((margin > 0.0).astype(float)))
    answer, answer_error = draws.combined(draws.scramble_means(np.hstack(outcomes)))
    weights = np.exp(draws.log_weight - draws.log_weight.max()).reshape(4, -1).mean(axis=1)
    error = {
        "mean": draws.combined(parts / deviation)[1],
        "deviation": draws.combined(np.sqrt(away) / deviation)[1],
        "better": better_error,
        "answer": answer_error,
        "log_evidence": float(np.std(np.log(weights), ddof=1) / 2.0),
    }
    return Truth(mean, deviation, better, answer, draws.log_evidence, error, draws.n_effective)


def _outcome_probabilities(g, problem, shown):
    """Probabilities of the outcomes of a question, in the order of the package's predictions."""
    shown, noise = tuple(int(i) for i in shown), problem.noise
    question = Answer(shown, (), problem.lead)
    if len(shown) > 2:
        ranks = [tuple(1 if i == j else 2 for j in range(len(shown))) for i in range(len(shown))]
        outcomes = [question._replace(rank=rank) for rank in ranks]
    else:
        grades = range(1, len(noise.grades) + 2)
        outcomes = [question._replace(rank=(2, 1), grade=grade) for grade in reversed(grades)]
        outcomes += [question._replace(rank=(1, 1))] if noise.threshold else []
        outcomes += [question._replace(rank=(1, 2), grade=grade) for grade in grades]
    return np.exp(np.column_stack([answer_log_probability(g, noise, one) for one in outcomes]))


def _root(K):
    """Return a root of a covariance, without directions of no variance."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * values.max()
    return vectors[:, kept] * np.sqrt(values[kept])


def _seen_directions(root, answers):
    """Return a rotation of the unknowns whose first directions are all that answers see, and how
    many these are."""
    contrasts = [root[i] - root[one.shown[0]] for one in answers for i in one.shown[1:]]
    _, values, turned = np.linalg.svd(np.array(contrasts))
    return turned.T, int(np.count_nonzero(values > 1e-7 * values[0]))
