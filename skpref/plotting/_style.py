"""What all pictures share: colours, axes, and the error where matplotlib is missing."""

from typing import Any

# Okabe and Ito's, which those who see few colours tell apart, in tones for light and dark ground.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#808080"


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


def paper(ax: Any) -> Any:
    """Colour of the ground, for what must stand out from what lies beneath."""
    return ax.get_facecolor()


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
