"""Kalman filter and smoother over many chains at once.

A chain is an item through time: its nodes are the times at which it was met, and its state moves
from one node to the next by x' = A x + q, q ~ N(0, Q). Nodes stand step by step, first those that
begin a chain, then all second ones and so on, the longest chains first, so that each step is one
operation on arrays. Nothing divides by Q or by a covariance, so that processes may stand still.

The smoother is that of Bryson and Frazier in the form of Bierman ("Fixed interval smoothing with
discrete measurements", Int. J. Control 1973): it goes back with the slopes of the log-probability
in the predicted means and covariances, which are the gradient of the evidence as well.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array, solve_band, unit_triangular_band
from skpref.kernels import Drift


class Nodes:
    """Items at times as nodes of chains.

    Parameters
    ----------
    chain : ndarray of int of shape (n,)
        Number of the chain of each row, from 0, all of which occur.
    times : ndarray of shape (n,)

    Attributes
    ----------
    n_nodes, n_chains : int
    node : ndarray of int of shape (n,)
        Of each row; rows of one chain and time share one.
    chain, times, before : ndarray of shape (n_nodes,)
        Of the nodes; ``before`` is the time of the chain's node before, its own of the first.
    steps : list of slice
        The nodes of each step. Those of a step follow the first ones of the step before.
    """

    def __init__(self, chain: NDArray[np.intp], times: Array):
        order = np.lexsort((times, chain))
        by, at = chain[order], times[order]
        begins = np.concatenate([[True], by[1:] != by[:-1]])
        new = begins | np.concatenate([[True], at[1:] != at[:-1]])
        begins, by, at = begins[new], by[new], at[new]
        start = np.flatnonzero(begins)
        length = np.diff(np.append(start, len(by)))
        step = np.arange(len(by)) - start[by]
        place_of_chain = np.empty(len(start), dtype=np.intp)
        place_of_chain[np.argsort(-length, kind="stable")] = np.arange(len(start))
        stood = np.lexsort((place_of_chain[by], step))
        place = np.empty(len(by), dtype=np.intp)
        place[stood] = np.arange(len(by))
        self.n_nodes, self.n_chains = len(by), len(start)
        self.node = np.empty(len(order), dtype=np.intp)
        self.node[order] = place[np.cumsum(new) - 1]
        self.chain, self.times = by[stood], at[stood]
        before = np.concatenate([at[:1], at[:-1]])
        before[begins] = at[begins]
        self.before = before[stood]
        ends = np.cumsum(np.bincount(step)).tolist()
        self.steps = [slice(*pair) for pair in zip([0, *ends[:-1]], ends, strict=True)]

    @property
    def first(self) -> slice:
        """Return the first node of every chain."""
        return self.steps[0]

    @cached_property
    def moves(self) -> list[tuple[slice, slice]]:
        """List of every step but the first the nodes before its nodes, and its nodes."""
        pairs = zip(self.steps[:-1], self.steps[1:], strict=True)
        return [(slice(one.start, one.start + two.stop - two.start), two) for one, two in pairs]

    @cached_property
    def by_time(self) -> NDArray[np.intp]:
        """Order the nodes by chain, and in it by time."""
        return np.lexsort((self.times, self.chain))


class Filtered(NamedTuple):
    """Hold chains given a precision on every node's value; arrays run over the nodes last.

    Attributes
    ----------
    precision : ndarray of shape (n_nodes,)
        Of the sites.
    gain : ndarray of shape (size, n_nodes)
        Predicted covariance of the state with the value.
    share : ndarray of shape (n_nodes,)
        1 + precision × predicted variance of the value.
    covariance : ndarray of shape (size, size, n_nodes)
        Of the state, given the sites up to the node.
    slope : ndarray of shape (size, size, n_nodes)
        Of Σ log share, in the predicted covariance of the node's state.
    variance : ndarray of shape (n_nodes,)
        Of the value, given all sites.
    log_det : float
        log|1 + K × precision|.
    """

    precision: Array
    gain: Array
    share: Array
    covariance: Array
    slope: Array
    variance: Array
    log_det: float


class Chains:
    """Processes of time on nodes.

    Parameters
    ----------
    nodes : Nodes
    drift : Drift
    begin : ndarray of shape (size, size, n_chains), optional
        Covariance of the states at the first nodes. None: nothing is known of them.
    """

    def __init__(self, nodes: Nodes, drift: Drift, begin: Array | None = None):
        self.nodes, self.drift, self._readout = nodes, drift, drift.seen
        self._A, self._Q = drift.transition(nodes.before, nodes.times)
        self._A[:, :, nodes.first] = 0.0
        self._begin = drift.spread(nodes.times[nodes.first]) if begin is None else begin
        self._Q[:, :, nodes.first] = self._begin

    @cached_property
    def variance(self) -> Array:
        """Compute the variance of the nodes' values before any site, (n_nodes,)."""
        spread = self._Q.copy()
        for before, after in self.nodes.moves:
            A = self._A[:, :, after]
            half = np.einsum("ijn,jkn->ikn", A, spread[:, :, before])
            spread[:, :, after] += np.einsum("ijn,kjn->ikn", half, A)
        return np.einsum("i,ijn,j->n", self._readout, spread, self._readout)

    def condition_nodes(self, precision: Array) -> Filtered:
        """Condition the nodes on sites of some precision."""
        nodes, h, size = self.nodes, self._readout, self.drift.size
        gain, share = np.empty((size, nodes.n_nodes)), np.empty(nodes.n_nodes)
        covariance = np.empty((size, size, nodes.n_nodes))
        for k, at in enumerate(nodes.steps):
            P = self._Q[:, :, at]
            if k:
                A = self._A[:, :, at]
                half = np.einsum("ijn,jkn->ikn", A, covariance[:, :, nodes.moves[k - 1][0]])
                P = P + np.einsum("ijn,kjn->ikn", half, A)
            toward = np.einsum("ijn,j->in", P, h)
            share[at] = 1.0 + precision[at] * (h @ toward)
            gain[:, at] = toward
            covariance[:, :, at] = P - toward[:, None] * (toward * (precision[at] / share[at]))
        slope = self._slope(precision, gain, share)
        reduction = np.einsum("in,ijn,jn->n", gain, slope, gain)
        variance = np.maximum(h @ gain - reduction, 0.0)
        log_det = float(np.sum(np.log(share)))
        return Filtered(precision, gain, share, covariance, slope, variance, log_det)

    def _slope(self, precision, gain, share):
        """Return the precision that later answers give each node's state."""
        nodes, h = self.nodes, self._readout
        slope = np.zeros((len(h), len(h), nodes.n_nodes))
        own = h[:, None, None] * h[None, :, None]
        for k in range(len(nodes.steps) - 1, -1, -1):
            at = nodes.steps[k]
            if k + 1 < len(nodes.steps):
                before, after = nodes.moves[k]
                A = self._A[:, :, after]
                half = np.einsum("jin,jkn->ikn", A, slope[:, :, after])
                slope[:, :, before] = np.einsum("ijn,jkn->ikn", half, A)
            later, weight = slope[:, :, at], precision[at] / share[at]
            toward = np.einsum("ijn,jn->in", later, gain[:, at] * weight)
            inner = np.einsum("in,in->n", toward, gain[:, at] * weight) + weight
            cross = h[:, None, None] * toward[None]
            slope[:, :, at] = later - cross - np.swapaxes(cross, 0, 1) + own * inner
        return slope

    def smoother(self, filtered: Filtered) -> "Smoother":
        """Return what computes the means of the nodes' values given sites of that precision."""
        return Smoother(self.nodes, self._A, self._readout, filtered)

    def propagate_weights(self, weights: Array) -> tuple[Array, Array]:
        """Compute the states that weights on the nodes' values bring about: K times weights.

        Returns
        -------
        state : ndarray of shape (size, n_nodes)
            Covariance of each node's state with the weighted sum of all values.
        pull : ndarray of shape (size, n_nodes)
            What of the weighted sum goes through a node's state, by its elements.
        """
        order = self.nodes.by_time
        state, pull = np.empty((2, len(self._readout), self.nodes.n_nodes))
        pull[:, order] = solve_band(self._moves, weights[order, None] * self._readout, "T").T
        brought = np.einsum("ijn,jn->in", self._Q, pull)[:, order]
        state[:, order] = solve_band(self._moves, np.ascontiguousarray(brought.T), "N").T
        return state, pull

    @cached_property
    def _moves(self) -> Array:
        """Return the band of what takes states to news: 1 less the moves."""
        return unit_triangular_band(-self._A[:, :, self.nodes.by_time])

    def times(self, weights: Array) -> Array:
        """Compute K times weights on the nodes' values."""
        values: Array = self._readout @ self.propagate_weights(weights)[0]
        return values

    def gradient(self, quadratic: list[tuple[float, Array]], filtered: Filtered) -> Array:
        """Compute the gradient in theta of ½ (Σ c uᵀ K u − log|1 + K × precision|).

        Parameters
        ----------
        quadratic : list of (float, ndarray of shape (n_nodes,))
            Pairs of c and u.
        filtered : Filtered
        """
        nodes = self.nodes
        by_A, by_Q = np.zeros_like(self._A), -0.5 * filtered.slope
        for before, after in nodes.moves:
            half = np.einsum("ijn,jkn->ikn", filtered.slope[:, :, after], self._A[:, :, after])
            by_A[:, :, after] -= np.einsum("ijn,jkn->ikn", half, filtered.covariance[:, :, before])
        for factor, weights in quadratic:
            state, pull = self.propagate_weights(weights)
            by_Q += 0.5 * factor * pull[:, None] * pull[None]
            for before, after in nodes.moves:
                by_A[:, :, after] += factor * pull[:, None, after] * state[None, :, before]
        first, rest = nodes.first, slice(nodes.first.stop, None)
        return self.drift.gradient(
            nodes.before[rest],
            nodes.times[rest],
            by_A[:, :, rest],
            by_Q[:, :, rest],
            nodes.times[first],
            by_Q[:, :, first],
        )


