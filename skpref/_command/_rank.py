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
from skpref._command._report import AnswerEffect, BoardReport, ReportTable, as_options
from skpref._command._times import BoardTimes, StrengthDrift, days_since_epoch
from skpref._utils import check_number
from skpref.data import check_groups_repeat, parse_time
from skpref.duels import from_votes
from skpref.fitting import without_component_warnings
from skpref.inspection import (
    answer_effects,
    check,
    control_effects,
    judge_reliability,
    leaderboard,
    leaderboards,
    undecided_pairs,
    win_rates,
)
from skpref.kernels import drifts_of
from skpref.plotting import check_matplotlib

# Options that `from_votes` takes as they are.
_OF_VOTES = (
    *("a", "b", "judge", "prompt", "time", "outcomes", "both_bad", "missing", "alike"),
    *("encoding", "decimal", "by", "soft"),
)

# Where the search for the order effect may go, in deviations of the competitors.
_ORDER_BOUNDS = (-30.0, 30.0)

# How competitors drift where times are told.
_DRIFT = "matern12"

# Competitors in the table of who beats whom, from the first on: as many as a page has room for.
_MOST_RATES = 15


def rank_votes(arguments: Any) -> BoardReport:
    """Read votes, fit a model and return the report on its board.

    Parameters
    ----------
    arguments : Namespace
        As the command parses them.

    Raises
    ------
    ValueError, ImportError, OSError
        If the votes cannot be read, or nothing can be said of them.
    """
    _check_arguments(arguments)
    steps = _StepTimer(arguments.progress)
    votes = _read_votes(arguments)
    _check_votes_suffice(arguments, votes)
    times = None
    if arguments.time is not None:
        times = BoardTimes.from_votes(arguments.time, votes.times, votes.times_are, arguments.at)
    if arguments.out is not None:  # what cannot be written is better known before the fit
        arguments.out.mkdir(parents=True, exist_ok=True)
    steps.report_step("read")
    if times is not None:
        votes.params["drift"] = _DRIFT
    if arguments.order:
        votes.params["order_effect_bounds"] = _ORDER_BOUNDS
    model = PairwisePreferenceRegressor(
        **votes.params, random_state=arguments.seed, verbose=int(arguments.progress)
    )
    # The board alone goes to standard output, and says itself that there are groups.
    with contextlib.redirect_stdout(sys.stderr), without_component_warnings():
        model.fit(votes.X, votes.y, **_fit_metadata(arguments, votes))
    steps.report_step("fitted")
    report = _make_report(arguments, votes, model, times)
    steps.report_step("ranked")
    return report


def _read_votes(arguments: Any) -> Bunch:
    """Return the votes of the table that the arguments name."""
    options = {name: getattr(arguments, name) for name in _OF_VOTES}
    options |= {"winner": _winner_columns(arguments.winner), "ties": arguments.ties == "model"}
    options["controls"] = arguments.controls or None
    with _open_votes_file(arguments.votes) as source:
        return from_votes(source, **options)


def _fit_metadata(arguments: Any, votes: Bunch) -> dict[str, Any]:
    """Return the metadata of a fit; who was shown first only where its advantage is learned."""
    return {
        name: each for name, each in votes.metadata.items() if name != "order" or arguments.order
    }


class _StepTimer:
    """Writes to standard error which step is done, and how long it took."""

    def __init__(self, wanted: bool) -> None:
        self._wanted, self._since = wanted, perf_counter()

    def report_step(self, what: str) -> None:
        """Write a step that is done, and the seconds since the last one, to standard error."""
        seconds = perf_counter() - self._since
        if self._wanted:
            sys.stderr.write(f"[skpref] {what} in {seconds:.2g} s\n")
            sys.stderr.flush()
        self._since += seconds


