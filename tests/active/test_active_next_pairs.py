"""Votes that are handed out on a leaderboard, against information found by quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.gaussian_process.kernels import DotProduct

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.active import _next_pairs, next_pairs
from skpref.active._next_pairs import (
    GOALS,
    _probability_of_top,
    _variances,
    _vote_precision,
    _VoteBoard,
    order_rate,
)
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.duels import from_rankings
from skpref.inference import EP
from skpref.kernels import Identity, OnColumns
from skpref.likelihoods import GradedProbit, Probit

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def entropy(p):
    p = np.asarray(p, dtype=float)
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def beliefs(seed, n, scale):
    """Mean and covariance of n utilities."""
    rng = np.random.default_rng(seed)
    root = scale * rng.standard_normal((n, n))
    return scale * rng.standard_normal(n), root @ root.T


def order_information(mean, cov, voted, ordered, noise):
    """Of a probit's vote on one pair and the order of another, from the joint table of the two."""
    (a, b), (i, j) = voted, ordered
    d, e = np.zeros(len(mean)), np.zeros(len(mean))
    d[a], d[b], e[i], e[j] = 1.0, -1.0, 1.0, -1.0
    m, v = d @ mean, d @ cov @ d
    along = d @ cov @ e / v
    rest = np.sqrt(max(e @ cov @ e - along * (d @ cov @ e), 1e-18))
    margin = m + np.sqrt(v) * NODES
    first = norm.cdf((e @ mean + along * (margin - m)) / rest)
    won = norm.cdf(margin / np.sqrt(noise))
    table = [[WEIGHTS @ (x * y) for x in (won, 1 - won)] for y in (first, 1 - first)]
    table = np.array(table)
    return entropy(table.sum(0)) + entropy(table.sum(1)) - entropy(table.ravel())


def board_of(mean, cov, likelihood):
    i, j = np.triu_indices(len(mean), 1)
    precision = _vote_precision(likelihood, mean[i] - mean[j], _variances(cov)[i, j])
    return _VoteBoard(mean, cov, precision, np.ones(len(i)))


def make_board(seed=0, n=12, n_votes=150, **options):
    rng = np.random.default_rng(seed)
    names = [f"m{i:02d}" for i in range(n)]
    utility = rng.standard_normal(n)
    pairs = np.stack([rng.permutation(n)[:2] for _ in range(n_votes)])
    won = utility[pairs[:, 0]] - utility[pairs[:, 1]] + rng.standard_normal(n_votes) > 0
    options = {"noise_variance": 0.5, "optimizer": None, **options}
    model = PairwisePreferenceRegressor(items=ItemTable.from_names(names), **options)
    return model.fit(pairs, won.astype(int) if "tie_threshold" not in options else 2 * won - 1)


MODEL = make_board()


@pytest.mark.parametrize("z", [0.0, 0.4, 1.3, 2.5, -1.3])
def test_rate_is_information_on_a_sign(z):
    share = 1e-4
    left = np.sqrt(1.0 - share)

    def after(step):
        p = norm.cdf((z + np.sqrt(share) * step) / left)
        return entropy([p, 1 - p]) * norm.pdf(step)

    information = entropy([norm.cdf(z), norm.cdf(-z)]) - quad(after, -9, 9, epsabs=1e-13)[0]
    assert_allclose(0.5 * order_rate(np.array(z)), information / share, rtol=2e-3)


def test_rate_far_out():
    assert_allclose(order_rate(np.zeros(1)), 2 / np.pi)
    z = np.array([5.0, 20.0, 30.0])
    # φ²/(ΦΦ) tends to |z| φ(z).
    assert_allclose(order_rate(z) / (z * norm.pdf(z)), 1.0, rtol=0.05)
    assert order_rate(np.array([40.0]))[0] == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_gain_is_information_on_all_orders(seed):
    n, noise = 4, 400.0  # one vote tells little, so that the rate is exact
    mean, cov = beliefs(seed, n, 1.0)
    likelihood = Probit(noise / 2)
    board = board_of(mean, cov, likelihood)
    board.update_weights()
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    brute = [
        sum(order_information(mean, cov, voted, ordered, noise) for ordered in pairs)
        for voted in pairs
    ]
    assert_allclose(board.gains(), brute, rtol=0.05)


