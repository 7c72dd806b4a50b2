"""Journals of lines, which earlier versions wrote: read, left as they are, and carried over.

The files in ``data`` are such a version's, and so are the questions that it asked after them.
"""

import json
import shutil

import numpy as np
import pytest
from journal_support import DATA, judged, optimizer, records, write_lines

from skpref.optimize import HallucinationBelieverOptimizer, export_journal, read_journal

EXPECTED = json.loads((DATA / "lines.json").read_text())


@pytest.fixture
def lines(tmp_path):
    return shutil.copy(DATA / "lines_plain.jsonl", tmp_path / "run.jsonl")


def test_a_run_goes_on_to_the_very_same_questions(lines):
    before = lines.read_bytes()
    with pytest.warns(UserWarning, match=r"goes on in .*run\.jsonl\.db"):
        made = optimizer(lines)
    for duel in EXPECTED["plain"]:
        np.testing.assert_array_equal(made.ask(), duel)
        made.tell(made.ask(), judged(made.ask()))
    assert lines.read_bytes() == before
    for path in (lines, f"{lines}.db"):  # and from then on without a word
        again = optimizer(path)
        assert again.n_told_ == 9
        np.testing.assert_array_equal(again.ask(), made.ask())
    assert len(read_journal(lines)["seq"]) == len(read_journal(f"{lines}.db")["seq"]) == 20


@pytest.mark.filterwarnings("ignore:The journal")
def test_skips_undos_and_pending_duels_come_along(tmp_path):
    path = shutil.copy(DATA / "lines_rich.jsonl", tmp_path / "run.jsonl")
    table = read_journal(path)
    made, expected = optimizer(path), EXPECTED["rich"]
    assert [[e.duel.tolist(), e.outcome] for e in made.history_] == expected["history"]
    np.testing.assert_array_equal(made.ask(2), expected["pending"])
    carried = read_journal(f"{path}.db")
    kept = [kind != "take" for kind in carried["kind"]]
    for name in ("kind", "first", "second", "outcome"):
        assert [x for x, keep in zip(carried[name], kept, strict=True) if keep] == table[name]
    for _ in range(6):
        made.undo()


@pytest.mark.filterwarnings("ignore:The journal")
def test_a_whole_last_record_without_its_end_of_line_counts(lines):
    lines.write_bytes(lines.read_bytes()[:-1])
    np.testing.assert_array_equal(optimizer(lines).ask(), EXPECTED["plain"][0])


@pytest.mark.filterwarnings("ignore:.*of lines, which are only read")
@pytest.mark.parametrize("cut", [2, 10, 60])
def test_a_torn_last_record_is_left_out_with_a_warning(lines, cut):
    content = lines.read_bytes()[:-cut]
    lines.write_bytes(content)
    with pytest.warns(UserWarning, match=r"last line \(12\) of the journal .* is torn"):
        made = optimizer(lines)
    assert lines.read_bytes() == content
    np.testing.assert_array_equal(made.ask(), EXPECTED["plain"][0])  # it is found again


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [(3, b'"outcome":1', b'"outcome":0'), (3, b"{", b""), (4, b"0.", b"1."), (1, b"seed", b"feed")],
)
def test_a_corrupt_line_is_named(lines, line, old, new):
    content = lines.read_bytes().split(b"\n")
    if old not in content[line - 1]:
        old, new = new, old
    content[line - 1] = content[line - 1].replace(old, new, 1)
    lines.write_bytes(b"\n".join(content))
    before = lines.read_bytes()
    with pytest.raises(
        ValueError, match=rf"Line {line} of the journal .* is corrupt|not a journal"
    ):
        optimizer(lines)
    assert lines.read_bytes() == before
    assert list(lines.parent.iterdir()) == [lines]


@pytest.mark.parametrize("name", ["dropped", "doubled", "swapped", "outcome", "memory"])
def test_lines_that_do_not_follow_each_other_are_refused(lines, name):
    found = records(lines)
    if name == "dropped":
        del found[1]
    elif name == "doubled":
        found.insert(2, found[1])
    elif name == "swapped":
        found[1], found[3] = found[3], found[1]
    elif name == "outcome":
        found[2]["outcome"] = 3
    else:
        found[-1]["memory"]["fitted_at"] = 100
    write_lines(lines, found)
    with pytest.raises(ValueError, match=r"does not fit the run before it"):
        optimizer(lines)


def test_lines_that_changed_after_they_were_carried_over_are_noticed(lines):
    with pytest.warns(UserWarning, match="goes on"):
        optimizer(lines)
    write_lines(lines, records(lines)[:-1])
    with pytest.raises(ValueError, match="have changed since they were carried over"):
        optimizer(lines)


@pytest.mark.filterwarnings("ignore:The journal")
@pytest.mark.parametrize(
    ("options", "noise"),
    [
        ({}, "learn"),
        ({"noise_variance": "learn"}, "learn"),
        ({"noise_variance": 0.01, "noise_variance_bounds": "fixed"}, 0.01),
    ],
)
def test_descriptions_of_before_noise_had_bounds_are_understood(lines, options, noise):
    """Where None stood for the number of initial duels, and a number held the noise."""
    found = records(lines)
    configuration = found[0]["configuration"]
    del configuration["noise_variance_bounds"], configuration["likelihood"]
    configuration.update(noise_variance=noise, n_initial=None)
    n_theta = 3 if noise == "learn" else 2
    for record in found[1:]:
        record["memory"]["theta"] = record["memory"]["theta"][:n_theta]
    write_lines(lines, found)
    with pytest.raises(ValueError, match="another configuration"):
        optimizer(lines, n_initial=6, noise_variance=0.02)
    assert optimizer(lines, n_initial=6, **options).n_told_ == 5


@pytest.mark.filterwarnings("ignore:The journal")
@pytest.mark.parametrize(
    ("choices", "described"),
    [
        (["a", "b"], ["np.str_('a')", "np.str_('b')"]),
        ([5, 2, 3.5], ["np.int64(5)", "np.int64(2)", "np.float64(3.5)"]),
        ([True, False], ["np.True_", "np.False_"]),
        ([(1, "x"), "np"], ["(np.int64(1), 'x')", "'np'"]),
    ],
)
def test_lines_that_describe_numpy_choices_are_understood(lines, choices, described):
    found = records(lines)[:1]
    found[0]["configuration"].update(space=[["a", ["choice", *described]]])
    write_lines(lines, found)
    made = HallucinationBelieverOptimizer(
        {"a": choices}, journal=lines, random_state=0, n_initial=3
    )
    assert made.n_told_ == 0


def test_the_history_of_lines_is_exported_too(lines, tmp_path):
    export_journal(lines, tmp_path / "out.jsonl")
    run, first, *rest = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert run["seed"] == 0
    assert first["kind"] == "ask"
    assert len(rest) == 10
