"""Ask and tell: preferential optimisation of what only a judge can compare."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

from skpref._parameters import check_number
from skpref._validation import check_outcomes
from skpref.optimize import _model
from skpref.optimize._configuration import configure, describe, seed_of
from skpref.optimize._design import initial_duel
from skpref.optimize._journal import Journal, check_header, header
from skpref.optimize._run import Items, Run, dump_memory, exclusion, load_memory
from skpref.optimize._space import make_space
from skpref.optimize._strategies import View, best_seen, propose, random_duel

# After a skip, until something is told, no duel this close to the skipped one is asked (unit
# cube, times the root of the number of features); afterwards only that duel itself is left out.
_NEAR = 0.02
# By default the hyperparameters are learned anew once the duels have grown by this share.
_GROWTH = 0.04


class Told(NamedTuple):
    """One entry of ``history_``.

    Attributes
    ----------
    duel : ndarray of shape (2, d) or tuple of two dicts
    outcome : int
        1 if the first won, else 0.
    """

    duel: object
    outcome: int


class PreferenceOptimizer:
    """Preferential Bayesian optimisation with any engine, incumbent rule and acquisition.

    Ask for a duel, show it, tell who won. `HallucinationBelieverOptimizer` is the one to use;
    this class also runs the methods that paper 002 [1]_ compares it with, which
    ``skpref.optimize.STRATEGIES`` lists: ``PreferenceOptimizer(space,
    **STRATEGIES["EP-MUC"]._asdict())``.

    Parameters
    ----------
    space : array-like of shape (d, 2), or dict
        Bounds, a row (low, high) for each feature; items are then arrays (d,). Or a dict of name
        to a frozen ``scipy.stats`` distribution (its cdf maps it to the unit interval, so a
        ``loguniform`` is searched on a log scale), a tuple (low, high) (two ints: integers, both
        included), or a list of choices (increasing numbers are ordered, others are
        categories); items are then dicts.
    inference : {"hallucination", "laplace", "ep", "gibbs", "hmc"} or engine
        Of the posterior that the acquisition sees. A hallucination is the GP given one draw of
        the noisy margins.
    incumbent : {"last_winner", "posterior_mean", "thompson", "random", "joint"}
        First item of the next duel. "posterior_mean" is the largest one among the items seen;
        "joint" lets both items maximise the acquisition.
    acquisition : str or callable
        What the second item maximises: "ei", "log_ei", "pi" (probability of improvement), "ucb"
        (√β = 2), "mean"; of its duel with the first "bvei", "muc", "eubo", "eiig", "duel_ucb";
        "thompson" (a draw of the function), "random". A callable gets ``(posterior, X,
        incumbent)`` in unit-cube rows and returns (n,) values.
    kernel : sklearn kernel, default=None
        On rows of the unit cube (categories one-hot). None: Matérn-3/2, unit amplitude, one
        lengthscale a column.
    noise_variance : "learn" or float, default="learn"
        σ² of each utility at each presentation, in units of the kernel's amplitude.
    lengthscale_prior : (median, deviation) or None, default=(0.5, 0.75)
        Log-normal prior on the unit cube's lengthscales; deviation of the logarithm.
    n_initial : int, default=None
        Number of duels before the model is used; those told count. None: 3 d.
    initial_duels : array-like of shape (n, 2, d) or list of pairs of dicts, default=None
        Asked first; the rest of the initial duels are Sobol points.
    refit_every : int, default=None
        Duels between two fits of the hyperparameters; None: often at first, then more rarely.
    candidates : array-like of shape (n, d), default=None
        A pool to choose from, instead of ``space``.
    journal : path, default=None
        File to which every event is written before the call returns. If it exists the run goes
        on from its end, with the very same next question.
    random_state : int, RandomState instance, Generator or None, default=None
        The same seed and answers give the same questions.

    Attributes
    ----------
    history_ : list of Told
        Duels and outcomes in the order in which they were told.
    incumbent_ : ndarray of shape (d,) or dict
        First item of the next duel as the rule has it ("last_winner" and "posterior_mean";
        the last winner for the other rules).
    posterior_ : Posterior
        Of the told duels, on unit-cube rows (`to_unit`). With hallucinations it is EP's.
    n_told_ : int

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
        space=None,
        *,
        inference="hallucination",
        incumbent="posterior_mean",
        acquisition="log_ei",
        kernel=None,
        noise_variance="learn",
        lengthscale_prior=_model.LENGTHSCALE_PRIOR,
        n_initial=None,
        initial_duels=None,
        refit_every=None,
        candidates=None,
        journal=None,
        random_state=None,
    ):
        self._space = make_space(space, candidates)
        options = {
            "inference": inference,
            "incumbent": incumbent,
            "acquisition": acquisition,
            "kernel": kernel,
            "noise_variance": noise_variance,
            "lengthscale_prior": lengthscale_prior,
            "n_initial": n_initial,
            "refit_every": refit_every,
        }
        self._configuration = configure(self._space, options)
        self._items = Items(self._space)
        self._initial = [self._pair(duel) for duel in ([] if initial_duels is None else initial_duels)]
        initial = [self._dump(pair) for pair in self._initial]
        self._run = Run(_model.Memory(self._configuration.spec.theta))
        self._past = []
        self._fitted = None
        seed = seed_of(random_state)
        self._journal = None if journal is None else Journal(journal)
        self._seed = self._open(describe(self._space, options, initial), seed)

    # -- the loop ------------------------------------------------------------------------

    def ask(self, n=None):
        """The next duel, or the next n for judges in parallel.

        Asking again without telling gives the same duels.

        Parameters
        ----------
        n : int, optional
            Number of duels; each comes from a hallucination of its own.

        Returns
        -------
        ndarray of shape (2, d), or tuple of two dicts
            Incumbent first. With ``n``: an array (n, 2, d), or a list of pairs.

        Raises
        ------
        ValueError
            If no duel is left (every pair of a small pool is pending or was skipped).
        """
        wanted = 1 if n is None else check_number("n", n, low=1, integer=True)
        if len(self._run.pending) < wanted:
            later = self._generate(wanted)
            duels = later.pending[len(self._run.pending) :]
            self._write(
                {
                    "type": "ask",
                    "duels": [self._dump(duel) for duel in duels],
                    "counter": later.counter,
                    "memory": dump_memory(later.memory),
                }
            )
            self._run = later
        duels = [self._show(duel) for duel in self._run.pending[:wanted]]
        return self._space.pack(duels[0]) if n is None else self._space.pack_many(duels)

    def tell(self, duel, outcome):
        """Tell who won.

        Parameters
        ----------
        duel : array-like of shape (2, d), or pair of dicts
            Any duel of two different items of the space, asked for or not. Told again, it is one
            more answer; answers may contradict each other.
        outcome : {1, 0, -1} or bool
            1 or True: the first won; 0, -1 or False: the second.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the items are equal, not finite or outside the space, or the outcome is no such
            value. Nothing is changed then.
        """
        won = int(check_outcomes([outcome], 1)[0][0])
        first, second = self._pair(duel)
        self._write(
            {
                "type": "tell",
                "duel": self._dump((first, second)),
                "outcome": won,
                "memory": dump_memory(self._run.memory),
            }
        )
        self._past.append(self._run)
        self._run = self._run.tell(first, second, won)
        self._fitted = None
        if self._modelled:
            self._fit()
        return self

    def skip(self, duel):
        """Turn a duel down: it and its like are not asked next.

        Parameters
        ----------
        duel : array-like of shape (2, d), or pair of dicts

        Returns
        -------
        self
        """
        first, second = self._pair(duel)
        record = {"type": "skip", "duel": self._dump((first, second))}
        self._write({**record, "memory": dump_memory(self._run.memory)})
        self._past.append(self._run)
        self._run = self._run.skip(first, second)
        return self

    def undo(self):
        """Take back the last `tell` or `skip`: what was pending before it is asked again.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is nothing left to take back.
        """
        if not self._past:
            raise ValueError("There is nothing to undo: no duel was told or skipped.")
        self._write({"type": "undo"})
        self._run = self._past.pop()
        self._fitted = None
        return self

    def run(self, compare, n_duels, callback=None, progress=False):
        """Ask and tell until ``n_duels`` more duels are told.

        Parameters
        ----------
        compare : callable
            ``compare(first, second)`` → outcome as in `tell`, or None to skip.
        n_duels : int
        callback : callable, optional
            Called with the optimizer after each duel; if it returns True the run stops.
        progress : bool, default=False
            Show a progress bar, if tqdm is installed.

        Returns
        -------
        ndarray of shape (d,) or dict
            `recommend`, at the end.
        """
        check_number("n_duels", n_duels, low=1, integer=True)
        end = self.n_told_ + n_duels
        with _Bar(n_duels, progress) as bar:
            while self.n_told_ < end:
                duel = self.ask()
                outcome = compare(duel[0], duel[1])
                if outcome is None:
                    self.skip(duel)
                    continue
                self.tell(duel, outcome)
                bar.update()
                if callback is not None and callback(self) is True:
                    break
        return self.recommend()

    # -- results -------------------------------------------------------------------------

    def recommend(self):
        """The item of the largest posterior mean among those of the told duels.

        Raises
        ------
        NotFittedError
            If no duel was told.
        """
        return self._item_at(best_seen(_model.gaussian_posterior(self._fit()), self._seen()))

    @property
    def incumbent_(self):
        """First item of the next duel, by the rule."""
        if self._configuration.strategy.incumbent == "posterior_mean":
            return self.recommend()
        self._check_told()
        return self._copy(self._run.outcomes()[0][-1])

    @property
    def history_(self):
        """Told duels and outcomes, oldest first."""
        return [Told(self._space.pack(self._show((a, b))), won) for a, b, won in self._run.told]

    @property
    def n_told_(self):
        """Number of duels told."""
        return len(self._run.told)

    @property
    def posterior_(self):
        """Posterior of the told duels, on unit-cube rows."""
        fit = self._fit()
        if self._configuration.hallucinating:
            return _model.gaussian_posterior(fit)
        return _model.posterior_of(self._configuration.spec, fit, self._generator(0))

    def to_unit(self, items):
        """Unit-cube rows (n, n_columns) of items, as `posterior_` and the kernel see them."""
        return np.array([self._space.to_row(item) for item in items])

    # -- the next question ---------------------------------------------------------------

    @property
    def _modelled(self):
        return 0 < self._configuration.n_initial <= self.n_told_ or (
            self._configuration.n_initial == 0 < self.n_told_
        )

    def _generator(self, counter):
        return np.random.default_rng([self._seed, counter])

    def _generate(self, wanted):
        if self._modelled:
            self._fit()
        run = self._run
        while len(run.pending) < wanted:
            run = self._next(run)
        return run

    def _next(self, run):
        counter, rng = run.counter + 1, self._generator(run.counter + 1)
        near = _NEAR * np.sqrt(self._space.n_columns)
        allowed = exclusion(run, self._items, near)
        n_met = len(run.told) + len(run.pending)
        if n_met < max(self._configuration.n_initial, len(self._initial)) or not run.told:
            return run.ask([self._designed(run, allowed, rng)], counter, run.memory)
        memory, fit = run.memory, self._fit()

        def draw():
            nonlocal memory
            if not self._configuration.hallucinating:
                return _model.posterior_of(self._configuration.spec, fit, rng)
            posterior, margins = _model.hallucinate(fit, memory.margins, rng)
            memory = replace(memory, margins=margins)
            return posterior

        winners, _ = run.outcomes()
        last_winner = self._items.rows[winners[-1]]
        gaussian = _model.gaussian_posterior(fit)
        view = View(self._space, self._seen(), last_winner, gaussian, draw, allowed, rng)
        found = self._or_any(propose(self._configuration.strategy, view), run, rng)
        duel = tuple(self._items.add_row(row) for row in found)
        return run.ask([duel], counter, memory)

    def _designed(self, run, allowed, rng):
        for duel in self._initial[run.counter :]:
            return duel
        rows = initial_duel(self._space, self._seed, run.counter - len(self._initial))
        if not allowed(rows[0], rows[1][None])[0]:
            rows = self._or_any(random_duel(self._space, allowed, rng), run, rng)
        return tuple(self._items.add_row(row) for row in rows)

    def _or_any(self, found, run, rng):
        """Where every duel was skipped before, all but the last skipped are free again."""
        if found is None and run.skipped:
            allowed = exclusion(replace(run, skipped=run.skipped[-1:]), self._items, 0.0)
            found = random_duel(self._space, allowed, rng)
        if found is None:
            raise ValueError(
                "No duel is left to ask: every other pair is pending or was just skipped. Tell a "
                "pending duel, undo the skip, or give more candidates."
            )
        return found

    def _fit(self):
        """The fit of the told duels; once the model is in use its hyperparameters go on."""
        self._check_told()
        if self._fitted is None:
            winner, loser = self._run.outcomes()
            memory, spec = self._run.memory, self._configuration.spec
            every = self._configuration.refit_every
            due = len(winner) >= memory.fitted_at + (every or 1 + int(_GROWTH * len(winner)))
            learning = due and self._modelled or memory.fitted_at == 0
            self._fitted, memory = _model.fit(
                spec, memory, self._items.rows, winner, loser, learning
            )
            if self._modelled:
                self._run = replace(self._run, memory=memory)
        return self._fitted

    # -- items ---------------------------------------------------------------------------

    def _check_told(self):
        if not self._run.told:
            raise NotFittedError("No duel was told yet: ask(), then tell(duel, outcome).")

    def _pair(self, duel):
        try:
            first, second = duel
        except (TypeError, ValueError):
            raise ValueError(
                "A duel is a pair of items, as ask() returns it: an array of shape (2, d) or two "
                f"dicts, got {duel!r}."
            ) from None
        for item in (first, second):
            self._space.to_row(item)  # both are sound before either is taken in
        pair = self._items.add(first), self._items.add(second)
        if pair[0] == pair[1]:
            raise ValueError(f"A duel needs two different items, got {first!r} twice.")
        return pair

    def _seen(self):
        told = np.array([duel[:2] for duel in self._run.told], dtype=np.intp)
        return self._items.rows[np.unique(told)]

    def _copy(self, index):
        return self._items.items[index].copy()

    def _show(self, duel):
        return [self._copy(index) for index in duel]

    def _item_at(self, row):
        return self._copy(self._items.add_row(row))

    def _dump(self, duel):
        return [self._space.dump(self._items.items[index]) for index in duel]

    def _load(self, duel):
        return tuple(self._items.add(self._space.load(values)) for values in duel)

    # -- the journal ---------------------------------------------------------------------

    def _open(self, configuration, seed):
        """Begin or replay the journal; the seed of the run."""
        records = [] if self._journal is None else self._journal.read()
        if records:
            seed = check_header(records[0], configuration, seed, self._journal.path)
            for number, record in enumerate(records[1:], start=2):
                self._replay(record, number)
            return seed
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._write(header(configuration, seed))
        return seed

    def _write(self, record):
        if self._journal is not None:
            self._journal.append(record)

    def _replay(self, record, number):
        try:
            _REPLAY[record["type"]](self, record)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"Line {number} of the journal {self._journal.path} does not fit the run before "
                f"it ({type(error).__name__}: {error})."
            ) from error

    def _replay_ask(self, record):
        duels = [self._load(duel) for duel in record["duels"]]
        self._run = self._run.ask(duels, record["counter"], load_memory(record["memory"]))

    def _remember(self, record):
        self._run = replace(self._run, memory=load_memory(record["memory"]))
        self._past.append(self._run)
        return self._load(record["duel"])

    def _replay_tell(self, record):
        self._run = self._run.tell(*self._remember(record), record["outcome"])

    def _replay_skip(self, record):
        self._run = self._run.skip(*self._remember(record))

    def _replay_undo(self, record):
        self._run = self._past.pop()


_REPLAY = {
    "ask": PreferenceOptimizer._replay_ask,
    "tell": PreferenceOptimizer._replay_tell,
    "skip": PreferenceOptimizer._replay_skip,
    "undo": PreferenceOptimizer._replay_undo,
}


class HallucinationBelieverOptimizer(PreferenceOptimizer):
    """placeholder"""


class _Bar:
    """tqdm's bar, or nothing."""

    def __init__(self, total, shown):
        self._bar = None
        if shown:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = tqdm(total=total, unit="duel")

    def __enter__(self):
        return self

    def update(self):
        if self._bar is not None:
            self._bar.update()

    def __exit__(self, *_):
        if self._bar is not None:
            self._bar.close()
