"""The mean over hyperparameters: against quadrature, dense algebra, differences and invariances."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.fitting import Inspected, InspectedMixture, average, lattice, ratio_prior
from skpref.fitting._forecast import seconds_of_ep_run
from skpref.fitting._model import Model
from skpref.inference import EP, HMC, SVI
from skpref.inspection import leaderboard, without_item_effects
from skpref.kernels import Identity, ItemEffect, OnColumns, Wiener
from skpref.likelihoods import Probit
from skpref.preprocessing import Itemwise

PLAYERS = [f"p{k}" for k in range(5)]
CONTROL = OnColumns(DotProduct(0.0, "fixed"), [1])
WIDE = (1e-6, 1e4)


def margins_of(over, first, second, level, unit):
    """Of pairs of rows, by the mixture over hyperparameters."""
    n, rows = len(first), np.concatenate([first, second])
    mixture = over.averages(rows[:, None], np.ones(1), unit)
    return mixture.margins(np.arange(n), np.arange(n, 2 * n), level)


def games(n=14, ties=False, seed=3):
    """Pairs of five players, and who won."""
    rng = np.random.default_rng(seed)
    first = rng.integers(5, size=n)
    pairs = np.stack([first, (first + rng.integers(1, 5, size=n)) % 5], axis=1)
    margin = 0.8 * (pairs[:, 1] - pairs[:, 0]) + rng.normal(size=n)
    y = np.where(np.abs(margin) < 0.6, 0, np.sign(margin)) if ties else np.sign(margin)
    return pairs, y.astype(int)


def of_names(**options):
    options = {"noise_variance": 0.5, "noise_variance_bounds": WIDE} | options
    return PairwisePreferenceRegressor(items=ItemTable.from_names(PLAYERS), **options)


@cache
def controlled(scale=1.0, n=40, unit=1.0, order=False, slope=0.0, **options):
    """Votes with a control in units of ``scale``; utilities in units of ``unit``."""
    rng = np.random.default_rng(5)
    pairs, _ = games(n, seed=6)
    X = np.stack([pairs, rng.normal(size=(n, 2))], axis=2).astype(float)
    margin = 0.6 * (pairs[:, 1] - pairs[:, 0]) + slope * (X[:, 0, 1] - X[:, 1, 1])
    margin += rng.normal(size=n)
    X[:, :, 1] *= scale
    factor = unit**2 / scale**2
    kernel = ConstantKernel(unit**2, "fixed") * OnColumns(Identity(), [0])
    kernel += ConstantKernel(factor, (1e-8 * factor, 1e5 * factor)) * CONTROL
    made = PairwisePreferenceRegressor(
        kernel,
        noise_variance=unit**2,
        noise_variance_bounds=(1e-5 * unit**2, 1e4 * unit**2),
        tie_threshold=0.5 * unit,
        tie_threshold_bounds=(1e-3 * unit, 1e3 * unit),
        order_effect_bounds=(-9.0 * unit, 9.0 * unit) if order else "fixed",
        **options,
    )
    return made.fit(X, np.where(np.abs(margin) < 0.6, 0, np.sign(margin)).astype(int))


def competitors(column=0.0):
    return np.stack([np.arange(5.0), np.full(5, column)], axis=1)


def grid_of(model, steps):
    """Log posterior of θ and moments of utilities over σ, above their mean, on a grid of θ."""
    prior = ratio_prior(model._model, model.comparisons_)
    weighed = replace(model._model, priors=(*model._model.priors, prior), engine=EP(tol=1e-10))
    logs, means, variances = [], [], []
    for theta in steps:
        at = weighed.at(theta)
        found = at.evaluate(model.comparisons_)
        logs.append(found.approximation.sites.log_evidence + at.log_prior(theta)[0])
        posterior = found.problem.prior.posterior(
            found.approximation.sites, found.approximation.conditioned, at.likelihood
        )
        items = model.items_.X
        centre = np.eye(5) - 0.2
        sigma = np.sqrt(at.likelihood.noise_variance)
        means.append(centre @ posterior.mean(items) / sigma)
        variances.append(np.diag(centre @ posterior.cov(items) @ centre) / sigma**2)
    weights = np.exp(np.array(logs) - np.max(logs))
    return weights / weights.sum(), np.array(means), np.sqrt(np.array(variances))


def quadrature_board(model, steps, level):
    """Means and ends of intervals by the grid."""
    weights, means, deviations = grid_of(model, steps)
    mean = weights @ means
    spread = np.sqrt(weights @ (deviations**2 + (means - mean) ** 2))
    values = mean + spread * np.linspace(-9.0, 9.0, 801)[:, None]
    below = np.array([weights @ norm.cdf(each, means, deviations) for each in values])
    tail = 0.5 * (1.0 - level)
    ends = [tail, 1.0 - tail]
    low, high = np.array([np.interp(ends, b, v) for b, v in zip(below.T, values.T, strict=True)]).T
    return mean, low, high, spread


def assert_board_is(board, truth, within):
    mean, low, high, spread = truth
    at = board.position
    assert_allclose(board.utility, mean[at], atol=within * spread.max())
    assert_allclose(board.lower, low[at], atol=within * (high - low).max())
    assert_allclose(board.upper, high[at], atol=within * (high - low).max())


@pytest.mark.slow
def test_one_hyperparameter_is_quadrature():
    model = of_names().fit(*games())
    board = leaderboard(model)
    assert board.n_hyperparameters == 16
    steps = np.linspace(-9.0, 8.0, 60)[:, None]
    truth = quadrature_board(model, steps, 0.9)
    assert_board_is(board, truth, 0.02)
    # What the fit alone says is another thing.
    alone = leaderboard(model, average=False)
    width = (truth[2] - truth[1])[alone.position]
    assert np.max(np.abs(alone.upper - alone.lower - width) / width) > 0.1


@pytest.mark.slow
def test_two_hyperparameters_are_quadrature():
    model = of_names(tie_threshold=0.3, tie_threshold_bounds=WIDE).fit(*games(ties=True))
    board = leaderboard(model, level=0.8)
    assert board.n_hyperparameters == 24
    noise, threshold = np.meshgrid(np.linspace(-5.0, 6.0, 9), np.linspace(-3.0, 2.0, 6))
    steps = np.stack([noise.ravel(), threshold.ravel()], axis=1)
    assert_board_is(board, quadrature_board(model, steps, 0.8), 0.03)


def test_a_board_of_several_hyperparameters_is_whole():
    board = leaderboard(of_names().fit(*games()), n_draws=1001)
    assert board.probability_best.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all((board.lower < board.utility) & (board.utility < board.upper))
    assert np.all((board.rank_lower >= 1) & (board.rank_lower <= board.rank_upper))
    assert abs(board.utility.sum()) < 1e-9


def test_hyperparameters_count_by_their_weights():
    """Two of them, far apart and of unequal weight, each in units of its own noise."""
    fits = [of_names(noise_variance=v, optimizer=None).fit(*games()) for v in (0.1, 3.0)]
    weights = np.array([0.8, 0.2])
    over = InspectedMixture(weights, tuple(Inspected.from_model(fit) for fit in fits))
    rows, centre = fits[0].items_.X, np.eye(5) - 0.2
    found = over.averages(rows[:, None], np.ones(1), "noise").intervals_about_mean(0.9)
    sigma = np.sqrt([fit.noise_variance_ for fit in fits])
    means = np.array([centre @ fit.predict(rows) for fit in fits]) / sigma[:, None]
    covs = [centre @ fit.posterior_.cov(rows) @ centre for fit in fits]
    deviations = np.sqrt([np.diag(cov) for cov in covs]) / sigma[:, None]
    assert_allclose(found.mean, weights @ means, rtol=1e-9)
    for quantile, share in ((found.lower, 0.05), (found.upper, 0.95)):
        assert_allclose(weights @ norm.cdf(quantile, means, deviations), share, rtol=1e-6)
    draws = over.sample(rows, 20_000, 0, "noise")
    draws -= draws.mean(axis=0)
    assert draws.shape == (5, 20_000)
    for quantile, share in ((found.lower, 0.05), (found.upper, 0.95)):
        assert_allclose((draws < quantile[:, None]).mean(axis=1), share, atol=0.007)


def test_margins_are_those_of_the_mixture():
    model = of_names().fit(*games())
    over = Inspected.from_model(model).over_hyperparameters(True)
    rows = model.items_.X
    first = over.averages(rows[:2, None], np.ones(1), "elo").intervals_about_mean(0.9)
    both = margins_of(over, rows[:1], rows[1:2], 0.9, "elo")
    for margin, half in zip(both, first, strict=True):  # half of it lies above the mean of the two
        assert_allclose(margin[0], 2.0 * half[0], rtol=1e-9)


# -- the prior on ratios -----------------------------------------------------------------------


def test_shares_of_the_terms_are_dense_algebra():
    """The centre of each ratio is where a term has the deviation of the margins' noise."""
    model = controlled(scale=30.0)
    prior = ratio_prior(model._model, model.comparisons_)
    theta = model._model.theta
    names = model._model.names
    margins = model.comparisons_.rows.margins
    items = model.comparisons_.items
    gap = items[margins.first] - items[margins.second]
    share = np.exp(theta[0]) * np.mean(gap[:, 1] ** 2)
    noise, threshold = model.noise_variance_, model.tie_threshold_
    assert names[1:] == ["noise_variance", "tie_threshold"]
    ratio = np.log([share / (2 * noise), 2.0 / (2 * noise)])
    ratio = [*ratio, np.log(threshold / np.sqrt(noise) / 0.5)]
    assert_allclose(prior.ratios @ theta - prior.centre, ratio, rtol=1e-6, atol=1e-6)
    assert_allclose(prior.deviation, [2.0, 2.0, 1.0])


