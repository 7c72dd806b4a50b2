"""Which answers a page offers to a question, and what it says above them."""

from typing import Any, NamedTuple

from skpref.data import DuelScale

# How clearly an item is better, by the number of grades.
_GRADES = (
    ("Better",),
    ("Slightly better", "Clearly better"),
    ("Slightly better", "Clearly better", "Far better"),
)
_PROMPTS = {
    "duel": "Which is better?",
    "line": "Move the slider to the best place.",
    "plane": "Which is the best?",
}


class Way(NamedTuple):
    """How a set of more than two items is answered.

    Attributes
    ----------
    prompt : str
    example : dict
        An answer of this way, as `tell` takes it.
    """

    prompt: str
    example: dict


WAYS = {
    "best": Way("Which is the best?", {"chosen": 0}),
    "best_worst": Way("Which is the best? Then: which is the worst?", {"chosen": 0, "worst": 1}),
    "ranking": Way("Choose the best, then the next best, and so on.", {"ranking": [0, 1]}),
}


def duel_choices(scale: DuelScale) -> list[dict]:
    """Return the answers to a duel, from the clearest win of the first item to the second's.

    Returns
    -------
    list of dict
        ``outcome`` as `tell` takes it; its ``label``; the ``side`` of the item that wins, None
        of a tie.
    """
    labels = [f"Better, grade {grade}" for grade in range(1, scale.levels + 1)]
    if scale.levels <= len(_GRADES):
        labels = [*_GRADES[scale.levels - 1]]
    grades = [*enumerate(labels, start=1)]
    first = [{"outcome": grade, "label": label, "side": 0} for grade, label in grades[::-1]]
    second = [
        {"outcome": 0 if grade == 1 else -grade, "label": label, "side": 1}
        for grade, label in grades
    ]
    tie = {"outcome": "tie", "label": "No difference", "side": None}
    return [*first, *[tie] * scale.ties, *second]


def question_prompt(kind: str, way: str) -> str:
    """Return the text above a question of a kind; of a set by the way in which it is answered."""
    return WAYS[way].prompt if kind == "set" else _PROMPTS[kind]


def largest_set_size(kind: Any, size: Any) -> int:
    """Return the size of the largest set that these arguments of `ask` allow; 0 for none."""
    if isinstance(kind, str):
        return (size or 2) if kind == "set" else 0
    return (size or {}).get("set", 4) if "set" in kind else 0
