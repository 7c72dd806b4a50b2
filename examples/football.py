"""Football: draws and home advantage, learned together with the strength of the teams.

Ten years of international matches are in the package. A draw is a tie: the better side of the day
was better by less than a threshold. The team at home has an advantage, except on neutral ground,
which ``order=`` says match by match. Both are learned with the strengths.

Strengths are constants here, so the matches of five years are taken.
"""

import numpy as np

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.datasets import load_football
from skpref.metrics import answer_log_loss

YEARS = 5.0
FAVOURITES = ("Spain", "Argentina", "France", "England", "Brazil")


def main():
    matches = load_football()
    years_ago = (matches.date.max() - matches.date) / np.timedelta64(365, "D")
    past, after = (years_ago > 1.0) & (years_ago <= 1.0 + YEARS), years_ago <= 1.0
    table = ItemTable.from_names(matches.team_names)
    model = PairwisePreferenceRegressor(
        items=table, tie_threshold=0.3, order_effect_bounds=(-2.0, 2.0)
    )
    model.fit(matches.X[past], matches.y[past], order=matches.order[past])

    deviation = np.sqrt(2.0 * model.noise_variance_)  # of the noise on a difference of two teams
    print(
        f"{past.sum()} matches of {len(table)} teams; in deviations of one match's luck:\n"
        f"  to be at home is worth {model.order_effect_ / deviation:.2f}, "
        f"a difference below {model.tie_threshold_ / deviation:.2f} is a draw\n"
    )
    proba = model.predict_proba(matches.X[after], order=matches.order[after])
    print(
        f"The {after.sum()} matches of the year after: log-loss "
        f"{answer_log_loss(matches.y[after], proba):.3f} nats "
        f"(guessing: {np.log(3.0):.3f}), draws predicted {proba[:, 1].mean():.1%}, "
        f"seen {(matches.y[after] == 0).mean():.1%}\n"
    )
    first, second = FAVOURITES[0], FAVOURITES[1]
    print(f"{first} against {second}: {second} wins, draw, {first} wins")
    for where, order in (("at home", 1), ("neutral", 0), ("away", -1)):
        lost, drawn, won = model.predict_proba([[first, second]], order=[order])[0]
        print(f"  {where:8s} {lost:.2f}  {drawn:.2f}  {won:.2f}")

    five = model.predict_proba([list(FAVOURITES)], order=[0])[0]
    print("\nBest of five on one day:")
    for name, chance in sorted(zip(FAVOURITES, five, strict=True), key=lambda pair: -pair[1]):
        print(f"  {name:10s} {chance:.2f}")


if __name__ == "__main__":
    main()
