"""Memory is asked for before it is taken."""

import subprocess
import sys
import tracemalloc
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
from core_support import solve, won
from skew_support import fitted, smooth_duels
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.fitting import _forecast
from skpref.gp import DenseMargins, PriorRule
from skpref.inference import EP, HMC, SVI, Gibbs, Hallucination, _memory
from skpref.inference import _sampling as _sampled

LIMITED = """
import resource
import numpy as np
from skpref import PairwisePreferenceRegressor
from skpref.fitting import _forecast
from skpref.inference import HMC
X = np.random.default_rng(0).random((5000, 2, 3))
_forecast._POINTS = 20
model = PairwisePreferenceRegressor(inference=HMC(), optimizer=None, random_state=0)
model.fit(X[:5])
before = dict(vars(model)), model.predict(X[0])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 4 * 10**8,) * 2)
try:
    model.fit(X)
except MemoryError as error:
    print(error)
same = all(vars(model)[name] is value for name, value in before[0].items())
print(same, np.array_equal(model.predict(X[0]), before[1]))
try:
    model.set_params(inference="ep").fit(X[:1500])
except MemoryError as error:
    print(error)
print(type(model.set_params(inference="auto").fit(X[:1500]).engine_).__name__)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_a_fit_under_a_limit_ends_with_the_estimator_unchanged():
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIMITED],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=120,
    )
    sampled, unchanged, exact, taken = found.stdout.splitlines() or [found.stderr] * 4
    assert "5000 answers 1000 times takes about" in sampled and "inference='ep'" in sampled
    assert unchanged == "True True"
    assert "Exact inference for 1500 distinct comparisons among 3000 items takes" in exact
    assert "0.4 GB are available. Use inference=SVI(n_inducing=500)" in exact
    assert taken == "SVI"


@pytest.mark.parametrize("engine", [HMC(), Gibbs(), Hallucination()], ids=["hmc", "gibbs", "one"])
def test_what_does_not_fit_is_refused_before_any_work(engine, monkeypatch):
    monkeypatch.setattr(EP, "run", None)
    monkeypatch.setattr(_memory, "available_bytes", lambda: 1e5)
    with pytest.raises(MemoryError, match=r"100 answers.*0\.0001 GB.*inference='ep'"):
        fitted(smooth_duels(100), engine)


def test_margins_are_taken_where_walls_do_not_fit(monkeypatch):
    X = np.repeat(smooth_duels(10), 8, axis=0)
    assert fitted(X, HMC(draws=100)).diagnostics_.method == "walls"
    for module in ("_memory", "_sampling"):
        monkeypatch.setattr(f"skpref.inference.{module}.available_bytes", lambda: 6e5)
    assert fitted(X, HMC(draws=100)).diagnostics_.method == "margins"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize(
    ("engine", "n_duels", "repeats"),
    [
        (HMC(draws=40, method="walls"), 600, 1),
        (HMC(draws=2000, method="walls"), 50, 1),
        (HMC(draws=2000, method="margins"), 50, 1),
        (HMC(draws=400, method="margins"), 5, 100),
        (Gibbs(draws=40, burn_in=1, thin=1), 600, 1),
        (Gibbs(draws=2000, burn_in=1, thin=2), 50, 1),
        (Hallucination(), 600, 1),
    ],
)
def test_the_estimate_bounds_what_is_taken(engine, n_duels, repeats, monkeypatch):
    asked = []
    monkeypatch.setattr(_sampled, "check_memory", lambda n_bytes, *_: asked.append(n_bytes))
    items = smooth_duels(n_duels).reshape(-1, 3)
    first = np.repeat(2 * np.arange(n_duels), repeats)
    problem, near = solve(EP(), RBF(0.5), won(items, first, first + 1), 0.01)[1:3]
    tracemalloc.start()
    engine.run(problem, None, np.random.default_rng(0), near)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.25 * asked[0] < peak < 1.1 * asked[0]


def test_the_limit_is_that_of_the_process(monkeypatch):
    resource = pytest.importorskip("resource")
    whole = _memory.available_bytes()
    assert whole > 1e8
    for others in (
        "_physical_bytes",
        "_free_bytes",
        "_control_group_bytes",
    ):  # of a machine without limits
        none = {"_control_group_bytes": lambda *_: []}.get(others, lambda *_: np.inf)
        monkeypatch.setattr(_memory, others, none)
    monkeypatch.setattr(_memory, "_address_space", lambda: 3e8)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (int(5e8), -1))
    assert _memory.available_bytes() == 2e8
    monkeypatch.setattr(resource, "getrlimit", lambda which: (int(2e8), -1))
    assert _memory.available_bytes() == 0.0


@pytest.mark.parametrize(
    ("line", "mount", "names"),
    [
        ("0::/jobs/fit", "", ("memory.max", "memory.current", "inactive_file")),
        (
            "4:cpu,memory:/jobs/fit",
            "memory",
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ),
    ],
    ids=["version 2", "version 1"],
)
def test_control_groups_set_limits_above_each_other(line, mount, names, tmp_path):
    group = tmp_path / mount / "jobs" / "fit"
    group.mkdir(parents=True)

    def limited(where, most, used, kept):
        (where / names[0]).write_text(f"{most}\n")
        (where / names[1]).write_text(f"{used}\n")
        (where / "memory.stat").write_text(f"anon 5\n{names[2]} {kept}\n")

    of_process = tmp_path / "cgroup"
    of_process.write_text(f"9:cpuset:/\n{line}\n")

    def left():
        return list(_memory._control_group_bytes(of_process, tmp_path))

    assert left() == []
    limited(group, 10**9, 4 * 10**8, 10**8)  # what is kept of files makes room
    assert left() == [7e8]
    limited(group.parent, 6 * 10**8, 10**9, 0)
    assert left() == [7e8, 0.0]
    limited(group.parent, "max", 10**9, 0)
    assert left() == [7e8]


def test_memory_that_nobody_uses_counts(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 900 kB\nMemAvailable:  300 kB\nHugePages: 0\n")
    assert _memory._free_bytes(tmp_path / "meminfo") == 300 * 1024
    assert _memory._free_bytes(tmp_path / "none") == np.inf


@pytest.mark.parametrize("inference", ["ep", "laplace"])
@pytest.mark.parametrize(("n_items", "n_duels"), [(500, 1800), (500, 450)])
def test_the_estimate_of_an_exact_fit_bounds_what_it_takes(inference, n_items, n_duels):
    rng = np.random.default_rng(0)
    items, first = rng.random((n_items, 3)), rng.integers(n_items, size=n_duels)
    second = (first + rng.integers(1, n_items, size=n_duels)) % n_items
    model = PairwisePreferenceRegressor(
        RBF(np.ones(3)), inference=inference, optimizer=None, noise_variance=1.0
    ).fit(items[np.stack([first, second], axis=1)])
    asked = PriorRule().cost(model.kernel_, model.comparisons_, model.likelihood_).n_bytes
    tracemalloc.start()
    model.log_marginal_likelihood(eval_gradient=True)
    _ = model.fit(items[np.stack([first, second], axis=1)]).posterior_
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.4 * asked < peak < 1.1 * asked


def test_where_exact_inference_does_not_fit_auto_takes_points(monkeypatch):
    monkeypatch.setattr(_forecast, "_POINTS", 5)
    monkeypatch.setattr(_memory, "available_bytes", lambda: 1.2e5)
    X = smooth_duels(60)
    model = PairwisePreferenceRegressor(RBF(0.5), optimizer=None, random_state=0)
    with pytest.warns(UserWarning, match=r"GB of memory, which are not available, for 60 distinct"):
        model.fit(X)
    assert isinstance(model.engine_, SVI)
    sets = np.random.default_rng(0).random((20, 3, 2))  # which points do not take
    with pytest.raises(MemoryError, match=r"Exact inference for .*SVI\(n_inducing=500\)"):
        model.fit(sets, np.zeros(20, dtype=int))
    monkeypatch.setattr(_memory, "available_bytes", lambda: 1e9)
    assert isinstance(model.fit(X).engine_, EP)


def test_the_estimator_tells_the_remedy():
    model = PairwisePreferenceRegressor(inference=HMC(draws=10**10), optimizer=None)
    with pytest.raises(MemoryError, match="fewer draws"):
        model.fit(smooth_duels(50))
    assert not hasattr(model, "posterior_")


ASKING = """
import resource, sys
import numpy as np
from skpref import HallucinationBelieverOptimizer
made = HallucinationBelieverOptimizer([[0.0, 1.0]] * 2, journal=sys.argv[1], random_state=0)
rng = np.random.default_rng(0)
for _ in range(1200):
    made.tell(rng.random((2, 2)), 1)
