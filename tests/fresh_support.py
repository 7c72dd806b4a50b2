"""What a fresh interpreter says that imports the package: one for all tests that ask."""

import functools
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = """
import json, sys
import skpref, skpref.integrations, skpref.plotting
from skpref import PreferenceOptimizer
from skpref.widgets import Judge

loaded = sorted({name.split(".")[0] for name in sys.modules})


def error(missing, call):
    sys.modules[missing] = None
    try:
        call()
    except ImportError as error:
        return str(error)


def bridge():
    import skpref.integrations.optuna


def page():
    Judge(PreferenceOptimizer([(0.0, 1.0)]))


errors = {"optuna": error("optuna", bridge), "anywidget": error("anywidget", page)}
print(json.dumps({"loaded": loaded, "errors": errors}))
"""


@functools.cache
def fresh():
    """The packages that are ``loaded`` by the import, and the ``errors`` where one is missing."""
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
