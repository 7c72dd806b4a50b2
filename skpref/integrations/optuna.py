"""An Optuna sampler for judged trials, as on the page of Optuna Dashboard; needs optuna."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from skpref._utils import RandomLike, check_number, seed_of
from skpref.optimize import PreferenceOptimizer

try:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError(
        "skpref.integrations.optuna needs Optuna, which is not installed: "
        'pip install "skpref[optuna]".'
    ) from error

from skpref.integrations._optuna_space import StudySpace
from skpref.integrations._optuna_study import (
    SAME_SPACE,
    Judged,
    awaits_choice,
    check_preferential,
    keep_chosen,
    lease_on_trial,
    read_params,
    stale_trials,
)

__all__ = ["PreferentialSampler"]

# What the storage says, and not the user.
_STUDY_PARAMETERS = (
    "space",
    "candidates",
    "constraints",
    "journal",
    "random_state",
    "initial_duels",
    "earlier",
    "cost",
)
# Seconds that a worker waits for another to choose the trial before its own.
_PATIENCE, _POLL = 5.0, 0.05


class PreferentialSampler(optuna.samplers.BaseSampler):
    """Trials for a judge to compare: the questions of `PreferenceOptimizer` in an Optuna study.

    For the preferential study of Optuna Dashboard, ``optuna_dashboard.preferential.create_study``,
    whose page shows ``n_generate`` trials and takes the click on the worst. That one goes, the
    others stay, and a new trial joins them: the sampler chooses it beside those that stay
    (``ask(beside=...)`` of `PreferenceOptimizer`). Neither needs torch.

    All that the sampler knows is in the storage, read anew for each trial. A worker may be killed
    at any moment and be started again, answers may be taken back on the page, and several workers
    may share a study: a new trial differs from all that are shown or being prepared.

    Parameters
    ----------
    seed : int, RandomState instance, Generator or None, default=None
        The same seed, trials and answers give the same next trial.
    stale_after : float, default=120.0
        Seconds that a trial that lacks parameters is left to the worker that began it, by the
        clocks of both; then it is failed, as that worker must have been killed. The default is ten
        times the longest choice that was measured: 11 s, after 500 answers about six parameters.
        See `fail_stale_trials`.
    **options
        Parameters of `PreferenceOptimizer`, but for those that the study holds: ``acquisition``,
        ``noise_variance``, ``forgetting_rate`` and so on.

    Notes
    -----
    The search space is that of the trials: floats, also on a log scale or with a step, integers and
    categories, as the trials suggest them. All trials must have the same. Categories that are
    increasing numbers are taken as ordered. Parameters of one value are left out of account.

    Trials that one call of ``report_preference`` names with one worse trial are a choice of the
    worst, with one better trial a choice of the best; with several of both there is a choice for
    each better one. Trials of equal parameters are one item: nothing is learned of a preference
    between them. A trial that was skipped stays away, and so does what is close to it.

    If a trial cannot be sampled, it is told as failed before the error is raised, so that no page
    waits for it. A worker that was killed cannot tell: see `fail_stale_trials`.

    References
    ----------
    Optuna Dashboard's own sampler, ``PreferentialGPSampler``, is based on Takeno, Nomura,
    Karasuyama, "Towards Practical Preferential Bayesian Optimization with Skew Gaussian Processes",
    ICML 2023.

    Examples
    --------
    >>> import optuna
    >>> from optuna_dashboard.preferential import create_study
    >>> from skpref.integrations.optuna import PreferentialSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> sampler = PreferentialSampler(seed=0)
    >>> study = create_study(n_generate=2, sampler=sampler)
    >>> shown = []
    >>> while len(study.preferences) < 12:
    ...     while study.should_generate():
    ...         trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
    ...         shown.append(study.trials[trial.number])
    ...     worse = max(shown, key=lambda each: abs(each.params["x"] - 0.3))
    ...     shown.remove(worse)
    ...     study.report_preference(shown[0], worse)
    >>> abs(sampler.recommend(study).params["x"] - 0.3) < 0.1
    True
    """

    def __init__(self, *, seed: RandomLike = None, stale_after: float = 120.0, **options: Any):
        refused = [name for name in _STUDY_PARAMETERS if name in options]
        if refused:
            raise TypeError(
                f"PreferentialSampler takes no {refused[0]}=: the storage of the study holds the "
                "space, the trials, each a new item, and the answers; seed= is the sampler's."
            )
        # What is wrong with the options is said now; a kernel depends on the number of parameters.
        options_of_optimizer = {name: each for name, each in options.items() if name != "kernel"}
        PreferenceOptimizer([(0.0, 1.0)], **options_of_optimizer)
        check_number("stale_after", stale_after, low=0.0, open_low=True)
        self._options, self._stale_after, self._clock = options, stale_after, time.time
        self._entropy = np.random.SeedSequence(seed_of(seed)).entropy

    def reseed_rng(self) -> None:
        """Take another seed, as Optuna wants it in each of several workers."""
        self._entropy = np.random.SeedSequence().entropy

    # -- results -------------------------------------------------------------------------

    def optimizer(self, study: Any) -> PreferenceOptimizer:
        """Make an optimizer of all answers in a study: its posterior, gain and pictures.

        Parameters
        ----------
        study : PreferentialStudy or Study

        Returns
        -------
        PreferenceOptimizer
            Of items that are dicts of the parameters.

        Raises
        ------
        ValueError
            If the study is not preferential, has no trial with parameters yet, or trials that
            differ in them.
        """
        return self._fit_optimizer(*_read_study(study))

    def recommend(self, study: Any) -> FrozenTrial:
        """Return the trial of the largest posterior mean among those that answers are about.

        Of several with the same parameters the first.

        Parameters
        ----------
        study : PreferentialStudy or Study

        Returns
        -------
        FrozenTrial

        Raises
        ------
        ValueError
            As `optimizer`.
        NotFittedError
            If the study has no answers, or only such between trials of equal parameters.
        """
        judged, distributions, space = _read_study(study)
        best = self._fit_optimizer(judged, distributions, space).recommend()
        compared = {number for answer in judged.answers for number in answer.trials}
        return next(
            judged.trials[number]
            for number in sorted(compared)
            if best in self._items_of_trials(judged, [number], distributions, space)
        )

    def fail_stale_trials(self, study: Any) -> list[int]:
        """Fail trials that lack parameters and whose lease of ``stale_after`` seconds is over.

        A worker that is killed while it asks, or between two ``suggest_float``, leaves such a
        trial, which counts among the ``n_generate`` for ever. `ask` calls this, and of studies of
        Optuna Dashboard so does ``should_generate``. Trials with all parameters, which wait for a
        judge, stay.

        What was asked for is not lost: parameters that a failed trial was to have are enqueued for
        the next one. This also holds for a worker that was not killed but slow: it gets Optuna's
        ``UpdateFinishedTrialError``, and its next trial has the parameters that it had chosen.

        Parameters
        ----------
        study : PreferentialStudy or Study
            On any storage. Optuna's heartbeat is of no use here: it is of `Study.optimize` and one
            storage, and fails trials whose worker is gone, also those that wait for a judge.

        Returns
        -------
        list of int
            Numbers of the trials that were failed.

        Raises
        ------
        ValueError
            If the study is not preferential.
        """
        study = getattr(study, "_study", study)
        check_preferential(study)
        failed = []
        for trial in stale_trials(study, self._stale_after, self._clock()):
            with suppress(RuntimeError):  # of Optuna: another worker was quicker
                study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
                failed.append(trial.number)
                if fixed := trial.system_attrs.get("fixed_params"):
                    study.enqueue_trial(fixed, user_attrs=trial.user_attrs)
        return failed

    # -- what Optuna calls ---------------------------------------------------------------

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Refuse a study that is not preferential, before `optimize` runs an objective."""
        with _failing_on_error(study, trial):
            self.fail_stale_trials(study)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters of the trials so far; none before the first."""
        with _failing_on_error(study, trial):
            _wait_for_others(study, trial)
            return _varying_parameters(Judged.read(study).distributions(trial.number)[0])

    def sample_relative(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        """Choose the parameters of a trial that joins those which are shown."""
        with _failing_on_error(study, trial):
            fixed, params = trial.system_attrs.get("fixed_params", {}), {}
            if search_space.keys() - fixed.keys():
                params = self._choose_params(Judged.read(study), trial.number, search_space)
            try:
                keep_chosen(study, trial, params, search_space)
            except RuntimeError:  # of Optuna: the trial was failed in the meantime
                if params and not fixed:
                    study.enqueue_trial(params)
                raise
            return params

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Draw a parameter that no earlier trial has; ValueError if some are finished."""
        with _failing_on_error(study, trial):
            distributions, settled = Judged.read(study).distributions(trial.number)
            # Absent before a trial is finished, it may be on its way; there, the trial was asked
            # for before.
            distribution = distributions.get(param_name, None if settled else param_distribution)
            if distribution != param_distribution:
                shown = "nothing of it" if distribution is None else repr(distribution)
                raise ValueError(
                    f"Trial {trial.number} suggests {param_name!r} from {param_distribution!r}, "
                    f"and the trials before it have {shown}. {SAME_SPACE}"
                )
            seed = self._draw_seed(trial.number, *param_name.encode())
            plain = optuna.samplers.RandomSampler(seed=seed)
            return plain.sample_independent(study, trial, param_name, param_distribution)

    # -- the question --------------------------------------------------------------------

    def _choose_params(self, judged, number, distributions):
        """Return the parameters that are chosen for a new trial of a number."""
        space = StudySpace(distributions)
        optimizer = self._fit_optimizer(judged, distributions, space, self._draw_seed(number))
        beside = self._items_to_compare_with(optimizer, judged, number, distributions, space)
        for item in self._items_of_trials(judged, judged.skipped, distributions, space, number):
            if beside and len(_distinct_positions(optimizer, [*beside, item])) > len(beside):
                optimizer.skip([*beside, item])
        try:
            question = optimizer.ask(beside=beside or None)
        except ValueError as error:
            if "left to ask" not in str(error):
                raise
            raise ValueError(
                f"No trial is left to show beside the {len(beside)} that are shown: every other "
                "one of the search space is there or was skipped. Widen the space in a new study, "
                "or give a smaller n_generate."
            ) from error
        return space.to_params(question[-1])

    def _items_to_compare_with(self, optimizer, judged, number, distributions, space):
        """Return the items that a new trial joins: those shown, or the best of those compared."""
        beside = self._items_of_trials(judged, judged.active, distributions, space, number)
        beside = [beside[k] for k in _distinct_positions(optimizer, beside)]
        if beside or not optimizer.n_told_:
            return beside
        # All that were shown were skipped.
        compared = {each for answer in judged.answers for each in answer.trials}
        numbers = compared - {*judged.skipped}
        rest = self._items_of_trials(judged, numbers, distributions, space, number)
        order = np.argsort(-optimizer.posterior_.mean(optimizer.to_unit(rest))) if rest else ()
        return [rest[k] for k in order[:1]]

    def _fit_optimizer(self, judged, distributions, space, seed=None):
        """Return an optimizer that was told all answers of a study."""
        seed = self._draw_seed() if seed is None else seed
        optimizer = PreferenceOptimizer(space.space, random_state=seed, **self._options)
        items = {}
        for answer in judged.answers:
            for number in answer.trials:
                params = read_params(judged.trials[number], distributions)
                if number not in items and params is not None:
                    items[number] = space.to_item(params)
            _tell_answer(optimizer, [items.get(number) for number in answer.trials], answer.said)
        return optimizer

    def _items_of_trials(self, judged, numbers, distributions, space, own=None):
        """Return the items of those trials whose parameters are known, without trial ``own``."""
        params_of_trials = (
            read_params(judged.trials[each], distributions) for each in numbers if each != own
        )
        return [space.to_item(params) for params in params_of_trials if params is not None]

    def _draw_seed(self, *more):
        """Return a seed that these numbers and the sampler's own determine."""
        return int(np.random.SeedSequence([self._entropy, *more]).generate_state(1)[0])


