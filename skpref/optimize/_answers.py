"""Answers of `tell`, and the ranks that they stand for."""

from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple, Self

import numpy as np

from skpref.data import LARGEST_LABEL

TIE = "tie"
# What stands for an outcome that was not given: None is a refusal.
NO_OUTCOME: Any = ...
_BY_POSITION = {"chosen", "worst", "ranking", "position", "none"}
_WAYS = (
    "chosen= (position of the best, or a list of the good ones), worst= (of the worst), both, or "
    "ranking= (positions)"
)


def ranks_of(
    n: int,
    chosen: int | Sequence[int] | None = None,
    worst: int | None = None,
    ranking: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Return ranks of n items that a best, a chosen subset, a worst, or a ranking states.

    Examples
    --------
    >>> from skpref.optimize._answers import ranks_of
    >>> ranks_of(4, chosen=2), ranks_of(4, chosen=2, worst=0), ranks_of(4, ranking=[2, 0])
    ((2, 2, 1, 2), (3, 2, 1, 2), (2, 0, 1, 0))
    >>> ranks_of(4, chosen=[0, 2])  # each of these before each of the rest
    (1, 2, 1, 2)
    """
    if ranking is not None:
        place = {position: rank for rank, position in enumerate(ranking, start=1)}
        return tuple(place.get(position, 0) for position in range(n))
    middle = 1 + (chosen is not None)
    best = chosen if isinstance(chosen, Sequence) else (chosen,)
    stated: dict[int | None, int] = {worst: middle + 1} | dict.fromkeys(best, 1)
    return tuple(stated.get(position, middle) for position in range(n))


class AnswerArguments(NamedTuple):
    """The arguments of `tell`, as they were given."""

    outcome: Any = NO_OUTCOME
    chosen: Any = None
    worst: Any = None
    ranking: Any = None
    position: Any = None
    none: Any = None

    def outcome_of(self, n: int) -> int | str | dict:
        """Return the outcome of n items shown in the form that histories and journals hold.

        Returns
        -------
        int, str or dict
            Of a duel 1 (the first won), 0, "tie", or a further label of a `DuelScale`; of more
            items a dict with the position "chosen" (of several a list), "worst" or both, or with
            the positions of a "ranking". What is told of the outside option has the key "none".

        Raises
        ------
        TypeError, ValueError
            If it is not one answer, or none of n items.
        """
        unpacked = self.unpack_dict()
        outcome, arguments = unpacked.outcome, unpacked._given_by_position()
        if "position" in arguments:
            raise ValueError(
                "position= tells a place on a line or a plane that ask(kind=) gave and that is "
                f"pending, with its items in their order; these {n} items are no such question. "
                f"Tell {_WAYS}."
            )
        if "none" in arguments:
            return unpacked._outcome_with_none(n)
        if outcome is NO_OUTCOME and not arguments:
            raise ValueError(
                f"Nothing was answered. Of a duel tell the outcome: 1, 0, 'tie' or None (no "
                f"answer); of {n} items: {_WAYS}, or None."
            )
        if outcome is not NO_OUTCOME and arguments:
            raise ValueError(
                f"Tell one answer, got the outcome {outcome!r}{_argument_text(arguments)}."
            )
        if outcome is not NO_OUTCOME:
            return _read_duel_outcome(outcome, n)
        by_position = _read_set_outcome(arguments, n)
        if n > 2:
            return by_position
        first, second = ranks_of(n, **by_position)
        return int(first < second)

    def unpack_dict(self) -> Self:
        """Return the arguments with an outcome that is a dict replaced by its entries.

        Raises
        ------
        ValueError
            If the dict has other keys, or another argument stands beside it or beside a position.
        """
        arguments, unpacked = self._given_by_position(), self
        if isinstance(self.outcome, dict):
            if arguments or not self.outcome or self.outcome.keys() - _BY_POSITION:
                raise ValueError(
                    "An outcome as a dict has the keys 'chosen', 'worst' or both, 'ranking', "
                    f"'none' or 'position', and nothing is said beside it; got {self.outcome!r}"
                    f"{_argument_text(arguments)}."
                )
            unpacked = type(self)(**self.outcome)
        arguments = unpacked._given_by_position()
        if "position" in arguments and (len(arguments) > 1 or unpacked.outcome is not NO_OUTCOME):
            shown = (
                arguments
                if unpacked.outcome is NO_OUTCOME
                else {"outcome": unpacked.outcome} | arguments
            )
            raise ValueError(
                f"position= is a whole answer; got more beside it{_argument_text(shown)}."
            )
        return unpacked

    def _outcome_with_none(self, n):
        """Return the outcome of n items where ``none`` tells whether any is good enough."""
        arguments = self._given_by_position()
        none = arguments.pop("none")
        if not isinstance(none, bool | np.bool_):
            raise TypeError(f"none must be True, False or None, got {none!r}.")
        if self.outcome is not NO_OUTCOME and not arguments:
            outcome = _read_duel_outcome(self.outcome, n)
            named = {0: {"chosen": 1}, 1: {"chosen": 0}}.get(outcome, {"outcome": outcome})
        elif self.outcome is not NO_OUTCOME:
            named = {"outcome": self.outcome} | arguments
        else:
            named = arguments
        if none and named:
            raise ValueError(
                f"none=True is a whole answer; got more beside it{_argument_text(named)}."
            )
        if none:
            return {"none": True}
        if [*named] != ["chosen"]:
            raise ValueError(
                f"none=False says that what is chosen is good enough; got it{_argument_text(named)}"
                ". Give chosen= beside it, or the outcome 1 or 0 of a duel."
            )
        return _read_set_outcome(named, n, n) | {"none": False}

    def _given_by_position(self):
        """Return those arguments by name that name positions or the outside option."""
        parts = {name: getattr(self, name) for name in sorted(_BY_POSITION)}
        return {name: part for name, part in parts.items() if part is not None}


def _argument_text(arguments):
    """Return arguments as text for a message, each after a comma."""
    return "".join(f", {name}={part!r}" for name, part in arguments.items())


def _read_duel_outcome(outcome, n):
    """Return the outcome of a duel as an int or "tie"; ValueError for others, or for n > 2."""
    shown = repr(outcome)
    if n > 2:
        raise ValueError(f"The answer to {n} items is told by {_WAYS}; got the outcome {shown}.")
    outcome = outcome if isinstance(outcome, str) else np.asarray(outcome)
    if isinstance(outcome, np.ndarray):
        if outcome.size != 1:
            raise ValueError(f"One outcome is told at a time, got {outcome.size}: {shown}.")
        outcome = outcome.item()
    if isinstance(outcome, str):
        is_outcome = outcome == TIE
    else:
        whole = isinstance(outcome, int | float) and outcome == np.rint(outcome)
        half = isinstance(outcome, float) and outcome == 0.5
        is_outcome = half or (whole and abs(outcome) <= LARGEST_LABEL)
    if not is_outcome:
        raise ValueError(
            "Outcomes of duels must be in {0, 1}, {-1, 1}, booleans (1: the first won), 2, -2 and "
            "so on (it won clearly), 'tie' or 0.5 (no difference), or None (no answer), neither "
            f"NaN nor others; got {shown}."
        )
    if outcome in (TIE, 0.5):
        return TIE
    return int(outcome) if abs(outcome) > 1 else int(outcome == 1)


def _read_set_outcome(arguments, n, most=None):
    """Return the outcome of a set as a dict of positions, checked; ``most`` may be chosen."""
    if "ranking" in arguments:
        if len(arguments) > 1:
            raise ValueError(
                f"ranking= is a whole answer; got more beside it{_argument_text(arguments)}."
            )
        return {"ranking": _read_ranking(arguments["ranking"], n)}
    positions = {
        name: _read_position(name, arguments[name], n) for name in arguments if name != "chosen"
    }
    if "chosen" not in arguments:
        return positions
    chosen = arguments["chosen"]
    most = n - 1 if most is None else most
    best = (
        _read_chosen(chosen, n, most)
        if _is_listed(chosen)
        else [_read_position("chosen", chosen, n)]
    )
    if positions.get("worst") in best:
        raise ValueError(f"The item {positions['worst']} cannot be both the best and the worst.")
    return {"chosen": best[0] if len(best) == 1 else best} | positions


def _is_listed(value):
    """Return whether positions are listed: in a sequence, an array or a column of a frame."""
    return not isinstance(value, str | bytes) and (
        isinstance(value, Sequence) or np.ndim(value) == 1
    )


def _read_chosen(value, n, most):
    """Return the positions that were chosen, sorted; ValueError unless 1 to ``most`` of n."""
    positions = sorted(_read_position("a position of chosen", each, n) for each in value)
    if len(set(positions)) < len(positions):
        raise ValueError(f"chosen must name every position at most once, got {positions}.")
    if not 0 < len(positions) <= most:
        raise ValueError(
            f"got {len(positions)} of {n} items as chosen=, which says nothing; 1 to {most} are "
            "allowed. Tell None, or skip the question."
        )
    return positions


def _read_position(name, value, n):
    """Return a position as an int; TypeError or ValueError unless it is one from 0 to n - 1."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        position = index(value)
    except TypeError:
        raise TypeError(
            f"{name} must be a position, an integer from 0 to {n - 1}, got {value!r} of type "
            f"{type(value).__name__}."
        ) from None
    if not 0 <= position < n:
        raise ValueError(f"{name} must be a position from 0 to {n - 1}, got {position}.")
    return position


def _read_ranking(value, n):
    """Return the positions of a ranking; TypeError or ValueError unless two or more differ."""
    if not _is_listed(value):
        raise TypeError(
            f"ranking must be a list of positions, best first, got {value!r} of type "
            f"{type(value).__name__}."
        )
    positions = [_read_position("a position of ranking", each, n) for each in value]
    if len(set(positions)) < len(positions):
        raise ValueError(f"ranking must name every position at most once, got {positions}.")
    if len(positions) < 2:
        raise ValueError(f"ranking must have two positions or more, got {positions}.")
    return positions


def ranks_of_outcome(outcome: int | str | dict, n: int) -> tuple[int, ...]:
    """Return the rank of each of n items by an outcome, 1 for the best; of a tie all are 1."""
    if isinstance(outcome, dict):
        return ranks_of(n, **{name: part for name, part in outcome.items() if name != "none"})
    if isinstance(outcome, str):  # a tie
        return (1,) * n
    return ranks_of(n, chosen=int(outcome <= 0))


def names_outside_option(outcome: int | str | dict) -> bool:
    """Return whether an outcome says if any of the items is better than the outside option."""
    return isinstance(outcome, dict) and "none" in outcome


def ranks_with_outside_option(outcome: int | str | dict, n: int) -> tuple[int, ...]:
    """Return the ranks of n items, and that of the outside option if the outcome is about it."""
    if outcome == {"none": True}:
        return (*[2] * n, 1)
    ranks = ranks_of_outcome(outcome, n)
    return (*ranks, 2) if names_outside_option(outcome) else ranks


def label_of_outcome(outcome: int | str | dict) -> int:
    """Return the label in y: above 0 the first won, below it the second, 0 is a tie; of sets 1."""
    if isinstance(outcome, str):  # a tie
        return 0
    return 1 if isinstance(outcome, dict) else outcome or -1


def best_position(outcome: int | str | dict, n: int) -> int:
    """Return the position of the best item; where several may be, of the first shown."""
    return ranks_of_outcome(outcome, n).index(1)
