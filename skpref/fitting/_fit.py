"""The fit: from comparisons and a model to a posterior."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from skpref._utils import blas_threads, seed_of, warn
from skpref.data import Comparisons
from skpref.fitting._forecast import learning_part
from skpref.fitting._judges import Judges
from skpref.fitting._model import Evaluation, Model
from skpref.fitting._monotone import pad_state
from skpref.fitting._pair_effects import with_supported_effects
from skpref.fitting._parts import earlier_positions
from skpref.fitting._search import Learned, Monitor, Search, learn
from skpref.gp import Posterior, PosteriorMixture, utility_posterior
from skpref.inference import Approximation, Engine, Pass, State, check_answers, check_memory


class Start(NamedTuple):
    """State that one fit hands to the next.

    Attributes
    ----------
    sites : dict or None
        State of the evidence engine.
    chains : dict or None
        State of the engine itself, where it is another.
    comparisons : Comparisons or None
        Those that the arrays belong to. None: the first ones of the next fit's.
    """

    sites: State | None = None
    chains: State | None = None
    comparisons: Comparisons | None = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model fitted to answers.

    Attributes
    ----------
    comparisons : Comparisons
    model : Model
        With the hyperparameters found.
    evaluation : Evaluation
        Of the engine whose evidence set them.
    approximation : Approximation
        Of the model's own engine (the same, unless that samples).
    judges : Judges or None
        How reliable each is, if they were told; the likelihood then is a `JudgeReliability`.
    parts : tuple of Fitted
        Of judges: those that the posterior is a mixture of, this one first.
    """

    comparisons: Comparisons
    model: Model
    evaluation: Evaluation
    approximation: Approximation
    judges: Judges | None = None
    parts: tuple["Fitted", ...] = ()

    @cached_property
    def posterior(self) -> Posterior:
        """Return the engine's posterior of the utility."""
        return self._posterior_at(self.approximation)

    def averaged_posterior(self) -> Posterior | PosteriorMixture:
        """Average the posterior over the judges' readings and reliability, where these are open."""
        if self.judges is None or len(self.parts) < 2:
            return self.posterior
        weights, _ = self.judges.components()
        parts = tuple(each.posterior for each in self.parts)
        return PosteriorMixture(weights, parts, parts[0].likelihood, parts[0].reader)

    @cached_property
    def gaussian(self) -> Posterior:
        """Return the evidence engine's posterior: of one component, without draws."""
        if self.approximation is self.evaluation.approximation:
            return self.posterior
        return self._posterior_at(self.evaluation.approximation)

    def _with_posterior(self):
        """Return this fit once its posterior is conditioned."""
        _ = self.posterior
        return self

    def _posterior_at(self, approximation):
        """Return the posterior of the utility by an approximation, its digits checked."""
        model, prior = self.model, self.evaluation.problem.prior
        with blas_threads(model.engine.matrix_size(self.comparisons)):
            marginals = approximation.conditioned
            sites = approximation.sites
            arguments = sites, marginals, model.likelihood, self.comparisons
            posterior = utility_posterior(prior, *arguments)
            if self.comparisons.group_column is None:  # else no margin is of the utility alone
                prior.check_digits(posterior, marginals)
            return posterior

    @property
    def log_evidence(self) -> float:
        """Return the log evidence at the fitted hyperparameters, without their prior."""
        return self.evaluation.approximation.sites.log_evidence

    @property
    def diagnostics(self) -> object:
        """Return the diagnostics of the chains, if the engine samples."""
        return self.approximation.diagnostics

    @property
    def n_iter(self) -> int:
        """Return the iterations of the engine's last run, in its own measure."""
        return self.approximation.n_iter

    @property
    def state(self) -> Start:
        """Return the states to start the next fit from."""
        sites, chains = self.evaluation.approximation.state, self.approximation.state
        if self.model.monotone is not None:  # the virtual duels are the last
            sites = {name: part[..., : len(self.comparisons.rows)] for name, part in sites.items()}
            chains = {
                name: part[..., : self.comparisons.n_singles] for name, part in chains.items()
            }
        same = self.approximation is self.evaluation.approximation
        return Start(sites, None if same else chains, self.comparisons)

    def refine_with_engine(
        self, rng: np.random.Generator | None, start: State | None = None
    ) -> Self:
        """Run the model's own engine from the evidence engine's result; return the fit with both.

        Parameters
        ----------
        rng : numpy.random.Generator or None
            None only for engines that do not sample.
        start : dict, optional
            A state of this engine, of these answers; NaN for those that are new.
        """
        engine, gaussian = self.model.engine, self.evaluation.approximation
        if engine.capabilities.has_evidence:
            return self
        with blas_threads(engine.matrix_size(self.comparisons)):
            problem = self.evaluation.problem
            if self.model.monotone is not None:
                start = pad_state(start, problem.comparisons.n_singles)
            approximation = engine.run(problem, start, rng, gaussian)
        return replace(self, approximation=approximation)