@pytest.mark.parametrize(
    "likelihood",
    [
        Probit(0.5),
        Probit(0.5, tie_threshold=0.8),
        Probit(0.2, tie_threshold=0.3, order_effect=0.4),
        GradedProbit(0.5, grade_thresholds=(0.7,)),
    ],
    ids=["plain", "ties", "order", "graded"],
)
def test_precision_leaves_the_expected_variance(likelihood):
    mean, cov = beliefs(3, 3, 1.2)
    v = _variances(cov)[0, 1]
    precision = _vote_precision(likelihood, mean[:1] - mean[1], np.array([v]))[0]
    margin = mean[0] - mean[1] + np.sqrt(v) * np.linspace(-8, 8, 4001)
    prior = norm.pdf(np.linspace(-8, 8, 4001))
    prior /= prior.sum()
    left = []
    for lead in (1, -1):
        proba = likelihood.outcome_proba(margin, np.zeros(len(margin)), lead)
        for outcome in proba.T:
            joint = prior * outcome
            centre = joint @ margin / joint.sum()
            left.append(joint @ (margin - centre) ** 2)
    assert_allclose(v / (1 + precision * v), 0.5 * sum(left), rtol=1e-4)


def test_scores_follow_the_votes():
    mean, cov = beliefs(5, 6, 1.0)
    board = board_of(mean, cov, Probit(0.5))
    board.update_weights()
    precision = board._precision
    pairs = np.stack(np.triu_indices(6, 1), axis=1)
    known, told = np.linalg.inv(cov), []
    differences = np.zeros((15, 6))
    differences[np.arange(15), pairs[:, 0]], differences[np.arange(15), pairs[:, 1]] = 1.0, -1.0
    for pair, votes in ((2, 1), (11, 4), (2, 2)):
        d = differences[pair]
        before = np.linalg.inv(known)
        known = known + votes * precision[pair] * np.outer(d, d)
        lost = before - np.linalg.inv(known)
        by_order = board.weight * np.einsum("pi,ij,pj->p", differences, lost, differences)
        told.append((board.add_votes(pair, votes), (by_order.sum(), by_order[pair])))
    left = np.linalg.inv(known)
    assert_allclose(board.cov, left, atol=1e-10)
    assert_allclose(*zip(*told, strict=True), rtol=1e-8)
    laplacian = differences.T @ np.diag(board.weight) @ differences
    total = np.einsum("pi,ij,pj->p", differences, left @ laplacian @ left, differences)
    variance = np.einsum("pi,ij,pj->p", differences, left, differences)
    assert_allclose(board.gains(), precision * total / (1 + precision * variance), rtol=1e-8)


def test_weights_average_over_where_means_go():
    mean, cov = np.array([0.9, 0.0]), np.diag([1.0, 0.6])
    board = _VoteBoard(mean, cov, np.array([2.0]), np.ones(1))
    board.update_weights()
    board.add_votes(0)
    board.update_weights()
    left = 1 / (1 / 1.6 + 2.0)

    def of(step):
        z = (0.9 + np.sqrt(1.6 - left) * step) / np.sqrt(left)
        return norm.pdf(z) ** 2 / (norm.cdf(z) * norm.cdf(-z)) * norm.pdf(step)

    # Nine nodes.
    assert_allclose(board.weight[0], quad(of, -8, 8)[0] / (2 * left), rtol=0.01)


def test_what_is_at_stake_is_who_may_be_first():
    mean, deviation = np.array([0.4, 0.0, 0.2]), np.array([0.5, 1.0, 0.8])
    proba = []
    for i in range(3):
        others = [j for j in range(3) if j != i]

        def first(x, i=i, others=others):
            below = [norm.cdf((x - mean[j]) / deviation[j]) for j in others]
            return norm.pdf(x, mean[i], deviation[i]) * np.prod(below)

        proba.append(quad(first, -8, 8)[0])
    stake = _probability_of_top(mean, np.diag(deviation**2), 1, np.random.default_rng(0))
    expected = np.add.outer(proba, proba)
    away = ~np.eye(3, dtype=bool)
    assert_allclose(stake[away], expected[away], atol=0.04)
    # Two of three are first: a pair is not at stake only if both are last, which cannot be.
    two = _probability_of_top(mean, np.diag(deviation**2), 2, np.random.default_rng(0))
    assert_allclose(two[away], 1.0)


