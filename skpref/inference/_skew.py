"""The exact posterior by sampling the noisy margins v given v > 0 (Takeno et al. 2023)."""

from skpref._parameters import check_number
from skpref.inference._sampled import SampledEngine
from skpref.samplers import gibbs, hmc


class HMC(SampledEngine):
    """Options of exact Hamiltonian Monte Carlo on the noisy margins.

    The posterior is the skew GP itself, up to Monte Carlo error: a mixture of ordinary GPs, one a
    draw of v given v > 0 [1]_, drawn by exact Hamiltonian Monte Carlo [2]_. Draws are
    practically independent; 1 000 of them take a fraction of a second at 200 duels.

    Parameters
    ----------
    draws : int, default=1000
        Draws kept, over all chains (rounded up to a multiple of ``chains``).
    chains : int, default=20
        Chains side by side.
    burn_in : "auto" or int, default="auto"
        Draws of each chain that are discarded; "auto" continues until R̂ is small.
    evidence : {"ep", "laplace"}, default="ep"
        Whose evidence sets the hyperparameters.
    warm_start : bool, default=False
        Start from where the chains of the previous fit of the same estimator ended; duels that
        are new since then start as in a first fit.
    max_walls : int, default=None
        Trajectories that meet more walls are rejected, which stays exact; None: a generous cap.

    Notes
    -----
    Cost grows as duels² × walls met; repeated duels count each. Beyond a few thousand duels use
    ``"ep"``, whose error then is small. Answers that contradict each other under next to no noise
    cost thousands of walls a draw: raise the noise, or with a handful of duels use `Gibbs`.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.
    .. [2] Pakman and Paninski, "Exact Hamiltonian Monte Carlo for truncated multivariate
       Gaussians", Journal of Computational and Graphical Statistics, 2014.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import HMC
    >>> model = PairwisePreferenceRegressor(inference=HMC(draws=400), random_state=0)
    >>> posterior = model.fit([[[1.0], [0.0]], [[2.0], [1.0]]]).posterior_
    >>> posterior.n_components
    400
    """

    # Trajectories from a cold and from a warm start. Two or three forget the mean of EP, within
    # what 600 chains can tell: measured at 50 and 200 duels, with a tenth of the answers flipped
    # too.
    _first_burn_in = (5, 3)
    _slack = "burn_in"

    def __init__(
        self,
        draws: int = 1000,
        chains: int = 20,
        burn_in: int | str = "auto",
        evidence: str = "ep",
        warm_start: bool = False,
        max_walls: int | None = None,
    ) -> None:
        self.draws = draws
        self.chains = chains
        self.burn_in = burn_in
        self.evidence = evidence
        self.warm_start = warm_start
        self.max_walls = max_walls

    def _sample(self, covariance, state, n_draws, rng, keep=True):
        return hmc(covariance, state, n_draws, rng=rng, max_walls=self.max_walls)

    def check(self) -> None:
        """Raise unless the options are sound."""
        super().check()
        if self.max_walls is not None:
            check_number("max_walls", self.max_walls, low=0, integer=True)


class Gibbs(SampledEngine):
    """Options of coordinate Gibbs sampling on the noisy margins.

    The sampler of [1]_ (its Algorithm 3 lacks ``v_j −`` in the conditional mean), several chains
    side by side, with a move of the radius. It mixes slowly once there are some hundred duels
    and little noise; `HMC` does not.

    Parameters
    ----------
    draws : int, default=1000
        Draws kept, over all chains (rounded up to a multiple of ``chains``).
    chains : int, default=20
        Chains side by side.
    burn_in : "auto" or int, default="auto"
        Sweeps of each chain that are discarded; "auto" continues until R̂ is small.
    evidence : {"ep", "laplace"}, default="ep"
        Whose evidence sets the hyperparameters.
    warm_start : bool, default=False
        Start from where the chains of the previous fit of the same estimator ended; duels that
        are new since then start as in a first fit.
    thin : int, default=10
        Sweeps per kept draw.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inference import Gibbs
    >>> model = PairwisePreferenceRegressor(inference=Gibbs(draws=400), random_state=0)
    >>> model.fit([[[1.0], [0.0]], [[2.0], [1.0]]]).posterior_.n_components
    400
    """

    _first_burn_in = (20, 10)  # sweeps from a cold and from a warm start
    _slack = "thin"

    def __init__(
        self,
        draws: int = 1000,
        chains: int = 20,
        burn_in: int | str = "auto",
        evidence: str = "ep",
        warm_start: bool = False,
        thin: int = 10,
    ) -> None:
        self.draws = draws
        self.chains = chains
        self.burn_in = burn_in
        self.evidence = evidence
        self.warm_start = warm_start
        self.thin = thin

    def check(self) -> None:
        """Raise unless the options are sound."""
        super().check()
        check_number("thin", self.thin, low=1, integer=True)

    def _sample(self, covariance, state, n_draws, rng, keep=True):
        found = gibbs(covariance, state, n_draws * (self.thin if keep else 1), rng=rng)
        return found._replace(draws=found.draws[:, self.thin - 1 :: self.thin]) if keep else found
