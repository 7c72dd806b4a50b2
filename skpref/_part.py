"""A random part of the answers, on which hyperparameters are learned where all take too long."""

import numpy as np

from skpref._observations import Observations

# Answers of the part that "auto" learns on: exactly; exactly, of names alone; exactly, for a fit
# with inducing points, which is itself a matter of seconds; and by the bound of such a fit.
ENOUGH, ENOUGH_OF_NAMES, ENOUGH_FOR_POINTS, ENOUGH_SPARSE = 1000, 2000, 800, 5000


def random_part(observations: Observations, size: int, among_few: bool = False) -> Observations:
    """So many of the answers and the items in them, the same ones every time.

    Of every kind of answer there is at least one, where there is room.

    Parameters
    ----------
    observations : Observations
    size : int
    among_few : bool, default=False
        Whether these are answers among as few items as have so many, drawn at random. Where nothing
        but names is known, answers that share no items say nothing of the noise.

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
    rng = np.random.default_rng(0)
    order = rng.permutation(n)
    if among_few:
        turn = rng.permutation(len(observations.items))
        shown = observations.positions
        last = np.where(shown >= 0, turn[shown], -1).max(axis=1)
        order = order[np.argsort(last[order], kind="stable")]
    kept, kind = order[:size].copy(), observations.kind[order]
    # Ties so rare that none was drawn would teach that there are none.
    missing = np.setdiff1d(kind, kind[:size])[: size - 1]
    for place, each in enumerate(missing):
        kept[-1 - place] = order[np.argmax(kind == each)]
    return observations.part(np.sort(kept))
