"""leaderboard: intervals, ranks and chances of being best, against draws, closed forms, limits."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import HallucinationBelieverOptimizer, ItemTable, PairwisePreferenceRegressor
from skpref.fitting import Inspected
from skpref.inference import HMC
from skpref.inspection import leaderboard
from skpref.kernels import Identity, OnColumns
from skpref.preprocessing import Itemwise

GAMES = [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["ann", "bob"], ["cid", "ann"]]
DRAWS = 20_000


def players(engine="ep"):
    table = ItemTable.from_names(GAMES)
    model = PairwisePreferenceRegressor(
        items=table, inference=engine, optimizer=None, noise_variance=0.2, random_state=0
    )
    return model.fit(GAMES)


@pytest.fixture(scope="module", params=["ep", "hmc"])
def on_features(request):
    """A fixed model on two features, Gaussian or a mixture of draws, and items to rank."""
    rng = np.random.default_rng(3)
    duels = rng.uniform(size=(25, 2, 2))
    engine = HMC(draws=400) if request.param == "hmc" else request.param
    model = PairwisePreferenceRegressor(
        RBF(0.4), inference=engine, noise_variance=0.05, optimizer=None, random_state=0
    )
    return model.fit(duels), rng.uniform(size=(9, 2))


def share_error(share, n):
    """Four standard errors of a share of n draws, at least a few draws."""
    return 4.0 * np.sqrt(share * (1.0 - share) / n) + 4.0 / n


def test_two_items_have_a_closed_form():
    model = players()
    a, b = model.items_.X[:1], model.items_.X[1:2]
    mean, variance = model.posterior_.margin(a, b)
    board = leaderboard(model, ["bob", "ann"], level=0.8, n_draws=DRAWS)
    assert board.names.tolist() == ["ann", "bob"]
    assert board.position.tolist() == [1, 0]
    # Half of the margin lies above the mean of the two, and half below.
    sigma = np.sqrt(0.2)
    half = 0.5 * mean[0] / sigma
    np.testing.assert_allclose(board.utility, [half, -half], atol=1e-12)
    reach = 0.5 * 1.2815515655446004 * np.sqrt(variance[0]) / sigma  # 90 % quantile of a normal
    np.testing.assert_allclose(board.upper - board.utility, [reach, reach], rtol=1e-9)
    np.testing.assert_allclose(board.utility - board.lower, [reach, reach], rtol=1e-9)
    better = model.posterior_.win_probability(a, b, noise=False)[0]
    assert abs(board.probability_best[0] - better) < share_error(better, DRAWS)


def test_intervals_and_ranks_hold_what_joint_draws_say(on_features):
    model, items = on_features
    board = leaderboard(model, items, level=0.7, n_draws=DRAWS, random_state=1)
    draws = model.posterior_.sample(items, DRAWS, rng=2)[board.position]
    above = (draws - draws.mean(axis=0)) / np.sqrt(0.05)
    np.testing.assert_allclose(board.utility, above.mean(axis=1), atol=0.13)
    assert np.all(np.diff(board.utility) <= 0.0)
    tail = share_error(0.15, DRAWS)
    np.testing.assert_allclose((above < board.lower[:, None]).mean(axis=1), 0.15, atol=tail)
    np.testing.assert_allclose((above > board.upper[:, None]).mean(axis=1), 0.15, atol=tail)

    rank = 1 + (draws[None] > draws[:, None]).sum(axis=1)
    best = (rank == 1).mean(axis=1)
    assert board.probability_best.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(np.abs(board.probability_best - best) < 2.0 * share_error(best, DRAWS))
    low, high = board.rank_lower[:, None], board.rank_upper[:, None]
    error = 2.0 * share_error(0.7, DRAWS)
    assert np.all(((low <= rank) & (rank <= high)).mean(axis=1) > 0.7 - error)
    # None that is one place shorter holds as much, wherever it begins.
    begins = np.arange(1, len(items) + 1)[:, None, None]
    shorter = (begins <= rank) & (rank < begins + (high - low))
    assert np.all(shorter.mean(axis=2) < 0.7 + error)


def test_what_all_utilities_share_changes_nothing():
    duels, items = (
        np.random.default_rng(0).uniform(size=(2, 15, 2, 1)),
        np.linspace(0, 1, 6)[:, None],
    )
    boards = [
        leaderboard(
            PairwisePreferenceRegressor(kernel, noise_variance=0.1, optimizer=None).fit(duels[0]),
            items,
        )
        for kernel in (RBF(0.3), RBF(0.3) + ConstantKernel(50.0))
    ]
    for name in ("utility", "lower", "upper"):
        np.testing.assert_allclose(boards[0][name], boards[1][name], atol=1e-7)
    assert boards[0].position.tolist() == boards[1].position.tolist()


def test_utilities_beyond_doubt_have_one_rank_each():
    names = [f"n{i}" for i in range(5)]
    chain = [[names[i], names[i + 1]] for i in range(4) for _ in range(4000)]
    table = ItemTable.from_names(names)
    model = PairwisePreferenceRegressor(items=table, noise_variance=0.02, optimizer=None)
    board = leaderboard(model.fit(chain), n_draws=2000)
    assert board.names.tolist() == names
    assert board.rank_lower.tolist() == board.rank_upper.tolist() == [1, 2, 3, 4, 5]
    assert board.probability_best.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_equal_items_share_their_place():
    duels = np.array([[[1.0], [0.0]]] * 3000)
    kernel = RBF(0.3)
    model = PairwisePreferenceRegressor(kernel, noise_variance=0.01, optimizer=None).fit(duels)
    board = leaderboard(model, [[1.0], [0.0], [1.0], [1.0]], n_draws=500)
    assert board.position.tolist() == [0, 2, 3, 1]
    np.testing.assert_allclose(board.probability_best, [1 / 3, 1 / 3, 1 / 3, 0.0])
    assert board.rank_lower.tolist() == [1, 1, 1, 4]
    assert board.rank_upper.tolist() == [3, 3, 3, 4]
    alone = leaderboard(model, [[0.4]])
    assert (alone.utility[0], alone.lower[0], alone.upper[0]) == (0.0, 0.0, 0.0)
    assert (alone.probability_best[0], alone.rank_lower[0], alone.rank_upper[0]) == (1.0, 1, 1)


def test_a_seed_gives_one_board(on_features):
    model, items = on_features
    first, again, other = (leaderboard(model, items, random_state=seed) for seed in (4, 4, 5))
    assert first.probability_best.tolist() == again.probability_best.tolist()
    assert first.probability_best.tolist() != other.probability_best.tolist()
    assert first.lower.tolist() == other.lower.tolist()  # nothing drawn


def test_blocks_of_draws_change_nothing(on_features, monkeypatch):
    model, items = on_features
    whole = leaderboard(model, items, n_draws=1000)
    monkeypatch.setattr("skpref.inspection._leaderboard.BLOCK", 64)
    parts = leaderboard(model, items, n_draws=1000)
    for name in ("probability_best", "rank_lower", "rank_upper"):
        assert whole[name].tolist() == parts[name].tolist()


# -- models and items of all forms ------------------------------------------------------------


def test_items_by_name_position_and_table():
    model = players()
    board = leaderboard(model)
    assert sorted(board.names) == ["ann", "bob", "cid"]
    assert leaderboard(model.posterior_).names.tolist() == board.names.tolist()
    assert leaderboard(model, [2, 0]).names.tolist() == ["ann", "cid"]
    assert leaderboard(model, ["cid", "ann"]).position.tolist() == [1, 0]
    assert leaderboard(model, np.array(["cid", "ann"])).names.tolist() == ["ann", "cid"]
    assert board.noise_deviation == pytest.approx(np.sqrt(0.2))


def test_items_without_names_are_told_by_their_rows(on_features):
    model, items = on_features
    board = leaderboard(model, items)
    assert board.names.tolist() == board.position.tolist()
    np.testing.assert_allclose(np.argsort(-model.predict(items)), board.position)
    assert len(leaderboard(model).names) == len(model.comparisons_.items)


def test_pipelines_searches_and_frames():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    items = pd.DataFrame({"a": rng.uniform(size=6), "b": rng.uniform(10, 20, size=6)})
    named = items.set_axis(list("uvwxyz"), axis=0)
    duels = items.to_numpy()[rng.permuted(np.tile(np.arange(6), (30, 1)), axis=1)[:, :2]]
    y = np.arange(30) % 2
    model = make_pipeline(
        Itemwise(StandardScaler()), PairwisePreferenceRegressor(RBF(1.0), optimizer=None)
    )
    fitted = model.fit(duels, y)
    board = leaderboard(fitted, named.to_numpy())
    assert board.position.tolist() == np.argsort(-fitted.predict(items.to_numpy())).tolist()
    search = GridSearchCV(model, {"pairwisepreferenceregressor__noise_variance": [0.01]}, cv=2)
    again = leaderboard(search.fit(duels, y), named.to_numpy())
    np.testing.assert_allclose(again.utility, board.utility)
    plain = PairwisePreferenceRegressor(RBF(1.0), optimizer=None, items=named)
    pairs = [[0, 1], [1, 2], [2, 3]]
    of_frame = leaderboard(plain.fit(pairs), named)
    assert of_frame.names.tolist()[0] == "u"
    assert leaderboard(plain, items).names.dtype.kind == "i"


def test_an_optimizer_shows_its_candidates():
    names = ["a", "b", "c", "d"]
    optimizer = HallucinationBelieverOptimizer(
        candidates=ItemTable(np.arange(4.0)[:, None], names=names), random_state=0
    )
    for winner, loser in [("b", "a"), ("c", "a"), ("b", "d"), ("b", "c")]:
        optimizer.tell((winner, loser), 1)
    assert leaderboard(optimizer).names[0] == "b"
    assert leaderboard(optimizer, ["d", "b"]).names.tolist() == ["b", "d"]


def test_items_of_an_optimizer_are_in_its_own_units():
    optimizer = HallucinationBelieverOptimizer([[0.0, 10.0]], random_state=0)
    for winner, loser in [(6.0, 1.0), (7.0, 3.0), (6.5, 9.5)]:
        optimizer.tell([[winner], [loser]], 1)
    items = np.array([[1.0], [6.0]])
    board = leaderboard(optimizer, items)
    margin = optimizer.posterior_.margin([[0.6]], [[0.1]])[0][0]
    assert board.position.tolist() == [1, 0]
    gap = (board.utility[0] - board.utility[1]) * board.unit_length
    assert gap == pytest.approx(margin, abs=1e-10)


def test_the_frame_says_the_same():
    pytest.importorskip("pandas")
    board = leaderboard(players())
    assert board.frame.index.tolist() == [1, 2, 3]
    for name in ("names", "utility", "lower", "upper", "probability_best", "rank_upper"):
        assert board.frame[name].tolist() == board[name].tolist()


def test_ids_name_items():
    pd = pytest.importorskip("pandas")
    from skpref.duels import from_columns

    contests = pd.DataFrame(
        {"w": ["ann", "bob", "ann"], "l": ["bob", "cid", "cid"], "x": [1.0, 0.5, 1.0], "z": 0.0}
    )
    X, y = from_columns(contests, ["x"], ["z"], True, ids=("w", "l"))
    model = PairwisePreferenceRegressor(optimizer=None).fit(X, y)
    with pytest.warns(UserWarning, match="1 of 3 ids"):
        board = leaderboard(model)
    assert set(board.names) == {"ann", "bob", "cid"}


def contests_of(rng, n=40):
    """Contests of items whose features explain all, as a frame, and the items' utilities."""
    pd = pytest.importorskip("pandas")
    features = rng.uniform(0.0, 10.0, (n, 2))
    utility = 0.4 * features[:, 0] - 0.3 * features[:, 1]
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(10 * n)])
    frame = pd.DataFrame({"a": pairs[:, 0], "b": pairs[:, 1]}).map("item {:02d}".format)
    for k, name in enumerate(("sweet", "hard")):
        frame[[f"{name}_a", f"{name}_b"]] = features[pairs, k]
    lead = utility[pairs[:, 0]] - utility[pairs[:, 1]] + rng.normal(size=len(pairs))
    frame["won"] = (lead > 0.0).astype(int)
    return frame, {f"item {k:02d}": value for k, value in enumerate(utility)}


