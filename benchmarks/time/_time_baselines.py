"""Ratings that move with time: Elo, a filtered Wiener process, Bradley-Terry on windows.

A method takes the matches to learn from, those to predict, and its settings, and gives
probabilities of (second wins, draw, first wins). It predicts a date from what was played before.
"""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr, ndtr

YEAR = 365.25


class Matches(NamedTuple):
    """Matches by date; within a date by round.

    Attributes
    ----------
    first, second : ndarray of shape (n,)
        Competitors, 0, 1, ...
    home : ndarray of bool
        Whether the first plays at home.
    outcome : ndarray
        1, 0 or -1: the first wins, draw, the second wins.
    day : ndarray
        Days since 1970.
    round : ndarray
    margin : ndarray
        Goals, or the share of all games, by which the first was ahead.
    """

    first: np.ndarray
    second: np.ndarray
    home: np.ndarray
    outcome: np.ndarray
    day: np.ndarray
    round: np.ndarray
    margin: np.ndarray

    def rows(self, chosen):
        """The matches ``chosen`` by a slice or mask."""
        return Matches(*(column[chosen] for column in self))

    @property
    def n_competitors(self):
        """One more than the largest competitor."""
        return int(max(self.first.max(), self.second.max())) + 1

    @property
    def draws(self):
        """Whether there are any."""
        return bool((self.outcome == 0).any())


def together(train, test):
    """Matches of both, in this order."""
    return Matches(*(np.concatenate(pair) for pair in zip(train, test, strict=True)))


def edges(*columns):
    """Rows at which a piece with equal values begins, and the end."""
    changes = np.any([np.diff(column) != 0 for column in columns], axis=0)
    return np.concatenate([[0], np.flatnonzero(changes) + 1, [len(columns[0])]])


