"""What combines and what is refused: engines, answers, context, shape, learning, pieces.

The declaration is data: `FACTORS`, and `REFUSED`, whatever is refused and how. `covering` makes
from it the cases that are tested every time; ``benchmarks/posterior/matrix.py`` runs them all.
"""

import itertools
import random
from typing import NamedTuple


class Case(NamedTuple):
    """One level of each factor."""

    engine: str = "ep"
    answers: str = "duels"
    judges: str = "none"
    order: str = "none"
    weights: str = "none"
    users: str = "none"
    time: str = "none"
    identity: str = "features"
    shape: str = "shared"
    kernel: str = "smooth"
    learning: str = "fixed"
    fitting: str = "whole"
    effects: str = "none"

    def __str__(self):
        plain = Case()
        said = [self.engine, self.answers]
        for name, level in zip(self._fields[2:], self[2:], strict=True):
            if level != getattr(plain, name):
                said.append(
                    level if name in ("identity", "shape", "learning") else f"{level} {name}"
                )
        return ", ".join(said)


FACTORS = {
    # Chains are expectation propagation with items that are independent through time.
    "engine": ("auto", "ep", "laplace", "hmc", "gibbs", "svi", "minibatches", "ekf", "chains"),
    "answers": ("duels", "ties", "graded", "best", "worst", "rankings", "ratings"),
    # Who differ in reliability alone, or prefer what is shown first too.
    "judges": ("none", "some", "partial"),
    "order": ("none", "some"),
    "weights": ("none", "whole", "fractional"),
    "users": ("none", "some"),
    # Of answers, and later ones of what is asked; utilities drift.
    "time": ("none", "some"),
    # Ids beside the features by id_column=, or by from_columns(ids=); names without features.
    "identity": ("features", "id_column", "columns", "names"),
    # All answers about the same few items, each about its own, three often repeated, only one.
    "shape": ("shared", "distinct", "repeated", "one"),
    # Of the features: smooth, or linear, which is of finite rank.
    "kernel": ("smooth", "linear"),
    "learning": ("fixed", "learned"),
    "fitting": ("whole", "pieces"),
}
# Effects of groups of answers are cases of their own, `GROUPED`, and no factor of the others: of
# prompts, of judges' slopes and advantages of the first, of rows of features, of contexts in which
# answers are given, of slopes by prompt, as people who choose from sets may have them.
EFFECTS = ("prompts", "biases", "rows", "contexts", "slopes")
CONTEXT = ("judges", "order", "weights", "users", "time", "identity", "kernel")
SETS = ("best", "worst", "rankings")
SPARSE = ("svi", "minibatches", "ekf")
SAMPLERS = ("hmc", "gibbs")
SEVERAL = ("shared", "distinct", "repeated")  # one answer is one user's
OTHERS = tuple(each for each in FACTORS["engine"] if each not in (*SPARSE, "chains"))


class Refusal(NamedTuple):
    """Cases of these levels are refused: the exception, and the remedy that its message names."""

    levels: dict
    kind: type
    remedy: str

    def holds(self, case):
        return all(getattr(case, name) in levels for name, levels in self.levels.items())


# Levels that do not mean anything together: there is no such call.
NO_CASE = (
    {"answers": ("ratings",), "identity": ("columns",)},  # from_columns makes duels
    {"answers": SETS, "identity": ("columns",)},
    {"identity": ("names",), "kernel": ("linear",)},  # there are no features
    # Later pieces are of one time an answer; the first is as good as any.
    {
        "engine": ("chains",),
        "answers": ("ratings",),
        "shape": ("shared",),
        "time": ("some",),
        "fitting": ("pieces",),
    },
    # Equal answers count together, so that it depends on the answers whether any is below 1.
    {"answers": SETS, "weights": ("fractional",), "shape": ("repeated",)},
)

