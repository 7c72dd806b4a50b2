"""Learning on a part of the answers."""

import warnings

import numpy as np
import pytest
from core_support import random_duels, won
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.data import check_training
from skpref.duels import Comparisons, ItemTable
from skpref.fitting import _forecast, check_settings, make_model
from skpref.fitting._forecast import learning_part
from skpref.fitting._model import Model
from skpref.fitting._parts import LearningSizes, random_part
from skpref.inference import EP, SVI
from skpref.likelihoods import TIE, Probit


def duels(n=300):
    items, winner, loser = random_duels(0, 20, n)
    return np.stack([items[winner], items[loser]], axis=1)


def test_a_part_holds_answers_as_they_were():
    rng = np.random.default_rng(0)
    items = rng.normal(size=(9, 2))
    shown = np.array([rng.permutation(9)[:3] for _ in range(40)])
    shown[::5, 2] = -1
    rank = np.where(shown < 0, 0, np.array([2, 1, 3]))
    seen = Comparisons.from_ranks(items, shown, rank, weight=rng.integers(1, 4, 40))
    part = random_part(seen, 15)
    assert len(part.positions) == 15 and part.rank.shape == (15, 3)
    told = {
        (tuple(map(tuple, each.items[p[p >= 0]])), tuple(r), w)
        for each in (seen,)
        for p, r, w in zip(each.positions, each.rank, each.weight, strict=True)
    }
    for p, r, w in zip(part.positions, part.rank, part.weight, strict=True):
        assert (tuple(map(tuple, part.items[p[p >= 0]])), tuple(r), w) in told
    assert np.all(np.unique(part.positions[part.positions >= 0]) == np.arange(len(part.items)))
    assert part == random_part(seen, 15)
    assert random_part(seen, 40) is seen


def test_a_part_has_ties_if_there_are_any():
    items, winner, loser = random_duels(0, 20, 300)
    tie = np.arange(300) == 123
    seen = Comparisons.from_duels(
        items, winner, loser, np.ones(300, dtype=bool), kind=TIE * np.array(tie)
    )
    for size in (2, 40, 150):
        part = random_part(seen, size)
        assert len(part.positions) == size and np.sum(part.kind != seen.kind[0]) == 1
    assert len(random_part(seen, 1).positions) == 1


@pytest.mark.slow
def test_hyperparameters_are_those_of_the_part_and_all_answers_are_fitted():
    X = duels()
    kernel = RBF(1.0)
    found = PairwisePreferenceRegressor(kernel, n_learning_answers=80).fit(X)
    part = random_part(found.comparisons_, 80)
    alone = PairwisePreferenceRegressor(kernel, n_learning_answers=None).fit(
        np.stack([part.items[part.positions[:, 0]], part.items[part.positions[:, 1]]], axis=1)
    )
    # The prior on lengthscales follows the spread of the items, of which the part has nearly all.
    np.testing.assert_allclose(found.kernel_.theta, alone.kernel_.theta, atol=1e-2)
    held = PairwisePreferenceRegressor(
        found.kernel_, noise_variance=found.noise_variance_, optimizer=None
    ).fit(X)
    np.testing.assert_allclose(held.predict(X), found.predict(X), atol=1e-7)
    every = PairwisePreferenceRegressor(kernel, n_learning_answers=None).fit(X)
    assert abs(every.kernel_.theta - found.kernel_.theta) > 1e-3
    assert every.log_marginal_likelihood_value_ > found.log_marginal_likelihood_value_


def test_by_default_only_long_searches_take_a_part(monkeypatch):
    items, winner, loser = random_duels(0, 900, 5000, n_features=3)
    seen = won(items, winner, loser)
    model = Model(RBF([1.0] * 3), Probit(), EP())
    assert learning_part(seen, model, "auto") is seen
    assert learning_part(seen, model, None) is seen
    assert len(learning_part(seen, model, 700).positions) == 700
    items, winner, loser = random_duels(0, 4000, 9000, n_features=3)
    many = won(items, winner, loser)
    assert len(learning_part(many, model, "auto").positions) == 1000
    # A minute is too long for half of them to be learned on.
    assert len(learning_part(many.part(np.arange(3900)), model, "auto").positions) == 1000
    few = many.part(np.arange(1900))  # which take long, but a part would be most of them
    cost = _forecast._exact_cost(few, model)
    seconds = _forecast._matrix_seconds(cost) * _forecast._evaluation_factor(model)
    assert seconds > _forecast._PATIENCE
    assert learning_part(few, model, "auto") is few
    fixed = Model(RBF([1.0] * 3, "fixed"), Probit(noise_variance_bounds="fixed"), EP())
    assert learning_part(many, fixed, "auto") is many


