"""Who won each duel, as tables say it: in words, by name, as a result or as a number."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from enum import IntEnum
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from skpref._utils import check_number, warn
from skpref.data._containers import TO_SPACES, check_one_each, is_blank, is_missing, plain_name
from skpref.data._frame import DuelFrame
from skpref.data._kinds import LARGEST_LABEL
from skpref.data._labels import LabelledDuels, attach_labels, plain_labels
from skpref.data._tables import column_cells

# Sides that need no column: of the first argument, of the second.
_SIDES = [("model_a", "model_b"), ("a", "b"), ("first", "second"), ("left", "right")]
_TIE = re.compile(
    r"(tie|tied|draw|drawn|equal|equally|same|no difference|no preference|both bad|bothbad)\b"
)
_BOTH_BAD = re.compile(r".*\bboth\s?(are )?bad\b|neither\b")
_SCORE = re.compile(r"\s*(\d+([./]\d+)?|½)\s*[-:\u2013]\s*(\d+([./]\d+)?|½)\s*")
# Scores of games that have no others, as `plain_name` has them.
_RESULTS = {"1 0": 1, "0 1": -1, "1/2 1/2": 0, "½ ½": 0, "½": 0, "0 5 0 5": 0}
# Verdicts as prompts ask for them: [[A]], [[C]] for a tie, A>B, [[A>>B]], A=B.
_VERDICT = re.compile(r"\[\[\s*(.*?)\s*\]\]")
_COMPARED = re.compile(r"(.*?[^<>=\s])\s*(>+|<+|=+)\s*([^<>=\s].*)")
# Numbers that say who won: signs, wins of the first, places.
_LEVELS = ({-1: -1, 0: 0, 1: 1}, {0: -1, 0.5: 0, 1: 1}, {1: 1, 1.5: 0, 2: -1})


class OutcomeCode(IntEnum):
    """Codes of outcomes beside 1, 0 and -1: none, neither a side nor a tie, two bad answers."""

    MISSING = LARGEST_LABEL + 1
    UNREAD = LARGEST_LABEL + 2
    BOTH_BAD = LARGEST_LABEL + 3


MISSING, UNREAD, BOTH_BAD = OutcomeCode


def warn_alike(names: Iterable, remedy: str) -> None:
    """Warn of different names that differ in case, spaces, dashes or Unicode form alone."""
    plain: dict = {}
    for name in names:
        plain.setdefault(plain_name(name), []).append(name)
    alike = [each for each in plain.values() if len(each) > 1]
    if alike:
        # What looks the same is told apart by its code points.
        shown = "; ".join(", ".join(map(_distinct_repr(each), each)) for each in alike[:3])
        warn(
            "Names that differ in case, spaces, dashes or Unicode form alone are taken for "
            f"different ones: {shown}. If they are one, {remedy}."
        )


def _distinct_repr(names: list[str]) -> Any:
    """Return `repr`, or `ascii` where names that differ look the same."""
    looks = {unicodedata.normalize("NFC", name.translate(TO_SPACES)) for name in names}
    return repr if len(looks) == len(names) else ascii


class DuelLabels(NamedTuple):
    """Labels of duels, as `attach_labels` takes them.

    Attributes
    ----------
    rows : ndarray of int of shape (n_kept,)
        Duels that have an outcome; the others are left out.
    y : ndarray of int64 of shape (n_kept,) or None
        None: there are no outcomes yet.
    signed : bool
        Whether 0 is a tie.
    stated : bool
        False if the first won each, as nothing else was said.
    """

    rows: np.ndarray
    y: NDArray[np.int64] | None
    signed: bool = False
    stated: bool = True

    def attach(self, X: np.ndarray | DuelFrame) -> LabelledDuels:
        """Return duels with their labels, some turned round where only one side ever won."""
        if self.y is None:
            return LabelledDuels(X, np.empty(0, dtype=np.int64), np.zeros(len(X), dtype=bool))
        return attach_labels(X, self.y, self.signed)


def read_labels(
    outcomes: Any,
    n_duels: int,
    names: tuple[Any, Any] | None = None,
    sides: Sequence[tuple[str, str]] = (),
    *,
    ties: bool | None = None,
    grades: Mapping[Any, int] | int | None = None,
    argument: str = "outcomes",
) -> DuelLabels:
    """Return the outcomes of duels, read of labels, words, names, results or grades.

    Rows without an outcome, with one that is not understood, and ties if ``ties`` is False, are
    left out; one warning counts them.

    Parameters
    ----------
    outcomes : array-like of shape (n_duels,), bool or None
        As `outcome_codes` or ``grades`` read them. None or True: the first won each. False: there
        are none yet.
    n_duels : int
    names, sides
        See `outcome_codes`.
    ties : bool, default=None
        Whether 0 is a tie. None: where both -1 and 0 occur.
    grades : dict or int, default=None
        See `from_columns`.
    argument : str
        Name of ``outcomes``, for messages.

    Raises
    ------
    ValueError
        If no outcome can be read, or none of one side where others are not read, or one
        is the word for a side and the name of another item; for grades that ``grades`` does not
        have.

    Examples
    --------
    >>> from skpref.data._winners import read_labels
    >>> opponents = ["ann", "bob", "cid"], ["bob", "cid", "ann"]
    >>> read_labels(["Ann ", "tie (both bad)", "second"], 3, opponents).y.tolist()
    [1, 0, -1]
    """
    every, is_bool = np.arange(n_duels), isinstance(outcomes, bool | np.bool_)
    if is_bool and (grades is not None or ties is not None):
        raise ValueError(
            f"ties= and grades= say how outcomes are read; got {argument}={bool(outcomes)!r}. Name "
            "the column that has them, or leave both out."
        )
    is_graded = grades is not None
    if not is_graded and (is_bool or outcomes is None):
        won = np.ones(n_duels, dtype=np.int64)
        return DuelLabels(every, None if is_bool and not outcomes else won, stated=False)
    cells = _outcome_cells(outcomes, n_duels)
    values = cells.tolist()
    if is_graded:
        codes = _grade_codes(values, grades)
    else:
        codes = _winner_codes(values, names, sides, ties is not False)
    if codes is None:
        return DuelLabels(every, *plain_labels(cells, ties))
    rows = _rows_with_outcome(values, codes, ties is not False)
    labels = codes[rows]
    if is_graded or ties or (labels == 0).any():
        return DuelLabels(rows, labels, True)
    return DuelLabels(rows, (labels == 1).astype(np.int64))


def _outcome_cells(outcomes: Any, n_duels: int) -> np.ndarray:
    """Return outcomes as an array, None for each if there are none; ValueError if too few."""
    cells = np.full(n_duels, None) if outcomes is None else column_or_1d(column_cells(outcomes))
    check_one_each(cells.shape, n_duels, "outcomes", "duels")
    return cells


def _winner_codes(values, names, sides, has_ties):
    """Return codes of outcomes that say who won; None where they are labels already.

    Raises
    ------
    ValueError
        If no winner can be read, or none of one side where others are not read.
    """
    codes = None if _are_labels(values) else outcome_codes(values, names, sides)
    if codes is None:
        return None
    codes = np.where(codes == BOTH_BAD, 0, codes)
    if not np.isin(codes, (1, 0, -1) if has_ties else (1, -1)).any():
        raise ValueError(_no_winner_message(values, names, sides))
    if (codes == UNREAD).any() and not np.isin((1, -1), codes).all():
        raise ValueError(unread_outcomes_message(values, codes))
    return codes


def _are_labels(values: list) -> bool:
    """Return whether outcomes are labels, which `attach_labels` reads."""
    present = [value for value in values if not is_missing(value)]
    if not all(isinstance(value, Real) for value in present):
        return False
    labels = {-1, 0, 1} if len(present) == len(values) else {-1, 0, 0.5, 1}
    return set(present) <= labels or any(isinstance(value, bool) for value in present)


def _grade_codes(values: list, grades: Any) -> np.ndarray:
    """Return the label of each graded outcome, `MISSING` for none; ValueError for other words."""
    if isinstance(grades, Mapping):
        words = label_words(grades, "grades")
    else:
        name = "grades (a dict, or the number of grades)"
        n_grades = int(check_number(name, grades, low=1, high=LARGEST_LABEL, integer=True))
        words = {label: label for label in range(-n_grades, n_grades + 1)}
    plain = [None if is_blank(value) else plain_name(value) for value in values]
    unknown = [v for v, p in zip(values, plain, strict=True) if p is not None and p not in words]
    if unknown or not any(each is not None for each in plain):
        some = ", ".join(list(dict.fromkeys(map(repr, unknown)))[:5]) or "none but missing ones"
        raise ValueError(
            f"Outcomes such as {some} are not among those of grades=, {list(words)}. Add them."
        )
    return np.array([MISSING if each is None else words[each] for each in plain], dtype=np.int64)


def label_words(labels: Mapping[Any, int], name: str, largest: int = LARGEST_LABEL) -> dict:
    """Return labels by their words in one case and spelling; ValueError if they are no labels."""
    label_of_word = {plain_name(word): label for word, label in labels.items()}
    if len(label_of_word) < len(labels):
        raise ValueError(
            f"Words of {name} are read without regard to case, spaces and underscores; some of "
            f"{list(labels)} are then alike. Give each once."
        )
    whole = [isinstance(each, Integral) and abs(each) <= largest for each in labels.values()]
    if not whole or not all(whole):
        raise ValueError(
            f"{name} must have an integer label for each word, -{largest} to {largest}: above 0 "
            f"the first won, below it the second, 0 a tie; got {labels!r}."
        )
    return label_of_word


# -- one outcome after the other ---------------------------------------------------------------


def outcome_codes(
    values: Sequence,
    names: tuple[Sequence, Sequence] | None = None,
    sides: Sequence[tuple[str, str]] = (),
    rows: np.ndarray | None = None,
    remedy: str = "Say who won by labels, such as frame[winner] == frame[first].",
) -> np.ndarray | None:
    """Return 1, 0, -1, `MISSING`, `UNREAD` or `BOTH_BAD` for each outcome.

    Parameters
    ----------
    values : sequence of length n
        The name of either item, a side, a word for a tie ("tie ..." or "draw ..."), upper or lower
        case and spaces aside; results of games ("1-0", "1/2-1/2") and verdicts ("[[A]]", "A>B");
        or numbers: -1, 0 and 1, or 0, 0.5 and 1, or 1 (the first), 1.5 and 2.
    names : pair of sequences of length n, default=None
        Who the first and the second item of each duel are.
    sides : sequence of pairs of str, default=()
        What the two sides are called, beside "model_a" and "model_b", "a" and "b", "first" and
        "second"; what comes first counts, and names before all.
    rows : ndarray of int of shape (n,), default=None
        Rows that messages name. None: 0 to n - 1.
    remedy : str
        What to do about a word for a side that is also the name of another item: a format of it.

    Returns
    -------
    ndarray of int of shape (n,) or None
        None where all are numbers of no coding above.
    """
    present_rows = np.flatnonzero([not is_blank(value) for value in values]).tolist()
    first, second = names or ([None] * len(values),) * 2
    answers = [(values[row], first[row], second[row]) for row in present_rows]
    numbers = _outcome_numbers(answers)
    codes = np.full(len(values), MISSING)
    by_number = None if numbers is None else _number_codes(answers, numbers)
    if by_number is not None:
        codes[present_rows] = by_number
        return codes
    if numbers is not None and not any(value in pair for value, *pair in answers):
        return None
    reader = _OutcomeReader([value for value, *_ in answers], names, sides)
    for row, answer in zip(present_rows, answers, strict=True):
        code = reader.code(*answer)
        if code is None:
            where = row if rows is None else rows[row]
            raise ValueError(
                f"The outcome in row {where} is {answer[0]!r}, the word for a side and also the "
                f"name of another item. {remedy.format(word=answer[0])}"
            )
        codes[row] = code
    return codes


def _outcome_numbers(answers: list[tuple]) -> list | None:
    """Return outcomes as numbers, also texts where all are such; None if some are no numbers."""
    values = [value for value, *_ in answers]
    if values and all(isinstance(value, str) for value in values):
        with suppress(ValueError):
            return [float(value) for value in values]
    numeric = all(isinstance(value, Real | Decimal | np.bool_) for value in values)
    return values if values and numeric else None


def _number_codes(answers: list[tuple], numbers: list) -> list[int] | None:
    """Return codes of outcomes that are all numbers, or all ids of the winners; else None."""
    distinct = set(numbers)
    levels = next(
        # Without -1, 0 is a defeat.
        (each for each in _LEVELS if distinct <= set(each) and (-1 not in each or -1 in distinct)),
        None,
    )
    codes = None if levels is None else [levels[value] for value in numbers]
    if not all(number in pair for number, (_, *pair) in zip(numbers, answers, strict=True)):
        return codes
    by_id = [1 if n == first else -1 for n, (_, first, _) in zip(numbers, answers, strict=True)]
    if codes is not None and codes != by_id:
        raise ValueError(
            f"Outcomes {sorted(distinct)} may be the ids of the winners, or say which side won, "
            "and these disagree. Write the outcomes as model_a and model_b."
        )
    return by_id


class _OutcomeReader:
    """Reads the outcomes of a column: names of competitors, words, results and verdicts.

    Parameters
    ----------
    values : list
        All outcomes: whether "a" is the first side or the away team hangs on the others.
    names, sides
        See `outcome_codes`.
    """

    def __init__(self, values: list, names: tuple | None, sides: Sequence) -> None:
        every = (plain_name(name) for side in names or () for name in side)
        self._competitors = {name for name in every if type(name).__hash__ is not None}
        self._column_codes, self._word_codes = _side_codes(sides), _side_codes([*sides, *_SIDES])
        texts = {value for value in values if isinstance(value, str)}
        plain = set(map(plain_name, texts))
        if "h" in plain and plain <= {"h", "d", "a"} and not plain & self._competitors:
            self._word_codes = {"h": 1, "d": 0, "a": -1}  # home, draw, away
        scores = {plain_name(text) for text in texts if _SCORE.fullmatch(text)}
        self._results = _RESULTS if scores <= set(_RESULTS) else {}
        self._codes: dict[Any, int] = {}

    def code(self, value: Any, first: Any, second: Any) -> int | None:
        """Return the code of an outcome; None if it is a side's word and another item's name."""
        plain = plain_name(value)
        if type(plain).__hash__ is None:  # a list or record
            return _side_by_name(value, plain, first, second) or UNREAD
        if plain not in self._competitors:
            if plain not in self._codes:
                self._codes[plain] = self._word_code(value, plain)
            return self._codes[plain]
        name, word = _side_by_name(value, plain, first, second), self._column_codes.get(plain)
        if word and word != name:
            return None
        return name or word or (0 if _is_tie_word(plain) else UNREAD)

    def _word_code(self, value: Any, plain: Any) -> int:
        """Return the code of an outcome that is no competitor's name."""
        if not isinstance(value, str):
            return 0 if value == 0.5 else UNREAD
        verdict = _VERDICT.fullmatch(value.strip())
        if verdict is not None:
            value, plain = verdict[1], plain_name(verdict[1])
            if plain == "c":
                return 0
        for words in (self._word_codes, self._results):
            if plain in words:
                return words[plain]
        if _BOTH_BAD.match(plain):
            return BOTH_BAD
        return 0 if _is_tie_word(plain) else self._comparison_code(value)

    def _comparison_code(self, value: str) -> int:
        """Return the code of a text such as A>B or B=A."""
        parts = _COMPARED.fullmatch(value.strip())
        first, sign, second = parts.groups() if parts else ("", "=", "")
        code = self._word_codes.get(plain_name(first), 0)
        if not code or code != -self._word_codes.get(plain_name(second), 0):
            return UNREAD
        return {">": code, "<": -code, "=": 0}[sign[0]]


