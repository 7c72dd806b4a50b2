"""From a table of votes to the numbers of a report."""

import contextlib
import sys
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.utils import Bunch

from skpref import PairwisePreferenceRegressor
from skpref._command._report import Report, Table
from skpref._utils import check_number
from skpref.data import read_labels
from skpref.duels import from_votes
from skpref.fitting import UNITS
from skpref.inspection import control_effects, leaderboard, leaderboards, undecided_pairs
from skpref.kernels import Identity, OnColumns

# Variance of what a group does to a competitor, beside that of the competitors; and its bounds.
_GROUP, _GROUP_BOUNDS = 0.1, (1e-4, 10.0)
# Where the search for the order effect may go, in deviations of the competitors.
_ORDER_BOUNDS = (-30.0, 30.0)


def rank_votes(told: Any) -> Report:
    """Read, fit and rank.

    Parameters
    ----------
    told : Namespace
        Of the arguments.

    Raises
    ------
    ValueError, ImportError, OSError
        If the votes cannot be read, or nothing can be said of them.
    """
    check_number("--level", told.level, low=0.0, high=1.0, open_low=True, open_high=True)
    votes = from_votes(
        told.votes,
        told.a,
        told.b,
        _winner(told.winner),
        told.judge,
        told.controls or None,
        both_bad=told.both_bad,
        ties=told.ties == "model",
        missing=told.missing,
        soft=told.soft,
    )
    groups = None
    if told.by is not None:
        votes, groups = _with_groups(votes, told.votes, told.by)
    if told.out is not None:  # what cannot be written is better known before the fit
        told.out.mkdir(parents=True, exist_ok=True)
    more: dict[str, Any] = {"order": votes.order} if told.order else {}
    if told.judge is not None:
        more["judges"] = votes.judges
    if votes.sample_weight is not None:
        more["sample_weight"] = votes.sample_weight
    if told.order:
        votes.params["order_effect_bounds"] = _ORDER_BOUNDS
    model = PairwisePreferenceRegressor(
        **votes.params, random_state=told.seed, verbose=int(told.progress)
    )
    with contextlib.redirect_stdout(sys.stderr):  # the board alone goes to standard output
        model.fit(votes.X, votes.y, **more)
    return _report(told, votes, groups, model)


def _winner(columns: list[str] | None) -> Any:
    if columns is None or len(columns) == 1:
        return columns[0] if columns else None
    return tuple(columns)


def _with_groups(votes: Bunch, source: Any, by: str) -> tuple[Bunch, list]:
    """Votes with the codes of a column as a last column of X, and the values of the codes."""
    found = read_labels(source, by)
    codes = found.codes[votes.rows]
    kept = codes >= 0
    if not kept.any():
        raise ValueError(f"No vote that is left has a value in column {by!r}.")
    X = votes.X if votes.controls else votes.X[:, :, None].astype(np.float64)
    column = np.broadcast_to(codes[:, None, None], (len(codes), 2, 1))
    X = np.concatenate([X, column], axis=2)[kept]
    d = X.shape[2] - 1
    # Without controls the competitors had no column of their own.
    kernel = votes.kernel if votes.controls else OnColumns(Identity(), [0])
    kernel = kernel + ConstantKernel(_GROUP, _GROUP_BOUNDS) * OnColumns(Identity(), [0, d])
    params = {name: value for name, value in votes.params.items() if name != "items"}
    dropped = dict(votes.dropped)
    if not kept.all():
        dropped[f"without a value in column {by!r}"] = len(np.unique(votes.rows[~kept]))
    of_votes = ("y", "judges", "prompts", "times", "order", "rows", "sample_weight")
    parts = {name: None if votes[name] is None else votes[name][kept] for name in of_votes}
    changed = {
        "X": X,
        "kernel": kernel,
        "params": {**params, "kernel": kernel, "id_column": 0},
        "controls": [*votes.controls, by],
        "control_center": np.append(votes.control_center, 0.0),
        "control_scale": np.append(votes.control_scale, 1.0),
        "dropped": dropped,
        "summary": _summary(votes, len(np.unique(votes.rows[kept])), dropped),
    }
    return Bunch(**{**votes, **parts, **changed}), found.values


