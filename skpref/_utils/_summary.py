"""Summaries of objects as tables for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(
    caption: str, rows: Iterable[Sequence[Any]], head: Sequence[str] = (), more: str = ""
) -> str:
    """A table whose rows begin with what they are about; all texts are escaped.

    Parameters
    ----------
    caption : str
    rows : iterable of sequences
        Cells. All but the first of a row are aligned to the right if there is a head.
    head : sequence of str, optional
        Titles of the columns.
    more : str, optional
        A line below the table.
    """
    align = "right" if head else "left"

    def cells(row: Sequence[Any]) -> str:
        first, *rest = (escape(str(cell)) for cell in row)
        tail = "".join(f'<td style="text-align: {align}">{cell}</td>' for cell in rest)
        return f'<tr><th scope="row" style="text-align: left">{first}</th>{tail}</tr>'

    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    below = f"<div>{escape(more)}</div>" if more else ""
    return (
        '<div><table><caption style="text-align: left">'
        f"{escape(caption)}</caption>"
        + (f"<thead><tr>{titles}</tr></thead>" if titles else "")
        + f"<tbody>{''.join(map(cells, rows))}</tbody></table>{below}</div>"
    )


class Summarised:
    """For a class with `_facts`: a table of them in notebooks."""

    def _facts(self) -> dict[str, Any]:
        """What there is to say of it, by name."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._facts().items())
