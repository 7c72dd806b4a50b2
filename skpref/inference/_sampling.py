"""Engines that turn a Gaussian approximation into draws of the noisy margins."""

from abc import abstractmethod
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skpref._utils import check_choice, check_number, warn
from skpref.data import Comparisons
from skpref.inference._base import (
    SEARCH_TOL,
    Approximation,
    Capabilities,
    Engine,
    Problem,
    State,
)
from skpref.inference._chains import (
    ADAPTATION,
    AnswerChains,
    Budget,
    ChainDraws,
    Diagnostics,
    MarginChains,
    MarginPosterior,
    NoisyMargins,
    bearable_walls,
    check_sampled,
    diagnose,
    draw_until_mixed,
    draw_work,
    expected_walls,
    rhat_limit,
    wall_work,
)
from skpref.inference._ep import EP
from skpref.inference._laplace import Laplace
from skpref.inference._memory import available_bytes, check_memory
from skpref.likelihoods import Likelihood
from skpref.samplers import HMCSampler, gibbs, most_walls

# EP is a start here and gives the evidence, whose error is of second order: a few sweeps fewer.
_EVIDENCE = {"ep": EP(tol=SEARCH_TOL), "laplace": Laplace()}
_ENOUGH = 100
# Draws of a chain that diagnostics take at least.
_COMPARED = 4
# Multiplications in one of max_work.
WORK_UNIT = 1e9
# Square matrices of the number of answers, and arrays of all draws, held at a time.
_SQUARES = 5.0
_COPIES = 10.0


class AnswerEngine(Engine):
    """Engines whose components are draws of the noisy margins of single answers."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        samples=True, takes_joint=True, state_of="answers"
    )

    def check(
        self, comparisons: Comparisons | None = None, likelihood: Likelihood | None = None
    ) -> None:
        """Raise ValueError if these answers cannot be sampled, MemoryError if their draws do not
        fit."""
        if comparisons is not None and likelihood is not None:
            check_sampled(comparisons, likelihood)
            self._check_memory(comparisons)

    def matrix_size(self, comparisons: Comparisons) -> int:
        """Return the side of the covariance of the margins of single answers."""
        if self._draws_margins_directly(comparisons):
            return super().matrix_size(comparisons)
        return comparisons.n_singles

    def _draws_held(self):
        """Return the number of draws of all chains that are held at once."""
        return 1

    def _draws_margins_directly(self, comparisons):
        """Tell whether draws are of the margins without noise from the start."""
        return False

    def _walls_bytes(self, n_answers):
        """Return the bytes that draws of the noisy margins of so many answers take."""
        return 8.0 * n_answers * (_SQUARES * n_answers + _COPIES * self._draws_held())

    def _check_memory(self, comparisons):
        """Raise MemoryError if the draws of these answers' margins do not fit."""
        n_answers, n_draws = comparisons.n_singles, self._draws_held()
        n_bytes = self._walls_bytes(n_answers)
        if self._draws_margins_directly(comparisons):
            n_margins = len(comparisons.rows.margins.first)
            held = _SQUARES * n_margins * min(n_margins, len(comparisons.items))
            held += n_draws * (3.0 * n_answers + _COPIES * len(comparisons.rows))
            n_bytes = 8.0 * held
        check_memory(
            n_bytes,
            f"Drawing the margins of {n_answers} answers {n_draws} times",
            "Use inference='ep', whose error is small with so many answers, fewer draws of the "
            "engine, or fewer answers.",
        )


