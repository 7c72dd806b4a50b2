"""Shards of answers: sums as of all at once, whoever works and whatever becomes of the workers."""

import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from likelihoods_support import Logistic
from numpy.testing import assert_allclose
from shards_support import TIES, Deadly, answers, duels, model_of, regressor

from skpref import PairwisePreferenceRegressor
from skpref.data._comparisons import take_rows_with_items
from skpref.fitting._fit import fit_posterior
from skpref.gp._inducing import Weights
from skpref.inference import SVI, Problem
from skpref.inference import _workers as _shards
from skpref.inference._natural import AnswerBatch
from skpref.inspection import leaderboard
from skpref.kernels import leaderboard_kernel
from skpref.likelihoods import JudgeReliability, Probit

LIKELIHOODS = {
    "probit": Probit(0.3),
    "ties": TIES,
    "logistic": Logistic(0.5),
    "judges": JudgeReliability(TIES, np.array([1.2, 0.5, -0.8])),
}


@pytest.fixture(autouse=True)
def rows(monkeypatch):
    """Shards are small."""
    monkeypatch.setattr(_shards, "_ROWS", 50)


def problem_of(comparisons, likelihood, m=9):
    model = model_of(comparisons, likelihood, SVI(m))
    prior = model.rule.prior(model.kernel, comparisons, model.likelihood)
    return Problem(prior, comparisons, likelihood)


def some_weights(m, seed=0):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(m, m))
    return Weights(half @ half.T, rng.normal(size=m))


BEFORE = {"first": None, "later": some_weights(9, 1)}
# Of a quadrature of its own one case, which is as long as all others.
CASES = [
    pytest.param(name, n_items, before, marks=() if name == "probit" else pytest.mark.slow)
    for name in ("probit", "ties", "judges")
    for n_items in (20, 400)
    for before in BEFORE
]


@pytest.mark.parametrize(("name", "n_items", "before"), [*CASES, ("logistic", 400, "later")])
def test_sums_are_those_of_all_answers(name, n_items, before, monkeypatch):
    monkeypatch.setattr(_shards, "_ROWS", 25)
    seen = answers(130, n_items, LIKELIHOODS[name])
    if name == "judges":
        seen = replace(seen, judge=np.arange(len(seen.positions)) % 3)
    problem, before = problem_of(seen, LIKELIHOODS[name]), BEFORE[before]
    whole = AnswerBatch.from_rows(problem.prior, problem.rows, problem.likelihood, before)
    shards = _shards.Shards(problem, 1, before)
    assert len(shards) == -(-len(problem.rows) // 25) > 3
    for weights in (some_weights(9), some_weights(9, 2)):  # sent, then known
        look, truth = shards.evaluate(weights), whole.evaluate(weights)
        assert_allclose(look.bound, truth.bound, rtol=1e-12)
        assert_allclose(look.target.gain, truth.target.gain, rtol=1e-10, atol=1e-10)
        assert_allclose(look.target.shift, truth.target.shift, rtol=1e-10, atol=1e-10)


def test_every_row_is_in_one_shard_and_items_are_in_few():
    rows = answers(8000, 500).rows
    parts = _shards.rows_of_shards(rows, 250)
    assert max(map(len, parts)) <= 250
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(rows)))
    touched = sum(len(take_rows_with_items(rows, part)[0]) for part in parts)
    plain = np.array_split(np.arange(len(rows)), len(parts))
    bare = sum(len(take_rows_with_items(rows, part)[0]) for part in plain)
    assert touched < 1.25 * np.sqrt(2.0 * len(parts)) * 500 < 0.6 * bare


def history(model):
    return model.diagnostics_.bound_history


@pytest.fixture(scope="module")
def serial():
    X, pairs, y = duels()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_shards, "_ROWS", 50)
        yield regressor(X, 1).fit(pairs, y)


@pytest.mark.parametrize(
    ("backend", "n_jobs"), [("loky", 2), ("threading", 2), ("threading", 3), ("sequential", 2)]
)
def test_workers_give_the_same_bits(backend, n_jobs, serial):
    X, pairs, y = duels()
    with parallel_config(backend):
        model = regressor(X, n_jobs).fit(pairs, y)
    assert np.array_equal(history(model), history(serial))
    assert np.array_equal(model.predict(X), serial.predict(X))


def test_all_at_once_ends_at_the_same_place(serial):
    X, pairs, y = duels()
    model = regressor(X).fit(pairs, y)
    assert_allclose(model.predict(X), serial.predict(X), atol=1e-8)
    assert_allclose(history(model), history(serial), rtol=1e-10)
    assert not np.array_equal(history(model), history(serial))  # another order of sums


