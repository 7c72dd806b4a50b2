"""Teams in the estimator: the same model written with a column for each player."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import DotProduct, Matern

from skpref import PairwisePreferenceRegressor
from skpref.duels import from_teams
from skpref.inference import EP, Laplace
from skpref.inspection import leaderboard
from skpref.kernels import Identity, OnColumns, Wiener

NAMES = ["ann", "bob", "cid", "dan", "eva", "fay"]


def matches(n, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    sides: tuple[list, list] = ([], [])
    shares: tuple[list, list] = ([], [])
    for _ in range(n):
        order = rng.permutation(6)
        cut = rng.integers(1, 3)
        for side, share, team in zip(sides, shares, (order[:cut], order[3:5]), strict=True):
            side.append([NAMES[k] for k in team])
            share.append(rng.uniform(0.2, 1.0, len(team)).tolist())
    duels = from_teams(*sides, weights=shares if weighted else None)
    skill = dict(zip(NAMES, np.linspace(1.0, -1.0, 6), strict=True))
    lead = [
        sum(skill[name] for name in one) - sum(skill[name] for name in two)
        for one, two in zip(*sides, strict=True)
    ]
    return duels, np.array(lead) + rng.normal(size=n) > 0, rng.integers(0, 9, n)


def indicators(duels, rows):
    """A column for each player, with the weight of who is there."""
    found = np.zeros((*rows.shape[:-1], len(duels.names)))
    size = len(duels.params["kernel"].members)
    for at in np.ndindex(rows.shape[:-1]):
        for k in range(size):
            if rows[at][k] >= 0:
                weighted = rows.shape[-1] > size
                found[(*at, int(rows[at][k]))] += rows[at][size + k] if weighted else 1.0
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("engine", ["ep", "laplace"])
def test_strengths_are_those_of_a_linear_model_of_who_is_there(engine, weighted):
    duels, won, _ = matches(60, weighted=weighted)
    model = PairwisePreferenceRegressor(**duels.params, inference=engine, optimizer=None)
    model.fit(duels.X, won)
    linear = PairwisePreferenceRegressor(
        DotProduct(0.0, "fixed"), noise_variance=1.0, inference=engine, optimizer=None
    ).fit(indicators(duels, duels.X), won)
    evidence = [each.log_marginal_likelihood_value_ for each in (model, linear)]
    assert_allclose(*evidence, rtol=1e-7)
    players = duels.rows([[name] for name in NAMES])
    mean, std = model.predict(players, return_std=True)
    expected = linear.predict(np.eye(6), return_std=True)
    assert_allclose(mean, expected[0], atol=1e-6)
    assert_allclose(std, expected[1], atol=1e-6)
    X = duels.X[:5, ::-1]
    assert_allclose(model.predict_proba(X), linear.predict_proba(indicators(duels, X)), atol=1e-6)


def test_learned_hyperparameters_are_those_of_the_linear_model():
    duels, won, _ = matches(150)
    model = PairwisePreferenceRegressor(**duels.params).fit(duels.X, won)
    linear = PairwisePreferenceRegressor(
        DotProduct(0.0, "fixed"), noise_variance=1.0, noise_variance_bounds=(1e-3, 1e3)
    ).fit(indicators(duels, duels.X), won)
    assert_allclose(model.likelihood_.noise_variance, linear.likelihood_.noise_variance, rtol=1e-2)


@pytest.mark.usefixtures("chains")
@pytest.mark.parametrize("drift", ["wiener", Matern(5.0, nu=1.5)])
@pytest.mark.parametrize("engine", [EP, Laplace])
def test_independent_members_are_near_all_of_them_together(engine, drift):
    duels, won, time = matches(80, weighted=True)
    found = [
        PairwisePreferenceRegressor(
            **duels.params, drift=drift, inference=engine(items=items), optimizer=None
        ).fit(duels.X, won, time=time)
        for items in ("joint", "independent")
    ]
    proba = [model.predict_proba(duels.X[:40], time=11)[:, 1] for model in found]
    assert np.std(proba[0]) > 0.1
    assert_allclose(proba[1], proba[0], atol=0.03)
    players = duels.rows([[name] for name in NAMES])
    means = [model.predict(players, time=9) for model in found]
    assert_allclose(means[1] - means[1].mean(), means[0] - means[0].mean(), atol=0.03)


def test_a_drift_is_that_of_the_members():
    duels, won, time = matches(40)
    model = PairwisePreferenceRegressor(**duels.params, drift="wiener", optimizer=None)
    model.fit(duels.X, won, time=time)
    rate = model.kernel_.kernel.k2.k2.kernel.rate
    who = OnColumns(Identity(), [0])
    assert str(model.kernel_.kernel) == str(who + who * OnColumns(Wiener(rate), [1]))
    rows = np.column_stack([duels.rows([["ann", "bob"], ["ann"]]), [4.0, 6.0]])
    expected = [[2 + 8 * rate, 1 + 4 * rate], [1 + 4 * rate, 1 + 6 * rate]]
    assert_allclose(model.kernel_(rows), expected)


def test_a_drift_starts_from_the_spread_of_a_member_whatever_the_size_of_teams():
    won, time = [1, 0, 1], [0.0, 4.0, 9.0]
    pairs = from_teams([["ann", "bob"]] * 3, [["cid", "dan"], ["eva"], ["cid"]])
    alone = from_teams([["ann"]] * 3, [["cid"], ["eva"], ["cid"]])
    rates = []
    for duels in (pairs, alone):
        model = PairwisePreferenceRegressor(**duels.params, drift="wiener", optimizer=None)
        walk = model.fit(duels.X, won, time=time).kernel_.kernel.k2.k2.kernel
        rates.append([walk.rate, *walk.rate_bounds])
    assert_allclose(rates[0], rates[1])


@pytest.mark.slow
@pytest.mark.usefixtures("chains")
def test_the_search_for_a_walk_of_members_ends_alike_from_far_starts():
    """Doubles among players whose strengths walk."""
    rng = np.random.default_rng(1)
    n, names = 300, np.array([f"p{k}" for k in range(12)])
    who = np.array([rng.choice(12, 4, replace=False) for _ in range(n)])
    time = np.sort(rng.integers(0, 30, n))
    f = rng.normal(size=12) + np.cumsum(rng.normal(0.0, 0.3, (30, 12)), axis=0)
    lead = f[time[:, None], who] @ np.array([1.0, 1.0, -1.0, -1.0])
    duels = from_teams(names[who[:, :2]].tolist(), names[who[:, 2:]].tolist())

    def fitted(drift):
        model = PairwisePreferenceRegressor(
            **duels.params, drift=drift, inference=EP(items="independent")
        )
        return model.fit(duels.X, lead + noise > 0.0, time=time)

    noise = 1.4 * rng.normal(size=n)
    starts = ("wiener", *(Wiener(begin, (1e-9, 1e3)) for begin in (1e-5, 10.0)))
    fits = [fitted(start) for start in starts]
    evidence = [each.log_marginal_likelihood_value_ for each in fits]
    assert_allclose(evidence[1:], evidence[0], atol=0.05)
    rates = [each.kernel_.kernel.k2.k2.kernel.rate / each.noise_variance_ for each in fits]
    assert_allclose(rates[1:], rates[0], rtol=0.1)


def test_a_drift_of_teams_that_are_a_part_of_the_kernel_is_refused():
    duels, won, time = matches(10)
    model = PairwisePreferenceRegressor(2.0 * duels.params["kernel"], drift="wiener")
    with pytest.raises(ValueError, match=r"where Teams is the whole kernel.*Put the other factors"):
        model.fit(duels.X, won, time=time)


def test_later_days_are_filtered_and_newcomers_join():
    duels, won, time = matches(400)
    order = np.argsort(time, kind="stable")
    X, won, time = duels.X[order], won[order], time[order]
    model = PairwisePreferenceRegressor(
        **duels.params, drift="wiener", inference=EP(items="independent")
    ).fit(X, won, time=time)
    more = from_teams([["gil", "ann"]] * 4, [["bob", "cid"]] * 4, like=duels)
    assert more.names == [*NAMES, "gil"]
    before = model.predict(more.rows([["gil"]]), time=10, return_std=True)
    model.partial_fit(more.X, [1, 1, 1, 1], time=[10] * 4)
    after = model.predict(more.rows([["gil"]]), time=10, return_std=True)
    assert_allclose(before[0], 0.0)
    assert after[0] > 0.0 and after[1] < before[1]
    with pytest.raises(ValueError, match="later than those before"):
        model.partial_fit(more.X, [1, 1, 1, 1], time=[9] * 4)
    others = from_teams([["hal"]], [["ida"]], like=more)  # in a league that is behind
    model.partial_fit(others.X, [1], time=[3])
    said = repr(model.posterior_)
    assert "10 members through time" in said and len(said) < 1000
    board = leaderboard(model, more.rows([[name] for name in more.names]), time=12)
    assert len(board.utility) == 7


@pytest.mark.slow
def test_auto_takes_chains_for_many_matches_and_few_for_few():
    duels, won, time = matches(30)
    few = PairwisePreferenceRegressor(**duels.params, drift="matern12", optimizer=None)
    assert few.fit(duels.X, won, time=time).engine_.items == "joint"
    duels, won, time = matches(1500)
    time = time + np.random.default_rng(0).random(1500)
    many = PairwisePreferenceRegressor(**duels.params, drift="matern12", optimizer=None)
    assert many.fit(duels.X, won, time=time).engine_.items == "independent"


@pytest.mark.parametrize(
    "first, second, weights, words",
    [
        (["ann"], [["bob"]], None, r"the text 'ann'; give a sequence of names"),
        ("ann", [["bob"]], None, "first is a text"),
        ([[]], [["bob"]], None, "Team 0 of first has no member"),
        ([["ann", "ann"]], [["bob"]], None, "names 'ann' twice"),
        ([["ann"]], [["bob", "ann"]], None, "'ann' is on both sides of duel 0"),
        ([["ann"]], [], None, "got 1 teams first and 0 second"),
        ([["ann"]], [["bob"]], ([[1.0, 2.0]], [[1.0]]), "as many numbers a team"),
        ([["ann"]], [["bob"]], ([[np.nan]], [[1.0]]), "must be finite"),
        ([["ann"]], [["bob"]], ([1.0], [1.0]), "a sequence of numbers for each team"),
        ([["ann"]], [["bob"]], ([["half"]], [[1.0]]), "a sequence of numbers for each team"),
        ([["ann"]], [["bob"]], [[1.0]], "must be a pair, of the first and of the second"),
        ([["ann", None]], [["bob"]], None, "Team 0 of first has a member without a name"),
        ([["ann"]], [["bob", np.nan]], None, "teams may differ in size"),
        ([1], [2], None, r"Team 0 of first is 1; give a sequence of names, such as \[1\]"),
        ([[["ann"]]], [["bob"]], None, "names that may be keys of a dict"),
    ],
)
def test_what_is_no_duel_of_teams_is_refused(first, second, weights, words):
    with pytest.raises(ValueError, match=words):
        from_teams(first, second, weights)


def test_a_table_is_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="first is a table; give a sequence of teams"):
        from_teams(pandas.DataFrame({"one": ["ann"]}), [["bob"]])


def test_rows_say_what_is_wrong():
    duels = from_teams([["ann", "bob"]], [["cid"]])
    with pytest.raises(ValueError, match=r"'dan' in team 1 is not known. Add members"):
        duels.rows([["ann"], ["dan"]])
    with pytest.raises(ValueError, match="Team 0 has 3 members; these duels have room for 2"):
        duels.rows([["ann", "bob", "cid"]])
    with pytest.raises(ValueError, match="have no weights"):
        duels.rows([["ann"]], [[0.5]])
    with pytest.raises(ValueError, match="Give both, or neither"):
        from_teams([["ann"]], [["bob"]], ([[1.0]], [[1.0]]), like=duels)
