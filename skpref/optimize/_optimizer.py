"""Ask and tell: preferential optimisation of what only a judge can compare."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from skpref._parameters import check_number
from skpref._posterior import Posterior
from skpref._random import RandomLike, seed_of
from skpref._validation import check_outcomes
from skpref.optimize._configuration import check_writable, configure, describe
from skpref.optimize._loop import Loop
from skpref.optimize._model import LENGTHSCALE_PRIOR, NOISE_BOUNDS, NOISE_PRIOR
from skpref.optimize._pool import Pool
from skpref.optimize._questions import check_told
from skpref.optimize._session import Session
from skpref.optimize._space import make_space
from skpref.optimize._state import Told


class PreferenceOptimizer(Loop):
    """Preferential Bayesian optimisation with any engine, incumbent rule and acquisition.

    Ask for a duel, show it, tell who won. `HallucinationBelieverOptimizer` is the one to use;
    this class also runs the methods that the paper [1]_ compares it with, which
    ``skpref.optimize.STRATEGIES`` lists: ``PreferenceOptimizer(space,
    **STRATEGIES["EP-MUC"]._asdict())``.

    Parameters
    ----------
    space : array-like of shape (d, 2) or dict, default=None
        Bounds, a row (low, high) for each feature; items are then arrays (d,). Or a dict of name
        to a frozen ``scipy.stats`` distribution (its cdf maps it to the unit interval, so a
        ``loguniform`` is searched on a log scale), a tuple (low, high) (two ints: integers, both
        included), or a list of choices (increasing numbers are ordered, others are
        categories); items are then dicts.
    inference : str or engine, default="hallucination"
        Of the posterior that the acquisition sees: "hallucination" (the GP given one draw of the
        noisy margins), "laplace", "ep", "gibbs", "hmc" or an engine of `skpref.inference`.
    incumbent : str, default="posterior_mean"
        First item of the next duel: "last_winner", "posterior_mean", "thompson", "random" or
        "joint". "posterior_mean" is the largest one among the items seen;
        "joint" lets both items maximise the acquisition.
    acquisition : str or callable, default="log_ei"
        What the second item maximises: "ei", "log_ei", "pi" (probability of improvement), "ucb"
        (√β = 2), "mean"; of its duel with the first "bvei", "muc", "eubo", "eiig", "duel_ucb";
        "thompson" (a draw of the function), "random". A callable gets ``(posterior, X,
        incumbent)`` in unit-cube rows and returns (n,) values.
    kernel : sklearn kernel, default=None
        On rows of the unit cube (categories one-hot). None: Matérn-3/2, unit amplitude, one
        lengthscale a column.
    noise_variance : float or "learn", default=3e-3
        σ² of each utility at each presentation, in units of the kernel's amplitude. The starting
        value where it is learned, with a broad log-normal prior of median 0.003; "learn" stands
        for the default.
    noise_variance_bounds : (float, float) or "fixed", default=(1e-5, 1.0)
        Bounds of the search; "fixed" holds the noise.
    lengthscale_prior : (median, deviation), "lognormal" or None, default=(0.5, 0.75)
        As in `PairwisePreferenceRegressor`, in the units of the rows that the kernel sees: here
        those of the unit cube.
    likelihood : Likelihood, default=None
        Of an answer given the utilities; None: the probit of the noise above.
    n_initial : int, default=None
        Number of duels before the model is used; those told count. None: 3 d.
    initial_duels : array-like of shape (n, 2, d) or list of pairs of dicts, default=None
        Asked first; the rest of the initial duels are Sobol points.
    refit_every : int, default=None
        Duels between two fits of the hyperparameters; None: often at first, then more rarely.
    candidates : array-like or DataFrame of shape (n, d), or ItemTable, default=None
        A pool to choose from, instead of ``space``. If it has names (those of the table, or the
        index of a pandas frame unless it is the default one, which just counts the rows), items
        are these names, else rows of features. Candidates of equal features are one item, shown
        by the first of their names. Those of ``ItemTable.from_names`` have no features and share
        nothing (`Identity` kernel).
    journal : path, default=None
        SQLite database to which every event is written before the call returns. If it exists the
        run goes on from its end, with the very same next question. Processes of one machine may
        share it (`AlreadyAnswered`); `read_journal` gives its history.
    random_state : int, RandomState instance, Generator or None, default=None
        The same seed and answers give the same questions.

    Attributes
    ----------
    history_ : list of Told
        Duels and outcomes in the order in which they were told.
    incumbent_ : ndarray of shape (d,), dict or name
        First item of the next duel as the rule has it ("last_winner" and "posterior_mean";
        the last winner for the other rules).
    posterior_ : Posterior
        Of the told duels, on unit-cube rows (`to_unit`), where candidates have texts as names also
        by these. With hallucinations it is EP's.
    n_told_ : int
    pending_ : ndarray of shape (n, 2, d) or list of pairs
        Duels asked for and neither answered nor skipped, oldest first, as `ask` with ``n`` gives
        them; with a journal also those of other processes.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.

    Examples
    --------
    >>> from skpref.optimize import STRATEGIES, PreferenceOptimizer
    >>> optimizer = PreferenceOptimizer(
    ...     [[0.0, 1.0]], **STRATEGIES["EP-EI"]._asdict(), random_state=0
    ... )
    >>> best = optimizer.run(lambda a, b: abs(a[0] - 0.3) < abs(b[0] - 0.3), n_duels=12)
    >>> bool(abs(best[0] - 0.3) < 0.1)
    True
    """

    def __init__(
        self,
        space: Any = None,
        *,
        inference: Any = "hallucination",
        incumbent: str = "posterior_mean",
        acquisition: str | Callable = "log_ei",
        kernel: Kernel | None = None,
        noise_variance: float | str = NOISE_PRIOR[0],
        noise_variance_bounds: tuple[float, float] | str = NOISE_BOUNDS,
        lengthscale_prior: tuple[float, float] | str | None = LENGTHSCALE_PRIOR,
        likelihood: Any = None,
        n_initial: int | None = None,
        initial_duels: Iterable | None = None,
        refit_every: int | None = None,
        candidates: Any = None,
        journal: str | PathLike | None = None,
        random_state: RandomLike = None,
    ):
        self._space = make_space(space, candidates)
        initial = [] if initial_duels is None else list(initial_duels)
        options = {
            "inference": inference,
            "incumbent": incumbent,
            "acquisition": acquisition,
            "kernel": kernel,
            "noise_variance": noise_variance,
            "noise_variance_bounds": noise_variance_bounds,
            "lengthscale_prior": lengthscale_prior,
            "likelihood": likelihood,
            "n_initial": n_initial,
            "refit_every": refit_every,
        }
        configuration = configure(self._space, options, len(initial))
        options |= configuration.resolved()
        if journal is not None:
            check_writable(self._space, describe(self._space, options))
        self._session = Session(
            self._space,
            configuration,
            initial,
            journal,
            partial(describe, self._space, options),
            seed_of(random_state),
        )

    def __repr__(self) -> str:
        state, strategy = self._session.known, self._session.configuration.strategy
        parts = [f"{name}={value!r}" for name, value in strategy._asdict().items()]
        return (
            f"<{type(self).__name__}: {self._space.n_dimensions} dimensions, {', '.join(parts)}; "
            f"duels told: {len(state.told)}, pending: {len(state.pending)}>"
        )

    # -- the loop ------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Any:
        """The next duel, or the next n for judges in parallel.

        Asking again without telling gives the same duels; their answers may come in any order.
        Of several processes on one journal each has its own; duels of one that has ended are
        asked again by the next to ask.

        Parameters
        ----------
        n : int, optional
            Number of duels; each comes from a hallucination of its own.

        Returns
        -------
        ndarray of shape (2, d), or tuple of two dicts or two names
            Incumbent first. With ``n``: an array (n, 2, d), or a list of pairs.

        Raises
        ------
        ValueError
            If no duel is left (every pair of a small pool is pending or was skipped), or the
            acquisition is NaN everywhere.
        """
        wanted = 1 if n is None else check_number("n", n, low=1, integer=True)
        duels = self._session.pose(wanted)
        return self._space.pack(duels[0]) if n is None else self._space.pack_many(duels)

    def tell(self, duel: Any, outcome: Any) -> Self:
        """Tell who won.

        Parameters
        ----------
        duel : array-like of shape (2, d), or pair of dicts, of names or of rows of a frame
            Any duel of two different items of the space, asked for or not, either way round.
            Told again, it is one more answer; answers may contradict each other.
        outcome : {1, 0, -1}, bool or None
            1 or True: the first won; 0, -1 or False: the second. None: no answer, as `skip`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the items are equal, not finite or outside the space, or the outcome is no such
            value. Nothing is changed then.
        AlreadyAnswered
            If the duel was pending when this object last looked, and another process has answered
            it since. Nothing is recorded then.
        """
        if outcome is None:
            return self.skip(duel)
        outcome = np.asarray([outcome])
        if outcome.size != 1:
            raise ValueError(f"One outcome is told at a time, got {outcome.size}: {outcome[0]}.")
        won = int(check_outcomes(outcome.reshape(1), 1)[0][0])
        self._session.record_answer(duel, won)
        self._session.tried = None
        return self

    def skip(self, duel: Any) -> Self:
        """Turn a duel down: neither it nor one close to it is asked next.

        Parameters
        ----------
        duel : array-like of shape (2, d), or pair of dicts, of names or of rows of a frame

        Returns
        -------
        self
        """
        self._session.record_refusal(duel)
        self._session.tried = None
        return self

    def undo(self) -> Self:
        """Take back the last `tell` or `skip`: what was pending before it is asked again.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is nothing left to take back.
        AlreadyAnswered
            If another process told, skipped or took back since this object last looked.
        """
        self._session.take_back()
        self._session.tried = None
        return self

    # -- results -------------------------------------------------------------------------

    def recommend(self) -> Any:
        """The item of the largest posterior mean among those of the told duels.

        Raises
        ------
        NotFittedError
            If no duel was told.
        """
        return self._session.recommended()

    @property
    def incumbent_(self) -> Any:
        """First item of the next duel, by the rule."""
        if self._session.configuration.strategy.incumbent == "posterior_mean":
            return self.recommend()
        state = self._session.state
        check_told(state)
        return self._session.show(state, [state.outcomes()[0][-1]])[0]

    @property
    def history_(self) -> list[Told]:
        """Told duels and outcomes, oldest first."""
        session, state = self._session, self._session.state
        return [Told(self._space.pack(session.show(state, t[:2])), t[2]) for t in state.told]

    @property
    def n_told_(self) -> int:
        """Number of duels told."""
        return len(self._session.state.told)

    @property
    def pending_(self) -> Any:
        """Duels asked for and neither answered nor skipped, oldest first."""
        session, state = self._session, self._session.state
        return self._space.pack_many([session.show(state, duel[:2]) for duel in state.pending])

    @property
    def posterior_(self) -> Posterior:
        """Of the told duels, on unit-cube rows; candidates also by texts that name them."""
        table = self._space.table() if isinstance(self._space, Pool) else None
        return replace(self._session.posterior(), table=table)

    def to_unit(self, items: Iterable) -> np.ndarray:
        """Unit-cube rows (n, n_columns) of items, as `posterior_` and the kernel see them."""
        return np.array([self._space.to_row(item) for item in self._space.listed(items)])


class HallucinationBelieverOptimizer(PreferenceOptimizer):
    """Preferential Bayesian optimisation by hallucination believer (Takeno et al. 2023 [1]_).

    Ask for a duel, show it, tell who won; after some dozens of answers `recommend` is near the
    best. The first item of a duel is the winner of the last one. For the second, one draw of
    the noisy margins turns the posterior, a skew GP, into an ordinary GP, on which any
    acquisition of ordinary Bayesian optimisation is maximised (paper, Alg. 1). So the question
    after an answer comes in some hundredths of a second.

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
    kernel, noise_variance, noise_variance_bounds, lengthscale_prior, likelihood
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
            lengthscale_prior=lengthscale_prior,
            likelihood=likelihood,
            n_initial=n_initial,
            initial_duels=initial_duels,
            refit_every=refit_every,
            candidates=candidates,
            journal=journal,
            random_state=random_state,
        )
