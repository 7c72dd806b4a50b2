"""Calibration part of the skew-GP study: the table of the report and the reliability curves."""

import numpy as np
from _skew_figures import COLOURS, NAMES, column, pick, save
from _skew_setting import KNOWN, TITLES
from _skew_units import EDGES
from matplotlib import pyplot as plt

SETTINGS = ("true", "paper", "default")
KINDS = ("new", "seen", "again")
ENGINES = ("hmc", "ep", "laplace")
# Probabilities said of the likelier side; their mirror images are below 0.1, 0.05 and 0.02.
TAILS = ((0.9, 0.95), (0.95, 0.98), (0.98, 1.0), (0.9, 1.0))


def counts(rows):
    """Number of duels, sum of the probabilities said and number right, in the cells of `EDGES`."""
    cells = range(len(EDGES) - 1)
    return (
        np.array([sum(row[f"{what}_{j}"] for row in rows) for j in cells])
        for what in ("n", "said", "right")
    )


def gap(rows, low, high):
    """Mean probability said minus share right, of the probabilities from ``low`` to ``high``."""
    here = slice(EDGES.index(low), EDGES.index(high))
    n, said, right = (values[here].sum() for values in counts(rows))
    return (said - right) / n if n else np.nan


def summary(rows):
    """Markdown table: log-losses, their difference over trials, and gaps in the tails."""
    head = ["duels", "function", "setting", "log-loss: exact / EP / Laplace"]
    head += ["exact − EP (standard error)", "to gain"]
    head += [f"gap {low:g} to {high:g}: exact / EP" for low, high in TAILS]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for kind in KINDS:
        for name in (KNOWN, *reversed(TITLES)):
            for setting in SETTINGS:
                chosen = pick(rows, kind=kind, function=name, hyperparameters=setting)
                if chosen:
                    lines.append(_line([kind, name, setting], chosen))
    return "\n".join(lines)


def _line(cells, rows):
    by_engine = {e: sorted(pick(rows, engine=e), key=lambda row: row["trial"]) for e in ENGINES}
    losses = {e: column(chosen, "log_loss") for e, chosen in by_engine.items()}
    difference = losses["hmc"] - losses["ep"]
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.nan
    gain = column(by_engine["ep"], "expected") - column(by_engine["hmc"], "expected")
    cells.append(" / ".join(f"{losses[e].mean():.4f}" for e in ENGINES))
    cells.append(f"{difference.mean():+.4f} ({error:.4f})")
    cells.append(f"{gain.mean():.5f}")
    for low, high in TAILS:
        cells.append(" / ".join(f"{gap(by_engine[e], low, high):+.4f}" for e in ("hmc", "ep")))
    return "| " + " | ".join(cells) + " |"


def draw(folder, rows):
    """Reliability curves for held-out duels of new items."""
    panels = [(setting, name) for setting in ("paper", "default") for name in TITLES]
    panels.insert(3, ("true", KNOWN))
    panels.append(("default", KNOWN))
    figure, axes = plt.subplots(2, 4, figsize=(13.6, 6.6), layout="constrained", sharex=True)
    for ax, (setting, name) in zip(axes.flat, panels, strict=True):
        ax.plot([0.5, 1], [0.5, 1], color="grey", lw=1)
        for engine in ENGINES:
            chosen = pick(rows, kind="new", function=name, hyperparameters=setting, engine=engine)
            if not chosen:
                continue
            n, said, right = counts(chosen)
            enough = n >= 30
            label = f"{NAMES[engine]}, log-loss {column(chosen, 'log_loss').mean():.3f}"
            share, probability = right[enough] / n[enough], said[enough] / n[enough]
            ax.plot(probability, share, marker=".", color=COLOURS[engine], label=label)
        title = "a draw of the prior" if name == KNOWN else TITLES[name]
        ax.set(title=f"{title}: {setting}", ylim=(0.4, 1.02))
        if ax.lines[1:]:
            ax.legend(fontsize=7, loc="lower right")
    for ax in axes[-1]:
        ax.set_xlabel("probability said")
    for ax in axes[:, 0]:
        ax.set_ylabel("share right")
    save(figure, folder / "calibration.png")
