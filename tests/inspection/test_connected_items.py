"""Groups of items that nothing joins: who is in them, and that boards decide nothing across."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.inference import EP, SVI
from skpref.inspection import (
    connected_items,
    control_effects,
    leaderboard,
    trajectories,
    undecided_pairs,
    win_rates,
)
from skpref.kernels import Identity, ItemEffect, Linear, OnColumns, Teams

LEAGUES = ["A0", "A1", "A2", "A3", "A4"], ["B0", "B1", "B2", "B3", "B4"]
EVERYBODY = [*LEAGUES[0], *LEAGUES[1]]
STRENGTH = np.linspace(1.0, -1.0, 5)


def strengths(offset):
    """True utilities, those of the first league moved by an offset."""
    return dict(zip(EVERYBODY, np.concatenate([STRENGTH + offset, STRENGTH]), strict=True))


def league_games(seed=2, n=150):
    """Winners and losers within each of two leagues; the noise of an item has deviation 1."""
    rng = np.random.default_rng(seed)
    games = []
    for league in LEAGUES:
        for _ in range(n):
            i, j = rng.choice(5, 2, replace=False)
            won = STRENGTH[i] - STRENGTH[j] + rng.normal() * np.sqrt(2.0) > 0.0
            games.append([league[i], league[j]] if won else [league[j], league[i]])
    return games


def fitted(games, y=None, *, engine="ep", names=None, **given):
    model = PairwisePreferenceRegressor(
        items=None if names is None else ItemTable.from_names(names),
        inference=engine,
        noise_variance=1.0,
        optimizer=None,
        random_state=0,
        tie_threshold=given.pop("tie_threshold", None),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The answers fall into")
        return model.fit(games, y, **given)


def groups_of(model, items=None, **options):
    connected = connected_items(model, items, **options)
    return {
        frozenset(connected.names[connected.component == k].tolist())
        for k in range(connected.n_components)
    }


@pytest.fixture(scope="module")
def leagues():
    return fitted(league_games())


# -- boards -----------------------------------------------------------------------------------


def test_no_pair_across_is_decided_and_ranks_hold_any_truth(leagues):
    pairs = undecided_pairs(leagues)
    across = {frozenset(pair) for pair in itertools.product(*LEAGUES)}
    apart = pairs.prior_alone
    listed = zip(pairs.first[apart], pairs.second[apart], strict=True)
    assert {frozenset(pair) for pair in listed} == across
    assert pairs.n_decided + (~apart).sum() == 20
    assert np.all(pairs.probability[apart] == 0.5) and np.all(np.isinf(pairs.upper[apart]))
    board = leaderboard(leagues, level=0.99)
    for offset in (-5.0, 0.03, 5.0):  # whatever the level of the first league is
        true = np.array([strengths(offset)[name] for name in board.names])
        rank = 1 + (true[None] > true[:, None]).sum(axis=1)
        assert np.all((board.rank_lower <= rank) & (rank <= board.rank_upper))
    within = np.array([strengths(0.0)[name] for name in board.names])
    assert np.all((board.lower < within) & (within < board.upper))
    assert board.probability_best.sum() == pytest.approx(1.0, abs=1e-12)
    assert board.probability_best.max() <= 0.5
    assert set(board.lead.names) == {"A0", "A1"}


@pytest.mark.parametrize("engine", ["ep", "laplace"])
def test_a_group_has_the_board_that_it_has_alone(engine):
    games = league_games()
    both = leaderboard(fitted(games, engine=engine), average=False)
    for k, league in enumerate(LEAGUES):
        alone = [game for game in games if game[0] in league]
        of_one = leaderboard(fitted(alone, engine=engine), average=False)
        rows = both.component == k
        assert both.names[rows].tolist() == of_one.names.tolist()
        for name in ("utility", "lower", "upper"):
            np.testing.assert_allclose(both[name][rows], of_one[name], atol=1e-6)
        assert np.all(np.abs(both.rank_lower[rows] - of_one.rank_lower) <= 1)  # drawn
        assert np.all(np.abs(both.rank_upper[rows] - 5 - of_one.rank_upper) <= 1)
        share = 0.5 * of_one.probability_best
        np.testing.assert_allclose(both.probability_best[rows], share, atol=0.02)


def test_the_prior_alone_speaks_of_the_levels_of_groups(leagues):
    # With one more vote between the leagues the answers speak of them too.
    joined = fitted([*league_games(), ["A4", "B0"]])
    rows = leagues.items_.X[[leagues.items_.index([name])[0] for name in EVERYBODY]]
    level = np.repeat([0.2, -0.2], 5)
    prior = level @ level  # of independent utilities of variance one
    assert level @ leagues.posterior_.mean(rows) == pytest.approx(0.0, abs=1e-9)
    assert level @ leagues.posterior_.cov(rows) @ level == pytest.approx(prior, rel=1e-6)
    rows = joined.items_.X[[joined.items_.index([name])[0] for name in EVERYBODY]]
    assert level @ joined.posterior_.mean(rows) > 0.05
    assert level @ joined.posterior_.cov(rows) @ level < 0.99 * prior
    assert leagues.n_item_components_ == 2 and joined.n_item_components_ == 1


def test_one_vote_between_groups_joins_them():
    board = leaderboard(fitted([*league_games(), ["A4", "B0"]]))
    assert board.n_components == 1 and "group" not in repr(board)
    assert "component" not in board.frame.columns
    assert "2 groups of items" in repr(leaderboard(fitted(league_games())))


def test_boards_say_the_groups_in_words(leagues):
    board = leaderboard(leagues)
    assert "2 groups of items: 5 (A0, A1, A2, …) and 5 (B0, " in repr(board)
    assert repr(board).count("  group ") == 2
    assert "2 groups of items" in board._repr_html_() and ">group<" in board._repr_html_()
    assert board.frame["component"].tolist() == [0] * 5 + [1] * 5
    assert "prior_alone" in undecided_pairs(leagues).frame.columns


def test_win_rates_score_within_a_group(leagues):
    rates = win_rates(leagues)
    for k in (0, 1):
        rows = np.flatnonzero(rates.component == k)
        block = rates.win[np.ix_(rows, rows)]
        np.testing.assert_allclose(rates.score[rows], (block.sum(axis=1) - 0.5) / 4, atol=1e-12)


def test_items_without_an_answer_are_alone():
    model = fitted([["ann", "bob"], ["bob", "cid"]], names=["ann", "bob", "cid", "new", "newer"])
    assert model.n_item_components_ == 1  # of the answers
    assert groups_of(model) == {
        frozenset({"ann", "bob", "cid"}),
        frozenset({"new"}),
        frozenset({"newer"}),
    }
    board = leaderboard(model)
    new = board.component > 0
    assert np.all(board.lower[new] == -np.inf) and np.all(board.upper[new] == np.inf)
    assert np.all(board.rank_lower[new] == 1) and np.all(board.rank_upper[new] == 5)
    np.testing.assert_allclose(board.probability_best[new], 1 / 3)
    assert repr(board).count("  alone") == 1
    # Who was never told of is alone, too.
    assert groups_of(model, ["ann", "nobody"]) == {frozenset({"ann"}), frozenset({"nobody"})}
    both = leaderboard(model, ["ann", "cid"])
    assert both.n_components == 1 and both.rank_lower.tolist() == [1, 1]


# -- what joins -------------------------------------------------------------------------------


def test_ties_join_and_votes_of_weight_zero_do_not():
    games = [["ann", "bob"], ["cid", "dan"], ["bob", "cid"]]
    tied = fitted(games, [1, -1, 0], tie_threshold=0.5)
    assert tied.n_item_components_ == 1
    dropped = fitted(games, [1, 1, 1], sample_weight=[1.0, 1.0, 0.0])
    assert groups_of(dropped) == {frozenset({"ann", "bob"}), frozenset({"cid", "dan"})}
    assert fitted(games, [1, 1, 1], sample_weight=[1.0, 1.0, 1e-3]).n_item_components_ == 1


def test_choices_and_rankings_join_what_they_compare():
    names = ["a", "b", "c", "d", "e", "f", "g"]
    sets = [["a", "b", "c"], ["d", "e", "f"], ["f", "g", None]]
    choices = fitted(np.array(sets, dtype=object), [0, 1, 0], names=names)
    assert groups_of(choices) == {frozenset("abc"), frozenset("defg")}
    ranks = [[1, 2, 3], [1, 2, 0], [1, 2, 0]]  # of f nothing is said in the second
    ranked = fitted(np.array(sets, dtype=object), ranks, names=names)
    assert groups_of(ranked) == {frozenset("abc"), frozenset("de"), frozenset("fg")}


def test_judges_who_answer_in_both_groups_join_nothing():
    games = league_games(n=30)
    judges = np.tile(["ann", "bob", "cid"], 20)
    judged = fitted(games, judges=judges)
    assert groups_of(judged) == {frozenset(league) for league in LEAGUES}
    assert not undecided_pairs(judged).n_decided > 20


def with_controls(games, rng):
    """Ids and a control that differs from game to game."""
    ids = np.array([[EVERYBODY.index(name) for name in game] for game in games], float)
    return np.stack([ids, rng.normal(size=ids.shape)], axis=2)


def test_controls_are_held_and_join_nothing():
    X = with_controls(league_games(), np.random.default_rng(0))
    kernel = OnColumns(Identity(), [0]) + OnColumns(DotProduct(0.0, "fixed"), [1])
    options = {"id_column": 0, "noise_variance": 1.0, "optimizer": None}
    with pytest.warns(UserWarning, match="fall into 2 groups of items"):
        model = PairwisePreferenceRegressor(kernel, **options).fit(X)
    assert groups_of(model) == {frozenset(range(5)), frozenset(range(5, 10))}
    assert leaderboard(model).n_components == 2
    # A control that is larger throughout one group tells no answer from another.
    shifted = X.copy()
    shifted[X[:, 0, 0] < 5, :, 1] += 20.0
    with pytest.warns(UserWarning, match="fall into 2 groups of items"):
        moved = PairwisePreferenceRegressor(kernel, **options).fit(shifted)
    before, after = control_effects(model), control_effects(moved)
    assert after.slope[0] == pytest.approx(before.slope[0], rel=1e-6)
    assert (after.tau[0], after.moved[0]) == (before.tau[0], before.moved[0])
    # The same column, one value an id, is a feature of the ids: it joins.
    own = X.copy()
    own[:, :, 1] = np.random.default_rng(1).normal(size=10)[own[:, :, 0].astype(int)]
    joined = PairwisePreferenceRegressor(kernel, **options).fit(own)
    assert connected_items(joined).n_components == 1
    # Features that explain next to nothing do not.
    weak = OnColumns(Identity(), [0]) + 1e-4 * OnColumns(DotProduct(0.0, "fixed"), [1])
    with pytest.warns(UserWarning, match="fall into 2 groups of items"):
        apart = PairwisePreferenceRegressor(weak, **options).fit(own)
    assert connected_items(apart).n_components == 2


DUELS = np.array([[[0.0], [0.5]], [[0.5], [1.0]], [[3.0], [3.5]], [[3.5], [4.0]]])


@pytest.mark.parametrize(
    ("kernel", "n_groups"),
    [
        (RBF(2.0), 1),
        (RBF(2.0) + ConstantKernel(100.0), 1),
        (RBF(0.3), 2),
        (RBF(0.3) + ConstantKernel(100.0), 2),  # what all share tells nothing across
        (RBF(2.0) + 0.1 * ItemEffect(), 1),
        (1e-4 * RBF(2.0) + 1.0 * ItemEffect(), 2),
        (Linear(), 1),
        (Identity(), 2),
        (ItemEffect(), 2),
    ],
)
def test_kernels_join_where_answers_of_one_group_tell_of_the_other(kernel, n_groups):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # features have no names: a fit says nothing
        model = PairwisePreferenceRegressor(kernel, optimizer=None).fit(DUELS)
    assert model.n_item_components_ == connected_items(model).n_components == n_groups
    assert undecided_pairs(model).prior_alone.sum() == (9 if n_groups == 2 else 0)
    # An outside truth: whether the answers of one group move the utilities in the other.
    half = PairwisePreferenceRegressor(kernel, optimizer=None).fit(DUELS[:2])
    moved = half.predict([[3.0], [3.5], [4.0]])
    assert (np.abs(moved - moved.mean()).max() > 0.01) == (n_groups == 1)


def test_an_item_between_two_groups_joins_one_of_them_alone():
    model = PairwisePreferenceRegressor(RBF(0.7), optimizer=None).fit(DUELS)
    every = [[0.0], [0.5], [1.0], [3.0], [3.5], [4.0], [1.9]]
    connected = connected_items(model, every)
    assert connected.component.tolist() == [0, 0, 0, 1, 1, 1, 0]


def test_columns_that_only_one_group_has_join_nothing():
    one_hot = np.eye(4)[[[0, 1], [2, 3]]]
    apart = PairwisePreferenceRegressor(Linear(), optimizer=None).fit(one_hot)
    assert apart.n_item_components_ == 2
    shared = np.concatenate([one_hot, [[[1.0], [0.0]], [[0.5], [2.0]]]], axis=2)
    joined = PairwisePreferenceRegressor(Linear(), optimizer=None).fit(shared)
    assert joined.n_item_components_ == 1


def test_players_join_the_teams_that_they_are_in():
    kernel = Teams(Identity(), members=[[0], [1]])
    sides = np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    assert PairwisePreferenceRegressor(kernel, optimizer=None).fit(sides).n_item_components_ == 2
    linked = np.concatenate([sides, [[[1.0, 3.0], [5.0, 7.0]]]])
    assert PairwisePreferenceRegressor(kernel, optimizer=None).fit(linked).n_item_components_ == 1


@pytest.mark.usefixtures("chains")
def test_an_item_at_another_time_is_the_same_item():
    games, time = [["ann", "bob"], ["bob", "cid"], ["dan", "eve"]] * 3, np.arange(9)
    options = {"drift": "matern12", "optimizer": None, "noise_variance": 1.0}
    for engine in ("ep", EP(items="independent")):
        with pytest.warns(UserWarning, match="fall into 2 groups"):
            model = PairwisePreferenceRegressor(inference=engine, **options).fit(games, time=time)
        assert groups_of(model) == {frozenset({"ann", "bob", "cid"}), frozenset({"dan", "eve"})}
        course = trajectories(model, ["ann", "eve"])
        board = leaderboard(model, time=8)
        for name, mean in zip(course.names, course.utility[:, -1], strict=True):
            assert mean == pytest.approx(board.utility[board.names == name][0], abs=1e-6)
        across = trajectories(model, ["ann", "eve"], relative="bob")
        assert np.all(np.isfinite(across.lower[0])) and np.all(across.lower[1] == -np.inf)
        assert "the mean of each of 2 groups" in repr(course)
        joined = PairwisePreferenceRegressor(inference=engine, **options)
        joined.fit([*games, ["cid", "dan"]], time=[*time, 9])
        assert connected_items(joined).n_components == 1


def test_pieces_of_a_stream_join():
    model = PairwisePreferenceRegressor(inference=SVI(n_inducing=20), optimizer=None)
    seen = []
    for piece in ([["a", "b"], ["c", "d"]], [["e", "f"]], [["b", "c"], ["f", "e"]], [["a", "f"]]):
        model.partial_fit(piece)
        seen.append(connected_items(model, list("abcdef")).n_components)
    # e and f are alone in the first piece.
    assert seen == [4, 3, 2, 1]


def test_users_share_answers_where_they_share_tastes():
    games = [["ann", "bob"], ["bob", "cid"], ["dan", "eve"]] * 4
    users = ["u", "v", "w"] * 4
    options = {"optimizer": None, "noise_variance": 1.0}
    with pytest.warns(UserWarning, match="fall into 2 groups"):
        shared = CollaborativePreferenceRegressor(**options).fit(games, users=users)
    assert groups_of(shared, user="u") == {
        frozenset({"ann", "bob", "cid"}),
        frozenset({"dan", "eve"}),
    }
    with pytest.warns(UserWarning, match="fall into 2 groups"):
        own = CollaborativePreferenceRegressor(method="su", **options).fit(games, users=users)
    assert frozenset({"ann", "bob"}) in groups_of(own, user="u")
    assert connected_items(own, user="u").n_components == 4
    assert connected_items(own, user="a stranger").n_components == 5


def test_nothing_is_joined_where_nothing_was_answered():
    model = CollaborativePreferenceRegressor(RBF(2.0), method="su", optimizer=None)
    model.fit(DUELS[[0, 1, 2, 3]], users=["u", "v", "u", "v"])
    assert connected_items(model, user="u").n_components == 1
    assert connected_items(model, user="a stranger").n_components == 6


def test_posteriors_and_files_know_the_groups(leagues):
    assert leaderboard(leagues.posterior_).n_components == 2
    again = PairwisePreferenceRegressor.from_arrays(leagues.to_arrays())
    assert groups_of(again) == {frozenset(league) for league in LEAGUES}


# -- what a fit says --------------------------------------------------------------------------


def test_a_fit_of_names_warns_of_groups_and_says_what_to_do():
    model = PairwisePreferenceRegressor(optimizer=None)
    with pytest.warns(UserWarning, match="fall into 2 groups of items: 2 .ann, bob. and 2 .cid, "):
        model.fit([["ann", "bob"], ["cid", "dan"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit([["ann", "bob"], ["cid", "dan"], ["dan", "ann"]])
        # An item that no answer is about is the business of boards.
        fitted([["ann", "bob"]], names=["ann", "bob", "new"])


def test_names_with_features_that_tell_of_each_other_do_not_warn():
    strength = strengths(0.5)
    table = ItemTable(np.array([[each] for each in strength.values()]), names=list(strength))
    games = league_games(n=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PairwisePreferenceRegressor(RBF(1.0), items=table, optimizer=None).fit(games)
        rows = np.array([[[strength[name]] for name in game] for game in games])
        plain = PairwisePreferenceRegressor(RBF(1.0), optimizer=None).fit(rows)
    assert model.n_item_components_ == plain.n_item_components_ == 1
    assert "group" not in repr(leaderboard(model))