def test_first_better_is_the_posterior_probability():
    plan = next_pairs(MODEL, n=30)
    a, b = plan.position.T
    rows = MODEL.posterior_.check_items(MODEL.items_)
    expected = MODEL.posterior_.win_probability(rows[a], rows[b], noise=False)
    assert_allclose(plan.first_better, expected, atol=1e-9)
    assert (plan.first_better >= 0.5).all()


@pytest.mark.parametrize("goal", ["ranks", "top", "members"])
@pytest.mark.parametrize("n", [1, 7, 100, 2500])
def test_all_votes_are_handed_out(goal, n):
    plan = next_pairs(MODEL, n=n, goal=goal, k=3)
    assert plan.votes.sum() == n and (plan.votes > 0).all()
    assert (np.diff(plan.votes) <= 0).all()
    assert len(np.unique(np.sort(plan.position, axis=1), axis=0)) == len(plan.votes)
    assert ((plan.own > 0) & (plan.own <= 1 + 1e-9)).all() and (plan.gain > 0).all()
    assert plan.pairs[0].tolist() == [f"m{i:02d}" for i in plan.position[0]]


def test_votes_on_the_first_places_are_on_those_who_may_have_them():
    rows = MODEL.posterior_.check_items(MODEL.items_)
    mean, cov = MODEL.posterior_.mean(rows), MODEL.posterior_.cov(rows)
    stake = _probability_of_top(mean, cov, 2, np.random.default_rng(0))
    plan = next_pairs(MODEL, n=1, goal="top", k=2)
    a, b = plan.position[0]
    assert_allclose((plan.gain_of_vote * stake)[a, b], (plan.gain_of_vote * stake).max())
    # Two that are surely not among the first tell of them only through others.
    many = next_pairs(MODEL, n=300, goal="top", k=2)
    assert stake[tuple(many.position.T)].min() > 0.0


def test_one_vote_goes_to_the_largest_gain():
    plan = next_pairs(MODEL, n=1)
    a, b = plan.position[0]
    assert_allclose(plan.gain_of_vote[a, b], plan.gain_of_vote.max(), rtol=1e-12)
    assert_allclose(plan.gain, plan.gain_of_vote[a, b])
    assert_allclose(plan.gain_of_vote, plan.gain_of_vote.T)


def test_votes_spread_as_they_are_handed_out():
    few, many = next_pairs(MODEL, n=5), next_pairs(MODEL, n=400)
    assert many.votes.max() < 0.1 * 400
    assert len(many.votes) > len(few.votes)
    # Not even between two times at which weights are found anew, every 12 votes here.
    assert np.gcd.reduce(many.votes) == 1
    # By gain alone, without those before, one pair would take all.
    assert many.gain.sum() < 400 * many.gain_of_vote.max()


def test_votes_tell_more_than_uniform_ones():
    n = len(MODEL.items_)
    rows = MODEL.posterior_.check_items(MODEL.items_)
    mean, cov = MODEL.posterior_.mean(rows), MODEL.posterior_.cov(rows)
    precision = board_of(mean, cov, MODEL.likelihood_)
    precision = precision.as_matrix(precision._precision)

    def undecided(pairs, votes):
        """Expected entropy of all orders, by draws of where the means go."""
        known = np.linalg.inv(cov)
        for (a, b), k in zip(pairs, votes, strict=True):
            d = np.zeros(n)
            d[a], d[b] = 1.0, -1.0
            known += k * precision[a, b] * np.outer(d, d)
        left = np.linalg.inv(known)
        values, vectors = np.linalg.eigh(cov - left)
        draws = np.random.default_rng(0).standard_normal((2000, n))
        moved = mean + draws * np.sqrt(np.maximum(values, 0)) @ vectors.T
        i, j = np.triu_indices(n, 1)
        p = norm.cdf((moved[:, i] - moved[:, j]) / np.sqrt(_variances(left)[i, j]))
        p = np.clip(p, 1e-12, 1 - 1e-12)
        return -(p * np.log(p) + (1 - p) * np.log(1 - p)).sum(axis=1).mean()

    plan = next_pairs(MODEL, n=132)
    every = np.stack(np.triu_indices(n, 1), axis=1)
    before = undecided([], [])
    ours = before - undecided(plan.position, plan.votes)
    uniform = before - undecided(every, np.full(len(every), 2))
    assert ours > 1.08 * uniform