@pytest.mark.parametrize("column", ["sweet_a", "hard_b"])
def test_one_cell_that_differs_moves_no_other_item(column):
    from skpref.duels import from_columns

    frame, utility = contests_of(np.random.default_rng(0))
    frame.loc[7, column] += 0.1
    sides = [[f"{name}_{side}" for name in ("sweet", "hard")] for side in "ab"]
    X, y = from_columns(frame, *sides, "won", ids=("a", "b"))
    model = PairwisePreferenceRegressor().fit(X, y)
    whose = frame.loc[7, column[-1]]
    with pytest.warns(UserWarning, match=rf"'{column[:-2]}'.* 1 of 40 ids, such as \['{whose}'"):
        board = leaderboard(model)
    truth = [utility[name] for name in board.names]
    assert not board.held and np.corrcoef(board.utility, truth)[0, 1] > 0.95
    # A column of the answers, which differs within most items, is held.
    frame["sweet_a"] += np.random.default_rng(1).normal(size=len(frame))
    X, y = from_columns(frame, *sides, "won", ids=("a", "b"))
    board = leaderboard(PairwisePreferenceRegressor(optimizer=None).fit(X, y), average=False)
    assert "sweet" in board.held


# -- refusals ---------------------------------------------------------------------------------


def test_refusals():
    model = players()
    with pytest.raises(TypeError, match="must be a Posterior or have one as posterior_"):
        leaderboard(PairwisePreferenceRegressor())
    with pytest.raises(ValueError, match="items is empty"):
        leaderboard(model, [])
    with pytest.raises(ValueError, match=r"level must lie in \(0.0, 1.0\)"):
        leaderboard(model, level=1.0)
    with pytest.raises(ValueError, match="n_draws must lie in"):
        leaderboard(model, n_draws=0)
    with pytest.raises(ValueError, match="features"):
        leaderboard(model.posterior_, np.zeros((2, 3)))


