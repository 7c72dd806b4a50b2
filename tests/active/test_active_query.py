"""Which duels are chosen: against the joint information of all answers, found by enumeration."""

from itertools import combinations

import numpy as np
import pytest
from active_support import Known, probabilities
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import entr, ndtr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import (
    HallucinationBelieverOptimizer,
    ItemTable,
    PairwisePreferenceRegressor,
    PosteriorMixture,
)
from skpref.active import STRATEGIES, all_pairs, bald, entropy, next_pairs, query
from skpref.active._batch import Worlds, outcome_effects
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.duels import DuelFrame
from skpref.kernels import Identity, Intransitive
from skpref.likelihoods import Probit
from skpref.preprocessing import Itemwise

PLAIN = Probit(0.5)
TIES = Probit(0.5, tie_threshold=0.8)
ORDER = Probit(0.02, tie_threshold=0.3, order_effect=0.4)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def correlated(seed, n, likelihood=PLAIN, rank=2, scale=1.5):
    """Margins of n duels that have a few directions in common."""
    rng = np.random.default_rng(seed)
    root = scale * rng.standard_normal((n, rank))
    covariance = root @ root.T + 0.05 * np.eye(n)
    mean = rng.standard_normal(n)
    return Known(likelihood, mean, np.diag(covariance), covariance)


def joint_information(known, chosen, likelihood=PLAIN):
    """Of the answers to two duels together, by their definition and a product rule."""
    chosen = list(chosen)
    root = np.linalg.cholesky(known.covariance[np.ix_(chosen, chosen)])
    margins = known.mean[chosen, None] + root @ NODES[list(np.ndindex(40, 40))].T
    weight = np.outer(WEIGHTS, WEIGHTS).ravel()
    width, step = likelihood.tie_threshold or 0.0, np.sqrt(2.0 * likelihood.noise_variance)
    above, below = ndtr((margins - width) / step), ndtr((-margins - width) / step)
    each = np.stack([below, 1.0 - above - below, above])
    known_margins = entr(np.maximum(each, 0.0)).sum(axis=(0, 1)) @ weight
    tables = np.einsum("im,jm,m->ij", each[:, 0], each[:, 1], weight)
    return entr(np.maximum(tables, 0.0)).sum() - known_margins


def make_model(items=None):
    rng = np.random.default_rng(0)
    model = PairwisePreferenceRegressor(RBF(1.0), noise_variance=0.05, optimizer=None, items=items)
    return model.fit(rng.uniform(-1.0, 1.0, (6, 2, 2)))


MODEL = make_model()
ITEMS = np.random.default_rng(1).uniform(-1.0, 1.0, (9, 2))
POOL = all_pairs(ITEMS)


# -- what answers do -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("likelihood", "lead"),
    [(PLAIN, 1), (TIES, -1), (ORDER, 1), (ORDER, 0), (ORDER, -1)],
    ids=["plain", "ties", "order", "order unknown", "order reversed"],
)
def test_effects_are_the_moments_given_an_answer(likelihood, lead):
    mean, variance = 0.6, 0.7
    of = outcome_effects(likelihood, np.array([mean]), np.array([variance]), np.array([lead]))
    normal = norm(mean, np.sqrt(variance))
    for k in range(likelihood.n_outcomes):

        def moment(power, k=k):
            def weighted(m):
                return m**power * probabilities(m, likelihood, lead)[k] * normal.pdf(m)

            return quad(weighted, -7.0, 8.0, points=[-1.0, -0.3, 0.0, 0.3, 1.0], limit=200)[0]

        share = moment(0)
        centre = moment(1) / share
        spread = moment(2) / share - centre**2
        assert_allclose(of.probability[k, 0], share, atol=1e-9)
        assert_allclose(mean + variance * of.gradient[k, 0], centre, atol=1e-8)
        assert_allclose(variance - variance**2 * of.curvature[k, 0], spread, atol=1e-8)