def test_a_stream_is_shared_out_too(serial):
    X, pairs, y = duels()
    found = [regressor(X, n_jobs) for n_jobs in (None, 1, 2)]
    for part in (slice(0, 300), slice(300, 600)):
        for model in found:
            model.partial_fit(pairs[part], y[part])
    whole, one, two = (model.predict(X) for model in found)
    assert np.array_equal(one, two)
    assert not np.array_equal(one, whole)
    assert_allclose(one, whole, atol=1e-8)


def kind(n_jobs=None, n=330):
    problem = problem_of(answers(n, 20, LIKELIHOODS["probit"]), LIKELIHOODS["probit"])
    return type(_shards.all_answers(problem, n_jobs)).__name__


def test_shards_are_made_where_they_are_asked_for():
    assert kind() == "AnswerBatch"
    assert kind(1) == kind(2) == kind(-1) == "Shards"
    assert kind(2, n=40) == "AnswerBatch"
    with parallel_config("threading", n_jobs=2):
        assert kind() == "Shards"
        # what runs beside others, within one of them, is left to its worker
        assert Parallel()(delayed(kind)() for _ in range(2)) == ["AnswerBatch", "AnswerBatch"]
    with parallel_config(n_jobs=1):
        assert kind() == "AnswerBatch"


@pytest.mark.parametrize("room", [0, 10_000])
def test_a_result_does_not_hang_on_what_is_kept(room, serial, monkeypatch):
    monkeypatch.setattr(_shards, "_ROOM", room)
    kept, work = [], _shards._sum_shard

    def watched(run, number, q, shard):
        found = work(run, number, q, shard)
        if number == len(_shards.rows_of_shards(serial.comparisons_.rows, 50)) - 1:
            known = _shards._HERE._runs[run].values()
            spaces = [each.batch.prior for each in known]
            kept.append(sum(space.size for space in spaces if "_features" in vars(space)))
        return found

    monkeypatch.setattr(_shards, "_sum_shard", watched)
    X, pairs, y = duels()
    model = regressor(X, 1).fit(pairs, y)
    assert np.array_equal(history(model), history(serial))
    assert max(kept) <= room
    assert not room or min(kept) > 0


def test_workers_that_forget_are_told_again(serial, monkeypatch):
    X, pairs, y = duels()
    look, asked, told = _shards.Shards.evaluate, [], []
    work = _shards._sum_shard

    def forgetful(self, weights):
        asked.append(self)
        if len(asked) == 3:
            _shards._HERE.drop(self._shared.run)
        return look(self, weights)

    def watched(run, number, q, shard):
        told.append(shard is not None)
        return work(run, number, q, shard)

    monkeypatch.setattr(_shards.Shards, "evaluate", forgetful)
    monkeypatch.setattr(_shards, "_sum_shard", watched)
    model = regressor(X, 1).fit(pairs, y)
    # At first, when they do not know, and with the next question, as the same are asked again.
    assert sum(told) == 3 * len(asked[0])
    assert np.array_equal(history(model), history(serial))


def test_a_process_keeps_the_last_runs_only():
    store = _shards.PartCache(4)
    for run in "abcdefg":
        store.add(run, 0, run)
    assert list(store._runs) == ["d", "e", "f", "g"]
    store.get("d", 0)
    store.add("h", 0, "h")
    assert list(store._runs) == ["f", "g", "d", "h"]


def test_newer_runs_have_the_room_of_older_ones(monkeypatch):
    problem = problem_of(answers(330, 20, LIKELIHOODS["probit"]), LIKELIHOODS["probit"])
    shard, store = _shards._Shard.from_problem(problem, np.arange(50)), _shards._ShardCache(4)
    monkeypatch.setattr(_shards, "_ROOM", 2 * shard.to_batch(None).prior.size)
    for number in range(3):
        store.add_shard("old", number, shard)
    store.add_shard("new", 0, shard)
    stays = [[shard.keeps_features for shard in shards.values()] for shards in store._runs.values()]
    assert stays == [[False, False, False], [True]]


def test_nothing_is_kept_in_this_process_after_a_fit():
    X, pairs, y = duels()
    before = list(_shards._HERE._runs)
    regressor(X, 1).fit(pairs, y)
    assert list(_shards._HERE._runs) == before


