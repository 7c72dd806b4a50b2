"""Texts of others on a terminal, in HTML and in CSV; summaries of objects for notebooks."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from sklearn.utils import Bunch

# A spreadsheet takes a cell that begins so for a formula, also with the wide signs of Japanese.
_FORMULA = tuple("=+-@＝＋－＠\t\r\n")
_NEGATIVE = re.compile(r"-[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def printable_text(value: Any) -> str:
    """Return a value as one line of text, a space for each character that is not printable.

    Line ends, escape sequences, marks of direction and characters of no width go, so that a name
    can neither steer a terminal nor look like another one. Half a character (a lone surrogate) is
    written by its number.

    Examples
    --------
    >>> from skpref._utils import printable_text
    >>> printable_text("a\\x1b[2Jb")
    'a [2Jb'
    """
    text = "".join(
        letter if letter.isprintable() or "\ud800" <= letter <= "\udfff" else " "
        for letter in str(value)
    )
    return text.encode("utf-8", "backslashreplace").decode()


class PrintableBunch(Bunch):
    """A Bunch that prints on a terminal as `printable_text` has it, also the frames in it."""

    def __repr__(self) -> str:
        return "\n".join(map(printable_text, super().__repr__().split("\n")))


def probability_text(probability: float) -> str:
    """Return a probability with three digits, which is never that of what is certain.

    Examples
    --------
    >>> from skpref._utils import probability_text
    >>> [probability_text(p) for p in (0.5, 0.9996, 0.0001)]
    ['0.500', '> 0.999', '< 0.001']
    """
    if probability > 0.999:
        return "> 0.999"
    return "< 0.001" if probability < 0.001 else f"{probability:.3f}"


def whole_percent(probability: float) -> str:
    """Return a probability in whole per cent, without its sign; never 0 or 100 of what is open.

    Examples
    --------
    >>> from skpref._utils import whole_percent
    >>> [whole_percent(p) for p in (0.5, 0.9996, 1.0)]
    ['50', '>99', '100']
    """
    rounded = round(100.0 * probability)
    if rounded in (0, 100) and 0.0 < probability < 1.0:
        return "<1" if rounded == 0 else ">99"
    return f"{rounded}"


def html_text(value: Any) -> str:
    """Return a value as text of HTML, without tags or entities of its own."""
    return escape(printable_text(value))


def csv_cell(value: Any) -> Any:
    """Return a value as a cell that no spreadsheet runs as a formula.

    Numbers are as they are, and so are texts of negative ones, which a spreadsheet leaves alone.

    Examples
    --------
    >>> from skpref._utils import csv_cell
    >>> [csv_cell(each) for each in ("=1+1", "+1", "-5", -0.5, "a=b")]
    ["'=1+1", "'+1", '-5', -0.5, 'a=b']
    """
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula and not _NEGATIVE.fullmatch(value) else value


def csv_text(heads: Iterable[str], rows: Iterable[Iterable[Any]], raw: bool = False) -> str:
    """Return a table as CSV; the texts of its rows are safe for spreadsheets unless raw."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(row if raw else map(csv_cell, row) for row in rows)
    return text.getvalue()


def html_table(
    caption: str, rows: Iterable[Sequence[Any]], head: Sequence[str] = (), more: str = ""
) -> str:
    """Return an HTML table whose rows begin with what they are about; texts are escaped.

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
        first, *rest = map(html_text, row)
        tail = "".join(f'<td style="text-align: {align}">{cell}</td>' for cell in rest)
        return f'<tr><th scope="row" style="text-align: left">{first}</th>{tail}</tr>'

    titles = "".join(f'<th scope="col">{html_text(title)}</th>' for title in head)
    below = f"<div>{html_text(more)}</div>" if more else ""
    return (
        '<div><table><caption style="text-align: left">'
        f"{html_text(caption)}</caption>"
        + (f"<thead><tr>{titles}</tr></thead>" if titles else "")
        + f"<tbody>{''.join(map(cells, rows))}</tbody></table>{below}</div>"
    )


class Summarised:
    """For a class with `_facts`: a table of them in notebooks."""

    def _facts(self) -> dict[str, Any]:
        """Return what there is to say of the object, by name."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Return a table of the facts as HTML, for notebooks."""
        return html_table(type(self).__name__, self._facts().items())