def _summary(votes: Bunch, n: int, dropped: dict[str, int]) -> str:
    """That of the votes, after some more were left out."""
    said = [f"{n} of {votes.n_read} votes on {len(votes.item_table)} competitors"]
    if dropped:
        said.append("left out: " + ", ".join(f"{many} {why}" for why, many in dropped.items()))
    others = votes.summary.split("; ")[1:]
    return "; ".join([*said, *(each for each in others if not each.startswith("left out: "))])


def _report(told: Any, votes: Bunch, groups: list | None, model: Any) -> Report:
    asked = {"unit": told.unit, "level": told.level}
    drawn = {**asked, "random_state": told.seed}
    board = leaderboard(model, votes, **drawn)
    pairs = undecided_pairs(model, votes, **asked)
    counts = _votes_of(votes)
    controls = [name for name in votes.controls if name != told.by]
    effects = control_effects(model, votes, **asked) if controls else None
    boards = {}
    if groups is not None:
        boards = {
            groups[int(code)]: found
            for code, found in leaderboards(model, told.by, votes, **drawn).items()
        }
    return Report(
        title=told.title or told.votes.name,
        source=told.votes.name,
        summary=votes.summary,
        dropped=votes.dropped,
        n_votes=len(np.unique(votes.rows)),
        n_read=votes.n_read,
        unit=told.unit,
        unit_in_words=UNITS[told.unit],
        level=told.level,
        board=board,
        table=_board_table(board, counts, told.level),
        undecided=_pairs_table(pairs),
        n_pairs=len(pairs.first) + pairs.n_decided,
        effects=effects,
        controls=None if effects is None else _controls_table(effects),
        by=told.by,
        groups={name: _board_table(found, None, told.level) for name, found in boards.items()},
        judges=_judges_table(model) if told.judge is not None else None,
        learned=_learned(model, board),
    )


def _votes_of(votes: Bunch) -> dict[Any, int]:
    """Number of votes about each competitor, by its name."""
    ids = votes.X if votes.X.ndim == 2 else votes.X[:, :, 0]
    ids, names = ids.astype(np.intp), votes.item_table.names
    # Of a soft vote there is a row for each outcome.
    once = np.unique(votes.rows, return_index=True)[1]
    count = np.bincount(ids[once].ravel(), minlength=len(names))
    return dict(zip(names.tolist(), count.tolist(), strict=True))


def _board_table(board: Bunch, counts: dict | None, level: float) -> Table:
    columns: dict[str, Any] = {"rank": np.arange(1, len(board.names) + 1), "name": board.names}
    if counts is not None:
        columns["votes"] = np.array([counts[name] for name in board.names])
    for name in ("utility", "lower", "upper", "rank_lower", "rank_upper", "probability_best"):
        columns[name] = board[name]
    return Table(columns)


def _pairs_table(pairs: Bunch) -> Table:
    names = ("first", "second", "probability", "margin", "lower", "upper")
    return Table({name: pairs[name] for name in names})


def _controls_table(effects: Bunch) -> Table:
    return Table(
        {
            "control": effects.names,
            "slope": effects.slope,
            "lower": effects.lower,
            "upper": effects.upper,
            "probability_positive": effects.probability_positive,
            "spread": effects.spread,
            "effect_of_spread": effects.slope * effects.spread,
            "tau": effects.tau,
            "moved": effects.moved,
        }
    )


def _judges_table(model: Any) -> Table | None:
    judges = model.judges_
    if judges is None:
        return None
    order = np.argsort(-judges.n_answers, kind="stable")
    return Table(
        {
            "judge": judges.ids[order],
            "votes": judges.n_answers[order],
            "reliability": judges.reliability[order],
            "probability_random": judges.probability_random[order],
            "probability_adversarial": judges.probability_adversarial[order],
        }
    )


def _learned(model: Any, board: Bunch) -> dict[str, float]:
    """What the answers say of ties and of who is shown first, in units."""
    found = {}
    for name in ("tie_threshold", "order_effect"):
        value = getattr(model, f"{name}_", None)
        if value is not None and (name != "order_effect" or value != 0.0):
            found[name] = float(value) / board.unit_length
    return found