made.skip(rng.random((2, 2)))
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 5 * 10**7, resource.RLIM_INFINITY))
try:
    made.ask()
except (MemoryError, ValueError) as error:
    print(type(error).__name__)
print(made.n_told_, len(made.pending_))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
again = HallucinationBelieverOptimizer([[0.0, 1.0]] * 2, journal=sys.argv[1], random_state=0)
print(again.n_told_, len(again.pending_))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_a_question_under_a_limit_leaves_the_run_as_it_was(tmp_path):
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ASKING, str(tmp_path / "run.db")],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=120,
    )
    lines = found.stdout.splitlines()
    assert lines[:1] in (["MemoryError"], ["ValueError"]), found.stderr
    assert lines[1:] == ["1200 0", "1200 0"]


@pytest.mark.parametrize(
    ("engine", "options", "said"),
    [
        (SVI(50), {"optimizer": None}, "50 inducing points for 100 distinct .* about .*n_inducing"),
        (SVI(2), {}, "Learning hyperparameters from 100 .* takes about .* n_learning_answers"),
    ],
    ids=["points", "learning"],
)
def test_points_and_what_is_learned_on_are_asked_for(engine, options, said, monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 3e5)
    model = PairwisePreferenceRegressor(inference=engine, random_state=0, **options)
    with pytest.raises(MemoryError, match=said):
        model.fit(smooth_duels(100), np.ones(100))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "batch"), [(1000, 100, None), (5000, 300, None), (5000, 300, 500)]
)
def test_points_hold_about_what_they_ask_for(n, m, batch, monkeypatch):
    asked = []
    monkeypatch.setattr("skpref.inference._svi.check_memory", lambda n, *_: asked.append(n))
    X = np.random.default_rng(0).random((n, 2, 3))
    model = PairwisePreferenceRegressor(
        inference=SVI(m, batch_size=batch, max_iter=2), optimizer=None, random_state=0
    )
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two passes are few
        model.fit(X, X[:, 0, 0] > X[:, 1, 0])
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.6 * max(asked) < held < 1.3 * max(asked)


@pytest.mark.parametrize("tol", [1e-4, 1e-30])  # the last sweep is the best, and is not
def test_ep_holds_one_factorisation_at_a_time(monkeypatch, tol):
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 2, 1)), rng.integers(0, 2, 30)
    roots, held = [], []
    condition = DenseMargins.condition

    def count_roots(prior, *sites):
        held.append(sum(root() is not None for root in roots))
        result = condition(prior, *sites)
        roots.append(weakref.ref(result.root))
        return result

    monkeypatch.setattr(DenseMargins, "condition", count_roots)
    engine = EP(damping=0.5, tol=tol)
    model = PairwisePreferenceRegressor(RBF(0.3), inference=engine, optimizer=None)
    proba = model.fit(X, y).predict_proba(X)
    assert len(held) > 3 and max(held[:-1]) == 0
    plain = PairwisePreferenceRegressor(RBF(0.3), inference="ep", optimizer=None)
    np.testing.assert_allclose(proba, plain.fit(X, y).predict_proba(X), atol=1e-4)
