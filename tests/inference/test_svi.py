"""Sparse variational inference: a dense solution, the evidence, sampling, and differences."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracles import central_gradient, duel_truth, incidence, small_problem
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from svi_support import KERNEL, LIKELIHOODS, TIES, answers, model_of, utility_duels
from tiers_support import thinned

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.fitting._fit import evaluate_evidence, fit_posterior
from skpref.fitting._model import Model
from skpref.gp._inducing import Weights, moments
from skpref.inference import EP, SVI
from skpref.inference._natural import AnswerBatch
from skpref.likelihoods import TIE, Probit


def dense_bound(K, comparisons, likelihood):
    """The bound over q(f) = N(K a, (K⁻¹ + B)⁻¹…) written in plain: mean and Cholesky factor."""
    rows, n = comparisons.rows, len(K)
    A = incidence(rows.first, rows.second, n)
    lower = np.tril_indices(n)
    K_inverse, log_det = np.linalg.inv(K), np.linalg.slogdet(K)[1]

    def minus_bound(point):
        mean, C = point[:n], np.zeros((n, n))
        C[lower] = point[n:]
        half = A @ C
        seen = A @ mean, np.sum(half**2, axis=1), np.zeros(len(A))
        found = likelihood.expected(*seen, rows.answers)
        by_mean = A.T @ (rows.counts * found.by_mean) - K_inverse @ mean
        by_C = 2.0 * A.T @ ((rows.counts * found.by_variance)[:, None] * half) - K_inverse @ C
        diagonal = np.abs(np.diagonal(C))
        by_C[np.diag_indices(n)] += 1.0 / np.diagonal(C)
        spread = np.sum(K_inverse * (C @ C.T)) + mean @ K_inverse @ mean - n
        bound = rows.counts @ found.value - 0.5 * (spread + log_det) + np.log(diagonal).sum()
        return -bound, -np.concatenate([by_mean, by_C[lower]])

    start = np.concatenate([np.zeros(n), np.linalg.cholesky(K)[lower]])
    options = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 50, "ftol": 1e-16, "gtol": 1e-9}
    found = minimize(minus_bound, start, jac=True, method="L-BFGS-B", options=options)
    C = np.zeros((n, n))
    C[lower] = found.x[n:]
    return -found.fun, found.x[:n], C @ C.T


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_points_at_all_items_give_the_dense_solution(name):
    likelihood = LIKELIHOODS[name]
    comparisons = answers(likelihood, n_items=7)
    model = model_of(comparisons, likelihood, SVI(tol=1e-9))
    fitted = fit_posterior(comparisons, model)
    items = comparisons.items
    bound, mean, covariance = dense_bound(KERNEL(items), comparisons, likelihood)
    assert_allclose(fitted.log_evidence, bound, atol=1e-6)
    assert_allclose(fitted.posterior.mean(items), mean, atol=2e-6)
    assert_allclose(fitted.posterior.cov(items), covariance, atol=2e-6)


@pytest.mark.parametrize("seed", range(0, 24, 4))
def test_the_bound_is_below_the_evidence(seed):
    problem = small_problem(seed)
    truth = duel_truth(problem, 0.1)
    won = np.ones(len(problem.winner))
    comparisons = Comparisons.from_duels(problem.items, problem.winner, problem.loser, won)
    model = model_of(comparisons, Probit(0.1), SVI(), problem.kernel)
    bound = fit_posterior(comparisons, model).log_evidence
    assert bound < truth.log_evidence + 4.0 * truth.log_evidence_error
    assert bound > truth.log_evidence - 0.1 * len(won)


def test_the_bound_is_below_the_evidence_of_ep():
    comparisons = answers(LIKELIHOODS["probit"])
    ep = fit_posterior(comparisons, Model(KERNEL, Probit(0.3), EP())).log_evidence
    svi = fit_posterior(comparisons, model_of(comparisons, Probit(0.3), SVI())).log_evidence
    assert ep - 0.5 < svi < ep


def noisy_log_prob(likelihood, margins, noise, rows):
    """Log of the mean probability of each answer over noise on its margin, by a sum.

    Margins are of shape (n_draws, n_rows).
    """
    x = np.linspace(-6.0, 6.0, 31)
    log_weights, at = -0.5 * x**2, margins[:, :, None] + np.sqrt(noise)[:, None] * x
    every = np.broadcast_to(np.arange(len(rows))[:, None], at.shape).ravel()
    value = likelihood.log_prob(at.ravel(), rows.answers.take(every)).value.reshape(at.shape)
    return logsumexp(value + log_weights - logsumexp(log_weights), axis=2)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_bound_agrees_with_a_monte_carlo_estimate(name):
    likelihood = LIKELIHOODS[name]
    comparisons = answers(likelihood)
    fitted = fit_posterior(comparisons, model_of(comparisons, likelihood, SVI(5)))
    posterior, rows, rng = fitted.posterior, comparisons.rows, np.random.default_rng(1)
    Z, items = posterior.anchors, comparisons.items
    u = posterior.sample(Z, 1_000, rng)
    # What is known of a margin from the points' utilities, and the variance that is left of it.
    A = incidence(rows.first, rows.second, len(items))
    known = np.linalg.solve(KERNEL(Z), KERNEL(Z, items) @ A.T)
    left = np.diagonal(A @ KERNEL(items) @ A.T - A @ KERNEL(items, Z) @ known)
    fit = noisy_log_prob(likelihood, (known.T @ u).T, left, rows) @ rows.counts
    # log q(u) − log p(u)
    q_mean, q_cov, p_cov = posterior.mean(Z), posterior.cov(Z), KERNEL(Z)
    gap = -0.5 * (np.linalg.slogdet(q_cov)[1] - np.linalg.slogdet(p_cov)[1])
    off = u - q_mean[:, None]
    gap = gap - 0.5 * np.sum(off * np.linalg.solve(q_cov, off), axis=0)
    gap = gap + 0.5 * np.sum(u * np.linalg.solve(p_cov, u), axis=0)
    each = fit - gap
    error = each.std() / np.sqrt(len(each))
    assert abs(each.mean() - fitted.log_evidence) < 4.0 * error
    # Below the evidence, which the same draws estimate by their weights; and not far below.
    assert error < 0.05
    assert fitted.log_evidence < logsumexp(each) - np.log(len(each)) + 4.0 * error


@pytest.mark.parametrize(
    ("name", "n", "n_inducing"),
    # Few duels, and more than points.
    thinned([("ties", 30, 5), ("probit", 8, 12), ("ties", 8, 12), ("logistic", 8, 12)]),
)
def test_gradient_agrees_with_differences(name, n, n_inducing):
    likelihood = LIKELIHOODS[name]
    comparisons = answers(likelihood, n)
    model = model_of(comparisons, likelihood, SVI(n_inducing, tol=1e-8))
    found = evaluate_evidence(comparisons, model, eval_gradient=True)

    def value(theta):
        return evaluate_evidence(comparisons, model.at(theta)).approximation.sites.log_evidence

    assert len(found.gradient) == len(model.names)
    assert_allclose(found.gradient, central_gradient(value, model.theta), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_items", [1, 4], ids=["equal items", "some equal items"])
@pytest.mark.parametrize("noise", [1e-8, 0.01])
def test_gradient_where_items_meet_themselves(n_items, noise):
    """Their margin is nothing, whatever the kernel: answers about it pull at no hyperparameter."""
    likelihood = Probit(noise, tie_threshold=0.4, order_effect=0.2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_items, 2))
    first, second = rng.integers(n_items, size=(2, 30))
    kind = {"kind": TIE * (rng.random(30) < 0.3), "order": rng.integers(-1, 2, size=30)}
    if noise < 0.01:  # apart from them it is a question of rounding
        second = first
    comparisons = Comparisons.from_duels(X, first, second, rng.random(30) < 0.5, **kind)
    model = model_of(comparisons, likelihood, SVI(3, tol=1e-8))
    found = evaluate_evidence(comparisons, model, eval_gradient=True).gradient
    n = len(model.kernel.theta)

    def value(theta):
        at = np.concatenate([theta, model.likelihood.theta])
        return evaluate_evidence(comparisons, model.at(at)).approximation.sites.log_evidence

    expected = central_gradient(value, model.kernel.theta)
    assert_allclose(found[:n], expected, rtol=1e-4, atol=1e-5)


def test_an_item_has_no_margin_over_itself():
    """Nor has its part that no other item shares."""
    likelihood = Probit(0.3, order_effect=0.2)
    comparisons = Comparisons.from_duels(np.ones((2, 2)), [0, 1, 0], [1, 0, 0], [1, 1, 1])
    model = model_of(comparisons, likelihood, SVI(3), KERNEL + WhiteKernel(2.0))
    found = evaluate_evidence(comparisons, model).approximation.sites.log_evidence
    assert_allclose(found, 3.0 * norm.logcdf(0.2 / np.sqrt(0.6)))


def test_gradient_where_points_all_but_coincide():
    """What is added to the points' covariance grows with it."""
    comparisons = answers(LIKELIHOODS["probit"])
    kernel = ConstantKernel(2.0) * RBF([1e3, 1e3])
    model = model_of(comparisons, Probit(1e-8), SVI(6, tol=1e-8), kernel)
    found = evaluate_evidence(comparisons, model, eval_gradient=True).gradient

    def value(theta):
        return evaluate_evidence(comparisons, model.at(theta)).approximation.sites.log_evidence

    assert_allclose(found, central_gradient(value, model.theta), rtol=1e-2)


