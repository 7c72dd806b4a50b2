"""Does one joint fit control for length better than a regression for each pair of models?

AlpacaEval 2 (Dubois et al., "Length-controlled AlpacaEval", 2024) has a language model say with
what probability it prefers a model's answer to that of one baseline, on 805 prompts, and takes the
effect of length out by one logistic regression for each model: an intercept and a slope in
tanh(difference of the lengths / its standard deviation). Here one Gaussian process has an effect of
every model, a slope that all models share and one that each has for itself, all of whose variances
are learned. Prompts are held out, so that the regression's third column, the difficulty of a
prompt, is not known of them.

Printed: log-loss of the probabilities on held-out prompts (of the verdicts' probabilities, so that
a sure verdict's entropy is in it), with the standard error over prompts of the difference to the
regressions; and how the board depends on length: the slope of the models' log odds against the
baseline, at equal length, in the logarithm of their mean length, beside that of plain win rates.

The verdicts are read from a clone of github.com/tatsu-lab/alpaca_eval (data: CC BY-NC 4.0, so that
they are not in this package). Run:
``python benchmarks/leaderboard/length_control.py --repository PATH [--folds 5]``; a minute.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import logit
from scipy.stats import linregress
from sklearn import config_context
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold

from skpref import PairwisePreferenceRegressor
from skpref.kernels import Identity, OnColumns

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import RESULTS, leave, report

FOLDER = "weighted_alpaca_eval_gpt4_turbo/annotations.json"
LEAST = 1e-6  # probabilities of verdicts are taken to lie this far from 0 and 1


def read(repository):
    """Models, prompts, lengths of both answers and the probability of every verdict."""
    git = ["git", "-C", repository]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    files = [name for name in listed if name.endswith(FOLDER) and name.count("/") == 3]
    models, prompts, rows = [], {}, []
    for name in files:
        shown = subprocess.run([*git, "show", f"HEAD:{name}"], capture_output=True, check=False)
        if shown.returncode:  # a snapshot may leave large files out
            continue
        model = name.split("/")[1]
        verdicts = [each for each in json.loads(shown.stdout) if each["preference"] is not None]
        if all(each["output_1"] == each["output_2"] for each in verdicts):  # the baseline itself
            continue
        models.append(model)
        for each in verdicts:
            prompt = prompts.setdefault(each["instruction"], len(prompts))
            lengths = len(each["output_2"]), len(each["output_1"])
            value = float(each["preference"])
            rows.append((len(models), prompt, *lengths, 0.5 if value == 0.0 else value - 1.0))
    return ["baseline", *models], len(prompts), np.array(rows)


def controls(rows):
    """tanh of the difference of the lengths, in deviations of the model's differences."""
    model, apart = rows[:, 0].astype(int), rows[:, 2] - rows[:, 3]
    deviation = np.array([np.std(apart[model == m], ddof=1) for m in range(1, model.max() + 1)])
    return np.tanh(apart / deviation[model - 1])


def regressions(train, test):
    """Probabilities by a logistic regression for each model, and its log odds at equal length."""
    model, held = train[0][:, 0].astype(int), test[0][:, 0].astype(int)
    found, odds = np.empty(len(held)), {}
    for m in np.unique(model):
        at, to = model == m, held == m
        X = np.column_stack([train[1][at], np.ones(at.sum())])
        p = train[0][at, 4]
        weight, verdict = np.concatenate([p, 1.0 - p]), np.tile(np.arange(len(p)), 2)
        label = np.repeat([1, 0], len(p))
        with config_context(enable_metadata_routing=True):
            scorer = get_scorer("neg_log_loss").set_score_request(sample_weight=True)
            fit = LogisticRegressionCV(
                cv=GroupKFold(5), scoring=scorer, l1_ratios=(1.0,), fit_intercept=False,
                solver="liblinear", random_state=0, use_legacy_attributes=False,
            )  # fmt: skip
            fit.set_fit_request(sample_weight=True)
            fit.fit(np.vstack([X, X]), label, sample_weight=weight, groups=verdict)
        found[to] = fit.predict_proba(np.column_stack([test[1][to], np.ones(to.sum())]))[:, 1]
        odds[m] = float(fit.coef_[0, 1])
    return found, odds


