"""Joint answers in item space as it is for many items, against dense algebra and margin space."""

from dataclasses import replace

import numpy as np
import pytest
from core_support import SPACES, TIGHT_EP, joint_sites, only, random_duels, won
from oracles import incidence
from sklearn.gaussian_process.kernels import RBF, Matern
from tiers_support import thinned

from skpref.duels import Comparisons
from skpref.fitting._model import Model
from skpref.gp import _dense as _conditioning
from skpref.gp import _utilities
from skpref.gp._utilities import ByPrecision, ByRoot, item_solver
from skpref.inference import EP
from skpref.inference._ep import SiteRows, _Sweep
from skpref.likelihoods import Probit

NOISE = 0.3
KERNEL = Matern(0.8, nu=1.5)


@pytest.fixture(params=["few", "many"])
def number(request, monkeypatch):
    """As if there were many items, or as it is."""
    if request.param == "many":
        for module in (_utilities, _conditioning):
            monkeypatch.setattr(module, "LARGE", 2)


def answers(n_items, n_answers, seed=0, counted=False):
    """Duels, choices of three and rankings of four, some of them given several times."""
    rng = np.random.default_rng(seed)
    items = rng.uniform(-1.0, 1.0, (n_items, 2))
    shown = np.array([rng.permutation(n_items)[:4] for _ in range(n_answers)])
    rank = np.array([rng.permutation(4) + 1 for _ in range(n_answers)])
    third = n_answers // 3
    shown[:third, 2:], shown[third : 2 * third, 3:] = -1, -1
    rank[:third, :2] = [1, 2]
    rank[third : 2 * third, :3] = [2, 1, 2]
    rank[shown < 0] = 0
    weight = rng.integers(1, 4, n_answers).astype(float) if counted else None
    return Comparisons.from_ranks(items, shown, rank, weight)


class Dense:
    """All of it as textbooks have it, by matrices of the margins."""

    def __init__(self, K, margins, whole, shift):
        A = incidence(margins.first, margins.second, len(K))
        self.S = A @ K @ A.T
        left = np.eye(len(whole)) + whole @ self.S
        covariance = self.S - self.S @ np.linalg.solve(left, whole @ self.S)
        self.mean, self.covariance = covariance @ shift, covariance
        self.variance = np.diagonal(covariance)
        self.dual = shift - whole @ self.mean
        self.log_det = np.linalg.slogdet(left)[1]
        values, vectors = np.linalg.eigh(whole)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        pulled = A.T @ root
        self.gram = pulled @ np.linalg.solve(np.eye(len(root)) + root.T @ self.S @ root, pulled.T)


def sites(n, seed=1):
    rng = np.random.default_rng(seed)
    precision = np.exp(rng.uniform(-1.0, 2.0, n))
    return precision, precision * rng.normal(size=n)


def made(space, seen, kernel=KERNEL):
    margins = seen.rows.margins
    return SPACES[space](kernel(seen.items), margins, NOISE), margins


@pytest.mark.parametrize(("space", "counted"), [("items", True), ("items", False), ("margins", 0)])
@pytest.mark.parametrize("n_answers", [9, 60])
@pytest.mark.parametrize("strength", [1.0, 1e-9])
def test_marginals_of_joint_answers_agree_with_dense_algebra(
    number, space, counted, n_answers, strength
):
    of, margins = made(space, answers(12, n_answers, counted=counted))
    precision, shift, whole = joint_sites(margins, strength=strength)
    truth, found = Dense(of.K, margins, whole, shift), of.condition(precision, shift)
    close = {"rtol": 1e-9, "atol": 1e-10}
    np.testing.assert_allclose(found.mean, truth.mean, **close)
    np.testing.assert_allclose(found.variance, truth.variance, **close)
    np.testing.assert_allclose(found.dual, truth.dual, **close)
    np.testing.assert_allclose(found.log_det, truth.log_det, **close)
    np.testing.assert_allclose(of.variance, np.diagonal(truth.S), **close)
    for block, covariance in zip(margins.blocks, found.joint, strict=True):
        at = block.margin
        wanted = truth.covariance[at[:, :, None], at[:, None, :]]
        np.testing.assert_allclose(covariance, wanted, **close)
    np.testing.assert_allclose(of.gram(found, precision), truth.gram, **close)
    D = of.gain(found, precision, shift).factor
    np.testing.assert_allclose(D @ D.T, truth.gram, **close)


