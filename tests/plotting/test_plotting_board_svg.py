"""The picture of a board that needs no library."""

import re
from xml.etree import ElementTree

import numpy as np
from sklearn.utils import Bunch

from skpref.plotting import board_svg


def test_intervals_are_in_proportion_and_within_the_picture():
    utility = np.array([2.0, 0.0, -1.0])
    board = Bunch(
        names=np.array(["a" * 200, "b", "alone"]),
        utility=utility,
        lower=np.array([1.0, -1.0, -np.inf]),
        upper=np.array([3.0, 1.0, np.inf]),
        unit="noise",
        level=0.9,
    )
    picture = ElementTree.fromstring(board_svg(board))
    of = lambda name: picture.findall(f"{{*}}{name}")  # noqa: E731
    places = np.array([float(each.get("cx").rstrip("%")) for each in of("circle")])
    assert np.allclose(np.diff(places)[0] / np.diff(places)[1], 2.0, atol=0.01)
    ends = [
        float(line.get(end).rstrip("%"))
        for line in of("line")
        if line.get("class") is None
        for end in ("x1", "x2")
    ]
    assert len(ends) == 6 and min(ends) == 0.0 and max(ends) == 100.0
    assert all(re.fullmatch(r"[a…]{1,44}|b|alone|-?\d", each.text) for each in of("text"))
