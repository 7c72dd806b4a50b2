"""Fixtures that more than one module of tests uses."""

import gc
import os
import sys
from dataclasses import replace

import pytest
from chains_support import chains_alone
from judged_support import ENGINE_NAMES, fixed_model, make_duels, make_items

from skpref.optimize import _gain, _maximiser, _model

# Journals wait until the disk has every event, which a shared disk may take long for.
if os.access("/dev/shm", os.W_OK):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Tests that are collected stay to the end: the collector of garbage need not look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module")
def items():
    return make_items()


@pytest.fixture(scope="module")
def duels(items):
    return make_duels(items)


@pytest.fixture
def chains():
    """See `chains_alone`."""
    with chains_alone():
        yield


@pytest.fixture(params=ENGINE_NAMES)
def fixed(request):
    return fixed_model(request.param)


@pytest.fixture
def brief(monkeypatch, request):
    """The optimizer learns and asks with less effort: how good questions are is not tested.

    What keeps limits is sought as ever, and so is all in long tests.
    """
    if request.node.get_closest_marker("slow") is not None:
        return
    learned = replace(_model._REFIT, max_iter=4, n_design_steps=1, length_shares=(1.0,))
    sought = _maximiser.EFFORT._replace(n_rows=64, n_near=6, n_starts=2, n_steps=6, n_turns=2)
    drawn = _gain.GAIN_EFFORT._replace(n_worlds=6, n_paths=4, n_frequencies=100, n_steps=4)
    for name, module in list(sys.modules.items()):
        if (
            name.startswith("skpref.optimize.")
            and hasattr(module, "EFFORT")
            and "limits" not in name
        ):
            monkeypatch.setattr(module, "EFFORT", sought)
    monkeypatch.setattr(_gain, "GAIN_EFFORT", drawn)
    monkeypatch.setattr(_model, "_REFIT", learned)