@pytest.mark.slow
def test_what_was_picked_is_said(monkeypatch, capsys):
    monkeypatch.setattr(_forecast, "ENOUGH", LearningSizes(exact=50))
    monkeypatch.setattr(_forecast, "_PATIENCE", 0.0)
    X = duels()
    with pytest.warns(UserWarning, match="learned on 50 random ones of 300 answers") as caught:
        PairwisePreferenceRegressor(RBF(1.0)).fit(X)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for quiet in (
            {"n_learning_answers": None},
            {"n_learning_answers": 50},
            {"optimizer": None},
        ):
            PairwisePreferenceRegressor(RBF(1.0), **quiet).fit(X)
        PairwisePreferenceRegressor(RBF(1.0), n_learning_answers=60, verbose=1).fit(X)
    assert "on 60 random ones of 300 answers" in capsys.readouterr().out


@pytest.mark.parametrize("bad", [0, 2.5, True, "all"])
def test_other_parts_are_refused(bad):
    with pytest.raises((TypeError, ValueError), match="n_learning_answers"):
        PairwisePreferenceRegressor(n_learning_answers=bad).fit(duels(20))


@pytest.mark.slow
def test_inducing_points_are_taught_by_exact_inference_on_800(monkeypatch):
    monkeypatch.setattr(_forecast, "_BRISK", 0.0)
    X = duels(1100)
    found, by_bound = (
        PairwisePreferenceRegressor(RBF(1.0), inference=SVI(6, **options), random_state=0).fit(X)
        for options in ({}, {"evidence": "bound"})
    )
    exact = PairwisePreferenceRegressor(RBF(1.0), inference="ep", n_learning_answers=800).fit(X)
    np.testing.assert_allclose(found.kernel_.theta, exact.kernel_.theta, rtol=1e-10)
    assert found.noise_variance_ == pytest.approx(exact.noise_variance_, rel=1e-10)
    assert abs(by_bound.kernel_.theta - exact.kernel_.theta) > 1e-3
    with_prior = SVI(6, scale_prior=(1.0, 1.0))
    assert with_prior.evidence_engine(search=True) is with_prior


def test_inducing_points_are_taught_by_all_answers_where_items_are_few():
    X = duels(1100)
    found, exact = (
        PairwisePreferenceRegressor(RBF(1.0), inference=inference, random_state=0).fit(X)
        for inference in (SVI(6), "ep")
    )
    np.testing.assert_allclose(found.kernel_.theta, exact.kernel_.theta, rtol=1e-10)
    assert found.noise_variance_ == pytest.approx(exact.noise_variance_, rel=1e-10)


def named_duels(n_items, n):
    """Duels of names whose utilities are standard normal, the noise's variance being .25."""
    rng = np.random.default_rng(0)
    utility = rng.normal(size=n_items)
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    noise = np.sqrt(0.5) * rng.normal(size=n)
    return np.column_stack([first, second]), utility[first] - utility[second] + noise > 0.0


def test_versions_of_one_item_are_one_of_the_few():
    """Names at times: every item is shown once, and the part is about few names all the same."""
    X, y = named_duels(1000, 8000)
    rows = np.column_stack([X.ravel(), np.arange(16_000) // 2]).astype(float)
    seen = Comparisons.from_duels(rows, np.arange(0, 16_000, 2), np.arange(1, 16_000, 2), y)
    who = seen.items[:, 0].astype(np.intp)
    parts = [random_part(seen, 300, among_few) for among_few in (False, True, who)]
    assert [len(part.positions) for part in parts] == [300] * 3
    assert [len(part.items) for part in parts] == [600] * 3
    n_names = [len(np.unique(part.items[:, 0])) for part in parts]
    assert min(n_names[:2]) > 400 and n_names[2] < 250


def test_names_that_drift_are_learned_on_a_part_of_few():
    X, y = named_duels(1000, 8000)
    rng = np.random.default_rng(0)
    names = PairwisePreferenceRegressor(
        drift="wiener",
        items=ItemTable.from_names([f"name {k}" for k in range(1000)]),
        n_learning_answers=300,
    )
    settings, time = check_settings(names), rng.uniform(0.0, 10.0, 8000)
    training = check_training(names, X, y, {"time": time})
    model = make_model(names, settings, training)
    part = learning_part(training.comparisons, model, 300)
    assert len(np.unique(part.items[:, 0])) < 250


@pytest.mark.slow
def test_a_part_of_names_meets_again():
    """Among all names so few answers hardly share one, and say next to nothing of the noise."""
    X, y = named_duels(1000, 8000)
    table = np.zeros((1000, 1))
    table[:, 0] = np.arange(1000)
    seen = Comparisons.from_duels(table, X[:, 0], X[:, 1], y)
    parts = [random_part(seen, 300, among_few) for among_few in (False, True)]
    assert [len(part.positions) for part in parts] == [300, 300]
    assert len(parts[0].items) > 400 and len(parts[1].items) < 250
    names = PairwisePreferenceRegressor(
        items=ItemTable.from_names([f"name {k}" for k in range(1000)]), n_learning_answers=300
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noise = names.fit(X, y).noise_variance_
    assert 0.25 / 4.0 < noise < 0.25 * 4.0
