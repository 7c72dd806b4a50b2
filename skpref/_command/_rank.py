"""From a table of votes to the numbers of a report."""

import contextlib
import gzip
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skpref import PairwisePreferenceRegressor
from skpref._command._report import Learned, Report, Table, as_options
from skpref._command._times import Drift, Times, in_days
from skpref._utils import check_number
from skpref.data import moment
from skpref.duels import from_votes
from skpref.fitting import UNITS, without_component_warnings
from skpref.inspection import (
    answer_effects,
    control_effects,
    judge_reliability,
    leaderboard,
    leaderboards,
    undecided_pairs,
)
from skpref.kernels import drifts_of

# Where the search for the order effect may go, in deviations of the competitors.
_ORDER_BOUNDS = (-30.0, 30.0)

# How competitors drift where times are told.
_DRIFT = "matern12"

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
    _check(told)
    steps = _Steps(told.progress)
    votes = _read(told)
    _check_votes(told, votes)
    times = None
    if told.time is not None:
        times = Times.of(told.time, votes.times, votes.times_are, told.at)
    if told.out is not None:  # what cannot be written is better known before the fit
        told.out.mkdir(parents=True, exist_ok=True)
    steps.done("read")
    if times is not None:
        votes.params["drift"] = _DRIFT
    if told.order:
        votes.params["order_effect_bounds"] = _ORDER_BOUNDS
    model = PairwisePreferenceRegressor(
        **votes.params, random_state=told.seed, verbose=int(told.progress)
    )
    # The board alone goes to standard output, and says itself that there are groups.
    with contextlib.redirect_stdout(sys.stderr), without_component_warnings():
        model.fit(votes.X, votes.y, **_metadata(told, votes))
    steps.done("fitted")
    report = _report(told, votes, model, times)
    steps.done("ranked")
    return report


def _read(told: Any) -> Bunch:
    with _readable(told.votes) as source:
        return from_votes(
            source,
            told.a,
            told.b,
            _winner(told.winner),
            told.judge,
            told.controls or None,
            time=told.time,
            outcomes=told.outcomes,
            both_bad=told.both_bad,
            ties=told.ties == "model",
            missing=told.missing,
            alike=told.alike,
            encoding=told.encoding,
            decimal=told.decimal,
            by=told.by,
            soft=told.soft,
        )


def _metadata(told: Any, votes: Bunch) -> dict[str, Any]:
    """What goes along with the votes; who was shown first where its advantage is to be learned."""
    return {name: each for name, each in votes.metadata.items() if name != "order" or told.order}


class _Steps:
    """Says on standard error what is done, and how long it took."""

    def __init__(self, wanted: bool) -> None:
        self._wanted, self._since = wanted, perf_counter()

    def done(self, what: str) -> None:
        now = perf_counter()
        if self._wanted:
            sys.stderr.write(f"[skpref] {what} in {now - self._since:.2g} s\n")
            sys.stderr.flush()
        self._since = now


