"""Offsets, known parts of utilities, in fits and predictions of PairwisePreferenceRegressor."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn import config_context
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.model_selection import GridSearchCV, cross_val_score

from skpref import PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.inference import EP, SVI
from skpref.inspection import loo, permutation_importance
from skpref.likelihoods import Derivatives, Likelihood
from skpref.metrics import log_loss_scorer, with_metadata

HELD = {"kernel": RBF(0.8), "noise_variance": 0.5, "optimizer": None}
TIGHT = EP(tol=1e-12, max_iter=2000)


def duels(seed=0, n=8, n_items=5, k=2):
    """A table of a few items, sets of k of them, random answers and offsets of all sizes."""
    rng = np.random.default_rng(seed)
    items = rng.uniform(-1.0, 1.0, (n_items, 1))
    sets = np.array([rng.permutation(n_items)[:k] for _ in range(n)])
    return items, sets, rng.integers(0, k, n), 1.5 * rng.normal(size=(n, k))


def prior_draws(items, n_draws=200_000):
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(RBF(0.8)(items) + 1e-10 * np.eye(len(items)))
    return rng.standard_normal((n_draws, len(items))) @ root.T


ENGINES = {
    "ep": (EP(), 0.003),
    "laplace": ("laplace", 0.04),  # the mode is not the mean
    "hmc": ("hmc", 0.03),
    "gibbs": ("gibbs", 0.06),
    "svi": (SVI(n_inducing=5), 0.003),
}


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_margins_of_sampling_the_prior(engine):
    items, pairs, y, offset = duels()
    inference, tolerance = ENGINES[engine]
    f, known = prior_draws(items), offset[:, 0] - offset[:, 1]
    margin = f[:, pairs[:, 0]] - f[:, pairs[:, 1]]
    weight = np.prod(ndtr(np.where(y == 1, margin + known, -margin - known)), axis=1)
    weight /= weight.sum()
    model = PairwisePreferenceRegressor(**HELD, inference=inference, random_state=0)
    model.fit(items[pairs], y, offset=offset)
    np.testing.assert_allclose(model.predict(items[pairs]), weight @ margin, atol=tolerance)
    proba = model.predict_proba(items[pairs], offset=offset)[:, 1]
    np.testing.assert_allclose(proba, weight @ ndtr(margin + known), atol=tolerance)


def test_ties_and_an_order_effect_go_with_it():
    items, pairs, _, offset = duels(1)
    y, order = np.array([1, 0, -1, 0, 1, -1, 0, 1]), np.array([1, -1, 0, 1, 1, -1, -1, 0])
    f, known = prior_draws(items), offset[:, 0] - offset[:, 1] + 0.7 * order
    margin = f[:, pairs[:, 0]] - f[:, pairs[:, 1]]

    def proba(margin):
        first, second = ndtr(margin + known - 0.4), ndtr(-margin - known - 0.4)
        return np.stack([second, 1.0 - first - second, first], axis=-1)

    chances = proba(margin)
    weight = np.prod(chances[:, np.arange(len(y)), y + 1], axis=1)
    weight /= weight.sum()
    model = PairwisePreferenceRegressor(
        **HELD, tie_threshold=0.4, order_effect=0.7, inference=TIGHT
    ).fit(items[pairs], y, order=order, offset=offset)
    np.testing.assert_allclose(model.predict(items[pairs]), weight @ margin, atol=0.005)
    expected = np.einsum("s,snc->nc", weight, chances)
    predicted = model.predict_proba(items[pairs], order=order, offset=offset)
    np.testing.assert_allclose(predicted, expected, atol=0.005)


def chance_of_each(utility):
    """P(each is the best of its set) with noise of variance 1/2, by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    noisy = np.sqrt(0.5) * nodes
    chances = np.empty(utility.shape)
    for i in range(utility.shape[-1]):
        rest = np.delete(utility, i, axis=-1)
        below = ndtr((utility[..., i, None, None] + noisy[:, None] - rest[..., None, :]) * 2.0**0.5)
        chances[..., i] = np.prod(below, axis=-1) @ weights / np.sqrt(2.0 * np.pi)
    return chances


