"""A leaderboard as a picture that needs no library: utilities and their intervals, as SVG."""

import math
from typing import Any

from skpref._utils import html_text
from skpref.plotting._style import SIZES, shorten

_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:currentColor}"
    "line{stroke:currentColor}.grid{opacity:.25}circle{fill:#0072b2;stroke:currentColor}"
)


def board_svg(board: Any, top: int = 60, base: float = 0.0) -> str:
    """Return a picture of the first places of a leaderboard, as wide as what it stands in.

    Its colour is that of the text around it, and its letters keep their size at any width.

    Parameters
    ----------
    board : Bunch
        As `skpref.inspection.leaderboard` gives it.
    top : int, default=60
        Places that are drawn.
    base : float, default=0.0
        What is written for the mean utility of all items.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from skpref.plotting._board_svg import board_svg
    >>> ends = {"lower": np.array([0.5, -1.0]), "upper": np.array([1.5, np.inf])}
    >>> names, utility = np.array(["a<b", "c"]), np.array([1.0, -1.0])
    >>> board = Bunch(names=names, utility=utility, **ends, unit="noise", level=0.9)
    >>> picture = board_svg(board)
    >>> picture.startswith("<svg"), "a&lt;b" in picture
    (True, True)
    """
    names = [html_text(shorten(name)) for name in board["names"][:top]]
    rows = [
        tuple(base + float(value) for value in row)
        for row in zip(*(board[of][:top] for of in ("utility", "lower", "upper")), strict=True)
    ]
    values = [value for row in rows for value in row if math.isfinite(value)] + [base]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    low, high = low - 0.03 * span, high + 0.03 * span
    foot = SIZES.svg_row * len(rows)

    def x(value: float) -> str:
        return f"{100.0 * (min(max(value, low), high) - low) / (high - low):.2f}%"

    parts = [
        f'<line class="grid" x1="{x(at)}" x2="{x(at)}" y1="0" y2="{foot}"/>'
        f'<text x="{x(at)}" y="{foot + 16}" text-anchor="middle">{at:g}</text>'
        for at in _round_ticks(low, high)
    ]
    for k, (name, (mean, start, end)) in enumerate(zip(names, rows, strict=True)):
        y = SIZES.svg_row * k + SIZES.svg_name
        parts.append(
            f'<text x="0" y="{y - 8}">{name}</text>'
            f'<line x1="{x(start)}" x2="{x(end)}" y1="{y}" y2="{y}" stroke-width="2"/>'
            f'<circle cx="{x(mean)}" cy="{y}" r="4"/>'
        )
    about = f"Utilities in units of {board['unit']}, with {100 * board['level']:g} % intervals"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{foot + SIZES.svg_foot}" '
        f'role="img" aria-label="{html_text(about)}"><style>{_STYLE}</style>{"".join(parts)}</svg>'
    )


def _round_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers of a range."""
    rough = (high - low) / 5.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1.0, 2.0, 5.0, 10.0) if each * power >= rough)
    return [step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
