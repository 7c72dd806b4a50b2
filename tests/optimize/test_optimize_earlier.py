"""Answers of earlier people: the prior they give, and what is asked and recommended with it."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.exceptions import NotFittedError

from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.data import ItemTable
from skpref.inference import HMC
from skpref.optimize import STRATEGIES, PreferenceOptimizer, _configuration
from skpref.optimize._earlier import read_earlier
from skpref.optimize._model import default_kernel
from skpref.optimize._spaces import make_space

pytestmark = pytest.mark.usefixtures("brief")

BOX = [[0.0, 4.0], [0.0, 1.0]]


def utility(items, best):
    return -np.sum(((np.asarray(items) - best) / [4.0, 1.0]) ** 2, axis=-1)


def answers_of(people, n, seed=0):
    """Random duels of people, given by their best items, and how they answer."""
    rng = np.random.default_rng(seed)
    X = rng.uniform([0.0, 0.0], [4.0, 1.0], (len(people) * n, 2, 2))
    users = np.repeat(np.arange(len(people)), n)
    best = np.asarray(people)[users]
    y = (utility(X[:, 0], best) > utility(X[:, 1], best)).astype(int)
    return {"X": X, "y": y, "users": users}


PEOPLE = np.array([3.0, 0.3]) + [0.3, 0.08] * np.random.default_rng(1).standard_normal((8, 2))
EARLIER = answers_of(PEOPLE, 10)
FEW = answers_of(PEOPLE[:3], 6)


@pytest.fixture(scope="module")
def population():
    """What `EARLIER` says of a person, read once by those who do not ask how it is read."""
    tastes = {}

    def read(earlier, *told):
        if earlier is not EARLIER:
            return read_earlier(earlier, *told)
        key = repr(told[1:])
        if key not in tastes:
            tastes[key] = read_earlier(earlier, *told)
        return tastes[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_configuration, "read_earlier", read)
        yield


@pytest.fixture
def informed(population):
    return PreferenceOptimizer(BOX, earlier=EARLIER, random_state=0)


def answer(optimizer, n, best=(3.0, 0.3), **keywords):
    for _ in range(n):
        first, second = optimizer.ask(**keywords)
        optimizer.tell((first, second), bool(utility(first, best) > utility(second, best)))
    return optimizer


# -- the prior -------------------------------------------------------------------------------


def test_the_prior_at_anchors_is_that_of_somebody_of_the_population():
    rows = EARLIER["X"] / [4.0, 1.0]
    winners = np.where(EARLIER["y"][:, None, None] == 1, rows, rows[:, ::-1])
    tastes = read_earlier(EARLIER, make_space(BOX), default_kernel(2), (0.3, 0.75))
    model = CollaborativePreferenceRegressor(
        default_kernel(2),
        lengthscale_prior=(0.3, 0.75),
        noise_variance_bounds=(1e-5, 1.0),
        n_learning_answers=300,
        random_state=0,
    ).fit(winners, np.ones(80, dtype=int), users=EARLIER["users"])
    anchors = model.posterior_.anchors
    # Of rows about one and the same stranger.
    posterior = model.posterior_.of(np.full(len(anchors), -2))
    covariance = posterior.cov(anchors)
    np.testing.assert_allclose(tastes.spread(anchors), covariance, atol=1e-4)
    mean = model.predict(anchors)
    np.testing.assert_allclose(tastes.mean.features(anchors)[:, 0], mean, atol=1e-4)


def test_the_posterior_is_that_of_weighted_draws():
    """Importance sampling of a m(x) + s(x) + g(x) under the duels, the population's among them."""
    optimizer = PreferenceOptimizer(
        BOX,
        earlier=EARLIER,
        inference=HMC(draws=4000),
        noise_variance=0.05,
        noise_variance_bounds="fixed",
        refit_every=100,
        random_state=0,
    )
    told = [([3.0, 0.3], [1.0, 0.5], 1), ([3.5, 0.9], [2.0, 0.1], 0), ([0.5, 0.9], [3.0, 0.3], 0)]
    for first, second, outcome in told:
        optimizer.tell(([first, second]), outcome)
    fitted, _ = optimizer._session.fitted()
    kernel = fitted.model.kernel  # of the hyperparameters learned: all else is drawn here
    items = fitted.comparisons.items
    asked = np.array([[3.2, 0.4], [1.0, 0.9], [0.1, 0.1]])
    person = optimizer.to_unit([item for duel in told for item in duel[:2]])
    rows = np.concatenate([person, optimizer.to_unit(asked)])
    extremes = items[items[:, 2] == 0.0, :2]
    mean_kernel, own_kernel = kernel.k2.kernel, kernel.k1.k1.kernel
    rng, n = np.random.default_rng(0), 400_000
    scale = rng.standard_normal(n)
    root = np.linalg.cholesky(own_kernel(rows) + 1e-10 * np.eye(len(rows)))
    own = root @ rng.standard_normal((len(rows), n))
    utilities = mean_kernel.features(rows)[:, :1] * scale + own
    best, worst = mean_kernel.features(extremes)[:, 0]
    deviation = np.sqrt(2 * 0.05)
    weight = ndtr(abs(best - worst) * scale / deviation)
    for k, (_, _, outcome) in enumerate(told):
        margin = utilities[2 * k] - utilities[2 * k + 1]
        weight *= ndtr((1 if outcome else -1) * margin / deviation)
    weight /= weight.sum()
    margins = utilities[6:8] - utilities[8]
    expected = margins @ weight
    spread = np.sqrt(((margins - expected[:, None]) ** 2) @ weight)
    pairs = optimizer.to_unit(asked[:2]), optimizer.to_unit(asked[[2, 2]])
    mean, variance = optimizer.posterior_.margin(*pairs)
    np.testing.assert_allclose(mean, expected, atol=0.06)  # 4 standard errors
    np.testing.assert_allclose(np.sqrt(variance), spread, atol=0.06)


