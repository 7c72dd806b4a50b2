"""What is wrong with a model is named where it is planted, and nothing where nothing is."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.inspection import check, loo

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "posterior"
FAULTS = {
    "two_groups": "groups of items",
    "shared_prompts": "dependence by prompt",
    "contrary_judge": "judges",
    "length_lover": "dependence by judge",
    "swapped_column": "columns",
    "circle": "circles",
    "drift": "dependence by time",
    "wrong_ties": "ties",
    "duplicates": "dependence by pair",
    "leak": "leaks",
    "short_lengthscale": "lengthscales",
    "advantage": "order",
}


@pytest.fixture(scope="module")
def planted():
    sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]
    try:
        import planted_faults
    finally:
        del sys.path[:2]
    return planted_faults


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(planted, fault):
    assert FAULTS[fault] in planted.topics(getattr(planted, fault), 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("votes", ["sound", "sound_groups"])
def test_nothing_is_wrong_with_sound_votes(planted, votes, seed):
    assert planted.topics(getattr(planted, votes), seed) == []


def test_a_judge_of_other_tastes_is_named(planted):
    X, y, groups, _ = planted.length_lover(np.random.default_rng(1))
    names = np.array(list("abcdefgh"))[groups["judge"]]
    result = check(PairwisePreferenceRegressor().fit(X, y), {"judge": names})
    assert "The judge d likes other things" in str(result)


def test_rows_of_swapped_sides_are_named(planted):
    X, y, _, params = planted.swapped_column(np.random.default_rng(1))
    result = check(PairwisePreferenceRegressor(**params).fit(X, y))
    (sentence,) = (f.sentence for f in result.findings if f.topic == "columns")
    first, last, column = map(
        int, re.findall(r"answers (\d+) to (\d+) .*column (\d+)", sentence)[0]
    )
    assert last > 200 and last - first < 40 and column == 0


def test_of_equally_improbable_findings_the_most_specific_comes_first(planted):
    X, y, groups, _ = planted.contrary_judge(np.random.default_rng(1))
    result = check(PairwisePreferenceRegressor().fit(X, y), groups)
    assert [f.topic for f in result.findings][:2] == ["judges", "dependence by judge"]
    assert "the wrong way round" in result.findings[0].sentence


def test_an_item_of_random_answers_is_named():
    rng = np.random.default_rng(0)
    first, second = rng.integers(5, size=(2, 300))
    second = np.where(first == second, (second + 1) % 5, second)
    y = first > second
    odd = (first == 4) & (np.arange(300) > 200)  # it beat all before
    y[odd] = False
    X = np.array(list("abcde"))[np.stack([first, second], axis=1)]
    result = check(PairwisePreferenceRegressor(noise_variance=0.05, optimizer=None).fit(X, y))
    assert any(f.topic == "items" and "Answers about e " in f.sentence for f in result.findings)


def test_an_item_whose_votes_are_turned_round_is_named(planted):
    assert "items" in planted.topics(planted.outlier, 4)


def test_who_goes_round_in_a_circle_is_named(planted):
    X, y, _, _ = planted.circle(np.random.default_rng(2))
    result = check(PairwisePreferenceRegressor().fit(X, y))
    (sentence,) = (f.sentence for f in result.findings if f.topic == "circles")
    a, b, c = re.match(r"(.+) beats (.+), .+ beats (item \d+), and", sentence).groups()
    won = np.where(y[:, None], X, X[:, ::-1])
    for winner, loser in ((a, b), (b, c), (c, a)):
        met = np.isin(won, [winner, loser]).all(axis=1)
        assert np.mean(won[met, 0] == winner) > 0.6


def test_probabilities_are_those_of_leaving_out():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(40, 2, 1))
    y = (X[:, 0, 0] - X[:, 1, 0] + 0.3 * rng.normal(size=40) > 0.0).astype(int)
    model = PairwisePreferenceRegressor(RBF(1.0), noise_variance=0.1, optimizer=None).fit(X, y)
    result = check(model)
    assert result.left_out.sum == pytest.approx(loo(model).sum)
    assert result.chance == pytest.approx(np.log(0.5)) and "(-0.693 by chance)" in str(result)
    assert len(result.topics) == len(result.p_values) and np.all(result.p_values > 0.0)


def test_choices_have_no_residuals():
    rng = np.random.default_rng(4)
    sets = rng.uniform(size=(20, 3, 1))
    model = PairwisePreferenceRegressor(RBF(1.0), optimizer=None)
    result = check(model.fit(sets, sets[:, :, 0].argmax(axis=1)))
    assert set(result.topics) == {"groups of items", "leaks", "lengthscales", "features"}


def test_texts_have_at_most_five_findings(planted):
    X, y, _, _ = planted.circle(np.random.default_rng(2))
    result = check(PairwisePreferenceRegressor().fit(X, y))
    assert str(result).count("\n- ") == min(5, len(result.findings)) == len(result.in_words()) - 1
    assert "<table>" in result._repr_html_() and "item 0" in result._repr_html_()


@pytest.mark.filterwarnings("ignore:The search")  # as much noise as may be
@pytest.mark.parametrize("seed", [1, 5, 10])
def test_coin_flips_are_no_fault(seed):
    # Leaving an answer out draws its prediction away from it: by simulations alone, at random would
    # be more probable than as predicted.
    rng = np.random.default_rng(seed)
    first = rng.integers(8, size=200)
    second = (first + rng.integers(1, 8, size=200)) % 8
    X = np.array(list("abcdefgh"))[np.stack([first, second], axis=1)]
    y, judge = rng.integers(2, size=200), rng.integers(4, size=200)
    assert check(PairwisePreferenceRegressor().fit(X, y), {"judge": judge}).findings == []


def test_several_users_are_refused():
    duels = [[[0.0], [1.0]], [[1.0], [2.0]], [[0.0], [2.0]]] * 2
    users = ["ann"] * 3 + ["bob"] * 3
    model = CollaborativePreferenceRegressor(optimizer=None)
    with pytest.raises(TypeError, match="give users as groups"):
        check(model.fit(duels, [0, 0, 0, 1, 1, 1], users=users))


def test_groups_of_another_length_are_refused():
    model = PairwisePreferenceRegressor(optimizer=None).fit([["a", "b"], ["b", "c"]])
    with pytest.raises(ValueError, match="groups"):
        check(model, {"prompt": [1, 2, 3]})


def votes_of_days(rng, n=480):
    """Return duels of eight items on 24 days, and how much better the first item of each is."""
    X = rng.permuted(np.tile(np.arange(8), (n, 1)), axis=1)[:, :2]
    day = np.datetime64("2024-01-01") + np.sort(np.arange(n) % 24)
    return X, (X[:, 0] - X[:, 1]) / 1.5, day


def test_a_date_of_random_answers_is_named():
    rng = np.random.default_rng(0)
    X, margin, day = votes_of_days(rng)
    y = margin + rng.normal(size=len(X)) > 0.0
    model = PairwisePreferenceRegressor().fit(X.astype(str), y)
    assert check(model, {"time": day}).findings == []
    strange = day == np.datetime64("2024-01-09")
    y[strange] = rng.integers(2, size=strange.sum())
    model = PairwisePreferenceRegressor().fit(X.astype(str), y)
    findings = check(model, {"time": day + np.timedelta64(1, "h")}).findings
    assert findings[0].topic == "dates"
    assert "Answers of 2024-01-09 are more probable" in findings[0].sentence


def test_a_contrary_user_is_named(planted):
    X, y, groups, _ = planted.contrary_judge(np.random.default_rng(1))
    result = check(PairwisePreferenceRegressor().fit(X, y), {"user": groups["judge"]})
    assert [f.topic for f in result.findings][:2] == ["users", "dependence by user"]
    assert result.findings[0].sentence.startswith("The user ")
    assert "CollaborativePreferenceRegressor" in result.findings[1].remedy


def test_an_advantage_that_goes_away_is_named_and_cured():
    rng = np.random.default_rng(2)
    X, margin, _ = votes_of_days(rng, 240)
    day = np.arange(len(X))
    y = margin + np.where(day < 180, 1.5, -1.5) + rng.normal(size=len(X)) > 0.0
    held = {"drift": 1e-8 * RBF(100.0, "fixed")}  # utilities stay
    model = PairwisePreferenceRegressor(order_effect_bounds=(-3.0, 3.0), **held)
    (finding,) = (
        each
        for each in check(model.fit(X.astype(str), y, time=day)).findings
        if each.topic == "order"
    )
    assert re.match(r"In period [78] of 8 what is shown first wins 0\.", finding.sentence)
    assert "order_drift=" in finding.remedy
    moving = PairwisePreferenceRegressor(order_drift="matern12", **held)
    assert check(moving.fit(X.astype(str), y, time=day)).findings == []
