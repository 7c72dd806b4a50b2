"""What to ask next and how the board stands, by a process beside the server."""

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import foldnorm, norm

from skpref._estimator import PairwisePreferenceRegressor
from skpref._utils import printable_text
from skpref.active import StoppingRule, next_pairs
from skpref.data import ItemTable
from skpref.fitting import without_component_warnings
from skpref.inspection import judge_reliability, leaderboard, undecided_pairs

# Votes that are planned at once: more than come while the next plan is made.
_PLANNED = 100


class VoteForm(NamedTuple):
    """What a question is and how it is answered.

    Attributes
    ----------
    size : int
        Items of a question.
    answer : {"best", "best_worst"}
        What is told of more than two.
    grades : bool
        Whether "much better" is told from "better".
    """

    size: int = 2
    answer: str = "best"
    grades: bool = False


class VoteGoals(NamedTuple):
    """What questions are asked for, and when they end.

    Attributes
    ----------
    checks : float
        Share of questions that repeat an earlier one of the same judge, the sides exchanged.
    votes : int or None
        Votes at which to end.
    until : float or None
        Probability with which the best must be known to end.
    top : int or None
        How many first ones the questions are to tell from the rest. None: they are about all
        ranks, or with `until` about the first one.
    """

    checks: float = 0.0
    votes: int | None = None
    until: float | None = None
    top: int | None = None


class PlanTask(NamedTuple):
    """All that a plan is made of; competitors by their positions.

    Attributes
    ----------
    competitors : list of str
    features : ndarray of shape (n_competitors, n_features) or None
    form : VoteForm
    shown : list of list of int
        Of each vote the competitors, as they were shown.
    outcomes : list
        As `tell` of an optimizer takes them.
    judges, prompts : list of str
        Of each vote.
    pending : list of tuple
        Pairs that somebody is about to vote on.
    excluded : list of tuple
        Pairs that nobody can vote on.
    level : float or None
        Largest probability that a best is named that is none; None: none is named.
    top : int or None
        How many first ones the votes are to tell from the rest; None: they are for all ranks, or
        where a best is named for that one.
    """

    competitors: list[str]
    features: Any
    form: VoteForm
    shown: list[list[int]]
    outcomes: list[Any]
    judges: list[str]
    prompts: list[str]
    pending: list[tuple[int, int]]
    excluded: list[tuple[int, int]]
    level: float | None
    top: int | None = None


class VotePlan(NamedTuple):
    """Pairs to vote on, and what the votes settle.

    Attributes
    ----------
    pairs : list of tuple
        First the pair whose vote is expected to tell most; a pair stands as often as it has votes.
    best : str or None
        Who is named as the best, however often one looks; see `StoppingRule`.
    """

    pairs: list[tuple[int, int]]
    best: str | None


class BoardView(NamedTuple):
    """How the votes stand.

    Attributes
    ----------
    n_votes : int
    board : Bunch
        As `leaderboard` gives it.
    undecided : Bunch
        As `undecided_pairs` gives it.
    judges : Bunch or None
        As `judge_reliability` gives it; None of a single judge.
    votes_needed : (int, int) or None
        Between how many votes it still takes, one time in two, until the first place is settled;
        None: nobody knows.
    """

    n_votes: int
    board: Any
    undecided: Any
    judges: Any
    votes_needed: tuple[int, int] | None


def fit_votes(task: PlanTask) -> Any:
    """Return the model fitted to the votes of a task."""
    table = (
        ItemTable.from_names(task.competitors)
        if task.features is None
        else ItemTable(task.features, names=task.competitors)
    )
    if task.form.size > 2:
        model = PairwisePreferenceRegressor(items=table, random_state=0)
        X, y = _read_set_ranks(task)
    else:
        grades = (1.0,) if task.form.grades else None
        model = PairwisePreferenceRegressor(
            items=table, tie_threshold=0.5, grade_thresholds=grades, random_state=0
        )
        X, y = _labelled_duels(task)
    metadata: dict[str, Any] = {}
    if len(set(task.judges)) > 1:
        metadata["judges"] = task.judges
    if len(set(task.prompts)) > 1:
        metadata["prompts"] = task.prompts
    with warnings.catch_warnings(), without_component_warnings():
        warnings.simplefilter("ignore")  # the board says how sure it is
        return model.fit(X, y, **metadata)