def test_slopes_in_q_agree_with_differences():
    comparisons = answers(LIKELIHOODS["ties"])
    model = model_of(comparisons, TIES, SVI(5))
    prior = model.rule.prior(model.kernel, comparisons, model.likelihood)
    batch = AnswerBatch.from_rows(prior, comparisons.rows, TIES)
    start = fit_posterior(comparisons, model).approximation.state
    look = batch.evaluate(Weights(0.7 * start["gain"], 0.3 * start["shift"]))
    wanted, at = look.target, look.at
    S = at.root.T @ at.root

    def along(share):
        """The bound with the mean moved towards the gradient's direction."""
        mean = at.mean + share * direction
        seen = batch.row_moments(batch.prior.margin_moments(at._replace(mean=mean)))
        found = TIES.expected(*seen, batch.answers)
        return batch.counts @ found.value - 0.5 * mean @ mean

    direction = np.random.default_rng(0).normal(size=len(at.mean))
    slope = (along(1e-5) - along(-1e-5)) / 2e-5
    gradient = wanted.shift - wanted.gain @ at.mean - at.mean
    assert_allclose(slope, gradient @ direction, rtol=1e-6)
    assert_allclose(S @ (np.eye(len(S)) + 0.7 * start["gain"]), np.eye(len(S)), atol=1e-10)


