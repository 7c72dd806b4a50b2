"""Items that are independent through time, and answers that come later, in the estimator."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel

from skpref import PairwisePreferenceRegressor
from skpref.duels import ItemTable
from skpref.inference import EP, SVI, Laplace
from skpref.kernels import Identity, OnColumns, Wiener
from skpref.likelihoods import DUEL, Answers

pytestmark = pytest.mark.usefixtures("chains")
INDEPENDENT = EP(items="independent")
NAMES = ItemTable.from_names([f"item {k}" for k in range(40)])


def regressor(engine=INDEPENDENT, **options):
    given = {"drift": "matern32", "noise_variance": 0.5, "optimizer": None, "items": NAMES}
    return PairwisePreferenceRegressor(inference=engine, **(given | options))


def path(n=25, seed=0):
    """Each item meets the one before it and is not met again: nothing more is learned of it."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.arange(1, n), np.arange(n - 1)])
    return X, rng.random(len(X)) < 0.6, np.sort(rng.uniform(0.0, 10.0, len(X)))


def season(n=200, n_items=12, seed=0):
    rng = np.random.default_rng(seed)
    X = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n)])
    return X, rng.random(n) < 0.6, np.sort(rng.integers(0, 60, n)).astype(float)


@pytest.mark.parametrize(
    "engine", [INDEPENDENT, Laplace(items="independent")], ids=["ep", "laplace"]
)
def test_predictions_are_near_those_of_joint_items(engine):
    X, y, time = season()
    joint = clone(engine).set_params(items="joint")
    exact, model = (regressor(each).fit(X, y, time=time) for each in (joint, engine))
    asked = season(100, seed=1)
    p, wanted = (each.predict_proba(asked[0], time=asked[2]) for each in (model, exact))
    assert_allclose(p, wanted, atol=0.02)
    # Of margins: how high all items stand together no answer tells, and independent items say less
    # of it than it is.
    std, wanted = (
        each.predict(asked[0], return_std=True, time=asked[2])[1] for each in (model, exact)
    )
    assert_allclose(std, wanted, rtol=0.1)


@pytest.mark.slow
def test_learned_hyperparameters_are_near_those_of_joint_items():
    rng = np.random.default_rng(3)
    n, n_items = 300, 8
    X = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n)])
    time = np.sort(rng.uniform(0.0, 50.0, n))
    walk = np.cumsum(rng.normal(size=(n_items, 51)), axis=1) * 0.4
    f = walk[X, np.minimum(time.astype(int), 50)[:, None]]
    y = f[:, 0] - f[:, 1] + rng.normal(size=n) > 0.0
    options = {"optimizer": "fmin_l_bfgs_b", "n_learning_answers": None}
    exact, model = (
        regressor(each, **options).fit(X, y, time=time) for each in (EP(tol=1e-6), INDEPENDENT)
    )
    assert_allclose(model.kernel_.theta, exact.kernel_.theta, atol=0.5)
    assert abs(
        model.log_marginal_likelihood_value_ - exact.log_marginal_likelihood_value_
    ) < 0.03 * abs(exact.log_marginal_likelihood_value_)


@pytest.mark.slow
def test_the_search_ends_alike_from_far_starts():
    X, y, time = season(400, 8)
    skill = np.random.default_rng(2).normal(size=8)
    y = skill[X[:, 0]] - skill[X[:, 1]] + np.random.default_rng(3).normal(size=400) > 0.0
    options = {"optimizer": "fmin_l_bfgs_b", "drift": "matern12"}
    fits = [regressor(noise_variance=v, **options).fit(X, y, time=time) for v in (0.01, 9.0)]
    fits.append(regressor(**options).fit(X, y, time=time))
    ends = [each._model.log_prior(each._model.theta)[0] for each in fits]
    found = [e + each.log_marginal_likelihood_value_ for e, each in zip(ends, fits, strict=True)]
    assert_allclose(found, found[0], atol=0.1)


@pytest.mark.slow
def test_what_stays_and_what_moves_are_found_from_far_starts():
    """A variance of what stays that says nothing at first was never found: 5 nats were left."""
    rng = np.random.default_rng(0)
    n, n_items = 600, 12
    first = rng.integers(0, n_items, n)
    X = np.column_stack([first, (first + rng.integers(1, n_items, n)) % n_items])
    time = np.sort(rng.integers(0, 200, n)).astype(float)
    walk = rng.normal(size=n_items) + np.cumsum(0.05 * rng.normal(size=(200, n_items)), axis=0)
    f = walk[time.astype(int)[:, None], X]
    y = f[:, 0] - f[:, 1] + rng.normal(size=n) > 0.0
    who = OnColumns(Identity(), [0])

    def evidence(amplitude, rate):
        stays = ConstantKernel(amplitude, (1e-6, 1e6)) * who
        moves = who * OnColumns(Wiener(rate, (1e-9, 1e3)), [1])
        model = PairwisePreferenceRegressor(stays + moves, inference=INDEPENDENT, items=NAMES)
        return model.fit(X, y, time=time).log_marginal_likelihood_value_

    far = [evidence(*begin) for begin in ((1e-4, 1.0), (100.0, 1e-5))]
    assert_allclose(far, evidence(1.0, 0.01), atol=0.01)


