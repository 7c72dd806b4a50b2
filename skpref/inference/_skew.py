"""The exact posterior by sampling the noisy margins v given v > 0 (Takeno et al. 2023)."""

import numpy as np
from sklearn.base import clone

from skpref._observations import Observations
from skpref._parameters import check_choice, check_number
from skpref.inference._chains import wall_work
from skpref.inference._margin_chains import FEW_WALLS, bearable_walls, step_work
from skpref.inference._memory import available
from skpref.inference._sampled import SampledEngine
from skpref.likelihoods import Likelihood
from skpref.samplers import gibbs, hmc
from skpref.samplers._hmc import most_walls

# Multiplications in whose time a sweep of Gibbs passes an entry of its matrix.
_SWEEP = 3.0
# Such sweeps that a trajectory may cost: draws of choices and rankings that are as independent.
_SWEEPS_A_DRAW = 1000.0
# Of these sweeps those between draws, where they take the place of trajectories.
_THIN = 50
# Walls an answer that a trajectory meets where answers agree, and steps a draw that margins need
# where there are many: where these cost less than those, burn-in need not be asked.
_AGREEING = 0.4
_MANY_STEPS = 300.0


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
    method : {"auto", "walls", "margins"}, default="auto"
        ``"walls"`` moves the noisy margins of all answers, whose walls turn it back [2]_;
        ``"margins"`` moves the distinct margins without noise, at whatever number of repeats, and
        draws the noisy ones from them [3]_. ``"auto"`` takes the margins if answers are many times
        as many, if the walls take too much memory, or if burn-in meets too many. Choices and
        rankings, whose margins share noise, then are drawn by the sweeps of `Gibbs`.
    max_work : float, default=1000
        Work, in 10⁹ multiplications (about a tenth of a second), after which the chains stop, with
        a warning, at the draws that they have.

    Notes
    -----
    By walls cost grows as answers² × walls met: half as many as answers if these agree, thousands
    where they contradict each other under little noise. By margins it grows as distinct margins² ×
    steps, which are few where answers contradict each other and many where they agree under next
    to no noise. Beyond a few thousand duels use ``"ep"``, whose error then is small.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.
    .. [2] Pakman and Paninski, "Exact Hamiltonian Monte Carlo for truncated multivariate
       Gaussians", Journal of Computational and Graphical Statistics, 2014.
    .. [3] Shahbaba, Lan, Johnson and Neal, "Split Hamiltonian Monte Carlo", Statistics and
       Computing, 2014.

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
    _name = "walls"

    def __init__(
        self,
        draws: int = 1000,
        chains: int = 20,
        burn_in: int | str = "auto",
        evidence: str = "ep",
        warm_start: bool = False,
        max_walls: int | None = None,
        method: str = "auto",
        max_work: float = 1000.0,
    ) -> None:
        self.draws = draws
        self.chains = chains
        self.burn_in = burn_in
        self.evidence = evidence
        self.warm_start = warm_start
        self.max_walls = max_walls
        self.method = method
        self.max_work = max_work

    def check(self) -> None:
        """Raise unless the options are sound."""
        super().check()
        if self.max_walls is not None:
            check_number("max_walls", self.max_walls, low=0, integer=True)
        check_choice("method", self.method, ("auto", "walls", "margins"))

    def _cap(self, n_answers):
        return most_walls(n_answers) if self.max_walls is None else self.max_walls

    def _cautious(self, problem, near):
        n_answers, rows = problem.observations.n_singles, problem.rows
        if self.method != "auto" or not rows.basis.all():
            return self
        if rows.joint:
            worth = _SWEEPS_A_DRAW * _SWEEP * float(n_answers) ** 2
            walls = max(int(worth / wall_work(n_answers)), FEW_WALLS)
        else:
            walls = bearable_walls(problem, near)
        enough = walls >= self._cap(n_answers)
        return self if enough else clone(self).set_params(max_walls=walls)

    def _otherwise(self, problem, noisy, near, start, rng, budget):
        if not problem.rows.joint:
            return super()._otherwise(problem, noisy, near, start, rng, budget)
        sweeps = Gibbs(self.draws, self.chains, self.burn_in, self.evidence, thin=_THIN)
        return sweeps._on_answers(problem, noisy, near, start, rng, budget)

    def _check_moved(self, rejected_share):
        if rejected_share == 1.0 and self.max_walls is None:
            raise ValueError(
                "HMC gave every trajectory up for the walls that it met: these answers contradict "
                "each other under hardly any noise, and nothing would be drawn. Use "
                "inference='ep', or raise noise_variance."
            )

    def check_observations(self, observations: Observations, likelihood: Likelihood) -> None:
        """See `AnswerEngine.check_observations`."""
        if self.method == "margins" and observations.rows.joint:
            raise ValueError(
                "HMC(method='margins') draws the margins without noise, which choices and rankings "
                "share; use method='auto' (or 'walls')."
            )
        super().check_observations(observations, likelihood)

    def _sample(self, covariance, state, n_draws, rng, box=None, keep=True):
        cap = self._cap(len(covariance))
        lower, upper = (None, None) if box is None else box
        return hmc(covariance, state, n_draws, rng=rng, max_walls=cap, lower=lower, upper=upper)

    def _margins_at_once(self, observations):
        if self.method != "auto":
            return self.method == "margins"
        if observations.rows.joint:
            return False
        n_answers = observations.n_singles
        by_walls = _AGREEING * n_answers * wall_work(n_answers)
        if _MANY_STEPS * step_work(observations.rows) < by_walls:
            return True
        return self._bytes_on_answers(n_answers) > available()

    def _most_work(self, n_answers, keep):
        return wall_work(n_answers) * (self._cap(n_answers) + 1.0)

    def _work_of(self, n_answers, found, keep):
        return wall_work(n_answers) * float(np.sum(found.walls + 1.0))


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
    max_work : float, default=1000
        Work, in 10⁹ multiplications (about a tenth of a second), after which the chains stop, with
        a warning, at the draws that they have.

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
    _name = "gibbs"

    def __init__(
        self,
        draws: int = 1000,
        chains: int = 20,
        burn_in: int | str = "auto",
        evidence: str = "ep",
        warm_start: bool = False,
        thin: int = 10,
        max_work: float = 1000.0,
    ) -> None:
        self.draws = draws
        self.chains = chains
        self.burn_in = burn_in
        self.evidence = evidence
        self.warm_start = warm_start
        self.thin = thin
        self.max_work = max_work

    def check(self) -> None:
        """Raise unless the options are sound."""
        super().check()
        check_number("thin", self.thin, low=1, integer=True)

    def check_observations(self, observations: Observations, likelihood: Likelihood) -> None:
        """See `AnswerEngine.check_observations`."""
        if not observations.rows.basis.all():
            raise ValueError(
                "Gibbs renews one inequality of an answer at a time, which cannot be where some "
                "follow from others: where several items of a ranking share a rank and several the "
                "next. Use inference='hmc' or 'ep'."
            )
        super().check_observations(observations, likelihood)

    def _sample(self, covariance, state, n_draws, rng, box=None, keep=True):
        thin = self.thin if keep else 1
        lower, upper = (None, None) if box is None else box
        return gibbs(covariance, state, n_draws, rng=rng, thin=thin, lower=lower, upper=upper)

    def _most_work(self, n_answers, keep):
        return _SWEEP * (self.thin if keep else 1) * float(n_answers) ** 2

    def _work_of(self, n_answers, found, keep):
        return self._most_work(n_answers, keep) * found.draws[..., 0].size
