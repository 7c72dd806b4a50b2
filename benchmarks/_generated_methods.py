"""Methods of ``generated_regret.py``: name → how many items a question shows, and the optimizer."""

from collections.abc import Callable
from typing import Any, NamedTuple

from skpref.optimize import STRATEGIES, HallucinationBelieverOptimizer, PreferenceOptimizer


class Method(NamedTuple):
    """An optimizer and the form of its questions.

    Attributes
    ----------
    build : callable
        ``(problem, seed)`` → optimizer.
    size : int
        Number of items shown.
    worst : bool
        Whether the worst is told beside the best.
    designs : bool
        Whether it asks its own first questions in place of random ones.
    """

    build: Callable
    size: int = 2
    worst: bool = False
    designs: bool = False


def _of(size=2, worst=False, designs=False, **arguments: Any) -> Method:
    def build(problem, seed):
        made = {**problem.arguments, **arguments}
        return PreferenceOptimizer(**made, random_state=seed)

    return Method(build, size, worst, designs)


def _believer(problem, seed):
    return HallucinationBelieverOptimizer(**problem.arguments, random_state=seed)


SHORT = {"lengthscale_prior": (0.2, 0.75)}
_EI = {"inference": "hallucination", "acquisition": "log_ei"}
METHODS = {
    "believer": Method(_believer),
    "believer-4": Method(_believer, 4),
    **{name: _of(**strategy._asdict()) for name, strategy in STRATEGIES.items()},
    **{
        f"{name} short": _of(**strategy._asdict(), **SHORT) for name, strategy in STRATEGIES.items()
    },
    "mean-EI": _of(**_EI, incumbent="posterior_mean"),
    "mean-EI short": _of(**_EI, incumbent="posterior_mean", **SHORT),
    "thompson-EI": _of(**_EI, incumbent="thompson"),
    "many draws": _of(inference="hmc", incumbent="posterior_mean", acquisition="log_ei"),
    "many draws last": _of(inference="hmc", incumbent="last_winner", acquisition="log_ei"),
    "own design": _of(**_EI, incumbent="posterior_mean", designs=True),
    "EUBO-4": _of(**STRATEGIES["EUBO"]._asdict(), size=4),
    "EUBO-4 short": _of(**STRATEGIES["EUBO"]._asdict(), size=4, **SHORT),
    "DoubleTS-4": _of(**STRATEGIES["DoubleTS"]._asdict(), size=4),
    "DoubleTS-4 short": _of(**STRATEGIES["DoubleTS"]._asdict(), size=4, **SHORT),
}
