"""The prior of items that change through time, each a chain of its own.

What the answers say of one item is taken as independent of what they say of another, and of what
does not change: an answer sends each of its sides a message, how large that side's utility must
have been given what is known of the other from all else (belief propagation on Gaussians: Weiss
and Freeman, "Correctness of belief propagation in Gaussian graphical models of arbitrary
topology", Neural Computation 2001). So the means are exact, variances and the evidence are not; an
evidence of this kind (Bethe's) has no slope in the messages, and its gradient is exact. With sites
by expectation propagation this is the model of Maystre, Kristof and Grossglauser, "Pairwise
comparisons with flexible time-dynamics", KDD 2019. All is linear in the answers.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skpref._utils import UNIT, Array, inverse_cholesky
from skpref.data import Comparisons, distinct_rows
from skpref.gp._kalman import Chains, Filtered, Nodes, Smoother
from skpref.gp._known_chains import Course, KnownChains, Latest, find_places
from skpref.gp._prior import Cost, Marginals, Prior, PriorRule
from skpref.gp._through_time import StaticFeatures, ThroughTime
from skpref.kernels import Drifts, Kernel, drifts_of
from skpref.likelihoods import Likelihood

# Messages are at rest once none moves by more than this share, and means once what is left would
# move them by no more, in posterior standard deviations at root mean square; rounds at most.
_AT_REST, _ROUNDS = 1e-11, 500
# Features at most that do not change through time.
MOST_STATIC = 300
_NO_CHAINS = (
    "Items that are independent through time need duels, none of an item with itself at another "
    "time, and a kernel of who an item is times "
    "Matern (nu of 1/2, 3/2 or 5/2) or Wiener of its time, beside constants and linear parts of at "
    "most 300 features; got {0}. Leave items='independent' out of the engine, or choose "
    "inference='svi'."
)
_NO_REST = (
    "What answers say of one item given the others does not come to rest: utilities vary far more "
    "than the noise. Rescale the features (for instance Itemwise(StandardScaler())), raise "
    "noise_variance or its lower bound, or take items='joint' in the engine."
)
# Multiplications of an engine's run for a margin, by the state's square.
_MARGIN = 600.0


class _Messages(NamedTuple):
    """Hold the precisions that a margin's site tells each of its parts, and the features' part.

    Of a part, a node's value times its weight, ``ends`` has a row, (n_ends, n_margins).
    """

    ends: Array
    static: Array


class _Cavities(NamedTuple):
    """Hold the variances of the same parts of a margin without its own site."""

    ends: Array
    static: Array

    @property
    def total(self) -> Array:
        """Compute the variance of the margin without its site."""
        variance: Array = self.ends.sum(axis=0) + self.static
        return variance


@dataclass(frozen=True, eq=False)
class _Given:
    """Hold what is independent given sites: the chains, and the features' weights."""

    prior: "IndependentItems"
    chains: Filtered
    messages: _Messages
    inverse: Array  # of the factor of 1 + v^½ Zᵀ diag(messages) Z v^½; (0, 0) without features
    sides: _Cavities
    precision: Array

    @cached_property
    def smoother(self) -> Smoother:
        """Return the smoother of the chains."""
        return self.prior.chains.smoother(self.chains)


