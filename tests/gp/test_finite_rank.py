"""The prior of finitely many features: the same as the dense priors, at a cost of its own."""

import pickle
import tracemalloc

import numpy as np
import pytest
from core_support import joint_sites, only
from finite_support import LIKELIHOODS, random_answers, random_items, random_kernel
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from tiers_support import thinned

from skpref import PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.gp import DenseItems, DenseMargins, FiniteRank, Prior, _finite_rank, choose_prior
from skpref.inference import EP, HMC, Gibbs, Laplace, Problem
from skpref.kernels import Identity, ItemEffect, OnColumns, Teams
from skpref.likelihoods import Probit

IDS, SLOPES = OnColumns(Identity(), [0]), OnColumns(DotProduct(0.5, "fixed"), [2, 3])
ENGINES = {"ep": EP(tol=1e-11, max_iter=2000), "laplace": Laplace(tol=1e-20)}


@pytest.fixture(params=[False, True], ids=["by margin", "by item"])
def kept(request, monkeypatch):
    """Whether dense columns are kept by item, as they are where margins and columns are many."""
    if request.param:
        monkeypatch.setattr(_finite_rank, "_is_cheaper_by_item", lambda *sizes: True)
    return request.param


def both(kernel, comparisons, likelihood, engine, gradient=True):
    """Priors, runs and posteriors by all items and by the features."""
    for made in (DenseItems, FiniteRank):
        prior = made.from_comparisons(kernel, comparisons, likelihood, gradient)
        problem = Problem(prior, comparisons, likelihood)
        found = engine.run(problem)
        posterior = prior.posterior(found.sites, found.conditioned, likelihood)
        prior.check_digits(posterior, found.conditioned)
        yield problem, found, posterior


def close(found, truth, least=1.0):
    """To 1e-8 of the largest."""
    assert_allclose(
        found, truth, rtol=0.0, atol=1e-8 * max(np.max(np.abs(truth), initial=0), least)
    )


@pytest.mark.parametrize("kind", thinned(LIKELIHOODS))
@pytest.mark.parametrize("name", ENGINES)
def test_evidence_gradient_and_posterior_are_those_of_all_items(name, kind, kept):
    if (name, kind) == ("laplace", "choices"):
        pytest.skip("Laplace takes no choices")
    rng = np.random.default_rng(int(kept))
    kernel, seen = random_kernel(rng), random_answers(rng, kind)
    engine, likelihood = ENGINES[name], LIKELIHOODS[kind]
    dense, own = both(kernel, seen, likelihood, engine)
    assert isinstance(own[0].prior, Prior)
    close(own[1].sites.log_evidence, dense[1].sites.log_evidence)
    truth, slopes = (engine.evidence_gradient(*each[:2]) for each in (dense, own))
    close(slopes.kernel, truth.kernel)
    close(slopes.likelihood, truth.likelihood)
    X = np.concatenate([seen.items[:5], random_items(rng, 5)])
    X[-2:, 0] = 99.0  # of a category that nobody has seen
    close(own[2].mean(X), dense[2].mean(X))
    close(own[2].cov(X), dense[2].cov(X))
    close(own[1].conditioned.variance, dense[1].conditioned.variance)


# Of two members, each with a category and a number; who is -1 is absent.
OF_TEAMS = Teams(
    0.7 * IDS + 0.2 * OnColumns(Identity(), [1]) + 0.3 * OnColumns(DotProduct(0.5), [2]),
    members=[[0, 1, 2], [3, 4, 5]],
    weights=[6, 7],
)


def teams(rng, n, n_players):
    """Some are of one player, some name a player twice."""
    sides = []
    for _ in range(2):
        who = rng.integers(0, n_players, n).astype(float)
        sides += [who, rng.integers(0, 3, n), rng.normal(size=n)]
    sides[3] = np.where(rng.random(n) < 0.3, -1.0, sides[3])
    return np.column_stack([*sides, rng.uniform(0.2, 1.0, n), rng.uniform(0.2, 1.0, n)])


@pytest.mark.parametrize("kind", ["duels", "choices"])
def test_teams_are_those_of_all_items(kind, kept):
    rng = np.random.default_rng(int(kept))
    items = teams(rng, 40, 6)
    if kind == "duels":
        pairs = np.array([rng.choice(40, 2, replace=False) for _ in range(70)])
        seen = Comparisons.from_duels(items, *pairs.T, rng.random(70) < 0.5)
    else:
        sets = [rng.choice(40, 3, replace=False).tolist() for _ in range(30)]
        seen = Comparisons.from_ranks(items, sets, [[1, 2, 2]] * 30)
    dense, own = both(OF_TEAMS, seen, Probit(0.4), ENGINES["ep"])
    close(own[1].sites.log_evidence, dense[1].sites.log_evidence)
    truth, slopes = (ENGINES["ep"].evidence_gradient(*each[:2]) for each in (dense, own))
    close(slopes.kernel, truth.kernel)
    close(own[0].prior.variance, dense[0].prior.variance)
    X = np.concatenate([items[:5], teams(rng, 5, 8)])
    close(own[2].mean(X), dense[2].mean(X))
    close(own[2].cov(X), dense[2].cov(X))