def test_no_vote_may_be_pending():
    expected = next_pairs(MODEL, n=4).pairs
    for none in ([], (), np.zeros((0, 2))):
        np.testing.assert_array_equal(next_pairs(MODEL, n=4, pending=none).pairs, expected)


def test_pending_votes_are_as_if_handed_out():
    whole, begun = next_pairs(MODEL, n=24), next_pairs(MODEL, n=10)
    out = np.repeat(begun.position, begun.votes, axis=0)
    rest = next_pairs(MODEL, n=14, pending=out)
    votes = np.zeros((12, 12), int)
    for plan in (begun, rest):
        for (a, b), k in zip(np.sort(plan.position, axis=1), plan.votes, strict=True):
            votes[a, b] += k
    at = tuple(np.sort(whole.position, axis=1).T)
    assert votes.sum() == 24 and np.abs(votes[at] - whole.votes).sum() <= 2


def test_order_of_items_is_no_matter():
    turn = np.random.default_rng(2).permutation(12)
    names = [f"m{i:02d}" for i in turn]
    one = next_pairs(MODEL, n=40)
    other = next_pairs(MODEL, n=40, items=names)
    assert sorted(map(tuple, one.pairs.tolist())) == sorted(map(tuple, other.pairs.tolist()))
    assert_allclose(np.sort(one.gain), np.sort(other.gain), rtol=1e-6)


def test_goal_of_the_first_places():
    board = MODEL.posterior_
    rows = board.check_items(MODEL.items_)
    best = np.argsort(-board.mean(rows))
    plan = next_pairs(MODEL, n=200, goal="top")
    on_first = plan.votes[(plan.position == best[0]).any(axis=1)].sum()
    assert on_first > 80
    last = plan.votes[np.isin(plan.position, best[-4:]).all(axis=1)].sum()
    assert last == 0
    # All places are the ranks.
    whole = next_pairs(MODEL, n=50, goal="top", k=12)
    assert_array_equal(whole.position, next_pairs(MODEL, n=50).position)


def test_goal_of_the_first_items_whatever_their_order():
    one = next_pairs(MODEL, n=50, goal="members")
    assert_array_equal(one.position, next_pairs(MODEL, n=50, goal="top").position)
    # Three even pairs, each far above the next: the border of the first three is in the second.
    better = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (2, 5), (3, 4), (3, 5)]
    even = [(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)]
    items = ItemTable.from_names(list("abcdef"))
    board = PairwisePreferenceRegressor(items=items, noise_variance=0.1, optimizer=None)
    board = board.fit(np.array((better + even) * 20))
    for k, border in ((1, "ab"), (3, "cd"), (5, "ef")):
        plan = next_pairs(board, n=20, goal="members", k=k)
        assert plan.votes[np.isin(plan.pairs, list(border)).all(axis=1)].sum() >= 19
    with pytest.raises(ValueError, match="k"):
        next_pairs(board, goal="members", k=6)


def test_controls_are_held():
    rng = np.random.default_rng(0)
    n, utility = 400, np.array([0.0, 0.6, 0.7, 2.0])
    ids = np.stack([rng.permutation(4)[:2] for _ in range(n)])
    length = rng.standard_normal((n, 2))
    y = np.diff(utility[ids] + length)[:, 0] + rng.standard_normal(n) < 0
    X = np.stack([ids, length], axis=2)
    kernel = OnColumns(Identity(), [0]) + OnColumns(DotProduct(0.0, "fixed"), [1])
    model = PairwisePreferenceRegressor(kernel, id_column=0, noise_variance=0.5, optimizer=None)
    plan = next_pairs(model.fit(X, y), n=20)
    assert sorted(plan.names) == [0, 1, 2, 3] and plan.pairs[0].tolist() in ([1, 2], [2, 1])
    board = np.column_stack([plan.names.astype(float), np.zeros(4)])
    again = next_pairs(model, n=20, items=board)
    assert_array_equal(plan.votes, again.votes)
    assert_allclose(plan.gain, again.gain, rtol=1e-9)
    held = next_pairs(model, n=20, at={1: 5.0})  # the slope is the same for all
    assert_allclose(plan.gain, held.gain, rtol=1e-6)


