"""Halloween candy: the small set of the first examples."""

import csv

import numpy as np
from sklearn.utils import Bunch, check_random_state

from skpref._utils import check_number
from skpref.data import balance_orientation
from skpref.datasets._files import bundled_path, read_text


def load_candy(
    *,
    n_duels: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
    as_frame: bool = False,
) -> Bunch:
    """Load duels of 85 Halloween sweets, made from the share of online duels each of them won.

    The single duels were not published: of two sweets the one with the higher ``winpercent``
    wins here. Odd rows have the winner second, so that both outcomes occur.

    Parameters
    ----------
    n_duels : int or None, default=None
        Number of pairs drawn without replacement; None: all 3570.
    random_state : int, RandomState instance or None, default=0
        Draws the pairs; not used if ``n_duels`` is None.
    as_frame : bool, default=False
        Give ``item_table`` as a DataFrame and ``winpercent`` as a Series, both indexed by name.
        Needs pandas. ``X`` and ``y`` are arrays in any case.

    Returns
    -------
    data : Bunch
        X : ndarray of shape (n_duels, 2, 11)
            Duel arrays, ready to fit.
        y : ndarray of shape (n_duels,)
            1 if the first sweet won, else 0.
        item_table : ndarray of shape (85, 11) or DataFrame
            Nine yes/no attributes, sugar and price percentiles between 0 and 1.
        item_names : ndarray of shape (85,)
        feature_names : list of 11 str
        winpercent : ndarray of shape (85,) or Series
            Share of its duels that each sweet won, in per cent.
        pairs : ndarray of shape (n_duels, 2)
            Rows of ``item_table`` that make up ``X``.
        DESCR : str
            Description, origin, licence (CC BY 4.0).
        filename : str

    Raises
    ------
    ValueError
        If ``n_duels`` is not between 1 and 3570.
    TypeError
        If it is no integer.

    References
    ----------
    W. Hickey, "The Ultimate Halloween Candy Power Ranking", FiveThirtyEight, 2017.

    Examples
    --------
    >>> from skpref.datasets import load_candy
    >>> candy = load_candy(n_duels=200)
    >>> candy.X.shape, candy.y[:4].tolist()
    ((200, 2, 11), [1, 0, 1, 0])
    >>> str(candy.item_names[candy.winpercent.argmax()])
    "Reese's Peanut Butter cup"
    """
    header, *rows = csv.reader(read_text("candy.csv").splitlines())
    names = np.array([row[0] for row in rows], dtype=object)
    table = np.array([row[1:] for row in rows], dtype=np.float64)
    feature_names = header[1:-1]
    items, winpercent = table[:, :-1], table[:, -1]

    pairs = np.column_stack(np.triu_indices(len(items), k=1))
    if n_duels is not None:
        check_number("n_duels", n_duels, low=1, high=len(pairs), integer=True)
        rng = check_random_state(random_state)
        pairs = pairs[rng.choice(len(pairs), int(n_duels), replace=False)]
    lost = winpercent[pairs[:, 0]] < winpercent[pairs[:, 1]]
    oriented, y = balance_orientation(np.where(lost[:, None], pairs[:, ::-1], pairs))
    pairs = np.asarray(oriented)
    X = items[pairs]

    if as_frame:
        import pandas as pd

        index = pd.Index(names, name=header[0])
        items = pd.DataFrame(items, index=index, columns=feature_names)
        winpercent = pd.Series(winpercent, index=index, name=header[-1])
    return Bunch(
        X=X,
        y=y,
        item_table=items,
        item_names=names,
        feature_names=feature_names,
        winpercent=winpercent,
        pairs=pairs,
        DESCR=read_text("CANDY-NOTICE.txt"),
        filename=str(bundled_path("candy.csv")),
    )
