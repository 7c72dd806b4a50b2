"""Boards of ids at held controls, slopes, groups and undecided pairs, against dense formulas.

The engine `ConstantLiar` takes every noisy margin as one, so that the posterior is that of a
Gaussian regression, which numpy solves here from the kernel's definition.
"""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kendalltau
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.duels import DuelFrame, from_votes
from skpref.fitting import Inspected, average
from skpref.inference import ConstantLiar
from skpref.inspection import (
    control_effects,
    leaderboard,
    leaderboards,
    undecided_pairs,
    win_rates,
)
from skpref.kernels import Identity, OnColumns, leaderboard_kernel
from skpref.preprocessing import Itemwise


def margins_of(over, first, second, level, unit):
    """Of pairs of rows, by the mixture over hyperparameters."""
    n, rows = len(first), np.concatenate([first, second])
    mixture = over.averages(rows[:, None], np.ones(1), unit)
    return mixture.margins(np.arange(n), np.arange(n, 2 * n), level)


N, NOISE = 90, 0.4
NAMES = np.array(["ann", "bob", "cid", "dan"], dtype=object)
Z90 = 1.6448536269514722  # 95 % quantile of a normal


def linear(column, variance):
    return ConstantKernel(variance, "fixed") * OnColumns(DotProduct(0.0, "fixed"), [column])


def answers(seed=0):
    """Duels (n, 2, 4) of [id, two controls, group], the winner first, and an uneven use of ids."""
    rng = np.random.default_rng(seed)
    i = rng.choice(4, size=N, p=[0.4, 0.3, 0.2, 0.1])
    j = (i + rng.integers(1, 4, size=N)) % 4
    controls = rng.normal([3.0, 50.0], [1.0, 20.0], size=(N, 2, 2))
    controls[..., 0] += 0.5 * np.stack([i, j], axis=1)  # later ids have more of the first
    group = np.repeat(rng.choice([5.0, 7.0, 9.0], size=N, p=[0.6, 0.3, 0.1])[:, None], 2, axis=1)
    return np.dstack([np.stack([i, j], axis=1), controls, group])


X = answers()
FLAT = X.reshape(-1, 4)
ADDITIVE = OnColumns(Identity(), [0]) + linear(1, 0.3) + linear(2, 0.001)
GROUPED = ADDITIVE + ConstantKernel(0.5, "fixed") * OnColumns(Identity(), [0, 3])
CROSSED = ADDITIVE + OnColumns(Identity(), [0]) * linear(1, 0.2)


def liar(kernel, X=X, **options):
    model = PairwisePreferenceRegressor(
        kernel, noise_variance=NOISE, inference=ConstantLiar(1.0), optimizer=None, **options
    )
    return model.fit(X, np.ones(len(X)))


@pytest.fixture(scope="module")
def additive():
    return liar(ADDITIVE, id_column=0)


@pytest.fixture(scope="module")
def grouped():
    return liar(GROUPED, id_column=0)


def covariance(A, B, kernel):
    """k of the rows, from its definition."""
    same = A[:, None, 0] == B[None, :, 0]
    K = same + 0.3 * np.outer(A[:, 1], B[:, 1]) + 0.001 * np.outer(A[:, 2], B[:, 2])
    if kernel is GROUPED:
        K = K + 0.5 * same * (A[:, None, 3] == B[None, :, 3])
    if kernel is CROSSED:
        K = K + 0.2 * same * np.outer(A[:, 1], B[:, 1])
    return K


def regression(rows, kernel):
    """Mean and covariance of the utilities of rows, given that all margins are 1 plus noise."""
    first, second = X[:, 0], X[:, 1]
    seen = (
        covariance(first, first, kernel)
        + covariance(second, second, kernel)
        - covariance(first, second, kernel)
        - covariance(second, first, kernel)
    )
    cross = covariance(rows, first, kernel) - covariance(rows, second, kernel)
    gain = np.linalg.solve(seen + 2.0 * NOISE * np.eye(N), cross.T).T
    return gain @ np.ones(N), covariance(rows, rows, kernel) - gain @ cross.T


def held_rows(first, second, group=0.0):
    return np.array([[i, first, second, group] for i in range(4)])


def check_board(board, mean, cov):
    """A board against the moments of the ids 0, 1, 2, 3."""
    n, sigma = len(mean), np.sqrt(NOISE)
    centred = np.eye(n) - 1.0 / n
    above = centred @ mean / sigma
    deviation = np.sqrt(np.diagonal(centred @ cov @ centred)) / sigma
    order = np.argsort(-above)
    assert board.names.tolist() == order.tolist()
    np.testing.assert_allclose(board.utility, above[order], atol=1e-8)
    np.testing.assert_allclose(board.upper, (above + Z90 * deviation)[order], atol=1e-8)
    np.testing.assert_allclose(board.lower, (above - Z90 * deviation)[order], atol=1e-8)
    a, b = order[:2]
    margin = (mean[a] - mean[b]) / sigma
    spread = np.sqrt(cov[a, a] + cov[b, b] - 2.0 * cov[a, b]) / sigma
    assert board.lead.names.tolist() == [a, b]
    assert board.lead.margin == pytest.approx(margin, abs=1e-8)
    assert board.lead.upper == pytest.approx(margin + Z90 * spread, abs=1e-8)
    assert board.lead.lower == pytest.approx(margin - Z90 * spread, abs=1e-8)
    assert board.lead.probability == pytest.approx(ndtr(margin / spread), abs=1e-8)