def test_shares_of_choices_are_those_of_their_duels():
    """The margins of a set without the noise that they share; another engine's prior likewise."""
    rng = np.random.default_rng(1)
    sets = np.argsort(rng.uniform(size=(12, 5)), axis=1)[:, :3]
    kernel = ConstantKernel(0.3) * Identity()
    model = of_names(kernel=kernel, noise_variance_bounds="fixed").fit(sets, sets.argmin(axis=1))
    prior = ratio_prior(model._model, model.comparisons_)
    theta = model._model.theta
    ratio = np.log(2.0 * np.exp(theta[0]) / (2.0 * 0.5))
    assert_allclose(prior.ratios @ theta - prior.centre, [ratio], rtol=1e-6)
    assert leaderboard(model).n_hyperparameters == 16


@pytest.mark.parametrize("order", [False, True])
def test_the_gradient_of_the_prior(order):
    model = controlled(order=order)._model
    prior = ratio_prior(model, controlled(order=order).comparisons_)
    theta = model.theta + np.linspace(-0.3, 0.4, len(model.theta))
    truth = central_gradient(lambda at: prior.log_density(at)[0], theta, 1e-2)
    assert_allclose(prior.log_density(theta)[1], truth, atol=1e-7)


def test_an_order_effect_is_normal_in_units_of_the_noise():
    model = controlled(order=True)
    prior = ratio_prior(model._model, model.comparisons_)
    theta = model._model.theta.copy()
    values = []
    for effect in (0.0, 1.0):
        theta[model._model.names.index("order_effect")] = effect * np.sqrt(model.noise_variance_)
        values.append(prior.log_density(theta)[0])
    assert values[0] - values[1] == pytest.approx(0.5)


