"""Fixtures that more than one module of tests uses."""

import gc
import os

import pytest
from chains_support import chains_alone
from judged_support import ENGINE_NAMES, fixed_model, make_duels, make_items

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