# -- controls held ----------------------------------------------------------------------------


def test_each_id_has_one_row_at_the_mean_of_the_controls(additive):
    board = leaderboard(additive)
    at = FLAT[:, 1].mean(), FLAT[:, 2].mean()
    check_board(board, *regression(held_rows(*at), ADDITIVE))
    assert list(board.held) == [1, 2, 3]
    assert [board.held[1], board.held[2]] == pytest.approx(at)
    assert sorted(board.position.tolist()) == [0, 1, 2, 3]


def test_where_controls_are_held_changes_nothing_that_is_additive(additive):
    board, far = leaderboard(additive), leaderboard(additive, at={1: 40.0, 2: -7.0})
    for name in ("utility", "lower", "upper"):
        np.testing.assert_allclose(far[name], board[name], atol=1e-7)
    assert far.held[1] == 40.0


def test_a_slope_of_each_id_makes_a_board_for_each_value():
    model = liar(CROSSED, id_column=0)
    for value in (0.0, 6.0):
        board = leaderboard(model, at={1: value})
        check_board(board, *regression(held_rows(value, FLAT[:, 2].mean()), CROSSED))
        again = leaderboard(model, at=[value, 11.0, 5.0])
        np.testing.assert_allclose(again.utility, board.utility, atol=1e-8)
    names = [leaderboard(model, at={1: value}).names.tolist() for value in (-9.0, 15.0)]
    assert names[0] != names[1]


def test_weights_count_as_often_as_they_say():
    weight = np.arange(N) % 3 + 1.0
    model = PairwisePreferenceRegressor(ADDITIVE, id_column=0, optimizer=None)
    board = leaderboard(model.fit(X, np.ones(N), sample_weight=weight))
    assert board.held[1] == pytest.approx(np.average(FLAT[:, 1], weights=np.repeat(weight, 2)))


def test_what_every_id_has_one_value_of_is_its_own():
    own = X.copy()
    own[..., 1] = 10.0 * own[..., 0]
    model = PairwisePreferenceRegressor(ADDITIVE, id_column=0, optimizer=None).fit(own, np.ones(N))
    board = leaderboard(model)
    assert list(board.held) == [2, 3]
    rows = held_rows(0.0, own[..., 2].mean())
    rows[:, 1] = 10.0 * rows[:, 0]
    mean = model.predict(rows)
    np.testing.assert_allclose(
        board.utility * board.unit_length, np.sort(mean - mean.mean())[::-1], atol=1e-9
    )
    equal = leaderboard(model, at={1: 3.0})
    rows[:, 1] = 3.0
    mean = model.predict(rows)
    np.testing.assert_allclose(
        equal.utility * equal.unit_length, np.sort(mean - mean.mean())[::-1], atol=1e-9
    )


def test_items_that_are_passed_are_ranked_as_they_are_unless_held(additive):
    rows = np.array([[0.0, 1.0, 2.0, 5.0], [0.0, 9.0, 2.0, 5.0], [3.0, 4.0, 2.0, 5.0]])
    board = leaderboard(additive, rows)
    assert board.names.tolist() == [[0, 0, 3][p] for p in board.position]
    assert board.held == {}
    held = leaderboard(additive, rows, at={})
    assert sorted(held.names.tolist()) == [0, 3]
    mean = additive.predict(held_rows(FLAT[:, 1].mean(), 0.0)[[0, 3]])
    assert held.lead.margin * held.unit_length == pytest.approx(np.ptp(mean))


def test_a_board_of_draws_is_that_of_its_mean_components():
    """A mixture: the lead and the slope are averages over the components."""
    model = PairwisePreferenceRegressor(
        ADDITIVE, id_column=0, inference="gibbs", optimizer=None, random_state=0
    ).fit(X[:20], np.ones(20))
    board, effects = leaderboard(model), control_effects(model)
    a, b = (np.array([[name, board.held[1], board.held[2], 5.0]]) for name in board.lead.names)
    sure = model.posterior_.win_probability(a, b, noise=False)[0]
    assert board.lead.probability == pytest.approx(sure, abs=1e-9)
    assert board.lead.margin * board.unit_length == pytest.approx(
        model.posterior_.margin(a, b)[0][0]
    )
    anchors, weights = model.posterior_.anchors, model.posterior_.weights
    mean = 0.3 * anchors[:, 1] @ weights.mean(axis=1)
    assert effects.slope[0] * board.unit_length == pytest.approx(mean)


# -- slopes -----------------------------------------------------------------------------------


def test_slopes_are_those_of_bayesian_regression(additive):
    """β has prior variance v and the margins see it through differences of the column."""
    effects = control_effects(additive, level=0.9)
    assert effects.names.tolist() == [1, 2]
    assert effects.linear.tolist() == [True, True]
    first, second = X[:, 0], X[:, 1]
    seen = sum(s * covariance(a, b, ADDITIVE) for a, b, s in _four(first, second))
    for k, (column, variance) in enumerate([(1, 0.3), (2, 0.001)]):
        cross = variance * (first[:, column] - second[:, column])
        gain = np.linalg.solve(seen + 2.0 * NOISE * np.eye(N), cross)
        mean, deviation = gain.sum(), np.sqrt(variance - gain @ cross)
        sigma = np.sqrt(NOISE)
        assert effects.slope[k] == pytest.approx(mean / sigma, rel=1e-7)
        assert effects.upper[k] == pytest.approx((mean + Z90 * deviation) / sigma, rel=1e-7)
        assert effects.lower[k] == pytest.approx((mean - Z90 * deviation) / sigma, rel=1e-7)
        assert effects.probability_positive[k] == pytest.approx(ndtr(mean / deviation), abs=1e-8)
        assert effects.spread[k] == pytest.approx(FLAT[:, column].std())


