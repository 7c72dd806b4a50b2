"""Weights and functions by EP and variational Bayes, beside integrals done by other means."""

import pickle

import numpy as np
import pytest
from collaborative_support import make_study
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref import PairwisePreferenceRegressor
from skpref.active import query
from skpref.collaborative import CollaborativePreferenceRegressor, _factorised
from skpref.collaborative._factorised import (
    Cells,
    FactorisedState,
    FitcPrior,
    Normals,
    Values,
    factorise,
    products,
    users_prior,
)
from skpref.collaborative._fit import Task
from skpref.collaborative._learn import People
from skpref.collaborative._teams import ByUser, update_factors
from skpref.collaborative._users import UserTable
from skpref.data._comparisons import Comparisons
from skpref.gp._inducing import Inducing
from skpref.likelihoods import TIE, Probit

STUDY = make_study(n_users=12, n_each=12, taste=2.0, noise=0.05)
HELD = {"noise_variance": 0.05, "optimizer": None, "inference": "vb", "n_latent": 3}
RNG = np.random.default_rng(7)


def held(**options):
    return CollaborativePreferenceRegressor(RBF(1.0), **HELD | options)


@pytest.fixture(scope="module")
def fitted():
    return held().fit(STUDY.X, STUDY.y, users=STUDY.users)


# -- the parts -----------------------------------------------------------------------------


def dense(prior_cov, told):
    """Means, covariances and log normaliser of N(0, K) times factors, by plain inverses."""
    noise = np.diag(1.0 / told.precision)
    gain = prior_cov @ np.linalg.inv(prior_cov + noise)
    seen = told.shift / told.precision
    log_z = multivariate_normal(np.zeros(len(seen)), prior_cov + noise).logpdf(seen)
    flat = 0.5 * np.sum(np.log(2.0 * np.pi / told.precision) + seen * told.shift)
    return gain @ seen, prior_cov - gain @ prior_cov, log_z + flat


def check_given(prior, K):
    n = len(K)
    told = Normals(RNG.exponential(1.0, (2, n)), RNG.standard_normal((2, n)))
    found = prior.condition(told)
    divergence = 0.0
    for d in range(2):
        mean, cov, log_z = dense(K, Normals(told.precision[d], told.shift[d]))
        assert_allclose(found.mean[d], mean, atol=1e-8)
        assert_allclose(found.variance[d], np.diag(cov), atol=1e-8)
        divergence += told.shift[d] @ mean - log_z
        divergence -= 0.5 * told.precision[d] @ (mean**2 + np.diag(cov))
        lean = found.shrink[d][:, None] * prior.features
        whole = lean @ found.cov[d] @ lean.T + np.diag(found.rest[d])
        assert_allclose(whole, cov, atol=1e-8)
    assert found.divergence == pytest.approx(divergence, abs=1e-6)


def test_processes_given_factors_are_bayes_rule():
    features, rest = RNG.standard_normal((7, 3)), RNG.exponential(1.0, 7)
    check_given(FitcPrior(features, rest), features @ features.T + np.diag(rest))


def test_inducing_points_at_all_items_and_users_are_exact():
    seen = Comparisons.from_duels(STUDY.items, *STUDY.pairs.T, STUDY.y == 1)
    kernel, margins = RBF(1.0), seen.rows.margins
    space = Inducing(kernel, seen.items, margins, seen.items[::-1])
    K = kernel(seen.items)
    ends = np.eye(len(K))[margins.first] - np.eye(len(K))[margins.second]
    check_given(FitcPrior(space.margin_features, space.rest), ends @ K @ ends.T)
    table = UserTable({k: [z] for k, z in enumerate(RNG.standard_normal(6))})
    psi, rest = People(table, kernel, table.rows).inducing_features(list(range(6)))
    check_given(FitcPrior(psi, rest + 0.3), kernel(table.rows) + 0.3 * np.eye(6))


