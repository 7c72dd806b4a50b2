"""Arguments of the command, its errors, and what it says."""

import argparse
import os
import sys
import warnings
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from skpref._command._judge import add_judge_command, run_judge
from skpref._command._rank import rank_votes
from skpref._command._report import MEANINGS, BoardReport, as_options
from skpref._command._writers import as_text, write
from skpref._utils import printable_text, skpref_version
from skpref.fitting import UNITS

_EXAMPLES = """examples:
  skpref rank votes.csv
  skpref rank votes.csv --controls length_a-length_b --judge judge --out board/
  zcat votes.csv.gz | skpref rank - --alike merge
  skpref rank votes.csv --time date --at 2024-12-31
  skpref rank votes.parquet --a left --b right --winner verdict --by language --unit elo

Columns are found by name, whatever their case; those of competitors and of the winner are guessed
where they have one of the usual names (model_a, model_b, winner).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the name of the program; None: those of the process.

    Returns
    -------
    int
        0; 2 where arguments or votes are not as they must be, with one line on standard error.
    """
    try:
        arguments_given = _make_parser().parse_args(arguments)
    except SystemExit as ended:  # argparse has said why
        return int(ended.code or 0)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _print_warning
        try:
            if arguments_given.command == "judge":
                run_judge(arguments_given)
                return 0
            report = rank_votes(arguments_given)
            file_names = (
                write(report, arguments_given.out, raw=arguments_given.raw, png=arguments_given.png)
                if arguments_given.out is not None
                else []
            )
            _print_report(report, arguments_given.top, arguments_given.out, file_names)
            if arguments_given.open:
                webbrowser.open((arguments_given.out / "board.html").absolute().as_uri())
        except (ValueError, ImportError, OSError, MemoryError) as error:
            _print_error(f"skpref: error: {as_options(str(error)) or 'out of memory'}")
            return 2
        except KeyboardInterrupt:
            _print_error("skpref: stopped.")
            return 130
    return 0


def _print_report(report: BoardReport, top: int, out: Path | None, names: list[str]) -> None:
    """Print a report to standard output, and the names of its files."""
    lines = as_text(report, top)
    if out is not None:
        lines += ["", printable_text(f"Written to {out}: {', '.join(names)}.")]
    text, encoding = "\n".join(lines) + "\n", sys.stdout.encoding or "utf-8"
    try:
        # Letters that a terminal does not have are no reason to fail.
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()
    except OSError as error:  # nothing more can be written, at the end neither
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # which is "| head"
            raise


def _print_error(line: str) -> None:
    """Print a line to standard error, unless that is closed or full."""
    with suppress(OSError):  # a full disk has no room for what is said of it
        sys.stderr.write(printable_text(line) + "\n")
        sys.stderr.flush()


def _print_warning(message: Any, category: Any, *where: Any, **more: Any) -> None:
    """Print a warning as a note of the command."""
    _print_error(f"skpref: note: {as_options(str(message))}")


# Options that name a column, and what it says of a vote.
_COLUMNS = {
    "a": "the first competitor",
    "b": "the second competitor",
    "judge": "who voted: how reliable each is will be learned",
    "prompt": "what each vote is about: votes on one prompt are not independent, and the board is "
    "the mean over all prompts there may be; not with --time",
    "time": "when each vote was given, a number or a date such as 2024-05-17: competitors change "
    "with time; the board is of the last vote, and says when the last of each competitor was",
    "by": "also a board for each value of a column, such as a language",
}
# Options with few values, the first of which is the default.
_CHOICES = {
    "ties": (("model", "drop"), "ties count, or are left out"),
    "both-bad": (("tie", "drop"), '"both are bad" is a tie, or left out'),
    "missing": (("drop", "mean"), "votes that lack a control are left out, or get its mean"),
    "alike": (
        ("apart", "merge"),
        "names that differ in case, spaces, dashes or Unicode form alone are different, or are one",
    ),
    "decimal": ((".", ","), "what numbers of the table have before their decimals (default: .)"),
}
_SWITCHES = {
    "soft": "the winner column holds the probability that a won, or two or three columns those "
    "that a won, that b won, and of a tie",
    "order": "learn the advantage of what was shown first, the competitor in column a",
    "check": "say what is wrong with the model by its own votes: circles, votes that depend on one "
    "another, what is shown first, and others; takes as long as the fit or longer",
    "open": "with --out: show board.html in the browser",
    "png": "with --out: also board.png, a picture for slides and chats; needs matplotlib",
    "raw": "with --out: texts in CSV files as they are; otherwise those that a spreadsheet would "
    "run as formulas, such as =1+1, have an apostrophe before them",
    "progress": "say what is done, and how the fit goes on",
}