def test_before_any_answer_the_recommended_item_is_what_earlier_people_like(informed):
    assert utility(informed.recommend(), (3.0, 0.3)) > -0.01
    first, second = informed.ask()
    assert not np.array_equal(first, second)
    with pytest.raises(NotFittedError, match="No duel was told yet"):
        PreferenceOptimizer(BOX, random_state=0).recommend()


def test_a_person_unlike_the_earlier_ones_is_understood(informed):
    opposite = (0.5, 0.9)
    assert utility(answer(informed, 14, opposite).recommend(), opposite) > -0.03


def test_two_groups_are_told_apart_by_few_answers():
    groups = np.array([[0.5, 0.2], [3.5, 0.8]])
    earlier = answers_of(np.repeat(groups, 5, axis=0), 12)
    informed = pickle.dumps(PreferenceOptimizer(BOX, earlier=earlier, random_state=0))
    for best in groups:
        optimizer = pickle.loads(informed)
        assert utility(answer(optimizer, 4, best).recommend(), best) > -0.1  # the other has -0.9


# -- forms of what is given ------------------------------------------------------------------


def test_dicts_categories_and_one_person_without_users():
    space = {"bass": (-10.0, 10.0), "mode": ["music", "speech"]}
    rng = np.random.default_rng(0)
    items = [
        [{"bass": float(b), "mode": str(m)} for b, m in zip(*pair, strict=True)]
        for pair in zip(
            rng.uniform(-10, 10, (40, 2)), rng.choice(["music", "speech"], (40, 2)), strict=True
        )
    ]

    def liked(item):
        return (item["mode"] == "speech") - abs(item["bass"] - 4.0) / 10.0

    y = [int(liked(first) > liked(second)) for first, second in items]
    best = PreferenceOptimizer(space, earlier={"X": items, "y": y}, random_state=0).recommend()
    assert best["mode"] == "speech"
    assert abs(best["bass"] - 4.0) < 5.0


def test_names_of_a_pool():
    drinks = ["tea", "coffee", "milk", "water"]
    duels = [(a, b) for a in drinks for b in drinks if a != b] * 2
    y = [int(drinks.index(a) < drinks.index(b)) for a, b in duels]
    users = [0] * 12 + [1] * 12
    optimizer = PreferenceOptimizer(
        candidates=ItemTable.from_names(drinks),
        earlier={"X": duels, "y": y, "users": users},
        random_state=0,
    )
    assert optimizer.recommend() == "tea"
    assert set(optimizer.ask()) <= set(drinks)


