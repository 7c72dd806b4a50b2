"""Answers in the order of those who gave them, in blocks of users with about as many each."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skpref._linalg import Array
from skpref._observations import Observations
from skpref.likelihoods import PART, Answers

# Doubles of the largest array of a block: it stays in the cache.
_BLOCK = 2**18


@dataclass(frozen=True, eq=False)
class Block:
    """Some users and their answers, the rows filled up to the longest.

    Attributes
    ----------
    users : ndarray of int of shape (n_users,)
    rows : ndarray of int of shape (n_users, n)
        Answers of each; 0 where ``there`` is False.
    there : ndarray of bool of shape (n_users, n)
    """

    users: NDArray[np.intp]
    rows: NDArray[np.intp]
    there: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ByUser:
    """Single duels, whose they are, and which margin each of them reads.

    Attributes
    ----------
    n_users, n_margins : int
    user : ndarray of int of shape (n,)
    margin : ndarray of int of shape (n,)
        Row of the distinct margins.
    sign : ndarray of shape (n,)
        +1 where the winner is the first item of the margin, else −1.
    weight : ndarray of shape (n,)
    answers : Answers
    """

    n_users: int
    n_margins: int
    user: NDArray[np.intp]
    margin: NDArray[np.intp]
    sign: Array
    weight: Array
    answers: Answers

    @classmethod
    def of(cls, observations: Observations, user: NDArray[np.intp], n_users: int) -> Self:
        """Answers of users, equal ones of one user counted.

        Raises
        ------
        ValueError
            If some of them are choices or rankings.
        """
        rows = observations.rows
        if np.any(rows.kind == PART):
            raise ValueError(
                "Choices and rankings of several users came; with users= the answers are duels. "
                "Take them apart with skpref.duels.from_rankings, or fit without users=."
            )
        row = observations.of_answer
        key, which = np.unique(user * len(rows) + row, return_inverse=True)
        weight = np.bincount(which, observations.weight).astype(np.float64)
        user, row = np.divmod(key, len(rows))
        margins = rows.margins
        answers = rows.answers.take(row)
        margin, sign = margins.index[row], margins.sign[row]
        return cls(n_users, len(margins.first), user, margin, sign, weight, answers)

    def of_users(self, users: NDArray[np.intp]) -> Self:
        """The answers of some users, who are numbered anew; margins keep their numbers.

        Parameters
        ----------
        users : ndarray of int
            Increasing.
        """
        rows = np.flatnonzero(np.isin(self.user, users))
        return type(self)(
            n_users=len(users),
            n_margins=self.n_margins,
            user=np.searchsorted(users, self.user[rows]),
            margin=self.margin[rows],
            sign=self.sign[rows],
            weight=self.weight[rows],
            answers=self.answers.take(rows),
        )

    @cached_property
    def copies(self) -> Array:
        """Number of equal factors of each answer, at least 1: its weight, if that is not below."""
        return np.maximum(self.weight, 1.0)

    @cached_property
    def power(self) -> Array | None:
        """Power of each of these factors, below 1 for a weight below 1; None: all are 1."""
        return np.minimum(self.weight, 1.0) if np.any(self.weight < 1.0) else None

    def pool(self, values: Array) -> Array:
        """Sum over the answers on each margin."""
        return np.bincount(self.margin, values, self.n_margins).astype(np.float64)

    def blocks(self, width: int) -> list[Block]:
        """Users in blocks, so that an array of ``width`` doubles an answer fits the cache."""
        counts = np.bincount(self.user, minlength=self.n_users)
        begin = np.cumsum(counts) - counts
        ranked = np.argsort(counts, kind="stable")
        found, at = [], 0
        while at < self.n_users:
            # Users are ranked by their numbers of answers, so the last of a block has the most.
            n = min(self.n_users - at, 64)
            while n > 1 and n * max(counts[ranked[at + n - 1]], 1) * width > _BLOCK:
                n = max(n // 2, 1)
            users = ranked[at : at + n]
            longest = int(counts[users[-1]])
            place = np.arange(longest)
            there = place < counts[users][:, None]
            rows = np.where(there, begin[users][:, None] + place, 0)
            found.append(Block(users, rows, there))
            at += n
        return found
