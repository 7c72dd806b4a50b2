"""A page to judge on in a notebook: what is asked is shown, and answered by a click or a key.

Needs ``pip install "skpref[notebook]"``. The page is one file of JavaScript and one of CSS, which
come with the package: nothing is fetched from elsewhere.
"""

from skpref.widgets._choices import WAYS, duel_choices, question_prompt
from skpref.widgets._judge import Judge
from skpref.widgets._panel import LAST_ANSWERS
from skpref.widgets._stimuli import describe_item

__all__ = ["Judge"]
