"""Soft answers: probabilities of outcomes in place of one, beside quadrature and repeated rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, cross_val_score

from skpref import CollaborativePreferenceRegressor, ItemTable, PairwisePreferenceRegressor
from skpref.duels import DuelFrame, from_probabilities, from_votes
from skpref.inference import EP
from skpref.kernels import Identity
from skpref.metrics import log_loss_scorer

PAIRS = np.array([[0, 1], [1, 2], [0, 2], [0, 1]])
PROBA = np.array([0.8, 0.7, 0.97, 0.4])
TABLE = ItemTable.from_names(list("abc"))


def model(**options):
    settings = {"kernel": Identity(), "items": TABLE, "optimizer": None, "noise_variance": 0.5}
    return PairwisePreferenceRegressor(**{**settings, **options})


def fitted(soft, **options):
    return model(**options).fit(soft.X, soft.y, sample_weight=soft.sample_weight)


GRID = np.linspace(-6.0, 6.0, 49)
UTILITY = np.stack(np.meshgrid(GRID, GRID, GRID, indexing="ij"), axis=-1).reshape(-1, 3)


def quadrature(log_likelihood):
    """Means, standard deviations and log-evidence of three independent utilities."""
    value = norm.logpdf(UTILITY).sum(axis=1) + log_likelihood
    top = value.max()
    weight = np.exp(value - top)
    total = weight.sum()
    mean = weight @ UTILITY / total
    deviation = np.sqrt(weight @ (UTILITY - mean) ** 2 / total)
    return mean, deviation, top + np.log(total * (GRID[1] - GRID[0]) ** 3)


def margins(noise):
    return (UTILITY[:, PAIRS[:, 0]] - UTILITY[:, PAIRS[:, 1]]) / np.sqrt(2.0 * noise)


@pytest.mark.parametrize("noise", [0.2, 0.5, 2.0])
def test_beside_quadrature(noise):
    z = margins(noise)
    mean, deviation, evidence = quadrature(norm.logcdf(z) @ PROBA + norm.logcdf(-z) @ (1.0 - PROBA))
    for engine, close in (("ep", 1e-3), ("svi", 5e-3)):
        found = fitted(from_probabilities(PAIRS, PROBA), inference=engine, noise_variance=noise)
        at, spread = found.predict(np.arange(3), return_std=True)
        assert_allclose(at, mean, atol=close)
        assert_allclose(spread, deviation, atol=close)
        assert_allclose(found.log_marginal_likelihood_value_, evidence, atol=2.0 * close)


@pytest.mark.parametrize("proba", [[0.9], [0.5], [0.9] * 5, [0.9] * 20, [0.6, 0.99, 0.2] * 5])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_many_votes_on_one_pair_beside_quadrature(proba, noise):
    soft = from_probabilities([[0, 1]] * len(proba), proba)
    posterior = fitted(soft, noise_variance=noise).posterior_
    mean, variance = posterior.margin(np.array([[0.0]]), np.array([[1.0]]))
    margin = np.linspace(-12.0, 12.0, 20_001)
    z, won = margin / np.sqrt(2.0 * noise), np.sum(proba)
    value = norm.logpdf(margin, scale=np.sqrt(2.0)) + won * norm.logcdf(z)
    value += (len(proba) - won) * norm.logcdf(-z)
    weight = np.exp(value - value.max())
    true = weight @ margin / weight.sum()
    deviation = np.sqrt(weight @ (margin - true) ** 2 / weight.sum())
    assert_allclose(mean, true, atol=0.01 * deviation)
    assert_allclose(np.sqrt(variance), deviation, rtol=0.045)


def test_ties_beside_quadrature():
    proba = np.array([[0.1, 0.2, 0.7], [0.3, 0.5, 0.2], [0.0, 0.25, 0.75], [0.6, 0.0, 0.4]])
    threshold, noise = 0.4, 0.5
    z, gap = margins(noise), threshold / np.sqrt(2.0 * noise)
    tie = np.log(norm.cdf(gap - np.abs(z)) - norm.cdf(-gap - np.abs(z)))
    of = np.stack([norm.logcdf(-z - gap), tie, norm.logcdf(z - gap)], axis=2)
    mean, deviation, evidence = quadrature(np.einsum("nij,ij->n", of, proba))
    soft = from_probabilities(PAIRS, proba)
    assert len(soft.y) == 10 and set(soft.y.tolist()) == {-1, 0, 1}
    found = fitted(soft, tie_threshold=threshold)
    at, spread = found.predict(np.arange(3), return_std=True)
    assert_allclose(at, mean, atol=1e-3)
    assert_allclose(spread, deviation, atol=1e-3)
    assert_allclose(found.log_marginal_likelihood_value_, evidence, atol=2e-3)


def test_the_mode_of_laplace_is_that_of_the_likelihood():
    found = fitted(from_probabilities(PAIRS, PROBA), inference="laplace").predict(np.arange(3))
    z = (found[PAIRS[:, 0]] - found[PAIRS[:, 1]]) / 1.0  # in standard deviations of the noise
    slope = PROBA * np.exp(norm.logpdf(z) - norm.logcdf(z))
    slope -= (1.0 - PROBA) * np.exp(norm.logpdf(z) - norm.logcdf(-z))
    pulled = np.zeros(3)
    np.add.at(pulled, PAIRS[:, 0], slope)
    np.add.at(pulled, PAIRS[:, 1], -slope)
    assert_allclose(found, pulled, atol=1e-6)  # the gradient of the prior


@pytest.mark.parametrize("engine", ["ep", "laplace", "svi"])
def test_a_panel_is_its_votes(engine):
    shares, size = np.array([0.8, 0.6, 1.0, 0.4]), 5
    soft = from_probabilities(PAIRS, shares, sample_weight=np.full(4, size))
    won = np.rint(size * shares).astype(int)
    X = np.repeat(PAIRS, size, axis=0)
    y = np.concatenate([[1] * k + [-1] * (size - k) for k in won])
    assert_allclose(
        fitted(soft, inference=engine).predict(np.arange(3)),
        model(inference=engine).fit(X, y).predict(np.arange(3)),
        atol=1e-7,
    )


@pytest.mark.parametrize("engine", ["ep", "laplace"])
def test_sure_answers_are_answers(engine):
    soft = from_probabilities(PAIRS, [1.0, 0.0, 1.0, 0.0])
    assert_array_equal(soft.X, PAIRS)
    assert soft.y.tolist() == [1, -1, 1, -1] and soft.sample_weight.tolist() == [1.0] * 4
    expected = model(inference=engine).fit(PAIRS, [1, -1, 1, -1]).predict(np.arange(3))
    assert_array_equal(fitted(soft, inference=engine).predict(np.arange(3)), expected)


def test_a_duel_turned_round_says_the_same():
    found = fitted(from_probabilities(PAIRS, PROBA))
    turned = fitted(from_probabilities(PAIRS[:, ::-1], 1.0 - PROBA))
    assert_allclose(found.predict(np.arange(3)), turned.predict(np.arange(3)), atol=1e-9)
    half = fitted(from_probabilities(PAIRS, np.full(4, 0.5)))
    assert_allclose(half.predict(np.arange(3)), 0.0, atol=1e-12)


def test_gradients_of_the_evidence():
    rng = np.random.default_rng(0)
    soft = from_probabilities(rng.normal(size=(12, 2, 2)), rng.random(12))
    tight = {"kernel": RBF(1.0), "items": None, "inference": EP(tol=1e-10)}

    found = fitted(soft, **tight, noise_variance=0.3)
    theta, step = np.log([0.8]), 1e-4
    _, gradient = found.log_marginal_likelihood(theta, eval_gradient=True)
    sides = [found.log_marginal_likelihood(theta + each) for each in (-step, step)]
    assert_allclose(gradient, np.diff(sides) / (2.0 * step), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("engine", ["hmc", "gibbs"])
def test_samplers_refuse_before_work(engine):
    soft = from_probabilities(PAIRS, PROBA)
    with pytest.raises(ValueError, match="number of repetitions"):
        fitted(soft, inference=engine, optimizer="fmin_l_bfgs_b")
    whole = from_probabilities(PAIRS, [1.0, 0.0, 0.5, 1.0], sample_weight=[1, 1, 2, 1])
    assert fitted(whole, inference=engine, random_state=0).predict([0]).shape == (1,)


@pytest.mark.slow
def test_judges():
    judges = np.array([0, 1, 0, 1])
    soft = from_probabilities(PAIRS, PROBA)
    judged = model(inference="laplace").fit(
        soft.X, soft.y, sample_weight=soft.sample_weight, judges=judges[soft.rows]
    )
    # The same said twice, at half the weight.
    twice = from_probabilities(np.tile(PAIRS, (2, 1)), np.tile(PROBA, 2), sample_weight=0.5)
    again = model(inference="laplace").fit(
        twice.X,
        twice.y,
        sample_weight=twice.sample_weight,
        judges=np.tile(judges, 2)[twice.rows],
    )
    assert_allclose(again.predict(np.arange(3)), judged.predict(np.arange(3)), atol=1e-9)


def test_users():
    rng = np.random.default_rng(0)
    X, p, users = rng.normal(size=(16, 2, 2)), rng.random(16), np.arange(16) % 2
    soft = from_probabilities(X, p)

    def proba(soft, users):
        fitted = CollaborativePreferenceRegressor(optimizer=None).fit(
            soft.X, soft.y, sample_weight=soft.sample_weight, users=users[soft.rows]
        )
        return fitted.predict_proba(X, users=np.arange(16) % 2)

    turned = from_probabilities(X[:, ::-1], 1.0 - p)
    assert_allclose(proba(soft, users), proba(turned, users), atol=1e-6)
    whole = from_probabilities(X, np.rint(p))
    expected = CollaborativePreferenceRegressor(optimizer=None).fit(X, np.rint(p), users=users)
    assert_allclose(proba(whole, users), expected.predict_proba(X, users=users), atol=1e-9)


def test_streams():
    soft = from_probabilities(PAIRS, PROBA)
    whole = fitted(soft)
    parts = model(inference="svi")
    for some in (slice(0, 4), slice(4, None)):
        parts.partial_fit(soft.X[some], soft.y[some], sample_weight=soft.sample_weight[some])
    assert_allclose(parts.predict(np.arange(3)), whole.predict(np.arange(3)), atol=0.02)
    tied = model(tie_threshold=0.2, inference="svi")
    tied.partial_fit(PAIRS, [1, 0, -1, 1])
    tied.partial_fit(soft.X, soft.y, sample_weight=soft.sample_weight)  # -1 is no tie
    assert tied.predict([0]) > tied.predict([2])


def test_the_score_is_the_cross_entropy():
    soft = from_probabilities(PAIRS, PROBA)
    found = fitted(soft)
    proba = found.predict_proba(PAIRS)
    wanted = np.mean(PROBA * np.log(proba[:, 1]) + (1.0 - PROBA) * np.log(proba[:, 0]))
    got = log_loss(soft.y, found.predict_proba(soft.X), sample_weight=soft.sample_weight)
    assert_allclose(-got, wanted)
    weight = {"sample_weight": soft.sample_weight}
    assert_allclose(log_loss_scorer(found, soft.X, soft.y, **weight), wanted)
    folds = GroupKFold(2)
    for train, test in folds.split(soft.X, groups=soft.rows):
        assert not set(soft.rows[train]) & set(soft.rows[test])
    scores = cross_val_score(model(), soft.X, soft.y, groups=soft.rows, cv=folds)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("form", ["frame", "names", "polars", "duel frame", "list"])
def test_forms_of_X(form):
    rng = np.random.default_rng(0)
    names = np.array([["tea", "cola"], ["milk", "tea"]])
    if form == "duel frame":
        pd = pytest.importorskip("pandas")
        X = DuelFrame(pd.DataFrame({"size": rng.random(3)}), [[0, 1], [2, 0]])
    elif form in ("frame", "polars"):
        library = pytest.importorskip("pandas" if form == "frame" else "polars")
        X = library.DataFrame({"one": names[:, 0], "two": names[:, 1]})
    else:
        X = names.tolist() if form == "list" else names
    soft = from_probabilities(X, [0.25, 1.0])
    assert len(soft.X) == 3 and soft.rows.tolist() == [0, 0, 1]
    assert type(soft.X) is (np.ndarray if form == "list" else type(X))
    PairwisePreferenceRegressor(optimizer=None).fit(
        soft.X, soft.y, sample_weight=soft.sample_weight
    )


@pytest.mark.parametrize(
    ("proba", "match"),
    [
        ([0.5, 0.2, 1.2, 0.1], "from 0 to 1; got 1.2 in row 2"),
        ([0.5, -0.1, 0.2, np.nan], r"got -0.1 in row 1 \(2 such rows"),
        ([0.5, 0.2], r"shape \(4,\)"),
        (["a", "b", "c", "d"], "numbers from 0 to 1"),
        ([[1.0], [1.0], [1.0], [1.0]], "1 columns"),
        ([[0.5, 0.4]] * 4, "row 0 sum to 0.9, those of 4 rows"),
        (np.ones((4, 2, 2)) / 2, "shape"),
        (np.ma.array([0.5] * 4, mask=[0, 0, 1, 0]), "got nan in row 2"),
    ],
)
def test_what_is_no_probability_is_refused(proba, match):
    with pytest.raises(ValueError, match=match):
        from_probabilities(PAIRS, proba)


def test_other_arguments_are_refused():
    with pytest.raises(ValueError, match="larger sets"):
        from_probabilities([[0, 1, 2]], [0.5])
    with pytest.raises(ValueError, match=r"at least 0, got -1\.0"):
        from_probabilities(PAIRS, PROBA, sample_weight=[1, 1, 1, -1.0])
    for options in ({}, {"tie_threshold": 0.1}):
        with pytest.raises(ValueError, match=r"by skpref\.duels\.from_probabilities"):
            model(**options).fit(PAIRS, PROBA)
    with pytest.raises(ValueError, match=r"Encode them so, leave[^.]*\. Ratings[^.]*\.$"):
        model().fit(PAIRS, [0.5, 2.0, 1.0, 1.0])


def test_rounded_probabilities_are_divided_by_their_sum():
    soft = from_probabilities([[0, 1]], [[0.3333, 0.3333, 0.3333]])
    assert_allclose(soft.sample_weight, 1.0 / 3.0)


def test_votes_that_are_probabilities():
    table = {"a": list("xyx"), "b": list("yzz"), "p": [0.9, 0.5, 1.0], "judge": [1, 2, 3]}
    table |= {"length_a": [1.0, 2.0, 3.0], "length_b": [2.0, 2.0, 1.0]}
    votes = from_votes(table, winner="p", soft=True, controls="length")
    assert votes.rows.tolist() == [0, 0, 1, 1, 2] and votes.judges.tolist() == [1, 1, 2, 2, 3]
    assert votes.y.tolist() == [-1, 1, -1, 1, 1] and "tie_threshold" not in votes.params
    assert_allclose(votes.sample_weight, [0.1, 0.9, 0.5, 0.5, 1.0])
    assert votes.X.shape == (5, 2, 2) and votes.summary == "3 of 3 votes on 3 competitors"
    with pytest.warns(UserWarning, match="1 of 3"):
        later = from_votes({**table, "a": ["y", *table["a"][1:]]}, winner="p", soft=True)
    assert later.rows.tolist() == [1, 1, 2] and later.judges.tolist() == [2, 2, 3]
    with pytest.raises(ValueError, match="say soft=True"):
        from_votes(table, winner="p")
    with pytest.raises(ValueError, match=r"row 1 has \[1\.5\]"):
        from_votes({**table, "p": [0.5, 1.5, 0.1]}, winner="p", soft=True)
    with pytest.raises(ValueError, match="No vote is left: 3 without an outcome"):
        from_votes({**table, "p": [None] * 3}, winner="p", soft=True)
    by_place = from_votes({**table, "p": [1.1, 1.5, 1.0]}, winner="p", soft=True)
    assert_array_equal(by_place.y, votes.y)
    assert_allclose(by_place.sample_weight, votes.sample_weight)
    columns = {"p_a": [0.5, 0.2, 0.0], "p_b": [0.3, 0.8, 0.0], "p_tie": [0.2, 0.0, 1.0]}
    three = from_votes({**table, **columns}, winner=tuple(columns), soft=True)
    assert three.y.tolist() == [-1, 0, 1, -1, 1, 0] and "tie_threshold" in three.params
    assert_allclose(three.sample_weight, [0.3, 0.2, 0.5, 0.8, 0.2, 1.0])
    without = from_votes({**table, **columns}, winner=tuple(columns), soft=True, ties=False)
    assert without.dropped == {"sure ties (ties=False)": 1}
    assert_allclose(without.sample_weight, [0.375, 0.625, 0.8, 0.2])
