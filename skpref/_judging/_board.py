"""The board as a page: places with intervals, undecided pairs, judges, and what is still open."""

from collections.abc import Iterable, Sequence
from typing import Any

from skpref._utils import html_text, probability_text
from skpref.plotting import board_svg

# Rows of the page that are shown; the rest is in the files of `/export`.
_MOST_PAIRS = 10


def _table_html(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of HTML, whose texts are escaped."""
    head = "".join(f'<th scope="col">{html_text(each)}</th>' for each in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{html_text(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html_text(caption)}">'
        f"<table class=sortable><caption>{html_text(caption)}</caption><thead><tr>{head}</tr>"
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def page_html(title: str, body: str) -> str:
    """Return a page of the server, of its title and of HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html_text(title)}</title><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="page.css"></head><body>{body}</body></html>'
    )


def board_page(desk: Any) -> str:
    """Return the page of a desk's leaderboard."""
    title = f"Leaderboard of {desk.title}"
    return page_html(
        title,
        '<script type="module" src="board.js"></script>'
        f'<header><h1>{html_text(title)}</h1></header><main id="board">{desk.board_html()}</main>'
        '<footer><nav><a href="./">Vote</a> <a href="export">Export</a></nav></footer>',
    )


def voting_progress_html(desk: Any) -> str:
    """Return how the votes of a desk stand, as a part of a page."""
    n_votes = desk.store.count_votes()
    planner = desk.planner
    view = None if planner is None else planner.board
    texts = [f"Votes: {n_votes}. Judges: {len(desk.store.judge_names())}."]
    if planner is not None and planner.trouble:
        texts.append(f"The board could not be made: {planner.trouble}")
    if view is None:
        texts.append("The board comes with the first votes; it takes some seconds.")
        return _paragraphs_html(texts) + _judges_html(desk, None)
    board = view.board
    if view.n_votes < n_votes:
        texts.append(f"The board is of the first {view.n_votes} votes as yet.")
    if board.n_components > 1:
        how = (
            "there is a board for each prompt"
            if desk.source.boards == "prompt"
            else "no votes join these yet, so that nothing is decided between them"
        )
        texts.append(f"There are {board.n_components} groups of items: {how}.")
    elif board.lead is not None:
        first, second = board.lead.names
        chance = probability_text(board.lead.probability)
        texts.append(f"{first} is better than {second} with a probability of {chance}.")
    texts += [f"{line}." for line in board.about_prompts]
    if view.votes_needed is not None and view.votes_needed[1]:
        fewest, most = map(_round_to_two_digits, view.votes_needed)
        texts.append(
            f"It takes some {fewest} to {most} more votes until the first place is settled; one "
            "time in four it takes more."
        )
    places = _table_html(f"Utilities in units of {board.unit}; 0 is their mean", *board.cells())
    parts = [_paragraphs_html(texts), board_svg(board), places, _undecided_html(view.undecided)]
    return "".join(parts) + _judges_html(desk, view.judges)


def _paragraphs_html(texts: list[str]) -> str:
    """Return texts as paragraphs of HTML, escaped."""
    return "".join(f"<p>{html_text(text)}</p>" for text in texts)


def _round_to_two_digits(n: int) -> int:
    """Return a number rounded to its first two digits."""
    digits = max(0, len(str(n)) - 2)
    return round(n, -digits)


def _undecided_html(pairs: Any) -> str:
    """Return the table of the undecided pairs that are closest to even."""
    n_open = len(pairs.first)
    closest = sorted(range(n_open), key=lambda k: abs(pairs.probability[k] - 0.5))[:_MOST_PAIRS]
    rows = [
        [pairs.first[k], pairs.second[k], probability_text(pairs.probability[k])]
        for k in sorted(closest)
    ]
    caption = f"Undecided pairs: {n_open} of {n_open + pairs.n_decided}"
    caption += f", the {_MOST_PAIRS} closest" if n_open > _MOST_PAIRS else ""
    return _table_html(caption, ["first", "second", "P(first is better)"], rows)


def _judges_html(desk: Any, reliability: Any) -> str:
    """Return the table of judges: votes, seconds, repetitions alike, and reliability if known."""
    place = {} if reliability is None else {name: k for k, name in enumerate(reliability.names)}
    rows = []
    for judge, (same, n_repeats, seconds) in desk.agreement().items():
        row = [judge, desk.store.count_votes(judge)]
        row.append("–" if seconds is None else f"{seconds:.1f}")
        row.append(f"{same} of {n_repeats}" if n_repeats else "–")
        if judge in place:
            k = place[judge]
            row.append(f"{reliability.reliability[k]:.2f}")
            row.append(probability_text(reliability.probability_random[k]))
        else:
            row += ["–", "–"]
        rows.append(row)
    heads = ["judge", "votes", "seconds a vote", "repeats alike", "reliability", "P(random)"]
    return _table_html("Judges: 1 is the reliability of the reference judge", heads, rows)
