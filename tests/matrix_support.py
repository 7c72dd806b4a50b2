"""Cases of the matrix as the package is told and answers them, and what is exact."""

from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
from chains_support import chains_alone
from matrix import SPARSE
from matrix_blocks import propagated
from matrix_oracle import JudgesLaw, Noise, Truth, exact
from matrix_problems import (
    DRIFT,
    EFFECT,
    GRADES,
    LASTS,
    LENGTH,
    NOISE,
    OWN,
    THRESHOLD,
    covariance,
    made_of,
    problem_of,
)
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from skpref import CollaborativePreferenceRegressor, JudgePrior, PairwisePreferenceRegressor
from skpref.duels import ItemTable, from_columns
from skpref.fitting._fit import evaluate_evidence
from skpref.inference import EP, HMC, SVI, Gibbs
from skpref.kernels import Identity, Linear, OnColumns

NOISE_BOUNDS = (0.05, 2.0)
RELIABILITY, SHARES, OWN_ORDER = 0.1, (0.1, 0.05), 0.3
# Variances of the slope that judges share, of their own ones, and of effects of rows and contexts.
SLOPE, OWN_SLOPE = 0.1, 0.2
EFFECTS = {"rows": 0.4, "contexts": 0.4, "slopes": 0.4}
NAMES = np.array([f"item {i}" for i in range(30)], dtype=object)
JUDGES = np.array(["ann", "bob", "cid"], dtype=object)
USERS = np.array(["una", "vic", "wim"], dtype=object)


# -- what is exact ---------------------------------------------------------------------------------


def truth_of(case, model):
    """Exact probabilities of all that is asked.

    At the hyperparameters given or, where they are learned, those of the model; of users at the
    covariance of tastes that it found, which always is.
    """
    if case.effects != "none":
        return _truth_of_effects(case, model)
    if case.learning == "fixed" and not hasattr(model.posterior_, "tastes"):
        return _fixed_truth(*case[1:-4], linear=case.kernel == "linear")
    return _exact(problem_of(case), *_learned(case, model), tastes=_tastes(case, model))


def reliability_used(model):
    """The reliability of each judge that the first part of the posterior was found with."""
    return np.asarray(model.judges_.components()[1][0].used)


def truth_given_reliability(case, model):
    """The same where every judge has the reliability that the utility was found with."""
    problem, reliability = problem_of(case), reliability_used(model)
    said = [one._replace(reliability=float(reliability[one.judge])) for one in problem.answers]
    asked = [one._replace(judge=None) for one in problem.asked]
    given = problem._replace(answers=said, asked=asked)
    if case.engine == "chains":
        return _of_independent_items(case, given, *_learned(case, model))
    own = OWN_ORDER if case.judges == "partial" else 0.0
    return _exact(given, *_learned(case, model), order_variance=own)


def truth_of_independent_items(case):
    """What is true of a posterior in which items, and what stays, count as independent.

    At the hyperparameters given. How far that is from what is exact is no matter of how it is
    computed.
    """
    problem = problem_of(case)
    K = covariance(problem.rows, case.identity, linear=case.kernel == "linear")
    return _of_independent_items(case, problem, K, _noise(case.answers, case.order))


def _of_independent_items(case, problem, K, noise):
    rows = problem.rows
    static = np.zeros_like(K)
    if case.identity != "names":  # the linear kernel, of which the amplitude is not learned
        static = covariance(rows[:, :3], "features", linear=True)
    parts = [static] if static.any() else []
    for item in np.unique(rows[:, 0]):
        own = rows[:, 0] == item
        parts.append(np.where(np.outer(own, own), K - static, 0.0))
    assert np.allclose(sum(parts), K, atol=1e-10)
    return Truth(propagated(parts, noise, _in_turn(case, problem), problem.asked), 0.0)


def _in_turn(case, problem):
    """Answers in the groups that are told together: a first piece, then each piece by its times."""
    if case.fitting == "whole":
        return [problem.answers]
    time = [problem.rows[one.shown[0], 3] for one in problem.answers]
    if problem.rated is None:
        pieces = _pieces(case, len(time), None)
        piece = np.concatenate([np.full(len(some), k) for k, some in enumerate(pieces)])
    else:  # a group of ratings is of one time
        piece = np.unique(time, return_inverse=True)[1]
    found = {}
    for k, when, one in zip(piece, time, problem.answers, strict=True):
        found.setdefault((k, when if k else None), []).append(one)
    return list(found.values())


