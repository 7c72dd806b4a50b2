"""Pictures of the skew-GP study, from its tables."""

import io

import matplotlib
import numpy as np
from _skew_setting import TITLES
from PIL import Image

matplotlib.use("Agg")
from matplotlib import pyplot as plt

NAMES = {"truth": "exact (HMC)", "laplace": "Laplace", "ep": "EP", "hmc": "exact (HMC)"}
COLOURS = {"truth": "#1b1b1b", "hmc": "#1b1b1b", "laplace": "#d95f02", "ep": "#1f78b4"}
SAMPLER_NAMES = {"liness": "LinESS", "gibbs": "Gibbs", "hmc": "HMC"}
DPI = 80


def save(figure, path):
    """PNG of 64 colours: a third of the size."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DPI)
    plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(64).save(path, optimize=True)


def pick(rows, **wanted):
    return [row for row in rows if all(row[k] == v for k, v in wanted.items())]


def column(rows, name):
    return np.array([row[name] for row in rows])


def fig1(folder, lines, duels, density):
    figure, axes = plt.subplots(3, 2, figsize=(10, 8.5), width_ratios=(2, 1), layout="constrained")
    axes[0, 0].sharey(axes[2, 0])
    winner, loser = duels[0]["winner"], duels[0]["loser"]
    top = max(density[engine].max() for engine in ("truth", "ep"))
    for (left, right), duel in zip(axes, duels, strict=True):
        engine = duel["engine"]
        rows = pick(lines, engine=engine)
        x = column(rows, "x")
        left.fill_between(x, column(rows, "low"), column(rows, "high"), alpha=0.3)
        left.plot(x, column(rows, "mean"))
        left.axvline(winner, color="green", lw=1, ls="--", label="winner")
        left.axvline(loser, color="firebrick", lw=1, ls=":", label="loser")
        left.set(title=f"{NAMES[engine]}: mean and 95 % interval", xlim=(0, 1), ylabel="f(x)")
        first, second = density["axes"]
        levels = top * np.array([0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 1.0])
        at = np.minimum(density[engine].T, levels[-1])
        right.contourf(first, second, at, levels, cmap="viridis", extend="max")
        right.axline((0, 0), slope=1, color="grey", lw=1)
        right.set(
            title=f"P(f(loser) ≥ f(winner)) = {duel['lost']:.3f}",
            xlabel="f(loser)",
            ylabel="f(winner)",
            xlim=(first[0], first[-1]),
            ylim=(second[0], second[-1]),
        )
    axes[0, 0].legend(loc="lower left")
    axes[2, 0].set_xlabel("x")
    save(figure, folder / "fig1.png")


def compare(folder, points):
    functions = [name for name in TITLES if pick(points, function=name)]
    titles = {"mean": "mean", "mode": "mode", "probability": "P(first > second)"}
    rows = len(functions)
    figure, axes = plt.subplots(
        rows, 6, figsize=(15, 2.7 * rows), layout="constrained", squeeze=False
    )
    for line, name in zip(axes, functions, strict=True):
        place = iter(line)
        for engine in ("laplace", "ep"):
            for statistic, title in titles.items():
                ax = next(place)
                chosen = pick(points, function=name, statistic=statistic)
                truth, estimate = column(chosen, "truth"), column(chosen, engine)
                ax.scatter(truth, estimate, s=4, alpha=0.4, color=COLOURS[engine], lw=0)
                ends = [truth.min(), truth.max()]
                ax.plot(ends, ends, color="black", lw=1)
                ax.set_title(f"{NAMES[engine]}, {title}", fontsize=9)
        line[0].set_ylabel(TITLES[name])
    figure.supxlabel("exact")
    save(figure, folder / "fig2a_6c_7c.png")


def rmse(folder, rows):
    functions = [name for name in TITLES if pick(rows, function=name)]
    figure, axes = plt.subplots(
        1, 3, figsize=(11, 3.4), layout="constrained", sharex=True, squeeze=False
    )
    colours = dict(zip(functions, ("#1b9e77", "#d95f02", "#7570b3"), strict=False))
    for ax, statistic in zip(axes[0], ("mean", "median", "probability"), strict=True):
        for name in functions:
            for estimator, style in (("conditional", "-"), ("plain", "--")):
                chosen = pick(rows, function=name, statistic=statistic, estimator=estimator)
                draws = np.unique(column(chosen, "draws"))
                per_trial = [column(pick(chosen, draws=n), "rmse") for n in draws]
                error = np.sqrt(np.mean(np.square(per_trial), axis=1))
                label = f"{TITLES[name]}, {estimator}"
                ax.loglog(draws, error, style, color=colours[name], label=label, marker=".")
        ax.set(title=f"RMSE of the {statistic}", xlabel="draws")
        ax.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=7)
    save(figure, folder / "fig2b_6b_7b.png")


def chains(folder, traces):
    figure, axes = plt.subplots(
        len(traces), 4, figsize=(12, 2.1 * len(traces)), layout="constrained", squeeze=False
    )
    for line, (name, by_sampler) in zip(axes, traces.items(), strict=True):
        for ax, (sampler, trace) in zip(line, by_sampler.items(), strict=False):
            ax.plot(np.arange(0, len(trace), 2), trace[::2], lw=0.5, color="#333333")
            ax.set_title(f"{TITLES[name]}: {SAMPLER_NAMES[sampler]}", fontsize=9)
            x = trace[len(trace) // 10 :] - trace[len(trace) // 10 :].mean()
            full = np.correlate(x, x, "full")[len(x) - 1 :]
            line[3].plot(full[:101] / full[0], label=SAMPLER_NAMES[sampler])
        line[3].axhline(0.0, color="grey", lw=0.8)
        line[3].set_title("autocorrelation by lag", fontsize=9)
    axes[0, 3].legend(fontsize=8)
    axes[-1, 1].set_xlabel(
        "draw of one chain (every second shown); the coordinate of v that mixes worst"
    )
    save(figure, folder / "fig3_6a_7a.png")


def evidence(folder, rows):
    first, second = (np.unique(column(rows, k)) for k in ("first", "second"))
    kinds = {"exact": "minimax tilting", "scipy": "scipy", "ep": "EP", "laplace": "Laplace"}
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.3), layout="constrained", sharey=True)
    for ax, (kind, title) in zip(axes, kinds.items(), strict=True):
        value = np.full((len(second), len(first)), np.nan)
        for row in rows:
            value[np.searchsorted(second, row["second"]), np.searchsorted(first, row["first"])] = (
                row[kind]
            )
        value[~np.isfinite(value)] = np.nan
        image = ax.pcolormesh(first, second, value, shading="nearest")
        seconds = np.median(column(rows, f"{kind}_seconds"))
        ax.set_title(f"{title}: {1e3 * seconds:.0f} ms", fontsize=10)
        best = np.unravel_index(np.nanargmax(value), value.shape)
        ax.plot(first[best[1]], second[best[0]], "x", color="red")
        figure.colorbar(image, ax=ax)
        ax.set_xlabel("first lengthscale")
    axes[0].set_ylabel("second lengthscale")
    save(figure, folder / "fig5.png")