@pytest.mark.parametrize("n", [3, 25])
def test_a_board_shows_its_first_places(n):
    table = ItemTable.from_names([f"player {k}" for k in range(n)])
    X = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    model = PairwisePreferenceRegressor(items=table, optimizer=None, noise_variance=0.5)
    board = leaderboard(model.fit(np.repeat(X, 3, axis=0)), unit="elo", level=0.8)
    first, note, *rows = str(board).splitlines()
    assert note == "Votes are taken as independent" and note in board._repr_html_()
    assert first.startswith(f"Leaderboard of {n} in units of elo, 80 % intervals")
    assert len(rows) == (3 if n == 3 else 21)
    for k, row in enumerate(rows[:20]):
        place, _, number, utility = row.replace("[", " ").replace(",", " ").split()[:4]
        assert (int(place), f"player {number}") == (k + 1, board.names[k])
        assert float(utility) == pytest.approx(board.utility[k], abs=0.0051)
    assert n == 3 or rows[-1].strip() == "… 5 more"
    assert pickle.loads(pickle.dumps(board)).names.tolist() == board.names.tolist()


def test_nothing_is_said_to_be_certain():
    table = ItemTable.from_names(["a", "b", "c"])
    model = PairwisePreferenceRegressor(items=table, optimizer=None, noise_variance=0.5)
    board = leaderboard(model.fit([[0, 1], [1, 2]]))
    board["probability_best"] = np.array([0.99971, 0.00029, 0.0])
    for text in (repr(board), board._repr_html_()):
        assert "1.000" not in text and "%" not in text.replace("90 % interval", "")
        assert "0.999" in text and "P(best)" in text
    titles, rows = board.cells()
    assert titles == ["rank", "name", "utility", "90 % interval", "rank interval", "P(best)"]
    assert [row[-1] for row in rows] == ["> 0.999", "< 0.001", "< 0.001"]


