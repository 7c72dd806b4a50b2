"""Pictures of what ``regret.py`` wrote: regret over duels and over seconds, twelve functions.

    python benchmarks/optimize/regret_figures.py [--results FILE] [--output doc/regret_study]
        [--flip 0] [--protocol paper] [--duels 100] [--seeds 0 1]

``fig4_8_duels.png`` and ``fig4_8_seconds.png`` have the methods of Takeno et al. (2023), Fig. 4
and 8, and ours; ``fig9.png`` the hallucination believer with several acquisitions, and with margins
that are not drawn (kriging believer, constant liar). With ``--protocol paper`` there is a table
alone, of the methods in the setting of the paper (see ``regret.py``). A line is the
median over seeds of the log10 regret of the recommended item (floor 1e-4), the grey band the
quartiles of the default. ``ranks.csv`` has a line a method: its seeds, its rank among the methods
at the same function and seed, averaged, the same of its medians over seeds, median seconds of
waiting in a run, and median log10 regret of every function. Methods with fewer seeds than others
have no rank.
"""

import argparse
import csv
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, ROOT, needs

needs("matplotlib")
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from _paper_protocol import IN_FIGURES
from regret import FLOOR, METHODS, PROTOCOLS, read

from skpref.datasets import TEST_FUNCTIONS

BELIEVERS = ("default", "HB-EI", "HB-UCB", "HB-mean", "HB-MUC", "HB-BVEI")
BELIEVERS += ("KB-EI", "CL-EI")
OTHERS = ("default", *(m for m in METHODS if m not in BELIEVERS), "HB-EI", "HB-UCB")


def groups_of(path, flip, n_duels, seeds):
    """{(function, method): (log10 regret (n_seeds, n), cumulative seconds (n_seeds, n))}."""
    found = defaultdict(list)
    for (name, method, flipped, seed), series in sorted(read(path).items()):
        wanted = flipped == flip and (seeds is None or seed in seeds)
        if wanted and len(series["regret"]) >= n_duels:
            regret = np.log10(np.maximum(series["regret"][:n_duels], FLOOR))
            found[name, method].append((regret, np.cumsum(series["wait_seconds"][:n_duels])))
    return {
        key: tuple(np.array(part) for part in zip(*runs, strict=True))
        for key, runs in found.items()
    }


def draw(groups, methods, over_seconds, path):
    """Twelve panels, a line a method."""
    figure, axes = plt.subplots(3, 4, figsize=(17, 11), layout="constrained")
    colours = {m: plt.get_cmap("tab20")(k) for k, m in enumerate(methods)}
    for axis, name in zip(axes.flat, TEST_FUNCTIONS, strict=True):
        for method in methods:
            if (name, method) not in groups:
                continue
            regret, seconds = groups[name, method]
            low, middle, high = np.quantile(regret, [0.25, 0.5, 0.75], axis=0)
            x = np.median(seconds, axis=0) if over_seconds else np.arange(1, len(middle) + 1)
            bold = method == "default"
            dashed = "--" if method == "random" else "-"
            colour = "black" if bold else colours[method]
            width = 2.4 if bold else 1.3
            axis.plot(x, middle, dashed, color=colour, lw=width, label=method, zorder=2 + bold)
            if bold:
                axis.fill_between(x, low, high, color="black", alpha=0.12, lw=0)
        if over_seconds:
            axis.set_xscale("log")
            axis.set_xlim(left=1e-2)
        axis.set_title(name)
    for axis in axes[-1]:
        axis.set_xlabel("seconds of waiting" if over_seconds else "duels after the 3 d random ones")
    for axis in axes[:, 0]:
        axis.set_ylabel("log10 regret")
    handles, labels = max((axis.get_legend_handles_labels() for axis in axes.flat), key=len)
    figure.legend(handles, labels, loc="outside lower center", ncols=9)
    figure.savefig(path, dpi=70)
    plt.close(figure)


def ranks(groups, every_method, path):
    """Write and print the table of methods."""
    methods = [m for m in every_method if any((name, m) in groups for name in TEST_FUNCTIONS)]
    names = [name for name in TEST_FUNCTIONS if any((name, m) in groups for m in methods)]
    medians = np.full((len(methods), len(names)), np.nan)
    seconds, paired, seeds = medians.copy(), medians.copy(), []
    for j, name in enumerate(names):
        found = [groups.get((name, method)) for method in methods]
        for i, runs in enumerate(found):
            if runs is not None:
                medians[i, j] = np.median(runs[0][:, -1])
                seconds[i, j] = np.median(runs[1][:, -1])
        seeds.append([0 if runs is None else len(runs[0]) for runs in found])
    seeds = np.array(seeds)
    every = (seeds == seeds.max()).all(axis=0)
    for j, name in enumerate(names):
        runs = [groups[name, method][0][:, -1] for method in np.array(methods)[every]]
        paired[every, j] = places(np.array(runs)).mean(axis=1)
    place = places(np.where(every[:, None], medians, np.nan))
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        heads = ["method", "seeds", "mean_rank", "mean_rank_of_medians", "seconds_a_run"]
        writer.writerow([*heads, *names])
        for k in np.argsort(paired.mean(axis=1)):
            row = [methods[k], seeds[:, k].min()]
            row += [f"{rank[k].mean():.2f}" if every[k] else "" for rank in (paired, place)]
            row += [f"{np.nanmean(seconds[k]):.1f}", *(f"{v:.2f}" for v in medians[k])]
            writer.writerow(row)
            print(*row, sep="\t")


def places(values):
    """Ranks from 1 down each column; what is level to two digits shares one."""
    rounded = np.round(values, 2)
    below = (rounded[None] < rounded[:, None]).sum(axis=1)
    level = (rounded[None] == rounded[:, None]).sum(axis=1)
    return np.where(np.isnan(values), np.nan, below + 0.5 * (level + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocol", choices=PROTOCOLS, default="own")
    parser.add_argument("--results", type=Path, help="of the protocol by default")
    parser.add_argument("--duels", type=int, default=100, help="after the 3 d random ones")
    parser.add_argument("--output", type=Path, default=ROOT / "doc" / "regret_study")
    parser.add_argument("--flip", type=float, default=0.0)
    parser.add_argument("--seeds", nargs="+", type=int, help="of these alone")
    options = parser.parse_args()
    path = options.results or RESULTS / PROTOCOLS[options.protocol].file
    groups = groups_of(path, options.flip, options.duels, options.seeds)
    options.output.mkdir(parents=True, exist_ok=True)
    if options.protocol == "paper":
        ranks(groups, IN_FIGURES, options.output / "ranks_paper.csv")
        return
    draw(groups, OTHERS, False, options.output / "fig4_8_duels.png")
    draw(groups, OTHERS, True, options.output / "fig4_8_seconds.png")
    draw(groups, BELIEVERS, False, options.output / "fig9.png")
    ranks(groups, METHODS, options.output / "ranks.csv")


if __name__ == "__main__":
    main()
