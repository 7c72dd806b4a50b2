"""A cluster of two worker processes does what one process does, also when a worker is killed."""

import os

import numpy as np
import pytest
from collaborative_support import make_study
from joblib import parallel_config
from numpy.testing import assert_allclose
from shards_support import (
    Deadly,
    answers,
    duels,
    killed_where_told,
    model_of,
    regressor,
    small_shards,
)
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV

from skpref import CollaborativePreferenceRegressor, PairwisePreferenceRegressor
from skpref.collaborative import _teams
from skpref.fitting._fit import fit_posterior
from skpref.inference import SVI
from skpref.inference import _workers as _shards
from skpref.likelihoods import Probit

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """Of two workers of one thread, and shards of fifty rows everywhere."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        client.run(small_shards)
        yield client


@pytest.fixture
def nearby():
    """Of two workers that are threads of this process: there in no time."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(processes=False, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def rows(monkeypatch):
    monkeypatch.setattr(_shards, "_ROWS", 50)


def known_runs():
    return len(_shards._HERE._runs)


@pytest.mark.slow
def test_a_fit_is_that_of_one_process(client):
    X, pairs, y = duels()
    alone, whole = regressor(X, 1).fit(pairs, y), regressor(X).fit(pairs, y)
    before = client.run(known_runs)
    with parallel_config("dask"):
        model = regressor(X).fit(pairs, y)
    assert sum(client.run(known_runs).values()) > sum(before.values())
    assert model.n_iter_ == alone.n_iter_
    for other in (alone, whole):
        assert_allclose(model.predict(X), other.predict(X), atol=1e-8)
        assert_allclose(model.predict_proba(pairs), other.predict_proba(pairs), atol=1e-8)
        bounds = (each.diagnostics_.bound_history for each in (model, other))
        assert_allclose(*bounds, rtol=1e-10)


@pytest.mark.parametrize("cluster", ["nearby", pytest.param("client", marks=pytest.mark.slow)])
def test_restarts_end_where_they_do_in_one_process(cluster, request):
    request.getfixturevalue(cluster)
    X, pairs, y = duels(60, 15)
    models = [
        PairwisePreferenceRegressor(
            RBF(1.0, (0.1, 10.0)), items=X, n_restarts_optimizer=3, random_state=0
        )
        for _ in range(2)
    ]
    models[0].fit(pairs, y)
    with parallel_config("dask"):
        models[1].fit(pairs, y)
    theta = [np.r_[model.kernel_.theta, np.log(model.noise_variance_)] for model in models]
    assert_allclose(*theta, atol=1e-8)
    assert_allclose(models[0].predict(X), models[1].predict(X), atol=1e-8)


@pytest.mark.slow
def test_a_grid_search_scores_as_in_one_process(client):
    # Each of its fits is in shards too, so that tasks wait for tasks: more of them than workers.
    X, pairs, y = duels(300, 40)
    grid = {"kernel__length_scale": [0.3, 1.0], "inference__n_inducing": [5, 18]}
    searches = [
        GridSearchCV(regressor(X), grid, scoring="neg_log_loss", cv=2, refit=False)
        for _ in range(2)
    ]
    searches[0].fit(pairs, y)
    with parallel_config("dask"):
        searches[1].fit(pairs, y)
    scores = (search.cv_results_["mean_test_score"] for search in searches)
    assert_allclose(*scores, atol=1e-8)


@pytest.mark.slow
def test_a_worker_killed_in_mid_fit_changes_nothing(client, tmp_path, monkeypatch):
    order = tmp_path / "order"
    likelihood = Deadly(order=str(order), maker=os.getpid())
    comparisons = answers(600, 60, likelihood)
    fits = [model_of(comparisons, likelihood, SVI(18, tol=1e-9, n_jobs=n)) for n in (1, None)]
    undisturbed = fit_posterior(comparisons, fits[0])
    workers = set(client.run(os.getpid).values())
    look, looks = _shards.Shards.evaluate, []

    def watched(self, weights):
        looks.append(self)
        if len(looks) == 3:
            order.touch()
        return look(self, weights)

    monkeypatch.setattr(_shards.Shards, "evaluate", watched)
    with parallel_config("dask"):
        fitted = fit_posterior(comparisons, fits[1])
    assert len(looks) > 3
    (killed,) = tmp_path.iterdir()
    assert int(killed.suffix[1:]) in workers
    one, two = (each.diagnostics.bound_history for each in (undisturbed, fitted))
    assert_allclose(two, one, rtol=1e-10)
    items = comparisons.items
    assert_allclose(fitted.posterior.mean(items), undisturbed.posterior.mean(items), atol=1e-8)
    assert_allclose(fitted.posterior.cov(items), undisturbed.posterior.cov(items), atol=1e-8)


class Mortal(Probit):
    """The probit, which kills a process other than its maker's when a file says so."""

    def __init__(self, noise_variance=0.3, noise_variance_bounds="fixed", order="", maker=0):
        super().__init__(noise_variance, noise_variance_bounds)
        self.order, self.maker = order, maker

    def tilted(self, mean, variance, answers, power=None):
        killed_where_told(self.order, self.maker)
        return super().tilted(mean, variance, answers, power)


@pytest.mark.slow
def test_many_users_are_fitted_as_in_one_process_also_where_a_worker_is_killed(
    client, tmp_path, monkeypatch
):
    """Teams of up to sixteen users; each is sent to a worker once, and again to a new one."""
    monkeypatch.setattr(_teams, "_TEAM", 16)
    study, order = make_study(n_users=40, n_each=8), tmp_path / "order"
    likelihood = Mortal(order=str(order), maker=os.getpid())
    features = np.random.default_rng(0).standard_normal((40, 2))

    def fitted():
        model = CollaborativePreferenceRegressor(
            RBF(1.0),
            user_features=features,
            likelihood=likelihood,
            optimizer=None,
            max_iter=6,
            tol=0.05,
        )
        return model.fit(study.X, study.y, users=study.users)

    alone = fitted()
    client.wait_for_workers(2)
    workers, packed, looks = set(client.run(os.getpid).values()), [], []
    package, look = _teams.Crew._package, _teams.Crew.update_sites

    def counted(self, number):
        packed.append(number)
        return package(self, number)

    def watched(self, *args):
        looks.append(self)
        if len(looks) == 4:
            order.touch()
        return look(self, *args)

    monkeypatch.setattr(_teams.Crew, "_package", counted)
    monkeypatch.setattr(_teams.Crew, "update_sites", watched)
    with parallel_config("dask"):
        spread = fitted()
    assert len(set(packed)) == 3 and len(packed) < 2 * 3 * len(looks)
    (killed,) = tmp_path.iterdir()
    assert int(killed.suffix[1:]) in workers
    asked = (each.predict_proba(study.X, users=study.users) for each in (alone, spread))
    assert_allclose(*asked, atol=1e-8)
    assert spread.n_iter_ == alone.n_iter_ == len(looks)
    values = (each.log_marginal_likelihood_value_ for each in (alone, spread))
    assert_allclose(*values, rtol=1e-10)