class Filtered:
    """Answers one after the other into sites that stay, by a dense matrix of all items at times."""

    def __init__(self, X, time, model):
        flat = X.reshape(2 * len(X), -1)
        rows = np.column_stack([flat, np.repeat(time - time[0], 2)]).astype(float)
        D = np.zeros((len(X), len(rows)))
        D[np.arange(len(X)), 2 * np.arange(len(X))] = 1.0
        D[np.arange(len(X)), 1 + 2 * np.arange(len(X))] = -1.0
        self.rows, self.D, self.kernel = rows, D, model.kernel_
        self.K, self.likelihood = model.kernel_(rows), model.likelihood_
        self.precision, self.shift = np.zeros((2, len(X)))

    def posterior(self, rows):
        """Mean and covariance at rows."""
        S, cross = self.D @ self.K @ self.D.T, self.kernel(rows, self.rows) @ self.D.T
        inner = np.linalg.inv(np.eye(len(S)) + self.precision[:, None] * S)
        told = cross @ inner
        return told @ self.shift, self.kernel(rows) - told @ (self.precision[:, None] * cross.T)

    def tell(self, begin, end, y):
        """Sites of some answers, each on an own pair of items, given all before."""
        for k in range(begin, end):
            mean, cov = self.posterior(self.rows[2 * k : 2 * k + 2])
            sign = 1.0 if y[k] else -1.0
            m, v = sign * (mean[0] - mean[1]), cov[0, 0] + cov[1, 1] - 2.0 * cov[0, 1]
            tilted = self.likelihood.tilted(
                np.array([m]), np.array([v]), Answers(np.array([DUEL]), np.array([1]))
            )
            curvature, gradient = tilted.curvature[0], tilted.gradient[0]
            self.precision[k] = curvature / (1.0 - v * curvature)
            self.shift[k] = sign * (gradient + m * curvature) / (1.0 - v * curvature)


def test_later_answers_are_filtered():
    X, y, time = path()
    model = regressor().fit(X[:1], y[:1], time=time[:1])
    truth = Filtered(X, time, model)
    truth.tell(0, 1, y)
    for k in range(1, len(X)):
        mean, cov = truth.posterior(truth.rows[2 * k : 2 * k + 2])
        margin, std = model.predict(X[k : k + 1], return_std=True, time=time[k])
        assert_allclose(margin[0], mean[0] - mean[1], atol=1e-6)
        assert_allclose(std[0] ** 2, cov[0, 0] + cov[1, 1] - 2.0 * cov[0, 1], atol=1e-6)
        p = model.predict_proba(X[k : k + 1], time=time[k])
        model.partial_fit(X[k : k + 1], y[k : k + 1], time=time[k])
        assert_allclose(model.log_marginal_likelihood_value_, np.log(p[0, int(y[k])]), atol=1e-6)
        truth.tell(k, k + 1, y)


def test_smoothing_counts_later_answers_for_earlier_times():
    # The opponents of item 0 are met once each, so that nothing more is learned of them.
    rng = np.random.default_rng(0)
    X = np.column_stack([np.zeros(20, dtype=int), np.arange(1, 21)])
    y, time = rng.random(20) < 0.7, np.sort(rng.uniform(0.0, 5.0, 20))
    model = regressor().fit(X[:1], y[:1], time=time[:1])
    truth = Filtered(X, time, model)
    truth.tell(0, 20, y)
    model.partial_fit(X[1:], y[1:], time=time[1:])
    when = np.linspace(-1.0, 8.0, 9)
    rows = np.column_stack([np.zeros(9), when - time[0]])
    mean, cov = truth.posterior(rows)
    filtered = model.posterior_
    assert not np.allclose(filtered.mean(rows)[:4], mean[:4], atol=1e-3)
    assert_allclose(filtered.mean(rows)[-3:], mean[-3:], atol=1e-6)
    assert_allclose(filtered.cov(rows)[-3:, -3:], cov[-3:, -3:], atol=1e-6)
    smoothed = filtered.smoothed()
    assert_allclose(smoothed.mean(rows), mean, atol=1e-6)
    assert_allclose(smoothed.cov(rows), cov, atol=1e-6)
    assert smoothed.smoothed() is smoothed


