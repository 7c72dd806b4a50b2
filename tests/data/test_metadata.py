"""What stands beside answers is read once, to one carrier."""

from dataclasses import fields

import numpy as np
import pytest

from skpref.data import AnswerMetadata
from skpref.data._metadata import _KEYWORDS


def test_every_keyword_has_a_field_and_every_field_a_keyword():
    assert {field.name for field in fields(AnswerMetadata)} == {
        name for name, _ in _KEYWORDS.values()
    }
    nothing = AnswerMetadata.read({}, 3, 2)
    assert all(getattr(nothing, field.name) is None for field in fields(AnswerMetadata))


def test_what_comes_for_all_is_that_of_each():
    metadata = AnswerMetadata.read({"order": -1, "sample_weight": 2, "time": 7.5}, 3, 2)
    assert metadata.order.tolist() == [-1, -1, -1]
    assert metadata.order.dtype == np.int8
    assert metadata.weight.tolist() == [2.0, 2.0, 2.0]
    assert metadata.time.values.tolist() == [7.5, 7.5, 7.5]


def test_groups_are_numbers_and_ids_stay():
    metadata = AnswerMetadata.read({"qid": ["b", "a", "b"], "users": (1, "x", None)}, 3, None)
    assert metadata.qid.tolist() == [1, 0, 1]
    assert metadata.user == [1, "x", None]


@pytest.mark.parametrize(
    ("keywords", "k", "match"),
    [
        ({"qid": [0, 0, 1]}, 2, "qid belongs to items with ratings"),
        ({"order": 1}, None, "order= is of duels and sets"),
        ({"judges": ["a", "b", "a"]}, None, "judges= are of duels"),
        ({"judges": ["a", "b", "a"]}, 3, "sets of up to 3 items; .* Pass prompts= the judges"),
        ({"order": -1}, 3, "of sets it is 1 or 0"),
        ({"judges": ["a", "b"]}, 2, "got 2 ids in judges for 3 rows"),
        ({"users": "abc"}, 2, "users must be a sequence of ids"),
        ({"time": [1, 2]}, None, "got 2 times for 3 items"),
        ({"time": [1, 2]}, 2, "got 2 times for 3 answers"),
    ],
)
def test_what_does_not_go_with_such_an_x_is_refused(keywords, k, match):
    with pytest.raises(ValueError, match=match):
        AnswerMetadata.read(keywords, 3, k)