def test_what_has_a_prior_gets_no_other():
    class Expected(Probit):
        priors = {"noise_variance": (0.5, 1.0)}  # noqa: RUF012

    model = of_names(likelihood=Expected(0.5)).fit(*games())
    assert len(ratio_prior(model._model, model.comparisons_).ratios) == 0
    assert leaderboard(model).n_hyperparameters > 1


# -- invariances -------------------------------------------------------------------------------


def same_board(one, other, atol=2e-3):
    assert one.names.tolist() == other.names.tolist()
    for name in ("utility", "lower", "upper"):
        assert_allclose(one[name], other[name], atol=atol)


@pytest.mark.slow
@pytest.mark.parametrize("units", [{"scale": 200.0}, {"unit": 5.0}])
def test_the_unit_of_utilities_or_of_a_control_changes_nothing(units):
    board = leaderboard(controlled(), competitors())
    same_board(board, leaderboard(controlled(**units), competitors()))


@pytest.mark.slow
def test_the_order_of_votes_changes_nothing():
    pairs, y = games()
    board = leaderboard(of_names().fit(pairs, y))
    turned = leaderboard(of_names().fit(pairs[::-1, ::-1], -y[::-1]))
    same_board(board, turned)
    again = leaderboard(of_names().fit(pairs, y))
    assert np.array_equal(board.lower, again.lower)  # nothing is random