def test_choices_of_three_are_those_of_noisy_utilities():
    items, sets, y, offset = duels(2, n=4, k=3)
    f = prior_draws(items, 40_000)[:, sets]
    chances = chance_of_each(f + offset)
    weight = np.prod(chances[:, np.arange(4), y], axis=1)
    weight /= weight.sum()
    model = PairwisePreferenceRegressor(**HELD, inference=TIGHT)
    model.fit(items[sets], y, offset=offset)
    expected = np.einsum("s,snk->nk", weight, f - f.mean(axis=2, keepdims=True))
    mean = model.predict(items[sets])
    np.testing.assert_allclose(mean - mean.mean(axis=1, keepdims=True), expected, atol=0.02)
    proba = model.predict_proba(items[sets], offset=offset)
    np.testing.assert_allclose(proba, np.einsum("s,snk->nk", weight, chances), atol=0.01)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("engine", [TIGHT, "hmc"], ids=["ep", "hmc"])
def test_zero_is_bitwise_none_and_a_constant_in_an_answer_says_nothing(engine, k):
    items, sets, y, offset = duels(3, k=k)
    X, constant = items[sets], np.arange(8.0)[:, None]
    model = PairwisePreferenceRegressor(**HELD, inference=engine, random_state=0)
    plain = model.fit(X, y).predict(items)
    for nothing in (np.zeros((8, k)), constant * np.ones(k)):
        assert np.array_equal(model.fit(X, y, offset=nothing).predict(items), plain)
        assert model.comparisons_.offset is None
    whole = model.fit(X, y, offset=np.rint(offset)).predict_proba(X, offset=np.rint(offset))
    moved = np.rint(offset) + constant
    shifted = model.fit(X, y, offset=moved).predict_proba(X, offset=moved)
    np.testing.assert_allclose(shifted, whole, atol=1e-8)


def test_a_linear_offset_changes_nothing_where_slopes_are_free():
    items, pairs, y, _ = duels(4, n=40, n_items=12)
    y = items[pairs[:, 0], 0] + np.random.default_rng(0).normal(size=40) > items[pairs[:, 1], 0]
    free = PairwisePreferenceRegressor(
        kernel=ConstantKernel(1e8) * DotProduct(0.0, "fixed"),
        noise_variance=0.5,
        optimizer=None,
        inference=TIGHT,
    )
    plain = free.fit(items[pairs], y).predict_proba(items[pairs])
    line = 1.0 + 2.0 * items[pairs][:, :, 0]
    offset = free.fit(items[pairs], y, offset=line).predict_proba(items[pairs], offset=line)
    np.testing.assert_allclose(offset, plain, atol=1e-6)


def test_equal_duels_merge_only_with_equal_offsets():
    items, offset = np.array([[0.0], [1.0]]), np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 0.0]])
    model = PairwisePreferenceRegressor(**HELD, inference=TIGHT)
    model.fit(np.array([items] * 3), [1, 1, 1], offset=offset)
    rows = model.comparisons_.rows
    assert sorted(rows.counts) == [1.0, 2.0] and sorted(rows.offset) == [0.0, 1.0]
    turned = np.array([items[::-1]] * 3), [0, 0, 0]
    again = PairwisePreferenceRegressor(**HELD, inference=TIGHT)
    again.fit(*turned, offset=offset[:, ::-1])
    np.testing.assert_allclose(again.predict(items), model.predict(items), atol=1e-12)


def test_weights_repeat_answers_and_ratings_are_duels_with_offsets():
    items, pairs, y, offset = duels(5)
    weight = np.array([2, 1, 3, 1, 1, 0, 1, 2])
    model = PairwisePreferenceRegressor(**HELD, inference=TIGHT)
    weighted = model.fit(items[pairs], y, sample_weight=weight, offset=offset).predict(items)
    repeated = np.repeat(np.arange(8), weight)
    model.fit(items[pairs][repeated], y[repeated], offset=offset[repeated])
    np.testing.assert_allclose(weighted, model.predict(items), atol=1e-8)
    known = offset[:5, 0]
    rated = model.fit(items, [3.0, 1.0, 5.0, 2.0, 4.0], offset=known).predict(items)
    better, worse = np.nonzero(np.array([3, 1, 5, 2, 4])[:, None] > np.array([3, 1, 5, 2, 4]))
    both = np.column_stack([better, worse])
    model.fit(items[both], offset=known[both])
    np.testing.assert_allclose(rated, model.predict(items), atol=1e-8)