def test_worlds_keep_the_law_of_total_probability():
    known = correlated(3, 5, TIES)
    worlds = Worlds.without_answers(known.mean, known.variance, known.covariance)
    for at in (2, 0):
        worlds = worlds.with_answer(at, TIES, 1)
    assert len(worlds.weight) == 9
    assert_allclose(worlds.weight.sum(), 1.0)
    assert_allclose(worlds.weight @ worlds.mean, known.mean, atol=1e-9)
    off = worlds.mean - known.mean
    total = worlds.weight @ (worlds.variance + off**2)
    assert_allclose(total, known.variance, rtol=1e-9)
    for at in (1, 3):
        worlds = worlds.with_answer(at, TIES, 1)
    assert len(worlds.weight) == 32  # of 81
    off = np.abs(worlds.weight @ worlds.mean - known.mean)
    assert np.all(off < 0.25 * np.sqrt(known.variance))


# -- several at once -------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [PLAIN, TIES], ids=["plain", "ties"])
@pytest.mark.parametrize("seed", range(2))
def test_two_duels_tell_about_as_much_as_any_two(seed, likelihood):
    known = correlated(seed, 7, likelihood)
    chosen = query(known, known.duels, n=2)
    every = {two: joint_information(known, two, likelihood) for two in combinations(range(7), 2)}
    found = every[tuple(sorted(chosen.tolist()))]
    first = chosen[0]
    assert first == bald(known, known.duels).argmax()
    with_first = max(value for two, value in every.items() if first in two)
    assert found > with_first - 0.02
    assert found > max(every.values()) - 0.05


def test_a_duel_is_not_asked_twice_in_other_words():
    known = correlated(1, 6)
    best = int(bald(known, known.duels).argmax())
    rows = np.r_[np.arange(6), best, best]
    double = known.covariance[np.ix_(rows, rows)]
    many = Known(Probit(1e-3), known.mean[rows], known.variance[rows], double)
    assert set(query(many, many.duels, n=3, diversity=False)) == {best, 6, 7}
    assert len({best, 6, 7} & set(query(many, many.duels, n=3).tolist())) == 1
    assert len({best, 6, 7} & set(query(many, many.duels, "entropy", n=3).tolist())) <= 1


def test_the_order_of_several_is_that_of_one_by_one():
    at_once = query(MODEL, POOL, n=5)
    one_by_one = []
    for _ in range(5):
        one_by_one += query(MODEL, POOL, pending=one_by_one).tolist()
    assert_array_equal(at_once, one_by_one)
    assert query(MODEL, POOL, pending=[int(at_once[0])]) == [at_once[1]]


def test_variance_is_what_is_expected_after_the_answers():
    """By simulated answers: what they leave is the variance within each outcome."""
    covariance = np.array([[40.0, 38.0, 0.0], [38.0, 39.0, 0.0], [0.0, 0.0, 25.0]])
    known = Known(PLAIN, np.zeros(3), np.diag(covariance), covariance)
    rng = np.random.default_rng(0)
    margin = rng.multivariate_normal(known.mean, covariance, 100_000)
    win = margin[:, 0] + rng.standard_normal(len(margin)) > 0.0
    left = sum(np.mean(win == side) * margin[win == side].var(axis=0) for side in (True, False))
    assert left[1] < left[2] < 39.0
    assert query(known, known.duels, "variance", n=2).tolist() == [0, 2]
    assert query(known, known.duels, "variance", n=2, diversity=False).tolist() == [0, 1]


def test_items_may_be_kept_apart():
    for diversity in (True, False):
        chosen = query(MODEL, POOL, n=4, distinct_items=True, diversity=diversity)
        assert len(np.unique(POOL[chosen].reshape(-1, 2), axis=0)) == 8
    with pytest.raises(ValueError, match="4 can be chosen without an item in two"):
        query(MODEL, POOL, n=5, distinct_items=True)
    waiting = int(query(MODEL, POOL)[0])
    chosen = query(MODEL, POOL, n=3, distinct_items=True, pending=[waiting])
    assert len(np.unique(POOL[[waiting, *chosen]].reshape(-1, 2), axis=0)) == 8


