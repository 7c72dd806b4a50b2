"""What a long fit says: lines, callbacks of scikit-learn, and a word beforehand."""

import re
import warnings

import numpy as np
import pytest
from core_support import random_duels, won
from judged_support import make_duels, make_items
from numpy.testing import assert_array_equal
from progress_support import Listener, counted, needs_callbacks
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from skpref import ItemTable, PairwisePreferenceRegressor
from skpref.duels import Comparisons
from skpref.fitting import _forecast, _progress
from skpref.fitting._forecast import forecast, warn_cost
from skpref.fitting._model import Model
from skpref.fitting._search import Step
from skpref.inference import EP, HMC, SVI, Gibbs
from skpref.likelihoods import Probit


@pytest.fixture(scope="module")
def data():
    return make_duels(make_items())


def model(**params):
    return PairwisePreferenceRegressor(**{"kernel": RBF(1.0), "noise_variance": 0.1, **params})


# -- lines ---------------------------------------------------------------------------------------


def test_by_default_a_fit_is_silent(data, capsys):
    model().fit(*data)
    assert capsys.readouterr() == ("", "")


def test_verbose_says_what_is_learned_and_when_it_is_done(data, capsys):
    model(verbose=1).fit(*data)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == ("[skpref] 60 duels of 12 items: learning kernel length_scale, noise_variance")
    assert re.fullmatch(r"\[skpref\] 60 duels of 12 items fitted in [\d.e-]+ s", last)


def test_verbose_calls_sets_by_their_name(capsys):
    sets = np.random.default_rng(0).normal(size=(8, 3, 1))
    model(verbose=1, optimizer=None).fit(sets, np.zeros(8, dtype=int))
    assert capsys.readouterr().out.startswith("[skpref] 8 choices and rankings of 24 items fitted")


def test_verbose_says_every_few_seconds_how_far_it_is(data, capsys, monkeypatch):
    now = iter(np.arange(0.0, 1e4, 0.9))
    monkeypatch.setattr(_progress, "perf_counter", lambda: next(now))
    model(verbose=1, optimizer=counted(9)).fit(*data)
    said = re.findall(r"evaluation (\d+):", capsys.readouterr().out)
    assert said == ["3", "6", "9"]  # more than two seconds apart


def test_verbose_twice_says_every_evaluation(data, capsys):
    fitted = model(verbose=2, optimizer=counted(5), lengthscale_prior=None).fit(*data)
    out = capsys.readouterr().out
    assert re.findall(r"evaluation (\d+):", out) == list("12345")
    best = [float(each) for each in re.findall(r"log posterior ([-\d.]+),", out)]
    assert best == sorted(best)
    assert best[-1] == pytest.approx(fitted.log_marginal_likelihood_value_, abs=0.01)
    assert len(re.findall(r"[\d.e-]+ s each", out)) == 5


def test_searches_are_counted_and_timed_one_by_one(capsys, monkeypatch):
    class Task:
        def subcontext(self, name):
            return self

        def call_on_fit_task_begin(self, **_):
            pass

        call_on_fit_task_end = call_on_fit_task_begin

    monkeypatch.setattr(_progress, "LONG", np.inf)
    report = _progress.Report(model(), Task(), 2)
    for number, value, seconds in [
        (1, -9.0, 40.0),
        (2, -5.0, 20.0),
        (1, -7.0, 2.0),
        (2, -8.0, 1.0),
    ]:
        report.report_evaluation(Step(number, value, np.zeros(1), seconds))
    assert capsys.readouterr().out.splitlines() == [
        "[skpref] evaluation 1: log posterior -9.00, 40 s each",
        "[skpref] evaluation 2: log posterior -5.00, 30 s each",
        "[skpref] search 2, evaluation 1: log posterior -7.00, 2 s each",
        "[skpref] search 2, evaluation 2: log posterior -7.00, 1.5 s each",
    ]


def test_items_of_several_versions_count_once(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2, 2))
    X[:, :, 0] = rng.permuted(np.tile(np.arange(3.0), (40, 1)), axis=1)[:, :2]
    y = np.arange(40) % 2
    model(kernel=None, id_column=0, verbose=1, optimizer=None).fit(X, y)
    assert "40 duels of 3 items in 80 versions fitted in" in capsys.readouterr().out


