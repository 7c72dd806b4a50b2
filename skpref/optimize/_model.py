"""The model behind the questions: fits and hallucinations of the answers.

All functions are pure: what they need to be quick on the next call (`Memory`) is passed in and
handed back, so that a run can be written down and taken up again exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.gaussian_process.kernels import Kernel, Matern, Product

from skpref.data import DUEL, Comparisons, DuelScale, MeasuredValues, Reader
from skpref.fitting import (
    Fitted,
    Model,
    Search,
    Start,
    fit_posterior,
    match_state,
)
from skpref.gp import Posterior, UtilitiesGivenValues, check_sets, present_posterior
from skpref.inference import State, check_answers
from skpref.kernels import Padded, kernel_values, outside_option_kernel
from skpref.likelihoods import ANSWER_DEFAULTS, Likelihood
from skpref.optimize._answers import (
    TIE,
    label_of_outcome,
    names_outside_option,
    ranks_with_outside_option,
)


class DefaultPriors(NamedTuple):
    """Priors of what is learned: a median, and the deviation of the logarithm.

    Attributes
    ----------
    lengthscale : tuple of two float
        Where the strategy is chosen.
    shorter_lengthscale : tuple of two float
        Where it is left to the optimizer, times the root of the number of columns: shorter ones
        say that there may be other peaks, and in more columns items are farther from each other.
    noise : tuple of two float
        Of σ², broad: smaller values trust a judge who errs, larger ones distrust one who does not
        (benchmarks/optimize/regret.py with and without --flip 0.1).
    broader_noise : tuple of two float
        Where the strategy is left to the optimizer: a judge who contradicts himself is doubted
        sooner (generated_regret.py with and without --wrong 0.1).
    threshold : tuple of two float
        Of ties and of grades.
    order_effect : tuple of two float
        Mean and deviation, of a normal prior.
    own_variance : tuple of two float
        Of the part of a utility that is a new person's own, in units of earlier people's utility.
    """

    lengthscale: tuple[float, float] = (0.5, 0.75)
    shorter_lengthscale: tuple[float, float] = (0.2, 0.75)
    noise: tuple[float, float] = (3e-3, 2.0)
    broader_noise: tuple[float, float] = (3e-3, 3.0)
    threshold: tuple[float, float] = (0.1, 1.5)
    order_effect: tuple[float, float] = (0.0, 0.5)
    own_variance: tuple[float, float] = (0.1, 2.0)


PRIORS = DefaultPriors()
# Of the probit that an optimizer makes, where nothing else is said.
ANSWERS = ANSWER_DEFAULTS | {
    "noise_variance": PRIORS.noise[0],
    "noise_variance_bounds": (1e-5, 1.0),
}
# A choice among more items is taken for one among so many, see `choose_compared_rows`. After 12 to
# 15 questions of 25 the posterior differs by 3 to 6 % in the margins' deviations, and in their
# means by 0.25 to 0.4 of one (root mean square).
_N_COMPARED = 10
_REFIT = Search(max_iter=12, gtol=1e-2, warn_not_converged=False)


@dataclass(frozen=True)
class Memory:
    """State that one question hands to the next.

    Attributes
    ----------
    theta : ndarray
        Hyperparameters ``np.r_[kernel.theta, likelihood.theta]``, all of `Models.whole`.
    fitted_at : int
        Number of answers at the last fit of ``theta``.
    sites : dict of str to ndarray
        State of the engine; empty before the first run.
    margins : ndarray of shape (n_rows,) or (0,)
        The last hallucination, in the order of the told answers.
    """

    theta: NDArray[np.float64]
    fitted_at: int = 0
    sites: State = field(default_factory=dict)
    margins: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


def default_kernel(n_columns: int) -> Kernel:
    """Matérn-3/2 of unit amplitude, one lengthscale a column of the unit cube."""
    return Matern(np.full(n_columns, PRIORS.lengthscale[0]), (0.02, 20.0), nu=1.5)


@dataclass(frozen=True, eq=False)
class PresentFit(Fitted):
    """A fit on rows with more columns than items; its posteriors are on rows of items.

    They are those of the present where the utility moves, of the new person beside others, and of
    items beside an outside option.
    """

    n_columns: int = 0

    def _posterior_at(self, approximation):
        return posterior_on_items(super()._posterior_at(approximation), self.n_columns)


def _further_columns(n: int) -> list[float]:
    """Return an item's values in the n columns that a model adds.

    One column says that a new person is meant, two that it is no outside option, three both.
    """
    return {0: [], 1: [1.0], 2: [1.0, 0.0], 3: [1.0, 1.0, 0.0]}[n]


def posterior_on_items(posterior: Posterior, n_columns: int) -> Posterior:
    """Return a posterior on rows of items alone, without the columns that a model added.

    It is that of the present, and of the new person.
    """
    n_more = posterior.anchors.shape[1] - n_columns
    if not n_more:
        return posterior
    if isinstance(posterior.kernel, Product):
        return present_posterior(posterior, n_columns)
    kernel = Padded(posterior.kernel, n_columns, _further_columns(n_more))
    return replace(posterior, kernel=kernel, reader=Reader(n_columns), utilities=None)


def shorter_lengthscale_prior(n_columns: int) -> tuple[float, float]:
    """Return the prior on lengthscales where the strategy is left to the optimizer."""
    median, deviation = PRIORS.shorter_lengthscale
    return median * float(np.sqrt(n_columns)), deviation


def answer_priors(
    likelihood: Likelihood, noise_prior: tuple[float, float] | None
) -> dict[str, tuple[float, float]]:
    """Return priors of the free parameters of an optimizer's probit, by their names."""
    named = {"noise_variance": noise_prior, "order_effect": PRIORS.order_effect}
    priors = {name: named.get(name, PRIORS.threshold) for name in likelihood.free}
    return {name: prior for name, prior in priors.items() if prior is not None}


