"""Pictures judged in a notebook
=============================

Judge pictures side by side in a notebook: a sunset whose colours are tuned by eye.

The cells begin with ``# %%``, as VS Code and Jupytext know them. In a notebook the last line of the
third cell shows the page, and the cell after it is left out. Run as a script, a simulated judge
answers what the page would show.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from skpref import PreferenceOptimizer
from skpref.widgets import Judge

SPACE = {"warmth": (0.0, 1.0), "height": (0.1, 0.9), "haze": (0.05, 0.6)}


# %%
def sunset(setting):
    """A sky with a sun, an array (height, width, 3) of floats from 0 to 1."""
    y, x = np.mgrid[0:120, 0:180] / 120
    up = 1.0 - y
    glow = np.exp(-np.hypot(x - 0.75, up - setting["height"]) / setting["haze"])
    sky = np.stack([0.25 + 0.2 * y, 0.35 + 0.1 * y, 0.65 - 0.2 * y], axis=2)
    light = np.array([1.0, 0.75 - 0.45 * setting["warmth"], 0.6 - 0.55 * setting["warmth"]])
    picture = sky + glow[:, :, None] * (light - sky)
    sea = up < 0.12 + 0.01 * np.sin(40.0 * x)
    picture[sea] *= 0.45
    return np.clip(picture, 0.0, 1.0)


# %%
optimizer = PreferenceOptimizer(SPACE, random_state=0)  # journal="sunset.db" keeps every answer
judge = Judge(optimizer, sunset, n_duels=20, prompt="Which sunset is more beautiful?")
judge  # noqa: B018 - shows the page, in a notebook

# %%
IDEAL = {"warmth": 0.7, "height": 0.35, "haze": 0.3}


def distance(setting):
    return sum((setting[name] - value) ** 2 for name, value in IDEAL.items())


while judge.question is not None:  # until 20 answers are told
    first, second = judge.question
    judge.answer(distance(first) < distance(second))

# %%
best = judge.recommend()
print(f"Best after {optimizer.n_told_} answers:")
for name, value in best.items():
    print(f"  {name:7s} {value:.2f}  (liked best: {IDEAL[name]:.2f})")

# %%
_, axes = plt.subplots(1, 2, figsize=(8.0, 3.0), layout="constrained")
for panel, (name, setting) in zip(axes, {"found": best, "liked best": IDEAL}.items(), strict=True):
    panel.imshow(sunset(setting))
    panel.set_title(name)
    panel.set_axis_off()
plt.show()
