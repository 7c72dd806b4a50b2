"""Ask and tell: learning a utility in few answers, from a pool of duels."""

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from skpref._parameters import check_choice, check_number
from skpref._posterior import Posterior
from skpref._random import RandomLike, seed_of
from skpref.active import STRATEGIES
from skpref.optimize._answers import Said
from skpref.optimize._asking import Asking
from skpref.optimize._configuration import check_writable, describe
from skpref.optimize._duel_pool import duel_pool
from skpref.optimize._pool_questions import PoolConfiguration, PoolQuestions, Takes
from skpref.optimize._session import Session


class ActiveLearner(Asking):
    """Ask the duels of a pool that tell most about the whole utility.

    Ask for a duel, show it, tell who won; the estimator is fitted to what was told, and `query`
    chooses the next duel in view of it and of those that are pending. Where the best item alone is
    wanted, `HallucinationBelieverOptimizer` finds it in fewer answers.

    Parameters
    ----------
    estimator : PairwisePreferenceRegressor, or a pipeline that ends in one
        Cloned, and fitted anew after each answer.
    pool : array-like
        Duels (n_duels, 2, n_features), a DuelFrame of numbers, or (n_duels, 2) positions or names
        in the estimator's ``items``. Items, as floats (n_items, n_features), DataFrame or
        ItemTable, stand for all duels between them, shown either way round.
    strategy : str or callable, default="bald"
        As in `skpref.active.query`.
    options : dict, default=None
        Further arguments of the strategy, such as ``{"members": 20}``.
    n_initial : int, default=5
        Duels drawn at random before the strategy is used; those told count.
    repeat : bool, default=False
        Whether a duel may be asked again once it was answered.
    journal : path, default=None
        SQLite database to which every event is written before the call returns, as of
        `PreferenceOptimizer`. If it exists the run goes on from its end, with the very same next
        question. `read_journal` gives its history.
    random_state : int, RandomState instance, Generator or None, default=None
        The same seed and answers give the same questions; it also seeds an estimator whose
        ``random_state`` is None.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to what was told.
    posterior_ : Posterior
        That of ``estimator_``.
    history_ : list of Told
        Duels and outcomes in the order in which they were told.
    n_told_ : int
    pending_ : ndarray of shape (n, 2, d), or list of tuples of names
        Duels asked and neither answered nor skipped, oldest first.

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.optimize import ActiveLearner
    >>> sizes = np.linspace(0.0, 1.0, 12)[:, None]
    >>> learner = ActiveLearner(PairwisePreferenceRegressor(), sizes, random_state=0)
    >>> for _ in range(15):
    ...     duel = learner.ask()
    ...     learner = learner.tell(duel, abs(duel[0, 0] - 0.6) < abs(duel[1, 0] - 0.6))
    >>> learner.estimator_.predict([[0.1], [0.6]]).argmax()
    np.int64(1)
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        pool: Any,
        strategy: str | Callable = "bald",
        *,
        options: dict | None = None,
        n_initial: int = 5,
        repeat: bool = False,
        journal: str | PathLike | None = None,
        random_state: RandomLike = None,
    ):
        estimator = clone(estimator)
        table = estimator.get_params().get("items")
        found = duel_pool(pool, table)
        self._space = found.space
        if not self._space.has_features and table is None:
            raise ValueError(
                "The items of the pool have no features; the estimator needs the same table as "
                "items=."
            )
        if not callable(strategy):
            check_choice("strategy", strategy, STRATEGIES)
        n_initial = int(check_number("n_initial", n_initial, low=0, integer=True))
        options, repeat = dict(options or {}), bool(repeat)
        described = {
            "learner": type(self).__name__,
            "duels": found.describe(),
            "estimator": estimator,
            "strategy": strategy,
            "options": options,
            "n_initial": n_initial,
            "repeat": repeat,
        }
        if journal is not None:
            check_writable(self._space, describe(self._space, described))
        configuration = PoolConfiguration(
            found, estimator, strategy, options, n_initial, repeat, Takes(estimator)
        )
        self._session = Session(
            self._space,
            configuration,
            [],
            journal,
            partial(describe, self._space, described),
            seed_of(random_state),
            PoolQuestions,
        )

    def __repr__(self) -> str:
        state, configuration = self._session.known, self._session.configuration
        return (
            f"<{type(self).__name__}: {len(configuration.pool.pairs)} duels of "
            f"{len(self._space.pool)} items, strategy={configuration.strategy!r}; duels told: "
            f"{len(state.told)}, pending: {len(state.pending)}>"
        )

    def ask(self, n: int | None = None) -> Any:
        """The next duel, or the next n for judges in parallel.

        Asking again without telling gives the same; answers may come in any order.

        Parameters
        ----------
        n : int, optional
            Number of duels, each chosen in view of those before it.

        Returns
        -------
        ndarray of shape (2, d), or tuple of two names
            With ``n``: an array (n, 2, d), or a list of tuples.

        Raises
        ------
        ValueError
            If none is left.
        """
        wanted = 1 if n is None else check_number("n", n, low=1, integer=True)
        asked = self._session.pose(int(wanted), 2)
        return self._space.pack(asked[0]) if n is None else self._space.pack_many(asked)

    def tell(self, duel: Any, outcome: Any) -> Self:
        """Tell who won.

        Parameters
        ----------
        duel : array-like of shape (2, d), or two names
            Any two different items of the pool, asked for or not, in the order in which they were
            shown. Told again, it is one more answer.
        outcome : {1, 0, -1}, bool, "tie", 0.5 or None
            1 or True: the first won; 0, -1 or False: the second; "tie" or 0.5: no difference, where
            the estimator has ties. None: no answer, as `skip`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the items are equal or not in the pool, or the outcome is none of these or one that
            the estimator does not take. Nothing is changed then.
        AlreadyAnswered
            If the duel was pending when this object last looked, and another process has answered
            it since. Nothing is recorded then.
        """
        if outcome is None:
            return self.skip(duel)
        self._session.record_answer(duel, Said(outcome))
        self._session.tried = None
        return self

    # -- results -------------------------------------------------------------------------

    @property
    def estimator_(self) -> BaseEstimator:
        """The estimator, fitted to what was told."""
        return self._session.fitted()

    @property
    def posterior_(self) -> Posterior:
        """The posterior of what was told."""
        return self._session.posterior()

    def recommend(self) -> Any:
        """The item of the largest posterior mean in the pool.

        Raises
        ------
        NotFittedError
            If nothing was told.
        """
        items = [self._space.to_item(row) for row in self._space.pool]
        features = np.array(items)
        asked = features if self._space.has_features else np.arange(len(items))
        mean = self.estimator_.predict(asked)
        return self._space.present(items[int(np.argmax(mean))])
