"""PairwisePreferenceRegressor: forms of X, Bradley–Terry use, scores, what the fit stores."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr, ndtr
from scipy.stats import kendalltau, spearmanr
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.datasets import load_candy, load_llm_duels
from skpref.duels import from_pairs, from_ratings
from skpref.preprocessing import Itemwise

N_ITEMS = 9


@pytest.fixture(scope="module")
def items():
    return np.random.default_rng(0).uniform(-1.0, 1.0, (N_ITEMS, 2))


@pytest.fixture(params=["laplace", "ep"])
def model(request):
    return PairwisePreferenceRegressor(
        RBF(0.8), inference=request.param, noise_variance=0.05, optimizer=None
    )


def utility(items):
    return np.cos(2.0 * items[:, 0]) - items[:, 1]


# -- forms of X ----------------------------------------------------------------------------


def assert_same_posterior(one, other, items, **tolerance):
    mean, cov = one.predict(items, return_cov=True)
    other_mean, other_cov = other.predict(items, return_cov=True)
    assert_allclose(other_mean, mean, **tolerance)
    assert_allclose(other_cov, cov, **tolerance)
    evidence = one.log_marginal_likelihood_value_
    assert_allclose(other.log_marginal_likelihood_value_, evidence, rtol=1e-7)


def test_three_forms_of_the_same_duels(items, model):
    """All pairs of rated items, as ratings, as duel arrays and as positions in a table."""
    ratings = utility(items)
    rated = clone(model).fit(items, ratings)
    first, second = np.triu_indices(N_ITEMS, 1)
    pairs = np.column_stack([first, second])
    y = ratings[first] > ratings[second]
    tolerance = {"rtol": 1e-6, "atol": 1e-9}
    arrays = clone(model).fit(items[pairs], y)
    assert_same_posterior(rated, arrays, items, **tolerance)
    for table in (items, ItemTable(items)):
        positions = clone(model).set_params(items=table).fit(pairs, y)
        assert_same_posterior(arrays, positions, items, **tolerance)
        assert_allclose(positions.predict_proba(pairs), arrays.predict_proba(items[pairs]))
        mixed = clone(positions).fit(items[pairs], y)
        assert_same_posterior(arrays, mixed, items, **tolerance)
    assert hasattr(arrays, "classes_") and not hasattr(rated, "classes_")


def test_three_forms_when_learning(items, model):
    learning = model.set_params(optimizer="fmin_l_bfgs_b", kernel=None)
    ratings = utility(items)
    X, y = from_ratings(items, ratings)
    pairs, outcomes = from_ratings(None, ratings)
    rated = clone(learning).fit(items, ratings)
    for other in (
        clone(learning).fit(X, y),
        clone(learning).set_params(items=items).fit(pairs, outcomes),
    ):
        assert_allclose(other.kernel_.theta, rated.kernel_.theta, rtol=1e-6)
        assert_allclose(other.noise_variance_, rated.noise_variance_, rtol=1e-6)
        assert_same_posterior(rated, other, items, rtol=1e-4, atol=1e-6)


def test_groups_are_the_duels_within_them(items, model):
    qid, ratings = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2]), utility(items)
    first, second = np.nonzero(np.triu(qid[:, None] == qid, 1))
    y = ratings[first] > ratings[second]
    arrays = clone(model).fit(items[np.column_stack([first, second])], y)
    assert_same_posterior(
        clone(model).fit(items, ratings, qid=qid), arrays, items, rtol=1e-6, atol=1e-9
    )


def test_equal_ratings_make_no_duel(items, model):
    ratings = np.array([2, 2, 1, 1, 1, 0, 0, 0, 0])
    rated = model.fit(items, ratings)
    assert rated.duels_.counts.sum() == 2 * 3 + 2 * 4 + 3 * 4


def test_many_rated_items_do_not_become_all_pairs():
    items = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 2))
    fitted = PairwisePreferenceRegressor(optimizer=None, noise_variance=0.01)
    fitted.fit(items, utility(items))
    assert fitted.duels_.counts.sum() < 500 * np.log2(500)
    assert fitted.score(items, utility(items)) > 0.98


def test_rows_of_rated_items_in_any_order(items, model):
    order = np.random.default_rng(1).permutation(N_ITEMS)
    one = clone(model).fit(items, utility(items))
    other = clone(model).fit(items[order], utility(items)[order])
    assert_same_posterior(one, other, items, rtol=1e-9, atol=1e-12)


def test_repeated_items_are_merged(items, model):
    """Duel arrays name items by their features: equal ones are one item, −0 equals 0."""
    flat = np.array([[[0.0], [1.0]], [[-0.0], [2.0]], [[1.0], [2.0]], [[0.0], [1.0]]])
    fitted = model.fit(flat)
    assert len(fitted.duels_.items) == 3
    assert sorted(fitted.duels_.counts) == [1.0, 1.0, 2.0]


def test_predict_takes_positions_only_as_integers(items, model):
    pairs = np.array([[0, 1], [2, 3], [4, 5], [6, 7]])
    fitted = model.set_params(items=items).fit(pairs)
    assert_allclose(fitted.predict(pairs), fitted.predict(items[pairs]), rtol=1e-12)
    assert_allclose(fitted.predict(np.arange(N_ITEMS)), fitted.predict(items), rtol=1e-12)
    assert_allclose(fitted.predict(ItemTable(items)), fitted.predict(items), rtol=1e-12)
    # Two features: floats are items.
    as_items = fitted.predict(pairs * 1.0)
    assert_allclose(as_items, fitted.posterior_.mean(pairs * 1.0))
    assert not np.allclose(as_items, fitted.predict(pairs))
    assert_allclose(fitted.decision_function(pairs), fitted.predict(pairs))


# -- Bradley–Terry -------------------------------------------------------------------------


def thurstone(pairs, y, n_items, log_link, slope):
    """Maximum likelihood of utilities whose sum is zero, by L-BFGS."""
    winner, loser = np.where(y[:, None] == 1, pairs, pairs[:, ::-1]).T

    def minus_log_likelihood(f):
        margin = f[winner] - f[loser]
        pull = slope(margin)
        gradient = np.bincount(loser, pull, n_items) - np.bincount(winner, pull, n_items)
        # A hair of a ridge fixes the level.
        return -log_link(margin).sum() + 1e-6 * f @ f, gradient + 2e-6 * f

    found = minimize(minus_log_likelihood, np.zeros(n_items), jac=True, options={"maxiter": 500})
    return found.x - found.x.mean()


def probit(pairs, y, n_items):
    def slope(margin):
        return np.exp(-0.5 * margin**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(margin))

    return thurstone(pairs, y, n_items, log_ndtr, slope)


def logit(pairs, y, n_items):
    return thurstone(pairs, y, n_items, lambda m: -np.logaddexp(0.0, -m), lambda m: expit(-m))


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_bradley_terry_by_names(inference):
    """With many duels the prior hardly matters: the maximum-likelihood utilities come out."""
    names = [f"player {i}" for i in range(15)]
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(15)
    pairs = np.array([rng.choice(15, 2, replace=False) for _ in range(20_000)])
    won = rng.random(20_000) < ndtr(truth[pairs[:, 0]] - truth[pairs[:, 1]])
    table = ItemTable.from_names(names)
    # 2σ² = 1 is Thurstone's case V.
    model = PairwisePreferenceRegressor(
        items=table, inference=inference, noise_variance=0.5, optimizer=None
    ).fit(pairs, won)
    utilities = model.predict(table)
    assert_allclose(utilities, probit(pairs, won, 15), atol=0.03)
    assert_allclose(utilities, model.predict(np.arange(15)), rtol=1e-12)
    assert kendalltau(utilities, truth).statistic > 0.95
    # The posterior deviation of a margin is that of the likelihood: errors are of its size.
    duels = np.column_stack([np.arange(14), np.arange(1, 15)])
    margin, std = model.predict(duels, return_std=True)
    z = (margin - (truth[:-1] - truth[1:])) / std
    assert np.abs(z).max() < 4.0 and 0.4 < z.std() < 1.8


def test_bradley_terry_of_language_models():
    data = load_llm_duels()
    table = ItemTable.from_names(data.model_names)
    model = PairwisePreferenceRegressor(items=table).fit(data.X, data.y)
    utilities = model.predict(table)
    for link in (probit, logit):
        assert spearmanr(utilities, link(data.X, data.y, len(table))).statistic > 0.98
    assert model.noise_variance_ > 0.1  # tastes differ
    probability = model.predict_proba(data.X)[:, 1]
    # Calibrated where there is much data: of duels called at 60–70 %, about that share is won.
    called = (probability > 0.6) & (probability < 0.7)
    assert called.sum() > 300
    assert_allclose(data.y[called].mean(), probability[called].mean(), atol=0.06)


def test_unseen_names_keep_the_prior():
    table = ItemTable.from_names(["a", "b", "c"])
    model = PairwisePreferenceRegressor(items=table, optimizer=None).fit([[0, 1]] * 3)
    mean, std = model.predict(table, return_std=True)
    assert mean[0] > 0.0 > mean[1] and mean[2] == 0.0
    assert std[2] == 1.0 > std[0]
    assert_allclose(mean[0], -mean[1])


def test_names_by_the_builders():
    table = ItemTable.from_names(["tea", "coffee", "water"])
    X, y = from_pairs(table, [["tea", "water"], ["coffee", "water"], ["tea", "coffee"]] * 4)
    model = PairwisePreferenceRegressor(items=table).fit(X, y)
    assert table.names[np.argsort(-model.predict(table))].tolist() == ["tea", "coffee", "water"]
    assert model.predict_proba(table.index([["tea", "water"]]))[0, 1] > 0.8


# -- scores --------------------------------------------------------------------------------


def test_score_of_duels_is_the_share_called_right(items, model):
    model.fit(items, utility(items))
    rng = np.random.default_rng(2)
    pairs = rng.integers(N_ITEMS, size=(50, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    y = rng.integers(2, size=len(pairs))
    right = (model.predict(items[pairs]) > 0.0) == y
    assert_allclose(model.score(items[pairs], y), right.mean())
    assert_allclose(model.score(items[pairs], 2 * y - 1), right.mean())
    weight = rng.random(len(y))
    weighted = model.score(items[pairs], y, sample_weight=weight)
    assert_allclose(weighted, weight[right].sum() / weight.sum())
    assert_allclose(model.score(items[pairs]), np.mean(model.predict(items[pairs]) > 0.0))
    assert model.score(items[[[0, 0]]], [1]) == 0.5  # a margin of exactly zero


def test_score_of_items_is_their_concordance(items, model):
    model.fit(items, utility(items))
    ratings = np.random.default_rng(3).integers(4, size=N_ITEMS)
    qid = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    predicted = model.predict(items)
    first, second = np.nonzero(np.subtract.outer(ratings, ratings) > 0)
    right = predicted[first] > predicted[second]
    assert_allclose(model.score(items, ratings), right.mean())
    together = qid[first] == qid[second]
    assert_allclose(model.score(items, ratings, qid=qid), right[together].mean())
    weight = np.random.default_rng(4).random(N_ITEMS)
    of_pair = weight[first] * weight[second]
    found = model.score(items, ratings, sample_weight=weight)
    assert_allclose(found, of_pair[right].sum() / of_pair.sum())
    assert model.score(items, utility(items)) > 0.9


# -- what the fit stores -------------------------------------------------------------------


def test_default_kernel():
    candy = load_candy(n_duels=80)
    model = PairwisePreferenceRegressor(optimizer=None).fit(candy.X, candy.y)
    assert isinstance(model.kernel_, RBF) and model.kernel_.length_scale.shape == (11,)
    assert model.noise_variance_ == 0.01
    learned = PairwisePreferenceRegressor().fit(candy.X, candy.y)
    assert learned.log_marginal_likelihood_value_ > model.log_marginal_likelihood_value_
    assert learned.kernel is None
    held_out = load_candy(n_duels=400, random_state=1)
    assert learned.score(held_out.X, held_out.y) > 0.65


def test_learned_lengthscales_tell_features_apart():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 2, 3))  # the third feature says nothing
    f = np.sin(3.0 * X[..., 0]) + 0.5 * X[..., 1]
    model = PairwisePreferenceRegressor(inference="laplace").fit(X, f[:, 0] > f[:, 1])
    first, second, third = model.kernel_.length_scale
    assert first < second < third


def test_noise_is_learned_where_duels_repeat():
    """A share of upsets fixes the ratio of noise to utility: here 2σ² = 0.08."""
    rng = np.random.default_rng(0)
    items = np.linspace(-2.0, 2.0, 25)[:, None]
    f = np.linalg.cholesky(RBF(0.7)(items) + 1e-9 * np.eye(25)) @ rng.standard_normal(25)
    pairs = rng.integers(25, size=(4000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    noisy = f[pairs] + 0.2 * rng.standard_normal(pairs.shape)
    model = PairwisePreferenceRegressor(
        RBF(0.7, "fixed"), items=items, noise_variance=1.0, lengthscale_prior=None
    ).fit(pairs, noisy[:, 0] > noisy[:, 1])
    assert 0.02 < model.noise_variance_ < 0.08


def test_only_the_ratio_of_amplitude_to_noise_matters(items):
    pairs = np.random.default_rng(5).integers(N_ITEMS, size=(30, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    y = utility(items)[pairs[:, 0]] > utility(items)[pairs[:, 1]]
    one = PairwisePreferenceRegressor(
        Matern(0.8, nu=2.5), noise_variance=0.05, items=items, optimizer=None
    ).fit(pairs, y)
    hundred = clone(one).set_params(
        kernel=ConstantKernel(100.0) * Matern(0.8, nu=2.5), noise_variance=5.0
    )
    hundred.fit(pairs, y)
    assert_allclose(hundred.predict_proba(pairs), one.predict_proba(pairs), rtol=1e-6)
    assert_allclose(hundred.predict(items), 10.0 * one.predict(items), rtol=1e-6, atol=1e-9)
    assert_allclose(
        hundred.log_marginal_likelihood_value_, one.log_marginal_likelihood_value_, rtol=1e-8
    )


def test_engines_agree_where_noise_is_large(items):
    """With noise far above the utilities the posterior is nearly Gaussian."""
    pairs = np.random.default_rng(6).integers(N_ITEMS, size=(40, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    y = utility(items)[pairs[:, 0]] > utility(items)[pairs[:, 1]]
    fits = [
        PairwisePreferenceRegressor(
            RBF(0.8), inference=name, noise_variance=50.0, items=items, optimizer=None
        ).fit(pairs, y)
        for name in ("laplace", "ep")
    ]
    assert_allclose(fits[0].predict(items), fits[1].predict(items), rtol=0.01, atol=1e-3)
    evidence = [fit.log_marginal_likelihood_value_ for fit in fits]
    assert_allclose(evidence[0], evidence[1], rtol=1e-3)


def test_held_noise_of_the_posterior(items, model):
    """predict_proba sees noise, the posterior's noise-free probability is surer."""
    model.fit(items, utility(items))
    assert model.posterior_.likelihood.noise_variance == model.noise_variance_ == 0.05
    best, worst = items[utility(items).argmax()], items[utility(items).argmin()]
    noisy = model.posterior_.win_probability([best], [worst])
    sure = model.posterior_.win_probability([best], [worst], noise=False)
    assert 0.5 < noisy[0] < sure[0] < 1.0


def test_fit_is_quiet(items):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for inference in ("laplace", "ep"):
            PairwisePreferenceRegressor(inference=inference).fit(items, utility(items))


def test_transformers_of_items_in_front(items, model):
    """A fixed change of units in front equals items in those units."""
    pairs = np.random.default_rng(7).integers(N_ITEMS, size=(30, 2))
    y = utility(items)[pairs[:, 0]] > utility(items)[pairs[:, 1]]
    pipeline = make_pipeline(Itemwise(FunctionTransformer(np.tanh)), clone(model))
    pipeline.fit(items[pairs], y)
    plain = model.fit(np.tanh(items)[pairs], y)
    assert_allclose(pipeline.predict(items), plain.predict(np.tanh(items)), rtol=1e-9)
    assert_array_equal(
        pipeline.predict_proba(items[pairs]), plain.predict_proba(np.tanh(items)[pairs])
    )