def test_answers_factors_have_the_moments_of_quadrature():
    likelihood = Probit(0.3, tie_threshold=0.4)
    X, tie = np.array([[0, 1], [1, 0], [0, 1]]), np.array([False, False, True])
    seen = Comparisons.from_duels(
        STUDY.items,
        *X.T,
        np.ones(3, dtype=bool),
        np.array([1.0, 1.0, 0.5]),
        kind=TIE * np.array(tie),
    )
    by_user = ByUser.from_comparisons(seen, np.zeros(3, dtype=int), 1)
    mean, variance = np.array([0.2, 0.5, -0.3]), np.array([0.8, 0.4, 1.2])
    before = np.array([0.3, 0.7, 0.0]), np.array([0.1, -0.4, 0.0])
    wanted, _ = update_factors(likelihood, by_user, (mean, variance), 0.0, before)
    deviation, threshold = np.sqrt(0.6), 0.4
    for k in range(3):
        wide = 1.0 / (1.0 / variance[k] - before[0][k])
        centre = wide * (mean[k] / variance[k] - before[1][k])

        def weight(g, power, k=k, wide=wide, centre=centre):
            up = ndtr((by_user.sign[k] * g - threshold) / deviation)
            down = ndtr((-by_user.sign[k] * g - threshold) / deviation)
            chance = max(1.0 - up - down, 0.0) if by_user.answers.kind[k] == TIE else up
            chance = chance ** (1.0 if by_user.power is None else by_user.power[k])
            density = np.exp(-0.5 * (g - centre) ** 2 / wide) / np.sqrt(2.0 * np.pi * wide)
            return g**power * chance * density

        moments = [quad(weight, -12.0, 12.0, (p,), limit=200)[0] for p in range(3)]
        tilted = moments[1] / moments[0]
        spread = moments[2] / moments[0] - tilted**2
        assert 1.0 / (wanted.precision[k] + 1.0 / wide) == pytest.approx(spread, rel=1e-6)
        total = wanted.shift[k] + centre / wide
        assert total * spread == pytest.approx(tilted, rel=1e-6)


def given_products():
    cells = Cells(np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3))
    told = Normals(RNG.exponential(2.0, 12), 3.0 * RNG.standard_normal(12))
    before = tuple(
        Normals(RNG.exponential(1.0, (2, n)), RNG.standard_normal((2, n))) for n in (3, 4)
    )
    start = tuple(Values(RNG.standard_normal((2, n)), np.ones((2, n))) for n in (3, 4))
    return cells, told, before, start


def test_the_bound_never_falls_and_ends_at_an_optimum():
    cells, told, before, start = given_products()
    bounds, at = [], start
    for _ in range(300):
        found = factorise(cells, told, before, at, sweeps=1)
        at = found.weights, found.functions
        bounds.append(found.bound)
    assert np.all(np.diff(bounds) > -1e-9) and bounds[-1] > bounds[0] + 0.1
    x = np.concatenate([np.r_[v.mean.ravel(), np.log(v.variance).ravel()] for v in at])

    def lost(x):
        """Minus the bound, with second moments of w·h from draws of none: by their formula."""
        w, h = x[:12].reshape(2, 2, 3), x[12:].reshape(2, 2, 4)
        sides = [(part[0], np.exp(part[1])) for part in (w, h)]
        value = 0.0
        for (mean, variance), prior in zip(sides, before, strict=True):
            value += np.sum(prior.shift * mean - 0.5 * prior.precision * (mean**2 + variance))
            value += 0.5 * np.sum(np.log(variance))
        (w, v), (h, r) = sides
        g = np.einsum("du,dp->up", w, h).ravel()
        second = np.einsum("du,dp->up", w**2 + v, h**2 + r) - np.einsum("du,dp->up", w**2, h**2)
        return -value - told.shift @ g + 0.5 * told.precision @ (g**2 + second.ravel())

    assert -lost(x) == pytest.approx(bounds[-1], abs=1e-9)
    better = minimize(lost, x, method="L-BFGS-B", options={"maxiter": 500})
    assert -better.fun == pytest.approx(bounds[-1], abs=1e-3)