def _four(first, second):
    return [(first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1)]


def test_slopes_that_made_the_answers_come_back():
    rng = np.random.default_rng(3)
    n, truth = 240, np.array([0.5, 0.0, -0.3]) / [1.0, 1.0, 30.0]
    ids = rng.permuted(np.tile(np.arange(5.0), (n, 1)), axis=1)[:, :2]
    controls = rng.normal(size=(n, 2, 3)) * [1.0, 1.0, 30.0]
    utility = 0.4 * ids + controls @ truth + rng.normal(size=(n, 2))
    duels = np.dstack([ids, controls])
    model = PairwisePreferenceRegressor(leaderboard_kernel(duels, id_column=0), id_column=0)
    effects = control_effects(model.fit(duels, utility[:, 0] > utility[:, 1]), level=0.98)
    assert np.all((effects.lower < truth) & (truth < effects.upper))
    assert np.all(np.abs(effects.slope - truth) * [1.0, 1.0, 30.0] < 0.2)
    assert effects.lower[0] > 0.0 > effects.upper[2]
    elo = control_effects(model, unit="elo")
    assert elo.slope[0] / effects.slope[0] == pytest.approx(800.0 / np.sqrt(np.pi) / np.log(10.0))


def test_slopes_that_differ_between_ids_are_averaged():
    model = liar(CROSSED, id_column=0)
    effects = control_effects(model)
    assert effects.linear.tolist() == [False, True]
    mean, cov = regression(
        np.concatenate([held_rows(1.0, 0.0), held_rows(0.0, 0.0)]), CROSSED
    )  # linear in each id: any step tells the slope
    signs = np.repeat([0.25, -0.25], 4)
    sigma = np.sqrt(NOISE)
    assert effects.slope[0] == pytest.approx(signs @ mean / sigma, abs=1e-8)
    deviation = np.sqrt(signs @ cov @ signs)
    assert effects.upper[0] - effects.slope[0] == pytest.approx(Z90 * deviation / sigma, abs=1e-7)


def test_a_curve_is_told_by_its_change_over_a_deviation():
    kernel = OnColumns(Identity(), [0]) + OnColumns(RBF(2.0), [1])
    model = liar(kernel, id_column=0)
    effects = control_effects(model)
    assert effects.names.tolist() == [1] and not effects.linear[0]
    centre, half = FLAT[:, 1].mean(), 0.5 * FLAT[:, 1].std()
    up, down = ([[0.0, centre + h, 0.0, 0.0]] for h in (half, -half))
    mean, variance = model.posterior_.margin(up, down)
    per = 2.0 * half * np.sqrt(NOISE)
    assert effects.slope[0] == pytest.approx(mean[0] / per)
    assert effects.upper[0] == pytest.approx((mean[0] + Z90 * np.sqrt(variance[0])) / per)


def test_the_unit_of_a_column_is_the_users():
    """Ten times the numbers of a column, a hundredth of its prior: a tenth of the slope."""
    wide = X.copy()
    wide[..., 1] *= 10.0
    kernel = OnColumns(Identity(), [0]) + linear(1, 0.003) + linear(2, 0.001)
    effects, others = (
        control_effects(liar(ADDITIVE, id_column=0)),
        control_effects(liar(kernel, wide, id_column=0)),
    )
    np.testing.assert_allclose(others.slope * [10.0, 1.0], effects.slope, rtol=1e-7)
    np.testing.assert_allclose(others.tau, effects.tau)


def test_order_with_controls_held_and_let_go(additive):
    effects = control_effects(additive)
    ids = np.arange(4)
    own = np.array([FLAT[FLAT[:, 0] == i][:, 1:3].mean(axis=0) for i in ids])
    slope = effects.slope * np.sqrt(NOISE)
    held = additive.predict(held_rows(0.0, 0.0))
    for k in range(2):
        free = held + own[:, k] * slope[k]
        assert effects.tau[k] == pytest.approx(kendalltau(held, free).statistic)
        places = [np.argsort(np.argsort(-each)) for each in (held, free)]
        assert effects.moved[k] == np.abs(places[0] - places[1]).max()
    assert effects.tau_together == pytest.approx(kendalltau(held, held + own @ slope).statistic)


def test_a_column_of_the_ids_own_is_not_let_go():
    """The figures are those of the board that `leaderboard` gives."""
    own = X.copy()
    own[..., 1] = 10.0 - own[..., 0] ** 2
    model = liar(ADDITIVE, own, id_column=0)
    board, effects = leaderboard(model), control_effects(model)
    assert effects.names.tolist() == [1, 2] and effects.held == board.held
    assert 1 not in effects.held and np.isnan([effects.tau[0], effects.moved[0]]).all()
    rows = held_rows(0.0, 0.0)
    rows[:, 1] = 10.0 - rows[:, 0] ** 2
    mean = model.predict(rows)
    assert board.names.tolist() == np.argsort(-mean).tolist()
    use = np.array([own[own[..., 0] == i][:, 2].mean() for i in range(4)])
    free = mean + effects.slope[1] * np.sqrt(NOISE) * use
    assert effects.tau[1] == effects.tau_together == pytest.approx(kendalltau(mean, free).statistic)
    assert effects.moved[1] == effects.moved_together
    far, near = (
        model.posterior_.margin([[0.0, at, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0]])[0][0]
        for at in (1.0, 0.0)
    )
    assert effects.slope[0] == pytest.approx((far - near) / np.sqrt(NOISE))
    # Held by at=, it can be let go.
    held = control_effects(model, at={1: 3.0})
    assert held.held == leaderboard(model, at={1: 3.0}).held and held.held[1] == 3.0
    rows[:, 1] = 3.0
    equal = model.predict(rows)
    assert held.tau[0] == pytest.approx(kendalltau(equal, mean).statistic)
    np.testing.assert_allclose(held.slope, effects.slope)


