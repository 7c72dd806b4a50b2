"""Utilities that move from answer to answer: the present one, by dense matrices; who forgets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from skpref.duels import ItemTable
from skpref.fitting import Fitted
from skpref.gp import forgetting_kernel, present_posterior
from skpref.kernels import Identity
from skpref.optimize import STRATEGIES, HallucinationBelieverOptimizer, PreferenceOptimizer
from skpref.optimize._model import PresentFit

RATE = 0.05


def told(n=12, rate=RATE, seed=0, **options):
    made = PreferenceOptimizer([[0.0, 1.0]] * 2, forgetting_rate=rate, random_state=seed, **options)
    rng = np.random.default_rng(1)
    for _ in range(n):
        duel = rng.random((2, 2))
        made.tell(duel, int(np.sum(duel[0]) > np.sum(duel[1])))
    return made


@pytest.mark.parametrize("base", [Matern([0.4, 0.7], nu=1.5), RBF(0.5)])
def test_correlation_falls_with_the_answers_between(base):
    rng = np.random.default_rng(0)
    rows, number = rng.random((7, 2)), rng.integers(0, 30, 7).astype(float)
    K = forgetting_kernel(base, 2, RATE)(np.column_stack([rows, number]))
    apart = np.abs(number[:, None] - number[None])
    assert_allclose(K, base(rows) * (1.0 - RATE) ** (apart / 2.0), rtol=1e-12)
    assert (
        forgetting_kernel(base, 2, RATE).theta.shape == base.theta.shape
    )  # the rate is not learned


def whole_and_present(n=12):
    """The posterior of the utility at all times, and that of the present."""
    fitted, _ = told(n)._session.fitted()
    assert isinstance(fitted, PresentFit)
    whole = Fitted._posterior_at(fitted, fitted.approximation)
    assert whole.anchors.shape[1] == 3 and whole.anchors[:, 2].max() == n - 1
    return whole, fitted.posterior


def test_the_present_is_that_of_the_whole_posterior():
    whole, present = whole_and_present()
    rows = np.random.default_rng(2).random((9, 2))
    now = np.column_stack([rows, np.full(9, 12.0)])
    assert_allclose(present.mean(rows), whole.mean(now), atol=1e-10)
    assert_allclose(present.cov(rows), whole.cov(now), atol=1e-10)
    assert_allclose(
        present.win_probability(rows[:4], rows[4:8]),
        whole.win_probability(now[:4], now[4:8]),
        atol=1e-10,
    )
    step = 1e-6 * np.eye(2)
    slopes = [(whole_mean(whole, rows + e) - whole_mean(whole, rows - e)) / 2e-6 for e in step]
    assert_allclose(present.mean_gradient(rows), np.stack(slopes, axis=1), atol=1e-6)


def whole_mean(whole, rows):
    return whole.mean(np.column_stack([rows, np.full(len(rows), 12.0)]))


@pytest.mark.slow
def test_draws_of_functions_are_of_the_present():
    whole, present = whole_and_present()
    rows = np.random.default_rng(3).random((4, 2))
    paths = present.sample_paths(20_000, 0, n_frequencies=500)(rows)
    now = np.column_stack([rows, np.full(4, 12.0)])
    assert_allclose(paths.mean(axis=1), whole.mean(now), atol=0.03)
    assert_allclose(np.cov(paths), whole.cov(now), atol=0.05)


def test_a_posterior_that_stays_is_left_alone():
    posterior = told(rate=None).posterior_
    assert present_posterior(posterior, 2) is posterior


@pytest.mark.parametrize("name", ["EP-EI", "LA-EI"])
def test_who_hardly_forgets_is_as_one_who_does_not(name):
    options = {**STRATEGIES[name]._asdict(), "n_initial": 4}
    slow, never = (told(rate=rate, **options) for rate in (1e-9, None))
    rows = np.random.default_rng(4).random((5, 2))
    means = [made.posterior_.mean(rows) for made in (slow, never)]
    assert_allclose(*(mean - mean[0] for mean in means), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("maker", [PreferenceOptimizer, HallucinationBelieverOptimizer])
def test_a_taste_that_moves_is_followed(maker):
    made = maker([[0.0, 1.0]], forgetting_rate=0.1, random_state=0)
    for n in range(20):
        best = 0.2 if n < 8 else 0.8
        duel = made.ask()
        made.tell(duel, abs(duel[0, 0] - best) < abs(duel[1, 0] - best))
        if n == 7:
            assert abs(made.recommend()[0] - 0.2) < 0.1
    assert abs(made.recommend()[0] - 0.8) < 0.1
    assert made.expected_gain_.utility > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_names_sets_and_ties(size):
    names = [f"n{k}" for k in range(6)]
    table = ItemTable.from_names(names)
    made = PreferenceOptimizer(candidates=table, forgetting_rate=RATE, random_state=0)
    for n in range(14):
        shown = made.ask(size=size)
        best = min(shown) if n < 4 else max(shown)
        if size == 2:
            made.tell(shown, "tie" if n == 3 else int(shown[0] == best))
        else:
            made.tell(shown, chosen=shown.index(best))
    assert made.posterior_.kernel == Identity()
    assert made.recommend() in ("n4", "n5")


def test_a_journal_goes_on_and_knows_the_rate(tmp_path):
    path = tmp_path / "run.db"
    made = told(journal=path)
    question = made.ask()
    again = told(n=0, journal=path)
    np.testing.assert_array_equal(again.ask(), question)
    with pytest.raises(ValueError, match=r"forgetting_rate: 0\.05, now 0\.1"):
        told(n=0, rate=0.1, journal=path)


def test_undone_answers_are_not_counted():
    more = told(13)
    more.undo()
    rows = np.random.default_rng(5).random((3, 2))
    assert_allclose(more.posterior_.mean(rows), told(12).posterior_.mean(rows), atol=1e-4)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, np.nan])
def test_rates_out_of_range(rate):
    with pytest.raises(ValueError, match="forgetting_rate must lie in"):
        told(0, rate=rate)


def test_engines_of_inducing_points_are_refused():
    with pytest.raises(ValueError, match="keeps all answers"):
        told(0, inference="svi")
