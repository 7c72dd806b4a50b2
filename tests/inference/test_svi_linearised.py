"""The linearised update: least squares of shares of wins, the bound's own value, and refusals."""

import numpy as np
import pytest
from likelihoods_support import Logistic
from numpy.testing import assert_allclose
from oracles import incidence
from scipy.optimize import minimize
from scipy.special import expit, ndtr
from scipy.stats import beta
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from svi_support import answers, model_of, utility_duels

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.fitting._fit import fit_posterior
from skpref.gp._inducing import Weights
from skpref.inference import SVI
from skpref.inference._natural import AnswerBatch, LinearisedBatch
from skpref.inference._svi import InBatches
from skpref.likelihoods import Probit

KERNEL = ConstantKernel(2.0) * Matern([1.0, 1.5], nu=1.5)
CHANCES = {
    "probit": (Probit(0.3), lambda margin: ndtr(margin / np.sqrt(0.6))),
    "logistic": (Logistic(0.5), lambda margin: expit(margin / 0.5)),
}


def least_squares(K, pairs, won, lost, chance):
    """Least squares over f without derivatives of ours, and the Gauss–Newton covariance there."""
    first, second = pairs
    share, spread = won / (won + lost), beta(1.0 + won, 1.0 + lost).var()
    A = incidence(first, second, len(K))
    root = np.linalg.cholesky(K)

    def loss(white):
        off = share - chance(A @ root @ white)
        return 0.5 * np.sum(off**2 / spread) + 0.5 * white @ white

    options = {"gtol": 1e-9, "maxiter": 5000}
    mean = root @ minimize(loss, np.zeros(len(K)), method="BFGS", options=options).x
    step = 1e-5
    slope = (chance(A @ mean + step) - chance(A @ mean - step)) / (2.0 * step)
    precision = np.linalg.inv(K) + A.T @ ((slope**2 / spread)[:, None] * A)
    return mean, np.linalg.inv(precision)