@pytest.mark.parametrize("space", ["items", "margins"])
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("n_answers", [9, 60])
def test_other_shifts_need_no_factorisation(number, monkeypatch, space, joint, n_answers):
    seen = answers(12, n_answers) if joint else won(*random_duels(0, 12, n_answers))
    of, margins = made(space, seen)
    if joint:
        precision, shift, _ = joint_sites(margins)
        other = joint_sites(margins, seed=2)[1]
    else:
        precision, shift = sites(len(margins.first))
        other = sites(len(margins.first), seed=2)[1]
        precision[::4] = 0.0
    start, wanted = of.condition(precision, shift), of.condition(precision, other)
    if space == "items" or not joint:
        monkeypatch.setattr(of, "condition", None)
    monkeypatch.setattr(of, "_utilities", None, raising=False)
    found = of.condition_on_shift(start, precision, other)
    for name in ("mean", "variance", "dual", "log_det"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-11, err_msg=name
        )


@pytest.mark.parametrize("kernel", [KERNEL, RBF(20.0)])
@pytest.mark.parametrize("counted", [True, False])
def test_strong_sites_of_joint_answers_keep_the_gain_semidefinite(number, kernel, counted):
    """Precisions that leave L − L Σ L no digits."""
    of, margins = made("items", answers(12, 30, counted=counted), kernel)
    precision, shift, whole = joint_sites(margins, strength=1e4)
    gram = of.gram(of.condition(precision, shift), precision)
    wanted = Dense(of.K, margins, whole, shift).gram
    np.testing.assert_allclose(gram, wanted, rtol=0.0, atol=1e-8 * np.abs(wanted).max())
    assert np.linalg.eigvalsh(gram).min() > -1e-12 * np.abs(gram).max()


@pytest.mark.parametrize("order", thinned([False, True]))
@pytest.mark.parametrize(
    ("kernel", "way"), [(RBF([0.7, 1.1]), ByRoot), (Matern([0.7, 1.1], nu=1.5), ByPrecision)]
)
def test_ep_of_many_items_ends_where_that_of_margins_does(monkeypatch, kernel, way, order):
    """300 items, nothing patched but the space."""
    rng = np.random.default_rng(3)
    seen = answers(300, 240, seed=3)
    if order:
        seen = replace(seen, order=rng.permuted(seen.order, axis=1), ordered=True)
    likelihood = Probit(0.2, order_effect=0.2 if order else 0.0)
    model = Model(kernel, likelihood, TIGHT_EP)
    assert isinstance(item_solver(kernel(seen.items)), way)
    found = {}
    for space in ("items", "margins"):
        only(monkeypatch, space)
        found[space] = model.evaluate(seen, eval_gradient=True)
    one, other = found["items"], found["margins"]
    assert one.approximation.converged and other.approximation.converged
    np.testing.assert_allclose(
        one.approximation.sites.log_evidence, other.approximation.sites.log_evidence, rtol=1e-9
    )
    np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-5, atol=1e-6)


def test_means_are_found_by_newtons_method_where_the_precisions_are(monkeypatch):
    """From shifts that are wrong by a tenth: errors square from step to step."""
    seen, steps = won(*random_duels(0, 30, 400)), []
    model = Model(RBF(0.7), Probit(0.05), TIGHT_EP)
    problem, found, _ = model.evaluate(seen)
    shifted = problem.prior.condition_on_shift

    def counted(*given):
        steps.append(given)
        return shifted(*given)

    monkeypatch.setattr(problem.prior, "condition_on_shift", counted)
    rows = SiteRows(problem, TIGHT_EP.tol)
    wrong = _Sweep(rows, rows.sites(found.state["precision"], 0.9 * found.state["shift"]))
    mean, off = found.conditioned.mean, np.sqrt(found.conditioned.variance)
    assert np.max(np.abs(wrong.conditioned.mean - mean) / off) > 0.1
    right = wrong.mean_matching_sites()
    assert len(steps) <= 5
    assert np.max(np.abs(right.conditioned.mean - mean) / off) < 1e-8


def test_means_that_agree_between_factorisations_save_some(monkeypatch):
    """Sweeps of EP, and where they end, without the steps between them."""
    seen = won(*random_duels(0, 30, 400))
    model = Model(RBF(0.7), Probit(0.05), EP())
    found = model.evaluate(seen).approximation
    monkeypatch.setattr(_Sweep, "mean_matching_sites", lambda sweep: sweep)
    plain = model.evaluate(seen).approximation
    assert found.n_iter < plain.n_iter
    np.testing.assert_allclose(found.sites.log_evidence, plain.sites.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(found.conditioned.mean, plain.conditioned.mean, atol=1e-7)
