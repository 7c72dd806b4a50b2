"""Learners: what they ask, that a journal takes them up exactly, and that they learn faster."""

import pickle

import numpy as np
import pytest
from journal_support import copied
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.active import all_pairs, query
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.duels import DuelFrame
from skpref.inspection import leaderboard
from skpref.likelihoods import DUEL, TIE, Derivatives, Likelihood, Probit
from skpref.optimize import (
    ActiveLearner,
    AlreadyAnswered,
    HallucinationBelieverOptimizer,
    read_journal,
)
from skpref.preprocessing import Itemwise

ITEMS = np.random.default_rng(4).uniform(-1.0, 1.0, (10, 2))
NAMES = ItemTable(ITEMS, names=[f"item {k}" for k in range(10)])


def model(**options):
    options = {"noise_variance": 0.05, "optimizer": None} | options
    return PairwisePreferenceRegressor(RBF(1.0), **options)


def learner(path=None, pool=ITEMS, seed=0, estimator=None, **options):
    options = {"n_initial": 3} | options
    estimator = model() if estimator is None else estimator
    return ActiveLearner(estimator, pool, journal=path, random_state=seed, **options)


def judged(duel):
    return int(np.sin(3.0 * duel[0][0]) > np.sin(3.0 * duel[1][0]))


def answer(made, n=1):
    for _ in range(n):
        duel = made.ask()
        made.tell(duel, judged(duel))
    return made


def key(duel):
    return tuple(sorted(map(tuple, np.asarray(duel).tolist())))


def same_questions(one, two, n=3):
    assert one.n_told_ == two.n_told_
    for _ in range(n):
        assert_array_equal(one.ask(), two.ask())
        answer(one), answer(two)


# -- what is asked ---------------------------------------------------------------------------


def test_questions_are_those_of_a_query():
    made = learner(pool=all_pairs(ITEMS), n_initial=2)
    for step in range(6):
        duel = made.ask()
        if step >= 2:
            X = np.array([told.items for told in made.history_])
            y = [told.outcome for told in made.history_]
            fitted = model().fit(X, y)
            chosen = query(fitted, all_pairs(ITEMS), answered=X)
            assert_array_equal(duel, all_pairs(ITEMS)[chosen[0]])
        made.tell(duel, judged(duel))
    assert_array_equal(made.estimator_.predict(ITEMS), made.posterior_.mean(ITEMS))
    best = ITEMS[made.posterior_.mean(ITEMS).argmax()]
    assert_array_equal(made.recommend(), best)


def test_several_questions_are_those_of_a_query():
    made = answer(learner(pool=all_pairs(ITEMS)), 4)
    X = np.array([told.items for told in made.history_])
    fitted = model().fit(X, [told.outcome for told in made.history_])
    chosen = query(fitted, all_pairs(ITEMS), n=4, answered=X)
    assert_array_equal(made.ask(4), all_pairs(ITEMS)[chosen])
    assert_array_equal(made.pending_, all_pairs(ITEMS)[chosen])
    assert_array_equal(made.ask(), all_pairs(ITEMS)[chosen[0]])


def test_the_first_questions_are_random():
    firsts = [learner(seed=seed).ask(3) for seed in range(8)]
    assert len({key(duels[0]) for duels in firsts}) > 4
    assert all(len({key(duel) for duel in duels}) == 3 for duels in firsts)
    assert_array_equal(firsts[3], learner(seed=3).ask(3))
    sides = [np.argmax(np.all(duel[0] == ITEMS, axis=1)) for duels in firsts for duel in duels]
    others = [np.argmax(np.all(duel[1] == ITEMS, axis=1)) for duels in firsts for duel in duels]
    assert 4 < np.sum(np.array(sides) < others) < 20  # of 24, either way round


def test_no_duel_is_asked_twice_unless_that_is_wished():
    made = learner(pool=ITEMS[:4])
    asked = set()
    for _ in range(6):
        asked.add(key(made.ask()))
        answer(made)
    assert len(asked) == 6
    with pytest.raises(ValueError, match="repeat=True"):
        made.ask()
    again = answer(learner(pool=ITEMS[:4], repeat=True), 9)
    assert again.n_told_ == 9


