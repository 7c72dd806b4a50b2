"""Threads of linear algebra: one where matrices are too small to be worth sharing out."""

import os
import threading
from contextlib import ExitStack, contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# The wheels of numpy and scipy bring a BLAS each, and a fit goes from one to the other hundreds of
# times; waking threads costs more than they save. Learning from 200, 500, 1000 duels on two cores
# took 1.7, 5.8, 30 s with two threads, 0.24, 2.4, 18 s with one. Beyond, many cores may gain.
SMALL = 1000


class _Limit:
    """A limit of the whole process: the first to enter sets it, the last to leave lifts it."""

    def __init__(self):
        self._lock, self._inside, self._stack = threading.Lock(), 0, ExitStack()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=lambda: self._lock.acquire(),
                after_in_parent=lambda: self._lock.release(),
                after_in_child=self._forked,
            )

    def enter(self):
        with self._lock:
            if self._inside == 0:
                self._stack.enter_context(_controller().limit(limits=1, user_api="blas"))
            self._inside += 1

    def leave(self):
        with self._lock:
            if self._inside == 1:
                self._stack.close()
            self._inside = max(self._inside - 1, 0)  # 0 in a child that was forked inside

    def _forked(self):
        """In a child no other thread lives on; BLAS is left as it is, as its locks may be held."""
        self._lock, self._inside = threading.Lock(), 0
        self._stack.pop_all()


@cache
def _controller():
    return ThreadpoolController()


_ONE = _Limit()


@contextmanager
def blas_threads(side):
    """A context in which BLAS has one thread if the largest matrices are small.

    Parameters
    ----------
    side : int
        Of the largest square matrices that are multiplied or factorised.
    """
    if side >= SMALL:
        yield
        return
    _ONE.enter()
    try:
        yield
    finally:
        _ONE.leave()