def _learned(case, model):
    """Prior covariance of the rows' utilities, and the noise."""
    rows = problem_of(case).rows
    if case.learning == "fixed":
        K = covariance(rows, case.identity, linear=case.kernel == "linear")
        return K, _noise(case.answers, case.order)
    found = model.noise_variance_, model.tie_threshold_, model.order_effect_
    grades = model.grade_thresholds_ if case.answers == "graded" else ()
    return model.kernel_(_seen(case, rows)), Noise(*found, grades)


def _tastes(case, model):
    """Prior covariance of what a user's utilities of the rows have of their own."""
    posterior = model.posterior_
    if not hasattr(posterior, "tastes"):
        return None
    rows = problem_of(case).rows.copy()
    if case.identity == "columns":  # texts have numbers of the model's own
        known = {name: number for number, name in enumerate(model.ids_)}
        rows[:, 0] = [known.get(NAMES[int(i)], -1.0 - i) for i in rows[:, 0]]
    told = _encoded(case, rows)
    phi = model.kernel_(told, posterior.anchors) @ posterior.whiten.T
    axes, spare = (phi @ part for part in posterior.functions)
    # A taste is of the same kernel: what no item of training tells of it is of its own.
    unseen = model.taste_variance_ * (model.kernel_(told) - phi @ phi.T)
    return axes @ posterior.tastes.prior.own @ axes.T + spare @ spare.T + unseen


@cache
def _fixed_truth(answers, judges, order, weights, users, time, identity, shape, linear=False):
    made = made_of(answers, judges, order, weights, users, time, identity, shape)
    law = None
    if judges != "none":
        law = JudgesLaw(RELIABILITY, *SHARES, OWN_ORDER if judges == "partial" else 0.0)
    K = covariance(made.rows, identity, linear)
    return _exact(made, K, _noise(answers, order), law)


def _truth_of_effects(case, model):
    """Exact probabilities where utilities have effects of a group of answers."""
    problem, rows, pairs = problem_of(case), [], {}
    encoded = _encoded(case, problem.rows)

    def in_group(one, group):
        first = len(rows)
        if case.effects == "biases":
            leads = (one.lead > 0, one.lead < 0)
            rows.extend(
                [*encoded[i], np.nan if one.judge is None else one.judge, lead]
                for i, lead in zip(one.shown, leads, strict=True)
            )
            one = one._replace(judge=None)
        else:
            pair = pairs.setdefault((group, *sorted(one.shown)), len(pairs))
            rows.extend([*encoded[i], group, pair] for i in one.shown)
        return one._replace(shown=tuple(range(first, len(rows))))

    said = [in_group(*each) for each in zip(problem.answers, _groups(problem), strict=True)]
    asked = [in_group(*each) for each in zip(problem.asked, problem.asked_user, strict=True)]
    if case.effects == "prompts":  # of which the model says the columns that it has
        rows = [row[: model.comparisons_.items.shape[1]] for row in rows]
    distinct, place = np.unique(np.array(rows, dtype=float), axis=0, return_inverse=True)
    place = place.reshape(-1)
    said, asked = (
        [one._replace(shown=tuple(place[list(one.shown)].tolist())) for one in some]
        for some in (said, asked)
    )
    noise = _noise(case.answers, case.order)
    if case.learning == "learned":
        grades = model.grade_thresholds_ if case.answers == "graded" else ()
        noise = Noise(model.noise_variance_, model.tie_threshold_, model.order_effect_, grades)
    if case.effects == "prompts":  # the kernel is the model's own
        return exact(model.kernel_(distinct), noise, said, asked)
    return exact(_covariance_of_effects(case, problem, distinct), noise, said, asked)


def _covariance_of_effects(case, problem, rows):
    """Covariance of rows of id, two features and, of answers, judge and lead or context."""
    x, same = rows[:, 1:3], rows[:, :1] == rows[:, 0]
    if case.effects != "biases":
        utility = covariance(rows[:, :3], case.identity, linear=case.kernel == "linear")
        group = x if case.effects == "rows" else rows[:, 3:4]
        same = np.outer(x[:, 0], x[:, 0]) if case.effects == "slopes" else same
        return utility + EFFECTS[case.effects] * same * np.all(group[:, None] == group, axis=2)
    of_utility = np.column_stack([rows[:, 0], np.zeros(len(rows)), x[:, 1]])
    utility = covariance(of_utility, case.identity, linear=case.kernel == "linear")
    control = x[:, 0] / np.std(problem.rows[_shown_rows(case), 1])
    controls, lead = np.outer(control, control), rows[:, 4]
    by_judge = OWN_SLOPE * controls + OWN_ORDER * np.outer(lead, lead)
    is_one_judge = rows[:, 3:4] == rows[:, 3]  # nan: the reference judge, who has no biases
    return utility + SLOPE * controls + np.where(is_one_judge, by_judge, 0.0)