def test_moments_of_products_are_those_of_draws():
    cells, _, _, start = given_products()
    mean, variance = products(cells, *start)
    w, h = (
        v.mean + np.sqrt(v.variance) * RNG.standard_normal((200_000, *v.mean.shape)) for v in start
    )
    g = np.einsum("ndu,ndp->nup", w, h).reshape(len(w), -1)
    assert_allclose(mean, g.mean(axis=0), atol=0.03)
    assert_allclose(variance, g.var(axis=0), rtol=0.03)


def test_the_evidence_is_stationary_where_the_factors_settle(monkeypatch):
    """Of weights and functions: what is gained by either is paid for by its divergence."""
    monkeypatch.setattr(_factorised, "_GROWTH", 1e-12)
    study = make_study(n_users=5, n_each=6)
    seen = Comparisons.from_duels(study.items, *study.pairs.T, study.y == 1)
    by_user = ByUser.from_comparisons(seen, study.users, 5)
    space = Inducing(RBF(1.0), seen.items, seen.rows.margins, seen.items)
    task = Task(space, by_user, Probit(0.1), 2, 1.0, 0.0, None, True, None)
    priors = users_prior(task), FitcPrior(space.margin_features, space.rest)
    state = FactorisedState(task, *priors, np.random.default_rng(0))
    for _ in range(300):
        residual = state.refine(0.3)
    assert residual < 1e-6
    told = state.weight_factors, state.function_factors

    def value(k, step):
        moved = [Normals(each.precision, each.shift.copy()) for each in told]
        moved[k].shift[:] += step * np.sign(told[k].shift)
        return state.log_evidence(*(p.condition(m) for p, m in zip(priors, moved, strict=True)))

    for k in range(2):
        here, up, down = value(k, 0.0), value(k, 0.05), value(k, -0.05)
        assert up < here and down < here
        assert abs(up - down) < 0.2 * (2.0 * here - up - down)


# -- the whole ------------------------------------------------------------------------------


def by_draws(study, X, users, options, n=30_000):
    """Probability that the first wins, and log evidence, by weights drawn from the prior."""
    rng = np.random.default_rng(0)
    d, n_users = options["n_latent"], study.users.max() + 1
    K = np.exp(-0.5 * ((study.items[:, None] - study.items) ** 2).sum(axis=2))
    root = np.linalg.cholesky(K + 1e-10 * np.eye(len(K)))
    h = rng.standard_normal((n, d, len(K))) @ root.T
    own = np.sqrt(options["taste_variance"]) * rng.standard_normal((n, n_users, d))
    w = (rng.standard_normal((n, 1, d)) + own) / np.sqrt(d)
    utility = np.einsum("nud,ndi->nui", w, h)
    spread = np.sqrt(2.0 * options["noise_variance"])

    def chance(pairs, users):
        one, other = (utility[:, users, pairs[:, k]] for k in range(2))
        return ndtr((one - other) / spread)

    seen = chance(study.pairs, study.users)
    weight = np.prod(np.where(study.y == 1, seen, 1.0 - seen), axis=1)
    asked = (weight @ chance(X, users)) / weight.sum()
    return asked, np.log(weight.mean())


def test_few_answers_beside_draws_from_the_prior():
    """Weighed by the likelihood. Means of few answers are held back, and the evidence bounded."""
    study = make_study(n_users=3, n_each=3, seed=4)
    options = {"n_latent": 2, "taste_variance": 0.5, "noise_variance": 0.5}
    pairs = np.tile(np.stack(np.triu_indices(6, k=1), axis=1), (3, 1))
    users = np.repeat(np.arange(3), 15)
    truth, evidence = by_draws(study, pairs, users, options)
    model = held(**options).fit(study.X, study.y, users=study.users)
    found = model.predict_proba(study.items[pairs], users=users)[:, 1]
    assert_allclose(found, truth, atol=0.1)
    assert np.corrcoef(found, truth)[0, 1] > 0.9
    assert evidence - 3.0 < model.log_marginal_likelihood() < evidence


