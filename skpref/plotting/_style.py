"""What all pictures share: colours, axes, and the error where matplotlib is missing."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from skpref._utils import leading_axes, printable_text
from skpref.fitting import UNITS

GREY = "#808080"


class Palette(NamedTuple):
    """Colours of Okabe and Ito, which those who see few colours tell apart too."""

    blue: str
    orange: str
    green: str


@dataclass(frozen=True)
class PictureSizes:
    """Sizes that pictures share.

    Attributes
    ----------
    short_name, legend_name : int
        Letters of a name beside many others, and of one in a legend.
    row, margin : float
        Inches of a row with a name, and of what is not rows.
    lowest, highest : float
        Inches that axes of rows are high at least and at most, the latter that of a long page.
    curve_points, surface_points : int
        Places at which a curve is drawn, and along each side of a surface.
    named_points : int
        Users beyond whom nobody is named, and no ellipses are drawn.
    floor : float
        Quantile below which an acquisition is drawn as this: logarithms fall without end.
    decades : float
        Ratio of the ends of an axis from which on its ticks are powers of ten.
    cell, cell_margin, widest : float
        The same of a matrix, and how wide it is at most.
    smallest_letter : float
        Points.
    line, number : float
        Distance of two lines, and width of a per cent, in letters.
    names_share, questions_share : float
        Share of axes that the names of rows take, and that the questions of a run take below the
        utility.
    column_ends : tuple of float
        Right ends of the columns beside a leaderboard, in letters from the axes.
    label : float
        Size of a label beside a point, in letters of the picture.
    label_across, label_up : tuple of float
        How far it may stand from the point, in its own letters, near first.
    date : float
        Points that a date on an axis needs.
    histogram : tuple of float
        Where the histogram below the unit square of probabilities begins and ends.
    board, boards_share : float
        Height of each of several boards in a row, and the share of it that all of them take.
    svg_row, svg_name, svg_foot : int
        Pixels of a row of a board as SVG, of its name above the interval, and of the axis below.
    """

    short_name: int = 16
    legend_name: int = 24
    row: float = 0.21
    margin: float = 1.1
    lowest: float = 1.8
    highest: float = 20.0
    curve_points: int = 200
    surface_points: int = 40
    named_points: int = 25
    floor: float = 0.05
    decades: float = 50.0
    cell: float = 0.27
    cell_margin: float = 1.9
    widest: float = 12.0
    smallest_letter: float = 5.5
    line: float = 1.25
    number: float = 1.5
    names_share: float = 0.45
    questions_share: float = 0.38
    column_ends: tuple[float, float] = (5.0, 10.0)
    label: float = 0.85
    label_across: tuple[float, ...] = (0.5, -0.5)
    label_up: tuple[float, ...] = (0.3, -0.3, 1.5, -1.5)
    date: float = 36.0
    histogram: tuple[float, float] = (-0.22, -0.03)
    board: float = 0.55
    boards_share: float = 0.8
    svg_row: int = 36
    svg_name: int = 22
    svg_foot: int = 30


SIZES = PictureSizes()

# Without yellow, which is lost on white, and dark enough for lines; on a dark ground lighter.
_MANY_ON_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#A8477F", "#B07D00", "#3A9BD0", "#4D4D4D")
_MANY_ON_DARK = ("#56B4E9", "#E69F00", "#3FD0A4", "#E08FC0", "#F0E442", "#7FA8FF", "#CCCCCC")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_ON_LIGHT = Palette("#0072B2", "#D55E00", "#009E73")
_ON_DARK = Palette("#56B4E9", "#E69F00", "#3FD0A4")


def check_matplotlib(caller: str) -> None:
    """Raise ImportError, in scikit-learn's words, if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{caller} requires matplotlib. You can install matplotlib with "
            "`pip install matplotlib`"
        ) from error


