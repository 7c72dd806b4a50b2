"""Which cases of a cross are for the plain tests, and which for the long ones."""

import pytest


def thinned(cases, every=2):
    """Every second case (every third, …) in the plain tests, the others in the long ones.

    Parameters
    ----------
    cases : iterable
        Values, tuples of values, or results of `pytest.param`.
    every : int
    """
    found = []
    for k, case in enumerate(cases):
        if k % every == 0:
            found.append(case)
        elif hasattr(case, "marks"):
            found.append(
                pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])
            )
        else:
            values = case if type(case) is tuple else (case,)
            found.append(pytest.param(*values, marks=pytest.mark.slow))
    return found
