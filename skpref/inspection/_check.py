"""Checks of a fitted model: each answer against what all others say of it."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack
from scipy.special import logsumexp
from sklearn.base import clone

from skpref._utils import BLOCK, Array, html_table, printable_text, row_blocks
from skpref.data import Answers
from skpref.fitting import components_in_words, evaluate_evidence, last_step
from skpref.inspection._connected import connected_items
from skpref.inspection._loo import LeaveOneOut, forecast_without_each, loo, removal_readings
from skpref.inspection._members import GroupMembers, item_codes
from skpref.kernels import Identity, OnColumns
from skpref.likelihoods import INEQUALITY

# Groups of answers whose members are people.
_WHO = "judge", "user"


@dataclass(frozen=True)
class CheckSettings:
    """How a model is checked.

    Attributes
    ----------
    level : float
        Probability that a check says anything at all of a model that is right.
    n_simulations : int
        Simulated sets of answers: the least p-value is one in so many and one more.
    leak_share : float
        Share of answers that follow one column alone from which on it may hold the answers.
    leak_answers : int
        Answers that differ in a column below which it is not looked at for that.
    n_triangles : int
        Triangles of items that are looked at: those of the pairs that met most often.
    n_periods : int
        Blocks of equally many answers into which times, and the answers as they come, are cut.
    powers : tuple of float
        Powers of probabilities that are compared with them as they are: less sure, and surer.
    n_printed : int
        Findings that are printed.
    """

    level: float = 0.05
    n_simulations: int = 999
    leak_share: float = 0.98
    leak_answers: int = 20
    n_triangles: int = 20_000
    n_periods: int = 8
    powers: tuple[float, ...] = (0.25, 0.5, 2.0, 4.0)
    n_printed: int = 5


SETTINGS = CheckSettings()


class Finding(NamedTuple):
    """One thing that is wrong with a model.

    Attributes
    ----------
    topic : str
        What was looked at, such as "order" or "circles".
    sentence : str
        What is wrong.
    remedy : str
        What to do about it.
    p_value : float
        Probability of as much in a model that is right, at most; 0 of what is certain.

    Examples
    --------
    >>> from skpref.inspection import Finding
    >>> Finding("order", "What is shown first wins too often", "Pass order= to fit", 0.001).topic
    'order'
    """

    topic: str
    sentence: str
    remedy: str
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class ModelCheck:
    """What is wrong with a model by its own answers; see `check`.

    Attributes
    ----------
    findings : list of Finding
        The least probable first, of equal ones the most specific; empty if nothing is wrong.
    topics : list of str
        All that was looked at.
    p_values : ndarray of shape (n_topics,)
        Of each; small ones are findings.
    level : float
        Probability that a model that is right has any finding.
    left_out : LeaveOneOut
        How well each answer is predicted by the others.
    chance : float
        Mean log-probability of an answer whose outcomes are equally probable; NaN of answers that
        are not all duels.

    Examples
    --------
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import check
    >>> circle = [["rock", "scissors"], ["scissors", "paper"], ["paper", "rock"]] * 10
    >>> X, first_wins = circle + [duel[::-1] for duel in circle], [1] * 30 + [0] * 30
    >>> model = PairwisePreferenceRegressor(noise_variance=1.0, optimizer=None)
    >>> result = check(model.fit(X, first_wins))
    >>> [finding.topic for finding in result.findings][:2]
    ['circles', 'dependence by pair']
    """

    findings: list[Finding]
    topics: list[str]
    p_values: Array
    level: float
    left_out: LeaveOneOut
    chance: float

    def __repr__(self) -> str:
        return printable_text(f"<ModelCheck: {self._summary()}>")

    def __str__(self) -> str:
        first, *others = self.in_words()
        lines = [first]
        for text in others:
            lines += textwrap.wrap(f"- {text}", 100, subsequent_indent="  ")
        return "\n".join(lines)

    def in_words(self) -> list[str]:
        """Return a summary and at most five findings with their remedies, a text each."""
        findings = [
            f"{each.sentence}. {each.remedy}." for each in self.findings[: SETTINGS.n_printed]
        ]
        summary = self._summary()
        return [f"{summary[:1].upper()}{summary[1:]}.", *map(printable_text, findings)]

    def _repr_html_(self) -> str:
        """Return a table of the findings as HTML, for notebooks."""
        rows = [(each.topic, each.sentence, each.remedy) for each in self.findings]
        return html_table(self._summary(), rows, ["", "what is wrong", "what to do"])

    def _summary(self) -> str:
        """Return in one sentence how much is wrong, and how well answers are predicted."""
        n = len(self.findings)
        verdict = f"{n or 'nothing'} {'is' if n < 2 else 'are'} wrong"
        chance = "" if np.isnan(self.chance) else f" ({self.chance:.3f} by chance)"
        return (
            f"{verdict} of {len(self.topics)} things checked; each answer is predicted by the "
            f"others with {self.left_out.mean:.3f} nats{chance}"
        )


def check(model: Any, groups: Mapping[str, ArrayLike] | None = None) -> ModelCheck:
    r"""Look for what is wrong with a fitted model, and return findings with their remedies.

    Each duel is predicted from all others (`loo`, hyperparameters held). Answers drawn from these
    predictions say how far a statistic strays by chance where the model is right. The statistics
    are: how sure predictions are, ties, who is shown first, items and dates whose answers surprise,
    circles of three items, columns of features, judges and users who contradict the others, and
    answers that depend on one another within the pair, the prompt, the judge, the user, the date or
    the time. Beside them stand groups of
    items that never met, columns that hold the answer itself, and hyperparameters that the
    evidence contradicts.

    Parameters
    ----------
    model : estimator, pipeline or search
        Fitted to answers.
    groups : dict of array-like of shape (n_answers,), optional
        What the model was not told of each answer, such as ``{"prompt": prompts, "judge": names,
        "time": dates}``. Those that it was told are looked at anyway. Groups called "judge" or
        "user" are also asked whether they contradict the others; "time" is cut into eight periods,
        and looked at date by date, of numbers each for itself.

    Returns
    -------
    ModelCheck
        Its text (``print``) has at most five findings.

    Raises
    ------
    TypeError
        If the model does not keep its answers, or was fitted to several users.
    ValueError
        If answers cannot be left out, see `loo`, or groups have another length.

    Notes
    -----
    A check is a finding where its p-value is below 0.05 over the number of checks, so that a model
    that is right has any with probability .05 at most, as far as answers that are predicted without
    themselves are independent. Of choices and rankings there are no residuals: groups that never
    met and hyperparameters are looked at. Another set of hyperparameters is taken for better where
    its evidence is larger by the factor 1 / level, which has a probability below that level where
    those of the model are right (Markov's inequality).

    Examples
    --------
    >>> import numpy as np
    >>> from skpref import PairwisePreferenceRegressor
    >>> from skpref.inspection import check
    >>> rng = np.random.default_rng(0)
    >>> X = rng.permuted(np.tile(np.arange(6), (200, 1)), axis=1)[:, :2]
    >>> first_wins = (X[:, 0] - X[:, 1]) / 4 + rng.normal(size=200) > -1.0  # first is an advantage
    >>> names = np.array(list("abcdef"))
    >>> print(check(PairwisePreferenceRegressor().fit(names[X], first_wins)).findings[0].sentence)
    What is shown first wins 1.66 times as often as expected
    """
    last = last_step(model)
    if hasattr(getattr(last, "posterior_", None), "of"):
        raise TypeError(
            f"got {type(last).__name__} fitted to several users; models of one utility can be "
            "checked. Fit a PairwisePreferenceRegressor, and give users as groups."
        )
    members = _group_members(model, groups) if hasattr(last, "comparisons_") else {}
    left_out = loo(model)
    duels = _Duels.from_model(model)
    unjoined, leaks, tests = _find_unjoined_items(model), [], []
    if duels is not None:
        leaks = _find_leaks(model, duels)
        tests = _make_tests(model, duels, _label_duels(members, duels))
    results = [*_compare_kernels(last), *_compare_with_simulations(duels, tests)]
    wrong = [each for each in results if each.p_value <= SETTINGS.level / len(results)]
    findings = [*unjoined, *leaks, *sorted(wrong, key=lambda each: each.p_value)]
    topics = ["groups of items", "leaks", *(each.topic for each in results)]
    certain = [0.0 if each else 1.0 for each in (unjoined, leaks)]
    p_values = np.array([*certain, *(each.p_value for each in results)])
    chance = np.nan if duels is None else -np.log(len(duels.score))
    return ModelCheck(findings, topics, p_values, SETTINGS.level, left_out, float(chance))


# -- duels, each predicted from the others -----------------------------------------------------


class _Duels(NamedTuple):
    """Duels with the probabilities of their outcomes; the first item is that of the lower number.

    Attributes
    ----------
    answer : ndarray of int of shape (n,)
        Number of the answer in the fit; one that counts several times is there as often.
    first, second : ndarray of int of shape (n,)
        Numbers of the items.
    lead : ndarray of shape (n,)
        1 where the first was shown first, −1 where the second was, 0 where neither.
    proba : ndarray of shape (n, n_outcomes)
        From a clear win of the second to one of the first.
    outcome : ndarray of int of shape (n,)
        Column that happened.
    score : ndarray of shape (n_outcomes,)
        1 where the first wins, 1/2 for a tie, 0.
    columns : ndarray of shape (n, n_features)
        Features of the first less those of the second.
    """

    answer: NDArray[np.intp]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    lead: Array
    proba: Array
    outcome: NDArray[np.intp]
    score: Array
    columns: Array

    @classmethod
    def from_model(cls, model: Any) -> Self | None:
        """Predict the duels of a fit, each from the others; None where not all answers are."""
        last = last_step(model)
        answers = last.comparisons_
        if answers.rows.joint or not len(answers.positions):
            return None
        scale = last.likelihood_.duel_scale
        log_proba = _left_out_log_proba(last, scale)
        sign = np.array([np.sign(label) for label in scale.labels])
        kinds = np.array([kind for kind, _ in scale.outcomes])
        won = np.array([np.flatnonzero((kinds == k) & (sign >= 0))[0] for k in answers.kind])
        code = item_codes(model)[1]
        position = answers.positions[:, :2]
        turned = code[position[:, 0]] > code[position[:, 1]]
        outcome = np.where(turned, len(sign) - 1 - won, won)
        proba = np.exp(log_proba)
        proba[turned] = proba[turned][:, ::-1]
        lead = (answers.order[:, 0] == 0).astype(float) - (answers.order[:, 1] == 0)
        items = answers.items[:, : last.posterior_.reader.n_features]
        difference = items[position[:, 0]] - items[position[:, 1]]
        flip = np.where(turned, -1.0, 1.0)
        every = np.repeat(np.arange(len(won)), np.maximum(np.rint(answers.weight), 1).astype(int))
        ends = np.sort(code[position], axis=1)[every]
        return cls(
            every,
            ends[:, 0],
            ends[:, 1],
            (flip * lead)[every],
            proba[every],
            outcome[every],
            0.5 * (1.0 + sign),
            (flip[:, None] * difference)[every],
        )

    @property
    def expected(self) -> Array:
        """Expected score of each duel."""
        return self.proba @ self.score

    @property
    def residual(self) -> Array:
        """Score of each duel less its expectation."""
        return self.score[self.outcome] - self.expected

    @property
    def variance(self) -> Array:
        """Variance of the score of each duel."""
        return self.proba @ self.score**2 - self.expected**2


def _left_out_log_proba(last, scale):
    """Return the log-probability of each outcome of each answer, predicted without this answer."""
    every, log_weights = [], []
    for reading in removal_readings(last):
        forecast, rows = forecast_without_each(reading), reading.comparisons.rows
        at = np.flatnonzero(rows.kind != INEQUALITY)
        row_of = np.empty(at.size, dtype=np.intp)
        row_of[rows.answer[at]] = at
        of_answer = reading.comparisons.of_answer
        row = row_of[of_answer]
        judge = None if rows.judge is None else rows.judge[row]
        offset = np.zeros(len(row)) if rows.offset is None else rows.offset[row]
        columns = []
        for kind, side in scale.outcomes:
            kinds = np.full(len(row), kind, np.int8)
            as_if = Answers(kinds, side * rows.lead[row], judge, side * offset)
            columns.append(
                reading.likelihood.log_normaliser(
                    side * forecast.mean[row], forecast.variance[row], as_if
                )
            )
        log_proba = np.stack(columns, axis=1)
        every.append(log_proba - logsumexp(log_proba, axis=1, keepdims=True))
        with np.errstate(divide="ignore"):
            log_weights.append(np.log(reading.weight) - forecast.log_density[of_answer])
    weights = np.stack(log_weights)
    weights -= logsumexp(weights, axis=0)
    return logsumexp(np.stack(every) + weights[:, :, None], axis=0)


class _Labels(NamedTuple):
    """Groups of duels: their names, and the number of that of each duel; −1 of none."""

    names: NDArray[Any]
    code: NDArray[np.intp]


def _group_members(model: Any, groups: Mapping[str, ArrayLike] | None) -> dict[str, GroupMembers]:
    """Return groups of answers by name: those that the fit knows, and those of the user."""
    every: dict[str, GroupMembers] = {}
    for name in ("judge", "prompt", "time"):
        try:
            every[name] = GroupMembers.from_model(model, name)
        except ValueError:
            continue  # the fit knows none
    for name, labels in (groups or {}).items():
        every[name] = GroupMembers.from_model(model, np.asarray(labels))
    return every


def _label_duels(every: dict[str, GroupMembers], duels: _Duels) -> dict[str, _Labels]:
    """Return the number of the group of each duel, by the name of the grouping."""
    labelled = {}
    for name, members in every.items():
        code = np.full(duels.answer.max() + 1, -1)
        for k, some in enumerate(members.answers):
            code[some] = k
        code = code[duels.answer]
        if name == "time":
            days = members.names
            days = days.astype("datetime64[D]") if days.dtype.kind == "M" else days
            names, day = np.unique(days, return_inverse=True)
            labelled["date"] = _Labels(names, np.where(code < 0, -1, day.reshape(-1)[code]))
            rank = np.argsort(np.argsort(code, kind="stable"), kind="stable")
            code = rank * SETTINGS.n_periods // len(rank)
        labelled[name] = _Labels(members.names, code)
    return labelled


# -- statistics of duels -----------------------------------------------------------------------


class _SimulatedAnswers(NamedTuple):
    """Outcomes of the duels in several sets of answers, (n, n_sets) each.

    Attributes
    ----------
    outcome : ndarray of int
        Columns that happen.
    residual : ndarray
        Score less its expectation.
    """

    outcome: NDArray[np.intp]
    residual: Array


class _Test(NamedTuple):
    """A statistic of duels that is large where the model is wrong.

    Attributes
    ----------
    topic : str
    values : callable
        Of `_SimulatedAnswers`: one or more values for each set, (n_values, n_sets).
    describe : callable
        Of the number of the largest value and of that: sentence and remedy.
    is_log_ratio : bool
        Whether values are logarithms of likelihood ratios.
    """

    topic: str
    values: Callable[[_SimulatedAnswers], Array]
    describe: Callable[[int, float], tuple[str, str]]
    is_log_ratio: bool = False


def _compare_with_simulations(duels: _Duels | None, tests: list[_Test]) -> list[Finding]:
    """Return a finding of each test, its p-value by outcomes that are drawn as predicted."""
    if duels is None:
        return []
    rng = np.random.default_rng(0)
    n = len(duels.outcome)
    ends = np.cumsum(duels.proba, axis=1)[:, :-1]

    def draws(outcome: NDArray[np.intp]) -> _SimulatedAnswers:
        return _SimulatedAnswers(outcome, duels.score[outcome] - duels.expected[:, None])

    observed = [test.values(draws(duels.outcome[:, None]))[:, 0] for test in tests]
    largest = np.empty((len(tests), SETTINGS.n_simulations))
    for some in row_blocks(SETTINGS.n_simulations, n, BLOCK):
        uniform = rng.random((n, largest[:, some].shape[1]))
        outcome = np.zeros(uniform.shape, dtype=np.intp)
        for end in ends.T:
            outcome += uniform > end[:, None]
        sets = draws(outcome)
        largest[:, some] = [test.values(sets).max(axis=0) for test in tests]
    results = []
    for test, values, simulated in zip(tests, observed, largest, strict=True):
        at = int(np.argmax(values))
        # Equal outcomes are equally large, however their sums are rounded.
        least = values[at] - 1e-9 * np.abs(values[at])
        p_value = float(1 + np.count_nonzero(simulated >= least)) / (1 + SETTINGS.n_simulations)
        if test.is_log_ratio:
            # Leaving an answer out draws its prediction away from it, which simulations do not
            # show: a ratio is also to be as large as its p-value is small (Markov's inequality).
            p_value = max(p_value, float(np.exp(-max(values[at], 0.0))))
        results.append(Finding(test.topic, *test.describe(at, float(values[at])), p_value))
    return results


def _make_tests(model: Any, duels: _Duels, groups: dict[str, _Labels]) -> list[_Test]:
    """Make the tests that these duels allow, the most specific first."""
    names = [str(name) for name in item_codes(model)[0]]
    tests = [
        *_make_tie_tests(duels),
        *_make_order_tests(duels, groups.get("time")),
        *_make_circle_tests(duels, names),
        *_make_column_tests(model, duels),
    ]
    pair = np.unique(duels.first * len(names) + duels.second, return_inverse=True)[1]
    tests += [_make_judge_test(duels, groups[name], name) for name in _WHO if name in groups]
    if "date" in groups and np.any(np.bincount(groups["date"].code + 1)[1:] > 1):
        tests.append(_make_date_test(duels, groups["date"]))
    for name, labels in {**groups, "pair": _Labels(np.array([]), pair)}.items():
        tests += _make_dependence_tests(name, labels, duels)
    return [*tests, _make_item_test(duels, names), _make_calibration_test(duels)]


def _make_sum_test(topic: str, weights: Any, duels: _Duels, describe: Callable) -> _Test:
    """Return a test of weighted sums of residuals, of weights (n_values, n), in deviations."""
    square = weights.power(2) if hasattr(weights, "power") else weights**2
    deviation = np.sqrt(np.maximum(square @ duels.variance, 1e-12))[:, None]
    return _Test(topic, lambda sets: np.abs(weights @ sets.residual) / deviation, describe)


def _make_ratio_test(topic, duels, powers, membership, describe):
    """Return the test of groups of duels that other powers of the probabilities predict better.

    Parameters
    ----------
    topic : str
    duels : _Duels
    powers : sequence of float
        0 is at random, −1 the wrong way round.
    membership : (ndarray of int of shape (n_members,), ndarray of int of shape (n_members,))
        Numbers of groups, and of duels that are of them.
    describe : callable
        Of number of the power, number of the group, and ratio: sentence and remedy.
    """
    n_groups = int(membership[0].max(initial=0)) + 1
    shape = n_groups, len(duels.outcome)
    members = csr_array((np.ones(len(membership[0])), membership), shape=shape)
    log_proba, gains = np.log(np.maximum(duels.proba, 1e-300)), []
    for power in powers:
        log_power = power * log_proba
        gains.append(log_power - logsumexp(log_power, axis=1, keepdims=True) - log_proba)
    lowest = np.concatenate([members @ gain[:, 0] for gain in gains])[:, None]
    steps = [  # from each outcome to the next
        vstack([csr_array(members * step) for step in every])
        for every in np.moveaxis(np.diff(gains, axis=2), 2, 0)
    ]

    def values(sets):
        above = (step @ (sets.outcome > k).astype(float) for k, step in enumerate(steps))
        return lowest + sum(above)

    return _Test(topic, values, lambda at, value: describe(*divmod(at, n_groups), value), True)


def _make_calibration_test(duels):
    """Return the test whether predictions are too sure or too timid."""

    def describe(at, _, value):
        power = SETTINGS.powers[at]
        doubt = "sure" if power < 1.0 else "timid"
        return (
            f"Predictions are too {doubt}: with log odds times {power:g} the answers are "
            f"more probable by {value:.1f} nats",
            "Let noise and kernel be learned (optimizer=, bounds), or tell the model what else "
            "the answers depend on",
        )

    every = np.arange(len(duels.outcome))
    return _make_ratio_test(
        "calibration", duels, SETTINGS.powers, (np.zeros_like(every), every), describe
    )


def _make_item_test(duels, names):
    """Return the test of items whose answers the model predicts badly."""
    remedy = "Look at these answers: it may be two things of one name, or judged by other rules"
    ends = np.concatenate([duels.first, duels.second])
    membership = ends, np.tile(np.arange(len(duels.outcome)), 2)
    subjects = [f"Answers about {name}" for name in names]
    return _make_weakness_test("items", duels, membership, subjects, remedy)


def _make_weakness_test(topic, duels, membership, subjects, remedy):
    """Return the test of members of groups whose answers are weaker than the model predicts."""

    def describe(at, member, value):
        less = ("at random", "with half the log odds")[at]
        return (
            f"{subjects[member]} are more probable {less} than as predicted, by {value:.1f} nats",
            remedy,
        )

    return _make_ratio_test(topic, duels, (0.0, 0.5), membership, describe)


def _make_judge_test(duels, labels, who):
    """Return the test of judges, or of users, who answer at random or the wrong way round."""

    def describe(at, judge, value):
        how = ("at random", "the wrong way round")[at]
        return (
            f"The {who} {labels.names[judge]} seems to answer {how}: more probable by "
            f"{value:.1f} nats",
            "Fit with judges=, which learns how reliable each is",
        )

    some = np.flatnonzero(labels.code >= 0)
    return _make_ratio_test(f"{who}s", duels, (0.0, -1.0), (labels.code[some], some), describe)


def _make_date_test(duels, labels):
    """Return the test of dates whose answers the model predicts badly."""
    remedy = "Look what was different then: other rules, other people, or rows that were mixed up"
    some = np.flatnonzero(labels.code >= 0)
    subjects = [f"Answers of {name}" for name in labels.names]
    return _make_weakness_test("dates", duels, (labels.code[some], some), subjects, remedy)


def _make_tie_tests(duels):
    """Return the test of the number of ties, in a list; an empty one without ties."""
    is_tie = duels.score == 0.5
    if not is_tie.any():
        return []
    p = duels.proba @ is_tie.astype(float)
    deviation = np.sqrt(max(float(p @ (1.0 - p)), 1e-12))
    share, expected = is_tie[duels.outcome].mean(), p.mean()

    def describe(_, __):
        return (
            f"{share:.3f} of the answers are ties, {expected:.3f} are expected",
            "Let tie_threshold be learned (tie_threshold_bounds=, optimizer=)",
        )

    def values(sets):
        return np.abs(np.sum(is_tie[sets.outcome], axis=0) - p.sum())[None] / deviation

    return [_Test("ties", values, describe)]


def _make_order_tests(duels, periods):
    """Return the test whether what is shown first wins too often, in a list."""
    if not duels.lead.any():
        return []
    parts = [np.ones(len(duels.lead))]
    if periods is not None:
        parts += [periods.code == k for k in range(SETTINGS.n_periods)]
    weights = np.stack(parts) * duels.lead

    def describe(at, _):
        shown = np.flatnonzero(parts[at] * duels.lead)
        won, expected = (
            np.mean(0.5 + duels.lead[shown] * (score[shown] - 0.5))
            for score in (duels.score[duels.outcome], duels.expected)
        )
        sentence = f"What is shown first wins {won / expected:.2f} times as often as expected"
        if at:
            return (
                f"In period {at} of {SETTINGS.n_periods} w{sentence[1:]}",
                "Let the order effect move through time (order_drift= and time=)",
            )
        return (
            sentence,
            "Tell fit who was shown first (order=) and learn the effect (order_effect_bounds=)",
        )

    return [_make_sum_test("order", weights, duels, describe)]


def _make_circle_tests(duels, names):
    """Return the test of circles of three items, in a list; an empty one without triangles."""
    n_items = len(names)
    key, pair = np.unique(duels.first * n_items + duels.second, return_inverse=True)
    first, second = key // n_items, key % n_items
    triangles = _find_triangles(first, second, np.bincount(pair), n_items)
    if not len(triangles):
        return []
    n, n_pairs = len(pair), len(key)
    sums = csr_array((np.ones(n), (pair, np.arange(n))), shape=(n_pairs, n))
    place = np.repeat(np.arange(len(triangles)), 3), triangles.ravel()
    signs = np.tile([1.0, 1.0, -1.0], len(triangles))
    around = csr_array((signs, place), shape=(len(triangles), n_pairs))
    weights = around @ sums
    turn = weights @ duels.residual

    def describe(at, value):
        over, under, _ = triangles[at]
        a, b, c = (names[k] for k in (first[over], second[over], second[under]))
        if turn[at] < 0.0:
            a, c = c, a
        return (
            f"{a} beats {b}, {b} beats {c}, and {c} beats {a} more often than any order of the "
            f"three allows, by {value:.1f} standard deviations",
            "Look for what the answers go by beside one utility, or let pairs have effects: "
            "kernel + skpref.kernels.Intransitive(Identity())",
        )

    return [_make_sum_test("circles", weights, duels, describe)]


def _find_triangles(first, second, counts, n_items):
    """Return the pairs (ab, bc, ac) of three items that met in all of them, (n, 3)."""
    number = {pair: k for k, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True))}
    after: list[list[int]] = [[] for _ in range(n_items)]
    for k in np.argsort(-counts, kind="stable").tolist():
        after[first[k]].append(int(second[k]))
    triangles: list[tuple[int, int, int]] = []
    for (a, b), k in number.items():
        for c in after[b]:
            if (a, c) in number:
                triangles.append((k, number[b, c], number[a, c]))
        if len(triangles) > SETTINGS.n_triangles:
            break
    return np.array(triangles[: SETTINGS.n_triangles], dtype=np.intp).reshape(-1, 3)


def _make_column_tests(model, duels):
    """Return the test of residuals that follow a feature, in a list."""
    columns = [k for k in _feature_columns(model) if np.ptp(duels.columns[:, k]) > 0.0]
    if not columns:
        return []
    difference = duels.columns[:, columns]
    difference = (difference / difference.std(axis=0)).T.ravel()
    n, n_columns = len(duels.answer), len(columns)
    block = 1 + duels.answer * SETTINGS.n_periods // (duels.answer.max() + 1)
    every = np.repeat(
        np.arange(n_columns) * (1 + SETTINGS.n_periods), n
    )  # of a column, then its blocks
    place = (
        np.append(every, every + np.tile(block, n_columns)),
        np.tile(np.arange(n), 2 * n_columns),
    )
    shape = n_columns * (1 + SETTINGS.n_periods), n
    weights = csr_array((np.tile(difference, 2), place), shape)

    def describe(at, value):
        column, part = divmod(at, 1 + SETTINGS.n_periods)
        rows = duels.answer[block == part]
        where = f"In answers {rows.min() + 1} to {rows.max() + 1} the more" if part else "The more"
        return (
            f"{where} of {_column_name(model, columns[column])}, the further predictions are off, "
            f"by {value:.1f} standard deviations",
            "Look whether its sides or units are mixed up, and give it a linear term",
        )

    return [_make_sum_test("columns", weights, duels, describe)]


def _make_dependence_tests(name, labels, duels):
    """Return the test of answers of one group that lean the same way, in a list.

    Of judges and users it is that of each, beside that of all.
    """
    code = labels.code
    some = np.flatnonzero(code >= 0)
    n_items = int(max(duels.first.max(), duels.second.max())) + 1
    cell = np.concatenate([code[some] * n_items + end[some] for end in (duels.first, duels.second)])
    cells, cell = np.unique(cell, return_inverse=True)
    if len(cell) == 0 or np.bincount(cell).max() < 2:
        return []
    sign = np.repeat([1.0, -1.0], len(some))
    place = cell, np.tile(some, 2)
    sums = csr_array((sign, place), shape=(len(cells), len(code)))
    within = csr_array(np.ones((1, len(cells))))
    if name in _WHO:
        members = np.ones(len(cells)), (cells // n_items, np.arange(len(cells)))
        within = vstack([within, csr_array(members, (len(labels.names), len(cells)))])
    words = {
        "pair": "Answers about one pair agree more than independent ones would",
        "time": "Utilities move through time",
        "judge": "Judges differ in what they like",
        "user": "Users differ in what they like",
    }
    remedies = {
        "pair": "Look for votes that are there twice, or for what votes on a pair share",
        "time": "Tell fit when each answer was given (time=)",
        "judge": "Fit with judges=, or with users= of a CollaborativePreferenceRegressor",
        "user": "Fit a CollaborativePreferenceRegressor with users=",
        "date": "Look what was different then, or fit with dates as prompts= in place of time=",
    }
    sentence = words.get(name, f"Answers of one {name} agree more than independent ones would")
    remedy = remedies.get(name, "Tell fit which answers share it (prompts=)")

    def products(squares, own):  # of two answers each
        return within @ (squares - own)

    square = abs(sums)
    of_two = products((square @ duels.variance) ** 2, square @ duels.variance**2)
    deviation = np.sqrt(np.maximum(2.0 * of_two, 1e-12))[:, None]

    def values(sets):
        return products((sums @ sets.residual) ** 2, square @ sets.residual**2) / deviation

    def describe(at, _):
        if at == 0:
            return sentence, remedy
        return f"The {name} {labels.names[at - 1]} likes other things than the others", remedy

    return [_Test(f"dependence by {name}", values, describe)]


# -- what needs no simulation ------------------------------------------------------------------


def _find_unjoined_items(model):
    """Return the finding of groups of items that never met, in a list; an empty one of none."""
    if not hasattr(last_step(model).posterior_, "cov"):
        return []
    joined = connected_items(model)
    if joined.n_components < 2:
        return []
    sentence = components_in_words(joined.names, joined.component)
    return [
        Finding(
            "groups of items",
            f"Answers join no two of {sentence}",
            "Collect answers between the groups; next_pairs gives these first",
            0.0,
        )
    ]


def _find_leaks(model, duels):
    """Return findings of features that nearly all answers follow, as if they held them."""
    findings = []
    sign = 2.0 * duels.score[duels.outcome] - 1.0
    for k in _feature_columns(model):
        differs = (duels.columns[:, k] != 0.0) & (sign != 0.0)
        n = np.count_nonzero(differs)
        if n < SETTINGS.leak_answers:
            continue
        share = np.mean(np.sign(duels.columns[differs, k]) == sign[differs])
        if max(share, 1.0 - share) >= SETTINGS.leak_share:
            findings.append(
                Finding(
                    "leaks",
                    f"{max(share, 1.0 - share):.3f} of the answers follow "
                    f"{_column_name(model, k)} alone",
                    "Look whether it was known before the answer; leave it out if not",
                    0.0,
                )
            )
    return findings


def _feature_columns(model):
    """Return the positions of the columns of items that are features, and not ids."""
    last = last_step(model)
    reader = last.posterior_.reader
    if reader.table is not None and not reader.table.has_features:
        return []
    return [k for k in range(reader.n_features) if k != reader.id_column]


def _column_name(model, column):
    """Return the name of a column of features, or its number in words."""
    names = getattr(last_step(model), "feature_names_in_", None)
    return f"column {column}" if names is None else str(names[column])


def _compare_kernels(last: Any) -> list[Finding]:
    """Return a finding of each other kernel, by its log evidence beside that of the model.

    None where more than a single utility is fitted.
    """
    model, comparisons = getattr(last, "_model", None), last.comparisons_
    if model is None or getattr(last, "judges_", None) is not None:
        return []
    reader = last.posterior_.reader
    if comparisons.group_column is not None or reader.time is not None:
        return []
    every = []
    for factor, word in ((4.0, "longer"), (0.25, "shorter")):
        scaled = _scale_lengthscales(model.kernel, factor)
        if scaled is not None:
            sentence = f"The answers are more probable with {word} lengthscales ({factor:g} times)"
            remedy = "Let lengthscales be learned (optimizer=), or widen their bounds"
            every.append(("lengthscales", scaled, sentence, remedy))
    has_features = reader.table is None or reader.table.has_features
    if has_features and reader.id_column is None:
        own = OnColumns(Identity(), list(range(reader.n_features)))
        names = float(np.mean(model.kernel.diag(comparisons.items))) * own
        sentence = "Names alone explain the answers better than the features do"
        remedy = "Add item effects (kernel + Identity()), or other features"
        every.append(("features", names, sentence, remedy))
    own_evidence = _log_evidence(model, comparisons)
    results = []
    for topic, kernel, sentence, remedy in every:
        gain = _log_evidence(replace(model, kernel=kernel, prepared=None), comparisons)
        gain -= own_evidence
        p_value = float(np.exp(-max(gain, 0.0)))  # at most, by Markov's inequality
        results.append(Finding(topic, sentence, remedy, p_value))
    return results


def _scale_lengthscales(kernel, factor):
    """Return a kernel with all lengthscales multiplied by a factor; None if it has none."""
    params = kernel.get_params()
    scaled = {
        name: np.multiply(value, factor)
        for name, value in params.items()
        if name.rpartition("__")[2] == "length_scale"
    }
    return clone(kernel).set_params(**scaled) if scaled else None


def _log_evidence(model, comparisons):
    """Return the log evidence of a model at its hyperparameters."""
    return evaluate_evidence(comparisons, model).approximation.sites.log_evidence
