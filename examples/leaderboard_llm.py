"""A leaderboard with the uncertainty of each place
================================================

A leaderboard of language models with the uncertainty of each place.

59 models answered 13 prompts; crowd workers said which of two answers is better, or that they are
equal. A leaderboard by shares of wins would hide how much of its order is luck: here every model
has an interval of its utility, an interval of its rank, and a probability of being the best of all,
from the joint posterior. Ties (39 % of the verdicts) count, and what is shown first has an
advantage of its own. The unit is the standard deviation of the noise on one model in one judgement.

The intervals take verdicts as independent, which they are not quite: a worker judged many pairs,
and there are only 13 prompts. Run with ``--save FILE`` to write the picture.
"""

import sys

import matplotlib.pyplot as plt

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.datasets import load_llm_duels
from skpref.inspection import leaderboard
from skpref.plotting import LeaderboardDisplay

TOP = 20

# %%
# The model of the crowd's verdicts.
duels = load_llm_duels(ties=True)
table = ItemTable.from_names(duels.model_names)
model = PairwisePreferenceRegressor(items=table, tie_threshold=0.3, order_effect_bounds=(-1.0, 1.0))
model.fit(duels.X, duels.y)

# %%
# The board. The utility is that above the mean of all models.
board = leaderboard(model)
print("place  model                           utility    90 % interval   rank   best")
for i in range(TOP):
    rank = f"{board.rank_lower[i]}–{board.rank_upper[i]}"
    print(
        f"{i + 1:5d}  {board.names[i]:30s}  {board.utility[i]:+.2f}  "
        f"[{board.lower[i]:+.2f}, {board.upper[i]:+.2f}]  {rank:>6s}  "
        f"{board.probability_best[i]:5.1%}"
    )
sure = int((board.rank_upper <= TOP).sum())
print(f"\nOnly {sure} models have a rank interval that lies within the best {TOP}.")
print("The utility is that above the mean of all models, in standard deviations of its noise.")

# %%
# The same as a picture.
display = LeaderboardDisplay.from_estimator(model, top=TOP)
if "--save" in sys.argv:
    display.figure_.savefig(sys.argv[-1], dpi=120, facecolor="white")
plt.show()
