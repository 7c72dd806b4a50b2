"""Sets: what a run with them promises, and that the best is found by any answer to them."""

import pickle
from functools import cache

import numpy as np
import pytest
from scipy import stats
from sets_support import BEST, WAYS, ranking, said, taste, tell_sets
from tiers_support import thinned

from skpref import PairwisePreferenceRegressor
from skpref.inference import HMC
from skpref.optimize import STRATEGIES, HallucinationBelieverOptimizer, PreferenceOptimizer
from skpref.plotting._optimization import read_run

pytestmark = pytest.mark.usefixtures("brief")

SQUARE = [[0.0, 1.0]] * 2
MIXED = {"rate": stats.loguniform(1e-4, 1e-1), "depth": (1, 12), "kind": ["a", "b", "c"]}


def optimizer(space=SQUARE, seed=0, **options):
    return HallucinationBelieverOptimizer(space, random_state=seed, **options)


def different(items):
    rows = np.asarray(items)
    return min(np.abs(a - b).max() for k, a in enumerate(rows) for b in rows[k + 1 :])


# --- they optimise --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("way", "size"), list(zip(WAYS, [3, 5, 3, 5, 4], strict=True)))
def test_the_best_is_found_by_any_answer(way, size):
    made = tell_sets(optimizer(seed=1), 15, size, way)
    assert np.abs(made.recommend() - BEST).max() < 0.1


@pytest.mark.slow
def test_a_set_says_more_than_a_duel():
    """After as many answers: of four shown the best is nearer than of two."""
    ends = {}
    for size in (2, 4):
        runs = (tell_sets(optimizer(seed=k), 10, size) for k in range(3))
        ends[size] = np.median([-taste(made.recommend()) for made in runs])
    assert ends[4] < ends[2]


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize("name", thinned(STRATEGIES, 4))
def test_every_strategy_shows_sets(name):
    fields = STRATEGIES[name]._asdict()
    if fields["inference"] == "laplace":
        made = PreferenceOptimizer(SQUARE, **fields)
        with pytest.raises(ValueError, match="Laplace does not take choices"):
            made.ask(size=3)
        with pytest.raises(ValueError, match="Laplace does not take choices"):
            made.tell([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], chosen=0)
        assert made.n_told_ == len(made.pending_) == 0
        return
    if fields["inference"] == "hmc":
        fields["inference"] = HMC(draws=60, chains=20)
    made = PreferenceOptimizer(SQUARE, **fields, n_initial=2, random_state=0)
    for _ in range(2):
        items = made.ask(size=4)
        assert items.shape == (4, 2)
        assert different(items) > (0.02 if fields["inference"] == "ep" else 1e-6)
        made.tell(items, chosen=ranking(items)[0])
    if fields["incumbent"] in ("last_winner", "posterior_mean"):
        np.testing.assert_array_equal(made.ask(size=4)[0], made.incumbent_)


def test_challengers_of_a_set_are_of_draws_of_their_own():
    """An acquisition sees another posterior for each item but the incumbent."""
    seen = []

    def acquisition(posterior, X, incumbent):
        seen.append((posterior.mean(np.array([BEST]))[0], tuple(incumbent)))
        return posterior.mean(X)

    made = tell_sets(optimizer(acquisition=acquisition), 5, 4)
    seen.clear()
    items = made.ask(size=4)
    assert len({value for value, _ in seen}) == 3
    assert {incumbent for _, incumbent in seen} == {tuple(items[0])}
    np.testing.assert_array_equal(items[0], made.incumbent_)


@pytest.mark.slow
def test_a_mixed_space_and_a_pool_are_never_left():
    made = optimizer(MIXED, n_initial=3)
    for _ in range(8):
        items = made.ask(size=4)
        assert isinstance(items, tuple)
        assert len({repr(item) for item in items}) == 4
        for item in items:
            assert type(item["depth"]) is int
            assert item["kind"] in "abc"
        made.tell(items, worst=int(np.argmax([item["depth"] for item in items])))
    assert made.recommend()["depth"] < 6
    table = np.random.default_rng(0).random((30, 2))
    known = {row.tobytes() for row in table}
    made = tell_sets(optimizer(None, candidates=table, n_initial=3), 8)
    assert all(item.tobytes() in known for entry in made.history_ for item in entry.items)
    np.testing.assert_array_equal(made.recommend(), table[ranking(table)[0]])