def test_tastes_along_one_function_are_learned():
    """Of a function that no leading direction of the items is: one is enough."""
    rng = np.random.default_rng(0)
    items = rng.uniform(-2.0, 2.0, (10, 2))
    taste = rng.standard_normal(60)
    utility = np.outer(taste, np.sin(2.5 * items[:, 0] + 1.5 * items[:, 1]))
    users = np.repeat(np.arange(60), 15)
    pairs = np.array([rng.choice(10, 2, replace=False) for _ in users])
    gap = utility[users, pairs[:, 0]] - utility[users, pairs[:, 1]]
    X, y = items[pairs], (gap > 0.0).astype(int)
    rest = np.array([rng.choice(10, 2, replace=False) for _ in users])
    truth = (utility[users, rest[:, 0]] > utility[users, rest[:, 1]]).astype(int)
    model = held(n_latent=1, taste_variance=4.0).fit(X, y, users=users)
    assert model.score(items[rest], truth, users=users) > 0.9


def test_functions_that_start_at_nothing_leave_it(fitted):
    """All means are zero at a saddle; another start finds the same margins."""
    asked = fitted.decision_function(STUDY.X, users=STUDY.users)
    assert np.mean((asked > 0.0) == STUDY.y) > 0.9
    other = held(random_state=3).fit(STUDY.X, STUDY.y, users=STUDY.users)
    assert np.abs(other.decision_function(STUDY.X, users=STUDY.users) - asked).max() > 1e-6
    found = other.predict_proba(STUDY.X, users=STUDY.users)
    assert np.abs(found - fitted.predict_proba(STUDY.X, users=STUDY.users)).mean() < 0.03


# -- with all else that the estimator takes ----------------------------------------------------


@pytest.mark.parametrize("features", [None, np.linspace(-1.0, 1.0, 12)[:, None]])
def test_means_variances_and_draws_agree(features):
    model = held(user_features=features, taste_variance=1.0)
    model.fit(STUDY.X, STUDY.y, users=STUDY.users)
    users = [0] * 6 + [1] * 6 + [99] * 3 + [None] * 3
    items = np.concatenate([STUDY.items, STUDY.items, STUDY.items + 0.3])
    mean, cov = model.predict(items, return_cov=True, users=users)
    deviation = model.predict(items, return_std=True, users=users)[1]
    assert_allclose(np.sqrt(np.diag(cov)), deviation, rtol=1e-8)
    assert np.linalg.eigvalsh(cov)[0] > -1e-9
    duels = np.stack([items[:5], items[1:6]], axis=1)
    margin, spread = model.predict(duels, return_std=True, users=users[:5])
    assert_allclose(margin, mean[:5] - mean[1:6], atol=1e-10)
    difference = cov[range(5), range(5)] + cov[range(1, 6), range(1, 6)]
    assert_allclose(spread**2, difference - 2.0 * cov[range(5), range(1, 6)], rtol=1e-7)
    draws = model.sample_y(items, 4000, users=users)
    assert_allclose(np.cov(draws), cov, atol=0.2 * cov.max())
    check_draws(model, items[6:9], mean[[0, 1, 2, 6, 7, 8]], cov)


