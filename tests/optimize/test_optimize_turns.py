"""Methods that take turns: whose turn it is, on which posterior, and what is refused."""

import numpy as np
import pytest
from scipy.stats import norm

from skpref.inference import HMC, Hallucination
from skpref.optimize import (
    STRATEGIES,
    HallucinationBelieverOptimizer,
    PreferenceOptimizer,
    Strategy,
)

SQUARE = [[0.0, 1.0], [0.0, 1.0]]
NOISE = 1e-3
BOTH = STRATEGIES["HB-logEI+EUBO"]


def taste(x):
    return -float(np.sum((x - [0.3, 0.6]) ** 2))


def build(strategy=BOTH, **options):
    return PreferenceOptimizer(
        SQUARE, **strategy._asdict(), **{"random_state": 0, "n_initial": 4} | options
    )


def told(made, n):
    for _ in range(n):
        duel = made.ask()
        made.tell(duel, taste(duel[0]) > taste(duel[1]))
    return made


def noting(seen, name):
    """An acquisition that notes that it was asked, and on which posterior."""

    def acquisition(posterior, X, incumbent):
        seen.append((name, posterior))
        return posterior.mean(X)

    return acquisition


def test_fields_are_spread_over_the_turns():
    strategy = Strategy("ep", ("joint", "last_winner"), ("eubo", "muc"))
    first, second = strategy.turns
    assert first == Strategy("ep", "joint", "eubo")
    assert second == Strategy("ep", "last_winner", "muc")
    assert STRATEGIES["KG"].turns == (STRATEGIES["KG"],)


def test_each_question_is_of_the_next_method_and_on_its_posterior():
    seen = []
    rules = tuple(noting(seen, name) for name in "abc")
    strategy = Strategy(("hallucination", "ep", "ep"), "last_winner", rules)
    made, names = build(strategy), []
    for k in range(10):
        seen.clear()
        duel = made.ask()
        names.append({name for name, _ in seen})
        if k >= 4:
            exact = made.posterior_
            same = all(np.array_equal(each.weights, exact.weights) for _, each in seen)
            assert same == (names[-1] != {"a"})
        made.tell(duel, taste(duel[0]) > taste(duel[1]))
    assert names == [set()] * 4 + [{"b"}, {"c"}, {"a"}, {"b"}, {"c"}, {"a"}]


def test_on_its_turn_eubo_asks_for_the_best_pair_of_the_gaussian():
    made = told(build(), 11)
    posterior, asked = made.posterior_, made.to_unit(made.ask())

    def utility_of_best(A, B):
        mean, var = posterior.margin(A, B)
        z = mean / np.sqrt(var)
        return posterior.mean(B) + mean * norm.cdf(z) + np.sqrt(var) * norm.pdf(z)

    best = utility_of_best(*np.random.default_rng(0).random((2, 10_000, 2))).max()
    assert utility_of_best(asked[:1], asked[1:])[0] > best - 0.02 * abs(best)


def test_questions_in_parallel_take_turns_and_a_skip_leaves_the_turn():
    made = told(build(Strategy("ep", ("last_winner", "random"), ("ei", "random"))), 6)
    winner = made.incumbent_
    first, second, third = made.ask(n=3)
    np.testing.assert_array_equal(first[0], winner)
    np.testing.assert_array_equal(third[0], winner)
    assert np.abs(second - winner).max(axis=1).min() > 1e-6
    made = told(build(Strategy("ep", ("last_winner", "random"), ("ei", "random"))), 6)
    made.skip(made.ask())
    np.testing.assert_array_equal(made.ask()[0], winner)


def test_the_incumbent_is_that_of_the_turn():
    made = told(build(Strategy("ep", ("last_winner", "posterior_mean"), "ei")), 6)
    for _ in range(4):
        duel = made.ask()
        np.testing.assert_array_equal(duel[0], made.incumbent_)
        made.tell(duel, taste(duel[0]) > taste(duel[1]))


@pytest.mark.slow
def test_a_journal_takes_the_run_up_at_its_turn(tmp_path):
    def made(strategy=BOTH):
        return build(strategy, journal=tmp_path / "run.db")

    alone = told(build(), 9)
    told(made(), 6)
    again = told(made(), 3)
    np.testing.assert_array_equal(again.ask(), alone.ask())
    with pytest.raises(ValueError, match="another configuration"):
        made(BOTH._replace(incumbent=("last_winner", "posterior_mean")))


def test_functions_that_take_turns_are_written_by_name(tmp_path):
    rules = (noting([], "a"), "muc")

    def made(*rules):
        return build(Strategy("ep", "last_winner", rules), journal=tmp_path / "run.db")

    told(made(*rules), 5)
    assert made(*rules).n_told_ == 5
    with pytest.raises(ValueError, match="another configuration"):
        made("muc", rules[0])


def test_a_run_undone_asks_the_same_again():
    made = told(build(), 8)
    duel = made.ask()
    made.tell(duel, 1).undo()
    np.testing.assert_array_equal(made.ask(), duel)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains have not mixed")
def test_other_engines_take_turns_with_their_gaussian():
    for engine in (HMC(draws=40, chains=20), "kriging_believer", Hallucination()):
        made = build(BOTH._replace(inference=(engine, "ep")))
        assert told(made, 5).ask().shape == (2, 2)
    made = HallucinationBelieverOptimizer(
        SQUARE, acquisition=("log_ei", "ucb"), n_initial=2, random_state=0
    )
    assert np.linalg.norm(told(made, 12).recommend() - [0.3, 0.6]) < 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"incumbent": ("joint", "joint", "joint")}, "tuple of as many entries"),
        ({"acquisition": ()}, "tuple of as many entries"),
        ({"inference": ("hallucination", "hmc")}, "only one may be other than 'ep'"),
        ({"inference": ("laplace", "ep")}, "has no posterior of 'ep'"),
        ({"inference": (Hallucination(evidence="laplace"), "ep")}, "no posterior of 'ep'"),
        ({"inference": ("ep", "nuts")}, "inference must be"),
        ({"incumbent": ("last_winner", "worst")}, "incumbent must be"),
        ({"acquisition": ("ei", "gain")}, "acquisition must be"),
        ({"acquisition": ("ei", "thompson")}, "needs an acquisition with values to climb"),
    ],
    ids=str,
)
def test_bad_turns_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        build(BOTH._replace(**options))


def test_the_incumbent_of_duels_chosen_together_is_the_item_recommended():
    made = PreferenceOptimizer(SQUARE, random_state=0)
    made.run(lambda a, b: taste(a) > taste(b), 5)
    # The last winner is another one: an item that answers say to be among the worst.
    worst = min((each for entry in made.history_ for each in entry.items), key=taste)
    made.tell([worst, [0.98, 0.01]], 1)
    for _ in range(2):
        np.testing.assert_array_equal(made.incumbent_, made.recommend())
        made.tell([worst, [0.97, 0.02]], 1)
