"""A random part of the answers, on which hyperparameters are learned where all take too long."""

from dataclasses import replace

import numpy as np

from skpref._observations import Observations
from skpref._rows import first_seen

# Answers of the part that "auto" learns on.
ENOUGH = 1000


def random_part(observations: Observations, size: int) -> Observations:
    """So many of the answers and the items in them, the same ones every time.

    Parameters
    ----------
    observations : Observations
    size : int

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.duels import Observations
    >>> seen = Observations.from_duels(np.eye(4), [0, 1, 2], [1, 2, 3], [True, False, True])
    >>> part = random_part(seen, 1)
    >>> part.items.shape, len(part.positions)
    ((2, 4), 1)
    """
    n = len(observations.positions)
    if size >= n:
        return observations
    kept = np.sort(np.random.default_rng(0).permutation(n)[:size])
    positions = observations.positions[kept]
    there = positions >= 0
    items, place = first_seen(positions[there])
    renamed = np.full(positions.shape, -1, dtype=np.intp)
    renamed[there] = place
    optional = {
        name: None if part is None else part[kept]
        for name in ("judge", "rank")
        for part in [getattr(observations, name)]
    }
    return replace(
        observations,
        items=observations.items[items],
        positions=renamed,
        order=observations.order[kept],
        kind=observations.kind[kept],
        weight=observations.weight[kept],
        **optional,
    )
