"""Bridges need their libraries; the package does not."""

import subprocess
import sys

WITHOUT = """
import sys
sys.modules["optuna"] = None
import skpref, skpref.integrations
try:
    import skpref.integrations.optuna
except ImportError as error:
    assert 'pip install "skpref[optuna]"' in str(error), error
else:
    raise SystemExit("it was imported")
"""


def test_without_optuna_the_error_says_what_to_install():
    subprocess.run([sys.executable, "-c", WITHOUT], check=True)


def test_the_package_imports_no_bridge():
    code = "import sys, skpref, skpref.integrations; sys.exit('optuna' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
