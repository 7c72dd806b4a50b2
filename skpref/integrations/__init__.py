"""Bridges to other libraries: their studies and pages ask the questions of `skpref.optimize`.

A module bears the name of the library that it needs. It is imported by its full name, as in
``from skpref.integrations.optuna import PreferentialSampler``, and the package does without it.
"""

__all__: list[str] = []