def _side_by_name(value: Any, plain: Any, first: Any, second: Any) -> int:
    """Return 1 or -1 where a value is the name of one side, 0 where of none or of both."""
    if first == second and plain == plain_name(first):
        return 1
    side = int(value == first) - int(value == second)
    return side or int(plain == plain_name(first)) - int(plain == plain_name(second))


def _is_tie_word(plain: Any) -> bool:
    """Return whether a word stands for a tie."""
    return isinstance(plain, str) and _TIE.match(plain) is not None


def _side_codes(sides: Sequence) -> dict[str, int]:
    """Return 1 or -1 for each word that stands for a side."""
    words: dict[str, int] = {}
    for pair in sides:
        first_word, second_word = map(plain_name, pair)
        if first_word != second_word and first_word not in words and second_word not in words:
            words.update({first_word: 1, second_word: -1})
    return words


# -- messages ----------------------------------------------------------------------------------


def _rows_with_outcome(values: list, codes: np.ndarray, has_ties: bool) -> np.ndarray:
    """Return the rows that have an outcome, and warn of the others with their number."""
    missing, unread = codes == MISSING, codes == UNREAD
    ties = (codes == 0) & (not has_ties)
    some = most_frequent(values[i] for i in np.flatnonzero(unread))
    reasons = {
        "without an outcome (if these are ties, write 'tie' there)": missing,
        f"whose outcome is neither side nor a tie, such as {some}": unread,
        "ties (ties=False)": ties,
    }
    dropped = missing | unread | ties
    if dropped.any():
        parts = [f"{rows.sum()} {reason}" for reason, rows in reasons.items() if rows.any()]
        warn(
            f"{dropped.sum()} of {len(values)} duels are left out, first in row "
            f"{dropped.argmax()}: {'; '.join(parts)}. Drop them from judges, order and such too."
        )
    return np.flatnonzero(~dropped)