def test_verbose_without_learning_says_that_it_is_done(data, capsys):
    model(verbose=2, optimizer=None).fit(*data)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("[skpref] 60 duels of 12 items fitted in ")


@pytest.mark.parametrize("verbose", [-1, 1.5, "loud", None])
def test_bad_verbose_says_what_is_allowed(data, verbose):
    with pytest.raises((ValueError, TypeError), match="verbose must"):
        model(verbose=verbose).fit(*data)


# -- callbacks -----------------------------------------------------------------------------------


@needs_callbacks
def test_callbacks_are_told_of_every_evaluation(data):
    listener = Listener()
    model(optimizer=counted(5)).set_callbacks(listener).fit(*data)
    assert listener.begun == ["fit", *["evaluation"] * 5]
    assert listener.ended == [*["evaluation"] * 5, "fit"]
    assert listener.closed == 1


@needs_callbacks
def test_callbacks_change_nothing(data):
    told, plain = model().set_callbacks(Listener()).fit(*data), model().fit(*data)
    assert_array_equal(told.kernel_.theta, plain.kernel_.theta)
    assert_array_equal(told.predict_proba(data[0]), plain.predict_proba(data[0]))


@needs_callbacks
def test_a_callback_stops_the_search(data):
    listener = Listener(stop_at=2)
    stopped = model().set_callbacks(listener).fit(*data)
    assert listener.begun.count("evaluation") == 2
    assert listener.ended[-1] == "fit"
    assert stopped.score(*data) > 0.7
    assert len(model().set_callbacks(longer := Listener()).fit(*data).kernel_.theta) == 1
    assert longer.begun.count("evaluation") > 3


@needs_callbacks
def test_callbacks_are_closed_after_a_fit_that_failed(data):
    def broken(obj_func, initial_theta, bounds):
        raise ValueError("it broke")

    listener = Listener()
    with pytest.raises(ValueError, match="it broke"):
        model(optimizer=broken).set_callbacks(listener).fit(*data)
    assert listener.closed == 1


@needs_callbacks
def test_a_callback_ends_the_engine_at_what_it_has_found(data, capsys):
    listener = Listener(stop_at=2, task="pass")
    fast = model(inference="svi", optimizer=None, verbose=1).set_callbacks(listener)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was asked to: that it has not converged is no news
        fast.fit(*data)
    assert listener.begun == ["fit", "pass", "pass"] and listener.ended[-1] == "fit"
    assert fast.n_iter_ == 2
    assert "stopped by a callback after pass 2" in capsys.readouterr().out
    whole = model(inference="svi", optimizer=None).fit(*data)
    assert fast.log_marginal_likelihood_value_ < whole.log_marginal_likelihood_value_


@needs_callbacks
def test_an_engine_that_was_told_to_end_does_not_begin_again(data):
    listener = Listener(stop_at=1, task="pass")
    model(inference="svi", optimizer=counted(2)).set_callbacks(listener).fit(*data)
    assert listener.begun == ["fit", "evaluation", "evaluation", "pass"]


@needs_callbacks
@pytest.mark.parametrize(
    "engine", [SVI(), SVI(batch_size=20), SVI(scale_prior=(1.0, 1.0)), SVI(local="ekf")], ids=repr
)
def test_callbacks_are_told_of_the_last_runs_passes(data, engine):
    told = Listener()
    learned = model(inference=engine, optimizer=counted(3)).set_callbacks(told).fit(*data)
    expected = ["fit", *["evaluation"] * 3, *["pass"] * learned.n_iter_]
    assert told.begun == expected
    plain = model(inference=engine, optimizer=counted(3)).fit(*data)
    assert_array_equal(plain.predict_proba(data[0]), learned.predict_proba(data[0]))


