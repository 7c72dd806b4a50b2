"""A report as text, CSV, Markdown, HTML and JSON.

Names come from strangers. Each format has one function through which all texts go: `printable_text`
for a terminal, `csv_cell`, `markdown_text` and `html_text`.
"""

import io
import json
import math
import re
import shutil
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpref._command._report import BoardReport, ReportTable, list_own_effects
from skpref._utils import (
    csv_text,
    html_text,
    printable_text,
    probability_text,
    replace_files,
    whole_percent,
)
from skpref.fitting import UNITS
from skpref.plotting import LeaderboardDisplay, LeaderboardsDisplay, board_svg

# Heads of columns on paper; files have the names themselves.
_HEADS = {
    "component": "group",
    "prior_alone": "of two groups",
    "last": "last vote",
    "rank_interval": "rank interval",
    "probability_best": "P(best)",
    "probability_positive": "P(> 0)",
    "probability_random": "P(random)",
    "probability_adversarial": "P(adversarial)",
    "effect_of_spread": "effect",
    "spread": "std. dev.",
}
# Columns of texts.
_TEXTS = ("name", "first", "second", "control", "judge")
# A cell without a number.
_NONE = "–"
# Rows of a page's tables of judges and of undecided pairs, and of its picture.
_MOST_ROWS, _MOST_DRAWN = 10, 60
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --rule: #ddd; --head: #888; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaef; --paper: #0f1215; --rule: #3a424b; --head: #8c959f; }
}
body { font: 16px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0;
  display: block; overflow-x: auto; overflow-wrap: normal; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid var(--rule); }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid; }
