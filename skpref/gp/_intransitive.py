"""The prior of margins with effects of pairs that no order explains, and its posterior.

A margin is z = f(a) − f(b) + h(a, b). The effects h have the antisymmetric kernel of pairs of a
kernel of items that is centred over the items of the answers: so no difference of utilities of
these is in h.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skpref._utils import (
    BLOCK,
    Array,
    RandomLike,
    floor_variance,
    make_generator,
    positive_blocks,
    row_blocks,
    semidefinite_root,
    symmetric_root,
)
from skpref.data import Comparisons
from skpref.gp._dense import DenseItems, DenseMargins, root_times
from skpref.gp._posterior import PairMoments, Posterior, concatenate_blocks, difference_cov
from skpref.gp._prior import EXACT, HELD, Cost, Marginals, Prior, check_means
from skpref.gp._utilities import Gain, as_columns
from skpref.kernels import (
    Intransitive,
    Kernel,
    intransitive_parts,
    kernel_values,
    kernel_with_gradient,
    terms_of_sum,
    theta_places,
)
from skpref.likelihoods import Likelihood


def _centred(K: Array) -> Array:
    """Take the means of rows and columns out of a matrix."""
    return K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()


def _pair_values(K: Array, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
    """Compute k(a, c) k(b, d) − k(a, d) k(b, c) of all pairs, from K of their items."""
    alike = K[np.ix_(first, first)] * K[np.ix_(second, second)]
    crossed = K[np.ix_(first, second)]
    return alike - crossed * crossed.T


class PairMargins(DenseMargins):
    """The prior on p distinct margins by their (p, p) covariance, effects of pairs included."""

    takes_joint: ClassVar[bool] = False
    takes_pair_effects: ClassVar[bool] = True
    takes_measured: ClassVar[bool] = False

    def __init__(self, K, margins, noise=None, kernel=None, items=None, contract=None):
        super().__init__(K, margins, noise, kernel, items, contract)
        for term in terms_of_sum(intransitive_parts(kernel)[1]):
            centred = _centred(kernel_values(term.kernel, items))
            self.S += term.variance * _pair_values(centred, self.first, self.second)
        self.variance = floor_variance(np.diagonal(self.S), 0.0)

    @classmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `Prior.cost`."""
        side = float(len(comparisons.rows.margins.first))
        n_bytes = 8.0 * HELD * max(side, float(len(comparisons.items))) ** 2
        return Cost(2.0 / 3.0 * side**3, side, n_bytes)

    # What `Dense` finds by the items' covariance alone.
    root, rounding, energy_error = Prior.root, Prior.rounding, Prior.energy_error

    def times(self, vector: Array) -> Array:
        """Compute S vector, see `Prior.times`."""
        product: Array = self.S @ vector
        return product

    def pull_back(self, marginals: Marginals, precision: Array, push: Array | None = None) -> Array:
        """See `Prior.pull_back`: what `Dense` finds, and the slopes of the effects of pairs."""
        gradient = np.array(super().pull_back(marginals, precision, push))
        dual, half = marginals.dual, root_times(precision, marginals.root.T)
        weight = np.multiply.outer(dual, dual) - half @ half.T
        if push is not None:
            weight += np.multiply.outer(dual, push) + np.multiply.outer(push, dual)
        for term, place in theta_places(self.kernel):
            if isinstance(term, Intransitive) and term.n_dims:
                gradient[place] = self._slopes(term, 0.5 * weight)
        return gradient

    def _slopes(self, term: Intransitive, weight: Array) -> Array:
        """Compute Σ weight_ij ∂C_ij of the effects' covariance C in the theta of their kernel."""
        K, contract = kernel_with_gradient(term.kernel, self.items)
        K, first, second = _centred(K), self.incidence.maximum(0.0), -self.incidence.minimum(0.0)
        a, b = self.first, self.second
        crossed = K[np.ix_(a, b)]
        across = first @ (weight * crossed.T) @ second.T
        of_items = first @ (weight * K[np.ix_(b, b)]) @ first.T
        of_items += second @ (weight * K[np.ix_(a, a)]) @ second.T
        of_items -= across + across.T
        inner = term.variance * contract(_centred(of_items))
        own = term.variance * np.sum(weight * _pair_values(K, a, b))
        return np.concatenate([[own], inner])[-term.n_dims :]

    def posterior(self, sites: Any, marginals: Any, likelihood: Likelihood) -> Posterior:
        """See `Prior.posterior`."""
        utility = super().posterior(sites, marginals, likelihood)
        factor = root_times(sites.precision, marginals.root.T)
        return _with_pairs(self, utility, marginals.dual, factor)

    def check_digits(self, posterior: Posterior, marginals: Marginals) -> None:
        """Compare the margins' means with the posterior's, which come about by other sums."""
        sides = self.items[self.first], self.items[self.second]
        blocks = [block.means.mean(axis=1) for block in posterior.answer_moments(*sides)]
        mean = as_columns(marginals.mean).mean(axis=1)
        variance = marginals.variance + posterior.likelihood.margin_variance
        check_means(np.concatenate(blocks), mean, variance)