def _check(told: Any) -> None:
    """Refuse arguments before any work."""
    check_number("--level", told.level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_number("--seed", told.seed, low=0, high=2**32 - 1, integer=True)
    if told.at is not None and told.time is None:
        raise ValueError("--at came without --time, the column that says when each vote was given.")
    if told.at is not None:
        _when(told.at)
    if told.out is not None:
        there = next(each for each in (told.out, *told.out.absolute().parents) if each.exists())
        if not there.is_dir():
            raise ValueError(f"--out must be a folder; {str(there)!r} is a file.")


def _when(text: str | None) -> Any:
    """The time of the board as times of votes are."""
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        if np.isfinite(when := moment(text).value):
            return when
    raise ValueError(
        f"--at must be a number or a date such as 2024-05-17, as in the column of --time; "
        f"{text!r} came."
    )


@contextlib.contextmanager
def _readable(votes: Path) -> Iterator[Path]:
    """The file of the votes; of standard input a copy, which is of the kind that it seems."""
    if str(votes) != "-":
        yield votes
        return
    data = sys.stdin.buffer.read()
    if not data.strip():
        raise ValueError("Standard input is empty; a table of votes is expected there.")
    packed = data[:2] == b"\x1f\x8b"
    start = (gzip.decompress(data) if packed else data).lstrip(b"\xef\xbb\xbf \t\r\n")[:4]
    kind = {b"[": ".json", b"{": ".jsonl"}.get(start[:1], ".csv")
    if start == b"PAR1":
        kind = ".parquet"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"standard input{kind}{'.gz' if packed else ''}"
        path.write_bytes(data)
        yield path


def _check_votes(told: Any, votes: Bunch) -> None:
    """Refuse what the votes cannot tell before the time of a fit is spent on it."""
    _check_groups(votes)
    n_judges = 0 if told.judge is None else len(set(votes.judges.tolist()))
    if n_judges > 1 and n_judges == len(np.unique(votes.rows)):
        raise ValueError(
            f"Each of the {n_judges} votes has another value in {told.judge!r}, so that nothing "
            "tells judges apart. Give --judge the column of who voted, or leave it out."
        )
    if told.order and not votes.order.any():
        raise ValueError(
            "Columns of winners and of losers do not say who was shown first, which --order is "
            "about. Leave it out."
        )


def _check_groups(votes: Bunch) -> None:
    """Refuse groups that are nearly one a vote before the time of a fit is spent on them."""
    n = 0 if votes.groups is None else len(votes.groups)
    if n <= _MANY_GROUPS:
        return
    n_votes = len(np.unique(votes.rows))
    if n_votes < _FEW_VOTES * n:
        raise ValueError(
            f"{votes.by!r} has {n} values in {n_votes} votes, too many for a board each. Give "
            "--by a column of categories, or put its values into groups."
        )


def _winner(columns: list[str] | None) -> Any:
    if columns is None or len(columns) == 1:
        return columns[0] if columns else None
    return tuple(columns)


def _report(told: Any, votes: Bunch, model: Any, times: Times | None) -> Report:
    asked = {"unit": told.unit, "level": told.level}
    # Who is better may be another at another time; what votes are like stays.
    asked_then = {**asked, "time": _when(told.at)}
    drawn = {**asked_then, "random_state": told.seed}
    board = leaderboard(model, votes, **drawn)
    pairs = undecided_pairs(model, votes, **asked_then)
    counts = _votes_of(votes)
    effects = control_effects(model, votes, **asked) if votes.controls else None
    boards = {} if votes.by is None else leaderboards(model, votes.by, votes, **drawn)
    return Report(
        title=told.title or _name(told.votes),
        source=_name(told.votes),
        summary=as_options(votes.summary),
        dropped={as_options(reason): n for reason, n in votes.dropped.items()},
        n_votes=len(np.unique(votes.rows)),
        n_read=votes.n_read,
        unit=told.unit,
        unit_in_words=UNITS[told.unit],
        level=told.level,
        board=board,
        table=_board_table(board, counts, None if times is None else _last_of(votes, times)),
        undecided=_pairs_table(pairs),
        n_pairs=len(pairs.first) + pairs.n_decided,
        n_prior_alone=int(pairs.prior_alone.sum()),
        effects=effects,
        controls=None if effects is None else _controls_table(effects),
        same=_same(votes),
        times=times,
        drift=None if times is None else _drift(model, board.unit_length, times.unit),
        by=votes.by,
        groups={name: _board_table(found) for name, found in boards.items()},
        judges=None if told.judge is None else _judges_table(model, votes, told.level, board),
        learned=_learned(model, asked),
    )


def _name(votes: Path) -> str:
    return "standard input" if str(votes) == "-" else votes.name


def _ids(votes: Bunch) -> NDArray[np.intp]:
    """Positions of the two competitors of each vote, (n, 2)."""
    ids = votes.X if votes.X.ndim == 2 else votes.X[:, :, 0]
    found: NDArray[np.intp] = ids.astype(np.intp)
    return found


def _votes_of(votes: Bunch) -> dict[Any, int]:
    """Number of votes about each competitor, by its name."""
    ids, names = _ids(votes), votes.item_table.names
    # Of a soft vote there is a row for each outcome.
    once = np.unique(votes.rows, return_index=True)[1]
    count = np.bincount(ids[once].ravel(), minlength=len(names))
    return dict(zip(names.tolist(), count.tolist(), strict=True))


def _last_of(votes: Bunch, times: Times) -> dict[Any, int | float | str]:
    """When the last vote about each competitor was, by its name."""
    names = votes.item_table.names.tolist()
    last = np.full(len(names), -np.inf)
    np.maximum.at(last, _ids(votes), in_days(votes.times)[:, None])
    return dict(zip(names, map(times.written, last.tolist()), strict=True))


def _drift(model: Any, unit_length: float, unit_of_time: str) -> Drift | None:
    """How strengths move as the fit has it; None where its kernel does not tell."""
    found = drifts_of(model.posterior_.kernel, model.posterior_.reader.n_features + 1)
    moving = [] if found is None else [each for each in found.drift.processes if each.order >= 0]
    if len(moving) != 1:
        return None
    (process,) = moving
    return Drift(math.sqrt(process.variance) / unit_length, process.length, unit_of_time)


def _board_table(board: Bunch, counts: dict | None = None, last: dict | None = None) -> Table:
    # Within the group, where there are several.
    of_group = [int(np.sum(board.component == each)) for each in range(board.n_components)]
    rank = np.concatenate([np.arange(1, size + 1) for size in of_group])
    columns: dict[str, Any] = {"rank": rank, "name": board.names}
    if board.n_components > 1:
        columns["component"] = board.component + 1
    for name, found in (("votes", counts), ("last", last)):
        if found is not None:
            columns[name] = [found[each] for each in board.names]
    for name in ("utility", "lower", "upper", "rank_lower", "rank_upper", "probability_best"):
        columns[name] = board[name]
    return Table(columns)


def _pairs_table(pairs: Bunch) -> Table:
    names = ["first", "second", "probability", "margin", "lower", "upper"]
    names += ["prior_alone"] * (pairs.n_components > 1)
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
            # Of a control that is not held there are none.
            "tau": [None if math.isnan(tau) else tau for tau in effects.tau.tolist()],
            "moved": [None if math.isnan(n) else int(n) for n in effects.moved.tolist()],
        }
    )