def test_sets_count_as_the_duels_that_they_state():
    rng = np.random.default_rng(2)
    sets = rng.uniform([0.0, 0.0], [4.0, 1.0], (20, 3, 2))
    ranks = np.argsort(np.argsort(-utility(sets, (3.0, 0.3)), axis=1), axis=1) + 1
    users = np.arange(20) % 4
    order = np.argsort(ranks, axis=1)
    sorted_sets = np.take_along_axis(sets, order[:, :, None], axis=1)
    pairs = np.stack([sorted_sets[:, :2], sorted_sets[:, 1:]], axis=2).reshape(-1, 2, 2)
    by_duels = {"X": pairs, "y": np.ones(40, dtype=int), "users": np.repeat(users, 2)}
    by_ranks = {"X": sets, "y": ranks, "users": users}
    duels = [
        PreferenceOptimizer(BOX, earlier=each, random_state=0).ask()
        for each in (by_ranks, by_duels)
    ]
    np.testing.assert_array_equal(*duels)
    by_choice = {"X": sets, "y": order[:, 0], "users": users}
    assert utility(PreferenceOptimizer(BOX, earlier=by_choice).recommend(), (3.0, 0.3)) > -0.1


def test_a_journal_with_unusable_items_is_one_of_its_answers(tmp_path):
    path = tmp_path / "run.db"
    person = PreferenceOptimizer(BOX, journal=path, random_state=0)
    for _ in range(3):
        person.tell(person.ask(), 1)
    duels = [items for items, _ in person.history_]
    person.tell(person.ask(), unusable=[0])
    by_table = PreferenceOptimizer(BOX, earlier={"X": duels, "y": [1, 1, 1]}, random_state=0)
    by_journal = PreferenceOptimizer(BOX, earlier=path, random_state=0)
    np.testing.assert_array_equal(by_journal.recommend(), by_table.recommend())


def test_a_table_holds_outcomes_of_sets_as_history_has_them(tmp_path):
    path = tmp_path / "run.db"
    person = PreferenceOptimizer(BOX, journal=path, random_state=0)
    person.tell(person.ask(size=3), chosen=[0, 2], none=False).tell(person.ask(size=3), none=True)
    person.tell(person.ask(size=3), ranking=[2, 0, 1])
    shown, outcomes = zip(*person.history_, strict=True)
    by_table = PreferenceOptimizer(BOX, earlier={"X": shown, "y": outcomes}, random_state=0)
    by_journal = PreferenceOptimizer(BOX, earlier=path, random_state=0)
    np.testing.assert_array_equal(by_journal.recommend(), by_table.recommend())


def test_journals_are_their_answers_without_those_taken_back(tmp_path):
    paths = []
    for k, best in enumerate(PEOPLE[:3]):
        paths.append(str(tmp_path / f"{k}.db"))
        optimizer = PreferenceOptimizer(BOX, journal=paths[-1], random_state=k)
        answer(optimizer, 6, best)
        wrong = optimizer.ask()
        optimizer.tell(wrong, bool(utility(wrong[0], best) < utility(wrong[1], best))).undo()
        optimizer.skip(wrong)
    table: dict = {"X": [], "y": [], "users": []}
    for path in paths:
        for items, outcome in PreferenceOptimizer(BOX, journal=path).history_:
            table["X"].append(items)
            table["y"].append(outcome)
            table["users"].append(path)
    by_journals = PreferenceOptimizer(BOX, earlier=paths, random_state=0)
    by_table = PreferenceOptimizer(BOX, earlier=table, random_state=0)
    np.testing.assert_array_equal(by_journals.ask(), by_table.ask())
    np.testing.assert_array_equal(by_journals.recommend(), by_table.recommend())


def test_a_fitted_model_of_the_same_answers_knows_the_same_best():
    model = CollaborativePreferenceRegressor(random_state=0)
    model.fit(EARLIER["X"], EARLIER["y"], users=EARLIER["users"])
    optimizer = PreferenceOptimizer(BOX, earlier=model, random_state=0)
    assert utility(optimizer.recommend(), (3.0, 0.3)) > -0.01
    assert utility(answer(optimizer, 6).recommend(), (3.0, 0.3)) > -0.01


# -- beside the rest of the optimizer --------------------------------------------------------


@pytest.mark.parametrize("name", ["HB-EI", "LA-EI", "CL-EI", "EP-TS-MUC", "JES", "random"])
def test_strategies_ask_with_it(name, population):
    strategy = STRATEGIES[name]._asdict()
    optimizer = PreferenceOptimizer(BOX, earlier=EARLIER, random_state=0, **strategy)
    assert utility(answer(optimizer, 4).recommend(), (3.0, 0.3)) > -0.05


