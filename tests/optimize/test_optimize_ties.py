"""Ties and the order of showing: what is learned from them, and from when on."""

import numpy as np
import pytest
from journal_support import optimizer as journalled
from sets_support import BEST, said, taste, tell_sets

from skpref import PairwisePreferenceRegressor
from skpref.inference import HMC
from skpref.likelihoods import Probit
from skpref.optimize import STRATEGIES, HallucinationBelieverOptimizer, PreferenceOptimizer

pytestmark = pytest.mark.usefixtures("brief")

SQUARE = [[0.0, 1.0]] * 2


def optimizer(seed=0, **options):
    return HallucinationBelieverOptimizer(SQUARE, random_state=seed, **options)


def random_duels(made, n, outcome_of, seed=0):
    for duel in np.random.default_rng(seed).random((n, 2, 2)):
        made.tell(duel, outcome_of(*duel))
    return made


def three(first, second, threshold=0.15):
    margin = taste(first) - taste(second)
    return "tie" if abs(margin) < threshold else int(margin > 0)


# --- ties -----------------------------------------------------------------------------------


def test_a_duel_that_ended_in_a_tie_is_not_asked_again_next():
    made = PreferenceOptimizer(SQUARE, inference="ep", tie_threshold=0.1, random_state=0)
    near, asked, most = 0.02 * np.sqrt(2.0), [], 0

    def bumpy(item):
        return np.sin(9.0 * item[0]) + np.cos(11.0 * item[1])

    for _ in range(16):
        first, second = made.ask()
        margin = bumpy(first) - bumpy(second)
        outcome = "tie" if abs(margin) < 0.1 else int(margin > 0.0)
        made.tell((first, second), outcome)
        for other in asked:  # those that were ties since the last answer that was none
            apart = np.linalg.norm([first, second] - other, axis=1).max()
            turned = np.linalg.norm([second, first] - other, axis=1).max()
            assert min(apart, turned) > near
        asked = [*asked, np.array([first, second])] if outcome == "tie" else []
        most = max(most, len(asked))
    assert most > 2


@pytest.mark.parametrize("seed", range(3))
def test_of_a_small_pool_the_last_tie_comes_last(seed):
    pool = np.linspace(0.0, 1.0, 4)[:, None]
    made = PreferenceOptimizer(candidates=pool, acquisition="ei", random_state=seed)
    last = None
    for _ in range(12):
        shown = made.ask()
        asked = set(np.ravel(shown).tolist())
        assert asked != last
        made.tell(shown, "tie")
        last = asked


def test_of_a_small_pool_ties_are_asked_again():
    pool = [[0.0], [0.5], [1.0]]
    made = PreferenceOptimizer(candidates=pool, inference="ep", tie_threshold=0.1, random_state=0)
    for _ in range(8):
        made.tell(made.ask(), "tie")
    assert made.n_told_ == 8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize("name", ["HB-EI", "LA-EI", "EP-EI", "EIIG", "EUBO"])
def test_the_best_is_found_by_a_judge_who_cannot_always_tell(name):
    fields = STRATEGIES[name]._asdict()
    if fields["inference"] == "hmc":
        fields["inference"] = HMC(draws=60, chains=20)
    made = PreferenceOptimizer(SQUARE, **fields, random_state=0)
    tell_sets(made, 16, 2, "tie")
    assert sum(entry.outcome == "tie" for entry in made.history_) > 3
    assert taste(made.recommend()) > -0.04  # twice what the judge can tell


def test_until_a_tie_is_told_there_are_none():
    """The threshold comes in with the first tie, and goes when that is taken back."""
    made = random_duels(optimizer(), 12, lambda a, b: taste(a) > taste(b))
    assert made.posterior_.likelihood.tie_threshold is None
    question, best = made.ask(), made.recommend()
    made.tell(question, "tie")
    assert made.posterior_.likelihood.n_outcomes == 3
    made.undo()
    assert made.posterior_.likelihood.tie_threshold is None
    np.testing.assert_array_equal(made.ask(), question)
    np.testing.assert_array_equal(made.recommend(), best)


