"""The evidence of many users' answers as a function of the hyperparameters."""

import pickle

import numpy as np
import pytest
from collaborative_support import make_study
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from skpref import PairwisePreferenceRegressor
from skpref.collaborative import CollaborativePreferenceRegressor
from skpref.collaborative import _learn as _study
from skpref.fitting._parts import LearningSizes
from skpref.kernels import Identity, OnColumns

STUDY = make_study(n_users=8, n_each=8)
Z = np.random.default_rng(1).standard_normal((8, 1))
Z = (Z - Z.mean()) / Z.std()
HELD = {"noise_variance": 0.05, "optimizer": None, "tol": 1e-9, "max_iter": 500}


def joint(scale, own, shared, of_users, noise):
    """All users at once by EP, with their ids and features behind the features of items."""
    more = np.column_stack([STUDY.users, Z[STUDY.users]])
    rows = np.broadcast_to(more[:, None], (len(more), 2, 2))
    kernel = ConstantKernel(1.0) + ConstantKernel(own) * OnColumns(Identity(), [2])
    if shared:
        kernel += ConstantKernel(shared) * OnColumns(RBF(of_users), [3])
    kernel = OnColumns(RBF(scale), [0, 1]) * kernel
    model = PairwisePreferenceRegressor(kernel, noise_variance=noise, optimizer=None)
    return model.fit(np.concatenate([STUDY.X, rows], axis=2), STUDY.y).log_marginal_likelihood()


@pytest.fixture
def unlearned(monkeypatch):
    """Covariances of tastes are as they are given."""
    for name in ("cp", "cpu"):
        method = _study.METHODS[name]._replace(prior_users=None)
        monkeypatch.setitem(_study.METHODS, name, method)


@pytest.mark.usefixtures("unlearned")
def test_at_other_hyperparameters_it_is_that_of_the_joint_model():
    model = CollaborativePreferenceRegressor(
        RBF(1.0), user_features=Z, user_kernel=RBF(0.8), taste_variance=1.0, **HELD
    ).fit(STUDY.X, STUDY.y, users=STUDY.users)
    at = [model.log_marginal_likelihood(np.log([s, 0.7, 0.4, 1.3])) for s in (0.6, 1.5)]
    assert at[0] == pytest.approx(joint(0.6, 0.7, 0.4, 1.3, 0.05), abs=1e-6)
    assert at[1] == pytest.approx(joint(1.5, 0.7, 0.4, 1.3, 0.05), abs=1e-6)


@pytest.mark.usefixtures("unlearned")
def test_the_noise_is_among_them_where_it_was_learned():
    options = HELD | {"optimizer": "fmin_l_bfgs_b"}
    model = CollaborativePreferenceRegressor(RBF(1.0), **options)
    model.fit(STUDY.X, STUDY.y, users=STUDY.users)
    value = model.log_marginal_likelihood(np.log([0.8, 0.5, 0.2]))
    assert value == pytest.approx(joint(0.8, 0.5, 0.0, None, 0.2), abs=1e-6)
    found = np.r_[model.kernel_.theta, np.log([model.taste_variance_, model.noise_variance_])]
    assert model.log_marginal_likelihood(found) == pytest.approx(
        model.log_marginal_likelihood(), abs=1e-9
    )


def test_of_users_alone_it_is_the_sum_of_theirs():
    """The variance of tastes is the kernel's, and no hyperparameter of its own."""
    model = CollaborativePreferenceRegressor(RBF(1.0), method="su", **HELD)
    model.fit(STUDY.X, STUDY.y, users=STUDY.users)
    total, alone = 0.0, PairwisePreferenceRegressor(RBF(0.7), noise_variance=0.05, optimizer=None)
    for user in range(8):
        mine = STUDY.users == user
        total += alone.fit(STUDY.X[mine], STUDY.y[mine]).log_marginal_likelihood()
    assert model.log_marginal_likelihood(np.log([0.7])) == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"inference": "vb", "n_latent": 2}, {"n_latent": 2}])
def test_it_is_that_of_a_fit_there(options):
    options = {"noise_variance": 0.05, "optimizer": None, "user_features": Z, **options}
    given = {"X": STUDY.X, "y": STUDY.y, "users": STUDY.users}
    model = CollaborativePreferenceRegressor(RBF(1.0), user_kernel=RBF(0.8), **options)
    model = pickle.loads(pickle.dumps(model.fit(**given)))
    other = CollaborativePreferenceRegressor(
        RBF(2.0), user_kernel=RBF(1.5), taste_variance=1.2, **options
    ).fit(**given)
    theta = np.log([2.0, 0.6, 0.6, 1.5])
    value = model.log_marginal_likelihood(theta)
    assert value == pytest.approx(other.log_marginal_likelihood(), abs=1e-9)
    assert abs(value - model.log_marginal_likelihood()) > 0.1


def test_what_is_held_is_not_asked_for():
    model = CollaborativePreferenceRegressor(
        RBF(1.0, "fixed"), taste_variance_bounds="fixed", optimizer=None
    ).fit(STUDY.X, STUDY.y, users=STUDY.users)
    assert model.log_marginal_likelihood([]) == pytest.approx(model.log_marginal_likelihood())
    with pytest.raises(ValueError, match=r"theta must have shape \(0,\)"):
        model.log_marginal_likelihood([0.0])
    with pytest.raises(ValueError, match=r"got eval_gradient=True .* Leave it at False"):
        model.log_marginal_likelihood(eval_gradient=True)


def test_theta_names_what_it_holds():
    model = CollaborativePreferenceRegressor(user_features=Z, optimizer=None)
    model.fit(STUDY.X, STUDY.y, users=STUDY.users)
    with pytest.raises(ValueError, match="taste_variance, taste_variance_by_features, user_"):
        model.log_marginal_likelihood([0.0])


@pytest.mark.parametrize("bounds", ["fixed", (1e-3, 9.0)])
def test_an_order_effect_is_learned_on_more_answers(monkeypatch, bounds):
    monkeypatch.setattr(_study, "ENOUGH", LearningSizes(points=60, names=150))
    parts = []

    def learned(lesson, *_):
        parts.append(lesson.part)
        return lesson.start

    monkeypatch.setattr(_study.Lesson, "learn_hyperparameters", learned)
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(6)[:2] for _ in range(200)])
    users, y = np.repeat(np.arange(10), 20), rng.integers(0, 2, 200)
    regressor = CollaborativePreferenceRegressor(
        items=np.arange(6.0)[:, None], order_effect=0.1, order_effect_bounds=bounds
    )
    regressor.fit(X, y, users=users)
    assert len(parts[0].positions) == (60 if bounds == "fixed" else 150)
