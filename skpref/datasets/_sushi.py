"""SUSHI preferences: complete rankings by many people."""

from os import PathLike

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from skpref._utils import check_choice
from skpref.data import balance_orientation
from skpref.datasets._files import Source, fetch_texts, read_text

_ITEMS, _USERS = "sushi3.idata", "sushi3.udata"
_ORDERS = {"a": "sushi3a.5000.10.order", "b": "sushi3b.5000.10.order"}

SUSHI = Source(
    title="SUSHI",
    url="https://www.kamishima.net/asset/sushi3-2016.zip",
    folders=("sushi", "sushi3-2016", "sushi/sushi3-2016"),
    checksums={
        _ITEMS: "568d73580f82a9ffba7ee1a3750506a0517c9ce904eec41559fe4ab573911fde",
        _USERS: "592d345613b6fbc1d7d126775eb5fb5628619e855c292166250f09651716eca2",
        _ORDERS["a"]: "c56da325c0f58f9a38bafc650ed699b48dd2fb9f6ad64ba61ffc288d1ae4cc24",
        _ORDERS["b"]: "a241c87331e4eabea5841aae0c8a982453cccd01b0a0f3b6a4e9cfabcdab563b",
    },
)

# Set A numbers its ten items 0..9 anew; these are their rows in the item table.
SET_A_ROWS = np.array([0, 1, 2, 3, 4, 6, 7, 8, 26, 29])

_MINOR_GROUPS = (
    *("blue_skinned_fish", "red_meat_fish", "white_meat_fish", "tare", "clam_or_shell"),
    *("squid_or_octopus", "shrimp_or_crab", "roe", "other_seafood", "egg", "meat", "vegetables"),
)
_NUMBERS = ["lightness", "frequency_eaten", "price", "frequency_sold"]
_ITEM_FEATURES = ["not_maki", "not_seafood", *_MINOR_GROUPS, *_NUMBERS]
_REGIONS = (
    *("hokkaido", "tohoku", "hokuriku", "kanto_shizuoka", "nagano_yamanashi", "chukyo", "kinki"),
    *("chugoku", "shikoku", "kyushu", "okinawa", "foreign"),
)
_CHILDHOOD, _RESIDENCE = ([f"{when}_{region}" for region in _REGIONS] for when in ("child", "now"))
_USER_FEATURES = ["female", "age", "seconds", *_CHILDHOOD, "child_west", *_RESIDENCE]
_USER_FEATURES += ["now_west", "moved"]


def _one_hot(codes, n_levels):
    """Return codes as one column of 0 and 1 a level."""
    return np.equal.outer(codes, np.arange(n_levels)).astype(np.float64)


def _read_item_table(text):
    """Return names and encoded features of the 100 items, of the text of their file."""
    rows = [line.split("\t") for line in text.splitlines()]
    names = np.array([row[1] for row in rows], dtype=object)
    raw = np.array([row[2:] for row in rows], dtype=np.float64)
    minor = _one_hot(raw[:, 2], len(_MINOR_GROUPS))
    return names, np.column_stack([raw[:, :2], minor, raw[:, 3:]])


def _read_user_table(text):
    """Return identifiers and encoded features of the 5000 people, of the text of their file."""
    raw = np.array(text.split(), dtype=np.int64).reshape(5000, 11)
    childhood, residence = _one_hot(raw[:, 5], len(_REGIONS)), _one_hot(raw[:, 8], len(_REGIONS))
    features = np.column_stack([raw[:, 1:4], childhood, raw[:, 6], residence, raw[:, 9:]])
    return raw[:, 0], features.astype(np.float64)


def _read_rankings(text, subset):
    """Return a ranking a row, most preferred first, as rows of the item table."""
    numbers = text.partition("\n")[2].split()
    ranked = np.array(numbers, dtype=np.int64).reshape(5000, 12)[:, 2:]  # "0 10" leads each row
    return SET_A_ROWS[ranked] if subset == "a" else ranked


