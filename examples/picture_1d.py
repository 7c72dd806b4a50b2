"""What duels teach, in one picture
================================

A picture of what duels teach: one feature, a hidden truth, twenty-five duels.

A smooth utility on the interval from 0 to 10 is hidden. Twenty-five pairs of points fight noisy
duels; the model sees only who won. The upper panel shows the hidden utility, the posterior mean
with its 95 % credible interval, and a few functions drawn from the posterior. The lower panel
shows the duels: an arc joins the two items, a full dot marks the winner, an open one the loser.

Duels identify differences only, so every curve is drawn relative to its average over the interval.
Where few duels were fought the interval is wide.

This is one draw of duels, picked to be easy to read: with others, above all with fewer duels, the
mean lies further from the hidden utility.

Run with ``--save FILE`` to write the figure.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skpref import PairwisePreferenceRegressor

BLUE, ORANGE, GREY = "#1f6fb2", "#d95f02", "#6b6b6b"
NOISE = 0.01  # variance of the noise on each item: 0.02 on a margin


# %%
# The hidden utility, and the duels.
def truth(x):
    """The hidden utility."""
    return 1.1 * np.sin(0.9 * x) * np.exp(-0.06 * x) + 0.12 * x


def simulate(n_duels=25, seed=3):
    """Duels of random points, rarer on the right, with noisy outcomes."""
    rng = np.random.default_rng(seed)
    X = 10.0 * rng.beta(0.9, 1.5, size=(n_duels, 2, 1))
    utility = truth(X[..., 0]) + np.sqrt(NOISE) * rng.normal(size=(n_duels, 2))
    return X, (utility[:, 0] > utility[:, 1]).astype(int)


# %%
# What is known of the utility relative to its average.
def centred(posterior, grid):
    """Mean and standard deviation of f(x) minus its average over the grid."""
    mean, cov = posterior.mean(grid), posterior.cov(grid)
    row = cov.mean(axis=1)
    variance = np.diagonal(cov) - 2.0 * row + row.mean()
    return mean - mean.mean(), np.sqrt(np.maximum(variance, 0.0))


# %%
# The fit. The noise is given, so that the hidden utility and the learned one share a unit.
X, y = simulate()
model = PairwisePreferenceRegressor(noise_variance=NOISE, noise_variance_bounds="fixed")
posterior = model.fit(X, y).posterior_
grid = np.linspace(0.0, 10.0, 201)[:, None]
mean, deviation = centred(posterior, grid)
true = truth(grid[:, 0]) - truth(grid[:, 0]).mean()
paths = posterior.sample_paths(6, rng=1)(grid)
paths -= paths.mean(axis=0)

inside = np.mean(np.abs(true - mean) < 1.96 * deviation)
best = grid[mean.argmax(), 0]
print(f"{len(X)} duels, lengthscale {np.ravel(model.kernel_.length_scale)[0]:.2f}")
print(f"best item: {best:.2f} by the posterior mean, {grid[true.argmax(), 0]:.2f} in truth")
print(f"the 95 % interval holds the hidden utility on {inside:.0%} of the line")


# %%
# The picture.
def draw(grid, true, mean, deviation, paths, X, y):
    """The figure of two panels."""
    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(8.0, 5.2), sharex=True, height_ratios=(2.7, 1.0), layout="constrained"
    )
    x = grid[:, 0]
    band = upper.fill_between(
        x, mean - 1.96 * deviation, mean + 1.96 * deviation, color=BLUE, alpha=0.16, linewidth=0
    )
    lines = upper.plot(x, paths, color=BLUE, linewidth=0.8, alpha=0.45)
    (middle,) = upper.plot(x, mean, color=BLUE, linewidth=2.4)
    (hidden,) = upper.plot(x, true, color="black", linewidth=1.6, linestyle=(0, (5, 3)))
    upper.set_ylabel("utility (above its average)")

    winners = np.where(y == 1, X[:, 0, 0], X[:, 1, 0])
    losers = np.where(y == 1, X[:, 1, 0], X[:, 0, 0])
    angle = np.linspace(0.0, np.pi, 60)
    for a, b in zip(winners, losers, strict=True):
        radius = 0.5 * abs(a - b)
        arc = 0.5 * (a + b) + radius * np.cos(angle), radius**0.6 * np.sin(angle)
        lower.plot(*arc, color=GREY, linewidth=0.9, alpha=0.5, zorder=1)
    on_line = np.zeros(len(winners))
    style = {"s": 38, "clip_on": False, "linewidth": 1.1}
    lost = lower.scatter(losers, on_line, facecolor="white", edgecolor=GREY, zorder=2, **style)
    won = lower.scatter(winners, on_line, facecolor=ORANGE, edgecolor="white", zorder=3, **style)
    lower.set(xlabel="feature of an item", ylabel="duels", yticks=[], ylim=(0.0, None))
    lower.spines["left"].set_visible(False)
    lower.tick_params(axis="x", length=4, pad=7)
    figure.align_ylabels()

    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(0.0, 10.0)
    upper.tick_params(axis="x", length=0)
    handles = [hidden, middle, band, lines[0], won, lost]
    labels = [
        "hidden utility",
        "posterior mean",
        "95 % credible interval",
        "draws from the posterior",
        "winner of a duel",
        "loser",
    ]
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


figure = draw(grid, true, mean, deviation, paths, X, y)
if "--save" in sys.argv:
    figure.savefig(sys.argv[-1], dpi=120, facecolor="white")
plt.show()