th[aria-sort=ascending] button::after { content: " ↑"; }
th[aria-sort=descending] button::after { content: " ↓"; }
th { border-bottom: 2px solid var(--head); }
.text { text-align: left; }
svg { max-width: 100%; height: auto; }
@media (max-width: 520px) {
  body { margin: 1rem auto; padding: 0 .5rem; }
  table { font-size: 13px; }
  th, td { padding: .25rem .15rem; }
}
"""


def write(report: BoardReport, folder: Path, *, raw: bool = False, png: bool = False) -> list[str]:
    """Write all files of a report into a folder, and return their names.

    Parameters
    ----------
    report : BoardReport
    folder : Path
    raw : bool, default=False
        Whether texts in CSV files are as they are, also those that a spreadsheet runs as formulas.
    png : bool, default=False
        Whether to draw ``board.png``, and of groups ``groups.png``, by matplotlib.

    Returns
    -------
    list of str

    Raises
    ------
    OSError
        If a file cannot be written; all that were there are as they were.
    """
    picture = board_svg(report.board, _MOST_DRAWN, report.base)
    files: dict[str, str | bytes] = {
        "board.csv": _write_csv(report.table, raw),
        "board.md": as_markdown(report),
        "board.html": as_html(report, picture),
        "board.json": as_json(report),
        "board.svg": picture,
        "undecided.csv": _write_csv(report.undecided, raw),
    }
    if png:
        board = LeaderboardDisplay.from_board(report.board, top=_MOST_DRAWN)
        files["board.png"] = _png_of(board)
        if report.groups:
            boards = LeaderboardsDisplay.from_boards(report.boards, top=_MOST_DRAWN)
            files["groups.png"] = _png_of(boards)
    if report.controls is not None:
        files["controls.csv"] = _write_csv(report.controls, raw)
    if report.judges is not None:
        files["judges.csv"] = _write_csv(report.judges, raw)
    if report.groups:
        files["groups.csv"] = _write_csv(_groups_table(report), raw)
    # JSON may name half a character, which UTF-8 does not have.
    contents = (
        each.encode("utf-8", "backslashreplace") if isinstance(each, str) else each
        for each in files.values()
    )
    replace_files(folder, dict(zip(files, contents, strict=True)))
    return list(files)


def _groups_table(report: BoardReport) -> ReportTable:
    """Return one table of the boards of all groups, one below the other."""
    tables = report.groups.values()
    which = np.repeat(np.array(list(map(str, report.groups)), dtype=object), list(map(len, tables)))
    names = next(iter(tables)).columns
    stacked = {name: np.concatenate([each.columns[name] for each in tables]) for name in names}
    return ReportTable({"group": which, **stacked})


# -- tables --------------------------------------------------------------------------------


def _write_csv(table: ReportTable, raw: bool) -> str:
    """Return a table as CSV, without NaN and infinity."""
    return csv_text(table.columns, _replace_nan(table.rows()), raw)


def _cell_formats(report: BoardReport, table: ReportTable) -> dict[str, Callable[[Any], str]]:
    """Return how the cells of columns are written; columns without such hold texts."""
    formats: dict[str, Callable[[Any], str]] = {
        **dict.fromkeys(("utility", "lower", "upper", "margin"), report.number),
        **{
            name: probability_text
            for name in table.columns
            if name.partition("_")[0] == "probability"
        },
        "tau": lambda value: _NONE if value is None else f"{round(value, 2) + 0.0:.2f}",
        "moved": lambda value: _NONE if value is None else str(value),
        "reliability": lambda value: f"{round(value, 2) + 0.0:.2f}",
        "prior_alone": lambda value: "yes" if value else _NONE,
        **dict.fromkeys(("slope", "spread", "effect_of_spread"), lambda value: f"{value:.3g}"),
    }
    if report.times is not None:
        formats["last"] = report.times.table_text
    if "slope" in table.columns:
        formats |= dict.fromkeys(("lower", "upper"), formats["slope"])
    for name in list_own_effects(table):
        shown = report.number if name == "first" else formats["slope"]
        formats |= dict.fromkeys((name, f"{name}_lower", f"{name}_upper"), shown)
    return formats


def _formatted_columns(
    report: BoardReport, table: ReportTable, top: int | None = None
) -> tuple[list[str], list[list], list[bool]]:
    """Return heads and cells as texts, ends of intervals as one column; which columns are texts."""
    formats, rows = _cell_formats(report, table), table.rows(top)
    cells = {
        name: [formats.get(name, printable_text)(row[j]) for row in rows]
        for j, name in enumerate(table.columns)
    }
    _format_effects_with_intervals(cells, list_own_effects(table))
    made = _join_intervals(cells, f"{report.percent} interval")
    heads = [_HEADS.get(name) or printable_text(name) for name in made]
    are_text = [name in _TEXTS for name in made]
    return heads, [list(row) for row in zip(*made.values(), strict=True)], are_text


def _format_effects_with_intervals(cells: dict[str, list], effects: Iterable[str]) -> None:
    """Write each effect of a judge as a mean with its interval, in place of three columns."""
    for name in effects:
        bounds = cells.pop(f"{name}_lower"), cells.pop(f"{name}_upper")
        cells[name] = [
            f"{value} [{low}, {high}]"
            for value, low, high in zip(cells[name], *bounds, strict=True)
        ]


def _join_intervals(cells: dict[str, list], head: str) -> dict[str, list]:
    """Return columns with one column in place of the two ends of each interval."""
    if "rank_lower" in cells:
        ends = zip(cells.pop("rank_lower"), cells.pop("rank_upper"), strict=True)
        cells["rank_interval"] = [low if low == high else f"{low}–{high}" for low, high in ends]
        cells["probability_best"] = cells.pop("probability_best")  # after it
    ends = zip(cells.pop("lower", []), cells.pop("upper", []), strict=True)
    made: dict[str, list] = {}
    for name, column in cells.items():
        made[name] = column
        if name in ("utility", "margin", "slope", "reliability"):
            made[head] = [
                _NONE if low == high == _NONE else f"[{low}, {high}]" for low, high in ends
            ]
    return made


def as_text(report: BoardReport, top: int) -> list[str]:
    """Return the lines of a report for a terminal."""
    lines = [*_wrap(report.summary + ".", *report.about_components()), ""]
    lines += _table_lines(report, report.table, top)
    if len(report.table) > top:
        lines.append(f"… and {len(report.table) - top} more.")
    lines += ["", *_wrap(report.lead(), report.open_pairs(), *report.about())]
    if report.controls is not None:
        lines += ["", *_table_lines(report, report.controls), *_wrap(*report.about_controls())]
    if report.check is not None:
        lines += ["", *_wrap(*report.check.in_words())]
    for name, table in report.groups.items():
        lines += ["", f"{report.by}: {name}", *_table_lines(report, table, min(top, 5))]
    return list(map(printable_text, lines))


def _wrap(*sentences: str) -> list[str]:
    """Return sentences as lines of the terminal's width."""
    width = max(40, min(100, shutil.get_terminal_size().columns))
    return [line for each in sentences for line in textwrap.wrap(each, width)]