def test_between_two_later_answers_the_first_counts():
    X = np.array([[0, 1], [0, 2], [0, 3]])
    model = regressor().fit(X[:1], [True], time=[0.0])
    first = clone(model).fit(X[:1], [True], time=[0.0])
    first.partial_fit(X[1:2], [True], time=[1.0])
    model.partial_fit(X[1:], [True, False], time=[1.0, 3.0])
    for time in (0.5, 2.0):
        found, wanted = (
            m.predict(np.arange(5), return_std=True, time=time) for m in (model, first)
        )
        assert_allclose(found, wanted, atol=1e-8)


@pytest.mark.slow
def test_uncertainty_grows_with_time_to_come():
    X, y, time = season()
    for drift in ("wiener", "matern12", "matern32", "matern52"):
        model = regressor(drift=drift).fit(X, y, time=time)
        std = [model.predict([0], return_std=True, time=t)[1][0] for t in (60.0, 90.0, 500.0)]
        assert std[0] < std[1] < std[2]


def test_new_items_days_and_pieces():
    X, y, time = season()
    model = regressor().fit(X[:150], y[:150], time=time[:150])
    at_once = pickle.loads(pickle.dumps(model))
    for when in np.unique(time[150:]):
        some = np.flatnonzero(time == when)
        some = some[some >= 150]
        model.partial_fit(X[some], y[some], time=time[some])
    at_once.partial_fit(X[150:], y[150:], time=time[150:])
    asked = np.arange(20)
    assert_allclose(model.predict(asked), at_once.predict(asked), atol=1e-5)
    before = model.predict([30], return_std=True)
    model.partial_fit(np.array([[30, 0]]), [True], time=[61.0])
    after = model.predict([30], return_std=True)
    assert after[0] > before[0] and after[1] < before[1]
    assert_allclose(before[0], 0.0, atol=1e-12)