def test_columns_of_the_ids_own_alone():
    own = X.copy()
    own[..., 1], own[..., 2] = own[..., 0], own[..., 0] ** 2
    effects = control_effects(liar(ADDITIVE, own, id_column=0))
    assert not effects.held.keys() & {1, 2} and np.isfinite(effects.slope).all()
    assert np.isnan([effects.tau_together, effects.moved_together, *effects.tau]).all()


def test_a_control_that_makes_the_order():
    """All ids are equal but for the lengths of their answers."""
    rng = np.random.default_rng(5)
    ids = rng.permuted(np.tile(np.arange(5.0), (400, 1)), axis=1)[:, :2]
    length = 0.7 * ids + rng.normal(size=(400, 2))
    duels = np.dstack([ids, length])
    y = 0.8 * (length[:, 0] - length[:, 1]) + 2**0.5 * rng.normal(size=400) > 0
    kernel = OnColumns(Identity(), [0]) + linear(1, 1.0)
    model = PairwisePreferenceRegressor(
        kernel, id_column=0, noise_variance=1.0, inference="laplace", optimizer=None
    ).fit(duels, y)
    effects = control_effects(model)
    assert effects.moved[0] >= 2 and effects.tau[0] < 0.8
    as_shown = leaderboard(model, [[i, 0.7 * i] for i in range(5)])
    assert as_shown.names.tolist() == [4, 3, 2, 1, 0]


# -- groups -----------------------------------------------------------------------------------


def test_the_board_of_all_is_the_average_over_groups(grouped):
    at = FLAT[:, 1].mean(), FLAT[:, 2].mean()
    groups, counts = np.unique(X[:, 0, 3], return_counts=True)
    rows = np.concatenate([held_rows(*at, group) for group in groups])
    mean, cov = regression(rows, GROUPED)
    average = np.kron(counts / N, np.eye(4))
    board = leaderboard(grouped, n_draws=20_000)
    check_board(board, average @ mean, average @ cov @ average.T)
    assert board.held[3] is None
    # Ranks and chances are those of draws of the averages.
    draws = np.random.default_rng(0).multivariate_normal(
        average @ mean, average @ cov @ average.T, 20_000
    )
    best = np.bincount(draws.argmax(axis=1), minlength=4)[board.names.astype(int)] / 20_000
    np.testing.assert_allclose(board.probability_best, best, atol=0.02)


def test_the_board_of_a_group_is_the_dense_regression(grouped):
    at = FLAT[:, 1].mean(), FLAT[:, 2].mean()
    boards = leaderboards(grouped, by=3)
    assert list(boards) == [5, 7, 9]  # that of most answers first
    for group, board in boards.items():
        check_board(board, *regression(held_rows(*at, group), GROUPED))
        assert board.held[3] == group


def test_a_number_that_hardly_repeats_makes_no_boards():
    rng = np.random.default_rng(0)
    ids = np.array([[0.0, 1.0], [1.0, 2.0], [0.0, 2.0]])[rng.integers(3, size=60)]
    hour = np.repeat(rng.random(60), 2).reshape(60, 2)
    duels = np.dstack([ids, hour])
    kernel = OnColumns(Identity(), [0]) + OnColumns(Identity(), [0]) * OnColumns(RBF(), [1])
    model = PairwisePreferenceRegressor(kernel, id_column=0, optimizer=None).fit(duels, np.ones(60))
    with pytest.raises(ValueError, match=r"1 has 60 values in 60 votes, .* into groups"):
        leaderboards(model, by=1)
    duels[:, :, 1] = np.floor(4.0 * hour)
    assert len(leaderboards(model.fit(duels, np.ones(60)), by=1)) == 4


def test_a_group_of_few_answers_is_drawn_to_the_whole():
    """The same margins in both groups of half the answers, and one odd answer in a third."""
    rng = np.random.default_rng(2)
    ids = np.array([[0.0, 1.0], [1.0, 2.0], [0.0, 2.0]])[rng.integers(3, size=60)]
    group = np.repeat(np.arange(60) % 2, 2).reshape(60, 2).astype(float)
    odd = np.array([[[2.0, 3.0], [0.0, 3.0]]])
    duels = np.concatenate([np.dstack([ids, group]), odd])
    kernel = leaderboard_kernel(duels, id_column=0, by=1)
    model = PairwisePreferenceRegressor(kernel, id_column=0, noise_variance=1.0, optimizer=None)
    boards = leaderboards(model.fit(duels, np.ones(61)), by=1)
    assert boards[3].names.tolist() == boards[0].names.tolist() == [0, 1, 2]
    alone = PairwisePreferenceRegressor(OnColumns(Identity(), [0]), id_column=0, optimizer=None)
    assert leaderboard(alone.fit(odd, [1])).names.tolist() == [2, 0]
    width = {group: np.mean(board.upper - board.lower) for group, board in boards.items()}
    assert width[3] > width[0]