@pytest.mark.slow
def test_a_large_pool():
    items = np.random.default_rng(2).uniform(-1.0, 1.0, (40, 2))
    pool = all_pairs(items)
    assert len(pool) == 780
    chosen = query(MODEL, pool, n=6)
    assert len(set(chosen.tolist())) == 6
    assert chosen[0] == bald(MODEL.posterior_, pool).argmax()
    apart = query(MODEL, pool, n=20, distinct_items=True)
    assert len(np.unique(pool[apart].reshape(-1, 2), axis=0)) == 40


# -- what is left out ------------------------------------------------------------------------


def test_what_was_answered_is_not_asked_again():
    first, second, third = query(MODEL, POOL, n=3, diversity=False).tolist()
    again = POOL[[first]]
    assert query(MODEL, POOL, answered=again) == [second]
    assert query(MODEL, POOL, answered=again[:, ::-1]) == [second]
    mask = np.zeros(len(POOL), dtype=bool)
    mask[[first, second]] = True
    chosen, scores = query(MODEL, POOL, answered=mask, return_scores=True)
    assert chosen == [third]
    assert_array_equal(scores == -np.inf, mask)
    assert_allclose(scores[~mask], bald(MODEL.posterior_, POOL)[~mask])
    assert query(MODEL, POOL, answered=np.zeros((0, 2, 2))) == [first]
    with pytest.raises(ValueError, match="enlarge"):
        query(MODEL, POOL[:2], answered=POOL[:1], n=2)


def test_an_item_is_never_asked_about_with_itself():
    own = np.stack([ITEMS[:2], ITEMS[:2]], axis=1)
    pool = np.concatenate([own, POOL[:1]])
    assert query(MODEL, pool, "entropy") == [2]
    with pytest.raises(ValueError, match="1 to ask"):
        query(MODEL, pool, n=2)


# -- forms of the pool, and of the model -----------------------------------------------------


@pytest.mark.slow
def test_pools_of_every_form():
    table = ItemTable(ITEMS, names=[f"item {k}" for k in range(9)])
    model = make_model(table)
    expected = query(MODEL, POOL, n=3)
    pairs = all_pairs(9)
    names = table.names[pairs]
    for pool in (POOL, POOL.tolist(), pairs, names, DuelFrame(ITEMS, pairs), ITEMS, table):
        assert_array_equal(query(model, pool, n=3), expected)
    for answered, pool in ((pairs[expected], pairs), (names[expected], names)):
        assert not set(query(model, pool, n=3, answered=answered)) & set(expected)
    bare = ItemTable.from_names(["a", "b", "c"])
    named = PairwisePreferenceRegressor(items=bare, optimizer=None).fit([["a", "b"]])
    assert query(named, all_pairs(bare)) == query(named, [["a", "b"], ["a", "c"], ["b", "c"]])


def test_all_pairs_of_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(ITEMS, columns=["x", "y"])
    assert_array_equal(np.asarray(all_pairs(frame)), POOL)
    model = PairwisePreferenceRegressor(RBF(1.0), noise_variance=0.05, optimizer=None)
    model.fit(DuelFrame(frame, [[0, 1], [2, 3]]))
    assert_array_equal(query(model, frame, n=2), query(model.posterior_, POOL, n=2))