@pytest.mark.slow
def test_a_unit_that_nothing_tells_is_held():
    """With every amplitude learned the unit of all utilities is any: ratios alone count."""
    kernel = ConstantKernel(1.0, (1e-5, 1e5)) * Identity()
    free = leaderboard(of_names(kernel=kernel).fit(*games()))
    fixed = leaderboard(of_names().fit(*games()))
    # Two coordinates take other points than one.
    same_board(free, fixed, atol=0.02 * np.max(fixed.upper - fixed.lower))


@pytest.mark.parametrize("average", ["auto", True])
def test_hyperparameters_that_were_not_learned_change_nothing(average):
    held = of_names(optimizer=None).fit(*games())
    fixed = of_names(noise_variance_bounds="fixed").fit(*games())
    for model in (held, fixed):
        board = leaderboard(model, average=average)
        alone = leaderboard(model, average=False)
        assert board.n_hyperparameters == 1
        for name in ("utility", "lower", "upper", "rank_lower", "rank_upper", "probability_best"):
            assert np.array_equal(board[name], alone[name])


# -- what it mends -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_control_without_effect_has_an_interval():
    """Its best amplitude is at the lower bound, where the slope is sure to be zero."""
    model = controlled(n=60)
    assert model.kernel_.k2.k1.constant_value < 1e-3
    subject = Inspected.from_model(model)
    rows = np.array([[0.0, 1.0]]), np.array([[0.0, 0.0]])
    alone = margins_of(subject.over_hyperparameters(False), *rows, 0.9, "noise")
    mean = margins_of(subject.over_hyperparameters("auto"), *rows, 0.9, "noise")
    assert alone.upper[0] - alone.lower[0] < 0.05
    assert mean.lower[0] < -0.05 < 0.05 < mean.upper[0]


def test_answers_without_contradiction_have_noise():
    """The best noise is then none, and utilities over σ without end."""
    model = of_names(noise_variance_bounds=(1e-5, 1e5))
    model.fit(np.repeat(np.stack(np.triu_indices(5, 1), axis=1), 4, axis=0))
    alone, mean = leaderboard(model, average=False), leaderboard(model)
    assert np.max(alone.upper) > 100.0
    assert np.max(mean.upper) < 20.0
    assert mean.names.tolist() == PLAYERS