def test_sets_lines_and_pickles(informed):
    page = informed.ask(size=4)
    informed.tell(page, chosen=int(np.argmax(utility(page, (3.0, 0.3)))))
    line = informed.ask(kind="line")
    informed.tell(line, position=int(np.argmax(utility(line, (3.0, 0.3)))))
    again = pickle.loads(pickle.dumps(informed))
    np.testing.assert_array_equal(again.ask(), informed.ask())


@pytest.mark.slow
def test_what_is_to_be_gained_is_known_before_any_answer_and_shrinks(informed):
    before = informed.expected_gain_
    after = answer(informed, 8).expected_gain_
    assert np.mean(after.shortfall) < np.mean(before.shortfall)
    assert after.share < before.share


def test_undo_and_skip_lead_back_to_the_first_question(informed):
    first = informed.ask()
    informed.tell(first, 1).undo()
    np.testing.assert_array_equal(informed.ask(), first)
    informed.skip(first)
    assert not np.array_equal(informed.ask(), first)
    informed.undo()
    np.testing.assert_array_equal(informed.ask(), first)


def test_ties_are_learned_with_it(informed):
    informed.tell(informed.ask(), "tie")
    assert informed.posterior_.likelihood.tie_threshold > 0.0


@pytest.mark.parametrize("strategy", ["KG+EI", "HB-EI"])
def test_a_journal_goes_on_with_the_same_questions(tmp_path, strategy):
    options = STRATEGIES[strategy]._asdict()

    def opened():
        return PreferenceOptimizer(
            BOX, earlier=FEW, journal=tmp_path / "run.db", random_state=0, **options
        )

    whole = PreferenceOptimizer(BOX, earlier=FEW, random_state=0, **options)
    for _ in range(2):
        run = opened()
        duel = run.ask()
        np.testing.assert_array_equal(duel, whole.ask())
        for each in (run, whole):
            each.tell(duel, bool(utility(duel[0], PEOPLE[0]) > utility(duel[1], PEOPLE[0])))
    np.testing.assert_array_equal(opened().recommend(), whole.recommend())
    with pytest.raises(ValueError, match=r"belongs to another configuration .*earlier"):
        PreferenceOptimizer(BOX, journal=tmp_path / "run.db", random_state=0)


def test_limits_hold_with_it():
    optimizer = PreferenceOptimizer(
        BOX,
        earlier={
            key: each[EARLIER["X"][:, :, 0].max(axis=1) < 2.5] for key, each in EARLIER.items()
        },
        constraints=[lambda item: bool(item[0] <= 2.5)],
        random_state=0,
    )
    assert answer(optimizer, 4).recommend()[0] <= 2.5
    assert all(item[0] <= 2.5 for duel, _ in optimizer.history_ for item in duel)


@pytest.mark.parametrize(
    ("earlier", "error", "message"),
    [
        (3, TypeError, r"got earlier= of type int; a dict .* are allowed"),
        ({"X": EARLIER["X"]}, ValueError, r"keys \['X'\]; 'X' .* are needed"),
        ({**EARLIER, "y": [1]}, ValueError, r"80 questions in X, 1 answers in y and 80 users"),
        ({**EARLIER, "X": 5 * EARLIER["X"]}, ValueError, r"none of the space: .* outside"),
        ({"X": [], "y": []}, ValueError, r"without an answer that says which item is better"),
        ({"X": EARLIER["X"][:1], "y": ["tie"]}, ValueError, r"without an answer that says"),
        (CollaborativePreferenceRegressor(), NotFittedError, "not fitted"),
    ],
)
def test_what_is_no_earlier_answer_is_refused(earlier, error, message):
    with pytest.raises(error, match=message):
        PreferenceOptimizer(BOX, earlier=earlier)


def test_a_model_of_other_items_is_refused_and_so_is_a_drift():
    model = CollaborativePreferenceRegressor(optimizer=None)
    model.fit(EARLIER["X"], EARLIER["y"], users=EARLIER["users"])
    with pytest.raises(
        ValueError, match=r"items of 2 numbers, and the items of this space are not"
    ):
        PreferenceOptimizer({"a": (0.0, 1.0), "kind": ["x", "y"]}, earlier=model)
    with pytest.raises(ValueError, match=r"earlier= and forgetting_rate=; one of the two"):
        PreferenceOptimizer(BOX, earlier=EARLIER, forgetting_rate=0.01)


