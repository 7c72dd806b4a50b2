"""Threads of linear algebra: one where matrices are too small to be worth sharing out."""

from contextlib import nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController  # scikit-learn requires it

# The wheels of numpy and scipy bring a BLAS each, and a fit goes from one to the other hundreds of
# times; waking threads costs more than they save. Learning from 200, 500, 1000 duels on two cores
# took 1.7, 5.8, 30 s with two threads, 0.24, 2.4, 18 s with one.
SMALL = 1000


@cache
def _controller():
    return ThreadpoolController()


def blas_threads(side):
    """A context in which BLAS has one thread if the largest matrices are small.

    Parameters
    ----------
    side : int
        Of the largest square matrices that are multiplied or factorised.

    Returns
    -------
    context manager
    """
    if side >= SMALL:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")
