"""EP on answers of every kind: exact integrals, differences, and models that it contains."""

from dataclasses import replace

import numpy as np
import pytest
from answers_oracle import PATTERNS, Answer, answers_problem, answers_truth
from answers_support import likelihood_of, observed, predicted
from core_support import TIGHT_EP, only
from oracles import central_gradient, slopes_along_signs
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, Matern
from tiers_support import thinned

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.fitting._fit import fit_posterior
from skpref.fitting._model import Model
from skpref.inference import EP, _ep
from skpref.likelihoods import TIE, Probit

KERNEL = Matern([0.7, 1.2], nu=1.5)
ITEMS = np.random.default_rng(0).uniform(-1.0, 1.0, (6, 2))


def evidence_of(comparisons, likelihood, kernel=KERNEL, engine=TIGHT_EP):
    model = Model(kernel, likelihood, engine)
    return model.evaluate(comparisons).approximation.sites.log_evidence


def fitted(comparisons, likelihood, engine=TIGHT_EP):
    return fit_posterior(comparisons, Model(KERNEL, likelihood.fix_hyperparameters(), engine))


def ranks(shown, rank, weight=None, order=None, ordered=False, tie=None):
    kind = None if tie is None else TIE * np.array(tie)
    made = Comparisons.from_ranks(ITEMS, shown, rank, weight, order=order, kind=kind)
    return replace(made, ordered=ordered)


# -- the oracle itself -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "probability"),
    [
        ("duel", 1 / 2),
        ("best of 3", 1 / 3),
        ("worst of 4", 1 / 4),
        ("ranking of 3", 1 / 6),
        ("ranking of 4", 1 / 24),
        ("better half of 4", 1 / 6),
        ("best and worst of 4", 1 / 12),
    ],
)
def test_the_oracle_knows_what_symmetry_says(kind, probability):
    """One answer, all its items equally far from each other, no threshold, no order effect."""
    problem = answers_problem(1, [kind], 0.2, 1)._replace(
        kernel=RBF(1e-3), tie_threshold=None, order_effect=0.0
    )
    truth = answers_truth(problem)
    assert truth.log_evidence == pytest.approx(np.log(probability), abs=1e-3)
    assert truth.log_evidence_error < 3e-4
    np.testing.assert_allclose(truth.choices.sum(axis=1), 1.0, atol=1e-3)


def test_the_oracle_knows_one_tie():
    problem = answers_problem(4, ["tie"], 0.2, 1)
    answer = problem.answers[0]._replace(kind="tie", rank=(1, 1), order=1)
    a, b = problem.items[list(answer.shown)]
    K = problem.kernel(np.stack([a, b]))
    scale, delta = np.sqrt(K[0, 0] + K[1, 1] - 2.0 * K[0, 1] + 0.4), problem.tie_threshold
    h = problem.order_effect
    exact = norm.cdf((delta - h) / scale) - norm.cdf((-delta - h) / scale)
    truth = answers_truth(problem._replace(answers=[answer]))
    assert truth.log_evidence == pytest.approx(np.log(exact), abs=1e-4)


# -- distance from the truth -------------------------------------------------------------------


@pytest.mark.parametrize("kind", thinned(PATTERNS, 3))
def test_ep_is_near_the_truth(kind):
    """Two above two is the answer whose evidence EP knows least: its rows depend on each other."""
    for seed, noise_variance, n_answers in ((0, 0.3, 1), (1, 0.5, 3)):
        problem = answers_problem(seed, [kind], noise_variance, n_answers)
        truth = answers_truth(problem)
        found = predicted(EP(), problem)
        np.testing.assert_allclose(found.outcomes, truth.outcomes, atol=0.02)
        np.testing.assert_allclose(found.choices, truth.choices, atol=0.02)
        far = 0.06 * n_answers if kind == "better half of 4" else 0.05
        assert found.fitted.log_evidence == pytest.approx(truth.log_evidence, abs=far)


@pytest.mark.parametrize("kind", ["duel", "tie"])
def test_one_inequality_has_exact_evidence(kind):
    problem = answers_problem(5, [kind], 0.02, 1)
    found = predicted(EP(), problem).fitted.log_evidence
    assert found == pytest.approx(answers_truth(problem).log_evidence, abs=1e-4)


# -- gradients ---------------------------------------------------------------------------------

