"""Files of fitted models: which types skops may load.

For files of plain arrays see ``to_arrays`` and ``from_arrays`` of estimators and posteriors.
"""

from inspect import isclass

from skpref import model_selection, preprocessing
from skpref._utils import recorded_types

__all__ = ["SKOPS_TRUSTED"]

_BESIDE = [
    f"{module.__name__}.{name}"
    for module in (model_selection, preprocessing)
    for name in module.__all__
    if isclass(getattr(module, name))
]
#: Types that models of this package hold, also in pipelines with its transformers and in searches
#: with its splitters, for ``skops.io.load(path, trusted=SKOPS_TRUSTED)``. None of them runs code
#: from the file.
SKOPS_TRUSTED: list[str] = ["builtins.frozenset", *_BESIDE, *recorded_types()]