def repeated(n_items=7, n_pairs=9, seed=0):
    """Pairs that met several times, and who won how often, of either orientation."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 2))
    every = np.array([(i, j) for i in range(n_items) for j in range(i)])
    first, second = every[rng.permutation(len(every))[:n_pairs]].T
    won, lost = rng.integers(0, 4, size=(2, n_pairs))
    won += won + lost == 0
    ends = [
        np.repeat(np.r_[one, other], np.r_[won, lost])
        for one, other in ((first, second), (second, first))
    ]
    comparisons = Comparisons.from_duels(X, *ends, np.ones(len(ends[0])))
    return comparisons, X, (first, second), won, lost


@pytest.mark.parametrize("name", CHANCES)
def test_it_ends_at_the_least_squares_of_shares(name):
    likelihood, chance = CHANCES[name]
    comparisons, X, *tallies = repeated()
    model = model_of(comparisons, likelihood, SVI(local="ekf", tol=1e-7), KERNEL)
    fitted = fit_posterior(comparisons, model)
    mean, covariance = least_squares(KERNEL(X), *tallies, chance)
    assert fitted.approximation.converged
    assert_allclose(fitted.posterior.mean(X), mean, atol=1e-4)
    assert_allclose(fitted.posterior.cov(X), covariance, atol=1e-4)


def test_it_is_not_what_maximises_the_bound_whose_value_is_told():
    comparisons, *_ = repeated()
    likelihood = Probit(0.3)
    fitted, best = (
        fit_posterior(comparisons, model_of(comparisons, likelihood, engine, KERNEL))
        for engine in (SVI(local="ekf"), SVI())
    )
    assert fitted.log_evidence < best.log_evidence - 0.05
    history = fitted.diagnostics.bound_history
    assert history[-1] == fitted.log_evidence
    found = fitted.approximation
    batch = AnswerBatch.from_rows(fitted.evaluation.problem.prior, comparisons.rows, likelihood)
    assert_allclose(batch.evaluate_at(found.conditioned).bound, fitted.log_evidence, atol=1e-3)
    assert len(history) == found.n_iter


def test_distinct_duels_teach_it():
    """A duel each: drawn to even chances, they would teach next to nothing (a log-loss of .6)."""
    X, pairs, y = utility_duels(1400, 2800)
    model = learner(SVI(30, local="ekf"), items=X).fit(pairs[:1000], y[:1000])
    chance = model.predict_proba(pairs[1000:])[np.arange(400), y[1000:]]
    assert -np.mean(np.log(chance)) < 0.3


def test_weights_are_numbers_of_duels():
    comparisons, X, (first, second), won, lost = repeated()
    weighed = Comparisons.from_duels(
        X, np.r_[first, second], np.r_[second, first], np.ones(18), np.r_[won, lost].astype(float)
    )
    one, other = (
        fit_posterior(each, model_of(each, Probit(0.3), SVI(local="ekf"), KERNEL))
        for each in (comparisons, weighed)
    )
    assert_allclose(one.posterior.mean(X), other.posterior.mean(X), atol=1e-6)


def learner(engine, **params):
    fixed = {"optimizer": None, "random_state": 0, "noise_variance": 0.1, **params}
    return PairwisePreferenceRegressor(RBF(0.5), inference=engine, **fixed)


def test_batches_end_at_the_least_squares_of_shares():
    comparisons, X, *tallies = repeated()
    engine = SVI(local="ekf", batch_size=4, tol=1e-7)
    fitted = fit_posterior(comparisons, model_of(comparisons, Probit(0.3), engine, KERNEL))
    mean, covariance = least_squares(KERNEL(X), *tallies, CHANCES["probit"][1])
    assert fitted.approximation.converged and len(fitted.diagnostics.smoothed_bound) > 3
    assert_allclose(fitted.posterior.mean(X), mean, atol=1e-4)
    assert_allclose(fitted.posterior.cov(X), covariance, atol=1e-4)


def some_weights(rng, m=5):
    half = rng.normal(size=(m, m))
    return Weights(half @ half.T, rng.normal(size=m))


@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("kind", [AnswerBatch, LinearisedBatch])
def test_batches_add_up_to_all_answers(kind, later):
    comparisons, *_ = repeated()
    rng = np.random.default_rng(0)
    problem = model_of(comparisons, Probit(0.3), SVI(5), KERNEL).evaluate(comparisons).problem
    before = some_weights(rng) if later else None
    whole = kind.from_rows(problem.prior, problem.rows, problem.likelihood, before)
    parts = InBatches(problem, whole, 4)
    assert len(list(parts.each())) > 3
    for factor in (1.0, 3.0):
        scaled = [each.scaled(ConstantKernel(factor) * KERNEL, factor) for each in (whole, parts)]
        at = some_weights(rng)
        look, added = (each.evaluate(at) for each in scaled)
        for name in ("bound", "height", "scale_slope"):
            assert_allclose(getattr(added, name), getattr(look, name), atol=1e-10)
        for k in range(2):
            assert_allclose(added.target[k], look.target[k], atol=1e-10)


def test_streams_begin_where_the_pieces_before_ended():
    X, pairs, y = utility_duels(1200)
    whole, stream = learner(SVI(30, local="ekf"), items=X), learner(SVI(30, local="ekf"), items=X)
    whole.fit(pairs, y)
    for part in np.array_split(np.arange(1200), 3):
        stream.partial_fit(pairs[part], y[part])
    off = stream.predict_proba(pairs) - whole.predict_proba(pairs)
    assert np.sqrt(np.mean(off**2)) < 0.05


def test_hyperparameters_are_those_of_the_bound():
    X, pairs, y = utility_duels(300)
    params = {"items": X, "optimizer": "fmin_l_bfgs_b"}
    one, other = (
        learner(SVI(20, local=local), **params).fit(pairs, y) for local in ("ekf", "expected")
    )
    assert_allclose(one.kernel_.theta, other.kernel_.theta)
    assert np.abs(one.predict(X) - other.predict(X)).max() > 1e-3
    with pytest.raises(ValueError, match="does not maximise the bound"):
        one.log_marginal_likelihood(eval_gradient=True)
    assert_allclose(one.log_marginal_likelihood(), one.log_marginal_likelihood_value_, atol=1e-3)


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"tie_threshold": 0.1}, r"ties \(tie_threshold\)"),
        ({"order_effect": 0.1}, "an order effect"),
        ({"order_effect_bounds": (-1.0, 1.0)}, "an order effect"),
    ],
)
def test_more_than_wins_is_refused(params, what):
    X, pairs, _ = utility_duels(50)
    params = {"optimizer": "fmin_l_bfgs_b", **params}
    with pytest.raises(ValueError, match=rf"got {what} with SVI\(local='ekf'\)"):
        learner(SVI(local="ekf"), items=X, **params).fit(pairs, np.ones(50, dtype=int))


def test_other_ways_are_named():
    X, pairs, y = utility_duels(20)
    with pytest.raises(ValueError, match=r"local must be .*'expected'.*'ekf'"):
        learner(SVI(local="kalman"), items=X).fit(pairs, y)


def test_the_scale_is_updated_as_the_source_does():
    """Without a pull of the answers: shape a₀ + m/2, rate b₀ + half the quadratic form."""
    comparisons = answers(Probit(0.3))
    kernel = Matern([1.0, 1.5], nu=1.5)
    engine = SVI(5, local="ekf", scale_prior=(2.0, 3.0), tol=1e-7)
    fitted = fit_posterior(comparisons, model_of(comparisons, Probit(0.3), engine, kernel))
    Z = fitted.posterior.anchors
    u, S = fitted.posterior.mean(Z), fitted.posterior.cov(Z)
    squares = np.trace(np.linalg.solve(kernel(Z), S + np.outer(u, u)))
    assert_allclose(fitted.diagnostics.inverse_scale, [4.5, 3.0 + 0.5 * squares], rtol=1e-5)