class IndependentItems(Prior):
    """A prior of processes through time, one for each item, and of finitely many features.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        As `drifts_of` knows them.
    comparisons : Comparisons
        Duels.
    before : ThroughTime, optional
        What is known already, where all of these answers were given at one time that is later.

    Raises
    ------
    ValueError
        If the kernel is no such, or answers are joint.
    """

    def __init__(
        self,
        kernel: Kernel,
        comparisons: Comparisons,
        before: ThroughTime | None = None,
    ):
        drifts = _drifts_in(kernel, comparisons)
        if drifts is None:
            raise ValueError(_NO_CHAINS.format(kernel))
        self.kernel, self.drifts, self._comparisons = kernel, drifts, comparisons
        margin_nodes = _margin_nodes(comparisons, drifts)
        self.who, self.nodes = margin_nodes.who, margin_nodes.nodes
        self._node, self._weight = margin_nodes.node, margin_nodes.weight
        self._squared = margin_nodes.weight**2
        self.n_margins = margin_nodes.node.shape[1]
        self.static, self._Z, self._own = None, np.zeros((self.n_margins, 0)), np.zeros(0)
        self._centre: Array = np.zeros(self.n_margins)
        self._dual: Array = np.zeros(self.n_margins)
        self._last: _Messages | None = None
        if before is None:
            self.chains = Chains(self.nodes, drifts.drift)
            if drifts.static is not None:
                rows, shares = drifts.members(comparisons.items)
                self.static = StaticFeatures.from_items(drifts.static, rows[shares != 0.0])
                self._Z, self._own = self._features(self.static), self.static.variance
            self._last = comparisons.kept.get(("messages", _layout_key(drifts)))
        else:
            self._start_from_earlier(before)
        self._scale = np.sqrt(self._own)
        self._scaled = self._Z * self._scale
        self.variance = np.sum(self._squared * self.chains.variance[self._node], axis=0)
        self.variance += np.sum(self._scaled**2, axis=1)

    def _start_from_earlier(self, earlier: ThroughTime) -> None:
        """Take the prior of items and features from the posterior of earlier times."""
        first, drift = self.nodes.first, self.drifts.drift
        self.earlier_chain = find_places(earlier.chains.who, self.who)
        chain = self.earlier_chain[self.nodes.chain[first]]
        states = earlier.chains.states(chain, self.nodes.times[first])
        self.chains = Chains(self.nodes, drift, np.moveaxis(states.covariance, 0, 2))
        self.mean = states.mean
        # Of one time alone, so that all nodes are the first of their chains.
        self._centre = self._margins_of_nodes(states.mean @ drift.seen)
        if earlier.static is not None:
            self.static = earlier.static
            rows = self._features(earlier.static)
            self._Z = rows @ earlier.static_root.T
            self._own = np.ones(len(earlier.static_root))
            self._centre += rows @ earlier.static_mean

    def _features(self, static: StaticFeatures) -> Array:
        """Return the features of the margins, computed once."""
        cache = self._comparisons.kept
        name = "static features", static.few.terms
        if name not in cache:
            margins = self._comparisons.rows.margins
            rows, _ = static.sums(*self.drifts.members(self._comparisons.items))
            cache[name] = rows[margins.first] - rows[margins.second]
        features: Array = cache[name]
        return features

    @classmethod
    def from_comparisons(
        cls,
        kernel: Kernel,
        comparisons: Comparisons,
        likelihood: Likelihood,
        gradient: bool = False,
    ) -> Self:
        """See `Prior.from_comparisons`."""
        return cls(kernel, comparisons)

    @classmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `Prior.cost`."""
        drifts = None if kernel is None else _drifts_in(kernel, comparisons)
        if drifts is None:
            return Cost(np.inf, np.inf, np.inf)
        n, width = len(comparisons.rows), drifts.drift.size**2
        sides = 1 if drifts.teams is None else len(drifts.teams.members)
        many = n * sides * _MARGIN * (2.0 + width)
        steps = len(_margin_nodes(comparisons, drifts).nodes.steps)
        return Cost(many, 1.0, 8.0 * n * sides * (40.0 + 8.0 * width), many, steps)

    # -- between nodes and margins ------------------------------------------------------------

    def _margins_of_nodes(self, values: Array) -> Array:
        """Compute the weighted sums of the nodes' values that margins are."""
        sums: Array = np.zeros(self.n_margins)
        for node, weight in zip(self._node, self._weight, strict=True):
            sums += weight * values[node]
        return sums

    def _pool_at_nodes(self, ends: Array) -> Array:
        """Sum values of the parts of all margins at every node, in rows as `_Messages`."""
        n = self.nodes.n_nodes
        sums: Array = np.zeros(n)
        for node, part in zip(self._node, ends, strict=True):
            sums += np.bincount(node, part, n)
        return sums

    def _pull_to_nodes(self, values: Array) -> Array:
        """Apply the transpose of `_margins_of_nodes`."""
        return self._pool_at_nodes(self._weight * values)

    def times(self, vector: Array) -> Array:
        """See `Prior.times`."""
        if vector.ndim == 2:
            return np.stack([self.times(column) for column in vector.T], axis=1)
        product = self._margins_of_nodes(self.chains.times(self._pull_to_nodes(vector)))
        return product + self._Z @ (self._own * (vector @ self._Z))

    # -- given sites --------------------------------------------------------------------------

    def condition(self, precision: Array, shift: Array) -> Marginals:
        """See `Prior.condition`."""
        conditional, log_det = self._pass_messages(precision)
        mean = self._solve_means(conditional, shift)
        total = conditional.sides.total
        variance = total / (1.0 + precision * total)
        return Marginals(mean, variance, shift - precision * mean, log_det, conditional)

    def condition_on_shift(self, marginals: Marginals, precision: Array, shift: Array) -> Marginals:
        """See `Prior.condition_on_shift`: without new messages."""
        mean = self._solve_means(marginals.root, shift)
        return marginals._replace(mean=mean, dual=shift - precision * mean)

    def centre(self, precision: Array, shift: Array) -> tuple[Array, Array]:
        """See `Prior.centre`: one round of messages, which only speed up the means' way."""
        conditional = self._condition_on_messages(precision, self._starting_messages(precision))
        mean = self._solve_means(conditional, shift)
        return mean, shift - precision * mean

    def _starting_messages(self, precision: Array) -> _Messages:
        """Return the messages to start from."""
        if self._last is not None and len(self._last.static) == self.n_margins:
            return _Messages(*(np.minimum(each, precision) for each in self._last))
        return _Messages(np.tile(precision, (len(self._node), 1)), precision)

    def _pass_messages(self, precision: Array) -> tuple[_Given, float]:
        """Send messages until they rest; return what they imply, and log|1 + S × precision|."""
        messages = self._starting_messages(precision)
        for _ in range(_ROUNDS):
            conditional = self._condition_on_messages(precision, messages)
            before, messages = messages, self._send_messages(precision, conditional.sides)
            if self._have_converged(before, messages, _AT_REST):
                break
        else:  # rounding may move messages by more than that
            if not self._have_converged(before, messages, np.sqrt(_AT_REST)):
                raise ValueError(_NO_REST)
        self._last = messages
        self._comparisons.kept["messages", _layout_key(self.drifts)] = messages
        parts = zip(messages, conditional.sides, strict=True)
        log_det = conditional.chains.log_det - 2.0 * float(
            np.sum(np.log(np.diagonal(conditional.inverse)))
        )
        log_det += float(np.sum(np.log1p(precision * conditional.sides.total)))
        log_det -= sum(float(np.sum(np.log1p(sent * side))) for sent, side in parts)
        return conditional, log_det

    def _have_converged(self, previous: _Messages, after: _Messages, share: float) -> bool:
        """Say whether messages have come to rest."""
        pairs = zip(previous, after, strict=True)
        return all(np.all(np.abs(b - a) <= share * np.abs(b)) for a, b in pairs)

    def _condition_on_messages(self, precision: Array, messages: _Messages) -> _Given:
        """Condition chains and features on some messages."""
        chains = self.chains.condition_nodes(self._pool_at_nodes(self._squared * messages.ends))
        ends = _cavity_variance(self._squared * chains.variance[self._node], messages.ends)
        inverse, spread = np.zeros((0, 0)), np.zeros(self.n_margins)
        if len(self._own):
            inner = self._scaled.T @ (messages.static[:, None] * self._scaled)
            inner.flat[:: len(inner) + 1] += 1.0
            inverse = inverse_cholesky(inner.T)[0]
            variance = np.sum((self._scaled @ inverse.T) ** 2, axis=1)
            spread = _cavity_variance(variance, messages.static)
        return _Given(self, chains, messages, inverse, _Cavities(ends, spread), precision)

    def _send_messages(self, precision: Array, sides: _Cavities) -> _Messages:
        """Return the precisions that answers send to their items' nodes."""
        total = sides.total
        return _Messages(*(precision / (1.0 + precision * (total - side)) for side in sides))

    def _solve_means(self, conditional: _Given, shift: Array) -> Array:
        """Compute the means of the margins, (n_margins,) or a column each.

        By conjugate gradients on the nodes' values and the features' weights, with what is
        independent given the messages as the preconditioner: Q⁻¹ need not be known.
        """
        if shift.ndim == 2:
            return np.stack([self._solve_means(conditional, column) for column in shift.T], axis=1)
        Z, precision = self._Z, conditional.precision
        half = conditional.inverse * self._scale

        def solved(node: Array, weight: Array) -> tuple[Array, Array]:
            return conditional.smoother.means(node), half.T @ (half @ weight)

        def pulled(values: Array) -> tuple[Array, Array]:
            return self._pull_to_nodes(values), values @ Z

        shift = shift - precision * self._centre
        # From the means that the last dual makes, whose image under Q⁻¹ is known.
        dual = self._dual
        mean = self.times(dual) if dual.any() else np.zeros(self.n_margins)
        residual = pulled(shift - precision * mean - dual)
        step = solved(*residual)
        size = _inner_product(residual, step)
        whole = pulled(shift) if dual.any() else residual
        rounding = UNIT**2 * self.n_margins * _inner_product(whole, solved(*whole))
        least = max(_AT_REST**2 * self.n_margins, rounding)
        # M times the direction is known from the residuals: M⁻¹ alone is ever needed.
        direction, image = step, residual
        for _ in range(_ROUNDS):
            if not size > least:
                break
            node, weight = direction
            reached = self._margins_of_nodes(node) + Z @ weight
            answer = pulled(precision * reached)
            # What the preconditioner has in the place of that.
            message_image = (
                conditional.chains.precision * node,
                (conditional.messages.static * (Z @ weight)) @ Z,
            )
            image_of = _add_pairs(_add_pairs(image, answer), message_image, -1.0)
            along = size / _inner_product(direction, image_of)
            mean += along * reached
            residual = _add_pairs(residual, image_of, -along)
            step = solved(*residual)
            before, size = size, _inner_product(residual, step)
            direction = _add_pairs(step, direction, size / before)
            image = _add_pairs(residual, image, size / before)
        self._dual = shift - precision * mean
        return mean + self._centre

    # -- gradient and posterior ---------------------------------------------------------------

    def pull_back(self, marginals: Marginals, precision: Array, push: Array | None = None) -> Array:
        """See `Prior.pull_back`; the messages, at rest, have no slope."""
        conditional, dual = marginals.root, marginals.dual
        quadratic = [(1.0, self._pull_to_nodes(dual))]
        if push is not None:  # w uᵀ + u wᵀ + w wᵀ = (w + u)(w + u)ᵀ − u uᵀ
            quadratic = [(1.0, self._pull_to_nodes(dual + push)), (-1.0, self._pull_to_nodes(push))]
        gradient = self.chains.gradient(quadratic, conditional.chains)
        if self.static is not None:
            pulled = dual @ self._Z
            fit = pulled**2
            if push is not None:
                fit += 2.0 * pulled * (push @ self._Z)
            reduction = 1.0 - np.einsum("ij,ij->j", conditional.inverse, conditional.inverse)
            # Without variance, no slope.
            spread = reduction / np.where(self._own > 0.0, self._own, 1.0)
            gradient += 0.5 * (fit - spread) @ self.static.slope
        return gradient

    def posterior(self, sites: Any, marginals: Any, likelihood: Likelihood) -> ThroughTime:
        """See `Prior.posterior`."""
        conditional, dual, nodes = marginals.root, marginals.dual, self.nodes
        begin = np.concatenate([[0], np.cumsum(np.bincount(nodes.chain))])
        course = Course.from_sites(
            self.chains, conditional.chains, self._pull_to_nodes(dual), begin
        )
        return ThroughTime(
            self.kernel,
            likelihood,
            np.zeros((0, self._comparisons.items.shape[1])),
            np.zeros((0, 1)),
            np.zeros((0, 0)),
            chains=KnownChains(self.drifts.drift, self.who, course),
            teams=self.drifts.teams,
            static=self.static,
            static_mean=self._own * (dual @ self._Z),
            static_root=conditional.inverse * self._scale,
        )

    def centre_energy(self, marginals: Any) -> float:
        """Compute what earlier answers add to the log-probability of these."""
        return 0.5 * float(marginals.dual @ self._centre)

    def with_later_answers(self, earlier: ThroughTime, marginals: Any) -> ThroughTime:
        """Return the posterior before with these answers, which were given at one later time."""
        conditional, dual = marginals.root, marginals.dual
        weights = self._pull_to_nodes(dual)
        state = self.mean + self.chains.propagate_weights(weights)[0].T
        chains, h = conditional.chains, self.drifts.drift.seen
        news = Latest(
            self.earlier_chain[self.nodes.chain],
            self.who[self.nodes.chain],
            self.nodes.times,
            np.moveaxis(chains.covariance, 2, 0),
            state,
            chains.precision,
            weights + chains.precision * (state @ h),
        )
        mean, root = earlier.static_mean, earlier.static_root
        if earlier.static is not None:
            mean = mean + root.T @ (dual @ self._Z)
            root = conditional.inverse @ root
        return earlier.with_news(news, mean, root)