MIXED = [
    ([0, 1, -1, -1], [1, 2, 0, 0], 1, False),
    ([1, 0, -1, -1], [1, 2, 0, 0], 1, False),
    ([1, 0, -1, -1], [1, 2, 0, 0], 1, False),
    ([2, 0, -1, -1], [0, 0, 0, 0], -1, True),
    ([0, 2, -1, -1], [0, 0, 0, 0], 0, True),
    ([3, 1, 2, -1], [2, 1, 2, 0], 1, False),
    ([5, 4, 0, 2], [1, 2, 3, 4], 1, False),
    ([1, 2, 3, 4], [1, 2, 2, 3], 0, False),
    ([0, 3, 4, 5], [1, 1, 2, 2], 1, False),
]


def mixed(weight=None):
    shown, rank, order, tie = zip(*MIXED, strict=True)
    return ranks(shown, rank, weight, order, True, tie)


@pytest.mark.parametrize(
    ("noise_variance", "space", "counted"),  # joint answers are counted in item space
    [
        (0.01, "margins", False),
        (0.2, "items", False),
        pytest.param(0.01, "items", True, marks=pytest.mark.slow),
    ],
)
def test_every_gradient_agrees_with_differences(noise_variance, space, counted, monkeypatch):
    only(monkeypatch, space)
    # Points of quadrature have no gradient to so many digits: sites as the search has them.
    monkeypatch.setattr(_ep, "MOST_ENTRIES", 3)
    weight = [1, 2, 1, 2.5, 1, 3, 1, 2, 1] if counted else None
    likelihood = Probit(
        noise_variance, tie_threshold=0.3, order_effect=-0.2, order_effect_bounds=(-2.0, 2.0)
    )
    model, seen = Model(KERNEL, likelihood, TIGHT_EP), mixed(weight)

    def log_evidence(theta):
        return model.at(theta).evaluate(seen).approximation.sites.log_evidence

    found = model.evaluate(seen, eval_gradient=True)
    assert found.approximation.converged
    assert model.names[-3:] == ["noise_variance", "tie_threshold", "order_effect"]
    signs, slopes = slopes_along_signs(log_evidence, model.theta, 1e-2)
    np.testing.assert_allclose(signs @ found.gradient, slopes, rtol=1e-5, atol=1e-6)
    assert np.abs(found.gradient).min() > 1e-3  # none is trivially zero