def test_what_was_skipped_waits():
    made = learner(pool=ITEMS[:3])
    first = made.ask()
    second = made.skip(first).ask()
    third = made.skip(second).ask()
    assert len({key(each) for each in (first, second, third)}) == 3
    made.tell(third, 1)
    assert key(made.ask()) == key(first)  # all but the last skipped are free again
    assert made.undo().undo().n_told_ == 0
    assert_array_equal(made.ask(), second)


def test_answers_that_were_not_asked_for():
    made = learner(pool=all_pairs(ITEMS)[:5])
    with pytest.raises(ValueError, match="candidates"):
        made.tell([[5.0, 5.0], [0.0, 0.0]], 1)
    made.tell(ITEMS[[0, 2]][::-1], 0)  # in the pool, the other way round
    made.tell(ITEMS[[1, 2]], 1)  # its items are, it is not
    asked = {key(duel) for duel in made.ask(4)}
    assert key(ITEMS[[0, 2]]) not in asked
    assert len(asked) == 4
    assert made.n_told_ == 2


class Davidson(Likelihood):
    """P(first) ∝ exp(m/2), P(second) ∝ exp(−m/2), P(tie) ∝ 1: ties without a threshold."""

    kinds = frozenset({DUEL, TIE})

    def log_prob(self, margin, answers):
        tie, up, down = answers.kind == TIE, np.exp(0.5 * margin), np.exp(-0.5 * margin)
        total = 1.0 + up + down
        mean, spread = 0.5 * (up - down) / total, 0.25 * (up + down) / total
        curvature = spread - mean**2
        third = 0.25 * mean - 3.0 * mean * spread + 2.0 * mean**3
        won = np.where(tie, 0.0, 0.5)
        return Derivatives(won * margin - np.log(total), won - mean, curvature, -third)


def test_ties_are_a_matter_of_the_likelihood():
    """Davidson's model has ties, and no parameter named tie_threshold."""
    for estimator in (
        model(likelihood=Davidson()),
        make_pipeline(Itemwise(StandardScaler()), model(likelihood=Davidson())),
    ):
        made = learner(estimator=estimator, n_initial=1)
        made.tell(ITEMS[[0, 1]], "tie").tell(ITEMS[[2, 3]], 1)
        assert [each.outcome for each in made.history_] == ["tie", 1]
        assert made.ask().shape == (2, 2)
    with pytest.raises(ValueError, match=r"got a tie\. To learn from ties, give tie_threshold"):
        learner(estimator=model(tie_threshold=0.2, likelihood=Probit(0.05))).tell(
            ITEMS[[0, 1]], "tie"
        )


def test_ties():
    made = learner(estimator=model(tie_threshold=0.2))
    made.tell(ITEMS[[0, 1]], "tie")
    duel = made.ask()  # a tie alone tells no estimator that there are duels
    made.tell(ITEMS[[2, 3]], 1).tell(ITEMS[[4, 5]], "tie")
    expected = model(tie_threshold=0.2).fit(ITEMS[[[0, 1], [3, 2], [4, 5]]], [0, -1, 0])
    np.testing.assert_allclose(made.posterior_.mean(ITEMS), expected.predict(ITEMS), atol=1e-9)
    answer(made, 3)
    with pytest.raises(ValueError, match=r"tie_threshold=0\.1"):
        learner().tell(duel, "tie")
    turned = model(tie_threshold=0.2, order_effect=0.3)
    made = learner(estimator=turned).tell(ITEMS[[0, 1]], "tie").tell(ITEMS[[2, 3]], 1)
    X, y = ITEMS[[[0, 1], [3, 2]]], [0, -1]
    np.testing.assert_allclose(
        made.posterior_.mean(ITEMS), turned.fit(X, y, order=[1, -1]).predict(ITEMS), atol=1e-9
    )


# -- journals --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_told", [0, 2, 5])
@pytest.mark.parametrize("n_asked", [0, 2])
def test_a_closed_run_goes_on_to_the_same_questions(tmp_path, n_told, n_asked):
    first = answer(learner(tmp_path / "run.db"), n_told)
    if n_asked:
        first.ask(n_asked)
    second = learner(copied(tmp_path / "run.db", tmp_path))
    assert_array_equal(first.pending_, second.pending_)
    same_questions(first, second)


