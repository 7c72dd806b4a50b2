"""One site for all inequalities of an answer: against draws, and where its fixed point is."""

import numpy as np
import pytest
from core_support import TIGHT_EP
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.fitting._model import Model
from skpref.gp import DenseItems, DenseMargins
from skpref.inference import EP, Problem
from skpref.likelihoods import Probit

NOISE = 0.01


def draws_given(items, rank, n=400_000, seed=0):
    """Draws of utilities under RBF(0.5) that say the ranks once noisy, and how many of all do."""
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(RBF(0.5)(items))
    f = rng.standard_normal((n, len(items))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    noisy = f + np.sqrt(NOISE) * rng.standard_normal(f.shape)
    kept = np.ones(n, dtype=bool)
    for low in range(1, max(rank)):
        better, worse = noisy[:, rank == low], noisy[:, rank == low + 1]
        kept &= better.min(axis=1) > worse.max(axis=1)
    return f[kept], kept.mean()


def fitted(items, rank, **options):
    model = PairwisePreferenceRegressor(
        RBF(0.5), inference=EP(**options), noise_variance=NOISE, optimizer=None
    )
    return model.fit(items[None], rank[None])


def fitted_to(sets, ranks):
    model = PairwisePreferenceRegressor(
        RBF(0.5), inference="ep", noise_variance=NOISE, optimizer=None
    )
    return model.fit(sets, ranks)


def check(items, rank):
    """Deviations and means of the differences from the best item, and the evidence."""
    f, share = draws_given(items, rank)
    model, best = fitted(items, rank), int(np.argmin(rank))
    others = np.delete(np.arange(len(items)), best)
    pairs = np.stack([np.broadcast_to(items[best], items[others].shape), items[others]], axis=1)
    mean, deviation = model.predict(pairs, return_std=True)
    apart = f[:, [best]] - f[:, others]
    np.testing.assert_allclose(deviation, apart.std(axis=0), rtol=0.05)
    np.testing.assert_allclose(mean, apart.mean(axis=0), atol=0.05 * apart.std(axis=0).max())
    assert model.log_marginal_likelihood_value_ == pytest.approx(np.log(share), abs=0.03)


@pytest.mark.parametrize("best", [0, 3])
def test_the_best_of_a_line_of_nine_is_as_uncertain_as_draws(best):
    rank = np.where(np.arange(9) == best, 1, 2)
    check(np.linspace(0.0, 1.0, 9)[:, None], rank)


@pytest.mark.parametrize("k", [3, 4, 5, 7, 9])
def test_one_choice_is_as_uncertain_as_draws(k):
    items = np.random.default_rng(k).uniform(size=(k, 2))
    check(items, np.where(np.arange(k) == 1, 1, 2))


@pytest.mark.parametrize("k", [3, 4])
def test_one_ranking_is_as_uncertain_as_draws(k):
    items = np.random.default_rng(k).uniform(size=(k, 2))
    check(items, np.random.default_rng(k + 10).permutation(k) + 1)


@pytest.mark.parametrize(
    "rank",
    [
        [2, 1, 3, 2],
        [2, 3, 2, 1, 2, 2],
        [2, 2, 3, 2, 1, 2, 2],
        [1, 2, 1, 2],
        [2, 1, 2, 2, 2, 1, 2],
        [1, 1, 1, 2, 2],
        [1, 1, 2, 2, 3, 3],
    ],
)
def test_an_answer_in_which_inequalities_follow_from_others_is_as_uncertain_as_draws(rank):
    """Best and worst, some above the others: .76 to .93 of the deviation with sites apart."""
    items = np.random.default_rng(len(rank)).uniform(size=(len(rank), 2))
    check(items, np.array(rank))


def test_answers_that_state_equally_many_inequalities_have_sites_of_their_own():
    """The best of five, two above two, best and worst of four: four inequalities each."""
    rank = [[1, 2, 2, 2, 2], [1, 1, 2, 2, 0], [1, 2, 2, 3, 0]]
    sets = np.random.default_rng(1).uniform(size=(3, 5, 2))
    sets += 100.0 * np.arange(3)[:, None, None]  # far apart: none tells of another
    model = fitted_to(sets, np.array(rank))
    for X, y in zip(sets, rank, strict=True):
        shown = np.array(y) > 0
        alone = fitted(X[shown], np.array(y)[shown])
        pairs = np.stack([X[:1].repeat(2, axis=0), X[1:3]], axis=1)
        for one, other in zip(
            model.predict(pairs, return_std=True),
            alone.predict(pairs, return_std=True),
            strict=True,
        ):
            assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def several(n=12, k=5, seed=3):
    rng = np.random.default_rng(seed)
    sets = rng.uniform(size=(n, k, 2))
    noisy = np.sin(4.0 * sets).sum(axis=-1) + 0.1 * rng.standard_normal((n, k))
    return sets, np.where(noisy == noisy.max(axis=1, keepdims=True), 1, 2)


@pytest.mark.parametrize("worst", [False, True])
def test_neither_answers_nor_items_have_an_order(worst):
    sets, ranks = several()
    if worst:  # each by its last item, or the one before
        last = np.where(ranks[:, -1] == 1, -2, -1)
        ranks[np.arange(len(ranks)), last] = 3
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(len(sets))
    within = rng.permuted(np.tile(np.arange(5), (len(sets), 1)), axis=1)
    turned = np.take_along_axis(sets, within[:, :, None], axis=1)[shuffled]
    turned_ranks = np.take_along_axis(ranks, within, axis=1)[shuffled]
    one, other = (
        PairwisePreferenceRegressor(RBF(0.5), inference="ep", optimizer=None).fit(X, y)
        for X, y in ((sets, ranks), (turned, turned_ranks))
    )
    X = rng.uniform(size=(6, 2))
    for ours, theirs in zip(
        one.predict(X, return_std=True), other.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_the_fit_goes_on_from_sites_of_the_search_and_from_its_own():
    sets, ranks = several()
    items = sets.reshape(-1, 2)
    seen = Comparisons.from_ranks(items, np.arange(len(items)).reshape(ranks.shape), ranks)
    cold, rough = (
        Model(RBF(0.5), Probit(NOISE), engine).evaluate(seen).approximation
        for engine in (TIGHT_EP, EP(tol=1e-5))
    )
    assert set(rough.state) == {"precision", "shift"}
    assert set(cold.state) == {"precision", "shift", "coupling"}
    model = Model(RBF(0.5), Probit(NOISE), TIGHT_EP)
    for start, sweeps in ((rough.state, cold.n_iter), (cold.state, 3)):
        again = model.evaluate(seen, start).approximation
        assert again.n_iter <= sweeps
        np.testing.assert_allclose(again.conditioned.mean, cold.conditioned.mean, atol=1e-6)
        evidence = again.sites.log_evidence
        assert evidence == pytest.approx(cold.sites.log_evidence, abs=1e-7)


def test_a_choice_of_three_has_gradients_in_the_order_effect():
    """Ends of the boxes move with it: by differences of the evidence."""
    sets, ranks = several(k=3)
    items = sets.reshape(-1, 2)
    shown = np.arange(len(items)).reshape(ranks.shape)
    order = np.where(np.arange(len(sets)) % 2, 1, -1)
    seen = Comparisons.from_ranks(items, shown, ranks, order=order)
    object.__setattr__(seen, "ordered", True)
    likelihood = Probit(0.05, order_effect=0.1, order_effect_bounds=(-2.0, 2.0))
    model = Model(RBF(0.5), likelihood, TIGHT_EP)
    found = model.evaluate(seen, eval_gradient=True)
    for k in range(len(model.theta)):
        step = 1e-3 * np.eye(len(model.theta))[k]
        above, below = (
            model.at(model.theta + side * step).evaluate(seen).approximation.sites.log_evidence
            for side in (1.0, -1.0)
        )
        assert found.gradient[k] == pytest.approx((above - below) / 2e-3, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("chosen", [0, 1])
@pytest.mark.parametrize(("tol", "slack"), [(1e-5, 0.01), (5e-9, 1e-9)])
def test_an_item_that_is_twice_in_a_set_is_no_hindrance(chosen, tol, slack):
    rows, ranks = np.array([[0.0], [1.0], [1.0]]), np.full((4, 3), 2)
    ranks[:, chosen] = 1
    places = np.tile(np.arange(3), (4, 1))
    kernel, likelihood, engine = RBF(1.0), Probit(0.7), EP(tol=tol, max_iter=50)

    def result(items, n):
        seen = Comparisons.from_ranks(items, places[:n], ranks[:n])
        return engine.run(
            Problem(DenseItems.from_comparisons(kernel, seen, likelihood), seen, likelihood)
        )

    one = result(rows, 1)
    margins = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    if chosen:
        margins = np.array([[-1.0, 1.0, 0.0], [0.0, 1.0, -1.0]])
    covariance = margins @ (kernel(rows) + likelihood.item_noise * np.eye(3)) @ margins.T
    truth = np.log(multivariate_normal(np.zeros(2), covariance).cdf(np.zeros(2)))
    assert one.sites.log_evidence == pytest.approx(truth, abs=max(slack, 1e-6))
    apart = rows + np.array([[0.0], [0.0], [1e-6]])
    several, near = result(rows, 4), result(apart, 4)
    assert several.residual <= tol
    assert several.sites.log_evidence == pytest.approx(near.sites.log_evidence, abs=1e-5)
    assert_allclose(several.conditioned.mean, near.conditioned.mean, atol=1e-4)


@pytest.mark.parametrize("tol", [1e-5, 5e-9])
def test_sets_that_have_an_item_twice_settle_as_others_do(tol):
    # Rounding leaves a margin between two that are one a variance of 1e-17.
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3, 1))
    rows[:, 2] = rows[:, 1]
    chosen = (-rows[:, :, 0] + rng.normal(size=(30, 3))).argmax(axis=1)
    ranks = np.where(np.arange(3) == chosen[:, None], 1, 2)
    seen = Comparisons.from_ranks(rows.reshape(-1, 1), np.arange(90).reshape(30, 3), ranks)
    for prior in (DenseItems, DenseMargins):
        problem = Problem(prior.from_comparisons(RBF(1.0), seen, Probit(0.7)), seen, Probit(0.7))
        assert EP(tol=tol, max_iter=50).run(problem).residual <= tol
