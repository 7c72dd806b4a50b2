"""Scores of ``answers.py``: log-loss and its kin, calibration, who wins."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

EDGES = np.linspace(0.0, 1.0, 11)


def slope(true, proba):
    """The power of the probabilities, then normalised, of least log-loss, from e**-4 to e**4."""
    log_proba = np.log(np.maximum(proba, 1e-300))
    rows = np.arange(len(true))

    def loss(log_power):
        raised = np.exp(log_power) * log_proba
        return np.mean(logsumexp(raised, axis=1) - raised[rows, true])

    return float(np.exp(minimize_scalar(loss, bounds=(-4.0, 4.0), method="bounded").x))


def _bins(true, proba):
    """Of the likeliest outcome, a bin of its probability each: number, sum of it, times it came."""
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == true
    place = np.clip(np.digitize(sure, EDGES) - 1, 0, len(EDGES) - 2)
    return np.array([np.bincount(place, w, len(EDGES) - 1) for w in (None, sure, right)])


def reliability(true, proba):
    """The bins as text, three numbers a bin."""
    return " ".join(f"{value:.7g}" for value in _bins(true, proba).ravel())


def pooled(texts):
    """Reliability table of several splits, from what ``reliability`` gave for each."""
    n, sure, right = sum(np.array(text.split(), float).reshape(3, -1) for text in texts)
    return [
        {
            "from": round(float(EDGES[k]), 1),
            "to": round(float(EDGES[k + 1]), 1),
            "n": int(n[k]),
            "probability": round(float(sure[k] / n[k]), 4),
            "share": round(float(right[k] / n[k]), 4),
        }
        for k in np.flatnonzero(n)
    ]


def scores(true, proba):
    """Scores of probabilities (n, k); ``true``: the columns that came."""
    rows = np.arange(len(true))
    came = np.zeros(proba.shape)
    came[rows, true] = 1.0
    _, sure, right = _bins(true, proba)
    return {
        "log-loss": -float(np.mean(np.log(proba[rows, true]))),
        "accuracy": float(np.mean(proba.argmax(axis=1) == true)),
        "brier": float(np.mean(np.sum((proba - came) ** 2, axis=1))),
        "ece": float(np.sum(np.abs(sure - right)) / len(true)),
        "slope": slope(true, proba),
    }


def verdict(losses, method, rivals):
    """How a method fares against the best rival; ``losses``: method -> split -> log-loss."""
    common = sorted(set.intersection(*(set(by_split) for by_split in losses.values())))
    series = {m: np.array([by_split[s] for s in common]) for m, by_split in losses.items()}
    best = min(rivals, key=lambda m: series[m].mean())
    paired = series[method] - series[best]
    error = float(paired.std(ddof=1) / np.sqrt(len(paired))) if len(paired) > 1 else 0.0
    margin = max(0.01 * float(series[best].mean()), error)
    difference = float(paired.mean())
    return {
        "method": method,
        "verdict": "wins" if difference < 0.0 else "ties" if difference <= margin else "loses",
        "rival": best,
        "splits": len(common),
        "difference": difference,
        "standard error": error,
        "margin": margin,
    }