def test_memory_and_journal_ask_the_same(tmp_path):
    one, two = learner(), learner(tmp_path / "run.db")
    for made in (one, two):
        answer(made, 4)
        made.skip(made.ask())
        answer(made, 1)
        made.undo()
    same_questions(one, two)


@pytest.mark.parametrize("strategy", ["committee", "random", "best_item"])
def test_chance_is_taken_up_too(tmp_path, strategy):
    answer(learner(tmp_path / "run.db", strategy=strategy), 4)
    same_questions(
        learner(copied(tmp_path / "run.db", tmp_path, "a.db"), strategy=strategy),
        learner(copied(tmp_path / "run.db", tmp_path, "b.db"), strategy=strategy),
    )


def test_an_engine_that_samples_gets_a_seed(tmp_path):
    made = [learner(estimator=model(inference="hmc"), seed=seed) for seed in (0, 0, 1)]
    for each in made:
        each.tell(ITEMS[[0, 1]], 1).tell(ITEMS[[2, 3]], 1)
    means = [each.posterior_.mean(ITEMS) for each in made]
    assert_array_equal(means[0], means[1])
    assert not np.array_equal(means[0], means[2])
    seeded = learner(estimator=model(inference="hmc", random_state=7), seed=1)
    assert seeded.tell(ITEMS[[0, 1]], 1).estimator_.random_state == 7


def test_a_journal_is_of_one_configuration(tmp_path):
    path = tmp_path / "run.db"
    answer(learner(path), 2)
    assert learner(path).n_told_ == 2
    for options in (
        {"strategy": "entropy"},
        {"options": {"method": "closed_form"}},
        {"pool": ITEMS[:9]},
        {"pool": all_pairs(ITEMS)},
        {"estimator": model(noise_variance=0.1)},
        {"n_initial": 4},
        {"repeat": True},
        {"seed": 1},
    ):
        with pytest.raises(ValueError, match=r"another configuration|begun with random_state"):
            learner(path, **options)
    with pytest.raises(ValueError, match="another configuration"):
        HallucinationBelieverOptimizer(candidates=ITEMS, journal=path)
    table = read_journal(path)
    assert table["kind"] == ["ask", "tell"] * 2
    assert_array_equal(table["first"][0], answer(learner(), 1).history_[0].items[0])


def test_two_judges_share_a_run(tmp_path):
    path = tmp_path / "run.db"
    one = answer(learner(path, judge="one"), 3)
    mine = one.ask()
    two = learner(path, judge="two")
    theirs = two.ask()
    assert not np.array_equal(theirs, mine)
    two.tell(mine, 1)
    with pytest.raises(AlreadyAnswered):
        one.tell(mine, 0)
    assert one.n_told_ == 4


def test_pickles():
    made = answer(learner(), 4)
    made.ask()
    same_questions(pickle.loads(pickle.dumps(made)), made)


# -- pools -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_pools_of_every_form():
    pairs = all_pairs(10)
    reference = answer(learner(pool=all_pairs(ITEMS)), 5).ask()
    for pool in (DuelFrame(ITEMS, pairs), all_pairs(ITEMS).tolist()):
        assert_array_equal(answer(learner(pool=pool), 5).ask(), reference)
    plain = model(items=ItemTable(ITEMS))
    assert_array_equal(answer(learner(pool=pairs, estimator=plain), 5).ask(), reference)
    named = learner(pool=NAMES.names[pairs], estimator=model(items=NAMES))
    for _ in range(5):
        first, second = named.ask()
        at = [NAMES.names.tolist().index(name) for name in (first, second)]
        named.tell((first, second), judged(ITEMS[at]))
    first, second = named.ask()
    at = [NAMES.names.tolist().index(name) for name in (first, second)]
    assert_array_equal(ITEMS[at], reference)


def test_items_with_names_alone():
    table = ItemTable.from_names(["ann", "bob", "cid", "dan", "eve"])
    made = learner(pool=table, estimator=PairwisePreferenceRegressor(items=table, optimizer=None))
    strength = dict(zip(table.names, range(5), strict=True))
    best = made.run(lambda a, b: strength[a] > strength[b], 9)
    assert best == "eve"
    assert len(set(map(frozenset, (told.items for told in made.history_)))) == 9
    mean = made.posterior_.mean(["ann", "bob", "cid", "dan", "eve"])
    assert np.all(np.diff(mean) > 0.0)
    with pytest.raises(ValueError, match="items="):
        learner(pool=table)


