"""The optimizer to use: ask and tell by hallucination believer."""

from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any

from sklearn.gaussian_process.kernels import Kernel

from skpref._random import RandomLike
from skpref.optimize._model import LENGTHSCALE_PRIOR, NOISE_BOUNDS, NOISE_PRIOR, TIE_BOUNDS
from skpref.optimize._optimizer import PreferenceOptimizer


class HallucinationBelieverOptimizer(PreferenceOptimizer):
    """Preferential Bayesian optimisation by hallucination believer (Takeno et al. 2023 [1]_).

    Ask for a duel, show it, tell who won; after some dozens of answers `recommend` is near the
    best. The first item of a duel is the winner of the last one. For the second, one draw of
    the noisy margins turns the posterior, a skew GP, into an ordinary GP, on which any
    acquisition of ordinary Bayesian optimisation is maximised (paper, Alg. 1). So the question
    after an answer comes in some hundredths of a second. Of a set every further item has a draw
    of its own.

    Parameters
    ----------
    space : array-like of shape (d, 2) or dict, default=None
        Bounds, a row (low, high) for each feature; items are then arrays (d,). Or a dict of
        named parameters, see `PreferenceOptimizer`; items are then dicts.
    acquisition : {"log_ei", "ei", "ucb", "mean", "pi"} or callable, default="log_ei"
        "ucb" has √β = 2. Improvement is over the largest mean, under the hallucination, of the
        items seen. A callable gets ``(posterior, X, incumbent)`` in unit-cube rows and returns
        (n,) values. Those of the duel ("muc", "bvei", ...) are possible, and worse [1]_.
    incumbent : {"last_winner", "posterior_mean"}, default="last_winner"
        "posterior_mean" explores less and suits a judge who must see the best at all times.
    kernel, noise_variance, noise_variance_bounds, tie_threshold, tie_threshold_bounds, \
    order_effect, order_effect_bounds, lengthscale_prior, likelihood
        See `PreferenceOptimizer`.
    n_initial, initial_duels, refit_every
        See `PreferenceOptimizer`. The paper's settings are ``kernel=RBF(...)``,
        ``noise_variance=1e-4``, ``noise_variance_bounds="fixed"``, ``acquisition="ei"``,
        ``refit_every=10``; the defaults reach the optimum in fewer duels.
    candidates, journal, random_state
        See `PreferenceOptimizer`.

    Attributes
    ----------
    history_, incumbent_, posterior_, n_told_, pending_
        See `PreferenceOptimizer`.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref.optimize import HallucinationBelieverOptimizer
    >>> def taste(x):
    ...     return -((x[0] - 3.0) ** 2) - (x[1] - 0.5) ** 2
    >>> optimizer = HallucinationBelieverOptimizer([[0.0, 10.0], [0.0, 1.0]], random_state=0)
    >>> for _ in range(25):
    ...     duel = optimizer.ask()
    ...     optimizer = optimizer.tell(duel, taste(duel[0]) > taste(duel[1]))
    >>> bool(np.abs(optimizer.recommend() - [3.0, 0.5]).max() < 0.3)
    True
    """

    def __init__(
        self,
        space: Any = None,
        *,
        acquisition: str | Callable = "log_ei",
        incumbent: str = "last_winner",
        kernel: Kernel | None = None,
        noise_variance: float | str = NOISE_PRIOR[0],
        noise_variance_bounds: tuple[float, float] | str = NOISE_BOUNDS,
        tie_threshold: float | None = None,
        tie_threshold_bounds: tuple[float, float] | str = TIE_BOUNDS,
        order_effect: float = 0.0,
        order_effect_bounds: tuple[float, float] | str = "fixed",
        lengthscale_prior: tuple[float, float] | str | None = LENGTHSCALE_PRIOR,
        likelihood: Any = None,
        n_initial: int | None = None,
        initial_duels: Iterable | None = None,
        refit_every: int | None = None,
        candidates: Any = None,
        journal: str | PathLike | None = None,
        random_state: RandomLike = None,
    ):
        super().__init__(
            space,
            inference="hallucination",
            incumbent=incumbent,
            acquisition=acquisition,
            kernel=kernel,
            noise_variance=noise_variance,
            noise_variance_bounds=noise_variance_bounds,
            tie_threshold=tie_threshold,
            tie_threshold_bounds=tie_threshold_bounds,
            order_effect=order_effect,
            order_effect_bounds=order_effect_bounds,
            lengthscale_prior=lengthscale_prior,
            likelihood=likelihood,
            n_initial=n_initial,
            initial_duels=initial_duels,
            refit_every=refit_every,
            candidates=candidates,
            journal=journal,
            random_state=random_state,
        )
