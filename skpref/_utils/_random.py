"""What users may pass as a source of random numbers, and what it becomes."""

import inspect
from numbers import Integral

import numpy as np
from scipy.stats import qmc
from sklearn.utils import check_random_state

from skpref._utils._parameters import check_number

RandomLike = int | np.integer | np.random.RandomState | np.random.Generator | None


def make_generator(rng: RandomLike = None) -> np.random.Generator:
    """Return the generator of a seed or another source; a Generator is itself, and moves on.

    Parameters
    ----------
    rng : int, RandomState instance, Generator or None
        None: a fresh one. A RandomState gives a seed, and moves on.

    Examples
    --------
    >>> from skpref._utils._random import make_generator
    >>> bool(make_generator(3).random() == make_generator(3).random())
    True
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or isinstance(rng, Integral):
        return np.random.default_rng(rng)
    return np.random.default_rng(check_random_state(rng).randint(2**31))


def read_random_state(
    random_state: RandomLike = None,
) -> np.random.RandomState | np.random.Generator:
    """Return a Generator as it is, and anything else as scikit-learn reads it.

    Parameters
    ----------
    random_state : int, RandomState instance, Generator or None

    Examples
    --------
    >>> from skpref._utils._random import read_random_state
    >>> bool(read_random_state(3).uniform() == read_random_state(3).uniform())
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    return check_random_state(random_state)


def seed_of(random_state: RandomLike) -> int | None:
    """Return a seed that can be written down: a non-negative integer, or None for None.

    Parameters
    ----------
    random_state : int, RandomState instance, Generator or None
        A RandomState and a Generator give a seed, and move on.

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or negative.

    Examples
    --------
    >>> from skpref._utils._random import seed_of
    >>> seed_of(7), seed_of(None)
    (7, None)
    """
    if random_state is None or random_state is np.random:
        return None
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(check_number("random_state", random_state, low=0, integer=True))


# SciPy 1.15 has given the argument a new name.
_SOURCE = "rng" if "rng" in inspect.signature(qmc.Sobol).parameters else "seed"


def sobol(d: int, rng: RandomLike = None) -> qmc.Sobol:
    """Return a source of scrambled Sobol points in d dimensions.

    Parameters
    ----------
    d : int
    rng : int, RandomState instance, Generator or None
        See `make_generator`.

    Examples
    --------
    >>> from skpref._utils._random import sobol
    >>> sobol(2, 0).random(4).shape
    (4, 2)
    """
    return qmc.Sobol(d, **{_SOURCE: make_generator(rng)})