def test_a_pipeline():
    pipeline = make_pipeline(Itemwise(StandardScaler()), model())
    made = answer(learner(pool=all_pairs(ITEMS), estimator=pipeline), 4)
    X = np.array([told.items for told in made.history_])
    fitted = pipeline.fit(X, [told.outcome for told in made.history_])
    expected = query(fitted, all_pairs(ITEMS), answered=X)
    assert_array_equal(made.ask(), all_pairs(ITEMS)[expected[0]])


FORMS = {
    "frame": lambda frame: frame,
    "names in the index": lambda frame: frame.set_axis(NAMES.names.tolist()),
    "table": ItemTable,
    "duels": lambda frame: DuelFrame(frame, all_pairs(10)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("piped", [False, True], ids=["alone", "pipeline"])
def test_a_model_of_a_frame_knows_its_columns(form, piped):
    frame = pytest.importorskip("pandas").DataFrame(ITEMS, columns=["sweet", "bitter"])
    estimator = make_pipeline(Itemwise(StandardScaler()), model()) if piped else model()
    made = learner(pool=FORMS[form](frame), estimator=estimator, n_initial=2)
    plain = learner(pool=all_pairs(ITEMS), estimator=estimator)
    for pair in all_pairs(10)[:4]:
        made.tell(frame.iloc[pair], judged(ITEMS[pair]))
        plain.tell(ITEMS[pair], judged(ITEMS[pair]))
    made.ask()
    fitted = made.estimator_
    assert_array_equal(fitted.predict(frame), plain.estimator_.predict(ITEMS))
    assert fitted.feature_names_in_.tolist() == ["sweet", "bitter"]
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame[["bitter", "sweet"]])
    made.recommend()
    assert len(leaderboard(made).names) == 10


@pytest.mark.filterwarnings("error")
def test_a_model_of_several_users_knows_the_columns_of_a_frame():
    frame = pytest.importorskip("pandas").DataFrame(ITEMS, columns=["sweet", "bitter"])
    estimator = CollaborativePreferenceRegressor(optimizer=None)
    made = learner(pool=frame, estimator=estimator, users=["ann", "bob"])
    made.run(lambda user, duel: judged(duel), 5)
    made.recommend("ann")
    assert made.estimator_.predict(frame, users=["ann"] * 10).shape == (10,)
    with pytest.raises(ValueError, match=r"X has columns \['bitter', 'sweet'\], but the model was"):
        made.estimator_.predict(frame[["bitter", "sweet"]], users=["ann"] * 10)


def test_a_model_of_arrays_knows_no_columns():
    pd = pytest.importorskip("pandas")
    for pool in (ITEMS, pd.DataFrame(ITEMS), DuelFrame(ITEMS, all_pairs(10))):
        fitted = answer(learner(pool=pool), 4).estimator_
        assert not hasattr(fitted, "feature_names_in_")


def test_equal_items_are_one():
    doubled = np.concatenate([ITEMS[:3], ITEMS[:1]])
    made = learner(pool=np.concatenate([all_pairs(doubled), all_pairs(ITEMS[:3])[:, ::-1]]))
    assert len({key(duel) for duel in made.ask(3)}) == 3
    with pytest.raises(ValueError, match="left to ask"):
        made.ask(4)


def test_pairs_of_a_table_are_read_as_in_fit():
    pairs = all_pairs(10)
    expected = learner(pool=NAMES.names[pairs], estimator=model(items=NAMES)).ask(4)
    assert learner(pool=pairs, estimator=model(items=NAMES)).ask(4) == expected
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(NAMES.names[pairs])
    assert learner(pool=frame, estimator=model(items=NAMES)).ask(4) == expected
    numbered = ItemTable(ITEMS, names=range(9, -1, -1))
    for whole, first in ((pairs[:1], {9, 8}), (pairs[:1].astype(object), {0, 1})):
        made = learner(pool=whole, estimator=model(items=numbered))
        assert set(made.ask()) == first  # integers are positions, objects names
        told = model(items=numbered).fit(whole, [1]).duels_.items
        assert {tuple(row) for row in told} == {tuple(ITEMS[9 - name]) for name in first}
    with pytest.raises(ValueError, match=r"must lie in \[0, 9\], got 10"):
        learner(pool=pairs + 1, estimator=model(items=NAMES))
    frame = pd.DataFrame(ITEMS, index=range(9, -1, -1))
    with pytest.warns(UserWarning, match="positions in items=, counted from 0"):
        learner(pool=pairs, estimator=model(items=frame))


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (np.zeros((3, 3, 2)), r"shape \(3, 3, 2\)"),
        ([[0, 1], [1, 2]], "items="),
        (np.stack([ITEMS, ITEMS], axis=1), "two different items"),
    ],
)
def test_bad_pools_are_errors(pool, message):
    with pytest.raises(ValueError, match=message):
        learner(pool=pool)


