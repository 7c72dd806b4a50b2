"""OptimizationDisplay: the course of a run from what was told and the posterior at the end."""

from types import SimpleNamespace

import numpy as np
import pytest

from skpref import HallucinationBelieverOptimizer, ItemTable
from skpref.datasets import load_test_function
from skpref.plotting import OptimizationDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def taste(x):
    return -abs(float(np.ravel(x)[0]) - 3.0)


@pytest.fixture(scope="module")
def optimizer():
    made = HallucinationBelieverOptimizer([[0.0, 10.0]], random_state=1)
    made.run(lambda a, b: taste(a) > taste(b), 9)
    return made


def mean_of(optimizer, items):
    posterior = optimizer.posterior_
    sigma = np.sqrt(posterior.likelihood.noise_variance)
    return posterior.mean(optimizer.to_unit(items)) / sigma


def test_course(optimizer):
    display = OptimizationDisplay.from_optimizer(optimizer, level=0.5)
    every = np.unique([item for told in optimizer.history_ for item in told.duel], axis=0)
    zero = mean_of(optimizer, every).mean()
    best, winners, others = [], [], []
    for told in optimizer.history_:
        first, second = mean_of(optimizer, told.duel) - zero
        best.append(max([first, second, *best[-1:]]))
        winners.append(first if told.outcome == 1 else second)
        others.append(second if told.outcome == 1 else first)
    x, y = display.best_.get_data()
    assert x.tolist() == list(range(1, 10))
    np.testing.assert_allclose(y, best, atol=1e-9)
    np.testing.assert_allclose(display.winners_.get_ydata(), winners, atol=1e-9)
    np.testing.assert_allclose(display.others_.get_ydata(), others, atol=1e-9)
    last = display.run.items[display.best[-1]]
    np.testing.assert_array_equal(last, optimizer.recommend())

    draws = optimizer.posterior_.sample(optimizer.to_unit(display.run.items), 40_000, rng=0)
    above = (draws - draws.mean(axis=0)) / np.sqrt(optimizer.posterior_.likelihood.noise_variance)
    for tail in (above < display.lower[:, None], above > display.upper[:, None]):
        np.testing.assert_allclose(tail.mean(axis=1), 0.25, atol=0.01)
    band = display.band_.get_paths()[0].vertices[:, 1]
    assert band.max() == display.upper[display.best].max()


def test_regret_of_an_objective(optimizer):
    display = OptimizationDisplay.from_optimizer(optimizer, taste, optimum=0.0)
    lacking = [-taste(item) for item in display.run.items]
    np.testing.assert_allclose(display.regret, lacking)
    assert display.best_.get_ydata()[-1] == pytest.approx(-taste(optimizer.recommend()))
    assert display.ax_.get_yscale() == "log"
    of_shown = OptimizationDisplay.from_optimizer(optimizer, taste)
    assert of_shown.regret.min() == 0.0


def test_regret_of_a_test_function():
    function = load_test_function("branin")
    optimizer = HallucinationBelieverOptimizer(function.bounds, random_state=0)
    optimizer.run(function.judge(rng=0), 5)
    display = OptimizationDisplay.from_optimizer(optimizer, function)
    regret = function.regret(np.array(display.run.items))
    np.testing.assert_allclose(display.regret, regret)
    with pytest.raises(ValueError, match='kind="utility" needs items of one dimension'):
        display.plot(kind="utility")