def slipped(weight=1.0, identity=False):
    """A model of five ids with a feature each, of which one answer has another; and features."""
    rng = np.random.default_rng(4)
    own = np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    pairs = np.array([rng.choice(5, 2, replace=False) for _ in range(60)])
    X = np.stack([pairs, own[pairs]], axis=2).astype(float)
    X[3, 0, 1] = 1.0 - X[3, 0, 1]
    kernel = OnColumns(Identity(), [0])
    kernel += OnColumns(Identity() if identity else DotProduct(0.0, "fixed"), [1])
    model = PairwisePreferenceRegressor(kernel, id_column=0, optimizer=None)
    return model.fit(X, pairs[:, 0] > pairs[:, 1], sample_weight=np.full(60, weight)), own


@pytest.mark.parametrize("identity", [False, True])
def test_items_that_came_keep_their_features(identity):
    model = slipped(identity=identity)[0]
    items = np.array([[0.0, 1.0], [1.0, 0.0], [77.0, 0.0]])  # also one that nobody has seen
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        board = leaderboard(model, items, at={})
        plain = leaderboard(model, items)
    assert not board.held
    np.testing.assert_array_equal(board.names, plain.names)
    np.testing.assert_array_equal(board.utility, plain.utility)
    # One that came with several has their mean, or the one that came most often.
    items = np.concatenate([items, [[0.0, 0.0], [0.0, 0.0], [2.0, 0.0], [2.0, 0.0], [1.0, 0.0]]])
    taken = "category it had most often" if identity else "its own mean"
    with pytest.warns(UserWarning, match=rf"1 of 4 ids, such as \[0\], .* {taken}"):
        board = leaderboard(model, items, at={})
    rows = np.array([[0.0, 0.0 if identity else 1.0 / 3.0], [1.0, 0.0], [77.0, 0.0], [2.0, 0.0]])
    np.testing.assert_allclose(board.utility, leaderboard(model, rows).utility)


@pytest.mark.parametrize("identity", [False, True])
def test_ids_that_differ_in_one_answer_have_their_own_value(identity):
    model, own = slipped(identity=identity)
    with pytest.warns(UserWarning, match="1 of 5 ids"):
        board = leaderboard(model)
    shown, times = model.comparisons_.items, Inspected.from_model(model).shown
    every = np.repeat(shown, times.astype(int), axis=0)
    assert len(every) == 120
    mean = [every[every[:, 0] == k, 1].mean() for k in range(5)]
    rows = np.column_stack([np.arange(5.0), own if identity else mean])
    hand = leaderboard(model, rows)
    assert board.names.tolist() == hand.names.tolist()
    np.testing.assert_allclose(board.utility, hand.utility)


@pytest.mark.parametrize("weight", [1e-3, 0.1, 1.0, 3.0])
def test_weights_of_any_size_hold_the_same_columns(weight):
    with pytest.warns(UserWarning, match="1 of 5 ids"):
        assert not leaderboard(slipped(weight)[0], average=False).held