def test_many_matches_of_teams_take_features():
    rng = np.random.default_rng(0)
    items = teams(rng, 3000, 50)
    pairs = rng.permutation(3000).reshape(2, 1500)
    seen = Comparisons.from_duels(items, *pairs, rng.random(1500) < 0.5)
    assert choose_prior(OF_TEAMS, seen, Probit(0.4)) is FiniteRank


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_laplace_has_the_gradients_of_all_items_where_utilities_vary_widely(scale):
    rng = np.random.default_rng(1)
    seen, engine = random_answers(rng, "weights"), ENGINES["laplace"]
    kernel = ConstantKernel(scale) * (IDS + SLOPES)
    each = both(kernel, seen, LIKELIHOODS["weights"], engine)
    truth, slopes = (engine.evidence_gradient(*parts[:2]) for parts in each)
    close(slopes.kernel, truth.kernel)
    close(slopes.likelihood, truth.likelihood)


@pytest.mark.parametrize("kind", ["duels", "choices"])
def test_what_engines_ask_of_a_prior_is_as_of_all_items(kind, kept):
    rng = np.random.default_rng(5)
    kernel, seen, likelihood = random_kernel(rng), random_answers(rng, kind), LIKELIHOODS[kind]
    dense, own = (
        each.from_comparisons(kernel, seen, likelihood) for each in (DenseItems, FiniteRank)
    )
    n = dense.n_margins
    precision, shift, vector = np.exp(rng.normal(size=n)), rng.normal(size=n), rng.normal(size=n)
    single = precision
    if kind == "choices":
        precision, shift, _ = joint_sites(seen.rows.margins)
    close(own.variance, dense.variance)
    close(own.covariance(), dense.covariance())
    root = own.root()
    close(root @ root.T, dense.covariance())
    # Bounds of rounding are of sums of absolute values, by item of more of them.
    features, few = own._features, rng.uniform(size=root.shape[1])
    Z = features.rows(slice(None))
    assert (
        features.absolute_transposed_times(np.abs(shift)) >= np.abs(Z).T @ np.abs(shift) - 1e-12
    ).all()
    assert (features.absolute_times(few) >= np.abs(Z) @ few - 1e-12).all()
    close(own.times(vector), dense.times(vector))
    one, two = (each.condition(precision, shift) for each in (dense, own))
    for name in ("mean", "variance", "dual", "log_det"):
        close(getattr(two, name), getattr(one, name))
    moved, truth = (
        own.condition_on_shift(two, precision, vector),
        dense.condition_on_shift(one, precision, vector),
    )
    close(moved.mean, truth.mean)
    close(own.centre(precision, vector)[1], dense.centre(precision, vector)[1])
    if kind == "duels":
        close(moved.dual, truth.dual)
        several = rng.normal(size=(n, 3))
        close(own.condition(precision, several).mean, dense.condition(precision, several).mean)
    else:
        for ours, theirs in zip(two.joint, one.joint, strict=True):
            close(ours, theirs)
        known = np.where(np.arange(n) < dense.n_shared, single, np.inf)
        given, truth = (each.condition(known, dense.times(shift)) for each in (own, dense))
        close(given.mean, truth.mean)
        close(given.variance, truth.variance)