REFUSED = (
    Refusal({"engine": ("laplace", *SPARSE), "answers": SETS}, ValueError, "inference='ep'"),
    Refusal({"engine": ("chains",), "answers": SETS}, ValueError, "items='independent' out"),
    Refusal({"engine": ("chains",), "time": ("none",)}, ValueError, "items='independent' out"),
    Refusal(
        {
            "engine": ("chains",),
            "kernel": ("smooth",),
            "identity": ("features", "id_column", "columns"),
        },
        ValueError,
        "items='independent' out",
    ),
    Refusal({"users": ("some",), "time": ("some",)}, TypeError, "time"),
    Refusal(
        {"engine": ("ekf",), "answers": ("ties", "graded")}, ValueError, "SVI.local='expected'"
    ),
    Refusal({"engine": ("ekf",), "order": ("some",)}, ValueError, "SVI.local='expected'"),
    Refusal(
        {"engine": ("ekf",), "judges": ("some", "partial")}, ValueError, "SVI.local='expected'"
    ),
    Refusal({"engine": SAMPLERS, "weights": ("fractional",)}, ValueError, "whole numbers"),
    Refusal(
        {"answers": SETS, "weights": ("fractional",), "shape": ("shared", "distinct")},
        ValueError,
        "at least 1",
    ),
    Refusal({"answers": SETS, "judges": ("some", "partial")}, ValueError, "prompts= the judges"),
    Refusal({"answers": ("ratings",), "judges": ("some", "partial")}, ValueError, "from_ratings"),
    Refusal({"answers": ("ratings",), "order": ("some",)}, ValueError, "from_ratings"),
    Refusal({"answers": ("ratings",), "identity": ("names",)}, ValueError, "from_ratings"),
    Refusal({"answers": SETS, "users": ("some",), "shape": SEVERAL}, ValueError, "from_rankings"),
    Refusal({"users": ("some",), "judges": ("some", "partial")}, (TypeError, ValueError), "judges"),
    Refusal(
        {"users": ("some",), "engine": ("laplace", *SAMPLERS, *SPARSE), "shape": SEVERAL},
        ValueError,
        "EP",
    ),
    Refusal({"users": ("some",), "fitting": ("pieces",)}, AttributeError, "use fit"),
    Refusal({"engine": OTHERS, "fitting": ("pieces",)}, AttributeError, "use fit"),
    Refusal({"fitting": ("pieces",), "judges": ("some", "partial")}, ValueError, "Fit all answers"),
)


def is_case(case):
    """Whether there is such a call."""
    return not any(
        all(getattr(case, name) in levels for name, levels in each.items()) for each in NO_CASE
    )


def refusals(case):
    """Why a case is refused: none if it is not."""
    return [each for each in REFUSED if each.holds(case)]