def check_draws(model, items, mean, cov):
    """Of two users, each asked about the same items: all that is independent is drawn."""
    posterior, rng, n = model.posterior_, np.random.default_rng(0), 50_000
    w = posterior.weights
    of_b = zip(np.zeros_like(w.centre), w.cov, strict=True)
    b = np.stack([rng.multivariate_normal(m, S, n) for m, S in of_b], axis=1)
    phi = model.kernel_(items, posterior.anchors) @ posterior.whiten.T
    of_h = zip(posterior.functions, posterior.functions_cov, strict=True)
    h = np.stack([rng.multivariate_normal(m, S, n) @ phi.T for m, S in of_h], axis=1)
    f = []
    for u in range(2):
        own = np.sqrt(w.rest[:, u]) * rng.standard_normal((n, len(w.mean)))
        weight = w.mean[:, u] + w.shrink[:, u] * (b @ posterior.features[u]) + own
        f.append(np.einsum("nd,ndi->ni", weight, h))
    f, rows = np.hstack(f), [0, 1, 2, 6, 7, 8]
    assert_allclose(f.mean(axis=0), mean, atol=0.05 * np.sqrt(cov.max()))
    assert_allclose(np.cov(f.T), cov[np.ix_(rows, rows)], atol=0.02 * cov.max())


def test_new_users_are_the_population_or_what_their_features_say():
    rng = np.random.default_rng(0)
    items, z = np.linspace(-1.0, 1.0, 6)[:, None], rng.uniform(-1.0, 1.0, 40)
    users = np.repeat(np.arange(40), 8)
    pairs = np.array([rng.choice(6, 2, replace=False) for _ in users])
    gap = (z[users] * (items[pairs[:, 0], 0] - items[pairs[:, 1], 0])) > 0.0
    table = {f"u{k}": [z[k]] for k in range(40)} | {"low": [-0.95], "high": [0.95]}
    model = held(user_features=table, taste_variance=4.0)
    model.fit(items[pairs], gap.astype(int), users=[f"u{k}" for k in users])
    duel = np.array([[[0.9], [-0.9]]] * 3)
    low, high, nobody = model.predict_proba(duel, users=["low", "high", "who"])[:, 1]
    assert low < 0.2 and high > 0.8 and 0.25 < nobody < 0.75
    assert_allclose(model.predict_proba(duel), model.predict_proba(duel, users=[None] * 3))


def test_weights_are_repetitions():
    weight = np.random.default_rng(0).integers(0, 3, len(STUDY.y))
    given = {"users": STUDY.users, "sample_weight": weight}
    weighed = held().fit(STUDY.X, STUDY.y, **given).predict_proba(STUDY.X, users=STUDY.users)
    X, y, users = (np.repeat(each, weight, axis=0) for each in (STUDY.X, STUDY.y, STUDY.users))
    repeated = held().fit(X, y, users=users).predict_proba(STUDY.X, users=STUDY.users)
    assert_allclose(weighed, repeated, atol=1e-8)


@pytest.mark.slow
def test_ties_and_who_was_shown_first():
    y = np.where(np.random.default_rng(0).random(len(STUDY.y)) < 0.2, 0, 2 * STUDY.y - 1)
    model = held(tie_threshold=0.3, order_effect=0.2).fit(STUDY.X, y, users=STUDY.users)
    proba = model.predict_proba(STUDY.X, users=STUDY.users)
    assert model.classes_.tolist() == [-1, 0, 1]
    assert_allclose(proba.sum(axis=1), 1.0)
    neither = model.predict_proba(STUDY.X, users=STUDY.users, order=np.zeros(len(y), dtype=int))
    assert np.all(proba[:, 2] > neither[:, 2])
    turned = held(tie_threshold=0.3, order_effect=0.2)
    turned.fit(STUDY.X[:, ::-1], -y, users=STUDY.users, order=np.full(len(y), -1))
    asked = turned.predict_proba(STUDY.X, users=STUDY.users)
    assert_allclose(asked, proba, atol=1e-8)