def test_what_items_share_in_every_answer_costs_nothing():
    rng = np.random.default_rng(0)
    items = random_items(rng, 400)
    items[:, 1] = np.repeat(np.arange(200), 2)  # a prompt that both answers belong to
    pairs = np.arange(400).reshape(200, 2)
    seen = Comparisons.from_duels(items, *pairs.T, rng.random(200) < 0.5)
    prompts = OnColumns(Identity(), [1])
    kernel, likelihood = IDS + prompts + SLOPES + ConstantKernel(2.0), Probit(0.3)
    cost = FiniteRank.cost(kernel, seen, likelihood)
    assert cost.side == 6 + 2
    dense, own = both(kernel, seen, likelihood, ENGINES["ep"])
    close(own[2].mean(items[:9]), dense[2].mean(items[:9]))
    close(own[2].cov(items[:9]), dense[2].cov(items[:9]))
    close(own[1].sites.log_evidence, dense[1].sites.log_evidence)


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e-5, 1.0), (1e5, 1.0), (1e3, 1e-3)])
def test_features_of_any_unit(units, kept):
    rng = np.random.default_rng(1)
    seen = random_answers(rng, "ties")
    items = seen.items * [1.0, 1.0, *units] + [0.0, 0.0, 5.0 * units[0], 0.0]
    object.__setattr__(seen, "items", items)
    kernel = IDS + ConstantKernel(1.0 / units[0] ** 2) * OnColumns(DotProduct(0.1 * units[0]), [2])
    kernel += ConstantKernel(1.0 / units[1] ** 2) * OnColumns(DotProduct(0.1 * units[1]), [3])
    dense, own = both(kernel, seen, LIKELIHOODS["ties"], ENGINES["ep"])
    close(own[1].sites.log_evidence, dense[1].sites.log_evidence)
    close(own[2].mean(items), dense[2].mean(items))
    close(own[2].cov(items), dense[2].cov(items))


@pytest.mark.parametrize("kind", ["ties", "choices"])
def test_features_that_no_answer_tells_apart(kind):
    rng = np.random.default_rng(3)
    seen, likelihood = random_answers(rng, kind), LIKELIHOODS[kind]
    seen.items[:, 1:3] = 2.0  # the same everywhere
    kernel = OnColumns(Identity(), [1]) + ConstantKernel(2.0) * OnColumns(DotProduct(), [2])
    for each in (kernel, ConstantKernel(0.0, "fixed") * SLOPES, ConstantKernel(3.0)):
        dense, own = both(each, seen, likelihood, ENGINES["ep"])
        close(own[1].sites.log_evidence, dense[1].sites.log_evidence)
        truth, slopes = (ENGINES["ep"].evidence_gradient(*run[:2]) for run in (dense, own))
        close(slopes.kernel, truth.kernel)
        close(slopes.likelihood, truth.likelihood)
        close(own[2].mean(seen.items[:3]), np.zeros(3))
        close(own[2].cov(seen.items[:3]), each(seen.items[:3]))


def test_strong_answers_converge_and_keep_their_digits():
    rng = np.random.default_rng(2)
    seen = random_answers(rng, "duels")
    dense, own = both(IDS + SLOPES, seen, Probit(1e-6), EP())
    assert own[1].converged
    assert_allclose(own[1].sites.log_evidence, dense[1].sites.log_evidence, rtol=1e-6)


def contest(n=300, n_ids=6, seed=0):
    """Duels of ids, each shown with controls of its own: X, y."""
    rng = np.random.default_rng(seed)
    ids = np.array([rng.permutation(n_ids)[:2] for _ in range(n)])
    controls = rng.normal(size=(n, 2, 2))
    margin = (0.3 * ids + controls @ [0.8, 0.0]) @ [1.0, -1.0] + 0.7 * rng.normal(size=n)
    return np.concatenate([ids[:, :, None], controls], axis=2), np.sign(margin).astype(int)


KERNEL = ConstantKernel(0.5) * IDS + ConstantKernel(0.2) * OnColumns(
    DotProduct(1.0, "fixed"), [1, 2]
)


def test_it_is_taken_where_it_is_cheaper():
    X, _ = contest()
    seen = Comparisons.from_duels(X.reshape(600, 3), *np.arange(600).reshape(300, 2).T, X[:, 0, 0])
    few, likelihood = seen.part(np.arange(4)), Probit(0.2)
    assert choose_prior(KERNEL, seen, likelihood) is FiniteRank
    assert choose_prior(KERNEL, few, likelihood) is DenseMargins
    names = Comparisons.from_duels(np.arange(9.0)[:, None], *np.array(
        [(i, j) for i in range(9) for j in range(9)]).T, np.ones(81))  # fmt: skip
    assert choose_prior(Identity(), names, likelihood) is DenseItems
    for other in (RBF(1.0), KERNEL + 0.1 * ItemEffect(), None):
        assert choose_prior(other, seen, likelihood) is not FiniteRank
        assert FiniteRank.cost(other, seen, likelihood).multiplications == np.inf
    with pytest.raises(ValueError, match="Use DenseItems"):
        FiniteRank.from_comparisons(RBF(1.0), seen, likelihood)


def fitted(monkeypatch, space, X, y, judges=None, **options):
    with monkeypatch.context() as patched:
        if space is not None:
            only(patched, space)
        model = PairwisePreferenceRegressor(KERNEL, random_state=0, **options)
        return model.fit(X, y, judges=judges)


