"""Engines that turn a Gaussian approximation into draws of the noisy margins."""

from typing import ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skpref._observations import Observations
from skpref._parameters import check_choice, check_number
from skpref._warnings import warn
from skpref.inference._base import Approximation, Engine, Problem, State
from skpref.inference._diagnostics import Diagnostics, diagnose, split_rhat, tolerated
from skpref.inference._ep import EP
from skpref.inference._laplace import Laplace
from skpref.inference._noisy_margins import NoisyMargins, check_sampled
from skpref.likelihoods import Likelihood

# EP is a start here and gives the evidence, whose error is of second order: a few sweeps fewer.
_EVIDENCE = {"ep": EP(tol=1e-5), "laplace": Laplace()}
_ENOUGH = 100
_TRIES = 4


class SampledEngine(Engine):
    """Draws of v given v > 0 [1]_, each a component of the posterior.

    A subclass has the options ``draws``, ``chains``, ``burn_in``, ``evidence`` and ``warm_start``
    and says how to draw in ``_sample``.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.
    """

    samples: ClassVar[bool] = True
    state_of: ClassVar[str] = "answers"
    # Draws of a chain that are discarded at least, from a cold and from a warm start.
    _first_burn_in: ClassVar[tuple[int, int]]
    # Options that give more effective draws when raised.
    _slack: ClassVar[str]

    def evidence_engine(self) -> Engine:
        """The engine whose evidence sets the hyperparameters and whose mean starts the chains."""
        self.check()
        return clone(_EVIDENCE[check_choice("evidence", self.evidence, _EVIDENCE)])

    def check(self) -> None:
        """Raise unless the options are sound."""
        check_number("draws", self.draws, low=1, integer=True)
        check_number("chains", self.chains, low=1, integer=True)
        if isinstance(self.burn_in, str):
            check_choice("burn_in", self.burn_in, ("auto",))
        else:
            check_number("burn_in", self.burn_in, low=0, integer=True)

    def check_observations(self, observations: Observations, likelihood: Likelihood) -> None:
        """Raise ValueError, before any work, if these answers cannot be sampled."""
        check_sampled(observations, likelihood)

    def side(self, observations: Observations) -> int:
        """Of the largest square matrices: the covariance of the margins of single answers."""
        return int(observations.weight.sum())

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        near: Approximation | None = None,
    ) -> Approximation:
        """Draw v given v > 0 and turn every draw into a component.

        Parameters
        ----------
        problem : Problem
        start : dict, optional
            ``margins`` (n_chains, n_answers) to start from, NaN where there is none; by default
            E[v | z = mean of ``near``, v > 0].
        rng : numpy.random.Generator
        near : Approximation
            Of `evidence_engine`.

        Returns
        -------
        Approximation
            Sites with one component a draw; ``diagnostics`` filled (None with fewer than 4 draws
            a chain), ``state`` holds the last positions.
        """
        self.check()
        rng, near = needed(rng, near)
        margins = NoisyMargins(problem)
        chains = min(self.chains, self.draws)
        per_chain = -(-self.draws // chains)
        covariance = margins.covariance()
        carried = None if start is None else start.get("margins")
        state = margins.start(near.conditioned.mean, start, chains)
        automatic = isinstance(self.burn_in, str)
        warm = carried is not None and bool(np.any(carried > 0.0))
        burn_in = self._first_burn_in[warm] if automatic else int(self.burn_in)
        if burn_in:
            state = self._sample(covariance, state, burn_in, rng, keep=False).state
        for _ in range(_TRIES):
            found = self._sample(covariance, state, per_chain, rng)
            split = split_rhat(found.draws) if per_chain >= 4 else None
            if split is None or not automatic or np.all(split <= tolerated(found.draws.shape)):
                break
            state, burn_in = found.state, burn_in + per_chain  # what was kept was burn-in still
        diagnostics = None if split is None else diagnose(found, split, burn_in)
        if diagnostics is not None:
            self._complain(diagnostics, tolerated(found.draws.shape))
        elif getattr(found, "rejected_share", 0.0) > 0.1:
            warn(
                f"{found.rejected_share:.0%} of the trajectories were rejected at max_walls, so "
                "that draws may be where the chains began. Raise max_walls of the engine, or "
                "noise_variance.",
                ConvergenceWarning,
            )
        draws = found.draws.reshape(-1, covariance.shape[0])
        sites = margins.sites(draws, near.sites.log_evidence)
        conditioned = problem.space.condition(sites.precision, sites.shift)
        return Approximation(
            sites,
            conditioned,
            {"margins": found.state},
            per_chain + burn_in,
            0.0 if split is None else float(np.max(split)),
            near.converged,
            diagnostics,
        )

    def _complain(self, diagnostics: Diagnostics, most: float) -> None:
        worst, fewest = float(np.max(diagnostics.rhat)), float(np.min(diagnostics.ess_bulk))
        floor = min(_ENOUGH, 0.1 * diagnostics.n_draws)
        if worst <= most and fewest >= floor:
            return
        remedy = f"Raise draws or {self._slack} of the engine"
        if diagnostics.rejected_share > 0.1:
            remedy += f" or its max_walls ({diagnostics.rejected_share:.0%} were rejected there)"
            remedy += ", for a handful of duels use inference='gibbs'"
        if hasattr(self, "thin"):
            remedy += ", use inference='hmc', which mixes far better"
        warn(
            f"The chains have not mixed: R̂ up to {worst:.2f} (wanted: at most {most:.2f}), "
            f"effective draws down to {fewest:.0f} (wanted: {floor:.0f}) of {diagnostics.n_draws}. "
            f"{remedy}, or raise noise_variance.",
            ConvergenceWarning,
        )


def needed(
    rng: np.random.Generator | None, near: Approximation | None
) -> tuple[np.random.Generator, Approximation]:
    """Both, or a TypeError: draws need a generator and an approximation to start from."""
    if rng is None or near is None:
        raise TypeError(
            "An engine that samples needs rng=, a numpy Generator, and near=, the Approximation of "
            "its evidence_engine()."
        )
    return rng, near