def test_newcomer_is_asked_about():
    names = [f"m{i:02d}" for i in range(12)]
    table = ItemTable.from_names([*names, "new"])
    rng = np.random.default_rng(0)
    pairs = np.stack([rng.permutation(12)[:2] for _ in range(600)])
    model = PairwisePreferenceRegressor(items=table, noise_variance=0.5, optimizer=None)
    plan = next_pairs(model.fit(pairs, pairs[:, 0] > pairs[:, 1]), n=10)
    assert (plan.pairs == "new").any(axis=1).all()


def test_allowed_pairs_alone():
    allowed = [[0, 3], [4, 3], [7, 9]]
    plan = next_pairs(MODEL, n=60, allowed=allowed)
    told = {tuple(sorted(pair)) for pair in plan.position.tolist()}
    assert told <= {(0, 3), (3, 4), (7, 9)}
    everything = next_pairs(MODEL, n=60).gain_of_vote
    assert_allclose(plan.gain_of_vote[0, 3], everything[0, 3])
    assert plan.gain_of_vote[0, 1] == 0.0


def test_pairs_by_name_are_those_at_their_places():
    names = [["m00", "m03"], ["m04", "m03"], ["m07", "m09"]]
    positions = [[0, 3], [4, 3], [7, 9]]
    for allowed in (names, np.array(names), np.array(names, dtype=object)):
        plan = next_pairs(MODEL, n=60, allowed=allowed, pending=names[:1])
        expected = next_pairs(MODEL, n=60, allowed=positions, pending=positions[:1])
        assert_array_equal(plan.gain_of_vote, expected.gain_of_vote)
    pd = pytest.importorskip("pandas")
    again = next_pairs(MODEL, n=60, allowed=pd.DataFrame(names), pending=plan.pairs)
    assert {tuple(sorted(pair)) for pair in again.pairs} <= {tuple(sorted(pair)) for pair in names}
    numbered = PairwisePreferenceRegressor(items=ItemTable.from_names([9, 8, 7]), optimizer=None)
    plan = next_pairs(numbered.fit([[0, 1], [1, 2]]), n=5, allowed=[[0, 1]])
    assert set(plan.pairs[0]) == {9, 8}  # integers are positions


@pytest.mark.parametrize(
    "options",
    [
        {"tie_threshold": 0.3},
        {"order_effect": 0.3},
        {"inference": "laplace"},
        {"inference": "svi"},
    ],
    ids=str,
)
def test_models(options):
    plan = next_pairs(make_board(**options), n=50, goal="top", k=2)
    assert plan.votes.sum() == 50


def test_draws_judges_features_and_users():
    duels = np.random.default_rng(0).uniform(size=(20, 2, 2))
    by_features = PairwisePreferenceRegressor(optimizer=None).fit(duels)
    plan = next_pairs(by_features, n=9, items=duels[:4, 0])
    assert plan.votes.sum() == 9 and plan.pairs.max() < 4
    drawn = PairwisePreferenceRegressor(inference="hmc", optimizer=None, random_state=0)
    assert next_pairs(drawn.fit(duels[:5]), n=5).votes.sum() == 5
    judged = make_board()
    X = [["m00", "m01"], ["m01", "m02"]] * 6
    judged = judged.fit(X, judges=["x", "y", "y"] * 4)
    assert next_pairs(judged, n=5).votes.sum() == 5
    crowd = CollaborativePreferenceRegressor(optimizer=None).fit(duels, users=["u", "v"] * 10)
    assert next_pairs(crowd, n=6, items=duels[:5, 0], user="u").votes.sum() == 6
    with pytest.raises(TypeError, match="user="):
        next_pairs(crowd, n=6, items=duels[:5, 0])
    ranked = from_rankings([["a", "b", "c"], ["b", "a", "c"]])
    sets = PairwisePreferenceRegressor(optimizer=None, items=ItemTable.from_names("abc"))
    assert next_pairs(sets.fit(*ranked[:2]), n=3).votes.sum() == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 0}, "n"),
        ({"n": -1}, "n"),
        ({"goal": "best"}, "goal"),
        ({"goal": "top", "k": 13}, "k"),
        ({"k": 0}, "k"),
        ({"items": ["m01"]}, "two items"),
        ({"allowed": []}, "allowed"),
        ({"allowed": np.zeros((0, 2), int)}, "empty"),
        ({"allowed": [[0, 12]]}, "from 0 to 11"),
        ({"allowed": [[-1, 2]]}, "from 0 to 11"),
        ({"allowed": [[3, 3]]}, "itself"),
        ({"pending": [["m01", "m99"]]}, "pending must hold names.*unknown.*'m99'"),
        ({"allowed": [[0.5, 1.0]]}, "positions on the board, integers.*float64"),
        ({"allowed": [["m01", "m01"]]}, "itself"),
        ({"items": ["m01", "m01", "m02"], "allowed": [["m01", "m02"]]}, "more than one item"),
        ({"pending": [0, 1]}, "shape"),
        ({"items": ["m01", "m01"]}, "one and the same"),
    ],
    ids=str,
)
def test_refused(options, said):
    with pytest.raises(ValueError, match=said):
        next_pairs(MODEL, **options)


