"""Measured values told to an optimizer: its fit, questions, journal, undo and refusals."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from skpref import HallucinationBelieverOptimizer, PairwisePreferenceRegressor
from skpref.optimize import STRATEGIES, PreferenceOptimizer, read_journal

pytestmark = pytest.mark.usefixtures("brief")

SQUARE = [[0.0, 1.0]] * 2


def taste(item):
    return -10.0 * float(np.sum((np.asarray(item) - np.array([0.3, 0.7])) ** 2))


def informed(optimizer, n=9, every=3, seed=0):
    """Tell n things, of which every third is a value in a unit of its own, the others answers."""
    rng = np.random.default_rng(seed)
    for k in range(n):
        if k % every == every - 1:
            item = rng.random(2)
            optimizer.tell_value(item, 100.0 * taste(item) + 7.0 + rng.normal(), 1.0)
        else:
            first, second = optimizer.ask()
            optimizer.tell([first, second], taste(first) > taste(second))
    return optimizer


def test_a_journal_goes_on_with_the_same_question(tmp_path):
    path = tmp_path / "run.db"
    optimizer = informed(PreferenceOptimizer(SQUARE, journal=path, random_state=0))
    question = optimizer.ask()
    again = PreferenceOptimizer(SQUARE, journal=path, random_state=0)
    assert_array_equal(again.ask(), question)
    assert_array_equal(again.recommend(), optimizer.recommend())
    for own, other in zip(again.measured_, optimizer.measured_, strict=True):
        assert_array_equal(own[0], other[0])
        assert own[1:] == other[1:]
    copy = pickle.loads(pickle.dumps(informed(PreferenceOptimizer(SQUARE, random_state=0))))
    assert_array_equal(copy.ask(), question)
    table = read_journal(path)
    row = table["kind"].index("value")
    item, value, deviation = optimizer.measured_[0]
    assert table["outcome"][row] == {"value": value, "deviation": deviation}
    assert table["items"][row] == [item.tolist()]


def test_undo_takes_a_value_back():
    optimizer = informed(PreferenceOptimizer(SQUARE, random_state=0), 8)
    question, best = optimizer.ask(), optimizer.recommend()
    mean = optimizer.posterior_.mean([best])
    optimizer.tell_value([0.9, 0.1], 1000.0, 0.1)
    assert np.abs(optimizer.posterior_.mean([best]) - mean) > 0.01
    optimizer.undo()
    assert len(optimizer.measured_) == 2
    assert_array_equal(optimizer.ask(), question)
    assert_array_equal(optimizer.recommend(), best)
    assert_allclose(optimizer.posterior_.mean([best]), mean, rtol=1e-6)


def test_the_fit_is_that_of_an_estimator_told_the_same():
    """In the unit of the optimizer's utility, which its values are brought to."""
    optimizer = informed(
        PreferenceOptimizer(SQUARE, random_state=0, **STRATEGIES["EP-EI"]._asdict())
    )
    fitted, _ = optimizer._session._questions.fit(optimizer._session.state)
    items, values, deviations = map(np.array, zip(*optimizer.measured_, strict=True))
    scaled = fitted.comparisons.measured
    unit = deviations / scaled.deviation
    assert_allclose(unit, unit[0])
    assert_allclose(scaled.value * unit[0], values)
    duels = np.array([entry.items for entry in optimizer.history_])
    model = PairwisePreferenceRegressor(
        fitted.model.kernel, likelihood=fitted.model.likelihood, optimizer=None
    ).fit(
        duels,
        [entry.outcome for entry in optimizer.history_],
        measured=(items, values / unit, deviations / unit),
    )
    rows = np.random.default_rng(1).random((6, 2))
    assert_allclose(optimizer.posterior_.mean(rows), model.predict(rows), atol=1e-6)