@pytest.mark.parametrize("named", [False, True])
def test_utility_in_one_dimension(named):
    space = {"dose": (0.0, 10.0)} if named else [[0.0, 10.0]]
    optimizer = HallucinationBelieverOptimizer(space, random_state=1)

    def value(item):
        return item["dose"] if named else item[0]

    optimizer.run(lambda a, b: taste(value(a)) > taste(value(b)), 6)
    display = OptimizationDisplay.from_optimizer(optimizer, kind="utility")
    x, y = display.best_.get_data()
    assert x[[0, -1]].tolist() == [
        pick(value(item) for told in optimizer.history_ for item in told.duel)
        for pick in (min, max)
    ]
    items = [{"dose": at} if named else [at] for at in x]
    mean = mean_of(optimizer, items)
    np.testing.assert_allclose(y, mean - mean.mean(), atol=1e-9)
    won = [value(told.duel[0 if told.outcome == 1 else 1]) for told in optimizer.history_]
    assert display.winners_.get_xdata().tolist() == won
    assert np.all(np.diff(display.winners_.get_ydata()) < 0.0)  # the first on top
    assert display.winners_.get_ydata().max() < 0.4  # below the band


def test_candidates_with_names():
    names = list("abcd")
    optimizer = HallucinationBelieverOptimizer(candidates=ItemTable.from_names(names))
    for winner, loser in ("ba", "cb", "cd"):
        optimizer.tell((winner, loser), 1)
    display = OptimizationDisplay.from_optimizer(optimizer)
    assert [display.run.items[i] for i in display.best] == ["b", "c", "c"]
    assert display.line is None


def test_answers_of_every_kind():
    # (items, outcome) as entries of history_ are: the position of the best, where one is said.
    outcomes = {
        "tie": None,
        0: 1,
        1: 0,
    }
    sets = [({"chosen": 2}, 2), ({"worst": 0}, None), ({"ranking": [1, 0, 2]}, 1)]
    sets += [({"chosen": 0, "worst": 2}, 0)]
    posed = [([[0.1], [0.6]], outcome, best) for outcome, best in outcomes.items()]
    posed += [([[0.2], [0.3], [0.9]], outcome, best) for outcome, best in sets]
    real = HallucinationBelieverOptimizer([[0.0, 1.0]]).tell([[0.6], [0.1]], 1)
    run = SimpleNamespace(
        history_=[(np.array(items), outcome) for items, outcome, _ in posed],
        posterior_=real.posterior_,
        to_unit=real.to_unit,
    )
    display = OptimizationDisplay.from_optimizer(run)
    for (items, _, best), found in zip(posed, display.run.best, strict=True):
        if best is None:
            assert found is None
        else:
            assert display.run.items[found] == items[best]
    assert display.winners_.get_xdata().tolist() == [2, 3, 4, 6, 7]
    assert len(display.others_.get_xdata()) == 18 - 5
    display.plot(kind="utility")


def test_refusals(optimizer):
    with pytest.raises(ValueError, match="No answer was told yet"):
        OptimizationDisplay.from_optimizer(HallucinationBelieverOptimizer([[0.0, 1.0]]))
    with pytest.raises(ValueError, match="kind must be one of"):
        OptimizationDisplay.from_optimizer(optimizer, kind="both")


def test_the_curve_says_what_it_is(optimizer):
    course = OptimizationDisplay.from_optimizer(optimizer, unit="elo")
    assert np.all(np.diff(course.best_.get_ydata()) >= 0.0)
    assert "Elo points" in course.ax_.get_ylabel()
    noise = OptimizationDisplay.from_optimizer(optimizer)
    # d = 1 in noises is a margin of 1/√2 deviations of its noise: √(8/π)/√2 logits.
    per_noise = np.sqrt(4.0 / np.pi) * 400.0 / np.log(10.0)
    np.testing.assert_allclose(course.utility, per_noise * noise.utility)
    np.testing.assert_allclose(course.line.utility.upper, per_noise * noise.line.utility.upper)
    # Regret of another objective than the judge's: what the posterior takes for best gets worse.
    other = OptimizationDisplay.from_optimizer(optimizer, lambda x: -taste(x))
    assert np.any(np.diff(other.best_.get_ydata()) > 0.0)
    for display in (course, other):
        labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert "largest posterior mean so far" in labels
        assert not any("best so far" in label for label in labels)
