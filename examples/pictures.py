"""Pictures of a model and of a run
================================

Pictures of a fitted model and of a run: along features, calibration, the course of questions.

Sweets first: 85 of them fought, and a model of their features is asked how the utility changes with
sugar and price, and, on duels that it has not seen, whether outcomes are as frequent as it says.
Then somebody's favourite strength of tea is found by asking, and the run is looked at: which items
were shown, which were chosen, and what is known of the utility in the end.

Run with ``--save FOLDER`` to write the pictures (they need matplotlib).
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from skpref import HallucinationBelieverOptimizer, PairwisePreferenceRegressor
from skpref.datasets import load_candy

TRUE_BEST = 3.2  # minutes: what the person of the second part likes best


def of_sweets():
    """A model of sweets, duels that it has not seen, and the sweets."""
    candy = load_candy(n_duels=3000)
    X, X_new, y, y_new = train_test_split(candy.X, candy.y, test_size=0.5, random_state=0)
    return PairwisePreferenceRegressor().fit(X, y), X_new, y_new, candy


def better(first, second):
    """A person who tastes two cups; time counts in ratios."""
    far = np.abs(np.log([first[0], second[0]]) - np.log(TRUE_BEST))
    return far[0] < far[1]


def main():
    parser = argparse.ArgumentParser(description="Pictures of a model and of a run.")
    parser.add_argument("--save", metavar="FOLDER", type=Path, help="write the pictures there")
    folder = parser.parse_args().save

    model, X_new, y_new, candy = of_sweets()
    print(f"{model.score(X_new, y_new):.0%} of {len(X_new)} new duels are called right.")
    optimizer = HallucinationBelieverOptimizer([(0.5, 10.0)], random_state=0)
    best = optimizer.run(better, n_duels=20)
    print(f"Best after {optimizer.n_told_} cups: {best[0]:.1f} minutes (liked best: {TRUE_BEST}).")
    if folder is None:
        return

    from skpref.plotting import CalibrationDisplay, OptimizationDisplay, UtilityDisplay

    names = candy.feature_names
    sweets = {"X": candy.item_table, "feature_names": names}
    drawn = {
        "calibration": CalibrationDisplay.from_estimator(model, X_new, y_new),
        "utility_1d": UtilityDisplay.from_estimator(model, features=["sugarpercent"], **sweets),
        "utility_2d": UtilityDisplay.from_estimator(
            model, features=["sugarpercent", "pricepercent"], **sweets
        ),
        "run_course": OptimizationDisplay.from_optimizer(optimizer),
        "run_utility": OptimizationDisplay.from_optimizer(optimizer, kind="utility"),
    }
    for name, display in drawn.items():
        display.figure_.savefig(folder / f"{name}.png", dpi=110, facecolor="white")
    print(f"pictures written to {folder}: {', '.join(drawn)}")


if __name__ == "__main__":
    main()