@pytest.mark.slow
def test_tables_ratings_and_hyperparameters(fitted):
    table = held(items=STUDY.items).fit(STUDY.pairs, STUDY.y, users=STUDY.users)
    asked = table.predict_proba(STUDY.pairs, users=STUDY.users)
    assert_allclose(asked, fitted.predict_proba(STUDY.X, users=STUDY.users), atol=1e-8)
    items, users = np.tile(STUDY.items, (4, 1)), np.repeat(np.arange(4), 6)
    ratings = items[:, 0] * np.where(users < 2, 1.0, -1.0)
    rated = held().fit(items, ratings, users=users)
    assert rated.score(items, ratings, users=users) > 0.95
    learned = CollaborativePreferenceRegressor(inference="vb", n_latent=3)
    learned.fit(STUDY.X, STUDY.y, users=STUDY.users)
    assert learned.score(STUDY.X, STUDY.y, users=STUDY.users) > 0.9
    plain = CollaborativePreferenceRegressor().fit(STUDY.X, STUDY.y, users=STUDY.users)
    assert_array_equal(learned.kernel_.theta, plain.kernel_.theta)


def test_equal_items_contradictions_and_wide_scales():
    X = np.concatenate([STUDY.X, STUDY.X[:2, [0, 0]], STUDY.X[:1], STUDY.X[:1]])
    y, users = [*STUDY.y, 0, 1, 0, 1], [*STUDY.users, 0, 1, 50, 50]
    for kernel in (RBF(1.0), ConstantKernel(1e4) * RBF(1.0), ConstantKernel(1e-6) * RBF(1.0)):
        for noise in (1e-4, 10.0):
            model = clone(held(noise_variance=noise)).set_params(kernel=kernel)
            proba = model.fit(X, y, users=users).predict_proba(X, users=users)
            assert np.isfinite(proba).all()
            assert_allclose(proba[-4:-2], 0.5)


def test_a_fit_is_kept_copied_and_asked_of_each_user(fitted):
    again = clone(fitted).fit(STUDY.X, STUDY.y, users=STUDY.users)
    copied = pickle.loads(pickle.dumps(fitted))
    for other in (again, copied):
        asked = other.predict_proba(STUDY.X, users=STUDY.users)
        assert_array_equal(asked, fitted.predict_proba(STUDY.X, users=STUDY.users))
    users = [0, 3, "who"]
    posterior = fitted.posterior_for(users)
    one, other = STUDY.items[:3], STUDY.items[3:]
    asked = fitted.predict_proba(np.stack([one, other], axis=1), users=users)[:, 1]
    assert_allclose(posterior.win_probability(one, other), asked)
    pool = np.stack([one[[0, 0, 0]], other[[0, 0, 0]]], axis=1)
    assert query(fitted, pool, users=users).tolist() == [2]  # of whom least is known


@pytest.mark.slow
def test_one_user_is_the_single_user_estimator():
    model = CollaborativePreferenceRegressor(inference="vb").fit(STUDY.X, STUDY.y)
    alone = PairwisePreferenceRegressor(inference="ep").fit(STUDY.X, STUDY.y)
    assert_allclose(model.predict_proba(STUDY.X), alone.predict_proba(STUDY.X), atol=1e-12)
    pooled = CollaborativePreferenceRegressor(inference="vb", method="pooled")
    pooled.fit(STUDY.X, STUDY.y, users=STUDY.users)
    assert_allclose(pooled.predict_proba(STUDY.X), alone.predict_proba(STUDY.X), atol=1e-12)


@pytest.mark.parametrize("method", ["su", "birlutiu", "bonilla"])
def test_methods_without_functions_are_refused(method):
    model = held(method=method, user_features=np.zeros((12, 1)))
    with pytest.raises(ValueError, match=f"for method='cp' or 'cpu', got '{method}'"):
        model.fit(STUDY.X, STUDY.y, users=STUDY.users)


def test_one_utility_has_no_functions_to_share():
    with pytest.raises(ValueError, match="inference must be one of 'auto', 'laplace', 'ep'"):
        PairwisePreferenceRegressor(inference="vb").fit(STUDY.X, STUDY.y)