def test_predictions_add_it_to_utilities_and_margins():
    items, pairs, y, offset = duels(6)
    model = PairwisePreferenceRegressor(**HELD).fit(items[pairs], y, offset=offset)
    X, known = items[pairs], offset[:, 0] - offset[:, 1]
    np.testing.assert_allclose(model.predict(X, offset=offset), model.predict(X) + known)
    np.testing.assert_allclose(model.decision_function(X, offset=offset), model.predict(X) + known)
    np.testing.assert_allclose(
        model.predict(items, offset=offset[:5, 0]), model.predict(items) + offset[:5, 0]
    )
    drawn = model.sample_y(X, 3, offset=offset) - model.sample_y(X, 3)
    np.testing.assert_allclose(drawn, known[:, None] * np.ones(3))
    right = (model.predict(X, offset=offset) > 0.0) == (y == 1)
    assert model.score(X, y, offset=offset) == right.mean()


def test_an_answer_is_left_out_as_a_fit_without_it_says():
    items, pairs, y, offset = duels(7, n=10)
    X, model = items[pairs], PairwisePreferenceRegressor(**HELD, inference=TIGHT)
    pointwise = loo(model.fit(X, y, offset=offset)).pointwise
    for i in (0, 4, 9):
        rest = np.arange(10) != i
        model.fit(X[rest], y[rest], offset=offset[rest])
        log_proba = model.predict_log_proba(X[[i]], offset=offset[[i]])[0, y[i]]
        np.testing.assert_allclose(pointwise[i], log_proba, atol=0.02)


def test_folds_get_their_offsets_by_routing():
    items, pairs, y, offset = duels(8, n=30, n_items=8)
    X, model = items[pairs], PairwisePreferenceRegressor(**HELD)
    with pytest.raises(ValueError, match="offset="):
        cross_val_score(model, X, y, params={"offset": offset}, error_score="raise")
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(model, X, y, params={"offset": offset}, cv=3)
        search = GridSearchCV(model, {"noise_variance": [0.1, 1.0]}, cv=3)
        assert search.fit(X, y, offset=offset).best_score_ > 0.0
        for scoring in (log_loss_scorer, with_metadata("neg_log_loss")):
            options = {"params": {"offset": offset}, "scoring": scoring, "cv": 3}
            losses = -cross_val_score(model, X, y, **options)
    rows = np.arange(30)
    for test, score in zip(np.array_split(rows, 3), scores, strict=True):
        train = np.setdiff1d(rows, test)
        model.fit(X[train], y[train], offset=offset[train])
        assert model.score(X[test], y[test], offset=offset[test]) == pytest.approx(score)
        loss = -log_loss_scorer(model, X[test], y[test], offset=offset[test])
        assert losses[test[0] // 10] == pytest.approx(loss)


def test_a_file_holds_it():
    items, pairs, y, offset = duels(9)
    model = PairwisePreferenceRegressor(**HELD).fit(items[pairs], y, offset=offset)
    again = PairwisePreferenceRegressor.from_arrays(model.to_arrays())
    assert again.comparisons_ == model.comparisons_
    assert np.array_equal(again.predict(items), model.predict(items))


class Own(Likelihood):
    """A logistic that knows no offsets."""

    def log_prob(self, margin, answers):
        win = 1.0 / (1.0 + np.exp(-margin))
        slope = win * (1.0 - win)
        return Derivatives(np.log(win), 1.0 - win, slope, slope * (2.0 * win - 1.0))


def test_what_cannot_take_it_refuses_by_name():
    items, pairs, y, offset = duels(10)
    X, model = items[pairs], PairwisePreferenceRegressor(**HELD)
    with pytest.raises(ValueError, match="offset= with judges="):
        model.fit(X, y, offset=offset, judges=["ann"] * 8)
    with pytest.raises(ValueError, match="offset= with Own"):
        PairwisePreferenceRegressor(RBF(), likelihood=Own()).fit(X, y, offset=offset)
    with pytest.raises(ValueError, match="got offset= with SVI"):
        PairwisePreferenceRegressor(inference=SVI(local="ekf")).fit(X, y, offset=offset)
    with pytest.raises(TypeError, match="got offset"):
        CollaborativePreferenceRegressor().fit(X, y, offset=offset)
    stream = PairwisePreferenceRegressor(**HELD, inference="svi")
    with pytest.raises(ValueError, match="got offset="):
        stream.partial_fit(X, y, offset=offset)
    with pytest.raises(ValueError, match="after a fit with offset="):
        stream.fit(X, y, offset=offset).partial_fit(X, y)


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (np.zeros(8), "column_stack"),
        (np.zeros((8, 3)), r"shape \(8, 2\)"),
        ([["a", "b"]] * 8, "a number for each item"),
        (np.full((8, 2), np.nan), r"got \[nan, nan\] in row 0"),
        (np.array([[0.0, 0.0]] * 7 + [[0.0, np.inf]]), r"got \[0.0, inf\] in row 7"),
    ],
)
def test_what_is_no_offset_is_refused(offset, message):
    items, pairs, y, _ = duels(11)
    model = PairwisePreferenceRegressor(**HELD)
    with pytest.raises(ValueError, match=message):
        model.fit(items[pairs], y, offset=offset)
    with pytest.raises(ValueError, match=message):
        model.fit(items[pairs], y).predict_proba(items[pairs], offset=offset)


