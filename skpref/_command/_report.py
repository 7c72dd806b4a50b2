"""What a report holds, and the sentences in it; names stand there as they are."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.utils import Bunch

from skpref._command._times import BoardTimes, StrengthDrift
from skpref._utils import probability_text
from skpref.fitting import UNITS, components_in_words
from skpref.inspection import ModelCheck

# A smaller change of strengths, in deviations of an item's noise, is none: it would not change a
# chance by 0.006.
_LEAST_MOVE = 0.02


@dataclass(frozen=True, eq=False)
class ReportTable:
    """Columns of equal length by their names, in order."""

    columns: dict[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def rows(self, top: int | None = None) -> list[list]:
        """Return the first rows, in Python's own numbers and texts."""
        listed = [
            column[:top].tolist() if hasattr(column, "tolist") else list(column[:top])
            for column in self.columns.values()
        ]
        return [list(row) for row in zip(*listed, strict=True)]


class AnswerEffect(NamedTuple):
    """A value in units with its interval, whose ends are NaN where none is known."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False, kw_only=True)
class BoardReport:
    """A board and what goes with it, as it is written.

    Attributes
    ----------
    title, source, summary : str
    dropped : dict of str to int
    n_votes, n_read, n_pairs, n_prior_alone : int
    base : float
        What is written for the mean utility.
    board : Bunch
        Of `skpref.inspection.leaderboard`, with a mean of zero.
    table, undecided : ReportTable
    rates : Bunch
        Of `skpref.inspection.win_rates`, of the first competitors.
    effects : Bunch or None
        Of `skpref.inspection.control_effects`.
    controls, judges : ReportTable or None
    same : list of str
        Controls that are the same in all votes of each competitor.
    times : BoardTimes or None
        None where competitors do not drift.
    drift : StrengthDrift or None
        None where that is not known, too.
    by : str or None
    groups : dict
        A table for each group.
    boards : dict
        Of `skpref.inspection.leaderboards`, for each group.
    learned : dict of str to AnswerEffect
    check : ModelCheck or None
        Of `skpref.inspection.check`.
    """

    title: str
    source: str
    summary: str
    dropped: dict[str, int]
    n_votes: int
    n_read: int
    base: float
    board: Bunch
    rates: Bunch
    table: ReportTable
    undecided: ReportTable
    n_pairs: int
    n_prior_alone: int
    effects: Bunch | None
    controls: ReportTable | None
    same: list[str]
    times: BoardTimes | None
    drift: StrengthDrift | None
    by: str | None
    groups: dict[Any, ReportTable]
    boards: dict[Any, Bunch]
    judges: ReportTable | None
    learned: dict[str, AnswerEffect]
    check: ModelCheck | None

    @property
    def percent(self) -> str:
        """Level of the intervals in percent, as a text."""
        return f"{100.0 * self.board.level:.4g} %"

    def number(self, value: float) -> str:
        """Return a utility in its unit as a text."""
        if not math.isfinite(value):  # of competitors that no vote joins
            return "–"
        digits = 0 if self.board.unit == "elo" else 2
        return f"{round(float(value), digits) + 0.0:.{digits}f}"  # 0 without a sign

    def about_components(self) -> list[str]:
        """Return a sentence on the groups of competitors that no vote joins, in a list."""
        board = self.board
        if board.n_components == 1:
            return []
        groups = components_in_words(board.names, board.component, "competitors")
        return [
            f"The votes fall into {groups}. No vote compares competitors of different groups: "
            "which of two such is better is not known. Ranks and utilities are within the group, "
            "rank intervals have room for all others, and each group may hold the best of all. Get "
            "votes between the groups; skpref.active.next_pairs names these first."
        ]

    def lead(self) -> str:
        """Return sentences on the margin by which the first competitor leads."""
        lead, several = self.board.lead, self.board.n_components > 1
        if lead is None:
            return f"{self.board.names[0]} is alone."
        first, second = lead.names
        of_group = " of group 1" if several else ""
        best = self.board.probability_best[0] * self.board.n_components
        return (
            f"{first} is first{of_group}, by {self.number(lead.margin)} over {second} "
            f"({self.percent} interval {self.number(lead.lower)} to {self.number(lead.upper)}). "
            f"The probability that it is better than {second} is "
            f"{probability_text(lead.probability)}, that it is the best of "
            f"{'its group' if several else 'all'} {probability_text(best)}."
        )

    def open_pairs(self) -> str:
        """Return sentences on how many pairs are undecided."""
        tail, across = 0.5 * (1.0 - self.board.level), self.n_prior_alone
        apart = f"{across} of {self.n_pairs} pairs are of different groups. "
        of = f"the other {self.n_pairs - across}" if across else self.n_pairs
        return (
            f"{apart if across else ''}{len(self.undecided) - across} of {of} pairs are undecided: "
            f"neither is the better one with a probability above {1.0 - tail:.4g}."
        )

    def about_rates(self) -> str:
        """Say what the numbers of the table of who beats whom are."""
        ties = " or half of a tie" if self.rates.tie.any() else ""
        return (
            f"The probability, in per cent, that the competitor of the row wins{ties} against that "
            "of the column in a vote to come."
        )

    def about(self) -> list[str]:
        """Return sentences on what the columns of the board are."""
        lines = self._about_judges()
        lines += [
            f"A utility of {self.base:g} is the mean of {self._mean_over()}; the unit is "
            f"{UNITS[self.board.unit]}. "
            f"The true value lies in its interval with a probability of {self.percent}."
        ]
        lines += [f"{line}." for line in self.board.about_prompts]
        lines += self._about_held()
        if self.times is not None:
            if self.times.first < self.times.last:
                lines.append("Competitors change with time, how fast is learned from the votes.")
            lines += self.times.about()
        lines += self._about_drift()
        if self.by is not None:
            lines.append(
                f"The board averages over {self.by}, each value by its votes; the boards below "
                "are drawn to it, the more the fewer votes they have."
            )
        if "tie_threshold" in self.learned:
            value = self._with_interval(self.learned["tie_threshold"])
            lines.append(f"Two competitors tie where a judge sees a difference below {value}.")
        if "order_effect" in self.learned:
            value = self._with_interval(self.learned["order_effect"])
            lines.append(f"The first side has an advantage of {value}.")
        return lines

    def _mean_over(self) -> str:
        """Return in words over whom the mean utility is zero."""
        return "all competitors" if self.board.n_components == 1 else "those of the group"

    def _about_held(self) -> list[str]:
        """Return sentences on controls that are held, and on features of the competitors."""
        if self.effects is None:
            return []
        held, lines = self.board.held, []
        values = [f"{name} {held[name]:.4g}" for name in self.effects.names if name in held]
        if values:
            lines.append(
                f"Competitors are compared with the controls held equal ({', '.join(values)})."
            )
        for name in self.effects.names:
            if name not in held:
                whose = "each competitor" if name in self.same else "most competitors"
                lines.append(
                    f"{name} is the same in all votes of {whose}: it is a feature of "
                    "the competitors, not of the votes, and is not held."
                )
        return lines

    def _about_drift(self) -> list[str]:
        """Return a sentence on how fast strengths move, in a list; an empty one if unknown."""
        if self.drift is None:
            return []
        if self.times is not None and self.times.first == self.times.last:
            return ["All votes are of one time, which tells nothing of how strengths change."]
        deviation, length, unit = self.drift
        # The search ends at some small number where there is none.
        least = _LEAST_MOVE * self.board.noise_deviation / self.board.unit_length
        if deviation < least or self.number(deviation) == self.number(0.0):
            return ["The votes show no change of strengths with time."]
        return [
            f"Strengths move by about {self.number(deviation)} (standard deviation of the part "
            f"that changes) on a scale of {_length_text(length)} {unit}."
        ]

    def _with_interval(self, learned: AnswerEffect) -> str:
        """Return an effect with its interval, if that is known, as a text."""
        if math.isnan(learned.lower):
            return self.number(learned.value)
        ends = f"{self.number(learned.lower)} to {self.number(learned.upper)}"
        return f"{self.number(learned.value)} ({self.percent} interval {ends})"

    def _about_judges(self) -> list[str]:
        """Return sentences on judges who answer at random, the wrong way round or by own rules."""
        if self.judges is None:
            return []
        columns, lines = self.judges.columns, []
        for kind, what in (("random", "at random"), ("adversarial", "the wrong way round")):
            judges = columns["judge"][columns[f"probability_{kind}"] > 0.95]
            if len(judges):
                verb = "answers" if len(judges) == 1 else "answer"
                lines.append(
                    f"{len(judges)} of {len(self.judges)} judges {verb} {what} (probability above "
                    f"0.95): {_first_few(judges)}."
                )
        for name in list_own_effects(self.judges):
            low, high = (columns[f"{name}_{end}"] for end in ("lower", "upper"))
            judges = columns["judge"][(low > 0.0) | (high < 0.0)]
            if len(judges):
                what = "what is shown first" if name == "first" else name.removeprefix("slope_")
                lines.append(
                    f"Another weight than the panel's is given to {what} (the {self.percent} "
                    f"interval is without 0) by {len(judges)} of {len(self.judges)} judges: "
                    f"{_first_few(judges)}."
                )
        lines += [f"{line}." for line in self.board.about_judges]
        return lines or [f"None of {len(self.judges)} judges is found to answer at random."]

    def about_controls(self) -> list[str]:
        """Return sentences on what the columns of the controls are."""
        effects = self.effects
        if effects is None:
            return []
        what = (
            "slope: what one more of the control adds to the utility; effect: what one standard "
            "deviation adds"
        )
        n_held = sum(name in effects.held for name in effects.names)
        if not n_held:
            return [f"{what}."]
        some = "" if n_held == len(effects.names) else ", where it is held"
        lines = [
            f"{what}; tau and moved compare the board at equal controls with the board at each "
            f"competitor's own mean: their rank correlation, and the most places that a competitor "
            f"moves{some}."
        ]
        if n_held > 1:
            every = "All of them" if n_held == len(effects.names) else "All that are held"
            lines.append(
                f"{every} together: tau {effects.tau_together:.2f}, moved {effects.moved_together}."
            )
        return lines


def list_own_effects(table: ReportTable) -> list[str]:
    """Return the names of the columns of what biases single judges."""
    return [
        name
        for name in table.columns
        if f"{name}_lower" in table.columns and (name == "first" or name.startswith("slope_"))
    ]


def _first_few(names: Sequence[Any]) -> str:
    """Return the first five names as a text, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(str, names[:5])) + more