def test_a_day_of_names_that_each_stand_on_one_side_is_read_as_before():
    X, y, time = season()
    names = np.array([f"item {k}" for k in range(12)])
    model = regressor(items=None).fit(names[X], y, time=time)
    day = np.array([["item 0", "item 1"], ["item 2", "item 1"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(day, [True, False], time=61.0)


def test_later_answers_that_do_not_fit_are_refused():
    X, y, time = season()
    model = regressor().fit(X, y, time=time)
    with pytest.raises(ValueError, match="later than those before"):
        model.partial_fit(X[:1], y[:1], time=[3.0])
    with pytest.raises(ValueError, match="takes duels"):
        model.partial_fit(np.array([[0, 1, 2]]), [0], time=[70.0])
    with pytest.raises(ValueError, match="takes no judges"):
        model.partial_fit(X[:1], y[:1], time=[70.0], judges=["a"])
    with pytest.raises(AttributeError, match="partial_fit"):
        regressor(EP()).fit(X, y, time=time).partial_fit  # noqa: B018 (it raises)
    with pytest.raises(ValueError, match="must be 'joint' or 'independent'"):
        regressor(EP(items="alone")).fit(X, y, time=time)
    with pytest.raises(ValueError, match="need duels, none of an item with itself"):
        regressor(drift=None).fit(X, y)


@pytest.mark.parametrize(
    "given",
    ["ties", "grades", "order", "weights", "sides", pytest.param("judges", marks=pytest.mark.slow)],
)
def test_other_contexts_are_near_those_of_joint_items(given):
    X, y, time = season(120)
    rng = np.random.default_rng(5)
    options, told = {}, {"time": time}
    y = y.astype(int)
    if given == "ties":
        options, y = {"tie_threshold": 0.3}, np.where(rng.random(120) < 0.2, 0, 2 * y - 1)
    elif given == "grades":
        options, y = {"grade_thresholds": (0.8,)}, (2 * y - 1) * rng.integers(1, 3, 120)
    elif given == "order":
        options["order_effect"], told["order"] = 0.4, rng.integers(-1, 2, 120)
    elif given == "weights":
        told["sample_weight"] = rng.choice([0.5, 1.0, 3.0], 120)
    elif given == "judges":
        told["judges"] = rng.integers(0, 3, 120)
    else:  # items with a feature that a linear part sees
        from sklearn.gaussian_process.kernels import DotProduct

        from skpref.kernels import Identity, OnColumns

        kernel = OnColumns(Identity(), [0]) + OnColumns(DotProduct(0.0, "fixed"), [1])
        X = np.stack([X, rng.normal(size=X.shape)], axis=2)
        options = {"items": None, "id_column": 0, "kernel": kernel}
    exact, model = (regressor(each, **options).fit(X, y, **told) for each in (EP(), INDEPENDENT))
    asked = {name: told[name][:50] for name in ("order", "judges", "time") if name in told}
    found, wanted = (each.predict_proba(X[:50], **asked) for each in (model, exact))
    assert_allclose(found, wanted, atol=0.03)


def test_what_auto_takes_and_streams_by_points_go_on():
    X, y, time = season()
    model = regressor(SVI(n_inducing=30)).fit(X[:100], y[:100], time=time[:100])
    model.partial_fit(X[100:], y[100:], time=time[100:])
    assert hasattr(model, "_stream")


def test_later_answers_on_items_at_two_times_are_refused():
    # Each at its own age, which a kernel without time= may see.
    from skpref.kernels import Identity, OnColumns, Wiener

    who = OnColumns(Identity(), [0])
    kernel = who + who * OnColumns(Wiener(0.3), [1])
    X = np.array([[[0, 2.0], [1, 5.0]], [[1, 6.0], [2, 4.0]], [[2, 5.0], [0, 3.0]]])
    model = regressor(items=None, drift=None, kernel=kernel).fit(X, [1, 0, 1])
    later = np.array([[[0, 7.0], [1, 7.0]], [[0, 7.0], [1, 9.0]]])
    with pytest.raises(ValueError, match="answers on two items at one time each"):
        model.partial_fit(later, [1, 0])
    model.partial_fit(later[:1], [1])


def test_groups_of_later_items_are_learned_of():
    # Teams as a feature: that of item 20 was never met.
    from sklearn.gaussian_process.kernels import ConstantKernel

    from skpref.kernels import Identity, OnColumns

    kernel = OnColumns(Identity(), [0]) + ConstantKernel(4.0) * OnColumns(Identity(), [1])
    X, y, time = season(80)
    X = np.stack([X, X // 3], axis=2).astype(float)
    model = regressor(items=None, id_column=0, kernel=kernel).fit(X, y, time=time)
    new = np.array([[[0.0, 0.0], [20.0, 9.0]], [[0.0, 0.0], [21.0, 9.0]]])
    p, mean = model.predict_proba(new, time=70.0), model.predict(new, time=70.0)
    std = model.predict(new, return_std=True, time=70.0)[1]
    model.partial_fit(new[:1], [1], time=70.0)
    assert_allclose(model.log_marginal_likelihood_value_, np.log(p[0, 1]), atol=1e-6)
    after = model.predict(new, return_std=True, time=70.0)
    # The other margin moves by its covariance with this one: item 0's variance and the team's, 4.
    gain = (after[0][0] - mean[0]) / std[0] ** 2
    assert after[0][1] - mean[1] > 4.0 * gain
    assert after[1][1] < std[1]


def test_what_stays_is_learned_of_by_later_answers():
    # Every item is met once, so that nothing is lost by taking it as independent of what stays:
    # two features, and a group that changes.
    from sklearn.gaussian_process.kernels import DotProduct

    from skpref.kernels import Identity, OnColumns

    rng = np.random.default_rng(4)
    n = 12
    ids, group = np.arange(2 * n).reshape(n, 2), rng.integers(0, 4, (n, 2)) + np.arange(n)[:, None]
    X = np.stack([ids, *rng.normal(size=(2, n, 2)), group], axis=2)
    y, time = rng.random(n) < 0.5, np.arange(float(n))
    kernel = (
        OnColumns(Identity(), [0])
        + 2.0 * OnColumns(DotProduct(0.0, "fixed"), [1, 2])
        + 0.7 * OnColumns(Identity(), [3])
    )
    model = regressor(items=None, id_column=0, kernel=kernel, noise_variance=0.1)
    model.fit(X[:1], y[:1], time=time[:1])
    truth = Filtered(X, time, model)
    truth.tell(0, 1, y)
    for k in range(1, n):
        mean, cov = truth.posterior(truth.rows[2 * k : 2 * k + 2])
        margin, std = model.predict(X[k : k + 1], return_std=True, time=time[k])
        assert_allclose(margin[0], mean[0] - mean[1], atol=1e-6)
        assert_allclose(std[0] ** 2, cov[0, 0] + cov[1, 1] - 2.0 * cov[0, 1], atol=1e-6)
        p = model.predict_proba(X[k : k + 1], time=time[k])
        model.partial_fit(X[k : k + 1], y[k : k + 1], time=time[k])
        assert_allclose(model.log_marginal_likelihood_value_, np.log(p[0, int(y[k])]), atol=1e-6)
        truth.tell(k, k + 1, y)