def _drifts_in(kernel: Kernel, comparisons: Comparisons) -> Drifts | None:
    """Return the processes of a kernel, if these answers may be taken by them."""
    if comparisons.rows.joint:
        return None
    drifts = drifts_of(kernel, comparisons.items.shape[1])
    if drifts is None or _margin_nodes(comparisons, drifts).itself:
        return None
    if drifts.static is None:
        return drifts
    if "static rank" not in comparisons.kept:
        comparisons.kept["static rank"] = (
            drifts.static.terms,
            _count_static_features(drifts, comparisons),
        )
    terms, rank = comparisons.kept["static rank"]
    rank = rank if terms == drifts.static.terms else _count_static_features(drifts, comparisons)
    return drifts if rank <= MOST_STATIC else None


def _count_static_features(drifts: Drifts, comparisons: Comparisons) -> int:
    """Count the features of what does not change."""
    rank = 0
    rows, shares = drifts.members(comparisons.items)
    present = rows[shares != 0.0]
    for term in () if drifts.static is None else drifts.static.terms:
        groups = 1
        if term.group:
            groups = len(distinct_rows(present[:, list(term.group)])[0])
        rank += groups * len(term.monomials)
    return rank


class _MarginNodes(NamedTuple):
    """Which nodes of the chains each margin is a weighted sum of.

    Attributes
    ----------
    who : ndarray of shape (n_chains, n_columns)
        Who the items, or their members, are.
    nodes : Nodes
    node, weight : ndarray of shape (n_ends, n_margins)
        Of the parts of margins: which node each is, and by what its value is multiplied.
    itself : bool
        Whether an answer is on one item at two times, whose utilities are not independent.
    """

    who: Array
    nodes: Nodes
    node: NDArray[np.intp]
    weight: Array
    itself: bool


