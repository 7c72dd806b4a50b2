"""Votes among competitors for ``leaderboard_scale.py`` and its rivals; numpy alone."""

import numpy as np

COMPETITORS, NOISE, THRESHOLD = 200, 0.3, 0.4
SLOPES = np.array([0.5, 0.2, 0.1, 0.0])
_PIECE = 100_000


def utilities():
    """True utilities of the competitors, of variance 1."""
    return np.random.default_rng(0).standard_normal(COMPETITORS)


def names():
    """Names of the competitors, as objects."""
    return np.array([f"model {i}" for i in range(COMPETITORS)], dtype=object)


def pieces(n_votes, n_controls=0, seed=1):
    """Votes in pieces: pairs of competitors, outcomes in {-1, 0, 1}, controls (n, 2, n_controls).

    The noisy difference of utilities is a tie where it is within ±THRESHOLD. Each piece has a seed
    of its own, so that the first votes are the same however many there are.
    """
    utility, slopes = utilities(), SLOPES[:n_controls]
    for nth, begin in enumerate(range(0, n_votes, _PIECE)):
        rng = np.random.default_rng((seed, nth))
        first = rng.integers(COMPETITORS, size=_PIECE)
        pairs = np.stack([first, (first + rng.integers(1, COMPETITORS, _PIECE)) % COMPETITORS], 1)
        margin = utility[pairs[:, 0]] - utility[pairs[:, 1]]
        margin += np.sqrt(2.0 * NOISE) * rng.standard_normal(_PIECE)
        controls = rng.standard_normal((_PIECE, 2, n_controls))
        margin += (controls[:, 0] - controls[:, 1]) @ slopes
        y = np.where(np.abs(margin) <= THRESHOLD, 0, np.sign(margin)).astype(np.int8)
        end = min(n_votes - begin, _PIECE)
        yield pairs[:end], y[:end], controls[:end]


def votes(n_votes, n_controls=0):
    """All of them: pairs (n, 2), outcomes (n,), controls (n, 2, n_controls)."""
    pairs, y = np.empty((n_votes, 2), dtype=np.int64), np.empty(n_votes, dtype=np.int8)
    controls = np.empty((n_votes, 2, n_controls))
    begin = 0
    for piece in pieces(n_votes, n_controls):
        rows = slice(begin, begin + len(piece[1]))
        for whole, part in zip((pairs, y, controls), piece, strict=True):
            whole[rows] = part
        begin = rows.stop
    return pairs, y, controls


def agreement(scores):
    """Share of pairs of competitors that scores order as the true utilities do."""
    one, other = np.triu_indices(COMPETITORS, 1)
    true, scores = utilities(), np.asarray(scores)
    return float(np.mean((true[one] > true[other]) == (scores[one] > scores[other])))