def games():
    """A model of names, and all pairs of these."""
    rng, names = np.random.default_rng(0), np.array(list("abcdef"))
    X = names[[rng.permutation(6)[:2] for _ in range(20)]]
    model = PairwisePreferenceRegressor(optimizer=None).fit(X, X[:, 0] < X[:, 1])
    return model, model.items_.names[all_pairs(6)]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_names_are_duels(library):
    frames = pytest.importorskip(library)
    model, pool = games()

    def frame(pairs):
        return frames.DataFrame({"left": list(pairs[:, 0]), "right": list(pairs[:, 1])})

    for own in (model, model.posterior_):

        def scores(pool, answered=None, own=own):
            return query(own, pool, answered=answered, return_scores=True)[1]

        some = pool[[3, 7]]
        expected, rest = scores(pool), scores(pool, some)
        assert np.flatnonzero(rest == -np.inf).tolist() == [3, 7]
        assert_array_equal(scores(frame(pool)), expected)
        for known in (some, frame(some), frame(some[:, ::-1])):
            for asked in (pool, frame(pool), all_pairs(6)):
                assert_array_equal(scores(asked, known), rest)
        newcomer = np.array([["a", "b"], ["a", "new"]])
        assert_array_equal(scores(frame(newcomer), some), scores(newcomer, some))


def test_frames_of_names_are_duels_of_a_table_with_features_and_of_users():
    pd = pytest.importorskip("pandas")
    table = ItemTable(ITEMS, names=[f"item {k}" for k in range(9)])
    names = table.names[all_pairs(9)]
    assert_array_equal(query(make_model(table), pd.DataFrame(names), n=3), query(MODEL, POOL, n=3))
    crowd = CollaborativePreferenceRegressor(optimizer=None, items=table)
    crowd = crowd.fit(names[:6], [0, 1] * 3, users=["ann", "bob", "ann"] * 2)
    users = ["ann"] * len(names)
    found = query(crowd, pd.DataFrame(names), n=2, users=users)
    assert_array_equal(found, query(crowd, names, n=2, users=users))


@pytest.mark.parametrize(
    ("pool", "answered", "message"),
    [
        (POOL, [["item 1", "item 2"]], r"numbers of shape \(36, 2, 2\); got names"),
        (POOL, [[0, 1]], r"numbers of shape \(36, 2, 2\); got numbers of shape \(1, 2\)"),
        (all_pairs(9), [["item 1", "other"]], "unknown.*'other'"),
        ([["item 1", "item 2"]], [[0, 1]], "names of shape .*; got numbers of shape"),
    ],
)
def test_answered_duels_of_another_form_are_errors(pool, answered, message):
    model = make_model(ItemTable(ITEMS, names=[f"item {k}" for k in range(9)]))
    with pytest.raises(ValueError, match=message):
        query(model, pool, answered=answered)


def test_frames_of_names_of_more_than_two_are_no_duels():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"Duels must have shape.*got \(1, 3\)"):
        query(games()[0], pd.DataFrame([["a", "b", "c"]]))


@pytest.mark.slow
def test_models_of_every_form():
    X, y = POOL[::3], np.tile([0, 1], 6)
    scaled = PairwisePreferenceRegressor(RBF(1.0), optimizer=None)
    pipeline = make_pipeline(Itemwise(StandardScaler()), scaled).fit(X, y)
    inner = Itemwise(StandardScaler()).fit(X)
    expected = query(scaled.posterior_, inner.transform(POOL), n=3)
    assert_array_equal(query(pipeline, POOL, n=3), expected)
    search = GridSearchCV(pipeline, {"itemwise__transformer": [StandardScaler()]}, cv=2).fit(X, y)
    assert_array_equal(query(search, POOL, n=3), expected)
    optimizer = HallucinationBelieverOptimizer([[-1.0, 1.0]] * 2, random_state=0)
    optimizer.tell(POOL[0], 1).tell(POOL[5], 0)
    rows = np.stack([optimizer.to_unit(side) for side in (POOL[:, 0], POOL[:, 1])], axis=1)
    found = query(optimizer, POOL, n=2)
    assert_array_equal(found, query(optimizer.posterior_, rows, n=2))
    with pytest.raises(TypeError, match="posterior_"):
        query(PairwisePreferenceRegressor(), POOL)


