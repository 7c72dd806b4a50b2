"""The first line of a journal: which configurations are one, and which journals are refused."""

import json
import zlib

import numpy as np
import pytest

from skpref.optimize import HallucinationBelieverOptimizer


def optimizer(path, seed=0, **options):
    options = {"n_initial": 3} | options
    return HallucinationBelieverOptimizer(
        [[0.0, 1.0]] * 2, journal=path, random_state=seed, **options
    )


def answer(made, n=1):
    for _ in range(n):
        duel = made.ask()
        made.tell(duel, np.sum((duel[0] - 0.3) ** 2) < np.sum((duel[1] - 0.3) ** 2))
    return made


def with_configuration(path, change):
    """Rewrite the first line of a journal as a run of another configuration would have it."""
    first, rest = path.read_text().split("\n", 1)
    record = json.loads(first)["record"]
    change(record["configuration"])
    text = json.dumps(record, separators=(",", ":"))
    path.write_text(f'{{"crc":"{zlib.crc32(text.encode()):08x}","record":{text}}}\n{rest}')


@pytest.mark.parametrize(
    ("options", "noise"),
    [
        ({}, "learn"),
        ({"noise_variance": "learn"}, "learn"),
        ({"noise_variance": 0.01, "noise_variance_bounds": "fixed"}, 0.01),
    ],
)
def test_journals_of_before_noise_had_bounds_are_opened(tmp_path, options, noise):
    """Where None stood for the number of initial duels, and a number held the noise."""

    def older(configuration):
        del configuration["noise_variance_bounds"], configuration["likelihood"]
        configuration.update(noise_variance=noise, n_initial=None)

    path = tmp_path / "run.jsonl"
    first = answer(optimizer(path, n_initial=None, **options), 8)
    with_configuration(path, older)
    (tmp_path / "copy.jsonl").write_bytes(path.read_bytes())
    reopened = optimizer(tmp_path / "copy.jsonl", n_initial=6, **options)
    np.testing.assert_array_equal(first.recommend(), reopened.recommend())
    assert answer(reopened, 3).n_told_ == 11
    assert optimizer(tmp_path / "copy.jsonl", n_initial=None, **options).n_told_ == 11
    with pytest.raises(ValueError, match="another configuration"):
        optimizer(tmp_path / "copy.jsonl", n_initial=6, noise_variance=0.02)


@pytest.mark.parametrize(
    ("choices", "described"),
    [
        (["a", "b"], ["np.str_('a')", "np.str_('b')"]),
        ([5, 2, 3.5], ["np.int64(5)", "np.int64(2)", "np.float64(3.5)"]),
        ([True, False], ["np.True_", "np.False_"]),
        ([(1, "x"), "np"], ["(np.int64(1), 'x')", "'np'"]),
    ],
)
def test_journals_that_describe_numpy_choices_are_opened(tmp_path, choices, described):
    def build():
        journal = tmp_path / "run.jsonl"
        return HallucinationBelieverOptimizer({"a": choices}, journal=journal, random_state=0)

    def older(configuration):
        configuration["space"] = [["a", ["choice", *described]]]

    made = build()
    made.tell(made.ask(), 1)
    with_configuration(tmp_path / "run.jsonl", older)
    assert build().history_ == made.history_


def test_a_default_and_its_value_are_one_configuration(tmp_path):
    given = [[[0.1, 0.2], [0.3, 0.4]]] * 2
    for k, (options, same) in enumerate(
        [
            ({"n_initial": None}, {"n_initial": 6}),
            ({"n_initial": None, "initial_duels": given}, {"n_initial": 2, "initial_duels": given}),
            ({"n_initial": 1, "initial_duels": given}, {"n_initial": 2, "initial_duels": given}),
            ({}, {"noise_variance": 3e-3, "noise_variance_bounds": [1e-5, 1]}),
            ({"noise_variance": "learn"}, {}),
        ]
    ):
        path = tmp_path / f"{k}.jsonl"
        answer(optimizer(path, **options), 1)
        assert optimizer(path, **same).n_told_ == 1


def test_another_file_or_configuration_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    answer(optimizer(path), 2)
    with pytest.raises(ValueError, match=r"another configuration \(acquisition: 'log_ei', now"):
        optimizer(path, acquisition="ei")
    with pytest.raises(ValueError, match=r"another configuration \(space:"):
        HallucinationBelieverOptimizer([[0.0, 2.0]] * 2, n_initial=3, journal=path)
    with pytest.raises(ValueError, match="begun with random_state 0, now 1 came"):
        optimizer(path, 1)
    (tmp_path / "note.txt").write_text("a shopping list\n")
    with pytest.raises(ValueError, match=r"Line 1 of the journal .* is corrupt"):
        optimizer(tmp_path / "note.txt")
