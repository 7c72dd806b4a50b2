"""Files of fitted models: which types skops may load.

For files of plain arrays see ``to_arrays`` and ``from_arrays`` of estimators and posteriors.
"""

from skpref._utils import serializable_types
from skpref.model_selection import ItemKFold, ItemShuffleSplit
from skpref.preprocessing import Itemwise

__all__ = ["SKOPS_TRUSTED"]

_TYPES = (*serializable_types().values(), ItemKFold, ItemShuffleSplit, Itemwise)
#: Types that models of this package hold, also in pipelines with its transformers and in searches
#: with its splitters, for ``skops.io.load(path, trusted=SKOPS_TRUSTED)``. None of them runs code
#: from the file.
SKOPS_TRUSTED: list[str] = sorted(
    {"builtins.frozenset", *(f"{each.__module__}.{each.__qualname__}" for each in _TYPES)}
)