class Display:
    """Base of the pictures, which keep the axes that they are drawn on.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Any

    def _new_axes(self, ax: Any, size: tuple[float, float]) -> Any:
        """Return the axes to draw on: those given, or those of a new figure of a size in inches.

        matplotlib's constrained layout, beside colour bars its tight one, makes room for the labels
        of subplots, unless their figure has a layout engine already.
        """
        check_matplotlib(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=size, layout="constrained")[1]
        figure = ax.figure.canvas.figure
        if figure.get_layout_engine() is None and ax.get_subplotspec() is not None:
            # Where a colour bar stands it shares a grid that constrained layout does not take.
            has_bar = any(each.get_label() == "<colorbar>" for each in figure.axes)
            figure.set_layout_engine("tight" if has_bar else "constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def update_layout(ax: Any) -> None:
    """Place axes by the layout of their figure, with the labels that they have now."""
    ax.figure.canvas.figure.draw_without_rendering()


def hide_frame(ax: Any) -> None:
    """Hide the frame of axes but for the left and the lower line."""
    ax.spines[["top", "right"]].set_visible(False)


def palette(ax: Any) -> Palette:
    """Return the three colours that stand out from the background of the axes."""
    from matplotlib.colors import to_rgb

    return _ON_DARK if sum(to_rgb(ax.get_facecolor())) < 1.5 else _ON_LIGHT


def line_looks(ax: Any, n: int) -> list[tuple[str, Any]]:
    """Return colour and dashes of n lines, no two of them the same below 29.

    Neighbours differ in both, so that they are told apart without colours too.
    """
    colors = _MANY_ON_DARK if palette(ax) is _ON_DARK else _MANY_ON_LIGHT
    return [(colors[k % len(colors)], _DASHES[k % len(_DASHES)]) for k in range(n)]


def plain_text(text: Any) -> str:
    """Return a name as text that matplotlib does not read as a formula."""
    return "\n".join(map(printable_text, str(text).split("\n"))).replace("$", r"\$")


def shorten(text: Any, most: int = 40) -> str:
    """Return a name of at most ``most`` letters, its middle left out."""
    text = str(text)
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def short_name(name: Any) -> str:
    """Return a name as plain text, shortened for a place beside many others."""
    return plain_text(shorten(name, SIZES.short_name))


def height_of_rows(n: int, row: float | None = None) -> float:
    """Return the height of axes of n rows with names, in inches, up to that of a long page.

    Parameters
    ----------
    n : int
    row : float, optional
        Height of one, in inches; by default that of a name.
    """
    height = (SIZES.row if row is None else row) * n + SIZES.margin
    return float(np.clip(height, SIZES.lowest, SIZES.highest))


def percent_text(level: float) -> str:
    """Return a level as people write it: 0.9 is "90 %"."""
    return f"{100.0 * level:.4g} %"


def label_with_unit(what: str, unit: str) -> str:
    """Return the label of an axis: what it shows, and below it the unit."""
    return f"{what}\n({UNITS[unit]})"


def shorten_to_width(text: Any, name: Any, width: float) -> None:
    """Set a text to a name, its middle left out, no wider than so many pixels."""
    most = len(shorten(name))
    text.set_text(plain_text(shorten(name)))
    while most > 5 and text.get_window_extent().width > width:
        most = min(most - 1, int(most * width / text.get_window_extent().width) + 1)
        text.set_text(plain_text(shorten(name, most)))


def wrap_to_width(text: Any, width: float) -> None:
    """Break the lines of a text that are longer than so many pixels."""
    box = text.get_window_extent()
    wide = box.height if text.get_rotation() == 90.0 else box.width
    if wide <= width:
        return
    lines = text.get_text().split("\n")
    longest = max(map(len, lines))
    most = max(12, int(longest * width / wide))
    text.set_text("\n".join(part for line in lines for part in textwrap.wrap(line, most)))


# -- shared by displays ----------------------------------------------------------------------


def size_in_points(ax: Any) -> tuple[float, float]:
    """Return the width and height of axes in points."""
    box = ax.get_window_extent()
    return box.width * 72.0 / ax.figure.dpi, box.height * 72.0 / ax.figure.dpi


def letter_size(of: Any = "font.size") -> float:
    """Return the size in points of the letters of a setting of matplotlib's."""
    from matplotlib import font_manager, rcParams

    return float(font_manager.FontProperties(size=rcParams[of]).get_size_in_points())