def test_what_is_learned_is_what_the_estimator_learns():
    """Told by position here, in arrays of one size there; at the same hyperparameters."""
    made = tell_sets(optimizer(seed=2), 8, 3)
    posterior = made.posterior_
    model = PairwisePreferenceRegressor(
        posterior.kernel,
        noise_variance=posterior.likelihood.noise_variance,
        optimizer=None,
    ).fit(
        np.array([entry.items for entry in made.history_]),
        [entry.outcome["chosen"] for entry in made.history_],
    )
    X = np.random.default_rng(0).random((20, 2))
    np.testing.assert_allclose(posterior.mean(X), model.posterior_.mean(X), atol=1e-6)
    np.testing.assert_allclose(posterior.var(X), model.posterior_.var(X), atol=1e-6)


def test_the_good_ones_of_a_set_are_learned_as_importance_sampling_says():
    """Utilities drawn from the prior, weighed by whether both good ones beat both others."""
    items = np.array([[0.1, 0.2], [0.4, 0.9], [0.8, 0.3], [0.9, 0.8]])
    made = PreferenceOptimizer(SQUARE, random_state=0).tell(items, chosen=[0, 2])
    posterior = made.posterior_
    rows = made.to_unit(items)
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((400_000, 4)) @ np.linalg.cholesky(posterior.kernel(rows)).T
    noise = rng.standard_normal((400_000, 4)) * np.sqrt(posterior.likelihood.noise_variance / 2)
    noisy = drawn + noise
    agrees = noisy[:, [0, 2]].min(axis=1) > noisy[:, [1, 3]].max(axis=1)
    mean = drawn[agrees].mean(axis=0)
    np.testing.assert_allclose(posterior.mean(rows), mean, atol=0.03)
    assert made.history_[0].outcome == {"chosen": [0, 2]}
    assert read_run(made).best == [None]  # which of the two is better stays open


def test_the_good_ones_of_a_set_are_kept(tmp_path):
    """By the journal, by undo, by pickles, and by the history told again."""
    made = optimizer(journal=tmp_path / "run.db")
    made.tell(items := made.ask(size=4), chosen=[1, 3])
    later = made.ask(size=4)
    for same in (
        optimizer(journal=tmp_path / "run.db"),
        pickle.loads(pickle.dumps(made)),
        optimizer().tell(*made.history_[0]),
    ):
        assert same.history_[0].outcome == {"chosen": [1, 3]}
        np.testing.assert_array_equal(same.recommend(), made.recommend())
    np.testing.assert_array_equal(optimizer(journal=tmp_path / "run.db").ask(size=4), later)
    np.testing.assert_array_equal(made.undo().ask(size=4), items)


# --- what a session promises ----------------------------------------------------------------


def told(n=8):
    return pickle.loads(kept(n))


@cache
def kept(n):
    """A run that many tests go on from, each with a copy."""
    return pickle.dumps(tell_sets(optimizer(), n))


@pytest.mark.parametrize("n_told", [0, 2, 8])
def test_asking_twice_gives_the_same_set(n_told):
    made = told(n_told)
    items = made.ask(size=4)
    assert items.shape == (4, 2)
    np.testing.assert_array_equal(made.ask(size=4), items)
    np.testing.assert_array_equal(made.ask(3, size=4)[0], items)
    np.testing.assert_array_equal(made.ask(3, size=4), made.ask(3, size=4))
    assert len(np.unique(made.ask(3, size=4).reshape(3, -1), axis=0)) == 3


@pytest.mark.slow
def test_another_size_is_another_question():
    made = told()
    duel, items, more = made.ask(), made.ask(size=4), made.ask(2, size=3)
    np.testing.assert_array_equal(made.ask(), duel)
    np.testing.assert_array_equal(made.ask(size=4), items)
    assert [len(each) for each in made.pending_] == [2, 4, 3, 3]
    assert isinstance(made.pending_, list)
    made.tell(items, chosen=0).tell(duel, 1)
    np.testing.assert_array_equal(made.pending_, more)
    assert made.pending_.shape == (2, 3, 2)


def test_a_set_in_another_order_is_the_same_question():
    made = told()
    items = made.ask(size=3)
    made.tell(items[[2, 0, 1]], chosen=0)
    assert len(made.pending_) == 0
    np.testing.assert_array_equal(made.incumbent_, items[2])


