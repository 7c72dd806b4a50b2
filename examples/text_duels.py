"""Which argument convinces more
=============================

Which of two arguments convinces more? Duels of texts, judged on a topic never seen.

Each argument becomes numbers: TF-IDF reduced to ten components by a truncated SVD, joined by the
logarithm of its number of words, all standardised. `Itemwise` applies these scikit-learn
transformers to both sides of every duel, so the whole is one pipeline that takes pairs of strings.

Four of the 32 topics are held out in turn. The model is compared with

- the rule "the longer argument wins",
- logistic regression on the difference of the same features.

Only 500 of about 11,000 training duels are used, to be done within seconds. The kernel is the
default: one lengthscale for each of the eleven numbers, and a part of every text's own, as it is
more than these numbers. Over three draws of the training duels its mean log loss was 0.54, that of
logistic regression 0.53.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpref import PairwisePreferenceRegressor
from skpref.datasets import load_convincing_arguments
from skpref.metrics import answer_accuracy, answer_log_loss
from skpref.preprocessing import Itemwise


# %%
# Texts to numbers.
def log_length(texts):
    """Logarithm of the number of words, one column."""
    return np.log([[len(text.split())] for text in texts])


def text_features():
    """Transformer of texts to eleven standardised numbers."""
    words = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words="english"),
        TruncatedSVD(10, random_state=0),
    )
    union = FeatureUnion([("words", words), ("length", FunctionTransformer(log_length))])
    return make_pipeline(union, StandardScaler())


def side_difference(duels):
    """First item minus second, (n_duels, n_features)."""
    return duels[:, 0] - duels[:, 1]


# %%
# Four topics, each held out in turn.
data = load_convincing_arguments()
rng = np.random.default_rng(0)
rows = []
for topic in (0, 8, 16, 24):
    test = np.flatnonzero(data.topic == topic)
    train = rng.choice(np.flatnonzero(data.topic != topic), 500, replace=False)
    X, y = data.X[train], data.y[train]

    process = make_pipeline(Itemwise(text_features()), PairwisePreferenceRegressor())
    # Without an intercept: swapping the arguments must swap the probabilities.
    linear = make_pipeline(
        Itemwise(text_features()),
        FunctionTransformer(side_difference),
        LogisticRegression(C=0.1, fit_intercept=False),
    )
    longer = side_difference(log_length(data.X[test].ravel()).reshape(-1, 2))
    rules = {
        "longer wins": np.where(longer > 0, 1.0, np.where(longer < 0, 0.0, 0.5)),
        "logistic": linear.fit(X, y).predict_proba(data.X[test])[:, 1],
        "GP": process.fit(X, y).predict_proba(data.X[test])[:, 1],
    }
    y_test = data.y[test]
    rows.append([answer_accuracy(y_test, p) for p in rules.values()])
    rows[-1] += [answer_log_loss(y_test, p) for name, p in rules.items() if name != "longer wins"]
    print(f"{data.topic_names[topic]} ({len(test)} duels)")
    for name, p in rules.items():
        loss = "" if name == "longer wins" else f"  log loss {answer_log_loss(y_test, p):.3f}"
        print(f"  {name:12s} right {answer_accuracy(y_test, p):.3f}{loss}")

# %%
# The means.
longer, linear, process, linear_loss, process_loss = np.mean(rows, axis=0)
print("\nMean of the four topics (log loss of guessing: 0.693)")
print(f"  longer wins  right {longer:.3f}")
print(f"  logistic     right {linear:.3f}  log loss {linear_loss:.3f}")
print(f"  GP           right {process:.3f}  log loss {process_loss:.3f}")
print(
    "\nWhat is seen: length alone calls most duels; the words of other topics add little, and\n"
    "on such features the GP is no better than logistic regression. Topics differ more from\n"
    "each other than the methods do, and another draw of the training duels moves the means\n"
    "of either by about 0.02."
)

# %%
# Topic by topic.
_, axes = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for k, name in enumerate(("longer wins", "logistic", "GP")):
    axes.bar(np.arange(4) + 0.27 * (k - 1), [row[k] for row in rows], 0.25, label=name)
axes.axhline(0.5, color="black", linestyle=":", linewidth=1)
axes.set_xticks(range(4), [f"topic {topic}" for topic in (0, 8, 16, 24)])
axes.set(ylabel="share called right", ylim=(0.4, 0.9))
axes.legend(ncols=3, frameon=False)
plt.show()