def test_equal_answers_are_weights():
    comparisons = answers(LIKELIHOODS["probit"])
    rows = comparisons.rows
    thrice = [np.repeat(each, 3) for each in (rows.first, rows.second)]
    won = np.ones(3 * len(rows))
    repeated = Comparisons.from_duels(comparisons.items, *thrice, won)
    weighed = Comparisons.from_duels(
        comparisons.items, rows.first, rows.second, won[: len(rows)], 3.0 * won[: len(rows)]
    )
    one, other = (
        fit_posterior(each, model_of(each, Probit(0.3), SVI(5, tol=1e-8)))
        for each in (repeated, weighed)
    )
    assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-9)


@pytest.mark.parametrize("optimizer", [None, pytest.param("fmin_l_bfgs_b", marks=pytest.mark.slow)])
def test_it_predicts_as_well_as_ep(optimizer):
    X, pairs, y = utility_duels(900)
    loss = []
    for engine in (EP(), SVI(100)):
        model = PairwisePreferenceRegressor(
            RBF([0.5] * 3), inference=engine, items=X, optimizer=optimizer, random_state=0
        ).fit(pairs[:500], y[:500])
        chance = model.predict_proba(pairs[500:])
        loss.append(-np.mean(np.log(chance[np.arange(400), y[500:]])))
    assert abs(loss[1] - loss[0]) < 0.005


@pytest.mark.parametrize("size", [100, 1500])
def test_batches_end_where_the_full_run_ends(size):
    X, pairs, y = utility_duels(2000)
    full, batches = (
        PairwisePreferenceRegressor(
            RBF(0.5), inference=engine, items=X, optimizer=None, random_state=0
        ).fit(pairs, y)
        for engine in (SVI(30), SVI(30, batch_size=size))
    )
    assert not len(full.diagnostics_.smoothed_bound)
    assert len(batches.diagnostics_.smoothed_bound) == batches.n_iter_ < 15
    spread = full.predict(X, return_std=True)[1]
    assert_allclose(batches.predict(X) / spread, full.predict(X) / spread, atol=1e-3)
    bound = full.log_marginal_likelihood_value_
    assert_allclose(batches.log_marginal_likelihood_value_, bound, atol=1e-5)


@pytest.mark.parametrize("options", [{"delay": 100.0}, {"forgetting_rate": 1.0}, {"delay": 0.0}])
def test_no_schedule_of_steps_ends_elsewhere(options):
    """Short steps hardly raise the bound of a pass, long ones may lower it: neither is an end."""
    X, pairs, y = utility_duels(600)
    points = {"inducing_points": X[:20]}
    full, batches = (
        PairwisePreferenceRegressor(RBF(0.5), inference=engine, items=X, optimizer=None).fit(
            pairs, y
        )
        for engine in (SVI(**points), SVI(**points, batch_size=150, **options))
    )
    assert_allclose(batches.predict(X), full.predict(X), atol=1e-3)


@pytest.mark.parametrize(("n", "size"), [(2, 1), (3, 2)])
def test_batches_of_hardly_any_answers(n, size):
    X, pairs, y = utility_duels(n)
    full, batches = (
        PairwisePreferenceRegressor(RBF(0.5), inference=engine, items=X, optimizer=None).fit(
            pairs, y
        )
        for engine in (SVI(), SVI(batch_size=size))
    )
    assert_allclose(batches.predict_proba(pairs), full.predict_proba(pairs), atol=0.02)


