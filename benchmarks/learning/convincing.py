"""Which of two arguments convinces more: every one of 32 topics held out in turn.

    python benchmarks/learning/convincing.py [--methods svi logistic ...] [--topics N] [--table]

The task of Simpson and Gurevych (2018), on 11 650 duels of 1 052 texts (UKPConvArg1). Texts are 32
standardised numbers: how they are written (twelve, ``_convincing_features.py``) and 20 components
of TF-IDF, learned from the texts of the other topics. Methods:

- ``svi``: ``PairwisePreferenceRegressor(inference=SVI(200))``, all else as it comes: a lengthscale
  a feature and the noise learned from all duels of the other topics.
- ``svi median``: 100 inducing points, a product of Matern-3/2 with `median_lengthscales`, of which
  the noise alone is learned, by EP's evidence. The paper has this kernel, but a noise variance of
  1 beside a gamma prior on the inverse of the kernel's scale, and a linearised update.
- ``svi scale``: the same with the noise and the prior of the paper (shape 200 and rate 20 000, as
  in its authors' code), by the bound; the update is the package's own.
- ``ekf median``, ``ekf scale``: these two with the paper's linearised update, so that the latter
  is the paper's setting. ``ekf scale, means``: the same, but the chances are Φ of the difference of
  the means over the noise, which leave out how sure the means are.
- ``svi 1000``, ``ep 1000``: with 200 points and by expectation propagation, learned from the same
  1 000 duels of the other topics, drawn at random.
- ``ep``: by expectation propagation from all duels, hyperparameters from 1 000 of them. Here and in
  ``ep 1000`` every text has a item effect that its features do not explain, which inducing
  points fewer than texts cannot carry.
- ``ep linear``: as ``ep``, with a linear part, slopes of every topic's own beside those of all
  topics, an RBF of one lengthscale, √32, and the item effects; their four variances are learned. On
  a topic held out its own slopes are unknown, which widens what is predicted there.
- ``logistic``: logistic regression on differences, its C by the log-loss of groups of topics held
  out within the training part.
- ``logistic 1000``: the same on the 1 000 duels.
- ``longer``: the longer text wins, as often as it does on the other topics.

Every finished topic is appended to ``results/convincing.csv``: run again, what is there is skipped.
From it comes ``convincing_summary.csv``: means over topics with standard errors, the means over all
duels, and the difference to ``logistic`` with the standard error of its topics. Seconds are of
processor time.
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy
    os.environ[variable] = "1"

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GroupKFold

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.datasets import load_convincing_arguments
from skpref.inference import SVI
from skpref.kernels import (
    Identity,
    ItemEffect,
    Linear,
    OnColumns,
    ProductMatern,
    median_lengthscales,
)
from skpref.metrics import answer_accuracy, answer_log_loss

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _convincing_features import features
from common import RESULTS, Table, report, sources

METHODS = ("longer", "logistic", "logistic 1000", "svi median", "svi scale", "ekf median")
METHODS += ("ekf scale", "ekf scale, means", "svi 1000", "svi", "ep 1000", "ep", "ep linear")
KEYS = ("topic", "method")
FEW = 1000


def linear_by_topic(n_features):
    """A kernel on features that are followed by the topic."""
    features, topic = list(range(n_features)), OnColumns(Identity(), [n_features])
    linear = OnColumns(Linear(np.sqrt(n_features)), features)
    smooth = OnColumns(RBF(np.sqrt(n_features), "fixed"), features)
    own = OnColumns(ItemEffect(), features)
    return 0.5 * linear + 0.3 * (linear * topic) + 0.3 * smooth + 0.3 * own


def gaussian_process(table, method, train, y):
    """A function from pairs to P(first wins), and what was learned."""
    engine = "ep" if method.startswith("ep") else SVI(200)
    kernel, options = None, {}
    if method == "ep linear":
        kernel = linear_by_topic(table.shape[1] - 1)
    scaled = method.startswith(("svi scale", "ekf scale"))
    if scaled or method in ("svi median", "ekf median"):
        kernel = ProductMatern(median_lengthscales(table), "fixed")
        local = "ekf" if method.startswith("ekf") else "expected"
        engine = SVI(100, local=local, scale_prior=(200.0, 20_000.0) if scaled else None)
    if scaled:
        options = {"noise_variance": 1.0, "noise_variance_bounds": "fixed"}
    model = PairwisePreferenceRegressor(
        kernel, inference=engine, items=ItemTable(table), random_state=0, **options
    )
    model.fit(train, y)
    chosen = f"noise {model.noise_variance_:.3g}"
    if scaled:
        chosen = f"scale {model.kernel_.k1.constant_value:.3g}"
    if method.endswith("means"):
        deviates = model.predict(table) / np.sqrt(2.0)
        return lambda pairs: norm.cdf(deviates[pairs[:, 0]] - deviates[pairs[:, 1]]), chosen
    return lambda pairs: model.predict_proba(pairs)[:, 1], chosen


def logistic(table, train, y, groups):
    def differences(pairs):
        return table[pairs[:, 0]] - table[pairs[:, 1]]

    folds = list(GroupKFold(4).split(train, groups=groups))
    model = LogisticRegressionCV(
        Cs=np.logspace(-4, 1, 11),
        cv=folds,
        scoring="neg_log_loss",
        fit_intercept=False,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )
    model.fit(differences(train), y)
    return lambda pairs: model.predict_proba(differences(pairs))[:, 1], f"C {model.C_:.3g}"


def longer(texts, train, y):
    """The longer text wins with the share that it has in training."""
    length = np.array([len(text) for text in texts])

    def sign(pairs):
        return np.sign(length[pairs[:, 0]] - length[pairs[:, 1]])

    share = np.mean((sign(train) > 0) == (y == 1))
    return lambda pairs: 0.5 + sign(pairs) * (share - 0.5), f"share {share:.3g}"


def run(data, topic, method):
    """The row of a topic held out."""
    known, held_out = data.text_topic != topic, data.topic == topic
    train, y, groups = (part[~held_out] for part in (data.pairs, data.y, data.topic))
    if method.endswith(str(FEW)):
        few = np.random.default_rng(topic).choice(len(y), FEW, replace=False)
        train, y, groups = train[few], y[few], groups[few]
    table = features(data.texts, known, 20)
    if method == "ep linear":
        table = np.column_stack([table, data.text_topic])
    began = time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if method == "longer":
            predict, chosen = longer(data.texts, train, y)
        elif method.startswith("logistic"):
            predict, chosen = logistic(table, train, y, groups)
        else:
            predict, chosen = gaussian_process(table, method, train, y)
        seconds = time.process_time() - began
        chance = predict(data.pairs[held_out])
    return {
        "topic": topic,
        "method": method,
        "train": len(y),
        "test": int(held_out.sum()),
        "accuracy": answer_accuracy(data.y[held_out], chance),
        "log-loss": answer_log_loss(data.y[held_out], chance),
        "seconds": seconds,
        "chosen": chosen,
        "sources": sources(),
        "warned": " | ".join(sorted({str(one.message)[:200] for one in warned})),
    }


def summary(rows):
    """Means over topics, and over duels, of every method."""
    found = {(row["topic"], row["method"]): row for row in rows}
    lines = []
    for method in METHODS:
        topics = [topic for topic, name in found if name == method]
        if not topics:
            continue
        mine = [found[topic, method] for topic in topics]
        line = {"method": method, "topics": len(mine)}
        sizes = [row["test"] for row in mine]
        for score in ("accuracy", "log-loss"):
            values = np.array([row[score] for row in mine])
            line[score] = float(np.mean(values))
            line[f"{score} se"] = _standard_error(values)
            line[f"{score} of duels"] = float(np.average(values, weights=sizes))
            both = [topic for topic in topics if (topic, "logistic") in found]
            apart = [found[t, method][score] - found[t, "logistic"][score] for t in both]
            if apart and method != "logistic":
                line[f"{score} - logistic"] = float(np.mean(apart))
                line[f"{score} - logistic se"] = _standard_error(apart)
        line["seconds"] = float(np.mean([row["seconds"] for row in mine]))
        lines.append(line)
    return lines


def _standard_error(values):
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--topics", type=int, default=32, help="the first so many")
    parser.add_argument("--table", action="store_true", help="print the file's figures only")
    options = parser.parse_args()
    data, table = load_convincing_arguments(), Table(RESULTS / "convincing.csv", KEYS)
    units = [(topic, method) for method in options.methods for topic in range(options.topics)]
    for topic, method in [] if options.table else table.missing(units):
        row = run(data, topic, method)
        table.add([row])
        print(topic, method, f"{row['accuracy']:.3f} {row['log-loss']:.4f}", flush=True)
    if not table.rows():
        parser.error("nothing has been run yet")
    report(summary(table.rows()), RESULTS / "convincing_summary.csv")


if __name__ == "__main__":
    main()