class ManyUsers:
    """An estimator that knows several users: each has variances of their own."""

    def posterior_for(self, users):
        scale = np.where(users == "bob", 5.0, 0.1)

        class Rows:
            likelihood = PLAIN

            def margin(self, A, B):
                assert len(A) == len(scale)
                mean, variance = MODEL.posterior_.margin(A, B)
                return mean, scale * variance

            def margin_cov(self, A, B):
                pairs = np.stack([A, B], axis=1)
                places = [np.flatnonzero(np.all(pair == POOL, axis=(1, 2)))[0] for pair in pairs]
                assert_array_equal(users == "bob", np.array(places) % 2)
                own = scale[:, None] == scale
                root = np.sqrt(scale)
                return own * np.outer(root, root) * MODEL.posterior_.margin_cov(A, B)

        return Rows()


def test_users():
    users = np.array(["ann", "bob"])[np.arange(len(POOL)) % 2]
    chosen, scores = query(ManyUsers(), POOL, users=users, n=4, return_scores=True)
    assert_array_equal(chosen % 2, 1)
    for user in ("ann", "bob"):
        own = users == user
        rows = ManyUsers().posterior_for(users[own])
        assert_allclose(scores[own], bald(rows, POOL[own]))
    alone = query(ManyUsers(), POOL, users=list(users), n=4)
    assert_array_equal(alone, chosen)
    with pytest.raises(ValueError, match="one user for each of the 36 duels"):
        query(ManyUsers(), POOL, users=users[:3])
    with pytest.raises(ValueError, match="got 'abc'"):  # three letters are no three users
        query(ManyUsers(), POOL[:3], users="abc")
    with pytest.raises(ValueError, match="got 5"):
        query(ManyUsers(), POOL, users=5)
    with pytest.raises(TypeError, match="posterior_for"):
        query(MODEL, POOL, users=users)


def test_users_of_any_kind_and_posteriors_of_ones_own():
    class Told:
        posterior_ = Known(PLAIN, [0.0, 0.0, 0.0], [0.1, 3.0, 1.0], np.diag([0.1, 3.0, 1.0]))

        def posterior_for(self, users):
            assert all(isinstance(user, tuple) for user in users)
            return self.posterior_

    duels = Told.posterior_.duels
    assert query(Told(), duels, users=[("ann", 1), ("bob", 2), ("cid", 3)]) == [1]
    assert query(Told(), duels, n=2).tolist() == [1, 2]
    assert query(Told.posterior_, duels, n=2).tolist() == [1, 2]


# -- strategies ------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies_by_name(strategy):
    one, two = (query(MODEL, POOL, strategy, n=3, random_state=7) for _ in range(2))
    assert_array_equal(one, two)
    assert len(set(one.tolist())) == 3
    scores = query(MODEL, POOL, strategy, random_state=7, return_scores=True)[1]
    assert one[0] == scores.argmax()


def test_strategies_take_their_options():
    for members in (2, 50):
        scores = query(MODEL, POOL, "committee", members=members, vote=True, return_scores=True)[1]
        shares = np.exp(scores)
        assert np.all(shares <= 2.0 + 1e-9)
        assert (len(np.unique(scores.round(9))) <= 2) == (members == 2)
    with pytest.raises(ValueError, match="'bald', 'entropy'"):
        query(MODEL, POOL, "best")


def test_who_is_shown_first_counts():
    known = Known(ORDER, [-0.4, 0.4], [0.01, 0.01])
    assert query(known, known.duels, order=1) == [0]
    assert query(known, known.duels, order=[-1, -1]) == [1]