def test_the_unit_of_values_does_not_matter():
    means = []
    for factor, shift in ((1.0, 0.0), (1e4, -3e5)):
        optimizer = informed(PreferenceOptimizer(SQUARE, random_state=0), 8, every=20)
        rng = np.random.default_rng(1)
        for item in rng.random((5, 2)):
            optimizer.tell_value(item, factor * taste(item) + shift, 0.1 * factor)
        means.append(optimizer.posterior_.mean(rng.random((4, 2))))
    assert_allclose(*means, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        STRATEGIES["EP-EI"]._asdict(),
        {"inference": "hallucination", "n_initial": 2},
        {"inference": "constant_liar", "n_initial": 2},
        {"inference": "kriging_believer", "n_initial": 2},
        {"inference": "gibbs", "n_initial": 2},
        {"order_effect_bounds": (-1.0, 1.0)},
        {"tie_threshold": 0.1, "grade_thresholds": (0.5,)},
    ],
)
def test_values_alone_choose_a_question_and_the_best(options):
    optimizer = PreferenceOptimizer(SQUARE, random_state=0, **options)
    with pytest.raises(NotFittedError):
        optimizer.recommend()
    rng = np.random.default_rng(0)
    items = [*rng.random((11, 2)), np.array([0.35, 0.65])]
    for item in items:
        optimizer.tell_value(item, taste(item), 0.05)
    assert_array_equal(optimizer.recommend(), items[-1])
    assert_array_equal(optimizer.incumbent_, items[-1])
    assert 0.0 <= optimizer.expected_gain_.share <= 1.0
    questions = optimizer.ask(2)
    assert questions.shape == (2, 2, 2)
    assert max(map(taste, questions[0])) > -1.5  # of a range of 10
    optimizer.tell(questions[0], 1)
    assert optimizer.ask(size=3).shape == (3, 2)
    assert optimizer.ask(kind="line").shape[1] == 2
    assert 0.0 <= optimizer.expected_gain_.share <= 1.0
    assert repr(optimizer).endswith("pending: 3>")


def test_hallucinations_pools_earlier_people_and_unusable_items_take_values(tmp_path):
    believer = informed(HallucinationBelieverOptimizer(SQUARE, random_state=0), 12)
    assert taste(believer.recommend()) > -0.5
    pool = np.random.default_rng(0).random((20, 2))
    chooser = PreferenceOptimizer(candidates=pool, random_state=0)
    for item in pool[:8]:
        chooser.tell_value(item, taste(item), 0.05)
    assert_array_equal(chooser.recommend(), max(pool[:8], key=taste))
    path = tmp_path / "earlier.db"
    informed(PreferenceOptimizer(SQUARE, journal=path, random_state=0))
    later = PreferenceOptimizer(SQUARE, earlier=path, random_state=1)
    later.tell_value([0.8, 0.2], 3.0, 0.1).tell_value([0.7, 0.3], 1.0, 0.1)
    rows = [[0.8, 0.2], [0.7, 0.3]]
    assert np.diff(later.posterior_.mean(rows)) < 0.0
    believer.tell([[0.1, 0.1], [0.2, 0.2]], unusable=[0])
    assert believer.recommend(probability_usable=0.5).shape == (2,)


def test_values_alone_have_an_acquisition_surface():
    optimizer = PreferenceOptimizer([(0.0, 1.0)] * 2, random_state=0)
    optimizer.tell_value([0.2, 0.5], 1.0, 0.1).tell_value([0.8, 0.5], 2.0, 0.1)
    surface = optimizer.acquisition_surface(acquisition="mean", resolution=5)
    np.testing.assert_allclose(surface.shown, [[0.2, 0.5], [0.8, 0.5]])
    np.testing.assert_allclose(surface.incumbent, [0.8, 0.5])
    assert surface.acquisition[-1, 2] > surface.acquisition[0, 2]


def test_names_and_choices_are_items_that_can_be_measured():
    space = {"roast": ["light", "dark"], "grams": (10.0, 20.0)}
    optimizer = PreferenceOptimizer(space, random_state=0)
    optimizer.tell_value({"roast": "dark", "grams": 15.0}, 4, 1)
    assert optimizer.measured_ == [({"roast": "dark", "grams": 15.0}, 4.0, 1.0)]
    assert optimizer.recommend() == {"roast": "dark", "grams": 15.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.5], np.nan, 0.1), "value must lie in .*got nan"),
        (([0.5, 0.5], np.inf, 0.1), "value must lie in .*got inf"),
        (([0.5, 0.5], -1e300, 0.1), "value must lie in .*got -1e"),
        (([0.5, 0.5], 1.0, 0.0), r"deviation must lie in \(0.0, .*got 0.0"),
        (([0.5, 0.5], 1.0, -1.0), "deviation must lie in .*got -1.0"),
        (([0.5, 0.5], "much", 0.1), "value must be a number, got 'much'"),
        (([0.5], 1.0, 0.1), r"must have shape \(2,\), got \(1,\)"),
        (([0.5, 2.0], 1.0, 0.1), "lies outside"),
    ],
)
def test_what_is_no_value_changes_nothing(arguments, message):
    optimizer = PreferenceOptimizer(SQUARE, random_state=0)
    with pytest.raises((TypeError, ValueError), match=message):
        optimizer.tell_value(*arguments)
    assert optimizer.measured_ == []
    with pytest.raises(ValueError, match="nothing to undo"):
        optimizer.undo()


def test_a_forgetting_optimizer_refuses_values():
    optimizer = PreferenceOptimizer(SQUARE, forgetting_rate=0.1, random_state=0)
    with pytest.raises(ValueError, match=r"got a measured value with forgetting_rate=; .* Leave"):
        optimizer.tell_value([0.5, 0.5], 1.0, 0.1)
