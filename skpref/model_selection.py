"""Splitters that keep items apart, so that no test duel has an item seen in training."""

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from skpref.data import (
    column_at,
    component_labels,
    first_item_places,
    group_rows,
    is_frame,
    read,
)

__all__ = ["ItemKFold", "ItemShuffleSplit", "item_components"]


def _item_codes(X: Any, integers: str | None) -> np.ndarray:
    """Return numbers of the items shown: (n, 2) of duels, (n, k) of sets, (n, 1) of items."""
    if integers not in (None, "positions", "items"):
        raise ValueError(f'integers must be "positions", "items" or None, got {integers!r}.')
    shown = read(X, integers=integers, new_names=integers == "positions")
    rows = shown.rows
    if hasattr(rows, "tocsr") or (shown.kind == "items" and len(rows.shape) != 2):
        raise ValueError(
            f"X of shape {rows.shape} holds neither duels or sets (n, k, n_features), nor "
            "positions (n, k), nor texts (n, 2), nor items (n, n_features) as a dense array."
        )
    if len(shown) == 0:
        raise ValueError(f"X of shape {np.shape(X)} holds no duel and no item; give at least one.")
    if shown.id_column is not None:  # who an item is, whatever it is like in a duel
        shown = shown.without_unshown()
        column = column_at(shown.rows, list(shown.rows.columns).index(shown.id_column))
        rows = np.asarray(column.to_numpy()).reshape(-1, 1)
    elif is_frame(rows):
        shown = shown.without_unshown()
        rows = shown.rows
    codes = group_rows(rows)[1]
    pairs = shown.pairs
    return codes.reshape(-1, 1) if pairs is None else np.where(pairs < 0, -1, codes[pairs])