@pytest.mark.parametrize("pool", [[["a", "b"]], [[0, 1, 2]], np.array([[0, 1]], dtype=object)])
def test_pairs_that_a_table_does_not_have_are_errors(pool):
    with pytest.raises(ValueError, match=r"has shape \(n_duels, 2\).*10 items, 2 features"):
        learner(pool=pool, estimator=model(items=ITEMS))


def test_bad_arguments_are_errors():
    with pytest.raises(ValueError, match="'bald'"):
        learner(strategy="best")
    with pytest.raises(ValueError, match="n_initial"):
        learner(n_initial=-1)
    made = learner()
    for each in ("estimator_", "posterior_"):
        with pytest.raises(NotFittedError, match="ask"):
            getattr(made, each)
    with pytest.raises(ValueError, match="Outcomes of duels"):
        made.tell(made.ask(), 2)
    assert "45 duels of 10 items" in repr(made)


# -- learning --------------------------------------------------------------------------------


@pytest.mark.slow
def test_asking_well_learns_faster_than_asking_at_random():
    items = np.random.default_rng(0).uniform(-1.0, 1.0, (25, 1))
    truth = np.sin(4.0 * items[:, 0])
    tests = all_pairs(25)
    right = truth[tests[:, 0]] > truth[tests[:, 1]]
    errors = {"bald": [], "random": []}
    for strategy, found in errors.items():
        for seed in range(2):
            estimator = PairwisePreferenceRegressor(RBF(0.4), noise_variance=1e-3, optimizer=None)
            made = ActiveLearner(estimator, items, strategy, random_state=seed)
            made.run(lambda a, b: np.sin(4.0 * a[0]) > np.sin(4.0 * b[0]), 25)
            margin = made.estimator_.predict(items[tests])
            found.append(np.mean((margin > 0.0) != right))
    assert np.mean(errors["bald"]) < 0.5 * np.mean(errors["random"])


def test_who_is_shown_first_is_drawn_for_each_question():
    items = np.arange(12.0)[:, None]
    asked = answer(learner(pool=items, n_initial=6), 14).history_
    first = [each.items[0, 0] < each.items[1, 0] for each in asked]
    assert 0 < sum(first[:6]) < 6 and 0 < sum(first[6:]) < 8


def test_columns_that_are_not_named_by_texts_have_no_names():
    rows = np.random.default_rng(0).normal(size=(5, 2))
    frame = pytest.importorskip("pandas").DataFrame(rows, columns=[0, "z"])
    found = []
    for pool in (frame, frame.to_numpy()):
        learner = ActiveLearner(PairwisePreferenceRegressor(optimizer=None), pool, random_state=0)
        learner.run(lambda a, b: a[0] > b[0], 5)
        found.append(learner.recommend())
    np.testing.assert_array_equal(found[0], found[1])


def test_gaps_in_a_pool_of_duels_are_named_by_duel():
    pool = np.arange(12.0).reshape(3, 2, 2)
    pool[1, 0, 1] = np.nan
    with pytest.raises(ValueError, match=r"Input pool contains NaN.* 1 of 3 duels, first in row 1"):
        ActiveLearner(PairwisePreferenceRegressor(), pool)