def _grouped():
    """Each engine that takes effects with each kind of answers, other levels in turn."""
    kinds = itertools.product(EFFECTS, (*OTHERS, "svi", "minibatches"), FACTORS["answers"][:-1])
    for k, (effects, engine, answers) in enumerate(kinds):
        case = Case(
            engine,
            answers,
            order=FACTORS["order"][k % 2],
            weights=FACTORS["weights"][k // 3 % 2],
            shape=SEVERAL[k // 2 % 3],
            kernel=FACTORS["kernel"][k // 5 % 2],
            effects=effects,
        )
        if effects == "prompts":
            identity = "names" if k % 4 == 0 else FACTORS["identity"][k % 3]
            case = case._replace(identity=identity, learning=FACTORS["learning"][k // 4 % 2])
        else:  # of a kernel that is given
            case = case._replace(identity="id_column")
        if effects == "biases":  # a control differs between rows of one id
            case = case._replace(judges="partial", shape=("shared", "repeated")[k // 2 % 2])
        if (
            is_case(case)
            and not refusals(case)
            and (effects not in ("prompts", "slopes") or engine in OTHERS)
        ):
            yield case


GROUPED = tuple(_grouped())
REFUSED_EFFECTS = {
    Case(effects="prompts", **levels): (Refusal(levels, kind, remedy),)
    for levels, kind, remedy in (
        *(({"engine": engine}, ValueError, "Use inference='ep'") for engine in SPARSE),
        ({"engine": "svi", "fitting": "pieces"}, ValueError, "Use inference='ep'"),
        ({"time": "some"}, ValueError, "Leave one of the two out"),
        ({"engine": "chains", "time": "some"}, ValueError, "Leave one of the two out"),
        ({"users": "some"}, TypeError, "Leave out what it does not take"),
        ({"answers": "ratings"}, ValueError, "from_ratings"),
    )
}


def product(contexts=1):
    """All cases of at most so many levels of context that are not the plain ones."""
    for levels in itertools.product(*FACTORS.values()):
        case = Case(*levels)
        plain = Case()
        if case.engine == "chains":  # which are nothing without times and, of features, linear
            kernel = "smooth" if case.identity == "names" else "linear"
            plain = Case(time="some", kernel=kernel)
        beyond = sum(getattr(case, name) != getattr(plain, name) for name in CONTEXT)
        if beyond <= contexts and is_case(case):
            yield case


# -- a few that cover all --------------------------------------------------------------------------


def _tuples(case):
    """Pairs of levels, and triples of engine, answers and one context, by number of the factor."""
    found = list(itertools.combinations(enumerate(case), 2))
    names = Case._fields
    for name in CONTEXT:
        at = (0, 1, names.index(name))
        found.append(tuple((i, case[i]) for i in at))
    return found


def _wanted():
    names, levels = list(FACTORS), list(FACTORS.values())
    places = list(itertools.combinations(range(len(names)), 2))
    places += [(0, 1, names.index(name)) for name in CONTEXT]
    for at in places:
        for some in itertools.product(*(levels[i] for i in at)):
            yield tuple(zip(at, some, strict=True))


_LEVELS = list(FACTORS.values())
_NUMBER = {name: i for i, name in enumerate(FACTORS)}
_FORBIDDEN = [
    {_NUMBER[name]: levels for name, levels in each.items()}
    for each in (*NO_CASE, *(each.levels for each in REFUSED))
]
# Those that a level of a factor has a part in.
_FORBIDDEN_WITH = [
    {level: [each for each in _FORBIDDEN if level in each.get(i, ())] for level in levels}
    for i, levels in enumerate(_LEVELS)
]


def _completed(fixed, rng):
    """A case with these levels that is taken, at random; None if there is none."""
    if any(_is_forbidden(fixed, i) for i in fixed):
        return None
    return _filled(fixed, rng)


def _filled(fixed, rng):
    rest = [i for i in range(len(_LEVELS)) if i not in fixed]
    if not rest:
        return Case(*(fixed[i] for i in range(len(_LEVELS))))
    at = rng.choice(rest)
    for level in rng.sample(_LEVELS[at], len(_LEVELS[at])):
        more = {**fixed, at: level}
        found = None if _is_forbidden(more, at) else _filled(more, rng)
        if found is not None:
            return found
    return None


def _is_forbidden(levels, at):
    """Whether a level, the last that was chosen, does not go with the others."""
    return any(
        all(levels.get(i) in some for i, some in each.items())
        for each in _FORBIDDEN_WITH[at][levels[at]]
    )


def _cost(case):
    """Roughly, in seconds."""
    if case.judges == "none":
        found = 1.0 if case.learning == "fixed" else 3.0
    else:
        found = 2.0 if case.learning == "fixed" else 20.0
        found *= 1.0 if case.answers == "duels" else 1.5
    return found * (1.0 if case.time == "none" else 1.5) * (2.0 if case.engine in SPARSE else 1.0)


def covering(seed=0, candidates=20):
    """Cases that are taken, among which every pair of levels occurs that occurs in any.

    And every triple of engine, kind of answers and level of context.
    """
    rng = random.Random(seed)
    uncovered = dict.fromkeys(_wanted())
    chosen = []
    while uncovered:
        target = next(iter(reversed(uncovered)))
        found = [_completed(dict(target), rng) for _ in range(candidates)]
        if found[0] is None:  # no case has these levels and is taken
            del uncovered[target]
            continue
        best = max(found, key=lambda case: sum(t in uncovered for t in _tuples(case)) / _cost(case))
        for each in _tuples(best):
            uncovered.pop(each, None)
        chosen.append(best)
    return chosen


def refused_cases(seed=0):
    """Every refusal with each of its levels: once with all else plain, once with anything else."""
    rng = random.Random(seed)
    found = {}
    for each in REFUSED:
        for levels in itertools.product(*each.levels.values()):
            some = dict(zip(each.levels, levels, strict=True))
            plain = Case(**some)
            if is_case(plain):
                found.setdefault(plain, refusals(plain))
            while True:
                case = Case(**{name: rng.choice(level) for name, level in FACTORS.items()} | some)
                if is_case(case):
                    break
            found.setdefault(case, refusals(case))
    return found
