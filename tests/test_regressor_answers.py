"""The regressor on ties, choices and rankings: what goes in, what comes out, what is refused."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy_support import normal_cdf
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from skpref import JudgePrior, PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import HMC, Gibbs, Laplace
from skpref.likelihoods import Probit

TABLE = np.random.default_rng(0).uniform(-1.0, 1.0, (9, 2))
UTILITY = 2.0 * TABLE[:, 0] - TABLE[:, 1]
ENGINES = {"ep": "ep", "hmc": HMC(draws=64, chains=4), "gibbs": Gibbs(draws=64, chains=4, thin=1)}
KINDS = ("ties", "choices", "ranks", "ragged")
COMBINED = [("ep", kind) for kind in KINDS] + [
    ("hmc", "ties"),
    ("hmc", "choices"),
    ("gibbs", "ties"),
]
pytestmark = pytest.mark.filterwarnings("ignore:The chains have not mixed")


def answers(kind, seed=1, n=24):
    """X by position, and y, of noisy answers."""
    rng = np.random.default_rng(seed)
    k = {"ties": 2, "choices": 3}.get(kind, 4)
    X = np.array([rng.permutation(len(TABLE))[:k] for _ in range(n)])
    seen = UTILITY[X] + 0.4 * rng.standard_normal(X.shape)
    if kind == "ties":
        margin = seen[:, 0] - seen[:, 1]
        return X, np.where(np.abs(margin) < 0.5, 0, np.sign(margin)).astype(int)
    rank = 1 + np.argsort(np.argsort(-seen, axis=1), axis=1)
    if kind == "choices":
        return X, seen.argmax(axis=1)
    if kind == "ragged":
        X[::2, 3] = -1
        seen[::2, 3] = -np.inf
        return X, seen.argmax(axis=1)
    return X, np.where(rank == 4, 3, rank)  # the last two as they please


def model(engine="ep", kind="ties", **options):
    options = {"kernel": RBF(0.8), "noise_variance": 0.1, "optimizer": None, "random_state": 0,
               **options}  # fmt: skip
    threshold = 0.3 if kind == "ties" else None
    inference = clone(ENGINES[engine]) if not isinstance(ENGINES[engine], str) else engine
    return PairwisePreferenceRegressor(
        items=ItemTable(TABLE), inference=inference, tie_threshold=threshold, **options
    )


def outputs(fitted, X, y):
    return {
        "proba": fitted.predict_proba(X),
        "log": fitted.predict_log_proba(X),
        "decision": fitted.decision_function(X),
        "mean": fitted.predict(X),
        "std": fitted.predict(X, return_std=True)[1],
        "utility": fitted.predict(np.arange(len(TABLE))),
        "score": fitted.score(X, y),
    }


def assert_same(one, other, **tolerance):
    for name in one:
        assert_allclose(other[name], one[name], err_msg=name, **tolerance)


# -- twins of scikit-learn's checks ------------------------------------------------------------


@pytest.mark.parametrize(("engine", "kind"), COMBINED)
def test_clone_pickle_and_refit_give_the_same(engine, kind):
    X, y = answers(kind)
    fitted = model(engine, kind).fit(X, y)
    found = outputs(fitted, X, y)
    assert_same(found, outputs(clone(fitted).fit(X, y), X, y), rtol=1e-12)
    assert_same(found, outputs(pickle.loads(pickle.dumps(fitted)), X, y), rtol=0.0)
    assert_same(found, outputs(fitted.fit(X, y), X, y), rtol=1e-12)


@pytest.mark.parametrize(("engine", "kind"), COMBINED)
def test_subsets_and_orders_are_predicted_as_the_whole(engine, kind):
    X, y = answers(kind)
    fitted = model(engine, kind).fit(X, y)
    whole, order = outputs(fitted, X, y), np.random.default_rng(2).permutation(len(X))
    parts = [outputs(fitted, X[i : i + 5], y[i : i + 5]) for i in range(0, len(X), 5)]
    permuted = outputs(fitted, X[order], y[order])
    for name in ("proba", "log", "decision", "mean", "std"):
        found = np.concatenate([part[name] for part in parts])
        assert_allclose(found, whole[name], rtol=1e-8, atol=1e-9, err_msg=name)
        assert_allclose(permuted[name], whole[name][order], rtol=1e-8, atol=1e-9, err_msg=name)
    assert permuted["score"] == pytest.approx(whole["score"], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_training_answers_does_not_matter(kind):
    X, y = answers(kind)
    order = np.random.default_rng(3).permutation(len(X))
    one, other = model(kind=kind).fit(X, y), model(kind=kind).fit(X[order], y[order])
    assert_same(outputs(one, X, y), outputs(other, X, y), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["choices", "ranks", "ragged"])
def test_order_within_a_set_does_not_matter(kind):
    X, y = answers(kind)
    rng = np.random.default_rng(3)
    size = (X >= 0).sum(axis=1)
    turn = np.array([np.append(rng.permutation(n), np.arange(n, X.shape[1])) for n in size])
    back = np.argsort(turn, axis=1)
    turned = np.take_along_axis(X, turn, axis=1)
    if y.ndim == 2:
        other = np.take_along_axis(y, turn, axis=1)
    else:
        other = np.take_along_axis(back, y[:, None], axis=1)[:, 0]
    one, two = model(kind=kind).fit(X, y), model(kind=kind).fit(turned, other)
    assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-9)
    swapped = np.take_along_axis(two.predict_proba(turned), back, axis=1)
    assert_allclose(swapped, one.predict_proba(X), atol=1e-9)
    assert two.score(turned, other) == pytest.approx(one.score(X, y))


def test_turning_duels_with_ties_round_turns_their_probabilities():
    X, y = answers("ties")
    one, two = model().fit(X, y), model().fit(X[:, ::-1], -y)
    assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-9)
    assert_allclose(one.predict_proba(X[:, ::-1])[:, ::-1], one.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_positions_and_arrays_of_features_are_the_same(kind):
    X, y = answers(kind)
    by_position = model(kind=kind).fit(X, y)
    rows = TABLE[X] if kind != "ragged" else np.where((X < 0)[..., None], np.nan, TABLE[X])
    whole = X.min(axis=1) >= 0
    plain = clone(by_position).set_params(items=None)
    if kind == "ragged":
        rows, X, y = rows[whole], X[whole], y[whole]
        by_position.fit(X, y)
    plain.fit(rows, y)
    assert_allclose(plain.predict_proba(rows), by_position.predict_proba(X), atol=1e-9)
    assert plain.score(rows, y) == by_position.score(X, y)


@pytest.mark.slow
def test_parameters_and_arguments_are_left_alone():
    for kind in KINDS:
        X, y = answers(kind)
        X.flags.writeable = y.flags.writeable = False
        fitted = model(kind=kind, optimizer="fmin_l_bfgs_b").fit(X, y)
        assert fitted.get_params()["noise_variance"] == 0.1
        if kind == "ties":
            assert fitted.tie_threshold == 0.3 and fitted.tie_threshold_ != 0.3


# -- what comes out ----------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "kind"), COMBINED)
def test_probabilities_sum_to_one_and_agree_with_their_logarithms(engine, kind):
    X, y = answers(kind)
    fitted = model(engine, kind).fit(X, y)
    proba = fitted.predict_proba(X)
    assert proba.shape == (len(X), 3 if kind == "ties" else X.shape[1])
    assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert_array_equal(fitted.classes_, [-1, 0, 1] if kind == "ties" else np.arange(X.shape[1]))
    with np.errstate(divide="ignore"):
        assert_allclose(fitted.predict_log_proba(X), np.log(proba), atol=2e-6)
    if kind == "ragged":
        assert_array_equal(proba[X < 0], 0.0)
        assert_array_equal(np.isnan(fitted.predict(X)), X < 0)
    assert fitted.score(X, y) > 0.5


@pytest.mark.parametrize("k", [3, 4])
def test_choices_are_orthant_probabilities_of_the_posterior(k):
    X, y = answers("choices")
    fitted = model(kind="choices").fit(X, y)
    rng = np.random.default_rng(5)
    items = rng.uniform(-1.0, 1.0, (k, 2))
    found = fitted.posterior_.choice_proba(items[None])[0]
    mean = fitted.posterior_.mean(items)
    covariance = fitted.posterior_.cov(items) + 0.1 * np.eye(k)
    for i in range(k):
        D = np.delete(np.eye(k), i, axis=0) - np.eye(k)[i]  # others minus this one, below zero
        truth = normal_cdf(
            np.zeros(k - 1), D @ mean, D @ covariance @ D.T, abseps=1e-7, releps=1e-7,
            maxpts=2_000_000,
        )  # fmt: skip
        assert found[i] == pytest.approx(truth, abs=1e-6)


def test_a_mixture_is_the_average_of_its_draws():
    """And of one normal of its moments more, as of duels."""
    X, y = answers("choices")
    fitted = model("hmc", "choices").fit(X, y)
    posterior, sets = fitted.posterior_, TABLE[X[:3, :3]]
    n = posterior.n_components
    assert n == 64
    each = np.zeros((3, 3))
    covariance = []
    for s in range(n):
        one = type(posterior)(posterior.kernel, posterior.likelihood, posterior.anchors,
                              posterior.weights[:, [s]], posterior.factor)  # fmt: skip
        each += one.choice_proba(sets)
        covariance.append(one.cov(sets[0]))
    matched = (n + 1) * posterior.choice_proba(sets) - each
    assert_allclose(matched.sum(axis=1), 1.0, atol=1e-9)
    assert np.all(matched > 0.0) and np.all(matched < 1.0)
    mean, whole = posterior.mean(sets[0]), posterior.cov(sets[0]) + 0.1 * np.eye(3)
    D = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    truth = normal_cdf(np.zeros(2), D @ mean, D @ whole @ D.T, abseps=1e-9)
    assert matched[0, 0] == pytest.approx(truth, abs=1e-5)


@pytest.mark.parametrize("kind", ["ties", "choices", "ragged"])
def test_scorers_know_the_answers(kind):
    X, y = answers(kind, n=60)
    fitted = model(kind=kind).fit(X, y)
    loss = log_loss(y, fitted.predict_proba(X), labels=fitted.classes_)
    share = np.mean(fitted.predict_log_proba(X)[np.arange(len(X)), y + (kind == "ties")])
    assert loss == pytest.approx(-share, abs=1e-6)
    assert loss < np.log(len(fitted.classes_)) - 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cross_val_score(fitted, X, y, scoring="neg_log_loss", cv=3)
    assert np.all(np.isfinite(found)) and found.mean() < 0.0


def test_scores_call_the_most_probable():
    X, y = answers("ties", n=60)
    fitted = model().fit(X, y)
    called = fitted.classes_[fitted.predict_proba(X).argmax(axis=1)]
    assert fitted.score(X, y) == pytest.approx(np.mean(called == y))
    half = np.arange(60) % 2.0
    assert fitted.score(X, y, sample_weight=half) == pytest.approx(np.mean((called == y)[1::2]))
    X, y = answers("choices", n=60)
    fitted = model(kind="choices").fit(X, y)
    best = fitted.predict(X).argmax(axis=1)
    assert fitted.score(X, y) == pytest.approx(np.mean(best == y))
    X, rank = answers("ranks", n=20)
    utility = fitted.predict(X)
    shares = []
    for row, of in zip(utility, rank, strict=True):
        pairs = [(i, j) for i in range(4) for j in range(4) if of[i] < of[j]]
        shares.append(np.mean([row[i] > row[j] for i, j in pairs]))
    assert fitted.score(X, rank) == pytest.approx(np.mean(shares))


# -- who was shown first -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_order_moves_what_is_shown_first(kind):
    X, y = answers(kind)
    n = len(X)
    fitted = model(kind=kind, order_effect=0.7).fit(X, y)
    first, neither = (fitted.predict_proba(X, order=np.full(n, o)) for o in (1, 0))
    at = -1 if kind == "ties" else 0
    assert np.all(first[:, at] > neither[:, at])
    assert_array_equal(fitted.predict_proba(X), first)
    assert_array_equal(fitted.predict_proba(X, order=0), neither)  # of all
    moved = fitted.decision_function(X) - fitted.decision_function(X, order=np.zeros(n))
    assert_allclose(moved if kind == "ties" else moved[:, 0], 0.7, rtol=1e-9)
    assert_allclose(fitted.predict_log_proba(X, order=np.zeros(n))[:, at], np.log(neither[:, at]))
    if kind == "ties":
        second = fitted.predict_proba(X, order=np.full(n, -1))
        turned = fitted.predict_proba(X[:, ::-1], order=np.ones(n))
        assert_allclose(second, turned[:, ::-1], atol=1e-12)
    # In training, too: who is chosen though shown last is better than one who was first.
    other = model(kind=kind, order_effect=0.7).fit(X, y, order=np.zeros(n))
    assert np.abs(other.predict(np.arange(9)) - fitted.predict(np.arange(9))).max() > 0.01
    same = model(kind=kind, order_effect=0.7).fit(X, y, order=0)
    assert_array_equal(same.predict(np.arange(9)), other.predict(np.arange(9)))
    with pytest.warns(UserWarning, match="order= does nothing"):
        plain = model(kind=kind).fit(X, y, order=np.zeros(n))
    assert_allclose(plain.predict_proba(X), model(kind=kind).fit(X, y).predict_proba(X))


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"order_effect_bounds": (-3.0, 3.0)}, "Give order_effect= its size"),
        ({}, r"held at 0\. Give order_effect= its size"),
        ({"optimizer": "fmin_l_bfgs_b"}, r"Give order_effect_bounds=\(-3\.0, 3\.0\) to learn it"),
        ({"likelihood": Probit(0.1, tie_threshold=0.3)}, "Give Probit order_effect= its size"),
    ],
)
def test_an_order_that_does_nothing_is_warned_of(options, remedy):
    X, y = answers("ties")
    with pytest.warns(UserWarning, match=rf"order= does nothing .*{remedy}, or leave order= out"):
        model(**options).fit(X, y, order=-1)


@pytest.mark.filterwarnings("error:order= does nothing")
@pytest.mark.parametrize(
    ("options", "metadata"),
    [
        ({"order_effect_bounds": (-3.0, 3.0), "optimizer": "fmin_l_bfgs_b"}, {}),
        ({"order_effect": 0.3}, {}),
        ({"judge_prior": JudgePrior(order_variance=0.01)}, {"judges": [0, 1, 2] * 8}),
    ],
)
def test_an_order_that_counts_is_not_warned_of(options, metadata):
    X, y = answers("ties")
    moved = model(**options).fit(X, y, order=-1, **metadata)
    assert moved.comparisons_.ordered


def test_of_rated_items_none_is_shown_first():
    """Where all are shown in both orders an order effect is no news of a utility."""
    plain, effect = (
        PairwisePreferenceRegressor(RBF(0.8), optimizer=None, noise_variance=0.1, order_effect=h)
        for h in (0.0, 0.9)
    )
    truth = plain.fit(TABLE, UTILITY).predict(TABLE)
    assert_allclose(effect.fit(TABLE, UTILITY).predict(TABLE), truth, atol=1e-9)
    winner, loser = np.nonzero(UTILITY[:, None] > UTILITY)
    pairs = TABLE[np.column_stack([winner, loser])]
    neutral = effect.fit(pairs, order=np.zeros(len(pairs), dtype=int)).predict(TABLE)
    assert_allclose(neutral, truth, atol=1e-9)


def test_an_order_effect_is_learned():
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(9)[:2] for _ in range(300)])
    seen = UTILITY[X] + 0.3 * rng.standard_normal((300, 2))
    order = rng.integers(-1, 2, 300)
    y = np.where(seen[:, 0] - seen[:, 1] + 0.8 * order > 0.0, 1, -1)
    fitted = PairwisePreferenceRegressor(
        RBF(0.8), items=TABLE, order_effect_bounds=(-5.0, 5.0), noise_variance=0.1
    ).fit(X, y, order=order)
    plain = PairwisePreferenceRegressor(RBF(0.8), items=TABLE, noise_variance=0.1).fit(X, y)
    assert plain.order_effect_ == 0.0
    # Only the ratio to the noise is identified: 0.8 in units of 0.3.
    ratio = fitted.order_effect_ / np.sqrt(fitted.noise_variance_)
    assert ratio == pytest.approx(0.8 / 0.3, rel=0.25)
    gain = fitted.log_marginal_likelihood_value_ - plain.log_marginal_likelihood_value_
    assert gain > 10.0


# -- engines and weights ----------------------------------------------------------------------


def test_laplace_takes_ties():
    X, y = answers("ties")
    noisy = model(noise_variance=1.0)  # where Laplace's approximation is near
    laplace = clone(noisy).set_params(inference=Laplace()).fit(X, y)
    assert_allclose(laplace.predict_proba(X), noisy.fit(X, y).predict_proba(X), atol=0.03)


@pytest.mark.parametrize(
    ("engine", "kind"), [("ep", "ties"), ("ep", "choices"), ("ep", "ranks"), ("hmc", "choices")]
)
def test_weights_are_repetitions(engine, kind):
    X, y = answers(kind, n=10)
    weight = np.arange(10) % 3
    weighed = model(engine, kind).fit(X, y, sample_weight=weight)
    again = model(engine, kind).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    assert_allclose(weighed.predict_proba(X), again.predict_proba(X), atol=1e-9)