# -- who is averaged ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["pipeline", "judges", "without effects", "laplace"])
def test_within_narrow_bounds_it_is_the_fit(form):
    rng = np.random.default_rng(0)
    items = rng.uniform(size=(6, 2))
    pairs, y = games(60)
    kernel = RBF(0.7, "fixed") + ConstantKernel(0.1, (0.0999, 0.1001)) * ItemEffect()
    model = PairwisePreferenceRegressor(
        kernel,
        inference="laplace" if form == "laplace" else "ep",
        noise_variance=0.2,
        noise_variance_bounds=(0.1998, 0.2002),
    )
    if form == "pipeline":
        model = make_pipeline(Itemwise(StandardScaler()), model)
    judges = {"judges": np.arange(60) % 3} if form == "judges" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the bounds
        model.fit(items[pairs], y, **judges)
    if form == "without effects":
        model = without_item_effects(model)
    board, alone = leaderboard(model, items), leaderboard(model, items, average=False)
    assert board.n_hyperparameters > 1
    same_board(board, alone)
    assert_allclose(board.probability_best, alone.probability_best, atol=0.02)


@pytest.mark.parametrize("engine", [HMC(draws=40, chains=10), SVI(5)])
def test_engines_without_evidence_take_the_fit(engine):
    model = of_names(inference=engine, random_state=0).fit(*games())
    assert leaderboard(model).n_hyperparameters == 1
    with pytest.raises(ValueError, match=r"average=True needs .*inference='ep'"):
        leaderboard(model, average=True)


def test_average_is_checked():
    model = of_names().fit(*games())
    for wrong in ("no", None, 3):
        with pytest.raises(ValueError, match="average"):
            leaderboard(model, average=wrong)
    assert leaderboard(model.posterior_).n_hyperparameters == 1


def test_many_answers_are_not_averaged_unasked(monkeypatch):
    model = of_names().fit(*games())
    monkeypatch.setattr("skpref.fitting._averaging._MANY", 3)
    assert leaderboard(model).n_hyperparameters == 1
    assert leaderboard(model, average=True).n_hyperparameters == 16


# -- points ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_lattice_is_spread_like_the_normal(n):
    points = lattice(64, n)
    assert points.shape == (64, n)
    assert_allclose(points.mean(axis=0), 0.0, atol=1e-12)
    assert_allclose(points.T @ points / 64, np.eye(n), atol=1e-12)
    assert np.all(np.abs(points) < 4.0)


def test_weights_sum_to_one_and_points_lie_within_the_bounds():
    bounds = (0.3, 0.6)
    model = of_names(noise_variance_bounds=bounds).fit(*games())
    found = average(model._model, model.comparisons_)
    assert sum(each.weight for each in found) == pytest.approx(1.0)
    noises = [each.model.likelihood.noise_variance for each in found]
    assert bounds[0] <= min(noises) <= max(noises) <= bounds[1]


@pytest.mark.slow
def test_where_all_points_lie_beyond_the_bounds_it_is_the_mode(monkeypatch):
    model = of_names().fit(*games())
    monkeypatch.setattr("skpref.fitting._averaging.lattice", lambda *_: np.full((9, 1), 1e6))
    (only,) = average(model._model, model.comparisons_)
    assert only.weight == 1.0
    steps = np.linspace(-6.0, 6.0, 49)[:, None]
    prior = ratio_prior(model._model, model.comparisons_)
    weighed = replace(model._model, priors=(*model._model.priors, prior))
    at = [weighed.at(theta) for theta in steps]
    logs = [
        each.evaluate(model.comparisons_).approximation.sites.log_evidence + each.log_prior(step)[0]
        for each, step in zip(at, steps, strict=True)
    ]
    assert_allclose(only.model.theta, steps[np.argmax(logs)], atol=0.125)


def test_a_run_with_few_features_is_forecast_to_grow_with_the_answers():
    """Nothing but passes over the answers is left of it where the features are few."""
    seconds = []
    for n in (20_000, 200_000):
        first = np.arange(n) % 3
        items = np.column_stack([np.tile([0.0, 1.0, 2.0], n), np.arange(3.0 * n)])
        ends = 3 * np.arange(n) + first, 3 * np.arange(n) + (first + 1) % 3
        seen = Comparisons.from_duels(items, *ends, np.ones(n))
        kernel = OnColumns(Identity(), [0]) + OnColumns(DotProduct(), [1])
        seconds.append(seconds_of_ep_run(seen, Model(kernel, Probit(0.5), EP())))
    assert 4.0 < seconds[1] / seconds[0] < 10.0