def _layout_key(drifts: Drifts) -> tuple[Any, ...]:
    """Return the part of drifts on which nodes depend, as a key of what is kept."""
    return drifts.drift.who, drifts.drift.time, drifts.teams and drifts.teams.layout


def _margin_nodes(comparisons: Comparisons, drifts: Drifts) -> _MarginNodes:
    """Return the nodes of the margins of answers, computed once and kept with the answers."""
    key = "nodes", _layout_key(drifts)
    if key not in comparisons.kept:
        comparisons.kept[key] = _build_margin_nodes(comparisons, drifts)
    kept: _MarginNodes = comparisons.kept[key]
    return kept


def _build_margin_nodes(comparisons: Comparisons, drifts: Drifts) -> _MarginNodes:
    """Compute the nodes of the margins of answers."""
    margins = comparisons.rows.margins
    rows, shares = drifts.members(comparisons.items)
    m, n, width = rows.shape
    times = np.tile(drifts.times_of(comparisons.items), m)
    who, code = distinct_rows(rows.reshape(m * n, width)[:, list(drifts.drift.who)])
    nodes = Nodes(code, times)
    of_items = nodes.node.reshape(m, n)
    node = np.concatenate([of_items[:, margins.first], of_items[:, margins.second]])
    weight = np.concatenate([shares[:, margins.first], -shares[:, margins.second]])
    itself = False
    for first, second in combinations(range(2 * m), 2):
        present = (weight[first] != 0.0) & (weight[second] != 0.0)
        same = present & (node[first] == node[second])
        # Of one beside themself at the same time nothing that moves differs.
        weight[first] += np.where(same, weight[second], 0.0)
        weight[second, same] = 0.0
        meets = nodes.chain[node[first]] == nodes.chain[node[second]]
        itself |= bool(np.any(present & ~same & meets))
    return _MarginNodes(who, nodes, node, weight, itself)