def _tell_answer(optimizer, items, statement):
    """Tell an optimizer which of some items is the best or worst, without unknown or equal ones."""
    (way, place), *_ = statement.items()
    if items[place] is None:
        return
    # The one that was clicked first, so that of equal ones it stays.
    order = [place, *(k for k in range(len(items)) if k != place and items[k] is not None)]
    places = _distinct_positions(optimizer, [items[k] for k in order])
    shown = sorted(order[k] for k in places)
    if len(shown) > 1:
        optimizer.tell([items[k] for k in shown], **{way: shown.index(place)})


def _distinct_positions(optimizer, items):
    """Return positions of the items that equal none before them."""
    places: list[int] = []
    rows = optimizer.to_unit(items)
    for k, row in enumerate(rows):
        if not places or np.abs(rows[places] - row).max(axis=1).min() > optimizer._space.apart:
            places.append(k)
    return places


def _varying_parameters(distributions):
    """Return the parameters of more than one value."""
    return {name: each for name, each in distributions.items() if not each.single()}


def _read_study(study):
    """Return what a study holds, its varying parameters, and the space for them."""
    judged = Judged.read(getattr(study, "_study", study))  # the study within a preferential one
    distributions = _varying_parameters(judged.distributions(-1)[0])
    if not distributions:
        raise ValueError(
            "No trial of the study has a parameter of several values yet: ask for trials first."
        )
    return judged, distributions, StudySpace(distributions)