def _check_arguments(arguments: Any) -> None:
    """Raise ValueError for arguments that are not allowed, before any work."""
    check_number("--level", arguments.level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_number("--seed", arguments.seed, low=0, high=2**32 - 1, integer=True)
    check_number("--base", arguments.base)
    for option in ("open", "png"):
        if getattr(arguments, option) and arguments.out is None:
            raise ValueError(f"got --{option} without --out; name a folder by --out.")
    if arguments.png:
        check_matplotlib("--png")
    if arguments.at is not None and arguments.time is None:
        raise ValueError(
            "got --at without --time; name by --time the column that says when each vote was given."
        )
    if arguments.at is not None:
        _board_time(arguments.at)
    if arguments.prompt is not None and arguments.time is not None:
        raise ValueError(
            "got --prompt with --time; one of them is allowed, as effects of prompts do not move "
            "with time. Leave one of the two out."
        )
    if arguments.out is not None:
        nearest = next(
            each for each in (arguments.out, *arguments.out.absolute().parents) if each.exists()
        )
        if not nearest.is_dir():
            raise ValueError(f"--out must be a folder; {str(nearest)!r} is a file.")


def _board_time(text: str | None) -> Any:
    """Return the time of the board, as times of votes are; ValueError for other texts."""
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        if np.isfinite(when := parse_time(text).value):
            return when
    raise ValueError(
        f"--at must be a number or a date such as 2024-05-17, as in the column of --time; "
        f"got {text!r}."
    )


@contextlib.contextmanager
def _open_votes_file(votes: Path) -> Iterator[Path]:
    """Yield the path of the file of votes; standard input is copied to one."""
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


def _check_votes_suffice(arguments: Any, votes: Bunch) -> None:
    """Raise ValueError, before a fit, for votes that cannot tell what was asked."""
    n_votes = len(np.unique(votes.rows))
    if votes.groups is not None:
        check_groups_repeat(votes.by, len(votes.groups), n_votes)
    n_judges = 0 if arguments.judge is None else len(set(votes.judges.tolist()))
    if n_judges > 1 and n_judges == n_votes:
        raise ValueError(
            f"Each of the {n_judges} votes has another value in {arguments.judge!r}, so that "
            "nothing tells judges apart. Give --judge the column of who voted, or leave it out."
        )
    if arguments.order and not votes.order.any():
        raise ValueError(
            "Columns of winners and of losers do not say who was shown first, which --order is "
            "about. Leave it out."
        )


def _winner_columns(columns: list[str] | None) -> Any:
    """Return the columns of outcomes as `from_votes` takes them."""
    if columns is None or len(columns) == 1:
        return columns[0] if columns else None
    return tuple(columns)


def _make_report(arguments: Any, votes: Bunch, model: Any, times: BoardTimes | None) -> BoardReport:
    """Return the report on a fitted model."""
    scale = {"unit": arguments.unit, "level": arguments.level}
    # Who is better may be another at another time; what votes are like stays.
    scale_at_time = {**scale, "time": _board_time(arguments.at)}
    drawn_options = {**scale_at_time, "random_state": arguments.seed}
    board, base = leaderboard(model, votes, **drawn_options), arguments.base
    items = board.position if votes.X.ndim == 2 else board.names
    rates = win_rates(model, items[:_MOST_RATES], time=scale_at_time["time"])
    pairs = undecided_pairs(model, votes, **scale_at_time)
    counts = _count_votes(votes)
    effects = control_effects(model, votes, **scale) if votes.controls else None
    boards = {} if votes.by is None else leaderboards(model, votes.by, votes, **drawn_options)
    return BoardReport(
        title=arguments.title or _source_name(arguments.votes),
        source=_source_name(arguments.votes),
        summary=as_options(votes.summary),
        dropped={as_options(reason): n for reason, n in votes.dropped.items()},
        n_votes=len(np.unique(votes.rows)),
        n_read=votes.n_read,
        base=base,
        board=board,
        rates=rates,
        table=_board_table(
            board, base, counts, None if times is None else _last_votes(votes, times)
        ),
        undecided=_pairs_table(pairs),
        n_pairs=len(pairs.first) + pairs.n_decided,
        n_prior_alone=int(pairs.prior_alone.sum()),
        effects=effects,
        controls=None if effects is None else _controls_table(effects),
        same=_constant_controls(votes),
        times=times,
        drift=None if times is None else _strength_drift(model, board.unit_length, times.unit),
        by=votes.by,
        boards=boards,
        groups={name: _board_table(group_board, base) for name, group_board in boards.items()},
        judges=None
        if arguments.judge is None
        else _judges_table(model, votes, arguments.level, board),
        learned=_collect_effects(model, scale),
        check=check(model) if arguments.check else None,
    )


def _source_name(votes: Path) -> str:
    """Return the name of the file of votes, for titles."""
    return "standard input" if str(votes) == "-" else votes.name


def _competitor_positions(votes: Bunch) -> NDArray[np.intp]:
    """Return the positions of the two competitors of each vote, (n, 2)."""
    ids = votes.X if votes.X.ndim == 2 else votes.X[:, :, 0]
    positions: NDArray[np.intp] = ids.astype(np.intp)
    return positions


def _count_votes(votes: Bunch) -> dict[Any, int]:
    """Return the number of votes about each competitor, by its name."""
    ids, names = _competitor_positions(votes), votes.item_table.names
    # Of a soft vote there is a row for each outcome.
    once = np.unique(votes.rows, return_index=True)[1]
    count = np.bincount(ids[once].ravel(), minlength=len(names))
    return dict(zip(names.tolist(), count.tolist(), strict=True))


def _last_votes(votes: Bunch, times: BoardTimes) -> dict[Any, int | float | str]:
    """Return when the last vote about each competitor was, by its name."""
    names = votes.item_table.names.tolist()
    last = np.full(len(names), -np.inf)
    np.maximum.at(last, _competitor_positions(votes), days_since_epoch(votes.times)[:, None])
    return dict(zip(names, map(times.iso_text, last.tolist()), strict=True))


def _strength_drift(model: Any, unit_length: float, unit_of_time: str) -> StrengthDrift | None:
    """Return how strengths move, or None where the kernel does not tell."""
    drifts = drifts_of(model.posterior_.kernel, model.posterior_.reader.n_features + 1)
    moving = [] if drifts is None else [each for each in drifts.drift.processes if each.order >= 0]
    if len(moving) != 1:
        return None
    (process,) = moving
    return StrengthDrift(math.sqrt(process.variance) / unit_length, process.length, unit_of_time)


def _board_table(
    board: Bunch, base: float, counts: dict | None = None, last: dict | None = None
) -> ReportTable:
    """Make the table of a board above a base, with numbers of votes and last votes if given."""
    # Within the group, where there are several.
    of_group = [int(np.sum(board.component == each)) for each in range(board.n_components)]
    rank = np.concatenate([np.arange(1, size + 1) for size in of_group])
    columns: dict[str, Any] = {"rank": rank, "name": board.names}
    if board.n_components > 1:
        columns["component"] = board.component + 1
    for name, values in (("votes", counts), ("last", last)):
        if values is not None:
            columns[name] = [values[each] for each in board.names]
    columns |= {name: base + board[name] for name in ("utility", "lower", "upper")}
    for name in ("rank_lower", "rank_upper", "probability_best"):
        columns[name] = board[name]
    return ReportTable(columns)


def _pairs_table(pairs: Bunch) -> ReportTable:
    """Return the table of undecided pairs."""
    names = ["first", "second", "probability", "margin", "lower", "upper"]
    names += ["prior_alone"] * (pairs.n_components > 1)
    return ReportTable({name: pairs[name] for name in names})


def _controls_table(effects: Bunch) -> ReportTable:
    """Return the table of the effects of controls."""
    columns: dict[str, Any] = {"control": effects.names}
    for name in ("slope", "lower", "upper", "probability_positive", "spread"):
        columns[name] = effects[name]
    columns["effect_of_spread"] = effects.slope * effects.spread
    for name, kind in (("tau", float), ("moved", int)):
        columns[name] = [None if math.isnan(x) else kind(x) for x in effects[name].tolist()]
    return ReportTable(columns)


def _constant_controls(votes: Bunch) -> list[str]:
    """Return the controls that are the same in all votes of each competitor."""
    ids = _competitor_positions(votes).ravel()
    _, first, code = np.unique(ids, return_index=True, return_inverse=True)
    first_rows = first[code.reshape(-1)]
    names = []
    for k, name in enumerate(votes.controls, start=1):
        column = votes.X[:, :, k].ravel()
        if np.array_equal(column, column[first_rows]):
            names.append(name)
    return names


def _judges_table(model: Any, votes: Bunch, level: float, board: Any) -> ReportTable | None:
    """Return the table of judges, the most reliable first; None if no judges were learned."""
    if model.judges_ is None:
        return None
    judges = judge_reliability(model, votes, unit=board.unit, level=level)
    columns = {"judge": judges.names, "votes": judges.n_answers}
    for name in ("reliability", "lower", "upper", "probability_random", "probability_adversarial"):
        columns[name] = judges[name]
    for name, slopes in judges.slopes.items():
        heads = f"slope_{name}", f"slope_{name}_lower", f"slope_{name}_upper"
        columns |= dict(zip(heads, slopes.T, strict=True))
    if judges.order_effect is not None:
        ends = judges.order_effect, judges.order_lower, judges.order_upper
        columns |= dict(zip(("first", "first_lower", "first_upper"), ends, strict=True))
    return ReportTable(columns)


def _collect_effects(model: Any, scale: dict[str, Any]) -> dict[str, AnswerEffect]:
    """Return what was learned of ties and of who is shown first, by name."""
    effects = answer_effects(model, **scale)
    ends = (effects.value, effects.lower, effects.upper)
    rows = zip(*(column.tolist() for column in ends), strict=True)
    return dict(zip(effects.names.tolist(), map(AnswerEffect._make, rows), strict=True))
