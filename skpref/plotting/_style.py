"""What all pictures share: colours, axes, and the error where matplotlib is missing."""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skpref._utils import printable_text
from skpref.fitting import UNITS

# Of its width or height, axes keep at least this much where room is made for labels.
_KEPT = 0.3
# Of its height a legend inside them takes this much at most.
_MOST_LEGEND = 0.5
_GAP = 3.0  # points between labels and what is next to them

GREY = "#808080"


class Palette(NamedTuple):
    """Colours of Okabe and Ito, which those who see few colours tell apart too."""

    blue: str
    orange: str
    green: str


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


def new_axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes to draw on: those given, or those of a new figure of a size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def tidy(ax: Any) -> None:
    """No frame but the two axes."""
    ax.spines[["top", "right"]].set_visible(False)


def palette(ax: Any) -> Palette:
    """The colours that stand out from the ground of the axes."""
    from matplotlib.colors import to_rgb

    return _ON_DARK if sum(to_rgb(paper(ax))) < 1.5 else _ON_LIGHT


def looks(ax: Any, n: int) -> list[tuple[str, Any]]:
    """Colour and dashes of n lines, no two of them with the same of both below 29.

    Neighbours differ in both, so that they are told apart without colours too.
    """
    colors = _MANY_ON_DARK if palette(ax) is _ON_DARK else _MANY_ON_LIGHT
    return [(colors[k % len(colors)], _DASHES[k % len(_DASHES)]) for k in range(n)]


def paper(ax: Any) -> Any:
    """Colour of the ground, for what must stand out from what lies beneath."""
    return ax.get_facecolor()


