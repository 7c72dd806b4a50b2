"""Pictures and tables of what ``collaborative*.py`` wrote.

    python benchmarks/users/collaborative_figures.py [--output doc/collaborative_study]

``errors.png``: held-out error of 100 users beside the figures printed in the paper and in its
supplement. ``users.png``: gain over ``su`` of 100 and of 1 000 users. ``curve.png``: Sushi, against
the number of duels. ``evidence.png``: log evidence and log-loss over lengthscales. Printed are the
tables of the page in Markdown.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT, needs

needs("matplotlib")
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from _collaborative_sets import SHARES
from collaborative import FUNCTIONS, METHODS, done

# Table 1 of the paper (means of 25 splits), and its supplement's table 2 (and deviations).
PAPER = {
    "Synthetic": {"cpu": 0.162, "cp": 0.180, "birlutiu": 0.175, "bonilla": 0.157, "su": 0.226},
    "Sushi": {"cpu": 0.171, "cp": 0.163, "birlutiu": 0.160, "bonilla": 0.266, "su": 0.187},
    "MovieLens": {"cpu": 0.182, "cp": 0.166, "birlutiu": 0.168, "bonilla": 0.302, "su": 0.217},
    "Election": {"cpu": 0.199, "cp": 0.123, "birlutiu": 0.077, "bonilla": 0.401, "su": 0.300},
    "Jura": {"cpu": 0.159, "cp": 0.153, "birlutiu": 0.153, "bonilla": 0.254, "su": 0.181},
}
SUPPLEMENT = {
    "Synthetic": {"cpu": 0.163, "cp": 0.182, "birlutiu": 0.255, "bonilla": 0.169, "su": 0.228},
    "Sushi": {"cpu": 0.125, "cp": 0.115, "birlutiu": 0.196, "bonilla": 0.253, "su": 0.153},
    "MovieLens": {"cpu": 0.187, "cp": 0.166, "birlutiu": 0.205, "bonilla": 0.314, "su": 0.223},
    "Election": {"cpu": 0.232, "cp": 0.154, "birlutiu": 0.153, "bonilla": 0.385, "su": 0.309},
    "Jura": {"cpu": 0.162, "cp": 0.154, "birlutiu": 0.188, "bonilla": 0.181, "su": 0.185},
}
SHOWN = {"su as there": "su"}  # the paper's name for it


def number(value, digits=3):
    """Without the zero before the point."""
    text = f"{float(value):.{digits}f}"
    if float(text) == 0.0:
        return "0"
    return text.replace("0.", ".", 1).replace("-", "−") if abs(float(text)) < 1.0 else text


def as_paper(row):
    """Whether so many duels are learned from as in the paper."""
    return float(row["share"]) == round(SHARES[row["set"]], 4)


def of_paper(table, name, method):
    """The printed figure of a method on a set, however drawn, or None."""
    return table.get(name.split(",")[0], {}).get(SHOWN.get(method, method))


def errors(rows, path):
    """Dots with whiskers of two standard errors, a panel a set, beside what is printed."""
    names = sorted({row["set"] for row in rows}, key=list(SHARES).index)
    figure, axes = plt.subplots(3, 4, figsize=(13, 10), sharey=True, layout="constrained")
    for axis, name in zip(axes.flat, names, strict=False):
        for at, method in enumerate(METHODS):
            for row in (row for row in rows if (row["set"], row["method"]) == (name, method)):
                whisker = 2.0 * float(row["error_se"])
                axis.errorbar(float(row["error"]), at, xerr=whisker, fmt="o", color="C0", ms=4)
            for table, marker, colour in ((PAPER, "D", "C1"), (SUPPLEMENT, "x", "C3")):
                printed = of_paper(table, name, method)
                if printed is not None:
                    axis.plot(printed, at, marker, color=colour, mfc="none")
        axis.set(title=name, yticks=range(len(METHODS)), yticklabels=METHODS)
        axis.grid(alpha=0.3)
        axis.set_xlim(left=0.0)
    axes[0, 0].invert_yaxis()
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    handles = [
        plt.Line2D([], [], marker="o", color="C0", label="error here, ± 2 standard errors"),
        plt.Line2D([], [], marker="D", ls="", mfc="none", color="C1", label="paper"),
        plt.Line2D([], [], marker="x", ls="", color="C3", label="its supplement"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def users(rows, path):
    """What others' answers take off the log-loss of ``su`` with 100 and with 1 000 users."""
    loss = {(r["set"], r["method"], int(r["users"])): float(r["log_loss"]) for r in rows}
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    for axis, name in zip(axes, ("Synthetic", "Sushi"), strict=True):
        for method in ("cp", "cpu", "birlutiu"):
            there = [n for n in (100, 1000) if (name, method, n) in loss]
            gaps = [loss[name, method, n] - loss[name, "su", n] for n in there]
            if len(there) == 2:
                axis.semilogx(there, gaps, marker="o", label=method)
        axis.set(title=name, xlabel="users", ylabel="log-loss less that of su")
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=90)
    plt.close(figure)


