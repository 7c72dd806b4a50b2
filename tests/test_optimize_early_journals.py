"""Journals of the first versions, whose sites have no names, are gone on with as before.

Those in ``data`` were written by the version that had them; each ends with a question. What that
version asked after every answer is what the present one must ask there.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from skpref.optimize import HallucinationBelieverOptimizer, PreferenceOptimizer

pytestmark = pytest.mark.filterwarnings("ignore:The journal .* is of lines")

FOLDER = Path(__file__).parent / "data"
BUILD = {
    "hallucination": HallucinationBelieverOptimizer,
    "ep": lambda *space, **options: PreferenceOptimizer(
        *space, inference="ep", acquisition="eubo", **options
    ),
    "laplace": lambda *space, **options: PreferenceOptimizer(
        *space, inference="laplace", acquisition="eubo", **options
    ),
}


def resumed(name, lines, tmp_path):
    path = tmp_path / f"{len(lines)}.journal"
    path.write_text("".join(lines), encoding="utf-8")
    return BUILD[name]([[0.0, 1.0]] * 2, n_initial=3, journal=path, random_state=3)


@pytest.mark.parametrize("name", BUILD)
def test_the_next_question_is_that_of_the_version_that_wrote_the_journal(name, tmp_path):
    text = (FOLDER / f"{name}_1.journal").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    records = [json.loads(line)["record"] for line in lines]
    assert isinstance(records[-1]["memory"]["sites"], list)  # as it was before
    if name != "laplace":  # which kept nothing
        assert len(records[-1]["memory"]["sites"]) == 2
    asked = [at for at, record in enumerate(records) if record["type"] == "ask"]
    assert len(asked) == 11
    for at in asked[5:]:
        made = resumed(name, lines[:at], tmp_path)
        # That version learned at every answer; now several in a row are learned from at once.
        in_a_row = records[at - 1]["type"] == records[at - 2]["type"] == "tell"
        atol = 1e-3 if in_a_row else 1e-12
        np.testing.assert_allclose(made.ask(), records[at]["duels"][-1], atol=atol)
    whole = resumed(name, lines, tmp_path)
    np.testing.assert_array_equal(whole.ask(), records[-1]["duels"][-1])
    whole.tell(whole.ask(), 1)
    assert whole.n_told_ == sum(r["type"] == "tell" for r in records) - 1 + 1  # one was undone