def test_more_items_than_can_be_weighed_are_refused():
    remedy = r"up to 5000 items .*such as the first places, leaderboard\(model\).names\[:5000\]"
    with pytest.raises(ValueError, match=remedy):
        next_pairs(MODEL, items=["m01", "m02"] * 2501)


def test_unfitted_is_refused():
    with pytest.raises(TypeError, match="fitted"):
        next_pairs(PairwisePreferenceRegressor())


@pytest.mark.parametrize("goal", GOALS)
def test_pairs_that_are_followed_make_no_difference(goal, monkeypatch):
    """Those of the largest scores alone, or all; however few."""
    n = 14
    rng = np.random.default_rng(0)
    pairs = np.array([(i, (i + j) % n) for i in range(n) for j in (1, 3, 4)])
    y = rng.random(len(pairs)) < 0.5
    items = ItemTable.from_names([f"m{k}" for k in range(n)])
    model = PairwisePreferenceRegressor(items=items, optimizer=None).fit(pairs, y)
    plans = []
    for per_item in (1000, 4, 1):
        monkeypatch.setattr(_next_pairs, "_FOLLOWED_PER_ITEM", per_item)
        plans.append(next_pairs(model, 200, goal=goal, k=2))
    assert_array_equal(plans[1].position, plans[0].position)
    assert_array_equal(plans[1].votes, plans[0].votes)
    # Where few are followed weights are found anew more often.
    assert plans[2].votes.sum() == 200
    assert_allclose(plans[2].gain.sum(), plans[0].gain.sum(), rtol=0.05)


def test_averages_of_the_rate_are_those_of_many_nodes():
    z, moved = np.meshgrid(np.linspace(0.0, 6.0, 61), [0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.9])
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    truth = order_rate(z[..., None] + nodes * moved[..., None]) @ (weights / weights.sum())
    found = _next_pairs._mean_rate(z.ravel(), moved.ravel()).reshape(z.shape)
    assert_allclose(found[:5], truth[:5], atol=1e-6)
    assert_allclose(found, truth, atol=1e-4)


def in_prompts(seed=0, n=60, n_prompts=7):
    """A model of votes on prompts, and the same prior written by hand on items in prompts."""
    rng = np.random.default_rng(seed)
    X = np.array([rng.permutation(5)[:2] for _ in range(n)]).repeat(2, axis=0)
    prompt, y = rng.integers(0, n_prompts, n).repeat(2), rng.integers(0, 2, 2 * n)
    options = {"optimizer": None, "noise_variance": 0.5, "inference": EP(tol=1e-12)}
    model = PairwisePreferenceRegressor(**options).fit(
        np.array(list("abcde"))[X], y, prompts=prompt
    )
    pairs, pair = np.unique(np.c_[prompt, np.sort(X, axis=1)], axis=0, return_inverse=True)
    beside = np.c_[prompt, pair.reshape(-1)]
    rows = np.stack([np.c_[X[:, side], beside] for side in (0, 1)], axis=1).astype(float)
    kernel = OnColumns(Identity(), [0])
    kernel = kernel + 0.25 * OnColumns(Identity(), [0, 1]) + 0.25 * OnColumns(Identity(), [0, 1, 2])
    plain = PairwisePreferenceRegressor(kernel, **options).fit(rows, y).posterior_
    return model, plain, {tuple(row): k for k, row in enumerate(pairs.tolist())}


