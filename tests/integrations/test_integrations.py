"""Bridges need their libraries; the package does not."""

from fresh_support import fresh


def test_without_optuna_the_error_says_what_to_install():
    assert 'pip install "skpref[optuna]"' in fresh()["errors"]["optuna"]


def test_the_package_imports_no_bridge():
    assert "skpref" in fresh()["loaded"]
    assert "optuna" not in fresh()["loaded"]
