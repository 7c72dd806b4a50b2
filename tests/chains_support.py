"""Chains through time of few answers, which are fitted jointly otherwise."""

from unittest import mock


def chains_alone():
    """Items that are independent through time are chains, however few the answers."""
    return mock.patch("skpref.fitting._forecast._AT_ONCE", 0.0)