def test_hyperparameters_are_learned_with_it(monkeypatch):
    X, y = contest(120)
    own, dense = (fitted(monkeypatch, space, X, y) for space in (None, "items"))
    assert len(own.posterior_.anchors) <= 2 * 8 < len(dense.posterior_.anchors)
    assert_allclose(own.kernel_.theta, dense.kernel_.theta, atol=2e-3)
    assert_allclose(own.predict_proba(X), dense.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("engine", [HMC(draws=300, chains=10), Gibbs(draws=100, chains=5)])
def test_it_can_be_sampled(monkeypatch, engine):
    X, y = contest(50)
    options = {"inference": engine, "optimizer": None, "noise_variance": 0.2}
    own, dense = (fitted(monkeypatch, space, X, y, **options) for space in (None, "items"))
    asked = X[:6, 0]
    spread = np.sqrt(np.diagonal(dense.posterior_.cov(asked)))
    assert np.all(np.abs(own.posterior_.mean(asked) - dense.posterior_.mean(asked)) < 0.4 * spread)
    assert_allclose(np.sqrt(np.diagonal(own.posterior_.cov(asked))), spread, rtol=0.3)


def test_judges_are_weighed_with_it(monkeypatch):
    X, y = contest(120)
    judges = np.random.default_rng(1).integers(4, size=120)

    options = {"optimizer": None, "noise_variance": 0.2}
    own, dense = (fitted(monkeypatch, space, X, y, judges, **options) for space in (None, "items"))
    asked = X[:10, 0]
    assert_allclose(own.posterior_.mean(asked), dense.posterior_.mean(asked), atol=1e-6)
    assert_allclose(own.posterior_.var(asked), dense.posterior_.var(asked), atol=1e-6)


def test_memory_is_linear_in_the_answers():
    n, m = 20_000, 300
    rng = np.random.default_rng(0)
    ids, controls = rng.integers(m, size=2 * n), rng.normal(size=(2 * n, 2))
    items = np.column_stack([ids, controls])
    ends = np.arange(2 * n).reshape(n, 2).T
    seen = Comparisons.from_duels(items, *ends, rng.random(n) < 0.5)
    likelihood = Probit(0.3)
    seen.rows.margins  # noqa: B018 (counted before memory is looked at)
    tracemalloc.start()
    prior = FiniteRank.from_comparisons(KERNEL, seen, likelihood)
    found = prior.condition(np.ones(n), np.ones(n))
    prior.posterior(
        type("Sites", (), {"precision": np.ones(n), "shift": np.ones(n)}), found, likelihood
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * n * m  # an array of all margins and features
    assert peak < 2.0 * FiniteRank.cost(KERNEL, seen, likelihood).n_bytes


def test_what_is_found_of_answers_is_kept_but_not_pickled():
    rng = np.random.default_rng(0)
    seen = random_answers(rng, "duels")
    one, two = (
        FiniteRank.from_comparisons(each, seen, Probit(0.3))
        for each in (IDS + SLOPES, SLOPES + 3.0 * IDS)
    )
    assert one._features is two._features
    again = pickle.loads(pickle.dumps(seen))
    assert again == seen
    assert "kept" not in vars(again)


def test_embeddings_are_kept_by_item(monkeypatch):
    """Far from zero and wide, with and without effects of ids; equal columns cost nothing."""
    rng = np.random.default_rng(0)
    items = np.column_stack([np.arange(30) % 7, np.full(30, 3.0), rng.normal(size=(30, 18)) + 1e4])
    first, second = rng.integers(30, size=(2, 90))
    seen = Comparisons.from_duels(items, first, second, rng.random(90) < 0.5)
    linear = ConstantKernel(0.05) * OnColumns(DotProduct(0.0, "fixed"), list(range(1, 20)))
    for kernel in (linear, linear + IDS):
        found = []
        for by_item in (True, False):
            monkeypatch.setattr(
                _finite_rank, "_is_cheaper_by_item", lambda *_, is_so=by_item: is_so
            )
            fresh = seen.part(np.arange(90))
            _, own = both(kernel, fresh, LIKELIHOODS["duels"], ENGINES["ep"])
            found.append((own, own[0].prior._features))
        assert [type(each._dense).__name__ for _, each in found] == ["_OfItems", "_OfMargins"]
        assert found[0][1].rank == found[1][1].rank == 18 + (7 if kernel == linear + IDS else 0)
        (one, _), (two, _) = found
        close(one[1].sites.log_evidence, two[1].sites.log_evidence)
        close(one[2].cov(items[:9]), two[2].cov(items[:9]))
        slopes = [ENGINES["ep"].evidence_gradient(*each[:2]).kernel for each in (one, two)]
        close(slopes[0], slopes[1])