def _shown_rows(case):
    """Numbers of the rows that answers are about."""
    return sorted({i for one in problem_of(case).answers for i in one.shown})


def _groups(problem):
    """Number of the group of each answer; that of each question is ``asked_user``."""
    return np.arange(len(problem.answers)) % 3


def _with_contexts(X, groups):
    """X with the context of each answer beside its items."""
    groups = np.broadcast_to(np.asarray(groups)[:, None, None], (*X.shape[:2], 1))
    return np.concatenate([X, groups], axis=2)


def _noise(answers, order):
    threshold = THRESHOLD if answers in ("ties", "graded") else None
    effect = EFFECT if order == "some" else 0.0
    return Noise(NOISE, threshold, effect, GRADES if answers == "graded" else ())


def _exact(problem, K, noise, law=None, tastes=None, order_variance=0.0):
    said, asked = problem.answers, problem.asked
    n_judges = 1 + max((one.judge for one in said if one.judge is not None), default=-1)
    if tastes is None:
        return exact(K, noise, said, asked, law, n_judges, order_variance)
    p, n_users = len(K), 4  # of whom the last was not fitted

    def of_user(one, user):
        at = n_users - 1 if user < 0 else int(user)
        return one._replace(shown=tuple(at * p + i for i in one.shown))

    said = [of_user(*each) for each in zip(said, problem.user, strict=True)]
    asked = [of_user(*each) for each in zip(asked, problem.asked_user, strict=True)]
    whole = np.kron(np.ones((n_users, n_users)), K) + np.kron(np.eye(n_users), tastes)
    return exact(whole, noise, said, asked)


# -- what the package says -------------------------------------------------------------------------


def model_of(case, **more):
    """The estimator of a case; ``more`` are further parameters."""
    # Of choices on prompts 1000 draws of Gibbs sampling err by up to .012, 4000 by .005, which is
    # about what the truth errs by.
    draws = 1000 if case.effects == "none" else 4000
    engines = {
        "hmc": HMC(draws=draws), "gibbs": Gibbs(draws=draws), "svi": SVI(),
        "minibatches": SVI(batch_size=4), "ekf": SVI(local="ekf"),
        "chains": EP(items="independent"),
    }  # fmt: skip
    options = {"random_state": 0, "inference": engines.get(case.engine, case.engine)}
    options["noise_variance"] = NOISE
    if case.answers in ("ties", "graded"):
        options["tie_threshold"] = THRESHOLD
    if case.answers == "graded":
        options["grade_thresholds"] = GRADES
    if case.order == "some":
        options["order_effect"] = EFFECT
    if case.learning == "fixed":
        options |= {"optimizer": None, "kernel": kernel_of(case)}
    else:
        options["noise_variance_bounds"] = NOISE_BOUNDS
        if case.judges != "none":  # the likelihood's alone: reliability depends on it
            options["kernel"] = kernel_of(case, "fixed")
        elif case.kernel == "linear":  # which the default kernel is not
            options["kernel"] = kernel_of(case)
        if case.order == "some":
            options["order_effect_bounds"] = (-1.0, 1.0)
    if case.time != "none" and case.users == "none":
        options["drift"] = drift_of(case)
    if case.identity == "id_column":
        options["id_column"] = 0
    if case.identity == "names":
        options["items"] = ItemTable.from_names(NAMES)
    if case.users == "some":
        return CollaborativePreferenceRegressor(**options | {"tol": 1e-4} | more)
    own = OWN_ORDER if case.judges == "partial" else 0.0
    options["judge_prior"] = JudgePrior(order_variance=own)
    if case.effects == "biases":  # of judges whose reliability is 1
        options["judge_prior"] = JudgePrior(
            1e-12, random=0.0, adversarial=0.0, control_variance=OWN_SLOPE, order_variance=own
        )
    return PairwisePreferenceRegressor(**options | more)