class SampledEngine(AnswerEngine):
    """Draws of v given v > 0 [1]_, each a component of the posterior.

    A subclass has the options ``draws``, ``chains``, ``burn_in``, ``evidence``, ``warm_start`` and
    ``max_work``, and says how to draw in ``_sample``.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.
    """

    # Draws of a chain that are discarded at least, from a cold and from a warm start.
    _first_burn_in: ClassVar[tuple[int, int]]
    # Options that give more effective draws when raised.
    _slack: ClassVar[str]

    def evidence_engine(self, search: bool = False) -> Engine:
        """Return the engine whose evidence sets hyperparameters and whose mean starts
        the chains."""
        self.check()
        return clone(_EVIDENCE[check_choice("evidence", self.evidence, _EVIDENCE)])

    def check(
        self, comparisons: Comparisons | None = None, likelihood: Likelihood | None = None
    ) -> None:
        """Raise unless the options are sound and the answers can be sampled."""
        check_number("draws", self.draws, low=1, integer=True)
        check_number("chains", self.chains, low=1, integer=True)
        if isinstance(self.burn_in, str):
            check_choice("burn_in", self.burn_in, ("auto",))
        else:
            check_number("burn_in", self.burn_in, low=0, integer=True)
        check_number("max_work", self.max_work, low=0.0, open_low=True)
        super().check(comparisons, likelihood)

    def run(
        self,
        problem: Problem,
        start: State | None = None,
        rng: np.random.Generator | None = None,
        gaussian: Approximation | None = None,
    ) -> Approximation:
        """Draw v given v > 0 and turn every draw into a component.

        Parameters
        ----------
        problem : Problem
        start : dict, optional
            ``margins`` (n_chains, n_answers) to start from, NaN where there is none; by default
            E[v | z = mean of ``gaussian``, v > 0].
        rng : numpy.random.Generator
        gaussian : Approximation
            Of `evidence_engine`.

        Returns
        -------
        Approximation
            Sites with one component a draw; ``diagnostics`` filled (None with fewer than 4 draws
            a chain), ``state`` holds the last positions.
        """
        self.check()
        rng, gaussian = check_draw_arguments(rng, gaussian)
        if not len(problem.rows):  # measured values alone, whose posterior is Gaussian
            return gaussian
        self._check_memory(problem.comparisons)
        noisy = NoisyMargins(problem)
        budget = Budget(self.max_work * WORK_UNIT)
        drawn = None
        at_once = self._draws_margins_directly(problem.comparisons)
        if not (at_once or self._walls_cost_more(problem, gaussian)):
            drawn = self._draw_noisy_margins(problem, noisy, gaussian, start, rng, budget)
        if drawn is None:
            drawn = self._draw_by_fallback(problem, noisy, gaussian, start, rng, budget)
        self._warn_of_chains(drawn, problem.rows.joint)
        draws, diagnostics = drawn.chains.draws, drawn.diagnostics
        sites = noisy.sites(draws.reshape(-1, noisy.n_answers), gaussian.sites.log_evidence)
        conditioned = problem.prior.condition(sites.precision, sites.shift)
        return Approximation(
            sites,
            conditioned,
            {"margins": drawn.chains.state},
            draws.shape[1] + drawn.burn_in,
            0.0 if diagnostics is None else float(np.max(diagnostics.rhat)),
            gaussian.converged,
            diagnostics,
        )

    def reduce_draws(self, weight: float) -> "SampledEngine":
        """Return the engine for a part of this weight of a mixture: with fewer draws.

        In proportion to the root of the weight, as chains of few draws have not mixed; they are of
        as many chains as have enough draws to compare.
        """
        draws = max(int(np.ceil(np.sqrt(weight) * self.draws)), 1)
        chains = min(self.chains, max(draws // _COMPARED, 1))
        return clone(self).set_params(draws=draws, chains=chains)

    @property
    def _chain_shape(self):
        """Return the number of chains, and of draws of each."""
        chains = min(self.chains, self.draws)
        return chains, -(-self.draws // chains)

    def _draws_held(self):
        """Return the number of draws of all chains, rounded up."""
        return self._chain_shape[0] * self._chain_shape[1]

    def _draw_noisy_margins(self, problem, noisy, gaussian, start, rng, budget):
        """Return draws of the noisy margins by ``_sample``; None if burn-in rejected most of
        them."""
        chains, per_chain = self._chain_shape
        automatic = isinstance(self.burn_in, str)
        burn_in = self._first_burn_in[has_warm_start(start)] if automatic else int(self.burn_in)
        burn_in_engine = self._burn_in_engine(problem)
        sampler = self._sampler(noisy.covariance(), *(noisy.box or (None, None)))
        state = noisy.start(gaussian.conditioned.mean, start, chains)

        def answer_chains(engine, state, keep):
            sample = partial(engine._sample, sampler, rng=rng, keep=keep)

            def draw_work(draws):
                return engine._work_of(noisy.n_answers, draws, keep=keep)

            most = chains * engine._most_work(noisy.n_answers, keep)
            return AnswerChains(sample, draw_work, most, state, budget)

        if burn_in or burn_in_engine is not self:
            trial = answer_chains(burn_in_engine, state, keep=False).draw(max(burn_in, 1))
            if burn_in_engine is self:
                self._check_not_all_rejected(trial.rejected_share)
            elif trial.rejected_share > 0.5:
                return None
            if burn_in:
                state, burn_in = trial.state, trial.draws.shape[1]
        mixed = draw_until_mixed(answer_chains(self, state, keep=True).draw, per_chain, automatic)
        return self._diagnose_draws(mixed, burn_in, self._name)

    def _draw_margins(self, problem, noisy, gaussian, start, rng, budget):
        """Return draws of the noisy margins from chains of the margins without noise."""
        chains, per_chain = self._chain_shape
        automatic = isinstance(self.burn_in, str)
        teacher = self.evidence_engine()
        if not teacher.capabilities.matches_moments:  # Laplace's Gaussian is far too narrow
            gaussian = _EVIDENCE["ep"].run(problem)
        carried = (
            noisy.start(gaussian.conditioned.mean, start, chains) if has_warm_start(start) else None
        )
        posterior = MarginPosterior(problem, gaussian)
        margin_chains = MarginChains(posterior, noisy, chains, rng, budget, carried)
        more = 0 if automatic else int(self.burn_in) - ADAPTATION
        if more > 0:
            margin_chains.draw(more)
        mixed = draw_until_mixed(
            margin_chains.draw, per_chain, automatic and not margin_chains.stuck
        )
        return self._diagnose_draws(mixed, ADAPTATION + max(more, 0), "margins")

    def _diagnose_draws(self, mixed, burn_in, method):
        """Return the last batch of draws with its diagnostics, None of fewer than 4 draws a
        chain."""
        burn_in += mixed.discarded * self._chain_shape[1]
        diagnostics = None
        if mixed.split is not None:
            chains = mixed.chains
            diagnose_arguments = chains.judged, chains.of_answer, mixed.split
            diagnostics = diagnose(*diagnose_arguments, burn_in, chains.rejected_share, method)
        return _SampledMargins(mixed.chains, diagnostics, burn_in, method)

    def _draw_by_fallback(self, problem, noisy, gaussian, start, rng, budget):
        """Return draws by another way, where `_burn_in_engine` rejected much."""
        return self._draw_margins(problem, noisy, gaussian, start, rng, budget)

    def _check_not_all_rejected(self, rejected_share):
        """Raise ValueError if every trajectory of burn-in was rejected."""

    # -- what a subclass defines of its sampler ------------------------------------------

    # Name of the sampler.
    _name: ClassVar[str]

    @abstractmethod
    def _sampler(self, covariance, lower, upper):
        """Return a sampler of v with this covariance between walls; None: v > 0."""

    @abstractmethod
    def _sample(self, sampler, state, n_draws, rng, keep=True):
        """Return draws of v, a tuple with ``draws`` and ``state``."""

    @abstractmethod
    def _most_work(self, n_answers, keep):
        """Return the multiplications of one draw of one chain, at most."""

    @abstractmethod
    def _work_of(self, n_answers, draws, keep):
        """Return the multiplications that draws took."""

    def _walls_cost_more(self, problem, gaussian):
        """Return whether trajectories with walls take more work than `MarginChains`; False here."""
        return False

    def _burn_in_engine(self, problem):
        """Return the engine for burn-in; if another rejects much, `_draw_by_fallback` draws."""
        return self

    # -- warnings ------------------------------------------------------------------------

    def _warn_of_chains(self, drawn, joint):
        """Warn of chains that stopped early, were rejected often, or have not mixed."""
        chains, diagnostics = drawn.chains, drawn.diagnostics
        n_done, n_requested = chains.draws.shape[1], self._chain_shape[1]
        if n_done < n_requested:
            warn(
                f"The chains stopped after {n_done} of {n_requested} draws each, at max_work = "
                f"{self.max_work:g} of the engine. Raise it to wait longer, lower draws, or use "
                "inference='ep', whose error is small with many answers.",
                ConvergenceWarning,
            )
        if diagnostics is not None:
            self._warn_of_mixing(drawn, joint)
        elif chains.rejected_share > 0.1:
            warn(
                f"{chains.rejected_share:.0%} of the trajectories were rejected at max_walls, so "
                "that draws may be where the chains began. Raise max_walls of the engine, or "
                "noise_variance.",
                ConvergenceWarning,
            )

    def _warn_of_mixing(self, drawn, joint):
        """Warn of a large R̂ or of few effective draws, with a remedy."""
        diagnostics, most = drawn.diagnostics, rhat_limit(drawn.chains.judged.shape)
        worst, fewest = float(np.max(diagnostics.rhat)), float(np.min(diagnostics.ess_bulk))
        floor = min(_ENOUGH, 0.1 * diagnostics.n_draws)
        if worst <= most and fewest >= floor:
            return
        own = drawn.method == self._name
        remedy = f"Raise draws or {self._slack if own else 'burn_in'} of the engine"
        if diagnostics.rejected_share > 0.1:
            remedy += f" or its max_walls ({diagnostics.rejected_share:.0%} were rejected there)"
            if not joint:
                remedy += ", use inference=HMC(method='margins')"
        if own and drawn.method == "gibbs":
            remedy += ", use inference='hmc', which mixes far better"
        if joint or not own:
            remedy += ", use inference='ep'"
        warn(
            f"The chains have not mixed: R̂ up to {worst:.2f} (wanted: at most {most:.2f}), "
            f"effective draws down to {fewest:.0f} (wanted: {floor:.0f}) of {diagnostics.n_draws}. "
            f"{remedy}, or raise noise_variance.",
            ConvergenceWarning,
        )


class _SampledMargins(NamedTuple):
    chains: ChainDraws
    diagnostics: Diagnostics | None
    burn_in: int
    method: str


def has_warm_start(start: State | None) -> bool:
    """Tell whether a state holds noisy margins that chains can start from."""
    carried = None if start is None else start.get("margins")
    return carried is not None and not bool(np.all(np.isnan(carried)))


def check_draw_arguments(
    rng: np.random.Generator | None, gaussian: Approximation | None
) -> tuple[np.random.Generator, Approximation]:
    """Return both arguments; raise TypeError if one is None, as draws need them."""
    if rng is None or gaussian is None:
        raise TypeError(
            "An engine that samples needs rng=, a numpy Generator, and gaussian=, the "
            "Approximation of its evidence_engine()."
        )
    return rng, gaussian


# Multiplications in whose time a sweep of Gibbs passes an entry of its matrix.
_SWEEP = 3.0
# Sweeps between draws of choices and rankings, where they take the place of trajectories.
_THIN = 50


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
        Draws of each chain that are discarded; "auto" continues until R̂ is small, or the chains are
        slow and drift no more.
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

    def check(
        self, comparisons: Comparisons | None = None, likelihood: Likelihood | None = None
    ) -> None:
        """Raise unless the options are sound and the answers can be sampled."""
        if self.max_walls is not None:
            check_number("max_walls", self.max_walls, low=0, integer=True)
        check_choice("method", self.method, ("auto", "walls", "margins"))
        if comparisons is not None and self.method == "margins" and comparisons.rows.joint:
            raise ValueError(
                "HMC(method='margins') draws the margins without noise, which choices and rankings "
                "share; use method='auto' (or 'walls')."
            )
        super().check(comparisons, likelihood)

    def _wall_cap(self, n_answers):
        """Return the number of walls at which a trajectory is rejected."""
        return most_walls(n_answers) if self.max_walls is None else self.max_walls

    def _burn_in_engine(self, problem):
        """Return the engine whose burn-in tells whether walls cost more than another way of
        drawing."""
        if self.method != "auto" or not problem.rows.basis.all():
            return self
        n_answers = problem.comparisons.n_singles
        walls = bearable_walls(n_answers)
        enough = walls >= self._wall_cap(n_answers)
        return self if enough else clone(self).set_params(max_walls=walls)

    def _draw_by_fallback(self, problem, noisy, gaussian, start, rng, budget):
        """Return draws from the margins without noise, or of joint answers from sweeps of Gibbs."""
        if not problem.rows.joint:
            return super()._draw_by_fallback(problem, noisy, gaussian, start, rng, budget)
        sweeps = Gibbs(self.draws, self.chains, self.burn_in, self.evidence, thin=_THIN)
        return sweeps._draw_noisy_margins(problem, noisy, gaussian, start, rng, budget)

    def _check_not_all_rejected(self, rejected_share):
        if rejected_share == 1.0 and self.max_walls is None:
            raise ValueError(
                "HMC rejected every trajectory, as each met too many walls: these answers "
                "contradict each other at almost no noise. Use inference='ep', or raise "
                "noise_variance."
            )

    def _sampler(self, covariance, lower, upper):
        """Return the exact HMC sampler of a truncated normal with this covariance."""
        return HMCSampler(covariance, lower, upper)

    def _sample(self, sampler, state, n_draws, rng, keep=True):
        """Return draws of trajectories that are rejected at the cap on walls."""
        return sampler.draw(state, n_draws, rng=rng, max_walls=self._wall_cap(state.shape[1]))

    def _draws_margins_directly(self, comparisons):
        if self.method != "auto":
            return self.method == "margins"
        if comparisons.rows.joint:
            return False
        return self._walls_bytes(comparisons.n_singles) > available_bytes()

    def _walls_cost_more(self, problem, gaussian):
        """Return whether trajectories with walls take more work than `MarginChains`."""
        by_default = self.method == "auto" and self.max_walls is None
        walls = expected_walls(problem, gaussian) if by_default else None
        if walls is None:
            return False
        n_answers = problem.comparisons.n_singles
        once = float(n_answers) ** 3 / self._draws_held()  # a factor of the covariance
        by_walls = once + float(n_answers) ** 2 + walls * wall_work(n_answers)
        return draw_work(problem, gaussian) < by_walls

    def _most_work(self, n_answers, keep):
        """Return the multiplications of a trajectory that meets as many walls as are allowed."""
        return wall_work(n_answers) * (self._wall_cap(n_answers) + 1.0)

    def _work_of(self, n_answers, draws, keep):
        """Return the multiplications that trajectories took, by the walls that they met."""
        return wall_work(n_answers) * float(np.sum(draws.walls + 1.0))


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
        Sweeps of each chain that are discarded; "auto" continues until R̂ is small, or the chains
        are slow and drift no more.
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

    def check(
        self, comparisons: Comparisons | None = None, likelihood: Likelihood | None = None
    ) -> None:
        """Raise unless the options are sound and the answers can be sampled."""
        check_number("thin", self.thin, low=1, integer=True)
        if comparisons is not None and not comparisons.rows.basis.all():
            raise ValueError(
                "Gibbs draws one inequality of an answer at a time. It cannot where some follow "
                "from others: where several items of a ranking share a rank and several the "
                "next. Use inference='hmc' or 'ep'."
            )
        super().check(comparisons, likelihood)

    def _sampler(self, covariance, lower, upper):
        """Return the Gibbs sampler of a truncated normal with this covariance."""
        return partial(gibbs, covariance, lower=lower, upper=upper)

    def _sample(self, sampler, state, n_draws, rng, keep=True):
        """Return draws, each after ``thin`` sweeps; with ``keep=False`` after one."""
        return sampler(state, n_draws, rng=rng, thin=self.thin if keep else 1)

    def _most_work(self, n_answers, keep):
        """Return the multiplications of the sweeps of one draw of one chain."""
        return _SWEEP * (self.thin if keep else 1) * float(n_answers) ** 2

    def _work_of(self, n_answers, draws, keep):
        """Return the multiplications of the sweeps that draws took."""
        return self._most_work(n_answers, keep) * draws.draws[..., 0].size