def test_a_threshold_that_is_given_is_there_from_the_start():
    made = optimizer(tie_threshold=0.2, tie_threshold_bounds="fixed")
    random_duels(made, 8, lambda a, b: taste(a) > taste(b))
    assert made.posterior_.likelihood.tie_threshold == 0.2
    learned = random_duels(optimizer(tie_threshold=0.2), 25, three).posterior_
    assert learned.likelihood.tie_threshold != 0.2


def test_the_threshold_is_learned_at_the_first_tie():
    """Whatever the schedule; from then on as that has it."""
    made, thresholds = optimizer(refit_every=50, n_initial=3), []
    random_duels(made, 10, lambda a, b: taste(a) > taste(b))
    made.ask()
    for k in range(4):
        made.tell(made.ask(), "tie" if k % 2 else 1).ask()
        thresholds.append(made.posterior_.likelihood.tie_threshold)
    assert thresholds[0] is None
    assert abs(thresholds[1] - 0.1) > 1e-3  # where it started
    assert len(set(thresholds)) == 2


@pytest.mark.slow
def test_wider_indifference_is_learned_as_such():
    found = [
        random_duels(optimizer(), 60, lambda a, b, t=t: three(a, b, t)).posterior_.likelihood
        for t in (0.03, 0.3)
    ]
    assert found[1].tie_threshold > 3 * found[0].tie_threshold


def test_what_is_learned_is_what_the_estimator_learns():
    made = random_duels(optimizer(), 30, three)
    posterior = made.posterior_
    y = [{1: 1, 0: -1, "tie": 0}[entry.outcome] for entry in made.history_]
    likelihood = posterior.likelihood
    model = PairwisePreferenceRegressor(
        posterior.kernel,
        noise_variance=likelihood.noise_variance,
        tie_threshold=likelihood.tie_threshold,
        optimizer=None,
    ).fit(np.array([entry.items for entry in made.history_]), y)
    X = np.random.default_rng(0).random((20, 2))
    np.testing.assert_allclose(posterior.mean(X), model.posterior_.mean(X), atol=1e-6)
    np.testing.assert_allclose(posterior.var(X), model.posterior_.var(X), atol=1e-6)


def test_a_tie_draws_two_items_together():
    told, ties = np.array([[0.1, 0.2], [0.9, 0.7]]), []
    for outcome in (1, "tie"):
        made = random_duels(optimizer(), 6, lambda a, b: taste(a) > taste(b))
        for _ in range(3):
            made.tell(told, outcome)
        mean, _ = made.posterior_.margin(*made.to_unit(told)[:, None])
        ties.append(abs(mean[0]))
    assert ties[1] < ties[0]