@pytest.mark.slow
def test_the_history_can_be_told_again():
    made, again = optimizer(), optimizer()
    for way in (*WAYS, "tie"):
        items = made.ask(size=2 if way == "tie" else 4)
        made.tell(items, **said(items, way))
    made.tell(made.ask(), 1)
    for entry in made.history_:
        again.tell(*entry)
        entry.items[:] = 0.0
        if isinstance(entry.outcome, dict):
            entry.outcome.clear()
    for one, two in zip(made.history_, again.history_, strict=True):
        np.testing.assert_array_equal(one.items, two.items)
        assert one.outcome == two.outcome
    assert [list(entry.outcome) for entry in made.history_[:5]] == [
        ["chosen"],
        ["worst"],
        ["chosen", "worst"],
        ["ranking"],
        ["ranking"],
    ]
    np.testing.assert_array_equal(made.recommend(), again.recommend())


def test_a_choice_of_two_is_a_duel():
    by_duels, by_choices = optimizer(), optimizer()
    for _ in range(8):
        items = by_duels.ask()
        np.testing.assert_array_equal(by_choices.ask(size=2), items)
        best = ranking(items)[0]
        by_duels.tell(items, best == 0)
        by_choices.tell(items, chosen=best)
    assert [e.outcome for e in by_choices.history_] == [e.outcome for e in by_duels.history_]


@pytest.mark.slow
def test_skips_and_undos_of_sets():
    made = told()
    items, best = made.ask(size=4), made.recommend()
    made.skip(items)
    other = made.ask(size=4)
    apart = np.linalg.norm(items[:, None] - other, axis=2)
    assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) > 0.02  # none close to it
    made.undo()
    np.testing.assert_array_equal(made.ask(size=4), items)
    made.tell(items, None)
    np.testing.assert_array_equal(made.ask(size=4), other)
    made.tell(other, worst=2)
    made.undo().undo()
    np.testing.assert_array_equal(made.ask(size=4), items)
    np.testing.assert_array_equal(made.recommend(), best)
    after = made.tell(items, ranking=[3, 1]).ask(size=4)
    made.undo()
    np.testing.assert_array_equal(made.tell(items, ranking=[3, 1]).ask(size=4), after)


@pytest.mark.slow
def test_sets_of_a_small_pool_run_round():
    table = np.arange(5.0)[:, None]
    made = optimizer(None, candidates=table, n_initial=1)
    made.tell(table[:4], chosen=1)
    duel = made.ask()
    assert [len(items) for items in (made.ask(size=3), *made.pending_)] == [3, 2, 3]
    made.tell(duel, 1).tell(made.pending_[0], worst=0)
    asked = []
    for _ in range(5):
        items = made.ask(size=4)
        asked.append(tuple(sorted(items[:, 0])))
        made.skip(items)
    assert len(set(asked)) == 5  # all sets of four of five
    with pytest.raises(ValueError, match=r"No set is left .* every other set of 4 is pending"):
        made.ask(6, size=4)
    all_of_them = optimizer(None, candidates=table[:3])
    all_of_them.skip(all_of_them.ask(size=3))
    with pytest.raises(ValueError, match="No set is left to ask"):
        all_of_them.ask(size=3)
    with pytest.raises(ValueError, match="size=6 items are to be shown, and there are 5"):
        made.ask(size=6)


def test_the_design_covers_the_space_and_ends():
    made = optimizer(n_initial=16)
    sets = made.ask(8, size=4)  # as many items as of 16 duels
    assert stats.qmc.discrepancy(sets.reshape(-1, 2)) < 0.02  # 32 random points: about 0.05
    for items in sets:
        made.tell(items, chosen=ranking(items)[0])
    np.testing.assert_array_equal(made.ask(size=4)[0], made.incumbent_)
    # the same points, however many at a time
    duels = optimizer(n_initial=16).ask(16)
    np.testing.assert_array_equal(duels.reshape(-1, 2), sets.reshape(-1, 2))


def test_no_item_of_the_design_is_passed_over_or_shown_twice():
    """Whatever sizes are asked for, and after what is taken back."""
    made, rows = optimizer(n_initial=10), []
    for size in (2, 3, 4, 2):
        items = made.ask(size=size)
        made.tell(items, None).undo()
        made.tell(items, **said(items, "tie" if size == 2 else "worst")).ask(size=5)
        made.undo()
        np.testing.assert_array_equal(made.ask(size=size), items)
        rows.append(made.tell(items, **said(items, "tie" if size == 2 else "worst")) and items)
    design = optimizer(n_initial=10).ask(10).reshape(-1, 2)
    np.testing.assert_array_equal(np.concatenate(rows), design[:11])


