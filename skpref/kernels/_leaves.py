"""What each elementary kernel gives, registered once: `LEAVES`."""

from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.gaussian_process import kernels as gp

from skpref.kernels._contracts import (
    Array,
    Cross,
    Diagonal,
    Kernel,
    Pairs,
    Slope,
    Spectrum,
    assemble,
    condense,
    difference_steps,
    differences,
    own_length,
)
from skpref.kernels._identity import Identity, ItemEffect
from skpref.kernels._product_matern import ProductMatern, distances, lengths_of, product_value
from skpref.kernels._radial import radial

# Up to this many features one pass a feature is as quick as BLAS, and exact.
_FEW_FEATURES = 4
# Beyond this spread, in lengthscales, expanding the squares loses more than 1e-9.
_WIDE = 3e3


class Leaf:
    """Any kernel, by its own ``eval_gradient`` and by central differences.

    Kernels that can do better have a class of their own in `LEAVES`.
    """

    def pairs(self, kernel: Kernel, X: Array) -> Pairs:
        """k(X, X) and its gradient in theta."""
        K = np.asarray(kernel(X), dtype=np.float64)
        if K.shape != (len(X), len(X)):
            raise ValueError(
                f"{type(kernel).__name__} gave an array of shape {K.shape} for {len(X)} rows; a "
                "kernel must give one number a pair of rows (a CompoundKernel does not)."
            )

        def contract(off: Array, diag: Array) -> Array:
            gradient = kernel(X, eval_gradient=True)[1]
            return np.tensordot(assemble(off, diag, len(X)), gradient, axes=2)

        return Pairs(condense(K), np.diagonal(K).copy(), contract)

    def cross(self, kernel: Kernel, X: Array, Z: Array) -> Cross:
        """k(X, Z) and its gradient in X."""
        steps = difference_steps(np.full(X.shape[1], own_length(kernel)), X, Z)
        gradient = differences(lambda rows: kernel(rows, Z), X, steps)
        slope = Slope(
            lambda factor: np.asarray(factor)[..., None] * gradient,
            lambda weight: np.einsum("ij,ijk->ik", weight, gradient),
        )
        return Cross(kernel(X, Z), [(1.0, slope)])

    def diagonal(self, kernel: Kernel, X: Array) -> Diagonal:
        """k(x, x) and its gradient in x."""
        value = np.asarray(kernel.diag(X), dtype=np.float64)
        if kernel.is_stationary():
            return Diagonal(value, None)
        steps = difference_steps(np.full(X.shape[1], own_length(kernel)), X)
        return Diagonal(value, differences(kernel.diag, X, steps))

    def spectrum(self, kernel: Kernel, d: int) -> Spectrum | None:
        """The spectral density; None where there is none, or it is not known."""
        return None


class _Constant(Leaf):
    def pairs(self, kernel: Kernel, X: Array) -> Pairs:
        value = float(kernel.constant_value)
        return Pairs(value, value, lambda off, diag: [value * (2.0 * off.sum() + diag.sum())])

    def cross(self, kernel: Kernel, X: Array, Z: Array) -> Cross:
        return Cross(float(kernel.constant_value), [])

    def spectrum(self, kernel: Kernel, d: int) -> Spectrum:
        return Spectrum(lambda n, rng: np.zeros((n, d)), float(kernel.constant_value))


class _White(Leaf):
    def pairs(self, kernel: Kernel, X: Array) -> Pairs:
        value = float(kernel.noise_level)
        return Pairs(0.0, value, lambda off, diag: [value * diag.sum()])

    def cross(self, kernel: Kernel, X: Array, Z: Array) -> Cross:
        return Cross(0.0, [])


class _Identity(Leaf):
    def pairs(self, kernel: Kernel, X: Array) -> Pairs:
        return Pairs((pdist(X, "hamming") == 0.0).astype(np.float64), 1.0, None)

    def cross(self, kernel: Kernel, X: Array, Z: Array) -> Cross:
        return Cross(kernel(X, Z), [])


class _Dot(Leaf):
    def pairs(self, kernel: Kernel, X: Array) -> Pairs:
        variance = float(kernel.sigma_0) * float(kernel.sigma_0)  # ∞ where ** raises
        off, diag = condense(X @ X.T) + variance, np.einsum("ij,ij->i", X, X) + variance
        return Pairs(off, diag, lambda w, v: [2.0 * variance * (2.0 * w.sum() + v.sum())])

    def cross(self, kernel: Kernel, X: Array, Z: Array) -> Cross:
        def gradient(factor: Array | float) -> Array:
            return np.broadcast_to(factor, (len(X), len(Z)))[:, :, None] * Z

        variance = float(kernel.sigma_0) * float(kernel.sigma_0)
        return Cross(X @ Z.T + variance, [(1.0, Slope(gradient, lambda weight: weight @ Z))])

    def diagonal(self, kernel: Kernel, X: Array) -> Diagonal:
        return Diagonal(kernel.diag(X), 2.0 * X)


