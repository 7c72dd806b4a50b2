"""Streams of answers: the end is that of one fit, whatever the pieces; memory and bits."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from chains_support import chains_alone
from numpy.testing import assert_allclose
from scipy.stats import chisquare
from sklearn.gaussian_process.kernels import RBF, Matern

from skpref import PairwisePreferenceRegressor
from skpref.duels import TIE, Comparisons, ItemTable, from_columns
from skpref.fitting._streaming import Sample
from skpref.gp._inducing import Weights, moments, transfer_weights
from skpref.inference import EP, SVI
from skpref.kernels import Identity, OnColumns


def problem(n=3000, n_items=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_items, 3))
    utility = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 - np.cos(3.0 * X[:, 2])
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    margin = utility[first] - utility[second] + 0.15 * rng.normal(size=n)
    return X, np.column_stack([first, second]), (margin > 0).astype(int)


def unfitted(X, n_inducing=60, **options):
    options = {"kernel": RBF(0.5), "optimizer": None, "random_state": 0} | options
    return PairwisePreferenceRegressor(inference=SVI(n_inducing), items=X, **options)


def log_loss(model, pairs, y):
    return -np.mean(np.log(model.predict_proba(pairs)[np.arange(len(y)), y]))


def streamed(model, pairs, y, pieces):
    for part in np.array_split(np.arange(len(y)), pieces):
        model.partial_fit(pairs[part], y[part])
    return model


@pytest.mark.slow
def test_a_stream_of_many_pieces_ends_near_one_fit():
    X, pairs, y = problem()
    whole = unfitted(X).fit(pairs[:2500], y[:2500])
    stream = streamed(unfitted(X), pairs[:2500], y[:2500], 50)
    losses = [log_loss(model, pairs[2500:], y[2500:]) for model in (whole, stream)]
    assert losses[1] - losses[0] < 0.01


@pytest.mark.slow
def test_pieces_in_batches_end_at_the_same_place_in_less_memory():
    X, pairs, y = problem(5200, 4000)
    models, peaks = [], []
    for size in (None, 200):
        engine = SVI(inducing_points=X[:40], batch_size=size)
        model = PairwisePreferenceRegressor(RBF(0.5), inference=engine, items=X, optimizer=None)
        model.fit(pairs[:200], y[:200])
        tracemalloc.start()
        models.append(model.partial_fit(pairs[200:], y[200:]))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    one, other = (model.predict_proba(pairs) for model in models)
    assert_allclose(other, one, atol=1e-5)
    assert peaks[1] < 0.7 * peaks[0]


@pytest.mark.slow
def test_a_stream_whose_later_pieces_bring_unseen_items():
    X, pairs, y = problem(n=4000)
    order = np.argsort(np.maximum(X[pairs[:3500, 0], 0], X[pairs[:3500, 1], 0]))
    whole = unfitted(X).fit(pairs[:3500], y[:3500])
    stream = streamed(unfitted(X), pairs[order], y[order], 50)
    losses = [log_loss(model, pairs[3500:], y[3500:]) for model in (whole, stream)]
    assert losses[1] - losses[0] < 0.01
    assert len(stream.posterior_.anchors) <= 120


@pytest.mark.slow
def test_pickled_in_mid_stream_it_goes_on_with_the_same_bits():
    X, pairs, y = problem(1000)
    one, other = (unfitted(X, n_learning_answers=200, optimizer="fmin_l_bfgs_b") for _ in range(2))
    for model in (one, other):
        streamed(model, pairs[:300], y[:300], 2)
    other = pickle.loads(pickle.dumps(other))
    for model in (one, other):
        streamed(model, pairs[300:], y[300:], 3)
    assert np.array_equal(one.predict(X), other.predict(X))
    assert np.array_equal(one.posterior_.factor, other.posterior_.factor)


def test_the_bounds_of_the_pieces_sum_to_a_bound_of_all():
    X, pairs, y = problem(1000)
    Z = X[:50]
    engine = SVI(50, Z)
    stream = PairwisePreferenceRegressor(RBF(0.5), inference=engine, items=X, optimizer=None)
    total = 0.0
    for part in np.array_split(np.arange(1000), 4):
        total += stream.partial_fit(pairs[part], y[part]).log_marginal_likelihood_value_
    whole = PairwisePreferenceRegressor(
        RBF(0.5), inference=SVI(50, stream.posterior_.anchors), items=X, optimizer=None
    ).fit(pairs, y)
    assert 0.0 < whole.log_marginal_likelihood_value_ - total < 5.0


def test_further_points_change_nothing_by_themselves():
    X, pairs, y = problem(500)
    model = unfitted(X, 20).fit(pairs, y)
    before = model.predict(X[:5])
    far = np.array([[[9.0, 9.0, 9.0], [9.0, 9.0, 8.0]]])  # no item here has met any of there
    other = unfitted(X, 20, kernel=RBF(0.5)).fit(pairs, y)
    other.set_params(items=None).partial_fit(far)
    assert len(other.posterior_.anchors) > len(model.posterior_.anchors)
    assert_allclose(other.predict(X[:5]), before, atol=1e-5)


@pytest.mark.slow
def test_hyperparameters_are_learned_again_once_the_answers_have_doubled():
    X, pairs, y = problem(800)
    model = unfitted(X, optimizer="fmin_l_bfgs_b")
    first = model.partial_fit(pairs[:300], y[:300]).kernel_
    assert first != RBF(0.5)
    assert model.partial_fit(pairs[300:500], y[300:500]).kernel_ == first
    model.partial_fit(pairs[500:], y[500:])
    whole = unfitted(X, optimizer="fmin_l_bfgs_b").fit(pairs, y)
    assert model.kernel_ == whole.kernel_
    assert np.array_equal(model.predict(X), whole.predict(X))  # all answers are still there


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arranged", "n_learning_answers"), [("by region", "auto"), ("random", 400)]
)
def test_a_stream_that_begins_with_few_answers_learns_its_hyperparameters(
    arranged, n_learning_answers
):
    X, pairs, y = problem(2000)
    order = np.arange(1500)
    if arranged == "by region":
        order = np.argsort(X[pairs[:1500]].mean(axis=1)[:, 0])
    options = {
        "kernel": None,
        "optimizer": "fmin_l_bfgs_b",
        "n_learning_answers": n_learning_answers,
    }
    whole = unfitted(X, **options).fit(pairs[:1500], y[:1500])
    stream = streamed(unfitted(X, **options), pairs[order], y[order], 25)
    losses = [log_loss(model, pairs[1500:], y[1500:]) for model in (whole, stream)]
    assert losses[1] - losses[0] < 0.01
    assert len(stream._stream.sample.answers.positions) == (
        1500 if n_learning_answers == "auto" else 400
    )


def test_a_stream_that_goes_on_in_another_region():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.uniform(size=(100, 2)), 30.0 + 2.0 * rng.uniform(size=(900, 2))])
    first = rng.integers(100, 1000, size=3000)
    second = 100 + (first - 100 + rng.integers(1, 900, size=3000)) % 900
    later = np.column_stack([first, second])
    early = np.column_stack([np.arange(50), np.arange(50, 100)])

    def utility(x):
        return np.sin(3.0 * x[:, 0]) + np.cos(2.0 * x[:, 1])

    def won(pairs):
        return (utility(X[pairs[:, 0]]) > utility(X[pairs[:, 1]])).astype(int)

    stream = unfitted(X, 30, n_learning_answers=150).partial_fit(
        np.tile(early, (4, 1)), np.tile(won(early), 4)
    )
    streamed(stream, later[:2000], won(later[:2000]), 20)
    whole = unfitted(X, 30).fit(later[:2000], won(later[:2000]))
    losses = [log_loss(model, later[2000:], won(later[2000:])) for model in (whole, stream)]
    assert losses[1] - losses[0] < 0.01
    assert len(stream.posterior_.anchors) <= 60


@pytest.mark.parametrize("kernel", [RBF(0.5), RBF([0.3, 0.6, 0.9])])
def test_what_was_told_of_points_is_a_factor_on_their_utilities(kernel):
    rng = np.random.default_rng(0)
    Z, further = rng.uniform(size=(2, 6, 3))
    root, shift = rng.normal(size=(6, 6)), rng.normal(size=6)
    L = np.linalg.cholesky(RBF(0.5)(Z))
    precision = np.linalg.inv(L).T @ (root @ root.T) @ np.linalg.inv(L)
    pull = np.linalg.inv(L).T @ shift
    points = np.concatenate([further, Z])
    found = moments(
        transfer_weights(Weights(root @ root.T, shift), (RBF(0.5), Z), (kernel, points))
    )
    K = kernel(
        points
    )  # the prior times exp(pullᵀ f − ½ fᵀ precision f), f the old points' utilities
    covariance = np.linalg.inv(np.linalg.inv(K) + np.pad(precision, ((6, 0), (6, 0))))
    L_now = np.linalg.cholesky(K)
    assert_allclose(L_now @ found.mean, covariance[:, 6:] @ pull, rtol=1e-4, atol=1e-6)
    assert_allclose(L_now @ found.root.T @ found.root @ L_now.T, covariance, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_points_of_ones_own_stay():
    X, pairs, y = problem(400)
    held = unfitted(X, optimizer="fmin_l_bfgs_b", n_learning_answers=50)
    held.set_params(inference=SVI(4, X[:4]))
    streamed(held, pairs, y, 4)
    assert len(held._stream.sample.answers.positions) == 50
    assert np.array_equal(held.posterior_.anchors, X[:4])
    held.partial_fit(pairs[:50], y[:50])
    assert np.array_equal(held.posterior_.anchors, X[:4])
    held.set_params(inference=SVI(4, X[5:8]))
    streamed(held, pairs, y, 2)
    assert np.array_equal(held.posterior_.anchors, X[5:8])


def test_the_sample_is_fair():
    rng = np.random.default_rng(0)
    n, items = 4000, np.arange(4001.0)[:, None]
    answers = Comparisons.from_duels(items, np.arange(n), np.arange(1, n + 1), np.ones(n, bool))
    sample, k = Sample.from_comparisons(answers.part(np.arange(300)), 1000), 300
    while k < n:
        ahead = min(k + int(rng.integers(1, 300)), n)
        sample = sample.add_answers(answers.part(np.arange(k, ahead)), 1000)
        k = ahead
    kept = sample.answers.items[sample.answers.positions[:, 0]].ravel().astype(int)
    assert sample.seen == n and len(np.unique(kept)) == 1000
    assert chisquare(np.bincount(kept // 500)).pvalue > 1e-3


def test_new_names_have_points_of_their_own():
    rng = np.random.default_rng(0)
    table = ItemTable.from_names([f"player {k}" for k in range(30)])
    model = PairwisePreferenceRegressor(
        inference=SVI(5), items=table, optimizer=None, noise_variance=0.5
    )
    early = np.array([rng.permutation(15)[:2] for _ in range(60)])
    late = np.array([15 + rng.permutation(15)[:2] for _ in range(60)])
    model.partial_fit(early, early[:, 0] < early[:, 1])
    model.partial_fit(late, late[:, 0] < late[:, 1])
    assert len(model.posterior_.anchors) == 30
    utility = model.predict(np.arange(30))
    assert np.corrcoef(utility[15:], np.arange(15))[0, 1] < -0.8
    assert np.corrcoef(utility[:15], np.arange(15))[0, 1] < -0.8


def test_a_piece_may_hold_one_label_alone():
    X, pairs, y = problem(200)
    model = unfitted(X).partial_fit(pairs, 2 * y - 1)
    won = y == 1
    model.partial_fit(pairs[won], np.ones(won.sum(), dtype=int))
    assert model.classes_.tolist() == [-1, 1]


def test_a_piece_with_ties_may_lack_defeats():
    X, pairs, _ = problem(200)
    label = np.resize([-1, 0, 1], 150)
    stream = unfitted(X, tie_threshold=0.2).partial_fit(pairs[:100], label[:100])
    later = np.abs(label[100:])
    stream.partial_fit(pairs[100:150], later)
    assert stream.classes_.tolist() == [-1, 0, 1]
    assert np.count_nonzero(stream.duels_.kind == TIE) == np.count_nonzero(later == 0)


def test_a_fit_begins_anew_and_can_be_gone_on_from():
    X, pairs, y = problem(600)
    again = unfitted(X).partial_fit(pairs[300:], 1 - y[300:]).fit(pairs[:300], y[:300])
    fresh = unfitted(X).fit(pairs[:300], y[:300])
    assert np.array_equal(again.predict(X), fresh.predict(X))
    one, other = (each.partial_fit(pairs[300:], y[300:]).predict(X) for each in (again, fresh))
    assert np.array_equal(one, other)


def test_other_engines_are_refused_with_the_remedy():
    model = PairwisePreferenceRegressor()
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit(np.zeros((1, 2, 1)))
    assert "set inference='svi'" in str(caught.value.__cause__)


def test_pieces_of_another_form_are_refused():
    X, pairs, y = problem(100)
    duels = X[pairs]
    model = unfitted(None).partial_fit(duels, y)
    with pytest.raises(
        ValueError, match="2 features, but PairwisePreferenceRegressor is expecting"
    ):
        model.partial_fit(duels[:, :, :2], y)
    with pytest.raises(ValueError, match="Got rated items after duels"):
        model.partial_fit(X[:10], np.arange(10.0))


@pytest.mark.parametrize(
    ("began", "now", "message"),
    [
        ({}, {"tie_threshold": 0.1}, "learned without ties"),
        ({"tie_threshold": 0.1}, {"tie_threshold": None}, "learned with ties"),
        ({}, {"order_effect": 0.3}, "without regard to who was shown first"),
    ],
)
def test_answers_are_not_understood_in_another_way_in_mid_stream(began, now, message):
    X, pairs, y = problem(100)
    y = 2 * y - 1
    model = unfitted(X, **began).partial_fit(pairs[:50], y[:50]).set_params(**now)
    before = model.predict(X)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(pairs[50:], y[50:])
    assert np.array_equal(model.predict(X), before)


def test_names_keep_their_places_in_a_stream():
    pairs = np.array([["a", "b"], ["b", "c"], ["a", "c"]] * 10)
    table = ItemTable.from_names(["a", "b", "c"])
    model = PairwisePreferenceRegressor(inference="svi", items=table, optimizer=None)
    model.partial_fit(pairs)
    for other in (["c", "b", "a"], ["a", "b"]):
        model.set_params(items=ItemTable.from_names(other))
        with pytest.raises(ValueError, match="do not begin with the 3"):
            model.partial_fit(pairs[:1])
    model.set_params(items=np.eye(3))
    with pytest.raises(ValueError, match="names alone"):
        model.partial_fit([[0, 1]])
    model.set_params(items=ItemTable.from_names([*table.names, "d"]))
    utility = model.partial_fit([["c", "d"]] * 5).predict(["a", "b", "c", "d"])
    assert np.all(np.diff(utility) < 0.0)


def test_pieces_with_other_columns_are_refused():
    pd = pytest.importorskip("pandas")
    X, pairs, y = problem(60)
    sides = pd.DataFrame(np.hstack(X[pairs.T]), columns=["a1", "b1", "c1", "a2", "b2", "c2"])
    duels, y = from_columns(sides, ["a1", "b1", "c1"], ["a2", "b2", "c2"], y, names=["a", "b", "c"])
    other, _ = from_columns(sides, ["b1", "a1", "c1"], ["b2", "a2", "c2"], y, names=["b", "a", "c"])
    model = unfitted(None).partial_fit(duels, y)
    with pytest.raises(ValueError, match=r"columns \['b', 'a', 'c'\], but the model was fitted on"):
        model.partial_fit(other, y)
    rated = pd.DataFrame(X[:30], columns=["a", "b", "c"])
    model = unfitted(None).partial_fit(rated, X[:30, 0])
    with pytest.raises(ValueError, match="but the model was fitted on"):
        model.partial_fit(rated[["b", "a", "c"]], X[:30, 0])


@pytest.mark.slow
def test_a_file_is_learned_chunk_by_chunk(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names = np.array([f"player {k}" for k in range(12)])
    pairs = np.array([rng.permutation(6 if k < 150 else 12)[:2] for k in range(300)])
    games = pd.DataFrame({"home": names[pairs[:, 0]], "away": names[pairs[:, 1]]})
    games["home_won"] = (pairs[:, 0] < pairs[:, 1]).astype(int)
    games["home_age"], games["away_age"] = rng.normal(size=(2, 300))
    games.to_csv(tmp_path / "games.csv", index=False)
    by_id, by_name = (
        PairwisePreferenceRegressor(
            kernel, inference=SVI(20), items=items, optimizer=None, noise_variance=0.5
        )
        for kernel, items in (
            (OnColumns(Identity(), [0]), None),
            (None, ItemTable.from_names(names)),
        )
    )
    for chunk in pd.read_csv(tmp_path / "games.csv", chunksize=75):
        X, y = from_columns(chunk, ["home_age"], ["away_age"], "home_won", ids=("home", "away"))
        by_id.partial_fit(X, y)
        by_name.partial_fit(chunk[["home", "away"]], chunk["home_won"])
    asked = pd.DataFrame({"id": names, "age": 0.0})
    assert_allclose(by_id.predict(asked), by_name.predict(names), atol=1e-6)
    assert sorted(by_id.ids_) == sorted(names)
    assert np.corrcoef(by_id.predict(asked), np.arange(12))[0, 1] < -0.9


@pytest.mark.slow
def test_a_large_mapped_table_is_read_where_it_is_used(tmp_path):
    n, d = 200_000, 32
    table = np.lib.format.open_memmap(tmp_path / "items.npy", "w+", np.float32, (n, d))
    rng = np.random.default_rng(0)
    used = np.sort(rng.permutation(n)[:60])
    table[used] = rng.normal(size=(60, d))
    table.flush()
    mapped = ItemTable(np.load(tmp_path / "items.npy", mmap_mode="r"))
    pairs = used[np.array([rng.permutation(60)[:2] for _ in range(200)])]
    y = (table[pairs[:, 0], 0] > table[pairs[:, 1], 0]).astype(int)
    model = unfitted(mapped, kernel=None)
    tracemalloc.start()
    for part in np.array_split(np.arange(200), 2):
        model.partial_fit(pairs[part], y[part])
    chances = model.predict_proba(pairs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < table.nbytes / 2
    assert np.shares_memory(model.items_.X, mapped.X)
    plain = unfitted(np.asarray(table, dtype=np.float64), kernel=None)
    for part in np.array_split(np.arange(200), 2):
        plain.partial_fit(pairs[part], y[part])
    assert np.array_equal(plain.predict_proba(pairs), chances)
    assert np.array_equal(plain.predict(used), model.predict(used))
    assert np.array_equal(model.posterior_.mean(used), model.posterior_.mean(table[used]))


# -- what pieces have in common --------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        {"kernel": RBF(2.0)},
        {"kernel__length_scale": 2.0},
        {"drift": "wiener"},
        {"seasons": [3.0]},
        {"id_column": 0},
    ],
    ids=str,
)
def test_a_stream_has_one_prior(other):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2, 2)), np.arange(20) % 2
    model = PairwisePreferenceRegressor(RBF(1.0), inference="svi", optimizer=None)
    model.partial_fit(X, y)
    before = model.predict(X)
    model.set_params(**other)
    with pytest.raises(ValueError, match=r"got (kernel|drift|seasons|id_column)=.*fit all answers"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("drift", ["matern12", "matern32", "wiener"])
def test_scales_of_time_are_those_of_all_pieces(drift):
    rng = np.random.default_rng(1)
    names = np.array(list("abcd"))
    games = names[np.array([rng.choice(4, 2, replace=False) for _ in range(24)])]
    time, y = np.sort(rng.uniform(0.0, 10.0, 24)), rng.integers(0, 2, 24)
    options = {"drift": drift, "inference": EP(items="independent"), "optimizer": None}
    whole = PairwisePreferenceRegressor(**options).fit(games, y, time=time)
    pieces = PairwisePreferenceRegressor(**options).fit(games[:8], y[:8], time=time[:8])
    for part in (slice(8, 16), slice(16, 24)):
        pieces.partial_fit(games[part], y[part], time=time[part])
    chances = [each.predict_proba(games, time=time) for each in (whole, pieces)]
    np.testing.assert_allclose(*chances, atol=1e-6)


def test_scales_of_first_times_are_said_where_answers_are_filtered():
    with chains_alone():
        games, time = [["a", "b"], ["b", "c"], ["a", "c"]], [0.0, 1.0, 2.0]
        options = {"inference": EP(items="independent"), "optimizer": None}
        model = PairwisePreferenceRegressor(drift="matern12", **options).fit(games, time=time)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.partial_fit(games, time=[2.0, 3.0, 4.0])
        with pytest.warns(UserWarning, match=r"first answers, which span 2; .* 6.*drift=Matern"):
            model.partial_fit(games, time=[4.0, 5.0, 6.0])
        own = PairwisePreferenceRegressor(drift=Matern(2.0, nu=0.5), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            own.fit(games, time=time).partial_fit(games, time=[3.0, 4.0, 9.0])
