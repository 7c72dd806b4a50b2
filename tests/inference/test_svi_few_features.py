"""Variational inference, streams and shards with kernels of few features: nothing is left out."""

import numpy as np
import pytest
from finite_support import random_items, random_kernel
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.gp import InducingPoints, spanning_items, unexplained, unexplained_share
from skpref.inference import SVI
from skpref.kernels import Identity, OnColumns

KERNEL = ConstantKernel(0.5) * OnColumns(Identity(), [0]) + ConstantKernel(0.2) * OnColumns(
    DotProduct(1.0, "fixed"), [1, 2]
)


def contest(n, n_ids, seed=0, mean=0.0):
    """Duels of ids, each shown with controls of its own: X, y."""
    rng = np.random.default_rng(seed)
    ids = np.array([rng.permutation(n_ids)[:2] for _ in range(n)])
    controls = rng.normal(size=(n, 2, 2)) + mean
    margin = (0.3 * ids + controls @ [0.8, 0.0]) @ [1.0, -1.0] + 0.7 * rng.normal(size=n)
    return np.concatenate([ids[:, :, None], controls], axis=2), np.sign(margin).astype(int)


def fitted(engine, X, y, **options):
    given = {"optimizer": None, "noise_variance": 0.3, "random_state": 0, **options}
    return PairwisePreferenceRegressor(KERNEL, inference=engine, **given).fit(X, y)


@pytest.mark.parametrize("seed", range(6))
def test_spanning_items_explain_all_others(seed):
    rng = np.random.default_rng(seed)
    kernel, items = random_kernel(rng), random_items(rng, 120)
    Z = spanning_items(items, kernel)
    assert len(Z) == np.linalg.matrix_rank(kernel(items), tol=1e-12 * kernel.diag(items).max())
    assert np.max(unexplained_share(kernel, items, Z)) < 1e-9
    assert spanning_items(items, kernel, most=1) is None
    assert spanning_items(items, kernel + RBF(1.0)) is None


def test_rare_groups_and_rare_values_are_spanned():
    items = np.zeros((3000, 3))
    items[:, 0], items[7, 0], items[11, 1], items[13, 2] = np.arange(3000) % 3, 99, 5.0, -0.1
    assert len(spanning_items(items, KERNEL)) == 4 + 2


@pytest.mark.parametrize("mean", [0.0, 30.0])
def test_as_many_points_as_features_are_as_good_as_all_items(monkeypatch, mean):
    X, y = contest(150, 6, mean=mean)
    few, all_items = (fitted(SVI(n, tol=1e-9), X, y) for n in (50, 300))
    assert len(few.posterior_.anchors) == len(all_items.posterior_.anchors) == 6 + 2
    monkeypatch.setattr("skpref.gp._inducing.spanning_items", lambda *_: None)
    dense = fitted(SVI(300, tol=1e-9), X, y)
    assert len(dense.posterior_.anchors) == 300
    asked = np.concatenate([X[:8, 0], [[99.0, *X[0, 0, 1:]]]])  # one id that nobody has seen
    least = 1e-8 if mean == 0.0 else 1e-5  # points for all items need a little jitter
    for name in ("mean", "cov"):
        own, truth = (getattr(each.posterior_, name)(asked) for each in (few, dense))
        assert_allclose(own, truth, atol=least * np.max(np.abs(truth)))
    (value, slope), (truth, slopes) = (
        each.log_marginal_likelihood(few.kernel_.theta + 0.3, eval_gradient=True)
        for each in (few, dense)
    )
    assert_allclose(value, truth, atol=1e-6)
    assert_allclose(slope, slopes, atol=1e-4)


@pytest.mark.parametrize("option", [{"batch_size": 60}, {"n_jobs": 1}])
def test_batches_and_shards_end_at_the_same_place(option):
    X, y = contest(300, 8)
    own, whole = (fitted(SVI(50, tol=1e-7, **given), X, y) for given in (option, {}))
    asked = X[:20, 0]
    assert_allclose(own.posterior_.mean(asked), whole.posterior_.mean(asked), atol=1e-5)
    assert_allclose(own.posterior_.var(asked), whole.posterior_.var(asked), rtol=1e-4)


