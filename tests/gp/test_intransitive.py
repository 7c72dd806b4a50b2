"""Effects of pairs against importance sampling, brute force and finite differences."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.gp import PairMargins, PairsOfNames, choose_prior
from skpref.kernels import Identity, Intransitive
from skpref.likelihoods import Probit


def explicit_covariance(K, Q, pairs, variance):
    """Covariance of the margins of all pairs: D K Dᵀ, and P C P with P off the range of D."""
    D = np.zeros((len(pairs), len(K)))
    D[np.arange(len(pairs)), pairs[:, 0]] = 1.0
    D[np.arange(len(pairs)), pairs[:, 1]] = -1.0
    C = np.array([[Q[a, c] * Q[b, d] - Q[a, d] * Q[b, c] for c, d in pairs] for a, b in pairs])
    P = np.eye(len(pairs)) - D @ np.linalg.pinv(D)
    return D @ K @ D.T, variance * P @ C @ P


def sampled_probabilities(S, answered, won, noise_variance, rng, n=100_000):
    """P(first wins) of all pairs by draws of the margins from N(0, S), weighed by the answers."""
    root = np.linalg.cholesky(S + 1e-10 * np.eye(len(S)))
    first_wins = ndtr(root @ rng.standard_normal((len(S), n)) / np.sqrt(2.0 * noise_variance))
    of_answers = np.where(won[:, None], first_wins[answered], 1.0 - first_wins[answered])
    weights = of_answers.prod(axis=0)
    return first_wins @ weights / weights.sum()


def small_problem(seed, n_answers=8):
    """Items of two columns, some of their pairs answered at random, kernels and the noise."""
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(int(rng.integers(3, 6)), 2))
    pairs = np.array(list(combinations(range(len(items)), 2)))
    answered, won = rng.integers(len(pairs), size=n_answers), rng.random(n_answers) < 0.5
    kernels = (Identity(), RBF(1.3), ConstantKernel(0.7) * RBF([0.6, 2.0]))
    own, inner = (kernels[k] for k in rng.integers(3, size=2))
    kernel = own + Intransitive(inner, variance=float(rng.uniform(0.5, 4.0)))
    # Each item is in an answer: the effects are centred over these.
    every = np.unique(pairs[answered])
    return items, pairs, answered, won, kernel, float(rng.uniform(0.2, 1.0)), every


def fitted(items, pairs, answered, won, kernel, noise_variance, **options):
    model = PairwisePreferenceRegressor(
        kernel, noise_variance=noise_variance, optimizer=None, **options
    )
    return model.fit(items[pairs[answered]], won)


@pytest.mark.parametrize("seed", range(30))
def test_probabilities_are_those_of_importance_sampling(seed):
    items, pairs, answered, won, kernel, noise, every = small_problem(seed)
    pairs_of_answers = np.isin(pairs, every).all(axis=1)
    place = np.cumsum(pairs_of_answers) - 1
    own, circles = explicit_covariance(
        kernel.k1(items[every]),
        kernel.k2.kernel(items[every]),
        np.searchsorted(every, pairs[pairs_of_answers]),
        kernel.k2.variance,
    )
    truth = sampled_probabilities(
        own + circles, place[answered], won, noise, np.random.default_rng(seed)
    )
    model = fitted(items, pairs, answered, won, kernel, noise)
    probability = model.predict_proba(items[pairs[pairs_of_answers]])[:, 1]
    np.testing.assert_allclose(probability, truth, atol=0.01)


# Of eight answers the mode is off the mean, whatever the kernel.
@pytest.mark.parametrize(
    ("inference", "error"), [("laplace", 0.06), ("hmc", 0.02), ("gibbs", 0.02)]
)
def test_other_engines_come_near(inference, error):
    items, pairs, answered, won, kernel, noise, _ = small_problem(3)
    sides = items[pairs]
    truth = fitted(items, pairs, answered, won, kernel, noise).predict_proba(sides)
    model = fitted(items, pairs, answered, won, kernel, noise, inference=inference, random_state=0)
    np.testing.assert_allclose(model.predict_proba(sides), truth, atol=error)


def test_pairs_of_new_items_by_the_joint_normal_of_all_effects():
    # h(a, b) = g(a, b) − mean_j g(a, j) + mean_j g(b, j), g of the kernel of pairs, j of answers.
    items, pairs, answered, won, kernel, noise, every = small_problem(7)
    model = fitted(items, pairs, answered, won, kernel, noise)
    posterior = model.posterior_
    new = np.array([[0.3, -1.0], [1.5, 0.2]])
    asked = np.array([[items[every[0]], new[0]], [new[1], new[0]]])
    rows = np.concatenate([items[every], new])
    n, m = len(every), len(rows)
    all_pairs = np.array([(a, b) for a in range(m) for b in range(m)])
    first, second = all_pairs.T
    Q = kernel.k2.kernel(rows)
    G = Q[np.ix_(first, first)] * Q[np.ix_(second, second)]
    G -= Q[np.ix_(first, second)] * Q[np.ix_(second, first)]
    H = np.eye(m * m)
    for row, (a, b) in enumerate(all_pairs):
        H[row, a * m + np.arange(n)] -= 1.0 / n
        H[row, b * m + np.arange(n)] += 1.0 / n
    K = kernel.k1(rows)
    D = np.eye(m)[first] - np.eye(m)[second]
    S = D @ K @ D.T + kernel.k2.variance * H @ G @ H.T
    answered_code = np.searchsorted(every, pairs[answered]) @ [m, 1]
    wanted = np.array([0 * m + n, (n + 1) * m + n])
    some, code = np.unique(answered_code, return_inverse=True)
    order = np.concatenate([some, wanted])
    truth = sampled_probabilities(
        S[np.ix_(order, order)], code, won, noise, np.random.default_rng(0)
    )[len(some) :]
    np.testing.assert_allclose(model.predict_proba(asked)[:, 1], truth, atol=0.01)
    mean, variance = (
        np.concatenate(part)
        for part in zip(
            *(
                (b.means[:, 0], b.variance)
                for b in posterior.answer_moments(asked[:, 0], asked[:, 1])
            ),
            strict=True,
        )
    )
    np.testing.assert_allclose(mean, posterior.answer_mean(asked[:, 0], asked[:, 1]))
    assert np.all(variance > 0.0)


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_gradient_is_that_of_differences(inference):
    items, pairs, answered, won, _, noise, _ = small_problem(5, n_answers=20)
    kernel = Intransitive(0.7 * RBF([0.6, 2.0]), 0.5) + RBF(1.3) + Intransitive(Identity(), 0.4)
    model = fitted(items, pairs, answered, won, kernel, noise, inference=inference)
    theta = model.kernel_.theta
    gradient = model.log_marginal_likelihood(theta, eval_gradient=True)[1]
    steps = 1e-4 * np.eye(len(theta))
    differences = [
        (model.log_marginal_likelihood(theta + s) - model.log_marginal_likelihood(theta - s)) / 2e-4
        for s in steps
    ]
    assert len(theta) == 6
    np.testing.assert_allclose(gradient, differences, rtol=1e-4, atol=1e-6)


def test_swapped_items_mirror_and_utilities_are_orthogonal_to_effects():
    items, pairs, answered, won, kernel, noise, every = small_problem(11)
    model = fitted(items, pairs, answered, won, kernel, noise)
    sides = items[pairs]
    forward, back = model.predict_proba(sides), model.predict_proba(sides[:, ::-1])
    np.testing.assert_allclose(forward, back[:, ::-1], atol=1e-12)
    differences, effects = model.posterior_.drawn_parts(100, 50, 0)
    scale = np.abs(differences).sum(axis=0) * np.abs(effects).max(axis=0)
    assert np.all(np.abs(np.sum(differences * effects, axis=0)) < 1e-7 * scale)
    assert len(differences) == len(every) * (len(every) - 1) // 2


def test_without_variance_it_is_the_model_without():
    items, pairs, answered, won, kernel, noise, _ = small_problem(2)
    none = kernel.k1 + Intransitive(kernel.k2.kernel, variance=0.0, variance_bounds="fixed")
    sides = items[pairs]
    with_term = fitted(items, pairs, answered, won, none, noise)
    plain = fitted(items, pairs, answered, won, kernel.k1, noise)
    np.testing.assert_allclose(
        with_term.predict_proba(sides), plain.predict_proba(sides), atol=1e-6
    )
    np.testing.assert_allclose(with_term.predict(items), plain.predict(items), atol=1e-6)


CIRCLES_OF_NAMES = [
    Intransitive(Identity(), 2.0),
    Intransitive(ConstantKernel(0.5) * Identity(), 3.0, "fixed"),
    Intransitive(Identity()) + Intransitive(ConstantKernel(2.0) * Identity(), 0.3),
]


def votes_on_names(n_items=12, n_answers=60):
    rng = np.random.default_rng(n_items)
    sides = rng.permuted(np.tile(np.arange(n_items), (n_answers, 1)), axis=1)[:, :2]
    return Comparisons.from_duels(
        np.arange(n_items)[:, None], *sides.T, rng.random(n_answers) < 0.5
    )


@pytest.mark.parametrize("circles", CIRCLES_OF_NAMES)
@pytest.mark.parametrize("own", [ConstantKernel(1.5) * Identity(), Identity() + 0.5 * RBF(3.0)])
def test_effects_of_names_are_those_of_the_whole_covariance(own, circles):
    votes, likelihood, kernel = votes_on_names(), Probit(0.4), own + circles
    assert choose_prior(kernel, votes, likelihood) is PairsOfNames
    priors = [
        each.from_comparisons(kernel, votes, likelihood, True)
        for each in (PairMargins, PairsOfNames)
    ]
    n = priors[0].n_margins
    rng = np.random.default_rng(0)
    precision, shift, push = rng.gamma(0.5, 2.0, n), rng.normal(size=n), rng.normal(size=n)
    precision[:3] = 0.0
    columns = rng.normal(size=(n, 2))
    np.testing.assert_allclose(priors[1].covariance(), priors[0].S, atol=1e-12)
    np.testing.assert_allclose(priors[1].variance, priors[0].variance, atol=1e-12)
    dense, quick = (prior.condition(precision, shift) for prior in priors)
    for name in ("mean", "variance", "dual", "log_det"):
        values = getattr(quick, name)
        np.testing.assert_allclose(values, getattr(dense, name), atol=1e-10)
    for again in (None, push):
        slopes = [
            prior.pull_back(each, precision, again)
            for prior, each in zip(priors, (dense, quick), strict=True)
        ]
        np.testing.assert_allclose(slopes[1], slopes[0], atol=1e-10)
    moved = [
        prior.condition_on_shift(each, precision, columns)
        for prior, each in zip(priors, (dense, quick), strict=True)
    ]
    np.testing.assert_allclose(moved[1].mean, moved[0].mean, atol=1e-10)
    for values, expected in zip(
        *(prior.centre(precision, columns) for prior in priors), strict=True
    ):
        np.testing.assert_allclose(values, expected, atol=1e-10)


def test_pairs_of_names_are_predicted_as_by_the_whole_covariance(monkeypatch):
    rng = np.random.default_rng(0)
    names = np.array(list("abcdefgh"))
    duels = names[rng.permuted(np.tile(np.arange(8), (50, 1)), axis=1)[:, :2]]
    won = rng.random(50) < 0.5
    asked = np.array([[x, y] for x in "abchz" for y in "bdyz" if x != y])  # y and z are new
    kernel = Identity() + Intransitive(Identity(), 4.0)
    models = []
    for cost in (PairsOfNames.cost, PairMargins.cost):
        monkeypatch.setattr(PairsOfNames, "cost", cost)
        model = PairwisePreferenceRegressor(kernel, noise_variance=0.3, optimizer=None)
        models.append(model.fit(duels, won))
    assert models[0].posterior_.pair_precision is not None
    assert models[1].posterior_.pair_precision is None
    proba, expected = (model.predict_proba(asked) for model in models)
    np.testing.assert_allclose(proba, expected, atol=1e-9)
    sides = asked[:, 0], asked[:, 1]
    moments = [
        model.posterior_.joint_answer_moments(*model.posterior_.reader.sides(*sides))
        for model in models
    ]
    for values, whole in zip(*moments, strict=True):
        np.testing.assert_allclose(values, whole, atol=1e-9)
    drawn = [model.posterior_.drawn_parts(100, 4000, 0) for model in models]
    for values, whole in zip(*drawn, strict=True):
        np.testing.assert_allclose(values.std(axis=1), whole.std(axis=1), rtol=0.1)


@pytest.mark.parametrize(
    "kernel",
    [
        Identity() + Intransitive(RBF(1.0)),  # effects are not of names
        Identity() + Intransitive(Identity(), 12.5),  # more of them than an order can hide
        RBF(1e3) + Intransitive(Identity()),
    ],
)
def test_other_effects_of_pairs_take_the_whole_covariance(kernel):
    assert choose_prior(kernel, votes_on_names(), Probit(0.4)) is PairMargins
