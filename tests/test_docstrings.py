"""Every public class and function has a docstring with an example; doctest runs the examples."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import skpref

MODULES = ["skpref"] + [
    f"skpref.{found.name}"
    for found in pkgutil.iter_modules(skpref.__path__)
    if not found.name.startswith("_") and found.name not in ("data", "fitting", "gp")
]


def described(module):
    """Public names of a module that can have a docstring of their own, and what they are."""
    public = importlib.import_module(module)
    for name in public.__all__:
        thing = getattr(public, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            yield name, thing


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_example(module):
    without = [
        name
        for name, thing in described(module)
        if not doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
    ]
    assert not without, f"{module}: give the docstrings of {', '.join(without)} an example"