def test_win_rates_are_averaged_over_groups(grouped):
    rates = win_rates(grouped)
    total = np.zeros((4, 4))
    for group, share in zip(*np.unique(X[:, 0, 3], return_counts=True), strict=True):
        rows = held_rows(FLAT[:, 1].mean(), FLAT[:, 2].mean(), group)[rates.names.astype(int)]
        i, j = np.divmod(np.arange(16), 4)
        chance = grouped.posterior_.win_probability(rows[i], rows[j])
        total += share / N * chance.reshape(4, 4)
    np.testing.assert_allclose(rates.win, total, atol=1e-9)
    one = win_rates(grouped, at={3: 7.0})
    assert np.abs(one.win - rates.win).max() > 0.01


# -- undecided pairs --------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.6, 0.98])
def test_undecided_pairs_are_those_whose_interval_holds_zero(grouped, level):
    pairs = undecided_pairs(grouped, level=level)
    board = leaderboard(grouped)
    average = np.kron(np.unique(X[:, 0, 3], return_counts=True)[1] / N, np.eye(4))
    rows = np.concatenate(
        [held_rows(FLAT[:, 1].mean(), FLAT[:, 2].mean(), group) for group in (5.0, 7.0, 9.0)]
    )
    mean, cov = regression(rows, GROUPED)
    mean, cov = average @ mean, average @ cov @ average.T
    expected = []
    for a in range(4):
        for b in range(a + 1, 4):
            i, j = board.names[a], board.names[b]
            spread = np.sqrt(cov[i, i] + cov[j, j] - 2.0 * cov[i, j])
            sure = ndtr((mean[i] - mean[j]) / spread)
            if sure < 0.5 + 0.5 * level:
                expected.append((i, j, sure))
    found = list(zip(pairs.first, pairs.second, strict=True))
    assert found == [(i, j) for i, j, _ in expected]
    np.testing.assert_allclose(pairs.probability, [sure for *_, sure in expected], atol=1e-8)
    assert np.all((pairs.lower < 0.0) & (pairs.upper > 0.0) & (pairs.margin >= 0.0))
    assert pairs.n_decided == 6 - len(found)


def test_undecided_pairs_of_one_and_of_two():
    model = PairwisePreferenceRegressor(items=ItemTable.from_names(["a", "b"]), optimizer=None)
    model.fit(np.array([[0, 1]] * 4), [1, 1, 1, 0])
    assert len(undecided_pairs(model, ["a"]).first) == 0
    assert leaderboard(model, ["a"]).lead is None
    board, pairs = leaderboard(model), undecided_pairs(model, level=0.99)
    assert [pairs.first[0], pairs.second[0]] == board.lead.names.tolist() == ["a", "b"]
    assert pairs.probability[0] == pytest.approx(board.lead.probability)


# -- X of all forms ---------------------------------------------------------------------------


def frames(pd, ids=NAMES):
    rows = pd.DataFrame(FLAT, columns=["id", "length", "words", "topic"])
    rows["id"] = ids[FLAT[:, 0].astype(int)]
    return DuelFrame(rows, np.arange(2 * N).reshape(N, 2), id_column="id")


@pytest.mark.parametrize("ids", [NAMES, np.array([30, 10, 40, 20])], ids=["texts", "numbers"])
def test_frames_give_ids_and_names_of_columns(ids, grouped):
    pd = pytest.importorskip("pandas")
    duels = frames(pd, ids)
    model = liar(GROUPED, duels)
    board, plain = leaderboard(model), leaderboard(grouped)
    assert board.names.tolist() == ids[plain.names.astype(int)].tolist()
    np.testing.assert_allclose(board.utility, plain.utility, atol=1e-8)
    assert list(board.held) == ["length", "words", "topic"]
    by_name = leaderboard(model, at={"length": 2.0, "topic": 7.0})
    assert by_name.utility.tolist() == leaderboard(model, at={1: 2.0, 3: 7.0}).utility.tolist()
    assert control_effects(model).frame["names"].tolist() == ["length", "words"]
    assert leaderboards(model, by="topic")[7].names.tolist() == by_name.names.tolist()
    kernel = leaderboard_kernel(duels, by="topic")
    assert kernel == leaderboard_kernel(X, id_column=0, by=3)


def test_pipelines_give_ids_though_only_the_frame_knows_them(grouped):
    pd = pytest.importorskip("pandas")
    columns = make_column_transformer(
        ("passthrough", ["id"]), (StandardScaler(), ["length", "words"]), ("passthrough", ["topic"])
    )
    duels = frames(pd)
    for options in ({}, {"id_column": 0}):
        kernel = leaderboard_kernel(Itemwise(columns).fit_transform(duels), id_column=0)
        model = make_pipeline(
            Itemwise(columns), PairwisePreferenceRegressor(kernel, optimizer=None, **options)
        ).fit(duels, np.ones(N))
        board = leaderboard(model)
        assert sorted(board.names.tolist()) == NAMES.tolist()
        assert board.held["standardscaler__length"] == pytest.approx(0.0, abs=1e-9)
        assert control_effects(model).names[0] == "standardscaler__length"