def _make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="skpref", description="Preference learning from votes, on the command line."
    )
    parser.add_argument("--version", action="version", version=f"skpref {skpref_version()}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    rank = commands.add_parser(
        "rank",
        help="rank competitors by votes between two of them",
        description="Rank competitors by votes between two of them, with intervals.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rank.add_argument(
        "votes",
        type=Path,
        help="a table with one vote a row: CSV, TSV or JSON, also with .gz, or Parquet; - stands "
        "for standard input",
    )
    rank.add_argument(
        "--encoding", help="of a CSV or JSON file, such as cp1252 (default: utf-8, or utf-16)"
    )
    _add_columns(rank)
    _add_handling(rank)
    _add_output(rank)
    add_judge_command(commands)
    return parser


def _add_columns(rank: argparse.ArgumentParser) -> None:
    """Add the options that name columns of the table of votes."""
    for name, meaning in _COLUMNS.items():
        rank.add_argument(f"--{name}", metavar="COLUMN", help=meaning)
    rank.add_argument(
        "--winner",
        metavar="COLUMN",
        nargs="+",
        help="who won, or that it was a tie; two or three columns with --soft",
    )
    rank.add_argument(
        "--outcomes",
        metavar="VALUE=a|b|tie",
        nargs="+",
        action=_ParseMeanings,
        help="what values of the winner column mean, such as 1=a 2=b 0=tie; others are read as "
        "usual",
    )
    rank.add_argument(
        "--controls",
        metavar="CONTROL",
        nargs="+",
        action="extend",
        default=[],
        help="what else decides a vote, to be held equal: columns such as length_a-length_b, "
        '"length" for short, or one that holds a difference',
    )


def _add_handling(rank: argparse.ArgumentParser) -> None:
    """Add the options that say how votes are read and learned from."""
    for name, (choices, meaning) in _CHOICES.items():
        rank.add_argument(f"--{name}", choices=choices, default=choices[0], help=meaning)
    for name, meaning in _SWITCHES.items():
        rank.add_argument(f"--{name}", action="store_true", help=meaning)


def _add_output(rank: argparse.ArgumentParser) -> None:
    """Add the options that say what is written, and where."""
    rank.add_argument(
        "--at", metavar="TIME", help="with --time: the board of another time than the last"
    )
    rank.add_argument(
        "--unit",
        "--scale",
        choices=tuple(UNITS),
        default="noise",
        help="unit of utilities (default: noise, the deviation of an item's noise)",
    )
    rank.add_argument(
        "--base",
        type=float,
        default=0.0,
        help="utility of the mean competitor, such as 1000 with --unit elo (default: 0)",
    )
    rank.add_argument(
        "--level", type=float, default=0.9, help="probability that an interval holds (default: .9)"
    )
    rank.add_argument("--title", help="of the pages (default: the name of the file)")
    rank.add_argument(
        "--top", type=_parse_count, default=25, help="rows of the table on the screen (default: 25)"
    )
    rank.add_argument("--seed", type=int, default=0, help="of the draws of ranks (default: 0)")
    rank.add_argument(
        "--out", type=Path, metavar="FOLDER", help="write CSV, Markdown, HTML and JSON there"
    )


class _ParseMeanings(argparse.Action):
    """Reads texts such as 1=a as what a value of the winner column means."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        pairs = [text.rpartition("=")[::2] for text in values]
        if any(meaning not in MEANINGS or not value for value, meaning in pairs):
            parser.error(
                f"argument {option}: give values with what they mean, such as 1=a 2=b 0=tie; got "
                f"{' '.join(values)}"
            )
        setattr(namespace, self.dest, {value: MEANINGS[meaning] for value, meaning in pairs})


def _parse_count(text: str) -> int:
    """Return a text as a number of at least 1; an error of argparse for others."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number
