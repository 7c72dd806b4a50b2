"""Ask and tell: preferential optimisation of what only a judge can compare."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from os import PathLike
from typing import Any, Self, Unpack

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Bunch

from skpref._utils import RandomLike, check_number, seed_of
from skpref.data import LARGEST_VALUE
from skpref.gp import Posterior
from skpref.likelihoods import AnswerParameters
from skpref.optimize._acquisition_surface import check_plane, evaluate_on_plane, read_acquisition
from skpref.optimize._answers import NO_OUTCOME, AnswerArguments
from skpref.optimize._asking import Asking
from skpref.optimize._configuration import answer_options, make_configuration
from skpref.optimize._gain import WITHIN, ExpectedGain, check_within
from skpref.optimize._layouts import read_layouts, read_layouts_beside
from skpref.optimize._limits import hold_parameters, make_limited_space, read_fixed_parameters
from skpref.optimize._questions import check_answered
from skpref.optimize._session import Session, make_lease_claim
from skpref.optimize._spaces import item_title
from skpref.optimize._state import DUELS


class PreferenceOptimizer(Asking):
    """Preferential Bayesian optimisation: ask for a duel or a set, tell which item is better.

    By default duels take turns between two methods. One chooses both items by what the answer is
    expected to add to the best posterior mean (knowledge gradient [2]_). In the other a challenger
    meets the best item seen. Both see hyperparameters drawn from their posterior. A set
    shows the best items of several draws of the utility. An item that joins several given ones
    (`ask` with ``beside``) by turns raises the expected utility of the best of them, and is
    expected to improve on the best item seen.

    Other methods are a posterior, a rule for the first item and an acquisition for the second.
    ``skpref.optimize.STRATEGIES`` lists those that the paper [1]_ compares, and more:
    ``PreferenceOptimizer(space, **STRATEGIES["EP-MUC"]._asdict())``.

    Parameters
    ----------
    space : array-like of shape (d, 2) or dict, default=None
        Bounds, a row (low, high) for each feature; items are then arrays (d,). Or a dict by name;
        items are then dicts. Its values are frozen ``scipy.stats`` distributions, tuples (low,
        high), or lists of choices; `when` makes one that is there under a condition. The cdf of a
        distribution maps its values to the unit interval, so a ``loguniform`` is searched on a log
        scale. A tuple of two ints means integers, both ends included. Choices that are increasing
        numbers are ordered, others are categories.
    inference : str or engine, default="auto"
        Gives the posterior that the acquisition sees. With "auto" here and in the next three
        parameters the methods above are taken. Beside one that is given "auto" stands for
        "hallucination", "posterior_mean", "log_ei" and "best". "hallucination" is the GP given one
        draw of the noisy margins, "kriging_believer" the GP given their means, "constant_liar" the
        GP given that each is 1. Or "laplace", "ep", "gibbs", "hmc", or an engine of
        `skpref.inference`.
    incumbent : str, default="auto"
        First item of the next duel: "last_winner", "posterior_mean", "thompson", "random" or
        "joint". "posterior_mean" is the item with the largest one among those seen. With "joint"
        both items maximise the acquisition together, and with "eubo" all items of a set.
    acquisition : str or callable, default="auto"
        The second item maximises it. "ei", "log_ei", "pi" (probability of improvement), "ucb" (√β =
        2) and "mean" are functions of an item. "bvei", "muc", "eubo", "eiig" and "duel_ucb" are
        functions of its duel with the first item. "kg" (knowledge gradient) is what the largest
        posterior mean gains by the answer to that duel, and "jes" (joint entropy search) what it
        tells of the best item and its utility. "thompson" is a draw of the utility, "random" takes
        any item. Each further item of a set maximises it by itself; with "eubo" (expected utility
        of the best) all do so together. A callable gets ``(posterior, X, incumbent)`` in unit-cube
        rows and returns (n,) values. Methods take turns, one a question, where ``inference``,
        ``incumbent``, ``acquisition`` or ``hyperparameters`` are tuples; a text is then that of
        all. They share one fit: engines are one of the above, but "laplace" and "svi", and "ep",
        which is the Gaussian posterior that the hyperparameters of the other are learned with.
    hyperparameters : {"auto", "best", "drawn"}, default="auto"
        With "drawn" each item is chosen under hyperparameters of its own, drawn from the normal
        that Laplace's approximation puts around the best ones. Few answers leave lengthscales
        open; under the best ones alone a distant peak may seem impossible.
    kernel : sklearn kernel, default=None
        On rows of the unit cube, where categories are one-hot. None: Matérn-3/2, unit amplitude,
        one lengthscale a column.
    lengthscale_prior : "auto", (median, deviation), "lognormal" or None, default="auto"
        As in `PairwisePreferenceRegressor`, in the units of the rows that the kernel sees: here
        those of the unit cube. "auto": (0.2 √d, 0.75) of d columns where the strategy is not given,
        else (0.5, 0.75). Shorter lengthscales say that there may be other peaks.
    noise_prior : "auto", (median, deviation) or None, default="auto"
        Log-normal prior of σ², the variance of the noise of one item, while it is learned:
        median, and deviation of the logarithm. "auto": (0.003, 3) where the strategy is not given,
        else (0.003, 2). A larger median suits a judge who often errs. None: no prior. A
        ``likelihood`` declares its own, so that none may be given beside it.
    likelihood : Likelihood, default=None
        Probability of an answer given the utilities. None: a probit with the parameters in
        ``answers``. A likelihood has its own, so that none of these may be given beside it.
    n_initial : int, default=None
        Number of answers before the model is used, where a set of k items counts k/2. None: 4
        where the strategy is not given, else 3 d.
    initial_duels : array-like of shape (n, 2, d) or list of pairs of dicts, default=None
        Asked first, in any set or duel that comes next, until a question or an answer has held
        both items of each. A larger set holds as many of them as it has room for. The rest of the
        initial duels are Sobol points.
    refit_every : int, default=None
        Answers between two fits of the hyperparameters. None: few at first, then more.
    forgetting_rate : float, default=None
        ε in (0, 1), for a judge whose taste drifts: utilities s answers apart have correlation
        (1 − ε)^(s/2) [3]_, which is one half after 1.4/ε answers. What was answered long ago then
        counts less; questions, `recommend` and ``posterior_`` are of the present, and the best
        seen long ago is asked about again. None: the utility stays as it is.
    candidates : array-like or DataFrame of shape (n, d), or ItemTable, default=None
        A pool to choose from, instead of ``space``. If it has names, items are these names, else
        rows of features. The names are those of the table or the index of a pandas frame, except
        the default index, which counts the rows. Candidates of equal features are one item, shown
        by the first of their names. Those of ``ItemTable.from_names`` have no features and
        independent utilities (`Identity` kernel).
    constraints : list, default=None
        What every item that is asked about, drawn, recommended or told must keep. A
        ``scipy.optimize.LinearConstraint`` or ``NonlinearConstraint`` is on the numbers of an item
        in the order of the space: categories by their codes, from 0, and a parameter that is not
        there (`when`) as 0. Any other function gets an item and returns whether it may be asked
        about. Inequalities only. Candidates that break one are left out. Along a constraint of
        scipy the best item is climbed to, up to a boundary that is slanted or curved; of a function
        only yes and no are known, so that the climb ends where it meets its boundary. In a journal
        functions are known by their names.
    earlier : dict, path, list of paths or CollaborativePreferenceRegressor, default=None
        Answers of earlier people, of whom the one who is asked is another. A dict has the keys
        "X", the items of each question as `tell` takes them, "y", the answers (of a duel 1 if the
        first won, 0 if the second did; of a set the position of the chosen item, or ranks), and
        "users", whose each is (all of one person without it). A path is the journal of an earlier
        person. A model is one of items as numbers, in the order of the space. The utility is
        then a multiple of the earlier people's mean, a deviation as theirs are, and a part of its
        own, whose share is learned as answers come. There is no initial design, and `recommend`
        knows an item before the first answer. Sets and rankings count as the duels they state,
        and ties as nothing.
    monotone : dict, default=None
        Parameters of which more is better, 1, or less, -1, all else being equal, by their names or,
        where items are arrays, positions: ``{"price": -1}``; of ``candidates`` their features. As
        in `PairwisePreferenceRegressor`: virtual duels are placed anew after each answer. Not with
        "laplace", ``earlier`` or ``forgetting_rate``.
    cost : (float, float), default=None
        Cost of making an item that was in no question before, and of judging a question, in one
        unit: ``(10, 1)``. Duels, the only questions then, are those of the largest knowledge
        gradient by cost: of two new items, of one and an item that was made, or of two of those.
    journal : path, default=None
        SQLite database to which every event is written before the call returns. If it exists, the
        run goes on from its end, with the very same next question. Several judges may share it,
        in processes of one machine (`AlreadyAnswered`). `read_journal` gives its history.
    judge : str, default=None
        Name of who is asked here. A question belongs to the judge who was asked it first, for
        ``lease_minutes``, and then to anybody; under the same name the question is the same after
        a restart. Whoever answers first, that answer counts. None: a judge without a name.
        Optimizers on one journal that have no name are one judge, and are asked the same.
    lease_minutes : float, default=30.0
        Minutes after the last `ask` for which the questions of this judge are withheld from others.
        Some minutes are enough for an answer; 30 leave room for a break. After a shorter time a
        judge who thinks may find the question answered by another, and with a longer one the
        questions of a judge who left wait for so long.
    random_state : int, RandomState instance, Generator or None, default=None
        The same seed and answers give the same questions.
    **answers
        What an answer may tell, and how noisy it is: the parameters ``noise_variance``,
        ``tie_threshold``, ``order_effect`` and so on of `PairwisePreferenceRegressor`, in units of
        the kernel's amplitude, each with its bounds. The noise starts at 0.003, with bounds (1e-5,
        1.0) and the prior ``noise_prior``. Thresholds have a log-normal prior of
        median 0.1, the order effect a normal one of deviation 0.5. Without ``tie_threshold`` the
        model has no ties until one is told; then the threshold is learned.

    Attributes
    ----------
    history_ : list of HistoryEntry
        Items and outcomes in the order of the answers.
    measured_ : list of tuple
        Items, values and deviations in the order of `tell_value`.
    incumbent_ : ndarray of shape (d,), dict or name
        First item of the next question by the rules "last_winner" and "posterior_mean", and the
        last winner with the other rules. The last winner is the best item of the last answer.
        Where an answer such as a tie leaves several, it is the one of them that was shown first.
    posterior_ : Posterior
        Of the answers, on unit-cube rows (`to_unit`). It also takes the names of candidates, if
        these are texts. For engines that assume values of the noisy margins it is that of EP.
    expected_gain_ : ExpectedGain
        What is to be gained by one more question, and how near the best what is recommended is;
        found anew each time, in some tenths of a second.
    n_told_ : int
    pending_ : ndarray of shape (n, size, d), or list
        Questions without an answer or a skip, oldest first, as `ask` with ``n`` gives them. A list
        where sizes differ. With a journal also the questions of other judges.

    References
    ----------
    .. [1] Takeno, Nomura, Karasuyama, "Towards Practical Preferential Bayesian Optimization
       with Skew Gaussian Processes", ICML 2023.
    .. [2] Wu, Gardner, "Knowledge Gradient for Preference Learning", 2026, arXiv 2601.22335.
    .. [3] Bogunovic, Scarlett, Cevher, "Time-varying Gaussian Process Bandit Optimization",
       AISTATS 2016.

    Examples
    --------
    >>> from skpref.optimize import STRATEGIES, PreferenceOptimizer
    >>> optimizer = PreferenceOptimizer([[0.0, 1.0]], random_state=0)
    >>> best = optimizer.run(lambda a, b: abs(a[0] - 0.3) < abs(b[0] - 0.3), n_duels=12)
    >>> bool(abs(best[0] - 0.3) < 0.1)
    True
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
        inference: Any = "auto",
        incumbent: str | tuple[str, ...] = "auto",
        acquisition: str | Callable | tuple[str | Callable, ...] = "auto",
        hyperparameters: str | tuple[str, ...] = "auto",
        kernel: Kernel | None = None,
        lengthscale_prior: tuple[float, float] | str | None = "auto",
        noise_prior: tuple[float, float] | str | None = "auto",
        likelihood: Any = None,
        n_initial: int | None = None,
        initial_duels: Iterable | None = None,
        refit_every: int | None = None,
        forgetting_rate: float | None = None,
        candidates: Any = None,
        constraints: Sequence | None = None,
        earlier: Any = None,
        monotone: Mapping | None = None,
        cost: tuple[float, float] | None = None,
        journal: str | PathLike | None = None,
        judge: str | None = None,
        lease_minutes: float = 30.0,
        random_state: RandomLike = None,
        **answers: Unpack[AnswerParameters],
    ):
        self._space = make_limited_space(space, candidates, constraints)
        initial = _list_initial_duels(initial_duels)
        options = {
            "inference": inference,
            "incumbent": incumbent,
            "acquisition": acquisition,
            "hyperparameters": hyperparameters,
            "kernel": kernel,
            **answer_options({**answers}, likelihood),
            "lengthscale_prior": lengthscale_prior,
            "noise_prior": noise_prior,
            "likelihood": likelihood,
            "n_initial": n_initial,
            "refit_every": refit_every,
            "forgetting_rate": forgetting_rate,
            "earlier": earlier,
            "monotone": monotone,
            "cost": cost,
        }
        configuration = make_configuration(self._space, options, len(initial))
        for name in ("n_initial", "lengthscale_prior", "noise_prior"):
            options[name] = getattr(configuration, name)  # however it was given
        self._session = Session(
            self._space,
            configuration,
            initial,
            journal,
            options,
            seed_of(random_state),
            make_lease_claim(judge, lease_minutes),
        )

    def __repr__(self) -> str:
        state, strategy = self._session.last_state, self._session.configuration.strategies["duel"]
        parts = [f"{name}={value!r}" for name, value in strategy._asdict().items()]
        duels = all(len(each.items) == 2 for each in state.answers)
        return (
            f"<{type(self).__name__}: {self._space.n_dimensions} dimensions, {', '.join(parts)}; "
            f"{'duels' if duels else 'answers'} told: {len(state.answers)}, "
            f"pending: {len(state.pending)}>"
        )

    def _facts(self):
        state, strategy = self._session.last_state, self._session.configuration.strategies["duel"]
        return {
            "dimensions": self._space.n_dimensions,
            **strategy._asdict(),
            "answers told": len(state.answers),
            "pending": len(state.pending),
            "recommended": self._recommended_title(state),
        }

    def _recommended_title(self, state):
        """Return the title of the recommended item, or why there is none."""
        if not state.is_informed:
            return "nothing was told yet"
        if not len(state.answered_rows(usable=True)):
            return "none: all were told unusable"
        return item_title(self.recommend())

    # -- the loop ------------------------------------------------------------------------

    def ask(
        self,
        n: int | None = None,
        *,
        size: int | dict | None = None,
        kind: str | Sequence[str] = "set",
        beside: Any = None,
        fixed: Mapping | None = None,
        at: Mapping | None = None,
        new_items: int | None = None,
    ) -> Any:
        """Return the next duel, set, line or plane, or the next n for judges in parallel.

        The question stays the same until something is told. Answers may come in any order. Another
        size gives another question. Judges who share a journal have questions of their own. Those
        whose lease is over (``lease_minutes``) go to the next judge who asks.

        Parameters
        ----------
        n : int, optional
            Number of questions. Each comes from a hallucination of its own.
        size : int or dict, optional
            Number of items of each: 2 for a duel, more for a set. Of a line the number of points,
            at least 3, of a plane that of each side, at least 2. None: 2; of lines 9, of planes 5.
            With several kinds a dict, such as ``{"set": 6, "line": 5}``; sets are then of 4.
        kind : {"set", "duel", "line", "plane"} or tuple of these, default="set"
            A "duel" is a set of two. "line": equally spaced points of a segment in the unit cube,
            of which the incumbent is one, as for a slider. "plane": a grid of ``size`` × ``size``
            points on a plane, row by row, of which the incumbent is one. They are chosen together,
            by the expected utility of the best point. Categories are held. Integers are rounded,
            and points that are then equal are left out. A pool has neither. Of several kinds the
            one with the most items comes for the first four answers a dimension, and then the one
            with the fewest; `kind_of` says which it is.
        beside : array-like of shape (m, d), or m dicts, names or rows of a frame, optional
            Different items that are shown in any case, such as those that stay on a page from the
            last answer. A set or duel then begins with them, in their order, and the others are
            chosen to join them; ``size`` is ``m + 1`` unless it is given. In the initial design
            these are far from all that was shown, and ``initial_duels`` are not asked.
        fixed : dict, optional
            Values that parameters of ``space`` have in this question, by their names or, where
            items are arrays, positions: ``fixed={"roast": "dark"}``. The others are chosen for
            these values, and what was learned with other values counts. The items of ``beside``
            are shown as they are, and ``initial_duels`` are not asked.
        at : dict, optional
            Values that are given and not chosen, as where or when the items are judged:
            ``at={"room": "bath"}``. It holds them as ``fixed`` does, and `recommend` takes it too.
        new_items : {0, 1, 2}, optional
            Of a duel the number of items that have to be made: were in no question before and not
            measured. With 1 a new item meets one that was made, with 0 two of those meet again. The
            duel is then that of the largest knowledge gradient, and ``initial_duels`` are not
            asked. None: any number, or by ``cost``.

        Returns
        -------
        ndarray of shape (k, d), or tuple of as many dicts or names
            Of a set the incumbent first; of a line or plane the points in order. With ``n``: an
            array (n, k, d), or a list.

        Raises
        ------
        ValueError
            If ``beside`` is no sequence of items of the space, holds one twice or as many as
            ``size``, or stands with lines or planes. If ``new_items`` or ``cost`` stand with other
            questions than duels, or ``beside``, or too few items were made. If ``fixed`` names no
            parameters of the space, no values of theirs, or all. If no question is left (all of a
            small pool are pending or were skipped), if the acquisition is NaN everywhere, or if the
            engine or likelihood takes no answers to sets.
        """
        held = self._read_held(at, fixed)
        space = hold_parameters(self._space, held)
        if beside is None:
            layouts = read_layouts(kind, size, space)
            return self._ask_questions(n, self._set_new_items(layouts, new_items), fixed=held)
        self._set_new_items((), new_items)
        items = self._read_given_items(beside)
        layouts = read_layouts_beside(kind, size, space, len(items))
        return self._ask_questions(n, layouts, beside=items, fixed=held)

    def _set_new_items(self, layouts, new_items):
        """Return layouts with the number of new items, or raise ValueError if they take none."""
        configuration = self._session.configuration
        if new_items is None and configuration.cost is None:
            return layouts
        argument = "cost=" if new_items is None else f"new_items={new_items!r}"
        if layouts != DUELS:
            raise ValueError(
                f"got {argument} and a question that is no duel, or begins with items beside=; "
                "duels alone are chosen by gain and cost. Leave the one or the other out."
            )
        if new_items is None:
            return layouts
        new_items = int(check_number("new_items", new_items, low=0, high=2, integer=True))
        configuration.check_chooses_by_gain(argument)
        return tuple(each._replace(new_items=new_items) for each in layouts)

    def _read_held(self, at, fixed=None):
        """Return the parameters that a question holds, checked."""
        held = read_fixed_parameters(self._space, at, "at")
        held_once = read_fixed_parameters(self._space, fixed, "fixed")
        if not (held and held_once):
            return held or held_once
        if common := at.keys() & fixed.keys():
            raise ValueError(
                f"got {sorted(map(str, common))} both in at= and in fixed=; a parameter is "
                "held at one value. Leave it out of one of the two."
            )
        return read_fixed_parameters(self._space, {**at, **fixed}, "at= and fixed")

    def _read_given_items(self, beside):
        """Return the items that a question is to begin with, or raise ValueError."""
        try:
            if isinstance(beside, str | Mapping):
                raise ValueError(f"Got one item, {beside!r}.")
            items = list(self._space.list_items(beside))
            for item in items:
                self._space.to_row(item)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "beside= is a sequence of items of the space, which a question begins with; of one "
                f"item give [item]. {error}"
            ) from None
        return items

    def tell(
        self,
        items: Any,
        outcome: Any = NO_OUTCOME,
        *,
        chosen: int | Sequence[int] | None = None,
        worst: int | None = None,
        ranking: Any = None,
        position: Any = None,
        unusable: Sequence[int] | None = None,
        none: bool | None = None,
    ) -> Self:
        """Tell which is better.

        The answer to a duel is its outcome. The answer to a set is by position: the best or
        the good ones, the worst, both, or a ranking. The answer to a line or plane is a position,
        which may lie between the points.

        Parameters
        ----------
        items : array-like of shape (k, d), or k dicts, names or rows of a frame
            Any different items of the space, in the order in which they were shown. They need not
            have been asked for, so that an item may be compared with the best of last week. Items
            that are told again count as one more answer. Answers may contradict each other.
        outcome : int, bool, "tie", 0.5 or None
            Of a duel. 1 or True: the first won; 0, -1 or False: the second; "tie" or 0.5: no
            difference; or another label that ``answers`` allow, such as 2. None, also of a set: no
            answer, as `skip`. A dict holds the following.
        chosen : int or sequence of int, optional
            Position of the best item, from 0; or positions of several, each of which is better
            than each of the rest: ``chosen=[0, 2]``. Which of them is the best stays open.
        worst : int, optional
            Position of the worst item.
        ranking : sequence of int, optional
            Positions, the best first: ``ranking=[2, 0, 1]`` means that ``items[2]`` is the best.
            Items may be left out; nothing is learned of them.
        position : int, float or pair of them, optional
            Of the best place on a pending line or plane. 2 is its third point, 2.25 a place between
            this one and the next; (row, column) is one on a plane. The item at a place between the
            points is taken for one that was shown with them and chosen.
        unusable : sequence of int, optional
            Positions of items that crashed, are unsafe or could not be made. The others could be
            used; which of them is better is told by a call of its own. Later questions are about
            items that are probably usable, by a probit of its own: each as often as it is probable.
        none : bool, optional
            True: none of the items is good enough. Then an outside option, such as to buy nothing,
            is better than each of them; its utility is learned. False, beside ``chosen`` or the
            outcome of a duel: what was chosen is better than the outside option, too. None: no
            more was asked than which of these is better.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If the items are equal, not finite or outside the space, if the answer is none of these
            or more than one, or if the engine or likelihood does not take it. Nothing is changed
            then.
        AlreadyAnswered
            If the question was pending when this object last looked, and another judge has answered
            it since. Nothing is recorded then.
        """
        no_position = all(each is None for each in (chosen, worst, ranking, position, none))
        if unusable is not None:
            is_alone = no_position and (outcome is NO_OUTCOME or outcome is None)
            places = _check_unusable(unusable, len(items), is_alone)
            self._session.record_answer(items, None, unusable=places)
            return self
        if no_position and outcome is None:
            return self.skip(items)
        arguments = AnswerArguments(outcome, chosen, worst, ranking, position, none)
        return self._record(items, arguments)

    def tell_value(self, item: Any, value: float, deviation: float) -> Self:
        """Tell a value that was measured of an item, which counts beside the answers.

        Values are α + c f(x) + noise, with f the utility that answers compare; α and c > 0 are
        learned. So it must be known that more is better. `undo` takes the last one back.

        Parameters
        ----------
        item : array-like of shape (d,), dict or name
            It need not have been asked about.
        value : float
        deviation : float
            Standard deviation of the value's normal noise, above 0.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If the item is none of the space, a number is not finite or the deviation not above 0;
            with ``forgetting_rate``, or where the likelihood or the kernel do not take values.
            Nothing is changed then.

        Examples
        --------
        >>> from skpref import PreferenceOptimizer
        >>> optimizer = PreferenceOptimizer([(0.0, 1.0)], random_state=0)
        >>> for x, value in (([0.1], 3.0), ([0.5], 4.5), ([0.9], 3.2)):
        ...     optimizer = optimizer.tell_value(x, value, deviation=0.1)
        >>> optimizer.recommend()
        array([0.5])
        >>> optimizer.tell([[0.6], [0.5]], 1).recommend()
        array([0.6])
        """
        number = check_number("value", value, low=-LARGEST_VALUE, high=LARGEST_VALUE)
        noise = check_number("deviation", deviation, low=0.0, high=LARGEST_VALUE, open_low=True)
        self._session.record_value(item, float(number), float(noise))
        return self

    @property
    def measured_(self) -> list[tuple[Any, float, float]]:
        """Items that were measured, values and deviations, as `tell_value` takes them."""
        session, state = self._session, self._session.state
        return [(*session.present_items(state, [index]), *rest) for index, *rest in state.values]

    def kind_of(self, items: Any) -> str:
        """Return what kind of question was asked, where `ask` was free to choose.

        Parameters
        ----------
        items : array-like of shape (k, d), or k dicts, names or rows of a frame
            A pending question, in its order.

        Returns
        -------
        {"duel", "set", "line", "plane"}
            "duel" if there are two items.
        """
        form = self._session.form_of(items)
        if len(items) == 2:
            return "duel"
        return "set" if form is None else form.kind

    def item_at(self, items: Any, position: Any) -> Any:
        """Return the item at a position of a pending line or plane, such as where a slider stands.

        Parameters
        ----------
        items : array-like of shape (k, d), or k dicts
            A pending line or plane, in its order.
        position : int, float or pair of them
            As in `tell`.

        Returns
        -------
        ndarray of shape (d,) or dict
            What ``tell(items, position=position)`` would take for the best. Nothing is recorded.

        Raises
        ------
        TypeError, ValueError
            If the items are no pending line or plane, or it is no position on them.

        Examples
        --------
        >>> from skpref import PreferenceOptimizer
        >>> optimizer = PreferenceOptimizer({"gain": (0.0, 1.0)}, random_state=0)
        >>> points = optimizer.ask(kind="line")
        >>> optimizer.item_at(points, 8) == points[8]
        True
        >>> gains = [optimizer.item_at(points, at)["gain"] for at in (0, 0.5, 1)]
        >>> gains[1] == sorted(gains)[1]
        True
        """
        return self._session.item_at(items, position)

    # -- results -------------------------------------------------------------------------

    def recommend(
        self, *, at: Mapping | None = None, probability_usable: float | None = None
    ) -> Any:
        """Return the item of the largest posterior mean among those that answers are about.

        With ``at``, or where there are ``earlier`` answers, it is that of the whole space.

        Parameters
        ----------
        at : dict, optional
            Values that are given and not chosen, as in `ask`; the item has them.
        probability_usable : float, default=None
            How probable it must be that the item can be used, by what was told ``unusable``, such
            as 0.9. None: it was not told unusable.

        Raises
        ------
        NotFittedError
            If nothing was told, and there are no ``earlier`` answers.
        ValueError
            If ``at`` names no parameters of the space, no values of theirs, or all. If no item is
            as probably usable.

        Examples
        --------
        >>> from skpref import PreferenceOptimizer
        >>> optimizer = PreferenceOptimizer([(0.0, 1.0)], random_state=0)
        >>> optimizer = optimizer.tell([[0.2], [0.3]], 1).tell([[0.8], [0.2]], 1)
        >>> optimizer.recommend()
        array([0.8])
        >>> optimizer = optimizer.tell([[0.8], [0.9]], unusable=[0, 1])
        >>> optimizer.recommend(probability_usable=0.7)
        array([0.2])
        """
        if probability_usable is not None:
            check_number("probability_usable", probability_usable, low=0.0, high=1.0)
        return self._session.recommended_item(probability_usable, self._read_held(at))

    @property
    def incumbent_(self) -> Any:
        """First item of the next duel, by the rule.

        Where both items of it are chosen together, that of the largest posterior mean; where the
        first is drawn, the last winner.
        """
        state = self._session.state
        strategy = self._session.configuration.strategy_for(len(state.answers))
        if strategy.incumbent in ("posterior_mean", "joint"):
            return self.recommend()
        check_answered(state)
        return self._session.present_items(state, [state.last_winner])[0]

    @property
    def expected_gain_(self) -> ExpectedGain:
        """What is to be gained by one more question, and how near the best is."""
        return self._session.gain()

    def acquisition_surface(
        self,
        dimensions: Sequence[int | str] | None = None,
        *,
        acquisition: str | Callable = "auto",
        at: Any = None,
        resolution: int = 40,
    ) -> Bunch:
        """Return an acquisition over two dimensions of the space, the others held.

        It is that of ``posterior_`` beside ``incumbent_``. A hallucination, or hyperparameters that
        are drawn, would give another surface for every question.

        Parameters
        ----------
        dimensions : two names or positions, default=None
            None: the first two that are numbers.
        acquisition : str or callable, default="auto"
            As that of the optimizer, but for those that look ahead or draw ("kg", "jes",
            "thompson", "random"). "auto": the first of the optimizer's own that is none of these.
        at : item, default=None
            Where the other dimensions are held. None: at ``incumbent_``.
        resolution : int, default=40
            Points along each dimension; of whole numbers no more than there are.

        Returns
        -------
        surface : Bunch
            names : tuple of str
            grid : tuple of two ndarray, values of the parameters
            unit : tuple of two ndarray, their places in the unit cube
            acquisition : ndarray of shape (n_first, n_second); NaN where it is no finite number
            method : str, the name of the acquisition
            best : ndarray of shape (2,), in the unit cube, where it is largest
            incumbent : ndarray of shape (2,), in the unit cube
            shown : ndarray of shape (n_items, 2), distinct items of answers and values, likewise

        Raises
        ------
        NotFittedError
            If nothing was told.
        ValueError
            If items are candidates of a pool; if dimensions are not two different ones that are
            numbers; if the acquisition is none of these, or no number anywhere.

        Examples
        --------
        >>> from skpref import HallucinationBelieverOptimizer
        >>> optimizer = HallucinationBelieverOptimizer([(0.0, 1.0), (0.0, 10.0)], random_state=0)
        >>> best = optimizer.run(lambda a, b: abs(a[0] - 0.3) < abs(b[0] - 0.3), n_duels=10)
        >>> found = optimizer.acquisition_surface(resolution=20)
        >>> found.method, found.acquisition.shape, found.grid[1][[0, -1]].tolist()
        ('log_ei', (20, 20), [0.0, 10.0])
        """
        places = check_plane(self._space, dimensions, resolution)
        method = read_acquisition(self._session.configuration.strategies["duel"], acquisition)
        check_answered(self._session.state)
        (incumbent,) = self.to_unit([self.incumbent_])
        held = incumbent if at is None else self.to_unit([at])[0]
        answered_rows = np.unique(self._session.state.answered_rows(), axis=0)
        return evaluate_on_plane(
            self._space, places, method, self.posterior_, incumbent, held, answered_rows, resolution
        )

    def _layout_arguments(self, size, kind):
        read_layouts(kind, size, self._space)
        if kind == "set" and isinstance(size, int | np.integer) and size == 2:
            raise ValueError(
                "size=2 asks duels, of which compare returns the outcome (1 where the first is "
                "better, 0 where the second is) and not the position of the best, as of larger "
                "sets. Leave size out, or say kind='duel', if it does."
            )
        return {"size": size, "kind": kind}

    def _as_told_outcome(self, items, outcome, kind):
        if not isinstance(kind, str) and len(kind) == 1:
            (kind,) = kind
        asked = kind if kind in ("line", "plane") else self.kind_of(items)
        if asked == "duel" or isinstance(outcome, dict):
            return outcome
        if asked != "set":
            return {"position": outcome}
        several = isinstance(outcome, list | tuple) or np.ndim(outcome) == 1
        return {"ranking": outcome} if several else {"chosen": outcome}

    def _make_stop_rule(self, until, within):
        if until is None:
            return super()._make_stop_rule(until, within)
        check_number("until", until, low=0.0, high=1.0, open_low=True, open_high=True)
        near = WITHIN if within is None else check_within(within)
        return lambda: self._session.is_close_enough(until, near)

    @property
    def posterior_(self) -> Posterior:
        """Posterior on unit-cube rows, and by candidates' names if these are texts; a copy."""
        posterior = deepcopy(self._session.posterior())
        return replace(posterior, reader=replace(posterior.reader, table=self._space.table()))

    @property
    def monotone_violations_(self) -> dict[str | int, float]:
        """By each parameter of ``monotone``, the share of fresh pairs of the wrong order.

        Pairs of rows that differ in that parameter alone, ordered by their mean utilities.
        """
        monotone = self._session.configuration.models.whole.monotone
        if monotone is None:
            raise AttributeError("monotone_violations_ is there with monotone= alone.")
        return monotone.violation_shares(self._session.posterior())

    def to_unit(self, items: Iterable) -> np.ndarray:
        """Return unit-cube rows (n, n_columns) of items, as `posterior_` sees them."""
        return np.array([self._space.to_row(item) for item in self._space.list_items(items)])

    _as_rows = to_unit