# -- items through time ------------------------------------------------------------------------


def drifting_kernel(engine, n=30):
    """Each item meets one that came before, once: no loop of comparisons closes."""
    rng = np.random.default_rng(2)
    first = np.arange(1, n + 1)
    second = rng.integers(0, first)
    names = np.array([f"p{k}" for k in range(n + 1)])
    y = rng.normal(size=n) < 0.3
    model = PairwisePreferenceRegressor(drift="matern12", inference=engine)
    pairs = names[np.stack([first, second], axis=1)]
    return model.fit(pairs, y, time=rng.integers(0, 20, n)), pairs


@pytest.mark.slow
@pytest.mark.usefixtures("chains")
def test_independent_items_without_loops_are_averaged_as_all_jointly():
    """Their evidence is that of exact inference on all items, and so are the margins."""
    joint, alone = (drifting_kernel(EP(items=items))[0] for items in ("joint", "independent"))
    theta = joint._model.theta
    found = [average(each._model.at(theta), each.comparisons_, 12) for each in (joint, alone)]
    assert np.ptp([each.weight for each in found[0]]) > 0.01
    rows = joint.comparisons_.items
    for one, other in zip(*found, strict=True):
        assert_allclose(other.model.theta, one.model.theta, atol=1e-3)
        assert_allclose(other.weight, one.weight, atol=1e-4)
        one, other = one.posterior, other.posterior
        assert_allclose(other.means_at(rows), one.means_at(rows), atol=2e-3)
        assert_allclose(other.shared_var(rows), one.shared_var(rows), rtol=5e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("chains")
def test_boards_of_independent_items_are_a_mean_unasked():
    model, _ = drifting_kernel(EP(items="independent"))
    found = leaderboard(model, n_draws=100)
    assert found.n_hyperparameters > 1
    alone = leaderboard(model, n_draws=100, average=False)
    width = {name: each.upper - each.lower for name, each in (("mean", found), ("fit", alone))}
    assert width["mean"].mean() > width["fit"].mean()


@pytest.mark.slow
@pytest.mark.usefixtures("chains")
def test_what_partial_fit_was_told_is_not_averaged():
    """Only its last answers are at hand, which do not weigh hyperparameters."""
    model, pairs = drifting_kernel(EP(items="independent"))
    model.partial_fit(pairs[:2], [1, 0], time=30.0)
    for posterior in (model.posterior_, model.posterior_.smoothed()):
        model.posterior_ = posterior
        assert leaderboard(model, n_draws=100).n_hyperparameters == 1
        with pytest.raises(ValueError, match=r"average=True needs .*partial_fit"):
            leaderboard(model, average=True)
    model.fit(pairs, np.arange(len(pairs)) % 3 > 0, time=np.arange(len(pairs)))
    assert leaderboard(model, n_draws=100).n_hyperparameters > 1


def test_a_run_of_chains_is_forecast_to_grow_with_the_longest():
    """Steps along a chain wait for one another; chains beside it do not."""
    kernel = OnColumns(Identity(), [0]) + OnColumns(Identity(), [0]) * OnColumns(Wiener(), [1])
    seconds = []
    for n_items in (2, 100):
        first, at = np.arange(1000) % n_items, np.arange(1000) // (n_items // 2)
        items = np.column_stack([np.append(first, (first + 1) % n_items), np.append(at, at)])
        seen = Comparisons.from_duels(
            items.astype(float), np.arange(1000), 1000 + np.arange(1000), np.ones(1000)
        )
        model = Model(kernel, Probit(0.5), EP(items="independent"))
        seconds.append(seconds_of_ep_run(seen, model))
    assert seconds[0] > 4.0 * seconds[1]