class PairsOfNames(DenseItems):
    """The prior on margins whose effects of pairs are of n names, by the utilities alone.

    Centred effects of names have the covariance w (I − A Aᵀ / n) on the margins A f of distinct
    pairs, where A Aᵀ / n is that of differences over all pairs. So S = A (K − w / n) Aᵀ + w I: the
    margins of another utility, and noise of variance w on each, which its site sees it through. The
    cost is cubic in the items, not in their pairs.
    """

    takes_joint: ClassVar[bool] = False
    takes_pair_effects: ClassVar[bool] = True

    def __init__(self, K, margins, noise=None, kernel=None, items=None, contract=None):
        self._effect_variance = w = _pair_effect_variance(kernel, items)
        super().__init__(K - w / len(K) * np.eye(len(K)), margins, noise, kernel, items)
        self._contract, self.variance = contract, self.variance + w

    @classmethod
    def cost(cls, kernel: Kernel | None, comparisons: Comparisons, likelihood: Likelihood) -> Cost:
        """See `Prior.cost`; infinite unless effects are of names, and no larger than utilities."""
        items, margins = comparisons.items, comparisons.rows.margins
        n, variance = len(items), _pair_effect_variance(kernel, items)
        low, high = np.sort(np.stack([margins.first, margins.second]), axis=0)
        is_distinct = len(np.unique(low * n + high)) == len(low) and np.all(low < high)
        if not is_distinct or not np.isfinite(variance):
            return Cost(np.inf, np.inf, np.inf)
        K = kernel_values(kernel, items) - variance / n * np.eye(n)
        if not positive_blocks(K[None], 0.0)[0]:
            return Cost(np.inf, np.inf, np.inf)
        return super().cost(kernel, comparisons, likelihood)

    root, rounding, energy_error = Prior.root, Prior.rounding, Prior.energy_error
    covariance, check_digits = Prior.covariance, PairMargins.check_digits

    def times(self, vector: Array) -> Array:
        """Compute S vector, see `Prior.times`."""
        return super().times(vector) + self._effect_variance * vector

    def _sites_through_effects(self, precision: Array, shift: Array) -> tuple[Array, Array, Array]:
        """Return 1 + w × precision, and the sites' precision and shift seen through the effects."""
        share = 1.0 + self._effect_variance * precision
        return share, precision / share, (shift.T / share).T

    def _with_effects(self, mean: Array, share: Array, shift: Array) -> Array:
        """Return the means of the margins, effects included, of those of the utility's."""
        return ((mean + self._effect_variance * shift).T / share).T

    def condition(self, precision: Any, shift: Array) -> Marginals:
        """See `Prior.condition`."""
        share, *sites = self._sites_through_effects(precision, shift)
        own = super().condition(*sites)
        return own._replace(
            mean=self._with_effects(own.mean, share, shift),
            variance=self._effect_variance / share + own.variance / share**2,
            log_det=own.log_det + float(np.sum(np.log(share))),
        )

    def condition_on_shift(self, marginals: Marginals, precision: Any, shift: Array) -> Marginals:
        """See `Prior.condition_on_shift`."""
        share, *sites = self._sites_through_effects(precision, shift)
        own = super().condition_on_shift(marginals, *sites)
        return own._replace(mean=self._with_effects(own.mean, share, shift))

    def centre(self, precision: Any, shift: Array) -> tuple[Array, Array]:
        """See `Prior.centre`."""
        share, *sites = self._sites_through_effects(precision, shift)
        mean, dual = super().centre(*sites)
        return self._with_effects(mean, share, shift), dual

    def gain(self, marginals: Marginals, precision: Array, shift: Array) -> Gain:
        """See `Dense.gain`."""
        return super().gain(marginals, *self._sites_through_effects(precision, shift)[1:])

    def gram(self, marginals: Marginals, precision: Array) -> Array:
        """See `Dense.gram`."""
        factor = self.gain(marginals, precision, np.zeros(self.n_margins)).factor
        return factor @ factor.T

    def pull_back(self, marginals: Marginals, precision: Array, push: Array | None = None) -> Array:
        """See `Prior.pull_back`: what `Dense` finds, and the slopes of w."""
        gradient = np.array(super().pull_back(marginals, precision, push))
        dual = marginals.dual
        alpha, n = self.incidence @ dual, self.n_items
        slope = dual @ dual - np.sum(precision * (1.0 - precision * marginals.variance))
        slope -= (alpha @ alpha - np.trace(self.gram(marginals, precision))) / n
        if push is not None:
            slope += 2.0 * (dual @ push - alpha @ (self.incidence @ push) / n)
        for term, place in theta_places(self.kernel):
            if isinstance(term, Intransitive) and term.n_dims:
                K, contract = kernel_with_gradient(term.kernel, self.items)
                own = 0.5 * slope * term.variance * K[0, 0]
                inner = 2.0 * own * contract(np.eye(n)) / n
                gradient[place] = np.concatenate([[own * K[0, 0]], inner])[-term.n_dims :]
        return gradient

    def posterior(self, sites: Any, marginals: Any, likelihood: Likelihood) -> Posterior:
        """See `Prior.posterior`."""
        precision = self._sites_through_effects(sites.precision, sites.shift)[1]
        spread = self.difference(semidefinite_root(marginals.root.covariance))
        utility = super().posterior(sites, marginals, likelihood)
        factor = precision[:, None] * spread
        return _with_pairs(self, utility, marginals.dual, factor, precision)