def _check_unusable(unusable, n, is_alone):
    """Return positions of unusable items among n, or raise TypeError or ValueError."""
    if not is_alone:
        raise ValueError(
            "got unusable= beside an answer; one of the two is allowed. Tell which of the others "
            "is better by a call of its own, with these items alone."
        )
    places = [] if isinstance(unusable, str) else np.atleast_1d(unusable).tolist()
    good = places and all(type(k) is int and k in range(n) for k in places)
    if not good or len(set(places)) < len(places):
        raise ValueError(
            f"got unusable={unusable!r}; different positions from 0 to {n - 1} are allowed, such "
            "as [1]. To say nothing of any, skip the question."
        )
    return places


def _list_initial_duels(given):
    """Return the pairs of items that are asked first; TypeError for anything but pairs."""
    if given is None:
        return []
    one_by_one = isinstance(given, Iterable) and not isinstance(given, str | dict)
    if not one_by_one or hasattr(given, "columns"):
        raise TypeError(
            "initial_duels must be an array of shape (n, 2, d) or a list of pairs of items, got "
            f"{type(given).__name__}: {given!r}."
        )
    return list(given)


class HallucinationBelieverOptimizer(PreferenceOptimizer):
    """Preferential Bayesian optimisation by hallucination believer (Takeno et al. 2023 [1]_).

    Ask for a duel, show it, and tell who won. After some dozens of answers `recommend` is near the
    best. The first item of a duel is the winner of the last one. For the second item one draw of
    the noisy margins turns the posterior, a skew GP, into an ordinary GP. The item maximises any
    acquisition of ordinary Bayesian optimisation on it (paper, Alg. 1). The next question takes
    some hundredths of a second. Each further item of a set has a draw of its own.

    Parameters
    ----------
    space : array-like of shape (d, 2) or dict, default=None
        Bounds, a row (low, high) for each feature; items are then arrays (d,). Or a dict of named
        parameters, see `PreferenceOptimizer`; items are then dicts.
    acquisition : {"log_ei", "ei", "ucb", "mean", "pi"} or callable, default="log_ei"
        "ucb" has √β = 2. Improvement is over the largest mean of the items seen, under the
        hallucination. A callable gets ``(posterior, X, incumbent)`` in unit-cube rows and returns
        (n,) values. The acquisitions of a duel ("muc", "bvei", ...) also work, but are worse [1]_.
    incumbent : {"last_winner", "posterior_mean"}, default="last_winner"
        "posterior_mean" explores less. It suits a judge who must see the best at all times.
    **options
        The other parameters of `PreferenceOptimizer`, such as ``kernel``, ``noise_variance``,
        ``n_initial``, ``candidates``, ``journal`` and ``random_state``. The paper's settings are
        ``kernel=RBF(...)``, ``noise_variance=1e-4``, ``noise_variance_bounds="fixed"``,
        ``acquisition="ei"``, ``refit_every=10``. The defaults reach the optimum in fewer duels.

    Attributes
    ----------
    history_, incumbent_, posterior_, expected_gain_, n_told_, pending_
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
        acquisition: str | Callable | tuple[str | Callable, ...] = "log_ei",
        incumbent: str | tuple[str, ...] = "last_winner",
        **options: Any,
    ):
        if "inference" in options:
            raise TypeError(
                "HallucinationBelieverOptimizer is that of inference='hallucination'; got "
                f"inference={options['inference']!r}. Use PreferenceOptimizer with it."
            )
        super().__init__(
            space,
            inference="hallucination",
            incumbent=incumbent,
            acquisition=acquisition,
            **options,
        )
