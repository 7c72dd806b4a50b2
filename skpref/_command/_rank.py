"""From a table of votes to the numbers of a report."""

import contextlib
import sys
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpref import PairwisePreferenceRegressor
from skpref._command._report import Report, Table, as_options
from skpref._utils import check_number
from skpref.duels import from_votes
from skpref.fitting import UNITS
from skpref.inspection import control_effects, leaderboard, leaderboards, undecided_pairs

# Where the search for the order effect may go, in deviations of the competitors.
_ORDER_BOUNDS = (-30.0, 30.0)

# More groups than this need as many votes each.
_MANY_GROUPS, _FEW_VOTES = 20, 5


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
        by=told.by,
        soft=told.soft,
    )
    _check_groups(votes)
    if told.out is not None:  # what cannot be written is better known before the fit
        if told.out.exists() and not told.out.is_dir():
            raise ValueError(f"--out must be a folder; {str(told.out)!r} is a file.")
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
    return _report(told, votes, model)


def _check_groups(votes: Bunch) -> None:
    """Refuse groups that are nearly one a vote before the time of a fit is spent on them."""
    n = 0 if votes.groups is None else len(votes.groups)
    n_votes = len(np.unique(votes.rows))
    if n > _MANY_GROUPS and n_votes < _FEW_VOTES * n:
        raise ValueError(
            f"{votes.by!r} has {n} values in {n_votes} votes, too many for a board each. Give "
            "--by a column of categories, or put its values into groups."
        )


def _winner(columns: list[str] | None) -> Any:
    if columns is None or len(columns) == 1:
        return columns[0] if columns else None
    return tuple(columns)


def _report(told: Any, votes: Bunch, model: Any) -> Report:
    asked = {"unit": told.unit, "level": told.level}
    drawn = {**asked, "random_state": told.seed}
    board = leaderboard(model, votes, **drawn)
    pairs = undecided_pairs(model, votes, **asked)
    counts = _votes_of(votes)
    effects = control_effects(model, votes, **asked) if votes.controls else None
    boards = {} if votes.by is None else leaderboards(model, votes.by, votes, **drawn)
    return Report(
        title=told.title or told.votes.name,
        source=told.votes.name,
        summary=as_options(votes.summary),
        dropped={as_options(reason): n for reason, n in votes.dropped.items()},
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
        by=votes.by,
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
    found: dict[str, float] = {}
    if board.n_hyperparameters > 1 and _noise_at_bound(model):
        return found  # the board is not of this noise, which no answer contradicts
    for name in ("tie_threshold", "order_effect"):
        value = getattr(model, f"{name}_", None)
        if value is not None and (name != "order_effect" or value != 0.0):
            found[name] = float(value) / board.unit_length
    return found


def _noise_at_bound(model: Any) -> bool:
    bounds = model.noise_variance_bounds
    return not isinstance(bounds, str) and bool(model.noise_variance_ <= 1.01 * bounds[0])