def most_frequent(values: Iterable) -> str:
    """Return the three most frequent values, with their numbers, as a text."""
    counts = Counter(map(repr, values)).most_common(3)
    return ", ".join(f"{value} ({count})" for value, count in counts)


def unread_outcomes_message(values: Sequence, codes: np.ndarray) -> str:
    """Return the message for unread outcomes where all that are read are wins of one side."""
    unread = [values[i] for i in np.flatnonzero(codes == UNREAD).tolist()]
    missing = ""
    if len(unread) < len(codes):
        read = [
            f"wins of the {name}"
            for code, name in ((1, "first"), (-1, "second"))
            if (codes == code).any()
        ]
        won = f"only {read[0]}" if read else "no winner"
        missing = f", and all others hold {won}, so that these may well be what is missing"
    return (
        f"{len(unread)} of {len(values)} outcomes are neither side nor a tie, such as "
        f"{most_frequent(unread)}{missing}. Encode them (1: the first won, 0: the second, 0.5: a "
        f"tie), or drop such rows.{_score_hint(unread)}"
    )


def _score_hint(values: Iterable[Any]) -> str:
    """Return a sentence on outcomes that are scores, such as "2-1"; empty for others."""
    if not any(isinstance(each, str) and _SCORE.fullmatch(each) for each in values):
        return ""
    return (
        " They look like scores, which no rule tells apart from other texts: make numbers of both "
        "sides' and give numpy.sign(of_the_first - of_the_second) as the outcome."
    )


def _no_winner_message(values, names, sides):
    """Return the message for outcomes of which none says who won."""
    some = ", ".join(list(dict.fromkeys(map(repr, values)))[:5])
    called = " or ".join(repr(side) for side in [*sides, *_SIDES][0])
    of_names = "" if names is None else "the name of either item, "
    remedy = " Names need ids=, the columns that hold them." if names is None else ""
    return (
        "Outcomes of duels must be in {0, 1}, {-1, 1} or booleans (1: the first won), -1, 0 and 1 "
        f"or 0, 0.5 and 1 with ties, or words: {of_names}{called}, 'left' or 'right', 'tie'. Got "
        f"values such as [{some}], and none says who won.{remedy} Translate other words, as by "
        f"column.map({{{values[0]!r}: 1, ...}}).{_score_hint(values)}"
    )