def test_passes_are_said_with_the_bound(data, capsys):
    for engine in (SVI(), SVI(batch_size=20), SVI(scale_prior=(1.0, 1.0))):
        fitted = model(inference=engine, optimizer=None, verbose=2).fit(*data)
        said = re.findall(
            r"pass (\d+): bound ([-\d.]+), residual [\d.einf+-]+\n", capsys.readouterr().out
        )
        assert [int(number) for number, _ in said] == list(range(1, fitted.n_iter_ + 1))
        course = fitted.diagnostics_
        bounds = course.bound_history if engine.batch_size is None else course.smoothed_bound
        assert [float(bound) for _, bound in said] == pytest.approx(bounds, abs=0.006)


def test_passes_are_said_every_few_seconds(data, capsys, monkeypatch):
    now = iter(np.arange(0.0, 1e4, 0.9))
    monkeypatch.setattr(_progress, "perf_counter", lambda: next(now))
    fitted = model(inference=SVI(tol=1e-9), optimizer=None, verbose=1).fit(*data)
    said = re.findall(r"pass (\d+):", capsys.readouterr().out)
    assert fitted.n_iter_ >= 6
    assert said == [str(k) for k in range(3, fitted.n_iter_ + 1, 3)]


def test_the_progress_bar_of_scikit_learn(data, capsys):
    pytest.importorskip("rich")
    bar = pytest.importorskip("sklearn.callback").ProgressBar()
    fitted = model(optimizer=counted(3)).set_callbacks(bar).fit(*data)
    assert "PairwisePreferenceRegressor - fit" in capsys.readouterr().out
    assert clone(fitted) is not fitted


# -- beforehand ----------------------------------------------------------------------------------