@dataclass(frozen=True)
class Models:
    """The model of a run; before the first tie it may be one without ties.

    Attributes
    ----------
    whole : Model
    plain : Model or None
        ``whole`` without the threshold, until a tie is told; None: ``whole`` from the start.
    forgets : bool
        Whether their kernel is one of `forgetting`.
    extremes : ndarray of shape (2, n_columns) or None
        Rows of the best item of earlier people and of the worst, see `EarlierTastes`.
    """

    whole: Model
    plain: Model | None = None
    forgets: bool = False
    extremes: NDArray[np.float64] | None = None

    @property
    def theta(self) -> NDArray[np.float64]:
        """Where all hyperparameters start."""
        return self.whole.theta

    @cached_property
    def _plain_mask(self):
        """Return a mask of the hyperparameters that the model without ties has."""
        names = (self.whole if self.plain is None else self.plain).names
        return np.array([name in names for name in self.whole.names], dtype=bool)

    def _parameter_mask(self, answers):
        """Return a mask of the hyperparameters that the model of some answers has."""
        if self.plain is None or any(outcome == TIE for _, outcome, *_ in answers):
            return np.ones(len(self.theta), dtype=bool)
        return self._plain_mask

    def model_for(self, answers: Sequence, theta: NDArray[np.float64]) -> Model:
        """Return the model of some answers, at theirs of all hyperparameters."""
        has = self._parameter_mask(answers)
        if self.plain is None or has.all():
            return self.whole.at(theta)
        return self.plain.at(theta[has])

    def merge_parameters(
        self, answers: Sequence, theta: NDArray[np.float64], learned: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return all hyperparameters, with those that the model of some answers learned."""
        theta = theta.copy()
        theta[self._parameter_mask(answers)] = learned
        return theta

    def has_new_parameters(self, answers: Sequence, fitted_at: int) -> bool:
        """Return whether the model has a hyperparameter that the first answers did not have."""
        return bool(
            np.any(self._parameter_mask(answers) & ~self._parameter_mask(answers[:fitted_at]))
        )

    def has_positive_margins(self, answers: Sequence) -> bool:
        """Return whether every noisy margin is positive, as those of duels without ties are."""
        uses_order = self.whole.likelihood.uses_order
        return not uses_order and all(outcome in (0, 1) for _, outcome, *_ in answers)

    @property
    def duel_scale(self) -> DuelScale:
        """Outcomes that a duel may have."""
        return self.whole.likelihood.duel_scale

    def check_takes_values(self) -> None:
        """Raise ValueError unless the model takes measured values."""
        if self.forgets:
            raise ValueError(
                "got a measured value with forgetting_rate=; one of the two is allowed, as a value "
                "is not of a time. Leave forgetting_rate= out, or tell answers alone."
            )
        duel = comparisons_of(np.array([[1.0], [2.0]]), [((0, 1), 1)], self.whole)
        comparisons = duel.with_measured(duel.items, *np.ones((2, 2)))
        check_answers(self.whole.engine, comparisons, self.whole.likelihood)
        check_sets(self.whole.kernel, comparisons)

    def check_takes_answer(self, outcome: int | str | dict, n: int) -> None:
        """Raise ValueError unless the model takes such an answer to n items."""
        self.duel_scale.check_told(label_of_outcome(outcome))
        parts = {"forgetting_rate=": self.forgets, "monotone=": self.whole.monotone is not None}
        for name in (name for name, is_there in parts.items() if is_there):
            if names_outside_option(outcome):
                raise ValueError(
                    f"got none= of an optimizer with {name}, which an outside option does not "
                    "follow; one of the two is allowed. Leave the other out."
                )
        if outcome not in (0, 1):
            answers = [(range(n), outcome)]
            comparisons = comparisons_of(
                np.arange(float(n))[:, None], answers, self.whole, self.forgets
            )
            check_answers(self.whole.engine, comparisons, self.whole.likelihood)
            check_sets(self.whole.kernel, comparisons)


def comparisons_of(
    rows: NDArray[np.float64],
    answers: Sequence,
    model: Model,
    forgets: bool = False,
    extremes: NDArray[np.float64] | None = None,
) -> Comparisons:
    """Return the comparisons that answers about rows of items stand for.

    A choice among many items is one among those that tell most, see `choose_compared_rows`.
    Where the model ``forgets``, each row has the number of its answer as its last column. Beside
    the ``extremes`` of earlier people, whose duel is the first, it has 1, and 0 for these. Where an
    answer is about the outside option, that is the last item, see `outside_option_kernel`.
    """
    answers = [_thin_large_choice(rows, items, outcome) for items, outcome, *_ in answers]
    if forgets:
        rows, answers = _copy_rows_by_answer(rows, answers)
    if extremes is not None:
        person = np.repeat([1.0, 0.0], [len(rows), 2])
        answers = [((len(rows), len(rows) + 1), model.likelihood.duel_scale.levels), *answers]
        rows = np.column_stack([np.concatenate([rows, extremes]), person])
    outside = [names_outside_option(outcome) for _, outcome, *_ in answers]
    if any(outside):
        rows, answers = _add_outside_option(rows, answers, outside)
    scale, ordered = model.likelihood.duel_scale, model.likelihood.uses_order
    if scale.levels == 1 and not ordered and all(outcome in (0, 1) for _, outcome, *_ in answers):
        pairs = [items if outcome else items[::-1] for items, outcome, *_ in answers]
        winner, loser = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        return Comparisons.from_duels(rows, winner, loser, np.ones(len(answers), dtype=bool))
    shown, rank = _pad_items_and_ranks(answers, outside)
    kind = scale.kinds([label_of_outcome(outcome) for _, outcome, *_ in answers])
    kind[[isinstance(outcome, dict) for _, outcome, *_ in answers]] = DUEL
    return Comparisons.from_ranks(rows, shown, rank, kind=kind)


def _pad_items_and_ranks(answers, outside):
    """Return the items of each answer, -1 where there is none, and their ranks, (n, most)."""
    most = max((len(items) for items, *_ in answers), default=2)
    shown = np.full((len(answers), most), -1, dtype=np.intp)
    rank = np.zeros((len(answers), most), dtype=np.intp)
    for k, (items, outcome, *_) in enumerate(answers):
        shown[k, : len(items)] = items
        rank[k, : len(items)] = ranks_with_outside_option(outcome, len(items) - outside[k])
    return shown, rank


def _add_outside_option(rows, answers, outside):
    """Return rows with that of the outside option added, and answers that refer to it."""
    option = len(rows)
    answers = [
        ((*items, option) if is_about_it else items, outcome)
        for is_about_it, (items, outcome, *_) in zip(outside, answers, strict=True)
    ]
    is_item = np.append(np.ones(option), 0.0)
    return np.column_stack([np.append(rows, rows[:1], axis=0), is_item, 1.0 - is_item]), answers


def _copy_rows_by_answer(rows, answers):
    """Return a copy of the rows for each answer, with its number in a new column, and answers."""
    shown = np.concatenate([np.asarray(items, dtype=np.intp) for items, _ in answers])
    number = np.repeat(np.arange(float(len(answers))), [len(items) for items, _ in answers])
    ends = np.cumsum([len(items) for items, _ in answers]).tolist()
    numbered = [
        (tuple(range(end - len(items), end)), outcome)
        for end, (items, outcome) in zip(ends, answers, strict=True)
    ]
    return np.column_stack([rows[shown], number]), numbered


def _thin_large_choice(rows, items, outcome):
    """Return items and outcome of an answer; of a choice among many items those compared."""
    if len(items) <= _N_COMPARED or not isinstance(outcome, dict) or [*outcome] != ["chosen"]:
        return items, outcome
    if isinstance(outcome["chosen"], list):
        return items, outcome
    indices = choose_compared_rows(rows[list(items)], outcome["chosen"])
    return tuple(items[k] for k in indices), {"chosen": indices.index(outcome["chosen"])}


def choose_compared_rows(rows: NDArray[np.float64], chosen: int) -> list[int]:
    """Return indices of the rows that a choice among many is taken to compare, in order.

    The chosen one and half of them, nearest to it, say where the best is; the others, far from all
    of these, what it is better than.
    """
    distance = np.linalg.norm(rows - rows[chosen], axis=1)
    distance[chosen] = -1.0
    indices = np.argsort(distance, kind="stable")[: _N_COMPARED // 2].tolist()
    separation = np.linalg.norm(rows[:, None] - rows[indices], axis=2).min(axis=1)
    while len(indices) < _N_COMPARED:
        indices.append(int(np.argmax(separation)))
        farthest = np.linalg.norm(rows - rows[indices[-1]], axis=1)
        separation = np.minimum(separation, farthest)
    return sorted(indices)


def add_values(
    comparisons: Comparisons, rows: NDArray[np.float64], values: Sequence, model: Model
) -> Comparisons:
    """Return comparisons with measured values added, divided by a factor to be utilities.

    The factor is the most probable by the values alone, of a log-normal prior around their spread.
    """
    places, value, deviation = map(np.array, zip(*values, strict=True))
    rows = rows[places]
    further = _further_columns(comparisons.items.shape[1] - rows.shape[1])
    rows = np.column_stack([rows, np.tile(further, (len(rows), 1))])
    spread = 0.5 * np.log(np.var(value) + np.mean(deviation**2))
    K, places = kernel_values(model.kernel, rows), np.arange(len(rows))

    def loss(log_unit):
        unit = np.exp(log_unit)
        scaled = MeasuredValues(places, value / unit, deviation / unit)
        log_density = UtilitiesGivenValues(K, scaled).log_density - (len(rows) - 1) * log_unit
        return 0.5 * (log_unit - spread) ** 2 - log_density

    # Five deviations of that prior to each side.
    unit = np.exp(minimize_scalar(loss, bounds=(spread - 5.0, spread + 5.0), method="bounded").x)
    return comparisons.with_measured(rows, value / unit, deviation / unit)


def fit(
    models: Models,
    memory: Memory,
    rows: NDArray[np.float64],
    answers: Sequence,
    relearn: bool,
    values: Sequence = (),
) -> tuple[Fitted, Memory]:
    """Return the fit of answers and measured values, and the memory for the next one.

    Hyperparameters are learned first if ``relearn``.
    """
    model = models.model_for(answers, memory.theta)
    has_option = any(names_outside_option(outcome) for _, outcome, *_ in answers)
    if has_option:
        width = rows.shape[1] + (models.extremes is not None)
        model = replace(model, kernel=outside_option_kernel(model.kernel, width))
    compared = comparisons_of(rows, answers, model, models.forgets, models.extremes)
    fitted = fit_posterior(
        add_values(compared, rows, values, model) if values else compared,
        model,
        Start(memory.sites),
        search=_REFIT if relearn else None,
    )
    if values and relearn:  # in the unit that goes with the kernel that was learned
        model, start = fitted.model, Start(fitted.state.sites)
        fitted = fit_posterior(add_values(compared, rows, values, model), model, start)
    if models.forgets or models.extremes is not None or has_option:
        fitted = PresentFit(**fields_of_fit(fitted), n_columns=rows.shape[1])
    learned = relearn and len(memory.theta) > 0
    return fitted, replace(
        memory,
        theta=models.merge_parameters(answers, memory.theta, fitted.model.theta)
        if learned
        else memory.theta,
        fitted_at=len(answers) if learned else memory.fitted_at,
        sites=fitted.state.sites or {},
    )


def fields_of_fit(fitted: Fitted) -> dict:
    """Return the fields of a fit by name."""
    return {each.name: getattr(fitted, each.name) for each in fields(fitted)}


def hallucinate(
    fitted: Fitted, margins: NDArray[np.float64], rng: np.random.Generator
) -> tuple[Posterior, NDArray[np.float64]]:
    """Return the GP given one draw of the noisy margins, and that draw (Takeno et al., Alg. 1).

    Parameters
    ----------
    fitted : Fitted
        With the engine `Hallucination`.
    margins : ndarray of shape (k,), k <= n_rows
        The last draw, of the answers told by then; empty starts afresh.
    rng : numpy.random.Generator

    Returns
    -------
    posterior : Posterior
    margins : ndarray of shape (n_rows,)
    """
    last = {"margins": margins[None]} if len(margins) else None
    drawn = fitted.refine_with_engine(rng, match_state(last, None, fitted.comparisons, "answers"))
    return drawn.posterior, (drawn.state.chains or {})["margins"][0]


def draw_hyperparameters(
    fitted: Fitted, root: NDArray[np.float64], rng: np.random.Generator
) -> Fitted:
    """Return the answers fitted at hyperparameters drawn from their posterior.

    That is the normal of Laplace's approximation, within the bounds.

    Parameters
    ----------
    fitted : Fitted
        At the best hyperparameters.
    root : ndarray of shape (n_theta, n_theta)
        Of their covariance, see `hyperparameter_spread`.
    rng : numpy.random.Generator
    """
    model = fitted.model
    step = root @ rng.standard_normal(len(root))
    start = Start(fitted.evaluation.approximation.state, None, fitted.comparisons)
    theta = np.clip(model.theta + step, *model.bounds.T)
    try:
        drawn = fit_posterior(fitted.comparisons, model.at(theta), start)
    except ValueError:  # where the model cannot be evaluated
        return fitted
    return replace(fitted, **fields_of_fit(drawn))