def fit_posterior(
    comparisons: Comparisons,
    model: Model,
    start: Start | None = None,
    rng: np.random.Generator | np.random.RandomState | None = None,
    search: Search | None = None,
    monitor: Monitor | None = None,
    watch: Callable[[Pass], bool] | None = None,
) -> Fitted:
    """Find hyperparameters, if asked to, and the posterior there.

    Parameters
    ----------
    comparisons : Comparisons
    model : Model
        Its hyperparameters are where the search starts.
    start : Start, optional
        What an earlier fit handed on.
    rng : Generator or RandomState, optional
        For restarts and for engines that sample. None: such an engine is not run, and the posterior
        is that of its evidence engine, until `Fitted.refined`.
    search : Search, optional
        None: the hyperparameters stay.
    monitor : callable, optional
        Told of every `Step` of the search.
    watch : callable, optional
        Told of every `Pass` of the engine's last run, if it makes any; where it returns True the
        run ends there.

    Returns
    -------
    Fitted
    """
    start = Start() if start is None else start
    check_answers(model.engine, comparisons, model.likelihood, model.kernel)
    model = model.prepare(comparisons, rng)
    engine = model.evidence_engine
    widest = max(each.matrix_size(comparisons) for each in (engine, model.engine))
    with blas_threads(widest):  # entered once for all parts of a small fit
        return _fit_prepared_model(comparisons, model, start, rng, search, monitor, watch)


def _fit_prepared_model(comparisons, model, start, rng, search, monitor, watch):
    """Learn the hyperparameters of a prepared model if asked to; return the fit with its
    posterior."""
    engine = model.evidence_engine
    with blas_threads(engine.matrix_size(comparisons)):
        kind = engine.capabilities.state_of
        sites = match_state(start.sites, start.comparisons, comparisons, kind)
        places = model.monotone is not None and not len(model.monotone.better)
        if places:
            model = with_virtual_duels(comparisons, model, sites)
        if search is not None and len(model.theta):
            search = replace(search, uses_design=search.uses_design and sites is None)
            model, sites = learn_hyperparameters(comparisons, model, search, sites, rng, monitor)
            if places:  # at other hyperparameters it may fall elsewhere
                model = with_virtual_duels(comparisons, model, sites)
        model = model.refine(comparisons)
        evaluation = model.evaluate(comparisons, sites, watch=watch)
    if not (evaluation.approximation.converged or evaluation.approximation.stopped):
        warn_not_converged(evaluation.approximation, engine, model.engine)
    model, evaluation = model.absorb_output_scale(evaluation)
    engine = model.evidence_engine
    _warn_no_covariance(evaluation.problem.prior)
    fitted = Fitted(comparisons, model, evaluation, evaluation.approximation)
    samples = model.engine.capabilities.samples
    if engine is model.engine or (rng is None and samples):
        return fitted._with_posterior()
    return _run_own_engine(fitted, start, rng)._with_posterior()


def _run_own_engine(fitted, start, rng):
    """Return the fit with the posterior of the model's own engine, which may sample."""
    engine, generator = fitted.model.engine, rng
    samples = engine.capabilities.samples
    if samples and not isinstance(rng, np.random.Generator):
        generator = np.random.default_rng(seed_of(rng))
    kind = engine.capabilities.state_of
    chains = match_state(start.chains, start.comparisons, fitted.comparisons, kind)
    fitted = fitted.refine_with_engine(generator, chains)
    if not (samples or fitted.approximation.converged):
        warn_not_converged(fitted.approximation, engine, engine)
    return fitted


def with_virtual_duels(comparisons: Comparisons, model: Model, sites: State | None) -> Model:
    """Add virtual duels to a monotone model until its posterior is not likely to fall anywhere.

    Parameters
    ----------
    comparisons : Comparisons
    model : Model
        Its hyperparameters stay.
    sites : dict or None
        State of the evidence engine to start from.
    """
    while model.monotone is not None:
        problem, run, _ = model.evaluate(comparisons, sites)
        posterior = problem.prior.posterior(run.sites, run.conditioned, model.likelihood)
        monotone = model.monotone.add_virtual_duels(posterior, model.likelihood)
        if len(monotone.better) == len(model.monotone.better):
            break
        model, sites = replace(model, monotone=monotone), run.state
    return model


