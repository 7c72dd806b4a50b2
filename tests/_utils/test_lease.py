"""Leases: how old they are and when they are over, whatever a clock says."""

import pytest

from skpref._utils import Lease

START = 1.8e9


@pytest.mark.parametrize("away", [0.0, 1.0, 59.9])
def test_within_its_time_a_lease_holds_also_by_a_clock_that_is_behind(away):
    lease = Lease("ann", START, 60.0)
    assert not lease.is_over(START + away) and not lease.is_over(START - away)
    assert lease.age(START + away) == lease.age(START - away) == pytest.approx(away)


@pytest.mark.parametrize("away", [60.0, 3600.0, 1e300, float("inf")])
def test_a_lease_of_long_ago_or_of_a_clock_far_ahead_is_over(away):
    lease = Lease("ann", START, 60.0)
    assert lease.is_over(START + away) and lease.is_over(START - away)