def _labelled_duels(task):
    """Return the duels of a task and their labels, one of which is below 0.

    If the second never won, a duel is turned round; else 0 would be read as its win.
    """
    X, y = np.array(task.shown), np.array([duel_label(each) for each in task.outcomes])
    if not y.any():
        raise ValueError(f"All {len(y)} votes are ties, which put nothing above anything else.")
    if y.min() >= 0:
        won = int(np.argmax(y > 0))
        X[won], y[won] = X[won, ::-1].copy(), -y[won]
    return X, y


def duel_label(outcome: Any) -> int:
    """Return the label of an answer to a duel: its sign says who won, its size how clearly."""
    if outcome == "tie":
        return 0
    return -1 if outcome == 0 else int(outcome)


def _read_set_ranks(task):
    """Return competitors and ranks of the sets of a task, padded at the end of short ones."""
    size = max(map(len, task.shown))
    X = np.full((len(task.shown), size), -1)
    ranks = np.zeros((len(task.shown), size), dtype=int)
    for row, (shown, outcome) in enumerate(zip(task.shown, task.outcomes, strict=True)):
        X[row, : len(shown)] = shown
        ranks[row, : len(shown)] = 2
        ranks[row, outcome["chosen"]] = 1
        if "worst" in outcome:
            ranks[row, outcome["worst"]] = 3
    return X, ranks


def duels_of(shown: Sequence[Any], outcome: Any) -> list[tuple[Any, Any, int]]:
    """Return the duels that an answer states: first, second, and the label of the outcome.

    Of a set the best beats each of the others, and each of these the worst.
    """
    if not isinstance(outcome, dict):
        return [(shown[0], shown[1], duel_label(outcome))]
    best, worst = outcome["chosen"], outcome.get("worst")
    others = [k for k in range(len(shown)) if k not in (best, worst)]
    pairs = [(best, k) for k in others]
    if worst is not None:
        pairs += [(k, worst) for k in (best, *others)]
    return [(shown[a], shown[b], 1) for a, b in pairs]


def make_plan(task: PlanTask, model: Any) -> VotePlan:
    """Return the plan of a task: the votes to hand out next, and the best if it is settled."""
    return VotePlan(_plan_pairs(task, model), _find_settled_best(task))


def _plan_pairs(task, model):
    """Return the pairs to vote on next, each as often as votes on it are planned."""
    n = len(task.competitors)
    mask = np.triu(np.ones((n, n), dtype=bool), 1)
    for a, b in task.excluded:
        mask[min(a, b), max(a, b)] = False
    if not mask.any():
        return []
    # Where a best is named, the first place is what ends it.
    top = 1 if task.top is None and task.level is not None else task.top
    goal = {"goal": "ranks"} if top is None else {"goal": "members", "k": top}
    allowed, pending = np.argwhere(mask) if task.excluded else None, task.pending or None
    try:
        plan = next_pairs(model, _PLANNED, **goal, allowed=allowed, pending=pending)
    except ValueError:  # nothing is left to learn: any pair will do
        return []
    return [(a, b) for a, b in np.repeat(plan.position, plan.votes, axis=0).tolist()]


def _find_settled_best(task):
    """Return the competitor that the stopping rule names as the best, if any."""
    if task.level is None:
        return None
    rule = StoppingRule(task.level, items=range(len(task.competitors)))
    duels = [  # of each answer: others depend on it
        duels_of(shown, outcome)[0]
        for shown, outcome in zip(task.shown, task.outcomes, strict=True)
    ]
    scores = [0.5 + 0.5 * np.sign(label) for _, _, label in duels]
    rule.update([[a, b] for a, b, _ in duels], scores)
    return None if rule.best is None else task.competitors[rule.best]