def diverging_colors(ax: Any) -> Any:
    """Return a colormap from orange over the background of the axes to blue."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = palette(ax)
    return LinearSegmentedColormap.from_list(
        "orange_blue", [colors.orange, ax.get_facecolor(), colors.blue]
    )


def draw_band(ax: Any, x: Any, lower: Any, upper: Any, color: Any = None, **options: Any) -> Any:
    """Fill the band between two curves in a pale colour, blue by default; return it."""
    color = palette(ax).blue if color is None else color
    look = {"alpha": 0.22, "linewidth": 0, **options}
    return ax.fill_between(x, lower, upper, color=color, **look)


def thin_look() -> dict[str, Any]:
    """Return the look of a line that marks 0, or another value."""
    return {"color": "0.5", "linewidth": 0.8, "zorder": 0}


def draw_rows(
    ax: Any, values: Any, ends: Any, color: Any, rows: Any = None, marker: str = "o", **options: Any
) -> tuple[Any, Any]:
    """Draw a point and an interval in each row, or at these heights; return intervals and points.

    Where an interval is not finite nothing is known, and there is no point either. Further options
    are those of the points, such as their label.
    """
    rows = np.arange(len(values)) if rows is None else rows
    lower, upper = np.asarray(ends)
    known = np.isfinite(lower) & np.isfinite(upper)
    look = {"color": color, "alpha": 0.45, "linewidth": 2.5}
    intervals = ax.hlines(rows[known], lower[known], upper[known], **look)
    values = np.where(known, values, np.nan)
    return intervals, ax.plot(values, rows, marker, color=color, markersize=4.5, **options)[0]


def draw_legend_above(ax: Any, columns: int) -> Any:
    """Draw a legend above the axes, outside them, where their layout leaves room."""
    look = {"frameon": False, "fontsize": "small", "borderaxespad": 0.2, "handletextpad": 0.4}
    look |= {"columnspacing": 1.2, "handlelength": 1.4}
    return ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, **look)


def row_letter_size(height: float, n: int) -> tuple[float, int]:
    """Return the size of letters of n rows in a height, and the step between rows that have some.

    Both in points; 1 stands for every row, 2 for every second, …
    """
    size = min(letter_size("ytick.labelsize"), height / (SIZES.line * n))
    least = SIZES.smallest_letter
    return max(size, least), int(np.ceil(least / size))


def draw_row_names(
    ax: Any, names: Sequence[Any], columns: Sequence[Any] = (), width: float = 0.0
) -> list[Any]:
    """Write names beside rows 0, 1, … from the top; return the texts of columns that had room.

    Parameters
    ----------
    ax : matplotlib Axes
    names : sequence
    columns : sequence of Text
        In every row at the right, outside the axes.
    width : float
        Of the columns, in letters.

    Returns
    -------
    list of Text
        The columns; empty where they had no room and were removed.
    """
    n = len(names)
    ax.set_ylim(n - 0.4, -0.6)
    hide_frame(ax)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.5", alpha=0.2, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_yticks([])
    update_layout(ax)
    size, step = row_letter_size(size_in_points(ax)[1], n)
    rows, room = np.arange(0, n, step), ax.get_window_extent().width
    ax.set_yticks(rows, [""] * len(rows), fontsize=size)
    drawn = ax.get_yticklabels()
    for text, row in zip(drawn, rows, strict=True):
        shorten_to_width(text, names[int(row)], SIZES.names_share * room)
    ax.set_yticks(rows, [text.get_text() for text in drawn])
    ax.xaxis.label.set_visible(False)
    update_layout(ax)
    has_room = step == 1 and size_in_points(ax)[0] >= width * size
    box, labelled = ax.get_window_extent(), ax.get_tightbbox()
    for text in columns:
        text.set_fontsize(size) if has_room else text.remove()
    ax.xaxis.label.set_visible(True)
    wrap_to_width(ax.xaxis.label, box.width + 2.0 * min(box.x0 - labelled.x0, labelled.x1 - box.x1))
    update_layout(ax)
    return [*columns] if has_room else []


def ellipse_radius(level: float) -> float:
    """Return the deviations within which a normal in the plane holds ``level``."""
    return float(np.sqrt(-2.0 * np.log1p(-level)))  # chi of two degrees of freedom


def density_ellipse(centre: Any, covariance: Any, level: float) -> Any:
    """Return the ellipse that holds ``level`` of a normal density."""
    from matplotlib.patches import Ellipse

    axes = leading_axes(covariance, 2)
    variances = np.maximum(np.diag(axes.T @ covariance @ axes), 0.0)
    width, height = 2.0 * ellipse_radius(level) * np.sqrt(variances)
    return Ellipse(tuple(centre), width, height, angle=np.degrees(np.arctan2(*axes[::-1, 0])))


def place_labels(ax: Any, labels: Sequence[tuple[Any, str, Any]]) -> list[Any]:
    """Write names beside points where they cover no others; return the texts that had room.

    Parameters
    ----------
    labels : sequence of (place of shape (2,), text, colour)
    """
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=1.8, foreground=ax.get_facecolor())]
    size, taken, texts = SIZES.label * letter_size(), list[Any](), list[Any]()
    frame = ax.get_window_extent()
    dots = ax.transData.transform([place for place, _, _ in labels]) if labels else []
    for (place, name, color), dot in zip(labels, dots, strict=True):
        for y, x in product(SIZES.label_up, SIZES.label_across):
            text = ax.annotate(
                name,
                xy=place,
                xytext=(x * size, y * size),
                textcoords="offset points",
                ha="left" if x > 0.0 else "right",
                va="bottom" if y > 0.0 else "top",
                fontsize=size,
                color=color,
                path_effects=halo,
            )
            box = text.get_window_extent().padded(2.0)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 + 20.0 and frame.y0 <= box.y0
            covers = any(box.overlaps(other) for other in taken) or any(
                box.contains(*other) for other in dots if other is not dot
            )
            if inside and box.y1 <= frame.y1 and not covers:
                taken.append(box)
                texts.append(text)
                break
            text.remove()
    return texts