def kernel_of(case, bounds=(1e-5, 1e5)):
    if case.identity == "names":
        return None
    if case.kernel == "linear":
        smooth = ConstantKernel(1.0, bounds) * DotProduct(0.0, "fixed")
    else:
        smooth = RBF(LENGTH, bounds)
    if case.identity == "features":
        return smooth
    own = ConstantKernel(OWN, bounds) * OnColumns(Identity(), [0])
    if case.effects == "biases":
        scale = np.std(problem_of(case).rows[_shown_rows(case), 1])
        return OnColumns(smooth, [2]) + own + SLOPE * OnColumns(Linear(scale), [1])
    if case.effects == "slopes":  # whose column is that of the prompts
        slope = OnColumns(Linear(), [1]) * OnColumns(Identity(), [3])
        own = own + EFFECTS["slopes"] * slope
    elif case.effects in EFFECTS:
        columns = [0, 1, 2] if case.effects == "rows" else [0, 3]
        own = own + EFFECTS[case.effects] * OnColumns(Identity(), columns)
    return OnColumns(smooth, [1, 2]) + own


def drift_of(case):
    """How utilities change, of given variance and lengthscale or learned from there."""
    if case.learning == "learned":
        return "matern12"
    return ConstantKernel(DRIFT, "fixed") * Matern(LASTS, "fixed", nu=0.5)


def _encoded(case, rows):
    """Rows as `fit` is told them; of what drifts the kernel sees the times as a column more."""
    if case.identity == "features":
        return rows[:, 1:3]
    return rows[:, :1] if case.identity == "names" else rows[:, :3]


def _seen(case, rows):
    """Rows as the kernel sees them."""
    return np.hstack([_encoded(case, rows), rows[:, 3:]])


def _times(rows, shown):
    """When each answer was given, about rows that are of one time."""
    time = rows[shown, 3]
    assert np.all(time == time[:, :1])
    return time[:, 0]


def _shown(case, rows, shown):
    """X of these rows of items."""
    shown = np.asarray(shown)
    if case.identity == "names":
        return (
            NAMES[rows[shown, 0].astype(int)] if case.engine == "ep" else rows[shown, 0].astype(int)
        )
    return _encoded(case, rows)[shown]


def arguments(case):
    """X, y and all else that ``fit`` is told."""
    problem = problem_of(case)
    if problem.rated is not None:
        shown, rating, group, weight, user = problem.rated
        told = {"qid": group}
        if case.weights != "none":
            told["sample_weight"] = weight
        if case.users == "some":
            told["users"] = USERS[user]
        if case.judges != "none":
            told["judges"] = JUDGES[group % 3]
        if case.effects == "prompts":
            told["prompts"] = group % 3
        if case.order != "none":
            told["order"] = np.ones(len(shown), dtype=int)
        if case.time != "none":
            told["time"] = problem.rows[shown, 3]
        return _shown(case, problem.rows, shown), rating, told
    said = problem.answers
    shown = np.array([one.shown for one in said])
    if case.identity == "columns":
        X, y = _from_columns(case, problem, shown)
    else:
        X, y = _shown(case, problem.rows, shown), _labels(case, said)
    told = {}
    if case.weights != "none":
        told["sample_weight"] = np.array([one.weight for one in said])
    if case.order == "some" or case.judges == "partial":
        told["order"] = np.array([one.lead for one in said])
    if case.judges != "none":
        judge = [0 if one.judge is None else one.judge for one in said]
        told["judges"] = JUDGES[judge]
    if case.users == "some":
        told["users"] = USERS[problem.user]
    if case.effects in ("prompts", "slopes"):
        told["prompts"] = _groups(problem)
    if case.effects == "contexts":
        X = _with_contexts(X, _groups(problem))
    if case.time != "none":
        told["time"] = _times(problem.rows, shown)
    return X, y, told


def _labels(case, said):
    rank = np.array([one.rank for one in said])
    if case.answers == "duels":
        return (rank[:, 0] < rank[:, 1]).astype(int)
    if case.answers in ("ties", "graded"):
        return np.sign(rank[:, 1] - rank[:, 0]) * [one.grade for one in said]
    return rank.argmin(axis=1) if case.answers == "best" else rank


def _frame(rows, shown, **more):
    columns = {}
    for side, name in enumerate(("home", "away")):
        columns[name] = NAMES[rows[shown[:, side], 0].astype(int)]
        for j in (1, 2):
            columns[f"{name}_x{j}"] = rows[shown[:, side], j]
    return pd.DataFrame(columns | more)


def _from_columns(case, problem, shown):
    frame = _frame(problem.rows, shown, said=_labels(case, problem.answers))
    features = [[f"{name}_x{j}" for j in (1, 2)] for name in ("home", "away")]
    told = {"ties": {"ties": True}, "graded": {"grades": 2, "ties": True}}.get(case.answers, {})
    X, y = from_columns(frame, *features, "said", ids=("home", "away"), **told)
    assert np.array_equal(y, frame["said"]), "turned round, so that order= would be another's"
    return X, y


