"""A model of utilities and answers, and its evidence at given hyperparameters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from skpref._utils import NoCovarianceError, RandomLike
from skpref.data import Comparisons
from skpref.fitting._hyperpriors import Hyperprior
from skpref.fitting._monotone import Monotone, pad_state
from skpref.gp import PriorRule
from skpref.inference import EP, Approximation, Engine, Pass, Problem, State
from skpref.kernels import amplitude_powers, hyperparameter_names
from skpref.likelihoods import Likelihood


class Evaluation(NamedTuple):
    """One run of an engine at given hyperparameters; ``gradient`` is that of the log evidence."""

    problem: Problem
    approximation: Approximation
    gradient: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class Model:
    """All that the posterior depends on, except the answers.

    Attributes
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
    likelihood : Likelihood
    engine : Engine
        Its options have been checked.
    priors : tuple of Hyperprior
        On the hyperparameters while they are learned.
    prepared : PriorRule or None
        How priors of the margins are made, once that is prepared for some answers.
    log_odds_of_effects : float or None
        Of effects of pairs that no order explains, see `with_supported_effects`; None where there
        are none, or their variance was not learned.
    monotone : Monotone or None
        The virtual duels by which the utility rises or falls with some features.
    """

    kernel: Kernel
    likelihood: Likelihood
    engine: Engine
    priors: tuple[Hyperprior, ...] = ()
    prepared: PriorRule | None = None
    log_odds_of_effects: float | None = None
    monotone: Monotone | None = None

    @property
    def theta(self) -> NDArray[np.float64]:
        """Return the free hyperparameters ``np.r_[kernel.theta, likelihood.theta]``.

        They are natural logarithms, but for those of the likelihood that are linear.
        """
        return np.concatenate([self.kernel.theta, self.likelihood.theta])

    @property
    def bounds(self) -> NDArray[np.float64]:
        """Return bounds of `theta`, shape (n_theta, 2)."""
        kernel = np.asarray(self.kernel.bounds, dtype=np.float64).reshape(-1, 2)
        return np.concatenate([kernel, self.likelihood.bounds])

    @property
    def names(self) -> list[str]:
        """Return names of the elements of `theta`."""
        kernel = [
            name if name.startswith("variance of") else f"kernel {name}"
            for name in hyperparameter_names(self.kernel)
        ]
        return kernel + self.likelihood.free

    @property
    def linear(self) -> NDArray[np.bool_]:
        """Tell which elements of `theta` are not logarithms, shape (n_theta,)."""
        own = [name in self.likelihood.linear for name in self.likelihood.free]
        return np.array([False] * len(self.kernel.theta) + own, dtype=bool)

    @property
    def powers(self) -> NDArray[np.intp]:
        """Return powers of the utility's unit in the elements of `theta`, shape (n_theta,)."""
        own = [self.likelihood.unit_powers.get(name, 0) for name in self.likelihood.free]
        return np.array([*amplitude_powers(self.kernel), *own], dtype=np.intp)

    @property
    def noise_index(self) -> int | None:
        """Return the index in `theta` of the logarithm that ratios are taken to, or None."""
        first = len(self.kernel.theta)
        logarithms = (self.powers != 0) & ~self.linear
        scale_indices = first + np.flatnonzero(logarithms[first:])
        return int(scale_indices[0]) if len(scale_indices) else None

    @cached_property
    def evidence_engine(self) -> Engine:
        """Return the engine whose evidence sets the hyperparameters."""
        return self.engine.evidence_engine() or EP()

    @property
    def rule(self) -> PriorRule:
        """Return the rule that makes priors: the engine's own, until one is prepared."""
        return self.engine.prior_rule if self.prepared is None else self.prepared

    @cached_property
    def learner(self) -> Self:
        """Return the model whose evidence the search maximises; itself, mostly."""
        engine = self.engine.evidence_engine(search=True) or EP()
        if type(engine) is type(self.evidence_engine):
            return self
        return replace(self, engine=engine, prepared=None)

    def prepare(self, comparisons: Comparisons, rng: RandomLike = None) -> Self:
        """Return the model with priors ready for these answers: with inducing points, if any."""
        return replace(self, prepared=self.rule.prepare(comparisons, self.kernel, rng))

    def refine(self, comparisons: Comparisons) -> Self:
        """Return the model with priors for its present hyperparameters."""
        refined = self.rule.refine(comparisons, self.kernel, self.likelihood)
        return self if refined is self.prepared else replace(self, prepared=refined)

    def at(self, theta: NDArray[np.float64]) -> Self:
        """Return the same model at other hyperparameters."""
        n_kernel = len(self.kernel.theta)
        kernel = self.kernel.clone_with_theta(theta[:n_kernel])
        return replace(self, kernel=kernel, likelihood=self.likelihood.at(theta[n_kernel:]))

    def checked_at(self, theta: ArrayLike) -> Self:
        """Return the model at a user's hyperparameters; raise ValueError unless they are sound."""
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
        """Return the unnormalised log prior density and its gradient."""
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

        A run from ``start`` that does not converge is done again from nothing. With virtual duels
        the posterior is that given these too, and the evidence that of the answers given these.
        """
        engine = self.evidence_engine if engine is None else engine
        monotone = self.monotone
        if monotone is None or not len(monotone.better):
            return self._run(engine, comparisons, self.likelihood, start, eval_gradient, watch)
        likelihood = monotone.with_steep_virtual_duels(self.likelihood)
        all_duels = monotone.append_virtual_duels(comparisons)
        start = pad_state(start, len(all_duels.rows))
        both = self._run(engine, all_duels, likelihood, start, eval_gradient, watch)
        last = np.arange(len(comparisons.positions), len(all_duels.positions))
        virtual = replace(all_duels, measured=None).part(last)
        alone = self._run(engine, virtual, likelihood, None, eval_gradient)
        run, prior_run = both.approximation, alone.approximation
        log_evidence = run.sites.log_evidence - prior_run.sites.log_evidence
        run = run._replace(
            sites=run.sites._replace(log_evidence=log_evidence),
            converged=run.converged and prior_run.converged,
            residual=max(run.residual, prior_run.residual),
        )
        gradient = both.gradient - alone.gradient if eval_gradient else None
        return Evaluation(both.problem, run, gradient)

    def _run(self, engine, comparisons, likelihood, start, eval_gradient, watch=None):
        """Return the evaluation of an engine on these duels alone."""
        try:
            prior = self.rule.prior(self.kernel, comparisons, likelihood, eval_gradient)
            problem = Problem(prior, comparisons, likelihood, watch=watch)
            approximation = engine.run(problem, start)
            if start is not None and not (approximation.converged or approximation.stopped):
                approximation = engine.run(problem)
            log_density = prior.log_density_of_values
            if log_density:
                sites = approximation.sites
                sites = sites._replace(log_evidence=sites.log_evidence + log_density)
                approximation = approximation._replace(sites=sites)
            if not eval_gradient:
                return Evaluation(problem, approximation, None)
            slopes = engine.evidence_gradient(problem, approximation)
        except NoCovarianceError as error:
            raise ValueError(f"With the kernel {self.kernel} {error}.") from error
        gradient = np.concatenate([slopes.kernel, slopes.likelihood])
        return Evaluation(problem, approximation, gradient)

    def absorb_output_scale(self, evaluation: Evaluation) -> tuple[Self, Evaluation]:
        """Return the model at the kernel's scale as its engine learned it, and its evaluation."""
        absorbed = evaluation.approximation.absorbed
        if absorbed is None:
            return self, evaluation
        engine, kernel = absorbed
        model, problem = replace(self, engine=engine, kernel=kernel), evaluation.problem
        prior = model.rule.prior(kernel, problem.comparisons, model.likelihood)
        return model, evaluation._replace(problem=replace(problem, prior=prior))
