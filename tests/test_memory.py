"""Memory is asked for before it is taken."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from core_support import solve, won
from skew_support import fitted, smooth_duels
from sklearn.gaussian_process.kernels import RBF

from skpref import PairwisePreferenceRegressor
from skpref.inference import EP, HMC, Gibbs, Hallucination, _memory, _sampled

LIMITED = """
import resource
import numpy as np
from skpref import PairwisePreferenceRegressor
from skpref.inference import HMC
X = np.random.default_rng(0).random((5000, 2, 3))
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
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_a_fit_under_a_limit_ends_with_the_estimator_unchanged():
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIMITED],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        timeout=120,
    )
    assert "5000 answers 1000 times takes about" in found.stdout, found.stderr
    assert "inference='ep'" in found.stdout
    assert found.stdout.splitlines()[-1] == "True True"


@pytest.mark.parametrize("engine", [HMC(), Gibbs(), Hallucination()], ids=["hmc", "gibbs", "one"])
def test_what_does_not_fit_is_refused_before_any_work(engine, monkeypatch):
    monkeypatch.setattr(EP, "run", None)
    monkeypatch.setattr(_memory, "available", lambda: 1e5)
    with pytest.raises(MemoryError, match=r"100 answers.*0\.0001 GB.*inference='ep'"):
        fitted(smooth_duels(100), engine)


def test_margins_are_taken_where_walls_do_not_fit(monkeypatch):
    X = np.repeat(smooth_duels(10), 8, axis=0)
    assert fitted(X, HMC(draws=100)).diagnostics_.method == "walls"
    for module in ("_memory", "_skew"):
        monkeypatch.setattr(f"skpref.inference.{module}.available", lambda: 6e5)
    assert fitted(X, HMC(draws=100)).diagnostics_.method == "margins"


@pytest.mark.filterwarnings("ignore:The chains have not mixed")
@pytest.mark.parametrize(
    ("engine", "n_duels", "repeats"),
    [
        (HMC(draws=40, method="walls"), 600, 1),
        (HMC(draws=2000, method="walls"), 100, 1),
        (HMC(draws=2000, method="margins"), 100, 1),
        (HMC(draws=400, method="margins"), 10, 100),
        (Gibbs(draws=40, burn_in=1, thin=1), 600, 1),
        (Gibbs(draws=2000, burn_in=1, thin=2), 100, 1),
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
    whole = _memory.available()
    assert whole > 1e8
    monkeypatch.setattr(_memory, "_address_space", lambda: 3e8)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (int(5e8), -1))
    assert _memory.available() == 2e8
    monkeypatch.setattr(resource, "getrlimit", lambda which: (int(2e8), -1))
    assert _memory.available() == 0.0


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
        cwd=Path(__file__).parent.parent,
        timeout=120,
    )
    lines = found.stdout.splitlines()
    assert lines[:1] in (["MemoryError"], ["ValueError"]), found.stderr
    assert lines[1:] == ["1200 0", "1200 0"]
