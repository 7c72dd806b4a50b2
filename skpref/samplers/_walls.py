"""The walls that the trajectories of `hmc` meet, the next one of every chain at a time.

At a hit of wall j the velocity is reflected, y ← R y with R = I − (2/Σ_jj) Σ_j e_jᵀ. A change δ
of the velocity at time τ* adds δ sin(τ − τ*) to the trajectory v(τ) = A sin τ + B cos τ, that is
δ cos τ* to A and −δ sin τ* to B: no position is computed on the way, and v(π/2) = A is the end if
no wall comes before.
"""

import numpy as np

from skpref.samplers._chains import SMALLEST

try:  # rows += coefficient × row of a table in one compiled pass: twice as fast as ufuncs
    from scipy.sparse._sparsetools import csr_matvecs as _csr_matvecs
except ImportError:  # pragma: no cover - it is not public, though unchanged since 2008
    _csr_matvecs = None

# Half-angle tangents this close are the same time; a wall that was missed by rounding is met now.
_SAME_TIME = 1e-11
# Share of the size of a coordinate by which an end may lie outside for rounding.
_OUTSIDE = float(np.sqrt(np.finfo(np.float64).eps))


class WallsAtOrigin:
    """v > 0. R leaves a position with v_j = 0 where it is.

    So from the hit on the *whole* ellipse is R v(τ): it is enough to reflect A and B, and no time,
    sine or arctangent is ever computed (method of images):

    - v(π/2) = A, so wall i is ahead if and only if A_i < 0; then B_i > 0 and tan τ_i = −B_i/A_i;
    - the first wall ahead is the one with the smallest A_i/|B_i|, and if that is positive, A is the
      end;
    - reflecting turns A_j, B_j into −A_j, −B_j exactly (the diagonal of 2Σ_j/Σ_jj is exactly 2),
      hence wall j is never met twice in a row, and there is no position to be rounded below 0 at
      the hit.

    |B_i| instead of B_i is the guard against rounding: a coordinate that was left a hair below 0
    and is on its way out (A_i < 0, B_i <= 0) comes first and is put right at once.
    """

    def __init__(self, reflectors, variance, box, n_chains):
        self._reflectors = reflectors
        self._ratio = np.empty((n_chains, len(variance)))
        self._row_start = np.arange(n_chains) * len(variance)

    def to_work_rows(self, v):
        """Return positions or velocities (n, t) in the rows of the work arrays, one a wall."""
        return v

    def to_draws(self, end):
        """Return draws from the ends of trajectories, and which of these are not to be used."""
        return np.maximum(end, SMALLEST), False

    def next_event(self, ends):
        """Reflect each trajectory at its next wall, in place; return which met one before π/2."""
        ratio = self._ratio
        with np.errstate(divide="ignore", invalid="ignore"):  # B_i = 0 gives −inf: first, rightly
            np.abs(ends[1], out=ratio)
            np.divide(ends[0], ratio, out=ratio)
        first = ratio.argmin(axis=1)
        at_first = self._row_start + first
        hit = ~(ratio.ravel().take(at_first) >= 0)
        coefficients = ends.reshape(2, -1).take(at_first, axis=1)  # A_j and B_j
        coefficients *= hit
        _reflect(ends, coefficients, first, self._reflectors)
        return hit

    def reset_times(self, which):
        """Set the times of trajectories that begin to 0."""

    def keep_chains(self, alive):
        """Keep the work arrays of some chains and drop those of the others."""
        n_chains = int(alive.sum())
        self._ratio, self._row_start = self._ratio[:n_chains], self._row_start[:n_chains]


