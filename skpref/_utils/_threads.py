"""Threads of linear algebra: one where matrices are too small to be worth sharing out."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# The wheels of numpy and scipy bring a BLAS each, and a fit goes from one to the other hundreds of
# times; waking threads costs more than they save. Learning from 200, 500, 1000 duels on two cores
# took 1.7, 5.8, 30 s with two threads, 0.24, 2.4, 18 s with one. Beyond, many cores may gain.
SMALL = 1000


class _ThreadLimit:
    """A limit of the whole process: the first to enter sets it, the last to leave lifts it.

    Every step may be cut short by an exception such as KeyboardInterrupt and done again: who is
    inside, and the numbers of threads before, are noted ahead of any change.
    """

    def __init__(self):
        # Reentrant: a turn may be collected while this thread holds the lock.
        self._lock, self._inside, self._before = threading.RLock(), set(), None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=lambda: self._lock.acquire(),
                after_in_parent=lambda: self._lock.release(),
                after_in_child=self._restart_in_child,
            )

    def enter(self, turn: "_Turn") -> None:
        """Set one thread, if this is the first turn inside."""
        with self._lock:
            self._inside.add(id(turn))
            if self._before is None:
                self._before = [(library, library.num_threads) for library in _blas_libraries()]
                for library, _ in self._before:
                    library.set_num_threads(1)

    def leave(self, turn: "_Turn") -> None:
        """Set the numbers of threads from before, if this is the last turn inside."""
        with self._lock:
            self._inside.discard(id(turn))
            if not self._inside and self._before is not None:
                for library, n_threads in self._before:
                    library.set_num_threads(n_threads)
                self._before = None

    def _restart_in_child(self):
        """Set the limit anew in a child process, where no other thread lives on."""
        self._lock, self._inside, self._before = threading.RLock(), set(), None


class _Turn:
    """One stay within the limit, which ends at the latest when nobody refers to it."""

    def __del__(self):
        _ONE.leave(self)


@cache
def _blas_libraries():
    """Return the BLAS libraries that are loaded."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


_ONE = _ThreadLimit()


@contextmanager
def blas_threads(side: int) -> Iterator[None]:
    """Give BLAS one thread within this context if the largest matrices are small.

    Parameters
    ----------
    side : int
        Of the largest square matrices that are multiplied or factorised.
    """
    if side >= SMALL:
        yield
        return
    turn = _Turn()
    try:
        _ONE.enter(turn)
        yield
    finally:
        _ONE.leave(turn)