def test_many_users_have_a_board_each_with_controls_held():
    people = np.array(["u", "v"])[np.arange(N) % 2]
    model = CollaborativePreferenceRegressor(GROUPED, id_column=0, optimizer=None)
    model.fit(X, np.arange(N) % 2 == 0, users=people)
    board = leaderboard(model, user="u")
    at = np.array([[name, board.held[1], board.held[2], 0.0] for name in board.names])
    mean = sum(
        share / N * model.predict(np.c_[at[:, :3], np.full(4, group)], users=["u"] * 4)
        for group, share in zip(*np.unique(X[:, 0, 3], return_counts=True), strict=True)
    )
    assert sorted(board.names.tolist()) == [0, 1, 2, 3]
    np.testing.assert_allclose(board.utility * board.unit_length, mean - mean.mean(), atol=1e-8)
    assert control_effects(model, user="u").names.tolist() == [1, 2]


# -- refusals ---------------------------------------------------------------------------------


def test_refusals(additive, grouped):
    plain = PairwisePreferenceRegressor(RBF(1.0), optimizer=None).fit(X, np.ones(N))
    for call in (
        lambda: leaderboard(plain, at={1: 0.0}),
        lambda: control_effects(plain),
        lambda: undecided_pairs(plain, at={}),
        lambda: leaderboards(plain, by=1),
    ):
        with pytest.raises(ValueError, match="the model knows no ids"):
            call()
    with pytest.raises(ValueError, match="There is no column 'length'; the model has columns 0 to"):
        leaderboard(additive, at={"length": 1.0})
    with pytest.raises(ValueError, match="There is no column 4"):
        leaderboard(additive, at={4: 1.0})
    with pytest.raises(ValueError, match="Column 0 holds the ids that are ranked"):
        leaderboard(additive, at={0: 1.0})
    with pytest.raises(ValueError, match=r"column 1 at nan; give a finite number"):
        leaderboard(additive, at={1: np.nan})
    with pytest.raises(ValueError, match=r"column 1 at 'long'; give a finite number"):
        leaderboard(additive, at={1: "long"})
    with pytest.raises(ValueError, match=r"at has shape \(2,\); give a dict"):
        leaderboard(additive, at=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"No answer has 6 in column 3, .*; there are 5, 7, 9"):
        leaderboard(grouped, at={3: 6.0})
    with pytest.raises(ValueError, match="does not see column 3: all groups would have one board"):
        leaderboards(additive, by=3)
    with pytest.raises(ValueError, match="tells the groups apart; leave it out"):
        leaderboards(grouped, by=3, at={3: 5.0})
    with pytest.raises(ValueError, match="There is no control"):
        control_effects(liar(OnColumns(Identity(), [0]), id_column=0))
    with pytest.raises(ValueError, match="level must lie in"):
        undecided_pairs(additive, level=1.0)
    with pytest.raises(ValueError, match="unit must be one of"):
        control_effects(additive, unit="miles")


def test_categories_of_too_many_combinations_are_to_be_held(monkeypatch, grouped):
    monkeypatch.setattr("skpref.inspection._contenders._MOST_ROWS", 11)
    with pytest.raises(ValueError, match=r"averages over 3 combinations .* columns \[3\]"):
        leaderboard(grouped)
    assert len(leaderboard(grouped, at={3: 5.0}).names) == 4


# -- the kernel -------------------------------------------------------------------------------


def test_the_kernel_scales_controls_by_their_differences():
    kernel = leaderboard_kernel(X, id_column=0, by=[3])
    apart = X[:, 0] - X[:, 1]
    for name, column in (("length", 1), ("words", 2)):
        scale = np.sqrt(np.mean(apart[:, column] ** 2))
        rows = np.zeros((2, 4))
        rows[:, 0] = [0.0, 1.0]
        rows[0, column] = rows[1, column] = scale
        assert kernel(rows)[0, 1] == pytest.approx(0.1), name
    same = np.zeros((2, 4))
    assert kernel(same)[0, 1] == pytest.approx(1.1)
    same[1, 3] = 1.0
    assert kernel(same)[0, 1] == pytest.approx(1.0)


def test_columns_that_never_differ_and_refusals_of_the_kernel():
    still = X.copy()
    still[..., 2] = 4.0
    assert np.isfinite(leaderboard_kernel(still, id_column=0).theta).all()
    with pytest.raises(ValueError, match="does not say which column holds the ids"):
        leaderboard_kernel(X)
    with pytest.raises(ValueError, match="There is no column 9; X has columns 0 to 3"):
        leaderboard_kernel(X, id_column=9)
    with pytest.raises(ValueError, match="names the column of ids"):
        leaderboard_kernel(X, id_column=0, by=0)
    pd = pytest.importorskip("pandas")
    texts = frames(pd).items.assign(topic="a")
    duels = DuelFrame(texts, np.arange(2 * N).reshape(N, 2), id_column="id")
    with pytest.raises(ValueError, match="Column 'topic' is to be controlled for, and holds other"):
        leaderboard_kernel(duels)


# -- votes ------------------------------------------------------------------------------------