@pytest.mark.parametrize("mean", [0.0, 30.0])
def test_a_stream_takes_every_new_id_as_a_feature(mean):
    (X, y), (X_later, y_later) = contest(300, 6, mean=mean), contest(300, 9, seed=1, mean=mean)
    X, y = np.concatenate([X, X_later]), np.concatenate([y, y_later])
    options = {"optimizer": None, "noise_variance": 0.3, "random_state": 0}
    stream = PairwisePreferenceRegressor(KERNEL, inference=SVI(50), **options)
    stream.partial_fit(X[:300], y[:300])
    for rows in np.array_split(np.arange(300, 590), 3):  # fewer than would bring a fit of all
        stream.partial_fit(X[rows], y[rows])
    assert len(stream.posterior_.anchors) == 9 + 2
    whole = fitted(SVI(50), X[:590], y[:590])
    asked = X_later[:30, 0]
    deviation = np.sqrt(whole.posterior_.var(asked))
    off = np.abs(stream.posterior_.mean(asked) - whole.posterior_.mean(asked))
    assert np.all(off < 0.05 * deviation)
    assert_allclose(np.sqrt(stream.posterior_.var(asked)), deviation, rtol=0.05)


SMOOTH = OnColumns(RBF(0.2), [1])
MIXED = SMOOTH + 0.5 * OnColumns(Identity(), [0]) + 0.3 * OnColumns(DotProduct(0.5), [2])


@pytest.mark.parametrize(
    "kernel",
    [MIXED, 0.7 * (MIXED + 0.1 * OnColumns(Identity(), [0]) * OnColumns(DotProduct(), [2]))],
)
def test_what_points_leave_open_is_of_the_smooth_part_alone(kernel):
    rng = np.random.default_rng(0)
    items = np.column_stack([rng.integers(15, size=400), rng.normal(size=(400, 2))])
    Z = SVI(40).prior_rule.prepare(rows_of(items), kernel, 0).points
    assert len(Z) <= 40 + (15 + 1 if kernel is MIXED else 30)
    asked = items[:60]
    left = unexplained_share(kernel, asked, Z) * kernel.diag(asked)
    scale = 1.0 if kernel is MIXED else 0.7
    smooth = scale * unexplained_share(SMOOTH, asked, Z)
    assert np.max(smooth) > 0.5 * scale  # there is something to compare
    # Of the item that is varied the two parts are told apart by the other points alone.
    assert np.all(np.abs(left - smooth) < 0.06 * scale)


def test_ids_and_controls_differ_by_what_is_known_whatever_the_rest():
    rng = np.random.default_rng(0)
    items = np.column_stack([rng.integers(15, size=400), rng.normal(size=(400, 2))])
    rough = MIXED + OnColumns(RBF(0.01), [1])  # most of it is left open
    Z = SVI(40).prior_rule.prepare(rows_of(items), rough, 0).points
    asked = Z[rng.permutation(len(Z))[:30]]
    asked[15:, 1] = asked[:15, 1]  # pairs that differ in the id and the control alone
    left = unexplained(rough, asked, Z)
    gap = np.diagonal(left)[:15] + np.diagonal(left)[15:] - 2.0 * np.diagonal(left[:15, 15:])
    assert np.all(np.abs(gap) < 1e-5)


def rows_of(items):
    """Duels that show these items."""
    return Comparisons.from_duels(
        items, *np.arange(len(items)).reshape(2, -1), np.ones(len(items) // 2)
    )


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1.0) + 0.5 * OnColumns(Identity(), [0]),  # which sees all columns
        SMOOTH * OnColumns(Identity(), [0]),
        SMOOTH + ConstantKernel(2.0),
        SMOOTH + OnColumns(DotProduct(), [1]),
        SMOOTH + OnColumns(Identity(), [2]),  # one for every item
    ],
)
def test_other_kernels_have_points_as_before(monkeypatch, kernel):
    rng = np.random.default_rng(0)
    items = np.column_stack([rng.integers(15, size=200), rng.normal(size=(200, 2))])
    rule = SVI(40).prior_rule
    own = rule.prepare(rows_of(items), kernel, 0).points
    monkeypatch.setattr("skpref.gp._inducing._cross_points", lambda *_: None)
    assert_allclose(own, rule.prepare(rows_of(items), kernel, 0).points)