@pytest.mark.slow
def test_weights_below_one_have_gradients_too():
    likelihood = Probit(0.2, tie_threshold=0.3, order_effect=0.1, order_effect_bounds=(-2, 2))
    shown, rank, order, tie = zip(*MIXED[:5], strict=True)
    seen = ranks(shown, rank, [0.4, 1.7, 0.5, 0.3, 1.2], order, True, tie)
    model = Model(KERNEL, likelihood, TIGHT_EP)
    found = model.evaluate(seen, eval_gradient=True).gradient

    def log_evidence(theta):
        return evidence_of(seen, model.at(theta).likelihood, model.at(theta).kernel)

    truth = central_gradient(log_evidence, model.theta, 1e-2)
    np.testing.assert_allclose(found, truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", [2, 5, 11])
def test_both_spaces_agree(seed, monkeypatch):
    problem = answers_problem(seed, noise_variance=0.1)
    found = []
    for space in ("margins", "items"):
        only(monkeypatch, space)
        likelihood = Probit(0.1, tie_threshold=problem.tie_threshold)
        model = Model(problem.kernel, likelihood, TIGHT_EP)
        evaluation = model.evaluate(observed(problem), eval_gradient=True)
        found.append((evaluation, predicted(TIGHT_EP, problem)))
    (one, ours), (other, theirs) = found
    assert ours.fitted.log_evidence == pytest.approx(theirs.fitted.log_evidence, abs=1e-9)
    np.testing.assert_allclose(one.gradient, other.gradient, atol=1e-7)
    np.testing.assert_allclose(ours.outcomes, theirs.outcomes, atol=1e-8)
    np.testing.assert_allclose(ours.choices, theirs.choices, atol=1e-8)


# -- models that this one contains -------------------------------------------------------------


def test_without_threshold_in_the_limit_there_are_no_ties():
    seen = ranks([[0, 1], [2, 1], [0, 2], [3, 4]], [[1, 2], [2, 1], [1, 2], [1, 2]])
    plain, narrow = Probit(0.1), Probit(0.1, tie_threshold=1e-9)
    assert evidence_of(seen, narrow) == pytest.approx(evidence_of(seen, plain), abs=1e-7)
    A, B = ITEMS[[0, 1, 3]], ITEMS[[5, 4, 2]]
    wide = np.exp(fitted(seen, narrow).posterior.outcome_log_proba(A, B))
    np.testing.assert_allclose(wide[:, 1], 0.0, atol=1e-8)
    two = np.exp(fitted(seen, plain).posterior.outcome_log_proba(A, B))
    np.testing.assert_allclose(wide[:, [0, 2]], two, atol=1e-8)


def test_a_choice_of_two_is_a_duel():
    chosen = Comparisons.from_ranks(ITEMS, [[0, 1, -1], [2, 3, -1]], [[2, 1, 0], [1, 2, 0]])
    duels = Comparisons.from_duels(ITEMS, [0, 2], [1, 3], [False, True])
    for likelihood in (Probit(0.1), Probit(0.1, tie_threshold=0.2)):
        assert evidence_of(chosen, likelihood) == evidence_of(duels, likelihood)


def test_a_set_of_two_chosen_is_predicted_as_a_duel():
    posterior = fitted(mixed(), Probit(0.1, tie_threshold=0.3, order_effect=0.2)).posterior
    one = Probit(0.1, order_effect=0.2)  # no ties where one must be chosen
    forced = replace(posterior, likelihood=one)
    pairs = ITEMS[[[0, 3], [1, 5]]]
    chosen = posterior.choice_proba(pairs)
    duels = np.exp(forced.outcome_log_proba(pairs[:, 0], pairs[:, 1]))
    np.testing.assert_allclose(chosen, duels[:, ::-1], atol=1e-12)


def test_without_order_effect_turning_answers_round_changes_nothing():
    shown, rank, _, tie = zip(*MIXED, strict=True)
    turned = [[*s[1::-1], *s[2:]] for s in shown], [[*r[1::-1], *r[2:]] for r in rank]
    likelihood = Probit(0.1, tie_threshold=0.3)
    same = ranks(*turned, None, None, False, tie)
    assert evidence_of(same, likelihood) == pytest.approx(
        evidence_of(ranks(shown, rank, tie=tie), likelihood), abs=1e-10
    )


def test_the_order_effect_favours_what_is_shown_first():
    """Turning who is shown first round and the effect's sign is the same model."""
    shown, rank, order, tie = zip(*MIXED[:6], strict=True)
    likelihood = Probit(0.1, tie_threshold=0.3, order_effect=0.4)
    other = replace_effect(likelihood, -0.4)
    seen = ranks(shown[:5], rank[:5], None, order[:5], True, tie[:5])
    back = ranks(shown[:5], rank[:5], None, [-o for o in order[:5]], True, tie[:5])
    # Utilities are known up to a constant: h on the first is −h on the second of two.
    assert evidence_of(seen, likelihood) == pytest.approx(evidence_of(back, other), abs=1e-9)
    assert abs(evidence_of(seen, likelihood) - evidence_of(seen, other)) > 0.1


def replace_effect(likelihood, effect):
    return Probit(
        likelihood.noise_variance, tie_threshold=likelihood.tie_threshold, order_effect=effect
    )


def test_a_ranking_is_no_product_of_duels():
    """One draw of noise an item: a chain of two duels draws the middle one's anew."""
    problem = answers_problem(1, ["ranking of 3"], 1.0, 1)._replace(
        kernel=RBF(1e-3), tie_threshold=None, order_effect=0.0
    )
    answer = problem.answers[0]
    best_first = np.argsort(answer.rank)
    a, b, c = np.array(answer.shown)[best_first]
    joint = observed(problem)
    broken = Comparisons.from_duels(problem.items, [a, b], [b, c], [True, True])
    kernel, likelihood = RBF(1e-3), likelihood_of(problem)
    one = evidence_of(joint, likelihood, kernel)
    many = evidence_of(broken, likelihood, kernel)
    assert one == pytest.approx(np.log(1 / 6), abs=5e-3)
    # Correlation −½ of the two margins' utilities, halved by as much noise of their own.
    assert many == pytest.approx(np.log(0.25 + np.arcsin(-0.25) / (2.0 * np.pi)), abs=5e-3)


def test_a_ranking_is_the_product_of_its_choices_only_with_noise_drawn_anew():
    problem = answers_problem(3, ["ranking of 3"], 0.5, 1)._replace(
        tie_threshold=None, order_effect=0.0, kernel=RBF(0.8)
    )
    whole = problem.answers[0]
    a, b, c = np.array(whole.shown)[np.argsort(whole.rank)].tolist()
    anew = problem._replace(
        answers=[Answer("best of 3", (a, b, c), (1, 2, 2)), Answer("duel", (b, c), (1, 2))],
        first=problem.items[[a, a, b]],
        second=problem.items[[b, c, c]],
        order=np.ones(3),
    )
    once = anew._replace(answers=[whole])
    truths = [answers_truth(each).outcomes for each in (once, anew)]
    assert np.abs(truths[0] - truths[1]).max() > 0.01
    for each, truth in zip((once, anew), truths, strict=True):
        np.testing.assert_allclose(predicted(EP(), each).outcomes, truth, atol=4e-3)


# -- weights -----------------------------------------------------------------------------------


def test_weights_are_repetitions_and_zero_leaves_out():
    shown, rank, order, tie = (list(each) for each in zip(*MIXED, strict=True))
    weight = np.array([1, 2, 0, 2, 1, 3, 0, 2, 2])
    again = [list(np.repeat(np.array(each), weight, axis=0)) for each in (shown, rank, order, tie)]
    likelihood = Probit(0.1, tie_threshold=0.3, order_effect=0.2)
    weighed = ranks(shown, rank, weight, order, True, tie)
    repeated = ranks(again[0], again[1], None, again[2], True, again[3])
    assert evidence_of(weighed, likelihood) == pytest.approx(
        evidence_of(repeated, likelihood), abs=1e-10
    )


def test_counted_sets_are_single_ones(monkeypatch):
    """Equal rankings as so many blocks of their own, in margin space, give the same."""
    shown, rank = [[0, 1, 2], [3, 1, 4]], [[1, 2, 3], [2, 1, 2]]
    likelihood = Probit(0.1)
    counted = fitted(ranks(shown, rank, [2, 1]), likelihood)
    # Copies of the items, so near that the kernel cannot tell them: nothing is equal to count.
    items = np.concatenate([ITEMS, ITEMS + 1e-9])
    single = Comparisons.from_ranks(items, [[0, 1, 2], [3, 1, 4], [6, 7, 8]], [*rank, rank[0]])
    assert counted.evaluation.problem.prior.noise.counted
    assert not fitted(single, likelihood).evaluation.problem.prior.noise.counted
    assert counted.log_evidence == pytest.approx(evidence_of(single, likelihood), abs=1e-6)
    np.testing.assert_allclose(
        counted.posterior.mean(ITEMS), fitted(single, likelihood).posterior.mean(ITEMS), atol=1e-6
    )


def _both_ways():
    """Five rankings of four distinct items each, and the very opposite of each."""
    rng = np.random.default_rng(0)
    rng.normal(size=(40, 2, 2))  # only so that the sets are those that were trapped
    sets = rng.normal(size=(40, 4, 2))[:5]
    ranks = (-sets[..., 0]).argsort(axis=1).argsort(axis=1) + 1
    return np.concatenate([sets, sets]), np.concatenate([ranks, 5 - ranks])


def test_rankings_that_contradict_each_other_do_not_trap_the_way():
    sets, ranks = _both_ways()
    at_start, at_one = (
        PairwisePreferenceRegressor(noise_variance=noise)
        .fit(sets, ranks)
        .log_marginal_likelihood_value_
        for noise in (0.01, 1.0)
    )
    assert abs(at_start - at_one) < 0.01  # the search from 0.01 used to stay there, at −60


@pytest.mark.slow
def test_sites_that_lead_astray_are_given_up():
    """Those of other hyperparameters do, where a threshold is a hundred deviations of the noise."""
    rng = np.random.default_rng(102)
    items, utility = rng.random((5, 2)), rng.normal(size=5)
    first = rng.integers(5, size=80)
    second = (first + rng.integers(1, 5, size=80)) % 5
    margin = utility[first] - utility[second] + 0.05 + 0.05 * rng.normal(size=80)
    y = np.where(np.abs(margin) < 0.3, 0, np.sign(margin)).astype(int)
    X, seen = np.stack([items[first], items[second]], axis=1), []

    class Seeing(EP):
        def run(self, problem, start=None, rng=None, gaussian=None):
            found = super().run(problem, start, rng, gaussian)
            seen.append((problem, found))
            return found

    model = PairwisePreferenceRegressor(
        RBF(1.0), inference=Seeing(), optimizer=None, noise_variance=1e-6
    )
    for threshold in (0.1, 0.3):
        model.set_params(tie_threshold=threshold).fit(X, y)
    (_, near), (problem, wanted) = seen
    found = EP().run(problem, near.state)
    assert near.converged and wanted.converged
    assert not found.converged and found.n_iter <= 25
    model = Model(RBF(1.0), problem.likelihood, EP())  # begins anew then
    again = model.evaluate(problem.comparisons, near.state).approximation
    assert again.converged
    np.testing.assert_allclose(again.conditioned.mean, wanted.conditioned.mean, atol=1e-6)
