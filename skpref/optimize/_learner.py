"""Ask and tell: learning a utility in few answers, from a pool of duels."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from skpref._utils import RandomLike, check_choice, check_number, seed_of
from skpref.active import STRATEGIES
from skpref.data import take_rows
from skpref.gp import Posterior
from skpref.optimize._answers import AnswerArguments
from skpref.optimize._asking import Asking
from skpref.optimize._dimensions import plain_value
from skpref.optimize._pool_questions import (
    PoolConfiguration,
    PoolQuestions,
    duel_pool,
    final_estimator,
)
from skpref.optimize._session import Session, make_lease_claim
from skpref.optimize._spaces import item_title


class Question(NamedTuple):
    """A duel, and who is asked it.

    Attributes
    ----------
    user : str or int
    duel : ndarray of shape (2, d), or tuple of two names

    Examples
    --------
    >>> from skpref.optimize import Question
    >>> Question("ann", ("tea", "coffee")).user
    'ann'
    """

    user: str | int
    duel: Any


class ActiveLearner(Asking):
    """Ask the duels of a pool that tell most about the whole utility.

    Ask for a duel, show it, and tell who won. The estimator is fitted to these answers, and `query`
    chooses the next duel by it and by the pending ones. If you want the best item alone,
    `HallucinationBelieverOptimizer` finds it in fewer answers.

    Parameters
    ----------
    estimator : PairwisePreferenceRegressor, or a pipeline that ends in one
        A clone is fitted anew after each answer. ``users`` needs an estimator for several users, a
        CollaborativePreferenceRegressor.
    pool : array-like
        Duels: an array (n_duels, 2, n_features), a DuelFrame of numbers, or (n_duels, 2) positions
        (integers) or names in the estimator's ``items``, names also as a DataFrame. Or items:
        floats (n_items, n_features), a DataFrame or an ItemTable. Items stand for all duels between
        them, in either order. The estimator is fitted under the column names of a frame.
    strategy : str or callable, default="bald"
        As in `skpref.active.query`.
    options : dict, default=None
        Further arguments of the strategy, such as ``{"members": 20}``.
    n_initial : int, default=5
        Number of answers before the strategy is used. Until then duels are drawn at random.
    users : sequence of str or int, default=None
        Ids of the people who may be asked. Each may be asked every duel of the pool. Further people
        may come at any time by ``ask(user=...)`` or `tell`. A question is then a `Question`, a user
        and a duel, and `run` calls ``compare(user, duel)``. A pipeline passes users on to its last
        step, or where scikit-learn routes metadata by request. None: answers have no users.
    refit_every : int, default=1
        Hyperparameters are learned after every so many answers, and after each of the first ones.
        In between they are held.
    repeat : bool, default=False
        Whether a user may be asked an answered duel again.
    journal : path, default=None
        SQLite database to which every event is written before the call returns, as in
        `PreferenceOptimizer`. If it exists, the run goes on from its end, with the very same next
        question. `read_journal` gives its history.
    judge : str, default=None
        Name of who is asked here, as in `PreferenceOptimizer`: judges who share a journal are asked
        different questions. It says who holds a question, ``users`` whose taste it is about.
    lease_minutes : float, default=30.0
        Minutes after the last `ask` for which the questions of this judge are withheld from others.
    random_state : int, RandomState instance, Generator or None, default=None
        The same seed and answers give the same questions. It also seeds an estimator whose
        ``random_state`` is None.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the answers.
    posterior_ : Posterior
        That of ``estimator_``.
    history_ : list of HistoryEntry
        Duels and outcomes in the order of the answers.
    n_told_ : int
    pending_ : ndarray of shape (n, 2, d), list of tuples of names, or list of Question
        Questions without an answer or a skip, oldest first.

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

    Several users, asked in turn:

    >>> from skpref.collaborative import CollaborativePreferenceRegressor
    >>> model = CollaborativePreferenceRegressor(optimizer=None)
    >>> learner = ActiveLearner(model, sizes, users=["ann", "bob"], random_state=0)
    >>> best = {"ann": 0.6, "bob": 0.3}
    >>> for user in ["ann", "bob"] * 6:
    ...     question = learner.ask(user=user)
    ...     first, second = question.duel
    ...     likes_first = abs(first[0] - best[user]) < abs(second[0] - best[user])
    ...     learner = learner.tell(question, likes_first)
    >>> float(learner.recommend("ann")[0]) > float(learner.recommend("bob")[0])
    True
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        pool: Any,
        strategy: str | Callable = "bald",
        *,
        options: dict | None = None,
        n_initial: int = 5,
        users: Sequence[str | int] | None = None,
        refit_every: int = 1,
        repeat: bool = False,
        journal: str | PathLike | None = None,
        judge: str | None = None,
        lease_minutes: float = 30.0,
        random_state: RandomLike = None,
    ):
        estimator = clone(estimator)
        table = estimator.get_params().get("items")
        duels = duel_pool(pool, table)
        self._space = duels.space
        if not self._space.has_features and table is None:
            raise ValueError(
                "The items of the pool have no features; the estimator needs the same table as "
                "items=."
            )
        if not callable(strategy):
            check_choice("strategy", strategy, STRATEGIES)
        n_initial = int(check_number("n_initial", n_initial, low=0, integer=True))
        refit_every = int(check_number("refit_every", refit_every, low=1, integer=True))
        options, repeat = dict(options or {}), bool(repeat)
        people = None if users is None else _check_user_ids(users, estimator)
        if people is not None and strategy == "best_item":
            raise ValueError(
                "strategy='best_item' is of one utility, and users= are several. Use 'bald', "
                "'entropy', 'variance', 'committee' or 'random'."
            )
        configuration = PoolConfiguration(
            duels, estimator, strategy, options, n_initial, repeat, people, refit_every
        )
        arguments = {"learner": type(self).__name__, "duels": duels.describe()}
        arguments |= {k: part for k, part in configuration._asdict().items() if k != "pool"}
        self._session = Session(
            self._space,
            configuration,
            [],
            journal,
            arguments,
            seed_of(random_state),
            make_lease_claim(judge, lease_minutes),
            PoolQuestions,
        )

    def __repr__(self) -> str:
        state, configuration = self._session.last_state, self._session.configuration
        return (
            f"<{type(self).__name__}: {len(configuration.pool.pairs)} duels of "
            f"{len(self._space.pool)} items, strategy={configuration.strategy!r}; duels told: "
            f"{len(state.answers)}, pending: {len(state.pending)}>"
        )

    def _facts(self):
        state, configuration = self._session.last_state, self._session.configuration
        users = {} if configuration.users is None else {"users": len(configuration.users)}
        return {
            "pool": f"{len(configuration.pool.pairs)} duels of {len(self._space.pool)} items",
            **users,
            "strategy": configuration.strategy,
            "duels told": len(state.answers),
            "pending": len(state.pending),
        }

    def ask(self, n: int | None = None, *, user: str | int | None = None) -> Any:
        """Return the next duel, or the next n for judges in parallel.

        The question stays the same until something is told. Answers may come in any order.

        Parameters
        ----------
        n : int, optional
            Number of duels. Each is chosen with regard to those before it.
        user : str or int, optional
            The user to be asked, who need not be one of ``users``. None: the user whose answer
            tells most.

        Returns
        -------
        ndarray of shape (2, d), or tuple of two names
            With ``n``: an array (n, 2, d), or a list of tuples. With several users a `Question`,
            or a list of them.

        Raises
        ------
        ValueError
            If no duel is left.
        """
        return self._ask_questions(
            n, user=None if user is None else self._read_user(user, asked=True)
        )

    def tell(self, duel: Any, outcome: Any) -> Self:
        """Tell who won.

        Parameters
        ----------
        duel : array-like of shape (2, d), or two names
            Any two different items of the pool, in the order in which they were shown. They need
            not have been asked for. A duel that is told again counts as one more answer. With
            several users a `Question`, or a pair ``(user, duel)``.
        outcome : int, bool, "tie", 0.5 or None
            1 or True: the first won; 0, -1 or False: the second; "tie" or 0.5: no difference; or
            another label that the estimator takes, such as 2. None: no answer, as `skip`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the items are equal or not in the pool, or the outcome is none of these or one that
            the estimator does not take. Nothing is changed then.
        AlreadyAnswered
            If the duel was pending when this object last looked, and another judge has answered it
            since. Nothing is recorded then.
        """
        if outcome is None:
            return self.skip(duel)
        return self._record(duel, AnswerArguments(outcome))

    # -- users ---------------------------------------------------------------------------

    def _pack_question(self, user, shown):
        duel = super()._pack_question(user, shown)
        return duel if self._session.configuration.users is None else Question(user, duel)

    def _pack_questions(self, asked):
        if self._session.configuration.users is None:
            return super()._pack_questions(asked)
        return [self._pack_question(*each) for each in asked]

    def _split_question(self, question):
        if self._session.configuration.users is None:
            return None, question
        try:
            user, duel = question
        except (TypeError, ValueError):
            user = None
        if type(plain_value(user)) not in (str, int):
            raise ValueError(
                "A learner with users= is told a question as ask() returns it, or a pair (user, "
                f"duel) whose user is a text or an integer; got {question!r}."
            )
        return self._read_user(user, asked=True), duel

    def _read_user(self, user, asked=False):
        """Return the id of a user, checked; if ``asked`` the estimator must take the answers."""
        configuration = self._session.configuration
        if configuration.users is None:
            raise ValueError(f"user={user!r} needs a learner with users=, such as users=[].")
        return _check_user_ids([user], configuration.estimator if asked else None)[0]

    # -- results -------------------------------------------------------------------------

    @property
    def estimator_(self) -> BaseEstimator:
        """The estimator, fitted to what was told; a copy."""
        return deepcopy(self._session.fitted())

    @property
    def posterior_(self) -> Posterior:
        """The posterior of what was told; a copy."""
        return deepcopy(self._session.posterior())

    def recommend(self, user: str | int | None = None) -> Any:
        """Return the item of the largest posterior mean in the pool.

        Parameters
        ----------
        user : str or int, optional
            The user who gets the recommendation. None: somebody of the population.

        Raises
        ------
        NotFittedError
            If nothing was told.
        """
        n, duels = len(self._space.pool), self._session.configuration.pool.duels
        asked = duels.items if self._space.has_features else np.arange(n)
        to = {} if user is None else {"users": [self._read_user(user)] * n}
        best = int(np.argmax(self._session.fitted().predict(asked, **to)))
        return self._space.present(self._space.to_item(self._space.pool[best]))

    def _as_rows(self, items: Any) -> Any:
        items = self._space.list_items(items)
        if not self._space.has_features:
            return np.array([self._space.clean(item) for item in items])
        duels = self._session.configuration.pool.duels
        return take_rows(duels.items, np.array([self._space.index(item) for item in items]))

    def _to_rank(self) -> tuple[list, list]:
        items, names = super()._to_rank()
        if self._space.names is None and not self._session.configuration.pool.turned:
            names = [item_title(item) for item in items]  # the pool has rows of duels, not of items
        return items, names


def _check_user_ids(users, estimator=None):
    """Return ids of users as plain values, or raise TypeError or ValueError.

    An estimator, if one is given, must take answers of several users.
    """
    if isinstance(users, str) or not hasattr(users, "__iter__"):
        raise ValueError(f"users must be a sequence of ids of people, got {users!r}.")
    ids = [plain_value(user) for user in users]
    for user in ids:
        if type(user) not in (str, int):
            raise ValueError(
                f"Ids of users must be texts or integers here, got {user!r} of type "
                f"{type(user).__name__}."
            )
    if len(set(ids)) < len(ids):
        raise ValueError("users name somebody twice; give each id once.")
    if estimator is not None:
        last = final_estimator(estimator)
        if not hasattr(last, "posterior_for"):
            raise TypeError(
                f"users= needs an estimator that knows several users, such as a "
                f"CollaborativePreferenceRegressor; got {type(last).__name__}."
            )
        if ids and hasattr(last, "_check_featured"):  # the model may need features of users
            last._check_featured(ids)
    return ids