def test_ids_beside_a_smooth_part_are_predicted_as_by_all_items():
    rng = np.random.default_rng(0)
    X, y = contest(260, 20)
    X[:, :, 1] = rng.random((260, 2))
    opts = {"optimizer": None, "noise_variance": 0.3, "random_state": 0}
    few, exact = (
        PairwisePreferenceRegressor(MIXED, inference=engine, **opts).fit(X[:200], y[:200])
        for engine in (SVI(30), "ep")
    )
    assert len(few.posterior_.anchors) <= 30 + 21
    off = few.posterior_.mean(X[200:, 0]) - exact.posterior_.mean(X[200:, 0])
    assert np.sqrt(np.mean(off**2)) < 0.02


def test_points_of_the_users_own_stay():
    X, y = contest(100, 5)
    Z = X[:4, 0]
    assert_allclose(fitted(SVI(inducing_points=Z), X, y).posterior_.anchors, Z)
    assert InducingPoints(3, Z).n == 3


def far_duels(offset, n=300, n_items=60):
    """Duels of items that lie far from zero: X, y."""
    rng = np.random.default_rng(3)
    items = rng.normal(size=(n_items, 2))
    utility = items.sum(axis=1) + 0.5 * items[:, 0] ** 2
    pairs = np.array([rng.permutation(n_items)[:2] for _ in range(n)])
    won = utility[pairs] @ [1.0, -1.0] + rng.normal(size=n) > 0.0
    return items[pairs] + offset, won.astype(int)


@pytest.mark.parametrize("offset", [1e2, 1e3, 1e5])
@pytest.mark.parametrize("exponent", [2, 3])
@pytest.mark.parametrize("smooth", [False, True])
def test_polynomials_far_from_zero_are_those_of_the_exact_prior(offset, exponent, smooth):
    """Margins are of size 1, and the level that all items share is of up to ``offset`` ** 2."""
    X, y = far_duels(offset)
    kernel = ConstantKernel(0.1 * offset ** (2 - 2 * exponent)) * DotProduct(1.0) ** exponent
    if smooth:
        kernel = kernel + RBF(1.0)
    fixed = {"optimizer": None, "noise_variance": 1.0}
    exact, points = (
        PairwisePreferenceRegressor(kernel, inference=engine, **fixed).fit(X, y).predict_proba(X)
        for engine in ("ep", SVI())
    )
    assert_allclose(points, exact, atol=5e-4)


@pytest.mark.parametrize("exponent", [2, 3])
def test_points_span_what_a_level_would_hide(exponent):
    """Of items 10⁶ spans from zero two span all that is not rounding of the level."""
    X, y = far_duels(1e6)
    kernel = ConstantKernel(0.1 * 1e6 ** (2 - 2 * exponent)) * DotProduct(1.0) ** exponent
    fixed = {"optimizer": None, "noise_variance": 1.0}
    exact, points = (
        PairwisePreferenceRegressor(kernel, inference=engine, **fixed).fit(X, y).predict_proba(X)
        for engine in ("ep", "svi")
    )
    assert_allclose(points, exact, atol=2e-3)


def test_polynomials_whose_digits_are_lost_are_refused():
    X, y = far_duels(1e7)
    model = PairwisePreferenceRegressor(
        ConstantKernel(1e-15) * DotProduct(1.0) ** 2,
        inference="svi",
        optimizer=None,
        noise_variance=1.0,
    )
    with pytest.raises(ValueError, match="centre and scale the features"):
        model.fit(X, y)