class Smoother:
    """Means of the nodes' values given sites of known precision.

    The ways there and back along the chains are two triangular systems of a narrow band.

    Parameters
    ----------
    nodes : Nodes
    A : ndarray of shape (size, size, n_nodes)
        How the state before moves to a node.
    readout : ndarray of shape (size,)
    filtered : Filtered
    """

    def __init__(self, nodes: Nodes, A: Array, readout: Array, filtered: Filtered):
        order = self._order = nodes.by_time
        self._readout = readout
        gain, self._share = filtered.gain[:, order], filtered.share[order]
        self._weight = filtered.precision[order] / self._share
        self._gain, self._own = np.ascontiguousarray(gain.T), readout @ gain
        # From the mean that is predicted for a node to that for the next, and back; A is nothing
        # where a chain begins.
        move, before = A[:, :, order], np.roll(np.arange(nodes.n_nodes), 1)
        news = np.einsum("ijn,jn->in", move, gain[:, before])
        held = news[:, None] * readout[None, :, None] * self._weight[before]
        self._on = unit_triangular_band(held - move)
        pull = np.einsum("jin,j->in", move, readout)
        held = pull[:, None] * gain[None] * self._weight
        self._back = unit_triangular_band(np.swapaxes(held, 0, 1) - move)
        self._news, self._pull = np.ascontiguousarray(news.T), np.ascontiguousarray(pull.T)

    def means(self, shift: Array) -> Array:
        """Compute the means given sites of these shifts, (n_nodes,)."""
        news = shift[self._order]
        news /= self._share
        predicted = solve_band(self._on, self._news * np.roll(news, 1)[:, None], "N")
        value = predicted @ self._readout
        news -= self._weight * value
        # Slopes of the log-probability in the filtered means.
        slopes = self._pull * news[:, None]
        later = solve_band(self._back, np.concatenate([slopes[1:], slopes[:1]]), "T")
        inner = np.einsum("ni,ni->n", self._gain, later)
        news -= self._weight * inner
        means = np.empty(len(news))
        means[self._order] = value + inner + self._own * news
        return means