def test_after_a_tie_the_incumbent_stays():
    made = random_duels(optimizer(), 8, lambda a, b: taste(a) > taste(b))
    before = made.incumbent_
    duel = made.ask()
    np.testing.assert_array_equal(made.tell(duel, 0.5).incumbent_, before)
    np.testing.assert_array_equal(made.ask()[0], before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tie_threshold": 0.0}, r"tie_threshold must lie in \(0"),
        ({"tie_threshold": -1.0}, r"tie_threshold must lie in \(0"),
        ({"tie_threshold_bounds": (1.0, 0.1)}, "tie_threshold_bounds must be 'fixed' or a pair"),
        ({"tie_threshold_bounds": "fixed"}, "exclude each other. Give the number to hold"),
        ({"order_effect": np.inf}, "order_effect must lie in"),
        ({"order_effect_bounds": (1.0, 0.0)}, "order_effect_bounds must be 'fixed' or a pair"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        optimizer(**options)


def test_ties_that_the_likelihood_does_not_know_are_refused_when_told():
    made = optimizer(likelihood=Probit(0.1))
    duel = made.ask()
    with pytest.raises(ValueError, match=r"got a tie\. To learn from ties"):
        made.tell(duel, "tie")
    assert made.n_told_ == 0
    np.testing.assert_array_equal(made.ask(), duel)
    assert optimizer(likelihood=Probit(0.1, tie_threshold=0.1)).tell(duel, "tie").n_told_ == 1


def test_bounds_hold_though_the_search_would_start_elsewhere():
    made = optimizer(tie_threshold_bounds=(0.3, 0.5))
    random_duels(made, 3, three, seed=4).tell([[0.1, 0.2], [0.2, 0.2]], "tie")
    assert 0.3 <= made.posterior_.likelihood.tie_threshold <= 0.5


# --- the order of showing -------------------------------------------------------------------


def biased(first, second, effect=0.2):
    return taste(first) + effect > taste(second)


def test_a_judge_who_prefers_what_comes_first_is_seen_through():
    learned = random_duels(optimizer(order_effect_bounds=(-3.0, 3.0)), 60, biased)
    found = learned.posterior_.likelihood.order_effect
    turned = random_duels(
        optimizer(order_effect_bounds=(-3.0, 3.0)), 60, lambda a, b: biased(a, b, -0.2)
    )
    assert found > 0.1
    assert turned.posterior_.likelihood.order_effect < -0.1
    assert optimizer().tell([[0.1, 0.2], [0.3, 0.4]], 1).posterior_.likelihood.order_effect == 0.0


@pytest.mark.slow
def test_the_best_is_found_in_spite_of_the_order():
    made = optimizer(order_effect_bounds=(-3.0, 3.0))
    best = made.run(lambda a, b: biased(a, b, 0.05), 30)
    assert np.abs(best - BEST).max() < 0.15
    tell_sets(made, 3, 3).tell(made.ask(), "tie").ask(size=4)  # with the other kinds


def test_a_duel_told_the_other_way_round_is_another_answer():
    duel, margins = np.array([[0.1, 0.2], [0.9, 0.7]]), []
    for items, outcome in ((duel, 1), (duel[::-1], 0)):
        made = optimizer(order_effect=0.5).tell(items, outcome)
        margins.append(made.posterior_.margin(*made.to_unit(duel)[:, None])[0][0])
    assert margins[0] < margins[1]  # it had the advantage in the first


@pytest.mark.slow
def test_runs_with_an_order_effect_are_resumed_to_the_last_bit(tmp_path):
    options = {"order_effect": 0.3, "order_effect_bounds": (-2.0, 2.0), "tie_threshold": 0.1}
    made = journalled(tmp_path / "run.db", **options)
    for k in range(10):
        items = made.ask(size=2 + (k % 4 == 3))
        made.tell(items, **said(items, "tie" if len(items) == 2 else "chosen"))
    again = journalled(tmp_path / "run.db", **options)
    assert again._session._state.recalled.margins.size  # the sampler goes on too
    for size in (2, 3):
        np.testing.assert_array_equal(again.ask(size=size), made.ask(size=size))


def test_margins_below_zero_are_kept_where_the_order_explains_them(tmp_path):
    made = journalled(tmp_path / "run.db", order_effect=1.0)
    for _ in range(8):
        made.tell(made.ask(), 1)
    question = made.ask()
    again = journalled(tmp_path / "run.db", order_effect=1.0)
    margins = again._session._state.recalled.margins
    assert margins.shape == (8,)
    assert margins.min() < 0.0
    np.testing.assert_array_equal(again.ask(), question)


def test_an_effect_that_was_learned_before_the_first_tie_stays():
    """The threshold, which has its place before it among the hyperparameters, is not there yet."""
    made, effects = optimizer(order_effect_bounds=(-3.0, 3.0), refit_every=50, n_initial=3), []
    for _ in range(6):
        made.tell(made.ask(), 1).ask()
        effects.append(made.posterior_.likelihood.order_effect)
    assert effects[2] > 0.05
    assert effects[3:] == effects[2:-1]