def votes_of(seed, n=300):
    """Four competitors, those that are better also give longer answers, and longer ones win."""
    rng = np.random.default_rng(seed)
    strength = {"ant": 0.6, "bee": 0.3, "cow": -0.2, "dog": -0.7}
    pairs = [rng.permutation(list(strength))[:2] for _ in range(n)]
    skill = np.array([[strength[name] for name in pair] for pair in pairs])
    length = np.round(300.0 + 150.0 * skill + 80.0 * rng.normal(size=(n, 2)))
    utility = skill + 0.005 * length + rng.normal(size=(n, 2))
    return {
        "model_a": [pair[0] for pair in pairs],
        "model_b": [pair[1] for pair in pairs],
        "winner": np.where(utility[:, 0] > utility[:, 1], "model_a", "model_b"),
        "length_a": length[:, 0],
        "length_b": length[:, 1],
    }


def test_the_search_does_not_end_where_no_control_has_an_effect():
    """From a small noise it did, though the start had the larger evidence."""
    votes = from_votes(votes_of(0), controls="length")
    model = PairwisePreferenceRegressor(**votes.params).fit(votes.X, votes.y)
    effects = control_effects(model, votes, level=0.99)
    assert 0.0 < effects.lower[0] < 0.005 < effects.upper[0]


def test_votes_name_competitors_and_controls_in_their_own_units():
    table = votes_of(0, 60)
    votes = from_votes(table, controls="length")
    params = votes.params | {"optimizer": None}
    model = PairwisePreferenceRegressor(**params).fit(votes.X, votes.y)
    plain, board = leaderboard(model), leaderboard(model, votes)
    assert board.names.tolist() == plain.names.tolist()
    assert set(board.names) == set(votes.item_table.names)
    lengths = np.concatenate([table["length_a"], table["length_b"]])
    assert board.held == {"length": pytest.approx(lengths.mean())}
    slope = control_effects(model).slope / votes.control_scale
    np.testing.assert_allclose(control_effects(model, votes).slope, slope)
    assert undecided_pairs(model, votes).first[0] in table["model_a"]
    assert win_rates(model, votes).names.tolist() == board.names.tolist()
    pair = leaderboard(model, ["cow", "ant"]).names.tolist()
    assert sorted(pair) == ["ant", "cow"]
    # A difference of the table is that of the model in its own units.
    kernel = OnColumns(Identity(), [0]) * OnColumns(RBF(1.0), [1])
    curved = PairwisePreferenceRegressor(kernel, id_column=0, optimizer=None)
    curved.fit(votes.X, votes.y)
    board = leaderboard(curved, votes, at={"length": 410.0})
    own = (410.0 - votes.control_center[0]) / votes.control_scale[0]
    mean = np.sort(curved.predict([[k, own] for k in range(4)]))[::-1]
    np.testing.assert_allclose(board.utility * board.unit_length, mean - mean.mean(), atol=1e-9)


def test_votes_without_controls_and_votes_of_another_model(additive):
    table = votes_of(1, 40)
    votes = from_votes({name: table[name] for name in ("model_a", "model_b", "winner")})
    model = PairwisePreferenceRegressor(**votes.params).fit(votes.X, votes.y)
    assert leaderboard(model, votes).names.tolist() == leaderboard(model).names.tolist()
    controls = [name for name in table if name.startswith("length")]
    more = from_votes({**table, **{f"x_{c}": table[c] for c in controls}}, controls="length")
    wide = more | {
        "controls": list("abcd"),
        "control_center": [0.0] * 4,
        "control_scale": [1.0] * 4,
    }
    with pytest.raises(ValueError, match=r"5 columns; the model has 4\. Fit it to them"):
        leaderboard(additive, wide)


@pytest.mark.parametrize("controls", [None, "length"])
def test_votes_name_their_groups(controls):
    table = votes_of(2, 60)
    table["Language"] = np.array(["de", "en", ""])[[1] * 40 + [0] * 19 + [2]]
    votes = from_votes(table, controls=controls, by="language")
    assert (votes.by, votes.groups) == ("Language", ["en", "de"])
    assert votes.X.shape == (59, 2, 3 if controls else 2)
    assert votes.X[:, 0, -1].tolist() == votes.X[:, 1, -1].tolist() == [0.0] * 40 + [1.0] * 19
    assert votes.dropped == {"without a value in 'Language'": 1}
    params = votes.params | {"optimizer": None}
    model = PairwisePreferenceRegressor(**params).fit(votes.X, votes.y)
    boards = leaderboards(model, "Language", votes)
    assert list(boards) == ["en", "de"]
    for code, (name, board) in enumerate(boards.items()):
        assert board.held["Language"] == name
        between = [
            (board.held[control] - center) / scale
            for control, center, scale in zip(
                votes.controls, votes.control_center, votes.control_scale, strict=True
            )
        ]
        mean = np.sort(model.predict([[k, *between, code] for k in range(4)]))[::-1]
        np.testing.assert_allclose(board.utility * board.unit_length, mean - mean.mean())
        again = leaderboard(model, votes, at={"Language": name})
        assert again.utility.tolist() == board.utility.tolist()
        assert set(again.names) <= {"ant", "bee", "cow", "dog"}
    with pytest.raises(
        ValueError, match=r"No vote has 'fr' in 'Language'; there are \['en', 'de'\]"
    ):
        leaderboard(model, votes, at={"Language": "fr"})


def test_votes_that_follow_others_keep_their_groups():
    table = votes_of(2, 60)
    table["language"] = np.array(["en", "de"])[[0] * 40 + [1] * 20]
    votes = from_votes(table, by="language")
    table["language"] = np.array(["fr", "de", "en"])[[0] * 40 + [1] * 15 + [2] * 5]
    later = from_votes(table, by="language", like=votes)
    assert later.groups == ["en", "de", "fr"]
    assert later.X[:, 0, 1].tolist() == [2.0] * 40 + [1.0] * 15 + [0.0] * 5
    with pytest.raises(ValueError, match="got by=None for votes that follow"):
        from_votes(table, like=votes)