def _length_text(value: float) -> str:
    """Return a length of time as a text."""
    return f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"


def as_options(text: str) -> str:
    """Return a message with arguments of `from_votes` written as options of the command."""
    text = re.sub(r"(?<![\w'\"])ties=False\b", "--ties drop", text)
    text = text.replace("hold them by at={column: value}", "leave them out of --controls")
    text = re.sub(
        r"(?<![\w'\"])outcomes=\{(.*?: -?[01])\}( \(1 the first, -1 the second, 0 a tie\))?",
        _outcomes_text,
        text,
    )
    names = (
        "a|b|winner|judge|prompt|time|controls|by|outcomes|both_bad|missing|alike|encoding|decimal"
        "|soft"
    )
    pattern = rf"(?<![\w'\"])({names})=(?:\"([\w,]+)\"|(True))?(?![\w'])"
    return re.sub(pattern, _option_text, text)


# What outcomes mean, as the command has it.
MEANINGS = {"a": 1, "tie": 0, "b": -1}


def _outcomes_text(match: re.Match[str]) -> str:
    """Return outcomes as the command takes them: ``{1: 1, 2: -1}`` is ``--outcomes 1=a 2=b``."""
    meanings = {str(code): meaning for meaning, code in MEANINGS.items()}
    pairs = (each.rpartition(": ") for each in re.split(r"(?<=\d), ", match[1]))
    assignments = (f"{word.strip(chr(39))}={meanings[code]}" for word, _, code in pairs)
    return " ".join(["--outcomes", *(f"'{each}'" if " " in each else each for each in assignments)])


def _option_text(match: re.Match[str]) -> str:
    """Return an argument as an option of the command."""
    name, value, _ = match.groups()
    option = "--" + name.replace("_", "-")
    return option if value is None else f"{option} {value}"
