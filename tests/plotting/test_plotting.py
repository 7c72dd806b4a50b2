"""All Displays: matplotlib is theirs alone, wanted on use, and said to be missing."""

import sys

import numpy as np
import pytest
from fresh_support import fresh

from skpref import plotting
from skpref.plotting._style import plain_text, shorten


def test_matplotlib_is_not_imported_before_it_is_used():
    assert "matplotlib" not in fresh()["loaded"]


def made(name):
    """An empty object of a class, and a call that draws with it."""
    found = getattr(plotting, name)
    makers = {
        "AcquisitionDisplay": ("from_optimizer", (None,)),
        "JudgesDisplay": ("from_estimator", (None,)),
        "ResidualsDisplay": ("from_predictions", ([1], [0.5], ["a"])),
        "TastesDisplay": ("from_estimator", (None,)),
        "TracesDisplay": ("from_estimator", (None,)),
        "WinRatesDisplay": ("from_estimator", (None,)),
        "CalibrationDisplay": ("from_predictions", ([1], [0.5])),
        "ControlEffectsDisplay": ("from_estimator", (None,)),
        "LeaderboardDisplay": ("from_estimator", (None,)),
        "LeaderboardsDisplay": ("from_boards", ({},)),
        "OptimizationDisplay": ("from_optimizer", (None,)),
        "TrajectoryDisplay": ("from_estimator", (None,)),
        "UtilityDisplay": ("from_estimator", (None, None, [0])),
    }
    maker, arguments = makers[name]
    return found, maker, arguments


@pytest.mark.parametrize("name", plotting.__all__)
def test_without_matplotlib_the_error_says_so(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found, maker, arguments = made(name)
    with pytest.raises(ImportError, match=rf"{name}\.{maker} requires matplotlib. You can install"):
        getattr(found, maker)(*arguments)
    with pytest.raises(ImportError, match=rf"{name}\.plot requires matplotlib"):
        found(**dict.fromkeys(found.__dataclass_fields__, np.zeros((1, 1, 1)))).plot()


def test_names_are_text_and_not_formulas():
    mathtext = pytest.importorskip("matplotlib.cbook")
    assert mathtext.is_math_text("$5 or $6") and not mathtext.is_math_text(plain_text("$5 or $6"))
    assert shorten("short") == "short"
    long = shorten("x" * 60 + "end")
    assert len(long) == 40 and long.endswith("end") and "…" in long