def fetch_sushi(
    *,
    subset: str = "b",
    users: ArrayLike | None = None,
    data_home: str | PathLike | None = None,
    download_if_missing: bool = True,
    n_retries: int = 3,
    delay: float = 1.0,
) -> Bunch:
    """Fetch rankings of sushi by 5000 people, and the 225,000 duels that they make.

    The files are looked for in ``data_home`` and downloaded into it if they are not there.
    Their terms allow research and forbid redistribution.

    Parameters
    ----------
    subset : {"a", "b"}, default="b"
        "a": all rank the same 10 items; "b": each ranks 10 out of 100.
    users : sequence of int or None, default=None
        Rows of the people to keep, 0 to 4999, in this order; None: all.
    data_home : str, path-like or None, default=None
        Folder that holds the files or a folder ``sushi`` with them; None: the folder
        ``skpref`` in scikit-learn's data home.
    download_if_missing : bool, default=True
        If False, missing files are an error.
    n_retries : int, default=3
        Attempts to download.
    delay : float, default=1.0
        Seconds between attempts.

    Returns
    -------
    data : Bunch
        X : ndarray of shape (n_duels, 2)
            Rows of ``item_table``: fit with ``items=data.item_table``, or make duel arrays by
            ``data.item_table[data.X]``. Each person has 45 duels in sequence.
        y : ndarray of shape (n_duels,)
            1 if the first item is preferred. Odd rows have the preferred item second.
        user : ndarray of shape (n_duels,)
            Row of ``users`` and of ``rankings``.
        rankings : ndarray of shape (n_users, 10)
            Rows of ``item_table``, most preferred first.
        item_table : ndarray of shape (100, 18)
            Style, major group (1: not seafood), minor group one-hot, lightness of taste
            (0 heavy to 4 light), frequency eaten (0 to 3), relative price, share of shops
            that sell it.
        item_names, feature_names : ndarray of 100 str, list of 18 str
        users : ndarray of shape (n_users, 30)
            Gender, age group (0: 15-19 to 5: 60 and over), seconds taken, region of childhood
            and of residence one-hot, whether each is in the west, whether the prefecture has
            changed.
        user_feature_names : list of 30 str
        user_ids : ndarray of shape (n_users,)
            Identifiers in the source.
        DESCR : str
            Description, origin, terms, citation.

    Raises
    ------
    ValueError
        If ``subset``, ``users``, ``n_retries`` or ``delay`` is not one of those above.
    TypeError
        If ``n_retries`` is no integer or ``delay`` no number.
    ImportError
        If files are to be downloaded and pooch is not installed.
    OSError
        If the files are not there and cannot be downloaded, or if one has not the checksum
        of the release of 2016. The message says what to put where.

    References
    ----------
    T. Kamishima, "Nantonac Collaborative Filtering: Recommendation Based on Order Responses",
    KDD 2003, 583-588.

    Examples
    --------
    >>> from skpref.datasets import fetch_sushi
    >>> sushi = fetch_sushi(subset="a", users=range(200))  # doctest: +SKIP
    >>> sushi.item_table[sushi.X].shape  # doctest: +SKIP
    (9000, 2, 18)
    """
    check_choice("subset", subset, _ORDERS)
    rows = np.arange(5000) if users is None else np.asarray(users)
    if rows.ndim != 1 or len(rows) == 0 or rows.dtype.kind not in "iu":
        raise ValueError(f"users={users!r}: give a sequence of whole numbers, or None for all.")
    if rows.min() < 0 or rows.max() > 4999:
        raise ValueError(
            f"users run from 0 to 4999, got {rows.min()} to {rows.max()}: give rows in that range."
        )
    order = _ORDERS[subset]
    options = data_home, download_if_missing, n_retries, delay
    texts = fetch_texts(SUSHI, (_ITEMS, _USERS, order), *options)
    item_names, items = _read_item_table(texts[_ITEMS])
    user_ids, user_table = _read_user_table(texts[_USERS])
    rankings = _read_rankings(texts[order], subset)[rows]
    better, worse = np.triu_indices(10, k=1)
    X, y = balance_orientation(
        np.stack([rankings[:, better], rankings[:, worse]], axis=-1).reshape(-1, 2)
    )
    return Bunch(
        X=X,
        y=y,
        user=np.repeat(np.arange(len(rankings)), len(better)),
        rankings=rankings,
        item_table=items,
        item_names=item_names,
        feature_names=list(_ITEM_FEATURES),
        users=user_table[rows],
        user_feature_names=list(_USER_FEATURES),
        user_ids=user_ids[rows],
        DESCR=read_text("about-sushi.txt"),
    )
