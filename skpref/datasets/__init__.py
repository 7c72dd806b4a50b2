"""Real preference data: small open sets in the package, fetchers for the rest; test functions.

Each function gives a :class:`sklearn.utils.Bunch` whose ``DESCR`` states origin and terms. Outcomes
``y`` are 1 where the first item of a duel won; where there are ties, -1 where the second did and 0
for a tie. Features of the items are called ``item_table``, because ``bunch.items`` is a method.
"""

from skpref.datasets._arguments import load_convincing_arguments
from skpref.datasets._candy import load_candy
from skpref.datasets._cars import fetch_cars
from skpref.datasets._chu_ghahramani import fetch_chu_ghahramani
from skpref.datasets._football import fetch_football, load_football
from skpref.datasets._functions import TEST_FUNCTIONS, BenchmarkFunction, load_test_function
from skpref.datasets._llm import load_llm_duels
from skpref.datasets._sushi import fetch_sushi
from skpref.datasets._tennis import fetch_atp_matches

__all__ = [
    "TEST_FUNCTIONS",
    "BenchmarkFunction",
    "fetch_atp_matches",
    "fetch_cars",
    "fetch_chu_ghahramani",
    "fetch_football",
    "fetch_sushi",
    "load_candy",
    "load_convincing_arguments",
    "load_football",
    "load_llm_duels",
    "load_test_function",
]
