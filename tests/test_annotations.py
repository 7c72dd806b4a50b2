"""Every public function and method tells the types of its arguments and of what it returns."""

import importlib
import inspect
import pkgutil
from importlib.util import find_spec

import pytest

import skpref

MODULES = (
    ["skpref"]
    + [
        f"skpref.{found.name}"
        for found in pkgutil.iter_modules(skpref.__path__)
        if not found.name.startswith("_") and found.name not in ("data", "fitting", "gp")
    ]
    + (["skpref.integrations.optuna"] if find_spec("optuna") else [])
)


def functions(module):
    """Public functions and methods that were written in this package, by their dotted names."""
    for name in module.__all__:
        found = getattr(module, name)
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found) and found.__module__.startswith("skpref"):
            for method in vars(found):
                public = method == "__init__" or not method.startswith("_")
                member = inspect.getattr_static(found, method)
                member = getattr(member, "__func__", getattr(member, "fget", None) or member)
                member = getattr(member, "fn", member)  # available_if
                written = getattr(member, "__module__", "") or ""
                if public and inspect.isfunction(member) and written.startswith("skpref"):
                    yield f"{name}.{method}", member


def bare(function):
    """Arguments without an annotation, and "return"."""
    signature = inspect.signature(function)
    missing = [
        name
        for name, argument in signature.parameters.items()
        if argument.annotation is argument.empty and name not in ("self", "cls")
    ]
    no_return = signature.return_annotation is signature.empty
    return missing + (["return"] if no_return and function.__name__ != "__init__" else [])


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_are_annotated(name):
    module = importlib.import_module(name)
    seen = dict(functions(module))
    assert seen or name in ("skpref.datasets", "skpref.integrations", "skpref.io")  # values alone
    wrong = {each: bare(function) for each, function in seen.items() if bare(function)}
    assert not wrong


def test_what_is_bare_is_seen():
    def half(a: int, b):
        return a + b

    assert bare(half) == ["b", "return"]