def test_ids_alone_are_those_to_be_ranked(additive):
    board = leaderboard(additive, [3, 1])
    rows = held_rows(FLAT[:, 1].mean(), FLAT[:, 2].mean())[[3, 1]]
    mean = additive.predict(rows)
    assert board.names.tolist() == [[3, 1][k] for k in np.argsort(-mean)]
    assert board.lead.margin * board.unit_length == pytest.approx(np.ptp(mean))
    assert leaderboard(additive, np.array([2.0])).names.tolist() == [2]
    with pytest.raises(ValueError, match="The model knows no id 8; it has 4, such as"):
        leaderboard(additive, [3, 8])


# -- over hyperparameters ---------------------------------------------------------------------


def test_slopes_leads_and_pairs_are_means_over_hyperparameters():
    votes = from_votes(votes_of(3, 60), controls="length")
    model = PairwisePreferenceRegressor(**votes.params).fit(votes.X, votes.y)
    board, alone = (leaderboard(model, votes, average=each) for each in ("auto", False))
    assert board.n_hyperparameters > 1 and alone.n_hyperparameters == 1
    over = Inspected.from_model(model).over_hyperparameters(True)
    # A linear control: the slope is the margin of two rows that differ by one.
    found = margins_of(over, np.array([[0.0, 1.0]]), np.array([[0.0, 0.0]]), 0.9, "noise")
    effects = control_effects(model, votes)
    per = votes.control_scale[0]
    for name, value in zip(("slope", "lower", "upper"), found, strict=True):
        assert effects[name][0] == pytest.approx(value[0] / per, rel=1e-6)
    assert control_effects(model, votes, average=False).slope[0] != effects.slope[0]
    at = (board.held["length"] - votes.control_center[0]) / per
    codes = [votes.item_table.names.tolist().index(name) for name in board.lead.names]
    first, second = (np.array([[code, at]]) for code in codes)
    lead = margins_of(over, first, second, 0.9, "noise")
    assert board.lead.margin == pytest.approx(lead.mean[0], abs=1e-8)
    assert board.lead.upper == pytest.approx(lead.upper[0], abs=1e-8)
    sure = sum(
        weight * subject.posterior.win_probability(first, second, noise=False)[0]
        for weight, subject in zip(over.weights, over.subjects, strict=True)
    )
    assert board.lead.probability == pytest.approx(sure, abs=1e-8)
    pairs = undecided_pairs(model, votes, level=0.9999999)
    assert pairs.probability[0] == pytest.approx(sure, abs=1e-8)
    assert pairs.upper[0] > undecided_pairs(model, votes, level=0.9, average=True).upper[0]


@pytest.mark.slow
def test_a_mean_over_hyperparameters_is_found_once_for_all_tables(monkeypatch):
    topics = {"topic": ["law", "sport"] * 20}
    votes = from_votes(votes_of(3, 40) | topics, by="topic")
    model = PairwisePreferenceRegressor(**votes.params).fit(votes.X, votes.y)
    calls = []

    def counted(*arguments):
        calls.append(1)
        return average(*arguments)

    monkeypatch.setattr("skpref.fitting._inspected.average", counted)
    leaderboards(model, "topic", votes, average=True)
    undecided_pairs(model, votes, average=True)
    assert len(calls) == 1
    other = PairwisePreferenceRegressor(**votes.params).fit(votes.X[:30], votes.y[:30])
    leaderboard(other, votes, average=True)
    assert len(calls) == 2


def test_judges_who_favour_their_own_answers_do_not_move_the_board():
    rng = np.random.default_rng(0)
    names = np.array(["gpt", "opus", "llama", "qwen", "yi"])
    quality = np.array([0.6, 0.2, -0.2, -0.6, 0.0])
    pair = np.array([rng.permutation(5)[:2] for _ in range(1200)])
    judge = rng.choice(["llama", "qwen", "ann"], size=1200)
    own = (names[pair] == judge[:, None]) @ np.array([1.0, -1.0])
    margin = (
        quality[pair] @ np.array([1.0, -1.0]) + 1.5 * own + np.sqrt(2.0) * rng.normal(size=1200)
    )
    table = dict(zip(("model_a", "model_b"), names[pair].T, strict=True))
    table |= {"winner": np.where(margin > 0.0, "model_a", "model_b"), "judge": judge}
    votes = from_votes(table, judge="judge")
    model = PairwisePreferenceRegressor(**votes.params)
    model.fit(votes.X, votes.y, judges=votes.judges)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # own answers of two competitors are no errors in columns
        board = leaderboard(model, votes)

    def root_mean_square_error(ranked):
        truth = quality[[names.tolist().index(name) for name in ranked.names]]
        return np.sqrt(np.mean((ranked.utility - truth) ** 2))

    effect = control_effects(model, votes)
    assert effect.names == ["own answer"] and 0.5 < effect.lower[0] < 1.5 < effect.upper[0]
    ids = votes.X[:, :, 0].astype(int)
    plain = PairwisePreferenceRegressor(items=votes.item_table).fit(
        ids, votes.y, judges=votes.judges
    )
    assert root_mean_square_error(board) < 0.21
    assert root_mean_square_error(leaderboard(plain)) > 0.3