def make_board(task: PlanTask, model: Any) -> BoardView:
    """Return the board of the votes, its undecided pairs, and the judges."""
    board = leaderboard(model)
    undecided = undecided_pairs(model, average=False)
    judges = judge_reliability(model) if len(set(task.judges)) > 1 else None
    for each in (board, undecided, judges):
        if each is not None:
            each["frame"] = None  # which other processes need not know how to read
    return BoardView(len(task.shown), board, undecided, judges, votes_needed(board, undecided))


def votes_needed(board: Any, undecided: Any) -> tuple[int, int] | None:
    """Return quartiles of the votes that it still takes until the first place is settled.

    A vote on an even pair adds φ(0)²/(Φ(0)Φ(0))/2 = 1/π to the precision of its margin in units of
    an item's noise. A margin m is settled at the level of the table once its precision is z²/m².
    The votes tell m in part only: at the upper quartile of |m| fewer votes are needed, at the lower
    one more. None while groups never met.
    """
    if board.n_components > 1:
        return None
    z = norm.isf(0.5 * (1.0 - undecided.level))
    first = (undecided.first == board.names[0]) | (undecided.second == board.names[0])
    deviation = (undecided.upper[first] - undecided.lower[first]) / (2.0 * z)
    scaled = np.abs(undecided.margin[first]) / deviation
    quartiles = foldnorm.ppf([[0.75], [0.25]], scaled, scale=deviation)
    precision = np.maximum((z / quartiles) ** 2 - deviation**-2, 0.0)
    fewest, most = np.pi * precision.sum(axis=1)
    return round(fewest), round(most)


# -- the process ---------------------------------------------------------------------------


def _end_with_server() -> None:
    """End this process once the server has ended, also in the middle of a plan."""
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(0)


def _serve_plans(pipe: Connection) -> None:
    """Answer each task from a pipe with a plan and a board, until the server is gone."""
    with suppress(OSError, AttributeError):
        os.nice(5)  # the server's answers come first
    threading.Thread(target=_end_with_server, daemon=True).start()
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            task = pipe.recv()
            try:
                model = fit_votes(task)
                pipe.send(make_plan(task, model))
                pipe.send(make_board(task, model))
            except Exception as error:  # told on the board; the questions go on at random
                pipe.send(printable_text(f"{type(error).__name__}: {error}"))


class Planner:
    """Keeps the plan and the board up to date while people vote.

    Parameters
    ----------
    make_task : callable
        Returns the `PlanTask` of now, or None without votes.
    """

    def __init__(self, make_task: Callable[[], PlanTask | None]) -> None:
        self._make_task = make_task
        self._changed = threading.Event()
        self._plan_lock = threading.Lock()
        self.plan = VotePlan([], None)
        self.board: BoardView | None = None
        self.trouble = ""
        self._ends = False
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve_plans, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._thread = threading.Thread(target=self._plan_after_votes, daemon=True)
        self._thread.start()
        self.request_plan()

    def request_plan(self) -> None:
        """Ask for a new plan, which begins once the one that is being made is ready."""
        self._changed.set()

    def close(self) -> None:
        """End the process."""
        self._ends = True
        self._changed.set()
        self._pipe.close()
        self._process.terminate()

    def take_pair(self, is_allowed: Callable[[tuple[int, int]], bool]) -> tuple[int, int] | None:
        """Take the first pair of the plan that is allowed out of it; None if there is none."""
        with self._plan_lock:
            for k, pair in enumerate(self.plan.pairs):
                if is_allowed(pair):
                    del self.plan.pairs[k]
                    return pair
        return None

    def _plan_after_votes(self):
        """Send a task to the process after each change, until the planner is closed."""
        with suppress(EOFError, OSError):
            while not self._ends:
                self._changed.wait()
                self._changed.clear()
                task = None if self._ends else self._make_task()
                if task is not None:
                    self._pipe.send(task)
                    self._receive_plan_and_board()

    def _receive_plan_and_board(self):
        """Wait for the plan and the board of a task and keep them, or the text of an error."""
        for _ in range(2):
            result = self._pipe.recv()
            if isinstance(result, str):
                self.trouble = result
                return
            if isinstance(result, VotePlan):
                with self._plan_lock:
                    self.plan = result
            else:
                self.board, self.trouble = result, ""