@contextmanager
def _failing_on_error(study: optuna.Study, trial: FrozenTrial) -> Iterator[None]:
    """Fail the trial if something is raised, also by Ctrl-C, so that nobody waits for it."""
    try:
        yield
    except BaseException:
        with suppress(RuntimeError):  # of Optuna: it was failed already
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        raise


def _wait_for_others(study, trial):
    """Wait until earlier trials are chosen; one that is not in time was given up by its worker."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        clock = time.time()
        if not any(
            each.number < trial.number
            and awaits_choice(each)
            and not lease_on_trial(each, _PATIENCE).is_over(clock)
            for each in study.get_trials(deepcopy=False)
        ):
            return
        time.sleep(_POLL)


def _wrap_should_generate(should_generate):
    """Wrap ``should_generate`` of the dashboard's studies: stale trials of our sampler fail first.

    Where all of ``n_generate`` trials are stale, no `ask` comes any more that could fail them.
    """

    @wraps(should_generate)
    def should_generate_now(study: Any) -> bool:
        sampler = study._study.sampler
        if isinstance(sampler, PreferentialSampler):
            sampler.fail_stale_trials(study)
        return bool(should_generate(study))

    return should_generate_now


with suppress(ImportError):  # a study of Optuna alone does without the dashboard
    _DashboardStudy = import_module("optuna_dashboard.preferential").PreferentialStudy
    _DashboardStudy.should_generate = _wrap_should_generate(_DashboardStudy.should_generate)
