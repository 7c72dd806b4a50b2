"""Acquisitions that look ahead: by quadrature, differences, grids, pools and mixed spaces."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import entr
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from skpref.data import ItemTable
from skpref.gp import Posterior
from skpref.inference import HMC
from skpref.kernels import Linear
from skpref.likelihoods import Probit
from skpref.optimize import STRATEGIES, PreferenceOptimizer
from skpref.optimize._lookahead import (
    LOOKAHEADS,
    DuelCandidates,
    JointEntropySearch,
    KnowledgeGradient,
)
from skpref.optimize._strategies import acquisition_surface

KERNELS = {
    "matern32": Matern([0.4, 0.7], nu=1.5),
    "rbf": ConstantKernel(2.0) * RBF([0.3, 0.6]),
    "sum": Matern(0.5, nu=2.5) + 0.5 * DotProduct(0.3),
}
SQUARE = [[0.0, 1.0], [0.0, 1.0]]
NOISE = 0.05


def posterior(kernel=KERNELS["matern32"], n_components=1, d=2):
    rng = np.random.default_rng(0)
    Z = rng.random((7, d))
    inverse = np.linalg.inv(kernel(Z) + 0.1 * np.eye(7))
    weights = inverse @ rng.standard_normal((7, n_components))
    return Posterior(kernel, Probit(NOISE), Z, weights, np.linalg.cholesky(inverse))


def candidates(post, n=12, seed=1):
    rng = np.random.default_rng(seed)
    return DuelCandidates.draw(post, rng.random((n, post.anchors.shape[1])), n, rng)


def differences(function, rows, step=1e-5):
    slope = np.zeros(rows.shape)
    for place in np.ndindex(*rows.shape):
        above, below = rows.copy(), rows.copy()
        above[place] += step
        below[place] -= step
        slope[place] = (function(above) - function(below)) / (2.0 * step)
    return slope


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(180)


def quadrature_gain(post, rows, a, b):
    """Mean of the largest posterior mean after the answer, less the largest before it.

    The margin g is taken at nodes: given it the mean of f(x) is linear in it, and the answer's
    probability is that of the probit, whose noise is on both items.
    """
    nodes, weights = NODES, WEIGHTS / WEIGHTS.sum()
    means, cov = post.component_means(rows), post.component_cov(rows)
    variance = cov[a, a] + cov[b, b] - 2.0 * cov[a, b]
    pull = (cov[:, a] - cov[:, b]) / variance
    after = np.zeros((2, len(rows)))
    for s in range(post.n_components):
        margin = means[a, s] - means[b, s] + np.sqrt(variance) * nodes
        f = means[:, s, None] + pull[:, None] * (np.sqrt(variance) * nodes)
        win = stats.norm.cdf(margin / np.sqrt(2.0 * NOISE))
        after += np.stack([f @ (weights * win), f @ (weights * (1.0 - win))])
    after /= post.n_components
    return after.max(axis=1).sum() - means.mean(axis=1).max()


@pytest.mark.parametrize("n_components", [1, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_knowledge_gradient_agrees_with_quadrature(kernel, n_components):
    post = posterior(KERNELS[kernel], n_components)
    found = candidates(post)
    first, second = np.triu_indices(len(found.rows), 1)
    values, rows = KnowledgeGradient(post, found).value_pairs(found, first, second)
    np.testing.assert_array_equal(rows[:, 0], first)
    np.testing.assert_array_equal(rows[:, 1], second)
    exact = [quadrature_gain(post, found.rows, a, b) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(values, exact, rtol=1e-6, atol=1e-8)
    assert values.max() > 0.01


@pytest.mark.parametrize("n_components", [1, 3])
def test_the_best_of_the_rows_that_move_is_recommended(n_components):
    post, rng = posterior(n_components=n_components), np.random.default_rng(5)
    for _ in range(8):
        rows = rng.random((4, 2))
        found = DuelCandidates.draw(post, rows, 4, rng)
        value, _ = KnowledgeGradient(post, found).value_and_gradient(found.rows)
        assert value == pytest.approx(quadrature_gain(post, found.rows, 0, 1), abs=1e-5)


@pytest.mark.parametrize("n_components", [1, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_knowledge_gradient_has_the_gradient_of_differences(kernel, n_components):
    post = posterior(KERNELS[kernel], n_components)
    found = candidates(post)
    surface = KnowledgeGradient(post, found)
    values, chosen = surface.value_pairs(found, np.array([0, 3]), np.array([1, 8]))
    for value, rows in zip(values, found.rows[chosen], strict=True):
        assert surface.value_and_gradient(rows)[0] == pytest.approx(value, abs=1e-12)
    rows = np.random.default_rng(5).random((4, 2))
    slope = differences(lambda at: surface.value_and_gradient(at)[0], rows)
    np.testing.assert_allclose(surface.value_and_gradient(rows)[1], slope, rtol=1e-5, atol=1e-7)


def informed(post, rows, a, b, best, highest):
    """What the answer tells of f(best) = highest, by dense conditioning on each of the draws."""
    means, cov = post.component_means(rows), post.component_cov(rows)
    mean, cov = means.mean(axis=1), cov + np.cov(means, bias=True)

    def entropy(mean, cov):
        margin, variance = mean[a] - mean[b], cov[a, a] + cov[b, b] - 2.0 * cov[a, b]
        win = stats.norm.cdf(margin / np.sqrt(variance + 2.0 * NOISE))
        return entr(win) + entr(1.0 - win)

    left = []
    for k, value in zip(best, highest, strict=True):
        gain = cov[:, k] / cov[k, k]
        left.append(entropy(mean + gain * (value - mean[k]), cov - np.outer(gain, cov[k])))
    return entropy(mean, cov) - np.mean(left)


@pytest.mark.parametrize("n_components", [1, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_entropy_search_agrees_with_dense_conditioning(kernel, n_components):
    post = posterior(KERNELS[kernel], n_components)
    found = candidates(post, 8)
    first, second = np.triu_indices(8, 1)
    values, rows = JointEntropySearch(post, found).value_pairs(found, first, second)
    np.testing.assert_array_equal(rows, np.stack([first, second], axis=1))
    exact = [informed(post, found.rows, *pair, found.best, found.highest) for pair in rows]
    np.testing.assert_allclose(values, exact, atol=1e-9)
    assert values.max() > 0.02


def test_what_an_answer_tells_of_one_value_is_their_mutual_information():
    """Draws of f(x*) by quadrature: the joint entropies of answer and value."""
    post = posterior()
    found = candidates(post, 3)
    nodes = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    drawn = found.means[2, 0] + np.sqrt(found.var[2]) * nodes
    sure = found._replace(best=np.full(4000, 2), highest=drawn)
    value, _ = JointEntropySearch(post, sure).value_pairs(sure, np.array([0]), np.array([1]))
    f = np.random.default_rng(0).multivariate_normal(found.means[:, 0], found.cov, 400_000)
    win = stats.norm.cdf((f[:, 0] - f[:, 1]) / np.sqrt(2.0 * NOISE))
    cells = np.searchsorted(np.quantile(f[:, 2], np.arange(1, 200) / 200), f[:, 2])
    given = np.bincount(cells, win) / np.bincount(cells)
    before, after = (entr(p) + entr(1.0 - p) for p in (win.mean(), given))
    mutual = before - after.mean()
    assert value[0] == pytest.approx(mutual, abs=2e-3)


@pytest.mark.parametrize("n_components", [1, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_entropy_search_has_the_gradient_of_differences(kernel, n_components):
    post = posterior(KERNELS[kernel], n_components)
    found = candidates(post)
    surface = JointEntropySearch(post, found)
    values, chosen = surface.value_pairs(found, np.array([0, 3]), np.array([1, 8]))
    for value, rows in zip(values, found.rows[chosen], strict=True):
        assert surface.value_and_gradient(rows)[0] == pytest.approx(value, abs=1e-10)
    rows = np.random.default_rng(5).random((2, 2))
    slope = differences(lambda at: surface.value_and_gradient(at)[0], rows)
    np.testing.assert_allclose(surface.value_and_gradient(rows)[1], slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("lookahead", LOOKAHEADS.values())
def test_a_duel_of_an_item_with_itself_gains_nothing(lookahead):
    post = posterior()
    found = candidates(post)
    same = np.arange(len(found.rows))
    values, _ = lookahead(post, found).value_pairs(found, same, same)
    np.testing.assert_allclose(values, 0.0, atol=1e-6)


@pytest.mark.parametrize("lookahead", LOOKAHEADS.values())
def test_it_does_not_matter_which_item_is_first(lookahead):
    post = posterior(n_components=3)
    found = candidates(post, 30)
    first, second = np.triu_indices(30, 1)
    surface = lookahead(post, found)
    values, _ = surface.value_pairs(found, first, second)
    assert lookahead is not KnowledgeGradient or values.min() > -1e-12
    np.testing.assert_allclose(surface.value_pairs(found, second, first)[0], values, atol=1e-12)


def bent(x):
    return -abs(float(x[0]) - 0.37) + 0.3 * np.cos(12.0 * float(x[0]))


def build(name="KG", space=SQUARE, **options):
    fields = STRATEGIES[name]._asdict() | options
    return PreferenceOptimizer(space, **{"random_state": 0} | fields)


def told(made, taste, n):
    for _ in range(n):
        duel = made.ask()
        made.tell(duel, taste(duel[0]) > taste(duel[1]))
    return made


@pytest.mark.parametrize("incumbent", ["joint", "posterior_mean"])
@pytest.mark.parametrize("n_told", [4, 9])
def test_the_duel_asked_is_the_best_of_a_grid_in_one_dimension(n_told, incumbent):
    made = told(build(space=[[0.0, 1.0]], incumbent=incumbent), bent, n_told)
    post, asked = made.posterior_, made.to_unit(made.ask())
    grid = np.linspace(0.0, 1.0, 161)[:, None]
    rows = np.concatenate([asked, grid])
    found = DuelCandidates.draw(post, rows, len(rows), np.random.default_rng(0))
    first, second = np.triu_indices(len(found.rows), 1)
    values, _ = KnowledgeGradient(post, found).value_pairs(found, first, second)
    pairs = values if incumbent == "joint" else values[first == 0]
    assert values[0] > 1e-6
    assert values[0] >= 0.97 * pairs.max()


@pytest.mark.parametrize("incumbent", ["joint", "last_winner"])
def test_the_duel_asked_is_the_best_of_a_small_pool(incumbent):
    pool = np.random.default_rng(0).random((30, 2))
    made = build(space=None, candidates=pool, n_initial=4, incumbent=incumbent)
    told(made, lambda x: -np.sum((x - 0.4) ** 2), 7)
    post, rows, asked = made.posterior_, made.to_unit(pool), made.to_unit(made.ask())
    at = [int(np.argmin(np.abs(rows - row).max(axis=1))) for row in asked]
    pairs = [(i, j) for i in range(30) for j in range(i)]
    if incumbent == "last_winner":
        pairs = [(at[0], j) for j in range(30) if j != at[0]]
    gains = [quadrature_gain_of(post, rows, *pair) for pair in pairs]
    assert quadrature_gain_of(post, rows, *at) == pytest.approx(max(gains), rel=1e-6)


def quadrature_gain_of(post, rows, a, b):
    """The gain by the closed form for one Gaussian, pair by pair."""
    mean, cov = post.mean(rows), post.cov(rows)
    c = cov[:, a] - cov[:, b]
    s = np.sqrt(c[a] - c[b] + 2.0 * post.likelihood.noise_variance)
    u = (mean[a] - mean[b]) / s
    won = stats.norm.cdf(u) * mean + c * stats.norm.pdf(u) / s
    return won.max() + (mean - won).max() - mean.max()


def test_a_large_pool_is_searched():
    pool = np.random.default_rng(0).random((4000, 11))
    made = build(space=None, candidates=pool, n_initial=4)
    told(made, lambda x: -np.sum((x - 0.5) ** 2), 10)
    known = {tuple(row) for row in pool}
    duel = made.ask()
    assert {tuple(row) for row in duel} <= known
    assert not np.array_equal(*duel)


@pytest.mark.slow
@pytest.mark.parametrize("incumbent", ["joint", "last_winner"])
def test_a_mixed_space_is_climbed_and_swapped(incumbent):
    space = {"x": (0.0, 1.0), "n": (0, 12), "kind": ["a", "b", "c"]}

    def taste(item):
        return -abs(item["x"] - 0.3) - 0.1 * abs(item["n"] - 7) + 0.4 * (item["kind"] == "b")

    made = told(build(space=space, n_initial=5, incumbent=incumbent), taste, 16)
    best = made.recommend()
    assert (best["kind"], abs(best["n"] - 7) <= 1) == ("b", True)
    assert abs(best["x"] - 0.3) < 0.15


def test_a_space_of_whole_numbers_has_nothing_to_climb():
    made = told(build(space={"m": (0, 9), "n": (0, 9)}), lambda x: -abs(x["m"] + x["n"] - 7), 14)
    duel = made.ask()
    assert duel[0] != duel[1]
    assert abs(sum(made.recommend().values()) - 7) <= 1


@pytest.mark.parametrize(
    ("incumbent", "acquisition"),
    [
        ("last_winner", "kg"),
        ("posterior_mean", "jes"),
        ("thompson", "kg"),
        ("random", "jes"),
        ("joint", "kg"),
        ("joint", "jes"),
    ],
)
def test_every_incumbent_meets_every_size(incumbent, acquisition):
    made = build(incumbent=incumbent, acquisition=acquisition, n_initial=3)
    told(made, lambda x: -np.sum((x - 0.4) ** 2), 4)
    questions = [made.ask(size=size) for size in (2, 4)]
    for size, items in zip((2, 4), questions, strict=True):
        assert items.shape == (size, 2)
        assert len(np.unique(items, axis=0)) == size
    if incumbent in ("last_winner", "posterior_mean"):
        np.testing.assert_array_equal(questions[0][0], made.incumbent_)


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize(
    ("options", "acquisition"),
    [
        ({"inference": "hallucination"}, "kg"),
        ({"inference": "constant_liar"}, "jes"),
        ({"inference": "laplace"}, "kg"),
        ({"inference": HMC(draws=40, chains=20)}, "jes"),
        ({"inference": "ep", "tie_threshold": 0.1, "order_effect": 0.1}, "kg"),
        ({"inference": "ep", "tie_threshold": 0.1, "order_effect": 0.1}, "jes"),
        ({"inference": "ep", "kernel": Matern(0.5, nu=0.5) + WhiteKernel(1e-3, "fixed")}, "jes"),
    ],
    ids=str,
)
def test_every_engine_and_answer(options, acquisition):
    made = build(acquisition=acquisition, n_initial=2, **options)
    told(made, lambda x: -np.sum((x - 0.4) ** 2), 3)
    first, second = made.ask()
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.parametrize("acquisition", LOOKAHEADS)
def test_names_without_features_are_asked_about(acquisition):
    names = [f"item {k}" for k in range(12)]
    pool = ItemTable.from_names(names)
    made = build(space=None, candidates=pool, acquisition=acquisition, n_initial=4)
    for _ in range(30):
        duel = made.ask()
        made.tell(duel, names.index(duel[0]) > names.index(duel[1]))
    assert names.index(made.recommend()) >= 10


def test_questions_in_parallel_and_skipped_ones_differ():
    made = told(build(n_initial=3), lambda x: -np.sum((x - 0.4) ** 2), 5)
    first = made.ask(n=3)
    assert len({np.sort(duel, axis=0).tobytes() for duel in first}) == 3
    for duel in first:
        made.skip(duel)
    distance = np.abs(np.sort(made.ask(), axis=0) - np.sort(first, axis=1)).max(axis=(1, 2))
    assert distance.min() > 0.01


def test_all_duels_of_a_pool_are_asked_before_it_says_that_none_is_left():
    pool = np.random.default_rng(0).random((4, 2))
    made = build(space=None, candidates=pool, n_initial=1)
    made.tell(made.ask(), 1)
    assert len(made.ask(n=6)) == 6
    with pytest.raises(ValueError, match="No duel is left to ask"):
        made.ask(n=7)


@pytest.mark.filterwarnings("error")
def test_an_item_without_variance_has_numbers_too():
    post = posterior(Linear())
    rows = np.concatenate([np.zeros((1, 2)), np.eye(2)])
    found = DuelCandidates.draw(post, rows, 3, np.random.default_rng(0))
    values, _ = KnowledgeGradient(post, found).value_pairs(found, *np.triu_indices(3, 1))
    assert np.isfinite(values).all()
    for acquisition in ("ei", "log_ei", "pi"):
        surface = acquisition_surface(acquisition, post, rows[1], rows[1:])
        with np.errstate(over="ignore"):  # of a slope, which is not asked for here
            assert np.isfinite(surface.value(rows)).all()
