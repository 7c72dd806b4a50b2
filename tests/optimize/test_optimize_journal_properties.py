"""Journals of random histories: what was told is found again, and damage is never believed."""

import json

import numpy as np
import pytest

pytest.importorskip("hypothesis")
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_support import cheap

from skpref.optimize import export_journal, read_journal

PROPERTY = settings(derandomize=True, deadline=None, database=None)
ACTS = st.tuples(st.sampled_from(["tell", "skip", "undo", "ask", "own"]), st.integers(0, 2**16))
HISTORIES = st.lists(ACTS, max_size=10)


def acted(made, history):
    """A run after a history; what it was told, and all else that happened but questions."""
    events, kinds = [], []
    for act, number in history:
        if act == "undo" and not events:
            continue
        if act == "undo":
            made.undo()
            events.pop()
        elif act == "ask":
            made.ask(1 + number % 3)
            continue
        elif act == "own":  # a duel that nobody asked for
            duel = np.random.default_rng(number).random((2, 2))
            made.tell(duel, number % 2)
            events.append((duel, number % 2))
        else:
            duel = made.ask()
            made.skip(duel) if act == "skip" else made.tell(duel, number % 2)
            events.append((duel, number % 2) if act == "tell" else None)
        kind = "tell" if act == "own" else act
        kinds.append((kind, number % 2 if kind == "tell" else None))
    return [event for event in events if event is not None], kinds


def same(made, told):
    assert made.n_told_ == len(told)
    for found, (duel, outcome) in zip(made.history_, told, strict=True):
        np.testing.assert_array_equal(found.duel, duel)
        assert found.outcome == outcome


@pytest.mark.slow
@settings(PROPERTY, max_examples=15)
@given(HISTORIES)
def test_a_journal_holds_what_happened(tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("history")
    path, lines = folder / "run.db", folder / "run.jsonl"
    made = cheap(path)
    told, kinds = acted(made, history)
    same(made, told)
    again = cheap(path)
    same(again, told)
    np.testing.assert_array_equal(again.pending_, made.pending_)
    table = read_journal(path)
    happened = zip(table["kind"], table["outcome"], strict=True)
    assert [each for each in happened if each[0] != "ask"] == kinds
    export_journal(path, lines)
    rows = [json.loads(line) for line in lines.read_text().splitlines()[1:]]
    assert [row["outcome"] for row in rows] == table["outcome"]
    assert [row["items"] for row in rows] == table["items"]
    np.testing.assert_array_equal(again.ask(2), made.ask(2))


@settings(PROPERTY, max_examples=15)
@given(HISTORIES, st.floats(0.0, 1.0, exclude_max=True), st.integers(0, 7))
def test_a_journal_cut_short_is_refused_or_whole(tmp_path_factory, history, share, bit):
    folder = tmp_path_factory.mktemp("history")
    path = folder / "run.db"
    told, _ = acted(cheap(path), history)
    content = path.read_bytes()
    place = 1 + int(share * (len(content) - 1))
    flipped = bytearray(content)
    flipped[place - 1] ^= 1 << bit
    for damaged in (content[:place], bytes(flipped)):
        path.write_bytes(damaged)
        try:
            made = cheap(path)
        except (ValueError, OSError):
            continue
        same(made, told)
