"""What all pictures share: colours, axes, and the error where matplotlib is missing."""

from typing import Any, NamedTuple

GREY = "#808080"


class Palette(NamedTuple):
    """Colours of Okabe and Ito, which those who see few colours tell apart too."""

    blue: str
    orange: str
    green: str


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


def paper(ax: Any) -> Any:
    """Colour of the ground, for what must stand out from what lies beneath."""
    return ax.get_facecolor()


def legend_on_top(ax: Any, columns: int) -> Any:
    """A legend inside the axes, above all that is drawn: in room that is made for it."""
    entries = len(ax.get_legend_handles_labels()[1])
    share = 0.03 + 0.065 * -(-entries // columns)
    scale = ax.yaxis.get_transform()  # heights on paper, also of a logarithmic axis
    low, high = scale.transform(ax.get_ylim())
    top = high + share / (1.0 - share) * (high - low)
    ax.set_ylim(top=scale.inverted().transform([top])[0])
    place = {"loc": "upper left", "borderaxespad": 0.1, "frameon": False}
    return ax.legend(ncols=columns, fontsize="small", **place)


def plain(text: Any) -> str:
    """A name as text that matplotlib does not read as a formula."""
    return str(text).replace("$", r"\$")


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