def _table_lines(report: BoardReport, table: ReportTable, top: int | None = None) -> list[str]:
    """Return a table as lines of aligned columns."""
    heads, rows, are_text = _formatted_columns(report, table, top)
    widths = [max(map(_terminal_width, column)) for column in zip(heads, *rows, strict=True)]
    return [
        "  ".join(
            _pad_cell(cell, width, text)
            for cell, width, text in zip(row, widths, are_text, strict=True)
        ).rstrip()
        for row in (heads, *rows)
    ]


def _pad_cell(cell: str, width: int, is_text: bool) -> str:
    """Return a cell padded to a width: texts on the right, numbers on the left."""
    space = " " * (width - _terminal_width(cell))
    return cell + space if is_text else space + cell


def _terminal_width(text: str) -> int:
    """Return the columns of a terminal that a text takes; wide letters take two, marks none."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


# -- pages ---------------------------------------------------------------------------------


def as_markdown(report: BoardReport) -> str:
    """Return the report as a page in Markdown."""

    def said(*lines: str) -> list[str]:
        return list(map(markdown_text, lines))

    parts = [f"# {markdown_text(report.title)}", *said(report.summary + ".")]
    parts += said(*report.about_components(), report.lead(), report.open_pairs())
    parts += [_markdown_table(report, report.table), *said(*report.about())]
    for head, table, top, sentences in _sections(report):
        parts.append(f"## {markdown_text(head)}")
        parts += [] if table is None else [_markdown_table(report, table, top)]
        parts += said(*sentences)
    return "\n\n".join(parts) + "\n"


def _sections(
    report: BoardReport,
) -> Iterator[tuple[str, ReportTable | None, int | None, Sequence[str]]]:
    """Yield what follows the board on a page: head, table, the most rows of it, and sentences."""
    if report.controls is not None:
        yield "Controls", report.controls, None, report.about_controls()
    if report.check is not None:
        yield "Check of the model", None, None, report.check.in_words()
    for name, table in report.groups.items():
        yield f"{report.by}: {name}", table, None, ()
    if report.judges is not None:
        n, columns = len(report.judges), report.judges.columns
        least = ReportTable({name: column[-_MOST_ROWS:] for name, column in columns.items()})
        about = f"The {_MOST_ROWS} least reliable of {n} judges; all are in judges.csv."
        yield "Judges", least, None, [about] * (n > _MOST_ROWS)
    if n_pairs := len(report.undecided):
        about = f"{n_pairs - _MOST_ROWS} more are in undecided.csv."
        yield "Undecided pairs", report.undecided, _MOST_ROWS, [about] * (n_pairs > _MOST_ROWS)


def markdown_text(text: Any) -> str:
    """Return a text escaped so that Markdown, also GitHub's, shows it as it is.

    Examples
    --------
    >>> from skpref._command._writers import markdown_text
    >>> print(markdown_text("1. <b> & &lt; at http://a_b"))
    1\\. \\<b\\> & \\&lt; at http\\://a\\_b
    """
    text = re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", printable_text(text).strip())
    text = re.sub(r"(&(?=#?\w+;)|:(?=//))", r"\\\1", text)
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", text)


def _markdown_table(report: BoardReport, table: ReportTable, top: int | None = None) -> str:
    """Return a table in Markdown."""
    heads, rows, are_text = _formatted_columns(report, table, top)
    lines = [
        [markdown_text(head) for head in heads],
        ["---" if text else "---:" for text in are_text],
    ]
    lines += [
        [markdown_text(cell) if text else cell for cell, text in zip(row, are_text, strict=True)]
        for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_html(report: BoardReport, picture: str) -> str:
    """Return the report as one page of HTML that needs nothing else."""

    def said(*lines: str) -> list[str]:
        return [f"<p>{html_text(line)}</p>" for line in lines]

    parts = [f"<h1>{html_text(report.title)}</h1>", *said(report.summary + ".")]
    parts += said(*report.about_components(), report.lead(), report.open_pairs())
    parts += [picture]
    if len(report.table) > _MOST_DRAWN:
        parts += said(f"The best {_MOST_DRAWN} of {len(report.table)}.")
    parts += [_html_table(report, report.table), *said(*report.about())]
    parts += ["<h2>Who beats whom</h2>", _html_rates(report.rates), *said(report.about_rates())]
    for head, table, top, sentences in _sections(report):
        parts.append(f"<h2>{html_text(head)}</h2>")
        parts += [] if table is None else [_html_table(report, table, top)]
        parts += said(*sentences)
    script = (resources.files("skpref") / "_judging" / "board.js").read_text("utf-8")
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html_text(report.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'{body}\n<script type="module">\n{script}</script>\n</body>\n</html>\n'
    )


def _html_table(report: BoardReport, table: ReportTable, top: int | None = None) -> str:
    """Return the first rows of a table in HTML."""
    return _html_cells(*_formatted_columns(report, table, top))


def _html_rates(rates: Bunch) -> str:
    """Return the chances of the first competitors against each other as a table in HTML."""
    share = rates.win + 0.5 * rates.tie
    is_joined = rates.component[:, None] == rates.component  # else the prior alone would speak
    np.fill_diagonal(is_joined, False)
    places = [str(k + 1) for k in range(len(share))]
    rows = [
        [place, printable_text(name), *np.where(joined, list(map(whole_percent, row)), _NONE)]
        for place, name, joined, row in zip(places, rates.names, is_joined, share, strict=True)
    ]
    heads = ["rank", "name", *places]
    return _html_cells(heads, rows, [head == "name" for head in heads])


def _html_cells(heads: list[str], rows: list[list], are_text: list[bool]) -> str:
    """Return heads and rows as a table in HTML that a click on a head sorts."""
    kinds = [' class="text"' if text else "" for text in are_text]

    def line(tag: str, cells: list[str]) -> str:
        made = (
            f"<{tag}{kind}>{html_text(cell)}</{tag}>"
            for cell, kind in zip(cells, kinds, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    body = "\n".join(line("td", row) for row in rows)
    return (
        f'<table class="sortable">\n<thead>{line("th", heads)}</thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>"
    )


def _png_of(display: LeaderboardDisplay | LeaderboardsDisplay) -> bytes:
    """Return a picture drawn by matplotlib as a PNG file."""
    from matplotlib import pyplot as plt

    data = io.BytesIO()
    display.figure_.savefig(data, format="png", dpi=200, facecolor="white")
    plt.close(display.figure_)
    return data.getvalue()


# -- numbers -------------------------------------------------------------------------------


def as_json(report: BoardReport) -> str:
    """Return all numbers of the report as JSON."""
    effects, lead, times = report.effects, report.board.lead, report.times
    document = {
        "title": report.title,
        "source": report.source,
        "summary": report.summary,
        "n_read": report.n_read,
        "n_votes": report.n_votes,
        "dropped": report.dropped,
        "unit": report.board.unit,
        "unit_in_words": UNITS[report.board.unit],
        "level": report.board.level,
        "base": report.base,
        "board": _table_records(report.table),
        "win_rates": {
            name: getattr(report.rates, name).tolist()
            for name in ("names", "component", "win", "tie")
        },
        "lead": None if lead is None else {**lead, "names": lead.names.tolist()},
        "n_components": report.board.n_components,
        "n_pairs": report.n_pairs,
        "n_pairs_of_two_components": report.n_prior_alone,
        "undecided": _table_records(report.undecided),
        "controls": _table_records(report.controls),
        "controls_together": None
        if effects is None
        else {"tau": effects.tau_together, "moved": effects.moved_together},
        "time": None if times is None else times.iso_text(times.board),
        "first_vote": None if times is None else times.iso_text(times.first),
        "last_vote": None if times is None else times.iso_text(times.last),
        "drift": None if report.drift is None else report.drift._asdict(),
        "by": report.by,
        "groups": {str(name): _table_records(table) for name, table in report.groups.items()},
        "judges": _table_records(report.judges),
        "learned": {name: document._asdict() for name, document in report.learned.items()},
        "check": None
        if report.check is None
        else [finding._asdict() for finding in report.check.findings],
    }
    return json.dumps(_replace_nan(document), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _table_records(table: ReportTable | None) -> list[dict] | None:
    """Return the rows of a table as dicts."""
    if table is None:
        return None
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows()]


def _replace_nan(value: Any) -> Any:
    """Return the same with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _replace_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_replace_nan(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