def duels(rows, control):
    """Items are a model, and half the control with its sign."""
    X = np.zeros((len(rows), 2, 2))
    X[:, 0, 0], X[:, 0, 1], X[:, 1, 1] = rows[:, 0], 0.5 * control, -0.5 * control
    return X


def joint(train, test):
    """Probabilities by one fit of all models, and the log odds at equal length."""
    ids, length = OnColumns(Identity(), [0]), OnColumns(DotProduct(0.0, "fixed"), [1])
    kernel = ConstantKernel(1.0) * ids + ConstantKernel(1.0) * length
    kernel += ConstantKernel(0.1) * ids * length
    X, p = duels(*train), train[0][:, 4]
    twice = np.concatenate([X, X])
    label, weight = np.repeat([1, 0], len(p)), np.concatenate([p, 1.0 - p])
    told = weight > LEAST
    model = PairwisePreferenceRegressor(kernel, inference="laplace", noise_variance=1.0)
    model.set_params(noise_variance_bounds="fixed")
    model.fit(twice[told], label[told], sample_weight=weight[told])
    models = np.unique(train[0][:, 0])
    fair = duels(np.column_stack([models, models]), np.zeros(len(models)))
    odds = logit(model.predict_proba(fair)[:, 1])
    found = model.predict_proba(duels(*test))[:, 1]
    return found, dict(zip(models.astype(int), odds, strict=True))


def log_loss(p, found):
    """Of each verdict, as a probability."""
    return -p * np.log(found) - (1.0 - p) * np.log1p(-found)


def on_length(size, score):
    """Slope of a least-squares line of the models' scores in the logarithm of their length."""
    line = linregress(size, score)
    return {"slope_on_length": float(line.slope), "slope_error": float(line.stderr)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", required=True, help="a clone of tatsu-lab/alpaca_eval")
    parser.add_argument("--folds", type=int, default=5)
    options = parser.parse_args()
    if not Path(options.repository).is_dir():
        leave(f"no folder {options.repository}: git clone https://github.com/tatsu-lab/alpaca_eval")
    models, n_prompts, rows = read(options.repository)
    control = controls(rows)
    print(f"{len(rows)} verdicts of {len(models) - 1} models on {n_prompts} prompts")
    kinds = {"regressions": regressions, "joint": joint}
    loss = {name: np.empty(len(rows)) for name in kinds}
    seconds = dict.fromkeys(kinds, 0.0)
    for train, test in KFold(options.folds, shuffle=True, random_state=0).split(range(n_prompts)):
        learned, held = (np.isin(rows[:, 1], part) for part in (train, test))
        for name, fit in kinds.items():
            begin = time.process_time()
            parts = [(rows[at], control[at]) for at in (learned, held)]
            found = fit(*parts)[0]
            seconds[name] += time.process_time() - begin
            loss[name][held] = log_loss(rows[held, 4], found)
    size = np.array([np.log(rows[rows[:, 0] == m, 2].mean()) for m in range(1, len(models))])
    rate = np.array([rows[rows[:, 0] == m, 4].mean() for m in range(1, len(models))])
    rival = np.bincount(rows[:, 1].astype(int), loss["regressions"])
    verdicts = np.bincount(rows[:, 1].astype(int))
    table = [{"method": "win rates", **on_length(size, logit(rate))}]
    for name, fit in kinds.items():
        odds = fit((rows, control), (rows, control))[1]
        by_model = np.array([odds[m] for m in range(1, len(models))])
        apart = (np.bincount(rows[:, 1].astype(int), loss[name]) - rival) / verdicts.mean()
        table.append(
            {
                "method": name,
                **on_length(size, by_model),
                "log_loss": float(loss[name].mean()),
                "less_regressions": float(apart.mean()),
                "error": float(apart.std(ddof=1) / np.sqrt(n_prompts)),
                "seconds": seconds[name],
            }
        )
    report(table, RESULTS / "length_control.csv", verdicts=len(rows), models=len(models) - 1)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of noise at its bounds, of solvers on weighted halves
    main()
