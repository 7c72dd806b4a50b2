"""Leases: a piece of work belongs to its holder for some time, and to anybody after it."""

from typing import NamedTuple


class Lease(NamedTuple):
    """The claim of one holder on a piece of work, which runs out by itself.

    Nobody has to know whether the holder is alive. A clock that is wrong ends a lease too early or
    too late, which changes who does the work; it must never decide whether a result counts.

    Attributes
    ----------
    holder : str
        A name; under the same name the claim is the same after a restart.
    since : float
        Seconds since 1970, by the clock of the holder, when it was last taken.
    seconds : float
        How long it lasts.
    """

    holder: str
    since: float
    seconds: float

    def age(self, now: float) -> float:
        """Return the seconds between the start and now, whichever of the two is later.

        So a lease that was taken by a clock far ahead is over like one that is as old.
        """
        return abs(now - self.since)

    def is_over(self, now: float) -> bool:
        """Return whether the work may go to anybody."""
        return self.age(now) >= self.seconds
