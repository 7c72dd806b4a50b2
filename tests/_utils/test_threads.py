"""Small problems run on one BLAS thread, and leave the number of threads as it was."""

import contextlib
import dis
import gc
import os
import signal
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_info, threadpool_limits

from skpref import PairwisePreferenceRegressor
from skpref._utils import _threads
from skpref._utils._threads import blas_threads
from skpref.gp import place
from skpref.inference import HMC
from skpref.inference import _sampling as _skew
from skpref.optimize import HallucinationBelieverOptimizer
from skpref.samplers import HMCSampler


def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip(f"this BLAS does not take two threads: {threadpool_info()}")
        yield
        assert threads() == {2}


@pytest.mark.parametrize(("n_duels", "expected"), [(30, 1), (150, 2)])
def test_a_fit_shares_only_large_matrices_out(n_duels, expected, monkeypatch):
    monkeypatch.setattr(_threads, "SMALL", 150)
    seen = set()

    class Watching(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            if len(X) == 2 * n_duels:
                seen.update(threads())
            return super().__call__(X, Y, eval_gradient)

    X = np.random.default_rng(0).random((n_duels, 2, 3))
    options = {"inference": "laplace", "optimizer": None, "noise_variance": 0.1}
    PairwisePreferenceRegressor(Watching(), **options).fit(X)
    assert seen == {expected}
    assert threads() == {2}


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_a_small_fit_has_the_same_bits_with_one_thread_and_with_two(inference):
    rng = np.random.default_rng(0)
    items, ends = rng.random((500, 3)), rng.integers(500, size=(450, 2))
    model = PairwisePreferenceRegressor(RBF(0.5), inference=inference, optimizer=None)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            posterior = model.fit(items[ends[ends[:, 0] != ends[:, 1]]]).posterior_
        found.append((posterior.weights, posterior.factor))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_chains_of_many_repeated_duels_share_their_matrices_out(monkeypatch):
    # Two items, but by walls a covariance of the margins of all single duels.
    seen = []

    class Watched(HMCSampler):
        def draw(self, *args, **options):
            seen.append(threads())
            return super().draw(*args, **options)

    monkeypatch.setattr(_skew, "HMCSampler", Watched)
    monkeypatch.setattr(_threads, "SMALL", 150)
    X = np.array([[[0.0], [1.0]]])
    for n_duels in (20, 150):
        model = PairwisePreferenceRegressor(
            RBF(), inference=HMC(draws=4, method="walls"), optimizer=None
        )
        model.set_params(noise_variance=1.0).fit(np.repeat(X, n_duels, axis=0))
    assert seen[0] == {1}
    assert seen[-1] == {2}


def test_a_failing_fit_gives_the_threads_back():
    class Broken(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            if len(X) > 3:
                raise RuntimeError("broken")
            return super().__call__(X, Y, eval_gradient)

    X = np.random.default_rng(0).random((9, 2, 2))
    with pytest.raises(RuntimeError, match="broken"):
        PairwisePreferenceRegressor(Broken(), optimizer=None).fit(X)
    assert threads() == {2}


def test_questions_are_found_with_one_thread():
    seen = set()

    def acquisition(posterior, X, incumbent):
        seen.update(threads())
        return posterior.mean(X)

    optimizer = HallucinationBelieverOptimizer(
        [[0.0, 1.0]], acquisition=acquisition, random_state=0, n_initial=2
    )
    optimizer.run(lambda a, b: a[0] > b[0], 4)
    assert seen == {1}
    assert threads() == {2}


def test_fits_that_overlap_leave_the_threads_as_they_were():
    # As in two Python threads: whoever leaves last must not restore what it found, one thread.
    first, second = blas_threads(10), blas_threads(10)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads() == {1}
    second.__exit__(None, None, None)
    assert threads() == {2}


def after_calls(code):
    """Offsets of the instructions that follow a call."""
    steps = list(dis.get_instructions(code))
    return {then.offset for step, then in pairwise(steps) if step.opname.startswith("CALL")}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_anywhere_gives_the_threads_back():
    """Ctrl-C at the n-th place where Python looks for it, for every n there is.

    It looks when a function is entered and after each call.
    """
    files = {_threads.__file__, contextlib.__file__}

    def interrupt_at(n):
        seen = 0

        def trace(frame, event, arg):
            nonlocal seen
            if frame.f_code.co_filename not in files:
                return None
            frame.f_trace_opcodes = True
            if event == "call" or (
                event == "opcode" and frame.f_lasti in after_calls(frame.f_code)
            ):
                seen += 1
                if seen == n:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            with blas_threads(10):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        return seen

    with blas_threads(10):
        pass  # what is found out once and kept
    n, met = 0, 0
    gc.freeze()  # what is there already need not be looked through each time
    while met >= n:
        n += 1
        met = interrupt_at(n)
        gc.collect()
        assert threads() == {2}, f"after an interrupt at instruction {n}"
        with blas_threads(10):
            assert threads() == {1}
    gc.unfreeze()
    assert n > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_while_another_thread_fits_goes_on():
    inside, enough = threading.Event(), threading.Event()

    def fitting():
        with blas_threads(10):
            inside.set()
            enough.wait()

    other = threading.Thread(target=fitting)
    other.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        with blas_threads(10), blas_threads(10):
            os._exit(0 if threads() == {1} else 1)
    _, status = os.waitpid(child, 0)
    enough.set()
    other.join()
    assert status == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_after_threads_of_openmp_places_inducing_points():
    items = np.random.default_rng(0).random((2000, 3))
    with threadpool_limits(2, user_api="openmp"):
        KMeans(5, n_init=1).fit(items)
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # it waits for ever for threads that only its parent has
            place(items, RBF(), 10, 0)
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_the_evidence_is_computed_with_one_thread():
    seen = set()

    class Watching(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            seen.update(threads())
            return super().__call__(X, Y, eval_gradient)

    X = np.random.default_rng(0).random((9, 2, 2))
    model = PairwisePreferenceRegressor(Watching(), optimizer=None).fit(X)
    seen.clear()
    model.log_marginal_likelihood(eval_gradient=True)
    assert seen == {1}
