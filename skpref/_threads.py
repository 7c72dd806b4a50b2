"""Threads of linear algebra: one where matrices are too small to be worth sharing out."""

from contextlib import nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController  # scikit-learn requires it

# Below this side a matrix gains nothing from a second thread, and the hundreds of products of a
# fit lose by waking it: at 200 duels learning took 1.7 s with two threads, 0.24 s with one.
SMALL = 500


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
