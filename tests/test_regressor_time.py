"""time= and drift=: the model with times is the one whose kernel sees a column of them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.data import check_training
from skpref.duels import (
    from_choices,
    from_columns,
    from_rankings,
    from_votes,
    ranking_groups,
)
from skpref.fitting import check_settings, make_model
from skpref.fitting._settings import fix_hyperparameters as held_at
from skpref.inference import EP, HMC, SVI, Gibbs, Laplace
from skpref.kernels import Identity, OnColumns, Wiener
from skpref.preprocessing import Itemwise

N = 60


def games(n=N, n_items=5, seed=0):
    """Pairs of items, when they met, and which won: utilities turn in opposite directions."""
    rng = np.random.default_rng(seed)
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    time = rng.uniform(2000.0, 2010.0, n).round(2)
    utility = lambda i: np.sin(i + 0.5 * (time - 2000.0) * (-1.0) ** i)  # noqa: E731
    won = utility(first) - utility(second) + 0.4 * rng.standard_normal(n) > 0.0
    return np.column_stack([first, second]), won.astype(np.int64), time


PAIRS, Y, TIME = games()
NAMES = np.array(["ann", "bob", "cid", "dan", "eve"])
TABLE = ItemTable.from_names(NAMES)
FEATURES = np.random.default_rng(7).standard_normal((5, 2))
ASKED = np.array([[0, 1], [2, 3], [4, 0]])
WHEN = np.array([1999.0, 2004.5, 2013.0])


def rows(pairs, time, values=None):
    """Duels of items with their times as the last column, by hand."""
    values = np.arange(5.0)[:, None] if values is None else values
    times = np.repeat((time - TIME.min())[:, None, None], pairs.shape[1], axis=1)
    return np.concatenate([values[pairs], times], axis=2)


def fix_hyperparameters(**params):
    return PairwisePreferenceRegressor(optimizer=None, noise_variance=0.2, **params)


WALK = 0.7 * Matern(2.0, nu=0.5)
BY_HAND = OnColumns(Identity(), [0]) + OnColumns(Identity(), [0]) * OnColumns(WALK, [1])


@pytest.mark.parametrize("engine", ["ep", "laplace", "svi"])
def test_names_at_times_are_rows_with_a_column_of_time(engine):
    by_hand = fix_hyperparameters(kernel=BY_HAND, inference=engine).fit(rows(PAIRS, TIME), Y)
    expected = by_hand.predict_proba(rows(ASKED, WHEN))
    for params, X, asked in (
        ({}, NAMES[PAIRS], NAMES[ASKED]),
        ({"items": TABLE}, PAIRS, ASKED),
        ({"kernel": Identity(), "items": TABLE}, PAIRS, NAMES[ASKED]),
    ):
        model = fix_hyperparameters(drift=WALK, inference=engine, **params).fit(X, Y, time=TIME)
        assert_allclose(model.predict_proba(asked, time=WHEN), expected, atol=1e-10)
        log = model.predict_log_proba(asked, time=WHEN)
        assert_allclose(log, np.log(expected), atol=1e-9)
    assert model.n_features_in_ == 1
    margin = by_hand.predict(rows(ASKED, WHEN))
    assert_allclose(model.predict(asked, time=WHEN), margin, atol=1e-10)
    assert_allclose(model.decision_function(asked, time=WHEN), margin, atol=1e-10)
    items = np.column_stack([ASKED[:, 0], WHEN - TIME.min()])
    found = model.predict(ASKED[:, 0], time=WHEN, return_std=True)
    assert_allclose(found, by_hand.predict(items, return_std=True), atol=1e-10)
    draws = model.sample_y(ASKED[:, 0], 3, time=WHEN)
    assert_allclose(draws, by_hand.sample_y(items, 3), atol=1e-7)
    expected = by_hand.score(rows(PAIRS, TIME), Y)
    assert model.score(PAIRS, Y, time=TIME) == expected


@pytest.mark.parametrize("engine", [HMC(20, chains=4), Gibbs(20, chains=4)])
def test_sampled_engines_likewise(engine):
    settings = {"inference": engine, "random_state": 0}
    by_hand = fix_hyperparameters(kernel=BY_HAND, **settings).fit(rows(PAIRS, TIME), Y)
    model = fix_hyperparameters(drift=WALK, items=TABLE, **settings).fit(PAIRS, Y, time=TIME)
    found = model.predict_proba(ASKED, time=WHEN)
    assert_allclose(found, by_hand.predict_proba(rows(ASKED, WHEN)), atol=1e-10)


@pytest.mark.parametrize("drift", ["wiener", "matern12", "matern32", "matern52"])
def test_features_drift_by_rows_beside_the_kernel_of_features(drift):
    static = RBF([1.0, 2.0])
    model = fix_hyperparameters(kernel=static, drift=drift).fit(FEATURES[PAIRS], Y, time=TIME)
    parts = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
    span = np.ptp(TIME)
    if drift == "wiener":
        walk = OnColumns(Wiener(0.1 / span), [2])
    else:
        walk = 0.1 * OnColumns(Matern(span / 3.0, nu=parts[drift]), [2])
    by_hand = OnColumns(static, [0, 1]) + walk * OnColumns(Identity(), [0, 1])
    expected = fix_hyperparameters(kernel=by_hand).fit(rows(PAIRS, TIME, FEATURES), Y)
    asked, found = rows(ASKED, WHEN, FEATURES), model.predict_proba(FEATURES[ASKED], time=WHEN)
    assert_allclose(found, expected.predict_proba(asked), atol=1e-10)
    assert model.n_features_in_ == 2
    evidence = expected.log_marginal_likelihood_value_
    assert_allclose(model.log_marginal_likelihood_value_, evidence, atol=1e-10)


def test_a_drift_begins_in_the_unit_of_the_kernel_beside_it():
    wide = fix_hyperparameters(kernel=4.0 * Identity(), drift="matern12").fit(
        NAMES[PAIRS], Y, time=TIME
    )
    assert wide.kernel_.k2.k1.constant_value == pytest.approx(0.4)
    rate = fix_hyperparameters(kernel=4.0 * Identity(), drift="wiener").fit(
        NAMES[PAIRS], Y, time=TIME
    )
    assert rate.kernel_.k2.k2.kernel.rate == pytest.approx(0.4 / np.ptp(TIME))


def test_ids_drift_and_their_features_do_not():
    values = np.column_stack([np.arange(5.0), FEATURES])
    model = fix_hyperparameters(drift="wiener", id_column=0).fit(values[PAIRS], Y, time=TIME)
    walk = OnColumns(Identity(), [0]) * OnColumns(Wiener(0.1 / np.ptp(TIME)), [3])
    without = fix_hyperparameters(id_column=0).fit(values[PAIRS], Y).kernel_
    assert repr(model.kernel_) == repr(without + walk)
    by_hand = fix_hyperparameters(kernel=without + walk).fit(rows(PAIRS, TIME, values), Y)
    found = model.predict_proba(values[ASKED], time=WHEN)
    assert_allclose(found, by_hand.predict_proba(rows(ASKED, WHEN, values)), atol=1e-10)


def test_a_kernel_alone_sees_the_time_as_its_last_column():
    kernel = OnColumns(Identity(), [0]) * OnColumns(Matern(3.0) + ExpSineSquared(1.0, 4.0), [1])
    model = fix_hyperparameters(kernel=kernel).fit(NAMES[PAIRS], Y, time=TIME)
    assert model.kernel_ == kernel
    by_hand = fix_hyperparameters(kernel=kernel).fit(rows(PAIRS, TIME), Y)
    found = model.predict_proba(NAMES[ASKED], time=WHEN)
    assert_allclose(found, by_hand.predict_proba(rows(ASKED, WHEN)), atol=1e-10)


def test_a_kernel_that_takes_times_for_names_is_warned_of():
    with pytest.warns(UserWarning, match=r'share nothing. Say how they change, drift="matern12"'):
        fix_hyperparameters(kernel=Identity()).fit(NAMES[PAIRS], Y, time=TIME)


def test_ties_grades_order_and_weights():
    rng = np.random.default_rng(3)
    grades = np.where(rng.random(N) < 0.3, 0, np.where(Y == 1, 1, -1) * rng.integers(1, 3, N))
    order, weight = rng.choice([-1, 0, 1], N), rng.integers(1, 4, N).astype(float)
    told = {"tie_threshold": 0.2, "grade_thresholds": (0.8,), "order_effect": 0.3}
    given = {"order": order, "sample_weight": weight}
    by_hand = fix_hyperparameters(kernel=BY_HAND, **told).fit(rows(PAIRS, TIME), grades, **given)
    model = fix_hyperparameters(drift=WALK, **told).fit(NAMES[PAIRS], grades, time=TIME, **given)
    assert model.classes_.tolist() == [-2, -1, 0, 1, 2]
    for shown in (None, [1, 0, -1]):
        expected = by_hand.predict_proba(rows(ASKED, WHEN), order=shown)
        found = model.predict_proba(NAMES[ASKED], order=shown, time=WHEN)
        assert_allclose(found, expected, atol=1e-10)


def test_judges():
    who = np.arange(N) % 3
    by_hand = fix_hyperparameters(kernel=BY_HAND).fit(rows(PAIRS, TIME), Y, judges=who)
    model = fix_hyperparameters(drift=WALK).fit(NAMES[PAIRS], Y, judges=who, time=TIME)
    asked = {"judges": [0, 1, 9]}
    expected = by_hand.predict_proba(rows(ASKED, WHEN), **asked)
    assert_allclose(model.predict_proba(NAMES[ASKED], time=WHEN, **asked), expected, atol=1e-10)
    assert_allclose(model.judges_.reliability, by_hand.judges_.reliability, atol=1e-10)


@pytest.mark.parametrize("padded", [False, True])
def test_choices_and_rankings_from_sets(padded):
    sets = np.array([[0, 1, 2], [2, 3, 4], [4, 1, 0], [3, 0, 2]])
    ranks = np.array([[1, 2, 3], [2, 1, 2], [3, 2, 1], [1, 2, 2]])
    if padded:
        sets[1, 2], ranks[1, 2] = -1, 0
    time = TIME[:4]
    by_hand = rows(sets, time)
    by_hand[sets < 0] = np.nan
    expected = fix_hyperparameters(kernel=BY_HAND).fit(by_hand, ranks)
    model = fix_hyperparameters(drift=WALK, items=TABLE).fit(sets, ranks, time=time)
    assert time.min() > TIME.min()  # such a walk does not know where times begin
    found = model.predict_proba(sets, time=time + 0.5)
    moved = by_hand.copy()
    moved[:, :, 1] += 0.5
    assert_allclose(found, expected.predict_proba(moved), atol=1e-8)
    assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    utilities = model.predict(sets, time=time)
    assert_allclose(utilities, expected.predict(by_hand), atol=1e-8, equal_nan=True)
    assert model.score(sets, ranks, time=time) == expected.score(by_hand, ranks)


def test_rated_items():
    rng = np.random.default_rng(5)
    values, ratings, time = FEATURES[rng.integers(5, size=20)], rng.normal(size=20), TIME[:20]
    qid, static = np.repeat([0, 1], 10), RBF()
    by_hand = OnColumns(static, [0, 1]) + OnColumns(Identity(), [0, 1]) * OnColumns(WALK, [2])
    items = np.column_stack([values, time])
    expected = fix_hyperparameters(kernel=by_hand).fit(items, ratings, qid=qid)
    model = fix_hyperparameters(kernel=static, drift=WALK).fit(values, ratings, qid=qid, time=time)
    assert model.n_features_in_ == 2
    assert_allclose(model.predict(values, time=time), expected.predict(items), atol=1e-10)
    found = model.score(values, ratings, qid=qid, time=time)
    assert found == expected.score(items, ratings, qid=qid)


def test_sets_of_a_frame_and_rated_items_with_ids():
    frame = pd.DataFrame(FEATURES, columns=["speed", "size"], index=NAMES)
    sets = [["ann", "bob", "cid"], ["dan", "eve"], ["cid", "eve", "ann"]]
    X, y = from_choices(sets, [0, 1, 2], frame)
    places = np.array([[0, 1, 2], [3, 4, -1], [2, 4, 0]])
    time = np.array([1.0, 2.0, 5.0])
    static = RBF()
    model = fix_hyperparameters(kernel=static, drift=WALK).fit(X, y, time=time)
    direct = fix_hyperparameters(kernel=static, drift=WALK, items=FEATURES).fit(
        places, y, time=time
    )
    found = model.predict_proba(X, time=3.0)
    assert_allclose(found, direct.predict_proba(places, time=3.0), atol=1e-8)
    items, ratings = np.column_stack([np.arange(20) % 5, np.repeat(FEATURES, 4, axis=0)]), Y[:20]
    rated = fix_hyperparameters(id_column=0, drift="wiener").fit(
        items, ratings + np.arange(20.0), time=TIME[:20]
    )
    by_hand = fix_hyperparameters(kernel=rated.kernel_).fit(
        np.column_stack([items, TIME[:20] - TIME[:20].min()]), ratings + np.arange(20.0)
    )
    asked = np.column_stack([items[:3], [0.0, 1.0, 20.0]])
    when = TIME[:20].min() + asked[:, 3]
    assert_allclose(rated.predict(items[:3], time=when), by_hand.predict(asked), atol=1e-9)


# -- streams -------------------------------------------------------------------------------


def test_pieces_of_a_stream_keep_the_first_origin_and_move_now():
    settings = {"kernel": BY_HAND, "inference": SVI(200), "n_learning_answers": None}
    order = np.argsort(TIME)
    by_hand, model = (
        fix_hyperparameters(**settings),
        fix_hyperparameters(**{**settings, "kernel": None, "drift": WALK}),
    )
    for piece in np.array_split(order, 3):
        by_hand.partial_fit(rows(PAIRS[piece], TIME[piece]), Y[piece])
        model.partial_fit(NAMES[PAIRS[piece]], Y[piece], time=TIME[piece])
        assert model.posterior_.reader.time.times(0.0) == TIME.min()
        assert model.posterior_.reader.time.times(
            model.posterior_.reader.time.now
        ) == pytest.approx(TIME[piece].max(), abs=1e-9)
    found = model.predict_proba(NAMES[ASKED], time=WHEN)
    names = model.items_.names.tolist()
    places = np.array([names.index(name) for name in NAMES])
    assert sorted(places) == list(range(5))
    assert_allclose(found, by_hand.predict_proba(rows(ASKED, WHEN)), atol=1e-6)
    with pytest.raises(ValueError, match="got answers without time= after answers with"):
        model.partial_fit(NAMES[PAIRS], Y)
    with pytest.raises(ValueError, match="got answers with time= after answers without"):
        by_hand.partial_fit(rows(PAIRS, TIME), Y, time=TIME)
    with pytest.raises(ValueError, match=r"fitted on numbers. Give times of the same kind"):
        model.partial_fit(NAMES[PAIRS], Y, time=pd.Timestamp("2024-01-01"))


# -- what does not matter ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drift", "learned"),
    [
        ("wiener", False),
        ("matern12", False),
        ("matern52", False),
        ("wiener", True),
        pytest.param("matern52", True, marks=pytest.mark.slow),
    ],
)
def test_unit_and_origin_of_times_do_not_matter(drift, learned):
    params = {"drift": drift, "optimizer": "fmin_l_bfgs_b" if learned else None}
    plain = PairwisePreferenceRegressor(**params).fit(NAMES[PAIRS], Y, time=TIME)
    # Powers of two, so that the search meets the same numbers; and of ten, where it may not.
    found = plain.predict_proba(NAMES[ASKED], time=WHEN)
    for factor, shift, error in ((2.0**20, 0.0, 1e-7), (1e6, 0.0, 1e-4), (1.0, 512.0, 1e-4)):
        moved = clone(plain).fit(NAMES[PAIRS], Y, time=factor * (TIME - 2000.0) + shift)
        again = moved.predict_proba(NAMES[ASKED], time=factor * (WHEN - 2000.0) + shift)
        assert_allclose(again, found, atol=error if learned else 1e-9)


def test_the_order_of_answers_and_the_zone_of_their_clocks_do_not_matter():
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(100.0 * (TIME - 2000.0), unit="D")
    turn = np.random.default_rng(0).permutation(N)
    utc = days.tz_localize("UTC")
    plain = fix_hyperparameters(drift="matern32").fit(NAMES[PAIRS], Y, time=utc)
    turned = fix_hyperparameters(drift="matern32").fit(NAMES[PAIRS[turn]], Y[turn], time=utc[turn])
    tokyo = fix_hyperparameters(drift="matern32").fit(
        NAMES[PAIRS], Y, time=utc.tz_convert("Asia/Tokyo")
    )
    naive = fix_hyperparameters(drift="matern32").fit(NAMES[PAIRS], Y, time=days)
    numbers = fix_hyperparameters(drift="matern32").fit(
        NAMES[PAIRS], Y, time=100.0 * (TIME - 2000.0)
    )
    when = days[:3] + pd.Timedelta(40.5, unit="D")
    found = plain.predict_proba(NAMES[ASKED], time=when.tz_localize("UTC"))
    for model, asked in (
        (turned, when.tz_localize("UTC")),
        (tokyo, when.tz_localize("UTC").tz_convert("America/New_York")),
        (naive, when),
        (numbers, 100.0 * (TIME[:3] - 2000.0) + 40.5),
    ):
        assert_allclose(model.predict_proba(NAMES[ASKED], time=asked), found, atol=1e-8)


def test_static_answers_let_go_of_the_drift():
    rng = np.random.default_rng(2)
    pairs, _, time = games(400)
    utility = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
    y = (utility[pairs[:, 0]] - utility[pairs[:, 1]] + 0.7 * rng.standard_normal(400) > 0).astype(
        int
    )
    plain = PairwisePreferenceRegressor().fit(NAMES[pairs[:300]], y[:300])
    drifts = PairwisePreferenceRegressor(drift="matern12").fit(
        NAMES[pairs[:300]], y[:300], time=time[:300]
    )
    of_rest = y[300:]
    losses = [
        -np.mean(np.log(proba[np.arange(100), of_rest]))
        for proba in (
            plain.predict_proba(NAMES[pairs[300:]]),
            drifts.predict_proba(NAMES[pairs[300:]], time=time[300:]),
        )
    ]
    assert losses[1] < losses[0] + 0.01


@pytest.mark.slow
def test_drift_is_found_where_there_is_some():
    pairs, y, time = games(300)
    model = PairwisePreferenceRegressor(drift="matern32").fit(NAMES[pairs], y, time=time)
    static = PairwisePreferenceRegressor().fit(NAMES[pairs], y)
    gain = model.log_marginal_likelihood_value_ - static.log_marginal_likelihood_value_
    assert gain > 20.0
    _, evidence = model.log_marginal_likelihood(eval_gradient=True)
    theta = np.r_[model.kernel_.theta, np.log(model.noise_variance_)]
    for step in 1e-5 * np.eye(len(theta)):
        ends = [model.log_marginal_likelihood(theta + side * step) for side in (1.0, -1.0)]
        slope = (ends[0] - ends[1]) / 2e-5
        assert_allclose(slope, evidence @ step / 1e-5, atol=1e-4)
    early, late = model.predict(["ann"] * 2, time=[2005.0, 2030.0], return_std=True)[1]
    assert late > early  # less is known of what is to come


# -- now -----------------------------------------------------------------------------------


def test_the_last_time_of_training_is_now():
    model = fix_hyperparameters(drift=WALK).fit(NAMES[PAIRS], Y, time=TIME)
    last = TIME.max()
    now = model.predict_proba(NAMES[ASKED])
    assert_allclose(now, model.predict_proba(NAMES[ASKED], time=last), atol=0.0)
    posterior, names = model.posterior_, NAMES[:3]
    assert_allclose(posterior.mean(names), model.predict(names, time=last), atol=0.0)
    assert_allclose(posterior.var(TABLE), model.predict(TABLE, return_std=True)[1] ** 2, atol=1e-12)
    then = posterior.at_time(2003.0)
    assert_allclose(then.mean(names), model.predict(names, time=2003.0), atol=0.0)
    won = then.win_probability(NAMES[ASKED[:, 0]], NAMES[ASKED[:, 1]])
    assert_allclose(won, model.predict_proba(NAMES[ASKED], time=2003.0)[:, 1], atol=1e-12)
    assert_allclose(posterior.at_time(None).mean(names), posterior.mean(names), atol=0.0)
    someone = posterior.margin(["ann"], ["never seen"])[1] > posterior.margin(["ann"], ["bob"])[1]
    assert someone.all()
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(names, time=2003.0), then.mean(names), atol=0.0)


def test_rows_with_their_time_are_taken_by_a_posterior():
    model = fix_hyperparameters(drift=WALK, items=TABLE).fit(PAIRS, Y, time=TIME)
    items = np.column_stack([[0.0, 3.0], [1.5, 4.0]])
    asked = model.predict(NAMES[[0, 3]], time=TIME.min() + items[:, 1])
    assert_allclose(model.posterior_.mean(items), asked, atol=1e-12)
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.posterior_.mean(np.array([[0.0, np.nan]]))


def test_gradients_of_a_posterior_have_the_time_last():
    kernel = RBF(1.5)
    model = fix_hyperparameters(kernel=kernel, drift=0.3 * Matern(2.0, nu=2.5)).fit(
        FEATURES[PAIRS], Y, time=TIME
    )
    posterior = model.posterior_
    items = np.column_stack([FEATURES[:2], [2.0, 5.0]])
    gradient, step = posterior.mean_gradient(items), 1e-5
    assert gradient.shape == (2, 3)
    moved = [posterior.mean(items + side * np.array([0.0, 0.0, step])) for side in (1.0, -1.0)]
    assert_allclose(gradient[:, 2], (moved[0] - moved[1]) / (2.0 * step), atol=1e-7)


# -- containers and pipelines --------------------------------------------------------------


def test_frames_and_pipelines_with_items_of_features():
    frame = pd.DataFrame(FEATURES, columns=["speed", "size"])
    duels = FEATURES[PAIRS]
    pipeline = make_pipeline(Itemwise(StandardScaler()), fix_hyperparameters(drift=WALK))
    pipeline.fit(duels, Y, pairwisepreferenceregressor__time=TIME)
    scaler = StandardScaler().fit(FEATURES)
    inner = fix_hyperparameters(drift=WALK).fit(scaler.transform(FEATURES)[PAIRS], Y, time=TIME)
    found = pipeline.predict_proba(duels[:3], time=WHEN)
    expected = inner.predict_proba(scaler.transform(FEATURES)[PAIRS[:3]], time=WHEN)
    assert_allclose(found, expected, atol=1e-10)
    table = ItemTable(frame)
    model = fix_hyperparameters(drift=WALK, items=table).fit(PAIRS, Y, time=TIME)
    assert model.feature_names_in_.tolist() == ["speed", "size"]
    assert model.n_features_in_ == 2
    direct = fix_hyperparameters(drift=WALK, items=FEATURES).fit(PAIRS, Y, time=TIME)
    assert_allclose(model.predict(frame, time=2004.0), direct.predict(FEATURES, time=2004.0))
    assert_allclose(model.predict(table), direct.predict(FEATURES, time=TIME.max()))


def test_columns_of_a_frame():
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(TIME, unit="D")
    frame = pd.DataFrame(
        {"home": NAMES[PAIRS[:, 0]], "away": NAMES[PAIRS[:, 1]], "won": Y.astype(float)}
    )
    frame["date"], frame["venue"] = days, np.where(Y == 1, 1, 0)
    frame.loc[3, "won"] = np.nan
    with pytest.warns(UserWarning, match="1 of 60 duels are left out"):
        X, y, order, time = from_columns(
            frame.assign(won=frame["won"].map({1.0: "home", 0.0: "away"})),
            [],
            [],
            "won",
            ids=("home", "away"),
            order="venue",
            time="date",
        )
    kept = np.delete(np.arange(N), 3)
    assert len(X) == len(y) == len(order) == len(time) == N - 1
    assert np.array_equal(time, days.to_numpy()[kept])
    model = fix_hyperparameters(drift="wiener").fit(X, y, order=order, time=time)
    plain = fix_hyperparameters(drift="wiener").fit(NAMES[PAIRS[kept]], Y[kept], time=TIME[kept])
    found = model.predict(pd.DataFrame({"id": NAMES}), time=days[0])
    assert_allclose(found, plain.predict(NAMES, time=TIME[0]), atol=1e-8)
    with pytest.raises(ValueError, match="no column"):
        from_columns(frame, [], [], True, ids=("home", "away"), time="when")
    with pytest.raises(ValueError, match=r"got 2 times for"):
        from_columns(frame, [], [], True, ids=("home", "away"), time=[1.0, 2.0])


def test_votes_bring_their_times():
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(TIME - 2000.0, unit="D")
    table = {"model_a": NAMES[PAIRS[:, 0]], "model_b": NAMES[PAIRS[:, 1]], "day": days}
    table["winner"] = np.where(Y == 1, "model_a", "model_b")
    votes = from_votes(table, time="day")
    model = PairwisePreferenceRegressor(drift=WALK, **votes.params).set_params(optimizer=None)
    model.set_params(noise_variance=0.2).fit(votes.X, votes.y, time=votes.times)
    plain = fix_hyperparameters(drift=WALK).fit(NAMES[PAIRS], Y, time=TIME)
    found = model.predict_proba(votes.X[:3], time=votes.times[:3])
    assert_allclose(found, plain.predict_proba(NAMES[PAIRS[:3]], time=TIME[:3]), atol=1e-7)


def test_rankings_as_duels_have_the_times_of_their_lists():
    lists, times = [["ann", "bob", "cid"], ["cid", "ann"]], np.array([3.0, 7.0])
    X, y = from_rankings(lists)
    model = fix_hyperparameters(drift=WALK).fit(X, y, time=times[ranking_groups(lists)])
    items = model.comparisons_.items
    assert items.shape == (5, 2)
    assert sorted(items[:, 1]) == [0.0, 0.0, 0.0, 4.0, 4.0]


def test_a_fit_held_at_its_hyperparameters_is_the_same():
    for drift in ("wiener", None):
        model = PairwisePreferenceRegressor(drift=drift).fit(NAMES[PAIRS], Y, time=TIME)
        again = held_at(model).fit(NAMES[PAIRS], Y, time=TIME)
        assert again.kernel_ == model.kernel_
        found = again.predict_proba(NAMES[ASKED], time=WHEN)
        assert_allclose(found, model.predict_proba(NAMES[ASKED], time=WHEN), atol=1e-6)


def test_an_item_counts_once_however_often_it_met_others(capsys):
    fix_hyperparameters(drift=WALK, verbose=1).fit(NAMES[PAIRS], Y, time=TIME)
    assert "60 duels of 5 items fitted" in capsys.readouterr().out


def test_many_answers_of_names_are_independent_items():
    n = 4100
    pairs, y, time = games(n, n_items=50)
    table = ItemTable.from_names(np.arange(50).astype(str))
    time = time + 1e-6 * np.arange(n)
    model = PairwisePreferenceRegressor(drift="wiener", items=table)
    training = check_training(model, pairs, y, {"time": time})
    chosen = make_model(model, check_settings(model), training).engine
    assert isinstance(chosen, EP) and chosen.items == "independent"
    few = check_training(model, pairs[:100], y[:100], {"time": time[:100]})
    assert make_model(model, check_settings(model), few).engine.items == "joint"


def test_many_answers_count_by_items_at_times():
    n = 4100
    pairs, y, time = games(n, n_items=50)
    model = PairwisePreferenceRegressor(drift="wiener")
    X = np.random.default_rng(0).normal(size=(50, 2))[pairs]
    training = check_training(model, X, y, {"time": time + 1e-6 * np.arange(n)})
    with pytest.warns(UserWarning, match=r"4100 distinct duels among 8200 items.*SVI"):
        assert isinstance(make_model(model, check_settings(model), training).engine, SVI)


# -- few and equal times -------------------------------------------------------------------


@pytest.mark.parametrize("drift", ["wiener", "matern12"])
def test_equal_times_one_answer_and_gaps_of_years(drift):
    model = PairwisePreferenceRegressor(drift=drift, noise_variance_bounds="fixed")
    one = clone(model).fit(NAMES[[[0, 1]]], time=5.0)
    assert 0.5 < one.predict_proba(NAMES[[[0, 1]]])[0, 1] < 1.0
    assert one.predict_proba(NAMES[[[0, 1]]], time=1e9)[0, 1] >= 0.5
    equal = clone(model).fit(NAMES[PAIRS], Y, time=3)
    assert np.all(np.isfinite(equal.predict_proba(NAMES[ASKED], time=WHEN)))
    time = np.where(np.arange(N) < 30, 0.0, 1e4)
    apart = clone(model).fit(NAMES[PAIRS], Y, time=time)
    assert np.all(np.isfinite(apart.predict_proba(NAMES[ASKED], time=WHEN)))


# -- refused -------------------------------------------------------------------------------


def test_refused_before_any_work():
    with pytest.raises(ValueError, match=r"drift=.wiener. without time=.*Pass time="):
        fix_hyperparameters(drift="wiener").fit(NAMES[PAIRS], Y)
    with pytest.raises(ValueError, match=r"drift .* must be one of"):
        fix_hyperparameters(drift="brownian").fit(NAMES[PAIRS], Y, time=TIME)
    with pytest.raises(TypeError, match="drift must be None, one of"):
        fix_hyperparameters(drift=0.3).fit(NAMES[PAIRS], Y, time=TIME)
    with pytest.raises(ValueError, match="first in row 1"):
        fix_hyperparameters().fit(NAMES[PAIRS], Y, time=np.where(np.arange(N) == 1, np.nan, TIME))
    with pytest.raises(ValueError, match=r"got 60 times for 3"):
        fix_hyperparameters(drift=WALK).fit(NAMES[PAIRS], Y, time=TIME).predict_proba(
            NAMES[ASKED], time=TIME
        )
    static = fix_hyperparameters().fit(NAMES[PAIRS], Y)
    for ask in (static.predict, static.predict_proba, static.decision_function, static.sample_y):
        with pytest.raises(ValueError, match="fitted without times"):
            ask(NAMES[ASKED], time=WHEN)
    with pytest.raises(ValueError, match="fitted without times"):
        static.score(NAMES[ASKED], [1, 1, 1], time=WHEN)
    with pytest.raises(ValueError, match="fitted without times"):
        static.posterior_.at_time(3.0)


def test_a_refit_without_times_has_none():
    model = fix_hyperparameters().fit(NAMES[PAIRS], Y, time=TIME)
    static = model.fit(NAMES[PAIRS], Y).predict_proba(NAMES[ASKED])
    assert_allclose(
        static, fix_hyperparameters().fit(NAMES[PAIRS], Y).predict_proba(NAMES[ASKED]), atol=0.0
    )


def test_engines_as_options_take_times():
    for engine in (EP(damping=0.1), Laplace()):
        model = fix_hyperparameters(drift=ConstantKernel(0.5) * Matern(2.0), inference=engine)
        found = model.fit(NAMES[PAIRS], Y, time=TIME).predict_proba(NAMES[ASKED], time=WHEN)
        assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
