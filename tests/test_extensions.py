"""What a newcomer adds, each defined here alone: a likelihood, answers, an engine, acquisitions.

Each works in the estimator and in an optimiser. A prior of a newcomer's is in
`tests/gp/test_newcomers_prior.py`, further examples of a likelihood and an engine in
`tests/test_contracts.py`.
"""

import inspect

import numpy as np
import pytest
from judged_support import make_duels, make_items
from likelihoods_support import rows
from numpy.testing import assert_allclose, assert_array_equal
from oracles import central_gradient
from scipy.integrate import quad
from scipy.special import expit, log_expit, log_ndtr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, DotProduct

from skpref import PairwisePreferenceRegressor, PreferenceOptimizer
from skpref.inference import Approximation, Engine, Sites
from skpref.likelihoods import DUEL, GRADED, TIE, Derivatives, Likelihood
from skpref.metrics import answer_log_loss
from skpref.optimize import STRATEGIES, _acquisition
from skpref.optimize._strategies import acquisition_surface

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
UNIT_SQUARE = [[0.0, 1.0], [0.0, 1.0]]
HELD = RBF(0.4, "fixed")
MUC = STRATEGIES["EP-MUC"]._asdict()


def model(**params):
    return PairwisePreferenceRegressor(
        **{"kernel": RBF(1.0), "noise_variance": 0.1, "lengthscale_prior": None, **params}
    )


def nearer(first, second):
    return np.sum((first - 0.3) ** 2) < np.sum((second - 0.3) ** 2)


def nearer_or_tie(first, second):
    gain = np.sum((second - 0.3) ** 2) - np.sum((first - 0.3) ** 2)
    return "tie" if abs(gain) < 0.01 else gain > 0.0


# -- a likelihood: logistic noise with ties ------------------------------------------------------


class RaoKupper(Likelihood):
    """Logistic noise; an item wins if it is better by more than a threshold (Rao, Kupper 1967)."""

    hyperparameters = ("scale", "threshold")

    def __init__(
        self, scale=0.3, scale_bounds=(1e-2, 10.0), threshold=0.2, threshold_bounds=(1e-2, 10.0)
    ):
        self.scale, self.scale_bounds = scale, scale_bounds
        self.threshold, self.threshold_bounds = threshold, threshold_bounds

    @property
    def kinds(self):
        return frozenset({DUEL, TIE})

    def log_prob(self, margin, answers):
        # With F = expit: P(win) = F(b), P(tie) = F(a) − F(b) = F(a) F(−b) (1 − exp(b − a)).
        s, tie = self.scale, answers.kind == TIE
        a, b = (margin + self.threshold) / s, (margin - self.threshold) / s
        rest = np.log(-np.expm1(-2.0 * self.threshold / s))
        value = np.where(tie, log_expit(a) + log_expit(-b) + rest, log_expit(b))
        gradient = np.where(tie, expit(-a) - expit(b), expit(-b)) / s
        bend_a, bend_b = (expit(x) * expit(-x) / s**2 for x in (a, b))
        third_a, third_b = bend_a * np.tanh(a / 2) / s, bend_b * np.tanh(b / 2) / s
        return Derivatives(value, gradient, tie * bend_a + bend_b, tie * third_a + third_b)


@pytest.fixture(scope="module")
def with_ties():
    X, y = make_duels(make_items())
    return X, np.where(np.arange(len(y)) % 5 == 0, 0, 2 * y - 1)


