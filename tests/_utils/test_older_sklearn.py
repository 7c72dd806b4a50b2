"""A fit and a run of questions where scikit-learn has no callbacks, as before 1.9."""

import contextlib
import io
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from progress_support import needs_callbacks

import skpref._utils._older_sklearn as module

FITS = """
import sys
import sklearn.inspection, sklearn.cluster, sklearn.gaussian_process, sklearn.datasets
if {blocked}:  # once scikit-learn has what it needs of it itself
    sys.modules["sklearn.callback"] = None
import numpy as np
from skpref import PairwisePreferenceRegressor
from skpref.optimize import PreferenceOptimizer

X = np.random.default_rng(0).normal(size=(30, 2, 2))
model = PairwisePreferenceRegressor(verbose=2).fit(X, X[:, 0, 0] > X[:, 1, 0])
print(model.predict(X).tobytes().hex())
asked = PreferenceOptimizer([(0.0, 1.0)], random_state=0)
print(asked.run(lambda a, b: a[0] > b[0], 3, progress=True))
print(hasattr(model, "set_callbacks"), hasattr(asked, "set_callbacks"))
"""


@pytest.fixture
def without(monkeypatch):
    """The module's names where ``sklearn.callback`` cannot be imported."""
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    return runpy.run_path(module.__file__)


def test_callbacks_cannot_be_set_and_the_error_says_what_to_do(without):
    class Model(without["CallbackSupportMixin"]):
        pass

    assert not hasattr(Model(), "set_callbacks")
    with pytest.raises(AttributeError, match=r"Model\.set_callbacks needs .*1\.9.*verbose=1"):
        Model().set_callbacks(print)
    with pytest.raises(ImportError, match="needs scikit-learn"):
        without["ProgressBar"]()


def test_tasks_of_which_nobody_is_told(without):
    """They take what scikit-learn's take, and nobody stops anything."""

    class Model(without["CallbackSupportMixin"]):
        @without["with_callbacks"]
        def fit(self):
            return self._init_callback_context("fit", max_subtasks=3)

    root = Model().fit()
    assert root.max_subtasks == 3
    for task in (root, root.subcontext("pass")):
        task.call_on_fit_task_begin(estimator=None)
        assert task.call_on_fit_task_end(estimator=None) is False
    assert root.subcontext("pass").max_subtasks == 0


@pytest.mark.slow
@needs_callbacks
def test_nothing_else_depends_on_them():
    """The same lines and the same bytes with scikit-learn's callbacks and without."""
    without = subprocess.run(
        [sys.executable, "-c", FITS.format(blocked=True)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(module.__file__).parents[2],
    ).stdout
    with contextlib.redirect_stdout(io.StringIO()) as here:
        exec(FITS.format(blocked=False), {})
    said = {}
    for blocked, out in ((True, without), (False, here.getvalue())):
        *said[blocked], there = out.splitlines()
        assert there == f"{not blocked} {not blocked}"
    lines = {blocked: [timeless(line) for line in said[blocked]] for blocked in said}
    assert lines[True] == lines[False] and len(lines[True]) > 5


def timeless(line):
    """A line of progress without its seconds."""
    with contextlib.suppress(ValueError):
        return line[: line.index(" s each")].rpartition(",")[0]
    return line.partition(" fitted in ")[0]