def large(n_items, n_duels, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(n_items, size=n_duels)
    second = (first + rng.integers(1, n_items, n_duels)) % n_items
    return won(rng.normal(size=(n_items, 2)), first, second)


def spec(engine=None):
    return Model(RBF([1.0, 1.0]), Probit(), EP() if engine is None else engine)


@pytest.fixture
def slow(monkeypatch):
    """A machine on which one product of 384-row matrices takes a second, with memory enough."""
    monkeypatch.setattr(_forecast, "_OPERATION", 8.83e-09)
    monkeypatch.setattr(_forecast, "available_bytes", lambda: 1e15)


def test_small_fits_say_nothing_however_full_the_machine(monkeypatch):
    monkeypatch.setattr(_forecast, "available_bytes", lambda: 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n_items, n_duels in ((10, 3), (900, 5000), (5000, 400), (100, 100_000)):
            warn_cost(large(n_items, n_duels), spec(), True)


def test_answers_that_come_again_are_forecast_by_the_prior_that_takes_them():
    """Rankings given twice are counted by all items, however few margins they have."""
    items = np.random.default_rng(0).normal(size=(2000, 2))
    shown, rank = np.arange(90).reshape(30, 3), np.tile([1, 2, 3], (30, 1))
    once, twice = (
        Comparisons.from_ranks(items, shown, rank, np.full(30, weight)) for weight in (1.0, 2.0)
    )
    seconds = [forecast(each, spec())[0] for each in (once, twice)]
    assert seconds[1] / seconds[0] == pytest.approx((90 / 60) ** 3)  # 90 items, 60 margins


def test_a_long_fit_is_told_with_the_remedy(slow):
    comparisons = large(1500, 4000)
    with pytest.warns(UserWarning, match=r"distinct \w+ among \d+ items.*minutes.*GiB") as caught:
        warn_cost(comparisons, spec(), True)
    text = str(caught[0].message)
    assert "more than there is" not in text
    remedy = "learn the hyperparameters on a part of them by n_learning_answers=1000; or fit fewer"
    assert remedy in text and "verbose=1" in text
    with pytest.warns(UserWarning, match="To spare them: fit fewer duels or items"):
        warn_cost(comparisons, spec(), False)


def test_the_remedy_is_fewer_answers_than_there_are(slow):
    """A fit of 1 000 answers was told to learn on 1 000 of them."""
    with pytest.warns(UserWarning, match=r"n_learning_answers=500; or"):
        warn_cost(large(1500, 1000), spec(), True)


def test_a_fit_too_large_for_the_memory_is_told(monkeypatch):
    monkeypatch.setattr(_forecast, "_OPERATION", 8.83e-18)
    comparisons = large(1500, 4000)
    _, size = forecast(comparisons, spec())
    monkeypatch.setattr(_forecast, "available_bytes", lambda: 1.2 * size)
    with pytest.warns(UserWarning, match=r"GiB \(more than there is\)"):
        warn_cost(comparisons, spec(), False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for free in (2.0 * size, np.inf):  # without end: this machine does not say
            monkeypatch.setattr(_forecast, "available_bytes", lambda free=free: free)
            warn_cost(comparisons, spec(), False)


def test_costs_grow_with_what_is_asked(slow):
    small, big = large(1200, 4000), large(2400, 8000)
    costs = [forecast(each, spec()) for each in (big, small)]
    ratio = [b / s for b, s in zip(*costs, strict=True)]
    assert ratio[0] == pytest.approx(8.0, rel=0.1) and ratio[1] == pytest.approx(4.0, rel=0.1)
    assert forecast(small, spec(HMC()))[1] > 2.0 * forecast(small, spec())[1]


@pytest.mark.parametrize("engine", [HMC, Gibbs])
def test_draws_are_what_takes_long(slow, engine):
    """4 000 duels of 300 items: EP takes less than a second, 1 000 draws half a minute or more."""
    comparisons = large(300, 4000)
    by_ep, few, many = (
        forecast(comparisons, spec(each))[0]
        for each in (EP(), engine(draws=1000), engine(draws=3000))
    )
    assert few > 50.0 * by_ep
    assert many - by_ep == pytest.approx(3.0 * (few - by_ep))
    assert forecast(large(300, 8000), spec(engine()))[0] > 3.5 * few
    with pytest.warns(
        UserWarning, match="To spare them: inference='ep'.*or fewer draws; fit fewer"
    ):
        warn_cost(comparisons, spec(engine()), False)


def test_the_forecast_counts_distinct_duels_and_items(slow):
    rng = np.random.default_rng(0)
    few = won(rng.normal(size=(50, 2)), *rng.integers(0, 50, (2, 4000)))
    for less, more in zip(forecast(few, spec()), forecast(large(3000, 4000), spec()), strict=True):
        assert less < 1e-3 * more


def test_the_estimator_warns_before_the_fit_at_the_users_line(data, monkeypatch):
    monkeypatch.setattr(_forecast, "_OPERATION", 0.0883)
    with pytest.warns(UserWarning, match="is expected to take about") as caught:
        model(optimizer=None, inference="ep").fit(*data)
    assert caught[0].filename == __file__
    items, winner, loser = random_duels(0, 12, 40)
    pairs = np.column_stack([winner, loser])
    with pytest.warns(UserWarning, match="This fit of .* among 12 items"):
        model(items=ItemTable(items), optimizer=None, inference="ep").fit(pairs)


def test_a_long_search_is_told_by_the_time_of_its_first_evaluation(data, monkeypatch):
    """A multiple of the forecast of a fit was too low by up to 56."""
    now = iter(np.arange(0.0, 1e4, 5.0))
    monkeypatch.setattr("skpref.fitting._search.perf_counter", lambda: next(now))
    with pytest.warns(UserWarning, match=r"took 5 s, .* some 20: about 2 minutes") as caught:
        model().fit(*data)
    assert len(caught) == 1


# -- what was fitted -----------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_the_evidence_is_that_of_what_was_fitted(data, inference):
    fitted = model(inference=inference).fit(*data)
    theta = np.append(fitted.kernel_.theta, np.log(fitted.noise_variance_)) + 0.2
    before = fitted.log_marginal_likelihood(), *fitted.log_marginal_likelihood(theta, True)
    fitted.set_params(
        kernel=RBF([9.0, 9.0, 9.0]),
        noise_variance=77.0,
        noise_variance_bounds="fixed",
        inference="hmc",
        optimizer=None,
    )
    after = fitted.log_marginal_likelihood(), *fitted.log_marginal_likelihood(theta, True)
    for one, other in zip(before, after, strict=True):
        assert_array_equal(one, other)