def test_where_no_item_was_shown_it_does_not_count():
    items, sets, y, offset = duels(12, k=3)
    X = items[sets].copy()
    X[0, (y[0] + 1) % 3] = np.nan
    known = offset.copy()
    known[0, (y[0] + 1) % 3] = np.nan
    model = PairwisePreferenceRegressor(**HELD, inference=TIGHT)
    mean = model.fit(X, y, offset=known).predict(items)
    known[0, (y[0] + 1) % 3] = 7.0
    assert np.array_equal(model.fit(X, y, offset=known).predict(items), mean)
    assert model.fit(X, y, offset=np.full((8, 3), 3.0)).comparisons_.offset is None


def test_the_default_kernel_learns_an_amplitude_beside_it():
    items, pairs, y, offset = duels(13, n=40, n_items=8)
    model = PairwisePreferenceRegressor().fit(items[pairs], y, offset=offset)
    constants = [k for k in model.kernel_.get_params().values() if isinstance(k, ConstantKernel)]
    plain = PairwisePreferenceRegressor().fit(items[pairs], y)
    others = [k for k in plain.kernel_.get_params().values() if isinstance(k, ConstantKernel)]
    assert len(constants) == len(others) + 1


def test_grades_are_those_of_sampling_the_prior():
    items, pairs, _, offset = duels(14)
    y = np.array([2, -1, 1, -2, 1, 2, -1, -1])
    f, known = prior_draws(items), offset[:, 0] - offset[:, 1]
    margin = f[:, pairs[:, 0]] - f[:, pairs[:, 1]]
    won = np.sign(y) * (margin + known)
    proba = np.where(abs(y) == 2, ndtr(won - 0.8), ndtr(won) - ndtr(won - 0.8))
    weight = np.prod(proba, axis=1)
    weight /= weight.sum()
    model = PairwisePreferenceRegressor(**HELD, grade_thresholds=(0.8,), inference=TIGHT)
    model.fit(items[pairs], y, offset=offset)
    np.testing.assert_allclose(model.predict(items[pairs]), weight @ margin, atol=0.005)


def test_importances_keep_the_offsets_of_the_answers():
    _, _, _, offset = duels(15, n=60)
    X = np.random.default_rng(15).uniform(-1.0, 1.0, (60, 2, 2))
    y = (X[:, 0, 0] + offset[:, 0] > X[:, 1, 0] + offset[:, 1]).astype(int)
    model = PairwisePreferenceRegressor(RBF([1.0, 1.0]), noise_variance=0.1, optimizer=None)
    model.fit(X, y, offset=offset)
    importances = permutation_importance(model, X, y, offset=offset).importances_mean
    assert importances[0] > 0.1 > abs(importances[1])
