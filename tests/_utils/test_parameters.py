"""Checks of numbers: what is beyond floats is refused like infinity."""

import pytest

from skpref._utils import check_number


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["above", "below"])
def test_integers_beyond_floats_are_refused_as_infinite(value, integer):
    with pytest.raises(ValueError, match=r"n must lie in .* got .* Give a finite number"):
        check_number("n", value, low=-5, high=5, integer=integer)
    with pytest.raises(ValueError, match=r"n must lie in \(-inf, inf\), got "):
        check_number("n", value, open_low=True, open_high=True)


def test_integers_within_bounds_keep_all_their_digits():
    assert check_number("n", 2**62 + 1, low=1, high=2**63 - 1, integer=True) == 2**62 + 1
    with pytest.raises(ValueError, match=r"\[1, 9223372036854775807\], got 9223372036854775808"):
        check_number("n", 2**63, low=1, high=2**63 - 1, integer=True)
    assert check_number("n", 2**63 - 1, low=1, high=2**63 - 1, integer=True) == 2**63 - 1
