"""A model of utilities and answers, and its evidence at given hyperparameters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import NoCovarianceError
from skpref.data import Comparisons
from skpref.fitting._hyperpriors import Prior
from skpref.gp import InducedSpace, gaussian_space
from skpref.inference import EP, Approximation, Engine, Pass, Problem, State
from skpref.kernels import amplitude_powers, hyperparameter_names, kernel_with_gradient
from skpref.likelihoods import Likelihood


class Evaluation(NamedTuple):
    """One run of an engine at given hyperparameters; ``gradient`` is that of the log evidence."""

    problem: Problem
    approximation: Approximation
    gradient: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class Model:
    """What the posterior of answers depends on, beside the answers.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    likelihood : Likelihood
    engine : Engine
        Its options have been checked.
    priors : tuple of Prior
        On the hyperparameters while they are learned.
    """

    kernel: Kernel
    likelihood: Likelihood
    engine: Engine
    priors: tuple[Prior, ...] = ()

    @property
    def theta(self) -> NDArray[np.float64]:
        """Free hyperparameters ``np.r_[kernel.theta, likelihood.theta]``: natural logarithms, but
        for those of the likelihood that are linear."""
        return np.concatenate([self.kernel.theta, self.likelihood.theta])

    @property
    def bounds(self) -> NDArray[np.float64]:
        """Bounds of `theta`, shape (n_theta, 2)."""
        kernel = np.asarray(self.kernel.bounds, dtype=np.float64).reshape(-1, 2)
        return np.concatenate([kernel, self.likelihood.bounds])

    @property
    def names(self) -> list[str]:
        """Names of the elements of `theta`."""
        kernel = [
            name if name.startswith("variance of") else f"kernel {name}"
            for name in hyperparameter_names(self.kernel)
        ]
        return kernel + self.likelihood.free

    @property
    def linear(self) -> NDArray[np.bool_]:
        """Which elements of `theta` are no logarithms, shape (n_theta,)."""
        own = [name in self.likelihood.linear for name in self.likelihood.free]
        return np.array([False] * len(self.kernel.theta) + own, dtype=bool)

    @property
    def powers(self) -> NDArray[np.intp]:
        """Powers of the utility's unit in the elements of `theta`, shape (n_theta,)."""
        own = [self.likelihood.unit_powers.get(name, 0) for name in self.likelihood.free]
        return np.array([*amplitude_powers(self.kernel), *own], dtype=np.intp)

    @property
    def noise_index(self) -> int | None:
        """Where in `theta` the logarithm is that the others' ratios are taken to, if any is."""
        first = len(self.kernel.theta)
        logarithms = (self.powers != 0) & ~self.linear
        found = first + np.flatnonzero(logarithms[first:])
        return int(found[0]) if len(found) else None

    @cached_property
    def evidence_engine(self) -> Engine:
        """The engine whose evidence sets the hyperparameters."""
        return self.engine.evidence_engine() or EP()

    @cached_property
    def learner(self) -> Engine:
        """The engine whose evidence the search for hyperparameters maximises."""
        return self.engine.learner() or self.evidence_engine

    def at(self, theta: NDArray[np.float64]) -> Self:
        """The same model at other hyperparameters."""
        n_kernel = len(self.kernel.theta)
        kernel = self.kernel.clone_with_theta(theta[:n_kernel])
        return replace(self, kernel=kernel, likelihood=self.likelihood.at(theta[n_kernel:]))

    def checked_at(self, theta: ArrayLike) -> Self:
        """The same at hyperparameters that come from a user; ValueError unless they are sound."""
        values = np.asarray(theta, dtype=np.float64)
        if values.shape != self.theta.shape:
            raise ValueError(
                f"theta must have shape {self.theta.shape} ({', '.join(self.names)}; natural "
                f"logarithms, but for the order effect), got {values.shape}."
            )
        if not np.all(np.isfinite(values)):
            raise ValueError(f"theta must be finite, got {values}.")
        return self.at(values)

    def log_prior(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Unnormalised log prior density and its gradient."""
        value, gradient = 0.0, np.zeros(len(theta))
        for prior in self.priors:
            log_density, slope = prior.log_density(theta)
            value, gradient = value + log_density, gradient + slope
        return value, gradient

    def evaluate(
        self,
        comparisons: Comparisons,
        start: State | None = None,
        *,
        engine: Engine | None = None,
        eval_gradient: bool = False,
        watch: Callable[[Pass], bool] | None = None,
    ) -> Evaluation:
        """Run an engine, by default `evidence_engine`, at these hyperparameters.

        A run from ``start`` that does not converge is done again from nothing.
        """
        engine = self.evidence_engine if engine is None else engine
        try:
            space, contract = self._prior(comparisons, engine, eval_gradient)
            problem = Problem(
                space, comparisons, self.likelihood, by_kernel=contract is not None, watch=watch
            )
            found = engine.run(problem, start)
            if start is not None and not (found.converged or found.stopped):
                found = engine.run(problem)
            if not eval_gradient:
                return Evaluation(problem, found, None)
            slopes = engine.evidence_gradient(problem, found)
        except NoCovarianceError as error:
            raise ValueError(f"With the kernel {self.kernel} {error}.") from error
        by_kernel = contract(slopes.covariance) if len(self.kernel.theta) else np.zeros(0)
        return Evaluation(problem, found, np.concatenate([by_kernel, slopes.likelihood]))

    def settled(self, evaluation: Evaluation) -> tuple[Self, Evaluation]:
        """The model with what its engine has found of the kernel's scale, and its evaluation."""
        engine, kernel = self.engine.settled(self.kernel, evaluation.approximation)
        if kernel is self.kernel:
            return self, evaluation
        model, problem = replace(self, engine=engine, kernel=kernel), evaluation.problem
        space, _ = model._prior(problem.comparisons, engine, False)
        return model, evaluation._replace(problem=replace(problem, space=space))

    def _prior(self, comparisons, engine, eval_gradient):
        """The space of the margins, and derivatives in the kernel's theta as a map of weights."""
        items, margins = comparisons.items, comparisons.rows.margins
        if not engine.dense:
            space = InducedSpace(self.kernel, items, margins, engine.inducing_points)
            self._check_finite(space.K)
            return space, space.contract
        contract = None
        if eval_gradient and len(self.kernel.theta):
            K, contract = kernel_with_gradient(self.kernel, items)
        else:
            K = self.kernel(items)
        self._check_finite(K)
        strongest = float(comparisons.rows.counts.max()) / self.likelihood.margin_variance
        return gaussian_space(K, margins, self.likelihood.item_noise, strongest), contract

    def _check_finite(self, K):
        if not np.all(np.isfinite(K)):
            raise ValueError(
                f"The kernel {self.kernel} is not finite on the items. Rescale the features "
                "(for instance Itemwise(StandardScaler())) or choose other hyperparameters."
            )
