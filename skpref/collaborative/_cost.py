"""How long and how large a fit of many users will be, told before it begins."""

from skpref import _forecast
from skpref._forecast import forecast
from skpref._warnings import warn
from skpref.collaborative._learn import Lesson
from skpref.inference._memory import available

# Operations of a pass, as measured, over those of products of large matrices.
_SMALL_MATRICES = 2.0
# Of a pass over products of weights and functions, for an answer and a function: array by array.
_PRODUCT = 4e3
# Fits of fewer operations take seconds on any machine.
_QUICK = 2e11
_LONG = 60.0


def mention_cost(
    n_duels: int,
    n_users: int,
    sizes: tuple[int, int, int],
    max_iter: int,
    lesson: Lesson | None,
    factorised: bool = False,
) -> None:
    """Warn of a fit that may take minutes, or most of the memory.

    Parameters
    ----------
    n_duels, n_users : int
    sizes : (int, int, int)
        Functions that tastes weigh, inducing points, inducing users.
    max_iter : int
        Passes at most.
    lesson : Lesson or None
        What hyperparameters are learned on.
    factorised : bool, default=False
        Whether weights and functions are.
    """
    d, m, r = map(float, sizes)
    of_duel = 1e4 + 2.0 * d * (d + m) + 4.0 * d * m + 2.0 * m**2
    of_user = 6.0 * d**3 + 4.0 * d * m * (d + m) + 4.0 * (d * r) ** 2
    # Prior and posterior of all tastes, while they are found and as they are kept.
    bytes_ = 8.0 * n_users * (4.0 * d * (d + m) + 2.0 * (d * d if r else 0.0))
    if factorised:
        of_duel, of_user = d * (_PRODUCT + 4.0 * m**2), 4.0 * d * (1.0 + r) ** 2
        bytes_ = 8.0 * 12.0 * d * (n_users + n_duels)
    work = _SMALL_MATRICES * max_iter * (n_duels * of_duel + n_users * of_user)
    crowded = bytes_ > 0.7 * available()
    learning = 0.0
    if lesson is not None and len(lesson.part.items) >= _forecast._SMALL:
        learning = forecast(lesson.part, lesson.model, True)[0]
    if work < _QUICK and learning < _LONG and not crowded:
        return
    passes = work / (2.0 * _forecast._PROBE**3) * _forecast._product_seconds()
    seconds = passes + learning
    if seconds < _LONG and not crowded:
        return
    took = f"{seconds / 60.0:.0f} minutes" if seconds >= 90.0 else f"{seconds:.0f} s"
    remedies = ["fewer functions or inducing points (n_latent, n_inducing)", "n_jobs=2 or more"]
    if learning > passes:
        remedies.insert(0, "learn_on=2000 or fewer")
    warn(
        f"This fit of {n_duels} duels by {n_users} users is expected to take up to about {took} "
        f"(max_iter={max_iter} passes) and {bytes_ / 2**30:.1f} GiB"
        f"{' (more than there is)' if crowded else ''}. To spare them: {', or '.join(remedies)}. "
        "verbose=1 shows how far it is."
    )
