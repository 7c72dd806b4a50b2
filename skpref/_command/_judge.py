"""The arguments of `skpref judge`."""

import argparse
from pathlib import Path
from typing import Any

_EXAMPLES = """examples:
  skpref judge photos/
  skpref judge photos/ --judges invited.csv --host 0.0.0.0 --checks 5%
  skpref judge answers.csv --text response --competitor model --prompt prompt
  skpref judge space.toml --show render:picture --votes 25

Keys: the arrows or 1 and 2 choose, 0 is a tie, s skips, u takes back.
"""


def add_judge_command(commands: Any) -> None:
    """Add the parser of `skpref judge` to those of the commands."""
    judge = commands.add_parser(
        "judge",
        help="let people vote on a web page, and see the board",
        description="Let people vote on the files of a folder, the rows of a table, or settings.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    judge.add_argument(
        "what",
        type=Path,
        help="a folder of pictures, sounds, videos, texts, Markdown, HTML or PDFs; a table with "
        "--text; or a file of TOML with a table [space] of settings",
    )
    _add_questions(judge)
    _add_items(judge)
    _add_server(judge)


def _add_questions(judge: argparse.ArgumentParser) -> None:
    """Add the options that say what is asked and when that ends."""
    judge.add_argument(
        "--question", metavar="TEXT", help='asked above (default: "Which is better?")'
    )
    judge.add_argument("--size", type=int, default=2, help="items shown at once (default: 2)")
    judge.add_argument(
        "--answer",
        choices=("best", "best_worst"),
        default="best",
        help="with --size above 2: the best, or the best and the worst (default: best)",
    )
    judge.add_argument("--grades", action="store_true", help='also ask "clearly better"')
    judge.add_argument("--votes", type=int, metavar="N", help="end at N votes of all judges")
    judge.add_argument(
        "--until",
        type=float,
        metavar="P",
        help="end once the best is known with this probability, such as .95",
    )
    judge.add_argument(
        "--top",
        type=int,
        metavar="K",
        help="ask who are the first K, in whatever order (default: about all ranks)",
    )
    judge.add_argument(
        "--checks",
        type=_parse_share,
        default=0.0,
        metavar="5%",
        help="share of questions that repeat an earlier one with the sides exchanged (default: 0)",
    )
    judge.add_argument(
        "--judges",
        type=Path,
        metavar="FILE",
        help="names of judges, one a line: each gets a link, and nobody else votes",
    )


def _add_items(judge: argparse.ArgumentParser) -> None:
    """Add the options that say what is shown."""
    judge.add_argument("--text", metavar="COLUMN", help="of a table: what is shown")
    judge.add_argument("--competitor", metavar="COLUMN", help="of a table: whose it is")
    judge.add_argument(
        "--prompt", metavar="COLUMN", help="of a table: what it answers; others never meet it"
    )
    judge.add_argument(
        "--features",
        type=Path,
        metavar="FILE.npy",
        help="numbers of each item, so that items never shown are ranked too",
    )
    judge.add_argument(
        "--show",
        metavar="MODULE:FUNCTION",
        help="of settings: returns what to show, a picture or sound; it gets a dict of them",
    )
    judge.add_argument(
        "--file", type=Path, help="of the votes (default: beside the folder, NAME.votes.db)"
    )


def _add_server(judge: argparse.ArgumentParser) -> None:
    """Add the options of the server."""
    judge.add_argument(
        "--host",
        help="an address of this machine, or 0.0.0.0 for all: others reach it, each by a link "
        "with a token (default: this machine alone)",
    )
    judge.add_argument("--port", type=int, help="(default: 8765, or a free one)")
    judge.add_argument("--no-browser", action="store_true", help="do not open a browser")


def _parse_share(text: str) -> float:
    """Return a text such as 5% or .05 as a share."""
    return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)


def run_judge(arguments: Any) -> None:
    """Serve the pages until interrupted.

    Raises
    ------
    ImportError
        If the extra is not installed, with the way to install it.
    ValueError, OSError
        If the arguments or files are not as they must be.
    """
    try:
        from skpref._judging import serve_judging
    except ModuleNotFoundError as error:
        raise ImportError(
            "skpref judge requires a web server. You can install it with `pip install "
            '"skpref[judge]"`'
        ) from error
    serve_judging(arguments)
