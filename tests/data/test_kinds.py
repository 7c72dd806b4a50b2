"""Outcomes of a duel: labels, columns, kinds of row, and what is refused, in one place."""

import numpy as np
import pytest

from skpref.data import DUEL, GRADED, TIE, DuelScale, check_kinds

SCALES = [DuelScale(ties, levels) for ties in (False, True) for levels in (1, 2, 5)]


@pytest.mark.parametrize("scale", SCALES)
def test_labels_columns_and_kinds_name_the_same_outcomes(scale):
    labels = scale.labels
    assert len(labels) == len(scale.names) == len(set(scale.names)) == scale.n_columns
    np.testing.assert_array_equal(scale.columns(labels), np.arange(scale.n_columns))
    np.testing.assert_array_equal(labels, -labels[::-1])
    kinds = frozenset(scale.kinds(labels).tolist())
    assert DuelScale.from_kinds(kinds) == DuelScale.of_columns(scale.n_columns) == scale
    for label in labels.tolist():
        scale.check_told(label)


@pytest.mark.parametrize("scale", SCALES)
def test_what_is_not_on_the_scale_is_refused_with_the_parameter_that_allows_it(scale):
    more = scale.levels + 1
    for label in (more, -more):
        with pytest.raises(ValueError, match=rf"got {label}\. .*grade_thresholds=\(1\.0,\)"):
            scale.check_told(label)
    if not scale.ties:
        with pytest.raises(ValueError, match=r"got a tie\. .*tie_threshold=0\.1, or skip"):
            scale.check_told(0)
    assert ("tie_threshold" in scale.beyond) == scale.ties
    assert ("grade_thresholds" in scale.beyond) == (scale.levels > 1)
    assert bool(scale.beyond) == (scale != DuelScale())


def test_kinds_that_a_likelihood_does_not_take():
    check_kinds([DUEL, TIE], frozenset({DUEL, TIE}), "Mine")
    with pytest.raises(ValueError, match=r"ties among .* Mine does not take\. Give tie_threshold"):
        check_kinds([DUEL, TIE, GRADED + 1], frozenset({DUEL}), "Mine")
    with pytest.raises(ValueError, match=r"grades among .* Give grade_thresholds"):
        check_kinds([DUEL, GRADED + 3], frozenset({DUEL, GRADED + 1, GRADED + 2}), "Mine")


@pytest.mark.parametrize("came", ["y=None", "ranks"])
def test_what_says_who_won_alone_does_not_do_with_grades(came):
    DuelScale(ties=True).check_grades_stated(came)
    with pytest.raises(ValueError, match=rf"grade of each duel.*\[-2, -1, 1, 2\]; got {came}"):
        DuelScale(levels=2).check_grades_stated(came)


def test_answers_of_another_scale_may_not_follow():
    graded = DuelScale(levels=3)
    graded.check_same(DuelScale(levels=3), "now")
    with pytest.raises(ValueError, match="learned with 3 grades, which 'now'"):
        graded.check_same(DuelScale(levels=2), "now")
    with pytest.raises(ValueError, match="learned without ties"):
        graded.check_same(DuelScale(ties=True, levels=3), "now")
