"""Warnings name the line of the caller, whatever lies between it and the package."""

import inspect
import threading
import warnings

import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from skpref._utils._warnings import warn
from skpref.inference import EP
from skpref.optimize import HallucinationBelieverOptimizer, PreferenceOptimizer


def inside_the_package(source, **names):
    """A function whose frames belong to the package."""
    space = {"__name__": "skpref.somewhere", "warn": warn, **names}
    exec(source, space)
    return space["function"]


def here():
    return inspect.currentframe().f_back.f_lineno


def caught(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        line = call()
    return found[0], line


def test_the_line_outside_the_package_is_named():
    function = inside_the_package("def function():\n    helper()\ndef helper():\n    warn('so')\n")
    found, line = caught(lambda: (function(), here())[1])
    assert (found.filename, found.lineno) == (__file__, line)
    assert found.category is UserWarning
    assert str(found.message) == "so"


def test_libraries_in_between_are_passed():
    source = """
def function():
    minimize(objective, 0.0, method="Nelder-Mead", options={"maxiter": 1})
def objective(x):
    warn("so", RuntimeWarning)
    return x[0] ** 2
"""
    function = inside_the_package(source, minimize=minimize)
    found, line = caught(lambda: (function(), here())[1])
    assert (found.filename, found.lineno) == (__file__, line)
    assert found.category is RuntimeWarning


def test_a_line_warns_once_by_default():
    function = inside_the_package("def function():\n    warn('again')\n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            function()
        function()
    assert len(found) == 2


def test_threads_without_a_line_of_the_caller_warn_all_the_same():
    function = inside_the_package("def function():\n    warn('from a thread')\n")

    def work():
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()

    found, _ = caught(work)
    assert str(found.message) == "from a thread"


def test_a_space_that_may_mean_another_names_the_line_of_its_user():
    with pytest.warns(UserWarning, match="is read as the integers 0, 1") as found:
        HallucinationBelieverOptimizer({"n": (0, 1)})
    assert [each.filename for each in found] == [__file__]


@pytest.mark.parametrize("by_run", [False, True])
@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_an_optimizer_names_the_line_of_its_user(by_run):
    made = PreferenceOptimizer([[0.0, 1.0]], inference=EP(max_iter=1), n_initial=1, random_state=0)
    with pytest.warns(ConvergenceWarning) as found:
        if by_run:
            made.run(lambda first, second: first[0] > second[0], 2)
        else:
            made.tell(made.ask(), 1)
            made.ask()
    stopped = [each for each in found if "EP stopped" in str(each.message)]
    assert stopped
    assert {each.filename for each in stopped} == {__file__}
