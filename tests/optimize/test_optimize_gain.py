"""What one more question is worth, and when a run may stop: against enumeration and quadrature."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, RationalQuadratic
from tiers_support import thinned

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.fitting import LogNormal, SharedLevel
from skpref.inference import SVI
from skpref.likelihoods import Probit
from skpref.optimize import (
    ActiveLearner,
    ExpectedGain,
    HallucinationBelieverOptimizer,
    PreferenceOptimizer,
    read_journal,
)
from skpref.optimize import _gain as gain
from skpref.optimize._spaces import make_space

BOX = [[0.0, 1.0]] * 2
FIXED = {"kernel": RBF(0.3, "fixed"), "noise_variance": 0.02, "noise_variance_bounds": "fixed"}
POOL = np.array([[0.0], [0.2], [0.45], [0.7], [1.0]])
DUELS = [(0, 1, 1), (1, 2, 0), (2, 3, 0), (4, 3, 1), (4, 2, 1), (0, 4, 0)]


def nearer(a, b):
    return np.sum((a - 0.3) ** 2) < np.sum((b - 0.3) ** 2)


def in_pool(seed):
    made = PreferenceOptimizer(candidates=POOL, **FIXED, n_initial=1, random_state=seed)
    for first, second, outcome in DUELS:
        made.tell(POOL[[first, second]], outcome)
    return made


def test_the_shortfall_in_a_pool_is_that_of_weighted_prior_draws():
    rng = np.random.default_rng(0)
    f = np.linalg.cholesky(RBF(0.3)(POOL) + 1e-12 * np.eye(5)) @ rng.standard_normal((5, 50_000))
    weight = np.ones(50_000)
    for first, second, outcome in DUELS:
        weight *= ndtr((2 * outcome - 1) * (f[first] - f[second]) / np.sqrt(2 * 0.02))
    best = int(np.argmax(f @ weight))
    shortfall = (f.max(axis=0) - f[best]) / np.ptp(f, axis=0)
    found = []
    for seed in range(6):
        made = in_pool(seed)
        assert made.recommend() == POOL[best]
        found.append(made.expected_gain_.shortfall)
    found = np.concatenate(found)
    for within in (0.01, 0.1, 0.3, 0.6):
        expected = np.average(shortfall <= within, weights=weight)
        assert abs(np.mean(found <= within) - expected) < 4.0 * np.sqrt(0.25 / len(found))


@pytest.mark.slow
def test_the_shortfall_is_averaged_over_lengthscales():
    rng, duels = np.random.default_rng(0), DUELS[:3]
    length = np.exp(np.log(0.1) + 1.5 * rng.standard_normal(100_000))
    length = length[(length > 0.01) & (length < 50.0)]
    cov = np.exp(-0.5 * (POOL - POOL.T) ** 2 / length[:, None, None] ** 2) + 1e-9 * np.eye(5)
    f = (np.linalg.cholesky(cov) @ rng.standard_normal((len(length), 5, 1)))[:, :, 0]
    weight = np.ones(len(length))
    for first, second, outcome in duels:
        weight *= ndtr((2 * outcome - 1) * (f[:, first] - f[:, second]) / np.sqrt(2 * 0.02))
    options = FIXED | {"kernel": RBF(0.1, (0.01, 50.0)), "lengthscale_prior": (0.1, 1.5)}
    found = []
    for seed in range(6):
        made = PreferenceOptimizer(candidates=POOL, **options, n_initial=1, random_state=seed)
        for first, second, outcome in duels:
            made.tell(POOL[[first, second]], outcome)
        found.append(made.expected_gain_.shortfall)
        best = int(np.flatnonzero(POOL[:, 0] == made.recommend())[0])
    shortfall = (f.max(axis=1) - f[:, best]) / np.ptp(f, axis=1)
    found = np.concatenate(found)
    for within in (0.01, 0.1, 0.3, 0.6):
        expected = np.average(shortfall <= within, weights=weight)
        error = np.sqrt(expected * (1.0 - expected) / len(found))
        assert abs(np.mean(found <= within) - expected) < 4.0 * error


def test_where_all_items_are_equally_good_nothing_is_to_be_gained():
    made = PreferenceOptimizer(BOX, kernel=ConstantKernel(1.0, "fixed"), random_state=0)
    made.run(nearer, 6)
    gain = made.expected_gain_
    assert gain.share == 0.0
    assert gain.probability() == 1.0


@pytest.mark.parametrize("mean", [-0.7, 0.0, 0.4])
@pytest.mark.parametrize("likelihood", [Probit(0.05), Probit(0.05, tie_threshold=0.3)])
def test_the_knowledge_gradient_of_a_duel_agrees_with_quadrature(mean, likelihood):
    var = 0.6
    g = np.linspace(mean - 8.0, mean + 8.0, 40_001)
    at = likelihood.outcome_proba(g, np.zeros_like(g), np.zeros_like(g))
    expected = trapezoid(at * (g * stats.norm.pdf(g, mean, np.sqrt(var)))[:, None], g, axis=0)
    rise = np.maximum(expected, 0.0).sum() - max(mean, 0.0)
    found = gain.knowledge_gradient(np.array([[mean]]), np.array([var]), likelihood)
    np.testing.assert_allclose(found, rise, rtol=1e-5, atol=1e-9)


@pytest.fixture
def few_draws(monkeypatch):
    """Where any number of draws will do."""
    few = gain.GAIN_EFFORT._replace(n_worlds=8, n_paths=1)
    monkeypatch.setattr(gain, "GAIN_EFFORT", few)


def known_of(made):
    session = made._session
    return session._questions._make_gain_context(session.state)


def test_drawn_functions_are_climbed_to_the_top():
    made = HallucinationBelieverOptimizer([[0.0, 1.0]], random_state=0, kernel=RBF(0.1, "fixed"))
    made.run(nearer, 6)
    known = known_of(made)
    rows = np.sort(gain._rows_to_compare(known), axis=0)[::8]  # the tops lie between them
    posterior = known.fitted.gaussian
    paths = posterior.sample_paths(6, 0, n_frequencies=300)
    tops = gain._climb_paths(paths, rows, paths(rows), known.space, posterior)
    grid = paths(np.linspace(0.0, 1.0, 4001)[:, None])
    np.testing.assert_allclose(tops, grid.max(axis=0), atol=1e-4 * np.ptp(grid))


@pytest.mark.slow
def test_numbers_and_categories_are_climbed_together():
    space = {"x": (0.0, 1.0), "n": (1, 4), "kind": ["a", "b", "c"]}
    made = PreferenceOptimizer(space, n_initial=3, random_state=0)
    made.run(lambda a, b: a["x"] + (a["kind"] == "b") > b["x"] + (b["kind"] == "b"), 8)
    known = known_of(made)
    rows = np.random.default_rng(0).permutation(gain._rows_to_compare(known))[:240]
    posterior = known.fitted.gaussian
    paths = posterior.sample_paths(5, 0, n_frequencies=300)
    tops = gain._climb_paths(paths, rows, paths(rows), known.space, posterior)
    every = [
        {"x": x, "n": n, "kind": kind}
        for x in np.linspace(0.0, 1.0, 201)
        for n in (1, 2, 3, 4)
        for kind in "abc"
    ]
    values = paths(made.to_unit(every))
    np.testing.assert_allclose(tops, values.max(axis=0), atol=2e-3 * np.ptp(values))


def test_a_probability_is_a_share_of_draws():
    found = ExpectedGain(0.1, 0.01, np.array([0.0, 0.02, 0.05, 0.5]))
    assert found.probability() == 0.25
    assert found.probability(0.02) == 0.5
    for wrong in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="within"):
            found.probability(wrong)


@pytest.mark.slow
def test_the_share_varies_no_more_than_one_of_independent_draws():
    made = PreferenceOptimizer(BOX, random_state=0)
    made.run(nearer, 12)
    known = known_of(made)
    found = [
        gain.expected_gain(known._replace(rng=np.random.default_rng(seed))) for seed in range(12)
    ]
    shares, n = [each.probability(0.02) for each in found], len(found[0].shortfall)
    mean = np.mean(shares)
    assert 0.1 < mean < 0.9
    limit = stats.chi2.isf(1e-3, 11) / 11
    assert np.var(shares, ddof=1) < limit * mean * (1.0 - mean) / n
    assert np.sqrt(0.05 * 0.95 / n) < 0.015  # where a run stops


@pytest.mark.slow
def test_answers_raise_what_is_known_and_lower_what_is_to_be_gained():
    made = HallucinationBelieverOptimizer([[0.0, 1.0]], random_state=0)
    made.run(nearer, 4)
    before = made.expected_gain_
    made.run(nearer, 20)
    after = made.expected_gain_
    assert after.probability(0.05) > before.probability(0.05)
    assert 0.0 <= after.share < before.share
    assert after.utility < before.utility
    assert np.all((after.shortfall >= 0.0) & (after.shortfall <= 1.0))
    np.testing.assert_array_equal(after.shortfall, made.expected_gain_.shortfall)


@pytest.mark.slow
def test_a_run_would_stop_where_the_gain_says_so():
    made = HallucinationBelieverOptimizer([[0.0, 1.0]], random_state=0)
    made.run(nearer, 9)
    session, share = made._session, made.expected_gain_.probability(0.05)
    assert session.is_close_enough(share - 0.005, 0.05)
    assert not session.is_close_enough(share + 0.005, 0.05)


@pytest.mark.slow
def test_a_run_ends_where_it_is_sure_and_asks_the_same_until_there(tmp_path, few_draws):
    def make(path=None):
        return HallucinationBelieverOptimizer([[0.0, 1.0]], random_state=0, journal=path)

    path = tmp_path / "run.db"
    sure, plain = make(path), make()
    told = []
    best = sure.run(nearer, 40, lambda o: told.append(o.n_told_), until=0.6, within=0.05)
    assert 3 < sure.n_told_ < 40
    assert told == list(range(1, sure.n_told_ + 1))
    assert abs(best[0] - 0.3) < 0.1
    assert sure.expected_gain_.probability(0.05) >= 0.6
    plain.run(nearer, sure.n_told_)
    for one, other in zip(sure.history_, plain.history_, strict=True):
        np.testing.assert_array_equal(one.items, other.items)
    assert read_journal(path)["kind"].count("tell") == sure.n_told_
    again = make(path)
    np.testing.assert_array_equal(again.expected_gain_.shortfall, sure.expected_gain_.shortfall)
    again.run(nearer, 40, until=0.6, within=0.05)
    assert again.n_told_ == sure.n_told_  # it was there already
    np.testing.assert_array_equal(again.ask(), plain.ask())


def test_no_run_ends_within_the_design(few_draws):
    made = HallucinationBelieverOptimizer([[0.0, 1.0]], random_state=0, n_initial=7)
    made.run(nearer, 20, until=0.01, within=0.9)
    assert made.n_told_ == 7
    made = HallucinationBelieverOptimizer([[0.0, 1.0]], random_state=0, n_initial=7)
    best = made.run(
        lambda *items: int(np.argmin(np.abs(np.array(items) - 0.3))),
        20,
        size=4,
        until=0.01,
        within=0.9,
    )
    assert made.n_told_ == 4  # of four items each
    assert 0.0 <= best[0] <= 1.0


def test_what_cannot_be_meant_is_refused_before_any_question():
    def never(*_):
        raise AssertionError

    made = HallucinationBelieverOptimizer([[0.0, 1.0]])
    for wrong in ({"until": 1.0}, {"until": 0.95, "within": 0.0}, {"within": 0.1}):
        with pytest.raises(ValueError, match=r"until|within"):
            made.run(never, 5, **wrong)
    with pytest.raises(TypeError, match="until"):
        made.run(never, 5, until="sure")
    learner = ActiveLearner(PairwisePreferenceRegressor(), POOL)
    with pytest.raises(ValueError, match="StoppingRule"):
        learner.run(never, 5, until=0.95)
    for given in ({"size": 3}, {"kind": "line"}):
        with pytest.raises(ValueError, match="asks duels only"):
            learner.run(never, 5, **given)
    assert not made.n_told_ and not len(made.pending_) and not len(learner.pending_)


@pytest.mark.parametrize(
    "options",
    thinned(
        [
            {"inference": "ep", "incumbent": "joint", "acquisition": "eubo"},
            {"inference": "laplace"},
            {"inference": "kriging_believer"},
            {"inference": SVI(n_inducing=10), "acquisition": "ei"},
            {"kernel": RationalQuadratic()},
            {"kernel": DotProduct()},
            {"lengthscale_prior": None},
            {"tie_threshold": 0.1, "order_effect": 0.1},
        ]
    ),
    ids=str,
)
def test_it_is_said_with_every_engine_and_kernel(options, few_draws):
    made = PreferenceOptimizer(BOX, n_initial=2, random_state=0, **options)
    made.run(nearer, 3)
    found = made.expected_gain_
    assert np.all((found.shortfall >= 0.0) & (found.shortfall <= 1.0))
    assert found.share > 0.0
    made.run(nearer, 1, until=0.01, within=0.9)


def test_items_without_features_are_known_one_by_one():
    names = ItemTable.from_names([f"n{k}" for k in range(6)])
    made = PreferenceOptimizer(candidates=names, n_initial=3, random_state=0)
    assert made.run(lambda a, b: a > b, 60, until=0.9, within=0.05) == "n5"
    assert made.n_told_ < 60


def test_default_priors_are_doubted_and_chosen_ones_kept():
    def models(**options):
        made = PreferenceOptimizer(BOX, n_initial=2, random_state=0, **options)
        made.run(nearer, 3)
        model = known_of(made).fitted.model
        return model, gain.widen_default_priors(model, len(BOX))

    for options in ({"acquisition": "ei"}, {}):
        model, doubted = models(**options)
        assert [type(each) for each in model.priors] == [LogNormal, LogNormal]
        assert [type(each) for each in doubted.priors] == [SharedLevel, LogNormal]
        assert doubted.priors[1].deviation[0] > model.priors[1].deviation[0]
    assert doubted.bounds[-1, 0] < model.bounds[-1, 0] == np.log(1e-5)
    np.testing.assert_array_equal(doubted.theta, model.theta)
    model, doubted = models(tie_threshold=0.1)  # the noise, and after it the threshold
    assert model.priors[1].deviation.tolist() == [3.0, 1.5]
    assert doubted.priors[1].deviation.tolist() == [5.0, 1.5]
    model, kept = models(noise_prior=(0.1, 1.0))
    np.testing.assert_array_equal(kept.priors[1].deviation, [1.0])
    np.testing.assert_array_equal(kept.priors[1].centre, np.log([0.1]))
    model, kept = models(lengthscale_prior=(3e-3, 2.0))  # as a prior of noise is
    np.testing.assert_array_equal(kept.priors[0].deviation, [2.0, 2.0])
    model, kept = models(lengthscale_prior=(0.3, 0.4), noise_variance_bounds=(1e-4, 0.1))
    for each in ("index", "centre", "deviation"):
        np.testing.assert_array_equal(getattr(kept.priors[0], each), getattr(model.priors[0], each))
    np.testing.assert_array_equal(kept.bounds, model.bounds)


def test_the_rows_that_are_looked_at_are_those_of_the_space():
    pool = np.random.default_rng(0).random((3000, 3))
    made = HallucinationBelieverOptimizer(candidates=pool, n_initial=3, random_state=0)
    made.run(nearer, 5)
    known = known_of(made)
    rows = gain._rows_to_compare(known)
    assert len(rows) < 1100
    np.testing.assert_array_equal(rows[0], known.recommended)
    assert {row.tobytes() for row in rows} <= {row.tobytes() for row in known.space.pool}


def test_a_climb_stays_in_the_corner_that_it_has_reached():
    class Slopes:
        """Functions whose values are x − y."""

        def value_and_gradient_of(self, rows, path):
            assert np.all(np.isfinite(rows))
            return rows[:, 0] - rows[:, 1], np.tile([1.0, -1.0], (len(rows), 1))

    space = make_space([[0.0, 1.0]] * 2)
    values = gain._ascend_paths(
        Slopes(), np.zeros(1, dtype=int), np.array([[0.9, 0.1]]), np.full(2, 0.01), space
    )
    np.testing.assert_array_equal(values, [1.0])  # of that corner alone