class _Radial(Leaf):
    """RBF and Matérn, and what they share with other functions of a distance."""

    def pairs(self, kernel: Kernel, X: Array) -> Pairs:
        profile = radial(kernel, X)
        scaled = X / profile.length
        u = pdist(scaled, "sqeuclidean")
        value = profile.value(u)

        def contract(off: Array, diag: Array) -> Array | list[float]:
            weight = off * profile.slope(u, value)
            if kernel.anisotropic:
                return _squares(scaled, weight, profile.rough)  # dk/d log l_k = slope · u_k
            return [2.0 * (weight @ u)]

        return Pairs(value, 1.0, contract)

    def cross(self, kernel: Kernel, X: Array, Z: Array) -> Cross:
        profile = radial(kernel, X, Z)
        length = profile.length
        u = cdist(X / length, Z / length, "sqeuclidean")
        value = profile.value(u)

        def gradient(factor: Array | float) -> Array:
            slope = factor * profile.slope(u, value)
            return -slope[:, :, None] * profile.over_square(X[:, None, :] - Z[None, :, :])

        def contract(weight: Array) -> Array:
            slope = weight * profile.slope(u, value)
            if profile.rough:  # slopes may be huge where the differences are tiny
                apart = (np.subtract.outer(x, z) for x, z in zip(X.T, Z.T, strict=True))
                summed = np.stack([np.einsum("ij,ij->i", slope, each) for each in apart], axis=1)
            else:
                centre = Z.sum(axis=0) / len(Z)
                summed = slope.sum(axis=1)[:, None] * (X - centre) - slope @ (Z - centre)
            return -profile.over_square(summed)

        return Cross(value, [(1.0, Slope(gradient, contract))])

    def spectrum(self, kernel: Kernel, d: int) -> Spectrum | None:
        nu = getattr(kernel, "nu", np.inf)

        def draw(n: int, rng: np.random.Generator) -> Array:
            normal = rng.standard_normal((n, d))
            if nu != np.inf:  # a multivariate t with 2 nu degrees of freedom
                normal /= np.sqrt(rng.chisquare(2.0 * nu, (n, 1)) / (2.0 * nu))
            return normal / np.squeeze(kernel.length_scale)

        return Spectrum(draw, 1.0)


class _Rational(_Radial):
    def pairs(self, kernel: Kernel, X: Array) -> Pairs:
        profile = radial(kernel, X)
        u = pdist(X / profile.length, "sqeuclidean")
        value = profile.value(u)

        def contract(off: Array, diag: Array) -> list[float]:
            weighted_slope = off * profile.slope(u, value)
            along_length = weighted_slope @ u
            gradient = []
            if not kernel.hyperparameter_alpha.fixed:
                log_base = np.log1p(u / (2.0 * kernel.alpha))
                gradient.append(along_length - 2.0 * kernel.alpha * (off @ (value * log_base)))
            if not kernel.hyperparameter_length_scale.fixed:
                gradient.append(2.0 * along_length)
            return gradient

        return Pairs(value, 1.0, contract)

    def spectrum(self, kernel: Kernel, d: int) -> None:
        return None


class _ProductMatern(Leaf):
    def pairs(self, kernel: Kernel, X: Array) -> Pairs:
        off = condense(product_value(kernel, X, X))

        def contract(weights: Array, diag: Array) -> Array:
            weighted = 2.0 * weights * off
            each = [weighted @ (s**2 / (1.0 + s)) for s in map(condense, distances(kernel, X, X))]
            return np.array(each if kernel.anisotropic else [np.sum(each)])

        return Pairs(off, 1.0, contract)

    def cross(self, kernel: Kernel, X: Array, Z: Array) -> Cross:
        value = product_value(kernel, X, Z)

        def slopes() -> Iterator[Array]:
            lengths = lengths_of(kernel, X.shape[1])
            each = zip(X.T, Z.T, lengths, distances(kernel, X, Z), strict=True)
            for x, z, length, s in each:
                yield -3.0 / length**2 * value * np.subtract.outer(x, z) / (1.0 + s)

        def gradient(factor: Array | float) -> Array:
            return np.stack([factor * slope for slope in slopes()], axis=-1)

        def contract(weight: Array) -> Array:
            return np.stack([np.einsum("ij,ij->i", weight, each) for each in slopes()], axis=1)

        return Cross(value, [(1.0, Slope(gradient, contract))])

    def spectrum(self, kernel: Kernel, d: int) -> Spectrum:
        def draw(n: int, rng: np.random.Generator) -> Array:
            # a t with 3 degrees of freedom a feature, independent
            return rng.standard_t(3.0, (n, d)) / lengths_of(kernel, d)

        return Spectrum(draw, 1.0)


def _squares(scaled: Array, weight: Array, rough: bool) -> Array:
    """Σ_ij weight_ij (x_ik − x_jk)² for every feature k, from the upper triangle of weight."""
    n, d = scaled.shape
    # Expanding the squares is quicker but cancels where a rough kernel's weights are huge.
    if rough or d <= _FEW_FEATURES or n < 2 or np.ptp(scaled, axis=0).max() > _WIDE:
        columns = (np.ascontiguousarray(column)[:, None] for column in scaled.T)
        return np.array([2.0 * (weight @ pdist(column, "sqeuclidean")) for column in columns])
    full = assemble(weight, 0.0, n)
    centred = scaled - scaled.mean(axis=0)
    own = 2.0 * (full.sum(axis=1) @ centred**2)
    return own - 2.0 * np.einsum("ik,ik->k", centred, full @ centred)


LEAVES: dict[type, Leaf] = {
    gp.ConstantKernel: _Constant(),
    gp.WhiteKernel: _White(),
    gp.DotProduct: _Dot(),
    gp.RBF: _Radial(),
    gp.Matern: _Radial(),
    gp.RationalQuadratic: _Rational(),
    Identity: _Identity(),
    ItemEffect: _Radial(),
    ProductMatern: _ProductMatern(),
}
_OTHER = Leaf()


def leaf_of(kernel: Kernel) -> Leaf:
    """What an elementary kernel gives; a subclass goes through its own code."""
    return LEAVES.get(type(kernel), _OTHER)
