"""A picture filter, tuned by eye
==============================

Tune an image filter by eye: look at two versions of a picture, click the better one.

The filter removes noise (a Gaussian and a median), sharpens, and lifts the contrast: five
parameters, one of them an integer, one a category. Run with ``--by-eye`` it shows pairs by
matplotlib: click the better picture, or press "s" (cannot say), "u" (undo) or "q" (enough). Every
answer is kept in ``filter_run.db``; start again to go on.

Without ``--by-eye`` a simulated judge compares with the undisturbed picture, and errs where the
two are much alike.
"""

import sys
from contextlib import suppress

import numpy as np
from scipy import ndimage

from skpref.optimize import HallucinationBelieverOptimizer

SPACE = {
    "kind": ["gaussian", "median"],
    "width": (0.3, 3.0),  # of the Gaussian, in pixels
    "window": (1, 6),  # of the median, in pixels
    "sharpen": (0.0, 2.0),
    "gamma": (0.5, 2.0),
}
SIZE = 96


# %%
# The picture, its noise, and the filter.
def picture():
    """Rings, a ramp and a few sharp edges, by formula; values in [0, 1]."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    rings = 0.5 + 0.5 * np.cos(40.0 * np.hypot(x - 0.3, y - 0.35))
    image = np.where(np.hypot(x - 0.3, y - 0.35) < 0.25, rings, 0.25 + 0.5 * x)
    image[(np.abs(x - 0.75) < 0.12) & (np.abs(y - 0.7) < 0.12)] = 0.95
    image[(np.abs(x - y) < 0.02) & (x > 0.4)] = 0.05
    return image


def develop(noisy, parameters):
    """The filter."""
    if parameters["kind"] == "gaussian":
        smooth = ndimage.gaussian_filter(noisy, parameters["width"])
    else:
        smooth = ndimage.median_filter(noisy, size=parameters["window"])
    detail = smooth - ndimage.gaussian_filter(smooth, 2.0)
    sharpened = np.clip(smooth + parameters["sharpen"] * detail, 0.0, 1.0)
    return sharpened ** parameters["gamma"]


def disturbed(clean, rng):
    """The picture with noise and specks."""
    specks = rng.random(clean.shape) < 0.08
    noisy = np.clip(clean + 0.08 * rng.standard_normal(clean.shape), 0.0, 1.0)
    noisy[specks] = rng.integers(0, 2, specks.sum())
    return noisy


def error_of(image, clean):
    """Root mean square of the differences."""
    return np.sqrt(np.mean((image - clean) ** 2))


# %%
# Who judges: a simulated judge, or you.
def simulated_judge(clean, noisy, rng):
    """Prefers the smaller error, compared with some noise."""

    def error(parameters):
        return error_of(develop(noisy, parameters), clean)

    return lambda first, second: error(first) < error(second) + 0.002 * rng.standard_normal()


def by_eye(optimizer, noisy):
    """Show pairs until q is pressed."""
    import matplotlib.pyplot as plt

    plt.rcParams["keymap.save"] = plt.rcParams["keymap.quit"] = []  # matplotlib's own s and q
    figure, axes = plt.subplots(1, 2, figsize=(10, 5.5))
    state = {}

    def show():
        state["duel"] = optimizer.ask()
        for axis, parameters in zip(axes, state["duel"], strict=True):
            axis.clear()
            axis.imshow(develop(noisy, parameters), cmap="gray", vmin=0.0, vmax=1.0)
            axis.set_axis_off()
        figure.suptitle(f"{optimizer.n_told_} duels. Click the better one (s: skip, u: undo, q)")
        figure.canvas.draw_idle()

    def clicked(event):
        if event.inaxes in list(axes):
            optimizer.tell(state["duel"], event.inaxes is axes[0])
            show()

    def pressed(event):
        if event.key == "s":
            optimizer.skip(state["duel"])
        elif event.key == "u":
            with suppress(ValueError):  # nothing to undo yet
                optimizer.undo()
        elif event.key == "q":
            plt.close(figure)
            return
        show()

    figure.canvas.mpl_connect("button_press_event", clicked)
    figure.canvas.mpl_connect("key_press_event", pressed)
    show()
    plt.show()


# %%
# What came of it.
def show_best(parameters, noisy, clean):
    """Print the parameters and how far the picture is from the undisturbed one."""
    for name, value in parameters.items():
        print(f"  {name:8s} {value if isinstance(value, str | int) else round(value, 3)}")
    error = error_of(develop(noisy, parameters), clean)
    print(f"Error {error:.3f}; of the noisy picture {error_of(noisy, clean):.3f}")


def draw(found, noisy, clean):
    """The three pictures side by side."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 3, figsize=(9.0, 3.4), layout="constrained")
    shown = {"noisy": noisy, "the filter that was found": found, "undisturbed": clean}
    for panel, (name, image) in zip(axes, shown.items(), strict=True):
        panel.imshow(image, cmap="gray", vmin=0.0, vmax=1.0)
        panel.set_title(name)
        panel.set_axis_off()
    plt.show()


# %%
# The run.
def main(arguments):
    rng = np.random.default_rng(0)
    clean = picture()
    noisy = disturbed(clean, rng)
    if "--by-eye" in arguments:
        optimizer = HallucinationBelieverOptimizer(SPACE, journal="filter_run.db")
        by_eye(optimizer, noisy)
    else:
        optimizer = HallucinationBelieverOptimizer(SPACE, random_state=0)
        optimizer.run(simulated_judge(clean, noisy, rng), 35)
    if not optimizer.n_told_:
        print("No duel was told.")
        return
    print(f"Best after {optimizer.n_told_} duels:")
    best = optimizer.recommend()
    show_best(best, noisy, clean)
    draw(develop(noisy, best), noisy, clean)


if __name__ == "__main__":  # another example uses the filter
    main(sys.argv[1:])