def test_probabilities_with_ties_are_those_of_rao_and_kupper():
    scale, threshold = 0.3, 0.2
    margin = np.linspace(-2.0, 2.0, 9)
    strength, eta = np.exp(margin / scale), np.exp(threshold / scale)  # of the first; second: 1
    win = strength / (strength + eta)
    tie = (eta**2 - 1.0) * strength / ((strength + eta) * (1.0 + eta * strength))
    likelihood = RaoKupper(scale, threshold=threshold)
    found = likelihood.outcome_proba(margin, np.zeros(9))
    assert_allclose(found, np.stack([1.0 - win - tie, tie, win], axis=1), rtol=1e-9)
    for kind in (DUEL, TIE):
        answers = rows(np.full(9, kind))
        at = likelihood.log_prob(margin, answers)
        low, high = (likelihood.log_prob(margin + h, answers) for h in (-1e-5, 1e-5))
        slopes = [(above - below) / 2e-5 for below, above in zip(low, high, strict=True)]
        expected = [at.gradient, -at.curvature, -at.third]
        assert_allclose(slopes[:3], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("answer", [0, 1])
def test_ep_with_ties_is_quadrature_where_margins_are_independent(answer):
    X = np.array([[[1.5, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
    fitted = model(kernel=DotProduct(0.0, "fixed"), likelihood=RaoKupper(0.3), optimizer=None)
    fitted.fit(X, [answer, -1])

    def weighted(z, power, outcome, deviation):
        first, not_second = expit((z - 0.2) / 0.3), expit((z + 0.2) / 0.3)
        probability = {1: first, 0: not_second - first, -1: 1.0 - not_second}[outcome]
        return z**power * probability * norm.pdf(z, 0.0, deviation)

    moments = [
        [quad(weighted, -12, 12, args=(power, *each), points=[0.0])[0] for power in range(3)]
        for each in ((answer, 1.5), (-1, 1.0))
    ]
    total, first, second = np.transpose(moments)
    mean, std = fitted.predict(X, return_std=True)
    assert_allclose(fitted.log_marginal_likelihood_value_, np.log(total).sum(), atol=1e-6)
    assert_allclose(mean, first / total, atol=1e-5)
    assert_allclose(std**2, second / total - (first / total) ** 2, rtol=1e-5)


def stay(obj_func, initial_theta, bounds):
    """A search that ends where it begins."""
    return initial_theta, obj_func(initial_theta)[0]


@pytest.mark.slow
@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_the_gradient_with_ties_is_that_of_differences(with_ties, inference):
    X, y = (each[:12] for each in with_ties)
    fitted = model(inference=inference, likelihood=RaoKupper(), optimizer=stay).fit(X, y)
    assert len(fitted.likelihood_.theta) == 2
    theta = np.append(fitted.kernel_.theta, fitted.likelihood_.theta)
    gradient = fitted.log_marginal_likelihood(theta, eval_gradient=True)[1]
    truth = central_gradient(fitted.log_marginal_likelihood, theta, 2e-2)
    assert_allclose(gradient, truth, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_likelihood_with_ties_asks_the_questions_of_an_optimizer():
    likelihood = RaoKupper(0.05, "fixed", 0.05, "fixed")
    asking = PreferenceOptimizer(
        UNIT_SQUARE, inference="ep", likelihood=likelihood, kernel=HELD, random_state=0
    )
    asking.run(nearer_or_tie, 14)
    assert np.abs(asking.recommend() - 0.3).max() < 0.2
    assert "tie" in [each.outcome for each in asking.history_]
    assert isinstance(asking.posterior_.likelihood, RaoKupper)


# -- a kind of answer: by how many of three grades one item is better, with logistic noise ---------


class CumulativeLogit(Likelihood):
    """P(at most grade k) = expit((cut k − margin) / scale), ties in the middle (McCullagh 1980)."""

    hyperparameters = ("scale", "step")

    def __init__(self, scale=0.3, scale_bounds=(1e-2, 10.0), step=0.5, step_bounds=(1e-2, 10.0)):
        self.scale, self.scale_bounds = scale, scale_bounds
        self.step, self.step_bounds = step, step_bounds  # cuts are at ½, 1½ and 2½ steps

    @property
    def kinds(self):
        return frozenset({TIE, GRADED + 1, GRADED + 2, GRADED + 3})

    def log_prob(self, margin, answers):
        # With F = expit: F(a) − F(b) = F(a) F(−b) (1 − exp(b − a)); of the clearest win a = ∞.
        grade = np.where(answers.kind == TIE, 0, answers.kind - GRADED)
        s, last = self.scale, grade == 3
        a = (margin - self.step * (grade - 0.5)) / s
        b = np.where(last, -np.inf, (margin - self.step * (grade + 0.5)) / s)
        bend = [expit(x) * expit(-x) / s**2 for x in (a, b)]
        third = [each * np.tanh(x / 2) / s for each, x in zip(bend, (a, b), strict=True)]
        value = (
            log_expit(a) + log_expit(-b) + np.where(last, 0.0, np.log(-np.expm1(-self.step / s)))
        )
        return Derivatives(value, (expit(-a) - expit(b)) / s, sum(bend), sum(third))


def grade_of(gap):
    """From -3 to 3, by steps of 0.1 and not more than three."""
    return int(np.clip(np.rint(gap / 0.1), -3, 3))


def test_a_newcomers_grades_are_exact_where_margins_are_independent():
    X = np.array([[[1.5, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
    y, scale, step = [2, -3], 0.3, 0.5
    kernel = DotProduct(0.0, "fixed")
    fitted = model(kernel=kernel, likelihood=CumulativeLogit(scale, step=step), optimizer=None)
    fitted.fit(X, y)
    assert fitted.classes_.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    inner = step * np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])

    def outcomes(z):
        return np.diff([0.0, *expit((inner - z) / scale), 1.0])

    def weighted(z, power, answer, deviation):
        return z**power * outcomes(z)[answer + 3] * norm.pdf(z, 0.0, deviation)

    moments = [
        [quad(weighted, -12, 12, args=(power, *each), points=[0.0])[0] for power in range(3)]
        for each in zip(y, (1.5, 1.0), strict=True)
    ]
    total, first, second = np.transpose(moments)
    mean, std = fitted.predict(X, return_std=True)
    assert_allclose(fitted.log_marginal_likelihood_value_, np.log(total).sum(), atol=1e-6)
    assert_allclose(mean, first / total, atol=1e-5)
    assert_allclose(std**2, second / total - (first / total) ** 2, rtol=1e-5)
    # An answer that comes next, of a margin with these moments.
    grid, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    expected = [
        weights @ np.array([outcomes(m + s * node) for node in grid])
        for m, s in zip(mean, std, strict=True)
    ]
    assert_allclose(fitted.predict_proba(X), expected, atol=1e-6)
    said = -np.mean(np.log([expected[0][2 + 3], expected[1][-3 + 3]]))
    assert_allclose(answer_log_loss(y, fitted.predict_proba(X)), said, atol=1e-6)


def test_a_newcomers_grades_ask_the_questions_of_an_optimizer():
    likelihood = CumulativeLogit(0.05, "fixed", 0.1, "fixed")
    asking = PreferenceOptimizer(
        UNIT_SQUARE, **MUC, likelihood=likelihood, kernel=HELD, n_initial=4, random_state=0
    )
    for _ in range(12):
        first, second = asking.ask()
        gap = np.linalg.norm(second - 0.3) - np.linalg.norm(first - 0.3)
        asking.tell((first, second), grade_of(gap) or "tie")
    assert np.abs(asking.recommend() - 0.3).max() < 0.2
    with pytest.raises(ValueError, match="±1 to ±3"):
        asking.tell(asking.ask(), 4)


# -- an engine: power EP -------------------------------------------------------------------------


class PowerEP(Engine):
    """Fractional updates (Minka 2004): EP at a power of 1, variational inference towards 0."""

    def __init__(self, power=0.5, max_iter=1000, tol=1e-9, step=0.3):
        self.power, self.max_iter, self.tol, self.step = power, max_iter, tol, step

    def run(self, problem, start=None, rng=None, gaussian=None):
        precision, shift = np.zeros((2, len(problem.counts)))
        power, change, n_iter = np.full(len(shift), self.power), np.inf, 0
        while change >= self.tol and n_iter < self.max_iter:
            n_iter += 1
            pooled = problem.pool(precision), problem.pool(problem.sign * shift)
            found = problem.prior.condition(*pooled)
            mean, variance = problem.orient_margins(found.mean), found.variance[problem.index]
            wide = 1.0 / (1.0 / variance - self.power * precision)
            centre = wide * (mean / variance - self.power * shift)
            tilted = problem.likelihood.tilted(centre, wide, problem.answers, power)
            slope, bend = tilted.gradient / tilted.shrink, tilted.curvature / tilted.shrink
            off = np.stack([bend, slope + bend * centre]) / self.power - [precision, shift]
            precision, shift = precision + self.step * off[0], shift + self.step * off[1]
            change = np.max(np.abs(off) / (1.0 + np.abs(precision)))
        sites = Sites(pooled[1], pooled[0], float("nan"))
        return Approximation(sites, found, {}, n_iter, float(change), bool(change < self.tol))


def test_at_a_power_of_one_it_is_ep():
    X, y = make_duels(make_items())
    power, ep = (model(inference=each, optimizer=None).fit(X, y) for each in (PowerEP(1.0), "ep"))
    assert_allclose(power.predict(X, return_std=True), ep.predict(X, return_std=True), atol=1e-4)
    assert power.n_iter_ > 1


@pytest.mark.slow
def test_towards_a_power_of_zero_it_is_variational():
    """Where KL(q ‖ p) is least, a site's precision is E_q of the curvature, its pull E_q of the
    slope: so the mean solves m = S E_q[slope]."""
    X, y = make_duels(make_items())
    X, y = X[:8], y[:8]
    fitted = model(inference=PowerEP(1e-4), optimizer=None).fit(X, y)
    sign = np.where(y, 1.0, -1.0)
    A = np.kron(np.eye(8), [[1.0, -1.0]]) * sign[:, None]
    S = A @ RBF(1.0)(X.reshape(-1, 2)) @ A.T
    mean, std = fitted.predict(X, return_std=True)
    scale = np.sqrt(0.2)
    u = ((sign * mean)[:, None] + std[:, None] * NODES) / scale
    hazard = np.exp(norm.logpdf(u) - log_ndtr(u))
    assert_allclose(S @ (hazard @ WEIGHTS) / scale, sign * mean, atol=1e-3)
    precision = (hazard * (hazard + u)) @ WEIGHTS / scale**2
    covariance = np.linalg.inv(np.linalg.inv(S + 1e-12 * np.eye(8)) + np.diag(precision))
    assert_allclose(std**2, np.diagonal(covariance), rtol=1e-2)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_the_means_are_nearly_those_of_quadrature(power):
    X = np.array([[[0.0], [0.7]], [[0.7], [1.5]], [[1.5], [0.0]], [[0.0], [0.7]]])
    y, items = np.array([1, 1, 0, 0]), np.array([[0.0], [0.7], [1.5]])
    root = np.linalg.cholesky(RBF(1.0)(items))
    f = np.stack(np.meshgrid(NODES, NODES, NODES, indexing="ij"), -1).reshape(-1, 3) @ root.T
    weight = np.prod(np.stack(np.meshgrid(*[WEIGHTS] * 3, indexing="ij"), -1), axis=-1).ravel()
    place = np.searchsorted(items[:, 0], X[:, :, 0])
    margin = (f[:, place[:, 0]] - f[:, place[:, 1]]) * np.where(y, 1.0, -1.0)
    weight = weight * np.exp(log_ndtr(margin / np.sqrt(0.2)).sum(axis=1))
    truth = weight @ f / weight.sum()
    fitted = model(inference=PowerEP(power), optimizer=None).fit(X, y)
    assert_allclose(fitted.predict(items), truth, atol=0.02)
    assert np.ptp(truth) > 0.2


@pytest.mark.slow
def test_power_ep_asks_the_questions_of_an_optimizer():
    asking = PreferenceOptimizer(
        UNIT_SQUARE,
        inference=PowerEP(tol=1e-3, step=0.9),
        kernel=HELD,
        noise_variance_bounds="fixed",
        random_state=0,
    )
    asking.run(nearer, 12)
    assert np.abs(asking.recommend() - 0.3).max() < 0.15


# -- acquisitions: a function, an object, and one with its gradient --------------------------------


def margin_spread(posterior, X, incumbent):
    """Variance of the duel's margin: what is least known."""
    return posterior.margin(X, np.repeat(incumbent[None], len(X), axis=0))[1]


class Optimism:
    """So many deviations above the mean."""

    def __init__(self, deviations):
        self.deviations = deviations

    def __call__(self, posterior, X, incumbent):
        return posterior.mean(X) + self.deviations * np.sqrt(posterior.var(X))


def spread_with_gradient(moments):
    """`margin_spread` from the moments, with the derivatives that the climb needs."""
    one = np.ones(len(moments.var))
    spread = moments.var + moments.incumbent_var - 2.0 * moments.cov
    return _acquisition.Value(spread, np.zeros(moments.mean.shape), one, -2.0 * one)


def told(n=8, **options):
    rng = np.random.default_rng(3)
    asking = PreferenceOptimizer(
        UNIT_SQUARE, **{"inference": "ep", "n_initial": 1, "random_state": 0, **options}
    )
    for _ in range(n):
        first, second = rng.random((2, 2))
        asking.tell((first, second), bool(nearer(first, second)))
    return asking


@pytest.mark.parametrize("acquisition", [margin_spread, Optimism(2.0), Optimism(0.0)])
def test_the_challenger_is_the_best_of_a_dense_grid(acquisition):
    asking = told(acquisition=acquisition)
    incumbent, challenger = asking.to_unit(asking.ask())
    line = np.linspace(0.0, 1.0, 101)
    grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    best = acquisition(asking.posterior_, grid, incumbent).max()
    reached = acquisition(asking.posterior_, challenger[None], incumbent)[0]
    assert reached >= best - 1e-6 * (1.0 + abs(best))


def test_of_a_pool_the_challenger_is_found_by_brute_force():
    pool = np.random.default_rng(0).random((30, 2))
    asking = PreferenceOptimizer(
        candidates=pool, inference="ep", acquisition=margin_spread, n_initial=1, random_state=0
    )
    for first, second in zip(pool[:6:2], pool[1:6:2], strict=True):
        asking.tell((first, second), bool(nearer(first, second)))
    incumbent, challenger = asking.ask()
    spread = margin_spread(asking.posterior_, *asking_units(asking, pool, incumbent))
    assert_array_equal(pool[int(np.argmax(spread))], challenger)


def asking_units(asking, pool, incumbent):
    return asking.to_unit(pool), asking.to_unit(incumbent[None])[0]


def test_one_entry_of_the_table_makes_an_acquisition_with_a_name(monkeypatch):
    monkeypatch.setitem(_acquisition.ACQUISITIONS, "spread", spread_with_gradient)
    named, function = told(acquisition="spread"), told(acquisition=margin_spread)
    assert_allclose(named.ask(), function.ask(), atol=1e-3)
    assert told(acquisition="spread", incumbent="joint").ask() is not None
    at, incumbent, seen = np.array([[0.3, 0.7]]), np.array([0.6, 0.2]), np.zeros((1, 2))
    surface = acquisition_surface("spread", named.posterior_, incumbent, seen)
    gradient = surface.value_and_gradient(at)[1][0]
    truth = central_gradient(lambda x: surface.value(x[None])[0], at[0], 1e-4)
    assert_allclose(gradient, truth, rtol=1e-5, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("incumbent", ["posterior_mean", "joint"])
def test_an_acquisition_of_a_users_own_optimises(incumbent):
    asking = PreferenceOptimizer(
        UNIT_SQUARE,
        inference="ep",
        acquisition=Optimism(2.0),
        incumbent=incumbent,
        random_state=0,
    )
    asking.run(nearer, 18)
    assert np.abs(asking.recommend() - 0.3).max() < 0.12


@pytest.mark.parametrize("each", [RaoKupper, CumulativeLogit, PowerEP, margin_spread, Optimism])
def test_each_is_short(each):
    assert len(inspect.getsource(each).splitlines()) < 35
