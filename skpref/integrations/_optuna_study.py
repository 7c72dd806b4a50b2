"""What the storage of a preferential study holds: its answers, its trials, its search space."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, cast

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from skpref._utils import Lease

# The keys under which Optuna Dashboard keeps what was said on its page.
_IS_PREFERENTIAL = "preference:is_preferential"
_PREFERENCES = "preference:values"
_HISTORY = "preference:history"
_SKIPPED = "preference:skip_trial:"
# Under which a trial keeps what was chosen for it before it is suggested.
CHOSEN = "skpref:chosen"


class ComparedTrials(NamedTuple):
    """Numbers of the trials compared, and the position of the worst or the best of them."""

    trials: tuple[int, ...]
    said: dict[str, int]


@dataclass(frozen=True)
class Judged:
    """A study at a moment, as its storage has it.

    Attributes
    ----------
    trials : list of FrozenTrial
    answers : tuple of ComparedTrials
        In the order of their last trials, then of time: whatever order the storage gives.
    active : tuple of int
        Trials that are shown: none is the worst of an answer, skipped or failed.
    skipped : tuple of int
    """

    trials: list[FrozenTrial]
    answers: tuple[ComparedTrials, ...]
    active: tuple[int, ...]
    skipped: tuple[int, ...]

    @classmethod
    def read(cls, study: Study) -> "Judged":
        """Return a study as its storage has it now; ValueError unless it is preferential."""
        attributes = _read_attributes(study)
        trials = study.get_trials(deepcopy=False)  # after the answers, which are about trials
        reports = {
            key.removeprefix(_PREFERENCES): [(better, worse) for better, worse in pairs]
            for key, pairs in attributes.items()
            if key.startswith(_PREFERENCES) and pairs
        }
        order = sorted(
            reports,
            key=lambda name: (_last_trial(reports[name]), _time_of_answer(attributes, name)),
        )
        worse = {pair[1] for pairs in reports.values() for pair in pairs}
        skipped = {key.removeprefix(_SKIPPED) for key in attributes if key.startswith(_SKIPPED)}
        out = tuple(each.number for each in trials if str(each._trial_id) in skipped)
        active = tuple(
            each.number
            for each in trials
            if each.state in (TrialState.COMPLETE, TrialState.RUNNING)
            and each.number not in worse
            and each.number not in out
        )
        answers = tuple(each for name in order for each in _compared_trials(reports[name]))
        return cls(trials, answers, active, out)

    def distributions(self, number: int) -> tuple[dict[str, BaseDistribution], bool]:
        """Return the search space for a trial, and whether a finished trial has settled it.

        Before one is, it is that of the trial of the most parameters, which may not have all yet.
        Trials that are neither shown nor in an answer do not count.

        Raises
        ------
        ValueError
            If trials differ in their parameters.
        """
        finished, running = self._comparable(number)
        if not finished and not running:
            return {}, False
        first = (finished or sorted(running, key=lambda each: -len(each.distributions)))[0]
        for each in finished:
            _check_same(first, each, each.distributions.keys() | first.distributions.keys())
        for each in running:
            _check_same(first, each, each.distributions)
        return first.distributions, bool(finished)

    def _comparable(self, number: int) -> tuple[list[FrozenTrial], list[FrozenTrial]]:
        """Return other trials with parameters: finished or in an answer, and running ones."""
        compared = {each for answer in self.answers for each in answer.trials}
        finished, running = [], []
        for each in self.trials:
            if each.number == number or not each.distributions:
                continue
            is_active = each.number in self.active
            if each.number in compared or (is_active and each.state == TrialState.COMPLETE):
                finished.append(each)
            if is_active and each.state == TrialState.RUNNING:
                running.append(each)
        return finished, running


def read_params(trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]) -> dict | None:
    """Return the parameters of a trial, also before they are suggested.

    None if some are not known, or not values of these distributions.
    """
    chosen = {
        name: distributions[name].to_external_repr(value)
        for name, value in (trial.system_attrs.get(CHOSEN) or {}).items()
        if name in distributions
    }
    params = chosen | trial.system_attrs.get("fixed_params", {}) | trial.params
    for name, each in distributions.items():
        if name not in params or trial.distributions.get(name, each) != each:
            return None
        try:
            each.to_internal_repr(params[name])
        except ValueError:  # a trial was enqueued with something else
            return None
    return params


def awaits_choice(trial: FrozenTrial) -> bool:
    """Return whether a trial runs and nothing is known of its parameters yet."""
    attributes = {CHOSEN, "fixed_params"} & trial.system_attrs.keys()
    return trial.state == TrialState.RUNNING and not trial.distributions and not attributes


def lease_on_trial(trial: FrozenTrial, seconds: float) -> Lease:
    """Return the lease on a trial that its worker took when it began it, by its own clock."""
    began = cast(datetime, trial.datetime_start)
    return Lease(str(trial.number), began.timestamp(), seconds)


def stale_trials(study: Study, seconds: float, now: float) -> list[FrozenTrial]:
    """Return the running trials that lack parameters and whose lease of so many seconds is over.

    All trials of a study have the same parameters: one that has less was left between two of them.
    """
    trials = study.get_trials(deepcopy=False)
    names: set[str] = set().union(*(each.distributions for each in trials))
    return [
        each
        for each in trials
        if each.state == TrialState.RUNNING
        and (not each.distributions or names - each.distributions.keys())
        and each.datetime_start is not None
        and lease_on_trial(each, seconds).is_over(now)
    ]


def keep_chosen(
    study: Study,
    trial: FrozenTrial,
    params: Mapping[str, Any],
    distributions: Mapping[str, BaseDistribution],
) -> None:
    """Write the parameters chosen for a trial to the storage, for other workers to see."""
    chosen = {name: distributions[name].to_internal_repr(each) for name, each in params.items()}
    study._storage.set_trial_system_attr(trial._trial_id, CHOSEN, chosen)


def _last_trial(pairs):
    """Return the last of the trials in some pairs."""
    return max(number for pair in pairs for number in pair)


def _time_of_answer(attributes, name):
    """Return when an answer was clicked, if it was, and its id."""
    history = attributes.get(_HISTORY + name)
    return ("" if history is None else json.loads(history)["timestamp"]), name


def _compared_trials(pairs: Iterable[tuple[int, int]]):
    """Yield the answers that a report of pairs, a better and a worse trial each, stands for.

    The page reports the worst of the trials that it shows: pairs with one worse trial. Others are a
    choice for each better trial.
    """
    pairs = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
    worse = {pair[1] for pair in pairs}
    if len(worse) == 1:
        shown = sorted({number for pair in pairs for number in pair})
        yield ComparedTrials(tuple(shown), {"worst": shown.index(*worse)})
        return
    for better in dict.fromkeys(pair[0] for pair in pairs):
        shown = sorted({better} | {pair[1] for pair in pairs if pair[0] == better})
        yield ComparedTrials(tuple(shown), {"chosen": shown.index(better)})


def _check_same(first, other, names):
    """Raise ValueError unless two trials agree in some parameters."""
    for name in sorted(names):
        pair = first.distributions.get(name), other.distributions.get(name)
        if pair[0] != pair[1]:
            raise ValueError(
                f"Trials of the study differ in the parameter {name!r}: trial {first.number} has "
                f"{_distribution_in_words(pair[0])}, trial {other.number} "
                f"{_distribution_in_words(pair[1])}. {SAME_SPACE} {_advice_on_trial(other.number)}"
            )


SAME_SPACE = (
    "Trials can be compared only if all have the same parameters with the same ranges. Of a space "
    "with conditions suggest every parameter in every trial, and leave out of account those that "
    "do not apply; or make a study for each branch."
)


def _advice_on_trial(number: int) -> str:
    """Return advice on a trial that does not belong to the others."""
    return (
        f"If trial {number} should not be there, undo the answers about it on the page's history, "
        "and skip it."
    )


def _distribution_in_words(distribution):
    """Write a distribution for a message."""
    return "none" if distribution is None else repr(distribution)


def check_preferential(study: Study) -> None:
    """Raise ValueError if nobody's answers can be in a study."""
    _read_attributes(study)


def _read_attributes(study):
    """Return the system attributes of a study; ValueError if it is not preferential."""
    attributes = study._storage.get_study_system_attrs(study._study_id)
    if not attributes.get(_IS_PREFERENTIAL, False):
        raise ValueError(
            f"The study {study.study_name!r} is not preferential: nobody's answers are in it. "
            "Make it by optuna_dashboard.preferential.create_study(n_generate=2, "
            "sampler=PreferentialSampler()). For values of an objective take a sampler of "
            "Optuna."
        )
    return attributes
