"""What makes a journal's run: which configurations are one, which are refused; histories."""

import json

import numpy as np
import pytest
from journal_support import answer, cheap, optimizer
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from skpref.duels import ItemTable
from skpref.inference import EP
from skpref.optimize import (
    HallucinationBelieverOptimizer,
    PreferenceOptimizer,
    export_journal,
    read_journal,
)


def test_a_default_and_its_value_are_one_configuration(tmp_path):
    given = [[[0.1, 0.2], [0.3, 0.4]]] * 2
    for k, (options, same) in enumerate(
        [
            ({"n_initial": None}, {"n_initial": 6}),
            ({"n_initial": None, "initial_duels": given}, {"n_initial": 2, "initial_duels": given}),
            ({"n_initial": 1, "initial_duels": given}, {"n_initial": 2, "initial_duels": given}),
            ({}, {"noise_variance": 3e-3, "noise_variance_bounds": [1e-5, 1]}),
        ]
    ):
        path = tmp_path / f"{k}.db"
        answer(optimizer(path, **options), 1)
        assert optimizer(path, **same).n_told_ == 1


@pytest.mark.parametrize(
    ("options", "same", "other"),
    [
        (
            {"kernel": RBF([0.123456789123, 0.2])},
            {"kernel": RBF(np.array([0.123456789123, 0.2]))},
            {"kernel": RBF([0.123456789124, 0.2])},
        ),
        (
            {"kernel": ConstantKernel(2.0) * Matern(0.3, nu=1.5)},
            {"kernel": ConstantKernel(np.float64(2)) * Matern(np.float64(0.3), nu=1.5)},
            {"kernel": ConstantKernel(2.0) * Matern(0.3, nu=2.5)},
        ),
        ({"refit_every": 5}, {"refit_every": np.int64(5)}, {"refit_every": 6}),
        (
            {"lengthscale_prior": (0.5, 0.1)},
            {"lengthscale_prior": np.array([0.5, 0.1])},
            {"lengthscale_prior": (0.5, 0.1000001)},
        ),
    ],
)
def test_configurations_are_compared_by_value(tmp_path, options, same, other):
    path = tmp_path / "run.db"
    with np.printoptions(precision=3):
        optimizer(path, **options)
    optimizer(path, **same)
    with pytest.raises(ValueError, match="another configuration"):
        optimizer(path, **other)


def test_engines_are_compared_by_value(tmp_path):
    cheap(tmp_path / "run.db", inference=EP(tol=1e-7))
    cheap(tmp_path / "run.db", inference=EP(tol=np.float64(1e-7)))
    with pytest.raises(ValueError, match="another configuration"):
        cheap(tmp_path / "run.db", inference=EP(tol=2e-7))


def test_arrays_of_choices_are_their_values(tmp_path):
    for choices in (list(np.arange(1, 6)), [1, 2, 3, 4, 5], np.arange(1, 6)):
        made = HallucinationBelieverOptimizer(
            {"a": choices, "b": [np.float64(0.1), "x"]}, journal=tmp_path / "run.db"
        )
        made.tell(made.ask(), 1)
    assert made.n_told_ == 3


@pytest.mark.parametrize(
    "space", [{"f": [np.sin, np.cos]}, {"f": [lambda x: x, "no"]}, {"f": [object(), object()]}]
)
def test_choices_that_cannot_be_written_down_are_refused_at_once(tmp_path, space):
    HallucinationBelieverOptimizer(space).ask()
    if space["f"][0] is np.sin:
        space = {"f": [test_arrays_of_choices_are_their_values, 1]}
    with pytest.raises(ValueError, match=r"f has the choice .* which a journal cannot hold"):
        HallucinationBelieverOptimizer(space, journal=tmp_path / "run.db")
    assert not list(tmp_path.iterdir())


def test_another_configuration_or_seed_is_refused(tmp_path):
    path = tmp_path / "run.db"
    answer(optimizer(path), 2)
    with pytest.raises(ValueError, match=r"another configuration \(acquisition: 'log_ei', now"):
        optimizer(path, acquisition="ei")
    with pytest.raises(ValueError, match=r"another configuration \(space:"):
        HallucinationBelieverOptimizer([[0.0, 2.0]] * 2, n_initial=3, journal=path)
    with pytest.raises(ValueError, match="begun with random_state 0; got 1"):
        optimizer(path, 1)
    assert optimizer(path).n_told_ == 2


# --- histories ------------------------------------------------------------------------------


def test_a_history_is_a_table_of_what_happened(tmp_path):
    path = tmp_path / "run.db"
    made = cheap(path)
    duels = made.ask(2)
    made.tell(duels[1], 0).skip(duels[0]).undo()
    table = read_journal(path)
    assert table["seq"] == [1, 1, 2, 3, 4]
    assert table["kind"] == ["ask", "ask", "tell", "skip", "undo"]
    assert table["outcome"] == [None, None, 0, None, None]
    np.testing.assert_array_equal(table["first"][2], duels[1, 0])
    np.testing.assert_array_equal(table["second"][3], duels[0, 1])
    assert table["first"][4] is None
    assert all(time.startswith("20") for time in table["time"])
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(table).shape == (5, 7)


def test_histories_have_names_and_choices(tmp_path):
    space = {"rate": stats.loguniform(1e-4, 0.1), "n": (1, 9), "kind": ["a", "b", ("c", 1)]}
    made = PreferenceOptimizer(space, journal=tmp_path / "mixed.db")
    made.tell([{"rate": 0.01, "n": 3, "kind": ("c", 1)}, {"rate": 0.02, "n": 4, "kind": "a"}], True)
    table = read_journal(tmp_path / "mixed.db")
    assert table["first"] == [{"rate": 0.01, "n": 3, "kind": "('c', 1)"}]
    assert table["second"] == [{"rate": 0.02, "n": 4, "kind": "a"}]
    pool = ItemTable([[0.0], [1.0], [2.0]], names=["x", "y", "z"])
    made = PreferenceOptimizer(candidates=pool, journal=tmp_path / "pool.db")
    made.tell(["y", "z"], 1)
    assert read_journal(tmp_path / "pool.db")["second"] == ["z"]


def test_histories_are_exported_as_lines(tmp_path):
    made = answer(cheap(tmp_path / "run.db"), 3)
    before = made._session.state
    export_journal(tmp_path / "run.db", tmp_path / "out.jsonl")
    run, *rows = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert run["seed"] == 0
    assert run["configuration"]["incumbent"] == "random"
    table = read_journal(tmp_path / "run.db")
    assert [row["first"] for row in rows] == table["first"]
    assert made._session.state is before
    with pytest.raises(FileExistsError):
        export_journal(tmp_path / "run.db", tmp_path / "out.jsonl")
    with pytest.raises(FileNotFoundError, match="There is no journal"):
        read_journal(tmp_path / "none.db")
