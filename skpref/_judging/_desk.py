"""Votes on items: which question a judge gets, what the page shows, what is told of an answer."""

import contextlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from markdown_it import MarkdownIt

from skpref._judging._board import voting_progress_html
from skpref._judging._items import ItemSource, JudgedItem, is_inside
from skpref._judging._planning import Planner, PlanTask, VoteForm, VoteGoals, duels_of
from skpref._judging._store import Vote, VoteQuestion, VoteStore, item_key
from skpref._utils import csv_text, printable_text
from skpref.data import DuelScale
from skpref.plotting import winner_position
from skpref.widgets import LAST_ANSWERS, WAYS, duel_choices, question_prompt

# The question that is shown, and the one after it, whose pictures a browser loads meanwhile.
_OPEN = 2
# Questions between a question and its repetition, so that the answer is not remembered.
_APART = 8


class VoteDesk:
    """Hands out questions on items to judges and takes their answers.

    Parameters
    ----------
    store : VoteStore
    source : ItemSource
    form : VoteForm
    goals : VoteGoals, default=VoteGoals()
    features : ndarray of shape (n_competitors, n_features), optional
    plans : bool, default=True
        Whether a process beside this one chooses the pairs; otherwise those shown least are asked.
    prompt : str, optional
        What is asked, above the items.
    """

    def __init__(
        self,
        store: VoteStore,
        source: ItemSource,
        form: VoteForm,
        goals: VoteGoals = VoteGoals(),  # noqa: B008 - a tuple
        *,
        features: Any = None,
        plans: bool = True,
        prompt: str | None = None,
    ) -> None:
        held = VoteForm(*store.keep_setting("form", form))
        if held != form:
            raise ValueError(
                f"got questions of the form {form}; the votes in {store.path} are of the form "
                f"{held}, and one file holds one form. Go on with that, or give another --file."
            )
        self.store, self.source, self.form = store, source, form
        self.path, self.title = store.path, source.folder.name
        self.exports = {"votes.csv": self.export_csv, "votes.json": self.export_json}
        self._goals, self._features, self._prompt = goals, features, prompt
        numbers = store.item_numbers([item.name for item in source.items])
        self._items = {numbers[item.name]: item for item in source.items}
        self._place = {name: k for k, name in enumerate(source.competitors)}
        # Items of each prompt by their competitor: what may meet.
        self._of_prompt: dict[str, dict[str, list[int]]] = {}
        for number, item in self._items.items():
            of_prompt = self._of_prompt.setdefault(item.prompt, {})
            of_prompt.setdefault(item.competitor, []).append(number)
        # A set of few items is a duel without ties.
        self._choices = duel_choices(DuelScale(ties=form.size == 2, levels=1 + form.grades))
        self.planner = Planner(self.make_task) if plans else None

    def board_html(self) -> str:
        """Return how the votes stand, as a part of a page."""
        return voting_progress_html(self)

    def close(self) -> None:
        """End the process that plans, and close the store."""
        if self.planner is not None:
            self.planner.close()
        self.store.close()

    # -- which question --------------------------------------------------------------------

    def _open_questions(self, judge: str) -> list[VoteQuestion]:
        """Return the open questions of a judge, after new ones were opened up to their number."""
        with self.store.transaction():
            self.store.add_judge(judge)
            for question in self.store.open_questions(judge):
                if not all(number in self._items for number in question.items):
                    self.store.withdraw_question(question.number)  # a file is gone
            while len(questions := self.store.open_questions(judge)) < _OPEN:
                if not self._open_question(judge):
                    break
            return questions[:_OPEN]

    def _open_question(self, judge: str) -> bool:
        """Open the next question for a judge, and return whether there was one left."""
        rng = np.random.default_rng([self.store.count_questions(judge), *judge.encode()])
        if rng.random() < self._goals.checks:
            earlier = self.store.repeatable_questions(judge)[:-_APART]
            if earlier:
                question = earlier[rng.integers(len(earlier))]
                self.store.add_question(judge, question.items[::-1], question.number)
                return True
        items = self._choose_items(judge, rng)
        if items is None:
            return False
        self.store.add_question(judge, [items[k] for k in rng.permutation(len(items))])
        return True

    def _choose_items(self, judge: str, rng: np.random.Generator) -> list[int] | None:
        """Return the items of the next question of a judge; None if none is left."""
        items: list[int] | None = None

        def is_allowed(pair: tuple[int, int]) -> bool:
            nonlocal items
            items = self._items_of_pair(judge, pair, rng)
            return items is not None

        if self.planner is not None:
            self.planner.take_pair(is_allowed)
        if items is None:
            items = self._least_shown_pair(judge, rng)
        if items is None or self.form.size == 2:
            return items
        return self._fill_set(items, judge)

    def _items_of_pair(self, judge, pair, rng):
        """Return an item of each of two competitors that a judge may get together; None if none."""
        names = [self.source.competitors[place] for place in pair]
        both = [of for of in self._of_prompt.values() if all(name in of for name in names)]
        asked = self.store.asked_keys(judge)
        for k in rng.permutation(len(both)):
            items = [int(rng.choice(both[k][name])) for name in names]
            if item_key(items) not in asked and self.store.is_free(items, judge):
                return items
        return None

    def _least_shown_pair(self, judge, rng):
        """Return the least shown two items that a judge may get together; None if none."""
        n_shown = self.store.count_shown()
        luck = rng.random(len(self._items))
        order = [
            number
            for _, _, number in sorted(
                (n_shown.get(number, 0), luck[k], number) for k, number in enumerate(self._items)
            )
        ]
        for number in order:
            item = self._items[number]
            for other in order:
                opponent = self._items[other]
                meets = item.prompt == opponent.prompt and item.competitor != opponent.competitor
                if meets and self.store.is_free([number, other], judge):
                    return [number, other]
        return None

    def _fill_set(self, items, judge):
        """Return a pair with further items of its prompt, those of the plan first; None if none."""
        n_shown = self.store.count_shown()
        of_prompt = self._of_prompt[self._items[items[0]].prompt]
        names = {self._items[number].competitor for number in items}
        partners = Counter[str]()
        for pair in self.planner.plan.pairs if self.planner else ():
            pair_names = {self.source.competitors[place] for place in pair}
            if pair_names & names:
                partners.update(pair_names - names)
        rest = [numbers[0] for name, numbers in of_prompt.items() if name not in names]
        rest.sort(key=lambda k: (-partners[self._items[k].competitor], n_shown.get(k, 0), k))
        for start in range(len(rest)):
            whole = items + rest[start : start + self.form.size - 2]
            if self.store.is_free(whole, judge):
                return whole
        return items if not rest else None

    def make_task(self) -> PlanTask | None:
        """Return the task of the next plan: all votes and what is allowed; None without votes."""
        votes = [each for each in self.store.votes() if self._is_counted(each)]
        if not votes:
            return None
        shown = [self._competitors_of(vote.question.items) for vote in votes]
        pending = [self._competitors_of(items) for items in self.store.pending_items()]
        return PlanTask(
            self.source.competitors,
            self._features,
            self.form,
            shown,
            [vote.outcome for vote in votes],
            [vote.question.judge for vote in votes],
            [self._items[vote.question.items[0]].prompt for vote in votes],
            [(pair[0], pair[1]) for pair in pending if None not in pair],
            self._excluded_pairs(),
            None if self._goals.until is None else 1.0 - self._goals.until,
            self._goals.top,
        )

    def _is_counted(self, vote: Vote) -> bool:
        """Return whether a vote is no repetition, and all of its items are still there."""
        is_repeat = vote.question.repeats is not None
        return not is_repeat and all(number in self._items for number in vote.question.items)

    def _competitors_of(self, items):
        """Return the positions of the competitors of items, None for an item that is gone."""
        return [
            self._place[self._items[number].competitor] if number in self._items else None
            for number in items
        ]

    def _excluded_pairs(self):
        """Return pairs of competitors that cannot be asked: of no common prompt, or all asked."""
        if len(self._of_prompt) > 1:
            together = {
                pair
                for of_prompt in self._of_prompt.values()
                for pair in combinations(sorted(self._place[name] for name in of_prompt), 2)
            }
            return [
                pair for pair in combinations(range(len(self._place)), 2) if pair not in together
            ]
        asked = [self.store.asked_keys(judge) for judge in self.store.judge_names()]
        common = set.intersection(*asked) if asked and self.form.size == 2 else set()
        pairs = [self._competitors_of(map(int, key.split(","))) for key in common]
        return [(a, b) for a, b in pairs if a is not None and b is not None]

    # -- what the page shows ---------------------------------------------------------------

    def page_of_judge(self, judge: str, notice: str = "") -> dict:
        """Return what a judge is shown, as a dict: the question, and the status of the vote."""
        end = self._end_reason(judge)
        questions = [] if end else self._open_questions(judge)
        if questions:
            question = self._question_message(questions)
        else:
            end = end or "There is no further question for you: you have seen all pairs."
            question = self._final_page()
        goal = self._goals.votes if not self.store.is_going_on(judge) else None
        status = {
            "told": self.store.count_votes(judge),
            "goal": None,
            "of_all": self.store.count_votes(),
            "goal_of_all": goal,
            "notice": notice,
            "end": end,
            "course": None,
            "history": [
                self._history_entry(vote) for vote in self.store.votes(judge, LAST_ANSWERS)
            ],
        }
        return {"question": question, "status": status}

    def _question_message(self, questions):
        """Return the first question as the page shows it, with the items of those after it."""
        shown = questions[0].items
        kind = "duel" if len(shown) == 2 else "set"
        prompt = self._prompt or question_prompt(kind, self.form.answer)
        return {
            "kind": kind,
            "number": questions[0].number,
            "prompt": prompt,
            "context": self._items[shown[0]].prompt,
            "items": [self._stimulus(number) for number in shown],
            "answer": self.form.answer,
            "choices": self._choices if kind == "duel" else [],
            "comment": True,
            "ahead": [self._stimulus(k) for each in questions[1:] for k in each.items],
        }

    def _stimulus(self, number: int) -> dict:
        """Return an item as the page shows it: the address of its file, or its text."""
        item = self._items[number]
        if item.mime.startswith("text/"):
            if item.path is not None and not is_inside(item.path, self.source.folder):
                return {"mime": "text/plain", "text": "This file is not in the folder any more."}
            return text_stimulus(item)
        return {"mime": item.mime, "url": f"items/{number}"}

    def _history_entry(self, vote: Vote) -> dict:
        """Return what a vote chose, as the strip of the last answers shows it."""
        number = self._winner_of(vote)
        if number is None:
            return {"text": "no difference"}
        item = self._items.get(number)
        if item is None:
            return {"text": "a file that is gone"}
        picture = {"url": f"items/{number}"} if item.mime.startswith("image/") else {}
        return {"text": printable_text(item.name), **picture}

    def _final_page(self):
        """Return the page that ends the run: the best item, if it is known by now."""
        view = None if self.planner is None else self.planner.board
        page = {"kind": "end", "number": -1, "prompt": "Thank you.", "items": []}
        if view is None or view.board.n_components > 1:
            return page
        name = str(view.board.names[0])
        page |= {"prompt": "The best so far", "facts": printable_text(name)}
        numbers = [k for k, item in self._items.items() if item.competitor == name]
        return page | {"items": [self._stimulus(numbers[0])] if len(numbers) == 1 else []}

    def _end_reason(self, judge: str) -> str:
        """Say why this is the end; empty if it is not."""
        if self.store.is_going_on(judge):
            return ""
        n_votes, until = self.store.count_votes(), self._goals.until
        if self._goals.votes is not None and n_votes >= self._goals.votes:
            return f"All {n_votes} votes are in."
        if until is not None and self.planner and self.planner.plan.best is not None:
            best = printable_text(self.planner.plan.best)
            return f"The best is known with a probability of at least {until:g}: {best}."
        return ""

    # -- what a page sends -----------------------------------------------------------------

    def handle_message(self, judge: str, message: Mapping) -> dict:
        """Do what a message of the page asks for, and return what it shows then.

        Raises
        ------
        ValueError
            If the message is none that a page sends.
        """
        kind, notice = message.get("type"), ""
        with self.store.transaction():
            if kind == "show":
                self.store.renew_leases(judge)
            elif kind == "go_on":
                self.store.add_judge(judge)
                self.store.resume_judge(judge)
            elif kind == "undo":
                if not self.store.reopen_last(judge):
                    notice = "There is nothing to take back."
            elif kind in ("answer", "skip"):
                notice = self._close_question(judge, message)
            else:
                raise ValueError(f"got a message of type {kind!r}.")
            if not self._end_reason(judge):
                self._open_questions(judge)  # which reach the disk together with the answer
        if self.planner is not None and kind in ("answer", "undo"):
            self.planner.request_plan()
        return self.page_of_judge(judge, notice)

    def _close_question(self, judge, message):
        """Record an answer or a skip; return a notice for the page, often empty."""
        questions = self.store.open_questions(judge)
        question = next((q for q in questions if q.number == message.get("number")), None)
        if question is None:
            return "This question was answered before; that answer counts."
        if message["type"] == "skip":
            self.store.record_skip(question.number)
            return ""
        outcome = self._check_outcome(message.get("outcome"), len(question.items))
        comment = message.get("comment") or ""
        if not isinstance(comment, str):
            raise ValueError(f"got the comment {comment!r}; a text is allowed. Leave it out.")
        seconds = message.get("seconds")
        is_time = isinstance(seconds, int | float) and math.isfinite(seconds)
        seconds = max(float(seconds), 0.0) if is_time else None
        self.store.record_answer(question.number, outcome, comment, seconds)
        return ""

    def _check_outcome(self, outcome: Any, n_items: int) -> Any:
        """Return an outcome that is allowed; ValueError for others."""
        if n_items == 2 and self.form.size == 2:
            choices = [repr(each["outcome"]) for each in self._choices]
            if repr(outcome) in choices:  # by repr: true is not 1
                return outcome
        elif n_items == 2 and outcome in (0, 1):
            return {"chosen": 1 - int(outcome)}
        elif isinstance(outcome, dict) and outcome.keys() == WAYS[self.form.answer].example.keys():
            places = list(outcome.values())
            if len(set(places)) == len(places) and all(
                type(place) is int and 0 <= place < n_items for place in places
            ):
                return outcome
        raise ValueError(f"got the outcome {outcome!r}, which is no answer to this question.")

    # -- files and exports -----------------------------------------------------------------

    def item_content(self, number: str) -> tuple[str, Path] | None:
        """Return the type and the path of the file of an item; None if there is none now."""
        item = self._items.get(int(number)) if number.isdecimal() else None
        if item is None or item.path is None or item.mime.startswith("text/"):
            return None
        with contextlib.suppress(OSError):
            if is_inside(item.path, self.source.folder) and item.path.is_file():
                return item.mime, item.path.resolve()
        return None

    def agreement(self) -> dict[str, tuple[int, int, float | None]]:
        """Return of each judge how many repetitions she answered as before, of how many, and the
        median of the seconds an answer."""
        votes = self.store.votes()
        winner: dict[int | None, Any] = {
            vote.question.number: self._winner_of(vote) for vote in votes
        }
        table = {}
        for judge in self.store.judge_names():
            own = [vote for vote in votes if vote.question.judge == judge]
            repeats = [vote for vote in own if vote.question.repeats in winner]
            same = [self._winner_of(vote) == winner[vote.question.repeats] for vote in repeats]
            seconds = [vote.seconds for vote in own if vote.seconds is not None]
            median = float(np.median(seconds)) if seconds else None
            table[judge] = (sum(same), len(same), median)
        return table

    def _winner_of(self, vote):
        """Return the number of the item that a vote chose; None for a tie."""
        position = winner_position(vote.outcome)
        return None if position is None else vote.question.items[position]

    def export_csv(self) -> str:
        """Return the votes as a table that `skpref rank` reads; repetitions are left out.

        An answer to a set has a row for each of its duels, under one number of the question. A text
        that a spreadsheet would run begins with an apostrophe.
        """
        prompts, rows = len(self._of_prompt) > 1, []
        heads = ["a", "b", "winner", "judge", *["prompt"] * prompts, "question", "grade"]
        for vote in self.store.votes():
            if not self._is_counted(vote):
                continue
            shown = [self._items[number] for number in vote.question.items]
            for a, b, label in duels_of(shown, vote.outcome):
                winner = "tie" if not label else "a" if label > 0 else "b"
                row = [a.competitor, b.competitor, winner, vote.question.judge]
                row += [a.prompt] * prompts + [vote.question.number, abs(label), vote.seconds]
                rows.append([*row, _iso_time(vote.time), vote.comment])
        return csv_text([*heads, "seconds", "time", "comment"], rows)

    def export_json(self) -> str:
        """Return all answers as JSON, repetitions too: a list of records."""
        records = []
        for vote in self.store.votes():
            if not all(number in self._items for number in vote.question.items):
                continue
            shown = [self._items[number] for number in vote.question.items]
            record: dict[str, Any] = {"question": vote.question.number}
            if len(shown) == 2:
                ((a, b, label),) = duels_of(shown, vote.outcome)
                winner = "tie" if not label else "a" if label > 0 else "b"
                record |= {"a": a.competitor, "b": b.competitor, "winner": winner}
            record |= {
                "items": [item.name for item in shown],
                "outcome": vote.outcome,
                "judge": vote.question.judge,
                "prompt": shown[0].prompt,
                "repeats": vote.question.repeats,
                "seconds": vote.seconds,
                "time": _iso_time(vote.time),
                "comment": vote.comment,
            }
            records.append(record)
        return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


def text_stimulus(item: JudgedItem) -> dict:
    """Return the type and text of an item: HTML and Markdown are shown in a sandbox."""
    text = item.text
    if item.path is not None:
        text = item.path.read_text("utf-8", errors="replace")
    if item.mime == "text/markdown":
        # Tags within it are text, and so are links that would run something.
        return {"mime": "text/html", "text": MarkdownIt("js-default").render(text)}
    return {"mime": item.mime, "text": text}


def _iso_time(seconds: float) -> str:
    """Return seconds since the epoch as a date and time in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