def with_draws(lead, outcome, n_train):
    """Probabilities from leads, by a slope and a threshold fitted to half of the first part."""
    part = slice(n_train // 2, n_train)
    y, x = outcome[part], lead[part]

    def probabilities(x, slope, threshold):
        win, loss = expit(slope * x - threshold), expit(-slope * x - threshold)
        return np.column_stack([loss, 1.0 - win - loss, win])

    def loss(theta):
        p = probabilities(x, *np.exp(theta))
        return -np.log(np.maximum(p[np.arange(len(y)), y + 1], 1e-12)).mean()

    found = minimize(loss, np.log([1.0, 0.6]), method="Nelder-Mead")
    return probabilities(lead[n_train:], *np.exp(found.x))


def elo(train, test, *, step, power=0.0, home=0.0):
    """Elo; ``step`` is K, divided by (matches so far + 5) to the ``power``; ``home`` in points."""
    whole = together(train, test)
    scale = np.log(10.0) / 400.0
    rating, played = np.zeros(whole.n_competitors), np.zeros(whole.n_competitors)
    lead = np.empty(len(whole.day))
    dates = edges(whole.day)
    for start, stop in itertools.pairwise(dates):
        date = whole.rows(slice(start, stop))
        lead[start:stop] = scale * (rating[date.first] - rating[date.second] + home * date.home)
        rounds = edges(date.round)
        for begin, end in itertools.pairwise(rounds):
            a, b = date.first[begin:end], date.second[begin:end]
            expected = expit(scale * (rating[a] - rating[b] + home * date.home[begin:end]))
            surprise = 0.5 * (date.outcome[begin:end] + 1.0) - expected
            gain_a = step * (played[a] + 5.0) ** -power * surprise
            gain_b = step * (played[b] + 5.0) ** -power * surprise
            np.add.at(rating, a, gain_a)
            np.subtract.at(rating, b, gain_b)
            np.add.at(played, a, 1)
            np.add.at(played, b, 1)
    n_train = len(train.day)
    if whole.draws:
        return with_draws(lead, whole.outcome, n_train)
    win = expit(lead[n_train:])
    return np.column_stack([1.0 - win, np.zeros_like(win), win])


def _moments(mean, scale, outcome, margin):
    """First and second derivative in the mean of the log-probability of an outcome."""
    sign = np.where(outcome == 0, 1.0, outcome)
    z = (sign * mean - margin) / scale
    ratio = np.exp(-0.5 * z * z - log_ndtr(z)) / np.sqrt(2.0 * np.pi)
    first, second = sign * ratio / scale, -ratio * (z + ratio) / scale**2
    draw = outcome == 0
    if draw.any():
        high, low = (margin - mean[draw]) / scale[draw], (-margin - mean[draw]) / scale[draw]
        density = np.exp(-0.5 * np.array([high, low]) ** 2) / np.sqrt(2.0 * np.pi)
        inside = np.maximum(ndtr(high) - ndtr(low), 1e-300)
        first[draw] = (density[1] - density[0]) / (scale[draw] * inside)
        second[draw] = (low * density[1] - high * density[0]) / (scale[draw] ** 2 * inside)
        second[draw] -= first[draw] ** 2
    return first, second


def filtered(train, test, *, variance, drift, margin=0.0, home=0.0):
    """Strengths of Wiener processes, filtered forward, each independent of the others.

    TrueSkill with the drift in time and not in matches. Units: the noise of a match has variance 1.

    ``variance`` is that of a new competitor, ``drift`` what a year adds, ``margin`` the
    threshold of a draw, ``home`` the advantage.
    """
    whole = together(train, test)
    n = whole.n_competitors
    mean, spread = np.zeros(n), np.full(n, float(variance))
    last = np.full(n, np.nan)
    lead, scale = np.empty(len(whole.day)), np.empty(len(whole.day))
    dates = edges(whole.day)
    for start, stop in itertools.pairwise(dates):
        date = whole.rows(slice(start, stop))
        seen, day = np.unique([date.first, date.second]), date.day[0]
        spread[seen] += drift / YEAR * np.nan_to_num(day - last[seen])
        last[seen] = day
        rounds = edges(date.round)
        lead[start:stop] = mean[date.first] - mean[date.second] + home * date.home
        scale[start:stop] = np.sqrt(1.0 + spread[date.first] + spread[date.second])
        for begin, end in itertools.pairwise(rounds):
            a, b = date.first[begin:end], date.second[begin:end]
            width = np.sqrt(1.0 + spread[a] + spread[b])
            slope, curvature = _moments(
                mean[a] - mean[b] + home * date.home[begin:end],
                width,
                date.outcome[begin:end],
                margin,
            )
            met = np.unique([a, b])
            precision, weighted = 1.0 / spread, mean / spread
            for side, sign in ((a, 1.0), (b, -1.0)):
                site = -curvature / (1.0 + spread[side] * curvature)
                np.add.at(precision, side, site)
                np.add.at(
                    weighted,
                    side,
                    site * mean[side] + sign * slope * (1.0 + spread[side] * site),
                )
            spread[met] = 1.0 / precision[met]
            mean[met] = weighted[met] * spread[met]
    part = slice(len(train.day), None)
    win = ndtr((lead[part] - margin) / scale[part])
    loss = ndtr((-lead[part] - margin) / scale[part])
    return np.column_stack([loss, 1.0 - win - loss, win])


def windows(train, test, *, years, ridge, every=30):
    """Davidson's model on the last ``years``, fitted anew every ``every`` days.

    Without draws it is Bradley-Terry. ``ridge`` is the precision of a strength; the advantage
    of being at home and the frequency of draws are fitted.
    """
    whole, n = together(train, test), together(train, test).n_competitors
    theta = np.zeros(n + 2)  # strengths, home, log of the weight of draws
    probabilities, renewed = [], -np.inf
    dates = edges(test.day)
    for start, stop in itertools.pairwise(dates):
        date = test.rows(slice(start, stop))
        if date.day[0] - renewed >= every:
            renewed = date.day[0]
            low, high = np.searchsorted(whole.day, [renewed - years * YEAR, renewed])
            theta = _davidson(whole.rows(slice(low, high)), theta, ridge, whole.draws)
        lead = theta[date.first] - theta[date.second] + theta[n] * date.home
        probabilities.append(_outcomes(lead, theta[n + 1], whole.draws))
    return np.concatenate(probabilities)


def _outcomes(lead, log_draw, draws):
    """Davidson's probabilities of (second wins, draw, first wins)."""
    weight = log_draw if draws else -np.inf
    logits = np.column_stack([-0.5 * lead, np.full_like(lead, weight), 0.5 * lead])
    logits -= logits.max(axis=1, keepdims=True)
    p = np.exp(logits)
    return p / p.sum(axis=1, keepdims=True)


def _davidson(matches, theta, ridge, draws):
    """Penalised likelihood by L-BFGS, started at ``theta``; who did not play has strength 0."""
    n = len(theta) - 2
    who, index = np.unique([matches.first, matches.second], return_inverse=True)
    first, second = index.reshape(2, -1)
    k, home = len(who), matches.home.astype(float)
    chosen = (np.arange(len(first)), matches.outcome + 1)

    def objective(x):
        lead = x[first] - x[second] + x[k] * home
        p = _outcomes(lead, x[k + 1], draws)
        value = -np.log(np.maximum(p[chosen], 1e-300)).sum() + 0.5 * ridge * x[:k] @ x[:k]
        residual = -0.5 * (matches.outcome - (p[:, 2] - p[:, 0]))
        gradient = np.bincount(first, residual, k) - np.bincount(second, residual, k)
        tail = [residual @ home, p[:, 1].sum() - (matches.outcome == 0).sum() if draws else 0.0]
        return value, np.concatenate([gradient + ridge * x[:k], tail])

    start = np.concatenate([theta[who], theta[n:]])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x
    theta = np.zeros(n + 2)
    theta[who], theta[n:] = found[:k], found[k:]
    return theta
