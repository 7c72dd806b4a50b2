"""Columns at the end of the items' rows that tell the prompt of an answer."""

import numpy as np
from numpy.typing import NDArray

from skpref._utils import Array
from skpref.data._items import distinct_rows
from skpref.data._soft import ROUNDED


def prompt_columns(
    prompt: NDArray[np.intp], rows: Array, sets: NDArray[np.intp], weight: Array | None
) -> Array | None:
    """Return the columns that tell the prompt, and the very pair of items, of each answer.

    Parameters
    ----------
    prompt : ndarray of int of shape (n_answers,)
        Number of the prompt of each answer.
    rows : ndarray of shape (n_items, n_features)
    sets : ndarray of int of shape (n_answers, k)
        Rows of the items of each answer, −1 where there is none.
    weight : ndarray of shape (n_answers,) or None
        How often each answer counts; None: once.

    Returns
    -------
    ndarray of shape (n_answers, 1) or (n_answers, 2), or None
        None if no prompt has more than one answer: what belongs to a prompt then is noise; and if
        all answers are on one prompt: what belongs to it then is the utility. The
        second column numbers pairs of items within prompts. It is there if some pair was judged
        more than once, and some prompt has several pairs: else it would be noise, or the prompt.
    """
    counts = np.ones(len(prompt)) if weight is None else weight
    weights = np.bincount(prompt, counts)
    if np.count_nonzero(weights) < 2 or not np.any(weights > 1.0 + ROUNDED):
        return None
    if sets.shape[1] != 2:
        return prompt[:, None].astype(np.float64)
    _, item = distinct_rows(rows)
    pairs = np.column_stack([prompt, np.sort(item[sets], axis=1)]).astype(np.float64)
    first, pair = distinct_rows(pairs)
    is_judged_again = np.any(np.bincount(pair, counts) > 1.0 + ROUNDED)
    if not is_judged_again or len(first) == len(np.unique(prompt)):
        return prompt[:, None].astype(np.float64)
    return np.column_stack([prompt, pair]).astype(np.float64)