def test_bytes_moved_a_pass(monkeypatch):
    # As the documentation says: q to every shard and sums back, 8 (m² + 3 m + 1) bytes a shard and
    # less than 1 kB for the rest; the first pass also 18 bytes a row, and the items' features.
    moved = []

    class Counting(Parallel):
        def __call__(self, tasks):
            tasks = list(tasks)
            found = super().__call__(tasks)
            moved[-1] += sum(len(pickle.dumps(each)) for each in tasks + found)
            return found

    monkeypatch.setattr(_shards, "Parallel", Counting)
    m, problem = 40, problem_of(answers(2000, 60, LIKELIHOODS["probit"]), LIKELIHOODS["probit"], 40)
    monkeypatch.setattr(_shards, "_ROWS", 300)
    shards = _shards.Shards(problem, 1)
    for _ in range(3):
        moved.append(0)
        shards.evaluate(some_weights(m))
    sums = len(shards) * 8 * (m**2 + 3 * m + 1)
    assert moved[1] == moved[2]
    assert sums < moved[1] < sums + 1000 * len(shards)
    touched = sum(
        len(take_rows_with_items(problem.rows, part)[0])
        for part in _shards.rows_of_shards(problem.rows, 300)
    )
    points = len(shards) * 8 * m * 2
    answers_too = 18 * len(problem.rows) + 8 * 2 * touched + points
    assert 0 <= moved[0] - moved[1] - answers_too < 2000 * len(shards)


@pytest.mark.slow
def test_a_process_killed_in_mid_fit_changes_nothing(tmp_path, monkeypatch):
    likelihood = Deadly(order=str(tmp_path / "order"), maker=os.getpid())
    comparisons = answers(600, 60, likelihood)
    look, looks = _shards.Shards.evaluate, []

    def watched(self, weights):
        looks.append(self)
        if len(looks) == 3:
            (tmp_path / "order").touch()
        return look(self, weights)

    one, two = (
        model_of(comparisons, likelihood, SVI(18, tol=1e-8, n_jobs=n_jobs)) for n_jobs in (1, 2)
    )
    undisturbed = fit_posterior(comparisons, one)
    monkeypatch.setattr(_shards.Shards, "evaluate", watched)
    with parallel_config("loky"):
        fitted = fit_posterior(comparisons, two)
    assert len(looks) > 3
    assert not (tmp_path / "order").exists()
    bounds = [each.diagnostics.bound_history for each in (fitted, undisturbed)]
    assert np.array_equal(*bounds)


def test_processes_that_die_again_and_again_are_an_error(monkeypatch):
    class Broken(Parallel):
        tries = 0

        def __call__(self, tasks):
            Broken.tries += 1
            raise _shards.BrokenExecutor("gone")

    monkeypatch.setattr(_shards, "Parallel", Broken)
    X, pairs, y = duels()
    with pytest.raises(_shards.BrokenExecutor, match="gone"):
        regressor(X, 2).fit(pairs, y)
    assert Broken.tries == _shards._TRIES


@pytest.mark.parametrize(("backend", "n_jobs"), [("threading", 2), ("loky", 2)])
def test_kernels_of_few_features_are_exact_in_shards(backend, n_jobs):
    """A board with controls: the points span the features, so that EP says the same."""
    rng = np.random.default_rng(0)
    ids = rng.permuted(np.tile(np.arange(8.0), (400, 1)), axis=1)[:, :2]
    X = np.concatenate([ids[:, :, None], rng.normal(size=(400, 2, 2))], axis=2)
    margin = (0.3 * ids + X[:, :, 1:] @ [0.5, 0.2]) @ [1.0, -1.0]
    y = margin + rng.normal(size=400) > 0.0
    found = []
    for engine in ("ep", SVI(500), SVI(500, n_jobs=1), SVI(500, n_jobs=n_jobs)):
        model = PairwisePreferenceRegressor(
            leaderboard_kernel(X, id_column=0),
            id_column=0,
            inference=engine,
            optimizer=None,
            noise_variance=0.5,
        )
        with parallel_config(backend):
            found.append(model.fit(X, y))
    exact, whole, one, several = found
    asked = X[:20].reshape(40, 3)
    assert len(several.posterior_.anchors) == 10  # eight ids and two slopes
    assert np.array_equal(one.predict(asked), several.predict(asked))
    assert_allclose(one.predict(asked), whole.predict(asked), atol=1e-9)
    assert_allclose(whole.predict(asked), exact.predict(asked), atol=1e-3)
    boards = [leaderboard(model, average=False) for model in (exact, several)]
    assert boards[0].names.tolist() == boards[1].names.tolist()
    assert_allclose(boards[1].upper, boards[0].upper, atol=1e-3)