def test_initial_duels_are_shown_in_sets_too():
    given = np.array([[[0.1, 0.2], [0.3, 0.4]], [[0.5, 0.6], [0.7, 0.8]]])
    made = optimizer(initial_duels=given, n_initial=4)
    first = made.ask(size=3)
    np.testing.assert_array_equal(first[:2], given[0])
    assert different(first) > 1e-6
    np.testing.assert_array_equal(made.ask(), given[1])
    whole = optimizer(initial_duels=given, n_initial=4)
    np.testing.assert_array_equal(whole.ask(size=4), given.reshape(4, 2))
    shared = [given[0], [given[0, 0], given[1, 0]], given[1]]
    joined = optimizer(initial_duels=shared, n_initial=4)
    np.testing.assert_array_equal(joined.ask(size=3), [*given[0], given[1, 0]])
    np.testing.assert_array_equal(joined.ask(), given[1])
    doubled = optimizer(initial_duels=[given[0], given[0]])
    assert different(doubled.ask(size=4)) > 1e-6


@pytest.mark.slow
def test_pickling_goes_on_the_same_way():
    made = told(7)
    made.ask(size=4)
    copy = pickle.loads(pickle.dumps(made))
    for size in (4, 2, 3):
        np.testing.assert_array_equal(copy.ask(size=size), made.ask(size=size))
        tell_sets(made, 1, size)
        tell_sets(copy, 1, size)


# --- the loop -------------------------------------------------------------------------------


ANSWERS = [
    (lambda order: order[0], "chosen"),
    (lambda order: order, "ranking"),
    (lambda order: tuple(order[:2]), "top"),
    (lambda order: np.array(order), "ranking"),
    (lambda order: np.int64(order[0]), "chosen"),
    (lambda order: {"worst": order[-1]}, "worst"),
    (lambda order: {"chosen": order[0], "worst": order[-1]}, "both"),
    (lambda order: {"ranking": order}, "ranking"),
]


@pytest.mark.slow
def test_a_judge_of_sets_may_answer_in_any_way():
    made, asked = optimizer(), iter(range(-1, 14))

    def judge(*items):
        assert len(items) == 3
        number = next(asked)
        return None if number < 0 else ANSWERS[number % len(ANSWERS)][0](ranking(items))

    best = made.run(judge, 14, size=3)
    assert made.n_told_ == 14
    for number, entry in enumerate(made.history_):
        assert entry.outcome == said(entry.items, ANSWERS[number % len(ANSWERS)][1])
    assert np.abs(best - BEST).max() < 0.15


@pytest.mark.parametrize("answer", [True, "tie", 1.0, 3, [0, 0]])
def test_a_judge_of_sets_who_answers_otherwise_is_told_so(answer):
    with pytest.raises((TypeError, ValueError), match=r"position|at most once"):
        optimizer().run(lambda *items: answer, 3, size=3)


def test_a_judge_of_duels_may_answer_in_any_way():
    made = optimizer()
    answers = iter([1, True, "tie", None, 0.5, {"chosen": 1}, np.bool_(False), -1])
    made.run(lambda first, second: next(answers), 7)
    outcomes = [entry.outcome for entry in made.history_]
    assert outcomes == [1, 1, "tie", "tie", 0, 0, 0]


def test_a_judge_of_two_says_no_position():
    made = optimizer()
    with pytest.raises(ValueError, match=r"returns the outcome \(1 where the first.*kind='duel'"):
        made.run(lambda first, second: 0, 3, size=2)
    assert made.n_told_ == 0
    made.run(lambda first, second: 0, 3, size=2, kind="duel")
    assert [entry.outcome for entry in made.history_] == [0, 0, 0]


def test_items_of_a_set_differ():
    made = told(3)
    shown = made.ask(size=3)
    for items, message in [
        ([[0.1, 0.1], [0.2, 0.2], [0.1, 0.1]], r"A set needs 3 different items, got \[0.1"),
        ([[0.1, 0.1], [0.2, 0.2], [0.1, 2.0]], "lies outside"),
        ([[0.1, 0.1]], "A duel is a pair of items"),
    ]:
        with pytest.raises(ValueError, match=message):
            made.tell(items, chosen=0)
    with pytest.raises(ValueError, match=r"size must lie in \[2, inf\], got 1"):
        made.ask(size=1)
    with pytest.raises(TypeError, match="size must be an integer"):
        made.ask(size=2.5)
    with pytest.raises(ValueError, match="A duel is a pair of items, got 3 of them"):
        optimizer(initial_duels=[[[0.1, 0.1], [0.2, 0.2], [0.3, 0.1]]])
    assert made.n_told_ == 3
    np.testing.assert_array_equal(made.ask(size=3), shown)
    assert repr(made).endswith("answers told: 3, pending: 1>")