def _same(votes: Bunch) -> list[str]:
    """Controls that are the same in all votes of each competitor."""
    ids = _ids(votes).ravel()
    _, first, code = np.unique(ids, return_index=True, return_inverse=True)
    same = first[code.reshape(-1)]
    found = []
    for k, name in enumerate(votes.controls, start=1):
        column = votes.X[:, :, k].ravel()
        if np.array_equal(column, column[same]):
            found.append(name)
    return found


def _judges_table(model: Any, votes: Bunch, level: float, board: Any) -> Table | None:
    if model.judges_ is None:
        return None
    found = judge_reliability(model, votes, level=level)
    columns = {
        "judge": found.names,
        "votes": found.n_answers,
        "reliability": found.reliability,
        "lower": found.lower,
        "upper": found.upper,
        "probability_random": found.probability_random,
        "probability_adversarial": found.probability_adversarial,
    }
    for name, slopes in found.slopes.items():
        slope, lower, upper = slopes.T / board.unit_length
        columns |= {
            f"slope_{name}": slope,
            f"slope_{name}_lower": lower,
            f"slope_{name}_upper": upper,
        }
    if found.order_effect is not None:
        ends = found.order_effect, found.order_lower, found.order_upper
        for name, column in zip(("first", "first_lower", "first_upper"), ends, strict=True):
            columns[name] = column / board.unit_length
    return Table(columns)


def _learned(model: Any, asked: dict[str, Any]) -> dict[str, Learned]:
    """What the answers say of ties and of who is shown first, in units."""
    found = answer_effects(model, **asked)
    ends = (found.value, found.lower, found.upper)
    rows = zip(*(column.tolist() for column in ends), strict=True)
    return dict(zip(found.names.tolist(), map(Learned._make, rows), strict=True))