class AnyWalls:
    """lower < v < upper, as rows w > wall: a coordinate with only an upper wall is turned round.

    A slab is two rows, v_j and −v_j, equal to the last bit but for the sign at all times.

    On an ellipse with R² = A² + B² >= wall², S = √(R² − wall²), a row *leaves* through its wall
    once a turn, at tan(τ/2) = (B − wall)/(S − A) = (A + S)/(B + wall), with velocity −S. Half-angle
    tangents are in the order of the times all round from −π to π, and S does not cancel if the
    form is chosen by the sign of A. Entering is another time, so that the wall just met, which
    is being entered from, is not met again at once, but may be later (a wall above the
    origin, against which the row falls back); walls further out than R are never met (NaN).
    """

    def __init__(self, reflectors, variance, box, n_chains):
        t = len(variance)
        turned = np.isneginf(box.lower) & (box.upper < np.inf)
        slabs = ((box.lower > -np.inf) & (box.upper < np.inf)).nonzero()[0]
        self._box = box
        self._coordinate = np.concatenate((np.arange(t), slabs))
        self._sign = np.concatenate((np.where(turned, -1.0, 1.0), np.full(len(slabs), -1.0)))
        wall = np.concatenate((np.where(turned, -box.upper, box.lower), -box.upper[slabs]))
        # Signs after the diagonal has been made exact, or the rows of a slab would part.
        table = reflectors[np.ix_(self._coordinate, self._coordinate)]
        self._reflectors = table * np.multiply.outer(self._sign, self._sign)
        finite = (np.where(np.isfinite(w), np.abs(w), 0.0) for w in (box.lower, box.upper))
        slack = _OUTSIDE * (np.sqrt(variance) + np.maximum(*finite))
        self._outer = box.lower - slack, box.upper + slack
        self._now = np.zeros(n_chains)  # tan(τ/2) of the last event
        self._sure = np.maximum(wall, 0.0)
        self._walls = np.tile(wall, n_chains)
        self._table = np.empty((n_chains, len(wall)))
        self._row_start = np.arange(n_chains) * len(wall)

    def to_work_rows(self, v):
        """Return positions or velocities (n, t) in the rows of the work arrays, one a wall."""
        return v.take(self._coordinate, axis=1) * self._sign  # C-contiguous, unlike v[:, ...]

    def to_draws(self, end):
        """Return draws from the ends of trajectories, and which of these are not to be used.

        A wall that is met at the speed of rounding can be missed, once in far more trajectories
        than are ever drawn; what then ends outside is rejected.
        """
        t = len(self._box.lower)
        end = end[:, :t] * self._sign[:t]
        lost = ~((end > self._outer[0]) & (end < self._outer[1])).all(axis=1)
        return self._box.clip(end), lost

    def next_event(self, ends):
        """Reflect each trajectory at its next wall, in place; return which met one before π/2."""
        times = self._wall_times(*ends)
        first = times.argmin(axis=1)
        at_first = self._row_start + first
        time = np.maximum(times.ravel().take(at_first), self._now)
        hit = time < 1.0  # tan(π/4)
        time = np.where(hit, time, 0.0)
        scale = 1.0 / (1.0 + time * time)
        cosine, sine = (1.0 - time * time) * scale, 2.0 * time * scale
        at_wall = ends.reshape(2, -1).take(at_first, axis=1)
        velocity = (at_wall[0] * cosine - at_wall[1] * sine) * hit
        coefficients = np.stack((velocity * cosine, -velocity * sine))
        _reflect(ends, coefficients, first, self._reflectors)
        np.copyto(self._now, time, where=hit)
        return hit

    def _wall_times(self, a, b):
        """Return tan(τ/2) where rows meet their wall before π/2; inf where not, or past it.

        Having left, a row is outside for half a turn if its wall is above the origin, and below 0
        for a quarter if not: only rows that end below the wall, or below 0, are looked at.
        """
        below = a < self._sure
        ahead = below.ravel().nonzero()[0]
        a, b = a.ravel().take(ahead), b.ravel().take(ahead)
        wall = self._walls.take(ahead)
        falls = a < 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            root = np.sqrt(a * a + b * b - wall * wall)
            root += np.abs(a)  # S + |A|
            time = (b - wall) / root
            if not falls.all():
                time = np.where(falls, time, root / (b + wall))
            floor = np.repeat(self._now - _SAME_TIME, np.count_nonzero(below, axis=1))
            time[~(time > floor)] = np.inf  # NaN too
        times = self._table
        times.fill(np.inf)
        times.put(ahead, time)
        return times

    def reset_times(self, which):
        """Set the times of trajectories that begin to 0."""
        self._now[which] = 0.0

    def keep_chains(self, alive):
        """Keep the work arrays of some chains and drop those of the others."""
        self._now = self._now[alive]
        n_chains = len(self._now)
        self._table, self._row_start = self._table[:n_chains], self._row_start[:n_chains]


def reflector_rows(covariance):
    """Return rows −2 Σ_j / Σ_jj; 0 of a coordinate without variance, which never moves."""
    variance = covariance.diagonal()
    factors = np.where(variance > 0, -2.0 / np.where(variance > 0, variance, 1.0), 0.0)
    table = covariance * factors[:, None]
    np.fill_diagonal(table, np.where(variance > 0, -2.0, 0.0))
    return table


def _reflect(ends, coefficients, first, reflectors):
    """Reflect trajectories at walls, in place: add coefficients times rows of ``reflectors``.

    Row c of A and of B gets its own coefficient times row ``first[c]``.
    """
    n_chains, t = ends.shape[1:]
    if _csr_matvecs is None:
        ends += coefficients[:, :, None] * reflectors[first]
        return
    # A sparse matrix with one entry a row, (2 n_chains, t), times the table, added to A and B.
    pointer = np.arange(2 * n_chains + 1, dtype=first.dtype)
    column = np.concatenate((first, first))
    _csr_matvecs(
        2 * n_chains, t, t, pointer, column, coefficients.ravel(), reflectors.ravel(), ends.ravel()
    )
