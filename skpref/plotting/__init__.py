"""Pictures of fitted models and of runs, in the manner of scikit-learn's Displays.

Each is drawn from an estimator or an optimizer in one line. matplotlib is imported when something
is drawn, not before.
"""

from skpref.plotting._acquisition import AcquisitionDisplay
from skpref.plotting._board_svg import board_svg
from skpref.plotting._calibration import CalibrationDisplay
from skpref.plotting._controls import ControlEffectsDisplay
from skpref.plotting._judges import JudgesDisplay
from skpref.plotting._leaderboard import LeaderboardDisplay
from skpref.plotting._leaderboards import LeaderboardsDisplay
from skpref.plotting._optimization import (
    OptimizationDisplay,
    best_so_far,
    read_run,
    winner_position,
)
from skpref.plotting._residuals import ResidualsDisplay
from skpref.plotting._style import check_matplotlib
from skpref.plotting._tastes import TastesDisplay
from skpref.plotting._traces import TracesDisplay
from skpref.plotting._trajectory import TrajectoryDisplay
from skpref.plotting._utility import UtilityDisplay
from skpref.plotting._win_rates import WinRatesDisplay

__all__ = [
    "AcquisitionDisplay",
    "CalibrationDisplay",
    "ControlEffectsDisplay",
    "JudgesDisplay",
    "LeaderboardDisplay",
    "LeaderboardsDisplay",
    "OptimizationDisplay",
    "ResidualsDisplay",
    "TastesDisplay",
    "TracesDisplay",
    "TrajectoryDisplay",
    "UtilityDisplay",
    "WinRatesDisplay",
]