def curve(rows, path):
    """Error and log-loss on Sushi against the number of duels of a user."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = sorted((r for r in rows if r["method"] == method), key=lambda r: int(r["duels"]))
        x = [int(row["duels"]) for row in mine]
        for axis, column in zip(axes, ("error", "log_loss"), strict=True):
            y, se = ([float(row[key]) for row in mine] for key in (column, f"{column}_se"))
            axis.errorbar(x, y, yerr=2.0 * np.array(se), marker=".", label=method, capsize=2)
    for method, marker in (("cp", "D"), ("su", "s")):
        axes[0].plot(20, PAPER["Sushi"][method], marker, color="k", mfc="none", ls="")
        axes[0].text(20.6, PAPER["Sushi"][method], f"{method}, paper", va="center")
        axes[0].axhline(SUPPLEMENT["Sushi"][method], color="0.5", ls=":")
        axes[0].text(5, SUPPLEMENT["Sushi"][method], f"{method}, supplement", va="bottom")
    for axis, title in zip(axes, ("error", "log-loss"), strict=True):
        axis.set(title=title, xlabel="duels of a user to learn from, of 45")
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=90)
    plt.close(figure)


def evidence(rows, path):
    """Contours of log evidence and log-loss over lengthscales, and what a fit learns."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    figure, axes = plt.subplots(len(methods), 2, figsize=(9, 4 * len(methods)), squeeze=False)
    figure.set_layout_engine("constrained")
    for line, method in zip(axes, methods, strict=True):
        mine = [row for row in rows if row["method"] == method]
        grid = [row for row in mine if row["log_items"]]
        found = next(row for row in mine if not row["log_items"])
        keys = sorted({float(row["log_items"]) for row in grid})
        for axis, column, better in zip(
            line, ("log_evidence", "log_loss"), (max, min), strict=True
        ):
            at = {(float(r["log_items"]), float(r["log_users"])): float(r[column]) for r in grid}
            best = better(at, key=at.get)
            table = np.array([[at[x, y] for x in keys] for y in keys])
            away = np.abs(table - at[best])
            steps = np.quantile(away, np.linspace(0.0, 1.0, 14)) + 1e-9 * np.arange(14)
            axis.contourf(keys, keys, away, levels=steps, cmap="viridis_r")
            lines = axis.contour(keys, keys, table, levels=7, colors="k", linewidths=0.5)
            axis.clabel(lines, fontsize=7)
            axis.plot(*best, "w*", ms=13, mec="k", label="best of the grid")
            axis.plot(0.0, 0.0, "w+", ms=12, mew=2, label="truth")
            learned = float(found["found_items"]), float(found["found_users"])
            axis.plot(*learned, "rx", ms=9, mew=2, label="learned by fit")
            title = f"{method}: {column.replace('_', ' ')}"
            axis.set(title=title, xlabel="log lengthscale of items", ylabel="of users")
    axes[0, 0].legend(loc="lower left", fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def table(rows, column, n_users, methods=METHODS, digits=3):
    """A table in Markdown, the printed figures beneath; in brackets the number of splits if few."""
    print(f"| {column.replace('_', '-')} | " + " | ".join(methods) + " |")
    print("| --- " * (len(methods) + 1) + "|")
    mine = {(r["set"], r["method"]): r for r in rows if int(r["users"]) == n_users}
    for name in sorted({name for name, _ in mine}, key=list(SHARES).index):
        cells, most = [], max(int(row["splits"]) for row in mine.values() if row["set"] == name)
        for method in methods:
            row = mine.get((name, method))
            if row is None:
                cells.append("–")
                continue
            se = row[f"{column}_se"]
            whisker = "" if se == "nan" else f" ± {number(se)}"
            fewer = f" ({row['splits']})" if int(row["splits"]) < most else ""
            cells.append(number(row[column], digits) + whisker + fewer)
        print(f"| {name} | " + " | ".join(cells) + " |")
        for title, printed in (("paper", PAPER), ("supplement", SUPPLEMENT)):
            at = [of_paper(printed, name, method) for method in methods]
            if column == "error" and n_users == 100 and any(at):
                shown = [
                    "" if value is None or method in SHOWN else number(value)
                    for value, method in zip(at, methods, strict=True)
                ]
                print(f"| *{title}* | " + " | ".join(shown) + " |")
    print()


def paired(rows, n_users, methods=METHODS):
    """A table in Markdown of log-losses less those of ``cp`` on the same splits."""
    found = {}
    for row in (row for row in rows if int(row["users"]) == n_users):
        found.setdefault((row["set"], row["method"]), {})[row["split"]] = float(row["log_loss"])
    others = methods[1:]
    print("| log-loss less `cp`'s | " + " | ".join(others) + " |")
    print("| --- " * (len(others) + 1) + "|")
    for name in sorted({name for name, _ in found}, key=list(SHARES).index):
        base, cells = found.get((name, "cp"), {}), []
        for method in others:
            mine = found.get((name, method), {})
            gaps = np.array([mine[each] - base[each] for each in mine if each in base])
            cells.append(f"{number(gaps.mean())}" if len(gaps) else "–")
            if len(gaps) > 1:
                cells[-1] += f" ± {number(gaps.std(ddof=1) / np.sqrt(len(gaps)))}"
        print(f"| {name} ({len(base)}) | " + " | ".join(cells) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "doc" / "collaborative_study")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows = done(RESULTS / "collaborative_summary.csv")
    rows = [row for row in rows if as_paper(row)]
    errors([row for row in rows if row["users"] == "100"], options.output / "errors.png")
    for n_users in sorted({int(row["users"]) for row in rows}):
        for column in ("error", "log_loss"):
            print(n_users, "users")
            table(rows, column, n_users)
    each = [row for row in done(RESULTS / "collaborative.csv") if as_paper(row)]
    paired(each, 100)
    both = ("cp", *FUNCTIONS)
    for column in ("error", "log_loss"):
        table(rows, column, 100, both)
    paired(each, 100, both)
    if any(row["users"] != "100" for row in rows):
        users(rows, options.output / "users.png")
    curve(done(RESULTS / "collaborative_curve_summary.csv"), options.output / "curve.png")
    evidence(done(RESULTS / "collaborative_evidence.csv"), options.output / "evidence.png")


if __name__ == "__main__":
    main()