def _pair_effect_variance(kernel: Kernel | None, items: Array) -> float:
    """Return the prior variance of intransitive effects of pairs of names, before centring.

    Infinite where two items are alike to a kernel of the effects, or vary differently.
    """
    variance = 0.0
    for term in terms_of_sum(intransitive_parts(kernel)[1]):
        K = kernel_values(term.kernel, items)
        if np.count_nonzero(K - K[0, 0] * np.eye(len(K))):
            return np.inf
        variance += float(term.variance * K[0, 0] ** 2)
    return variance


def _with_pairs(
    prior: PairMargins | PairsOfNames,
    utility: Posterior,
    dual: Array,
    factor: Array,
    precision: Array | None = None,
) -> "IntransitivePosterior":
    """Return the posterior of a utility with effects of the pairs of a prior's margins."""
    own, effects = intransitive_parts(prior.kernel)
    return IntransitivePosterior(
        own,
        utility.likelihood,
        utility.anchors,
        utility.weights,
        utility.factor,
        effects=effects,
        first=prior.first,
        second=prior.second,
        pair_weights=as_columns(dual),
        pair_factor=factor,
        pair_precision=precision,
    )


@dataclass(frozen=True, eq=False, repr=False)
class IntransitivePosterior(Posterior):
    """Posterior of a utility, beside which pairs of items have effects that no order explains.

    Parameters
    ----------
    kernel, likelihood, anchors, weights, factor, reader, utilities
        As in `Posterior`, of the utility; the effects are centred over the anchors.
    effects : Kernel
        One `Intransitive`, or a sum of some.
    first, second : ndarray of int of shape (n_margins,)
        Anchors of each margin.
    pair_weights : ndarray of shape (n_margins, n_components)
    pair_factor : ndarray of shape (n_margins, rank)
        As ``weights`` and ``factor``, of the margins.
    pair_precision : ndarray of shape (n_margins,) or None
        Less the square of ``pair_factor`` it is what the answers take from the covariance, in place
        of that square alone; None: that alone.
    """

    effects: Kernel = None  # type: ignore[assignment]  # fields with defaults come before it
    first: NDArray[np.intp] = None  # type: ignore[assignment]
    second: NDArray[np.intp] = None  # type: ignore[assignment]
    pair_weights: Array = None  # type: ignore[assignment]
    pair_factor: Array = None  # type: ignore[assignment]
    pair_precision: Array | None = None

    def _explained_covariance(self, cross: Array, effects: Array, joint: bool = False) -> Array:
        """Compute what the answers take from variances (n,), or from the covariance (n, n).

        Parameters
        ----------
        cross : ndarray of shape (n, n_anchors)
            Prior covariance of what is asked with the utilities of the anchors.
        effects : ndarray of shape (n, n_margins)
            The same with the effects of the margins.
        joint : bool, default=False
        """
        if self.pair_precision is None:
            half = cross @ self.factor + effects @ self.pair_factor
            return half @ half.T if joint else np.einsum("ij,ij->i", half, half)
        whole = cross[:, self.first] - cross[:, self.second] + effects
        half, scaled = whole @ self.pair_factor, whole * self.pair_precision
        if joint:
            return scaled @ whole.T - half @ half.T
        own = np.einsum("ij,ij->i", scaled, whole)
        return np.asarray(own - np.einsum("ij,ij->i", half, half))

    def _effects_at(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Compute the prior covariance of effects of pairs with those of the margins, (n,
        n_margins), and their variances (n,)."""
        cross, variance = np.zeros((len(A), len(self.first))), np.zeros(len(A))
        for term in terms_of_sum(self.effects):
            to_anchors = [kernel_values(term.kernel, rows, self.anchors) for rows in (A, B)]
            among = kernel_values(term.kernel, self.anchors).mean(axis=0)
            level = among.mean()
            means = [values.mean(axis=1) for values in to_anchors]
            a, b = (
                values - mean[:, None] - among + level
                for values, mean in zip(to_anchors, means, strict=True)
            )
            i, j = self.first, self.second
            cross += term.variance * (a[:, i] * b[:, j] - a[:, j] * b[:, i])
            own = [
                term.kernel.diag(rows) - 2.0 * mean + level
                for rows, mean in zip((A, B), means, strict=True)
            ]
            both = kernel_values(term.kernel, A, B, aligned=True) - means[0] - means[1] + level
            variance += term.variance * floor_variance(own[0] * own[1] - both**2, own[0] * own[1])
        return cross, variance

    def answer_moments(self, A: Array, B: Array) -> Iterator[PairMoments]:
        """Yield the moments of the margins that answers are about, without observation noise."""
        widest = max(len(self.anchors), self.n_components, len(self.first))
        for rows in row_blocks(len(A), widest, BLOCK):
            yield PairMoments(rows, *self._answer_block(A[rows], B[rows]))

    def _answer_block(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Compute means (n, n_components) and variances (n,) of f(a) − f(b) + h(a, b)."""
        cross = self.cross(A) - self.cross(B)
        effects, variance = self._effects_at(A, B)
        scale = self.kernel.diag(A) + self.kernel.diag(B)
        prior = scale - 2.0 * kernel_values(self.kernel, A, B, aligned=True) + variance
        scale = np.where(np.any(A != B, axis=1), scale + variance, 0.0)
        variance = floor_variance(prior - self._explained_covariance(cross, effects), scale)
        return cross @ self.weights + effects @ self.pair_weights, variance

    def joint_answer_moments(self, A: Array, B: Array) -> tuple[Array, Array]:
        """See `Posterior.joint_answer_moments`."""
        n, both = len(A), np.concatenate([A, B])
        prior = difference_cov(kernel_values(self.kernel, both))
        for term in terms_of_sum(self.effects):
            to_anchors = kernel_values(term.kernel, both, self.anchors).mean(axis=1)
            level = kernel_values(term.kernel, self.anchors).mean()
            K = kernel_values(term.kernel, both) - to_anchors - to_anchors[:, None] + level
            prior += term.variance * _pair_values(K, np.arange(n), np.arange(n, 2 * n))
        cross, effects = self.cross(A) - self.cross(B), self._effects_at(A, B)[0]
        means = cross @ self.weights + effects @ self.pair_weights
        return means, prior - self._explained_covariance(cross, effects, joint=True)

    def answer_mean(self, A: Any, B: Any) -> Array:
        """Compute the mean of the margins that answers are about, for pairs of rows, (n,)."""
        blocks = list(self.answer_moments(*self._pairs(A, B)))
        return concatenate_blocks([block.means.mean(axis=1) for block in blocks], (0,))

    def set_moments(self, items: Array, places: NDArray[np.intp]) -> tuple[Array, Array]:
        """Raise ValueError: effects of pairs say nothing of sets."""
        raise ValueError(
            f"got sets of {places.shape[1]} items and a model with the term {self.effects}; "
            "duels are allowed, as effects of pairs do not say which of several items is chosen. "
            "Ask about pairs, or fit a model without that term."
        )

    def drawn_parts(self, n_pairs: int, n: int, rng: RandomLike = None) -> tuple[Array, Array]:
        """Draw the differences of utilities of pairs of anchors, and the effects of these pairs.

        Parameters
        ----------
        n_pairs : int
            So many at random, where there are more pairs.
        n : int
            Number of draws.
        rng : int, RandomState or Generator, default=None

        Returns
        -------
        differences, effects : ndarray of shape (n_pairs, n)
        """
        rng, m = make_generator(rng), len(self.anchors)
        first, second = np.triu_indices(m, 1)
        if len(first) > n_pairs:
            some = rng.choice(len(first), n_pairs, replace=False)
            first, second = first[some], second[some]
        prior, cross = np.zeros((m + len(first),) * 2), np.zeros((m + len(first), len(self.first)))
        prior[:m, :m] = kernel_values(self.kernel, self.anchors)
        for term in terms_of_sum(self.effects):
            K = _centred(kernel_values(term.kernel, self.anchors))
            prior[m:, m:] += term.variance * _pair_values(K, first, second)
        cross[m:] = self._effects_at(self.anchors[first], self.anchors[second])[0]
        of_utility, mean = np.zeros((m + len(first), m)), cross @ self.pair_weights
        of_utility[:m], mean[:m] = prior[:m, :m], prior[:m, :m] @ self.weights
        root = symmetric_root(prior - self._explained_covariance(of_utility, cross, joint=True))
        drawn = mean[:, rng.integers(self.n_components, size=n)]
        drawn = drawn + root @ rng.standard_normal((root.shape[1], n))
        return drawn[first] - drawn[second], drawn[m:]

    def hallucinate(self, rng: RandomLike = None) -> "IntransitivePosterior":
        """Return one component, drawn at random: an ordinary GP given one draw of the margins."""
        s = int(make_generator(rng).integers(self.n_components))
        component = slice(s, s + 1)
        pair_weights = self.pair_weights[:, component]
        return replace(self, weights=self.weights[:, component], pair_weights=pair_weights)


EXACT += [PairMargins, PairsOfNames]
