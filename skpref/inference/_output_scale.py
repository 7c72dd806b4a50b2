"""The kernel's output scale with a gamma prior on its inverse, and the bound that this gives.

f ~ GP(0, k/λ), λ ~ Gamma(shape, rate) [1]_. With q(u) q(λ), u the m utilities of the inducing
points, the best q(λ) is a gamma again, of shape a = a₀ + m/2 and rate b = b₀ + ½ tr(K⁻¹ E[u uᵀ]),
and the best q(u) is that of the kernel k/E[λ], the one that is plugged in. The bound is

    Σ E[log p(answer)] − KL(q(u) ‖ N(0, K/E[λ])) + ½ m (E[log λ] − log E[λ]) − KL(q(λ) ‖ prior).

What the points leave of an item's variance has the plugged-in scale too, so that the answers pull
at E[λ] beside the prior. With points at all items nothing is left, the pull is none, and the bound
is one on the evidence with λ integrated out.

The source has a₀ + N/2 where the quadratic form is that of the m points; − μμᵀ for + μμᵀ in it; a
"scale" b₀ that is a rate; Γ for log Γ, and neither ½ m E[log λ] nor E[λ] before the quadratic form
in the bound.

.. [1] Simpson and Gurevych, "Finding convincing arguments using scalable Bayesian preference
   learning", TACL 2018.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from scipy.special import digamma, gammaln
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product

from skpref._inducing import Moments, Weights
from skpref.inference._base import Pass
from skpref.inference._natural import Ascent, Batch, ascend

# Of a run at a scale that is not the last: looseness, as a share of how far the scale is off.
_LOOSE = 0.1
_LOOSEST = 0.03
# A step of log E[λ] at most, and as a multiple of the plain one.
_FARTHEST = 3.0
_BOLDEST = 20.0


class Gamma(NamedTuple):
    """A gamma distribution of λ, the inverse of the kernel's output scale.

    Attributes
    ----------
    shape : float
    rate : float
    """

    shape: float
    rate: float

    @property
    def mean(self) -> float:
        """E[λ]."""
        return self.shape / self.rate

    @property
    def mean_log(self) -> float:
        """E[log λ]."""
        return float(digamma(self.shape)) - float(np.log(self.rate))

    def divergence(self, prior: "Gamma") -> float:
        """Kullback–Leibler divergence from a prior."""
        (a, b), (a0, b0) = self, prior
        gap = (a - a0) * float(digamma(a)) - float(gammaln(a)) + float(gammaln(a0))
        return gap + a0 * float(np.log(b / b0)) + a * (b0 - b) / b

    def bound(self, prior: "Gamma", m: int) -> float:
        """What it adds to the bound at the plugged-in kernel, of m points."""
        return 0.5 * m * (self.mean_log - float(np.log(self.mean))) - self.divergence(prior)

    def around(self, mean: float) -> Self:
        """Of the same shape, with another mean."""
        return self._replace(rate=self.shape / mean)


def updated(prior: Gamma, now: Gamma, at: Moments, pulled: float) -> Gamma:
    """q(λ) that raises the bound, to its maximum where the answers do not pull.

    Parameters
    ----------
    prior, now : Gamma
    at : Moments
        q(w) of the whitened utilities, under the kernel over the mean of ``now``.
    pulled : float
        Minus the derivative of the fit in the logarithm of the variance that the points leave.
    """
    m, x = len(at.mean), now.mean
    shape = prior.shape + 0.5 * m
    rate = prior.rate + 0.5 * (float(np.vdot(at.root, at.root)) + float(at.mean @ at.mean)) / x
    # The fit as −pulled × x / E[λ], what is left being proportional to 1/E[λ]: the maximum of
    # shape log E[λ] − rate E[λ] − pulled × x / E[λ].
    mean = (shape + np.sqrt(max(shape**2 + 4.0 * rate * pulled * x, 0.0))) / (2.0 * rate)
    return Gamma(shape, shape / mean)


def rescaled(weights: Weights, ratio: float) -> Weights:
    """The same sites, seen from points whose prior variance is so many times as large."""
    return Weights(ratio * weights.gain, np.sqrt(ratio) * weights.shift)


def with_scale(kernel: Kernel, factor: float) -> Kernel:
    """A kernel times a factor, which a constant that it begins with takes up."""
    if _has_scale(kernel):
        copy = clone(kernel)
        return copy.set_params(k1__constant_value=factor * kernel.k1.constant_value)
    return ConstantKernel(factor, "fixed") * kernel


def check_scale(kernel: Kernel) -> None:
    """Raise if the kernel learns an output scale of its own."""
    if _has_scale(kernel) and not kernel.k1.hyperparameter_constant_value.fixed:
        raise ValueError(
            f"scale_prior is the prior of the output scale, but the kernel {kernel} has a free one "
            "of its own. Fix it, ConstantKernel(..., constant_value_bounds='fixed'), or leave it "
            "out."
        )


def _has_scale(kernel):
    return isinstance(kernel, Product) and isinstance(kernel.k1, ConstantKernel)


def ascend_with_scale(
    batch: Batch,
    weights: Weights,
    prior: Gamma,
    scale: float,
    tol: float,
    max_iter: int,
    watch: Callable[[Pass], bool] | None = None,
) -> tuple[Ascent, Gamma]:
    """Maximise the bound over q(u) and q(λ).

    For each E[λ] over q(u), and E[λ] by the secant through what two such runs want: one updated
    after the other alone creeps where the answers say little.

    Parameters
    ----------
    batch : Batch
        Under the kernel that λ divides.
    weights : Weights
    prior : Gamma
    scale : float
        1/E[λ] to begin with; that of ``weights``.
    tol, max_iter, watch
        As of `ascend`.
    """
    m = len(weights.shift)
    history: list[float] = []
    now = Gamma(prior.shape + 0.5 * m, 1.0).around(1.0 / scale)
    loose, before = max(tol, _LOOSEST), None
    while True:
        scaled = batch.scaled(with_scale(batch.space.kernel, 1.0 / now.mean), 1.0 / now.mean)
        gap = now.bound(prior, m)
        told = watch and after(watch, len(history), gap)
        end = ascend(scaled, weights, loose, max_iter - len(history), told)
        history += [bound + gap for bound in end.history]
        wanted = updated(prior, now, end.at, end.look.pulled)
        off = float(np.log(wanted.mean / now.mean))
        left = np.sqrt(now.shape) * abs(off)
        if left <= tol and loose <= tol:
            break
        if end.stopped or not end.converged or len(history) >= max_iter:
            break
        if left <= tol:
            loose, weights = tol, end.weights
            continue
        loose = float(np.clip(_LOOSE * left, tol, _LOOSEST))
        step = _secant(before, now, off)
        before = np.log(now.mean), off
        ahead = now.around(now.mean * np.exp(step))
        weights, now = rescaled(end.weights, now.mean / ahead.mean), ahead
    residual = float(np.hypot(end.residual, left))
    converged = end.converged and left <= tol
    end = end._replace(
        bound=end.bound + gap,
        n_iter=len(history),
        residual=residual,
        converged=converged,
        history=history,
    )
    return end, now


def _secant(before, now, off):
    """Step of log E[λ]."""
    step = off
    if before is not None:
        slope = (off - before[1]) / (np.log(now.mean) - before[0])
        step = off * min(_BOLDEST, -1.0 / slope) if slope < 0.0 else off
    return float(np.clip(step, -_FARTHEST, _FARTHEST))


def after(watch: Callable[[Pass], bool], number: int, gap: float = 0.0) -> Callable[[Pass], bool]:
    """Told of passes that come after so many, whose bound lacks ``gap``."""
    return lambda seen: watch(seen._replace(number=number + seen.number, bound=seen.bound + gap))