def _cavity_variance(variance: Array, precision: Array) -> Array:
    """Compute a variance less the message that is in it."""
    share = 1.0 - precision * variance
    return np.asarray(variance / np.maximum(share, np.finfo(np.float64).eps))


def _add_pairs(
    first: tuple[Array, Array], second: tuple[Array, Array], factor: float = 1.0
) -> tuple[Array, Array]:
    """Return the sums of two pairs of arrays, the second pair times a factor."""
    return first[0] + factor * second[0], first[1] + factor * second[1]


def _inner_product(first: tuple[Array, ...], second: tuple[Array, ...]) -> float:
    """Return the sum of the inner products of two tuples of vectors."""
    return float(sum(a @ b for a, b in zip(first, second, strict=True)))


class ChainRule(PriorRule):
    """Priors of items that are independent through time, where the kernel is of such."""

    exact: ClassVar[bool] = False
    through_time: ClassVar[bool] = True

    def check(self, kernel: Kernel, comparisons: Comparisons) -> None:
        """See `PriorRule.check`."""
        if _drifts_in(kernel, comparisons) is None:
            raise ValueError(_NO_CHAINS.format(kernel))

    def prior(
        self,
        kernel: Kernel,
        comparisons: Comparisons,
        likelihood: Likelihood,
        gradient: bool = False,
    ) -> IndependentItems:
        """See `PriorRule.prior`."""
        return IndependentItems(kernel, comparisons)

    def cost(self, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `PriorRule.cost`."""
        return IndependentItems.cost(kernel, comparisons, likelihood)
