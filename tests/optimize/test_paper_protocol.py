"""``benchmarks/optimize/_paper_protocol.py``: the methods of figures 4, 8 and 9 in one setting."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
# Of section 6 and appendix G.4.
NAMED = {
    *("HB-EI", "HB-UCB", "LA-EI", "EP-EI", "EP-MUC", "EP-TS-MUC", "DuelTS", "DuelUCB", "EIIG"),
    *("HB-mean", "HB-MUC", "HB-BVEI"),
}
BOUNDS = [(-1.0, 1.0), (0.0, 4.0)]
CENTRE = np.array([0.3, 1.0])


@pytest.fixture(scope="module", autouse=True)
def from_benchmarks():
    folders = [str(BENCHMARKS), str(BENCHMARKS / "optimize")]
    sys.path[:0] = folders
    yield
    for folder in folders:
        sys.path.remove(folder)


def told(method, n_random=6, n_asked=0):
    """An optimizer of the protocol after some duels, and the items that it asked first."""
    from _paper_protocol import PaperOptimizer

    def judge(items):
        first, second = np.sum((np.asarray(items) - CENTRE) ** 2, axis=1)
        return int(first < second)

    optimizer, rng = PaperOptimizer(method, BOUNDS, seed=0), np.random.default_rng(0)
    low, high = np.transpose(BOUNDS)
    for items in low + (high - low) * rng.random((n_random, 2, 2)):
        optimizer.tell(items, judge(items))
    shown = []
    for _ in range(n_asked):
        items = optimizer.ask()
        shown.append(items[0])
        optimizer.tell(items, judge(items))
    return optimizer, shown


def test_methods_are_those_of_the_figures():
    from _paper_protocol import IN_FIGURES, PAPER
    from regret import PROTOCOLS

    assert set(IN_FIGURES) == NAMED <= set(PAPER)
    assert PROTOCOLS["paper"].usual == IN_FIGURES


@pytest.mark.filterwarnings("ignore:The chains have not mixed")  # they are as short as there
@pytest.mark.parametrize("method", ["HB-EI", "LA-EI", "EP-MUC", "DuelTS", "EIIG"])
def test_recommended_item_is_the_first_of_the_next_duel(method):
    optimizer, _ = told(method, n_asked=1)
    best = optimizer.recommend()
    np.testing.assert_array_equal(best, optimizer._next[0])
    low, high = np.transpose(BOUNDS)
    assert np.all((low <= best) & (best <= high))


def test_lengthscales_are_learned_after_every_ten_duels():
    optimizer, learned = told("LA-EI")[0], []
    optimizer._learn = lambda: learned.append(len(optimizer._answers))
    for _ in range(21):
        items = optimizer.ask()
        optimizer.tell(items, 1)
    assert learned == [6, 16, 26]


def test_lengthscales_are_a_maximum_of_the_evidence_of_laplace_within_the_bounds():
    from _paper_protocol import BOUNDS as WITHIN
    from _paper_protocol import MODEL
    from sklearn.gaussian_process.kernels import RBF

    from skpref import PairwisePreferenceRegressor

    optimizer, _ = told("HB-EI", n_random=20)
    optimizer._learn()
    assert np.all((WITHIN[0] <= optimizer._lengthscales) & (optimizer._lengthscales <= WITHIN[1]))
    duels = np.array([optimizer._optimizer.to_unit(items) for items, _ in optimizer._answers])
    y = np.array([outcome for _, outcome in optimizer._answers])

    def evidence(lengthscales):
        model = PairwisePreferenceRegressor(
            RBF(lengthscales), **MODEL, inference="laplace", optimizer=None
        )
        return model.fit(duels, y).log_marginal_likelihood_value_

    best = evidence(optimizer._lengthscales)
    for step in (-0.002, 0.002):  # at this noise the evidence has many maxima
        for near in optimizer._lengthscales + step * np.eye(2):
            assert evidence(np.clip(near, *WITHIN)) <= best + 1e-3
    assert best > evidence(np.full(2, np.mean(WITHIN)))


def test_improvement_on_the_incumbent_is_its_integral():
    from _paper_protocol import improvement_on_incumbent

    optimizer, _ = told("HB-EI")
    posterior = optimizer._optimizer.posterior_
    rows = np.random.default_rng(1).random((4, 2))
    incumbent = np.array([0.6, 0.3])
    known = posterior.mean(incumbent[None])[0]
    for row, value in zip(rows, improvement_on_incumbent(posterior, rows, incumbent), strict=True):
        mean, deviation = posterior.mean(row[None])[0], np.sqrt(posterior.var(row[None])[0])
        found = quad(
            lambda f, m=mean, s=deviation: (f - known) * norm.pdf(f, m, s),
            known,
            known + 12.0 * (deviation + abs(mean - known)),
        )[0]
        assert value == pytest.approx(found, rel=1e-6, abs=1e-12)


def test_first_incumbent_is_the_last_winner_or_the_best():
    (last,) = told("HB-EI", n_asked=1)[1]
    (best,) = told("HB-EI, best first", n_asked=1)[1]
    optimizer, _ = told("HB-EI")
    items, outcome = optimizer._answers[-1]
    np.testing.assert_array_equal(last, items[1 - outcome])
    optimizer._learn()
    np.testing.assert_array_equal(best, optimizer._optimizer.recommend())
    assert not np.array_equal(last, best)
