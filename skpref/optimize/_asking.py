"""What everything that asks and is told has: refusals, the way back, and what was told."""

from typing import Any, Self

import numpy as np

from skpref.optimize._loop import Loop
from skpref.optimize._session import Session
from skpref.optimize._state import Told
from skpref.optimize._values import copied, titled


class Asking(Loop):
    """`skip`, `undo` and what was told, for a class with a session and a space."""

    _session: Session
    _space: Any

    def skip(self, items: Any) -> Self:
        """Turn a duel or set down: neither it nor one close to it is asked next.

        Parameters
        ----------
        items : array-like of shape (k, d), or k dicts, names or rows of a frame

        Returns
        -------
        self
        """
        self._session.record_refusal(items)
        self._session.tried = None
        return self

    def undo(self) -> Self:
        """Take back the last `tell` or `skip`: what was pending before it is asked again.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is nothing left to take back.
        AlreadyAnswered
            If another process told, skipped or took back since this object last looked.
        """
        self._session.take_back()
        self._session.tried = None
        return self

    # -- what was told -------------------------------------------------------------------

    @property
    def history_(self) -> list[Told]:
        """Told items and outcomes, oldest first."""
        session, state = self._session, self._session.state
        return [
            Told(self._space.pack(session.show(state, items)), copied(outcome))
            for items, outcome, _ in state.told
        ]

    @property
    def n_told_(self) -> int:
        """Number of answers told."""
        return len(self._session.state.told)

    @property
    def pending_(self) -> Any:
        """What was asked and neither answered nor skipped, oldest first."""
        session, state = self._session, self._session.state
        return self._space.pack_many([session.show(state, each.items) for each in state.pending])

    # -- what is ranked ------------------------------------------------------------------

    def _as_rows(self, items: Any) -> np.ndarray:
        """Items as people see them to rows that the model takes."""
        raise NotImplementedError

    def _to_rank(self) -> tuple[list, list]:
        """Items as people see them, and what to call each.

        All of a pool, by their names or, where they have none, their rows in the candidates; else
        those that answers are about.
        """
        space = self._space
        if space.pool is not None:
            items = [space.present(space.to_item(row)) for row in space.pool]
            return items, space.places if space.names is None else space.names
        flat = [item for told in self.history_ for item in told.duel]
        _, first = np.unique(self._as_rows(flat), axis=0, return_index=True)
        items = [flat[i] for i in np.sort(first)]
        return items, [titled(item) for item in items]