@pytest.mark.slow
def test_strategies_of_ones_own():
    def near_middle(posterior, duels, power=2):
        values = -(np.abs(np.asarray(duels)).max(axis=(1, 2)) ** power)
        values[3] = np.nan
        return values

    values = near_middle(None, POOL)
    assert query(MODEL, POOL, near_middle) == np.nanargmax(values)
    chosen = query(MODEL, POOL, near_middle, n=len(POOL) - 1, power=4, diversity=False)
    assert 3 not in chosen
    assert_array_equal(chosen, [k for k in np.argsort(-values, kind="stable") if k != 3])
    with pytest.raises(ValueError, match="score is a number"):
        query(MODEL, POOL, near_middle, n=len(POOL))
    with pytest.raises(ValueError, match="one score for each duel"):
        query(MODEL, POOL, lambda posterior, duels: [1.0])
    assert query(MODEL, POOL, entropy) == query(MODEL, POOL, "entropy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must"),
        ({"pending": [99]}, "rows of the pool"),
        ({"pending": [0.5]}, "rows of the pool"),
        ({"answered": [True, False]}, "mask"),
    ],
)
def test_bad_arguments_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        query(MODEL, POOL, **options)


def test_a_pool_that_is_none():
    with pytest.raises(ValueError, match="all_pairs"):
        query(MODEL, np.zeros((4, 3, 2)))
    with pytest.raises(ValueError, match="0 to ask"):
        query(MODEL, np.zeros((0, 2, 2)))


def test_answered_duels_may_have_names_that_are_no_texts():
    table = ItemTable(np.arange(3.0)[:, None], names=[9, 8, 7])
    model = PairwisePreferenceRegressor(optimizer=None, items=table)
    named = np.array([[9, 8], [8, 7]], dtype=object)
    model.fit(named, [1, 0])
    scores = query(model, [[0, 1], [1, 2]], answered=named[:1], return_scores=True)[1]
    assert scores[0] == -np.inf and np.isfinite(scores[1])
    with pytest.raises(ValueError, match=r"\[0, 2\], got 77"):
        query(model, [[0, 1], [1, 2]], answered=[[77, 88]])


def test_names_that_are_missing_are_refused_by_row():
    model = PairwisePreferenceRegressor(optimizer=None).fit([["x", "y"], ["y", "z"]], [1, 0])
    gaps = np.array([["x", "y"], ["y", None]], dtype=object)
    for pool in (gaps, np.array([["x", "y"], ["y", ""]])):
        with pytest.raises(ValueError, match=r"1 is missing.*first in row 1"):
            query(model, pool)
    with pytest.raises(ValueError, match=r"1 is missing.*first in row 1"):
        query(model, [[0, 1], [1, 2]], answered=gaps)


@pytest.mark.parametrize("strategy", ["bald", "entropy", "variance", "committee", "best_item"])
def test_questions_together_after_a_fit_with_judges_do_not_ask_the_same_twice(strategy):
    """Two judges contradict each other, and nobody compared c with d or these with a and b."""
    X, y = [["a", "b"]] * 6, [1, 1, 1, 0, 0, 0]
    model = PairwisePreferenceRegressor(items=["a", "b", "c", "d"], optimizer=None)
    model.fit(X, y, judges=["ann"] * 3 + ["bob"] * 3)
    assert isinstance(model.posterior_, PosteriorMixture)
    first, second = query(model, [["c", "d"], ["d", "c"], ["a", "b"]], strategy, n=2)
    assert {int(first), int(second)} in ({0, 2}, {1, 2})


@pytest.mark.parametrize("name", sorted(set(STRATEGIES) - {"random"}))
def test_effects_of_pairs_are_refused(name):
    pool = [["a", "c"], ["b", "a"]]
    kernel = Identity() + Intransitive(Identity(), 3.0)
    model = PairwisePreferenceRegressor(kernel, optimizer=None)
    model.fit([["a", "b"], ["b", "c"], ["c", "a"]])
    with pytest.raises(ValueError, match="utilities alone are allowed"):
        query(model, pool, strategy=name)
    with pytest.raises(ValueError, match="utilities alone are allowed"):
        next_pairs(model, n=2)
    assert query(model, pool, n=2, strategy="random", random_state=0).tolist() in ([0, 1], [1, 0])