def learn_hyperparameters(
    comparisons: Comparisons,
    model: Model,
    search: Search,
    sites: State | None = None,
    rng: np.random.Generator | np.random.RandomState | None = None,
    monitor: Monitor | None = None,
) -> Learned:
    """Search for hyperparameters, on a part of the answers where all take too long.

    Parameters
    ----------
    comparisons : Comparisons
    model : Model
        Prepared for these answers.
    search : Search
    sites : dict, optional
        State of the evidence engine to start from.
    rng, monitor
        As in `learn`.

    Returns
    -------
    Learned
        Its state is ``sites`` where another engine or a part of the answers taught.
    """
    part = learning_part(comparisons, model, search.n_learning_answers)
    if part is comparisons and model.learner is model:
        result = learn(model, comparisons, search, sites, rng, monitor)
        return _drop_unsupported_effects(part, result, search)
    learner = model.learner
    if learner.rule.exact:
        check_memory(
            learner.rule.cost(learner.kernel, part, learner.likelihood).n_bytes,
            f"Learning hyperparameters from {len(part.rows)} of the answers",
            "Use a smaller n_learning_answers, or optimizer=None.",
        )
    result = _drop_unsupported_effects(
        part, learn(learner, part, search, None, rng, monitor), search
    )
    return Learned(replace(result.model, engine=model.engine, prepared=model.prepared), sites)


def _drop_unsupported_effects(comparisons, result, search):
    """Return the learned model, without effects of pairs where the answers do not support them."""
    again = replace(search, warn_not_converged=False)
    model = with_supported_effects(
        comparisons, result.model, lambda model: learn(model, comparisons, again).model
    )
    return result._replace(model=model)


def evaluate_evidence(
    comparisons: Comparisons, model: Model, *, eval_gradient: bool = False
) -> Evaluation:
    """Evaluate the evidence of answers at a model's hyperparameters, with its gradient if asked."""
    with blas_threads(model.evidence_engine.matrix_size(comparisons)):
        return model.evaluate(comparisons, eval_gradient=eval_gradient)


def match_state(
    state: State | None, earlier: Comparisons | None, later: Comparisons, state_of: str
) -> State | None:
    """Return an engine's state for other answers: NaN for those that are new.

    Parameters
    ----------
    state : dict or None
    earlier : Comparisons or None
        Those it belongs to; None: the first ones of ``later``.
    later : Comparisons
    state_of : {"duels", "answers", "points"}
        What the last axis of its arrays runs over.
    """
    if not state:
        return None
    if state_of == "points":
        return state
    single = state_of == "answers"
    n = later.n_singles if single else len(later.rows)
    if earlier is None:
        index = np.arange(n)
        has_state = {name: index < part.shape[-1] for name, part in state.items()}
    else:
        index = earlier_positions(earlier, later, single=single)
        has_state = dict.fromkeys(state, index >= 0)
    return {name: _take_states(part, index, has_state[name]) for name, part in state.items()}


def _take_states(values: NDArray[np.float64], index, has_state):
    """Return the state of each row by its index in an earlier one; NaN where it has none."""
    if values.shape[-1] == 0:
        return np.full((*values.shape[:-1], len(index)), np.nan)
    return np.where(has_state, values[..., np.where(has_state, index, 0)], np.nan)


def _warn_no_covariance(prior):
    """Warn of a kernel that is no covariance function on these items."""
    if not prior.is_covariance():
        warn(
            f"The kernel {prior.kernel} is no covariance function on these items: its matrix has a "
            "negative eigenvalue beyond rounding, so that variances are not to be trusted. (A "
            "periodic kernel is one in one dimension only: OnColumns(ExpSineSquared(), [0]).)"
        )


def warn_not_converged(approximation: Approximation, engine: Engine, own: Engine) -> None:
    """Warn of an engine that did not converge; ``own`` is the model's."""
    name = type(engine).__name__
    remedy = f"pass inference={name}(max_iter=...) with more iterations"
    if engine is not own:
        remedy = "another evidence= of the engine; its draws do not depend on it"
    tol = f" (tol={engine.tol:g})" if hasattr(engine, "tol") else ""
    warn(
        f"{name} stopped after {approximation.n_iter} iterations at a residual of "
        f"{approximation.residual:.1e}{tol}. Raise noise_variance or its lower bound, or {remedy}.",
        ConvergenceWarning,
    )
