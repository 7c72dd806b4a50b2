"""Who the items of a leaderboard are: ids, names and labels, from models of every form."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import HallucinationBelieverOptimizer, ItemTable, PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.duels import from_votes
from skpref.inspection import leaderboard, leaderboards, win_rates
from skpref.optimize import ActiveLearner, PreferenceOptimizer
from skpref.preprocessing import Itemwise

PLAYERS = np.array(["dan", "ann", "eve", "bob", "cid"], dtype=object)
STRENGTH = np.array([3.0, 1.0, 5.0, 2.0, 4.0])
BEST_FIRST = ["eve", "cid", "dan", "bob", "ann"]
PAIRS = np.array([(i, j) for i in range(5) for j in range(5) if i != j])


def contests(pd, who=PLAYERS):
    """Duels of a frame: the stronger always wins, and a column of ages says as much."""
    from skpref.duels import from_columns

    i, j = PAIRS.T
    frame = pd.DataFrame(
        {"a": who[i], "b": who[j], "age_a": STRENGTH[i], "age_b": STRENGTH[j]}
    ).assign(won=(STRENGTH[i] > STRENGTH[j]).astype(int))
    return from_columns(frame, ["age_a"], ["age_b"], "won", ids=("a", "b"), names=["age"])


def regressor(**options):
    return PairwisePreferenceRegressor(optimizer=None, noise_variance=0.1, **options)


def pipeline():
    from sklearn.compose import make_column_transformer

    columns = make_column_transformer(("passthrough", ["id"]), (StandardScaler(), ["age"]))
    return make_pipeline(Itemwise(columns), regressor(id_column=0))


@pytest.mark.parametrize("kind", ["model", "pipeline", "search"])
@pytest.mark.parametrize("who", [PLAYERS, np.array([70, 11, 93, 25, 42])], ids=["texts", "numbers"])
def test_ids_of_frames_and_of_training(kind, who):
    pd = pytest.importorskip("pandas")
    X, y = contests(pd, who)
    model = {
        "model": regressor,
        "pipeline": pipeline,
        "search": lambda: GridSearchCV(
            pipeline(), {"pairwisepreferenceregressor__noise_variance": [0.1]}, cv=2
        ),
    }[kind]()
    model.fit(X, y)
    said = dict(zip(PLAYERS.tolist(), who.tolist(), strict=True))
    ranked = [said[name] for name in BEST_FIRST]
    assert leaderboard(model).names.tolist() == ranked
    frame = pd.DataFrame({"id": who, "age": STRENGTH})
    assert leaderboard(model, frame).names.tolist() == ranked
    assert leaderboard(model, frame[::-1]).names.tolist() == ranked  # whatever the index
    assert leaderboard(model, ItemTable(frame)).names.tolist() == ranked
    assert win_rates(model, frame).names.tolist() == ranked
    new = pd.DataFrame({"id": [who[0], said["eve"] * 2], "age": [3.0, 9.0]})
    assert set(leaderboard(model, new).names) == set(new["id"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("who", [PLAYERS, np.array([70, 11, 93, 25, 42])], ids=["texts", "numbers"])
def test_ids_are_those_of_the_frame_where_a_posterior_is_ranked(library, who):
    frames = pytest.importorskip(library)
    X, y = contests(pytest.importorskip("pandas"), who)
    model = regressor().fit(X, y)
    said = dict(zip(PLAYERS.tolist(), who.tolist(), strict=True))
    frame = frames.DataFrame({"id": who.tolist(), "age": STRENGTH})
    for subject in (model, model.posterior_):
        assert leaderboard(subject, frame).names.tolist() == [said[name] for name in BEST_FIRST]


def test_names_in_a_frame_are_names_as_in_predict():
    pd = pytest.importorskip("pandas")
    model = regressor(items=ItemTable.from_names(PLAYERS)).fit(PAIRS, STRENGTH[PAIRS] @ [1, -1] > 0)
    frame = pd.DataFrame({"player": ["bob", "eve", "ann"]})
    assert leaderboard(model, frame).names.tolist() == ["eve", "bob", "ann"]
    np.testing.assert_array_equal(model.posterior_.mean(frame), model.predict(frame))


def test_ids_that_a_transformer_drops_are_read_off_the_frame():
    pd = pytest.importorskip("pandas")
    from sklearn.compose import make_column_transformer

    model = make_pipeline(
        Itemwise(make_column_transformer((StandardScaler(), ["age"]))), regressor()
    )
    model.fit(*contests(pd))
    frame = pd.DataFrame({"id": PLAYERS, "age": STRENGTH})
    assert leaderboard(model, frame).names.tolist() == BEST_FIRST
    assert len(leaderboard(model).names) == 5


def test_an_id_column_of_arrays_and_of_tables():
    coded = np.column_stack([[7.0, 3.0, 9.0, 1.0, 5.0], STRENGTH])
    y = (STRENGTH[PAIRS[:, 0]] > STRENGTH[PAIRS[:, 1]]).astype(int)
    model = regressor(id_column=0).fit(coded[PAIRS], y)
    assert leaderboard(model).names.tolist() == [9, 5, 7, 1, 3]
    assert leaderboard(model, coded[:2]).names.tolist() == [7, 3]
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"who": [7, 3, 9, 1, 5], "age": STRENGTH})
    model = regressor(id_column="who", items=table).fit(PAIRS, y)
    assert leaderboard(model).names.tolist() == [9, 5, 7, 1, 3]
    assert leaderboard(model, table[:2]).names.tolist() == [7, 3]
    named = table.set_axis(PLAYERS.tolist())
    model = regressor(id_column="who", items=named).fit(PAIRS, y)
    assert leaderboard(model).names.tolist() == BEST_FIRST  # the model may be asked by these


def test_ids_in_arrays_of_objects():
    pd = pytest.importorskip("pandas")
    model = regressor().fit(*contests(pd))
    rows = np.array([["ann", 1.0], ["zoe", 9.0]], dtype=object)
    assert set(leaderboard(model, rows).names) == {"ann", "zoe"}
    assert leaderboard(model.posterior_).names.tolist() == BEST_FIRST


@pytest.mark.parametrize("engine", ["laplace", "hmc", "svi"])
def test_ids_with_every_engine(engine):
    pd = pytest.importorskip("pandas")
    model = regressor(inference=engine, random_state=0).fit(*contests(pd))
    assert set(leaderboard(model, n_draws=100).names) == set(PLAYERS)


# -- optimizers and learners ------------------------------------------------------------------


def answered(optimizer, items):
    for first, second in PAIRS:
        optimizer.tell((items[first], items[second]), int(STRENGTH[first] > STRENGTH[second]))
    return optimizer


FEATURES = np.column_stack([STRENGTH, STRENGTH**2])


@pytest.mark.parametrize("made", [PreferenceOptimizer, HallucinationBelieverOptimizer])
@pytest.mark.parametrize(
    "names, ranked",
    [
        (PLAYERS.tolist(), BEST_FIRST),
        ([70, 11, 93, 25, 42], [93, 42, 70, 25, 11]),
        (None, [2, 4, 0, 3, 1]),  # rows of the candidates
    ],
    ids=["texts", "numbers", "none"],
)
def test_pools(made, names, ranked):
    candidates = FEATURES if names is None else ItemTable(FEATURES, names=names)
    optimizer = made(candidates=candidates, random_state=0)
    answered(optimizer, FEATURES if names is None else names)
    assert leaderboard(optimizer).names.tolist() == ranked
    asked = FEATURES[:2] if names is None else names[:2]
    assert leaderboard(optimizer, asked).names.tolist() == [
        n for n in ranked if n in (names or [0, 1])[:2]
    ]
    assert win_rates(optimizer).names.tolist() == ranked


def test_rows_of_a_pool_are_counted_with_those_that_stand_there_twice():
    twice = np.concatenate([FEATURES[:1], FEATURES])
    optimizer = answered(PreferenceOptimizer(candidates=twice, random_state=0), FEATURES)
    assert leaderboard(optimizer).names.tolist() == [3, 5, 0, 4, 2]


def test_a_pool_shows_candidates_that_no_answer_is_about():
    optimizer = PreferenceOptimizer(candidates=ItemTable.from_names(PLAYERS), random_state=0)
    optimizer.tell(("eve", "ann"), 1)
    assert set(leaderboard(optimizer).names) == set(PLAYERS)


def test_spaces_without_names_are_told_by_their_values():
    optimizer = PreferenceOptimizer({"dose": (0.0, 4.0), "kind": ["a", "b"]}, random_state=0)
    optimizer.tell(({"dose": 1.5, "kind": "a"}, {"dose": 0.123456, "kind": "b"}), 1)
    assert leaderboard(optimizer).names.tolist() == ["dose=1.5, kind=a", "dose=0.1235, kind=b"]
    optimizer = PreferenceOptimizer([(0.0, 4.0), (1.0, 2.0)], random_state=0)
    optimizer.tell([[1.5, 2.0], [0.5, 1.0]], 1)
    optimizer.tell([[1.5, 2.0], [3.5, 1.0]], 1)
    board = leaderboard(optimizer)
    assert board.names[0] == "(1.5, 2)" and len(board.names) == 3


def test_learners():
    learner = ActiveLearner(regressor(), ItemTable(FEATURES, names=PLAYERS), random_state=0)
    assert leaderboard(answered(learner, PLAYERS)).names.tolist() == BEST_FIRST
    assert leaderboard(learner, ["ann", "eve"]).names.tolist() == ["eve", "ann"]
    of_names = ItemTable.from_names(PLAYERS)
    learner = ActiveLearner(regressor(items=of_names), of_names, random_state=0)
    assert leaderboard(answered(learner, PLAYERS)).names.tolist() == BEST_FIRST
    scaled = make_pipeline(Itemwise(StandardScaler()), regressor())
    learner = ActiveLearner(scaled, FEATURES, random_state=0)
    assert leaderboard(answered(learner, FEATURES)).names.tolist() == [2, 4, 0, 3, 1]
    learner = ActiveLearner(regressor(), FEATURES[PAIRS], random_state=0)  # rows are of duels
    assert leaderboard(answered(learner, FEATURES)).names[:2].tolist() == ["(5, 25)", "(4, 16)"]


# -- users ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def several():
    """Ann likes what is strong, bob what is weak; names alone, features, ids."""
    y = (STRENGTH[PAIRS[:, 0]] > STRENGTH[PAIRS[:, 1]]).astype(int)
    users = ["ann"] * len(PAIRS) + ["bob"] * len(PAIRS)
    model = CollaborativePreferenceRegressor(
        RBF(2.0),
        noise_variance=0.1,
        items=ItemTable(STRENGTH[:, None], names=PLAYERS),
        optimizer=None,
    )
    return model.fit(np.concatenate([PAIRS, PAIRS]), np.concatenate([y, 1 - y]), users=users)


def test_the_board_of_one_user(several):
    assert leaderboard(several, user="ann").names.tolist() == BEST_FIRST
    assert leaderboard(several, user="bob").names.tolist() == BEST_FIRST[::-1]
    board = leaderboard(several, user="ann", level=0.7, n_draws=20_000)
    draws = several.sample_y(STRENGTH[:, None], 20_000, users=["ann"] * 5, random_state=1)
    above = (draws - draws.mean(axis=0))[board.position] / np.sqrt(0.1)
    np.testing.assert_allclose(board.utility, above.mean(axis=1), atol=0.08)
    np.testing.assert_allclose((above < board.lower[:, None]).mean(axis=1), 0.15, atol=0.015)
    np.testing.assert_allclose((above > board.upper[:, None]).mean(axis=1), 0.15, atol=0.015)
    best = (above.argmax(axis=0)[:, None] == np.arange(5)).mean(axis=0)
    np.testing.assert_allclose(board.probability_best, best, atol=0.02)


def test_somebody_of_the_population(several):
    """One person all along, of whom nothing is known but how people differ."""
    board = leaderboard(several, user="zoe", unit="logit")
    mean = several.predict(STRENGTH[:, None])[board.position]
    np.testing.assert_allclose(board.utility * board.unit_length, mean - mean.mean(), atol=1e-9)
    cov = several.predict(STRENGTH[:, None], return_cov=True, users=["zoe"] * 5)[1]
    own = cov - cov.mean(axis=0) - cov.mean(axis=1)[:, None] + cov.mean()
    width = 2.0 * 1.6448536269514722 * np.sqrt(np.diag(own))[board.position]
    np.testing.assert_allclose((board.upper - board.lower) * board.unit_length, width, rtol=1e-6)
    sure = leaderboard(several, user="ann", unit="logit")
    assert (sure.upper - sure.lower).mean() < 0.9 * (board.upper - board.lower).mean()


def test_win_rates_of_one_user(several):
    for user in ("bob", "zoe"):
        rates = win_rates(several, user=user)
        i, j = np.nonzero(~np.eye(5, dtype=bool))
        at = rates.position
        duels = np.column_stack([at[i], at[j]])
        proba = several.predict_proba(duels, users=[user] * 20)
        np.testing.assert_allclose(rates.win[i, j], proba[:, 1], atol=1e-9)


def test_whose_board_must_be_said(several):
    with pytest.raises(TypeError, match=r"fitted to several users.*Say whose: user="):
        leaderboard(several)
    with pytest.raises(TypeError, match="Say whose: user="):
        win_rates(several)
    model = regressor(items=ItemTable.from_names(PLAYERS)).fit(PAIRS)
    with pytest.raises(ValueError, match="user='ann' came, but a PairwisePreferenceRegressor has"):
        leaderboard(model, user="ann")
    alone = CollaborativePreferenceRegressor(items=ItemTable.from_names(PLAYERS), optimizer=None)
    alone.fit(PAIRS, users=["ann"] * 20)
    assert leaderboard(alone).utility.tolist() == leaderboard(alone, user="ann").utility.tolist()


def test_a_learner_of_several_users():
    model = CollaborativePreferenceRegressor(optimizer=None, noise_variance=0.1)
    learner = ActiveLearner(
        model, ItemTable(STRENGTH[:, None], names=PLAYERS), users=["ann", "bob"], random_state=0
    )
    for first, second in PAIRS:
        duel, won = (PLAYERS[first], PLAYERS[second]), STRENGTH[first] > STRENGTH[second]
        learner.tell(("ann", duel), won).tell(("bob", duel), not won)
    assert leaderboard(learner, user="ann").names.tolist() == BEST_FIRST
    assert leaderboard(learner, user="bob").names.tolist() == BEST_FIRST[::-1]


# -- win rates --------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["ep", "hmc"])
def test_win_rates_are_the_probabilities_of_duels(engine):
    table = ItemTable.from_names(PLAYERS)
    model = PairwisePreferenceRegressor(
        items=table,
        inference=engine,
        tie_threshold=0.2,
        order_effect=0.3,
        optimizer=None,
        noise_variance=0.3,
        random_state=0,
    )
    model.fit(PAIRS, np.sign(STRENGTH[PAIRS[:, 0]] - STRENGTH[PAIRS[:, 1]] + 1.0).astype(int))
    for order in (0, 1, -1):
        rates = win_rates(model, order=order)
        mean = model.predict(np.arange(5))
        assert np.all(np.diff(mean[rates.position]) <= 0.0)
        i, j = np.nonzero(~np.eye(5, dtype=bool))
        duels = np.column_stack([rates.position[i], rates.position[j]])
        proba = model.predict_proba(duels, order=np.full(20, order))
        np.testing.assert_allclose(rates.win[i, j], proba[:, 2], rtol=1e-7)
        np.testing.assert_allclose(rates.tie[i, j], proba[:, 1], rtol=1e-7)
        score = (proba[:, 2] + 0.5 * proba[:, 1]).reshape(5, 4).mean(axis=1)
        np.testing.assert_allclose(rates.score, score, rtol=1e-7)
    rates = win_rates(model, ["bob", "eve"])
    np.testing.assert_allclose(rates.win + rates.win.T + rates.tie, 1.0, rtol=1e-7)
    assert rates.names.tolist() == ["eve", "bob"] and rates.position.tolist() == [1, 0]
    if rates.frame is not None:
        assert rates.frame.loc["eve", "bob"] == rates.win[0, 1]
    with pytest.raises(
        ValueError, match=r"order must be an integer in \[-1, 1\]|order must lie in"
    ):
        win_rates(model, order=2)


def test_win_rates_of_few():
    model = regressor(items=ItemTable.from_names(PLAYERS)).fit(PAIRS[:3])
    alone = win_rates(model, ["ann"])
    assert alone.win.tolist() == [[0.5]] and np.isnan(alone.score).all()
    with pytest.raises(ValueError, match="items is empty"):
        win_rates(model, [])


def test_a_column_that_votes_would_name_is_refused_with_advice():
    table = {"model_a": list("xyzx"), "model_b": list("yzxy"), "winner": list("xyzx")}
    votes = from_votes(table | {"language": ["en", "de", "en", "en"]}, by="language")
    model = PairwisePreferenceRegressor(**votes.params, optimizer=None).fit(votes.X, votes.y)
    with pytest.raises(ValueError, match="Pass the votes of from_votes as items="):
        leaderboards(model, "language")
    with pytest.raises(ValueError) as raised:
        leaderboards(model, votes)
    assert len(str(raised.value)) < 250


VOTES = {
    "model_a": list("xyzxyz") * 4,
    "model_b": list("yzxzxy") * 4,
    "winner": list("xyxxxy") * 4,
    "length_a": [3.0, 5.0, 4.0, 1.0, 2.0, 6.0] * 4,
    "length_b": [2.0, 4.0, 6.0, 5.0, 3.0, 1.0] * 4,
    "language": ["en", "de", "de", "en", "en", "de"] * 4,
}


@pytest.mark.parametrize("columns", [{"controls": "length"}, {"by": "language"}], ids=str)
@pytest.mark.parametrize("numbers", [False, True])
def test_a_model_of_votes_knows_the_names_beside_controls_and_groups(columns, numbers):
    known = {"x": 70, "y": 2, "z": 33} if numbers else {name: name for name in "xyz"}
    said = {
        name: [known.get(cell, cell) for cell in column]
        if name in VOTES.keys() - {"language"}
        else column
        for name, column in VOTES.items()
    }
    votes = from_votes(said, **columns)
    model = PairwisePreferenceRegressor(**votes.params, optimizer=None).fit(votes.X, votes.y)
    ranked = leaderboard(model, votes).names.tolist()
    assert ranked == [known[name] for name in "xyz"]
    assert leaderboard(model).names.tolist() == ranked
    assert leaderboard(model.posterior_).names.tolist() == ranked
    assert leaderboard(model, ranked[:2], at={}).names.tolist() == ranked[:2]
    assert sorted(model.ids_.tolist()) == sorted(ranked) and model.items_ is None
    # What is asked of it are positions, as in votes.X.
    rows = votes.X.reshape(-1, votes.X.shape[2])
    np.testing.assert_allclose(model.predict(rows), model.posterior_.mean(rows))


def test_names_of_ids_are_of_positions():
    X = np.array([[[0.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 0.5]]])
    for wrong in (3.0, -1.0, 0.5):
        odd = X.copy()
        odd[0, 0, 0] = wrong
        with pytest.raises(ValueError, match=rf"integers from 0 to 2, got {wrong:g}"):
            regressor(items=list("abc"), id_column=0).fit(odd, [1, 0])


def test_names_of_ids_in_a_stream():
    votes = from_votes(VOTES, controls="length")
    model = PairwisePreferenceRegressor(**votes.params, optimizer=None, inference="svi")
    model.partial_fit(votes.X, votes.y)
    more = from_votes(
        {**VOTES, "model_a": list("wyzxyz") * 4, "winner": ["model_a"] * 12 + ["model_b"] * 12},
        controls="length",
        like=votes,
    )
    model.set_params(items=more.item_table).partial_fit(more.X, more.y)
    assert sorted(leaderboard(model).names.tolist()) == ["w", "x", "y", "z"]
    model.set_params(items=list("wxyz"))
    with pytest.raises(ValueError, match="do not begin with the 4"):
        model.partial_fit(more.X, more.y)
