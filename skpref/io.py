"""Files of fitted models: which types skops may load.

For files of plain arrays see ``to_arrays`` and ``from_arrays`` of estimators and posteriors.
"""

from skpref._utils import recorded_types
from skpref.model_selection import ItemKFold, ItemShuffleSplit
from skpref.preprocessing import Itemwise

__all__ = ["SKOPS_TRUSTED"]

_BESIDE = [f"{each.__module__}.{each.__name__}" for each in (ItemKFold, ItemShuffleSplit, Itemwise)]
#: Types that models of this package hold, also in pipelines with its transformers and in searches
#: with its splitters, for ``skops.io.load(path, trusted=SKOPS_TRUSTED)``. None of them runs code
#: from the file.
SKOPS_TRUSTED: list[str] = ["builtins.frozenset", *_BESIDE, *recorded_types()]