def legend_on_top(ax: Any, columns: int) -> Any:
    """A legend inside the axes, above all that is drawn: in room that is made for it."""
    place = {"loc": "upper left", "borderaxespad": 0.1, "frameon": False}
    legend = ax.legend(ncols=columns, fontsize="small", **place)
    entries = len(ax.get_legend_handles_labels()[1])
    share = 0.03 + 0.065 * -(-entries // columns)
    # Of small axes the letters take more.
    taken = legend.get_window_extent().height / ax.get_window_extent().height + 0.03
    share = min(max(share, taken), _MOST_LEGEND)
    scale = ax.yaxis.get_transform()  # heights on paper, also of a logarithmic axis
    low, high = scale.transform(ax.get_ylim())
    top = high + share / (1.0 - share) * (high - low)
    ax.set_ylim(top=scale.inverted().transform([top])[0])
    return legend


def plain(text: Any) -> str:
    """A name as text that matplotlib does not read as a formula, nor a reader of SVG as no text."""
    return "\n".join(map(printable_text, str(text).split("\n"))).replace("$", r"\$")


def shortened(text: Any, most: int = 40) -> str:
    """A name of at most so many letters, its middle left out."""
    text = str(text)
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def percent(level: float) -> str:
    """A level as people write it: 0.9 is "90 %"."""
    return f"{100.0 * level:.4g} %"


def in_unit(what: str, unit: str) -> str:
    """What an axis shows, and below it the unit."""
    return f"{what}\n({UNITS[unit]})"


# -- room for labels -------------------------------------------------------------------------


def is_laid_out(ax: Any) -> bool:
    """Whether a layout engine places these axes."""
    engine = ax.figure.canvas.figure.get_layout_engine()
    return engine is not None and ax.get_subplotspec() is not None and ax.get_in_layout()


def make_room(ax: Any) -> None:
    """Make axes smaller where labels would be cut off or drawn over other axes.

    Nothing is done where a layout engine sees to it.
    """
    for _ in range(0 if is_laid_out(ax) else 2):  # labels move with the axes
        _shrink(ax)


def settle(ax: Any) -> None:
    """Place axes as they will stand with the labels that they have now."""
    if is_laid_out(ax):
        ax.figure.canvas.figure.draw_without_rendering()
    make_room(ax)


def _shrink(ax):
    box, labelled = ax.get_window_extent(), ax.get_tightbbox()
    left, bottom, right, top = room_of(ax)
    begin = box.x0 + max(0.0, left - labelled.x0), box.y0 + max(0.0, bottom - labelled.y0)
    end = box.x1 - max(0.0, labelled.x1 - right), box.y1 - max(0.0, labelled.y1 - top)
    width, height = end[0] - begin[0], end[1] - begin[1]
    if (begin, end) == ((box.x0, box.y0), (box.x1, box.y1)):
        return
    if width < _KEPT * box.width or height < _KEPT * box.height:
        return
    whole = ax.figure.bbox
    x, y = (begin[0] - whole.x0) / whole.width, (begin[1] - whole.y0) / whole.height
    ax.set_position((x, y, width / whole.width, height / whole.height))


def room_of(ax: Any) -> tuple[float, float, float, float]:
    """Left, bottom, right and top of where axes and their labels may stand, in pixels.

    The figure, as far as other axes beside, above and below leave it.
    """
    box, whole = ax.get_window_extent(), ax.figure.bbox
    gap = _GAP * ax.figure.dpi / 72.0
    left, bottom, right, top = whole.x0 + gap, whole.y0 + gap, whole.x1 - gap, whole.y1 - gap
    for other in ax.figure.axes:
        if other is ax or not other.get_visible():
            continue
        core, labelled = other.get_window_extent(), other.get_tightbbox()
        if core.y0 < box.y1 and box.y0 < core.y1:
            if core.x1 <= box.x0:
                left = max(left, min(labelled.x1, box.x0) + gap)
            elif core.x0 >= box.x1:
                right = min(right, max(labelled.x0, box.x1) - gap)
        elif core.x0 < box.x1 and box.x0 < core.x1:
            if core.y1 <= box.y0:
                bottom = max(bottom, min(labelled.y1, box.y0) + gap)
            elif core.y0 >= box.y1:
                top = min(top, max(labelled.y0, box.y1) - gap)
    return left, bottom, right, top


def shorten_to(text: Any, name: Any, width: float) -> None:
    """Write a name, its middle left out, no wider than so many pixels."""
    most = len(shortened(name))
    text.set_text(plain(shortened(name)))
    while most > 5 and text.get_window_extent().width > width:
        most = min(most - 1, int(most * width / text.get_window_extent().width) + 1)
        text.set_text(plain(shortened(name, most)))


def wrap_to(text: Any, width: float) -> None:
    """Break the lines of a text, upright or not, that are longer than so many pixels."""
    box = text.get_window_extent()
    wide = box.height if text.get_rotation() == 90.0 else box.width
    if wide <= width:
        return
    lines = text.get_text().split("\n")
    longest = max(map(len, lines))
    most = max(12, int(longest * width / wide))
    text.set_text("\n".join(part for line in lines for part in textwrap.wrap(line, most)))


# -- shared by displays ----------------------------------------------------------------------


def points_of(ax: Any) -> tuple[float, float]:
    """Width and height of axes in points."""
    box = ax.get_window_extent()
    return box.width * 72.0 / ax.figure.dpi, box.height * 72.0 / ax.figure.dpi


def letters(of: Any = "font.size") -> float:
    """Size in points of the letters of a setting of matplotlib's."""
    from matplotlib import font_manager, rcParams

    return float(font_manager.FontProperties(size=rcParams[of]).get_size_in_points())


def diverging(ax: Any) -> Any:
    """Colours from orange over the ground of the axes to blue."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = palette(ax)
    return LinearSegmentedColormap.from_list("orange_blue", [colors.orange, paper(ax), colors.blue])


def legend_above(ax: Any, columns: int) -> Any:
    """A legend above the axes, outside them, where a layout engine or `make_room` leaves room."""
    look = {"frameon": False, "fontsize": "small", "borderaxespad": 0.2, "handletextpad": 0.4}
    look |= {"columnspacing": 1.2, "handlelength": 1.4}
    return ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, **look)


# Letters of rows, in points at least; distance of the lines; share of the figure that names take.
_SMALLEST, _LINE, _NAMES = 5.5, 1.25, 0.4


def rows_of_names(ax: Any, names: Sequence[Any]) -> None:
    """Names beside rows 0, 1, … from the top, where rows are too close at every second, third, …"""
    n = len(names)
    ax.set_ylim(n - 0.4, -0.6)
    tidy(ax)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.5", alpha=0.2, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_yticks([])
    settle(ax)
    usual = letters("ytick.labelsize")
    size = min(usual, points_of(ax)[1] / (_LINE * n))
    step = int(np.ceil(_SMALLEST / size)) if size < _SMALLEST else 1
    rows = np.arange(0, n, step)
    ax.set_yticks(rows, [""] * len(rows), fontsize=max(size, _SMALLEST))
    room = ax.get_window_extent().x1 - ax.figure.bbox.x0
    drawn = ax.get_yticklabels()
    for text, row in zip(drawn, rows, strict=True):
        shorten_to(text, names[int(row)], _NAMES * room)
    ax.set_yticks(rows, [text.get_text() for text in drawn])
    settle(ax)
    from matplotlib.ticker import MaxNLocator

    most = max(2, int(points_of(ax)[0] / (4.0 * ax.xaxis.label.get_size())))
    ax.xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    wrap_to(ax.xaxis.label, ax.get_window_extent().width)
    make_room(ax)


def radius_of(level: float) -> float:
    """Deviations within which a normal in the plane holds so much."""
    return float(np.sqrt(-2.0 * np.log1p(-level)))  # chi of two degrees of freedom


def ellipse_of(centre: Any, covariance: Any, level: float) -> Any:
    """Contour of a normal density that holds so much of it."""
    from matplotlib.patches import Ellipse

    (first, both), (_, second) = np.asarray(covariance)
    middle, off = 0.5 * (first + second), np.hypot(0.5 * (first - second), both)
    sizes = np.maximum([middle + off, middle - off], 0.0)  # variances along its own axes
    along, across = 2.0 * radius_of(level) * np.sqrt(sizes)
    angle = 0.5 * np.degrees(np.arctan2(2.0 * both, first - second))
    return Ellipse(tuple(centre), along, across, angle=angle)


# Size of a label, in letters of the figure, and where it stands beside its point, first choice
# first: in letters, and how it is aligned.
_LABEL = 0.85
_BESIDE = (
    (0.5, 0.3, "left", "bottom"),
    (-0.5, 0.3, "right", "bottom"),
    (0.5, -0.3, "left", "top"),
    (-0.5, -0.3, "right", "top"),
    (0.0, 0.7, "center", "bottom"),
    (0.0, -0.7, "center", "top"),
    (-0.5, -1.5, "right", "top"),
    (-0.5, 1.5, "right", "bottom"),
    (0.5, -1.5, "left", "top"),
    (0.5, 1.5, "left", "bottom"),
)


def place_labels(ax: Any, labels: Sequence[tuple[Any, str, Any]]) -> list[Any]:
    """Names beside points, each where it covers no other; those that find no place are left out.

    Parameters
    ----------
    labels : sequence of (place of shape (2,), text, colour)
    """
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=1.8, foreground=paper(ax))]
    size, taken, found = _LABEL * letters(), list[Any](), list[Any]()
    frame = ax.get_window_extent()
    dots = ax.transData.transform([place for place, _, _ in labels]) if labels else []
    for (place, name, color), dot in zip(labels, dots, strict=True):
        for x, y, across, upright in _BESIDE:
            text = ax.annotate(
                name,
                xy=place,
                xytext=(x * size, y * size),
                textcoords="offset points",
                ha=across,
                va=upright,
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
                found.append(text)
                break
            text.remove()
    return found
