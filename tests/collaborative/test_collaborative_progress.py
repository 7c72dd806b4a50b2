"""What a long fit of several users says: lines, and callbacks of scikit-learn."""

import re
import warnings

import pytest
from collaborative_support import make_study
from numpy.testing import assert_array_equal
from progress_support import Listener, counted, needs_callbacks
from sklearn.gaussian_process.kernels import RBF

from skpref import CollaborativePreferenceRegressor
from skpref.collaborative import _program as _cost
from skpref.fitting import _forecast
from skpref.inference import EP, Engine

STUDY = make_study(n_users=12, n_each=12, taste=2.0, noise=0.05)
GIVEN = {"X": STUDY.X, "y": STUDY.y, "users": STUDY.users}


class Mine(Engine):
    """An engine of one's own with the sites of expectation propagation."""

    capabilities = EP.capabilities

    def run(self, problem, start=None, rng=None):
        return EP().run(problem, start, rng)

    def evidence_gradient(self, problem, approximation):
        return EP().evidence_gradient(problem, approximation)


class Once(Listener):
    """Asks to stop at the end of one task alone."""

    def on_fit_task_end(self, estimator, context, **_):
        return super().on_fit_task_end(estimator, context) and context.task_name == self.task


def quick(**options):
    return CollaborativePreferenceRegressor(RBF(1.0), noise_variance=0.02, **options)


@needs_callbacks
def test_callbacks_are_told_of_evaluations_and_passes_and_change_nothing():
    listener = Listener()
    told = quick(optimizer=counted(3)).set_callbacks(listener).fit(**GIVEN)
    expected = ["evaluation"] * 3 + ["pass"] * told.n_iter_
    assert listener.begun == ["fit", *expected] and listener.ended == [*expected, "fit"]
    assert listener.closed == 1
    plain = quick(optimizer=counted(3)).fit(**GIVEN)
    asked = (model.predict_proba(STUDY.X, users=STUDY.users) for model in (told, plain))
    assert_array_equal(*asked)


@needs_callbacks
@pytest.mark.parametrize(("task", "evaluations"), [("evaluation", 2), ("pass", 9)])
def test_a_callback_ends_what_it_is_told_of(task, evaluations, capsys):
    listener = Once(stop_at=2, task=task)
    model = quick(optimizer=counted(9), verbose=1).set_callbacks(listener)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was asked to: that nothing has converged is no news
        model.fit(**GIVEN)
    assert listener.begun.count("evaluation") == evaluations
    assert model.n_iter_ == 2 if task == "pass" else model.n_iter_ > 5
    stopped = "stopped by a callback after pass 2" in capsys.readouterr().out
    assert stopped == (task == "pass")
    assert model.score(**GIVEN) > 0.7


@needs_callbacks
def test_callbacks_of_a_fit_without_users_are_told_once():
    listener = Listener()
    quick(optimizer=counted(2)).set_callbacks(listener).fit(STUDY.X, STUDY.y)
    assert listener.begun == ["fit", "evaluation", "evaluation"] and listener.closed == 1


def test_verbose_says_what_is_learned_on_whose_answers(capsys):
    features = {k: [0.1 * k, k % 3] for k in range(12)}
    options = {"user_features": features, "n_learning_answers": 30, "tie_threshold": 0.1}
    model = quick(verbose=2, optimizer=counted(2), **options)
    model.fit(STUDY.X, 2 * STUDY.y - 1, users=STUDY.users)
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert first == (
        "[skpref] 144 duels of 6 items by 12 users: learning kernel length_scale, taste_variance, "
        "taste_variance_by_features, user_kernel length_scale, noise_variance, tie_threshold on 30 "
        "answers of 3 users"
    )
    assert re.fullmatch(r"\[skpref\] 144 duels of 6 items by 12 users fitted in [\d.e-]+ s", last)
    said = re.findall(r"\] (evaluation|pass) (\d+):", "\n".join(lines))
    passes = [("pass", str(k + 1)) for k in range(model.n_iter_)]
    assert said == [("evaluation", "1"), ("evaluation", "2"), *passes]
    bound = float(re.search(r"bound (-[\d.]+), residual", lines[-1])[1])
    assert bound == pytest.approx(model.log_marginal_likelihood_value_, abs=0.006)


def test_few_users_with_many_answers_are_learned_from_as_well(capsys):
    """Of one user at most 24 answers are taken, unless there are no others."""
    study = make_study(n_users=2, n_each=200)
    model = quick(verbose=1, optimizer=counted(1), n_learning_answers=150)
    model.fit(study.X, study.y, users=study.users)
    assert "on 150 answers of 2 users" in capsys.readouterr().out


def test_what_inference_means_with_users():
    """Options of EP count while hyperparameters are learned; other engines are of one user."""
    model = quick(inference=EP(tol=1e-7)).fit(**GIVEN)
    assert isinstance(model.engine_, EP) and model.engine_.tol == 1e-7
    assert model.diagnostics_ is None
    for name in ("svi", "laplace", "hmc"):
        with pytest.raises(ValueError, match=f"inference='{name}' is for answers of one user"):
            quick(inference=name).fit(**GIVEN)
    own = quick(inference=Mine(), optimizer=counted(1)).fit(**GIVEN)
    assert isinstance(own.engine_, Mine)
    assert_array_equal(
        own.predict(STUDY.X), quick(optimizer=counted(1)).fit(**GIVEN).predict(STUDY.X)
    )
    assert quick(inference="auto", optimizer=None).fit(**GIVEN).engine_.get_params() == (
        EP().get_params()
    )
    assert quick(inference="laplace").fit(STUDY.X, STUDY.y).engine_.__class__.__name__ == "Laplace"


def test_a_long_fit_is_told_beforehand(monkeypatch):
    """Where a product of 384-row matrices takes a quarter of an hour, so do 144 duels."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(optimizer=None).fit(**GIVEN)
    monkeypatch.setattr(_forecast, "_OPERATION", 8.83e-06)
    message = r"144 duels by 12 users is expected to take up to about \d+ (s|minutes) .max_iter=77"
    with pytest.warns(UserWarning, match=message) as caught:
        quick(optimizer=None, max_iter=77).fit(**GIVEN)
    assert "n_jobs=2" in str(caught[0].message) and "more than there is" not in str(
        caught[0].message
    )
    assert caught[0].filename == __file__
    monkeypatch.setattr(_cost, "available_bytes", lambda: 1.0)
    with pytest.warns(UserWarning, match="more than there is"):
        quick(optimizer=None).fit(**GIVEN)


def test_the_forecast_of_cost_is_linear_in_users(monkeypatch):
    monkeypatch.setattr(_forecast, "_OPERATION", 8.83e-09)

    def minutes(n, sizes=(40, 100, 0)):
        with pytest.warns(UserWarning, match="duels by") as caught:
            _cost.warn_cost(45 * n, n, sizes, 100)
        return int(re.search(r"(\d+) minutes", str(caught[0].message))[1])

    assert minutes(20_000) == pytest.approx(10 * minutes(2000), rel=0.02)
    assert minutes(2000, (40, 100, 25)) > 1.2 * minutes(2000) > 2 * minutes(2000, (10, 100, 0))
