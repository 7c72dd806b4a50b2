"""Pictures of what ``scale.py`` and ``convincing.py`` wrote, and tables in Markdown.

    python benchmarks/scale_figures.py [--output doc/scale_study]

``duels.png``: seconds, log-loss and memory against the number of duels, ten features.
``convincing.png``: log-loss on each of the 32 topics, beside logistic regression's.
"""

import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from common import RESULTS, ROOT

LINES = (
    ("svi", 100, "true", "SVI, 100 points", "C0", "-"),
    ("svi", 500, "true", "SVI, 500 points", "C0", "--"),
    ("svi", 1000, "true", "SVI, 1 000 points", "C0", ":"),
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
            and (int(row["items"]) == 2000) == (int(row["duels"]) <= 100_000)
        ]
        for axis, (column, _) in zip(axes, PANELS, strict=True):
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
    methods = [name for name in dict.fromkeys(row["method"] for row in rows) if name != "logistic"]
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


def table(rows, columns):
    """Lines of a table in Markdown."""
    print("| " + " | ".join(columns) + " |")
    print("| " + " | ".join("---" for _ in columns) + " |")
    for row in rows:
        print("| " + " | ".join(row.get(column, "") for column in columns) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "doc" / "scale_study")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = rows_of(RESULTS / "scale.csv")
    duels(rows, options.output / "duels.png")
    columns = [name for name in rows[0] if name != "of it data MiB"]
    table(rows, columns)
    if (RESULTS / "convincing.csv").exists():
        convincing(rows_of(RESULTS / "convincing.csv"), options.output / "convincing.png")
        summary = rows_of(RESULTS / "convincing_summary.csv")
        table(summary, list(summary[0]))


if __name__ == "__main__":
    main()