def test_moments_in_prompts_are_those_of_items_in_them():
    model, plain, place = in_prompts(n=20)
    within = np.stack(np.triu_indices(5, 1), axis=1)[:, ::-1]  # of which not all met in 3
    pairs = np.concatenate([[[0, 1], [3, 4], [0, 1], [1, 2]], within])
    prompts = np.array([5, -2, -2, -3, *[3] * 10])  # negative: new ones
    population = np.array([[item, -50 - item, -90 - item] for item in range(5)], dtype=float)
    rows = [
        [item, prompt, place.get((prompt, min(a, b), max(a, b)), -1000 - 10 * a - b)]
        for (a, b), prompt in zip(pairs.tolist(), prompts.tolist(), strict=True)
        for item in (a, b)
    ]
    asked = np.concatenate([population, rows])
    covariance = plain.cov(asked)
    covariance[np.arange(5), np.arange(5)] -= 0.5  # what they have of their own in new prompts
    posterior = model.posterior_
    known = posterior.reader.prompts.codes(np.maximum(prompts, 0).tolist())
    arguments = pairs, np.where(prompts < 0, prompts, known)
    rows = posterior.check_items(np.array(list("abcde")))[:, None]
    mean, cov = posterior.moments_with_pairs(rows, np.ones(1), *arguments)
    assert_allclose(mean[:, 0], plain.mean(asked), atol=1e-10)
    assert_allclose(cov, covariance, atol=1e-10)


def test_votes_on_new_prompts_tell_as_much_as_under_all_their_noise():
    model, _, _ = in_prompts()
    plan = next_pairs(model, n=1, random_state=0)
    posterior = model.posterior_
    assert plan.prompts.tolist() == [None]
    # What items have of their own in a prompt is noise to the mean over prompts.
    rows = posterior.check_items(plan.names)
    board = board_of(posterior.mean(rows), posterior.cov(rows), Probit(0.5 + 0.5))
    board.update_weights()
    i, j = np.triu_indices(5, 1)
    expected = [
        sum(
            order_information(posterior.mean(rows), posterior.cov(rows), (a, b), pair, 2.0)
            for pair in zip(i, j, strict=True)
        )
        for a, b in zip(i, j, strict=True)
    ]
    assert_allclose(plan.gain_of_vote[i, j], board.gains(), rtol=0.02)
    assert_allclose(plan.gain_of_vote[i, j], expected, rtol=0.1)


def test_a_second_vote_on_one_prompt_tells_less():
    model, _, _ = in_prompts()
    same, new = (
        next_pairs(model, n=20, allowed=[["a", "c"]], prompts=prompts)
        for prompts in (["fresh"], None)
    )
    assert same.prompts.tolist() == ["fresh"] and same.votes.tolist() == [20]
    assert same.gain[0] < 0.7 * new.gain[0]
    one = [
        next_pairs(model, n=1, allowed=[["a", "c"]], prompts=prompts).gain[0]
        for prompts in (["fresh"], [None])
    ]
    assert one[0] == pytest.approx(one[1], rel=0.02)
    # Of a new prompt and one that is known, votes go to the new one.
    plan = next_pairs(model, n=5, allowed=[["a", "c"]] * 2, prompts=[3, None])
    assert plan.prompts[np.argmax(plan.votes)] is None


def test_prompts_of_votes_are_refused_without_pairs_or_without_prompts():
    with pytest.raises(ValueError, match="got prompts= without allowed="):
        next_pairs(in_prompts()[0], prompts=[1])
    with pytest.raises(ValueError, match="without a model that was fitted with prompts="):
        next_pairs(MODEL, allowed=[[0, 1]], prompts=[1])
    with pytest.raises(ValueError, match="2 ids in prompts for 1 rows"):
        next_pairs(in_prompts()[0], allowed=[["a", "b"]], prompts=[1, 2])
