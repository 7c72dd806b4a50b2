"""Language models: items without features
=======================================

Rank language models from duels of their answers: items without features.

59 models answered 13 prompts; crowd workers said which of two answers is better, or that they are
equal. The models have no features, only names: `ItemTable.from_names` gives every model a utility
of its own, independent of the others before any duel is seen. That is Thurstone's model with a
normal prior, a probit twin of Bradley and Terry's, here with ties: two answers are called equal
where their utilities, noise included, differ by less than a threshold.

The ranking is printed with 95 % credible intervals, for GPT-4 as the judge too.
"""

import matplotlib.pyplot as plt
import numpy as np

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.datasets import load_llm_duels
from skpref.inspection import win_rates


# %%
# A fit by names alone, with ties and an advantage of what is shown first.
def rank(judge):
    """Fitted model, and the models' positions from best to worst."""
    duels = load_llm_duels(judge=judge, ties=True)
    table = ItemTable.from_names(duels.model_names)
    model = PairwisePreferenceRegressor(
        items=table, tie_threshold=0.3, order_effect_bounds=(-1.0, 1.0)
    )
    model.fit(duels.X, duels.y)
    return duels, model, np.argsort(-model.predict(table))


duels, model, order = rank("crowd")
table, names = model.items_, duels.model_names
share = (duels.y == 0).mean()
favour = model.order_effect_ / np.sqrt(2.0 * model.noise_variance_)
print(
    f"{len(duels.X)} verdicts on {len(names)} models, {share:.0%} ties; the answer\n"
    f"shown first has an advantage of {favour:.2f} deviations of a verdict's noise.\n"
)

# %%
# The best, with the interval of each. The intervals overlap: most places are not settled.
mean = model.predict(table)
seen = np.bincount(duels.X.ravel(), minlength=len(names))
interval = model.posterior_.credible_interval(table.X, 0.95)
print("The ten best by the crowd: utility, 95 % credible interval, verdicts")
for i in order[:10]:
    low, high = interval[i]
    print(f"  {names[i]:28s} {mean[i]:+.2f}  [{low:+.2f}, {high:+.2f}]  {seen[i]}")

# %%
# Two questions about two models: who wins the next duel, and who is better?
best, tenth = order[0], order[9]
lost, tied, won = model.predict_proba([[best, tenth]], order=[0])[0]
# Without the noise of single judgements: is its utility larger?
sure = model.posterior_.win_probability(table.X[[best]], table.X[[tenth]], noise=False)[0]
print(f"\n{names[best]} against {names[tenth]}:")
print(f"  wins the next duel with probability {won:.2f}, ties {tied:.2f}, loses {lost:.2f}")
print(f"  has the larger utility with probability {sure:.2f}")

# %%
# Another judge, and what the intervals leave out.
_, _, by_gpt4 = rank("gpt-4")
both = set(order[:10]) & set(by_gpt4[:10])
print(f"\nGPT-4 as the judge shares {len(both)} of these ten; its best is {names[by_gpt4[0]]}.")
print(
    "The intervals take verdicts as independent. They are not quite: a worker judged many\n"
    "pairs, a pair was judged by several workers, and there are only 13 prompts."
)

# %%
# How often each of the ten best is expected to beat each other one; a tie counts half.
rates = win_rates(model)
share = (rates.win + 0.5 * rates.tie)[:10, :10]
figure, axes = plt.subplots(figsize=(7.5, 6.0), layout="constrained")
picture = axes.imshow(share, cmap="RdBu_r", vmin=0.2, vmax=0.8)
axes.set_xticks(range(10), rates.names[:10], rotation=40, ha="right")
axes.set_yticks(range(10), rates.names[:10])
for (i, j), value in np.ndenumerate(share):
    if i != j:
        axes.text(j, i, f"{value:.0%}", ha="center", va="center", fontsize=8)
figure.colorbar(picture, label="share of duels that the row is expected to win")
plt.show()
