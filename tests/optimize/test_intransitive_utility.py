"""Optimisers with a term of circles: they look for the best of the order alone."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from skpref import PreferenceOptimizer
from skpref.gp import IntransitivePosterior
from skpref.kernels import Intransitive

KERNEL = RBF(0.5) + Intransitive(RBF(0.5))


def test_the_best_of_the_order_is_recommended():
    optimizer = PreferenceOptimizer([(0.0, 1.0)], kernel=KERNEL, random_state=0)
    for _ in range(8):
        duel = optimizer.ask()
        optimizer.tell(duel, bool(duel[0, 0] > duel[1, 0]))
    assert optimizer.recommend()[0] > 0.9
    posterior = optimizer.posterior_
    assert isinstance(posterior, IntransitivePosterior)
    # Of pairs an item's own mean does not depend on whom it meets.
    items = np.array([[0.2], [0.9]])
    assert np.diff(posterior.mean(items))[0] > 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": KERNEL, "forgetting_rate": 0.1}, "forgetting_rate"),
        ({"kernel": Intransitive(RBF(0.5))}, "no term of the utility"),
        ({"kernel": 2.0 * Intransitive(RBF(0.5)) + RBF(0.5)}, "a term of a sum is allowed"),
    ],
)
def test_what_cannot_be_is_refused_before_any_question(options, message):
    with pytest.raises(ValueError, match=message):
        PreferenceOptimizer([(0.0, 1.0)], random_state=0, **options)


def test_choices_are_refused_when_they_are_asked_for_or_told():
    optimizer = PreferenceOptimizer([(0.0, 1.0)], kernel=KERNEL, random_state=0)
    with pytest.raises(ValueError, match="choices or rankings"):
        optimizer.ask(size=3)
    with pytest.raises(ValueError, match="choices or rankings"):
        optimizer.tell(np.array([[0.1], [0.5], [0.9]]), chosen=0)
    assert len(optimizer.ask()) == 2