def fitted(case, **more):
    """The model of a case, fitted to its answers, whole or in pieces."""
    with chains_alone() if case.engine == "chains" else nullcontext():
        return _fitted(case, **more)


def _fitted(case, **more):
    X, y, told = arguments(case)
    model = model_of(case, **more)
    if case.fitting == "whole":
        return model.fit(X, y, **told)
    for piece in _pieces(case, len(y), told):
        some = {name: values[piece] for name, values in told.items()}
        model.partial_fit(X[piece], np.asarray(y)[piece], **some)
    return model


def _pieces(case, n, told):
    """Where pieces are cut; rated items of a group stay together."""
    if case.answers == "ratings":
        cuts = np.flatnonzero(np.diff(told["qid"])) + 1
        return np.split(np.arange(n), cuts)
    return np.array_split(np.arange(n), min(3, n))


def predictions(case, model, common=False):
    """Probabilities of outcomes of all that is asked, one array each.

    ``common``: by the reference judge, whoever was asked.
    """
    problem = problem_of(case)
    if common:
        asked = [one._replace(judge=None) for one in problem.asked]
        problem = problem._replace(asked=asked)
    found = []
    for k in sorted({len(one.shown) for one in problem.asked}):
        at = [i for i, one in enumerate(problem.asked) if len(one.shown) == k]
        asked = [problem.asked[i] for i in at]
        shown = np.array([one.shown for one in asked])
        users = [problem.asked_user[i] for i in at]
        users = np.array([USERS[each] if each >= 0 else "somebody" for each in users], dtype=object)
        found += list(_proba(case, model, problem, asked, shown, users))
    return found


def _proba(case, model, problem, asked, shown, users):
    if case.answers == "ratings":
        rows = _seen(case, problem.rows)[shown]
        posterior = model.posterior_for(users) if case.users == "some" else model.posterior_
        won = posterior.win_probability(rows[:, 0], rows[:, 1])
        return np.column_stack([1.0 - won, won])
    if case.identity == "columns":
        frame = _frame(problem.rows, shown)
        features = [[f"{name}_x{j}" for j in (1, 2)] for name in ("home", "away")]
        outcomes = np.arange(len(frame)) % 2  # of either kind, so that none is turned round
        X, _ = from_columns(frame, *features, outcomes, ids=("home", "away"))
    else:
        X = _shown(case, problem.rows, shown)
    told = {}
    if case.order == "some" or case.judges == "partial":
        told["order"] = np.array([one.lead for one in asked])
    if case.judges != "none":
        names = [None, *JUDGES, "somebody"]
        told["judges"] = [names[0 if one.judge is None else one.judge + 1 or 4] for one in asked]
    if case.users == "some":
        told["users"] = users
    groups = [problem.asked_user[problem.asked.index(one)] for one in asked]
    if case.effects in ("prompts", "slopes"):
        told["prompts"] = groups
    if case.effects == "contexts":
        X = _with_contexts(X, groups)
    if case.time != "none":
        told["time"] = _times(problem.rows, shown)
    return model.predict_proba(X, **told)


def refit(case, model):
    """The same model and answers, whole, with hyperparameters fixed where they were learned."""
    more = {"optimizer": None, "kernel": model.kernel_, "noise_variance": model.noise_variance_}
    if case.answers in ("ties", "graded"):
        more["tie_threshold"] = model.tie_threshold_
    if case.answers == "graded":
        more["grade_thresholds"] = model.grade_thresholds_
    if case.order == "some":
        more["order_effect"] = model.order_effect_
    if case.time != "none":  # `kernel_` has it
        more["drift"] = None
    if hasattr(model, "taste_variance_"):
        more["taste_variance"] = model.taste_variance_
    return fitted(case._replace(fitting="whole", learning="fixed"), **more)


def gain(case, model, step=0.2):
    """How many nats better hyperparameters a step away are, at most, than those learned.

    By the evidence and the prior that the search maximises, of judges given their reliability:
    those of expectation propagation, where the engine learns by them.
    """
    known = model._model
    if case.engine in SPARSE:
        known = replace(known, engine=EP())
    comparisons, bounds = model.comparisons_, known.bounds

    def value(theta):
        found = evaluate_evidence(comparisons, known.at(theta)).approximation.sites.log_evidence
        return found + known.log_prior(theta)[0]

    here, best = value(known.theta), -np.inf
    for i in range(len(known.theta)):
        for sign in (-1.0, 1.0):
            theta = known.theta.copy()
            theta[i] = np.clip(theta[i] + sign * step, *bounds[i])
            best = max(best, value(theta) - here)
    return best if len(known.theta) else 0.0