def item_components(X: Any, *, integers: str | None = None) -> np.ndarray:
    """Return the connected component of each duel or set; two of them share no item.

    Pass it as ``groups`` to scikit-learn's ``GroupKFold`` to keep items apart and yet drop no
    duel, where the comparisons fall into many components (a few items for each respondent, say).

    Parameters
    ----------
    X : array-like
        Duels or sets (n, k, n_features), positions of them (n, k), padded by -1, duels of texts
        (n, 2), or items (n_items, n_features), where equal items make a component.
    integers : {"positions", "items"}, default=None
        What 2-D integers are: positions in a table of items, or features; texts of more than two
        columns or in a frame: names, or features. None: such an X is an error.

    Returns
    -------
    ndarray of int of shape (n,)
        Numbered from 0 in order of first appearance.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.model_selection import item_components
    >>> item_components(np.array([[0, 1], [2, 3], [1, 4]]), integers="positions").tolist()
    [0, 1, 0]
    """
    codes = _item_codes(X, integers)
    label = component_labels(int(codes.max()) + 1, codes)
    lead = codes[np.arange(len(codes)), first_item_places(codes)]
    _, first, inverse = np.unique(label[lead], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


class _ItemSplitter(BaseCrossValidator):
    """Splits of rows made from splits of the distinct items."""

    n_splits: int
    mixed: str
    integers: str | None

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the indices of training and test duels of each split.

        Parameters
        ----------
        X : array-like
            Duels or sets (n, k, n_features), positions of them (n, k), padded by -1, duels of
            texts (n, 2), or items (n_items, n_features). An item is who its id says where duels
            have ids, else what its features say.
        y, groups : ignored

        Yields
        ------
        train, test : ndarray of int
            Rows of X.

        Raises
        ------
        ValueError
            If there are too few items, a split has no row to train or test on, or X holds 2-D
            integers and ``integers`` does not say what they are.
        """
        if self.mixed not in ("drop", "test"):
            raise ValueError(f'mixed must be "drop" or "test", got {self.mixed!r}.')
        codes = _item_codes(X, self.integers)
        n_items = int(codes.max()) + 1
        for i, held_out in enumerate(self._held_out(n_items)):
            unseen = np.zeros(n_items, dtype=bool)
            unseen[held_out] = True
            some = (unseen[codes] & (codes >= 0)).any(axis=1)
            every = (unseen[codes] | (codes < 0)).all(axis=1)
            train = np.flatnonzero(~some)
            test = np.flatnonzero(every if self.mixed == "drop" else some)
            if len(train) == 0 or len(test) == 0:
                remedy = ', take mixed="test"' if self.mixed == "drop" else ""
                raise ValueError(
                    f"Split {i} holds out {len(held_out)} of {n_items} items, which leaves "
                    f"{len(train)} rows to train on and {len(test)} to test on. Hold out another "
                    f"share of the items{remedy}, or use GroupKFold with item_components(X)."
                )
            yield train, test


class ItemKFold(_ItemSplitter):
    """K folds of items: test duels are between items that no training duel has.

    Duels that share items leak across folds of duels (``KFold``): their score tells how well the
    next duel among known items is predicted. Folds of items tell how well duels of **new** items
    are predicted. The distinct items are split into folds of nearly equal size. For each fold,
    duels without any of its items train, duels with both items in it test, and mixed duels do
    as ``mixed`` says; sets of items likewise, of which all items are in the fold, none, or some.

    Parameters
    ----------
    n_splits : int, default=5
        With ``n_splits`` equal to the number of items and ``mixed="test"``, leaves one item out.
    shuffle : bool, default=False
        Shuffle the items; otherwise positions are split in order, and other items in an order
        that depends on their values alone, never on the order of the rows.
    random_state : int, RandomState or None, default=None
        For ``shuffle``.
    mixed : {"drop", "test"}, default="drop"
        What becomes of duels between an item of the fold and one outside: dropped from this
        split, or tested.
    integers : {"positions", "items"}, default=None
        What 2-D integers are: positions in a table of items, or features; texts of more than two
        columns or in a frame: names, or features. None: such an X is an error.

    Notes
    -----
    If everyone meets everyone, K folds train on about (1 − 1/K)² of the duels and test on 1/K²
    each ("drop") or on all others ("test"). The test folds are therefore no partition, which
    ``cross_val_score`` and ``GridSearchCV`` do not need but ``cross_val_predict`` does. Rated
    items (n_items, n_features) are split as rows, equal ones together.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.model_selection import ItemKFold
    >>> pairs = np.array([[0, 1], [2, 3], [1, 2], [3, 2]])
    >>> folds = ItemKFold(2, integers="positions").split(pairs)
    >>> [(train.tolist(), test.tolist()) for train, test in folds]
    [([1, 3], [0]), ([0], [1, 3])]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Any = None,
        mixed: str = "drop",
        integers: str | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.mixed = mixed
        self.integers = integers

    def _held_out(self, n_items):
        """Return the items of each fold; ValueError for a number of folds that does not do."""
        if not isinstance(self.n_splits, numbers.Integral) or self.n_splits < 2:
            raise ValueError(f"n_splits must be an integer of at least 2, got {self.n_splits!r}.")
        if self.n_splits > n_items:
            raise ValueError(
                f"{self.n_splits} folds need as many distinct items; there are {n_items}. "
                "Take fewer folds."
            )
        if self.random_state is not None and not self.shuffle:
            raise ValueError("random_state has no effect without shuffle=True; set it or drop it.")
        order = np.arange(n_items)
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(n_items)
        return np.array_split(order, self.n_splits)


class ItemShuffleSplit(_ItemSplitter):
    """Random splits of items: test duels are between items that no training duel has.

    As `ItemKFold`, but every split holds out a fresh random share of the items, so that the
    share and the number of splits are free of each other: a larger share leaves more duels
    between held-out items.

    Parameters
    ----------
    n_splits : int, default=10
    test_size : float or int, default=0.3
        Share of the distinct items held out, in (0, 1), or their number.
    random_state : int, RandomState or None, default=None
    mixed : {"drop", "test"}, default="drop"
        What becomes of duels between a held-out item and another: dropped, or tested.
    integers : {"positions", "items"}, default=None
        What 2-D integers are: positions in a table of items, or features; texts of more than two
        columns or in a frame: names, or features. None: such an X is an error.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.model_selection import ItemShuffleSplit
    >>> pairs = np.array([[i, j] for i in range(6) for j in range(i)])
    >>> halves = ItemShuffleSplit(2, test_size=3, random_state=0, integers="positions")
    >>> [(len(train), len(test)) for train, test in halves.split(pairs)]
    [(3, 3), (3, 3)]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float | int = 0.3,
        random_state: Any = None,
        mixed: str = "drop",
        integers: str | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.test_size = test_size
        self.random_state = random_state
        self.mixed = mixed
        self.integers = integers

    def _held_out(self, n_items):
        """Yield the items that each split holds out; ValueError for a share that does not do."""
        if not isinstance(self.n_splits, numbers.Integral) or self.n_splits < 1:
            raise ValueError(f"n_splits must be a positive integer, got {self.n_splits!r}.")
        whole = isinstance(self.test_size, numbers.Integral)
        n_test = int(self.test_size) if whole else int(np.ceil(self.test_size * n_items))
        if not 0 < n_test < n_items or not (whole or 0 < self.test_size < 1):
            raise ValueError(
                f"test_size={self.test_size!r} holds out {n_test} of {n_items} items; give a share "
                "in (0, 1) or a number that leaves some items on both sides."
            )
        rng = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            yield rng.permutation(n_items)[:n_test]