def test_the_smoothed_bound_is_free_of_the_batches_and_ends_at_the_bound():
    X, pairs, y = utility_duels(4000)
    model = PairwisePreferenceRegressor(
        RBF(0.5), inference=SVI(30, batch_size=200), items=X, optimizer=None, random_state=0
    ).fit(pairs, y)
    course, steps = model.diagnostics_, -(-len(model.comparisons_.rows) // 200)
    n_drift = (len(course.bound_history) - model.n_iter_) // (steps - 1)
    per_pass = course.bound_history[: n_drift * steps].reshape(n_drift, steps)
    assert n_drift >= 2
    assert course.smoothed_bound[:n_drift].std() < 0.5 * per_pass.std(axis=1).min()
    assert course.smoothed_bound[-1] == model.log_marginal_likelihood_value_
    with pytest.warns(ConvergenceWarning, match="SVI stopped after 4 iterations"):
        model.set_params(inference__max_iter=4).fit(pairs, y)


def test_many_answers_begin_with_a_part_and_end_at_the_same_place(monkeypatch):
    X, pairs, y = utility_duels(3000)

    def fitted():
        return PairwisePreferenceRegressor(
            RBF(0.5), inference=SVI(inducing_points=X[:30], tol=1e-7), items=X, optimizer=None
        ).fit(pairs, y)

    whole = fitted()
    monkeypatch.setattr("skpref.inference._svi._BEGIN", 300)
    begun = fitted()
    assert begun.n_iter_ < whole.n_iter_
    assert_allclose(begun.predict(X), whole.predict(X), atol=1e-6)


def test_the_bound_never_falls_and_its_history_is_kept():
    X, pairs, y = utility_duels(500)
    model = PairwisePreferenceRegressor(
        RBF(0.5), inference=SVI(50), noise_variance=1e-4, items=X, optimizer=None
    ).fit(pairs, y)
    history = model.diagnostics_.bound_history
    assert len(history) == model.n_iter_
    assert np.all(np.diff(history) >= -1e-9 * abs(history[0]))
    assert history[-1] == model.log_marginal_likelihood_value_


def test_no_convergence_warns():
    X, pairs, y = utility_duels(500)
    model = PairwisePreferenceRegressor(
        RBF(0.5), inference=SVI(50, max_iter=2), items=X, optimizer=None
    )
    with pytest.warns(ConvergenceWarning, match=r"SVI stopped after 2 iterations.*SVI\(max_iter"):
        model.fit(pairs, y)


def test_the_matrix_of_all_items_is_never_formed():
    class Watched(RBF):
        largest = 0

        def __call__(self, X, Y=None, eval_gradient=False):
            K = super().__call__(X, Y, eval_gradient)
            Watched.largest = max(Watched.largest, np.size(K[0] if eval_gradient else K))
            return K

    X, pairs, y = utility_duels(300, n_items=400)
    model = PairwisePreferenceRegressor(
        Watched(0.5), inference=SVI(10), optimizer=None, random_state=0
    ).fit(X[pairs], y)
    model.predict_proba(X[pairs])
    assert Watched.largest <= 10 * 400


def test_predictive_variances_are_between_zero_and_the_prior():
    X, pairs, y = utility_duels(2000)
    model = PairwisePreferenceRegressor(
        2.0 * RBF(0.5), inference=SVI(60), noise_variance=1e-4, items=X, optimizer=None
    ).fit(pairs, y)
    far = np.random.default_rng(0).uniform(-3.0, 4.0, (200, 3))
    for items in (X, far):
        values = np.linalg.eigvalsh(model.posterior_.cov(items))
        assert values.min() > -1e-8
        assert np.all(model.posterior_.var(items) <= 2.0 + 1e-9)


@pytest.mark.slow
def test_a_part_of_the_answers_teaches_the_hyperparameters():
    X, pairs, y = utility_duels(3000)
    kernels = [
        PairwisePreferenceRegressor(
            RBF([0.5] * 3),
            inference=SVI(40),
            n_learning_answers=n_learning_answers,
            items=X,
            random_state=0,
        ).fit(pairs, y)
        for n_learning_answers in (600, 3000)
    ]
    theta = [model.kernel_.theta for model in kernels]
    assert np.any(theta[0] != theta[1])
    assert_allclose(theta[0], theta[1], atol=0.7)
    assert kernels[0].comparisons_.weight.sum() == 3000


def test_a_pickle_predicts_the_same():
    X, pairs, y = utility_duels(300)
    model = PairwisePreferenceRegressor(inference="svi", items=X, random_state=0).fit(pairs, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))


def test_divergence_of_q_from_the_prior():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4, 3))
    found = moments(Weights(half @ half.T, rng.normal(size=4)))
    S = found.root.T @ found.root
    truth = 0.5 * (np.trace(S) + found.mean @ found.mean - 4 - np.linalg.slogdet(S)[1])
    assert_allclose(found.divergence, truth)