# -- values that are given -------------------------------------------------------------------

LAMP = {"room": ["bath", "bed", "study"], "light": (0.0, 1.0)}
BEST_LIGHT = {"bath": 0.8, "bed": 0.2, "study": 0.5}


def light_the_rooms(optimizer, n):
    for k in range(n):
        room = LAMP["room"][k % 3]
        duel = optimizer.ask(at={"room": room})
        assert [item["room"] for item in duel] == [room, room]
        first, second = (abs(item["light"] - BEST_LIGHT[room]) for item in duel)
        optimizer.tell(duel, bool(first < second))
    return optimizer


def test_each_room_has_a_setting_of_its_own():
    optimizer = light_the_rooms(PreferenceOptimizer(LAMP, random_state=0), 21)
    for room, light in BEST_LIGHT.items():
        best = optimizer.recommend(at={"room": room})
        assert best["room"] == room
        assert abs(best["light"] - light) < 0.15


def test_the_best_of_a_room_is_its_own_where_all_of_another_room_is_better():
    """The best in the bath, over all others, is no start for the best in bed."""
    optimizer = PreferenceOptimizer(LAMP, random_state=0)

    def value(room, light):
        return 5.0 * (room == "bath") - abs(light - BEST_LIGHT[room])

    items = [(room, light) for room in ("bath", "bed") for light in (0.1, 0.3, 0.5, 0.8, 0.95)]
    for first, second in combinations(items, 2):
        duel = [dict(zip(LAMP, item, strict=True)) for item in (first, second)]
        optimizer.tell(duel, bool(value(*first) > value(*second)))
    best = optimizer.recommend(at={"room": "bed"})
    assert best["room"] == "bed"
    assert abs(best["light"] - 0.2) < 0.15
    optimizer.tell([best, {"room": "bed", "light": 0.6}], unusable=[0])
    usable = optimizer.recommend(at={"room": "bed"}, probability_usable=0.3)
    assert usable["room"] == "bed"
    assert usable != best


def test_what_is_learned_in_a_room_counts_in_a_room_like_it():
    hours = PreferenceOptimizer({"hour": (0.0, 24.0), "light": (0.0, 1.0)}, random_state=0)
    for k in range(12):
        duel = hours.ask(at={"hour": 10.0 + k % 3})
        hours.tell(duel, bool(abs(duel[0]["light"] - 0.7) < abs(duel[1]["light"] - 0.7)))
    best = hours.recommend(at={"hour": 11.5})  # nothing was asked then
    assert best["hour"] == 11.5
    assert abs(best["light"] - 0.7) < 0.2


def test_a_question_stays_that_of_its_room():
    optimizer = PreferenceOptimizer(LAMP, random_state=0)
    duels = {room: optimizer.ask(at={"room": room}) for room in LAMP["room"]}
    for room, duel in duels.items():
        assert optimizer.ask(at={"room": room}) == duel
    assert len(optimizer.pending_) == 3


def test_the_room_and_a_parameter_for_once():
    optimizer = PreferenceOptimizer({**LAMP, "warmth": (0.0, 1.0)}, random_state=0)
    duel = optimizer.ask(at={"room": "bed"}, fixed={"warmth": 0.25})
    assert all(item["room"] == "bed" and item["warmth"] == 0.25 for item in duel)
    with pytest.raises(ValueError, match=r"got \['room'\] both in at= and in fixed="):
        optimizer.ask(at={"room": "bed"}, fixed={"room": "bath"})
    with pytest.raises(ValueError, match="loo"):
        optimizer.ask(at={"room": "loo"})


def test_earlier_people_in_rooms():
    rng = np.random.default_rng(0)
    X, y, users = [], [], []
    for k in range(60):
        room = LAMP["room"][k % 3]
        lights = rng.random(2)
        X.append([{"room": room, "light": float(light)} for light in lights])
        y.append(int(abs(lights[0] - BEST_LIGHT[room]) < abs(lights[1] - BEST_LIGHT[room])))
        users.append(k // 12)
    optimizer = PreferenceOptimizer(LAMP, earlier={"X": X, "y": y, "users": users}, random_state=0)
    for room, light in BEST_LIGHT.items():
        assert abs(optimizer.recommend(at={"room": room})["light"] - light) < 0.15
