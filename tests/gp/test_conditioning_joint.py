"""Joint answers in item space as it is for many items, against dense algebra and margin space."""

from dataclasses import replace

import numpy as np
import pytest
from core_support import SPACES, TIGHT_EP, only, random_duels, won
from oracles import incidence
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, Matern
from tiers_support import thinned

from skpref.duels import Comparisons
from skpref.fitting._model import Model
from skpref.gp import _dense as _conditioning
from skpref.gp import _utilities
from skpref.gp._utilities import ByPrecision, ByRoot, item_solver
from skpref.inference import EP
from skpref.inference._ep import _Sweep
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
    """All of it as textbooks have it: every time that an answer was given has rows of its own."""

    def __init__(self, K, margins, tau, nu, variance=NOISE):
        times = np.ones(len(margins.first), dtype=int)
        for block in margins.blocks:
            times[block.margin] = block.counts[:, None].astype(int)
        self.first_copy = np.concatenate([[0], np.cumsum(times)[:-1]])
        self.of = np.repeat(np.arange(len(times)), times)
        self.A = incidence(margins.first, margins.second, len(K))[self.of]
        pattern = np.zeros((len(self.of), len(self.of)))
        for block in margins.blocks:
            for margin, shared, count in zip(
                block.margin, block.pattern, block.counts, strict=True
            ):
                for copy in range(int(count)):
                    at = self.first_copy[margin] + copy
                    pattern[np.ix_(at, at)] = shared
        self.tau, self.nu = tau[self.of], nu[self.of]
        self.S = self.A @ K @ self.A.T + variance * pattern
        self.total = self.S + np.diag(1.0 / self.tau)
        self.R = np.linalg.inv(self.total)
        self.target = self.nu / self.tau
        self.all_dual = self.R @ self.target
        self.mean = (self.S @ self.all_dual)[self.first_copy]
        self.variance = np.diagonal(self.S - self.S @ self.R @ self.S)[self.first_copy]
        self.dual = np.bincount(self.of, self.all_dual)
        self.log_det = np.linalg.slogdet(np.eye(len(self.S)) + self.S * self.tau)[1]
        self.gram = self.A.T @ self.R @ self.A

    @property
    def evidence(self):
        return multivariate_normal(cov=self.total).logpdf(self.target)


def sites(n, seed=1):
    rng = np.random.default_rng(seed)
    precision = np.exp(rng.uniform(-1.0, 2.0, n))
    return precision, precision * rng.normal(size=n)


def made(space, seen, kernel=KERNEL):
    margins = seen.rows.margins
    return SPACES[space](kernel(seen.items), margins, NOISE), margins


@pytest.mark.parametrize(("space", "counted"), [("items", True), ("items", False), ("margins", 0)])
@pytest.mark.parametrize("n_answers", [9, 60])
def test_marginals_of_joint_answers_agree_with_dense_algebra(number, space, counted, n_answers):
    of, margins = made(space, answers(12, n_answers, counted=counted))
    precision, shift = sites(len(margins.first))
    truth, found = Dense(of.K, margins, precision, shift), of.condition(precision, shift)
    close = {"rtol": 1e-9, "atol": 1e-10}
    np.testing.assert_allclose(found.mean, truth.mean, **close)
    np.testing.assert_allclose(found.variance, truth.variance, **close)
    np.testing.assert_allclose(found.dual, truth.dual, **close)
    np.testing.assert_allclose(found.log_det, truth.log_det, **close)
    prior = np.diagonal(truth.S)[truth.first_copy]
    np.testing.assert_allclose(of.variance, prior, **close)
    np.testing.assert_allclose(of.gram(found, precision), truth.gram, **close)
    D = of.gain(found, precision, shift).factor
    np.testing.assert_allclose(D @ D.T, truth.gram, **close)


@pytest.mark.parametrize(("space", "counted"), [("items", True), ("items", False), ("margins", 0)])
def test_slope_of_the_noise_is_that_of_the_sites_evidence(number, space, counted):
    of, margins = made(space, answers(12, 20, counted=counted))
    precision, shift = sites(len(margins.first))
    step = 1e-5
    above, below = (
        Dense(of.K, margins, precision, shift, NOISE + side).evidence for side in (step, -step)
    )
    found = of.noise_slope(of.condition(precision, shift), precision)
    assert found == pytest.approx((above - below) / (2.0 * step), rel=1e-7)


@pytest.mark.parametrize("space", ["items", "margins"])
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("n_answers", [9, 60])
def test_other_shifts_need_no_factorisation(number, monkeypatch, space, joint, n_answers):
    seen = answers(12, n_answers) if joint else won(*random_duels(0, 12, n_answers))
    of, margins = made(space, seen)
    precision, shift = sites(len(margins.first))
    other = sites(len(margins.first), seed=2)[1]
    if not joint:
        precision[::4] = 0.0
    start, wanted = of.condition(precision, shift), of.condition(precision, other)
    monkeypatch.setattr(of, "condition", None)
    monkeypatch.setattr(of, "_utilities", None, raising=False)
    found = of.shifted(start, precision, other)
    for name in ("mean", "variance", "dual", "log_det"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-11, err_msg=name
        )


@pytest.mark.parametrize("kernel", [KERNEL, RBF(20.0)])
@pytest.mark.parametrize("counted", [True, False])
def test_strong_sites_of_joint_answers_keep_the_gain_semidefinite(number, kernel, counted):
    """Precisions that leave L − L Σ L no digits."""
    of, margins = made("items", answers(12, 30, counted=counted), kernel)
    precision, shift = sites(len(margins.first))
    precision *= 1e7
    gram = of.gram(of.condition(precision, shift), precision)
    wanted = Dense(of.K, margins, precision, shift).gram
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
    shifted = problem.prior.shifted

    def counted(*given):
        steps.append(given)
        return shifted(*given)

    monkeypatch.setattr(problem.prior, "shifted", counted)
    wrong = _Sweep(problem, found.state["precision"], 0.9 * found.state["shift"], None)
    mean, off = found.conditioned.mean, np.sqrt(found.conditioned.variance)
    assert np.max(np.abs(wrong.conditioned.mean - mean) / off) > 0.1
    right = wrong.centred(problem)
    assert len(steps) <= 5
    assert np.max(np.abs(right.conditioned.mean - mean) / off) < 1e-8


def test_means_that_agree_between_factorisations_save_some(monkeypatch):
    """Sweeps of EP, and where they end, without the steps between them."""
    seen = won(*random_duels(0, 30, 400))
    model = Model(RBF(0.7), Probit(0.05), EP())
    found = model.evaluate(seen).approximation
    monkeypatch.setattr(_Sweep, "centred", lambda sweep, problem: sweep)
    plain = model.evaluate(seen).approximation
    assert found.n_iter < plain.n_iter
    np.testing.assert_allclose(found.sites.log_evidence, plain.sites.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(found.conditioned.mean, plain.conditioned.mean, atol=1e-7)
