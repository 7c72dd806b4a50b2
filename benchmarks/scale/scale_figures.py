"""Pictures of what ``scale.py`` and ``convincing.py`` wrote, and its tables.

    python benchmarks/scale/scale_figures.py [--output doc/scale_study]

``duels.png``: seconds, log-loss and memory against the number of duels, ten features.
``convincing.png``: log-loss on each of the 32 topics, beside logistic regression's.
Printed are the tables of the page in Markdown.
"""

import argparse
import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT, needs

needs("matplotlib")
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

LINES = (
    ("svi", 100, "true", "SVI, 100 points", "C0", "-"),
    ("svi", 500, "true", "SVI, 500 points", "C0", "--"),
    ("svi", 1000, "true", "SVI, 1 000 points", "C0", ":"),
    ("svi", 100, "median", "SVI, 100, median", "C8", "-"),
    ("svi", 500, "median", "SVI, 500, median", "C8", "--"),
    ("svi", 100, "learned", "SVI, 100, learned", "C1", "-"),
    ("svi", 500, "learned", "SVI, 500, learned", "C1", "--"),
    ("stream", 100, "true", "stream, 100", "C2", "-"),
    ("ep", 0, "true", "EP", "C3", "-"),
    ("gppl", 100, "true", "GPPL, 100", "C4", "-"),
    ("gppl", 500, "true", "GPPL, 500", "C4", "--"),
    ("logistic", 0, "", "logistic regression", "0.5", "-"),
    ("xgboost", 0, "", "XGBoost, pairwise", "C5", "-"),
    ("choix", 0, "", "choix (no features)", "C6", "-"),
)
KEYS = ("method", "duels", "items", "features", "points", "hyperparameters")
PANELS = (
    ("seconds", "seconds of one core"),
    ("with noise", "log-loss, noise-free test"),
    ("peak MiB", "peak memory, MiB"),
)


def rows_of(path):
    """Rows of a CSV, as text."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def duels(rows, path):
    """Seconds, log-loss and memory."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for method, points, how, label, colour, style in LINES:
        mine = [
            row
            for row in rows
            if (row["method"], int(row["points"]), row["hyperparameters"]) == (method, points, how)
            and row["features"] == "10"
            and row["seconds"]
            and (int(row["items"]) == 2000) == (int(row["duels"]) != 1_000_000)
        ]
        for axis, (column, _) in zip(axes, PANELS, strict=True) if mine else ():
            x, y = ([float(row[name]) for row in mine] for name in ("duels", column))
            axis.loglog(x, y, style, color=colour, marker=".", label=label)
    for axis, (_, title) in zip(axes, PANELS, strict=True):
        axis.set(xlabel="duels", title=title)
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def convincing(rows, path):
    """Log-loss on each topic, as a difference to logistic regression's."""
    found = {(row["topic"], row["method"]): float(row["log-loss"]) for row in rows}
    # An outlier of the means alone would squeeze the rest.
    left_out = ("logistic", "ekf scale, means")
    methods = dict.fromkeys(row["method"] for row in rows if row["method"] not in left_out)
    topics = [topic for topic, name in found if name == "logistic"]
    figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
    differences = [
        [found[t, name] - found[t, "logistic"] for t in topics if (t, name) in found]
        for name in methods
    ]
    axis.boxplot(differences, orientation="horizontal", tick_labels=methods, showmeans=True)
    axis.axvline(0.0, color="0.5")
    axis.set(xlabel="log-loss of a topic, minus that of logistic regression")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def cell(row):
    """Seconds and log-loss, of the package's own methods without / with noise."""
    if row is None:
        return "–"
    if not row["seconds"]:
        return row["note"]
    own = row["method"] in ("svi", "ep", "stream")
    losses = [row["log-loss"], row["with noise"]] if own else [row["log-loss"]]
    shown = " / ".join(f"{float(loss):.3f}".removeprefix("0") for loss in losses)
    seconds = float(row["seconds"])
    return f"{seconds:.2g} s, {shown}" if seconds < 10.0 else f"{seconds:.0f} s, {shown}"


def table(rows, features, sizes):
    """Lines of a table in Markdown; ``sizes``: numbers of duels and items."""
    found = {tuple(row[key] for key in KEYS): row for row in rows}
    heads = [f"{n:,} of {items:,}".replace(",", " ") for n, items in sizes]
    print(f"| duels of items | {' | '.join(heads)} |")
    print("| --- " * (len(sizes) + 1) + "|")
    for method, points, how, label, *_ in LINES:
        at = [(method, n, items, features, points, how) for n, items in sizes]
        cells = [cell(found.get(tuple(map(str, one)))) for one in at]
        if set(cells) != {"–"}:
            print(f"| {label} | " + " | ".join(cells) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "doc" / "scale_study")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = rows_of(RESULTS / "scale.csv")
    duels(rows, options.output / "duels.png")
    table(rows, 10, [(n, 2000) for n in (100, 1000, 10_000, 100_000)])
    table(rows, 10, [(1_000_000, 100_000), (10_000_000, 2000), (10_000_000, 100_000)])
    table(rows, 300, [(1000, 2000), (10_000, 2000), (100_000, 2000), (1_000_000, 100_000)])
    if (RESULTS / "convincing.csv").exists():
        convincing(rows_of(RESULTS / "convincing.csv"), options.output / "convincing.png")


if __name__ == "__main__":
    main()
