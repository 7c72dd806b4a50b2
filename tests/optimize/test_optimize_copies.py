"""What is handed out may be changed in place: nothing that is recorded, or comes next, changes."""

import numpy as np
import pytest
from journal_support import closed

from skpref import PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.optimize import ActiveLearner, PreferenceOptimizer, read_journal

pytestmark = pytest.mark.usefixtures("brief")

SPACES = {
    "box": {"space": [[0.0, 1.0]] * 2},
    "dict": {"space": {"x": (0.0, 1.0), "kind": [["a", 1], "b", ["c", 2]]}},
    "pool": {"candidates": np.random.default_rng(0).random((20, 2))},
}


def spoiled(value, seen=None):
    """Overwrite every array, list and dict of numbers that is reached from a value."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        if value.flags.writeable and value.dtype.kind in "fiu":
            value[...] = -1.5 * value if value.dtype.kind == "f" else 0
        spoiled(value.base, seen)
    elif isinstance(value, dict):
        for key, part in list(value.items()):
            spoiled(part, seen)
            if isinstance(part, float):
                value[key] = part + 3.0
    elif isinstance(value, list | tuple):
        for part in value:
            spoiled(part, seen)
        if isinstance(value, list) and value:
            value.append(value[0])
    elif hasattr(value, "__dict__") and type(value).__module__.startswith(("skpref", "sklearn")):
        spoiled(vars(value), seen)


def number(item):
    return item["x"] if isinstance(item, dict) else item[0]


def better(first, second):
    return number(first) > number(second)


def spoiling(first, second):
    answer = better(first, second)
    spoiled((first, second))
    return answer


def build(space, journal=None, **options):
    options = {
        "inference": "ep",
        "incumbent": "posterior_mean",
        "acquisition": "mean",
        "n_initial": 2,
    } | options
    return PreferenceOptimizer(**SPACES[space], **options, journal=journal, random_state=0)


def course(made, n=2):
    """What was told, and what is asked next and told by a judge who changes nothing."""
    made.run(better, n)
    return str((made.history_, made.ask(), made.recommend()))


@pytest.mark.parametrize("space", SPACES)
def test_a_judge_may_change_what_he_is_shown(tmp_path, space):
    expected = build(space)
    expected.run(better, 4)
    made = build(space, tmp_path / "run.db")
    made.run(spoiling, 4)
    recorded = read_journal(closed(made))
    assert course(made) == course(expected)
    columns = zip(*map(recorded.get, ("items", "outcome", "kind")), strict=True)
    kept = [[items, outcome] for items, outcome, kind in columns if kind == "tell"]
    told = [
        [duel.tolist() if space != "dict" else list(duel), outcome]
        for duel, outcome in expected.history_[:4]
    ]
    if space == "dict":  # a journal has choices that are no texts or numbers as they print

        def printed(kind):
            return kind if isinstance(kind, str) else repr(kind)

        told = [[[{**x, "kind": printed(x["kind"])} for x in duel], y] for duel, y in told]
    assert kept == told


@pytest.mark.parametrize("space", SPACES)
def test_what_an_optimizer_gives_may_be_changed(space):
    """All that it gives, one after the other; what is asked is pending from then on."""
    made, expected = build(space), build(space)
    for each in (made, expected):
        each.run(better, 3)
    for name in ("history_", "recommend", "incumbent_", "posterior_", "ask", "pending_"):
        value = getattr(made, name)
        spoiled(value() if callable(value) else value)
        if name == "ask":
            expected.ask()
        assert str((made.history_, made.recommend(), made.pending_)) == str(
            (expected.history_, expected.recommend(), expected.pending_)
        ), name
    assert course(made, 1) == course(expected, 1)
    assert str(made.posterior_.mean(made.to_unit([made.recommend()]))) == str(
        expected.posterior_.mean(expected.to_unit([expected.recommend()]))
    )


def test_sets_skips_and_callbacks():
    def rank(*items):
        order = np.argsort([-number(item) for item in items]).tolist()
        spoiled(items)
        return order

    def skipping(first, second):
        spoiled((first, second))
        seen.append(1)
        return None if len(seen) % 2 else True

    def callback(made):
        spoiled((made.history_, made.ask(), made.recommend(), made.pending_, made.posterior_))

    made, expected, seen = build("dict"), build("dict"), []
    made.run(rank, 3, callback, size=3)
    made.run(skipping, 2, callback)
    for _ in range(3):
        items = expected.ask(size=3)
        expected.tell(items, ranking=np.argsort([-number(item) for item in items]))
        expected.ask()
    for _ in range(2):
        expected.tell(expected.skip(expected.ask()).ask(), 1)
        expected.ask()
    assert str(made.history_) == str(expected.history_)


@pytest.mark.parametrize("what", ["X", "incumbent", "posterior"])
def test_an_acquisition_may_change_what_it_gets(what):
    def made(spoils):
        def acquisition(posterior, X, incumbent):
            value = np.abs(X - incumbent).sum(axis=1)
            if spoils and what == "X":
                X[:] = 0.5
            elif spoils:
                spoiled({"incumbent": incumbent, "posterior": posterior}[what])
            return value

        return build("pool" if what == "X" else "box", acquisition=acquisition)

    assert course(made(True), 6) == course(made(False), 6)


def learner(**options):
    return ActiveLearner(
        PairwisePreferenceRegressor(optimizer=None),
        np.linspace(0.0, 1.0, 9)[:, None],
        **{"n_initial": 2, "random_state": 0} | options,
    )


def lessons(made, n=2):
    made.run(better, n)
    parts = made.history_, made.ask(), made.recommend(), made.posterior_.mean([[0.1], [0.8]])
    return str(parts)


def test_what_a_learner_gives_may_be_changed():
    """What its judge is shown, and all else that it gives, one after the other."""
    made, expected = learner(), learner()
    made.run(spoiling, 4)
    expected.run(better, 4)
    for name in ("history_", "recommend", "estimator_", "posterior_", "ask", "pending_"):
        value = getattr(made, name)
        spoiled(value() if callable(value) else value)
        if name == "ask":
            expected.ask()
        assert str((made.history_, made.recommend(), made.pending_)) == str(
            (expected.history_, expected.recommend(), expected.pending_)
        ), name
    assert lessons(made) == lessons(expected)


def test_a_strategy_may_change_what_it_gets():
    def made(spoils):
        def strategy(posterior, pool, **options):
            centre = posterior.mean(np.linspace(0.0, 1.0, 9)[:, None]).sum()
            if spoils:
                spoiled((posterior, pool))
            return centre - np.arange(len(pool))

        return learner(strategy=strategy)

    assert lessons(made(True), 6) == lessons(made(False), 6)


def test_a_judge_of_several_users_may_change_what_he_is_shown():
    def made():
        return ActiveLearner(
            CollaborativePreferenceRegressor(optimizer=None),
            np.linspace(0.0, 1.0, 6)[:, None],
            users=["ann", "bob"],
            n_initial=3,
            random_state=0,
        )

    one, two = made(), made()
    one.run(lambda user, duel: better(*duel), 4)
    two.run(lambda user, duel: spoiling(*duel), 4)
    assert str(one.history_) == str(two.history_)


def test_rows_that_a_kernel_sees_are_not_written_to():
    rows = course(made := build("box")) and made._session.last_state.items.rows
    with pytest.raises(ValueError, match="read-only"):
        rows += 1.0
